#include "base/alloc.h"
#include "sys/failpoint.h"
#include "engine/testing.h"

/* Every failpoint of a step, on one device and several: what fails before the update leaves
 * the state of the step's beginning, and the step can be tried again; what fails in the
 * update refuses every further step until the state is overwritten. */

static const struct { const char *name; enum hd_failpoint point; bool torn; } points[] = {
	{ "step.begin",         HD_FP_STEP_BEGIN,         false },
	{ "step.seal",          HD_FP_STEP_SEAL,          false },
	{ "step.commit",        HD_FP_STEP_COMMIT,        false },
	{ "step.update.before", HD_FP_STEP_UPDATE_BEFORE, false },
	{ "step.update.after",  HD_FP_STEP_UPDATE_AFTER,  true },
};
enum { NPOINTS = sizeof points / sizeof *points };

static void every_failpoint_of_a_step_is_in_the_table_of_this_test(void **state)
{
	uint32_t n = 0;

	(void)state;
	for (int p = 0; p < HD_FP_COUNT; p++)
		n += !strncmp(hd_failpoint_name((enum hd_failpoint)p), "step.", 5);
	assert_int_equal(n, NPOINTS);
}

#ifdef HD_FAILPOINTS
static void arm(const char *name, const char *error)
{
	char spec[64];
	struct hd_diag diag = { "" };

	snprintf(spec, sizeof spec, "%s:err=%s@1", name, error);
	CHECK(hd_failpoint_arm(name[0] ? spec : "", 1, &diag) == HD_OK, "%s", diag.text);
}

static void a_failed_step_leaves_the_state_of_its_beginning(void **state)
{
	static const char *const errors[] = { "EIO", "ENOSPC", "ENOMEM" },
		*const optims[] = { "optim: {kind: adamw}", "optim: {kind: lamb}" };

	(void)state;
	for (uint32_t ndevices = 1; ndevices <= 5; ndevices += 2)
		for (size_t k = 0; k < 2 * NPOINTS; k++) {
			const size_t p = k / 2;
			struct hd_step_record want[4], record;
			struct hd_diag diag = { "" };
			struct hd_rig_bytes bytes;
			struct hd_rig rig;
			hd_rig_open(&rig, hd_rig_mlp, 26, 13, optims[k % 2], ndevices);
			hd_rig_step(&rig);
			hd_rig_copy(&rig, &bytes, &rig.arena);
			struct hd_hash before = hd_worker_digest(rig.worker);
			for (int i = 0; i < 4; i++)
				want[i] = hd_rig_step(&rig);
			hd_rig_paste(&rig, &bytes, HD_NONE);
			arm(points[p].name, errors[p % 3]);
			enum hd_err err = hd_worker_step(rig.worker, true, &record, &diag);
			CHECK(err != HD_OK && diag.text[0], "%s on %u devices did not fail", points[p].name,
				ndevices);
			CHECK(hd_failpoint_hits(points[p].point) >= 1, "%s was not reached", points[p].name);
			arm("", "");
			assert_int_equal(hd_worker_at(rig.worker), 1);
			if (points[p].torn) {
				CHECK(hd_worker_step(rig.worker, true, &record, &diag) == HD_E_INTEGRITY,
					"a torn state was trained on");
				hd_rig_paste(&rig, &bytes, HD_NONE);
			} else
				CHECK(hd_hash_same(hd_worker_digest(rig.worker), before),
					"%s on %u devices changed the state", points[p].name, ndevices);
			for (int i = 0; i < 4; i++)
				CHECK(hd_hash_same(hd_rig_step(&rig).digest, want[i].digest),
					"%s on %u devices: step %d after it differs", points[p].name,
					ndevices, i + 1);
			hd_rig_close(&rig);
		}
}

/* A plan moves work, not bits: it cannot mend what an update left half-way. */
static void a_new_plan_does_not_mend_a_torn_state(void **state)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, 2);
	arm("step.update.after", "EIO");
	assert_int_not_equal(hd_worker_step(rig.worker, false, &record, &diag), HD_OK);
	arm("", "");
	assert_int_equal(hd_worker_adopt(rig.worker, &rig.plan, &diag), HD_OK);
	assert_int_equal(hd_worker_step(rig.worker, false, &record, &diag), HD_E_INTEGRITY);
	hd_rig_close(&rig);
}
#endif

/* Any request of adoption may fail: a first one leaves no plan, said in words; a later one leaves the plan
 * that is there. */
static void a_plan_that_could_not_be_adopted_changes_nothing(void **state)
{
	struct hd_rig rig, whole;
	struct hd_plan other;
	uint32_t failed = 0;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, 2);
	hd_rig_open(&whole, hd_rig_mlp, 26, 13, NULL, 1);
	struct hd_plan_job pj = hd_plan_job_whole(13, rig.task->layout.nchunks);
	assert_int_equal(hd_plan_data(&other, &pj, 2, (uint32_t[]){ 1, 12 }, &rig.arena, NULL), HD_OK);
	for (uint64_t n = 1; n < 200; n++) {
		struct hd_diag diag = { "" };
		hd_alloc_arm(n);
		enum hd_err err = hd_worker_adopt(rig.worker, &other, &diag);
		hd_alloc_arm(0);
		if (!err)
			break;
		failed++;
		assert_ptr_equal(rig.worker->parts->part->plan, &rig.plan);
		assert_true(hd_hash_same(hd_rig_step(&rig).digest, hd_rig_step(&whole).digest));
	}
	assert_true(failed > 0);
	assert_ptr_equal(rig.worker->parts->part->plan, &other);
	assert_true(hd_hash_same(hd_rig_step(&rig).digest, hd_rig_step(&whole).digest));
	hd_rig_close(&whole);
	hd_rig_close(&rig);
}

static void a_worker_without_a_plan_says_so(void **state)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 1, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_begin(&rig, hd_rig_mlp, 26, 13, NULL);
	assert_int_equal(hd_task_create(&rig.task, rig.job, &rig.fs, &diag), HD_OK);
	assert_int_equal(hd_worker_create(&rig.worker, rig.task, &spec, &diag), HD_OK);
	assert_int_equal(hd_worker_step(rig.worker, false, &record, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "no plan"), "%s", diag.text);
	hd_rig_close(&rig);
}

static void plans_adopted_again_and_again_take_no_more_memory(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, 3);
	size_t used = rig.worker->arena.used_bytes;
	for (int i = 0; i < 20; i++)
		assert_int_equal(hd_worker_adopt(rig.worker, &rig.plan, &diag), HD_OK);
	assert_int_equal(rig.worker->arena.used_bytes, used);
	hd_rig_close(&rig);
}

/* A reader's failure is a rank's, in the middle of the list: the others still meet. */
static const struct hd_reader_ops *under;
static bool broken;
static enum hd_err broken_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	if (broken && index % 5 == 0)
		return hd_fail(diag, HD_E_IO, "the disk is gone at sample %llu", (unsigned long long)index);
	return under->read(set, split, index, out, diag);
}
static void broken_destroy(struct hd_dataset *set) { under->destroy(set); }
static struct hd_reader_ops breaks = { .name = "breaks", .about = "another reader, on a bad disk",
	.read = broken_read, .destroy = broken_destroy };

static void a_read_that_fails_ends_the_step_with_its_message(void **state)
{
	struct hd_step_record record;

	(void)state;
	for (uint32_t ndevices = 1; ndevices <= 5; ndevices += 2) {
		struct hd_diag diag = { "" };
		struct hd_rig rig, whole;
		hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, ndevices);
		hd_rig_open(&whole, hd_rig_mlp, 26, 13, NULL, 1);
		struct hd_hash before = hd_worker_digest(rig.worker);
		hd_rig_hush(&rig);
		under = rig.task->data->ops;
		rig.task->data->ops = &breaks;
		broken = true;
		assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
		assert_int_equal(hd_worker_step(rig.worker, false, &record, &diag), HD_E_IO);
		CHECK(strstr(diag.text, "the disk is gone at sample"), "%s", diag.text);
		assert_true(hd_hash_same(hd_worker_digest(rig.worker), before));
		hd_rig_hush(&rig);
		broken = false;
		for (int i = 0; i < 3; i++)
			assert_true(hd_hash_same(hd_rig_step(&rig).digest, hd_rig_step(&whole).digest));
		hd_rig_close(&whole);
		hd_rig_close(&rig);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failpoint_of_a_step_is_in_the_table_of_this_test),
#ifdef HD_FAILPOINTS
		cmocka_unit_test(a_failed_step_leaves_the_state_of_its_beginning),
		cmocka_unit_test(a_new_plan_does_not_mend_a_torn_state),
#endif
		cmocka_unit_test(a_plan_that_could_not_be_adopted_changes_nothing),
		cmocka_unit_test(a_worker_without_a_plan_says_so),
		cmocka_unit_test(plans_adopted_again_and_again_take_no_more_memory),
		cmocka_unit_test(a_read_that_fails_ends_the_step_with_its_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
