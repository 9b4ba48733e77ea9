/* PTD-P's formulas against the figures of its papers, the model against published runs that it does not know,
 * and the planner against all splits there are. Rows and figures: section 6 of the plan documents gives the
 * architectures and, of 1.7B, 7.5B, 39.1B, 145.6B, 529.6B and 1008B, throughput and split; the other rows
 * are of table 1 of the SC 2021 paper. */
#include "planner/ptdp_plan.h"

#include <math.h>
#include <string.h>

#include "pipeline/generate.h"
#include "pipeline/simulate.h"
#include "tests/planning.h"
#include "tests/check.h"

static bool near(double a, double b, double rel) { return fabs(a - b) <= rel * fabs(b); }

/* heads, H, l, P in 1e9, TFLOP/s a device, devices: typed from the documents, not from the code's table. */
static const struct { double a, h, l, params, tflop, n, batch; } published[] = {
	{ 24, 2304, 24, 1.7, 137, 32, 512 },        { 32, 3072, 30, 3.6, 138, 64, 512 },       { 32, 4096, 36, 7.5, 142, 128, 512 },
	{ 48, 6144, 40, 18.4, 135, 256, 1024 },     { 64, 8192, 48, 39.1, 138, 512, 1536 },    { 80, 10240, 60, 76.1, 140, 1024, 1792 },
	{ 96, 12288, 80, 145.6, 148, 1536, 2304 },  { 128, 16384, 96, 310.1, 155, 1920, 2160 }, { 128, 20480, 105, 529.6, 163, 2520, 2520 },
	{ 160, 25600, 128, 1008.0, 163, 3072, 3072 },
};

static void parameters_of_the_ten_published_models(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HD_PTDP_RUNS; i++) {
		const struct hd_ptdp_run *run = &hd_ptdp_runs[i];
		CHECK(run->model.heads == published[i].a && run->model.hidden == published[i].h &&
			run->model.layers == published[i].l, "row %u", i);
		CHECK(run->tflop_per_s == published[i].tflop && run->ndevices == published[i].n &&
			run->batch == published[i].batch, "row %u", i);
		CHECK(run->split.t * run->split.p * run->split.d == run->ndevices, "row %u", i);
		CHECK(fabs(hd_ptdp_params(&run->model) / 1e9 - published[i].params) <= .06, "%s: %.3f",
			run->name, hd_ptdp_params(&run->model) / 1e9);
	}
}

/* Layer by layer: four square products of H, feed-forward two of 4 H^2, biases and norms; tables. */
static void parameters_counted_one_by_one(void **state)
{
	const struct hd_ptdp_model model = { 3, 8, 2, 11, 5 };
	double layer = 4 * 8 * 8 + 4 * 8 + 2 * 4 * 8 * 8 + 5 * 8 + 2 * 2 * 8;

	(void)state;
	CHECK(near(hd_ptdp_layer_params(&model), layer, 1e-12), "%g is not %g", hd_ptdp_layer_params(&model),
		layer);
	CHECK(near(hd_ptdp_params(&model), 3 * layer + (11 + 5) * 8, 1e-12), "%g", hd_ptdp_params(&model));
}

/* Products counted one by one: 2 operations for each multiplication, backward twice forward, recomputation
 * once more (of the layers, not of the logits). */
static void operations_counted_one_by_one(void **state)
{
	for (uint32_t i = 0; i < HD_PTDP_RUNS; i++) {
		const struct hd_ptdp_model *m = &hd_ptdp_runs[i].model;
		double h = m->hidden, q = m->seq, batch = hd_ptdp_runs[i].batch;
		double layer = 2 * q * h * 3 * h + 2 * q * q * h + 2 * q * q * h + 2 * q * h * h + 2 * 2 * q *
			h * 4 * h, logits = 2 * q * h * m->vocab;
		double kept = batch * 3 * (m->layers * layer + logits),
			again = kept + batch * m->layers * layer;
		CHECK(near(hd_ptdp_flop(m, batch, HD_PTDP_NONE), kept, 1e-12), "row %u", i);
		CHECK(near(hd_ptdp_flop(m, batch, HD_PTDP_FULL), again, 1e-12), "row %u", i);
	}
	(void)state;
}

static void days_of_training_as_published(void **state)
{
	(void)state;
	CHECK(fabs(hd_ptdp_days(300e9, 175e9, 1024, 140e12) - 33.9) < .05, "%g",
		hd_ptdp_days(300e9, 175e9, 1024, 140e12));
	CHECK(fabs(hd_ptdp_days(450e9, 1008e9, 3072, 163e12) - 83.9) < .05, "%g",
		hd_ptdp_days(450e9, 1008e9, 3072, 163e12));
}

/* Throughput of a device times devices is the petaflop of all that the same table prints, to its rounding.
 * The formula's operations are those 8 a parameter and token of the training time, and what attention
 * adds: q/(6 H) of the layers. */
static void throughput_times_devices_is_the_published_sum(void **state)
{
	static const double petaflop[HD_PTDP_RUNS] = { 4.4, 8.8, 18.2, 34.6, 70.8, 143.8, 227.1, 297.4, 410.2,
		502.0 };

	(void)state;
	for (uint32_t i = 0; i < HD_PTDP_RUNS; i++) {
		const struct hd_ptdp_run *run = &hd_ptdp_runs[i];
		double all = run->tflop_per_s * run->ndevices / 1e3,
			tokens = (double)run->batch * run->model.seq;
		CHECK(near(all, petaflop[i], .012), "%s: %g", run->name, all);
		double ratio = hd_ptdp_flop(&run->model, run->batch,
			HD_PTDP_FULL) / (8 * tokens * hd_ptdp_params(&run->model));
		CHECK(ratio < 1 + 2048. / (6. * run->model.hidden) && ratio > 1, "%s: %g", run->name, ratio);
	}
}

static void state_and_activation_bytes(void **state)
{
	const struct hd_ptdp_model m = { 80, 12288, 96, 51200, 2048 };
	double whole = 2048. * 12288, scores = 5. * 96 * 2048 / 12288;

	(void)state;
	CHECK(hd_ptdp_state_bytes(HD_PTDP_F32_ADAM, 1, 1) == 16 &&
		hd_ptdp_state_bytes(HD_PTDP_F32_ADAM, 3, 1) == 24, "f32");
	CHECK(hd_ptdp_state_bytes(HD_PTDP_MIXED_ADAM, 1, 1) == 18 &&
		hd_ptdp_state_bytes(HD_PTDP_MIXED_ADAM, 1, 4) == 9, "mixed");
	CHECK(hd_ptdp_state_bytes(HD_PTDP_F32_MOMENTUM, 1, 1) == 12, "momentum");
	CHECK(near(hd_ptdp_activation_bytes(&m, 1, 1, false, HD_PTDP_NONE, 2), whole * (34 + scores), 1e-12),
		"plain");
	CHECK(near(hd_ptdp_activation_bytes(&m, 1, 8, false, HD_PTDP_NONE, 2),
		whole * (10 + 24 / 8. + scores / 8), 1e-12), "tensor");
	CHECK(near(hd_ptdp_activation_bytes(&m, 1, 8, true, HD_PTDP_NONE, 2), whole / 8 * (34 + scores),
		1e-12), "sequence");
	CHECK(near(hd_ptdp_activation_bytes(&m, 1, 8, true, HD_PTDP_SELECTIVE, 2), whole * 34 / 8, 1e-12),
		"selective");
	CHECK(near(hd_ptdp_activation_bytes(&m, 1, 1, false, HD_PTDP_FULL, 2), 2 * whole, 1e-12), "full");
	CHECK(near(hd_ptdp_activation_bytes(&m, 2, 1, false, HD_PTDP_NONE, 4),
		2 * whole * (66 + scores / 5 * 9), 1e-12), "f32, masks as before");
	CHECK(hd_ptdp_checkpoints(96, 2, 48) == 48 && hd_ptdp_checkpoints(4, 1, 100) == 4 &&
		hd_ptdp_checkpoints(9, 100, 1) == 1, "checkpoints");
}

static void volumes_and_bubble(void **state)
{
	const struct hd_ptdp_model m = { 8, 64, 8, 100, 16 };
	const struct hd_ptdp_split s = { .t = 4, .p = 2, .d = 3, .v = 2, .b = 5 };
	struct hd_ptdp_volume v = hd_ptdp_volume(&m, &s, 6, false);

	(void)state;
	CHECK(near(v.tensor, 4. * 6 * 8 * 5 * 16 * 64 * 3 / 4, 1e-12), "tensor %g", v.tensor);
	CHECK(near(v.pipeline, 2. * 6 * 5 * 16 * 64, 1e-12), "pipeline %g", v.pipeline);
	CHECK(near(hd_ptdp_volume(&m, &s, 6, true).pipeline, v.pipeline / 4, 1e-12), "scattered");
	CHECK(near(v.data, 2 * 2 / 3. * hd_ptdp_params(&m) / 8, 1e-12), "data %g", v.data);
	CHECK(hd_ptdp_slots(6, 4, 1) == 9 && hd_ptdp_slots(6, 4, 2) == 7.5 && hd_ptdp_bubble(6, 4, 1) == .5 &&
		hd_ptdp_bubble(6, 4, 2) == .25, "slots");
}

static double mean_error(const uint32_t rows[3], double *worst)
{
	struct hd_ptdp_shares shares = hd_ptdp_fit(rows, 3, hd_ptdp_devices);
	double sum = 0;

	*worst = 0;
	for (uint32_t i = 0; i < HD_PTDP_RUNS; i++)
		if (i != rows[0] && i != rows[1] && i != rows[2]) {
			double error = fabs(hd_ptdp_error(&hd_ptdp_runs[i], &shares, hd_ptdp_devices));
			sum += error;
			*worst = error > *worst ? error : *worst;
		}
	return sum / (HD_PTDP_RUNS - 3);
}

static void three_rows_tell_the_other_seven(void **state)
{
	double worst, mean = mean_error(hd_ptdp_fit_rows, &worst);

	(void)state;
	CHECK(mean < .05 && worst < .08, "mean %.4f, worst %.4f", mean, worst);
	for (uint32_t a = 0; a < HD_PTDP_RUNS; a++)
		for (uint32_t b = a + 1; b < HD_PTDP_RUNS; b++)
			for (uint32_t c = b + 1; c < HD_PTDP_RUNS; c++) {
				const uint32_t rows[3] = { a, b, c };
				mean = mean_error(rows, &worst);
				CHECK(mean < .05, "%u %u %u: mean %.4f, worst %.4f", a, b, c, mean, worst);
			}
}

static void the_stored_shares_are_the_fitted_ones(void **state)
{
	struct hd_ptdp_shares again = hd_ptdp_fit(hd_ptdp_fit_rows, 3, hd_ptdp_devices);

	(void)state;
	CHECK(near(again.products, hd_ptdp_fitted.products, 1e-12) &&
		near(again.memory, hd_ptdp_fitted.memory, 1e-12)
		&& near(again.network, hd_ptdp_fitted.network, 1e-12), "%.17g %.17g %.17g", again.products,
			again.memory, again.network);
	CHECK(again.products < 1 && again.memory < 1 && again.network < 1, "a share is below 1");
}

static struct hd_ptdp_ask ask_of(const struct hd_ptdp_run *run)
{
	return (struct hd_ptdp_ask){ .model = run->model, .ndevices = run->ndevices, .batch = run->batch,
		.site = { hd_ptdp_devices, hd_ptdp_fitted, HD_PTDP_MIXED_ADAM, 0, false } };
}

static void published_runs_fit_and_the_search_is_no_slower(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HD_PTDP_RUNS; i++) {
		const struct hd_ptdp_run *run = &hd_ptdp_runs[i];
		struct hd_ptdp_ask ask = ask_of(run);
		struct hd_ptdp_plan theirs, ours, again;
		struct hd_diag diag = { "" };
		CHECK(hd_ptdp_judge(&theirs, &ask, &run->split, &arena, &diag) == HD_OK, "%s: %s", run->name,
			diag.text);
		CHECK(theirs.cost.need.total <= hd_ptdp_devices[0].memory, "%s needs %lld", run->name,
			(long long)theirs.cost.need.total);
		CHECK(hd_ptdp_search(&ours, &ask, &arena, &diag) == HD_OK, "%s: %s", run->name, diag.text);
		CHECK(ours.step_ps <= theirs.step_ps, "%s: %lld after %lld", run->name,
			(long long)ours.step_ps, (long long)theirs.step_ps);
		CHECK(ours.cost.need.total <= hd_ptdp_devices[0].memory, "%s", run->name);
		CHECK(hd_ptdp_search(&again, &ask, &arena, &diag) == HD_OK &&
			!memcmp(&again.split, &ours.split, sizeof ours.split)
			&& again.step_ps == ours.step_ps && again.nchoices == ours.nchoices,
				"%s: another plan the second time", run->name);
		for (uint32_t c = 0; c < ours.nchoices; c++)
			CHECK(!strcmp(ours.choice[c].why, again.choice[c].why) && *ours.choice[c].why,
				"%s: %s", run->name, ours.choice[c].why);
	}
}

/* The bubble of the formula is the simulator's to the picosecond a rank's share loses; here both are asked
 * again. */
static void the_step_is_what_the_simulator_says(void **state)
{
	struct hd_ptdp_ask ask = ask_of(&hd_ptdp_runs[7]);
	struct hd_ptdp_split split = hd_ptdp_runs[7].split;
	struct hd_schedule schedule = { 0 };
	struct hd_ptdp_plan plan;
	struct hd_diag diag = { "" };
	struct hd_sim sim;

	(void)state;
	CHECK(hd_ptdp_judge(&plan, &ask, &split, &arena, &diag) == HD_OK && plan.simulated, "%s", diag.text);
	CHECK(!strcmp(plan.schedule, "interleaved") && plan.cost.m == 144, "%s, m %u", plan.schedule,
		plan.cost.m);
	const struct hd_schedule_ask how = { .name = "interleaved", .p = 16, .m = 144, .v = 2 };
	const struct hd_sim_ask costs = { .costs = { .f = plan.cost.forward_ps,
		.i = plan.cost.backward_ps } };
	CHECK(hd_schedule_make(&schedule, &how, &arena, &diag) == HD_OK &&
		hd_simulate(&sim, &schedule, &costs, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(plan.step_ps - plan.cost.after_ps == sim.makespan / sim.per_ps, "%lld",
		(long long)plan.step_ps);
	CHECK(near((double)plan.step_ps, (double)plan.cost.step_ps, 1e-9), "%lld is not %lld",
		(long long)plan.step_ps, (long long)plan.cost.step_ps);
}

/* The least step of all chunks and recomputations of a split that fits, or `best`. */
static int64_t fastest(const struct hd_ptdp_ask *ask, struct hd_ptdp_split s, int64_t limit, int64_t best)
{
	for (s.v = 1; s.v <= 4; s.v++)
		for (uint32_t r = 0; r < HD_NPTDP_RECOMPUTES; r++) {
			struct hd_ptdp_plan one;
			struct hd_diag no = { "" };
			s.recompute = (enum hd_ptdp_recompute)r;
			if (hd_ptdp_judge(&one, ask, &s, &arena, &no) == HD_OK &&
				one.cost.need.total <= limit && one.step_ps < best)
				best = one.step_ps;
		}
	return best;
}

/* All splits of a small problem, by nested loops that share nothing with the search but the cost of one. */
static void the_search_finds_the_fastest_of_all(void **state)
{
	static const struct { struct hd_ptdp_model model; uint32_t n, batch; int64_t memory; } cases[] = {
		{ { 12, 1024, 16, 50304, 512 }, 12, 24, 0 }, { { 12, 1024, 16, 50304, 512 }, 12, 23, 2000000000 }, { { 7, 768, 12, 1000, 128 }, 16, 17, 300000000 },
		{ { 24, 2048, 16, 51200, 1024 }, 32, 48, 4000000000 }, { { 5, 512, 8, 512, 64 }, 1, 3, 0 }, { { 12, 1024, 1, 50304, 512 }, 8, 8, 0 },
		{ { 12, 1024, 1, 100, 512 }, 8, 3, 700000000 },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_ptdp_ask ask = { cases[i].model, cases[i].n, cases[i].batch, 0,
			{ hd_ptdp_devices, hd_ptdp_fitted, HD_PTDP_MIXED_ADAM, cases[i].memory, false } };
		int64_t limit = cases[i].memory ? cases[i].memory : hd_ptdp_devices[0].memory,
			best = INT64_MAX;
		struct hd_ptdp_plan plan;
		struct hd_diag diag = { "" };
		for (uint32_t t = 1; t <= 8; t *= 2)
			for (uint32_t p = 1; p <= cases[i].model.layers; p++)
				for (uint32_t d = 1; d <= cases[i].batch; d++)
					for (uint32_t b = 1; b <= cases[i].batch; b *= 2)
						best = fastest(&ask,
							(struct hd_ptdp_split){ .t = t, .p = p, .d = d,
							.b = b }, limit, best);
		CHECK(hd_ptdp_search(&plan, &ask, &arena, &diag) == HD_OK, "case %u: %s", i, diag.text);
		CHECK(plan.step_ps == best, "case %u: %lld, the fastest takes %lld", i,
			(long long)plan.step_ps, (long long)best);
	}
}

/* Figures of another paper (arXiv 2205.05198, its 530B model on 2240 devices) that no fit has seen: 42.1 % of
 * the peak with everything repeated, 54.2 % with split sequences and selective repetition, which alone
 * makes that fit. */
static void utilization_of_runs_that_no_fit_has_seen(void **state)
{
	static const struct { enum hd_ptdp_recompute recompute; bool sequence; double published; } runs[] = {
		{ HD_PTDP_FULL, false, .421 }, { HD_PTDP_SELECTIVE, true, .542 },
	};
	struct hd_ptdp_ask ask = ask_of(&hd_ptdp_runs[8]);
	struct hd_ptdp_plan plan;
	struct hd_diag diag = { "" };

	(void)state;
	ask.ndevices = ask.batch = 2240;
	for (int i = 0; i < 2; i++) {
		const struct hd_ptdp_split split = { .t = 8, .p = 35, .d = 8, .v = 3, .b = 1,
			.recompute = runs[i].recompute };
		ask.site.sequence = runs[i].sequence;
		CHECK(hd_ptdp_judge(&plan, &ask, &split, &arena, &diag) == HD_OK, "%s", diag.text);
		double share = hd_ptdp_utilization(&ask.model, &split, ask.batch, plan.step_ps,
			ask.site.device);
		CHECK(near(share, runs[i].published, .05), "%.4f, published %.3f", share, runs[i].published);
		CHECK(plan.cost.need.total <= hd_ptdp_devices[0].memory, "%lld bytes",
			(long long)plan.cost.need.total);
	}
	const struct hd_ptdp_split whole = { .t = 8, .p = 35, .d = 8, .v = 3, .b = 1,
		.recompute = HD_PTDP_SELECTIVE };
	ask.site.sequence = false;
	double split_s = plan.cost.memory * (double)plan.cost.step_ps / 1e12;
	CHECK(hd_ptdp_judge(&plan, &ask, &whole, &arena, &diag) == HD_OK &&
		plan.cost.need.total > hd_ptdp_devices[0].memory, "it fits without");
	/* seven eighths of 11 passes over [q, H] of two bytes, three times in 3 layers and 280 virtual
	 * nodes */
	double less = 280 * 3 * 3 * 2 * 2048. * 20480 * 11 * 7 / 8 / (2039e9 * ask.site.shares.memory);
	CHECK(near(plan.cost.memory * (double)plan.cost.step_ps / 1e12 - split_s, less, 1e-6),
		"%g s less, not %g",
		plan.cost.memory * (double)plan.cost.step_ps / 1e12 - split_s, less);
	ask.model.seq = 2044;
	ask.site.sequence = true;
	CHECK(hd_ptdp_judge(&plan, &ask, &whole, &arena, &diag) == HD_E_INVAL &&
		strstr(diag.text, "a sequence of 2044 cannot be split in 8 shards"),
		"%s", diag.text);
	CHECK(hd_ptdp_search(&plan, &ask, &arena, &diag) == HD_OK && plan.split.t <= 4, "t=%u", plan.split.t);
}

/* What the schedule holds at most, by the simulator; stages of equal layers, without tables and logits to
 * speak of. */
/* On one device the products' time is the formula's operations at the share of the peak; selective repeats
 * scores alone. */
static void products_take_the_operations_of_the_formula(void **state)
{
	const struct hd_ptdp_model *m = &hd_ptdp_runs[0].model;
	const struct hd_ptdp_site site = { hd_ptdp_devices, hd_ptdp_fitted, HD_PTDP_MIXED_ADAM, 0, false };

	(void)state;
	for (uint32_t r = 0; r < HD_NPTDP_RECOMPUTES; r++) {
		const struct hd_ptdp_split split = { 1, 1, 1, 1, 2, (enum hd_ptdp_recompute)r };
		struct hd_ptdp_cost cost = hd_ptdp_cost(m, &split, 8, &site);
		double done = cost.products * (double)cost.step_ps / 1e12 * 312e12 * site.shares.products,
			flop = hd_ptdp_flop(m, 8, split.recompute);
		if (split.recompute == HD_PTDP_SELECTIVE)
			flop += 8. * m->layers * 4 * m->seq * m->seq * m->hidden;
		CHECK(near(done, flop, 1e-9), "%s: %g is not %g", hd_ptdp_recompute_names[r], done, flop);
		CHECK(near(cost.products + cost.memory + cost.tensor + cost.pipeline + cost.bubble +
			cost.data + cost.update, 1, 1e-9), "shares");
	}
}

static void activations_in_flight_are_the_schedules(void **state)
{
	static const struct { uint32_t p, v, m; } cases[] = { { 4, 1, 8 }, { 4, 1, 2 }, { 4, 2, 8 },
		{ 4, 3, 12 }, { 2, 2, 4 }, { 1, 1, 5 } };
	const struct hd_ptdp_model model = { 24, 1024, 8, 1, 512 };

	(void)state;
	for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_ptdp_split split = { .t = 1, .p = cases[i].p, .d = 1, .v = cases[i].v, .b = 1,
			.recompute = HD_PTDP_NONE };
		const struct hd_schedule_ask how = { .name = cases[i].v > 1 ? "interleaved" : "1f1b",
			.p = cases[i].p, .m = cases[i].m, .v = cases[i].v };
		const struct hd_sim_ask ask = { .costs = HD_UNIT_COSTS };
		struct hd_schedule schedule = { 0 };
		struct hd_diag diag = { "" };
		struct hd_sim sim;
		CHECK(hd_schedule_make(&schedule, &how, &arena, &diag) == HD_OK &&
			hd_simulate(&sim, &schedule, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
		double rank = 24. / cases[i].p * hd_ptdp_activation_bytes(&model, 1, 1, false, HD_PTDP_NONE,
			2), held = rank * sim.rank[0].peak / sim.per_rank;
		struct hd_ptdp_memory need = hd_ptdp_need(&model, &split, cases[i].m,
			&(struct hd_ptdp_site){ .state = HD_PTDP_MIXED_ADAM });
		CHECK(near((double)need.activations, held, 1e-9), "p=%u v=%u m=%u: %lld is not %.0f",
			cases[i].p, cases[i].v, cases[i].m,
			(long long)need.activations, held);
	}
}

/* Whatever a device holds: the answer fits, or there is none. */
static void rules_never_choose_what_does_not_fit(void **state)
{
	struct hd_ptdp_ask ask = ask_of(&hd_ptdp_runs[6]);
	uint32_t chunked = 0, single = 0;

	(void)state;
	for (int64_t memory = 1000000000; memory < 200000000000; memory += 500000000) {
		struct hd_diag diag = { "" };
		struct hd_ptdp_plan plan;
		ask.site.memory = memory;
		enum hd_err err = hd_ptdp_rules(&plan, &ask, &arena, &diag);
		CHECK(err == HD_E_INVAL || plan.cost.need.total <= memory, "%lld bytes: needs %lld",
			(long long)memory, (long long)plan.cost.need.total);
		CHECK(err || plan.split.v == 1 || plan.cost.m >= plan.split.p, "v=%u, m=%u, p=%u",
			plan.split.v, plan.cost.m, plan.split.p);
		chunked += !err && plan.split.v > 1;
		single += !err && plan.split.v == 1 && plan.split.p > 1 && 80 % (2 * plan.split.p) == 0;
	}
	CHECK(chunked && single, "%u plans with chunks, %u where they did not fit", chunked, single);
	ask = ask_of(&hd_ptdp_runs[6]);
	ask.batch = 3;
	ask.ndevices = 64;
	struct hd_ptdp_plan plan;
	struct hd_diag diag = { "" };
	CHECK(hd_ptdp_rules(&plan, &ask, &arena, &diag) == HD_OK && plan.split.p > 3 && plan.split.v == 1 &&
		plan.cost.m == 3, "%s", diag.text);
	CHECK(strstr(plan.choice[3].why, "m = 3 is less than p = "), "%s", plan.choice[3].why);
}

static void rules_take_t_first_and_no_more_than_they_need(void **state)
{
	struct hd_ptdp_ask ask = ask_of(&hd_ptdp_runs[9]);
	struct hd_ptdp_plan plan, less;
	struct hd_diag diag = { "" };

	(void)state;
	CHECK(hd_ptdp_rules(&plan, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(plan.split.t == 8 && plan.split.p > 1 && plan.split.d == 3072 / (8 * plan.split.p),
		"t=%u p=%u d=%u", plan.split.t, plan.split.p, plan.split.d);
	CHECK(plan.idle == 3072 - 8 * plan.split.p * plan.split.d &&
		plan.cost.need.total <= hd_ptdp_devices[0].memory, "%u idle", plan.idle);
	struct hd_ptdp_split shorter = plan.split;
	shorter.p--;
	shorter.v = 1;
	shorter.recompute = HD_PTDP_FULL;
	CHECK(hd_ptdp_judge(&less, &ask, &shorter, &arena, &diag) == HD_OK &&
		less.cost.need.total > hd_ptdp_devices[0].memory, "p=%u fits too", shorter.p);
	CHECK(plan.nchoices == 6 && !strncmp(plan.choice[0].why, "a server has 8 devices and it needs ", 36),
		"%s", plan.choice[0].why);
	ask = ask_of(&hd_ptdp_runs[0]);
	CHECK(hd_ptdp_rules(&plan, &ask, &arena, &diag) == HD_OK && plan.split.t == 1 && plan.split.p == 1 &&
		plan.split.d == 32
		&& plan.split.recompute == HD_PTDP_NONE, "small");
	ask = ask_of(&hd_ptdp_runs[6]);              /* 80 layers, 5 ranks: chunks of 4 */
	CHECK(hd_ptdp_rules(&plan, &ask, &arena, &diag) == HD_OK && plan.split.p == 5 && plan.split.v == 4,
		"p=%u v=%u", plan.split.p, plan.split.v);
	CHECK(plan.more == 2304 % 38, "%u pipelines have a sample more", plan.more);
}

static void what_cannot_be_is_refused_with_the_least_that_would_do(void **state)
{
	struct hd_ptdp_ask ask = ask_of(&hd_ptdp_runs[9]);
	struct hd_ptdp_plan plan;
	struct hd_diag diag = { "" };
	const struct { struct hd_ptdp_split split; const char *says; } bad[] = {
		{ { 8, 64, 7, 1, 1, HD_PTDP_FULL }, "takes 3584 devices; there are 3072" },
		{ { 3, 1, 1, 1, 1, HD_PTDP_FULL }, "heads 160 cannot be split in 3 shards" },
		{ { 16, 1, 1, 1, 1, HD_PTDP_FULL }, "inside a server, which has 8" }, { { 8, 129, 1, 1, 1, HD_PTDP_FULL }, "128 layers make no 129 stages" },
		{ { 5, 1, 1, 1, 1, HD_PTDP_FULL }, "t=5 does not divide the 8 devices of a server" },
		{ { 8, 64, 6, 3, 1, HD_PTDP_FULL }, "128 layers make no 192 stages" }, { { 8, 4, 6, 3, 1, HD_PTDP_FULL }, "p v that divides the 128 layers" },
		{ { 8, 4, 6, 1, 600, HD_PTDP_FULL }, "has not that many" }, { { 8, 4, 0, 1, 1, HD_PTDP_FULL }, "1 or more" },
		{ { 1, 64, 48, 2, 1, HD_PTDP_FULL }, NULL }, { { 1, 64, 48, 2, 2, HD_PTDP_FULL }, "v=2 needs m >= p; m = 32, p = 64" },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag why = { "" };
		enum hd_err err = hd_ptdp_judge(&plan, &ask, &bad[i].split, &arena, &why);
		CHECK(bad[i].says ? err == HD_E_INVAL && strstr(why.text, bad[i].says) : err == HD_OK,
			"%u: %s", i, why.text);
	}
	ask.ndevices = 64;
	for (int rules = 0; rules < 2; rules++) {
		diag = (struct hd_diag){ "" };
		CHECK((rules ? hd_ptdp_rules : hd_ptdp_search)(&plan, &ask, &arena, &diag) == HD_E_INVAL
			&& strstr(diag.text, "smallest need is 301")
			&& strstr(diag.text,
				"at t=8 p=8 d=1 b=1, recomputation full; a device has 80000000000"), "%s",
				diag.text);
	}
	ask.model.heads = 150;
	diag = (struct hd_diag){ "" };
	CHECK(hd_ptdp_search(&plan, &ask, &arena, &diag) == HD_E_INVAL && strstr(diag.text,
		"150 heads do not divide a hidden width of 25600"), "%s", diag.text);
	ask.model.heads = 0;
	diag = (struct hd_diag){ "" };
	CHECK(hd_ptdp_search(&plan, &ask, &arena, &diag) == HD_E_INVAL &&
		strstr(diag.text, "heads: 0 is not from 1"), "%s", diag.text);
}

static void what_takes_longer_than_is_counted_is_refused(void **state)
{
	/* one device, a batch of 65536 of a model whose step takes 2.8e7 s */
	struct hd_ptdp_ask ask = { .model = { 1024, 65536, 64, 1048576, 65536 }, .ndevices = 1,
		.batch = 65536, .b = 65536,
		.site = { hd_ptdp_devices, hd_ptdp_fitted, HD_PTDP_MIXED_ADAM, INT64_C(1) << 60, false } };
	const struct hd_ptdp_split one = { 1, 1, 1, 1, 65536, HD_PTDP_FULL };
	struct hd_ptdp_plan plan;

	(void)state;
	for (int way = 0; way < 3; way++) {
		struct hd_diag diag = { "" };
		enum hd_err err = way == 0 ? hd_ptdp_search(&plan, &ask, &arena, &diag) : way == 1 ?
			hd_ptdp_rules(&plan, &ask, &arena, &diag)
			: hd_ptdp_judge(&plan, &ask, &one, &arena, &diag);
		CHECK(err == HD_E_INVAL && strstr(diag.text, "a step takes more than 2^62 ps"), "%d: %s", way,
			diag.text);
	}
	struct hd_ptdp_cost cost = hd_ptdp_cost(&ask.model, &one, ask.batch, &ask.site);
	CHECK(cost.step_ps == HD_PTDP_MOST && cost.need.total > 0, "%lld ps", (long long)cost.step_ps);
	ask.site.memory = INT64_C(9000000000000000000);
	struct hd_diag diag = { "" };
	CHECK(hd_ptdp_search(&plan, &ask, &arena, &diag) == HD_E_INVAL &&
		strstr(diag.text, "devices of less than 2^62"), "%s", diag.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_of_the_ten_published_models),
		cmocka_unit_test(parameters_counted_one_by_one),
		cmocka_unit_test(operations_counted_one_by_one),
		cmocka_unit_test(days_of_training_as_published),
		cmocka_unit_test(throughput_times_devices_is_the_published_sum),
		cmocka_unit_test(state_and_activation_bytes),
		cmocka_unit_test(volumes_and_bubble),
		cmocka_unit_test(three_rows_tell_the_other_seven),
		cmocka_unit_test(the_stored_shares_are_the_fitted_ones),
		cmocka_unit_test(published_runs_fit_and_the_search_is_no_slower),
		cmocka_unit_test(the_step_is_what_the_simulator_says),
		cmocka_unit_test(the_search_finds_the_fastest_of_all),
		cmocka_unit_test(products_take_the_operations_of_the_formula),
		cmocka_unit_test(utilization_of_runs_that_no_fit_has_seen),
		cmocka_unit_test(activations_in_flight_are_the_schedules),
		cmocka_unit_test(rules_never_choose_what_does_not_fit),
		cmocka_unit_test(rules_take_t_first_and_no_more_than_they_need),
		cmocka_unit_test(what_cannot_be_is_refused_with_the_least_that_would_do),
		cmocka_unit_test(what_takes_longer_than_is_counted_is_refused),
	};

	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
