/* Answers of coordinators against the fleet that the daemon makes of them: windows are differences of sums,
 * hosts are the devices that workers hold, apart by type. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/daemon_int.h"
#include "tests/check.h"

enum { WORKERS = 5 };

static struct hd_arena arena;
static struct hd_clock_sim ticks;

static int set_up(void **state)
{
	static struct hd_daemon d;
	static struct hd_pools pools;
	static struct hd_daemon_spec spec = { .pools = &pools };
	struct hd_diag diag = { "" };

	hd_clock_sim(&ticks, 0, 0);
	pools = (struct hd_pools){ 0 };
	if (hd_pools_add(&pools, "slow:2:1", &diag) ||
		hd_pools_add(&pools, "fast:5:2", &diag) || hd_pools_open(&pools, NULL, &diag))
		return -1;
	d = (struct hd_daemon){ .spec = &spec, .clock = &ticks.clock, .fleet = hd_alloc(sizeof *d.fleet) };
	hd_arena_init(&d.scratch, 0);
	hd_arena_init(&arena, 0);
	for (uint32_t i = 0; i < WORKERS; i++) {  /* the first has a device of the slow type, slow-0 */
		d.slot[i ? i - 1 : 5].there = true;
		d.slot[i ? i - 1 : 5].limited = 100 + (int)i;
	}
	*state = &d;
	if (d.fleet)
		hd_fleet_init(d.fleet);
	return !d.fleet;
}

static int tear_down(void **state)
{
	struct hd_daemon *d = *state;

	hd_free(d->fleet);
	hd_arena_finish(&d->scratch);
	hd_arena_finish(&arena);
	return 0;
}

/* Of `steps` steps with two virtual nodes a worker; the last one takes `times` as long, by
 * waiting for data. */
static void hear(struct hd_daemon *d, struct watch *w, int64_t steps, double times)
{
	static struct hd_live live;
	const struct hd_json *json;
	struct hd_json_writer out;
	struct hd_text text;
	struct hd_diag diag = { "" };

	live = (struct hd_live){ .name = "", .state = "running", .why = "", .autoscale = "", .best = "",
		.autoscale_why = "", .plan_why = "", .redundancy = "", .resilience = "", .saving = "",
		.functions = "", .listen = "", .nworkers = WORKERS };
	for (uint32_t i = 0; i < WORKERS; i++) {
		const int64_t read_ns = i + 1 < WORKERS ? 0 : (int64_t)((times - 1) * 20e6) * steps;
		live.worker[i] = (struct hd_live_worker){ .id = i, .pid = 100 + (int64_t)i, .state = "member",
			.follows = "", .notice = "", .zone = "", .address = "",
			.sum_steps = steps, .sum_vns = 2 * steps, .sum_read_wait_ns = read_ns,
			.sum_compute_ns = 20000000 * steps + read_ns };
	}
	hd_text_init(&text, &arena);
	hd_json_writer_init(&out, &text);
	hd_json_open_object(&out, NULL);
	hd_live_put(&live, HD_LIVE_SOCKET, &out);
	hd_json_close(&out);
	CHECK(hd_json_parse(&arena, "answer", text.at, text.len, &json, &diag) == HD_OK, "%s", diag.text);
	daemon_fleet_heard(d, w, json);
}

static const char *said(const struct hd_daemon *d, bool slow)
{
	struct hd_json_writer out;
	struct hd_text text;

	hd_text_init(&text, &arena);
	hd_json_writer_init(&out, &text);
	hd_json_open_array(&out, NULL);
	daemon_fleet_fill(d, slow, &out);
	hd_json_close(&out);
	return text.at;
}

static void slow_readers_are_named_by_two_jobs(void **state)
{
	struct hd_daemon *d = *state;
	static struct watch w[2] = { { .job = 1, .fleet_s = -100 }, { .job = 2, .fleet_s = -100 } };

	for (uint32_t at = 0; at < 4; at++) {
		for (uint32_t i = 0; i < 2; i++)
			hear(d, &w[i], 10 * (at + 1), 1.5);
		if (at == 0)
			assert_string_equal(said(d, true), "[]");
		ticks.now_ns += INT64_C(4900000000);
	}
	assert_string_equal(said(d, true), "[{\"host\":\"fast-3\",\"jobs\":2,\"judged\":2,\"slow_jobs\":2,"
		"\"slow\":true,\"cause\":\"data\",\"times\":1.5,\"share\":1,\"since_s\":4.9,"
		"\"text\":\"fast-3 is slow by waiting for data: 1.50 times the median worker's time "
		"in 2 of 2 jobs, for 15 s\"}]");
	CHECK(strstr(said(d, false), "\"slow-0\",\"jobs\":2,\"judged\":0") && strstr(said(d, false),
		"\"fast-0\",\"jobs\":2,\"judged\":2"), "%s", said(d, false));
	assert_int_equal(d->fleet->n, WORKERS);
}

/* Too early an answer is of no window; steps that were not made, and sums that begin again, say nothing. */
static void a_window_is_a_difference(void **state)
{
	struct hd_daemon *d = *state;
	static struct watch w = { .job = 1, .fleet_s = -100 };

	hear(d, &w, 10, 1);
	assert_int_equal(w.sums[4].steps, 10);
	ticks.now_ns += 1000000000;
	hear(d, &w, 20, 3);
	assert_int_equal(w.sums[4].steps, 10);
	for (uint32_t i = 0; i < 3; i++) {        /* the same again */
		ticks.now_ns += INT64_C(5000000000);
		hear(d, &w, 10, 1);
	}
	assert_int_equal(d->fleet->host[0].pair[0].heard_s, 0);
	for (uint32_t i = 0; i < 3; i++) {        /* a coordinator that knows less each time */
		ticks.now_ns += INT64_C(5000000000);
		hear(d, &w, 9 - i, 2);
	}
	assert_int_equal(d->fleet->host[0].pair[0].heard_s, 0);
	assert_string_equal(said(d, true), "[]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(slow_readers_are_named_by_two_jobs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_window_is_a_difference, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
