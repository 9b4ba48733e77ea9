/* daemon_int.h -- the parts of the daemon, and the state that they share.
 *
 *	daemon.c             begins and ends it, turns, stores what was decided
 *	daemon_act.c         carries the machine's orders out
 *	daemon_look.c        sees what is there: runs, processes, devices
 *	daemon_solve.c       asks the policy, in a thread of its own
 *	daemon_answer.c      the table of all questions (frontend.h), and the time that each user may take
 *	daemon_jobs.c        questions on jobs, and what changes them
 *	daemon_status.c      questions on the scheduler itself
 *	daemon_show.c        what the page draws
 *	daemon_whatif.c      what would be if
 *	daemon_ids.c         jobs by number
 *	daemon_paid.c        what was paid
 *	daemon_fleet.c       which devices are slow
 *	daemon_windows.c     which devices are kept from jobs, and when
 *	daemon_partitions.c  which devices are for which jobs
 *	daemon_devices.c     what a device is: of this machine, of a pilot, of a batch job
 *	daemon_pilots.c      devices that a batch system lends
 *	daemon_batches.c     batch jobs that carry out a lease
 *	daemon_users.c       whose a request is, and the account that a job runs as
 *	daemon_accounts.c    what the accounts of users have
 *	daemon_token.c       tokens
 *	daemon_sweeps.c      sweeps in its folder
 *	submit.c             takes jobs in
 *	daemon_until.c       takes jobs in that go on with a run
 *
 * Ownership: struct hd_daemon owns all of it. Threads: the daemon's own alone, but for those of
 * daemon_solve.c and of the lease renewer, which touch only what they were given. */
#ifndef HD_DAEMON_DAEMON_INT_H
#define HD_DAEMON_DAEMON_INT_H

#include "sys/lines.h"
#include "sys/process.h"
#include "sys/socket.h"
#include "sys/thread.h"
#include "spot/ledger.h"
#include "job/job.h"
#include "autoscale/fleet.h"
#include "driver/live.h"
#include "driver/pid_lock.h"
#include "daemon/allowance.h"
#include "daemon/answers.h"
#include "daemon/batches.h"
#include "daemon/daemon.h"
#include "daemon/history.h"
#include "daemon/jobs.h"
#include "daemon/lease_renewer.h"
#include "daemon/pilots.h"
#include "daemon/users.h"

enum { HD_DAEMON_EVENTS = 1024, HD_DAEMON_LATE = 300 };

/* A run with a lease, as far as this daemon watches it. */
struct watch {
	uint64_t job;
	uint32_t lease;
	char run[HD_JOBS_RUN];
	/* whose processes it has, and whose files its folder; as: not the daemon's own */
	struct hd_account account;
	bool as;
	struct hd_proc proc;              /* its coordinator, if this daemon started it; host NULL: not */
	uint32_t proc_lease;              /* for which it was */
	bool reported;                    /* SEEN was sent to the dispatch */
	uint32_t silent;                  /* questions in a row that it did not answer */
	uint32_t n, scale;                /* workers that take part; target to send, 0: none */
	uint64_t step;
	struct hd_paid paid;              /* as its coordinator said last; ms 0: it did not */
	double takeover_s;                /* time for a takeover */
	/* daemon_fleet.c: of its workers as the fleet took them last, and when */
	struct hd_live_sums { uint32_t worker; int64_t steps, vns, compute_ns, read_wait_ns; }
		sums[HD_LIVE_WORKERS];
	uint32_t nsums;
	double fleet_s;
	/* last SEEN; last request; since when it has no coordinator, below 0: it has one */
	double reported_s, asked_s, alone_s;
};

/* Of a device; out: of service, by a user's word; proc: a worker that this daemon started; limited: the
 * process that was given its part of a core last. */
/* asked, killed: how often the process there was asked to leave, and killed, since it came.
 * lent: of one that a batch system lends: a pilot is bound to it, and stays for now. */
struct device_slot { struct hd_proc proc; uint64_t job; int limited; bool there, out, lent;
	uint32_t asked, killed; };

/* Users of the folder's file, as it was read last; a file that is bad since, or gone, changes nothing. */
struct daemon_users {
	struct hd_users now;
	struct hd_arena arena;
	struct hd_stat seen;              /* of the file, good or bad */
	bool gone;
	bool run_as;                      /* this process is root: jobs run as their users */
	uint32_t nstray;                  /* jobs that count to another account than theirs */
	char wrong[300];                  /* what is wrong with the file since; "": nothing */
};

/* A policy that is asked in a thread of its own. */
struct policy_thread {
	struct hd_thread thread;
	struct hd_dispatch_question *question;    /* held */
	struct hd_loop *loop;
	char policy[128];
	double since_s;
	bool given_up;                    /* its answer is not awaited */
	/* because it took too long, not because another policy was chosen */
	bool late;
	atomic_bool done;
};

struct hd_daemon;
enum { HD_DAEMON_LENT = 600 };

/* What the devices are: a row for each means of having them (daemon_devices.c). NULL: nothing is to be done.
 */
struct daemon_devices {
	const char *name;
	/* The host by which machines of workers call this one; NULL: workers are of this machine. */
	const char *(*own)(const struct hd_daemon *d);
	/* After users and store, before the first decision. */
	enum hd_err (*open)(struct hd_daemon *d, struct hd_diag *diag);
	/* What is there: PROCESS and DEVICE events. */
	void (*look)(struct hd_daemon *d);
	/* The order WORKER; an answer by PROCESS is queued. */
	void (*work)(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o);
	void (*signal)(struct hd_daemon *d, uint32_t device, enum hd_proc_signal what);
	/* May the coordinator of a lease begin now? An order to begin comes again. NULL: yes. */
	bool (*may_begin)(struct hd_daemon *d, struct watch *w);
	/* A run is to stop that has no coordinator. NULL. */
	void (*stop)(struct hd_daemon *d, struct watch *w);
	/* May it be used? NULL: all may. */
	bool (*is_lent)(const struct hd_daemon *d, uint32_t device);
	/* "k1, Slurm job 77_1"; "": of this machine, or none is there */
	void (*text)(const struct hd_daemon *d, uint32_t device, char text[HD_DAEMON_LENT]);
	/* Of a type: what is asked for, runs and waits. NULL: nothing is asked for. */
	struct hd_answer_lent (*lent)(const struct hd_daemon *d, uint32_t type,
		struct hd_launcher_count *count);
	/* What a job waits for; "": nothing. NULL: for its types. */
	void (*why)(const struct hd_daemon *d, uint64_t job, char text[HD_DAEMON_LENT]);
	enum hd_err (*end)(struct hd_daemon *d, struct hd_diag *diag);
	void (*close)(struct hd_daemon *d);
};
extern const struct daemon_devices daemon_devices_here, daemon_devices_pilots, daemon_devices_batches;

struct hd_daemon {
	const struct hd_daemon_spec *spec;
	const struct daemon_devices *devices;
	struct hd_fs *fs;
	struct hd_clock *clock;
	struct hd_host host;
	struct hd_net net;
	struct hd_loop loop;
	struct hd_handler handler;
	struct hd_jobs *jobs;
	struct hd_dispatch *dispatch;
	struct hd_lease_renewer *renewer;         /* speaks while the dispatch decides */
	char policy[128];
	struct hd_arena log_arena, scratch;       /* scratch: of one look or answer */
	struct hd_text log;
	struct hd_lines log_lines;
	int64_t zero_ns;                  /* of the clock, at zero_s */
	double zero_s, since_s, began_s;
	struct watch *watch;              /* owned */
	struct hd_fleet *fleet;           /* owned */
	struct hd_history history;
	struct hd_pilots *pilots;         /* owned, each of its row */
	struct hd_batches *batches;
	struct daemon_users *users;       /* owned; NULL: it has one owner */
	struct daemon_partitions *partitions;     /* owned */
	/* of the question at hand; NULL: none is, or the daemon asks itself */
	const struct hd_caller *by;
	const char *what;
	int64_t answer_ns;                /* of a policy's time, that its user may have for it */
	uint32_t took_in;                 /* jobs, by it; also those that it changed */
	struct hd_allowance allowance;    /* of this thread, by user */
	uint32_t nwatches, watches_cap, next_watch;      /* next: to be looked at first */
	/* the greatest id of a folder that was in DIR/runs, whether the store knows of it or not */
	uint64_t taken;
	struct device_slot slot[HD_POOL_DEVICES];
	struct hd_dispatch_event queue[HD_DAEMON_EVENTS];        /* found while orders were carried out */
	uint32_t nqueued;
	/* owned, [nsolving], oldest first: the last may be the machine's own, all others were given up */
	struct policy_thread *solving[HD_DAEMON_SOLVES];
	uint32_t nsolving;
	uint64_t reported_event;              /* newest event that frontends know */
	/* at_once: a stop request came during a drain */
	bool open, feeding, stopping, draining, at_once;
	enum hd_err broken;               /* the store or the machine is of no use any more */
	struct hd_diag why;
};

double daemon_now_s(const struct hd_daemon *d);
/* One event: decided, stored with `card` (as many as jobs came) and `digest` (NULL: none), carried out.
 * Errors of the event itself change nothing; others break. */
HD_MUST_USE enum hd_err daemon_feed(struct hd_daemon *d, const struct hd_dispatch_event *event,
	const struct hd_jobs_card *card, const char *digest,
	struct hd_diag *diag);
/* Another machine decides from now on; the policy of the one that was is not waited for. */
void daemon_swap_dispatch(struct hd_daemon *d, struct hd_dispatch *made, const char *policy);
/* The same, and hears all that there is (daemon_status.c). */
void daemon_begin_again(struct hd_daemon *d, struct hd_dispatch *made, const char *policy);
/* daemon_solve.c: an answer that came is taken, a question that waits is asked, one that takes too long is
 * given up. */
void daemon_turn_policy(struct hd_daemon *d);
/* False: a thread is still in a question, and lives on with all it holds; the daemon must stay allocated. */
HD_MUST_USE bool daemon_end_policies(struct hd_daemon *d);
/* What is to be said of a policy that does not answer, with what can be done; "" nothing. Since when one
 * is asked; -1: none is. */
void daemon_late_text(const struct hd_daemon *d, char text[HD_DAEMON_LATE]);
double daemon_asked_s(const struct hd_daemon *d);
void daemon_queue(struct hd_daemon *d, const struct hd_dispatch_event *event);
/* made if need be; NULL: no memory, or no such job */
struct watch *daemon_watch(struct hd_daemon *d, uint64_t job, uint32_t lease);
HD_MUST_USE enum hd_err daemon_make_dispatch(struct hd_daemon *d, const char *policy,
	struct hd_dispatch **made, struct hd_diag *diag);
/* Devices that users took out of service: stored, and given to each new dispatch. */
HD_MUST_USE enum hd_err daemon_keep_out(struct hd_daemon *d, uint32_t device, bool out, struct hd_diag *diag);
/* The policy that decides from now on, of a scheduler that was started with spec->policy. */
HD_MUST_USE enum hd_err daemon_keep_policy(struct hd_daemon *d, const char *policy, struct hd_diag *diag);
void daemon_take_out(struct hd_daemon *d);
void daemon_drain(struct hd_daemon *d);
void daemon_log(struct hd_daemon *d, const char *kind, uint64_t job, const char *text);

void daemon_act(struct hd_daemon *d, const struct hd_dispatch_out *out);
/* all: runs are asked now, whenever they were asked last */
void daemon_look(struct hd_daemon *d, bool all);
/* of the job's own: how long its workers may be without a coordinator */
double daemon_takeover_s(struct hd_daemon *d, const char *run);
/* how long a run goes on without a word of this daemon */
double daemon_lease_s(const struct hd_daemon *d);
bool daemon_is_coordinated(struct hd_daemon *d, struct watch *w);
void daemon_pid_lock_path(const struct hd_daemon *d, uint32_t device, char path[HD_PATH_CAP]);
HD_MUST_USE enum hd_err daemon_ask_run(struct hd_daemon *d, struct watch *w, const char *ask,
	const struct hd_json **answer);

/* A job that `ask` names by number or name, as its member `key`. */
HD_MUST_USE enum hd_err daemon_find_job(struct hd_daemon *d, const struct hd_json *ask, const char *key,
	uint64_t *id, struct hd_diag *diag);
/* A whole number that `ask` may have; else *value stays. */
HD_MUST_USE enum hd_err daemon_read_count(const struct hd_json *ask, const char *key, int64_t least,
	int64_t most, int64_t *value, struct hd_diag *diag);
/* daemon_ids.c: numbers of jobs as "3.7-9", ascending, `most` at most. Calls `each` (NULL: only reads) for
 * each of them that is stored. */
HD_MUST_USE enum hd_err daemon_each_of(struct hd_daemon *d, const char *ids, uint32_t most,
	hd_jobs_each *each,
	void *user, struct hd_diag *diag);
/* daemon_paid.c: the ledger in the answer of a run, in its folder; the newer stays. */
void daemon_paid_heard(struct hd_paid *paid, const struct hd_json *answer);
void daemon_paid_read(struct hd_paid *paid, struct hd_fs *fs, const char *run);
/* daemon_fleet.c: what the answer of a run says of its workers, into the fleet, once in a window. */
void daemon_fleet_heard(struct hd_daemon *d, struct watch *w, const struct hd_json *answer);
/* The devices that were heard lately; `slow`: only those that are. */
void daemon_fleet_fill(const struct hd_daemon *d, bool slow, struct hd_json_writer *w);
/* daemon_devices.c: the row of this scheduler, and what it says of its devices. */
const struct daemon_devices *daemon_devices_of(const struct hd_daemon_spec *spec);
bool daemon_is_lent(const struct hd_daemon *d, uint32_t device);
const char *daemon_lent_text(const struct hd_daemon *d, uint32_t device, char text[HD_DAEMON_LENT]);
/* The same in the scratch arena; NULL: "". */
const char *daemon_lent_name(struct hd_daemon *d, uint32_t device);
/* What is asked for, for that job or by type, as a sentence; "": nothing. */
const char *daemon_lent_why(const struct hd_daemon *d, uint64_t job, char text[HD_DAEMON_LENT]);
void daemon_fill_lent(void *d, struct hd_json_writer *w);
/* Where the coordinator of a run listens for workers of other nodes: at the host that they call, `own`; and
 * the key that is made for it. */
HD_MUST_USE enum hd_err daemon_listen(const char *own, const struct watch *w, char listen[HD_ADDR_CAP],
	char key[HD_PATH_CAP], struct hd_diag *diag);
/* The step that the job of the run ends at; 0: its last one (daemon_act.c). */
HD_MUST_USE enum hd_err daemon_run_until(struct hd_daemon *d, const struct watch *w, uint64_t *until,
	struct hd_diag *diag);
/* A worker of the job is on the device, or none: to the machine (daemon_devices.c). */
void daemon_feed_process(struct hd_daemon *d, uint32_t device, uint64_t job, bool there, int32_t code);
/* The order START: nothing, if its coordinator is there or may not begin yet (daemon_act.c). */
void daemon_begin_run(struct hd_daemon *d, struct watch *w, uint32_t n);
/* Of this machine: daemon_look.c, daemon_act.c. */
void daemon_look_here(struct hd_daemon *d);
void daemon_work_here(struct hd_daemon *d, struct watch *w, const struct hd_dispatch_out *o);
void daemon_signal_here(struct hd_daemon *d, uint32_t device, enum hd_proc_signal what);
/* daemon_show.c: a sample of the history, if it is due; the questions of frontend.h. */
struct hd_answer_type daemon_type(const struct hd_daemon *d, uint32_t type);
void daemon_sample(struct hd_daemon *d);
typedef enum hd_err daemon_shows(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag);
daemon_shows daemon_show_run, daemon_show_metrics, daemon_show_waiting, daemon_show_ledger,
	daemon_show_history;
/* daemon_jobs.c: the questions on jobs. */
daemon_shows daemon_answer_submit, daemon_answer_continue, daemon_answer_jobs, daemon_answer_job,
	daemon_answer_explain, daemon_answer_cancel, daemon_answer_hold, daemon_answer_release,
	daemon_answer_prio, daemon_answer_scale;
/* rows of a list: at most, and where the question does not say */
enum { HD_ANSWER_LIMIT = 1000, HD_ANSWER_STANDARD = 100 };
/* Jobs by what a user calls their state. */
enum { HD_DAEMON_STATES = 8 };
void daemon_count_states(const uint64_t n[HD_DISPATCH_NSTATES], const uint64_t leased[HD_LEASE_NSTATES],
	struct hd_fields_count count[HD_DAEMON_STATES]);
/* The list of those that run; `err` is set when it is written. */
struct daemon_running { struct hd_daemon *d; struct hd_diag *diag; enum hd_err err; };
void daemon_fill_running(void *running, struct hd_json_writer *w);
/* daemon_status.c: the questions on the scheduler. */
daemon_shows daemon_answer_status, daemon_answer_hosts, daemon_answer_pools, daemon_answer_policy,
	daemon_answer_device, daemon_answer_backup, daemon_answer_stop, daemon_answer_events;
double daemon_boundary_s(const struct hd_daemon *d);             /* -1: there is no next round */
/* daemon_sweeps.c: sweeps that lie in the scheduler's folder. */
daemon_shows daemon_show_sweeps, daemon_show_sweep;
/* daemon_windows.c: the questions of frontend.h; those that are stored, to a machine before its first
 * step. */
daemon_shows daemon_show_windows, daemon_make_window, daemon_drop_window;
HD_MUST_USE enum hd_err daemon_restore_windows(struct hd_daemon *d, struct hd_dispatch *dispatch,
	struct hd_diag *diag);
void daemon_fill_windows(void *d, struct hd_json_writer *w);
enum { HD_DAEMON_KEPT = HD_WINDOW_REASON + 80 };
/* "drain since 30.0 s until 90.0 s: new fans"; NULL: "" */
const char *daemon_kept_text(const struct hd_kept *window, char text[HD_DAEMON_KEPT]);
/* daemon_whatif.c: the question "whatif" of frontend.h. */
HD_MUST_USE enum hd_err daemon_answer_whatif(struct hd_daemon *d, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag);
HD_MUST_USE enum hd_err daemon_answer(void *self, const struct hd_caller *by, const char *what,
	const struct hd_json *ask, struct hd_json_writer *answer, struct hd_diag *diag);
/* daemon_users.c: begins with the file, if there is one. */
HD_MUST_USE enum hd_err daemon_open_users(struct hd_daemon *d, struct hd_diag *diag);
void daemon_close_users(struct hd_daemon *d);
/* Reads the file again if it is another one. */
void daemon_look_at_users(struct hd_daemon *d);
HD_MUST_USE enum hd_err daemon_identify(void *self, const struct hd_credential *credential,
	struct hd_caller *by, struct hd_diag *diag);
/* Whether the question at hand may be about the jobs of that account, or about that job. */
bool daemon_may_of(const struct hd_daemon *d, uint32_t uid);
bool daemon_may_of_job(const struct hd_daemon *d, uint64_t job);
bool daemon_may_of_card(const struct hd_daemon *d, const struct hd_jobs_card *card);
HD_MUST_USE enum hd_err daemon_find_name(struct hd_daemon *d, const char *name, uint64_t *id,
	struct hd_diag *diag);
bool daemon_may_see(void *d, uint64_t job);       /* the same, for texts of the machine */
/* For lists: HD_NO_UID, or the one account that the caller sees. */
uint32_t daemon_sees(const struct hd_daemon *d);
/* For lists whose rows are looked at one by one, by daemon_may_of_card: the same, or more. */
uint32_t daemon_looks_at(const struct hd_daemon *d);
/* Whether it sees events of no job: which token was made for which user, what is wrong with the file. */
bool daemon_sees_cluster(const struct hd_daemon *d);
/* Whose the job will be: the caller, or the one that an admin names. */
HD_MUST_USE enum hd_err daemon_job_user(struct hd_daemon *d, const struct hd_json *ask,
	struct hd_jobs_card *card, struct hd_diag *diag);
/* Whether its user may hand in another job like that; before: of the same order, not stored yet. */
/* Not more devices at once than its quotas have, were it alone. */
HD_MUST_USE enum hd_err daemon_check_devices(struct hd_daemon *d, const struct hd_jobs_card *card,
	const struct hd_dispatch_job *row, struct hd_diag *diag);
HD_MUST_USE enum hd_err daemon_check_quota(struct hd_daemon *d, const struct hd_jobs_card *card,
	const struct hd_dispatch_job *row, uint32_t before, struct hd_diag *diag);
HD_MUST_USE enum hd_err daemon_check_priority(struct hd_daemon *d, const struct hd_jobs_card *card,
	double weight, struct hd_diag *diag);
/* The account that an order or its job names, or the first of its user, on the card. */
HD_MUST_USE enum hd_err daemon_read_account(const struct hd_daemon *d, const struct hd_json *ask,
	const struct hd_job *job, struct hd_jobs_card *card, struct hd_diag *diag);
/* What the accounts have that the caller may see (daemon_accounts.c). */
void daemon_fill_accounts(void *d, struct hd_json_writer *w);
const struct hd_users *daemon_users_now(const struct hd_daemon *d);        /* NULL: it has none */
/* Quotas and accounts of a job as the file has them now, for the machine. */
void daemon_limit_job(const struct hd_daemon *d, const struct hd_jobs_card *card,
	struct hd_dispatch_job *row);
/* Of the user of a job (daemon_users.c); owner: it has none, by users.h, rule 2. */
uint32_t daemon_limits_of(const struct hd_daemon *d, const struct hd_jobs_card *card,
	struct hd_users_limit limit[HD_USERS_LIMITS], bool *owner);
/* daemon_partitions.c: begins with the file, if there is one. */
HD_MUST_USE enum hd_err daemon_open_partitions(struct hd_daemon *d, struct hd_diag *diag);
void daemon_close_partitions(struct hd_daemon *d);
/* Reads the file again if it is another one. */
void daemon_look_at_partitions(struct hd_daemon *d);
void daemon_set_partitions(const struct hd_daemon *d, struct hd_dispatch_setting *set);
/* The one that an order names, or the default, on the card. */
HD_MUST_USE enum hd_err daemon_read_partition(const struct hd_daemon *d, const struct hd_json *ask,
	struct hd_jobs_card *card, struct hd_diag *diag);
/* Whether its user may hand in such a job there; a job without a time limit has the partition's. */
HD_MUST_USE enum hd_err daemon_check_partition(const struct hd_daemon *d, const struct hd_jobs_card *card,
	struct hd_dispatch_job *row, struct hd_diag *diag);
/* Whether one job there may have as many devices as it wants. */
HD_MUST_USE enum hd_err daemon_check_partition_devices(const struct hd_daemon *d,
	const struct hd_jobs_card *card, const struct hd_dispatch_job *row, struct hd_diag *diag);
/* As the machine knows it: a job from before there were any is of one, too; "": there are none. */
const char *daemon_partition_of(const struct hd_daemon *d, const struct hd_jobs_card *card);
/* Its partition and that one's limits, for the machine; after daemon_limit_job. */
HD_MUST_USE enum hd_err daemon_put_in_partition(const struct hd_daemon *d, const struct hd_jobs_card *card,
	struct hd_dispatch_job *row, struct hd_diag *diag);
/* Of the partition that the row names; 0: there are none. */
uint32_t daemon_partition_number(const struct hd_daemon *d, const struct hd_dispatch_job *row);
/* Whether its partition has devices of that type; without partitions: yes. */
bool daemon_partition_has(const struct hd_daemon *d, const struct hd_dispatch_job *row, uint32_t type);
const char *daemon_partitions_wrong(const struct hd_daemon *d);
void daemon_fill_partitions(void *d, struct hd_json_writer *w);
/* The account that the job runs as; false: ours. */
bool daemon_account(const struct hd_daemon *d, const struct hd_jobs_card *card, struct hd_account *account);
/* From here to the other, files are touched with the rights of the job's user; NULL: ours. HD_E_REFUSED: they
 * are not, and nothing of the user's may be touched; the daemon ends. */
HD_MUST_USE enum hd_err daemon_lend(struct hd_daemon *d, const struct hd_account *account,
	struct hd_diag *diag);
void daemon_unlend(const struct hd_account *account);
static inline const struct hd_account *daemon_of(const struct watch *w) { return w->as ? &w->account :
	NULL; }
/* Which process holds the device, or the run; pid 0: not known. What a user wrote into the file of another
 * one's job or process is not believed. HD_E_NOTFOUND: none. */
HD_MUST_USE enum hd_err daemon_device_holder(struct hd_daemon *d, uint32_t device,
	struct hd_pid_lock_holder *holder);
HD_MUST_USE enum hd_err daemon_run_holder(struct hd_daemon *d, const struct watch *w,
	struct hd_pid_lock_holder *holder);
/* The holder of a lock, of that job, gets a signal: where jobs run as users, if it is its user's. */
void daemon_signal(struct hd_daemon *d, uint64_t job, int pid, enum hd_proc_signal what);
/* The pid lock of the device, for a worker of that job to take: a new file, of its user. */
HD_MUST_USE enum hd_err daemon_make_lock(struct hd_daemon *d, uint32_t device, const struct watch *w,
	struct hd_diag *diag);
/* Away with the lock of a device whose holder did not leave when it was killed. */
void daemon_drop_lock(struct hd_daemon *d, uint32_t device);
HD_MUST_USE enum hd_err daemon_run_end(struct hd_daemon *d, const struct watch *w, struct hd_run_end *end);
/* An event of the daemon itself, of that job or of none (0), stored. */
void daemon_note(struct hd_daemon *d, const char *kind, uint64_t job, const char *text);
daemon_shows daemon_show_me, daemon_show_tokens, daemon_make_token, daemon_revoke_token;
HD_MUST_USE enum hd_err daemon_token_user(struct hd_daemon *d, const char *bearer, struct hd_caller *by,
	struct hd_diag *diag);
/* Finds `taken`: a new store must not reuse folders of runs of an older one (submit.c). */
HD_MUST_USE enum hd_err daemon_find_runs(struct hd_daemon *d, struct hd_diag *diag);
/* Of an order without its key: equal for equal orders, however they are written (submit.c). */
struct hd_hash daemon_order_hash(const struct hd_json *ask);
/* How long a policy is waited for: HD_DAEMON_ANSWER_NS, or what the user that asks has left. */
int64_t daemon_answer_ns(const struct hd_daemon *d);
/* Whether the policy takes such a job, alone; it is waited for daemon_answer_ns() at most (submit.c). */
HD_MUST_USE enum hd_err daemon_fits(struct hd_daemon *d, const struct hd_dispatch_job *row,
	struct hd_diag *diag);
/* Devices, weight, deadline, steps and rates, as `ask` and the job say (submit.c). */
HD_MUST_USE enum hd_err daemon_read_row(struct hd_daemon *d, const struct hd_json *ask,
	const struct hd_job *job, struct hd_dispatch_job *row, struct hd_diag *diag);
/* A number that no job and no folder has (submit.c). */
uint64_t daemon_next_id(const struct hd_daemon *d);
/* A job that goes on in the run of one that is done: card and row; the run's `until` is written
 * (daemon_until.c). */
HD_MUST_USE enum hd_err daemon_continue_job(struct hd_daemon *d, const struct hd_json *ask,
	struct hd_jobs_card *card, struct hd_dispatch_job *row, struct hd_diag *diag);
/* What an order comes to: a job, or the tasks of an array; tasks 0: no array. In an arena. */
struct hd_daemon_taken { uint32_t n, tasks; struct hd_jobs_card *card; struct hd_dispatch_job *row; };
/* Whether there is room for so many more jobs, of the card's user and of all. */
HD_MUST_USE enum hd_err daemon_check_queued(struct hd_daemon *d, const struct hd_jobs_card *card,
	uint32_t more, struct hd_diag *diag);
/* Reads the job, makes the folders of its runs, fills cards and rows (submit.c). */
HD_MUST_USE enum hd_err daemon_take_jobs(struct hd_daemon *d, const struct hd_json *ask,
	struct hd_arena *arena, struct hd_daemon_taken *taken, struct hd_diag *diag);
/* submit_terms.c: terms of an order, but for its array. */
HD_MUST_USE enum hd_err daemon_read_terms(struct hd_daemon *d, const struct hd_json *ask,
	struct hd_job_terms *terms, struct hd_diag *diag);

#endif
