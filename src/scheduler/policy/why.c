#include "scheduler/sched_why.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {
#define X(id, name) name,
	HD_WHYS(X)
#undef X
};

const char *hd_why_name(enum hd_why_code code) { return names[code]; }

static bool has_share(const struct hd_shares *shares, uint32_t job)
{
	for (uint32_t k = 0; k < shares->nshapes; k++)
		for (int m = 0; m < shares->shape[k].nmembers; m++)
			if (shares->shape[k].member[m] == job)
				return true;
	return false;
}

static double share_of(const struct hd_shares *shares, uint32_t job)
{
	double x = 0;

	for (uint32_t k = 0; k < shares->nshapes; k++)
		for (int m = 0; m < shares->shape[k].nmembers; m++)
			x += shares->shape[k].member[m] == job ? shares->x[k] : 0;
	return x;
}

/* The dearest type among those that the job runs on; without prices the one with least room. */
static uint32_t tight(const struct hd_sched_state *s, const struct hd_shares *shares, uint32_t job)
{
	uint32_t most = HD_SCHED_NONE;

	for (uint32_t j = 0; shares->y && j < s->ntypes; j++)
		if (hd_sched_fits(s, job, j) && shares->y[j] > 0 &&
			(most == HD_SCHED_NONE || shares->y[j] > shares->y[most]))
			most = j;
	return most;
}

/* ---- the same cluster, with something changed ---- */

static enum hd_err solve(const struct hd_policy_setting *set, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *shares,
	struct hd_diag *diag)
{
	struct hd_policy *policy = NULL;
	enum hd_err err = hd_policy_create(&policy, set, diag);

	if (!err)
		err = hd_policy_allocate(policy, state, arena, shares, diag);
	hd_policy_destroy(policy);
	return err;
}

static void scale_to(struct hd_sched_job *job, uint32_t ntypes, double *rate, uint32_t scale)
{
	for (uint32_t t = 0; t < ntypes; t++)
		rate[t] = job->rate[t] * scale / job->scale;
	job->rate = rate;
	job->scale = scale;
	job->elastic = NULL;                              /* on that many or not at all */
}

static enum hd_err changed(const struct hd_sched_state *state, const struct hd_change *change, uint32_t n,
	struct hd_arena *arena,
	struct hd_sched_state *to, struct hd_diag *diag)
{
	struct hd_sched_job *jobs = hd_arena_take(arena, state->njobs, sizeof *jobs);
	struct hd_sched_type *types = hd_arena_take(arena, state->ntypes, sizeof *types);

	*to = *state;
	if ((!jobs && state->njobs) || !types)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs", state->njobs);
	if (state->njobs)
		memcpy(jobs, state->jobs, state->njobs * sizeof *jobs);
	memcpy(types, state->types, state->ntypes * sizeof *types);
	to->jobs = jobs;
	to->types = types;
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_change *c = &change[i];
		double *rate = c->kind == HD_CHANGE_SCALE ? hd_arena_take(arena, state->ntypes,
			sizeof *rate) : NULL;
		bool whole = c->value == floor(c->value) && c->value <= HD_SCHED_DEVICES;
		bool good = c->kind == HD_CHANGE_WEIGHT ? c->value >= 1e-15 &&
			c->value <= 1e15 : c->kind == HD_CHANGE_SCALE ? c->value >= 1 && whole :
			c->kind == HD_CHANGE_ADD ? whole && c->value + types[c->at].n >= 0 &&
			c->value + types[c->at].n <= HD_SCHED_DEVICES :
			c->kind == HD_CHANGE_REMOVE || hd_sched_in(HD_SCHED_IN_MONEY, c->value);
		if (!good || (c->kind == HD_CHANGE_SCALE && !rate))
			return hd_fail(diag, HD_E_INVAL,
				"%g is no weight (above 0), scale (devices), number to add, or price that "
				"can be tried", c->value);
		switch (c->kind) {
		case HD_CHANGE_WEIGHT: jobs[c->at].weight = c->value; break;
		case HD_CHANGE_SCALE: scale_to(&jobs[c->at], state->ntypes, rate, (uint32_t)c->value); break;
		case HD_CHANGE_ADD: types[c->at].n = (uint32_t)(types[c->at].n + c->value); break;
		case HD_CHANGE_PRICE: types[c->at].price_usd_h = c->value; break;
		case HD_CHANGE_REMOVE: jobs[c->at].steps_left = 0; break;
		}
	}
	return HD_OK;
}

static bool differs(double a, double b) { return fabs(a - b) > 1e-6 * fmax(fabs(a), fabs(b)) &&
	fabs(a - b) > 1e-9; }

enum hd_err hd_sched_what_if(const struct hd_policy_setting *set, const struct hd_policy_setting *then,
	const struct hd_sched_state *state,
	const struct hd_change *change, uint32_t nchanges, struct hd_arena *arena,
	const struct hd_what_if **rows, uint32_t *nrows, struct hd_diag *diag)
{
	struct hd_what_if *list = hd_arena_take(arena, (size_t)state->njobs + 1, sizeof *list);
	struct hd_sched_state other;
	struct hd_shares shares[2];
	uint32_t n = 0;
	enum hd_err err = list ? changed(state, change, nchanges, arena, &other, diag) : hd_fail(diag,
		HD_E_NOMEM, "no memory for %u jobs", state->njobs);

	if (!err)
		err = solve(set, state, arena, &shares[0], diag);
	if (!err)
		err = solve(then ? then : set, &other, arena, &shares[1], diag);
	for (int k = 0; !err && k < 2; k++)
		if (shares[k].kept && !(set->stop && atomic_load(set->stop)))
			err = hd_fail(diag, HD_E_AGAIN, "the policy gave up%s: %s",
				k ? " on the cluster as it would be" : "", shares[k].kept_why);
	for (int gains = 0; !err && gains < 2; gains++)
		for (uint32_t i = 0; i < state->njobs; i++) {
			struct hd_what_if row = { i, { share_of(&shares[0], i), share_of(&shares[1], i) },
				{ shares[0].e[i], shares[1].e[i] } };
			bool more = differs(row.rate[0], row.rate[1]) ? row.rate[1] > row.rate[0] :
				row.share[1] > row.share[0];
			if ((differs(row.rate[0], row.rate[1]) || differs(row.share[0], row.share[1])) &&
				more == gains)
				list[n++] = row;
		}
	if (err)
		return err;
	*rows = list;
	*nrows = n;
	return HD_OK;
}

/* Whether the job has a share with one thing changed. */
static enum hd_err starts_with(const struct hd_policy_setting *set, const struct hd_sched_state *state,
	uint32_t job, const struct hd_change *change,
	struct hd_arena *arena, bool *starts, struct hd_diag *diag)
{
	struct hd_sched_state other;
	struct hd_shares shares;
	enum hd_err err = changed(state, change, 1, arena, &other, diag);

	if (!err)
		err = solve(set, &other, arena, &shares, diag);
	*starts = !err && has_share(&shares, job);
	return err;
}

/* ---- ways out ---- */

/* Doubling, then the smallest of sixteenths between; in multiples of its own weight. */
static enum hd_err find_weight(const struct hd_policy_setting *set, const struct hd_sched_state *s,
	uint32_t job, struct hd_arena *arena, struct hd_why *why,
	struct hd_diag *diag)
{
	double own = s->jobs[job].weight, lo = 1, hi = 2;
	bool starts = false;
	enum hd_err err = HD_OK;

	for (; !err && hi <= 1024; lo = hi, hi *= 2) {
		err = starts_with(set, s, job, &(struct hd_change){ HD_CHANGE_WEIGHT, job, own * hi }, arena,
			&starts, diag);
		if (starts)
			break;
	}
	for (int step = 0; !err && starts && step < 4; step++) {
		double mid = (lo + hi) / 2;
		bool there;
		err = starts_with(set, s, job, &(struct hd_change){ HD_CHANGE_WEIGHT, job, own * mid }, arena,
			&there, diag);
		if (there)
			hi = mid;
		else
			lo = mid;
	}
	if (err || !starts)
		return err;
	why->fix = HD_FIX_WEIGHT;
	why->value = why->weight = own * hi;
	snprintf(why->help, sizeof why->help, "at priority %.4g it would start now", why->value);
	return HD_OK;
}

/* Devices of its fastest type that are missing, doubling. */
static enum hd_err find_add(const struct hd_policy_setting *set, const struct hd_sched_state *s, uint32_t job,
	struct hd_arena *arena, struct hd_why *why,
	struct hd_diag *diag)
{
	uint32_t type = HD_SCHED_NONE, scale = s->jobs[job].scale;
	bool starts = false;
	enum hd_err err = HD_OK;
	double n;

	for (uint32_t t = 0; t < s->ntypes; t++)
		if (s->jobs[job].rate[t] > 0 && (type == HD_SCHED_NONE ||
			s->jobs[job].rate[t] > s->jobs[job].rate[type]))
			type = t;
	if (type == HD_SCHED_NONE)
		return HD_OK;
	for (n = s->types[type].n < scale ? scale - s->types[type].n : 1; !err && !starts &&
		n <= 64.0 * scale + 1024; n *= starts ? 1 : 2) {
		err = starts_with(set, s, job, &(struct hd_change){ HD_CHANGE_ADD, type, n }, arena, &starts,
			diag);
		if (starts)
			break;
	}
	if (err || !starts)
		return err;
	why->fix = HD_FIX_ADD;
	why->fix_type = type;
	why->value = n;
	snprintf(why->help, sizeof why->help, "with %.0f more %s it would have a share", n,
		s->types[type].name);
	return HD_OK;
}

/* A price at which its steps are worth what they cost there, halving, of the type that comes nearest. */
static enum hd_err find_price(const struct hd_policy_setting *set, const struct hd_sched_state *s,
	uint32_t job, struct hd_arena *arena, struct hd_why *why,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	bool starts = false;

	for (int halvings = 1; !err && !starts && halvings <= 16; halvings++)
		for (uint32_t t = 0; t < s->ntypes && !err && !starts; t++) {
			double price = ldexp(s->types[t].price_usd_h, -halvings);
			if (!hd_sched_fits(s, job, t) || !(price > 0))
				continue;
			err = starts_with(set, s, job, &(struct hd_change){ HD_CHANGE_PRICE, t, price },
				arena, &starts, diag);
			if (!starts)
				continue;
			why->fix = HD_FIX_PRICE;
			why->fix_type = t;
			why->value = price;
			snprintf(why->help, sizeof why->help, "at %.3g per %s and hour it would start", price,
				s->types[t].name);
		}
	return err;
}

static enum hd_err find_help(const struct hd_policy_setting *set, const struct hd_sched_state *s,
	uint32_t job, struct hd_arena *arena, struct hd_why *why,
	struct hd_diag *diag)
{
	typedef enum hd_err finder(const struct hd_policy_setting *, const struct hd_sched_state *, uint32_t,
		struct hd_arena *, struct hd_why *,
		struct hd_diag *);
	static const struct { enum hd_why_code code; finder *find[2]; } ways[] = {
		{ HD_WHY_UNRUNNABLE,     { find_add, NULL } },
		{ HD_WHY_QUEUED,         { find_add, NULL } },
		{ HD_WHY_NO_SHARE,       { find_weight, find_add } },
		{ HD_WHY_TOO_DEAR,       { find_add, find_price } },
		{ HD_WHY_LEFT_IDLE,      { find_price, find_add } },
		{ HD_WHY_DEADLINE_SHORT, { find_add, find_price } },
	};
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		for (int k = 0; k < 2 && !err && ways[i].code == why->code && ways[i].find[k] && !why->fix;
			k++)
			err = ways[i].find[k](set, s, job, arena, why, diag);
	return err;
}

/* ---- reasons ---- */

/* Money per step on a type, and what a step is worth (sched_state.h, the cost policy). */
static double cost_of_step(const struct hd_sched_state *s, uint32_t job, uint32_t type)
{
	return s->types[type].price_usd_h / 3600 * s->jobs[job].scale / s->jobs[job].rate[type];
}

static void say_dear(const struct hd_policy_setting *set, const struct hd_sched_state *s,
	const struct hd_shares *shares, uint32_t job, struct hd_why *why)
{
	double used[HD_SCHED_TYPES] = { 0 }, least = INFINITY,
		beta = set->beta < 0 ? 0 : set->beta > 0 ? set->beta : 0.25;
	uint32_t idle = HD_SCHED_NONE, cheapest = HD_SCHED_NONE;

	for (uint32_t k = 0; k < shares->nshapes; k++)
		for (uint8_t m = 0; m < shares->shape[k].nneeds; m++)
			used[shares->shape[k].need[m].type] += shares->x[k] * shares->shape[k].need[m].n;
	for (uint32_t t = 0; t < s->ntypes; t++) {
		if (!hd_sched_fits(s, job, t))
			continue;
		bool room = s->types[t].n - used[t] >= s->jobs[job].scale - 1e-9;
		if (room && (idle == HD_SCHED_NONE || cost_of_step(s, job, t) < cost_of_step(s, job, idle)))
			idle = t;
		if (cost_of_step(s, job, t) < least) {
			least = cost_of_step(s, job, t);
			cheapest = t;
		}
	}
	double worth = s->jobs[job].usd_per_step > 0 ? s->jobs[job].usd_per_step : (1 + beta) * least;
	uint32_t type = idle == HD_SCHED_NONE ? cheapest : idle;
	why->code = idle == HD_SCHED_NONE ? HD_WHY_TOO_DEAR : HD_WHY_LEFT_IDLE;
	why->type = type;
	snprintf(why->text, sizeof why->text, idle == HD_SCHED_NONE ?
		"job %llu waits: %s is taken, and elsewhere its steps cost more than the %.3g that one is "
		"worth" :
		"job %llu waits: %s stands idle, and a step costs more there than the %.3g that it is worth",
		(unsigned long long)s->jobs[job].id, s->types[type].name, worth);
}

static void say_short(const struct hd_sched_state *s, const struct hd_shares *shares, uint32_t job,
	struct hd_why *why)
{
	double by = shares->short_by[job];
	int len = snprintf(why->text, sizeof why->text,
		"job %llu waits and will miss its deadline: %.3g steps/s are missing",
		(unsigned long long)s->jobs[job].id, by);

	why->code = HD_WHY_DEADLINE_SHORT;
	for (uint32_t t = 0, n = 0; t < s->ntypes && len > 0 && (size_t)len < sizeof why->text; t++)
		if (s->jobs[job].rate[t] > 0) {
			len += snprintf(why->text + len, sizeof why->text - (size_t)len, "%s %.0f more %s",
				n ? " or" : ", which are those of",
				ceil(by / s->jobs[job].rate[t]) * s->jobs[job].scale, s->types[t].name);
			n++;
		}
}

/* What its time on a type costs by the prices of the answer, against what the promise pays for it. */
static void say_no_share(const struct hd_sched_state *s, const struct hd_shares *shares, uint32_t job,
	struct hd_why *why)
{
	const struct hd_sched_job *j = &s->jobs[job];
	unsigned long long id = j->id;
	char more[120] = "";

	why->type = tight(s, shares, job);
	if (why->type == HD_SCHED_NONE) {
		snprintf(why->text, sizeof why->text, "job %llu waits: others give more for its devices", id);
		return;
	}
	double price = j->scale * shares->y[why->type], worth = shares->l &&
		hd_sched_proportional(s, j->rate) > 0 ?
		shares->l[job] * j->scale * j->rate[why->type] / (j->weight * hd_sched_proportional(s,
		j->rate)) : 0;
	if (worth > 0)
		snprintf(more, sizeof more,
			": %u of it cost %.3g and are worth %.3g to it, %.3g times too dear%s", j->scale,
			price, worth, price / worth,
			shares->degenerate ? " (one of several prices)" : "");
	snprintf(why->text, sizeof why->text, "job %llu waits: %s is the tight resource%s", id,
		s->types[why->type].name, more);
}

void hd_sched_why_code(const struct hd_policy_setting *set, const struct hd_sched_state *s,
	const struct hd_shares *shares, uint32_t job, struct hd_why *why)
{
	unsigned long long id = s->jobs[job].id;

	*why = (struct hd_why){ .code = HD_WHY_RUNS, .type = HD_SCHED_NONE, .fix_type = HD_SCHED_NONE };
	if (!(s->jobs[job].steps_left > 0)) {
		why->code = HD_WHY_OVER;
		snprintf(why->text, sizeof why->text, "job %llu has no steps left", id);
	} else if (hd_sched_blocked(s, job) || (!(set->policy->powers & HD_POLICY_ELASTIC) &&
		!hd_sched_fits_whole(s, job))) {
		why->code = HD_WHY_UNRUNNABLE;
		snprintf(why->text, sizeof why->text,
			"job %llu cannot run: no type that it has a speed on has %u devices", id,
			s->jobs[job].scale);
	} else if (has_share(shares, job)) {
		snprintf(why->text, sizeof why->text, "job %llu has %.3g of the time", id,
			share_of(shares, job));
	} else if (set->policy->powers & HD_POLICY_QUEUE) {
		why->code = HD_WHY_QUEUED;
		snprintf(why->text, sizeof why->text,
			"job %llu waits: others are before it, and no type that it fits has %u devices left",
			id,
			s->jobs[job].scale);
	} else if (shares->short_by && shares->short_by[job] > 0) {
		say_short(s, shares, job, why);
	} else if (!shares->work_conserving) {
		say_dear(set, s, shares, job, why);
	} else {
		why->code = HD_WHY_NO_SHARE;
		say_no_share(s, shares, job, why);
	}
}

enum hd_err hd_sched_why(const struct hd_policy_setting *set, const struct hd_sched_state *s,
	const struct hd_shares *shares, uint32_t job,
	struct hd_arena *arena, struct hd_why *why, struct hd_diag *diag)
{
	hd_sched_why_code(set, s, shares, job, why);
	return find_help(set, s, job, arena, why, diag);
}
