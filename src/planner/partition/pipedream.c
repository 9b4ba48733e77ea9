#include "planner/pipedream.h"

#include <string.h>

/* Patterns repeat after a round of all replicas and after as many minibatches as are under way: a third
 * holds both, whole. */
enum { ROUNDS = 4 };

/* The buckets of all stages: bucket b is cuts [first[b], first[b + 1]), of stage of[b]. */
struct buckets { uint32_t *first, *of, n; };

struct pipedream_maker {
	const struct hd_pd_stage *stage;
	uint32_t nstages, nranks, nvns, round;
	struct buckets b;
	uint32_t *begin;                          /* [nstages + 1] first bucket of each */
};

/* The top split of a partition as stages; `stage` has room for split->nstages. */
static void stages_of(struct hd_pd_stage *stage, const struct hd_part_split *split)
{
	for (uint32_t i = 0; i < split->nstages; i++)
		stage[i] = (struct hd_pd_stage){ split->stage[i].first, split->stage[i].last + 1,
			split->stage[i].replicas };
}

/* A bucket ends where its weights are enough and what is left is a stage still. Stages that are not
 * replicated are one. */
static bool find_buckets(struct pipedream_maker *m, const struct hd_cut_sums *sums, struct hd_arena *arena)
{
	uint32_t n = sums->cuts->n;

	m->b.first = hd_arena_take(arena, (size_t)n + 1, sizeof *m->b.first);
	m->b.of = hd_arena_take(arena, (size_t)n + 1, sizeof *m->b.of);
	m->begin = hd_arena_take(arena, (size_t)m->nstages + 1, sizeof *m->begin);
	if (!m->b.first || !m->b.of || !m->begin)
		return false;
	for (uint32_t s = 0; s < m->nstages; s++) {
		uint32_t at = m->stage[s].first, last = m->stage[s].last;
		m->begin[s] = m->b.n;
		for (uint32_t cut = at + 1; m->stage[s].replicas > 1 && cut < last; cut++)
			if (hd_cut_sums_is_stage(sums, at, cut) && hd_cut_sums_is_stage(sums, cut, last) &&
			    hd_cut_sums_range(sums, at, cut).param >= HD_PD_BUCKET) {
				m->b.of[m->b.n] = s;
				m->b.first[m->b.n++] = at;
				at = cut;
			}
		m->b.of[m->b.n] = s;
		m->b.first[m->b.n++] = at;
	}
	m->begin[m->nstages] = m->b.n;
	return true;
}

static uint32_t common(uint32_t a, uint32_t b)
{
	uint32_t x = a, y = b;

	while (y) {
		uint32_t rest = x % y;
		x = y;
		y = rest;
	}
	return (uint64_t)a / x * b > HD_PD_MINIBATCHES ? 0 : a / x * b;
}

static void put(struct hd_ilist *l, uint8_t op, uint32_t stage, uint32_t vn)
{
	l->at[l->len++] = (struct hd_ins){ .op = op, .stage = (uint16_t)stage, .vn = vn,
		.ver = op == HD_INS_STEP ? HD_VER_RULE : 0 };
}

static void forward(const struct pipedream_maker *m, struct hd_ilist *l, uint32_t s, uint32_t vn,
	bool updated)
{
	for (uint32_t b = m->begin[s]; b < m->begin[s + 1]; b++) {
		if (updated)
			put(l, HD_INS_STEP, b, 0);
		put(l, HD_INS_F, b, vn);
	}
}

static void backward(const struct pipedream_maker *m, struct hd_ilist *l, uint32_t s, uint32_t vn)
{
	for (uint32_t b = m->begin[s + 1]; b-- > m->begin[s];) {
		put(l, HD_INS_B, b, vn);
		if (m->stage[s].replicas > 1)
			put(l, HD_INS_RED, b, 0);
	}
}

/* Rule 1. An update waits where the next forward begins, or at the end. */
static bool make_list(const struct pipedream_maker *m, struct hd_ilist *l, uint32_t s, uint32_t q,
	uint32_t before,
	struct hd_arena *arena)
{
	uint32_t r = m->stage[s].replicas, own = m->nvns / r, ahead = (m->nranks - 1 - before) / r, begun = 0,
		ended = 0;

	l->cap = own * (m->begin[s + 1] - m->begin[s]) * 4;
	if (!(l->at = hd_arena_take(arena, (size_t)l->cap + 1, sizeof *l->at)))
		return false;
	for (bool updated = false; ended < own; updated = true) {
		while (begun < own && begun <= ended + ahead) {
			forward(m, l, s, q + begun++ * r, updated);
			updated = false;
		}
		backward(m, l, s, q + ended++ * r);
		if (begun == own)
			for (uint32_t b = m->begin[s]; b < m->begin[s + 1]; b++)
				put(l, HD_INS_STEP, b, 0);
	}
	return true;
}

static enum hd_err make_schedule(struct hd_schedule *out, const struct pipedream_maker *m,
	struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_schedule s = { .heading = "pipedream", .nranks = m->nranks,
		.list = hd_arena_take(arena, m->nranks, sizeof *s.list) };
	uint32_t rank = 0;

	for (uint32_t k = 0; s.list && k < m->nstages; k++)
		for (uint32_t q = 0, before = rank; q < m->stage[k].replicas; q++, rank++)
			if (!make_list(m, &s.list[rank], k, q, before, arena))
				return hd_fail(diag, HD_E_NOMEM, "no memory for %u minibatches", m->nvns);
	if (!s.list)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u ranks", m->nranks);
	*out = s;
	return hd_schedule_infer(out, arena, diag);
}

/* When the first n minibatches have left the first bucket's backward. */
static int64_t all_done(const struct hd_pd_run *run, uint32_t n)
{
	int64_t latest = 0;

	for (uint32_t r = 0; r < run->sim.ran.nranks; r++)
		for (uint32_t i = 0; i < run->sim.ran.list[r].len; i++) {
			const struct hd_ins *ins = &run->sim.ran.list[r].at[i];
			if (ins->op == HD_INS_B && ins->stage == 0 && ins->vn < n &&
				run->sim.span[r][i].end > latest)
				latest = run->sim.span[r][i].end;
		}
	return latest;
}

enum hd_err hd_pd_run(struct hd_pd_run *out, const struct hd_cut_sums *sums, const struct hd_pd_stage *stage,
	uint32_t nstages,
	const struct hd_cluster *cluster, struct hd_arena *arena, struct hd_diag *diag)
{
	struct pipedream_maker m = { .stage = stage, .nstages = nstages, .round = 1 };
	struct hd_pd_run run = { 0 };

	for (uint32_t s = 0; s < nstages; s++) {
		m.nranks += stage[s].replicas;
		m.round = m.round ? common(m.round, stage[s].replicas) : 0;
	}
	uint32_t third = m.round ? common(m.round, m.nranks) * ROUNDS : 0;
	m.nvns = 3 * third;
	if (m.nvns == 0 || m.nvns > HD_PD_MINIBATCHES)
		return hd_fail(diag, HD_E_INVAL,
			"the replicas of %u stages have no common round below %d minibatches", nstages,
			HD_PD_MINIBATCHES / 3 / ROUNDS);
	if (m.nranks != cluster->ndevices)
		return hd_fail(diag, HD_E_INVAL, "a partition over %u devices, a cluster of %u", m.nranks,
			cluster->ndevices);
	if (!find_buckets(&m, sums, arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the buckets of %u stages", nstages);
	struct hd_stage_rule *rule = hd_arena_take(arena, m.b.n, sizeof *rule);
	if (!rule)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u buckets", m.b.n);
	for (uint32_t b = 0, before = 0, s = 0; b < m.b.n; b++) {
		for (; s < m.b.of[b]; s++)
			before += stage[s].replicas;
		rule[b] = (struct hd_stage_rule){ stage[s].replicas,
			(m.nranks - 1 - before) / stage[s].replicas };
	}
	const struct hd_schedule_job job = { .rule = rule };
	const struct hd_sim_setting set = { .costs = &run.costs, .cluster = cluster, .job = &job,
		.spans = true };
	enum hd_err err = hd_stage_costs_make(&run.costs, sums, m.b.first, m.b.n, arena, diag);
	err = err ? err : make_schedule(&run.schedule, &m, arena, diag);
	err = err ? err : hd_sim_plan(&run.sim, &run.schedule, &set, arena, diag);
	if (err)
		return err;
	int64_t took = all_done(&run, 2 * third) - all_done(&run, third);
	run.rate = took > 0 ? (double)third / hd_sim_plan_s(&run.sim, took) : 0;
	*out = run;
	return HD_OK;
}

/* ---- the ways */

const char *const hd_pd_way_names[HD_NPD_WAYS] = {
#define X(id, name, about) name,
	HD_PD_WAYS(X)
#undef X
};

static enum hd_err split_of(struct hd_part_split *out, enum hd_pd_way way, const struct hd_cuts *cuts,
	const struct hd_cluster *cluster,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_cluster_level *top = &cluster->level[cluster->nlevels - 1];
	struct hd_part_how how = { .variant = HD_PART_PAPER, .nlevels = 1,
		.level = { { cluster->ndevices, top->bytes_per_s } },
		.straight = way == HD_PD_STRAIGHT };
	struct hd_partition part;

	if (way == HD_PD_DATA) {
		*out = (struct hd_part_split){ 1, 0, hd_arena_take(arena, 1, sizeof *out->stage) };
		if (!out->stage)
			return hd_fail(diag, HD_E_NOMEM, "no memory for a stage");
		out->stage[0] = (struct hd_part_stage){ 0, cuts->n - 1, cluster->ndevices, NULL };
		return HD_OK;
	}
	if (way == HD_PD_SHARED)
		how.level[0].bytes_per_s /= (double)(cluster->ndevices / top->components);
	enum hd_err err = hd_part_solve(&part, cuts, &how, arena, diag);
	if (!err)
		*out = part.top;
	return err;
}

/* What a way cannot do (too few cuts, no common round) is reported; any other failure ends the search. */
enum hd_err hd_pd_choose(struct hd_pd_choice *out, const struct hd_cut_sums *sums,
	const struct hd_cluster *cluster, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_pd_choice c = { .best = HD_PD_DATA };

	for (int w = 0; w < HD_NPD_WAYS; w++) {
		struct hd_diag why = { "" };
		struct hd_pd_run run;
		enum hd_err err = split_of(&c.way[w].split, (enum hd_pd_way)w, sums->cuts, cluster, arena,
			&why);
		struct hd_pd_stage *stage = err ? NULL : hd_arena_take(arena, c.way[w].split.nstages,
			sizeof *stage);
		if (!err && !stage)
			err = hd_fail(&why, HD_E_NOMEM, "no memory for %u stages", c.way[w].split.nstages);
		if (!err) {
			stages_of(stage, &c.way[w].split);
			err = hd_pd_run(&run, sums, stage, c.way[w].split.nstages, cluster, arena, &why);
		}
		if (err && (err != HD_E_INVAL || w == HD_PD_DATA))
			return hd_fail(diag, err, "%s: %s", hd_pd_way_names[w], why.text);
		c.way[w].made = !err;
		c.way[w].why = err ? hd_arena_text(arena, why.text, strlen(why.text)) : "";
		c.way[w].rate = err ? 0 : run.rate;
		if (c.way[w].rate > c.way[c.best].rate)
			c.best = (enum hd_pd_way)w;
	}
	*out = c;
	return HD_OK;
}
