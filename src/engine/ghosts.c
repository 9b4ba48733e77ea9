#include "engine/ghosts.h"

#include <string.h>

/* Marks the rows of others that worker `to` reads. */
static void mark(const struct hd_ghosts *h, const uint16_t *worker, uint16_t to, uint8_t *is)
{
	for (uint32_t v = 0; v < h->nvns; v++)
		for (uint64_t k = 0; worker[v] == to && k < h->each; k++) {
			const int32_t row = h->ghost[v * h->each + k];
			if (row >= 0 && (uint64_t)row < h->nvns * h->rows &&
				worker[(uint64_t)row / h->rows] != to)
				is[row] = 1;
		}
}

enum hd_err hd_ghost_rows_make(const struct hd_ghosts *h, const uint16_t *worker, uint16_t from, uint16_t to,
	struct hd_ghost_rows *rows, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint64_t all = h->nvns * h->rows;
	struct hd_arena own;

	hd_arena_init(&own, 0);
	uint8_t *is = hd_arena_take(&own, all + 1, sizeof *is);
	*rows = (struct hd_ghost_rows){ .n = 0 };
	if (is)
		mark(h, worker, to, is);
	for (uint64_t r = 0; is && r < all; r++) {
		is[r] = is[r] && worker[r / h->rows] == from;
		rows->n += is[r];
	}
	rows->row = is ? hd_arena_take(arena, rows->n + 1u, sizeof *rows->row) : NULL;
	uint32_t n = 0;
	for (uint64_t r = 0; rows->row && r < all; r++)
		if (is[r])
			rows->row[n++] = (uint32_t)r;
	hd_arena_finish(&own);
	return rows->row ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for the rows that worker %u sends to "
		"worker %u", from, to);
}

enum hd_err hd_ghost_rows_count(const struct hd_ghosts *h, const uint16_t *worker, uint16_t nworkers,
	uint64_t *sent, struct hd_diag *diag)
{
	const uint64_t all = h->nvns * h->rows;
	struct hd_arena own;

	hd_arena_init(&own, 0);
	uint8_t *is = hd_arena_take(&own, all + 1, sizeof *is);
	memset(sent, 0, nworkers * sizeof *sent);
	for (uint16_t to = 0; is && to < nworkers; to++) {
		memset(is, 0, all);
		mark(h, worker, to, is);
		for (uint64_t r = 0; r < all; r++)
			sent[worker[r / h->rows]] += is[r];
	}
	hd_arena_finish(&own);
	return is ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for %llu rows that are sent",
		(unsigned long long)all);
}
