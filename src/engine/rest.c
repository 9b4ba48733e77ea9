#include "engine/rest.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/bits.h"
#include "pipeline/plan_schedule.h"
#include "engine/pipe_int.h"
#include "engine/post.h"
#include "engine/shadow.h"
#include "engine/worker_int.h"

struct rest_making {
	struct hd_worker *of;
	struct hd_pipe *old, *rest;
	const uint32_t *at; const bool *lost;
	const uint8_t *arrived;                   /* [nstages * nvns] bits of hd_arrived, of all ranks */
	const uint16_t *worker;                   /* as in hd_dist_loss */
	struct hd_schedule s, left;               /* of the step; what is left of it */
	struct hd_shadow_ring ring;
	uint32_t *nsummed;                        /* [seats] virtual nodes whose gradients are in its sums */
	struct rest_need *need;                   /* [seats] */
	struct hd_arena *arena;
};

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for the rest of a step");
}

static struct hd_cell *shadow_cell(const struct hd_pipe *pipe, uint32_t stage, uint32_t vn)
{
	return hd_cell_of(pipe, pipe->nstages + stage, vn);
}

/* ---- what has arrived */

static bool has(const struct hd_cell *cell, enum hd_mail kind, const bool *lost)
{
	return cell->seat && !(lost && lost[cell->seat->rank]) && cell->here[kind];
}

void hd_rest_arrived(const struct hd_pipe *pipe, const bool *lost, uint8_t *arrived)
{
	for (uint32_t s = 0; s < pipe->nstages; s++)
		for (uint32_t v = 0; v < pipe->nvns; v++) {
			uint8_t *to = &arrived[(size_t)s * pipe->nvns + v];
			*to = 0;
			if (s + 1 < pipe->nstages && has(hd_cell_of(pipe, s + 1, v), HD_MAIL_ACT, lost))
				*to |= HD_ARRIVED_ACT;
			if (s && has(hd_cell_of(pipe, s - 1, v), HD_MAIL_GRAD, lost))
				*to |= HD_ARRIVED_GRAD;
			if (s && has(shadow_cell(pipe, s - 1, v), HD_MAIL_GRAD, lost))
				*to |= HD_ARRIVED_COPY;
		}
}

/* ---- cells and seats */

/* What it holds. Lines are between workers. */
static void take_over(struct hd_cell *to, const struct hd_cell *from)
{
	*to = *from;
	to->seat = NULL;
	to->ends = to->left = 0;
	to->line[HD_MAIL_ACT] = to->line[HD_MAIL_GRAD] = HD_NONE;
	to->before = from->away ? from->before ? from->before : from->seat : NULL;
}

static void make_cell(struct rest_making *x, uint32_t stage, uint32_t vn)
{
	const struct hd_cell *own = hd_cell_of(x->old, stage, vn), *shadow = shadow_cell(x->old, stage, vn);
	struct hd_cell *to = hd_cell_of(x->rest, stage, vn), *to_shadow = shadow_cell(x->rest, stage, vn);
	const bool goes_over = x->lost[own->rank];
	const uint32_t before = hd_shadow_ring_before(&x->ring, own->rank),
		rank = goes_over ? before : own->rank;

	*to = *to_shadow = (struct hd_cell){ .line = { HD_NONE, HD_NONE } };
	to_shadow->rank = goes_over || x->lost[before] ? HD_CELL_ENDED : (uint16_t)before;
	if (!goes_over)
		take_over(to, own);
	else if (shadow->seat)
		take_over(to, shadow);
	to->rank = (uint16_t)rank;
	to->seat = hd_pipe_seat_at(x->rest, rank, stage, false);
	to->keeps = (uint8_t)((stage + 1 < x->rest->nstages) << HD_MAIL_ACT | (stage > 0) << HD_MAIL_GRAD);
	if (goes_over || !shadow->seat || x->lost[shadow->seat->rank])
		return;
	take_over(to_shadow, shadow);
	to_shadow->rank = (uint16_t)before;
	to_shadow->seat = hd_pipe_seat_at(x->rest, shadow->seat->rank, stage, true);
}

static void count_ends(struct rest_making *x)
{
	for (uint32_t r = 0; r < x->rest->nranks; r++)
		for (uint32_t i = 0; i < x->left.list[r].len; i++) {
			const struct hd_ins *ins = &x->left.list[r].at[i];
			struct hd_cell *cell = hd_ins_uses(ins->op, 'v') ?
				hd_cell_for(x->rest, ins, ins->stage) : NULL;
			if (!cell || hd_pipe_is_copy(ins))
				continue;
			cell->ends = (uint8_t)(cell->ends + (hd_pipe_ends_weights(ins) ||
				ins->op == HD_INS_SG));
			cell->left = cell->ends;
		}
}

/* ---- sums (rule 3) */

static struct hd_seat *seat_before(const struct rest_making *x, const struct hd_seat *seat)
{
	for (uint32_t i = 0; i < x->old->nseats; i++)
		if (x->old->seat[i].rank == seat->rank && x->old->seat[i].stage == seat->stage)
			return &x->old->seat[i];
	return NULL;
}

/* Virtual nodes that the seat has summed, then those that it will. */
static uint32_t order_of(const struct rest_making *x, const struct hd_seat *seat, uint32_t *vn,
	uint32_t *nsummed)
{
	const struct hd_ilist *before = &x->s.list[seat->rank], *after = &x->left.list[seat->rank];
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->at[seat->rank]; i++)
		if (hd_pipe_ends_weights(&before->at[i]) && before->at[i].stage == seat->stage)
			vn[n++] = before->at[i].vn;
	*nsummed = n;
	for (uint32_t i = 0; i < after->len; i++)
		if (hd_pipe_ends_weights(&after->at[i]) && after->at[i].stage == seat->stage) {
			hd_cell_for(x->rest, &after->at[i], seat->stage)->leaf = n;
			vn[n++] = after->at[i].vn;
		}
	return n;
}

/* The nodes that pend in buffers after the first leaves of a script; level UINT32_MAX: none does. */
static void pending(const struct hd_fold_script *s, uint32_t nvns, uint32_t nleaves, struct hd_tnode *node)
{
	for (uint32_t b = 0; b < s->nbuffers; b++)
		node[b].level = UINT32_MAX;
	for (uint32_t l = 0; l < nleaves; l++)
		for (uint32_t i = s->first_move[l]; i < s->first_move[l + 1]; i++) {
			const struct hd_move *m = &s->move[i];
			node[m->dst] = m->add ? hd_tree_parent(nvns, node[m->dst]) :
				(struct hd_tnode){ 0, s->vn[l] };
			if (m->src != HD_LEAF)
				node[m->src].level = UINT32_MAX;
		}
}

static void copy_runs(const struct hd_pipe_stage *stage, float *to, const float *from)
{
	for (uint32_t k = 0; k < stage->nruns; k++)
		memcpy(to + stage->run[k].at, from + stage->run[k].at, stage->run[k].len * sizeof *to);
}

static enum hd_err copy_sums(const struct rest_making *x, const struct hd_seat *seat, uint32_t nsummed,
	struct hd_diag *diag)
{
	const struct hd_seat *before = seat_before(x, seat);
	const uint32_t n = seat->script.nbuffers, m = before ? before->script.nbuffers : 0;
	struct hd_tnode *now = hd_arena_take(x->arena, (size_t)n + 1, sizeof *now),
		*then = hd_arena_take(x->arena, (size_t)m + 1, sizeof *then);

	if (!now || !then)
		return no_memory(diag);
	if (!nsummed)
		return HD_OK;
	pending(&seat->script, x->rest->nvns, nsummed, now);
	pending(&before->script, x->rest->nvns, nsummed, then);
	for (uint32_t b = 0; b < n; b++)
		for (uint32_t k = 0; k < m && now[b].level != UINT32_MAX; k++)
			if (then[k].level == now[b].level && then[k].index == now[b].index)
				copy_runs(&x->rest->stage[seat->stage], seat->vector[b], before->vector[k]);
	return HD_OK;
}

/* New vectors stand behind those of the step. */
static enum hd_err make_scripts(struct rest_making *x, struct hd_diag *diag)
{
	struct hd_pipe *rest = x->rest;
	uint32_t *vn = hd_arena_take(x->arena, (size_t)rest->nvns + 1, sizeof *vn);
	enum hd_err err = HD_OK;

	x->nsummed = hd_arena_take(x->arena, (size_t)rest->nseats + 1, sizeof *x->nsummed);
	if (!vn || !x->nsummed)
		return no_memory(diag);
	for (uint32_t i = 0; i < rest->nseats && !err; i++) {
		const uint32_t n = order_of(x, &rest->seat[i], vn, &x->nsummed[i]);
		err = hd_fold_script_make_any(&rest->seat[i].script, rest->nvns, vn, n, x->arena, diag);
	}
	if (err)
		return err;
	rest->first_vector = x->old->first_vector + x->old->nvectors;
	rest->nvectors = hd_pipe_count_vectors(rest);
	return hd_pipe_count_vector_bytes(rest, x->arena, diag);
}

static enum hd_err make_sums(struct rest_making *x, struct hd_diag *diag)
{
	struct hd_pipe *rest = x->rest;
	struct hd_worker *w = x->of;
	enum hd_err err = HD_OK;

	rest->vector = hd_arena_take(x->arena, rest->nvectors, sizeof *rest->vector);
	for (uint32_t r = 0; r < rest->ndevices && !err; r++)
		err = hd_pool_grow(w->rank[r].pool, w->stage->flat_bytes, hd_pipe_vectors_of(rest, r),
			w->rank[r].device, &w->arena, diag);
	if (err || !rest->vector)
		return err ? err : no_memory(diag);
	for (uint32_t i = 0; i < rest->nvectors; i++)
		rest->vector[i] = hd_pipe_pool_vector(rest, i + rest->first_vector);
	for (uint32_t i = 0; i < rest->nseats; i++) {
		struct hd_seat *seat = &rest->seat[i];
		seat->vector = hd_arena_take(x->arena, (size_t)seat->script.nbuffers + 1,
			sizeof *seat->vector);
		if (!seat->vector)
			return no_memory(diag);
	}
	hd_pipe_give_vectors(rest);
	for (uint32_t i = 0; i < rest->nseats && !err; i++)
		err = copy_sums(x, &rest->seat[i], x->nsummed[i], diag);
	for (uint32_t s = 0; s < rest->nstages && !err; s++)
		err = hd_pipe_make_joins(rest, s, &w->task->layout, x->arena, diag);
	return err;
}

/* ---- buffers */

/* Of arenas: how many are there at once; of the file: places; of mail and what is kept: all. */
struct rest_need { uint32_t arenas, most, away, mail[HD_MAILS], kept[HD_MAILS]; };

static void one_more(struct rest_need *need)
{
	need->arenas++;
	need->most = need->arenas > need->most ? need->arenas : need->most;
}

static void count_held(const struct rest_making *x, struct rest_need *need)
{
	for (size_t i = 0; i < x->rest->ncells; i++) {
		const struct hd_cell *cell = &x->rest->cell[i];
		struct rest_need *of = cell->seat ? &need[cell->seat - x->rest->seat] : NULL;
		if (!of)
			continue;
		if (cell->arena)
			one_more(of);
		for (int kind = 0; kind < HD_MAILS; kind++) {
			of->mail[kind] += cell->mail[kind] != NULL;
			of->kept[kind]++;
		}
	}
}

/* As pipe.c does it, of what is no copy: the cell of a copy may be another worker's. An arena that a cell
 * kept for its input alone may go sooner than is counted. */
static void count_ins(const struct rest_making *x, struct rest_need *needs, uint32_t rank,
	const struct hd_ins *ins)
{
	struct hd_cell *cell = hd_cell_for(x->rest, ins, ins->stage);
	struct rest_need *need = &needs[cell->seat - x->rest->seat];
	const bool light = cell->light || (ins->op == HD_INS_F && ins->flags & HD_INS_CHECKPOINT);

	switch (ins->op) {
	case HD_INS_F:
		one_more(need);
		cell->light = light;
		if (light && (ins->stage + 1u == x->rest->nstages ||
			hd_cell_of(x->rest, ins->stage + 1u, ins->vn)->rank == rank))
			need->arenas--;
		break;
	case HD_INS_R: one_more(need); break;
	case HD_INS_ON: one_more(need); break;
	case HD_INS_OFF:
		need->arenas--;
		need->away++;
		break;
	case HD_INS_SA: need->arenas -= light && !cell->sent; break;
	case HD_INS_RA: need->mail[HD_MAIL_ACT] += !cell->here[HD_MAIL_ACT]; break;
	case HD_INS_RG: need->mail[HD_MAIL_GRAD] += !cell->here[HD_MAIL_GRAD]; break;
	default: break;
	}
	if ((hd_pipe_ends_weights(ins) || ins->op == HD_INS_SG) && --cell->left == 0)
		need->arenas--;
}

/* All buffers of the pool before, and as many new ones as are needed beyond. */
static enum hd_err take_pool(const struct rest_making *x, struct hd_seat *seat, struct hd_mail_pool *pool,
	const struct hd_mail_pool *before, uint64_t bytes, uint32_t need, struct hd_diag *diag)
{
	const struct hd_mail_pool was = before ? *before : (struct hd_mail_pool){ 0 };
	struct hd_mail_pool more = { .cap = need > was.cap ? need - was.cap : 0, .bytes = bytes };
	enum hd_err err = hd_pipe_take_pool(x->rest, seat, &more, false, x->arena, diag);

	*pool = (struct hd_mail_pool){ .cap = was.cap + more.cap, .bytes = bytes,
		.free = hd_arena_take(x->arena, (size_t)was.cap + more.cap + 1, sizeof *pool->free) };
	if (err || !pool->free)
		return err ? err : no_memory(diag);
	for (; pool->nfree < was.nfree; pool->nfree++)
		pool->free[pool->nfree] = was.free[pool->nfree];
	for (uint32_t i = 0; i < more.nfree; i++)
		pool->free[pool->nfree++] = more.free[i];
	return HD_OK;
}

static uint64_t arena_bytes(const struct hd_pipe_stage *stage)
{
	return hd_round_up(stage->tensor.whole.memory.len_bytes, 64);
}

static uint64_t mail_bytes(const struct hd_pipe *pipe, uint32_t stage, enum hd_mail kind)
{
	if (stage >= pipe->nstages)
		return 0;
	return kind == HD_MAIL_ACT ? pipe->stage[stage].act.bytes : pipe->stage[stage].grad.bytes;
}

/* What goes to a neighbour stage. */
static uint64_t kept_bytes(const struct hd_pipe *pipe, uint32_t stage, enum hd_mail kind)
{
	return mail_bytes(pipe, kind == HD_MAIL_ACT ? stage + 1 : stage - 1, kind);
}

static enum hd_err take_seat(const struct rest_making *x, struct hd_seat *seat, const struct rest_need *need,
	struct hd_diag *diag)
{
	const struct hd_seat *was = seat_before(x, seat);
	const uint32_t n = need->most + need->mail[HD_MAIL_ACT] + need->mail[HD_MAIL_GRAD] +
		need->kept[HD_MAIL_ACT] + need->kept[HD_MAIL_GRAD];
	struct hd_device *device = x->of->rank[seat->device].device;
	const struct hd_pipe_stage *stage = &x->rest->stage[seat->stage];
	enum hd_err err = HD_OK;

	seat->memory = hd_arena_take(x->arena, (size_t)n + 1, sizeof *seat->memory);
	seat->memory_bytes = hd_arena_take(x->arena, (size_t)n + 1, sizeof *seat->memory_bytes);
	seat->away.cap = need->away;
	for (int kind = 0; kind < HD_MAILS; kind++)
		seat->unused[kind] = hd_arena_take(x->arena, x->rest->nranks, 1);
	if (!seat->memory || !seat->memory_bytes || !seat->unused[0] || !seat->unused[1])
		return no_memory(diag);
	if (!was)
		err = device->ops->load(device, &stage->tensor.part[0], diag);
	seat->loads = !was && !err;
	err = err ? err : take_pool(x, seat, &seat->arena, was ? &was->arena : NULL,
		arena_bytes(stage), need->most, diag);
	for (int k = 0; k < HD_MAILS && !err; k++) {
		const enum hd_mail kind = (enum hd_mail)k;
		err = take_pool(x, seat, &seat->mail[kind], was ? &was->mail[kind] : NULL,
			mail_bytes(x->rest, seat->stage, kind), need->mail[kind], diag);
		err = err ? err : take_pool(x, seat, &seat->kept[kind], was ? &was->kept[kind] : NULL,
			kept_bytes(x->rest, seat->stage, kind), need->kept[kind], diag);
	}
	return err;
}

static enum hd_err count_buffers(struct rest_making *x, struct hd_diag *diag)
{
	x->need = hd_arena_take(x->arena, (size_t)x->rest->nseats + 1, sizeof *x->need);
	if (!x->need)
		return no_memory(diag);
	count_held(x, x->need);
	for (uint32_t r = 0; r < x->rest->nranks; r++)
		for (uint32_t i = 0; x->rest->device_of[r] != HD_NONE && i < x->left.list[r].len; i++)
			if (hd_ins_uses(x->left.list[r].at[i].op, 'v') &&
				!hd_pipe_is_copy(&x->left.list[r].at[i]))
				count_ins(x, x->need, r, &x->left.list[r].at[i]);
	for (size_t i = 0; i < x->rest->ncells; i++)
		x->rest->cell[i].left = x->rest->cell[i].ends;
	return HD_OK;
}

/* Beyond what there is. */
static uint64_t more_bytes(uint32_t need, const struct hd_mail_pool *before, uint64_t bytes)
{
	const uint32_t there = before ? before->cap : 0;

	return need > there ? (need - there) * bytes : 0;
}

/* Said with numbers before anything is taken. The next plan that is adopted counts again. */
static enum hd_err check_memory(const struct rest_making *x, struct hd_diag *diag)
{
	const struct hd_pipe *rest = x->rest;

	for (uint32_t i = 0; i < rest->nseats; i++) {
		const struct hd_seat *seat = &rest->seat[i], *was = seat_before(x, seat);
		const struct rest_need *need = &x->need[i];
		uint64_t *bytes = &x->of->rank[seat->device].need.pipe_bytes;
		*bytes += more_bytes(need->most, was ? &was->arena : NULL, arena_bytes(
			&rest->stage[seat->stage]));
		for (int k = 0; k < HD_MAILS; k++) {
			const enum hd_mail kind = (enum hd_mail)k;
			*bytes += more_bytes(need->mail[kind], was ? &was->mail[kind] : NULL,
				mail_bytes(rest, seat->stage, kind));
			*bytes += more_bytes(need->kept[kind], was ? &was->kept[kind] : NULL,
				kept_bytes(rest, seat->stage, kind));
		}
	}
	for (uint32_t d = 0; d < rest->ndevices; d++) {
		x->of->rank[d].need.vector_bytes += hd_pipe_vector_bytes(rest, d);
		x->of->rank[d].need.pipe_bytes += hd_post_bytes(rest, d);
	}
	return hd_worker_fits(x->of, diag);
}

static enum hd_err take_buffers(struct rest_making *x, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < x->rest->nseats && !err; i++)
		err = take_seat(x, &x->rest->seat[i], &x->need[i], diag);
	err = err ? err : hd_offload_take(x->rest, x->of->spec.spill ? x->of->spec.spill :
		"/var/tmp", x->arena, diag);
	return err ? err : hd_post_take(x->rest, x->arena, diag);
}

static void give_seat(struct hd_worker *w, const struct hd_pipe *pipe, const struct hd_seat *seat)
{
	struct hd_device *device = w->rank[seat->device].device;

	for (uint32_t k = 0; k < seat->nmemory; k++)
		device->ops->give(device, seat->memory[k], seat->memory_bytes[k]);
	if (seat->loads)
		device->ops->unload(device, &pipe->stage[seat->stage].tensor.part[0]);
}

static void give_all(struct hd_pipe *rest, struct hd_worker *w)
{
	hd_post_give(rest);
	hd_offload_give(rest);
	for (uint32_t i = 0; i < rest->nseats; i++)
		give_seat(w, rest, &rest->seat[i]);
}

void hd_rest_give(struct hd_pipe *rest, struct hd_worker *w)
{
	give_all(rest, w);
	rest->taken = false;
	hd_pipe_give(rest->before, w);
}

/* ---- what lost stages said, and their state (rule 2) */

static void take_up_said(struct rest_making *x, uint32_t stage, uint32_t vn)
{
	const struct hd_pipe_stage *of = &x->old->stage[stage];
	struct hd_moments *m = &x->of->step->moments;
	struct hd_leaf *leaf = &x->of->step->leaf[vn];
	const struct hd_leaf *shadow = &x->old->shadow_leaf[vn];

	/* nothing, if the shadow has not been there */
	for (uint32_t k = 0; k < HD_LEAF_FIELDS; k++)
		if (hd_readout_field(&of->out, k) != HD_NONE)
			*(&leaf->loss + k) = *(&shadow->loss + k);
	for (uint32_t k = 0; k < of->cut->graph.nrunning; k++) {
		const uint64_t at = vn * m->elems + m->at[of->cut->running[k]],
			n = m->at[of->cut->running[k] + 1] - m->at[of->cut->running[k]];
		memcpy(m->leaf + at, x->old->shadow_moments + at, n * sizeof *m->leaf);
	}
}

static void take_up_state(struct rest_making *x)
{
	for (uint32_t r = 0; r < x->rest->nranks; r++) {
		struct hd_shadow *s = x->lost[r] ? hd_shadow_of(x->old,
			hd_shadow_ring_before(&x->ring, r)) : NULL;
		if (s && !s->far)                 /* the worker holds it already */
			hd_shadow_becomes(x->of, s);
	}
	/* those of lost ranks are gone, those that became owners are none */
	for (uint32_t i = 0; i < x->old->nshadows; i++) {
		struct hd_shadow *s = &x->old->shadow[i];
		if (x->lost[s->rank] || x->lost[hd_shadow_ring_next(&x->ring, s->rank)])
			s->ended = true;
	}
	for (uint32_t s = 0; s < x->rest->nstages; s++)
		for (uint32_t v = 0; v < x->rest->nvns; v++)
			if (x->lost[hd_cell_of(x->old, s, v)->rank] && hd_cell_of(x->rest, s, v)->seat)
				take_up_said(x, s, v);
}

/* Chunks of lost ranks are those of their heirs. */
static enum hd_err take_up_chunks(struct rest_making *x, struct hd_diag *diag)
{
	uint32_t *device = hd_arena_take(x->arena, (size_t)x->rest->ndevices + 1, sizeof *device);

	if (!device)
		return no_memory(diag);
	for (uint32_t d = 0; d < x->rest->ndevices; d++) {
		const uint32_t r = x->old->rank_of[d];
		device[d] = r != HD_NONE && x->lost[r] ?
			x->old->device_of[hd_shadow_ring_before(&x->ring, r)] : d;
	}
	hd_part_rest(x->of, x->rest, device);
	return HD_OK;
}

/* ---- all of it */

/* A device whose rank is lost takes part in the end of the step. */
static enum hd_err make_idle(struct hd_ilist *idle, const struct rest_making *x, struct hd_diag *diag)
{
	uint32_t r = 0;

	while (x->lost[r])
		r++;
	const struct hd_ilist *of = &x->left.list[r];
	*idle = (struct hd_ilist){ .at = hd_arena_take(x->arena, (size_t)of->len + 1, sizeof *idle->at) };
	if (!idle->at)
		return no_memory(diag);
	for (uint32_t i = 0; i < of->len; i++)
		if (hd_pipe_runners[of->at[i].op].meets && !hd_ins_redundant(&of->at[i]))
			idle->at[idle->len++] = of->at[i];
	return HD_OK;
}

/* The plan of the rest: ranks, workers and stages are those of the step. */
static enum hd_err make_plan(struct rest_making *x, struct hd_diag *diag)
{
	struct hd_plan *plan = hd_arena_take(x->arena, 1, sizeof *plan);

	if (!plan)
		return no_memory(diag);
	*plan = *x->old->plan;
	plan->list = x->left.list;
	x->rest->plan = plan;
	if (!x->worker)
		return HD_OK;
	plan->worker = hd_arena_take(x->arena, plan->nranks, sizeof *plan->worker);
	if (!plan->worker)
		return no_memory(diag);
	memcpy(plan->worker, x->worker, plan->nranks * sizeof *plan->worker);
	return HD_OK;
}

/* What devices of this worker make of the gradients of lost ranks. */
static uint32_t count_redone(const struct rest_making *x)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < x->rest->nranks; r++)
		for (uint32_t i = 0; x->rest->device_of[r] != HD_NONE && i < x->left.list[r].len; i++) {
			const struct hd_ins *ins = &x->left.list[r].at[i];
			n += hd_pipe_ends_weights(ins) && !(ins->flags & HD_INS_SHADOW) &&
				x->lost[hd_cell_of(x->old, ins->stage, ins->vn)->rank];
		}
	return n;
}

static enum hd_err make_rest(struct rest_making *x, struct hd_diag *diag)
{
	struct hd_pipe *rest = x->rest;

	*rest = *x->old;
	rest->before = x->old;
	rest->away = -1;
	rest->nlines = rest->nseats = 0;
	atomic_store(&rest->fenced, false);
	rest->cell = hd_arena_take(x->arena, rest->ncells, sizeof *rest->cell);
	rest->seat = hd_arena_take(x->arena, (size_t)2 * rest->nstages * rest->ndevices + 1,
		sizeof *rest->seat);
	rest->stage = hd_arena_take(x->arena, rest->nstages, sizeof *rest->stage);
	if (!rest->cell || !rest->seat || !rest->stage)
		return no_memory(diag);
	memcpy(rest->stage, x->old->stage, rest->nstages * sizeof *rest->stage);
	for (uint32_t s = 0; s < rest->nstages; s++) {
		rest->stage[s].nroots = rest->stage[s].njoins = 0;
		for (uint32_t v = 0; v < rest->nvns; v++)
			make_cell(x, s, v);
	}
	count_ends(x);
	enum hd_err err = make_plan(x, diag);
	err = err ? err : hd_post_lines(rest, x->arena, diag);
	err = err ? err : make_scripts(x, diag);
	err = err ? err : count_buffers(x, diag);
	err = err ? err : check_memory(x, diag);
	err = err ? err : make_sums(x, diag);
	return err ? err : take_buffers(x, diag);
}

/* What is sent under a fence may never arrive: living ranks send it again, first of all, and each by its own
 * copy. Others than a lost sender's letters failover takes for arrived. */
static uint32_t send_again(const struct rest_making *x, uint32_t r, struct hd_ins *to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->at[r]; i++) {
		struct hd_ins ins = x->s.list[r].at[i];
		const bool copy = ins.flags & HD_INS_SHADOW;
		const uint8_t as = ins.op == HD_INS_SA ? HD_ARRIVED_ACT : copy ? HD_ARRIVED_COPY :
			HD_ARRIVED_GRAD;
		if ((ins.op != HD_INS_SA && ins.op != HD_INS_SG) || x->lost[ins.peer] ||
			x->arrived[(size_t)ins.stage * x->s.nvns + ins.vn] & as)
			continue;
		/* of a shadow that ends with the loss nothing is left */
		if (copy && x->lost[hd_shadow_ring_before(&x->ring, r)])
			continue;
		if (ins.op == HD_INS_SG && !copy)
			ins = (struct hd_ins){ .op = HD_INS_RSG, .stage = ins.stage, .vn = ins.vn,
				.peer = ins.peer };
		if (to)
			to[n] = ins;
		n++;
	}
	return n;
}

static enum hd_err add_sent_again(struct rest_making *x, struct hd_diag *diag)
{
	for (uint32_t r = 0; r < x->old->nranks; r++) {
		struct hd_ilist *list = &x->left.list[r];
		const uint32_t n = x->lost[r] ? 0 : send_again(x, r, NULL);
		struct hd_ins *at = n ? hd_arena_take(x->arena, (size_t)n + list->len, sizeof *at) : NULL;
		if (n && !at)
			return no_memory(diag);
		if (!n)
			continue;
		(void)send_again(x, r, at);
		memcpy(at + n, list->at, list->len * sizeof *at);
		*list = (struct hd_ilist){ .at = at, .len = n + list->len, .cap = n + list->len };
	}
	return HD_OK;
}

static enum hd_err find_lists(struct rest_making *x, struct hd_diag *diag)
{
	enum hd_err err = hd_schedule_of_plan(&x->s, x->old->plan, x->arena, diag);
	const struct hd_step_progress now = { .at = x->at, .arrived = x->arrived };

	err = err ? err : hd_shadow_ring_of(&x->ring, &x->s, x->arena, diag);
	err = err ? err : hd_failover(&x->left, &x->s, &now, x->lost, x->arena, diag);
	return err ? err : add_sent_again(x, diag);
}

/* What was offered and has not come is offered again, by the lines of the rest. */
static void take_back_offers(const struct hd_pipe *pipe)
{
	for (size_t i = 0; i < pipe->ncells; i++)
		for (int kind = 0; kind < HD_MAILS; kind++) {
			struct hd_cell *cell = &pipe->cell[i];
			if (!cell->seat || !cell->mail[kind] || cell->here[kind])
				continue;
			struct hd_mail_pool *pool = &cell->seat->mail[kind];
			pool->free[pool->nfree++] = cell->mail[kind];
			cell->mail[kind] = NULL;
		}
}

static void count_roots(struct hd_work *work, uint32_t nbuckets)
{
	work->nroots = 0;
	for (uint32_t s = 0; s < work->pipe->nstages; s++)
		work->nroots += work->pipe->stage[s].nroots;
	for (uint32_t b = 0; b < nbuckets; b++)
		atomic_store_explicit(&work->left[b], 1, memory_order_relaxed);
	work->computed = false;
}

enum hd_err hd_rest_make(struct hd_worker *w, const struct hd_dist_loss *loss,
	const struct hd_ilist **lists, uint32_t *redone, struct hd_diag *diag)
{
	struct hd_work *work = hd_worker_work(w);
	struct hd_arena *arena = hd_part_arena(w);
	struct rest_making x = { .of = w, .old = work->pipe, .at = loss->at, .lost = loss->lost,
		.arrived = loss->arrived, .worker = loss->worker, .arena = arena,
		.rest = hd_arena_take(arena, 1, sizeof *x.rest) };
	struct hd_ilist *idle = hd_arena_take(arena, 1, sizeof *idle);

	if (!x.rest || !idle)
		return no_memory(diag);
	enum hd_err err = find_lists(&x, diag);
	err = err ? err : make_idle(idle, &x, diag);
	if (err)
		return err;
	take_back_offers(x.old);
	err = make_rest(&x, diag);
	err = err ? err : take_up_chunks(&x, diag);
	if (err) {
		if (x.rest->seat)
			give_all(x.rest, w);
		return err;
	}
	take_up_state(&x);
	if (!hd_worker_alone(w))
		count_roots(work, w->stage->nbuckets);
	for (uint32_t d = 0; d < w->spec.ndevices; d++) {
		const uint32_t r = x.rest->rank_of[d];
		work->rank[d].list = r == HD_NONE || x.lost[r] ? idle : &x.left.list[r];
		work->rank[d].from = 0;
	}
	hd_step_work(w, work);
	*lists = x.left.list;
	*redone = count_redone(&x);
	return HD_OK;
}

enum hd_err hd_rest_adopt(struct hd_worker *w, const uint32_t *at, const bool *lost,
	const struct hd_ilist **lists, struct hd_diag *diag)
{
	const struct hd_pipe *pipe = hd_worker_work(w)->pipe;
	uint8_t *arrived = hd_arena_take(hd_part_arena(w), pipe->ncells + 1, 1);
	uint32_t redone;

	if (!arrived)
		return no_memory(diag);
	if (pipe->before || !pipe->nshadows || !hd_worker_alone(w))
		return hd_fail(diag, HD_E_REFUSED, pipe->before ?
			"ranks were lost in this step before, and stages have no shadow since" :
			pipe->nshadows ? "ranks of other workers have part in the step: hd_dist_rest()" :
			"there are no shadow stages");
	hd_rest_arrived(pipe, lost, arrived);
	return hd_rest_make(w, &(struct hd_dist_loss){ .at = at, .arrived = arrived, .lost = lost }, lists,
		&redone, diag);
}
