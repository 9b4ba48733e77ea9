#include "plan/buckets.h"

#include <string.h>

#include "graph/op.h"
#include "graph/shard.h"
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

static void of_one_stage_all_is_that_stage_s(void **state)
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
			assert_int_equal(hd_stage_buckets_make(&table, &layout, n ? &cuts : NULL, NULL,
				&s.arena,
				&s.diag), HD_OK);
			assert_int_equal(table.n, hd_layout_nbuckets(&layout));
			assert_int_equal(table.nstages, 1);
			for (uint32_t b = 0; b < table.n; b++)
				CHECK(!table.at[b].stage && table.at[b].makers == 1 && table.at[b].readers ==
					1,
					"%s: bucket %u", models[m].model, b);
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

static void masks_name_all_stages_of_what_a_bucket_holds(void **state)
{
	uint32_t cut_through = 0, one = 0, tied = 0;

	(void)state;
	for (int m = 0; m < NMODELS; m++)
		for (uint32_t n = 2; n <= 6; n++) {
			struct hd_subject s;
			struct hd_layout layout;
			struct hd_stage_buckets table;
			struct hd_graph_stages cuts;
			make(&s, &layout, m);
			cut(&s, &cuts, n);
			assert_int_equal(hd_stage_buckets_make(&table, &layout, &cuts, NULL, &s.arena,
				&s.diag),
				HD_OK);
			assert_true(table.nstages == n && table.n == hd_layout_nbuckets(&layout) &&
				!table.whole);
			for (uint32_t b = 0; b < table.n; b++) {
				const struct hd_chunk is = hd_layout_bucket(&layout, b);
				const struct hd_stage_bucket *at = &table.at[b];
				uint64_t makers = 0, readers = 0;
				for (uint32_t i = is.first_segment; i < is.first_segment + is.nsegments;
					i++) {
					makers |= makers_of(&cuts, layout.segment[i].param);
					readers |= readers_of(&cuts, layout.segment[i].param);
				}
				CHECK(at->makers == makers && at->readers == (makers | readers) &&
					at->stage == (uint32_t)__builtin_ctzll(makers),
					"%s in %u: bucket %u", models[m].model, n, b);
				one += makers == readers && !(makers & (makers - 1));
				cut_through += (makers & (makers - 1)) != 0;
				tied += readers != makers || makers >> (at->stage + 1) > 1;
			}
			hd_subject_finish(&s);
		}
	CHECK(one > 9 && cut_through > 9 && tied, "%u of one stage, %u of several, %u of distant ones", one,
		cut_through, tied);
}

/* By ranges of the flat gradient: which stages' gradients lie in a run, parts of a tied weight apart. */
static void makers_of_a_run_are_those_of_what_lies_in_it(void **state)
{
	uint32_t nfewer = 0;

	(void)state;
	for (int m = 0; m < NMODELS; m++)
		for (uint32_t n = 0; n < 4; n++) {
			struct hd_subject s;
			struct hd_layout layout;
			struct hd_stage_buckets table;
			struct hd_graph_stages cuts;
			make(&s, &layout, m);
			if (n)
				cut(&s, &cuts, n);
			assert_int_equal(hd_stage_buckets_make(&table, &layout, n ? &cuts : NULL, NULL,
				&s.arena,
				&s.diag), HD_OK);
			for (uint32_t r = 0; r < hd_layout_nruns(&layout); r++) {
				const struct hd_grad_run run = hd_layout_run(&layout, r);
				uint64_t of = 0;
				for (uint32_t g = 0; g < layout.ngrads; g++)
					if (layout.at[g] < run.at + run.len &&
						layout.at[g] + layout.len[g] > run.at)
						of |= UINT64_C(1) << (n ? cuts.of_grad[g] : 0);
				CHECK(table.run_makers[r] == of, "%s, %u stages: run %u", models[m].model, n,
					r);
				nfewer += of != table.at[run.bucket].makers;
			}
			hd_subject_finish(&s);
		}
	assert_true(nfewer > 0);
}

static void more_stages_than_bits_are_refused(void **state)
{
	struct hd_subject s;
	struct hd_layout layout;
	struct hd_stage_buckets table = { .n = 7 };
	const struct hd_graph_stages cuts = { .n = HD_STAGE_BITS + 1 };

	(void)state;
	make(&s, &layout, 1);
	assert_int_equal(hd_stage_buckets_make(&table, &layout, &cuts, NULL, &s.arena, &s.diag), HD_E_INVAL);
	assert_non_null(strstr(s.diag.text, "at most 64"));
	assert_int_equal(table.n, 7);
	hd_subject_finish(&s);
}

/* The value whose bytes an input shows: ops of views have none of their own. */
static uint32_t shown(const struct hd_graph *g, uint32_t value)
{
	while (g->value[value].kind == HD_TEMP &&
		hd_ops[g->node[g->value[value].node].op].class == HD_OP_VIEW)
		value = g->node[g->value[value].node].in[0];
	return value;
}

/* Of shards over groups of devices, from the graphs of the stages and the devices of their nodes alone. */
static void add_of_groups(uint64_t *makers, uint64_t *readers, const struct hd_graph_stages *cuts,
	const struct hd_layout *layout, uint32_t t, uint32_t groups, uint32_t param, struct hd_subject *s)
{
	for (uint32_t k = 0; k < cuts->n; k++) {
		const struct hd_graph *g = &cuts->stage[k].graph;
		uint8_t *device = hd_arena_take(&s->arena, g->nnodes + 1, 1);
		assert_int_equal(hd_tensor_place(device, g, 4, t, &s->diag), HD_OK);
		for (uint32_t i = 0; i < g->nnodes; i++) {
			const uint64_t bit = UINT64_C(1) << (k * groups + device[i] / (t / groups));
			for (uint8_t j = 0; j < g->node[i].nin; j++)
				*readers |= shown(g, g->node[i].in[j]) == g->param[param].value ? bit : 0;
			/* one a use of a tied one */
			for (uint32_t n = 0; n < layout->ngrads; n++) {
				const uint32_t grad = layout->grad_param[n] == param ? hd_graph_grad(g, n) :
					HD_NONE;
				*makers |= grad != HD_NONE && g->value[shown(g, grad)].node == i ? bit : 0;
			}
		}
	}
}

struct seen { uint32_t apart, both; };

static void check_groups(int m, uint32_t n, uint32_t groups, struct seen *seen)
{
	struct hd_subject s;
	struct hd_layout layout;
	struct hd_stage_buckets table;
	struct hd_graph_stages cuts;
	struct hd_graph_spread spread;

	hd_subject_model(&s, models[m].model, models[m].arg, models[m].nargs, (struct hd_model_opts){ 0 });
	CHECK(hd_graph_shard(&s.graph, 4, m == 2, &s.diag) == HD_OK &&
		hd_graph_autodiff(&s.graph, &s.diag) == HD_OK &&
		hd_layout_make(&layout, &s.graph, &s.arena, &s.diag) == HD_OK, "%s", s.diag.text);
	cut(&s, &cuts, n);
	CHECK(hd_graph_spread_make(&spread, &cuts, 4, 4, groups, &s.arena, &s.diag) == HD_OK, "%s",
		s.diag.text);
	assert_int_equal(hd_stage_buckets_make(&table, &layout, &cuts, &spread, &s.arena, &s.diag), HD_OK);
	assert_int_equal(table.nstages, n * groups);
	for (uint32_t b = 0; b < table.n; b++) {
		const struct hd_chunk is = hd_layout_bucket(&layout, b);
		const struct hd_stage_bucket *at = &table.at[b];
		uint64_t makers = 0, readers = 0;
		for (uint32_t i = is.first_segment; i < is.first_segment + is.nsegments; i++)
			add_of_groups(&makers, &readers, &cuts, &layout, 4, groups, layout.segment[i].param,
				&s);
		CHECK(at->makers == makers && at->readers == (makers | readers) &&
			at->stage == (uint32_t)__builtin_ctzll(makers), "%s, %u stages, %u groups: bucket %u",
			models[m].model, n, groups, b);
		seen->apart += (makers & (makers - 1)) == 0;
		seen->both += (readers & (readers - 1)) != 0;
	}
	assert_int_equal(hd_graph_spread_make(&spread, &cuts, 4, 4, 3, &s.arena, &s.diag), HD_E_INVAL);
	hd_subject_finish(&s);
}

static void substages_of_groups_are_stages_of_their_own(void **state)
{
	struct seen seen = { 0 };

	(void)state;
	for (uint32_t n = 1; n <= 2; n++)
		for (uint32_t groups = 2; groups <= 4; groups *= 2)
			for (int m = 0; m < NMODELS; m += 2)      /* mlp, and gpt, whose nodes read views */
				check_groups(m, n, groups, &seen);
	assert_true(seen.apart && seen.both);
}

/* A group holds 1/groups of what is split, what is whole, and a bucket at each end of either. */
static void a_group_holds_its_slices_alone(void **state)
{
	static const struct hd_model_arg wide[] = { { "layers", "2" }, { "width", "256" }, { "heads", "4" },
		{ "context", "16" }, { "vocab", "8192" } };
	const uint64_t bucket = HD_BUCKET_CHUNKS * HD_CHUNK_ELEMS;

	(void)state;
	for (uint32_t groups = 2; groups <= 4; groups *= 2) {
		struct hd_subject s;
		struct hd_layout layout;
		struct hd_stage_buckets table;
		struct hd_graph_stages cuts;
		struct hd_graph_spread spread;
		uint64_t split = 0, held[4] = { 0 };
		hd_subject_model(&s, "gpt", wide, 5, (struct hd_model_opts){ 0 });
		CHECK(hd_graph_shard(&s.graph, 4, false, &s.diag) == HD_OK &&
			hd_graph_autodiff(&s.graph, &s.diag) == HD_OK &&
			hd_layout_make(&layout, &s.graph, &s.arena, &s.diag) == HD_OK, "%s", s.diag.text);
		cut(&s, &cuts, 1);
		CHECK(hd_graph_spread_make(&spread, &cuts, 4, 4, groups, &s.arena, &s.diag) == HD_OK &&
			hd_stage_buckets_make(&table, &layout, &cuts, &spread, &s.arena, &s.diag) == HD_OK,
			"%s", s.diag.text);
		for (uint32_t p = 0; p < layout.nparams; p++)
			split += s.graph.param[p].slice.n > 1 ? layout.len[p] : 0;
		assert_true(split > layout.elems / 100 * 99);
		for (uint32_t b = 0; b < table.n; b++)
			for (uint32_t g = 0; g < groups; g++)
				if (table.at[b].readers >> g & 1)
					held[g] += hd_layout_bucket(&layout, b).len;
		for (uint32_t g = 0; g < groups; g++)
			CHECK(held[g] <= split / groups + (layout.elems - split) + 3 * bucket &&
				held[g] < layout.elems / 100 * (groups == 2 ? 60 : 45),
				"group %u of %u holds %llu of %llu", g, groups, (unsigned long long)held[g],
				(unsigned long long)layout.elems);
		hd_subject_finish(&s);
	}
}

/* By places in the flat vector: the buckets that have an element of any slice. */
static uint32_t spans(bool *in, const struct hd_layout *layout, const struct hd_graph *g,
	const struct hd_wholes *wholes, uint32_t tensor)
{
	uint32_t n = 0;

	for (uint32_t b = 0; b < hd_layout_nbuckets(layout); b++) {
		const struct hd_chunk is = hd_layout_bucket(layout, b);
		in[b] = false;
		for (uint32_t p = 0; p < g->nparams; p++)
			in[b] |= !strcmp(hd_whole_name(g, p), hd_whole_name(g,
				wholes->param[wholes->first[tensor]])) &&
				layout->at[p] < is.at + is.len && layout->at[p] + layout->len[p] > is.at;
		n += in[b];
	}
	return n;
}

static void a_tensor_lies_in_the_buckets_of_its_elements(void **state)
{
	uint32_t many = 0, split = 0;

	(void)state;
	for (int m = 0; m < NMODELS; m++)
		for (uint32_t shards = 1; shards <= 4; shards += 3) {
			struct hd_subject s;
			struct hd_layout layout;
			struct hd_wholes wholes;
			struct hd_bucket_tensors t;
			bool in[64];
			uint32_t found = 0;
			if (shards > 1 && m == 1)
				continue;
			hd_subject_model(&s, models[m].model, models[m].arg, models[m].nargs,
				(struct hd_model_opts){ 0 });
			CHECK((shards == 1 || !hd_graph_shard(&s.graph, shards, false, &s.diag)) &&
				!hd_graph_autodiff(&s.graph, &s.diag) &&
				!hd_layout_make(&layout, &s.graph, &s.arena, &s.diag) &&
				!hd_wholes_make(&wholes, &s.graph, &s.arena, &s.diag) &&
				!hd_bucket_tensors_make(&t, &layout, &wholes, &s.arena, &s.diag), "%s",
					s.diag.text);
			assert_in_range(hd_layout_nbuckets(&layout), 1, 64);
			for (uint32_t i = 0; i < wholes.n; i++) {
				if (spans(in, &layout, &s.graph, &wholes, i) < 2)
					continue;
				assert_true(found < t.n);
				uint32_t k = t.first[found];
				for (uint32_t b = 0; b < hd_layout_nbuckets(&layout); b++)
					if (in[b])
						CHECK(k < t.first[found + 1] && t.bucket[k++] == b,
							"%s in %u: tensor %u, bucket %u", models[m].model,
								shards, i, b);
				assert_int_equal(k, t.first[found + 1]);
				many++;
				split += hd_whole_slices(&wholes, i) > 1;
				found++;
			}
			assert_int_equal(found, t.n);
			hd_subject_finish(&s);
		}
	assert_true(many > split && split > 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(substages_of_groups_are_stages_of_their_own),
		cmocka_unit_test(a_group_holds_its_slices_alone),
		cmocka_unit_test(of_one_stage_all_is_that_stage_s),
		cmocka_unit_test(masks_name_all_stages_of_what_a_bucket_holds),
		cmocka_unit_test(makers_of_a_run_are_those_of_what_lies_in_it),
		cmocka_unit_test(more_stages_than_bits_are_refused),
		cmocka_unit_test(a_tensor_lies_in_the_buckets_of_its_elements),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
