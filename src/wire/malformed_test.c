/* Peers that break the rules, frame by frame: closed for the right reason, and nothing delivered. */
#include "wire/stream.h"

#include "base/le.h"
#include "wire/stream_int.h"
#include "wire/testing.h"

static const struct hd_hash plan_a = { { 1, 2, 3 } }, plan_b = { { 9 } };
static const struct hd_transfer rows[] = { { 1, 1, 100 }, { 2, 0, 100 }, { 3, 1, 100 } };

struct script { uint8_t bytes[1 << 16]; size_t len; uint32_t epoch; bool old; };

static void add(struct script *s, struct hd_frame frame, const uint8_t *payload)
{
	frame.epoch = frame.epoch ? frame.epoch : s->old ? 0 : s->epoch;
	if (frame.flags & HD_FRAME_CRC && !frame.payload_crc)
		frame.payload_crc = hd_crc32c(0, payload, frame.len);
	hd_frame_put(&frame, s->bytes + s->len);
	memcpy(s->bytes + s->len + HD_FRAME_HEADER, payload, frame.len);
	s->len += HD_FRAME_HEADER + frame.len;
}

static void add_open(struct script *s, uint8_t class, uint32_t stream, struct hd_open_payload open)
{
	uint8_t bytes[hd_open_len];

	hd_open_put(&open, bytes);
	add(s, (struct hd_frame){ .type = HD_FRAME_OPEN, .class = class, .flags = HD_FRAME_CRC,
		.stream = stream, .step = 5, .len = hd_open_len }, bytes);
}

static void add_data(struct script *s, uint8_t class, uint32_t stream, uint64_t offset, uint32_t len,
	uint8_t flags)
{
	static const uint8_t zeros[1 << 15];

	add(s, (struct hd_frame){ .type = HD_FRAME_DATA, .class = class, .flags = flags | HD_FRAME_CRC,
		.stream = stream, .step = 5, .offset = offset,
		.len = len }, zeros);
}

static void add_numbers(struct script *s, enum hd_frame_type type, uint8_t class, uint8_t flags,
	uint32_t stream, uint32_t a, uint32_t b, uint32_t len)
{
	uint8_t bytes[8];

	hd_put32(bytes, a);
	hd_put32(bytes + 4, b);
	add(s, (struct hd_frame){ .type = type, .class = class, .flags = (uint8_t)(flags | HD_FRAME_CRC),
		.stream = stream, .len = len }, bytes);
}

static void add_epoch(struct script *s, uint32_t epoch, struct hd_hash plan)
{
	add(s, (struct hd_frame){ .type = HD_FRAME_EPOCH, .flags = HD_FRAME_CRC, .epoch = epoch, .len = 16 },
		plan.byte);
}

/* What follows is of the epoch before: 0 is what add() does not write, so it is marked. */
static void add_old(struct script *s) { s->old = true; }

#define PLANNED(id, total) ((struct hd_open_payload){ (id), HD_KIND_PLANNED, (total), 0, 0 })
#define CONTROL(id, total) ((struct hd_open_payload){ HD_TRANSFER_NONE, HD_KIND_CONTROL, (total), (id), 0 })
#define BULK(request, total) \
	((struct hd_open_payload){ HD_TRANSFER_NONE, HD_KIND_BULK, (total), 0, (request) })

static void nothing(struct script *s) { (void)s; }
static void hello(struct script *s)
{
	uint8_t bytes[80] = { 0 };
	add(s, (struct hd_frame){ .type = HD_FRAME_HELLO, .flags = HD_FRAME_CRC, .len = 80 }, bytes);
}
static void magic(struct script *s) { hello(s); s->bytes[s->len - 128] ^= 1; }
static void header_crc(struct script *s) { hello(s); s->bytes[s->len - 128 + 45] ^= 1; }
static void without_crc(struct script *s)
{
	uint8_t bytes[8] = { 0 };
	add(s, (struct hd_frame){ .type = HD_FRAME_PING, .len = 8 }, bytes);
}
static void small_crc(struct script *s) { add_numbers(s, HD_FRAME_PING, 0, 0, 0, 1, 1, 8);
	s->bytes[s->len - 1] ^= 1; }
static void epoch_again(struct script *s) { add_epoch(s, 1, plan_a); }
static void other_plan(struct script *s) { s->len = 0; add_epoch(s, 1, plan_b); }
static void unplanned_id(struct script *s) { add_open(s, 1, 1, PLANNED(9, 100)); }
static void wrong_total(struct script *s) { add_open(s, 1, 1, PLANNED(1, 101)); }
static void no_grant(struct script *s) { add_open(s, 1, 1, PLANNED(2, 100)); }
static void grant_twice(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100));
	add_open(s, 1, 2, PLANNED(1, 100)); }
static void id_again(struct script *s) { add_open(s, 1, 4, PLANNED(1, 100));
	add_open(s, 1, 4, PLANNED(3, 100)); }
static void id_falls(struct script *s) { add_open(s, 1, 4, PLANNED(1, 100));
	add_open(s, 1, 3, PLANNED(3, 100)); }
static void id_zero(struct script *s) { add_open(s, 1, 0, PLANNED(1, 100)); }
static void planned_as_control(struct script *s) { add_open(s, 0, 1, PLANNED(1, 100)); }
static void control_as_bulk(struct script *s) { add_open(s, 2, 1, CONTROL(20, 100)); }
static void control_with_transfer(struct script *s) { add_open(s, 0, 1,
	(struct hd_open_payload){ 1, HD_KIND_CONTROL, 10, 20, 0 }); }
static void control_with_request(struct script *s) { add_open(s, 0, 1,
	(struct hd_open_payload){ HD_TRANSFER_NONE, HD_KIND_CONTROL, 10, 20, 3 }); }
static void kind_unknown(struct script *s)
{
	add_open(s, 0, 1, CONTROL(20, 10));
	hd_put32(s->bytes + s->len - 28, 3);
	hd_put32(s->bytes + s->len - 80 + 40, hd_crc32c(0, s->bytes + s->len - 32, 32));
	hd_put32(s->bytes + s->len - 80 + 44, hd_crc32c(0, s->bytes + s->len - 80, 44));
}
static void control_too_long(struct script *s) { add_open(s, 0, 1, CONTROL(20, HD_TELL_MAX + 1)); }
static void control_inside_control(struct script *s) { add_open(s, 0, 1, CONTROL(20, 10));
	add_open(s, 0, 2, CONTROL(20, 10)); }
static void room_id(struct script *s) { add_open(s, 0, 1, CONTROL(2, 0)); }
static void stale_of_wrong_length(struct script *s) { add_open(s, 0, 1, CONTROL(HD_CONTROL_STALE, 5));
	add_data(s, 0, 1, 0, 5, HD_FRAME_LAST); }
static void room_id_of_right_length(struct script *s) { add_open(s, 0, 1, CONTROL(2, 4));
	add_data(s, 0, 1, 0, 4, HD_FRAME_LAST); }
static void control_id_too_great(struct script *s) { add_open(s, 0, 1, CONTROL((UINT64_C(1) << 32) + 20,
	10)); }
static void cancel_reason(struct script *s) { add_numbers(s, HD_FRAME_CANCEL, 1, HD_FRAME_MINE, 77, 9, 0, 4);
	}
static void grant_of_none(struct script *s) { add_numbers(s, HD_FRAME_GRANT, 1, 0, 0, 3, 0, 8); }
static void credit_of_none(struct script *s) { add_numbers(s, HD_FRAME_CREDIT, 0, 0, 0, 0, 0, 8); }
static void data_of_other_step(struct script *s)
{
	add_open(s, 1, 1, PLANNED(1, 100));
	add(s, (struct hd_frame){ .type = HD_FRAME_DATA, .class = 1, .flags = HD_FRAME_CRC, .stream = 1,
		.step = 6, .len = 10 }, s->bytes);
}
static void data_of_other_epoch(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100)); s->epoch = 2;
	add_data(s, 1, 1, 0, 10, 0); }
static void control_data_of_planned(struct script *s) { add_open(s, 0, 1, CONTROL(20, 10));
	add_data(s, 1, 1, 0, 10, HD_FRAME_LAST); }
static void data_too_much_later(struct script *s)
{
	add_open(s, 1, 1, PLANNED(1, 100));
	add_data(s, 1, 1, 0, 90, 0);
	add_data(s, 1, 1, 90, 11, HD_FRAME_LAST);
}
static void epoch_falls(struct script *s) { s->len = 0; add_epoch(s, 2, plan_a); add_epoch(s, 1, plan_a); }
static void grant_while_peer_is_ahead(struct script *s) { s->len = 0; add_epoch(s, 2, plan_a);
	add_numbers(s, HD_FRAME_GRANT, 1, 0, 0, 1, 1, 8); }
static void stale_answer_of_used_id(struct script *s) { add_open(s, 1, 4, PLANNED(1, 100)); add_old(s);
	add_open(s, 2, 4, BULK(7, 100)); }
static void stale_kind_unknown(struct script *s) { add_old(s); kind_unknown(s); }
static void unasked(struct script *s) { add_open(s, 2, 1, BULK(8, 100)); }
static void answer_too_long(struct script *s) { add_open(s, 2, 1, BULK(7, 101)); }
static void answer_empty(struct script *s) { add_open(s, 2, 1, BULK(7, 0)); }
static void answer_twice(struct script *s) { add_open(s, 2, 1, BULK(7, 100)); add_open(s, 2, 2, BULK(7, 100));
	}
static void data_unopened(struct script *s) { add_data(s, 1, 1, 0, 10, 0); }
static void data_skips(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100)); add_data(s, 1, 1, 1, 10, 0); }
static void data_repeats(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100)); add_data(s, 1, 1, 0, 10, 0);
	add_data(s, 1, 1, 0, 10, 0); }
static void data_too_much(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100));
	add_data(s, 1, 1, 0, 101, 0); }
static void data_overflows(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100));
	add_data(s, 1, 1, UINT64_MAX - 5, 10, 0); }
static void last_early(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100));
	add_data(s, 1, 1, 0, 10, HD_FRAME_LAST); }
static void last_missing(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100)); add_data(s, 1, 1, 0, 100, 0);
	}
static void data_of_other_class(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100));
	add_data(s, 2, 1, 0, 10, 0); }
static void data_crc(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100));
	add_data(s, 1, 1, 0, 100, HD_FRAME_LAST); s->bytes[s->len - 1] ^= 4; }
static void credit_too_much(struct script *s) { add_numbers(s, HD_FRAME_CREDIT, 2, 0, 0, 1, 0, 8); }
static void credit_overflow(struct script *s) { add_numbers(s, HD_FRAME_CREDIT, 0, 0, 0, UINT32_MAX,
	UINT32_MAX, 8); }
static void grant_unknown(struct script *s) { add_numbers(s, HD_FRAME_GRANT, 1, 0, 0, 9, 1, 8); }
static void grant_too_many(struct script *s) { add_numbers(s, HD_FRAME_GRANT, 1, 0, 0, 1, HD_GRANTS_MAX, 8); }
static void grant_early(struct script *s) { s->len = 0; add_numbers(s, HD_FRAME_GRANT, 1, 0, 0, 1, 1, 8); }
static void cancelled_unopened(struct script *s) { add_numbers(s, HD_FRAME_CANCELLED, 1, 0, 9, 0, 0, 8); }
static void cancelled_class(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100));
	add_numbers(s, HD_FRAME_CANCELLED, 2, 0, 1, 0, 0, 8); }
static void next_epoch_planned(struct script *s) { s->epoch = 2; add_open(s, 1, 1, PLANNED(1, 100)); }
static void next_epoch_grant(struct script *s) { s->epoch = 2;
	add_numbers(s, HD_FRAME_GRANT, 1, 0, 0, 1, 1, 8); }

/* What is not wrong, or not so wrong that it closes. */
static void finished_data(struct script *s) { add_open(s, 1, 1, PLANNED(1, 100));
	add_data(s, 1, 1, 0, 100, HD_FRAME_LAST); add_data(s, 1, 1, 100, 50, 0); }
static void cancelled_data(struct script *s)
{
	add_open(s, 1, 1, PLANNED(1, 100));
	add_numbers(s, HD_FRAME_CANCELLED, 1, 0, 1, 0, 0, 8);
	add_data(s, 1, 1, 0, 50, 0);
}
static void finished_data_beside_another(struct script *s)
{
	add_open(s, 1, 1, PLANNED(1, 100));
	add_open(s, 1, 2, PLANNED(3, 100));
	add_data(s, 1, 1, 0, 100, HD_FRAME_LAST);
	add_data(s, 1, 1, 100, 50, 0);
	add_data(s, 1, 2, 0, 100, HD_FRAME_LAST);
}
static void planned_before_its_epoch(struct script *s)
{
	s->len = 0;
	add_open(s, 1, 1, PLANNED(1, 100));
	add_epoch(s, 1, plan_a);
	add_data(s, 1, 1, 0, 100, HD_FRAME_LAST);
}
static void stale_answer(struct script *s) { add_old(s); add_open(s, 2, 1, BULK(7, 100)); }
static void answer_cut_off(struct script *s) { add_open(s, 2, 1, BULK(7, 100)); add_old(s);
	add_data(s, 2, 1, 0, 100, HD_FRAME_LAST); }
static void message_cut_off(struct script *s) { add_open(s, 0, 1, CONTROL(20, 10)); add_old(s);
	add_data(s, 0, 1, 0, 10, HD_FRAME_LAST); }
static void stale_data_of_no_stream(struct script *s) { add_old(s); add_data(s, 1, 9, 0, 10, 0); }
static void answer_over_epochs(struct script *s) { add_open(s, 2, 1, BULK(7, 100)); s->epoch = 2;
	add_data(s, 2, 1, 0, 100, HD_FRAME_LAST); }
static void epoch_rises(struct script *s) { add_epoch(s, 2, plan_a); }
static void cancelled_bulk(struct script *s) { add_open(s, 2, 1, BULK(7, 100));
	add_numbers(s, HD_FRAME_CANCELLED, 2, 0, 1, 0, 0, 8); }
static void cancelled_finished(struct script *s)
{
	add_open(s, 1, 1, PLANNED(1, 100));
	add_data(s, 1, 1, 0, 100, HD_FRAME_LAST);
	add_numbers(s, HD_FRAME_CANCELLED, 1, 0, 1, 0, 0, 8);
}
static void two_answers(struct script *s)
{
	add_open(s, 2, 1, BULK(7, 100));
	add_open(s, 2, 2, BULK(0, 50));
	add_data(s, 2, 2, 0, 50, HD_FRAME_LAST);
	add_data(s, 2, 1, 0, 100, HD_FRAME_LAST);
}
static void answer_beside_a_transfer(struct script *s)         /* whose request is 0 too */
{
	add_open(s, 1, 1, PLANNED(1, 100));
	add_open(s, 2, 2, BULK(0, 50));
	add_data(s, 2, 2, 0, 50, HD_FRAME_LAST);
	add_data(s, 1, 1, 0, 100, HD_FRAME_LAST);
}
static void prio_unknown(struct script *s)
{
	add(s, (struct hd_frame){ .type = HD_FRAME_PRIO, .class = 1, .flags = HD_FRAME_MINE, .stream = 77,
		.priority = -3 }, s->bytes);
}
static void cancel_unknown(struct script *s) { add_numbers(s, HD_FRAME_CANCEL, 1, HD_FRAME_MINE, 77, 2, 0, 4);
	}
static void old_epoch(struct script *s)
{
	add(s, (struct hd_frame){ .type = HD_FRAME_GRANT, .class = 1, .flags = HD_FRAME_CRC,
		.epoch = UINT32_MAX, .len = 8 }, (uint8_t[8]){ 1, 0, 0, 0, 1 });
	hd_put32(s->bytes + s->len - 56 + 8, 0);
	hd_put32(s->bytes + s->len - 56 + 44, hd_crc32c(0, s->bytes + s->len - 56, 44));
}

static const struct { const char *name; void (*make)(struct script *s); enum hd_close why; uint32_t arrivals;
	} cases[] = {
	{ "a good peer", nothing, HD_CLOSE_NONE, 0 },
	{ "magic", magic, HD_CLOSE_FRAME, 0 },
	{ "header crc", header_crc, HD_CLOSE_FRAME, 0 },
	{ "no payload crc", without_crc, HD_CLOSE_FRAME, 0 },
	{ "payload crc of a small frame", small_crc, HD_CLOSE_CHECKSUM, 0 },
	{ "payload crc of data", data_crc, HD_CLOSE_CHECKSUM, 0 },
	{ "second hello", hello, HD_CLOSE_ORDER, 0 },
	{ "epoch again", epoch_again, HD_CLOSE_ORDER, 0 },
	{ "other plan", other_plan, HD_CLOSE_PLAN, 0 },
	{ "unplanned id", unplanned_id, HD_CLOSE_STREAM, 0 },
	{ "wrong total", wrong_total, HD_CLOSE_STREAM, 0 },
	{ "no grant", no_grant, HD_CLOSE_STREAM, 0 },
	{ "grant used twice", grant_twice, HD_CLOSE_STREAM, 0 },
	{ "id again", id_again, HD_CLOSE_STREAM, 0 },
	{ "id falls", id_falls, HD_CLOSE_STREAM, 0 },
	{ "id 0", id_zero, HD_CLOSE_STREAM, 0 },
	{ "planned as control", planned_as_control, HD_CLOSE_STREAM, 0 },
	{ "control as bulk", control_as_bulk, HD_CLOSE_STREAM, 0 },
	{ "control with a transfer", control_with_transfer, HD_CLOSE_STREAM, 0 },
	{ "control with a request", control_with_request, HD_CLOSE_STREAM, 0 },
	{ "unknown kind", kind_unknown, HD_CLOSE_FRAME, 0 },
	{ "message too long", control_too_long, HD_CLOSE_STREAM, 0 },
	{ "message inside a message", control_inside_control, HD_CLOSE_STREAM, 0 },
	{ "unknown message of the room", room_id, HD_CLOSE_ORDER, 0 },
	{ "stale of a wrong length", stale_of_wrong_length, HD_CLOSE_ORDER, 0 },
	{ "answer unasked", unasked, HD_CLOSE_STREAM, 0 },
	{ "answer too long", answer_too_long, HD_CLOSE_STREAM, 0 },
	{ "answer empty", answer_empty, HD_CLOSE_STREAM, 0 },
	{ "answer twice", answer_twice, HD_CLOSE_STREAM, 0 },
	{ "data unopened", data_unopened, HD_CLOSE_STREAM, 0 },
	{ "data skips", data_skips, HD_CLOSE_STREAM, 0 },
	{ "data repeats", data_repeats, HD_CLOSE_STREAM, 0 },
	{ "data too much", data_too_much, HD_CLOSE_STREAM, 0 },
	{ "data overflows", data_overflows, HD_CLOSE_STREAM, 0 },
	{ "last early", last_early, HD_CLOSE_STREAM, 0 },
	{ "last missing", last_missing, HD_CLOSE_STREAM, 0 },
	{ "data of another class", data_of_other_class, HD_CLOSE_STREAM, 0 },
	{ "credit too much", credit_too_much, HD_CLOSE_CREDIT, 0 },
	{ "credit overflow", credit_overflow, HD_CLOSE_CREDIT, 0 },
	{ "grant unknown", grant_unknown, HD_CLOSE_STREAM, 0 },
	{ "too many grants", grant_too_many, HD_CLOSE_CREDIT, 0 },
	{ "grant before the epoch", grant_early, HD_CLOSE_ORDER, 0 },
	{ "cancelled unopened", cancelled_unopened, HD_CLOSE_STREAM, 0 },
	{ "cancelled of another class", cancelled_class, HD_CLOSE_STREAM, 0 },
	{ "planned of the next epoch", next_epoch_planned, HD_CLOSE_STREAM, 0 },
	{ "grant of the next epoch", next_epoch_grant, HD_CLOSE_ORDER, 0 },
	{ "unknown message of the room, as long as a known one", room_id_of_right_length, HD_CLOSE_ORDER, 0 },
	{ "number of a message too great", control_id_too_great, HD_CLOSE_STREAM, 0 },
	{ "cancelled for no reason", cancel_reason, HD_CLOSE_FRAME, 0 },
	{ "no grants", grant_of_none, HD_CLOSE_FRAME, 0 },
	{ "no credit", credit_of_none, HD_CLOSE_FRAME, 0 },
	{ "data of another step", data_of_other_step, HD_CLOSE_STREAM, 0 },
	{ "data of another epoch", data_of_other_epoch, HD_CLOSE_STREAM, 0 },
	{ "data of a message as planned", control_data_of_planned, HD_CLOSE_STREAM, 0 },
	{ "data too much at the end", data_too_much_later, HD_CLOSE_STREAM, 0 },
	{ "epoch falls", epoch_falls, HD_CLOSE_ORDER, 0 },
	{ "grant of a peer that is ahead", grant_while_peer_is_ahead, HD_CLOSE_ORDER, 0 },
	{ "stale and of an unknown kind", stale_kind_unknown, HD_CLOSE_FRAME, 0 },
	{ "stale answer under a used number", stale_answer_of_used_id, HD_CLOSE_STREAM, 0 },
	{ "data after the end beside another", finished_data_beside_another, HD_CLOSE_NONE, 2 },
	{ "planned before its epoch", planned_before_its_epoch, HD_CLOSE_NONE, 1 },
	{ "stale answer", stale_answer, HD_CLOSE_NONE, 1 },
	{ "answer cut off", answer_cut_off, HD_CLOSE_NONE, 1 },
	{ "message cut off", message_cut_off, HD_CLOSE_NONE, 0 },
	{ "stale data of no stream", stale_data_of_no_stream, HD_CLOSE_NONE, 0 },
	{ "answer over epochs", answer_over_epochs, HD_CLOSE_NONE, 1 },
	{ "epoch rises", epoch_rises, HD_CLOSE_NONE, 0 },
	{ "cancelled answer", cancelled_bulk, HD_CLOSE_NONE, 1 },
	{ "cancelled after its end", cancelled_finished, HD_CLOSE_NONE, 1 },
	{ "two answers", two_answers, HD_CLOSE_NONE, 2 },
	{ "answer beside a transfer", answer_beside_a_transfer, HD_CLOSE_NONE, 2 },
	{ "data after the end", finished_data, HD_CLOSE_NONE, 1 },
	{ "data after cancelled", cancelled_data, HD_CLOSE_NONE, 0 },
	{ "prio of an unknown stream", prio_unknown, HD_CLOSE_NONE, 0 },
	{ "cancel of an unknown stream", cancel_unknown, HD_CLOSE_NONE, 0 },
	{ "grant of an old epoch", old_epoch, HD_CLOSE_NONE, 0 },
};

static struct stream_pair *victim(uint8_t into[3][100])
{
	struct stream_pair *p = pair_make(true, true, 1);
	struct hd_vec vec[HD_STREAM_VECS];

	hd_stream_decided(p->stream[1], 2);
	hd_stream_epoch(p->stream[1], 1, plan_a);
	assert_int_equal(hd_stream_channel(p->stream[1], rows, 3, rows, 3, NULL), HD_OK);
	assert_int_equal(hd_stream_post(p->stream[1], 1, into[0], 0, NULL), HD_OK);
	assert_int_equal(hd_stream_post(p->stream[1], 3, into[1], 0, NULL), HD_OK);
	assert_int_equal(hd_stream_expect(p->stream[1], 7, into[2], 100, 0, NULL), HD_OK);
	assert_int_equal(hd_stream_expect(p->stream[1], 0, into[2], 100, 0, NULL), HD_OK);
	size_t n = hd_stream_out(p->stream[1], 0, vec);
	for (size_t i = 0; i < n; i++)
		hd_stream_wrote(p->stream[1], vec[i].len, 0);
	return p;
}

static void who_breaks_a_rule_is_closed_for_it_and_changes_nothing(void **state)
{
	(void)state;
	/* In one piece, and byte by byte. */
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int bytewise = 0; bytewise < 2; bytewise++) {
			uint8_t into[3][100];
			struct stream_pair *p = victim(into);
			static struct script s;
			s = (struct script){ .epoch = 1 };
			add_epoch(&s, 1, plan_a);
			cases[i].make(&s);
			for (size_t k = 0; bytewise && k < s.len && !p->closed[1]; k++)
				pair_feed(p, 1, s.bytes + k, 1);
			enum hd_close why = bytewise ? p->closed[1] : pair_feed(p, 1, s.bytes, s.len);
			CHECK(why == cases[i].why, "%s: closed for \"%s\" (%s), not \"%s\"", cases[i].name,
				why ? hd_close_name(why) : "nothing",
				p->diag[1].text, cases[i].why ? hd_close_name(cases[i].why) : "nothing");
			CHECK(p->heard[1].n_arrivals == cases[i].arrivals && p->heard[1].n_messages == 0 &&
				p->heard[1].n_stales == 0, "%s: %u arrivals",
				cases[i].name, p->heard[1].n_arrivals);
			CHECK(!why == !p->diag[1].text[0], "%s: %s", cases[i].name, p->diag[1].text);
			pair_free(p);
		}
}

/* Bytes of streams that are over use credit too, or a peer could send them for ever. */
static void bytes_beyond_the_credit_close(void **state)
{
	static const uint8_t classes[] = { HD_CLASS_CONTROL, HD_CLASS_BULK };
	static const size_t windows[] = { HD_CREDIT_CONTROL, HD_CREDIT_BULK };

	(void)state;
	for (int k = 0; k < 2; k++) {
		uint8_t into[3][100];
		struct stream_pair *p = victim(into);
		static struct script s;
		s = (struct script){ .epoch = 1 };
		add_epoch(&s, 1, plan_a);
		add_open(&s, 0, 1, CONTROL(20, 0));
		assert_int_equal(pair_feed(p, 1, s.bytes, s.len), HD_CLOSE_NONE);
		s.len = 0;
		add_data(&s, classes[k], 1, 0, 1 << 15, 0);
		for (size_t fed = 0; fed < windows[k]; fed += 1 << 15)
			CHECK(pair_feed(p, 1, s.bytes, s.len) == HD_CLOSE_NONE, "after %zu bytes: %s", fed,
				p->diag[1].text);
		assert_int_equal(pair_feed(p, 1, s.bytes, s.len), HD_CLOSE_CREDIT);
		pair_free(p);
	}
}

static void more_streams_than_may_be_under_way_close(void **state)
{
	static struct hd_transfer many[HD_STREAMS_OPEN + 1];
	struct stream_pair *p = pair_make(true, true, 1);
	static struct script s;
	uint8_t into[10];

	(void)state;
	for (uint32_t i = 0; i <= HD_STREAMS_OPEN; i++)
		many[i] = (struct hd_transfer){ i, 1, 10 };
	hd_stream_epoch(p->stream[1], 1, plan_a);
	assert_int_equal(hd_stream_channel(p->stream[1], many, HD_STREAMS_OPEN + 1, NULL, 0, NULL), HD_OK);
	for (uint32_t i = 0; i <= HD_STREAMS_OPEN; i++) {
		assert_int_equal(hd_stream_post(p->stream[1], i, into, 0, NULL), HD_OK);
		s = (struct script){ .epoch = 1 };
		add_open(&s, 1, i + 1, PLANNED(i, 10));
		CHECK(pair_feed(p, 1, s.bytes, s.len) == (i < HD_STREAMS_OPEN ? HD_CLOSE_NONE :
			HD_CLOSE_STREAM), "stream %u: %s", i + 1, p->diag[1].text);
	}
	pair_free(p);
}

/* ---- what a peer may do, and this end in between ---- */

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

/* Advice goes for what has begun, is planned, is that transfer, and could be more urgent; each is more
 * urgent than the one before. */
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
	hd_stream_want(p->stream[1], 1);                          /* only the answer is under way */
	assert_false(hd_stream_has_out(p->stream[1]));
	s.len = 0;
	hd_open_put(&PLANNED(4, 100), open);
	add(&s, (struct hd_frame){ .type = HD_FRAME_OPEN, .class = 1, .flags = HD_FRAME_CRC, .stream = 2,
		.step = 5, .priority = INT32_MIN,
		.len = hd_open_len }, open);
	add_open(&s, 1, 3, PLANNED(3, 100));
	assert_int_equal(fed(p, &s), HD_CLOSE_NONE);
	hd_stream_want(p->stream[1], 4);                          /* nothing is more urgent */
	hd_stream_want(p->stream[1], 1);                          /* has not begun */
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
		p->stream[1]->n_notes = HD_STREAMS_OPEN;
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
		cmocka_unit_test(who_breaks_a_rule_is_closed_for_it_and_changes_nothing),
		cmocka_unit_test(bytes_beyond_the_credit_close),
		cmocka_unit_test(an_epoch_between_the_bytes_of_a_frame),
		cmocka_unit_test(what_is_held_stays_held_until_its_reason_is_gone),
		cmocka_unit_test(both_ends_agree_before_a_slot_counts),
		cmocka_unit_test(a_wait_is_told_for_its_transfer_alone),
		cmocka_unit_test(buffers_under_way_count),
		cmocka_unit_test(slots_of_a_transfer_are_promised_together),
		cmocka_unit_test(only_what_is_fenced_is_dropped),
		cmocka_unit_test(a_worn_connection_is_closed),
		cmocka_unit_test(more_streams_to_cancel_than_may_be_under_way_close),
		cmocka_unit_test(what_comes_is_counted_and_timed),
		cmocka_unit_test(a_good_bye_shows_only_what_prints),
		cmocka_unit_test(slots_of_the_plan_are_granted_once),
		cmocka_unit_test(a_message_goes_beside_all_else),
		cmocka_unit_test(more_streams_than_may_be_under_way_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
