/* Formats, read back by what shares no code with the writers: a decoder of Protocol Buffers of its own, and
 * the reader of JSON. */
#include "timeline/write.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/philox.h"
#include "base/text.h"
#include "timeline/pack.h"
#include "tests/check.h"

enum { NOPS = 4000 };
#define LAST (NOPS * INT64_C(1000000))

static struct hd_arena arena;
static struct hd_diag diag;
static struct hd_text got;

static enum hd_err take(void *self, const void *bytes, size_t len, struct hd_diag *d)
{
	(void)self;
	(void)d;
	hd_text_put(&got, bytes, len);
	return HD_OK;
}

static enum hd_err refuse(void *self, const void *bytes, size_t len, struct hd_diag *d)
{
	uint32_t *calls = self;

	(void)bytes;
	(void)len;
	++*calls;
	return hd_fail(d, HD_E_IO, "the disk is full");
}
static const struct hd_tl_sink sink = { take, NULL };

static int setup(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	hd_text_init(&got, &arena);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

static struct hd_tl_event event_of(uint8_t kind, uint8_t class, uint32_t name, int64_t t0, int64_t t1)
{
	return (struct hd_tl_event){ .t0 = t0, .t1 = t1, .gate = t0, .first = t0, .kind = kind, .name = name,
		.class = class, .vn = HD_TL_NONE, .stage = HD_TL_NONE, .step = HD_TL_NONE,
		.peer = HD_TL_NONE };
}

/* Two workers: work on a device of one, and transfers that overlap from it to the other. */
static struct hd_timeline sample(const char *odd)
{
	static const char *name[] = { "?", "F", "B", "SA", "queue", NULL };
	struct hd_tl_event *event = hd_arena_take(&arena, NOPS + 16, sizeof *event);
	struct hd_tl_lane *lane = hd_arena_take(&arena, 3, sizeof *lane);
	struct hd_tl_process *process = hd_arena_take(&arena, 2, sizeof *process);
	struct hd_tl_step *step = hd_arena_take(&arena, 1, sizeof *step);
	uint64_t n = 0;

	name[5] = odd;
	for (int i = 0; i < NOPS; i++) {
		event[n] = event_of(HD_EVENT_OP, i & 1 ? HD_TL_BACKWARD : HD_TL_FORWARD, 1 + (i & 1),
			i ? i * INT64_C(1000000) : -5, (i + 1) * INT64_C(1000000));
		event[n].vn = (uint32_t)i % 8;
		event[n++].step = 0;
	}
	event[n++] = event_of(HD_EVENT_MARK, HD_TL_MARK, 5, LAST, LAST);
	lane[0] = (struct hd_tl_lane){ .process = 0, .kind = HD_LANE_DEVICE, .name = "dev 0", .end = n };
	for (int i = 0; i < 3; i++) {
		event[n] = event_of(HD_EVENT_SEND, HD_TL_SEND, 3, i * 10, i * 10 + 15);
		event[n].flow = 100 + (uint64_t)i;
		event[n++].arg = 4096;
	}
	event[n] = event_of(HD_EVENT_COUNTER, HD_TL_OTHER, 4, 40, 40);
	event[n++].arg = 7;
	lane[1] = (struct hd_tl_lane){ .kind = HD_LANE_TRANSFER, .name = "out", .begin = lane[0].end,
		.end = n };
	for (int i = 0; i < 3; i++) {
		event[n] = event_of(HD_EVENT_RECV, HD_TL_RECEIVE, 3, i * 10 + 5, i * 10 + 25);
		event[n++].flow = 100 + (uint64_t)i;
	}
	lane[2] = (struct hd_tl_lane){ .process = 1, .kind = HD_LANE_TRANSFER, .name = "in",
		.begin = lane[1].end, .end = n };
	process[0] = (struct hd_tl_process){ .worker = 0, .name = "worker 0", .host = "a", .aligned = true,
		.lane_end = 2, .step_end = 1 };
	process[1] = (struct hd_tl_process){ .worker = 1, .name = odd, .host = "", .lane_begin = 2,
		.lane_end = 3,
		.step_begin = 1, .step_end = 1 };
	*step = (struct hd_tl_step){ .number = 12, .begin = 0, .end = LAST, .committed = true };
	return (struct hd_timeline){ .base_ns = 123456789, .realtime_ns = 1700000000000000000,
		.begin = -5, .end = LAST, .event = event, .nevents = n, .lane = lane, .nlanes = 3,
		.process = process, .nprocesses = 2, .step = step, .nsteps = 1, .name = name, .nnames = 6,
		.job = "" };
}

/* A decoder of its own: fields of a message, one by one. */
struct pb { const uint8_t *at, *end; };
struct field { uint32_t number, type; uint64_t v; struct pb in; };

static uint64_t varint(struct pb *p)
{
	uint64_t v = 0;

	for (unsigned shift = 0;; shift += 7) {
		assert_true(p->at < p->end && shift < 64);
		uint8_t b = *p->at++;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return v;
	}
}

static bool next(struct pb *p, struct field *f)
{
	if (p->at == p->end)
		return false;
	uint64_t tag = varint(p);
	*f = (struct field){ .number = (uint32_t)(tag >> 3), .type = tag & 7 };
	if (f->type == 0) {
		f->v = varint(p);
	} else if (f->type == 1) {
		assert_true(p->end - p->at >= 8);
		memcpy(&f->v, p->at, 8);
		p->at += 8;
	} else {
		assert_int_equal(f->type, 2);
		uint64_t len = varint(p);
		assert_true(len <= (uint64_t)(p->end - p->at));
		f->in = (struct pb){ p->at, p->at + len };
		p->at += len;
	}
	return true;
}

enum { SEQUENCES = 64 };
struct seen {
	uint64_t clock[SEQUENCES], nbegin, nend, ninstant, ncounter, ntracks, depth[SEQUENCES], flow_out[8],
		flow_in[8], nout, nin, first_begin;
};

static void see_event(struct seen *seen, struct pb in, uint64_t sequence)
{
	uint64_t type = 0;

	for (struct field f; next(&in, &f);) {
		if (f.number == 9)
			type = f.v;
		if (f.number == 47)
			seen->flow_out[seen->nout++] = f.v;
		if (f.number == 48)
			seen->flow_in[seen->nin++] = f.v;
	}
	seen->nbegin += type == 1;
	seen->nend += type == 2;
	seen->ninstant += type == 3;
	seen->ncounter += type == 4;
	seen->depth[sequence] += type == 1;
	assert_true(seen->depth[sequence] <= 1);                     /* neighbours do not nest */
	if (type == 2) {
		assert_true(seen->depth[sequence]);
		seen->depth[sequence]--;
	}
	if (type == 1 && seen->nbegin == 1)
		seen->first_begin = seen->clock[sequence];
}

static void see_snapshot(struct pb in, uint64_t *incremental)
{
	for (struct field f; next(&in, &f);) {
		uint64_t id = 0, time = 0;
		for (struct field g; next(&f.in, &g);) {
			id = g.number == 1 ? g.v : id;
			time = g.number == 2 ? g.v : time;
		}
		*incremental = id == 64 ? time : *incremental;
	}
}

static void see_packet(struct seen *seen, struct pb packet)
{
	struct pb all = packet, event = { 0 };
	uint64_t sequence = 0, delta = 0, start = UINT64_MAX;

	for (struct field f; next(&all, &f);) {
		sequence = f.number == 10 ? f.v : sequence;
		delta = f.number == 8 ? f.v : delta;
		seen->ntracks += f.number == 60;
		if (f.number == 11)
			event = f.in;
		if (f.number == 6)
			see_snapshot(f.in, &start);
	}
	assert_true(sequence > 0 && sequence < SEQUENCES);
	seen->clock[sequence] = start != UINT64_MAX ? start : seen->clock[sequence] + delta;
	if (event.at)
		see_event(seen, event, sequence);
}

static void slices_of_perfetto_are_paired_and_short(void **state)
{
	struct hd_timeline t = sample("odd");
	struct seen seen = { 0 };

	(void)state;
	assert_int_equal(hd_tl_write_perfetto(&t, &sink, &arena, &diag), HD_OK);
	struct pb all = { (const uint8_t *)got.at, (const uint8_t *)got.at + got.len };
	for (struct field f; next(&all, &f);) {
		assert_int_equal(f.number, 1);
		see_packet(&seen, f.in);
	}
	assert_int_equal(seen.nbegin, NOPS + 6);
	assert_int_equal(seen.nend, seen.nbegin);
	assert_int_equal(seen.ninstant, 1);
	assert_int_equal(seen.ncounter, 1);
	assert_int_equal(seen.ntracks, 2 + 1 + 2 + 2 + 1);          /* processes, lines, the counter's */
	assert_int_equal(seen.nout, 3);
	assert_int_equal(seen.nin, 3);
	assert_int_equal(seen.flow_out[0] + seen.flow_out[1] + seen.flow_out[2], 303);
	assert_memory_equal(seen.flow_out, seen.flow_in, 3 * sizeof *seen.flow_in);
	assert_int_equal(seen.first_begin, 123456789 - 5);
	CHECK(got.len <= 40 * (NOPS + 6), "%zu bytes for %d slices", got.len, NOPS + 6);
}

static void overlapping_transfers_lie_on_lines_of_their_own(void **state)
{
	struct hd_timeline t = sample("odd");
	struct hd_tl_lines lines;

	(void)state;
	assert_int_equal(hd_tl_pack(&t, 1, &lines, &arena, &diag), HD_OK);
	assert_int_equal(lines.nlines, 2);
	assert_int_equal(lines.line[0], 0);
	assert_int_equal(lines.line[1], 1);
	assert_int_equal(lines.line[2], 0);
	assert_int_equal(hd_tl_pack(&t, 0, &lines, &arena, &diag), HD_OK);
	assert_int_equal(lines.nlines, 1);
}

/* Against the search through all lines, event by event; and however many overlap, few ends are compared. */
static void packing_is_first_fit_and_near_linear(void **state)
{
	enum { N = 4096 };
	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		struct hd_tl_event *e = hd_arena_take(&arena, N, sizeof *e);
		struct hd_tl_lane lane = { .kind = HD_LANE_TRANSFER, .name = "x", .end = N };
		const struct hd_timeline t = { .event = e, .nevents = N, .lane = &lane, .nlanes = 1 };
		static int64_t end[N + 1];
		struct hd_tl_lines lines;
		uint32_t nlines = 1;
		for (uint32_t i = 0; i < N; i++) {
			const uint32_t *word = hd_philox((uint32_t[4]){ i, 0, 0, 0 }, hd_philox_key(seed,
				HD_RNG_USER)).word;
			/* of seed 0 all overlap; instants among them */
			e[i].t0 = seed ? (i ? e[i - 1].t0 : 0) + word[0] % 4 : i;
			e[i].t1 = seed ? e[i].t0 + word[1] % (16u << seed) : N + 1;
		}
		assert_int_equal(hd_tl_pack(&t, 0, &lines, &arena, &diag), HD_OK);
		for (uint32_t i = 0; i <= N; i++)
			end[i] = INT64_MIN;
		for (uint32_t i = 0; i < N; i++) {
			uint32_t at = 0;
			for (; e[i].t0 < e[i].t1 && end[at] > e[i].t0; at++)
				;
			if (e[i].t0 < e[i].t1)
				end[at] = e[i].t1;
			nlines = at + 1 > nlines ? at + 1 : nlines;
			CHECK(lines.line[i] == at, "seed %u, event %u", (unsigned)seed, i);
		}
		assert_int_equal(lines.nlines, nlines);
		assert_true(seed || nlines == N);
		assert_true(lines.begin[0] == 0 && lines.begin[nlines] == N);
		for (uint32_t l = 0; l < nlines; l++)
			for (uint64_t i = lines.begin[l]; i < lines.begin[l + 1]; i++)
				assert_true(lines.line[lines.event[i]] == l && (i == lines.begin[l] ||
					lines.event[i] > lines.event[i - 1]));
		CHECK(lines.nlooked <= 2 * 13 * N, "%llu ends of %u events",
			(unsigned long long)lines.nlooked, N);
	}
}

static void every_byte_in_a_name_gives_well_formed_files(void **state)
{
	char odd[260];
	const struct hd_json *json;
	const struct hd_json *events;

	(void)state;
	for (int i = 1; i < 256; i++)
		odd[i - 1] = (char)i;
	odd[255] = 0;
	struct hd_timeline t = sample(odd);
	assert_int_equal(hd_tl_write_chrome(&t, &sink, &arena, &diag), HD_OK);
	CHECK(hd_json_parse(&arena, "trace", got.at, got.len, &json, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_json_get(json, "traceEvents", HD_JSON_ARRAY, &events, &diag), HD_OK);
	got.len = 0;
	assert_int_equal(hd_tl_write_hta(&t, (struct hd_tl_rank){ 1, 1, 2 }, &sink, &arena,
		&diag), HD_OK);
	CHECK(hd_json_parse(&arena, "trace", got.at, got.len, &json, &diag) == HD_OK, "%s", diag.text);
	assert_non_null(strstr(got.at, "\"rank\": 1"));
	got.len = 0;
	assert_int_equal(hd_tl_write_steps(&t, &sink, &arena, &diag), HD_OK);
	CHECK(hd_json_parse(&arena, "step", got.at, got.len - 1, &json, &diag) == HD_OK, "%s", diag.text);
}

static void names_of_nothing_but_escapes_give_well_formed_files(void **state)
{
	const struct hd_json *json;
	char odd[1200];

	(void)state;
	memset(odd, '<', sizeof odd - 1);
	odd[sizeof odd - 1] = 0;
	struct hd_timeline t = sample(odd);
	((struct hd_tl_process *)(uintptr_t)t.process)[0].name = odd;      /* the one with a step */
	got.len = 0;
	assert_int_equal(hd_tl_write_chrome(&t, &sink, &arena, &diag), HD_OK);
	CHECK(hd_json_parse(&arena, "trace", got.at, got.len, &json, &diag) == HD_OK, "%s", diag.text);
	got.len = 0;
	assert_int_equal(hd_tl_write_hta(&t, (struct hd_tl_rank){ 1, 1, 2 }, &sink, &arena,
		&diag), HD_OK);
	CHECK(hd_json_parse(&arena, "trace", got.at, got.len, &json, &diag) == HD_OK, "%s", diag.text);
	got.len = 0;
	assert_int_equal(hd_tl_write_steps(&t, &sink, &arena, &diag), HD_OK);
	CHECK(hd_json_parse(&arena, "step", got.at, got.len - 1, &json, &diag) == HD_OK, "%s", diag.text);
}

/* Stages of a file of another program are whatever it says. */
static void stages_without_bound_take_no_memory(void **state)
{
	static const uint32_t stage[] = { HD_TL_NONE - 1, HD_TL_NONE - 2, 2000000000, 3 };

	(void)state;
	for (size_t i = 0; i < sizeof stage / sizeof *stage; i++) {
		struct hd_timeline t = sample("odd");
		((struct hd_tl_event *)(uintptr_t)t.event)[0].stage = stage[i];
		CHECK(hd_tl_write_perfetto(&t, &sink, &arena, &diag) == HD_OK, "stage %u: %s", stage[i],
			diag.text);
	}
}

static void a_sink_that_fails_is_not_called_again(void **state)
{
	struct hd_timeline t = sample("odd");
	uint32_t calls = 0;
	const struct hd_tl_sink full = { refuse, &calls };

	(void)state;
	assert_int_equal(hd_tl_write_perfetto(&t, &full, &arena, &diag), HD_E_IO);
	assert_int_equal(hd_tl_write_chrome(&t, &full, &arena, &diag), HD_E_IO);
	assert_int_equal(hd_tl_write_steps(&t, &full, &arena, &diag), HD_E_IO);
	assert_int_equal(calls, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slices_of_perfetto_are_paired_and_short),
		TEST(packing_is_first_fit_and_near_linear),
		TEST(overlapping_transfers_lie_on_lines_of_their_own),
		TEST(every_byte_in_a_name_gives_well_formed_files),
		TEST(names_of_nothing_but_escapes_give_well_formed_files),
		TEST(stages_without_bound_take_no_memory),
		TEST(a_sink_that_fails_is_not_called_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
