#include "engine/values.h"

#include "sys/failpoint.h"
#include "graph/op.h"
#include "engine/testing_stages.h"

/* The marks of a few steps, under any plan: equal to those of one device with the whole model. */

static const char asks[] = "trace: {values: 1}\noptim: {kind: adamw, clip: 0.5}\n";
static const char sharded[] =
	"model: {use: builtin:gpt, shards: 4, "
	"args: {layers: 1, width: 16, heads: 4, context: 8, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";

enum { STEPS = 3 };

struct marks { struct hd_values of[STEPS]; };

/* Copies of a step's marks: of the next one they are others. */
static struct hd_values kept(const struct hd_values *v, struct hd_arena *arena)
{
	struct hd_values copy = *v;

	copy.made = hd_arena_take(arena, (size_t)v->nvns * v->nnodes, sizeof *v->made);
	copy.state = hd_arena_take(arena, v->nsegments, sizeof *v->state);
	memcpy(copy.made, v->made, (size_t)v->nvns * v->nnodes * sizeof *v->made);
	memcpy(copy.state, v->state, v->nsegments * sizeof *v->state);
	return copy;
}

static void run(struct hd_rig *rig, struct marks *marks, struct hd_arena *arena)
{
	for (int i = 0; i < STEPS; i++) {
		(void)hd_rig_step(rig);
		marks->of[i] = kept(hd_worker_values(rig->worker), arena);
	}
	hd_rig_close(rig);
}

/* The first mark whose digest differs, as n of all: made, then state; HD_NONE: none. */
static uint32_t first_other(const struct hd_values *a, const struct hd_values *b)
{
	const uint32_t n = a->nvns * a->nnodes;

	assert_int_equal(n, b->nvns * b->nnodes);
	assert_int_equal(a->nsegments, b->nsegments);
	for (uint32_t i = 0; i < n + a->nsegments; i++)
		if ((i < n ? a->made[i] : a->state[i - n]).digest !=
			(i < n ? b->made[i] : b->state[i - n]).digest)
			return i;
	return HD_NONE;
}

static void compare(const char *model, uint32_t batch, uint32_t vns, const char *more,
	const struct hd_rig_kind *kinds, size_t n)
{
	struct marks one, many;
	struct hd_arena arena;
	struct hd_rig rig;

	hd_rig_turn++;
	hd_arena_init(&arena, 0);
	hd_rig_open(&rig, model, batch, vns, more, 1);
	run(&rig, &one, &arena);
	for (size_t k = 0; k < n; k++) {
		if (!hd_rig_takes(k, n))
			continue;
		hd_rig_open_staged(&rig, model, batch, vns, more, &kinds[k]);
		run(&rig, &many, &arena);
		for (int i = 0; i < STEPS; i++) {
			const uint32_t at = first_other(&one.of[i], &many.of[i]);
			CHECK(at == HD_NONE, "%s p %u v %u d %u t %u, step %d: mark %u (vn %u, node %u)",
				kinds[k].name, kinds[k].p, kinds[k].v, kinds[k].d, kinds[k].t, i, at,
				at / one.of[i].nnodes, at % one.of[i].nnodes);
		}
	}
	hd_arena_finish(&arena);
}

/* 61 samples in steps of 26: the third has 9 rows, most virtual nodes none. */
static void plans_of_all_shapes_leave_the_same_marks(void **state)
{
	static const struct hd_rig_kind kinds[] = {
		{ "1f1b", 2, 1, 1, 0, 1 }, { "gpipe", 2, 1, 2, 0, 1 }, { "zb-h1", 3, 1, 1, 0, 1 },
		{ "interleaved", 2, 2, 1, 0, 1 }, { "gpipe", 2, 1, 1, HD_KEEPS_INPUT, 1 },
		{ "zb-v", 2, 2, 1, 0, 1 }, { "gpipe", 2, 1, 1, HD_KEEPS_AWAY, 1 },
	};

	(void)state;
	compare(hd_rig_gpt3, 16, 8, asks, kinds, sizeof kinds / sizeof *kinds);
	compare(hd_rig_gpt3, 26, 7, asks, kinds, 3);
	compare(hd_rig_lenet, 14, 7, asks, kinds, 2);
}

static void devices_of_a_rank_leave_the_same_marks(void **state)
{
	static const struct hd_rig_kind kinds[] = {
		{ "1f1b", 1, 1, 1, 0, 2 }, { "1f1b", 2, 1, 1, 0, 4 }, { "gpipe", 2, 1, 2, 0, 2 },
	};

	(void)state;
	compare(sharded, 16, 8, asks, kinds, sizeof kinds / sizeof *kinds);
}

/* Waves of several virtual nodes, their kernels that fold by themselves, slices, lockstep. */
static void devices_and_waves_leave_the_same_marks(void **state)
{
	const struct { const char *model; uint32_t vns, wave; } rows[] = {
		{ hd_rig_gpt, 7, 4 }, { hd_rig_lenet, 13, 5 }, { hd_rig_mlp, 13, 1 }, { hd_rig_bn(), 6, 3 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		struct marks one, many;
		struct hd_arena arena;
		struct hd_rig rig;
		struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 1, .nthreads = 1,
			.kernels = HD_KERNELS_PORTABLE, .wave = 1 };
		hd_arena_init(&arena, 0);
		hd_rig_open_on(&rig, rows[k].model, 26, rows[k].vns, asks, &spec);
		run(&rig, &one, &arena);
		spec.ndevices = 3;
		spec.wave = rows[k].wave;
		hd_rig_open_on(&rig, rows[k].model, 26, rows[k].vns, asks, &spec);
		run(&rig, &many, &arena);
		for (int i = 0; i < STEPS; i++)
			CHECK(first_other(&one.of[i], &many.of[i]) == HD_NONE, "model %zu, step %d: mark %u",
				k, i, first_other(&one.of[i], &many.of[i]));
		hd_arena_finish(&arena);
	}
}

/* Which node makes the n-th value of a virtual node. */
static uint32_t maker(const struct hd_graph *g, uint32_t n)
{
	uint32_t i = 0;

	for (; i < g->nnodes; i++) {
		const uint32_t made = hd_ops[g->node[i].op].class == HD_OP_VIEW ? 0 : g->node[i].nout;
		if (n <= made)
			break;
		n -= made;
	}
	return i;
}

/* Without the key nothing looks; every second step: of the first the state, too. */
static void looks_where_it_is_asked_to(void **state)
{
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, 1);
	(void)hd_rig_step(&rig);
	assert_null(hd_worker_values(rig.worker));
	hd_rig_close(&rig);
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, "trace: {values: 3}\n", 1);
	const struct hd_values *v = hd_worker_values(rig.worker);
	const uint32_t node = maker(&rig.task->train, 1);
	for (int i = 0; i < 5; i++) {
		(void)hd_rig_step(&rig);
		assert_int_equal(v->step, i);
		assert_int_equal(v->made[node].digest != 0, i % 3 == 0);
		assert_int_equal(v->state[0].digest != 0, i % 3 != 1);
	}
	hd_rig_close(&rig);
}

/* No kernel folds by itself then: equal bits all the same. */
static void bits_are_those_of_a_run_that_is_not_looked_at(void **state)
{
	struct hd_rig_said plain, looked;
	struct hd_rig rig;

	(void)state;
	for (uint32_t ndevices = 1; ndevices <= 2; ndevices++) {
		hd_rig_open(&rig, hd_rig_lenet, 26, 13, "optim: {kind: adamw, clip: 0.5}\n", ndevices);
		hd_rig_steps(&rig, &plain);
		hd_rig_close(&rig);
		hd_rig_open(&rig, hd_rig_lenet, 26, 13, asks, ndevices);
		hd_rig_steps(&rig, &looked);
		hd_rig_close(&rig);
		assert_memory_equal(&plain, &looked, sizeof plain);
	}
}

/* A mark says where it was made: work of shadows, which makes the same values elsewhere, leaves none. */
static void shadows_leave_no_marks(void **state)
{
	static const struct hd_rig_kind kind = { "1f1b", 3, 1, 1, 0, 1 };
	struct marks bare, with;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_arena_init(&arena, 0);
	hd_rig_open_staged(&rig, hd_rig_gpt3, 16, 8, asks, &kind);
	run(&rig, &bare, &arena);
	hd_rig_open(&rig, hd_rig_gpt3, 16, 8, asks, 3);
	CHECK(hd_rig_staged(rig.worker, rig.task, &kind, &rig.arena, &rig.plan, &diag) == HD_OK &&
		hd_rig_shadowed(&rig.plan, HD_REDUNDANCY_FULL, &rig.arena, &diag) == HD_OK &&
		hd_worker_adopt(rig.worker, &rig.plan, &diag) == HD_OK, "%s", diag.text);
	run(&rig, &with, &arena);
	for (int i = 0; i < STEPS; i++)
		assert_memory_equal(bare.of[i].made, with.of[i].made,
			(size_t)bare.of[i].nvns * bare.of[i].nnodes * sizeof *bare.of[i].made);
	hd_arena_finish(&arena);
}

static void open_sliced(struct hd_rig *rig, uint32_t ndevices)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };

	hd_rig_begin(rig, hd_rig_mlp, 26, 3, asks);
	rig->job->value[HD_JOB_SLICES].i = 2;
	hd_rig_go(rig, &spec);
}

static void slices_leave_one_mark_on_any_devices(void **state)
{
	struct marks one, many;
	struct hd_arena arena;
	struct hd_rig rig;

	(void)state;
	hd_arena_init(&arena, 0);
	open_sliced(&rig, 1);
	run(&rig, &one, &arena);
	open_sliced(&rig, 3);
	run(&rig, &many, &arena);
	for (int i = 0; i < STEPS; i++)
		assert_int_equal(first_other(&one.of[i], &many.of[i]), HD_NONE);
	hd_arena_finish(&arena);
}

#ifdef HD_FAILPOINTS
static void arm(const char *spec)
{
	struct hd_diag diag = { "" };

	CHECK(hd_failpoint_arm(spec, 1, &diag) == HD_OK, "%s", diag.text);
}

/* One bit of one value of one virtual node, in a plan of two stages: it and nothing before it differs. */
static void a_wrong_kernel_is_found_at_its_place(void **state)
{
	static const struct hd_rig_kind kind = { "1f1b", 2, 1, 1, 0, 1 };
	static const uint32_t vns[] = { 0, 3, 7 }, times[] = { 1, 9, 22 };

	(void)state;
	for (size_t k = 0; k < sizeof vns / sizeof *vns; k++) {
		struct marks one, other;
		struct hd_arena arena;
		struct hd_rig rig;
		char spec[64];
		hd_arena_init(&arena, 0);
		hd_rig_open(&rig, hd_rig_gpt3, 16, 8, asks, 1);
		run(&rig, &one, &arena);
		snprintf(spec, sizeof spec, "value.made:flip#%u@%u", vns[k], times[k]);
		hd_rig_open_staged(&rig, hd_rig_gpt3, 16, 8, asks, &kind);
		const uint32_t node = maker(&rig.task->train, times[k]);
		arm(spec);
		run(&rig, &other, &arena);
		arm("");
		const struct hd_values *a = &one.of[0], *b = &other.of[0];
		const uint32_t at = first_other(a, b);
		CHECK(at == vns[k] * a->nnodes + node, "%s: mark %u, virtual node %u, node %u for %u", spec,
			at, at / a->nnodes, at % a->nnodes, node);
		for (uint32_t i = 0; i < a->nvns * a->nnodes; i++)
			CHECK(i / a->nnodes == vns[k] || a->made[i].digest == b->made[i].digest,
				"%s: also mark %u", spec, i);
		hd_arena_finish(&arena);
	}
}

/* How many values a virtual node has, of forward nodes alone or of all. */
static uint32_t values_of(const struct hd_graph *g, bool forward)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < (forward ? g->nforward : g->nnodes); i++)
		n += hd_ops[g->node[i].op].class == HD_OP_VIEW ? 0 : g->node[i].nout;
	return n;
}

/* A bit that flips only where a node runs for the second time: in its second slice, or in a recomputation. */
static void a_second_run_of_a_node_counts(void **state)
{
	static const struct hd_rig_kind again = { "gpipe", 1, 1, 1, HD_KEEPS_INPUT, 1 };

	(void)state;
	for (int sliced = 0; sliced < 2; sliced++) {
		struct marks one, other;
		struct hd_arena arena;
		struct hd_rig rig;
		char spec[64];
		hd_arena_init(&arena, 0);
		for (int flips = 0; flips < 2; flips++) {
			if (sliced)
				open_sliced(&rig, 1);
			else
				hd_rig_open_staged(&rig, hd_rig_gpt3, 16, 8, asks, &again);
			const uint32_t node = maker(&rig.task->train, 1);
			snprintf(spec, sizeof spec, "value.made:flip#1@%u",
				values_of(&rig.task->train, !sliced) + 1);
			if (flips)
				arm(spec);
			run(&rig, flips ? &other : &one, &arena);
			arm("");
			if (!flips)
				continue;
			const uint32_t at = first_other(&one.of[0], &other.of[0]);
			CHECK(at == one.of[0].nnodes + node, "%s: mark %u for node %u of virtual node 1",
				spec, at, node);
		}
		hd_arena_finish(&arena);
	}
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_of_all_shapes_leave_the_same_marks),
		cmocka_unit_test(devices_of_a_rank_leave_the_same_marks),
		cmocka_unit_test(devices_and_waves_leave_the_same_marks),
		cmocka_unit_test(looks_where_it_is_asked_to),
		cmocka_unit_test(shadows_leave_no_marks),
		cmocka_unit_test(slices_leave_one_mark_on_any_devices),
		cmocka_unit_test(bits_are_those_of_a_run_that_is_not_looked_at),
#ifdef HD_FAILPOINTS
		cmocka_unit_test(a_wrong_kernel_is_found_at_its_place),
		cmocka_unit_test(a_second_run_of_a_node_counts),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
