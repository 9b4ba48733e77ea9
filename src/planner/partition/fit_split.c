#include "planner/fit_split.h"

#include "pipeline/sim_plan.h"

/* How many of each kind of byte a stage's rank holds at once. */
struct held { int64_t param, saved, in, out; };

struct fit {
	const struct hd_schedule *s;
	const struct hd_cut_sums *sums;
	const struct hd_schedule_rules *rules;
	struct held *held;                        /* [stages] */
	uint32_t *share;                          /* [stages] stages on its rank */
	uint32_t ncuts;
	struct hd_arena *arena;
	struct hd_diag *diag;
};

static enum hd_err no_memory(struct fit *f) { return hd_fail(f->diag, HD_E_NOMEM,
	"no memory to look for a split"); }

static enum hd_err simulate(struct fit *f, const struct hd_stage_costs *costs, struct hd_sim_plan *sim)
{
	const struct hd_sim_setting set = { .costs = costs, .transport = f->rules->transport,
		.credits = f->rules->credits };

	return hd_sim_plan(sim, f->s, &set, f->arena, f->diag);
}

static uint32_t rank_of(const struct fit *f, uint32_t stage) { return f->s->place[stage] < f->s->nranks ?
	f->s->place[stage] : 0; }

/* One byte of one kind on one stage of each rank at a time: `chunk` says which of its stages. */
static enum hd_err count_kind(struct fit *f, struct hd_stage_cost *cost, int kind, uint32_t chunk,
	const uint32_t *order)
{
	struct hd_stage_costs costs = { .nstages = f->s->nstages, .stage = cost, .ovl = 1, .comm_tax = 1 };
	struct hd_sim_plan sim;

	for (uint32_t s = 0; s < f->s->nstages; s++) {
		cost[s] = (struct hd_stage_cost){ .f = 1, .i = 1, .w = 1, .r = 1 };
		if (order[s] == chunk) {
			cost[s].param = kind == 0;
			cost[s].saved = cost[s].saved_w = kind == 1;
		}
		/* what leaves a stage enters the next: both sides are counted together */
		cost[s].in = kind == 2 && s > 0;
		cost[s].out = kind == 2 && s + 1 < f->s->nstages;
	}
	enum hd_err err = simulate(f, &costs, &sim);
	for (uint32_t s = 0; !err && s < f->s->nstages; s++) {
		int64_t peak = sim.rank[rank_of(f, s)].peak;
		if (kind == 2)
			f->held[s].in = f->held[s].out = peak;
		else if (order[s] == chunk)
			*(kind == 0 ? &f->held[s].param : &f->held[s].saved) = peak;
	}
	return err;
}

static enum hd_err count_kinds(struct fit *f)
{
	uint32_t n = f->s->nstages, most = 0;
	struct hd_stage_cost *cost = hd_arena_take(f->arena, (size_t)n + 1, sizeof *cost);
	uint32_t *order = hd_arena_take(f->arena, (size_t)n + 1, sizeof *order),
		*on = hd_arena_take(f->arena, (size_t)f->s->nranks + 1, sizeof *on);
	enum hd_err err = HD_OK;

	f->held = hd_arena_take(f->arena, (size_t)n + 1, sizeof *f->held);
	f->share = hd_arena_take(f->arena, (size_t)n + 1, sizeof *f->share);
	if (!cost || !order || !on || !f->held || !f->share)
		return no_memory(f);
	for (uint32_t s = 0; s < n; s++) {
		order[s] = on[rank_of(f, s)]++;
		most = order[s] + 1 > most ? order[s] + 1 : most;
	}
	for (uint32_t s = 0; s < n; s++)
		f->share[s] = on[rank_of(f, s)];
	for (uint32_t chunk = 0; chunk < most && !err; chunk++)
		for (int kind = 0; kind < 2 && !err; kind++)
			err = count_kind(f, cost, kind, chunk, order);
	return err ? err : count_kind(f, cost, 2, 0, order);
}

static int64_t need(const struct fit *f, uint32_t stage, uint32_t first, uint32_t last)
{
	const struct hd_stage_cost c = hd_cut_sums_range(f->sums, first, last);
	const struct held *h = &f->held[stage];
	int64_t io = c.in > c.out ? c.in : c.out;

	return c.param * h->param + c.opt + c.work + c.saved * h->saved + io * h->in;
}

/* The split that fits `memory`, or false. */
static bool fill(const struct fit *f, int64_t memory, uint32_t *first)
{
	uint32_t at = 0, n = f->s->nstages;

	for (uint32_t s = 0; s < n; s++) {
		uint32_t best = at, most = f->ncuts - (n - 1 - s);
		first[s] = at;
		for (uint32_t last = s + 1 == n ? f->ncuts : at + 1; last <= most; last++)
			if (hd_cut_sums_is_stage(f->sums, at, last) &&
				need(f, s, at, last) <= memory / f->share[s])
				best = last;
		if (best == at)
			return false;
		at = best;
	}
	return at == f->ncuts;
}

static enum hd_err peak_of(struct fit *f, const uint32_t *first, int64_t *peak)
{
	struct hd_stage_costs costs;
	struct hd_sim_plan sim;
	enum hd_err err = hd_stage_costs_make(&costs, f->sums, first, f->s->nstages, f->arena, f->diag);

	err = err ? err : simulate(f, &costs, &sim);
	*peak = 0;
	for (uint32_t r = 0; !err && r < sim.ran.nranks; r++)
		*peak = sim.rank[r].peak > *peak ? sim.rank[r].peak : *peak;
	return err;
}

/* The least that fill() is content with, to within 1/256; from `low` on. */
static bool least(const struct fit *f, int64_t low, uint32_t *first)
{
	int64_t high = low;

	while (!fill(f, high, first)) {
		if (high > INT64_MAX / 4)
			return false;
		low = high;
		high *= 2;
	}
	while (high - low > high / 256) {
		int64_t middle = low + (high - low) / 2;
		if (fill(f, middle, first))
			high = middle;
		else
			low = middle;
	}
	return fill(f, high, first);
}

enum { TRIES = 8 };

/* Aims lower while the simulated peak stays above; keeps the best. */
static enum hd_err aim(struct fit *f, int64_t memory, struct hd_split_fit *best)
{
	uint32_t n = f->s->nstages, *first = hd_arena_take(f->arena, (size_t)n + 1, sizeof *first);
	int64_t target = memory, peak;
	enum hd_err err = HD_OK;

	if (!first)
		return no_memory(f);
	for (int i = 0; i < TRIES && !err && best->memory > memory; i++) {
		if (!fill(f, target, first) && (i || !least(f, target, first)))
			break;
		err = peak_of(f, first, &peak);
		if (err || peak >= best->memory)
			continue;
		for (uint32_t s = 0; s < n; s++)
			best->first[s] = first[s];
		best->memory = peak;
		target = (int64_t)((double)target * ((double)memory / (double)peak) * 0.98);
	}
	return err;
}

enum hd_err hd_fit_split(struct hd_split_fit *fit, const struct hd_schedule *s,
	const struct hd_cut_sums *sums,
	const struct hd_schedule_rules *rules,
	int64_t memory, struct hd_arena *arena, struct hd_diag *diag)
{
	struct fit f = { .s = s, .sums = sums, .rules = rules, .ncuts = sums->cuts->n, .arena = arena,
		.diag = diag };
	struct hd_split_fit best = { hd_arena_take(arena, (size_t)s->nstages + 1, sizeof *best.first),
		INT64_MAX };

	memory = memory > 0 ? memory : 1;
	if (!best.first)
		return no_memory(&f);
	if (s->nstages == 0 || s->nstages > f.ncuts)
		return hd_fail(diag, HD_E_NOTFOUND, "%u stages of %u cuts", s->nstages, f.ncuts);
	enum hd_err err = count_kinds(&f);
	err = err ? err : aim(&f, memory, &best);
	if (!err && best.memory == INT64_MAX)
		err = hd_fail(diag, HD_E_NOTFOUND, "no split into %u stages was found, whatever the memory",
			s->nstages);
	if (!err)
		*fit = (struct hd_split_fit){ best.first, best.memory > memory ? best.memory : memory };
	return err;
}
