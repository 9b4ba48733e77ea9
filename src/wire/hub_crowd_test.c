/* Which ungreeted connection gives way in a crowd: by the number of each address, over a simulated net with
 * many hosts. */
#include "wire/testing_hubs.h"

enum { HOSTS = HD_HUB_GREETING + 3, COME = 160 };

static const char *const ways[] = { "sim", "tcp" };       /* of this machine, of others */

struct crowd {
	struct hubs_world *w;
	struct hd_net_host host[HOSTS];
	struct hd_sock sock[COME], far;
	uint32_t from[COME], n;
	char addr[2][HD_ADDR_CAP];
};

static struct crowd *gather(void)
{
	struct crowd *c = calloc(1, sizeof *c);

	assert_non_null(c);
	c->w = enter("sim", 0);
	c->w->config[0].peers_cap = HD_HUB_PEERS;
	start_hub(c->w, 0);
	memcpy(c->addr[0], c->w->addr[0], HD_ADDR_CAP);
	memcpy(c->addr[1], "tcp:crowd:1", 12);
	assert_int_equal(hd_hub_listen(&c->w->hubs[0], ways[1], c->addr[1], NULL), HD_OK);
	for (uint32_t i = 0; i < HOSTS; i++)
		hd_net_sim_host(&c->w->sim, i, NULL, &c->host[i]);
	return c;
}

static void scatter(struct crowd *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->sock[i].net)
			hd_sock_close(&c->sock[i]);
	leave(c->w);
	free(c);
}

/* n of one host, a millisecond apart, that say nothing. */
static void come(struct crowd *c, int way, uint32_t host, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_true(c->n < COME && host < HOSTS);
		assert_int_equal(hd_sock_connect(&c->host[host].net, c->addr[way], &c->sock[c->n], NULL),
			HD_OK);
		c->from[c->n++] = host;
		run_for(c->w, 1);
	}
}

static void hang_up(struct crowd *c, uint32_t i)
{
	hd_sock_close(&c->sock[i]);
	c->sock[i].net = NULL;
	run_for(c->w, 1);
}

static bool is_closed(struct crowd *c, uint32_t i)
{
	uint8_t byte;
	size_t got = 1;
	enum hd_err err = hd_sock_read(&c->sock[i], &byte, 1, &got, NULL);

	return err ? err != HD_E_AGAIN : !got;
}

static void greet(struct crowd *c, uint32_t i, uint32_t worker)
{
	uint8_t bytes[HD_FRAME_HEADER + hd_greeting_len];
	size_t put;

	put_hello(c->w, worker, true, bytes);
	assert_int_equal(hd_sock_write(&c->sock[i], bytes, sizeof bytes, &put, NULL), HD_OK);
	run_for(c->w, 1);
}

static void the_oldest_of_the_address_that_has_most_gives_way(void **state)
{
	static const struct { const char *what; struct { uint32_t host, n; } come[6]; uint32_t closed[5];
		} cases[] = {
		{ "one address, while there are places", { { 0, 64 } }, { 0 } },
		{ "one address, beyond them", { { 0, 70 } }, { 6 } },
		{ "others come to one that fills all", { { 0, 64 }, { 1, 10 } }, { 10, 0 } },
		{ "a fifth comes to four that fill all", { { 0, 16 }, { 1, 16 }, { 2, 16 }, { 3, 16 }, { 4, 1 } }, { 1, 0, 0, 0, 0 } },
		{ "five of a fifth come", { { 0, 16 }, { 1, 16 }, { 2, 16 }, { 3, 16 }, { 4, 5 } }, { 2, 1, 1, 1, 0 } },
		{ "the first, alone of its address, stays", { { 0, 1 }, { 1, 63 }, { 1, 20 } }, { 0, 20 } },
		{ "the address that has most was not first", { { 0, 14 }, { 1, 30 }, { 2, 20 }, { 3, 3 } }, { 0, 3, 0, 0 } },
		{ "one that grows to the most gives way itself", { { 0, 30 }, { 1, 20 }, { 2, 14 }, { 1, 8 } }, { 5, 3, 0 } },
		{ "one that becomes equal gives way itself", { { 1, 16 }, { 0, 15 }, { 2, 16 }, { 3, 16 }, { 4, 1 }, { 0, 1 } }, { 1, 0, 0, 0, 0 } },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct crowd *c = gather();
		uint32_t seen[HOSTS] = { 0 }, all = 0;
		for (size_t k = 0; k < 6; k++)
			come(c, 1, cases[i].come[k].host, cases[i].come[k].n);
		for (uint32_t k = 0; k < c->n; k++) {
			uint32_t host = c->from[k];
			CHECK(is_closed(c, k) == (seen[host] < cases[i].closed[host]),
				"%s: number %u of address %u", cases[i].what, seen[host], host);
			seen[host]++;
		}
		for (size_t k = 0; k < 5; k++)
			all += cases[i].closed[k];
		assert_int_equal(closed(c->w, 0, HD_CLOSE_CROWDED), all);
		scatter(c);
	}
}

/* As many addresses as places, one connection each: the next one is accepted if it greets at once. */
static void of_equals_the_oldest_gives_way(void **state)
{
	struct crowd *c = gather();

	(void)state;
	for (uint32_t host = 0; host < HD_HUB_GREETING; host++)
		come(c, 1, host, 1);
	assert_int_equal(closed(c->w, 0, HD_CLOSE_CROWDED), 0);
	hang_up(c, 0);                            /* its place is taken by a newer one */
	come(c, 1, HD_HUB_GREETING, 1);
	assert_int_equal(closed(c->w, 0, HD_CLOSE_CROWDED), 0);
	come(c, 1, HD_HUB_GREETING + 1, 1);
	greet(c, c->n - 1, 5);
	assert_int_equal(c->w->heard[0].n_ups, 1);
	for (uint32_t i = 1; i < c->n - 1; i++)
		CHECK(is_closed(c, i) == (i == 1), "number %u", i);
	scatter(c);
}

/* Places are reused: connections of the fullest address lie before and behind an older single one. */
static void places_say_nothing_of_age(void **state)
{
	struct crowd *c = gather();

	(void)state;
	come(c, 1, 1, 1);
	come(c, 1, 2, 1);
	hang_up(c, 0);
	come(c, 1, 1, HD_HUB_GREETING);
	assert_int_equal(closed(c->w, 0, HD_CLOSE_CROWDED), 1);
	for (uint32_t i = 1; i < c->n; i++)
		CHECK(is_closed(c, i) == (i == 2), "number %u", i);
	scatter(c);
}

/* A machine with many devices: its workers call in one instant. */
static void forty_workers_of_one_address_greet_at_once(void **state)
{
	enum { WORKERS = 40 };
	struct crowd *c = gather();

	(void)state;
	come(c, 1, 7, WORKERS);
	for (uint32_t i = 0; i < WORKERS; i++)
		greet(c, i, 100 + i);
	assert_int_equal(c->w->heard[0].n_ups, WORKERS);
	assert_int_equal(c->w->heard[0].n_losts, 0);
	/* A greeted connection takes no place of ungreeted ones, and does not count for its address. */
	come(c, 1, 7, 31);
	come(c, 1, 1, 33);
	assert_int_equal(closed(c->w, 0, HD_CLOSE_CROWDED), 0);
	come(c, 1, 2, 1);
	assert_int_equal(c->w->heard[0].n_losts, 0);
	for (uint32_t i = WORKERS; i < c->n; i++)
		CHECK(is_closed(c, i) == (i == WORKERS + 31), "number %u", i);
	scatter(c);
}

/* Either way has places of its own, and an order of its own: of this machine the newest is refused. */
static void who_comes_by_a_way_of_this_machine_neither_counts_nor_gives_way(void **state)
{
	enum { LOCAL = 40 };
	struct crowd *c = gather();

	(void)state;
	come(c, 0, 0, LOCAL / 2);                 /* of the hosts that the others come from, too, and older */
	come(c, 0, 1, LOCAL / 2);
	come(c, 1, 0, 31);
	come(c, 1, 1, 33);
	assert_int_equal(closed(c->w, 0, HD_CLOSE_CROWDED), 0);
	come(c, 1, 2, 1);
	for (uint32_t i = 0; i < c->n; i++)
		CHECK(is_closed(c, i) == (i == LOCAL + 31), "number %u", i);
	scatter(c);

	c = gather();
	come(c, 1, 0, 20);
	come(c, 0, 0, HD_HUB_GREETING + 2);
	for (uint32_t i = 0; i < c->n; i++)
		CHECK(is_closed(c, i) == (i >= 20 + HD_HUB_GREETING), "number %u", i);
	assert_int_equal(closed(c->w, 0, HD_CLOSE_CROWDED), 2);
	scatter(c);
}

/* A connection without an id is no peer, on any transport. */
static void a_stranger_is_not_found_by_any_id(void **state)
{
	struct crowd *c = gather();

	(void)state;
	come(c, 1, 0, 1);
	assert_false(hd_hub_is_up(&c->w->hubs[0], HD_WORKER_NONE));
	hd_hub_drop(&c->w->hubs[0], HD_WORKER_NONE, HD_CLOSE_DROPPED, "go");
	run_for(c->w, 1);
	assert_false(is_closed(c, 0));
	greet(c, 0, 5);
	assert_int_equal(c->w->heard[0].n_ups, 1);
	scatter(c);
}

/* Outgoing connections are not strangers. */
static void who_is_called_neither_counts_nor_gives_way(void **state)
{
	enum { CALLED = 10 };
	struct crowd *c = gather();

	(void)state;
	assert_int_equal(hd_sock_listen(&c->host[9].net, "tcp:mute:1", &c->far, NULL), HD_OK);
	for (uint32_t i = 0; i < CALLED; i++)
		assert_int_equal(hd_hub_connect(&c->w->hubs[0], 500 + i, ways[1], "tcp:mute:1", NULL), HD_OK);
	come(c, 1, 0, 32);
	come(c, 1, 1, 32);
	assert_int_equal(closed(c->w, 0, HD_CLOSE_CROWDED), 0);
	come(c, 1, 2, 1);
	for (uint32_t i = 0; i < c->n; i++)
		CHECK(is_closed(c, i) == (i == 0), "number %u", i);
	assert_int_equal(c->w->heard[0].n_losts, 0);
	/* not yet */
	assert_false(hd_hub_is_up(&c->w->hubs[0], 500) || hd_hub_is_away(&c->w->hubs[0], 500));
	hd_hub_finish(&c->w->hubs[0]);
	hd_sock_close(&c->far);
	scatter(c);
}

/* Two events at one instant: a new connection closes the oldest, and the oldest has sent. The second event is
 * of a connection that is gone. */
static void what_is_told_of_one_that_gave_way_is_nothing(void **state)
{
	struct crowd *c = gather();
	struct hd_loop_event other[8];
	char addr[HD_ADDR_CAP] = "tcp:proving:1";
	size_t put, n;

	(void)state;
	assert_int_equal(hd_hub_listen(&c->w->hubs[0], "tls", addr, NULL), HD_OK);
	start_hub(c->w, 1);
	meet(c->w, 1, 0);                         /* it has the first place, which is free in the end */
	memcpy(c->addr[1], addr, sizeof addr);
	come(c, 1, 1, HD_HUB_GREETING);
	hd_hub_finish(&c->w->hubs[1]);
	run_for(c->w, 1);
	assert_int_equal(hd_sock_connect(&c->host[2].net, addr, &c->sock[c->n++], NULL), HD_OK);
	assert_int_equal(hd_sock_write(&c->sock[0], "x", 1, &put, NULL), HD_OK);
	assert_int_equal(hd_hub_poll(&c->w->hubs[0], hd_clock_now_ns(c->w->clock), other, 8, &n, NULL),
		HD_OK);
	assert_int_equal(closed(c->w, 0, HD_CLOSE_CROWDED), 1);
	run_for(c->w, 1);
	for (uint32_t i = 0; i < c->n; i++)
		CHECK(is_closed(c, i) == (i == 0), "number %u", i);
	scatter(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_of_the_address_that_has_most_gives_way),
		cmocka_unit_test(of_equals_the_oldest_gives_way),
		cmocka_unit_test(places_say_nothing_of_age),
		cmocka_unit_test(forty_workers_of_one_address_greet_at_once),
		cmocka_unit_test(who_comes_by_a_way_of_this_machine_neither_counts_nor_gives_way),
		cmocka_unit_test(a_stranger_is_not_found_by_any_id),
		cmocka_unit_test(who_is_called_neither_counts_nor_gives_way),
		cmocka_unit_test(what_is_told_of_one_that_gave_way_is_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
