/* check.h -- proves that a plan may run: before every launch and on every plan file.
 *
 * Abstract execution: one program counter per rank, tokens for tensors. Pure and
 * linear in the number of instructions. An accepted plan computes every virtual
 * node of the job once, waits for nothing that does not come, and fits the job.
 *
 * Rules are rows of a table (id as in the plan documents: K1 ...), each with the
 * sentence it says and a test that provokes it. Instructions for which this build
 * has no runtime are refused here, by name, not at run time. The rules about those
 * instructions (K5, K8-K11, K13-K15, K19, K21-K27, K29, K30: transfers, versions,
 * several stages) join the table with their runtime.
 *
 * 1. Each list: LD, F and B of its virtual nodes (or LD of all, FL, BL), then RED of every stage once, NORM
 *    once, STEP of every stage once, in this order; RED, NORM, FL and BL in one order on all ranks. Ranks
 *    without virtual nodes too. NORM is never left out: it seals the step, finds what is not finite and makes
 *    the scale of the update, clipped or not.
 * 2. A plan file is judged by itself (hd_plan_check_alone) and before it runs by the same rules; what only
 *    the job and its machine know (virtual nodes, chunks, lockstep, waves that fit) is added there.
 *
 * All errors up to HD_MAX_FINDINGS are listed: "plan: rank 2, #14 F0.3: <sentence>". */
#ifndef HD_PLAN_CHECK_H
#define HD_PLAN_CHECK_H

#include "plan/plan.h"

/* stages that a run has in this build */
enum { HD_MAX_FINDINGS = 20, HD_FRAGMENTS = 2, HD_RUN_STAGES = 1 };

/* A fragment draws five instructions before and after each that the finding names ("" where there is
 * none). */
struct hd_finding { const char *rule; char text[400], fragment[HD_FRAGMENTS][256]; };

struct hd_report {
	struct hd_finding at[HD_MAX_FINDINGS];
	uint32_t len;                     /* listed */
	uint64_t total;                   /* found */
};

/* "rank 2 from #9: F1.0 B1.0 [F1.3] B1.1". */
void hd_fragment_draw(char *out, size_t cap, const struct hd_ilist *list, uint32_t rank, uint32_t at);

/* HD_OK, or HD_E_BADPLAN with the first finding in diag and all of them in report (which may be NULL). */
HD_MUST_USE enum hd_err hd_plan_check(const struct hd_plan *plan, const struct hd_plan_job *job,
	struct hd_report *report, struct hd_diag *diag);

/* The same without a job: the plan's own numbers stand for the job's. What it refuses no job can run, for
 * the same reason. */
HD_MUST_USE enum hd_err hd_plan_check_alone(const struct hd_plan *plan, struct hd_report *report,
	struct hd_diag *diag);

#endif
