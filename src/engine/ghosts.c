#include "engine/ghosts.h"

/* Marks the rows, and counts them. */
static uint32_t mark(const struct hd_ghosts *h, const uint16_t *worker, uint16_t from, uint16_t to,
	uint8_t *is)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < h->nvns; v++)
		for (uint64_t k = 0; worker[v] == to && k < h->each; k++) {
			const int32_t row = h->ghost[v * h->each + k];
			if (row < 0 || (uint64_t)row >= h->nvns * h->rows || is[row] ||
				worker[(uint64_t)row / h->rows] != from)
				continue;
			is[row] = 1;
			n++;
		}
	return n;
}

enum hd_err hd_ghost_rows_make(const struct hd_ghosts *h, const uint16_t *worker, uint16_t from, uint16_t to,
	struct hd_ghost_rows *rows, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint64_t all = h->nvns * h->rows;
	struct hd_arena own;

	hd_arena_init(&own, 0);
	uint8_t *is = hd_arena_take(&own, all + 1, sizeof *is);
	*rows = (struct hd_ghost_rows){ .n = is ? mark(h, worker, from, to, is) : 0 };
	rows->row = is ? hd_arena_take(arena, rows->n + 1u, sizeof *rows->row) : NULL;
	uint32_t n = 0;
	for (uint64_t r = 0; rows->row && r < all; r++)
		if (is[r])
			rows->row[n++] = (uint32_t)r;
	hd_arena_finish(&own);
	return rows->row ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for the rows that worker %u sends to "
		"worker %u", from, to);
}
