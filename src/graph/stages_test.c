#include "graph/stages.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "graph/testing.h"
#include "tests/check.h"

/* Models with what a cut may separate: a tied weight, skips, dropout, a residual stream. */
static const struct { const char *model; struct hd_model_arg arg[4]; uint32_t nargs; } models[] = {
	{ "mlp", { { "hidden", "[8, 8]" }, { "act", "gelu" } }, 2 },
	{ "lenet", { { 0 } }, 0 },
	{ "gpt", { { "layers", "3" }, { "width", "8" }, { "context", "4" }, { "dropout", "0.1" } }, 4 },
	{ "resnet18", { { "stem", "small" }, { "height", "8" }, { "width", "8" }, { "base", "2" } }, 4 },
};
enum { NMODELS = sizeof models / sizeof models[0], ROWS = 16 };

static void make(struct hd_subject *s, int m)
{
	hd_subject_model(s, models[m].model, models[m].arg, models[m].nargs, (struct hd_model_opts){ 0 });
	CHECK(s->err == HD_OK, "%s: %s", models[m].model, s->diag.text);
	assert_int_equal(hd_graph_optimize(&s->graph, ROWS, &s->diag), HD_OK);
	CHECK(hd_graph_autodiff(&s->graph, &s->diag) == HD_OK, "%s", s->diag.text);
}

/* Counted apart from the code: a node that reads something and is of a stage finds it in that stage, or in
 * what crosses to it. */
static void check_reads(const struct hd_graph_stages *s)
{
	const struct hd_graph *g = s->whole;

	for (uint32_t i = 0; i < g->nnodes; i++)
		for (uint8_t k = 0; k < g->node[i].nin; k++) {
			uint32_t v = g->node[i].in[k], at = s->of_node[i];
			if (g->value[v].kind != HD_TEMP || s->of_node[g->value[v].node] == at)
				continue;
			bool forward = g->value[v].node < g->nforward;
			for (uint32_t b = at; b != s->of_node[g->value[v].node]; b += forward ? -1u : 1) {
				const struct hd_crossing *c = forward ? &s->act[b - 1] : &s->grad[b];
				uint32_t found = 0;
				for (uint32_t j = 0; j < c->n; j++)
					found += c->value[j] == v;
				CHECK(found == 1,
					"node %u reads value %u, which crosses %u times at stage %u",
					i, v, found, b);
			}
		}
}

/* Does the stage send what gradient node i makes, or what is made from it there? Nodes of the whole graph. */
static bool is_for_others(const struct hd_graph_stages *s, uint32_t i)
{
	const struct hd_graph *g = s->whole;
	const uint32_t at = s->of_node[i], out = g->node[i].out, end = out + g->node[i].nout;

	for (uint32_t k = 0; at && k < s->grad[at - 1].n; k++)
		if (s->grad[at - 1].value[k] >= out && s->grad[at - 1].value[k] < end)
			return true;
	for (uint32_t j = i + 1; j < g->nnodes; j++)
		for (uint8_t k = 0; s->of_node[j] == at && k < g->node[j].nin; k++)
			if (g->node[j].in[k] >= out && g->node[j].in[k] < end && is_for_others(s, j))
				return true;
	return false;
}

/* Rule 5, and that nothing else moves. */
static void check_phases(const struct hd_graph_stages *s)
{
	const struct hd_graph *g = s->whole;

	for (uint32_t k = 0; k < s->n; k++)
		for (uint32_t i = 0, at = 0; i < g->nnodes; i++) {
			if (s->of_node[i] != k)
				continue;
			enum hd_phase was = g->node[i].phase, is = s->stage[k].graph.node[at++].phase;
			enum hd_phase want = i >= g->nforward && is_for_others(s, i) ? HD_PHASE_I : was;
			CHECK(is == want, "node %u of stage %u is of phase %d, not %d", i, k, (int)is,
				(int)want);
		}
}

/* Of values a stage has its state, what its nodes make, and of the rest what its nodes read and what comes
 * from its neighbours: once. */
static void check_values(const struct hd_graph_stages *s, uint32_t k)
{
	const struct hd_graph *g = s->whole;
	const struct hd_graph_stage *stage = &s->stage[k];
	uint32_t nread[2] = { 0, 0 }, made = 0;

	for (uint32_t v = 0; v < g->nvalues; v++) {
		uint32_t reads = 0;
		for (uint32_t i = 0; i < g->nnodes; i++)
			for (uint8_t j = 0; s->of_node[i] == k && j < g->node[i].nin; j++)
				reads += g->node[i].in[j] == v;
		nread[0] += g->value[v].kind == HD_INPUT && reads;
		nread[1] += g->value[v].kind == HD_CONST && reads;
		made += g->value[v].kind == HD_TEMP && s->of_node[g->value[v].node] == k;
	}
	assert_int_equal(stage->ndata, nread[0]);
	assert_int_equal(stage->graph.nvalues, g->nparams + g->nbuffers + nread[0] + nread[1] +
		stage->nact_in +
		stage->ngrad_in + made);
	for (uint32_t p = 0; p < g->nparams; p++) {
		uint32_t grad = stage->graph.value[stage->graph.param[p].value].grad;
		CHECK(stage->learns[p] == (grad != HD_NONE), "parameter %u of stage %u", p, k);
		CHECK(!g->param[p].frozen || !stage->learns[p], "parameter %u learns in stage %u", p, k);
	}
	for (uint32_t i = 0; i < stage->graph.nrunning; i++)
		assert_int_equal(s->of_node[g->value[g->running[stage->running[i]].moments].node], k);
}

static void check_whole(const struct hd_graph_stages *s)
{
	uint32_t nodes = 0, learned = 0, nrunning = 0, noutputs = 0;
	struct hd_diag diag = { "" };

	for (uint32_t k = 0; k < s->n; k++) {
		const struct hd_graph_stage *stage = &s->stage[k];
		CHECK(hd_graph_verify(&stage->graph, ROWS, &diag) == HD_OK, "stage %u: %s", k, diag.text);
		nodes += stage->graph.nnodes;
		nrunning += stage->graph.nrunning;
		assert_int_equal(stage->graph.ninputs, stage->ndata + stage->nact_in + stage->ngrad_in);
		assert_int_equal(stage->nact_in, k ? s->act[k - 1].n : 0);
		assert_int_equal(stage->ngrad_in, k + 1 < s->n ? s->grad[k].n : 0);
		check_values(s, k);
		for (uint32_t g = 0; g < hd_graph_ngrads(s->whole); g++)
			learned += stage->learns[g];
		for (const char *const *name = (const char *const[]){ "loss", "weight", "correct",
			NULL }; *name; name++)
			noutputs += hd_graph_find_output(&stage->graph, *name) != HD_NONE;
	}
	assert_int_equal(nodes, s->whole->nnodes);
	assert_int_equal(learned, hd_graph_ngrads(s->whole));
	assert_int_equal(nrunning, s->whole->nrunning);
	assert_int_equal(noutputs, 3);
}

static void every_node_is_in_one_stage_and_each_stage_verifies(void **state)
{
	(void)state;
	for (int m = 0; m < NMODELS; m++) {
		struct hd_subject s;
		make(&s, m);
		for (uint32_t n = 1; n <= 16; n += n < 5 ? 1 : 11) {
			struct hd_graph_stages stages;
			uint32_t first[16];
			if (n > s.graph.nforward)
				continue;
			CHECK(hd_graph_stages_balance(first, n, &s.graph, ROWS, &s.arena, &s.diag) == HD_OK,
				"%s", s.diag.text);
			CHECK(hd_graph_stages_make(&stages, &s.graph, first, n, &s.arena, &s.diag) == HD_OK,
				"%s in %u: %s", models[m].model, n, s.diag.text);
			check_reads(&stages);
			check_whole(&stages);
			check_phases(&stages);
		}
		hd_subject_finish(&s);
	}
}

/* Three copies have three parts of the FLOPs: the cut is where the fourth of four even stages begins. */
static void stages_with_copies_have_as_many_parts(void **state)
{
	static const uint32_t copies[] = { 3, 1 }, even[] = { 1, 1, 1, 1 };
	struct hd_subject s;
	uint32_t two[2], four[4], same[4];

	(void)state;
	make(&s, 2);
	CHECK(!hd_graph_stages_share(two, copies, 2, &s.graph, ROWS, &s.arena, &s.diag) &&
		!hd_graph_stages_balance(four, 4, &s.graph, ROWS, &s.arena, &s.diag) &&
		!hd_graph_stages_share(same, even, 4, &s.graph, ROWS, &s.arena, &s.diag), "%s", s.diag.text);
	CHECK(two[0] == 0 && two[1] == four[3], "%u, not %u", two[1], four[3]);
	assert_memory_equal(four, same, sizeof four);
	hd_subject_finish(&s);
}

/* Anywhere, also inside of a block: two cuts at each pair of some places. */
static void a_cut_may_lie_between_any_two_nodes(void **state)
{
	(void)state;
	for (int m = 0; m < NMODELS; m++) {
		struct hd_subject s;
		make(&s, m);
		for (uint32_t a = 1; a + 1 < s.graph.nforward; a++) {
			struct hd_graph_stages stages;
			const uint32_t first[3] = { 0, a, a + 1 + (a * 7) % (s.graph.nforward - a - 1) };
			CHECK(hd_graph_stages_make(&stages, &s.graph, first, 3, &s.arena, &s.diag) == HD_OK,
				"%s: %s", models[m].model, s.diag.text);
			check_reads(&stages);
			check_whole(&stages);
		}
		hd_subject_finish(&s);
	}
}

/* The head reads the table of the embedding: each makes its part of the gradient, and nothing of that shape
 * crosses a boundary. */
static void the_parts_of_a_tied_weight_stay_where_it_is_used(void **state)
{
	struct hd_subject s;
	struct hd_graph_stages stages;
	uint32_t first[3];

	(void)state;
	make(&s, 2);
	assert_int_equal(hd_graph_stages_balance(first, 3, &s.graph, ROWS, &s.arena, &s.diag), HD_OK);
	assert_int_equal(hd_graph_stages_make(&stages, &s.graph, first, 3, &s.arena, &s.diag), HD_OK);
	assert_int_equal(s.graph.nparts, 1);
	assert_int_equal(s.graph.part[0].param, 0);
	assert_int_equal(stages.of_grad[0], 2);
	assert_int_equal(stages.of_grad[s.graph.nparams], 0);
	assert_true(stages.stage[2].learns[0] && stages.stage[0].learns[s.graph.nparams]);
	assert_false(stages.stage[0].learns[0] || stages.stage[2].learns[s.graph.nparams]);
	for (uint32_t b = 0; b < 2; b++)
		for (uint32_t i = 0; i < stages.grad[b].n; i++)
			assert_false(hd_dims_same(&s.graph.value[stages.grad[b].value[i]],
				&s.graph.value[s.graph.param[0].value]));
	check_phases(&stages);
	hd_subject_finish(&s);
}

/* `wide` values of one node are made by each of so many; the loss reads them all. */
static void make_wide(struct hd_subject *s, uint32_t wide)
{
	static char text[16384];
	size_t at = (size_t)snprintf(text, sizeof text,
		"graph wide\ninput x f32 [*,4]\ninput y i32 [*]\nparam w f32 [4,4] ones\n"
		"%%0 = matmul x w : f32 [*,4]\n");

	for (uint32_t i = 1; i <= wide; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%%%u = act %%0 act=gelu : f32 [*,4]\n",
			i);
	for (uint32_t i = 1; i < wide; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%%%u = mul %%%u %%%u : f32 [*,4]\n",
			wide + i,
			i == 1 ? 1 : wide + i - 1, i + 1);
	uint32_t top = 2 * wide - 1;
	snprintf(text + at, sizeof text - at,
		"%%%u,%%%u,%%%u = softmax_xent %%%u y : f32 [*], f32 [*], f32 [*]\n"
		"%%%u = sum64 %%%u : f64 [1]\n%%%u = count64 y : f64 [1]\n%%%u = sum64 %%%u : f64 [1]\n"
		"output loss %%%u\noutput weight %%%u\noutput correct %%%u\n", top + 1, top + 2, top + 3,
			top, top + 4,
		top + 1, top + 5, top + 6, top + 3, top + 4, top + 5, top + 6);
	hd_subject_parse(s, text);
	CHECK(s->err == HD_OK, "%s", s->diag.text);
	CHECK(hd_graph_autodiff(&s->graph, &s->diag) == HD_OK, "%s", s->diag.text);
}

/* 64 at a boundary; 64 that a stage reads or makes, with the fields and the sums that the model has. */
static void no_more_crosses_than_a_graph_has_ends_for(void **state)
{
	static const struct { uint32_t wide; const char *words; } rows[] = {
		{ HD_MAX_ENDS + 1, "more than 64 values cross from stage 0 to stage 1" },
		{ HD_MAX_ENDS, "reads more than 64 values of its neighbours" },
		{ HD_MAX_ENDS - 2, "stage 1 makes more than 64 values for its neighbours" },
		{ HD_MAX_ENDS - 3, NULL } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_graph_stages stages = { .n = 77 };
		const uint32_t first[2] = { 0, rows[i].wide + 1 };
		struct hd_subject s;
		make_wide(&s, rows[i].wide);
		enum hd_err err = hd_graph_stages_make(&stages, &s.graph, first, 2, &s.arena, &s.diag);
		CHECK(err == (rows[i].words ? HD_E_INVAL : HD_OK) &&
			(!rows[i].words || strstr(s.diag.text, rows[i].words)), "%u values: %d %s",
				rows[i].wide, (int)err,
			s.diag.text);
		assert_int_equal(stages.n, err ? 77 : 2);
		if (!err) {
			check_whole(&stages);
			EACH_PIECE_REFUSED(err, hd_graph_stages_make(&stages, &s.graph, first, 2, &s.arena,
				&s.diag));
		}
		hd_subject_finish(&s);
	}
}

static void what_is_frozen_learns_in_no_stage(void **state)
{
	struct hd_subject s;
	struct hd_graph_stages stages;
	uint32_t first[3];

	(void)state;
	hd_subject_model(&s, models[0].model, models[0].arg, models[0].nargs, (struct hd_model_opts){ 0 });
	s.graph.param[0].frozen = s.graph.param[s.graph.nparams - 1].frozen = true;
	assert_int_equal(hd_graph_autodiff(&s.graph, &s.diag), HD_OK);
	assert_int_equal(hd_graph_stages_balance(first, 3, &s.graph, ROWS, &s.arena, &s.diag), HD_OK);
	assert_int_equal(hd_graph_stages_make(&stages, &s.graph, first, 3, &s.arena, &s.diag), HD_OK);
	for (uint32_t k = 0; k < 3; k++)
		check_values(&stages, k);
	hd_subject_finish(&s);
}

static void a_constant_that_two_nodes_read_is_one_value(void **state)
{
	static const char text[] =
		"graph twice\ninput x f32 [*,2]\ninput y i32 [*]\nparam w f32 [2,2] ones\n"
		"const $0 f32 [2] 1 2\n"
		"%0 = matmul x w : f32 [*,2]\n"
		"%1,%2 = bias_act %0 $0 axis=-1 act=gelu : f32 [*,2], f32 [*,2]\n"
		"%3,%4 = bias_act %1 $0 axis=-1 act=gelu : f32 [*,2], f32 [*,2]\n"
		"%5,%6,%7 = softmax_xent %3 y : f32 [*], f32 [*], f32 [*]\n"
		"%8 = sum64 %5 : f64 [1]\n%9 = count64 y : f64 [1]\n"
		"%10 = sum64 %7 : f64 [1]\noutput loss %8\noutput weight %9\noutput correct %10\n";
	struct hd_subject s;
	struct hd_graph_stages stages;

	(void)state;
	hd_subject_parse(&s, text);
	CHECK(s.err == HD_OK, "%s", s.diag.text);
	CHECK(hd_graph_autodiff(&s.graph, &s.diag) == HD_OK, "%s", s.diag.text);
	assert_int_equal(hd_graph_stages_make(&stages, &s.graph, (const uint32_t[]){ 0, 3 }, 2, &s.arena,
		&s.diag), HD_OK);
	check_whole(&stages);
	hd_subject_finish(&s);
}

/* One that no model has and no check refuses: a field that goes out as it came in. */
static void an_output_that_no_node_makes_is_of_no_stage(void **state)
{
	struct hd_subject s;
	struct hd_graph_stages stages;
	uint32_t first[3], noutputs = 0;

	(void)state;
	make(&s, 0);
	s.graph.output[s.graph.noutputs++] = (struct hd_output){ s.graph.value[s.graph.input[0]].name,
		s.graph.input[0] };
	assert_int_equal(hd_graph_stages_balance(first, 3, &s.graph, ROWS, &s.arena, &s.diag), HD_OK);
	assert_int_equal(hd_graph_stages_make(&stages, &s.graph, first, 3, &s.arena, &s.diag), HD_OK);
	for (uint32_t k = 0; k < 3; k++)
		noutputs += stages.stage[k].graph.noutputs;
	assert_int_equal(noutputs, s.graph.noutputs - 1 + stages.act[0].n + stages.act[1].n +
		stages.grad[0].n +
		stages.grad[1].n);
	hd_subject_finish(&s);
}

/* A gradient node that is said to belong to an early node and reads what a later one makes. */
static void data_that_flow_the_wrong_way_are_found(void **state)
{
	struct hd_subject s;
	struct hd_graph_stages stages = { .n = 77 };
	uint32_t first[3], moved = 0;

	(void)state;
	make(&s, 0);
	assert_int_equal(hd_graph_stages_balance(first, 3, &s.graph, ROWS, &s.arena, &s.diag), HD_OK);
	for (uint32_t i = s.graph.nforward; i < s.graph.nnodes && !moved; i++)
		for (uint8_t k = 0; k < s.graph.node[i].nin; k++) {
			const struct hd_value *v = &s.graph.value[s.graph.node[i].in[k]];
			if (v->kind == HD_TEMP && v->node < s.graph.nforward && v->node >= first[1])
				moved = i;
		}
	assert_true(moved);
	s.graph.node[moved].of = 0;
	assert_int_equal(hd_graph_stages_make(&stages, &s.graph, first, 3, &s.arena, &s.diag), HD_E_BUG);
	assert_non_null(strstr(s.diag.text, "the wrong way"));
	assert_int_equal(stages.n, 77);
	hd_subject_finish(&s);
}

static void without_memory_there_are_no_stages(void **state)
{
	(void)state;
	for (int m = 0; m < NMODELS; m++) {
		struct hd_graph_stages stages;
		struct hd_subject s;
		uint32_t first[3];
		enum hd_err err;
		make(&s, m);
		EACH_PIECE_REFUSED(err, hd_graph_stages_balance(first, 3, &s.graph, ROWS, &s.arena, &s.diag));
		EACH_PIECE_REFUSED(err, hd_graph_stages_make(&stages, &s.graph, first, 3, &s.arena, &s.diag));
		check_whole(&stages);
		hd_subject_finish(&s);
	}
}

static void stages_that_are_none_are_refused(void **state)
{
	static const struct { uint32_t first[3], n; const char *words; } bad[] = {
		{ { 1, 2 }, 2, "stage 0 begins at node 1" },
		{ { 0, 3, 3 }, 3, "stage 2 begins at node 3" },
		{ { 0, 9999 }, 2, "stage 1 begins at node 9999" },
		{ { 0 }, 0, "0 stages" },
		{ { 0, 1 }, HD_MAX_STAGES + 1, "4097 stages" },
	};
	struct hd_graph_stages stages;
	struct hd_subject s;
	uint32_t first[3];

	(void)state;
	make(&s, 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_diag diag = { "" };
		assert_int_equal(hd_graph_stages_make(&stages, &s.graph, bad[i].first, bad[i].n, &s.arena,
			&diag), HD_E_INVAL);
		CHECK(strstr(diag.text, bad[i].words), "%s", diag.text);
	}
	for (uint32_t n = 0; n <= s.graph.nforward + 1; n += s.graph.nforward + 1)
		assert_int_equal(hd_graph_stages_balance(first, n, &s.graph, ROWS, &s.arena, &s.diag),
			HD_E_INVAL);
	hd_subject_finish(&s);
	hd_subject_model(&s, models[0].model, models[0].arg, models[0].nargs, (struct hd_model_opts){ 0 });
	assert_int_equal(hd_graph_stages_make(&stages, &s.graph, (const uint32_t[]){ 0, 1 }, 2, &s.arena,
		&s.diag),
		HD_E_INVAL);
	assert_non_null(strstr(s.diag.text, "2 stages of a graph with 0 gradient nodes"));
	hd_subject_finish(&s);
}

static void balance_gives_no_stage_far_more_than_its_share(void **state)
{
	struct hd_subject s;
	uint32_t first[3];

	(void)state;
	make(&s, 2);
	assert_int_equal(hd_graph_stages_balance(first, 3, &s.graph, ROWS, &s.arena, &s.diag), HD_OK);
	for (uint32_t k = 0; k < 3; k++) {
		double own = 0, all = 0;
		for (uint32_t i = 0; i < s.graph.nnodes; i++) {
			uint32_t at = i < s.graph.nforward ? i : s.graph.node[i].of;
			double flops = hd_ops[s.graph.node[i].op].cost(&s.graph, &s.graph.node[i],
				ROWS).flops;
			all += flops;
			own += at >= first[k] && (k == 2 || at < first[k + 1]) ? flops : 0;
		}
		CHECK(own < all / 3 * 1.7, "stage %u has %.0f of %.0f", k, own, all);
	}
	hd_subject_finish(&s);
}

/* Bytes that cross before forward node i, by their definition. */
static double crossing_at(const struct hd_graph *g, uint32_t i)
{
	double bytes = 0;

	for (uint32_t v = 0; v < g->nvalues; v++) {
		bool later = false;
		if (g->value[v].kind != HD_TEMP || g->value[v].node >= i)
			continue;
		for (uint32_t r = i; r < g->nforward && !later; r++)
			for (uint8_t k = 0; k < g->node[r].nin; k++)
				later |= g->node[r].in[k] == v;
		bytes += later ? (double)hd_value_bytes(&g->value[v], ROWS) : 0;
	}
	return bytes;
}

static double work_before(const struct hd_graph *g, uint32_t end)
{
	double work = 0;

	for (uint32_t i = 0; i < g->nnodes; i++) {
		struct hd_cost cost = hd_ops[g->node[i].op].cost(g, &g->node[i], ROWS);
		if ((i < g->nforward ? i : g->node[i].of) < end)
			work += cost.flops > cost.bytes / 4 ? cost.flops : cost.bytes / 4;
	}
	return work;
}

/* Of the places within an eighth of a stage of the equal share the first at which the fewest bytes cross. */
static void a_cut_is_where_little_crosses(void **state)
{
	(void)state;
	for (int m = 0; m < NMODELS; m++) {
		struct hd_subject s;
		uint32_t first[6];
		make(&s, m);
		const struct hd_graph *g = &s.graph;
		for (uint32_t n = 2; n <= 6; n++) {
			double stage = work_before(g, g->nforward) / n;
			assert_int_equal(hd_graph_stages_balance(first, n, g, ROWS, &s.arena, &s.diag),
				HD_OK);
			for (uint32_t k = 1; k < n; k++) {
				uint32_t best = 0;
				for (uint32_t i = first[k - 1] + 1; i < g->nforward - (n - 1 - k); i++) {
					double off = work_before(g, i) - stage * k;
					if ((off < 0 ? -off : off) <= stage / 8 &&
						(!best || crossing_at(g, i) < crossing_at(g, best)))
						best = i;
				}
				CHECK(!best || first[k] == best, "%s in %u: stage %u from %u, not %u",
					models[m].model, n, k, first[k], best);
			}
		}
		hd_subject_finish(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_node_is_in_one_stage_and_each_stage_verifies),
		cmocka_unit_test(stages_with_copies_have_as_many_parts),
		cmocka_unit_test(a_cut_may_lie_between_any_two_nodes),
		cmocka_unit_test(the_parts_of_a_tied_weight_stay_where_it_is_used),
		cmocka_unit_test(no_more_crosses_than_a_graph_has_ends_for),
		cmocka_unit_test(what_is_frozen_learns_in_no_stage),
		cmocka_unit_test(a_constant_that_two_nodes_read_is_one_value),
		cmocka_unit_test(an_output_that_no_node_makes_is_of_no_stage),
		cmocka_unit_test(data_that_flow_the_wrong_way_are_found),
		cmocka_unit_test(without_memory_there_are_no_stages),
		cmocka_unit_test(a_cut_is_where_little_crosses),
		cmocka_unit_test(stages_that_are_none_are_refused),
		cmocka_unit_test(balance_gives_no_stage_far_more_than_its_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
