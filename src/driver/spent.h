/* spent.h -- what the instructions of a run's workers took, as each worker says at the end of its steps.
 *
 * redraw.h asks: for the rows of its forecast, and what a rank computed of a step.
 *
 * 1. Of a worker the newest message of a view counts; each has all since the worker's first step under its
 *    plan. The newest of the view before is kept, too: workers speak in the next one before its first step is
 *    committed. What was said in other views counts as nothing.
 * 2. What a rank computed of a step is the difference between the messages of that step and of the one
 *    before, in the same view: the instructions that busy_ns of a forecast predicts, without waits for other
 *    stages. The two newest steps of a worker are kept, so a step may be asked for once all have sealed it.
 * 3. A worker whose message could not be kept for want of memory has said nothing.
 *
 * Ownership: finish. Threads: one. No clock. */
#ifndef HD_DRIVER_SPENT_H
#define HD_DRIVER_SPENT_H

#include "protocol/coordinator.h"

/* of a rank; next: the step's number + 1 */
struct hd_spent_busy { uint64_t next; double ns[HD_VIEW_RANKS]; };

/* of a view; n 0: nothing */
struct hd_spent_sums {
	uint32_t epoch, n;
	uint64_t step;
	struct hd_spent_kind *kind;       /* owned: [HD_MSG_SPENTS] */
};

struct hd_spent_worker {
	uint32_t worker;
	struct hd_spent_sums now, was;
	struct hd_spent_busy *busy;       /* owned: [2], by parity */
};

struct hd_spent_said {
	uint32_t n;
	struct hd_spent_worker worker[HD_MAX_WORKERS];
};

void hd_spent_finish(struct hd_spent_said *said);           /* takes zeroed ones */
void hd_spent_take(struct hd_spent_said *said, uint32_t worker, uint32_t epoch,
	const struct hd_msg_spent *msg);
/* Of all ranks of the view; false: rule 2 leaves one of them open. */
bool hd_spent_step(const struct hd_spent_said *said, const struct hd_view *view, uint64_t step,
	double *busy_ns);
/* What that worker said last; NULL: nothing in that view. */
const struct hd_spent_sums *hd_spent_of(const struct hd_spent_said *said, uint32_t worker, uint32_t epoch);

#endif
