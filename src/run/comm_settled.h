/* comm_settled.h -- what a run does with its transfers, decided when it begins: a value of the run's job
 * (comm.settled), which members, joiners and a coordinator that takes over read.
 *
 * 1. Buckets as comm.buckets says: of given bytes; a tensor each; auto: those by the times of the backward
 *    pass and the link (planner/comm.h), of which none has more than a quarter of what a worker owns, or of
 *    some sizes, or a tensor each: those whose step is simulated to be the shortest (planner/comm_time.h), of
 *    state that only some workers bring on also with `parts` in place of ADR 202.
 *    Of more workers or messages than are simulated the first; without times as the layout has them.
 * 2. Ranks by comm.order, for these buckets, from the forward graph.
 * 3. A job with a plan file keeps the layout's buckets: the file names chunks. What has too many buckets for
 *    a text or an order (HD_COMM_TEXT, HD_ORDER_RECVS) keeps them, too, or has no ranks; `why` says it.
 * 4. No bit of a result depends on it. Equal asks have equal answers; costs are measured once, in one
 * process.
 * 5. It is written after the rest of the job: a worker that reads the run's folder first waits while the
 *    folder's holder begins (cmd/run/worker.c).
 *
 * Everything lies in the task's arena or the one given. Pure. */
#ifndef HD_RUN_COMM_SETTLED_H
#define HD_RUN_COMM_SETTLED_H

#include "planner/comm_time.h"
#include "run/costs.h"

struct hd_comm_settling {
	const struct hd_run_costs *costs; /* NULL: nothing is known */
	uint32_t nworkers;
	bool uncut;                       /* buckets of auto stay as the layout has them */
};

struct hd_comm_settled {
	struct hd_comm comm;              /* nbuckets 0: nothing is decided */
	bool cut;                         /* by times */
	bool parts;                       /* of such buckets, where the order is auto: rule 1 */
	/* by times: a step, simulated; where that was too much, when the last bucket is summed; 0: neither */
	int64_t step_ns, end_ns;
	char why[200];                    /* what was left as it was; "": nothing */
};

/* Does the job ask for orders that take times by name? */
bool hd_comm_wants_times(const struct hd_job *job);
struct hd_comm_link hd_comm_link_of(const struct hd_run_costs *costs);
/* How `nworkers` with one device each exchange what they sum; of a job of the whole model. */
struct hd_comm_way hd_comm_way_of(const struct hd_task *task, const struct hd_run_costs *costs,
	uint32_t nworkers);
/* Cuts the task's layout and sets its ranks: before anything is made of that layout. *value: for the job. */
HD_MUST_USE enum hd_err hd_comm_settle(struct hd_comm_settled *settled, struct hd_job_value *value,
	struct hd_task *task, const struct hd_comm_settling *ask, struct hd_arena *arena,
	struct hd_diag *diag);

#endif
