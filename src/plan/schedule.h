/* schedule.h -- bare schedules: the lists of one step without a job around them.
 *
 * The form in which schedules are written by hand, stored as test vectors and drawn: one
 * line per rank, virtual nodes counted inside the step, no map and no owners. Several
 * stand in one file, separated by headings "## name ...". Plans: plan.h.
 *
 * 1. What no directive says is inferred: p = highest rank + 1, m = highest virtual node
 *    + 1, stages = highest stage + 1, place = the rank on which F of each stage appears.
 * 2. A directive (p, m, stages, place) must agree with the lists; it is not printed
 *    again, since the lists say the same.
 * 3. Sections of asynchronous lists are refused: nothing here runs them.
 *
 * Ownership: everything lies in the arena. Pure. */
#ifndef HD_PLAN_SCHEDULE_H
#define HD_PLAN_SCHEDULE_H

#include "plan/plan.h"

#define HD_NO_RANK UINT32_MAX
enum { HD_MAX_STAGES = 65535 };

struct hd_schedule {
	const char *heading;              /* what follows "## "; "" where there is none */
	uint32_t nranks, nvns, nstages;   /* p, m, S */
	uint32_t *place;                  /* [nstages] rank, or HD_NO_RANK where no F appears */
	struct hd_ilist *list;            /* [nranks] */
};

struct hd_schedules { struct hd_schedule *at; uint32_t len; };

/* A heading without lists (remarks at the end of a file) is left out. */
HD_MUST_USE enum hd_err hd_schedules_parse(struct hd_schedules *out, const char *text, size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag);
/* With its heading line, also an empty one, so that schedules stay apart. */
void hd_schedule_print(const struct hd_schedule *schedule, struct hd_text *text);

#endif
