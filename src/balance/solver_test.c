#include "balance/solver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { MAX_D = 16, MAX_W = 16, MAX_T = 4, MS = 1000000000 };

/* ---- asks */

struct solver_bench {
	struct hd_arena arena;
	struct hd_vn_cost type[MAX_T];
	struct hd_solve_device device[MAX_D];
	struct hd_solve_worker worker[MAX_W];
	struct hd_solve_ask ask;
};

static void bench_open(struct solver_bench *b, uint32_t nvns)
{
	memset(b, 0, sizeof *b);
	hd_arena_init(&b->arena, 0);
	b->ask = (struct hd_solve_ask){ .nvns = nvns, .type = b->type, .device = b->device,
		.worker = b->worker };
}

static void add_type(struct solver_bench *b, const char *name, int64_t c0, int64_t t1, int64_t back)
{
	const struct hd_wave_time wave = { 1, t1, back, 0 };
	struct hd_vn_profile p = { name, c0, 0, &wave, 1 };
	struct hd_diag diag = { "" };

	CHECK(hd_vn_cost_make(&b->type[b->ask.ntypes++], &p, b->ask.nvns, &b->arena, &diag) == HD_OK, "%s",
		diag.text);
}

/* A worker of its own, or a further device of the last one. */
static void add_device(struct solver_bench *b, uint32_t type, bool own, uint64_t bytes_per_s)
{
	if (own)
		b->worker[b->ask.nworkers++].bytes_per_s = bytes_per_s;
	b->device[b->ask.ndevices++] = (struct hd_solve_device){ type, b->ask.nworkers - 1 };
}

static struct hd_solve_plan least(struct solver_bench *b)
{
	struct hd_solve_plan plan = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_solve_least(&plan, &b->ask, NULL, NULL, &b->arena, &diag) == HD_OK, "%s", diag.text);
	return plan;
}

static struct hd_solve solved(struct solver_bench *b)
{
	struct hd_solve solve = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_solve(&solve, &b->ask, &b->arena, &diag) == HD_OK, "%s", diag.text);
	return solve;
}

/* ---- the oracle: all counts, all orders; shares nothing with the search but the tables of one device */

static uint32_t roots_of(uint32_t at, uint32_t n, uint32_t first, uint32_t end)
{
	uint32_t split = 1;

	if (at + n <= first || at >= end || first == end)
		return 0;
	if (at >= first && at + n <= end)
		return 1;
	while (split * 2 < n)
		split *= 2;
	return roots_of(at, split, first, end) + roots_of(at + split, n - split, first, end);
}

/* Double is exact enough for the small numbers here: all products stay below 2^53. */
static int64_t exchange_of(const struct hd_solve_ask *ask, uint64_t bw, uint32_t r, uint32_t n)
{
	uint32_t log = 0;

	if (n < 2)
		return 0;
	while (1u << log < n)
		log++;
	uint64_t up = (uint64_t)(r + 1) * (uint64_t)ask->gradient_bytes * (n - 1) * UINT64_C(1000000000000),
		by = bw * n;
	return 2 * ask->latency_ps * log + (bw ? (int64_t)(up / by + (up % by > 0)) : 0);
}

struct oracle {
	const struct hd_solve_ask *ask;
	uint32_t count[MAX_W], roots[32][32];
	int64_t t; uint32_t n, most, total;
};

/* A worker's time and backward with v: the least slowest of all divisions, the division that fills
 * quickest first. */
static void worker_of(const struct hd_solve_ask *ask, uint32_t w, uint32_t v, int64_t *ps, int64_t *back)
{
	uint32_t have[MAX_D] = { 0 };

	for (uint32_t i = 0; i < v; i++) {
		uint32_t best = MAX_D;
		for (uint32_t d = 0; d < ask->ndevices; d++)
			if (ask->device[d].worker == w &&
			    (best == MAX_D || ask->type[ask->device[d].type].ps[have[d] + 1] <
			    ask->type[ask->device[best].type].ps[have[best] + 1]))
				best = d;
		have[best]++;
	}
	*ps = 0;
	*back = INT64_MAX;
	for (uint32_t d = 0; d < ask->ndevices; d++)
		if (have[d]) {
			const struct hd_vn_cost *t = &ask->type[ask->device[d].type];
			*ps = t->ps[have[d]] > *ps ? t->ps[have[d]] : *ps;
			*back = t->back_ps[have[d]] < *back ? t->back_ps[have[d]] : *back;
		}
}

static void all_orders(struct oracle *o, uint32_t used, uint32_t at, uint32_t n, int64_t cost, int64_t back,
	int64_t exchange, uint32_t most, uint32_t total)
{
	bool any = false;

	for (uint32_t w = 0; w < o->ask->nworkers; w++) {
		if (used >> w & 1 || !o->count[w])
			continue;
		uint32_t roots = o->roots[at][at + o->count[w]];
		int64_t mine = exchange_of(o->ask, o->ask->worker[w].bytes_per_s, roots, n);
		any = true;
		all_orders(o, used | 1u << w, at + o->count[w], n, cost, back,
			mine > exchange ? mine : exchange, roots > most ? roots : most, total + roots);
	}
	if (any)
		return;
	int64_t t = cost + (exchange > back ? exchange - back : 0);
	if (t < o->t || (t == o->t && (n < o->n || (n == o->n &&
		(most < o->most || (most == o->most && total < o->total)))))) {
		o->t = t;
		o->n = n;
		o->most = most;
		o->total = total;
	}
}

static void all_counts(struct oracle *o, uint32_t w, uint32_t left)
{
	if (w + 1 == o->ask->nworkers) {
		int64_t cost = 0, back = INT64_MAX, ps, b;
		uint32_t n = 0;
		o->count[w] = left;
		for (uint32_t i = 0; i <= w; i++) {
			if (!o->count[i])
				continue;
			worker_of(o->ask, i, o->count[i], &ps, &b);
			cost = ps > cost ? ps : cost;
			back = b < back ? b : back;
			n++;
		}
		if (cost <= o->t)
			all_orders(o, 0, 0, n, cost, back, 0, 0, 0);
		return;
	}
	for (o->count[w] = 0; o->count[w] <= left; o->count[w]++) {
		uint32_t mine = o->count[w];
		all_counts(o, w + 1, left - mine);
		o->count[w] = mine;
	}
}

static struct oracle oracle_of(const struct hd_solve_ask *ask)
{
	struct oracle o = { .ask = ask, .t = INT64_MAX };

	for (uint32_t a = 0; a <= ask->nvns; a++)
		for (uint32_t e = a; e <= ask->nvns; e++)
			o.roots[a][e] = roots_of(0, ask->nvns, a, e);
	all_counts(&o, 0, ask->nvns);
	return o;
}

/* What the plan says of itself, worked out again from its counts and ranges. */
static void audit(const struct hd_solve_ask *ask, const struct hd_solve_plan *p)
{
	uint8_t taken[32] = { 0 };
	int64_t cost = 0, back = INT64_MAX, exchange = 0;
	uint32_t members = 0, devices = 0, total = 0, most = 0;

	for (uint32_t d = 0; d < ask->ndevices; d++) {
		for (uint32_t v = 0; v < p->count[d]; v++)
			taken[p->first[d] + v]++;
		if (!p->count[d])
			continue;
		devices++;
		cost = ask->type[ask->device[d].type].ps[p->count[d]] > cost ?
			ask->type[ask->device[d].type].ps[p->count[d]] : cost;
		back = ask->type[ask->device[d].type].back_ps[p->count[d]] < back ?
			ask->type[ask->device[d].type].back_ps[p->count[d]] : back;
	}
	for (uint32_t v = 0; v < ask->nvns; v++)
		CHECK(taken[v] == 1, "virtual node %u is mapped %u times", v, taken[v]);
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t w = 0; w < ask->nworkers; w++) {
			uint32_t lo = UINT32_MAX, hi = 0, sum = 0;
			for (uint32_t d = 0; d < ask->ndevices; d++)
				if (ask->device[d].worker == w && p->count[d]) {
					lo = p->first[d] < lo ? p->first[d] : lo;
					hi = p->first[d] + p->count[d] > hi ? p->first[d] + p->count[d] : hi;
					sum += p->count[d];
				}
			if (!sum)
				continue;
			CHECK(hi - lo == sum, "worker %u has no contiguous range", w);
			uint32_t roots = roots_of(0, ask->nvns, lo, hi);
			if (!pass) {
				members++;
				total += roots;
				most = roots > most ? roots : most;
			} else {
				int64_t mine = exchange_of(ask, ask->worker[w].bytes_per_s, roots, members);
				exchange = mine > exchange ? mine : exchange;
			}
		}
	CHECK(p->nmembers == members && p->ndevices == devices && p->roots == total && p->most_roots == most,
		"%u members, %u roots, %u at most",
		p->nmembers, p->roots, p->most_roots);
	CHECK(p->compute_ps == cost && p->exchange_ps == exchange &&
		p->step_ps == cost + (exchange > back ? exchange - back : 0),
		"%lld = %lld and what shows of %lld", (long long)p->step_ps, (long long)p->compute_ps,
		(long long)p->exchange_ps);
}

/* ---- against the oracle */

static uint32_t dice(uint64_t *seed, uint32_t n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % n;
}

/* Waves of 1 to 4, few distinct times (ties matter), exchange from nothing to most of the step. */
static void random_bench(struct solver_bench *b, uint64_t *seed, uint32_t nvns, uint32_t ndevices,
	bool shared)
{
	uint32_t ntypes = 1 + dice(seed, ndevices < 3 ? ndevices : 3);

	bench_open(b, nvns);
	for (uint32_t t = 0; t < ntypes; t++) {
		int64_t t1 = 10 * (1 + dice(seed, 12)), c0 = dice(seed, 3) * 5;
		struct hd_wave_time wave[3] = { { 1, t1, t1 / (1 + dice(seed, 3)), 1 },
			{ 2, t1 + dice(seed, 3) * t1 / 2, 0, 2 }, { 4, 0, 0, 4 } };
		wave[1].back_ps = wave[1].ps / 2;
		wave[2].ps = 2 * wave[1].ps - dice(seed, 5);
		wave[2].back_ps = wave[2].ps / 3;
		struct hd_vn_profile p = { "t", c0, 1 + dice(seed, 5), wave, 1 + dice(seed, 3) };
		assert_int_equal(hd_vn_cost_make(&b->type[b->ask.ntypes++], &p, nvns, &b->arena, NULL),
			HD_OK);
	}
	for (uint32_t d = 0; d < ndevices; d++)
		add_device(b, dice(seed, ntypes), d == 0 || !shared || dice(seed, 2), 1 + dice(seed, 2));
	b->ask.gradient_bytes = dice(seed, 3) * dice(seed, 8);
	b->ask.latency_ps = dice(seed, 2) * dice(seed, 15);
	for (uint32_t w = 0; w < b->ask.nworkers; w++)
		b->worker[w].bytes_per_s *= 200000000000u;         /* a byte takes 5 ps, or 2.5 */
}

static void judge(struct solver_bench *b, int round)
{
	struct hd_solve_plan p = least(b);
	struct oracle o = oracle_of(&b->ask);

	audit(&b->ask, &p);
	CHECK(p.exact && p.step_ps == o.t, "round %d: T %lld, could be %lld (V %u, %u devices)", round,
		(long long)p.step_ps, (long long)o.t, b->ask.nvns,
		b->ask.ndevices);
	CHECK(p.nmembers == o.n && p.most_roots == o.most && p.roots == o.total,
		"round %d: %u members, %u roots, %u at most; could be %u, %u, %u", round,
		p.nmembers, p.roots, p.most_roots, o.n, o.total, o.most);
	hd_arena_finish(&b->arena);
}

static void plans_equal_the_best_of_all_counts_and_orders(void **state)
{
	uint64_t seed = 3;
	(void)state;

	for (int round = 0; round < DRAWS(700); round++) {
		struct solver_bench b;
		uint32_t n = 1 + dice(&seed, 4), v = 1 + dice(&seed, n == 4 ? 12 : 20);
		random_bench(&b, &seed, v, n, round % 4 == 3);
		judge(&b, round);
	}
	for (int round = 0; round < DRAWS(12); round++) {
		struct solver_bench b;
		random_bench(&b, &seed, round < 4 ? 24 : 9 + dice(&seed, 8), 5, false);
		judge(&b, 1000 + round);
	}
}

/* ---- laws */

static void a_worker_more_never_makes_the_step_longer(void **state)
{
	uint64_t seed = 11;
	(void)state;

	for (int round = 0; round < DRAWS(150); round++) {
		struct solver_bench b;
		random_bench(&b, &seed, 2 + dice(&seed, 20), 5, false);
		b.ask.ndevices = b.ask.nworkers = 1;
		int64_t before = least(&b).step_ps;
		for (uint32_t n = 2; n <= 5; n++) {
			b.ask.ndevices = b.ask.nworkers = n;
			int64_t now = least(&b).step_ps;
			CHECK(now <= before, "round %d: %u workers take %lld, one less %lld", round, n,
				(long long)now, (long long)before);
			before = now;
		}
		hd_arena_finish(&b.arena);
	}
}

static void the_order_in_which_devices_are_told_does_not_matter(void **state)
{
	uint64_t seed = 12;
	(void)state;

	for (int round = 0; round < DRAWS(100); round++) {
		struct solver_bench b;
		random_bench(&b, &seed, 2 + dice(&seed, 20), 4, false);
		struct hd_solve_plan p = least(&b);
		for (uint32_t d = 0; d < 2; d++) {
			struct hd_solve_device device = b.device[d];
			struct hd_solve_worker worker = b.worker[d];
			b.device[d].type = b.device[3 - d].type;
			b.worker[d] = b.worker[3 - d];
			b.device[3 - d].type = device.type;
			b.worker[3 - d] = worker;
		}
		struct hd_solve_plan q = least(&b);
		assert_true(p.step_ps == q.step_ps && p.nmembers == q.nmembers && p.roots == q.roots &&
			p.most_roots == q.most_roots);
		hd_arena_finish(&b.arena);
	}
}

static void times_in_another_unit_give_the_same_map(void **state)
{
	uint64_t seed = 13;
	(void)state;

	for (int round = 0; round < DRAWS(60); round++) {
		struct solver_bench b;
		random_bench(&b, &seed, 2 + dice(&seed, 16), 4, false);
		for (uint32_t w = 0; w < b.ask.nworkers; w++)
			/* whole picoseconds, before and after */
			b.worker[w].bytes_per_s = 1000000000000u;
		b.ask.gradient_bytes *= 12;
		struct hd_solve_plan p = least(&b);
		for (uint32_t t = 0; t < b.ask.ntypes; t++)
			for (uint32_t v = 0; v <= b.ask.nvns; v++) {
				b.type[t].ps[v] *= 7;
				b.type[t].back_ps[v] *= 7;
			}
		b.ask.gradient_bytes *= 7;
		b.ask.latency_ps *= 7;
		struct hd_solve_plan q = least(&b);
		/* C is rounded up once per member: (n - 1) / n of it need not be whole */
		CHECK(q.step_ps <= 7 * p.step_ps && q.step_ps >= 7 * p.step_ps - 7, "%lld and %lld",
			(long long)p.step_ps, (long long)q.step_ps);
		hd_arena_finish(&b.arena);
	}
}

/* ---- examples */

static void counts(const struct hd_solve_plan *p, const uint32_t *want, uint32_t n)
{
	for (uint32_t d = 0; d < n; d++)
		CHECK(p->count[d] == want[d], "device %u has %u virtual nodes, not %u", d, p->count[d],
			want[d]);
}

static void the_published_examples_come_out(void **state)
{
	static const uint32_t mixed[] = { 6, 6, 2, 2 }, refused[] = { 8, 8, 0, 0 };
	struct solver_bench b;
	(void)state;

	for (int far = 0; far < 2; far++) {
		bench_open(&b, 16);
		add_type(&b, "fast", 100, 1000, 600);
		add_type(&b, "slow", 100, far ? 9000 : 2200, 1000);
		for (uint32_t d = 0; d < 4; d++)
			add_device(&b, d / 2, true, 0);
		struct hd_solve_plan p = least(&b);
		counts(&p, far ? refused : mixed, 4);
		assert_int_equal(p.step_ps, far ? 8100 : 6100);
		hd_arena_finish(&b.arena);
	}
}

/* The published settings: two fast devices and two, four or eight slow ones of a third of their speed, and an
 * exchange between servers that takes, with one root each way, a fifth of the step of the fast ones alone,
 * which stand in one server. */
static struct hd_solve published(struct solver_bench *b, uint32_t nslow, char *words, size_t cap)
{
	struct hd_text text;

	bench_open(b, 96);
	add_type(b, "fast", 0, 1 * (int64_t)MS, 0);
	add_type(b, "slow", 0, 3 * (int64_t)MS, 0);
	add_device(b, 0, true, 1);
	add_device(b, 0, false, 1);
	for (uint32_t d = 0; d < nslow; d++)
		add_device(b, 1, d % 2 == 0, 1);
	b->ask.latency_ps = 0;
	b->ask.gradient_bytes = 100 << 20;
	/* one root each way: 2 gradients by (n - 1) / n in 0.2 x 48 ms */
	for (uint32_t w = 0; w < b->ask.nworkers; w++) {
		double bytes = 2.0 * (double)b->ask.gradient_bytes * (b->ask.nworkers - 1) / b->ask.nworkers;
		b->worker[w].bytes_per_s = (uint64_t)(bytes / (0.2 * 48e-3));
	}
	struct hd_solve s = solved(b);
	hd_text_fixed(&text, words, cap);
	hd_solve_print(&s, &b->ask, &text);
	return s;
}

static void the_published_settings_gain_or_are_refused(void **state)
{
	static const struct { uint32_t nslow; double at_least; bool refused; } rows[] = { { 8, 1.42, false },
		{ 4, 1.10, false }, { 2, 1, true } };
	const double alone = 48.0 * MS;
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct solver_bench b;
		char words[2000];
		struct hd_solve s = published(&b, rows[i].nslow, words, sizeof words);
		double gain = alone / (double)s.plan.step_ps;
		print_message("2 fast + %u slow: %.2f x the fast ones alone\n", rows[i].nslow, gain);
		if (rows[i].refused) {
			assert_int_equal(s.plan.ndevices, 2);
			CHECK(strstr(words, "2 x slow: would be ") &&
				strstr(words, "slower: exchange outweighs compute"), "%s", words);
		} else {
			CHECK(gain >= rows[i].at_least && s.plan.ndevices == 2 + rows[i].nslow, "%s", words);
		}
		hd_arena_finish(&b.arena);
	}
}

/* One of two workers has a third of its speed: ideal is twice the even split and a third more than the
 * fast one alone. */
static void a_worker_slowed_three_times_still_adds_a_third(void **state)
{
	static const uint32_t want[] = { 12, 4 };
	struct solver_bench b;
	(void)state;

	bench_open(&b, 16);
	add_type(&b, "worker", MS / 20, MS, MS / 2);
	add_type(&b, "slowed", 3 * (int64_t)MS / 20, 3 * (int64_t)MS, 3 * (int64_t)MS / 2);
	add_device(&b, 0, true, 5000000000u);
	add_device(&b, 1, true, 5000000000u);
	b.ask.gradient_bytes = 1 << 20;
	b.ask.latency_ps = 20000000;
	struct hd_solve s = solved(&b);
	counts(&s.plan, want, 2);
	/* the even split waits for the slow one */
	assert_true((double)b.type[1].ps[8] >= 1.9 * (double)s.plan.step_ps);
	assert_true((double)b.type[0].ps[16] >= 1.28 * (double)s.plan.step_ps);
	hd_arena_finish(&b.arena);
}

/* ---- when to say no */

static void a_gain_below_the_margin_is_no_reason_to_take_more_devices(void **state)
{
	static const struct { uint32_t nerrors, error_ppm; int64_t slow; uint32_t ndevices; } rows[] = {
		{ 0, 0, 1500, 2 },              /* 10 + 6: 10 instead of 16 */
		{ 0, 0, 15000, 2 },             /* 15 + 1: 6.25 % faster, over the 6 % of no prediction */
		{ 1, 31500, 15000, 1 },         /* 6.3 % */
		{ 8, 5000, 15000, 2 },          /* eight good predictions: 2 % */
		{ 2, 32000, 15000, 1 },         /* 6.4 % */
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct solver_bench b;
		uint32_t errors[8];
		char words[1000];
		struct hd_text text;
		for (uint32_t e = 0; e < 8; e++)
			errors[e] = rows[i].error_ppm;
		bench_open(&b, 16);
		add_type(&b, "fast", 0, 1000, 0);
		add_type(&b, "slow", 0, rows[i].slow, 0);
		add_device(&b, 0, true, 0);
		add_device(&b, 1, true, 0);
		b.ask.error_ppm = errors;
		b.ask.nerrors = rows[i].nerrors;
		struct hd_solve s = solved(&b);
		hd_text_fixed(&text, words, sizeof words);
		hd_solve_print(&s, &b.ask, &text);
		CHECK(s.plan.ndevices == rows[i].ndevices, "case %zu: %s", i, words);
		CHECK(rows[i].ndevices == 2 || strstr(words,
			"1 x slow: would be 6.2 % faster: less than predictions may err (6."), "case %zu: %s",
			i, words);
		hd_arena_finish(&b.arena);
	}
}

static void a_plan_in_use_is_left_only_for_a_gain_or_for_nothing(void **state)
{
	static const uint32_t one[] = { 16, 0, 0 }, two[] = { 8, 8, 0 };
	struct solver_bench b;
	(void)state;

	bench_open(&b, 16);
	add_type(&b, "a", 0, 1000, 0);
	for (uint32_t d = 0; d < 3; d++)
		add_device(&b, 0, true, 0);
	b.ask.now = two;
	b.ask.ndevices = b.ask.nworkers = 2;
	struct hd_solve s = solved(&b);
	counts(&s.plan, two, 2);
	b.ask.ndevices = b.ask.nworkers = 3;       /* 6 instead of 8: worth a third */
	s = solved(&b);
	assert_int_equal(s.plan.step_ps, 6000);
	b.ask.now = one;
	s = solved(&b);
	assert_int_equal(s.plan.ndevices, 3);
	uint32_t errors[] = { 200000 };            /* 40 %: 6 instead of 8 is not, 6 instead of 16 is */
	b.ask.error_ppm = errors;
	b.ask.nerrors = 1;
	assert_int_equal(solved(&b).plan.ndevices, 3);
	b.ask.now = two;
	s = solved(&b);
	counts(&s.plan, two, 3);
	hd_arena_finish(&b.arena);
}

/* Equal devices, equal times: a device with more keeps more; a plan as good as any other is kept whole. */
static void equal_plans_move_nothing(void **state)
{
	static const uint32_t now[] = { 5, 6, 5 };
	struct solver_bench b;
	uint32_t map[16];
	(void)state;

	bench_open(&b, 16);
	add_type(&b, "a", 0, 1000, 0);
	for (uint32_t d = 0; d < 3; d++)
		add_device(&b, 0, true, 0);
	struct hd_solve_plan p = least(&b);
	uint32_t six = p.count[0] == 6;
	assert_true(six && p.step_ps == 6000 && p.most_roots == 2);
	b.ask.now = now;
	p = least(&b);
	assert_true(p.count[1] == 6);
	hd_solve_map(&p, &b.ask, map);
	for (uint32_t d = 0; d < 3; d++)
		for (uint32_t v = 0; v < p.count[d]; v++)
			assert_int_equal(map[p.first[d] + v], d);
	hd_arena_finish(&b.arena);
}

static void a_type_that_does_not_fit_is_left_out_and_told(void **state)
{
	const struct hd_wave_time wave = { 1, 1000, 0, 200 << 20 };
	struct hd_vn_profile p = { "tiny", 0, 100 << 20, &wave, 1 };
	struct solver_bench b;
	char words[1000];
	struct hd_text text;
	struct hd_diag diag = { "" };
	struct hd_solve_plan plan;
	(void)state;

	bench_open(&b, 8);
	add_type(&b, "big", 0, 1000, 0);
	assert_int_equal(hd_vn_cost_make(&b.type[b.ask.ntypes++], &p, 8, &b.arena, NULL), HD_OK);
	add_device(&b, 0, true, 0);
	add_device(&b, 1, true, 0);
	struct hd_solve s = solved(&b);
	assert_true(s.plan.count[0] == 8);
	hd_text_fixed(&text, words, sizeof words);
	hd_solve_print(&s, &b.ask, &text);
	CHECK(strstr(words, "1 x tiny: not even one virtual node fits (needs 200.0 MiB, has 100.0 MiB)\n"),
		"%s", words);
	b.device[0].type = 1;
	assert_int_equal(hd_solve_least(&plan, &b.ask, NULL, NULL, &b.arena, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "tiny has 100.0 MiB and needs 200.0 MiB"), "%s", diag.text);
	hd_arena_finish(&b.arena);
}

static void many_devices_are_levelled_and_it_is_said(void **state)
{
	enum { VNS = DRAWS(1000) };
	struct solver_bench b;
	uint32_t sum = 0;
	char words[1000];
	struct hd_text text;
	(void)state;

	bench_open(&b, VNS);
	for (uint32_t t = 0; t < 4; t++)
		add_type(&b, "t", 100, 1000 + 300 * t, 0);
	for (uint32_t d = 0; d < 16; d++)
		add_device(&b, d % 4, true, 0);
	struct hd_solve s = solved(&b);
	assert_false(s.plan.exact);
	for (uint32_t d = 0; d < 16; d++)
		sum += s.plan.count[d];
	assert_int_equal(sum, VNS);
	/* the least level: one picosecond less and they do not do it */
	uint32_t most = 0;
	for (uint32_t d = 0; d < 16; d++)
		most += (uint32_t)((s.plan.step_ps - 1 - 100) / (1000 + 300 * (d % 4)));
	assert_true(most < VNS);
	hd_text_fixed(&text, words, sizeof words);
	hd_solve_print(&s, &b.ask, &text);
	assert_non_null(strstr(words, "; found by levels, not by trying all\n"));
	hd_arena_finish(&b.arena);
}

static void nonsense_is_refused(void **state)
{
	struct solver_bench b;
	struct hd_solve_plan p;
	(void)state;

	bench_open(&b, 8);
	add_type(&b, "a", 0, 1000, 0);
	add_device(&b, 0, true, 0);
	struct hd_solve_ask bad[6];
	struct hd_solve_device wrong[] = { { 1, 0 }, { 0, 1 } };
	uint32_t error = 1000001;
	for (size_t i = 0; i < 6; i++)
		bad[i] = b.ask;
	bad[0].nvns = 9;
	bad[1].ndevices = 0;
	bad[2].device = &wrong[0];
	bad[3].device = &wrong[1];
	bad[4].gradient_bytes = -1;
	bad[5].error_ppm = &error;
	bad[5].nerrors = 1;
	for (size_t i = 0; i < 6; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_solve_least(&p, &bad[i], NULL, NULL, &b.arena, &diag) == HD_E_INVAL && *diag.text,
			"case %zu", i);
	}
	hd_arena_finish(&b.arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_equal_the_best_of_all_counts_and_orders),
		cmocka_unit_test(a_worker_more_never_makes_the_step_longer),
		cmocka_unit_test(the_order_in_which_devices_are_told_does_not_matter),
		cmocka_unit_test(times_in_another_unit_give_the_same_map),
		cmocka_unit_test(the_published_examples_come_out),
		cmocka_unit_test(the_published_settings_gain_or_are_refused),
		cmocka_unit_test(a_worker_slowed_three_times_still_adds_a_third),
		cmocka_unit_test(a_gain_below_the_margin_is_no_reason_to_take_more_devices),
		cmocka_unit_test(a_plan_in_use_is_left_only_for_a_gain_or_for_nothing),
		cmocka_unit_test(equal_plans_move_nothing),
		cmocka_unit_test(a_type_that_does_not_fit_is_left_out_and_told),
		cmocka_unit_test(many_devices_are_levelled_and_it_is_said),
		cmocka_unit_test(nonsense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
