#include <math.h>

#include "engine/testing.h"

/* Norms over the global batch: the bits of one device for any map; the bits of ghost norms where one
 * virtual node is the whole batch; memory as predicted. That they are right is torch_test.c's. */

/* 61 samples: step 2 is short, with a partial and empty virtual nodes */
enum { BATCH = 26, STEPS = 4 };

struct outcome { struct hd_hash digest[STEPS]; double loss[STEPS]; };

static void open_rig(struct hd_rig *rig, const char *bn, uint32_t vns, const uint32_t *map, uint32_t ndevices)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };
	struct hd_diag diag = { "" };
	char model[800];

	snprintf(model, sizeof model, "%s", hd_rig_bn());
	char *end = strchr(model, '}');
	memmove(end + strlen(bn), end, strlen(end) + 1);
	memcpy(end, bn, strlen(bn));
	hd_rig_open_on(rig, model, BATCH, vns, "optim: {kind: adamw, schedule: {warmup: 2}}", &spec);
	if (!map)
		return;
	struct hd_plan_job pj = hd_plan_job_whole(vns, rig->task->layout.nchunks);
	pj.lockstep = hd_worker_lockstep(rig->worker);
	CHECK(hd_plan_of_map(&rig->plan, &pj, ndevices, map, &rig->arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_worker_adopt(rig->worker, &rig->plan, &diag) == HD_OK, "%s", diag.text);
}

static struct outcome train(struct hd_rig *rig)
{
	struct outcome out;

	for (int s = 0; s < STEPS; s++) {
		struct hd_step_record r = hd_rig_step(rig);
		out.digest[s] = r.digest;
		out.loss[s] = r.loss_sum;
	}
	return out;
}

static void same(const struct outcome *a, const struct outcome *b, const char *what)
{
	for (int s = 0; s < STEPS; s++) {
		CHECK(memcmp(&a->loss[s], &b->loss[s], sizeof a->loss[s]) == 0,
			"%s: the loss of step %d differs: %.17g, %.17g", what, s,
			a->loss[s], b->loss[s]);
		CHECK(hd_hash_same(a->digest[s], b->digest[s]), "%s: the state after step %d differs", what,
			s);
	}
}

static void any_map_gives_the_bits_of_one_device(void **state)
{
	static const uint32_t vns[] = { 1, 2, 5, 13, 26 }, scattered[] = { 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1,
		2 };

	(void)state;
	for (int v = 0; v < 5; v++) {
		struct outcome one, other;
		struct hd_rig rig;
		char what[64];
		open_rig(&rig, ", bn: global", vns[v], NULL, 1);
		assert_true(hd_worker_lockstep(rig.worker));
		one = train(&rig);
		hd_rig_close(&rig);
		for (uint32_t d = 2; d <= 5; d += d - 1) {
			snprintf(what, sizeof what, "V %u, %u devices", vns[v], d);
			open_rig(&rig, ", bn: global", vns[v], NULL, d);
			other = train(&rig);
			same(&one, &other, what);
			hd_rig_close(&rig);
		}
		if (vns[v] != 13)
			continue;
		open_rig(&rig, ", bn: global", vns[v], scattered, 3);
		other = train(&rig);
		same(&one, &other, "a scattered map");
		hd_rig_close(&rig);
	}
}

static void one_virtual_node_is_the_whole_batch(void **state)
{
	struct outcome ghost, global;
	struct hd_rig rig;

	(void)state;
	open_rig(&rig, "", 1, NULL, 1);
	assert_false(hd_worker_lockstep(rig.worker));
	ghost = train(&rig);
	hd_rig_close(&rig);
	open_rig(&rig, ", bn: global", 1, NULL, 1);
	global = train(&rig);
	hd_rig_close(&rig);
	same(&ghost, &global, "V = 1");
}

/* Ghost norms depend on V, global ones on rounding alone. */
static void losses_do_not_depend_on_the_virtual_nodes(void **state)
{
	struct outcome one, many;
	struct hd_rig rig;

	(void)state;
	open_rig(&rig, ", bn: global", 1, NULL, 1);
	one = train(&rig);
	hd_rig_close(&rig);
	open_rig(&rig, ", bn: global", 13, NULL, 2);
	many = train(&rig);
	hd_rig_close(&rig);
	for (int s = 0; s < STEPS; s++)
		CHECK(fabs(one.loss[s] - many.loss[s]) <= 1e-4 * fabs(one.loss[s]), "step %d: %.9g, %.9g", s,
			one.loss[s], many.loss[s]);
	open_rig(&rig, "", 13, NULL, 2);
	many = train(&rig);
	hd_rig_close(&rig);
	assert_true(fabs(one.loss[1] - many.loss[1]) > 1e-3 * fabs(one.loss[1]));
}

static void a_step_that_failed_is_tried_again_with_the_same_bits(void **state)
{
	struct outcome want, got;
	struct hd_rig_bytes bytes;
	struct hd_rig rig;

	(void)state;
	open_rig(&rig, ", bn: global", 5, NULL, 3);
	hd_rig_copy(&rig, &bytes, &rig.arena);
	want = train(&rig);
	hd_rig_paste(&rig, &bytes, HD_NONE);
	got = train(&rig);
	same(&want, &got, "after going back");
	hd_rig_close(&rig);
}

static void memory_counts_an_arena_for_every_virtual_node(void **state)
{
	struct hd_memory_terms ghost, global;
	struct hd_rig a, b;

	(void)state;
	open_rig(&a, "", 13, NULL, 3);
	open_rig(&b, ", bn: global", 13, NULL, 3);
	hd_worker_memory(a.worker, &ghost);
	hd_worker_memory(b.worker, &global);
	uint64_t arenas = b.worker->stage->train.memory.len_bytes * 13;
	for (uint32_t r = 0, n = 0; r < 3; r++) {
		assert_int_equal(b.worker->rank[r].narenas, b.worker->rank[r].work->script.nvns_here);
		n += b.worker->rank[r].narenas;
		CHECK(r < 2 || n == 13, "%u arenas", n);
	}
	CHECK(global.arenas >= arenas, "%llu bytes of activations are counted, %llu are taken",
		(unsigned long long)global.arenas, (unsigned long long)arenas);
	assert_true(ghost.arenas < global.arenas);
	hd_rig_close(&a);
	hd_rig_close(&b);
}

static void slices_are_refused(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_task *task = NULL;
	struct hd_arena arena;
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	hd_arena_init(&arena, 0);
	struct hd_job *job = hd_rig_job(hd_rig_bn(), BATCH, 2, NULL, &arena);
	job->value[HD_JOB_BN].i = HD_BN_GLOBAL;
	job->value[HD_JOB_SLICES].i = 2;
	assert_int_equal(hd_task_create(&task, job, &fs, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "batch.slices"), "%s", diag.text);
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_map_gives_the_bits_of_one_device),
		cmocka_unit_test(one_virtual_node_is_the_whole_batch),
		cmocka_unit_test(losses_do_not_depend_on_the_virtual_nodes),
		cmocka_unit_test(a_step_that_failed_is_tried_again_with_the_same_bits),
		cmocka_unit_test(memory_counts_an_arena_for_every_virtual_node),
		cmocka_unit_test(slices_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
