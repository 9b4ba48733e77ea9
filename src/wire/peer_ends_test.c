/* One connection over a scripted transport: what the loop is asked for, its end, calls that fail. */
#include "wire/testing_peer.h"

#include <errno.h>

#include "base/alloc.h"
#include "sys/failpoint.h"

static const struct hd_hash plan = { { 4 } };
static const struct hd_transfer channel[] = { { 3, 1, 4 } };

/* ---- the loop ---- */

static void the_loop_is_asked_for_what_changed(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	w->second = SECOND;
	accepted(w);
	assert_true(w->peer.interest == (HD_LOOP_READ | HD_LOOP_WRITE) &&
		w->loop.watched[SOCK].interest == w->peer.interest);
	assert_int_equal(w->n_asks, 1);
	move(w);
	assert_true(w->loop.watched[SOCK].interest == HD_LOOP_READ &&
		w->loop.watched[SECOND].interest == HD_LOOP_READ);
	assert_true(w->loop.watched[SOCK].tag == w->loop.watched[SECOND].tag &&
		w->loop.watched[SOCK].tag >= HD_HUB_TAG);
	assert_int_equal(w->n_asks, 3);
	move(w);
	assert_int_equal(w->n_asks, 3);
	w->deaf = true;
	move(w);
	assert_true(!w->loop.watched[SOCK].interest && !w->loop.watched[SECOND].interest);
	move(w);
	assert_int_equal(w->n_asks, 5);
	w->deaf = false;
	move(w);
	assert_true(w->loop.watched[SOCK].interest == HD_LOOP_READ &&
		w->loop.watched[SECOND].interest == HD_LOOP_READ);
	leave(w);
	w = enter(0);
	up(w);
	uint32_t asks = w->n_asks;
	move(w);
	assert_true(w->n_asks == asks && w->peer.interest == HD_LOOP_READ);
	leave(w);
}

/* The second id is new when the first is watched already for the same. */
static void a_second_id_is_watched_though_the_first_wants_nothing_new(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	accepted(w);
	w->ready = HD_E_AGAIN;
	move(w);
	assert_int_equal(w->peer.interest, HD_LOOP_READ);
	w->ready = HD_OK;
	w->second = SECOND;
	move(w);
	assert_true(w->peer.interest == HD_LOOP_READ && w->loop.watched[SECOND].interest == HD_LOOP_READ);
	leave(w);
}

static void what_the_loop_does_not_take_is_closed(void **state)
{
	static const int ids[] = { SOCK, SECOND };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct peer_world *w = enter(0);
		w->second = SECOND;
		called(w);
		w->refused = ids[i];
		move(w);
		check_losts(w, "an id that is not watched", 1, HD_CLOSE_GONE);
		assert_non_null(strstr(w->heard.losts[0].text, "as many descriptors as it can"));
		leave(w);
	}
}

/* ---- ends ---- */

static void send_one(struct peer_world *w)
{
	w->peers.epoch = w->peers.next = 1;
	w->peers.plan = plan;
	up(w);
	assert_int_equal(hd_stream_channel(w->peer.stream, channel, 1, channel, 1, &w->diag), HD_OK);
	assert_int_equal(hd_stream_send(w->peer.stream, &(struct hd_send){ 3, 0, 1, "abc", 4, 5 }, BEGAN,
		&w->diag), HD_OK);
}

/* What may not go yet is not chosen: what comes meanwhile may be more urgent. What was chosen goes. */
static void nothing_is_chosen_while_two_chunks_wait(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	send_one(w);
	w->crowded = true;
	move(w);
	assert_false(hd_stream_is_committed(w->peer.stream));
	assert_true(w->peer.blocked && w->peer.interest & HD_LOOP_WRITE);
	const size_t before = w->out_len;
	w->crowded = false;
	w->space = 20;                                            /* the EPOCH frame in part */
	move(w);
	assert_int_equal(w->out_len, before + 20);
	assert_true(hd_stream_is_committed(w->peer.stream));
	w->crowded = true;
	w->space = 20;
	move(w);
	assert_int_equal(w->out_len, before + 40);
	w->crowded = false;
	w->space = BYTES;
	move(w);
	assert_false(hd_stream_has_out(w->peer.stream) || w->peer.blocked);
	w->crowded = true;                                        /* nothing waits: nothing is asked for */
	move(w);
	assert_false(w->peer.blocked);
	leave(w);
}

static void an_end_is_told_once_and_only_where_it_is_to_be(void **state)
{
	(void)state;
	for (int tell = 0; tell < 2; tell++) {
		struct peer_world *w = enter(0);
		w->second = SECOND;
		send_one(w);
		move(w);
		assert_int_equal(w->loop.watched[SECOND].interest, HD_LOOP_READ);
		hd_peer_close(&w->peer, HD_CLOSE_SILENT, "for the test", tell);
		assert_true(w->heard.n_losts == (uint32_t)tell && w->heard.n_sents == (uint32_t)tell &&
			w->n_closes == 1);
		assert_true(!tell || (w->heard.sents[0].err == HD_E_PEERLOST &&
			!strcmp(w->heard.losts[0].text, "for the test")));
		assert_int_equal(w->loop.watched[SECOND].interest, 0);
		assert_true(w->peers.gone.frames_sent > 0);
		leave(w);
		/* outgoing, before the answer; incoming, before its greeting */
		w = enter(0);
		called(w);
		hd_peer_close(&w->peer, HD_CLOSE_LIVE, "", tell);
		check_losts(w, "a call", (uint32_t)tell, HD_CLOSE_LIVE);
		leave(w);
		w = enter(0);
		accepted(w);
		hd_peer_close(&w->peer, HD_CLOSE_CROWDED, "", tell);
		check_losts(w, "a stranger", 0, HD_CLOSE_NONE);
		leave(w);
	}
}

static void a_good_bye_goes_after_what_was_told_and_the_other_end_is_awaited(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	up(w);
	assert_int_equal(hd_stream_tell(w->peer.stream, 20, 0, "last", 4, &w->diag), HD_OK);
	hd_peer_bye(&w->peer, HD_CLOSE_DONE, "enough");
	assert_int_equal(w->peer.state, HD_PEER_CLOSING);
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + T);
	w->space = 0;
	assert_int_equal(hd_stream_tell(w->far, 21, 0, "heard", 5, &w->diag), HD_OK);
	far_speaks(w);
	move(w);
	assert_int_equal(w->heard.n_messages, 1);         /* until our good-bye is out we listen */
	w->space = BYTES;
	move(w);
	a_hello(w);
	move(w);
	assert_true(w->peer.state == HD_PEER_CLOSING && w->in_at == w->in_len && w->heard.n_messages == 1);
	w->ended = true;
	move(w);
	check_losts(w, "a good-bye", 1, HD_CLOSE_DONE);
	leave(w);
}

static void one_that_ends_while_we_say_good_bye_is_lost_for_our_reason(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	up(w);
	hd_peer_bye(&w->peer, HD_CLOSE_DONE, "enough");
	w->space = 0;
	w->ended = true;
	move(w);
	check_losts(w, "an end", 1, HD_CLOSE_DONE);
	leave(w);
	w = enter(0);
	up(w);
	hd_peer_bye(&w->peer, HD_CLOSE_DONE, "enough");
	w->space = 0;
	move(w);
	later(w, T - 1);
	hd_peer_tick(&w->peer);
	assert_int_equal(w->peer.state, HD_PEER_CLOSING);
	later(w, 1);
	hd_peer_tick(&w->peer);
	check_losts(w, "one that takes nothing", 1, HD_CLOSE_DONE);
	leave(w);
}

/* ---- calls on a stream ---- */

static void the_epoch_that_the_hub_is_in_is_the_stream_s(void **state)
{
	struct peer_world *w = enter(0);
	char into[4];

	(void)state;
	send_one(w);
	hd_stream_decided(w->far, 1);
	hd_stream_epoch(w->far, 1, plan);
	assert_int_equal(hd_stream_channel(w->far, channel, 1, channel, 1, &w->diag), HD_OK);
	assert_int_equal(hd_stream_post(w->far, 3, into, BEGAN, &w->diag), HD_OK);
	later(w, T / 8);
	talk(w);
	assert_int_equal(w->far_heard.n_arrivals, 1);
	assert_string_equal(into, "abc");
	assert_int_equal(w->heard.n_sents, 1);
	/* when it was written, not when something was before */
	assert_int_equal(w->heard.sents[0].end_ns, BEGAN + T / 8);
	assert_true(w->n_chunks >= 1 && w->chunk == hd_stream_chunk(w->peer.stream));
	uint32_t chunks = w->n_chunks;
	hd_stream_ping(w->peer.stream);
	talk(w);
	assert_int_equal(w->n_chunks, chunks);
	leave(w);
}

/* Two workers hold back what is of an epoch that they do not know; with a coordinator at either end it goes
 * through. */
static void epochs_part_workers_but_not_from_a_coordinator(void **state)
{
	static const enum hd_role roles[][2] = { { HD_ROLE_WORKER, HD_ROLE_WORKER },
		{ HD_ROLE_COORDINATOR, HD_ROLE_WORKER },
		{ HD_ROLE_WORKER, HD_ROLE_COORDINATOR } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct peer_world *w = enter(0);
		struct hd_greeting_payload hello = proper();
		w->peers.config.role = roles[i][0];
		hello.role = roles[i][1];
		greeted(w, &hello);
		hd_stream_epoch(w->far, 6, plan);
		assert_int_equal(hd_stream_tell(w->far, 20, 0, "abc", 3, &w->diag), HD_OK);
		talk(w);
		CHECK(w->heard.n_messages == (i > 0), "case %zu: %u messages", i, w->heard.n_messages);
		leave(w);
	}
}

static void without_memory_nobody_comes_up(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	accepted(w);
	a_hello(w);
	hd_alloc_arm(1);
	move(w);
	hd_alloc_arm(0);
	assert_true(w->peer.state == HD_PEER_DOWN && w->peers.closed[HD_CLOSE_DROPPED] == 1 &&
		!w->heard.n_ups && !w->heard.n_losts);
	leave(w);
}

/* Others have a turn after 64 reads and writes; what is left is said to be there. */
static void a_peer_that_talks_on_lets_others_have_a_turn(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	up(w);
	move(w);
	assert_false(w->peer.more);
	for (int i = 0; i < 8; i++)
		a_ping(w);
	w->piece = 1;
	size_t from = w->in_at;
	move(w);
	assert_true(w->peer.more && w->in_at - from >= 32 && w->in_at - from <= 64);
	for (int i = 0; i < 20; i++)
		move(w);
	assert_true(!w->peer.more && w->in_at == w->in_len);
	leave(w);
}

/* ---- failpoints, and calls that fail ---- */

static void a_call_that_fails_leaves_the_place_free(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	w->connects = HD_E_PEERLOST;
	assert_int_equal(hd_peer_connect(&w->peer, OTHER, &w->row, "unix:/there", &w->diag), HD_E_PEERLOST);
	assert_true(w->peer.state == HD_PEER_DOWN && !w->n_closes && !w->n_asks);
	w->connects = HD_OK;
	w->sock = HD_LOOP_WATCHED;
	assert_int_equal(hd_peer_connect(&w->peer, OTHER, &w->row, "unix:/there", &w->diag), HD_E_NOSPACE);
	assert_true(w->peer.state == HD_PEER_DOWN && w->n_closes == 1 && !w->n_asks && !w->heard.n_losts);
	w->sock = SOCK;
	called(w);
	assert_int_equal(w->peer.state, HD_PEER_CONNECTING);
	leave(w);
}

#ifdef HD_FAILPOINTS
static void a_failpoint_acts_as_the_transport_would(void **state)
{
	static const struct { const char *order; bool writes, closes; } cases[] = {
		{ "wire.read:err=EAGAIN", false, false }, { "wire.read:err=ECONNRESET", false, true },
		{ "wire.write:err=EAGAIN", true, false }, { "wire.write:err=ECONNRESET", true, true } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct peer_world *w = enter(0);
		up(w);
		size_t in_at = w->in_at, out_len = w->out_len;
		a_ping(w);
		if (cases[i].writes)
			hd_stream_ping(w->peer.stream);
		assert_int_equal(hd_failpoint_arm(cases[i].order, 0, &w->diag), HD_OK);
		move(w);
		assert_int_equal(hd_failpoint_arm(NULL, 0, NULL), HD_OK);
		check_losts(w, cases[i].order, cases[i].closes, HD_CLOSE_GONE);
		CHECK(cases[i].writes ? w->out_len == out_len : w->in_at == in_at, "%s: it went through",
			cases[i].order);
		CHECK(cases[i].closes || !cases[i].writes || w->peer.interest & HD_LOOP_WRITE,
			"%s: not watched", cases[i].order);
		leave(w);
	}
	struct peer_world *w = enter(0);
	assert_int_equal(hd_failpoint_arm("wire.connect:err=EPIPE", 0, &w->diag), HD_OK);
	assert_int_equal(hd_peer_connect(&w->peer, OTHER, &w->row, "unix:/there", &w->diag), HD_E_PEERLOST);
	assert_int_equal(hd_failpoint_arm(NULL, 0, NULL), HD_OK);
	assert_true(w->peer.state == HD_PEER_DOWN && !w->n_connects);
	leave(w);
}
#endif

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_loop_is_asked_for_what_changed),
		cmocka_unit_test(a_second_id_is_watched_though_the_first_wants_nothing_new),
		cmocka_unit_test(what_the_loop_does_not_take_is_closed),
		cmocka_unit_test(nothing_is_chosen_while_two_chunks_wait),
		cmocka_unit_test(an_end_is_told_once_and_only_where_it_is_to_be),
		cmocka_unit_test(a_good_bye_goes_after_what_was_told_and_the_other_end_is_awaited),
		cmocka_unit_test(one_that_ends_while_we_say_good_bye_is_lost_for_our_reason),
		cmocka_unit_test(the_epoch_that_the_hub_is_in_is_the_stream_s),
		cmocka_unit_test(epochs_part_workers_but_not_from_a_coordinator),
		cmocka_unit_test(without_memory_nobody_comes_up),
		cmocka_unit_test(a_peer_that_talks_on_lets_others_have_a_turn),
		cmocka_unit_test(a_call_that_fails_leaves_the_place_free),
#ifdef HD_FAILPOINTS
		cmocka_unit_test(a_failpoint_acts_as_the_transport_would),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
