#include "plan/passes.h"

#include <assert.h>

/* `out` with room for `more` instructions a rank beside twice its own. */
static enum hd_err begin(struct hd_schedule *out, const struct hd_schedule *s, uint32_t more, struct hd_arena *arena, struct hd_diag *diag)
{
	*out = *s;
	if (s->prologue)
		return hd_fail(diag, HD_E_INVAL, "this pass needs the end of a step; delayed updates (%s) have none", hd_update_names[s->update]);
	out->list = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *out->list);
	for (uint32_t r = 0; out->list && r < s->nranks; r++) {
		struct hd_ilist *l = &out->list[r];
		l->cap = 2 * s->list[r].len + more;
		if (!(l->at = hd_arena_take(arena, (size_t)l->cap + 1, sizeof *l->at)))
			return hd_fail(diag, HD_E_NOMEM, "no memory for a pass over a schedule");
	}
	return out->list ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a pass over a schedule");
}

static void put(struct hd_ilist *to, struct hd_ins ins)
{
	assert(to->len < to->cap);
	to->at[to->len++] = ins;
}

static bool has(const struct hd_schedule *s, uint8_t op)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++)
			if (s->list[r].at[i].op == op)
				return true;
	return false;
}

/* The R of a backward inside a pair stands before the pair. */
enum hd_err hd_schedule_recompute(struct hd_schedule *out, const struct hd_schedule *s, const bool *recompute, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_schedule o;
	enum hd_err err = begin(&o, s, 0, arena, diag);

	if (!err && has(s, HD_INS_R))
		o = *s;
	for (uint32_t r = 0; !err && o.list != s->list && r < s->nranks; r++) {
		const struct hd_ilist *from = &s->list[r];
		for (uint32_t i = 0, n; i < from->len; i += n) {
			n = from->at[i].flags & HD_INS_PAIR_BEGIN && i + 1 < from->len ? 2 : 1;
			for (uint32_t k = i; k < i + n; k++)
				if ((from->at[k].op == HD_INS_B || from->at[k].op == HD_INS_I) && recompute[from->at[k].stage])
					put(&o.list[r], (struct hd_ins){ .op = HD_INS_R, .stage = from->at[k].stage, .vn = from->at[k].vn });
			for (uint32_t k = i; k < i + n; k++) {
				struct hd_ins x = from->at[k];
				x.flags |= x.op == HD_INS_F && recompute[x.stage] ? HD_INS_CHECKPOINT : 0;
				put(&o.list[r], x);
			}
		}
	}
	if (!err)
		*out = o;
	return err;
}

/* ends[s]: one past the last gradient of stage s on rank r; 0: the rank does not hold it. */
static void find_ends(const struct hd_ilist *list, uint32_t *ends, uint32_t nstages)
{
	for (uint32_t s = 0; s < nstages; s++)
		ends[s] = 0;
	for (uint32_t i = 0; i < list->len; i++)
		if (list->at[i].op == HD_INS_B || list->at[i].op == HD_INS_W)
			ends[list->at[i].stage] = i + 1;
}

enum hd_err hd_schedule_updates(struct hd_schedule *out, const struct hd_schedule *s, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_schedule o;
	enum hd_err err = begin(&o, s, 2 * s->nstages, arena, diag);
	uint32_t *ends = hd_arena_take(arena, (size_t)s->nstages + 1, sizeof *ends), *holders = hd_arena_take(arena, (size_t)s->nstages + 1, sizeof *holders);

	if (!err && (!ends || !holders))
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a pass over a schedule");
	if (!err && has(s, HD_INS_STEP))
		o = *s;
	for (uint32_t r = 0; !err && r < s->nranks; r++) {
		find_ends(&s->list[r], ends, s->nstages);
		for (uint32_t k = 0; k < s->nstages; k++)
			holders[k] += ends[k] > 0;
	}
	for (uint32_t r = 0; !err && o.list != s->list && r < s->nranks; r++) {
		const struct hd_ilist *from = &s->list[r];
		find_ends(from, ends, s->nstages);
		for (uint32_t i = 0; i < from->len; i++) {
			uint32_t stage = from->at[i].stage;
			bool gradient = from->at[i].op == HD_INS_B || from->at[i].op == HD_INS_W;
			put(&o.list[r], from->at[i]);
			if (gradient && ends[stage] == i + 1 && holders[stage] > 1)
				put(&o.list[r], (struct hd_ins){ .op = HD_INS_RED, .stage = (uint16_t)stage });
		}
		for (uint32_t i = 0; i < from->len; i++)
			if ((from->at[i].op == HD_INS_B || from->at[i].op == HD_INS_W) && ends[from->at[i].stage] == i + 1)
				put(&o.list[r], (struct hd_ins){ .op = HD_INS_STEP, .stage = from->at[i].stage, .ver = HD_VER_RULE });
	}
	if (!err)
		*out = o;
	return err;
}
