/* Vertices, edges and sets, in ids of the input. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "gnn/prepare_int.h"

/* ---- vertices: how many, how wide, which labels */

static enum hd_err see_vertex(void *user, const struct hd_vertex_row *row, struct hd_diag *diag)
{
	struct hd_preparing *p = user;
	uint64_t n = row->vertex + 1;
	enum hd_err err = hd_grow(&p->label, &p->labels_cap, n, sizeof *p->label, "labels", diag);

	if (!err)
		err = hd_grow(&p->nfeatures, &p->nfeatures_cap, n, sizeof *p->nfeatures, "vertices", diag);
	if (err)
		return err;
	p->head.nvertices = n;
	p->label[row->vertex] = row->label;
	p->nfeatures[row->vertex] = row->n;
	if (row->column)
		p->head.sparse = true;
	uint32_t width = row->column && row->n ? row->column[row->n - 1] + 1 : row->n;
	width = row->width > width ? row->width : width;
	if (width > p->head.width)
		p->head.width = width;
	if (n % HD_PREPARE_OFTEN == 0)
		hd_prepare_say(p, "vertices", n, 0);
	return HD_OK;
}

static enum hd_err check_labels(struct hd_preparing *p, const char *name)
{
	int32_t most = -1;

	for (uint64_t v = 0; v < p->head.nvertices; v++) {
		if (p->label[v] > most)
			most = p->label[v];
		if (p->how->nclasses && p->label[v] >= 0 && (uint32_t)p->label[v] >= p->how->nclasses)
			return hd_fail(p->diag, HD_E_INPUT, "%s:%llu: label %d, of %u classes: labels are "
				"0 to %u, or "
				"-1 for none", name, (unsigned long long)v + 1, (int)p->label[v],
				p->how->nclasses, p->how->nclasses - 1);
	}
	p->head.nclasses = p->how->nclasses ? p->how->nclasses : (uint32_t)(most + 1);
	return most >= 0 ? HD_OK : hd_fail(p->diag, HD_E_INPUT, "%s: no vertex has a label: there is "
		"nothing to train on%s", name, p->how->labels ? "" :
		"; --labels FILE gives labels to features without");
}

static enum hd_err read_labels(struct hd_preparing *p)
{
	struct hd_graph_input input = { 0 };
	const char *path = p->how->labels;
	enum hd_err err;

	if (!path && hd_graph_is_folder(p->fs, p->how->features))
		path = p->how->features;
	if (!path)
		return check_labels(p, p->features.name);
	err = hd_graph_input_open(&input, p->fs, path, HD_GRAPH_IS_LABELS, p->diag);
	if (!err)
		err = hd_graph_labels(&input, p->head.nvertices, p->label, p->diag);
	if (!err)
		err = check_labels(p, input.name);
	hd_graph_input_close(&input);
	return err;
}

static enum hd_err read_vertices(struct hd_preparing *p)
{
	struct hd_vertex_sink sink = { p, see_vertex };
	enum hd_err err = hd_graph_input_open(&p->features, p->fs, p->how->features,
		HD_GRAPH_IS_FEATURES, p->diag);

	if (!err) {
		p->features_digest = hd_prepare_digest(&p->features);
		err = hd_graph_vertices(&p->features, &sink, p->diag);
	}
	if (!err && !p->head.width)
		err = hd_fail(p->diag, HD_E_INPUT, "%s: no vertex has a feature", p->how->features);
	return err ? err : read_labels(p);
}

/* ---- sets */

static enum hd_err read_sets(struct hd_preparing *p)
{
	uint64_t ntrain = 0;
	enum hd_err err;

	if (!(p->mask = hd_alloc(p->head.nvertices)))
		return hd_fail(p->diag, HD_E_NOMEM, "no memory for the sets of %llu vertices",
			(unsigned long long)p->head.nvertices);
	memset(p->mask, 0, p->head.nvertices);
	err = hd_graph_sets(p->fs, p->how->split, p->head.nvertices, p->mask, p->diag);
	for (uint64_t v = 0; v < p->head.nvertices && !err; v++)
		ntrain += p->mask[v] == HD_GRAPH_TRAIN && p->label[v] >= 0;
	if (!err && !ntrain)
		err = hd_fail(p->diag, HD_E_INPUT, "%s: no vertex of the training set has a label: there "
			"is nothing "
			"to train on", p->how->split);
	return err;
}

/* ---- edges */

struct edges { struct hd_preparing *p; struct hd_pair_sort in, both; uint64_t nseen; };

static enum hd_err add(struct edges *e, uint32_t from, uint32_t to, struct hd_diag *diag)
{
	enum hd_err err = hd_pair_sort_add(&e->in, to, from, diag);

	if (err || !e->p->how->directed)
		return err;
	err = hd_pair_sort_add(&e->both, to, from, diag);
	return err ? err : hd_pair_sort_add(&e->both, from, to, diag);
}

static enum hd_err see_edge(void *user, uint32_t from, uint32_t to, bool both, struct hd_diag *diag)
{
	struct edges *e = user;
	enum hd_err err;

	if (++e->nseen % HD_PREPARE_OFTEN == 0)
		hd_prepare_say(e->p, "edges", e->nseen, 0);
	if (from == to) {
		e->p->head.nloops++;
		return HD_OK;
	}
	err = add(e, from, to, diag);
	return !err && (both || !e->p->how->directed) ? add(e, to, from, diag) : err;
}

enum { WORDS = 1 << 14 };                 /* of a buffer before they are written */

struct row_writer { struct hd_file file; uint32_t n, word[WORDS]; };

static enum hd_err flush(struct row_writer *w, struct hd_diag *diag)
{
	size_t bytes = w->n * sizeof *w->word;

	w->n = 0;
	return bytes ? hd_file_write(&w->file, w->word, bytes, diag) : HD_OK;
}

static enum hd_err take_rows(struct hd_preparing *p, struct hd_pair_sort *sort, struct hd_rows *rows,
	struct row_writer *w)
{
	uint64_t n = 0, nvertices = p->head.nvertices, filled = 0;
	uint32_t vertex, far;
	bool more;
	enum hd_err err;

	while (!(err = hd_pair_sort_next(sort, &vertex, &far, &more, p->diag)) && more) {
		while (filled <= vertex)
			rows->offset[filled++] = n;
		w->word[w->n++] = far;
		n++;
		if (w->n == WORDS && (err = flush(w, p->diag)))
			return err;
		if (n % HD_PREPARE_OFTEN == 0)
			hd_prepare_say(p, "edges sorted", n, sort->added);
	}
	while (filled <= nvertices)
		rows->offset[filled++] = n;
	return err ? err : flush(w, p->diag);
}

/* What the sort gives, as rows: far ends go to a file and are mapped. */
static enum hd_err make_rows(struct hd_preparing *p, struct hd_pair_sort *sort, const char *end,
	struct hd_rows *rows)
{
	struct row_writer *w = hd_alloc(sizeof *w);
	char path[HD_PATH_CAP];
	enum hd_err err = HD_OK;

	rows->offset = hd_alloc((p->head.nvertices + 1) * sizeof *rows->offset);
	if (!w || !rows->offset)
		err = hd_fail(p->diag, HD_E_NOMEM, "no memory for the edges of %llu vertices",
			(unsigned long long)p->head.nvertices);
	if (w)
		*w = (struct row_writer){ .n = 0 };
	if (!err)
		err = hd_prepare_path(path, p->how->out, end, p->diag);
	if (!err)
		err = hd_file_open(p->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE, &w->file,
			p->diag);
	if (!err)
		err = hd_fs_unlink(p->fs, path, p->diag);
	if (!err)
		err = take_rows(p, sort, rows, w);
	if (!err)
		err = hd_file_map(&w->file, &rows->map, p->diag);
	if (w && w->file.fs) {
		enum hd_err closed = hd_file_close(&w->file, err ? NULL : p->diag);
		err = err ? err : closed;
	}
	p->scratch_bytes += sort->nruns ? sort->written * sizeof *sort->word : 0;
	hd_free(w);
	return err;
}

void hd_rows_free(struct hd_rows *rows, struct hd_fs *fs)
{
	hd_file_unmap(fs, &rows->map);
	hd_free(rows->offset);
	*rows = (struct hd_rows){ 0 };
}

static enum hd_err sort_edges(struct hd_preparing *p, struct edges *e, char path[2][HD_PATH_CAP])
{
	struct hd_edge_sink sink = { e, see_edge };
	struct hd_graph_input input = { 0 };
	uint64_t memory = p->how->directed ? p->how->memory_bytes / 2 : p->how->memory_bytes;
	enum hd_err err;

	if (memory < HD_PAIR_SORT_LEAST)
		memory = HD_PAIR_SORT_LEAST;
	if ((err = hd_prepare_path(path[0], p->how->out, ".tmp.sort", p->diag)) ||
		(err = hd_prepare_path(path[1], p->how->out, ".tmp.sort2", p->diag)) ||
		(err = hd_pair_sort_init(&e->in, p->fs, path[0], memory, p->diag)) ||
		(err = hd_pair_sort_init(&e->both, p->fs, path[1], memory, p->diag)))
		return err;
	err = hd_graph_input_open(&input, p->fs, p->how->edges, HD_GRAPH_IS_EDGES, p->diag);
	if (!err)
		err = hd_graph_edges(&input, p->head.nvertices, &sink, p->diag);
	hd_graph_input_close(&input);
	if (!err)
		err = make_rows(p, &e->in, ".tmp.in", &p->in);
	return err || !p->how->directed ? err : make_rows(p, &e->both, ".tmp.both", &p->both);
}

static enum hd_err read_edges(struct hd_preparing *p)
{
	struct edges e = { .p = p };
	char path[2][HD_PATH_CAP];
	uint64_t n = p->head.nvertices;
	enum hd_err err = sort_edges(p, &e, path);

	if (!err) {
		p->head.nedges = p->in.offset[n];
		p->head.nduplicates = (e.in.added - p->head.nedges) / (p->how->directed ? 1 : 2);
		if (!(p->weight = hd_alloc(n * sizeof *p->weight)))
			err = hd_fail(p->diag, HD_E_NOMEM, "no memory for the degrees of %llu vertices",
				(unsigned long long)n);
	}
	for (uint64_t v = 0; v < n && !err; v++)
		p->weight[v] = (uint32_t)(p->in.offset[v + 1] - p->in.offset[v]);
	hd_pair_sort_end(&e.in);
	hd_pair_sort_end(&e.both);
	return err;
}

enum hd_err hd_prepare_read(struct hd_preparing *p)
{
	enum hd_err err = read_vertices(p);

	if (!err)
		err = hd_prepare_check(p);
	if (!err)
		err = read_sets(p);
	return err ? err : read_edges(p);
}
