/* driver_int.h -- the inside of a run's coordinator; driver.h says what it promises.
 *
 *	driver.c             the loop, start and end
 *	driver_local.c       local workers
 *	driver_places.c      workers that a launcher starts
 *	driver_unrecorded.c  steps without a line in metrics.ndjson
 *	driver_act.c         actions of the machine carried out; events into the run's folder
 *	driver_links.c       sockets and messages of workers
 *	driver_requests.c    requests of users
 *	driver_shape.c       pipelines of another shape: asked for, or cut again
 *	driver_notice.c      notices that a worker's machine will be taken away
 *	driver_guard.c       redundancy that notices take the place of, or that is judged
 *	driver_guard_kept.c  what of it the next coordinator goes on with
 *	driver_saving.c      how far apart checkpoints are
 *	driver_ledger.c      what the machines are paid for
 *	driver_record.c      what is stored, and the state at start
 *	driver_trace.c       its own recording: decisions, and the clock that others align with
 *	driver_reading.c     whether workers get their samples alike
 *	driver_restore.c     the newest whole checkpoint, looked for beside the loop */
#ifndef HD_DRIVER_DRIVER_INT_H
#define HD_DRIVER_DRIVER_INT_H

#include <stdatomic.h>

#include "sys/thread.h"
#include "spot/guard.h"
#include "spot/resilience.h"
#include "spot/saving.h"
#include "spot/meter.h"
#include "wire/hub.h"
#include "launch/local_workers.h"
#include "pipeline/redundancy.h"
#include "engine/recorder.h"
#include "run/ckpt_every.h"
#include "run/ending.h"
#include "run/pipe_set.h"
#include "driver/driver.h"
#include "driver/control.h"
#include "driver/fairness.h"
#include "driver/live.h"
#include "driver/redraw.h"
#include "driver/replacement.h"
#include "driver/scaler.h"
#include "driver/store.h"

enum { HD_DRIVER_EVENTS = 256, DRIVER_RECORD_BYTES = 8 + 5 * 4 + 2 + HD_MAX_WORKERS * 4 + 4 + 8 + 4 + 2 +
	HD_MSG_TEXT + 4 + HD_MAX_WORKERS * 4 + 4 + HD_CO_UNFIT * 12 };

/* text "": free; holds: no local worker is started until some time after ends_ns */
struct driver_notice { uint32_t worker; bool holds, preempts; int64_t ends_ns; char text[128]; };
enum { DRIVER_NOTICES = 32 };             /* of more than that the ones that end first are forgotten */

/* The newest whole checkpoint of the run, read and verified by a thread of its own. */
struct driver_search {
	struct hd_thread thread;
	struct hd_hub *hub;               /* woken at its end */
	struct hd_fs *fs;
	const char *dir;
	atomic_bool ended;                /* `step` is there */
	uint64_t step;                    /* HD_NO_STEP: there is none */
	bool running, again;              /* again: asked for meanwhile */
	int64_t began_ns, said_ns;
};

struct driver {
	const struct hd_driver_spec *spec;
	struct hd_loop loop;
	struct hd_net net;
	struct hd_hub hub;
	struct hd_control control;
	struct hd_store *store;
	struct hd_host host;
	struct hd_recorder *recorder;     /* its decisions, and the clock of the run; NULL: off */
	/* steps [first, end) that are recorded on request, and the workers that know: those that join before
	 * the end are asked, too */
	struct { uint64_t first, end; uint32_t worker[HD_MAX_WORKERS], n; } traced;
	struct hd_local_workers local;
	uint32_t to_start;                /* workers that are wanted and not started yet */
	int64_t queued_ns;                /* when a place waited in its launcher's queue the last time */
	uint32_t presumed;                /* workers presumed started by an earlier coordinator */
	int64_t presumed_ns;              /* waited for until then; 0: no longer */
	struct hd_coordinator *machine;   /* NULL: the kernels of the job are not known yet */
	struct hd_co_config config;
	struct hd_pipe_set pipes;
	struct driver_search search;
	/* from which the run changes since stages drift, until it has changed; nstages 0: it does not */
	struct hd_view_shape redrawn;
	bool reshaped;                    /* this coordinator was asked for a shape */
	struct hd_reshape reshape;
	struct hd_straggler straggler;
	int64_t paces_ns;                 /* when its paces were stored last */
	struct hd_fairness fairness;
	struct hd_scaler scaler;
	struct hd_arena messages;
	uint8_t *buf;
	struct hd_co_event queue[HD_DRIVER_EVENTS];
	uint32_t first, nqueued;
	/* spawned: the machine has asked for workers */
	bool stepping, over, stop_asked, has_kernels, asked_for_all, has_spawned;
	int64_t until_ns;                 /* its lease; 0: without end */
	int64_t detect_ns;
	struct hd_driver_end end;
	double loss, step_ms, wait_ms;
	/* epoch of the newest view that was looked at for its plan; 0: none */
	uint32_t planned;
	bool unkept;                      /* a plan could not be written; reported once */
	/* steps in a row, up to now, without a record; every step below `recorded` is written or counted as
	 * lost */
	uint64_t unrecorded, recorded;
	/* steps below have a line of the state that is there: members tell of their last ones again */
	uint64_t had_lines;
	char address[HD_ADDR_CAP];        /* where other machines join; "": nowhere */
	bool evaluating;                  /* a member does */
	bool bill_unkept;                 /* a worker's bill of functions could not be written */
	bool sweep;                       /* sockets of workers that are gone may lie in the folder */
	struct driver_notice notice[DRIVER_NOTICES];
	bool held;                        /* a start waits for the end of a notice */
	bool has_fewer;                   /* a loss left fewer stages, which are in force */
	bool guards, guard_stuck;         /* elastic.resilience: by-notice; a change failed, as reported */
	/* by-notice had it off; a worker has not the memory for it, so that it stays off */
	bool guard_switched, guard_refused;
	enum hd_redundancy guard_mode;    /* while it is wanted */
	struct hd_guard guard;
	char way[16];                     /* elastic.resilience: of the job, or asked for since */
	bool judges;                      /* it is auto */
	enum hd_redundancy own_mode;      /* by auto: what the job had before; no refusal ends it */
	int64_t way_ns;                   /* when this was stored last */
	struct hd_resilience resilience;
	bool cannot[HD_NSPOT_STRATEGIES]; /* modes that did not work here */
	char judged[HD_RESILIENCE_WORDS]; /* what was worth what; "": not yet */
	bool saves;                       /* checkpoint.every is auto */
	struct hd_saving saving, saving_kept;     /* and as the run's folder has it */
	bool saving_unkept;               /* that it could not be written is said */
	bool saving_due;                  /* a worker was lost, or a checkpoint saved, since it was judged */
	uint32_t saving_commits;          /* since then */
	double back_h;                    /* losses per hour that go back to a checkpoint, as judged then */
	struct hd_meter meter;            /* what machines are paid for */
	struct hd_meter_clock meter_clock;
	/* what members do: steps, or a pause or a rebuild after a loss; looked at, and stored, the last
	 * time; it
	 * differs from what is stored by more than time */
	enum hd_meter_does halted_by;
	int64_t ledger_ns, metered_ns;
	bool unmetered;
	uint32_t unstored;                /* records in a row that could not be written */
	int inherited[HD_LOCAL_CHILDREN];         /* pids of children of the program before; [ninherited] */
	uint32_t ninherited;
	uint32_t exit_code;
	char exit_text[HD_MSG_TEXT + 1];
	enum hd_err err;
	struct hd_diag diag;
};

/* driver_act.c */
/* the first one counts */
void driver_fail(struct driver *c, enum hd_err err, const struct hd_diag *diag);
void driver_note(struct driver *c, const char *kind, uint32_t worker, const char *text);
/* what the machine or a worker notes: an event, and what follows from it here */
void driver_noted(struct driver *c, const char *name, uint32_t worker, const char *text);
/* to the machine, and does what it orders */
void driver_feed(struct driver *c, const struct hd_co_event *event);
/* A worker's host is "pid:123". A pid of another machine means nothing here: 0. */
int driver_pid(const struct hd_co_worker_status *w);

/* driver_local.c */
void driver_sweep(struct driver *c);                    /* sockets of workers that are gone */
void driver_look_at_local(struct driver *c);             /* reap those that ended, start missing ones */
/* before there is a machine: config.target is another one */
void driver_resize_start(struct driver *c);
const char *driver_next_zone(struct driver *c);         /* of the next local worker; NULL: none */
/* A member exists, or a worker that was not started here may become one. */
bool driver_has_others(struct driver *c);
/* The last line of a file in the run's folder; "" where there is nothing to read. */
enum { DRIVER_LINE = 300 };
void driver_last_line(struct driver *c, const char *name, char line[DRIVER_LINE]);

/* driver_places.c; nothing of them without a launcher */
void driver_places_begin(struct driver *c);
void driver_look_at_places(struct driver *c);           /* as many as are wanted now */
void driver_places_end(struct driver *c);               /* waits until none is left */
/* what places wait for; "" if none does */
const char *driver_places_why(const struct driver *c, char *out, size_t cap);

uint32_t driver_under_way(const struct driver *c);      /* to be started, or started and not heard of */

/* driver_requests.c: devices of a worker, the most of those that are here; 0: none is */
uint32_t driver_devices(const struct driver *c);
/* driver_shape.c: answers "shape" */
HD_MUST_USE enum hd_err driver_answer_shape(struct driver *c, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag);
/* driver_shape.c: elastic.resilience replica:F asks for more pipelines than there are virtual nodes for */
HD_MUST_USE enum hd_err driver_has_pipelines(const struct hd_pipes *pipes, const struct hd_job *job,
	struct hd_diag *diag);
/* driver_shape.c: from one of the next steps on; the run's job keeps the mode that was asked for */
HD_MUST_USE enum hd_err driver_make_redundant(struct driver *c, enum hd_redundancy mode,
	struct hd_diag *diag);
/* driver_shape.c, after a committed step: stages that drift are cut again (redraw.h) */
void driver_redraw(struct driver *c, uint64_t step, const struct hd_step_news *news);
/* driver_shape.c, when a view comes into force: what its steps are predicted to take, beside its plan */
void driver_keep_predicted(struct driver *c, const struct hd_view *view, const struct hd_pipes *pipes);
/* driver_shape.c, when the view in force is over: what its steps and instructions took, beside its plan */
void driver_keep_measured(struct driver *c);
/* driver_shape.c, when a worker, of whichever machine, says before its end that it has not the memory or
 * disk for a plan. Where that is of stages that were cut again, the change is void: the next worker would
 * end so, too. */
void driver_redraw_refused(struct driver *c);

/* driver_notice.c */
void driver_noticed(struct driver *c, uint32_t worker, const char *text);     /* JSON, by a worker */
/* as users read it; "": none */
const char *driver_notice_of(const struct driver *c, uint32_t worker);
bool driver_may_start(struct driver *c);                /* a local worker, now */

bool driver_is_announced(const struct driver *c, uint32_t worker);      /* that its machine goes */
void driver_notice_go_on(struct driver *c);             /* with those that the coordinator before knew */

/* driver_guard.c */
void driver_guard_begin(struct driver *c, const struct hd_job *job);    /* by its keys; forgets what was */
/* driver_guard_kept.c: with what the coordinator before has counted. A worker that has not the memory for a
 * mode is remembered by a coordinator that takes over; a resume may be on other machines. */
void driver_guard_go_on(struct driver *c);
void driver_guard_keep(struct driver *c);               /* now */
void driver_guard_keep_at_times(struct driver *c);
/* driver_guard.c. A worker has not the memory for a plan. True: it was one with redundancy that was switched
 * on in this run, and is switched off; by auto the job's own is back. */
bool driver_guard_refused(struct driver *c);
void driver_guard_noted(struct driver *c, const char *name, uint32_t worker);
/* after a committed step; `whole`: nothing of it was done twice */
void driver_guard_step(struct driver *c, uint64_t step, bool whole);
enum hd_spot_strategy driver_strategy(enum hd_redundancy mode);
/* So many workers are asked for, which may be too few for two pipelines that auto keeps by itself. */
void driver_guard_scales(struct driver *c, uint32_t target);
/* Other stages are in force: pipelines that are kept, of the job's way or as auto has it, which goes on
 * without where these stages have one */
uint32_t driver_guard_least(struct driver *c, const struct hd_pipes *pipes, const struct hd_job *job);
/* as `status` has it; returns `out` */
const char *driver_resilience(const struct driver *c, char *out, size_t cap);

/* driver_saving.c: checkpoint.every: auto (spot/saving.h). Without it these do nothing. */
void driver_saving_begin(struct driver *c);             /* with what the run's folder has of it */
void driver_saving_noted(struct driver *c, const char *name, const char *text);
void driver_saving_step(struct driver *c);              /* after a committed step */
/* as `status` has it; returns `out` */
const char *driver_saving(const struct driver *c, char *out, size_t cap);
/* how far apart checkpoints are, in seconds; a step takes so long */
double driver_saving_every_s(const struct driver *c, double step_s);

/* driver_ledger.c */
void driver_ledger_open(struct driver *c, const uint8_t *bytes, size_t len);    /*
	as it was stored; len 0: not */
void driver_ledger_look(struct driver *c);              /* which are there, and do what */
void driver_ledger_halted(struct driver *c, enum hd_meter_does by);     /* members; until STEPS,
	or a commit */
void driver_ledger_rest(struct driver *c);              /* the last step is committed, and all will leave */
void driver_ledger_commit(struct driver *c, uint64_t step);
void driver_ledger_fill(const struct driver *c, struct hd_live *live);
void driver_ledger_close(struct driver *c);             /* an event "paid"; living ones stay on record */

/* driver_reading.c. True: it is a window of a worker's reading, and no event. */
bool driver_reading_noted(struct driver *c, const char *name, uint32_t worker, const char *text);
void driver_reading_step(struct driver *c);             /* after a committed step */

/* driver_unrecorded.c */
void driver_tell_unrecorded(struct driver *c);
void driver_goes_on_at(struct driver *c, uint64_t step);
void driver_begins_at(struct driver *c, uint64_t step);         /* from disk */

/* driver_restore.c. Links are served while a checkpoint is read, or members would miss the coordinator. */
void driver_restore(struct driver *c);
void driver_look_at_restore(struct driver *c);          /* at each turn */
void driver_restore_finish(struct driver *c);           /* waits for the thread */

/* driver_links.c */
HD_MUST_USE enum hd_err driver_open_links(struct driver *c, struct hd_diag *diag);
void driver_look_for_a_start(struct driver *c, int64_t waited_ns);

/* Ends the run. It is stored, so that a later coordinator and workers that connect later see it, too. */
HD_MUST_USE enum hd_err driver_halt(struct driver *c, uint32_t code, const char *why, struct hd_diag *diag);
/* stored, too */
HD_MUST_USE enum hd_err driver_scale(struct driver *c, uint32_t target, struct hd_diag *diag);
/* driver_requests.c: the answer of a struct hd_control */
HD_MUST_USE enum hd_err driver_answer(void *self, const char *what, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag);

/* driver_become.c: answers "become" and "replace" */
HD_MUST_USE enum hd_err driver_answer_become(struct driver *c, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag);
HD_MUST_USE enum hd_err driver_answer_replace(struct driver *c, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag);
void driver_inherit(struct driver *c);                  /* children of the program before */
void driver_reap_inherited(struct driver *c);

/* driver_record.c */
HD_MUST_USE enum hd_err driver_configure(struct driver *c, struct hd_diag *diag);
/* driver_failover.c: hd_goes_on (protocol/coordinator.h); `self` is the driver */
bool driver_goes_on(void *self, const struct hd_view *view, const uint32_t *next, const uint8_t *arrived,
	const bool *lost);
/* A note: does it say that a worker has not the memory for the way back from fewer stages? Those that it goes
 * back to are none that were cut again, nor is their redundancy new. */
bool driver_fewer_noted(struct driver *c, const char *name);
/* hd_fewer_stages, likewise */
bool driver_fewer(void *self, const struct hd_fewer_ask *ask, struct hd_view_shape *fewer);
HD_MUST_USE enum hd_err driver_keep_record(struct driver *c, const struct hd_co_record *record,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err driver_keep_kernels(struct driver *c, struct hd_diag *diag);
/* When the run began, into the store or from there: the zero of "t" for each of its drivers. */
HD_MUST_USE enum hd_err driver_set_began(struct driver *c, struct hd_diag *diag);
/* The record as it lies in the store, little endian; get() also takes those of earlier programs: without
 * disputes, without what a halt is for, without refusals. HD_E_INTEGRITY: another length or value. */
void driver_record_put(const struct hd_co_record *record, uint8_t bytes[DRIVER_RECORD_BYTES]);
HD_MUST_USE enum hd_err driver_record_get(struct hd_co_record *record, const uint8_t *bytes, size_t len,
	struct hd_diag *diag);
/* The run is started again by a user: a stopped run starts at its checkpoint, and digest mismatches are
 * counted from 0 (rule 12 of protocol/coordinator.h). */
void driver_record_resume(struct hd_co_record *record);
/* The run has ended well, and no member of it is left: the store's record says so. */
void driver_keep_end(struct driver *c);
void driver_keep_paces(struct driver *c);
void driver_keep_meter(struct driver *c, const uint8_t *bytes, size_t len);
/* What else of this coordinator is stored: kinds of the store, never others for the same number. Best effort,
 * as of paces: without it the next coordinator begins to count. */
enum driver_keeps { DRIVER_KEEPS_GUARD = 7, DRIVER_KEEPS_WAY, DRIVER_KEEPS_NOTICES };
void driver_keep(struct driver *c, enum driver_keeps what, const uint8_t *bytes, size_t len);
size_t driver_kept(struct driver *c, enum driver_keeps what, uint8_t *bytes, size_t cap);       /* 0: none */
/* The plan of the view in force, where no member reaches the run's folder (run/kept_plan.h). */
void driver_keep_plan(struct driver *c);
/* Turns the autoscaler; NULL: off. Another coordinator of this run goes on with it. */
HD_MUST_USE enum hd_err driver_keep_policy(struct driver *c, const char *policy, struct hd_diag *diag);

/* driver_trace.c */
void driver_trace_open(struct driver *c);
void driver_trace_close(struct driver *c);
void driver_trace_commit(struct driver *c, uint64_t step);
uint32_t driver_trace_dump(struct driver *c);    /* copies of all flight files; how many workers are asked */
void driver_trace_look(struct driver *c);               /* what the recorder has to say becomes an event */
/* answers "record" and "dump" */
HD_MUST_USE enum hd_err driver_answer_record(struct driver *c, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag);
HD_MUST_USE enum hd_err driver_answer_dump(struct driver *c, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag);
uint64_t driver_trace_stamp(void *self);                /* of the hub's probes */

#endif
