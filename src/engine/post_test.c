#include "engine/post.h"

#include "pipeline/listed.h"
#include "engine/testing_net.h"
#include "engine/testing_stages.h"

/* A pipeline whose stages are of several workers, in one process: digests and losses are those of one device,
 * bit for bit. */

/* ---- set-up ---- */

static void open_net(struct net *net, const char *model, uint32_t batch, uint32_t vns, const char *more,
	const struct hd_rig_kind *kind, uint32_t each)
{
	struct hd_diag diag = { "" };

	memset(net, 0, sizeof *net);
	hd_rig_open(&net->one, model, batch, vns, more, 1);
	net->nbuckets = hd_layout_nbuckets(&net->one.task->layout);
	CHECK(hd_rig_staged(net->one.worker, net->one.task, kind, &net->one.arena, &net->plan, &diag) ==
		HD_OK,
		"%s: %s", kind->name, diag.text);
	add_workers(net, net->plan.nranks, each, kind->name);
}

/* ---- what is promised ---- */

static const struct hd_rig_kind narrow[] = {
	{ "gpipe", 2, 1, 1, false, 1 }, { "gpipe", 4, 1, 1, true, 1 }, { "1f1b", 2, 1, 1, false, 1 },
	{ "1f1b", 3, 1, 1, true, 1 }, { "1f1b", 2, 1, 2, false, 1 }, { "interleaved", 2, 2, 1, false, 1 },
	{ "interleaved", 2, 2, 1, true, 1 }, { "zb-h1", 3, 1, 1, false, 1 }, { "zb-h2", 2, 1, 2, false, 1 },
	{ "zb-v", 2, 2, 1, false, 1 }, { "v-half", 2, 2, 1, false, 1 }, { "dualpipev", 2, 2, 1, false, 1 },
	{ "1f1b", 3, 1, 1, HD_KEEPS_AWAY, 1 }, { "zb-v", 2, 2, 1, HD_KEEPS_AWAY, 1 },
};
enum { NKINDS = sizeof narrow / sizeof *narrow };

/* Ranks of several devices, of one stage and of several. */
#define SHARDED_GPT \
	"model: {use: builtin:gpt, shards: 4, sequence_shards: true, " \
	"args: {layers: 1, width: 16, heads: 4, context: 8, dropout: 0.1}}\n" \
	"data: {kind: synthetic, count: 61}\n"
static const struct hd_rig_kind wide[] = {
	{ "1f1b", 2, 1, 1, false, 2 }, { "1f1b", 1, 1, 2, false, 2 }, { "zb-v", 2, 2, 1, false, 2 },
	{ "1f1b", 2, 1, 2, false, 2 }, { "gpipe", 2, 1, 1, true, 4 },
};
enum { NWIDE = sizeof wide / sizeof *wide };

static void compare_kinds(const char *model, uint32_t batch, uint32_t vns, const char *more,
	const struct hd_rig_kind *kinds, size_t n, uint32_t fences)
{
	struct net *net = malloc(sizeof *net);
	uint32_t stale = 0, taken = 0;

	assert_non_null(net);
	hd_rig_turn++;
	for (size_t k = 0; k < n; k++) {
		if (!hd_rig_takes(k, n))
			continue;
		taken++;
		for (uint32_t each = 1; each < kinds[k].p * kinds[k].d; each++) {
			char what[80];
			snprintf(what, sizeof what, "%s p %u v %u d %u t %u%s, %u ranks a worker",
				kinds[k].name, kinds[k].p, kinds[k].v, kinds[k].d, kinds[k].t,
				hd_rig_keeps[kinds[k].keeps], each);
			open_net(net, model, batch, vns, more, &kinds[k], each);
			for (int i = 0; i < STEPS; i++) {
				net->fence_after = fences ? 1 + draw(fences) : 0;
				step(net, what);
			}
			stale += net->stale;
			close_net(net);
		}
	}
	assert_true(!fences || stale > taken);
	free(net);
}

static void compare(const char *model, uint32_t batch, uint32_t vns, const char *more, size_t n,
	uint32_t fences)
{
	compare_kinds(model, batch, vns, more, narrow, n, fences);
}

static void stages_of_several_workers_have_the_bits_of_one_device(void **state)
{
	(void)state;
	seed = 1;
	compare(hd_rig_gpt3, 16, 8, "optim: {kind: adamw, clip: 0.5}\n", NKINDS, 0);
}

/* 61 samples in batches of 26: the third step has 9 rows, most virtual nodes have none. */
static void ragged_and_empty_virtual_nodes(void **state)
{
	(void)state;
	seed = 2;
	compare(hd_rig_lenet, 26, 13, NULL, 6, 0);
}

/* Losses are said by the last stage, statistics by the stage that has the norm. */
static void each_stage_says_its_part_of_a_leaf(void **state)
{
	(void)state;
	seed = 3;
	compare(hd_rig_bn(), 16, 8, NULL, 4, 0);
}

static void ranks_of_several_devices_have_the_bits_of_one(void **state)
{
	(void)state;
	seed = 7;
	compare_kinds(SHARDED_GPT, 16, 8, "optim: {kind: adamw, clip: 0.5}\n", wide, NWIDE, 0);
	compare_kinds(SHARDED_GPT, 26, 13, NULL, wide, 3, 20);
}

/* Its devices are as many as those of the plan's ranks, which are another's. */
static void a_worker_without_a_rank_takes_part_in_the_end_of_a_step(void **state)
{
	struct net *net = malloc(sizeof *net);

	(void)state;
	assert_non_null(net);
	for (size_t k = 0; k < 2; k++) {
		seed = 8;
		open_net(net, SHARDED_GPT, 16, 8, NULL, &wide[k], 2);
		add_worker(net, 4, wide[k].name);
		for (int i = 0; i < STEPS; i++)
			step(net, wide[k].name);
		close_net(net);
	}
	free(net);
}

/* By hand: stages 0 and 2 on the first rank, one virtual node after the other. */
static void make_by_hand(struct hd_schedule *s, uint32_t nvns, struct hd_arena *arena)
{
	static const struct { uint8_t op, stage, rank; } order[] = { { HD_INS_F, 0, 0 }, { HD_INS_F, 1, 1 },
		{ HD_INS_F, 2, 0 }, { HD_INS_B, 2, 0 }, { HD_INS_B, 1, 1 }, { HD_INS_I, 0, 0 },
		{ HD_INS_W, 0, 0 } };

	*s = (struct hd_schedule){ .heading = "", .list = hd_arena_take(arena, 2, sizeof *s->list),
		.nranks = 2 };
	for (uint32_t r = 0; r < 2; r++)
		s->list[r].at = hd_arena_take(arena, nvns * 7, sizeof *s->list[r].at);
	for (uint32_t v = 0; v < nvns; v++)
		for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
			struct hd_ilist *l = &s->list[order[i].rank];
			l->at[l->len++] = (struct hd_ins){ .op = order[i].op, .stage = order[i].stage,
				.vn = v };
		}
	assert_int_equal(hd_schedule_infer(s, arena, NULL), HD_OK);
}

static void plan_by_hand(struct net *net)
{
	const struct hd_plan_job job = hd_worker_plan_job(net->one.worker);
	struct hd_schedule pipeline[2];
	struct hd_diag diag = { "" };
	uint32_t first[3];

	make_by_hand(&pipeline[0], job.nvns - job.nvns / 2, &net->one.arena);
	make_by_hand(&pipeline[1], job.nvns / 2, &net->one.arena);
	assert_int_equal(hd_graph_stages_balance(first, 3, &net->one.task->train, net->one.task->job->per_vn,
		&net->one.arena, NULL), HD_OK);
	CHECK(hd_plan_staged(&net->plan, &job, pipeline, 2, first, HD_KEEPS_ALL, &net->one.arena, &diag) ==
		HD_OK, "%s", diag.text);
}

/* The pipelines of a plan file on fewer of them (pipeline/listed.h), as after a loss; fenced anywhere. */
static void pipelines_of_a_file_on_fewer_have_the_bits_of_one_device(void **state)
{
	static const struct { struct hd_rig_kind kind; uint32_t d; } row[] = {
		{ { "zb-v", 2, 2, 2, false, 1 }, 1 }, { { "1f1b", 2, 1, 3, true, 1 }, 2 },
		{ { "dualpipev", 2, 2, 2, HD_KEEPS_AWAY, 1 }, 1 }, { { "by hand", 2, 2, 2, false, 1 }, 2 },
		{ { "by hand", 2, 2, 2, false, 1 }, 1 } };
	struct net *net = malloc(sizeof *net);

	(void)state;
	assert_non_null(net);
	seed = 11;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_rig_kind *k = &row[i].kind;
		uint32_t share[3];
		struct hd_listed listed;
		struct hd_diag diag = { "" };
		memset(net, 0, sizeof *net);
		hd_rig_open(&net->one, hd_rig_gpt3, 26, 13, "optim: {kind: adamw, clip: 0.5}\n", 1);
		net->nbuckets = hd_layout_nbuckets(&net->one.task->layout);
		if (!strcmp(k->name, "by hand"))
			plan_by_hand(net);
		else
			CHECK(hd_rig_staged(net->one.worker, net->one.task, k, &net->one.arena, &net->plan,
				&diag) == HD_OK, "%s: %s", k->name, diag.text);
		const struct hd_plan_job job = hd_worker_plan_job(net->one.worker);
		CHECK(hd_listed_of(&listed, &net->plan, &net->one.arena, &diag) == HD_OK, "%s: %s", k->name,
			diag.text);
		for (uint32_t n = 0; n < row[i].d; n++)
			share[n] = 13 / row[i].d + (n < 13 % row[i].d);
		CHECK(hd_listed_plan(&net->plan, &listed, &job, share, row[i].d, &net->one.arena, &diag) ==
			HD_OK, "%s: %s", k->name, diag.text);
		assert_int_equal(net->plan.nranks, 2 * row[i].d);
		add_workers(net, net->plan.nranks, 1, k->name);
		for (int n = 0; n < STEPS; n++) {
			net->fence_after = n ? 1 + draw(20) : 0;
			step(net, k->name);
		}
		close_net(net);
	}
	free(net);
}

/* Anywhere in a step: whoever waits for mail ends, the state is that of the beginning, and what was on its
 * way does no harm. */
static void a_fenced_step_ends_and_is_run_again(void **state)
{
	(void)state;
	seed = 4;
	compare(hd_rig_mlp, 26, 13, NULL, NKINDS, 20);
}

/* A fence that comes between two steps holds for those that begin later. */
static void a_fence_before_the_step_counts(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct hd_diag diag = { "" };

	(void)state;
	seed = 5;
	open_net(net, hd_rig_mlp, 16, 8, NULL, &narrow[2], 1);
	next_epoch(net);
	for (uint32_t m = 0; m < net->n; m++) {
		hd_dist_fence(net->at[m].worker, net->epoch + 1);
		hd_dist_fence(net->at[m].worker, net->epoch);     /* an older one takes nothing back */
	}
	begin(net);
	for (uint32_t m = 0; m < net->n; m++) {
		assert_int_equal(hd_dist_compute(net->at[m].worker, &diag), HD_E_STALE);
		hd_dist_abandon(net->at[m].worker);
	}
	next_epoch(net);
	step(net, "after a fence");
	close_net(net);
	free(net);
}

/* A worker that is in a later epoch is not touched by the fence of an earlier one. */
static void a_fence_of_an_earlier_epoch_does_nothing(void **state)
{
	struct net *net = malloc(sizeof *net);

	(void)state;
	seed = 6;
	open_net(net, hd_rig_mlp, 16, 8, NULL, &narrow[2], 1);
	for (uint32_t m = 0; m < net->n; m++) {
		hd_dist_epoch(net->at[m].worker, 3);
		hd_dist_fence(net->at[m].worker, 3);
		hd_dist_fence(net->at[m].worker, 2);
	}
	step(net, "in the epoch of the fence");
	close_net(net);
	free(net);
}

/* Credits: however slow a reader is, at most HD_CREDITS buffers of a line are offered. */
static void no_more_buffers_are_offered_than_there_are_credits(void **state)
{
	struct net *net = malloc(sizeof *net);
	struct hd_dist_letter l;
	uint32_t n = 0;

	(void)state;
	open_net(net, hd_rig_mlp, 16, 8, NULL, &narrow[0], 1);
	begin(net);
	while (hd_dist_mail_next(net->at[1].worker, &l)) {
		assert_false(l.send);
		assert_int_equal(l.kind, HD_XFER_ACTIVATIONS);
		assert_int_equal(l.vn, n++);
	}
	assert_int_equal(n, HD_CREDITS);
	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_abandon(net->at[m].worker);
	struct hd_diag diag = { "" };
	assert_int_equal(hd_dist_mail_arrived(net->at[1].worker, &l, &diag), HD_E_STALE);
	step(net, "after it was given up");
	close_net(net);
	free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_of_several_workers_have_the_bits_of_one_device),
		cmocka_unit_test(ragged_and_empty_virtual_nodes),
		cmocka_unit_test(each_stage_says_its_part_of_a_leaf),
		cmocka_unit_test(ranks_of_several_devices_have_the_bits_of_one),
		cmocka_unit_test(a_worker_without_a_rank_takes_part_in_the_end_of_a_step),
		cmocka_unit_test(pipelines_of_a_file_on_fewer_have_the_bits_of_one_device),
		cmocka_unit_test(a_fenced_step_ends_and_is_run_again),
		cmocka_unit_test(a_fence_before_the_step_counts),
		cmocka_unit_test(a_fence_of_an_earlier_epoch_does_nothing),
		cmocka_unit_test(no_more_buffers_are_offered_than_there_are_credits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
