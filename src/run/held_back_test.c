#include "run/held_back.h"

#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "timeline/testing_files.h"

/* one device; a step takes 1000 ticks of 1 ns */
enum { STEP = 1000, FIRST = 100 };

static struct hd_fs_sim sim;
static struct tl_flight flight;
static uint64_t now;

static int fresh(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	assert_int_equal(hd_fs_mkdirs(&sim.fs, "/run/flight", NULL), HD_OK);
	now = FIRST;
	return 0;
}

static int gone(void **state)
{
	(void)state;
	hd_fs_sim_finish(&sim);
	return 0;
}

/* Waits for data that long, computes for the rest, in nops instructions. */
static void record(uint64_t step, uint64_t data, uint64_t nops)
{
	const uint64_t length = (STEP - data) / nops;

	tl_flight_step(&flight, now, false, step, false);
	if (data)
		tl_flight_put(&flight, 0, (struct hd_event){ .t0 = now, .duration = data,
			.kind = HD_EVENT_WAIT, .arg = hd_wait_arg(HD_WAIT_DATA, 0) });
	for (uint64_t i = 0; i < nops; i++)
		tl_flight_op(&flight, 0, now + data + i * length, length, "F", 0);
	now += STEP;
	tl_flight_step(&flight, now, true, step, true);
}

static void put(const char *path)
{
	assert_int_equal(hd_file_write_atomic(&sim.fs, path, flight.memory, flight.len, NULL), HD_OK);
	tl_flight_close(&flight);
}

static void put_steps(const char *path, uint64_t n, uint64_t data)
{
	tl_flight_open(&flight, 0, 1, 1 << 10);
	for (uint64_t s = 0; s < n; s++)
		record(s, data, 1);
	put(path);
}

static const char *look(uint64_t began, uint64_t step)
{
	static char text[HD_HELD_BACK_BYTES];

	hd_held_back_look(&sim.fs, "/run", began, step, text);
	return text;
}

#define DATA(percent) percent " % of the devices' time went into waiting for data"

static void the_sentence_is_of_the_steps_since_the_process_began(void **state)
{
	(void)state;
	put_steps("/run/flight/0.hdfr", 40, 200);
	assert_string_equal(look(0, 40), DATA("20"));
	assert_string_equal(look(20, 40), DATA("20"));
	assert_string_equal(look(21, 40), "");            /* too few */
	assert_string_equal(look(40, 80), "");            /* none of them was recorded */
	assert_string_equal(look(40, 20), "");
}

static void a_share_of_no_more_than_5_percent_is_nothing(void **state)
{
	(void)state;
	put_steps("/run/flight/0.hdfr", 40, 50);
	assert_string_equal(look(0, 40), "");
	put_steps("/run/flight/0.hdfr", 40, 60);
	assert_string_equal(look(0, 40), DATA("6"));
}

static void what_cannot_be_read_is_left_out(void **state)
{
	(void)state;
	assert_string_equal(look(0, 40), "");
	put_steps("/run/flight/0.hdfr.1", 40, 500);       /* of an earlier process */
	assert_string_equal(look(0, 40), "");
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(hd_file_write_atomic(&sim.fs, i ? "/run/flight/1.hdfr" :
			"/run/flight/.hdfr", "HDFLIGHT and no more", i ? 20 : 0, NULL), HD_OK);
		assert_string_equal(look(0, 40), "");
	}
	put_steps("/run/flight/0.hdfr", 40, 200);
	assert_string_equal(look(0, 40), DATA("20"));
	hd_held_back_look(&sim.fs, "/nowhere", 0, 40, (char[HD_HELD_BACK_BYTES]){ "x" });
}

/* Newer events than are looked at hide the steps before them. */
static void no_more_than_the_newest_events_are_looked_at(void **state)
{
	(void)state;
	enum { OLD = 30, NEW = 4, OPS = HD_HELD_BACK_SLOTS / 4 + 100 };

	_Static_assert(OPS * NEW > HD_HELD_BACK_SLOTS && OPS * NEW < 1 << 17, "all is recorded");
	tl_flight_open(&flight, 0, 1, 1 << 17);
	for (uint64_t s = 0; s < OLD; s++)
		record(s, 500, 1);
	for (uint64_t s = 0; s < NEW; s++)
		record(OLD + s, 0, OPS);
	put("/run/flight/0.hdfr");
	assert_string_equal(look(0, OLD + NEW), "");
}

static void the_note_is_an_event_of_the_run(void **state)
{
	(void)state;
	struct hd_clock_sim clock;
	struct hd_rundir dir;
	struct hd_arena arena;
	char text[HD_HELD_BACK_BYTES];
	uint8_t *bytes;
	size_t len;

	hd_clock_sim(&clock, 0, 0);
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock.clock, "/", "/noted", "n", "{}", 2, NULL),
		HD_OK);
	hd_held_back_note(&dir, 0, 40, text);
	assert_string_equal(text, "");
	put_steps("/noted/flight/0.hdfr", 40, 200);
	hd_held_back_note(&dir, 0, 40, text);
	assert_string_equal(text, DATA("20"));
	hd_rundir_close(&dir);
	assert_int_equal(hd_file_read_all(&sim.fs, "/noted/events.ndjson", &arena, 1 << 16, &bytes, &len,
		NULL), HD_OK);
	const char *first = strstr((const char *)bytes, "\"kind\":\"held_back\"");
	CHECK(first && !strstr(first + 16, "held_back") && strstr(first, "\"step\":40") && strstr(first,
		"\"text\":\"" DATA("20") "\"}"), "%.*s", (int)len, (const char *)bytes);
	hd_arena_finish(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_sentence_is_of_the_steps_since_the_process_began, fresh,
			gone),
		cmocka_unit_test_setup_teardown(a_share_of_no_more_than_5_percent_is_nothing, fresh, gone),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_left_out, fresh, gone),
		cmocka_unit_test_setup_teardown(no_more_than_the_newest_events_are_looked_at, fresh, gone),
		cmocka_unit_test_setup_teardown(the_note_is_an_event_of_the_run, fresh, gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
