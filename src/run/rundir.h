/* rundir.h -- the folder of a run: what is in it, which process holds it, how lines are added.
 *
 * job.yaml as given (of the short form of a graph's job the long one, resolved), job.resolved.json,
 * job.folder (where its relative paths begin), identity.json (identity.h), metrics.ndjson (one object per
 * step), events.ndjson, ckpt/, plan/, flight/, log/, report.html, lock; with trace.samples also samples/
 * (samples.h), with trace.values values/ (value_log.h), with checkpoint.every: auto ckpt.every
 * (ckpt_every.h).
 *
 * 1. One process holds a run: flock on `lock`. A second is refused with what to do. The file says which
 *    process, as what, and on which machine: the folder may be shared by several, and a process of another
 *    one is no number here.
 * 2. Lines are appended whole. A step has one, but where the state was lost: an event `again` says the step
 *    of the checkpoint from which on they are done again; of each the last line counts. Bits are the same,
 *    if the job fixes them.
 * 3. Mode 0700. A new run never overwrites an old one: runs/<name>, <name>-2, ...;
 *    with --out, a folder that holds a run already is refused (exit 2) with the
 *    `resume` line to type.
 * 4. A folder that is removed or moved under its run is noticed by the holder, which ends the run after the
 *    step at hand: nothing could reach it there. Its last checkpoint is written where the folder was.
 * 5. A disk that fills up stops neither the run nor the checkpoint logic. Lines that could not be written are
 *    reported at the end of the run and, once there is space, by an event `unrecorded` with their number. */
#ifndef HD_RUN_RUNDIR_H
#define HD_RUN_RUNDIR_H

#include "base/json_writer.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/lines.h"
#include "sys/process.h"
#include "engine/forward.h"
#include "engine/worker.h"
#include "run/monitor.h"

#define HD_RUN_JOB "job.resolved.json"
#define HD_RUN_TRACES "trace"             /* full traces, a file a process (engine/recorder.h) */
#define HD_RUN_FOLDER "job.folder"        /* job_files.h */

struct hd_rundir {
	struct hd_fs *fs;                 /* borrowed */
	struct hd_clock *clock;           /* borrowed */
	char path[512];
	struct hd_file lock;
	uint64_t lock_inode;
	int64_t looked_ns;                /* when it was looked at last; 0: never */
	bool missed, gone;                /* that look did not find it; nor did the one before */
	struct hd_lines metrics, events;
	int64_t began_ns;                 /* zero of "t"; the holder's to set */
	uint32_t membership;              /* epoch, in each event; the holder's to set */
	uint64_t step;                    /* of the newest line of metrics, written or lost */
	bool named;                       /* the folder's names are synced */
	bool lines_lost;                  /* some, ever; reported at the end */
	uint64_t said_lost;               /* lines of metrics that an event said; metrics.lost: not yet */
	bool fresh;                       /* made by hd_rundir_create(), nothing was there before */
	struct hd_monitor *monitor;       /* owned; NULL: the job asks for none (monitor.h) */
};

/* New: `out` or, when NULL, a fresh name below `parent`/runs. `job_yaml` is copied in as it is. */
HD_MUST_USE enum hd_err hd_rundir_create(struct hd_rundir *dir, struct hd_fs *fs, struct hd_clock *clock,
	const char *parent,
	const char *out, const char *name, const char *job_yaml, size_t job_len, struct hd_diag *diag);
/* HD_E_AGAIN: another process holds it. */
HD_MUST_USE enum hd_err hd_rundir_open(struct hd_rundir *dir, struct hd_fs *fs, struct hd_clock *clock,
	const char *path, struct hd_diag *diag);
/* Of a run that another process holds, on this machine or on a shared file system: neither lock nor lines;
 * events and metrics written through it go nowhere. HD_E_NOTFOUND: no run there. */
HD_MUST_USE enum hd_err hd_rundir_visit(struct hd_rundir *dir, struct hd_fs *fs, struct hd_clock *clock,
	const char *path, struct hd_diag *diag);
void hd_rundir_close(struct hd_rundir *dir);
/* HD_E_NOTFOUND: the process that made the folder `path` ended before the job lay in it; nothing was
 * trained. */
HD_MUST_USE enum hd_err hd_rundir_has_job(struct hd_fs *fs, const char *path, struct hd_diag *diag);

/* As what a run is held: an observer knows how to speak to its holder. */
enum hd_hold {
	HD_HOLD_NONE,                     /* by no process */
	HD_HOLD_BEGINS,                   /* it has not said yet, or is going */
	HD_HOLD_ALONE,                    /* it trains in its own process */
	HD_HOLD_EVALUATES,                /* so it does, and evaluates at the moment */
	HD_HOLD_COORDINATES,                 /* it coordinates workers */
};
void hd_rundir_hold_as(struct hd_rundir *dir, enum hd_hold hold);  /* `dir` is held, by this process */
/* Of the run in the folder `path`, held or not. Any number may look at once; an observer is not taken for
 * a holder. */
struct hd_held {
	enum hd_hold hold;
	int pid;                          /* of the holder; 0: not known on this machine */
	/* the machine of the holder, or of the last one if there is none; "": this one, or not known */
	char host[HD_HOST_CAP];
};
HD_MUST_USE enum hd_err hd_rundir_held(struct hd_fs *fs, const char *path, struct hd_held *held,
	struct hd_diag *diag);

/* Is the folder of `dir`, which is held, no longer where it was? Looks now and then; twice in a row it must
 * be missing, or be another one. */
bool hd_rundir_is_gone(struct hd_rundir *dir);
/* For what ends the run then: says where it was and where the last state is. */
#define HD_RUNDIR_GONE "its folder %.400s was removed or moved while it went on, and nothing reaches it " \
	"there: its last checkpoint lies there now; a folder that was moved can be resumed where it is"

/* From `step` on, what the job's log.tensorboard and log.prometheus ask for is kept until the folder is
 * closed. What cannot be had is an event; the run goes on. */
void hd_rundir_watch(struct hd_rundir *dir, const struct hd_job *job, uint64_t step);
/* Lines of metrics and events that could not be written since it was opened: never falls. */
uint64_t hd_rundir_lost(const struct hd_rundir *dir);
/* Each step, whether it has a line or not (log.metrics_every). */
void hd_rundir_stepped(struct hd_rundir *dir, const struct hd_step_record *record,
	const struct hd_step_times *times, uint32_t plan);

/* Closes, and removes what hd_rundir_create() made: for a job that was refused before its first step. */
void hd_rundir_discard(struct hd_rundir *dir);

void hd_rundir_path(const struct hd_rundir *dir, const char *name, char *path, size_t cap);
HD_MUST_USE enum hd_err hd_rundir_put(struct hd_rundir *dir, const char *name, const char *bytes, size_t len,
	struct hd_diag *diag);

/* Fields of a step that are not in its record. wait_ms: over workers for others, of a run alone for data;
 * peers_ms: of that, for others. bytes_out and what follows: sums over workers. */
struct hd_step_times {
	double step_ms, wait_ms, peers_ms;
	uint32_t workers, membership, redone;
	uint64_t bytes_out, preempted, inverted;
};
void hd_rundir_metrics(struct hd_rundir *dir, const struct hd_step_record *record,
	const struct hd_step_times *times, uint32_t plan);
/* Lines written so far outlive the machine, as far as its disk does: called before a checkpoint of their
 * steps counts. */
void hd_rundir_sync(struct hd_rundir *dir);
/* The step after that of the last whole line of metrics.ndjson; 0: there is none. */
uint64_t hd_rundir_recorded(const struct hd_rundir *dir);
/* the same of the last line that has a digest */
uint64_t hd_rundir_verified(const struct hd_rundir *dir);

/* {"v":1,"t":...,"kind":kind,"step":step, <body>}: body is "" or `"key":value,...` made by the JSON
 * writer. */
void hd_rundir_event(struct hd_rundir *dir, const char *kind, uint64_t step, const char *body);
/* The same line, with its end, not written; false: it does not fit. */
bool hd_rundir_event_line(const struct hd_rundir *dir, struct hd_text *line, const char *kind, uint64_t step,
	const char *body);
/* Its body, for a caller that speaks to the run's holder instead. */
/* Those of eval.metrics, a key each. */
void hd_rundir_measures(struct hd_json_writer *writer, const struct hd_metrics *metrics);
void hd_rundir_eval_body(struct hd_json_writer *writer, const char *split, const struct hd_metrics *metrics);
void hd_rundir_eval(struct hd_rundir *dir, uint64_t step, const char *split,
	const struct hd_metrics *metrics);

#endif
