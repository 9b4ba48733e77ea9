/* The rules of what goes out, one by one: order, grants, and how sends end. */
#include "wire/stream.h"

#include "wire/testing_out.h"

/* ---- order ---- */

enum { MANY = 300 };

/* What the sender should do, said without a heap: of those that are left the least (priority, arrival). */
struct waiting { int32_t priority; uint32_t stream; bool over; };

static uint32_t least_of(const struct waiting *w, uint32_t n)
{
	uint32_t best = n;

	for (uint32_t i = 0; i < n; i++)
		if (!w[i].over && (best == n || w[i].priority < w[best].priority))
			best = i;
	return best;
}

/* Begun ones, whose priorities the peer changes, and of which it and we cancel some. */
static void the_most_urgent_goes_first_whatever_changed_meanwhile(void **state)
{
	static struct hd_transfer rows[MANY];
	static struct waiting w[MANY];
	uint32_t left = MANY;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++)
		rows[i] = (struct hd_transfer){ i, 1, LONG };
	for (uint64_t seed = 1; seed <= DRAWS(8); seed++) {
		struct stream_pair *p = alone(rows, MANY);
		p->random += seed * 77777;
		for (uint32_t i = 0; i < MANY; i++) {
			w[i] = (struct waiting){ -(int32_t)i, i + 1, false };
			assert_int_equal(send(p, i, -(int32_t)i, LONG, i), HD_OK);
			write_some(p, SIZE_MAX);
		}
		assert_int_equal(count_out(HD_FRAME_OPEN), MANY);
		left = MANY;
		for (uint32_t k = 0; k < 2 * MANY; k++) {
			uint32_t i = (uint32_t)(pair_random(p) % MANY);
			if (w[i].over)
				continue;
			if (pair_random(p) % 4) {
				w[i].priority = (int32_t)(pair_random(p) % 9) - 4;
				hear_prio(p, w[i].stream, w[i].priority);
				continue;
			}
			w[i].over = true;
			left--;
			if (pair_random(p) & 1)
				hd_stream_cancel(p->stream[0], i);
			else
				hear_cancel(p, HD_CLASS_PLANNED, w[i].stream);
		}
		n_out = 0;
		write_all(p);
		turn(p);
		for (uint32_t k = 0, at = 0; k < n_out; k++) {
			if (out[k].frame.type != HD_FRAME_DATA)
				continue;
			at = least_of(w, MANY);
			CHECK(at < MANY && out[k].frame.stream == w[at].stream, "seed %d: stream %u, not %u",
				(int)seed, out[k].frame.stream, at + 1);
			w[at].over = out[k].frame.flags & HD_FRAME_LAST;
			left -= w[at].over;
		}
		assert_int_equal(left, 0);
		assert_int_equal(p->heard[0].n_sents, MANY);
		pair_free(p);
	}
}

/* Not begun: as many more as there is room for in the heap, and each can be taken out of it. */
static void what_has_not_begun_goes_by_priority_and_arrival(void **state)
{
	static struct hd_transfer rows[MANY];
	static struct waiting w[MANY];

	(void)state;
	for (uint32_t i = 0; i < MANY; i++)
		rows[i] = (struct hd_transfer){ i, 1, 10 };
	for (uint64_t seed = 1; seed <= DRAWS(20); seed++) {
		struct stream_pair *p = alone(rows, MANY);
		p->random += seed * 77777;
		for (uint32_t i = 0; i < MANY; i++) {
			w[i] = (struct waiting){ (int32_t)(pair_random(p) % 9) - 4, 0, false };
			assert_int_equal(send(p, i, w[i].priority, 10, i), HD_OK);
		}
		for (uint32_t k = 0; k < MANY / 2; k++) {
			uint32_t i = (uint32_t)(pair_random(p) % MANY);
			w[i].over = true;
			hd_stream_cancel(p->stream[0], i);
		}
		write_all(p);
		for (uint32_t k = 0, at; k < n_out; k++) {
			if (out[k].frame.type != HD_FRAME_OPEN)
				continue;
			at = least_of(w, MANY);
			CHECK(at < MANY && hd_get32(out[k].payload) == at, "seed %d: transfer %u, not %u",
				(int)seed, hd_get32(out[k].payload), at);
			w[at].over = true;
		}
		assert_int_equal(least_of(w, MANY), MANY);
		assert_int_equal(count_out(HD_FRAME_CANCELLED), 0);       /* of what the peer never heard */
		pair_free(p);
	}
}

/* Rule 7. As many have begun as may be; one that has not is the most urgent, and of the others the most
 * urgent goes. */
static void at_the_limit_the_most_urgent_that_has_begun_goes(void **state)
{
	enum { N = HD_STREAMS_OPEN + 40, CHUNK = 4096, LEN = 5000 };
	static struct hd_transfer rows[N];
	static struct waiting w[N];

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		rows[i] = (struct hd_transfer){ i, 1, LEN };
	struct stream_pair *p = alone(rows, N);
	p->stream[0]->chunk = CHUNK;
	for (uint32_t i = 0; i < HD_STREAMS_OPEN - 1; i++) {      /* a place is kept for messages */
		w[i] = (struct waiting){ -(int32_t)i, i + 1, false };
		assert_int_equal(send(p, i, -(int32_t)i, LEN, i), HD_OK);
		write_some(p, SIZE_MAX);
	}
	assert_int_equal(count_out(HD_FRAME_OPEN), HD_STREAMS_OPEN - 1);
	for (uint32_t i = HD_STREAMS_OPEN - 1; i < N; i++) {
		assert_int_equal(send(p, i, -1, LEN, i), HD_OK);
		for (uint32_t k = 0; k < i; k++)          /* below it any of them may be first */
			if (!w[k].over) {
				w[k].priority = (int32_t)(pair_random(p) % 1000);
				hear_prio(p, w[k].stream, w[k].priority);
			}
		uint32_t best = least_of(w, i);
		forget_out();
		write_some(p, SIZE_MAX);
		CHECK(n_out == 1 && out[0].frame.stream == w[best].stream, "stream %u of priority %d, not %u",
			out[0].frame.stream, w[best].priority,
			w[best].stream);
		w[best].over = true;
		write_some(p, SIZE_MAX);                  /* its place is the new one's */
		assert_true(n_out == 3 && out[1].frame.type == HD_FRAME_OPEN &&
			hd_get32(out[1].payload) == i);
		w[i] = (struct waiting){ -1, i + 1, false };
	}
	pair_free(p);
}

/* ---- ends ---- */

static void an_answer_without_a_byte_is_refused(void **state)
{
	struct stream_pair *p = alone(NULL, 0);

	(void)state;
	assert_int_equal(answer(p, 7, 0, 1), HD_E_INVAL);
	assert_string_equal(p->diag[0].text, "an answer to worker 1 has 0 bytes; say so by a message");
	write_all(p);
	assert_int_equal(n_out, 0);
	assert_int_equal(answer(p, 7, 1, 2), HD_OK);
	write_all(p);
	assert_int_equal(end_of(p, 2), HD_OK);
	assert_int_equal(p->heard[0].n_sents, 1);
	pair_free(p);
}

static void the_last_place_is_taken_and_given_again(void **state)
{
	struct stream_pair *p = pair_of(2, true, false, 1);

	(void)state;
	n_out = 0;
	assert_int_equal(answer(p, 1, 10, 1), HD_OK);
	assert_int_equal(answer(p, 2, 10, 2), HD_OK);
	assert_int_equal(answer(p, 3, 10, 3), HD_E_AGAIN);
	hd_stream_cancel(p->stream[0], 1);
	assert_int_equal(answer(p, 3, 10, 3), HD_E_AGAIN);        /* until its end is reported */
	turn(p);
	assert_int_equal(answer(p, 3, 10, 3), HD_OK);
	assert_int_equal(answer(p, 4, 10, 4), HD_E_AGAIN);
	write_all(p);
	assert_int_equal(end_of(p, 3), HD_OK);
	pair_free(p);
}

/* What is wholly handed out, what has ended, and a place that was freed: cancelled again nothing happens. */
static void cancel_reaches_what_waits_or_is_ready_alone(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 10 }, { 2, 0, 10 }, { 3, 1, 10 } };
	struct stream_pair *p = alone(rows, 3);

	(void)state;
	assert_int_equal(send(p, 1, 0, 10, 1), HD_OK);
	write_all_but_one(p);
	assert_int_equal(p->heard[0].n_sents, 0);
	hd_stream_cancel(p->stream[0], 1);
	turn(p);
	assert_int_equal(p->heard[0].n_sents, 0);
	write_all(p);
	assert_int_equal(end_of(p, 1), HD_OK);
	hd_stream_cancel(p->stream[0], 1);                /* its place is free */
	turn(p);
	assert_int_equal(end_of(p, 1), HD_OK);

	assert_int_equal(send(p, 2, 0, 10, 2), HD_OK);
	assert_int_equal(send(p, 3, 0, 10, 3), HD_OK);
	hd_stream_cancel(p->stream[0], 2);                /* it waits: the one that is ready stays so */
	hd_stream_cancel(p->stream[0], 2);
	turn(p);
	assert_int_equal(end_of(p, 2), HD_E_STALE);
	write_all(p);
	assert_int_equal(end_of(p, 3), HD_OK);
	assert_int_equal(count_out(HD_FRAME_CANCELLED), 0);
	assert_int_equal(count_out(HD_FRAME_OPEN), 2);
	pair_free(p);
}

static void a_cancelled_one_of_several_that_wait_leaves_the_others_in_order(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 0, 10 } };
	struct stream_pair *p = alone(rows, 1);

	(void)state;
	for (uint64_t token = 1; token <= 5; token++)
		assert_int_equal(send(p, 1, 0, 10, token), HD_OK);
	hd_stream_cancel(p->stream[0], 1);
	hd_stream_cancel(p->stream[0], 3);
	hd_stream_cancel(p->stream[0], 5);
	assert_int_equal(send(p, 1, 0, 10, 6), HD_OK);
	write_all(p);
	assert_int_equal(count_out(HD_FRAME_OPEN), 0);    /* still without a grant */
	assert_int_equal(hear_slot(p, 1, 4), HD_CLOSE_NONE);
	write_all(p);
	assert_int_equal(count_out(HD_FRAME_OPEN), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(nth_out(HD_FRAME_OPEN, i)->frame.step, 2 * (i + 1));
	pair_free(p);
}

/* A grant that was not used is there for the next; one that was used is not. Of an answer there never was
 * one. */
static void a_cancel_gives_back_no_more_than_its_own_unused_grant(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, LONG }, { 2, 0, 10 } };
	struct stream_pair *p = alone(rows, 2);

	(void)state;
	assert_int_equal(send(p, 1, 0, LONG, 1), HD_OK);
	hd_stream_cancel(p->stream[0], 1);                /* no job waits for its grant */
	assert_int_equal(send(p, 1, 0, LONG, 2), HD_OK);
	write_some(p, SIZE_MAX);
	assert_int_equal(count_out(HD_FRAME_OPEN), 1);
	hd_stream_cancel(p->stream[0], 2);                /* begun */
	assert_int_equal(send(p, 1, 0, LONG, 3), HD_OK);
	write_all(p);
	assert_int_equal(count_out(HD_FRAME_OPEN), 1);
	assert_int_equal(count_out(HD_FRAME_CANCELLED), 1);
	const struct out *cancelled = nth_out(HD_FRAME_CANCELLED, 0);
	assert_int_equal(cancelled->frame.class, HD_CLASS_PLANNED);
	assert_int_equal(cancelled->frame.stream, 1);
	assert_int_equal(hd_get64(cancelled->payload), HD_CHUNK_FIRST);
	hd_stream_cancel(p->stream[0], 3);
	assert_int_equal(answer(p, 5, 10, 4), HD_OK);
	hd_stream_cancel(p->stream[0], 4);                /* an answer: row 0 gets nothing by it */
	assert_int_equal(send(p, 1, 0, LONG, 5), HD_OK);
	write_all(p);
	assert_int_equal(count_out(HD_FRAME_OPEN), 1);
	turn(p);
	assert_int_equal(p->heard[0].n_sents, 4);
	pair_free(p);
	p = alone(NULL, 0);                               /* nor are rows looked at that are not there */
	assert_int_equal(answer(p, 5, 10, 4), HD_OK);
	hd_stream_cancel(p->stream[0], 4);
	turn(p);
	assert_int_equal(end_of(p, 4), HD_E_STALE);
	assert_int_equal(count_out(HD_FRAME_CANCELLED), 0);
	pair_free(p);
}

/* The bytes of a chunk that is handed out are the transport's until it wrote them: `sent` says when. */
static void a_cancelled_send_keeps_its_buffer_until_its_chunk_is_written(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, LONG }, { 2, 0, 10 } };
	struct stream_pair *p = alone(rows, 2);

	(void)state;
	assert_int_equal(send(p, 2, 0, 10, 2), HD_OK);
	assert_int_equal(send(p, 1, 0, LONG, 1), HD_OK);
	write_all_but_one(p);
	hd_stream_cancel(p->stream[0], 1);
	hd_stream_cancel(p->stream[0], 2);
	turn(p);
	assert_int_equal(end_of(p, 2), HD_E_STALE);
	assert_int_equal(p->heard[0].n_sents, 1);
	turn(p);
	assert_int_equal(p->heard[0].n_sents, 1);
	write_all(p);
	assert_int_equal(end_of(p, 1), HD_E_STALE);
	pair_free(p);
}

static void the_peer_cancels_the_stream_it_names_alone(void **state)
{
	struct stream_pair *p = alone(NULL, 0);

	(void)state;
	assert_int_equal(answer(p, 1, LONG, 1), HD_OK);
	write_some(p, SIZE_MAX);
	assert_int_equal(answer(p, 2, 10, 2), HD_OK);     /* not begun: no stream is its */
	hear_cancel(p, HD_CLASS_BULK, 0);
	hear_cancel(p, HD_CLASS_BULK, 9);
	turn(p);
	assert_int_equal(p->heard[0].n_sents, 0);
	write_all_but_one(p);                             /* both are handed out, and the first is whole */
	hear_cancel(p, HD_CLASS_BULK, 1);
	hear_cancel(p, HD_CLASS_BULK, 2);
	write_all(p);
	turn(p);
	assert_int_equal(end_of(p, 1), HD_OK);
	assert_int_equal(end_of(p, 2), HD_OK);
	hear_cancel(p, HD_CLASS_BULK, 1);                 /* late */
	turn(p);
	assert_int_equal(p->heard[0].n_sents, 2);
	assert_int_equal(count_out(HD_FRAME_CANCELLED), 0);
	assert_int_equal(answer(p, 3, LONG, 3), HD_OK);
	write_some(p, SIZE_MAX);
	hear_cancel(p, HD_CLASS_BULK, 3);
	write_all(p);
	turn(p);
	assert_int_equal(end_of(p, 3), HD_E_STALE);
	assert_int_equal(nth_out(HD_FRAME_CANCELLED, 0)->frame.stream, 3);
	pair_free(p);
}

/* A wait of the peer is about one stream, not about one that has not begun or is over. */
static void the_peer_hurries_the_stream_it_names_alone(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, LONG }, { 2, 1, LONG }, { 3, 1, 10 },
		{ 4, 1, 10 } };
	struct stream_pair *p = alone(rows, 4);

	(void)state;
	assert_int_equal(send(p, 1, 1, LONG, 1), HD_OK);
	write_some(p, SIZE_MAX);
	assert_int_equal(send(p, 2, 0, LONG, 2), HD_OK);
	write_some(p, SIZE_MAX);
	assert_int_equal(send(p, 3, 5, 10, 3), HD_OK);
	assert_int_equal(send(p, 4, 4, 10, 4), HD_OK);
	hear_prio(p, 7, -9);
	hear_prio(p, 1, -1);
	write_all(p);
	static const uint64_t order[] = { 1, 2, 4, 3 };
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(p->heard[0].sents[i].token, order[i]);
	pair_free(p);
}

static enum hd_close hear_prio_of(struct stream_pair *p, uint32_t transfer, uint64_t nth, int32_t priority)
{
	return hear(p, (struct hd_frame){ .type = HD_FRAME_PRIO, .class = HD_CLASS_PLANNED,
		.flags = HD_FRAME_MINE, .epoch = p->stream[0]->epoch, .offset = transfer, .step = nth,
		.priority = priority }, plan.byte);
}

/* The tokens in the order of their ends. */
static void ended(const struct stream_pair *p, const uint64_t *order, uint32_t n)
{
	assert_int_equal(p->heard[0].n_sents, n);
	for (uint32_t i = 0; i < n; i++)
		CHECK(p->heard[0].sents[i].token == order[i], "%u: %d, not %d", i,
			(int)p->heard[0].sents[i].token, (int)order[i]);
}

/* Rule 7: of a transfer that is queued, waits for a grant, has begun meanwhile, is not sent yet, is over. */
static void the_peer_hurries_the_next_of_a_transfer(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 2, LONG }, { 2, 2, 10 }, { 3, 0, 10 }, { 4, 2, 10 } };
	struct stream_pair *p = alone(rows, 4);

	(void)state;
	assert_int_equal(send(p, 1, 1, LONG, 1), HD_OK);
	assert_int_equal(send(p, 1, 1, LONG, 2), HD_OK);
	assert_int_equal(send(p, 2, 2, 10, 3), HD_OK);
	assert_int_equal(send(p, 2, 2, 10, 4), HD_OK);
	assert_int_equal(send(p, 3, 2, 10, 5), HD_OK);
	assert_int_equal(hear_prio_of(p, 2, 1, -1), HD_CLOSE_NONE);       /* queued: the first of two */
	assert_int_equal(hear_prio_of(p, 3, 1, -5), HD_CLOSE_NONE);       /* without a grant */
	assert_int_equal(hear_prio_of(p, 4, 1, -3), HD_CLOSE_NONE);       /* not sent yet */
	write_some(p, SIZE_MAX);
	assert_int_equal(hear_slot(p, 3, 1), HD_CLOSE_NONE);
	assert_int_equal(send(p, 4, 9, 10, 6), HD_OK);
	assert_int_equal(send(p, 4, 5, 10, 7), HD_OK);                    /* the next one is not it */
	write_all(p);
	ended(p, (const uint64_t[]){ 3, 5, 6, 1, 2, 4, 7 }, 7);
	assert_int_equal(hear_prio_of(p, 2, 2, -9), HD_CLOSE_NONE);       /* it is over: no other has it */
	assert_int_equal(hear_slot(p, 1, 2), HD_CLOSE_NONE);
	assert_int_equal(hear_slot(p, 2, 1), HD_CLOSE_NONE);
	assert_int_equal(send(p, 1, 1, LONG, 8), HD_OK);
	write_some(p, SIZE_MAX);
	assert_int_equal(send(p, 1, 0, LONG, 9), HD_OK);
	assert_int_equal(send(p, 2, 1, 10, 10), HD_OK);
	assert_int_equal(hear_prio_of(p, 1, 3, -9), HD_CLOSE_NONE);       /* begun since it was asked for */
	write_all(p);
	ended(p, (const uint64_t[]){ 3, 5, 6, 1, 2, 4, 7, 8, 9, 10 }, 10);
	assert_int_equal(hear_prio_of(p, 2, 5, -9), HD_CLOSE_STREAM);     /* the next is the fourth */
	pair_free(p);

	static const struct { uint32_t stream, transfer; uint64_t nth; uint8_t class; enum hd_close why;
		} bad[] =
		{ { 1, 1, 1, HD_CLASS_PLANNED, HD_CLOSE_FRAME }, { 1, 0, 1, HD_CLASS_PLANNED, HD_CLOSE_FRAME },
		{ 0, 1, 0, HD_CLASS_PLANNED, HD_CLOSE_FRAME }, { 0, 1, 1, HD_CLASS_BULK, HD_CLOSE_FRAME },
		{ 0, 5, 1, HD_CLASS_PLANNED, HD_CLOSE_STREAM } };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		p = alone(rows, 4);
		CHECK(hear(p, (struct hd_frame){ .type = HD_FRAME_PRIO, .class = bad[i].class,
			.flags = HD_FRAME_MINE, .epoch = 1, .stream = bad[i].stream,
			.offset = bad[i].transfer, .step = bad[i].nth }, plan.byte) == bad[i].why, "case %zu",
			i);
		pair_free(p);
	}
}

/* By its owner: what is queued, and what has begun, from its next chunk on. */
static void the_owner_ranks_what_is_queued(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 3 * LONG }, { 2, 1, 10 }, { 3, 1, 10 },
		{ 4, 0, 10 } };
	struct stream_pair *p = alone(rows, 4);
	struct hd_hub_stats stats = { 0 };

	(void)state;
	assert_int_equal(send(p, 1, 1, 3 * LONG, 1), HD_OK);
	assert_int_equal(send(p, 2, 2, 10, 2), HD_OK);
	assert_int_equal(send(p, 3, 3, 10, 3), HD_OK);
	assert_int_equal(send(p, 4, 4, 10, 4), HD_OK);
	write_some(p, SIZE_MAX);
	hd_stream_rank(p->stream[0], 3, 0);
	hd_stream_rank(p->stream[0], 4, -1);              /* without a grant: for when it has one */
	hd_stream_rank(p->stream[0], 1, 5);
	hd_stream_rank(p->stream[0], 9, -9);              /* none of that token */
	assert_int_equal(hear_slot(p, 4, 1), HD_CLOSE_NONE);
	write_all(p);
	ended(p, (const uint64_t[]){ 4, 3, 2, 1 }, 4);
	hd_stream_rank(p->stream[0], 1, -9);              /* over */
	hd_stream_stats(p->stream[0], &stats);
	assert_int_equal(stats.preempted, 1);
	assert_int_equal(stats.inverted, 0);
	pair_free(p);
}

/* However much was wanted since it was written last, what is cancelled is said. */
static void advice_leaves_space_for_what_is_cancelled(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 3 * LONG } };
	struct stream_pair *p = alone(rows, 1);

	(void)state;
	assert_int_equal(send(p, 1, 1, 3 * LONG, 1), HD_OK);
	write_some(p, SIZE_MAX);
	for (uint32_t i = 0; i < HD_STREAMS_OPEN + 10; i++) {
		out_note(p->stream[0], (struct note){ .type = HD_FRAME_PRIO, .class = HD_CLASS_PLANNED,
			.stream = 1 + i });
		out_note(p->stream[0], (struct note){ .type = HD_FRAME_CANCEL, .class = HD_CLASS_BULK,
			.stream = 1 + i, .reason = HD_CANCEL_EPOCH });
	}
	hd_stream_cancel(p->stream[0], 1);
	forget_out();
	write_all(p);
	assert_int_equal(count_out(HD_FRAME_CANCELLED), 1);
	assert_int_equal(end_of(p, 1), HD_E_STALE);
	pair_free(p);
}

/* Its wait and our cancelling cross on the way. */
static void a_stream_that_ended_is_not_hurried_back(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, LONG }, { 2, 1, LONG } };
	struct stream_pair *p = alone(rows, 2);

	(void)state;
	assert_int_equal(send(p, 1, 2, LONG, 1), HD_OK);
	write_some(p, SIZE_MAX);
	assert_int_equal(send(p, 2, 1, LONG, 2), HD_OK);
	write_some(p, SIZE_MAX);
	hear_prio(p, 1, 0);                               /* the second is behind it in the heap */
	hd_stream_cancel(p->stream[0], 2);
	hear_prio(p, 2, -9);
	forget_out();
	write_all(p);
	assert_int_equal(count_out(HD_FRAME_DATA), 1);
	assert_int_equal(nth_out(HD_FRAME_DATA, 0)->frame.stream, 1);
	assert_int_equal(end_of(p, 1), HD_OK);
	assert_int_equal(end_of(p, 2), HD_E_STALE);
	pair_free(p);
}

/* Rule 6: without more words. What has no epoch goes on, what is handed out whole has gone. */
static void an_epoch_ends_the_planned_that_are_not_wholly_handed_out(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 10 }, { 2, 1, LONG }, { 3, 0, 10 }, { 4, 1, 10 } };
	struct stream_pair *p = alone(rows, 4);

	(void)state;
	assert_int_equal(send(p, 4, 0, 10, 9), HD_OK);
	write_all(p);
	assert_int_equal(send(p, 1, 0, 10, 1), HD_OK);
	assert_int_equal(send(p, 2, 1, LONG, 2), HD_OK);
	assert_int_equal(send(p, 3, 0, 10, 3), HD_OK);
	assert_int_equal(answer(p, 5, 3 * LONG, 4), HD_OK);
	/* the first is handed out whole, the second in part */
	write_some(p, 1);
	hd_stream_epoch(p->stream[0], 2, plan);
	assert_int_equal(send(p, 1, 0, 10, 5), HD_E_INVAL);       /* no channel yet */
	turn(p);
	assert_int_equal(end_of(p, 3), HD_E_STALE);
	assert_int_equal(p->heard[0].n_sents, 2);
	assert_int_equal(hd_stream_channel(p->stream[0], rows, 4, rows, 4, NULL), HD_OK);
	write_all(p);
	turn(p);
	assert_int_equal(end_of(p, 1), HD_OK);
	assert_int_equal(end_of(p, 2), HD_E_STALE);
	assert_int_equal(end_of(p, 4), HD_OK);
	assert_int_equal(end_of(p, 9), HD_OK);
	assert_int_equal(count_out(HD_FRAME_CANCELLED), 0);
	assert_int_equal(send(p, 1, 0, 10, 6), HD_OK);
	write_all(p);
	assert_int_equal(p->heard[0].n_sents, 5);         /* its grants come with the peer's EPOCH */
	hear_epoch(p, 2);
	write_all(p);
	assert_int_equal(end_of(p, 6), HD_OK);
	pair_free(p);
}

/* In each state that a send can be in. */
static void a_lost_connection_ends_each_send_once_as_it_stood(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 10 }, { 2, 1, LONG }, { 3, 0, 10 }, { 4, 1, 10 },
		{ 5, 1, 10 }, { 6, 0, 10 } };
	struct stream_pair *p = alone(rows, 6);

	(void)state;
	assert_int_equal(send(p, 1, 0, 10, 1), HD_OK);
	write_all(p);
	assert_int_equal(send(p, 4, 0, 10, 2), HD_OK);
	assert_int_equal(send(p, 2, 1, LONG, 3), HD_OK);
	/* the small one is handed out whole, the long one in part */
	write_some(p, 1);
	hd_stream_cancel(p->stream[0], 3);
	assert_int_equal(send(p, 3, 0, 10, 4), HD_OK);
	hd_stream_cancel(p->stream[0], 4);
	assert_int_equal(send(p, 5, 0, 10, 5), HD_OK);
	assert_int_equal(send(p, 6, 0, 10, 6), HD_OK);
	hd_stream_lost(p->stream[0]);
	static const enum hd_err ends[] = { HD_OK, HD_E_PEERLOST, HD_E_STALE, HD_E_STALE, HD_E_PEERLOST,
		HD_E_PEERLOST };
	for (uint64_t token = 1; token <= 6; token++)
		CHECK(end_of(p, token) == ends[token - 1], "token %d: %d", (int)token, (int)end_of(p, token));
	hd_stream_lost(p->stream[0]);
	assert_int_equal(p->heard[0].n_sents, 6);
	assert_int_equal(send(p, 5, 0, 10, 7), HD_E_PEERLOST);
	assert_int_equal(answer(p, 5, 10, 7), HD_E_PEERLOST);
	assert_int_equal(tell(p, 20, 1), HD_E_PEERLOST);
	pair_free(p);
}

/* ---- what the peer grants ---- */

static void slots_are_granted_to_a_row_up_to_four(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 10 }, { 2, 0, 10 } };

	(void)state;
	for (uint32_t count = HD_GRANTS_MAX - 1; count <= HD_GRANTS_MAX; count++) {
		struct stream_pair *p = alone(rows, 2);
		enum hd_close why = hear_slot(p, 1, count);
		CHECK(why == (count < HD_GRANTS_MAX ? HD_CLOSE_NONE : HD_CLOSE_CREDIT), "%u more grants: %d",
			count, (int)why);
		for (uint64_t token = 1; token <= 6; token++)
			assert_int_equal(send(p, 1, 0, 10, token), HD_OK);
		write_all(p);
		assert_int_equal(count_out(HD_FRAME_OPEN), count < HD_GRANTS_MAX ? HD_GRANTS_MAX : 1);
		pair_free(p);
	}
	struct stream_pair *p = alone(rows, 2);
	assert_int_equal(hear_slot(p, 3, 1), HD_CLOSE_STREAM);
	pair_free(p);
}

static void credit_is_spent_and_comes_back_up_to_its_window(void **state)
{
	static const struct { uint8_t class; uint64_t window;
		} cases[] = { { HD_CLASS_CONTROL, HD_CREDIT_CONTROL }, { HD_CLASS_BULK, HD_CREDIT_BULK } };

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (int over = 0; over < 2; over++) {
			struct stream_pair *p = alone(NULL, 0);
			uint64_t went = 0;
			assert_int_equal(cases[i].class == HD_CLASS_CONTROL ? tell(p, 20, 1000) : answer(p, 1,
				1000, 1), HD_OK);
			write_all(p);
			assert_int_equal(cases[i].class == HD_CLASS_CONTROL ? tell(p, 20, HD_TELL_MAX) :
				answer(p, 1, sizeof bytes, 1), HD_OK);
			assert_int_equal(hear_credit(p, cases[i].class, 1000 + (unsigned)over),
				over ? HD_CLOSE_CREDIT : HD_CLOSE_NONE);
			write_all(p);
			for (uint32_t k = 0; k < n_out; k++)
				went += out[k].frame.type == HD_FRAME_DATA ? out[k].frame.len : 0;
			CHECK(went == cases[i].window + (over ? 0 : 1000), "class %u, %d over: %llu bytes",
				cases[i].class, over, (unsigned long long)went);
			pair_free(p);
		}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_most_urgent_goes_first_whatever_changed_meanwhile),
		cmocka_unit_test(what_has_not_begun_goes_by_priority_and_arrival),
		cmocka_unit_test(at_the_limit_the_most_urgent_that_has_begun_goes),
		cmocka_unit_test(an_answer_without_a_byte_is_refused),
		cmocka_unit_test(the_last_place_is_taken_and_given_again),
		cmocka_unit_test(cancel_reaches_what_waits_or_is_ready_alone),
		cmocka_unit_test(a_cancelled_one_of_several_that_wait_leaves_the_others_in_order),
		cmocka_unit_test(a_cancel_gives_back_no_more_than_its_own_unused_grant),
		cmocka_unit_test(a_cancelled_send_keeps_its_buffer_until_its_chunk_is_written),
		cmocka_unit_test(the_peer_cancels_the_stream_it_names_alone),
		cmocka_unit_test(the_peer_hurries_the_stream_it_names_alone),
		cmocka_unit_test(the_peer_hurries_the_next_of_a_transfer),
		cmocka_unit_test(the_owner_ranks_what_is_queued),
		cmocka_unit_test(advice_leaves_space_for_what_is_cancelled),
		cmocka_unit_test(a_stream_that_ended_is_not_hurried_back),
		cmocka_unit_test(an_epoch_ends_the_planned_that_are_not_wholly_handed_out),
		cmocka_unit_test(a_lost_connection_ends_each_send_once_as_it_stood),
		cmocka_unit_test(slots_are_granted_to_a_row_up_to_four),
		cmocka_unit_test(credit_is_spent_and_comes_back_up_to_its_window),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
