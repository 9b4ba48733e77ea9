/* Fill and steady state against all stages there are, on chains of up to 12 cuts and small sets of
 * devices. */
#include "planner/steady.h"

#include <math.h>
#include <string.h>

#include "tests/planning.h"
#include "tests/check.h"

enum { NODES_MOST = 12, DEVICES_MOST = 6 };

static struct hd_arena scratch;

/* A chain of n nodes; times are scaled by a power of two, and sizes too. */
struct model { struct hd_profile profile; struct hd_cuts cuts; struct hd_cut_sums sums;
	struct hd_steady_table table; };

static void make_chain(struct model *m, struct hd_dice d, uint32_t n, int64_t scale)
{
	struct hd_profile *p = &m->profile;

	*p = hd_chain_profile(n);
	for (uint32_t v = 0; v < n; v++) {
		struct hd_profile_node *node = &p->node[v];
		node->out[0] = scale * (1 + hd_roll(&d, 64)) * 4096;
		node->f.p50_ns = scale * 1024 * (1 + hd_roll(&d, 32));
		node->i.p50_ns = scale * 1024 * (1 + hd_roll(&d, 32));
		node->w.p50_ns = scale * 1024 * hd_roll(&d, 32);
		node->param = scale * 4096 * (hd_roll(&d, 3) ? hd_roll(&d, 16) : 512);
		node->saved = scale * 8192 * (1 + hd_roll(&d, 64));
	}
	hd_sums_of(&m->sums, &m->cuts, p, (struct hd_cuts_how){ 0 });
	assert_int_equal(m->cuts.n, n);
	assert_int_equal(hd_steady_table_make(&m->table, &m->sums, HD_STEADY_CUTS, &arena, NULL), HD_OK);
}

/* 2 kinds of devices at the most, one or two levels, bandwidths that are powers of two. */
static void make_cluster(struct hd_cluster *c, struct hd_dice *d, uint32_t inner, uint32_t outer, bool alike,
	bool limited, int64_t scale)
{
	static struct hd_cluster_kind kind[2];
	static uint32_t of[DEVICES_MOST];

	kind[0] = (struct hd_cluster_kind){ "a", 1, limited ? scale * (int64_t)(1 + hd_roll(d, 64)) * 65536 :
		0 };
	kind[1] = (struct hd_cluster_kind){ "b", 0.5, limited ?
		scale * (int64_t)(1 + hd_roll(d, 64)) * 65536 : 0 };
	*c = (struct hd_cluster){ .kind = kind, .nkinds = 2, .nlevels = outer > 1 ? 2 : 1, .device_kind = of,
		.ndevices = inner * outer };
	c->level[0] = (struct hd_cluster_level){ "in", inner, ldexp(1, 28 + (int)hd_roll(d, 4)),
		scale * (int64_t)hd_roll(d, 1000) };
	c->level[1] = (struct hd_cluster_level){ "out", outer, ldexp(1, 26 + (int)hd_roll(d, 3)),
		scale * (int64_t)hd_roll(d, 100000) };
	for (uint32_t x = 0; x < c->ndevices; x++)
		of[x] = alike ? 0 : hd_roll(d, 2);
}

/* ---- all stages there are: nodes first .. n - 1 on sites x .. */

struct brute { const struct hd_profile *p; const struct hd_steady_how *how; uint32_t nsites; double best; };

static uint32_t counter_bits(uint32_t n)
{
	uint32_t bits = 0;

	while (n) {
		bits++;
		n /= 2;
	}
	return bits;
}

static void stage_of(const struct brute *b, uint32_t first, uint32_t last, uint32_t x, uint32_t r,
	double *fill, double *slow, bool *fits)
{
	const struct hd_steady_how *h = b->how;
	double t = 0, again = 0, param = 0, saved = 0, in = first ? (double)b->p->node[first - 1].out[0] : 0,
		speed = 1e9, memory = INFINITY, hop = 0,
		red = 0;
	double m = h->m, n, flight, copies = r;

	for (uint32_t v = first; v <= last; v++) {
		const struct hd_profile_node *node = &b->p->node[v];
		t += 1000.0 * (double)(node->f.p50_ns + node->i.p50_ns + node->w.p50_ns);
		again += 1000.0 * (double)node->f.p50_ns;
		param += (double)node->param;
		saved += (double)node->saved;
	}
	if (h->site) {
		speed = h->site[x].speed;
		memory = h->site[x].memory ? (double)h->site[x].memory : INFINITY;
		hop = h->site[x].latency_ps + in * h->site[x].inv_bytes_ps;
		copies = h->copies;
		red = copies > 1 ? 2 * (copies - 1) / copies * param * h->site[x].red_inv_bytes_ps + 2 *
			h->site[x].red_latency_ps : 0;
		n = m;
		flight = h->site[x].inflight;
	} else {
		uint32_t in_level = 0, level = 0, span = h->cluster->level[0].components;
		for (uint32_t y = x; y < x + r; y++) {
			const struct hd_cluster_kind *kind = &h->cluster->kind[h->cluster->device_kind[y]];
			speed = fmin(speed, kind->speed);
			memory = fmin(memory, kind->memory ? (double)kind->memory : INFINITY);
		}
		if (first)
			in_level = (x - 1) / span != (x + r - 1) / span;
		level = x / span != (x + r - 1) / span;
		hop = first ? (double)h->cluster->level[in_level].latency_ps + in *
			1e12 / h->cluster->level[in_level].bytes_per_s : 0;
		red = r > 1 ? 2 * (copies - 1) / copies * param * 1e12 / h->cluster->level[level].bytes_per_s
			+ 2 * (double)h->cluster->level[level].latency_ps : 0;
		n = ceil(m / r);
		flight = floor((double)(b->nsites - 1 - x) / r) + 1;
	}
	flight = h->site && h->site[x].every ? flight : fmin(flight, n);
	double out = last + 1 < b->p->nnodes ? (double)b->p->node[last].out[0] : 0;
	double versions = h->site && h->site[x].versions ? h->site[x].versions : 1, every = h->site &&
		h->site[x].every ? h->site[x].every : n;
	double fixed = param * (versions + counter_bits((uint32_t)every)) + 2 * (in + out);
	double plain = fixed + flight * saved, less = fixed + flight * fmin(in,
		saved) + (saved - fmin(in, saved));
	bool recompute = h->recompute == HD_STEADY_ALWAYS ||
		(h->recompute == HD_STEADY_IF_NEEDED && plain > memory);
	*fits = (recompute ? less : plain) <= memory;
	t = (t + (recompute ? again : 0)) / speed;
	hop = first ? hop : 0;
	*fill = t + 2 * hop;
	double chunks = h->chunks ? h->chunks : 1;
	*slow = fmax((n - 1) * chunks * t + red, (n - 1) * chunks * hop);
}

static void all_stages(struct brute *b, uint32_t first, uint32_t x, double fill, double slow)
{
	if (first == b->p->nnodes) {
		if (!b->how->site || x == b->nsites)
			b->best = fmin(b->best, fill + slow);
		return;
	}
	for (uint32_t last = first; last < b->p->nnodes; last++)
		for (uint32_t r = 1; x + r <= b->nsites && (r == 1 || !b->how->site); r++) {
			double f, q;
			bool fits;
			stage_of(b, first, last, x, r, &f, &q, &fits);
			if (fits)
				all_stages(b, last + 1, x + r, fill + f, fmax(slow, q));
		}
}

static void compare(const struct model *m, const struct hd_steady_how *how, const char *what, uint32_t seed)
{
	struct brute b = { &m->profile, how, how->site ? how->nsites : how->cluster->ndevices, INFINITY };
	struct hd_steady got = { 0 };
	struct hd_diag diag = { "" };

	all_stages(&b, 0, 0, 0, 0);
	enum hd_err err = hd_steady_solve(&got, &m->table, how, &arena, &scratch, &diag);
	CHECK(err == (b.best < INFINITY ? HD_OK : HD_E_NOTFOUND), "%s %u: error %d %s, best is %g", what,
		seed, err, diag.text, b.best);
	if (!err)
		CHECK(fabs(hd_steady_ps(&got) - b.best) <= 1e-12 * b.best,
			"%s %u: %.17g ps, all stages there are give %.17g", what, seed,
			hd_steady_ps(&got), b.best);
	hd_arena_reset(&scratch);
}

static void copies_on_devices_are_as_good_as_all_stages_there_are(void **state)
{
	uint32_t seen_recompute = 0, seen_copies = 0;

	(void)state;
	for (uint32_t seed = 0; seed < 600; seed++) {
		struct hd_dice d = { seed };
		struct model m;
		struct hd_cluster c;
		uint32_t inner = 1 + hd_roll(&d, 3), outer = 1 + hd_roll(&d, 2), devices = inner * outer;
		bool alike = hd_roll(&d, 2), limited = hd_roll(&d, 2);
		make_chain(&m, d, 1 + seed % (devices > 4 ? 7 : 10), 1);
		make_cluster(&c, &d, inner, outer, alike, limited, 1);
		struct hd_steady_how how = { .m = 1 + hd_roll(&d, 12), .cluster = &c,
			.recompute = (enum hd_steady_recompute)hd_roll(&d, 3) };
		compare(&m, &how, "copies", seed);
		struct hd_steady got;
		enum hd_err err = hd_steady_solve(&got, &m.table, &how, &arena, &scratch, NULL);
		for (uint32_t s = 0; !err && s < got.nstages; s++) {
			seen_recompute += got.stage[s].recompute && how.recompute == HD_STEADY_IF_NEEDED;
			seen_copies += got.stage[s].replicas > 1 && got.nstages > 1;
		}
		hd_arena_reset(&arena);
		hd_arena_reset(&scratch);
	}
	assert_true(seen_recompute > 0 && seen_copies > 0);
}

static void straight_stages_are_as_good_as_all_there_are(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 600; seed++) {
		struct hd_dice d = { seed + 9000 };
		struct hd_steady_site site[4];
		struct model m;
		uint32_t sites = 1 + hd_roll(&d, 4);
		for (uint32_t s = 0; s < sites; s++)
			site[s] = (struct hd_steady_site){ hd_roll(&d, 2) ? 1 : 0.5,
				hd_roll(&d, 2) ? (int64_t)(1 + hd_roll(&d, 64)) * 65536 : 0,
				ldexp(1e12, -28 - (int)hd_roll(&d, 4)),
				hd_roll(&d, 100000), ldexp(1e12, -28), 100, 1 + hd_roll(&d, sites),
				hd_roll(&d, 3), hd_roll(&d, 2) };
		make_chain(&m, d, 1 + seed % NODES_MOST, 1);
		compare(&m, &(struct hd_steady_how){ .m = 1 + hd_roll(&d, 20), .chunks = 1 + hd_roll(&d, 3),
			.site = site, .nsites = sites,
			.copies = 1 + hd_roll(&d, 3),
			.recompute = (enum hd_steady_recompute)hd_roll(&d, 3) }, "straight", seed);
		hd_arena_reset(&arena);
	}
}

/* One of two devices half as fast: the slow one is given less. */
static void a_slow_device_is_given_less(void **state)
{
	static struct hd_cluster_kind kind[2] = { { "fast", 1, 0 }, { "slow", 0.5, 0 } };
	static uint32_t of[2];
	struct hd_cluster c = { .kind = kind, .nkinds = 2, .level = { { "l", 2, 1e12, 0 } }, .nlevels = 1,
		.device_kind = of, .ndevices = 2 };
	struct hd_steady_site site[2] = { { 1, 0, 0, 0, 0, 0, 2, 0, 0 }, { 0.5, 0, 0, 0, 0, 0, 1, 0, 0 } };
	struct model m;
	struct hd_steady a;

	(void)state;
	make_chain(&m, (struct hd_dice){ 4 }, 12, 1);
	for (uint32_t v = 0; v < 12; v++)
		m.profile.node[v].f.p50_ns = m.profile.node[v].i.p50_ns = m.profile.node[v].w.p50_ns = 1000;
	hd_sums_of(&m.sums, &m.cuts, &m.profile, (struct hd_cuts_how){ 0 });
	assert_int_equal(hd_steady_table_make(&m.table, &m.sums, HD_STEADY_CUTS, &arena, NULL), HD_OK);
	assert_int_equal(hd_steady_solve(&a, &m.table, &(struct hd_steady_how){ .m = 1000, .site = site,
		.nsites = 2, .copies = 1 }, &arena, &scratch,
		NULL), HD_OK);
	assert_int_equal(a.stage[0].last, 7);
	assert_int_equal(a.stage[1].first, 8);
	of[1] = 1;
	compare(&m, &(struct hd_steady_how){ .m = 1000, .cluster = &c }, "two kinds", 0);
	hd_arena_reset(&arena);
}

static void scaling_times_and_sizes_by_a_power_of_two_scales_the_time_exactly(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 100; seed++) {
		struct hd_dice d = { seed }, same;
		struct model one, eight;
		struct hd_cluster c;
		struct hd_steady a, b;
		uint32_t n = 2 + hd_roll(&d, 10), m = 1 + hd_roll(&d, 20);
		make_chain(&one, d, n, 1);
		make_chain(&eight, d, n, 8);
		same = d;
		make_cluster(&c, &d, 2, 2, false, true, 1);
		enum hd_err e = hd_steady_solve(&a, &one.table,
			&(struct hd_steady_how){ .m = m, .cluster = &c }, &arena, &scratch, NULL);
		make_cluster(&c, &same, 2, 2, false, true, 8);
		hd_arena_reset(&scratch);
		assert_int_equal(hd_steady_solve(&b, &eight.table,
			&(struct hd_steady_how){ .m = m, .cluster = &c }, &arena, &scratch, NULL), e);
		if (!e)
			CHECK(8 * hd_steady_ps(&a) == hd_steady_ps(&b) && a.nstages == b.nstages &&
				memcmp(&a.stage[0].replicas, &b.stage[0].replicas, 4) == 0,
				"%u: %.17g ps, 8 times it is %.17g", seed, hd_steady_ps(&a),
				hd_steady_ps(&b));
		hd_arena_reset(&arena);
		hd_arena_reset(&scratch);
	}
}

/* Data parallel, one device, and every partition of PipeDream's recurrence are among the stages. */
static void never_slower_than_one_device_or_all_alike(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 200; seed++) {
		struct hd_dice d = { seed };
		struct model m;
		struct hd_cluster c;
		struct hd_steady a;
		uint32_t n = 1 + hd_roll(&d, 30), devices = 1 + hd_roll(&d, 6), vns = 1 + hd_roll(&d, 40);
		make_chain(&m, d, n, 1);
		make_cluster(&c, &d, devices, 1, true, false, 1);
		assert_int_equal(hd_steady_solve(&a, &m.table,
			&(struct hd_steady_how){ .m = vns, .cluster = &c }, &arena, &scratch, NULL), HD_OK);
		struct hd_stage_cost all = hd_cut_sums_range(&m.sums, 0, n);
		double t = (double)(all.f + all.i + all.w), one = vns * t;
		double data = ceil((double)vns / devices) * t
			+ (devices > 1 ? 2 * (devices - 1.0) / devices * (double)all.param *
				1e12 / c.level[0].bytes_per_s +
			2 * (double)c.level[0].latency_ps : 0);
		CHECK(hd_steady_ps(&a) <= one && hd_steady_ps(&a) <= data * (1 + 1e-12),
			"%u: %g ps, one device %g, data parallel %g", seed,
			hd_steady_ps(&a), one, data);
		hd_arena_reset(&arena);
		hd_arena_reset(&scratch);
	}
}

static void the_least_memory_fits_and_a_byte_less_does_not(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 200; seed++) {
		struct hd_dice d = { seed };
		struct model m;
		struct hd_cluster c;
		struct hd_steady a;
		int64_t bytes = 0;
		make_chain(&m, d, 1 + hd_roll(&d, 10), 1);
		make_cluster(&c, &d, 1 + hd_roll(&d, 3), 1 + hd_roll(&d, 2), true, false, 1);
		struct hd_steady_how how = { .m = 1 + hd_roll(&d, 12), .cluster = &c };
		assert_int_equal(hd_steady_least_bytes(&bytes, &m.table, &how, &scratch, NULL), HD_OK);
		c.kind[0].memory = bytes;
		CHECK(hd_steady_solve(&a, &m.table, &how, &arena, &scratch, NULL) == HD_OK,
			"%u: %lld bytes are not enough", seed, (long long)bytes);
		c.kind[0].memory = bytes - 1;
		CHECK(hd_steady_solve(&a, &m.table, &how, &arena, &scratch, NULL) == HD_E_NOTFOUND,
			"%u: a byte less is enough", seed);
		hd_arena_reset(&arena);
		hd_arena_reset(&scratch);
	}
}

/* 2000 cuts are thinned: the last is kept, ranges rise, and each share keeps its least output. */
static void many_cuts_are_thinned_to_the_cheapest_of_each_share(void **state)
{
	struct model m;
	struct hd_steady_table t;

	(void)state;
	make_chain(&m, (struct hd_dice){ 1 }, 2000, 1);
	assert_int_equal(hd_steady_table_make(&t, &m.sums, 64, &arena, NULL), HD_OK);
	assert_in_range(t.n, 60, 65);
	assert_int_equal(t.cut[t.n - 1], 1999);
	for (uint32_t i = 1; i < t.n; i++)
		assert_true(t.cut[i] > t.cut[i - 1]);
	for (uint32_t i = 0; i + 1 < t.n; i++)
		for (uint32_t j = 0; j < 1999; j++) {
			double all = (double)m.cuts.time_ns[1999];
			if ((uint32_t)(63 * ((double)m.cuts.time_ns[j] / all)) ==
				(uint32_t)(63 * ((double)m.cuts.time_ns[t.cut[i]] / all)))
				assert_true(m.cuts.out[t.cut[i]] <= m.cuts.out[j]);
		}
	hd_arena_reset(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_on_devices_are_as_good_as_all_stages_there_are),
		cmocka_unit_test(straight_stages_are_as_good_as_all_there_are),
		cmocka_unit_test(a_slow_device_is_given_less),
		cmocka_unit_test(scaling_times_and_sizes_by_a_power_of_two_scales_the_time_exactly),
		cmocka_unit_test(never_slower_than_one_device_or_all_alike),
		cmocka_unit_test(the_least_memory_fits_and_a_byte_less_does_not),
		cmocka_unit_test(many_cuts_are_thinned_to_the_cheapest_of_each_share),
	};

	hd_arena_init(&arena, 0);
	hd_arena_init(&scratch, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	hd_arena_finish(&scratch);
	return failed;
}
