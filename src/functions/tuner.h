/* tuner.h -- how many function workers at once, by value: 1 / (seconds x dollars) of an epoch.
 *
 * A trainer tells it the length of its queue of ready graph tasks eight times an epoch, and what each epoch
 * took and cost; it says the size for the next one.
 *
 * 0. Epochs of one size are gathered until they are least_s seconds long; their mean is one *observation*,
 *    and counts below as one epoch. A millisecond tells more of what else the machine did than of a size. An
 *    epoch in which the service was away (a circuit closed, or only probed) says nothing of any size: what
 *    was gathered goes with it.
 * 1. Loop 1 proposes: a queue that grows in three windows in a row means that dense results come faster than
 *    they are used: half the size; one that shrinks, or is empty, twice the size. So the first
 *    HD_FN_TUNER_DOUBLINGS proposals; later ones stand at the best size by what was seen, a step below and a
 *    step above.
 * 2. Loop 2 judges: a proposal is a trial of HD_FN_TUNER_EPOCHS epochs. Sizes are compared by all epochs
 *    that were seen, through T(n) = b / (min(n, k) + o) + c n, of which the device is worth o functions,
 *    and dollars = w T + f + g max(0, n / k - 1), the last for those that find no work: with 5 % noise
 *    three epochs of one size do not tell 2 %. Of all epochs the first, whose functions start cold, says
 *    nothing. Size 0, all work local, is tried once where it is allowed, and taken as it was.
 * 3. HD_FN_TUNER_SETTLES epochs after its begin it settles and stays. It begins again where the mean time of
 *    eight epochs moved by more than a tenth, and by more than their spread explains (three standard errors),
 *    at another price, at a resize; after HD_FN_TUNER_AGAIN epochs it tries a step below and above, with what
 *    it knows.
 * 4. Functions that cost more than budget_per_hour, in least_s seconds, lower the greatest size at once,
 *    unless the last HD_FN_TUNER_EPOCHS observations left as much unspent: a bill may be late. While the
 *    service is away, and is billed for calls that bring nothing, it is lowered to the least one. What was
 *    spent beyond the budget is made up for by time; then the greatest size grows to what fits by what a
 *    worker costs, at most twice as large, and the search begins again: after HD_FN_TUNER_EPOCHS
 *    observations at the earliest, and twice as many, at most HD_FN_TUNER_AGAIN, where it had grown too
 *    early. So a run spends its budget, and beyond it at most what the last lowering has not made up for
 *    yet. The size stays lowered when the time moves; another price, or a resize, gives back the one of the
 *    spec.
 * 5. Worth a line (`says`) are a size that it settled at, where that is more than a step from the last one
 *    that was said, a time that moved, and a budget that lowered the size or lets it grow: trials are not.
 *
 * Plain value. Pure: equal calls, equal answers. */
#ifndef HD_FUNCTIONS_TUNER_H
#define HD_FUNCTIONS_TUNER_H

#include <stdbool.h>
#include <stdint.h>

enum { HD_FN_TUNER_EPOCHS = 3, HD_FN_TUNER_DOUBLINGS = 3, HD_FN_TUNER_SETTLES = 36, HD_FN_TUNER_AGAIN = 50,
	HD_FN_TUNER_SIZES = 32, HD_FN_TUNER_START = 100 };

/* Bounds. budget_per_hour: dollars for functions; 0: no bound. least_s: seconds of an observation; 0: each
 * epoch is one. */
struct hd_fn_tuner_spec { uint32_t min, max; double budget_per_hour, least_s; };

/* An epoch that ended. `usd`: of everything; `function_usd`: of functions; `away`: the service was. */
struct hd_fn_tuner_epoch { double seconds, usd, function_usd; bool away; };

/* Why a size is what it is. */
#define HD_FN_TUNER_REASONS(X) \
	X(TRIAL,   "trial")    /* the epochs of a trial are not over */ \
	X(QUEUE,   "queue")    /* the queue of graph tasks proposes it */ \
	X(VALUE,   "value")    /* the best by what was seen, or a step beside it */ \
	X(LOCAL,   "local")    /* no functions: is that better? */ \
	X(SETTLED, "settled") \
	X(BUDGET,  "budget") \
	X(REGAINED, "budget regained") /* what was spent beyond the budget is made up for */ \
	X(MOVED,   "moved")    /* its time moved: what was seen holds no more */ \
	X(GATHER,  "gather")   /* the epochs of an observation are not over */ \
	X(AWAY,    "away")     /* the service was */

/* Their ids. */
enum hd_fn_tuner_reason {
#define X(id, name) HD_FN_TUNER_##id,
	HD_FN_TUNER_REASONS(X)
#undef X
	HD_FN_TUNER_NREASONS
};
/* And names, for events. */
extern const char *const hd_fn_tuner_reasons[HD_FN_TUNER_NREASONS];

/* The answer. Values are 1 / (seconds x dollars): of the observation that ended, and of the best size by what
 * was seen; 0: not known. */
struct hd_fn_tuned { uint32_t slots; enum hd_fn_tuner_reason why; double value, expected; bool says; };

/* What was seen at one size: sums over its epochs. */
struct hd_fn_tuner_seen { uint32_t slots, epochs; double seconds, usd, function_usd; };

/* Of the budget. `seconds`, `usd`: gathered; `debt`: dollars beyond the budget, not made up for yet, or below
 * 0: left unspent; since the greatest size was lowered or grew: observations, dollars, and seconds times
 * workers; `wait`: observations before it grows. */
struct hd_fn_tuner_spent { double seconds, usd, debt, since_usd, since_work; uint32_t since, wait; };

/* The machine. */
struct hd_fn_tuner {
	struct hd_fn_tuner_spec spec;
	uint32_t slots, max;              /* in force; the greatest size now */
	struct hd_fn_tuner_epoch sum;     /* of the epochs gathered */
	uint32_t gathered;
	struct hd_fn_tuner_spent spent;
	uint32_t said;                    /* the last size that it settled at and said; UINT32_MAX: none */
	struct hd_fn_tuner_seen seen[HD_FN_TUNER_SIZES];
	uint32_t nseen;
	uint32_t left, trials, epochs;    /* of this trial; trials and epochs since the begin */
	double queue;                     /* of the last window; below 0: none yet */
	uint32_t grew, shrank;            /* windows in a row */
	int hint;                         /* of the queue: -1 fewer, 1 more, 0 nothing */
	bool settled, tried_local, warm;
	double recent[8], settled_seconds;
	uint32_t nrecent;
};

/* Begins at min(intervals, HD_FN_TUNER_START) within the bounds. */
void hd_fn_tuner_init(struct hd_fn_tuner *tuner, const struct hd_fn_tuner_spec *spec, uint32_t intervals);
/* A window ended: the length of the queue now. */
void hd_fn_tuner_window(struct hd_fn_tuner *tuner, double length);
/* An epoch ended: the size for the next one. */
struct hd_fn_tuned hd_fn_tuner_next(struct hd_fn_tuner *tuner, const struct hd_fn_tuner_epoch *epoch);
/* Another price, or another number of workers: what was seen holds no more. */
void hd_fn_tuner_begin_again(struct hd_fn_tuner *tuner);

#endif
