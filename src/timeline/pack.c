#include "timeline/pack.h"

#include <assert.h>
#include <string.h>

/* The lines' ends so far. Few lines are open at once in what is recorded, so the search is linear. */
struct line_ends { int64_t *at; uint32_t n, cap; struct hd_arena *arena; };

static bool more(struct line_ends *ends)
{
	uint32_t cap = ends->cap ? ends->cap * 2 : 8;
	int64_t *at = hd_arena_take(ends->arena, cap, sizeof *at);

	if (!at)
		return false;
	if (ends->n)
		memcpy(at, ends->at, ends->n * sizeof *at);
	ends->at = at;
	ends->cap = cap;
	return true;
}

enum hd_err hd_tl_pack(const struct hd_timeline *t, uint32_t lane, struct hd_tl_lines *lines,
	struct hd_arena *arena, struct hd_diag *diag)
{
	assert(lane < t->nlanes);
	const struct hd_tl_lane *l = &t->lane[lane];
	uint64_t n = l->end - l->begin;
	struct line_ends ends = { .arena = arena };
	uint32_t *line = hd_arena_take(arena, n ? n : 1, sizeof *line);

	if (!line || !more(&ends))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the lines of a lane of %llu events",
			(unsigned long long)n);
	ends.at[ends.n++] = INT64_MIN;
	for (uint64_t i = 0; i < n && l->kind != HD_LANE_DEVICE; i++) {
		const struct hd_tl_event *e = &t->event[l->begin + i];
		uint32_t at = 0;
		if (e->t0 == e->t1)
			continue;
		while (at < ends.n && ends.at[at] > e->t0)
			at++;
		if (at == ends.n && ends.n == ends.cap && !more(&ends))
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u lines of a lane", ends.n);
		ends.n += at == ends.n;
		ends.at[at] = e->t1;
		line[i] = at;
	}
	*lines = (struct hd_tl_lines){ line, ends.n };
	assert(lines->nlines >= 1);
	return HD_OK;
}
