#include "run/kept_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/check.h"
#include "run/pipes.h"
#include "tests/check.h"

static struct hd_arena arena;
static struct hd_fs fs;
static char folder[] = "/tmp/hd-plans-XXXXXX";

static int begin(void **state)
{
	char path[HD_PATH_CAP];

	(void)state;
	hd_arena_init(&arena, 0);
	hd_fs_real(&fs);
	snprintf(folder, sizeof folder, "/tmp/hd-plans-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/plan", folder);
	return hd_fs_mkdir(&fs, path, NULL);
}

static int end(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return hd_fs_remove_tree(&fs, folder, NULL);
}

static struct hd_plan view_plan(const struct hd_view *view, const struct hd_plan_job *job)
{
	const struct hd_pipes none = { .most = 0 };
	struct hd_plan plan;
	struct hd_diag diag = { "" };

	CHECK(hd_pipes_plan(&plan, &none, view, job, NULL, &arena, &diag) == HD_OK, "%s", diag.text);
	return plan;
}

/* Ids of any size, devices next to one another or not, members without virtual nodes. */
static void plans_of_views_are_accepted_and_say_who_does_what(void **state)
{
	uint32_t seed = 5;

	(void)state;
	for (int k = 0; k < 400; k++) {
		struct hd_view view = { .epoch = 3 + (uint32_t)k, .nmembers = 1 + (uint32_t)k % 5 };
		struct hd_plan_job job = { .nvns = 1 + (uint32_t)k % 23, .nchunks = 1 + (uint32_t)k % 61,
			.nstages = 1, .wave = 1 + (uint32_t)k % 3,
			.lockstep = k % 7 == 0 };
		struct hd_diag diag = { "" };
		for (uint32_t m = 0; m < view.nmembers; m++) {
			view.member[m] = m * 7 + (m == 4 ? HD_REMOTE_WORKER : 2);
			view.rank[view.nranks++].worker = view.member[m];
		}
		for (uint32_t r = view.nranks; r < view.nmembers + (uint32_t)k % 4; r++)
			view.rank[view.nranks++].worker = view.member[(r * 3) % view.nmembers];
		for (uint32_t v = 0; v < job.nvns; v++)
			view.rank[(seed = seed * 1664525u + 1013904223u) % 97 % view.nranks].nvns++;
		struct hd_plan plan = view_plan(&view, &job);
		CHECK(hd_plan_check(&plan, &job, NULL, &diag) == HD_OK, "view %d: %s", k, diag.text);
		CHECK(plan.number == view.epoch && plan.nranks == view.nranks, "view %d: plan %u", k,
			plan.number);
		uint32_t v = 0, nbuckets = hd_bucket_count(job.nchunks);
		for (uint32_t r = 0; r < view.nranks; r++) {
			CHECK(view.member[plan.worker[r]] == view.rank[r].worker,
				"view %d: rank %u is of another worker", k, r);
			for (uint32_t i = 0; i < view.rank[r].nvns; i++)
				CHECK(plan.map[v++] == r, "view %d: virtual node %u", k, v);
		}
		for (uint32_t c = 0; c < job.nchunks; c++)
			CHECK(plan.worker[plan.owner[c]] == hd_bucket_owner(c / HD_BUCKET_CHUNKS, nbuckets,
				view.nmembers), "view %d: chunk %u", k, c);
		hd_arena_reset(&arena);
	}
}

static void a_view_of_one_worker_has_the_plan_of_a_run_in_one_process(void **state)
{
	struct hd_view view = { .epoch = 9, .nmembers = 1, .member = { 4 }, .nranks = 3,
		.rank = { { 4, 5 }, { 4, 4 }, { 4, 4 } } };
	const struct hd_plan_job job = { .nvns = 13, .nchunks = 17, .nstages = 1, .wave = 2 };
	struct hd_plan plan = view_plan(&view, &job), alone;

	(void)state;
	assert_int_equal(hd_plan_data(&alone, &job, 3, NULL, &arena, NULL), HD_OK);
	assert_true(hd_hash_same(hd_plan_digest(&plan), hd_plan_digest(&alone)));
	assert_string_equal(plan.cause, "view 9: worker 4");
}

static void numbers_go_on_and_the_same_plan_keeps_its_own(void **state)
{
	const struct hd_plan_job job = { .nvns = 8, .nchunks = 4, .nstages = 1 };
	struct hd_plan two, three;
	uint32_t number = 99;
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(hd_plan_data(&two, &job, 2, NULL, &arena, NULL), HD_OK);
	assert_int_equal(hd_plan_data(&three, &job, 3, NULL, &arena, NULL), HD_OK);
	assert_int_equal(hd_plan_newest(&number, &fs, folder, NULL), HD_E_NOTFOUND);
	struct hd_diag diag = { "" };
	assert_int_equal(hd_plan_number(&number, &two, &fs, folder, &diag), HD_OK);
	assert_string_equal(diag.text, "");       /* the first writer is trusted */
	assert_int_equal(number, 0);
	assert_int_equal(hd_plan_keep(&two, &fs, folder, NULL), HD_OK);
	assert_int_equal(hd_plan_number(&number, &two, &fs, folder, NULL), HD_OK);
	assert_int_equal(number, 0);
	assert_int_equal(hd_plan_number(&number, &three, &fs, folder, NULL), HD_OK);
	assert_int_equal(number, 1);
	three.number = 10041;
	assert_int_equal(hd_plan_keep(&three, &fs, folder, NULL), HD_OK);
	for (int i = 0; i < 3; i++) {             /* what is no plan has no number */
		static const char *const names[] = { "99999.plan.tmp", "x20000.plan", "20000.planned" };
		snprintf(path, sizeof path, "%s/plan/%s", folder, names[i]);
		assert_int_equal(hd_file_write_atomic(&fs, path, "?", 1, NULL), HD_OK);
	}
	assert_int_equal(hd_plan_newest(&number, &fs, folder, NULL), HD_OK);
	assert_int_equal(number, 10041);
	assert_int_equal(hd_plan_number(&number, &two, &fs, folder, NULL), HD_OK);
	assert_int_equal(number, 10042);
	snprintf(path, sizeof path, "%s/plan/10041.plan", folder);
	assert_int_equal(hd_file_read_all(&fs, path, &arena, 1 << 20, &bytes, &len, NULL), HD_OK);
	struct hd_plan back;
	assert_int_equal(hd_plan_parse(&back, (const char *)bytes, len, path, &arena, NULL), HD_OK);
	assert_int_equal(back.number, 10041);
	assert_true(hd_hash_same(hd_plan_digest(&back), hd_plan_digest(&three)));
	/* one that cannot be read is another plan */
	assert_int_equal(hd_file_write_atomic(&fs, path, "torn", 4, NULL), HD_OK);
	assert_int_equal(hd_plan_number(&number, &three, &fs, folder, NULL), HD_OK);
	assert_int_equal(number, 10042);
}

static void a_folder_that_takes_nothing_is_told_and_left_as_it_was(void **state)
{
	const struct hd_plan_job job = { .nvns = 2, .nchunks = 1, .nstages = 1 };
	struct hd_plan plan;
	char path[HD_PATH_CAP];
	struct hd_diag diag = { "" };
	uint32_t number;

	(void)state;
	assert_int_equal(hd_plan_data(&plan, &job, 1, NULL, &arena, NULL), HD_OK);
	snprintf(path, sizeof path, "%s/plan", folder);
	assert_int_equal(hd_fs_rmdir(&fs, path, NULL), HD_OK);
	CHECK(hd_plan_keep(&plan, &fs, folder, &diag) != HD_OK && strstr(diag.text, "0000.plan"), "%s",
		diag.text);
	CHECK(hd_plan_number(&number, &plan, &fs, folder, &diag) == HD_OK && number == 0, "%s", diag.text);
	assert_int_equal(hd_fs_mkdir(&fs, path, NULL), HD_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(plans_of_views_are_accepted_and_say_who_does_what, begin,
			end),
		cmocka_unit_test_setup_teardown(a_view_of_one_worker_has_the_plan_of_a_run_in_one_process,
		begin, end),
		cmocka_unit_test_setup_teardown(numbers_go_on_and_the_same_plan_keeps_its_own, begin, end),
		cmocka_unit_test_setup_teardown(a_folder_that_takes_nothing_is_told_and_left_as_it_was, begin,
		end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
