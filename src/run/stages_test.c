#include "run/stages.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "tests/check.h"

static struct hd_arena arena;

static int begin(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

static void parse(struct hd_job *job, const char *parallel)
{
	char yaml[512];
	struct hd_diag diag = { "" };

	snprintf(yaml, sizeof yaml,
		"job: {steps: 3}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic, count: 64}\n"
		"batch: {global: 32, virtual_nodes: 8}\nparallel: {%s}\n", parallel);
	CHECK(hd_job_parse(job, "t.yaml", yaml, strlen(yaml), NULL, 0, &arena, &diag, NULL) == HD_OK, "%s",
		diag.text);
}

static void what_is_left_open_is_filled_in(void **state)
{
	static const struct { const char *parallel; uint32_t ndevices, ncores, p, v,
		d; const char *schedule; } rows[] = {
		{ "mode: pipeline", 3, 2, 3, 1, 1, "1f1b" },
		{ "mode: pipeline", 0, 1, 2, 1, 1, "1f1b" },
		{ "mode: pipeline", 0, 6, 6, 1, 1, "1f1b" },
		{ "mode: pipeline, replicas: 2", 0, 6, 3, 1, 2, "1f1b" },
		{ "mode: pipeline, replicas: 2", 4, 2, 2, 1, 2, "1f1b" },
		{ "stages: 2", 4, 2, 2, 1, 2, "1f1b" },
		{ "stages: 2", 0, 8, 2, 1, 1, "1f1b" },
		{ "chunks: 2, mode: pipeline", 2, 2, 2, 2, 1, "interleaved" },
		{ "schedule: zb-v", 2, 2, 2, 2, 1, "zb-v" },
		{ "schedule: zb-v, stages: 4", 0, 9, 2, 2, 1, "zb-v" },
		{ "schedule: gpipe, replicas: 3, stages: 2", 6, 1, 2, 1, 3, "gpipe" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_job job;
		struct hd_run_stages s;
		struct hd_diag diag = { "" };
		parse(&job, rows[i].parallel);
		CHECK(hd_run_stages(&s, &job, rows[i].ndevices, rows[i].ncores, &diag) == HD_OK, "%s: %s",
			rows[i].parallel, diag.text);
		CHECK(s.p == rows[i].p && s.v == rows[i].v && s.d == rows[i].d &&
			!strcmp(s.schedule, rows[i].schedule), "%s: p %u v %u d %u %s", rows[i].parallel, s.p,
			s.v,
			s.d, s.schedule);
	}
}

static void numbers_that_do_not_go_together_are_refused(void **state)
{
	static const struct { const char *parallel; uint32_t ndevices; const char *words; } rows[] = {
		{ "mode: pipeline, stages: 2", 3, "3 devices are no 1 pipeline of 2: use 2" },
		{ "mode: pipeline, stages: 2, replicas: 2", 2, "use 4" },
		{ "mode: pipeline", 1, "no pipeline" },
		{ "schedule: zb-v, stages: 3", 2, "use a multiple of 2" },
		{ "schedule: data-parallel", 2, "parallel.mode: data" },
		{ "schedule: 1f1b-rr", 2, "parallel.replicas" },
		{ "mode: pipeline, replicas: 9", 18, "8 virtual nodes" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_job job;
		struct hd_run_stages s;
		struct hd_diag diag = { "" };
		parse(&job, rows[i].parallel);
		assert_int_equal(hd_run_stages(&s, &job, rows[i].ndevices, 2, &diag), HD_E_INVAL);
		CHECK(strstr(diag.text, rows[i].words), "%s: %s", rows[i].parallel, diag.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_left_open_is_filled_in, begin, end),
		cmocka_unit_test_setup_teardown(numbers_that_do_not_go_together_are_refused, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
