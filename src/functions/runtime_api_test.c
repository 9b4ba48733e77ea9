#include "functions/runtime_api.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "tests/check.h"

static enum hd_err head_of(const char *text, enum hd_http_what what, struct hd_http_head *head)
{
	return hd_http_read_head(what, text, strlen(text), head);
}

static void the_next_invocation_is_read_or_refused(void **state)
{
	static const struct { const char *lines; enum hd_err err; } at[] = {
		{ "200 OK\r\nLambda-Runtime-Aws-Request-Id: 8476a536-e9f4\r\nLambda-Runtime-Deadline-Ms: 1542409706888\r\n"
			"Lambda-Runtime-Trace-Id: Root=1-5bef4de7\r\n\r\n", HD_OK },
		{ "200 OK\r\nLambda-Runtime-Deadline-Ms: 1542409706888\r\n\r\n", HD_E_PROTOCOL },
		{ "200 OK\r\nLambda-Runtime-Aws-Request-Id: a\r\n\r\n", HD_E_PROTOCOL },
		{ "200 OK\r\nLambda-Runtime-Aws-Request-Id: a/b\r\nLambda-Runtime-Deadline-Ms: 1\r\n\r\n", HD_E_PROTOCOL },
		{ "200 OK\r\nLambda-Runtime-Aws-Request-Id: a\r\nLambda-Runtime-Deadline-Ms: -1\r\n\r\n", HD_E_PROTOCOL },
		{ "403 Forbidden\r\n\r\n", HD_E_REFUSED }, { "500 Error\r\n\r\n", HD_E_REFUSED },
	};
	struct hd_runtime_next next;
	struct hd_http_head head;
	char text[400];

	(void)state;
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		snprintf(text, sizeof text, "HTTP/1.1 %s", at[i].lines);
		assert_int_equal(head_of(text, HD_HTTP_AN_ANSWER, &head), HD_OK);
		CHECK(hd_runtime_read_next(&head, &next, NULL) == at[i].err, "%s", text);
		if (!at[i].err) {
			assert_string_equal(next.id, "8476a536-e9f4");
			assert_string_equal(next.trace, "Root=1-5bef4de7");
			assert_int_equal(next.deadline_ms, INT64_C(1542409706888));
		}
	}
}

static void calls_of_the_runtime_api_are_told_apart(void **state)
{
	static const struct { const char *line; enum hd_runtime_what what; const char *id; } at[] = {
		{ "GET /2018-06-01/runtime/invocation/next", HD_RUNTIME_NEXT, "" },
		{ "POST /2018-06-01/runtime/invocation/a-1/response", HD_RUNTIME_RESPONSE, "a-1" },
		{ "POST /2018-06-01/runtime/invocation/a-1/error", HD_RUNTIME_ERROR, "a-1" },
		{ "POST /2018-06-01/runtime/init/error", HD_RUNTIME_INIT_ERROR, "" },
		{ "GET /2018-06-01/runtime/init/error", HD_RUNTIME_UNKNOWN, "" },
		{ "POST /2018-06-01/runtime/invocation/next", HD_RUNTIME_UNKNOWN, "" },
		{ "POST /2018-06-01/runtime/invocation//response", HD_RUNTIME_UNKNOWN, "" },
		{ "POST /2018-06-01/runtime/invocation/a.b/response", HD_RUNTIME_UNKNOWN, "" },
		{ "POST /2018-06-01/runtime/invocation/a/b/response", HD_RUNTIME_UNKNOWN, "" },
		{ "GET /", HD_RUNTIME_UNKNOWN, "" },
	};
	char text[200], id[HD_RUNTIME_ID];
	struct hd_http_head head;

	(void)state;
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		snprintf(text, sizeof text, "%s HTTP/1.1\r\n\r\n", at[i].line);
		assert_int_equal(head_of(text, HD_HTTP_A_REQUEST, &head), HD_OK);
		CHECK(hd_runtime_call(&head, id) == at[i].what && !strcmp(id, at[i].id), "%s", at[i].line);
	}
}

static void a_report_of_aws_is_read(void **state)
{
	static const char log[] = "START RequestId: e8a0 Version: $LATEST\nEND RequestId: e8a0\n"
		"REPORT RequestId: e8a0-77\tDuration: 1262.71 ms\tBilled Duration: 1436 ms\t"
		"Memory Size: 192 MB\t"
		"Max Memory Used: 31 MB\tInit Duration: 172.50 ms\t\nREPORT RequestId: f";
	struct hd_lambda_report r;
	size_t rest = 0;

	(void)state;
	assert_int_equal(hd_lambda_report_read(log, strlen(log), &r, &rest), HD_OK);
	assert_string_equal(r.id, "e8a0-77");
	assert_int_equal(r.billed_ms, 1436);
	assert_int_equal(r.duration_us, 1262710);
	assert_int_equal(r.init_us, 172500);
	assert_int_equal(r.memory_mb, 192);
	assert_int_equal(r.used_mb, 31);
	assert_string_equal(log + rest, "REPORT RequestId: f");
	assert_int_equal(hd_lambda_report_read(log + rest, strlen(log + rest), &r, &rest), HD_E_NOTFOUND);
}

static void reports_read_back(void **state)
{
	struct hd_lambda_report r = { "id-1", 12340, 13, 100120, 1769, 44 }, back;
	char bytes[400];
	struct hd_text text;
	size_t rest = 0;

	(void)state;
	hd_text_fixed(&text, bytes, sizeof bytes);
	hd_lambda_report_write(&r, &text);
	assert_int_equal(hd_lambda_report_read(text.at, text.len, &back, &rest), HD_OK);
	assert_int_equal(rest, text.len);
	assert_memory_equal(&back.duration_us, &r.duration_us, sizeof r - offsetof(struct hd_lambda_report,
		duration_us));
	assert_string_equal(back.id, r.id);
	/* any line that is cut, or lacks a number, is none */
	for (size_t n = 0; n + 1 < text.len; n++)
		assert_int_equal(hd_lambda_report_read(text.at, n, &back, &rest), HD_E_NOTFOUND);
	static const char *const bad[] = {
		"REPORT RequestId: a\tDuration: 1 ms\tMemory Size: 1 MB\n",
		"REPORT RequestId: a\tDuration: 1 ms\tBilled Duration: -1 ms\tMemory Size: 1 MB\n",
		"REPORT RequestId: a\tDuration: 1 ms\tBilled Duration: 1.5 ms\tMemory Size: 1 MB\n",
		"REPORT RequestId: a b\tDuration: 1 ms\tBilled Duration: 1 ms\tMemory Size: 1 MB\n",
		"REPORT RequestId: a\tDuration: x ms\tBilled Duration: 1 ms\tMemory Size: 1 MB\n",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(hd_lambda_report_read(bad[i], strlen(bad[i]), &back, &rest) == HD_E_NOTFOUND, "%s",
			bad[i]);
}

static void an_outcome_has_its_report(void **state)
{
	struct hd_lambda_report r = { "id-1", 12340, 13, 0, 192, 44 };
	char log[300], answer[1000], bytes[700];
	struct hd_lambda_outcome o;
	struct hd_http_head head;
	struct hd_text text, coded;

	(void)state;
	hd_text_fixed(&text, log, sizeof log);
	hd_lambda_report_write(&r, &text);
	hd_text_fixed(&coded, bytes, sizeof bytes);
	hd_base64_write(text.at, text.len, &coded);
	snprintf(answer, sizeof answer,
		"HTTP/1.1 200 OK\r\nX-Amz-Function-Error: Unhandled\r\nX-Amz-Log-Result: %s\r\n\r\n",
		coded.at);
	assert_int_equal(head_of(answer, HD_HTTP_AN_ANSWER, &head), HD_OK);
	assert_int_equal(hd_lambda_read_outcome(&head, &o, NULL), HD_OK);
	assert_true(o.function_error && o.has_report);
	assert_int_equal(o.report.billed_ms, 13);
	assert_int_equal(head_of("HTTP/1.1 429 Slow down\r\nX-Amz-Log-Result: !\r\n\r\n", HD_HTTP_AN_ANSWER,
		&head), HD_OK);
	assert_int_equal(hd_lambda_read_outcome(&head, &o, NULL), HD_E_PROTOCOL);
	char name[HD_LAMBDA_NAME];
	assert_true(hd_lambda_function_of((struct hd_http_span){ "/2015-03-31/functions/gnn-1/invocations",
		39 }, name));
	assert_string_equal(name, "gnn-1");
	assert_false(hd_lambda_function_of((struct hd_http_span){ "/2015-03-31/functions//invocations",
		34 }, name));
	assert_false(hd_lambda_function_of((struct hd_http_span){ "/2015-03-31/functions/a/b", 25 }, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_invocation_is_read_or_refused),
		cmocka_unit_test(calls_of_the_runtime_api_are_told_apart),
		cmocka_unit_test(a_report_of_aws_is_read),
		cmocka_unit_test(reports_read_back),
		cmocka_unit_test(an_outcome_has_its_report),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
