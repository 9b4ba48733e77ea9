#include "trace/flight.h"

#include <string.h>

#include "base/le.h"
#include "tests/check.h"

enum { NSLOTS = 16, NRINGS = 3, NAMES_AT = HD_FLIGHT_HEADER_BYTES, RINGS_AT = NAMES_AT + HD_NAMES_BYTES,
	RING_BYTES = 64 + NSLOTS * 32,
       LEN = RINGS_AT + NRINGS * RING_BYTES };
static _Alignas(64) uint8_t memory[LEN];
static struct hd_flight flight;
static struct hd_flight_view view;

static int format(void **state)
{
	static struct hd_flight_info info = {
		.job = { 1, 2, 3 }, .boot = { 9, 8 }, .worker = 5, .pid = 4242, .clock = HD_FLIGHT_CLOCK_TSC,
			.realtime_ns = -7, .boottime_ns = 11,
		.trace_time = 13, .first = { 100, 200 }, .latest = { 100, 200 }, .nrings = NRINGS,
		.lane = { { HD_LANE_DEVICE, 0, "device 0" }, { HD_LANE_DEVICE, 1, "device 1" },
		{ HD_LANE_READER, 0, "a name of 32 bytes, not one less" } },
	};
	(void)state;

	memset(memory, 0, sizeof memory);
	assert_int_equal(hd_flight_bytes(NRINGS, NSLOTS), LEN);
	hd_flight_format(&flight, memory, &info, NSLOTS);
	return 0;
}

static void parse(void)
{
	struct hd_diag diag = { "" };
	CHECK(hd_flight_parse(memory, LEN, "f", &view, &diag) == HD_OK, "%s", diag.text);
}

static void check_refused(size_t len, const char *says)
{
	struct hd_diag diag = { "" };
	enum hd_err err = hd_flight_parse(memory, len, "f.hdfr", &view, &diag);

	CHECK(err == HD_E_INPUT && strstr(diag.text, says) && strstr(diag.text, "f.hdfr"),
		"%d: '%s' should hold '%s'", (int)err, diag.text, says);
}

static void what_was_formatted_reads_back(void **state)
{
	(void)state;
	parse();
	assert_true(view.info.worker == 5 && view.info.pid == 4242 &&
		view.info.clock == HD_FLIGHT_CLOCK_TSC && view.info.nrings == NRINGS);
	assert_true(view.info.job[2] == 3 && view.info.boot[0] == 9 && view.info.realtime_ns == -7 &&
		view.info.boottime_ns == 11
		&& view.info.trace_time == 13);
	assert_true(view.info.first.tick == 100 && view.info.latest.ns == 200 &&
		view.state == HD_FLIGHT_RUNNING);
	assert_string_equal(view.info.lane[1].name, "device 1");
	assert_string_equal(view.info.lane[2].name, "a name of 32 bytes, not one less");
	assert_true(view.info.lane[2].kind == HD_LANE_READER && view.info.lane[1].index == 1);
	assert_string_equal(hd_lane_text(view.info.lane[0].kind), "device");
	assert_null(hd_lane_text(0));
	assert_null(hd_lane_text(5));
}

/* The bytes of the header's picture, looked at without the parser. */
static void the_layout_is_that_of_the_picture(void **state)
{
	(void)state;
	assert_memory_equal(memory, "HDFLIGHT", 8);
	assert_true(hd_get32(memory + 8) == 1 && hd_get32(memory + 48) == 5 &&
		hd_get32(memory + 52) == 4242 && hd_get32(memory + 56) == 2
		&& hd_get32(memory + 60) == 3);
	assert_true(hd_get64(memory + 72) == 11 && hd_get64(memory + 80) == 13 &&
		hd_get64(memory + 88) == 100 && hd_get64(memory + 96) == 200);
	assert_true(hd_get64(memory + 144) == 4096 && hd_get32(memory + 152) == 256 << 10 &&
		hd_get32(memory + 140) == 2);
	assert_true(hd_get64(memory + 1024 + 48) == RINGS_AT + RING_BYTES &&
		hd_get32(memory + 1024 + 48 + 8) == NSLOTS
		&& hd_get16(memory + 1024 + 48 + 14) == 1);
	assert_memory_equal(memory + 1024 + 48 + 16, "device 1", 9);
}

static void events_and_names_are_found_from_the_bytes_alone(void **state)
{
	struct hd_event event = { .kind = HD_EVENT_OP, .arg = 77 }, back;
	struct hd_ring_reader reader;
	uint8_t slot[NSLOTS][HD_SLOT_BYTES];
	(void)state;

	event.name = hd_names_intern(&flight.names, "matmul", 6);
	hd_event_put(slot[0], &event);
	hd_ring_put(&flight.ring[1], slot[0]);
	parse();
	hd_ring_read_begin(&reader, view.ring[1].memory, view.ring[1].nslots);
	assert_int_equal(hd_ring_read(&reader, slot, NSLOTS), 1);
	assert_true(hd_event_get(slot[0], &back) && back.arg == 77);
	assert_string_equal(hd_names_text(view.names, view.names_used, back.name), "matmul");
	hd_ring_read_begin(&reader, view.ring[0].memory, view.ring[0].nslots);
	assert_int_equal(hd_ring_read(&reader, slot, NSLOTS), 0);
}

static void the_latest_pair_is_turned_and_the_state_is_kept(void **state)
{
	(void)state;
	for (uint64_t i = 1; i < 5; i++) {
		hd_flight_tick(&flight, (struct hd_tick){ 1000 * i, 2000 * i });
		parse();
		assert_true(view.info.latest.tick == 1000 * i && view.info.latest.ns == 2000 * i &&
			view.info.first.tick == 100);
	}
	hd_flight_state_set(memory, HD_FLIGHT_SIGNAL);
	parse();
	assert_int_equal(view.state, HD_FLIGHT_SIGNAL);
	/* a pair half rewritten is not the one in use */
	hd_put64(memory + (hd_get32(memory + 136) ? 104 : 120), 1);
	parse();
	assert_int_equal(view.info.latest.tick, 4000);
}

static void every_truncation_is_refused(void **state)
{
	(void)state;
	for (size_t len = 0; len < LEN; len += len < HD_FLIGHT_HEADER_BYTES || len > RINGS_AT ? 1 : 64)
		check_refused(len, "");
	check_refused(HD_FLIGHT_HEADER_BYTES - 1, "cut off");
	check_refused(LEN - 1, "ring 2 of 16 slots");
}

static void impossible_fields_are_named(void **state)
{
	static const struct { size_t at; unsigned bytes; uint64_t value; const char *says; } cases[] = {
		{ 0, 4, 0, "magic" }, { 8, 4, 2, "version 2" }, { 12, 4, 3, "state 3" }, { 56, 4, 0, "clock 0" }, { 56, 4, 4, "clock 4" }, { 136, 4,
			2, "pair 2" },
		{ 60, 4, 65, "65 rings" }, { 144, 8, UINT64_MAX, "names at byte" }, { 144, 8, 4095, "names at byte" }, { 152, 4, LEN, "names at byte" },
		{ 140, 4, (256 << 10) + 1, "names at byte" }, { 1024 + 8, 4, 15, "ring 0 has 15 slots" }, { 1024 + 8, 4, 0, "ring 0 has 0 slots" },
		{ 1024 + 8, 4, 1u << 31, "ring 0 has 2147483648" }, { 1024 + 48 + 8, 4, 1 << 24, "ring 1 of 16777216 slots" }, { 1024, 8, 64, "ring 0 of 16" },
		{ 1024, 8, RINGS_AT + 8, "ring 0 of 16" }, { 1024, 8, UINT64_MAX - 63, "ring 0 of 16" }, { 1024 + 96, 8, LEN - 64, "ring 2 of 16" },
	};
	(void)state;

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		format(NULL);
		if (cases[c].bytes == 8)
			hd_put64(memory + cases[c].at, cases[c].value);
		else
			hd_put32(memory + cases[c].at, (uint32_t)cases[c].value);
		check_refused(LEN, cases[c].says);
	}
}

/* Any one bit of the header flipped: refused, or parsed into places that lie in the bytes. */
static void a_flipped_bit_never_leads_outside(void **state)
{
	struct hd_ring_reader reader;
	uint8_t slot[NSLOTS][HD_SLOT_BYTES];
	(void)state;

	for (size_t bit = 0; bit < 8 * HD_FLIGHT_HEADER_BYTES; bit++) {
		memory[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (hd_flight_parse(memory, LEN, "f", &view, NULL) == HD_OK) {
			assert_true(view.names >= (char *)memory &&
				view.names + view.names_used <= (char *)memory + LEN);
			for (uint32_t i = 0; i < view.info.nrings; i++) {
				const uint8_t *at = view.ring[i].memory;
				CHECK(at >= memory && at + hd_ring_bytes(view.ring[i].nslots) <= memory + LEN,
					"bit %zu", bit);
				hd_ring_read_begin(&reader, at, view.ring[i].nslots);
				(void)hd_ring_read(&reader, slot, NSLOTS);
			}
		}
		memory[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void lanes_may_have_slots_of_their_own(void **state)
{
	static _Alignas(64) uint8_t file[RINGS_AT + 64 + NSLOTS * 32 + 64 + 4 * 32];
	const struct hd_flight_info info = { .worker = UINT32_MAX, .clock = HD_FLIGHT_CLOCK_SIMULATED,
		.nrings = 2,
		.lane = { { HD_LANE_DEVICE, 0, "device 0" }, { HD_LANE_CONTROL, 0, "control" } },
		.nslots = { 0, 4 } };
	uint8_t slot[HD_SLOT_BYTES];
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_flight_bytes_of(&info, NSLOTS), sizeof file);
	hd_flight_format(&flight, file, &info, NSLOTS);
	hd_event_put(slot, &(struct hd_event){ .t0 = 1, .kind = HD_EVENT_MARK });
	for (int i = 0; i < 9; i++)
		hd_ring_put(&flight.ring[1], slot);
	hd_event_put(slot, &(struct hd_event){ .t0 = 2, .kind = HD_EVENT_OP });
	for (int i = 0; i < NSLOTS; i++)
		hd_ring_put(&flight.ring[0], slot);
	CHECK(hd_flight_parse(file, sizeof file, "f", &view, &diag) == HD_OK, "%s", diag.text);
	assert_true(view.ring[0].nslots == NSLOTS && view.ring[1].nslots == 4 &&
		view.info.nslots[1] == 4);
	struct hd_ring_reader reader;
	uint8_t got[NSLOTS][HD_SLOT_BYTES];
	struct hd_event event;
	hd_ring_read_begin(&reader, view.ring[1].memory, 4);
	assert_int_equal(hd_ring_read(&reader, got, NSLOTS), 2);
	assert_true(hd_event_get(got[0], &event) && event.kind == HD_EVENT_MARK);
}

static void a_worker_has_its_number_when_it_has_joined(void **state)
{
	(void)state;
	parse();
	assert_int_equal(view.info.worker, 5);
	hd_flight_worker_set(memory, 11);
	parse();
	assert_int_equal(view.info.worker, 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_was_formatted_reads_back, format),
		cmocka_unit_test_setup(the_layout_is_that_of_the_picture, format),
		cmocka_unit_test_setup(events_and_names_are_found_from_the_bytes_alone, format),
		cmocka_unit_test_setup(the_latest_pair_is_turned_and_the_state_is_kept, format),
		cmocka_unit_test_setup(every_truncation_is_refused, format),
		cmocka_unit_test(impossible_fields_are_named),
		cmocka_unit_test(lanes_may_have_slots_of_their_own),
		cmocka_unit_test_setup(a_worker_has_its_number_when_it_has_joined, format),
		cmocka_unit_test_setup(a_flipped_bit_never_leads_outside, format),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
