#include "wire/close.h"

#include <string.h>

#include "tests/check.h"

static void every_reason_has_its_own_number_and_words(void **state)
{
	(void)state;
	for (uint32_t a = 1; a < HD_CLOSE_COUNT; a++) {
		CHECK(hd_close_from(a) == (enum hd_close)a, "reason %u reads back as %d", a,
			(int)hd_close_from(a));
		for (uint32_t b = 1; b < a; b++)
			CHECK(strcmp(hd_close_text((enum hd_close)a), hd_close_text((enum hd_close)b)) != 0 &&
				strcmp(hd_close_name((enum hd_close)a), hd_close_name((enum hd_close)b)) != 0,
				"reasons %u and %u", a, b);
	}
}

static void a_number_of_a_later_version_reads_as_other(void **state)
{
	static const uint32_t unknown[] = { 0, HD_CLOSE_COUNT, 1000, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
		CHECK(hd_close_from(unknown[i]) == HD_CLOSE_OTHER, "%u", unknown[i]);
	assert_int_equal(hd_close_blame(HD_CLOSE_FRAME), HD_BLAME_PEER);
	assert_int_equal(hd_close_blame(HD_CLOSE_GONE), HD_BLAME_PATH);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reason_has_its_own_number_and_words),
		cmocka_unit_test(a_number_of_a_later_version_reads_as_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
