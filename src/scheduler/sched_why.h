/* sched_why.h -- why a job waits: the one leading reason with its numbers, and what would change it.
 *
 * `heddle sched solve` prints it for every job that waits, the daemon for the job it is asked about. Two
 * sources: the answer of the policy (hd_sched_why: jobs without a share), and the walk of the last round
 * (hd_rounds_why in rounds_why.h: jobs with a share and no devices).
 *
 * 1. Every job has exactly one code. It is the first of the table that holds; QUEUED stands for NO_SHARE
 *    where the policy is a queue.
 * 2. A way out is not computed from prices (they hold at a point only): the policy is asked again, or the
 *    walk repeated, with that one thing changed, and it is named only if the job's code changes then.
 * 3. Prices are those of the last answer; where it has several such, they are called "one of several prices".
 *
 * Pure but for the solver; everything lies in the arena. */
#ifndef HD_SCHEDULER_SCHED_WHY_H
#define HD_SCHEDULER_SCHED_WHY_H

#include "scheduler/sched_policy.h"

/*        id              code */
#define HD_WHYS(X) \
	X(RUNS,           "RUNS")           /* it has a share; of a round: devices */                                 \
	X(OVER,           "OVER")           /* no steps left */                                                       \
	X(UNRUNNABLE,     "UNRUNNABLE")     /* no type can run it, or none is large enough */                         \
	X(DRAINING,       "DRAINING")       /* devices it would fit on are out of service, or about to be */          \
	X(QUEUED_NEW,     "QUEUED_NEW")     /* came, or got its share, after the last boundary */                     \
	X(DEADLINE_SHORT, "DEADLINE_SHORT") /* no share, and the plan misses its deadline */                          \
	X(LEFT_IDLE,      "LEFT_IDLE")      /* devices that it fits on idle: its steps are worth less than they cost there */ \
	X(TOO_DEAR,       "TOO_DEAR")       /* the same of all that is not taken */                                   \
	X(QUEUED,         "QUEUED")         /* others are before it in the queue */                                   \
	X(NO_SHARE,       "NO_SHARE")       /* the policy gives it nothing for now */                                 \
	X(HELD_BACK,      "HELD_BACK")      /* it would lead, if others did not keep what they have, or had nothing reserved */ \
	X(SHARE_PAID,     "SHARE_PAID")     /* it has received what it is due so far, or more */                      \
	X(GANG_NO_FIT,    "GANG_NO_FIT")    /* at its turn devices were free, fewer than it needs at once */          \
	X(OUTRANKED,      "OUTRANKED")      /* at its turn others had taken all */

enum hd_why_code {
#define X(id, name) HD_WHY_##id,
	HD_WHYS(X)
#undef X
};
const char *hd_why_name(enum hd_why_code code);

/* What would change it. */
enum hd_fix {
	HD_FIX_NONE,                              /* nothing that was tried */
	HD_FIX_WEIGHT,                            /* a weight `value` times its own */
	/* `value` more devices of `type`, or as many back in service */
	HD_FIX_ADD,
	HD_FIX_PRICE,                             /* a price of `value` per device and hour of `type` */
	HD_FIX_ROUNDS,                            /* `value` rounds of patience */
	HD_FIX_KAPPA,                             /* without hysteresis and reservations */
};

/* Whether the one that asks may know of that job. */
typedef bool hd_may_see(void *user, uint64_t job);

enum { HD_WHY_TEXT = 300 };

struct hd_why {
	enum hd_why_code code;
	uint32_t type;                            /* the resource that is tight for it; HD_SCHED_NONE */
	enum hd_fix fix;
	uint32_t fix_type;
	double value;
	double weight;                            /* of HD_FIX_WEIGHT, else 0 */
	char text[HD_WHY_TEXT];                   /* a sentence: the reason and its numbers */
	char help[HD_WHY_TEXT];                   /* a sentence: the way out; "" if none is known */
};

HD_MUST_USE enum hd_err hd_sched_why(const struct hd_policy_setting *setting,
	const struct hd_sched_state *state, const struct hd_shares *shares, uint32_t job,
	struct hd_arena *arena, struct hd_why *why, struct hd_diag *diag);
/* The same without asking for ways out: fast however many jobs there are. */
void hd_sched_why_code(const struct hd_policy_setting *setting, const struct hd_sched_state *state,
	const struct hd_shares *shares, uint32_t job,
	struct hd_why *why);

/* ---- what if ---- */

enum hd_change_kind { HD_CHANGE_WEIGHT, HD_CHANGE_SCALE, HD_CHANGE_ADD, HD_CHANGE_PRICE, HD_CHANGE_REMOVE };

struct hd_change {
	enum hd_change_kind kind;
	/* index of the job (WEIGHT, SCALE, REMOVE) or type (ADD, PRICE) */
	uint32_t at;
	/* the weight; the devices; so many more; the price; REMOVE: nothing */
	double value;
};

/* What became of a job. A share is the part of wall time in which it runs, in any shape. */
/* [0] as it is, [1] with the changes; rate in steps/s */
struct hd_what_if { uint32_t job; double share[2], rate[2]; };

/* Asks a fresh policy twice: for the state, and with the changes, then one of the setting `then` (NULL: the
 * same). SCALE assumes steps/s in proportion to devices. `rows` are the jobs whose share or rate differs by
 * more than 1e-6 of itself, those that lose first by id, then those that gain. */
HD_MUST_USE enum hd_err hd_sched_what_if(const struct hd_policy_setting *setting,
	const struct hd_policy_setting *then, const struct hd_sched_state *state,
	const struct hd_change *change, uint32_t nchanges, struct hd_arena *arena,
	const struct hd_what_if **rows, uint32_t *nrows, struct hd_diag *diag);

#endif
