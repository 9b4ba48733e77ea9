#include "spot/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "tests/check.h"

static struct hd_arena arena;

static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

static void events_are_by_time_and_of_one_time_those_that_add_come_first(void **state)
{
	static const struct hd_spot_change in[] = { { 9, 1, "d" }, { 5, -1, "a" }, { 0, 1, "a" },
		{ 5, 1, "c" }, { 5, -1, "b" }, { 0, 1, "b" } };
	static const struct hd_spot_event want[] = { { 0, 0, true }, { 0, 1, true }, { 5, 2, true },
		{ 5, 0, false }, { 5, 1, false }, { 9, 3, true } };
	static const char *const names[] = { "a", "b", "c", "d" };
	struct hd_spot_trace t;
	struct hd_diag diag = { "" };
	(void)state;

	CHECK(!hd_spot_trace_make(&t, 6, in, 0, &arena, &diag), "%s", diag.text);
	assert_true(t.n == 6 && t.nnodes == 4);
	for (size_t i = 0; i < 6; i++)
		CHECK(t.at[i].at_ms == want[i].at_ms && t.at[i].node == want[i].node &&
			t.at[i].added == want[i].added, "event %zu", i);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(t.name[i], names[i]);
}

static void what_no_market_can_do_is_refused(void **state)
{
	static const struct { struct hd_spot_change in[3]; size_t n; const char *says; } bad[] = {
		{ { { 0, 1, "a" }, { 5, 1, "a" } }, 2, "\"a\" is added again at 5 ms" },
		{ { { 5, -1, "a" }, { 6, 1, "a" } }, 2, "\"a\" is removed before it is added at 5 ms" },
		{ { { 0, 1, "a" }, { 5, -1, "a" }, { 7, -1, "a" } }, 3, "\"a\" is removed again at 7 ms" },
		{ { { 0, 1, "a" }, { 5, -1, "a" }, { 7, 1, "a" } }, 3, "\"a\" is added again at 7 ms" },
		{ { { 0, 3, NULL }, { 5, -4, NULL } }, 2, "-1 machines at 5 ms" },
		{ { { 0, HD_SPOT_EVENTS, NULL }, { 1, 1, NULL } }, 2, "more than 1048576 machines" },
		{ { { -1, 1, "a" } }, 1, "a time of -1 ms" },
		{ { { HD_SPOT_MS_MOST + 1, 1, "a" } }, 1, "a time of 315576000000001 ms" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_spot_trace t;
		struct hd_diag diag = { "" };
		CHECK(hd_spot_trace_make(&t, bad[i].n, bad[i].in, 0, &arena, &diag) == HD_E_INPUT, "case %zu",
			i);
		CHECK(!strncmp(diag.text, bad[i].says, strlen(bad[i].says)), "case %zu: %s", i, diag.text);
	}
}

/* Rule 3, node by node: of those that are there the smallest draw goes. */
static void a_falling_count_takes_the_smallest_draws(void **state)
{
	enum { STEPS = 60, MOST = 600 };
	static uint64_t draw[MOST];
	static bool there[MOST];
	(void)state;

	for (uint64_t seed = 0; seed < 20; seed++) {
		struct hd_spot_change in[STEPS];
		uint32_t running = 0, next = 0;
		struct hd_spot_trace t;
		struct hd_diag diag = { "" };
		size_t at = 0;

		for (int i = 0; i < STEPS; i++) {
			const uint32_t counter[4] = { (uint32_t)i };
			int32_t now = (int32_t)(hd_philox(counter, seed).word[0] % 10);
			in[i] = (struct hd_spot_change){ i, now - (int32_t)running, NULL };
			running = (uint32_t)now;
		}
		CHECK(!hd_spot_trace_make(&t, STEPS, in, seed, &arena, &diag), "%s", diag.text);
		memset(there, 0, sizeof there);
		for (uint32_t i = 0; i < MOST; i++) {
			const uint32_t counter[4] = { HD_RNG_CLUSTER_SPOT, i, 0, 0 };
			struct hd_philox x = hd_philox(counter, hd_philox_key(seed, HD_RNG_CLUSTER));
			draw[i] = (uint64_t)x.word[1] << 32 | x.word[0];
		}
		for (int i = 0; i < STEPS; i++)
			for (int32_t k = abs(in[i].change); k > 0; k--) {
				uint32_t least = 0;
				for (uint32_t j = 0; j < next; j++)
					if (there[j] && (!there[least] || draw[j] < draw[least]))
						least = j;
				if (in[i].change > 0)
					least = next++;
				CHECK(at < t.n && t.at[at].at_ms == i && t.at[at].node == least &&
					t.at[at].added == (in[i].change > 0), "seed %u, event %zu",
					(unsigned)seed, at);
				there[least] = t.at[at++].added;
			}
		assert_true(at == t.n && t.nnodes == next);
		assert_string_equal(t.name[0], "node1");
	}
	hd_arena_reset(&arena);
}

static void no_more_are_taken_than_were_wanted(void **state)
{
	static const struct hd_spot_change in[] = { { 0, 1, "a" }, { 1, 1, "b" }, { 2, 1, "c" },
		{ 3, -1, "a" }, { 4, 1, "d" }, { 5, -1, "c" }, { 6, 1, "e" }, { 7, -1, "d" } };
	static const char *const names[] = { "a", "b", "d" };
	struct hd_spot_trace all, t;
	struct hd_diag diag = { "" };
	(void)state;

	CHECK(!hd_spot_trace_make(&all, 8, in, 0, &arena, &diag), "%s", diag.text);
	CHECK(!hd_spot_trace_at_most(&t, &all, 2, &arena, &diag), "%s", diag.text);
	assert_true(t.n == 5 && t.nnodes == 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(t.name[i], names[i]);
	assert_true(t.at[2].at_ms == 3 && !t.at[2].added && t.at[2].node == 0);
	assert_true(t.at[4].at_ms == 7 && !t.at[4].added && t.at[4].node == 2);
	CHECK(!hd_spot_trace_at_most(&t, &all, 3, &arena, &diag) && t.n == 8 &&
		!memcmp(t.at, all.at, 8 * sizeof *t.at), "nothing is left out where all are wanted");
}

static void without_memory_it_says_so(void **state)
{
	static const struct hd_spot_change named[] = { { 0, 1, "a" }, { 3, -1, "a" } },
		counted[] = { { 0, 40, NULL }, { 3, -7, NULL } };
	struct hd_spot_trace t;
	enum hd_err err;
	(void)state;

	EACH_PIECE_REFUSED(err, hd_spot_trace_make(&t, 2, named, 0, &arena, NULL));
	EACH_PIECE_REFUSED(err, hd_spot_trace_make(&t, 2, counted, 0, &arena, NULL));
	EACH_PIECE_REFUSED(err, hd_spot_trace_at_most(&t, &t, 1, &arena, NULL));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_by_time_and_of_one_time_those_that_add_come_first),
		cmocka_unit_test(what_no_market_can_do_is_refused),
		cmocka_unit_test(a_falling_count_takes_the_smallest_draws),
		cmocka_unit_test(no_more_are_taken_than_were_wanted),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
