/* testing_run.h -- a job of times that are made up (run/testing_costs.h) and the folder of a run of it, for
 * tests of this room: included by *_test.c only.
 *
 * Ownership: desk_open() / desk_close(). */
#ifndef HD_DRIVER_TESTING_RUN_H
#define HD_DRIVER_TESTING_RUN_H

#include <string.h>
#include <unistd.h>

#include "run/kept_job.h"
#include "run/testing_costs.h"

struct desk {
	struct hd_made made;
	struct hd_clock clock;
	struct hd_rundir dir;
	struct hd_diag diag;
	char parent[64], notes[4096];
};

/* A note, a line. */
static inline void desk_say(struct desk *d, const char *text)
{
	const size_t n = strlen(d->notes);

	snprintf(d->notes + n, sizeof d->notes - n, "%s\n", text);
}

static inline void desk_open(struct desk *d, const char *more)
{
	struct hd_text text;
	char folder[80];

	*d = (struct desk){ .notes = "" };
	hd_made_begin(&d->made, hd_made_gpt, more, 5);
	struct hd_fs *fs = &d->made.rig.fs;
	hd_clock_real(&d->clock);
	snprintf(d->parent, sizeof d->parent, "/tmp/hd_driver_test.%d", (int)getpid());
	snprintf(folder, sizeof folder, "%s/run", d->parent);
	assert_int_equal(hd_fs_mkdirs(fs, d->parent, NULL), HD_OK);
	assert_int_equal(hd_rundir_create(&d->dir, fs, &d->clock, d->parent, folder, "gpt", "{}", 2, NULL),
		HD_OK);
	hd_text_init(&text, &d->made.rig.arena);
	hd_job_json(d->made.rig.job, false, &text);
	assert_int_equal(hd_rundir_put(&d->dir, HD_RUN_JOB, text.at, text.len, NULL), HD_OK);
}

static inline void desk_close(struct desk *d)
{
	hd_rundir_close(&d->dir);
	assert_int_equal(hd_fs_remove_tree(&d->made.rig.fs, d->parent, NULL), HD_OK);
	hd_made_end(&d->made);
}

/* parallel.settled as a worker reads it, or a coordinator that takes over. */
static inline const char *desk_kept(struct desk *d)
{
	struct hd_job *job = NULL;

	CHECK(hd_kept_job_read(&job, &d->dir, NULL, 0, &d->made.rig.arena, &d->diag) == HD_OK, "%s",
		d->diag.text);
	return job->value[HD_JOB_PAR_SETTLED].text;
}

#endif
