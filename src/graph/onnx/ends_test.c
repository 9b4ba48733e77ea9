#include <stdio.h>

#include "graph/onnx/testing_files.h"

#define INT ONNX__TENSOR_PROTO__DATA_TYPE__INT64
#define REAL ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT

/* Tokens x [rows,4] -> z [rows,3], or [rows,4,3] where the mean over positions is left out. */
#define ONE "table [7,6]\nw [6,3]\nGather table,x -> e\nReduceMean e -> m axes=1 keepdims=0\nMatMul m,w -> "
#define EACH "table [7,6]\nw [6,3]\nGather table,x -> e\nMatMul e,w -> "

/* What the sum of losses is divided by: rows are counted by f32 values, labels by those that are not -1. */
static void a_sample_weighs_one_whatever_its_tokens(void **state)
{
	static const struct { const char *what, *text; int64_t y[2]; int ytype; bool own; enum hd_loss loss;
		enum hd_normalize by; bool labels; } cases[] = {
		{ "one label", ONE "out\n", { 0 }, 0, false, HD_LOSS_CROSS_ENTROPY, HD_NORMALIZE_SAMPLE, false },
		{ "one label, by tokens", ONE "out\n", { 0 }, 0, false, HD_LOSS_CROSS_ENTROPY, HD_NORMALIZE_TOKEN, true },
		{ "a label each", EACH "out\n", { 0 }, 0, false, HD_LOSS_CROSS_ENTROPY, HD_NORMALIZE_SAMPLE, false },
		{ "a label each, by tokens", EACH "out\n", { 0 }, 0, false, HD_LOSS_CROSS_ENTROPY, HD_NORMALIZE_TOKEN, true },
		{ "numbers", ONE "out\n", { 0 }, 0, false, HD_LOSS_MSE, HD_NORMALIZE_SAMPLE, false },
		{ "a loss of its own", ONE "z\nSub z,y -> d\nMul d,d -> s\nReduceMean s -> out keepdims=0\n", { 2, 3 }, REAL, true, HD_LOSS_MSE,
		  HD_NORMALIZE_SAMPLE, false },
		{ "a loss of its own over tokens", EACH "z\nMul z,z -> s\nReduceMean s -> out keepdims=0\n", { 0 }, 0, true, HD_LOSS_MSE,
		  HD_NORMALIZE_SAMPLE, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		static struct model m;
		const struct hd_model_opts opts = { .loss = cases[i].loss, .normalize = cases[i].by };
		const struct hd_onnx_opts how = { .loss = cases[i].own ? NULL : &opts };
		Onnx__ValueInfoProto *in[2] = { info("x", INT, (int64_t[]){ 2, 4 }, 2),
			cases[i].ytype ? info("y", cases[i].ytype, cases[i].y, 2) : NULL };
		struct hd_diag diag = { "" };
		struct hd_arena arena;
		struct hd_graph g;
		hd_arena_init(&arena, 0);
		hd_graph_init(&g, &arena);
		write_inputs(&m, cases[i].text, in, cases[i].ytype ? 2 : 1, 17);
		CHECK(hd_onnx_import(&g, "t.onnx", m.bytes, m.len, &how, NULL, &diag) == HD_OK, "%s: %s",
			cases[i].what, diag.text);
		const struct hd_node *weight = NULL;
		for (uint32_t n = 0; n < g.nnodes; n++)
			if (g.node[n].op == HD_OP_COUNT64)
				weight = &g.node[n];
		assert_non_null(weight);
		const struct hd_value *counted = &g.value[weight->in[0]];
		uint32_t y = hd_graph_find_input(&g, "y");
		if (cases[i].labels)
			CHECK(y != HD_NONE && weight->in[0] == g.input[y], "%s: counts no labels",
				cases[i].what);
		else
			CHECK(counted->dtype == HD_F32 && counted->dim[0] == -1, "%s: counts %s",
				cases[i].what, hd_value_shape(counted).at);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_weighs_one_whatever_its_tokens),
	};
	hd_arena_init(&messages, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&messages);
	return failed;
}
