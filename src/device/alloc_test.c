/* The step loop never allocates: run() of every phase, folds, sums and updates take nothing
 * from the heap, and give nothing back, once a program is loaded. */
#include "device/optim.h"

#include "device/testing.h"
#include "tests/guard_malloc.inc.h"

static uint64_t count_step(struct hd_stage *stage, struct hd_device *device)
{
	const struct hd_step_scalars scalars = { .optim = { .kind = HD_OPTIM_SGD }, .lr = 0.1f, .scale = 1,
		.clip = 1 };
	const struct hd_update update = { .kind = HD_OPTIM_SGD, .param = stage->params, .grad = stage->grad,
		.len = stage->layout.elems, .scalars = &scalars };
	double partial[64];
	const struct hd_flat_join join = { stage->grad, stage->grad, stage->params };
	const struct hd_reduction reduction = { &join, 1, stage->grad, stage->layout.segment,
		stage->layout.nsegments, partial };
	uint64_t token;

	hd_guard_arm();
	for (int i = 0; i < 3; i++) {
		hd_stage_run(stage, device, HD_RUN_F);
		hd_stage_run(stage, device, HD_RUN_B);
		hd_stage_run(stage, device, HD_RUN_F);
		hd_stage_run(stage, device, HD_RUN_I);
		hd_stage_run(stage, device, HD_RUN_W);
		(void)device->ops->reduce(device, &reduction, &token, NULL);
		(void)device->ops->add(device, stage->grad, stage->grad, stage->params, stage->layout.elems,
			&token, NULL);
		(void)device->ops->update(device, &update, &token, NULL);
	}
	return hd_guard_disarm();
}

static uint64_t count_model(const char *kind, enum hd_kernels kernels, const struct hd_stage_model *model,
	uint32_t nthreads)
{
	const struct hd_device_spec spec = { .nthreads = nthreads, .kernels = kernels };
	struct hd_device *device = NULL;
	struct hd_stage stage;

	hd_stage_make(&stage, model, &(uint64_t){ 5 }, 1);
	assert_int_equal(hd_device_create(&device, kind, &spec, NULL), HD_OK);
	hd_stage_load(&stage, device);
	CHECK(stage.layout.nsegments <= 64, "room for %u segments", stage.layout.nsegments);
	uint64_t count = count_step(&stage, device);
	hd_device_destroy(device);
	hd_stage_finish(&stage);
	return count;
}

static void no_step_of_our_own_kernels_allocates(void **state)
{
	static const char *const kinds[] = { "cpu", "reference", "null" };
	(void)state;

	for (uint32_t k = 0; k < 3; k++)
		for (uint32_t m = 0; m < HD_STAGE_NMODELS; m++)
			for (uint32_t nthreads = 1; nthreads <= 3; nthreads++) {
				uint64_t n = count_model(kinds[k], HD_KERNELS_PORTABLE, &hd_stage_models[m],
					nthreads);
				CHECK(n == 0, "%s, %s, %u threads: %llu calls of the allocator", kinds[k],
					hd_stage_models[m].name, nthreads,
					(unsigned long long)n);
			}
}

/* What a library does inside its own calls is not ours to forbid; it is printed. */
/* The library asks for memory as it runs; our code around it does not. */
static void what_the_library_takes_our_code_does_not(void **state)
{
	uint64_t taken = 0;

	(void)state;
	for (uint32_t m = 0; m < HD_STAGE_NMODELS; m++) {
		uint64_t n = count_model("cpu", HD_KERNELS_LIBRARY, &hd_stage_models[m], 1),
			own = hd_guard_own();
		CHECK(own == 0, "%s: %llu of %llu calls of the allocator are our code's",
			hd_stage_models[m].name, (unsigned long long)own,
			(unsigned long long)n);
		taken += n;
	}
	assert_int_equal(taken > 0, hd_device_has_library());
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
		cmocka_unit_test(no_step_of_our_own_kernels_allocates),
		cmocka_unit_test(what_the_library_takes_our_code_does_not),
	};
	if (!HD_GUARD_WORKS) {
		print_message("skipped: sanitizers interpose the allocator themselves\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
