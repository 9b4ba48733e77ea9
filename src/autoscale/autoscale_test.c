#include "autoscale/autoscale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "autoscale/autoscale_sim.h"
#include "tests/shared_file.h"

enum { MOST = 32, STEPS = 40000 };

/* ---- utilities */

static void a_utility_is_a_line_or_points_and_goes_on_as_it_ended(void **state)
{
	static const struct { const char *text; double time_s, want; } rows[] = {
		{ "linear:100,50", 0, 100 }, { "linear:100,50", 25, 50 }, { "linear:100,50", 75, -50 },
		{ "points:10:0,10:5,0:10", 2, 10 }, { "points:10:0,10:5,0:10", 7.5, 5 }, { "points:10:0,10:5,0:10", 15, -10 },
		{ "points:8:4,2:8", 0, 8 }, { "points:8:4,2:8", 3, 8 }, { "points:8:4,2:8", 6, 5 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_utility u;
		struct hd_diag diag = { "" };
		CHECK(hd_utility_parse(&u, rows[i].text, &diag) == HD_OK, "%s: %s", rows[i].text, diag.text);
		CHECK(fabs(hd_utility_at(&u, rows[i].time_s) - rows[i].want) < 1e-9, "%s at %g: %g, not %g",
			rows[i].text, rows[i].time_s,
			hd_utility_at(&u, rows[i].time_s), rows[i].want);
	}
	struct hd_utility u;
	assert_int_equal(hd_utility_parse(&u, "points:8:4,2:8", NULL), HD_OK);
	hd_utility_close(&u, 12);                 /* (0, 12) is beyond the last point */
	hd_utility_close(&u, 100);                /* once */
	assert_true(fabs(hd_utility_at(&u, 10) - 1) < 1e-9 && fabs(hd_utility_at(&u, 14) + 1) < 1e-9);
	assert_int_equal(hd_utility_parse(&u, "points:8:4,2:8", NULL), HD_OK);
	hd_utility_close(&u, 6);
	assert_int_equal(u.n, 3);
}

static void bad_utilities_are_refused_with_the_point(void **state)
{
	static const struct { const char *text, *says; } rows[] = {
		{ "stairs:1", "a utility is linear:Y,X or points:VALUE:TIME,..." }, { "linear:5", "linear:Y,X" }, { "linear:0,5", "above 0" },
		{ "linear:1,2,3", "2,3" }, { "points:1", "VALUE:TIME" }, { "points:1:x", "x" }, { "points:", "needs a number" },
		{ "points:1:0,2:5", "point 2:5 of a utility follows 1:0" }, { "points:2:5,1:5", "point 1:5 of a utility follows 2:5" },
		{ "points:1:0,", "needs a number" }, { "points:-1:0", "-1" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_utility u = { .n = 77 };
		struct hd_diag diag = { "" };
		CHECK(hd_utility_parse(&u, rows[i].text, &diag) == HD_E_INVAL &&
			strstr(diag.text, rows[i].says), "%s: %s", rows[i].text, diag.text);
		assert_int_equal(u.n, 77);
	}
	char many[2000] = "points:9:0";
	for (int i = 1; i <= 80; i++)
		snprintf(many + strlen(many), sizeof many - strlen(many), ",9:%d", i);
	struct hd_utility u;
	assert_int_equal(hd_utility_parse(&u, many, NULL), HD_E_INVAL);
}

/* ---- ae-2020, by hand */

static struct hd_scale *fresh(const char *policy, const struct hd_scale_setting *set)
{
	static struct hd_scale scale;
	struct hd_diag diag = { "" };

	CHECK(hd_scale_init(&scale, policy, set, &diag) == HD_OK, "%s", diag.text);
	return &scale;
}

static void feed(struct hd_scale *scale, uint32_t size, double step_s, uint32_t n)
{
	for (uint32_t i = 0; i <= n; i++)          /* the first is no sample */
		hd_scale_sample(scale, size, i ? step_s : 1000);
}

/* Rates in steps a second of the sizes known, the last one is where the job is; what it should go to. */
static void the_engine_of_2020_decides_as_its_rule_says(void **state)
{
	struct trace { uint32_t size[5]; double rate[5]; uint32_t n[5]; uint32_t target; };
	static const struct trace rows[] = {
		{ { 8 }, { 8 }, { 49 }, 12 },                                                      /* one known: up */
		{ { 20 }, { 8 }, { 49 }, 16 },                                                     /* at the maximum: down */
		{ { 18 }, { 8 }, { 49 }, 20 },                                                     /* up, cut at the maximum */
		{ { 4, 8 }, { 4, 8 }, { 100, 49 }, 12 },                                           /* all met, 8 is not max */
		{ { 8, 12 }, { 8, 8.1 }, { 100, 49 }, 4 },                                         /* (8.1 - 8) / 4 / 1 = 0.025: below it */
		{ { 4, 8 }, { 4, 4.2 }, { 100, 99 }, 1 },                                          /* 0.05; 4 - 4 is below min 1 */
		{ { 1, 4, 8 }, { 1, 3, 3.1 }, { 100, 100, 49 }, 8 },                               /* 1 is min; 4-8 not met, 8 has few samples */
		{ { 1, 4, 8 }, { 1, 3, 3.1 }, { 100, 100, 149 }, 4 },                              /* ... has enough: back to 4 */
		{ { 4, 8, 12, 16, 20 }, { 4, 7, 9, 11, 12 }, { 100, 100, 100, 100, 49 }, 20 },     /* all met at max: stay there */
		{ { 4, 8, 12, 16, 20 }, { 4, 7, 9, 9.1, 9.2 }, { 100, 100, 100, 100, 149 }, 1 },   /* the third of the lowest three fails: below 4 */
		{ { 4, 8, 12, 16, 20 }, { 4, 7, 9, 11, 11.1 }, { 100, 100, 100, 100, 149 }, 16 },  /* the lowest three met: first false is 16 */
		{ { 4, 8, 12, 16, 20 }, { 4, 7, 9, 11, 11.1 }, { 100, 100, 100, 100, 49 }, 20 },   /* ... but 20 has 49 samples of 100 */
		{ { 4, 8, 12 }, { 4, 7, 7.1 }, { 100, 100, 149 }, 1 },                             /* the second of two fails: below 4 */
		{ { 12, 16, 20 }, { 12, 15, 18 }, { 100, 100, 149 }, 8 },                          /* two results are fewer than three: a failure */
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_scale *scale = fresh("ae-2020", &(struct hd_scale_setting){ .min = 1, .max = 20 });
		struct hd_scale_answer answer;
		uint32_t last = 0;
		for (uint32_t k = 0; k < 5 && rows[i].size[k]; k++)
			feed(scale, last = rows[i].size[k], 1 / rows[i].rate[k], rows[i].n[k]);
		hd_scale_propose(scale, &(struct hd_scale_now){ 1000, 100, last, false }, &answer);
		CHECK(answer.size == rows[i].target && answer.why[0], "row %zu: %u, not %u: %s", i,
			answer.size, rows[i].target, answer.why);
	}
}

static void the_engine_of_2020_asks_every_fifty_steps_and_not_while_it_waits(void **state)
{
	struct hd_scale *scale = fresh("ae-2020", &(struct hd_scale_setting){ .min = 1, .max = 20 });
	struct hd_scale_answer answer;
	(void)state;

	feed(scale, 8, 1, 48);                    /* 49 steps */
	hd_scale_propose(scale, &(struct hd_scale_now){ 1000, 0, 8, false }, &answer);
	assert_int_equal(answer.size, 8);
	hd_scale_sample(scale, 8, 1);
	hd_scale_propose(scale, &(struct hd_scale_now){ 1000, 0, 8, true }, &answer);
	assert_int_equal(answer.size, 8);
	hd_scale_propose(scale, &(struct hd_scale_now){ 1000, 0, 8, false }, &answer);
	assert_int_equal(answer.size, 12);
	hd_scale_propose(scale, &(struct hd_scale_now){ 0, 0, 8, false }, &answer);
	assert_int_equal(answer.size, 8);         /* nothing is left to run */
}

/* 1000 steps left at 1 USD/h: 4 workers of 1 s cost 1.11 USD, 8 of 0.6 s 1.33; ending 400 s earlier is
 * worth it or not. */
static void the_engine_of_2020_weighs_a_utility_against_the_cost(void **state)
{
	static const struct { const char *utility; uint32_t target; } rows[] = { { "linear:10,10000", 12 },
		{ "linear:1,10000", 1 } };
	(void)state;

	for (size_t i = 0; i < 2; i++) {
		struct hd_utility u;
		struct hd_scale_answer answer;
		assert_int_equal(hd_utility_parse(&u, rows[i].utility, NULL), HD_OK);
		struct hd_scale *scale = fresh("ae-2020", &(struct hd_scale_setting){ .min = 1, .max = 20,
			.utility = &u });
		feed(scale, 4, 1, 100);
		feed(scale, 8, 0.6, 49);
		hd_scale_propose(scale, &(struct hd_scale_now){ 1000, 0, 8, false }, &answer);
		CHECK(answer.size == rows[i].target, "%s: %u: %s", rows[i].utility, answer.size, answer.why);
	}
}

/* ---- curves that a job may have: computing of 1 s at one worker, and what comes to it */

struct true_curve { const char *name; double fixed, grows, jump; bool flat; };
static const struct true_curve curves[] = {
	{ "ideal", 0, 0, 0, false }, { "amdahl 5 %", 0.05, 0, 0, false }, { "amdahl 25 %", 0.25, 0, 0, false },
	{ "retrograde", 0, 0.01, 0, false }, { "sharply retrograde", 0.02, 0.06, 0, false }, { "flat", 0, 0, 0, true },
	{ "a second server from 9 on", 0.01, 0.002, 0.3, false },
};

static void make_curve(const struct true_curve *c, uint32_t nvns, double *step_s, int64_t *compute_ps)
{
	for (uint32_t k = 0; k <= MOST; k++) {
		double share = (double)((nvns + (k ? k : 1) - 1) / (k ? k : 1)) / nvns,
			compute = c->flat ? 0.001 * share : share;
		compute_ps[k] = (int64_t)(compute * 1e12);
		step_s[k] = c->flat ? 1 + compute : compute + c->fixed + c->grows * (k - 1.0) + (k > 8 ?
			c->jump : 0);
	}
}

static double static_j(enum hd_objective objective, const double *step_s, uint32_t size)
{
	return objective == HD_OBJECTIVE_TIME ? step_s[size] : step_s[size] * size;
}

static double best_static(enum hd_objective objective, const double *step_s, uint32_t max)
{
	double best = INFINITY;

	for (uint32_t k = 1; k <= max; k++)
		best = static_j(objective, step_s, k) < best ? static_j(objective, step_s, k) : best;
	return best;
}

static struct hd_scale_run simulated(const char *policy, const struct hd_scale_setting *set,
	const struct hd_scale_job *job, struct hd_text *log)
{
	struct hd_scale_run run = { 0 };
	struct hd_arena arena;
	struct hd_diag diag = { "" };

	hd_arena_init(&arena, 0);
	CHECK(hd_scale_simulate(&run, policy, set, job, &arena, log, &diag) == HD_OK, "%s", diag.text);
	hd_arena_finish(&arena);
	return run;
}

struct worst { double end, total; uint32_t changes; };

/* From every start: how far the size at the end, and the whole run with its trials, are from the best size
 * from the start. */
static struct worst from_everywhere(const char *policy, enum hd_objective objective, const double *step_s,
	const int64_t *compute_ps, uint32_t max,
	double noise, const char *name)
{
	struct worst worst = { 0 };
	static char room[20000];

	for (uint32_t start = 1; start <= max; start += SANITIZED ? 5 : 1) {
		struct hd_scale_setting set = { .objective = objective, .min = 1, .max = max,
			.compute_ps = compute_ps, .boot_s = 20 * step_s[1],
			.stall_s = step_s[1] };
		struct hd_scale_job job = { .step_s = step_s, .steps = STEPS, .start = start, .noise = noise,
			.seed = start };
		struct hd_text log;
		hd_text_fixed(&log, room, sizeof room);
		struct hd_scale_run run = simulated(policy, &set, &job, &log);
		double best = best_static(objective, step_s, max);
		double end = static_j(objective, step_s, run.size) / best - 1;
		double total = (objective == HD_OBJECTIVE_TIME ? run.time_s :
			run.cost_usd * 3600) / (best * STEPS) - 1;
		if (!strcmp(policy, "curve"))
			CHECK(end <= 0.05 && total <= 0.05,
				"%s from %u: ends at %u, %.1f %% off, %.1f %% in all\n%s", name, start,
				run.size, end * 100,
				total * 100, room);
		worst.end = end > worst.end ? end : worst.end;
		worst.total = total > worst.total ? total : worst.total;
		worst.changes = run.nchanges > worst.changes ? run.nchanges : worst.changes;
	}
	return worst;
}

static void show(const char *name, const char *objective, const struct worst *ours, const struct worst *ae)
{
	print_message("%-34s %-5s curve: end %+5.1f %%, all %+5.1f %%, %2u changes   ae-2020: end %+6.1f "
		"%%, all %+6.1f %%, %4u changes\n", name, objective,
		ours->end * 100, ours->total * 100, ours->changes, ae->end * 100, ae->total * 100,
		ae->changes);
}

static void both(const char *name, const double *step_s, const int64_t *compute_ps, uint32_t max,
	double noise)
{
	for (int o = 0; o < 2; o++) {
		enum hd_objective objective = o ? HD_OBJECTIVE_COST : HD_OBJECTIVE_TIME;
		struct worst ours = from_everywhere("curve", objective, step_s, compute_ps, max, noise, name);
		struct worst ae = from_everywhere("ae-2020", objective, step_s, compute_ps, max, noise, name);
		show(name, o ? "cost" : "time", &ours, &ae);
	}
}

static void from_every_start_it_ends_near_the_best_size_with_all_trials_paid(void **state)
{
	double step_s[MOST + 1];
	int64_t compute_ps[MOST + 1];
	(void)state;

	for (size_t c = 0; c < sizeof curves / sizeof *curves; c++)
		for (int noisy = 0; noisy < 2; noisy++) {
			char name[80];
			snprintf(name, sizeof name, "%s%s", curves[c].name, noisy ? ", noise 10 %" : "");
			make_curve(&curves[c], 64, step_s, compute_ps);
			both(name, step_s, compute_ps, 16, noisy ? 0.1 : 0);
		}
	/* a stair: 12 virtual nodes on 7 to 11 workers take as long as on 6 */
	make_curve(&curves[0], 12, step_s, compute_ps);
	both("stair of 12 virtual nodes", step_s, compute_ps, 16, 0.1);
}

/* ---- published curves: steps a second on 1, 2, 4, 8 devices of a type; straight lines between */

static const struct hd_json *published(struct hd_arena *arena)
{
	return shared_json("data/gavel/throughputs/simulation_throughputs.json", arena);
}

static double rate_of(const struct hd_json *device, const char *model, uint32_t n)
{
	char key[120];
	double rate = 0;

	snprintf(key, sizeof key, "('%s', %u)", model, n);
	const struct hd_json *row = hd_json_find(device, key);
	return row && hd_json_get_f64(row, "null", &rate, NULL) == HD_OK ? rate : 0;
}

static bool published_curve(const struct hd_json *device, const char *model, double *step_s,
	int64_t *compute_ps)
{
	double rate[9] = { 0 };

	for (uint32_t n = 1; n <= 8; n *= 2) {
		rate[n] = rate_of(device, model, n);
		if (!(rate[n] > 0))
			return false;
		for (uint32_t k = n / 2 + 1; k < n; k++)
			rate[k] = rate[n / 2] + (rate[n] - rate[n / 2]) * (k - n / 2.0) / (n - n / 2.0);
	}
	for (uint32_t k = 0; k <= 8; k++) {
		uint32_t at = k ? k : 1;
		step_s[k] = 1 / rate[at];
		/* what a profile of one device says */
		compute_ps[k] = (int64_t)(1e12 / rate[1] * ((64 + at - 1) / at) / 64);
	}
	return true;
}

static void published_curves_are_climbed_too(void **state)
{
	static const char *const devices[] = { "v100", "p100", "k80" },
		*const models[] = { "ResNet-18 (batch size 64)", "ResNet-18 (batch size 256)",
		"ResNet-50 (batch size 16)", "ResNet-50 (batch size 128)", "Transformer (batch size 32)",
		"Transformer (batch size 256)",
		"LM (batch size 5)", "LM (batch size 80)" };
	struct hd_arena arena;
	uint32_t ncurves = 0;
	(void)state;

	hd_arena_init(&arena, 0);
	const struct hd_json *root = published(&arena);
	if (!root) {
		hd_arena_finish(&arena);
		SKIP("data/gavel is neither in HEDDLE_SHARED nor in tests");
	}
	for (size_t d = 0; d < 3; d++)
		for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
			double step_s[MOST + 1];
			int64_t compute_ps[MOST + 1];
			char name[80];
			const struct hd_json *device = hd_json_find(root, devices[d]);
			if (!device || !published_curve(device, models[m], step_s, compute_ps))
				continue;
			ncurves++;
			snprintf(name, sizeof name, "%s %s", devices[d], models[m]);
			both(name, step_s, compute_ps, 8, 0.03);
		}
	assert_true(ncurves >= 16);
	hd_arena_finish(&arena);
}

/* ---- the other objectives, and what changes later */

static struct hd_scale_run on_curve(size_t c, struct hd_scale_setting set, uint32_t start,
	const double *then_step_s, char *words, size_t cap)
{
	static double step_s[MOST + 1];
	static int64_t compute_ps[MOST + 1];
	struct hd_text log;

	make_curve(&curves[c], 64, step_s, compute_ps);
	set.min = 1;
	set.max = 16;
	set.compute_ps = compute_ps;
	set.boot_s = 20;
	set.stall_s = 1;
	hd_text_fixed(&log, words, cap);
	return simulated("curve", &set, &(struct hd_scale_job){ .step_s = step_s, .then_step_s = then_step_s,
		.then_at = STEPS / 2, .steps = STEPS,
		.start = start, .seed = 5, .noise = set.objective == HD_OBJECTIVE_EFFICIENCY ? 0 : 0.02 },
		&log);
}

/* amdahl 25 %: steps of 0.25 + ceil(64 / k) / 64 s. */
static void a_deadline_is_met_by_the_cheapest_size_that_meets_it(void **state)
{
	static const struct { double deadline_s; uint32_t want; } rows[] = { { 1e6, 1 }, { 0.52 * STEPS, 4 },
		{ 0.4 * STEPS, 8 }, { 0.2 * STEPS, 16 } };
	static char words[4000];
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (uint32_t start = 4; start <= 16; start += 6) {
			struct hd_scale_setting set = { .objective = HD_OBJECTIVE_DEADLINE,
				.deadline_s = rows[i].deadline_s };
			struct hd_scale_run run = on_curve(2, set, start, NULL, words, sizeof words);
			CHECK(run.size == rows[i].want, "deadline %g from %u: %u, not %u\n%s",
				rows[i].deadline_s, start, run.size, rows[i].want, words);
			CHECK(i == 3 || run.time_s <= rows[i].deadline_s, "deadline %g from %u: %g s",
				rows[i].deadline_s, start, run.time_s);
		}
}

/* Ending a second earlier is worth 0.01: more than the workers cost, or it is worth nothing. */
static void a_utility_buys_what_it_is_worth(void **state)
{
	static const struct { const char *utility; uint32_t least, most;
		} rows[] = { { "linear:100000,100000", 13, 16 }, { "linear:0.001,100000", 1, 1 } };
	static char words[4000];
	(void)state;

	for (size_t i = 0; i < 2; i++) {
		struct hd_utility u;
		assert_int_equal(hd_utility_parse(&u, rows[i].utility, NULL), HD_OK);
		struct hd_scale_setting set = { .objective = HD_OBJECTIVE_UTILITY, .utility = &u };
		struct hd_scale_run run = on_curve(2, set, 4, NULL, words, sizeof words);
		CHECK(run.size >= rows[i].least && run.size <= rows[i].most, "%s: %u\n%s", rows[i].utility,
			run.size, words);
	}
}

/* The definition, counted here over all candidates; without noise, which would decide between neighbours. */
static void efficiency_stops_where_the_last_step_up_gains_too_little(void **state)
{
	static char words[4000];
	double step_s[MOST + 1];
	int64_t compute_ps[MOST + 1];
	(void)state;

	make_curve(&curves[2], 64, step_s, compute_ps);
	for (int t = 1; t <= 3; t++) {
		double theta = 0.1 * t;
		uint32_t want = 1, before = 1;
		for (uint32_t k = 2; k <= 16; k++) {
			if (compute_ps[k] == compute_ps[k - 1])
				continue;
			want = (1 / step_s[k] - 1 / step_s[before]) / (k - before) * before * step_s[before] >
				theta ? k : want;
			before = k;
		}
		for (uint32_t start = 1; start <= 16; start += 5) {
			struct hd_scale_setting set = { .objective = HD_OBJECTIVE_EFFICIENCY,
				.theta = theta };
			struct hd_scale_run run = on_curve(2, set, start, NULL, words, sizeof words);
			CHECK(run.size == want, "theta %g from %u: %u, by hand %u\n%s", theta, start,
				run.size, want, words);
		}
	}
}

/* The curve of the second half is another: from ideal to sharply retrograde. */
static void a_curve_that_changes_is_climbed_again(void **state)
{
	static char words[4000];
	double then[MOST + 1];
	int64_t unused[MOST + 1];
	(void)state;

	make_curve(&curves[4], 64, then, unused);
	struct hd_scale_run run = on_curve(0, (struct hd_scale_setting){ .objective = HD_OBJECTIVE_TIME }, 8,
		then, words, sizeof words);
	CHECK(run.last_change > STEPS / 2 && then[run.size] <= 1.05 * best_static(HD_OBJECTIVE_TIME, then,
		16), "%u workers\n%s", run.size, words);
	run = on_curve(0, (struct hd_scale_setting){ .objective = HD_OBJECTIVE_TIME }, 8, NULL, words,
		sizeof words);
	CHECK(run.last_change < STEPS / 10, "it settles and stays: the last change was at step %llu\n%s",
		(unsigned long long)run.last_change, words);
}

/* Steps of a tenth of a millisecond, of one or two workers; settled, a busy machine doubles 60 of them,
 * then all. */
static void a_busy_moment_is_no_other_curve(void **state)
{
	static const int64_t compute_ps[4] = { 0, 100000000, 90000000, 80000000 };
	static struct hd_scale scale;
	struct hd_scale_setting set = { .objective = HD_OBJECTIVE_COST, .min = 1, .max = 3,
		.compute_ps = compute_ps };
	struct hd_scale_answer answer;
	uint64_t settled = 0, step;
	uint32_t size = 2, on = 0;
	(void)state;

	assert_int_equal(hd_scale_init(&scale, "curve", &set, NULL), HD_OK);
	for (step = 1; step < 20000 && (settled == 0 || scale.settled); step++) {
		bool busy = settled && ((step > settled + 40 && step <= settled + 100) ||
			step > settled + 10000);
		hd_scale_sample(&scale, size, (double)compute_ps[size] * (busy ? 2e-12 : 1e-12));
		hd_scale_propose(&scale, &(struct hd_scale_now){ .left = 100000 - step,
			.elapsed_s = (double)step * 1e-4, .size = size }, &answer);
		size = answer.size;
		if (scale.settled && !settled) {
			settled = step;
			on = size;
		}
	}
	CHECK(on == 1, "settled on %u workers", on);
	CHECK(step > settled + 10000 && step < settled + 10000 + 6500,
		"what was settled at step %llu is open again at step %llu",
		(unsigned long long)settled, (unsigned long long)step);
}

static void what_the_rest_of_the_run_cannot_pay_is_not_tried(void **state)
{
	static char words[4000];
	static double step_s[MOST + 1];
	static int64_t compute_ps[MOST + 1];
	struct hd_text log;
	(void)state;

	make_curve(&curves[0], 64, step_s, compute_ps);
	for (int dear = 0; dear < 2; dear++) {
		/* from the best size of ideal scaling only a look around is left; from 8 a change that
		 * costs more than the run */
		struct hd_scale_setting set = { .min = 1, .max = 16, .compute_ps = compute_ps,
			.stall_s = dear ? 1e6 : 0 };
		struct hd_scale_job job = { .step_s = step_s, .steps = dear ? STEPS : 200,
			.start = dear ? 8 : 16 };
		hd_text_fixed(&log, words, sizeof words);
		CHECK(simulated("curve", &set, &job, &log).nchanges == 0, "%s", words);
	}
}

/* 50 steps of 4 workers, 10 in which 4 more are paid and boot, 40 of 8; all of one second. */
static void joiners_are_paid_while_they_boot(void **state)
{
	double step_s[9];
	(void)state;

	for (int k = 0; k < 9; k++)
		step_s[k] = 1;
	struct hd_scale_setting set = { .min = 4, .max = 8, .boot_s = 10, .price_usd_h = 36 };
	struct hd_scale_run run = simulated("ae-2020", &set,
		&(struct hd_scale_job){ .step_s = step_s, .steps = 100, .start = 4 }, NULL);
	assert_true(run.nchanges == 1 && run.last_change == 60 && run.size == 8);
	CHECK(fabs(run.cost_usd - 6) < 1e-9 && fabs(run.time_s - 100) < 1e-9, "%g USD, %g s", run.cost_usd,
		run.time_s);
}

static void nonsense_is_refused(void **state)
{
	static const int64_t compute[3] = { 1, 1, 1 };
	static const struct { const char *policy; struct hd_scale_setting set; const char *says; } rows[] = {
		{ "curves", { .min = 1, .max = 2, .compute_ps = compute }, "did you mean curve?" }, { "curve", { .min = 1, .max = 2 }, "solver's step times" },
		{ "ae-2020", { .min = 0, .max = 2 }, "sizes from 0 to 2" }, { "ae-2020", { .min = 3, .max = 2 }, "sizes from 3 to 2" },
		{ "ae-2020", { .min = 1, .max = 2, .objective = HD_OBJECTIVE_UTILITY }, "needs a utility" },
		{ "ae-2020", { .min = 1, .max = 2, .objective = HD_OBJECTIVE_DEADLINE }, "needs a deadline" },
		{ "ae-2020", { .min = 1, .max = 2, .price_usd_h = -1 }, "0 or more" },
	};
	static struct hd_scale scale;
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_scale_init(&scale, rows[i].policy, &rows[i].set, &diag) == HD_E_INVAL &&
			strstr(diag.text, rows[i].says), "row %zu: %s", i, diag.text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_utility_is_a_line_or_points_and_goes_on_as_it_ended),
		cmocka_unit_test(bad_utilities_are_refused_with_the_point),
		cmocka_unit_test(the_engine_of_2020_decides_as_its_rule_says),
		cmocka_unit_test(the_engine_of_2020_asks_every_fifty_steps_and_not_while_it_waits),
		cmocka_unit_test(the_engine_of_2020_weighs_a_utility_against_the_cost),
		cmocka_unit_test(from_every_start_it_ends_near_the_best_size_with_all_trials_paid),
		cmocka_unit_test(published_curves_are_climbed_too),
		cmocka_unit_test(a_deadline_is_met_by_the_cheapest_size_that_meets_it),
		cmocka_unit_test(a_utility_buys_what_it_is_worth),
		cmocka_unit_test(efficiency_stops_where_the_last_step_up_gains_too_little),
		cmocka_unit_test(a_curve_that_changes_is_climbed_again),
		cmocka_unit_test(a_busy_moment_is_no_other_curve),
		cmocka_unit_test(what_the_rest_of_the_run_cannot_pay_is_not_tried),
		cmocka_unit_test(joiners_are_paid_while_they_boot),
		cmocka_unit_test(nonsense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
