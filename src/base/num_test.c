#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "tests/check.h"

static void integers_are_read_with_their_units(void **state)
{
	static const struct { const char *text; int64_t want; } rows[] = {
		{ "0", 0 }, { "-0", 0 }, { "7", 7 }, { "-12", -12 }, { "3k", 3000 }, { "-2M", -2000000 }, { "9G", 9000000000 },
		{ "9223372036854775807", INT64_MAX }, { "-9223372036854775808", INT64_MIN }, { "9223372036854775k", INT64_C(9223372036854775000) },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int64_t got = 1;
		CHECK(hd_num_i64(rows[i].text, INT64_MIN, INT64_MAX, &got, NULL) == HD_OK &&
			got == rows[i].want, "%s", rows[i].text);
	}
}

static const char *const no_integers[] = {
	"", " 1", "1 ", "+1", "01", "-", "--1", "1.0", "1e3", "0x10", "k", "1K", "1kk", "1 k", "1,000", "one",
		"1\n", "1KiB", "\xd9\xa1", "00",
};

static void what_is_no_integer_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof no_integers / sizeof no_integers[0]; i++) {
		struct hd_diag diag = { "" };
		int64_t v = 99;
		uint64_t u = 99;
		CHECK(hd_num_i64(no_integers[i], INT64_MIN, INT64_MAX, &v, &diag) == HD_E_INVAL && v == 99,
			"\"%s\"", no_integers[i]);
		CHECK(strstr(diag.text, "is not an integer"), "%s", diag.text);
		CHECK(hd_num_u64(no_integers[i], UINT64_MAX, &u, NULL) == HD_E_INVAL && u == 99, "\"%s\"",
			no_integers[i]);
	}
}

static void ranges_are_kept_to_the_last_unit(void **state)
{
	static const char *const beyond[] = { "9223372036854775808", "-9223372036854775809",
		"9223372036854776k", "18446744073709551616",
		"99999999999999999999G" };
	struct hd_diag diag = { "" };
	int64_t v = 99;
	uint64_t u = 99;
	(void)state;

	for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++)
		CHECK(hd_num_i64(beyond[i], INT64_MIN, INT64_MAX, &v, NULL) == HD_E_INVAL && v == 99, "%s",
			beyond[i]);
	assert_int_equal(hd_num_i64("5", 6, 10, &v, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "5 is not between 6 and 10");
	assert_int_equal(hd_num_i64("11", 6, 10, &v, NULL), HD_E_INVAL);
	assert_int_equal(hd_num_i64("6", 6, 10, &v, NULL), HD_OK);
	assert_int_equal(hd_num_i64("10", 6, 10, &v, NULL), HD_OK);
	assert_int_equal(hd_num_u64("18446744073709551615", UINT64_MAX, &u, NULL), HD_OK);
	assert_true(u == UINT64_MAX);
	assert_int_equal(hd_num_u64("18446744073709551616", UINT64_MAX, &u, NULL), HD_E_INVAL);
	assert_int_equal(hd_num_u64("8", 7, &u, NULL), HD_E_INVAL);
	assert_int_equal(hd_num_u64("-1", 7, &u, NULL), HD_E_INVAL);
}

/* (float)v by the compiler, which knows nothing of the bounds. */
static void what_32_bit_floats_do_not_fit_is_refused(void **state)
{
	static const struct { const char *text; bool fits; } rows[] = {
		{ "0", true }, { "-0.0", true }, { "1e-300", false }, { "-1e-300", false }, { "1e-46", false }, { "1e-39", false },
		{ "1.17e-38", false }, { "1.2e-38", true }, { "-1.2e-38", true }, { "3.4e38", true }, { "3.5e38", false }, { "1e300", false }, { "1", true },
	};
	struct hd_diag diag = { "" };
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		double v = 99;
		enum hd_err err = hd_num_real(rows[i].text, -INFINITY, INFINITY, &v, NULL);
		CHECK((err == HD_OK) == rows[i].fits, "%s", rows[i].text);
		CHECK(rows[i].fits ? isnormal((float)v) || (float)v == 0 : err == HD_E_INVAL && v == 99, "%s",
			rows[i].text);
	}
	double v = 99;
	assert_int_equal(hd_num_real("2", 0, 1, &v, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "2 is not between 0 and 1");
}

static void sizes_and_durations_have_their_own_units(void **state)
{
	uint64_t v = 0;
	(void)state;

	assert_true(hd_num_size("512", UINT64_MAX, &v, NULL) == HD_OK && v == 512);
	assert_true(hd_num_size("3KiB", UINT64_MAX, &v, NULL) == HD_OK && v == 3072);
	assert_true(hd_num_size("2MiB", UINT64_MAX, &v, NULL) == HD_OK && v == 2097152);
	assert_true(hd_num_size("4GiB", UINT64_MAX, &v, NULL) == HD_OK && v == UINT64_C(4294967296));
	assert_true(hd_num_size("4KB", UINT64_MAX, &v, NULL) == HD_E_INVAL &&
		hd_num_size("17179869184GiB", UINT64_MAX, &v, NULL) == HD_E_INVAL);
	assert_true(hd_num_duration("250ms", UINT64_MAX, &v, NULL) == HD_OK && v == 250);
	assert_true(hd_num_duration("2s", UINT64_MAX, &v, NULL) == HD_OK && v == 2000);
	assert_true(hd_num_duration("10min", UINT64_MAX, &v, NULL) == HD_OK && v == 600000);
	assert_true(hd_num_duration("3h", UINT64_MAX, &v, NULL) == HD_OK && v == 10800000);
	assert_true(hd_num_duration("1d", UINT64_MAX, &v, NULL) == HD_OK && v == 86400000);
	assert_true(hd_num_duration("0", UINT64_MAX, &v, NULL) == HD_OK && v == 0);
	assert_true(hd_num_duration("5", UINT64_MAX, &v, NULL) == HD_E_INVAL &&
		hd_num_duration("5m", UINT64_MAX, &v, NULL) == HD_E_INVAL);
	assert_true(hd_num_duration("2s", 1999, &v, NULL) == HD_E_INVAL && v == 0);
}

static void decimals_are_read_strictly(void **state)
{
	static const char *const good[] = { "0", "-0.5", "3", "1e-4", "1E+3", "0.1", "00.5",
		"1234567890123456789", "1e-400" };
	static const char *const bad[] = { "", ".5", "5.", "1e", "1e+", "nan", "inf", "-inf", "0x1p3", " 1",
		"1 ", "+1", "1,5", "1.2.3", "1e5f", "-", "1e400" };
	(void)state;

	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		double v = 99;
		CHECK(hd_num_f64(good[i], -INFINITY, INFINITY, &v, NULL) == HD_OK &&
			v == strtod(good[i], NULL), "%s", good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		double v = 99;
		CHECK(hd_num_f64(bad[i], -INFINITY, INFINITY, &v, NULL) == HD_E_INVAL && v == 99, "%s",
			bad[i]);
	}
}

static void decimals_keep_their_range(void **state)
{
	struct hd_diag diag = { "" };
	double v = 99;
	(void)state;

	assert_int_equal(hd_num_f64("1", 0, 1, &v, NULL), HD_OK);
	assert_int_equal(hd_num_f64("0", 0, 1, &v, NULL), HD_OK);
	assert_int_equal(hd_num_f64("1.0000001", 0, 1, &v, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "1.0000001 is not between 0 and 1");
	assert_int_equal(hd_num_f64("-1e-9", 0, 1, &v, NULL), HD_E_INVAL);
	assert_true(v == 0);
}

static void printed_floats_read_back_to_the_same_bits_and_are_short(void **state)
{
	char text[HD_NUM_CAP];
	(void)state;

	for (uint32_t i = 0; i < 50000; i++) {
		struct hd_philox drawn = hd_philox((uint32_t[4]){ i, 0, 0, 0 }, 11);
		float f, f_back;
		double d, d_back;
		memcpy(&f, &drawn.word[0], sizeof f);
		memcpy(&d, &drawn.word[2], sizeof d);
		if (isfinite(f)) {
			f_back = strtof(hd_num_print_f32(text, f), NULL);
			CHECK(memcmp(&f, &f_back, sizeof f) == 0 && strlen(text) <= 15, "%s", text);
		}
		if (isfinite(d)) {
			d_back = strtod(hd_num_print_f64(text, d), NULL);
			CHECK(memcmp(&d, &d_back, sizeof d) == 0 && strlen(text) <= 24, "%s", text);
		}
	}
}

static void printed_floats_look_as_people_write_them(void **state)
{
	char text[HD_NUM_CAP];
	(void)state;

	assert_string_equal(hd_num_print_f32(text, 0.0003f), "0.0003");
	assert_string_equal(hd_num_print_f32(text, 1.7421f), "1.7421");
	assert_string_equal(hd_num_print_f32(text, 64.0f), "64");
	assert_string_equal(hd_num_print_f32(text, 20.0f), "20");
	assert_string_equal(hd_num_print_f32(text, -1000.5f), "-1000.5");
	assert_string_equal(hd_num_print_f32(text, 1e9f), "1e+09");
	assert_string_equal(hd_num_print_f64(text, 1e15), "1000000000000000");
	assert_string_equal(hd_num_print_f64(text, 1e300), "1e+300");
	assert_string_equal(hd_num_print_f32(text, 16777216.0f), "16777216");
	assert_string_equal(hd_num_print_f32(text, -0.0f), "-0.0");
	assert_string_equal(hd_num_print_f64(text, 0.0), "0");
	assert_string_equal(hd_num_print_f64(text, 0.1), "0.1");
	assert_string_equal(hd_num_print_f64(text, 0.1 + 0.2), "0.30000000000000004");
	assert_string_equal(hd_num_print_f32(text, NAN), "nan");
	assert_string_equal(hd_num_print_f32(text, -NAN), "nan");
	assert_string_equal(hd_num_print_f32(text, INFINITY), "inf");
	assert_string_equal(hd_num_print_f64(text, -INFINITY), "-inf");
}

static void long_outside_text_is_shown_cut(void **state)
{
	struct hd_diag diag = { "" };
	char text[300];
	int64_t v;
	(void)state;

	memset(text, 'z', sizeof text);
	text[sizeof text - 1] = '\0';
	assert_int_equal(hd_num_i64(text, 0, 1, &v, &diag), HD_E_INVAL);
	assert_true(strlen(diag.text) < 120);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_read_with_their_units),
		cmocka_unit_test(what_is_no_integer_is_refused_and_changes_nothing),
		cmocka_unit_test(ranges_are_kept_to_the_last_unit),
		cmocka_unit_test(what_32_bit_floats_do_not_fit_is_refused),
		cmocka_unit_test(sizes_and_durations_have_their_own_units),
		cmocka_unit_test(decimals_are_read_strictly),
		cmocka_unit_test(decimals_keep_their_range),
		cmocka_unit_test(printed_floats_read_back_to_the_same_bits_and_are_short),
		cmocka_unit_test(printed_floats_look_as_people_write_them),
		cmocka_unit_test(long_outside_text_is_shown_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
