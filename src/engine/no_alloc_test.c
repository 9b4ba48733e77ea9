/* "The step loop allocates nothing" (worker.h), from the first step on, across a short step and
 * the border of a data epoch, with and without a digest: ranks, their teams and the readers
 * together take nothing from the heap and give nothing back. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/testing_stages.h"
#include "tests/guard_malloc.inc.h"

enum { NSTEPS = 7 };                      /* 61 samples in batches of 26: steps 2 and 5 are short */

static const struct { const char *name, *model; } models[] = { { "mlp", hd_rig_mlp },
	{ "lenet", hd_rig_lenet }, { "gpt", hd_rig_gpt } };

static uint64_t count_steps(const char *model, const char *more, struct hd_worker_spec spec)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct hd_rig rig;
	enum hd_err err = HD_OK;

	hd_rig_open_on(&rig, model, 26, 13, more, &spec);
	hd_guard_arm();
	for (int i = 0; i < NSTEPS && !err; i++)
		err = hd_worker_step(rig.worker, i % 2 == 0, &record, &diag);
	uint64_t n = hd_guard_disarm();
	CHECK(!err, "%s", diag.text);
	hd_rig_close(&rig);
	return n;
}

static void no_step_with_portable_kernels_allocates(void **state)
{
	static const char *const optims[] = { "optim: {kind: adamw}", "optim: {kind: momentum}",
		"optim: {kind: lamb, ema: {decay: 0.9}}" };

	(void)state;
	for (size_t m = 0; m < 3; m++)
		for (uint32_t ndevices = 1; ndevices <= 3; ndevices += 2)
			for (size_t o = 0; o < sizeof optims / sizeof *optims; o++) {
				struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices,
					.nthreads = ndevices, .kernels = HD_KERNELS_PORTABLE };
				uint64_t n = count_steps(models[m].model, optims[o], spec);
				CHECK(n == 0, "%s, %u devices: %llu calls of the allocator in %d steps",
					models[m].name, ndevices,
					(unsigned long long)n, NSTEPS);
			}
}

/* Convolutions that are neither narrow nor go in blocks are what a job leaves to the library. */
static const char convolves[] =
	"model: {use: builtin:lenet, args: {height: 12, width: 12}}\ndata: {kind: synthetic, count: 61}\n";

/* oneDNN keeps books of its own when it runs a primitive. That is all there may be: our code calls the
 * allocator not once, and the same steps make the same number of calls each time. */
static void with_library_kernels_only_the_library_allocates(void **state)
{
	static const char *const all[] = { hd_rig_mlp, hd_rig_lenet, hd_rig_gpt, convolves };

	(void)state;
	for (size_t m = 0; m < sizeof all / sizeof *all; m++) {
		struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 1, .nthreads = 1,
			.kernels = HD_KERNELS_LIBRARY };
		uint64_t n = count_steps(all[m], "", spec), own = hd_guard_own(),
			again = count_steps(all[m], "", spec);
		CHECK(own == 0 && hd_guard_own() == 0,
			"model %zu: %llu calls of the allocator by our code in %d steps", m,
			(unsigned long long)own, NSTEPS);
		CHECK(n == again, "model %zu: %llu calls of the allocator in %d steps, then %llu", m,
			(unsigned long long)n, NSTEPS,
			(unsigned long long)again);
		CHECK((n > 0) == (all[m] == convolves && hd_device_has_library()),
			"model %zu: %llu calls of the allocator", m, (unsigned long long)n);
	}
}

static void a_recorder_allocates_nothing_either(void **state)
{
	char folder[] = "/tmp/hd_no_alloc_XXXXXX";
	struct hd_recorder *recorder = NULL;
	struct hd_diag diag = { "" };
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	assert_non_null(mkdtemp(folder));
	struct hd_recorder_spec rec = { .fs = &fs, .folder = folder, .nranks = 2, .nslots = 1024 };
	CHECK(hd_recorder_open(&recorder, &rec, &diag) == HD_OK, "%s", diag.text);
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 2, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE, .recorder = recorder };
	uint64_t n = count_steps(hd_rig_mlp, "", spec);
	hd_recorder_close(recorder);
	assert_int_equal(hd_fs_remove_tree(&fs, folder, NULL), HD_OK);
	assert_int_equal(n, 0);
}

/* Stages, and ranks whose devices share their shards. */
static void no_step_of_stages_allocates(void **state)
{
	static const char shards[] =
		"model: {use: builtin:gpt, shards: 4, args: {layers: 2, width: 16, heads: 4, "
		"context: 8, dropout: 0.1}}\ndata: {kind: synthetic, count: 61}\n";
	static const struct hd_rig_kind kinds[] = { { "1f1b", 2, 1, 1, false, 1 }, { "1f1b", 1, 1, 2,
		false, 2 },
		{ "zb-h1", 2, 1, 1, false, 2 }, { "gpipe", 2, 1, 1, HD_KEEPS_AWAY, 1 } };

	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		struct hd_step_record record;
		struct hd_diag diag = { "" };
		struct hd_rig rig;
		enum hd_err err = HD_OK;
		hd_rig_open_staged(&rig, shards, 26, 13, NULL, &kinds[k]);
		hd_guard_arm();
		for (int i = 0; i < NSTEPS && !err; i++)
			err = hd_worker_step(rig.worker, i % 2 == 0, &record, &diag);
		const uint64_t n = hd_guard_disarm();
		CHECK(!err && n == 0, "%s: %llu calls of the allocator %s", kinds[k].name,
			(unsigned long long)n,
			diag.text);
		hd_rig_close(&rig);
	}
}

enum { MOST_ROOTS = 16 };

/* One step of two workers, bytes moved by memcpy: the first sums all buckets. */
static enum hd_err step_of_two(struct hd_worker *w[2], const struct hd_layout *layout, uint8_t *bytes,
	struct hd_diag *diag)
{
	struct hd_tnode root[MOST_ROOTS];
	struct hd_step_record record;
	enum hd_err err = HD_OK;
	uint32_t n = 0;

	for (uint32_t k = 0; k < 2 && !err; k++)
		err = hd_dist_begin(w[k], true, diag);
	for (uint32_t k = 0; k < 2 && !err; k++)
		err = hd_dist_compute(w[k], diag);
	for (uint32_t k = 0; k < 2 && !err; k++) {
		hd_dist_leaves_get(w[k], 0, bytes);
		err = hd_dist_leaves_put(w[!k], HD_DIST_NOBODY, bytes, hd_dist_leaves_bytes(w[k],
			hd_dist_nleaves(w[k], 0)), diag);
		for (uint32_t i = 0; i < hd_dist_nroots(w[k], 0); i++)
			root[n++] = hd_dist_root(w[k], 0, i);
	}
	if (!err)
		err = hd_dist_operands(w[0], root, NULL, n, diag);
	for (uint32_t b = 0; b < hd_layout_nbuckets(layout) && !err; b++) {
		uint64_t len = hd_layout_bucket(layout, b).len * sizeof(float);
		const float *operand[2 * MOST_ROOTS];
		uint32_t own = hd_dist_nroots(w[0], 0), piece, npieces = hd_layout_pieces(layout, b, &piece);
		assert_in_range(npieces, 0, 1);
		for (uint32_t i = 0; i < n * (1 + npieces); i++) {
			const uint32_t run = i < n ? b : piece, from = i % n;
			operand[i] = from < own ? hd_dist_root_at(w[0], 0, from, run) :
				hd_dist_place(w[0], i);
			if (from >= own)
				memcpy(hd_dist_place(w[0], i), hd_dist_root_at(w[1], 0, from - own, run),
					hd_layout_run(layout, run).len * sizeof(float));
		}
		err = hd_dist_fold(w[0], &(struct hd_dist_fold){ b, operand }, 1, diag);
		memcpy(hd_dist_sum_at(w[1], b), hd_dist_sum_at(w[0], b), len);
		if (!err)
			err = hd_dist_arrived(w[1], &b, 1, diag);
	}
	for (uint32_t k = 0; k < 2 && !err; k++) {
		(void)hd_dist_sums_digest(w[k]);
		err = hd_dist_finish(w[k], &record, diag);
	}
	return err;
}

/* Also right after a change of the view. */
static void no_step_of_two_workers_allocates(void **state)
{
	static const uint32_t counts[2][4] = { { 3, 4, 5, 1 }, { 0, 6, 3, 4 } };

	(void)state;
	for (size_t m = 0; m < 3; m++) {
		struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 2, .nthreads = 1,
			.kernels = HD_KERNELS_PORTABLE };
		struct hd_plan *plan[2];
		struct hd_diag diag = { "" };
		struct hd_worker *w[2];
		struct hd_rig rig;
		enum hd_err err = HD_OK;
		hd_rig_open_on(&rig, models[m].model, 26, 13, "optim: {kind: lamb}", &spec);
		w[0] = rig.worker;
		assert_int_equal(hd_worker_create(&w[1], rig.task, &spec, &diag), HD_OK);
		struct hd_plan_job pj = hd_worker_plan_job(w[0]);
		uint8_t *bytes = hd_arena_take(&rig.arena, hd_dist_leaves_bytes(w[0], 13), 1);
		for (uint32_t i = 0; i < 2; i++) {
			plan[i] = hd_arena_take(&rig.arena, 1, sizeof **plan);
			CHECK(hd_plan_data(plan[i], &pj, 4, counts[i], &rig.arena, &diag) == HD_OK, "%s",
				diag.text);
			plan[i]->worker[2] = plan[i]->worker[3] = 1;
			for (uint16_t k = 0; k < 2; k++)
				CHECK(hd_dist_prepare(w[k],
					&(struct hd_dist_view){ .plan = plan[i],
						.worker = k, .nplaces = 2 * MOST_ROOTS },
						&diag) ==
					HD_OK,
					"%s", diag.text);
			hd_guard_arm();
			hd_dist_adopt(w[0]);
			hd_dist_adopt(w[1]);
			for (int s = 0; s < NSTEPS && !err; s++)
				err = step_of_two(w, &rig.task->layout, bytes, &diag);
			uint64_t n = hd_guard_disarm();
			CHECK(!err, "%s", diag.text);
			CHECK(n == 0, "%s, plan %u: %llu calls of the allocator in %d steps", models[m].name,
				i, (unsigned long long)n, NSTEPS);
			assert_true(hd_hash_same(hd_worker_digest(w[0]), hd_worker_digest(w[1])));
		}
		hd_worker_destroy(w[1]);
		hd_rig_close(&rig);
	}
}

static void the_guard_counts(void **state)
{
	(void)state;
	hd_guard_arm();
	void *volatile at = malloc(100);
	free(at);
	assert_int_equal(hd_guard_disarm(), 2);
	assert_int_equal(hd_guard_own(), 2);
	hd_guard_arm();
	FILE *volatile file = fopen("/dev/null", "r");             /* the C library asks for it */
	assert_non_null(file);
	uint64_t n = hd_guard_disarm();
	assert_int_equal(fclose(file), 0);
	assert_true(n > 0);
	assert_int_equal(hd_guard_own(), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_guard_counts),
		cmocka_unit_test(no_step_with_portable_kernels_allocates),
		cmocka_unit_test(no_step_of_two_workers_allocates),
		cmocka_unit_test(with_library_kernels_only_the_library_allocates),
		cmocka_unit_test(a_recorder_allocates_nothing_either),
		cmocka_unit_test(no_step_of_stages_allocates),
	};
	if (!HD_GUARD_WORKS) {
		print_message("skipped: sanitizers interpose the allocator themselves\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
