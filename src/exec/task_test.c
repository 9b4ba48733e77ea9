#include "exec/task.h"

#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "tests/check.h"

static const char graph_text[] =
	"graph tiny\n"
	"input x f32 [*,4]\n"
	"input y i32 [*]\n"
	"param w f32 [3,4] uniform 0.5\n"
	"%1 = matmul x w ta=0 tb=1\n"
	"%2,%3,%4 = softmax_xent %1 y\n"
	"%5 = sum64 %2\n"
	"%6 = count64 y\n"
	"output loss %5\n"
	"output weight %6\n"
	"output logits %1\n";

static void make(struct hd_fs *fs, const char *model, const char *seed, struct hd_hash *job, struct hd_hash *task_hash)
{
	struct hd_diag diag = { "" };
	struct hd_task *task = NULL;
	struct hd_arena arena;
	struct hd_job j;
	char yaml[512];

	hd_arena_init(&arena, 0);
	snprintf(yaml, sizeof yaml, "job: {steps: 3, seed: %s}\nmodel: {use: \"%s\"}\ndata: {kind: synthetic, count: 40}\nbatch: {global: 8}\n", seed, model);
	CHECK(hd_job_parse(&j, "job.yaml", yaml, strlen(yaml), NULL, 0, &arena, &diag, NULL) == HD_OK, "%s", diag.text);
	CHECK(hd_task_create(&task, &j, fs, &diag) == HD_OK, "%s", diag.text);
	*job = j.hash;
	*task_hash = task->job_hash;
	hd_task_destroy(task);
	hd_arena_finish(&arena);
}

static void a_job_with_a_graph_file_is_known_by_its_content(void **state)
{
	struct hd_hash job[4], task[4];
	struct hd_diag diag = { "" };
	struct hd_fs_sim sim;
	char edited[sizeof graph_text];

	(void)state;
	hd_fs_sim_init(&sim);
	memcpy(edited, graph_text, sizeof edited);
	memcpy(strstr(edited, "0.5"), "0.6", 3);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/net.graph", graph_text, sizeof graph_text - 1, &diag), HD_OK);
	make(&sim.fs, "graph:/net.graph", "1", &job[0], &task[0]);
	make(&sim.fs, "graph:/net.graph", "1", &job[1], &task[1]);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/net.graph", edited, sizeof edited - 1, &diag), HD_OK);
	make(&sim.fs, "graph:/net.graph", "1", &job[2], &task[2]);
	make(&sim.fs, "builtin:lenet", "1", &job[3], &task[3]);
	assert_true(hd_hash_same(task[0], task[1]));
	assert_true(hd_hash_same(job[0], job[2]));
	assert_false(hd_hash_same(task[0], task[2]));
	assert_true(hd_hash_same(job[3], task[3]));
	hd_fs_sim_finish(&sim);
}

/* Every slice that a run of the job meets has been announced, and they tile the virtual node. */
static void slices_tile_virtual_nodes_and_their_sizes_are_known(void **state)
{
	(void)state;
	for (uint32_t slices = 1; slices <= 4; slices++) {
		struct hd_diag diag = { "" };
		struct hd_task *task = NULL;
		struct hd_arena arena;
		struct hd_job j;
		struct hd_fs fs;
		char yaml[512];
		hd_fs_real(&fs);
		hd_arena_init(&arena, 0);
		snprintf(yaml, sizeof yaml, "job: {steps: 3}\nmodel: {use: builtin:lenet}\ndata: {kind: synthetic, count: 61}\n"
			"batch: {global: 26, virtual_nodes: 5, slices: %u}\n", slices);
		CHECK(hd_job_parse(&j, "job.yaml", yaml, strlen(yaml), NULL, 0, &arena, &diag, NULL) == HD_OK, "%s", diag.text);
		CHECK(hd_task_create(&task, &j, &fs, &diag) == HD_OK, "%s", diag.text);
		for (uint64_t step = 0; step < hd_sampler_steps(&task->sampler); step++) {
			uint64_t n = hd_sampler_rows(&task->sampler, step), next = 0, first, end;
			for (uint32_t v = 0; v < j.nvns; v++)
				for (uint32_t q = 0; q < slices; q++) {
					uint32_t known = 0;
					hd_task_slice(task, n, v, q, &first, &end);
					CHECK(first == next || first == end, "%u slices, vn %u, slice %u begins at %u", slices, v, q, (unsigned)first);
					next = end > next ? end : next;
					for (uint32_t i = 0; i < task->nrows; i++)
						known += task->rows[i] == end - first;
					CHECK(known == 1 || first == end, "%u slices: %u rows were not announced", slices, (unsigned)(end - first));
				}
			CHECK(next == n, "%u slices cover %u rows of %u", slices, (unsigned)next, (unsigned)n);
		}
		hd_task_destroy(task);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_with_a_graph_file_is_known_by_its_content),
		cmocka_unit_test(slices_tile_virtual_nodes_and_their_sizes_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
