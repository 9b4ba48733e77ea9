/* explain.h -- `heddle plan JOB --explain`: why the step takes what is predicted (pipeline/sim_why.h), for
 * all ranks: pipelines side by side, stages, tensor groups, shadows.
 *
 * Text and JSON are of the same values. */
#ifndef HD_CMD_PLAN_EXPLAIN_H
#define HD_CMD_PLAN_EXPLAIN_H

#include "base/json_writer.h"
#include "pipeline/sim_why.h"
#include "cmd/plan/planning.h"

struct hd_explained {
	const struct hd_sim_plan *sim;            /* the plan's; of a job with shadows the same with them */
	struct hd_sim_plan with;
	const char *shadows;                      /* elastic.redundancy; NULL: none, or not in such a plan */
	/* why they are not in it; NULL: they are, or none are asked for */
	const char *without;
	struct hd_sim_reasons why;
	double group_ticks;                       /* of the path, sums within tensor groups */
};

/* The plan was made with spans. */
HD_MUST_USE enum hd_err hd_cmd_explain(struct hd_cmd *cmd, struct hd_planning *planning,
	struct hd_explained *explained);
void hd_cmd_explain_print(const struct hd_planning *planning, const struct hd_explained *explained);
/* Member "explain". */
void hd_cmd_explain_put(struct hd_json_writer *writer, const struct hd_planning *planning,
	const struct hd_explained *explained);

#endif
