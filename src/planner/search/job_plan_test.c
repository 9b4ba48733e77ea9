#include "planner/job_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/sim_why.h"
#include "planner/planner.h"
#include "tests/planning.h"
#include "tests/check.h"

/* Chains of hand-made profiles: what a plan must take can be said in a line. */

enum { KIB = 1024, MS = 1000000 };
#define PS_PER_MS INT64_C(1000000000)

struct subject { struct hd_profile p; struct hd_cuts cuts; struct hd_cut_sums sums; struct hd_cluster cluster;
	struct hd_job_plan_ask ask; struct hd_diag diag; };

/* n nodes of f, b = 2 f milliseconds each, a tensor of `out` bytes between them, `param` bytes each. */
static void open_chain(struct subject *t, uint32_t n, const int *f_ms, int64_t out, int64_t param)
{
	memset(t, 0, sizeof *t);
	t->p = hd_chain_profile(n);
	for (uint32_t i = 0; i < n; i++) {
		struct hd_profile_node *node = &t->p.node[i];
		node->f.p50_ns = node->i.p50_ns = node->w.p50_ns = f_ms[i] * MS;
		node->out[0] = node->saved = out;
		node->param = param;
	}
	hd_sums_of(&t->sums, &t->cuts, &t->p, (struct hd_cuts_how){ 0 });
}

static void on_devices(struct subject *t, uint32_t n, uint32_t vns, double bytes_per_s, int64_t memory)
{
	struct hd_cluster_level level = { "link", n, bytes_per_s, 0 };

	CHECK(hd_cluster_make(&t->cluster, &level, 1, (struct hd_cluster_kind){ "device", 1, memory }, &arena,
		&t->diag) == HD_OK, "%s", t->diag.text);
	t->ask = (struct hd_job_plan_ask){ .sums = &t->sums, .cluster = &t->cluster, .vns = vns,
		.tensor_shards = 1, .variant = HD_PART_PAPER };
}

static enum hd_err make(struct subject *t, const char *planner, struct hd_job_plan *plan,
	struct hd_diag *diag)
{
	const struct hd_job_planner *row = NULL;

	CHECK(hd_job_planner_find(&row, planner, diag) == HD_OK, "%s", diag->text);
	return hd_job_plan_make(plan, row, &t->ask, &arena, diag);
}

static void must(struct subject *t, const char *planner, struct hd_job_plan *plan)
{
	struct hd_diag diag = { "" };

	CHECK(make(t, planner, plan, &diag) == HD_OK, "%s: %s", planner, diag.text);
}

static void without_weights_n_devices_take_an_nth(void **state)
{
	static const int f_ms[] = { 1, 2, 3 };

	(void)state;
	for (uint32_t n = 1; n <= 5; n++) {
		struct hd_job_plan plan;
		struct subject t;
		open_chain(&t, 3, f_ms, KIB, 0);
		on_devices(&t, n, 12, 1e9, 0);
		must(&t, "data", &plan);
		uint32_t most = (12 + n - 1) / n;
		CHECK(plan.whole && plan.sim.makespan == (int64_t)most * 18 * PS_PER_MS,
			"%u devices: %lld ps", n, (long long)plan.sim.makespan);
		uint32_t sum = 0;
		for (uint32_t r = 0; r < plan.schedule.nranks; r++)
			sum += plan.counts[r];
		assert_int_equal(sum, 12);
	}
}

static void virtual_nodes_are_shared_out_by_speed(void **state)
{
	static const char text[] =
		"kinds:\n  fast: {speed: 1}\n  slow: {speed: 0.5}\nlevels:\n  - {name: l, components: 3, "
		"bytes_per_s: 1e9, latency_ns: 0}\n"
		"devices:\n  - {kind: slow, count: 1}\n  - {kind: fast, count: 2}\n";
	static const int f_ms[] = { 1, 1 };
	struct hd_job_plan plan;
	struct subject t;

	(void)state;
	open_chain(&t, 2, f_ms, KIB, 0);
	on_devices(&t, 3, 11, 1e9, 0);
	CHECK(hd_cluster_parse(&t.cluster, text, strlen(text), "c.yaml", &arena, &t.diag) == HD_OK, "%s",
		t.diag.text);
	must(&t, "data", &plan);
	uint32_t has[3] = { 0 };
	for (uint32_t r = 0; r < plan.schedule.nranks; r++)
		has[plan.device[r]] = plan.counts[r];
	CHECK(has[0] == 2 && has[1] + has[2] == 9 && has[1] <= 5 && has[2] <= 5, "%u %u %u", has[0], has[1],
		has[2]);
	assert_int_equal(plan.sim.makespan, 5 * 6 * PS_PER_MS);      /* 2 on the slow one take 24 ms */
}

/* Two servers of two, the second of half the speed: what the solver predicts is what the simulator finds, and
 * the rack is used only when its exchange is short. */
static void uneven_devices_take_what_was_predicted(void **state)
{
	static const char *const levels[] = { "1e9", "1e8", "1e6" };
	static const int f_ms[] = { 1, 1 };
	uint32_t used = 4;

	(void)state;
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		char text[400];
		struct hd_job_plan plan, best;
		struct subject t;
		double predicted = 0;
		snprintf(text, sizeof text,
			"kinds:\n  fast: {speed: 1}\n  slow: {speed: 0.5}\nlevels:\n  - {name: server, "
			"components: 2, bytes_per_s: 1e12, "
			"latency_ns: 1000}\n  - {name: rack, components: 2, bytes_per_s: %s, latency_ns: "
			"5000}\ndevices:\n  - {kind: fast, count: 2}\n"
			"  - {kind: slow, count: 2}\n", levels[i]);
		open_chain(&t, 2, f_ms, KIB, 256 * KIB);
		on_devices(&t, 4, 16, 1e9, 0);
		CHECK(hd_cluster_parse(&t.cluster, text, strlen(text), "c.yaml", &arena, &t.diag) == HD_OK,
			"%s", t.diag.text);
		must(&t, "data", &plan);
		const char *at = strstr(plan.why.at, ": ");
		CHECK(at && (at = strstr(plan.why.at, "virtual nodes ")) && (at = strstr(at, ": ")) &&
			sscanf(at, ": %lf ms a step", &predicted) == 1, "%s",
			plan.why.at);
		double step = hd_job_plan_step_s(&plan) * 1e3;
		CHECK(step < predicted * 1.0001 && step > predicted * 0.9999,
			"predicted %g ms, simulated %g: %s", predicted, step, plan.why.at);
		CHECK(plan.schedule.nranks <= used, "%s B/s: %u devices", levels[i], plan.schedule.nranks);
		used = plan.schedule.nranks;
		must(&t, "auto", &best);
		CHECK(best.sim.makespan <= plan.sim.makespan, "auto takes %g s, data %g",
			hd_job_plan_step_s(&best), hd_job_plan_step_s(&plan));
		CHECK(i == 2 || best.sim.makespan < plan.sim.makespan,
			"%s B/s: a pipeline is faster here, and auto has none", levels[i]);
		if (i == 0)
			CHECK(used == 4 && strstr(plan.why.at, "over the rack"), "%s", plan.why.at);
	}
	assert_int_equal(used, 2);
}

static void devices_without_virtual_nodes_stay_idle(void **state)
{
	static const int f_ms[] = { 1 };
	struct hd_job_plan plan;
	struct subject t;

	(void)state;
	open_chain(&t, 1, f_ms, KIB, 0);
	on_devices(&t, 8, 3, 1e9, 0);
	must(&t, "data", &plan);
	assert_int_equal(plan.schedule.nranks, 3);
	assert_non_null(strstr(plan.why.at, "5 of 8 devices stay idle: the step has 3 virtual nodes"));
}

/* Large weights in the last node and a slow link: it goes alone, as the recurrence says. */
static void pipedream_runs_what_its_recurrence_finds(void **state)
{
	static const int f_ms[] = { 2, 2, 1 };
	struct hd_part_how how = { .variant = HD_PART_PAPER, .nlevels = 1, .level = { { 4, 1e8 } } };
	struct hd_job_plan plan;
	struct hd_partition part;
	struct subject t;

	(void)state;
	open_chain(&t, 3, f_ms, KIB, 0);
	t.p.node[2].param = 100 << 20;
	hd_sums_of(&t.sums, &t.cuts, &t.p, (struct hd_cuts_how){ 0 });
	on_devices(&t, 4, 12, 1e8, 0);
	must(&t, "pipedream", &plan);
	CHECK(hd_part_solve(&part, &t.cuts, &how, &arena, &t.diag) == HD_OK, "%s", t.diag.text);
	assert_int_equal(plan.nstages, 2);
	assert_int_equal(plan.nstages, part.top.nstages);
	for (uint32_t s = 0; s < 2; s++)
		assert_int_equal(plan.first[s], part.top.stage[s].first);
	CHECK(part.top.stage[0].replicas == 3 && plan.schedule.nranks == 4 && !plan.whole, "%u",
		part.top.stage[0].replicas);
	struct hd_job_plan data;
	must(&t, "data", &data);
	assert_true(plan.sim.makespan < data.sim.makespan);
}

/* Two devices of a group: half the work of each virtual node, and no weights to sum. */
static void a_tensor_group_shares_what_a_rank_runs(void **state)
{
	static const int f_ms[] = { 2 };
	struct hd_job_plan plan;
	struct subject t;

	(void)state;
	open_chain(&t, 1, f_ms, KIB, 0);
	t.p.tensor_shards = 2;
	on_devices(&t, 2, 4, 1e9, 0);
	t.ask.tensor_shards = t.ask.tensor = 2;
	must(&t, "auto", &plan);
	CHECK(plan.tensor == 2 && plan.schedule.nranks == 1 && !plan.whole, "%u devices a rank, %u ranks",
		plan.tensor, plan.schedule.nranks);
	CHECK(plan.sim.makespan == 4 * 3 * PS_PER_MS, "%lld ps", (long long)plan.sim.makespan);
}

static void auto_is_never_slower_than_the_others(void **state)
{
	static const int f_ms[] = { 2, 1, 3, 1, 2 };

	(void)state;
	for (int64_t param = 0; param <= 64 << 20; param += 16 << 20) {
		struct hd_job_plan best;
		struct subject t;
		open_chain(&t, 5, f_ms, 64 * KIB, param);
		on_devices(&t, 4, 8, 1e9, 0);
		must(&t, "auto", &best);
		assert_string_equal(best.planner, "auto");
		for (const struct hd_job_planner *p = hd_job_planners; p->name; p++) {
			struct hd_diag why = { "" };
			struct hd_job_plan plan;
			if (make(&t, p->name, &plan, &why) == HD_OK)
				CHECK(best.sim.makespan <= plan.sim.makespan, "%s is faster", p->name);
		}
	}
}

/* PipeDream's recurrence does not; of what does not fit otherwise the simulated schedule computes again. */
static void our_stages_know_the_memory_of_devices(void **state)
{
	static const int f_ms[] = { 2, 2, 1, 3 };
	struct hd_job_plan ours, papers;
	struct hd_diag diag = { "" };
	struct subject t;

	(void)state;
	open_chain(&t, 4, f_ms, 64 * KIB, 2 << 20);
	/* less than the model with its gradients and copies */
	on_devices(&t, 3, 9, 1e9, 22 << 20);
	assert_int_equal(make(&t, "data", &papers, &diag), HD_E_INVAL);
	t.ask.variant = HD_NPART_VARIANTS;
	must(&t, "pipedream", &ours);
	CHECK(ours.nstages >= 2 && ours.recompute, "%u stages", ours.nstages);
	t.ask.recompute = HD_RECOMPUTES_ALWAYS;
	must(&t, "pipedream", &ours);
	for (uint32_t s = 0; s < ours.nstages; s++)
		assert_true(ours.recompute[s]);
	bool again = false;
	for (uint32_t i = 0; i < ours.schedule.list[0].len; i++)
		again |= ours.schedule.list[0].at[i].op == HD_INS_R;
	assert_true(again);
}

static void wishes_of_the_job_are_kept(void **state)
{
	static const int f_ms[] = { 2, 1, 3, 1, 2, 1 };
	static const struct { uint32_t stages, chunks; const char *schedule; bool deep; uint32_t want;
		} cases[] = {
		{ 2, 0, NULL, false, 2 }, { 4, 2, NULL, false, 4 }, { 3, 0, "gpipe", false, 3 }, { 0, 0, "zb-h1", true, 0 }, { 0, 0, NULL, true, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_job_plan plan;
		struct subject t;
		open_chain(&t, 6, f_ms, KIB, KIB);
		on_devices(&t, 4, 8, 1e9, 0);
		t.ask.stages = cases[i].stages;
		t.ask.chunks = cases[i].chunks;
		t.ask.schedule = cases[i].schedule;
		t.ask.deep = cases[i].deep;
		must(&t, "auto", &plan);
		CHECK(cases[i].want ? plan.nstages == cases[i].want : plan.nstages >= 2,
			"case %zu: %u stages", i, plan.nstages);
		CHECK(!plan.whole, "case %zu", i);
		for (uint32_t s = 1; s < plan.nstages; s++)
			assert_true(plan.first[s] > plan.first[s - 1]);
	}
}

/* Weights that a device cannot hold: the rules go as deep as that needs, not deeper. */
static void ptdp_is_as_deep_as_memory_needs(void **state)
{
	static const int f_ms[] = { 1, 1, 1, 1 };

	(void)state;
	for (uint32_t want = 1; want <= 4; want *= 2) {
		struct hd_job_plan plan;
		struct subject t;
		open_chain(&t, 4, f_ms, KIB, 4 << 20);
		on_devices(&t, 4, 8, 1e9, 0);
		t.ask.stages = want;
		must(&t, "auto", &plan);
		int64_t need = 0;
		for (uint32_t r = 0; r < plan.schedule.nranks; r++)
			need = plan.sim.rank[r].peak > need ? plan.sim.rank[r].peak : need;
		on_devices(&t, 4, 8, 1e9, need + (1 << 20));
		t.ask.chunks = 1;
		must(&t, "ptdp", &plan);
		CHECK(plan.nstages == want, "%u stages, not %u: %s", plan.nstages, want, plan.why.at);
	}
}

static void what_does_not_fit_says_who_and_how_much(void **state)
{
	static const int f_ms[] = { 1, 1 };
	struct hd_job_plan plan;
	struct hd_diag diag = { "" };
	struct subject t;

	(void)state;
	open_chain(&t, 2, f_ms, KIB, 1 << 20);
	on_devices(&t, 2, 4, 1e9, 1 << 20);
	assert_int_equal(make(&t, "data", &plan, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "the plan of data does not fit: rank 0 needs ") &&
		strstr(diag.text, "device 0 has 1.0 MiB"), "%s", diag.text);
	on_devices(&t, 2, 4, 1e9, 0);
	must(&t, "data", &plan);
	int64_t peak = plan.sim.rank[0].peak;
	on_devices(&t, 2, 4, 1e9, peak);          /* to the byte */
	must(&t, "data", &plan);
	on_devices(&t, 2, 4, 1e9, peak - 1);
	assert_int_equal(make(&t, "data", &plan, &diag), HD_E_INVAL);
	on_devices(&t, 2, 4, 1e9, 1 << 20);
	diag.text[0] = 0;
	assert_int_equal(make(&t, "auto", &plan, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "no plan fits the memory: the smallest need is about"), "%s", diag.text);
}

/* Pairs of equal nodes with a backward of two forwards: V turns of the slower stage, and one more where each
 * step is drained (1f1b). The steady step's causes add up to it. */
static void steps_of_delayed_updates_overlap(void **state)
{
	static const struct { enum hd_update_mode update; const char *schedule, *drains, *says; uint32_t vns;
		bool overlap; double ms; } cases[] = {
		{ HD_UPDATE_2BW, NULL, NULL, "2bw: 2 stages of one pipeline whose steps overlap", 8, true, 48 },
		{ HD_UPDATE_2BW, "2bw", NULL, "drained each step the best takes 54.0000 ms", 8, true, 48 },
		{ HD_UPDATE_STASH, "stash", NULL, "stash: 2 stages", 8, true, 48 },
		{ HD_UPDATE_VSYNC, NULL, NULL, "vsync: 2 stages", 8, true, 48 },
		{ HD_UPDATE_2BW, "1f1b", NULL, "names another order", 8, false, 54 },
		{ HD_UPDATE_2BW, "2bw", NULL, "fewer than 2 (p - 1) virtual nodes", 1, false, 12 },
		{ HD_UPDATE_2BW, "2bw", "for a reason", "lets steps overlap: for a reason", 8, false, 54 },
		{ HD_UPDATE_FLUSH, "1f1b", NULL, "1f1b", 8, false, 54 },
	};
	static const int f_ms[] = { 1, 1, 1, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_sim_reasons why;
		struct hd_job_plan plan;
		struct subject t;
		int64_t at = 0;
		open_chain(&t, 4, f_ms, KIB, KIB);
		on_devices(&t, 2, cases[i].vns, 1e15, 0);
		t.ask.update = cases[i].update;
		t.ask.schedule = cases[i].schedule;
		t.ask.drains = cases[i].drains;
		t.ask.deep = t.ask.spans = true;
		must(&t, "auto", &plan);
		CHECK(plan.overlap == cases[i].overlap && strstr(plan.why.at, cases[i].says) &&
			fabs(hd_job_plan_step_s(&plan) * 1e3 - cases[i].ms) < 1e-3, "case %zu: %g ms: %s", i,
			hd_job_plan_step_s(&plan) * 1e3, plan.why.at);
		assert_int_equal(hd_sim_reasons(&why, &plan.sim, &arena, NULL), HD_OK);
		for (uint32_t k = 0; k < why.nparts; at = why.part[k++].until)
			assert_int_equal(why.part[k].start, at);
		assert_int_equal(at, plan.sim.makespan);
	}
}

/* Of the depths that the keys leave open it is the one with the shortest step, ties: the shallower. */
static void of_depths_that_overlap_the_best_is_taken(void **state)
{
	static const int f_ms[] = { 1, 1, 1, 1 };
	struct hd_job_plan plan[5];

	(void)state;
	for (uint32_t p = 0; p <= 4; p += p ? 1 : 2) {
		struct subject t;
		open_chain(&t, 4, f_ms, KIB, KIB);
		on_devices(&t, 4, 8, 1e15, 0);
		t.ask.update = HD_UPDATE_2BW;
		t.ask.schedule = "2bw";
		t.ask.deep = true;
		t.ask.stages = p;
		must(&t, "auto", &plan[p]);
		assert_true(plan[p].overlap && (!p || plan[p].nstages == p));
	}
	uint32_t best = 2;
	for (uint32_t p = 3; p <= 4; p++)
		best = plan[p].sim.makespan < plan[best].sim.makespan ? p : best;
	assert_true(best > 2);                    /* more devices take less time */
	CHECK(plan[0].nstages == best && plan[0].sim.makespan == plan[best].sim.makespan, "%u stages, not %u",
		plan[0].nstages, best);
}

/* With one byte less than its fullest rank takes, time after time: other cuts that take no less time, and at
 * last none, for want of memory. */
static void what_overlaps_fits_the_memory(void **state)
{
	static const int f_ms[] = { 1, 1, 1, 1 };
	struct hd_diag diag = { "" };
	struct hd_job_plan plan;
	int64_t memory = 0, took = 0;
	uint32_t n = 0;

	(void)state;
	for (;; n++) {
		struct subject t;
		open_chain(&t, 4, f_ms, 64 * KIB, KIB);
		on_devices(&t, 2, 8, 1e15, memory);
		t.ask.update = HD_UPDATE_2BW;
		t.ask.schedule = "2bw";
		t.ask.recompute = HD_RECOMPUTES_NEVER;
		if (make(&t, "auto", &plan, &diag) || !plan.overlap)
			break;
		const int64_t most = plan.sim.rank[plan.sim.rank[1].peak > plan.sim.rank[0].peak].peak;
		assert_true((!memory || most <= memory) && plan.sim.makespan >= took);
		memory = most - 1;
		took = plan.sim.makespan;
	}
	CHECK(n > 0 && strstr(*diag.text ? diag.text : plan.why.at, "memory"), "%u: %s, %s", n, diag.text,
		plan.why.at);
}

static void wishes_that_a_planner_does_not_hear_are_refused(void **state)
{
	static const struct { const char *planner; struct hd_job_plan_ask wish; const char *says;
		} cases[] = {
		{ "data", { .stages = 2 }, "the planner data decides the stages itself" },
		{ "data", { .schedule = "gpipe" }, "the planner data decides the schedule itself" },
		{ "data", { .recompute = HD_RECOMPUTES_ALWAYS }, "recomputation" },
		{ "pipedream", { .stages = 2 }, "the planner pipedream decides the number of stages itself" },
		{ "pipedream", { .chunks = 2 }, "chunks" },
		{ "pipedream", { .tensor = 2 }, "tensor width" },
		{ "auto", { .stages = 3, .chunks = 2 }, "parallel.stages 3 is no multiple of parallel.chunks 2" },
		{ "ptdp", { .stages = 3 }, "the planner ptdp decides the number of stages itself" },
		{ "2bw", { .stages = 0 }, "the planner 2bw reads profiles" },
	};
	static const int f_ms[] = { 1, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		struct hd_job_plan plan;
		struct subject t;
		open_chain(&t, 2, f_ms, KIB, KIB);
		on_devices(&t, 2, 4, 1e9, 0);
		t.ask.stages = cases[i].wish.stages;
		t.ask.chunks = cases[i].wish.chunks;
		t.ask.tensor = cases[i].wish.tensor;
		t.ask.schedule = cases[i].wish.schedule;
		t.ask.recompute = cases[i].wish.recompute;
		CHECK(make(&t, cases[i].planner, &plan, &diag) == HD_E_INVAL &&
			strstr(diag.text, cases[i].says), "case %zu: %s", i, diag.text);
	}
}

static void what_is_printed_is_a_schedule_and_the_same_every_time(void **state)
{
	static const int f_ms[] = { 2, 2, 1 };
	struct hd_schedules back;
	struct hd_report report;
	struct hd_text text[2];
	struct subject t;

	(void)state;
	open_chain(&t, 3, f_ms, KIB, 1 << 20);
	on_devices(&t, 4, 12, 1e8, 0);
	for (int i = 0; i < 2; i++) {
		struct hd_job_plan plan;
		must(&t, "pipedream", &plan);
		hd_text_init(&text[i], &arena);
		hd_job_plan_print(&plan, &t.ask, &text[i]);
	}
	assert_string_equal(text[0].at, text[1].at);
	CHECK(hd_schedules_parse(&back, text[0].at, text[0].len, "p", &arena, &t.diag) == HD_OK, "%s",
		t.diag.text);
	assert_int_equal(back.len, 1);
	struct hd_schedule_rules rules = { HD_TRANSPORT_BUFFERED, 0 };
	CHECK(hd_schedule_check(&back.at[0], &rules, &report, &t.diag) == HD_OK, "%s", t.diag.text);
}

static void a_planner_that_there_is_not_is_answered_with_those_there_are(void **state)
{
	const struct hd_job_planner *row;
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_job_planner_find(&row, "pipedreem", &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "did you mean pipedream? there are auto, data, pipedream, 2bw, ptdp"), "%s",
		diag.text);
}

/* Without weights copies win: what auto chooses then is what data makes, the wait for the norm of a job
 * that clips included. */
static void the_same_plan_of_two_planners_is_known_as_such(void **state)
{
	static const int f_ms[] = { 4, 1, 1 };

	(void)state;
	for (int clips = 0; clips < 2; clips++) {
		struct hd_job_plan data, found, other;
		struct subject t;
		open_chain(&t, 3, f_ms, KIB, 1);
		on_devices(&t, 2, 4, 1e9, 0);
		t.cluster.level[0].latency_ps = PS_PER_MS;
		t.ask.clips = clips;
		must(&t, "data", &data);
		must(&t, "auto", &found);
		must(&t, "pipedream", &other);
		assert_int_equal(found.nstages, 1);
		CHECK(hd_job_plan_same(&data, &found) && found.sim.makespan == data.sim.makespan,
			"clips %d: %lld ps, auto %lld", clips,
			(long long)data.sim.makespan, (long long)found.sim.makespan);
		assert_true(hd_job_plan_same(&found, &found));
		assert_false(hd_job_plan_same(&data, &other));
		found.device = (uint32_t[]){ 1, 0 };
		assert_false(hd_job_plan_same(&data, &found));
		assert_true(!clips || data.sim.makespan > 2 * PS_PER_MS + 2 * 3 * 6 * PS_PER_MS);
	}
}

/* Half the work each, and no less than half: sums of outputs come on top. Not what one device takes. */
static void a_tensor_group_takes_what_its_planner_found(void **state)
{
	static const int f_ms[] = { 4, 2 };
	struct hd_job_plan plan;
	struct subject t;
	struct hd_auto a;

	(void)state;
	open_chain(&t, 2, f_ms, KIB, KIB);
	t.p.tensor_shards = 2;
	on_devices(&t, 2, 4, 1e9, 0);
	t.ask.tensor_shards = t.ask.tensor = 2;
	must(&t, "auto", &plan);
	const struct hd_auto_ask ask = { .vns = 4, .tensor_shards = 2, .t = 2 };
	CHECK(hd_plan_auto(&a, &t.sums, &t.cluster, &ask, &arena, &t.diag) == HD_OK, "%s", t.diag.text);
	assert_int_equal(plan.sim.makespan, a.plan[0].makespan_ps);
	CHECK(plan.sim.makespan >= 4 * 9 * PS_PER_MS && plan.sim.makespan < 4 * 10 * PS_PER_MS, "%lld ps",
		(long long)plan.sim.makespan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_weights_n_devices_take_an_nth, make_arena,
			drop_arena),
		cmocka_unit_test_setup_teardown(virtual_nodes_are_shared_out_by_speed, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(uneven_devices_take_what_was_predicted, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(devices_without_virtual_nodes_stay_idle, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(pipedream_runs_what_its_recurrence_finds, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(a_tensor_group_shares_what_a_rank_runs, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(auto_is_never_slower_than_the_others, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(our_stages_know_the_memory_of_devices, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(wishes_of_the_job_are_kept, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(ptdp_is_as_deep_as_memory_needs, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(what_does_not_fit_says_who_and_how_much, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(steps_of_delayed_updates_overlap, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(of_depths_that_overlap_the_best_is_taken, make_arena,
			drop_arena),
		cmocka_unit_test_setup_teardown(what_overlaps_fits_the_memory, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(wishes_that_a_planner_does_not_hear_are_refused, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(what_is_printed_is_a_schedule_and_the_same_every_time,
		make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(the_same_plan_of_two_planners_is_known_as_such, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(a_tensor_group_takes_what_its_planner_found, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(a_planner_that_there_is_not_is_answered_with_those_there_are,
		make_arena, drop_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
