#include "pipeline/draw.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static struct hd_sim simulate(struct hd_arena *arena, const char *name, uint32_t p, uint32_t m,
	struct hd_rank_costs costs)
{
	struct hd_schedule s;
	struct hd_sim sim = { 0 };
	const struct hd_sim_ask ask = { .costs = costs, .spans = true };

	assert_int_equal(hd_schedule_make(&s, &(struct hd_schedule_ask){ .name = name, .p = p, .m = m },
		arena, NULL), HD_OK);
	assert_int_equal(hd_simulate(&sim, &s, &ask, arena, NULL), HD_OK);
	return sim;
}

static void text_shows_each_instruction_where_it_runs(void **state)
{
	struct hd_arena arena;
	struct hd_text text;
	const struct hd_rank_costs one = { HD_UNIT_PS, HD_UNIT_PS, HD_UNIT_PS, 0 };

	(void)state;
	hd_arena_init(&arena, 0);
	struct hd_sim sim = simulate(&arena, "1f1b", 2, 2, one);
	hd_text_init(&text, &arena);
	assert_int_equal(hd_draw_text(&sim, &text, NULL), HD_OK);
	assert_string_equal(text.at,
		"   0 |F0 F1       B0===    B1=== |\n"
		"   1 |   F0 B0=== F1 B1===       |\n"
		"     one cell is 1\n");
	hd_arena_finish(&arena);
}

static void pairs_and_chunks_are_told_apart(void **state)
{
	struct hd_arena arena;
	struct hd_text text;

	(void)state;
	hd_arena_init(&arena, 0);
	struct hd_sim sim = simulate(&arena, "dualpipev", 2, 4, HD_UNIT_COSTS);
	hd_text_init(&text, &arena);
	assert_int_equal(hd_draw_text(&sim, &text, NULL), HD_OK);
	assert_non_null(strstr(text.at, "F0b"));
	assert_non_null(strstr(text.at, " F3&&B1b&&&& "));
	assert_non_null(strstr(text.at, "one cell is 0.5"));
	hd_arena_finish(&arena);
}

static uint32_t count(const char *text, const char *what)
{
	uint32_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void a_picture_has_a_box_for_each_instruction(void **state)
{
	struct hd_arena arena;
	struct hd_text text;

	(void)state;
	hd_arena_init(&arena, 0);
	struct hd_sim sim = simulate(&arena, "zb-h1", 3, 5, HD_UNIT_COSTS);
	hd_text_init(&text, &arena);
	assert_int_equal(hd_draw_svg(&sim, &text, NULL), HD_OK);
	assert_int_equal(count(text.at, "<title>rank "), 3 * 5 * 3);
	assert_int_equal(count(text.at, "<title>rank 2 W"), 5);
	assert_non_null(strstr(text.at, "<title>rank 0 F0, 0 to 1</title>"));
	assert_string_equal(text.at + text.len - 7, "</svg>\n");
	hd_arena_finish(&arena);
}

static void why_ranks_stand_still_is_drawn(void **state)
{
	struct hd_arena arena;
	struct hd_text text;
	struct hd_schedule s;
	struct hd_sim_plan sim;
	struct hd_diag diag = { "" };
	struct hd_stage_costs costs;

	(void)state;
	hd_arena_init(&arena, 0);
	/* F 2, B 2, hop 1, two ranks, one virtual node: F0 2, 1, F1 2, B1 2, 1, B0 2: ten parts of twelve
	 * columns */
	CHECK(hd_schedule_make(&s, &(struct hd_schedule_ask){ .name = "gpipe", .p = 2, .m = 1 }, &arena,
		&diag) == HD_OK, "%s", diag.text);
	CHECK(hd_stage_costs_even(&costs, &(struct hd_rank_costs){ 2000, 1000, 1000, 0 }, 2, &arena,
		&diag) == HD_OK, "%s", diag.text);
	CHECK(hd_sim_plan(&sim, &s, &(struct hd_sim_setting){ .costs = &costs, .hop = 1000, .spans = true },
		&arena, &diag) == HD_OK, "%s", diag.text);
	hd_text_init(&text, &arena);
	assert_int_equal(hd_draw_plan_text(&sim, &text, &diag), HD_OK);
	char want[2][HD_DRAW_COLUMNS + 16] = { "   0 |", "   1 |" };
	static const char parts[2][11] = { "FF.....tBB", "wwwFFBB   " };
	for (int r = 0; r < 2; r++)
		for (int c = 0; c < HD_DRAW_COLUMNS; c++)
			want[r][6 + c] = parts[r][c / 12];
	for (int r = 0; r < 2; r++)
		CHECK(strstr(text.at, want[r]), "%s is not in\n%s", want[r], text.at);
	hd_text_init(&text, &arena);
	assert_int_equal(hd_draw_plan_svg(&sim, &text, &diag), HD_OK);
	assert_int_equal(count(text.at, "<title>rank 0 waits: "), 2);
	assert_int_equal(count(text.at, "<title>rank 1 waits: warm-up"), 1);
	assert_int_equal(count(text.at, "<title>rank "), 4 + 3);
	hd_arena_finish(&arena);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct hd_arena arena;
	struct hd_text text;
	struct hd_diag diag = { "" };

	(void)state;
	hd_arena_init(&arena, 0);
	struct hd_sim sim = simulate(&arena, "1f1b", 2, 8, (struct hd_rank_costs){ HD_UNIT_PS, HD_UNIT_PS,
		HD_UNIT_PS + 1, 0 });
	hd_text_init(&text, &arena);
	assert_int_equal(hd_draw_text(&sim, &text, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "draw a picture"));
	hd_arena_finish(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_shows_each_instruction_where_it_runs),
		cmocka_unit_test(pairs_and_chunks_are_told_apart),
		cmocka_unit_test(a_picture_has_a_box_for_each_instruction),
		cmocka_unit_test(why_ranks_stand_still_is_drawn),
		cmocka_unit_test(what_does_not_fit_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
