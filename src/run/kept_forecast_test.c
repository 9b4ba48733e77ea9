#include "run/kept_forecast.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "run/kept_plan.h"
#include "tests/check.h"

enum { ROWS = 12000 };

/* What is written is read; what would be refused there is not written, and the one before stays. */
static void what_is_too_long_to_be_read_is_not_written(void **state)
{
	struct hd_forecast_row *row = hd_alloc(ROWS * sizeof *row);
	struct hd_forecast forecast = { .step_ns = 2e6, .row = row, .nrows = 3 };
	const struct hd_json *json;
	struct hd_diag diag = { "" };
	struct hd_rundir dir;
	struct hd_arena arena;
	struct hd_clock clock;
	struct hd_fs fs;
	char parent[64], path[HD_PATH_CAP];
	int64_t plan = 0;

	(void)state;
	assert_non_null(row);
	for (uint32_t i = 0; i < ROWS; i++)
		row[i] = (struct hd_forecast_row){ .op = HD_INS_F, .stage = (uint16_t)i, .n = 1,
			.predicted_ns = 1e6 / 3 };
	hd_fs_real(&fs);
	hd_clock_real(&clock);
	hd_arena_init(&arena, 0);
	snprintf(parent, sizeof parent, "/tmp/hd_kept_forecast_test.%d", (int)getpid());
	snprintf(path, sizeof path, "%s/run", parent);
	assert_int_equal(hd_fs_mkdirs(&fs, parent, NULL), HD_OK);
	assert_int_equal(hd_rundir_create(&dir, &fs, &clock, parent, path, "x", "{}", 2, NULL), HD_OK);
	hd_rundir_path(&dir, HD_PLAN_FOLDER, path, sizeof path);
	assert_int_equal(hd_fs_remove_tree(&fs, path, NULL), HD_OK);
	assert_int_equal(hd_forecast_keep(&forecast, &dir, 1, HD_KEPT_MEASURED, &diag), HD_OK);
	forecast.nrows = ROWS;
	assert_int_equal(hd_forecast_keep(&forecast, &dir, 2, HD_KEPT_MEASURED, &diag), HD_E_NOSPACE);
	assert_non_null(strstr(diag.text, "plan/0002.measured.json would have"));
	CHECK(hd_forecast_newest(&json, &dir, &arena, &diag) == HD_OK, "%s", diag.text);
	assert_true(!hd_json_get_i64(json, "plan", 0, 9, &plan, NULL) && plan == 1);
	hd_rundir_close(&dir);
	hd_arena_finish(&arena);
	hd_free(row);
	assert_int_equal(hd_fs_remove_tree(&fs, parent, NULL), HD_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_too_long_to_be_read_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
