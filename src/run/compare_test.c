#include "run/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "sys/file_sim.h"
#include "tests/check.h"

struct bench { struct hd_fs_sim sim; struct hd_arena arena; };

static int enter(void **state)
{
	static struct bench b;

	memset(&b, 0, sizeof b);
	hd_fs_sim_init(&b.sim);
	hd_arena_init(&b.arena, 0);
	*state = &b;
	return hd_fs_mkdirs(&b.sim.fs, "run", NULL);
}

static int leave(void **state)
{
	struct bench *b = *state;

	hd_arena_finish(&b->arena);
	hd_fs_sim_finish(&b->sim);
	return 0;
}

static struct hd_run_digests digests_of(struct bench *b, const char *metrics)
{
	struct hd_run_digests d;
	struct hd_diag diag = { "" };

	CHECK(!hd_file_write_atomic(&b->sim.fs, "run/metrics.ndjson", metrics, strlen(metrics), &diag), "%s",
		diag.text);
	CHECK(!hd_digests_read(&b->sim.fs, "run", &b->arena, &d, &diag), "%s", diag.text);
	return d;
}

/* "3a 4b": a line for each step, its digest of that letter 32 times. */
static struct hd_run_digests steps_of(struct bench *b, const char *steps)
{
	struct hd_text text;
	unsigned step;
	char letter;
	int used;

	hd_text_init(&text, &b->arena);
	hd_text_add(&text, "");
	for (; sscanf(steps, " %u%c%n", &step, &letter, &used) == 2; steps += used) {
		hd_text_addf(&text, "{\"step\":%u,\"loss\":0.5,\"digest\":\"", step);
		for (int i = 0; i < 32; i++)
			hd_text_put(&text, &letter, 1);
		hd_text_add(&text, "\"}\n");
	}
	return digests_of(b, text.at);
}

static void a_step_recorded_again_replaces_what_came_after_it(void **state)
{
	struct bench *b = *state;
	struct hd_run_digests d = steps_of(b, "1a 2b 3c 4d 3e 5f");

	assert_int_equal(d.n, 4);
	assert_true(d.step[0] == 1 && d.step[1] == 2 && d.step[2] == 3 && d.step[3] == 5);
	struct hd_run_digests plain = steps_of(b, "1a 2b 3e 5f");
	for (size_t i = 0; i < 4; i++)
		assert_true(hd_hash_same(d.digest[i], plain.digest[i]));
}

static void lines_without_a_digest_are_passed_over(void **state)
{
	struct bench *b = *state;
	struct hd_run_digests d = digests_of(b,
		"{\"step\":1,\"loss\":2}\n\nno json\n{\"digest\":\"00000000000000000000000000000000\"}\n"
		"{\"step\":7,\"digest\":\"00000000000000000000000000000001\"}\n"
		"{\"step\":8,\"digest\":\"short\"}\n"
		"{\"step\":9,\"digest\":\"00000000000000000000000000000002\"}");

	assert_int_equal(d.n, 2);
	assert_true(d.step[0] == 7 && d.step[1] == 9);        /* the last line needs no line feed */
}

static void a_folder_without_metrics_has_no_digests(void **state)
{
	struct bench *b = *state;
	struct hd_run_digests d = { .n = 5 };

	assert_int_equal(hd_digests_read(&b->sim.fs, "elsewhere", &b->arena, &d, NULL), HD_OK);
	assert_int_equal(d.n, 0);
}

static void the_first_step_that_both_have_and_that_differs_is_found(void **state)
{
	static const struct { const char *a, *b; struct hd_divergence want; } cases[] = {
		{ "1a 2b 3c", "1a 2b 3c", { false, 0, 3, 3 } }, { "1a 2b 3c", "1a 2d 3c", { true, 2, 1, 1 } },
		{ "1a", "1b", { true, 1, 0, 0 } }, { "1a 3c 5e", "2b 3c 4d 5f", { true, 5, 3, 1 } },
		{ "1a 2b", "3a 4b", { false, 0, 0, 0 } }, { "", "1a", { false, 0, 0, 0 } },
		{ "5a 6b 7c", "1f 2f 6b 7d 8e", { true, 7, 6, 1 } },
	};
	struct bench *b = *state;

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
		for (int swapped = 0; swapped < 2; swapped++) {
			struct hd_run_digests x = steps_of(b, cases[c].a), y = steps_of(b, cases[c].b);
			struct hd_divergence d = swapped ? hd_digests_diverge(&y,
				&x) : hd_digests_diverge(&x, &y);
			CHECK(d.known == cases[c].want.known && d.step == cases[c].want.step &&
				d.after == cases[c].want.after && d.compared == cases[c].want.compared,
					"case %zu", c);
		}
}

static struct hd_state state_of(struct bench *b, enum hd_dtype dtype, void *at, int64_t n)
{
	struct hd_state s;
	struct hd_state_entry e = { .name = "t", .dtype = (uint8_t)dtype, .rank = 1, .dim = { n }, .at = at,
		.len_bytes = (uint64_t)n * hd_dtype_bytes(dtype) };

	hd_state_init(&s, &b->arena);
	assert_int_equal(hd_state_add(&s, &e, NULL), HD_OK);
	return s;
}

static bool allows(struct bench *b, struct hd_slack slack, const struct hd_state *x, const struct hd_state *y)
{
	struct hd_tensor_diff *diff;
	uint32_t n, total;

	assert_int_equal(hd_state_diff(x, y, &b->arena, &diff, &n, &total, NULL), HD_OK);
	assert_int_equal(n, 1);
	return hd_slack_allows(&slack, x, y, &diff[0]);
}

static void a_tensor_is_near_by_its_greatest_distance_or_by_each_element(void **state)
{
	float x[4] = { 1, -2, 3, 0 }, ulps[4] = { 1, -2, 3, 0 }, far[4] = { 1, -2.02f, 3, 0 },
		zero[4] = { 1, -2, 3, 1e-30f }, nan[4] = { 1, NAN, 3, 0 }, shorter[3] = { 1, -2, 3 };
	struct bench *b = *state;

	for (int i = 0; i < 3; i++)
		ulps[1] = nextafterf(ulps[1], -9);
	struct hd_state a = state_of(b, HD_F32, x, 4), u = state_of(b, HD_F32, ulps, 4), f = state_of(b,
		HD_F32, far, 4),
		z = state_of(b, HD_F32, zero, 4), n = state_of(b, HD_F32, nan, 4), s = state_of(b, HD_F32,
			shorter, 3);
	const struct { struct hd_slack slack; const struct hd_state *other; bool want; } cases[] = {
		{ { 3, 0, true }, &u, true }, { { 2, 0, true }, &u, false }, { { 3, 0, false }, &u, false },
		{ { 0, 1e-6, true }, &u, true }, { { 0, 0.011, true }, &f, true }, { { 0, 0.009, true }, &f, false },
		{ { 0, 0.99, true }, &z, false }, { { 0, 1, true }, &z, true }, { { 0, 1, true }, &n, false },
		{ { UINT64_MAX, 1, true }, &s, false },
	};

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		CHECK(allows(b, cases[c].slack, &a, cases[c].other) == cases[c].want, "case %zu", c);
		CHECK(allows(b, cases[c].slack, cases[c].other, &a) == cases[c].want, "case %zu, swapped", c);
	}
}

static void numbers_of_other_types_are_near_as_well(void **state)
{
	double d1[1] = { 1 }, d2[1] = { 1.05 };
	int32_t i1[1] = { -200 }, i2[1] = { -210 };
	int64_t l1[1] = { 200 }, l2[1] = { 210 };
	uint8_t u1[1] = { 200 }, u2[1] = { 210 };
	struct bench *b = *state;
	struct { enum hd_dtype dtype; void *a, *b; } cases[] = { { HD_F64, d1, d2 }, { HD_I32, i1, i2 },
		{ HD_I64, l1, l2 },
		{ HD_U8, u1, u2 } };

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct hd_state x = state_of(b, cases[c].dtype, cases[c].a, 1), y = state_of(b,
			cases[c].dtype, cases[c].b, 1);
		CHECK(allows(b, (struct hd_slack){ 0, 0.05, true }, &x, &y), "case %zu", c);
		CHECK(!allows(b, (struct hd_slack){ 0, 0.04, true }, &x, &y), "case %zu", c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_step_recorded_again_replaces_what_came_after_it, enter,
			leave),
		cmocka_unit_test_setup_teardown(lines_without_a_digest_are_passed_over, enter, leave),
		cmocka_unit_test_setup_teardown(a_folder_without_metrics_has_no_digests, enter, leave),
		cmocka_unit_test_setup_teardown(the_first_step_that_both_have_and_that_differs_is_found,
			enter, leave),
		cmocka_unit_test_setup_teardown(a_tensor_is_near_by_its_greatest_distance_or_by_each_element,
			enter, leave),
		cmocka_unit_test_setup_teardown(numbers_of_other_types_are_near_as_well, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
