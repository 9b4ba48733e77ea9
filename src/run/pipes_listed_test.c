#include "run/pipes_listed.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/generate.h"
#include "pipeline/plan_schedule.h"
#include "pipeline/redundancy.h"
#include "pipeline/staged.h"
#include "job/sets.h"
#include "engine/testing.h"
#include "run/kept_job.h"
#include "run/pipe_set.h"

/* A plan file over workers: what a view of them does by it, and what is refused. */

static const char gpt[] = "model: {use: builtin:gpt, shards: 2, args: {layers: 3, width: 16, heads: 2, "
	"context: 8, vocab: 30}}\ndata: {kind: synthetic, count: 640}\n";

struct made { struct hd_rig rig; struct hd_pipes pipes; struct hd_diag diag; struct hd_text text; };

/* d pipelines of two ranks of t devices, cut before `cut`. */
static const char *file_of(struct made *m, const char *name, uint32_t v, uint32_t d, uint32_t t,
	uint32_t nvns, uint32_t cut)
{
	const struct hd_plan_job job = { .nvns = nvns, .nchunks = 3, .nstages = 1 };
	const uint32_t first[] = { 0, cut, cut + 6, cut + 12 };
	struct hd_schedule pipeline[4];
	struct hd_plan plan;

	for (uint32_t k = 0; k < d; k++) {
		const struct hd_schedule_ask ask = { .name = name, .p = 2, .v = v,
			.m = nvns / d + (k < nvns % d) };
		assert_int_equal(hd_schedule_make(&pipeline[k], &ask, &m->rig.arena, NULL), HD_OK);
	}
	assert_int_equal(hd_plan_staged(&plan, &job, pipeline, d, first, HD_KEEPS_ALL, &m->rig.arena, NULL),
		HD_OK);
	assert_int_equal(hd_plan_widen(&plan, &job, t, NULL), HD_OK);
	plan.number = 7;
	plan.cause = "of a test";
	hd_text_init(&m->text, &m->rig.arena);
	assert_int_equal(hd_plan_print(&plan, &m->text), HD_OK);
	return m->text.at;
}

static void begin(struct made *m, const char *more)
{
	char all[400];

	*m = (struct made){ .pipes = { .most = 99 } };
	snprintf(all, sizeof all, "parallel: {mode: explicit, plan: a.plan}\n%s", more ? more : "");
	hd_rig_begin(&m->rig, gpt, 16, 8, all);
}

static enum hd_err list(struct made *m, const char *text)
{
	m->diag.text[0] = '\0';
	return hd_pipes_list(m->rig.job, text, strlen(text), "a.plan", &m->rig.arena, &m->diag);
}

static void make(struct made *m, const char *text)
{
	CHECK(list(m, text) == HD_OK, "%s", m->diag.text);
	CHECK(hd_task_create(&m->rig.task, m->rig.job, &m->rig.fs, &m->diag) == HD_OK, "%s", m->diag.text);
	CHECK(hd_pipes_make(&m->pipes, m->rig.task, &m->rig.arena, &m->diag) == HD_OK, "%s", m->diag.text);
}

static void plan_of(struct made *m, uint32_t nworkers, struct hd_plan *plan)
{
	const struct hd_plan_job job = hd_plan_job_whole(8, m->rig.task->layout.nchunks);
	struct hd_view view;

	assert_true(hd_pipes_view(&view, &m->pipes, nworkers, 1, 8));
	CHECK(hd_pipes_plan(plan, &m->pipes, &view, &job, m->rig.task, &m->rig.arena, &m->diag) == HD_OK,
		"%s", m->diag.text);
}

static void a_view_of_all_pipelines_has_the_lists_of_the_file(void **state)
{
	struct hd_plan file, plan, fewer;
	struct made m;

	(void)state;
	begin(&m, NULL);
	const char *text = file_of(&m, "zb-v", 2, 2, 1, 8, 9);
	assert_int_equal(hd_plan_parse(&file, text, strlen(text), "a.plan", &m.rig.arena, NULL), HD_OK);
	make(&m, text);
	assert_true(m.pipes.shape.nstages == 4 && m.pipes.shape.width == 2 && m.pipes.most == 2 &&
		hd_shape_order(&m.pipes.shape) == HD_SHAPE_LISTED);
	for (uint32_t s = 0; s < 4; s++)
		assert_true(m.pipes.shape.first[s] == file.first[s] &&
			m.pipes.shape.place[s] == (s == 1 || s == 2));
	plan_of(&m, 4, &plan);
	assert_true(plan.nchunks == m.rig.task->layout.nchunks && plan.worker[3] == 3);
	for (uint32_t r = 0; r < 4; r++)
		assert_true(plan.list[r].len == file.list[r].len && !memcmp(plan.list[r].at, file.list[r].at,
			file.list[r].len * sizeof *file.list[r].at));
	CHECK(strstr(plan.cause, "workers 0 1 2 3; file: 4 stages, 2 pipelines of 2 devices"), "%s",
		plan.cause);
	/* a fifth worker stands by, and of three one does */
	plan_of(&m, 5, &plan);
	assert_int_equal(plan.nranks, 4);
	plan_of(&m, 3, &fewer);
	assert_int_equal(fewer.nranks, 2);
	CHECK(strstr(fewer.cause, "file, its 2 pipelines shared out to 1: 4 stages, 1 pipeline of 2 devices"),
		"%s", fewer.cause);
	hd_rig_close(&m.rig);
}

/* As a planner deals them to devices of other speeds: 6 and 2. */
static void pipelines_have_the_shares_of_the_file(void **state)
{
	const struct hd_plan_job job = { .nvns = 8, .nchunks = 3, .nstages = 1 };
	static const uint32_t first[] = { 0, 9 };
	struct hd_schedule pipeline[2];
	struct hd_run_stages s;
	struct hd_plan file, plan;
	struct hd_pipe_set set;
	uint32_t share[2] = { 0 };
	struct made m;

	(void)state;
	begin(&m, NULL);
	for (uint32_t k = 0; k < 2; k++) {
		const struct hd_schedule_ask ask = { .name = "1f1b", .p = 2, .v = 1, .m = k ? 2 : 6 };
		assert_int_equal(hd_schedule_make(&pipeline[k], &ask, &m.rig.arena, NULL), HD_OK);
	}
	assert_int_equal(hd_plan_staged(&file, &job, pipeline, 2, first, HD_KEEPS_ALL, &m.rig.arena, NULL),
		HD_OK);
	hd_text_init(&m.text, &m.rig.arena);
	assert_int_equal(hd_plan_print(&file, &m.text), HD_OK);
	make(&m, m.text.at);
	plan_of(&m, 5, &plan);
	for (uint32_t r = 0; r < 4; r++)
		assert_true(plan.list[r].len == file.list[r].len && !memcmp(plan.list[r].at, file.list[r].at,
			file.list[r].len * sizeof *file.list[r].at));
	assert_true(plan.map[5] == 0 && plan.map[6] == 2);
	plan_of(&m, 3, &plan);
	assert_true(plan.nranks == 2 && strstr(plan.cause, "shared out to 1"));
	assert_int_equal(hd_pipes_listed_alone(&s, m.rig.job, 4, &m.rig.arena, NULL), HD_OK);
	assert_true(s.share[0] == 6 && s.share[1] == 2);
	/* what a coordinator asks */
	assert_int_equal(hd_pipe_set_init(&set, m.rig.task, NULL), HD_OK);
	assert_false(hd_pipe_set_shares(&set, &set.first.shape, 1, share));
	assert_true(hd_pipe_set_shares(&set, &set.first.shape, 2, share) && share[0] == 6 && share[1] == 2);
	hd_pipe_set_finish(&set);
	hd_rig_close(&m.rig);
}

/* The lists of a view of 4 workers. */
static bool has_lists(const struct hd_plan *plan, const struct hd_ilist *list)
{
	bool same = plan->nranks == 4;

	for (uint32_t r = 0; r < 4 && same; r++)
		same = plan->list[r].len == list[r].len && !memcmp(plan->list[r].at, list[r].at,
			list[r].len * sizeof *list[r].at);
	return same;
}

/* They stand where the file has them, here directly before receives, and not where a view would put them; of
 * fewer pipelines, or in another mode, they are the view's. */
static void shadows_stand_where_the_file_has_them(void **state)
{
	const struct hd_plan_job whole = { .nvns = 8, .nchunks = 3, .nstages = 1 };

	(void)state;
	for (uint32_t mode = HD_REDUNDANCY_LAZY; mode < HD_NREDUNDANCIES; mode++) {
		const struct hd_redundancy_ask ask = { .mode = (enum hd_redundancy)mode,
			.place = HD_SHADOW_PLACE_RECEIVES };
		struct hd_schedule s, with;
		struct hd_plan file, plan;
		struct hd_run_stages alone;
		char more[80];
		struct made m;
		snprintf(more, sizeof more, "comm: {sync: stages}\nelastic: {redundancy: %s}\n",
			hd_redundancy_names[mode]);
		begin(&m, more);
		const char *bare = file_of(&m, "gpipe", 1, 2, 1, 8, 9);
		make(&m, bare);
		plan_of(&m, 4, &plan);
		const struct hd_plan made = plan;
		assert_int_equal(hd_plan_parse(&file, bare, strlen(bare), "a.plan", &m.rig.arena, NULL),
			HD_OK);
		const struct hd_ilist *own = file.list;
		assert_int_equal(hd_schedule_of_plan(&s, &file, &m.rig.arena, NULL), HD_OK);
		CHECK(hd_redundancy_add(&with, &s, &ask, &m.rig.arena, &m.diag) == HD_OK, "%s", m.diag.text);
		file.list = with.list;
		CHECK(hd_plan_staged_check(&file, &whole, NULL, &m.diag) == HD_OK, "%s", m.diag.text);
		hd_text_init(&m.text, &m.rig.arena);
		assert_int_equal(hd_plan_print(&file, &m.text), HD_OK);
		hd_task_destroy(m.rig.task);
		make(&m, m.text.at);
		plan_of(&m, 4, &plan);
		CHECK(has_lists(&plan, file.list), "%s: %s", hd_redundancy_names[mode], plan.cause);
		assert_true(strstr(plan.cause, "of the file") && !strstr(made.cause, "of the file"));
		assert_true(mode == HD_REDUNDANCY_LAZY || !has_lists(&made, file.list));
		plan_of(&m, 2, &plan);
		assert_true(plan.nranks == 2 && !strstr(plan.cause, "of the file") &&
			strstr(plan.cause, "; shadows"));
		/* in one process there are none */
		assert_int_equal(hd_pipes_listed_alone(&alone, m.rig.job, 0, &m.rig.arena, NULL), HD_OK);
		assert_int_equal(hd_run_stages_plan(&plan, &alone, &whole, m.rig.task, NULL, &m.rig.arena,
			NULL), HD_OK);
		assert_true(has_lists(&plan, own));
		m.rig.job->value[HD_JOB_REDUNDANCY].i = mode == HD_REDUNDANCY_FULL ? HD_REDUNDANCY_EAGER :
			(int64_t)mode + 1;
		assert_int_equal(list(&m, m.text.at), HD_E_INVAL);
		CHECK(strstr(m.diag.text, "a.plan: the plan has shadows of the mode ") && strstr(m.diag.text,
			hd_redundancy_names[mode]), "%s", m.diag.text);
		hd_rig_close(&m.rig);
	}
}

/* With any redundancy; of other stages it has no lists. */
static void the_shape_of_a_file_is_known_to_its_job_alone(void **state)
{
	struct hd_pipe_set set;
	const struct hd_pipes *found;
	struct made m, other;

	(void)state;
	begin(&m, "comm: {sync: stages}\n");
	make(&m, file_of(&m, "1f1b", 1, 2, 1, 8, 9));
	assert_int_equal(hd_pipe_set_init(&set, m.rig.task, NULL), HD_OK);
	struct hd_view_shape shape = set.first.shape;
	hd_shape_make_redundant(&shape, HD_REDUNDANCY_LAZY);
	CHECK(hd_pipe_set_find(&set, &shape, &found, &m.diag) == HD_OK, "%s", m.diag.text);
	assert_true(found->buckets.shadows && !set.first.buckets.shadows && found->most == 2);
	shape = set.first.shape;
	shape.first[1]++;
	assert_int_equal(hd_pipe_set_find(&set, &shape, &found, NULL), HD_E_INVAL);
	/* fewer stages, of which a loss leaves a run that has shadows */
	hd_view_shape(&shape, 2, 1, false);
	while (strcmp(hd_schedule_kinds[shape.schedule].name, "gpipe") != 0)
		shape.schedule++;
	m.diag.text[0] = '\0';
	CHECK(hd_pipe_set_find(&set, &shape, &found, &m.diag) == HD_OK, "%s", m.diag.text);
	assert_string_equal(found->stages.schedule, "gpipe");

	other = (struct made){ .pipes = { .most = 9 } };
	hd_rig_begin(&other.rig, gpt, 16, 8, "parallel: {stages: 2}\n");
	assert_int_equal(hd_task_create(&other.rig.task, other.rig.job, &other.rig.fs, NULL), HD_OK);
	CHECK(hd_pipes_of_shape(&other.pipes, other.rig.task, &set.first.shape, &other.rig.arena,
		&other.diag) == HD_E_INVAL && strstr(other.diag.text, "this job has none"), "%s",
		other.diag.text);
	hd_rig_close(&other.rig);
	hd_pipe_set_finish(&set);
	hd_rig_close(&m.rig);
}

/* A run begins with all of its pipelines, and goes on with one at least. */
static void devices_are_counted_by_the_file(void **state)
{
	static const struct { uint32_t t, nworkers, ndevices; bool goes_on; uint32_t groups;
		const char *words; } row[] = {
		{ 1, 4, 1, false, 1, NULL }, { 1, 2, 2, false, 1, NULL }, { 1, 9, 1, false, 1, NULL },
		{ 1, 3, 1, false, 0, "2 pipelines of the plan (parallel.plan) have 4 devices, and 3 workers "
			"have 3: use --workers 4" },
		{ 1, 1, 3, false, 0, "and 1 worker has 3: use --workers 2" },
		{ 1, 3, 1, true, 1, NULL }, { 1, 1, 2, true, 1, NULL },
		{ 1, 1, 1, true, 0, "1 pipeline of the plan (parallel.plan) has 2 devices" },
		{ 2, 8, 1, false, 2, NULL }, { 2, 4, 2, false, 1, NULL }, { 2, 7, 1, false, 0, "have 8 devices" },
		{ 2, 3, 3, false, 0, "a rank is 2 devices" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct made m;
		begin(&m, NULL);
		assert_int_equal(list(&m, file_of(&m, "1f1b", 1, 2, row[i].t, 8, 9)), HD_OK);
		struct hd_job_value *width = &m.rig.job->value[HD_JOB_PAR_WIDTH];
		width->is_auto = !row[i].goes_on;
		enum hd_err err = hd_pipes_settle(m.rig.job, row[i].nworkers, row[i].ndevices, &m.rig.arena,
			&m.diag);
		CHECK(!err == !row[i].words && (!err || strstr(m.diag.text, row[i].words)), "row %zu: %s", i,
			m.diag.text);
		if (!err)
			assert_true(width->i == 2 && !width->is_auto &&
				m.rig.job->value[HD_JOB_PAR_GROUPS].i == row[i].groups);
		hd_rig_close(&m.rig);
	}
}

/* What lies over two workers is read from the same file. */
static void devices_of_a_rank_lie_where_the_run_has_them(void **state)
{
	struct hd_plan plan;
	struct made m;

	(void)state;
	begin(&m, NULL);
	const char *text = file_of(&m, "1f1b", 1, 2, 2, 8, 9);
	assert_int_equal(list(&m, text), HD_OK);
	assert_int_equal(hd_pipes_settle(m.rig.job, 8, 1, &m.rig.arena, NULL), HD_OK);
	make(&m, text);
	assert_true(m.pipes.shape.nstages == 4 && m.pipes.shape.width == 4 && m.pipes.shape.groups == 2 &&
		!m.pipes.shape.each && m.pipes.shape.place[2] == 2);
	plan_of(&m, 8, &plan);
	assert_true(plan.nranks == 8 && plan.groups == 2 && hd_plan_width(&plan) == 1);
	hd_rig_close(&m.rig);
}

static void what_is_no_plan_for_workers_is_refused(void **state)
{
	struct made m;
	char *text;

	(void)state;
	begin(&m, NULL);
	CHECK(list(&m, "plan x\n") && strstr(m.diag.text, "a.plan"), "%s", m.diag.text);
	assert_false(hd_job_is_listed(m.rig.job));
	CHECK(list(&m, file_of(&m, "1f1b", 1, 2, 1, 9, 9)) == HD_E_BADPLAN &&
		strstr(m.diag.text, "a.plan: it is for 9 virtual nodes, and the job has 8"), "%s",
		m.diag.text);
	/* what the checker finds */
	text = (char *)(uintptr_t)file_of(&m, "1f1b", 1, 2, 1, 8, 9);
	*strstr(text, "NORM") = 'X';
	assert_true(list(&m, text) != HD_OK);
	/* long comments are no part of a plan; a long plan is refused */
	char *remark = hd_arena_take(&m.rig.arena, 2 * HD_PIPES_LISTS_BYTES + 8, 1);
	memset(remark, '#', 2 * HD_PIPES_LISTS_BYTES);
	snprintf(remark + HD_PIPES_LISTS_BYTES, HD_PIPES_LISTS_BYTES, "\n%s", file_of(&m, "1f1b", 1, 2, 1, 8,
		9));
	CHECK(list(&m, remark) == HD_OK, "%s", m.diag.text);
	assert_true(hd_job_is_listed(m.rig.job));
	/* nor are owners, which are the view's */
	const char *plain = file_of(&m, "1f1b", 1, 2, 1, 8, 9), *owner = strstr(plain, "\nowner "),
		*rest = strchr(owner + 1, '\n');
	struct hd_text owners;
	hd_text_init(&owners, &m.rig.arena);
	hd_text_addf(&owners, "%.*s\nowner", (int)(owner - plain), plain);
	for (uint32_t c = 0; owners.len < HD_PIPES_LISTS_BYTES; c++)
		hd_text_addf(&owners, " %u:%u", c, c % 2);
	hd_text_add(&owners, rest);
	CHECK(list(&m, owners.at) == HD_OK, "%s", m.diag.text);
	/* of another model */
	assert_int_equal(list(&m, file_of(&m, "1f1b", 1, 2, 1, 8, 900)), HD_OK);
	assert_int_equal(hd_task_create(&m.rig.task, m.rig.job, &m.rig.fs, NULL), HD_OK);
	m.pipes.most = 99;
	assert_true(hd_pipes_make(&m.pipes, m.rig.task, &m.rig.arena, &m.diag) != HD_OK);
	assert_true(*m.diag.text && !m.pipes.shape.nstages);
	hd_rig_close(&m.rig);
}

/* Before it begins. */
static void a_file_has_the_pipelines_that_a_run_keeps(void **state)
{
	static const struct { const char *by; uint32_t d; const char *words; } row[] = {
		{ "checkpoint", 1, NULL }, { "replica:1", 2, NULL }, { "replica:2", 3, NULL },
		{ "replica:1", 1, "keeps 2 pipelines, and the plan (parallel.plan) has 1: a plan of 2 "
			"pipelines, or elastic.resilience: checkpoint" },
		{ "replica:2", 2, "keeps 3 pipelines, and the plan (parallel.plan) has 2: a plan of 3" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct made m;
		char more[80];
		snprintf(more, sizeof more, "comm: {sync: stages}\nelastic: {resilience: '%s'}\n", row[i].by);
		begin(&m, more);
		const char *text = file_of(&m, "1f1b", 1, row[i].d, 1, 8, 9);
		CHECK(list(&m, text) == HD_OK, "row %zu: %s", i, m.diag.text);
		assert_int_equal(hd_task_create(&m.rig.task, m.rig.job, &m.rig.fs, NULL), HD_OK);
		const enum hd_err err = hd_pipes_make(&m.pipes, m.rig.task, &m.rig.arena, &m.diag);
		CHECK(row[i].words ? err == HD_E_INVAL && strstr(m.diag.text, row[i].words) &&
			!m.pipes.shape.nstages : !err && m.pipes.most == row[i].d, "row %zu: %s", i,
			m.diag.text);
		hd_rig_close(&m.rig);
	}
}

static void put(struct hd_job *job, enum hd_job_key key, const char *text, int64_t i)
{
	struct hd_job_value *v = &job->value[key];

	v->is_auto = v->is_standard = false;
	v->is_none = !strcmp(text, "none");
	v->text = text;
	v->i = i;
	v->origin = HD_FROM_SET;
}

/* While the run goes on the file may give way to keys, and no other file may come. */
static void pipelines_by_keys_take_the_place_of_a_file(void **state)
{
	struct made m;

	(void)state;
	begin(&m, NULL);
	make(&m, file_of(&m, "zb-v", 2, 2, 1, 8, 9));
	put(m.rig.job, HD_JOB_PAR_PLAN, "b.plan", 0);
	CHECK(hd_pipes_change(m.rig.job, 2, 1, &m.rig.arena, &m.diag) == HD_E_INVAL &&
		strstr(m.diag.text, "parallel.plan does not change while a run goes on"), "%s", m.diag.text);
	put(m.rig.job, HD_JOB_PAR_PLAN, "none", 0);
	put(m.rig.job, HD_JOB_PAR_MODE, "pipeline", HD_PAR_PIPELINE);
	put(m.rig.job, HD_JOB_PAR_SCHEDULE, "gpipe", 0);
	m.diag.text[0] = '\0';
	CHECK(hd_pipes_change(m.rig.job, 2, 1, &m.rig.arena, &m.diag) == HD_OK, "%s", m.diag.text);
	CHECK(hd_pipes_make(&m.pipes, m.rig.task, &m.rig.arena, &m.diag) == HD_OK, "%s", m.diag.text);
	assert_true(m.pipes.shape.nstages == 2 && !m.pipes.stages.listed);
	hd_rig_close(&m.rig);
}

/* The run's job, as a process that goes on with it reads it; `words`: -s of the one that asks. */
static struct hd_job *kept(struct made *m, const struct hd_rundir *dir, const char *const *words, uint32_t n)
{
	struct hd_job *job = NULL;
	struct hd_job_sets sets;

	assert_int_equal(hd_job_sets_init(&sets, n, &m->rig.arena, &m->diag), HD_OK);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(hd_job_sets_word(&sets, words[i], &m->diag), HD_OK);
	CHECK(hd_kept_job_read(&job, dir, sets.set, sets.n, &m->rig.arena, &m->diag) == HD_OK, "%s",
		m->diag.text);
	return job;
}

/* Until there are workers for the stages that were asked for the view is the file's: one that comes, or takes
 * over, reads a job that has left it. */
static void views_of_a_file_that_was_left_are_known_to_those_that_come(void **state)
{
	static const char *const words[] = { "parallel.mode=pipeline", "parallel.plan=none",
		"parallel.stages=4" };
	const struct hd_plan_job job = hd_plan_job_whole(8, 3);
	char parent[64], folder[80];
	struct hd_pipe_set before, after;
	const struct hd_pipes *had, *has;
	struct hd_plan was, is;
	struct hd_rundir dir;
	struct hd_task *task;
	struct hd_clock clock;
	struct hd_pipes pipes;
	struct hd_view view;
	struct hd_text text;
	struct made m;

	(void)state;
	begin(&m, "comm: {sync: stages}\nelastic: {redundancy: lazy}\n");
	make(&m, file_of(&m, "1f1b", 1, 2, 1, 8, 9));
	hd_clock_real(&clock);
	snprintf(parent, sizeof parent, "/tmp/hd_pipes_listed_test.%d", (int)getpid());
	snprintf(folder, sizeof folder, "%s/run", parent);
	assert_int_equal(hd_fs_mkdirs(&m.rig.fs, parent, NULL), HD_OK);
	assert_int_equal(hd_rundir_create(&dir, &m.rig.fs, &clock, parent, folder, "gpt", "{}", 2, NULL),
		HD_OK);
	hd_text_init(&text, &m.rig.arena);
	hd_job_json(m.rig.job, false, &text);
	assert_int_equal(hd_rundir_put(&dir, HD_RUN_JOB, text.at, text.len, NULL), HD_OK);
	/* as a coordinator does that is asked for it */
	struct hd_job *asked = kept(&m, &dir, words, sizeof words / sizeof *words);
	CHECK(hd_pipes_change(asked, 2, 1, &m.rig.arena, &m.diag) == HD_OK, "%s", m.diag.text);
	assert_int_equal(hd_task_create(&task, asked, &m.rig.fs, &m.diag), HD_OK);
	CHECK(hd_pipes_make(&pipes, task, &m.rig.arena, &m.diag) == HD_OK, "%s", m.diag.text);
	assert_int_equal(hd_pipes_keep_shape(&dir, asked, &pipes, &m.rig.arena, &m.diag), HD_OK);
	hd_task_destroy(task);

	assert_int_equal(hd_task_create(&task, kept(&m, &dir, NULL, 0), &m.rig.fs, &m.diag), HD_OK);
	assert_int_equal(hd_pipe_set_init(&before, m.rig.task, &m.diag), HD_OK);
	assert_int_equal(hd_pipe_set_init(&after, task, &m.diag), HD_OK);
	assert_true(after.first.shape.nstages == 4 && !after.first.stages.listed);
	/* with shadows and, as by-notice has it, without */
	for (uint32_t redundancy = 0; redundancy <= HD_REDUNDANCY_LAZY; redundancy++) {
		struct hd_view_shape shape = before.first.shape;
		hd_shape_make_redundant(&shape, redundancy);
		CHECK(hd_pipe_set_find(&before, &shape, &had, &m.diag) == HD_OK, "%s", m.diag.text);
		CHECK(hd_pipe_set_find(&after, &shape, &has, &m.diag) == HD_OK, "%s", m.diag.text);
		assert_true(hd_pipes_view(&view, had, 2, 1, 8));
		assert_int_equal(hd_pipes_plan(&was, had, &view, &job, m.rig.task, &m.rig.arena, &m.diag),
			HD_OK);
		assert_int_equal(hd_pipes_plan(&is, has, &view, &job, task, &m.rig.arena, &m.diag), HD_OK);
		assert_true(hd_hash_same(hd_plan_digest(&was), hd_plan_digest(&is)));
		assert_true(had->most == has->most && had->buckets.shadows == has->buckets.shadows);
	}
	hd_pipe_set_finish(&after);
	hd_pipe_set_finish(&before);
	hd_task_destroy(task);
	hd_rundir_close(&dir);
	assert_int_equal(hd_fs_remove_tree(&m.rig.fs, parent, NULL), HD_OK);
	hd_rig_close(&m.rig);
}

/* Two pipelines of three stages, of which the last two have changed places. */
static const char *file_out_of_order(struct made *m)
{
	const struct hd_plan_job job = { .nvns = 8, .nchunks = 3, .nstages = 1 };
	const struct hd_schedule_ask ask = { .name = "1f1b", .p = 3, .v = 1, .m = 4 };
	static const uint32_t first[] = { 0, 9, 18 }, to[] = { 0, 2, 1 };
	struct hd_schedule pipeline[2], made;
	struct hd_ilist list[3];
	struct hd_plan plan;

	assert_int_equal(hd_schedule_make(&made, &ask, &m->rig.arena, NULL), HD_OK);
	for (uint32_t r = 0; r < 3; r++) {
		list[to[r]] = made.list[r];
		for (uint32_t i = 0; i < made.list[r].len; i++) {
			struct hd_ins *ins = &made.list[r].at[i];
			if (hd_ins_uses(ins->op, '>') || hd_ins_uses(ins->op, '<'))
				ins->peer = (uint16_t)to[ins->peer];
		}
	}
	made.list = list;
	assert_int_equal(hd_schedule_infer(&made, &m->rig.arena, NULL), HD_OK);
	pipeline[0] = pipeline[1] = made;
	assert_int_equal(hd_plan_staged(&plan, &job, pipeline, 2, first, HD_KEEPS_ALL, &m->rig.arena, NULL),
		HD_OK);
	hd_text_init(&m->text, &m->rig.arena);
	assert_int_equal(hd_plan_print(&plan, &m->text), HD_OK);
	return m->text.at;
}

/* A holding has the shadow of a stage at the rank before its own, whatever stage is there. */
static void stages_out_of_order_have_shadows_without_work(void **state)
{
	static const struct { const char *mode; bool goes; } rows[] = { { "none", true }, { "lazy", true },
		{ "eager", false }, { "full", false } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char more[80];
		struct hd_plan plan;
		struct made m;
		snprintf(more, sizeof more, "comm: {sync: stages}\nelastic: {redundancy: %s}\n",
			rows[i].mode);
		begin(&m, more);
		CHECK(list(&m, file_out_of_order(&m)) == HD_OK, "%s", m.diag.text);
		assert_int_equal(hd_task_create(&m.rig.task, m.rig.job, &m.rig.fs, NULL), HD_OK);
		const enum hd_err err = hd_pipes_make(&m.pipes, m.rig.task, &m.rig.arena, &m.diag);
		CHECK((err == HD_OK) == rows[i].goes && (!err || (err == HD_E_INVAL && strstr(m.diag.text,
			"has stage 1 on device 2 of its pipeline"))), "%s: %s", rows[i].mode, m.diag.text);
		if (!err) {
			assert_true(m.pipes.shape.place[1] == 2 && m.pipes.shape.place[2] == 1);
			plan_of(&m, 6, &plan);
			CHECK(!strstr(plan.cause, "stages in another order than ranks") == (i == 0) &&
				m.pipes.buckets.shadows == (i == 1), "%s", plan.cause);
			for (uint32_t r = 0; r < plan.nranks; r++)
				for (uint32_t k = 0; k < plan.list[r].len; k++)
					assert_false(hd_ins_redundant(&plan.list[r].at[k]) ||
						plan.list[r].at[k].flags & HD_INS_KEEP);
		}
		hd_rig_close(&m.rig);
	}
}

/* A resume in one process, whatever became of the file. */
static void devices_of_one_process_share_out_what_the_run_has(void **state)
{
	static const struct { uint32_t t, ndevices, d; const char *share; } rows[] = {
		{ 1, 0, 3, "3 3 2" }, { 1, 6, 3, "3 3 2" }, { 1, 4, 2, "4 4" }, { 1, 2, 1, "8" },
		{ 2, 0, 3, "3 3 2" }, { 2, 4, 1, "8" }, { 2, 8, 2, "4 4" },
		{ 1, 1, 0, "1 are no whole number of these: use --devices 2," },
		{ 1, 3, 0, "3 are no whole number of these: use --devices 6, or another multiple of 2" },
		{ 1, 8, 0, "8 are no whole number of these: use --devices 6," },
		{ 2, 2, 0, "has 3 pipelines of 4 devices, and 2 are no whole" } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_run_stages s = { .p = 0 };
		struct hd_plan plan;
		struct hd_text text;
		struct made m;
		begin(&m, NULL);
		make(&m, file_of(&m, "1f1b", 1, 3, rows[i].t, 8, 9));
		const enum hd_err err = hd_pipes_listed_alone(&s, m.rig.job, rows[i].ndevices, &m.rig.arena,
			&m.diag);
		const struct hd_plan_job job = hd_plan_job_whole(8, m.rig.task->layout.nchunks);
		hd_text_init(&text, &m.rig.arena);
		if (!rows[i].d)
			CHECK(err == HD_E_INVAL && strstr(m.diag.text, rows[i].share), "row %zu: %s", i,
				m.diag.text);
		for (uint32_t k = 0; !err && k < s.d; k++)
			hd_text_addf(&text, "%s%u", k ? " " : "", s.share[k]);
		CHECK(s.d == rows[i].d && (err || !strcmp(text.at, rows[i].share)), "row %zu: %u: %s", i, s.d,
			m.diag.text);
		if (!err) {
			CHECK(!hd_run_stages_plan(&plan, &s, &job, m.rig.task, NULL, &m.rig.arena, &m.diag),
				"row %zu: %s", i, m.diag.text);
			assert_true(hd_plan_devices(&plan) == s.d * 2 * rows[i].t && plan.first[1] == 9);
		}
		hd_rig_close(&m.rig);
	}
	/* of one pipeline there is no other number */
	struct hd_run_stages s;
	struct made m;
	begin(&m, NULL);
	make(&m, file_of(&m, "1f1b", 1, 1, 1, 8, 9));
	CHECK(hd_pipes_listed_alone(&s, m.rig.job, 4, &m.rig.arena, &m.diag) == HD_E_INVAL && strstr(
		m.diag.text, "is for 2 devices, and there are 4: use --devices 2"), "%s", m.diag.text);
	hd_rig_close(&m.rig);
}

/* Of 3 and 2 copies, which no key can ask for: each of its virtual nodes forward, then backward. Vns 0-4 are
 * of the first copy of stage 1; stage 0 has 0-3, 4-5 and 6-7, for six lanes have 2, 2, 1, 1, 1 and 1. */
static const char *file_of_copies(struct made *m, const uint32_t *of, const uint32_t *to)
{
	const struct hd_plan_job job = { .nvns = 8, .nchunks = 3, .nstages = 1 };
	static const uint32_t first[] = { 0, 9 };
	struct hd_schedule made = { .heading = "", .nranks = 5, .nvns = 8, .nstages = 2 };
	struct hd_ilist list[5] = { { 0 } };
	struct hd_plan plan;

	for (uint32_t r = 0; r < 5; r++)
		list[r] = (struct hd_ilist){ hd_arena_take(&m->rig.arena, 32, sizeof *list->at), 0, 32 };
	for (uint32_t v = 0; v < 8; v++)
		for (uint16_t s = 0; s < 2; s++)
			for (uint32_t k = 0; k < 2; k++) {
				struct hd_ilist *l = &list[s ? to[v] : of[v]];
				l->at[l->len++] = (struct hd_ins){ .op = k ? HD_INS_B : HD_INS_F, .stage = s,
					.vn = v };
			}
	made.list = list;
	assert_int_equal(hd_schedule_infer(&made, &m->rig.arena, NULL), HD_OK);
	CHECK(!hd_plan_staged(&plan, &job, &made, 1, first, HD_KEEPS_ALL, &m->rig.arena, &m->diag), "%s",
		m->diag.text);
	hd_text_init(&m->text, &m->rig.arena);
	assert_int_equal(hd_plan_print(&plan, &m->text), HD_OK);
	return m->text.at;
}

/* Also in numbers of which neither divides the other; with one device too few the run waits. */
static void copies_of_stages_are_places_of_the_shape(void **state)
{
	static const uint32_t of[] = { 0, 0, 0, 0, 1, 1, 2, 2 }, to[] = { 3, 3, 3, 3, 3, 4, 4, 4 },
		other[] = { 3, 3, 3, 3, 4, 4, 4, 4 };
	struct hd_plan file, plan;
	struct hd_run_stages s;
	struct hd_view view;
	struct made m;

	(void)state;
	begin(&m, "comm: {sync: stages}\n");
	assert_int_equal(list(&m, file_of_copies(&m, of, other)), HD_E_INVAL);
	CHECK(strstr(m.diag.text, "stage 1 of virtual node 4 is on rank 4 of the plan, a copy"), "%s",
		m.diag.text);
	const char *text = file_of_copies(&m, of, to);
	assert_int_equal(hd_plan_parse(&file, text, strlen(text), "a.plan", &m.rig.arena, NULL), HD_OK);
	make(&m, text);
	const struct hd_view_shape *shape = &m.pipes.shape;
	assert_true(shape->nstages == 2 && shape->width == 5 && !shape->place[0] && shape->place[1] == 3 &&
		m.pipes.most == 1 && hd_view_lanes(shape) == 6);
	plan_of(&m, 6, &plan);
	assert_int_equal(plan.nranks, 5);
	for (uint32_t r = 0; r < 5; r++)
		assert_true(plan.list[r].len == file.list[r].len && !memcmp(plan.list[r].at, file.list[r].at,
			file.list[r].len * sizeof *file.list[r].at));
	CHECK(strstr(plan.cause, "file: 2 stages, 1 pipeline of 5 devices, copies 3,2"), "%s", plan.cause);
	assert_true(hd_pipes_view(&view, &m.pipes, 5, 1, 8));
	CHECK(hd_view_verify(&view, 8, &m.diag) == HD_OK, "%s", m.diag.text);
	for (uint32_t v = 0; v < 8; v++)
		assert_true(hd_view_runs(&view, v, 0) == of[v] && hd_view_runs(&view, v, 1) == to[v]);
	assert_false(hd_pipes_view(&view, &m.pipes, 4, 1, 8));
	assert_int_equal(hd_pipes_listed_alone(&s, m.rig.job, 0, &m.rig.arena, NULL), HD_OK);
	assert_true(s.p == 5 && s.d == 1 && s.ncopies == 2 && s.copies[0] == 3 && s.copies[1] == 2);
	/* no worker holds the shadow of a copy */
	m.rig.job->value[HD_JOB_REDUNDANCY].i = HD_REDUNDANCY_LAZY;
	assert_int_equal(hd_pipes_make(&m.pipes, m.rig.task, &m.rig.arena, &m.diag), HD_E_INVAL);
	CHECK(strstr(m.diag.text, "does not go with stages that have copies (parallel.plan): "
		"elastic.redundancy: none, or a plan without copies"), "%s", m.diag.text);
	hd_rig_close(&m.rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_view_of_all_pipelines_has_the_lists_of_the_file),
		cmocka_unit_test(pipelines_have_the_shares_of_the_file),
		cmocka_unit_test(shadows_stand_where_the_file_has_them),
		cmocka_unit_test(the_shape_of_a_file_is_known_to_its_job_alone),
		cmocka_unit_test(devices_are_counted_by_the_file),
		cmocka_unit_test(devices_of_a_rank_lie_where_the_run_has_them),
		cmocka_unit_test(what_is_no_plan_for_workers_is_refused),
		cmocka_unit_test(a_file_has_the_pipelines_that_a_run_keeps),
		cmocka_unit_test(pipelines_by_keys_take_the_place_of_a_file),
		cmocka_unit_test(views_of_a_file_that_was_left_are_known_to_those_that_come),
		cmocka_unit_test(stages_out_of_order_have_shadows_without_work),
		cmocka_unit_test(devices_of_one_process_share_out_what_the_run_has),
		cmocka_unit_test(copies_of_stages_are_places_of_the_shape),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
