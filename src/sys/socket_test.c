/* One conformance suite for every row of hd_net, each with its loop; then what only one row has. */
#include "sys/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/bell.h"
#include "sys/file.h"
#include "sys/loop.h"
#include "sys/memory.h"
#include "tests/check.h"

struct socket_world {
	struct hd_net real, *net;
	struct hd_net_sim sim;
	struct hd_clock clock;
	struct hd_clock_sim clock_sim;
	struct hd_loop loop;
	char folder[40], addr[HD_ADDR_CAP];
	struct hd_diag diag;
};

enum kind { UNIX, TCP4, SIM, KINDS };

static void enter(struct socket_world *world, enum kind kind)
{
	memset(world, 0, sizeof *world);
	if (kind == SIM) {
		hd_clock_sim(&world->clock_sim, 1000, 0);
		assert_int_equal(hd_loop_sim_init(&world->loop, &world->clock_sim, &world->diag), HD_OK);
		assert_int_equal(hd_net_sim_init(&world->sim, &world->clock_sim.clock, &world->loop,
			&world->diag), HD_OK);
		world->net = &world->sim.net;
		snprintf(world->addr, sizeof world->addr, "unix:anywhere");
		return;
	}
	hd_clock_real(&world->clock);
	assert_int_equal(hd_loop_init(&world->loop, &world->clock, &world->diag), HD_OK);
	hd_net_real(&world->real);
	world->net = &world->real;
	memcpy(world->folder, "/tmp/hd_sock.XXXXXX", 20);
	assert_non_null(mkdtemp(world->folder));
	if (kind == UNIX)
		snprintf(world->addr, sizeof world->addr, "unix:%s/s", world->folder);
	else
		snprintf(world->addr, sizeof world->addr, "tcp:127.0.0.1:0");
}

static void leave(struct socket_world *world)
{
	hd_loop_finish(&world->loop);
	hd_net_sim_finish(&world->sim);
	if (world->folder[0])
		assert_int_equal(rmdir(world->folder), 0);        /* closing the listener removed its path */
}

/* Waits, a bounded time, until `id` reports something. */
static void await(struct socket_world *world, int id, unsigned interest)
{
	struct hd_loop_event event;
	size_t n;

	assert_int_equal(hd_loop_watch(&world->loop, id, interest, 77, &world->diag), HD_OK);
	int64_t until = hd_clock_now_ns(world->loop.clock) + 20 * HD_NS_PER_S;
	do {
		assert_int_equal(hd_loop_poll(&world->loop, until, &event, 1, &n, &world->diag), HD_OK);
	} while (n && event.tag != 77);
	CHECK(n == 1 && event.tag == 77, "nothing came");
	hd_loop_unwatch(&world->loop, id);
}

static void read_some(struct socket_world *world, struct hd_sock *sock, char *bytes, size_t cap, size_t *got)
{
	enum hd_err err = hd_sock_read(sock, bytes, cap, got, &world->diag);

	if (err == HD_E_AGAIN) {
		await(world, sock->id, HD_LOOP_READ);
		err = hd_sock_read(sock, bytes, cap, got, &world->diag);
	}
	CHECK(err == HD_OK, "%s", world->diag.text);
}

static void meet(struct socket_world *world, struct hd_sock *listener, struct hd_sock *near,
	struct hd_sock *far)
{
	CHECK(!hd_sock_listen(world->net, world->addr, listener, &world->diag), "%s", world->diag.text);
	assert_int_equal(hd_sock_accept(listener, far, NULL), HD_E_AGAIN);
	CHECK(!hd_sock_connect(world->net, listener->addr, near, &world->diag), "%s", world->diag.text);
	enum hd_err err = hd_sock_accept(listener, far, NULL);
	if (err == HD_E_AGAIN) {
		await(world, listener->id, HD_LOOP_READ);
		err = hd_sock_accept(listener, far, &world->diag);
	}
	CHECK(!err, "%s", world->diag.text);
	assert_int_equal(hd_sock_connected(near, &world->diag), HD_OK);
}

static void bytes_arrive_in_order_both_ways(struct socket_world *world)
{
	struct hd_sock listener = { 0 }, near = { 0 }, far = { 0 };
	char back[16];
	size_t n;

	meet(world, &listener, &near, &far);
	assert_int_equal(hd_sock_read(&far, back, 1, &n, NULL), HD_E_AGAIN);
	assert_int_equal(hd_sock_write(&near, "hello", 5, &n, NULL), HD_OK);
	assert_int_equal(n, 5);
	read_some(world, &far, back, 3, &n);
	assert_memory_equal(back, "hel", n);
	assert_int_equal(n, 3);
	read_some(world, &far, back, 9, &n);
	assert_memory_equal(back, "lo", n);
	assert_int_equal(hd_sock_write(&far, "yes", 3, &n, NULL), HD_OK);
	read_some(world, &near, back, 9, &n);
	assert_memory_equal(back, "yes", n);
	hd_sock_close(&near);
	hd_sock_close(&near);
	read_some(world, &far, back, 9, &n);
	assert_int_equal(n, 0);        /* the orderly end */
	hd_sock_close(&far);
	hd_sock_close(&listener);
}

static void a_full_pipe_says_again_and_empties(struct socket_world *world)
{
	struct hd_sock listener = { 0 }, near = { 0 }, far = { 0 };
	static char bytes[50000];
	uint64_t sent = 0, got = 0;
	size_t n;
	enum hd_err err;

	meet(world, &listener, &near, &far);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i % 127);
	while (!(err = hd_sock_write(&near, bytes + sent % sizeof bytes, sizeof bytes - sent % sizeof bytes,
		&n, &world->diag)))
		sent += n;
	assert_int_equal(err, HD_E_AGAIN);
	assert_true(sent > 10000);
	while (got < sent) {
		char back[9000];
		read_some(world, &far, back, sizeof back, &n);
		for (size_t i = 0; i < n; i++)
			CHECK(back[i] == bytes[(got + i) % sizeof bytes], "byte %llu",
				(unsigned long long)(got + i));
		got += n;
	}
	await(world, near.id, HD_LOOP_WRITE);
	assert_int_equal(hd_sock_write(&near, "x", 1, &n, NULL), HD_OK);
	hd_sock_close(&near);
	hd_sock_close(&far);
	hd_sock_close(&listener);
}

static void a_lost_peer_is_told(struct socket_world *world)
{
	struct hd_sock listener = { 0 }, near = { 0 }, far = { 0 }, late = { 0 };
	char addr[HD_ADDR_CAP];
	size_t n;
	enum hd_err err = HD_OK;

	meet(world, &listener, &near, &far);
	hd_sock_close(&far);
	/* the first write may still be taken by the system */
	for (int i = 0; i < 100 && !err; i++)
		err = hd_sock_write(&near, "x", 1, &n, i ? &world->diag : NULL);
	assert_int_equal(err, HD_E_PEERLOST);
	hd_sock_close(&near);
	memcpy(addr, listener.addr, sizeof addr);
	hd_sock_close(&listener);
	world->diag.text[0] = 0;
	err = hd_sock_connect(world->net, addr, &late, &world->diag);
	if (!err) {        /* TCP may say so later */
		await(world, late.id, HD_LOOP_WRITE);
		err = hd_sock_connected(&late, &world->diag);
	}
	assert_int_equal(err, HD_E_PEERLOST);
	assert_non_null(strstr(world->diag.text, addr));
	hd_sock_close(&late);
}

static void an_address_has_one_listener(struct socket_world *world)
{
	struct hd_sock a = { 0 }, b = { 0 };

	assert_int_equal(hd_sock_listen(world->net, world->addr, &a, &world->diag), HD_OK);
	assert_int_equal(hd_sock_listen(world->net, a.addr, &b, &world->diag), HD_E_REFUSED);
	assert_null(b.net);
	hd_sock_close(&a);
	assert_int_equal(hd_sock_listen(world->net, a.addr, &b, NULL), HD_OK);
	hd_sock_close(&b);
}

static void pieces_are_written_and_read_as_one(struct socket_world *world)
{
	struct hd_sock listener, near, far;
	char one[] = "abc", two[] = "", three[] = "defgh", a[2], b[5], c[9];
	struct hd_vec out[] = { { one, 3 }, { two, 0 }, { three, 5 } },
		in[] = { { a, 2 }, { b, 5 }, { c, 9 } };
	size_t put, got;

	meet(world, &listener, &near, &far);
	assert_int_equal(hd_sock_write_vec(&near, out, 3, &put, &world->diag), HD_OK);
	assert_int_equal(put, 8);
	await(world, far.id, HD_LOOP_READ);
	assert_int_equal(hd_sock_read_vec(&far, in, 3, &got, &world->diag), HD_OK);
	assert_int_equal(got, 8);
	assert_memory_equal(a, "ab", 2);
	assert_memory_equal(b, "cdefg", 5);
	assert_memory_equal(c, "h", 1);
	hd_sock_tune(&near, HD_SOCK_UNSENT_BYTES, 1 << 17);
	hd_sock_tune(&near, HD_SOCK_UNACKED_MS, 1000);
	hd_sock_close(&far);
	hd_sock_close(&near);
	hd_sock_close(&listener);
}

static void (*const suite[])(struct socket_world *) = {
	pieces_are_written_and_read_as_one,
	bytes_arrive_in_order_both_ways, a_full_pipe_says_again_and_empties, a_lost_peer_is_told,
	an_address_has_one_listener,
};

static void every_row_keeps_the_contract(void **state)
{
	(void)state;
	for (enum kind kind = UNIX; kind < KINDS; kind++)
		for (size_t i = 0; i < sizeof suite / sizeof *suite; i++) {
			struct socket_world world;
			enter(&world, kind);
			suite[i](&world);
			leave(&world);
		}
}

static void only_addresses_of_this_machine_are_taken(void **state)
{
	static const char too_long[] =
		"unix:/tmp/a-path-that-is-longer-than-the-hundred-and-eight-bytes-that-the-kernel-"
		"holds-ready-for-the-name-of-a-socket";
	static const char *const bad[] = { "", "unix:", "tcp:0.0.0.0:80", "tcp:10.0.0.1:80", "tcp:127.0.0.1:",
		"tcp:127.0.0.1:70000", "tcp:127.0.0.1:-1",
					   "tcp:127.0.0.1:8x", "tcp:[::]:80", "http://x", too_long };
	struct hd_net net;
	struct hd_sock sock = { 0 };
	char longer[300];

	(void)state;
	hd_net_real(&net);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK(hd_sock_listen(&net, bad[i], &sock, NULL) == HD_E_INVAL, "\"%s\"", bad[i]);
		CHECK(hd_sock_connect(&net, bad[i], &sock, NULL) == HD_E_INVAL, "\"%s\"", bad[i]);
	}
	memset(longer, 'a', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	assert_int_equal(hd_sock_listen(&net, longer, &sock, NULL), HD_E_INVAL);
}

static void a_path_left_by_the_dead_is_replaced_but_no_file_is(void **state)
{
	struct socket_world world;
	struct hd_sock dead = { 0 }, alive = { 0 };
	struct hd_fs fs;

	(void)state;
	enter(&world, UNIX);
	hd_fs_real(&fs);
	assert_int_equal(hd_sock_listen(world.net, world.addr, &dead, NULL), HD_OK);
	close(dead.id);        /* as when its process is killed: the path stays */
	assert_int_equal(hd_sock_listen(world.net, world.addr, &alive, &world.diag), HD_OK);
	hd_sock_close(&alive);
	assert_int_equal(hd_file_write_atomic(&fs, world.addr + 5, "data", 4, NULL), HD_OK);
	assert_int_equal(hd_sock_listen(world.net, world.addr, &alive, NULL), HD_E_REFUSED);
	assert_int_equal(hd_fs_unlink(&fs, world.addr + 5, NULL), HD_OK);
	leave(&world);
}

static void a_listener_too_busy_to_answer_keeps_its_path(void **state)
{
	struct socket_world world;
	struct hd_sock busy = { 0 }, other = { 0 }, callers[100] = { 0 };
	enum hd_err err = HD_OK;

	(void)state;
	enter(&world, UNIX);
	assert_int_equal(hd_sock_listen(world.net, world.addr, &busy, NULL), HD_OK);
	for (size_t i = 0; i < 100 && !err; i++)
		err = hd_sock_connect(world.net, world.addr, &callers[i], NULL);
	assert_int_equal(err, HD_E_AGAIN);        /* its queue is full */
	assert_int_equal(hd_sock_listen(world.net, world.addr, &other, NULL), HD_E_REFUSED);
	for (size_t i = 0; i < 100; i++)
		hd_sock_close(&callers[i]);
	hd_sock_close(&busy);
	leave(&world);
}

static void simulated_bytes_are_late_by_the_script_and_never_overtake(void **state)
{
	static const struct hd_net_fault faults[] = { { .write = 1, .delay_ns = 500 } };
	struct socket_world world;
	struct hd_sock listener = { 0 }, near = { 0 }, far = { 0 };
	char back[8];
	size_t n;

	(void)state;
	enter(&world, SIM);
	meet(&world, &listener, &near, &far);
	world.sim.faults = faults;
	world.sim.n_faults = 1;
	world.sim.latency_ns = 10;
	int64_t start = hd_clock_now_ns(&world.clock_sim.clock);
	assert_int_equal(hd_sock_write(&near, "a", 1, &n, NULL), HD_OK);
	assert_int_equal(hd_sock_write(&near, "b", 1, &n, NULL), HD_OK);
	hd_clock_sim_advance(&world.clock_sim, 509);
	assert_int_equal(hd_sock_read(&far, back, 8, &n, NULL), HD_E_AGAIN);
	read_some(&world, &far, back, 8, &n);
	assert_int_equal(hd_clock_now_ns(&world.clock_sim.clock), start + 510);
	assert_int_equal(back[0], 'a');
	read_some(&world, &far, back, 8, &n);
	assert_int_equal(back[0], 'b');
	hd_sock_close(&near);
	hd_sock_close(&far);
	hd_sock_close(&listener);
	leave(&world);
}

static void a_scripted_cut_is_told_to_both_ends(void **state)
{
	static const struct hd_net_fault faults[] = { { .write = 2, .delay_ns = 100, .cut = true } };
	struct socket_world world;
	struct hd_sock listener = { 0 }, near = { 0 }, far = { 0 };
	char back[8];
	size_t n;

	(void)state;
	enter(&world, SIM);
	meet(&world, &listener, &near, &far);
	world.sim.faults = faults;
	world.sim.n_faults = 1;
	assert_int_equal(hd_sock_write(&near, "a", 1, &n, NULL), HD_OK);
	assert_int_equal(hd_sock_write(&near, "b", 1, &n, NULL), HD_E_PEERLOST);
	assert_int_equal(hd_sock_read(&near, back, 8, &n, NULL), HD_E_PEERLOST);
	assert_int_equal(hd_sock_read(&far, back, 8, &n, NULL), HD_OK);        /* not there yet */
	assert_int_equal(hd_sock_read(&far, back, 8, &n, NULL), HD_E_AGAIN);
	struct hd_loop_event event = { 0 };
	assert_int_equal(hd_loop_watch(&world.loop, far.id, HD_LOOP_READ, 7, NULL), HD_OK);
	do {
		assert_int_equal(hd_loop_poll(&world.loop, INT64_MAX, &event, 1, &n, NULL), HD_OK);
	} while (n && event.what != HD_LOOP_LOST);
	assert_int_equal(event.tag, 7);
	assert_int_equal(hd_clock_now_ns(&world.clock_sim.clock), 1100);
	assert_int_equal(hd_sock_read(&far, back, 8, &n, &world.diag), HD_E_PEERLOST);
	hd_sock_close(&near);
	hd_sock_close(&far);
	hd_sock_close(&listener);
	leave(&world);
}

static void closing_a_listener_ends_those_who_wait(void **state)
{
	struct socket_world world;
	struct hd_sock listener = { 0 }, near = { 0 };
	char back[8];
	size_t n = 9;

	(void)state;
	enter(&world, SIM);
	assert_int_equal(hd_sock_listen(world.net, world.addr, &listener, NULL), HD_OK);
	assert_int_equal(hd_sock_connect(world.net, world.addr, &near, NULL), HD_OK);
	hd_sock_close(&listener);
	assert_int_equal(hd_sock_read(&near, back, 8, &n, NULL), HD_OK);
	assert_int_equal(n, 0);
	hd_sock_close(&near);
	leave(&world);
}

static void a_unix_listener_is_private_by_its_folder(void **state)
{
	struct socket_world world;
	struct hd_sock listener, near, far;

	(void)state;
	enter(&world, UNIX);
	assert_true(hd_sock_is_private(world.net, world.addr));
	assert_int_equal(chmod(world.folder, 0750), 0);
	assert_false(hd_sock_is_private(world.net, world.addr));
	assert_int_equal(chmod(world.folder, 0701), 0);
	assert_false(hd_sock_is_private(world.net, world.addr));
	assert_int_equal(chmod(world.folder, 0700), 0);
	assert_false(hd_sock_is_private(world.net, "unix:/nowhere/at/all"));
	assert_false(hd_sock_is_private(world.net, "tcp:127.0.0.1:0"));
	meet(&world, &listener, &near, &far);
	assert_true(hd_sock_is_same_user(&far));
	assert_true(hd_sock_is_same_user(&near));
	hd_sock_close(&far);
	hd_sock_close(&near);
	hd_sock_close(&listener);
	leave(&world);
	enter(&world, TCP4);
	meet(&world, &listener, &near, &far);
	assert_false(hd_sock_is_same_user(&far));         /* TCP has no credentials */
	hd_sock_close(&far);
	hd_sock_close(&near);
	hd_sock_close(&listener);
	leave(&world);
}

static void other_hosts_are_named_only_where_that_is_allowed(void **state)
{
	static const char *const bad[] = { "tcp:localhost:1", "tcp:1.2.3:1", "tcp:1.2.3.4.5:1", "tcp:0.0.0.0",
		"tcp:[::1:1", "tcp:[::1]1", "tcp:::1:1",
		"tcp:0.0.0.0:65536", "tcp:0.0.0.0:-1", "tcp:1.2.3.4:", "tcp:[1.2.3.4]:1" };
	struct hd_net net;
	struct hd_sock sock;

	(void)state;
	hd_net_real(&net);
	assert_int_equal(hd_sock_listen(&net, "tcp:0.0.0.0:0", &sock, NULL), HD_E_INVAL);
	net.world = true;
	assert_int_equal(hd_sock_listen(&net, "tcp:0.0.0.0:0", &sock, NULL), HD_OK);
	assert_int_equal(strncmp(sock.addr, "tcp:0.0.0.0:", 12), 0);
	assert_int_not_equal(sock.addr[12], '0');
	hd_sock_close(&sock);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(hd_sock_listen(&net, bad[i], &sock, NULL) == HD_E_INVAL, "%s", bad[i]);
}

/* From host 1 to host 2: late connects, then late bytes; from 2 to 1: lost at once. From 3: refused. To 2
 * from 4: for ever under way. */
static struct hd_net_fate by_host(void *user, const struct hd_net_trip *trip)
{
	(void)user;
	return (struct hd_net_fate){ .delay_ns = trip->from == 1 ? (trip->len ? 700 : 5000) : 0,
		.cut = trip->from == 3,
		.lost = (trip->from == 2 && trip->to == 1) || trip->from == 4 };
}

static void the_fate_of_hosts_is_scripted(void **state)
{
	struct socket_world world;
	struct hd_net_host host[5];
	struct hd_sock listener, near, far, other;
	struct hd_loop_event event;
	char bytes[8];
	size_t n;

	(void)state;
	enter(&world, SIM);
	world.sim.fate = by_host;
	for (uint32_t i = 0; i < 5; i++)
		hd_net_sim_host(&world.sim, i, &world.loop, &host[i]);
	assert_int_equal(hd_sock_listen(&host[2].net, "tcp:two", &listener, &world.diag), HD_OK);
	assert_int_equal(hd_sock_connect(&host[3].net, "tcp:two", &near, NULL), HD_E_PEERLOST);
	assert_int_equal(hd_sock_connect(&host[4].net, "tcp:two", &other, &world.diag), HD_OK);
	assert_int_equal(hd_sock_connect(&host[1].net, "tcp:two", &near, &world.diag), HD_OK);
	assert_int_equal(hd_sock_accept(&listener, &far, &world.diag), HD_E_AGAIN);
	assert_int_equal(hd_sock_connected(&near, &world.diag), HD_E_AGAIN);
	assert_int_equal(hd_sock_write(&near, "x", 1, &n, &world.diag), HD_E_AGAIN);
	assert_int_equal(hd_loop_watch(&world.loop, near.id, HD_LOOP_READ | HD_LOOP_WRITE, 9, &world.diag),
		HD_OK);
	hd_clock_sim_advance(&world.clock_sim, 4999);
	assert_int_equal(hd_sock_connected(&near, &world.diag), HD_E_AGAIN);
	hd_clock_sim_advance(&world.clock_sim, 1);
	assert_int_equal(hd_loop_poll(&world.loop, hd_clock_now_ns(&world.clock_sim.clock), &event, 1, &n,
		&world.diag), HD_OK);
	assert_true(n == 1 && event.tag == 9 && event.what & HD_LOOP_WRITE);
	assert_int_equal(hd_sock_connected(&near, &world.diag), HD_OK);
	assert_int_equal(hd_sock_accept(&listener, &far, &world.diag), HD_OK);
	assert_int_equal(hd_sock_write(&near, "hello", 5, &n, &world.diag), HD_OK);
	assert_int_equal(hd_sock_write(&far, "lost", 4, &n, &world.diag), HD_OK);
	assert_int_equal(n, 4);
	hd_clock_sim_advance(&world.clock_sim, 699);
	assert_int_equal(hd_sock_read(&far, bytes, 8, &n, &world.diag), HD_E_AGAIN);
	hd_clock_sim_advance(&world.clock_sim, 1);
	assert_int_equal(hd_sock_read(&far, bytes, 8, &n, &world.diag), HD_OK);
	assert_int_equal(hd_sock_read(&near, bytes, 8, &n, &world.diag), HD_E_AGAIN);
	hd_sock_close(&far);                              /* its end is lost too: near stays half open */
	hd_clock_sim_advance(&world.clock_sim, HD_NS_PER_S);
	assert_int_equal(hd_sock_read(&near, bytes, 8, &n, &world.diag), HD_E_AGAIN);
	assert_int_equal(hd_sock_write(&near, "x", 1, &n, &world.diag), HD_OK);
	assert_int_equal(hd_sock_connected(&other, &world.diag), HD_E_AGAIN);
	hd_loop_unwatch(&world.loop, near.id);
	hd_sock_close(&near);
	hd_sock_close(&other);
	hd_sock_close(&listener);
	leave(&world);
}

static size_t open_ids(void)
{
	size_t n = 0;

	for (int id = 0; id < 256; id++)
		n += fcntl(id, F_GETFD) >= 0;
	return n;
}

static void memory_and_bells_go_to_another_process(void **state)
{
	struct socket_world world;
	struct hd_sock listener, near, far;
	struct hd_memory mine, theirs, no;
	struct hd_bell bell, taken;
	struct hd_loop_event event;
	int id, ids[3] = { -1, -1, -1 };
	size_t n;

	(void)state;
	enter(&world, UNIX);
	meet(&world, &listener, &near, &far);
	size_t before = open_ids();
	assert_int_equal(hd_sock_take(&far, ids, 2, &world.diag), HD_E_AGAIN);
	assert_int_equal(hd_memory_pair(8192, &mine, &id, &world.diag), HD_OK);
	assert_int_equal(hd_bell_make(&bell, &world.diag), HD_OK);
	assert_int_equal(hd_sock_give(&near, (int[]){ id, bell.id }, 2, &world.diag), HD_OK);
	await(&world, far.id, HD_LOOP_READ);
	assert_int_equal(hd_sock_take(&far, ids, 2, &world.diag), HD_OK);
	assert_int_equal(hd_memory_pair_map(ids[0], 4096, &no, NULL), HD_E_PROTOCOL);
	assert_int_equal(hd_memory_pair_map(ids[1], 8192, &no, NULL), HD_E_PROTOCOL);
	assert_int_equal(hd_memory_pair_map(ids[0], 8192, &theirs, &world.diag), HD_OK);
	((char *)mine.at)[8191] = 'x';
	assert_int_equal(((char *)theirs.at)[8191], 'x');
	assert_int_not_equal(ftruncate(ids[0], 0), 0);    /* sealed: cannot shrink under the other end */
	taken.id = ids[1];
	assert_int_equal(hd_loop_watch(&world.loop, bell.id, HD_LOOP_READ, 5, &world.diag), HD_OK);
	hd_bell_ring(&taken);
	hd_bell_ring(&taken);
	assert_int_equal(hd_loop_poll(&world.loop, INT64_MAX, &event, 1, &n, &world.diag), HD_OK);
	assert_true(n == 1 && event.tag == 5);
	hd_bell_hush(&bell);
	hd_bell_hush(&bell);
	assert_int_equal(hd_loop_poll(&world.loop, 0, &event, 1, &n, &world.diag), HD_OK);
	assert_int_equal(n, 0);
	hd_loop_unwatch(&world.loop, bell.id);
	hd_memory_give(&mine);
	hd_memory_give(&theirs);
	hd_memory_id_close(id);
	hd_memory_id_close(ids[0]);
	hd_bell_close(&taken);
	/* Another number of them than was agreed, or none: refused, and none stays open. */
	for (size_t sent = 0; sent < 4; sent++) {
		if (sent)
			assert_int_equal(hd_sock_give(&near, (int[]){ bell.id, bell.id, bell.id }, sent,
				&world.diag), HD_OK);
		else
			assert_int_equal(hd_sock_write(&near, "x", 1, &n, &world.diag), HD_OK);
		await(&world, far.id, HD_LOOP_READ);
		CHECK(hd_sock_take(&far, ids, 2, NULL) == (sent == 2 ? HD_OK : HD_E_PROTOCOL),
			"%zu descriptors", sent);
		if (sent == 2) {
			hd_memory_id_close(ids[0]);
			hd_memory_id_close(ids[1]);
		}
	}
	hd_bell_close(&bell);
	hd_bell_close(&bell);
	assert_int_equal(open_ids(), before);
	hd_sock_close(&near);
	assert_int_equal(hd_sock_take(&far, ids, 2, NULL), HD_E_PEERLOST);
	hd_sock_close(&far);
	hd_sock_close(&listener);
	leave(&world);
}

static void the_way_to_an_address_begins_at_one_s_own(void **state)
{
	char own[HD_ADDR_CAP] = "unchanged";
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_sock_source("tcp:127.0.0.1:4711", own, &diag), HD_OK);
	assert_string_equal(own, "tcp:127.0.0.1:0");
	assert_true(hd_sock_is_everywhere("0.0.0.0:7000"));
	assert_true(hd_sock_is_everywhere("[::]:7000"));
	assert_true(hd_sock_is_everywhere("[0:0:0:0:0:0:0:0]:7000"));
	assert_false(hd_sock_is_everywhere("127.0.0.1:7000"));
	assert_false(hd_sock_is_everywhere("[::1]:7000"));
	assert_false(hd_sock_is_everywhere("here:7000"));
	assert_int_equal(hd_sock_source("unix:/tmp/x", own, &diag), HD_E_INVAL);
	assert_int_equal(hd_sock_source("tcp:here:1", own, NULL), HD_E_INVAL);
	assert_string_equal(own, "tcp:127.0.0.1:0");
	if (hd_sock_source("tcp:[::1]:4711", own, NULL) == HD_OK)         /* where there is such an address */
		assert_string_equal(own, "tcp:[::1]:0");
}

static void loopback_is_not_paced(void **state)
{
	struct socket_world world;
	struct hd_sock sock[3];

	(void)state;
	enter(&world, TCP4);
	meet(&world, &sock[0], &sock[1], &sock[2]);
	for (int i = 0; i < 3; i++) {
		char name[16] = "";
		socklen_t len = sizeof name;
		assert_int_equal(getsockopt(sock[i].id, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
		CHECK(!strcmp(name, "reno"), "socket %d is under the control of %s", i, name);
	}
	for (int i = 3; i--;)
		hd_sock_close(&sock[i]);
	leave(&world);
}

static int kept_of(const struct hd_sock *sock)
{
	int bytes = 0;
	socklen_t len = sizeof bytes;

	assert_int_equal(getsockopt(sock->id, SOL_SOCKET, SO_RCVBUF, &bytes, &len), 0);
	return bytes / 2;
}

/* The system would cut what is too much, and so let less wait than it does by itself. */
static void what_waits_to_be_read_is_bounded_where_the_system_allows_it(void **state)
{
	struct socket_world world;
	struct hd_sock listener, near, far;

	(void)state;
	enter(&world, TCP4);
	meet(&world, &listener, &near, &far);
	hd_sock_tune(&near, HD_SOCK_KEPT_BYTES, 50000);
	assert_int_equal(kept_of(&near), 50000);
	hd_sock_tune(&near, HD_SOCK_KEPT_BYTES, INT32_MAX);
	assert_int_equal(kept_of(&near), 50000);
	hd_sock_close(&far);
	hd_sock_close(&near);
	hd_sock_close(&listener);
	leave(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_is_not_paced),
		cmocka_unit_test(every_row_keeps_the_contract),
		cmocka_unit_test(what_waits_to_be_read_is_bounded_where_the_system_allows_it),
		cmocka_unit_test(only_addresses_of_this_machine_are_taken),
		cmocka_unit_test(a_path_left_by_the_dead_is_replaced_but_no_file_is),
		cmocka_unit_test(a_listener_too_busy_to_answer_keeps_its_path),
		cmocka_unit_test(simulated_bytes_are_late_by_the_script_and_never_overtake),
		cmocka_unit_test(a_scripted_cut_is_told_to_both_ends),
		cmocka_unit_test(closing_a_listener_ends_those_who_wait),
		cmocka_unit_test(a_unix_listener_is_private_by_its_folder),
		cmocka_unit_test(other_hosts_are_named_only_where_that_is_allowed),
		cmocka_unit_test(the_fate_of_hosts_is_scripted),
		cmocka_unit_test(memory_and_bells_go_to_another_process),
		cmocka_unit_test(the_way_to_an_address_begins_at_one_s_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
