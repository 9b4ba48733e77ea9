#include "data/credentials.h"

#include <string.h>

#include "tests/check.h"

static const char file[] =
	"# of a person\n[other]\naws_access_key_id=AKOTHER\naws_secret_access_key=so\n\n"
	"[default]\r\n aws_access_key_id = AKIDEXAMPLE \r\nregion=eu-west-1\n"
	"aws_secret_access_key\t=\twJalr/K7MDENG+bPx=\n; aws_session_token = no\n"
	"[ blank ]\naws_access_key_id=AKBLANK\naws_secret_access_key=sb\naws_session_token=st\n"
	"[half]\naws_access_key_id=AKHALF\n[none]\n[spoilt]\naws_access_key_id=A K\n";

static void keys_of_a_profile_are_read(void **state)
{
	static const struct { const char *profile, *key_id, *secret, *token; } rows[] = {
		{ "default", "AKIDEXAMPLE", "wJalr/K7MDENG+bPx=", "" },
		{ "other", "AKOTHER", "so", "" },
		{ "blank", "AKBLANK", "sb", "st" },
	};
	struct hd_aws_credentials c;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(hd_aws_credentials_read("f", file, sizeof file - 1, rows[i].profile, &c,
			NULL), HD_OK);
		assert_string_equal(c.key_id, rows[i].key_id);
		assert_string_equal(c.secret, rows[i].secret);
		assert_string_equal(c.token, rows[i].token);
	}
}

static void what_is_missing_is_said_and_no_key(void **state)
{
	static const struct { const char *profile, *says; } rows[] = {
		{ "absent", "no profile [absent]" }, { "half", "has no aws_secret_access_key" },
		{ "none", "has no aws_access_key_id" }, { "spoilt", "has a blank" },
	};
	struct hd_aws_credentials c;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		assert_int_equal(hd_aws_credentials_read("f", file, sizeof file - 1, rows[i].profile, &c,
			&diag), HD_E_INPUT);
		assert_non_null(strstr(diag.text, rows[i].says));
		assert_null(strstr(diag.text, "AKHALF"));
	}
}

static void a_region_is_part_of_awss_endpoint(void **state)
{
	static const struct { const char *endpoint, *region; } rows[] = {
		{ "https://lambda.eu-west-1.amazonaws.com", "eu-west-1" },
		{ "https://lambda.cn-north-1.amazonaws.com.cn/", "cn-north-1" },
		{ "https://lambda.amazonaws.com", "" }, { "https://127.0.0.1:1", "" },
		{ "http://lambda.eu-west-1.amazonaws.com", "" },
	};
	char region[HD_AWS_REGION];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		hd_aws_region_of(rows[i].endpoint, region);
		assert_string_equal(region, rows[i].region);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_a_profile_are_read),
		cmocka_unit_test(what_is_missing_is_said_and_no_key),
		cmocka_unit_test(a_region_is_part_of_awss_endpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
