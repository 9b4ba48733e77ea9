/* drive.h -- runs of several worker processes, for the verbs that start or continue them: run, resume, serve.
 *
 * The process of the verb drives the run (driver/launch.h); workers are `heddle worker` processes of the same
 * program. */
#ifndef HD_CMD_RUN_DRIVE_H
#define HD_CMD_RUN_DRIVE_H

#include "run/rundir.h"
#include "driver/launch.h"
#include "cmd/session.h"

struct hd_drive {
	uint32_t target;                  /* workers; 0: as the run's store says */
	uint64_t step;                    /* of the checkpoint that a new store begins with, or 0 */
	struct hd_launcher *launcher;     /* starts the workers; NULL: they are processes of this machine */
	bool others_start;                /* workers are started by a scheduler, none here */
	/* what each worker opens, to predict a step by; NULL: nothing is predicted */
	const struct hd_worker_spec *worker;
	double pace;                      /* as of driver/launch.h */
	double lease_s;                   /* as of driver/driver.h, in seconds */
	uint64_t until;                   /* its workers end at this step; 0: --steps, or the job says */
};

/* Drives the run in `dir` to its end; prints lines as a run of one process does, then the state's digest and
 * where the report is. `end` may be NULL. */
HD_MUST_USE enum hd_err hd_drive(struct hd_cmd *cmd, const struct hd_job *job, struct hd_rundir *dir,
	const struct hd_drive *how, struct hd_launch_end *end);

/* Under workers.memory: do n workers fit that open what `options` say? If not, an error says which and why.
 * */
HD_MUST_USE enum hd_err hd_drive_fits(struct hd_cmd *cmd, struct hd_job *job,
	const struct hd_run_options *options, uint32_t n);

/* --workers: from 1 on, and as many as there may be. */
HD_MUST_USE enum hd_err hd_drive_workers(struct hd_cmd *cmd, uint32_t *n);
/* Has the run the text of its plan file, and is no file asked for in its place? */
bool hd_drive_keeps_lists(const struct hd_job *job);
/* Of parallel.mode: explicit over --workers: its plan file, read into the job; one that the run has is read
 * again where parallel.plan is given with -s or a variable. */
HD_MUST_USE enum hd_err hd_drive_list(struct hd_cmd *cmd, struct hd_job *job);
/* What each of --workers opens, and how stages lie over them: a worker of a pipeline has as many devices as
 * --devices says, one without. Nothing without --workers. */
HD_MUST_USE enum hd_err hd_drive_spread(struct hd_cmd *cmd, struct hd_job *job,
	struct hd_run_options *options);
/* What a start settles beyond the job file, in the run's folder: -s, and how stages lie. A plan file that was
 * read for it is proved first: the one that the run has stays if this one is refused. */
HD_MUST_USE enum hd_err hd_drive_keep(struct hd_cmd *cmd, const struct hd_job *job, struct hd_rundir *dir);
/* --devices of each of so many workers on this machine: as given, else its part of the cores. NULL: no
 * memory. */
const char *hd_drive_devices(struct hd_cmd *cmd, uint32_t nworkers);

/* How the run in `dir` is reached (driver/network.h), with a warning where it is open to all. HD_E_INVAL: a
 * key was given for a run that does not listen. */
HD_MUST_USE enum hd_err hd_drive_network(struct hd_cmd *cmd, const struct hd_job *job, const char *dir,
	struct hd_network *net);
void hd_drive_warn(const struct hd_network *net);

#endif
