/* "The step loop allocates nothing" (worker.h), from the first step on, across a short step and
 * the border of a data epoch, with and without a digest: ranks, their teams and the readers
 * together take nothing from the heap and give nothing back. */
#include <stdlib.h>

#include "exec/testing.h"
#include "tests/guard_malloc.inc.h"

enum { NSTEPS = 7 };                      /* 61 samples in batches of 26: steps 2 and 5 are short */

static const struct { const char *name, *model; } models[] = { { "mlp", hd_rig_mlp }, { "lenet", hd_rig_lenet }, { "gpt", hd_rig_gpt } };

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
	static const char *const optims[] = { "optim: {kind: adamw}", "optim: {kind: momentum}", "optim: {kind: lamb}" };

	(void)state;
	for (size_t m = 0; m < 3; m++)
		for (uint32_t ndevices = 1; ndevices <= 3; ndevices += 2)
			for (size_t o = 0; o < sizeof optims / sizeof *optims; o++) {
				struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = ndevices, .kernels = HD_KERNELS_PORTABLE };
				uint64_t n = count_steps(models[m].model, optims[o], spec);
				CHECK(n == 0, "%s, %u devices: %llu calls of the allocator in %d steps", models[m].name, ndevices,
					(unsigned long long)n, NSTEPS);
			}
}

/* oneDNN keeps books of its own when it runs a primitive; that is all there may be, so the
 * number grows with the steps' ops and with nothing else. */
static void with_library_kernels_only_the_library_allocates(void **state)
{
	(void)state;
	for (size_t m = 0; m < 3; m++) {
		struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 1, .nthreads = 1, .kernels = HD_KERNELS_LIBRARY };
		print_message("%s with library kernels: %llu calls of the allocator in %d steps\n", models[m].name,
			(unsigned long long)count_steps(models[m].model, "", spec), NSTEPS);
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
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 2, .nthreads = 1, .kernels = HD_KERNELS_PORTABLE, .recorder = recorder };
	uint64_t n = count_steps(hd_rig_mlp, "", spec);
	hd_recorder_close(recorder);
	assert_int_equal(hd_fs_remove_tree(&fs, folder, NULL), HD_OK);
	assert_int_equal(n, 0);
}

static void the_guard_counts(void **state)
{
	(void)state;
	hd_guard_arm();
	void *volatile at = malloc(100);
	free(at);
	assert_int_equal(hd_guard_disarm(), 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_guard_counts),
		cmocka_unit_test(no_step_with_portable_kernels_allocates),
		cmocka_unit_test(with_library_kernels_only_the_library_allocates),
		cmocka_unit_test(a_recorder_allocates_nothing_either),
	};
	if (!HD_GUARD_WORKS) {
		print_message("skipped: sanitizers interpose the allocator themselves\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
