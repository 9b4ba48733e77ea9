/* 2BW's planner against nested loops that write the paper's formulas out for uniform models, and by its
 * rules. */
#include "planner/two_bw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/generate.h"
#include "pipeline/simulate.h"
#include "tests/planning.h"
#include "tests/check.h"

enum { BLOCKS = 24 };

/* A chain of equal blocks: T seconds forward and backward, `param`, `saved` and `out` bytes each. */
struct equal_block { int64_t ns, param, saved, out; };

static struct hd_cut_sums chain(uint32_t n, const struct equal_block *block, bool same)
{
	struct hd_profile *p = hd_arena_take(&arena, 1, sizeof *p);
	struct hd_cuts *cuts = hd_arena_take(&arena, 1, sizeof *cuts);
	struct hd_cut_sums sums;

	*p = hd_chain_profile(n);
	for (uint32_t i = 0; i < n; i++) {
		const struct equal_block *b = &block[same ? 0 : i];
		struct hd_profile_node *node = &p->node[i];
		node->f.p50_ns = node->i.p50_ns = node->w.p50_ns = b->ns / 3;
		node->out[0] = b->out;
		node->param = b->param;
		node->saved = b->saved;
	}
	hd_sums_of(&sums, cuts, p, (struct hd_cuts_how){ 0 });
	CHECK(cuts->n == n, "%u cuts", cuts->n);
	return sums;
}

static struct hd_cluster cluster(uint32_t servers, uint32_t per_server, double inner, double outer,
	int64_t memory)
{
	const struct hd_cluster_level level[2] = { { "server", per_server, inner, 0 },
		{ "cluster", servers, outer, 0 } };
	struct hd_cluster c;
	struct hd_diag diag = { "" };

	CHECK(hd_cluster_make(&c, level, 2, (struct hd_cluster_kind){ "v100", 1, memory }, &arena,
		&diag) == HD_OK, "%s", diag.text);
	return c;
}

struct brute_best { uint32_t p, d; bool recompute; double time, need, least; };

/* The formulas as the paper prints them, of BLOCKS equal blocks and p that divides them. */
static struct brute_best brute(const struct equal_block *b, uint32_t servers, uint32_t per, double inner,
	double outer,
	uint32_t vns, double memory)
{
	struct brute_best best = { .least = INFINITY };

	for (int r = 0; r < 2; r++)
		for (uint32_t p = 1; p <= BLOCKS; p++)
			for (uint32_t d = 1; p * d <= servers * per; d++) {
				if (BLOCKS % p || vns % d || vns / d < p)
					continue;
				double w = (double)b->param * BLOCKS, a = (double)b->saved * BLOCKS,
					in = p > 1 ? (double)b->out : 0, c = r ? 4. / 3 : 1;
				double need = r ? 2 * w / p + a / p + p * in : 2 * w / p + p * a / p + p * in;
				double width = d <= per ? inner : outer, depth = p * d <= per ? inner : outer,
					m = vns / d;
				double sum = 2. * (d - 1) / d * w / p / width,
					time = c * (double)b->ns * 1e-9 * BLOCKS / p;
				/* a stage with two neighbours, where there is one */
				time = p == 1 ? BLOCKS * fmax(time / BLOCKS, sum / BLOCKS / m) :
					fmax(time + 2 * (p > 2 ? 2 : 1) * in / depth, sum / m);
				best.least = need < best.least ? need : best.least;
				if (need > memory)
					continue;
				bool win = !best.p || time / d < best.time / best.d * (1 - 1e-12);
				bool tie = best.p && !win && time / d < best.time / best.d * (1 + 1e-12);
				if (win || (tie && r == best.recompute &&
					(p < best.p || (p == best.p && d < best.d))))
					best = (struct brute_best){ p, d, r, time, need, best.least };
			}
	return best;
}

struct seen { uint32_t pipelines, again, none; };

static void compare(const struct equal_block *block, double outer, double memory, uint32_t vns,
	struct seen *seen)
{
	struct hd_cut_sums sums = chain(BLOCKS, block, true);
	struct hd_cluster c = cluster(3, 4, 1.2e10, outer, 0);
	struct brute_best want = brute(block, 3, 4, 1.2e10, outer, vns, memory);
	struct hd_2bw_ask ask = { .vns = vns, .memory = memory < 1e18 ? (int64_t)memory : 0 };
	struct hd_2bw_plan got;
	struct hd_diag diag = { "" };

	if (hd_2bw_plan(&got, &sums, &c, &ask, &arena, &diag)) {
		CHECK(!want.p && strstr(diag.text, "no (p,d) fits: the smallest need is "),
			"%s; p=%u d=%u fits", diag.text, want.p, want.d);
		seen->none++;
		return;
	}
	double time = (double)got.vn_ps / 1e12 / got.d;
	CHECK(want.p && time <= want.time / want.d * (1 + 1e-6), "p=%u d=%u takes %g, p=%u d=%u %g", got.p,
		got.d, time, want.p, want.d, want.time / want.d);
	CHECK(got.m * got.d == vns && got.m >= got.p, "m %u", got.m);
	/* other depths the formulas do not know: they may be faster, no more */
	if (BLOCKS % got.p == 0) {
		CHECK(got.p == want.p && got.d == want.d && got.recompute == want.recompute,
			"%g bytes/s, V %u: p=%u d=%u r=%d, not p=%u d=%u r=%d", outer, vns,
			got.p, got.d, got.recompute, want.p, want.d, want.recompute);
		CHECK(fabs((double)got.need - want.need) < 1, "%lld is not %g", (long long)got.need,
			want.need);
	}
	seen->pipelines += got.p > 1;
	seen->again += got.recompute;
}

static void uniform_models_get_what_the_formulas_say(void **state)
{
	static const struct equal_block blocks[] = {
		{ 3000000, 100000000, 40000000, 4000000 }, { 3000000, 400000000, 4000000, 400000 }, { 30000000, 1000000, 200000000, 20000000 },
		{ 3000000, 50000000, 1000, 100 },
	};
	static const double outers[] = { 1e8, 1.25e9, 1e10 }, memories[] = { INFINITY, 4e9, 1e9, 2e8 };
	struct seen seen = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t o = 0; o < 3; o++)
			for (uint32_t k = 0; k < 4; k++)
				for (uint32_t vns = 6; vns <= 48; vns *= 2)
					compare(&blocks[i], outers[o], memories[k], vns, &seen);
	CHECK(seen.pipelines > 10 && seen.again > 5 && seen.none > 5,
		"%u pipelines, %u recompute, %u without a plan: too tame",
		seen.pipelines, seen.again, seen.none);
}

static void equal_throughput_goes_to_the_simpler_plan(void **state)
{
	const struct equal_block free_links = { 3000, 100, 10, 0 };
	struct hd_cut_sums sums = chain(BLOCKS, &free_links, true);
	struct hd_cluster c = cluster(1, 8, 1e15, 1e15, 0);
	struct hd_2bw_ask ask = { .vns = 24 };
	struct hd_2bw_plan plan;
	struct hd_diag diag = { "" };

	(void)state;
	/* nothing is lost by sums or transfers: p = 1 on eight devices and p = 8 on one pipeline are
	 * equally fast */
	CHECK(hd_2bw_plan(&plan, &sums, &c, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(plan.p == 1 && plan.d == 8 && !plan.recompute && plan.m == 3, "p=%u d=%u", plan.p, plan.d);
	const struct equal_block no_time = { 0, 100, 10, 0 };
	sums = chain(BLOCKS, &no_time, true);
	CHECK(hd_2bw_plan(&plan, &sums, &c, &ask, &arena, &diag) == HD_OK && plan.p == 1 && plan.d == 1 &&
		!plan.recompute, "p=%u d=%u r=%d", plan.p, plan.d,
		plan.recompute);
	sums = chain(BLOCKS, &free_links, true);
	c = cluster(1, 5, 1e15, 1e15, 0);            /* 24 virtual nodes do not go by five */
	ask.p = 1;
	CHECK(hd_2bw_plan(&plan, &sums, &c, &ask, &arena, &diag) == HD_OK && plan.d == 4 && plan.m == 6,
		"p=%u d=%u m=%u", plan.p, plan.d, plan.m);
	ask.p = 0;
	c = cluster(1, 8, 1e15, 1e15, 0);
	CHECK(hd_2bw_plan(&plan, &sums, &c, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(plan.data_d == 8 && plan.data_ps == plan.vn_ps, "data parallel d=%u", plan.data_d);
}

static void too_few_virtual_nodes_are_refused_in_the_checkers_words(void **state)
{
	const struct equal_block block = { 3000, 100, 10, 1 };
	struct hd_cut_sums sums = chain(BLOCKS, &block, true);
	struct hd_cluster c = cluster(2, 8, 1e9, 1e9, 0);
	struct hd_2bw_plan plan;
	const struct { struct hd_2bw_ask ask; const char *says; } bad[] = {
		{ { .vns = 6, .p = 8 }, "2bw needs m >= p; m = 6, p = 8" }, { { .vns = 24, .p = 17 }, "needs as many devices; there are 16" },
		{ { .vns = 64, .memory = 149 }, "no (p,d) fits: the smallest need is 432 bytes at p=12, d=1, recompute on; a device has 149" },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_2bw_plan(&plan, &sums, &c, &bad[i].ask, &arena, &diag) == HD_E_INVAL &&
			strstr(diag.text, bad[i].says), "%u: %s", i, diag.text);
	}
	struct hd_2bw_ask eight = { .vns = 8, .p = 8 };
	struct hd_diag diag = { "" };
	CHECK(hd_2bw_plan(&plan, &sums, &c, &eight, &arena, &diag) == HD_OK && plan.p == 8 && plan.m == 8 &&
		plan.d == 1, "%s", diag.text);
}

static void what_takes_longer_than_is_counted_is_refused(void **state)
{
	const struct equal_block slow = { 3000, 100, 10, INT64_C(1000000000000) },
		large = { 3000, 100, INT64_C(1) << 48, INT64_C(1) << 48 };
	struct hd_cut_sums sums = chain(BLOCKS, &slow, true);
	struct hd_cluster c = cluster(1, 4, 1e3, 1e3, 0);
	struct hd_2bw_ask ask = { .vns = 16, .p = 2 };
	struct hd_2bw_plan plan;
	struct hd_diag diag = { "" };

	(void)state;
	CHECK(hd_2bw_plan(&plan, &sums, &c, &ask, &arena, &diag) == HD_E_INVAL &&
		strstr(diag.text, "takes 2e+09 s, and times are counted up to 2^62 ps"), "%s",
		diag.text);
	c = cluster(1, 4, 1e9, 1e9, 0);
	CHECK(hd_2bw_plan(&plan, &sums, &c, &ask, &arena, &diag) == HD_OK && plan.vn_ps > 0,
		"the same over a faster link: %s", diag.text);
	sums = chain(BLOCKS, &large, true);
	c = cluster(1, 4, 1e12, 1e12, 0);
	ask.vns = 1 << 16;
	diag = (struct hd_diag){ "" };
	CHECK(hd_2bw_plan(&plan, &sums, &c, &ask, &arena, &diag) == HD_OK && plan.gpipe == -1,
		"only gpipe holds that much: %s", diag.text);
}

/* Two stages send over a link that takes years, one device needs none; of a link of the innermost level
 * alone the same is best. */
static void what_takes_longer_than_is_counted_is_left_out_beside_others(void **state)
{
	const struct equal_block block = { 3000, 100, 10, INT64_C(1000000000000) };
	struct hd_cut_sums sums = chain(BLOCKS, &block, true);
	struct hd_cluster far = cluster(2, 2, 1e13, 1e3, 0), near = cluster(1, 2, 1e13, 1e13, 0);
	const struct hd_2bw_ask ask = { .vns = 16 };
	struct hd_2bw_plan plan, alone;
	struct hd_diag diag = { "" };

	(void)state;
	CHECK(hd_2bw_plan(&plan, &sums, &far, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_2bw_plan(&alone, &sums, &near, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(plan.nlate > 0 && alone.nlate == 0, "%llu, %llu left out", (unsigned long long)plan.nlate,
		(unsigned long long)alone.nlate);
	CHECK(plan.p * plan.d <= 2 && plan.p == alone.p && plan.d == alone.d && plan.vn_ps == alone.vn_ps,
		"p=%u d=%u, %lld ps", plan.p, plan.d,
		(long long)plan.vn_ps);
}

/* Boundaries of an uneven chain, by hand: times 1 1 1 1 6 2; half of it is at 6, behind the fourth or the
 * fifth. */
static void stages_end_nearest_to_their_share(void **state)
{
	static const struct equal_block blocks[6] = { { 3, 1, 1, 7 }, { 3, 1, 1, 5 }, { 3, 1, 1, 3 },
		{ 3, 1, 1, 2 }, { 18, 1, 1, 1 }, { 6, 1, 1, 1 } };
	struct hd_cut_sums sums = chain(6, blocks, false);
	uint32_t thin[6], first[6];

	(void)state;
	CHECK(hd_2bw_thin_cuts(thin, sums.cuts) == 6, "a chain's cuts are all thin");
	CHECK(hd_2bw_cut(first, 2, &sums, thin, 6) && first[0] == 0 && first[1] == 4, "%u", first[1]);
	CHECK(hd_2bw_cut(first, 3, &sums, thin, 6) && first[1] == 4 && first[2] == 5, "%u %u", first[1],
		first[2]);
	CHECK(hd_2bw_cut(first, 6, &sums, thin, 6), "six stages");
	CHECK(hd_2bw_cut(first, 4, &sums, thin, 6) && first[1] == 3,
		"a share of 3 of 12 ends behind the third, %u", first[1]);
	const struct equal_block equal = { 30, 1, 1, 1 };
	struct hd_cut_sums three = chain(3, &equal, true);
	CHECK(hd_2bw_cut(first, 2, &three, thin, 3) && first[1] == 1, "equally near: the earlier, %u",
		first[1]);
	CHECK(hd_2bw_cut(first, 6, &sums, thin, 6), "six stages");
	for (uint32_t s = 0; s < 6; s++)
		CHECK(first[s] == s, "stage %u begins at %u", s, first[s]);
	CHECK(!hd_2bw_cut(first, 7, &sums, thin, 6), "seven stages of six blocks");
}

/* A branch: no boundary inside it. */
static void no_stage_ends_inside_a_branch(void **state)
{
	static int64_t one = 1;
	struct hd_profile_node node[5];
	struct hd_profile_edge edge[] = { { 0, 1, 0 }, { 0, 2, 0 }, { 1, 3, 0 }, { 2, 3, 0 }, { 3, 4, 0 } };
	static const char *const ids[] = { "a", "b", "c", "d", "e" };
	struct hd_profile p = { .node = node, .nnodes = 5, .edge = edge, .nedges = 5, .vn_size = 1 };
	struct hd_cut_sums sums;
	struct hd_cuts cuts;
	uint32_t thin[16], first[8];

	(void)state;
	for (int v = 0; v < 5; v++)
		node[v] = (struct hd_profile_node){ .id = ids[v], .op = "x", .tied = "",
			.f = { .p50_ns = 10 }, .r_ns = -1, .out = &one, .nouts = 1,
			.recompute_ok = true };
	hd_sums_of(&sums, &cuts, &p, (struct hd_cuts_how){ 0 });
	uint32_t n = hd_2bw_thin_cuts(thin, &cuts);
	static const char *const names[] = { "a", "b+c", "d", "e" };
	CHECK(n == 4 && cuts.n == 6, "%u thin cuts of %u", n, cuts.n);
	for (uint32_t k = 0; k < n; k++)
		CHECK(!strcmp(cuts.name[thin[k]], names[k]), "%s", cuts.name[thin[k]]);
	CHECK(hd_2bw_cut(first, 4, &sums, thin, n) && !hd_2bw_cut(first, 5, &sums, thin, n),
		"four stages, not five");
	for (uint32_t s = 0; s < 4; s++)
		CHECK(s == 0 || hd_cut_sums_is_stage(&sums, first[s - 1], first[s]), "stage %u", s);
}

static uint32_t below(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

/* Layers of all times, weights and joints: ladders of branches, some weights tied. */
static void ladder(struct hd_profile *p, uint32_t rungs, uint64_t seed)
{
	uint64_t rng = seed + 1;
	uint32_t n = 3 * rungs + 1;

	*p = (struct hd_profile){ .node = hd_arena_take(&arena, n, sizeof *p->node),
		.edge = hd_arena_take(&arena, 4 * rungs, sizeof *p->edge), .nnodes = n,
		.vn_size = 1, .device_kind = "", .device_name = "", .isa = "", .dtype = "", .ignored = "" };
	for (uint32_t v = 0; v < n; v++) {
		char name[16];
		int64_t *out = hd_arena_take(&arena, 1, sizeof *out);
		int64_t ns = (int64_t)below(&rng, 4) * 1000000, param = (int64_t)below(&rng, 4) * 5000000;
		bool tied = v == 1 || v == n - 1;
		snprintf(name, sizeof name, "n%u", v);
		*out = (int64_t)below(&rng, 5) * 100000;
		p->node[v] = (struct hd_profile_node){ .id = hd_arena_text(&arena, name, strlen(name)),
			.op = "x", .tied = tied ? "t" : "",
			.f = { .p50_ns = ns }, .i = { .p50_ns = ns / 2 }, .w = { .p50_ns = ns }, .r_ns = -1,
			.out = out, .nouts = 1,
			.param = tied ? 7000000 : param, .saved = 10, .recompute_ok = true };
	}
	for (uint32_t r = 0; r < rungs; r++) {
		const struct hd_profile_edge four[] = { { 3 * r, 3 * r + 1, 0 }, { 3 * r, 3 * r + 2, 0 },
			{ 3 * r + 1, 3 * r + 3, 0 },
			{ 3 * r + 2, 3 * r + 3, 0 } };
		memcpy(p->edge + 4 * r, four, sizeof four);
	}
	p->nedges = 4 * rungs;
}

static bool lies_in(const struct hd_cuts *cuts, const struct hd_2bw_plan *plan, uint32_t s, uint32_t v)
{
	uint32_t end = s + 1 < plan->p ? plan->first[s + 1] : cuts->n;

	return hd_cuts_ran(cuts, end - 1, v) && !(s && hd_cuts_ran(cuts, plan->first[s] - 1, v));
}

/* Rule 4 from the nodes alone, without sums up to cuts. */
static double naive(const struct hd_profile *p, const struct hd_cuts *cuts, const struct hd_2bw_plan *plan,
	double bytes_per_s)
{
	double slowest = 0, layers = 0, share = 2. * (plan->d - 1) / plan->d / bytes_per_s / plan->m,
		c = plan->recompute ? 4. / 3 : 1;

	for (uint32_t s = 0; s < plan->p; s++) {
		double compute = 0, param = 0, in = s ? (double)cuts->out[plan->first[s] - 1] : 0;
		double out = s + 1 < plan->p ? (double)cuts->out[plan->first[s + 1] - 1] : 0;
		bool twin = false;
		for (uint32_t v = 0; v < p->nnodes; v++) {
			const struct hd_profile_node *n = &p->node[v];
			if (!lies_in(cuts, plan, s, v))
				continue;
			double time = c * (double)(n->f.p50_ns + n->i.p50_ns + n->w.p50_ns) / 1e9,
				own = twin && *n->tied ? 0 : (double)n->param;
			twin |= *n->tied != 0;
			compute += time;
			param += own;
			layers += fmax(time, own * share);
		}
		slowest = fmax(slowest, fmax(compute + 2 * (in + out) / bytes_per_s, param * share));
	}
	return plan->p > 1 ? slowest : layers;
}

static void branches_take_what_their_nodes_take(void **state)
{
	uint32_t wide = 0, deep = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++)
		for (uint32_t depth = 1; depth <= 4; depth++) {
			struct hd_profile p;
			struct hd_cut_sums sums;
			struct hd_cuts cuts;
			struct hd_2bw_plan plan;
			struct hd_diag diag = { "" };
			const struct hd_2bw_ask ask = { .vns = 8, .p = depth };
			const double bytes_per_s = seed % 2 ? 1e9 : 1e12;
			struct hd_cluster c = cluster(1, 8, bytes_per_s, bytes_per_s, 0);
			ladder(&p, 3, seed);
			hd_sums_of(&sums, &cuts, &p, (struct hd_cuts_how){ 0 });
			CHECK(hd_2bw_plan(&plan, &sums, &c, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
			double want = naive(&p, &cuts, &plan, bytes_per_s), got = (double)plan.vn_ps / 1e12;
			CHECK(fabs(got - want) <= want * 1e-9 + 2e-12,
				"seed %llu p=%u d=%u: %.12g s, not %.12g", (unsigned long long)seed, plan.p,
				plan.d,
				got, want);
			wide += depth == 1 && plan.d > 1;
			deep += plan.p > 1;
		}
	CHECK(wide > 5 && deep > 50, "%u wide, %u deep: too tame", wide, deep);
}

/* Rule 2 by looking at every cut for every boundary, on chains with many layers of no time. */
static void each_boundary_is_the_nearest_of_all(void **state)
{
	uint64_t rng = 5;

	(void)state;
	for (uint32_t trial = 0; trial < 60; trial++) {
		struct equal_block block[BLOCKS];
		uint32_t thin[BLOCKS], first[BLOCKS];
		for (uint32_t i = 0; i < BLOCKS; i++)
			block[i] = (struct equal_block){ 3 * (int64_t)below(&rng, 1 + trial % 4), 1, 1, 1 };
		struct hd_cut_sums sums = chain(BLOCKS, block, false);
		const int64_t *time = sums.cuts->time_ns;
		CHECK(hd_2bw_thin_cuts(thin, sums.cuts) == BLOCKS, "a chain's cuts are all thin");
		for (uint32_t p = 1; p <= BLOCKS; p++) {
			CHECK(hd_2bw_cut(first, p, &sums, thin, BLOCKS), "%u stages", p);
			for (uint32_t s = 1; s < p; s++) {
				uint32_t best = first[s - 1];
				double share = (double)time[BLOCKS - 1] * s / p;
				for (uint32_t k = best; k < BLOCKS - (p - s); k++)
					if (fabs((double)time[k] - share) < fabs((double)time[best] - share))
						best = k;
				CHECK(first[s] == best + 1, "trial %u: stage %u of %u begins at %u, not %u",
					trial, s, p, first[s], best + 1);
			}
		}
	}
}

/* The delayed schedule itself: two versions, p - r virtual nodes in flight, nothing idle in steady state
 * when m >= p. */
static void the_schedule_holds_what_the_formula_counts(void **state)
{
	const struct hd_schedule_ask how = { .name = "2bw", .p = 4, .m = 8 };
	const struct hd_sim_ask ask = { .costs = HD_UNIT_COSTS, .steps = 6 };
	struct hd_schedule schedule = { 0 };
	struct hd_diag diag = { "" };
	struct hd_sim sim;

	(void)state;
	CHECK(hd_schedule_make(&schedule, &how, &arena, &diag) == HD_OK &&
		hd_simulate(&sim, &schedule, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(sim.rank[0].peak == 4 * sim.per_rank && fabs(hd_sim_steady_bubble(&sim, &ask.costs)) < 1e-12,
		"%u in flight", sim.rank[0].peak);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uniform_models_get_what_the_formulas_say),
		cmocka_unit_test(equal_throughput_goes_to_the_simpler_plan),
		cmocka_unit_test(too_few_virtual_nodes_are_refused_in_the_checkers_words),
		cmocka_unit_test(what_takes_longer_than_is_counted_is_refused),
		cmocka_unit_test(what_takes_longer_than_is_counted_is_left_out_beside_others),
		cmocka_unit_test(stages_end_nearest_to_their_share),
		cmocka_unit_test(no_stage_ends_inside_a_branch),
		cmocka_unit_test(branches_take_what_their_nodes_take),
		cmocka_unit_test(each_boundary_is_the_nearest_of_all),
		cmocka_unit_test(the_schedule_holds_what_the_formula_counts),
	};

	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
