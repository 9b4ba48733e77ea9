#include "trace/drain.h"

#include <string.h>

#include "tests/check.h"

enum { NSLOTS = 64, NRINGS = 2, LEN = HD_FLIGHT_HEADER_BYTES + HD_NAMES_BYTES + NRINGS * (64 + NSLOTS * 32),
       CAP = 1 << 20 };
static _Alignas(64) uint8_t memory[LEN];
static struct hd_flight flight;
static struct hd_flight_view view;
static struct hd_drain drain;
static uint8_t file[CAP];
static size_t len, most = CAP;
static _Atomic uint64_t to;

static enum hd_err put(void *self, const void *bytes, size_t n, struct hd_diag *diag)
{
	(void)self;
	if (len + n > most)
		return hd_fail(diag, HD_E_NOSPACE, "full");
	memcpy(file + len, bytes, n);
	len += n;
	return HD_OK;
}

static const struct hd_drain_sink sink = { NULL, put };

static int begin(void **state)
{
	const struct hd_flight_info info = { .worker = 4, .clock = HD_FLIGHT_CLOCK_SIMULATED,
		.nrings = NRINGS,
		.lane = { { HD_LANE_DEVICE, 0, "dev 0" }, { HD_LANE_TRANSFER, 0, "transfers" } } };
	(void)state;

	len = 0;
	most = CAP;
	to = 0;
	hd_flight_format(&flight, memory, &info, NSLOTS);
	assert_int_equal(hd_flight_parse(memory, LEN, "f", &view, NULL), HD_OK);
	assert_int_equal(hd_drain_head(&sink, "{}", NULL), HD_OK);
	return hd_drain_begin(&drain, &sink, memory, &view, memory, 0, NULL);
}

static void op(uint64_t t0, uint64_t took)
{
	uint8_t slot[HD_SLOT_BYTES];

	hd_event_put(slot, &(struct hd_event){ .t0 = t0, .duration = took, .kind = HD_EVENT_OP });
	hd_ring_put(&flight.ring[0], slot);
}

static void transfer(uint64_t t0, uint64_t took)
{
	uint8_t slot[HD_SLOT_BYTES], ext[HD_SLOT_BYTES];

	hd_event_put(slot, &(struct hd_event){ .t0 = t0, .duration = took, .flags = HD_EVENT_FLAG_EXT,
		.kind = HD_EVENT_SEND });
	hd_event_put_transfer(ext, &(struct hd_event_transfer){ .flow = t0 });
	hd_ring_put_pair(&flight.ring[1], slot, ext);
}

static void pass(uint64_t from) { assert_int_equal(hd_drain_pass(&drain, from, &to, NULL), HD_OK); }

/* What a ring has in the file: times of events, extensions; each in the place that the ring counts. */
struct got { uint64_t t0[4096], index[4096], lost, nlost; uint32_t n, next; };

static void read_ring(uint32_t ring, struct got *got)
{
	struct hd_hdt_reader reader;
	struct hd_hdt_section section;
	struct hd_hdt_rings rings;
	uint64_t n;

	memset(got, 0, sizeof *got);
	assert_int_equal(hd_hdt_begin(&reader, file, len, "f", NULL), HD_OK);
	for (;;) {
		assert_int_equal(hd_hdt_next(&reader, &section, NULL), HD_OK);
		if (!section.type)
			return;
		if (section.type != HD_HDT_RINGS)
			continue;
		assert_true(hd_hdt_rings_get(section.stored, section.raw_bytes, &rings, &n));
		for (uint64_t i = 0; i < n && rings.ring == ring; i++) {
			const uint8_t *slot = section.stored + HD_HDT_RINGS_BYTES + i * HD_SLOT_BYTES;
			struct hd_event event;
			got->nlost = rings.nlost;
			if (!hd_event_get(slot, &event))
				got->next++;      /* an extension */
			else if (event.kind == HD_EVENT_LOST)
				got->lost += event.arg;
			else {
				got->index[got->n] = rings.first + i;
				got->t0[got->n++] = event.t0;
			}
		}
	}
}

static void all_that_is_recorded_is_copied_once(void **state)
{
	static struct got got;
	(void)state;

	for (uint64_t i = 0; i < 500; i++) {
		op(i, 1);
		if (i % 50 == 7)
			pass(0);
	}
	pass(0);
	pass(0);
	read_ring(0, &got);
	assert_true(got.n == 500 && got.lost == 0 && got.nlost == 0);
	for (uint64_t i = 0; i < 500; i++)
		CHECK(got.t0[i] == i && got.index[i] == i, "event %u", (unsigned)i);
}

static void what_the_writer_overwrote_is_counted(void **state)
{
	static struct got got;
	(void)state;

	op(0, 1);
	pass(0);
	for (uint64_t i = 1; i <= 300; i++)
		op(i, 1);
	pass(0);
	read_ring(0, &got);
	/* 62 of 64 are whole: 301 - 62 = 239 and later ones are there */
	assert_true(got.n == 1 + 62 && got.t0[1] == 239 && got.index[1] == 239 && got.lost == 238 &&
		got.nlost == 238 && hd_drain_lost(&drain) == 238);
}

static void a_window_has_what_touches_it(void **state)
{
	static struct got got;
	(void)state;

	for (uint64_t t = 0; t < 200; t += 10)        /* long before: not missed, though overwritten */
		for (int i = 0; i < 10; i++)
			op(t, 5);
	for (uint64_t t = 200; t < 400; t += 10) {
		op(t, 5);
		transfer(t, 30);
	}
	to = 330;
	pass(251);
	read_ring(0, &got);
	assert_true(got.n == 9 && got.t0[0] == 250 && got.t0[8] == 330);
	read_ring(1, &got);
	assert_true(got.n == 11 && got.t0[0] == 230 && got.t0[10] == 330 && got.next == 11);
	assert_true(got.nlost == 0 && got.lost == 0);
}

static void names_come_before_what_refers_to_them(void **state)
{
	char names[64] = "";
	struct hd_hdt_reader reader;
	struct hd_hdt_section section;
	uint32_t process, offset, used = 0;
	bool named = false;
	(void)state;

	op(1, 1);
	pass(0);
	const uint32_t late = hd_names_intern(&flight.names, "late", 4);
	op(2, 1);
	pass(0);
	assert_int_equal(hd_hdt_begin(&reader, file, len, "f", NULL), HD_OK);
	do {
		assert_int_equal(hd_hdt_next(&reader, &section, NULL), HD_OK);
		if (section.type == HD_HDT_NAMES) {
			assert_true(hd_hdt_names_get(section.stored, section.raw_bytes, &process, &offset));
			assert_int_equal(offset, used);
			used += (uint32_t)section.raw_bytes - HD_HDT_NAMES_BYTES;
			memcpy(names + offset, section.stored + HD_HDT_NAMES_BYTES, used - offset);
			named = used > late;
		}
	} while (section.type);
	assert_true(named);
	assert_string_equal(names + late, "late");
}

static void a_full_disk_ends_it_and_what_was_written_reads(void **state)
{
	static struct got got;
	struct hd_diag diag = { "" };
	enum hd_err err = HD_OK;
	(void)state;

	most = len + 3000;
	for (uint64_t i = 0; i < 400 && !err; i++) {
		op(i, 1);
		if (i % 20 == 19)
			err = hd_drain_pass(&drain, 0, &to, &diag);
	}
	assert_int_equal(err, HD_E_NOSPACE);
	read_ring(0, &got);
	assert_true(got.n >= 60 && got.n < 100 && got.t0[got.n - 1] == got.n - 1);
}

static void a_second_window_follows_in_the_same_file(void **state)
{
	static struct got got;
	(void)state;

	for (uint64_t t = 0; t < 20; t++)
		op(t, 1);
	to = 9;
	pass(5);
	hd_drain_again(&drain);
	for (uint64_t t = 20; t < 400; t++)
		op(t, 1);
	to = 0;
	pass(390);
	read_ring(0, &got);
	assert_true(got.n == 6 + 11 && got.t0[0] == 4 && got.t0[5] == 9 && got.t0[6] == 389 && got.lost == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_that_is_recorded_is_copied_once, begin),
		cmocka_unit_test_setup(what_the_writer_overwrote_is_counted, begin),
		cmocka_unit_test_setup(a_window_has_what_touches_it, begin),
		cmocka_unit_test_setup(names_come_before_what_refers_to_them, begin),
		cmocka_unit_test_setup(a_full_disk_ends_it_and_what_was_written_reads, begin),
		cmocka_unit_test_setup(a_second_window_follows_in_the_same_file, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
