#include "base/near.h"

#include <string.h>

#include "tests/check.h"

static size_t least3(size_t a, size_t b, size_t c) { return a < b ? (a < c ? a : c) : (b < c ? b : c); }

/* The definition, recursively, without a table; only for short words. */
static size_t by_definition(const char *a, size_t na, const char *b, size_t nb)
{
	if (na == 0 || nb == 0)
		return na + nb;
	size_t best = least3(by_definition(a, na - 1, b, nb) + 1, by_definition(a, na, b, nb - 1) + 1,
		by_definition(a, na - 1, b, nb - 1) + (a[na - 1] != b[nb - 1]));
	if (na > 1 && nb > 1 && a[na - 1] == b[nb - 2] && a[na - 2] == b[nb - 1]) {
		size_t swapped = by_definition(a, na - 2, b, nb - 2) + 1;
		best = swapped < best ? swapped : best;
	}
	return best;
}

static void spell(unsigned n, char word[5])
{
	size_t len = n % 5;
	for (size_t i = 0; i < len; i++, n /= 3)
		word[i] = (char)('a' + n / 5 % 3);
	word[len] = '\0';
}

static void distances_agree_with_the_definition_on_all_short_words(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 405; i++)
		for (unsigned j = 0; j < 405; j += 7) {
			char a[5], b[5];
			spell(i, a);
			spell(j, b);
			size_t want = by_definition(a, strlen(a), b, strlen(b));
			want = want > HD_NEAR_MOST ? HD_NEAR_MOST + 1 : want;
			CHECK(hd_near_distance(a, b) == want, "%s and %s: %zu, not %zu", a, b,
				hd_near_distance(a, b), want);
		}
}

static const char *suggest(const char *word)
{
	static const char *const keys[] = { "steps", "seed", "name", "lr", "learning_rate", "batch.global",
		"batch.virtual_nodes" };
	struct hd_near near = hd_near_to(word);

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		hd_near_offer(&near, keys[i]);
	return near.best ? near.best : "";
}

static void slips_of_the_finger_are_recognised(void **state)
{
	(void)state;
	assert_string_equal(suggest("setps"), "steps");
	assert_string_equal(suggest("sed"), "seed");
	assert_string_equal(suggest("lerning_rate"), "learning_rate");
	assert_string_equal(suggest("batch.virtual-node"), "batch.virtual_nodes");
}

static void what_is_far_away_or_too_short_is_not_suggested(void **state)
{
	(void)state;
	assert_string_equal(suggest("optimizer"), "");
	assert_string_equal(suggest("xy"), "");         /* two changes would turn anything into "lr" */
	assert_string_equal(suggest(""), "");
}

static void of_equally_near_words_the_first_wins(void **state)
{
	struct hd_near near = hd_near_to("abcx");
	(void)state;

	hd_near_offer(&near, "abcd");
	hd_near_offer(&near, "abce");
	assert_string_equal(near.best, "abcd");
	hd_near_offer(&near, "abcx");
	assert_string_equal(near.best, "abcx");
}

static void words_too_long_to_compare_are_far(void **state)
{
	char word[HD_NEAR_WORD_MAX + 2];
	(void)state;

	memset(word, 'a', sizeof word);
	word[HD_NEAR_WORD_MAX + 1] = '\0';
	assert_int_equal(hd_near_distance(word, word), HD_NEAR_MOST + 1);
	word[HD_NEAR_WORD_MAX] = '\0';
	assert_int_equal(hd_near_distance(word, word), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances_agree_with_the_definition_on_all_short_words),
		cmocka_unit_test(slips_of_the_finger_are_recognised),
		cmocka_unit_test(what_is_far_away_or_too_short_is_not_suggested),
		cmocka_unit_test(of_equally_near_words_the_first_wins),
		cmocka_unit_test(words_too_long_to_compare_are_far),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
