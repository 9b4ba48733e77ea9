#include "graph/ir.h"

#include <stdio.h>

#include "graph/testing.h"
#include "tests/check.h"

static void dtypes_have_the_numbers_and_sizes_of_checkpoints(void **state)
{
	static const struct { enum hd_dtype dtype; int number; const char *text; size_t bytes; } rows[] = {
		{ HD_F32, 1, "f32", 4 }, { HD_F64, 2, "f64", 8 }, { HD_I32, 3, "i32", 4 }, { HD_I64, 4, "i64", 8 }, { HD_U8, 5, "u8", 1 },
	};
	enum hd_dtype dtype;

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(rows[i].dtype, rows[i].number);
		assert_string_equal(hd_dtype_text(rows[i].dtype), rows[i].text);
		assert_int_equal(hd_dtype_bytes(rows[i].dtype), rows[i].bytes);
		assert_true(hd_dtype_parse(rows[i].text, &dtype) && dtype == rows[i].dtype);
	}
	assert_false(hd_dtype_parse("f16", &dtype));
	assert_int_equal(hd_dtype_bytes((enum hd_dtype)9), 0);
}

static void extents_multiply_and_grow_with_the_rows(void **state)
{
	struct hd_value v = { .rank = 3, .dim = { -2, 3, 5 }, .dtype = HD_F32 };

	(void)state;
	assert_int_equal(hd_dims_product(v.dim, 3), -30);
	assert_int_equal(hd_value_elems(&v, 7), 210);
	assert_int_equal(hd_value_bytes(&v, 7), 840);
	assert_int_equal(hd_value_elems(&v, 0), 0);
	assert_int_equal(hd_dims_product((int64_t[]){ 2, 3 }, 0), 1);
	assert_int_equal(hd_dims_product((int64_t[]){ -1, -1 }, 2), 0);
	assert_int_equal(hd_dims_product((int64_t[]){ 1 << 21, 1 << 21 }, 2), (int64_t)1 << 42);
	assert_int_equal(hd_dims_product((int64_t[]){ 1 << 21, 1 << 21, 2 }, 3), 0);
	assert_int_equal(hd_dims_product((int64_t[]){ INT64_MAX, 2 }, 2), 0);
	assert_string_equal(hd_value_shape(&v).at, "f32 [2*,3,5]");
	v.dim[0] = -1;
	assert_string_equal(hd_value_shape(&v).at, "f32 [*,3,5]");
}

static void names_are_checked(void **state)
{
	static const struct { const char *name; bool good; } rows[] = {
		{ "w", true }, { "_0", true }, { "h.0.attn/c-proj", true }, { "", false }, { "0w", false }, { ".w", false },
		{ "a b", false }, { "a%", false }, { "\xc3\xa9", false }, { "a\n", false },
	};
	char longest[HD_MAX_NAME + 1];

	(void)state;
	memset(longest, 'x', sizeof longest);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct hd_subject s;
		uint32_t at;
		hd_subject_init(&s);
		CHECK((hd_graph_name(&s.graph, rows[i].name, &at, NULL) == HD_OK) == rows[i].good, "'%s'",
			rows[i].name);
		hd_subject_finish(&s);
	}
	for (int len = HD_MAX_NAME - 1; len <= HD_MAX_NAME; len++) {
		struct hd_subject s;
		uint32_t at;
		longest[len] = '\0';
		hd_subject_init(&s);
		assert_true((hd_graph_name(&s.graph, longest, &at, NULL) == HD_OK) == (len < HD_MAX_NAME));
		hd_subject_finish(&s);
		longest[len] = 'x';
	}
}

/* Far past every first capacity: what was made before is still there. */
static void graphs_grow_without_losing_anything(void **state)
{
	enum { N = 1000 };
	struct hd_subject s;
	uint32_t value = 0, in = 0;
	char name[16];

	(void)state;
	hd_subject_init(&s);
	assert_int_equal(hd_graph_input(&s.graph, "x", HD_F32, 1, (int64_t[]){ -1 }, &in, NULL), HD_OK);
	for (int i = 0; i < N; i++) {
		float c = (float)i;
		snprintf(name, sizeof name, "p%d", i);
		assert_int_equal(hd_graph_param(&s.graph, name, 1, (int64_t[]){ i + 1 }, HD_INIT_ZEROS, 0,
			&value, NULL), HD_OK);
		assert_int_equal(hd_graph_const(&s.graph, HD_F32, 1, (int64_t[]){ 1 }, &c, &value, NULL),
			HD_OK);
		assert_int_equal(hd_graph_node(&s.graph, HD_OP_SCALE, 1, &in, &(struct hd_attr){ .f = { c } },
			0, &in, NULL), HD_OK);
	}
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof name, "p%d", i);
		assert_int_equal(hd_graph_find_param(&s.graph, name), i);
		assert_true(s.graph.node[i].attr.f[0] == (float)i);
		const struct hd_value *c = &s.graph.value[s.graph.param[i].value + 1];
		assert_true(c->kind == HD_CONST && c->data % 64 == 0 &&
			*(const float *)(const void *)(s.graph.consts + c->data) == (float)i);
	}
	assert_int_equal(hd_graph_verify(&s.graph, 8, NULL), HD_OK);
	hd_subject_finish(&s);
}

static void builders_refuse_what_breaks_a_limit(void **state)
{
	struct hd_subject s;
	uint32_t x, out = 77;
	char name[16];

	(void)state;
	hd_subject_init(&s);
	assert_int_equal(hd_graph_input(&s.graph, "x", HD_F32, 1, (int64_t[]){ 4 }, &x, NULL), HD_OK);
	assert_int_equal(hd_graph_node(&s.graph, HD_NOPS, 1, &x, NULL, 0, &out, NULL), HD_E_INVAL);
	assert_int_equal(hd_graph_node(&s.graph, HD_OP_ADD, 1, &x, NULL, 0, &out, NULL), HD_E_INVAL);
	assert_int_equal(hd_graph_node(&s.graph, HD_OP_SUM64, 1, &(uint32_t){ 5 }, NULL, 0, &out, NULL),
		HD_E_INVAL);
	assert_int_equal(hd_graph_node(&s.graph, HD_OP_SUM64, 1, &x, NULL, HD_MAX_STAGES, &out, NULL),
		HD_E_INVAL);
	assert_int_equal(hd_graph_const(&s.graph, HD_F32, 1, (int64_t[]){ 1 << 26 }, NULL, &out, NULL),
		HD_E_INVAL);
	assert_int_equal(hd_graph_output(&s.graph, "y", 9, NULL), HD_E_INVAL);
	assert_int_equal(out, 77);
	for (int i = 1; i < HD_MAX_ENDS; i++) {
		snprintf(name, sizeof name, "x%d", i);
		assert_int_equal(hd_graph_input(&s.graph, name, HD_F32, 1, (int64_t[]){ 4 }, &x, NULL),
			HD_OK);
	}
	assert_int_equal(hd_graph_input(&s.graph, "last", HD_F32, 1, (int64_t[]){ 4 }, &x, NULL), HD_E_INVAL);
	hd_subject_finish(&s);
}

static void lookups_of_absent_names_say_so(void **state)
{
	struct hd_subject s;

	(void)state;
	hd_subject_model(&s, "mlp", NULL, 0, (struct hd_model_opts){ 0 });
	assert_int_equal(hd_graph_find_input(&s.graph, "y"), 1);
	assert_int_equal(hd_graph_find_input(&s.graph, "z"), HD_NONE);
	assert_int_equal(hd_graph_find_param(&s.graph, "y"), HD_NONE);
	assert_int_equal(hd_graph_find_output(&s.graph, "hits"), HD_NONE);
	assert_string_equal(hd_graph_text_of(&s.graph, HD_NONE), "");
	hd_subject_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dtypes_have_the_numbers_and_sizes_of_checkpoints),
		cmocka_unit_test(extents_multiply_and_grow_with_the_rows),
		cmocka_unit_test(names_are_checked),
		cmocka_unit_test(graphs_grow_without_losing_anything),
		cmocka_unit_test(builders_refuse_what_breaks_a_limit),
		cmocka_unit_test(lookups_of_absent_names_say_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
