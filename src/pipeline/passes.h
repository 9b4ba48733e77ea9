/* passes.h -- what a skeleton lacks, added step by step.
 *
 * In this order, each a pure function of its schedule, doing nothing the second time:
 *
 *	merge      adjacent I and W of one stage and virtual node become B
 *	recompute  F keeps its input alone, R stands directly before the backward
 *	offload    OFF directly after F, ON directly before R or the backward
 *	comms      (schedule_check.h) LD and receives directly before what needs them, sends directly after
 *	           what makes them
 *	slots      receives name the buffers of their channel in turn
 *	versions   PIN of what a list begins with or makes, REL after the last use; compute instructions of
 *	           delayed updates say their version
 *	updates    RED after the last gradient, bucket by bucket; after that of the rank's last stage TIE;
 *	           then NORM and STEP, or STEP! and VAL
 *
 * 1. A schedule that the checker accepts stays accepted.
 * 2. Of delayed updates all sections are completed. A rank's stages end a block of virtual nodes in one
 *    order, in the prologue as in the period; else the checker says what is too early.
 * 3. Versions are relative to the first step of their section. A prologue begins by pinning the delay + 1
 *    versions that a committed state holds, an epilogue releases as many.
 * 4. With eager updates (schedule_job.h) version 0 is released after VAL.
 *
 * Pure; results lie in the arena, and share lists with what they were made of. */
#ifndef HD_PIPELINE_PASSES_H
#define HD_PIPELINE_PASSES_H

#include "pipeline/schedule_job.h"

/* Zeroed: transfers, versions and updates as the schedule's `update` asks. */
struct hd_pass_options {
	bool merge;
	const bool *recompute, *offload;          /* [stages]; NULL: none */
	const struct hd_schedule_job *job;        /* or NULL */
};

HD_MUST_USE enum hd_err hd_schedule_complete(struct hd_schedule *out, const struct hd_schedule *schedule,
	const struct hd_pass_options *passes,
	struct hd_arena *arena, struct hd_diag *diag);

/* The passes one by one, for tests (recompute apart). */
HD_MUST_USE enum hd_err hd_schedule_merge(struct hd_schedule *out, const struct hd_schedule *schedule,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_schedule_recompute(struct hd_schedule *out, const struct hd_schedule *schedule,
	const bool *recompute,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_schedule_offload(struct hd_schedule *out, const struct hd_schedule *schedule,
	const bool *offload,
	struct hd_arena *arena, struct hd_diag *diag);
/* slots 0: none is named. */
HD_MUST_USE enum hd_err hd_schedule_slots(struct hd_schedule *out, const struct hd_schedule *schedule,
	uint32_t slots,
	struct hd_arena *arena, struct hd_diag *diag);
/* job NULL: what `update` says. HD_E_BADPLAN: blocks of virtual nodes that do not divide the step; tied or
 * clipped stages that are not updated together. HD_E_INVAL: eager updates that are delayed. */
HD_MUST_USE enum hd_err hd_schedule_versions(struct hd_schedule *out, const struct hd_schedule *schedule,
	const struct hd_schedule_job *job,
	struct hd_arena *arena, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_schedule_updates(struct hd_schedule *out, const struct hd_schedule *schedule,
	const struct hd_schedule_job *job,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
