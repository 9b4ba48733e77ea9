/* dispatch.h -- the state machine of a live scheduler: as jobs and devices come and go, it decides which jobs
 * start, grow, move and leave.
 *
 * The daemon (daemon/daemon.h) drives it; the policies and rounds are those of the simulator (sched_sim.h),
 * so both decide alike. The rounds say where a job should be (its *target*); what it holds is its lease
 * (lease.h). This machine moves the lease towards the target:
 *
 *	outs = hd_dispatch_step(d, &event, now_s, &diag);       store the records, then carry out the orders
 *
 * 1. A record is on the disk before an order of the same or a later call is carried out; records of one call
 *    are stored together. A caller that cannot store them must exit: the disk is the truth, and
 *    hd_dispatch_restore begins from it.
 * 2. No device is in two leases. A device enters a lease when no lease has it and no process was seen on it;
 *    it leaves the lease when its process was seen gone. So a job that waits for the devices of another one
 *    waits for that job's last sign of life, not for a clock.
 * 3. Orders are derived from target and observation, and repeated (AGAIN_S) until the effect is observed: an
 *    order may be lost, arrive twice or too late.
 * 4. A job whose target shares devices with its lease is resized while it runs. So is a job that moves, if
 *    the new devices are free: they join, then the old ones leave. If they are not free, the job commits,
 *    leaves and starts again: no two jobs wait for each other.
 * 5. Exit codes of a run: 0 is done, unless early (before its last step, without a target), which counts as
 *    75. 2, 3, 4, 5 fail the job; 75 and 10 queue it again. Any other code is a failed run, and so are 75 and
 *        10 if
 *    the run was not asked to leave and took no step. HD_DISPATCH_FAILURES failed runs without a step in
 *    between drop the job with the reason. A run that was killed for leaving too late does not count.
 * 6. Rates: as requested, else the speed of the type times 1 step/s. T <- 0.5 T + 0.5 measured, for each
 *    stretch of 10 steps or more between two decisions on one type with `scale` devices. A measurement within
 *    a tenth of T changes nothing, or noise would decide between equal jobs. The first measurement replaces a
 *    guess, and corrects the guesses of other types in proportion. An outlier (no step, or above 10 T) is
 *    ignored until a second measurement agrees.
 * 7. Boundaries are multiples of the round from the first arrival on. A round's books are closed at its
 *    boundary, however late that call is; between boundaries, devices that became free are offered at once.
 * 8. Nothing is decided before the first TICK, so that the caller can first report what it found at a start.
 * 9. With a log, each call that changed something adds one line: its input and the decisions. The calls of a
 *    log, repeated from its first line on, write the same bytes.
 *
 * 10. With `apart`, a policy is not called within a step. A boundary that is due takes a snapshot of the jobs
 *    (hd_dispatch_asks); the caller solves it, in another thread if it likes, and delivers SHARES. The round
 *    waits for them, but not beyond its own end; later boundaries use the old shares. Changes since the
 *    snapshot hold: shares of jobs that left are dropped, new jobs have none until the next answer, and all
 *    changes are part of the next snapshot. An answer is a function of its snapshot and of those before it,
 *    so rule 9 holds whatever thread solved it, and when.
 *
 * 11. The solver may give up (GIVE_UP). Rounds go on with the old shares; before the first answer, jobs keep
 *    their leases but for devices out of service. Jobs without a share wait. The next boundary takes a new
 *    snapshot, and the policy starts without memory of its earlier answers. The old snapshot lives as long as
 *    it is held: a thread inside it is not killed, and touches nothing of the machine. The log has a line for
 *    it, so a replay gives up there and solves nothing.
 *
 * 12. The terms of a job (terms.h) decide whether it takes part at all: rounds and policy see no job that is
 *    held, waits for another one, or whose array has as many tasks at work as may be at once (a task counts
 *    from when it takes part until its devices are free; lower indices first). A job that is held while it
 *    runs commits and leaves its devices. A job whose other job ended otherwise than asked is cancelled.
 * 13. Running time counts from when a run was first seen to run until it is over (ran_s, from_s). At the
 *    limit the job is asked to commit and leave, as if cancelled, and ends as TIMEOUT; a tenth of the limit
 *    before, a note says so. What it does in the meantime it keeps: a run that reaches its end is DONE.
 * 14. `expect_s` is a guess of the rate (6): steps / expect_s on the fastest type the job may use, on others
 *    in proportion to their speed. Measurements replace it.
 * 15. Limits (quotas) hold at each moment: the sum of the leases of the jobs of a limit, those that are being
 *    left included, never exceeds it. A job that no room is left for waits as QUOTA, and keeps none of the
 *    devices from others.
 * 16. Windows (window.h) keep devices from jobs: no order starts a worker on such a device from `drain_s`
 *    before the window begins until it ends, and jobs that it is kept from are asked to leave it then. One
 *    that has not left as the window begins (or `drain_s` after it was made, if that is later) is killed. The
 *    jobs of a reservation are given its devices in the order of their ids, as many as they ask for at once,
 *    until it ends, and take no turns meanwhile; those for which there is no room take part in the rounds.
 *    A window is taken back by its end, without a record; the caller drops what is over.
 * 17. With partitions a job is given devices of its own alone, and shares, books and rounds are each
 *    partition's, at common boundaries. Of a device in several the first whose round takes it has it: to
 *    the others, what a job of it is meant to have is out of service, unless they preempt it. Then its job
 *    leaves the device, or shrinks, as where a device goes out of service. Limits (15) hold over all of them.
 * 18. With `whole` a lease has one set of devices from its begin to its end: what rule 4 does while a job
 *    runs is done by a checkpoint. A job that is to have more goes on until all of that is free.
 *
 * Pure: no clock, file, socket, process; time is an argument and does not go back. create/destroy; outs hold
 * until the next call; one thread at a time. */
#ifndef HD_SCHEDULER_DISPATCH_H
#define HD_SCHEDULER_DISPATCH_H

#include "base/json.h"
#include "scheduler/lease.h"
#include "scheduler/sched_policy.h"
#include "scheduler/sched_why.h"
#include "scheduler/terms.h"
#include "scheduler/window.h"

enum {
	HD_DISPATCH_TYPES = 16,                   /* of devices: a job's row has a rate for each */
	/* devices of one job: workers of one run (driver/launch.h) */
	HD_DISPATCH_SET = 64,
	HD_DISPATCH_FAILURES = 5,
	HD_DISPATCH_STEPS = 10,                   /* of a stretch that is measured */
	HD_DISPATCH_WHY = 200,
	/* of a job: its user's, its accounts', from its own outward, its groups', two of its partition */
	HD_DISPATCH_LIMITS = 12,
	HD_DISPATCH_WITHIN = 4,                   /* accounts that its own lies within */
	HD_DISPATCH_WINDOWS = 64,
	HD_DISPATCH_PARTITIONS = 16,
	HD_PARTITION_NAME = 32,
};

/* speed: 1 is a plain core */
struct hd_dispatch_type { const char *name; uint32_t n; double speed, price_usd_h; };

/* Devices that the jobs of one name are given (rule 17). */
struct hd_dispatch_partition {
	const char *name;
	uint32_t most;                            /* devices of one job; 0: any */
	/* bits: of partitions behind it, whose jobs leave devices that it takes */
	uint64_t preempts;
	uint32_t ndevices;
	const uint32_t *device;
};

struct hd_dispatch_setting {
	/* name (hd_policy_parse); not one that puts two jobs on a device */
	const char *policy;
	double round_s, min_reset_s, kappa;       /* 0: as in rounds.h */
	double move_s;                            /* cost of a change of devices, for hysteresis */
	/* until a run must have been seen; must have gone: 0: 120, 60 */
	double start_s, drain_s;
	uint32_t ntypes;
	const struct hd_dispatch_type *type;      /* sorted by name; devices are numbered through */
	uint32_t npartitions;                     /* 0: all jobs share all devices */
	/* in the order in which they take devices */
	const struct hd_dispatch_partition *partition;
	double began_s;                           /* zero of the boundaries; below 0: the first arrival is */
	bool apart;                               /* rule 10 */
	bool whole;                               /* rule 18 */
	/* of memory for one answer, beyond which the policy refuses; 0: 1 GiB */
	size_t policy_bytes;
};

/* Stored by name.
 *        id          name          */
#define HD_DISPATCH_STATES(X)        \
	X(OPEN,       "open")        \
	X(DONE,       "done")        \
	X(FAILED,     "failed")      \
	X(CANCELLED,  "cancelled")   \
	X(TIMEOUT,    "timeout")

enum hd_dispatch_state {
#define X(id, name) HD_DISPATCH_##id,
	HD_DISPATCH_STATES(X)
#undef X
	HD_DISPATCH_NSTATES
};

enum hd_rate_from { HD_RATE_GUESSED, HD_RATE_ASKED, HD_RATE_MEASURED };
/* outlier: rule 6; below 0: none */
struct hd_dispatch_rate { double steps_s, outlier; enum hd_rate_from from; };

/* What all jobs that have a limit of that name may have together, at once; UINT32_MAX: any. Of one name the
 * one that came last holds. */
struct hd_dispatch_limit { char name[120]; uint32_t devices, running; };
/* The account that it shares by, under policies that know entities (sched_state.h); name "": none. */
struct hd_dispatch_entity { char name[72]; double weight; bool fifo; };

/* A job as it is stored, but for `limit`, `entity`, `within`, `user` and `partition`, which its caller knows
 * when it starts again.
 * Points in time are seconds; below 0: not yet. */
struct hd_dispatch_job {
	uint64_t id;                              /* ascending with arrival, from 1 */
	uint32_t scale, min, max, nvns;           /* max 0: not elastic */
	double weight, submitted_s, started_s, ended_s, deadline_s;       /* deadline INFINITY: none */
	uint64_t steps, done;
	enum hd_dispatch_state state;
	uint32_t failures;                        /* in a row, without a step */
	uint32_t leases;                          /* given so far; the number of the last */
	int32_t exit;                             /* of the last run; -1: none ended */
	bool cancel;                              /* asked for, carried out as the run leaves */
	bool timeout;                             /* and it is its limit that asked */
	/* running time of runs that are over; since when the present one runs, below 0: none does */
	double ran_s, from_s;
	struct hd_job_terms terms;
	char why[HD_DISPATCH_WHY];                /* it failed, or its last run ended so */
	struct hd_dispatch_rate rate[HD_DISPATCH_TYPES];
	uint32_t nlimits;
	struct hd_dispatch_limit limit[HD_DISPATCH_LIMITS];
	struct hd_dispatch_entity entity;
	/* those that the entity lies within, the outermost first; their names differ */
	uint32_t nwithin;
	struct hd_dispatch_entity within[HD_DISPATCH_WITHIN];
	char user[HD_WINDOW_NAME + 1];            /* whose it is, for reservations */
	/* one of the setting; "" where there are none */
	char partition[HD_PARTITION_NAME + 1];
};

struct hd_dispatch_lease {
	uint64_t job;
	uint32_t number, epoch;
	enum hd_lease_state state;
	bool over;                                /* its run is; workers may still be there */
	/* until: of the round; of OFFERED, DRAIN: when it must have been seen, have gone */
	double since_s, until_s;
	uint32_t n, device[HD_DISPATCH_SET];      /* ascending */
};

/*        id         payload                         what happened */
#define HD_DISPATCH_EVENTS(X)                                                                                \
	X(SUBMIT,   "row, n",                      "n jobs came (0: one), whose ids follow each other; rates below 0 are to be guessed") \
	X(CANCEL,   "job",                         "its user wants it to end")                               \
	X(HOLD,     "job, ok",                     "it is held, or not any more")                            \
	X(WEIGHT,   "job, value",                  "another priority")                                       \
	X(SCALE,    "job, n",                      "devices at once from the next boundary on, steps/s in proportion") \
	X(DEVICE,   "device, ok",                  "it may be used, or not")                                 \
	X(WINDOW,   "window, ok",                  "devices are kept from jobs for a time, or not any more (by its name)") \
	X(SEEN,     "job, lease, step, n",         "its run goes on: steps committed, workers that take part") \
	X(PROCESS,  "job, device, ok, code",       "a worker of the job is on the device, or none; exit code, -1 not known") \
	X(ENDED,    "job, lease, code, step, early, text", "its run is over")                                \
	X(SHARES,   "",                            "what hd_dispatch_asks asked for is solved; if not, it is now") \
	X(GIVE_UP,  "text",                        "it is not waited for any more; the text goes to people") \
	X(TICK,     "",                            "time went by; before the first one nothing is decided")

enum hd_dispatch_event_kind {
#define X(id, payload, text) HD_DISPATCH_IN_##id,
	HD_DISPATCH_EVENTS(X)
#undef X
	HD_DISPATCH_IN_NKINDS
};

struct hd_dispatch_event {
	enum hd_dispatch_event_kind kind;
	uint64_t job, step;
	uint32_t lease, device, n;
	int32_t code;
	double value;
	bool ok, early;
	const char *text;
	const struct hd_dispatch_job *row;
	const struct hd_kept *window;
};

/*        id         name        payload           what the caller does */
#define HD_DISPATCH_OUTS(X)                                                                         \
	X(JOB,      "job",      "row",            "record: the job is so now")                      \
	X(LEASE,    "lease",    "held",           "record: its lease is so now")                    \
	X(NOTE,     "note",     "job, name, text", "record: an event for people")                   \
	X(START,    "start",    "job, lease, n",  "order: its run is to go on, or begin, for so many workers") \
	X(WORKER,   "worker",   "job, device",    "order: a worker of it on this device; then PROCESS, whatever came of it") \
	X(SCALE,    "scale",    "job, n",         "order: tell its run how many workers are meant") \
	X(LEAVE,    "leave",    "job, device",    "order: the worker on this device is to leave")   \
	X(STOP,     "stop",     "job",            "order: commit, and leave with all workers")      \
	X(KILL,     "kill",     "job",            "order: end all of it at once")

enum hd_dispatch_out_kind {
#define X(id, name, payload, text) HD_DISPATCH_DO_##id,
	HD_DISPATCH_OUTS(X)
#undef X
	HD_DISPATCH_DO_NKINDS
};

struct hd_dispatch_out {
	enum hd_dispatch_out_kind kind;
	uint64_t job;
	uint32_t device, n, lease;
	const struct hd_dispatch_job *row;
	const struct hd_dispatch_lease *held;
	const char *name, *text;
};
struct hd_dispatch_outs { const struct hd_dispatch_out *at; size_t n; };

struct hd_dispatch;

/* `log` is borrowed, may be NULL, and may be emptied between two calls. */
HD_MUST_USE enum hd_err hd_dispatch_create(struct hd_dispatch **dispatch,
	const struct hd_dispatch_setting *setting, struct hd_text *log,
	struct hd_diag *diag);
void hd_dispatch_destroy(struct hd_dispatch *dispatch);           /* takes NULL */

/* A scheduler that starts again: all jobs that are open or have a lease, by id, before the first step.
 * `lease` NULL: none. */
HD_MUST_USE enum hd_err hd_dispatch_restore(struct hd_dispatch *dispatch, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease,
	struct hd_diag *diag);
/* Whether the policy takes this job, alone on all devices: some know jobs of one device only, and one that is
 * refused would stop the decisions for all. HD_E_INVAL with the policy's reason, or there is no such
 * partition. Changes nothing. */
HD_MUST_USE enum hd_err hd_dispatch_fits(const struct hd_dispatch *dispatch,
	const struct hd_dispatch_job *row, double now_s, const atomic_bool *stop,
	struct hd_diag *diag);
/* Running time so far, of all its runs. */
double hd_dispatch_ran_s(const struct hd_dispatch_job *row, double now_s);
/* Whether no type could run it, were all devices in service and free: fewer than it needs at once (`scale`;
 * of a policy that resizes, `min`; always of one type), or a rate of 0. It waits for another policy or
 * another start of the scheduler, and `text` says so; "" if one could, or of a partition that there is not:
 * of that one nothing is known. */
bool hd_dispatch_unrunnable(const struct hd_dispatch *dispatch, const struct hd_dispatch_job *row,
	char text[HD_DISPATCH_WHY]);
/* HD_E_INVAL, HD_E_NOTFOUND: the event makes no sense, and nothing was changed. Another error: the machine
 * is of no use any more. */
HD_MUST_USE enum hd_err hd_dispatch_step(struct hd_dispatch *dispatch, const struct hd_dispatch_event *event,
	double now_s, struct hd_dispatch_outs *outs,
	struct hd_diag *diag);
/* The question that waits to be solved, snapshot and policy in one; NULL: none. Borrowed up to SHARES,
 * GIVE_UP or the machine's end, unless it is held. */
struct hd_dispatch_question;
struct hd_dispatch_question *hd_dispatch_asks(const struct hd_dispatch *dispatch);
/* Once a question, in any thread; steps of the machine may go on meanwhile, SHARES may not. */
void hd_dispatch_solve(struct hd_dispatch_question *question);
/* Has `solve` come to an end soon, if its policy looks (sched_policy.h): of use once it was given up. Any
 * thread. */
void hd_dispatch_stop(struct hd_dispatch_question *question);
/* Counted, in the machine's thread. */
void hd_dispatch_hold(struct hd_dispatch_question *question);
void hd_dispatch_release(struct hd_dispatch_question *question);
/* When time alone changes something: a boundary, a patience that ends, an order to repeat. INFINITY:
 * never. */
double hd_dispatch_next_s(const struct hd_dispatch *dispatch);

/* ---- what it knows ---- */

/* open, or with a lease; NULL: not here */
const struct hd_dispatch_job *hd_dispatch_job(const struct hd_dispatch *dispatch, uint64_t id);
/* NULL: it has none */
const struct hd_dispatch_lease *hd_dispatch_lease(const struct hd_dispatch *dispatch, uint64_t id);
uint32_t hd_dispatch_njobs(const struct hd_dispatch *dispatch);
/* id of the i-th, ascending */
uint64_t hd_dispatch_nth(const struct hd_dispatch *dispatch, uint32_t i);
/* steps/s of the last stretch; 0: none */
double hd_dispatch_rate_now(const struct hd_dispatch *dispatch, uint64_t id);
/* the next; INFINITY: none */
double hd_dispatch_boundary_s(const struct hd_dispatch *dispatch);
/* zero of the boundaries; below 0: no job came yet */
double hd_dispatch_began_s(const struct hd_dispatch *dispatch);
double hd_dispatch_round_s(const struct hd_dispatch *dispatch);
/* window: that keeps it from jobs; NULL: none */
/* partitions: a bit for each that has it */
struct hd_dispatch_device { uint64_t job, partitions; bool usable, there, leaving; uint32_t type;
	const struct hd_kept *window; };
struct hd_dispatch_device hd_dispatch_device(const struct hd_dispatch *dispatch, uint32_t device);
/* in the order in which they came */
uint32_t hd_dispatch_nwindows(const struct hd_dispatch *dispatch);
const struct hd_kept *hd_dispatch_window(const struct hd_dispatch *dispatch, uint32_t i);

/* Why a job is where it is: those of sched_why.h, and
 *        id            name                                                                */
#define HD_DISPATCH_WHYS(X)                                                                  \
	X(VACATING,     "VACATING")       /* its devices are given, and being left by others */    \
	X(HELD,         "HELD")           /* its user, or an operator, holds it */                 \
	X(DEPENDS,      "DEPENDS")        /* it runs after a job that is not over */               \
	X(ARRAY_FULL,   "ARRAY_FULL")     /* as many tasks of its array run as may at once */           \
	X(QUOTA,        "QUOTA")          /* the jobs of one of its limits have as much as they may */   \
	X(RESERVED,     "RESERVED")       /* devices that it needs are kept from it for a time */        \
	X(PARTITION,    "PARTITION")      /* devices that its partition shares are with jobs of others */

struct hd_dispatch_why_type { uint32_t type, devices, free; double steps_s, share, received_s, due_s,
	priority; };
struct hd_dispatch_why {
	const char *code;
	char text[400], more[400];                /* more: the what-if; "" none */
	uint32_t ntypes;
	struct hd_dispatch_why_type type[HD_DISPATCH_TYPES];
};
/* what_if: asks the policy again, which takes a while, up to `stop`. Texts name no job that `may_see` does
 * not allow (NULL: all). */
struct hd_dispatch_ask {
	double now_s;
	bool what_if;
	const atomic_bool *stop;                  /* NULL: never */
	hd_may_see *may_see;
	void *user;                               /* of may_see */
};
/* HD_E_NOTFOUND */
HD_MUST_USE enum hd_err hd_dispatch_explain(struct hd_dispatch *dispatch, uint64_t id,
	const struct hd_dispatch_ask *ask, struct hd_dispatch_why *why, struct hd_diag *diag);

/* Of a job that its terms keep from taking part (rule 12): the code and the sentence of `explain`; false:
 * they do not. */
bool hd_dispatch_kept_back(const struct hd_dispatch *dispatch, uint64_t id, struct hd_dispatch_why *why);

/* What the policy would be asked of that partition ("" where there are none) at that time, and its setting:
 * for hd_sched_what_if (sched_why.h). Changes nothing; lies in `arena`. HD_E_INVAL: no such partition. */
HD_MUST_USE enum hd_err hd_dispatch_snapshot(const struct hd_dispatch *dispatch, const char *partition,
	double now_s, struct hd_arena *arena, struct hd_policy_setting *setting,
	struct hd_sched_state *state, struct hd_diag *diag);
/* The setting of a policy that a live scheduler can have. HD_E_INVAL. */
HD_MUST_USE enum hd_err hd_dispatch_policy(const char *name, struct hd_policy_setting *setting,
	struct hd_diag *diag);

/* ---- the log ---- */

/* Makes a machine as the first lines of a log say, and repeats its calls; the log that this makes goes to
 * `again`. HD_E_INPUT: not a log. The texts of the setting lie in `arena`. For tests. */
HD_MUST_USE enum hd_err hd_dispatch_replay(const char *name, const char *log, size_t len,
	struct hd_arena *arena, struct hd_text *again,
	struct hd_diag *diag);

const char *hd_dispatch_state_name(enum hd_dispatch_state state);

#endif
