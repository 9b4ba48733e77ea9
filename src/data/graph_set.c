/* A prepared graph as a set whose samples are its rows (graph_layout.h): its vertices in the order of the
 * file, and where it is in several virtual nodes what is left over in the shorter ones. The splits have the
 * same rows, all of them, and different labels: those of a split's own vertices, -1 elsewhere; a split
 * none of whose vertices has a label is empty. Edges are lists of `slots` places a row
 * (graph/ops/edge_pair.inc.h), sorted by target, then source, with one from each vertex to itself; what is
 * left over at the end holds -1. `from` and `to` name rows of the graph; several virtual nodes have further
 * lists, each of its own edges. */
#include "data/graph_layout.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "data/reader_int.h"

enum field { X, Y, FROM, TO, NUMBER, DEGREES, PARTS };
static const struct { const char *name; enum hd_graph_mask mask; } splits[] = {
	{ "train", HD_GRAPH_TRAIN }, { "valid", HD_GRAPH_VALID }, { "test", HD_GRAPH_TEST },
};

struct graph_set {
	struct hd_reader reader;
	struct hd_prepared graph;
	struct hd_graph_layout layout;
	uint64_t rows, slots;             /* of all virtual nodes; places a row */
	int32_t *from, *to;               /* [rows * slots] */
	struct hd_graph_ends in, out;     /* of several virtual nodes */
};

/* The lists of a virtual node: a field each, from PARTS on. */
enum { NPARTS = 8 };
static const char *const part_names[NPARTS] = { "far", "near", "ghosts", "part_number", "back_far",
	"back_near", "back_ghosts", "back_number" };
struct graph_part { const int32_t *at; uint64_t places; };

static void parts_of(const struct graph_set *set, struct graph_part part[NPARTS])
{
	for (int k = 0; k < 2; k++) {
		const struct hd_graph_ends *e = k ? &set->out : &set->in;
		part[4 * k] = (struct graph_part){ e->far, e->edges };
		part[4 * k + 1] = (struct graph_part){ e->near, e->edges };
		part[4 * k + 2] = (struct graph_part){ e->ghost, e->ghosts };
		part[4 * k + 3] = (struct graph_part){ e->number, e->edges };
	}
}

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
		if (e > end || end > g->head.nedges || n + (end - e) + 1 > set->rows * set->slots)
			return changed(set, HD_PREPARED_IN_OFFSETS, v, diag);
		const int32_t own = (int32_t)hd_graph_layout_row(&set->layout, v);
		for (bool self = false; e < end || !self; n++) {
			bool now = !self && (e == end || g->in.at[e] > v);
			set->to[n] = own;
			set->from[n] = now ? own : (int32_t)hd_graph_layout_row(&set->layout, g->in.at[e]);
			e += !now;
			self |= now;
		}
	}
	for (; n < set->rows * set->slots; n++)
		set->from[n] = set->to[n] = -1;
	return HD_OK;
}

/* A set that no labelled vertex is in has no samples: its loss would be that of nothing. */
static void add_splits(struct hd_reader *r, const struct graph_set *set)
{
	const struct hd_prepared *g = &set->graph;
	uint64_t labelled[4] = { 0 };

	for (uint64_t v = 0; v < g->head.nvertices; v++)
		labelled[hd_prepared_mask(g->mask, v)] += g->label[v] >= 0;
	for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
		(void)hd_split_add(r, splits[i].name, 0, labelled[splits[i].mask] ? set->rows : 0);
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
	err = err ? err : hd_field_add(r, "degrees", HD_F32, 1, &two, diag);
	struct graph_part part[NPARTS];
	parts_of(set, part);
	for (int k = 0; k < NPARTS && !err && set->layout.n > 1; k++) {
		err = hd_field_add(r, part_names[k], HD_I32, 1, &(int64_t){ (int64_t)part[k].places }, diag);
		if (!err)
			r->set.field[PARTS + k].all = part[k].at;
	}
	return err;
}

/* Edges as the whole graph has them, and as each of several virtual nodes does. */
static enum hd_err take_edges(struct graph_set *set, const char *name, struct hd_diag *diag)
{
	const struct hd_prepared_head *head = &set->graph.head;
	struct hd_arena *arena = &set->reader.arena;
	uint64_t places;

	/* of a graph's vertices, so that it is the same for any number of virtual nodes */
	set->slots = (head->nedges + head->nvertices + head->nvertices - 1) / head->nvertices;
	if (!hd_mul_u64(set->rows, set->slots, &places) || places > INT32_MAX)
		return hd_fail(diag, HD_E_REFUSED, "%s has %" PRIu64 " edges: one interval takes %d at most",
			name,
			head->nedges, INT32_MAX);
	set->from = hd_arena_take(arena, places, sizeof *set->from);
	set->to = hd_arena_take(arena, places, sizeof *set->to);
	if (!set->from || !set->to)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %" PRIu64 " edges", places);
	enum hd_err err = list_edges(set, diag);
	if (!err && set->layout.n > 1)
		err = hd_graph_ends_make(&set->layout, false, &set->in, arena, diag);
	if (!err && set->layout.n > 1)
		err = hd_graph_ends_make(&set->layout, true, &set->out, arena, diag);
	return err;
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
	err = hd_graph_layout_make(&set->layout, &set->graph, r->source[0].name,
		spec->intervals ? spec->intervals : 1, &r->arena, diag);
	set->rows = set->layout.n * set->layout.rows;
	err = err ? err : take_edges(set, r->source[0].name, diag);
	err = err ? err : add_fields(set, spec, r->source[0].name, diag);
	if (err)
		return err;
	r->set.count = set->rows;
	add_splits(r, set);
	r->set.hash = hd_sources_hash(r);
	r->set.at_hand = true;
	r->set.table_bytes = r->arena.used_bytes;
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

/* A row without a vertex reads and is read by none. */
static enum hd_err read_vertex(const struct graph_set *s, uint32_t split, uint64_t v, void *const *out,
	struct hd_diag *diag)
{
	const struct hd_prepared *g = &s->graph;
	const bool none = v == g->head.nvertices;
	const int32_t label = none ? -1 : g->label[v];
	float *degrees = out[DEGREES];

	if (none)
		memset(out[X], 0, g->head.width * sizeof(float));
	enum hd_err err = none ? HD_OK : read_features(s, v, out[X], diag);
	if (err)
		return err;
	if (label < -1 || label >= (int32_t)g->head.nclasses)
		return changed(s, HD_PREPARED_LABELS, v, diag);
	*(int32_t *)out[Y] = !none && hd_prepared_mask(g->mask, v) == splits[split].mask ? label : -1;
	degrees[0] = (none ? 0.0f : (float)g->in_degree[v]) + 1.0f;
	degrees[1] = (none ? 0.0f : (float)g->out_degree[v]) + 1.0f;
	return HD_OK;
}

static enum hd_err graph_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	const struct graph_set *s = (const struct graph_set *)set;
	int32_t *number = out[NUMBER];
	struct graph_part part[NPARTS];
	enum hd_err err = read_vertex(s, split, hd_graph_layout_vertex(&s->layout, index), out, diag);

	if (err)
		return err;
	memcpy(out[FROM], s->from + index * s->slots, s->slots * sizeof *s->from);
	memcpy(out[TO], s->to + index * s->slots, s->slots * sizeof *s->to);
	for (uint64_t i = 0; i < s->slots; i++)
		number[i] = s->to[index * s->slots + i] < 0 ? -1 : (int32_t)(index * s->slots + i);
	parts_of(s, part);
	for (int k = 0; k < NPARTS && s->layout.n > 1; k++)
		memcpy(out[PARTS + k], part[k].at + index * part[k].places,
			part[k].places * sizeof *part[k].at);
	return HD_OK;
}

const struct hd_reader_ops hd_reader_graph = {
	.name = "graph", .about = "a graph that heddle data prepare-graph has written; a sample is a vertex",
	.open = graph_open, .read = graph_read, .destroy = hd_reader_destroy,
};
