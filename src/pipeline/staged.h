/* staged.h -- plans whose ranks hold stages: made of a schedule, and proved before they run.
 *
 * A plan (plan/plan.h) is one value, whatever its stages: lists of every rank with virtual nodes of the job.
 * One of several stages is a schedule whose stages may have several holders, d pipelines side by side; its
 * rules are those of schedules (schedule_check.h), held against what a run does.
 *
 * 1. Pipeline k of d has ranks k p .. k p + p - 1 and a run of neighbouring virtual nodes, larger ones first.
 * 2. Every list has NORM once: it seals the step. Where a stage has several holders, RED stands before it.
 * 3. map[v] is the rank that runs stage 0 of v.
 * 4. A rank may be t devices (plan->tensor), which run the shards of its stages together. Plans are made of
 *    one device a rank; the maker's caller widens them (hd_plan_widen()). A plan of one stage is one of these
 *    where its ranks have several devices.
 * 5. A plan that hd_plan_staged_check() accepts computes every (stage, virtual node) once each way, never
 *    waits in a circle with the credits given, and has instructions that this build runs. Between OFF and ON
 *    there are no activations to be sent, and OFF moves those of a forward: neither the input that a stage
 *    keeps alone, nor what I leaves to W.
 * 6. The devices of a rank may lie on several workers (plan->groups). Such a plan is made of another one by
 *    hd_plan_spread(), and hd_plan_fold() gives that one back: rules 1 to 5 are its, and the groups do what
 *    it says.
 *
 * Everything lies in the arena; lists of skeletons are copied. Pure. */
#ifndef HD_PIPELINE_STAGED_H
#define HD_PIPELINE_STAGED_H

#include "pipeline/schedule_check.h"

enum { HD_MAX_CELLS = 1 << 24 };          /* stages times virtual nodes */

/* Where a stage has the activations of a virtual node between forward and backward: in its memory; only its
 * input, the rest is computed again (R); in a file (OFF, ON). */
enum hd_stage_keeps { HD_KEEPS_ALL, HD_KEEPS_INPUT, HD_KEEPS_AWAY };

/* `pipeline`: d schedules of one step with the same ranks, stages and places, skeletons or complete, of flush
 * updates; their virtual nodes are the job's in all. `first`: [stages] first forward node of each
 * (graph/stages.h). `keeps`: of all stages. HD_E_INVAL, HD_E_BADPLAN: they are not. */
HD_MUST_USE enum hd_err hd_plan_staged(struct hd_plan *plan, const struct hd_plan_job *job,
	const struct hd_schedule *pipeline, uint32_t d, const uint32_t *first, enum hd_stage_keeps keeps,
	struct hd_arena *arena, struct hd_diag *diag);

/* The same; `keeps` [stages]: enum hd_stage_keeps of each. NULL: all of them all. */
HD_MUST_USE enum hd_err hd_plan_staged_some(struct hd_plan *plan, const struct hd_plan_job *job,
	const struct hd_schedule *pipeline, uint32_t d, const uint32_t *first, const uint8_t *keeps,
	struct hd_arena *arena, struct hd_diag *diag);

/* The same plan for ranks of t devices. HD_E_INVAL: t does not divide the shards of the job, or there are too
 * many devices. */
HD_MUST_USE enum hd_err hd_plan_widen(struct hd_plan *plan, const struct hd_plan_job *job, uint32_t t,
	struct hd_diag *diag);

/* The same plan for ranks of t devices in `groups` groups, each on a worker of its own: groups times as many
 * ranks, of t / groups devices. HD_E_INVAL: as above, or the groups do not divide t. */
HD_MUST_USE enum hd_err hd_plan_spread(struct hd_plan *plan, const struct hd_plan_job *job, uint32_t t,
	uint32_t groups, struct hd_arena *arena, struct hd_diag *diag);
/* The plan whose ranks are each one worker's; of a plan without groups itself. Arrays may be those of `plan`.
 * HD_E_BADPLAN: the groups of a rank do not do the same. */
HD_MUST_USE enum hd_err hd_plan_fold(struct hd_plan *folded, const struct hd_plan *plan,
	struct hd_arena *arena, struct hd_diag *diag);

/* HD_E_BADPLAN with the first finding in diag and all of them in report, which may be NULL. */
HD_MUST_USE enum hd_err hd_plan_staged_check(const struct hd_plan *plan, const struct hd_plan_job *job,
	struct hd_report *report, struct hd_diag *diag);

/* A plan file by itself, of one stage or of several: its own numbers stand for the job's (plan/check.h). */
HD_MUST_USE enum hd_err hd_plan_check_file(const struct hd_plan *plan, struct hd_report *report,
	struct hd_diag *diag);

#endif
