/* The prepared graph's file: sections, their digests, the head last. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "gnn/prepare_int.h"

enum { BUFFER = 1 << 16 };

/* Bytes of one section, one behind the other. */
struct section {
	const struct hd_file *file;
	uint64_t at;                      /* in the file: of the first byte in the buffer */
	size_t n;
	uint8_t buffer[BUFFER];
};

struct graph_writing {
	struct hd_preparing *p;
	struct hd_map map;
	struct section *to, *also;        /* two sections can be written at a time */
	uint64_t *feature_offset;         /* by new number */
	uint32_t *row, row_cap;
};

static void begin(struct graph_writing *w, struct section *s, enum hd_prepared_section which)
{
	s->file = &w->p->output;
	s->at = w->p->head.section[which].offset;
	s->n = 0;
}

static enum hd_err flush(struct section *s, struct hd_diag *diag)
{
	enum hd_err err = s->n ? hd_file_pwrite(s->file, s->buffer, s->n, (int64_t)s->at, diag) : HD_OK;

	s->at += s->n;
	s->n = 0;
	return err;
}

static enum hd_err put(struct section *s, const void *bytes, size_t len, struct hd_diag *diag)
{
	const uint8_t *at = bytes;
	enum hd_err err = HD_OK;

	while (len && !err) {
		size_t n = len < BUFFER - s->n ? len : BUFFER - s->n;
		memcpy(s->buffer + s->n, at, n);
		s->n += n;
		at += n;
		len -= n;
		if (s->n == BUFFER)
			err = flush(s, diag);
	}
	return err;
}

static enum hd_err put_section(struct graph_writing *w, enum hd_prepared_section which, const void *bytes,
	size_t len)
{
	begin(w, w->to, which);
	enum hd_err err = put(w->to, bytes, len, w->p->diag);

	return err ? err : flush(w->to, w->p->diag);
}

/* ---- edges */

static int ascending(const void *a, const void *b)
{
	uint32_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return x < y ? -1 : x > y;
}

/* The row of new number v, in new numbers, ascending. */
static enum hd_err renumbered(struct graph_writing *w, uint64_t v, uint32_t *n)
{
	struct hd_edges in = hd_rows_edges(&w->p->in);
	uint32_t old = w->p->order[v], len = (uint32_t)(in.offset[old + 1ull] - in.offset[old]);
	enum hd_err err = hd_grow(&w->row, &w->row_cap, (uint64_t)len + 1, sizeof *w->row, "edges of a "
		"vertex",
		w->p->diag);

	if (err)
		return err;
	for (uint32_t i = 0; i < len; i++)
		w->row[i] = w->p->renumber[in.at[in.offset[old] + i]];
	qsort(w->row, len, sizeof *w->row, ascending);
	*n = len;
	return HD_OK;
}

static enum hd_err write_in(struct graph_writing *w)
{
	uint64_t n = w->p->head.nvertices, offset = 0;
	enum hd_err err;

	begin(w, w->to, HD_PREPARED_IN_OFFSETS);
	begin(w, w->also, HD_PREPARED_IN_SOURCES);
	err = put(w->to, &offset, sizeof offset, w->p->diag);
	for (uint64_t v = 0; v < n && !err; v++) {
		uint32_t len = 0;
		err = renumbered(w, v, &len);
		offset += len;
		if (!err)
			err = put(w->to, &offset, sizeof offset, w->p->diag);
		if (!err)
			err = put(w->also, w->row, len * sizeof *w->row, w->p->diag);
		if (v % HD_PREPARE_OFTEN == 0)
			hd_prepare_say(w->p, "edges written", offset, w->p->head.nedges);
	}
	if (!err)
		err = flush(w->to, w->p->diag);
	return err ? err : flush(w->also, w->p->diag);
}

static enum hd_err sort_out(struct graph_writing *w, struct hd_pair_sort *sort)
{
	uint64_t n = w->p->head.nvertices;
	enum hd_err err = HD_OK;

	for (uint64_t v = 0; v < n && !err; v++) {
		struct hd_edges in = hd_rows_edges(&w->p->in);
		for (uint64_t e = in.offset[v]; e < in.offset[v + 1] && !err; e++)
			err = hd_pair_sort_add(sort, w->p->renumber[in.at[e]], w->p->renumber[v], w->p->diag);
	}
	return err;
}

static enum hd_err take_out(struct graph_writing *w, struct hd_pair_sort *sort)
{
	uint64_t n = w->p->head.nvertices, offset = 0, filled = 0;
	uint32_t from, to;
	bool more = true;
	enum hd_err err = HD_OK;

	begin(w, w->to, HD_PREPARED_OUT_OFFSETS);
	begin(w, w->also, HD_PREPARED_OUT_TARGETS);
	while (!err && !(err = hd_pair_sort_next(sort, &from, &to, &more, w->p->diag)) && more) {
		for (; filled <= from && !err; filled++)
			err = put(w->to, &offset, sizeof offset, w->p->diag);
		if (!err)
			err = put(w->also, &to, sizeof to, w->p->diag);
		offset++;
	}
	for (; filled <= n && !err; filled++)
		err = put(w->to, &offset, sizeof offset, w->p->diag);
	if (!err)
		err = flush(w->to, w->p->diag);
	return err ? err : flush(w->also, w->p->diag);
}

static enum hd_err write_out(struct graph_writing *w)
{
	struct hd_pair_sort sort;
	char path[HD_PATH_CAP];
	enum hd_err err = hd_prepare_path(path, w->p->how->out, ".tmp.sort", w->p->diag);

	if (!err)
		err = hd_pair_sort_init(&sort, w->p->fs, path, w->p->how->memory_bytes, w->p->diag);
	if (err)
		return err;
	err = sort_out(w, &sort);
	if (!err)
		err = take_out(w, &sort);
	w->p->scratch_bytes += sort.nruns ? sort.written * sizeof *sort.word : 0;
	hd_pair_sort_end(&sort);
	return err;
}

static const uint64_t *offsets_at(const struct graph_writing *w, enum hd_prepared_section s)
{
	return (const uint64_t *)(const void *)(w->map.bytes + w->p->head.section[s].offset);
}

static const uint32_t *words_at(const struct graph_writing *w, enum hd_prepared_section s)
{
	return (const uint32_t *)(const void *)(w->map.bytes + w->p->head.section[s].offset);
}

static enum hd_err write_degrees(struct graph_writing *w, enum hd_prepared_section offsets,
	enum hd_prepared_section degrees)
{
	const uint64_t *offset = offsets_at(w, offsets);
	enum hd_err err = HD_OK;

	begin(w, w->to, degrees);
	for (uint64_t v = 0; v < w->p->head.nvertices && !err; v++) {
		uint32_t degree = (uint32_t)(offset[v + 1] - offset[v]);
		err = put(w->to, &degree, sizeof degree, w->p->diag);
	}
	return err ? err : flush(w->to, w->p->diag);
}

/* ---- halo lists: made twice, first for their sizes */

static enum hd_err each_halo(struct graph_writing *w, struct hd_edges edges, enum hd_prepared_section offsets,
	bool write)
{
	enum hd_prepared_section lists = offsets + 1, bytes = offsets + 2;
	struct hd_prepared_head *head = &w->p->head;
	uint64_t nlists = 0, nbytes = 0, *offset = hd_alloc((head->nintervals + 1ull) * sizeof *offset);
	struct hd_halo_made made = { 0 };
	enum hd_err err = offset ? HD_OK : hd_fail(w->p->diag, HD_E_NOMEM, "no memory for halo lists");

	begin(w, w->to, lists);
	begin(w, w->also, bytes);
	for (uint32_t i = 0; i < head->nintervals && !err; i++) {
		err = hd_halo_make(w->p->bound, head->nintervals, edges, i, &made, w->p->diag);
		for (uint32_t l = 0; l < made.nlists; l++)
			made.list[l].at += nbytes;
		offset[i] = nlists;
		nlists += made.nlists;
		nbytes += made.nbytes;
		if (!err && write)
			err = put(w->to, made.list, made.nlists * sizeof *made.list, w->p->diag);
		if (!err && write)
			err = put(w->also, made.bytes, made.nbytes, w->p->diag);
		hd_prepare_say(w->p, write ? "halo lists written" : "halo lists", i + 1ull, head->nintervals);
	}
	hd_halo_free(&made);
	if (!err && write && !(err = flush(w->to, w->p->diag)) && !(err = flush(w->also, w->p->diag))) {
		offset[head->nintervals] = nlists;
		err = put_section(w, offsets, offset, (head->nintervals + 1ull) * sizeof *offset);
	}
	head->section[lists].bytes = nlists * sizeof *made.list;
	head->section[bytes].bytes = nbytes;
	hd_free(offset);
	return err;
}

static enum hd_err write_halo(struct graph_writing *w)
{
	bool directed = w->p->head.directed;
	struct hd_edges in = { offsets_at(w, HD_PREPARED_IN_OFFSETS), words_at(w, HD_PREPARED_IN_SOURCES) },
		out = in;
	enum hd_err err;

	if (directed)
		out = (struct hd_edges){ offsets_at(w, HD_PREPARED_OUT_OFFSETS),
			words_at(w, HD_PREPARED_OUT_TARGETS) };
	for (int write = 0; write <= 1; write++) {
		if ((err = each_halo(w, out, HD_PREPARED_HALO_OFFSETS, write)) ||
			(directed && (err = each_halo(w, in, HD_PREPARED_BACK_OFFSETS, write))))
			return err;
		if (!write && !hd_prepared_place(&w->p->head))
			return hd_fail(w->p->diag, HD_E_INPUT, "the graph is too large for a file");
	}
	return HD_OK;
}

/* ---- features */

static enum hd_err write_feature_offsets(struct graph_writing *w)
{
	struct hd_preparing *p = w->p;
	uint64_t n = p->head.nvertices, at = 0;

	if (!(w->feature_offset = hd_alloc((n + 1) * sizeof *w->feature_offset)))
		return hd_fail(p->diag, HD_E_NOMEM, "no memory for the features of %llu vertices",
			(unsigned long long)n);
	for (uint64_t v = 0; v < n; v++) {
		w->feature_offset[v] = at;
		at += p->nfeatures[p->order[v]];
	}
	w->feature_offset[n] = at;
	return p->head.sparse ? put_section(w, HD_PREPARED_FEATURE_OFFSETS, w->feature_offset,
		(n + 1) * sizeof *w->feature_offset) : HD_OK;
}

static enum hd_err changed(const struct hd_preparing *p, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INTEGRITY, "%s was changed while it was read: start again",
		p->features.name);
}

static enum hd_err write_features_of(void *user, const struct hd_vertex_row *row, struct hd_diag *diag)
{
	struct graph_writing *w = user;
	const struct hd_preparing *p = w->p;
	enum hd_err err = HD_OK;

	if (row->vertex >= p->head.nvertices || row->n != p->nfeatures[row->vertex])
		return changed(p, diag);
	uint64_t at = w->feature_offset[p->renumber[row->vertex]] * sizeof *row->value;
	if (row->column && row->n)
		err = hd_file_pwrite(&w->p->output, row->column, row->n * sizeof *row->column,
			(int64_t)(p->head.section[HD_PREPARED_FEATURE_COLUMNS].offset + at), diag);
	if (!err && row->n)
		err = hd_file_pwrite(&w->p->output, row->value, row->n * sizeof *row->value,
			(int64_t)(p->head.section[HD_PREPARED_FEATURES].offset + at), diag);
	if (row->vertex % HD_PREPARE_OFTEN == 0)
		hd_prepare_say(p, "features written", row->vertex, p->head.nvertices);
	return err;
}

static enum hd_err write_features(struct graph_writing *w)
{
	struct hd_vertex_sink sink = { w, write_features_of };
	enum hd_err err = write_feature_offsets(w);

	if (!err)
		err = hd_graph_vertices(&w->p->features, &sink, w->p->diag);
	if (!err && hd_prepare_digest(&w->p->features) != w->p->features_digest)
		err = changed(w->p, w->p->diag);
	return err;
}

/* ---- labels, masks, ids */

static enum hd_err write_vertices(struct graph_writing *w)
{
	struct hd_preparing *p = w->p;
	uint64_t n = p->head.nvertices;
	enum hd_err err = HD_OK;

	begin(w, w->to, HD_PREPARED_LABELS);
	begin(w, w->also, HD_PREPARED_MASKS);
	for (uint64_t v = 0; v < n && !err; v += 4) {
		uint8_t four = 0;
		for (uint64_t i = v; i < v + 4 && i < n && !err; i++) {
			four |= (uint8_t)(p->mask[p->order[i]] << i % 4 * 2);
			err = put(w->to, &p->label[p->order[i]], sizeof *p->label, p->diag);
		}
		if (!err)
			err = put(w->also, &four, sizeof four, p->diag);
	}
	if (!err)
		err = flush(w->to, p->diag);
	if (!err)
		err = flush(w->also, p->diag);
	return err ? err : put_section(w, HD_PREPARED_IDS, p->order, n * sizeof *p->order);
}

/* ---- the file */

static enum hd_err remap(struct graph_writing *w)
{
	hd_file_unmap(w->p->fs, &w->map);
	w->map = (struct hd_map){ 0 };
	return hd_file_map(&w->p->output, &w->map, w->p->diag);
}

/* All but the halo lists have their size from the start. */
static enum hd_err place(struct graph_writing *w)
{
	struct hd_prepared_head *head = &w->p->head;
	uint64_t nfeatures = 0, bytes[HD_PREPARED_NSECTIONS];

	for (uint64_t v = 0; v < head->nvertices; v++)
		nfeatures += w->p->nfeatures[v];
	head->section[HD_PREPARED_FEATURES].bytes = nfeatures * sizeof(float);
	if (!hd_prepared_sizes(head, bytes))
		return hd_fail(w->p->diag, HD_E_INPUT, "the graph is too large for a file");
	for (int s = 0; s < HD_PREPARED_NSECTIONS; s++)
		head->section[s].bytes = bytes[s];
	if (!hd_prepared_place(head))
		return hd_fail(w->p->diag, HD_E_INPUT, "the graph is too large for a file");
	enum hd_err err = hd_fs_has_space(w->p->fs, w->p->temporary, head->file_bytes, "the prepared graph",
		w->p->diag);
	return err ? err : hd_file_truncate(&w->p->output, (int64_t)head->file_bytes, w->p->diag);
}

static enum hd_err finish(struct graph_writing *w)
{
	struct hd_prepared_head *head = &w->p->head;
	uint8_t bytes[HD_PREPARED_HEAD];
	enum hd_err err = hd_file_truncate(&w->p->output, (int64_t)head->file_bytes, w->p->diag);

	if (!err)
		err = remap(w);
	for (int s = 0; s < HD_PREPARED_NSECTIONS && !err; s++) {
		uint64_t len = head->section[s].bytes;
		head->section[s].digest = len ? hd_hash64(w->map.bytes + head->section[s].offset, len) : 0;
		hd_prepare_say(w->p, "digests", (uint64_t)s + 1, HD_PREPARED_NSECTIONS);
	}
	if (err)
		return err;
	hd_prepared_put_head(head, bytes);
	err = hd_file_pwrite(&w->p->output, bytes, sizeof bytes, 0, w->p->diag);
	return err ? err : hd_file_sync(&w->p->output, w->p->diag);
}

static enum hd_err write_all(struct graph_writing *w)
{
	struct hd_preparing *p = w->p;
	enum hd_err err;

	if ((err = place(w)) ||
		(err = put_section(w, HD_PREPARED_INTERVALS, p->bound,
			(p->head.nintervals + 1ull) * sizeof *p->bound)) ||
		(err = write_in(w)) || (p->head.directed && (err = write_out(w))) || (err = remap(w)) ||
		(err = write_degrees(w, HD_PREPARED_IN_OFFSETS, HD_PREPARED_IN_DEGREES)) ||
		(p->head.directed && (err = write_degrees(w, HD_PREPARED_OUT_OFFSETS,
		HD_PREPARED_OUT_DEGREES))) ||
		(err = write_halo(w)) || (err = write_features(w)) || (err = write_vertices(w)))
		return err;
	return finish(w);
}

enum hd_err hd_prepare_write(struct hd_preparing *p)
{
	struct graph_writing w = { .p = p, .to = hd_alloc(sizeof *w.to), .also = hd_alloc(sizeof *w.also) };
	enum hd_err err = w.to && w.also ? write_all(&w) : hd_fail(p->diag, HD_E_NOMEM,
		"no memory to write a graph");

	hd_file_unmap(p->fs, &w.map);
	if (!err)
		err = hd_fs_rename(p->fs, p->temporary, p->how->out, p->diag);
	if (!err)
		p->taken = false;
	hd_free(w.to);
	hd_free(w.also);
	hd_free(w.feature_offset);
	hd_free(w.row);
	return err;
}
