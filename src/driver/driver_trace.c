#include "driver/driver_int.h"

/* A run without a recording is a run: where none can be made, that is said. */
void driver_trace_open(struct driver *c)
{
	const struct hd_task *task = c->spec->task;
	struct hd_recorder_spec spec = { .fs = c->spec->fs, .worker = HD_RECORDER_COORDINATOR,
		.nslots = (uint64_t)hd_job_int(task->job, HD_JOB_FLIGHT_SLOTS), .job = task->job_hash };
	char folder[HD_PATH_CAP];
	struct hd_diag diag = { "" };

	hd_rundir_path(c->spec->dir, "flight", folder, sizeof folder);
	spec.folder = folder;
	if (hd_recorder_open(&c->recorder, &spec, &diag))
		driver_note(c, "warning", HD_NOBODY, diag.text);
}

void driver_trace_close(struct driver *c) { hd_recorder_close(c->recorder); }

uint64_t driver_trace_stamp(void *self) { return hd_recorder_now(((struct driver *)self)->recorder); }
