/* What a hub refuses before anything goes over a wire, and what it does for peers that are not connected:
 * nothing, and no harm. */
#include <sys/resource.h>

#include "wire/testing_hubs.h"

static void a_hub_out_of_range_is_not_made(void **state)
{
	static const struct { uint32_t peers_cap, streams_cap, detect_ms, role, worker; bool fine;
		} cases[] = {
		{ 1, 1, 10, HD_ROLE_WORKER, 0, true }, { HD_HUB_PEERS, 65536, 600000, HD_ROLE_FUNCTION, HD_WORKER_GUEST - 1, true },
		{ 1, 1, 10, HD_ROLE_WORKER, HD_WORKER_NONE, true },
		{ 0, 1, 10, HD_ROLE_WORKER, 0, false }, { HD_HUB_PEERS + 1, 1, 10, HD_ROLE_WORKER, 0, false }, { 1, 0, 10, HD_ROLE_WORKER, 0, false },
		{ 1, 65537, 10, HD_ROLE_WORKER, 0, false }, { 1, 1, 9, HD_ROLE_WORKER, 0, false }, { 1, 1, 600001, HD_ROLE_WORKER, 0, false },
		{ 1, 1, 10, HD_ROLE_WORKER - 1, 0, false }, { 1, 1, 10, HD_ROLE_FUNCTION + 1, 0, false },
		{ 1, 1, 10, HD_ROLE_WORKER, HD_WORKER_GUEST, false }, { 1, 1, 10, HD_ROLE_WORKER, HD_WORKER_NONE - 1, false },
	};
	struct hubs_world *w = enter("sim", 0);
	struct hd_wire_events events = hear_with(&w->heard[0]);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_hub_config config = w->config[0];
		struct hd_hub hub = { NULL };
		config.peers_cap = cases[i].peers_cap;
		config.streams_cap = cases[i].streams_cap;
		config.detect_ms = cases[i].detect_ms;
		config.role = cases[i].role;
		config.worker = cases[i].worker;
		CHECK(hd_hub_init(&hub, &config, &events, &w->loops[0], net_of(w, 0),
			NULL) == (cases[i].fine ? HD_OK : HD_E_INVAL), "case %zu", i);
		assert_int_equal(hub.impl != NULL, cases[i].fine);
		hd_hub_finish(&hub);
		hd_hub_finish(&hub);                              /* takes finished ones */
	}
	leave(w);
}

static void a_hub_listens_at_four_places_and_needs_a_key_where_one_proves(void **state)
{
	struct hubs_world *w = enter("sim", 1);
	char addr[HD_ADDR_CAP];

	(void)state;
	for (int i = 1; i < HD_HUB_LISTENERS; i++) {
		snprintf(addr, sizeof addr, "unix:%s/more%d", w->folder, i);
		assert_int_equal(hd_hub_listen(&w->hubs[0], "sim", addr, NULL), HD_OK);
	}
	snprintf(addr, sizeof addr, "unix:%s/one too many", w->folder);
	assert_int_equal(hd_hub_listen(&w->hubs[0], "sim", addr, NULL), HD_E_NOSPACE);
	w->config[1].key = NULL;
	start_hub(w, 1);                                          /* a row that proves nothing needs none */
	snprintf(addr, sizeof addr, "tcp:127.0.0.1:0");
	assert_int_equal(hd_hub_listen(&w->hubs[1], "tls", addr, NULL), HD_E_REFUSED);
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, "tls", addr, NULL), HD_E_REFUSED);
	leave(w);
}

/* What is open to others needs a word; what is not, none. What could not be listened at takes no place. */
static void a_row_that_is_open_to_others_needs_a_word(void **state)
{
	struct hubs_world *w = enter("sim", 1);
	char addr[HD_ADDR_CAP] = "tcp:127.0.0.1:0";

	(void)state;
	w->config[1].plaintext = false;
	start_hub(w, 1);
	assert_int_equal(hd_hub_listen(&w->hubs[1], "tcp", addr, NULL), HD_E_REFUSED);
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, "tcp", addr, NULL), HD_E_REFUSED);
	assert_int_equal(hd_hub_listen(&w->hubs[1], "pigeon", addr, NULL), HD_E_INVAL);
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, "pigeon", addr, NULL), HD_E_INVAL);
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, "sim", w->addr[0], NULL), HD_OK);
	for (int i = 0; i < 2 * HD_HUB_LISTENERS; i++) {
		memcpy(addr, w->addr[0], sizeof addr);
		/* a process listens there */
		assert_int_not_equal(hd_hub_listen(&w->hubs[1], "sim", addr, NULL), HD_OK);
	}
	snprintf(addr, sizeof addr, "unix:%s/free", w->folder);
	assert_int_equal(hd_hub_listen(&w->hubs[1], "sim", addr, NULL), HD_OK);
	leave(w);
}

/* A spinning hub gets the same events, and stops in time; where time stands still until the next event it
 * does not spin. */
static void a_hub_that_spins_hears_the_same(void **state)
{
	(void)state;
	for (int simulated = 0; simulated < 2; simulated++) {
		struct hubs_world *w = enter(simulated ? "sim" : "unix", 0);
		for (int i = 0; i < 2; i++) {
			w->config[i].spin = true;
			start_hub(w, i);
		}
		meet(w, 0, 1);
		assert_int_equal(hd_hub_tell(&w->hubs[0], 1, 20, 5, "x", 1, NULL), HD_OK);
		run_until(w, &w->heard[1].n_messages, 1, "message");
		run_for(w, 5);                                    /* nothing comes */
		hd_hub_wake(&w->hubs[0]);                         /* said once */
		struct hd_loop_event other[4];
		size_t n = 0;
		assert_int_equal(hd_hub_poll(&w->hubs[0], hd_clock_now_ns(w->clock) + HD_NS_PER_S, other, 4,
			&n, &w->diag), HD_OK);
		assert_true(n == 1 && other[0].what == HD_LOOP_WAKE);
		assert_int_equal(hd_hub_poll(&w->hubs[0], hd_clock_now_ns(w->clock) + HD_NS_PER_MS, other, 4,
			&n, &w->diag), HD_OK);
		leave(w);
	}
}

static void a_loop_that_fails_is_told(void **state)
{
	(void)state;
	for (int spins = 0; spins < 2; spins++) {
		struct hubs_world *w = enter("unix", 0);
		struct hd_loop_event other[4];
		size_t n = 7;
		w->config[0].spin = spins;
		start_hub(w, 0);
		int epoll = dup(w->loops[0].epoll_fd);
		assert_true(epoll >= 0 && dup2(0, w->loops[0].epoll_fd) >= 0);       /* no loop any more */
		assert_int_not_equal(hd_hub_poll(&w->hubs[0], hd_clock_now_ns(w->clock) + HD_NS_PER_S, other,
			4, &n, NULL), HD_OK);
		assert_int_equal(n, 7);
		assert_true(dup2(epoll, w->loops[0].epoll_fd) >= 0);
		close(epoll);
		assert_int_equal(hd_hub_poll(&w->hubs[0], hd_clock_now_ns(w->clock), other, 4, &n, NULL),
			HD_OK);
		leave(w);
	}
}

static void who_cannot_be_called_is_refused(void **state)
{
	struct hubs_world *w = enter("sim", 2);

	(void)state;
	assert_int_equal(hd_hub_connect(&w->hubs[0], 0, "sim", w->addr[1], NULL), HD_E_INVAL);    /* itself */
	assert_int_equal(hd_hub_connect(&w->hubs[0], HD_WORKER_GUEST, "sim", w->addr[1], NULL), HD_E_INVAL);
	assert_int_equal(hd_hub_connect(&w->hubs[0], HD_WORKER_NONE, "sim", w->addr[1], NULL), HD_E_INVAL);
	assert_int_equal(hd_hub_connect(&w->hubs[0], HD_WORKER_GUEST - 1, "sim", w->addr[1], NULL), HD_OK);
	assert_int_equal(hd_hub_connect(&w->hubs[0], HD_WORKER_GUEST - 1, "sim", w->addr[1], NULL),
		HD_E_EXISTS);
	leave(w);
}

/* No peer, a connecting one, and one that has gone. */
static void nothing_is_done_for_who_is_not_connected(void **state)
{
	struct hubs_world *w = enter("sim", 2);
	struct hd_hub *hub = &w->hubs[0];
	uint8_t bytes[8] = { 0 };

	(void)state;
	for (int round = 0; round < 3; round++) {
		if (round == 1)
			assert_int_equal(hd_hub_connect(hub, 1, "sim", w->addr[1], NULL), HD_OK);
		if (round == 2) {
			run_until(w, &w->heard[0].n_ups, 1, "up");
			assert_true(hd_hub_is_up(hub, 1));
			hd_hub_drop(hub, 1, HD_CLOSE_DROPPED, "go");
			run_until(w, &w->heard[0].n_losts, 1, "lost");
		}
		assert_int_equal(hd_hub_tell(hub, 1, 20, 0, "x", 1, NULL), HD_E_PEERLOST);
		assert_int_equal(hd_hub_send(hub, 1, &(struct hd_send){ .bytes = bytes, .len = 8 }, NULL),
			HD_E_PEERLOST);
		assert_int_equal(hd_hub_answer(hub, 1, &(struct hd_answer){ .bytes = bytes, .len = 8 }, NULL),
			HD_E_PEERLOST);
		assert_int_equal(hd_hub_post(hub, 1, 1, bytes, NULL), HD_E_PEERLOST);
		assert_int_equal(hd_hub_expect(hub, 1, 1, bytes, 8, NULL), HD_E_PEERLOST);
		assert_int_equal(hd_hub_channel(hub, 1, NULL, 0, NULL, 0, NULL), HD_E_PEERLOST);
		hd_hub_cancel(hub, 1, 1);
		hd_hub_want(hub, 1, 1);
		hd_hub_probe(hub, 1);
		hd_hub_drop(hub, 77, HD_CLOSE_DROPPED, "no peer");
		assert_false(hd_hub_is_up(hub, 1) || hd_hub_is_away(hub, 1));
		hd_hub_decided(hub, 2 * (uint32_t)round + 2);
		hd_hub_epoch(hub, 2 * (uint32_t)round + 1, plan);
	}
	assert_int_equal(w->heard[0].n_losts, 1);
	leave(w);
}

/* Queued messages go first, however often it is closed; connecting peers are lost for that reason; places
 * that are free stay so. */
static void a_hub_may_be_closed_twice(void **state)
{
	struct hubs_world *w = enter("sim", 3);
	struct hd_hub_stats before, after;

	(void)state;
	meet(w, 0, 1);
	meet(w, 0, 2);
	hd_hub_drop(&w->hubs[0], 2, HD_CLOSE_DROPPED, "go");
	run_until(w, &w->heard[0].n_losts, 1, "lost");
	run_for(w, 100);
	assert_int_equal(hd_hub_tell(&w->hubs[0], 1, 20, 5, "last", 4, NULL), HD_OK);
	assert_int_equal(hd_hub_connect(&w->hubs[0], 9, "sim", w->addr[2], NULL), HD_OK);
	hd_hub_stats(&w->hubs[0], &before);
	hd_hub_close(&w->hubs[0], HD_CLOSE_DROPPED, "all of you");
	assert_false(hd_hub_is_closed(&w->hubs[0]));
	hd_hub_close(&w->hubs[0], HD_CLOSE_DROPPED, "all of you");
	run_for(w, 20);
	hd_hub_close(&w->hubs[0], HD_CLOSE_DROPPED, "all of you");
	run_for(w, 5 * T_MS);
	assert_true(hd_hub_is_closed(&w->hubs[0]));
	assert_int_equal(w->heard[1].n_messages, 1);
	assert_int_equal(w->heard[1].n_losts, 1);
	assert_non_null(strstr(w->heard[1].losts[0].text, "all of you"));
	assert_int_equal(w->heard[0].n_losts, 3);
	hd_hub_stats(&w->hubs[0], &after);
	assert_int_equal(after.closed[HD_CLOSE_DROPPED] - before.closed[HD_CLOSE_DROPPED], 2);
	leave(w);
}

/* As many calls as there are places, to one that takes none of them; then another call, and a stranger. */
static void when_all_places_are_taken_nobody_is_called_or_let_in(void **state)
{
	enum { PLACES = HD_HUB_PEERS + 2 * HD_HUB_GREETING };
	struct hubs_world *w = enter("tcp", 1);
	struct hd_sock far, stranger;
	char addr[HD_ADDR_CAP] = "tcp:127.0.0.1:0";
	struct hd_hub_stats stats;

	(void)state;
	assert_int_equal(hd_sock_listen(&w->real, addr, &far, &w->diag), HD_OK);
	memcpy(addr, far.addr, sizeof addr);
	for (uint32_t i = 1; i <= PLACES; i++)
		CHECK(hd_hub_connect(&w->hubs[0], i, "tcp", addr, &w->diag) == HD_OK, "%u: %s", i,
			w->diag.text);
	assert_int_equal(hd_hub_connect(&w->hubs[0], PLACES + 1, "tcp", addr, NULL), HD_E_AGAIN);
	assert_int_equal(hd_sock_connect(&w->real, w->addr[0], &stranger, &w->diag), HD_OK);
	do
		hd_hub_stats(&w->hubs[0], &stats);
	while (!stats.closed[HD_CLOSE_CROWDED] && turn(w, INT64_MAX));
	assert_int_equal(stats.greeting, PLACES);
	hd_sock_close(&stranger);
	hd_sock_close(&far);
	leave(w);
}

static int next_descriptor(void)
{
	int fd = dup(0);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

/* So many ungreeted connections, and no descriptor is left that the loop can watch: the next one cannot be
 * watched, and none gives way. */
static void refuse_what_cannot_be_watched(int strangers)
{
	struct hubs_world *w = enter("tcp", 1);
	struct hd_sock socks[HD_HUB_GREETING + 1];
	struct hd_hub_stats stats;
	struct rlimit was, more;
	int filled[HD_LOOP_WATCHED], n = 0;
	char addr[HD_ADDR_CAP] = "tcp:127.0.0.1:0";

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	more = was;
	if (more.rlim_cur < 2 * HD_LOOP_WATCHED)
		more.rlim_cur = more.rlim_max < 2 * HD_LOOP_WATCHED ? more.rlim_max : 2 * HD_LOOP_WATCHED;
	if (more.rlim_cur < HD_LOOP_WATCHED + 8 || setrlimit(RLIMIT_NOFILE, &more)) {
		leave(w);
		SKIP("this machine allows no more descriptors than a loop watches");
	}
	for (int i = 0; i <= strangers; i++) {
		if (i == strangers)
			while (next_descriptor() < HD_LOOP_WATCHED)
				filled[n++] = dup(0);
		assert_int_equal(hd_sock_connect(&w->real, w->addr[0], &socks[i], &w->diag), HD_OK);
		do
			hd_hub_stats(&w->hubs[0], &stats);
		while (stats.greeting + stats.closed[HD_CLOSE_CROWDED] + stats.closed[HD_CLOSE_GONE] <
			(uint32_t)i + 1 && turn(w, INT64_MAX));
	}
	assert_int_equal(stats.greeting, strangers);
	assert_int_equal(stats.closed[HD_CLOSE_CROWDED], 1);
	int next = next_descriptor();
	for (int i = 0; i < 2 * HD_HUB_LISTENERS; i++)
		assert_int_equal(hd_hub_listen(&w->hubs[0], "tcp", addr, NULL), HD_E_NOSPACE);
	assert_int_equal(hd_hub_connect(&w->hubs[0], 1, "tcp", w->addr[0], NULL), HD_E_NOSPACE);
	assert_int_equal(next_descriptor(), next);
	while (n)
		close(filled[--n]);
	for (int i = 0; i <= strangers; i++) {
		uint8_t byte;
		size_t got = 1;
		enum hd_err err = hd_sock_read(&socks[i], &byte, 1, &got, NULL);
		CHECK(i == strangers || err == HD_E_AGAIN, "number %d gave way", i);
		hd_sock_close(&socks[i]);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	leave(w);
}

static void what_the_loop_cannot_watch_is_refused_and_given_back(void **state)
{
	(void)state;
	refuse_what_cannot_be_watched(HD_HUB_GREETING);
	refuse_what_cannot_be_watched(3);
}

/* What a receiver has not read cannot be called back: it is two chunks at most, and one more is chosen. */
static void little_lies_in_a_ring_that_is_not_read(void **state)
{
	enum { LEN = 4 << 20 };
	static const struct hd_transfer channel[] = { { 3, 1, LEN } };
	static uint8_t from[LEN], into[LEN];
	struct hubs_world *w = enter("shm", 2);
	struct hd_hub_stats stats;
	struct hd_loop_event other[4];
	size_t n;

	(void)state;
	fill(from, LEN, 1);
	meet(w, 0, 1);
	for (int i = 0; i < 2; i++) {
		hd_hub_epoch(&w->hubs[i], 1, plan);
		assert_int_equal(hd_hub_channel(&w->hubs[i], (uint32_t)(1 - i), channel, 1, channel, 1,
			&w->diag), HD_OK);
		assert_int_equal(hd_hub_post(&w->hubs[i], (uint32_t)(1 - i), 3, into, &w->diag), HD_OK);
	}
	run_for(w, 5);
	assert_int_equal(hd_hub_send(&w->hubs[0], 1, &(struct hd_send){ 3, 0, 1, from, LEN, 5 }, &w->diag),
		HD_OK);
	for (int i = 0; i < 50; i++)
		assert_int_equal(hd_hub_poll(&w->hubs[0], hd_clock_now_ns(w->clock), other, 4, &n, &w->diag),
			HD_OK);
	hd_hub_stats(&w->hubs[0], &stats);
	CHECK(stats.bytes_sent >= HD_CHUNK_LEAST && stats.bytes_sent <= 3 * HD_CHUNK_FIRST, "%llu bytes",
		(unsigned long long)stats.bytes_sent);
	run_until(w, &w->heard[1].n_arrivals, 1, "arrival");
	assert_memory_equal(from, into, LEN);
	leave(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hub_out_of_range_is_not_made),
		cmocka_unit_test(a_hub_listens_at_four_places_and_needs_a_key_where_one_proves),
		cmocka_unit_test(a_row_that_is_open_to_others_needs_a_word),
		cmocka_unit_test(a_hub_that_spins_hears_the_same),
		cmocka_unit_test(a_loop_that_fails_is_told),
		cmocka_unit_test(who_cannot_be_called_is_refused),
		cmocka_unit_test(nothing_is_done_for_who_is_not_connected),
		cmocka_unit_test(a_hub_may_be_closed_twice),
		cmocka_unit_test(when_all_places_are_taken_nobody_is_called_or_let_in),
		cmocka_unit_test(what_the_loop_cannot_watch_is_refused_and_given_back),
		cmocka_unit_test(little_lies_in_a_ring_that_is_not_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
