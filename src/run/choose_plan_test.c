#include "run/choose_plan.h"

#include <math.h>

#include "plan/check.h"
#include "pipeline/staged.h"
#include "run/testing_costs.h"

/* Plans chosen by profiles whose times are made up: what the choice must be follows by hand. */

struct made {
	struct hd_made job;
	struct hd_choose_ask ask;
};

static const char shards[] = "model: {use: builtin:gpt, shards: 4, sequence_shards: true, "
	"args: {layers: 4, width: 16, heads: 4, context: 8}}\ndata: {kind: synthetic, count: 64}\n";

static void begin_model(struct made *m, const char *model, const char *more, uint32_t ndevices,
	uint32_t heavy)
{
	hd_made_begin(&m->job, model, more, heavy);
	const struct hd_task *task = m->job.rig.task;
	m->ask = (struct hd_choose_ask){ .task = task, .costs = m->job.costs, .ndevices = ndevices,
		.job = hd_plan_job_whole(m->job.rig.job->nvns, task->layout.nchunks) };
}

static void begin(struct made *m, const char *more, uint32_t ndevices, uint32_t heavy)
{
	begin_model(m, hd_made_gpt, more, ndevices, heavy);
}

static void end(struct made *m) { hd_made_end(&m->job); }

static struct hd_plan_choices choose(struct made *m)
{
	struct hd_plan_choices choices;

	CHECK(hd_choose_plan(&choices, &m->ask, &m->job.rig.arena, &m->job.diag) == HD_OK, "%s",
		m->job.diag.text);
	assert_true(choices.n > 0);
	return choices;
}

static double stage_ms(const struct made *m, const struct hd_plan *plan, uint32_t stage)
{
	uint32_t cut[64];
	const struct hd_profile *p = &m->job.costs->line.profile;
	double sum = 0;

	assert_int_equal(hd_run_costs_cuts(m->job.costs, plan->first, plan->nstages, cut), HD_OK);
	for (uint32_t k = cut[stage]; k < (stage + 1 < plan->nstages ? cut[stage + 1] : p->nnodes); k++)
		sum += (double)hd_profile_node_ns(&p->node[k]) * 1e-6;
	return sum;
}

static void candidates_are_plans_that_run_on_all_devices(void **state)
{
	static const uint32_t ndevices[] = { 2, 3, 4 };

	(void)state;
	for (size_t i = 0; i < sizeof ndevices / sizeof *ndevices; i += SANITIZED ? 2 : 1) {
		struct made m;
		uint32_t whole = 0, staged = 0;
		begin(&m, NULL, ndevices[i], 5);
		struct hd_plan_choices choices = choose(&m);
		for (uint32_t k = 0; k < choices.n; k++) {
			const struct hd_plan_choice *c = &choices.at[k];
			CHECK(c->plan.nranks == ndevices[i] && c->forecast.step_ns > 0, "%u ranks",
				c->plan.nranks);
			whole += !c->stages.p;
			staged += c->stages.p > 0;
			CHECK((c->stages.p ? hd_plan_staged_check(&c->plan, &m.ask.job, NULL, &m.job.diag) :
				hd_plan_check(&c->plan, &m.ask.job, NULL, &m.job.diag)) == HD_OK, "%s",
					m.job.diag.text);
			CHECK(k < 2 || choices.at[k - 1].forecast.step_ns <= c->forecast.step_ns,
				"order, %u", k);
		}
		CHECK(whole == 1 && staged >= 3, "%u and %u", whole, staged);
		end(&m);
	}
}

/* The width is the job's: the whole model on wide ranks, and stages of them. */
static void candidates_of_ranks_of_several_devices(void **state)
{
	struct made m;
	uint32_t whole = 0, staged = 0;

	(void)state;
	begin_model(&m, shards, "parallel: {mode: auto, tensor: 2}\n", 4, 5);
	m.ask.width = 2;
	struct hd_plan_choices choices = choose(&m);
	for (uint32_t k = 0; k < choices.n; k++) {
		const struct hd_plan_choice *c = &choices.at[k];
		CHECK(hd_plan_devices(&c->plan) == 8 && hd_plan_width(&c->plan) == 2 && c->stages.t == 2 &&
			c->forecast.step_ns > 0, "%u ranks of %u", c->plan.nranks, hd_plan_width(&c->plan));
		whole += c->stages.p == 1;
		staged += c->stages.p > 1;
		CHECK(hd_plan_staged_check(&c->plan, &m.ask.job, NULL, &m.job.diag) == HD_OK, "%s",
			m.job.diag.text);
	}
	CHECK(whole == 1 && staged >= 2, "%u and %u", whole, staged);
	CHECK(strstr(choices.why.at, "tensor, 4 ranks of 2 devices") && strstr(choices.why.at,
		"on 8 devices"),
		"%s", choices.why.at);
	end(&m);
}

/* Every width is tried where none is given, on four devices of one worker and of four: what is chosen is not
 * slower, by its own prediction, than any candidate, and than any plan of a width that is asked for alone.
 * With sanitizers the last row alone, whose links between workers take time. */
static void the_width_is_found(void **state)
{
	static const struct { uint32_t each; double copy; } rows[] = { { 0, 0 }, { 1, 0 }, { 2, 0 },
		{ 1, 400 } };

	(void)state;
	for (size_t i = SANITIZED ? 3 : 0; i < sizeof rows / sizeof *rows; i++) {
		struct made m;
		bool has[5][5] = { { false } };
		begin_model(&m, shards, "parallel: {mode: auto}\n", 4, 0);
		m.job.costs->copy_ns_per_byte = rows[i].copy;
		m.ask.open = true;
		m.ask.each = rows[i].each;
		const struct hd_plan_choices choices = choose(&m);
		for (uint32_t k = 0; k < choices.n; k++) {
			const struct hd_plan_choice *c = &choices.at[k];
			const uint32_t t = hd_plan_width(&c->plan) * hd_plan_groups(&c->plan);
			has[t][hd_plan_groups(&c->plan)] = true;
			CHECK(hd_plan_devices(&c->plan) == 4 && c->forecast.step_ns > 0, "%u devices",
				hd_plan_devices(&c->plan));
			CHECK(choices.at[0].forecast.step_ns * (choices.at[0].stages.p ? 1 :
				1 - HD_CHOOSE_MARGIN) <= c->forecast.step_ns, "%u of %u is faster", k,
				choices.n);
			CHECK((c->stages.p ? hd_plan_staged_check(&c->plan, &m.ask.job, NULL, &m.job.diag) :
				HD_OK) == HD_OK, "%s", m.job.diag.text);
		}
		const uint32_t each = rows[i].each ? rows[i].each : 4;
		for (uint32_t t = 1; t <= 4; t *= 2)
			CHECK(has[t][t > each ? t / each : 1], "row %zu: no ranks of %u", i, t);
		for (uint32_t t = 1; t <= 4 && !rows[i].each; t *= 2) {
			struct hd_choose_ask one = m.ask;
			struct hd_plan_choices of;
			one.open = false;
			one.width = t;
			one.ndevices = 4 / t;
			CHECK(hd_choose_plan(&of, &one, &m.job.rig.arena, &m.job.diag) == HD_OK, "%s",
				m.job.diag.text);
			CHECK(choices.at[0].forecast.step_ns <=
				of.at[0].forecast.step_ns / (1 - HD_CHOOSE_MARGIN), "row %zu: ranks of %u "
				"alone take %g, the choice %g", i, t, of.at[0].forecast.step_ns,
				choices.at[0].forecast.step_ns);
		}
		/* what crosses links between workers at this rate is slower than any stage */
		CHECK(rows[i].copy <= 0 || choices.at[0].stages.t <= 1, "%s", choices.why.at);
		end(&m);
	}
}

/* Groups on links that take nothing take what devices of one worker take; else more, the more the slower. */
static void groups_of_a_rank_are_charged_their_link(void **state)
{
	struct made m;
	double was = 0;

	(void)state;
	begin_model(&m, shards, NULL, 4, 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct hd_forecast f[2];
		m.job.costs->copy_ns_per_byte = i * 100;
		for (uint32_t groups = 1; groups <= 2; groups++) {
			const struct hd_run_stages shape = { .schedule = "1f1b", .p = 1, .v = 1, .d = 1,
				.t = 4, .groups = groups };
			struct hd_plan plan;
			CHECK(hd_run_stages_plan(&plan, &shape, &m.ask.job, m.ask.task, m.job.costs,
				&m.job.rig.arena, &m.job.diag) == HD_OK && hd_plan_groups(&plan) == groups,
				"%s", m.job.diag.text);
			CHECK(hd_forecast_make(&f[groups - 1], &plan, m.job.costs,
				&(struct hd_forecast_setting){ .cores = 0 }, &m.job.rig.arena,
				&m.job.diag) == HD_OK, "%s", m.job.diag.text);
		}
		CHECK(i ? f[1].step_ns > f[0].step_ns && f[1].step_ns > was :
			fabs(f[1].step_ns / f[0].step_ns - 1) < 1e-9, "%u ns a byte: %g, of one worker %g, "
			"before %g", i * 100, f[1].step_ns, f[0].step_ns, was);
		was = f[1].step_ns;
	}
	end(&m);
}

/* Without sums, updates and hops eight virtual nodes on two devices take four times one, and no pipeline
 * takes less: what predictions err by does not speak for stages. */
static void data_parallel_is_taken_unless_stages_save_more_than_the_margin(void **state)
{
	struct made m;

	(void)state;
	begin(&m, NULL, 2, 0);
	struct hd_plan_choices choices = choose(&m);
	double ideal = 4e6 * 3 * m.job.costs->line.profile.nnodes;
	CHECK(choices.at[0].stages.p == 0 && fabs(choices.at[0].forecast.step_ns - ideal) < 1, "%g, not %g",
		choices.at[0].forecast.step_ns, ideal);
	m.job.costs->whole = 1.02 * choices.at[1].forecast.step_ns / choices.at[0].forecast.step_ns;
	choices = choose(&m);
	CHECK(choices.at[0].stages.p == 0 && choices.at[0].forecast.step_ns > choices.at[1].forecast.step_ns,
		"2 %% are within the margin: %s", choices.why.at);
	m.job.costs->whole = 1.5;
	choices = choose(&m);
	CHECK(choices.at[0].stages.p == 2 && choices.at[choices.n - 1].stages.p == 0, "%s",
		choices.why.at);
	end(&m);
}

/* Ranks of t devices: never t times as fast, since what is whole runs once; on one core not faster at all;
 * and every hop counts. */
static void devices_of_a_rank_shorten_its_stages(void **state)
{
	(void)state;
	for (uint32_t p = 1; p <= 2; p++) {
		struct hd_forecast f[5], core[5], hops;
		struct made m;
		begin_model(&m, shards, NULL, p, 0);
		for (uint32_t t = 1; t <= 4; t *= 2) {
			const struct hd_run_stages shape = { .schedule = "1f1b", .p = p, .v = 1, .d = 1,
				.t = t };
			struct hd_plan plan;
			CHECK(hd_run_stages_plan(&plan, &shape, &m.ask.job, m.ask.task, m.job.costs,
				&m.job.rig.arena, &m.job.diag) == HD_OK && hd_plan_width(&plan) == t, "%s",
				m.job.diag.text);
			CHECK(hd_forecast_make(&f[t], &plan, m.job.costs, &(struct hd_forecast_setting){
				.cores = 0 },
				&m.job.rig.arena, &m.job.diag) == HD_OK, "%s", m.job.diag.text);
			CHECK(hd_forecast_make(&core[t], &plan, m.job.costs, &(struct hd_forecast_setting){
				.cores = 1 },
				&m.job.rig.arena, &m.job.diag) == HD_OK, "%s", m.job.diag.text);
			CHECK(t == 1 || (f[t].step_ns < f[t / 2].step_ns && f[t].step_ns > f[1].step_ns / t),
				"p %u: %u devices of a rank take %g, %u %g", p, t, f[t].step_ns, t / 2,
				f[t / 2].step_ns);
			CHECK(core[t].step_ns > 0.99 * core[1].step_ns,
				"p %u: on one core %u devices of a rank take %g, one %g", p, t,
				core[t].step_ns, core[1].step_ns);
			m.job.costs->hop_ns = 1000;
			CHECK(hd_forecast_make(&hops, &plan, m.job.costs, &(struct hd_forecast_setting){
				.cores = 0 },
				&m.job.rig.arena, &m.job.diag) == HD_OK, "%s", m.job.diag.text);
			CHECK(hops.step_ns > f[t].step_ns || p * t == 1, "p %u t %u: hops take nothing", p,
				t);
			m.job.costs->hop_ns = 0;
		}
		end(&m);
	}
}

static void slower_devices_get_shorter_stages_and_fewer_virtual_nodes(void **state)
{
	static const double speed[] = { 1, 0.5, 1 };
	const struct hd_run_stages shape = { .schedule = "1f1b", .p = 3, .v = 1, .d = 1 };
	struct made m;
	uint32_t count[3];

	(void)state;
	begin(&m, NULL, 3, 0);
	m.ask.shape = &shape;
	struct hd_plan even = choose(&m).at[0].plan;
	m.ask.setting.speed = speed;
	struct hd_plan_choices choices = choose(&m);
	const struct hd_plan *uneven = &choices.at[0].plan;
	double all = 0;
	for (uint32_t s = 0; s < 3; s++)
		all += stage_ms(&m, uneven, s);
	CHECK(fabs(stage_ms(&m, &even, 1) - all / 3) < 0.1 * all, "even: %g of %g", stage_ms(&m, &even,
		1), all);
	/* a fifth of the work at half the speed is as long as two fifths */
	CHECK(fabs(stage_ms(&m, uneven, 1) - all / 5) < 0.05 * all, "%g of %g ms on the slow device",
		stage_ms(&m, uneven, 1), all);
	hd_share_by_speed(count, 3, 10, speed);
	CHECK(count[0] == 4 && count[1] == 2 && count[2] == 4, "%u %u %u", count[0], count[1], count[2]);
	hd_share_by_speed(count, 3, 8, NULL);
	CHECK(count[0] == 3 && count[1] == 3 && count[2] == 2, "%u %u %u", count[0], count[1], count[2]);
	end(&m);
}

/* At 2 ns a byte, in the ranks' own time: of all 8 virtual nodes what the backward pass reads, both ways. */
static void activations_in_a_file_take_the_time_of_their_bytes(void **state)
{
	const struct hd_run_stages shape = { .schedule = "gpipe", .p = 2, .v = 1, .d = 1, .t = 1,
		.offload = true };
	double saved = 0, ns[HD_INS_END] = { 0 }, busy[2], step[2];
	struct hd_plan plan;
	struct made m;

	(void)state;
	begin(&m, NULL, 2, 0);
	for (uint32_t i = 0; i < m.job.costs->line.profile.nnodes; i++)
		saved += (double)m.job.costs->line.profile.node[i].saved;
	CHECK(hd_run_stages_plan(&plan, &shape, &m.ask.job, m.ask.task, m.job.costs, &m.job.rig.arena,
		&m.job.diag) == HD_OK, "%s", m.job.diag.text);
	for (int k = 0; k < 2; k++) {
		struct hd_forecast f;
		m.job.costs->host_ns_per_byte = 2 * k;
		CHECK(hd_forecast_make(&f, &plan, m.job.costs, &(struct hd_forecast_setting){ .cores = 0 },
			&m.job.rig.arena, &m.job.diag) == HD_OK, "%s", m.job.diag.text);
		step[k] = f.step_ns;
		busy[k] = f.busy_ns[0] + f.busy_ns[1];
		for (uint32_t i = 0; i < f.nrows && k; i++)
			ns[f.row[i].op] += f.row[i].predicted_ns * (double)f.row[i].n;
	}
	CHECK(fabs(ns[HD_INS_OFF] - 16 * saved) < 16 && fabs(ns[HD_INS_ON] - 16 * saved) < 16 && saved > 0,
		"OFF %g, ON %g, by hand %g", ns[HD_INS_OFF], ns[HD_INS_ON], 16 * saved);
	CHECK(fabs(busy[1] - busy[0] - 32 * saved) < 32 && step[1] > step[0], "%g, without %g", busy[1],
		busy[0]);
	end(&m);
}

/* All work on one core is the sum of it, whatever the plan. */
static void on_one_core_stages_save_no_time(void **state)
{
	struct made m;

	(void)state;
	begin(&m, NULL, 4, 3);
	m.ask.setting.cores = 1;
	struct hd_plan_choices choices = choose(&m);
	double work = 0;
	for (uint32_t i = 0; i < m.job.costs->line.profile.nnodes; i++)
		work += 8 * (double)hd_profile_node_ns(&m.job.costs->line.profile.node[i]);
	for (uint32_t k = 0; k < choices.n; k++)
		CHECK(choices.at[k].forecast.step_ns > 0.999 * work, "%u: %g of %g", k,
			choices.at[k].forecast.step_ns, work);
	CHECK(choices.at[0].stages.p == 0 && strstr(choices.why.at, "4 devices share 1 core:"), "%s",
		choices.why.at);
	end(&m);
}

static void a_shape_that_is_given_is_kept(void **state)
{
	static const struct { const char *parallel; struct hd_run_stages shape; } rows[] = {
		{ NULL, { .schedule = "gpipe", .p = 2, .v = 1, .d = 2 } },
		{ NULL, { .schedule = "zb-v", .p = 4, .v = 2, .d = 1 } },
		{ "parallel: {recompute: stage}\n", { .schedule = "1f1b", .p = 4, .v = 1, .d = 1,
			.recompute = true } },
		/* as it is, not as the planner would have it */
		{ NULL, { .schedule = "1f1b", .p = 4, .v = 1, .d = 1, .recompute = true } },
		{ "parallel: {offload: stage}\n", { .schedule = "1f1b", .p = 4, .v = 1, .d = 1,
			.offload = true } },
		/* more chunks than the planner looks at */
		{ NULL, { .schedule = "interleaved", .p = 2, .v = 8, .d = 2 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct made m;
		begin(&m, rows[i].parallel, 4, 0);
		m.ask.shape = &rows[i].shape;
		m.ask.alike = rows[i].shape.recompute && !rows[i].parallel;
		struct hd_plan_choices choices = choose(&m);
		for (uint32_t k = 0; k < choices.n; k++) {
			const struct hd_run_stages *s = &choices.at[k].stages;
			bool again = s->recompute;
			for (uint32_t j = 0; s->again && j < s->p * s->v; j++)
				again |= s->again[j];
			CHECK(!strcmp(s->schedule, rows[i].shape.schedule) && s->p == rows[i].shape.p &&
				s->v == rows[i].shape.v && s->d == rows[i].shape.d &&
				again == rows[i].shape.recompute && s->offload == rows[i].shape.offload,
				"row %zu: %s", i, choices.at[k].plan.cause);
		}
		end(&m);
	}
}

/* Of a little less memory than all need the planner lets some stages compute again. Where all must be alike
 * all do; and a shape that does not compute again never does. */
static void stages_compute_again_alike_where_that_is_asked_for(void **state)
{
	static const struct hd_run_stages given = { .schedule = "1f1b", .p = 2, .v = 1, .d = 1 };
	uint32_t mixed = 0, all = 0;

	(void)state;
	for (uint64_t bytes = 250000; bytes < 800000; bytes += 10000) {
		struct hd_plan_choices choices;
		struct made m;
		begin(&m, "parallel: {schedule: 1f1b}\n", 2, 0);
		m.ask.memory_bytes = bytes;
		for (int way = 0; way < 4; way++) {
			m.ask.alike = way > 0;
			m.ask.again = way == 2;
			m.ask.shape = way == 3 ? &given : NULL;
			if (hd_choose_plan(&choices, &m.ask, &m.job.rig.arena, NULL))
				continue;
			for (uint32_t k = 0; k < choices.n; k++) {
				const struct hd_run_stages *s = &choices.at[k].stages;
				mixed += s->again && s->again[0] != s->again[1];
				all += way == 1 && s->recompute;
				assert_true(way == 0 || !s->again);
				assert_true((way != 2 || s->recompute) && (way != 3 || !s->recompute));
			}
		}
		end(&m);
	}
	CHECK(mixed > 0 && all > 0, "%u, %u", mixed, all);
}

static void plans_that_compute_again_are_found_alone(void **state)
{
	struct made m;

	(void)state;
	begin(&m, NULL, 2, 0);
	m.ask.again = m.ask.alike = true;
	struct hd_plan_choices choices = choose(&m);
	for (uint32_t k = 0; k < choices.n; k++)
		CHECK(choices.at[k].stages.p && choices.at[k].stages.recompute, "%s",
			choices.at[k].plan.cause);
	end(&m);
}

/* Two equal stages whose steps overlap take as long as one virtual node after another on the slower of them;
 * two pipelines drain each step, and each plan says which. */
static void an_order_of_delayed_updates_that_the_job_names_is_taken(void **state)
{
	static const struct { const char *more, *schedule; uint32_t ndevices; } rows[] = {
		{ "optim: {update: 2bw}\nparallel: {mode: auto, schedule: 2bw}\n", "2bw", 2 },
		{ "optim: {update: 2bw}\nparallel: {mode: auto, schedule: 2bw}\n", "2bw", 4 },
		{ "optim: {update: 2bw}\nparallel: {mode: auto, schedule: 1f1b}\n", "1f1b", 2 },
		{ "optim: {update: vsync, cuts: 'auto:2'}\nparallel: {mode: auto, schedule: vsync}\n",
			"vsync", 2 },
		{ "optim: {update: stash, clip: 0, cuts: 'auto:2'}\n"
			"parallel: {mode: auto, schedule: stash}\n", "stash", 2 } };
	double took_ns[5] = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i += SANITIZED ? 2 : 1) {
		const bool delayed = strcmp(rows[i].schedule, "1f1b") != 0;
		struct made m;
		begin(&m, rows[i].more, rows[i].ndevices, 0);
		const struct hd_plan_choices choices = choose(&m);
		for (uint32_t k = 0; k < choices.n; k++) {
			const struct hd_plan_choice *c = &choices.at[k];
			CHECK(!strcmp(c->stages.schedule, rows[i].schedule) &&
				c->plan.overlap == (delayed && c->stages.d == 1),
				"row %zu: %s, overlaps: %d", i, c->plan.cause, c->plan.overlap);
			CHECK(!delayed || strstr(c->plan.cause, c->plan.overlap ? "with steps that overlap" :
				"drained each step (there are several pipelines)"), "row %zu: %s", i,
				c->plan.cause);
		}
		took_ns[i] = choices.at[0].forecast.step_ns;
		end(&m);
	}
	CHECK(took_ns[0] < took_ns[2] * 0.95, "%g ns with steps that overlap, %g drained", took_ns[0],
		took_ns[2]);
}

static const struct hd_plan_choice *first_that(const struct hd_plan_choices *c, bool overlaps,
	bool has_stages)
{
	for (uint32_t k = 0; k < c->n; k++)
		if (c->at[k].plan.overlap == overlaps && (c->at[k].stages.p > 0) == has_stages)
			return &c->at[k];
	return NULL;
}

static uint32_t times_that(const struct hd_plan_choices *c, const struct hd_plan_choice *like)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < c->n; k++)
		n += c->at[k].plan.overlap && !memcmp(c->at[k].plan.first, like->plan.first,
			like->plan.nstages * sizeof *like->plan.first);
	return n;
}

/* Where the key leaves the order open, steps that overlap are candidates of one pipeline of all devices, and
 * the fastest with stages: no rank waits. A pair of equal stages takes 2 V turns, drained 2 V + 1. */
static void steps_that_overlap_are_found(void **state)
{
	static const struct { const char *more, *schedule, *why; uint32_t ndevices; } rows[] = {
		{ "optim: {update: 2bw}\nparallel: {mode: auto}\n", "2bw", NULL, 2 },
		{ "optim: {update: 2bw}\nparallel: {mode: auto, chunks: 1, replicas: 1}\n", "2bw", NULL, 2 },
		{ "optim: {update: vsync, cuts: 'auto:2'}\nparallel: {mode: auto}\n", "vsync", NULL, 2 },
		{ "optim: {update: stash, clip: 0, cuts: 'auto:2'}\nparallel: {mode: auto}\n", "stash",
			NULL, 2 },
		{ "optim: {update: flush}\nparallel: {mode: auto}\n", NULL, "", 2 },
		{ "optim: {update: stash, cuts: 'auto:2'}\nparallel: {mode: auto}\n", NULL, "optim.clip", 2 },
		{ "optim: {update: 2bw}\nparallel: {mode: auto, chunks: 2}\n", NULL, "or chunks", 2 },
		{ "optim: {update: 2bw}\nparallel: {mode: auto, schedule: 1f1b}\n", NULL, "another order", 2 },
		{ "optim: {update: 2bw}\nparallel: {mode: auto, replicas: 2}\n", NULL, "several pipelines", 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i += SANITIZED ? 3 : 1) {
		struct made m;
		begin(&m, rows[i].more, rows[i].ndevices, 0);
		const struct hd_plan_choices choices = choose(&m);
		const struct hd_plan_choice *never = first_that(&choices, true, true),
			*drained = first_that(&choices, false, true);
		CHECK(!never == !rows[i].schedule && drained, "row %zu: %s", i, choices.why.at);
		CHECK(!rows[i].why ? !strstr(choices.why.at, "drained, though") : !*rows[i].why ?
			!strstr(choices.why.at, "drained") : strstr(choices.why.at, rows[i].why) != NULL,
			"row %zu: %s", i, choices.why.at);
		if (never) {
			struct hd_text name;
			assert_int_equal(times_that(&choices, never), 1);
			hd_text_init(&name, &m.job.rig.arena);
			hd_plan_choice_name(never, &name);
			CHECK(!strcmp(never->stages.schedule, rows[i].schedule) && never->stages.d == 1 &&
				never->stages.p == rows[i].ndevices && strstr(name.at, ", steps overlap") &&
				never->forecast.step_ns < drained->forecast.step_ns, "row %zu: %s: %g ns, "
				"drained %g", i, name.at, never->forecast.step_ns, drained->forecast.step_ns);
		}
		end(&m);
	}
}

/* 1f1b on two equal stages: m + 1 times what both ways take. */
static void a_forecast_is_the_closed_form_where_there_is_one(void **state)
{
	const struct hd_run_stages shape = { .schedule = "1f1b", .p = 2, .v = 1, .d = 1 };
	struct made m;

	(void)state;
	begin(&m, NULL, 2, 0);
	struct hd_profile *p = &m.job.costs->line.profile;
	for (uint32_t i = 0; i < p->nnodes; i++)
		p->node[i].f.p50_ns = p->node[i].i.p50_ns = p->node[i].w.p50_ns = i == 3 ||
			i == p->nnodes - 2 ?
			1000000 : 0;
	CHECK(hd_cut_sums_make(&m.job.costs->sums, p, &m.job.costs->cuts, &m.job.rig.arena,
		&m.job.diag) == HD_OK, "%s", m.job.diag.text);
	m.ask.shape = &shape;
	struct hd_plan_choices choices = choose(&m);
	const struct hd_forecast *f = &choices.at[0].forecast;
	CHECK(fabs(f->step_ns - 27e6) < 1e3, "%g", f->step_ns);
	CHECK(f->nrows == 5, "%u rows", f->nrows);
	for (uint32_t i = 0; i < f->nrows; i++) {
		double want = f->row[i].op == HD_INS_F ? 1e6 : f->row[i].op == HD_INS_B ? 2e6 : 0;
		CHECK(fabs(f->row[i].predicted_ns - want) < 1 && f->row[i].n == (want > 0 ? 8u : 2u) &&
			f->row[i].measured_ns == 0, "row %u: %g", i, f->row[i].predicted_ns);
	}
	end(&m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(candidates_of_ranks_of_several_devices),
		cmocka_unit_test(candidates_are_plans_that_run_on_all_devices),
		cmocka_unit_test(the_width_is_found),
		cmocka_unit_test(groups_of_a_rank_are_charged_their_link),
		cmocka_unit_test(data_parallel_is_taken_unless_stages_save_more_than_the_margin),
		cmocka_unit_test(devices_of_a_rank_shorten_its_stages),
		cmocka_unit_test(slower_devices_get_shorter_stages_and_fewer_virtual_nodes),
		cmocka_unit_test(on_one_core_stages_save_no_time),
		cmocka_unit_test(activations_in_a_file_take_the_time_of_their_bytes),
		cmocka_unit_test(a_shape_that_is_given_is_kept),
		cmocka_unit_test(stages_compute_again_alike_where_that_is_asked_for),
		cmocka_unit_test(plans_that_compute_again_are_found_alone),
		cmocka_unit_test(an_order_of_delayed_updates_that_the_job_names_is_taken),
		cmocka_unit_test(steps_that_overlap_are_found),
		cmocka_unit_test(a_forecast_is_the_closed_form_where_there_is_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
