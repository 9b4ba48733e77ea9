#include "timeline/import.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "timeline/json_scan.h"
#include "timeline/testing.h"

static struct hd_arena arena;
static struct hd_timeline t;
static struct hd_tl_foreign foreign;
static struct hd_diag diag;

static int open_arena(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int close_arena(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

static enum hd_err import(const char *text, size_t len)
{
	diag.text[0] = 0;
	return hd_tl_import(&arena, "f.json", (const uint8_t *)text, len, &t, &foreign, &diag);
}

static void imported(const char *text)
{
	enum hd_err err = import(text, strlen(text));

	CHECK(err == HD_OK, "%s", diag.text);
}

static void refused(const char *text, const char *says)
{
	enum hd_err err = import(text, strlen(text));

	CHECK(err == HD_E_INPUT && strstr(diag.text, says) && strstr(diag.text, "f.json"),
		"%d: '%s' not '%s'", (int)err, diag.text, says);
}

static const char *name_of(uint64_t i) { return t.name[t.event[i].name]; }

static void events_become_processes_lanes_and_slices(void **state)
{
	(void)state;
	imported("{\"traceEvents\": [\n"
		"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":7,\"tid\":0,"
		"\"args\":{\"name\":\"train\"}},\n"
		"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":\"a\","
		"\"args\":{\"name\":\"main\"}},\n"
		"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"x\\u00e9\\n\",\"pid\":7,\"tid\":\"a\","
		"\"ts\":10.5,\"dur\":2.0015,\"args\":{\"deep\":[{\"a\":[1,2]},null,true],\"bytes\":12}},\n"
		"{\"dur\":1,\"ts\":11,\"tid\":\"a\",\"pid\":7,\"name\":\"in\",\"ph\":\"X\"},\n"
		"{\"ph\":\"B\",\"name\":\"b\",\"pid\":\"q\",\"tid\":2,\"ts\":20},\n"
		"{\"ph\":\"i\",\"name\":\"mark\",\"pid\":\"q\",\"tid\":2,\"ts\":2.1e1},\n"
		"{\"ph\":\"E\",\"pid\":\"q\",\"tid\":2,\"ts\":22},\n"
		"{\"ph\":\"C\",\"name\":\"n\",\"pid\":\"q\",\"tid\":2,\"ts\":23,\"args\":{\"v\":5}},\n"
		"{\"ph\":\"b\",\"name\":\"async\",\"pid\":\"q\",\"tid\":2,\"ts\":24},\n"
		"], \"baseTimeNanoseconds\": 1700000000000000001,"
		" \"distributedInfo\": {\"backend\":\"gloo\",\"rank\": 34}}");
	assert_true(t.foreign && t.nprocesses == 2 && t.nlanes == 2 && t.nevents == 5);
	assert_true(foreign.nskipped == 1 && foreign.nunpaired == 0 && !foreign.cut);
	assert_string_equal(t.process[0].name, "train");
	assert_true(t.process[0].pid == 7 && t.process[1].pid == 0 && t.process[0].worker == 34);
	assert_string_equal(t.lane[0].name, "main");
	assert_string_equal(t.lane[1].name, "2");
	assert_true(t.realtime_ns == 1700000000000000001 + 10500 && t.base_ns == 10500);
	assert_true(t.event[0].t0 == 0 && t.event[0].t1 == 2002 && t.event[0].arg == 12);
	assert_string_equal(name_of(0), "x\xc3\xa9\n");
	assert_true(t.event[1].t0 == 500 && t.event[1].t1 == 1500);
	assert_true(t.event[2].t0 == 9500 && t.event[2].t1 == 11500 && t.event[3].kind == HD_EVENT_MARK &&
		t.event[3].t0 == 10500 && t.event[4].kind == HD_EVENT_COUNTER && t.event[4].arg == 5);
	assert_true(t.begin == 0 && t.end == 12500);
}

static void flows_join_the_slices_around_their_ends(void **state)
{
	(void)state;
	imported("[{\"ph\":\"X\",\"name\":\"outer\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":10},"
		"{\"ph\":\"X\",\"name\":\"launch\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":3},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":1,\"tid\":2,\"ts\":7,\"dur\":3},"
		"{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":4,\"pid\":1,\"tid\":1,\"ts\":3},"
		"{\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":4,\"pid\":1,\"tid\":2,"
		"\"ts\":7,\"bp\":\"e\"},"
		"{\"ph\":\"X\",\"name\":\"l\",\"pid\":1,\"tid\":1,\"ts\":20,\"dur\":3},"
		"{\"ph\":\"X\",\"name\":\"l\",\"pid\":1,\"tid\":1,\"ts\":30,\"dur\":3},"
		"{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":5,\"pid\":1,\"tid\":1,\"ts\":20},"
		"{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"b\",\"id\":4,\"pid\":1,\"tid\":1,\"ts\":33},"
		"{\"ph\":\"s\",\"cat\":\"other\",\"name\":\"ac2g\",\"id\":4,\"pid\":1,\"tid\":1,\"ts\":7}]");
	assert_true(t.nevents == 5 && t.nlanes == 2 && t.lane[0].kind == HD_LANE_CONTROL &&
		t.lane[1].kind == HD_LANE_DEVICE);
	assert_string_equal(name_of(1), "launch");
	assert_true(t.event[1].flow && t.event[1].flow == t.event[4].flow);
	/* of another category, id and name */
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t k = 0; k < i; k++)
			assert_true(t.event[i].flow && t.event[i].flow != t.event[k].flow);
}

static void steps_are_those_of_the_profiler(void **state)
{
	(void)state;
	imported("[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#7\",\"pid\":1,\"tid\":1,"
		"\"ts\":100,\"dur\":50},"
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#8\",\"pid\":1,\"tid\":1,"
		"\"ts\":150,\"dur\":50},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":1,\"tid\":2,\"ts\":160,\"dur\":3}]");
	assert_true(t.nsteps == 2 && t.step[0].number == 7 && t.step[1].number == 8 && t.step[1].committed);
	assert_true(t.step[1].begin == 50000 && t.step[1].end == 100000);
	const struct hd_tl_event *k = &t.event[t.lane[1].begin];
	assert_true(k->step == 1 && k->class == HD_TL_FORWARD);
}

static void what_is_wrong_is_named_with_its_index(void **state)
{
	(void)state;
	refused("[{\"ph\":\"i\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1},"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":1}]",
		"event 1");
	refused("[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":-1}]", "negative dur");
	refused("[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":\"5\"}]", "no ts that is a time");
	refused("[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":9e99}]", "no ts that is a time");
	refused("[{\"ph\":\"X\" \"pid\":1}]", "comma");
	refused("[{\"ph\"=1}]", "colon");
	refused("nothing", "neither { nor [");
	refused("", "neither");
	refused("{\"a\": ", "ends in the middle");
	refused("{\"a\": tru, \"traceEvents\": []}", "no value");
	char deep[200];
	memset(deep, '[', sizeof deep - 1);
	deep[sizeof deep - 1] = 0;
	memcpy(deep, "{\"x\":", 5);
	refused(deep, "deeper");
	memset(deep + 5, '[', 64);
	memset(deep + 69, ']', 64);
	memcpy(deep + 133, "}", 2);
	imported(deep);
	memset(deep + 5, '[', 65);
	memset(deep + 70, ']', 65);
	memcpy(deep + 135, "}", 2);
	refused(deep, "deeper");
	static const char zero[] = "[{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"a\0b\"}]";
	assert_int_equal(import(zero, sizeof zero - 1), HD_OK);
	assert_string_equal(name_of(0), "a\xef\xbf\xbd" "b");
}

static void what_is_open_or_cut_off_is_counted(void **state)
{
	(void)state;
	const char *text = "[{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":1},"
		"{\"ph\":\"B\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":2},"
		"{\"ph\":\"X\",\"name\":\"x\",\"pid\":1,\"tid\":1,\"ts\":3,\"dur\":4}]";
	imported(text);
	assert_true(foreign.nunpaired == 2 && t.nevents == 2 && t.event[0].t1 == 5000 &&
		t.event[0].flags == HD_EVENT_FLAG_OPEN);
	uint64_t most = 0;
	for (size_t len = 0; len < strlen(text); len++) {
		char *copy = malloc(len + 1);            /* a read beyond it is seen by sanitizers */
		memcpy(copy, text, len);
		enum hd_err err = import(copy, len);
		CHECK(err == HD_E_INPUT || (err == HD_OK && foreign.cut && t.nevents >= most), "%zu: %s", len,
			diag.text);
		most = err ? most : t.nevents;
		free(copy);
	}
	assert_int_equal(most, 2);
}

static void decimals_are_exact_to_the_digit_asked_for(void **state)
{
	(void)state;
	static const struct { const char *text; int digits; bool ok; int64_t v; } row[] = {
		{ "1695835542514261", 3, true, 1695835542514261000 }, { "0.0005", 3, true, 1 },
		{ "0.0004999", 3, true, 0 }, { "-1.2345", 3, true, -1235 }, { "12", 0, true, 12 },
		{ "1e3", 3, true, 1000000 }, { "12.3456e-1", 3, true, 1235 }, { "1e40", 0, false, 0 },
		{ "99999999999999999999", 0, false, 0 }, { "1-2", 0, false, 0 }, { "-", 0, false, 0 },
		{ "1.2.3", 3, false, 0 }, { "2305843009213694", 3, false, 0 },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		int64_t v = 0;
		bool ok = hd_tl_scan_decimal(row[i].text, strlen(row[i].text), row[i].digits, &v);
		CHECK(ok == row[i].ok && (!ok || v == row[i].v), "%s: %lld", row[i].text, (long long)v);
	}
}

static void strings_are_unescaped_to_good_text(void **state)
{
	(void)state;
	static const struct { const char *json, *text; } row[] = {
		{ "\"a\\\"b\\\\c\\/\\t\"", "a\"b\\c/\t" }, { "\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80" },
		{ "\"\\ud83d.\"", "\xef\xbf\xbd." }, { "\"\\u0000\"", "\xef\xbf\xbd" },
		{ "\"\\u20ac\x01\"", "\xe2\x82\xac\x01" }, { "\"\\ud83d\\u0041\"", "\xef\xbf\xbd" },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct json_scan scan = { .begin = row[i].json, .at = row[i].json,
			.end = row[i].json + strlen(row[i].json) };
		struct hd_text text;
		hd_text_init(&text, &arena);
		assert_true(hd_tl_scan_string(&scan, &text));
		assert_string_equal(text.at, row[i].text);
	}
}

static void each_piece_of_memory_may_be_refused(void **state)
{
	(void)state;
	const char *text = "[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#7\",\"pid\":1,"
		"\"tid\":1,\"ts\":100,\"dur\":50},"
		"{\"ph\":\"B\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":120}]";
	enum hd_err err;
	EACH_PIECE_REFUSED(err, import(text, strlen(text)));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_arena, close_arena)
	const struct CMUnitTest tests[] = {
		T(events_become_processes_lanes_and_slices),
		T(flows_join_the_slices_around_their_ends),
		T(steps_are_those_of_the_profiler),
		T(what_is_wrong_is_named_with_its_index),
		T(what_is_open_or_cut_off_is_counted),
		T(decimals_are_exact_to_the_digit_asked_for),
		T(strings_are_unescaped_to_good_text),
		T(each_piece_of_memory_may_be_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
