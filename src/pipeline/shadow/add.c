/* The transform: for each rank, before which of its instructions the work of its shadow goes; then the list
 * is written once. */
#include <assert.h>
#include <string.h>

#include "pipeline/passes.h"
#include "pipeline/shadow/int.h"

struct shadow_adder {
	const struct hd_schedule *s;              /* complete */
	struct hd_shadow_ring ring;
	enum hd_redundancy mode;
	const struct hd_sim_plan *sim;            /* with spans; NULL: place by receives */
	const struct hd_sim_setting *set;
	struct hd_arena *arena;
};

/* Of one rank. Positions are before an instruction of its list, ascending in both arrays. */
struct shadow_work {
	uint32_t rank, stage, shadow, owner;      /* owner: the rank that runs stage `shadow` */
	uint32_t tail;                            /* behind the last that passes need */
	uint32_t nvns, *forward, *backward;       /* virtual nodes in the owner's order */
	uint32_t *before_f, *before_b;            /* [nvns] */
	uint32_t *own;                            /* [vns of the schedule] place of its own forward */
	uint32_t *nth;                            /* [vns of the schedule] place in `forward` */
	int64_t *arrives;                         /* [vns of the schedule] gradient of the shadow's output */
};

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory for the shadows of a schedule"); }

/* ---- what the lists say */

static bool take(struct shadow_adder *a, struct shadow_work *w)
{
	const size_t n = (size_t)a->s->nvns + 1;

	w->forward = hd_arena_take(a->arena, n, sizeof *w->forward);
	w->backward = hd_arena_take(a->arena, n, sizeof *w->backward);
	w->before_f = hd_arena_take(a->arena, n, sizeof *w->before_f);
	w->before_b = hd_arena_take(a->arena, n, sizeof *w->before_b);
	w->own = hd_arena_take(a->arena, n, sizeof *w->own);
	w->nth = hd_arena_take(a->arena, n, sizeof *w->nth);
	w->arrives = hd_arena_take(a->arena, n, sizeof *w->arrives);
	return w->forward && w->backward && w->before_f && w->before_b && w->own && w->nth && w->arrives;
}

static void look(const struct shadow_adder *a, struct shadow_work *w)
{
	const struct hd_ilist *mine = &a->s->list[w->rank], *its = &a->s->list[w->owner];
	uint32_t nback = 0;

	w->nvns = 0;
	for (uint32_t i = 0; i < its->len; i++) {
		const struct hd_ins *ins = &its->at[i];
		if (ins->op == HD_INS_F) {
			assert(ins->vn < a->s->nvns && w->nvns < a->s->nvns);
			w->nth[ins->vn] = w->nvns;
			w->forward[w->nvns++] = ins->vn;
		} else if (shadow_is_back(ins->op)) {
			assert(nback < a->s->nvns);
			w->backward[nback++] = ins->vn;
		} else if (ins->op == HD_INS_RG && a->sim) {
			w->arrives[ins->vn] = a->sim->span[w->owner][i].end;
		}
	}
	w->tail = 0;
	for (uint32_t i = 0; i < mine->len; i++) {
		if (shadow_is_pass(mine->at[i].op))
			w->tail = i + 1;
		if (mine->at[i].op == HD_INS_F)
			w->own[mine->at[i].vn] = i;
	}
}

/* The first place at which the input of Fx is there. */
static uint32_t ready_at(const struct shadow_work *w, uint32_t vn) { return w->shadow ? w->own[vn] + 1 : 0; }

/* ---- before receives */

static void place_by_receives(const struct shadow_adder *a, struct shadow_work *w)
{
	const struct hd_ilist *list = &a->s->list[w->rank];
	const uint8_t op = w->shadow ? HD_INS_RG : HD_INS_RA;
	uint32_t nf = 0, nb = 0, seen = 0;

	for (uint32_t i = 0; i < list->len; i++) {
		if (list->at[i].op != op || (op == HD_INS_RA && seen++ == 0))
			continue;
		if (nf < w->nvns && ready_at(w, w->forward[nf]) <= i)
			w->before_f[nf++] = i;
		if (op == HD_INS_RG && nb < w->nvns && w->backward[nb] == list->at[i].vn &&
			w->nth[w->backward[nb]] < nf)
			w->before_b[nb++] = i;
	}
	while (nf < w->nvns)
		w->before_f[nf++] = w->tail;
	while (nb < w->nvns)
		w->before_b[nb++] = w->tail;
}

/* ---- in gaps */

struct shadow_gap { int64_t start, left; uint32_t at; };

static uint32_t find_gap(struct shadow_gap *gap, uint32_t n, uint32_t from, int64_t after, int64_t cost)
{
	for (uint32_t k = 0; k < n; k++) {
		int64_t end = gap[k].start + gap[k].left, start = gap[k].start > after ? gap[k].start : after;
		if (gap[k].at >= from && 2 * (end - start) >= cost && end > start)
			return k;
	}
	return n;
}

static void fill(struct shadow_gap *g, int64_t after, int64_t cost)
{
	int64_t end = g->start + g->left;

	g->start = (g->start > after ? g->start : after) + cost;
	g->left = end > g->start ? end - g->start : 0;
}

static bool place_by_gaps(const struct shadow_adder *a, struct shadow_work *w)
{
	const struct hd_sim_waits *waits = &a->sim->wait[w->rank];
	const struct hd_stage_cost *c = &a->set->costs->stage[w->shadow];
	struct shadow_gap *gap = hd_arena_take(a->arena, (size_t)waits->n + 1, sizeof *gap);
	uint32_t n = 0, from = 0;

	if (!gap)
		return false;
	for (uint32_t k = 0; k < waits->n && waits->at[k].at < w->tail; k++) {
		const struct hd_sim_wait *x = &waits->at[k];
		if (n && gap[n - 1].at == x->at && gap[n - 1].start + gap[n - 1].left == x->start)
			gap[n - 1].left += x->end - x->start;
		else
			gap[n++] = (struct shadow_gap){ x->start, x->end - x->start, x->at };
	}
	for (uint32_t k = 0; k < w->nvns; k++) {
		uint32_t ready = ready_at(w, w->forward[k]);
		uint32_t g = find_gap(gap, n, from > ready ? from : ready, 0, c->f);
		if (g < n)
			fill(&gap[g], 0, c->f);
		w->before_f[k] = from = g < n ? gap[g].at : w->tail;
	}
	from = 0;
	for (uint32_t k = 0; k < w->nvns && a->mode == HD_REDUNDANCY_FULL; k++) {
		uint32_t vn = w->backward[k], ready = w->before_f[w->nth[vn]];
		int64_t after = w->shadow + 1 < a->s->nstages ? w->arrives[vn] : 0;
		uint32_t g = find_gap(gap, n, from > ready ? from : ready, after, c->i + c->w);
		if (g < n)
			fill(&gap[g], after, c->i + c->w);
		w->before_b[k] = from = g < n ? gap[g].at : w->tail;
	}
	return true;
}

/* ---- writing */

static void put(struct hd_ilist *to, uint8_t op, uint8_t flags, uint32_t stage, uint32_t vn, uint32_t peer)
{
	to->at[to->len++] = (struct hd_ins){ .op = op, .flags = flags, .stage = (uint16_t)stage, .vn = vn,
		.peer = (uint16_t)peer };
}

static void put_forward(const struct shadow_adder *a, const struct shadow_work *w, uint32_t vn,
	struct hd_ilist *to)
{
	if (w->shadow == 0 || w->shadow + 1 == a->s->nstages)
		put(to, HD_INS_LD, HD_INS_SHADOW, w->shadow, vn, 0);
	put(to, HD_INS_F, HD_INS_SHADOW, w->shadow, vn, 0);
	if (a->mode == HD_REDUNDANCY_EAGER)
		put(to, HD_INS_OFF, HD_INS_SHADOW, w->shadow, vn, 0);
}

static void put_backward(const struct shadow_adder *a, const struct shadow_work *w, uint32_t vn,
	struct hd_ilist *to)
{
	uint32_t from = w->shadow + 1 < a->s->nstages ? hd_shadow_ring_next(&a->ring, w->owner) : w->rank;

	if (from != w->rank)
		put(to, HD_INS_RG, HD_INS_SHADOW, w->shadow, vn, from);
	put(to, HD_INS_B, HD_INS_SHADOW, w->shadow, vn, 0);
}

/* The last instruction of each kind before the update. */
struct shadow_end { uint32_t red, tie, norm, step; };

static struct shadow_end end_of(const struct hd_ilist *list)
{
	struct shadow_end e = { SHADOW_NOWHERE, SHADOW_NOWHERE, SHADOW_NOWHERE, SHADOW_NOWHERE };

	for (uint32_t i = 0; i < list->len; i++)
		switch (list->at[i].op) {
		case HD_INS_RED: e.red = i; break;
		case HD_INS_TIE: e.tie = i; break;
		case HD_INS_NORM: e.norm = i; break;
		case HD_INS_STEP: e.step = i; break;
		default: break;
		}
	return e;
}

/* SHIP or TAKE of each bucket that the owner's list reduces; where it names none, of the whole stage. */
static void put_buckets(const struct hd_ilist *owner, struct hd_ins ins, struct hd_ilist *to)
{
	bool any = false;

	for (uint32_t i = 0; i < owner->len; i++)
		if (owner->at[i].op == HD_INS_RED) {
			ins.slot = owner->at[i].slot;
			to->at[to->len++] = ins;
			any = true;
		}
	if (!any)
		to->at[to->len++] = ins;
}

static void write(const struct shadow_adder *a, const struct shadow_work *w, struct hd_ilist *to)
{
	const struct hd_ilist *list = &a->s->list[w->rank];
	const struct shadow_end e = end_of(list);
	const bool alone = a->ring.npipelines == 1;
	/* after TIE the stage's own sum is whole; else each bucket leaves by itself */
	const uint32_t meets = e.norm < e.step ? e.norm : e.step;
	const bool by_bucket = e.tie == SHADOW_NOWHERE && e.red != SHADOW_NOWHERE;
	const uint32_t sums = e.tie != SHADOW_NOWHERE ? e.tie + 1 : w->tail;
	const bool computes = a->mode == HD_REDUNDANCY_EAGER || a->mode == HD_REDUNDANCY_FULL;
	const uint32_t holder = hd_shadow_ring_before(&a->ring, w->rank);
	const struct hd_ins takes = { .op = HD_INS_TAKE, .stage = (uint16_t)w->shadow,
		.peer = (uint16_t)w->owner };
	uint32_t nf = 0, nb = 0;

	for (uint32_t i = 0; i <= list->len; i++) {
		while (computes && nf < w->nvns && w->before_f[nf] == i)
			put_forward(a, w, w->forward[nf++], to);
		while (a->mode == HD_REDUNDANCY_FULL && nb < w->nvns && w->before_b[nb] == i)
			put_backward(a, w, w->backward[nb++], to);
		if (i == sums && !by_bucket)
			put_buckets(list, (struct hd_ins){ .op = HD_INS_SHIP, .stage = (uint16_t)w->stage,
				.peer = (uint16_t)holder }, to);
		if (i == meets && alone)
			put_buckets(&a->s->list[w->owner], takes, to);
		if (i == list->len)
			break;
		struct hd_ins ins = list->at[i];
		if (ins.op == HD_INS_SA || ins.op == HD_INS_SG)
			ins.flags |= HD_INS_KEEP;
		to->at[to->len++] = ins;
		if (ins.op == HD_INS_RED && by_bucket)
			to->at[to->len++] = (struct hd_ins){ .op = HD_INS_SHIP, .stage = (uint16_t)w->stage,
				.peer = (uint16_t)holder, .slot = ins.slot };
		/* the shadow of the stage that this gradient goes to has its gradient too */
		const uint32_t other = hd_shadow_ring_before(&a->ring, holder);
		if (ins.op == HD_INS_SG && a->mode == HD_REDUNDANCY_FULL && other != w->rank)
			put(to, HD_INS_SG, HD_INS_SHADOW, w->stage, ins.vn, other);
	}
	if (!alone)
		put_buckets(&a->s->list[w->owner], takes, to);
	to->at[to->len] = list->at[e.step];
	to->at[to->len].stage = (uint16_t)w->shadow;
	to->at[to->len++].flags |= HD_INS_SHADOW;
}

/* ---- all of it */

static enum hd_err check_updates(const struct hd_schedule *s, struct hd_diag *diag)
{
	for (uint32_t r = 0; r < s->nranks; r++) {
		uint32_t nsteps = 0;
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *ins = &s->list[r].at[i];
			nsteps += ins->op == HD_INS_STEP;
			if (ins->op == HD_INS_STEP && ins->flags & HD_INS_EAGER)
				return hd_fail(diag, HD_E_INVAL,
					"rank %u, #%u: STEP before the norm is known cannot be repeated by a "
					"shadow", r, i);
		}
		if (nsteps != 1)
			return hd_fail(diag, HD_E_INVAL, "rank %u has STEP %u times: with shadows once", r,
				nsteps);
	}
	return HD_OK;
}

static enum hd_err place_and_write(struct shadow_adder *a, struct hd_schedule *out, struct hd_diag *diag)
{
	struct shadow_work w = { 0 };
	struct hd_schedule o = *a->s;

	if (!take(a, &w) || !(o.list = hd_arena_take(a->arena, (size_t)o.nranks + 1, sizeof *o.list)))
		return no_memory(diag);
	for (w.rank = 0; w.rank < o.nranks; w.rank++) {
		struct hd_ilist *to = &o.list[w.rank];
		w.stage = a->ring.stage[w.rank];
		w.shadow = (w.stage + 1) % o.nstages;
		w.owner = hd_shadow_ring_next(&a->ring, w.rank);
		look(a, &w);
		if (!a->sim)
			place_by_receives(a, &w);
		else if (!place_by_gaps(a, &w))
			return no_memory(diag);
		/* LDx Fx OFFx RGx Bx SGx of each virtual node, SHIP and TAKE of each bucket, STEPx */
		uint64_t cap = (uint64_t)a->s->list[w.rank].len + 6 * (uint64_t)w.nvns +
			a->s->list[w.rank].len + a->s->list[w.owner].len + 4;
		if (cap > HD_MAX_INS || !(to->at = hd_arena_take(a->arena, (size_t)cap, sizeof *to->at)))
			return no_memory(diag);
		to->cap = (uint32_t)cap;
		to->len = 0;
		write(a, &w, to);
	}
	*out = o;
	return HD_OK;
}

static enum hd_err simulated(struct shadow_adder *a, const struct hd_schedule *s, struct hd_sim_plan *sim,
	struct hd_diag *diag)
{
	struct hd_sim_setting set = *a->set;

	set.spans = true;
	set.noise = false;
	set.steps = 1;
	return hd_sim_plan(sim, s, &set, a->arena, diag);
}

static enum hd_err by_gaps(struct shadow_adder *a, struct hd_schedule *out, struct hd_diag *diag)
{
	struct hd_sim_plan sim;
	enum hd_err err = simulated(a, a->s, &sim, diag);

	a->sim = &sim;
	err = err ? err : place_and_write(a, out, diag);
	a->sim = NULL;
	return err;
}

/* Rule 3: the faster one. */
static enum hd_err better(struct shadow_adder *a, struct hd_schedule *out, struct hd_diag *diag)
{
	struct hd_schedule receives, gaps;
	struct hd_sim_plan first, second;
	enum hd_err err = place_and_write(a, &receives, diag);

	err = err ? err : by_gaps(a, &gaps, diag);
	err = err ? err : simulated(a, &receives, &first, diag);
	err = err ? err : simulated(a, &gaps, &second, diag);
	if (!err)
		*out = second.makespan < first.makespan ? gaps : receives;
	return err;
}

enum hd_err hd_redundancy_add(struct hd_schedule *out, const struct hd_schedule *schedule,
	const struct hd_redundancy_ask *ask, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_schedule whole;
	struct shadow_adder a = { .s = &whole, .mode = ask->mode, .set = ask->setting, .arena = arena };
	const bool computes = ask->mode == HD_REDUNDANCY_EAGER || ask->mode == HD_REDUNDANCY_FULL;

	if (ask->mode == HD_REDUNDANCY_NONE) {
		*out = *schedule;
		return HD_OK;
	}
	if (hd_redundancy_in(schedule))
		return hd_fail(diag, HD_E_INVAL, "it has shadow stages already");
	enum hd_err err = hd_shadow_ring_of(&a.ring, schedule, arena, diag);
	err = err ? err : hd_schedule_complete(&whole, schedule, &(struct hd_pass_options){ 0 }, arena, diag);
	err = err ? err : check_updates(&whole, diag);
	if (err)
		return err;
	if (!a.set || !computes || ask->place == HD_SHADOW_PLACE_RECEIVES)
		return place_and_write(&a, out, diag);
	return ask->place == HD_SHADOW_PLACE_GAPS ? by_gaps(&a, out, diag) : better(&a, out, diag);
}

/* ---- and back */

bool hd_redundancy_in(const struct hd_schedule *s)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++)
			if (hd_ins_redundant(&s->list[r].at[i]))
				return true;
	return false;
}

enum hd_err hd_redundancy_erase(struct hd_schedule *out, const struct hd_schedule *s, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_schedule o = *s;

	if (!(o.list = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *o.list)))
		return no_memory(diag);
	for (uint32_t r = 0; r < s->nranks; r++) {
		struct hd_ilist *to = &o.list[r];
		to->cap = s->list[r].len;
		if (!(to->at = hd_arena_take(arena, (size_t)to->cap + 1, sizeof *to->at)))
			return no_memory(diag);
		to->len = 0;
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			struct hd_ins ins = s->list[r].at[i];
			ins.flags &= (uint8_t)~HD_INS_KEEP;
			if (!hd_ins_redundant(&ins))
				to->at[to->len++] = ins;
		}
	}
	*out = o;
	return HD_OK;
}
