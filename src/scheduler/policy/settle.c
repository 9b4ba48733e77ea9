/* After the promise: the second promise, and which of all shares that keep both. */
#include <math.h>

#include "scheduler/policy/int.h"

#define HD_SLACK 1e-9                             /* relative, of what is fixed */

static double weighted(const struct hd_policy_lp *pg, uint32_t k, const void *context)
{
	const struct hd_shape *s = &pg->shape[k];
	double sum = 0;

	(void)context;
	for (int m = 0; m < s->nmembers; m++)
		sum += pg->seen->state->jobs[s->member[m]].weight * pg->gain[k][m];
	return sum;
}

enum hd_err hd_program_second(struct hd_policy_lp *pg)
{
	hd_program_worth(pg, weighted, NULL);
	enum hd_err err = hd_program_solve(pg);

	if (err || pg->last.status != HD_LP_OPTIMAL)
		return err;
	double lo = pg->last.objective * (1 - HD_SLACK);
	hd_program_worth(pg, NULL, NULL);
	return hd_program_row(pg, weighted, NULL, lo);
}

struct settle_cost { const struct hd_policy *policy; double mean_price; };

/* Devices, weighted by price; ties go to lower ids and first types by a weight too small to matter
 * otherwise. */
static double dear(const struct hd_policy_lp *pg, uint32_t k, const void *context)
{
	const struct hd_sched_state *s = pg->seen->state;
	const struct hd_shape *shape = &pg->shape[k];
	const struct settle_cost *c = context;
	double sum = 0, rank = pg->large ? 0 : (double)(s->njobs - shape->member[0]) / s->njobs,
		moves = hd_kept_find(c->policy, s, shape) ? 0 : 0.01;

	for (int d = 0; d < shape->nneeds; d++) {
		double price = c->mean_price > 0 ? s->types[shape->need[d].type].price_usd_h / c->mean_price :
			1;
		sum += shape->need[d].n * (price + moves + 1e-5 * rank *
			(shape->need[d].type + 1) / s->ntypes);
	}
	return -sum * (1 + 1e-6 * (shape->nmembers - 1));
}

/* For each shape that had a share: d >= |x - before|, at 0.01 a device; of all others the share is the
 * distance, see dear(). Large programs have neither these nor ranks: equal jobs get equal shares there,
 * and least change counts shapes, not how much of them. */
static enum hd_err distances(struct hd_policy_lp *pg, const struct hd_policy *policy)
{
	const struct hd_sched_state *s = pg->seen->state;
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; !err && pg->generate && k < policy->nkept; k++) {
		uint32_t a = hd_sched_find(s, policy->kept[k].a), b = hd_sched_find(s, policy->kept[k].b);
		if (policy->kept[k].nmembers == 2 && a != HD_SCHED_NONE && b != HD_SCHED_NONE)
			err = hd_program_want(pg, a, b, policy->kept[k].need[0].type);
	}
	for (uint32_t k = 0; !err && policy->nkept && !pg->large && k < pg->nshapes; k++) {
		const struct hd_kept_share *was = hd_kept_find(policy, s, &pg->shape[k]);
		uint32_t col, row;
		double zero = 0, inf = INFINITY, cost = -0.01 * pg->shape[k].need[0].n;
		if (!was)
			continue;
		err = hd_program_cols(pg, 1, &zero, &inf, &cost, NULL, NULL, NULL, &col);
		if (!err)
			err = hd_program_rows(pg, 2, (double[]){ -was->x, was->x },
				(double[]){ INFINITY, INFINITY }, (uint32_t[]){ 0, 2, 4 },
				(uint32_t[]){ col, pg->col[k], col, pg->col[k] }, (double[]){ 1, -1, 1, 1 },
				&row);
	}
	return err;
}

enum hd_err hd_program_settle(struct hd_policy_lp *pg, const struct hd_policy *policy, struct hd_shares *out)
{
	struct settle_cost c = { .policy = policy };
	const struct hd_sched_state *s = pg->seen->state;
	uint32_t priced = 0;
	enum hd_err err;

	for (uint32_t j = 0; j < s->ntypes; j++) {
		c.mean_price += s->types[j].n ? s->types[j].price_usd_h : 0;
		priced += s->types[j].n > 0;
	}
	c.mean_price = priced ? c.mean_price / priced : 0;
	err = hd_program_level(pg, NULL);
	hd_program_worth(pg, dear, &c);
	if (!err)
		err = distances(pg, policy);
	/* What was reached holds to the tolerance of the solver in every row, and thousands of rows add
	 * up. */
	for (double slack = 0; !err && slack < 1e-7; slack = slack > 0 ? 10 * slack : 1e-9) {
		hd_program_relax(pg, slack);
		err = hd_program_solve(pg);
		if (err == HD_E_AGAIN && pg->last.status == HD_LP_NUMERIC)
			err = HD_OK;
		if (pg->last.status == HD_LP_OPTIMAL)
			break;
	}
	if (!err && pg->last.status != HD_LP_OPTIMAL)
		err = hd_fail(pg->diag, HD_E_AGAIN, "the tie-break: %s", hd_lp_status_text(pg->last.status));
	return err ? err : hd_program_shares(pg, out);
}
