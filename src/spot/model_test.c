#include "spot/model.h"

#include <stdio.h>

#include "spot/testing.h"

static struct hd_arena arena;

static int set_up(void **state) { (void)state; hd_arena_init(&arena, 0); return 0; }
static int tear_down(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

static const char GOOD[] = "{\"name\": \"BERT\", \"stages\": 12, \"batch\": 264, \"local_ms\": 20000,"
	" \"step_ms\": [4310, 2390], \"on_demand\": {\"nodes\": 20, \"step_ms\": 2510}";

static struct hd_spot_model with(const char *more)
{
	char text[400];

	snprintf(text, sizeof text, "%s%s}", GOOD, more);
	return model_of(text, &arena);
}

static void what_is_left_out_is_as_the_header_says(void **state)
{
	struct hd_spot_model m = with("");
	(void)state;

	assert_string_equal(m.name, "BERT");
	assert_true(m.stages == 12 && m.batch == 264 && m.local_ms == 20000 && m.npipelines == 2);
	assert_true(m.step_ms[0] == 4310 && m.step_ms[1] == 2390 && m.wanted == 0);
	assert_true(m.nano_usd_h == 910000000 && m.on_demand.nano_usd_h == 3060000000);
	assert_true(m.redundant_ppm == 0 && m.bubble_ppm == 0);
	/* 264 samples in 2.51 s, 20 machines at 3.06 dollars an hour */
	assert_true(hd_spot_model_on_demand(&m) > 6187.0166 && hd_spot_model_on_demand(&m) < 6187.0167);
	assert_true(m.boot_ms == 45000 && m.rendezvous_ms == 30000 && m.save_ms == 10000 &&
		m.reload_ms == 30000 && m.pause_ms == 0 && m.end_ms == 40000000);
	m = with(", \"boot_ms\": 1, \"rendezvous_ms\": 2, \"save_ms\": 3, \"reload_ms\": 4, \"pause_ms\": 5, "
		"\"end_ms\": 6");
	assert_true(m.boot_ms == 1 && m.rendezvous_ms == 2 && m.save_ms == 3 && m.reload_ms == 4 &&
		m.pause_ms == 5 && m.end_ms == 6);
	m = with(", \"wanted\": 7, \"usd_h\": 0.25, \"redundant\": 0.125, \"bubble\": 0.5");
	assert_true(m.wanted == 7 && m.nano_usd_h == 250000000 && m.redundant_ppm == 125000 &&
		m.bubble_ppm == 500000);
}

static void a_bad_table_is_refused_with_the_member(void **state)
{
	static const struct { const char *text, *says; } bad[] = {
		{ "{}", "m: the whole lacks the member \"name\"" },
		{ "{\"name\": \"x\", \"stages\": 0}", "m: .stages" },
		{ "{\"stage\": 2}", "m: .stage is no member" },
		{ "{\"name\": \"x\", \"stages\": 1, \"batch\": 0}", "m: .batch" },
		{ "{\"name\": \"x\", \"stages\": 1, \"batch\": 1, \"local_ms\": -1}", "m: .local_ms" },
		{ "{\"name\": \"x\", \"stages\": 1, \"batch\": 1, \"local_ms\": 0, \"step_ms\": []}", "m: .step_ms has the times of 1 to 256 pipelines" },
		{ "{\"name\": \"x\", \"stages\": 1, \"batch\": 1, \"local_ms\": 0, \"step_ms\": [9, 0]}", "m: .step_ms[1]" },
		{ "{\"name\": \"x\", \"stages\": 1, \"batch\": 1, \"local_ms\": 0, \"step_ms\": [9], \"on_demand\": {}}", "lacks the member \"nodes\"" },
		{ "{\"name\": \"x\", \"stages\": 1, \"batch\": 1, \"local_ms\": 0, \"step_ms\": [9], \"on_demand\": {\"nodes\": 1, \"step_ms\": 1, \"usd_h\": 0}}", "m: .on_demand.usd_h is above 0" },
		{ "{\"name\": \"x\", \"stages\": 1, \"batch\": 1, \"local_ms\": 0, \"step_ms\": [9], \"on_demand\": {\"nodes\": 1, \"step_ms\": 1}, \"wanted\": 0}", "m: .wanted" },
		{ "{\"name\": \"x\", \"stages\": 1, \"batch\": 1, \"local_ms\": 0, \"step_ms\": [9], \"on_demand\": {\"nodes\": 1, \"step_ms\": 1}, \"usd_h\": -1}", "m: .usd_h is from 0 to" },
		{ "{\"name\": \"x\", \"stages\": 1, \"batch\": 1, \"local_ms\": 0, \"step_ms\": [9], \"on_demand\": {\"nodes\": 1, \"step_ms\": 1}, \"end_ms\": 0}", "m: .end_ms" },
		{ "{\"name\": \"x\", \"stages\": 1, \"batch\": 1, \"local_ms\": 0, \"step_ms\": [9], \"on_demand\": {\"nodes\": 1, \"step_ms\": 1}, \"bubble\": 0.5, \"redundant\": 0.75}", "redundant and bubble are 1.25 together" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct hd_json *json;
		struct hd_spot_model m;
		struct hd_diag diag = { "" };
		CHECK(!hd_json_parse(&arena, "m", bad[i].text, strlen(bad[i].text), &json, &diag), "%s",
			diag.text);
		CHECK(hd_spot_model_read(&m, json, &diag) == HD_E_INPUT, "case %zu", i);
		CHECK(strstr(diag.text, bad[i].says), "case %zu: %s", i, diag.text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_out_is_as_the_header_says),
		cmocka_unit_test(a_bad_table_is_refused_with_the_member),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
