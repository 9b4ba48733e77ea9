/* run.h -- a job being trained: from a job file to a verified final checkpoint.
 *
 * The one loop that `run`, `resume`, `demo`, `bench` and the C API share: make the
 * task, open devices, adopt a plan, step, and between steps evaluate, checkpoint,
 * write metrics, obey signals. It makes no arithmetic and no decision about it.
 *
 * 1. A stop (signal, --steps, target reached) happens between two steps, after a
 *    committed checkpoint; the run can be resumed bit for bit.
 * 2. Everything a user sees goes through `struct hd_run_watch`; the loop prints
 *    nothing.
 * 3. A checkpoint that cannot be written is an event, the older ones stay, the run
 *    goes on and tries again at the next interval; only the final one is an error.
 * 4. A run goes on with the data that it began with (identity.h), and nothing is saved that was computed of
 *    files that were written to meanwhile: HD_E_INTEGRITY.
 *
 * Threads: one. */
#ifndef HD_RUN_RUN_H
#define HD_RUN_RUN_H

#include "protocol/view.h"
#include "checkpoint/ckpt.h"
#include "engine/forward.h"
#include "engine/times.h"
#include "engine/worker.h"
#include "run/rundir.h"

struct hd_run;

struct hd_progress {
	struct hd_step_record record;
	const struct hd_plan *plan;       /* the one that the step ran under; the run's own */
	/* of pipelines over workers, of which the plan says ranks alone; 0: as the plan says */
	uint32_t nstages, npipes;
	uint64_t nsteps;
	/* of the last steps, for medians: sorting them takes longer than a small step's joins */
	const struct hd_times *times;
	double loss, step_ms, wait_share, eta_s;
	double samples_per_s;             /* of this step: the rows that it had, over its time */
};

/* What a front end hears. All slots may be NULL; called on the run's thread, between steps. */
struct hd_run_watch {
	void *user;
	void (*step)(void *user, const struct hd_progress *progress);
	void (*eval)(void *user, uint64_t step, const char *split, const struct hd_metrics *metrics);
	/* `eval` follows, or the run fails */
	void (*evaluating)(void *user, const char *split);
	/* events worth a line: plan, checkpoint, warning, choice */
	void (*note)(void *user, const char *kind, const char *text);
	/* what the step at hand has been waiting for, for some seconds; any thread; NULL: nothing listens */
	void (*waits)(void *user, const char *text);
};

enum { HD_RUN_SPEEDS = 64 };              /* devices with speeds of their own */

struct hd_run_options {
	struct hd_worker_spec worker;     /* kind, devices x threads; no devices: chosen (choose.h) */
	uint32_t auto_cores;              /* to divide then; 0: all that are usable */
	bool     explain;                 /* report every division, not only the chosen one */
	/* stop with a checkpoint once this many steps are committed; 0: the job's */
	uint64_t stop_at;
	bool     quiet_disk;              /* no run directory: bench, tests */
	const char *recordings;           /* without one: flight/ and trace/ lie there; NULL: none are made */
	/* of the same model and data, which are not opened again; borrowed; NULL: it is made of the job */
	const struct hd_task *task;
	/* one worker of several: plans are adopted through dist.h, and what is noted goes to `watch`
	 * alone */
	bool     shared;
	/* takes the stages that the job asks for: verbs that train. Others (evaluation, prediction, costs of
	 * ops) run the whole model on each device, whatever `parallel:` says */
	bool     stages;
	/* the stages that hd_run_tell_team() lays over workers, in place of the job's; borrowed; NULL */
	const struct hd_view_shape *shape;
	const char *map;                  /* plan text file instead of the even map; NULL */
	/* plan by measured costs, also where the folder has a plan for these devices */
	bool     replan;
	/* of each device against the others, for plans alone; none: all alike */
	struct hd_run_speeds { double at[HD_RUN_SPEEDS]; uint32_t n; } speeds;
	/* null devices wait so many times what a core takes, as it is measured before, each at its own speed;
	 * 0: they take no time */
	double   pace;
	struct hd_run_speeds paced;
	/* so many times what this file says (given_costs.h), in place of a core; borrowed; NULL */
	const char *profile;
	struct hd_run_watch watch;
	/* Asked between steps: 0 go on; HD_E_PREEMPTED or HD_E_INTERRUPT: checkpoint and stop. NULL:
	 * never. */
	enum hd_err (*stop)(void *user);
};

/* `dir` NULL with quiet_disk. The job must outlive the run. */
HD_MUST_USE enum hd_err hd_run_create(struct hd_run **run, const struct hd_job *job, struct hd_fs *fs,
	struct hd_clock *clock,
	struct hd_rundir *dir, const struct hd_run_options *options, struct hd_diag *diag);
/* What for: to go on with the bits it began with, as another lineage, or to read it and train no further. */
enum hd_restore { HD_RESTORE_GO_ON, HD_RESTORE_NEW_SEMANTICS, HD_RESTORE_READ };
/* Takes the state of a checkpoint. Refuses one of other data; one of another job unless it is for new
 * semantics; and, to go on, one whose sums were made in another order (HD_CKPT_ORDERS). */
HD_MUST_USE enum hd_err hd_run_restore(struct hd_run *run, const char *ckpt_folder, enum hd_restore what,
	struct hd_diag *diag);
/* Trains to the end or to a stop. HD_E_PREEMPTED, HD_E_INTERRUPT: stopped with a checkpoint. */
HD_MUST_USE enum hd_err hd_run_train(struct hd_run *run, struct hd_diag *diag);
/* Where a step failed as its samples could not be read: a checkpoint of the state before it, which is whole,
 * and a note that says so. The step has been given up. What cannot be saved is a warning. */
void hd_run_keep_unread(struct hd_run *run);
/* What is due at the step of the state: evaluation, a checkpoint; `end`: the run ends here, both are due.
 * *reached: so is the target. hd_run_train() calls it; a caller that steps by dist.h calls it where the run
 * is one of several and this worker its scribe. */
HD_MUST_USE enum hd_err hd_run_boundary(struct hd_run *run, bool end, bool *reached, struct hd_diag *diag);
/* in place of the one it was made with */
void hd_run_watch(struct hd_run *run, const struct hd_run_watch *watch);
void hd_run_begin(struct hd_run *run);    /* from now on intervals of time count (checkpoint.every) */
/* Would a boundary of the step of the state save? The boundary then does what was answered, whatever the
 * clock says. */
bool hd_run_saves(struct hd_run *run, bool end);
/* steps; 0: none has a digest. Since hd_run_begin(). None where the slots of a tensor in slices lie at some
 * members (comm.sync: sharded): its digest is of its natural order. */
uint64_t hd_run_digest_every(const struct hd_run *run);
/* With trace.samples: what these virtual nodes took in `step`, the step at hand or the last one, goes to the
 * record of `worker` (samples.h). A caller that steps by dist.h calls it when a pass is computed, before any
 * process hears of it. A record that cannot be kept is a warning, once; it is then found to be incomplete. */
void hd_run_took(struct hd_run *run, uint64_t step, uint32_t worker, const struct hd_vrange *range,
	uint32_t nranges);
/* With trace.values: what the worker has made and not written down yet goes to the record of `worker`
 * (value_log.h). A caller that steps by dist.h calls it when a pass is computed, and when a step is finished.
 * A record that cannot be kept is a warning, once. */
void hd_run_made(struct hd_run *run, uint32_t worker);
/* Are the data what they were? A call of the system for each file, rarely enough to cost nothing unless it
 * `must` be: a caller that steps by dist.h asks before a step is sealed. */
HD_MUST_USE enum hd_err hd_run_look(struct hd_run *run, bool must, struct hd_diag *diag);
/* Will hd_run_boundary() read the parameters, to evaluate? */
bool hd_run_evaluates(const struct hd_run *run, bool end);
/* Is the state of an evaluation kept that is the best (checkpoint.best)? Then it needs all slots, too. */
bool hd_run_keeps_best(const struct hd_run *run);
bool hd_run_digest_due(const struct hd_run *run);     /* after the step at hand (trace.digest) */
HD_MUST_USE enum hd_err hd_run_eval(struct hd_run *run, const char *split, struct hd_metrics *metrics,
	struct hd_diag *diag);
void hd_run_destroy(struct hd_run *run);

struct hd_worker *hd_run_worker(struct hd_run *run);
const struct hd_worker_spec *hd_run_spec(const struct hd_run *run);   /* as it came out */
const struct hd_task *hd_run_task(const struct hd_run *run);
struct hd_recorder *hd_run_recorder(const struct hd_run *run);        /* NULL: off */
/* What its thread has to say becomes an event. By the thread that makes steps. */
void hd_run_say_recorded(struct hd_run *run);
bool hd_run_best(const struct hd_run *run, double *metric);           /* last evaluation's metric, if any */
/* What the plan in use was predicted to take, and what its steps took so far: between steps. NULL: nothing
 * was measured before the run, so nothing was predicted. */
struct hd_forecast;
const struct hd_forecast *hd_run_forecast(struct hd_run *run);

/* What held it back (held_back.h), once it has ended well; "": nothing did. */
const char *hd_run_held_back(const struct hd_run *run);

/* What the worker is predicted to take, under the plan or part that it has: a note of kind "choice". */
void hd_run_tell_memory(struct hd_run *run);
/* Of `n` workers like this one (options.shared, no part yet) in a view of their own: devices, virtual nodes,
 * and what each is predicted to take, in the words of tell_memory(). Nothing is taken. HD_E_REFUSED: one
 * of them does not fit; HD_E_INVAL: a run has not so many. */
HD_MUST_USE enum hd_err hd_run_tell_team(struct hd_run *run, uint32_t n, struct hd_diag *diag);

#endif
