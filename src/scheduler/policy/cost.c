/* Cost.
 *
 * Published: max sum (T_ij / c_j) X_ij; with deadlines e_i >= n_i / (deadline - now) for every job, and none
 * of them if not all can be met.
 *
 * Ours, in money a second: a step is worth v = (1 + beta) of what it costs where it is cheapest, or what its
 * owner says. Maximise worth less price of the devices, less penalties of missed deadlines (20 times the
 * cheapest step, a step) and of a floor of phi times the isolated share (5 times). A share whose steps cost
 * more than they are worth stays 0: devices are left idle.
 *
 * With patience h: to a job that could be over in less than h of the time to its deadline a step is worth the
 * price that the past says will do for that (cost_patience.h), if it is less; until then its deadline is
 * no row. */
#include <math.h>
#include <string.h>

#include "scheduler/policy/cost_patience.h"

enum hd_err hd_cost_init(struct hd_policy *policy, struct hd_diag *diag) { (void)policy, (void)diag;
	return HD_OK; }
void hd_cost_finish(struct hd_policy *policy) { hd_patience_finish(policy->memory); }

/* [njobs] */
struct worth { const struct hd_sched_state *state; double *step_usd, *cheapest_usd; bool *waits; };

static double per_price(const struct hd_policy_lp *pg, uint32_t k, const void *context)
{
	const struct hd_shape *s = &pg->shape[k];
	double sum = 0;

	(void)context;
	for (int m = 0; m < s->nmembers; m++)
		sum += pg->gain[k][m] *
			pg->seen->p[s->member[m]] / pg->seen->state->types[s->need[0].type].price_usd_h;
	return sum;
}

static double gained(const struct hd_policy_lp *pg, uint32_t k, const void *context)
{
	const struct hd_shape *s = &pg->shape[k];
	const struct worth *w = context;
	double usd_s = 0;

	for (int m = 0; m < s->nmembers; m++)
		usd_s += pg->gain[k][m] * pg->seen->p[s->member[m]] * w->step_usd[s->member[m]];
	for (int d = 0; d < s->nneeds; d++)
		usd_s -= s->need[d].n * w->state->types[s->need[d].type].price_usd_h / 3600;
	return usd_s;
}

static double deadline_of(const struct hd_policy *policy, const struct hd_seen *seen, uint32_t i)
{
	const struct hd_sched_state *s = seen->state;

	if (!(policy->set.slo_factor > 0))
		return s->jobs[i].deadline_s;
	for (uint32_t j = 0; j < s->ntypes; j++)
		if (policy->set.reference_type && !strcmp(s->types[j].name, policy->set.reference_type) &&
			s->jobs[i].rate[j] > 0)
			return policy->set.slo_factor * s->jobs[i].steps_left / s->jobs[i].rate[j];
	return INFINITY;
}

static enum hd_err prices_known(const struct hd_sched_state *s, struct hd_diag *diag)
{
	for (uint32_t j = 0; j < s->ntypes; j++)
		if (s->types[j].n && !(s->types[j].price_usd_h > 0))
			return hd_fail(diag, HD_E_INPUT,
				"the policy cost needs the price of every type; %s has none "
				"(\"prices_per_hour\" of a state file)",
				s->types[j].name);
	return HD_OK;
}

static double per_price_of(const struct hd_shape *shape, const double rate[2], const void *context)
{
	const struct hd_sched_state *s = context;

	return (rate[0] + (shape->nmembers == 2 ? rate[1] : 0)) / s->types[shape->need[0].type].price_usd_h;
}

static enum hd_err middle(const struct hd_policy_lp *pg, struct hd_shares *out)
{
	return hd_middle(pg->seen, &(struct hd_middle){ .lo = pg->promise_lo, .worth = per_price_of,
		.context = pg->seen->state, .least = out->objective },
		pg->arena, out);
}

static enum hd_err published(struct hd_policy_lp *pg, struct hd_policy *policy, struct hd_shares *out)
{
	const struct hd_sched_state *s = pg->seen->state;
	bool all = policy->set.deadlines;
	enum hd_err err;

	out->work_conserving = true;
	for (uint32_t i = 0; i < s->njobs; i++) {
		double deadline = deadline_of(policy, pg->seen, i);
		if (all && isfinite(deadline) && !pg->seen->absent[i])        /* passed: no rate is enough */
			hd_program_promise(pg, i, s->jobs[i].steps_left / fmax(deadline,
				1e-9) / pg->seen->p[i]);
	}
	hd_program_worth(pg, per_price, NULL);
	err = hd_program_solve(pg);
	if (!err && pg->last.status == HD_LP_INFEASIBLE) {
		for (uint32_t i = 0; i < s->njobs; i++)
			hd_program_promise(pg, i, -INFINITY);
		err = hd_program_solve(pg);
	}
	if (!err)
		err = hd_program_prices(pg, out);
	if (err)
		return err;
	out->objective = pg->last.objective;
	if (policy->set.fidelity == HD_FIDELITY_GAVEL) {
		err = hd_program_shares(pg, out);
		return err || policy->set.variant == HD_VARIANT_KINDS ? err : middle(pg, out);
	}
	return hd_program_row(pg, per_price, NULL, out->objective * (1 - 1e-9));
}

/* prices are looked at once an hour (sched_sim.h); one hour more to start */
enum { ASKED_S = 7200 };

/* Whether the job may wait for cheaper hours, and what it pays for a step while it does. */
static bool patient(const struct hd_policy *policy, const struct hd_seen *seen, uint32_t i, double *usd)
{
	const struct hd_sched_state *s = seen->state;
	const double deadline = deadline_of(policy, seen, i);
	double need, price;

	if (!(policy->set.patience > 0) || !policy->set.deadlines || !isfinite(deadline) || deadline <= 0 ||
		s->jobs[i].usd_per_step > 0 || seen->absent[i])
		return false;
	need = s->jobs[i].steps_left / fmax(policy->set.patience * deadline - ASKED_S, 1e-9);
	price = need < hd_seen_best(seen, i) ? hd_patience_price(policy->memory,
		&seen->rate[(size_t)i * s->ntypes], s->jobs[i].scale, need) : INFINITY;
	if (isfinite(price))
		*usd = price;
	return isfinite(price);
}

static enum hd_err worths(const struct hd_policy *policy, const struct hd_seen *seen, struct worth *w,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_sched_state *s = seen->state;
	double beta = policy->set.beta < 0 ? 0 : policy->set.beta > 0 ? policy->set.beta : 0.25;

	w->state = s;
	w->step_usd = hd_arena_take(arena, s->njobs, sizeof *w->step_usd);
	w->cheapest_usd = hd_arena_take(arena, s->njobs, sizeof *w->cheapest_usd);
	w->waits = hd_arena_take(arena, s->njobs, sizeof *w->waits);
	if (!w->step_usd || !w->cheapest_usd || !w->waits)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs", s->njobs);
	for (uint32_t i = 0; i < s->njobs; i++) {
		double least = INFINITY;
		for (uint32_t j = 0; j < s->ntypes; j++)
			if (hd_seen_rate(seen, i, j) > 0)
				least = fmin(least, s->types[j].price_usd_h / 3600 *
					s->jobs[i].scale / hd_seen_rate(seen, i, j));
		w->cheapest_usd[i] = isfinite(least) ? least : 0;
		w->step_usd[i] = s->jobs[i].usd_per_step > 0 ? s->jobs[i].usd_per_step :
			(1 + beta) * w->cheapest_usd[i];
		w->waits[i] = patient(policy, seen, i, &w->step_usd[i]);
	}
	return HD_OK;
}

/* One soft row: z_i + miss >= lo, the miss at `usd` a step. The miss columns come with their rows. */
static enum hd_err soft(struct hd_policy_lp *pg, uint32_t i, uint32_t row, double usd, uint32_t *col)
{
	double zero = 0, inf = INFINITY, cost = -usd * pg->seen->p[i], one = 1;

	return hd_program_cols(pg, 1, &zero, &inf, &cost, (uint32_t[]){ 0, 1 }, &row, &one, col);
}

static enum hd_err floor_row(struct hd_policy_lp *pg, uint32_t i, double lo, uint32_t *row)
{
	const struct hd_sched_state *s = pg->seen->state;
	uint32_t idx[HD_SCHED_TYPES], n = 0;
	double val[HD_SCHED_TYPES], inf = INFINITY;

	/* Singles alone, as the isolated share is: pairs would need the row when they are priced. */
	for (uint32_t k = 0; k < pg->nshapes && n < s->ntypes; k++)
		if (pg->shape[k].nmembers == 1 && pg->shape[k].member[0] == i) {
			idx[n] = pg->col[k];
			val[n++] = pg->gain[k][0];
		}
	return hd_program_rows(pg, 1, &lo, &inf, (uint32_t[]){ 0, n }, idx, val, row);
}

/* [njobs] columns or HD_SCHED_NONE; steps/s */
struct misses { uint32_t *deadline, *floor; double *shortage; };

static enum hd_err soften(struct hd_policy_lp *pg, struct hd_policy *policy, const struct worth *w,
	struct misses *miss)
{
	const struct hd_sched_state *s = pg->seen->state;
	double phi = policy->set.phi < 0 ? 0 : policy->set.phi > 0 ? policy->set.phi : 0.25;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < s->njobs; i++) {
		double deadline = deadline_of(policy, pg->seen, i), need, best = hd_seen_best(pg->seen, i);
		uint32_t row;
		miss->deadline[i] = miss->floor[i] = HD_SCHED_NONE;
		if (pg->seen->absent[i])
			continue;
		need = s->jobs[i].steps_left / deadline;
		if (policy->set.deadlines && isfinite(deadline) && (deadline <= 0 || need > best)) {
			/* lost whatever it gets: no row, so it eats no capacity */
			miss->shortage[i] = deadline > 0 ? need - best : INFINITY;
		} else if (policy->set.deadlines && isfinite(deadline) && !w->waits[i]) {
			hd_program_promise(pg, i, fmin(1.05 * need, best) / pg->seen->p[i]);
			err = soft(pg, i, pg->promise_row[i], 20 * w->cheapest_usd[i], &miss->deadline[i]);
		}
		if (!err && phi > 0 && pg->seen->iso[i] > 0 && !w->waits[i]) {
			err = floor_row(pg, i, phi * pg->seen->iso[i] / pg->seen->p[i], &row);
			if (!err)
				err = soft(pg, i, row, 5 * w->cheapest_usd[i], &miss->floor[i]);
		}
	}
	return err;
}

static enum hd_err ours(struct hd_policy_lp *pg, struct hd_policy *policy, struct worth *w,
	struct hd_shares *out)
{
	const struct hd_sched_state *s = pg->seen->state;
	struct misses miss = { hd_arena_take(pg->arena, s->njobs, sizeof(uint32_t)),
		hd_arena_take(pg->arena, s->njobs, sizeof(uint32_t)),
		hd_arena_take(pg->arena, s->njobs, sizeof(double)) };
	double shares_usd = 0;
	enum hd_err err = worths(policy, pg->seen, w, pg->arena, pg->diag);

	if (!miss.deadline || !miss.floor || !miss.shortage)
		return hd_fail(pg->diag, HD_E_NOMEM, "no memory for %u jobs", s->njobs);
	if (!err)
		err = soften(pg, policy, w, &miss);
	if (err)
		return err;
	hd_program_worth(pg, gained, w);
	err = hd_program_solve(pg);
	if (!err && pg->last.status != HD_LP_OPTIMAL)
		err = hd_fail(pg->diag, HD_E_AGAIN, "cost: %s", hd_lp_status_text(pg->last.status));
	if (!err)
		err = hd_program_prices(pg, out);
	if (err)
		return err;
	out->objective = pg->last.objective;
	for (uint32_t k = 0; k < pg->nshapes; k++)
		shares_usd += gained(pg, k, w) * pg->last.x[pg->col[k]];
	/* the misses stay as they are, so shares_usd does */
	for (uint32_t i = 0; i < s->njobs; i++) {
		uint32_t cols[] = { miss.deadline[i], miss.floor[i] };
		for (int c = 0; c < 2; c++) {
			double was = cols[c] == HD_SCHED_NONE ? 0 : fmax(0, pg->last.x[cols[c]]);
			if (cols[c] == HD_SCHED_NONE)
				continue;
			if (c == 0 && was * pg->seen->p[i] > 1e-9)
				miss.shortage[i] = was * pg->seen->p[i];
			hd_lp_edit(pg->lp, HD_LP_COLUMN, cols[c], 0, was * (1 + 1e-9) + 1e-12);
			hd_lp_edit(pg->lp, HD_LP_COST, cols[c], 0, 0);
		}
	}
	out->short_by = policy->set.deadlines ? miss.shortage : NULL;
	return hd_program_row(pg, gained, w, shares_usd - 1e-9 * fabs(shares_usd));
}

enum hd_err hd_cost_allocate(struct hd_policy *policy, const struct hd_sched_state *state,
	struct hd_arena *arena, struct hd_shares *out,
	struct hd_diag *diag)
{
	struct hd_seen seen;
	struct hd_policy_lp pg = { 0 };
	struct worth w;
	bool theirs = policy->set.published || policy->set.fidelity == HD_FIDELITY_GAVEL;
	enum hd_err err = prices_known(state, diag);

	if (!err && policy->set.patience > 0 && !theirs)
		err = hd_patience_see(policy->memory, state, diag);
	if (!err)
		err = hd_see(&seen, policy, state, HD_FLAT_ONE, arena, diag);
	if (!err)
		err = hd_program_open(&pg, &seen, arena, diag);
	if (!err)
		err = theirs ? published(&pg, policy, out) : ours(&pg, policy, &w, out);
	if (!err && policy->set.fidelity == HD_FIDELITY_EXACT)
		err = hd_program_settle(&pg, policy, out);
	hd_program_close(&pg);
	return err;
}
