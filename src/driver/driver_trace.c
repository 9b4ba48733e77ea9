#include "driver/driver_int.h"

#include <inttypes.h>

#include "base/le.h"
#include "worker/elastic.h"

enum { AHEAD_MS = 100, AHEAD_STEPS = 3 };         /* members are a step ahead of what is committed, or two */

/* A run without a recording is a run: where none can be made, that is said. */
void driver_trace_open(struct driver *c)
{
	const struct hd_task *task = c->spec->task;
	struct hd_recorder_spec spec = { .fs = c->spec->fs, .worker = HD_RECORDER_COORDINATOR,
		.nslots = (uint64_t)hd_job_int(task->job, HD_JOB_FLIGHT_SLOTS), .job = task->job_hash };
	char folder[HD_PATH_CAP], traces[HD_PATH_CAP];
	struct hd_diag diag = { "" };

	hd_rundir_path(c->spec->dir, "flight", folder, sizeof folder);
	hd_rundir_path(c->spec->dir, HD_RUN_TRACES, traces, sizeof traces);
	spec.folder = folder;
	spec.traces = traces;
	if (spec.nslots == 0)
		return;
	if (hd_recorder_open(&c->recorder, &spec, &diag))
		driver_note(c, "warning", HD_NOBODY, diag.text);
	if (hd_job_int(task->job, HD_JOB_RECORD))
		hd_recorder_record(c->recorder, 0, 0);
	hd_recorder_step_begin(c->recorder, c->end.step);
}

void driver_trace_close(struct driver *c) { hd_recorder_close(c->recorder); }

uint64_t driver_trace_stamp(void *self) { return hd_recorder_now(((struct driver *)self)->recorder); }

void driver_trace_look(struct driver *c)
{
	struct hd_recorder_said said;

	if (hd_recorder_said(c->recorder, &said))
		driver_note(c, said.kind, HD_NOBODY, said.text);
}

static bool tell(struct driver *c, const struct hd_co_worker_status *worker, uint64_t first, uint64_t n)
{
	uint8_t bytes[16];

	hd_put64(bytes, first);
	hd_put64(bytes + 8, n);
	return worker->up && !hd_hub_tell(&c->hub, worker->worker, HD_ELASTIC_RECORD, 0, bytes, sizeof bytes,
		NULL);
}

static bool knows(const struct driver *c, uint32_t worker)
{
	uint32_t i = 0;

	while (i < c->traced.n && c->traced.worker[i] != worker)
		i++;
	return i < c->traced.n;
}

/* Best effort: a worker whose link is down has no part in it, until it is up. */
static void tell_new(struct driver *c)
{
	struct hd_co_worker_status worker[HD_MAX_WORKERS];
	const uint32_t nworkers = c->machine ? hd_coordinator_workers(c->machine, worker, HD_MAX_WORKERS) : 0;

	for (uint32_t i = 0; i < nworkers && c->traced.n < HD_MAX_WORKERS; i++)
		if (!knows(c, worker[i].worker) && tell(c, &worker[i], c->traced.first, c->traced.end -
			c->traced.first))
			c->traced.worker[c->traced.n++] = worker[i].worker;
}

/* Its steps are those between two commits: no device has them, but windows are counted by them. */
void driver_trace_commit(struct driver *c, uint64_t step)
{
	hd_recorder_mark(c->recorder, HD_RECORDER_CONTROL, HD_RECORDED_COMMIT, HD_NOBODY, step);
	hd_recorder_step_end(c->recorder, step, true);
	hd_recorder_step_begin(c->recorder, step + 1);
	if (step + 1 < c->traced.end)
		tell_new(c);
}

/* Why no steps from `first` on can be recorded. */
static enum hd_err refuse(const struct driver *c, uint64_t first, struct hd_diag *diag)
{
	const struct hd_job *job = c->spec->task->job;

	if (hd_job_int(job, HD_JOB_RECORD))
		return hd_fail(diag, HD_E_INVAL, "all steps of this run are recorded (trace.record)");
	if (!hd_job_int(job, HD_JOB_FLIGHT_SLOTS))
		return hd_fail(diag, HD_E_INVAL, "this run records nothing (trace.flight_slots: 0)");
	if (c->end.step < c->traced.end)
		return hd_fail(diag, HD_E_INVAL, "steps %" PRIu64 " to %" PRIu64 " are being recorded: ask "
			"again after them", c->traced.first, c->traced.end - 1);
	if (first >= c->spec->task->nsteps)
		return hd_fail(diag, HD_E_INVAL, "a recording would begin with step %" PRIu64 ": the job "
			"ends before", first);
	return HD_OK;
}

enum hd_err driver_answer_record(struct driver *c, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	int64_t n = 0;
	const uint64_t soon = c->step_ms > 0 ? (uint64_t)(AHEAD_MS / c->step_ms) : 0,
		first = c->end.step + AHEAD_STEPS + soon;

	enum hd_err err = hd_json_get_i64(ask, "steps", 1, INT32_MAX, &n, diag);
	if (err)
		return err;
	err = refuse(c, first, diag);
	if (err)
		return err;
	c->traced.first = first;
	c->traced.end = first + (uint64_t)n;
	c->traced.n = 0;
	tell_new(c);
	hd_recorder_record(c->recorder, first, (uint64_t)n);
	hd_json_put_i64(w, "first", (int64_t)first);
	hd_json_put_i64(w, "steps", n);
	hd_json_put_i64(w, "workers", c->traced.n);
	return HD_OK;
}

uint32_t driver_trace_dump(struct driver *c)
{
	struct hd_co_worker_status worker[HD_MAX_WORKERS];
	const uint32_t nworkers = c->machine ? hd_coordinator_workers(c->machine, worker, HD_MAX_WORKERS) : 0;
	uint32_t asked = 0;

	for (uint32_t i = 0; i < nworkers; i++)
		asked += tell(c, &worker[i], 0, 0);
	hd_recorder_dump(c->recorder);
	return asked;
}

enum hd_err driver_answer_dump(struct driver *c, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	(void)ask;
	(void)diag;
	hd_json_put_i64(w, "workers", driver_trace_dump(c));
	return HD_OK;
}
