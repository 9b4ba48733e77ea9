#include "engine/closing.h"

#include "engine/forward.h"
#include "engine/lockstep.h"
#include "engine/stamps.h"
#include "engine/worker_int.h"

static const char split[] = "valid";

static struct hd_closing *closing_of(const struct hd_worker *w) { return w->stage->lockstep.closing; }

bool hd_closing_wanted(const struct hd_job *job)
{
	return !job->value[HD_JOB_CLOSE_TARGET].is_none && hd_job_int(job, HD_JOB_MODE) != HD_MODE_SYNC;
}

enum hd_err hd_closing_allowed(const struct hd_task *task, struct hd_diag *diag)
{
	const uint32_t s = hd_dataset_split(task->data, split);

	if (!hd_closing_wanted(task->job) || (s != HD_NONE && task->data->split[s].count))
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL, "batch.close: no vertex of the validation set has a label, and "
		"there the measure is taken: prepare the graph with a line `val` in its split, or leave "
		"batch.close out");
}

enum hd_err hd_closing_take(struct hd_worker *w, struct hd_diag *diag)
{
	if (!hd_closing_wanted(w->task->job))
		return HD_OK;
	w->stage->lockstep.closing = hd_arena_take(&w->arena, 1, sizeof(struct hd_closing));
	return w->stage->lockstep.closing ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for batch.close");
}

enum hd_err hd_closing_table(struct hd_worker *w, struct hd_diag *diag)
{
	struct hd_closing *c = closing_of(w);

	if (!c)
		return HD_OK;
	return hd_state_add(&w->state, &(struct hd_state_entry){ .name = "run.closed", .dtype = HD_I64,
		.rank = 1, .dim = { 1 }, .key = HD_KEY_JOB, .merge = HD_MERGE_NONE, .group = HD_STATE_RUN,
		.at = &c->since, .len_bytes = sizeof c->since }, diag);
}

static bool is_near(const struct hd_job *job, double measure)
{
	const double target = hd_job_num(job, HD_JOB_CLOSE_TARGET),
		margin = hd_job_num(job, HD_JOB_CLOSE_MARGIN);

	return hd_job_int(job, HD_JOB_CLOSE_METRIC) == HD_METRIC_ACCURACY ? measure >= target - margin :
		measure <= target + margin;
}

enum hd_err hd_closing_look(struct hd_worker *w, struct hd_diag *diag)
{
	struct hd_closing *c = closing_of(w);
	const struct hd_job *job = w->task->job;
	const uint64_t step = (uint64_t)w->count.step;
	struct hd_metrics m;

	if (!c || c->since || w->task->recording || c->measured == step + 1 || !step ||
		step >= w->task->nsteps || step % (uint64_t)hd_job_int(job, HD_JOB_CLOSE_EVERY))
		return HD_OK;
	const uint32_t s = hd_dataset_split(w->task->data, split);
	const struct hd_forward_job all = { .split = s, .count = w->task->data->split[s].count };
	enum hd_err err = hd_worker_forward(w, &all, &m, diag);
	if (err)
		return err;
	c->measured = step + 1;
	c->measure = hd_job_int(job, HD_JOB_CLOSE_METRIC) == HD_METRIC_ACCURACY ? hd_metrics_accuracy(&m) :
		hd_metrics_loss(&m);
	c->near = is_near(job, c->measure);
	return HD_OK;
}

bool hd_closing_closed(const struct hd_worker *w)
{
	const struct hd_closing *c = closing_of(w);
	const struct hd_recording *r = w->task->recording;
	const uint64_t step = (uint64_t)w->count.step;

	if (!c)
		return false;
	return r ? r->closed && step >= r->closed : c->since || (c->near && c->measured == step + 1);
}

bool hd_closing_begins(const struct hd_worker *w, double *measure)
{
	if (!hd_closing_closed(w) || closing_of(w)->since || w->task->recording)
		return false;
	*measure = closing_of(w)->measure;
	return true;
}

void hd_closing_forget(struct hd_worker *w)
{
	if (closing_of(w))
		closing_of(w)->measured = 0;
}

void hd_closing_commit(struct hd_worker *w)
{
	struct hd_closing *c = closing_of(w);

	if (c && !c->since && hd_closing_closed(w))
		c->since = w->count.step;
	hd_closing_forget(w);
}
