/* Peers that break the rules, frame by frame: closed for the right reason, and nothing delivered. */
#include "wire/stream.h"

#include "base/le.h"
#include "wire/stream_int.h"
#include "wire/testing_script.h"

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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_breaks_a_rule_is_closed_for_it_and_changes_nothing),
		cmocka_unit_test(bytes_beyond_the_credit_close),
		cmocka_unit_test(more_streams_than_may_be_under_way_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
