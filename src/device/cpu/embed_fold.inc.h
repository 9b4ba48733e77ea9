/* embed_fold.inc.h -- the gradient of a table of embeddings, summed over the parts of a wave row by
 * row: a part names few rows of the table, and its leaf is +0.0 everywhere else. One source for all
 * paths.
 *
 * 1. Bits are those of leaves made whole and moved one after the other. A leaf starts from +0.0, and a
 *    sum with that is never -0.0: neither a leaf nor a sum of leaves has one, and adding +0.0 to what is
 *    not -0.0 changes nothing. So a row that no position names is not added, and a pending row of zeros
 *    neither.
 * 2. A tile is some rows of the table with all columns. Where a part only adds its leaf, rows that it
 *    does not name are not touched. */
#ifndef HD_DEVICE_CPU_EMBED_FOLD_INC_H
#define HD_DEVICE_CPU_EMBED_FOLD_INC_H

#include "device/cpu/fold.inc.h"
#include "device/cpu/rows.inc.h"

enum { EMBED_FOLD_ELEMS = 65536, EMBED_FOLD_ENOUGH = 8 };          /* of a tile at most; tiles at least */

static inline bool embed_fold_takes(const struct hd_call *call) { (void)call; return true; }

/* Rows of a tile. */
static inline int64_t embed_fold_rows(const struct hd_call *call)
{
	int64_t rows = hd_rows(&call->out[0]), most = EMBED_FOLD_ELEMS / hd_cols(&call->out[0]);

	return min64(most > 0 ? most : 1, div_up(rows, EMBED_FOLD_ENOUGH));
}

static inline uint32_t embed_fold_ntiles(const struct hd_call *call)
{
	return (uint32_t)div_up(hd_rows(&call->out[0]), embed_fold_rows(call));
}

/* `head`: the first position that names a row, by row of the tile; `next`: by position, the one after it. -1:
 * none. `sum`: a row. */
struct embed_scratch { int32_t *head, *next; float *sum, *temp; int64_t len; };

static inline size_t embed_fold_place(const struct hd_call *call, uint32_t max_parts, float *from,
	struct embed_scratch *s)
{
	int64_t rows = embed_fold_rows(call), cols = hd_cols(&call->out[0]),
		len = round_up(rows * cols, HD_UNIT), head = round_up(rows, HD_UNIT),
		next = round_up((int64_t)call->in[1].elems, HD_UNIT),
		sum = round_up(cols, HD_UNIT);

	if (s)
		*s = (struct embed_scratch){ (int32_t *)(void *)from, (int32_t *)(void *)(from + head),
			from + head + next, from + head + next + sum, len };
	return (size_t)(head + next + sum + len * fold_temps(max_parts)) * sizeof(float);
}

static inline size_t embed_fold_scratch(const struct hd_call *call, uint32_t max_parts)
{
	return embed_fold_place(call, max_parts, NULL, NULL);
}

struct embed_tile {
	int64_t first, rows, cols;
	struct embed_scratch s;
	struct fold_site site;
	const float *dy;                  /* of the part at hand */
};

/* Lists the positions of each row in ascending order; is there any? */
static inline bool embed_list(const struct embed_tile *t, const int32_t *id, int64_t n)
{
	bool any = false;

	memset(t->s.head, 0xff, (size_t)t->rows * sizeof *t->s.head);
	for (int64_t at = n; at-- > 0; ) {
		int64_t row = id[at] - t->first;
		if (row < 0 || row >= t->rows)
			continue;
		t->s.next[at] = t->s.head[row];
		t->s.head[row] = (int32_t)at;
		any = true;
	}
	return any;
}

/* to = a + b; `to` may be either. NULL is a row of +0.0. */
HD_INLINE void embed_add(float *to, const float *a, const float *b, int64_t cols)
{
	const struct vf zero = vf_set(0.0f);

	HD_UNITS(i, len, (size_t)cols)
		vf_store_n(to + i, vf_add(a ? vf_load_n(a + i, len) : zero, vf_load_n(b + i, len)), len);
}

/* The leaf's row, or NULL where it is +0.0. */
static inline const float *embed_leaf(const struct embed_tile *t, int64_t row)
{
	const float *sum = NULL;

	for (int32_t at = t->s.head[row]; at >= 0; at = t->s.next[at]) {
		embed_add(t->s.sum, sum, t->dy + at * t->cols, t->cols);
		sum = t->s.sum;
	}
	return sum;
}

static inline bool embed_is_zero(const float *row, int64_t cols)
{
	struct vi any = vi_set(0);
	float lane[HD_UNIT];
	uint32_t bits[HD_UNIT], all = 0;

	HD_UNITS(i, len, (size_t)cols)
		any = vi_or(any, vf_bits(vf_load_n(row + i, len)));
	vf_store(lane, vi_float_of(any));
	memcpy(bits, lane, sizeof bits);
	for (int i = 0; i < HD_UNIT; i++)
		all |= bits[i];
	return all == 0;
}

/* `value` on its way along the moves of a part: what it is added to, and where it stays. Only the last buffer
 * keeps something. */
static inline void embed_row(const struct embed_tile *t, const struct hd_part *of, int64_t row)
{
	const float *value = embed_leaf(t, row);

	for (uint32_t k = 0; k < of->nfolds; k++) {
		const struct hd_fold *move = &of->fold[k];
		const struct rect r = fold_rect(&t->site, move->dst, move->dst_temp);
		const bool last = k + 1 == of->nfolds;
		float *dst = r.at + row * r.step;
		if (move->add && value) {
			embed_add(last ? dst : t->s.sum, dst, value, t->cols);
			value = last ? dst : t->s.sum;
		} else if (move->add && !last) {
			value = embed_is_zero(dst, t->cols) ? NULL : dst;
		} else if (!move->add && last && value) {
			memcpy(dst, value, (size_t)t->cols * sizeof *dst);
		} else if (!move->add && last) {
			memset(dst, 0, (size_t)t->cols * sizeof *dst);
		}
	}
}

static inline void embed_part(struct embed_tile *t, const struct hd_call *call, const struct hd_fold_job *job,
	uint32_t p)
{
	const struct hd_part *of = &job->part[p];
	const uint8_t *dy = call->in[0].at, *id = call->in[1].at;
	int64_t n = (int64_t)(call->in[1].elems / job->rows * of->rows);

	t->dy = (const float *)(const void *)(dy + job->step_bytes[0] * p);
	bool any = embed_list(t, (const int32_t *)(const void *)(id + job->step_bytes[1] * p), n);
	if (!any && of->nfolds == 1 && of->fold[0].add)
		return;
	for (int64_t row = 0; row < t->rows; row++)
		embed_row(t, of, row);
}

static inline void embed_fold_tile(const struct hd_call *call, const struct hd_fold_job *job, uint32_t tile,
	void *scratch)
{
	struct embed_tile t = { .rows = embed_fold_rows(call), .cols = hd_cols(&call->out[0]) };

	t.first = tile * t.rows;
	embed_fold_place(call, 1, scratch, &t.s);
	t.site = (struct fold_site){ (int64_t)job->at + t.first * t.cols, t.cols, t.s.temp, t.s.len, t.cols };
	t.rows = min64(t.rows, hd_rows(&call->out[0]) - t.first);
	for (uint32_t p = 0; p < job->nparts; p++)
		embed_part(&t, call, job, p);
}

#endif
