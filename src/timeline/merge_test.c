#include "timeline/merge.h"

#include "base/alloc.h"
#include "base/le.h"
#include "base/text.h"
#include "timeline/build.h"
#include "timeline/testing_files.h"

enum { NFILES = 3 };

static struct hd_arena arena;
static struct tl_flight file[NFILES];
static struct hd_tl_input input[NFILES];

/* A coordinator, and two workers whose clocks are far off; names and rings differ. */
static int open_files(void **state)
{
	(void)state;
	static const char *const name[NFILES] = { "c.hdfr", "0.hdfr", "1.hdfr" };

	hd_arena_init(&arena, 0);
	for (uint32_t i = 0; i < NFILES; i++) {
		tl_flight_open(&file[i], i ? i - 1 : UINT32_MAX, 3, 64);
		input[i] = tl_flight_file(&file[i], name[i]);
		for (uint64_t k = 0; k < 20; k++)
			tl_flight_op(&file[i], 0, 1000 + 100 * k + i, 40, k % 2 ? "F" : "B", (uint32_t)k);
		if (!i)
			continue;
		tl_flight_step(&file[i], 900, false, 5, false);
		tl_flight_step(&file[i], 3100, true, 5, true);
		tl_flight_probe(&file[i], 1, 1000, 1000000 * i + 1010, 1000000 * i + 1012, 1030);
		tl_flight_probe(&file[i], 1, 2000, 1000000 * i + 2010, 1000000 * i + 2012, 2030);
	}
	return 0;
}

static int close_files(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NFILES; i++)
		tl_flight_close(&file[i]);
	hd_arena_finish(&arena);
	return 0;
}

static enum hd_err take(void *text, const void *bytes, size_t len, struct hd_diag *diag)
{
	hd_text_put(text, bytes, len);
	return ((struct hd_text *)text)->full ? hd_fail(diag, HD_E_NOMEM, "no memory for a test") : HD_OK;
}

static enum hd_err merge(const struct hd_tl_input *in, uint32_t n, struct hd_tl_input *out,
	struct hd_diag *diag)
{
	struct hd_tl_clock *clock;
	struct hd_tl_lives lives;
	uint32_t reference;
	struct hd_text text;
	enum hd_err err = hd_tl_collect(&arena, in, n, &lives, diag);

	if (!err)
		err = hd_tl_align(&arena, &lives, &clock, &reference, diag);
	if (!err)
		hd_text_init(&text, &arena);
	if (!err)
		err = hd_tl_merge(&arena, &lives, clock, &(struct hd_tl_sink){ take, &text }, diag);
	if (!err)
		*out = (struct hd_tl_input){ "merged.hdt", (const uint8_t *)text.at, text.len };
	return err;
}

static struct hd_tl_input merged(const struct hd_tl_input *in, uint32_t n)
{
	struct hd_diag diag = { "" };
	struct hd_tl_input out;

	enum hd_err err = merge(in, n, &out, &diag);
	CHECK(err == HD_OK, "%s", diag.text);
	return out;
}

static bool same_bytes(struct hd_tl_input a, struct hd_tl_input b)
{
	return a.len == b.len && !memcmp(a.bytes, b.bytes, a.len);
}

static void the_order_of_files_changes_no_byte(void **state)
{
	(void)state;
	static const uint8_t order[][NFILES] = {
		{ 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	struct hd_tl_input first = merged(input, NFILES);
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
		const struct hd_tl_input in[] = { input[order[i][0]], input[order[i][1]],
			input[order[i][2]] };
		assert_true(same_bytes(first, merged(in, NFILES)));
	}
}

static void merging_again_gives_the_same_bytes(void **state)
{
	(void)state;
	struct hd_tl_input all = merged(input, NFILES), two = merged(input + 1, 2);
	assert_true(same_bytes(all, merged(&all, 1)));
	const struct hd_tl_input mix[] = { two, input[0], all, input[2] }, pair[] = { two, input[0] };
	assert_true(same_bytes(all, merged(mix, 4)));
	assert_true(same_bytes(all, merged(pair, 2)));
	assert_false(same_bytes(all, two));
}

static void a_merged_file_is_the_timeline_of_its_inputs(void **state)
{
	(void)state;
	struct hd_tl_input all = merged(input, NFILES);
	struct hd_timeline a, b;
	assert_int_equal(tl_build(&arena, input, NFILES, &a, NULL), HD_OK);
	assert_int_equal(tl_build(&arena, &all, 1, &b, NULL), HD_OK);
	assert_true(a.nevents == b.nevents && a.nlanes == b.nlanes && a.nsteps == b.nsteps && a.nsteps == 2);
	assert_memory_equal(a.event, b.event, a.nevents * sizeof *a.event);
	assert_true(a.base_ns == b.base_ns && a.nnames == b.nnames);
	for (uint32_t n = 0; n < a.nnames; n++)
		assert_string_equal(a.name[n], b.name[n]);
	/* the coordinator is first, and the workers' clocks are set by theirs */
	assert_true(a.process[0].worker == UINT32_MAX && a.process[0].error_ns == 0);
	for (uint32_t p = 1; p < 3; p++) {
		assert_true(a.process[p].aligned && a.process[p].error_ns > 0 && a.process[p].error_ns < 20);
		int64_t t0 = a.event[a.lane[a.process[p].lane_begin].begin].t0,
			truth = 900 + 1000000 * p - 10;
		CHECK(llabs(t0 - truth) <= a.process[p].error_ns, "worker %u: %lld", p - 1, (long long)t0);
	}
}

/* The drain of a full trace had the slots 5 to 29, the ring holds the newest 14. */
static void a_flight_file_and_a_trace_of_one_process_are_joined(void **state)
{
	(void)state;
	struct tl_flight f;
	struct hd_tl_input early, in[2];
	tl_flight_open(&f, 0, 1, 64);
	for (uint32_t i = 0; i < 30; i++)
		tl_flight_op(&f, 0, 1000 + 10 * i, 5, "F", i);
	in[0] = tl_flight_file(&f, "0.hdfr");
	early = merged(in, 1);
	for (uint32_t i = 30; i < 100; i++)
		tl_flight_op(&f, 0, 1000 + 10 * i, 5, "B", i);
	in[1] = early;
	struct hd_timeline t;
	assert_int_equal(tl_build(&arena, in, 2, &t, NULL), HD_OK);
	/* 30 of the trace, 62 of the ring from 38 on, 8 were missed */
	assert_true(t.nprocesses == 1 && t.nevents == 92 && t.nlost == 8 && t.nlanes == 1);
	assert_true(t.event[29].vn == 29 && t.event[30].vn == 38 && t.event[91].vn == 99);
	const struct hd_tl_input swapped[] = { in[1], in[0] };
	struct hd_tl_input all = merged(in, 2);
	assert_true(same_bytes(all, merged(&all, 1)) && same_bytes(all, merged(swapped, 2)));
	assert_int_equal(tl_build(&arena, &all, 1, &t, NULL), HD_OK);
	assert_true(t.nevents == 92 && t.nlost == 8);
	struct hd_hdt_reader reader;
	struct hd_hdt_section s, last = { 0 };
	assert_int_equal(hd_hdt_begin(&reader, all.bytes, all.len, "all", NULL), HD_OK);
	while (hd_hdt_next(&reader, &s, NULL) == HD_OK && s.type)
		last = s;
	/* ring 0 of process 0 from slot 37 on, which stands for 8 that are lost */
	assert_true(last.type == HD_HDT_RINGS && hd_get64(last.stored + 8) == 37 &&
		hd_get64(last.stored + 16) == 8 && last.stored[24 + 15] == HD_EVENT_LOST &&
		hd_get64(last.stored + 24 + 24) == 8);
	tl_flight_close(&f);
}

static void two_files_that_differ_in_a_slot_are_refused(void **state)
{
	(void)state;
	struct hd_diag diag = { "" }, other = { "" };
	struct hd_tl_input in[2] = { input[1], { "copy.hdfr", NULL, input[1].len } }, out;
	uint8_t *copy = hd_arena_take(&arena, input[1].len, 1);
	memcpy(copy, input[1].bytes, input[1].len);
	in[1].bytes = copy;
	assert_int_equal(merge(in, 2, &out, &diag), HD_OK);
	copy[HD_FLIGHT_HEADER_BYTES + HD_NAMES_BYTES + HD_RING_HEADER_BYTES + 24] ^= 1;
	assert_int_equal(merge(in, 2, &out, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "0.hdfr and copy.hdfr") && strstr(diag.text, "events differ"), "%s",
		diag.text);
	const struct hd_tl_input swapped[] = { in[1], in[0] };
	assert_int_equal(merge(swapped, 2, &out, &other), HD_E_INPUT);
	assert_string_equal(diag.text, other.text);
}

/* Cut off anywhere: the sections before the cut, or an error that names the file. */
static void a_file_that_is_cut_off_gives_what_is_whole(void **state)
{
	(void)state;
	struct hd_tl_input all = merged(input, NFILES);
	uint64_t most = 0;
	for (size_t len = 0; len <= all.len; len += 64) {
		struct hd_tl_input in = { "cut.hdt", all.bytes, len };
		struct hd_diag diag = { "" };
		struct hd_tl_lives lives;
		struct hd_timeline t;
		enum hd_err err = tl_build(&arena, &in, 1, &t, &diag);
		CHECK(err == HD_OK || (err == HD_E_INPUT && strstr(diag.text, "cut.hdt")), "%zu: %s", len,
			diag.text);
		if (err)
			continue;
		CHECK(t.nevents >= most, "%zu bytes", len);
		most = t.nevents;
		assert_int_equal(hd_tl_collect(&arena, &in, 1, &lives, NULL), HD_OK);
	}
	assert_true(most > 0);
	for (size_t len = 0; len <= input[0].len; len += len < 8192 ? 64 : 64 * 101) {
		struct hd_tl_input in = { "cut.hdfr", input[0].bytes, len };
		struct hd_diag diag = { "" };
		struct hd_timeline t;
		enum hd_err err = tl_build(&arena, &in, 1, &t, &diag);
		CHECK(err == HD_E_INPUT ? strstr(diag.text, "cut.hdfr") != NULL : len == input[0].len,
			"%zu: %d", len, (int)err);
	}
}

/* Each section in turn has a wrong hash: all others are taken, and what is not is said. */
static void a_damaged_section_costs_no_other(void **state)
{
	(void)state;
	const struct hd_tl_input all = merged(input, NFILES);
	uint8_t *copy = hd_arena_take(&arena, all.len, 1);
	struct hd_hdt_reader reader;
	struct hd_hdt_section s;
	struct hd_timeline whole;
	uint64_t most = 0;

	assert_int_equal(tl_build(&arena, &all, 1, &whole, NULL), HD_OK);
	assert_int_equal(hd_hdt_begin(&reader, all.bytes, all.len, "all", NULL), HD_OK);
	for (size_t at = reader.at; !hd_hdt_next(&reader, &s, NULL) && s.type; at = reader.at) {
		const struct hd_tl_input in[] = { { "bad.hdt", copy, all.len }, all };
		struct hd_tl_lives lives;
		struct hd_timeline t;
		memcpy(copy, all.bytes, all.len);
		copy[at + 24] ^= 1;
		assert_int_equal(hd_tl_collect(&arena, in, 1, &lives, NULL), HD_OK);
		CHECK(lives.ndropped == 1 && lives.dropped[0].nsections >= 1 && !lives.dropped[0].cut &&
			!strcmp(lives.dropped[0].file, "bad.hdt") && strstr(lives.dropped[0].first.text,
				"its hash is wrong"), "section %u at %zu", s.type, at);
		assert_int_equal(tl_build(&arena, in, 1, &t, NULL), HD_OK);
		CHECK(t.nevents <= whole.nevents && (s.type == HD_HDT_RINGS || s.type == HD_HDT_PROCESS ||
			t.nevents == whole.nevents), "section %u", s.type);
		most = t.nevents > most && s.type == HD_HDT_RINGS ? t.nevents : most;
		/* beside the whole one it takes nothing away */
		assert_int_equal(tl_build(&arena, in, 2, &t, NULL), HD_OK);
		CHECK(t.nevents == whole.nevents, "section %u: %llu events of %llu", s.type,
			(unsigned long long)t.nevents, (unsigned long long)whole.nevents);
	}
	assert_true(most > 0 && most < whole.nevents);
}

static void processes_are_the_coordinator_then_by_start_then_by_number(void **state)
{
	(void)state;
	static const uint32_t worker[] = { 7, 3, UINT32_MAX, 5 };
	static const int64_t start[] = { 500, 500, 900, 400 };
	struct tl_flight f[4];
	struct hd_tl_input in[4];
	struct hd_timeline t;
	for (uint32_t i = 0; i < 4; i++) {
		tl_flight_open(&f[i], worker[i], 1, 16);
		f[i].info.realtime_ns = start[i];
		hd_flight_format(&f[i].flight, f[i].memory, &f[i].info, 16);
		in[i] = tl_flight_file(&f[i], "f");
	}
	assert_int_equal(tl_build(&arena, in, 4, &t, NULL), HD_OK);
	assert_true(t.process[0].worker == UINT32_MAX && t.process[1].worker == 5 &&
		t.process[2].worker == 3 && t.process[3].worker == 7 && t.realtime_ns == 900);
	/* of another boot, without probes: named, and on times of their own */
	assert_true(t.process[0].aligned && !t.process[1].aligned && !t.process[2].aligned);
	for (uint32_t i = 0; i < 4; i++)
		tl_flight_close(&f[i]);
}

static void simulated_recordings_are_one_only_if_they_are_equal(void **state)
{
	(void)state;
	struct tl_flight f[3];
	struct hd_tl_input in[3];
	struct hd_timeline t;
	for (uint32_t i = 0; i < 3; i++) {
		tl_flight_open(&f[i], 0, 1, 16);
		f[i].info = (struct hd_flight_info){ .clock = HD_FLIGHT_CLOCK_SIMULATED, .nrings = 1,
			.lane[0] = { .kind = HD_LANE_DEVICE, .name = "rank 0" } };
		hd_flight_format(&f[i].flight, f[i].memory, &f[i].info, 16);
		tl_flight_op(&f[i], 0, 100, i < 2 ? 50 : 60, "F", 0);
		in[i] = tl_flight_file(&f[i], "sim");
	}
	assert_int_equal(tl_build(&arena, in, 3, &t, NULL), HD_OK);
	assert_true(t.nprocesses == 2 && t.nevents == 2 && t.process[1].aligned);
	for (uint32_t i = 0; i < 3; i++)
		tl_flight_close(&f[i]);
}

static void each_piece_of_memory_may_be_refused(void **state)
{
	(void)state;
	struct hd_tl_input all = merged(input, NFILES), out;
	enum hd_err err;
	const struct hd_tl_input in[] = { all, input[1] };
	EACH_PIECE_REFUSED(err, merge(in, 2, &out, NULL));
}

/* ---- without the memory of all events ---- */

static void an_outline_says_what_the_timeline_says(void **state)
{
	struct hd_timeline whole, outline;
	struct hd_tl_clock *clock;
	struct hd_tl_lives lives;
	uint32_t reference;

	(void)state;
	assert_int_equal(hd_tl_collect(&arena, input, NFILES, &lives, NULL), HD_OK);
	assert_int_equal(hd_tl_align(&arena, &lives, &clock, &reference, NULL), HD_OK);
	assert_int_equal(hd_tl_build_of(&arena, &lives, clock, reference, &whole, NULL), HD_OK);
	assert_int_equal(hd_tl_outline_of(&arena, &lives, clock, reference, &outline, NULL), HD_OK);
	assert_true(whole.nevents && whole.nsteps && !outline.event);
	assert_true(outline.nevents == whole.nevents && outline.nsteps == whole.nsteps);
	assert_true(outline.begin == whole.begin && outline.end == whole.end && outline.nlost == whole.nlost);
	assert_memory_equal(outline.step, whole.step, whole.nsteps * sizeof *whole.step);
	assert_int_equal(outline.nprocesses, whole.nprocesses);
	for (uint32_t i = 0; i < whole.nprocesses; i++) {
		const struct hd_tl_process *a = &whole.process[i], *b = &outline.process[i];
		assert_true(a->error_ns == b->error_ns && a->aligned == b->aligned && a->pid == b->pid &&
			a->step_begin == b->step_begin && a->step_end == b->step_end);
		assert_string_equal(a->name, b->name);
	}
}

enum { SECTION = 1000, SECTIONS = 1000, STEP = 500 };

/* A trace of SECTIONS * SECTION slots of ring 0 as a drain appends it: a step each STEP of them; the two
 * slots of a SEND lie on both sides of each border. */
static uint8_t *long_trace(const struct tl_flight *f, size_t *len)
{
	const struct hd_names *names = &f->flight.names;
	const uint32_t used = hd_flight_names_used(f->memory);
	const size_t slots = HD_HDT_RINGS_BYTES + SECTION * HD_SLOT_BYTES;
	uint8_t *bytes = malloc(16384 + used + SECTIONS * (HD_HDT_SECTION_BYTES + slots)), *at = bytes;

	assert_non_null(bytes);
	hd_hdt_magic(at);
	at += HD_HDT_MAGIC_BYTES;
	hd_hdt_process(at + HD_HDT_SECTION_BYTES, 0, f->memory);
	hd_hdt_section(at, HD_HDT_PROCESS, 0, at + HD_HDT_SECTION_BYTES, HD_HDT_PROCESS_BYTES,
		HD_HDT_PROCESS_BYTES);
	at += HD_HDT_SECTION_BYTES + HD_HDT_PROCESS_BYTES;
	hd_hdt_names(at + HD_HDT_SECTION_BYTES, 0, 0);
	memcpy(at + HD_HDT_SECTION_BYTES + HD_HDT_NAMES_BYTES, names->table, used);
	hd_hdt_section(at, HD_HDT_NAMES, 0, at + HD_HDT_SECTION_BYTES, HD_HDT_NAMES_BYTES + used,
		HD_HDT_NAMES_BYTES + used);
	at += HD_HDT_SECTION_BYTES + HD_HDT_NAMES_BYTES + used;
	for (uint64_t s = 0, i = 0; s < SECTIONS; s++) {
		uint8_t *raw = at + HD_HDT_SECTION_BYTES, *slot = raw + HD_HDT_RINGS_BYTES;
		hd_hdt_rings(raw, &(struct hd_hdt_rings){ .first = i });
		for (; i < (s + 1) * SECTION; i++, slot += HD_SLOT_BYTES) {
			const bool begins = i % STEP == 1, ends = i % STEP == STEP - 2;
			struct hd_event e = { .t0 = 1000 + 100 * i, .duration = begins || ends ? 0 : 50,
				.kind = begins ? HD_EVENT_STEP_BEGIN : ends ? HD_EVENT_STEP_END : HD_EVENT_OP,
				.arg = begins || ends ? i / STEP : 0, .instr = ends };
			if (i % SECTION == SECTION - 1 && s + 1 < SECTIONS)
				e = (struct hd_event){ .t0 = 1000 + 100 * i, .duration = 20, .arg = 64,
					.kind = HD_EVENT_SEND, .flags = HD_EVENT_FLAG_EXT };
			if (i % SECTION || !s)
				hd_event_put(slot, &e);
			else
				hd_event_put_transfer(slot, &(struct hd_event_transfer){ .flow = s,
					.peer = 1 });
		}
		hd_hdt_section(at, HD_HDT_RINGS, 0, raw, slots, slots);
		at += HD_HDT_SECTION_BYTES + slots;
	}
	*len = (size_t)(at - bytes);
	return bytes;
}

struct counted { struct hd_hasher hasher; size_t len; };
static enum hd_err count(void *self, const void *bytes, size_t len, struct hd_diag *diag)
{
	struct counted *c = self;

	(void)diag;
	hd_hasher_add(&c->hasher, bytes, len);
	c->len += len;
	return HD_OK;
}

/* 32 MB of slots with a budget of 2 MiB: they are read where they lie, and written as they are read. */
static void a_million_events_are_merged_in_little_memory(void **state)
{
	struct counted merged = { .len = 0 };
	struct hd_tl_clock *clock;
	struct hd_tl_lives lives;
	struct hd_diag diag = { "" };
	struct hd_timeline t;
	struct hd_arena small, large;
	uint32_t reference = 0;
	size_t len;

	(void)state;
	uint8_t *bytes = long_trace(&file[1], &len);
	const struct hd_tl_input in = { "long.hdt", bytes, len };
	hd_hasher_init(&merged.hasher);
	hd_arena_init(&small, 2 << 20);
	CHECK(!hd_tl_collect(&small, &in, 1, &lives, &diag), "%s", diag.text);
	CHECK(!hd_tl_align(&small, &lives, &clock, &reference, &diag), "%s", diag.text);
	CHECK(!hd_tl_outline_of(&small, &lives, clock, reference, &t, &diag), "%s", diag.text);
	CHECK(!hd_tl_merge(&small, &lives, clock, &(struct hd_tl_sink){ count, &merged }, &diag), "%s",
		diag.text);
	const uint64_t nevents = (uint64_t)SECTION * SECTIONS - (SECTIONS - 1);
	assert_true(t.nevents == nevents && t.nsteps == SECTION * SECTIONS / STEP && !t.nlost);
	/* one section of all slots, and what one was cut into before is gone */
	CHECK(merged.len > (size_t)SECTION * SECTIONS * HD_SLOT_BYTES && merged.len < len, "%zu of %zu",
		merged.len, len);
	hd_arena_init(&large, 0);
	assert_int_equal(hd_tl_build_of(&large, &lives, clock, reference, &t, NULL), HD_OK);
	uint64_t flows = 0;
	for (uint64_t i = 0; i < t.nevents; i++)
		flows += t.event[i].flow;
	assert_int_equal(flows, (uint64_t)SECTIONS * (SECTIONS - 1) / 2);
	CHECK(hd_arena_kept_bytes(&large) < 4 * len, "%zu bytes for a timeline of %zu",
		hd_arena_kept_bytes(&large), len);
	hd_arena_finish(&small);
	hd_arena_finish(&large);
	free(bytes);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_files, close_files)
	const struct CMUnitTest tests[] = {
		T(the_order_of_files_changes_no_byte),
		T(merging_again_gives_the_same_bytes),
		T(a_merged_file_is_the_timeline_of_its_inputs),
		T(a_flight_file_and_a_trace_of_one_process_are_joined),
		T(two_files_that_differ_in_a_slot_are_refused),
		T(a_damaged_section_costs_no_other),
		T(a_file_that_is_cut_off_gives_what_is_whole),
		T(processes_are_the_coordinator_then_by_start_then_by_number),
		T(simulated_recordings_are_one_only_if_they_are_equal),
		T(an_outline_says_what_the_timeline_says),
		T(a_million_events_are_merged_in_little_memory),
		T(each_piece_of_memory_may_be_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
