/* The planner on random models and clusters: never slower than one device or data parallel, equal bytes,
 * closed forms. */
#include "planner/search/testing_planner.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "pipeline/schedule_check.h"
#include "pipeline/sim_plan.h"
#include "planner/search/shape.h"

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
	assert_string_equal(hex, SANITIZED ? "6ba9ee96e6ceab6c0565be147f0b75ee" :
		"203a6e4e9d7f73c7eff46449b6737359");
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
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
