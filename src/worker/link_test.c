/* A link over a relay: what goes in comes out, in order, both ways, not faster than its rate and not before
 * its delay. Bounds from below alone: a busy machine is only later. */
#include "worker/link.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { BYTES = 200000, RATE = 400, DELAY = 7 };

struct link_world {
	struct hd_link link;
	struct hd_clock clock;
	uint8_t sent[BYTES], back[BYTES];
	int64_t began_ns, first_ns, last_ns, back_ns;
	bool refuses;
};

static void nap(struct link_world *w) { hd_clock_wait_until(&w->clock, hd_clock_now_ns(&w->clock) + 200000); }

static void all_in(struct link_world *w, struct hd_sock *sock, uint8_t *into, int64_t *first_ns)
{
	for (size_t done = 0, got; done < BYTES; done += got) {
		enum hd_err err = hd_sock_read(sock, into + done, BYTES - done, &got, NULL);
		if (err == HD_E_AGAIN) {
			got = 0;
			nap(w);
			continue;
		}
		assert_true(!err && got);
		if (!done)
			*first_ns = hd_clock_now_ns(&w->clock);
	}
}

static void all_out(struct link_world *w, struct hd_sock *sock, const uint8_t *from)
{
	for (size_t done = 0, put; done < BYTES; done += put) {
		enum hd_err err = hd_sock_write(sock, from + done, BYTES - done, &put, NULL);
		assert_true(!err || err == HD_E_AGAIN);
		if (err) {
			put = 0;
			nap(w);
		}
	}
}

/* The other end: sends back what came. */
static void echo(void *user)
{
	struct link_world *w = user;
	struct hd_sock listener, sock;
	char addr[HD_ADDR_CAP];
	uint8_t *came = malloc(BYTES);

	if (w->refuses) {
		hd_link_fail(&w->link);
		free(came);
		return;
	}
	assert_int_equal(hd_link_join(&w->link, addr, NULL), HD_OK);
	assert_int_equal(hd_sock_listen(&w->link.net, addr, &listener, NULL), HD_OK);
	hd_link_listens(&w->link, listener.addr);
	while (hd_sock_accept(&listener, &sock, NULL))
		nap(w);
	all_in(w, &sock, came, &w->first_ns);
	w->last_ns = hd_clock_now_ns(&w->clock);
	all_out(w, &sock, came);
	all_in(w, &sock, came, &w->back_ns);              /* so that the connection stays until all is back */
	hd_sock_close(&sock);
	hd_sock_close(&listener);
	free(came);
}

static struct link_world *world(void)
{
	struct link_world *w = calloc(1, sizeof *w);

	hd_clock_real(&w->clock);
	hd_link_init(&w->link, &(struct hd_link_spec){ HD_LINK_RELAY, RATE, DELAY, &w->clock });
	return w;
}

static void a_relay_passes_all_bytes_on_in_their_time(void **state)
{
	struct link_world *w = world();
	struct hd_thread thread = { .started = false };
	struct hd_sock sock;
	char addr[HD_ADDR_CAP];
	int64_t ignored;

	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		w->sent[i] = (uint8_t)(i * 31 + (i >> 8));
	assert_int_equal(hd_thread_start(&thread, "echo", -1, echo, w, NULL), HD_OK);
	assert_int_equal(hd_link_open(&w->link, NULL), HD_OK);
	assert_int_equal(hd_link_caller(&w->link, addr, NULL), HD_OK);
	assert_string_not_equal(addr, w->link.addr);
	assert_int_equal(hd_sock_connect(&w->link.net, addr, &sock, NULL), HD_OK);
	while (hd_sock_connected(&sock, NULL))
		nap(w);
	w->began_ns = hd_clock_now_ns(&w->clock);
	all_out(w, &sock, w->sent);
	all_in(w, &sock, w->back, &ignored);
	const int64_t back = hd_clock_now_ns(&w->clock) - w->began_ns;
	all_out(w, &sock, w->sent);
	hd_thread_join(&thread);
	assert_memory_equal(w->sent, w->back, BYTES);
	/* a bucket holds 2 ms: the rest of the bytes take their time */
	const int64_t least = (int64_t)BYTES * 8000 / RATE - 2 * HD_NS_PER_MS, delay = DELAY * HD_NS_PER_MS;
	CHECK(w->first_ns - w->began_ns >= delay, "the first byte came after %lld ns",
		(long long)(w->first_ns - w->began_ns));
	CHECK(w->last_ns - w->began_ns >= delay + least, "the last byte came after %lld ns",
		(long long)(w->last_ns - w->began_ns));
	CHECK(back >= 2 * delay + 2 * least, "all was back after %lld ns", (long long)back);
	hd_sock_close(&sock);
	hd_link_close(&w->link);
	hd_link_close(&w->link);
	free(w);
}

static void an_end_that_fails_is_not_waited_for(void **state)
{
	struct link_world *w = world();
	struct hd_thread thread = { .started = false };

	(void)state;
	w->refuses = true;
	assert_int_equal(hd_thread_start(&thread, "echo", -1, echo, w, NULL), HD_OK);
	assert_int_equal(hd_link_open(&w->link, NULL), HD_E_PEERLOST);
	hd_thread_join(&thread);
	hd_link_close(&w->link);
	free(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_relay_passes_all_bytes_on_in_their_time),
		cmocka_unit_test(an_end_that_fails_is_not_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
