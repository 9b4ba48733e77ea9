#include "engine/op_times.h"

#include <math.h>
#include <stdatomic.h>

#include "device/peak.h"
#include "engine/testing.h"

/* Timing ops must change nothing that counts, and count every call of a step. */

enum { BATCH = 26, VNS = 13 };

static void times_of(struct hd_rig *rig, bool cold, struct hd_op_times *times)
{
	struct hd_diag diag = { "" };

	const struct hd_op_timing how = { .repeat = 2, .cold = cold };
	CHECK(hd_worker_op_times(rig->worker, &how, &rig->arena, times, &diag) == HD_OK, "%s", diag.text);
}

static void steps_have_the_same_bits_whether_ops_were_timed_or_not(void **state)
{
	static const char *const models[] = { hd_rig_mlp, hd_rig_lenet, hd_rig_gpt };

	(void)state;
	for (int m = 0; m < 3; m++) {
		struct hd_op_times times;
		struct hd_rig plain, timed;
		hd_rig_open(&plain, models[m], BATCH, VNS, NULL, 1);
		hd_rig_open(&timed, models[m], BATCH, VNS, NULL, 1);
		for (int s = 0; s < 4; s++) {             /* step 2 is short */
			times_of(&timed, s % 2 != 0, &times);
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

static void the_work_of_all_ops_is_that_of_the_step(void **state)
{
	static const char *const models[] = { hd_rig_mlp, hd_rig_lenet };
	static const uint32_t waves[] = { 1, 2, 5, 13 };

	(void)state;
	for (int m = 0; m < 2; m++)
		for (int i = 0; i < 8; i++) {
			struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 1, .nthreads = 1,
				.kernels = HD_KERNELS_PORTABLE, .wave = waves[i % 4] };
			struct hd_op_times times;
			struct hd_rig rig;
			double flops = 0, want = 0, sum_s = 0;
			hd_rig_open_on(&rig, models[m], BATCH, VNS, NULL, &spec);
			times_of(&rig, i >= 4, &times);
			for (int phase = HD_RUN_F; phase <= HD_RUN_B; phase++)
				want += VNS * hd_program_cost(&rig.worker->stage->train,
					(enum hd_run_phase)phase, BATCH / VNS).flops;
			for (uint32_t t = 0; t < times.n; t++) {
				flops += (double)times.at[t].count * times.at[t].flops;
				sum_s += (double)times.at[t].count * times.at[t].best_s;
				CHECK(times.at[t].best_s > 0, "row %u was not timed", t);
			}
			CHECK(hd_op_times_sum(&times) == sum_s, "the sum is not that of the rows");
			CHECK(times.wave == waves[i % 4], "a wave of %u, not %u", times.wave, waves[i % 4]);
			CHECK(fabs(flops - want) <= 1e-9 * want,
				"model %d, waves of %u: %.17g FLOP in all rows, %.17g in a step", m, waves[i],
				flops, want);
			hd_rig_close(&rig);
		}
}

/* The gradient of a parameter, 2 samples a virtual node: what is read, and the sum over a wave once. */
struct moved { const char *model; uint16_t op; uint64_t elems; double read; };

static void check_moved(const struct moved *m, uint32_t wave)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 1, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE, .wave = wave };
	const double want = 4 * (m->read + (double)m->elems / wave);
	struct hd_op_times times;
	struct hd_rig rig;
	uint32_t seen = 0;

	hd_rig_open_on(&rig, m->model, BATCH, VNS, NULL, &spec);
	times_of(&rig, false, &times);
	for (uint32_t t = 0; t < times.n; t++) {
		const struct hd_call *call = times.at[t].call;
		if (call->op != m->op || call->out[0].elems != m->elems)
			continue;
		CHECK(fabs(times.at[t].bytes - want) < 1e-3, "op %u, waves of %u: %.1f bytes, not %.1f",
			m->op, wave, times.at[t].bytes, want);
		seen++;
	}
	assert_int_equal(seen, 1);
	hd_rig_close(&rig);
}

/* Of 784 pixels to 33 numbers; of a table of 31 ids, which is not read, of 12 numbers at 8 positions. */
static void of_a_gradient_the_bytes_count_that_must_move(void **state)
{
	static const struct moved row[] = {
		{ hd_rig_mlp, HD_OP_MATMUL, 784 * 33, 2 * 784 + 2 * 33 },
		{ "model: {use: builtin:llama, args: {layers: 1, width: 12, heads: 2, context: 8, vocab: 31}}\n"
		  "data: {kind: synthetic, count: 61}\n", HD_OP_EMBED_DW, 31 * 12, 2 * 8 * 12 + 2 * 8 },
	};
	static const uint32_t waves[] = { 1, 5, 13 };

	(void)state;
	for (int i = 0; i < 6; i++)
		check_moved(&row[i % 2], waves[i / 2]);
}

/* A binary tree of V leaves has V - 1 joins, on one device all of them folds. */
static void one_device_adds_a_gradient_less_than_it_has_virtual_nodes(void **state)
{
	(void)state;
	for (uint32_t vns = 1; vns <= 13; vns++) {
		struct hd_fold_times times;
		struct hd_diag diag = { "" };
		struct hd_rig rig;
		hd_rig_open(&rig, hd_rig_mlp, 2 * vns, vns, NULL, 1);
		CHECK(hd_worker_fold_times(rig.worker, 2, &times, &diag) == HD_OK, "%s", diag.text);
		CHECK(times.nadds == vns - 1 && times.best_s > 0, "%u virtual nodes: %u additions", vns,
			(unsigned)times.nadds);
		hd_rig_close(&rig);
	}
}

static void two_devices_are_refused(void **state)
{
	const struct hd_op_timing how = { .repeat = 1 };
	struct hd_diag diag = { "" };
	struct hd_op_times times;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, BATCH, VNS, NULL, 2);
	CHECK(hd_worker_op_times(rig.worker, &how, &rig.arena, &times, &diag) == HD_E_REFUSED, "%s",
		diag.text);
	hd_rig_close(&rig);
}

static void without_a_plan_nothing_is_timed(void **state)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 1, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };
	const struct hd_op_timing how = { .repeat = 1 };
	struct hd_diag diag[3] = { { "" } };
	struct hd_fold_times folds;
	struct hd_op_times times;
	struct hd_rig rig;
	double norm_s = 0;

	(void)state;
	hd_rig_begin(&rig, hd_rig_mlp, BATCH, VNS, NULL);
	CHECK(hd_task_create(&rig.task, rig.job, &rig.fs, &diag[0]) == HD_OK &&
		hd_worker_create(&rig.worker, rig.task, &spec, &diag[0]) == HD_OK, "%s", diag[0].text);
	assert_int_equal(hd_worker_op_times(rig.worker, &how, &rig.arena, &times, &diag[0]), HD_E_INVAL);
	assert_int_equal(hd_worker_fold_times(rig.worker, 1, &folds, &diag[1]), HD_E_INVAL);
	assert_int_equal(hd_worker_norm_time(rig.worker, 1, &norm_s, &diag[2]), HD_E_INVAL);
	for (int i = 0; i < 3; i++)
		CHECK(strstr(diag[i].text, "the worker has none"), "%s", diag[i].text);
	hd_rig_close(&rig);
}

/* A machine whose clock changes: whatever is timed takes one tick, and a tick is longer from time to time. */
static _Atomic int64_t ticks;

static int64_t changing_now_ns(struct hd_clock *clock)
{
	const int64_t n = atomic_fetch_add(&ticks, 1);

	(void)clock;
	/* 1 us, and 5 us through the last nine of sixty-one */
	return n * 1000 + (n / 61 * 9 + (n % 61 > 52 ? n % 61 - 52 : 0)) * 4000;
}

/* Every run takes as long as the measurement of the peak beside it, which has the operations of
 * HD_PEAK_BRIEF_NS at `about`: whatever the tick is, an op has its share of those. */
static void a_share_of_the_peak_is_that_of_the_moment(void **state)
{
	static const struct hd_clock_ops changing = { "changing", changing_now_ns, NULL, NULL };
	const double about = 1e10, could = about * HD_PEAK_BRIEF_NS * 1e-9;
	const struct hd_op_timing how = { .repeat = 9, .cold = true, .path = "portable", .about = about,
		.clock = { &changing } };
	struct hd_diag diag = { "" };
	struct hd_op_times times;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, BATCH, VNS, NULL, 1);
	CHECK(hd_worker_op_times(rig.worker, &how, &rig.arena, &times, &diag) == HD_OK, "%s", diag.text);
	CHECK(times.n > 0 && times.wave == VNS, "%u rows, a wave of %u", times.n, times.wave);
	for (uint32_t t = 0; t < times.n; t++) {
		/* once a wave, or for all its virtual nodes */
		const double each = times.at[t].peak_flops, of = times.at[t].count >= VNS ? VNS : 1;
		CHECK(fabs(each * of / could - 1) < 1e-3, "row %u: %g operations at the peak, not %g", t,
			each, could / of);
	}
	CHECK(fabs(times.peak_most / times.peak_least - 5) < 1e-6, "peaks from %g to %g", times.peak_least,
		times.peak_most);
	hd_rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_have_the_same_bits_whether_ops_were_timed_or_not),
		cmocka_unit_test(the_work_of_all_ops_is_that_of_the_step),
		cmocka_unit_test(of_a_gradient_the_bytes_count_that_must_move),
		cmocka_unit_test(one_device_adds_a_gradient_less_than_it_has_virtual_nodes),
		cmocka_unit_test(a_share_of_the_peak_is_that_of_the_moment),
		cmocka_unit_test(two_devices_are_refused),
		cmocka_unit_test(without_a_plan_nothing_is_timed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
