#include "run/pipes_settled.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

static bool stays(const char *parallel, const char *set, const char *more, uint32_t ndevices)
{
	const char *at = set ? strchr(set, '=') : NULL;
	struct hd_job_set one = { .origin = HD_FROM_SET };
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	char yaml[640], key[80];
	struct hd_job job;

	hd_arena_init(&arena, 0);
	snprintf(yaml, sizeof yaml, "job: {steps: 3}\nmodel: {use: builtin:lenet}\n"
		"data: {kind: synthetic, count: 64}\nbatch: {global: 16}\n%s\nparallel: {%s}\n", more,
		parallel);
	if (at) {
		snprintf(key, sizeof key, "parallel.%.*s", (int)(at - set), set);
		one.key = key;
		one.text = at + 1;
	}
	CHECK(!hd_job_parse(&job, "t.yaml", yaml, strlen(yaml), &one, at ? 1 : 0, &arena, &diag, NULL), "%s",
		diag.text);
	const bool stays = hd_pipes_stay(&job, ndevices);
	hd_arena_finish(&arena);
	return stays;
}

/* The same devices, no other wish. */
static void what_was_settled_stays_until_something_else_is_asked_for(void **state)
{
	static const struct { const char *parallel, *set, *more; uint32_t ndevices; bool stays; } rows[] = {
		{ "mode: auto, settled: '1f1b 3 3 0,1,2 of 3'", NULL, "", 3, true },
		{ "mode: auto, settled: '1f1b 3 3 0,1,2 of 3'", NULL, "", 6, false },
		{ "mode: auto, settled: '1f1b 3 3 0,1,2 of 3'", NULL, "", 2, false },
		{ "mode: auto, settled: '1f1b 3 3 0,1,2 of 3'", NULL, "", 0, false },
		{ "mode: auto, settled: '1f1b 2 2 of 4'", NULL, "", 4, true },
		{ "mode: auto, settled: '1f1b 3 3 of 4'", NULL, "", 4, false },
		{ "mode: auto, settled: '1f1b 2 2'", NULL, "", 4, true },
		{ "mode: auto, settled: '1f1b 2 2'", NULL, "", 3, false },
		{ "mode: auto, settled: '1f1b 2 2'", NULL, "", 0, false },
		{ "mode: auto", NULL, "", 3, false },
		{ "mode: pipeline, settled: '1f1b 3 3 of 3'", NULL, "", 3, false },
		/* data parallel */
		{ "mode: auto, settled: 'data-parallel 1 1 of 2'", NULL, "", 2, true },
		{ "mode: auto, settled: 'data-parallel 1 1 of 2'", NULL, "", 3, false },
		{ "mode: auto, settled: 'data-parallel 1 1'", NULL, "", 2, false },
		{ "mode: auto, settled: 'data-parallel 1 1 of 2', schedule: gpipe", NULL, "", 2, false },
		{ "mode: auto, settled: 'data-parallel 1 1 of 2'", NULL, "comm: {sync: stages}", 2, false },
		{ "mode: auto, settled: '1f1b 2 2 of 2'", NULL, "comm: {sync: stages}", 2, true },
		/* given for this start, were it the same */
		{ "mode: auto, settled: '1f1b 3 3 of 3'", "schedule=gpipe", "", 3, false },
		{ "mode: auto, settled: '1f1b 3 3 of 3'", "schedule=1f1b", "", 3, false },
		{ "mode: auto, settled: '1f1b 3 3 of 3'", "stages=3", "", 3, false },
		{ "mode: auto, settled: '1f1b 3 3 of 3'", "chunks=1", "", 3, false },
		{ "mode: auto, settled: '1f1b 3 3 of 3'", "replicas=1", "", 3, false },
		{ "mode: auto, settled: '1f1b 3 3 of 3'", "recompute=auto", "", 3, false },
		{ "settled: '1f1b 3 3 of 3'", "mode=auto", "", 3, false },
		/* keys that stand in the job, or come from the environment */
		{ "mode: auto, schedule: 1f1b, settled: '1f1b 3 3 of 3'", NULL, "", 3, true },
		{ "mode: auto, schedule: gpipe, settled: '1f1b 3 3 of 3'", NULL, "", 3, false },
		{ "mode: auto, schedule: 2bw, settled: '1f1b 3 3 of 3'", NULL, "optim: {update: 2bw}", 3, true },
		{ "mode: auto, schedule: 2bw, settled: '2bw 3 3 of 3'", NULL, "optim: {update: 2bw}", 3, true },
		{ "mode: auto, schedule: 2bw, settled: 'gpipe 3 3 of 3'", NULL, "optim: {update: 2bw}", 3,
			false },
		{ "mode: auto, stages: 2, settled: '1f1b 2 2 of 4'", NULL, "", 4, true },
		{ "mode: auto, stages: 4, settled: '1f1b 2 2 of 4'", NULL, "", 4, false },
		{ "mode: auto, chunks: 2, settled: 'zb-v 4 2 of 4'", NULL, "", 4, true },
		{ "mode: auto, chunks: 1, settled: 'zb-v 4 2 of 4'", NULL, "", 4, false },
		{ "mode: auto, replicas: 2, settled: 'zb-v 4 2 of 4'", NULL, "", 4, true },
		{ "mode: auto, replicas: 1, settled: 'zb-v 4 2 of 4'", NULL, "", 4, false },
		{ "mode: auto, recompute: stage, settled: '1f1b 2 2 recompute of 2'", NULL, "", 2, true },
		{ "mode: auto, recompute: stage, settled: '1f1b 2 2 of 2'", NULL, "", 2, false },
		{ "mode: auto, recompute: none, settled: '1f1b 2 2 of 2'", NULL, "", 2, true },
		{ "mode: auto, recompute: none, settled: '1f1b 2 2 recompute of 2'", NULL, "", 2, false },
		{ "mode: auto, settled: '1f1b 2 2 recompute of 2'", NULL, "", 2, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK(stays(rows[i].parallel, rows[i].set, rows[i].more, rows[i].ndevices) == rows[i].stays,
			"row %zu: %s%s%s on %u", i, rows[i].parallel, rows[i].set ? " -s " : "",
			rows[i].set ? rows[i].set : "", rows[i].ndevices);
}

static void the_whole_model_is_a_value_too(void **state)
{
	static const struct { struct hd_view_shape shape; struct hd_pipes_settling how; const char *text; }
		rows[] = {
		{ { .nstages = 0 }, { false, 4 }, "data-parallel 1 1 of 4" },
		{ { .nstages = 0 }, { true, 0 }, "data-parallel 1 1" },
		{ { .nstages = 2, .width = 2, .first = { 0, 5 } }, { true, 4 }, " 2 2 0,5 recompute of 4" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_job_value value = { .is_none = true };
		struct hd_arena arena;
		hd_arena_init(&arena, 0);
		assert_int_equal(hd_pipes_settled(&value, &rows[i].shape, rows[i].how, &arena, NULL), HD_OK);
		CHECK(!value.is_none && strstr(value.text, rows[i].text), "row %zu: %s", i, value.text);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_settled_stays_until_something_else_is_asked_for),
		cmocka_unit_test(the_whole_model_is_a_value_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
