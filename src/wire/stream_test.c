#include "wire/stream.h"

#include "base/alloc.h"
#include "base/le.h"
#include "wire/stream_int.h"
#include "wire/testing_stream.h"

/* ---- whole bytes, whatever the interleaving ---- */

enum { ROWS = 12, LONGEST = 200000 };

struct traffic { uint8_t *source[2][ROWS], *target[2][ROWS], *bulk[2], *bulk_into[2];
	struct hd_transfer rows[ROWS]; };

static void traffic_make(struct traffic *t, struct stream_pair *p)
{
	for (uint32_t r = 0; r < ROWS; r++)
		t->rows[r] = (struct hd_transfer){ 3 * r + 1, r % 3,
			1 + pair_random(p) % (r % 4 == 0 ? 100 : LONGEST) };
	for (int i = 0; i < 2; i++) {
		for (uint32_t r = 0; r < ROWS; r++) {
			t->source[i][r] = malloc(t->rows[r].bytes);
			t->target[i][r] = calloc(1, t->rows[r].bytes);
			assert_true(t->source[i][r] && t->target[i][r]);
			fill(t->source[i][r], t->rows[r].bytes, 100u * (unsigned)i + r);
		}
		t->bulk[i] = malloc(3 * LONGEST);
		t->bulk_into[i] = calloc(1, 3 * LONGEST);
		assert_true(t->bulk[i] && t->bulk_into[i]);
		fill(t->bulk[i], 3 * LONGEST, 7u + (unsigned)i);
	}
}

static void traffic_free(struct traffic *t)
{
	for (int i = 0; i < 2; i++) {
		for (uint32_t r = 0; r < ROWS; r++) {
			free(t->source[i][r]);
			free(t->target[i][r]);
		}
		free(t->bulk[i]);
		free(t->bulk_into[i]);
	}
}

static void run_at_random(struct stream_pair *p)
{
	for (unsigned idle = 0; idle < 60;) {
		int i = (int)(pair_random(p) & 1);
		size_t most = pair_random(p) % 8 == 0 ? 1 + pair_random(p) % 3 : 1 + pair_random(p) % 100000;
		size_t moved = pair_random(p) & 1 ? pair_write(p, i, most) : pair_read(p, i, most);
		CHECK(!p->closed[0] && !p->closed[1], "%s %s", p->diag[0].text, p->diag[1].text);
		p->now += (int64_t)(pair_random(p) % 1000000);
		idle = moved ? 0 : idle + 1;
	}
}

static void all_bytes_arrive_once_whatever_the_interleaving(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= DRAWS(60); seed++) {
		struct stream_pair *p = pair_make(true, seed & 1, seed);
		struct traffic t;
		uint8_t small[200];
		traffic_make(&t, p);
		p->most = seed % 5 == 0 ? 1 + seed : 1 + pair_random(p) % PIPE;
		enter(p, 1, t.rows, ROWS);
		for (int i = 0; i < 2; i++) {
			for (uint32_t r = 0; r < ROWS; r++) {
				assert_int_equal(hd_stream_post(p->stream[i], t.rows[r].id, t.target[i][r],
					p->now, &p->diag[i]), HD_OK);
				assert_int_equal(send(p, i, t.rows[r].id, (int32_t)(pair_random(p) % 5) - 2,
					seed, t.source[i][r], t.rows[r].bytes, r), HD_OK);
			}
			assert_int_equal(hd_stream_expect(p->stream[i], 99, t.bulk_into[i], 3 * LONGEST,
				p->now, &p->diag[i]), HD_OK);
			assert_int_equal(hd_stream_answer(p->stream[i],
				&(struct hd_answer){ .request = 99, .bytes = t.bulk[i], .len = 3 * LONGEST,
				.token = 1000 }, p->now, &p->diag[i]), HD_OK);
			for (uint32_t m = 0; m < 20; m++) {
				fill(small, sizeof small, m);
				assert_int_equal(hd_stream_tell(p->stream[i], 20 + m, m, small, m * 10,
					&p->diag[i]), HD_OK);
			}
		}
		run_at_random(p);
		pair_run(p);
		for (int i = 0; i < 2; i++) {
			struct wire_heard *h = &p->heard[i];
			CHECK(h->n_sents == ROWS + 1 && h->n_arrivals == ROWS + 1 && h->n_messages == 20,
				"seed %d: end %d: %u sents, %u arrivals, %u messages",
				(int)seed, i, h->n_sents, h->n_arrivals, h->n_messages);
			for (uint32_t r = 0; r < ROWS; r++)
				CHECK(memcmp(t.target[i][r], t.source[1 - i][r], t.rows[r].bytes) == 0,
					"seed %d, transfer %u", (int)seed, t.rows[r].id);
			CHECK(memcmp(t.bulk_into[i], t.bulk[1 - i], 3 * LONGEST) == 0, "seed %d, bulk",
				(int)seed);
			for (uint32_t m = 0; m < 20; m++) {
				fill(small, sizeof small, m);
				CHECK(h->messages[m].message.id == 20 + m &&
					h->messages[m].message.len == m * 10 &&
					h->messages[m].message.step == m &&
					h->messages[m].crc == hd_crc32c(0, small, m * 10),
					"seed %d, message %u", (int)seed, m);
			}
			for (uint32_t k = 0; k < h->n_sents; k++) {
				CHECK(h->sents[k].err == HD_OK && h->sents[k].queued_ns &&
					h->sents[k].gate_ns >= h->sents[k].queued_ns &&
					h->sents[k].first_ns >= h->sents[k].gate_ns &&
					h->sents[k].end_ns >= h->sents[k].first_ns, "seed %d, sent %u",
					(int)seed, k);
				for (uint32_t l = 0; l < k; l++)
					CHECK(h->sents[k].token != h->sents[l].token,
						"seed %d: token %d sent twice", (int)seed,
						(int)h->sents[k].token);
			}
		}
		traffic_free(&t);
		pair_free(p);
	}
}

static void both_ends_give_a_transfer_the_same_flow(void **state)
{
	struct stream_pair *p = pair_make(true, true, 1);
	static const struct hd_transfer rows[] = { { 5, 1, 100 } };
	uint8_t a[100] = { 1 }, b[100];

	(void)state;
	enter(p, 3, rows, 1);
	assert_int_equal(hd_stream_post(p->stream[1], 5, b, 11, NULL), HD_OK);
	assert_int_equal(send(p, 0, 5, 0, 42, a, 100, 1), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 1);
	assert_true(p->heard[1].arrivals[0].flow == p->heard[0].sents[0].flow &&
		p->heard[1].arrivals[0].flow != 0);
	assert_int_equal(p->heard[1].arrivals[0].step, 42);
	assert_int_equal(p->heard[1].arrivals[0].transfer, 5);
	assert_int_equal(p->heard[1].arrivals[0].posted_ns, 11);
	assert_ptr_equal(p->heard[1].arrivals[0].buffer, b);
	assert_int_equal(p->heard[1].arrivals[0].chunks, p->heard[0].sents[0].chunks);
	pair_free(p);
}

/* ---- order ---- */

static void a_more_urgent_transfer_goes_between_the_chunks_of_another(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 1 << 20 }, { 2, 1, 1 << 18 }, { 3, 1, 1 << 18 } };
	struct stream_pair *p = pair_make(true, false, 1);
	uint8_t *bytes = calloc(1, 1 << 20), *into = calloc(3, 1 << 20);

	(void)state;
	enter(p, 1, rows, 3);
	for (uint32_t r = 0; r < 3; r++)
		assert_int_equal(hd_stream_post(p->stream[1], r + 1, into + r * (1 << 20), 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(send(p, 0, 1, 5, 1, bytes, 1 << 20, 1), HD_OK);
	pair_write(p, 0, HD_CHUNK_FIRST + 1000);          /* the first chunk, and no more is committed */
	assert_int_equal(send(p, 0, 2, 5, 1, bytes, 1 << 18, 2), HD_OK);
	assert_int_equal(send(p, 0, 3, -1, 1, bytes, 1 << 18, 3), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 3);
	assert_int_equal(p->heard[1].arrivals[0].transfer, 3);        /* the urgent one */
	/* equal priority: the order of the calls */
	assert_int_equal(p->heard[1].arrivals[1].transfer, 1);
	assert_int_equal(p->heard[1].arrivals[2].transfer, 2);
	assert_int_equal(p->heard[0].sents[1].preempted, 1);
	free(bytes);
	free(into);
	pair_free(p);
}

/* Each is more urgent than the one before it, which has just begun. */
static void no_more_streams_begin_than_may_be_under_way(void **state)
{
	enum { N = HD_STREAMS_OPEN + 6, LEN = 100000 };
	static struct hd_transfer rows[N];
	static uint8_t bytes[LEN], into[LEN];
	struct stream_pair *p = pair_of(N, true, false, 1);

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		rows[i] = (struct hd_transfer){ i, 1, LEN };
	enter(p, 1, rows, N);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(hd_stream_post(p->stream[1], i, into, 0, NULL), HD_OK);
	pair_run(p);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(send(p, 0, i, -(int32_t)i, 1, bytes, LEN, i), HD_OK);
		while (pair_write(p, 0, SIZE_MAX) == 0 || p->to[1].used < HD_CHUNK_FIRST / 2)
			CHECK(!p->closed[1], "%s", p->diag[1].text);
		while (pair_read(p, 1, SIZE_MAX))
			;
		CHECK(!p->closed[1], "transfer %u: %s", i, p->diag[1].text);
	}
	pair_run(p);
	CHECK(!p->closed[1], "%s", p->diag[1].text);
	assert_int_equal(p->heard[1].n_arrivals, N);
	/* When no more could begin (one place is kept for messages), the most urgent of those that had was
	 * chosen. */
	assert_int_equal(p->heard[1].arrivals[0].transfer, HD_STREAMS_OPEN - 2);
	pair_free(p);
}

static void a_wait_moves_what_has_begun_to_the_front(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 1 << 20 }, { 2, 1, 1 << 20 } };
	struct stream_pair *p = pair_make(true, false, 1);
	uint8_t *bytes = calloc(1, 1 << 20), *into = calloc(2, 1 << 20);

	(void)state;
	enter(p, 1, rows, 2);
	for (uint32_t r = 0; r < 2; r++)
		assert_int_equal(hd_stream_post(p->stream[1], r + 1, into + r * (1 << 20), 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(send(p, 0, 2, 9, 1, bytes, 1 << 20, 2), HD_OK);
	pair_write(p, 0, HD_CHUNK_FIRST + 1000);
	pair_read(p, 1, SIZE_MAX);
	assert_int_equal(send(p, 0, 1, 3, 1, bytes, 1 << 20, 1), HD_OK);
	/* the first chunk of the more urgent one: the receiver has seen both */
	pair_write(p, 0, HD_CHUNK_FIRST + 1000);
	while (pair_read(p, 1, SIZE_MAX))
		;
	hd_stream_want(p->stream[1], 2);
	pair_write(p, 1, SIZE_MAX);
	pair_read(p, 0, SIZE_MAX);
	pair_run(p);
	assert_int_equal(p->heard[1].arrivals[0].transfer, 2);
	assert_int_equal(p->heard[1].arrivals[1].transfer, 1);
	hd_stream_want(p->stream[1], 2);                  /* nothing of it is under way: nothing happens */
	pair_run(p);
	assert_int_equal(p->closed[0], HD_CLOSE_NONE);
	free(bytes);
	free(into);
	pair_free(p);
}

static void bulk_gets_one_part_in_twenty_while_transfers_go(void **state)
{
	enum { LEN = 64 << 20 };
	static const struct hd_transfer rows[] = { { 1, 1, LEN } };
	struct stream_pair *p = pair_make(true, false, 1);
	uint8_t *bytes = calloc(1, LEN), *into = calloc(2, LEN);
	struct hd_hub_stats stats = { 0 };

	(void)state;
	enter(p, 1, rows, 1);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into, 0, NULL), HD_OK);
	assert_int_equal(hd_stream_expect(p->stream[1], 7, into + LEN, LEN, 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(hd_stream_answer(p->stream[0], &(struct hd_answer){ .request = 7, .bytes = bytes,
		.len = LEN }, 0, NULL), HD_OK);
	assert_int_equal(send(p, 0, 1, 0, 1, bytes, LEN, 1), HD_OK);
	while (!p->heard[1].n_arrivals) {
		pair_write(p, 0, SIZE_MAX);
		while (pair_read(p, 1, SIZE_MAX))
			;
		pair_write(p, 1, SIZE_MAX);
		pair_read(p, 0, SIZE_MAX);
	}
	assert_int_equal(p->heard[1].arrivals[0].kind, HD_KIND_PLANNED);
	hd_stream_stats(p->stream[1], &stats);
	double share = (double)(stats.bytes_received - LEN) / (double)stats.bytes_received;
	CHECK(share > 0.045 && share < 0.07, "%g of the bytes are bulk", share);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 2);
	free(bytes);
	free(into);
	pair_free(p);
}

/* ---- grants ---- */

static void a_transfer_without_a_slot_waits_and_holds_up_nothing(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 0, 1000 }, { 2, 1, 1000 } };
	struct stream_pair *p = pair_make(true, false, 1);
	uint8_t bytes[1000] = { 0 }, into[3][1000];

	(void)state;
	enter(p, 1, rows, 2);
	assert_int_equal(hd_stream_post(p->stream[1], 2, into[1], 0, NULL), HD_OK);
	assert_int_equal(send(p, 0, 1, -100, 1, bytes, 1000, 1), HD_OK);
	assert_int_equal(send(p, 0, 1, -100, 2, bytes, 1000, 3), HD_OK);
	assert_int_equal(send(p, 0, 2, 100, 1, bytes, 1000, 2), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 1);
	assert_int_equal(p->heard[1].arrivals[0].transfer, 2);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into[0], 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 2);
	assert_int_equal(p->heard[1].arrivals[1].step, 1);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into[2], 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 3);
	assert_int_equal(p->heard[1].arrivals[2].step, 2);
	assert_ptr_equal(p->heard[1].arrivals[2].buffer, into[2]);
	pair_free(p);
}

static void no_more_than_four_buffers_of_a_transfer_are_posted(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 0, 10 } };
	struct stream_pair *p = pair_make(true, false, 1);
	uint8_t into[HD_GRANTS_MAX + 1][10], bytes[10] = { 0 };

	(void)state;
	enter(p, 1, rows, 1);
	for (int i = 0; i < HD_GRANTS_MAX; i++)
		assert_int_equal(hd_stream_post(p->stream[1], 1, into[i], 0, NULL), HD_OK);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into[HD_GRANTS_MAX], 0, NULL), HD_E_AGAIN);
	assert_int_equal(hd_stream_post(p->stream[1], 2, into[0], 0, NULL), HD_E_INVAL);
	assert_int_equal(send(p, 0, 1, 0, 1, bytes, 9, 1), HD_E_INVAL);
	assert_int_equal(send(p, 0, 2, 0, 1, bytes, 10, 1), HD_E_INVAL);
	for (int i = 0; i <= HD_GRANTS_MAX; i++)
		assert_int_equal(send(p, 0, 1, 0, 1, bytes, 10, 1), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, HD_GRANTS_MAX);
	assert_int_equal(p->closed[0] | p->closed[1], 0);
	pair_free(p);
}

static void a_promised_slot_without_its_buffer_stops_reading_until_it_is_posted(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 1000 } };
	struct stream_pair *p = pair_make(true, true, 1);
	uint8_t bytes[1000] = { 7 }, into[1000] = { 0 };
	uint32_t epoch;

	(void)state;
	enter(p, 1, rows, 1);
	assert_int_equal(send(p, 0, 1, 0, 1, bytes, 1000, 1), HD_OK);
	pair_run(p);
	assert_int_equal(hd_stream_held(p->stream[1], &epoch), HD_HELD_POST);
	assert_int_equal(p->heard[1].n_arrivals, 0);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into, 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 1);
	assert_memory_equal(into, bytes, 1000);
	pair_free(p);
}

static void messages_of_any_length_come_whole_and_in_order(void **state)
{
	static const uint32_t lens[] = { HD_TELL_MAX, 0, 1, HD_CREDIT_CONTROL, HD_CREDIT_CONTROL + 1, 1 << 19,
		17, HD_TELL_MAX };
	struct stream_pair *p = pair_make(true, true, 1);
	uint8_t *bytes = malloc(HD_TELL_MAX);
	uint32_t n = 0;

	(void)state;
	fill(bytes, HD_TELL_MAX, 3);
	for (uint32_t round = 0; round < 40; round++) {
		enum hd_err err = hd_stream_tell(p->stream[0], 100 + round, round, bytes, lens[round % 8],
			&p->diag[0]);
		if (err == HD_E_AGAIN) {
			pair_run(p);
			err = hd_stream_tell(p->stream[0], 100 + round, round, bytes, lens[round % 8],
				&p->diag[0]);
		}
		CHECK(err == HD_OK, "message %u: %s", round, p->diag[0].text);
		if (round % 3 == 0) {
			pair_write(p, 0, 70000);
			pair_read(p, 1, 50000);
		}
		n++;
	}
	pair_run(p);
	assert_int_equal(p->heard[1].n_messages, n);
	for (uint32_t i = 0; i < n; i++)
		CHECK(p->heard[1].messages[i].message.id == 100 + i &&
			p->heard[1].messages[i].message.len == lens[i % 8] &&
			p->heard[1].messages[i].crc == hd_crc32c(0, bytes, lens[i % 8]), "message %u", i);
	assert_int_equal(hd_stream_tell(p->stream[0], 15, 0, bytes, 1, NULL), HD_E_INVAL);
	assert_int_equal(hd_stream_tell(p->stream[0], 16, 0, bytes, HD_TELL_MAX + 1, NULL), HD_E_INVAL);
	free(bytes);
	pair_free(p);
}

static void a_grant_serves_one_transfer(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 2, 100 } };
	struct stream_pair *p = pair_make(true, true, 1);
	uint8_t bytes[100] = { 0 }, into[3][100];

	(void)state;
	enter(p, 1, rows, 1);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into[0], 0, NULL), HD_OK);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into[1], 0, NULL), HD_OK);
	pair_run(p);                                      /* both are granted before the first is sent */
	for (uint64_t step = 1; step <= 3; step++)
		assert_int_equal(send(p, 0, 1, 0, step, bytes, 100, step), HD_OK);
	pair_run(p);
	assert_int_equal(p->closed[0] | p->closed[1], 0);
	assert_int_equal(p->heard[1].n_arrivals, 2);
	hd_stream_cancel(p->stream[0], 3);                /* it waits: its end gives no grant away */
	pair_run(p);
	assert_int_equal(p->heard[0].n_sents, 3);
	assert_int_equal(send(p, 0, 1, 0, 4, bytes, 100, 4), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 2);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into[2], 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 3);
	assert_int_equal(p->heard[1].arrivals[2].step, 4);
	pair_free(p);
}

static void a_cancelled_send_passes_its_unused_grant_on(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 100 } };
	struct stream_pair *p = pair_make(true, true, 1);
	uint8_t bytes[100] = { 0 }, into[100];

	(void)state;
	enter(p, 1, rows, 1);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into, 0, NULL), HD_OK);
	pair_run(p);
	assert_int_equal(send(p, 0, 1, 0, 1, bytes, 100, 1), HD_OK);
	assert_int_equal(send(p, 0, 1, 0, 2, bytes, 100, 2), HD_OK);
	hd_stream_cancel(p->stream[0], 1);
	pair_run(p);
	assert_int_equal(p->heard[1].n_arrivals, 1);
	assert_int_equal(p->heard[1].arrivals[0].step, 2);
	assert_int_equal(p->heard[0].sents[0].err, HD_E_STALE);
	assert_int_equal(p->heard[0].sents[1].err, HD_OK);
	pair_free(p);
}

/* The ring of messages wraps hundreds of times, at every fill. */
static void messages_survive_the_turns_of_their_ring(void **state)
{
	enum { N = 3000 };
	struct stream_pair *p = pair_make(true, false, 7);
	uint8_t *bytes = malloc(HD_TELL_MAX + 256);
	static uint32_t crcs[N];
	uint32_t queued = 0, again = 0, checked = 0;

	(void)state;
	fill(bytes, HD_TELL_MAX + 256, 9);
	while (checked < N) {
		uint32_t len = (uint32_t)(pair_random(p) % (pair_random(p) % 40 == 0 ? HD_TELL_MAX : 60000)),
			at = (uint32_t)(pair_random(p) % 256);
		enum hd_err err = queued < N ? hd_stream_tell(p->stream[0], 16, queued, bytes + at, len,
			NULL) : HD_E_AGAIN;
		if (!err)
			crcs[queued++] = hd_crc32c(0, bytes + at, len);
		again += err != 0;
		if (err || pair_random(p) % 16 == 0) {
			for (uint64_t k = pair_random(p) % 6; k || queued == N; k -= k > 0) {
				size_t moved = pair_write(p, 0, 1 + pair_random(p) % 200000) + pair_read(p, 1,
					SIZE_MAX) + pair_write(p, 1, SIZE_MAX) +
					pair_read(p, 0, SIZE_MAX);
				if (!moved)
					break;
			}
		}
		for (; checked < p->heard[1].n_messages; checked++)
			CHECK(p->heard[1].messages[checked].crc == crcs[checked] &&
				p->heard[1].messages[checked].message.step == checked, "message %u",
				checked);
	}
	CHECK(again > 100, "the ring was full %u times", again);
	free(bytes);
	pair_free(p);
}

static void a_full_queue_says_again(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 0, 10 } };
	struct stream_pair *p = pair_make(true, false, 1);
	uint8_t bytes[10] = { 0 };

	(void)state;
	enter(p, 1, rows, 1);
	for (int i = 0; i < 256; i++)
		assert_int_equal(send(p, 0, 1, 0, 1, bytes, 10, 1), HD_OK);
	assert_int_equal(send(p, 0, 1, 0, 1, bytes, 10, 1), HD_E_AGAIN);
	for (int i = 0; i < HD_EXPECT_MAX; i++)
		assert_int_equal(hd_stream_expect(p->stream[0], (uint64_t)i, bytes, 10, 0, NULL), HD_OK);
	assert_int_equal(hd_stream_expect(p->stream[0], 3, bytes, 10, 0, NULL), HD_E_INVAL);
	assert_int_equal(hd_stream_expect(p->stream[0], 1000, bytes, 10, 0, NULL), HD_E_AGAIN);
	hd_stream_cancel(p->stream[0], 1);
	pair_run(p);
	assert_int_equal(p->heard[0].n_sents, 256);
	assert_int_equal(p->heard[0].sents[255].err, HD_E_STALE);
	assert_int_equal(send(p, 0, 1, 0, 1, bytes, 10, 1), HD_OK);
	pair_free(p);
}

/* ---- small ones ---- */

static void a_ping_brings_four_stamps(void **state)
{
	struct stream_pair *p = pair_make(true, true, 1);

	(void)state;
	p->now = 1000;
	hd_stream_ping(p->stream[0]);
	pair_write(p, 0, SIZE_MAX);
	p->now = 3000;
	pair_read(p, 1, SIZE_MAX);
	p->now = 4000;
	pair_write(p, 1, SIZE_MAX);
	p->now = 9000;
	pair_read(p, 0, SIZE_MAX);
	assert_int_equal(p->heard[0].n_probes, 1);
	assert_int_equal(p->heard[0].probe.worker, 1);
	assert_true(p->heard[0].probe.t1 == 1000 && p->heard[0].probe.t2 == 3000 &&
		p->heard[0].probe.t3 == 4000 && p->heard[0].probe.t4 == 9000);
	pair_free(p);
}

static void chunks_follow_the_goodput(void **state)
{
	enum { LEN = 32 << 20 };
	static const struct { uint64_t bytes_per_ms; uint32_t chunk; } cases[] = {
		{ 5000, 16 << 10 }, { 40000, 32 << 10 }, { 70000, 64 << 10 }, { 300000, 256 << 10 }, { 5000000, 1 << 20 } };
	static const struct hd_transfer rows[] = { { 1, 1, LEN } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct stream_pair *p = pair_make(true, false, 1);
		uint8_t *bytes = calloc(1, LEN), *into = calloc(1, LEN);
		enter(p, 1, rows, 1);
		assert_int_equal(hd_stream_post(p->stream[1], 1, into, 0, NULL), HD_OK);
		pair_run(p);
		assert_int_equal(hd_stream_chunk(p->stream[0]), 64 << 10);
		assert_int_equal(send(p, 0, 1, 0, 1, bytes, LEN, 1), HD_OK);
		for (size_t n = 1; n && !p->heard[0].n_sents;) {
			n = pair_write(p, 0, cases[i].bytes_per_ms);
			while (pair_read(p, 1, SIZE_MAX))
				;
			p->now += (int64_t)(n * 1000000 / cases[i].bytes_per_ms);
		}
		CHECK(hd_stream_chunk(p->stream[0]) == cases[i].chunk, "case %zu: %u", i,
			hd_stream_chunk(p->stream[0]));
		free(bytes);
		free(into);
		pair_free(p);
	}
}

/* Each connection has room for 65,536 sends, some 12 MiB: what no send reached was never written, and is
 * not there. */
static void places_that_no_send_took_were_never_written(void **state)
{
	enum { SENDS = 3 };
	static const struct hd_transfer row = { 1, 0, 8 };
	static const struct out_job never;
	static uint8_t bytes[8], into[8];
	struct stream_pair *p = pair_make(false, false, 1);

	(void)state;
	enter(p, 1, &row, 1);
	for (uint64_t step = 0; step < 2 * SENDS; step++) {
		if (step % 2 == 0)
			assert_int_equal(hd_stream_post(p->stream[1], 1, into, p->now, &p->diag[1]), HD_OK);
		assert_int_equal(send(p, 0, 1, 0, step, bytes, sizeof bytes, step), HD_OK);
		pair_run(p);
	}
	assert_int_equal(p->heard[0].n_sents, SENDS);
	const struct hd_stream *s = p->stream[0];
	assert_true(s->fresh_job >= 2 && s->fresh_job <= SENDS + 1);
	for (uint32_t i = 0; i < s->config.streams_cap; i++)
		CHECK((memcmp(&s->jobs[i], &never, sizeof never) != 0) == (i < s->fresh_job),
			"place %u of %u that sends took", i, s->fresh_job);
	pair_free(p);
}

static void nothing_is_allocated_once_the_channel_is_there(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 0, 100000 }, { 2, 1, 10 } };
	struct stream_pair *p = pair_make(true, true, 1);
	uint8_t *bytes = calloc(1, 100000), *into = calloc(1, 100000), small[10];

	(void)state;
	enter(p, 1, rows, 2);
	hd_alloc_arm(0);
	for (uint64_t step = 0; step < 50; step++) {
		assert_int_equal(hd_stream_post(p->stream[1], 1, into, 0, NULL), HD_OK);
		assert_int_equal(hd_stream_post(p->stream[1], 2, small, 0, NULL), HD_OK);
		assert_int_equal(send(p, 0, 1, 0, step, bytes, 100000, 1), HD_OK);
		assert_int_equal(send(p, 0, 2, 0, step, bytes, 10, 1), HD_OK);
		assert_int_equal(hd_stream_tell(p->stream[0], 20, step, bytes, 100, NULL), HD_OK);
		pair_run(p);
	}
	assert_int_equal(p->heard[1].n_arrivals, 100);
	assert_int_equal(hd_alloc_count(), 0);
	free(bytes);
	free(into);
	pair_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_give_a_transfer_the_same_flow),
		cmocka_unit_test(a_more_urgent_transfer_goes_between_the_chunks_of_another),
		cmocka_unit_test(no_more_streams_begin_than_may_be_under_way),
		cmocka_unit_test(a_wait_moves_what_has_begun_to_the_front),
		cmocka_unit_test(a_transfer_without_a_slot_waits_and_holds_up_nothing),
		cmocka_unit_test(no_more_than_four_buffers_of_a_transfer_are_posted),
		cmocka_unit_test(a_promised_slot_without_its_buffer_stops_reading_until_it_is_posted),
		cmocka_unit_test(messages_of_any_length_come_whole_and_in_order),
		cmocka_unit_test(a_grant_serves_one_transfer),
		cmocka_unit_test(a_cancelled_send_passes_its_unused_grant_on),
		cmocka_unit_test(messages_survive_the_turns_of_their_ring),
		cmocka_unit_test(a_full_queue_says_again),
		cmocka_unit_test(a_ping_brings_four_stamps),
		cmocka_unit_test(chunks_follow_the_goodput),
		cmocka_unit_test(places_that_no_send_took_were_never_written),
		cmocka_unit_test(nothing_is_allocated_once_the_channel_is_there),
		cmocka_unit_test(bulk_gets_one_part_in_twenty_while_transfers_go),
		cmocka_unit_test(all_bytes_arrive_once_whatever_the_interleaving),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
