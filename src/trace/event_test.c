#include "trace/event.h"

#include <string.h>

#include "tests/check.h"

static void a_base_slot_has_the_layout_of_the_table(void **state)
{
	static const uint8_t want[HD_SLOT_BYTES] = {
		1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 1 | 16, 4, 0x21, 0x22, 0x23, 0x24,
			0x31, 0x32, 0x33, 0x34,
		0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
	};
	struct hd_event event = {
		.t0 = UINT64_C(0x0807060504030201), .duration = UINT64_C(0x161514131211),
			.flags = HD_EVENT_FLAG_EXT | HD_EVENT_FLAG_SIMULATED,
		.kind = HD_EVENT_SEND, .name = 0x24232221, .instr = 0x34333231,
		.arg = UINT64_C(0x4847464544434241),
	}, back;
	uint8_t slot[HD_SLOT_BYTES];
	(void)state;

	hd_event_put(slot, &event);
	assert_memory_equal(slot, want, sizeof want);
	assert_true(hd_event_get(slot, &back) && !hd_slot_is_ext(slot));
	assert_true(back.t0 == event.t0 && back.duration == event.duration && back.flags == event.flags &&
		back.kind == event.kind);
	assert_true(back.name == event.name && back.instr == event.instr && back.arg == event.arg);
}

static void extensions_have_the_layout_of_the_table(void **state)
{
	static const uint8_t want[2][HD_SLOT_BYTES] = {
		{ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 },
		{ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 255 },
	};
	struct hd_event_transfer transfer = {
		.gate_ns = 0x04030201, .first_ns = 0x08070605, .predicted_ns = 0x0c0b0a09, .peer = 0x0e0d,
			.primitive = 15,
		.flow = UINT64_C(0x1817161514131211), .chunks = 0x1c1b1a19, .preempted = 0x1e1d,
		.class = 0x201f,
	}, transfer_back;
	struct hd_event_probe probe = { UINT64_C(0x0807060504030201), 0x0c0b0a09 }, probe_back;
	struct hd_event event;
	uint8_t slot[HD_SLOT_BYTES];
	(void)state;

	hd_event_put_transfer(slot, &transfer);
	assert_memory_equal(slot, want[0], sizeof slot);
	assert_true(hd_event_get_transfer(slot, &transfer_back) && !hd_event_get(slot, &event));
	assert_true(transfer_back.gate_ns == transfer.gate_ns && transfer_back.first_ns == transfer.first_ns
		&& transfer_back.predicted_ns == transfer.predicted_ns);
	assert_true(transfer_back.peer == transfer.peer && transfer_back.primitive == 15 &&
		transfer_back.flow == transfer.flow);
	assert_true(transfer_back.chunks == transfer.chunks &&
		transfer_back.preempted == transfer.preempted && transfer_back.class == transfer.class);
	hd_event_put_probe(slot, &probe);
	assert_memory_equal(slot, want[1], sizeof slot);
	assert_true(hd_event_get_probe(slot, &probe_back) && probe_back.between == probe.between &&
		probe_back.peer == probe.peer);
}

static void a_base_slot_is_no_extension(void **state)
{
	struct hd_event event = { .kind = HD_EVENT_OP };
	struct hd_event_transfer transfer = { .chunks = 7 };
	struct hd_event_probe probe = { .peer = 7 };
	uint8_t slot[HD_SLOT_BYTES];
	(void)state;

	hd_event_put(slot, &event);
	assert_true(!hd_event_get_transfer(slot, &transfer) && !hd_event_get_probe(slot, &probe) &&
		transfer.chunks == 7 && probe.peer == 7);
}

static void long_durations_and_spans_saturate(void **state)
{
	struct hd_event event = { .kind = HD_EVENT_OP, .duration = UINT64_MAX, .flags = 0x15 }, back;
	uint8_t slot[HD_SLOT_BYTES];
	(void)state;

	hd_event_put(slot, &event);
	assert_true(hd_event_get(slot, &back) && back.duration == (UINT64_C(1) << 48) - 1 &&
		back.flags == 0x15 && back.kind == HD_EVENT_OP);
	assert_true(hd_span_ns(5) == 5 && hd_span_ns(UINT64_C(1) << 32) == UINT32_MAX &&
		hd_span_ns(UINT32_MAX) == UINT32_MAX);
}

static void every_kind_has_its_number_and_text_and_others_are_kept(void **state)
{
	static const char *const want[] = { NULL, "step_begin", "step_end", "op", "send", "recv", "read",
		"wait", "counter", "epoch", "clock", "mark", "lost" };
	(void)state;

	for (unsigned kind = 0; kind < 255; kind++) {
		struct hd_event event = { .kind = (uint8_t)kind }, back;
		uint8_t slot[HD_SLOT_BYTES];
		const char *text = hd_event_text((uint8_t)kind);
		CHECK(kind < 13 && want[kind] ? text && strcmp(text, want[kind]) == 0 : !text,
			"kind %u is '%s'", kind, text ? text : "unknown");
		CHECK(hd_event_has_ext((uint8_t)kind) == (kind == 4 || kind == 5 || kind == 6 || kind == 10),
			"kind %u", kind);
		hd_event_put(slot, &event);
		assert_true(hd_event_get(slot, &back) && back.kind == kind);
	}
	assert_string_equal(hd_wait_text(HD_WAIT_DATA), "data");
	assert_null(hd_wait_text(0));
	assert_null(hd_wait_text(8));
	assert_int_equal(hd_wait_arg(HD_WAIT_TRANSFER, 9), 9 << 8 | 1);
}

static void flows_differ_by_each_of_their_numbers(void **state)
{
	uint64_t flow = hd_event_flow(1, 2, 3, 4, 5);
	(void)state;

	assert_true(flow == hd_event_flow(1, 2, 3, 4, 5));
	assert_true(flow != hd_event_flow(0, 2, 3, 4, 5) && flow != hd_event_flow(1, 0, 3, 4, 5) &&
		flow != hd_event_flow(1, 2, 0, 4, 5));
	assert_true(flow != hd_event_flow(1, 2, 3, 5, 4) && flow != hd_event_flow(1, 2, 3, 4, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_base_slot_has_the_layout_of_the_table),
		cmocka_unit_test(extensions_have_the_layout_of_the_table),
		cmocka_unit_test(a_base_slot_is_no_extension),
		cmocka_unit_test(long_durations_and_spans_saturate),
		cmocka_unit_test(every_kind_has_its_number_and_text_and_others_are_kept),
		cmocka_unit_test(flows_differ_by_each_of_their_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
