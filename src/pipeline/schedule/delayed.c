/* Schedules of delayed updates: forward and backward alternate for ever, nothing is drained at the
 * end of a step (PipeDream, vertical sync, PipeDream-2BW). Which version a virtual node uses is the
 * job's rule (update), not the order's: the three have the same lists.
 *
 * Rank r is w = p-1-r forwards ahead. The prologue covers the first q = max(1, ceil((p-1)/m)) steps,
 * counted from the first virtual node of the run; the period one step, whose backwards lag by w (negative
 * numbers: an earlier step); the epilogue the last w backwards, counted from the step that does not come. */
#include "pipeline/schedule/kind.h"

static uint32_t first_steps(const struct hd_emit *e)
{
	return e->p - 1 <= e->m ? 1 : (e->p - 1 + e->m - 1) / e->m;
}

static enum hd_err take(struct hd_emit *e, struct hd_ilist *list, uint32_t n)
{
	list->cap = n;
	list->at = hd_arena_take(e->arena, (size_t)n + 1, sizeof *list->at);
	return list->at ? HD_OK : hd_fail(e->diag, HD_E_NOMEM, "no memory for %u instructions", n);
}

static void run(struct hd_emit *e, struct hd_ilist *list, uint32_t from, uint32_t to, uint32_t w)
{
	e->list = list;
	for (uint32_t i = from; i < to; i++) {
		hd_emit(e, HD_INS_F, e->r, i);
		if (i - from >= w)
			hd_emit(e, HD_INS_B, e->r, i - w);
	}
}

static enum hd_err all(struct hd_emit *e)
{
	struct hd_schedule *s = e->schedule;
	uint32_t q = first_steps(e);
	enum hd_err err = HD_OK;

	s->prologue = hd_arena_take(e->arena, e->p, sizeof *s->prologue);
	s->epilogue = hd_arena_take(e->arena, e->p, sizeof *s->epilogue);
	if (!s->prologue || !s->epilogue)
		return hd_fail(e->diag, HD_E_NOMEM, "no memory for the lists of %u ranks", e->p);
	for (e->r = 0; e->r < e->p && !err; e->r++) {
		uint32_t w = e->p - 1 - e->r;
		err = take(e, &s->prologue[e->r], 2 * q * e->m - w);
		err = err ? err : take(e, &s->epilogue[e->r], w);
		if (err)
			break;
		run(e, &s->prologue[e->r], 0, q * e->m, w);
		e->list = &s->list[e->r];
		for (uint32_t i = 0; i < e->m; i++) {
			hd_emit(e, HD_INS_F, e->r, i);
			hd_emit(e, HD_INS_B, e->r, i - w);
		}
		e->list = &s->epilogue[e->r];
		for (uint32_t i = 0; i < w; i++)
			hd_emit(e, HD_INS_B, e->r, i - w);
	}
	return err;
}

/* With fewer virtual nodes than ranks a version would be read before its update is made. */
static enum hd_err two_limits(const struct hd_emit *e) { return e->m < e->p ? hd_limit(e, "m >= p", e->p) :
	HD_OK; }

const struct hd_schedule_maker
	hd_make_delayed = { HD_PLACE_MOD, false, hd_no_limits, NULL, all },
	hd_make_2bw     = { HD_PLACE_MOD, false, two_limits, NULL, all };
