#include "plan/buckets.h"

#include "graph/testing.h"
#include "tests/check.h"

static const struct { const char *model; struct hd_model_arg arg[4]; uint32_t nargs; } models[] = {
	{ "mlp", { { "hidden", "[600, 500, 8]" }, { "act", "gelu" } }, 2 },
	{ "lenet", { { 0 } }, 0 },
	{ "gpt", { { "layers", "3" }, { "width", "64" }, { "context", "16" }, { "vocab", "5000" } }, 4 },
};
enum { NMODELS = sizeof models / sizeof models[0], ROWS = 16 };

static void make(struct hd_subject *s, struct hd_layout *layout, int m)
{
	hd_subject_model(s, models[m].model, models[m].arg, models[m].nargs, (struct hd_model_opts){ 0 });
	CHECK(s->err == HD_OK, "%s: %s", models[m].model, s->diag.text);
	CHECK(hd_graph_autodiff(&s->graph, &s->diag) == HD_OK, "%s", s->diag.text);
	CHECK(hd_layout_make(layout, &s->graph, &s->arena, &s->diag) == HD_OK, "%s", s->diag.text);
}

static void cut(struct hd_subject *s, struct hd_graph_stages *cuts, uint32_t n)
{
	uint32_t first[8];

	CHECK(hd_graph_stages_balance(first, n, &s->graph, ROWS, &s->arena, &s->diag) == HD_OK, "%s",
		s->diag.text);
	CHECK(hd_graph_stages_make(cuts, &s->graph, first, n, &s->arena, &s->diag) == HD_OK, "%s",
		s->diag.text);
}

static void of_one_stage_they_are_those_of_the_layout(void **state)
{
	(void)state;
	for (int m = 0; m < NMODELS; m++)
		for (uint32_t n = 0; n < 2; n++) {
			struct hd_subject s;
			struct hd_layout layout;
			struct hd_stage_buckets table;
			struct hd_graph_stages cuts;
			make(&s, &layout, m);
			if (n)
				cut(&s, &cuts, 1);
			assert_int_equal(hd_stage_buckets_make(&table, &layout, n ? &cuts : NULL, &s.arena,
				&s.diag), HD_OK);
			assert_int_equal(table.n, hd_layout_nbuckets(&layout));
			assert_int_equal(table.nstages, 1);
			for (uint32_t b = 0; b < table.n; b++) {
				const struct hd_chunk is = hd_layout_bucket(&layout, b);
				const struct hd_stage_bucket *at = &table.at[b];
				CHECK(at->at == is.at && at->len == is.len && at->nsegments == is.nsegments &&
					at->first_segment == is.first_segment && at->of == b &&
					!at->stage && at->makers == 1 && at->readers == 1,
					"%s: bucket %u", models[m].model, b);
			}
			hd_subject_finish(&s);
		}
}

/* From the whole graph, apart from the code: the stages of the nodes that read it. */
static uint64_t readers_of(const struct hd_graph_stages *cuts, uint32_t param)
{
	const struct hd_graph *g = cuts->whole;
	uint64_t readers = 0;

	for (uint32_t i = 0; i < g->nnodes; i++)
		for (uint8_t k = 0; k < g->node[i].nin; k++)
			if (g->node[i].in[k] == g->param[param].value)
				readers |= UINT64_C(1) << cuts->of_node[i];
	return readers;
}

/* The stages of the nodes that make its gradient: one of each use of a tied parameter. */
static uint64_t makers_of(const struct hd_graph_stages *cuts, uint32_t param)
{
	const struct hd_graph *g = cuts->whole;
	uint64_t makers = UINT64_C(1) << cuts->of_node[g->value[g->value[g->param[param].value].grad].node];

	for (uint32_t i = 0; i < g->nparts; i++)
		if (g->part[i].param == param)
			makers |= UINT64_C(1) << cuts->of_node[g->value[g->part[i].value].node];
	return makers;
}

static void they_tile_the_segments_and_none_straddles_stages(void **state)
{
	uint32_t split = 0, shared = 0;

	(void)state;
	for (int m = 0; m < NMODELS; m++)
		for (uint32_t n = 2; n <= 6; n++) {
			struct hd_subject s;
			struct hd_layout layout;
			struct hd_stage_buckets table;
			struct hd_graph_stages cuts;
			uint32_t next = 0;
			uint64_t at = 0;
			make(&s, &layout, m);
			cut(&s, &cuts, n);
			assert_int_equal(hd_stage_buckets_make(&table, &layout, &cuts, &s.arena, &s.diag),
				HD_OK);
			assert_int_equal(table.nstages, n);
			for (uint32_t b = 0; b < table.n; b++) {
				const struct hd_stage_bucket *is = &table.at[b];
				CHECK(is->first_segment == next && is->nsegments && is->at == at,
					"%s in %u: bucket %u", models[m].model, n, b);
				for (uint32_t i = next; i < next + is->nsegments; i++) {
					uint32_t p = layout.segment[i].param;
					CHECK(is->stage == hd_graph_stages_lowest(&cuts, p) &&
						is->readers == readers_of(&cuts, p) &&
						is->makers == makers_of(&cuts, p) &&
						is->of == layout.segment[i].chunk / HD_BUCKET_CHUNKS,
						"%s in %u: segment %u", models[m].model, n, i);
				}
				next += is->nsegments;
				at += is->len;
				split += b && is->of == table.at[b - 1].of;
				shared += (is->readers & (is->readers - 1)) != 0;
				assert_true(is->len * sizeof(float) <= HD_BUCKET_BYTES);
			}
			assert_int_equal(next, layout.nsegments);
			assert_true(at == layout.elems);
			hd_subject_finish(&s);
		}
	CHECK(split > 20 && shared > 4, "%u are split, %u are read by several stages", split, shared);
}

/* Two tables of one layout have common parts that are runs of segments: each bucket is split, none joined. */
static void no_more_are_made_than_there_are_changes(void **state)
{
	struct hd_subject s;
	struct hd_layout layout;
	struct hd_stage_buckets table;
	struct hd_graph_stages cuts;
	uint32_t changes = 0;

	(void)state;
	make(&s, &layout, 0);
	cut(&s, &cuts, 3);
	for (uint32_t i = 1; i < layout.nsegments; i++)
		changes += cuts.of_grad[layout.segment[i].param] !=
			cuts.of_grad[layout.segment[i - 1].param];
	assert_int_equal(hd_stage_buckets_make(&table, &layout, &cuts, &s.arena, &s.diag), HD_OK);
	assert_true(changes && table.n > hd_layout_nbuckets(&layout) &&
		table.n <= hd_layout_nbuckets(&layout) + changes);
	hd_subject_finish(&s);
}

static void more_stages_than_bits_are_refused(void **state)
{
	struct hd_subject s;
	struct hd_layout layout;
	struct hd_stage_buckets table = { .n = 7 };
	const struct hd_graph_stages cuts = { .n = HD_STAGE_BITS + 1 };

	(void)state;
	make(&s, &layout, 1);
	assert_int_equal(hd_stage_buckets_make(&table, &layout, &cuts, &s.arena, &s.diag), HD_E_INVAL);
	assert_non_null(strstr(s.diag.text, "at most 64"));
	assert_int_equal(table.n, 7);
	hd_subject_finish(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_one_stage_they_are_those_of_the_layout),
		cmocka_unit_test(they_tile_the_segments_and_none_straddles_stages),
		cmocka_unit_test(no_more_are_made_than_there_are_changes),
		cmocka_unit_test(more_stages_than_bits_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
