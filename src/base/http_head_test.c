#include "base/http_head.h"

#include <string.h>

#include "tests/check.h"

static enum hd_err answer(const char *text, struct hd_http_head *head)
{
	return hd_http_read_head(HD_HTTP_AN_ANSWER, text, strlen(text), head);
}

static void an_answer_is_read_once_its_head_is_whole(void **state)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nETag: 411261ca6c9e4d5b\r\nmetadata-flavor:Google \r\n"
		"Content-Length: 4\r\n\r\nTRUE";
	struct hd_http_head head;
	char body[8];
	size_t n = 9;

	(void)state;
	for (size_t len = 0; len < strlen(text) - 4; len++)
		CHECK(hd_http_read_head(HD_HTTP_AN_ANSWER, text, len, &head) == HD_E_AGAIN, "%zu bytes", len);
	assert_int_equal(answer(text, &head), HD_OK);
	assert_int_equal(head.status, 200);
	assert_int_equal(head.len_bytes, strlen(text) - 4);
	assert_true(hd_http_is(hd_http_find(&head, "etag"), "411261ca6c9e4d5b"));
	assert_true(hd_http_is(hd_http_find(&head, "Metadata-Flavor"), "Google"));
	assert_null(hd_http_find(&head, "Date").at);
	assert_int_equal(hd_http_read_body(&head, text + head.len_bytes, 3, false, body, 8, &n), HD_E_AGAIN);
	assert_int_equal(hd_http_read_body(&head, text + head.len_bytes, 3, true, body, 8, &n),
		HD_E_PROTOCOL);
	assert_int_equal(hd_http_read_body(&head, text + head.len_bytes, 4, false, body, 4, &n),
		HD_E_NOSPACE);
	assert_int_equal(n, 9);
	assert_int_equal(hd_http_read_body(&head, text + head.len_bytes, 4, false, body, 5, &n), HD_OK);
	assert_string_equal(body, "TRUE");
	assert_int_equal(n, 4);
}

static void a_request_has_a_method_and_a_target(void **state)
{
	static const char text[] = "PUT /latest/api/token HTTP/1.1\r\n"
		"X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n\r\n";
	struct hd_http_head head;
	char body[2];
	size_t n = 9;

	(void)state;
	assert_int_equal(hd_http_read_head(HD_HTTP_A_REQUEST, text, strlen(text), &head), HD_OK);
	assert_true(hd_http_is(head.method, "PUT"));
	assert_true(hd_http_is(head.target, "/latest/api/token"));
	assert_int_equal(hd_http_read_body(&head, "", 0, false, body, 2, &n), HD_OK);
	assert_int_equal(n, 0);
}

static void a_body_without_a_length_ends_with_the_connection(void **state)
{
	struct hd_http_head head;
	char body[8];
	size_t n;

	(void)state;
	assert_int_equal(answer("HTTP/1.0 200 OK\n\n", &head), HD_OK);
	assert_int_equal(hd_http_read_body(&head, "abc", 3, false, body, 8, &n), HD_E_AGAIN);
	assert_int_equal(hd_http_read_body(&head, "12345678", 8, false, body, 8, &n), HD_E_NOSPACE);
	assert_int_equal(hd_http_read_body(&head, "abc", 3, true, body, 8, &n), HD_OK);
	assert_string_equal(body, "abc");
	assert_int_equal(answer("HTTP/1.1 204 No Content\r\n\r\n", &head), HD_OK);
	assert_int_equal(hd_http_read_body(&head, "", 0, false, body, 8, &n), HD_OK);
}

static void chunks_are_joined_however_they_come(void **state)
{
	static const char text[] = "4\r\n{\"Do\r\nA;x=y\r\ncumentInca\r\n0\r\nTrailer: x\r\n\r\n";
	struct hd_http_head head;
	char body[32];
	size_t n;

	(void)state;
	assert_int_equal(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &head), HD_OK);
	for (size_t len = 0; len < strlen(text); len++)
		CHECK(hd_http_read_body(&head, text, len, false, body, 32, &n) == HD_E_AGAIN, "%zu", len);
	assert_int_equal(hd_http_read_body(&head, text, strlen(text), false, body, 32, &n), HD_OK);
	assert_int_equal(n, 14);
	assert_memory_equal(body, "{\"DocumentInca", 15);
	assert_int_equal(hd_http_read_body(&head, text, strlen(text), false, body, 14, &n), HD_E_NOSPACE);
	static const char *const bad[] = { "\r\n", "g\r\n", "4 \r\nabcd\r\n0\r\n\r\n", "2\r\nabcd\r\n",
		"123456789\r\n", "-1\r\n" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(hd_http_read_body(&head, bad[i], strlen(bad[i]), false, body, 32, &n) == HD_E_PROTOCOL,
			"\"%s\"", bad[i]);
	assert_int_equal(hd_http_read_body(&head, "4\r\nab", 5, true, body, 32, &n), HD_E_PROTOCOL);
}

static void what_is_no_message_or_is_ambiguous_is_refused(void **state)
{
	static const char *const bad[] = {
		"HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 600 no\r\n\r\n",
			"HTTP/1.1\r\n\r\n",
		"HTTP/1.1 099 no\r\n\r\n", "HTTP/1.1 2x0 no\r\n\r\n", "\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\n: none\r\n\r\n",
		"HTTP/1.1 200 OK\r\na b: c\r\n\r\n", "HTTP/1.1 200 OK\r\na: b\x01\r\n\r\n",
		"HTTP/1.1 200 OK\r\n folded: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5k\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n" };
	struct hd_http_head head;
	char many[HD_HTTP_HEAD_BYTES + 8] = "HTTP/1.1 200 OK\r\n";

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(answer(bad[i], &head) == HD_E_PROTOCOL, "\"%s\"", bad[i]);
	assert_int_equal(hd_http_read_head(HD_HTTP_A_REQUEST, "GET x HTTP/1.1\r\n\r\n", 18, &head),
		HD_E_PROTOCOL);
	assert_int_equal(hd_http_read_head(HD_HTTP_A_REQUEST, "GET /\r\n\r\n", 9, &head), HD_E_PROTOCOL);
	for (int i = 0; i <= HD_HTTP_HEAD_LINES; i++)
		strcat(many, "a: b\r\n");
	assert_int_equal(answer(many, &head), HD_E_PROTOCOL);
	memset(many, 'a', sizeof many - 1);
	memcpy(many, "HTTP/1.1 200 ", 13);
	assert_int_equal(answer(many, &head), HD_E_PROTOCOL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_read_once_its_head_is_whole),
		cmocka_unit_test(a_request_has_a_method_and_a_target),
		cmocka_unit_test(a_body_without_a_length_ends_with_the_connection),
		cmocka_unit_test(chunks_are_joined_however_they_come),
		cmocka_unit_test(what_is_no_message_or_is_ambiguous_is_refused),
	};
	return cmocka_run_group_tests_name("http_head", tests, NULL, NULL);
}
