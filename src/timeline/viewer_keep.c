/* Which events a page holds, and which of them are two ends of one transfer. */
#include <assert.h>
#include <stdlib.h>

#include "timeline/viewer_int.h"

/* The step of one number, over all processes. */
struct span { uint64_t number; int64_t begin, end; };

static int by_number(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static uint32_t merge_steps(const struct hd_timeline *t, struct span *span)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->nsteps; i++)
		span[i] = (struct span){ t->step[i].number, t->step[i].begin, t->step[i].end };
	if (t->nsteps)
		qsort(span, t->nsteps, sizeof *span, by_number);
	for (uint32_t i = 0; i < t->nsteps; i++) {
		struct span *last = n ? &span[n - 1] : NULL;
		if (!last || last->number != span[i].number) {
			span[n++] = span[i];
			continue;
		}
		last->begin = span[i].begin < last->begin ? span[i].begin : last->begin;
		last->end = span[i].end > last->end ? span[i].end : last->end;
	}
	return n;
}

/* The first event of the lane with t0 >= `from`. */
static uint64_t first_from(const struct hd_timeline *t, const struct hd_tl_lane *l, int64_t from)
{
	uint64_t low = l->begin, high = l->end;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (t->event[middle].t0 < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t count(const struct hd_timeline *t, int64_t from, int64_t to)
{
	uint64_t n = 0;

	for (uint32_t l = 0; l < t->nlanes; l++)
		n += first_from(t, &t->lane[l], to == INT64_MAX ? to : to + 1) - first_from(t, &t->lane[l],
			from);
	return n;
}

/* Rows [*a, *b) of `span`: as many neighbours as fit, upwards from the first wanted one, or downwards from
 * the last of all. */
static void choose(const struct hd_viewer_trace *trace, const struct span *span, uint32_t n, uint64_t budget,
	uint32_t *a, uint32_t *b)
{
	bool last_ones = trace->step_from > trace->step_to;
	uint32_t first = 0;
	int64_t from = INT64_MAX, to = INT64_MIN;

	while (!last_ones && first < n && span[first].number < trace->step_from)
		first++;
	*a = *b = last_ones ? n : first;
	while (last_ones ? *a > 0 : *b < n && span[*b].number <= trace->step_to) {
		const struct span *s = last_ones ? &span[*a - 1] : &span[*b];
		from = s->begin < from ? s->begin : from;
		to = s->end > to ? s->end : to;
		if (count(trace->timeline, from, to) > budget)
			break;
		if (last_ones)
			--*a;
		else
			++*b;
	}
}

enum hd_err hd_viewer_keep(const struct hd_viewer_trace *trace, uint64_t budget, struct hd_arena *arena,
	struct hd_viewer_kept *kept, struct hd_diag *diag)
{
	const struct hd_timeline *t = trace->timeline;
	struct hd_viewer_kept k = { .all = t->nevents <= budget, .step_from = 1,
		.begin = hd_arena_take(arena, (size_t)t->nlanes + 1, sizeof *k.begin),
		.at = hd_arena_take(arena, (size_t)t->nlanes + 1, sizeof *k.at) };
	struct span *span = hd_arena_take(arena, (size_t)t->nsteps + 1, sizeof *span);
	int64_t from = 0, to = -1;

	if (!k.begin || !k.at || !span)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u lanes of a page", t->nlanes);
	if (!k.all) {
		uint32_t a, b;
		choose(trace, span, merge_steps(t, span), budget, &a, &b);
		for (uint32_t i = a; i < b; i++) {
			from = i == a || span[i].begin < from ? span[i].begin : from;
			to = i == a || span[i].end > to ? span[i].end : to;
		}
		k.step_from = a < b ? span[a].number : 1;
		k.step_to = a < b ? span[b - 1].number : 0;
	}
	for (uint32_t l = 0; l < t->nlanes; l++) {
		const struct hd_tl_lane *lane = &t->lane[l];
		k.begin[l] = k.all ? lane->begin : first_from(t, lane, from);
		uint64_t end = k.all ? lane->end : first_from(t, lane, to + 1);
		k.at[l + 1] = k.at[l] + (end > k.begin[l] ? end - k.begin[l] : 0);
	}
	assert(k.at[t->nlanes] <= budget);
	*kept = k;
	return HD_OK;
}

uint32_t hd_viewer_place(const struct hd_viewer_kept *kept, const struct hd_timeline *t, uint64_t event)
{
	uint32_t l;

	if (event >= t->nevents)
		return HD_TL_NONE;
	l = t->event[event].lane;
	if (event < kept->begin[l] || event - kept->begin[l] >= kept->at[l + 1] - kept->at[l])
		return HD_TL_NONE;
	return (uint32_t)(kept->at[l] + event - kept->begin[l]);
}

/* ---- the two ends of a transfer ---- */

struct transfer_end { uint64_t flow; int64_t t0; uint32_t place; bool received; };

static int by_flow(const void *a, const void *b)
{
	const struct transfer_end *x = a, *y = b;

	if (x->flow != y->flow)
		return x->flow < y->flow ? -1 : 1;
	if (x->received != y->received)
		return x->received ? 1 : -1;
	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

static uint64_t collect(const struct hd_timeline *t, const struct hd_viewer_kept *kept,
	struct transfer_end *end)
{
	uint64_t n = 0;

	for (uint32_t l = 0; l < t->nlanes; l++)
		for (uint64_t i = kept->at[l]; i < kept->at[l + 1]; i++) {
			const struct hd_tl_event *e = &t->event[kept->begin[l] + i - kept->at[l]];
			if (e->flow == 0 || (e->kind != HD_EVENT_SEND && e->kind != HD_EVENT_RECV))
				continue;
			if (end)
				end[n] = (struct transfer_end){ e->flow, e->t0, (uint32_t)i, e->kind ==
					HD_EVENT_RECV };
			n++;
		}
	return n;
}

enum hd_err hd_viewer_pair(const struct hd_timeline *t, const struct hd_viewer_kept *kept,
	struct hd_arena *arena, uint32_t **other, struct hd_diag *diag)
{
	uint64_t nkept = kept->at[t->nlanes], n = collect(t, kept, NULL);
	struct transfer_end *end = hd_arena_take(arena, n + 1, sizeof *end);
	uint32_t *to = hd_arena_take(arena, nkept + 1, sizeof *to);

	if (!end || !to)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %llu transfers of a page",
			(unsigned long long)n);
	collect(t, kept, end);
	if (n)
		qsort(end, n, sizeof *end, by_flow);
	for (uint64_t i = 0; i < nkept; i++)
		to[i] = HD_TL_NONE;
	for (uint64_t i = 0, next; i < n; i = next) {
		uint64_t split = i;
		for (next = i; next < n && end[next].flow == end[i].flow; next++)
			split += !end[next].received;
		for (uint64_t k = 0; i + k < split && split + k < next; k++) {
			to[end[i + k].place] = end[split + k].place;
			to[end[split + k].place] = end[i + k].place;
		}
	}
	*other = to;
	return HD_OK;
}
