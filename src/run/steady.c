#include "run/steady.h"

#include "pipeline/plan_schedule.h"
#include "pipeline/window.h"

enum { STEPS = 4 };

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for steps that overlap");
}

/* What rank r runs in all of them, but for their ends. */
static enum hd_err join_steps(struct hd_ilist *all, const struct hd_plan *plan, uint32_t r,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t most = STEPS * (7 * (plan->nvns + 2 * plan->nranks) + 3);
	struct hd_ilist one;

	*all = (struct hd_ilist){ hd_arena_take(arena, most, sizeof *all->at), 0, most };
	enum hd_err err = all->at ? HD_OK : no_memory(diag);
	for (uint32_t t = 0; t < STEPS && !err; t++) {
		const struct hd_window window = { .p = plan->nranks, .nvns = plan->nvns, .ahead = t > 0,
			.goes_on = t + 1 < STEPS, .again = hd_window_again(plan, r) };
		err = hd_window_list(&one, &window, r, arena, diag);
		for (uint32_t i = 0; i < one.len && !err; i++)
			if (hd_ins_uses(one.at[i].op, 'v')) {
				all->at[all->len] = one.at[i];
				all->at[all->len++].vn += t * plan->nvns;
			}
	}
	return err;
}

static double first_forward_ns(const struct hd_ilist *list, const struct hd_sim_plan *sim, uint32_t r,
	uint32_t vn)
{
	uint32_t i = 0;

	while (list->at[i].op != HD_INS_F || list->at[i].vn != vn)
		i++;
	return hd_sim_plan_s(sim, sim->span[r][i].start) * 1e9;
}

enum hd_err hd_steady_time(double *took_ns, const struct hd_plan *plan, const struct hd_sim_setting *set,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t last = plan->nranks - 1;
	struct hd_schedule s;
	struct hd_sim_plan sim;
	struct hd_ilist *list = hd_arena_take(arena, plan->nranks, sizeof *list);
	enum hd_err err = list ? hd_schedule_of_plan(&s, plan, arena, diag) : no_memory(diag);

	for (uint32_t r = 0; r < plan->nranks && !err; r++)
		err = join_steps(&list[r], plan, r, arena, diag);
	if (err)
		return err;
	s.nvns = STEPS * plan->nvns;
	s.list = list;
	err = hd_sim_plan(&sim, &s, set, arena, diag);
	if (!err)
		*took_ns = first_forward_ns(&list[last], &sim, last, (STEPS - 1) * plan->nvns) -
			first_forward_ns(&list[last], &sim, last, (STEPS - 2) * plan->nvns);
	return err;
}
