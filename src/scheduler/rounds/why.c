#define _GNU_SOURCE        /* qsort_r */
#include "scheduler/rounds_why.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "scheduler/rounds/int.h"

enum { CELLS_TRIED = 1 << 20 };           /* patience is tried for so many cells times rounds */

static bool belongs(const struct combination *c, uint64_t id) { return c->id[0] == id ||
	(c->nmembers == 2 && c->id[1] == id); }
static bool runs_there(const struct combination *c) { return c->rate[0] > 0 &&
	(c->nmembers == 1 || c->rate[1] > 0);
	}

/* ---- the walk, once more ---- */

struct again {
	bool plain;                               /* from all devices, without hysteresis and reservations */
	uint32_t type, add;                       /* with more devices of a type */
};

struct at_turn {
	bool taken;
	uint32_t free;                            /* of the best cell's type */
	uint32_t nahead, ahead[HD_WAIT_AHEAD];    /* cells, a ring: the last ones taken there before */
};

struct why_order { const struct hd_rounds *r; bool plain; };

static int by_priority(const void *a, const void *b, void *user)
{
	const struct why_order *o = user;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct combination *x = &o->r->cell[i], *y = &o->r->cell[k];
	double pairs[][2] = { { o->plain ? x->plain : x->priority, o->plain ? y->plain : y->priority },
		{ x->deficit, y->deficit }, { x->x, y->x } };

	for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
		if (pairs[p][0] != pairs[p][1])
			return pairs[p][0] < pairs[p][1] ? 1 : -1;
	return (i > k) - (i < k);
}

/* What a walk begins with: all usable devices; between boundaries without those of jobs that went on. */
static void begin_left(const struct hd_rounds *r, const struct again *how, bool *picked, uint32_t *left)
{
	for (uint32_t t = 0; t < r->ntypes; t++)
		left[t] = hd_rounds_usable(r, t) + (t == how->type ? how->add : 0);
	for (uint32_t i = 0; i < r->nruns && r->mid && !how->plain; i++) {
		const struct hd_round_run *run = &r->run[i];
		bool now = false;
		for (uint32_t p = 0; p < r->npicks; p++)
			now |= r->cell[r->pick[p].cell].id[0] == run->id[0];
		for (uint8_t k = 0; k < run->nneeds && !now; k++)
			left[run->need[k].type] -= run->need[k].n < left[run->need[k].type] ? run->need[k].n :
				left[run->need[k].type];
		for (uint8_t m = 0; m < run->nmembers && !now; m++) {
			const struct round_job *job = rounds_job(r, run->id[m]);
			if (job)
				picked[job - r->job] = true;
		}
	}
}

static bool is_free(const struct hd_rounds *r, const struct combination *c, const bool *picked)
{
	for (uint8_t m = 0; m < c->nmembers; m++)
		if (picked[rounds_job(r, c->id[m]) - r->job])
			return false;
	return true;
}

static bool has_reserved(const struct hd_rounds *r, const struct combination *c)
{
	for (uint8_t m = 0; m < c->nmembers; m++)
		if (rounds_job(r, c->id[m])->reserved)
			return true;
	return false;
}

static bool needs(const struct combination *c, uint32_t type)
{
	for (uint8_t k = 0; k < c->nneeds; k++)
		if (c->need[k].type == type)
			return true;
	return false;
}

/* Whether any way of job `id` is taken; what was there when cell `best` had its turn. */
static enum hd_err walk_again(const struct hd_rounds *r, const struct again *how, uint64_t id, uint32_t best,
	struct at_turn *turn, struct hd_diag *diag)
{
	uint32_t *list = hd_alloc((r->ncells + 1) * sizeof *list), left[HD_SCHED_TYPES], n = 0;
	bool *picked = hd_alloc(r->njobs * sizeof *picked), met = false;
	struct why_order order = { r, how->plain };

	*turn = (struct at_turn){ 0 };
	if (!list || !picked) {
		hd_free(list);
		hd_free(picked);
		return hd_fail(diag, HD_E_NOMEM, "no memory for the walk of %u cells", r->ncells);
	}
	memset(picked, 0, r->njobs * sizeof *picked);
	begin_left(r, how, picked, left);
	for (uint32_t i = 0; i < r->ncells; i++)
		if (r->cell[i].priority > 0 && !r->cell[i].dead)
			list[n++] = i;
	qsort_r(list, n, sizeof *list, by_priority, &order);
	for (int first = how->plain ? 0 : 1; first >= 0; first--)
		for (uint32_t i = 0; i < n; i++) {
			const struct combination *c = &r->cell[list[i]];
			if (first && !has_reserved(r, c))
				continue;
			if (list[i] == best && !met) {
				turn->free = left[c->need[0].type];
				met = true;
			}
			if (!is_free(r, c, picked) || !rounds_fits(c, left))
				continue;
			for (uint8_t k = 0; k < c->nneeds; k++)
				left[c->need[k].type] -= c->need[k].n;
			for (uint8_t m = 0; m < c->nmembers; m++)
				picked[rounds_job(r, c->id[m]) - r->job] = true;
			turn->taken |= belongs(c, id);
			if (!met && needs(c, r->cell[best].need[0].type))
				turn->ahead[turn->nahead++ % HD_WAIT_AHEAD] = list[i];
		}
	hd_free(list);
	hd_free(picked);
	return HD_OK;
}

/* ---- patience ---- */

static void *twin(const void *from, size_t n, size_t size)
{
	void *to = hd_alloc(n * size + 1);

	if (to && n)
		memcpy(to, from, n * size);
	return to;
}

/* Books, places and the round at hand; scratch is its own. */
static enum hd_err copy(const struct hd_rounds *r, struct hd_rounds **to, struct hd_diag *diag)
{
	struct hd_rounds *c = twin(r, 1, sizeof *r);
	uint32_t n = r->first_device[r->ntypes];

	if (!c)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a copy of the rounds");
	c->host = twin(r->host, n, sizeof *r->host);
	c->usable = twin(r->usable, n, sizeof *r->usable);
	c->taken = twin(r->taken, n, sizeof *r->taken);
	c->kept_for = twin(r->kept_for, n, sizeof *r->kept_for);
	c->free_at_host = twin(r->free_at_host, r->nhosts, sizeof *r->free_at_host);
	c->cell = twin(r->cell, r->ncells, sizeof *r->cell);
	c->cells_cap = r->ncells;
	c->job = twin(r->job, r->njobs, sizeof *r->job);
	c->jobs_cap = r->njobs;
	c->run = twin(r->run, r->nruns, sizeof *r->run);
	c->runs_cap = r->nruns;
	c->device = twin(r->device, r->ndevices_used, sizeof *r->device);
	c->device_cap = r->ndevices_used;
	c->list = NULL;
	c->pick = NULL;
	c->old_run = NULL;
	c->old_device = NULL;
	c->list_cap = c->picks_cap = c->old_cap = c->old_device_cap = c->npicks = c->nold = 0;
	if (!c->host || !c->usable || !c->taken || !c->kept_for || !c->free_at_host || !c->cell || !c->job ||
		!c->run || !c->device) {
		hd_rounds_destroy(c);
		return hd_fail(diag, HD_E_NOMEM, "no memory for a copy of the rounds");
	}
	*to = c;
	return HD_OK;
}

/* The round at hand ends, and so do the next ones, until the job has devices. */
static enum hd_err be_patient(const struct hd_rounds *r, uint64_t id, uint32_t *rounds, struct hd_diag *diag)
{
	uint32_t most = CELLS_TRIED / (r->ncells + 1) + 1;
	struct hd_round round = { r->nruns, r->run, r->device };
	struct hd_rounds *c = NULL;
	enum hd_err err = copy(r, &c, diag);

	if (err)
		return err;
	*rounds = 0;
	for (uint32_t k = 1; !err && k <= most && k <= HD_WAIT_ROUNDS && !*rounds; k++) {
		for (uint32_t i = 0; i < round.nruns; i++)
			hd_rounds_ran(c, &round.run[i], c->set.round_s);
		err = hd_rounds_next(c, &round, diag);
		const struct round_job *job = err ? NULL : rounds_job(c, id);
		if (job && job->held != UINT32_MAX)
			*rounds = k;
	}
	hd_rounds_destroy(c);
	return err;
}

/* ---- the code ---- */

/* Devices that must come to `type` until the walk takes the job: with as many as all want there it does. */
static enum hd_err find_add(const struct hd_rounds *r, uint64_t id, uint32_t best, uint32_t type,
	uint32_t from, uint32_t *add, struct hd_diag *diag)
{
	uint64_t all = 0;
	struct at_turn turn = { 0 };
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < r->ncells; i++)
		for (uint8_t k = 0; k < r->cell[i].nneeds; k++)
			all += r->cell[i].need[k].type == type ? r->cell[i].need[k].n : 0;
	*add = 0;
	for (uint64_t n = from; !err && n <= all && !*add; n += n < from + 16 ? 1 : n / 2) {
		err = walk_again(r, &(struct again){ .type = type, .add = (uint32_t)n }, id, best, &turn,
			diag);
		*add = !err && turn.taken ? (uint32_t)n : 0;
	}
	if (!err && !*add) {
		err = walk_again(r, &(struct again){ .type = type, .add = (uint32_t)all }, id, best, &turn,
			diag);
		*add = !err && turn.taken ? (uint32_t)all : 0;
	}
	return err;
}

/* The way with a share that leads; UINT32_MAX: none. */
static uint32_t best_cell(const struct hd_rounds *r, uint64_t id)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < r->ncells; i++) {
		const struct combination *c = &r->cell[i];
		if (belongs(c, id) && !c->dead && c->x > 0 && runs_there(c) &&
			(best == UINT32_MAX || c->priority > r->cell[best].priority))
			best = i;
	}
	return best;
}

/* Of its ways alone: whether a type is large enough, whether enough of it is in service; on which type the
 * least is missing. */
static void look_at_types(const struct hd_rounds *r, uint64_t id, bool *large, bool *enough, bool *known,
	uint32_t *type, uint32_t *missing)
{
	*large = *enough = *known = false;
	*type = HD_SCHED_NONE;
	*missing = UINT32_MAX;
	for (uint32_t i = 0; i < r->ncells; i++) {
		const struct combination *c = &r->cell[i];
		if (!c->own || c->nmembers != 1 || c->id[0] != id)
			continue;
		*known |= c->known;
		if (!(c->rate[0] > 0))
			continue;
		uint32_t t = c->need[0].type, usable = hd_rounds_usable(r, t);
		*large |= c->need[0].n <= r->type[t].n;
		*enough |= c->need[0].n <= usable;
		if (c->need[0].n > usable && c->need[0].n - usable < *missing) {
			*missing = c->need[0].n - usable;
			*type = t;
		}
	}
}

static enum hd_err judge_walk(const struct hd_rounds *r, uint64_t id, uint32_t best, struct hd_wait *w,
	struct hd_diag *diag)
{
	struct at_turn turn = { 0 }, plain = { 0 };
	enum hd_err err = walk_again(r, &(struct again){ .type = HD_SCHED_NONE }, id, best, &turn, diag);

	if (!err)
		err = walk_again(r, &(struct again){ .type = HD_SCHED_NONE, .plain = true }, id, best, &plain,
			diag);
	if (err)
		return err;
	w->free = turn.free;
	for (uint32_t k = 0; k < turn.nahead && k < HD_WAIT_AHEAD; k++) {
		const struct combination *c = &r->cell[turn.ahead[(turn.nahead - 1 - k) % HD_WAIT_AHEAD]];
		w->ahead[w->nahead].id = c->id[0];
		w->ahead[w->nahead++].priority = c->priority;
	}
	if (turn.taken) {                                 /* its share is newer than the walk */
		w->code = HD_WHY_QUEUED_NEW;
		return HD_OK;
	}
	w->code = plain.taken ? HD_WHY_HELD_BACK : w->received_s >= w->due_s ? HD_WHY_SHARE_PAID : turn.free ?
		HD_WHY_GANG_NO_FIT : HD_WHY_OUTRANKED;
	if (w->code == HD_WHY_GANG_NO_FIT || w->code == HD_WHY_OUTRANKED)
		err = find_add(r, id, best, w->type, w->need > w->free ? w->need - w->free : 1, &w->add,
			diag);
	return err ? err : be_patient(r, id, &w->rounds, diag);
}

enum hd_err hd_rounds_why(const struct hd_rounds *r, double now_s, uint64_t id, struct hd_wait *w,
	struct hd_diag *diag)
{
	const struct round_job *job = rounds_job(r, id);
	uint32_t best, type, missing;
	bool large, enough, known;

	*w = (struct hd_wait){ .type = HD_SCHED_NONE };
	if (r->set.fidelity != HD_FIDELITY_EXACT)
		return hd_fail(diag, HD_E_INVAL, "rounds of fidelity gavel explain nothing");
	if (!job || job->dead)
		return hd_fail(diag, HD_E_NOTFOUND, "there is no job %llu in the rounds",
			(unsigned long long)id);
	if (job->held != UINT32_MAX) {
		w->code = HD_WHY_RUNS;
		return HD_OK;
	}
	best = best_cell(r, id);
	look_at_types(r, id, &large, &enough, &known, &type, &missing);
	if (best != UINT32_MAX) {
		const struct combination *c = &r->cell[best];
		w->type = c->need[0].type;
		w->need = c->need[0].n;
		w->share = c->x;
		w->received_s = c->t - r->set.round_s / 2;
		w->due_s = c->deficit + c->x * fmax(0, now_s - r->last_reset_s);
		w->priority = c->priority;
		large = true;
		enough |= w->need <= hd_rounds_usable(r, w->type);
	} else if (type != HD_SCHED_NONE) {
		w->type = type;
		w->need = job->scale;
		w->free = hd_rounds_usable(r, type);
	}
	w->add = large && enough ? 0 : missing == UINT32_MAX ? 0 : missing;
	if (!large)
		w->code = HD_WHY_UNRUNNABLE;
	else if (!enough)
		w->code = HD_WHY_DRAINING;
	else if (!known || !job->walked || (best != UINT32_MAX && !(w->priority > 0)))
		w->code = HD_WHY_QUEUED_NEW;
	else if (best == UINT32_MAX)
		w->code = HD_WHY_NO_SHARE;
	else
		return judge_walk(r, id, best, w, diag);
	return HD_OK;
}

/* ---- the sentence ---- */

static bool may_see(const struct hd_explain *e, uint64_t id)
{
	return !e->may_see || e->may_see(e->user, id);
}

/* Of those that may not be known their number alone: a priority tells of a job, too. */
static void say_ahead(const struct hd_explain *e, const struct hd_wait *w, char *to, size_t cap)
{
	uint32_t n = 0, hidden = 0;
	struct hd_text text;

	for (uint32_t k = 0; k < w->nahead; k++)
		hidden += !may_see(e, w->ahead[k].id);
	hd_text_fixed(&text, to, cap);
	hd_text_add(&text, "");
	for (uint32_t k = 0; k < w->nahead; k++)
		if (may_see(e, w->ahead[k].id))
			hd_text_addf(&text, "%s%llu (priority %.3g)",
				n++ ? ", " : w->nahead - hidden == 1 ? "job " : "jobs ",
				(unsigned long long)w->ahead[k].id, w->ahead[k].priority);
	if (hidden)
		hd_text_addf(&text, "%s%u job%s of others", n ? " and " : "", hidden, hidden == 1 ? "" : "s");
}

static void say_walk(const struct hd_explain *e, uint64_t id, const struct hd_wait *w, struct hd_why *why)
{
	unsigned long long job = id;
	const char *type = w->type == HD_SCHED_NONE ? "" : e->state->types[w->type].name;
	char ahead[160], *to = why->text;
	size_t cap = sizeof why->text;

	say_ahead(e, w, ahead, sizeof ahead);
	switch (w->code) {
	case HD_WHY_RUNS:
		snprintf(to, cap, "job %llu has devices", job);
		break;
	case HD_WHY_DRAINING:
		snprintf(to, cap, "job %llu waits: it needs %u %s at once, %u are in service", job, w->need,
			type, w->free);
		break;
	case HD_WHY_QUEUED_NEW:
		if (isfinite(e->boundary_s))
			snprintf(to, cap,
				"job %llu is new to the round: devices are given out again in %.3g s", job,
				fmax(0, e->boundary_s - e->now_s));
		else
			snprintf(to, cap, "job %llu is new to the round", job);
		break;
	case HD_WHY_HELD_BACK:
		snprintf(to, cap,
			"job %llu leads on %s by its share (priority %.3g), and %s keep what they have: a "
			"change would cost more than it brings", job,
			type, w->priority, *ahead ? ahead : "others");
		break;
	case HD_WHY_SHARE_PAID:
		snprintf(to, cap,
			"job %llu has had its share for now: %.3g of the time on %s, %.3g s received, %.3g "
			"s due", job, w->share, type, w->received_s,
			w->due_s);
		break;
	case HD_WHY_GANG_NO_FIT:
		snprintf(to, cap,
			"job %llu waits: it needs %u %s at once and %u were left at its turn, after %s", job,
			w->need, type, w->free, ahead);
		break;
	case HD_WHY_OUTRANKED:
		snprintf(to, cap, "job %llu waits: its priority on %s is %.3g, and the last %s went to %s",
			job, type, w->priority, type, ahead);
		break;
	case HD_WHY_OVER: case HD_WHY_UNRUNNABLE: case HD_WHY_DEADLINE_SHORT: case HD_WHY_LEFT_IDLE:
	case HD_WHY_TOO_DEAR: case HD_WHY_QUEUED:
	case HD_WHY_NO_SHARE:
		break;
	}
}

static void say_help(const struct hd_explain *e, const struct hd_wait *w, struct hd_why *why)
{
	const char *type = w->type == HD_SCHED_NONE ? "" : e->state->types[w->type].name;
	char *to = why->help;
	size_t cap = sizeof why->help;

	why->fix_type = w->type;
	if (w->code == HD_WHY_DRAINING && w->add) {
		why->fix = HD_FIX_ADD;
		why->value = w->add;
		snprintf(to, cap, "with %u more %s in service it would be given devices again", w->add, type);
	} else if (w->add) {
		why->fix = HD_FIX_ADD;
		why->value = w->add;
		snprintf(to, cap, "with %u more %s it would run now", w->add, type);
	} else if (w->code == HD_WHY_QUEUED_NEW) {
		why->fix = HD_FIX_ROUNDS;
		why->value = 1;
	} else if (w->rounds) {
		why->fix = w->code == HD_WHY_HELD_BACK ? HD_FIX_KAPPA : HD_FIX_ROUNDS;
		why->value = w->rounds;
		snprintf(to, cap, "if nothing changes it runs in %u round%s", w->rounds,
			w->rounds == 1 ? "" : "s");
	} else if (w->code == HD_WHY_HELD_BACK) {
		why->fix = HD_FIX_KAPPA;
		snprintf(to, cap, "its priority grows with every round");
	}
}

enum hd_err hd_rounds_explain(const struct hd_explain *e, uint64_t id, struct hd_arena *arena,
	struct hd_why *why, struct hd_diag *diag)
{
	uint32_t job = hd_sched_find(e->state, id);
	struct hd_wait w;
	enum hd_err err = hd_rounds_why(e->rounds, e->now_s, id, &w, diag);

	if (err)
		return err;
	*why = (struct hd_why){ .code = w.code, .type = w.type, .fix_type = HD_SCHED_NONE };
	if (job != HD_SCHED_NONE && (w.code == HD_WHY_NO_SHARE || w.code == HD_WHY_UNRUNNABLE)) {
		if (e->ask)
			return hd_sched_why(e->setting, e->state, e->shares, job, arena, why, diag);
		hd_sched_why_code(e->setting, e->state, e->shares, job, why);
		return HD_OK;
	}
	if (w.code == HD_WHY_NO_SHARE)
		why->code = HD_WHY_QUEUED_NEW;            /* the shares do not know it yet */
	say_walk(e, id, &w, why);
	say_help(e, &w, why);
	return HD_OK;
}
