#include "device/edge_rows.h"

#include <string.h>

#include "graph/op.h"
#include "device/spmm_blocks.h"

enum { L2_BYTES = 2 << 20 };

static uint64_t offsets_bytes(const struct hd_edge_table *t) { return (t->nrows + 1) * sizeof *t->offset; }
static uint64_t list_bytes(const struct hd_edge_table *t)
{
	return (t->nedges * sizeof *t->at + 63) / 64 * 64;
}

static uint64_t cuts_bytes(const struct hd_edge_table *t)
{
	return t->nblocks > 1 ? (t->nblocks - 1) * t->nrows * sizeof *t->cut : 0;
}

uint64_t hd_edge_table_bytes(const struct hd_edge_table *t)
{
	return (offsets_bytes(t) + 63) / 64 * 64 + list_bytes(t) * (t->has_others ? 2 : 1) + cuts_bytes(t);
}

enum hd_err hd_edge_table_take(struct hd_edge_table *t, struct hd_diag *diag)
{
	enum hd_err err = hd_memory_take(hd_edge_table_bytes(t), HD_MEMORY_LAZY, &t->memory, diag);

	if (err)
		return err;
	t->offset = t->memory.at;
	t->order = (uint32_t *)((char *)t->memory.at + (offsets_bytes(t) + 63) / 64 * 64);
	t->at = t->has_others ? (uint32_t *)((char *)t->order + list_bytes(t)) : NULL;
	t->cut = (uint64_t *)((char *)t->order + list_bytes(t) * (t->has_others ? 2 : 1));
	return HD_OK;
}

void hd_edge_table_free(struct hd_edge_table *t)
{
	hd_memory_give(&t->memory);
	*t = (struct hd_edge_table){ 0 };
}

static bool is_row(int32_t end, uint64_t nrows) { return end >= 0 && (uint64_t)end < nrows; }

/* Offsets of the rows; do the ends ascend, with what is no row behind them? */
static bool count(struct hd_edge_table *t, const int32_t *ends)
{
	int64_t before = -1;
	bool ascends = true;

	memset(t->offset, 0, offsets_bytes(t));
	for (uint64_t e = 0; e < t->nedges; e++) {
		const bool row = is_row(ends[e], t->nrows);
		const int64_t now = row ? ends[e] : INT64_MAX;
		ascends &= now >= before;
		before = now;
		if (row)
			t->offset[ends[e] + 1]++;
	}
	for (uint64_t r = 0; r < t->nrows; r++)
		t->offset[r + 1] += t->offset[r];
	return ascends;
}

/* offset[r] runs from where row r begins to where the next one does, and is set back. */
static void place(struct hd_edge_table *t, const int32_t *ends)
{
	for (uint64_t e = 0; e < t->nedges; e++)
		if (is_row(ends[e], t->nrows))
			t->order[t->offset[ends[e]]++] = (uint32_t)e;
	memmove(t->offset + 1, t->offset, t->nrows * sizeof *t->offset);
	t->offset[0] = 0;
}

/* Has each edge of a row another end that is a row? */
static bool reach(const struct hd_edge_table *t, const int32_t *others)
{
	bool good = true;

	for (uint64_t i = 0; i < t->offset[t->nrows] && good; i++)
		good = is_row(others[t->ascends ? i : t->order[i]], t->nothers);
	return good;
}

/* Where the blocks of each row end; false: its sources do not ascend. */
static bool cut(struct hd_edge_table *t, const uint32_t *at)
{
	const uint64_t each = t->nothers / t->nblocks + (t->nothers % t->nblocks != 0);

	for (uint64_t r = 0; r < t->nrows; r++) {
		const uint64_t from = t->offset[r], end = t->offset[r + 1];
		uint32_t b = 0;
		for (uint64_t e = from; e < end; e++) {
			if (e > from && at[e] < at[e - 1])
				return false;
			for (; b + 1 < t->nblocks && at[e] >= (b + 1) * each; b++)
				t->cut[b * t->nrows + r] = e;
		}
		for (; b + 1 < t->nblocks; b++)
			t->cut[b * t->nrows + r] = end;
	}
	return true;
}

const struct hd_edge_rows *hd_edge_table_rows(struct hd_edge_table *t, const int32_t *ends,
	uint64_t ends_hash, const int32_t *others, uint64_t others_hash)
{
	const bool again = !t->made || t->ends_hash != ends_hash;

	if (again) {
		t->ascends = count(t, ends);
		if (!t->ascends)
			place(t, ends);
		t->made = true;
		t->ends_hash = ends_hash;
	}
	if (others && (again || !t->reached || t->others_hash != others_hash)) {
		t->good = reach(t, others);
		for (uint64_t i = 0; i < t->offset[t->nrows] && t->good && !t->ascends; i++)
			t->at[i] = (uint32_t)others[t->order[i]];
		t->cuts = t->good && t->nblocks > 1 && cut(t, t->ascends ? (const uint32_t *)others : t->at);
		t->reached = true;
		t->others_hash = others_hash;
	} else if (again) {
		t->reached = false;
	}
	t->rows.offset = t->offset;
	t->rows.order = t->ascends ? NULL : t->order;
	t->rows.nblocks = others && t->cuts ? t->nblocks : 1;
	t->rows.cut = t->cut;
	t->rows.at = !others ? NULL : t->ascends ? (const uint32_t *)others : t->at;
	return others && !t->good ? NULL : &t->rows;
}

static const struct { uint16_t op; struct hd_edge_lists lists; } lists[] = {
#define OP_ENDS(id, ends, others, of) { HD_OP_##id, { ends, others, of } },
#include "graph/ops.def"
};

struct hd_edge_lists hd_edge_lists(uint16_t op)
{
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (lists[i].op == op)
			return lists[i].lists;
	return (struct hd_edge_lists){ -1, -1, -1 };
}

uint32_t hd_edge_blocks(uint64_t nsources, uint64_t width, uint64_t nrows, uint64_t nedges)
{
	return hd_spmm_blocks_rule(nsources, width * sizeof(float), nrows, nedges, L2_BYTES);
}

void hd_edge_block(const struct hd_edge_rows *rows, uint64_t nrows, uint32_t b, uint32_t n,
	struct hd_spmm *call)
{
	const uint32_t step = rows->nblocks / n;

	call->at = rows->at;
	call->offset = b == 0 ? rows->offset : rows->cut + (b * step - 1) * nrows;
	call->end = b + 1 == n ? rows->offset + 1 : rows->cut + ((b + 1) * step - 1) * nrows;
	call->flags &= ~(unsigned)(HD_SPMM_RESUME | HD_SPMM_PARTIAL);
	call->flags |= (b > 0 ? HD_SPMM_RESUME : 0) | (b + 1 < n ? HD_SPMM_PARTIAL : 0);
}
