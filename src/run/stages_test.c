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

static void parse_sharded(struct hd_job *job, uint32_t shards, const char *parallel)
{
	char yaml[512];
	struct hd_diag diag = { "" };

	snprintf(yaml, sizeof yaml,
		"job: {steps: 3}\nmodel: {use: builtin:mlp, shards: %u}\ndata: {kind: synthetic, count: 64}\n"
		"batch: {global: 32, virtual_nodes: 8}\nparallel: {%s}\n", shards, parallel);
	CHECK(hd_job_parse(job, "t.yaml", yaml, strlen(yaml), NULL, 0, &arena, &diag, NULL) == HD_OK, "%s",
		diag.text);
}

static void parse(struct hd_job *job, const char *parallel) { parse_sharded(job, 4, parallel); }

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
		{ "recompute: stage", 3, 1, 3, 1, 1, "1f1b" },
		{ "offload: stage", 3, 1, 3, 1, 1, "1f1b" },
		{ "chunks: 2, mode: pipeline", 2, 2, 2, 2, 1, "interleaved" },
		{ "schedule: zb-v", 2, 2, 2, 2, 1, "zb-v" },
		{ "schedule: zb-v, stages: 4", 0, 9, 2, 2, 1, "zb-v" },
		{ "schedule: gpipe, replicas: 3, stages: 2", 6, 1, 2, 1, 3, "gpipe" },
		{ "copies: '3,1'", 4, 1, 4, 1, 1, "1f1b-rr" }, { "copies: '3,1'", 0, 9, 4, 1, 1, "1f1b-rr" },
		{ "copies: '3,1', schedule: 1f1b-rr, stages: 2", 8, 9, 4, 1, 2, "1f1b-rr" },
		{ "copies: '1,2,1', mode: pipeline, replicas: 2", 0, 1, 4, 1, 2, "1f1b-rr" },
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
		CHECK(s.offload == !strcmp(rows[i].parallel, "offload: stage") &&
			s.recompute == !strcmp(rows[i].parallel, "recompute: stage"), "%s",
			rows[i].parallel);
	}
}

/* Of a model in 4 shards. */
static void devices_of_a_rank_are_found(void **state)
{
	static const struct { const char *parallel; uint32_t ndevices, ncores, p, d, t; } rows[] = {
		{ "mode: tensor", 4, 1, 1, 1, 4 }, { "mode: tensor", 2, 9, 1, 1, 2 }, { "mode: tensor", 8,
			1, 1, 2, 4 },
		{ "mode: tensor", 6, 1, 1, 3, 2 }, { "mode: tensor", 0, 3, 1, 1, 2 }, { "mode: tensor", 0,
		9, 1, 1, 4 },
		{ "mode: tensor", 0, 1, 1, 1, 2 }, { "mode: tensor, replicas: 2", 4, 1, 1, 2, 2 },
		{ "mode: tensor, tensor: 2", 8, 1, 1, 4, 2 }, { "mode: tensor, tensor: 2", 0, 8, 1, 1, 2 },
		{ "tensor: 2", 4, 1, 1, 2, 2 }, { "tensor: 2, replicas: 2", 0, 1, 1, 2, 2 },
		{ "tensor: 2, stages: 2", 8, 1, 2, 2, 2 }, { "tensor: 4, mode: pipeline", 8, 1, 2, 1, 4 },
		{ "tensor: 2, schedule: gpipe, replicas: 2", 12, 1, 3, 2, 2 }, {
		"tensor: 2, mode: pipeline", 0, 8, 4, 1, 2 },
		{ "mode: pipeline", 4, 1, 4, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_job job;
		struct hd_run_stages s;
		struct hd_diag diag = { "" };
		parse(&job, rows[i].parallel);
		CHECK(hd_run_stages(&s, &job, rows[i].ndevices, rows[i].ncores, &diag) == HD_OK, "%s: %s",
			rows[i].parallel, diag.text);
		CHECK(s.p == rows[i].p && s.v == 1 && s.d == rows[i].d && s.t == rows[i].t,
			"%s on %u: p %u v %u d %u t %u", rows[i].parallel, rows[i].ndevices, s.p, s.v, s.d,
			s.t);
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
		{ "schedule: 1f1b-rr", 2, "say how many of each, as parallel.copies: \"3,1\"" },
		{ "copies: '3,1'", 3, "3 devices are no 1 pipeline of 4: use 4 (the sum of parallel.copies" },
		{ "copies: '4,1', replicas: 3", 15, "up to 4 copies (parallel.copies) take 12 virtual nodes" },
		{ "mode: pipeline, replicas: 9", 18, "8 virtual nodes" },
		{ "mode: tensor", 3, "over 3 devices: no number above 1 divides both" },
		{ "mode: tensor", 1, "over 1 device: no number above 1 divides both" },
		{ "tensor: 2", 3,
		"3 devices are no ranks of 2 (parallel.tensor): use 4, or a multiple of 2" },
		{ "tensor: 4, stages: 2", 12, "12 devices are no 1 pipeline of 2 ranks of 4: use 8" },
		{ "tensor: 2, stages: 2, replicas: 2", 6,
		"6 devices are no 2 pipelines of 2 ranks of 2: use 8" },
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

/* Shares are found among as many devices as a rank may have; what is refused leaves no stages behind. */
static void a_rank_has_so_many_devices_and_no_more(void **state)
{
	struct hd_run_stages s = { .p = 77 };
	struct hd_diag diag = { "" };
	struct hd_job job;

	(void)state;
	parse_sharded(&job, 128, "mode: tensor");
	CHECK(hd_run_stages(&s, &job, 128, 1, &diag) == HD_OK && s.t == 64 && s.d == 2, "%s", diag.text);
	s.p = 77;
	parse_sharded(&job, 128, "tensor: 128");
	assert_int_equal(hd_run_stages(&s, &job, 128, 1, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "parallel.tensor is 128") && s.p == 77, "%s", diag.text);
	diag.text[0] = 0;
	job.value[HD_JOB_PAR_SCHEDULE].is_auto = false;
	job.value[HD_JOB_PAR_SCHEDULE].text = "nosuch";
	assert_int_equal(hd_run_stages(&s, &job, 128, 1, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "nosuch"), "%s", diag.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_left_open_is_filled_in, begin, end),
		cmocka_unit_test_setup_teardown(devices_of_a_rank_are_found, begin, end),
		cmocka_unit_test_setup_teardown(numbers_that_do_not_go_together_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(a_rank_has_so_many_devices_and_no_more, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
