#include "driver/driver_int.h"

#include <stdio.h>
#include <string.h>

#include "base/le.h"
#include "driver/testing_run.h"

/* As many as a record may have: 64 members, and those that come in the place of all of them. */
static struct hd_co_record full(uint32_t nmembers)
{
	struct hd_co_record r = { .serial = 0x1122334455667788, .term = 3, .epoch = 70,
		.next_worker = 1000131, .target = 64, .nmembers = nmembers,
		.started = true, .halting = true, .halt_code = 75, .ngoing = nmembers, .mismatches = 2,
		.mismatched = UINT64_C(0x100000005), .nunfit = HD_CO_UNFIT };

	memset(r.halt_why, 'w', HD_MSG_TEXT);
	for (uint32_t i = 0; i < nmembers; i++) {
		r.member[i] = 3 + i;
		r.going[i] = 1000003 + i;
	}
	for (uint32_t i = 0; i < HD_CO_UNFIT; i++)
		r.unfit[i] = (struct hd_co_unfit){ 1000003 + i, UINT64_C(0x8877665544332211) + i };
	return r;
}

static void a_record_comes_back_as_it_was(void **state)
{
	const struct hd_co_record r = full(HD_MAX_WORKERS);
	uint8_t bytes[DRIVER_RECORD_BYTES];
	struct hd_co_record back;
	struct hd_diag diag = { "" };

	(void)state;
	driver_record_put(&r, bytes);
	CHECK(driver_record_get(&back, bytes, sizeof bytes, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(back.serial, r.serial);
	assert_int_equal(back.term, r.term);
	assert_int_equal(back.epoch, r.epoch);
	assert_int_equal(back.next_worker, r.next_worker);
	assert_int_equal(back.target, r.target);
	assert_int_equal(back.nmembers, r.nmembers);
	assert_memory_equal(back.member, r.member, sizeof r.member);
	assert_true(back.started && back.halting);
	assert_int_equal(back.halt_code, 75);
	assert_string_equal(back.halt_why, r.halt_why);
	assert_int_equal(back.ngoing, r.ngoing);
	assert_memory_equal(back.going, r.going, sizeof r.going);
	assert_int_equal(back.mismatches, r.mismatches);
	assert_int_equal(back.mismatched, r.mismatched);
	assert_int_equal(back.nunfit, r.nunfit);
	for (uint32_t i = 0; i < r.nunfit; i++)
		assert_true(back.unfit[i].worker == r.unfit[i].worker && back.unfit[i].shape ==
			r.unfit[i].shape);
}

/* By a program before: no worker refused anything. */
static void a_record_without_refusals_is_read(void **state)
{
	const struct hd_co_record r = full(2);
	uint8_t bytes[DRIVER_RECORD_BYTES];
	struct hd_co_record back;
	struct hd_diag diag = { "" };

	(void)state;
	driver_record_put(&r, bytes);
	CHECK(driver_record_get(&back, bytes, sizeof bytes - 4 - HD_CO_UNFIT * 12, &diag) == HD_OK, "%s",
		diag.text);
	assert_true(back.halt_code == 75 && back.ngoing == 2 && !back.nunfit);
}

/* Its layout, written down once more: a run that was begun by the program before goes on. */
static void a_record_of_before_is_read(void **state)
{
	uint8_t bytes[30 + 64 * 4] = { 0 };
	struct hd_co_record r;
	struct hd_diag diag = { "" };

	(void)state;
	hd_put64(bytes, 41);
	hd_put32(bytes + 8, 2);
	hd_put32(bytes + 12, 9);
	hd_put32(bytes + 16, 5);
	hd_put32(bytes + 20, 3);
	hd_put32(bytes + 24, 2);
	bytes[28] = 1;
	hd_put32(bytes + 30, 1);
	hd_put32(bytes + 34, 4);
	CHECK(driver_record_get(&r, bytes, sizeof bytes, &diag) == HD_OK, "%s", diag.text);
	assert_true(r.serial == 41 && r.term == 2 && r.epoch == 9 && r.next_worker == 5 && r.target == 3 &&
		r.started && !r.halting);
	assert_true(r.nmembers == 2 && r.member[0] == 1 && r.member[1] == 4);
	assert_true(r.mismatches == 0 && r.mismatched == 0);
}

/* A stop stored without a reason by an earlier program: the job was not done. */
static void a_halt_of_before_is_a_stop(void **state)
{
	uint8_t bytes[30 + 128 * 4 + 12] = { 0 };
	struct hd_co_record r;
	struct hd_diag diag = { "" };

	(void)state;
	for (uint8_t halting = 0; halting < 2; halting++) {
		bytes[29] = halting;
		hd_put32(bytes + 30 + 128 * 4, 2);
		CHECK(driver_record_get(&r, bytes, sizeof bytes, &diag) == HD_OK, "%s", diag.text);
		assert_int_equal(r.halt_code, halting ? 75 : 0);
		assert_string_equal(r.halt_why, halting ? "it was asked to stop" : "");
		assert_true(r.mismatches == 2 && r.ngoing == 0);
	}
}

static void what_cannot_be_a_record_is_refused(void **state)
{
	static const struct { size_t len, at; uint8_t byte; } row[] = { { DRIVER_RECORD_BYTES - 1, 0, 0 },
		{ DRIVER_RECORD_BYTES, 24, HD_MAX_WORKERS + 1 },
		{ DRIVER_RECORD_BYTES, 28, 2 }, { DRIVER_RECORD_BYTES, 29, 2 }, { 30 + 64 * 4, 24, 65 }, { 0, 0, 0 },
		{ DRIVER_RECORD_BYTES, 30 + 128 * 4 + 13, 1 }, { DRIVER_RECORD_BYTES, 30 + 128 * 4 + 12 + 5, 3 },
		{ DRIVER_RECORD_BYTES, DRIVER_RECORD_BYTES - HD_CO_UNFIT * 12 - 4 - 128 * 4 - 4, 129 },
		{ DRIVER_RECORD_BYTES, DRIVER_RECORD_BYTES - HD_CO_UNFIT * 12 - 4, HD_CO_UNFIT + 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_co_record r = full(2);
		uint8_t bytes[DRIVER_RECORD_BYTES];
		struct hd_co_record back;
		struct hd_diag diag = { "" };
		driver_record_put(&r, bytes);
		bytes[row[i].at] = row[i].byte;
		CHECK(driver_record_get(&back, bytes, row[i].len, &diag) == HD_E_INTEGRITY, "row %zu", i);
		assert_string_equal(diag.text, "the coordinator's record is not of this program");
	}
}

/* The step that was mismatched last stays: only a state that is newer than that is progress. */
static void who_resumes_has_had_the_machines_looked_at(void **state)
{
	struct hd_co_record stopped = full(3), cut = full(3);

	(void)state;
	driver_record_resume(&stopped);
	assert_true(!stopped.halting && !stopped.started && stopped.nmembers == 0 && stopped.mismatches == 0);
	assert_true(stopped.halt_code == 0 && !*stopped.halt_why && stopped.ngoing == 0 && !stopped.nunfit);
	assert_int_equal(stopped.mismatched, UINT64_C(0x100000005));
	cut.halting = false;
	driver_record_resume(&cut);
	assert_true(cut.started && cut.nmembers == 3 && cut.member[2] == 5 && cut.mismatches == 0);
}

/* A worker needs work: a virtual node, or of one the part of a pipeline's device. */
static void a_job_takes_as_many_workers_as_have_work(void **state)
{
	static const struct { const char *parallel; uint32_t max; } rows[] = { { "mode: data", 2 },
		{ "stages: 3", 6 }, { "mode: pipeline", HD_MAX_MEMBERS }, { "mode: pipeline, width: 4", 8 },
		/* not chosen yet; chosen */
		{ "mode: auto", HD_MAX_MEMBERS }, { "mode: auto, settled: 'data-parallel 1 1 of 2'", 2 },
		{ "mode: auto, settled: 'data-parallel 1 1'", 2 },
		{ "mode: auto, settled: '1f1b 3 3 of 3'", HD_MAX_MEMBERS } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		struct hd_arena arena;
		struct hd_job job;
		char yaml[300];
		uint32_t min, max;
		hd_arena_init(&arena, 0);
		snprintf(yaml, sizeof yaml, "job: {steps: 3}\nmodel: {use: builtin:lenet}\n"
			"data: {kind: synthetic, count: 64}\nbatch: {global: 16, virtual_nodes: 2}\n"
			"parallel: {%s}\n", rows[i].parallel);
		CHECK(hd_job_parse(&job, "t.yaml", yaml, strlen(yaml), NULL, 0, &arena, &diag, NULL) == HD_OK,
			"%s", diag.text);
		assert_int_equal(hd_driver_bounds(&job, &min, &max, NULL), HD_OK);
		CHECK(max == rows[i].max && min == 1, "%s: %u", rows[i].parallel, max);
		hd_arena_finish(&arena);
	}
}

/* A driver of a machine that was up for another time comes to the store late, or at once: what it writes
 * next is as many seconds after the run's beginning as have passed. */
static void time_goes_on_from_the_beginning(void **state)
{
	static const int64_t late_ms[][2] = { { 700, 0 }, { 0, 700 }, { 300, 300 } };

	(void)state;
	for (size_t i = 0; i < sizeof late_ms / sizeof *late_ms; i++) {
		struct desk desk;
		struct hd_clock_sim clock;
		char path[100];
		desk_open(&desk, "");
		struct hd_driver_spec spec = { .fs = &desk.made.rig.fs, .clock = &clock.clock,
			.dir = &desk.dir };
		struct driver c = { .spec = &spec };
		snprintf(path, sizeof path, "%s/began.db", desk.parent);
		CHECK(hd_store_open(&c.store, path, &desk.diag) == HD_OK, "%s", desk.diag.text);
		hd_clock_sim(&clock, INT64_C(1000000000000), INT64_C(1700000000000000000));
		desk.dir.clock = &clock.clock;
		for (int at = 0; at < 2; at++) {
			desk.dir.began_ns = hd_clock_now_ns(&clock.clock);
			hd_clock_sim_advance(&clock, late_ms[i][at] * 1000000);
			CHECK(driver_set_began(&c, &desk.diag) == HD_OK, "%s", desk.diag.text);
			CHECK((hd_clock_now_ns(&clock.clock) - desk.dir.began_ns) / 1000000 ==
				late_ms[i][0] + (at ? 2000 + late_ms[i][1] : 0), "%zu %d: %lld ns", i, at,
				(long long)(hd_clock_now_ns(&clock.clock) - desk.dir.began_ns));
			hd_clock_sim_advance(&clock, 2000 * INT64_C(1000000));
			hd_clock_sim(&clock, INT64_C(5000000000), clock.wall_ns);    /* another machine's */
		}
		hd_store_close(c.store);
		desk_close(&desk);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_comes_back_as_it_was),
		cmocka_unit_test(a_record_without_refusals_is_read),
		cmocka_unit_test(a_record_of_before_is_read),
		cmocka_unit_test(a_halt_of_before_is_a_stop),
		cmocka_unit_test(what_cannot_be_a_record_is_refused),
		cmocka_unit_test(a_job_takes_as_many_workers_as_have_work),
		cmocka_unit_test(time_goes_on_from_the_beginning),
		cmocka_unit_test(who_resumes_has_had_the_machines_looked_at),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
