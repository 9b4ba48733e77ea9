#include "engine/task.h"

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

static void make(struct hd_fs *fs, const char *model, const char *seed, struct hd_hash *job,
	struct hd_hash *task_hash)
{
	struct hd_diag diag = { "" };
	struct hd_task *task = NULL;
	struct hd_arena arena;
	struct hd_job j;
	char yaml[512];

	hd_arena_init(&arena, 0);
	snprintf(yaml, sizeof yaml,
		"job: {steps: 3, seed: %s}\nmodel: {use: \"%s\"}\ndata: {kind: synthetic, count: "
		"40}\nbatch: {global: 8}\n", seed, model);
	CHECK(hd_job_parse(&j, "job.yaml", yaml, strlen(yaml), NULL, 0, &arena, &diag, NULL) == HD_OK, "%s",
		diag.text);
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
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/net.graph", graph_text, sizeof graph_text - 1,
		&diag), HD_OK);
	make(&sim.fs, "graph:/net.graph", "1", &job[0], &task[0]);
	make(&sim.fs, "graph:/net.graph", "1", &job[1], &task[1]);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/net.graph", edited, sizeof edited - 1, &diag),
		HD_OK);
	make(&sim.fs, "graph:/net.graph", "1", &job[2], &task[2]);
	make(&sim.fs, "builtin:lenet", "1", &job[3], &task[3]);
	assert_true(hd_hash_same(task[0], task[1]));
	assert_true(hd_hash_same(job[0], job[2]));
	assert_false(hd_hash_same(task[0], task[2]));
	assert_true(hd_hash_same(job[3], task[3]));
	hd_fs_sim_finish(&sim);
}

static enum hd_err opens(struct hd_fs *fs, const char *model, const char *data, struct hd_diag *diag)
{
	struct hd_task *task = NULL;
	struct hd_arena arena;
	struct hd_job j;
	char yaml[1024];

	*diag = (struct hd_diag){ "" };
	hd_arena_init(&arena, 0);
	snprintf(yaml, sizeof yaml,
		"job: {steps: 3}\nmodel: {%s}\ndata: {%s}\nbatch: {global: 2, virtual_nodes: 1}\n", model,
		data);
	CHECK(hd_job_parse(&j, "job.yaml", yaml, strlen(yaml), NULL, 0, &arena, diag, NULL) == HD_OK, "%s",
		diag->text);
	enum hd_err err = hd_task_create(&task, &j, fs, diag);
	hd_task_destroy(err ? NULL : task);
	hd_arena_finish(&arena);
	return err;
}

#define BERT "use: builtin:bert, args: {layers: 1, width: 4, heads: 2, context: 4, vocab: 257, pad: 256"
#define CLS BERT ", head: cls, classes: 2}"
#define MLM BERT "}"
#define INTS "use: \"graph:/ints.graph\", loss: none"
#define SEVEN "use: \"graph:/seven.graph\", loss: none"
#define LOG "use: \"graph:/net.graph\", loss: none"

/* Whatever a reader makes, a sample is copied into the graph's inputs only if both mean the same. */
static void fields_that_a_graph_would_misread_are_refused_with_both_shapes(void **state)
{
	static const struct { const char *model, *data, *says; } cases[] = {
		{ CLS, "kind: synthetic", NULL },
		{ MLM, "kind: synthetic", NULL },
		{ CLS, "kind: text, path: /t", "the model reads \"y\" as i32 [], the data have i32 [4]" },
		{ CLS, "kind: csv, path: /t.csv", NULL },
		{ MLM, "kind: csv, path: /t.csv", "the model reads \"y\" as i32 [4], the data have i32 []" },
		{ INTS, "kind: csv, path: /ints.csv", "the model reads \"x\" as i32 [2,1], the data have f32 [2,1]" },
		{ SEVEN, "kind: synthetic", NULL },
		{ SEVEN, "kind: csv, path: /four.csv", "the model gives 9 numbers" },
		{ SEVEN, "kind: text, path: /t", "the model knows 0 to 6" },
		{ LOG, "kind: synthetic", "the model reads \"y\" as i32 [3], the data have i32 []" },
	};
	static const char text[] = "some bytes of text, more than five", table[] = "text,y\nab,1\nc,0\nd,0\n";
	static const char net[] =
		"graph tiny\ninput x f32 [*,4]\ninput y i32 [*,3]\nparam w f32 [6,4] uniform 0.5\n"
		"%0 = matmul x w ta=0 tb=1\n%1 = reshape %0 d0=-1 d1=3 d2=2\n%2,%3,%4 = softmax_xent %1 "
		"y\n%5 = sum64 %2\n%6 = count64 y\n"
		"output loss %5\noutput weight %6\noutput logits %1\n";
	static const char ints[] =
		"graph ints\ninput x i32 [*,2,1]\ninput y i32 [*]\nparam w f32 [2,2] uniform 0.5\n%0 = cast "
		"x to=1\n"
		"%1 = reshape %0 d0=-1 d1=2\n%2 = matmul %1 w ta=0 tb=1\n%3,%4,%5 = softmax_xent %2 y\n%6 = "
		"sum64 %3\n%7 = count64 y\n"
		"output loss %6\noutput weight %7\noutput logits %2\n";
	/* nine numbers of tokens below seven */
	static const char seven[] =
		"graph seven\ninput x i32 [*,4]\ninput y f32 [*,9]\nparam t f32 [7,6] uniform 0.5\nparam w "
		"f32 [9,6] uniform 0.5\n"
		"%0 = embed x t\n%1 = reduce_mean %0 axes=2\n%2 = matmul %1 w ta=0 tb=1\n%3 = mse %2 y\n%4 "
		"= sum64 %3\n%5 = count64 %2\n"
		"output loss %4\noutput weight %5\noutput logits %2\n";
	static const char numbers[] = "a,b,y\n1,2,0\n3,4,1\n5,6,1\n";
	struct hd_diag diag = { "" };
	struct hd_fs_sim sim;

	(void)state;
	hd_fs_sim_init(&sim);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/ints.graph", ints, sizeof ints - 1, &diag), HD_OK);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/ints.csv", numbers, sizeof numbers - 1, &diag),
		HD_OK);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/seven.graph", seven, sizeof seven - 1, &diag),
		HD_OK);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/four.csv", "a,b,c,d,y\n6,5,4,3,0.5\n0,0,0,0,1\n", 31,
		&diag), HD_OK);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/t", text, sizeof text - 1, &diag), HD_OK);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/t.csv", table, sizeof table - 1, &diag), HD_OK);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/net.graph", net, sizeof net - 1, &diag), HD_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		enum hd_err err = opens(&sim.fs, cases[i].model, cases[i].data, &diag);
		CHECK(err == (cases[i].says ? HD_E_INPUT : HD_OK), "%zu: %s", i, diag.text);
		CHECK(!cases[i].says || strstr(diag.text, cases[i].says), "%zu: %s", i, diag.text);
	}
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
		snprintf(yaml, sizeof yaml,
			"job: {steps: 3}\nmodel: {use: builtin:lenet}\ndata: {kind: synthetic, count: 61}\n"
			"batch: {global: 26, virtual_nodes: 5, slices: %u}\n", slices);
		CHECK(hd_job_parse(&j, "job.yaml", yaml, strlen(yaml), NULL, 0, &arena, &diag, NULL) == HD_OK,
			"%s", diag.text);
		CHECK(hd_task_create(&task, &j, &fs, &diag) == HD_OK, "%s", diag.text);
		for (uint64_t step = 0; step < hd_sampler_steps(&task->sampler); step++) {
			uint64_t n = hd_sampler_rows(&task->sampler, step), next = 0, first, end;
			for (uint32_t v = 0; v < j.nvns; v++)
				for (uint32_t q = 0; q < slices; q++) {
					uint32_t known = 0;
					hd_task_slice(task, n, v, q, &first, &end);
					CHECK(first == next || first == end,
						"%u slices, vn %u, slice %u begins at %u", slices, v, q,
						(unsigned)first);
					next = end > next ? end : next;
					for (uint32_t i = 0; i < task->nrows; i++)
						known += task->rows[i] == end - first;
					CHECK(known == 1 || first == end,
						"%u slices: %u rows were not announced", slices,
						(unsigned)(end - first));
				}
			CHECK(next == n, "%u slices cover %u rows of %u", slices, (unsigned)next,
				(unsigned)n);
		}
		hd_task_destroy(task);
		hd_arena_finish(&arena);
	}
}

/* The job with as many names as its key allows; of the last one alone it is seen that all were taken. */
static struct hd_task *task_of_names(const char *yaml, struct hd_fs *fs, struct hd_arena *arena)
{
	enum { LIST = HD_JOB_MAX_NAMES * sizeof "fc1.weight," };
	static char list[LIST], text[LIST + 512];
	struct hd_job *job = hd_arena_take(arena, 1, sizeof *job);
	struct hd_diag diag = { "" };
	struct hd_task *task = NULL;
	size_t len = 0;

	for (int i = 0; i < HD_JOB_MAX_NAMES; i++)
		len += (size_t)snprintf(list + len, sizeof list - len, "fc%d.weight%s",
			i + 1 < HD_JOB_MAX_NAMES ? 1 : 2, i + 1 < HD_JOB_MAX_NAMES ? "," : "");
	const char *at = strchr(yaml, '@');
	snprintf(text, sizeof text,
		"job: {steps: 3}\ndata: {kind: synthetic, count: 61}\nbatch: {global: 8}\n%.*s%s%s",
		(int)(at - yaml), yaml, list, at + 1);
	CHECK(hd_job_parse(job, "job.yaml", text, strlen(text), NULL, 0, arena, &diag, NULL) == HD_OK, "%s",
		diag.text);
	CHECK(hd_task_create(&task, job, fs, &diag) == HD_OK, "%s", diag.text);
	return task;
}

#define MLP "model: {use: builtin:mlp, args: {hidden: [8, 4]}"
static void lists_of_names_may_be_as_long_as_their_key_allows(void **state)
{
	static const struct { const char *yaml; bool frozen, spared, adapted; } cases[] = {
		{ MLP "}\noptim: {kind: adamw, weight_decay: 0.1, decay: [@]}\n", false, false, false },
		{ MLP ", freeze: [@]}\n", true, false, false },
		{ MLP ", lora: {rank: 2, targets: [@]}}\n", true, false, true },
		{ MLP ", lora: {rank: 2, targets: [fc3.weight], train: [@]}}\n", false, false, false },
	};
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_arena arena;
		hd_arena_init(&arena, 0);
		struct hd_task *task = task_of_names(cases[i].yaml, &fs, &arena);
		const uint32_t p = hd_graph_find_param(&task->train, "fc2.weight");
		assert_int_not_equal(p, HD_NONE);
		CHECK(task->train.param[p].frozen == cases[i].frozen, "%zu", i);
		CHECK((task->rate && task->rate[p].decay == 0) == cases[i].spared, "%zu", i);
		const uint32_t adapter = hd_graph_find_param(&task->train, "fc2.weight.lora_A");
		CHECK((adapter != HD_NONE) == cases[i].adapted, "%zu", i);
		hd_task_destroy(task);
		hd_arena_finish(&arena);
	}
}

/* Of a graph's vertices only those that have a label weigh, whatever the model. */
static void losses_of_vertices_count_labels(void **state)
{
	static const struct { const char *kind, *norm, *counts; } cases[] = {
		{ "graph", "auto", "y" }, { "graph", "token", "y" }, { "graph", "sample", NULL },
		{ "synthetic", "auto", "x" },
	};
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		struct hd_arena arena;
		struct hd_graph g;
		struct hd_job j;
		char yaml[512];
		hd_arena_init(&arena, 0);
		snprintf(yaml, sizeof yaml, "job: {steps: 3}\n" MLP "}\ndata: {kind: %s}\n"
			"batch: {global: 8, normalize: %s}\n", cases[i].kind, cases[i].norm);
		CHECK(hd_job_parse(&j, "job.yaml", yaml, strlen(yaml), NULL, 0, &arena, &diag, NULL) == HD_OK,
			"%s", diag.text);
		enum hd_err err = hd_task_graph(&j, &fs, &arena, &g, &diag);
		if (!cases[i].counts) {
			CHECK(err == HD_E_INVAL && strstr(diag.text, "job.yaml:4:") &&
				strstr(diag.text, "set it to token, or leave it out"), "%zu: %s", i,
				diag.text);
		} else {
			assert_int_equal(err, HD_OK);
			const uint32_t weight = hd_graph_find_output(&g, "weight");
			const struct hd_node *n = &g.node[g.value[weight].node];
			assert_int_equal(n->op, HD_OP_COUNT64);
			assert_string_equal(hd_graph_text_of(&g, g.value[n->in[0]].name), cases[i].counts);
		}
		hd_arena_finish(&arena);
	}
}

/* fc1.weight, fc1.bias, fc2.weight, .. : six segments. */
static void a_settled_cut_is_the_layouts_unless_a_plan_is_given(void **state)
{
	static const struct task_cut { const char *more; uint32_t nbuckets; enum hd_err err; } cases[] = {
		{ "", 1, HD_OK },
		{ "comm: {settled: tic ranks 0}\n", 1, HD_OK },
		{ "comm: {settled: tic ranks 0-1}\n", 0, HD_E_INVAL },
		{ "comm: {settled: \"tic ranks 0-2 segments 1-3\"}\n", 3, HD_OK },
		{ "comm: {settled: \"tic ranks 0-1 segments 2x2\"}\n", 0, HD_E_INVAL },
		{ "comm: {settled: \"tic ranks 0-2 segments 1-3\"}\nparallel: {mode: explicit, plan: x.plan}\n", 1, HD_OK },
		{ "comm: {settled: \"tac ranks 2-0 segments 1-3\"}\n", 3, HD_OK },
		{ "comm: {settled: \"tic ranks 0-2 segments 3-1\"}\n", 3, HD_OK },
	};
	struct hd_hash alike[sizeof cases / sizeof *cases] = { 0 };
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		struct hd_task *task = NULL;
		struct hd_arena arena;
		struct hd_job job;
		char yaml[512];
		hd_arena_init(&arena, 0);
		snprintf(yaml, sizeof yaml, "job: {steps: 3}\n" MLP "}\ndata: {kind: synthetic, count: 61}\n"
			"batch: {global: 8}\n%s", cases[i].more);
		CHECK(hd_job_parse(&job, "job.yaml", yaml, strlen(yaml), NULL, 0, &arena, &diag, NULL) ==
			HD_OK, "%zu: %s", i, diag.text);
		const enum hd_err err = hd_task_create(&task, &job, &fs, &diag);
		CHECK(err == cases[i].err && (err || hd_layout_nbuckets(&task->layout) == cases[i].nbuckets),
			"%zu: %s", i, diag.text);
		if (!err)
			alike[i] = hd_task_alike(task);
		hd_task_destroy(task);
		hd_arena_finish(&arena);
	}
	/* members must have the cut alike, and nothing else of what was settled */
	CHECK(hd_hash_same(alike[0], alike[1]) && hd_hash_same(alike[0], alike[5]), "uncut");
	CHECK(hd_hash_same(alike[3], alike[6]), "orders of one cut");
	CHECK(!hd_hash_same(alike[0], alike[3]) && !hd_hash_same(alike[3], alike[7]), "cuts");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_with_a_graph_file_is_known_by_its_content),
		cmocka_unit_test(fields_that_a_graph_would_misread_are_refused_with_both_shapes),
		cmocka_unit_test(slices_tile_virtual_nodes_and_their_sizes_are_known),
		cmocka_unit_test(lists_of_names_may_be_as_long_as_their_key_allows),
		cmocka_unit_test(losses_of_vertices_count_labels),
		cmocka_unit_test(a_settled_cut_is_the_layouts_unless_a_plan_is_given),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
