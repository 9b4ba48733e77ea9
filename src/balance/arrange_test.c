#include "balance/arrange.h"

#include <string.h>

#include "tests/check.h"

/* Roots by the definition: descend, take what is wholly inside. Shares no code with arrange.c. */
static uint32_t roots_of(uint32_t at, uint32_t n, uint32_t first, uint32_t end)
{
	uint32_t split = 1;

	if (at + n <= first || at >= end || first == end)
		return 0;
	if (at >= first && at + n <= end)
		return 1;
	while (split * 2 < n)
		split *= 2;
	return roots_of(at, split, first, end) + roots_of(at + split, n - split, first, end);
}

static void roots_of_ranges_are_those_of_the_definition(void **state)
{
	(void)state;
	for (uint32_t nvns = 1; nvns <= 70; nvns++)
		for (uint32_t first = 0; first <= nvns; first++)
			for (uint32_t end = first; end <= nvns; end++)
				CHECK(hd_range_roots(nvns, first, end) == roots_of(0, nvns, first, end),
					"V=%u [%u,%u)", nvns, first, end);
}

static struct hd_arranged arranged(uint32_t nvns, uint32_t first, const uint32_t *count, uint32_t n,
	uint32_t *order)
{
	struct hd_arranged out = { 0 };
	struct hd_arena arena;
	struct hd_diag diag = { "" };

	hd_arena_init(&arena, 0);
	CHECK(hd_arrange(nvns, first, count, n, order, &out, &arena, &diag) == HD_OK, "%s", diag.text);
	hd_arena_finish(&arena);
	return out;
}

static void the_published_example_has_eight_roots(void **state)
{
	static const uint32_t count[] = { 5, 5, 3, 3 };
	uint32_t order[4];
	(void)state;

	struct hd_arranged got = arranged(16, 0, count, 4, order);
	assert_true(got.exact && got.most == 2 && got.total == 8);
	/* 5 3 5 3: as good as 5 3 3 5, and 1 stays before 3 */
	const uint32_t want[] = { 0, 2, 1, 3 };
	assert_memory_equal(order, want, sizeof want);
}

/* All orders; the first in the order of the words of indices is the one that keeps to what was given for
 * longest. */
struct naive { uint32_t nvns, n; const uint32_t *count; uint32_t word[8], best[8], most, total; bool any; };

static void all_orders(struct naive *x, uint32_t depth, uint32_t at, uint32_t used, uint32_t most,
	uint32_t total)
{
	if (depth == x->n) {
		if (!x->any || most < x->most || (most == x->most && total < x->total)) {
			memcpy(x->best, x->word, sizeof x->best);
			x->most = most;
			x->total = total;
			x->any = true;
		}
		return;
	}
	for (uint32_t i = 0; i < x->n; i++) {
		if (used >> i & 1)
			continue;
		uint32_t roots = roots_of(0, x->nvns, at, at + x->count[i]);
		x->word[depth] = i;
		all_orders(x, depth + 1, at + x->count[i], used | 1u << i, roots > most ? roots : most,
			total + roots);
	}
}

static void orders_equal_the_best_of_all_orders(void **state)
{
	uint64_t seed = 7;
	(void)state;

	for (int round = 0; round < 600; round++) {
		uint32_t count[6], order[6], n = 1 + (uint32_t)round % 6, first = 0, sum = 0;
		for (uint32_t i = 0; i < n; i++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			count[i] = 1 + (uint32_t)(seed >> 40) % 9;
			sum += count[i];
		}
		first = round % 3 ? 0 : (uint32_t)(seed >> 50) % 5;
		uint32_t nvns = sum + first + (round % 2 ? 0 : (uint32_t)(seed >> 55) % 7);
		struct naive x = { .nvns = nvns, .n = n, .count = count };
		all_orders(&x, 0, first, 0, 0, 0);
		struct hd_arranged got = arranged(nvns, first, count, n, order);
		CHECK(got.exact && got.most == x.most && got.total == x.total,
			"round %d: %u and %u roots, could be %u and %u", round, got.most, got.total,
			x.most, x.total);
		CHECK(memcmp(order, x.best, n * sizeof *order) == 0, "round %d: another of the best orders",
			round);
	}
}

static void empty_ranges_come_last_and_too_many_counts_are_sorted(void **state)
{
	static const uint32_t few[] = { 0, 3, 0, 4 };
	uint32_t many[24], order[24], sum = 0, seen = 0;
	(void)state;

	struct hd_arranged got = arranged(7, 0, few, 4, order);
	assert_true(order[2] == 0 && order[3] == 2 && got.total == 2 && order[0] == 3);
	for (uint32_t i = 0; i < 24; i++)
		sum += many[i] = i + 1;
	got = arranged(sum, 0, many, 24, order);
	assert_false(got.exact);
	for (uint32_t i = 0; i < 24; i++)
		seen |= 1u << order[i];
	assert_int_equal(seen, (1u << 24) - 1);
	assert_true(many[order[0]] == 16 && many[order[1]] == 24 && many[order[2]] == 8 &&
		many[order[23]] == 1);
}

static void ranges_beyond_the_tree_are_refused(void **state)
{
	static const uint32_t count[] = { 5, 4 };
	uint32_t order[2];
	struct hd_arranged out;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	(void)state;

	hd_arena_init(&arena, 0);
	assert_int_equal(hd_arrange(8, 0, count, 2, order, &out, &arena, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "2 ranges (up to 4096) up to virtual node 9 of 8");
	assert_int_equal(hd_arrange(9, 1, count, 2, order, &out, &arena, NULL), HD_E_INVAL);
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(roots_of_ranges_are_those_of_the_definition),
		cmocka_unit_test(the_published_example_has_eight_roots),
		cmocka_unit_test(orders_equal_the_best_of_all_orders),
		cmocka_unit_test(empty_ranges_come_last_and_too_many_counts_are_sorted),
		cmocka_unit_test(ranges_beyond_the_tree_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
