#include "pipeline/plan_schedule.h"

enum hd_err hd_schedule_of_plan(struct hd_schedule *out, const struct hd_plan *plan, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_schedule s = { .heading = "plan", .nranks = plan->nranks, .nvns = plan->nvns,
		.nstages = plan->nstages, .list = plan->list,
		.place = hd_arena_take(arena, (size_t)plan->nstages + 1, sizeof *s.place) };

	if (!s.place)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the places of %u stages", plan->nstages);
	for (uint32_t k = 0; k < s.nstages; k++)
		s.place[k] = HD_NO_RANK;
	for (uint32_t r = 0; r < s.nranks; r++)
		for (uint32_t i = 0; i < s.list[r].len; i++)
			if (s.list[r].at[i].op == HD_INS_F && !(s.list[r].at[i].flags & HD_INS_SHADOW) &&
				s.list[r].at[i].stage < s.nstages &&
				s.place[s.list[r].at[i].stage] == HD_NO_RANK)
				s.place[s.list[r].at[i].stage] = r;
	*out = s;
	return HD_OK;
}
