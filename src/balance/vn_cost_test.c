#include "balance/vn_cost.h"

#include <string.h>

#include "tests/check.h"

static struct hd_vn_cost cost_of(const struct hd_vn_profile *profile, uint32_t nvns, struct hd_arena *arena)
{
	struct hd_vn_cost cost = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_vn_cost_make(&cost, profile, nvns, arena, &diag) == HD_OK, "%s", diag.text);
	return cost;
}

/* Waves of 1, 2 and 4 in 10, 14 and 30: pairs are best, a four never. */
static void the_best_waves_are_found_and_told(void **state)
{
	static const struct hd_wave_time wave[] = { { 1, 10, 6, 100 }, { 2, 14, 9, 180 },
		{ 4, 30, 20, 300 } };
	static const int64_t want[] = { 0, 15, 19, 29, 33, 43, 47, 57 }, back[] = { 0, 6, 9, 6, 9, 6, 9, 6 };
	struct hd_vn_profile p = { "t", 5, 0, wave, 3 };
	struct hd_arena arena;
	uint32_t size[7];
	(void)state;

	hd_arena_init(&arena, 0);
	struct hd_vn_cost cost = cost_of(&p, 7, &arena);
	for (uint32_t v = 0; v <= 7; v++)
		CHECK(cost.ps[v] == want[v] && cost.back_ps[v] == back[v], "%u: %lld, backward %lld", v,
			(long long)cost.ps[v], (long long)cost.back_ps[v]);
	assert_int_equal(hd_vn_cost_waves(&cost, 7, size), 4);
	assert_true(size[0] == 2 && size[1] == 2 && size[2] == 2 && size[3] == 1);
	assert_int_equal(hd_vn_cost_waves(&cost, 0, size), 0);
	static const struct { int64_t tau; uint32_t most; } by[] = { { -1, 0 }, { 14, 0 }, { 15, 1 },
		{ 32, 3 }, { 33, 4 }, { 1000, 7 } };
	for (size_t i = 0; i < sizeof by / sizeof *by; i++)
		assert_int_equal(hd_vn_cost_most(&cost, by[i].tau), by[i].most);
	hd_arena_finish(&arena);
}

static void of_equal_waves_the_larger_is_run(void **state)
{
	static const struct hd_wave_time wave[] = { { 1, 10, 6, 0 }, { 2, 20, 12, 0 } };
	struct hd_vn_profile p = { "t", 0, 0, wave, 2 };
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	struct hd_vn_cost cost = cost_of(&p, 4, &arena);
	assert_true(cost.wave[4] == 2 && cost.back_ps[4] == 12);
	hd_arena_finish(&arena);
}

static void waves_that_do_not_fit_are_not_run_and_what_fits_never_is_told(void **state)
{
	static const struct hd_wave_time wave[] = { { 1, 10, 6, 100 }, { 2, 14, 9, 180 } };
	struct hd_vn_profile p = { "t", 5, 179, wave, 2 };
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	assert_int_equal(cost_of(&p, 4, &arena).ps[4], 45);
	p.limit_bytes = 180;
	assert_int_equal(cost_of(&p, 4, &arena).ps[4], 33);
	p.limit_bytes = 99;
	struct hd_vn_cost never = cost_of(&p, 4, &arena);
	assert_true(never.ps[0] == 0 && never.ps[1] == HD_VN_NEVER && never.ps[4] == HD_VN_NEVER &&
		never.needs_bytes == 100);
	assert_int_equal(hd_vn_cost_most(&never, HD_VN_PS_MAX), 0);
	hd_arena_finish(&arena);
}

/* A wave that is quicker than a smaller one runs short instead. */
static void more_virtual_nodes_never_take_less_time(void **state)
{
	static const struct hd_wave_time wave[] = { { 1, 9, 5, 0 }, { 3, 20, 5, 0 }, { 8, 21, 5, 0 } };
	struct hd_vn_profile p = { "t", 0, 0, wave, 3 };
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	struct hd_vn_cost cost = cost_of(&p, 40, &arena);
	for (uint32_t v = 1; v <= 40; v++)
		assert_true(cost.ps[v] >= cost.ps[v - 1]);
	assert_int_equal(cost.ps[2], 18);
	assert_int_equal(cost.ps[5], 21);
	assert_int_equal(cost.wave[5], 5);
	hd_arena_finish(&arena);
}

static void nonsense_is_refused(void **state)
{
	static const struct hd_wave_time fine[] = { { 1, 10, 6, 0 }, { 2, 14, 9, 0 } },
		falls[] = { { 1, 10, 6, 0 }, { 1, 14, 9, 0 } },
		more_back[] = { { 1, 10, 11, 0 } }, two[] = { { 2, 10, 1, 0 } },
		forever[] = { { 1, HD_VN_PS_MAX / 2, 0, 0 } };
	static const struct hd_vn_profile bad[] = { { "t", 0, 0, falls, 2 }, { "t", 0, 0, more_back, 1 },
		{ "t", 0, 0, two, 1 }, { "t", -1, 0, fine, 2 },
		{ "t", 0, 0, forever, 1 }, { "t", 0, 0, fine, 0 } };
	struct hd_vn_cost cost;
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_vn_cost_make(&cost, &bad[i], 3, &arena, &diag) == HD_E_INVAL && *diag.text,
			"case %zu", i);
	}
	struct hd_vn_profile p = { "t", 0, 0, fine, 2 };
	assert_int_equal(hd_vn_cost_make(&cost, &p, 0, &arena, NULL), HD_E_INVAL);
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_best_waves_are_found_and_told),
		cmocka_unit_test(of_equal_waves_the_larger_is_run),
		cmocka_unit_test(waves_that_do_not_fit_are_not_run_and_what_fits_never_is_told),
		cmocka_unit_test(more_virtual_nodes_never_take_less_time),
		cmocka_unit_test(nonsense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
