#include "pipeline/listed.h"

#include <string.h>

#include "pipeline/plan_schedule.h"
#include "pipeline/staged.h"

#define OVER_WORKERS "over workers pipeline k of p ranks has ranks k p to k p + p - 1"

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for the lists of a plan");
}

/* ---- reading ---- */

/* By what the shadows compute. */
static enum hd_redundancy mode_of(const struct hd_plan *plan)
{
	enum hd_redundancy mode = HD_REDUNDANCY_LAZY;

	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++) {
			const struct hd_ins *x = &plan->list[r].at[i];
			if (x->flags & HD_INS_SHADOW && x->op == HD_INS_B)
				return HD_REDUNDANCY_FULL;
			if (x->flags & HD_INS_SHADOW && x->op == HD_INS_F)
				mode = HD_REDUNDANCY_EAGER;
		}
	return mode;
}

/* Rule 6. */
static enum hd_err part_shadows(struct hd_listed *l, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_schedule all = { 0 }, own = { 0 };
	enum hd_err err = hd_schedule_of_plan(&all, &l->plan, arena, diag);

	if (err || !hd_redundancy_in(&all))
		return err;
	err = hd_redundancy_erase(&own, &all, arena, diag);
	if (err)
		return err;
	l->mode = mode_of(&l->plan);
	l->shadowed = l->plan.list;
	l->plan.list = own.list;
	return HD_OK;
}

/* The rank of each (stage, virtual node). */
static enum hd_err find_ranks(uint32_t **rank, const struct hd_plan *plan, struct hd_arena *arena,
	struct hd_diag *diag)
{
	*rank = hd_arena_take(arena, (size_t)plan->nstages * plan->nvns + 1, sizeof **rank);
	if (!*rank)
		return no_memory(diag);
	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++) {
			const struct hd_ins *x = &plan->list[r].at[i];
			if (x->op == HD_INS_F)
				(*rank)[(size_t)x->stage * plan->nvns + x->vn] = r;
		}
	return HD_OK;
}

static enum hd_err find_places(struct hd_listed *l, const uint32_t *rank, struct hd_diag *diag)
{
	const struct hd_plan *plan = &l->plan;

	for (uint32_t s = 0; s < plan->nstages; s++) {
		l->place[s] = rank[(size_t)s * plan->nvns];
		l->p = l->place[s] >= l->p ? l->place[s] + 1 : l->p;
	}
	if (l->place[0])
		return hd_fail(diag, HD_E_INVAL, "the plan begins with rank %u; " OVER_WORKERS
			", and stage 0 is on the first", l->place[0]);
	if (plan->nranks % l->p)
		return hd_fail(diag, HD_E_INVAL, "virtual node 0 of the plan goes through ranks 0 to %u, and "
			"it has %u; " OVER_WORKERS, l->p - 1, plan->nranks);
	l->d = plan->nranks / l->p;
	for (uint32_t r = 0, most = 0; r < l->p; r++) {
		uint32_t n = 0;
		for (uint32_t s = 0; s < plan->nstages; s++)
			n += l->place[s] == r;
		if (!n)
			return hd_fail(diag, HD_E_INVAL,
				"rank %u of the plan runs no stage of virtual node 0: leave it "
				"out; where a stage has copies (neighbouring ranks) no rank has two", r);
		l->most = most = n > most ? n : most;
	}
	return HD_OK;
}

static enum hd_err find_shares(struct hd_listed *l, const uint32_t *rank, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_plan *plan = &l->plan;

	l->share = hd_arena_take(arena, l->d, sizeof *l->share);
	if (!l->share)
		return no_memory(diag);
	for (uint32_t v = 0, before = 0; v < plan->nvns; v++) {
		const uint32_t k = rank[v] / l->p;
		for (uint32_t s = 0; s < plan->nstages; s++)
			if (rank[(size_t)s * plan->nvns + v] != k * l->p + l->place[s])
				return hd_fail(diag, HD_E_INVAL,
					"stage %u of virtual node %u is on rank %u of the plan, not on %u: "
					OVER_WORKERS ", with each stage at one place (copies of a stage "
					"are on ranks that are neighbours, of one pipeline)", s, v,
					rank[(size_t)s * plan->nvns + v], k * l->p + l->place[s]);
		if (k < before)
			return hd_fail(diag, HD_E_INVAL,
				"virtual node %u is of pipeline %u of the plan, and the one before it of %u: "
				"over workers a pipeline has neighbouring ones, in order", v, k, before);
		l->share[before = k]++;
	}
	for (uint32_t k = 0; k < l->d; k++)
		if (!l->share[k])
			return hd_fail(diag, HD_E_INVAL, "pipeline %u of the plan has no virtual node: leave "
				"its ranks out", k);
	return HD_OK;
}

/* ---- copies: rule 5 ---- */

/* Have the stages one run of ranks each, in order, which are all ranks, and more than stages? */
static bool find_copies(struct hd_listed *l, const uint32_t *rank)
{
	const struct hd_plan *plan = &l->plan;
	uint32_t next = 0;

	for (uint32_t s = 0; s < plan->nstages; s++) {
		const uint32_t *of = &rank[(size_t)s * plan->nvns];
		uint32_t end = next;
		l->place[s] = next;
		for (uint32_t v = 0; v < plan->nvns; v++) {
			if (of[v] < next)
				return false;
			end = of[v] >= end ? of[v] + 1 : end;
		}
		l->copies[s] = end - next;
		next = end;
	}
	for (uint32_t r = 0; r < plan->nranks; r++)
		if (!plan->list[r].len)
			return false;
	return next == plan->nranks && plan->nstages > 1 && plan->nstages < plan->nranks;
}

static uint32_t common_divisor(uint32_t a, uint32_t b) { return b ? common_divisor(b, a % b) : a; }

static enum hd_err find_lanes(struct hd_listed *l, struct hd_diag *diag)
{
	const uint32_t nvns = l->plan.nvns;

	l->lanes = 1;
	for (uint32_t s = 0; s < l->plan.nstages && l->lanes <= nvns; s++)
		l->lanes *= l->copies[s] / common_divisor(l->lanes, l->copies[s]);
	if (l->lanes > nvns)
		return hd_fail(diag, HD_E_INVAL,
			"the copies of the plan's stages make %u lanes or more, the least common multiple of "
			"their numbers, and it has %u virtual nodes: give it as many, or fewer copies",
			l->lanes, nvns);
	return l->t == 1 ? HD_OK : hd_fail(diag, HD_E_INVAL, "the plan has stages with copies on ranks of %u "
		"devices (tensor): over workers ranks of such stages are of one device", l->t);
}

static enum hd_err check_copies(const struct hd_listed *l, const uint32_t *rank, struct hd_diag *diag)
{
	const uint32_t n = l->plan.nvns, lanes = l->lanes;

	for (uint32_t k = 0, v = 0; k < lanes; k++)
		for (uint32_t end = v + n / lanes + (k < n % lanes); v < end; v++)
			for (uint32_t s = 0; s < l->plan.nstages; s++) {
				const uint32_t is = rank[(size_t)s * n + v], to = l->place[s] +
					(uint32_t)((uint64_t)k * l->copies[s] / lanes);
				if (is != to)
					return hd_fail(diag, HD_E_INVAL,
						"stage %u of virtual node %u is on rank %u of the plan, a "
						"copy of that stage; over workers copies have neighbouring "
						"virtual nodes, as many each, larger shares first: give it "
						"to rank %u", s, v, is, to);
			}
	return HD_OK;
}

/* *is: the plan has copies, and all is found. */
static enum hd_err find_copied(struct hd_listed *l, bool *is, const uint32_t *rank, struct hd_arena *arena,
	struct hd_diag *diag)
{
	l->copies = hd_arena_take(arena, l->plan.nstages + 1, sizeof *l->copies);
	l->share = hd_arena_take(arena, 1, sizeof *l->share);
	if (!l->copies || !l->share)
		return no_memory(diag);
	*is = find_copies(l, rank);
	if (!*is) {
		l->copies = NULL;
		return HD_OK;
	}
	l->p = l->plan.nranks;
	l->d = l->most = 1;
	l->share[0] = l->plan.nvns;
	enum hd_err err = find_lanes(l, diag);
	return err ? err : check_copies(l, rank, diag);
}

enum hd_err hd_listed_of(struct hd_listed *listed, const struct hd_plan *file, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_listed l = { .t = hd_plan_width(file) * hd_plan_groups(file), .lanes = 1 };
	uint32_t *rank = NULL;
	bool copied = false;

	if (!file->first)
		return hd_fail(diag, HD_E_INVAL,
			"the plan has no line cuts: each of its ranks has the whole model, and over workers "
			"each device has that by itself: parallel.mode: data without a plan");
	enum hd_err err = hd_plan_fold(&l.plan, file, arena, diag);
	if (err)
		return err;
	l.plan.tensor = 0;
	l.place = hd_arena_take(arena, l.plan.nstages + 1, sizeof *l.place);
	if (!l.place)
		return no_memory(diag);
	err = part_shadows(&l, arena, diag);
	err = err ? err : find_ranks(&rank, &l.plan, arena, diag);
	err = err ? err : find_copied(&l, &copied, rank, arena, diag);
	err = err || copied ? err : find_places(&l, rank, diag);
	err = err || copied ? err : find_shares(&l, rank, arena, diag);
	if (!err)
		*listed = l;
	return err;
}

/* ---- plans ---- */

bool hd_listed_is_whole(const struct hd_listed *l, const uint32_t *share, uint32_t d)
{
	return d == l->d && !memcmp(share, l->share, d * sizeof *share);
}

static bool is_work(const struct hd_ins *x)
{
	static const uint8_t ops[] = { HD_INS_F, HD_INS_B, HD_INS_I, HD_INS_W, HD_INS_R, HD_INS_OFF,
		HD_INS_ON };

	return memchr(ops, x->op, sizeof ops) != NULL;
}

struct range { uint32_t first, n; };       /* of virtual nodes */

static bool is_of(const struct hd_ins *x, struct range of)
{
	return is_work(x) && x->vn >= of.first && x->vn - of.first < of.n;
}

/* Of a pair whose other half stays behind the rest stands alone. */
static struct hd_ins taken(const struct hd_ilist *from, uint32_t i, struct range of)
{
	struct hd_ins x = from->at[i];
	const uint8_t pair = x.flags & HD_INS_PAIR;

	if (pair && !is_of(&from->at[pair == HD_INS_PAIR_BEGIN ? i + 1 : i - 1], of))
		x.flags &= (uint8_t)~HD_INS_PAIR;
	x.vn -= of.first;
	return x;
}

/* Rule 3. */
static enum hd_err share_out(struct hd_ilist *to, const struct hd_listed *l, uint32_t rank, struct range of,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t cap = 0;

	for (uint32_t k = 0; k < l->d; k++)
		cap += l->plan.list[k * l->p + rank].len;
	*to = (struct hd_ilist){ hd_arena_take(arena, (size_t)cap + 1, sizeof *to->at), 0, cap + 1 };
	if (!to->at)
		return no_memory(diag);
	for (uint32_t k = 0; k < l->d; k++) {
		const struct hd_ilist *from = &l->plan.list[k * l->p + rank];
		for (uint32_t i = 0; i < from->len; i++)
			if (is_of(&from->at[i], of))
				to->at[to->len++] = taken(from, i, of);
	}
	return HD_OK;
}

static enum hd_err make(struct hd_schedule *s, const struct hd_listed *l, struct range of,
	struct hd_arena *arena, struct hd_diag *diag)
{
	*s = (struct hd_schedule){ .heading = "", .nranks = l->p, .nvns = of.n, .nstages = l->plan.nstages,
		.place = l->place, .list = hd_arena_take(arena, l->p, sizeof *s->list) };
	enum hd_err err = s->list ? HD_OK : no_memory(diag);

	for (uint32_t r = 0; r < l->p && !err; r++)
		err = share_out(&s->list[r], l, r, of, arena, diag);
	return err;
}

static enum hd_err whole(struct hd_plan *plan, const struct hd_listed *l, const struct hd_plan_job *job,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_plan made = l->plan;

	made.number = 0;
	made.cause = "";
	made.nchunks = job->nchunks;
	made.xfers.len = 0;
	made.worker = hd_arena_take(arena, made.nranks, sizeof *made.worker);
	made.owner = hd_arena_take(arena, (size_t)made.nchunks + 1, sizeof *made.owner);
	if (!made.worker || !made.owner)
		return no_memory(diag);
	for (uint32_t c = 0; c < made.nchunks; c++)
		made.owner[c] = (uint32_t)((uint64_t)c * made.nranks / made.nchunks);
	enum hd_err err = hd_plan_staged_check(&made, job, NULL, diag);
	if (!err)
		*plan = made;
	return err;
}

enum hd_err hd_listed_plan(struct hd_plan *plan, const struct hd_listed *l, const struct hd_plan_job *job,
	const uint32_t *share, uint32_t d, struct hd_arena *arena, struct hd_diag *diag)
{
	if (l->plan.nvns != job->nvns)
		return hd_fail(diag, HD_E_BADPLAN, "the plan is of %u virtual nodes, and the job has %u "
			"(batch.virtual_nodes)", l->plan.nvns, job->nvns);
	if (hd_listed_is_whole(l, share, d))
		return whole(plan, l, job, arena, diag);
	struct hd_schedule *pipeline = hd_arena_take(arena, d, sizeof *pipeline);
	enum hd_err err = pipeline ? HD_OK : no_memory(diag);

	for (uint32_t k = 0, first = 0; k < d && !err; first += share[k++])
		err = make(&pipeline[k], l, (struct range){ first, share[k] }, arena, diag);
	return err ? err : hd_plan_staged_some(plan, job, pipeline, d, l->plan.first, NULL, arena, diag);
}
