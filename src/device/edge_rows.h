/* edge_rows.h -- the edges of a graph row by row: what kernels of ops along edges want in place of a list of
 * ends (graph/ops/edge_pair.inc.h). Made of the list once, kept as long as the list has the same bytes.
 *
 * The grid (grid.h) takes a table for each list of ends when a program is loaded, and looks before each run
 * whether the list is still the one that it was made of.
 *
 * 1. The edges of a row stand in the order of the list: sums over them have the bits of a walk through the
 *    list.
 * 2. An edge whose end is no row is in no row. If the other end of any other is none, there are no rows by
 *    this table (`rows` is NULL): the kernel walks the list.
 * 3. Sums that read more rows than caches hold go by blocks of sources: block b of n has the edges of a row
 *    from cut b - 1 (0: its first) to cut b (n - 1: its end) whose source is in [b, b + 1) * ceil(sources /
 *    n). Where the sources of some row do not ascend there is one block.
 * 4. A table takes its memory in hd_edge_table_take(), whatever the lists hold. Of a list that ascends, as
 *    that of the targets does, nothing but offsets is written.
 *
 * Ownership: a table owns its rows; they refer to the list of other ends that they were asked for with.
 * Threads: one makes, any may read. */
#ifndef HD_DEVICE_EDGE_ROWS_H
#define HD_DEVICE_EDGE_ROWS_H

#include "sys/memory.h"
#include "device/spmm.h"

struct hd_edge_rows {
	const struct hd_edge_kernels *kernels;
	/* edges of row r: offset[r] to offset[r + 1] - 1 */
	const uint64_t *offset;
	/* the number in the list of each; NULL: they stand as in the list */
	const uint32_t *order;
	const uint32_t *at;               /* the row at the other end of each; NULL: there is no other list */
	/* blocks of sources, a power of two; cut b of row r: cut[b * rows + r] */
	uint32_t nblocks; const uint64_t *cut;
};

struct hd_edge_table {
	uint64_t nrows, nedges, nothers;  /* of rows, of both lists, of rows at the other end */
	bool has_others;
	uint32_t nblocks;                 /* 0 counts as 1; of more, has_others */
	struct hd_memory memory;
	uint64_t *offset, *cut; uint32_t *order, *at;
	struct hd_edge_rows rows;
	/* what it was made of */
	uint64_t ends_hash, others_hash;
	bool made, ascends, reached, good, cuts;
};

/* Bytes of a table. */
uint64_t hd_edge_table_bytes(const struct hd_edge_table *table);
/* Takes memory for the numbers that stand in a table else zeroed. */
HD_MUST_USE enum hd_err hd_edge_table_take(struct hd_edge_table *table, struct hd_diag *diag);
void hd_edge_table_free(struct hd_edge_table *table);      /* takes zeroed ones */
/* The rows of lists with these hashes (hash.h), made if the table is of other ones; NULL: as 2 says.
 * others: NULL for an op of one list. What was given before is as it was until then. */
const struct hd_edge_rows *hd_edge_table_rows(struct hd_edge_table *table, const int32_t *ends,
	uint64_t ends_hash, const int32_t *others, uint64_t others_hash);

/* Operands of an op along edges: the list whose ends are rows of its output, the list of the other ends (-1:
 * it reads none), the operand that these are rows of. ends < 0: not such an op. */
struct hd_edge_lists { int8_t ends, others, of; };
struct hd_edge_lists hd_edge_lists(uint16_t op);
/* Into how many blocks of sources a sum of rows of `width` f32 goes: hd_spmm_blocks_rule() for second-level
 * caches of 2 MiB. */
uint32_t hd_edge_blocks(uint64_t nsources, uint64_t width, uint64_t nrows, uint64_t nedges);
/* The edges of block b of n, n a power of two up to rows->nblocks: sets what of `call` belongs to it. */
void hd_edge_block(const struct hd_edge_rows *rows, uint64_t nrows, uint32_t b, uint32_t n,
	struct hd_spmm *call);

#endif
