#define _GNU_SOURCE        /* qsort_r */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/rounds/int.h"

static void count_left(const struct hd_rounds *r, uint32_t *left)
{
	for (uint32_t t = 0; t < r->ntypes; t++) {
		left[t] = 0;
		for (uint32_t d = r->first_device[t]; d < r->first_device[t + 1]; d++)
			left[t] += r->usable[d] && !r->taken[d];
	}
}

static bool is_picked(const struct hd_rounds *r, const struct combination *c)
{
	for (uint8_t m = 0; m < c->nmembers; m++)
		if (rounds_job(r, c->id[m])->picked)
			return true;
	return false;
}

static bool can_run(const struct combination *c) { return c->rate[0] > 0 &&
	(c->nmembers == 1 || c->rate[1] > 0); }

static uint32_t devices_of(const struct combination *c)
{
	uint32_t n = 0;

	for (uint8_t k = 0; k < c->nneeds; k++)
		n += c->need[k].n;
	return n;
}

static void begin_limits(struct hd_rounds *r)
{
	for (uint32_t i = 0; i < r->nlimits; i++) {
		r->limit[i].left_devices = r->limit[i].devices;
		r->limit[i].left_jobs = r->limit[i].jobs;
	}
	for (uint32_t j = 0; j < r->njobs; j++)
		r->job[j].over = 0;
}

static void use_limits(struct hd_rounds *r, const struct round_job *job, uint32_t devices)
{
	for (uint32_t i = 0; i < job->nlimits; i++) {
		struct round_limit *l = &r->limit[job->limit[i]];
		/* what goes on between two boundaries may be above a limit that is new */
		l->left_devices -= l->devices == UINT32_MAX ? 0 : devices < l->left_devices ? devices :
			l->left_devices;
		l->left_jobs -= l->jobs != UINT32_MAX && l->left_jobs;
	}
}

/* Of jobs that it was passed over for a limit is noted: the first that has no room. */
static bool within_limits(struct hd_rounds *r, const struct combination *c)
{
	for (uint8_t m = 0; m < c->nmembers; m++) {
		struct round_job *job = rounds_job(r, c->id[m]);
		for (uint32_t i = 0; i < job->nlimits; i++) {
			const struct round_limit *l = &r->limit[job->limit[i]];
			if (l->left_jobs && l->left_devices >= devices_of(c))
				continue;
			job->over = job->limit[i] + 1;
			return false;
		}
	}
	return true;
}

static void take(struct hd_rounds *r, uint32_t cell, bool spare, uint32_t *left)
{
	const struct combination *c = &r->cell[cell];

	for (uint8_t k = 0; k < c->nneeds; k++)
		left[c->need[k].type] -= c->need[k].n;
	for (uint8_t m = 0; m < c->nmembers; m++) {
		struct round_job *job = rounds_job(r, c->id[m]);
		job->picked = true;
		job->over = 0;
		use_limits(r, job, devices_of(c));
	}
	r->pick[r->npicks++] = (struct pick){ cell, spare };
}

static int down(double a, double b) { return (a < b) - (a > b); }

static int by_books(const struct combination *a, const struct combination *b)
{
	int order = down(a->priority, b->priority);

	if (!order)
		order = down(a->deficit, b->deficit);
	return order ? order : down(a->x, b->x);
}

/* ---- gavel ---- */

/* place: of each type in the order; walks: types that the list is of */
struct published { const struct hd_rounds *r; uint32_t place[HD_SCHED_TYPES]; bool walks[HD_SCHED_TYPES]; };

/* Stable: equal ones in the order of their types, then of admission. */
static int published_order(const void *a, const void *b, void *context)
{
	const struct published *p = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct combination *x = &p->r->cell[i], *y = &p->r->cell[k];
	int order = by_books(x, y);

	if (order)
		return order;
	if (x->need[0].type != y->need[0].type)
		return p->place[x->need[0].type] < p->place[y->need[0].type] ? -1 : 1;
	return (i > k) - (i < k);
}

/* list[at..n) is a heap but for its root, which sinks: a smaller one in the order is nearer to the root. */
static void sink(uint32_t *list, uint32_t n, uint32_t at, struct published *p)
{
	for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && published_order(&list[child + 1], &list[child], p) < 0)
			child++;
		if (published_order(&list[at], &list[child], p) <= 0)
			return;
		uint32_t swap = list[at];
		list[at] = list[child];
		list[child] = swap;
	}
}

/* In the published order until no device is left, which is after a few of many jobs: so a heap and not a
 * sort. */
static void walk_published(struct hd_rounds *r, uint32_t n, uint32_t *left, struct published *p)
{
	uint32_t any = 0;

	for (uint32_t t = 0; t < r->ntypes; t++)
		any |= p->walks[t] ? left[t] : 0;
	for (uint32_t at = n / 2; at-- > 0 && any;)
		sink(r->list, n, at, p);
	while (n && any) {
		const uint32_t i = r->list[0];
		const struct combination *c = &r->cell[i];
		r->list[0] = r->list[--n];
		sink(r->list, n, 0, p);
		if (!rounds_fits(c, left) || !can_run(c) || (r->set.queue && !(c->priority > 0)) ||
			is_picked(r, c))
			continue;
		take(r, i, !(c->x > 0), left);
		any = 0;
		for (uint32_t t = 0; t < r->ntypes; t++)
			any |= p->walks[t] ? left[t] : 0;
	}
}

void rounds_pick_gavel(struct hd_rounds *r, uint32_t *types)
{
	struct published p = { .r = r };
	uint32_t left[HD_SCHED_TYPES], n = 0;

	memset(r->taken, 0, r->first_device[r->ntypes] * sizeof *r->taken);
	count_left(r, left);
	for (uint32_t k = 0; k < r->ntypes; k++)
		p.place[types[k]] = k;
	for (uint32_t k = 0; k < r->ntypes; k++) {
		p.walks[types[k]] = true;
		for (uint32_t i = 0; i < r->ncells; i++)
			if (r->cell[i].need[0].type == types[k])
				r->list[n++] = i;
		if (r->set.global_queue && k + 1 < r->ntypes)
			continue;
		walk_published(r, n, left, &p);
		memset(p.walks, 0, sizeof p.walks);
		n = 0;
	}
}

/* ---- exact ---- */

/* A queue gives a share to all for which there are devices, and knows no limits: of two that one limit has
 * room for, the one that runs goes on. */
static bool goes_first(const struct hd_rounds *r, const struct combination *c)
{
	for (uint8_t m = 0; m < c->nmembers; m++) {
		const struct round_job *job = rounds_job(r, c->id[m]);
		if (job->reserved || (r->set.queue && job->nlimits && job->held != UINT32_MAX))
			return true;
	}
	return false;
}

static int our_order(const void *a, const void *b, void *rounds)
{
	const struct hd_rounds *r = rounds;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	int order = by_books(&r->cell[i], &r->cell[k]);

	return order ? order : (i > k) - (i < k);
}

static void walk(struct hd_rounds *r, uint32_t n, bool first, uint32_t *left)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct combination *c = &r->cell[r->list[i]];
		if ((!first || goes_first(r, c)) && !is_picked(r, c) && rounds_fits(c, left) &&
			within_limits(r, c))
			take(r, r->list[i], false, left);
	}
}

/* The cells of one job on its own scale, one a type: they stand together, before its pairs. */
static uint32_t own_cells(const struct hd_rounds *r, uint64_t id)
{
	uint32_t from = 0, to = r->ncells;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;
		if (r->cell[mid].id[r->cell[mid].nmembers - 1] < id)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* Its fastest way alone that fits, faster than `above`; UINT32_MAX: none. `shared`: only with a share. */
static uint32_t fastest(const struct hd_rounds *r, uint64_t id, double above, bool shared,
	const uint32_t *left)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = own_cells(r, id); i < r->ncells && r->cell[i].nmembers == 1 &&
		r->cell[i].id[0] == id; i++)
		if (r->cell[i].own && r->cell[i].rate[0] > above && (!shared || r->cell[i].x > 0) &&
			rounds_fits(&r->cell[i], left)) {
			best = i;
			above = r->cell[i].rate[0];
		}
	return best;
}

static bool holds(const struct hd_rounds *r, const struct round_job *job, const struct combination *c)
{
	const struct hd_round_run *held = job->held == UINT32_MAX ? NULL : &r->old_run[job->held];

	return held && held->nmembers == c->nmembers && held->nneeds == c->nneeds &&
		!memcmp(held->need, c->need, c->nneeds * sizeof *c->need);
}

static void upgrade(struct hd_rounds *r, uint32_t *left)
{
	for (uint32_t p = 0; p < r->npicks; p++) {
		const struct combination *c = &r->cell[r->pick[p].cell];
		const struct round_job *job = rounds_job(r, c->id[0]);
		if (c->nmembers != 1 || !c->own)
			continue;
		double gain = holds(r, job, c) ? 1 + job->switch_s / r->set.round_s : 1;
		uint32_t to = fastest(r, c->id[0], c->rate[0] * gain, !r->conserving, left);
		if (to == UINT32_MAX)
			continue;
		left[c->need[0].type] += c->need[0].n;
		left[r->cell[to].need[0].type] -= r->cell[to].need[0].n;
		r->pick[p].cell = to;
	}
}

static int by_wait(const void *a, const void *b, void *rounds)
{
	const struct hd_rounds *r = rounds;
	const struct round_job *x = &r->job[*(const uint32_t *)a], *y = &r->job[*(const uint32_t *)b];

	if (x->waited != y->waited)
		return x->waited > y->waited ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* `lost`: only jobs that lost a device just now. */
static void fill(struct hd_rounds *r, bool lost, uint32_t *left)
{
	uint32_t n = 0, any = 0;

	for (uint32_t t = 0; t < r->ntypes; t++)
		any |= left[t];
	for (uint32_t j = 0; j < r->njobs && any; j++)
		if (!r->job[j].picked && (!lost || r->job[j].lost))
			r->list[n++] = j;
	qsort_r(r->list, n, sizeof *r->list, by_wait, r);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t cell = fastest(r, r->job[r->list[i]].id, 0, false, left);
		if (cell != UINT32_MAX && within_limits(r, &r->cell[cell]))
			take(r, cell, true, left);
	}
}

/* Between boundaries: running jobs stay as they are. A pair that lost a member goes on alone. */
static void go_on(struct hd_rounds *r)
{
	for (uint32_t i = 0; i < r->nold; i++) {
		struct hd_round_run run = r->old_run[i];
		uint8_t n = 0;
		for (uint8_t m = 0; m < run.nmembers; m++)
			if (rounds_job(r, run.id[m]))
				run.id[n++] = run.id[m];
		if (!n)
			continue;
		if (n < run.nmembers) {
			uint32_t c = own_cells(r, run.id[0]);
			run.nmembers = 1;
			run.id[1] = 0;
			for (; c < r->ncells && r->cell[c].id[0] == run.id[0] && r->cell[c].nmembers == 1;
				c++)
				if (r->cell[c].need[0].type == run.need[0].type && r->cell[c].own)
					run.rate[0] = r->cell[c].rate[0];
		}
		bool whole = true;
		for (uint32_t d = 0; d < run.ndevices; d++)
			whole &= r->usable[r->old_device[run.first + d]];
		for (uint8_t m = 0; m < run.nmembers; m++)
			rounds_job(r, run.id[m])->lost = !whole;
		if (!whole)
			continue;
		for (uint32_t d = 0; d < run.ndevices; d++) {
			r->device[r->ndevices_used + d] = r->old_device[run.first + d];
			r->taken[r->old_device[run.first + d]] = true;
		}
		run.first = r->ndevices_used;
		run.kind = HD_RUN_SAME;
		r->ndevices_used += run.ndevices;
		r->run[r->nruns++] = run;
		for (uint8_t m = 0; m < run.nmembers; m++) {
			rounds_job(r, run.id[m])->picked = true;
			use_limits(r, rounds_job(r, run.id[m]), run.ndevices);
		}
	}
}

void rounds_pick(struct hd_rounds *r, bool mid)
{
	uint32_t left[HD_SCHED_TYPES], n = 0, i;

	memset(r->taken, 0, r->first_device[r->ntypes] * sizeof *r->taken);
	for (uint32_t j = 0; j < r->njobs; j++)
		r->job[j].lost = false;
	begin_limits(r);
	if (mid)
		go_on(r);
	count_left(r, left);
	for (i = 0; i < r->ncells; i++)
		if (r->cell[i].priority > 0)
			r->list[n++] = i;
	qsort_r(r->list, n, sizeof *r->list, our_order, r);
	for (uint32_t j = 0; j < r->njobs; j++)
		r->job[j].reserved = r->job[j].first_out >= r->set.reserve_after;
	walk(r, n, true, left);
	walk(r, n, false, left);
	for (i = 0; i < n && (is_picked(r, &r->cell[r->list[i]]) ||
		rounds_job(r, r->cell[r->list[i]].id[0])->over); i++)
		;
	for (uint32_t j = 0; j < r->njobs && !mid; j++)
		r->job[j].first_out = i < n && r->job[j].id == r->cell[r->list[i]].id[0] ?
			r->job[j].first_out + 1 : 0;
	upgrade(r, left);
	if ((r->conserving && !r->set.queue) || mid)
		fill(r, !r->conserving || r->set.queue, left);
}
