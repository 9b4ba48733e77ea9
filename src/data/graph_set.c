/* A prepared graph as a set whose samples are its vertices, in the order of the file. The splits have the
 * same
 * vertices, all of them, and different labels: those of a split's own vertices, -1 elsewhere. Edges are
 * lists of
 * `slots` places a vertex (graph/ops/edge_pair.inc.h), sorted by target, then source, with one from each
 * vertex to
 * itself; what is left over at the end holds -1. */
#include "data/prepared.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "data/reader_int.h"

enum field { X, Y, FROM, TO, NUMBER, DEGREES };

struct graph_set {
	struct hd_reader reader;
	struct hd_prepared graph;
	uint64_t slots;
	int32_t *from, *to;               /* [vertices * slots] */
};

/* Sources ascend; the vertex itself comes where it would stand among them. */
static void list_edges(struct graph_set *set)
{
	const struct hd_prepared *g = &set->graph;
	uint64_t n = 0;

	for (uint64_t v = 0; v < g->head.nvertices; v++) {
		uint64_t e = g->in.offset[v], end = g->in.offset[v + 1];
		for (bool self = false; e < end || !self; n++) {
			bool now = !self && (e == end || g->in.at[e] > v);
			set->to[n] = (int32_t)v;
			set->from[n] = now ? (int32_t)v : (int32_t)g->in.at[e++];
			self |= now;
		}
	}
	for (; n < g->head.nvertices * set->slots; n++)
		set->from[n] = set->to[n] = -1;
}

static enum hd_err add_fields(struct graph_set *set, const struct hd_data_spec *spec, const char *name,
	struct hd_diag *diag)
{
	const int64_t width = set->graph.head.width, slots = (int64_t)set->slots, two = 2;
	struct hd_reader *r = &set->reader;
	enum hd_err err = hd_field_add_x(r, spec, HD_F32, 1, &width, name, diag);

	err = err ? err : hd_field_add(r, "y", HD_I32, 0, NULL, diag);
	err = err ? err : hd_field_add(r, "from", HD_I32, 1, &slots, diag);
	err = err ? err : hd_field_add(r, "to", HD_I32, 1, &slots, diag);
	err = err ? err : hd_field_add(r, "number", HD_I32, 1, &slots, diag);
	return err ? err : hd_field_add(r, "degrees", HD_F32, 1, &two, diag);
}

static enum hd_err fill(struct hd_reader *r, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct graph_set *set = (struct graph_set *)r;
	const struct hd_prepared_head *head = &set->graph.head;

	if (!spec->path)
		return hd_fail(diag, HD_E_INVAL,
			"data.kind graph needs a file that `heddle data prepare-graph` has written: set "
			"data.path");
	enum hd_err err = hd_source_add(r, spec->path, diag);
	if (!err)
		err = hd_prepared_view(r->source[0].bytes, r->source[0].len, r->source[0].name, &set->graph,
			diag);
	if (!err)
		err = hd_prepared_check(&set->graph, r->source[0].name, diag);
	if (err)
		return err;
	if (spec->classes && head->nclasses != spec->classes)
		return hd_fail(diag, HD_E_INPUT,
			"%s has %u classes, the model tells %u: set model.args.classes to %u",
			r->source[0].name, head->nclasses, spec->classes, head->nclasses);
	set->slots = (head->nedges + head->nvertices + head->nvertices - 1) / head->nvertices;
	uint64_t places = head->nvertices * set->slots;
	if (places > INT32_MAX)
		return hd_fail(diag, HD_E_REFUSED, "%s has %" PRIu64 " edges: one interval takes %d at most",
			r->source[0].name, head->nedges, INT32_MAX);
	set->from = hd_arena_take(&r->arena, places, sizeof *set->from);
	set->to = hd_arena_take(&r->arena, places, sizeof *set->to);
	if (!set->from || !set->to)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %" PRIu64 " edges", places);
	list_edges(set);
	if ((err = add_fields(set, spec, r->source[0].name, diag)))
		return err;
	r->set.count = head->nvertices;
	(void)hd_split_add(r, "train", 0, head->nvertices);
	(void)hd_split_add(r, "valid", 0, head->nvertices);
	(void)hd_split_add(r, "test", 0, head->nvertices);
	r->set.hash = hd_sources_hash(r);
	r->set.at_hand = true;
	hd_reader_about(r, "%" PRIu64 " vertices, %" PRIu64 " edges, %u features, %u classes, %s",
		head->nvertices,
		head->nedges, head->width, head->nclasses, spec->path);
	return HD_OK;
}

static enum hd_err graph_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct graph_set), &hd_reader_graph, fs, fill, spec, diag);
}

static void read_features(const struct hd_prepared *g, uint64_t v, float *out)
{
	const uint32_t width = g->head.width;

	if (!g->feature_offset) {
		memcpy(out, g->feature + v * width, width * sizeof *out);
		return;
	}
	memset(out, 0, width * sizeof *out);
	for (uint64_t e = g->feature_offset[v]; e < g->feature_offset[v + 1]; e++)
		out[g->feature_column[e]] = g->feature[e];
}

static enum hd_err graph_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	static const enum hd_graph_mask masks[] = { HD_GRAPH_TRAIN, HD_GRAPH_VALID, HD_GRAPH_TEST };
	const struct graph_set *s = (const struct graph_set *)set;
	const struct hd_prepared *g = &s->graph;
	int32_t *number = out[NUMBER];
	float *degrees = out[DEGREES];

	(void)diag;
	read_features(g, index, out[X]);
	*(int32_t *)out[Y] = hd_prepared_mask(g->mask, index) == masks[split] ? g->label[index] : -1;
	memcpy(out[FROM], s->from + index * s->slots, s->slots * sizeof *s->from);
	memcpy(out[TO], s->to + index * s->slots, s->slots * sizeof *s->to);
	for (uint64_t i = 0; i < s->slots; i++)
		number[i] = s->to[index * s->slots + i] < 0 ? -1 : (int32_t)(index * s->slots + i);
	degrees[0] = (float)g->in_degree[index] + 1.0f;
	degrees[1] = (float)g->out_degree[index] + 1.0f;
	return HD_OK;
}

const struct hd_reader_ops hd_reader_graph = {
	.name = "graph", .about = "a graph that heddle data prepare-graph has written; a sample is a vertex",
	.open = graph_open, .read = graph_read, .destroy = hd_reader_destroy,
};
