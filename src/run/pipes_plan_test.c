#include "run/pipe_set.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "pipeline/staged.h"
#include "protocol/passes.h"
#include "engine/testing.h"

/* What pipes.h says of single views: their shape, their plans, the part of a worker, and what is refused. */

static const char gpt[] = "model: {use: builtin:gpt, args: {layers: 3, width: 128, heads: 2, context: 8, "
	"vocab: 9000}}\ndata: {kind: synthetic, count: 640}\n";

struct made { struct hd_rig rig; struct hd_pipes pipes; struct hd_diag diag; enum hd_err err; };

static void begin_with(struct made *m, const char *model, uint32_t vns, const char *more)
{
	*m = (struct made){ .pipes = { .most = 99 } };
	hd_rig_begin(&m->rig, model, vns, vns, more);
	CHECK(hd_task_create(&m->rig.task, m->rig.job, &m->rig.fs, &m->diag) == HD_OK, "%s", m->diag.text);
	m->err = hd_pipes_make(&m->pipes, m->rig.task, &m->rig.arena, &m->diag);
}

static void begin(struct made *m, uint32_t vns, const char *more) { begin_with(m, gpt, vns, more); }

static struct hd_plan_job job_of(const struct made *m)
{
	return hd_plan_job_whole(m->rig.job->nvns, m->rig.task->layout.nchunks);
}

static enum hd_err plan_of(struct made *m, const struct hd_view *view, struct hd_plan *plan)
{
	const struct hd_plan_job job = job_of(m);

	m->diag.text[0] = 0;
	return hd_pipes_plan(plan, &m->pipes, view, &job, m->rig.task, &m->rig.arena, &m->diag);
}

/* A view has 256 ranks, a pipeline one virtual node at least. */
static void there_are_no_more_pipelines_than_ranks_and_virtual_nodes(void **state)
{
	static const struct { const char *more; uint32_t vns, most; } rows[] = {
		{ "parallel: {mode: pipeline, width: 2}\n", 300, 128 },
		{ "parallel: {mode: pipeline, width: 3}\n", 300, 85 },
		{ "parallel: {mode: pipeline, width: 3}\n", 5, 5 },
		{ "parallel: {stages: 2, replicas: 140}\n", 300, 128 },
		{ "parallel: {stages: 2, replicas: 7}\n", 300, 7 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct made m;
		begin(&m, rows[i].vns, rows[i].more);
		CHECK(!m.err && m.pipes.most == rows[i].most, "row %zu: %u, %s", i, m.pipes.most,
			m.diag.text);
		hd_rig_close(&m.rig);
	}
}

static void what_makes_no_pipelines_is_refused_and_leaves_none(void **state)
{
	static const struct { const char *more; uint32_t vns; const char *words; } rows[] = {
		{ "parallel: {schedule: zb-v, stages: 3}\n", 8, "use a multiple of 2" },
		{ "parallel: {schedule: dualpipev, width: 2}\n", 2, "dualpipev" },
		{ "parallel: {stages: 60}\n", 8, "41 nodes" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct made m;
		begin(&m, rows[i].vns, rows[i].more);
		CHECK(m.err == HD_E_INVAL && strstr(m.diag.text, rows[i].words) && !m.pipes.shape.nstages &&
			!m.pipes.stages.p && !m.pipes.most, "row %zu: %d %s", i, (int)m.err, m.diag.text);
		hd_rig_close(&m.rig);
	}
}

/* Of an optimizer that changes whole tensors, where members hold parts of the state. */
static void tensors_in_several_buckets_are_known_where_they_matter(void **state)
{
	static const struct { const char *optim, *sync; bool known; } rows[] = {
		{ "lamb", "stages", true }, { "adamw", "stages", false }, { "lamb", "allreduce", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct made m;
		char more[120];
		snprintf(more, sizeof more, "parallel: {stages: 2}\ncomm: {sync: %s}\noptim: {kind: %s}\n",
			rows[i].sync, rows[i].optim);
		begin(&m, 8, more);
		CHECK(!m.err && m.pipes.buckets.whole == !strcmp(rows[i].sync, "allreduce") &&
			!m.pipes.buckets.tensors.n == !rows[i].known, "row %zu: %u tensors, %s", i,
			m.pipes.buckets.tensors.n, m.diag.text);
		hd_rig_close(&m.rig);
	}
}

static void a_run_begins_in_the_shape_that_its_devices_make(void **state)
{
	static const struct { const char *more; uint32_t n, ndevices; bool staged;
		uint32_t nranks; } rows[] = {
		{ "parallel: {stages: 2}\n", 2, 1, true, 2 }, { "parallel: {stages: 2}\n", 1, 3, true, 2 },
		{ "parallel: {stages: 3}\n", 2, 1, false, 2 }, { "parallel: {stages: 3}\n", 1, 2, false, 2 },
		{ NULL, 3, 2, false, 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_view view;
		struct made m;
		begin(&m, 13, rows[i].more);
		bool staged = hd_pipes_view(&view, &m.pipes, rows[i].n, rows[i].ndevices, 13);
		CHECK(staged == rows[i].staged && !view.shape.nstages == !staged && view.epoch == 1 &&
			view.nmembers == rows[i].n && view.nranks == rows[i].nranks, "row %zu: %u ranks", i,
			view.nranks);
		hd_rig_close(&m.rig);
	}
}

/* By shape and job alone; a plan whose steps are drained says why. */
static void steps_of_delayed_updates_overlap_over_workers(void **state)
{
	static const char mlp[] = "model: {use: builtin:mlp, args: {hidden: [32, 24, 16]}}\n"
		"data: {kind: synthetic, count: 640}\n";
	static const char llama[] = "data: {kind: synthetic, count: 640}\n"
		"model: {use: builtin:llama, args: {layers: 4, width: 16, heads: 2, context: 8}}\n";
	static const struct { const char *more; uint32_t vns; const char *drains; uint32_t n; } rows[] = {
		{ "optim: {update: 2bw}\nparallel: {stages: 2, schedule: 2bw}\n", 8, NULL, 3 },
		{ "optim: {update: vsync, cuts: auto:2}\nparallel: {stages: 2, schedule: vsync}\n", 8, NULL, 2 },
		{ "optim: {update: 2bw}\nparallel: {stages: 2, schedule: 1f1b}\n", 8, "1f1b", 2 },
		{ "optim: {update: 2bw}\nparallel: {stages: 2, schedule: 2bw, replicas: 2}\n", 8,
			"several pipelines", 4 },
		{ "optim: {update: 2bw}\nparallel: {stages: 4, schedule: 2bw}\n", 5, "2 (devices - 1)", 4 },
		{ "optim: {update: 2bw}\nparallel: {stages: 2, schedule: 2bw}\n"
			"comm: {sync: stages}\nelastic: {redundancy: lazy}\n", 8, "elastic.redundancy", 2 },
		{ "optim: {update: stash, cuts: auto:2, clip: 0}\nparallel: {stages: 2, schedule: stash}\n",
			8, NULL, 2 },
		{ "optim: {update: stash, cuts: auto:2}\nparallel: {stages: 2, schedule: stash}\n", 8,
			"the last stage waits for the norm that optim.clip needs", 2 },
		/* the last stage of these learns something, which is not late with stash */
		{ "optim: {update: stash, cuts: auto:2, clip: 0}\nparallel: {stages: 2, schedule: 1f1b}\n", 8, "1f1b",
			2 },
		{ "optim: {update: stash, cuts: auto:2, clip: 0}\nparallel: {stages: 2, schedule: stash, "
			"replicas: 2}\n", 8, "several pipelines", 4 },
		{ "optim: {update: stash, cuts: auto:2, clip: 0}\nparallel: {stages: 2, schedule: stash}\n"
			"comm: {sync: stages}\nelastic: {redundancy: lazy}\n", 8, "elastic.redundancy", 2 },
		/* the plan's last cut goes to the job's */
		{ "optim: {update: stash, cuts: auto:2, clip: 0}\nparallel: {stages: 3, schedule: stash}\n"
			"comm: {sync: stages}\n", 8, NULL, 3 },
	};

	enum { NROWS = sizeof rows / sizeof *rows };
	(void)state;
	for (size_t i = 0; i < NROWS; i++) {
		struct hd_pipe_set set;
		struct hd_view view;
		struct hd_plan plan;
		struct made m;
		begin_with(&m, i + 4 < NROWS ? mlp : llama, rows[i].vns, rows[i].more);
		CHECK(!m.err, "row %zu: %s", i, m.diag.text);
		assert_true(hd_pipes_view(&view, &m.pipes, rows[i].n, 1, rows[i].vns));
		CHECK(plan_of(&m, &view, &plan) == HD_OK, "row %zu: %s", i, m.diag.text);
		const struct hd_plan_job job = job_of(&m);
		CHECK(hd_plan_staged_check(&plan, &job, NULL, &m.diag) == HD_OK, "row %zu: %s", i,
			m.diag.text);
		/* buckets are of the cuts that the plan has */
		assert_memory_equal(plan.first, m.pipes.stages.first, plan.nstages * sizeof *plan.first);
		CHECK(plan.overlap == !rows[i].drains && strstr(plan.cause, rows[i].drains ? rows[i].drains :
			"with steps that overlap"), "row %zu: %s", i, plan.cause);
		assert_true(i + 4 < NROWS || m.rig.task->delays.early);
		assert_int_equal(hd_pipe_set_init(&set, m.rig.task, &m.diag), HD_OK);
		CHECK(hd_pipe_set_early(&set, &view) == (plan.overlap && m.rig.task->delays.early), "row %zu",
			i);
		view.shape.nstages = 0;
		assert_false(hd_pipe_set_early(&set, &view));
		hd_pipe_set_finish(&set);
		hd_rig_close(&m.rig);
	}
}

/* Where steps are drained the cuts divide the work, wherever the job's last stage begins. */
static void cuts_of_steps_that_are_drained_stay(void **state)
{
	static const char *const schedules[] = { "stash", "1f1b" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct made m;
		char more[160];
		snprintf(more, sizeof more, "optim: {update: stash, cuts: auto:2, clip: 0}\n"
			"parallel: {stages: 3, schedule: %s}\n", schedules[i]);
		begin_with(&m, "data: {kind: synthetic, count: 640}\n"
			"model: {use: builtin:llama, args: {layers: 4, width: 16, heads: 2, context: 8}}\n",
			8, more);
		const uint32_t last = m.pipes.stages.first[2], job = m.rig.task->delays.first[1];
		CHECK(!m.err && (i ? last > job : last == job), "%s: %u, %u", schedules[i], last, job);
		hd_rig_close(&m.rig);
	}
}

/* Chunks of a member's buckets go to its devices one after another. */
static void a_view_without_shape_is_planned_as_data(void **state)
{
	const uint32_t member[] = { 3, 8 }, ndevices[] = { 1, 2 };
	struct hd_view view;
	struct hd_plan plan;
	struct made m;

	(void)state;
	begin(&m, 13, "parallel: {stages: 4}\n");
	hd_view_even(&view, 5, member, ndevices, 2, 13);
	CHECK(plan_of(&m, &view, &plan) == HD_OK, "%s", m.diag.text);
	assert_string_equal(plan.cause, "view 5: workers 3 8");
	assert_true(plan.nstages == 1 && plan.nranks == 3 && plan.number == 5 && plan.worker[0] == 0 &&
		plan.worker[1] == 1 && plan.worker[2] == 1);
	/* a bucket is of one device; workers have as many bytes as each other, to a bucket, and so have the
	 * devices of one, in order */
	uint32_t of[3] = { 0 };
	for (uint32_t c = 0; c < plan.nchunks; c++) {
		assert_true(c % HD_BUCKET_CHUNKS == 0 || plan.owner[c] == plan.owner[c - 1]);
		assert_true(plan.owner[c] != 1 || !of[2]);
		of[plan.owner[c]]++;
	}
	assert_true(abs((int)of[0] - (int)(of[1] + of[2])) <= HD_BUCKET_CHUNKS);
	assert_true(abs((int)of[1] - (int)of[2]) <= HD_BUCKET_CHUNKS);
	hd_rig_close(&m.rig);
}

static void a_plan_of_stages_says_which_view_it_is_of(void **state)
{
	static const char begins[] = "view 1: worker 0; 1f1b: 2 stages, 1 pipeline of 2 devices; cuts at ";
	struct hd_plan plan = { .cause = "" };
	struct hd_view view;
	struct made m;

	(void)state;
	begin(&m, 13, "parallel: {stages: 2}\n");
	assert_true(hd_pipes_view(&view, &m.pipes, 1, 2, 13));
	CHECK(plan_of(&m, &view, &plan) == HD_OK, "%s", m.diag.text);
	CHECK(!strncmp(plan.cause, begins, strlen(begins)), "%s", plan.cause);
	/* what the checker refuses is no plan */
	struct hd_plan_job job = job_of(&m);
	job.lockstep = true;
	assert_int_equal(hd_pipes_plan(&plan, &m.pipes, &view, &job, m.rig.task, &m.rig.arena, NULL),
		HD_E_REFUSED);
	hd_rig_close(&m.rig);
}

static void each_request_for_memory_is_looked_at(void **state)
{
	static const uint32_t two[] = { 0, 1 }, one[] = { 1, 1 };
	struct hd_plan plan;
	struct hd_view staged, even;
	struct made m;
	uint32_t nrefused = 0;

	(void)state;
	begin(&m, 13, "parallel: {stages: 2}\n");
	assert_true(hd_pipes_view(&staged, &m.pipes, 2, 1, 13));
	hd_view_even(&even, 1, two, one, 2, 13);
	for (int whole = 0; whole < 2; whole++) {
		enum hd_err err = HD_E_NOMEM;
		for (uint64_t n = 1; err; n++, nrefused++) {
			hd_alloc_arm(n);
			err = plan_of(&m, whole ? &even : &staged, &plan);
			hd_alloc_arm(0);
			CHECK(!err || err == HD_E_NOMEM, "request %u: %d %s", (unsigned)n, (int)err,
				m.diag.text);
		}
	}
	assert_true(nrefused > 8);
	for (uint64_t piece = 1, left = 0; !left; piece++) {
		struct hd_pipes pipes;
		hd_alloc_arm_piece(piece);
		enum hd_err err = hd_pipes_make(&pipes, m.rig.task, &m.rig.arena, &m.diag);
		left = hd_alloc_arm_piece(0);
		CHECK(err == HD_E_NOMEM || (!err && pipes.shape.nstages == 2), "piece %u: %d",
			(unsigned)piece, (int)err);
	}
	hd_rig_close(&m.rig);
}

/* ---- the part of a worker ---- */

static enum hd_err part_of(struct made *m, const struct hd_view *view, uint32_t worker,
	struct hd_dist_view *part)
{
	static struct hd_plan plan;

	plan.nvns = m->rig.job->nvns;
	*part = (struct hd_dist_view){ .plan = &plan, .held = (const uint8_t *)"before" };
	return hd_pipes_part(part, &m->pipes, view, worker, m->rig.worker, &m->rig.arena, &m->diag);
}

static uint64_t received(const struct made *m, const struct hd_view *view, uint32_t worker)
{
	uint64_t bytes;

	assert_int_equal(hd_view_received(view, worker, m->rig.job->nvns, &m->rig.task->layout,
		&m->pipes.buckets, 0, 0, &bytes), HD_OK);
	return bytes;
}

static uint64_t largest_slot(const struct made *m)
{
	uint64_t most = 0;

	for (uint32_t b = 0; b < m->pipes.buckets.n; b++)
		if (hd_dist_slot_bytes(m->rig.worker, b) > most)
			most = hd_dist_slot_bytes(m->rig.worker, b);
	return most;
}

static void engine_of(struct made *m, bool by_stage)
{
	const struct hd_worker_spec spec = { .kind = "cpu", .nthreads = 1, .ndevices = 1,
		.kernels = HD_KERNELS_PORTABLE, .by_stage = by_stage };

	CHECK(!m->err && hd_worker_create(&m->rig.worker, m->rig.task, &spec, &m->diag) == HD_OK, "%s",
		m->diag.text);
}

static void with_engine(struct made *m, uint32_t vns, const char *more, bool by_stage)
{
	begin(m, vns, more);
	engine_of(m, by_stage);
}

/* 64 members in pipelines of two: even ones hold stage 0, odd ones stage 1, and both a tied table; a stranger
 * holds nothing. */
static void a_member_holds_the_buckets_that_its_stages_read(void **state)
{
	struct hd_dist_view part;
	struct hd_view view;
	struct made m;
	uint32_t nheld = 0, nnot = 0;

	(void)state;
	with_engine(&m, 64, "parallel: {stages: 2}\ncomm: {sync: stages}\n", true);
	assert_true(hd_pipes_view(&view, &m.pipes, 64, 1, 64));
	for (uint32_t w = 0; w < 65; w++) {
		assert_int_equal(part_of(&m, &view, w, &part), HD_OK);
		assert_int_equal(part.received_bytes, received(&m, &view, w) + HD_PIPES_MOVED *
			largest_slot(&m));
		assert_int_equal(part.worker, w < 64 ? w : HD_DIST_NOBODY);
		for (uint32_t b = 0; b < m.pipes.buckets.n; b++) {
			const bool reads = w < 64 && m.pipes.buckets.at[b].readers >> w % 2 & 1;
			CHECK(part.held[b] == reads, "worker %u, bucket %u", w, b);
			nheld += part.held[b];
			nnot += !part.held[b] && w < 64;
		}
	}
	assert_true(nheld && nnot);
	/* without a shape all hold all */
	hd_view_even(&view, 2, (uint32_t[]){ 0, 1 }, (uint32_t[]){ 1, 1 }, 2, 64);
	assert_int_equal(part_of(&m, &view, 1, &part), HD_OK);
	assert_true(!part.held && part.received_bytes == received(&m, &view, 1) && part.worker == 1);
	hd_rig_close(&m.rig);
	/* 18 stages of a member are too many, and nothing is said of what it holds */
	with_engine(&m, 64, "parallel: {schedule: interleaved, chunks: 18, stages: 36}\n"
		"comm: {sync: stages}\n", true);
	assert_true(hd_pipes_view(&view, &m.pipes, 2, 1, 64));
	assert_int_equal(part_of(&m, &view, 1, &part), HD_E_NOSPACE);
	assert_null(part.held);
	hd_rig_close(&m.rig);
}

/* What is written to while the view stays: the first of the members writes the checkpoints, and gets what it
 * lacks, two buckets at a time; the holders of these give them, one at a time; the other replica of its stage
 * has nothing to give, nor has a stranger. */
static void places_are_used_of(const char *model, uint32_t least, uint32_t at_a_time)
{
	uint64_t most = 0, of_two = 0;
	struct hd_memory_terms terms[2];
	struct hd_dist_view part;
	struct hd_plan plan;
	struct hd_view view;
	struct made m;
	uint32_t n = 0;

	begin_with(&m, model, 8, "parallel: {stages: 2, replicas: 2}\ncomm: {sync: stages}\n");
	engine_of(&m, true);
	const struct hd_plan_job job = hd_worker_plan_job(m.rig.worker);
	assert_true(hd_pipes_view(&view, &m.pipes, 4, 1, 8));
	CHECK(hd_pipes_plan(&plan, &m.pipes, &view, &job, m.rig.task, &m.rig.arena, &m.diag) == HD_OK, "%s",
		m.diag.text);
	for (uint32_t b = 0; b < m.pipes.buckets.n; b++) {
		const uint64_t bytes = hd_dist_slot_bytes(m.rig.worker, b);
		most = bytes > most ? bytes : most;
		n += m.pipes.buckets.at[b].readers == 2;
		of_two = m.pipes.buckets.at[b].readers == 2 && bytes > of_two ? bytes : of_two;
	}
	assert_true(n >= least && of_two);
	const uint64_t used[] = { at_a_time * of_two, of_two, 0, of_two, 0 };
	for (uint32_t w = 0; w < 5; w++) {
		assert_int_equal(part_of(&m, &view, w, &part), HD_OK);
		CHECK(part.received_bytes == received(&m, &view, w) + 3 * most &&
			part.idle_received_bytes == 3 * most - used[w], "worker %u", w);
	}
	/* the prediction leaves it out, the bound does not */
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(part_of(&m, &view, 1, &part), HD_OK);
		part.plan = &plan;
		part.idle_received_bytes *= i;
		CHECK(hd_dist_memory(m.rig.worker, &part, &terms[i], &m.diag) == HD_OK, "%s", m.diag.text);
	}
	assert_true(terms[0].total == terms[1].total && hd_memory_taken(&terms[0]) -
		hd_memory_taken(&terms[1]) == 3 * most - of_two);
	hd_rig_close(&m.rig);
}

static void places_are_used_by_the_writer_and_by_those_that_answer(void **state)
{
	(void)state;
	places_are_used_of("model: {use: builtin:gpt, args: {layers: 8, width: 256, heads: 2, context: 8, "
		"vocab: 64}}\ndata: {kind: synthetic, count: 640}\n", 3, 2);
	places_are_used_of("model: {use: builtin:mlp, args: {input: [1, 32, 32], hidden: [1200, 200], "
		"classes: 10}}\ndata: {kind: synthetic, count: 640}\n", 1, 1);
}

static void replicated_state_is_held_whole(void **state)
{
	struct hd_dist_view part;
	struct hd_view view;
	struct made m;

	(void)state;
	with_engine(&m, 13, "parallel: {stages: 2}\n", false);
	assert_true(hd_pipes_view(&view, &m.pipes, 2, 1, 13));
	assert_int_equal(part_of(&m, &view, 1, &part), HD_OK);
	assert_true(!part.held && part.received_bytes == received(&m, &view, 1));
	hd_rig_close(&m.rig);
}

/* Of sharded state each member holds the slots of its chains; the checkpoint writer has all for a while. */
static void slots_of_sharded_state_are_held_by_some(void **state)
{
	enum { N = 3 };
	struct hd_dist_view part[N];
	struct hd_memory_terms all[N];
	struct hd_plan plan;
	struct hd_view view;
	struct made m;

	(void)state;
	with_engine(&m, 12, "comm: {sync: sharded, copies: 2}\n", false);
	const uint32_t nbuckets = hd_layout_nbuckets(&m.rig.task->layout);
	const struct hd_plan_job job = hd_worker_plan_job(m.rig.worker);
	assert_false(hd_pipes_view(&view, &m.pipes, N, 1, 12));
	CHECK(hd_pipes_plan(&plan, &m.pipes, &view, &job, m.rig.task, &m.rig.arena, &m.diag) == HD_OK, "%s",
		m.diag.text);
	for (uint32_t w = 0; w < N; w++) {
		uint64_t others = 0;
		part[w] = (struct hd_dist_view){ .plan = &plan };
		assert_int_equal(hd_pipes_part(&part[w], &m.pipes, &view, w, m.rig.worker, &m.rig.arena,
			&m.diag), HD_OK);
		CHECK(hd_dist_memory(m.rig.worker, &part[w], &all[w], &m.diag) == HD_OK, "%s", m.diag.text);
		for (uint32_t b = 0; b < nbuckets; b++)
			others += part[w].slots[b] ? 0 : hd_layout_bucket(&m.rig.task->layout, b).len;
		assert_true(part[w].rests == (w > 0));
		assert_int_equal(all[w].idle_slots, w ? others * 2 * sizeof(float) : 0);
		assert_true(all[w].slots == all[0].slots);
	}
	for (uint32_t b = 0; b < nbuckets; b++)
		assert_int_equal(part[0].slots[b] + part[1].slots[b] + part[2].slots[b], 2);
	hd_rig_close(&m.rig);
}

/* Of three members two serve: the third holds no slots, adds nothing and gets no partial sums. */
static void slots_of_servers_are_held_by_them(void **state)
{
	enum { N = 3 };
	struct hd_dist_view part;
	struct hd_plan plan;
	struct hd_view view;
	struct made m;
	uint64_t served = 0, even = 0;

	(void)state;
	with_engine(&m, 12, "comm: {sync: parameter-server}\n", false);
	const uint32_t nbuckets = hd_layout_nbuckets(&m.rig.task->layout);
	const struct hd_plan_job job = hd_worker_plan_job(m.rig.worker);
	assert_false(hd_pipes_view(&view, &m.pipes, N, 1, 12));
	CHECK(hd_pipes_plan(&plan, &m.pipes, &view, &job, m.rig.task, &m.rig.arena, &m.diag) == HD_OK, "%s",
		m.diag.text);
	for (uint32_t c = 0; c < plan.nchunks; c++)
		CHECK(plan.worker[plan.owner[c]] < 2, "chunk %u", c);
	for (uint32_t w = 0; w < N; w++) {
		uint64_t bytes;
		part = (struct hd_dist_view){ .plan = &plan };
		assert_int_equal(hd_pipes_part(&part, &m.pipes, &view, w, m.rig.worker, &m.rig.arena,
			&m.diag), HD_OK);
		for (uint32_t b = 0; b < nbuckets; b++)
			CHECK(part.slots[b] == (w < 2), "bucket %u at worker %u", b, w);
		assert_int_equal(hd_view_received(&view, w, 12, &m.rig.task->layout, NULL, 2, 2, &bytes),
			HD_OK);
		assert_true(w < 2 || bytes == 0);
		served += bytes;
		even += received(&m, &view, w);
	}
	assert_true(served == even && even > 0);
	hd_rig_close(&m.rig);
}

static void a_part_without_memory_is_refused(void **state)
{
	struct hd_plan plan = { .nvns = 13 };
	struct hd_view view;
	struct made m;
	enum hd_err err;

	(void)state;
	with_engine(&m, 13, "parallel: {stages: 2}\ncomm: {sync: stages}\n", true);
	assert_true(hd_pipes_view(&view, &m.pipes, 2, 1, 13));
	struct hd_dist_view part = { .plan = &plan };
	EACH_PIECE_REFUSED(err, hd_pipes_part(&part, &m.pipes, &view, 1, m.rig.worker, &m.rig.arena, NULL));
	uint32_t nrefused = 0;
	for (uint64_t n = 1; n < 18; n++) {
		hd_alloc_arm(n);
		err = hd_pipes_part(&part, &m.pipes, &view, 1, m.rig.worker, &m.rig.arena, NULL);
		hd_alloc_arm(0);
		nrefused += err == HD_E_NOMEM;
		CHECK(err == HD_OK || (err == HD_E_NOMEM && !part.held), "request %u: %d", (unsigned)n,
			(int)err);
	}
	assert_int_equal(nrefused, 15);                 /* five of each table of holders */
	hd_rig_close(&m.rig);
}

/* ---- the run's job ---- */

static void a_width_is_settled_for_stages_alone(void **state)
{
	struct hd_arena none;
	struct made m;

	(void)state;
	hd_arena_init(&none, 1);
	begin(&m, 13, NULL);
	assert_int_equal(hd_pipes_settle(m.rig.job, 1, 1, &none, NULL), HD_OK);
	assert_true(m.rig.job->value[HD_JOB_PAR_WIDTH].is_auto);
	hd_rig_close(&m.rig);
	begin(&m, 13, "parallel: {stages: 2}\n");
	assert_int_equal(hd_pipes_settle(m.rig.job, 2, 1, &none, &m.diag), HD_E_NOMEM);
	CHECK(strstr(m.diag.text, "a number of the job"), "%s", m.diag.text);
	assert_true(m.rig.job->value[HD_JOB_PAR_WIDTH].is_auto);
	assert_int_equal(hd_pipes_settle(m.rig.job, 2, 1, &m.rig.arena, NULL), HD_OK);
	assert_string_equal(m.rig.job->value[HD_JOB_PAR_WIDTH].text, "2");
	hd_rig_close(&m.rig);
	hd_arena_finish(&none);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_are_no_more_pipelines_than_ranks_and_virtual_nodes),
		cmocka_unit_test(tensors_in_several_buckets_are_known_where_they_matter),
		cmocka_unit_test(what_makes_no_pipelines_is_refused_and_leaves_none),
		cmocka_unit_test(steps_of_delayed_updates_overlap_over_workers),
		cmocka_unit_test(cuts_of_steps_that_are_drained_stay),
		cmocka_unit_test(a_run_begins_in_the_shape_that_its_devices_make),
		cmocka_unit_test(a_view_without_shape_is_planned_as_data),
		cmocka_unit_test(a_plan_of_stages_says_which_view_it_is_of),
		cmocka_unit_test(each_request_for_memory_is_looked_at),
		cmocka_unit_test(a_member_holds_the_buckets_that_its_stages_read),
		cmocka_unit_test(places_are_used_by_the_writer_and_by_those_that_answer),
		cmocka_unit_test(replicated_state_is_held_whole),
		cmocka_unit_test(slots_of_sharded_state_are_held_by_some),
		cmocka_unit_test(slots_of_servers_are_held_by_them),
		cmocka_unit_test(a_part_without_memory_is_refused),
		cmocka_unit_test(a_width_is_settled_for_stages_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
