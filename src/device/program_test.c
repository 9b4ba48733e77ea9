#include "device/testing.h"

static void lists_hold_every_node_once_in_graph_order(void **state)
{
	(void)state;
	for (uint32_t m = 0; m < HD_STAGE_NMODELS; m++) {
		struct hd_stage s;
		hd_stage_make(&s, &hd_stage_models[m], &(uint64_t){ 3 }, 1);
		const struct hd_program *p = &s.program;
		uint32_t at[4] = { 0 };
		for (uint32_t i = 0; i < s.graph.nnodes; i++) {
			uint8_t phase = s.graph.node[i].phase;
			int list = phase == HD_PHASE_F ? HD_RUN_F : phase == HD_PHASE_I ? HD_RUN_I : HD_RUN_W;
			CHECK(p->order[list][at[list]++] == i, "%s, node %u", hd_stage_models[m].name, i);
			if (list != HD_RUN_F)
				CHECK(p->order[HD_RUN_B][at[HD_RUN_B]++] == i, "%s, node %u",
					hd_stage_models[m].name, i);
		}
		for (int list = HD_RUN_F; list <= HD_RUN_W; list++)
			assert_int_equal(at[list], p->norder[list]);
		uint32_t folded = 0;
		for (uint32_t v = 0; v < s.graph.nvalues; v++)
			folded += p->grad_of_value[v] != HD_NONE;
		assert_int_equal(folded, hd_graph_ngrads(&s.graph));
		hd_stage_finish(&s);
	}
}

static void an_evaluation_has_no_backward_pass_and_less_memory(void **state)
{
	struct hd_stage s;
	struct hd_program eval;
	struct hd_diag diag = { "" };
	(void)state;

	hd_stage_make(&s, hd_stage_model_of("resnet18"), &(uint64_t){ 3 }, 1);
	CHECK(hd_program_make(&eval, &s.graph, &s.layout, false, &(uint64_t){ 3 }, 1, &s.arena,
		&diag) == HD_OK, "%s", diag.text);
	assert_int_equal(eval.norder[HD_RUN_B] + eval.norder[HD_RUN_I] + eval.norder[HD_RUN_W], 0);
	assert_int_equal(eval.norder[HD_RUN_F], s.program.norder[HD_RUN_F]);
	assert_true(eval.memory.len_bytes < s.program.memory.len_bytes);
	for (uint32_t v = 0; v < s.graph.nvalues; v++)
		assert_int_equal(eval.grad_of_value[v], HD_NONE);
	hd_stage_finish(&s);
}

static void operands_lie_where_their_values_are(void **state)
{
	struct hd_stage s;
	(void)state;

	hd_stage_make(&s, &hd_stage_models[0], (uint64_t[]){ 4, 3 }, 2);
	for (uint32_t variant = 0; variant < 2; variant++)
		for (uint32_t i = 0; i < s.graph.nnodes; i++) {
			const struct hd_node *node = &s.graph.node[i];
			struct hd_call call;
			hd_program_bind(&s.program, variant, i, &s.bind, &call);
			assert_int_equal(call.draw.op, node->key);
			for (uint8_t k = 0; k < node->nin; k++) {
				const struct hd_value *v = &s.graph.value[node->in[k]];
				CHECK(call.in[k].elems == hd_value_elems(v, s.program.rows[variant]),
					"node %u", i);
				CHECK(v->kind != HD_PARAM || call.in[k].at == s.params + s.layout.at[v->data],
					"node %u", i);
				CHECK(v->kind != HD_INPUT || call.in[k].at == s.input[v->data], "node %u", i);
				uintptr_t offset = (uintptr_t)call.in[k].at - (uintptr_t)s.memory;
				/* of an input */
				bool viewed = v->kind == HD_TEMP &&
					s.program.where[node->in[k]].space != HD_IN_ARENA;
				CHECK(v->kind != HD_TEMP || viewed || offset < s.program.memory.len_bytes,
					"node %u", i);
			}
			if (hd_ops[node->op].class == HD_OP_VIEW)
				CHECK(call.out[0].at == call.in[0].at, "node %u is a view", i);
		}
	hd_stage_finish(&s);
}

static void slice_sizes_are_kept_once_and_bounded(void **state)
{
	static const struct { uint64_t rows[10]; uint32_t nrows; enum hd_err err; const char *says;
		} bad[] = {
		{ { 0 }, 1, HD_E_INVAL, "no slice has any rows: the batch is empty" },
		{ { 2, 3 }, 2, HD_E_BUG, "slice of 3 rows after one of 2: the largest must come first" },
		{ { 9, 8, 7, 6, 5, 4, 3, 2, 1 }, 9, HD_E_INVAL,
		  "more than 8 different slice sizes: choose a batch that virtual nodes and slices divide "
		  "more evenly" },
	};
	struct hd_stage s;
	struct hd_program program;
	(void)state;

	hd_stage_make(&s, &hd_stage_models[0], (uint64_t[]){ 4, 0, 3, 4, 3, 1 }, 6);
	assert_int_equal(s.program.nvariants, 3);
	assert_int_equal(hd_program_variant(&s.program, 3), 1);
	assert_int_equal(hd_program_variant(&s.program, 2), HD_NONE);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		CHECK(hd_program_make(&program, &s.graph, &s.layout, true, bad[i].rows, bad[i].nrows,
			&s.arena, &diag) == bad[i].err, "case %zu", i);
		assert_string_equal(diag.text, bad[i].says);
	}
	hd_stage_finish(&s);
}

static void two_parameters_with_one_gradient_are_refused(void **state)
{
	struct hd_stage s;
	struct hd_program program;
	struct hd_diag diag = { "" };
	(void)state;

	hd_stage_make(&s, &hd_stage_models[0], &(uint64_t){ 3 }, 1);
	s.graph.value[s.graph.param[1].value].grad = s.graph.value[s.graph.param[0].value].grad;
	CHECK(hd_program_make(&program, &s.graph, &s.layout, true, &(uint64_t){ 3 }, 1, &s.arena,
		&diag) == HD_E_INVAL, "%s", diag.text);
	assert_string_equal(diag.text,
		"the gradient of fc1.bias is not a value of its own made by the backward pass");
	hd_stage_finish(&s);
}

static void a_program_says_when_memory_is_out(void **state)
{
	struct hd_stage s;
	struct hd_program program;
	struct hd_arena small;
	bool made = false;
	(void)state;

	hd_stage_make(&s, &hd_stage_models[0], &(uint64_t){ 3 }, 1);
	for (size_t budget = 1; !made; budget += 512) {
		struct hd_diag diag = { "" };
		hd_arena_init(&small, budget);
		enum hd_err err = hd_program_make(&program, &s.graph, &s.layout, true, &(uint64_t){ 3 }, 1,
			&small, &diag);
		made = err == HD_OK;
		CHECK(made || (err == HD_E_NOMEM && diag.text[0]), "budget %zu: %s", budget, diag.text);
		hd_arena_finish(&small);
	}
	hd_stage_finish(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_hold_every_node_once_in_graph_order),
		cmocka_unit_test(an_evaluation_has_no_backward_pass_and_less_memory),
		cmocka_unit_test(operands_lie_where_their_values_are),
		cmocka_unit_test(slice_sizes_are_kept_once_and_bounded),
		cmocka_unit_test(two_parameters_with_one_gradient_are_refused),
		cmocka_unit_test(a_program_says_when_memory_is_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
