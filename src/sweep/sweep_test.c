/* Sweep files: what is read, and what is refused at which place. */
#include "sweep/sweep.h"

#include <string.h>

#include "tests/check.h"

static struct hd_sweep sweep;

static enum hd_err parse(const char *text, struct hd_arena *arena, struct hd_diag *diag)
{
	return hd_sweep_parse(&sweep, "f.yaml", text, strlen(text), arena, diag);
}

#define SPACE "space: {optim.lr: {log: [1e-4, 1e-1], n: 3}, batch.global: [32, 64, 128]}\n"

static void a_sweep_file_is_read(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	CHECK(!parse("job: j.yaml\nmethod: halving\ndraw: grid\n" SPACE
		"metric: {goal: min, over: 5, name: loss}\nsteps: {min: 20, eta: 2}\n", &arena, &diag), "%s",
		diag.text);
	CHECK(sweep.ntrials == 9 && sweep.draw == HD_SWEEP_GRID && sweep.eta == 2 && sweep.over == 5 &&
		sweep.naxes == 2 && sweep.axis[0].kind == HD_SWEEP_AXIS_LOG && sweep.axis[1].n == 3 &&
		!strcmp(sweep.axis[1].choice[2], "128"), "it was read as something else");
	CHECK(!parse("job: j\nmethod: grid\nspace: {graph.hidden: [8, 16], model.args.depth: [2, 3]}\n",
		&arena, &diag) && sweep.ntrials == 4, "%s", diag.text);
	CHECK(!parse("job: j\nmethod: sobol\ntrials: 5\nseed: 9\nspace: {job.seed: {int: [0, 9]}}\n"
		"metric: {name: val_accuracy}\n", &arena, &diag), "%s", diag.text);
	CHECK(sweep.draw == HD_SWEEP_SOBOL && sweep.max && sweep.seed == 9, "not as written");
	CHECK(!parse("job: j\nmethod: random\ntrials: 5\nspace: {job.seed: {int: [0, 9]}}\n"
		"metric: {goal: min, name: val_accuracy}\n", &arena, &diag) && !sweep.max,
		"a goal before the name is lost");
	hd_arena_finish(&arena);
}

static void what_makes_no_sense_is_refused_with_its_place(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "method: grid\n" SPACE, "f.yaml:1:1: job is missing" },
		{ "job: j\nmethod: grid\n", "space is missing" },
		{ "job: j\n" SPACE, "method is missing" },
		{ "job: j\nmethod: gird\n" SPACE, "f.yaml:2:9: method is one of grid, random" },
		{ "job: j\nmethod: grid\nspaec: {}\n", "f.yaml:3:1: a sweep has no spaec; did you mean space?" },
		{ "job: j\nmethod: grid\nspace: {optim.lt: [1]}\n", "f.yaml:3:9: a job has no key optim.lt; did you mean optim.lr?" },
		{ "job: j\nmethod: grid\nspace: {job.steps: [1, 2]}\n", "how long a run is" },
		{ "job: j\nmethod: grid\nspace: {workers.devices: [1, 2]}\n", "does not change what a job computes" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: [1, 1]}\n", "the value 1 twice" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: [[1]]}\n", "in quotes" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: 3}\n", "f.yaml:3:19: optim.lr is a list" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: {log: [0, 1], n: 2}}\n", "above 0" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: {log: [2, 1], n: 2}}\n", "the less first" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: {log: [1, 2, 3], n: 2}}\n", "two numbers" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: {int: [0.5, 2], n: 2}}\n", "whole numbers" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: {int: [1, 2], n: 3}}\n", "fewer than 3 whole numbers" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: {log: [1, 2]}}\n", "a grid needs n" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: {n: 2}}\n", "has no ends" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: {log: [1, 2], int: [1, 2]}}\n", "is one of linear, log" },
		{ "job: j\nmethod: grid\ntrials: 4\n" SPACE, "f.yaml:3:9: the grid has 9 combinations" },
		{ "job: j\nmethod: grid\nspace: {optim.lr: {linear: [1, 2], n: 1000}, batch.global: [1, 2]}\n", "more than 1024" },
		{ "job: j\nmethod: random\n" SPACE, "trials is missing" },
		{ "job: j\nmethod: random\ntrials: 0\n" SPACE, "from 1 to 1024, not 0" },
		{ "job: j\nmethod: random\ntrials: 2\nsteps: {min: 3}\n" SPACE, "has one rung" },
		{ "job: j\nmethod: halving\ntrials: 2\n" SPACE, "needs steps: {min" },
		{ "job: j\nmethod: halving\ntrials: 2\nsteps: {min: 3, max: 2}\n" SPACE, "is above steps.max" },
		{ "job: j\nmethod: halving\ntrials: 2\nparallel: 2\nsteps: {min: 3}\n" SPACE, "parallel is of method asha" },
		{ "job: j\nmethod: halving\ndraw: asha\ntrials: 2\nsteps: {min: 3}\n" SPACE, "draw is one of grid, random, sobol" },
		{ "job: j\nmethod: random\ndraw: sobol\ntrials: 2\n" SPACE, "draws its own points" },
		{ "job: j\nmethod: grid\nmetric: {name: val_loss, over: 3}\n" SPACE, "over is of the loss of training" },
		{ "job: j\nmethod: grid\nmetric: loss\n" SPACE, "metric is a table" },
		{ "job: j\nmethod: [grid\n", "f.yaml:" },
	};
	struct hd_arena arena;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		hd_arena_init(&arena, 0);
		enum hd_err err = parse(cases[i].text, &arena, &diag);
		CHECK(err == HD_E_INPUT && strstr(diag.text, cases[i].says),
			"case %zu: %d, \"%s\" is not \"%s\"", i,
			err, diag.text, cases[i].says);
		hd_arena_finish(&arena);
	}
}

static void rungs_rise_by_eta_and_end_at_the_last_step(void **state)
{
	static const struct { uint64_t min, max, steps; uint32_t eta, n; uint64_t rung[5]; } cases[] = {
		{ 20, 180, 1000, 3, 3, { 20, 60, 180 } }, { 20, 0, 200, 3, 4, { 20, 60, 180, 200 } },
		{ 7, 7, 10, 3, 1, { 7 } }, { 1, 0, 3, 2, 3, { 1, 2, 3 } },
	};
	uint64_t rung[HD_SWEEP_RUNGS];
	struct hd_diag diag = { "" };
	uint32_t n = 0;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_sweep s = { .file = "f", .method = HD_SWEEP_HALVING, .min_steps =
			cases[i].min,
			.max_steps = cases[i].max, .eta = cases[i].eta };
		CHECK(!hd_sweep_rungs(&s, cases[i].steps, rung, &n, &diag), "%s", diag.text);
		CHECK(n == cases[i].n && !memcmp(rung, cases[i].rung, n * sizeof *rung), "case %zu", i);
	}
	const struct hd_sweep longer = { .file = "f", .max_steps = 11 }, many = { .file = "f",
		.method = HD_SWEEP_HALVING, .min_steps = 1, .eta = 2 };
	CHECK(hd_sweep_rungs(&longer, 10, rung, &n, &diag) == HD_E_INPUT && strstr(diag.text, "job.steps"),
		"%s",
		diag.text);
	diag.text[0] = 0;
	CHECK(hd_sweep_rungs(&many, UINT64_C(1) << 40, rung, &n, &diag) == HD_E_INPUT &&
		strstr(diag.text, "more than 20"), "%s", diag.text);
	CHECK(!hd_sweep_rungs(&many, UINT64_C(1) << 19, rung, &n, &diag) && n == 20, "%u rungs", n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sweep_file_is_read),
		cmocka_unit_test(what_makes_no_sense_is_refused_with_its_place),
		cmocka_unit_test(rungs_rise_by_eta_and_end_at_the_last_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
