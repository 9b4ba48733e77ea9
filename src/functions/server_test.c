#include "functions/server.h"

#include <string.h>

#include "tests/check.h"

enum { CALLERS = HD_FN_CALLERS + 2 };

static void answer(void *self, struct hd_fn_caller *c, enum hd_err how, const struct hd_http_head *head,
	size_t len)
{
	(void)head, (void)len;
	hd_fn_serve_say(self, c, how ? "400 Bad Request" : "200 OK", "", "{}");
}

static void turn(struct hd_fn_server *s)
{
	struct hd_loop_event event[8];
	size_t n = 0;

	assert_int_equal(hd_loop_poll(s->loop, hd_clock_now_ns(s->loop->clock) + HD_NS_PER_MS, event, 8, &n,
		NULL), HD_OK);
	for (size_t i = 0; i < n; i++)
		hd_fn_server_event(s, &event[i]);
}

static uint32_t ncallers(const struct hd_fn_server *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < HD_FN_CALLERS; i++)
		n += s->at[i].sock.net != NULL;
	return n;
}

/* One more than there are places waits until one is free, then is answered. */
static void a_caller_without_a_place_waits_for_one(void **state)
{
	static const char request[] = "GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
	static struct hd_sock sock[CALLERS];
	struct hd_fn_server server = { .handler = answer, .self = &server, .tag = 1 };
	struct hd_clock clock;
	struct hd_loop loop;
	struct hd_net net;
	char in[256];
	size_t n = 0;

	(void)state;
	hd_clock_real(&clock);
	hd_net_real(&net);
	assert_int_equal(hd_loop_init(&loop, &clock, NULL), HD_OK);
	assert_int_equal(hd_fn_server_open(&server, &net, "tcp:127.0.0.1:0", &loop, NULL), HD_OK);
	for (size_t i = 0; i < CALLERS; i++) {
		assert_int_equal(hd_sock_connect(&net, server.listener.addr, &sock[i], NULL), HD_OK);
		while (ncallers(&server) < i + 1 && i < HD_FN_CALLERS)
			turn(&server);
	}
	for (int i = 0; i < 5; i++)
		turn(&server);
	assert_int_equal(ncallers(&server), HD_FN_CALLERS);
	/* one place for two: the one behind is taken in when the one before has its answer */
	hd_sock_close(&sock[0]);
	for (size_t i = HD_FN_CALLERS; i < CALLERS; i++) {
		enum hd_err err = HD_E_AGAIN;
		while ((err = hd_sock_connected(&sock[i], NULL)) == HD_E_AGAIN)
			turn(&server);
		assert_int_equal(err, HD_OK);
		assert_int_equal(hd_sock_write(&sock[i], request, sizeof request - 1, &n, NULL), HD_OK);
		while ((err = hd_sock_read(&sock[i], in, sizeof in, &n, NULL)) == HD_E_AGAIN)
			turn(&server);
		assert_int_equal(err, HD_OK);
		CHECK(n > 15 && !memcmp(in, "HTTP/1.1 200 OK", 15), "caller %zu: %zu bytes", i, n);
	}
	for (size_t i = 1; i < CALLERS; i++)
		hd_sock_close(&sock[i]);
	hd_fn_server_close(&server);
	hd_loop_finish(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_caller_without_a_place_waits_for_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
