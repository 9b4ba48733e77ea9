/* comm_time.h -- what a step of whole models over workers takes, with given buckets, owners and order: some
 * steps are simulated, one behind the other.
 *
 * Users: the choice of buckets for comm.buckets: auto (run/comm_settled.h), the predicted step
 * (run/pipes_forecast.h).
 *
 * 1. Workers are alike: each has one device and as many virtual nodes, in waves. A bucket is final when the
 *    last node that makes any of its gradient is done, in the last wave. Then its partial sum goes to its
 *    owner (plan/holding.h, by bytes), which has the sum when all have come.
 * 2. Sums go as exchange.h says: to all at once, or with `copies` along the chain, whose last member sends
 *    the new parameters to the others as ADR 214 says.
 * 3. Each worker has one port each way. Between two workers one message goes at a time, the most urgent that
 *    is there (plan/comm.h); messages on their way share ports max-min fairly. A message takes `message_ns`
 *    of both its ports beside its bytes, and is there a latency later.
 * 4. Parameters of a bucket are readable at a worker when they are there, and the metrics of all others: each
 *    sends its own when its backward pass is over. With `early` the last of a chain sends parameters without
 *    these, when it has the sum (ADR 245). Then nodes of the next step's first wave run, each when
 *    all that it reads is readable. With `norms` and copies parameters are updated, readable and sent when a
 *    worker knows the norms of all sums (exchange.h, rule 7); without copies none is readable before the
 *    step is over.
 * 5. A step is over when all is everywhere and each has heard so. Backward passes begin after that.
 * 6. The answer is the time from the end of one step's backward passes to the end of the next one's; of an
 *    order that is drawn for each step (plan/comm.h) the mean of HD_COMM_TIME_DRAWS such times.
 * 7. What is not in it: adding, updating, reading rows, and processes that share a core.
 *
 * At most HD_COMM_TIME_WORKERS, and HD_COMM_TIME_MESSAGES in a step: beyond nothing is said. Pure; memory is
 * the arena's. */
#ifndef HD_PLANNER_COMM_TIME_H
#define HD_PLANNER_COMM_TIME_H

#include "planner/comm.h"

enum { HD_COMM_TIME_WORKERS = 8, HD_COMM_TIME_MESSAGES = 1 << 15, HD_COMM_TIME_STEPS = 4,
	HD_COMM_TIME_DRAWS = 24 };

/* Of the exchange between workers. */
struct hd_comm_way {
	uint32_t nworkers, copies, servers;       /* plan/holding.h */
	uint32_t nvns, wave;              /* virtual nodes of a worker; of its first and its last wave */
	bool norms, early;
	int64_t message_ns;               /* rule 3 */
	int64_t hop_ns;                   /* until a thread goes on that is woken */
	int64_t phase_ns;                 /* by which each phase of a wave is longer than its nodes */
};

/* What a run does with its links in a step, in ns. */
struct hd_comm_time { int64_t step_ns, computing_ns; };

/* With the buckets of `cut`, where it is not NULL, in place of the layout's; `comm`: ranks of these. step_ns
 * 0: too many workers or messages. Times and link must be known. */
HD_MUST_USE enum hd_err hd_comm_step_time(struct hd_comm_time *time, const struct hd_comm_ask *ask,
	const struct hd_comm_cut *cut, const struct hd_comm *comm, const struct hd_comm_way *way,
	struct hd_arena *arena, struct hd_diag *diag);

/* Of the buckets that bytes [n] make (hd_comm_cut(), HD_COMM_TENSORS too), of `first` and of the layout those
 * whose step is the shortest; of equal ones the fewer. In the order that ask says, or by first readers.
 * Of an order that is auto, where some workers get parameters alone, also with `parts` (plan/comm.h), which
 * of steps that are alike are better (by 2 % at most; ADR 246, 270): *parts.
 * *ns: of the best; 0: none could be said, and *best is `first`. */
HD_MUST_USE enum hd_err hd_comm_cut_fastest(struct hd_comm_cut *best, bool *parts, int64_t *ns,
	const struct hd_comm_ask *ask, const struct hd_comm_way *way, const int64_t *bytes, uint32_t n,
	const struct hd_comm_cut *first, struct hd_arena *arena, struct hd_diag *diag);

#endif
