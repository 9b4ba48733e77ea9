#include "functions/sigv4.h"

#include <string.h>

#include "tests/check.h"

/* The key pair, dates and answers that AWS publishes with its description of the process. */
static const char secret[] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

static struct hd_sigv4_request request(const char *method, const char *target)
{
	struct hd_sigv4_request r = { .method = method, .target = target, .date = "20150830T123600Z",
		.nlines = 2,
		.line = { { "host", "example.amazonaws.com" }, { "x-amz-date", "20150830T123600Z" } } };

	assert_int_equal(hd_sha256("", 0, &r.body, NULL), HD_OK);
	return r;
}

static void signatures_are_those_that_aws_publishes(void **state)
{
	const struct hd_sigv4_rights rights = { "AKIDEXAMPLE", secret, "us-east-1", "service" };
	static const struct { const char *method, *target, *signature; } at[] = {
		{ "GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
		{ "POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b" },
		{ "GET", "/?Param1=value1", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb" },
		{ "GET", "/?Param2=value2&Param1=value1", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		struct hd_sigv4_request r = request(at[i].method, at[i].target);
		char signature[HD_SHA256_HEX];
		assert_int_equal(hd_sigv4_sign(&rights, &r, signature, NULL), HD_OK);
		CHECK(!strcmp(signature, at[i].signature), "%s %s: %s", at[i].method, at[i].target,
			signature);
	}
}

static void the_example_of_the_manual_is_signed_and_named(void **state)
{
	const struct hd_sigv4_rights rights = { "AKIDEXAMPLE", secret, "us-east-1", "iam" };
	struct hd_sigv4_request r = { .method = "GET", .target = "/?Action=ListUsers&Version=2010-05-08",
		.date = "20150830T123600Z", .nlines = 3, .line = {
		{ "content-type", "application/x-www-form-urlencoded; charset=utf-8" },
		{ "host", "iam.amazonaws.com" }, { "x-amz-date", "20150830T123600Z" } } };
	char bytes[1024], hex[HD_SHA256_HEX];
	struct hd_sha256 sum;
	struct hd_text text;

	(void)state;
	assert_int_equal(hd_sha256("", 0, &r.body, NULL), HD_OK);
	hd_text_fixed(&text, bytes, sizeof bytes);
	assert_int_equal(hd_sigv4_canonical(&r, &text, NULL), HD_OK);
	assert_int_equal(hd_sha256(text.at, text.len, &sum, NULL), HD_OK);
	hd_sha256_hex(&sum, hex);
	assert_string_equal(hex, "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59");
	hd_text_fixed(&text, bytes, sizeof bytes);
	assert_int_equal(hd_sigv4_authorization(&rights, &r, &text, NULL), HD_OK);
	assert_string_equal(text.at, "AWS4-HMAC-SHA256 "
		"Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
		"SignedHeaders=content-type;host;x-amz-date, "
		"Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
}

/* What is sent encoded is signed encoded twice: ':' of an ARN. */
static void a_path_is_encoded_once_more(void **state)
{
	struct hd_sigv4_request r = request("POST", "/2015-03-31/functions/a%3Ab/invocations");
	char bytes[1024];
	struct hd_text text;

	(void)state;
	hd_text_fixed(&text, bytes, sizeof bytes);
	assert_int_equal(hd_sigv4_canonical(&r, &text, NULL), HD_OK);
	assert_non_null(strstr(text.at, "\n/2015-03-31/functions/a%253Ab/invocations\n\n"));
}

static void lines_out_of_order_and_what_does_not_fit_are_refused(void **state)
{
	const struct hd_sigv4_rights rights = { "AKIDEXAMPLE", secret, "us-east-1", "service" };
	struct hd_sigv4_request r = request("GET", "/"), none = r, late = r;
	char signature[HD_SHA256_HEX], small[16];
	struct hd_diag diag = { "" };
	struct hd_text text;

	(void)state;
	r.line[0].name = "y";
	assert_int_equal(hd_sigv4_sign(&rights, &r, signature, &diag), HD_E_INVAL);
	none.nlines = 0;
	assert_int_equal(hd_sigv4_sign(&rights, &none, signature, NULL), HD_E_INVAL);
	hd_text_fixed(&text, small, sizeof small);
	assert_int_equal(hd_sigv4_authorization(&rights, &late, &text, NULL), HD_E_NOSPACE);
	late.date = "2015";
	assert_int_equal(hd_sigv4_sign(&rights, &late, signature, NULL), HD_E_INVAL);
}

static void dates_are_those_of_the_calendar(void **state)
{
	static const struct { int64_t s; const char *date; } at[] = {
		{ 0, "19700101T000000Z" }, { 1440938160, "20150830T123600Z" }, { 951782399, "20000228T235959Z" },
		{ 951782400, "20000229T000000Z" }, { 951868800, "20000301T000000Z" },
		{ 4107542400, "21000301T000000Z" }, { 1735689599, "20241231T235959Z" },
	};
	char date[HD_SIGV4_DATE];

	(void)state;
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		hd_sigv4_date(at[i].s * INT64_C(1000000000) + 999999999, date);
		assert_string_equal(date, at[i].date);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signatures_are_those_that_aws_publishes),
		cmocka_unit_test(the_example_of_the_manual_is_signed_and_named),
		cmocka_unit_test(a_path_is_encoded_once_more),
		cmocka_unit_test(lines_out_of_order_and_what_does_not_fit_are_refused),
		cmocka_unit_test(dates_are_those_of_the_calendar),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
