/* Transfers around what a skeleton computes, and the buffers they arrive in. */
#include "pipeline/schedule_check.h"

#include "pipeline/passes/int.h"

struct adder {
	const struct hd_schedule *s;
	/* [stages * vns] rank that runs F, by the number inside a step; + 1 */
	uint32_t *holder;
	bool loads;                               /* LD is added too */
	struct hd_ilist *to;
	uint32_t rank;
};

/* Where stage `stage` of the virtual node runs, if that is another rank; else HD_NO_RANK. */
static uint32_t elsewhere(const struct adder *a, int64_t stage, uint32_t vn)
{
	if (stage < 0 || stage >= a->s->nstages)
		return HD_NO_RANK;
	uint32_t r = a->holder[(size_t)stage * a->s->nvns + hd_inside(a->s, vn)] - 1;
	return r == a->rank ? HD_NO_RANK : r;
}

static void add(struct adder *a, uint8_t op, const struct hd_ins *x, uint32_t peer)
{
	if (peer != HD_NO_RANK)
		hd_pass_put(a->to, (struct hd_ins){ .op = op, .stage = x->stage, .vn = x->vn,
			.peer = (uint16_t)peer });
}

static void add_before(struct adder *a, const struct hd_ins *x)
{
	if (x->op == HD_INS_F && a->loads && (x->stage == 0 || x->stage + 1u == a->s->nstages))
		add(a, HD_INS_LD, x, 0);
	if (x->op == HD_INS_F)
		add(a, HD_INS_RA, x, elsewhere(a, (int64_t)x->stage - 1, x->vn));
	if (x->op == HD_INS_B || x->op == HD_INS_I)
		add(a, HD_INS_RG, x, elsewhere(a, (int64_t)x->stage + 1, x->vn));
}

static void add_after(struct adder *a, const struct hd_ins *x)
{
	if (x->op == HD_INS_F)
		add(a, HD_INS_SA, x, elsewhere(a, (int64_t)x->stage + 1, x->vn));
	if (x->op == HD_INS_B || x->op == HD_INS_I)
		add(a, HD_INS_SG, x, elsewhere(a, (int64_t)x->stage - 1, x->vn));
}

enum { ADDED_MOST = 3 };          /* around one instruction: LD, a receive, a send */

/* At a pair both receives before it, both sends after it. */
static void add_list(struct adder *a, const struct hd_ilist *from)
{
	for (uint32_t i = 0, n; i < from->len; i += n) {
		n = from->at[i].flags & HD_INS_PAIR_BEGIN && i + 1 < from->len ? 2 : 1;
		for (uint32_t k = i; k < i + n; k++)
			add_before(a, &from->at[k]);
		for (uint32_t k = i; k < i + n; k++)
			hd_pass_put(a->to, from->at[k]);
		for (uint32_t k = i; k < i + n; k++)
			add_after(a, &from->at[k]);
	}
}

static enum hd_err find_holders(struct adder *a, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_schedule *s = a->s;
	uint64_t n = (uint64_t)s->nstages * s->nvns, nins = 0;

	for (uint32_t r = 0; r < s->nranks; r++)
		nins += s->list[r].len;
	if (n > nins)
		return hd_fail(diag, HD_E_BADPLAN,
			"%u stages of %u virtual nodes need more than its %llu instructions", s->nstages,
			s->nvns,
			(unsigned long long)nins);
	if (!(a->holder = hd_arena_take(arena, (size_t)n + 1, sizeof *a->holder)))
		return hd_fail(diag, HD_E_NOMEM, "no memory for a pass over a schedule");
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++)
			if (s->list[r].at[i].op == HD_INS_F)
				a->holder[(size_t)s->list[r].at[i].stage * s->nvns + hd_inside(s,
					s->list[r].at[i].vn)] = r + 1;
	for (uint64_t k = 0; k < n; k++)
		if (!a->holder[k])
			return hd_fail(diag, HD_E_BADPLAN, "stage %u never runs forward for virtual node %u",
				(uint32_t)(k / s->nvns), (uint32_t)(k % s->nvns));
	return HD_OK;
}

enum hd_err hd_schedule_comms(struct hd_schedule *out, const struct hd_schedule *s, struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const uint8_t transfers[] = { HD_INS_SA, HD_INS_SG, HD_INS_RA, HD_INS_RG, 0 },
		loads[] = { HD_INS_LD, 0 };
	struct adder a = { .s = s, .loads = !hd_schedule_has(s, loads) };
	struct hd_schedule o;

	if (hd_schedule_has(s, transfers)) {
		*out = *s;
		return HD_OK;
	}
	enum hd_err err = hd_pass_numbers(s, diag);
	err = err ? err : find_holders(&a, arena, diag);
	err = err ? err : hd_pass_begin(&o, s, ADDED_MOST + 1, 0, arena, diag);
	for (int i = 0; !err && i < HD_SECTIONS; i++)
		for (a.rank = 0; hd_section(s, i) && a.rank < s->nranks; a.rank++) {
			a.to = &hd_section(&o, i)[a.rank];
			add_list(&a, &hd_section(s, i)[a.rank]);
		}
	if (!err)
		*out = o;
	return err;
}

/* The n-th receive of a channel in a section takes buffer 1 + n mod slots. Both kinds have their own. */
static void number_list(struct hd_ilist *to, const struct hd_ilist *from, uint32_t slots, uint32_t *next[2])
{
	for (uint32_t i = 0; i < from->len; i++)
		next[0][from->at[i].peer] = next[1][from->at[i].peer] = 0;
	for (uint32_t i = 0; i < from->len; i++) {
		struct hd_ins x = from->at[i];
		if (x.op == HD_INS_RA || x.op == HD_INS_RG)
			x.slot = (uint16_t)(1 + next[x.op == HD_INS_RG][x.peer]++ % slots);
		hd_pass_put(to, x);
	}
}

static bool has_slots(const struct hd_schedule *s)
{
	for (int i = 0; i < HD_SECTIONS; i++)
		for (uint32_t r = 0; hd_section(s, i) && r < s->nranks; r++)
			for (uint32_t k = 0; k < hd_section(s, i)[r].len; k++) {
				const struct hd_ins *x = &hd_section(s, i)[r].at[k];
				if (x->slot && (x->op == HD_INS_RA || x->op == HD_INS_RG))
					return true;
			}
	return false;
}

enum hd_err hd_schedule_slots(struct hd_schedule *out, const struct hd_schedule *s, uint32_t slots,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t *next[2];
	struct hd_schedule o;

	if (slots == 0 || has_slots(s)) {
		*out = *s;
		return HD_OK;
	}
	if (slots > UINT16_MAX)
		return hd_fail(diag, HD_E_INVAL, "%u buffers of a channel; %u are the most", slots,
			UINT16_MAX);
	enum hd_err err = hd_pass_begin(&o, s, 1, 0, arena, diag);
	for (int g = 0; g < 2; g++)
		if (!(next[g] = hd_arena_take(arena, UINT16_MAX + 1u, sizeof *next[g])) && !err)
			err = hd_fail(diag, HD_E_NOMEM, "no memory for a pass over a schedule");
	for (int i = 0; !err && i < HD_SECTIONS; i++)
		for (uint32_t r = 0; hd_section(s, i) && r < s->nranks; r++)
			number_list(&hd_section(&o, i)[r], &hd_section(s, i)[r], slots, next);
	if (!err)
		*out = o;
	return err;
}
