/* A generator of malformed peers: strangers and greeted workers send frames of a good conversation with
 * fields changed (and signed again), bits flipped, frames lost, doubled, swapped, cut, to a hub that works
 * with a good peer meanwhile.
 *
 * Each connection ends and is counted once; memory that was not posted to that peer stays as it is; the good
 * peer is not disturbed. HD_TEST_FRAMES says how many frames (50,000; the long run takes 1,000,000 and
 * more), HD_TEST_SEED which. */
#include "wire/hub.h"

#include "base/le.h"
#include "wire/peer.h"
#include "wire/testing.h"

enum { GOOD = 1, BAD = 9, HUBS = 2, ROWS = 4, ROW_BYTES = 300, GUARD = 64, MOST = 40,
	FRAME_MOST = HD_FRAME_HEADER + 700, BULK = 500 };

static const struct hd_transfer rows[ROWS] = { { 1, 1, ROW_BYTES }, { 2, 0, ROW_BYTES }, { 5, 2, ROW_BYTES },
	{ 6, 4, ROW_BYTES } };
static const struct hd_hash plan = { { 7 } };

struct mutated_world {
	struct hd_net_sim sim;
	struct hd_clock_sim clock;
	struct hd_loop loops[HUBS];
	struct hd_net_host hosts[HUBS + 1];
	struct hd_hub hubs[HUBS];
	struct wire_heard heard[HUBS];
	char addr[HD_ADDR_CAP];
	uint8_t posted[16][ROW_BYTES + 2 * GUARD], bulk[BULK + 2 * GUARD];
	uint64_t random, frames;
	struct hd_diag diag;
};

static uint64_t dice(struct mutated_world *w, uint64_t n)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random % n;
}

/* ---- the victim ---- */

static struct mutated_world *the_world;

static void on_up(void *self, const struct hd_peer_info *peer)
{
	struct mutated_world *w = the_world;

	hear_up(self, peer);
	if (peer->worker != BAD)
		return;
	memset(w->posted, 0xa5, sizeof w->posted);
	memset(w->bulk, 0xa5, sizeof w->bulk);
	assert_int_equal(hd_hub_channel(&w->hubs[0], BAD, rows, ROWS, rows, ROWS, &w->diag), HD_OK);
	for (int i = 0, at = 0; i < ROWS; i++)
		for (uint32_t k = 0; k < (rows[i].grants ? rows[i].grants : 1); k++)
			assert_int_equal(hd_hub_post(&w->hubs[0], BAD, rows[i].id, w->posted[at++] + GUARD,
				&w->diag), HD_OK);
	assert_int_equal(hd_hub_expect(&w->hubs[0], BAD, 77, w->bulk + GUARD, BULK, &w->diag), HD_OK);
	static const uint8_t bytes[ROW_BYTES];
	for (int i = 0; i < ROWS; i++)
		assert_int_equal(hd_hub_send(&w->hubs[0], BAD,
			&(struct hd_send){ rows[i].id, 0, 1, bytes, ROW_BYTES, 1 }, &w->diag), HD_OK);
}

static struct mutated_world *enter(void)
{
	struct mutated_world *w = calloc(1, sizeof *w);
	const char *seed = getenv("HD_TEST_SEED");

	assert_non_null(w);
	the_world = w;
	w->random = 88172645463325252u + (seed ? strtoull(seed, NULL, 10) : 0) * 7919;
	hd_clock_sim(&w->clock, HD_NS_PER_S, 0);
	assert_int_equal(hd_net_sim_init(&w->sim, &w->clock.clock, NULL, &w->diag), HD_OK);
	for (uint32_t i = 0; i < HUBS; i++) {
		struct hd_hub_config config = { .job = { { 1 } }, .worker = i, .role = HD_ROLE_WORKER,
			.detect_ms = 1000, .peers_cap = 4, .streams_cap = 16,
			.plaintext = true };
		struct hd_wire_events events = hear_with(&w->heard[i]);
		events.up = on_up;
		assert_int_equal(hd_loop_sim_init(&w->loops[i], &w->clock, &w->diag), HD_OK);
		hd_net_sim_host(&w->sim, i, &w->loops[i], &w->hosts[i]);
		assert_int_equal(hd_hub_init(&w->hubs[i], &config, &events, &w->loops[i], &w->hosts[i].net,
			&w->diag), HD_OK);
		hd_hub_epoch(&w->hubs[i], 3, plan);
	}
	hd_hub_decided(&w->hubs[0], 4);
	hd_net_sim_host(&w->sim, HUBS, NULL, &w->hosts[HUBS]);
	memcpy(w->addr, "tcp:victim", 11);
	/* tcp rows carry checksums of payloads: more to get wrong */
	assert_int_equal(hd_hub_listen(&w->hubs[0], "tcp", w->addr, &w->diag), HD_OK);
	return w;
}

static void leave(struct mutated_world *w)
{
	for (int i = 0; i < HUBS; i++) {
		hd_hub_finish(&w->hubs[i]);
		hd_loop_finish(&w->loops[i]);
	}
	hd_net_sim_finish(&w->sim);
	free(w);
}

static void run_for(struct mutated_world *w, int64_t ms)
{
	int64_t until = hd_clock_now_ns(&w->clock.clock) + ms * HD_NS_PER_MS;

	for (;;) {
		struct hd_loop_event other[4];
		int64_t at = until;
		int first = -1;
		size_t n;
		for (int i = 0; i < HUBS; i++) {
			int64_t due = hd_hub_due_ns(&w->hubs[i]), next = hd_loop_sim_next_ns(&w->loops[i]);
			due = next < due ? next : due;
			if (due < at) {
				at = due;
				first = i;
			}
		}
		if (first < 0)
			break;
		CHECK(hd_hub_poll(&w->hubs[first], at, other, 4, &n, &w->diag) == HD_OK, "%s", w->diag.text);
	}
	hd_clock_wait_until(&w->clock.clock, until);
}

static uint64_t all_closed(struct mutated_world *w)
{
	struct hd_hub_stats stats;
	uint64_t n = 0;

	hd_hub_stats(&w->hubs[0], &stats);
	for (int i = 0; i < HD_CLOSE_COUNT; i++)
		n += stats.closed[i];
	return n;
}

/* ---- the peer ---- */

struct mutated_bytes { uint8_t bytes[FRAME_MOST]; size_t len; };

static void sign(struct mutated_bytes *m, bool payload)
{
	uint32_t len = hd_get32(m->bytes + 32);

	if (payload && m->bytes[5] & HD_FRAME_CRC && len <= m->len - HD_FRAME_HEADER)
		hd_put32(m->bytes + 40, hd_crc32c(0, m->bytes + HD_FRAME_HEADER, len));
	hd_put32(m->bytes + 44, hd_crc32c(0, m->bytes, 44));
}

static void put(struct mutated_bytes *m, struct hd_frame frame, const void *payload)
{
	frame.flags |= frame.len ? HD_FRAME_CRC : 0;
	frame.epoch = 3;
	hd_frame_put(&frame, m->bytes);
	memcpy(m->bytes + HD_FRAME_HEADER, payload, frame.len);
	m->len = HD_FRAME_HEADER + frame.len;
	sign(m, true);
}

static void put_open(struct mutated_bytes *m, uint8_t class, uint32_t stream, struct hd_open_payload open)
{
	uint8_t bytes[hd_open_len];

	hd_open_put(&open, bytes);
	put(m, (struct hd_frame){ .type = HD_FRAME_OPEN, .class = class, .stream = stream, .step = 1,
		.len = hd_open_len }, bytes);
}

/* What a good worker says, from its greeting on. */
static size_t conversation(struct mutated_bytes m[MOST])
{
	static const uint8_t bytes[600] = { 1, 2, 3 };
	uint8_t small[80];
	size_t n = 0;

	hd_greeting_put(&(struct hd_greeting_payload){ HD_WIRE_VERSION, HD_WIRE_VERSION, BAD, HD_ROLE_WORKER,
		1000, .job = { { 1 } },
		.nonce = { { 4 } } }, small);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_HELLO, .len = 80 }, small);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_EPOCH, .len = 16 }, plan.byte);
	put_open(&m[n++], 1, 1, (struct hd_open_payload){ 1, HD_KIND_PLANNED, ROW_BYTES, 5, 0 });
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_DATA, .class = 1, .stream = 1, .step = 1,
		.len = 100 }, bytes);
	put_open(&m[n++], 0, 2, (struct hd_open_payload){ HD_TRANSFER_NONE, HD_KIND_CONTROL, 40, 30, 0 });
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_DATA, .class = 0, .stream = 2, .step = 1,
		.len = 30 }, bytes);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_DATA, .class = 1, .stream = 1, .step = 1,
		.offset = 100, .len = 150 }, bytes);
	put_open(&m[n++], 2, 3, (struct hd_open_payload){ HD_TRANSFER_NONE, HD_KIND_BULK, 400, 9, 77 });
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_DATA, .class = 2, .stream = 3, .step = 1,
		.len = 300 }, bytes);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_DATA, .class = 0, .flags = HD_FRAME_LAST,
		.stream = 2, .step = 1, .offset = 30, .len = 10 }, bytes);
	hd_grant_put(&(struct hd_grant_payload){ 2, 1 }, small);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_GRANT, .class = 1, .len = hd_grant_len }, small);
	hd_credit_put(&(struct hd_credit_payload){ 1 }, small);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_PRIO, .class = 1, .flags = HD_FRAME_MINE,
		.stream = 1, .priority = -4 }, small);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_DATA, .class = 1, .flags = HD_FRAME_LAST,
		.stream = 1, .step = 1, .offset = 250, .len = 50 }, bytes);
	hd_ping_put(&(struct hd_ping_payload){ 99 }, small);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_PING, .len = hd_ping_len }, small);
	hd_pong_put(&(struct hd_pong_payload){ 1, 2, 3 }, small);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_PONG, .len = hd_pong_len }, small);
	put_open(&m[n++], 1, 4, (struct hd_open_payload){ 5, HD_KIND_PLANNED, ROW_BYTES, 5, 0 });
	hd_cancelled_put(&(struct hd_cancelled_payload){ 0 }, small);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_CANCELLED, .class = 1, .stream = 4,
		.len = hd_cancelled_len }, small);
	hd_cancel_put(&(struct hd_cancel_payload){ HD_CANCEL_NOT_NEEDED }, small);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_CANCEL, .class = 1, .flags = HD_FRAME_MINE,
		.stream = 2, .len = hd_cancel_len }, small);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_DATA, .class = 2, .flags = HD_FRAME_LAST,
		.stream = 3, .step = 1, .offset = 300, .len = 100 }, bytes);
	hd_put32(small, HD_CLOSE_DONE);
	put(&m[n++], (struct hd_frame){ .type = HD_FRAME_BYE, .len = 4 }, small);
	return n;
}

/* One field of the header, or of the payload, gets a value at a limit. */
static void mutate(struct mutated_world *w, struct mutated_bytes *m)
{
	static const uint64_t values[] = { 0, 1, 2, 3, 4, 5, 7, 8, 13, 14, 77, 127, 128, 255, 256, 300, 301,
		65535, 1 << 20, (1 << 20) + 1, INT32_MAX,
		(uint64_t)INT32_MAX + 1, UINT32_MAX, (uint64_t)UINT32_MAX + 1, INT64_MAX,
		(uint64_t)INT64_MAX + 1, UINT64_MAX };
	static const struct { uint8_t at, len; } fields[] = { { 0, 2 }, { 2, 1 }, { 3, 1 }, { 4, 1 },
		{ 5, 1 }, { 6, 2 }, { 8, 4 }, { 12, 4 }, { 16, 8 },
		{ 24, 8 }, { 32, 4 }, { 36, 4 }, { 40, 4 }, { 44, 4 }, { 48, 2 }, { 48, 4 }, { 48, 8 }, { 52, 4 }, { 56, 8 }, { 64, 8 }, { 72, 8 } };
	size_t i = dice(w, sizeof fields / sizeof *fields);
	uint64_t value = dice(w, 4) ? values[dice(w, sizeof values / sizeof *values)] : dice(w, UINT64_MAX);

	for (size_t k = 0; k < fields[i].len && fields[i].at + k < m->len; k++)
		m->bytes[fields[i].at + k] = (uint8_t)(value >> 8 * k);
	if (dice(w, 4) == 0)
		m->bytes[dice(w, m->len)] ^= (uint8_t)(1u << dice(w, 8));
	if (dice(w, 8))
		sign(m, dice(w, 8) != 0);
	if (dice(w, 16) == 0)
		m->len = 1 + dice(w, m->len);
}

/* A connection: greeted or not, with some of its frames changed, lost, doubled or swapped. */
static void attack(struct mutated_world *w)
{
	static struct mutated_bytes m[MOST];
	struct hd_sock sock;
	size_t n = conversation(m), from = dice(w, 8) == 0 ? dice(w, n) : 0, to = 1 + dice(w, n), done;
	bool greets = dice(w, 8) != 0;

	assert_int_equal(hd_sock_connect(&w->hosts[HUBS].net, w->addr, &sock, &w->diag), HD_OK);
	for (int k = (int)dice(w, 3); k > 0; k--) {
		size_t a = 1 + dice(w, n - 1), b = 1 + dice(w, n - 1);
		struct mutated_bytes moved = m[a];
		m[a] = m[b];
		m[b] = moved;
	}
	for (size_t i = from; i < n && i < to + 6; i++) {
		if (i ? dice(w, 3) == 0 && i >= to - 1 : !greets)
			mutate(w, &m[i]);
		w->frames++;
		if (hd_sock_write(&sock, m[i].bytes, m[i].len, &done, NULL))
			break;                    /* it is closed already */
		if (dice(w, 16) == 0)
			(void)!hd_sock_write(&sock, m[i].bytes, m[i].len, &done, NULL);
		if (dice(w, 3) == 0)
			run_for(w, 1);
	}
	run_for(w, 2);
	hd_sock_close(&sock);
	run_for(w, 2);
}

static bool is_guarded(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < GUARD; i++)
		if (bytes[i] != 0xa5 || bytes[GUARD + len + i] != 0xa5)
			return false;
	return true;
}

static void no_malformed_peer_changes_anything(void **state)
{
	const char *given = getenv("HD_TEST_FRAMES");
	uint64_t want = given ? strtoull(given, NULL, 10) : 50000, connections = 0, pings = 0;
	struct mutated_world *w = enter();
	struct hd_hub_stats stats;

	(void)state;
	assert_int_equal(hd_hub_connect(&w->hubs[1], 0, "tcp", w->addr, &w->diag), HD_OK);
	run_for(w, 10);
	assert_true(hd_hub_is_up(&w->hubs[0], GOOD));
	while (w->frames < want) {
		uint32_t ups = w->heard[0].n_ups;
		attack(w);
		connections++;
		/* A peer that was greeted may be waited for: an unknown epoch, a frame that stands
		 * still. At most 8 T, with four times our T if it claims a longer one. */
		if (all_closed(w) != connections)
			run_for(w, 8 * 4 * 1000 + 1000);
		CHECK(all_closed(w) == connections, "seed and connection %d: closed %d", (int)connections,
			(int)all_closed(w));
		assert_true(w->heard[0].n_ups <= ups + 1 && w->heard[0].n_losts == w->heard[0].n_ups - 1);
		for (size_t i = 0; w->heard[0].n_ups > ups && i < 16; i++)
			CHECK(is_guarded(w->posted[i], ROW_BYTES), "connection %d wrote beside buffer %zu",
				(int)connections, i);
		CHECK(w->heard[0].n_ups == ups || is_guarded(w->bulk, BULK),
			"connection %d wrote beside the answer", (int)connections);
		if (connections % 64 == 0) {
			assert_int_equal(hd_hub_tell(&w->hubs[1], 0, 50, connections, &connections,
				sizeof connections, &w->diag), HD_OK);
			assert_int_equal(hd_hub_tell(&w->hubs[0], GOOD, 51, connections, NULL, 0, &w->diag),
				HD_OK);
			run_for(w, 2);
			pings++;
			assert_int_equal(w->heard[1].n_messages, pings);
		}
	}
	assert_true(hd_hub_is_up(&w->hubs[0], GOOD) && hd_hub_is_up(&w->hubs[1], 0));
	assert_int_equal(w->heard[1].n_losts, 0);
	hd_hub_stats(&w->hubs[0], &stats);
	for (int i = 1; i < HD_CLOSE_COUNT; i++)
		if (stats.closed[i])
			print_message("  %8llu closed: %s\n", (unsigned long long)stats.closed[i],
				hd_close_text((enum hd_close)i));
	print_message("  %llu frames, %llu connections, %u of them greeted\n", (unsigned long long)w->frames,
		(unsigned long long)connections,
		w->heard[0].n_ups - 1);
	leave(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_malformed_peer_changes_anything),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
