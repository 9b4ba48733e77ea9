/* The planner on random models and clusters: never slower than one device or data parallel, equal bytes,
 * reasons for refusals. */
#include "planner/planner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "pipeline/generate.h"
#include "pipeline/passes.h"
#include "pipeline/schedule_check.h"
#include "pipeline/sim_plan.h"
#include "planner/search/shape.h"
#include "tests/planning.h"
#include "tests/check.h"

enum { DEVICES_MOST = 12 };

struct model { struct hd_profile profile; struct hd_cuts cuts; struct hd_cut_sums sums; };

static void settle(struct model *m) { hd_sums_of(&m->sums, &m->cuts, &m->profile, (struct hd_cuts_how){ 0 });
	}

/* n nodes in a chain, some with a second branch around the next. 3840 is divided by each number of copies
 * up to 6. */
static void make_model(struct model *m, struct hd_dice d, uint32_t n, int64_t scale, bool branches)
{
	struct hd_profile *p = &m->profile;

	*p = hd_chain_profile(n);
	p->tensor_shards = 4;
	for (uint32_t v = 0; v < n; v++) {
		struct hd_profile_node *node = &p->node[v];
		node->out[0] = scale * (1 + hd_roll(&d, 64)) * 256;
		node->f.p50_ns = scale * 1024 * (1 + hd_roll(&d, 32));
		node->i.p50_ns = scale * 1024 * (1 + hd_roll(&d, 32));
		node->w.p50_ns = scale * 1024 * hd_roll(&d, 32);
		node->param = scale * 3840 * (hd_roll(&d, 3) ? hd_roll(&d, 16) : 512);
		node->saved = scale * 8192 * (1 + hd_roll(&d, 64));
		node->act_w = 0.5;
		if (v > 1 && branches && !hd_roll(&d, 3))
			p->edge[p->nedges++] = (struct hd_profile_edge){ v - 2, v, 0 };
	}
	settle(m);
}

struct machines { struct hd_cluster cluster; struct hd_cluster_kind kind[2]; uint32_t of[DEVICES_MOST]; };

static void make_machines(struct machines *c, struct hd_dice *d, uint32_t inner, uint32_t outer, bool alike,
	int64_t memory, int64_t scale)
{
	c->kind[0] = (struct hd_cluster_kind){ "a", 1, scale * memory };
	c->kind[1] = (struct hd_cluster_kind){ "b", 0.5, scale * memory };
	c->cluster = (struct hd_cluster){ .kind = c->kind, .nkinds = 2, .nlevels = 2, .device_kind = c->of,
		.ndevices = inner * outer };
	c->cluster.level[0] = (struct hd_cluster_level){ "in", inner, 1e10,
		scale * (int64_t)hd_roll(d, 1000) * 1000 };
	c->cluster.level[1] = (struct hd_cluster_level){ "out", outer, hd_roll(d, 2) ? 1e9 : 1e8,
		scale * (int64_t)hd_roll(d, 20000) * 1000 };
	for (uint32_t x = 0; x < c->cluster.ndevices; x++)
		c->of[x] = alike ? 0 : hd_roll(d, 2);
}

static void print(const struct hd_auto *a, const struct model *m, const struct machines *c,
	struct hd_text *text)
{
	hd_text_init(text, &arena);
	hd_auto_print(&a->plan[0], &m->sums, &c->cluster, text);
	assert_false(text->full);
}

/* Rule 4 of the header, written again. */
static bool in_order(const struct hd_auto_plan *a, const struct hd_auto_plan *b)
{
	int64_t keys[2][4] = { { a->makespan_ps, (int64_t)a->nranks * a->shape.t, a->peak, a->order },
		{ b->makespan_ps, (int64_t)b->nranks * b->shape.t, b->peak,
		b->order } };

	for (int k = 0; k < 4; k++)
		if (keys[0][k] != keys[1][k])
			return keys[0][k] < keys[1][k];
	return false;
}

static void never_slower_than_one_device_or_data_parallel_and_the_checker_accepts_it(void **state)
{
	static const enum hd_update_mode updates[] = { HD_UPDATE_FLUSH, HD_UPDATE_FLUSH, HD_UPDATE_FLUSH,
		HD_UPDATE_2BW, HD_UPDATE_STASH, HD_UPDATE_VSYNC };
	uint32_t pipelines = 0, plain = 0, replicas = 0, refused = 0;

	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(240); seed++) {
		struct hd_dice d = { seed };
		struct machines c;
		struct model m;
		struct hd_auto a;
		struct hd_diag diag = { "" };
		struct hd_text text;
		struct hd_schedules again;
		uint32_t inner = 1 + hd_roll(&d, 4), outer = 1 + hd_roll(&d, 3);
		make_machines(&c, &d, inner, outer, hd_roll(&d, 2),
			hd_roll(&d, 4) ? 0 : (8 + (int64_t)hd_roll(&d, 64)) << 20, 1);
		make_model(&m, d, 2 + hd_roll(&d, 12), 1, hd_roll(&d, 2));
		struct hd_auto_ask ask = { .vns = 1 + hd_roll(&d, 24), .update = updates[hd_roll(&d, 6)] };
		enum hd_err err = hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag);
		if (err) {
			CHECK(err == HD_E_INVAL && c.kind[0].memory &&
				strstr(diag.text, "the smallest need is about"), "%u: %s", seed, diag.text);
			refused++;
			hd_arena_reset(&arena);
			continue;
		}
		const struct hd_auto_plan *p = &a.plan[0];
		CHECK((a.one_ps < 0 || p->makespan_ps <= a.one_ps) &&
			(a.data_ps < 0 || p->makespan_ps <= a.data_ps),
			"%u: %lld ps, one device %lld, data parallel %lld",
			seed, (long long)p->makespan_ps, (long long)a.one_ps, (long long)a.data_ps);
		for (uint32_t i = 1; i < a.nplans; i++)
			assert_true(in_order(&a.plan[i - 1], &a.plan[i]));
		for (uint32_t r = 0; r < p->nranks; r++)
			CHECK(!p->rank[r].memory || p->rank[r].peak <= p->rank[r].memory,
				"%u: rank %u needs %lld bytes", seed, r,
				(long long)p->rank[r].peak);
		print(&a, &m, &c, &text);
		assert_int_equal(hd_schedules_parse(&again, text.at, text.len, "p", &arena, &diag), HD_OK);
		assert_int_equal(again.len, 1);
		CHECK(hd_schedule_check(&again.at[0], &(struct hd_schedule_rules){ HD_TRANSPORT_EAGER, 0 },
			NULL, &diag) == HD_OK, "%u: %s", seed, diag.text);
		pipelines += p->shape.p > 1 && p->shape.d;
		replicas += !p->shape.d;
		plain += p->shape.p == 1;
		hd_arena_reset(&arena);
	}
	CHECK(pipelines > DRAWS(10) && plain > DRAWS(10) && (SANITIZED || replicas > 0) &&
		refused < DRAWS(40),
		"%u pipelines, %u plain, %u of copies, %u refused", pipelines, plain, replicas, refused);
}

/* Independent of the planner: every virtual node's work on one device, one after the other. */
static void one_device_takes_the_sum_of_its_work(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(20); seed++) {
		struct hd_dice d = { seed };
		struct machines c;
		struct model m;
		struct hd_auto a;
		int64_t work = 0;
		make_machines(&c, &d, 1, 1, true, 0, 1);
		make_model(&m, d, 3 + seed % 5, 1, false);
		for (uint32_t v = 0; v < m.profile.nnodes; v++)
			work += 1000 * (m.profile.node[v].f.p50_ns + m.profile.node[v].i.p50_ns +
				m.profile.node[v].w.p50_ns);
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &(struct hd_auto_ask){ .vns = 5 },
			&arena, NULL), HD_OK);
		assert_int_equal(a.plan[0].makespan_ps, 5 * work);
		assert_int_equal(a.plan[0].nranks, 1);
		assert_int_equal(a.nplans, 1);
		hd_arena_reset(&arena);
	}
}

static void the_error_band_is_two_deviations_of_all_work(void **state)
{
	struct hd_dice d = { 7 };
	struct machines c;
	struct model m;
	struct hd_auto a;
	double variance = 0;

	(void)state;
	make_machines(&c, &d, 1, 1, true, 0, 1);
	make_model(&m, d, 4, 1, false);
	for (uint32_t v = 0; v < 4; v++) {
		struct hd_profile_cost *of[] = { &m.profile.node[v].f, &m.profile.node[v].i,
			&m.profile.node[v].w };
		for (int k = 0; k < 3; k++) {
			of[k]->n = 10;
			of[k]->mean_ns = of[k]->p50_ns;
			of[k]->sd_ns = 100 * ((int64_t)v + 1) + 1000 * k;
			variance += 9 * (double)of[k]->sd_ns * (double)of[k]->sd_ns;
		}
	}
	settle(&m);
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &(struct hd_auto_ask){ .vns = 9 }, &arena,
		NULL), HD_OK);
	double two = 2000 * sqrt(variance);
	assert_true(fabs((double)(a.plan[0].high_ps - a.plan[0].makespan_ps) - two) < 10 &&
		fabs((double)(a.plan[0].makespan_ps - a.plan[0].low_ps) - two) < 10);
	hd_arena_reset(&arena);
}

/* Half the work each, and both ways a sum of the output over the pair: half of it there and half back,
 * latency twice. */
static void a_tensor_group_halves_the_work_and_pays_for_sums(void **state)
{
	struct hd_dice d = { 7 };
	struct machines c;
	struct model m;
	struct hd_auto a;

	(void)state;
	make_machines(&c, &d, 2, 1, true, 0, 1);
	make_model(&m, d, 1, 1, false);
	const struct hd_profile_node *n = &m.profile.node[0];
	int64_t work = 1000 * (n->f.p50_ns + n->i.p50_ns + n->w.p50_ns) / 2,
		sum = n->out[0] * 100 + 2 * c.cluster.level[0].latency_ps;
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster,
		&(struct hd_auto_ask){ .vns = 3, .tensor_shards = 2, .t = 2 }, &arena, NULL), HD_OK);
	assert_int_equal(a.plan[0].nranks, 1);
	assert_int_equal(a.plan[0].shape.t, 2);
	assert_int_equal(a.plan[0].makespan_ps, 3 * (work + 2 * sum));
	hd_arena_reset(&arena);
}

/* A norm between products sums nothing; its work is whole on both devices, its weights too, unless the
 * sequence is split. */
static void a_tensor_group_shares_norms_only_along_the_sequence(void **state)
{
	(void)state;
	for (int sequence = 0; sequence < 2; sequence++) {
		struct hd_dice d = { 7 };
		struct machines c;
		struct model m;
		struct hd_auto a;
		struct hd_text why;
		make_machines(&c, &d, 2, 1, true, 0, 1);
		make_model(&m, d, 2, 1, false);
		struct hd_profile_node *n = m.profile.node;
		n[1].op = sequence ? "add_layernorm h.0.ln_2.weight" : "layernorm";
		n[1].param = 3840;
		settle(&m);
		int64_t product = 1000 * (n[0].f.p50_ns + n[0].i.p50_ns + n[0].w.p50_ns) / 2,
			norm = 1000 * (n[1].f.p50_ns + n[1].i.p50_ns + n[1].w.p50_ns);
		int64_t sum = n[0].out[0] * 100 + 2 * c.cluster.level[0].latency_ps;
		const struct hd_auto_ask ask = { .vns = 3, .tensor_shards = 2, .t = 2, .p = 1,
			.sequence = sequence };
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		CHECK(a.plan[0].makespan_ps == 3 * (product + 2 * sum + (sequence ? norm / 2 : norm)),
			"sequence %d: %lld ps", sequence,
			(long long)a.plan[0].makespan_ps);
		const struct hd_stage_cost *cost = &a.plan[0].costs.stage[0];
		CHECK(cost->param == n[0].param / 2 + n[1].param, "%lld bytes of weights",
			(long long)cost->param);
		CHECK(cost->saved == n[0].saved / 2 + n[1].saved / (sequence ? 2 : 1), "%lld bytes kept",
			(long long)cost->saved);
		hd_text_init(&why, &arena);
		hd_auto_explain(&a, &m.sums, &c.cluster, &ask, false, &why);
		CHECK(strstr(why.at, sequence ? "are shared out along the sequence" :
			"are whole on each device"), "it says %s", why.at);
		hd_arena_reset(&arena);
	}
}

/* What the planner counts with is never less than the schedule keeps, and of the fullest rank what it
 * keeps. */
static void closed_forms_of_what_is_in_flight_hold_in_the_simulator(void **state)
{
	(void)state;
	for (const struct hd_auto_row *row = hd_auto_rows; row->schedule; row++)
		for (uint32_t p = row->alone ? 1 : 2; p <= (row->alone ? 1 : 8); p++)
			for (uint32_t m = row->least_m(p); m <= 4 * p; m++)
				for (uint32_t v = row->vmin; v <= row->vmax; v++) {
					struct hd_schedule s;
					struct hd_sim sim;
					uint32_t most[2] = { 0, 0 };
					s = hd_named_schedule(row->alone ? "1f1b" : row->schedule, p, m, v);
					assert_int_equal(hd_simulate(&sim, &s,
						&(struct hd_sim_ask){ .costs = HD_UNIT_COSTS }, &arena, NULL),
						HD_OK);
					for (uint32_t r = 0; r < p; r++) {
						uint32_t kept =
							(sim.rank[r].peak + sim.per_rank - 1) / sim.per_rank,
							counted = row->inflight(p, m, v, r);
						CHECK(counted >= kept,
							"%s p = %u m = %u v = %u: rank %u keeps %u, not %u",
							row->schedule, p, m, v, r,
							kept, counted);
						most[0] = kept > most[0] ? kept : most[0];
						most[1] = counted > most[1] ? counted : most[1];
					}
					if (m >= 2 * p)
						CHECK(most[0] == most[1],
							"%s p = %u m = %u v = %u: at most %u, not %u",
							row->schedule, p, m, v, most[0],
							most[1]);
					hd_arena_reset(&arena);
				}
}

static void equal_arguments_give_equal_bytes_whatever_the_order_of_nodes(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(40); seed++) {
		struct hd_dice d = { seed };
		struct machines c;
		struct model m, shuffled;
		struct hd_auto a, b;
		struct hd_text one, two;
		uint32_t at[16], n = 3 + hd_roll(&d, 10);
		make_machines(&c, &d, 2, 2, hd_roll(&d, 2), 0, 1);
		make_model(&m, d, n, 1, false);
		shuffled = m;
		shuffled.profile.node = hd_arena_take(&arena, n, sizeof *m.profile.node);
		shuffled.profile.edge = hd_arena_take(&arena, n, sizeof *m.profile.edge);
		for (uint32_t v = 0; v < n; v++)
			at[v] = v;
		for (uint32_t v = n - 1; v > 1; v--) {
			uint32_t w = 1 + hd_roll(&d, v), keep = at[v];
			at[v] = at[w];
			at[w] = keep;
		}
		for (uint32_t v = 0; v < n; v++)
			shuffled.profile.node[at[v]] = m.profile.node[v];
		for (uint32_t e = 0; e < m.profile.nedges; e++)
			shuffled.profile.edge[m.profile.nedges - 1 - e] =
				(struct hd_profile_edge){ at[m.profile.edge[e].from],
				at[m.profile.edge[e].to], 0 };
		settle(&shuffled);
		struct hd_auto_ask ask = { .vns = 1 + hd_roll(&d, 20) };
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		assert_int_equal(hd_plan_auto(&b, &shuffled.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		print(&a, &m, &c, &one);
		print(&b, &shuffled, &c, &two);
		assert_string_equal(one.at, two.at);
		hd_arena_reset(&arena);
	}
}

/* Every build and machine: the digest of what fixed questions print: of eight, under a sanitizer of
 * three. */
static void the_bytes_are_those_of_every_other_build(void **state)
{
	struct hd_hasher h;
	char hex[HD_HASH_HEX];

	(void)state;
	hd_hasher_init(&h);
	for (uint32_t seed = 0; seed < (SANITIZED ? 3 : 8); seed++) {
		struct hd_dice d = { seed + 100 };
		struct machines c;
		struct model m;
		struct hd_auto a;
		struct hd_text text;
		struct hd_auto_ask ask = { .vns = 7 + 3 * seed,
			.update = seed % 4 == 3 ? HD_UPDATE_2BW : HD_UPDATE_FLUSH };
		make_machines(&c, &d, 4, 2, seed % 2, 0, 1);
		make_model(&m, d, 12, 1, seed % 3 == 0);
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		print(&a, &m, &c, &text);
		hd_auto_explain(&a, &m.sums, &c.cluster, &ask, true, &text);
		hd_hasher_add(&h, text.at, text.len);
		hd_arena_reset(&arena);
	}
	hd_hash_hex(hd_hasher_end(&h), hex);
	assert_string_equal(hex, SANITIZED ? "022922a38066a5cdb3d30ceb1fbcc790" :
		"fb1e19e93c44968fd87fc10f5f580f55");
}

static void scaling_all_costs_by_a_power_of_two_scales_the_prediction_exactly(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(60); seed++) {
		struct hd_dice d = { seed }, same;
		struct machines c;
		struct model one, eight;
		struct hd_auto a, b;
		uint32_t n = 2 + hd_roll(&d, 10), vns = 1 + hd_roll(&d, 20);
		make_model(&one, d, n, 1, false);
		make_model(&eight, d, n, 8, false);
		same = d;
		make_machines(&c, &d, 3, 2, seed % 2, 0, 1);
		assert_int_equal(hd_plan_auto(&a, &one.sums, &c.cluster, &(struct hd_auto_ask){ .vns = vns },
			&arena, NULL), HD_OK);
		make_machines(&c, &same, 3, 2, seed % 2, 0, 8);
		assert_int_equal(hd_plan_auto(&b, &eight.sums, &c.cluster,
			&(struct hd_auto_ask){ .vns = vns }, &arena, NULL), HD_OK);
		/* a link that three share is divided to the picosecond */
		int64_t off = 8 * a.plan[0].makespan_ps - b.plan[0].makespan_ps;
		CHECK(off >= -64 && off <= 64 && 8 * a.data_ps == b.data_ps,
			"%u: %lld ps, and %lld; %lld, and %lld", seed,
			(long long)a.plan[0].makespan_ps, (long long)b.plan[0].makespan_ps,
			(long long)a.data_ps, (long long)b.data_ps);
		hd_arena_reset(&arena);
	}
}

/* One of two devices half as fast; all places of the one cut, and all shares of data parallel, simulated. */
static int64_t simulate(const struct model *m, const struct machines *c, struct hd_schedule s,
	const uint32_t *first, uint32_t nstages)
{
	struct hd_stage_costs costs;
	struct hd_sim_plan sim;

	assert_int_equal(hd_stage_costs_make(&costs, &m->sums, first, nstages, &arena, NULL), HD_OK);
	assert_int_equal(hd_schedule_updates(&s, &s, NULL, &arena, NULL), HD_OK);
	assert_int_equal(hd_sim_plan(&sim, &s, &(struct hd_sim_setting){ .costs = &costs,
		.cluster = &c->cluster }, &arena, NULL), HD_OK);
	return sim.makespan;
}

static void of_two_devices_one_half_as_fast_the_best_of_all_is_found(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(40); seed++) {
		struct hd_dice d = { seed };
		struct machines c;
		struct model m;
		struct hd_auto a;
		uint32_t n = 3 + hd_roll(&d, 8), vns = 2 + hd_roll(&d, 10);
		make_machines(&c, &d, 2, 1, true, 0, 1);
		c.of[1] = 1;
		c.cluster.level[0] = (struct hd_cluster_level){ "in", 2, 1e12, 0 };
		make_model(&m, d, n, 1, false);
		int64_t best = INT64_MAX;
		for (uint32_t cut = 1; cut < n; cut++) {
			struct hd_schedule s;
			s = hd_named_schedule("1f1b", 2, vns, 1);
			int64_t took = simulate(&m, &c, s, (uint32_t[]){ 0, cut }, 2);
			best = took < best ? took : best;
		}
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster,
			&(struct hd_auto_ask){ .vns = vns, .schedule = "1f1b", .p = 2 }, &arena, NULL),
			HD_OK);
		CHECK((double)a.plan[0].makespan_ps <= 1.02 * (double)best,
			"%u: %lld ps, the best of all cuts takes %lld", seed,
			(long long)a.plan[0].makespan_ps,
			(long long)best);
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &(struct hd_auto_ask){ .vns = vns },
			&arena, NULL), HD_OK);
		CHECK((double)a.plan[0].makespan_ps <= 1.02 * (double)best, "%u: the free choice takes %lld",
			seed, (long long)a.plan[0].makespan_ps);
		hd_arena_reset(&arena);
	}
}

/* All cuts of n nodes in `stages`, of all schedules that the planner knows, on two like devices. */
static void try_cuts(const struct model *m, const struct machines *c, const char *name, uint32_t v,
	uint32_t vns, uint32_t at, uint32_t *first,
	uint32_t nstages, int64_t *best)
{
	struct hd_schedule s;

	if (at >= nstages) {
		s = hd_named_schedule(name, 2, vns, v);
		int64_t took = simulate(m, c, s, first, nstages);
		*best = took < *best ? took : *best;
		return;
	}
	for (first[at] = first[at - 1] + 1; first[at] + (nstages - at) <= m->cuts.n; first[at]++)
		try_cuts(m, c, name, v, vns, at + 1, first, nstages, best);
}

static void of_all_schedules_and_cuts_on_two_devices_none_is_much_faster(void **state)
{
	static const struct { const char *name; uint32_t v; } all[] = { { "gpipe", 1 }, { "1f1b", 1 },
		{ "interleaved", 2 }, { "zb-h1", 1 }, { "zb-h2", 1 },
		{ "zb-v", 2 }, { "v-half", 2 }, { "v-min", 2 }, { "dualpipev", 2 } };
	uint32_t equal = 0;

	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(30); seed++) {
		struct hd_dice d = { seed };
		struct machines c;
		struct model m;
		struct hd_auto a;
		uint32_t n = 4 + hd_roll(&d, 4), vns = 4 + hd_roll(&d, 5), first[8] = { 0 };
		int64_t best = INT64_MAX;
		make_machines(&c, &d, 2, 1, true, 0, 1);
		make_model(&m, d, n, 1, false);
		for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
			try_cuts(&m, &c, all[k].name, all[k].v, vns, 1, first, 2 * all[k].v, &best);
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &(struct hd_auto_ask){ .vns = vns },
			&arena, NULL), HD_OK);
		CHECK((double)a.plan[0].makespan_ps <= 1.05 * (double)best,
			"%u: %lld ps (%s), the best there is takes %lld", seed,
			(long long)a.plan[0].makespan_ps,
			a.plan[0].shape.schedule, (long long)best);
		equal += a.plan[0].makespan_ps <= best;
		hd_arena_reset(&arena);
	}
	CHECK(equal >= (SANITIZED ? 1 : 20), "only %u of %d are as good as the best", equal, DRAWS(30));
}

static int64_t steady_step(const struct model *m, const struct machines *c, const char *name, uint32_t vns,
	const uint32_t *first, uint32_t p)
{
	const struct hd_schedule_job job = { 0 };
	struct hd_schedule s = hd_named_schedule(name, p, vns, 1);
	struct hd_stage_costs costs;
	struct hd_sim_plan sim;

	assert_int_equal(hd_stage_costs_make(&costs, &m->sums, first, p, &arena, NULL), HD_OK);
	assert_int_equal(hd_schedule_complete(&s, &s, &(struct hd_pass_options){ .job = &job }, &arena, NULL),
		HD_OK);
	assert_int_equal(hd_sim_plan(&sim, &s, &(struct hd_sim_setting){ .costs = &costs,
		.cluster = &c->cluster }, &arena, NULL), HD_OK);
	return (sim.step_end[sim.steps - 1] - sim.step_end[1]) / (sim.steps - 2);
}

/* Updates of every virtual node: all places of one boundary or two simulated, for as many stages. */
static void of_stages_with_versions_the_best_places_are_found(void **state)
{
	static const struct { enum hd_update_mode update; const char *schedule;
		} kinds[] = { { HD_UPDATE_STASH, "stash" }, { HD_UPDATE_VSYNC, "vsync" } };

	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(24); seed++) {
		struct hd_dice d = { seed };
		struct machines c;
		struct model m;
		struct hd_auto a;
		const char *name = kinds[seed % 2].schedule;
		uint32_t p = 2 + hd_roll(&d, 2), n = p + hd_roll(&d, 8), vns = 2 + hd_roll(&d, 10);
		int64_t best = INT64_MAX;
		make_machines(&c, &d, p, 1, true, 0, 1);
		c.of[1] = seed % 4 == 3;
		c.cluster.level[0] = (struct hd_cluster_level){ "in", p, 1e12, 0 };
		make_model(&m, d, n, 1, false);
		for (uint32_t x = 1; x + p - 2 < n; x++)
			for (uint32_t y = x + 1; y < (p == 2 ? x + 2 : n); y++) {
				int64_t took = steady_step(&m, &c, name, vns, (uint32_t[]){ 0, x, y }, p);
				best = took < best ? took : best;
			}
		const struct hd_auto_ask ask = { .vns = vns, .update = kinds[seed % 2].update, .p = p };
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		const struct hd_auto_plan *plan = &a.plan[0];
		assert_string_equal(plan->shape.schedule, name);
		assert_int_equal(plan->npipelines, 1);
		CHECK((double)plan->makespan_ps <= 1.02 * (double)best,
			"%u: %s of %u stages: %lld ps, the best of all places takes %lld", seed, name, p,
			(long long)plan->makespan_ps, (long long)best);
		/* with a byte less than its fullest rank takes, weights of all versions included, it is
		 * not the same plan */
		for (int k = 0; k < 2; k++)
			c.kind[k].memory = plan->peak - 1;
		struct hd_diag diag = { "" };
		int64_t before = plan->makespan_ps;
		enum hd_err err = hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag);
		CHECK(err == HD_E_INVAL || (err == HD_OK && a.plan[0].peak <= c.kind[0].memory &&
			a.plan[0].makespan_ps >= before), "%u: %s", seed,
			diag.text);
		hd_arena_reset(&arena);
	}
}

/* More cuts than the planner looks at: all places there are for two boundaries, or for one, simulated. */
static void of_long_chains_the_best_places_are_nearly_found(void **state)
{
	double worst = 1;

	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(12); seed++) {
		struct hd_dice d = { seed };
		struct machines c;
		struct model m;
		struct hd_auto a;
		uint32_t p = seed < 9 ? 2 : 3, n = (p == 2 ? 100 : 70) + hd_roll(&d, p == 2 ? 400 : 20),
			vns = 2 + hd_roll(&d, 10);
		int64_t best = INT64_MAX;
		make_machines(&c, &d, p, 1, true, 0, 1);
		c.of[1] = seed % 2;
		c.cluster.level[0] = (struct hd_cluster_level){ "in", p, seed % 3 ? 1e12 : 1e9, 0 };
		make_model(&m, d, n, 1, false);
		for (uint32_t x = 1; x + p - 2 < n; x++)
			for (uint32_t y = x + 1; y < (p == 2 ? x + 2 : n); y++) {
				int64_t took = simulate(&m, &c, hd_named_schedule("1f1b", p, vns, 1),
					(uint32_t[]){ 0, x, y }, p);
				best = took < best ? took : best;
			}
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster,
			&(struct hd_auto_ask){ .vns = vns, .schedule = "1f1b", .p = p }, &arena, NULL),
			HD_OK);
		double over = (double)a.plan[0].makespan_ps / (double)best;
		worst = over > worst ? over : worst;
		CHECK(over <= 1.01, "%u: %u cuts, %u stages: %lld ps, the best takes %lld", seed, n, p,
			(long long)a.plan[0].makespan_ps, (long long)best);
		hd_arena_reset(&arena);
	}
	print_message("at worst %.4f times the best of all places\n", worst);
}

static void the_faster_pipeline_takes_more_virtual_nodes(void **state)
{
	struct machines c;
	struct model m;
	struct hd_auto a;
	struct hd_dice d = { 1 };

	(void)state;
	make_machines(&c, &d, 1, 2, true, 0, 1);
	c.of[1] = 1;
	c.cluster.level[1] = (struct hd_cluster_level){ "out", 2, 1e12, 0 };
	make_model(&m, d, 1, 1, false);
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &(struct hd_auto_ask){ .vns = 7 }, &arena,
		NULL), HD_OK);
	assert_int_equal(a.plan[0].npipelines, 2);
	assert_int_equal(a.plan[0].share[0], 5);
	assert_int_equal(a.plan[0].share[1], 2);
	hd_arena_reset(&arena);
}

static const struct model *asked_of;             /* the model of the last ask_for() */

static enum hd_err ask_for(struct hd_auto *a, struct machines *c, struct hd_auto_ask ask, uint32_t nodes,
	struct hd_diag *diag)
{
	static struct model m;

	asked_of = &m;
	make_model(&m, (struct hd_dice){ 5 }, nodes, 1, false);
	*diag = (struct hd_diag){ "" };
	return hd_plan_auto(a, &m.sums, &c->cluster, &ask, &arena, diag);
}

static void what_cannot_work_is_refused_with_what_would(void **state)
{
	struct hd_dice d = { 3 };
	struct machines c;
	struct hd_auto a;
	struct hd_diag diag;
	long long need = 0;
	const char *at;

	(void)state;
	make_machines(&c, &d, 2, 2, true, 100, 1);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8 }, 6, &diag), HD_E_INVAL);
	at = strstr(diag.text, "the smallest need is about ");
	CHECK(at && strstr(diag.text, "at p = ") && strstr(diag.text, "has 100"), "it says %s", diag.text);
	assert_int_equal(sscanf(at, "the smallest need is about %lld", &need), 1);
	make_machines(&c, &d, 2, 2, true, need + need / 10, 1);
	CHECK(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8 }, 6, &diag) == HD_OK,
		"with a tenth more than it asks for: %s", diag.text);
	make_machines(&c, &d, 2, 2, true, 0, 1);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 3, .update = HD_UPDATE_2BW, .p = 4 }, 6,
		&diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "2bw needs m >= p; m = 3, p = 4: the nearest that works: V = 4, or p = 3"),
		"it says %s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 7, .p = 2, .d = 2,
		.schedule = "dualpipev" }, 6, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "dualpipev needs m >= 2p; m = 3, p = 2: the nearest that works: V = 8"),
		"it says %s", diag.text);
	CHECK(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8, .p = 2, .d = 2, .schedule = "dualpipev" }, 6,
		&diag) == HD_OK, "%s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8, .p = 4 }, 3, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "p is at most 3"), "it says %s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8, .p = 3, .d = 2 }, 6, &diag),
		HD_E_INVAL);
	CHECK(strstr(diag.text, "more than the 4 devices"), "it says %s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8, .update = HD_UPDATE_STASH, .d = 2 },
		6, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text,
		"every virtual node of update stash updates the weights by itself, so there is one pipeline"),
		"it says %s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 8, .schedule = "1f1c" }, 6, &diag),
		HD_E_INVAL);
	CHECK(strstr(diag.text, "did you mean 1f1b?"), "it says %s", diag.text);
	assert_int_equal(ask_for(&a, &c, (struct hd_auto_ask){ 0 }, 6, &diag), HD_E_INVAL);
	hd_arena_reset(&arena);
}

/* Two servers on a link that takes years, or a server whose devices are so joined: the plan is that of
 * what remains. */
static void what_takes_longer_than_is_counted_is_left_out(void **state)
{
	static const struct { uint32_t inner, outer; double bytes_per_s[2]; struct hd_auto_ask ask;
		uint32_t alone; const char *data; } cases[] = {
		{ 2, 2, { 1e10, 1e-3 }, { .vns = 8 }, 2, "data parallel, best on 2 of 4 devices: " },
		{ 4, 1, { 1e-3, 1e-3 }, { .vns = 8, .tensor_shards = 4 }, 1, "data parallel: takes longer than is counted" },
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_dice d = { 3 };
		struct machines c;
		struct hd_auto a, alone;
		struct hd_diag diag;
		struct hd_text text;
		make_machines(&c, &d, cases[k].inner, cases[k].outer, true, 0, 1);
		for (int l = 0; l < 2; l++)
			c.cluster.level[l] = (struct hd_cluster_level){ "l",
				l ? cases[k].outer : cases[k].inner, cases[k].bytes_per_s[l], 0 };
		CHECK(ask_for(&a, &c, cases[k].ask, 6, &diag) == HD_OK, "case %zu: %s", k, diag.text);
		CHECK(a.nlate > 0 && (k == 0 ? a.data_ps > 0 &&
			a.data_d == 2 : a.data_ps == HD_AUTO_TOO_LONG) && a.one_ps > 0,
			"case %zu: %llu left out, data parallel %lld", k,
			(unsigned long long)a.nlate, (long long)a.data_ps);
		hd_text_init(&text, &arena);
		hd_auto_explain(&a, &asked_of->sums, &c.cluster, &cases[k].ask, false, &text);
		assert_non_null(strstr(text.at, cases[k].data));
		assert_non_null(strstr(text.at, "left out: "));
		make_machines(&c, &d, cases[k].alone, 1, true, 0, 1);
		c.cluster.level[0] = (struct hd_cluster_level){ "l", cases[k].alone, cases[k].bytes_per_s[0],
			0 };
		CHECK(ask_for(&alone, &c, cases[k].ask, 6, &diag) == HD_OK, "case %zu: %s", k, diag.text);
		CHECK(alone.nlate == 0 && a.plan[0].makespan_ps == alone.plan[0].makespan_ps,
			"case %zu: %lld ps, without the link %lld", k,
			(long long)a.plan[0].makespan_ps, (long long)alone.plan[0].makespan_ps);
		hd_arena_reset(&arena);
	}
}

static void what_is_asked_for_is_kept(void **state)
{
	struct hd_dice d = { 3 };
	struct machines c;
	struct hd_auto a;
	struct hd_diag diag;

	(void)state;
	make_machines(&c, &d, 4, 2, true, 0, 1);
	CHECK(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 16, .p = 2, .d = 4, .schedule = "interleaved",
		.v = 3 }, 12, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(a.plan[0].shape.p, 2);
	assert_int_equal(a.plan[0].shape.d, 4);
	assert_int_equal(a.plan[0].nstages, 6);
	CHECK(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 16, .p = 4, .recompute = HD_AUTO_ALWAYS }, 12,
		&diag) == HD_OK, "%s", diag.text);
	for (uint32_t s = 0; s < a.plan[0].nstages; s++)
		assert_true(a.plan[0].recompute[s]);
	CHECK(ask_for(&a, &c, (struct hd_auto_ask){ .vns = 16, .tensor_shards = 4, .t = 2 }, 12,
		&diag) == HD_OK, "%s", diag.text);
	assert_int_equal(a.plan[0].shape.t, 2);
	hd_arena_reset(&arena);
}

/* ---- published profiles */

static bool read_model(struct model *m, const char *name)
{
	char path[64], *text;

	snprintf(path, sizeof path, "pipedream/%s.graph.txt", name);
	if (!(text = hd_shared_text(path)))
		return false;
	assert_int_equal(hd_profile_read(&m->profile, text, strlen(text), name, &arena, NULL), HD_OK);
	hd_sums_of(&m->sums, &m->cuts, &m->profile, (struct hd_cuts_how){ .compress = true });
	return true;
}

struct servers { struct hd_cluster cluster; struct hd_cluster_kind kind; uint32_t of[32]; };

static void make_servers(struct servers *c, uint32_t n, double bytes_per_s, int64_t memory)
{
	*c = (struct servers){ .kind = { "new", 1, memory } };
	c->cluster = (struct hd_cluster){ .kind = &c->kind, .nkinds = 1, .nlevels = 1, .device_kind = c->of,
		.ndevices = n };
	c->cluster.level[0] = (struct hd_cluster_level){ "s", n, bytes_per_s, 5000000 };
}

/* INT64_MAX: refused. */
static int64_t step_of(const struct model *m, const struct servers *c, struct hd_auto_ask ask)
{
	struct hd_auto a;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_plan_auto(&a, &m->sums, &c->cluster, &ask, &arena, &diag);

	assert_true(err == HD_OK || err == HD_E_INVAL);
	const char *at = strstr(diag.text, "the smallest need is about ");
	if (err && at) {
		long long need = 0;
		assert_int_equal(sscanf(at, "the smallest need is about %lld", &need), 1);
		CHECK(need > c->kind.memory, "refused, though it needs no more than there is: %s", diag.text);
	}
	return err ? INT64_MAX : a.plan[0].makespan_ps;
}

/* HD_PLANS=all: every case, where a few of each kind are enough. */
static bool all_plans(void)
{
	const char *asked = getenv("HD_PLANS");

	return asked && !strcmp(asked, "all");
}

/* Over one link the even sizes, over the other the odd ones. */
static void more_memory_is_never_slower(void **state)
{
	static const char *const names[] = { "resnet50", "vgg16" };

	(void)state;
	for (size_t k = 0; k < (SANITIZED ? 1 : 2); k++)
		for (double bandwidth = 1e8; bandwidth < 2e9; bandwidth *= 10) {
			int64_t before = INT64_MAX;
			struct model m;
			if (!read_model(&m, names[k]))
				SKIP("data/pipedream is neither in HEDDLE_SHARED nor in tests");
			for (int64_t memory = 6; memory <= 20; memory++) {
				if ((!all_plans() && memory % 2 != (bandwidth > 5e8)) ||
					(SANITIZED && memory % 8 > 1))
					continue;
				struct servers c;
				make_servers(&c, 4, bandwidth, memory * 1000000000);
				int64_t took = step_of(&m, &c, (struct hd_auto_ask){ .vns = 16 });
				CHECK(took <= before, "%s at %g B/s: %lld ps with %lld GB, %lld with less",
					names[k], bandwidth, (long long)took,
					(long long)memory, (long long)before);
				before = took;
			}
			CHECK(before < INT64_MAX, "%s is refused with 20 GB", names[k]);
			hd_arena_reset(&arena);
		}
}

/* Each wish meets every third size of memory, each size a third of the wishes. */
static void nothing_that_is_forced_is_faster_than_the_free_choice(void **state)
{
	static const char *const schedules[] = { NULL, "data-parallel", "gpipe", "1f1b", "interleaved",
		"zb-h1", "zb-h2", "zb-v", "v-half", "v-min",
		"dualpipev", "1f1b-rr" };
	static const char *const names[] = { "resnet50", "vgg16" };

	(void)state;
	for (size_t k = 0; k < (SANITIZED ? 1 : 2); k++)
		for (int64_t memory = 8; memory <= 16; memory += SANITIZED ? 8 : 1) {
			struct servers c;
			struct model m;
			if (!read_model(&m, names[k]))
				SKIP("data/pipedream is neither in HEDDLE_SHARED nor in tests");
			make_servers(&c, 4, 1e9, memory * 1000000000);
			int64_t best = step_of(&m, &c, (struct hd_auto_ask){ .vns = 16 });
			for (size_t s = 0; s < sizeof schedules / sizeof *schedules; s++)
				for (int r = HD_AUTO_IF_NEEDED; r <= HD_AUTO_ALWAYS; r++) {
					if (!all_plans() && (s + (size_t)r + (size_t)memory) % 3)
						continue;
					int64_t took = step_of(&m, &c,
						(struct hd_auto_ask){ .vns = 16, .schedule = schedules[s],
						.recompute = (enum hd_auto_recompute)r });
					CHECK(best <= took,
						"%s with %lld GB: %lld ps, %s with recompute %d takes %lld",
						names[k], (long long)memory,
						(long long)best, schedules[s] ? schedules[s] : "any schedule",
						r, (long long)took);
				}
			hd_arena_reset(&arena);
		}
}

/* Devices of two kinds, or one; every schedule, depth and number of chunks that may be asked for. */
static void no_single_shape_is_faster_than_the_free_choice(void **state)
{
	static const char *const schedules[] = { "data-parallel", "gpipe", "1f1b", "interleaved", "zb-h1",
		"zb-h2", "zb-v", "v-half", "v-min", "dualpipev" };

	(void)state;
	for (uint32_t seed = 0; seed < 6; seed++) {
		struct hd_dice d = { seed + 40 };
		struct machines c;
		struct model m;
		struct hd_auto a, one;
		const struct hd_auto_ask ask = { .vns = 4 + seed };
		make_machines(&c, &d, 2, 2, seed % 2, 0, 1);
		make_model(&m, d, 8, 1, false);
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		assert_int_equal(a.nleft, 0);
		for (size_t k = 0; k < sizeof schedules / sizeof *schedules; k++)
			for (uint32_t p = 1; p <= 4; p++)
				for (uint32_t v = 1; v <= 3; v++) {
					struct hd_auto_ask single = { .vns = ask.vns, .p = p, .v = v,
						.schedule = schedules[k] };
					if (hd_plan_auto(&one, &m.sums, &c.cluster, &single, &arena, NULL))
						continue;
					CHECK(a.plan[0].makespan_ps <= one.plan[0].makespan_ps,
						"%u: %lld ps, %s with p = %u, v = %u %lld", seed,
						(long long)a.plan[0].makespan_ps, schedules[k], p, v,
						(long long)one.plan[0].makespan_ps);
				}
		hd_arena_reset(&arena);
	}
}

/* Every width of copies of the whole model, asked for by itself: the one that is named beside the choice
 * is the best. */
static void the_data_parallel_to_compare_with_is_the_best_of_all_widths(void **state)
{
	uint32_t fewer = 0;

	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(30); seed++) {
		struct hd_dice d = { seed + 70 };
		struct machines c;
		struct model m;
		struct hd_auto a, one;
		int64_t best = INT64_MAX;
		const struct hd_auto_ask ask = { .vns = 2 + hd_roll(&d, 9), .p = 1 };
		make_machines(&c, &d, 3, 2, seed % 2, 0, 1);
		make_model(&m, d, 6, 1, false);
		assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		for (uint32_t n = 2; n <= 6 && n <= ask.vns; n++) {
			const struct hd_auto_ask single = { .vns = ask.vns, .p = 1, .d = n,
				.schedule = "data-parallel" };
			if (!hd_plan_auto(&one, &m.sums, &c.cluster, &single, &arena, NULL) &&
				one.plan[0].makespan_ps < best)
				best = one.plan[0].makespan_ps;
		}
		CHECK(a.data_ps == best, "%u: %lld ps on %u devices, the best of all widths %lld", seed,
			(long long)a.data_ps, a.data_d, (long long)best);
		fewer += a.data_d < 6 && a.data_d < ask.vns;
		hd_arena_reset(&arena);
	}
	CHECK(fewer > 0, "all devices were always the best");
}

static void more_devices_are_never_slower(void **state)
{
	static const char *const names[] = { "vgg16", "alexnet" };

	(void)state;
	for (size_t k = SANITIZED; k < 2; k++) {
		int64_t before = INT64_MAX;
		struct model m;
		if (!read_model(&m, names[k]))
			SKIP("data/pipedream is neither in HEDDLE_SHARED nor in tests");
		for (uint32_t n = 8; n <= 16; n += SANITIZED ? 8 : 1) {
			struct servers c;
			make_servers(&c, n, 1e9, 0);
			int64_t took = step_of(&m, &c, (struct hd_auto_ask){ .vns = 16 });
			CHECK(took <= before, "%s: %lld ps on %u devices, %lld on one less", names[k],
				(long long)took, n, (long long)before);
			before = took;
		}
		hd_arena_reset(&arena);
	}
}

/* Four times the work on devices four times as fast is the same question. */
static void work_and_speed_four_times_as_large_change_nothing(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < DRAWS(200); seed++) {
		struct hd_dice d = { seed }, same;
		struct machines c;
		struct model one, four;
		uint32_t n = 4 + hd_roll(&d, 9), vns = 1 + hd_roll(&d, 20);
		make_model(&one, d, n, 1, false);
		make_model(&four, d, n, 1, false);
		for (uint32_t v = 0; v < n; v++) {
			four.profile.node[v].f.p50_ns *= 4;
			four.profile.node[v].i.p50_ns *= 4;
			four.profile.node[v].w.p50_ns *= 4;
		}
		settle(&four);
		same = d;
		struct hd_auto_ask ask = { .vns = vns, .schedule = "1f1b-rr" };
		struct hd_auto a, b;
		make_machines(&c, &d, 4, 2, true, 0, 1);
		assert_int_equal(hd_plan_auto(&a, &one.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		make_machines(&c, &same, 4, 2, true, 0, 1);
		c.kind[0].speed = 4;
		assert_int_equal(hd_plan_auto(&b, &four.sums, &c.cluster, &ask, &arena, NULL), HD_OK);
		CHECK(a.plan[0].makespan_ps == b.plan[0].makespan_ps && a.nplans == b.nplans,
			"%u: %lld ps of %u plans, and %lld of %u", seed,
			(long long)a.plan[0].makespan_ps, a.nplans, (long long)b.plan[0].makespan_ps,
			b.nplans);
		for (uint32_t i = 0; i < a.nplans; i++)
			CHECK(a.plan[i].makespan_ps == b.plan[i].makespan_ps,
				"%u: plan %u takes %lld ps, and %lld", seed, i,
				(long long)a.plan[i].makespan_ps, (long long)b.plan[i].makespan_ps);
		hd_arena_reset(&arena);
	}
}

static void only_a_profile_of_a_sharded_job_is_divided(void **state)
{
	struct hd_dice d = { 3 };
	struct machines c;
	struct model m;
	struct hd_auto a;
	struct hd_diag diag = { "" };
	struct hd_text text;

	(void)state;
	make_machines(&c, &d, 4, 1, true, 0, 1);
	make_model(&m, d, 6, 1, false);
	struct hd_auto_ask ask = { .vns = 8, .tensor_shards = 3 };
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "3 tensor shards: the profile is of a job with 4"), "it says %s", diag.text);
	m.profile.tensor_shards = 1;
	ask.tensor_shards = 2;
	diag = (struct hd_diag){ "" };
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "2 tensor shards: the profile is of a job with 1"), "it says %s", diag.text);
	m.profile.tensor_shards = 2;
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag), HD_OK);
	make_model(&m, d, 1, 1, false);
	c.cluster.level[0] = (struct hd_cluster_level){ "in", 4, 1e15, 0 };
	ask = (struct hd_auto_ask){ .vns = 1, .tensor_shards = 4 };
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag), HD_OK);
	assert_int_equal(a.plan[0].shape.t, 4);
	hd_text_init(&text, &arena);
	hd_auto_explain(&a, &m.sums, &c.cluster, &ask, false, &text);
	CHECK(strstr(text.at, "no pipeline: 4 devices share the work of every node") &&
		!strstr(text.at, "cost less"), "it says %s", text.at);
	hd_arena_reset(&arena);
}

static void what_was_asked_for_is_told_as_the_reason(void **state)
{
	struct hd_dice d = { 3 };
	struct machines c;
	struct hd_auto a;
	struct hd_diag diag;
	struct model m;
	struct hd_text text;
	struct hd_auto_ask ask = { .vns = 16, .p = 4, .schedule = "gpipe", .recompute = HD_AUTO_ALWAYS };

	(void)state;
	make_machines(&c, &d, 4, 2, true, 0, 1);
	make_model(&m, (struct hd_dice){ 5 }, 12, 1, false);
	assert_int_equal(hd_plan_auto(&a, &m.sums, &c.cluster, &ask, &arena, &diag), HD_OK);
	hd_text_init(&text, &arena);
	hd_auto_explain(&a, &m.sums, &c.cluster, &ask, false, &text);
	CHECK(strstr(text.at, "asked for: schedule gpipe, p = 4\n") && strstr(text.at, "; asked for\n") &&
		!strstr(text.at, "do not fit") &&
		!strstr(text.at, "data parallel would sum"), "it says %s", text.at);
	hd_arena_reset(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_slower_than_one_device_or_data_parallel_and_the_checker_accepts_it),
		cmocka_unit_test(one_device_takes_the_sum_of_its_work),
		cmocka_unit_test(the_error_band_is_two_deviations_of_all_work),
		cmocka_unit_test(a_tensor_group_halves_the_work_and_pays_for_sums),
		cmocka_unit_test(a_tensor_group_shares_norms_only_along_the_sequence),
		cmocka_unit_test(closed_forms_of_what_is_in_flight_hold_in_the_simulator),
		cmocka_unit_test(equal_arguments_give_equal_bytes_whatever_the_order_of_nodes),
		cmocka_unit_test(the_bytes_are_those_of_every_other_build),
		cmocka_unit_test(scaling_all_costs_by_a_power_of_two_scales_the_prediction_exactly),
		cmocka_unit_test(of_two_devices_one_half_as_fast_the_best_of_all_is_found),
		cmocka_unit_test(of_all_schedules_and_cuts_on_two_devices_none_is_much_faster),
		cmocka_unit_test(of_stages_with_versions_the_best_places_are_found),
		cmocka_unit_test(of_long_chains_the_best_places_are_nearly_found),
		cmocka_unit_test(the_faster_pipeline_takes_more_virtual_nodes),
		cmocka_unit_test(what_cannot_work_is_refused_with_what_would),
		cmocka_unit_test(what_takes_longer_than_is_counted_is_left_out),
		cmocka_unit_test(what_is_asked_for_is_kept),
		cmocka_unit_test(more_memory_is_never_slower),
		cmocka_unit_test(nothing_that_is_forced_is_faster_than_the_free_choice),
		cmocka_unit_test(no_single_shape_is_faster_than_the_free_choice),
		cmocka_unit_test(the_data_parallel_to_compare_with_is_the_best_of_all_widths),
		cmocka_unit_test(more_devices_are_never_slower),
		cmocka_unit_test(work_and_speed_four_times_as_large_change_nothing),
		cmocka_unit_test(only_a_profile_of_a_sharded_job_is_divided),
		cmocka_unit_test(what_was_asked_for_is_told_as_the_reason),
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
