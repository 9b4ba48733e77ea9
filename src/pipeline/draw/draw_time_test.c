#include "pipeline/draw_time.h"

#include <string.h>

#include "tests/check.h"

struct picture { struct hd_arena arena; struct hd_schedules s; struct hd_stage_costs costs;
	struct hd_sim_plan sim; struct hd_text text; struct hd_diag diag; };

/* f, i and w of a full rank in units, no transfer time. */
static void draw(struct picture *p, const char *schedule, int f, int i, int w, uint32_t columns)
{
	struct hd_rank_costs full = { f * HD_UNIT_PS, i * HD_UNIT_PS, w * HD_UNIT_PS, 0 };
	struct hd_sim_setting setting = { .costs = &p->costs, .spans = true };

	memset(p, 0, sizeof *p);
	hd_arena_init(&p->arena, 0);
	hd_text_init(&p->text, &p->arena);
	CHECK(hd_schedules_parse(&p->s, schedule, strlen(schedule), "s", &p->arena, &p->diag) == HD_OK, "%s",
		p->diag.text);
	CHECK(hd_stage_costs_even(&p->costs, &full, p->s.at[0].nstages, &p->arena, &p->diag) == HD_OK, "%s",
		p->diag.text);
	CHECK(hd_sim_plan(&p->sim, &p->s.at[0], &setting, &p->arena, &p->diag) == HD_OK, "%s", p->diag.text);
	CHECK(hd_draw_time(&p->sim, columns, &p->text, &p->diag) == HD_OK, "%s", p->diag.text);
}

/* 1f1b of two ranks and two virtual nodes, forward 1, backward 2: nine units. */
static void every_unit_has_its_columns(void **state)
{
	static const char schedule[] = "0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n";
	static const char want[] =
		"    0 |F0=F1=......B0====...B1====|\n"
		"    1 |...F0=B0====F1=B1====......|\n"
		"      one column is ";
	struct picture p;

	(void)state;
	draw(&p, schedule, 1, 1, 1, 27);
	CHECK(!strncmp(p.text.at, want, strlen(want)), "%s", p.text.at);
	hd_arena_finish(&p.arena);
}

static void chunks_have_letters_and_halves_their_own(void **state)
{
	static const char schedule[] = "0: F0.0 F3.0 I3.0 W3.0 I0.0 W0.0\n1: F1.0 F2.0 I2.0 W2.0 I1.0 W1.0\n"
		/* the same stages again */
		"2: F0.1 F3.1 I3.1 W3.1 I0.1 W0.1\n3: F1.1 F2.1 I2.1 W2.1 I1.1 W1.1\n";
	struct picture p;

	(void)state;
	draw(&p, schedule, 1, 1, 1, 44);
	CHECK(strstr(p.text.at, "F0==") && strstr(p.text.at, "F0b=") && strstr(p.text.at, "I0b=") &&
		strstr(p.text.at, "W0b="), "%s", p.text.at);
	CHECK(strstr(p.text.at, "F1==") && strstr(p.text.at, "F1b=") && strstr(p.text.at, "I1b=") &&
		strstr(p.text.at, "W1b="), "%s", p.text.at);
	hd_arena_finish(&p.arena);
}

/* However many columns: lines are as wide, and what a rank does not do is as wide as its idle time, to a
 * column an instruction. */
static void widths_are_shares_of_the_time(void **state)
{
	static const char schedule[] = "0: F0.0 F0.1 F0.2 B0.0 B0.1 B0.2\n1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2\n";

	(void)state;
	for (uint32_t columns = 1; columns <= 300; columns += 13) {
		struct picture p;
		draw(&p, schedule, 3, 2, 2, columns);
		const char *line = p.text.at;
		for (uint32_t r = 0; r < 2; r++, line = strchr(line, '\n') + 1) {
			uint32_t idle = 0;
			const char *bar = strchr(line, '|') + 1;
			assert_int_equal(strcspn(bar, "|"), columns);
			for (uint32_t c = 0; c < columns; c++)
				idle += bar[c] == '.';
			double want = (1 - (double)p.sim.rank[r].busy / (double)p.sim.makespan) * columns;
			CHECK(idle <= want + 7 && idle + 7 >= want, "%u columns, rank %u: %u idle, not %g",
				columns, r, idle, want);
		}
		hd_arena_finish(&p.arena);
	}
}

static void impossible_widths_are_refused(void **state)
{
	struct picture p;

	(void)state;
	draw(&p, "0: F0.0 B0.0\n", 1, 1, 1, 10);
	assert_int_equal(hd_draw_time(&p.sim, 0, &p.text, &p.diag), HD_E_INVAL);
	p.diag.text[0] = 0;
	assert_int_equal(hd_draw_time(&p.sim, HD_DRAW_TIME_COLUMNS + 1, &p.text, &p.diag), HD_E_INVAL);
	p.diag.text[0] = 0;
	p.sim.span = NULL;
	assert_int_equal(hd_draw_time(&p.sim, 10, &p.text, &p.diag), HD_E_INVAL);
	hd_arena_finish(&p.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_unit_has_its_columns),
		cmocka_unit_test(chunks_have_letters_and_halves_their_own),
		cmocka_unit_test(widths_are_shares_of_the_time),
		cmocka_unit_test(impossible_widths_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
