/* The node cases of ONNX: every model that python3-onnx generates is imported as it stands, run on the
 * reference and on the processor's kernels, and compared. A case whose op Heddle has not is
 * refused, by name; none may fail. tests/program_onnx.sh makes them (HD_ONNX_CASES: the folder). */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"

#include "sys/file.h"
#include "graph/onnx.h"
#include "graph/op.h"
#include "device/optim.h"
#include "device/program.h"
#include "tests/check.h"

enum { MAX_FILE = 1 << 26, MAX_ENDS = 32 };
enum verdict { PASS, REFUSED, FAIL, NVERDICTS };

struct file { uint8_t *at; size_t len; };

struct job {
	struct hd_arena arena;
	struct hd_fs fs;
	char folder[600];
	struct hd_graph graph;
	struct hd_onnx_tensor in[MAX_ENDS], out[MAX_ENDS], known[MAX_ENDS];
	uint32_t nin, nout, nknown;
	struct hd_diag diag;
};

static bool read_file(struct job *job, const char *name, struct file *file)
{
	char path[800];

	snprintf(path, sizeof path, "%s/%s", job->folder, name);
	return hd_file_read_all(&job->fs, path, &job->arena, MAX_FILE, &file->at, &file->len, NULL) == HD_OK;
}

static bool read_tensors(struct job *job, const char *what, struct hd_onnx_tensor *at, uint32_t *n)
{
	char name[64];
	struct file file;

	for (*n = 0; *n < MAX_ENDS; ++*n) {
		snprintf(name, sizeof name, "test_data_set_0/%s_%u.pb", what, *n);
		if (!read_file(job, name, &file))
			return true;
		if (hd_onnx_tensor_read(&at[*n], &job->arena, name, file.at, file.len, &job->diag) != HD_OK)
			return false;
	}
	return false;
}

/* Integers are shapes, axes, indices: given, but labels and what is gathered by are data too. Single numbers
 * are bounds, ratios, modes. */
static bool is_known(const struct job *job, const struct hd_onnx_tensor *t)
{
	bool labels = strstr(job->folder, "test_nllloss") || strstr(job->folder, "test_sce") ||
		strstr(job->folder, "test_embed");
	bool modes = strstr(job->folder, "clip") || strstr(job->folder, "dropout") ||
		strstr(job->folder, "pow") || strstr(job->folder, "pad") ||
		strstr(job->folder, "cumsum") || strstr(job->folder, "range") ||
		strstr(job->folder, "onehot");

	return t->is_float ? modes && t->rank == 0 : !labels;
}

static void *as_ours(const struct hd_onnx_tensor *t, enum hd_dtype dtype)
{
	union { float f; int32_t i; } *at = calloc(t->n + 16, sizeof *at);

	for (uint64_t k = 0; k < t->n; k++)
		if (dtype == HD_F32)
			at[k].f = t->is_float ? (float)t->f[k] : (float)t->i[k];
		else
			at[k].i = (int32_t)t->i[k];
	return at;
}

static bool close_to(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b || fabs(a - b) <= 1e-5 + 2e-5 * fabs(b);
}

static bool same_output(struct job *job, uint32_t k, const void *ours, const struct hd_value *v)
{
	const struct hd_onnx_tensor *t = &job->out[k];

	if (hd_value_elems(v, 1) != t->n) {
		hd_fail(&job->diag, HD_E_BUG, "output %u has %llu elements, not %llu", k,
			(unsigned long long)hd_value_elems(v, 1), (unsigned long long)t->n);
		return false;
	}
	for (uint64_t e = 0; e < t->n; e++) {
		double got = v->dtype == HD_I32 ? (double)((const int32_t *)ours)[e] : v->dtype == HD_F64 ?
			((const double *)ours)[e] :
			(double)((const float *)ours)[e];
		double want = t->is_float ? t->f[e] : (double)(t->i[e] > INT32_MAX ? INT32_MAX :
			t->i[e] < INT32_MIN ? INT32_MIN : t->i[e]);
		if (!close_to(got, want)) {
			hd_fail(&job->diag, HD_E_BUG, "output %u, element %llu is %.9g, not %.9g", k,
				(unsigned long long)e, got, want);
			return false;
		}
	}
	return true;
}

/* A refusal on loading is one too: a shape that a device has no kernel for says so. */
static enum verdict run_on(struct job *job, const char *kind, enum hd_kernels kernels)
{
	struct hd_device_spec spec = { .nthreads = 1, .kernels = kernels };
	struct hd_device *device = NULL;
	struct hd_layout layout;
	struct hd_program program;
	void *input[HD_MAX_ENDS] = { NULL };
	uint8_t *memory = NULL;
	float *params = NULL;
	uint64_t token = 0;
	enum verdict verdict = FAIL;
	enum hd_err err = hd_layout_make(&layout, &job->graph, &job->arena, &job->diag);

	if (!err)
		err = hd_program_make(&program, &job->graph, &layout, false, &(uint64_t){ 1 }, 1, &job->arena,
			&job->diag);
	if (!err)
		err = hd_device_create(&device, kind, &spec, &job->diag);
	if (!err)
		err = device->ops->load(device, &program, &job->diag);
	if (err)
		goto out;
	memory = aligned_alloc(64, program.memory.len_bytes + 64);
	memset(memory, 0xff, program.memory.len_bytes + 64);
	params = calloc(layout.elems + 16, sizeof *params);
	for (uint32_t i = 0, k = 0; i < job->nin; i++)
		if (!is_known(job, &job->in[i])) {
			char name[16];
			snprintf(name, sizeof name, "in%u", k++);
			/* none: an input that nothing reads */
			uint32_t at = hd_graph_find_input(&job->graph, name);
			if (at != HD_NONE)
				input[at] = as_ours(&job->in[i],
					job->graph.value[job->graph.input[at]].dtype);
		}
	struct hd_bind bind = { .rows = 1, .params = params, .input = (const void *const *)input,
		.arena = memory };
	err = device->ops->run(device, &program, HD_RUN_F, &bind, &token, &job->diag);
	if (!err)
		err = device->ops->wait(device, token, &job->diag);
	bool good = !err;
	for (uint32_t k = 0; k < job->nout && good; k++) {
		char name[16];
		snprintf(name, sizeof name, "out%u", k);
		uint32_t value = hd_graph_find_output(&job->graph, name);
		good = value != HD_NONE && same_output(job, k, hd_program_value(&program, &bind, value),
			&job->graph.value[value]);
	}
	verdict = good ? PASS : FAIL;
out:
	for (uint32_t k = 0; k < HD_MAX_ENDS; k++)
		free(input[k]);
	free(memory);
	free(params);
	hd_device_destroy(device);
	return verdict;
}

#include "tests/onnx_optim.inc.h"

static enum verdict run_case(struct job *job)
{
	struct hd_onnx_opts opts = { .as_is = true };
	struct file model;

	if (!read_file(job, "model.onnx", &model))
		return FAIL;
	if (!read_tensors(job, "input", job->in, &job->nin) ||
		!read_tensors(job, "output", job->out, &job->nout))
		return REFUSED;                                   /* strings, complex numbers, sequences */
	enum verdict v;
	if (is_optim(job, &model, &v))
		return v;
	for (uint32_t i = 0; i < job->nin; i++)
		if (is_known(job, &job->in[i]))
			job->known[job->nknown++] = job->in[i];
	opts.known = job->known;
	opts.nknown = job->nknown;
	hd_graph_init(&job->graph, &job->arena);
	enum hd_err err = hd_onnx_import(&job->graph, "model.onnx", model.at, model.len, &opts, NULL,
		&job->diag);
	if (err)
		return err == HD_E_INPUT ? REFUSED : FAIL;
	/* A layout holds at least one parameter; a node case has none. */
	uint32_t unused;
	if (!job->graph.nparams && hd_graph_param(&job->graph, "unused", 1, (int64_t[]){ 1 }, HD_INIT_ZEROS,
		0, &unused, &job->diag))
		return FAIL;
	v = run_on(job, "reference", HD_KERNELS_PORTABLE);
	if (v == PASS)
		v = run_on(job, "cpu", HD_KERNELS_PORTABLE);
	if (v == PASS && hd_device_has_library())
		v = run_on(job, "cpu", HD_KERNELS_LIBRARY);
	return v;
}

static const char *cases_folder(void)
{
	static char path[512];
	const char *given = getenv("HD_ONNX_CASES"), *build = getenv("BUILD_DIR");

	snprintf(path, sizeof path, "%s%s", given ? given : build ? build : ".",
		given ? "" : "/onnxdata/node");
	return path;
}

static void every_case_of_an_op_that_heddle_has_passes(void **state)
{
	const char *only = getenv("HD_ONNX_ONLY"), *list = getenv("HD_ONNX_LIST");
	uint32_t count[NVERDICTS] = { 0 };
	char **name;
	size_t n = 0;
	struct hd_arena arena;
	struct hd_fs fs;
	(void)state;

	hd_arena_init(&arena, 0);
	hd_fs_real(&fs);
	if (hd_fs_list(&fs, cases_folder(), &arena, &name, &n, NULL) != HD_OK) {
		hd_arena_finish(&arena);
		SKIP("no node cases: tests/program_onnx.sh makes them with Debian's python3-onnx");
	}
	for (size_t i = 0; i < n; i++) {
		struct job *job = calloc(1, sizeof *job);
		if (only && !strstr(name[i], only)) {
			free(job);
			continue;
		}
		job->fs = fs;
		hd_arena_init(&job->arena, 0);
		snprintf(job->folder, sizeof job->folder, "%s/%s", cases_folder(), name[i]);
		enum verdict v = run_case(job);
		count[v]++;
		if (v == FAIL || list)
			print_message("%s %s: %s\n", v == FAIL ? "fail" : v == PASS ? "pass" : "refused",
				name[i], job->diag.text);
		hd_arena_finish(&job->arena);
		free(job);
	}
	print_message("node cases: %zu, pass %u, refused %u, fail %u\n", n, count[PASS], count[REFUSED],
		count[FAIL]);
	assert_int_equal(count[FAIL], 0);
	assert_true(only || count[PASS] > 0);
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] =
		{ cmocka_unit_test(every_case_of_an_op_that_heddle_has_passes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
