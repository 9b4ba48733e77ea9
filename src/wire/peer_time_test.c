/* What one connection waits for, and when: heartbeats, silence, epochs that are not known here, buffers that
 * were promised. */
#include "wire/testing_peer.h"

static const struct hd_hash plan = { { 4 } };
static const struct hd_transfer channel[] = { { 3, 1, 4 } };

static int64_t now_ns(struct peer_world *w) { return hd_clock_now_ns(&w->clock.clock); }
static void tick(struct peer_world *w) { hd_peer_tick(&w->peer); }
static void ping(struct peer_world *w)
{
	say(w, (struct hd_frame){ .type = HD_FRAME_PING, .len = 8 }, "12345678");
}

static void at(struct peer_world *w, int64_t ns)
{
	assert_true(BEGAN + ns >= now_ns(w));
	later(w, BEGAN + ns - now_ns(w));
}

static void is_closed(const struct peer_world *w, enum hd_close why)
{
	CHECK(w->heard.n_losts == 1 && w->heard.losts[0].why == why, "%u losts, for %s: %s", w->heard.n_losts,
		w->heard.n_losts ? hd_close_name(w->heard.losts[0].why) : "nothing", w->heard.losts[0].text);
}

static void is_open(const struct peer_world *w)
{
	CHECK(!w->heard.n_losts, "lost: %s", w->heard.losts[0].text);
}

static void a_heartbeat_goes_when_nothing_else_went_for_a_quarter_of_t(void **state)
{
	struct peer_world *w = enter(0);
	struct hd_frame frame;

	(void)state;
	up(w);
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + T / 4);
	at(w, T / 4 - 1);
	tick(w);
	move(w);
	assert_int_equal(w->out_len, w->far_at);
	at(w, T / 4);
	tick(w);
	/* asked for, whether the way takes it or not */
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + T / 2);
	move(w);
	(void)said(w, w->far_at, &frame);
	assert_int_equal(frame.type, HD_FRAME_PING);
	at(w, T / 4 + 100);
	ping(w);                          /* the answer goes, and is a sign of life */
	move(w);
	size_t out_len = w->out_len;
	at(w, T / 2 + 99);
	tick(w);
	move(w);
	assert_true(w->out_len == out_len && hd_peer_due_ns(&w->peer) == BEGAN + T / 2 + 100);
	leave(w);
}

static void silence_is_suspected_after_t_once_and_closed_after_eight(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	up(w);
	at(w, T - 1);
	tick(w);
	assert_int_equal(w->heard.n_suspects, 0);
	assert_true(hd_peer_due_ns(&w->peer) == BEGAN + T);
	for (int i = 0; i < 3; i++) {
		at(w, T + i);
		tick(w);
	}
	assert_true(w->heard.n_suspects == 1 && w->heard.suspects[0].silent_ms == T_MS &&
		w->heard.suspects[0].worker == OTHER);
	assert_true(w->peer.suspected && hd_peer_due_ns(&w->peer) > now_ns(w));
	at(w, 2 * T);
	ping(w);
	move(w);
	assert_true(w->heard.n_suspects == 2 && !w->heard.suspects[1].silent_ms && !w->peer.suspected);
	ping(w);
	move(w);
	assert_int_equal(w->heard.n_suspects, 2);
	at(w, 3 * T);
	tick(w);
	assert_int_equal(w->heard.n_suspects, 3);         /* again, of another silence */
	at(w, 10 * T - 1);
	tick(w);
	is_open(w);
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + 10 * T);
	at(w, 10 * T);
	tick(w);
	is_closed(w, HD_CLOSE_SILENT);
	leave(w);
}

static void one_that_stops_inside_a_frame_is_closed_after_t(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	up(w);
	ping(w);
	w->in_len -= 3;
	move(w);
	at(w, T - 1);
	tick(w);
	is_open(w);
	at(w, T);
	tick(w);
	is_closed(w, HD_CLOSE_STALLED);
	leave(w);
}

/* The other end is in epoch 6, which is not known here, and says something in it. */
static struct peer_world *ahead(void)
{
	struct peer_world *w = enter(0);

	up(w);
	hd_stream_epoch(w->far, 6, plan);
	assert_int_equal(hd_stream_tell(w->far, 20, 0, "abc", 3, &w->diag), HD_OK);
	talk(w);
	assert_true(w->heard.n_messages == 0 && !(w->peer.interest & HD_LOOP_READ));
	return w;
}

static void an_epoch_ahead_is_asked_for_once_then_closed(void **state)
{
	struct peer_world *w = ahead();

	(void)state;
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN);            /* at once: to note since when */
	at(w, 10);
	tick(w);
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + T / 4);
	at(w, 20);
	hd_stream_ping(w->peer.stream);
	move(w);                          /* the next sign of life is due later than the question */
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + T / 4 + 10);
	at(w, T / 4 + 9);
	tick(w);
	assert_int_equal(w->heard.n_aheads, 0);
	at(w, T / 4 + 10);
	tick(w);
	assert_true(w->heard.n_aheads == 1 && w->heard.ahead_epoch == 6);
	for (int i = 2; i < 5; i++) {
		at(w, i * T / 4 + 10);
		tick(w);
	}
	assert_int_equal(w->heard.n_aheads, 1);
	at(w, T + 30);
	tick(w);
	hd_stream_ping(w->peer.stream);
	move(w);
	at(w, T + T / 4 + 9);
	tick(w);
	is_open(w);
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + T + T / 4 + 10);
	at(w, T + T / 4 + 10);
	tick(w);
	is_closed(w, HD_CLOSE_EPOCH);
	assert_int_equal(w->heard.n_suspects, 0);         /* this end did not poll */
	leave(w);
}

/* Known in time, what was held comes through; a later epoch is a question of its own. */
static void an_epoch_that_becomes_known_in_time_is_gone_on_with(void **state)
{
	struct peer_world *w = ahead();

	(void)state;
	tick(w);
	at(w, T);
	tick(w);
	hd_stream_decided(w->peer.stream, 6);
	move(w);
	assert_true(w->heard.n_messages == 1 && w->heard.n_aheads == 1 && w->peer.interest & HD_LOOP_READ);
	tick(w);
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + T + T / 4);
	at(w, T + T / 8);
	hd_stream_epoch(w->far, 7, plan);
	assert_int_equal(hd_stream_tell(w->far, 20, 0, "abc", 3, &w->diag), HD_OK);
	talk(w);
	tick(w);
	at(w, T + 3 * T / 8 - 1);
	tick(w);
	is_open(w);
	assert_int_equal(w->heard.n_aheads, 1);
	at(w, T + 3 * T / 8);
	tick(w);
	assert_true(w->heard.n_aheads == 2 && w->heard.ahead_epoch == 7);
	leave(w);
}

static void who_does_not_listen_long_does_not_call_the_other_silent(void **state)
{
	struct peer_world *w = ahead();

	(void)state;
	tick(w);
	at(w, T);
	tick(w);
	hd_stream_decided(w->peer.stream, 6);
	move(w);
	at(w, 2 * T - 1);
	tick(w);
	assert_int_equal(w->heard.n_suspects, 0);
	at(w, 2 * T);
	tick(w);
	assert_int_equal(w->heard.n_suspects, 1);
	leave(w);
}

/* Both are in epoch 1; a buffer for transfer 3 was promised from the start, and what comes into it is here
 * before it is posted. */
static struct peer_world *promised(void)
{
	struct peer_world *w = enter(0);

	w->peers.epoch = w->peers.next = 1;
	w->peers.plan = plan;
	up(w);
	hd_stream_decided(w->far, 1);
	hd_stream_epoch(w->far, 1, plan);
	assert_int_equal(hd_stream_channel(w->peer.stream, channel, 1, channel, 1, &w->diag), HD_OK);
	assert_int_equal(hd_stream_channel(w->far, channel, 1, channel, 1, &w->diag), HD_OK);
	assert_int_equal(hd_stream_send(w->far, &(struct hd_send){ 3, 0, 1, "abc", 4, 5 }, BEGAN, &w->diag),
		HD_OK);
	talk(w);
	assert_int_equal(w->heard.n_arrivals, 0);
	tick(w);
	return w;
}

static void a_buffer_that_was_promised_is_waited_for_eight_t(void **state)
{
	char into[4] = "";

	(void)state;
	for (int posts = 0; posts < 2; posts++) {
		struct peer_world *w = promised();
		for (int i = 1; i < 32; i++) {
			at(w, i * T / 4);
			tick(w);
			hd_stream_ping(w->peer.stream);
			at(w, i * T / 4 + 7);
			move(w);                  /* the next sign of life is due 7 ns after each quarter */
			is_open(w);
		}
		assert_int_equal(w->heard.n_aheads + w->heard.n_suspects, 0);
		assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + 8 * T);
		at(w, 8 * T - 1);
		tick(w);
		is_open(w);
		if (posts) {
			assert_int_equal(hd_stream_post(w->peer.stream, 3, into, now_ns(w), &w->diag), HD_OK);
			talk(w);
			assert_string_equal(into, "abc");
			assert_int_equal(w->heard.n_arrivals, 1);
		}
		at(w, 8 * T);
		tick(w);
		if (posts)
			is_open(w);
		else {
			is_closed(w, HD_CLOSE_DROPPED);
			assert_non_null(strstr(w->heard.losts[0].text, "no buffer posted"));
		}
		leave(w);
	}
}

/* T is the larger of both ends', but four times ours at most. */
static void t_is_the_larger_of_both_but_four_times_ours_at_most(void **state)
{
	static const uint32_t ts[][2] = { { 10, T_MS }, { T_MS, T_MS }, { 2 * T_MS, 2 * T_MS },
		{ 4 * T_MS, 4 * T_MS }, { 600000, 4 * T_MS } };

	(void)state;
	for (size_t i = 0; i < sizeof ts / sizeof *ts; i++) {
		struct peer_world *w = enter(0);
		struct hd_greeting_payload hello = proper();
		hello.detect_ms = ts[i][0];
		greeted(w, &hello);
		CHECK(w->heard.ups[0].detect_ms == ts[i][0] && w->unacked_ms == ts[i][1], "%u ms: %u",
			ts[i][0], w->unacked_ms);
		CHECK(hd_peer_due_ns(&w->peer) == BEGAN + ts[i][1] * HD_NS_PER_MS / 4, "%u ms", ts[i][0]);
		leave(w);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_heartbeat_goes_when_nothing_else_went_for_a_quarter_of_t),
		cmocka_unit_test(silence_is_suspected_after_t_once_and_closed_after_eight),
		cmocka_unit_test(one_that_stops_inside_a_frame_is_closed_after_t),
		cmocka_unit_test(an_epoch_ahead_is_asked_for_once_then_closed),
		cmocka_unit_test(an_epoch_that_becomes_known_in_time_is_gone_on_with),
		cmocka_unit_test(who_does_not_listen_long_does_not_call_the_other_silent),
		cmocka_unit_test(a_buffer_that_was_promised_is_waited_for_eight_t),
		cmocka_unit_test(t_is_the_larger_of_both_but_four_times_ours_at_most),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
