#include "data/range_head.h"

#include <string.h>

#include "tests/check.h"

static void a_head_says_status_extent_and_version(void **state)
{
	static const char head[] =
		"HTTP/1.1 206 Partial Content\r\ncontent-RANGE: bytes 5-9/100\r\nETag: \"a\" \r\n"
		"Content-Length: 5\r\nRetry-After: 7\r\nLocation: /there\r\nETag: \"b\"\r\n\r\n";
	struct hd_range_head h;

	(void)state;
	assert_int_equal(hd_range_head_parse(head, sizeof head - 1, &h, NULL), HD_OK);
	assert_int_equal(h.status, 206);
	assert_true(h.has_range && h.first == 5 && h.end == 10 && h.total == 100);
	assert_true(h.has_length && h.length == 5 && h.has_wait && h.wait_s == 7);
	assert_string_equal(h.etag, "\"a\"");
	assert_string_equal(h.place, "/there");
}

static void a_wait_has_a_limit(void **state)
{
	static const struct { const char *head; uint32_t wait_s; } cases[] = {
		{ "HTTP/1.1 503 x\nRetry-After: 0\n", 0 }, { "HTTP/1.1 503 x\nRetry-After: 59\n", 59 },
		{ "HTTP/1.1 503 x\nRetry-After: 100000\n", 60 },
		{ "HTTP/1.1 503 x\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\n", 60 },
	};
	struct hd_range_head h;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(hd_range_head_parse(cases[i].head, strlen(cases[i].head), &h, NULL), HD_OK);
		assert_int_equal(h.wait_s, cases[i].wait_s);
	}
}

static void what_cannot_be_is_refused(void **state)
{
	static const char *const cases[] = {
		"", "HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 999 x\n", "ICY 200 OK\n\n",
		"HTTP/1.1 206 x\nContent-Range: bytes 9-5/100\n",
			"HTTP/1.1 206 x\nContent-Range: bytes 0-100/100\n",
		"HTTP/1.1 206 x\nContent-Range: bytes 0-1/*\n", "HTTP/1.1 206 x\nContent-Range: 0-1/2\n",
		"HTTP/1.1 206 x\nContent-Range: bytes 0-18446744073709551615/18446744073709551615\n",
		"HTTP/1.1 206 x\nContent-Range: bytes 0-99999999999999999999/1\n",
		"HTTP/1.1 206 x\nContent-Range: bytes 0-1/2 \x01\n", "HTTP/1.1 200 x\nContent-Length: -1\n",
	};
	struct hd_range_head h;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK(hd_range_head_parse(cases[i], strlen(cases[i]), &h, NULL) == HD_E_PROTOCOL, "%s",
			cases[i]);
}

static void a_url_names_a_host_and_no_user(void **state)
{
	static const struct { const char *text; enum hd_err err; enum hd_url_scheme scheme; const char *host,
		*origin; bool loopback; } cases[] = {
		{ "/a/b", HD_OK, HD_URL_NONE, "", "", false }, { "a:b", HD_OK, HD_URL_NONE, "", "", false },
		{ "http://h/x", HD_OK, HD_URL_HTTP, "h", "http://h", false },
		{ "HTTPS://h:8/x?a@b", HD_OK, HD_URL_HTTPS, "h", "HTTPS://h:8", false },
		{ "http://127.0.0.1:80/", HD_OK, HD_URL_HTTP, "127.0.0.1", "http://127.0.0.1:80", true },
		{ "http://[::1]:80/", HD_OK, HD_URL_HTTP, "::1", "http://[::1]:80", true },
		{ "http://localhost", HD_OK, HD_URL_HTTP, "localhost", "http://localhost", true },
		{ "http://127.evil.example/", HD_OK, HD_URL_HTTP, "127.evil.example", "http://127.evil.example", false },
		{ "s3://b/k/e y", HD_E_INVAL, 0, NULL, NULL, false },
		{ "s3://b/k", HD_OK, HD_URL_S3, "b", "s3://b", false }, { "s3://b/", HD_E_INVAL, 0, NULL, NULL, false },
		{ "http:///x", HD_E_INVAL, 0, NULL, NULL, false }, { "http://u:p@h/", HD_E_INVAL, 0, NULL, NULL, false },
		{ "http://h/a\r\nX: y", HD_E_INVAL, 0, NULL, NULL, false }, { "http://[::1/", HD_E_INVAL, 0, NULL, NULL, false },
	};
	struct hd_url url;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(hd_url_parse(cases[i].text, &url, NULL) == cases[i].err, "%s", cases[i].text);
		if (!cases[i].err)
			CHECK(url.scheme == cases[i].scheme && !strcmp(url.host, cases[i].host) &&
				!strcmp(url.origin, cases[i].origin) && url.loopback == cases[i].loopback,
					"%s",
				cases[i].text);
	}
}

static void a_redirect_leads_to_a_place_or_nowhere(void **state)
{
	static const struct { const char *from, *place, *to; } cases[] = {
		{ "http://h:1/a", "/b?c", "http://h:1/b?c" }, { "http://h/a", "https://i/b", "https://i/b" },
		{ "http://h/a", "b", NULL }, { "http://h/a", "//evil/b", NULL }, { "http://h/a", "s3://b/c", NULL },
		{ "http://h/a", "file:///etc/passwd", NULL }, { "http://h/a", "", NULL }, { "http://h/a", "/b c", NULL },
	};
	char to[100];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(hd_url_follow(cases[i].from, cases[i].place, to, sizeof to) == (cases[i].to != NULL),
			"%s",
			cases[i].place);
		if (cases[i].to)
			assert_string_equal(to, cases[i].to);
	}
	assert_false(hd_url_follow("http://h/a", "/bbbbbbbb", to, 12));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_says_status_extent_and_version),
		cmocka_unit_test(a_wait_has_a_limit),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(a_url_names_a_host_and_no_user),
		cmocka_unit_test(a_redirect_leads_to_a_place_or_nowhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
