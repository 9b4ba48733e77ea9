/* schedule.h -- bare schedules: the lists of one step without a job around them.
 *
 * The form in which schedules are written by hand, stored as test vectors and drawn: one
 * line per rank, virtual nodes counted inside the step, no map and no owners. Several
 * stand in one file, separated by headings "## name ...". Plans: plan.h.
 *
 * 1. What no directive says is inferred: p = highest rank + 1, m = highest virtual node
 *    + 1, stages = highest stage + 1, place = the rank on which F of each stage appears.
 * 2. A directive (p, m, stages, place) must agree with the lists; it is not printed
 *    again, since the lists say the same. The directive update is: the lists do not say it.
 * 3. Lists of delayed updates have three sections, in this order: prologue, period,
 *    epilogue, with a list of every rank each. In the period and the epilogue virtual nodes
 *    count from the first one of their step and may be negative (an earlier step); in the
 *    prologue, from the first one of the run. `list` is the period; m and the stages are its.
 *
 * Ownership: everything lies in the arena. Pure. */
#ifndef HD_PIPELINE_SCHEDULE_H
#define HD_PIPELINE_SCHEDULE_H

#include "plan/plan.h"

#define HD_NO_RANK UINT32_MAX
enum { HD_SCHEDULE_STAGES = 65535 };

/* Whose gradients an update waits for (a matter of the job; the order need only suit it).
 *        id      name     */
#define HD_UPDATES(X)                                                   \
	X(FLUSH, "flush")        /* all of the step: nothing is delayed */   \
	X(STASH, "stash")        /* PipeDream: each stage as soon as it can */ \
	X(VSYNC, "vsync")        /* the same, one version on all stages */   \
	X(2BW,   "2bw")          /* all of the step, one update late */

enum hd_update_mode {
#define X(id, name) HD_UPDATE_##id,
	HD_UPDATES(X)
#undef X
	HD_NUPDATES
};
extern const char *const hd_update_names[HD_NUPDATES];

struct hd_schedule {
	const char *heading;              /* what follows "## "; "" where there is none */
	uint32_t nranks, nvns, nstages;   /* p, m, S */
	uint32_t *place;                  /* [nstages] rank, or HD_NO_RANK where no F appears */
	struct hd_ilist *list;            /* [nranks] */
	enum hd_update_mode update;
	struct hd_ilist *prologue, *epilogue;     /* [nranks], or NULL: one section */
};

struct hd_schedules { struct hd_schedule *at; uint32_t len; };

/* A heading without lists (remarks at the end of a file) is left out. */
HD_MUST_USE enum hd_err hd_schedules_parse(struct hd_schedules *out, const char *text, size_t len,
	const char *file,
	struct hd_arena *arena, struct hd_diag *diag);
/* Sizes and places from `list` (rule 1), for makers. */
HD_MUST_USE enum hd_err hd_schedule_infer(struct hd_schedule *schedule, struct hd_arena *arena,
	struct hd_diag *diag);
/* With its heading line, also an empty one, so that schedules stay apart. */
void hd_schedule_print(const struct hd_schedule *schedule, struct hd_text *text);

#endif
