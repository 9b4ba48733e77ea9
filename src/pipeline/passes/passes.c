#include "pipeline/schedule_check.h"

#include "pipeline/passes/int.h"

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory for a pass over a schedule"); }

enum hd_err hd_pass_begin(struct hd_schedule *out, const struct hd_schedule *s, uint32_t times, uint32_t more,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_ilist *lists[HD_SECTIONS] = { NULL };

	for (int i = 0; i < HD_SECTIONS; i++) {
		const struct hd_ilist *from = hd_section(s, i);
		if (!from)
			continue;
		if (!(lists[i] = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *lists[i])))
			return no_memory(diag);
		for (uint32_t r = 0; r < s->nranks; r++) {
			struct hd_ilist *l = &lists[i][r];
			uint64_t cap = (uint64_t)times * from[r].len + more;
			if (cap > UINT32_MAX || !(l->at = hd_arena_take(arena, (size_t)cap + 1,
				sizeof *l->at)))
				return no_memory(diag);
			l->cap = (uint32_t)cap;
		}
	}
	*out = *s;
	out->prologue = lists[0];
	out->list = lists[1];
	out->epilogue = lists[2];
	return HD_OK;
}

bool hd_schedule_has(const struct hd_schedule *s, const uint8_t *ops)
{
	bool asked[HD_INS_END] = { false };

	for (; *ops; ops++)
		asked[*ops] = true;
	for (int i = 0; i < HD_SECTIONS; i++)
		for (uint32_t r = 0; hd_section(s, i) && r < s->nranks; r++)
			for (uint32_t k = 0; k < hd_section(s, i)[r].len; k++)
				if (asked[hd_section(s, i)[r].at[k].op])
					return true;
	return false;
}

enum hd_err hd_pass_numbers(const struct hd_schedule *s, struct hd_diag *diag)
{
	for (int i = 0; i < HD_SECTIONS; i++)
		for (uint32_t r = 0; hd_section(s, i) && r < s->nranks; r++)
			for (uint32_t k = 0; k < hd_section(s, i)[r].len; k++) {
				const struct hd_ins *x = &hd_section(s, i)[r].at[k];
				bool label = x->op == HD_INS_BAR || x->op == HD_INS_TIE;
				if (hd_ins_uses(x->op, 's') && !label && x->stage >= s->nstages)
					return hd_fail(diag, HD_E_BADPLAN,
						"rank %u, #%u: stage %u does not exist (there are %u)", r, k,
						x->stage, s->nstages);
				if (hd_ins_uses(x->op, 'v') && !s->prologue && x->vn >= s->nvns)
					return hd_fail(diag, HD_E_BADPLAN,
						"rank %u, #%u: virtual node %d does not exist in this step "
						"(m = %u)", r, k,
						(int32_t)x->vn, s->nvns);
			}
	return s->nvns ? HD_OK : hd_fail(diag, HD_E_BADPLAN, "it has no instruction");
}

static bool is_back(uint8_t op) { return op == HD_INS_B || op == HD_INS_I; }

/* How many records stand for one place: 2 of a pair. */
static uint32_t width(const struct hd_ilist *l, uint32_t i) { return l->at[i].flags & HD_INS_PAIR_BEGIN &&
	i + 1 < l->len ? 2 : 1; }

static bool splits(const struct hd_ilist *l, uint32_t i)
{
	const struct hd_ins *x = &l->at[i];

	return i + 1 < l->len && x[0].op == HD_INS_I && x[1].op == HD_INS_W && x[0].stage == x[1].stage &&
		x[0].vn == x[1].vn &&
	       !((x[0].flags | x[1].flags) & HD_INS_PAIR);
}

static void merge(struct hd_ilist *to, const struct hd_ilist *from, const bool *stages)
{
	(void)stages;
	for (uint32_t i = 0; i < from->len; i++) {
		struct hd_ins x = from->at[i];
		if (splits(from, i)) {
			x.op = HD_INS_B;
			i++;
		}
		hd_pass_put(to, x);
	}
}

/* The R of a backward inside a pair stands before the pair. */
static void recompute(struct hd_ilist *to, const struct hd_ilist *from, const bool *stages)
{
	for (uint32_t i = 0, n; i < from->len; i += n) {
		n = width(from, i);
		for (uint32_t k = i; k < i + n; k++)
			if (is_back(from->at[k].op) && stages[from->at[k].stage])
				hd_pass_put(to, (struct hd_ins){ .op = HD_INS_R, .stage = from->at[k].stage,
					.vn = from->at[k].vn });
		for (uint32_t k = i; k < i + n; k++) {
			struct hd_ins x = from->at[k];
			x.flags |= x.op == HD_INS_F && stages[x.stage] ? HD_INS_CHECKPOINT : 0;
			hd_pass_put(to, x);
		}
	}
}

/* Directly before place i there is an R for x. */
static bool is_recomputed(const struct hd_ilist *l, uint32_t i, const struct hd_ins *x)
{
	while (i-- > 0 && l->at[i].op == HD_INS_R)
		if (l->at[i].stage == x->stage && l->at[i].vn == x->vn)
			return true;
	return false;
}

/* What comes back from the host does so before R where there is one, else before the backward. */
static void offload(struct hd_ilist *to, const struct hd_ilist *from, const bool *stages)
{
	for (uint32_t i = 0, n; i < from->len; i += n) {
		n = width(from, i);
		for (uint32_t k = i; k < i + n; k++) {
			const struct hd_ins *x = &from->at[k];
			if (stages[x->stage] && (x->op == HD_INS_R ||
				(is_back(x->op) && !is_recomputed(from, i, x))))
				hd_pass_put(to, (struct hd_ins){ .op = HD_INS_ON, .stage = x->stage,
					.vn = x->vn });
		}
		for (uint32_t k = i; k < i + n; k++)
			hd_pass_put(to, from->at[k]);
		for (uint32_t k = i; k < i + n; k++)
			if (from->at[k].op == HD_INS_F && stages[from->at[k].stage])
				hd_pass_put(to, (struct hd_ins){ .op = HD_INS_OFF, .stage = from->at[k].stage,
					.vn = from->at[k].vn });
	}
}

/* Passes that look at one list at a time. `done`: what shows that it has been. */
static enum hd_err each_list(struct hd_schedule *out, const struct hd_schedule *s, const uint8_t *done,
	const bool *stages,
	void (*pass)(struct hd_ilist *to, const struct hd_ilist *from, const bool *stages),
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_schedule o;

	if (hd_schedule_has(s, done)) {
		*out = *s;
		return HD_OK;
	}
	enum hd_err err = hd_pass_numbers(s, diag);
	err = err ? err : hd_pass_begin(&o, s, 2, 0, arena, diag);
	for (int i = 0; !err && i < HD_SECTIONS; i++)
		for (uint32_t r = 0; hd_section(s, i) && r < s->nranks; r++)
			pass(&hd_section(&o, i)[r], &hd_section(s, i)[r], stages);
	if (!err)
		*out = o;
	return err;
}

enum hd_err hd_schedule_merge(struct hd_schedule *out, const struct hd_schedule *s, struct hd_arena *arena,
	struct hd_diag *diag)
{
	return each_list(out, s, (const uint8_t[]){ 0 }, NULL, merge, arena, diag);
}

enum hd_err hd_schedule_recompute(struct hd_schedule *out, const struct hd_schedule *s, const bool *stages,
	struct hd_arena *arena, struct hd_diag *diag)
{
	return each_list(out, s, (const uint8_t[]){ HD_INS_R, 0 }, stages, recompute, arena, diag);
}

enum hd_err hd_schedule_offload(struct hd_schedule *out, const struct hd_schedule *s, const bool *stages,
	struct hd_arena *arena, struct hd_diag *diag)
{
	return each_list(out, s, (const uint8_t[]){ HD_INS_OFF, HD_INS_ON, 0 }, stages, offload, arena, diag);
}

enum hd_err hd_schedule_complete(struct hd_schedule *out, const struct hd_schedule *s,
	const struct hd_pass_options *p, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_schedule o = *s;
	enum hd_err err = p->merge ? hd_schedule_merge(&o, &o, arena, diag) : HD_OK;

	if (!err && p->recompute)
		err = hd_schedule_recompute(&o, &o, p->recompute, arena, diag);
	if (!err && p->offload)
		err = hd_schedule_offload(&o, &o, p->offload, arena, diag);
	err = err ? err : hd_schedule_comms(&o, &o, arena, diag);
	err = err ? err : hd_schedule_slots(&o, &o, p->job ? p->job->slots : 0, arena, diag);
	err = err ? err : hd_schedule_versions(&o, &o, p->job, arena, diag);
	err = err ? err : hd_schedule_updates(&o, &o, p->job, arena, diag);
	if (!err)
		*out = o;
	return err;
}
