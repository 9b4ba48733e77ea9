/* Unauthenticated connections: what only one row of the transports has, and greetings that are late,
 * wrong or too many. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/le.h"
#include "sys/bell.h"
#include "sys/crypto_tls.h"
#include "sys/memory.h"
#include "wire/transport.h"
#include "wire/testing_hubs.h"

/* ---- what only one row has ---- */

static void tcp_without_a_key_asks_for_a_word(void **state)
{
	struct hubs_world *w = enter("sim", 1);
	char addr[HD_ADDR_CAP] = "tcp:127.0.0.1:0";

	(void)state;
	hd_hub_finish(&w->hubs[0]);
	w->config[0].plaintext = false;
	start_hub(w, 0);
	assert_int_equal(hd_hub_listen(&w->hubs[0], "tcp", addr, NULL), HD_E_REFUSED);
	assert_int_equal(hd_hub_connect(&w->hubs[0], 4, "tcp", addr, NULL), HD_E_REFUSED);
	assert_int_equal(hd_hub_listen(&w->hubs[0], "pigeon", addr, NULL), HD_E_INVAL);
	leave(w);
}

static void a_folder_that_others_enter_is_not_listened_in(void **state)
{
	struct hubs_world *w = enter("unix", 1);
	char addr[HD_ADDR_CAP];

	(void)state;
	assert_int_equal(chmod(w->folder, 0755), 0);
	snprintf(addr, sizeof addr, "unix:%s/other", w->folder);
	assert_int_equal(hd_hub_listen(&w->hubs[0], "unix", addr, NULL), HD_E_REFUSED);
	memcpy(addr, "tcp:127.0.0.1:0", 16);
	assert_int_equal(hd_hub_listen(&w->hubs[0], "unix", addr, NULL), HD_E_INVAL);
	leave(w);
}

static void a_wrong_key_is_refused_on_both_sides(void **state)
{
	static const uint8_t other_key[32] = "another key, of thirty-two byte";
	struct hubs_world *w = enter("tls", 2);

	(void)state;
	hd_hub_finish(&w->hubs[1]);
	w->config[1].key = other_key;
	start_hub(w, 1);
	for (int a = 0; a < 2; a++) {
		uint32_t losts = w->heard[a].n_losts;
		uint64_t counted = closed(w, 1 - a, HD_CLOSE_KEY);
		assert_int_equal(hd_hub_connect(&w->hubs[a], (uint32_t)(1 - a), "tls", w->addr[1 - a],
			&w->diag), HD_OK);
		run_until(w, &w->heard[a].n_losts, losts + 1, "refusal");
		assert_int_equal(w->heard[a].losts[losts].why, HD_CLOSE_KEY);
		assert_non_null(strstr(w->heard[a].losts[losts].text, "do both sides have the same key"));
		run_for(w, 30);
		assert_int_equal(closed(w, 1 - a, HD_CLOSE_KEY), counted + 1);
		assert_int_equal(w->heard[1 - a].n_ups, 0);
	}
	leave(w);
}

/* The id in the greeting must be the one that was proven: hub 2 proves itself as 2 and says it is 1. */
static void who_proved_one_id_cannot_greet_as_another(void **state)
{
	struct hubs_world *w = enter("tls", 1);
	struct hd_transport const *tls = hd_transport_find("tls");
	struct hd_tls_realm realm;
	struct hd_conn conn = { .ops = tls, .second_id = -1,
		.ids = { .job = w->config[0].job, .self = 2, .peer = 0, .outgoing = true, .key = job_key,
		.key_len = 32, .realm = &realm } };
	struct hd_greeting_payload hello = { HD_WIRE_VERSION, HD_WIRE_VERSION, 1, HD_ROLE_WORKER, T_MS,
		w->config[0].job,
		w->config[0].job_hash, w->config[0].kernels, { { 5 } } };
	uint8_t bytes[HD_FRAME_HEADER + 80];
	enum hd_err err = HD_E_AGAIN;
	size_t put;

	(void)state;
	assert_int_equal(hd_tls_realm_make(&realm, &w->diag), HD_OK);
	assert_int_equal(hd_sock_connect(&w->real, w->addr[0], &conn.sock, &w->diag), HD_OK);
	for (int i = 0; i < 1000 && err == HD_E_AGAIN; i++) {
		err = tls->ready(&conn, &w->diag);
		run_for(w, 1);
	}
	CHECK(err == HD_OK, "%s", w->diag.text);
	hd_greeting_put(&hello, bytes + HD_FRAME_HEADER);
	hd_frame_put(&(struct hd_frame){ .type = HD_FRAME_HELLO, .len = 80 }, bytes);
	assert_int_equal(tls->write(&conn, &(struct hd_vec){ bytes, sizeof bytes }, 1, &put, &w->diag),
		HD_OK);
	run_for(w, 30);
	tls->close(&conn);
	hd_tls_realm_finish(&realm);
	run_for(w, 30);
	assert_int_equal(closed(w, 0, HD_CLOSE_IDENTITY), 1);
	assert_int_equal(w->heard[0].n_ups, 0);
	leave(w);
}

static void a_stranger_at_the_door_of_tls_is_counted_and_gone(void **state)
{
	static const char *const says[] = { "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x00\x05hello", "" };
	struct hubs_world *w = enter("tls", 1);
	struct hd_sock sock;
	size_t put;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(hd_sock_connect(&w->real, w->addr[0], &sock, &w->diag), HD_OK);
		run_for(w, 20);
		if (*says[i])
			assert_int_equal(hd_sock_write(&sock, says[i], strlen(says[i]), &put, &w->diag),
				HD_OK);
		run_for(w, 20);
		hd_sock_close(&sock);
		run_for(w, 20);
		assert_int_equal(closed(w, 0, HD_CLOSE_KEY) + closed(w, 0, HD_CLOSE_GONE), i + 1);
	}
	assert_int_equal(w->heard[0].n_ups + w->heard[0].n_losts, 0);
	leave(w);
}

/* Bytes on the liveness socket, words that cannot be, a block of another length: the ring's peer is not
 * believed. */
static void who_breaks_the_shared_ring_is_closed(void **state)
{
	struct hubs_world *w;

	(void)state;
	for (int how = 0; how < 2; how++) {
		w = enter("shm", 1);
		struct hd_sock sock;
		struct hd_memory memory = { 0 };
		struct hd_bell bells[2] = { { -1 }, { -1 } };
		int id = -1;
		size_t put;
		assert_int_equal(hd_sock_connect(&w->real, w->addr[0], &sock, &w->diag), HD_OK);
		assert_int_equal(hd_memory_pair(how ? (2 << 20) + 4096 : 1 << 20, &memory, &id, &w->diag),
			HD_OK);
		assert_int_equal(hd_bell_make(&bells[0], &w->diag), HD_OK);
		assert_int_equal(hd_bell_make(&bells[1], &w->diag), HD_OK);
		assert_int_equal(hd_sock_give(&sock, (int[]){ id, bells[0].id, bells[1].id }, 3, &w->diag),
			HD_OK);
		run_for(w, 20);
		assert_int_equal(closed(w, 0, HD_CLOSE_FRAME), !how);
		if (how) {
			/* head of the first ring: more than it holds */
			*(uint64_t *)memory.at = (2 << 20) + 1;
			hd_bell_ring(&bells[1]);
			run_for(w, 20);
			assert_int_equal(closed(w, 0, HD_CLOSE_FRAME), 1);
		}
		(void)!hd_sock_write(&sock, "x", 1, &put, NULL);
		hd_memory_id_close(id);
		hd_memory_give(&memory);
		hd_bell_close(&bells[0]);
		hd_bell_close(&bells[1]);
		hd_sock_close(&sock);
		leave(w);
	}
}

/* ---- strangers ---- */

static void stranger(struct hubs_world *w, struct hd_sock *sock, const void *bytes, size_t len)
{
	size_t put;

	assert_int_equal(hd_sock_connect(&w->hosts[2].net, w->addr[0], sock, &w->diag), HD_OK);
	if (len)
		assert_int_equal(hd_sock_write(sock, bytes, len, &put, &w->diag), HD_OK);
}

static void who_does_not_greet_in_order_is_closed_without_a_word(void **state)
{
	static const struct { const char *name; enum hd_close why; uint32_t len, change; } cases[] = {
		{ "nothing", HD_CLOSE_LATE, 0, 0 }, { "half a header", HD_CLOSE_LATE, 20, 0 }, { "half a greeting", HD_CLOSE_LATE, 100, 0 },
		{ "a broken header", HD_CLOSE_FRAME, 128, 1 }, { "another frame", HD_CLOSE_ORDER, 56, 2 }, { "a welcome", HD_CLOSE_ORDER, 128, 3 },
		{ "a later version", HD_CLOSE_VERSION, 128, 4 }, { "an unknown role", HD_CLOSE_FRAME, 128, 5 },
		{ "text of the web", HD_CLOSE_FRAME, 60, 6 }, { "an id of a guest", HD_CLOSE_IDENTITY, 128, 7 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hubs_world *w = enter("sim", 1);
		struct hd_sock sock;
		uint8_t bytes[HD_FRAME_HEADER + 80], answer[256];
		size_t got = 0;
		put_hello(w, 5, false, bytes);
		if (cases[i].change == 1)
			bytes[9] ^= 1;
		if (cases[i].change == 2)
			hd_frame_put(&(struct hd_frame){ .type = HD_FRAME_PING, .len = 8 }, bytes);
		if (cases[i].change == 3)
			hd_frame_put(&(struct hd_frame){ .type = HD_FRAME_WELCOME, .len = 80 }, bytes);
		if (cases[i].change == 4) {
			hd_put16(bytes + 48, 1000);
			hd_put16(bytes + 50, 1001);
		}
		if (cases[i].change == 5)
			bytes[48 + 8] = 4;
		if (cases[i].change == 6)
			memcpy(bytes, "GET / HTTP/1.1\r\nHost: example.org\r\nAccept: text/html, */*\r\n\r\n",
				60);
		if (cases[i].change == 7)
			hd_put32(bytes + 48 + 4, HD_WORKER_GUEST + 1);
		stranger(w, &sock, bytes, cases[i].len);
		run_for(w, 4900);
		CHECK(closed(w, 0, cases[i].why) == (cases[i].why != HD_CLOSE_LATE),
			"%s: closed too early or for another reason", cases[i].name);
		enum hd_err err = hd_sock_read(&sock, answer, sizeof answer, &got, NULL);
		CHECK(got == 0 || cases[i].why == HD_CLOSE_VERSION || cases[i].why == HD_CLOSE_IDENTITY,
			"%s: answered with %zu bytes (%d)",
			cases[i].name, got, (int)err);
		hd_sock_close(&sock);
		run_for(w, 1500);
		CHECK(closed(w, 0, cases[i].why) + closed(w, 0, HD_CLOSE_GONE) == 1, "%s: not counted",
			cases[i].name);
		assert_int_equal(w->heard[0].n_ups + w->heard[0].n_losts, 0);
		leave(w);
	}
}

static void late_greetings_are_closed_after_five_t(void **state)
{
	struct hubs_world *w = enter("sim", 1);
	struct hd_sock sock;
	struct hd_hub_stats stats;

	(void)state;
	stranger(w, &sock, "HD", 2);
	run_for(w, 4990);
	hd_hub_stats(&w->hubs[0], &stats);
	assert_int_equal(stats.greeting, 1);
	run_for(w, 20);
	assert_int_equal(closed(w, 0, HD_CLOSE_LATE), 1);
	hd_sock_close(&sock);
	leave(w);
}

static void no_more_than_sixty_four_strangers_are_kept(void **state)
{
	struct hubs_world *w = enter("sim", 2);
	struct hd_sock socks[HD_HUB_GREETING + 3];
	struct hd_hub_stats stats;

	(void)state;
	meet(w, 1, 0);
	for (int i = 0; i < HD_HUB_GREETING + 3; i++)
		stranger(w, &socks[i], "HD", 2);
	run_for(w, 100);
	hd_hub_stats(&w->hubs[0], &stats);
	assert_int_equal(stats.greeting, HD_HUB_GREETING);
	assert_int_equal(stats.closed[HD_CLOSE_CROWDED], 3);
	assert_int_equal(stats.up, 1);                    /* known peers are not disturbed */
	run_for(w, 6000);
	assert_int_equal(closed(w, 0, HD_CLOSE_LATE), HD_HUB_GREETING);
	assert_true(hd_hub_is_up(&w->hubs[0], 1));
	for (int i = 0; i < HD_HUB_GREETING + 3; i++)
		hd_sock_close(&socks[i]);
	leave(w);
}

/* Any client of the port can connect and keep silent; workers of this machine come by sockets that only
 * their user can open. */
static void strangers_at_an_open_port_keep_nobody_of_this_machine_out(void **state)
{
	struct hubs_world *w = enter("unix", 2);
	struct hd_sock socks[HD_HUB_GREETING + 3];
	struct hd_hub_stats stats;
	char port[HD_ADDR_CAP] = "tcp:127.0.0.1:0";

	(void)state;
	assert_int_equal(hd_hub_listen(&w->hubs[0], "tcp", port, &w->diag), HD_OK);
	for (int i = 0; i < HD_HUB_GREETING + 3; i++)
		assert_int_equal(hd_sock_connect(&w->real, port, &socks[i], &w->diag), HD_OK);
	do
		hd_hub_stats(&w->hubs[0], &stats);
	while (stats.greeting + stats.closed[HD_CLOSE_CROWDED] < HD_HUB_GREETING + 3 && turn(w, INT64_MAX));
	assert_int_equal(stats.greeting, HD_HUB_GREETING);
	assert_int_equal(stats.closed[HD_CLOSE_CROWDED], 3);
	meet(w, 1, 0);
	for (int i = 0; i < HD_HUB_GREETING + 3; i++)
		hd_sock_close(&socks[i]);
	leave(w);
}

/* One that says nothing, from 127.0.0.`host`. */
static int mute(const char *port, uint8_t host)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000u + host) };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)strtoul(strrchr(port, ':') + 1, NULL, 10)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
	CHECK(!connect(fd, (struct sockaddr *)&to, sizeof to), "%s", strerror(errno));
	return fd;
}

static void settle(struct hubs_world *w, uint32_t come)
{
	struct hd_hub_stats stats;

	do
		hd_hub_stats(&w->hubs[0], &stats);
	while (stats.greeting + stats.closed[HD_CLOSE_CROWDED] < come && turn(w, INT64_MAX));
	assert_int_equal(stats.greeting + stats.closed[HD_CLOSE_CROWDED], come);
}

/* From one address, then from others too; at last all come from the address of the one that greets. */
static void silent_ones_keep_out_nobody_who_greets(void **state)
{
	enum { FIRST = HD_HUB_GREETING + 3, OTHERS = 3, EACH = 16 };
	struct hubs_world *w = enter("tcp", 3);
	struct hd_hub_stats stats;
	int fd[FIRST + OTHERS * EACH];
	uint32_t n = 0;

	(void)state;
	while (n < FIRST) {                       /* one by one: what the kernel keeps has an end */
		fd[n++] = mute(w->addr[0], 2);
		settle(w, n);
	}
	hd_hub_stats(&w->hubs[0], &stats);
	assert_int_equal(stats.greeting, HD_HUB_GREETING);
	meet(w, 1, 0);
	for (uint8_t host = 3; host < 3 + OTHERS; host++)
		for (uint32_t i = 0; i < EACH; i++) {
			fd[n++] = mute(w->addr[0], host);
			settle(w, n);
		}
	hd_hub_stats(&w->hubs[0], &stats);
	assert_int_equal(stats.greeting, HD_HUB_GREETING);
	for (uint32_t i = 0; i < n; i++)
		close(fd[i]);
	do
		hd_hub_stats(&w->hubs[0], &stats);
	while (stats.greeting && turn(w, INT64_MAX));
	for (n = 0; n < HD_HUB_GREETING; n++) {
		fd[n] = mute(w->addr[0], 1);
		settle(w, (uint32_t)stats.closed[HD_CLOSE_CROWDED] + n + 1);
	}
	meet(w, 2, 0);                            /* from 127.0.0.1, as they */
	for (uint32_t i = 0; i < n; i++)
		close(fd[i]);
	leave(w);
}

/* How long we wait is ours to say. */
static void a_peer_does_not_buy_time_with_a_long_t(void **state)
{
	struct hubs_world *w = enter("sim", 1);
	struct hd_sock sock;
	uint8_t bytes[HD_FRAME_HEADER + 80];

	(void)state;
	put_hello(w, 5, false, bytes);
	hd_put32(bytes + HD_FRAME_HEADER + 12, 600000);
	stranger(w, &sock, bytes, sizeof bytes);
	run_until(w, &w->heard[0].n_ups, 1, "up");
	run_for(w, 3990);
	assert_int_equal(w->heard[0].n_suspects, 0);
	run_for(w, 20);
	assert_int_equal(w->heard[0].n_suspects, 1);
	run_for(w, 7 * 4000);
	assert_int_equal(w->heard[0].n_losts, 1);
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_SILENT);
	hd_sock_close(&sock);
	leave(w);
}

static void who_stops_inside_a_frame_is_closed_after_t(void **state)
{
	struct hubs_world *w = enter("sim", 1);
	struct hd_sock sock;
	uint8_t bytes[HD_FRAME_HEADER + 80], ping[HD_FRAME_HEADER + 8] = { 0 };
	size_t put;

	(void)state;
	put_hello(w, 5, false, bytes);
	hd_frame_put(&(struct hd_frame){ .type = HD_FRAME_PING, .len = 8 }, ping);
	stranger(w, &sock, bytes, sizeof bytes);
	run_until(w, &w->heard[0].n_ups, 1, "up");
	assert_int_equal(hd_sock_write(&sock, ping, 50, &put, &w->diag), HD_OK);
	run_for(w, 990);
	assert_int_equal(w->heard[0].n_losts, 0);
	run_for(w, 20);
	assert_int_equal(w->heard[0].n_losts, 1);
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_STALLED);
	hd_sock_close(&sock);
	leave(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(tcp_without_a_key_asks_for_a_word),
		cmocka_unit_test(a_folder_that_others_enter_is_not_listened_in),
		cmocka_unit_test(a_wrong_key_is_refused_on_both_sides),
		cmocka_unit_test(who_proved_one_id_cannot_greet_as_another),
		cmocka_unit_test(a_stranger_at_the_door_of_tls_is_counted_and_gone),
		cmocka_unit_test(who_breaks_the_shared_ring_is_closed),
		cmocka_unit_test(who_does_not_greet_in_order_is_closed_without_a_word),
		cmocka_unit_test(late_greetings_are_closed_after_five_t),
		cmocka_unit_test(no_more_than_sixty_four_strangers_are_kept),
		cmocka_unit_test(strangers_at_an_open_port_keep_nobody_of_this_machine_out),
		cmocka_unit_test(silent_ones_keep_out_nobody_who_greets),
		cmocka_unit_test(a_peer_does_not_buy_time_with_a_long_t),
		cmocka_unit_test(who_stops_inside_a_frame_is_closed_after_t),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
