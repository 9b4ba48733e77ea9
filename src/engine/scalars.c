#include "engine/worker_int.h"

#include <math.h>

#include "base/lanes.h"
#include "sys/failpoint.h"
#include "sys/file.h"
#include "job/lr.h"
#include "engine/judge.h"
#include "engine/onset.h"

/* NORM: every rank computes the step scalars from the same numbers in the same
 * order, so that nothing has to be agreed upon. The norm is that of the mean
 * gradient: scale times the norm of the sum, in f64, rounded once. A sum that is
 * not finite cannot hide: squares of f32 do not overflow f64. */

static double leaf_sum(const struct hd_worker *w, size_t field)
{
	double at[HD_MAX_LEVELS + 1] = { 0 };
	uint32_t n = 0;

	/* the canonical tree by a binary counter: after v leaves, one partial per set bit of v */
	for (uint32_t v = 0; v < w->task->job->nvns; v++) {
		double x = *(const double *)((const char *)&w->step->leaf[v] + field);
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

/* Which op of which virtual node made it is found after the step, on an idle worker (diverge.h). */
static enum hd_err diverged(struct hd_rank *rank, bool skips)
{
	const struct hd_worker *w = rank->worker;

	if (skips)
		return hd_fail(&rank->diag, HD_E_DIVERGED,
			"step %lld: %d steps in a row were skipped; lower optim.lr or set optim.clip",
			(long long)w->count.step, HD_MAX_SKIPS);
	return hd_fail(&rank->diag, HD_E_DIVERGED,
		"step %lld: loss, gradient or a running statistic is not finite; "
		"lower optim.lr, set optim.clip, or set optim.on_nonfinite: skip", (long long)w->count.step);
}

/* All sums are here: this member holds the complete step. A view of one commits at once;
 * a larger one hears the others' seals through the same function. */
static enum hd_err seal(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	struct hd_seal seal = { .epoch = w->step->seals.epoch, .member = 0, .step = (uint64_t)w->count.step };
	uint32_t committed = 0;
	int error = HD_FAILPOINT(STEP_SEAL);
	enum hd_err err = error ? hd_fail_errno(&rank->diag, error, "seal", "a step") :
		hd_seals_add(&w->step->seals, &seal, &committed, &rank->diag);

	error = err ? 0 : HD_FAILPOINT(STEP_COMMIT);
	if (error)
		err = hd_fail_errno(&rank->diag, error, "commit", "a step");
	error = err || rank->scalars.skip ? 0 : HD_FAILPOINT(STEP_UPDATE_BEFORE);
	return error ? hd_fail_errno(&rank->diag, error, "update", "the parameters") : err;
}

static struct hd_step_scalars scalars_of(const struct hd_worker *w, double weight)
{
	struct hd_step_scalars scalars = {
		.optim = w->task->optim,
		.lr    = hd_lr_at(w->task->job, (uint64_t)w->count.step, w->task->nsteps,
			hd_judges_falls(w)),
		.scale = (float)(weight == 0 ? 0 : 1.0 / weight),
		.clip  = 1.0f,
	};

	hd_optim_corrections(&scalars, (uint64_t)w->count.updates + 1);
	return scalars;
}

static float clip_of(const struct hd_worker *w, double norm)
{
	double max_norm = hd_job_num(w->task->job, HD_JOB_CLIP);
	double factor = max_norm > 0 && norm > 0 ? max_norm / (norm + 1e-6) : 1;

	return factor < 1 ? (float)factor : 1.0f;
}

static double norm_of(const struct hd_worker *w, double scale)
{
	return (double)(float)scale * sqrt(hd_tree_sum(w->stage->segment_sumsq, w->task->layout.nsegments));
}

void hd_scalars_of_moves(const struct hd_worker *w, struct hd_step_scalars *scalars)
{
	const double weight = leaf_sum(w, offsetof(struct hd_leaf, weight));

	*scalars = scalars_of(w, weight);
	scalars->clip = clip_of(w, norm_of(w, weight == 0 ? 0 : 1.0 / weight));
	scalars->looks = true;
}

bool hd_scalars_early(const struct hd_worker *w, struct hd_step_scalars *scalars)
{
	const double weight = leaf_sum(w, offsetof(struct hd_leaf, weight));

	*scalars = scalars_of(w, weight);
	return weight != 0;
}

void hd_scalars_of_weight(const struct hd_worker *w, double weight, struct hd_step_scalars *scalars)
{
	*scalars = scalars_of(w, weight);
	scalars->skip = weight == 0;
}

double hd_scalars_weight(const struct hd_worker *w) { return leaf_sum(w, offsetof(struct hd_leaf, weight)); }

bool hd_scalars_unclipped(const struct hd_worker *w, struct hd_step_scalars *scalars)
{
	const double loss = leaf_sum(w, offsetof(struct hd_leaf, loss)),
		weight = hd_scalars_weight(w);

	hd_scalars_of_weight(w, weight, scalars);
	return weight == 0 || (isfinite(loss) && isfinite(weight) && isfinite(1.0 / weight));
}

void hd_scalars_make(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_job *job = w->task->job;
	double loss = leaf_sum(w, offsetof(struct hd_leaf, loss)),
		weight = leaf_sum(w, offsetof(struct hd_leaf, weight));
	double correct = leaf_sum(w, offsetof(struct hd_leaf, correct));
	bool empty = weight == 0, finite = isfinite(loss) && isfinite(weight);
	double scale = empty ? 0 : 1.0 / weight, norm = norm_of(w, scale);
	bool bad = !empty && (!finite || !isfinite(norm) || !isfinite(scale) || !hd_moments_finite(w));
	bool skip_bad = hd_job_int(job, HD_JOB_ON_NONFINITE) == HD_NONFINITE_SKIP;

	rank->scalars = scalars_of(w, weight);
	rank->scalars.clip = clip_of(w, norm);
	rank->scalars.skip = empty || bad;
	enum hd_err err = HD_OK;
	if (bad && (!skip_bad || w->count.skips + 1 >= HD_MAX_SKIPS))
		err = diverged(rank, skip_bad);
	else if (rank->id == 0)
		err = seal(rank);
	if (err)
		hd_rank_fail(rank, err);
	if (rank->id == 0) {
		w->step->scalars = rank->scalars;
		w->step->scalars_step = (uint64_t)w->count.step;
		w->step->scalars_updates = (uint64_t)w->count.updates;
		w->step->record.loss_sum = loss;
		w->step->record.weight   = weight;
		w->step->record.correct  = correct;
		w->step->record.nterms   = w->task->nterms;
		for (uint32_t i = 0; i < w->task->nterms; i++)
			w->step->record.term_sum[i] = leaf_sum(w, offsetof(struct hd_leaf, term) +
				i * sizeof(double));
		w->step->record.gnorm    = empty ? 0 : norm;
		w->step->record.lr       = rank->scalars.lr;
		w->step->record.empty    = empty;
		w->step->record.skipped  = bad;
	}
}
