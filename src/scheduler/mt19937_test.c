/* Against the stored outputs of the reference generator. */
#include "scheduler/mt19937.h"

#include <string.h>

#include "tests/check.h"

static void words_and_fractions_are_those_of_the_reference(void **state)
{
	static const uint32_t words[] = { 4106135923u, 3707026329u, 4070888059u, 3646664648u };
	static const double fractions[] = { 0.9560342718892494, 0.9478274870593494, 0.05655136772680869,
		0.08487199515892163 };
	struct hd_mt mt;
	(void)state;

	hd_mt_init(&mt, 2);
	for (size_t i = 0; i < 4; i++)
		CHECK(hd_mt_word(&mt) == words[i], "word %zu", i);
	hd_mt_init(&mt, 2);
	for (size_t i = 0; i < 4; i++)
		CHECK(hd_mt_random(&mt) == fractions[i], "fraction %zu", i);
	hd_mt_init(&mt, 2);
	CHECK(hd_mt_uniform(&mt, 3, 4) == 3 + fractions[0], "uniform");
}

static void numbers_below_n_are_those_of_the_reference(void **state)
{
	static const uint32_t below[] = { 1, 2, 2, 11, 5, 23, 25, 21, 9, 8, 19, 6 };
	struct hd_mt mt;
	(void)state;

	hd_mt_init(&mt, 2);
	for (size_t i = 0; i < 12; i++)
		CHECK(hd_mt_below(&mt, 26) == below[i], "number %zu", i);
	for (size_t i = 0; i < 100; i++)
		CHECK(hd_mt_below(&mt, 1) == 0, "number %zu", i);
}

static void shuffles_are_those_of_the_reference(void **state)
{
	static const char *const want[] = { "012", "012", "102", "201", "102", "120" };
	struct hd_mt mt;
	(void)state;

	hd_mt_init(&mt, 5);
	for (size_t i = 0; i < 6; i++) {
		uint32_t at[] = { 0, 1, 2 };
		hd_mt_shuffle(&mt, at, 3);
		for (size_t k = 0; k < 3; k++)
			CHECK(at[k] == (uint32_t)(want[i][k] - '0'), "shuffle %zu", i);
	}
}

static void samples_are_those_of_the_reference(void **state)
{
	static const uint32_t ten[][2] = { { 6, 9 }, { 0, 4 }, { 8, 7 }, { 6, 4 }, { 7, 5 } };
	static const uint32_t forty[][2] = { { 24, 26 }, { 2, 16 }, { 32, 31 }, { 25, 19 }, { 30, 22 } };
	struct hd_mt mt;
	uint32_t got[2];
	(void)state;

	hd_mt_init(&mt, 0);
	for (size_t i = 0; i < 5; i++) {
		hd_mt_sample2(&mt, 10, got);
		CHECK(memcmp(got, ten[i], sizeof got) == 0, "sample %zu of 10: %u %u", i, got[0], got[1]);
	}
	hd_mt_init(&mt, 0);
	for (size_t i = 0; i < 5; i++) {
		hd_mt_sample2(&mt, 40, got);
		CHECK(memcmp(got, forty[i], sizeof got) == 0, "sample %zu of 40: %u %u", i, got[0], got[1]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_and_fractions_are_those_of_the_reference),
		cmocka_unit_test(numbers_below_n_are_those_of_the_reference),
		cmocka_unit_test(shuffles_are_those_of_the_reference),
		cmocka_unit_test(samples_are_those_of_the_reference),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
