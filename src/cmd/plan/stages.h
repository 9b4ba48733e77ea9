/* stages.h -- what the stages of a schedule cost, by a profile of its model; used by `plan check` and `plan
 * diff`.
 *
 * Also what several verbs read alike: the profile, machines in levels, the memory of a machine.
 *
 * --graph FILE is the profile, --cuts says the first cut of each stage; without it the stages are those of
 * the straight partition between which nothing takes time to travel.
 *
 * Ownership: everything lies in the arena of the call. */
#ifndef HD_CMD_PLAN_STAGES_H
#define HD_CMD_PLAN_STAGES_H

#include "pipeline/schedule_job.h"
#include "planner/partition.h"
#include "cmd/verbs.h"

/* The profile of --graph and its cuts (partition.c). */
HD_MUST_USE enum hd_err hd_cmd_cuts(struct hd_cmd *cmd, struct hd_profile *profile, struct hd_cuts *cuts);
/* --machines and --bandwidth (partition.c): how->level, innermost first. */
HD_MUST_USE enum hd_err hd_cmd_levels(struct hd_cmd *cmd, struct hd_part_how *how);
/* --memory: bytes above 0, as 16e9 or 16GiB; *bytes 0 without it. */
HD_MUST_USE enum hd_err hd_cmd_memory(struct hd_cmd *cmd, int64_t *bytes);
/* *costs NULL without --graph. sums may be NULL. */
HD_MUST_USE enum hd_err hd_cmd_stage_costs(struct hd_cmd *cmd, uint32_t nstages,
	const struct hd_stage_costs **costs, struct hd_cut_sums *sums);

#endif
