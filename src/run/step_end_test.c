#include "run/step_end.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/schedule.h"
#include "run/port_exchange.h"
#include "tests/planning.h"
#include "tests/check.h"

/* Stages of 100 and 300 bytes. A byte of a join takes 2 ns, one on its way 3 to each side; the squares of all
 * 400 take 4000, and nothing is late. */

enum { STAGES = 2, ADD = 2, LINK = 3, NORM = 4000 };

static const struct { const char *lists; uint32_t nvns; } grids[] = {
	/* one pipeline, one with shares of a tree's halves, one whose first rank has 3 of 4 */
	{ "0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n", 2 },
	{ "0: F0.0 F0.1 I0.0 I0.1 W0.0 W0.1\n1: F1.0 B1.0 F1.1 B1.1\n"
	"2: F0.2 F0.3 B0.2 B0.3\n3: F1.2 B1.2 F1.3 B1.3\n", 4 },
	{ "0: F0.0 F0.1 F0.2 B0.0 B0.1 B0.2\n1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2\n"
	"2: F0.3 B0.3\n3: F1.3 B1.3\n", 4 },
	/* both stages on each rank */
	{ "0: F0.0 F1.0 B1.0 B0.0\n1: F0.1 F1.1 B1.1 B0.1\n", 2 },
	{ "0: F0.0 F1.0 B1.0 B0.0\n1: F0.1 F1.1 B1.1 B0.1\n2: F0.2 F1.2 B1.2 B0.2\n", 3 },
};

static void plan_of(struct hd_plan *plan, uint32_t grid, uint32_t *first)
{
	struct hd_schedules all;
	struct hd_diag diag = { "" };
	const char *lists = grids[grid].lists;

	CHECK(hd_schedules_parse(&all, lists, strlen(lists), "lists", &arena, &diag) == HD_OK, "%s",
		diag.text);
	*plan = (struct hd_plan){ .nranks = all.at[0].nranks, .nstages = STAGES, .first = first,
		.nvns = grids[grid].nvns, .list = all.at[0].list };
}

static double took(uint32_t grid, struct hd_step_holders holders, uint32_t cores, uint32_t copies[STAGES])
{
	static uint32_t first[] = { 0, 7 };
	struct hd_stage_cost cost[] = { { .param = 100 }, { .param = 300 } };
	const struct hd_stage_costs stages = { .nstages = STAGES, .stage = cost };
	struct hd_run_costs costs = { .norm_ns = NORM, .link_ns_per_byte = LINK };
	struct hd_diag diag = { "" };
	struct hd_plan plan;
	double ns = -1;

	costs.line.profile.sum_ns_per_byte = ADD;
	plan_of(&plan, grid, first);
	CHECK(hd_step_copies(copies, &plan, &holders, &arena, &diag) == HD_OK &&
		hd_step_end_time(&ns, &plan, &stages, &costs, &holders, cores, &arena, &diag) == HD_OK, "%s",
		diag.text);
	return ns;
}

static void ends_take_what_is_counted_by_hand(void **state)
{
	static const struct {
		uint32_t grid; struct hd_step_holders holders; uint32_t cores, copies[STAGES]; double ns;
	} rows[] = {
		/* squares alone, by both ranks, or by one core */
		{ 0, { 0 }, 0, { 1, 1 }, NORM / 2 },
		{ 0, { 0 }, 1, { 1, 1 }, NORM },
		/* a join of each stage besides, by four ranks; of uneven shares two: 0-1, 2 and 3 */
		{ 1, { 0 }, 0, { 1, 1 }, (NORM + 400 * ADD) / 4.0 },
		{ 2, { 0 }, 0, { 1, 1 }, (NORM + 2 * 400 * ADD) / 4.0 },
		{ 2, { 0 }, 3, { 1, 1 }, (NORM + 2 * 400 * ADD) / 3.0 },
		/* a worker a rank, which holds its own stage: nothing is sent, the later one has most */
		{ 0, { .devices = 1 }, 0, { 1, 1 }, NORM * 0.75 },
		{ 0, { .devices = 1 }, 1, { 1, 1 }, NORM },
		/* all hold all: each gets the other's stage and gives its own */
		{ 0, { .devices = 1, .whole = true }, 0, { 2, 2 }, NORM + 400 * LINK },
		/* two workers hold a stage: half of it goes out as it was made, half of the other's comes in;
		 * then the sums the other way round; each joins its half */
		{ 1, { .devices = 1 }, 0, { 2, 2 }, NORM * 0.75 + 4 * 150 * LINK + 150 * ADD },
		/* the other two need the sums too, and have those of 100 */
		{ 1, { .devices = 1, .whole = true }, 0, { 4, 4 },
			NORM + (150 + 150 + 150 * 3 + 400 - 150) * LINK + 150 * ADD },
		/* two devices a worker, a pipeline each: all of it is at both */
		{ 1, { .devices = 2 }, 0, { 2, 2 }, (NORM + 4 * 200 * LINK + 200 * ADD) / 2.0 },
		/* three of four make two roots, one of which is the only one that the other joins with */
		{ 2, { .devices = 2 }, 0, { 2, 2 },
			(NORM + (2 * 200 + 200 + 200 + 200) * LINK + 2 * 200 * ADD) / 2.0 },
		{ 3, { .devices = 1 }, 0, { 2, 2 }, NORM + 4 * 200 * LINK + 200 * ADD },
		/* of two stages with shadows both workers hold both; one that has both keeps none */
		{ 0, { .devices = 1, .shadows = true }, 0, { 2, 2 }, NORM + 400 * LINK },
		{ 1, { .devices = 1, .shadows = true }, 0, { 4, 4 },
			NORM + (150 + 150 + 150 * 3 + 400 - 150) * LINK + 150 * ADD },
		{ 1, { .devices = 2, .shadows = true }, 0, { 2, 2 },
			(NORM + 4 * 200 * LINK + 200 * ADD) / 2.0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint32_t copies[STAGES];
		const double ns = took(rows[i].grid, rows[i].holders, rows[i].cores, copies);
		CHECK(fabs(ns - rows[i].ns) < 1e-9, "row %zu: %g, not %g", i, ns, rows[i].ns);
		CHECK(copies[0] == rows[i].copies[0] && copies[1] == rows[i].copies[1], "row %zu: %u, %u", i,
			copies[0], copies[1]);
	}
}

/* A byte takes a nanosecond each way, five until it is there: as partial sum, and again as sum. */
static void links_are_taken_by_the_buckets_of_a_plan(void **state)
{
	static uint32_t first[] = { 0, 7 };
	static const struct {
		const char *what; uint32_t grid; bool whole; uint32_t copies;
		struct hd_step_bucket bucket[3]; uint32_t n; double ns;
	} rows[] = {
		{ "each stage at one worker alone", 0, false, 0, { { 100, 50, 0, 1, 1 }, { 300, 0, 1, 2, 2 } }, 2, 0 },
		{ "each gives its own to the other", 0, true, 0, { { 100, 50, 0, 1, 1 }, { 300, 0, 1, 2, 2 } }, 2, 300 + 5 },
		{ "no earlier than it is made", 0, true, 0, { { 100, 250, 0, 1, 1 }, { 300, 0, 1, 2, 2 } }, 2, 350 + 5 },
		{ "to the one that adds, and back", 1, false, 0, { { 100, 150, 0, 1, 1 }, { 300, 0, 1, 2, 2 } }, 2, 600 + 10 },
		{ "the first stage is later", 1, false, 0, { { 100, 450, 0, 1, 1 }, { 300, 0, 1, 2, 2 } }, 2, 650 + 10 },
		/* both stages at both workers: of one bucket each the first is the owner */
		{ "one after the other", 3, false, 0, { { 100, 150, 0, 1, 1 }, { 300, 0, 1, 2, 2 } }, 2, 300 + 5 + 400 + 5 },
		{ "a pause between", 3, false, 0, { { 100, 1000, 0, 1, 1 }, { 300, 0, 1, 2, 2 } }, 2, 1200 + 10 },
		{ "of three of a stage the first has two", 3, false, 0,
			{ { 100, 0, 1, 2, 2 }, { 100, 0, 1, 2, 2 }, { 100, 0, 1, 2, 2 } }, 3, 300 + 10 },
		{ "and the other the last", 3, false, 0,
			{ { 100, 900, 1, 2, 2 }, { 100, 900, 1, 2, 2 }, { 100, 0, 1, 2, 2 } }, 3, 1200 + 10 },
		/* one pipeline: what both stages are in goes from the second to the first, and back */
		{ "a cut within a bucket", 0, false, 0, { { 100, 50, 0, 3, 3 }, { 300, 0, 1, 2, 2 } }, 2, 250 + 10 },
		{ "read by the other alone", 0, false, 0, { { 100, 50, 0, 1, 3 }, { 300, 0, 1, 2, 2 } }, 2, 150 + 5 },
		/* three: the first gets two of each, gives both sums to two, or to one, which gives the third
		 * the new parameters */
		{ "replicated", 4, true, 0, { { 100, 0, 0, 1, 1 }, { 300, 0, 1, 2, 2 } }, 2, 600 + 5 + 800 + 5 },
		{ "sharded", 4, true, 2, { { 100, 0, 0, 1, 1 }, { 300, 0, 1, 2, 2 } }, 2, 600 + 5 + 400 + 5 + 400 + 5 },
	};
	const struct hd_run_costs costs = { .port_bytes_per_s = 1e9, .port_latency_ns = 5 };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_step_holders holders = { .devices = 1, .whole = rows[i].whole,
			.copies = rows[i].copies };
		struct hd_plan plan;
		double ns = -1;
		plan_of(&plan, rows[i].grid, first);
		assert_int_equal(hd_step_link_time(&ns, &plan, &costs, &holders, rows[i].bucket, rows[i].n,
			NULL, &arena, NULL), HD_OK);
		CHECK(fabs(ns - rows[i].ns) < 1e-3, "%s: %g, not %g", rows[i].what, ns, rows[i].ns);
	}
}

/* Two pipelines of two: each has its own time for each of its stages, and a bucket waits for those that make
 * it. */
static void parts_leave_when_their_worker_has_made_them(void **state)
{
	static uint32_t first[] = { 0, 7 };
	static const struct { double last_ns[4][STAGES]; uint64_t makers; double ns; } rows[] = {
		{ { { 0 } }, 2, 200 + 10 },
		/* the owner is the second; the fourth makes it as well */
		{ { [3] = { 0, 70 } }, 2, 270 + 10 },
		{ { [1] = { 0, 70 } }, 2, 200 + 10 },
		{ { [1] = { 0, 170 } }, 2, 270 + 5 },
		/* those of another stage do not matter, unless it makes some of it */
		{ { [3] = { 70, 0 } }, 2, 200 + 10 },
		{ { [3] = { 250, 0 } }, 3, 450 + 10 },
	};
	const struct hd_run_costs costs = { .port_bytes_per_s = 1e9, .port_latency_ns = 5 };
	const struct hd_step_holders holders = { .devices = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		/* read by the second stage alone */
		const struct hd_step_bucket bucket = { 100, 0, 1, rows[i].makers, 2 };
		struct hd_plan plan;
		double ns = -1;
		plan_of(&plan, 1, first);
		assert_int_equal(hd_step_link_time(&ns, &plan, &costs, &holders, &bucket, 1,
			rows[i].last_ns[0], &arena, NULL), HD_OK);
		CHECK(fabs(ns - rows[i].ns) < 1e-3, "row %zu: %g, not %g", i, ns, rows[i].ns);
	}
}

/* Four times as many as are simulated, half of each owner. */
static void many_buckets_of_an_owner_count_as_one(void **state)
{
	enum { N = 4 * HD_PORT_BUCKETS };
	static uint32_t first[] = { 0, 7 };
	const struct hd_run_costs costs = { .port_bytes_per_s = 1e9 };
	const struct hd_step_holders holders = { .devices = 1 };
	struct hd_step_bucket bucket[N];
	struct hd_plan plan;
	double ns = -1;

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		bucket[i] = (struct hd_step_bucket){ 10, i ? 0 : 5000, 1, 2, 2 };
	plan_of(&plan, 3, first);
	assert_int_equal(hd_step_link_time(&ns, &plan, &costs, &holders, bucket, N, NULL, &arena, NULL),
		HD_OK);
	/* the first of all with its neighbours */
	CHECK(ns > 5000 && fabs(ns - (5000 + 2 * 4 * 10)) < 1e-3, "%g", ns);
}

/* Of a bucket of each owner none goes together with another: what is left is exchanged, not free. */
static void more_buckets_than_are_simulated_are_exchanged(void **state)
{
	enum { PIPES = 33, N = 2 * HD_PORT_BUCKETS + 2 };
	static uint32_t first[] = { 0, 7 };
	static char lists[PIPES * 64];
	const struct hd_run_costs costs = { .port_bytes_per_s = 1e9, .port_latency_ns = 5 };
	struct hd_step_holders holders = { .devices = 2 };
	struct hd_step_bucket bucket[N];
	struct hd_schedules all;
	struct hd_diag diag = { "" };
	double ns = -1;
	size_t len = 0;

	(void)state;
	for (int i = 0; i < PIPES; i++)
		len += (size_t)snprintf(lists + len, sizeof lists - len, "%d: F0.%d B0.%d\n%d: F1.%d B1.%d\n",
			2 * i, i, i, 2 * i + 1, i, i);
	CHECK(hd_schedules_parse(&all, lists, len, "lists", &arena, &diag) == HD_OK, "%s", diag.text);
	/* 33 pipelines of two, a worker each, which owns a bucket of either stage */
	struct hd_plan plan = { .nranks = 2 * PIPES, .nstages = STAGES, .first = first, .nvns = PIPES,
		.list = all.at[0].list };
	for (uint32_t i = 0; i < 2 * PIPES; i++)
		bucket[i] = (struct hd_step_bucket){ 10, 0, i / PIPES, 1 + i / PIPES, 1 + i / PIPES };
	assert_int_equal(hd_step_link_time(&ns, &plan, &costs, &holders, bucket, 2 * PIPES, NULL, &arena,
		NULL), HD_OK);
	/* two sums to 32 others, and a part to each of them of its two */
	CHECK(fabs(ns - (2 * 2 * 32 * 10 + 2 * 5)) < 1e-3, "33 pipelines: %g", ns);

	/* two workers that have both stages: one part, two parts, one, ... and half of each owner */
	for (uint32_t i = 0; i < N; i++)
		bucket[i] = (struct hd_step_bucket){ 10, 0, 0, i % 2 ? 3 : 1, 1 };
	plan_of(&plan, 3, first);
	holders.devices = 1;
	assert_int_equal(hd_step_link_time(&ns, &plan, &costs, &holders, bucket, N, NULL, &arena, NULL),
		HD_OK);
	/* the second gets 32 and 2 * 33 parts, and 65 sums */
	CHECK(fabs(ns - ((32 + 2 * 33 + 65) * 10 + 2 * 5)) < 1e-3, "two workers: %g", ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(ends_take_what_is_counted_by_hand),
		cmocka_unit_test(links_are_taken_by_the_buckets_of_a_plan),
		cmocka_unit_test(parts_leave_when_their_worker_has_made_them),
		cmocka_unit_test(many_buckets_of_an_owner_count_as_one),
		cmocka_unit_test(more_buckets_than_are_simulated_are_exchanged) };

	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
