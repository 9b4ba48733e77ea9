#include "engine/overlap.h"

#include <math.h>

#include "sys/failpoint.h"
#include "engine/testing_faulty.h"
#include "engine/testing_stages.h"

/* Steps that overlap give the bits of one device, whatever comes between two of them. */

enum { STEPS = 6 };

static const char gpt[] =
	"model: {use: builtin:gpt, args: {layers: 4, width: 16, heads: 2, context: 8, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";

static const char llama[] =
	"model: {use: builtin:llama, args: {layers: 4, width: 16, heads: 2, context: 8}}\n"
	"data: {kind: synthetic, count: 61}\n";

static const char frozen[] =
	"model: {use: builtin:gpt, freeze: [wpe.weight], "
	"args: {layers: 4, width: 16, heads: 2, context: 8}}\n"
	"data: {kind: synthetic, count: 61}\n";

struct stepped { struct hd_hash digest[STEPS]; double gnorm[STEPS], loss[STEPS]; };

static void run_from(struct hd_rig *rig, struct stepped *s, int from, int to)
{
	for (int t = from; t < to; t++) {
		struct hd_step_record r = hd_rig_step(rig);
		s->digest[t] = r.digest;
		s->gnorm[t] = r.gnorm;
		s->loss[t] = r.loss_sum;
	}
}

static void on_one(const char *model, uint32_t batch, uint32_t vns, const char *more, struct stepped *s)
{
	struct hd_rig rig;

	hd_rig_open(&rig, model, batch, vns, more, 1);
	run_from(&rig, s, 0, STEPS);
	hd_rig_close(&rig);
}

static void plan_of(struct hd_rig *rig, const struct hd_rig_kind *k)
{
	struct hd_diag diag = { "" };

	CHECK(hd_rig_staged(rig->worker, rig->task, k, &rig->arena, &rig->plan, &diag) == HD_OK, "%s",
		diag.text);
}

static void adopt_keeping(struct hd_rig *rig, uint32_t p, enum hd_stage_keeps keeps)
{
	const struct hd_rig_kind k = { "1f1b", p, 1, 1, keeps, 1 };
	struct hd_diag diag = { "" };

	plan_of(rig, &k);
	rig->plan.overlap = true;
	CHECK(hd_worker_adopt(rig->worker, &rig->plan, &diag) == HD_OK, "%s", diag.text);
	const struct hd_overlap *o = hd_worker_work(rig->worker)->overlap;
	assert_non_null(o);
	assert_true(!o->eager == !rig->task->delays.early);
}

static void adopt_overlap(struct hd_rig *rig, uint32_t p) { adopt_keeping(rig, p, HD_KEEPS_ALL); }

static void open_overlap(struct hd_rig *rig, const char *model, uint32_t batch, uint32_t vns,
	const char *more, uint32_t p)
{
	hd_rig_open(rig, model, batch, vns, more, p);
	adopt_overlap(rig, p);
}

static const struct { const char *model, *more; uint32_t batch, vns; } cases[] = {
	{ gpt,          "optim: {kind: adamw, clip: 0.5, update: 2bw}\n", 16, 8 },
	{ gpt,          "optim: {kind: lamb, update: 2bw}\n", 26, 13 },
	{ gpt,          "optim: {kind: lion, update: vsync, cuts: auto:3}\n", 26, 7 },
	{ hd_rig_mlp,   "optim: {kind: momentum, lr: 0.05, update: 2bw}\n", 26, 9 },
	{ hd_rig_lenet, "optim: {kind: sgd, lr: 0.05, update: 2bw}\n", 26, 6 },
	/* the last stage updates before the norm (eager.h) */
	{ llama,        "optim: {kind: adamw, clip: 0, update: stash, cuts: auto:4, no_decay: norms-and-biases}\n", 16, 8 },
	{ llama,        "optim: {kind: lion, clip: 0, update: stash, cuts: auto:4, ema: {decay: 0.9}}\n", 26, 13 },
	{ hd_rig_mlp,   "optim: {kind: momentum, lr: 0.05, clip: 0, update: stash, cuts: auto:4}\n", 26, 9 },
	{ hd_rig_lenet, "optim: {kind: sgd, lr: 0.05, clip: 0, update: stash, cuts: auto:4}\n", 26, 6 },
	/* two steps late and more; the last: two, one and none */
	{ hd_rig_mlp,   "optim: {kind: adamw, update: vsync, cuts: auto:6}\n", 26, 4 },
	{ llama,        "optim: {kind: momentum, lr: 0.05, update: vsync, cuts: auto:12}\n", 16, 4 },
	{ llama,        "optim: {kind: adamw, clip: 0, update: stash, cuts: auto:7}\n", 16, 4 },
};
enum { NCASES = sizeof cases / sizeof *cases, LATE = 0, LATE_MLP = 3, EARLY = 5, EARLY_MLP = 7,
	LATER = 9, MIXED = 11 };
static const int shapes[] = { LATE, EARLY, MIXED }, both_mlp[] = { LATE_MLP, EARLY_MLP };

/* 61 samples in batches of 26: of a step with 9 rows most virtual nodes have none, and the one before begins
 * it. */
static void they_give_the_bits_of_one_device(void **state)
{
	(void)state;
	for (size_t c = 0; c < NCASES; c++) {
		struct stepped one, many;
		on_one(cases[c].model, cases[c].batch, cases[c].vns, cases[c].more, &one);
		for (uint32_t p = 2; p <= 4 && 2 * (p - 1) <= cases[c].vns; p++) {
			struct hd_rig rig;
			open_overlap(&rig, cases[c].model, cases[c].batch, cases[c].vns, cases[c].more, p);
			assert_true(rig.task->delays.early == ((c >= EARLY && c < LATER) || c == MIXED));
			assert_int_equal(rig.task->delays.most, c == 10 ? 3 : c < LATER ? 1 : 2);
			run_from(&rig, &many, 0, STEPS);
			assert_true(hd_overlap_ahead(rig.worker));
			CHECK(!memcmp(&one, &many, sizeof one), "case %zu on %u stages", c, p);
			hd_rig_close(&rig);
		}
	}
}

/* A stage that keeps its input alone needs one arena a pipe, whatever the window. */
static void stages_that_compute_again_overlap_too(void **state)
{
	(void)state;
	for (size_t c = 0; c < NCASES; c += 5) {
		struct stepped one, many;
		struct hd_rig rig;
		on_one(cases[c].model, cases[c].batch, cases[c].vns, cases[c].more, &one);
		hd_rig_open(&rig, cases[c].model, cases[c].batch, cases[c].vns, cases[c].more, 3);
		adopt_keeping(&rig, 3, HD_KEEPS_INPUT);
		const struct hd_overlap *o = hd_worker_work(rig.worker)->overlap;
		for (int i = 0; i < 2; i++)
			for (uint32_t s = 0; s < o->pipe[i]->nseats; s++)
				assert_int_equal(o->pipe[i]->seat[s].arena.cap, 1);
		run_from(&rig, &many, 0, STEPS);
		CHECK(!memcmp(&one, &many, sizeof one), "case %zu", c);
		hd_rig_close(&rig);
	}
}

/* Of a plan for fewer devices than there are: the others only end the step, and update. */
static void devices_without_a_rank_stand_by(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		const char *more = cases[shapes[i]].more, *model = cases[shapes[i]].model;
		const uint32_t vns = cases[shapes[i]].vns;
		struct stepped one, many;
		struct hd_rig rig;
		on_one(model, 16, vns, more, &one);
		hd_rig_open(&rig, model, 16, vns, more, 5);
		adopt_overlap(&rig, 3);
		const struct hd_overlap *o = hd_worker_work(rig.worker)->overlap;
		for (int k = 0; k < 4; k++)
			for (uint32_t d = 3; d < 5; d++)
				for (uint32_t at = 0; at < o->list[k / 2][k % 2][d].len; at++)
					assert_true(o->list[k / 2][k % 2][d].at[at].op == HD_INS_NORM ||
						o->list[k / 2][k % 2][d].at[at].op == HD_INS_STEP);
		run_from(&rig, &many, 0, STEPS);
		assert_memory_equal(&one, &many, sizeof one);
		hd_rig_close(&rig);
	}
}

/* After any step the state is whole: a worker of another shape goes on from it, and the same one again. */
static void the_state_between_two_steps_is_whole(void **state)
{
	struct stepped one, many;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	for (int i = 0; i < 3; i++) {
		const char *more = cases[shapes[i]].more, *model = cases[shapes[i]].model;
		const uint32_t vns = cases[shapes[i]].vns;
		on_one(model, 16, vns, more, &one);
		for (int at = 1; at < STEPS; at++) {
			struct hd_rig first, second;
			struct hd_rig_bytes bytes;
			open_overlap(&first, model, 16, vns, more, 3);
			run_from(&first, &many, 0, at);
			hd_rig_copy(&first, &bytes, &arena);
			if (at % 2)
				open_overlap(&second, model, 16, vns, more, 2);
			else
				hd_rig_open(&second, model, 16, vns, more, 2);
			hd_rig_paste(&second, &bytes, HD_NONE);
			run_from(&second, &many, at, STEPS);
			assert_memory_equal(&one, &many, sizeof one);
			/* and the first one back to it, with what it had begun of another step */
			run_from(&first, &many, at, STEPS);
			hd_rig_paste(&first, &bytes, HD_NONE);
			run_from(&first, &many, at, STEPS);
			assert_memory_equal(&one, &many, sizeof one);
			hd_rig_close(&first);
			hd_rig_close(&second);
		}
	}
	hd_arena_finish(&arena);
}

static void plans_change_between_steps_that_overlap(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		const char *more = cases[shapes[i]].more, *model = cases[shapes[i]].model;
		struct stepped one, many;
		struct hd_diag diag = { "" };
		struct hd_rig rig;
		on_one(model, 16, cases[shapes[i]].vns, more, &one);
		hd_rig_open(&rig, model, 16, cases[shapes[i]].vns, more, 3);
		const struct hd_plan whole = rig.plan;
		for (int t = 0; t < STEPS; t++) {
			if (t % 3 == 0)
				adopt_overlap(&rig, 3);
			else if (t % 3 == 2)
				CHECK(hd_worker_adopt(rig.worker, &whole, &diag) == HD_OK, "%s", diag.text);
			run_from(&rig, &many, t, t + 1);
		}
		assert_memory_equal(&one, &many, sizeof one);
		hd_rig_close(&rig);
	}
}

/* What the last stage updates before the norm is part of its update: each rank has one a step. */
static void a_rank_updates_once_a_step(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		const char *more = cases[shapes[i]].more, *model = cases[shapes[i]].model;
		struct stepped many;
		struct hd_rig rig;
		open_overlap(&rig, model, 16, cases[shapes[i]].vns, more, 3);
		run_from(&rig, &many, 0, STEPS);
		for (uint32_t d = 0; d < 3; d++)
			for (uint16_t s = 0; s < 3; s++)
				assert_int_equal(hd_worker_spent(rig.worker, d, s, HD_INS_STEP).n,
					s == d ? STEPS : 0);
		hd_rig_close(&rig);
	}
}

/* What both steps hold at once is counted before it is taken. */
static void slots_that_are_kept_are_counted(void **state)
{
	struct hd_rig rig;

	(void)state;
	open_overlap(&rig, llama, 16, 8, cases[EARLY].more, 3);
	const struct hd_overlap *o = hd_worker_work(rig.worker)->overlap;
	assert_true(o->eager && o->eager->kept && o->eager->elems);
	for (uint32_t d = 0; d < 3; d++)
		assert_int_equal(rig.worker->rank[d].need.pipe_bytes, hd_pipe_bytes(o->pipe[0], d) +
			hd_pipe_bytes(o->pipe[1], d) + (d == 2 ? 2 * o->eager->elems * sizeof(float) : 0));
	hd_rig_close(&rig);
}

static void the_memory_of_two_steps_is_predicted(void **state)
{
	const struct hd_rig_kind k = { "1f1b", 3, 1, 1, false, 1 };
	struct hd_memory_terms drained, overlap;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, gpt, 16, 8, cases[0].more, 3);
	plan_of(&rig, &k);
	CHECK(hd_worker_adopt(rig.worker, &rig.plan, &diag) == HD_OK, "%s", diag.text);
	hd_worker_memory(rig.worker, &drained);
	adopt_overlap(&rig, 3);
	hd_worker_memory(rig.worker, &overlap);
	const struct hd_overlap *o = hd_worker_work(rig.worker)->overlap;
	uint64_t bytes = 0;
	for (int i = 0; i < 2; i++)
		for (uint32_t d = 0; d < 3; d++)
			bytes += hd_pipe_bytes(o->pipe[i], d);
	assert_true(o->pipe[0]->taken && o->pipe[1]->taken && o->pipe[0]->vector[0] != o->pipe[1]->vector[0]);
	CHECK(overlap.arenas > drained.arenas && overlap.arenas > bytes, "%llu and %llu bytes",
		(unsigned long long)overlap.arenas, (unsigned long long)drained.arenas);
	assert_true(overlap.gradients >= drained.gradients);
	run_from(&rig, &(struct stepped){ 0 }, 0, 2);
	/* given back with the plan */
	struct hd_pipe *const pipe[2] = { o->pipe[0], o->pipe[1] };
	plan_of(&rig, &k);
	CHECK(hd_worker_adopt(rig.worker, &rig.plan, &diag) == HD_OK, "%s", diag.text);
	assert_false(pipe[0]->taken || pipe[1]->taken);
	hd_rig_close(&rig);
}

/* Two of each may be too many where one is not: what is refused says so, and the drained plan goes on. */
static void what_two_steps_take_is_refused_with_the_way_out(void **state)
{
	const struct hd_rig_kind k = { "1f1b", 3, 1, 1, false, 1 };
	struct hd_memory_terms drained;
	struct hd_diag diag = { "" };
	struct stepped one, many;
	struct hd_rig rig;

	(void)state;
	on_one(gpt, 16, 8, cases[LATE].more, &one);
	hd_rig_open(&rig, gpt, 16, 8, cases[LATE].more, 3);
	plan_of(&rig, &k);
	CHECK(hd_worker_adopt(rig.worker, &rig.plan, &diag) == HD_OK, "%s", diag.text);
	hd_worker_memory(rig.worker, &drained);
	rig.worker->spec.memory_limit_bytes = drained.held / 3 + 1;
	struct hd_plan overlap = rig.plan;
	overlap.overlap = true;
	assert_int_equal(hd_worker_adopt(rig.worker, &overlap, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "workers.memory gives") && strstr(diag.text, "parallel.schedule=1f1b") &&
		strstr(diag.text, "the same bits"), "%s", diag.text);
	run_from(&rig, &many, 0, STEPS);
	assert_memory_equal(&one, &many, sizeof one);
	/* another refusal has another way out */
	rig.worker->spec.memory_limit_bytes = 1;
	diag.text[0] = 0;
	assert_int_equal(hd_worker_adopt(rig.worker, &rig.plan, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "workers.memory gives") && !strstr(diag.text, "overlap"), "%s", diag.text);
	hd_rig_close(&rig);
}

/* The last step of a job begins none. */
static void the_last_step_begins_none(void **state)
{
	struct stepped one, many;
	struct hd_rig rig;

	(void)state;
	on_one(gpt, 16, 8, cases[0].more, &one);
	open_overlap(&rig, gpt, 16, 8, cases[0].more, 3);
	rig.task->nsteps = STEPS;
	run_from(&rig, &many, 0, STEPS - 1);
	assert_true(hd_overlap_ahead(rig.worker));
	run_from(&rig, &many, STEPS - 1, STEPS);
	assert_false(hd_overlap_ahead(rig.worker));
	assert_memory_equal(&one, &many, sizeof one);
	hd_rig_close(&rig);
}

/* A step that fails, anywhere, leaves the state of its beginning and is tried again. */
static void a_step_that_fails_is_tried_again(void **state)
{
	static const char *const points[] = { "step.begin", "step.seal", "step.update.before" };
	struct stepped one, many;
	struct hd_diag diag = { "" };
	struct hd_step_record record;
	char order[64];

	(void)state;
	if (!hd_failpoint_built())
		SKIP("this build has no failpoints");
	for (size_t i = 0; i < 3 * (sizeof points / sizeof *points); i++) {
		const char *more = cases[shapes[i % 3]].more, *model = cases[shapes[i % 3]].model;
		const uint32_t vns = cases[shapes[i % 3]].vns;
		struct hd_rig rig;
		on_one(model, 16, vns, more, &one);
		open_overlap(&rig, model, 16, vns, more, 3);
		for (int t = 0; t < STEPS; t++) {
			struct hd_hash before = hd_worker_digest(rig.worker);
			snprintf(order, sizeof order, "%s:err=EIO@1", points[i / 3]);
			assert_int_equal(hd_failpoint_arm(order, 1, &diag), HD_OK);
			assert_int_not_equal(hd_worker_step(rig.worker, true, &record, &diag), HD_OK);
			assert_int_equal(hd_failpoint_arm("", 1, &diag), HD_OK);
			assert_true(hd_hash_same(before, hd_worker_digest(rig.worker)));
			run_from(&rig, &many, t, t + 1);
		}
		CHECK(!memcmp(&one, &many, sizeof one), "%s", points[i / 3]);
		hd_rig_close(&rig);
	}
}

/* A sample that cannot be read, or is no number, is met ahead of its step by some ranks: the others do not
 * wait for ever. */
static void meets_a_fault(const struct stepped *one, const char *more, uint64_t at, bool number)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct stepped many;
	struct hd_rig rig;
	enum hd_err err = HD_OK;
	int t = 0;

	open_overlap(&rig, hd_rig_mlp, 26, 9, more, 3);
	spoil(&rig, 1, at, number, false);
	struct hd_hash before = hd_worker_digest(rig.worker);
	for (; t < STEPS && !err; t++) {
		before = hd_worker_digest(rig.worker);
		err = hd_worker_step(rig.worker, true, &record, &diag);
	}
	CHECK(err == (number ? HD_E_DIVERGED : HD_E_IO) || !err, "%s", diag.text);
	assert_true(!err || hd_hash_same(before, hd_worker_digest(rig.worker)));
	mend(&rig);
	if (err) {
		memcpy(&many, one, sizeof many);
		run_from(&rig, &many, t - 1, STEPS);
		CHECK(!memcmp(one, &many, sizeof many), "sample %llu", (unsigned long long)at);
	}
	hd_rig_close(&rig);
}

static void a_sample_that_cannot_be_read_ends_the_step(void **state)
{
	struct stepped one;

	(void)state;
	for (int i = 0; i < 2; i++) {
		on_one(hd_rig_mlp, 26, 9, cases[both_mlp[i]].more, &one);
		for (uint64_t at = 0; at < 40; at += 6)
			for (int number = 0; number < 2; number++)
				meets_a_fault(&one, cases[both_mlp[i]].more, at, number);
	}
}

/* Of a step that is skipped the last stage has made a version that never was: what had been begun with it is
 * done again, and all bits are those of one device. Of `2bw` nothing is. */
static void a_step_that_is_not_finite_is_taken_back(void **state)
{
	static const char *const more[] = {
		"optim: {kind: adamw, clip: 0, on_nonfinite: skip, update: stash, cuts: auto:4}\n",
		"optim: {kind: momentum, clip: 0, on_nonfinite: skip, update: stash, cuts: auto:3}\n",
		"optim: {kind: adamw, clip: 0, on_nonfinite: skip, update: stash, cuts: auto:6}\n",
		"optim: {kind: adamw, clip: 0, on_nonfinite: skip, update: 2bw}\n",
	};
	static const uint32_t vns[] = { 9, 9, 4, 9 };
	int skipped = 0, again = 0;

	(void)state;
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		for (uint64_t at = i; at < 61; at += 15) {
			struct hd_rig rig[2];
			hd_rig_open(&rig[0], hd_rig_mlp, 26, vns[i], more[i], 1);
			open_overlap(&rig[1], hd_rig_mlp, 26, vns[i], more[i], 3);
			spoil(rig, 2, at, true, false);
			for (int t = 0; t < STEPS; t++) {
				const struct hd_step_record one = hd_rig_step(&rig[0]),
					many = hd_rig_step(&rig[1]);
				assert_true(hd_hash_same(one.digest, many.digest));
				assert_int_equal(one.skipped, many.skipped);
				assert_int_equal(rig[1].worker->step->again, many.skipped && i < 3);
				skipped += many.skipped;
				again += rig[1].worker->step->again;
			}
			for (int k = 0; k < 2; k++) {
				mend(&rig[k]);
				hd_rig_close(&rig[k]);
			}
		}
	CHECK(again > 6 && skipped > again, "%d skipped, %d done again", skipped, again);
}

/* Labels that count nothing: the last stage knows it by itself, and nothing is done again. */
static void an_empty_step_updates_nothing(void **state)
{
	struct hd_rig rig[2];

	(void)state;
	hd_rig_open(&rig[0], llama, 16, 8, cases[EARLY].more, 1);
	open_overlap(&rig[1], llama, 16, 8, cases[EARLY].more, 3);
	for (int t = 0; t < STEPS; t++) {
		if (t == 2)
			spoil(rig, 2, UINT64_MAX, false, true);
		for (int k = 0; k < 2 && t == 4; k++)
			mend(&rig[k]);
		const struct hd_step_record one = hd_rig_step(&rig[0]), many = hd_rig_step(&rig[1]);
		assert_int_equal(one.empty, t == 2 || t == 3);
		assert_int_equal(many.empty, one.empty);
		assert_true(hd_hash_same(one.digest, many.digest));
		assert_true(hd_overlap_ahead(rig[1].worker) && !rig[1].worker->step->again);
	}
	for (int k = 0; k < 2; k++)
		hd_rig_close(&rig[k]);
}

/* Parameters of the job's last stage that a stage before the plan's last has. */
static void a_last_stage_that_begins_too_late_is_refused(void **state)
{
	const struct hd_rig_kind k = { "1f1b", 3, 1, 1, false, 1 };
	const char more[] = "optim: {clip: 0, update: stash, cuts: auto:2}\n";
	struct hd_diag diag = { "" };
	struct stepped one, many;
	struct hd_rig rig;

	(void)state;
	on_one(gpt, 16, 8, more, &one);
	hd_rig_open(&rig, gpt, 16, 8, more, 3);
	plan_of(&rig, &k);
	rig.plan.overlap = true;
	assert_null(hd_task_drains(rig.task, 3));
	assert_int_equal(hd_worker_adopt(rig.worker, &rig.plan, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "of the job's last stage (optim.cuts) lies in a stage before"), "%s",
		diag.text);
	rig.plan.overlap = false;
	diag.text[0] = 0;
	CHECK(hd_worker_adopt(rig.worker, &rig.plan, &diag) == HD_OK, "%s", diag.text);
	run_from(&rig, &many, 0, STEPS);
	assert_memory_equal(&one, &many, sizeof one);
	hd_rig_close(&rig);
}

static void what_cannot_overlap_is_refused(void **state)
{
	static const struct { const char *model, *more, *why; } rows[] = {
		{ gpt, "optim: {update: flush}\n", "no parameter is read late" },
		{ gpt, "optim: {update: stash, cuts: auto:2}\n", "optim.clip" },
		{ gpt, "optim: {kind: lamb, clip: 0, update: stash, cuts: auto:2}\n", "optim.kind" },
		{ gpt, "optim: {update: 2bw}\ntrace: {samples: true}\n", "trace.samples" },
		{ frozen, "optim: {update: vsync, cuts: auto:12}\n", "some are frozen" },
	};
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hd_rig_kind k = { "1f1b", 2, 1, 1, false, 1 };
		hd_rig_open(&rig, rows[i].model, 16, 8, rows[i].more, 2);
		plan_of(&rig, &k);
		rig.plan.overlap = true;
		diag.text[0] = 0;
		assert_int_equal(hd_worker_adopt(rig.worker, &rig.plan, &diag), HD_E_REFUSED);
		CHECK(strstr(diag.text, rows[i].why), "%s", diag.text);
		CHECK(strstr(hd_task_drains(rig.task, 2), rows[i].why), "row %zu", i);
		hd_rig_step(&rig);
		hd_rig_close(&rig);
	}
	/* a plan of another shape */
	const struct hd_rig_kind k = { "zb-v", 2, 2, 1, false, 1 };
	hd_rig_open(&rig, gpt, 16, 8, "optim: {update: 2bw}\n", 2);
	plan_of(&rig, &k);
	rig.plan.overlap = true;
	diag.text[0] = 0;
	assert_int_equal(hd_worker_adopt(rig.worker, &rig.plan, &diag), HD_E_BADPLAN);
	CHECK(strstr(diag.text, "leave out the line overlap"), "%s", diag.text);
	hd_rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_give_the_bits_of_one_device),
		cmocka_unit_test(stages_that_compute_again_overlap_too),
		cmocka_unit_test(devices_without_a_rank_stand_by),
		cmocka_unit_test(the_state_between_two_steps_is_whole),
		cmocka_unit_test(plans_change_between_steps_that_overlap),
		cmocka_unit_test(the_memory_of_two_steps_is_predicted),
		cmocka_unit_test(what_two_steps_take_is_refused_with_the_way_out),
		cmocka_unit_test(a_rank_updates_once_a_step),
		cmocka_unit_test(slots_that_are_kept_are_counted),
		cmocka_unit_test(the_last_step_begins_none),
		cmocka_unit_test(a_step_that_fails_is_tried_again),
		cmocka_unit_test(a_sample_that_cannot_be_read_ends_the_step),
		cmocka_unit_test(a_step_that_is_not_finite_is_taken_back),
		cmocka_unit_test(an_empty_step_updates_nothing),
		cmocka_unit_test(a_last_stage_that_begins_too_late_is_refused),
		cmocka_unit_test(what_cannot_overlap_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
