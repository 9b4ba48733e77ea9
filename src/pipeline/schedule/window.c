#include "pipeline/window.h"

#include <assert.h>

struct window_emit { struct hd_ilist *list; uint32_t p, r, end; bool again; };

static void put(struct window_emit *e, uint8_t op, uint32_t vn, uint32_t peer)
{
	assert(e->list->len < e->list->cap);
	e->list->at[e->list->len++] = (struct hd_ins){ .op = op, .stage = (uint16_t)e->r, .vn = vn,
		.peer = (uint16_t)peer };
}

/* `n` counts from the step's first virtual node; what was done ahead, or is not to be begun, is left out. */
static void forward(struct window_emit *e, int64_t n, uint32_t done)
{
	const uint32_t v = (uint32_t)n;

	if (n < (int64_t)done || n >= e->end)
		return;
	if (e->r)
		put(e, HD_INS_RA, v, e->r - 1);
	put(e, HD_INS_F, v, 0);
	e->list->at[e->list->len - 1].flags = e->again ? HD_INS_CHECKPOINT : 0;
	if (e->r + 1 < e->p)
		put(e, HD_INS_SA, v, e->r + 1);
}

static void backward(struct window_emit *e, int64_t n, uint32_t done)
{
	const uint32_t v = (uint32_t)n;

	if (n < (int64_t)done || n >= e->end)
		return;
	if (e->r + 1 < e->p)
		put(e, HD_INS_RG, v, e->r + 1);
	if (e->again)
		put(e, HD_INS_R, v, 0);
	put(e, HD_INS_B, v, 0);
	if (e->r)
		put(e, HD_INS_SG, v, e->r - 1);
}

enum hd_err hd_window_list(struct hd_ilist *list, const struct hd_window *window, uint32_t r,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_window w = *window;
	const uint32_t lead = 2 * (w.p - 1), most = 7 * (w.nvns + lead) + 3;
	const bool last = r + 1 == w.p;
	struct window_emit e = { .list = list, .p = w.p, .r = r, .end = w.goes_on ? UINT32_MAX : w.nvns,
		.again = w.again };

	assert(hd_window_fits(w.p, w.nvns) && r < w.p);
	*list = (struct hd_ilist){ hd_arena_take(arena, most, sizeof *list->at), 0, most };
	if (!list->at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a list of %u instructions", most);
	for (int64_t j = w.ahead ? 0 : -(int64_t)lead; j < w.nvns; j++) {
		if (last && w.eager && w.goes_on && j + w.p - 1 == w.nvns) {
			put(&e, HD_INS_STEP, 0, 0);
			list->at[list->len - 1].flags = HD_INS_EAGER;
		}
		if (last)
			forward(&e, j + w.p - 1, w.ahead ? w.p - 1 : 0);
		backward(&e, j + r, w.ahead ? r : 0);
		if (!last)
			forward(&e, j + lead - r, w.ahead ? lead - r : 0);
	}
	put(&e, HD_INS_NORM, 0, 0);
	list->at[list->len - 1].stage = 0;
	put(&e, HD_INS_STEP, 0, 0);
	return HD_OK;
}

bool hd_window_again(const struct hd_plan *plan, uint32_t r)
{
	bool again = false;

	for (uint32_t i = 0; i < plan->list[r].len && !again; i++)
		again = plan->list[r].at[i].flags & HD_INS_CHECKPOINT;
	return again;
}

static bool may_stand(const struct hd_ins *ins, uint32_t r, bool again)
{
	return (!hd_ins_uses(ins->op, 'v') || ins->stage == r) && ins->op != HD_INS_I &&
		ins->op != HD_INS_W && ins->op != HD_INS_OFF && (ins->op != HD_INS_R || again) &&
		(ins->op != HD_INS_F || again == !!(ins->flags & HD_INS_CHECKPOINT));
}

bool hd_window_straight(const struct hd_plan *plan)
{
	if (!plan->first || plan->nstages != plan->nranks || !hd_window_fits(plan->nranks, plan->nvns))
		return false;
	for (uint32_t r = 0; r < plan->nranks; r++) {
		const bool again = hd_window_again(plan, r);
		for (uint32_t i = 0; i < plan->list[r].len; i++)
			if (!may_stand(&plan->list[r].at[i], r, again))
				return false;
	}
	return true;
}
