/* What an import leaves in its folder. Weights and configs are made here, the ONNX file is PyTorch's
 * (tests/onnx); that the jobs train is shown by program_weights.sh and program_onnx.sh. */
#include "checkpoint/adopt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/file_sim.h"
#include "checkpoint/export.h"
#include "tests/check.h"

struct adopt_desk { struct hd_arena arena; struct hd_fs_sim files; struct hd_adopted made;
	struct hd_diag diag; };

static int enter(void **state)
{
	static struct adopt_desk d;

	memset(&d, 0, sizeof d);
	hd_arena_init(&d.arena, 0);
	hd_fs_sim_init(&d.files);
	assert_int_equal(hd_fs_mkdirs(&d.files.fs, "hf", NULL), HD_OK);
	*state = &d;
	return 0;
}

static int leave(void **state)
{
	struct adopt_desk *d = *state;

	hd_fs_sim_finish(&d->files);
	hd_arena_finish(&d->arena);
	return 0;
}

static const struct hd_model_arg small[] = { { "input", "[1, 2, 3]" }, { "hidden", "[5]" },
	{ "classes", "4" } };

/* Weights of such a model, all of them 1, as a file. */
static void write_weights(struct adopt_desk *d, const char *model, const struct hd_model_arg *arg,
	uint32_t nargs, const char *path)
{
	static const struct hd_model_opts opts = { .loss = HD_LOSS_CROSS_ENTROPY,
		.normalize = HD_NORMALIZE_SAMPLE };
	struct hd_st_tensor tensor[64] = { { 0 } };
	struct hd_graph graph;

	hd_graph_init(&graph, &d->arena);
	CHECK(!hd_model_build(&graph, model, arg, nargs, &opts, &d->diag), "%s", d->diag.text);
	uint32_t n = hd_fit_count(&graph);
	assert_true(n <= 64);
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_value *v = hd_fit_value(&graph, i);
		uint64_t elems = hd_value_elems(v, 1);
		float *at = hd_arena_take(&d->arena, elems, sizeof *at);
		for (uint64_t k = 0; k < elems; k++)
			at[k] = 1;
		tensor[i] = (struct hd_st_tensor){ .name = hd_graph_text_of(&graph, v->name),
			.dtype = HD_ST_F32, .rank = v->rank, .at = at, .len_bytes = elems * sizeof *at };
		for (int k = 0; k < v->rank; k++)
			tensor[i].dim[k] = (uint64_t)v->dim[k];
	}
	CHECK(!hd_export_tensors(&d->files.fs, tensor, n, NULL, 0, path, &d->diag), "%s", d->diag.text);
}

static const char *text_of(struct adopt_desk *d, const char *path)
{
	uint8_t *bytes;
	size_t len;

	CHECK(!hd_file_read_all(&d->files.fs, path, &d->arena, 1 << 20, &bytes, &len, &d->diag), "%s",
		d->diag.text);
	return hd_arena_text(&d->arena, (const char *)bytes, len);
}

static bool is_there(struct adopt_desk *d, const char *path)
{
	struct hd_stat stat;

	return !hd_fs_stat(&d->files.fs, path, &stat, NULL);
}

static void weights_become_a_job_that_begins_from_them(void **state)
{
	struct adopt_desk *d = *state;

	write_weights(d, "mlp", small, 3, "hf/w.safetensors");
	CHECK(!hd_adopt_weights(&d->made, &d->files.fs, "hf/w.safetensors", "mine", "builtin:mlp", small, 3,
		&d->arena, &d->diag), "%s", d->diag.text);
	assert_string_equal(d->made.model, "mlp");
	assert_string_equal(d->made.weights, "mine/model.safetensors");
	assert_int_equal(d->made.ntensors, 4);
	assert_true(is_there(d, "mine/model.safetensors"));
	assert_string_equal(text_of(d, "mine/job.yaml"),
		"# Made by `heddle model import`: begins from the imported weights. Name your data, then\n"
		"#   heddle run mine/job.yaml\n"
		"job:   {name: finetune, steps: 100}\n"
		"model:\n"
		"  use: builtin:mlp\n"
		"  args: {input: [1,2,3], hidden: [5], classes: 4, act: \"relu\"}\n"
		"  weights: \"mine/model.safetensors\"\n"
		"data:  {kind: synthetic}      # kind: text|idx|npy|..., path: FILE\n"
		"batch: {global: 16, virtual_nodes: 8}\n"
		"optim: {kind: adamw, lr: 1e-4, schedule: {kind: cosine, warmup: 10}}\n");
}

/* Rule 1: a config beside the file, and in the folder; what the user says counts more. */
static void a_config_says_the_model_and_the_user_says_more(void **state)
{
	static const struct hd_model_arg gpt[] = { { "layers", "1" }, { "width", "8" }, { "heads", "2" },
		{ "context", "4" }, { "vocab", "16" } };
	static const char config[] = "{\"model_type\":\"gpt2\",\"n_layer\":1,\"n_embd\":8,\"n_head\":4,"
		"\"n_positions\":4,\"vocab_size\":16,\"activation_function\":\"gelu_new\"}";
	struct adopt_desk *d = *state;

	write_weights(d, "gpt", gpt, 5, "hf/model.safetensors");
	assert_int_equal(hd_file_write_atomic(&d->files.fs, "hf/config.json", config, sizeof config - 1,
		NULL), HD_OK);
	CHECK(!hd_adopt_weights(&d->made, &d->files.fs, "hf/model.safetensors", "one", NULL, NULL, 0,
		&d->arena, &d->diag), "%s", d->diag.text);
	assert_string_equal(d->made.model, "gpt");
	assert_non_null(strstr(text_of(d, "one/job.yaml"), "heads: 4"));
	CHECK(!hd_adopt_weights(&d->made, &d->files.fs, "hf", "two", NULL, &gpt[2], 1, &d->arena, &d->diag),
		"%s", d->diag.text);
	assert_non_null(strstr(text_of(d, "two/job.yaml"), "heads: 2"));
}

/* Rule 3. */
static void refused(struct adopt_desk *d, const char *folder, const char *model,
	const struct hd_model_arg *arg, uint32_t nargs, const char *says)
{
	d->diag = (struct hd_diag){ "" };
	enum hd_err err = hd_adopt_weights(&d->made, &d->files.fs, "hf/w.safetensors", folder, model, arg,
		nargs, &d->arena, &d->diag);
	CHECK(err != HD_OK && strstr(d->diag.text, says), "%s", d->diag.text);
	assert_false(is_there(d, folder));
}

static void what_does_not_fit_leaves_no_folder(void **state)
{
	static const struct hd_model_arg other[] = { { "input", "[7]" } };
	struct hd_model_arg many[HD_MAX_ARGS + 1];
	struct adopt_desk *d = *state;
	char names[HD_MAX_ARGS + 1][8], longest[HD_PATH_CAP + 1];

	write_weights(d, "mlp", small, 3, "hf/w.safetensors");
	refused(d, "mine", "mlp", other, 1, "does not fit the model mlp");
	refused(d, "mine", NULL, small, 3, "give --model NAME");
	for (uint32_t i = 0; i <= HD_MAX_ARGS; i++) {
		snprintf(names[i], sizeof names[i], "a%u", i);
		many[i] = (struct hd_model_arg){ names[i], "1" };
	}
	refused(d, "mine", "mlp", many, HD_MAX_ARGS + 1, "more than 48 arguments");
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	refused(d, longest, "mlp", small, 3, "is too long");
}

/* Rule 2. */
static void a_file_of_onnx_becomes_a_graph_its_weights_and_a_job(void **state)
{
	struct adopt_desk *d = *state;
	const char *source = getenv("SOURCE_DIR");
	struct hd_fs disk;
	char path[300];
	uint8_t *bytes;
	size_t len;

	hd_fs_real(&disk);
	snprintf(path, sizeof path, "%s/tests/onnx/mlp/free.onnx", source ? source : ".");
	if (hd_file_read_all(&disk, path, &d->arena, 1 << 20, &bytes, &len, NULL))
		SKIP("SOURCE_DIR does not say where tests/onnx is");
	assert_int_equal(hd_file_write_atomic(&d->files.fs, "hf/m.onnx", bytes, len, NULL), HD_OK);
	CHECK(!hd_adopt_onnx(&d->made, &d->files.fs, "hf/m.onnx", "mine", &d->arena, &d->diag), "%s",
		d->diag.text);
	assert_null(d->made.model);
	CHECK(d->made.nnodes > 0 && d->made.ntensors > 0, "%u nodes, %u tensors", d->made.nnodes,
		d->made.ntensors);
	assert_non_null(strstr(text_of(d, "mine/model.graph"), "matmul"));
	const char *job = text_of(d, "mine/job.yaml");
	CHECK(strstr(job, "use: \"graph:mine/model.graph\"") && strstr(job, "the loss is cross-entropy"),
		"%s", job);
	assert_int_not_equal(hd_adopt_onnx(&d->made, &d->files.fs, "hf/none.onnx", "other", &d->arena,
		&d->diag), HD_OK);
	assert_false(is_there(d, "other"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
	static const struct CMUnitTest tests[] = {
		TEST(weights_become_a_job_that_begins_from_them),
		TEST(a_config_says_the_model_and_the_user_says_more),
		TEST(what_does_not_fit_leaves_no_folder),
		TEST(a_file_of_onnx_becomes_a_graph_its_weights_and_a_job),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
