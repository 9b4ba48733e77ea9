/* Time and threads: what only the simulation can show of waiting, and what another thread may do to a hub. */
#include "base/le.h"
#include "sys/bell.h"
#include "sys/thread.h"
#include "wire/testing_hubs.h"

/* ---- time, simulated ---- */

static struct hd_net_fate script(void *user, const struct hd_net_trip *trip)
{
	const struct { int64_t from_ns, to_ns; bool lost; uint32_t mute; } *s = user;
	bool now = trip->now_ns >= s->from_ns && trip->now_ns < s->to_ns &&
		(s->mute == 9 || s->mute == trip->from);

	return (struct hd_net_fate){ .lost = now && s->lost, .delay_ns = now &&
		!s->lost ? s->to_ns - trip->now_ns : 0 };
}

static void a_silent_peer_is_suspected_after_t_and_heard_again(void **state)
{
	struct hubs_world *w = enter("sim", 2);
	struct { int64_t from_ns, to_ns; bool lost; uint32_t mute; } s = { 5 * HD_NS_PER_S, 8 * HD_NS_PER_S,
		false, 1 };

	(void)state;
	meet(w, 0, 1);
	w->sim.fate = script;
	w->sim.user = &s;
	run_for(w, 3900);                                 /* the clock began at 1 s */
	assert_int_equal(w->heard[0].n_suspects + w->heard[1].n_suspects, 0);
	run_for(w, 6000);
	assert_int_equal(w->heard[0].n_suspects, 2);
	struct heard_suspect *first = &w->heard[0].suspects[0], *second = &w->heard[0].suspects[1];
	CHECK(first->worker == 1 && first->silent_ms >= T_MS &&
		first->at_ns >= 5 * HD_NS_PER_S + T_MS * HD_NS_PER_MS * 3 / 4 &&
		first->at_ns <= 5 * HD_NS_PER_S + T_MS * HD_NS_PER_MS, "suspected at %lld",
		(long long)first->at_ns);
	assert_int_equal(second->silent_ms, 0);
	assert_true(second->at_ns == 8 * HD_NS_PER_S);
	assert_int_equal(w->heard[1].n_suspects, 0);      /* the other direction is well */
	assert_true(hd_hub_is_up(&w->hubs[0], 1));
	leave(w);
}

static void a_half_open_connection_ends_after_eight_t(void **state)
{
	struct hubs_world *w = enter("sim", 2);
	struct { int64_t from_ns, to_ns; bool lost; uint32_t mute; } s = { 5 * HD_NS_PER_S, INT64_MAX, true,
		9 };

	(void)state;
	meet(w, 0, 1);
	w->sim.fate = script;
	w->sim.user = &s;
	run_for(w, 13500);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(w->heard[i].n_suspects, 1);
		assert_int_equal(w->heard[i].n_losts, 1);
		assert_int_equal(w->heard[i].losts[0].why, HD_CLOSE_SILENT);
		assert_true(w->heard[i].losts[0].at_ns <= 5 * HD_NS_PER_S + 8 * T_MS * HD_NS_PER_MS);
	}
	assert_int_equal(hd_hub_connect(&w->hubs[0], 1, "sim", w->addr[1], &w->diag), HD_OK);
	int64_t asked = hd_clock_now_ns(w->clock);
	run_until(w, &w->heard[0].n_losts, 2, "a connect into the void");
	assert_int_equal(w->heard[0].losts[1].why, HD_CLOSE_GONE);
	assert_true(w->heard[0].losts[1].at_ns - asked == T_MS * HD_NS_PER_MS);
	leave(w);
}

/* Hub 1 has lost its side and calls again; hub 0 has not noticed yet: at first it refuses, once it
 * suspects it takes the new one. */
static void who_calls_again_takes_the_place_of_a_suspected_connection(void **state)
{
	struct hubs_world *w = enter("sim", 2);
	struct { int64_t from_ns, to_ns; bool lost; uint32_t mute; } s = { 5 * HD_NS_PER_S,
		5 * HD_NS_PER_S + 1, true, 9 };
	static const struct hd_transfer channel[] = { { 3, 0, 4 } };

	(void)state;
	meet(w, 1, 0);
	hd_hub_decided(&w->hubs[1], 1);
	hd_hub_epoch(&w->hubs[0], 1, plan);
	assert_int_equal(hd_hub_channel(&w->hubs[0], 1, NULL, 0, channel, 1, &w->diag), HD_OK);
	assert_int_equal(hd_hub_send(&w->hubs[0], 1, &(struct hd_send){ 3, 0, 1, "abc", 4, 5 }, &w->diag),
		HD_OK);
	run_for(w, 4000);
	w->sim.fate = script;                             /* what hub 1 says as it ends is lost */
	w->sim.user = &s;
	s.from_ns = hd_clock_now_ns(w->clock);
	s.to_ns = s.from_ns + 10 * HD_NS_PER_MS;
	hd_hub_probe(&w->hubs[1], 0);
	run_for(w, 5);
	hd_hub_finish(&w->hubs[1]);
	run_for(w, 100);
	start_hub(w, 1);
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, "sim", w->addr[0], &w->diag), HD_OK);
	run_until(w, &w->heard[1].n_losts, 1, "refusal");
	assert_int_equal(w->heard[1].losts[0].why, HD_CLOSE_LIVE);
	run_until(w, &w->heard[0].n_suspects, 1, "suspicion");
	assert_int_equal(w->heard[0].n_losts, 0);
	meet(w, 1, 0);
	assert_int_equal(w->heard[0].n_losts, 1);
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_SILENT);
	assert_int_equal(w->heard[0].n_sents, 1);
	assert_int_equal(w->heard[0].sents[0].err, HD_E_PEERLOST);
	leave(w);
}

/* Hub 1 vanishes without a word, and hub 0 comes to suspect it. */
static void vanish(struct hubs_world *w)
{
	struct { int64_t from_ns, to_ns; bool lost; uint32_t mute; } s = { hd_clock_now_ns(w->clock),
		INT64_MAX, true, 9 };

	w->sim.fate = script;
	w->sim.user = &s;
	hd_hub_probe(&w->hubs[1], 0);
	run_for(w, 5);
	hd_hub_finish(&w->hubs[1]);
	run_until(w, &w->heard[0].n_suspects, 1, "suspicion");
	w->sim.fate = NULL;
	start_hub(w, 1);
}

/* A dropped peer has until T, suspected or not: one connection per worker until then. */
static void a_suspected_connection_that_is_closing_gives_no_way(void **state)
{
	struct hubs_world *w = enter("sim", 2);

	(void)state;
	meet(w, 1, 0);
	vanish(w);
	hd_hub_drop(&w->hubs[0], 1, HD_CLOSE_DROPPED, "go");
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, "sim", w->addr[0], &w->diag), HD_OK);
	run_until(w, &w->heard[1].n_losts, 1, "refusal");
	assert_int_equal(w->heard[1].losts[0].why, HD_CLOSE_LIVE);
	run_until(w, &w->heard[0].n_losts, 1, "the end of the old one");
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_DROPPED);
	meet(w, 1, 0);
	leave(w);
}

static struct hubs_world *calling;

static void call_back(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	hear_lost(self, worker, why, text);
	assert_int_equal(hd_hub_connect(&calling->hubs[0], worker, "sim", calling->addr[1], &calling->diag),
		HD_OK);
}

/* The old connection gives way to the new one; in `lost` its owner has called by itself: that call stays. */
static void who_is_called_out_of_lost_has_one_connection(void **state)
{
	struct hubs_world *w = calling = enter("sim", 2);
	struct hd_hub_stats stats;

	(void)state;
	hd_hub_finish(&w->hubs[0]);
	struct hd_wire_events events = hear_with(&w->heard[0]);
	events.lost = call_back;
	assert_int_equal(hd_hub_init(&w->hubs[0], &w->config[0], &events, &w->loops[0], net_of(w, 0),
		&w->diag), HD_OK);
	assert_int_equal(hd_hub_listen(&w->hubs[0], "sim", w->addr[0], &w->diag), HD_OK);
	meet(w, 1, 0);
	vanish(w);
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, "sim", w->addr[0], &w->diag), HD_OK);
	run_until(w, &w->heard[0].n_ups, 2, "up");
	run_until(w, &w->heard[1].n_ups, 2, "up");
	run_for(w, 3000);
	assert_int_equal(w->heard[0].n_losts, 1);
	assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_SILENT);
	assert_true(w->heard[0].ups[1].outgoing && !w->heard[1].ups[1].outgoing);
	for (int i = 0; i < 2; i++) {
		hd_hub_stats(&w->hubs[i], &stats);
		assert_int_equal(stats.up, 1);
		assert_int_equal(stats.greeting, 0);
		assert_int_equal(w->heard[i].n_ups, 2);
	}
	leave(w);
}

static void a_promised_buffer_is_waited_for_but_not_for_ever(void **state)
{
	static const struct hd_transfer channel[] = { { 3, 1, 4 } };

	(void)state;
	for (int posts = 0; posts < 2; posts++) {
		struct hubs_world *w = enter("sim", 2);
		char into[4] = "";
		meet(w, 0, 1);
		for (int i = 0; i < 2; i++) {
			hd_hub_epoch(&w->hubs[i], 1, plan);
			assert_int_equal(hd_hub_channel(&w->hubs[i], (uint32_t)(1 - i), channel, 1, channel,
				1, &w->diag), HD_OK);
		}
		assert_int_equal(hd_hub_send(&w->hubs[0], 1, &(struct hd_send){ 3, 0, 1, "abc", 4, 5 },
			&w->diag), HD_OK);
		run_for(w, 7510);
		assert_int_equal(w->heard[1].n_losts + w->heard[1].n_suspects + w->heard[0].n_suspects, 0);
		/* A waiting hub does not spin. */
		assert_true(hd_hub_due_ns(&w->hubs[1]) > hd_clock_now_ns(w->clock));
		if (posts)
			assert_int_equal(hd_hub_post(&w->hubs[1], 0, 3, into, &w->diag), HD_OK);
		run_for(w, 1000);
		assert_int_equal(w->heard[1].n_arrivals, posts);
		assert_int_equal(w->heard[1].n_losts, !posts);
		assert_string_equal(into, posts ? "abc" : "");
		if (!posts)
			assert_non_null(strstr(w->heard[1].losts[0].text, "no buffer posted"));
		leave(w);
	}
}

/* Nothing goes over the wire for it, and no time passes. */
static void what_is_cancelled_ends_at_the_next_poll(void **state)
{
	static const struct hd_transfer channel[] = { { 3, 0, 4 } };
	struct hubs_world *w = enter("sim", 2);

	(void)state;
	meet(w, 0, 1);
	for (int i = 0; i < 2; i++) {
		hd_hub_epoch(&w->hubs[i], 1, plan);
		assert_int_equal(hd_hub_channel(&w->hubs[i], (uint32_t)(1 - i), channel, 1, channel, 1,
			&w->diag), HD_OK);
	}
	assert_int_equal(hd_hub_send(&w->hubs[0], 1, &(struct hd_send){ 3, 0, 1, "abc", 4, 5 }, &w->diag),
		HD_OK);
	run_for(w, 10);                           /* no buffer is posted: it waits */
	assert_true(hd_hub_due_ns(&w->hubs[0]) > hd_clock_now_ns(w->clock));
	hd_hub_cancel(&w->hubs[0], 1, 6);         /* none of that token */
	assert_true(hd_hub_due_ns(&w->hubs[0]) > hd_clock_now_ns(w->clock));
	hd_hub_cancel(&w->hubs[0], 1, 5);
	assert_int_equal(w->heard[0].n_sents, 0);
	assert_true(hd_hub_due_ns(&w->hubs[0]) == hd_clock_now_ns(w->clock));
	run_for(w, 1);
	assert_int_equal(w->heard[0].n_sents, 1);
	assert_true(w->heard[0].sents[0].err == HD_E_STALE && w->heard[0].sents[0].token == 5);
	leave(w);
}

/* What lies there unread after a turn's worth of reads is due, though no event tells of it again. */
static void what_is_left_after_a_turn_is_due_at_once(void **state)
{
	struct hubs_world *w = enter("sim", 1);
	uint8_t bytes[HD_FRAME_HEADER + hd_greeting_len], ping[HD_FRAME_HEADER + 8] = { 0 };
	struct hd_loop_event other[1];
	struct hd_sock sock;
	size_t put, n;

	(void)state;
	put_hello(w, 5, false, bytes);
	assert_int_equal(hd_sock_connect(&w->hosts[2].net, w->addr[0], &sock, &w->diag), HD_OK);
	assert_int_equal(hd_sock_write(&sock, bytes, sizeof bytes, &put, &w->diag), HD_OK);
	run_until(w, &w->heard[0].n_ups, 1, "up");
	run_for(w, 1);
	assert_true(hd_hub_due_ns(&w->hubs[0]) > hd_clock_now_ns(w->clock));
	hd_frame_put(&(struct hd_frame){ .type = HD_FRAME_PING, .len = 8 }, ping);
	for (size_t i = 0; i < 3 * sizeof ping; i++)
		assert_int_equal(hd_sock_write(&sock, ping + i % sizeof ping, 1, &put, &w->diag), HD_OK);
	assert_int_equal(hd_hub_poll(&w->hubs[0], hd_clock_now_ns(w->clock), other, 1, &n, &w->diag), HD_OK);
	assert_true(hd_hub_due_ns(&w->hubs[0]) == hd_clock_now_ns(w->clock));
	run_for(w, 1);
	assert_true(hd_hub_due_ns(&w->hubs[0]) > hd_clock_now_ns(w->clock));
	hd_sock_close(&sock);
	leave(w);
}

static struct hubs_world *telling;

static void tell_the_third(void *self, const struct hd_message *message)
{
	hear_message(self, message);
	assert_int_equal(hd_hub_tell(&telling->hubs[0], 2, 21, 0, "on", 2, &telling->diag), HD_OK);
}

static void poll_once(struct hubs_world *w, int i)
{
	struct hd_loop_event other[4];
	size_t n;

	assert_int_equal(hd_hub_poll(&w->hubs[i], hd_clock_now_ns(w->clock), other, 4, &n, &w->diag), HD_OK);
}

/* What a callback tells another peer goes out in the poll that called back. */
static void what_a_callback_tells_goes_out_in_the_same_poll(void **state)
{
	struct hubs_world *w = telling = enter("sim", 0);

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct hd_wire_events events = hear_with(&w->heard[i]);
		if (i == 0)
			events.message = tell_the_third;
		snprintf(w->addr[i], sizeof w->addr[i], "unix:%d", i);
		assert_int_equal(hd_hub_init(&w->hubs[i], &w->config[i], &events, &w->loops[i], net_of(w, i),
			&w->diag), HD_OK);
		assert_int_equal(hd_hub_listen(&w->hubs[i], "sim", w->addr[i], &w->diag), HD_OK);
	}
	meet(w, 0, 2);                            /* its place is before the one that the message comes by */
	meet(w, 1, 0);
	run_for(w, 10);
	assert_int_equal(hd_hub_tell(&w->hubs[1], 0, 20, 0, "go", 2, &w->diag), HD_OK);
	poll_once(w, 1);
	poll_once(w, 0);
	assert_int_equal(w->heard[0].n_messages, 1);
	poll_once(w, 2);
	assert_int_equal(w->heard[2].n_messages, 1);
	leave(w);
}

static void an_unknown_epoch_is_asked_for_then_closed(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		struct hubs_world *w = enter("sim", 2);
		meet(w, 0, 1);
		hd_hub_epoch(&w->hubs[1], 6, plan);
		assert_int_equal(hd_hub_tell(&w->hubs[1], 0, 50, 1, "abc", 3, &w->diag), HD_OK);
		int64_t dropped = hd_clock_now_ns(w->clock);
		run_until(w, &w->heard[0].n_aheads, 1, "ahead");
		assert_true(hd_clock_now_ns(w->clock) - dropped >= T_MS * HD_NS_PER_MS / 4 &&
			hd_clock_now_ns(w->clock) - dropped <= T_MS * HD_NS_PER_MS / 2);
		assert_int_equal(w->heard[0].ahead_epoch, 6);
		assert_int_equal(w->heard[0].n_messages, 0);
		if (known)
			hd_hub_decided(&w->hubs[0], 6);
		run_for(w, 3000);
		assert_int_equal(w->heard[0].n_messages, known);
		assert_int_equal(w->heard[0].n_losts, !known);
		if (!known)
			assert_int_equal(w->heard[0].losts[0].why, HD_CLOSE_EPOCH);
		/* a hub that does not poll does not suspect its peer */
		assert_int_equal(w->heard[0].n_suspects, 0);
		leave(w);
	}
}

/* A hash of all that three hubs hear, with its time, when writes are late by dice. */
static struct hd_net_fate dice(void *user, const struct hd_net_trip *trip)
{
	uint64_t *random = user;

	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (struct hd_net_fate){ .delay_ns = (int64_t)(*random >> 40) * (trip->from + 1),
		.cut = trip->len && *random >> 59 == 0 };
}

static uint64_t history(uint64_t seed)
{
	static const uint8_t bytes[80];
	struct hubs_world *w = enter("sim", 3);
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	w->sim.fate = dice;
	w->sim.user = &seed;
	for (uint32_t round = 0; round < 40; round++) {
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t to = (i + 1) % 3;
			(void)!hd_hub_connect(&w->hubs[i], to, "sim", w->addr[to], NULL);
			for (uint32_t k = 0; k < 3; k++)
				(void)!hd_hub_tell(&w->hubs[i], k, 20 + round, i, bytes, k * 40, NULL);
		}
		run_for(w, 100);
		for (int i = 0; i < 3; i++) {
			const struct wire_heard *h = &w->heard[i];
			const uint64_t seen[] = { h->n_messages, h->n_ups, h->n_losts, h->n_suspects,
				(uint64_t)h->losts[(h->n_losts + KEEP - 1) % KEEP].at_ns,
				h->messages[(h->n_messages + HEARD - 1) % HEARD].crc, h->n_probes };
			hd_hasher_add(&hasher, seen, sizeof seen);
		}
	}
	CHECK(w->heard[0].n_messages > 10 && w->heard[0].n_losts > 0, "%u messages, %u losts",
		w->heard[0].n_messages, w->heard[0].n_losts);
	leave(w);
	struct hd_hash hash = hd_hasher_end(&hasher);
	return hd_get64(hash.byte);
}

static void a_simulation_repeats_itself_by_its_seed(void **state)
{
	(void)state;
	uint64_t once = history(1);
	assert_true(history(1) == once);
	assert_true(history(2) != once);
}

/* ---- another thread ---- */

/* One end of a race: a thread with its hub. Heartbeats are minutes apart, so that a wake-up that is lost
 * is not made good by one. */
struct racer { struct hubs_world *w; int me; uint64_t random; const char *failed; uint32_t round; };
enum { RACE_ROUNDS = 150, RACE_MOST = 1500000 };
static const struct hd_transfer race_rows[] = { { 1, 0, 1 }, { 2, 0, 3000 }, { 3, 0, RACE_MOST },
	{ 4, 0, 300000 } };

static bool race_until(struct racer *r, const uint32_t *what, uint32_t n)
{
	struct hd_clock *clock = r->w->clock;
	int64_t until = hd_clock_now_ns(clock) + TIMEOUT_S * HD_NS_PER_S;
	struct hd_loop_event other[4];
	size_t n_other;

	while (*what < n && hd_clock_now_ns(clock) < until)
		if (hd_hub_poll(&r->w->hubs[r->me], until, other, 4, &n_other, NULL))
			break;
	return *what >= n;
}

static void race(void *user)
{
	struct racer *r = user;
	struct hd_hub *hub = &r->w->hubs[r->me];
	struct wire_heard *heard = &r->w->heard[r->me];
	uint32_t peer = (uint32_t)(1 - r->me), got = 0, said = 0;
	uint8_t *bytes = malloc(RACE_MOST), *into = malloc(RACE_MOST);

	r->failed = "memory";
	if (!bytes || !into)
		goto out;
	r->failed = "connecting";
	if ((!r->me && hd_hub_connect(hub, 1, r->w->row, r->w->addr[1], NULL)) ||
		!race_until(r, &heard->n_ups, 1))
		goto out;
	r->failed = "the channel";
	hd_hub_epoch(hub, 1, plan);
	if (hd_hub_channel(hub, peer, race_rows, 4, race_rows, 4, NULL))
		goto out;
	for (r->round = 1; r->round <= RACE_ROUNDS; r->round++) {
		/* The same choice at both ends; the one that is ready first waits for the other. */
		r->random = r->random * 6364136223846793005u + 1442695040888963407u;
		const struct hd_transfer *row = &race_rows[r->random >> 62];
		/* One way or both: what comes back would hide a missing wake for what goes. */
		uint32_t senders = 1 + (uint32_t)(r->random >> 40) % 3;
		fill(bytes, row->bytes, r->round + (uint32_t)r->me);
		r->failed = "asking";
		if (senders >> peer & 1 && hd_hub_post(hub, peer, row->id, into, NULL))
			goto out;
		if (senders >> r->me & 1 && (hd_hub_tell(hub, peer, 20, r->round, bytes, row->bytes % 5000,
			NULL) ||
		    hd_hub_send(hub, peer, &(struct hd_send){ row->id, 0, r->round, bytes, row->bytes,
		    r->round }, NULL)))
			goto out;
		said += senders >> r->me & 1;
		got += senders >> peer & 1;
		r->failed = "waiting";
		if (!race_until(r, &heard->n_arrivals, got) || !race_until(r, &heard->n_sents, said) ||
			!race_until(r, &heard->n_messages, got))
			goto out;
		r->failed = "the bytes";
		fill(bytes, row->bytes, r->round + peer);
		if (senders >> peer & 1 && (memcmp(bytes, into, row->bytes) != 0 ||
		    heard->messages[(got - 1) % HEARD].crc != hd_crc32c(0, bytes, row->bytes % 5000)))
			goto out;
	}
	r->failed = NULL;
out:
	/* The other end may still wait for what is on its way from here. */
	hd_hub_close(hub, HD_CLOSE_DONE, "");
	(void)race_until(r, &heard->n_losts, 1);
	free(bytes);
	free(into);
}

static void two_threads_lose_no_wake_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows && strcmp(rows[i], "sim") != 0; i++) {
		struct hubs_world *w = enter(rows[i], 0);
		struct racer racers[2];
		struct hd_thread threads[2] = { { 0 }, { 0 } };
		for (int k = 0; k < 2; k++) {
			w->config[k].detect_ms = 600000;
			racers[k] = (struct racer){ w, k, 5, NULL, 0 };
			start_hub(w, k);
		}
		for (int k = 0; k < 2; k++)
			assert_int_equal(hd_thread_start(&threads[k], "racer", -1, race, &racers[k],
				&w->diag), HD_OK);
		for (int k = 0; k < 2; k++)
			hd_thread_join(&threads[k]);
		for (int k = 0; k < 2; k++)
			CHECK(!racers[k].failed, "%s, end %d, round %u: %s; %s", w->row, k, racers[k].round,
				racers[k].failed,
				w->heard[k].n_losts ? w->heard[k].losts[0].text : "");
		leave(w);
	}
}

static void wake_many(void *user)
{
	for (int i = 0; i < 1000; i++)
		hd_hub_wake(user);
}

static void any_thread_may_wake_a_hub(void **state)
{
	struct hubs_world *w = enter("unix", 2);
	struct hd_thread thread = { 0 };
	struct hd_loop_event other[4];
	size_t n = 0, wakes = 0;

	(void)state;
	meet(w, 0, 1);
	assert_int_equal(hd_thread_start(&thread, "waker", -1, wake_many, &w->hubs[0], &w->diag), HD_OK);
	for (int64_t until = hd_clock_now_ns(w->clock) + TIMEOUT_S * HD_NS_PER_S; !wakes &&
		hd_clock_now_ns(w->clock) < until;) {
		assert_int_equal(hd_hub_poll(&w->hubs[0], until, other, 4, &n, &w->diag), HD_OK);
		wakes += n;
	}
	hd_thread_join(&thread);
	assert_true(wakes > 0);
	leave(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_peer_is_suspected_after_t_and_heard_again),
		cmocka_unit_test(a_half_open_connection_ends_after_eight_t),
		cmocka_unit_test(who_calls_again_takes_the_place_of_a_suspected_connection),
		cmocka_unit_test(a_suspected_connection_that_is_closing_gives_no_way),
		cmocka_unit_test(who_is_called_out_of_lost_has_one_connection),
		cmocka_unit_test(a_promised_buffer_is_waited_for_but_not_for_ever),
		cmocka_unit_test(what_is_cancelled_ends_at_the_next_poll),
		cmocka_unit_test(what_is_left_after_a_turn_is_due_at_once),
		cmocka_unit_test(what_a_callback_tells_goes_out_in_the_same_poll),
		cmocka_unit_test(an_unknown_epoch_is_asked_for_then_closed),
		cmocka_unit_test(a_simulation_repeats_itself_by_its_seed),
		cmocka_unit_test(two_threads_lose_no_wake_up),
		cmocka_unit_test(any_thread_may_wake_a_hub),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
