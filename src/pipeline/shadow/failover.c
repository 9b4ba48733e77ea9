/* Lists of the rest: written for each survivor, of heirs two, which the execution of all of them merges. */
#include "pipeline/failover.h"

#include <string.h>

#include "pipeline/shadow/int.h"

/* What is known of a (stage, virtual node) while the rest is executed. */
enum rest_fact {
	REST_F = 1,                               /* forward done, or its activations are there */
	REST_B = 2,                               /* input gradient made */
	REST_SENT_ACT = 4, REST_SENT_GRAD = 8,    /* on the way to where it is used */
	REST_ACT = 16, REST_GRAD = 32,            /* where it is used */
	REST_SENT_COPY = 64, REST_COPY = 128,
	REST_SHADOW_F = 256,                      /* by the shadow of a living stage */
	/* of a lost one, by its shadow before the loss: forward, then its activations on the host; backward
	 * */
	REST_BY_SHADOW = 512, REST_OFFLOADED = 1024, REST_SUMMED = 2048,
};

/* One list that is walked: of an heir its own (0) and that of the stage it inherits (1). */
struct rest_list { struct hd_ilist passes, ends; uint32_t at; };

struct rest {
	const struct hd_schedule *s;
	const struct hd_step_progress *now;
	const bool *lost;
	struct hd_shadow_ring ring;
	uint32_t *place;                          /* [pipelines * stages] after the loss */
	uint32_t *heir_of;                        /* [ranks] the lost rank that it inherits, or NOWHERE */
	uint16_t *fact;                           /* [stages * vns] */
	struct rest_list *list;                   /* [2 * ranks] */
	struct hd_arena *arena;
};

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory for the rest of a step"); }

static size_t cell(const struct rest *x, uint32_t stage, uint32_t vn) { return (size_t)stage * x->s->nvns +
	vn; }
static uint16_t *fact(const struct rest *x, uint32_t stage, uint32_t vn) { return &x->fact[cell(x, stage,
	vn)]; }
static uint32_t rank_of(const struct rest *x, uint32_t stage, uint32_t vn)
{
	return hd_shadow_ring_at(&x->ring, x->ring.pipeline_of[vn], stage);
}
static uint32_t place_of(const struct rest *x, uint32_t stage, uint32_t vn)
{
	return x->place[x->ring.pipeline_of[vn] * x->ring.nstages + stage];
}
static bool is_lost(const struct rest *x, uint32_t stage, uint32_t vn) { return x->lost[rank_of(x, stage,
	vn)]; }
static bool has_arrived(const struct rest *x, uint32_t stage, uint32_t vn, uint8_t what)
{
	return x->now->arrived[cell(x, stage, vn)] & what;
}

/* ---- rule 1 */

static enum hd_err find_heirs(struct rest *x, struct hd_diag *diag)
{
	const struct hd_shadow_ring *g = &x->ring;

	for (uint32_t r = 0; r < g->nranks; r++)
		x->heir_of[r] = SHADOW_NOWHERE;
	for (uint32_t r = 0; r < g->nranks; r++) {
		const uint32_t heir = hd_shadow_ring_before(g, r);
		uint32_t *place = &x->place[g->pipeline[r] * g->nstages + g->stage[r]];
		*place = r;
		if (!x->lost[r])
			continue;
		if (x->lost[heir])
			return hd_fail(diag, HD_E_REFUSED,
				"ranks %u and %u are lost: the one held the shadow of the other's stage %u",
				heir,
				r, g->stage[r]);
		if (x->now->stale && x->now->stale[heir])
			return hd_fail(diag, HD_E_REFUSED,
				"rank %u is lost, and its shadow on rank %u is older than the last commit", r,
				heir);
		x->heir_of[heir] = r;
		*place = heir;
	}
	return HD_OK;
}

/* ---- what is known at the loss */

/* What a living rank has done, and what it has sent. */
static void note_done(struct rest *x, uint32_t r, const struct hd_ins *ins)
{
	const bool shadow = ins->flags & HD_INS_SHADOW, of_lost = shadow && x->heir_of[r] != SHADOW_NOWHERE;
	uint16_t *f = hd_ins_uses(ins->op, 'v') ? fact(x, ins->stage, ins->vn) : NULL;

	switch (ins->op) {
	case HD_INS_F:
		*f |= of_lost ? REST_BY_SHADOW : shadow ? REST_SHADOW_F : REST_F;
		break;
	case HD_INS_OFF:
		*f |= of_lost ? REST_OFFLOADED : 0;
		break;
	case HD_INS_ON:
		*f &= (uint16_t)~(of_lost ? REST_OFFLOADED : 0);
		break;
	case HD_INS_B: case HD_INS_I:
		*f |= of_lost ? REST_B | REST_SUMMED : shadow ? 0 : REST_B;
		break;
	case HD_INS_SA: *f |= REST_SENT_ACT; break;
	case HD_INS_SG: *f |= shadow ? REST_SENT_COPY : REST_SENT_GRAD; break;
	case HD_INS_RA: *fact(x, ins->stage - 1u, ins->vn) |= REST_ACT; break;
	case HD_INS_RG: *fact(x, ins->stage + 1u, ins->vn) |= shadow ? REST_COPY : REST_GRAD; break;
	default: break;
	}
}

static void look_back(struct rest *x)
{
	for (uint32_t r = 0; r < x->ring.nranks; r++)
		for (uint32_t i = 0; !x->lost[r] && i < x->s->list[r].len && i < x->now->at[r]; i++)
			note_done(x, r, &x->s->list[r].at[i]);
	for (uint32_t s = 0; s < x->ring.nstages; s++)
		for (uint32_t v = 0; v < x->s->nvns; v++) {
			uint16_t *f = fact(x, s, v);
			if (is_lost(x, s, v)) {           /* only what has arrived of it is worth something */
				*f |= has_arrived(x, s, v, HD_ARRIVED_ACT) ? REST_SENT_ACT : 0;
				*f |= has_arrived(x, s, v, HD_ARRIVED_GRAD) ? REST_SENT_GRAD : 0;
				*f |= has_arrived(x, s, v, HD_ARRIVED_COPY) ? REST_SENT_COPY : 0;
			} else {
				/* kept by the heir: what its own stage made for the lost one */
				*f |= s + 1 < x->ring.nstages && is_lost(x, s + 1, v) && *f & REST_SENT_ACT ?
					REST_ACT : 0;
				/* the gradient of the lost stage's output, where the heir made it itself */
				*f |= s && is_lost(x, s - 1, v) && *f & REST_SENT_GRAD &&
					place_of(x, s - 1, v) == rank_of(x, s, v) ? REST_GRAD : 0;
			}
		}
}

/* The heir of the stage before has it, or a copy that came for the shadow. */
static bool has_grad(const struct rest *x, uint32_t stage, uint32_t vn)
{
	return *fact(x, stage, vn) & (REST_GRAD | REST_COPY) || has_arrived(x, stage, vn, HD_ARRIVED_COPY);
}

/* ---- rule 2: what the heir does again */

static bool has_sums(const struct rest *x, uint32_t heir) { return x->now->shipped && x->now->shipped[heir]; }

/* Its gradient is in no sum that is left. */
static bool goes_back(const struct rest *x, uint32_t stage, uint32_t vn)
{
	return !(x->now->settled && x->now->settled[cell(x, stage, vn)]) &&
		!(*fact(x, stage, vn) & REST_SUMMED) && !has_sums(x, place_of(x, stage, vn));
}

/* The heir's own stage has not got its gradient. */
static bool owes_grad(const struct rest *x, uint32_t stage, uint32_t vn)
{
	return stage && !(*fact(x, stage, vn) & (REST_SENT_GRAD | REST_GRAD));
}

/* Backward is computed, if only for the input: it was summed, and then lost on its way. */
static bool works_back(const struct rest *x, uint32_t stage, uint32_t vn)
{
	return goes_back(x, stage, vn) || (owes_grad(x, stage, vn) && !(*fact(x, stage, vn) & REST_B));
}

static bool is_owed(const struct rest *x, uint32_t stage, uint32_t vn)
{
	return stage + 1 < x->ring.nstages && !(*fact(x, stage, vn) & (REST_SENT_ACT | REST_ACT)) &&
		!(*fact(x, stage + 1, vn) & REST_F);
}

static bool goes_forward(const struct rest *x, uint32_t stage, uint32_t vn)
{
	return works_back(x, stage, vn) || is_owed(x, stage, vn);
}

/* ---- writing lists */

static void put(struct rest_list *l, struct hd_ins ins)
{
	const bool pass = shadow_is_pass(ins.op) || ins.op == HD_INS_HA || ins.op == HD_INS_HG ||
		ins.op == HD_INS_RSG || ins.op == HD_INS_PIN;
	struct hd_ilist *to = pass ? &l->passes : &l->ends;

	to->at[to->len++] = ins;
}

static void put_to(struct rest_list *l, struct hd_ins ins, uint32_t peer)
{
	ins.peer = (uint16_t)peer;
	put(l, ins);
}

static void put_as(struct rest_list *l, struct hd_ins ins, uint8_t op)
{
	put(l, (struct hd_ins){ .op = op, .stage = ins.stage, .vn = ins.vn });
}

/* An instruction of the lost rank, for its heir. */
static void inherit(struct rest *x, uint32_t heir, struct hd_ins ins, struct rest_list *l)
{
	const bool moves = hd_ins_uses(ins.op, 'v');
	const uint16_t f = moves ? *fact(x, ins.stage, ins.vn) : 0;
	const bool back = moves && works_back(x, ins.stage, ins.vn),
		sums = moves && goes_back(x, ins.stage, ins.vn),
		forth = moves && goes_forward(x, ins.stage, ins.vn);

	if (hd_ins_redundant(&ins))
		return;
	switch (ins.op) {
	case HD_INS_LD:
		if (forth && !(f & REST_BY_SHADOW))
			put(l, ins);
		break;
	case HD_INS_F:
		if (forth && !(f & REST_BY_SHADOW)) {
			put(l, ins);
		} else if (forth && f & REST_OFFLOADED) {
			ins.op = HD_INS_ON;
			ins.flags = HD_INS_SHADOW;
			put(l, ins);
		}
		break;
	case HD_INS_R: case HD_INS_OFF: case HD_INS_ON:
		if (back && !(f & REST_BY_SHADOW))
			put(l, ins);
		break;
	case HD_INS_SA:
		if (is_owed(x, ins.stage, ins.vn) && place_of(x, ins.stage + 1u, ins.vn) == heir)
			put_as(l, ins, HD_INS_HA);
		else if (is_owed(x, ins.stage, ins.vn))
			put_to(l, ins, place_of(x, ins.stage + 1u, ins.vn));
		break;
	case HD_INS_RG:
		if (!back || place_of(x, ins.stage + 1u, ins.vn) == heir)
			break;
		if (has_grad(x, ins.stage + 1u,
			ins.vn))  /* what has arrived for the shadow is taken as it is */
			ins.flags |= HD_INS_SHADOW;
		if (!(*fact(x, ins.stage + 1u, ins.vn) & (REST_GRAD | REST_COPY)))
			put_to(l, ins, place_of(x, ins.stage + 1u, ins.vn));
		break;
	case HD_INS_B: case HD_INS_I:
		if (back && ins.op == HD_INS_B && !sums)
			ins.op = HD_INS_I;
		if (back)
			put(l, ins);
		break;
	case HD_INS_W:
		if (sums)
			put(l, ins);
		break;
	case HD_INS_SG:
		if (owes_grad(x, ins.stage, ins.vn))
			put_as(l, ins, HD_INS_HG);
		break;
	case HD_INS_RED: case HD_INS_STEP: case HD_INS_PIN: case HD_INS_REL: case HD_INS_TIE:
		put(l, ins);
		break;
	default: break;                           /* RA is kept or handed; NORM is the heir's own */
	}
}

/* Does it serve a shadow that goes on? */
static bool serves(const struct rest *x, uint32_t r, const struct hd_ins *ins)
{
	const uint32_t p = x->ring.nstages, next = hd_shadow_ring_next(&x->ring, r),
		before = hd_shadow_ring_before(&x->ring, r);

	if (ins->op == HD_INS_SHIP)
		return !x->lost[before];
	if (ins->op == HD_INS_SG)
		return !x->lost[before] && !x->lost[ins->peer];
	if (x->lost[next])                        /* of the stage that is inherited, or shipped for it */
		return ins->op == HD_INS_TAKE && has_sums(x, r);
	if (ins->op == HD_INS_RG || ins->op == HD_INS_B)
		return ins->stage + 1u == p || !is_lost(x, ins->stage + 1u, ins->vn) ||
			*fact(x, ins->stage + 1u, ins->vn) & (REST_COPY | REST_SENT_COPY);
	return true;
}

/* An instruction of a survivor's own. */
static void go_on(struct rest *x, uint32_t r, struct hd_ins ins, struct rest_list *l)
{
	const uint32_t s = ins.stage, v = ins.vn;

	if (hd_ins_redundant(&ins)) {
		if (serves(x, r, &ins))
			put(l, ins);
		return;
	}
	switch (ins.op) {
	case HD_INS_RA:
		if (!is_lost(x, s - 1, v) || *fact(x, s - 1, v) & REST_SENT_ACT)
			put(l, ins);
		else if (place_of(x, s - 1, v) != r)
			put_to(l, ins, place_of(x, s - 1, v));
		break;
	case HD_INS_RG:
		if (!is_lost(x, s + 1, v) || *fact(x, s + 1, v) & REST_SENT_GRAD)
			put(l, ins);
		break;
	case HD_INS_SA:
		if (is_lost(x, s + 1, v))
			put_as(l, ins, HD_INS_HA);
		else
			put(l, ins);
		break;
	case HD_INS_SG:
		if (!is_lost(x, s - 1, v))
			put(l, ins);
		else if (place_of(x, s - 1, v) == r)
			put_as(l, ins, HD_INS_HG);
		else if (works_back(x, s - 1, v) && !has_grad(x, s, v))
			put_to(l, ins, place_of(x, s - 1, v));
		break;
	default:
		put(l, ins);
	}
}

/* Kept gradients that the heir of the stage before lacks. */
static void send_again(struct rest *x, uint32_t r, struct rest_list *l)
{
	const uint32_t s = x->ring.stage[r];

	for (uint32_t v = 0; s && v < x->s->nvns; v++)
		if (rank_of(x, s, v) == r && is_lost(x, s - 1, v) && works_back(x, s - 1, v) &&
			*fact(x, s, v) & REST_SENT_GRAD && !has_grad(x, s, v))
			put(l, (struct hd_ins){ .op = HD_INS_RSG, .stage = (uint16_t)s, .vn = v,
				.peer = (uint16_t)place_of(x, s - 1, v) });
}

static bool take_list(struct rest *x, struct rest_list *l, uint32_t cap)
{
	l->passes.at = hd_arena_take(x->arena, (size_t)cap + 1, sizeof *l->passes.at);
	l->ends.at = hd_arena_take(x->arena, (size_t)cap + 1, sizeof *l->ends.at);
	return l->passes.at && l->ends.at;
}

static bool write_lists(struct rest *x)
{
	for (uint32_t r = 0; r < x->ring.nranks; r++) {
		struct rest_list *own = &x->list[2 * r], *more = own + 1;
		const struct hd_ilist *mine = &x->s->list[r];
		const uint32_t victim = x->heir_of[r];
		if (x->lost[r])
			continue;
		if (!take_list(x, own, mine->len + x->s->nvns))
			return false;
		send_again(x, r, own);
		for (uint32_t i = x->now->at[r]; i < mine->len; i++)
			go_on(x, r, mine->at[i], own);
		if (victim == SHADOW_NOWHERE)
			continue;
		if (!take_list(x, more, x->s->list[victim].len))
			return false;
		for (uint32_t i = 0; i < x->s->list[victim].len; i++)
			inherit(x, r, x->s->list[victim].at[i], more);
	}
	/* what was sent to a lost rank has not gone anywhere: from here on facts are of the new places */
	for (uint32_t s = 1; s < x->ring.nstages; s++)
		for (uint32_t v = 0; v < x->s->nvns; v++)
			if (is_lost(x, s - 1, v) && place_of(x, s - 1, v) != place_of(x, s, v))
				*fact(x, s, v) &= (uint16_t)~REST_SENT_GRAD;
	return true;
}

/* ---- rule 6: the execution */

static bool can_run(const struct rest *x, const struct hd_ins *ins)
{
	const uint32_t s = ins->stage, v = ins->vn, last = x->ring.nstages - 1;
	const bool shadow = ins->flags & HD_INS_SHADOW;
	const uint16_t f = hd_ins_uses(ins->op, 'v') ? *fact(x, s, v) : 0;

	switch (ins->op) {
	case HD_INS_F:
		if (shadow)
			return s == 0 || *fact(x, s - 1, v) & REST_F;
		return s == 0 || *fact(x, s - 1, v) & REST_ACT;
	case HD_INS_B: case HD_INS_I:
		if (shadow)
			return f & REST_SHADOW_F && (s == last || (*fact(x, s + 1, v) & REST_COPY) ||
				(last == 1 && *fact(x, s + 1, v) & REST_B));
		return f & (REST_F | REST_BY_SHADOW) && (s == last ||
			*fact(x, s + 1, v) & (is_lost(x, s, v) ? REST_GRAD | REST_COPY : REST_GRAD));
	case HD_INS_SA: case HD_INS_HA: return f & (REST_F | REST_BY_SHADOW);
	case HD_INS_SG: case HD_INS_HG: return f & REST_B;
	case HD_INS_RA: return *fact(x, s - 1, v) & REST_SENT_ACT;
	case HD_INS_RG: return *fact(x, s + 1, v) & (shadow ? REST_SENT_COPY : REST_SENT_GRAD);
	default: return true;
	}
}

static void ran(struct rest *x, const struct hd_ins *ins)
{
	const bool shadow = ins->flags & HD_INS_SHADOW;

	switch (ins->op) {
	case HD_INS_F:   *fact(x, ins->stage, ins->vn) |= shadow ? REST_SHADOW_F : REST_F; break;
	case HD_INS_B: case HD_INS_I: *fact(x, ins->stage, ins->vn) |= shadow ? 0 : REST_B; break;
	case HD_INS_SA:  *fact(x, ins->stage, ins->vn) |= REST_SENT_ACT; break;
	case HD_INS_HA:  *fact(x, ins->stage, ins->vn) |= REST_ACT; break;
	case HD_INS_SG:  *fact(x, ins->stage, ins->vn) |= shadow ? REST_SENT_COPY : REST_SENT_GRAD; break;
	case HD_INS_RSG: *fact(x, ins->stage, ins->vn) |= REST_SENT_GRAD; break;
	case HD_INS_HG:  *fact(x, ins->stage, ins->vn) |= REST_GRAD; break;
	case HD_INS_RA:  *fact(x, ins->stage - 1u, ins->vn) |= REST_ACT; break;
	case HD_INS_RG:  *fact(x, ins->stage + 1u, ins->vn) |= shadow ? REST_COPY : REST_GRAD; break;
	default: break;
	}
}

/* Lower goes first. */
static int urgency(uint8_t op)
{
	static const uint8_t order[HD_INS_END] = { [HD_INS_LD] = 1, [HD_INS_SA] = 2, [HD_INS_SG] = 2,
		[HD_INS_RSG] = 2, [HD_INS_HA] = 2, [HD_INS_HG] = 2, [HD_INS_RA] = 3, [HD_INS_RG] = 3,
		[HD_INS_ON] = 3, [HD_INS_B] = 4, [HD_INS_I] = 4, [HD_INS_W] = 5, [HD_INS_R] = 4,
		[HD_INS_F] = 6 };

	return order[op];
}

static const struct hd_ins *head(const struct rest_list *l)
{
	return l->at < l->passes.len ? &l->passes.at[l->at] : NULL;
}

/* The list of the rank that goes on, or NULL. */
static struct rest_list *choose(struct rest *x, uint32_t r)
{
	struct rest_list *best = NULL;

	for (int k = 0; k < 2; k++) {
		struct rest_list *l = &x->list[2 * r + (uint32_t)k];
		if (head(l) && can_run(x, head(l)) && (!best ||
			urgency(head(l)->op) < urgency(head(best)->op)))
			best = l;
	}
	return best;
}

static bool takes_time(uint8_t op)
{
	return op == HD_INS_F || op == HD_INS_B || op == HD_INS_I || op == HD_INS_W || op == HD_INS_R;
}

/* In turns: each rank does what takes no time, and one instruction that does. */
static bool turn(struct rest *x, struct hd_ilist *to)
{
	bool moved = false;

	for (uint32_t r = 0; r < x->ring.nranks; r++)
		for (struct rest_list *l; (l = choose(x, r));) {
			const struct hd_ins ins = *head(l);
			l->at++;
			ran(x, &ins);
			to[r].at[to[r].len++] = ins;
			moved = true;
			if (takes_time(ins.op))
				break;
		}
	return moved;
}

/* ---- ends: sums in the order of stages, then the norm, then updates */

/* SHIP stands behind TIE where there is one. */
static bool is_sum(uint8_t op, bool tied) { return op == HD_INS_RED || (op == HD_INS_SHIP && !tied); }

static void put_sums(struct hd_ilist *to, const struct hd_ilist *from, bool tied)
{
	for (uint32_t i = 0; i < from->len; i++)
		if (is_sum(from->at[i].op, tied))
			to->at[to->len++] = from->at[i];
}

static bool has(const struct hd_ilist *list, uint8_t op)
{
	for (uint32_t i = 0; i < list->len; i++)
		if (list->at[i].op == op)
			return true;
	return false;
}

static bool has_tie(const struct hd_ilist *list, const struct hd_ins *tie)
{
	for (uint32_t i = 0; i < list->len; i++)
		if (list->at[i].op == HD_INS_TIE && list->at[i].stage == tie->stage)
			return true;
	return false;
}

static void end_heir(const struct rest *x, uint32_t r, struct hd_ilist *to)
{
	const struct hd_ilist *own = &x->list[2 * r].ends, *more = &x->list[2 * r + 1].ends;
	const bool first = x->ring.stage[x->heir_of[r]] < x->ring.stage[r],
		tied = has(own, HD_INS_TIE) || has(more, HD_INS_TIE);
	uint32_t i = 0;

	put_sums(to, first ? more : own, tied);
	put_sums(to, first ? own : more, tied);
	for (uint32_t k = 0; k < more->len; k++)
		if (more->at[k].op == HD_INS_TIE && !has_tie(own, &more->at[k]))
			to->at[to->len++] = more->at[k];
	for (; i < own->len && own->at[i].op != HD_INS_STEP; i++)
		if (!is_sum(own->at[i].op, tied))
			to->at[to->len++] = own->at[i];
	for (uint32_t k = 0; k < more->len; k++)
		if (more->at[k].op == HD_INS_REL)
			to->at[to->len++] = more->at[k];
	for (; i < own->len; i++)
		if (!is_sum(own->at[i].op, tied))
			to->at[to->len++] = own->at[i];
	for (uint32_t k = 0; k < more->len; k++)
		if (more->at[k].op == HD_INS_STEP)
			to->at[to->len++] = more->at[k];
}

static void end(const struct rest *x, uint32_t r, struct hd_ilist *to)
{
	const struct hd_ilist *own = &x->list[2 * r].ends;

	if (x->heir_of[r] != SHADOW_NOWHERE) {
		end_heir(x, r, to);
		return;
	}
	for (uint32_t i = 0; i < own->len; i++)
		to->at[to->len++] = own->at[i];
}

/* ---- all of it */

static enum hd_err run(struct rest *x, struct hd_ilist *to, struct hd_diag *diag)
{
	for (uint32_t r = 0; r < x->ring.nranks; r++) {
		size_t cap = 1;
		for (int k = 0; k < 2; k++)
			cap += x->list[2 * r + (uint32_t)k].passes.len + x->list[2 * r +
				(uint32_t)k].ends.len;
		if (!(to[r].at = hd_arena_take(x->arena, cap, sizeof *to[r].at)))
			return no_memory(diag);
		to[r].cap = (uint32_t)cap;
		to[r].len = 0;
	}
	while (turn(x, to))
		;
	for (uint32_t r = 0; r < x->ring.nranks; r++) {
		for (int k = 0; k < 2; k++) {
			const struct hd_ins *stuck = head(&x->list[2 * r + (uint32_t)k]);
			if (stuck)
				return hd_fail(diag, HD_E_BADPLAN,
					"the rest of the step never ends: rank %u waits at %s%u.%u", r,
					hd_ins_row(stuck->op)->text, stuck->stage, stuck->vn);
		}
		end(x, r, &to[r]);
	}
	return HD_OK;
}

enum hd_err hd_failover(struct hd_schedule *out, const struct hd_schedule *schedule,
	const struct hd_step_progress *progress, const bool *lost, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct rest x = { .s = schedule, .now = progress, .lost = lost, .arena = arena };
	struct hd_schedule o = *schedule;
	enum hd_err err = hd_shadow_ring_of(&x.ring, schedule, arena, diag);

	if (err)
		return err;
	if (!hd_redundancy_in(schedule))
		return hd_fail(diag, HD_E_REFUSED, "there are no shadow stages");
	x.place = hd_arena_take(arena, (size_t)x.ring.nranks + 1, sizeof *x.place);
	x.heir_of = hd_arena_take(arena, (size_t)x.ring.nranks + 1, sizeof *x.heir_of);
	x.fact = hd_arena_take(arena, (size_t)x.ring.nstages * schedule->nvns + 1, sizeof *x.fact);
	x.list = hd_arena_take(arena, 2 * (size_t)x.ring.nranks + 1, sizeof *x.list);
	o.list = hd_arena_take(arena, (size_t)x.ring.nranks + 1, sizeof *o.list);
	if (!x.place || !x.heir_of || !x.fact || !x.list || !o.list)
		return no_memory(diag);
	err = find_heirs(&x, diag);
	if (err)
		return err;
	look_back(&x);
	if (!write_lists(&x))
		return no_memory(diag);
	err = run(&x, o.list, diag);
	if (!err)
		*out = o;
	return err;
}
