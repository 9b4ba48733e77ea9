#include "checkpoint/export.h"

#include <string.h>

#include "sys/file_sim.h"
#include "graph/model.h"
#include "tests/check.h"

struct desk { struct hd_arena arena; struct hd_fs_sim files; struct hd_graph graph; struct hd_diag diag; };

static int enter(void **state)
{
	static struct desk d;
	static const struct hd_model_opts opts = { .loss = HD_LOSS_CROSS_ENTROPY,
		.normalize = HD_NORMALIZE_SAMPLE };
	static const struct hd_model_arg args[] = { { "input", "[1, 2, 3]" }, { "hidden", "[5]" },
		{ "classes", "4" } };

	memset(&d, 0, sizeof d);
	hd_arena_init(&d.arena, 0);
	hd_fs_sim_init(&d.files);
	hd_graph_init(&d.graph, &d.arena);
	CHECK(!hd_model_build(&d.graph, "mlp", args, 3, &opts, &d.diag), "%s", d.diag.text);
	*state = &d;
	return 0;
}

static int leave(void **state)
{
	struct desk *d = *state;

	hd_fs_sim_finish(&d->files);
	hd_arena_finish(&d->arena);
	return 0;
}

/* Element k of tensor i: no two alike, none that f32 or bf16 rounds. */
static float value_of(uint32_t i, uint64_t k) { return (float)(i + 1) * 256 + (float)k; }

/* Tensors for all of the graph but the first `without`. */
static struct hd_weights *weights_of(struct desk *d, uint32_t without)
{
	struct hd_st_tensor tensor[8] = { { 0 } };
	struct hd_weights *w = NULL;
	uint32_t n = hd_fit_count(&d->graph);

	assert_true(n > 1 && n <= 8);
	for (uint32_t i = without; i < n; i++) {
		const struct hd_value *v = hd_fit_value(&d->graph, i);
		uint64_t elems = hd_value_elems(v, 1);
		float *at = hd_arena_take(&d->arena, elems, sizeof *at);
		for (uint64_t k = 0; k < elems; k++)
			at[k] = value_of(i, k);
		struct hd_st_tensor *t = &tensor[i - without];
		*t = (struct hd_st_tensor){ .name = hd_graph_text_of(&d->graph, v->name), .dtype = HD_ST_F32,
			.rank = v->rank, .at = at, .len_bytes = elems * sizeof *at };
		for (int k = 0; k < v->rank; k++)
			t->dim[k] = (uint64_t)v->dim[k];
	}
	CHECK(!hd_weights_of(&w, "given", tensor, n - without, &d->diag), "%s", d->diag.text);
	return w;
}

static void what_fits_is_written_by_our_names_bit_for_bit(void **state)
{
	struct desk *d = *state;
	struct hd_weights *w = weights_of(d, 0), *back = NULL;
	struct hd_weight_source *fit;

	CHECK(!hd_weights_fit(w, &d->graph, NULL, 0, &fit, NULL, &d->diag), "%s", d->diag.text);
	assert_int_equal(hd_export_fit(&d->files.fs, w, &d->graph, fit, &d->arena, "m.safetensors",
		&d->diag), HD_OK);
	assert_int_equal(hd_weights_open(&back, &d->files.fs, "m.safetensors", &d->diag), HD_OK);
	assert_int_equal(back->ntensors, hd_fit_count(&d->graph));
	assert_true(hd_hash_same(back->digest, w->digest));     /* names, shapes and bytes */
	CHECK(!hd_weights_fit(back, &d->graph, NULL, 0, &fit, NULL, &d->diag), "%s", d->diag.text);
	for (uint32_t i = 0; i < hd_fit_count(&d->graph); i++) {
		const float *at = fit[i].from->at;
		for (uint64_t k = 0; k < hd_value_elems(hd_fit_value(&d->graph, i), 1); k++)
			assert_true(at[k] == value_of(i, k));
	}
	hd_weights_close(back);
	hd_weights_close(w);
}

static void what_keeps_its_initial_value_is_not_written(void **state)
{
	struct desk *d = *state;
	struct hd_weights *w = weights_of(d, 1), *back = NULL;
	struct hd_weight_source *fit;
	const char *first = hd_graph_text_of(&d->graph, hd_fit_value(&d->graph, 0)->name);

	CHECK(!hd_weights_fit(w, &d->graph, &first, 1, &fit, NULL, &d->diag), "%s", d->diag.text);
	assert_null(fit[0].from);
	assert_int_equal(hd_export_fit(&d->files.fs, w, &d->graph, fit, &d->arena, "m.safetensors",
		&d->diag), HD_OK);
	assert_int_equal(hd_weights_open(&back, &d->files.fs, "m.safetensors", &d->diag), HD_OK);
	assert_int_equal(back->ntensors, hd_fit_count(&d->graph) - 1);
	for (uint32_t i = 0; i < back->ntensors; i++)
		assert_string_not_equal(back->tensor[i].name, first);
	assert_true(hd_hash_same(back->digest, w->digest));
	hd_weights_close(back);
	hd_weights_close(w);
}

static void a_file_that_cannot_be_written_is_an_error_and_leaves_none(void **state)
{
	struct desk *d = *state;
	struct hd_weights *w = weights_of(d, 0);
	struct hd_weight_source *fit;
	struct hd_stat stat;

	CHECK(!hd_weights_fit(w, &d->graph, NULL, 0, &fit, NULL, &d->diag), "%s", d->diag.text);
	assert_true(hd_export_fit(&d->files.fs, w, &d->graph, fit, &d->arena, "no/m.safetensors",
		&d->diag) != HD_OK);
	assert_non_null(strstr(d->diag.text, "no/m.safetensors"));
	assert_int_equal(hd_fs_stat(&d->files.fs, "no/m.safetensors", &stat, NULL), HD_E_NOTFOUND);
	hd_weights_close(w);
}

/* A mixture of two experts whose w1 come in parts, as one tensor, or in both. */
static void experts_that_are_there_twice_are_refused(void **state)
{
	static const struct hd_model_opts opts = { .loss = HD_LOSS_CROSS_ENTROPY,
		.normalize = HD_NORMALIZE_TOKEN };
	static const struct hd_model_arg args[] = { { "layers", "1" }, { "width", "4" }, { "heads", "1" },
		{ "hidden", "3" }, { "context", "4" }, { "vocab", "5" }, { "experts", "2" } };
	static const char one[] = "model.layers.0.block_sparse_moe.experts.w1.weight";
	/* tensors are sorted by name: those of memory stand behind the whole, those of files before it */
	static const char *const part[2][2] = { { "model.layers.0.block_sparse_moe.experts.0.w1.weight",
		"model.layers.0.block_sparse_moe.experts.1.w1.weight" },
		{ "model.layers.0.mlp.experts.0.w1.weight", "model.layers.0.mlp.experts.1.w1.weight" } };
	static const struct { bool memory; int n, of[3]; const char *says; } cases[] = {    /* 2: the whole */
		{ false, 2, { 0, 1 }, NULL }, { true, 2, { 0, 1 }, NULL }, { false, 1, { 2 }, NULL },
		{ false, 3, { 0, 1, 2 }, "1 not of this model: model.layers.0.block_sparse_moe.experts.w1.weight" },
		{ true, 3, { 2, 0, 1 }, "2 not of this model: model.layers.0.mlp.experts.0.w1.weight F32 [3,4] (beside "
			"model.layers.0.block_sparse_moe.experts.w1.weight, which has all of them)" },
		{ true, 2, { 2, 1 }, "1 not of this model: model.layers.0.mlp.experts.1.w1.weight" },
		{ false, 1, { 1 }, "1 missing: model.layers.0.block_sparse_moe.experts.0.w1.weight" },
	};
	struct desk *d = *state;

	hd_graph_init(&d->graph, &d->arena);
	CHECK(!hd_model_build(&d->graph, "mixtral", args, 7, &opts, &d->diag), "%s", d->diag.text);
	float *at = hd_arena_take(&d->arena, 24, sizeof *at);
	for (int k = 0; k < 24; k++)
		at[k] = (float)k;
	static const uint64_t dim[] = { 2, 3, 4 };
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		const char *skip[64];
		struct hd_st_tensor tensor[3];
		struct hd_weight_source *fit;
		struct hd_weights *w = NULL;
		struct hd_diag diag = { "" };
		uint32_t n = 0;
		for (uint32_t i = 0; i < hd_fit_count(&d->graph); i++) {
			const char *name = hd_graph_text_of(&d->graph, hd_fit_value(&d->graph, i)->name);
			if (strcmp(name, one) != 0)
				skip[n++] = name;
		}
		for (int i = 0; i < cases[c].n; i++) {
			const int of = cases[c].of[i];
			tensor[i] = (struct hd_st_tensor){ .name = of == 2 ? one : part[cases[c].memory][of],
				.dtype = HD_ST_F32, .rank = of == 2 ? 3 : 2, .at = at,
				.len_bytes = of == 2 ? 96 : 48 };
			memcpy(tensor[i].dim, dim + (of != 2), tensor[i].rank * sizeof *dim);
		}
		CHECK(!hd_weights_of(&w, "given", tensor, (uint32_t)cases[c].n, &diag), "%s", diag.text);
		enum hd_err err = hd_weights_fit(w, &d->graph, skip, n, &fit, NULL, &diag);
		CHECK((err == HD_OK) == !cases[c].says, "case %zu: %s", c, diag.text);
		CHECK(!cases[c].says || strstr(diag.text, cases[c].says), "case %zu: %s", c, diag.text);
		hd_weights_close(w);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_fits_is_written_by_our_names_bit_for_bit, enter, leave),
		cmocka_unit_test_setup_teardown(what_keeps_its_initial_value_is_not_written, enter, leave),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_be_written_is_an_error_and_leaves_none,
			enter, leave),
		cmocka_unit_test_setup_teardown(experts_that_are_there_twice_are_refused, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
