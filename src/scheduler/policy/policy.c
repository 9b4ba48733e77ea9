#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "scheduler/policy/cost_patience.h"

/* short names of list.h */
enum {
	H = 1 << HD_VARIANT_HETERO, P = 1 << HD_VARIANT_PLAIN, K = 1 << HD_VARIANT_PACKED,
		B = 1 << HD_VARIANT_KINDS,
	LP = HD_POLICY_LP, MIN = HD_POLICY_LEAST, MAX = HD_POLICY_LARGEST, PUB = HD_POLICY_PUBLISHED,
	WHOLE = HD_POLICY_WHOLE, QUEUE = HD_POLICY_QUEUE,
	ELASTIC = HD_POLICY_ELASTIC, STEADY = HD_POLICY_STEADY,
};

#define HD_OVER 1e-6                              /* what take_off() may take */
#define HD_BASE 1e-9                              /* what verify() lets pass */
const struct hd_sched_policy hd_sched_policies[] = {
#define X(name, ...) { __VA_ARGS__, hd_##name##_init, hd_##name##_allocate, hd_##name##_finish },
	HD_POLICIES(X)
#undef X
	{ 0 },
};

bool hd_policy_has_lp(void) { return hd_lp_built(); }

static enum hd_err check(const struct hd_policy_setting *set, struct hd_diag *diag)
{
	static const char *const variants[] = {
#define X(id, name) name,
		HD_VARIANTS(X)
#undef X
	};
	const struct hd_sched_policy *row = set->policy;

	if ((row->powers & HD_POLICY_LP) && !hd_lp_built())
		return hd_fail(diag, HD_E_INVAL,
			"the policy %s needs a solver of linear programs, which this build lacks (build "
			"with coinor-libclp-dev)",
			row->name);
	if (!(row->variants & 1u << set->variant))
		return hd_fail(diag, HD_E_INVAL, "the policy %s has no variant %s", row->name,
			variants[set->variant]);
	if (!(set->pack_threshold >= 0) || isnan(set->beta) || isnan(set->phi) || !(set->alpha >= 0) ||
		!(set->slo_factor >= 0))
		return hd_fail(diag, HD_E_INVAL,
			"policy %s: pack_threshold %g, alpha %g, slo_factor %g are 0 or more; beta %g, phi "
			"%g are numbers", row->name,
			set->pack_threshold, set->alpha, set->slo_factor, set->beta, set->phi);
	if (!(set->patience >= 0 && set->patience <= 1))
		return hd_fail(diag, HD_E_INVAL,
			"policy %s: patience %g is a part of the time to a deadline, 0 to 1", row->name,
			set->patience);
	return HD_OK;
}

enum hd_err hd_policy_create(struct hd_policy **policy, const struct hd_policy_setting *setting,
	struct hd_diag *diag)
{
	enum hd_err err = check(setting, diag);
	struct hd_policy *p = err ? NULL : hd_alloc(sizeof *p);

	if (err)
		return err;
	if (!p)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a policy");
	*p = (struct hd_policy){ .set = *setting };
	p->memory = hd_alloc(setting->policy->memory_size);
	if (!p->memory) {
		hd_free(p);
		return hd_fail(diag, HD_E_NOMEM, "no memory for a policy");
	}
	memset(p->memory, 0, setting->policy->memory_size);
	err = setting->policy->init(p, diag);
	if (err)
		hd_policy_destroy(p);
	else
		*policy = p;
	return err;
}

const struct hd_policy_setting *hd_policy_setting(const struct hd_policy *policy) { return &policy->set; }

void hd_policy_destroy(struct hd_policy *policy)
{
	if (!policy)
		return;
	policy->set.policy->finish(policy);
	hd_pop_finish(policy);
	hd_free(policy->memory);
	hd_free(policy->kept);
	hd_free(policy);
}

/* ---- the answer ---- */

struct listed { struct hd_shape shape; double x; };

static int by_rule(const void *a, const void *b)
{
	const struct hd_shape *x = &((const struct listed *)a)->shape,
		*y = &((const struct listed *)b)->shape;

	if (x->nmembers != y->nmembers)
		return x->nmembers < y->nmembers ? -1 : 1;
	for (int m = 0; m < x->nmembers; m++)
		if (x->member[m] != y->member[m])
			return x->member[m] < y->member[m] ? -1 : 1;
	for (int d = 0; d < x->nneeds && d < y->nneeds; d++) {
		if (x->need[d].type != y->need[d].type)
			return x->need[d].type < y->need[d].type ? -1 : 1;
		if (x->need[d].n != y->need[d].n)
			return x->need[d].n < y->need[d].n ? -1 : 1;
	}
	return (x->nneeds > y->nneeds) - (x->nneeds < y->nneeds);
}

static enum hd_err sort(struct hd_shares *out, struct hd_arena *arena)
{
	struct listed *all = hd_arena_take(arena, out->nshapes + 1, sizeof *all);
	struct hd_shape *shape = hd_arena_take(arena, out->nshapes + 1, sizeof *shape);
	double *x = hd_arena_take(arena, out->nshapes + 1, sizeof *x);
	uint32_t n = 0;

	if (!all || !shape || !x)
		return HD_E_NOMEM;
	for (uint32_t k = 0; k < out->nshapes; k++)
		if (out->x[k] >= 1e-9)
			all[n++] = (struct listed){ out->shape[k], out->x[k] };
	qsort(all, n, sizeof *all, by_rule);
	for (uint32_t k = 0; k < n; k++) {
		shape[k] = all[k].shape;
		x[k] = all[k].x;
	}
	out->nshapes = n;
	out->shape = shape;
	out->x = x;
	return HD_OK;
}

static enum hd_err measure(const struct hd_sched_state *s, struct hd_shares *out, struct hd_arena *arena)
{
	double *e = hd_arena_take(arena, s->njobs + 1, sizeof *e),
		*z = hd_arena_take(arena, s->njobs + 1, sizeof *z);

	if (!e || !z)
		return HD_E_NOMEM;
	for (uint32_t k = 0; k < out->nshapes; k++)
		for (int m = 0; m < out->shape[k].nmembers; m++)
			e[out->shape[k].member[m]] += out->shape[k].rate[m] * out->x[k];
	for (uint32_t i = 0; i < s->njobs; i++)
		z[i] = hd_sched_absent(s, i) ? 0 : e[i] / hd_sched_proportional(s, s->jobs[i].rate);
	out->e = e;
	out->z = z;
	return HD_OK;
}

/* fifo as published gives away too much. */
static bool is_faulty(const struct hd_policy *policy)
{
	return policy->set.fidelity == HD_FIDELITY_GAVEL && (policy->set.policy->powers & HD_POLICY_QUEUE);
}

/* What a solver's tolerance left above time or devices is taken off the jobs that share in it; more than that
 * stays for verify() to find. Published shares of no solver stay to the last bit: they add up to 1 and an
 * ulp now and then, and in the rounds a tie less is another order. */
static enum hd_err take_off(const struct hd_policy *policy, const struct hd_sched_state *s,
	struct hd_shares *out, struct hd_arena *arena)
{
	double *time = hd_arena_take(arena, s->njobs + 1, sizeof *time),
		*x = hd_arena_take(arena, out->nshapes + 1, sizeof *x), used[HD_SCHED_TYPES] = { 0 };

	if (policy->set.fidelity == HD_FIDELITY_GAVEL && !(policy->set.policy->powers & HD_POLICY_LP))
		return HD_OK;
	if (!time || !x)
		return HD_E_NOMEM;
	for (uint32_t k = 0; k < out->nshapes; k++) {
		for (int m = 0; m < out->shape[k].nmembers; m++)
			time[out->shape[k].member[m]] += out->x[k];
		for (int d = 0; d < out->shape[k].nneeds && !is_faulty(policy); d++)
			used[out->shape[k].need[d].type] += out->shape[k].need[d].n * out->x[k];
	}
	for (uint32_t k = 0; k < out->nshapes; k++) {
		double over = 1;
		for (int m = 0; m < out->shape[k].nmembers; m++)
			over = fmax(over, time[out->shape[k].member[m]]);
		for (int d = 0; d < out->shape[k].nneeds; d++)
			over = fmax(over,
				used[out->shape[k].need[d].type] / s->types[out->shape[k].need[d].type].n);
		x[k] = over <= 1 + HD_OVER ? out->x[k] / over : out->x[k];
	}
	out->x = x;
	return HD_OK;
}

/* The base constraints, in every build: rule 1. */
static enum hd_err verify(const struct hd_policy *policy, const struct hd_sched_state *s,
	const struct hd_shares *out, struct hd_arena *arena,
	struct hd_diag *diag)
{
	double *time = hd_arena_take(arena, s->njobs + 1, sizeof *time), used[HD_SCHED_TYPES] = { 0 };
	const char *name = policy->set.policy->name;

	if (!time)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs", s->njobs);
	for (uint32_t k = 0; k < out->nshapes; k++) {
		const struct hd_shape *shape = &out->shape[k];
		if (!(out->x[k] >= 0 && out->x[k] <= 1 + HD_BASE))
			return hd_fail(diag, HD_E_BUG, "policy %s gives job %llu a share of %g", name,
				(unsigned long long)s->jobs[shape->member[0]].id,
				out->x[k]);
		for (int m = 0; m < shape->nmembers; m++) {
			time[shape->member[m]] += out->x[k];
			if (hd_sched_absent(s, shape->member[m]) ||
				!(shape->rate[0] > 0 || shape->rate[1] > 0))
				return hd_fail(diag, HD_E_BUG,
					"policy %s gives job %llu a share of what it cannot use", name,
					(unsigned long long)s->jobs[shape->member[m]].id);
		}
		for (int d = 0; d < shape->nneeds; d++)
			used[shape->need[d].type] += shape->need[d].n * out->x[k];
	}
	for (uint32_t i = 0; i < s->njobs; i++)
		if (time[i] > 1 + HD_BASE)
			return hd_fail(diag, HD_E_BUG, "policy %s gives job %llu %.12g of its time", name,
				(unsigned long long)s->jobs[i].id, time[i]);
	for (uint32_t j = 0; j < s->ntypes && !is_faulty(policy); j++)
		if (used[j] > s->types[j].n * (1 + HD_BASE))
			return hd_fail(diag, HD_E_BUG, "policy %s gives away %.12g of %u devices of type %s",
				name, used[j], s->types[j].n, s->types[j].name);
	return HD_OK;
}

/* ---- memory of the last answer ---- */

/* In the order of the answer (by_rule): ids ascend with numbers of jobs. */
static int by_ids(const struct hd_kept_share *x, const struct hd_kept_share *y)
{
	if (x->nmembers != y->nmembers)
		return x->nmembers < y->nmembers ? -1 : 1;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	if (x->b != y->b)
		return x->b < y->b ? -1 : 1;
	for (int d = 0; d < x->nneeds && d < y->nneeds; d++) {
		if (x->need[d].type != y->need[d].type)
			return x->need[d].type < y->need[d].type ? -1 : 1;
		if (x->need[d].n != y->need[d].n)
			return x->need[d].n < y->need[d].n ? -1 : 1;
	}
	return (x->nneeds > y->nneeds) - (x->nneeds < y->nneeds);
}

static struct hd_kept_share kept_of(const struct hd_sched_state *s, const struct hd_shape *shape, double x)
{
	uint64_t second = shape->nmembers == 2 ? s->jobs[shape->member[1]].id : 0;
	struct hd_kept_share k = { s->jobs[shape->member[0]].id, second, shape->nmembers, shape->nneeds,
		{ { 0 } }, x };

	memcpy(k.need, shape->need, sizeof k.need);
	return k;
}

const struct hd_kept_share *hd_kept_find(const struct hd_policy *policy, const struct hd_sched_state *s,
	const struct hd_shape *shape)
{
	struct hd_kept_share key = kept_of(s, shape, 0);
	uint32_t lo = 0, hi = policy->nkept;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (by_ids(&policy->kept[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < policy->nkept && !by_ids(&policy->kept[lo], &key) ? &policy->kept[lo] : NULL;
}

static enum hd_err keep(struct hd_policy *policy, const struct hd_sched_state *s, const struct hd_shares *out)
{
	if (out->nshapes > policy->kept_cap) {
		struct hd_kept_share *more = hd_alloc(2 * (size_t)out->nshapes * sizeof *more);
		if (!more)
			return HD_E_NOMEM;
		hd_free(policy->kept);
		policy->kept = more;
		policy->kept_cap = 2 * out->nshapes;
	}
	policy->nkept = out->nshapes;
	for (uint32_t k = 0; k < out->nshapes; k++)
		policy->kept[k] = kept_of(s, &out->shape[k], out->x[k]);
	return HD_OK;
}

/* The shape of a share of the last answer, if all its members and types still are. */
static bool still_there(const struct hd_policy_setting *set, const struct hd_sched_state *s,
	const struct hd_kept_share *was, struct hd_shape *shape)
{
	uint32_t a = hd_sched_find(s, was->a), b = was->nmembers == 2 ? hd_sched_find(s, was->b) : a;

	if (a == HD_SCHED_NONE || b == HD_SCHED_NONE || hd_sched_absent(s, a) || hd_sched_absent(s, b))
		return false;
	for (int d = 0; d < was->nneeds; d++) {
		uint32_t type = was->need[d].type;
		if (type >= s->ntypes || s->types[type].n == 0 ||
			(set->fidelity == HD_FIDELITY_EXACT && s->types[type].n < was->need[d].n))
			return false;
	}
	if (was->nmembers == 2) {
		*shape = hd_way_pair(s, a, b, was->need[0].type);
		return shape->rate[0] > 0 && shape->rate[1] > 0;
	}
	*shape = (struct hd_shape){ .nmembers = 1, .nneeds = was->nneeds, .member = { a, HD_SCHED_NONE } };
	memcpy(shape->need, was->need, sizeof shape->need);
	shape->rate[0] = hd_way_rate(&s->jobs[a], shape->need, shape->nneeds);
	return shape->rate[0] > 0;
}

/* Rule 5: the last shares of jobs that are still there, isolated ones of the others, scaled down where
 * types have become too small. */
static enum hd_err fall_back(const struct hd_policy *policy, const struct hd_sched_state *s,
	struct hd_arena *arena, struct hd_shares *out)
{
	struct hd_collect c = { .out = out, .arena = arena };
	bool *known = hd_arena_take(arena, s->njobs + 1, sizeof *known);
	double used[HD_SCHED_TYPES] = { 0 }, x[HD_SCHED_TYPES], most = 1, *scaled;
	enum hd_err err = known ? HD_OK : HD_E_NOMEM;
	uint32_t present = 0;

	*out = (struct hd_shares){ .objective = NAN, .work_conserving = true, .kept = true };
	for (uint32_t k = 0; !err && k < policy->nkept; k++) {
		struct hd_shape shape;
		if (!still_there(&policy->set, s, &policy->kept[k], &shape))
			continue;
		for (int m = 0; m < shape.nmembers; m++)
			known[shape.member[m]] = true;
		err = hd_collect(&c, &shape, policy->kept[k].x);
	}
	for (uint32_t i = 0; i < s->njobs; i++)
		present += !hd_sched_absent(s, i);
	for (uint32_t i = 0; !err && i < s->njobs; i++) {
		if (known[i] || hd_sched_absent(s, i))
			continue;
		(void)hd_sched_isolated(s, i, s->jobs[i].rate, present,
			policy->set.fidelity == HD_FIDELITY_EXACT, x);
		for (uint32_t j = 0; !err && j < s->ntypes; j++) {
			struct hd_shape shape = hd_way_single(s, i, j);
			if (s->types[j].n && s->jobs[i].rate[j] > 0 && hd_whole(&policy->set, s, i, j))
				err = hd_collect(&c, &shape, x[j]);
		}
	}
	for (uint32_t k = 0; !err && k < out->nshapes; k++)
		for (int d = 0; d < out->shape[k].nneeds; d++)
			used[out->shape[k].need[d].type] += out->shape[k].need[d].n * out->x[k];
	for (uint32_t j = 0; j < s->ntypes; j++)
		most = s->types[j].n ? fmax(most, used[j] / s->types[j].n) : most;
	scaled = c.x;
	for (uint32_t k = 0; !err && k < out->nshapes; k++)
		scaled[k] /= most;
	return err;
}

enum hd_err hd_policy_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *shares,
	struct hd_diag *diag)
{
	struct hd_shares out = { .objective = NAN };
	struct hd_diag why = { "" };
	bool empty = true;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; empty && i < state->njobs; i++)
		empty = hd_sched_absent(state, i);
	if (!empty || !(policy->set.policy->powers & HD_POLICY_LP))
		err = (policy->set.npops > 1 ? hd_pop_allocate : policy->set.policy->allocate)(policy, state,
			arena, &out, &why);

	if (err == HD_E_AGAIN) {
		err = fall_back(policy, state, arena, &out);
		out.kept_why = hd_arena_text(arena, why.text, strlen(why.text));
		why.text[0] = 0;
		if (!err && !out.kept_why)
			err = HD_E_NOMEM;
	}
	if (!err)
		err = sort(&out, arena);
	if (!err)
		err = take_off(policy, state, &out, arena);
	if (!err)
		err = measure(state, &out, arena);
	if (!err)
		err = verify(policy, state, &out, arena, &why);
	if (!err)
		err = keep(policy, state, &out);
	if (err)
		return hd_fail(diag, err, "%s", why.text[0] ? why.text : "no memory for shares");
	*shares = out;
	return HD_OK;
}
