/* int.h -- the live scheduler's machine: jobs, devices, targets. */
#ifndef HD_SCHEDULER_DISPATCH_INT_H
#define HD_SCHEDULER_DISPATCH_INT_H

#include "base/json_writer.h"
#include "base/text.h"
#include "scheduler/dispatch.h"
#include "scheduler/rounds.h"

#define AGAIN_S 2.0                               /* an order that was not seen to work is given again */
/* between starts of a worker on a device: doubled up to the last */
#define WORKER_FIRST_S 0.5
#define WORKER_LAST_S 16.0
enum { WORKER_STARTS = 6 };                       /* without one that takes part: the run is given up */

struct device {
	uint64_t job;                             /* whose lease it is in; 0: none */
	uint32_t type;
	bool usable, there, leaving, placed;      /* placed: with a job of its reservation, in this call */
	uint32_t window;                          /* that keeps it from jobs; 0: none */
	uint64_t whose;                           /* job of the worker that is there */
	uint32_t starts;                          /* of workers, since one was seen to take part */
	double asked_s;                           /* of the last order about it */
	int32_t code;                             /* of the worker that ended last; -1: not known */
};

struct live {
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;           /* RELEASED: none */
	bool row_dirty, lease_dirty;
	uint32_t quota[HD_DISPATCH_LIMITS], entity;      /* of the machine's; entity HD_SCHED_NONE: none */
	uint32_t part;                            /* of the machine's */
	bool going;                               /* its run was seen */
	/* rule 12: its terms let it take part; the rounds have it */
	bool admitted, in_rounds;
	uint32_t window;                          /* reservation that gives it devices; 0: the rounds do */
	bool warned;                              /* its limit is near, and that was said */
	bool again;                               /* after its run left: it commits to start elsewhere */
	bool killed;                              /* by us, for being late */
	uint32_t n_seen;                          /* workers that take part */
	double seen_s, asked_s;                   /* last seen; last order to its run */
	uint32_t scaled;                          /* workers that its run was asked to have */
	uint32_t ntarget, target[HD_DISPATCH_SET];
	struct hd_round_run run;                        /* of the round; nmembers 0: none */
	/* the stretch that is measured */
	bool measuring;
	double from_s, rate_now;
	uint64_t from_step, first_step;           /* first: when its run began */
};

/* An account; within: as in sched_state.h. Of a job's path the outermost is within none and each other one
 * within the one before it, so no entity ever lies within itself, whatever paths come. */
struct live_entity { struct hd_dispatch_entity is; uint32_t within; };

struct live_window { struct hd_kept is; uint32_t id; double came_s; };

/* What a policy is asked, and the policy: all that `solve` needs, so that it may outlive the machine. */
struct hd_dispatch_question {
	uint32_t nholds;                          /* the machine's is one */
	atomic_bool stop;
	bool solved;
	uint32_t n;
	struct ask {                              /* of a part; open: it is asked, and not answered */
		bool open;
		struct hd_policy *policy;         /* owned, as all below */
		struct hd_arena at;
		struct hd_sched_state state;
		struct hd_shares shares;
		enum hd_err err;
		struct hd_diag why;
	} of[];
};

/* Jobs that share some devices by a policy of their own (rule 17); a machine without partitions is one part
 * of all devices. */
struct live_part {
	char name[HD_PARTITION_NAME + 1];
	uint32_t most;                            /* devices of one job */
	uint64_t preempts;                        /* bits: of parts behind it */
	bool *has, *open;                         /* owned, [ndevices]: its devices; those it may give now */
	struct hd_rounds *rounds;                 /* owned */
	struct hd_sched_type sched[HD_DISPATCH_TYPES];           /* n: of its devices */
	/* of the last solve, for explanations */
	struct hd_arena call;
	struct hd_sched_state state;
	struct hd_shares shares;
	bool gave_up;                             /* the policy, the last time: reported once */
	/* the rounds have had shares: those of a machine made from a store have none yet */
	bool shared;
	bool waits, due;                          /* its round: for an answer; to be begun */
	uint64_t solved;                          /* the newest job that the last shares knew */
};

struct hd_dispatch {
	struct hd_dispatch_setting set;
	struct hd_dispatch_type type[HD_DISPATCH_TYPES];
	char name[HD_DISPATCH_TYPES][64], policy_name[128];
	struct hd_policy_setting policy_set;
	struct hd_dispatch_question *question;    /* held; another one after one was given up */
	struct live_part *part;                        /* owned; in the order in which they are asked */
	uint32_t nparts;
	uint32_t first_device[HD_DISPATCH_TYPES + 1], ndevices;
	struct device *device;                    /* owned */
	struct hd_dispatch_limit *quota;          /* owned */
	struct live_entity *entity;               /* owned */
	uint32_t nquotas, quotas_cap, nentities, entities_cap;
	struct live_window *window;               /* owned */
	uint32_t nwindows, windows_cap, last_window;      /* last: the newest id */
	bool kept;                                /* a window came or went in this call */
	struct live **job;                        /* owned, by id */
	uint32_t njobs, jobs_cap;
	double began_s, boundary_s, charged_s, now_s;
	uint64_t newest;                          /* id of all that came */
	bool came, freed;                         /* something for an offer */
	bool logged, open, decided;               /* its setting; a TICK came; in this call */
	/* what is asked, rule 10; answered: to be taken up in this call */
	struct asked { bool open, answered; uint64_t newest; } asked;
	/* of this call */
	struct hd_dispatch_out *out;              /* owned */
	uint32_t nouts, outs_cap;
	struct hd_arena texts;
	struct hd_text *log;                      /* borrowed */
};

struct live *dispatch_find(const struct hd_dispatch *d, uint64_t id);
HD_MUST_USE enum hd_err dispatch_put(struct hd_dispatch *d, const struct hd_dispatch_out *out,
	struct hd_diag *diag);
__attribute__((format(printf, 4, 5))) HD_MUST_USE enum hd_err dispatch_note(struct hd_dispatch *d,
	uint64_t job, const char *name, const char *fmt, ...);
static inline bool dispatch_leased(const struct live *j) { return j->lease.state != HD_LEASE_RELEASED; }
bool dispatch_holds(const struct live *j, uint32_t device);
bool dispatch_wants(const struct live *j, uint32_t device);
/* its lease, which must allow it */
void dispatch_turn(struct live *j, enum hd_lease_event event);

/* ask.c: what the policy is asked, and its answer. */
/* in the place of the one that is there */
HD_MUST_USE enum hd_err dispatch_new_question(struct hd_dispatch *d, struct hd_diag *diag);
HD_MUST_USE enum hd_err dispatch_give_up(struct hd_dispatch *d, const char *text, struct hd_diag *diag);
size_t dispatch_policy_bytes(const struct hd_dispatch *d);
HD_MUST_USE enum hd_err dispatch_try(struct hd_dispatch *d, struct hd_diag *diag);
HD_MUST_USE enum hd_err dispatch_arrive(struct hd_dispatch *d, const struct live *j, struct hd_diag *diag);
/* at once */
HD_MUST_USE enum hd_err dispatch_solve(struct hd_dispatch *d, struct live_part *p, struct hd_diag *diag);
/* asks, and takes up what was answered */
HD_MUST_USE enum hd_err dispatch_lay_by(struct hd_dispatch *d, struct live_part *p, struct hd_diag *diag);
HD_MUST_USE enum hd_err dispatch_take_up(struct hd_dispatch *d, struct hd_diag *diag);

/* parts.c: rule 17. */
HD_MUST_USE enum hd_err dispatch_open_parts(struct hd_dispatch *d, struct hd_diag *diag);
void dispatch_close_parts(struct hd_dispatch *d);
/* As a member of the setting in the log; the same read. */
void dispatch_put_parts(const struct hd_dispatch *d, struct hd_json_writer *w);
HD_MUST_USE enum hd_err dispatch_read_parts(const struct hd_json *json, struct hd_arena *arena,
	struct hd_dispatch_setting *set, struct hd_diag *diag);
static inline struct live_part *dispatch_part(const struct hd_dispatch *d, const struct live *j)
{
	return &d->part[j->part];
}
/* nparts: there is none of that name */
uint32_t dispatch_part_named(const struct hd_dispatch *d, const char *name);
/* "partition day: "; "" of the only one */
struct part_text { char text[HD_PARTITION_NAME + 16]; };
struct part_text dispatch_part_text(const struct live_part *p);
uint32_t dispatch_most(const struct live_part *p, const struct hd_dispatch_job *row);      /* devices,
	at once */
/* Which devices other parts leave to it; true: others than before. */
bool dispatch_claim(struct hd_dispatch *d, struct live_part *p);
/* It waits for devices that its partition shares with others: `text`. False: it does not. */
bool dispatch_part_why(const struct hd_dispatch *d, const struct live *j, struct hd_dispatch_why *why);

/* decide.c: shares and rounds; sets the targets. */
HD_MUST_USE enum hd_err dispatch_decide(struct hd_dispatch *d, struct hd_diag *diag);
void dispatch_charge(struct hd_dispatch *d, double until_s);

/* terms.c: which jobs take part (rule 12), and until when. */
HD_MUST_USE enum hd_err dispatch_check_terms(const struct hd_dispatch *d, const struct hd_dispatch_job *row,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err dispatch_admit(struct hd_dispatch *d, struct hd_diag *diag);
/* of one that is restored, before all others are there */
HD_MUST_USE enum hd_err dispatch_admit_first(struct hd_dispatch *d, struct live *j, bool leased,
	struct hd_diag *diag);
/* neither a target nor a place in the rounds any more */
void dispatch_withdraw(struct hd_dispatch *d, struct live *j);
/* those that run after it */
void dispatch_settle(struct hd_dispatch *d, const struct live *of, bool done);
const struct hd_after *dispatch_broken(const struct live *j);
HD_MUST_USE enum hd_err dispatch_limits(struct hd_dispatch *d, struct hd_diag *diag);
/* when its limit changes something */
double dispatch_limit_s(const struct hd_dispatch *d, const struct live *j);
/* ends what was counted as running */
void dispatch_stop_counting(const struct hd_dispatch *d, struct hd_dispatch_job *row);

/* windows.c: rule 16. */
HD_MUST_USE enum hd_err dispatch_on_window(struct hd_dispatch *d, const struct hd_dispatch_event *e,
	struct hd_diag *diag);
/* those that time begins or ends; gives reserved devices to their jobs */
HD_MUST_USE enum hd_err dispatch_windows(struct hd_dispatch *d, struct hd_diag *diag);
double dispatch_windows_s(const struct hd_dispatch *d);       /* when time changes something */
/* true: that was news */
bool dispatch_tell_device(struct hd_dispatch *d, struct live_part *p, uint32_t device);
void dispatch_tell_device_of_all(struct hd_dispatch *d, uint32_t device);
bool dispatch_may_use(const struct hd_dispatch *d, const struct live *j, uint32_t device);
/* it has a device that it should have left by now */
bool dispatch_overdue(const struct hd_dispatch *d, const struct live *j);
const struct hd_kept *dispatch_window_of(const struct hd_dispatch *d, uint32_t device);
bool dispatch_window_why(const struct hd_dispatch *d, const struct live *j, struct hd_dispatch_why *why);

/* carry.c: from what is held towards the targets. */
HD_MUST_USE enum hd_err dispatch_carry(struct hd_dispatch *d, struct hd_diag *diag);
HD_MUST_USE enum hd_err dispatch_over(struct hd_dispatch *d, struct live *j,
	const struct hd_dispatch_event *e);
/* when time changes something for it */
double dispatch_patience_s(const struct hd_dispatch *d, const struct live *j);

/* rate.c */
void dispatch_guess(const struct hd_dispatch *d, struct hd_dispatch_job *row);
/* ends a stretch, begins the next */
bool dispatch_is_here(const struct live *j);                          /* the rounds have it */
void dispatch_measure(struct hd_dispatch *d, struct live *j);
void dispatch_steps_s(const struct hd_dispatch *d, const struct hd_dispatch_job *row, double *rate);

/* quota.c */
/* Weights are numbers above 0, and no account lies within itself. */
bool dispatch_good_entities(const struct hd_dispatch_job *row);
HD_MUST_USE enum hd_err dispatch_join_quotas(struct hd_dispatch *d, struct live *j, struct hd_diag *diag);
HD_MUST_USE enum hd_err dispatch_tell_quotas(struct hd_dispatch *d, const struct live *j,
	struct hd_diag *diag);
/* What jobs of other parts leave of each, before a walk. */
HD_MUST_USE enum hd_err dispatch_share_quotas(struct hd_dispatch *d, const struct live_part *p,
	struct hd_diag *diag);
/* Devices that it may be given now, beside those that it holds; UINT32_MAX: any. */
uint32_t dispatch_quota_room(const struct hd_dispatch *d, const struct live *j);
/* [njobs], in the arena: the jobs of the part that quotas have room for at once. NULL: no memory. */
bool *dispatch_quota_queue(const struct hd_dispatch *d, const struct live_part *p, struct hd_arena *arena);
uint32_t dispatch_quota_most(const struct hd_dispatch_job *row);      /* devices, if it were alone */
/* Devices without which it does not run: under a policy that does not resize, all that it wants. */
uint32_t dispatch_least(const struct hd_dispatch *d, const struct hd_dispatch_job *row);
/* It waits for a quota: `text`. False: it does not. */
bool dispatch_quota_why(const struct hd_dispatch *d, const struct live *j, struct hd_dispatch_why *why);

/* log.c */
void dispatch_log_open(struct hd_dispatch *d);
void dispatch_log_restore(struct hd_dispatch *d, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease);
void dispatch_log_step(struct hd_dispatch *d, const struct hd_dispatch_event *e);

#endif
