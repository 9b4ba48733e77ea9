#include "device/team.h"

#include <stdatomic.h>

#include "tests/check.h"

static void no_init(void) { }

static struct hd_team *team_of(uint32_t nthreads, bool spin)
{
	struct hd_team *team = NULL;
	struct hd_diag diag = { "" };
	const struct hd_team_spec spec = { nthreads, -1, spin, no_init };

	CHECK(hd_team_create(&team, &spec, &diag) == HD_OK, "%s", diag.text);
	return team;
}

enum { TILES = 97 };
struct count { _Atomic uint32_t times[TILES]; };

static void count_tile(const void *user, uint32_t i, void *scratch)
{
	(void)scratch;
	atomic_fetch_add(&((struct count *)(uintptr_t)user)->times[i], 1);
}

static void every_tile_runs_once_and_before_run_returns(void **state)
{
	(void)state;
	for (uint32_t nthreads = 1; nthreads <= 5; nthreads++) {
		struct hd_team *team = team_of(nthreads, nthreads % 2);
		for (uint32_t ntiles = 0; ntiles <= TILES; ntiles++) {
			struct count count = { 0 };
			CHECK(hd_team_run(team, ntiles, ntiles % 3 == 0, count_tile, &count), "%u threads",
				nthreads);
			for (uint32_t i = 0; i < TILES; i++)
				CHECK(count.times[i] == (i < ntiles), "%u threads, tile %u of %u", nthreads,
					i, ntiles);
		}
		hd_team_destroy(team);
	}
}

static void a_team_that_is_stopped_at_once_stops(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 200; i++)
		hd_team_destroy(team_of(1 + i % 4, i % 2));
	hd_team_destroy(NULL);
}

static void own_scratch(const void *user, uint32_t i, void *scratch)
{
	uint32_t *mine = scratch;

	(void)user;
	for (uint32_t k = 0; k < 1000; k++)
		mine[k] = i;
	for (uint32_t k = 0; k < 1000; k++)
		CHECK(mine[k] == i, "tile %u: another thread wrote here", i);
}

static void scratch_is_a_threads_own(void **state)
{
	struct hd_team *team = team_of(4, false);
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_team_scratch(team, 4000, &diag), HD_OK);
	assert_int_equal(hd_team_scratch(team, 100, &diag), HD_OK);
	for (int i = 0; i < 50; i++)
		assert_true(hd_team_run(team, TILES, false, own_scratch, NULL));
	hd_team_destroy(team);
}

static void flush(const void *user, uint32_t i, void *scratch)
{
	(void)user;
	(void)scratch;
	if (i == 5)
		__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8000);        /* flush to zero */
}

static void changed_arithmetic_is_noticed(void **state)
{
	unsigned before = __builtin_ia32_stmxcsr();
	(void)state;

	for (uint32_t nthreads = 1; nthreads <= 3; nthreads++) {
		struct hd_team *team = team_of(nthreads, false);
		assert_false(hd_team_run(team, TILES, false, flush, NULL));
		__builtin_ia32_ldmxcsr(before);
		hd_team_destroy(team);
	}
}

static void too_many_threads_and_cores_that_are_not_there_are_refused(void **state)
{
	struct hd_team *team = NULL;
	struct hd_diag diag = { "" };
	(void)state;

	CHECK(hd_team_create(&team, &(struct hd_team_spec){ HD_TEAM_CAP + 1, -1, false, no_init },
		&diag) == HD_E_INVAL, "%s", diag.text);
	assert_string_equal(diag.text, "257 threads for a device: 1 to 256");
	diag.text[0] = 0;
	CHECK(hd_team_create(&team, &(struct hd_team_spec){ 3, 100000, false, no_init }, &diag) != HD_OK,
		"core 100001 exists?");
	assert_null(team);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_tile_runs_once_and_before_run_returns),
		cmocka_unit_test(a_team_that_is_stopped_at_once_stops),
		cmocka_unit_test(scratch_is_a_threads_own),
		cmocka_unit_test(changed_arithmetic_is_noticed),
		cmocka_unit_test(too_many_threads_and_cores_that_are_not_there_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
