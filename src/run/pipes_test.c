#include "run/pipe_set.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/generate.h"
#include "pipeline/staged.h"
#include "run/pipes_settled.h"
#include "tests/check.h"

static struct hd_arena arena;
static struct hd_fs fs;

static int begin(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	hd_fs_real(&fs);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

/* A gpt of several buckets, its table tied. */
static void parse_in(struct hd_job *job, uint32_t shards, const char *parallel)
{
	char yaml[640];
	struct hd_diag diag = { "" };

	snprintf(yaml, sizeof yaml,
		"job: {steps: 3}\n"
		"model: {use: builtin:gpt, shards: %u, args: {layers: 3, width: 128, heads: %u, context: 8, "
		"vocab: 9000}}\n"
		"data: {kind: synthetic, count: 64}\n"
		"batch: {global: 13, virtual_nodes: 13}\nparallel: {%s}\n",
		shards, shards < 2 ? 2 : shards, parallel);
	CHECK(hd_job_parse(job, "t.yaml", yaml, strlen(yaml), NULL, 0, &arena, &diag, NULL) == HD_OK, "%s",
		diag.text);
}

static void parse(struct hd_job *job, const char *parallel) { parse_in(job, 1, parallel); }

static struct hd_task *task_of(const struct hd_job *job)
{
	struct hd_task *task = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_task_create(&task, job, &fs, &diag) == HD_OK, "%s", diag.text);
	return task;
}

static void a_job_without_stages_has_no_shape(void **state)
{
	struct hd_pipes pipes = { .most = 7 };
	struct hd_job job;

	(void)state;
	parse(&job, "mode: data");
	struct hd_task *task = task_of(&job);
	assert_int_equal(hd_pipes_make(&pipes, task, &arena, NULL), HD_OK);
	assert_true(!pipes.shape.nstages && !pipes.stages.p && !pipes.most);
	assert_true(hd_pipes_step(&pipes, &(struct hd_view){ .nmembers = 1 }));
	hd_task_destroy(task);
}

static void the_shape_is_that_of_the_schedule(void **state)
{
	static const struct { const char *parallel; uint32_t width, nstages, most; uint8_t place[6];
		} rows[] = {
		{ "mode: pipeline, width: 3", 3, 3, 13, { 0, 1, 2 } },
		{ "stages: 4, replicas: 2", 4, 4, 2, { 0, 1, 2, 3 } },
		{ "schedule: zb-v, width: 2", 2, 4, 13, { 0, 1, 1, 0 } },
		/* a pipeline of it needs 4 of the 13 virtual nodes */
		{ "schedule: dualpipev, width: 2", 2, 4, 3, { 0, 1, 1, 0 } },
		{ "schedule: interleaved, chunks: 2, stages: 6", 3, 6, 13, { 0, 1, 2, 0, 1, 2 } },
		/* three pipelines have a virtual node for each of three lanes, and so have four */
		{ "copies: '3,1'", 4, 2, 4, { 0, 3 } }, { "copies: '1,2,1', width: 9", 4, 3, 6, { 0, 1, 3 } },
		{ "mode: auto, settled: '1f1b-rr 2 4 0,7 copies 3,1 of 4'", 4, 2, 4, { 0, 3 } },
		/* what was chosen goes before the keys */
		{ "mode: auto, settled: 'zb-v 4 2 0,5,9,20'", 2, 4, 13, { 0, 1, 1, 0 } },
		{ "mode: auto, schedule: gpipe, stages: 3, settled: '1f1b 2 2'", 2, 2, 13, { 0, 1 } },
		{ "mode: pipeline, schedule: gpipe, stages: 3, settled: '1f1b 2 2'", 3, 3, 13, { 0, 1, 2 } },
		{ "mode: auto, schedule: gpipe, stages: 3, settled: 'data-parallel 1 1'", 3, 3, 13, { 0, 1, 2 } },
		/* what a run began with gives way to what is asked for */
		{ "stages: 2, width: 5", 2, 2, 13, { 0, 1 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		struct hd_pipes pipes;
		struct hd_job job;
		parse(&job, rows[i].parallel);
		struct hd_task *task = task_of(&job);
		CHECK(hd_pipes_make(&pipes, task, &arena, &diag) == HD_OK, "%s: %s", rows[i].parallel,
			diag.text);
		CHECK(pipes.shape.width == rows[i].width && pipes.shape.nstages == rows[i].nstages &&
			pipes.most == rows[i].most && pipes.buckets.nstages == rows[i].nstages &&
			pipes.buckets.n == hd_layout_nbuckets(&task->layout) && pipes.buckets.whole &&
			!memcmp(pipes.shape.place, rows[i].place, rows[i].nstages), "%s: %u of %u, most %u",
			rows[i].parallel, pipes.shape.nstages, pipes.shape.width, pipes.most);
		assert_false(hd_pipes_step(&pipes, &(struct hd_view){ .nmembers = 1 }));
		hd_task_destroy(task);
	}
}

/* Members with one and two devices, some left over. */
static void plans_of_staged_views_are_proved_and_owned_by_holders(void **state)
{
	static const char *const kinds[] = { "schedule: gpipe, width: 2", "schedule: 1f1b, width: 3",
		"schedule: zb-v, width: 2", "schedule: zb-h1, width: 4", "schedule: dualpipev, width: 2",
		"copies: '3,1'", "copies: '1,2'", "copies: '2,1,4'" };
	const struct hd_plan_job pj = { .nvns = 13, .nstages = 1 };
	uint32_t owners = 0;

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		for (uint32_t n = 2; n < 8; n++) {
			const uint32_t member[] = { 2, 5, 6, 9, 11, 12, 20 }, ndevices[] = { 1, 2, 1, 1, 2,
				1, 1 };
			struct hd_diag diag = { "" };
			struct hd_pipes pipes;
			struct hd_view view;
			struct hd_holding held;
			struct hd_plan plan;
			struct hd_job job;
			parse(&job, kinds[i]);
			struct hd_task *task = task_of(&job);
			struct hd_plan_job whole = pj;
			whole.nchunks = task->layout.nchunks;
			assert_int_equal(hd_pipes_make(&pipes, task, &arena, NULL), HD_OK);
			if (!hd_view_staged(&view, 7, member, ndevices, n, 13, &pipes.shape, pipes.most)) {
				hd_task_destroy(task);
				continue;
			}
			CHECK(hd_pipes_plan(&plan, &pipes, &view, &whole, task, &arena, &diag) == HD_OK &&
				hd_plan_staged_check(&plan, &whole, NULL, &diag) == HD_OK, "%s, %u: %s",
				kinds[i], n, diag.text);
			assert_true(plan.number == 7 && plan.nranks == view.nranks);
			for (uint32_t r = 0; r < plan.nranks; r++)
				assert_int_equal(member[plan.worker[r]], view.rank[r].worker);
			assert_int_equal(hd_holding_init(&held, pipes.buckets.n, NULL), HD_OK);
			held.bytes = task->layout.moved;
			hd_view_holding(&held, &view, &pipes.buckets, 0, 0);
			for (uint32_t c = 0; c < plan.nchunks; c++) {
				const uint32_t b = c / HD_BUCKET_CHUNKS, w = plan.worker[plan.owner[c]];
				CHECK(w == held.owner[b], "%s, %u: chunk %u", kinds[i], n, c);
				CHECK(hd_view_stages(&view, member[w]) >> pipes.buckets.at[b].stage & 1,
					"%s, %u: bucket %u", kinds[i], n, b);
				owners |= UINT32_C(1) << w;
			}
			for (uint32_t r = 0; r < plan.nranks; r++)
				for (uint32_t k = 0; k < plan.list[r].len; k++) {
					const struct hd_ins *ins = &plan.list[r].at[k];
					CHECK(ins->op != HD_INS_F || r == hd_view_rank(&view,
						hd_view_lane(&view, ins->vn), ins->stage),
						"%s, %u: rank %u has F%u.%u", kinds[i], n, r, ins->stage,
						ins->vn);
				}
			for (uint32_t v = 0; v < 13; v++)
				assert_int_equal(plan.map[v], hd_view_rank(&view, hd_view_lane(&view, v), 0));
			hd_holding_finish(&held);
			hd_task_destroy(task);
		}
	CHECK(__builtin_popcount(owners) >= 3, "owners %x", owners);
}

static void the_width_is_settled_by_the_devices_at_the_start(void **state)
{
	static const struct { const char *parallel; uint32_t nworkers, width; const char *words; } rows[] = {
		{ "mode: pipeline", 3, 3, NULL }, { "mode: pipeline, replicas: 2", 6, 3, NULL },
		{ "stages: 2", 6, 2, NULL }, { "schedule: zb-v", 2, 2, NULL },
		{ "stages: 2, width: 5", 4, 2, NULL }, { "mode: pipeline, width: 5", 4, 4, NULL },
		{ "mode: pipeline", 1, 0, "no pipeline" }, { "stages: 2", 3, 0, "use 2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		struct hd_job job;
		parse(&job, rows[i].parallel);
		enum hd_err err = hd_pipes_settle(&job, rows[i].nworkers, 1, &arena, &diag);
		CHECK((err == HD_OK) == !rows[i].words, "%s: %s", rows[i].parallel, diag.text);
		CHECK(err ? strstr(diag.text, rows[i].words) != NULL :
			job.value[HD_JOB_PAR_WIDTH].i == rows[i].width &&
				!job.value[HD_JOB_PAR_WIDTH].is_auto,
			"%s: %lld, %s", rows[i].parallel, (long long)job.value[HD_JOB_PAR_WIDTH].i,
				diag.text);
	}
	struct hd_diag diag = { "" };
	struct hd_job job;
	parse(&job, "schedule: zb-v");
	assert_int_equal(hd_pipes_settle(&job, 2, 8, &arena, &diag), HD_OK);
	assert_int_equal(hd_pipes_settle(&job, 2, 9, &arena, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "at most 16"), "%s", diag.text);
}

/* Of 4 shards, over workers of some devices each: what the view counts as a rank is what one worker has of a
 * rank. */
static void the_devices_of_a_rank_are_of_as_few_workers_as_can_be(void **state)
{
	static const struct { const char *parallel; uint32_t n, each, t, width;
		const char *words; uint32_t groups; } rows[] = {
		{ "mode: tensor", 2, 2, 2, 1, NULL, 0 }, { "mode: tensor", 1, 4, 4, 1, NULL, 0 },
		{ "mode: tensor", 3, 6, 2, 1, NULL, 0 }, { "mode: tensor, tensor: 2", 2, 4, 2, 1, NULL, 0 },
		{ "stages: 2, tensor: 2", 2, 2, 2, 2, NULL, 0 }, { "stages: 2, tensor: 2", 1, 4, 2, 2, NULL, 0 },
		{ "mode: pipeline, tensor: 4, replicas: 2", 6, 4, 4, 3, NULL, 0 },
		{ "mode: tensor, tensor: 4", 2, 2, 4, 2, NULL, 2 }, { "mode: tensor, tensor: 4", 4, 1, 4, 4, NULL, 4 },
		{ "stages: 2, tensor: 2", 4, 1, 2, 4, NULL, 2 }, { "stages: 2, tensor: 4", 4, 2, 4, 4, NULL, 2 },
		{ "tensor: 4, groups: 2", 1, 4, 4, 2, NULL, 2 },
		{ "tensor: 4, groups: 4", 2, 3, 0, 0, "6 devices are no ranks of 4", 0 },
		{ "tensor: 4", 4, 3, 0, 0, "a rank is 4 devices (parallel.tensor), and a worker has 3", 0 },
		{ "mode: auto, tensor: 2", 2, 1, 2, 2, NULL, 2 },
		{ "mode: tensor", 4, 1, 0, 0, "the 1 device of a worker: no number above 1 divides both", 0 },
		{ "mode: tensor", 2, 3, 0, 0, "--devices 4", 0 },
		{ "stages: 2, tensor: 2", 2, 3, 0, 0, "use 4", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		struct hd_view view;
		struct hd_pipes pipes;
		struct hd_plan plan;
		struct hd_job job;
		parse_in(&job, 4, rows[i].parallel);
		enum hd_err err = hd_pipes_settle(&job, rows[i].n, rows[i].each, &arena, &diag);
		CHECK((err == HD_OK) == !rows[i].words && (!err || strstr(diag.text, rows[i].words)),
			"%s: %s", rows[i].parallel, diag.text);
		if (err)
			continue;
		struct hd_task *task = task_of(&job);
		const struct hd_plan_job whole = hd_plan_job_whole(13, task->layout.nchunks);
		const uint32_t groups = rows[i].groups ? rows[i].groups : 1, t = rows[i].t / groups;
		CHECK(hd_pipes_make(&pipes, task, &arena, &diag) == HD_OK && pipes.stages.t == rows[i].t &&
			pipes.groups == groups && pipes.shape.width == rows[i].width, "%s: t %u, width %u %s",
			rows[i].parallel,
			pipes.stages.t, pipes.shape.width, diag.text);
		/* a device that is left over makes no rank */
		assert_true(hd_pipes_view(&view, &pipes, rows[i].n, rows[i].each + (t > 1), 13));
		CHECK(hd_pipes_plan(&plan, &pipes, &view, &whole, task, &arena, &diag) == HD_OK &&
			hd_plan_width(&plan) == t && hd_plan_groups(&plan) == groups &&
			plan.nranks == rows[i].n * (rows[i].each / t), "%s: %u ranks of %u %s",
			rows[i].parallel, plan.nranks, hd_plan_width(&plan), diag.text);
		hd_task_destroy(task);
	}
}

static void what_cannot_be_is_refused(void **state)
{
	static const struct { const char *parallel, *words; } rows[] = {
		{ "mode: pipeline", "parallel.stages" },
		{ "mode: pipeline, width: 65", "at most 64" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		struct hd_pipes pipes;
		struct hd_job job;
		parse(&job, rows[i].parallel);
		struct hd_task *task = task_of(&job);
		assert_int_equal(hd_pipes_make(&pipes, task, &arena, &diag), HD_E_INVAL);
		CHECK(strstr(diag.text, rows[i].words) && !pipes.shape.nstages, "%s: %s", rows[i].parallel,
			diag.text);
		hd_task_destroy(task);
	}
}

/* First nodes that a job or a view names are those of the stages, and come back as a value of the job. */
static void named_nodes_are_where_stages_begin(void **state)
{
	static const struct { const char *parallel; uint32_t first[3]; const char *settled;
		uint32_t ndevices; } rows[] = {
		{ "mode: auto, settled: '1f1b 3 3 0,5,20'", { 0, 5, 20 }, "1f1b 3 3 0,5,20 of 6", 6 },
		{ "mode: auto, settled: '1f1b 3 3 0,5,20 recompute of 3'", { 0, 5, 20 },
			"1f1b 3 3 0,5,20 recompute", 0 },
		{ "mode: auto, settled: '1f1b 3 3 0,5,20'", { 0, 5, 20 }, "1f1b 3 3 0,5,20", 0 },
		{ "mode: auto, settled: 'gpipe 3 3 0,1,2'", { 0, 1, 2 }, "gpipe 3 3 0,1,2", 0 },
		{ "mode: auto, settled: 'gpipe 3 3'", { 0 }, "gpipe 3 3", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		struct hd_job_value value = { .is_none = true };
		struct hd_pipes pipes, again;
		struct hd_job job;
		parse(&job, rows[i].parallel);
		struct hd_task *task = task_of(&job);
		CHECK(hd_pipes_make(&pipes, task, &arena, &diag) == HD_OK, "%s", diag.text);
		assert_memory_equal(pipes.shape.first, rows[i].first, sizeof rows[i].first);
		for (uint32_t s = 0; s < 3 && rows[i].first[1]; s++)
			assert_int_equal(pipes.stages.first[s], rows[i].first[s]);
		assert_int_equal(hd_pipes_settled(&value, &pipes.shape, (struct hd_pipes_settling){
			pipes.stages.recompute, rows[i].ndevices }, &arena, NULL), HD_OK);
		assert_true(!value.is_none);
		assert_string_equal(value.text, rows[i].settled);
		assert_int_equal(hd_pipes_of_shape(&again, task, &pipes.shape, &arena, NULL), HD_OK);
		assert_true(hd_view_same_shape(&again.shape, &pipes.shape));
		assert_memory_equal(again.buckets.at, pipes.buckets.at,
			pipes.buckets.n * sizeof *pipes.buckets.at);
		hd_task_destroy(task);
	}
	struct hd_diag diag = { "" };
	struct hd_pipes pipes;
	struct hd_job job;
	parse(&job, "mode: auto, settled: '1f1b 2 2 0,9999'");
	struct hd_task *task = task_of(&job);
	assert_int_equal(hd_pipes_make(&pipes, task, &arena, &diag), HD_E_INVAL);
	assert_true(!pipes.shape.nstages && *diag.text);
	hd_task_destroy(task);
}

/* Other stages are asked for: what was chosen besides is asked for by the keys then. */
static void a_change_leaves_what_was_chosen(void **state)
{
	static const struct { enum hd_job_key key; const char *text; uint32_t i, stages, width;
		const char *schedule, *more; } rows[] = {
		{ HD_JOB_PAR_STAGES, "6", 6, 6, 3, "zb-v", "" },
		{ HD_JOB_PAR_REPLICAS, "1", 1, 4, 2, "zb-v", " of 4" },
		{ HD_JOB_PAR_REPLICAS, "1", 1, 4, 2, "zb-v", " recompute of 4" },
		{ HD_JOB_PAR_SCHEDULE, "gpipe", 0, 2, 2, "gpipe", " recompute" } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		struct hd_pipes pipes;
		struct hd_job job;
		char parallel[80];
		snprintf(parallel, sizeof parallel, "mode: auto, settled: 'zb-v 4 2 0,5,9,20%s'",
			rows[i].more);
		parse(&job, parallel);
		struct hd_job_value *v = &job.value[rows[i].key];
		v->is_auto = false;
		v->text = rows[i].text;
		v->i = rows[i].i;
		v->origin = HD_FROM_SET;
		CHECK(hd_pipes_change(&job, 2, 1, &arena, &diag) == HD_OK, "%s", diag.text);
		struct hd_task *task = task_of(&job);
		CHECK(hd_pipes_make(&pipes, task, &arena, &diag) == HD_OK, "%s", diag.text);
		CHECK(pipes.shape.nstages == rows[i].stages && pipes.shape.width == rows[i].width &&
			!strcmp(pipes.stages.schedule, rows[i].schedule) && !pipes.shape.first[1] &&
			pipes.stages.recompute == (strstr(rows[i].more, "recompute") != NULL),
			"row %zu: %u of %u, %s", i, pipes.shape.nstages, pipes.shape.width,
			pipes.stages.schedule);
		hd_task_destroy(task);
	}
}

/* What else of a run's pipelines changes while it goes on, over workers of two devices. */
static void a_change_of_width_is_settled_by_the_devices_there_are(void **state)
{
	static const struct { const char *parallel; enum hd_job_key key; const char *text; int64_t i;
		uint32_t t, groups; bool again; const char *words; } rows[] = {
		{ "stages: 3, tensor: 2, groups: 1", HD_JOB_PAR_TENSOR, "4", 4, 4, 2, false, NULL },
		{ "stages: 3, tensor: 4, groups: 2", HD_JOB_PAR_TENSOR, "2", 2, 2, 1, false, NULL },
		{ "stages: 3, tensor: 2, groups: 1", HD_JOB_PAR_GROUPS, "2", 2, 2, 2, false, NULL },
		{ "stages: 3", HD_JOB_PAR_TENSOR, "2", 2, 2, 1, false, NULL },
		{ "stages: 3", HD_JOB_PAR_RECOMPUTE, "stage", HD_RECOMPUTE_STAGE, 1, 1, true, NULL },
		{ "mode: auto, settled: '1f1b 3 3 0,5,20 recompute'", HD_JOB_PAR_RECOMPUTE, "none",
			HD_RECOMPUTE_NONE, 1, 1, false, NULL },
		{ "stages: 3", HD_JOB_PAR_GROUPS, "2", 2, 0, 0, false, "which does not divide the 1 device" },
		{ "stages: 3, tensor: 2", HD_JOB_SHARDS, "2", 2, 0, 0, false,
			"another one is another run; parallel.tensor" },
		{ "stages: 3", HD_JOB_DETECT, "1s", 1000, 0, 0, false, "does not change while a run goes on" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		struct hd_pipes pipes;
		struct hd_job job;
		parse_in(&job, 4, rows[i].parallel);
		struct hd_job_value *v = &job.value[rows[i].key];
		v->is_auto = v->is_standard = false;
		v->text = rows[i].text;
		v->i = rows[i].i;
		v->origin = HD_FROM_SET;
		const enum hd_err err = hd_pipes_change(&job, 3, 2, &arena, &diag);
		CHECK(!err == !rows[i].words && (!err || strstr(diag.text, rows[i].words)), "row %zu: %s", i,
			diag.text);
		if (err)
			continue;
		struct hd_task *task = task_of(&job);
		CHECK(hd_pipes_make(&pipes, task, &arena, &diag) == HD_OK, "%s", diag.text);
		CHECK(pipes.stages.t == rows[i].t && pipes.groups == rows[i].groups &&
			pipes.stages.recompute == rows[i].again && pipes.shape.again == rows[i].again &&
			pipes.stages.p == 3 && pipes.shape.width == 3 * rows[i].groups &&
			hd_view_each(&pipes.shape) * rows[i].groups == rows[i].t, "row %zu: t %u on %u", i,
			pipes.stages.t, pipes.groups);
		hd_task_destroy(task);
	}
}

/* Of two jobs that differ in their keys alone each finds the other's pipes by their shape. */
static void a_set_has_the_pipes_of_every_shape(void **state)
{
	static const char *const parallel[] = { "schedule: zb-v, width: 2", "stages: 3, schedule: gpipe",
		"stages: 3", "schedule: interleaved, chunks: 2, stages: 6",
		"mode: auto, settled: '1f1b 3 3 0,5,20'", "mode: auto, settled: '1f1b 3 3 0,6,20'",
		"stages: 3, tensor: 2", "stages: 3, tensor: 4", "stages: 3, tensor: 4, groups: 2",
		"stages: 3, tensor: 4, groups: 4, recompute: stage", "stages: 3, recompute: stage",
		"mode: tensor, tensor: 4, groups: 2, width: 1",
		"mode: auto, settled: '1f1b 3 3 0,5,20 tensor 2'",
		"mode: auto, settled: '1f1b 3 3 0,5,20 tensor 4 groups 2'",
		"mode: auto, settled: '1f1b 1 1 recompute tensor 4 groups 2'",
		"stages: 3}\ncomm: {sync: stages}\nelastic: {redundancy: lazy" };
	enum { N = sizeof parallel / sizeof *parallel };
	struct hd_pipe_set set[N];
	struct hd_task *task[N];
	struct hd_job job[N];

	(void)state;
	for (size_t i = 0; i < N; i++) {
		parse_in(&job[i], 4, parallel[i]);
		task[i] = task_of(&job[i]);
		assert_int_equal(hd_pipe_set_init(&set[i], task[i], NULL), HD_OK);
	}
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < N; k++) {
			const struct hd_pipes *of = &set[k].first, *found = NULL, *again = NULL;
			struct hd_diag diag = { "" };
			CHECK(hd_pipe_set_find(&set[i], &of->shape, &found, &diag) == HD_OK, "%s: %s",
				parallel[k], diag.text);
			CHECK(hd_view_same_shape(&found->shape, &of->shape), "%zu %zu", i, k);
			CHECK((i == k) == (found == &set[i].first), "%zu %zu", i, k);
			assert_string_equal(found->stages.schedule, of->stages.schedule);
			/* whatever the job says that the set is of */
			CHECK(found->buckets.shadows == of->buckets.shadows && of->buckets.shadows ==
				(k == N - 1), "%zu %zu: shadows", i, k);
			CHECK(found->stages.t == of->stages.t && found->groups == of->groups &&
				found->stages.recompute == of->stages.recompute, "%zu %zu", i, k);
			assert_memory_equal(found->stages.first, of->stages.first, of->shape.nstages /
				hd_view_groups(&of->shape) * sizeof *of->stages.first);
			assert_int_equal(hd_pipe_set_find(&set[i], &of->shape, &again, NULL), HD_OK);
			assert_ptr_equal(again, found);
			assert_ptr_equal(hd_pipe_set_buckets(&set[i], &of->shape), &found->buckets);
		}
	static const struct hd_view_shape no[] = {
		{ .nstages = 3, .width = 3, .place = { 0, 1, 2 }, .schedule = 999 },
		{ .nstages = 3, .width = 3, .place = { 0, 1, 2 }, .schedule = 2 + HD_SHAPE_ORDERS * 9 },
		{ .nstages = 3, .width = 2, .place = { 0, 1, 1 } }, { .nstages = 3 },
		{ .nstages = 3, .width = 3, .place = { 0, 2, 1 }, .schedule = 1 },
		{ .nstages = 4, .width = 2, .place = { 0, 1, 0, 1 }, .schedule = 1 },
		{ .nstages = 2, .width = 2, .place = { 0, 1 }, .schedule = 1, .each = 3 },
		{ .nstages = 3, .width = 3, .place = { 0, 1, 2 }, .schedule = 1, .groups = 2 },
		{ .nstages = 4, .width = 4, .place = { 0, 1, 2, 3 }, .schedule = 1, .groups = 2, .each = 4 } };
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		CHECK(!hd_pipe_set_buckets(&set[0], &no[i]), "shape %zu", i);
	for (size_t i = 0; i < N; i++) {
		hd_pipe_set_finish(&set[i]);
		hd_pipe_set_finish(&set[i]);
		hd_task_destroy(task[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_job_without_stages_has_no_shape, begin, end),
		cmocka_unit_test_setup_teardown(the_shape_is_that_of_the_schedule, begin, end),
		cmocka_unit_test_setup_teardown(plans_of_staged_views_are_proved_and_owned_by_holders, begin,
			end),
		cmocka_unit_test_setup_teardown(the_width_is_settled_by_the_devices_at_the_start, begin, end),
		cmocka_unit_test_setup_teardown(the_devices_of_a_rank_are_of_as_few_workers_as_can_be, begin,
			end),
		cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(named_nodes_are_where_stages_begin, begin, end),
		cmocka_unit_test_setup_teardown(a_change_leaves_what_was_chosen, begin, end),
		cmocka_unit_test_setup_teardown(a_change_of_width_is_settled_by_the_devices_there_are, begin,
			end),
		cmocka_unit_test_setup_teardown(a_set_has_the_pipes_of_every_shape, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
