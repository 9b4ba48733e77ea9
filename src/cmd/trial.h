/* trial.h -- a run of worker processes that things are done to, and its undisturbed twin: for `chaos run` and
 * `demo elastic`.
 *
 * The run is a process of this program, watched through its control socket; its coordinator may die and be
 * replaced, so the newest answer counts and silence is normal. The twin is the same job on one device,
 * afterwards; both states are compared.
 *
 * Ownership: start/finish; answers lie in an arena of the trial's own. */
#ifndef HD_CMD_TRIAL_H
#define HD_CMD_TRIAL_H

#include "sys/process.h"
#include "cmd/live.h"
#include "cmd/session.h"

#define HD_TRIAL_STILL_NS INT64_C(60000000000)    /* no committed step for so long is a hang */
enum { HD_TRIAL_LOOK_NS = 20000000 };

struct hd_trial {
	struct hd_cmd *cmd;               /* borrowed, as is job */
	const char *job;                  /* path of the job file */
	char dir[HD_RUN_PATH], twin_dir[HD_RUN_PATH];
	uint64_t nsteps;
	struct hd_host host;
	struct hd_proc run;               /* until it is killed, or has ended */
	struct hd_arena arena;            /* of the newest answer */
	struct hd_live live;
	bool known;                       /* live was read at least once */
	bool heard;                       /* at the last look */
	/* it was started here: it ends with the trial, and is started again when all of it died */
	bool ours;
	bool samples;                     /* it keeps a record of its samples (run/samples.h) */
	uint64_t pace_ms;                 /* of its workers (workers.pace), unless the user says another */
	uint32_t workers, resumed;
	const char *devices;
	int64_t coordinator;              /* its process; 0: not known */
	uint64_t moved_step;
	/* the last look; for how long no step was committed; somebody was alive then */
	int64_t looked_ns, still_ns, somebody_ns;
	int64_t silent_ns;                /* for how long nobody answered */
};

/* Folders PARENT/chaos and PARENT/undisturbed; PARENT must not be there yet. */
HD_MUST_USE enum hd_err hd_trial_init(struct hd_trial *trial, struct hd_cmd *cmd, const char *job,
	const char *parent, uint64_t nsteps);
/* The first of runs/NAME, runs/NAME-2, ... under the parent of runs that is not there yet. */
void hd_trial_folder(struct hd_cmd *cmd, const char *name, char dir[HD_RUN_PATH]);
/* A run of somebody's, that goes on: looked at, never ended. */
HD_MUST_USE enum hd_err hd_trial_visit(struct hd_trial *trial, struct hd_cmd *cmd, const char *dir);
void hd_trial_finish(struct hd_trial *trial);             /* ends the run if it goes on; takes zeroed ones */
HD_MUST_USE enum hd_err hd_trial_start(struct hd_trial *trial, uint32_t workers, const char *devices);
/* Asks the coordinator, if there is one; notices a hang (HD_E_INTEGRITY), an end with an error, a visited run
 * that is gone (HD_E_NOTFOUND), and a signal to this process. If all processes of
 * it are gone before its end, it is resumed, as a user would. */
HD_MUST_USE enum hd_err hd_trial_look(struct hd_trial *trial);
uint64_t hd_trial_step(const struct hd_trial *trial);     /* committed, as far as is known */
bool hd_trial_ended(struct hd_trial *trial);              /* its last checkpoint is whole */
/* Looks until step `step` is committed, or the run has ended. */
HD_MUST_USE enum hd_err hd_trial_reach(struct hd_trial *trial, uint64_t step);
/* The coordinator's answer to a request; HD_E_NOTFOUND: there is none now. */
HD_MUST_USE enum hd_err hd_trial_ask(struct hd_trial *trial, const char *ask);
/* Runs the twin and compares. HD_E_INTEGRITY: the states differ. */
struct hd_trial_end { char disturbed[HD_HASH_HEX], twin[HD_HASH_HEX]; bool same; };
HD_MUST_USE enum hd_err hd_trial_compare(struct hd_trial *trial, struct hd_trial_end *end);

#endif
