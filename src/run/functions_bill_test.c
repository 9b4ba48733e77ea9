#include "run/functions_bill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static struct hd_fs fs;
static char folder[] = "/tmp/hd-bills-XXXXXX";

static int begin(void **state)
{
	(void)state;
	hd_fs_real(&fs);
	snprintf(folder, sizeof folder, "/tmp/hd-bills-XXXXXX");
	return !mkdtemp(folder);
}

static int end(void **state)
{
	(void)state;
	return hd_fs_remove_tree(&fs, folder, NULL);
}

/* In containers a run and what resumes it are the same host and number: both bills stay. */
static void a_process_of_the_same_number_overwrites_nothing(void **state)
{
	const struct hd_functions_bill one = { .accepted = 40, .here = 2, .calls = 45, .nano_usd = 1234 },
		two = { .accepted = 8, .here = 1, .calls = 9, .nano_usd = 66, .pays = true };
	struct hd_functions_bill sum;
	uint32_t first = 0, second = 0;

	(void)state;
	assert_int_equal(hd_functions_bill_put(&fs, folder, &first, &two, NULL), HD_OK);
	assert_int_equal(hd_functions_bill_put(&fs, folder, &first, &one, NULL), HD_OK);
	assert_int_equal(hd_functions_bill_put(&fs, folder, &second, &two, NULL), HD_OK);
	hd_functions_bill_sum(&sum, &fs, folder);
	assert_int_equal(sum.nprocesses, 2);
	assert_int_equal(sum.accepted, 48);
	assert_int_equal(sum.here, 3);
	assert_int_equal(sum.calls, 54);
	assert_int_equal(sum.nano_usd, 1300);
	assert_true(sum.pays);
	assert_string_equal(sum.unread, "");
}

static void put(const char *name, const char *text)
{
	char path[HD_PATH_CAP];

	snprintf(path, sizeof path, "%s/functions/%s", folder, name);
	assert_int_equal(hd_file_write_atomic(&fs, path, text, strlen(text), NULL), HD_OK);
}

static void what_is_no_bill_counts_as_none_and_is_named(void **state)
{
	static const char *const bad[] = {
		"functions 1 accepted -1 here 0 calls 0 nano_usd 0 pays 0\n",
		"functions 1 accepted 1 here 0 calls 0 nano_usd -5 pays 0\n",
		"functions 1 accepted 99999999999999999999999 here 0 calls 0 nano_usd 0 pays 0\n",
		"functions 1 accepted 18446744073709551615 here 0 calls 0 nano_usd 0 pays 0\n",
		"functions 1 accepted 1 here 0 calls 0 nano_usd 1000000000000001 pays 0\n",
		"functions 1 accepted 1 here 0 calls 0 nano_usd 0 pays 7\n",
		"functions 1 accepted 1 here 0 calls 0 nano_usd 0 pays 0\nmore\n",
		"functions 1 accepted 1 here 0 calls 0 nano_usd 0 pays 0", "none\n",
	};
	struct hd_functions_bill sum;
	char said[HD_FN_BILL_WORDS];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put("7", bad[i]);
		hd_functions_bill_sum(&sum, &fs, folder);
		CHECK(sum.nprocesses == 2 && sum.accepted == 48 && sum.nano_usd == 1300, "%zu: %s", i,
			bad[i]);
		assert_string_equal(sum.unread, "functions/7");
		assert_non_null(strstr(hd_functions_bill_say(said, &sum), "functions/7"));
	}
	/* the most is one; what is being written, or has no byte yet, is none */
	put("7", "functions 1 accepted 2 here 0 calls 0 nano_usd 1000000000000000 pays 0\n");
	put("8.tmp", "functions 1 accepted 2 here 0 calls 0 nano_usd 1 pays 0\n");
	put("9", "");
	hd_functions_bill_sum(&sum, &fs, folder);
	assert_int_equal(sum.nprocesses, 3);
	assert_int_equal(sum.nano_usd, INT64_C(1000000000001300));
	assert_string_equal(sum.unread, "");
}

/* What a worker of another machine says is one file, however often and to which coordinator it is said. */
static void a_note_is_a_bill_once(void **state)
{
	static const char *const bad[] = { "", "far", " from 00000000000000aa",
		"functions 1 accepted 1 here 0 calls 0 nano_usd 0 pays 0",
		"functions 1 accepted 1 here 0 calls 0 nano_usd 0 pays 0 from 00000000000000a",
		"functions 1 accepted 1 here 0 calls 0 nano_usd 0 pays 0 from 00000000000000aaa",
		"functions 1 accepted 1 here 0 calls 0 nano_usd 0 pays 0 from ../../../../etc/x",
		"functions 1 accepted 1 here 0 calls 0 nano_usd 0 pays 0\n from 00000000000000aa",
		"functions 1 accepted 1 here 0 calls 0 nano_usd -3 pays 0 from 00000000000000aa",
	};
	const struct hd_functions_bill first = { .accepted = 4, .here = 2, .calls = 5, .nano_usd = 1234 },
		last = { .accepted = 40, .here = 20, .calls = 50, .nano_usd = 12345, .pays = true };
	char line[HD_FN_BILL_LINE];
	struct hd_functions_bill before, sum;

	(void)state;
	put("7", "functions 1 accepted 2 here 0 calls 0 nano_usd 66 pays 0\n");
	hd_functions_bill_sum(&before, &fs, folder);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(hd_functions_bill_put_far(&fs, folder, bad[i], NULL) == HD_E_PROTOCOL, "%s", bad[i]);
	for (uint64_t from = 1; from < 3; from++) {
		assert_int_equal(hd_functions_bill_put_far(&fs, folder, hd_functions_bill_note(line, &first,
			from << 63 | 0xab), NULL), HD_OK);
		for (int i = 0; i < 2; i++)
			assert_int_equal(hd_functions_bill_put_far(&fs, folder, hd_functions_bill_note(line,
				&last, from << 63 | 0xab), NULL), HD_OK);
	}
	hd_functions_bill_sum(&sum, &fs, folder);
	assert_int_equal(sum.nprocesses, before.nprocesses + 2);
	assert_int_equal(sum.nano_usd, before.nano_usd + 2 * 12345);
	assert_int_equal(sum.accepted, before.accepted + 80);
	assert_string_equal(sum.unread, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_of_the_same_number_overwrites_nothing),
		cmocka_unit_test(what_is_no_bill_counts_as_none_and_is_named),
		cmocka_unit_test(a_note_is_a_bill_once),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
