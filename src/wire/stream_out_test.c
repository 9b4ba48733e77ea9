/* The rules of what goes out, one by one: messages, the good-bye, frames, chunks and turns. */
#include "wire/stream.h"

#include "wire/testing_out.h"

/* ---- control ---- */

static void an_empty_message_needs_no_credit_and_no_data(void **state)
{
	struct stream_pair *p = alone(NULL, 0);

	(void)state;
	assert_int_equal(tell(p, 20, HD_CREDIT_CONTROL), HD_OK);
	write_all(p);
	forget_out();
	assert_int_equal(tell(p, 21, 0), HD_OK);
	write_all(p);
	assert_int_equal(n_out, 1);
	assert_int_equal(out[0].frame.type, HD_FRAME_OPEN);
	assert_int_equal(tell(p, 22, 1), HD_OK);
	write_all(p);
	assert_int_equal(n_out, 1);
	assert_int_equal(hear_credit(p, HD_CLASS_CONTROL, 1), HD_CLOSE_NONE);
	write_all(p);
	assert_int_equal(n_out, 3);
	assert_int_equal(out[2].frame.flags, HD_FRAME_LAST);
	pair_free(p);
}

/* The ring holds what fits and says AGAIN of what does not, wherever in it the oldest lies. */
static void told_messages_fill_their_ring_whole(void **state)
{
	enum { LEN = 100000 - sizeof(struct ring_msg), N = TELL_RING / 100000 };
	struct stream_pair *p = alone(NULL, 0);
	struct hd_stream *s = p->stream[0];
	uint32_t queued = 0;

	(void)state;
	for (uint32_t round = 0; round < 100; round++) {
		while (!tell(p, 100 + queued % 50000, LEN))
			queued++;
		CHECK(s->n_ring == N, "round %u: %u messages are there", round, s->n_ring);
		for (uint32_t target = N - 1 - round % 3; s->n_ring > target; forget_out())
			if (!write_some(p, round % 2 ? SIZE_MAX : 30000))
				assert_int_equal(hear_credit(p, HD_CLASS_CONTROL,
					HD_CREDIT_CONTROL - s->credit[HD_CLASS_CONTROL]), HD_CLOSE_NONE);
	}
	pair_free(p);
}

static void ids_of_the_room_and_messages_too_long_are_refused(void **state)
{
	struct stream_pair *p = alone(NULL, 0);

	(void)state;
	assert_int_equal(tell(p, HD_TELL_FIRST_ID - 1, 1), HD_E_INVAL);
	assert_int_equal(hd_stream_tell(p->stream[0], HD_TELL_FIRST_ID, 0, bytes, HD_TELL_MAX + 1, NULL),
		HD_E_INVAL);
	assert_int_equal(tell(p, HD_TELL_FIRST_ID, HD_TELL_MAX), HD_OK);
	assert_int_equal(p->stream[0]->n_ring, 1);
	pair_free(p);
}

/* ---- good-bye ---- */

static void a_good_bye_closes_the_door_at_once_and_is_said_once(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 10 } };

	(void)state;
	for (int written = 0; written < 2; written++) {
		struct stream_pair *p = alone(rows, 1);
		if (!written)
			assert_int_equal(tell(p, 20, 1), HD_OK);  /* it waits for this one */
		hd_stream_bye(p->stream[0], HD_CLOSE_DONE, "the first");
		if (written) {
			write_all_but_one(p);
			assert_false(hd_stream_said_bye(p->stream[0]));
			write_all(p);
			assert_true(hd_stream_said_bye(p->stream[0]));
		}
		hd_stream_bye(p->stream[0], HD_CLOSE_PLAN, "the second");
		assert_int_equal(send(p, 1, 0, 10, 1), HD_E_PEERLOST);
		assert_int_equal(answer(p, 1, 10, 1), HD_E_PEERLOST);
		assert_int_equal(tell(p, 20, 1), HD_E_PEERLOST);
		hd_stream_ping(p->stream[0]);
		if (written)
			assert_false(hd_stream_has_out(p->stream[0]));    /* nothing goes after it */
		write_all(p);
		assert_int_equal(count_out(HD_FRAME_BYE), 1);
		assert_int_equal(count_out(HD_FRAME_PING), !written);
		assert_int_equal(out[n_out - 1].frame.type, HD_FRAME_BYE);
		assert_int_equal(hd_get32(out[n_out - 1].payload), HD_CLOSE_DONE);
		assert_int_equal(out[n_out - 1].frame.len, 4 + 9);
		assert_memory_equal(out[n_out - 1].payload + 4, "the first", 9);
		assert_true(hd_stream_said_bye(p->stream[0]));
		pair_free(p);
	}
}

/* ---- which epoch ---- */

/* Rule 5: of the decided epoch once the peer named it; never of an older one than ours, nor of one that
 * is not decided here. */
static void bulk_goes_as_of_the_epoch_that_both_know(void **state)
{
	static const struct { uint32_t ours, decided, named, bulk; } cases[] = {
		{ 2, 2, 1, 2 }, { 2, 2, 2, 2 }, { 2, 3, 2, 2 }, { 2, 3, 3, 3 }, { 2, 4, 3, 3 }, { 2, 2, 3, 2 }, { 2, 3, 4, 2 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct stream_pair *p = alone(NULL, 0);
		hd_stream_epoch(p->stream[0], 1, plan);
		hd_stream_epoch(p->stream[0], cases[i].ours, plan);
		hd_stream_decided(p->stream[0], cases[i].decided);
		hear(p, (struct hd_frame){ .type = HD_FRAME_PING, .epoch = cases[i].named, .len = 8 }, bytes);
		p->stream[0]->heard_epoch = cases[i].named;
		p->stream[0]->pong_due = false;
		assert_int_equal(answer(p, 1, 10, 1), HD_OK);
		assert_int_equal(tell(p, HD_TELL_ASKS, 10), HD_OK);
		assert_int_equal(tell(p, HD_TELL_ASKS - 1, 10), HD_OK);
		write_all(p);
		assert_int_equal(n_out, 6);               /* messages first */
		for (uint32_t k = 0; k < 6; k++)
			CHECK(out[k].frame.epoch == (k == 2 || k == 3 ? cases[i].ours : cases[i].bulk),
				"case %zu, frame %u: epoch %u", i, k,
				out[k].frame.epoch);
		pair_free(p);
	}
}

/* ---- frames ---- */

static void a_checksum_is_there_where_it_is_agreed_and_there_are_bytes(void **state)
{
	(void)state;
	for (int crc = 0; crc < 2; crc++) {
		struct stream_pair *p = pair_of(4, true, crc, 1);
		n_out = 0;
		hd_stream_ping(p->stream[0]);
		assert_true(out_note(p->stream[0], (struct note){ .type = HD_FRAME_PRIO,
			.class = HD_CLASS_PLANNED, .stream = 3, .priority = -2 }));
		assert_int_equal(tell(p, 20, 10), HD_OK);
		write_all(p);
		assert_int_equal(n_out, 4);
		for (uint32_t i = 0; i < n_out; i++)
			CHECK(!!(out[i].frame.flags & HD_FRAME_CRC) == (crc && out[i].frame.len),
				"frame %u: flags %x", i, out[i].frame.flags);
		CHECK(out[3].frame.payload_crc == (crc ? hd_crc32c(0, bytes, 10) : 0), "checksum %x",
			out[3].frame.payload_crc);
		pair_free(p);
	}
}

static void small_frames_say_what_they_were_asked_for(void **state)
{
	struct stream_pair *p = alone(NULL, 0);
	struct hd_stream *s = p->stream[0];
	uint8_t t1[hd_ping_len];

	(void)state;
	hd_put64(t1, 55);
	p->now = 1000;
	hear(p, (struct hd_frame){ .type = HD_FRAME_PING, .len = hd_ping_len }, t1);
	p->now = 3000;
	hd_stream_ping(s);
	hd_stream_ping(s);
	assert_true(out_note(s, (struct note){ .type = HD_FRAME_CANCEL, .class = HD_CLASS_BULK,
		.stream = 4, .reason = HD_CANCEL_NOT_NEEDED }));
	assert_true(out_note(s, (struct note){ .type = HD_FRAME_CANCELLED, .class = HD_CLASS_BULK,
		.stream = 5, .sent = 77 }));
	assert_true(out_note(s, (struct note){ .type = HD_FRAME_PRIO, .class = HD_CLASS_PLANNED, .stream = 6,
		.priority = -2 }));
	write_all(p);
	static const struct { enum hd_frame_type type; uint32_t flags, len;
		} want[] = { { HD_FRAME_PONG, 0, hd_pong_len }, { HD_FRAME_PING, 0, hd_ping_len },
		{ HD_FRAME_CANCEL, HD_FRAME_MINE, hd_cancel_len }, { HD_FRAME_CANCELLED, 0, hd_cancelled_len }, { HD_FRAME_PRIO, HD_FRAME_MINE, 0 } };
	assert_int_equal(n_out, 5);
	for (uint32_t i = 0; i < 5; i++)
		CHECK(out[i].frame.type == want[i].type && out[i].frame.flags == want[i].flags &&
			out[i].frame.len == want[i].len, "frame %u: %s", i,
			hd_frame_name(out[i].frame.type));
	assert_true(hd_get64(out[0].payload) == 55 && hd_get64(out[0].payload + 8) == 1000 &&
		hd_get64(out[0].payload + 16) == 3000);
	assert_int_equal(hd_get64(out[1].payload), 3000);
	assert_int_equal(hd_get32(out[2].payload), HD_CANCEL_NOT_NEEDED);
	assert_int_equal(hd_get64(out[3].payload), 77);
	assert_int_equal(out[4].frame.priority, -2);
	pair_free(p);
}

static void notes_go_in_order_and_one_too_many_is_refused(void **state)
{
	struct stream_pair *p = alone(NULL, 0);

	(void)state;
	for (uint32_t round = 0, next = 1; round < 2; round++) {
		for (uint32_t i = 0; i < HD_STREAMS_OPEN; i++)
			assert_true(out_note(p->stream[0], (struct note){ .type = HD_FRAME_PRIO,
				.class = HD_CLASS_PLANNED, .stream = next + i }));
		assert_false(out_note(p->stream[0], (struct note){ .type = HD_FRAME_PRIO,
			.class = HD_CLASS_PLANNED, .stream = 9999 }));
		assert_true(out_note(p->stream[0], (struct note){ .type = HD_FRAME_CANCELLED,
			.class = HD_CLASS_PLANNED, .stream = next + HD_STREAMS_OPEN }));
		forget_out();
		write_all(p);
		assert_int_equal(n_out, HD_STREAMS_OPEN + 1);
		for (uint32_t i = 0; i < n_out; i++, next++)
			assert_int_equal(out[i].frame.stream, next);
		assert_true(out_note(p->stream[0], (struct note){ .type = HD_FRAME_PRIO,
			.class = HD_CLASS_PLANNED, .stream = next++ }));
		/* so that the second round begins elsewhere in the ring */
		write_all(p);
	}
	pair_free(p);
}

/* A stream of `class` that is one frame of `len` bytes comes in whole. */
static void hear_stream(struct stream_pair *p, uint8_t class, uint32_t stream, struct hd_open_payload open)
{
	uint8_t head[HD_FRAME_HEADER], payload[hd_open_len];

	hd_open_put(&open, payload);
	assert_int_equal(hear(p, (struct hd_frame){ .type = HD_FRAME_OPEN, .class = class,
		.epoch = p->stream[0]->epoch, .stream = stream,
		.len = hd_open_len }, payload), HD_CLOSE_NONE);
	hd_frame_put(&(struct hd_frame){ .type = HD_FRAME_DATA, .class = class, .flags = HD_FRAME_LAST,
		.epoch = p->stream[0]->epoch, .stream = stream,
		.len = (uint32_t)open.total }, head);
	assert_int_equal(pair_feed(p, 0, head, sizeof head), HD_CLOSE_NONE);
	assert_int_equal(pair_feed(p, 0, bytes, open.total), HD_CLOSE_NONE);
}

/* Each reason alone; write_some() compares what it says with what it names. */
static void it_says_that_something_goes_if_and_only_if_it_does(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 0, 10 }, { 2, 1, 10 } };
	static uint8_t into[1 << 20];
	struct stream_pair *p = alone(NULL, 0);
	struct hd_stream *s = p->stream[0];

	(void)state;
	assert_int_equal(write_some(p, SIZE_MAX), 0);
	hd_stream_ping(s);
	write_all(p);
	hear(p, (struct hd_frame){ .type = HD_FRAME_PING, .len = hd_ping_len }, bytes);
	write_all(p);
	hear_stream(p, HD_CLASS_CONTROL, 1, (struct hd_open_payload){ HD_TRANSFER_NONE, HD_KIND_CONTROL,
		HD_CREDIT_CONTROL / 4 - 1, 20, 0 });
	assert_int_equal(write_some(p, SIZE_MAX), 0);     /* less than a quarter is not given back yet */
	hear_stream(p, HD_CLASS_CONTROL, 2, (struct hd_open_payload){ HD_TRANSFER_NONE, HD_KIND_CONTROL, 1,
		20, 0 });
	write_all(p);
	assert_int_equal(hd_stream_expect(s, 8, into, sizeof into, 0, NULL), HD_OK);
	hear_stream(p, HD_CLASS_BULK, 3, (struct hd_open_payload){ HD_TRANSFER_NONE, HD_KIND_BULK,
		HD_CREDIT_BULK / 4, 0, 8 });
	write_all(p);
	assert_int_equal(out[3].frame.class, HD_CLASS_BULK);
	assert_int_equal(hd_get64(out[3].payload), HD_CREDIT_BULK / 4);
	assert_int_equal(out[2].frame.class, HD_CLASS_CONTROL);
	assert_int_equal(hd_get64(out[2].payload), HD_CREDIT_CONTROL / 4);
	assert_int_equal(n_out, 4);
	hd_stream_epoch(s, 1, plan);
	assert_int_equal(write_some(p, SIZE_MAX), 0);     /* with its channel */
	assert_int_equal(hd_stream_channel(s, rows, 2, rows, 2, NULL), HD_OK);
	write_all(p);
	assert_int_equal(n_out, 5);
	assert_int_equal(hd_stream_post(s, 1, into, 0, NULL), HD_OK);
	assert_int_equal(write_some(p, SIZE_MAX), 0);     /* a grant that the peer could not place yet */
	hear_epoch(p, 1);
	write_all(p);
	assert_int_equal(out[5].frame.type, HD_FRAME_GRANT);
	assert_int_equal(send(p, 1, 0, 10, 1), HD_OK);
	assert_int_equal(write_some(p, SIZE_MAX), 0);     /* without a grant */
	assert_int_equal(send(p, 2, 0, 10, 2), HD_OK);
	write_all(p);
	assert_int_equal(answer(p, 1, sizeof bytes, 3), HD_OK);
	write_all(p);
	assert_int_equal(answer(p, 2, 1, 4), HD_OK);
	assert_int_equal(write_some(p, SIZE_MAX), 0);     /* the bulk credit is spent */
	assert_int_equal(tell(p, 20, HD_CREDIT_CONTROL + 1), HD_OK);
	write_all(p);
	hd_stream_bye(s, HD_CLOSE_DONE, "");
	/* so is the other; the good-bye waits for the message */
	assert_int_equal(write_some(p, SIZE_MAX), 0);
	assert_int_equal(hear_credit(p, HD_CLASS_BULK, 1), HD_CLOSE_NONE);
	write_all(p);
	assert_int_equal(end_of(p, 4), HD_OK);
	assert_true(out_note(s, (struct note){ .type = HD_FRAME_PRIO, .class = HD_CLASS_PLANNED,
		.stream = 1 }));
	write_all(p);
	assert_int_equal(hear_credit(p, HD_CLASS_CONTROL, 1), HD_CLOSE_NONE);
	write_all(p);
	assert_int_equal(out[n_out - 1].frame.type, HD_FRAME_BYE);
	assert_int_equal(hd_stream_post(s, 1, into, 0, NULL), HD_OK);
	hd_stream_ping(s);
	assert_int_equal(write_some(p, SIZE_MAX), 0);     /* nothing goes after it */
	pair_free(p);
}

/* The good-bye is the last word alone, too. */
static void a_good_bye_is_something_that_goes(void **state)
{
	struct stream_pair *p = alone(NULL, 0);

	(void)state;
	hd_stream_bye(p->stream[0], HD_CLOSE_DONE, "");
	write_all(p);
	assert_int_equal(n_out, 1);
	assert_int_equal(out[0].frame.len, 4);
	pair_free(p);
}

/* ---- rules 2, 3, 7: chunks and turns ---- */

static void what_is_handed_out_at_once_is_filled_up_to_a_chunk(void **state)
{
	static const struct { uint64_t first, second, goes; } cases[] = {
		{ HD_CHUNK_FIRST - 1000, 500, 500 },              /* whole, however little room there is */
		{ HD_CHUNK_FIRST - 1000, 1000, 1000 },
		{ HD_CHUNK_FIRST - 1000, 1001, 0 },               /* not cut for so little */
		{ HD_CHUNK_FIRST - 4095, 10000, 0 },
		{ HD_CHUNK_FIRST - 4096, 10000, 4096 },
		{ HD_CHUNK_FIRST - 20000, 30000, 20000 },
		{ HD_CHUNK_FIRST, 10, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct stream_pair *p = alone(NULL, 0);
		uint64_t went = 0;
		assert_int_equal(answer(p, 1, cases[i].first, 1), HD_OK);
		assert_int_equal(answer(p, 2, cases[i].second, 2), HD_OK);
		write_some(p, SIZE_MAX);
		for (uint32_t k = 0; k < n_out; k++)
			went += out[k].frame.type == HD_FRAME_DATA ? out[k].frame.len : 0;
		CHECK(went == cases[i].first + cases[i].goes, "case %zu: %llu bytes", i,
			(unsigned long long)went);
		pair_free(p);
	}
}

/* A message queued while a chunk is on its way: it goes after that, and begins once. */
static void what_is_told_meanwhile_goes_after_the_chunk(void **state)
{
	struct stream_pair *p = alone(NULL, 0);

	(void)state;
	assert_int_equal(answer(p, 1, LONG, 1), HD_OK);
	write_some(p, 1);
	assert_int_equal(tell(p, 20, 10), HD_OK);
	write_some(p, 1);
	write_all(p);
	assert_int_equal(count_out(HD_FRAME_OPEN), 2);
	assert_int_equal(n_out, 5);
	assert_int_equal(out[2].frame.class, HD_CLASS_CONTROL);   /* before the rest of the answer */
	assert_int_equal(out[3].frame.class, HD_CLASS_CONTROL);
	assert_int_equal(end_of(p, 1), HD_OK);
	pair_free(p);
}

/* Chunks of transfers that went before the first of an answer. */
static uint32_t planned_before_bulk(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_out && out[i].frame.class != HD_CLASS_BULK; i++)
		n += out[i].frame.type == HD_FRAME_DATA;
	return n;
}

static void an_answer_waits_for_nineteen_chunks_and_owes_for_none_of_its_own(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, sizeof bytes },
		{ 2, 1, HD_AGE_SHARE * HD_CHUNK_FIRST } };
	struct hd_hub_stats stats = { 0 };
	struct stream_pair *p = alone(rows, 2);

	(void)state;
	assert_int_equal(answer(p, 1, sizeof bytes / 2, 1), HD_OK);
	for (uint32_t i = 0; i < 25; i++)
		/* alone: no stream waits for it, and it waits for none */
		write_some(p, SIZE_MAX);
	assert_int_equal(send(p, 1, 0, sizeof bytes, 2), HD_OK);
	forget_out();
	for (uint32_t i = 0; i < 2 * HD_AGE_SHARE; i++)
		write_some(p, SIZE_MAX);
	assert_int_equal(planned_before_bulk(), HD_AGE_SHARE);
	hd_stream_stats(p->stream[0], &stats);
	assert_int_equal(stats.aged, 1);
	pair_free(p);

	/* its turn has come, and nothing is there to wait for */
	p = alone(rows, 2);
	stats.aged = 0;
	assert_int_equal(send(p, 2, 0, HD_AGE_SHARE * HD_CHUNK_FIRST, 1), HD_OK);
	assert_int_equal(answer(p, 1, LONG, 2), HD_OK);
	write_all(p);
	assert_int_equal(planned_before_bulk(), HD_AGE_SHARE);
	hd_stream_stats(p->stream[0], &stats);
	assert_int_equal(stats.aged, 0);
	pair_free(p);

	/* its turn has come, and it is cancelled: the transfer goes on */
	p = alone(rows, 2);
	assert_int_equal(send(p, 1, 0, sizeof bytes, 1), HD_OK);
	assert_int_equal(answer(p, 1, LONG, 2), HD_OK);
	for (uint32_t i = 0; i < HD_AGE_SHARE; i++)
		write_some(p, SIZE_MAX);
	hd_stream_cancel(p->stream[0], 2);
	write_all(p);
	assert_int_equal(end_of(p, 1), HD_OK);
	/* what another let go first is not owed to this one */
	assert_int_equal(answer(p, 3, LONG, 3), HD_OK);
	assert_int_equal(send(p, 2, 0, HD_AGE_SHARE * HD_CHUNK_FIRST, 4), HD_OK);
	forget_out();
	write_all(p);
	assert_int_equal(planned_before_bulk(), HD_AGE_SHARE);
	pair_free(p);
}

/* Answers of many lengths behind transfers that never end: after any 20 chunks' worth one byte in twenty was
 * theirs, less the chunk that is not earned yet. */
static void answers_get_one_byte_in_twenty(void **state)
{
	static const struct hd_transfer rows[] = { { 1, HD_GRANTS_MAX, sizeof bytes } };
	static const uint64_t lens[] = { 1, 5000, 70000, 65536, 200000, 12345 };
	struct stream_pair *p = alone(rows, 1);
	uint64_t planned = 0, bulk = 0, token = 0;

	(void)state;
	for (uint32_t i = 0; i < HD_GRANTS_MAX; i++)
		assert_int_equal(send(p, 1, 0, sizeof bytes, ++token), HD_OK);
	for (uint32_t i = 0; i < 60; i++)
		assert_int_equal(answer(p, 1 + i, lens[i % 6], ++token), HD_OK);
	while (planned < HD_GRANTS_MAX * sizeof bytes - 4 * HD_CHUNK_FIRST) {
		forget_out();
		write_some(p, SIZE_MAX);
		for (uint32_t i = 0; i < n_out; i++)
			if (out[i].frame.type == HD_FRAME_DATA)
				*(out[i].frame.class == HD_CLASS_BULK ? &bulk : &planned) += out[i].frame.len;
		CHECK(bulk * HD_AGE_SHARE <= planned && planned < bulk * HD_AGE_SHARE +
			(HD_AGE_SHARE + 1) * HD_CHUNK_FIRST, "%llu of bulk, %llu planned",
			(unsigned long long)bulk, (unsigned long long)planned);
	}
	pair_free(p);
}

static void a_chunk_beside_its_own_stream_alone_is_a_preemption(void **state)
{
	static const struct hd_transfer rows[] = { { 1, 1, 3 * LONG }, { 2, 1, 10 } };
	struct stream_pair *p = alone(rows, 2);

	(void)state;
	assert_int_equal(send(p, 1, 5, 3 * LONG, 1), HD_OK);
	write_some(p, SIZE_MAX);
	write_some(p, SIZE_MAX);
	assert_int_equal(send(p, 2, 1, 10, 2), HD_OK);
	write_all(p);
	assert_int_equal(p->heard[0].sents[0].preempted, 0);
	assert_int_equal(p->heard[0].sents[0].token, 2);
	assert_int_equal(p->heard[0].sents[1].preempted, 1);
	pair_free(p);
}

static void a_connection_whose_numbers_are_used_up_is_closed(void **state)
{
	struct hd_vec vec[HD_STREAM_VECS];
	struct stream_pair *p = alone(NULL, 0);
	struct hd_stream *s = p->stream[0];

	(void)state;
	s->last_stream = UINT32_MAX - 1;
	assert_int_equal(answer(p, 1, 10, 1), HD_OK);
	write_some(p, SIZE_MAX);
	assert_int_equal(end_of(p, 1), HD_OK);            /* the last number served */
	assert_int_equal(answer(p, 2, 10, 2), HD_OK);
	assert_int_equal(hd_stream_out(s, p->now, vec), 0);
	assert_true(hd_stream_is_due(s));
	assert_int_equal(hd_stream_turn(s, p->now, NULL), HD_CLOSE_WORN);
	pair_free(p);
}

/* Handed out, then `ns` later written. */
static void write_in(struct stream_pair *p, int64_t ns)
{
	struct hd_vec vec[HD_STREAM_VECS];

	(void)!hd_stream_out(p->stream[0], p->now, vec);
	p->now += ns;
	write_some(p, SIZE_MAX);
}

/* Rule 2. */
static void goodput_is_of_enough_bytes_over_enough_time_and_of_no_idle_time(void **state)
{
	enum { MS = 1000000 };
	struct stream_pair *p = alone(NULL, 0);

	(void)state;
	assert_int_equal(answer(p, 1, sizeof bytes / 2, 1), HD_OK);
	write_in(p, MS / 10);
	write_in(p, MS / 10);                             /* too short a time */
	assert_int_equal(hd_stream_chunk(p->stream[0]), HD_CHUNK_FIRST);
	pair_free(p);

	p = alone(NULL, 0);
	assert_int_equal(answer(p, 1, 1000, 1), HD_OK);
	write_in(p, 10 * MS);                             /* too few bytes */
	assert_int_equal(hd_stream_chunk(p->stream[0]), HD_CHUNK_FIRST);
	write_all(p);
	p->now += 1000 * MS;
	write_all(p);
	assert_int_equal(answer(p, 2, sizeof bytes / 2, 2), HD_OK);
	write_in(p, 3 * MS / 2);
	assert_int_equal(hd_stream_chunk(p->stream[0]), HD_CHUNK_FIRST);
	write_in(p, 3 * MS / 2);                          /* 128 KiB in 3 ms, the pause not among them */
	assert_int_equal(hd_stream_chunk(p->stream[0]), HD_CHUNK_FIRST / 2);
	write_in(p, MS);
	write_in(p, MS);                                  /* weighted: not at once */
	assert_int_equal(hd_stream_chunk(p->stream[0]), HD_CHUNK_FIRST / 2);
	pair_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_message_needs_no_credit_and_no_data),
		cmocka_unit_test(told_messages_fill_their_ring_whole),
		cmocka_unit_test(ids_of_the_room_and_messages_too_long_are_refused),
		cmocka_unit_test(a_good_bye_closes_the_door_at_once_and_is_said_once),
		cmocka_unit_test(bulk_goes_as_of_the_epoch_that_both_know),
		cmocka_unit_test(a_checksum_is_there_where_it_is_agreed_and_there_are_bytes),
		cmocka_unit_test(small_frames_say_what_they_were_asked_for),
		cmocka_unit_test(notes_go_in_order_and_one_too_many_is_refused),
		cmocka_unit_test(it_says_that_something_goes_if_and_only_if_it_does),
		cmocka_unit_test(a_good_bye_is_something_that_goes),
		cmocka_unit_test(what_is_handed_out_at_once_is_filled_up_to_a_chunk),
		cmocka_unit_test(what_is_told_meanwhile_goes_after_the_chunk),
		cmocka_unit_test(an_answer_waits_for_nineteen_chunks_and_owes_for_none_of_its_own),
		cmocka_unit_test(answers_get_one_byte_in_twenty),
		cmocka_unit_test(a_chunk_beside_its_own_stream_alone_is_a_preemption),
		cmocka_unit_test(a_connection_whose_numbers_are_used_up_is_closed),
		cmocka_unit_test(goodput_is_of_enough_bytes_over_enough_time_and_of_no_idle_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
