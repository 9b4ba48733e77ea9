#include "checkpoint/ckpt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint/testing_ckpt.h"

/* Which checkpoints stay and which go: those of another job, the newest, the one that is known, and what is
 * dropped because it came after a step. */

/* Two jobs in one folder: what the one writes harms nothing of the other; a lineage continues its
 * ancestor's. */
static void another_job_s_checkpoints_are_neither_replaced_nor_removed(void **unused)
{
	struct hd_ckpt_info info = info_of(2);
	struct hd_diag diag = { "" };
	struct hd_fs_sim sim;
	struct tiny t;

	(void)unused;
	hd_fs_sim_init(&sim);
	for (int64_t step = 1; step <= 3; step++)
		must_put(&sim.fs, step, 0);
	tiny_init(&t, 2);
	t.w[0] = 99;
	info.job_hash.byte[0] ^= 1;
	assert_int_equal(hd_ckpt_write(&sim.fs, PARENT, &t.state, &info, 1, false, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "another job"), "%s", diag.text);
	info.step = 4;
	assert_int_equal(hd_ckpt_write(&sim.fs, PARENT, &t.state, &info, 1, false, NULL), HD_OK);
	assert_true(holds(&sim.fs, PARENT "/step-000000001", 1) &&
		holds(&sim.fs, PARENT "/step-000000002", 2) && holds(&sim.fs, PARENT "/step-000000003", 3));
	info = info_of(2);
	info.job_hash.byte[0] ^= 2;
	info.lineage = 1;
	assert_int_equal(hd_ckpt_write(&sim.fs, PARENT, &t.state, &info, 3, false, NULL), HD_OK);
	assert_false(holds(&sim.fs, PARENT "/step-000000002", 2));
	tiny_finish(&t);
	hd_fs_sim_finish(&sim);
}

/* An absolute checkpoint.dir serves many runs, of one name too: each has a folder of its own, and finds it
 * again. */
static void every_run_takes_a_folder_of_its_own(void **unused)
{
	static const char *const runs[] = { "/a/job", "/b/job", "/c/job/", "." };
	static const char *const want[] = { "/store/job", "/store/job-2", "/store/job-3", "/store/run" };
	char parent[HD_PATH_CAP];
	struct hd_fs_sim sim;

	(void)unused;
	hd_fs_sim_init(&sim);
	for (int again = 0; again < 2; again++)
		for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
			assert_int_equal(hd_fs_mkdirs(&sim.fs, runs[i], NULL), HD_OK);
			assert_int_equal(hd_ckpt_place(&sim.fs, runs[i], "/store", parent, sizeof parent,
				NULL), again ? HD_OK : HD_E_NOTFOUND);
			assert_int_equal(hd_ckpt_claim(&sim.fs, runs[i], "/store", parent, sizeof parent,
				NULL), HD_OK);
			assert_string_equal(parent, want[i]);
		}
	assert_int_equal(hd_ckpt_claim(&sim.fs, "/a/job", "/stor", parent, sizeof parent, NULL), HD_OK);
	assert_string_equal(parent, "/stor/job");
	assert_int_equal(hd_ckpt_claim(&sim.fs, "/a/job", "ckpt", parent, sizeof parent, NULL), HD_OK);
	assert_string_equal(parent, "/a/job/ckpt");
	hd_fs_sim_finish(&sim);
}

static void removal_spares_the_newest_whole_one(void **unused)
{
	struct hd_fs_sim sim;
	struct hd_ckpt_info info;
	uint32_t removed;

	(void)unused;
	hd_fs_sim_init(&sim);
	for (int64_t step = 1; step <= 4; step++)
		must_put(&sim.fs, step, 0);
	spill(&sim.fs, PARENT "/step-000000004/state.json", (const uint8_t *)"{}", 2);
	spill(&sim.fs, PARENT "/step-000000003/state.json", (const uint8_t *)"{}", 2);
	assert_int_equal(hd_ckpt_gc(&sim.fs, PARENT, 1, NULL, &removed, NULL), HD_OK);
	assert_int_equal(removed, 3);
	assert_int_equal(hd_ckpt_find(&sim.fs, "/run", UINT64_MAX, &info, NULL, NULL, NULL), HD_OK);
	assert_int_equal(info.step, 2);
	hd_fs_sim_finish(&sim);
}

/* The one that is known to be whole stays, and no other for being whole. */
static void removal_spares_the_one_that_is_known(void **unused)
{
	static const struct { const char *known; uint32_t keep, removed; int64_t left[3]; } cases[] = {
		{ PARENT "/step-000000001", 1, 2, { 1 } }, { PARENT "/step-000000002", 1, 2, { 2 } }, { PARENT "/step-000000001", 2, 1, { 3, 1 } },
		{ PARENT "/step-000000001", 3, 0, { 3, 2, 1 } }, { NULL, 1, 2, { 3 } }, { NULL, 2, 1, { 3, 2 } }, { NULL, 0, 2, { 3 } },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_ckpt_info *list;
		struct hd_arena arena;
		struct hd_fs_sim sim;
		uint32_t removed = 77, n;
		hd_fs_sim_init(&sim);
		hd_arena_init(&arena, 0);
		for (int64_t step = 1; step <= 3; step++)
			must_put(&sim.fs, step, 0);
		assert_int_equal(hd_ckpt_gc(&sim.fs, PARENT, cases[i].keep, cases[i].known, &removed, NULL),
			HD_OK);
		assert_int_equal(hd_ckpt_list(&sim.fs, PARENT, &arena, &list, &n, NULL), HD_OK);
		CHECK(removed == cases[i].removed && n == 3 - removed, "case %zu: %u removed, %u left", i,
			removed, n);
		for (uint32_t k = 0; k < n; k++)
			CHECK(list[k].step == (uint64_t)cases[i].left[k], "case %zu: step %llu stays", i,
				(unsigned long long)list[k].step);
		hd_arena_finish(&arena);
		hd_fs_sim_finish(&sim);
	}
}

/* A removal that fails is reported; those after it stay. */
static void a_removal_that_fails_is_told(void **unused)
{
	uint32_t refused = 0;

	(void)unused;
	for (uint64_t k = 1;; k++) {
		struct hd_ckpt_info *list;
		struct hd_arena arena;
		struct hd_fs_sim sim;
		uint32_t removed = 77, n;
		hd_fs_sim_init(&sim);
		hd_arena_init(&arena, 0);
		for (int64_t step = 1; step <= 4; step++)
			must_put(&sim.fs, step, 0);
		uint64_t from = sim.calls;
		hd_fs_sim_fail(&sim, k, EIO, false);
		enum hd_err err = hd_ckpt_gc(&sim.fs, PARENT, 1, PARENT "/step-000000004", &removed, NULL);
		bool beyond = sim.calls < from + k;
		hd_fs_sim_fail(&sim, 0, 0, false);
		assert_int_equal(hd_ckpt_list(&sim.fs, PARENT, &arena, &list, &n, NULL), HD_OK);
		CHECK(err ? removed == 77 && list[0].step == 4 : removed == 3 && n == 1,
			"call %llu: %d, %u removed, %u left", (unsigned long long)k,
			err, removed, n);
		refused += err != HD_OK;
		hd_arena_finish(&arena);
		hd_fs_sim_finish(&sim);
		if (beyond)
			break;
	}
	assert_true(refused > 3);
}

static void what_was_saved_after_a_step_is_dropped(void **unused)
{
	struct hd_fs_sim sim;
	struct hd_ckpt_info info;
	uint32_t removed = 7;

	(void)unused;
	hd_fs_sim_init(&sim);
	assert_int_equal(hd_ckpt_drop_after(&sim.fs, "/run", 0, &removed, NULL), HD_OK);
	assert_int_equal(removed, 0);
	for (int64_t step = 1; step <= 4; step++)
		must_put(&sim.fs, step, 0);
	assert_int_equal(hd_ckpt_drop_after(&sim.fs, "/run", 2, &removed, NULL), HD_OK);
	assert_int_equal(removed, 2);
	assert_int_equal(hd_ckpt_find(&sim.fs, "/run", UINT64_MAX, &info, NULL, NULL, NULL), HD_OK);
	assert_int_equal(info.step, 2);
	assert_int_equal(hd_ckpt_drop_after(&sim.fs, "/run", 2, &removed, NULL), HD_OK);
	assert_int_equal(removed, 0);
	hd_fs_sim_finish(&sim);
}

/* What was kept for its evaluation is computed by the same memory, and is none of the others to list, to find
 * or to count. */
static void the_best_of_after_a_step_is_dropped_too(void **unused)
{
	struct hd_ckpt_info info, *list;
	struct hd_arena arena;
	struct hd_fs_sim sim;
	struct tiny t;
	uint32_t removed = 7, n;

	(void)unused;
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	must_put(&sim.fs, 2, 0);
	for (int64_t step = 1; step <= 3; step += 2) {
		tiny_init(&t, step);
		info = info_of((uint64_t)step);
		assert_int_equal(hd_ckpt_write(&sim.fs, PARENT "/" HD_CKPT_BEST, &t.state, &info, 0, false,
			NULL), HD_OK);
		tiny_finish(&t);
	}
	must_put(&sim.fs, 2, 1);
	assert_int_equal(hd_ckpt_list(&sim.fs, PARENT, &arena, &list, &n, NULL), HD_OK);
	assert_int_equal(n, 1);
	assert_int_equal(hd_ckpt_drop_after(&sim.fs, "/run", 2, &removed, NULL), HD_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(hd_ckpt_find(&sim.fs, PARENT "/" HD_CKPT_BEST, UINT64_MAX, &info, NULL, NULL, NULL),
		HD_OK);
	assert_int_equal(info.step, 1);
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

/* Their tensors are not read: they may be damaged, and have many GiB. */
static void what_is_dropped_need_not_be_whole(void **unused)
{
	struct hd_fs_sim sim;
	uint32_t removed = 7;

	(void)unused;
	hd_fs_sim_init(&sim);
	for (int64_t step = 1; step <= 4; step++) {
		char path[100];
		must_put(&sim.fs, step, 0);
		snprintf(path, sizeof path, PARENT "/step-%09d/model.safetensors", (int)step);
		assert_int_equal(hd_file_write_atomic(&sim.fs, path, "x", 1, NULL), HD_OK);
	}
	assert_int_equal(hd_ckpt_drop_after(&sim.fs, "/run", 2, &removed, NULL), HD_OK);
	assert_int_equal(removed, 2);
	hd_fs_sim_finish(&sim);
}

/* Another job's, whose steps are beyond it too, are not its to drop. */
static void what_another_job_saved_is_not_dropped(void **unused)
{
	struct hd_ckpt_info info = info_of(3);
	struct hd_fs_sim sim;
	struct tiny t;
	uint32_t removed = 7;

	(void)unused;
	hd_fs_sim_init(&sim);
	tiny_init(&t, 3);
	info.job_hash.byte[0] ^= 1;
	assert_int_equal(hd_ckpt_write(&sim.fs, PARENT, &t.state, &info, 0, false, NULL), HD_OK);
	tiny_finish(&t);
	must_put(&sim.fs, 2, 0);
	must_put(&sim.fs, 4, 0);
	assert_int_equal(hd_ckpt_drop_after(&sim.fs, "/run", 1, &removed, NULL), HD_OK);
	assert_int_equal(removed, 2);
	assert_true(holds(&sim.fs, PARENT "/step-000000003", 3) &&
		!holds(&sim.fs, PARENT "/step-000000002", 2));
	hd_fs_sim_finish(&sim);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_job_s_checkpoints_are_neither_replaced_nor_removed),
		cmocka_unit_test(every_run_takes_a_folder_of_its_own),
		cmocka_unit_test(removal_spares_the_newest_whole_one),
		cmocka_unit_test(removal_spares_the_one_that_is_known),
		cmocka_unit_test(a_removal_that_fails_is_told),
		cmocka_unit_test(what_was_saved_after_a_step_is_dropped),
		cmocka_unit_test(the_best_of_after_a_step_is_dropped_too),
		cmocka_unit_test(what_is_dropped_need_not_be_whole),
		cmocka_unit_test(what_another_job_saved_is_not_dropped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
