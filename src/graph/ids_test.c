#include "graph/ids.h"

#include <stdio.h>

#include "graph/testing.h"
#include "tests/check.h"

static struct hd_ids ids_of(struct hd_subject *s, const char *input)
{
	struct hd_ids ids = { .rows = -1 };

	CHECK(s->err == HD_OK, "%s", s->diag.text);
	CHECK(hd_graph_ids(&s->graph, s->graph.input[hd_graph_find_input(&s->graph, input)], &ids,
		&s->diag) == HD_OK, "%s", s->diag.text);
	return ids;
}

static int64_t rows_in_text(const char *text)
{
	struct hd_subject s;

	hd_subject_parse(&s, text);
	int64_t rows = ids_of(&s, "x").rows;
	hd_subject_finish(&s);
	return rows;
}

#define HEAD "graph g\ninput x i32 [*,4]\nparam a f32 [9,2] zeros\nparam b f32 [7,2] zeros\n"

static void the_shortest_table_that_ids_index_is_found_through_what_moves_them(void **state)
{
	static const struct { const char *text; int64_t rows; } cases[] = {
		{ "%0 = embed x a\noutput o %0\n", 9 },
		{ "%0 = embed x a\n%1 = embed x b\noutput o %0\noutput p %1\n", 7 },
		{ "%0 = slice x axis=1 from=0 step=1 count=2\n%1 = reshape %0 d0=-2\n%2 = embed %1 b\noutput o %2\n", 7 },
		{ "%0 = concat x x axis=1\n%1 = permute %0 p0=0 p1=1\n%2 = embed %1 a\noutput o %2\n", 9 },
		{ "%0,%1 = mask_tokens x mask=1 vocab=9 share=0.1\n%2 = embed %0 a\noutput o %2\n", 9 },
		{ "%0 = cast x to=1\n%1 = cast %0 to=3\n%2 = embed %1 a\noutput o %2\n", 9 },
		{ "%0 = gather a x axis=0\noutput o %0\n", 9 },
		{ "%0 = gather b x axis=1\noutput o %0\n", 2 },
		{ "%0 = minimum x x\n%1 = embed %0 b\noutput o %1\n", 7 },
		{ "%0 = where x x x\n%1 = embed %0 b\noutput o %1\n", 7 },
		{ "%0 = mul x x\n%1 = embed %0 a\noutput o %1\n", 0 },          /* other numbers than those of the input */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[512];
		snprintf(text, sizeof text, HEAD "%s", cases[i].text);
		int64_t rows = rows_in_text(text);
		CHECK(rows == cases[i].rows, "%zu: %lld rows", i, (long long)rows);
	}
}

/* Tokens are bounded by the vocabulary, labels by the logits, whatever the head is. */
static void models_of_tokens_bound_them_by_their_vocabulary(void **state)
{
	static const struct hd_model_arg heads[][2] = { { { "vocab", "33" }, { "head", "mlm" } },
		{ { "vocab", "33" }, { "head", "cls" } } };
	static const int64_t labels[] = { 0, 2 };       /* those of masked tokens come from x */

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct hd_subject s;
		hd_subject_model(&s, "bert", heads[i], 2, (struct hd_model_opts){ 0 });
		assert_int_equal(ids_of(&s, "x").rows, 33);
		assert_int_equal(s.graph.node[ids_of(&s, "x").node].op, HD_OP_EMBED);
		assert_int_equal(ids_of(&s, "y").rows, labels[i]);
		hd_subject_finish(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shortest_table_that_ids_index_is_found_through_what_moves_them),
		cmocka_unit_test(models_of_tokens_bound_them_by_their_vocabulary),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
