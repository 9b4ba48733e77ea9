#include "clustersim/schedsim/profile.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void profile_open(struct profile *p, struct profile_step *room, double now_s, uint32_t free)
{
	*p = (struct profile){ room, 1 };
	room[0] = (struct profile_step){ now_s, free };
}

void profile_release(struct profile *p, double at_s, uint32_t devices)
{
	struct profile_step *last = &p->step[p->n - 1];

	assert(at_s >= last->at_s);
	if (at_s > last->at_s)
		p->step[p->n++] = (struct profile_step){ at_s, last->free + devices };
	else
		last->free += devices;
}

double profile_earliest(const struct profile *p, uint32_t devices, double for_s)
{
	for (uint32_t from = 0; from < p->n; from++) {
		uint32_t to = from;
		while (to < p->n && p->step[to].free >= devices && p->step[to].at_s < p->step[from].at_s +
			for_s)
			to++;
		if (to == p->n || (to > from && p->step[to].at_s >= p->step[from].at_s + for_s))
			return p->step[from].at_s;
		from = to;
	}
	return INFINITY;
}

/* The step that begins then, made if there is none. */
static uint32_t cut(struct profile *p, double at_s)
{
	uint32_t k = p->n;

	while (k && p->step[k - 1].at_s > at_s)
		k--;
	assert(k);
	if (!(p->step[k - 1].at_s < at_s))
		return k - 1;
	memmove(&p->step[k + 1], &p->step[k], (p->n - k) * sizeof *p->step);
	p->step[k] = (struct profile_step){ at_s, p->step[k - 1].free };
	p->n++;
	return k;
}

void profile_take(struct profile *p, double at_s, double for_s, uint32_t devices)
{
	uint32_t from = cut(p, at_s), to = cut(p, at_s + for_s);

	for (; from < to; from++) {
		assert(p->step[from].free >= devices);
		p->step[from].free -= devices;
	}
}

void profile_give(struct profile *p, double at_s, double for_s, uint32_t devices)
{
	uint32_t from = cut(p, at_s), to = cut(p, at_s + for_s);

	for (; from < to; from++)
		p->step[from].free += devices;
}

/* The window begins at at_s now. Of its steps those stay that are less than all behind them: the first of
 * these is the least. */
static void slide(struct profile_window *w, double at_s, double until_s)
{
	const struct profile_step *step = w->of->step;

	for (; w->next < w->of->n && step[w->next].at_s < until_s; w->next++) {
		while (w->tail > w->head && step[w->room[w->tail - 1]].free >= step[w->next].free)
			w->tail--;
		w->room[w->tail++] = w->next;
	}
	while (w->room[w->head] + 1 < w->of->n && step[w->room[w->head] + 1].at_s <= at_s)
		w->head++;
	w->least = step[w->room[w->head]].free;
}

double profile_earliest_of(struct profile_window *window, uint32_t n, uint32_t devices, uint32_t per,
	double for_s)
{
	double at_s = n ? window[0].of->step[0].at_s : INFINITY;

	for (uint32_t k = 0; k < n; k++)
		window[k].head = window[k].tail = window[k].next = 0;
	while (at_s < INFINITY) {
		uint64_t all = 0;
		double later_s = INFINITY;
		for (uint32_t k = 0; k < n; k++) {
			struct profile_window *w = &window[k];
			slide(w, at_s, at_s + for_s);
			if (per)
				w->least = w->least < per ? 0 : per;
			all += w->least;
			/* it has no more before the least of its steps is over */
			if (w->room[w->head] + 1 < w->of->n)
				later_s = fmin(later_s, w->of->step[w->room[w->head] + 1].at_s);
		}
		if (all >= devices)
			break;
		at_s = later_s;
	}
	return at_s;
}
