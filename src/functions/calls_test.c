#include "functions/http.h"

#include <string.h>

#include "tests/check.h"

/* Calls of an endpoint that the test plays by hand, or that is not there. */
struct bench {
	struct hd_clock clock;
	struct hd_loop loop;
	struct hd_net net;
	struct hd_sock listener;
	struct hd_fn_calls calls;
};

static struct bench *begin(bool listens)
{
	static struct bench b;
	char endpoint[HD_ADDR_CAP + 8];

	memset(&b, 0, sizeof b);
	hd_clock_real(&b.clock);
	hd_net_real(&b.net);
	assert_int_equal(hd_loop_init(&b.loop, &b.clock, NULL), HD_OK);
	if (listens)
		assert_int_equal(hd_sock_listen(&b.net, "tcp:127.0.0.1:0", &b.listener, NULL), HD_OK);
	snprintf(endpoint, sizeof endpoint, "http://%.60s", listens ? b.listener.addr + 4 :
		"127.0.0.1:1");
	assert_int_equal(hd_fn_http_open(&b.calls, endpoint, NULL, 1, &b.loop, NULL), HD_OK);
	return &b;
}

static void end(struct bench *b)
{
	hd_fn_calls_close(&b->calls);
	hd_sock_close(&b->listener);
	hd_loop_finish(&b->loop);
}

static void call(struct bench *b)
{
	assert_int_equal(hd_fn_http_ops.call(&b->calls, 7, "{}", 2, INT64_MAX, NULL), HD_OK);
}

static bool turn(struct bench *b, struct hd_fn_called *called)
{
	struct hd_loop_event event[8];
	size_t n = 0;

	assert_int_equal(hd_loop_poll(&b->loop, hd_clock_now_ns(&b->clock) + HD_NS_PER_MS, event, 8, &n,
		NULL), HD_OK);
	for (size_t i = 0; i < n; i++)
		hd_fn_calls_event(&b->calls, &event[i]);
	return hd_fn_calls_take(&b->calls, called);
}

/* The service has the request, says `answer` and ends the connection. */
static void serve(struct bench *b, const char *answer, struct hd_fn_called *called)
{
	struct hd_sock sock = { 0 };
	char in[2048];
	size_t len = 0, n = 0;

	call(b);
	while (hd_sock_accept(&b->listener, &sock, NULL))
		assert_false(turn(b, called));
	while (len < 2 || memcmp(in + len - 2, "{}", 2) != 0) {
		assert_false(turn(b, called));
		len += hd_sock_read(&sock, in + len, sizeof in - len, &n, NULL) ? 0 : n;
	}
	if (*answer)
		assert_int_equal(hd_sock_write(&sock, answer, strlen(answer), &n, NULL), HD_OK);
	hd_sock_close(&sock);
	while (!turn(b, called))
		;
	assert_int_equal(called->call, 7);
}

static void what_was_not_sent_did_not_run(void **state)
{
	struct hd_fn_called called;
	struct bench *b = begin(false);

	(void)state;
	if (!hd_fn_http_ops.call(&b->calls, 7, "{}", 2, INT64_MAX, NULL)) {
		while (!turn(b, &called))
			;
		assert_int_equal(called.end, HD_FN_LOST);
		assert_true(called.took_ns < 0);
	}
	end(b);
	b = begin(true);
	serve(b, "", &called);
	assert_int_equal(called.end, HD_FN_LOST);
	assert_true(called.took_ns >= 0);
	end(b);
}

static void a_refusal_is_no_failure_and_says_why(void **state)
{
	static const struct { const char *answer; enum hd_fn_call_end end; const char *why; } rows[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", HD_FN_ANSWERED, "" },
		{ "HTTP/1.1 429 Much\r\nContent-Length: 4\r\n\r\nfull", HD_FN_REFUSED_CALL, "status 429: full" },
		{ "HTTP/1.1 503 Not\r\nServer: s\r\nContent-Length: 0\r\n\r\n", HD_FN_REFUSED_CALL, "status 503, s: " },
		{ "HTTP/1.1 500 Bad\r\nContent-Length: 2\r\n\r\nno", HD_FN_ERRED, "status 500: no" },
	};
	struct hd_fn_called called;
	struct bench *b = begin(true);

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		serve(b, rows[i].answer, &called);
		CHECK(called.end == rows[i].end && !strcmp(called.why, rows[i].why), "%s: %d, %s",
			rows[i].answer, (int)called.end, called.why);
	}
	end(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_not_sent_did_not_run),
		cmocka_unit_test(a_refusal_is_no_failure_and_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
