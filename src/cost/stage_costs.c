#include "cost/stage_costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define PS_PER_NS INT64_C(1000)

static int64_t ps_per_bytes(double ns_per_byte, int64_t bytes) { return llround(ns_per_byte *
	(double)(bytes * PS_PER_NS)); }

/* What a node adds to a stage; `kept` without the stage's input. */
static struct hd_stage_cost of_node(const struct hd_profile *p, const struct hd_profile_node *n)
{
	return (struct hd_stage_cost){
		.f = n->f.p50_ns * PS_PER_NS, .i = n->i.p50_ns * PS_PER_NS, .w = n->w.p50_ns * PS_PER_NS,
		.r = n->recompute_ok ? (n->r_ns < 0 ? n->f.p50_ns : n->r_ns) * PS_PER_NS : 0,
		.saved = n->saved, .saved_w = (int64_t)((double)n->saved * n->act_w),
		.kept = n->recompute_ok ? 0 : n->saved,
		.param = n->param, .opt = n->opt, .step = ps_per_bytes(p->step_ns_per_byte, n->param),
		.add = ps_per_bytes(p->sum_ns_per_byte, n->param),
	};
}

static void add(struct hd_stage_cost *to, const struct hd_stage_cost *x, int64_t times)
{
	to->f += times * x->f;
	to->i += times * x->i;
	to->w += times * x->w;
	to->r += times * x->r;
	to->saved += times * x->saved;
	to->saved_w += times * x->saved_w;
	to->kept += times * x->kept;
	to->param += times * x->param;
	to->opt += times * x->opt;
	to->step += times * x->step;
	to->add += times * x->add;
}

static bool in_range(const struct hd_cuts *c, uint32_t v, uint32_t first, uint32_t last)
{
	uint32_t home = c->home[v];

	return home != HD_NO_NODE && hd_cuts_ran(c, last - 1, home) &&
		!(first && hd_cuts_ran(c, first - 1, home));
}

/* ---- sums up to each cut: from one cut to the next, only what differs */

static bool add_up(struct hd_cut_sums *s, struct hd_arena *arena)
{
	const struct hd_cuts *c = s->cuts;
	struct hd_stage_cost *of_home = hd_arena_take(arena, (size_t)c->nnodes + 1, sizeof *of_home);

	s->upto = hd_arena_take(arena, c->n, sizeof *s->upto);
	if (!of_home || !s->upto)
		return false;
	for (uint32_t v = 0; v < s->profile->nnodes; v++)
		if (c->home[v] != HD_NO_NODE) {
			const struct hd_stage_cost one = of_node(s->profile, &s->profile->node[v]);
			add(&of_home[c->home[v]], &one, 1);
		}
	for (uint32_t j = 0; j < c->n; j++) {
		if (j)
			s->upto[j] = s->upto[j - 1];
		for (uint32_t w = 0; w < c->ran_words; w++) {
			uint64_t now = c->ran[(size_t)j * c->ran_words + w],
				before = j ? c->ran[(size_t)(j - 1) * c->ran_words + w] : 0;
			for (uint64_t left = now ^ before; left; left &= left - 1) {
				uint32_t bit = (uint32_t)__builtin_ctzll(left);
				add(&s->upto[j], &of_home[w * 64 + bit], now >> bit & 1 ? 1 : -1);
			}
		}
	}
	return true;
}

struct by_size { int64_t size; uint32_t node; };

static int larger_first(const void *a, const void *b)
{
	const struct by_size *x = a, *y = b;

	return x->size != y->size ? (x->size < y->size) - (x->size > y->size) :
		(x->node > y->node) - (x->node < y->node);
}

static bool sort_by_work(struct hd_cut_sums *s, struct hd_arena *arena)
{
	struct by_size *list = hd_arena_take(arena, s->profile->nnodes, sizeof *list);

	s->by_work = hd_arena_take(arena, s->profile->nnodes, sizeof *s->by_work);
	if (!list || !s->by_work)
		return false;
	for (uint32_t v = 0; v < s->profile->nnodes; v++)
		if (s->profile->node[v].work > 0 && s->cuts->home[v] != HD_NO_NODE)
			list[s->nwork++] = (struct by_size){ s->profile->node[v].work, v };
	qsort(list, s->nwork, sizeof *list, larger_first);
	for (uint32_t k = 0; k < s->nwork; k++)
		s->by_work[k] = list[k].node;
	return true;
}

static struct hd_cut_twins *twins_of(struct hd_cut_sums *s, const char *name)
{
	uint32_t g = 0;

	while (g < s->ntwins && strcmp(s->twins[g].name, name) != 0)
		g++;
	if (g == s->ntwins)
		s->twins[s->ntwins++].name = name;
	return &s->twins[g];
}

/* Two rounds: sizes, then members. */
static bool find_twins(struct hd_cut_sums *s, struct hd_arena *arena)
{
	const struct hd_profile *p = s->profile;
	uint32_t tied = 0;

	for (uint32_t v = 0; v < p->nnodes; v++)
		tied += *p->node[v].tied != 0;
	if (!(s->twins = hd_arena_take(arena, (size_t)tied + 1, sizeof *s->twins)))
		return false;
	for (int round = 0; round < 2; round++) {
		for (uint32_t v = 0; v < p->nnodes; v++)
			if (*p->node[v].tied && s->cuts->home[v] != HD_NO_NODE) {
				struct hd_cut_twins *t = twins_of(s, p->node[v].tied);
				if (round)
					t->node[t->n] = v;
				t->n++;
			}
		for (uint32_t g = 0; g < s->ntwins && !round; g++) {
			if (!(s->twins[g].node = hd_arena_take(arena, s->twins[g].n,
				sizeof *s->twins[g].node)))
				return false;
			s->twins[g].n = 0;
		}
	}
	return true;
}

/* Rates times weights, and spreads, are not among the sums that the profile keeps within 2^53: whether all
 * together stay within 2^62 ps. */
static enum hd_err check_counted(const struct hd_profile *p, struct hd_diag *diag)
{
	struct { const char *what; double ps; } all[] = { { "optimizer", 0 }, { "sum", 0 }, { "mean", 0 },
		{ "sd", 0 } };
	int64_t fits;

	for (uint32_t v = 0; v < p->nnodes; v++) {
		const struct hd_profile_cost *of[] = { &p->node[v].f, &p->node[v].i, &p->node[v].w };
		all[0].ps += p->step_ns_per_byte * (double)p->node[v].param * (double)PS_PER_NS;
		all[1].ps += p->sum_ns_per_byte * (double)p->node[v].param * (double)PS_PER_NS;
		for (int k = 0; k < 3; k++) {
			all[2].ps += (double)of[k]->mean_ns * (double)PS_PER_NS;
			all[3].ps += (double)of[k]->sd_ns * (double)PS_PER_NS;
		}
	}
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		if (!hd_i64_from_f64(all[k].ps, &fits))
			return hd_fail(diag, HD_E_INPUT,
				"the profile's times \"%s\" add up to %.3g s over all nodes; times are "
				"counted up to 2^62 ps "
				"(53 days)", all[k].what, all[k].ps / 1e12);
	return HD_OK;
}

enum hd_err hd_cut_sums_make(struct hd_cut_sums *sums, const struct hd_profile *profile,
	const struct hd_cuts *cuts, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_cut_sums s = { .profile = profile, .cuts = cuts };
	enum hd_err err = check_counted(profile, diag);

	if (err)
		return err;
	if (!add_up(&s, arena) || !sort_by_work(&s, arena) || !find_twins(&s, arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the costs of %u cuts", cuts->n);
	*sums = s;
	return HD_OK;
}

/* ---- ranges */

bool hd_cut_sums_is_stage(const struct hd_cut_sums *sums, uint32_t first, uint32_t last)
{
	return first < last && last <= sums->cuts->n && (first == 0 ||
		hd_cuts_precede(sums->cuts, first - 1, last - 1));
}

struct hd_stage_cost hd_cut_sums_node(const struct hd_cut_sums *sums, uint32_t node)
{
	const struct hd_profile_node *n = &sums->profile->node[node];
	struct hd_stage_cost x = { 0 };

	if (sums->cuts->home[node] == HD_NO_NODE)
		return x;
	x = of_node(sums->profile, n);
	for (uint32_t g = 0; g < sums->ntwins && *n->tied; g++)
		if (!strcmp(sums->twins[g].name, n->tied) && sums->twins[g].node[0] != node)
			x.param = x.opt = x.step = x.add = 0;
	return x;
}

struct hd_stage_cost hd_cut_sums_range(const struct hd_cut_sums *sums, uint32_t first, uint32_t last)
{
	const struct hd_cuts *c = sums->cuts;
	struct hd_stage_cost x = sums->upto[last - 1];

	if (first)
		add(&x, &sums->upto[first - 1], -1);
	for (uint32_t k = 0; k < sums->nwork && x.work == 0; k++)
		if (in_range(c, sums->by_work[k], first, last))
			x.work = sums->profile->node[sums->by_work[k]].work;
	for (uint32_t g = 0; g < sums->ntwins; g++) {
		bool once = false;
		for (uint32_t k = 0; k < sums->twins[g].n; k++) {
			uint32_t v = sums->twins[g].node[k];
			if (!in_range(c, v, first, last))
				continue;
			const struct hd_stage_cost twin = of_node(sums->profile, &sums->profile->node[v]);
			const struct hd_stage_cost weights = { .param = twin.param, .opt = twin.opt,
				.step = twin.step, .add = twin.add };
			if (once)
				add(&x, &weights, -1);
			once = true;
		}
	}
	x.in = first ? c->out[first - 1] : 0;
	x.out = last < c->n ? c->out[last - 1] : 0;
	x.kept += x.in;
	return x;
}

/* ---- the stages of a plan */

static void spread(struct hd_stage_cost *to, const struct hd_profile_node *n, double var[3])
{
	const struct hd_profile_cost *from[] = { &n->f, &n->i, &n->w };
	struct hd_spread *of[] = { &to->of_f, &to->of_i, &to->of_w };

	for (int k = 0; k < 3; k++) {
		of[k]->mean += (from[k]->n ? from[k]->mean_ns : from[k]->p50_ns) * PS_PER_NS;
		var[k] += from[k]->n ? (double)from[k]->sd_ns * (double)from[k]->sd_ns : 0;
	}
}

/* Nodes vary independently: variances add, in the order of the profile. */
static void add_spreads(struct hd_stage_cost *to, const struct hd_cut_sums *s, uint32_t first, uint32_t last)
{
	double var[3] = { 0 };

	for (uint32_t v = 0; v < s->profile->nnodes; v++)
		if (in_range(s->cuts, v, first, last))
			spread(to, &s->profile->node[v], var);
	to->of_f.sd = llround(sqrt(var[0]) * (double)PS_PER_NS);
	to->of_i.sd = llround(sqrt(var[1]) * (double)PS_PER_NS);
	to->of_w.sd = llround(sqrt(var[2]) * (double)PS_PER_NS);
}

static bool add_tied(struct hd_stage_costs *c, const struct hd_cut_sums *s, const uint32_t *first,
	struct hd_arena *arena)
{
	c->tied = hd_arena_take(arena, (size_t)s->ntwins + 1, sizeof *c->tied);
	if (!c->tied)
		return false;
	for (uint32_t g = 0; g < s->ntwins; g++) {
		struct hd_tied_group *t = &c->tied[c->ntied];
		*t = (struct hd_tied_group){ s->twins[g].name, s->profile->node[s->twins[g].node[0]].param, 0,
			hd_arena_take(arena, c->nstages, sizeof *t->holds) };
		if (!t->holds)
			return false;
		for (uint32_t stage = 0; stage < c->nstages; stage++) {
			uint32_t last = stage + 1 < c->nstages ? first[stage + 1] : s->cuts->n;
			for (uint32_t k = 0; k < s->twins[g].n; k++)
				t->holds[stage] |= in_range(s->cuts, s->twins[g].node[k], first[stage], last);
			t->nstages += t->holds[stage];
		}
		c->ntied += t->nstages > 1;
	}
	return true;
}

enum hd_err hd_stage_costs_make(struct hd_stage_costs *costs, const struct hd_cut_sums *sums,
	const uint32_t *first, uint32_t nstages,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_profile *p = sums->profile;
	struct hd_stage_costs c = { .nstages = nstages, .ovl = p->ovl > 0 ? p->ovl : 1,
		.comm_tax = p->comm_tax > 1 ? p->comm_tax : 1,
		.stage = hd_arena_take(arena, nstages, sizeof *c.stage) };
	uint32_t n = sums->cuts->n;

	if (nstages == 0 || first[0] != 0)
		return hd_fail(diag, HD_E_INVAL, "stages begin at cut 0 and are at least one");
	for (uint32_t s = 0; s < nstages && c.stage; s++) {
		uint32_t last = s + 1 < nstages ? first[s + 1] : n;
		if (last <= first[s] || last > n)
			return hd_fail(diag, HD_E_INVAL,
				"stage %u has cuts %u to %u of %u: there is no node in it", s, first[s], last,
				n);
		if (!hd_cut_sums_is_stage(sums, first[s], last))
			return hd_fail(diag, HD_E_INVAL,
				"stage %u: cut %u (%s) does not come before cut %u (%s), they are on two "
				"branches", s, first[s] - 1,
				sums->cuts->name[first[s] - 1], last - 1, sums->cuts->name[last - 1]);
		c.stage[s] = hd_cut_sums_range(sums, first[s], last);
		add_spreads(&c.stage[s], sums, first[s], last);
	}
	if (!c.stage || !add_tied(&c, sums, first, arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the costs of %u stages", nstages);
	*costs = c;
	return HD_OK;
}
