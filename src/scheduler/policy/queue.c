/* Queues on whole devices: fifo in order of arrival, sjf by shortest time to run, priority by descending
 * weight.
 *
 * The published plain fifo is repeated with its faults: a job goes to the last listed type, whatever type was
 * drawn, also beyond the devices there, and then the drawn type is struck off. Its packed variant loses the
 * head that found no room.
 *
 * exact: a job goes to the fastest type with room and stays until it ends; the head blocks. With backfill
 * (EASY) a later job may start where it does not delay the head's earliest start by estimated ends: always so
 * in priority-backfill. sjf with preempt forgets its placements each call. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/policy/int.h"

struct queue_placed { uint64_t id; uint32_t type; };

enum order { BY_ARRIVAL, BY_TIME, BY_WEIGHT };    /* of waiting jobs; ties by arrival */

struct queue_walk {
	struct hd_policy *policy;
	const struct hd_sched_state *s;
	struct hd_arena *arena;
	int64_t *free;                            /* [ntypes]; as published it can fall below 0 */
	uint32_t *queue, n, head;                 /* jobs that wait, in order */
	uint32_t *order, norder;                  /* jobs placed, in order of placement */
	struct hd_shape *shape;                   /* [njobs] of those, merged or not */
	struct hd_diag *diag;
	enum order by;
	bool backfills;
};

static struct hd_queue *memory(const struct queue_walk *w) { return w->policy->memory; }

static enum hd_err init(struct hd_policy *policy)
{
	struct hd_queue *q = policy->memory;

	q->placed = (struct hd_ledger){ .size = sizeof(struct queue_placed) };
	hd_mt_init(&q->mt, policy->set.seed);
	return HD_OK;
}

enum hd_err hd_fifo_init(struct hd_policy *policy, struct hd_diag *diag) { (void)diag; return init(policy); }
enum hd_err hd_sjf_init(struct hd_policy *policy, struct hd_diag *diag) { (void)diag; return init(policy); }
enum hd_err hd_priority_init(struct hd_policy *policy, struct hd_diag *diag) { (void)diag;
	return init(policy); }
enum hd_err hd_priority_backfill_init(struct hd_policy *policy, struct hd_diag *diag) { (void)diag;
	return init(policy); }
void hd_fifo_finish(struct hd_policy *policy)
{
	hd_ledger_finish(&((struct hd_queue *)policy->memory)->placed);
}
void hd_sjf_finish(struct hd_policy *policy) { hd_fifo_finish(policy); }
void hd_priority_finish(struct hd_policy *policy) { hd_fifo_finish(policy); }
void hd_priority_backfill_finish(struct hd_policy *policy) { hd_fifo_finish(policy); }

static enum hd_err place(struct queue_walk *w, uint32_t job, uint32_t type)
{
	struct queue_placed *at = hd_ledger_add(&memory(w)->placed, w->s->jobs[job].id);

	if (!at)
		return hd_fail(w->diag, HD_E_NOMEM, "no memory for %u jobs", w->s->njobs);
	at->type = type;
	w->free[type] -= w->s->jobs[job].scale;
	w->order[w->norder++] = job;
	return HD_OK;
}

/* The fastest type with room among those in `among`; first by name among equals. */
static uint32_t fastest(const struct queue_walk *w, uint32_t job)
{
	uint32_t best = HD_SCHED_NONE;

	for (uint32_t j = 0; j < w->s->ntypes; j++)
		if (w->free[j] >= w->s->jobs[job].scale && (best == HD_SCHED_NONE ||
			w->s->jobs[job].rate[j] > w->s->jobs[job].rate[best]))
			best = j;
	return best;
}

/* Those that still are there keep their devices; as published, the head takes the type of one that is
 * gone. */
static enum hd_err stay(struct queue_walk *w, bool inherit)
{
	struct hd_ledger *ledger = &memory(w)->placed;
	uint32_t n = ledger->n;
	struct queue_placed *was = hd_arena_take(w->arena, n + 1, sizeof *was);
	enum hd_err err = was ? HD_OK : HD_E_NOMEM;

	if (was && n)
		memcpy(was, ledger->at, n * sizeof *was);
	for (uint32_t k = 0; !err && k < n; k++) {
		uint32_t i = hd_sched_find(w->s, was[k].id);
		if (i != HD_SCHED_NONE && !hd_sched_absent(w->s, i) &&
			(inherit || w->free[was[k].type] >= w->s->jobs[i].scale)) {
			err = place(w, i, was[k].type);
			continue;
		}
		if (!inherit || w->head == w->n)
			continue;
		uint32_t first = w->queue[w->head], type = was[k].type;
		if (w->s->jobs[first].scale <= w->free[type] && w->s->jobs[first].rate[type] > 0) {
			w->head++;
			err = place(w, first, type);
		}
	}
	return err;
}

/* exact: whose devices went waits again, in its turn. */
static void forget_homeless(const struct queue_walk *w)
{
	struct hd_ledger *ledger = &memory(w)->placed;
	int64_t free[HD_SCHED_TYPES];

	memcpy(free, w->free, w->s->ntypes * sizeof *free);
	for (uint32_t k = 0; k < ledger->n;) {
		const struct queue_placed *p = (const struct queue_placed *)ledger->at + k;
		uint32_t i = hd_sched_find(w->s, p->id);
		if (i != HD_SCHED_NONE && free[p->type] < w->s->jobs[i].scale) {
			hd_ledger_drop(ledger, p->id);
			continue;
		}
		free[p->type] -= i != HD_SCHED_NONE && !hd_sched_absent(w->s, i) ? w->s->jobs[i].scale : 0;
		k++;
	}
}

static enum hd_err published_plain(struct queue_walk *w)
{
	bool listed[HD_SCHED_TYPES];
	enum hd_err err = stay(w, true);

	for (uint32_t j = 0; j < w->s->ntypes; j++)
		listed[j] = w->free[j] > 0;
	while (!err && w->head < w->n) {
		uint32_t job = w->queue[w->head++], fits[HD_SCHED_TYPES], nfits = 0, last = HD_SCHED_NONE;
		for (uint32_t j = 0; j < w->s->ntypes; j++) {
			if (listed[j] && w->free[j] >= w->s->jobs[job].scale)
				fits[nfits++] = j;
			last = listed[j] ? j : last;
		}
		if (nfits == 0)
			break;
		uint32_t drawn = fits[hd_mt_below(&memory(w)->mt, nfits)];
		if (!(w->s->jobs[job].rate[last] > 0))
			continue;
		err = place(w, job, last);
		if (w->free[last] == 0)
			listed[drawn] = false;
	}
	return err;
}

static bool any_free(const struct queue_walk *w)
{
	for (uint32_t j = 0; j < w->s->ntypes; j++)
		if (w->free[j] > 0)
			return true;
	return false;
}

/* The head that finds no room is lost, but only where some type has devices left at all. */
static enum hd_err published_hetero(struct queue_walk *w)
{
	enum hd_err err = HD_OK;

	while (!err && w->head < w->n && any_free(w)) {
		uint32_t job = w->queue[w->head++], type = fastest(w, job);
		if (type == HD_SCHED_NONE)
			break;
		if (w->s->jobs[job].rate[type] > 0)
			err = place(w, job, type);
	}
	return err;
}

/* Summed normalised throughput of two jobs on a type. */
static double summed(const struct hd_sched_state *s, uint32_t a, uint32_t b, uint32_t type)
{
	double rate[2];

	(void)hd_sched_pair_rate(s, a, b, type, rate);
	return (s->jobs[a].rate[type] > 0 ? rate[0] / s->jobs[a].rate[type] : 0) +
		(s->jobs[b].rate[type] > 0 ? rate[1] / s->jobs[b].rate[type] : 0);
}

static void published_packed(struct queue_walk *w)
{
	for (; w->head < w->n; w->head++) {
		uint32_t job = w->queue[w->head], best = HD_SCHED_NONE;
		double most = 1.5;
		for (uint32_t k = 0; k < w->norder; k++) {
			uint32_t other = w->order[k], type = w->shape[other].need[0].type;
			if (w->shape[other].nmembers != 1 ||
				w->s->jobs[other].scale != w->s->jobs[job].scale ||
				summed(w->s, other, job, type) <= most)
				continue;
			most = summed(w->s, other, job, type);
			best = other;
		}
		if (best == HD_SCHED_NONE)
			break;
		w->shape[best] = hd_way_pair(w->s, best < job ? best : job, best < job ? job : best,
			w->shape[best].need[0].type);
	}
}

/* ---- ours ---- */

struct end { double at_s; uint32_t n; };

static int by_time(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	return (x->at_s > y->at_s) - (x->at_s < y->at_s);
}

static double runs_for(const struct hd_sched_state *s, uint32_t job, uint32_t type)
{
	return s->jobs[job].rate[type] > 0 ? s->jobs[job].steps_left / s->jobs[job].rate[type] : INFINITY;
}

/* When `type` has the devices of the head by estimated ends, and how many are over then. */
static double start_of(const struct queue_walk *w, uint32_t job, uint32_t type, int64_t *over,
	struct end *ends)
{
	int64_t have = w->free[type], needs = w->s->jobs[job].scale;
	uint32_t n = 0;
	double at_s = 0;

	for (uint32_t k = 0; k < w->norder; k++) {
		const struct queue_placed *p = hd_ledger_find(&memory(w)->placed, w->s->jobs[w->order[k]].id);
		if (p->type == type)
			ends[n++] = (struct end){ runs_for(w->s, w->order[k], type),
				w->s->jobs[w->order[k]].scale };
	}
	qsort(ends, n, sizeof *ends, by_time);
	for (uint32_t k = 0; k < n && have < needs; k++) {
		have += ends[k].n;
		at_s = ends[k].at_s;
	}
	*over = have - needs;
	return have >= needs && w->s->jobs[job].rate[type] > 0 ? at_s : INFINITY;
}

static enum hd_err backfill(struct queue_walk *w)
{
	uint32_t head = w->queue[w->head], type = HD_SCHED_NONE;
	struct end *ends = hd_arena_take(w->arena, w->s->njobs + 1, sizeof *ends);
	int64_t over = 0, rest;
	double start_s = INFINITY;
	enum hd_err err = ends ? HD_OK : HD_E_NOMEM;

	for (uint32_t j = 0; !err && j < w->s->ntypes; j++) {
		double at_s = start_of(w, head, j, &rest, ends);
		if (at_s < start_s) {
			start_s = at_s;
			type = j;
			over = rest;
		}
	}
	for (uint32_t k = w->head + 1; !err && k < w->n; k++) {
		uint32_t job = w->queue[k], to = fastest(w, job), scale = w->s->jobs[job].scale;
		if (to == HD_SCHED_NONE || !(w->s->jobs[job].rate[to] > 0))
			continue;
		bool in_time = runs_for(w->s, job, to) <= start_s;
		if (to == type && !in_time && scale > over)
			continue;
		if (to == type && !in_time)
			over -= scale;
		err = place(w, job, to);
	}
	return err;
}

static enum hd_err exact(struct queue_walk *w)
{
	enum hd_err err = HD_OK;

	while (!err && w->head < w->n) {
		uint32_t job = w->queue[w->head], type = fastest(w, job);
		if (type == HD_SCHED_NONE || !(w->s->jobs[job].rate[type] > 0))
			break;
		w->head++;
		err = place(w, job, type);
	}
	return !err && w->backfills && w->head < w->n ? backfill(w) : err;
}

/* ---- both ---- */

struct queue_turn { double key; uint32_t job; };

static int by_turn(const void *a, const void *b)
{
	const struct queue_turn *x = a, *y = b;

	return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->job < y->job ? -1 : x->job > y->job;
}

static enum hd_err open_walk(struct queue_walk *w)
{
	uint32_t n = w->s->njobs;

	w->free = hd_arena_take(w->arena, w->s->ntypes, sizeof *w->free);
	w->queue = hd_arena_take(w->arena, n, sizeof *w->queue);
	w->order = hd_arena_take(w->arena, 2 * (size_t)n, sizeof *w->order);
	w->shape = hd_arena_take(w->arena, n, sizeof *w->shape);
	if (!w->free || !w->queue || !w->order || !w->shape)
		return hd_fail(w->diag, HD_E_NOMEM, "no memory for %u jobs", n);
	for (uint32_t j = 0; j < w->s->ntypes; j++)
		w->free[j] = w->s->types[j].n;
	return HD_OK;
}

/* The time that a job takes at best. */
static double shortest(const struct hd_sched_state *s, uint32_t job)
{
	double least = INFINITY;

	for (uint32_t j = 0; j < s->ntypes; j++)
		least = fmin(least, runs_for(s, job, j));
	return least;
}

static enum hd_err line_up(struct queue_walk *w, bool afresh)
{
	struct queue_turn *turns = hd_arena_take(w->arena, w->s->njobs + 1, sizeof *turns);
	uint32_t n = 0;

	if (!turns)
		return hd_fail(w->diag, HD_E_NOMEM, "no memory for %u jobs", w->s->njobs);
	for (uint32_t i = 0; i < w->s->njobs; i++) {
		if (hd_never_whole(w->s, i) || (!afresh && hd_ledger_find(&memory(w)->placed,
			w->s->jobs[i].id)))
			continue;
		turns[n++] = (struct queue_turn){ w->by == BY_TIME ? shortest(w->s, i) : w->by == BY_WEIGHT ?
			-w->s->jobs[i].weight : 0, i };
	}
	qsort(turns, n, sizeof *turns, by_turn);
	for (uint32_t k = 0; k < n; k++)
		w->queue[k] = turns[k].job;
	w->n = n;
	return HD_OK;
}

static enum hd_err answer(struct queue_walk *w, struct hd_shares *out)
{
	struct hd_collect c = { .out = out, .arena = w->arena };
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; !err && k < w->norder; k++)
		if (w->shape[w->order[k]].rate[0] > 0)
			err = hd_collect(&c, &w->shape[w->order[k]], 1);
	return err ? hd_fail(w->diag, err, "no memory for %u jobs", w->s->njobs) : HD_OK;
}

static enum hd_err run(struct hd_policy *policy, const struct hd_sched_state *state, enum order by,
	bool backfills, struct hd_arena *arena,
	struct hd_shares *out, struct hd_diag *diag)
{
	struct queue_walk w = { .policy = policy, .s = state, .arena = arena, .diag = diag, .by = by,
		.backfills = backfills };
	bool theirs = policy->set.fidelity == HD_FIDELITY_GAVEL,
		plain = policy->set.variant == HD_VARIANT_PLAIN;
	bool packed = policy->set.variant == HD_VARIANT_PACKED;
	bool afresh = (theirs && !plain) || packed || (by == BY_TIME && policy->set.preempt);
	enum hd_err err = open_walk(&w);

	if (!err && !theirs)
		forget_homeless(&w);
	if (!err)
		err = line_up(&w, afresh);
	if (!err && afresh)
		memory(&w)->placed.n = 0;
	if (!err && theirs && plain)
		err = published_plain(&w);
	else if (!err && (theirs || packed))
		err = published_hetero(&w);
	else if (!err)
		err = stay(&w, false);
	if (!err && !theirs && !packed)
		err = exact(&w);
	if (err)
		return err;
	hd_ledger_keep(&memory(&w)->placed, state);
	for (uint32_t k = 0; k < w.norder; k++) {
		const struct queue_placed *p = hd_ledger_find(&memory(&w)->placed,
			state->jobs[w.order[k]].id);
		w.shape[w.order[k]] = hd_way_single(state, w.order[k], p->type);
	}
	if (packed)
		published_packed(&w);
	return answer(&w, out);
}

enum hd_err hd_fifo_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out, struct hd_diag *diag)
{
	return run(policy, state, BY_ARRIVAL, policy->set.backfill, arena, out, diag);
}

enum hd_err hd_sjf_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out, struct hd_diag *diag)
{
	return run(policy, state, BY_TIME, policy->set.backfill, arena, out, diag);
}

enum hd_err hd_priority_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	return run(policy, state, BY_WEIGHT, policy->set.backfill, arena, out, diag);
}

enum hd_err hd_priority_backfill_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	return run(policy, state, BY_WEIGHT, true, arena, out, diag);
}
