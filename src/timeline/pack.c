#include "timeline/pack.h"

#include <assert.h>
#include <string.h>

/* The lines' last ends, as leaves of a complete tree whose nodes have the least of what is below them: the
 * first line that is free is found from the root down. Lines that are not there yet are free. */
struct line_ends { int64_t *at; uint32_t cap; uint64_t nlooked; struct hd_arena *arena; };

static bool widen(struct line_ends *ends)
{
	const uint32_t cap = ends->cap ? ends->cap * 2 : 8;
	int64_t *at = cap ? hd_arena_take(ends->arena, (size_t)cap * 2, sizeof *at) : NULL;

	if (!at)
		return false;
	for (uint32_t i = 0; i < cap; i++)
		at[cap + i] = i < ends->cap ? ends->at[ends->cap + i] : INT64_MIN;
	for (uint32_t i = cap; --i > 0;)
		at[i] = at[2 * i] < at[2 * i + 1] ? at[2 * i] : at[2 * i + 1];
	ends->at = at;
	ends->cap = cap;
	return true;
}

/* The first whose end is at or before t; the root says that there is one. */
static uint32_t first_free(struct line_ends *ends, int64_t t)
{
	uint32_t i = 1;

	assert(ends->at[1] <= t);
	for (; i < ends->cap; ends->nlooked++)
		i = ends->at[2 * i] <= t ? 2 * i : 2 * i + 1;
	return i - ends->cap;
}

static void set_end(struct line_ends *ends, uint32_t line, int64_t t)
{
	uint32_t i = line + ends->cap;

	for (ends->at[i] = t; i > 1; ends->nlooked++) {
		i /= 2;
		ends->at[i] = ends->at[2 * i] < ends->at[2 * i + 1] ? ends->at[2 * i] : ends->at[2 * i + 1];
	}
}

/* Events by line, in their order: counted, then placed. */
static enum hd_err sort_lines(struct hd_tl_lines *lines, uint64_t n, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint64_t *begin = hd_arena_take(arena, (size_t)lines->nlines + 2, sizeof *begin),
		*event = hd_arena_take(arena, n ? n : 1, sizeof *event);

	if (!begin || !event)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u lines of a lane", lines->nlines);
	for (uint64_t i = 0; i < n; i++)
		begin[lines->line[i] + 2]++;
	for (uint32_t l = 0; l < lines->nlines; l++)
		begin[l + 2] += begin[l + 1];
	for (uint64_t i = 0; i < n; i++)
		event[begin[lines->line[i] + 1]++] = i;
	lines->begin = begin;
	lines->event = event;
	return HD_OK;
}

enum hd_err hd_tl_pack(const struct hd_timeline *t, uint32_t lane, struct hd_tl_lines *lines,
	struct hd_arena *arena, struct hd_diag *diag)
{
	assert(lane < t->nlanes);
	const struct hd_tl_lane *l = &t->lane[lane];
	uint64_t n = l->end - l->begin;
	struct line_ends ends = { .arena = arena };
	struct hd_tl_lines packed = { .nlines = 1 };

	packed.line = hd_arena_take(arena, n ? n : 1, sizeof *packed.line);
	if (!packed.line || !widen(&ends))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the lines of a lane of %llu events",
			(unsigned long long)n);
	for (uint64_t i = 0; i < n && l->kind != HD_LANE_DEVICE; i++) {
		const struct hd_tl_event *e = &t->event[l->begin + i];
		if (e->t0 == e->t1)
			continue;
		if (ends.at[1] > e->t0 && !widen(&ends))
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u lines of a lane", ends.cap);
		const uint32_t at = first_free(&ends, e->t0);
		packed.line[i] = at;
		packed.nlines = at < packed.nlines ? packed.nlines : at + 1;
		set_end(&ends, at, e->t1);
	}
	packed.nlooked = ends.nlooked;
	enum hd_err err = sort_lines(&packed, n, arena, diag);
	if (!err)
		*lines = packed;
	return err;
}
