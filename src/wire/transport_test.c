#include "wire/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"

/* Ends of connections that another process has not served yet. A loop that is asked whether a connected
 * socket may be written to says yes at once, for ever. */

struct place { char folder[32], addr[48]; struct hd_net net; struct hd_sock listener; };

static void open_place(struct place *p, const struct hd_transport *row)
{
	struct hd_diag diag = { "" };

	snprintf(p->folder, sizeof p->folder, "/tmp/hd-wire-XXXXXX");
	assert_non_null(mkdtemp(p->folder));
	snprintf(p->addr, sizeof p->addr, "unix:%s/0", p->folder);
	hd_net_real(&p->net);
	CHECK(row->listen(&p->net, &p->listener, p->addr, &diag) == HD_OK, "%s", diag.text);
}

static void close_place(struct place *p)
{
	hd_sock_close(&p->listener);
	(void)unlink(p->addr + 5);
	assert_int_equal(rmdir(p->folder), 0);
}

/* A shared ring: whoever connects awaits a nod, whoever accepts the memory. */
static void an_end_that_awaits_the_other_one_is_not_woken(void **state)
{
	const struct hd_transport *row = hd_transport_find("shm");
	struct hd_conn to = { .ops = row, .ids = { .outgoing = true }, .second_id = -1 },
		from = { .ops = row, .second_id = -1 }, bare = from;
	struct hd_diag diag = { "" };
	struct hd_sock silent;
	struct place p;

	(void)state;
	open_place(&p, row);
	assert_int_equal(row->wants(&to, HD_LOOP_READ), HD_LOOP_READ | HD_LOOP_WRITE);
	CHECK(hd_sock_connect(&p.net, p.addr, &to.sock, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(row->ready(&to, &diag), HD_E_AGAIN);
	assert_int_equal(row->wants(&to, HD_LOOP_READ | HD_LOOP_WRITE), HD_LOOP_READ);
	CHECK(hd_sock_accept(&p.listener, &from.sock, &diag) == HD_OK, "%s", diag.text);
	CHECK(row->ready(&from, &diag) == HD_OK && row->ready(&to, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(row->wants(&to, HD_LOOP_WRITE), HD_LOOP_READ);
	/* one that gives nothing */
	CHECK(hd_sock_connect(&p.net, p.addr, &silent, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_sock_accept(&p.listener, &bare.sock, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(row->ready(&bare, &diag), HD_E_AGAIN);
	assert_int_equal(row->wants(&bare, HD_LOOP_READ), HD_LOOP_READ);
	row->close(&to);
	row->close(&from);
	row->close(&bare);
	hd_sock_close(&silent);
	close_place(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_that_awaits_the_other_one_is_not_woken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
