#include "timeline/build.h"

#include "base/alloc.h"
#include "timeline/build_int.h"
#include "timeline/testing_files.h"

static struct hd_arena arena;

static int open_arena(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int close_arena(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

static struct hd_timeline built(const struct hd_tl_input *input, uint32_t n)
{
	struct hd_timeline t;
	struct hd_diag diag = { "" };

	enum hd_err err = tl_build(&arena, input, n, &t, &diag);
	CHECK(err == HD_OK, "%s", diag.text);
	return t;
}

static const char *name_of(const struct hd_timeline *t, uint64_t i) { return t->name[t->event[i].name]; }

static void a_flight_file_becomes_lanes_events_and_steps(void **state)
{
	(void)state;
	struct tl_flight f;
	tl_flight_open(&f, 4, 2, 64);
	tl_flight_op(&f, 0, 60, 20, "W", 2);
	tl_flight_step(&f, 90, true, 6, true);
	tl_flight_step(&f, 100, false, 7, false);
	tl_flight_op(&f, 0, 110, 50, "F", 3);
	tl_flight_put(&f, 0, (struct hd_event){ .t0 = 120, .duration = 10, .kind = HD_EVENT_WAIT,
		.arg = hd_wait_arg(HD_WAIT_DATA, 9) });
	tl_flight_step(&f, 200, true, 7, false);
	tl_flight_step(&f, 220, true, 8, true);
	tl_flight_put(&f, 1, (struct hd_event){ .t0 = 130, .kind = HD_EVENT_MARK,
		.name = tl_flight_name(&f, "notice") });
	hd_flight_state_set(f.memory, HD_FLIGHT_SIGNAL);
	const struct hd_tl_input in = tl_flight_file(&f, "4.hdfr");
	struct hd_timeline t = built(&in, 1);
	assert_true(t.nprocesses == 1 && t.nlanes == 2 && t.nevents == 8 && t.nsteps == 3 && t.base_ns == 10);
	assert_true(t.process[0].worker == 4 && t.process[0].pid == 1004 && t.process[0].aligned);
	assert_true(t.process[0].state == HD_FLIGHT_SIGNAL && t.realtime_ns == 5000004);
	assert_string_equal(t.process[0].name, "worker 4");
	assert_string_equal(t.job, "07000000000000000000000000000000");
	assert_true(t.begin == 50 && t.end == 210);
	/* the first step's begin is not there: it begins with what is there */
	assert_true(t.step[0].number == 6 && t.step[0].begin == 50 && t.step[0].end == 80 &&
		t.step[0].committed);
	assert_true(t.step[1].number == 7 && t.step[1].begin == 90 && t.step[1].end == 190 &&
		!t.step[1].committed);
	assert_true(t.step[2].number == 8 && t.step[2].begin == 190 && t.step[2].end == 210 &&
		t.event[6].step == 2);
	assert_true(t.event[0].class == HD_TL_WEIGHTS && t.event[0].step == 0 && t.event[0].vn == 2 &&
		t.event[0].stage == 1);
	assert_true(t.event[1].kind == HD_EVENT_STEP_END && t.event[1].step == 0);
	assert_true(t.event[3].t0 == 100 && t.event[3].t1 == 150 && t.event[3].step == 1);
	assert_string_equal(name_of(&t, 3), "F");
	assert_string_equal(name_of(&t, 4), "data");
	assert_string_equal(name_of(&t, 1), "step_end");
	assert_true(t.event[4].class == HD_TL_WAIT && t.event[4].arg == (9 << 8 | HD_WAIT_DATA));
	assert_true(t.lane[1].kind == HD_LANE_CONTROL && t.event[7].step == 1 && t.event[7].lane == 1);
	assert_string_equal(name_of(&t, 7), "notice");
	tl_flight_close(&f);
}

static void instructions_have_the_classes_of_their_names(void **state)
{
	(void)state;
	static const struct { const char *name; enum hd_tl_class class; } row[] = {
		{ "F", HD_TL_FORWARD }, { "Fc3.7", HD_TL_FORWARD }, { "B3.7", HD_TL_BACKWARD },
		{ "I", HD_TL_BACKWARD }, { "W1.2", HD_TL_WEIGHTS }, { "STEP!3@5", HD_TL_UPDATE },
		{ "RED2#1", HD_TL_SUM }, { "SA3.7>2#1", HD_TL_SEND }, { "RG", HD_TL_RECEIVE },
		{ "LD0.7", HD_TL_READ }, { "commit", HD_TL_COMMIT }, { "checkpoint 7", HD_TL_COMMIT },
		{ "forward ahead", HD_TL_FORWARD }, { "update ahead", HD_TL_UPDATE },
		{ "BAR", HD_TL_OTHER }, { "", HD_TL_OTHER }, { "FOO", HD_TL_OTHER }, { "?", HD_TL_OTHER },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
		CHECK(hd_tl_class_of_op(row[i].name) == row[i].class, "%s", row[i].name);
}

static void what_overlaps_in_a_device_lane_has_a_lane_of_its_own(void **state)
{
	(void)state;
	struct tl_flight f;
	tl_flight_open(&f, 0, 1, 64);
	tl_flight_op(&f, 0, 100, 50, "F", 0);
	tl_flight_op(&f, 0, 110, 20, "B", 0);
	tl_flight_op(&f, 0, 140, 20, "W", 0);
	tl_flight_op(&f, 0, 150, 50, "F", 0);
	tl_flight_op(&f, 0, 160, 40, "B", 0);
	tl_flight_transfer(&f, 0, HD_EVENT_SEND, 105, 300, (struct hd_event_transfer){ .flow = 5,
		.gate_ns = 10, .first_ns = 20, .chunks = 3, .peer = 1, .class = 1, .primitive = 2 });
	const struct hd_tl_input in = tl_flight_file(&f, "0.hdfr");
	struct hd_timeline t = built(&in, 1);
	assert_true(t.nlanes == 3 && t.nevents == 6);
	assert_true(t.lane[0].end == 4 && t.lane[1].kind == HD_LANE_TRANSFER && t.lane[2].kind ==
		HD_LANE_DEVICE);
	assert_string_equal(t.lane[1].name, "device 0 transfers");
	assert_string_equal(t.lane[2].name, "device 0 +1");
	const struct hd_tl_event *send = &t.event[t.lane[1].begin];
	assert_true(send->gate == send->t0 + 10 && send->first == send->t0 + 20 && send->flow == 5 &&
		send->chunks == 3 && send->priority_class == 1 && send->primitive == 2 &&
		send->peer == HD_TL_NONE && send->arg == 4096);
	tl_flight_close(&f);
}

static void a_transfer_names_the_process_at_its_other_end(void **state)
{
	(void)state;
	struct tl_flight f[3];
	struct hd_tl_input in[3];
	for (uint32_t w = 0; w < 3; w++) {
		tl_flight_open(&f[w], w < 2 ? w : 1, 3, 64);
		f[w].info.boot[1] = 0;
		f[w].info.realtime_ns += w;
		hd_flight_format(&f[w].flight, f[w].memory, &f[w].info, 64);
		tl_flight_op(&f[w], 0, w == 1 ? 1000 : 5000, 10, "F", 0);
		in[w] = tl_flight_file(&f[w], "w");
	}
	tl_flight_transfer(&f[0], 2, HD_EVENT_SEND, 5000, 9, (struct hd_event_transfer){ .peer = 1 });
	tl_flight_transfer(&f[0], 2, HD_EVENT_SEND, 5000, 8, (struct hd_event_transfer){ .peer = 9 });
	struct hd_timeline t = built(in, 3);
	/* of both lives of worker 1 the later was there then */
	const struct hd_tl_event *send = &t.event[t.lane[t.process[0].lane_begin + 2].begin];
	assert_true(send->peer == 2 && send[1].peer == HD_TL_NONE);
	for (uint32_t w = 0; w < 3; w++)
		tl_flight_close(&f[w]);
}

static void what_was_overwritten_or_unknown_is_counted(void **state)
{
	(void)state;
	struct tl_flight f;
	tl_flight_open(&f, 0, 1, 16);
	for (uint64_t i = 0; i < 40; i++)
		tl_flight_op(&f, 0, 100 * i, 50, "F", (uint32_t)i);
	tl_flight_put(&f, 0, (struct hd_event){ .t0 = 9000, .kind = 77 });
	const struct hd_tl_input in = tl_flight_file(&f, "0.hdfr");
	struct hd_timeline t = built(&in, 1);
	assert_true(t.nevents == 14 && t.nlost == 27 && t.lane[0].nlost == 27 && t.nunknown == 1);
	assert_true(t.event[13].kind == 77 && t.event[13].class == HD_TL_OTHER && t.event[0].vn == 27);
	tl_flight_close(&f);
}

static void names_are_one_list_of_good_text(void **state)
{
	(void)state;
	struct tl_flight a, b;
	tl_flight_open(&a, 0, 1, 16);
	tl_flight_open(&b, 1, 1, 16);
	tl_flight_op(&a, 0, 100, 1, "F", 0);
	tl_flight_op(&a, 0, 200, 1, "x\xff\xfey", 0);
	tl_flight_op(&b, 0, 100, 1, "B", 0);
	tl_flight_op(&b, 0, 200, 1, "F", 0);
	const struct hd_tl_input in[] = { tl_flight_file(&a, "a"), tl_flight_file(&b, "b") };
	struct hd_timeline t = built(in, 2);
	assert_string_equal(t.name[0], "?");
	assert_string_equal(name_of(&t, 1), "x\xef\xbf\xbd\xef\xbf\xbdy");
	assert_true(t.event[0].name == t.event[3].name && t.event[2].name != t.event[0].name);
	tl_flight_close(&a);
	tl_flight_close(&b);
}

static void sorting_is_that_of_a_naive_one(void **state)
{
	(void)state;
	enum { N = 300 };
	struct hd_tl_event e[N], spare[N], slow[N];
	uint64_t x = 1;
	for (uint32_t n = 0; n < N; n += 7) {
		for (uint32_t i = 0; i < n; i++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			e[i] = (struct hd_tl_event){ .t0 = (int64_t)(x >> 60), .instr = i };
			e[i].t1 = e[i].t0 + (int64_t)((x >> 50) & 3);
		}
		memcpy(slow, e, sizeof e);
		for (uint32_t i = 1; i < n; i++)
			for (uint32_t k = i; k > 0 && (slow[k].t0 < slow[k - 1].t0 ||
				(slow[k].t0 == slow[k - 1].t0 && slow[k].t1 > slow[k - 1].t1)); k--) {
				struct hd_tl_event swap = slow[k];
				slow[k] = slow[k - 1];
				slow[k - 1] = swap;
			}
		hd_tl_sort(e, spare, n);
		for (uint32_t i = 0; i < n; i++)
			CHECK(e[i].instr == slow[i].instr, "%u of %u", i, n);
	}
}

static void each_piece_of_memory_may_be_refused(void **state)
{
	(void)state;
	struct tl_flight f;
	struct hd_timeline t;
	enum hd_err err;
	tl_flight_open(&f, 0, 2, 16);
	tl_flight_op(&f, 0, 100, 1, "F", 0);
	tl_flight_step(&f, 200, true, 1, true);
	const struct hd_tl_input in = tl_flight_file(&f, "f");
	EACH_PIECE_REFUSED(err, tl_build(&arena, &in, 1, &t, NULL));
	tl_flight_close(&f);
}

/* As recorded: a few places late, or the wrong way round as no recorder writes. */
static void a_lane_is_sorted_however_it_was_recorded(void **state)
{
	static const uint32_t late[] = { 0, 1, 3, 100, 400 };
	(void)state;

	for (size_t k = 0; k < sizeof late / sizeof late[0]; k++) {
		struct tl_flight f;
		tl_flight_open(&f, 0, 2, 512);
		for (uint32_t i = 0; i < 400; i++) {
			/* groups of late[k] + 1, each backwards */
			const uint32_t group = late[k] + 1, at = i / group * group, end = at + group < 400 ?
				at + group : 400;
			tl_flight_op(&f, 0, 100 + 10 * (end - 1 - (i - at)), 8, "F", 1);
		}
		const struct hd_tl_input in = tl_flight_file(&f, "0.hdfr");
		struct hd_timeline t = built(&in, 1);
		assert_int_equal(t.nevents, 400);
		for (uint32_t i = 0; i < 400; i++)
			CHECK(t.event[i].t0 == 90 + 10 * i, "late by %u: event %u at %lld", late[k], i,
				(long long)t.event[i].t0);
		tl_flight_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_flight_file_becomes_lanes_events_and_steps, open_arena,
			close_arena),
		cmocka_unit_test(instructions_have_the_classes_of_their_names),
		cmocka_unit_test_setup_teardown(what_overlaps_in_a_device_lane_has_a_lane_of_its_own,
			open_arena, close_arena),
		cmocka_unit_test_setup_teardown(a_transfer_names_the_process_at_its_other_end, open_arena,
			close_arena),
		cmocka_unit_test_setup_teardown(what_was_overwritten_or_unknown_is_counted, open_arena,
			close_arena),
		cmocka_unit_test_setup_teardown(names_are_one_list_of_good_text, open_arena, close_arena),
		cmocka_unit_test_setup_teardown(a_lane_is_sorted_however_it_was_recorded, open_arena,
			close_arena),
		cmocka_unit_test(sorting_is_that_of_a_naive_one),
		cmocka_unit_test_setup_teardown(each_piece_of_memory_may_be_refused, open_arena, close_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
