#include "engine/choose.h"

#include <math.h>

#include "device/tiles.h"
#include "engine/testing.h"

/* Predictions are judged by what a worker of the same division really takes. */

static const char wide[] =
	"model: {use: builtin:mlp, args: {hidden: [256, 64]}}\ndata: {kind: synthetic, count: 96}\n";

static const struct hd_choices *choices_of(const struct hd_rig *rig, uint32_t ncores, uint64_t device_limit,
	uint64_t machine)
{
	static struct hd_choices choices;
	struct hd_choose_spec spec = { .ncores = ncores, .device_limit_bytes = device_limit,
		.machine_bytes = machine };
	struct hd_diag diag = { "" };

	CHECK(hd_choose(&choices, rig->task, &spec, &diag) == HD_OK, "%s", diag.text);
	return &choices;
}

static void what_is_predicted_is_what_a_worker_takes(void **state)
{
	static const char *const models[] = { wide, hd_rig_gpt };
	(void)state;

	for (size_t m = 0; m < 2; m++) {
		struct hd_rig rig;
		hd_rig_open(&rig, models[m], 26, 7, NULL, 1);
		struct hd_choices choices = *choices_of(&rig, 6, 0, 0);
		hd_rig_close(&rig);
		assert_true(choices.n >= 3);
		for (uint32_t i = 0; i < choices.n; i++) {
			const struct hd_choice *c = &choices.at[i];
			struct hd_worker_spec spec = { .kind = "cpu", .ndevices = c->ndevices,
				.nthreads = c->nthreads, .kernels = HD_KERNELS_PORTABLE,
				.wave = c->wave };
			uint64_t share = c->memory.total / c->ndevices + 1;
			spec.memory_limit_bytes = c->memory.device > share ? c->memory.device : share;
			struct hd_memory_terms real;
			hd_rig_open_on(&rig, models[m], 26, 7, NULL, &spec);
			hd_worker_memory(rig.worker, &real);
			CHECK(real.held == c->memory.held && real.kept == c->memory.kept
				&& real.gradients == c->memory.gradients && real.arenas == c->memory.arenas,
				"model %zu, %u x %u, waves of %u: predicted %llu, taken %llu", m, c->ndevices,
				c->nthreads, c->wave,
				(unsigned long long)c->memory.held, (unsigned long long)real.held);
			hd_rig_close(&rig);
		}
	}
}

static void cores_are_used_once_and_no_device_is_idle(void **state)
{
	static const uint32_t cores[] = { 1, 2, 3, 6, 7, 8, 64, 96 };
	struct hd_rig rig;
	(void)state;

	hd_rig_open(&rig, wide, 26, 7, NULL, 1);
	for (size_t k = 0; k < sizeof cores / sizeof *cores; k++) {
		const struct hd_choices *choices = choices_of(&rig, cores[k], 0, 0);
		for (uint32_t i = 0; i < choices->n; i++) {
			const struct hd_choice *c = &choices->at[i];
			CHECK(c->ndevices <= 7 && c->ndevices * c->nthreads <= cores[k] &&
				c->ndevices * (c->nthreads + 1) > cores[k] && c->fits,
				"%u cores: %u x %u", cores[k], c->ndevices, c->nthreads);
			assert_true(c->step_s >= choices->at[choices->best].step_s);
		}
	}
	hd_rig_close(&rig);
}

/* Eight devices keep eight sets of gradients and activations, one device of eight threads keeps one. */
static void little_memory_makes_fewer_devices_of_more_threads_and_smaller_waves(void **state)
{
	struct hd_rig rig;
	(void)state;

	hd_rig_open(&rig, wide, 64, 8, NULL, 1);
	struct hd_choices roomy = *choices_of(&rig, 8, 0, 0);
	uint64_t most = roomy.at[0].memory.total, least = roomy.at[roomy.n - 1].memory.total;
	assert_int_equal(roomy.at[0].ndevices, 8);
	assert_int_equal(roomy.at[roomy.n - 1].ndevices, 1);
	assert_true(least < most);
	const struct hd_choices *tight = choices_of(&rig, 8, 0, least);
	assert_int_equal(tight->at[tight->best].ndevices, 1);
	assert_true(tight->at[tight->best].fits && tight->at[tight->best].memory.total <= least);
	tight = choices_of(&rig, 8, 0, 1);
	assert_false(tight->at[tight->best].fits);
	for (uint32_t i = 0; i < tight->n; i++) {
		assert_int_equal(tight->at[i].wave, 1);
		assert_true(tight->at[i].memory.total >= tight->at[tight->best].memory.total);
	}
	hd_rig_close(&rig);
}

/* As measured on two cores (docs/results/cores.md): a layer of a million parameters on few rows is laid out
 * and folded by every device again, threads share it; where parameters are few and nodes small, threads
 * only meet. */
static void threads_win_where_parameters_are_many_for_their_rows(void **state)
{
	static const struct { const char *model; uint32_t batch, ndevices; } cases[] = {
		{ "model: {use: builtin:mlp, args: {hidden: [1024, 1024]}}\ndata: {kind: synthetic, count: 256}\n", 256, 1 },
		{ "model: {use: builtin:mlp, args: {hidden: [1024, 1024]}}\ndata: {kind: synthetic, count: 2048}\n", 2048, 2 },
		{ "model: {use: builtin:lenet}\ndata: {kind: synthetic, count: 64}\n", 64, 2 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_rig rig;
		hd_rig_open(&rig, cases[i].model, cases[i].batch, 8, NULL, 1);
		const struct hd_choices *choices = choices_of(&rig, 2, 0, 0);
		const struct hd_choice *best = &choices->at[choices->best];
		CHECK(choices->n == 2 && best->ndevices == cases[i].ndevices,
			"case %zu: %u devices, predicted %g and %g s", i, best->ndevices,
			choices->at[0].step_s, choices->at[1].step_s);
		hd_rig_close(&rig);
	}
}

/* By hand, of a product of one layer: 2 devices of 1 thread, 4 virtual nodes of 32 rows each, in one wave. */
static void times_are_those_of_the_header(void **state)
{
	struct hd_rig rig;
	double flat, nodes = 0, halves = 0;
	(void)state;

	hd_rig_open(&rig,
		"model: {use: builtin:mlp, args: {hidden: [512]}}\ndata: {kind: synthetic, count: "
		"256}\noptim: {kind: adamw}\n", 256, 8, NULL, 1);
	const struct hd_choices *choices = choices_of(&rig, 2, 0, 0);
	struct hd_worker *w = rig.worker;
	for (int phase = HD_RUN_F; phase <= HD_RUN_B; phase++)
		for (uint32_t i = 0; i < w->stage->train.norder[phase]; i++) {
			const uint32_t inode = w->stage->train.order[phase][i];
			const struct hd_node *node = &w->stage->train.graph->node[inode];
			struct hd_cost cost = hd_ops[node->op].cost(w->stage->train.graph, node, 32);
			const double s = cost.flops * 1e-11 > cost.bytes * 5e-11 ? cost.flops * 1e-11 :
				cost.bytes * 5e-11;
			const uint32_t ntiles = hd_program_tiles(&w->stage->train, inode, 8);
			nodes += s;
			halves += ntiles ? s * ((ntiles + 1) / 2) / ntiles : s / 2;
		}
	flat = (double)w->stage->flat_bytes * 5e-11;
	/* parameters, gradient and two slots read, three written; a join of the second device's root:
	 * read, read, written */
	double two = 4 * nodes + 3 * flat + (7 + 3) * flat / 2, threads = 8 * halves * 1.03
		+ 3 * flat / 2 + 7 * flat / 2
		+ 4e-6 * (w->stage->train.norder[HD_RUN_F] + w->stage->train.norder[HD_RUN_B]);
	CHECK(choices->at[0].wave >= 4 && choices->at[1].wave == 8, "waves %u and %u", choices->at[0].wave,
		choices->at[1].wave);
	CHECK(fabs(choices->at[0].step_s - two) < 1e-9 * two, "2 x 1: %g s, by hand %g",
		choices->at[0].step_s, two);
	CHECK(fabs(choices->at[1].step_s - threads) < 1e-9 * threads, "1 x 2: %g s, by hand %g",
		choices->at[1].step_s, threads);
	hd_rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_predicted_is_what_a_worker_takes),
		cmocka_unit_test(cores_are_used_once_and_no_device_is_idle),
		cmocka_unit_test(threads_win_where_parameters_are_many_for_their_rows),
		cmocka_unit_test(times_are_those_of_the_header),
		cmocka_unit_test(little_memory_makes_fewer_devices_of_more_threads_and_smaller_waves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
