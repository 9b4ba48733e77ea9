/* What a peer may do, and this end in between: frames by script. */
#include "wire/stream.h"

#include "wire/testing_script.h"

static enum hd_close fed(struct stream_pair *p, const struct script *s)
{
	return pair_feed(p, 1, s->bytes, s->len);
}

static void take_all_out(struct stream_pair *p)
{
	struct hd_vec vec[HD_STREAM_VECS];

	for (size_t n; (n = hd_stream_out(p->stream[1], 0, vec)) > 0;)
		for (size_t i = 0; i < n; i++)
			hd_stream_wrote(p->stream[1], vec[i].len, 0);
}

/* The next frame that goes out, which is a small one. */
static struct hd_frame next_out(struct stream_pair *p)
{
	struct hd_vec vec[HD_STREAM_VECS];
	struct hd_frame frame = { .len = 0 };
	uint8_t bytes[256];
	size_t n = hd_stream_out(p->stream[1], 0, vec), len = 0;

	for (size_t i = 0; i < n; i++) {
		memcpy(bytes + len, vec[i].at, len + vec[i].len < sizeof bytes ? vec[i].len : 0);
		len += vec[i].len;
		hd_stream_wrote(p->stream[1], vec[i].len, 0);
	}
	if (len) {
		assert_int_equal(hd_frame_get(bytes, &frame, NULL), HD_OK);
		assert_int_equal(len, HD_FRAME_HEADER + frame.len);       /* and no other with it */
	}
	return frame;
}

/* Rule 5: a frame that is read when the epoch changes. */
static void an_epoch_between_the_bytes_of_a_frame(void **state)
{
	uint8_t into[3][100], again[100];
	static struct script s;

	(void)state;
	/* an answer that had begun comes whole */
	struct stream_pair *p = victim(into);
	s = (struct script){ .epoch = 1 };
	add_epoch(&s, 1, plan_a);
	add_open(&s, 2, 1, BULK(7, 100));
	add_data(&s, 2, 1, 0, 100, HD_FRAME_LAST);
	s.len -= 50;
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	hd_stream_epoch(p->stream[1], 2, plan_a);
	assert_int_equal(pair_feed(p, 1, s.bytes + s.len, 50), HD_CLOSE_NONE);
	assert_int_equal(p->heard[1].n_arrivals, 1);
	assert_true(p->heard[1].arrivals[0].err == HD_OK && p->heard[1].arrivals[0].len == 100);
	pair_free(p);

	/* a planned one of the epoch before writes nothing any more */
	p = victim(into);
	s = (struct script){ .epoch = 1 };
	add_epoch(&s, 1, plan_a);
	add_open(&s, 1, 1, PLANNED(1, 100));
	add_data(&s, 1, 1, 0, 100, HD_FRAME_LAST);
	s.len -= 50;
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	hd_stream_epoch(p->stream[1], 2, plan_a);
	memset(into, 0xee, sizeof into);
	assert_int_equal(pair_feed(p, 1, s.bytes + s.len, 50), HD_CLOSE_NONE);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(into[0][i], 0xee);
	assert_int_equal(p->heard[1].n_arrivals, 0);
	pair_free(p);

	/* an OPEN of the epoch that is entered before its payload came */
	p = victim(into);
	s = (struct script){ .epoch = 2 };
	add_epoch(&s, 2, plan_a);
	add_open(&s, 1, 1, PLANNED(1, 100));
	size_t head = s.len - 10;
	add_data(&s, 1, 1, 0, 100, HD_FRAME_LAST);
	assert_int_equal(pair_feed(p, 1, s.bytes, head), HD_CLOSE_NONE);
	hd_stream_epoch(p->stream[1], 2, plan_a);
	assert_int_equal(hd_stream_channel(p->stream[1], rows, 3, rows, 3, NULL), HD_OK);
	assert_int_equal(hd_stream_post(p->stream[1], 1, again, 0, NULL), HD_OK);
	assert_int_equal(pair_feed(p, 1, s.bytes + head, s.len - head), HD_CLOSE_NONE);
	assert_int_equal(p->heard[1].n_arrivals, 1);
	pair_free(p);

	/* and one of the epoch before: stale, answered */
	p = victim(into);
	s = (struct script){ .epoch = 1 };
	add_epoch(&s, 1, plan_a);
	add_open(&s, 1, 1, PLANNED(1, 100));
	assert_int_equal(pair_feed(p, 1, s.bytes, s.len - 10), HD_CLOSE_NONE);
	hd_stream_epoch(p->stream[1], 2, plan_a);
	assert_int_equal(pair_feed(p, 1, s.bytes + s.len - 10, 10), HD_CLOSE_NONE);
	struct hd_hub_stats stats = { 0 };
	hd_stream_stats(p->stream[1], &stats);
	assert_int_equal(stats.dropped_stale, 1);
	pair_free(p);
}

/* Rule 5: what is held goes on for its own reason alone. */
static void what_is_held_stays_held_until_its_reason_is_gone(void **state)
{
	uint8_t into[3][100], more[100];
	static struct script s;
	struct hd_vec vec[2];
	uint32_t epoch;

	(void)state;
	/* ahead: epoch 6, while 2 is decided */
	struct stream_pair *p = victim(into);
	s = (struct script){ .epoch = 6 };
	add_epoch(&s, 6, plan_a);
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	assert_true(hd_stream_held(p->stream[1], &epoch) == HD_HELD_AHEAD && epoch == 6);
	assert_int_equal(hd_stream_in(p->stream[1], vec), 0);     /* and nothing is read */
	assert_int_equal(hd_stream_post(p->stream[1], 3, more, 0, NULL), HD_OK);
	assert_int_equal(hd_stream_held(p->stream[1], &epoch), HD_HELD_AHEAD);
	hd_stream_decided(p->stream[1], 3);
	assert_int_equal(hd_stream_turn(p->stream[1], 0, NULL), HD_CLOSE_NONE);
	assert_int_equal(hd_stream_held(p->stream[1], &epoch), HD_HELD_AHEAD);
	hd_stream_epoch(p->stream[1], 3, plan_a);
	assert_int_equal(hd_stream_held(p->stream[1], &epoch), HD_HELD_AHEAD);
	hd_stream_epoch(p->stream[1], 6, plan_a);
	assert_int_equal(hd_stream_held(p->stream[1], &epoch), HD_HELD_NOT);
	pair_free(p);

	p = pair_make(true, true, 1);                             /* a grant without its buffer */
	hd_stream_epoch(p->stream[1], 1, plan_a);
	assert_int_equal(hd_stream_channel(p->stream[1], rows, 3, rows, 3, NULL), HD_OK);
	s = (struct script){ .epoch = 1 };
	add_epoch(&s, 1, plan_a);
	add_open(&s, 1, 1, PLANNED(1, 100));
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	assert_int_equal(hd_stream_held(p->stream[1], &epoch), HD_HELD_POST);
	hd_stream_decided(p->stream[1], 2);
	assert_int_equal(hd_stream_turn(p->stream[1], 0, NULL), HD_CLOSE_NONE);
	assert_int_equal(hd_stream_held(p->stream[1], &epoch), HD_HELD_POST);
	assert_int_equal(hd_stream_post(p->stream[1], 3, more, 0, NULL), HD_OK);         /* another one's */
	assert_int_equal(hd_stream_turn(p->stream[1], 0, NULL), HD_CLOSE_NONE);
	assert_int_equal(hd_stream_held(p->stream[1], &epoch), HD_HELD_POST);
	hd_stream_epoch(p->stream[1], 2, plan_a);
	assert_int_equal(hd_stream_held(p->stream[1], &epoch), HD_HELD_NOT);
	pair_free(p);
}

/* An EPOCH of the first epoch, without a channel here, and by a peer in another one: no grant before both
 * ends agree. */
static void both_ends_agree_before_a_slot_counts(void **state)
{
	static const struct { uint32_t mine, theirs; bool channel, says; enum hd_close why; } ends[] = {
		{ 0, 0, true, false, HD_CLOSE_ORDER }, { 0, 0, true, true, HD_CLOSE_NONE }, { 1, 1, false, true, HD_CLOSE_ORDER }, { 1, 1, true, true, HD_CLOSE_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct stream_pair *p = pair_make(true, true, 1);
		static struct script s;
		s = (struct script){ .epoch = ends[i].theirs };
		if (ends[i].mine)
			hd_stream_epoch(p->stream[1], ends[i].mine, plan_a);
		if (ends[i].channel)
			assert_int_equal(hd_stream_channel(p->stream[1], rows, 3, rows, 3, NULL), HD_OK);
		if (ends[i].says)
			add_epoch(&s, ends[i].theirs, ends[i].mine ? plan_a : (struct hd_hash){ { 0 } });
		add_numbers(&s, HD_FRAME_GRANT, 1, 0, 0, 2, 1, 8);
		assert_int_equal(hd_stream_turn(p->stream[1], 0, NULL), HD_CLOSE_NONE);
		CHECK(fed(p, &s) == ends[i].why, "case %zu: %s", i, p->diag[1].text);
		pair_free(p);
	}
}

/* Advice is on what is planned, is that transfer, and could be more urgent; each is more urgent than the one
 * before. What has not begun is named as the next of its transfer, and not again while nothing else was. */
static void a_wait_is_told_for_its_transfer_alone(void **state)
{
	static struct hd_transfer wanted[] = { { 1, 1, 100 }, { 3, 1, 100 }, { 4, 1, 100 } };
	uint8_t into[4][100];
	static struct script s;
	struct stream_pair *p = pair_make(true, true, 1);
	struct hd_frame frame;
	uint8_t open[hd_open_len];

	(void)state;
	hd_stream_epoch(p->stream[1], 1, plan_a);
	assert_int_equal(hd_stream_channel(p->stream[1], wanted, 3, wanted, 3, NULL), HD_OK);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(hd_stream_post(p->stream[1], wanted[i].id, into[i], 0, NULL), HD_OK);
	assert_int_equal(hd_stream_expect(p->stream[1], 7, into[3], 100, 0, NULL), HD_OK);
	s = (struct script){ .epoch = 1 };
	add_epoch(&s, 1, plan_a);
	add_open(&s, 2, 1, BULK(7, 100));
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	take_all_out(p);
	hd_stream_want(p->stream[1], 2);                          /* none of the plan */
	assert_false(hd_stream_has_out(p->stream[1]));
	hd_stream_want(p->stream[1], 1);                          /* only the answer is under way */
	frame = next_out(p);
	assert_true(frame.type == HD_FRAME_PRIO && !frame.stream && frame.offset == 1 && frame.step == 1 &&
		frame.priority == -1);
	hd_stream_want(p->stream[1], 1);                          /* once */
	assert_false(hd_stream_has_out(p->stream[1]));
	hd_stream_want(p->stream[1], 3);
	assert_int_equal(next_out(p).priority, -2);
	hd_stream_want(p->stream[1], 1);                          /* another was wanted meanwhile */
	frame = next_out(p);
	assert_true(frame.offset == 1 && frame.step == 1 && frame.priority == -3);
	s.len = 0;
	hd_open_put(&PLANNED(4, 100), open);
	add(&s, (struct hd_frame){ .type = HD_FRAME_OPEN, .class = 1, .flags = HD_FRAME_CRC, .stream = 2,
		.step = 5, .priority = INT32_MIN,
		.len = hd_open_len }, open);
	add_open(&s, 1, 3, PLANNED(3, 100));
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	hd_stream_want(p->stream[1], 4);                          /* nothing is more urgent */
	hd_stream_want(p->stream[1], 1);                          /* nor if it has not begun */
	assert_false(hd_stream_has_out(p->stream[1]));
	hd_stream_want(p->stream[1], 3);
	frame = next_out(p);
	assert_true(frame.type == HD_FRAME_PRIO && frame.stream == 3 && frame.priority == INT32_MIN);
	hd_stream_want(p->stream[1], 3);                          /* once */
	assert_false(hd_stream_has_out(p->stream[1]));
	pair_free(p);

	p = pair_make(true, true, 1);
	hd_stream_epoch(p->stream[1], 1, plan_a);
	assert_int_equal(hd_stream_channel(p->stream[1], wanted, 3, wanted, 3, NULL), HD_OK);
	s = (struct script){ .epoch = 1 };
	add_epoch(&s, 1, plan_a);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(hd_stream_post(p->stream[1], wanted[i].id, into[i], 0, NULL), HD_OK);
		add_open(&s, 1, 1 + i, PLANNED(wanted[i].id, 100));
	}
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	take_all_out(p);
	for (int32_t i = 0; i < 2; i++) {
		hd_stream_want(p->stream[1], wanted[i].id);
		frame = next_out(p);
		assert_true(frame.type == HD_FRAME_PRIO && frame.stream == (uint32_t)i + 1 &&
			frame.priority == -1 - i);
	}
	s.len = 0;                                                /* the next of it */
	add_data(&s, 1, 1, 0, 100, HD_FRAME_LAST);
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	hd_stream_want(p->stream[1], 1);
	frame = next_out(p);
	assert_true(!frame.stream && frame.offset == 1 && frame.step == 2 && frame.priority == -3);
	pair_free(p);
}

/* Advice of an epoch that was not written in it is not of the next one: there its count begins at 1. */
static void advice_ends_with_its_epoch(void **state)
{
	static const struct hd_transfer one[] = { { 1, 1, 100 } };
	uint8_t into[2][100];
	static struct script s;
	struct stream_pair *p = pair_make(true, true, 1);

	(void)state;
	for (uint32_t epoch = 1; epoch <= 2; epoch++) {
		hd_stream_epoch(p->stream[1], epoch, plan_a);
		assert_int_equal(p->stream[1]->n_notes, epoch - 1);       /* CANCEL stays */
		assert_int_equal(hd_stream_channel(p->stream[1], one, 1, one, 1, NULL), HD_OK);
		assert_int_equal(hd_stream_post(p->stream[1], 1, into[epoch - 1], 0, NULL), HD_OK);
		s = (struct script){ .epoch = epoch };
		add_epoch(&s, epoch, plan_a);
		if (epoch == 1) {
			add_open(&s, 1, 1, PLANNED(1, 100));
			add_data(&s, 1, 1, 0, 100, HD_FRAME_LAST);
		}
		assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
		take_all_out(p);
		hd_stream_want(p->stream[1], 1);
		if (epoch == 1)
			assert_true(out_note(p->stream[1], (struct note){ .type = HD_FRAME_CANCEL,
				.class = HD_CLASS_BULK, .stream = 9, .reason = HD_CANCEL_EPOCH }));
	}
	const struct hd_frame frame = next_out(p);
	assert_true(frame.type == HD_FRAME_PRIO && frame.offset == 1 && frame.step == 1);
	pair_free(p);
}

/* Five buffers of four: what is under way holds one. A cancelled one gives it back and no more is promised
 * than there is. */
static void buffers_under_way_count(void **state)
{
	static const struct hd_transfer two[] = { { 1, 2, 100 } };
	uint8_t into[HD_GRANTS_MAX + 1][100];
	static struct script s;
	struct stream_pair *p = pair_make(true, true, 1);

	(void)state;
	hd_stream_epoch(p->stream[1], 1, plan_a);
	assert_int_equal(hd_stream_channel(p->stream[1], two, 1, two, 1, NULL), HD_OK);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into[0], 0, NULL), HD_OK);
	assert_int_equal(hd_stream_expect(p->stream[1], 7, into[1], 100, 0, NULL), HD_OK);
	s = (struct script){ .epoch = 1 };
	add_epoch(&s, 1, plan_a);
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	/* and no grant: two were promised by the plan */
	assert_int_equal(next_out(p).type, HD_FRAME_EPOCH);
	s.len = 0;
	add_open(&s, 1, 1, PLANNED(1, 100));
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	s.len = 0;
	add_numbers(&s, HD_FRAME_CANCELLED, 1, 0, 1, 0, 0, 8);
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	/* its other grant is still promised: that is enough for one buffer */
	assert_false(hd_stream_has_out(p->stream[1]));
	s.len = 0;
	add_open(&s, 2, 2, BULK(7, 100));                         /* an answer holds none of them */
	add_data(&s, 2, 2, 0, 100, HD_FRAME_LAST);
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	for (int i = 1; i < HD_GRANTS_MAX; i++)
		assert_int_equal(hd_stream_post(p->stream[1], 1, into[i], 0, NULL), HD_OK);
	take_all_out(p);
	s.len = 0;
	add_open(&s, 1, 3, PLANNED(1, 100));
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into[HD_GRANTS_MAX], 0, NULL), HD_E_AGAIN);
	s.len = 0;
	add_numbers(&s, HD_FRAME_CANCELLED, 1, 0, 3, 0, 0, 8);
	for (uint32_t i = 0; i < HD_GRANTS_MAX; i++) {
		add_open(&s, 1, 4 + i, PLANNED(1, 100));
		add_data(&s, 1, 4 + i, 0, 100, HD_FRAME_LAST);
	}
	pair_feed(p, 1, s.bytes, HD_FRAME_HEADER + 8);
	/* the grant that came back is promised again */
	take_all_out(p);
	assert_int_equal(pair_feed(p, 1, s.bytes + HD_FRAME_HEADER + 8, s.len - HD_FRAME_HEADER - 8),
		HD_CLOSE_NONE);
	assert_int_equal(p->heard[1].n_arrivals, 1 + HD_GRANTS_MAX);
	for (uint32_t i = 0; i < HD_GRANTS_MAX; i++)
		assert_ptr_equal(p->heard[1].arrivals[1 + i].buffer, into[i]);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into[0], 0, NULL), HD_OK);
	pair_free(p);
}

/* Two buffers in one breath: their grants go in one frame. */
static void slots_of_a_transfer_are_promised_together(void **state)
{
	uint8_t into[3][100];
	static struct script s;
	struct stream_pair *p = victim(into);
	struct hd_frame frame;

	(void)state;
	s = (struct script){ .epoch = 1 };
	add_epoch(&s, 1, plan_a);
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	take_all_out(p);
	for (int i = 0; i < 2; i++)
		assert_int_equal(hd_stream_post(p->stream[1], 2, into[i], 0, NULL), HD_OK);
	frame = next_out(p);
	assert_int_equal(frame.type, HD_FRAME_GRANT);
	assert_false(hd_stream_has_out(p->stream[1]));
	assert_int_equal(hd_stream_expect(p->stream[1], 9, into[0], 0, 0, NULL), HD_E_INVAL);    /* no room */
	pair_free(p);
}

/* A link that is not fenced: planned frames are, all others are of any epoch. On one that is, what keeps
 * it alive is of any epoch too. */
static void only_what_is_fenced_is_dropped(void **state)
{
	(void)state;
	for (int fenced = 0; fenced < 2; fenced++) {
		static struct script s;
		struct stream_pair *p = pair_make(fenced, true, 1);
		struct hd_hub_stats stats = { 0 };
		hd_stream_epoch(p->stream[1], 4, plan_a);
		s = (struct script){ .epoch = 3 };
		add_open(&s, 1, 1, PLANNED(1, 100));              /* dropped */
		add_data(&s, 1, 1, 0, 100, HD_FRAME_LAST);        /* dropped */
		add_numbers(&s, HD_FRAME_PING, 0, 0, 0, 1, 1, 8);
		add_open(&s, 0, 2, CONTROL(20, 10));                 /* dropped where the link is fenced */
		add_data(&s, 0, 2, 0, 10, HD_FRAME_LAST);
		CHECK(fed(p, &s) == HD_CLOSE_NONE, "%s", p->diag[1].text);
		hd_stream_stats(p->stream[1], &stats);
		assert_int_equal(stats.dropped_stale, fenced ? 4 : 2);
		assert_int_equal(p->heard[1].n_messages, !fenced);
		pair_free(p);
	}
}

/* A message comes whole beside a transfer and an answer. */
static void a_message_goes_beside_all_else(void **state)
{
	uint8_t into[3][100];
	static struct script s;
	struct stream_pair *p = victim(into);

	(void)state;
	s = (struct script){ .epoch = 1 };
	add_epoch(&s, 1, plan_a);
	add_open(&s, 1, 1, PLANNED(1, 100));
	add_open(&s, 2, 2, BULK(7, 100));
	add_open(&s, 0, 3, CONTROL(20, 10));
	add_data(&s, 0, 3, 0, 10, HD_FRAME_LAST);
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	assert_true(p->heard[1].n_messages == 1 && p->heard[1].messages[0].message.len == 10);
	pair_free(p);
}

/* After 2^32 - 1 streams the connection is worn: nothing goes out, nothing is read, and a turn says why. */
static void a_worn_connection_is_closed(void **state)
{
	uint8_t into[3][100];
	struct stream_pair *p = victim(into);
	struct hd_vec vec[HD_STREAM_VECS], in[2];

	(void)state;
	p->stream[1]->last_stream = UINT32_MAX;
	assert_int_equal(hd_stream_tell(p->stream[1], 20, 1, "abc", 3, NULL), HD_OK);
	assert_int_equal(hd_stream_out(p->stream[1], 0, vec), 0);
	assert_true(hd_stream_is_due(p->stream[1]));
	assert_int_equal(hd_stream_in(p->stream[1], in), 0);
	assert_int_equal(hd_stream_turn(p->stream[1], 0, NULL), HD_CLOSE_WORN);
	pair_free(p);
}

/* No room to tell the sender that it should stop. */
static void more_streams_to_cancel_than_may_be_under_way_close(void **state)
{
	(void)state;
	for (int opened = 0; opened < 2; opened++) {
		uint8_t into[3][100];
		static struct script s;
		struct stream_pair *p = victim(into);
		s = (struct script){ .epoch = 1 };
		add_epoch(&s, 1, plan_a);
		s.old = !opened;
		add_open(&s, 2, 1, BULK(7, 100));
		s.old = true;
		if (opened)
			add_data(&s, 2, 1, 0, 100, HD_FRAME_LAST);
		p->stream[1]->n_notes = 2 * HD_STREAMS_OPEN;
		assert_int_equal(fed(p, &s), HD_CLOSE_STREAM);
		assert_int_equal(p->heard[1].n_arrivals, 0);
		pair_free(p);
	}
}

/* What arrives says when its first bytes came; bytes of streams that are over are counted, stale ones as
 * such. */
static void what_comes_is_counted_and_timed(void **state)
{
	uint8_t into[3][100];
	static struct script s;
	struct stream_pair *p = victim(into);
	struct hd_hub_stats stats = { 0 };
	int64_t first;

	(void)state;
	s = (struct script){ .epoch = 1 };
	add_epoch(&s, 1, plan_a);
	add_open(&s, 1, 1, PLANNED(1, 100));
	add_data(&s, 1, 1, 0, 40, 0);
	first = p->now;
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	p->now += 5000;
	s.len = 0;
	add_data(&s, 1, 1, 40, 60, HD_FRAME_LAST);
	add_data(&s, 1, 1, 100, 10, 0);                           /* it is over */
	add_data(&s, 1, 1, 100, 10, 0);
	s.old = true;
	add_data(&s, 1, 1, 100, 10, 0);
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	assert_int_equal(p->heard[1].n_arrivals, 1);
	assert_true(p->heard[1].arrivals[0].first_ns == first && p->heard[1].arrivals[0].end_ns == p->now &&
		p->heard[1].arrivals[0].chunks == 2);
	hd_stream_stats(p->stream[1], &stats);
	assert_true(stats.dropped_cancelled == 2 && stats.dropped_stale == 1);
	pair_free(p);
}

/* What a peer says at its end is shown to people. */
static void a_good_bye_shows_only_what_prints(void **state)
{
	static const uint8_t bye[] = { HD_CLOSE_DROPPED, 0, 0, 0, 'a', '\n', 31, ' ', '~', 127, 128, 255,
		'z' };
	uint8_t into[3][100];
	static struct script s;
	struct stream_pair *p = victim(into);

	(void)state;
	s = (struct script){ .epoch = 1 };
	add(&s, (struct hd_frame){ .type = HD_FRAME_BYE, .flags = HD_FRAME_CRC, .len = sizeof bye }, bye);
	assert_int_not_equal(fed(p, &s), HD_CLOSE_NONE);
	assert_non_null(strstr(p->diag[1].text, ": a?? ~???z"));
	pair_free(p);
}

/* The grants of an epoch are given once, however often it is looked at. */
static void slots_of_the_plan_are_granted_once(void **state)
{
	static const uint8_t bytes[100];
	uint8_t into[3][100];
	static struct script s;
	struct stream_pair *p = victim(into);

	(void)state;
	s = (struct script){ .epoch = 1 };
	add_epoch(&s, 1, plan_a);
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hd_stream_turn(p->stream[1], 0, NULL), HD_CLOSE_NONE);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(hd_stream_send(p->stream[1], &(struct hd_send){ 1, 0, i, bytes, 100, i }, 0,
			NULL), HD_OK);
	take_all_out(p);
	assert_int_equal(hd_stream_turn(p->stream[1], 0, NULL), HD_CLOSE_NONE);
	take_all_out(p);
	assert_int_equal(p->heard[1].n_sents, 1);
	pair_free(p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_epoch_between_the_bytes_of_a_frame),
		cmocka_unit_test(what_is_held_stays_held_until_its_reason_is_gone),
		cmocka_unit_test(both_ends_agree_before_a_slot_counts),
		cmocka_unit_test(a_wait_is_told_for_its_transfer_alone),
		cmocka_unit_test(advice_ends_with_its_epoch),
		cmocka_unit_test(buffers_under_way_count),
		cmocka_unit_test(slots_of_a_transfer_are_promised_together),
		cmocka_unit_test(only_what_is_fenced_is_dropped),
		cmocka_unit_test(a_worn_connection_is_closed),
		cmocka_unit_test(more_streams_to_cancel_than_may_be_under_way_close),
		cmocka_unit_test(what_comes_is_counted_and_timed),
		cmocka_unit_test(a_good_bye_shows_only_what_prints),
		cmocka_unit_test(slots_of_the_plan_are_granted_once),
		cmocka_unit_test(a_message_goes_beside_all_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
