/* daemon.h -- the scheduler of a cluster as a process: jobs that were submitted, pools of devices, a policy,
 * rounds.
 *
 * `heddle serve --dir DIR --policy NAME --pool ...` runs it. Decisions are scheduler/dispatch.h's, what must
 * not be forgotten is daemon/jobs.h's, devices are daemon/pool.h's; users come through frontends
 * (daemon/frontend.h says what can be asked). The folder:
 *
 *	DIR/jobs.sqlite           jobs, leases, events; who holds it schedules
 *	DIR/runs/<id>-<name>/     one run a job, as of `heddle run`; besides: lease (whose it is), seat (its coordinator's), end.json
 *	DIR/devices/<name>        seats of workers (driver/pid_lock.h)
 *	DIR/decisions.ndjson      what came and what was decided, a line each (hd_dispatch_replay, from a line with "open" on); beyond
 *	                          64 MiB it becomes decisions.1.ndjson, in place of the one of before, and a new one goes on
 *
 * 1. A second daemon of the same folder ends at once with HD_E_AGAIN and changes nothing.
 * 2. What is decided, and what is answered to a user, is on the disk before anybody hears of it. If the disk
 *    takes no more, the daemon ends with the error, and jobs go on. A policy that a user changed decides on
 *    after a restart with the same `policy`; one that is started with another `policy` has that.
 * 3. Jobs outlive the daemon: coordinators and workers are processes of their own. A daemon that starts finds
 *    them by the seats they hold, and starts none twice.
 * 4. A job's coordinator starts no workers; the daemon starts one a device. Who takes over from a coordinator
 *    that died does likewise: the file `lease` in the run's folder says so.
 * 5. How a run ended is what its coordinator wrote into end.json for this lease; a run without a coordinator
 *    and without that file for HD_DAEMON_NO_COORDINATOR_NS and twice the job's workers.detect is over too, as
 *    a failed one.
 * 6. A run's folder is never begun anew: where DIR/runs has runs that the store does not know (it was
 *    damaged, and moved away), ids go on after theirs.
 * 7. Runs are looked at each HD_DAEMON_LOOK_NS; a run that does not answer within HD_DAEMON_ASK_NS is asked
 *    again later, and then within HD_DAEMON_RETRY_NS until it answers, but for each HD_DAEMON_PATIENT-th
 *    time: runs that stand still hold up nobody who asks the daemon. A look asks no further run after
 *    HD_DAEMON_ASK_NS; the next one goes on where it ended.
 * 8. A lease ends by itself: a run that hears no question of its scheduler for HD_DAEMON_ROUNDS rounds (for
 *    HD_DAEMON_ALONE_S at least) commits and leaves with exit code 75. Who restarts the scheduler later finds
 *    it queued. Each question says how long from now on. While the scheduler decides, which may take long,
 *    another thread puts those questions (lease_renewer.h).
 *
 * 9. A policy that does not answer for as long as a lease lasts (8) is given up: the shares that it gave last
 *    stay, by which jobs take turns as before, or where it never gave any the leases stay; devices out of
 *    service are left either way. `status`, the events and decisions.ndjson say so, and it is asked anew once
 *    its thread has ended; that of another policy (POST /v1/policy) is asked at once. No thread is killed: it
 *    is told to stop, which policies look for (scheduler/sched_policy.h). HD_DAEMON_SOLVES of them at most
 *    are in questions at once.
 *
 * Threads: one, the renewer's, and one for each policy that is asked for shares (scheduler/dispatch.h, rule
 * 10): however long that takes, runs are asked, leases go on, users are answered. To end, the daemon waits
 * HD_DAEMON_LAST_NS for them. What users ask of a policy (whatif, explain, whether a job fits) is asked in
 * the daemon's own thread, and told to stop after HD_DAEMON_ANSWER_NS: the user hears that it takes
 * too long. */
#ifndef HD_DAEMON_DAEMON_H
#define HD_DAEMON_DAEMON_H

#include "sys/clock.h"
#include "daemon/frontend.h"
#include "daemon/pool.h"

#define HD_DAEMON_LOOK_NS   INT64_C(200000000)
#define HD_DAEMON_ASK_NS    INT64_C(300000000)
#define HD_DAEMON_RETRY_NS  INT64_C(20000000)
/* who takes over has so long to start, after it missed the coordinator */
#define HD_DAEMON_NO_COORDINATOR_NS INT64_C(15000000000)
#define HD_DAEMON_ALONE_S   30.0
#define HD_DAEMON_ANSWER_NS INT64_C(5000000000)       /* of a policy, to a user */
#define HD_DAEMON_LAST_NS   INT64_C(10000000000)      /* of a policy's thread, when the daemon ends */
/* each so many questions a silent run has HD_DAEMON_ASK_NS again: it may be slow */
enum {
	HD_DAEMON_PATIENT = 8,
	HD_DAEMON_ROUNDS = 3,              /* the one that the lease is for, and two more */
	HD_DAEMON_FRONTENDS = 4,
	HD_DAEMON_SOLVES = 4,
	HD_DAEMON_QUEUED = 100000,         /* jobs that are not over */
};

/* Files of a run that belongs to a scheduler. */
/* {"job":7,"lease":2,"for_s":180}: its workers are started by a scheduler; rule 8 */
#define HD_RUN_LEASE "lease"
#define HD_RUN_PID_LOCK "seat"              /* of its coordinator */
/* {"lease":2,"exit":0,"step":100,"steps":100,"digest":"...","error":""} */
#define HD_RUN_END   "end.json"

struct hd_daemon_spec {
	struct hd_fs *fs;                 /* borrowed, as all of these */
	struct hd_clock *clock;
	const char *dir;
	struct hd_pools *pools;           /* open; begun here */
	const char *policy;
	double round_s;                   /* 0: the standard of rounds.h */
	double move_s;                    /* what a change of devices costs a job, for hysteresis */
	/* at the end jobs commit and leave, unless it is told to stop once more */
	bool drain;
	const struct hd_frontend *frontend;
	uint32_t nfrontends;
	enum hd_err (*stop)(void *user);  /* not HD_OK: end */
	void *user;
	/* events, for a log; may be NULL */
	void (*say)(void *user, const char *kind, uint64_t job, const char *text);
};

/* Serves until it is told to stop. HD_OK: by `stop` or a wish. `lives_on`: the thread of a policy is still at
 * work, so the process must end without what exit() does to what that thread may use (_Exit). */
HD_MUST_USE enum hd_err hd_daemon(const struct hd_daemon_spec *spec, bool *lives_on, struct hd_diag *diag);

/* The file HD_RUN_LEASE of a run; HD_E_NOTFOUND: it belongs to no scheduler. for_s: how long without a
 * word of it; 0: without end. */
struct hd_run_held { uint64_t job; uint32_t lease; double for_s; };
HD_MUST_USE enum hd_err hd_run_lease(struct hd_fs *fs, const char *run, struct hd_run_held *held,
	struct hd_diag *diag);
/* How a run ended, for whoever gave the lease. steps: with fewer it is not done, whatever it exits with;
 * 0: it had a target, or did not say. */
struct hd_run_end { uint32_t lease; int exit; uint64_t step, steps; char digest[40], error[200]; };
HD_MUST_USE enum hd_err hd_run_end_put(struct hd_fs *fs, const char *run, const struct hd_run_end *end,
	struct hd_diag *diag);
/* HD_E_NOTFOUND */
HD_MUST_USE enum hd_err hd_run_end_get(struct hd_fs *fs, const char *run, struct hd_run_end *end,
	struct hd_diag *diag);

#endif
