/* Zero bubble by search (after Qi et al. 2023, section 3): for the costs and the memory at hand.
 *
 * Candidates, in this order: every closed form that fits the cap; eight greedy runs, one for each set of
 * three switches; then neighbours on a rank are swapped on the best of them as long as that helps. Best:
 * least makespan, then span idle, then peak, then the candidate's number. So it is never worse than the best
 * closed form that fits. No clock decides: the search ends after SWEEPS sweeps or SEARCH_INS simulated
 * instructions. Cost: O(instructions * ranks) a greedy run. */
#include <string.h>

#include "pipeline/schedule/kind.h"
#include "pipeline/simulate.h"

enum { SWEEPS = 20, SEARCH_INS = 1 << 25, GREEDY_MOST = 1 << 27, SWITCHES = 8 };
enum { PREFER_I = 1, FILL = 2, LIMIT = 4 };
#define NEVER INT64_MAX

struct score { int64_t makespan, span_idle; uint32_t peak; };

struct zb_search {
	struct hd_emit *e;
	struct hd_rank_costs costs;
	struct hd_schedule best;
	struct score score;
	bool found;
	uint32_t least_peak;                      /* of those that do not fit */
	struct hd_arena scratch;                  /* of one simulation */
	uint64_t left;                            /* instructions that the search may yet simulate */
};

static bool better(struct score a, struct score b)
{
	if (a.makespan != b.makespan)
		return a.makespan < b.makespan;
	return a.span_idle != b.span_idle ? a.span_idle < b.span_idle : a.peak < b.peak;
}

/* False: it does not end, or holds more than the cap. */
static bool judge(struct zb_search *x, const struct hd_schedule *s, struct score *score)
{
	struct hd_sim sim;
	uint32_t cap = x->e->ask->cap;

	hd_arena_reset(&x->scratch);
	if (hd_simulate(&sim, s, &(struct hd_sim_ask){ .costs = x->costs }, &x->scratch, NULL))
		return false;
	*score = (struct score){ sim.makespan, sim.span_idle, 0 };
	for (uint32_t r = 0; r < s->nranks; r++)
		score->peak = sim.rank[r].peak > score->peak ? sim.rank[r].peak : score->peak;
	x->least_peak = score->peak < x->least_peak ? score->peak : x->least_peak;
	x->left -= sim.nins < x->left ? sim.nins : x->left;
	return !cap || score->peak <= cap;
}

static void offer(struct zb_search *x, const struct hd_schedule *s)
{
	struct score score;

	if (!judge(x, s, &score) || (x->found && !better(score, x->score)))
		return;
	x->best = *s;
	x->score = score;
	x->found = true;
}

/* ---- greedy */

/* pending: where the oldest I without W stands */
struct lane { int64_t free; uint32_t live, forwards[2], inputs[2], weights, pending; };

struct greedy {
	const struct hd_emit *e;
	struct hd_schedule s;
	struct hd_rank_costs c;
	int64_t *act, *grad;                      /* [stages * m] ends; -1 */
	struct lane *lane;
	unsigned switches;
};

struct choice { int64_t start; uint8_t op; uint32_t stage, vn; };

static uint32_t stage_of(const struct hd_emit *e, uint32_t r, uint32_t c) { return c ? 2 * e->p - 1 - r : r; }
static uint32_t rank_of(const struct hd_emit *e, uint32_t s) { return s < e->p ? s : 2 * e->p - 1 - s; }

static int64_t arrival(const struct greedy *g, const int64_t *ends, uint32_t from, uint32_t r, uint32_t vn)
{
	int64_t end = ends[(size_t)from * g->e->m + vn];

	return end < 0 ? NEVER : end + (rank_of(g->e, from) == r ? 0 : g->c.hop * g->e->v);
}

static bool may_forward(const struct greedy *g, uint32_t r, uint32_t c)
{
	const struct lane *l = &g->lane[r];
	uint32_t cap = g->e->ask->cap, room = g->e->v == 2 && c == 0;

	if (cap && l->live + 1 + room > cap)
		return false;
	return !(g->switches & LIMIT) || c || l->inputs[0] + l->inputs[1] ||
		l->forwards[0] < 2 * (g->e->p - r) - 1;
}

static void consider(const struct greedy *g, uint32_t r, struct choice *best, uint8_t op, uint32_t stage,
	uint32_t vn, int64_t there)
{
	int64_t start = there > g->lane[r].free ? there : g->lane[r].free;
	bool preferred = op == (g->switches & PREFER_I ? HD_INS_I : HD_INS_F),
		was = best->op == (g->switches & PREFER_I ? HD_INS_I : HD_INS_F);

	if (there == NEVER)
		return;
	if (best->op && (start > best->start || (start == best->start &&
		(was > preferred || (was == preferred && stage < best->stage)))))
		return;
	*best = (struct choice){ start, op, stage, vn };
}

static struct choice choose(const struct greedy *g, uint32_t r)
{
	const struct hd_emit *e = g->e;
	const struct lane *l = &g->lane[r];
	struct choice best = { .start = NEVER };
	uint32_t last = e->p * e->v - 1;

	for (uint32_t c = 0; c < e->v; c++) {
		uint32_t s = stage_of(e, r, c), i = l->forwards[c], k = l->inputs[c];
		if (i < e->m && may_forward(g, r, c))
			consider(g, r, &best, HD_INS_F, s, i, s ? arrival(g, g->act, s - 1, r, i) : 0);
		if (k < i)
			consider(g, r, &best, HD_INS_I, s, k,
				s == last ? g->act[(size_t)s * e->m + k] : arrival(g, g->grad, s + 1, r, k));
	}
	if (l->weights && (!best.op || best.start - l->free >= (g->switches & FILL ? 1 : g->c.w ? g->c.w :
		1))) {
		const struct hd_ins *at = &g->s.list[r].at[l->pending];
		while (at->op != HD_INS_I)
			at++;
		best = (struct choice){ l->free, HD_INS_W, at->stage, at->vn };
	}
	return best;
}

static void emit(struct greedy *g, uint32_t r, struct choice x)
{
	struct hd_ilist *list = &g->s.list[r];
	struct lane *l = &g->lane[r];
	uint32_t c = x.stage >= g->e->p;
	size_t at = (size_t)x.stage * g->e->m + x.vn;

	list->at[list->len++] = (struct hd_ins){ .op = x.op, .stage = (uint16_t)x.stage, .vn = x.vn };
	if (x.op == HD_INS_F) {
		g->act[at] = l->free = x.start + g->c.f;
		l->forwards[c]++;
		l->live++;
	} else if (x.op == HD_INS_I) {
		g->grad[at] = l->free = x.start + g->c.i;
		l->inputs[c]++;
		l->weights++;
	} else {
		l->free = x.start + g->c.w;
		l->weights--;
		l->live--;
		while (list->at[l->pending].op != HD_INS_I)
			l->pending++;
		l->pending++;
	}
}

/* False: memory, or nothing can go on. */
static bool run_greedy(struct greedy *g, struct hd_arena *arena)
{
	const struct hd_emit *e = g->e;
	size_t n = (size_t)e->p * e->v * e->m;

	g->s = (struct hd_schedule){ .heading = "", .nranks = e->p, .nvns = e->m, .nstages = e->p * e->v };
	g->act = hd_arena_take(arena, n, sizeof *g->act);
	g->grad = hd_arena_take(arena, n, sizeof *g->grad);
	g->lane = hd_arena_take(arena, e->p, sizeof *g->lane);
	g->s.list = hd_arena_take(arena, e->p, sizeof *g->s.list);
	if (!g->act || !g->grad || !g->lane || !g->s.list)
		return false;
	memset(g->act, 0xff, n * sizeof *g->act);
	memset(g->grad, 0xff, n * sizeof *g->grad);
	for (uint32_t r = 0; r < e->p; r++) {
		g->s.list[r].cap = 3 * e->m * e->v;
		if (!(g->s.list[r].at = hd_arena_take(arena, g->s.list[r].cap, sizeof *g->s.list[r].at)))
			return false;
	}
	for (size_t k = 0; k < 3 * n; k++) {
		struct choice best = { .start = NEVER };
		uint32_t where = 0;
		for (uint32_t r = 0; r < e->p; r++) {
			struct choice x = choose(g, r);
			if (x.op && x.start < best.start) {
				best = x;
				where = r;
			}
		}
		if (!best.op)
			return false;
		emit(g, where, best);
	}
	return true;
}

/* ---- neighbours */

static bool may_swap(const struct hd_ins *a, const struct hd_ins *b)
{
	bool same_node = a->stage == b->stage && a->vn == b->vn, same_row = a->stage == b->stage &&
		a->op == b->op;

	return !same_node && !same_row;
}

static bool sweep(struct zb_search *x)
{
	bool changed = false;

	for (uint32_t r = 0; r < x->best.nranks; r++)
		for (uint32_t i = 0; i + 1 < x->best.list[r].len && x->left; i++) {
			struct hd_ins *at = &x->best.list[r].at[i], kept = at[0];
			struct score score;
			if (!may_swap(&at[0], &at[1]))
				continue;
			at[0] = at[1];
			at[1] = kept;
			if (judge(x, &x->best, &score) && better(score, x->score)) {
				x->score = score;
				changed = true;
			} else {
				at[1] = at[0];
				at[0] = kept;
			}
		}
	return changed && x->left;
}

static enum hd_err hand_over(struct zb_search *x)
{
	struct hd_emit *e = x->e;

	if (!x->found)
		return hd_fail(e->diag, HD_E_INVAL,
			"%s: no schedule of p = %u, m = %u holds at most %u "
			"chunks of activations on each rank; the nearest that works: %u",
			e->ask->name, e->p, e->m, e->ask->cap, x->least_peak);
	for (uint32_t r = 0; r < e->p; r++) {
		struct hd_ilist *to = &e->schedule->list[r];
		const struct hd_ilist *from = &x->best.list[r];
		assert(from->len <= to->cap);
		memcpy(to->at, from->at, from->len * sizeof *from->at);
		to->len = from->len;
	}
	return HD_OK;
}

static enum hd_err all(struct hd_emit *e)
{
	static const char *const closed[2][3] = { { "1f1b", "zb-h1", "zb-h2" },
		{ "zb-v", "v-half", "v-min" } };
	const struct hd_rank_costs c = e->ask->costs;
	struct zb_search x = { .e = e, .costs = c.f || c.i || c.w ? c : HD_UNIT_COSTS,
		.least_peak = UINT32_MAX,
		.left = SEARCH_INS };

	hd_arena_init(&x.scratch, 0);
	for (int k = 0; k < 3; k++) {
		struct hd_schedule s;
		if (!hd_schedule_make(&s, &(struct hd_schedule_ask){ .name = closed[e->v - 1][k], .p = e->p,
			.m = e->m }, e->arena, NULL))
			offer(&x, &s);
	}
	for (unsigned switches = 0; switches < SWITCHES; switches++) {
		struct greedy g = { .e = e, .c = x.costs, .switches = switches };
		if (run_greedy(&g, e->arena))
			offer(&x, &g.s);
	}
	for (int k = 0; k < SWEEPS && x.found && sweep(&x); k++)
		;
	hd_arena_finish(&x.scratch);
	return hand_over(&x);
}

static enum hd_err limits(const struct hd_emit *e)
{
	uint64_t work = (uint64_t)e->p * e->p * e->v * e->m * 3;

	if (work > GREEDY_MOST)
		return hd_fail(e->diag, HD_E_INVAL,
			"%s searches at most p * p * v * m * 3 = %d; p = %u, m = %u, v = %u make %llu: take "
			"zb-h2 or zb-v",
			e->ask->name, GREEDY_MOST, e->p, e->m, e->v, (unsigned long long)work);
	if (e->ask->costs.f < 0 || e->ask->costs.i < 0 || e->ask->costs.w < 0 || e->ask->costs.hop < 0)
		return hd_fail(e->diag, HD_E_INVAL, "costs are 0 or more");
	return HD_OK;
}

const struct hd_schedule_maker hd_make_zb_auto = { HD_PLACE_V, true, limits, NULL, all };
