/* daemon.h -- the scheduler process of a cluster: submitted jobs, pools of devices, a policy, rounds.
 *
 * `heddle serve --dir DIR --policy NAME --pool ...` runs it. scheduler/dispatch.h decides, jobs.h stores,
 * pool.h has the devices, frontends talk to users (frontend.h lists the requests). The folder:
 *
 *	DIR/jobs.sqlite           jobs, leases, events; its lock makes a process the scheduler
 *	DIR/runs/<id>-<name>/     one run a job, as of `heddle run`; besides: lease, seat (pid lock
 *	                          of its coordinator), end.json, until
 *	DIR/devices/<name>        pid locks of workers (driver/pid_lock.h)
 *	DIR/decisions.ndjson      inputs and decisions, a line each (for hd_dispatch_replay, from a line with
 *	                          "open" on); beyond 64 MiB it becomes decisions.1.ndjson
 *
 * 1. A second daemon of the same folder ends at once with HD_E_AGAIN and changes nothing.
 * 2. Write-ahead: decisions and answers to users are on disk before they leave. If the disk is full, the
 *    daemon ends with the error, and jobs go on. A policy set by a user survives a restart with the same
 *    --policy; a restart with another --policy replaces it.
 * 3. Jobs outlive the daemon: coordinators and workers are processes of their own. A new daemon finds them by
 *    their pid locks and starts none twice.
 * 4. The daemon starts the workers of a job, one a device; its coordinator starts none, nor does a
 *    coordinator after a takeover: the file `lease` in the run's folder says so.
 * 5. How a run ended is what its coordinator wrote into end.json for this lease. A run without coordinator
 *    and without that file for HD_DAEMON_NO_COORDINATOR_NS plus twice the job's workers.detect has failed.
 * 6. A run's folder is never reused: if DIR/runs has runs that the store does not know (it was damaged and
 *    moved away), new ids start after theirs.
 * 7. Runs are polled every HD_DAEMON_LOOK_NS. A run that does not answer within HD_DAEMON_ASK_NS gets only
 *    HD_DAEMON_RETRY_NS from then on, and HD_DAEMON_ASK_NS each HD_DAEMON_PATIENT-th time, until it answers:
 *    hung runs do not block users. A poll ends after HD_DAEMON_ASK_NS; the next one goes on from there.
 * 8. A lease expires by itself: a run that hears no request of its scheduler for HD_DAEMON_ROUNDS rounds (at
 *    least `alone_s`) commits and leaves with exit code 75; a restarted scheduler queues it. Each
 *    request carries the time left. During a long decision another thread sends them (lease_renewer.h).
 * 9. A policy that does not answer within the time of a lease (8) is given up. Its last shares stay, and jobs
 *    take turns by them; without any, the leases stay. Devices out of service are left in both cases.
 *    `status`, events and decisions.ndjson report it. The policy is asked again once its thread has ended;
 *    another policy (POST /v1/policy) is asked at once. Threads are never killed, only asked to stop
 *    (scheduler/sched_policy.h). At most HD_DAEMON_SOLVES run at once.
 * 10. A job may end before its last step: with `until` it is done there, at a checkpoint. Another job goes on
 *    in its run (the question `continue`), on other devices, with no step computed twice; lease numbers go
 *    on. A run is of one job at a time, and its file `until` says how far; it changes between two jobs alone.
 *
 * Threads: the daemon's, the lease renewer's, and one for each policy that computes shares
 * (scheduler/dispatch.h, rule 10): meanwhile runs are polled, leases renewed, users answered. At the end the
 * daemon waits HD_DAEMON_LAST_NS for them. Questions of users to a policy (whatif, explain, whether a job
 * fits) run in the daemon's own thread and are stopped after HD_DAEMON_ANSWER_NS with an error. Of a user
 * that is no owner they may take what it has left of that thread (allowance.h), and are refused when that is
 * nothing. */
#ifndef HD_DAEMON_DAEMON_H
#define HD_DAEMON_DAEMON_H

#include "sys/clock.h"
#include "daemon/batches.h"
#include "daemon/frontend.h"
#include "daemon/pilots.h"
#include "daemon/pool.h"

#define HD_DAEMON_LOOK_NS   INT64_C(200000000)
#define HD_DAEMON_ASK_NS    INT64_C(300000000)
#define HD_DAEMON_RETRY_NS  INT64_C(20000000)
/* time for a takeover, after a member missed the coordinator */
#define HD_DAEMON_NO_COORDINATOR_NS INT64_C(15000000000)
#define HD_DAEMON_ALONE_S   30.0
#define HD_DAEMON_QUEUE_S   1e9             /* so long a batch job may wait in its queue: without end */
#define HD_DAEMON_ANSWER_NS INT64_C(5000000000)       /* of a policy, to a user */
#define HD_DAEMON_LAST_NS   INT64_C(10000000000)      /* of a policy's thread, when the daemon ends */
/* PATIENT: one request of so many to a silent run waits HD_DAEMON_ASK_NS again: it may be slow */
enum {
	HD_DAEMON_PATIENT = 8,
	HD_DAEMON_ROUNDS = 3,              /* the one that the lease is for, and two more */
	HD_DAEMON_FRONTENDS = 4,
	HD_DAEMON_SOLVES = 4,
	HD_DAEMON_QUEUED = 100000,         /* jobs that are not over */
	HD_DAEMON_QUEUED_OF_USER = 20000,  /* and are of one user that is no owner */
};

/* Files of a run that belongs to a scheduler. */
/* {"job":7,"lease":2,"for_s":180}: its workers are started by a scheduler; rule 8 */
#define HD_RUN_LEASE "lease"
#define HD_RUN_PID_LOCK "seat"              /* of its coordinator */
/* {"lease":2,"exit":0,"step":100,"steps":100,"digest":"...","error":""} */
#define HD_RUN_END   "end.json"
#define HD_RUN_UNTIL "until"                /* {"until":40}; none: to the job's last step */

struct hd_daemon_spec {
	struct hd_fs *fs;                 /* borrowed, as all of these */
	struct hd_clock *clock;
	const char *dir;
	struct hd_pools *pools;           /* open; begun here */
	/* its devices are pilots, or nodes of a batch job for each lease; both NULL: of this machine */
	const struct hd_pilots_spec *pilots;
	const struct hd_batches_spec *batches;
	const char *policy;
	double round_s;                   /* 0: the standard of rounds.h */
	double alone_s;                   /* a lease at least; 0: HD_DAEMON_ALONE_S */
	double move_s;                    /* what a change of devices costs a job, for hysteresis */
	/* at the end jobs commit and leave; a second stop request cuts that short */
	bool drain;
	/* ends before its first decision, HD_OK if it came that far: `dir` holds a copy of a store */
	bool trial;
	const struct hd_frontend *frontend;
	uint32_t nfrontends;
	enum hd_err (*stop)(void *user);  /* not HD_OK: end */
	void *user;
	/* events, for a log; may be NULL */
	void (*say)(void *user, const char *kind, uint64_t job, const char *text);
};

/* Serves until a stop request. HD_OK: by the verb `stop` or a signal. `lives_on`: a policy's thread still
 * runs, so the process must end with _Exit(): exit() would free what that thread uses. */
HD_MUST_USE enum hd_err hd_daemon(const struct hd_daemon_spec *spec, bool *lives_on, struct hd_diag *diag);

/* The file HD_RUN_LEASE of a run; HD_E_NOTFOUND: it belongs to no scheduler. for_s: how long without a
 * word of it; 0: without end. */
struct hd_run_held { uint64_t job; uint32_t lease; double for_s; };
HD_MUST_USE enum hd_err hd_run_lease(struct hd_fs *fs, const char *run, struct hd_run_held *held,
	struct hd_diag *diag);
/* The step that its job ends at; 0: its last one. */
HD_MUST_USE enum hd_err hd_run_until_put(struct hd_fs *fs, const char *run, uint64_t until,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_run_until_get(struct hd_fs *fs, const char *run, uint64_t *until,
	struct hd_diag *diag);
/* How a run ended, for the scheduler that gave the lease. steps: with fewer it is not done, whatever it exits
 * with; 0: it had a target, or did not say. */
struct hd_run_end { uint32_t lease; int exit; uint64_t step, steps; char digest[40], error[200]; };
HD_MUST_USE enum hd_err hd_run_end_put(struct hd_fs *fs, const char *run, const struct hd_run_end *end,
	struct hd_diag *diag);
/* HD_E_NOTFOUND */
HD_MUST_USE enum hd_err hd_run_end_get(struct hd_fs *fs, const char *run, struct hd_run_end *end,
	struct hd_diag *diag);

#endif
