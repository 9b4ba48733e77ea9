/* A prepared graph as a set whose samples are its vertices, in the order of the file. The splits have the
 * same vertices, all of them, and different labels: those of a split's own vertices, -1 elsewhere; a split
 * none of whose vertices has a label is empty. Edges are lists of `slots` places a vertex
 * (graph/ops/edge_pair.inc.h), sorted by target, then source, with one from each vertex to itself; what is
 * left over at the end holds -1. */
#include "data/prepared.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "data/reader_int.h"

enum field { X, Y, FROM, TO, NUMBER, DEGREES };
static const struct { const char *name; enum hd_graph_mask mask; } splits[] = {
	{ "train", HD_GRAPH_TRAIN }, { "valid", HD_GRAPH_VALID }, { "test", HD_GRAPH_TEST },
};

struct graph_set {
	struct hd_reader reader;
	struct hd_prepared graph;
	uint64_t slots;
	int32_t *from, *to;               /* [vertices * slots] */
};

/* The map is of a file that others may write to, though it was checked. */
static enum hd_err changed(const struct graph_set *set, enum hd_prepared_section section, uint64_t vertex,
	struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INTEGRITY,
		"%s was changed while it is in use: section \"%s\", vertex %" PRIu64,
		set->reader.source[0].name, hd_prepared_section_text(section), vertex);
}

/* Sources ascend; the vertex itself comes where it would stand among them. */
static enum hd_err list_edges(struct graph_set *set, struct hd_diag *diag)
{
	const struct hd_prepared *g = &set->graph;
	uint64_t n = 0;

	for (uint64_t v = 0; v < g->head.nvertices; v++) {
		uint64_t e = g->in.offset[v], end = g->in.offset[v + 1];
		if (e > end || end > g->head.nedges || n + (end - e) + 1 > g->head.nvertices * set->slots)
			return changed(set, HD_PREPARED_IN_OFFSETS, v, diag);
		for (bool self = false; e < end || !self; n++) {
			bool now = !self && (e == end || g->in.at[e] > v);
			set->to[n] = (int32_t)v;
			set->from[n] = now ? (int32_t)v : (int32_t)g->in.at[e++];
			self |= now;
		}
	}
	for (; n < g->head.nvertices * set->slots; n++)
		set->from[n] = set->to[n] = -1;
	return HD_OK;
}

/* A set that no labelled vertex is in has no samples: its loss would be that of nothing. */
static void add_splits(struct hd_reader *r, const struct hd_prepared *g)
{
	uint64_t labelled[4] = { 0 };

	for (uint64_t v = 0; v < g->head.nvertices; v++)
		labelled[hd_prepared_mask(g->mask, v)] += g->label[v] >= 0;
	for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
		(void)hd_split_add(r, splits[i].name, 0, labelled[splits[i].mask] ? g->head.nvertices : 0);
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
	if ((err = list_edges(set, diag)) || (err = add_fields(set, spec, r->source[0].name, diag)))
		return err;
	r->set.count = head->nvertices;
	add_splits(r, &set->graph);
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

static enum hd_err read_features(const struct graph_set *set, uint64_t v, float *out, struct hd_diag *diag)
{
	const struct hd_prepared *g = &set->graph;
	const uint32_t width = g->head.width;

	if (!g->feature_offset) {
		memcpy(out, g->feature + v * width, width * sizeof *out);
		return HD_OK;
	}
	memset(out, 0, width * sizeof *out);
	uint64_t e = g->feature_offset[v], end = g->feature_offset[v + 1];
	if (end > g->head.section[HD_PREPARED_FEATURES].bytes / sizeof *out)
		return changed(set, HD_PREPARED_FEATURE_OFFSETS, v, diag);
	for (; e < end; e++) {
		uint32_t column = g->feature_column[e];
		if (column >= width)
			return changed(set, HD_PREPARED_FEATURE_COLUMNS, v, diag);
		out[column] = g->feature[e];
	}
	return HD_OK;
}

static enum hd_err graph_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	const struct graph_set *s = (const struct graph_set *)set;
	const struct hd_prepared *g = &s->graph;
	int32_t *number = out[NUMBER];
	float *degrees = out[DEGREES];
	const int32_t label = g->label[index];
	enum hd_err err = read_features(s, index, out[X], diag);

	if (err)
		return err;
	if (label < -1 || label >= (int32_t)g->head.nclasses)
		return changed(s, HD_PREPARED_LABELS, index, diag);
	*(int32_t *)out[Y] = hd_prepared_mask(g->mask, index) == splits[split].mask ? label : -1;
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
