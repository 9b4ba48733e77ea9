#include "pipeline/reuse.h"

#include <math.h>

#include "pipeline/schedule.h"
#include "tests/planning.h"
#include "tests/check.h"

enum { STAGES = 2 };

/* Looked up, a distance gives itself, from 1 to 4; apart ten times as much. */
static const struct hd_reuse same = { { { 1, 2, 4 }, { 1, 2, 4 }, { 1, 2, 4 }, { 10, 20, 40 },
	{ 10, 20, 40 } } };

static double looked_up(double distance) { return distance < 1 ? 1 : distance; }

/* Of the lists as they stand. */
static void means_of(struct hd_stage_reuse of[STAGES], const char *lists, uint32_t nvns,
	const double *share)
{
	struct hd_schedules all;
	struct hd_diag diag = { "" };

	CHECK(hd_schedules_parse(&all, lists, strlen(lists), "lists", &arena, &diag) == HD_OK, "%s",
		diag.text);
	const struct hd_plan plan = { .nranks = all.at[0].nranks, .nstages = STAGES, .nvns = nvns,
		.list = all.at[0].list };
	CHECK(hd_reuse_stages(of, &plan, share, &same, &arena, &diag) == HD_OK, "%s", diag.text);
}

static void distances_are_those_counted_by_hand(void **state)
{
	static const double half[] = { 0.5, 0.5 }, uneven[] = { 1.5, 0.25 }, whole[] = { 1, 1 };
	/* of stage 0 and 1: the distances of all F, of all that compute for the input, for the weights */
	static const struct {
		const char *lists; uint32_t nvns; const double *share; double at[STAGES][3][4];
	} rows[] = {
		/* all forwards first: the place left last is taken first */
		{ "0: F0.0 F0.1 F0.2 B0.0 B0.1 B0.2\n1: F1.0 F1.1 F1.2 B1.0 B1.1 B1.2\n", 3, half,
			{ { { .5, 1, 1.5 }, { 1.5, 1.5, 1.5 }, { 1.5, 1.5, 1.5 } },
			{ { .5, 1, 1.5 }, { 1.5, 1.5, 1.5 }, { 1.5, 1.5, 1.5 } } } },
		/* one after the other: one place, which nothing else lies between */
		{ "0: F0.0 F0.1 B0.0 F0.2 B0.1 B0.2\n1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2\n", 3, half,
			{ { { .5, 1, .5 }, { 1, 1, 1 }, { 1, 1, 1 } }, { { .5, .5, .5 }, { .5, .5, .5 },
			{ .5, .5, .5 } } } },
		/* the weights later: from their own I on */
		{ "0: F0.0 F0.1 I0.0 I0.1 W0.0 W0.1\n1: F1.0 I1.0 F1.1 I1.1 W1.1 W1.0\n", 2, half,
			{ { { .5, 1 }, { 1, 1 }, { 1, 1 } }, { { .5, 1 }, { .5, .5 }, { .5, 1 } } } },
		/* two stages of one rank, of unequal size */
		{ "0: F0.0 F1.0 B1.0 B0.0 F0.1 F1.1 B1.1 B0.1\n", 2, uneven,
			{ { { 1.5, 1.5 }, { 1.75, 1.75 }, { 1.75, 1.75 } }, { { 1.75, 1.75 }, { .25, .25 },
			{ .25, .25 } } } },
		/* computed again: F leaves its place, R takes the one that was left last */
		{ "0: Fc0.0 Fc0.1 R0.0 B0.0 R0.1 B0.1\n1: F1.0 F1.1 B1.0 B1.1\n", 2, whole,
			{ { { 1, 1, 1, 1 }, { 1, 1 }, { 1, 1 } }, { { 1, 2 }, { 2, 2 }, { 2, 2 } } } },
		/* a place is of one stage */
		{ "0: F0.0 B0.0 F1.0 B1.0\n", 1, uneven,
			{ { { 1.75 }, { 1.5 }, { 1.5 } }, { { 1.75 }, { .25 }, { .25 } } } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_stage_reuse of[STAGES];
		means_of(of, rows[i].lists, rows[i].nvns, rows[i].share);
		for (int s = 0; s < STAGES; s++)
			for (int p = 0; p < 3; p++) {
				const double *at = rows[i].at[s][p];
				double sum = 0;
				int n = 0;
				for (; n < 4 && at[n] > 0; n++)
					sum += looked_up(at[n]) * (strchr(rows[i].lists, 'I') && p ? 10 : 1);
				CHECK(fabs(of[s].by[p] - sum / n) < 1e-12,
					"row %zu, stage %d, phase %d: %g, not %g", i, s, p, of[s].by[p],
					sum / n);
			}
	}
}

/* Lists of a step that begins the next: virtual node 2 is the next step's 0, and no other list has its F. */
static void a_virtual_node_begun_early_is_found_in_the_next_step(void **state)
{
	static const double whole[] = { 1, 1 };
	struct hd_stage_reuse of[STAGES];

	(void)state;
	means_of(of, "0: F0.1 B0.0 F0.2 B0.1\n1: F1.0 F1.1 B1.0 B1.1\n", 2, whole);
	/* F of 1 and 2 take the place left just before; B of both come after one other F and one other B */
	CHECK(of[0].by[0] == 1 && of[0].by[1] == 2 && of[0].by[2] == 2, "%g %g %g", of[0].by[0],
		of[0].by[1], of[0].by[2]);
	CHECK(of[1].by[0] == 1.5 && of[1].by[1] == 2, "%g %g", of[1].by[0], of[1].by[1]);
}

static void a_stage_without_a_phase_takes_what_was_measured(void **state)
{
	static const double whole[] = { 1, 1 };
	struct hd_stage_reuse of[STAGES];

	(void)state;
	/* frozen: I leaves the place, F of the next comes back to it */
	means_of(of, "0: F0.0 I0.0 F0.1 I0.1\n1: F1.0 F1.1\n", 2, whole);
	CHECK(of[0].by[0] == 1 && of[0].by[1] == 10 && of[0].by[2] == 1, "%g %g %g", of[0].by[0],
		of[0].by[1], of[0].by[2]);
	/* nothing but F: the end of the step leaves their places */
	CHECK(of[1].by[0] == 1.5 && of[1].by[1] == 1 && of[1].by[2] == 1, "%g %g %g", of[1].by[0],
		of[1].by[1], of[1].by[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(distances_are_those_counted_by_hand),
		cmocka_unit_test(a_virtual_node_begun_early_is_found_in_the_next_step),
		cmocka_unit_test(a_stage_without_a_phase_takes_what_was_measured) };

	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
