#include "exec/worker_int.h"

#include <math.h>

#include "base/lanes.h"
#include "plan/lr.h"
#include "sys/failpoint.h"
#include "sys/file.h"

/* NORM: every rank computes the step scalars from the same numbers in the same
 * order, so that nothing has to be agreed upon. The norm is that of the mean
 * gradient: scale times the norm of the sum, in f64, rounded once. A sum that is
 * not finite cannot hide: squares of f32 do not overflow f64. */

static double leaf_sum(const struct hd_worker *w, size_t field)
{
	double at[HD_MAX_LEVELS + 1] = { 0 };
	uint32_t n = 0;

	/* the canonical tree by a binary counter: after v leaves, one partial per set bit of v */
	for (uint32_t v = 0; v < w->plan->nvns; v++) {
		double x = *(const double *)((const char *)&w->leaf[v] + field);
		for (uint32_t bit = v; bit & 1; bit >>= 1)
			x = at[--n] + x;
		at[n++] = x;
	}
	while (n > 1) {
		n--;
		at[n - 1] += at[n];
	}
	return at[0];
}

static const char *first_bad_segment(const struct hd_worker *w, uint32_t *segment)
{
	const struct hd_layout *layout = &w->task->layout;

	for (*segment = 0; *segment < layout->nsegments; ++*segment)
		if (!isfinite(w->segment_sumsq[*segment]))
			break;
	if (*segment == layout->nsegments)
		return "";
	const struct hd_param *p = &w->task->train.param[layout->segment[*segment].param];
	return hd_graph_text_of(&w->task->train, w->task->train.value[p->value].name);
}

static enum hd_err diverged(struct hd_rank *rank)
{
	const struct hd_worker *w = rank->worker;
	uint32_t segment, vn = 0;
	const char *name = first_bad_segment(w, &segment);

	while (vn < w->plan->nvns && isfinite(w->leaf[vn].loss))
		vn++;
	if (vn < w->plan->nvns)
		return hd_fail(&rank->diag, HD_E_DIVERGED, "step %lld: the loss of virtual node %u is %s; the state before the step is kept: "
			"lower optim.lr, set optim.clip, or set optim.on_nonfinite: skip", (long long)w->step, vn,
			isnan(w->leaf[vn].loss) ? "not a number" : "infinite");
	return hd_fail(&rank->diag, HD_E_DIVERGED, "step %lld: the gradient of %s is not finite; the state before the step is kept: "
		"lower optim.lr, set optim.clip, or set optim.on_nonfinite: skip", (long long)w->step, name);
}

/* All sums are here: this member holds the complete step. A view of one commits at once;
 * a larger one hears the others' seals through the same function. */
static void seal(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	struct hd_seal seal = { .epoch = w->seals.epoch, .member = 0, .step = (uint64_t)w->step };
	uint32_t committed = 0;
	int error = HD_FAILPOINT(STEP_SEAL);
	enum hd_err err = error ? hd_fail_errno(&rank->diag, error, "seal", "a step") : hd_seals_add(&w->seals, &seal, &committed, &rank->diag);

	error = HD_FAILPOINT(STEP_COMMIT);
	if (!err && error)
		err = hd_fail_errno(&rank->diag, error, "commit", "a step");
	if (err)
		hd_rank_fail(rank, err);
}

void hd_scalars_make(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_job *job = w->task->job;
	double loss = leaf_sum(w, offsetof(struct hd_leaf, loss)), weight = leaf_sum(w, offsetof(struct hd_leaf, weight));
	double correct = leaf_sum(w, offsetof(struct hd_leaf, correct));
	bool empty = weight == 0, finite = isfinite(loss) && isfinite(weight);
	double scale = empty ? 0 : 1.0 / weight, max_norm = hd_job_num(job, HD_JOB_CLIP);
	double norm = (double)(float)scale * sqrt(hd_tree_sum(w->segment_sumsq, w->task->layout.nsegments));
	bool bad = !finite || !isfinite(norm);
	double factor = max_norm > 0 && norm > 0 ? max_norm / (norm + 1e-6) : 1;
	bool skip_bad = hd_job_int(job, HD_JOB_ON_NONFINITE) == HD_NONFINITE_SKIP;

	rank->scalars = (struct hd_step_scalars){
		.optim = w->task->optim,
		.lr    = hd_lr_at(job, (uint64_t)w->step, w->task->nsteps),
		.scale = (float)scale,
		.clip  = factor < 1 ? (float)factor : 1.0f,
		.skip  = empty || bad,
	};
	hd_optim_corrections(&rank->scalars, (uint64_t)w->updates + 1);
	if (bad && !empty && !skip_bad)
		hd_rank_fail(rank, diverged(rank));
	if (rank->id == 0) {
		if (!rank->err)
			seal(rank);
		w->record.loss_sum = loss;
		w->record.weight   = weight;
		w->record.correct  = correct;
		w->record.gnorm    = norm;
		w->record.lr       = rank->scalars.lr;
		w->record.empty    = empty;
		w->record.skipped  = bad && !empty;
	}
}
