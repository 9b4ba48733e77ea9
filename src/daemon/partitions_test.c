/* The file of partitions: what it means, and what is said of one that means nothing. */
#include "daemon/partitions.h"

#include <string.h>

#include "tests/check.h"

static struct hd_pools pools;
static struct hd_arena arena;

static int begin(void **state)
{
	(void)state;
	pools = (struct hd_pools){ 0 };
	hd_arena_init(&arena, 0);
	return hd_pools_add(&pools, "fast:3", NULL) || hd_pools_add(&pools, "slow:4", NULL) ||
		hd_pools_open(&pools, NULL, NULL);
}
static int end(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

static void a_file_is_read_in_the_order_in_which_partitions_take_devices(void **state)
{
	static const char text[] = "partitions:\n"
		"  night: {devices: [slow, fast], most_running: 9}\n"
		"  week:\n    devices: [slow-3]\n    groups: [students]\n    users: [ada]\n"
		"  day:\n    devices: [slow-2, fast:2]\n    default: true\n    priority: 10\n"
		"    preempt: [night, week]\n    time: 90s\n    job_devices: 2\n    user_devices: 3\n";
	struct hd_users_limit of[] = { { .name = "user bob" }, { .name = "group students" } };
	struct hd_dispatch_limit limit[2];
	struct hd_partitions p;
	struct hd_diag diag = { "" };
	(void)state;

	CHECK(!hd_partitions_read(&p, "f", text, sizeof text - 1, &pools, &arena, &diag), "%s", diag.text);
	CHECK(p.n == 3 && p.standard == 0 && hd_partitions_find(&p, "week") == 2 &&
		hd_partitions_find(&p, "weekend") == HD_PARTITIONS_NONE, "%u of them", p.n);
	const struct hd_partition_row *day = &p.of[0], *night = &p.of[1], *week = &p.of[2];
	CHECK(!strcmp(day->is.name, "day") && !strcmp(night->is.name, "night"), "%s, then %s", day->is.name,
		night->is.name);
	/* devices by their numbers: fast 0-2, slow 3-6 */
	CHECK(day->is.ndevices == 3 && day->is.device[0] == 0 && day->is.device[1] == 1 &&
		day->is.device[2] == 5 && night->is.ndevices == 7 && week->is.device[0] == 6, "devices");
	CHECK(day->is.preempts == 6 && !night->is.preempts && day->is.most == 2 && day->time_s == 90,
		"preempts %llx", (unsigned long long)day->is.preempts);
	CHECK(hd_partition_admits(day, NULL, 0) && hd_partition_admits(week, of, 2) &&
		!hd_partition_admits(week, of, 1) && !hd_partition_admits(week, NULL, 0), "whose jobs");
	CHECK(hd_partition_limits(day, "ada", limit) == 1 && limit[0].devices == 3 &&
		limit[0].running == UINT32_MAX && !strcmp(limit[0].name, "user ada in partition day"), "%s",
		limit[0].name);
	CHECK(hd_partition_limits(night, "ada", limit) == 1 && limit[0].running == 9 &&
		!strcmp(limit[0].name, "partition night"), "%s", limit[0].name);
	CHECK(hd_partition_limits(week, "ada", limit) == 0, "limits of week");
}

/* Lent devices come in any order: the first of a type may be in no partition. */
static void where_devices_are_lent_partitions_have_whole_types(void **state)
{
	static const char parts[] = "partitions: {a: {devices: [fast:2]}, b: {devices: [slow]}}\n",
		whole[] = "partitions: {a: {devices: [fast:3]}, b: {devices: [slow, fast-0, fast]}}\n";
	struct hd_diag diag = { "" };
	struct hd_partitions p;
	(void)state;

	CHECK(!hd_partitions_read(&p, "f", parts, sizeof parts - 1, &pools, &arena, &diag), "%s", diag.text);
	CHECK(hd_partition_has(&p.of[0], &pools, 0) && !hd_partition_has(&p.of[0], &pools, 1), "a has fast");
	CHECK(!hd_partition_has(&p.of[1], &pools, 0) && hd_partition_has(&p.of[1], &pools, 1), "b has slow");
	CHECK(hd_partitions_whole(&p, "f", &pools, &diag) == HD_E_INPUT &&
		strstr(diag.text, "f: partition a has 2 of 3 fast"), "%s", diag.text);
	CHECK(!hd_partitions_read(&p, "f", whole, sizeof whole - 1, &pools, &arena, &diag), "%s", diag.text);
	CHECK(!hd_partitions_whole(&p, "f", &pools, &diag), "%s", diag.text);
}

static void a_file_that_means_nothing_is_refused_with_its_place(void **state)
{
	static const struct { const char *text, *says; } rows[] = {
		{ "", "f" },
		{ "a: 1\n", "f:1:1: the file has one table, `partitions`" },
		{ "partitions: {}\n", "f:1:13: 0 partitions: 1 to 16" },
		{ "partitions: {a: {}}\n", "f:1:14: partition a has no devices" },
		{ "partitions: {a b: {devices: [fast]}}\n", "f:1:14: \"a b\" is no name" },
		{ "partitions: {a: {devices: [fsat]}}\n", "f:1:28: devices \"fsat\": a type of the pools, TYPE:N or "
			"TYPE-NUMBER; did you mean fast?" },
		{ "partitions: {a: {devices: [fast:4]}}\n", "f:1:28: devices fast:4: there are 3 of fast" },
		{ "partitions: {a: {devices: ['fast:']}}\n", "there are 3 of fast" },
		{ "partitions: {a: {devices: [fast-3]}}\n", "f:1:28: devices \"fast-3\"" },
		{ "partitions: {a: {devices: fast}}\n", "f:1:27: devices is a" },
		{ "partitions: {a: {device: [fast]}}\n", "f:1:18: there is no \"device\" here; did you mean devices?" },
		{ "partitions: {a: {devices: [fast], time: 4}}\n", "time is a time, as 90s" },
		{ "partitions: {a: {devices: [fast], user_devices: 0}}\n", "user_devices is a count from 1" },
		{ "partitions: {a: {devices: [fast], users: []}}\n", "an empty list admits no user" },
		{ "partitions: {a: {devices: [fast], default: yes}}\n", "default is true or false" },
		{ "partitions: {a: {devices: [fast], priority: 0}}\n", "priority is a number from 1e-6" },
		{ "partitions: {a: {devices: [fast], preempt: [b]}, bb: {devices: [fast]}}\n",
			"preempt: there is no partition \"b\"" },
		{ "partitions: {a: {devices: [fast], preempt: [b]}, b: {devices: [fast]}}\n",
			"it takes devices from partitions of lower priority alone" },
		{ "partitions: {a: {devices: [fast], preempt: [a]}}\n", "of lower priority alone" },
		{ "partitions: {a: {devices: [fast], default: true}, b: {devices: [fast], default: true}}\n",
			"f:1:51: a and b are both default" },
		{ "partitions: {a: {devices: [fast]}, a: {devices: [slow]}}\n", "f:1:" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_partitions p;
		struct hd_diag diag = { "" };
		enum hd_err err = hd_partitions_read(&p, "f", rows[i].text, strlen(rows[i].text), &pools,
			&arena,
			&diag);
		CHECK(err == HD_E_INPUT && !p.n && strstr(diag.text, rows[i].says), "row %zu: %s", i,
			diag.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_read_in_the_order_in_which_partitions_take_devices,
			begin, end),
		cmocka_unit_test_setup_teardown(where_devices_are_lent_partitions_have_whole_types, begin,
			end),
		cmocka_unit_test_setup_teardown(a_file_that_means_nothing_is_refused_with_its_place, begin,
			end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
