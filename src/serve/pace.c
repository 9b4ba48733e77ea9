#include "serve/pace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "plan/solver.h"

enum { HD_PACE_KEEP = 10 };               /* EWMA 0.1: a tenth is new */

void hd_pace_init(struct hd_pace *pace, uint32_t nvns) { *pace = (struct hd_pace){ .nvns = nvns }; }

static struct hd_pace_worker *find(struct hd_pace *p, uint32_t worker, bool add)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->worker[i].worker == worker)
			return &p->worker[i];
	if (!add)
		return NULL;
	if (p->n == HD_MAX_WORKERS)       /* ids are never used again: the oldest is gone */
		memmove(p->worker, p->worker + 1, --p->n * sizeof *p->worker);
	p->worker[p->n] = (struct hd_pace_worker){ .worker = worker };
	return &p->worker[p->n++];
}

static uint32_t share_of(const struct hd_view *view, uint32_t worker)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < view->nranks; r++)
		n += view->rank[r].worker == worker ? view->rank[r].nvns : 0;
	return n;
}

/* Devices of a worker run side by side: the longest share counts. */
static uint32_t longest_of(const struct hd_view *view, uint32_t worker)
{
	uint32_t most = 0;

	for (uint32_t r = 0; r < view->nranks; r++)
		if (view->rank[r].worker == worker && view->rank[r].nvns > most)
			most = view->rank[r].nvns;
	return most;
}

void hd_pace_seal(struct hd_pace *p, uint32_t worker, const struct hd_step_news *news, const struct hd_view *view)
{
	struct hd_pace_worker *w = find(p, worker, true);

	w->step_ns = news->step_ns;
	w->wait_ns = news->wait_ns;
	w->compute_ns = news->compute_ns;
	w->redone += news->redone;
	if (!view || news->redone || !news->compute_ns || !share_of(view, worker))
		return;
	if (view->epoch != p->epoch) {
		p->epoch = view->epoch;
		p->in_epoch = p->off = 0;
	}
	p->in_epoch += worker == view->member[0];
	if (p->in_epoch <= HD_PACE_FIRST)
		return;
	uint64_t ps = news->compute_ns * 1000 / longest_of(view, worker);
	if (w->steps && ps > 2 * w->vn_ps)
		ps = 2 * w->vn_ps;        /* one step that something else held up says little */
	w->vn_ps = w->steps++ ? (w->vn_ps * (HD_PACE_KEEP - 1) + ps) / HD_PACE_KEEP : ps;
}

static bool is_off(uint64_t a, uint64_t b) { return (a > b ? a - b : b - a) * 100 > b * HD_PACE_OFF_PERCENT; }

bool hd_pace_asks(struct hd_pace *p)
{
	bool off = false;

	for (uint32_t i = 0; i < p->n; i++)
		off |= p->worker[i].steps >= HD_PACE_STEPS / 2 && (!p->worker[i].planned_ps || is_off(p->worker[i].vn_ps, p->worker[i].planned_ps));
	p->off = off ? p->off + 1 : 0;
	if (p->off < HD_PACE_STEPS)
		return false;
	p->off = 0;
	return true;
}

const struct hd_pace_worker *hd_pace_of(const struct hd_pace *p, uint32_t worker)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->worker[i].worker == worker)
			return &p->worker[i];
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

double hd_pace_speed(const struct hd_pace *p, uint32_t worker, const struct hd_view *view)
{
	const struct hd_pace_worker *self = hd_pace_of(p, worker);
	uint64_t known[HD_MAX_MEMBERS];
	uint32_t n = 0;

	for (uint32_t i = 0; view && i < view->nmembers; i++) {
		const struct hd_pace_worker *w = hd_pace_of(p, view->member[i]);
		if (w && w->vn_ps)
			known[n++] = w->vn_ps;
	}
	if (!n || !self || !self->vn_ps)
		return 0;
	qsort(known, n, sizeof *known, ascending);
	return (double)(known[(n - 1) / 2] + known[n / 2]) / 2 / (double)self->vn_ps;
}

/* What is known of each, the unknown ones as the median. All 0: nothing is. */
static void paces(struct hd_pace *p, const struct hd_member_info *info, uint32_t n, uint64_t *ps)
{
	uint64_t known[HD_MAX_WORKERS], median = 0;
	uint32_t k = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct hd_pace_worker *w = find(p, info[i].worker, false);
		ps[i] = w && w->vn_ps ? w->vn_ps : 0;
		if (ps[i])
			known[k++] = ps[i];
	}
	if (k) {
		qsort(known, k, sizeof *known, ascending);
		median = known[k / 2];
	}
	for (uint32_t i = 0; i < n; i++)
		ps[i] = ps[i] ? ps[i] : median ? median : info[i].vn_ps;
}

static bool are_even(const uint64_t *ps, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!ps[i] || is_off(ps[i], ps[0]))
			return !ps[i] || false;
	return true;
}

/* Paces within 3 % of one another are one type of device. */
static uint32_t type_of(uint64_t ps, uint64_t *type_ps, uint32_t *ntypes)
{
	for (uint32_t t = 0; t < *ntypes; t++)
		if ((type_ps[t] > ps ? type_ps[t] - ps : ps - type_ps[t]) * 100 <= type_ps[t] * 3)
			return t;
	type_ps[*ntypes] = ps;
	return (*ntypes)++;
}

/* Ranks stand in the order of the map; those without virtual nodes last. */
static void put_ranks(struct hd_view *view, const struct hd_solve *solved, const struct hd_solve_ask *ask, const struct hd_member_info *info)
{
	view->nranks = 0;
	for (uint32_t v = 0; v < ask->nvns;) {
		uint32_t d = 0;
		while (!solved->plan.count[d] || solved->plan.first[d] != v)
			d++;
		view->rank[view->nranks++] = (struct hd_vrank){ .worker = info[ask->device[d].worker].worker, .nvns = solved->plan.count[d] };
		v += solved->plan.count[d];
	}
	for (uint32_t d = 0; d < ask->ndevices; d++)
		if (!solved->plan.count[d])
			view->rank[view->nranks++] = (struct hd_vrank){ .worker = info[ask->device[d].worker].worker };
}

static bool solve(struct hd_pace *p, struct hd_view *view, const struct hd_member_info *info, uint32_t n, const uint64_t *ps, struct hd_arena *arena)
{
	struct hd_vn_cost *type = hd_arena_take(arena, n, sizeof *type);
	struct hd_solve_device *device = hd_arena_take(arena, HD_VIEW_RANKS, sizeof *device);
	struct hd_solve_worker *worker = hd_arena_take(arena, n, sizeof *worker);
	uint64_t type_ps[HD_MAX_WORKERS];
	uint32_t ndevices = 0, ntypes = 0;
	struct hd_solve solved;
	struct hd_text words;

	if (!type || !device || !worker)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t before = ntypes, t = type_of(ps[i], type_ps, &ntypes);
		const struct hd_wave_time wave = { .vns = 1, .ps = (int64_t)ps[i], .back_ps = (int64_t)(ps[i] / 2) };
		const struct hd_vn_profile profile = { .type = "worker", .wave = &wave, .nwaves = 1 };
		if (t == before && hd_vn_cost_make(&type[t], &profile, p->nvns, arena, NULL))
			return false;
		for (uint32_t d = 0; d < info[i].ndevices && ndevices < HD_VIEW_RANKS; d++)
			device[ndevices++] = (struct hd_solve_device){ .type = t, .worker = i };
	}
	const struct hd_solve_ask ask = { .nvns = p->nvns, .type = type, .ntypes = ntypes, .device = device,
		.ndevices = ndevices, .worker = worker, .nworkers = n };
	if (hd_solve(&solved, &ask, arena, NULL))
		return false;
	put_ranks(view, &solved, &ask, info);
	hd_text_fixed(&words, p->words, sizeof p->words);
	hd_solve_print(&solved, &ask, &words);
	return true;
}

bool hd_pace_plan(void *self, struct hd_view *view, const struct hd_member_info *info, uint32_t n)
{
	struct hd_pace *p = self;
	uint64_t ps[HD_MAX_WORKERS];
	struct hd_arena arena;

	p->words[0] = 0;
	p->off = 0;
	paces(p, info, n, ps);
	for (uint32_t i = 0; i < n; i++) {
		struct hd_pace_worker *w = find(p, info[i].worker, false);
		if (w)
			w->planned_ps = w->vn_ps;
	}
	if (n < 2 || are_even(ps, n))
		return false;
	hd_arena_init(&arena, 0);
	bool made = solve(p, view, info, n, ps, &arena);
	hd_arena_finish(&arena);
	return made;
}
