/* Ranks of several devices give the bits of one device: (p, t, d) grids over the devices of one process. */
#include "engine/pipe.h"

#include "engine/overlap.h"
#include "engine/testing_stages.h"

#define GPT \
	"model: {use: builtin:gpt, shards: 4, " \
	"args: {layers: 1, width: 16, heads: 4, context: 8, dropout: 0.1}"
static const char tied[] = GPT "}\ndata: {kind: synthetic, count: 61}\n";
/* Its table is tied, too. */
static const char along[] = GPT ", sequence_shards: true}\ndata: {kind: synthetic, count: 61}\n";
static const char pairs[] = "model: {use: builtin:mlp, args: {hidden: [32, 16]}, shards: 4}\n"
	"data: {kind: synthetic, count: 61}\n";

static const struct hd_rig_kind grid[] = {
	{ "1f1b", 1, 1, 1, false, 2 }, { "1f1b", 1, 1, 1, false, 4 }, { "1f1b", 1, 1, 2, false, 1 },
	{ "1f1b", 1, 1, 2, false, 2 }, { "gpipe", 1, 1, 2, false, 4 }, { "1f1b", 2, 1, 1, false, 1 },
	{ "1f1b", 2, 1, 1, false, 2 }, { "1f1b", 2, 1, 1, false, 4 }, { "1f1b", 2, 1, 2, false, 1 },
	{ "gpipe", 2, 1, 2, false, 2 }, { "1f1b", 2, 1, 2, false, 4 },
};
/* Backward passes in two runs, a stage that is computed twice, several stages of a rank. */
static const struct hd_rig_kind others[] = {
	{ "zb-h1", 2, 1, 1, false, 2 }, { "gpipe", 2, 1, 1, true, 4 }, { "zb-v", 2, 2, 1, false, 2 },
	{ "interleaved", 2, 2, 1, true, 2 }, { "gpipe", 2, 1, 1, HD_KEEPS_AWAY, 2 },
};
enum { NGRID = sizeof grid / sizeof *grid, NOTHERS = sizeof others / sizeof *others };

static void a_tied_transformer_on_grids(void **state)
{
	(void)state;
	hd_rig_compare(tied, 16, 8, "optim: {kind: adamw, clip: 0.5}\n", grid, 4);
	hd_rig_compare(tied, 13, 7, NULL, &grid[6], 3);
}

static void sequence_shards_on_grids(void **state)
{
	(void)state;
	hd_rig_compare(along, 16, 8, NULL, grid, NGRID);
	hd_rig_compare(along, 13, 7, "optim: {kind: lamb}\n", grid, NGRID);
	/* copies whose partial sums are several */
	hd_rig_compare(along, 13, 13, NULL, &grid[9], 2);
}

/* 61 samples in batches of 26: the third step has 9 rows, most virtual nodes have none. */
static void other_schedules_and_ragged_steps(void **state)
{
	(void)state;
	hd_rig_compare(along, 26, 7, NULL, others, NOTHERS);
	hd_rig_compare(pairs, 26, 13, "optim: {kind: sgd, momentum: 0.9}\n", grid, 2);
}

static void delayed_updates(void **state)
{
	(void)state;
	hd_rig_compare(tied, 16, 8, "optim: {kind: adamw, clip: 0.5, update: 2bw}\n", &grid[6], 1);
}

/* Steps of a straight pipeline that overlap: devices follow into the next step, also after an update before
 * the norm. */
static void steps_that_overlap(void **state)
{
	static const struct { const char *model, *more; } rows[] = {
		{ tied, "optim: {update: 2bw}\n" },
		{ "model: {use: builtin:llama, shards: 4, args: {layers: 2, width: 16, heads: 4, "
			"context: 8}}\ndata: {kind: synthetic, count: 61}\n",
			"optim: {clip: 0, update: stash, cuts: auto:2}\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_rig_said one, many;
		struct hd_step_record record;
		struct hd_diag diag = { "" };
		struct hd_rig rig;
		hd_rig_open(&rig, rows[i].model, 16, 8, rows[i].more, 1);
		hd_rig_steps(&rig, &one);
		hd_rig_close(&rig);
		hd_rig_open_staged(&rig, rows[i].model, 16, 8, rows[i].more, &grid[6]);
		rig.plan.overlap = true;
		CHECK(hd_worker_adopt(rig.worker, &rig.plan, &diag) == HD_OK, "%s", diag.text);
		assert_non_null(hd_worker_work(rig.worker)->overlap);
		assert_int_equal(hd_worker_work(rig.worker)->overlap->eager != NULL, i);
		/* a row that cannot be read, of the step at hand or of the one begun ahead */
		hd_rig_hush(&rig);
		hd_rig_break(&rig, 1, false);
		assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
		assert_int_equal(hd_worker_step(rig.worker, true, &record, &diag), HD_E_IO);
		hd_rig_hush(&rig);
		hd_rig_mend(&rig);
		assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
		hd_rig_steps(&rig, &many);
		assert_memory_equal(&one, &many, sizeof one);
		hd_rig_close(&rig);
	}
}

/* Between any two steps, on the same four devices. */
static void grids_change_between_steps(void **state)
{
	static const struct hd_rig_kind four[] = { { "1f1b", 1, 1, 1, false, 4 }, { "1f1b", 2, 1, 1, false,
		2 },
		{ "gpipe", 2, 1, 2, false, 1 }, { "1f1b", 1, 1, 2, false, 2 }, { "zb-h1", 4, 1, 1, false,
		1 } };
	enum { N = sizeof four / sizeof *four };
	struct hd_plan plan[N + 1];
	struct hd_diag diag = { "" };
	struct hd_rig rig, still;

	(void)state;
	hd_rig_open(&still, along, 16, 8, NULL, 1);
	hd_rig_open(&rig, along, 16, 8, NULL, 4);
	plan[N] = rig.plan;
	for (uint32_t k = 0; k < N; k++)
		CHECK(hd_rig_staged(rig.worker, rig.task, &four[k], &rig.arena, &plan[k], &diag) == HD_OK,
		"%s",
			diag.text);
	for (uint32_t i = 0; i < 2 * N; i++) {
		CHECK(hd_worker_adopt(rig.worker, &plan[(i * 4) % (N + 1)], &diag) == HD_OK, "%s", diag.text);
		CHECK(hd_hash_same(hd_rig_step(&rig).digest, hd_rig_step(&still).digest), "step %u", i);
	}
	hd_rig_close(&still);
	hd_rig_close(&rig);
}

/* Whatever device fails, the others leave the turn; the step can be tried again. */
static void a_failed_step_ends_on_all_devices(void **state)
{
	struct hd_rig_said one, many;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, pairs, 26, 13, NULL, 1);
	hd_rig_steps(&rig, &one);
	hd_rig_close(&rig);
	for (size_t k = 1; k < NGRID; k += 3)
		for (int number = 0; number < 2; number++) {
			struct hd_step_record record;
			struct hd_diag diag = { "" };
			hd_rig_open_staged(&rig, pairs, 26, 13, NULL, &grid[k]);
			hd_rig_hush(&rig);
			hd_rig_break(&rig, k % 4, number);
			assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
			struct hd_hash before = hd_worker_digest(rig.worker);
			CHECK(hd_worker_step(rig.worker, true, &record, &diag) == (number ? HD_E_DIVERGED :
				HD_E_IO),
				"%s", diag.text);
			assert_true(hd_hash_same(before, hd_worker_digest(rig.worker)));
			hd_rig_hush(&rig);
			hd_rig_mend(&rig);
			assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
			hd_rig_steps(&rig, &many);
			CHECK(memcmp(&one, &many, sizeof one) == 0,
				"grid %zu: other bits after a failed step", k);
			hd_rig_close(&rig);
		}
}

/* Devices that refuse their part of a turn after some: one of them, or all at once. */
static struct { const struct hd_device_ops *under; struct hd_device_ops ops; atomic_int calls; } refusing;

static enum hd_err refuse_run(struct hd_device *device, const struct hd_program *program,
	enum hd_run_phase phase, const struct hd_bind *bind, uint64_t *token, struct hd_diag *diag)
{
	return bind->rows && atomic_fetch_sub(&refusing.calls, 1) <= 0 ?
		hd_fail(diag, HD_E_BUG, "this device stops here") :
		refusing.under->run(device, program, phase, bind, token, diag);
}

static void set_ops(struct hd_rig *rig, uint32_t only, const struct hd_device_ops *ops)
{
	for (uint32_t d = 0; d < rig->worker->spec.ndevices; d++)
		if (only == d || only == rig->worker->spec.ndevices)
			rig->worker->rank[d].device->ops = ops;
}

static void a_device_that_stops_within_a_turn_stops_all(void **state)
{
	static const int calls[] = { 3, 40 };

	(void)state;
	for (uint32_t d = 0; d <= 4; d++)
		for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
			struct hd_step_record record;
			struct hd_diag diag = { "" };
			struct hd_rig rig, still;
			hd_rig_open_staged(&rig, along, 16, 8, NULL, &grid[6]);
			hd_rig_open(&still, along, 16, 8, NULL, 1);
			refusing.under = rig.worker->rank[0].device->ops;
			refusing.ops = *refusing.under;
			refusing.ops.run = refuse_run;
			atomic_store(&refusing.calls, calls[c]);
			set_ops(&rig, d, &refusing.ops);
			CHECK(hd_worker_step(rig.worker, true, &record, &diag) == HD_E_BUG &&
				strstr(diag.text, "this device stops here"), "device %u: %s", d, diag.text);
			set_ops(&rig, d, refusing.under);
			assert_true(hd_hash_same(hd_rig_step(&rig).digest, hd_rig_step(&still).digest));
			hd_rig_close(&still);
			hd_rig_close(&rig);
		}
}

/* Arenas are dealt to the devices of a rank, and given back with the plan; each device updates its chunks. */
static void memory_is_dealt_to_the_devices_of_a_rank(void **state)
{
	static const struct hd_rig_kind wide = { "gpipe", 1, 1, 1, false, 4 }, one = { "gpipe", 1, 1, 1,
		false, 1 };
	uint64_t bytes[2][4] = { { 0 } };
	bool owns[4] = { false };
	struct hd_rig rig;

	(void)state;
	for (int w = 0; w < 2; w++) {
		hd_rig_open_staged(&rig, along, 16, 8, NULL, w ? &wide : &one);
		const struct hd_pipe *pipe = hd_worker_work(rig.worker)->pipe;
		for (uint32_t d = 0; d < pipe->ndevices; d++)
			bytes[w][d] = hd_pipe_bytes(pipe, d);
		for (uint32_t c = 0; w && c < rig.task->layout.nchunks; c++)
			owns[rig.worker->parts->part->owner[c]] = true;
		hd_rig_close(&rig);
	}
	for (uint32_t d = 0; d < 4; d++)
		CHECK(bytes[1][d] == bytes[1][0] && bytes[1][d] < bytes[0][0] / 2 &&
		bytes[1][d] >= bytes[0][0] / 4,
			"device %u: %llu of %llu bytes", d, (unsigned long long)bytes[1][d],
			(unsigned long long)bytes[0][0]);
	assert_true(owns[0]);
}

static void plans_that_do_not_fit_are_refused_by_name(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_plan plan;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, tied, 16, 8, NULL, 4);
	const struct hd_rig_kind three = { "1f1b", 1, 1, 1, false, 3 }, eight = { "1f1b", 2, 1, 1, false, 4 };
	assert_int_equal(hd_rig_staged(rig.worker, rig.task, &three, &rig.arena, &plan, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "3 devices of a rank share the model's shards, and there are 4"), "%s",
		diag.text);
	assert_int_equal(hd_rig_staged(rig.worker, rig.task, &eight, &rig.arena, &plan, &diag), HD_OK);
	diag.text[0] = 0;
	assert_int_equal(hd_worker_adopt(rig.worker, &plan, &diag), HD_E_BADPLAN);
	CHECK(strstr(diag.text, "the plan is for 8 devices, the worker has 4"), "%s", diag.text);
	plan.tensor = 3;
	diag.text[0] = 0;
	assert_int_equal(hd_worker_adopt(rig.worker, &plan, &diag), HD_E_BADPLAN);
	CHECK(strstr(diag.text, "there are 4 (model.shards)"), "%s", diag.text);
	hd_rig_step(&rig);
	hd_rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tied_transformer_on_grids),
		cmocka_unit_test(sequence_shards_on_grids),
		cmocka_unit_test(other_schedules_and_ragged_steps),
		cmocka_unit_test(delayed_updates),
		cmocka_unit_test(steps_that_overlap),
		cmocka_unit_test(grids_change_between_steps),
		cmocka_unit_test(a_failed_step_ends_on_all_devices),
		cmocka_unit_test(a_device_that_stops_within_a_turn_stops_all),
		cmocka_unit_test(memory_is_dealt_to_the_devices_of_a_rank),
		cmocka_unit_test(plans_that_do_not_fit_are_refused_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
