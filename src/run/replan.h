/* replan.h -- what the steps of a recorded run would take under another plan of its job.
 *
 * The prediction of a plan (forecast.h), by the costs of the job, corrected by the recording.
 *
 * 1. Nodes of each stage that ran take so much more or less than the job's costs say that each instruction
 *    takes what it took; the update likewise. Costs are those that the run measured (kept_costs.h), else
 *    modelled ones of a nominal core. Where several workers ran instructions of one kind, a worker is so much
 *    faster or slower than their mean; workers that the recording has not are as the mean.
 * 2. Links take what activations took, if a link was measured; of workers with the whole model what makes the
 *    prediction of the recorded plan right, within HD_REPLAN_WITHIN times.
 * 3. What the prediction of the recorded plan still misses, that of the other is thought to miss, too: the
 *    answer is the recorded time, longer or shorter by the difference of both predictions.
 * 4. A *gap* is an instruction of the other plan of which nothing was recorded: one of an op that the
 *    recorded plan does not have, or of a stage that begins or ends at other nodes, or of a worker that was
 *    not there. What it takes follows from its nodes by rule 1, and the gap is named.
 *
 * Everything lies in the arena. */
#ifndef HD_RUN_REPLAN_H
#define HD_RUN_REPLAN_H

#include "timeline/analyze/spent.h"
#include "run/costs.h"

enum { HD_REPLAN_WITHIN = 8, HD_REPLAN_TURNS = 4 };

struct hd_replan_ask {
	const struct hd_task *task;
	const struct hd_run_costs *costs; /* NULL: none were measured */
	uint32_t cores;                   /* of the machine, where workers share one; 0: one each */
	const struct hd_plan *ran, *other;
	bool same_job;                    /* of `other` it is known: its chunks may be any */
	const struct hd_tl_spents *spent; /* of steps of `ran` */
	const uint32_t *worker;           /* [timeline's processes] of `ran`; HD_TL_NONE: none */
};

enum hd_replan_why { HD_REPLAN_OP, HD_REPLAN_STAGE, HD_REPLAN_WORKER };
/* `at`: the stage, or the worker. */
struct hd_replan_gap { enum hd_replan_why why; uint8_t op; uint32_t at; };

struct hd_replan {
	double recorded_ns, ran_ns, other_ns;     /* ran, other: by rules 1 and 2 */
	struct hd_replan_gap *gap; uint32_t ngaps;
};

/* HD_E_INVAL: `other` is of another job: other virtual nodes, chunks or nodes. HD_E_REFUSED: the recorded
 * steps are not those of `ran`; neither can be predicted. HD_E_BADPLAN: it cannot run. */
HD_MUST_USE enum hd_err hd_replan(struct hd_replan *replan, const struct hd_replan_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
