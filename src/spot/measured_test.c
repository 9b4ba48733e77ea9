#include "spot/measured.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "spot/testing.h"

static struct hd_arena arena;

static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

static void steps_are_means_and_others_follow_by_virtual_nodes(void **state)
{
	struct hd_spot_measured m = { 0 };
	struct hd_spot_model model = { 0 };
	(void)state;

	assert_false(hd_spot_measured_steps(&model, &m, 3, 16, 1));
	hd_spot_measured_step(&m, 0, 1);
	hd_spot_measured_step(&m, HD_SPOT_PIPELINES + 1, 1);
	for (int i = 0; i < 3; i++)
		hd_spot_measured_step(&m, 2, (uint64_t)(8000 + i * 1000));
	hd_spot_measured_step(&m, 3, 99);
	hd_spot_measured_step(&m, 3, 99);
	for (int i = 0; i < 4; i++)
		hd_spot_measured_step(&m, 6, 4000);
	assert_true(hd_spot_measured_steps(&model, &m, 8, 16, 1));
	/* 16 virtual nodes: 16, 8, 6, 4, 4, 3, 3, 2 of a pipeline; 9 ms for 8 of them, 4 ms for 3; four
	 * are as
	 * near to two as to six, and five pipelines to six */
	const int64_t want[] = { 18, 9, 7, 5, 5, 4, 4, 3 };
	for (int d = 0; d < 8; d++)
		CHECK(model.step_ms[d] == want[d], "%d pipelines: %lld", d + 1, (long long)model.step_ms[d]);
	assert_true(model.npipelines == 8);
	/* on a clock that runs a hundred times as fast, and never less than a millisecond */
	assert_true(hd_spot_measured_steps(&model, &m, 2, 16, 100) && model.step_ms[1] == 900);
	assert_true(hd_spot_measured_steps(&model, &m, 2, 16, 1e-9) && model.step_ms[1] == 1);
	assert_false(hd_spot_measured_steps(&model, &m, 0, 16, 1));
}

static void what_is_put_is_read_as_it_was(void **state)
{
	struct hd_spot_model m = model_of("{\"name\": \"a b\", \"stages\": 3, \"batch\": 7, \"local_ms\": 9, "
		"\"step_ms\": [5, 4, 3], \"on_demand\": {\"nodes\": 2, \"step_ms\": 8, \"usd_h\": 1.25}, "
		"\"wanted\": 6, \"usd_h\": 0.5, \"redundant\": 0.25, \"bubble\": 0.125, \"boot_ms\": 11, "
		"\"rendezvous_ms\": 12, \"save_ms\": 13, \"reload_ms\": 14, \"pause_ms\": 15, \"end_ms\": "
		"16}",
		&arena);
	struct hd_json_writer w;
	struct hd_text text;
	(void)state;

	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_spot_model_put(&m, &w);
	struct hd_spot_model again = model_of(text.at, &arena);
	assert_string_equal(again.name, m.name);
	again.name = m.name;
	assert_memory_equal(&again, &m, sizeof m);
}

/* A boot of a day and a bit, as a high speed makes it of half a second. */
static void what_could_not_be_read_is_not_written(void **state)
{
	struct hd_spot_model m = model_of("{\"name\": \"a\", \"stages\": 1, \"batch\": 7, \"local_ms\": 0, "
		"\"step_ms\": [5], \"on_demand\": {\"nodes\": 1, \"step_ms\": 8}}", &arena);
	struct hd_diag diag = { "" };
	struct hd_text text;
	(void)state;

	m.boot_ms = 86400000;
	assert_int_equal(hd_spot_model_text(&m, &arena, &text, &diag), HD_OK);
	m.boot_ms++;
	CHECK(hd_spot_model_text(&m, &arena, &text, &diag) == HD_E_INPUT && strstr(diag.text, "boot_ms"),
		"%s",
		diag.text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_means_and_others_follow_by_virtual_nodes),
		cmocka_unit_test(what_is_put_is_read_as_it_was),
		cmocka_unit_test(what_could_not_be_read_is_not_written),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
