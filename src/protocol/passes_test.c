#include "protocol/passes.h"

#include <string.h>

#include "tests/check.h"

static void passes_added_in_any_order_are_sorted_and_the_rest_is_missing(void **state)
{
	struct hd_passes passes = { 0 };
	struct hd_vrange out[4];
	uint32_t n = 0, vn = 0;

	(void)state;
	assert_int_equal(hd_passes_add(&passes, 5, 0, &(struct hd_vrange){ 4, 2 }, 1), HD_OK);
	assert_int_equal(hd_passes_add(&passes, 2, 1, (struct hd_vrange[]){ { 8, 1 }, { 10, 1 } }, 2), HD_OK);
	assert_int_equal(hd_passes_add(&passes, 2, 0, &(struct hd_vrange){ 0, 3 }, 1), HD_OK);
	assert_true(passes.pass[0].worker == 2 && passes.pass[0].pass == 0 && passes.pass[1].pass == 1 &&
		passes.pass[2].worker == 5);
	assert_int_equal(passes.range[passes.pass[2].first_range].first, 4);
	assert_int_equal(passes.range[passes.pass[1].first_range + 1].first, 10);
	assert_false(hd_passes_tile(&passes, 12, &vn));
	assert_int_equal(vn, 3);
	assert_int_equal(hd_passes_missing(&passes, 12, out, 4, &n), HD_OK);
	assert_int_equal(n, 4);
	assert_true(out[0].first == 3 && out[0].n == 1 && out[1].first == 6 && out[1].n == 2 &&
		out[2].first == 9 && out[3].first == 11);
	assert_int_equal(hd_passes_missing(&passes, 12, out, 3, &n), HD_E_NOSPACE);
	assert_int_equal(hd_passes_add(&passes, 9, 0, (struct hd_vrange[]){ { 3, 1 }, { 6, 3 }, { 9, 1 },
		{ 11, 1 } }, 4), HD_OK);
	assert_false(hd_passes_tile(&passes, 12, &vn));           /* 8 twice */
	assert_int_equal(vn, 8);
}

/* Rule 4: ascending by (worker, pass), whatever the order they come in. */
static void a_pass_is_found_by_worker_and_number(void **state)
{
	static const struct { uint32_t worker, pass; } added[] = { { 5, 1 }, { 2, 1 }, { 5, 0 }, { 9, 0 },
		{ 2, 0 }, { 3, 1 } };
	static const struct { uint32_t worker, pass; } missing[] = { { 3, 0 }, { 9, 1 }, { 4, 0 }, { 2, 2 } };
	enum { N = sizeof added / sizeof *added };
	struct hd_passes passes = { 0 };

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(hd_passes_add(&passes, added[i].worker, added[i].pass,
			&(struct hd_vrange){ 10 * i, 1 }, 1), HD_OK);
	for (uint32_t i = 1; i < N; i++) {
		const struct hd_pass *a = &passes.pass[i - 1], *b = &passes.pass[i];
		CHECK(a->worker < b->worker || (a->worker == b->worker && a->pass < b->pass), "pass %u", i);
	}
	for (uint32_t i = 0; i < N; i++) {
		const struct hd_pass *p = hd_passes_find(&passes, added[i].worker, added[i].pass);
		CHECK(p && p->worker == added[i].worker && p->pass == added[i].pass && p->nranges == 1,
			"pass %u", i);
		CHECK(passes.range[p->first_range].first == 10 * i, "pass %u", i);
	}
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
		CHECK(!hd_passes_find(&passes, missing[i].worker, missing[i].pass), "case %zu", i);
}

static void passes_and_ranges_that_are_too_many_are_refused(void **state)
{
	static struct hd_passes passes, full;
	static struct hd_view view = { .epoch = 1, .nmembers = 2, .nranks = 3, .member = { 1, 2 },
		.rank = { { 1, 1 }, { 2, 1 }, { 1, 1 } } };
	static const struct hd_vrange many[HD_VIEW_RANGES];
	struct hd_vrange out_of_all[1];
	struct hd_tnode out[4];
	uint32_t first[HD_MAX_PASSES + 1], n = 77;

	(void)state;
	for (uint32_t i = 0; i < HD_VIEW_PASSES; i++)
		assert_int_equal(hd_passes_add(&passes, i / HD_MAX_PASSES, i % HD_MAX_PASSES,
			&(struct hd_vrange){ i, 1 }, 1), HD_OK);
	full = passes;
	assert_int_equal(hd_passes_add(&passes, 99, 0, many, 1), HD_E_NOSPACE);
	assert_memory_equal(&passes, &full, sizeof full);
	passes = (struct hd_passes){ 0 };
	assert_int_equal(hd_passes_add(&passes, 1, 0, many, HD_VIEW_RANGES - 1), HD_OK);
	assert_int_equal(hd_passes_add(&passes, 1, 1, many, 2), HD_E_NOSPACE);
	assert_int_equal(hd_passes_add(&passes, 1, 1, many, 1), HD_OK);

	/* of a full table */
	assert_int_equal(hd_passes_missing(&passes, 1, out_of_all, 1, &n), HD_OK);
	assert_int_equal(n, 1);

	n = 77;
	/* one worker in one step: at most HD_MAX_PASSES, and as many roots as there is room for */
	passes = (struct hd_passes){ 0 };
	for (uint32_t i = 0; i <= HD_MAX_PASSES; i++)
		assert_int_equal(hd_passes_add(&passes, 1, i, &(struct hd_vrange){ 2 * i, i < 3 }, 1), HD_OK);
	assert_int_equal(hd_passes_roots(&passes, 64, 1, out, 4, first, &n), HD_E_NOSPACE);
	assert_int_equal(n, 77);
	passes.npasses--;
	assert_int_equal(hd_passes_roots(&passes, 64, 1, out, 4, first, &n), HD_OK);
	assert_int_equal(n, HD_MAX_PASSES);
	assert_int_equal(first[HD_MAX_PASSES], 3);
	n = 77;
	assert_int_equal(hd_passes_roots(&passes, 64, 1, out, 2, first, &n), HD_E_NOSPACE);
	assert_int_equal(n, 77);
	assert_int_equal(hd_ranges_roots(8, (struct hd_vrange[]){ { 1, 1 }, { 3, 1 }, { 5, 1 } }, 3, out, 2,
		&n), HD_E_NOSPACE);
	assert_int_equal(n, 77);
	/* a root of the left half is too much: what the right half has is not asked for */
	assert_int_equal(hd_ranges_roots(8, (struct hd_vrange[]){ { 1, 1 }, { 3, 1 } }, 2, out, 1, &n),
		HD_E_NOSPACE);
	assert_int_equal(hd_passes_of_view(&full, &view), HD_OK);
	assert_int_equal(full.npasses, 2);
}

/* Whoever computes nothing has no pass. */
static void a_member_without_leaves_has_no_pass(void **state)
{
	static const struct hd_view view = { .epoch = 1, .nmembers = 3, .nranks = 3, .member = { 1, 2, 3 },
		.rank = { { 1, 4 }, { 2, 0 }, { 3, 4 } } };
	struct hd_passes passes;

	(void)state;
	assert_int_equal(hd_passes_of_view(&passes, &view), HD_OK);
	assert_int_equal(passes.npasses, 2);
	assert_true(hd_passes_find(&passes, 1, 0) && !hd_passes_find(&passes, 2, 0) &&
		hd_passes_find(&passes, 3, 0));
}

/* Ranges of different workers: one beyond the last virtual node, one within another. */
static void what_does_not_tile_is_found(void **state)
{
	static const struct { struct hd_vrange a, b; bool tiles; uint32_t vn, nmissing, missing; } cases[] = {
		{ { 0, 4 }, { 4, 4 }, true,  8, 0, 0 },
		{ { 0, 4 }, { 4, 5 }, false, 4, 0, 0 },
		{ { 0, 4 }, { 4, UINT32_MAX }, false, 4, 1, 4 },
		{ { 0, 6 }, { 2, 2 }, false, 2, 1, 6 },
		{ { 0, 4 }, { 5, 3 }, false, 4, 1, 4 },
		{ { 0, 4 }, { 4, 3 }, false, 7, 1, 7 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_passes passes = { 0 };
		struct hd_vrange out[4] = { { 0 } };
		uint32_t vn = 99, n = 99;
		assert_int_equal(hd_passes_add(&passes, 1, 0, &cases[i].a, 1), HD_OK);
		assert_int_equal(hd_passes_add(&passes, 2, 0, &cases[i].b, 1), HD_OK);
		CHECK(hd_passes_tile(&passes, 8, &vn) == cases[i].tiles && vn == cases[i].vn, "case %zu: %u",
			i, vn);
		if (cases[i].b.n == UINT32_MAX)
			/* the rest is asked for of ranges that are within */
			continue;
		assert_int_equal(hd_passes_missing(&passes, 8, out, 4, &n), HD_OK);
		CHECK(n == cases[i].nmissing && (!n || out[0].first == cases[i].missing),
			"case %zu: %u missing", i, n);
	}
}

static void stages_of_one_member_are_at_most_its_passes(void **state)
{
	struct hd_view view = { .epoch = 1, .nmembers = 1, .nranks = 1, .member = { 4 }, .rank = { { 4,
		5 } } };
	struct hd_passes passes;

	(void)state;
	hd_view_shape(&view.shape, 1, HD_MAX_PASSES, false);
	assert_int_equal(hd_view_verify(&view, 5, NULL), HD_OK);
	assert_int_equal(hd_passes_of_view(&passes, &view), HD_OK);
	hd_view_shape(&view.shape, 1, HD_MAX_PASSES + 1, false);
	assert_int_equal(hd_passes_of_view(&passes, &view), HD_E_NOSPACE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_added_in_any_order_are_sorted_and_the_rest_is_missing),
		cmocka_unit_test(a_pass_is_found_by_worker_and_number),
		cmocka_unit_test(passes_and_ranges_that_are_too_many_are_refused),
		cmocka_unit_test(a_member_without_leaves_has_no_pass),
		cmocka_unit_test(what_does_not_tile_is_found),
		cmocka_unit_test(stages_of_one_member_are_at_most_its_passes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
