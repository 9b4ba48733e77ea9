#include "trace/trace_file.h"

#include <string.h>

#include "base/le.h"
#include "tests/check.h"

enum { CAP = 32 << 10, NSLOTS = 3 };
static uint8_t file[CAP];
static size_t len;

static void add(const void *bytes, size_t n)
{
	assert_true(len + n <= CAP);
	memcpy(file + len, bytes, n);
	len += n;
}

static void section(enum hd_hdt_type type, const void *payload, size_t n)
{
	uint8_t head[HD_HDT_SECTION_BYTES];

	hd_hdt_section(head, type, 0, payload, n, n);
	add(head, sizeof head);
	add(payload, n);
}

static void add_process(uint32_t process, uint32_t worker)
{
	static _Alignas(64) uint8_t flight_file[HD_FLIGHT_HEADER_BYTES + HD_NAMES_BYTES + 64 + 4 * 32];
	static struct hd_flight flight;
	const struct hd_flight_info info = { .worker = worker, .pid = 77, .clock = HD_FLIGHT_CLOCK_SIMULATED,
		.realtime_ns = -5, .trace_time = 1000, .nrings = 1,
		.lane = { { HD_LANE_CONTROL, 3, "control" } } };
	uint8_t payload[HD_HDT_PROCESS_BYTES];

	assert_int_equal(hd_flight_bytes(1, 4), sizeof flight_file);
	hd_flight_format(&flight, flight_file, &info, 4);
	hd_hdt_process(payload, process, flight_file);
	section(HD_HDT_PROCESS, payload, sizeof payload);
}

/* A process, a name, three slots after seven that were missed, an unknown type, the process again. */
static int write_file(void **state)
{
	uint8_t magic[HD_HDT_MAGIC_BYTES], names[HD_HDT_NAMES_BYTES + 7] = { 0 },
		rings[HD_HDT_RINGS_BYTES + NSLOTS * HD_SLOT_BYTES] = { 0 };
	(void)state;

	len = 0;
	hd_hdt_magic(magic);
	add(magic, sizeof magic);
	add_process(2, 9);
	hd_hdt_names(names, 2, 2);
	memcpy(names + HD_HDT_NAMES_BYTES, "matmul", 7);
	section(HD_HDT_NAMES, names, sizeof names);
	hd_hdt_rings(rings, &(struct hd_hdt_rings){ .process = 2, .ring = 1, .first = UINT64_C(1) << 40,
		.nlost = 7 });
	for (uint32_t i = 0; i < NSLOTS; i++)
		hd_event_put(rings + HD_HDT_RINGS_BYTES + (size_t)i * HD_SLOT_BYTES, &(struct hd_event){
			.t0 = 10 + i, .kind = HD_EVENT_OP });
	section(HD_HDT_RINGS, rings, sizeof rings);
	section((enum hd_hdt_type)4711, "later", 5);
	add_process(2, 10);
	return 0;
}

static struct hd_hdt_section next(struct hd_hdt_reader *reader)
{
	struct hd_hdt_section got;
	struct hd_diag diag = { "" };

	CHECK(hd_hdt_next(reader, &got, &diag) == HD_OK, "%s", diag.text);
	return got;
}

static void check_process(const struct hd_hdt_section *got, uint32_t worker)
{
	struct hd_flight_info info;
	enum hd_flight_state running;
	uint32_t process;

	assert_int_equal(got->type, HD_HDT_PROCESS);
	assert_int_equal(hd_hdt_process_get(got->stored, got->raw_bytes, "f", &process, &info, &running,
		NULL), HD_OK);
	assert_true(process == 2 && info.worker == worker && info.realtime_ns == -5 && info.nrings == 1 &&
		running == HD_FLIGHT_RUNNING);
	assert_true(info.lane[0].kind == HD_LANE_CONTROL && info.lane[0].index == 3);
	assert_string_equal(info.lane[0].name, "control");
}

static void what_was_written_reads_back(void **state)
{
	struct hd_hdt_reader reader;
	struct hd_hdt_rings rings;
	struct hd_event event;
	uint32_t process, offset;
	uint64_t n;
	(void)state;

	assert_int_equal(hd_hdt_begin(&reader, file, len, "f", NULL), HD_OK);
	struct hd_hdt_section got = next(&reader);
	check_process(&got, 9);
	got = next(&reader);
	assert_int_equal(got.type, HD_HDT_NAMES);
	assert_true(hd_hdt_names_get(got.stored, got.raw_bytes, &process, &offset));
	assert_true(process == 2 && offset == 2);
	assert_string_equal((const char *)got.stored + HD_HDT_NAMES_BYTES, "matmul");
	got = next(&reader);
	assert_true(got.type == HD_HDT_RINGS && hd_hdt_rings_get(got.stored, got.raw_bytes, &rings, &n));
	assert_true(rings.process == 2 && rings.ring == 1 && rings.first == UINT64_C(1) << 40 &&
		rings.nlost == 7 && n == NSLOTS);
	assert_true(hd_event_get(got.stored + HD_HDT_RINGS_BYTES + 2 * HD_SLOT_BYTES, &event) &&
		event.t0 == 12);
	got = next(&reader);
	assert_true(got.type == 4711 && !hd_hdt_type_text(got.type) && got.raw_bytes == 5);
	got = next(&reader);
	check_process(&got, 10);
	got = next(&reader);
	assert_true(got.type == 0 && !reader.cut);
	assert_string_equal(hd_hdt_type_text(HD_HDT_RINGS), "rings");
}

static uint32_t whole_sections(size_t cut_at, bool *cut)
{
	struct hd_hdt_reader reader;
	uint32_t n = 0;

	assert_int_equal(hd_hdt_begin(&reader, file, cut_at, "f", NULL), HD_OK);
	while (next(&reader).type)
		n++;
	*cut = reader.cut;
	return n;
}

static void a_file_cut_anywhere_gives_the_sections_before(void **state)
{
	size_t end[6] = { HD_HDT_MAGIC_BYTES };
	struct hd_hdt_reader reader;
	uint32_t n = 0;
	(void)state;

	assert_int_equal(hd_hdt_begin(&reader, file, len, "f", NULL), HD_OK);
	while (next(&reader).type)
		end[++n] = reader.at;
	assert_int_equal(n, 5);
	for (size_t at = HD_HDT_MAGIC_BYTES; at <= len; at++) {
		uint32_t want = 0;
		bool cut;
		while (want < 5 && end[want + 1] <= at)
			want++;
		uint32_t got = whole_sections(at, &cut);
		CHECK(got == want && cut == (at != end[want]), "byte %zu: %u sections, not %u", at, got,
			want);
	}
	assert_int_equal(hd_hdt_begin(&reader, file, HD_HDT_MAGIC_BYTES - 1, "f", NULL), HD_E_INPUT);
}

/* Each byte of a payload or of the fields that a hash or a law covers. */
static void damage_is_seen(void **state)
{
	const size_t at[] = { HD_HDT_MAGIC_BYTES, HD_HDT_MAGIC_BYTES + 16, HD_HDT_MAGIC_BYTES + 24,
		HD_HDT_MAGIC_BYTES + 32, HD_HDT_MAGIC_BYTES + 2000 };
	(void)state;

	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
		struct hd_hdt_reader reader;
		struct hd_hdt_section got;
		struct hd_diag diag = { "" };
		uint8_t was = file[at[i]];

		file[at[i]] = i ? (uint8_t)(was ^ 4) : 0;
		assert_int_equal(hd_hdt_begin(&reader, file, len, "f.hdt", NULL), HD_OK);
		CHECK(hd_hdt_next(&reader, &got, &diag) == HD_E_INPUT && strstr(diag.text,
			"f.hdt: the section at byte 8 is damaged"), "byte %zu: '%s'", at[i], diag.text);
		file[at[i]] = was;
	}
}

/* Whatever byte of the first section is damaged, its length among them: the rest is found behind it. */
static void what_lies_behind_damage_is_found(void **state)
{
	(void)state;
	for (size_t at = HD_HDT_MAGIC_BYTES; at < HD_HDT_MAGIC_BYTES + HD_HDT_SECTION_BYTES; at++) {
		struct hd_hdt_reader reader;
		struct hd_hdt_section got = { 0 }, want = { 0 };
		size_t skipped = 0;
		bool cut;
		const uint8_t was = file[at];
		assert_int_equal(hd_hdt_begin(&reader, file, len, "f.hdt", NULL), HD_OK);
		assert_int_equal(hd_hdt_next(&reader, &got, NULL), HD_OK);
		assert_int_equal(hd_hdt_next(&reader, &want, NULL), HD_OK);
		const uint32_t all = whole_sections(len, &cut);

		file[at] = (uint8_t)(was ^ 0x81);
		assert_int_equal(hd_hdt_begin(&reader, file, len, "f.hdt", NULL), HD_OK);
		const enum hd_err err = hd_hdt_next(&reader, &got, NULL);
		/* a type that is not known, and flags, no hash covers */
		if (!err && got.type) {
			file[at] = was;
			continue;
		}
		CHECK(err == HD_E_INPUT || reader.cut, "byte %zu", at);
		CHECK(hd_hdt_resume(&reader, &skipped), "byte %zu: nothing behind it", at);
		uint32_t n = 0;
		while (hd_hdt_next(&reader, &got, NULL) == HD_OK && got.type)
			CHECK(n++ || got.stored == want.stored, "byte %zu", at);
		CHECK(n == all - 1 && !reader.cut && skipped > 0, "byte %zu: %u of %u", at, n, all);
		assert_false(hd_hdt_resume(&reader, &skipped));
		file[at] = was;
	}
}

/* A file of headers that all claim what follows is not hashed for ever. */
static void looking_behind_damage_ends(void **state)
{
	enum { BYTES = 1 << 16 };
	static uint8_t bytes[BYTES];
	struct hd_hdt_reader reader;
	size_t skipped;
	(void)state;

	hd_hdt_magic(bytes);
	for (size_t at = HD_HDT_MAGIC_BYTES; at + HD_HDT_SECTION_BYTES <= BYTES; at += HD_HDT_SECTION_BYTES) {
		const uint64_t left = BYTES - at - HD_HDT_SECTION_BYTES;
		hd_hdt_section(bytes + at, HD_HDT_META, 0, bytes, left, left);
		bytes[at + 24] ^= 1;
	}
	assert_int_equal(hd_hdt_begin(&reader, bytes, BYTES, "f", NULL), HD_OK);
	assert_false(hd_hdt_resume(&reader, &skipped));
	assert_true(reader.tried <= (HD_HDT_TRIES + 2) * BYTES);
}

static void payloads_too_short_for_their_type_are_refused(void **state)
{
	const uint8_t bytes[HD_HDT_PROCESS_BYTES] = { 0 };
	struct hd_hdt_rings rings;
	struct hd_flight_info info;
	enum hd_flight_state running;
	uint32_t process, offset;
	uint64_t n;
	(void)state;

	assert_false(hd_hdt_names_get(bytes, HD_HDT_NAMES_BYTES - 1, &process, &offset));
	assert_true(hd_hdt_names_get(bytes, HD_HDT_NAMES_BYTES, &process, &offset));
	assert_false(hd_hdt_rings_get(bytes, HD_HDT_RINGS_BYTES - 1, &rings, &n));
	assert_false(hd_hdt_rings_get(bytes, HD_HDT_RINGS_BYTES + 31, &rings, &n));
	assert_true(hd_hdt_rings_get(bytes, HD_HDT_RINGS_BYTES, &rings, &n) && n == 0);
	assert_int_equal(hd_hdt_process_get(bytes, sizeof bytes - 1, "f", &process, &info, &running, NULL),
		HD_E_INPUT);
	assert_int_equal(hd_hdt_process_get(bytes, sizeof bytes, "f", &process, &info, &running, NULL),
		HD_E_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_was_written_reads_back, write_file),
		cmocka_unit_test_setup(a_file_cut_anywhere_gives_the_sections_before, write_file),
		cmocka_unit_test_setup(damage_is_seen, write_file),
		cmocka_unit_test_setup(what_lies_behind_damage_is_found, write_file),
		cmocka_unit_test(looking_behind_damage_ends),
		cmocka_unit_test_setup(payloads_too_short_for_their_type_are_refused, write_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
