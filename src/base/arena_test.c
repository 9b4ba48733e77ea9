#include "base/arena.h"

#include <string.h>

#include "base/alloc.h"
#include "tests/check.h"

static void pieces_are_aligned_zeroed_and_apart(void **state)
{
	enum { N = 400 };
	unsigned char *at[N];
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	/* a reset arena must not show what was there */
	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < N; i++) {
			size_t len = i * i % 3001 + 1;
			at[i] = hd_arena_take(&arena, len, 1);
			CHECK(at[i] && (uintptr_t)at[i] % HD_ALIGN == 0, "piece %zu", i);
			for (size_t k = 0; k < len; k++)
				CHECK(at[i][k] == 0, "piece %zu byte %zu", i, k);
			memset(at[i], (int)(i % 255 + 1), len);
		}
		for (size_t i = 0; i < N; i++)
			for (size_t k = 0; k < i * i % 3001 + 1; k++)
				CHECK(at[i][k] == i % 255 + 1, "piece %zu was overwritten", i);
		hd_arena_reset(&arena);
	}
	hd_arena_finish(&arena);
}

static void pieces_larger_than_a_block_are_given(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	char *small = hd_arena_take(&arena, 1, 1), *large = hd_arena_take(&arena, 5, 1 << 20);
	assert_true(small && large);
	memset(large, 1, 5 << 20);
	assert_int_equal(*small, 0);
	hd_arena_finish(&arena);
}

static void nothing_is_still_something(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	void *a = hd_arena_take(&arena, 0, 8), *b = hd_arena_take(&arena, 0, 8);
	assert_true(a && b && a != b);
	hd_arena_finish(&arena);
}

static void the_budget_is_met_to_the_piece(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 10 * HD_ALIGN);
	for (int i = 0; i < 10; i++)
		CHECK(hd_arena_take(&arena, 1, 1), "piece %d", i);
	assert_null(hd_arena_take(&arena, 1, 1));
	assert_int_equal(arena.used_bytes, 10 * HD_ALIGN);
	hd_arena_reset(&arena);
	assert_null(hd_arena_take(&arena, 10 * HD_ALIGN + 1, 1));
	assert_non_null(hd_arena_take(&arena, 10 * HD_ALIGN, 1));
	hd_arena_finish(&arena);
}

static void sizes_that_overflow_are_refused(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	assert_null(hd_arena_take(&arena, SIZE_MAX / 2, 3));
	assert_null(hd_arena_take(&arena, SIZE_MAX, 1));
	assert_null(hd_arena_take(&arena, SIZE_MAX - HD_ALIGN, 1));
	assert_null(hd_arena_take(&arena, (size_t)1 << 33, (size_t)1 << 31));
	assert_null(hd_arena_text(&arena, "", SIZE_MAX));
	assert_int_equal(arena.used_bytes, 0);
	hd_arena_finish(&arena);
}

static void texts_are_copies_with_a_final_0(void **state)
{
	struct hd_arena arena;
	char source[] = "abcdef";
	(void)state;

	hd_arena_init(&arena, 0);
	char *copy = hd_arena_text(&arena, source, 3), *empty = hd_arena_text(&arena, NULL, 0);
	source[0] = 'x';
	assert_string_equal(copy, "abc");
	assert_string_equal(empty, "");
	hd_arena_finish(&arena);
}

static void take_a_mix(struct hd_arena *arena, size_t seed)
{
	for (size_t i = 0; i < 50; i++)
		assert_non_null(hd_arena_take(arena, (i * 7919 + seed) % 90000 + 1, 1));
}

static void the_same_takes_after_a_reset_ask_the_heap_for_nothing(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	take_a_mix(&arena, 0);
	for (int round = 0; round < 5; round++) {
		hd_arena_reset(&arena);
		hd_alloc_arm(0);
		take_a_mix(&arena, 0);
		CHECK(hd_alloc_count() == 0, "round %d", round);
	}
	hd_arena_finish(&arena);
}

/* Whatever the sequences, what the first rounds needed is enough for all that follow. */
static void changing_takes_settle_on_what_there_is(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t round = 0; round < 40; round++) {
		hd_alloc_arm(0);
		hd_arena_reset(&arena);
		take_a_mix(&arena, round % 4 * 1000);
		CHECK(round < 8 || hd_alloc_count() == 0, "round %zu: %zu", round, (size_t)hd_alloc_count());
	}
	hd_arena_finish(&arena);
}

/* A scheduler's rounds: a few lists of one entry a job, each beyond what a block has at most, and each
 * round one job more waits. */
static void needs_that_grow_slowly_keep_no_more_than_the_last_needed(void **state)
{
	enum { ROUNDS = 100, LISTS = 3, FIRST = 20000 };
	struct hd_arena arena;
	size_t asked = 0, within = 0, over = 0, last = (size_t)LISTS * (FIRST + ROUNDS - 1) * HD_ALIGN;
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t round = 0; round < ROUNDS; round++) {
		hd_alloc_arm(0);
		hd_arena_reset(&arena);
		asked += hd_alloc_count();
		over = hd_arena_kept_bytes(&arena) > over ? hd_arena_kept_bytes(&arena) : over;
		hd_alloc_arm(0);
		for (size_t list = 0; list < LISTS; list++)
			assert_non_null(hd_arena_take(&arena, FIRST + round, HD_ALIGN));
		asked += hd_alloc_count();
		CHECK(arena.used_bytes == LISTS * (FIRST + round) * HD_ALIGN, "round %zu uses %zu bytes",
			round, arena.used_bytes);
		within = hd_arena_kept_bytes(&arena) > within ? hd_arena_kept_bytes(&arena) : within;
	}
	CHECK(over <= last + last / 4 + 1024, "%zu bytes are kept over resets, %zu were needed last", over,
		last);
	CHECK(within <= 5 * last / 2, "%zu bytes are held, %zu are needed", within, last);
	CHECK(asked < 12, "the heap was asked %zu times in %d rounds", asked, ROUNDS);
	hd_arena_finish(&arena);
}

static void small_needs_keep_no_more_than_a_block(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t round = 0; round < 2000; round++) {
		hd_arena_reset(&arena);
		for (size_t i = 0; i < 20; i++)
			assert_non_null(hd_arena_take(&arena, round * 7 % 5000 + 1, i + 1));
		CHECK(hd_arena_kept_bytes(&arena) <= 5 << 20, "round %zu keeps %zu bytes", round,
			hd_arena_kept_bytes(&arena));
	}
	hd_arena_finish(&arena);
}

/* A heap that has nothing left at a reset is asked again at the next take. */
static void a_reset_without_memory_keeps_nothing_and_goes_on(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	take_a_mix(&arena, 0);
	hd_alloc_arm(1);
	hd_arena_reset(&arena);
	assert_null(hd_arena_take(&arena, 1, 1));
	assert_int_equal(hd_arena_kept_bytes(&arena), 0);
	assert_int_equal(arena.used_bytes, 0);
	hd_alloc_arm(0);
	take_a_mix(&arena, 0);
	hd_arena_finish(&arena);
	assert_int_equal(hd_arena_kept_bytes(&arena), 0);
}

static void the_nth_block_may_fail_for_every_n(void **state)
{
	struct hd_arena arena;
	(void)state;

	for (uint64_t n = 1; n < 12; n++) {
		size_t given = 0;
		hd_arena_init(&arena, 0);
		hd_alloc_arm(n);
		while (given < 40000 && hd_arena_take(&arena, 1000, 1))
			given++;
		hd_alloc_arm(0);
		CHECK(given < 40000 && (n == 1) == (given == 0), "n %d gave %zu", (int)n, given);
		/* it goes on once there is memory */
		CHECK(hd_arena_take(&arena, 1000, 1), "after n %d", (int)n);
		hd_arena_finish(&arena);
	}
}

static void one_piece_may_be_refused_alone(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (uint64_t n = 1; n < 9; n++) {
		assert_int_equal(hd_alloc_arm_piece(n), 0);
		for (uint64_t i = 1; i < 9; i++)
			CHECK(!hd_arena_take(&arena, i, 8) == (i == n), "piece %u of %u", (unsigned)i,
				(unsigned)n);
	}
	hd_alloc_arm_piece(5);
	assert_non_null(hd_arena_take(&arena, 1, 1));
	assert_int_equal(hd_alloc_arm_piece(0), 4);
	for (int i = 0; i < 9; i++)
		assert_non_null(hd_arena_take(&arena, 1, 1));
	hd_arena_finish(&arena);
}

static void finishing_takes_zeroed_and_finished_arenas(void **state)
{
	struct hd_arena arena = { 0 };
	(void)state;

	hd_arena_finish(&arena);
	hd_arena_reset(&arena);
	assert_non_null(hd_arena_take(&arena, 3, 5));
	hd_arena_finish(&arena);
	hd_arena_finish(&arena);
	assert_non_null(hd_arena_take(&arena, 3, 5));
	hd_arena_finish(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
		cmocka_unit_test(pieces_larger_than_a_block_are_given),
		cmocka_unit_test(nothing_is_still_something),
		cmocka_unit_test(the_budget_is_met_to_the_piece),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(texts_are_copies_with_a_final_0),
		cmocka_unit_test(the_same_takes_after_a_reset_ask_the_heap_for_nothing),
		cmocka_unit_test(changing_takes_settle_on_what_there_is),
		cmocka_unit_test(needs_that_grow_slowly_keep_no_more_than_the_last_needed),
		cmocka_unit_test(small_needs_keep_no_more_than_a_block),
		cmocka_unit_test(a_reset_without_memory_keeps_nothing_and_goes_on),
		cmocka_unit_test(the_nth_block_may_fail_for_every_n),
		cmocka_unit_test(one_piece_may_be_refused_alone),
		cmocka_unit_test(finishing_takes_zeroed_and_finished_arenas),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
