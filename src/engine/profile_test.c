#include "engine/profile.h"

#include "engine/testing.h"

/* Clocks are not judged here: which nodes have times, how many, and that measuring changes nothing that
 * counts. */

enum { BATCH = 26, VNS = 13 };

static void medians_means_and_spreads_are_those_of_the_samples(void **state)
{
	int64_t odd[] = { 9, 1, 4, 100, 6 }, even[] = { 3, 1 }, one[] = { 7 };
	struct hd_profile_cost c = hd_profile_cost_of(odd, 5);

	(void)state;
	/* mean 24, squares of the distances 225 529 400 5776 324: 7254 / 4 = 1813.5, root 42.6 */
	CHECK(c.p50_ns == 6 && c.min_ns == 1 && c.mean_ns == 24 && c.sd_ns == 43 && c.n == 5,
		"%lld %lld %lld %lld", (long long)c.p50_ns,
		(long long)c.min_ns, (long long)c.mean_ns, (long long)c.sd_ns);
	c = hd_profile_cost_of(even, 2);
	CHECK(c.p50_ns == 1 && c.mean_ns == 2 && c.sd_ns == 1, "%lld %lld %lld", (long long)c.p50_ns,
		(long long)c.mean_ns, (long long)c.sd_ns);
	c = hd_profile_cost_of(one, 1);
	CHECK(c.p50_ns == 7 && c.mean_ns == 7 && c.sd_ns == 0 && c.n == 1, "%lld %lld", (long long)c.p50_ns,
		(long long)c.sd_ns);
}

static void measure(struct hd_rig *rig, uint64_t samples, struct hd_profile *p)
{
	struct hd_diag diag = { "" };

	CHECK(hd_worker_profile(rig->worker, &(struct hd_profile_how){ .samples = samples }, &rig->arena, p,
		&diag) == HD_OK, "%s", diag.text);
}

static void nodes_with_work_in_a_phase_have_times_in_it(void **state)
{
	static const char *const models[] = { hd_rig_mlp, hd_rig_lenet, hd_rig_gpt };

	(void)state;
	for (int m = 0; m < 3; m++) {
		struct hd_profile p, bare;
		struct hd_diag diag = { "" };
		struct hd_rig rig;
		uint32_t *home;
		hd_rig_open(&rig, models[m], BATCH, VNS, NULL, 1);
		measure(&rig, 7, &p);
		const struct hd_graph *g = rig.worker->stage->train.graph;
		struct hd_profile_ask ask = { .rows = BATCH / VNS, .nslots = 2, .tensor_shards = 1 };
		CHECK(hd_profile_of_graph(&bare, &home, g, &ask, &rig.arena, &diag) == HD_OK, "%s",
			diag.text);
		assert_int_equal(p.nnodes, bare.nnodes);
		assert_int_equal(p.nedges, bare.nedges);
		CHECK(p.graph == bare.graph && p.vn_size == BATCH / VNS && p.samples == 7 &&
			p.warmup == HD_PROFILE_WARMUP && p.threads == 1, "model %d", m);
		CHECK(p.method == HD_PROFILE_MEASURED && !strcmp(p.device_kind, "cpu") &&
			strstr(p.isa, "portable"), "%s on %s", p.isa, p.device_kind);
		for (uint32_t i = 0; i < p.nnodes; i++) {
			const struct hd_profile_cost *cost[] = { &p.node[i].f, &p.node[i].i, &p.node[i].w };
			bool works[3] = { false };
			for (uint32_t n = 0; n < g->nnodes; n++)
				works[g->node[n].phase] |= home[n] == i;
			for (int k = 0; k < 3; k++) {
				CHECK(cost[k]->n == 7 && works[k] == (cost[k]->p50_ns > 0),
					"model %d, node %s, part %d: %lld ns of %llu samples", m,
					p.node[i].id, k, (long long)cost[k]->p50_ns,
					(unsigned long long)cost[k]->n);
				CHECK(cost[k]->min_ns <= cost[k]->p50_ns &&
					cost[k]->min_ns <= cost[k]->mean_ns, "model %d, node %s", m,
					p.node[i].id);
			}
			CHECK(p.node[i].param == bare.node[i].param &&
				p.node[i].saved == bare.node[i].saved && p.node[i].opt == bare.node[i].opt,
				"model %d, node %s: other bytes", m, p.node[i].id);
			CHECK(p.node[i].work >= bare.node[i].work, "model %d, node %s: less workspace", m,
				p.node[i].id);
		}
		hd_rig_close(&rig);
	}
}

static void steps_have_the_same_bits_whether_nodes_were_measured_or_not(void **state)
{
	static const char *const models[] = { hd_rig_mlp, hd_rig_lenet, hd_rig_gpt };

	(void)state;
	for (int m = 0; m < 3; m++) {
		struct hd_profile p;
		struct hd_rig plain, timed;
		hd_rig_open(&plain, models[m], BATCH, VNS, NULL, 1);
		hd_rig_open(&timed, models[m], BATCH, VNS, NULL, 1);
		for (int s = 0; s < 2; s++) {
			measure(&timed, 2, &p);
			struct hd_step_record a = hd_rig_step(&plain), b = hd_rig_step(&timed);
			CHECK(memcmp(&a.loss_sum, &b.loss_sum, sizeof a.loss_sum) == 0,
				"model %d: the loss of step %d differs", m, s);
			CHECK(hd_hash_same(a.digest, b.digest), "model %d: the state after step %d differs",
				m, s);
		}
		hd_rig_close(&plain);
		hd_rig_close(&timed);
	}
}

static uint32_t shown(const struct hd_graph *g, uint32_t v)
{
	while (g->value[v].kind == HD_TEMP && hd_ops[g->node[g->value[v].node].op].class == HD_OP_VIEW)
		v = g->node[g->value[v].node].in[0];
	return v;
}

/* Tensors that the profile counts as saved have bytes of their own in the memory plan of the step: none lies
 * in another's place, and with the inputs that are kept too they are all that is counted. */
static void what_is_saved_has_a_place_in_the_memory_plan(void **state)
{
	static const char *const models[] = { hd_rig_mlp, hd_rig_lenet, hd_rig_gpt };

	(void)state;
	for (int m = 0; m < 3; m++) {
		struct hd_profile p;
		struct hd_rig rig;
		hd_rig_open(&rig, models[m], BATCH, VNS, NULL, 1);
		measure(&rig, 1, &p);
		const struct hd_program *program = &rig.worker->stage->train;
		const struct hd_graph *g = program->graph;
		bool *kept = hd_arena_take(&rig.arena, g->nvalues, sizeof *kept);
		uint8_t *taken = hd_arena_take(&rig.arena, program->memory.len_bytes + 1, 1);
		int64_t sum = 0;
		for (uint32_t n = g->nforward; n < g->nnodes; n++)
			for (int k = 0; k < g->node[n].nin; k++)
				kept[shown(g, g->node[n].in[k])] = true;
		for (uint32_t v = 0; v < g->nvalues; v++) {
			const struct hd_value *value = &g->value[v];
			uint64_t bytes = hd_value_bytes(value, BATCH / VNS);
			bool tensor = value->kind == HD_TEMP && value->node < g->nforward;
			if (!kept[v] || !(tensor || value->kind == HD_INPUT))
				continue;
			sum += (int64_t)bytes;
			for (uint64_t i = 0; tensor && i < bytes; i++) {
				CHECK(!taken[program->memory.at[v] + i],
					"model %d: value %u lies in another's place", m, v);
				taken[program->memory.at[v] + i] = 1;
			}
		}
		for (uint32_t i = 0; i < p.nnodes; i++)
			sum -= p.node[i].saved;
		CHECK(sum == 0, "model %d: the plan keeps %lld bytes more", m, (long long)sum);
		hd_rig_close(&rig);
	}
}

static void left_alone_it_takes_as_many_samples_as_settle(void **state)
{
	struct hd_profile p;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, BATCH, VNS, NULL, 1);
	measure(&rig, 0, &p);
	CHECK(p.samples >= HD_PROFILE_LEAST && p.samples <= HD_PROFILE_MOST, "%llu samples",
		(unsigned long long)p.samples);
	hd_rig_close(&rig);
}

/* Whatever the clock says: a budget of a nanosecond is used up by the first pass. */
static void a_budget_ends_warm_up_and_passes(void **state)
{
	const struct hd_profile_how how = { .budget_ns = 1, .together = 2, .processor = true };
	struct hd_profile p;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_lenet, 8, 4, NULL, 1);
	CHECK(hd_worker_profile(rig.worker, &how, &rig.arena, &p, &diag) == HD_OK, "%s", diag.text);
	CHECK(p.warmup == 1 && p.samples == HD_PROFILE_FEW, "%llu, then %llu", (unsigned long long)p.warmup,
		(unsigned long long)p.samples);
	hd_rig_close(&rig);
}

static void rates_and_a_link_are_measured_too(void **state)
{
	struct hd_profile p;
	struct hd_profile_step step;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_lenet, 8, 4, NULL, 1);
	measure(&rig, 1, &p);
	CHECK(hd_worker_profile_step(rig.worker, &p, &step, &diag) == HD_OK, "%s", diag.text);
	CHECK(p.step_ns_per_byte > 0 && p.sum_ns_per_byte > 0, "%g %g", p.step_ns_per_byte,
		p.sum_ns_per_byte);
	CHECK(step.step_ns > step.update_ns && step.least_ns <= step.step_ns, "%g %g %g", step.step_ns,
		step.update_ns, step.least_ns);
	CHECK(hd_profile_memory_link(&rig.worker->clock, &rig.arena, &p.link, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(!strcmp(p.link->kind, "memory") && p.link->level == 0 && p.link->latency_ns >= 0 &&
		p.link->bytes_per_s > 0, "%s", p.link->kind);
	double ns = 0;
	/* more than reading a clock takes, and less than the time that a look would be repeated after */
	CHECK(hd_profile_wake(&rig.worker->clock, &ns, &diag) == HD_OK && ns > 0 && ns < 1e9, "%g: %s", ns,
		diag.text);
	ns = 0;
	CHECK(hd_profile_file_link(&rig.worker->clock, "/tmp", &ns, &diag) == HD_OK && ns > 0, "%s",
		diag.text);
	assert_int_not_equal(hd_profile_file_link(&rig.worker->clock, "/nonexistent", &ns, &diag), HD_OK);
	assert_non_null(strstr(diag.text, "/nonexistent"));
	hd_rig_close(&rig);
}

/* A third of them lengthened, or more: the others say what a wait takes. */
static void what_others_lengthen_is_left_out(void **state)
{
	(void)state;
	for (int64_t worse = 0; worse <= 22; worse += 11) {
		int64_t ns[31];
		for (int64_t i = 0; i < 31; i++)
			ns[i] = i * 7 % 31 < worse ? 9000000 + i : 80000 + i;
		const int64_t is = hd_profile_undisturbed(ns, 31);
		CHECK(is >= 80000 && is < 80031, "%lld of %lld", (long long)is, (long long)worse);
	}
}

static void what_cannot_be_profiled_is_refused(void **state)
{
	static const struct { const char *says; uint32_t batch, slices, ndevices; enum hd_err err;
		} cases[] = {
		{ "ops are timed on one device, the worker has 2", 26, 1, 2, HD_E_REFUSED },
		{ "batch.slices is 2: -s batch.slices=1", 26, 2, 1, HD_E_INVAL },
		{ "a virtual node has 100 samples and this step's first has 61: the data are too few for batch.global 1300", 1300, 1, 1, HD_E_INVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_profile p;
		struct hd_diag diag = { "" };
		struct hd_rig rig;
		hd_rig_open_sliced(&rig, hd_rig_mlp, cases[i].batch, VNS, cases[i].slices, cases[i].ndevices);
		enum hd_err err = hd_worker_profile(rig.worker, &(struct hd_profile_how){ .samples = 1 },
			&rig.arena, &p, &diag);
		CHECK(err == cases[i].err && strstr(diag.text, cases[i].says), "case %zu: %d %s", i, err,
			diag.text);
		hd_rig_close(&rig);
	}
}
/* Half of what lies between the order statistics, by hand: of 8 samples all, of 16 all but the least and the
 * most three, of 100 the middle 22. */
static void a_median_is_known_when_what_lies_round_it_is_near(void **state)
{
	int64_t ns[100];

	(void)state;
	for (int i = 0; i < 100; i++)
		ns[i] = 1000;
	assert_false(hd_profile_is_known(ns, HD_PROFILE_KNOWN - 1));
	assert_true(hd_profile_is_known(ns, HD_PROFILE_KNOWN));
	ns[0] = 981;
	assert_true(hd_profile_is_known(ns, 8));
	ns[0] = 979;                      /* 21 of 1000 is more than twice a hundredth */
	assert_false(hd_profile_is_known(ns, 8));
	ns[1] = ns[2] = 979;              /* of 16 the fourth to the thirteenth count */
	assert_true(hd_profile_is_known(ns, 16));
	ns[3] = 979;
	assert_false(hd_profile_is_known(ns, 16));
	for (int i = 0; i < 100; i++)
		ns[i] = i < 39 ? 500 : i < 61 ? 1000 + (i - 39) / 2 : 2000;
	assert_true(hd_profile_is_known(ns, 100));
	ns[60] = 1021;
	assert_false(hd_profile_is_known(ns, 100));
}

static void medians_of_nodes_add_up_to_that_of_their_phase(void **state)
{
	struct hd_profile_node node[] = {
		{ .f = { .p50_ns = 100 }, .i = { .p50_ns = 5 }, .w = { .p50_ns = 40 } },
		{ .f = { .p50_ns = 300 }, .i = { .p50_ns = 7 }, .w = { .p50_ns = 0 } },
	};

	(void)state;
	hd_profile_fit(node, 2, HD_PHASE_F, 500);
	assert_int_equal(node[0].f.p50_ns, 125);
	assert_int_equal(node[1].f.p50_ns, 375);
	hd_profile_fit(node, 2, HD_PHASE_W, 20);
	assert_int_equal(node[0].w.p50_ns, 20);
	assert_int_equal(node[1].w.p50_ns, 0);
	assert_int_equal(node[0].i.p50_ns, 5);
	hd_profile_fit(node, 2, HD_PHASE_I, 24);
	assert_int_equal(node[1].i.p50_ns, 14);
	hd_profile_fit(node + 1, 1, HD_PHASE_W, 9);        /* nothing to stretch */
	assert_int_equal(node[1].w.p50_ns, 0);
}

/* Of which times it is made is the clock's matter; its form, and that a step has the same bits after it, are
 * not. */
static void coming_back_late_is_never_cheaper_and_changes_no_bit(void **state)
{
	static const char *const models[] = { hd_rig_mlp, hd_rig_lenet, hd_rig_gpt };

	(void)state;
	for (int m = 0; m < 3; m++) {
		struct hd_rig plain, timed;
		struct hd_reuse reuse, none;
		struct hd_diag diag = { "" };
		hd_reuse_none(&none);
		hd_rig_open(&plain, models[m], BATCH, VNS, NULL, 1);
		hd_rig_open(&timed, models[m], BATCH, VNS, NULL, 1);
		for (int processor = 0; processor < 2; processor++) {
			memset(&reuse, 0, sizeof reuse);
			CHECK(hd_worker_profile_reuse(timed.worker, &(struct hd_profile_how){ .processor =
				processor, .budget_ns = INT64_C(20000000000) }, &reuse, &diag) == HD_OK, "%s",
				diag.text);
			for (int i = 0; i < HD_REUSE_KINDS * HD_REUSE_POINTS; i++) {
				const int kind = i / HD_REUSE_POINTS, point = i % HD_REUSE_POINTS;
				const double *by = &reuse.by[kind][point];
				CHECK(*by < 1e6 && (point ? *by >= by[-1] : kind <= HD_REUSE_W ? *by == 1 :
					*by >= 1), "model %d, kind %d, point %d: %g", m, kind, point, *by);
			}
		}
		/* joined: what is never apart costs what it does within B */
		CHECK(hd_worker_profile_reuse(timed.worker, &(struct hd_profile_how){ .joined = true,
			.budget_ns = INT64_C(20000000000) }, &reuse, &diag) == HD_OK, "%s", diag.text);
		assert_memory_equal(reuse.by[HD_REUSE_I_APART], reuse.by[HD_REUSE_I], sizeof reuse.by[0]);
		assert_memory_equal(reuse.by[HD_REUSE_W_APART], reuse.by[HD_REUSE_W], sizeof reuse.by[0]);
		/* a round that cannot end in time is not begun; nor is one without memory for it */
		reuse.by[0][1] = 0;
		assert_int_equal(hd_worker_profile_reuse(timed.worker, &(struct hd_profile_how){ .budget_ns =
			1 }, &reuse, &diag), HD_OK);
		assert_memory_equal(&reuse, &none, sizeof none);
		reuse.by[0][1] = 0;
		timed.worker->spec.memory_limit_bytes = 4096;
		assert_int_equal(hd_worker_profile_reuse(timed.worker, &(struct hd_profile_how){ .budget_ns =
			INT64_C(20000000000) }, &reuse, &diag), HD_OK);
		assert_memory_equal(&reuse, &none, sizeof none);
		struct hd_step_record a = hd_rig_step(&plain), b = hd_rig_step(&timed);
		CHECK(hd_hash_same(a.digest, b.digest), "model %d: the state differs", m);
		hd_rig_close(&plain);
		hd_rig_close(&timed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(medians_means_and_spreads_are_those_of_the_samples),
		cmocka_unit_test(nodes_with_work_in_a_phase_have_times_in_it),
		cmocka_unit_test(steps_have_the_same_bits_whether_nodes_were_measured_or_not),
		cmocka_unit_test(what_is_saved_has_a_place_in_the_memory_plan),
		cmocka_unit_test(left_alone_it_takes_as_many_samples_as_settle),
		cmocka_unit_test(a_budget_ends_warm_up_and_passes),
		cmocka_unit_test(a_median_is_known_when_what_lies_round_it_is_near),
		cmocka_unit_test(medians_of_nodes_add_up_to_that_of_their_phase),
		cmocka_unit_test(rates_and_a_link_are_measured_too),
		cmocka_unit_test(coming_back_late_is_never_cheaper_and_changes_no_bit),
		cmocka_unit_test(what_others_lengthen_is_left_out),
		cmocka_unit_test(what_cannot_be_profiled_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
