/* Phases of graph networks: literally the sequences of the specification, and what is in them. */
#include "plan/separate.h"

#include <string.h>

#include "graph/autodiff.h"
#include "graph/domain.h"
#include "graph/model.h"
#include "graph/op.h"
#include "graph/pass.h"
#include "tests/check.h"

struct made { struct hd_arena arena; struct hd_graph graph; struct hd_phase_list list; struct hd_diag diag;
	char text[1024]; };

static void build(struct made *m, const char *model, const struct hd_model_arg *arg, uint32_t nargs,
	bool gradient,
	bool optimize)
{
	const struct hd_model_opts opts = { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_SAMPLE };

	hd_arena_init(&m->arena, 0);
	hd_graph_init(&m->graph, &m->arena);
	m->diag.text[0] = '\0';
	CHECK(hd_model_build(&m->graph, model, arg, nargs, &opts, &m->diag) == HD_OK, "%s", m->diag.text);
	CHECK(!optimize || hd_graph_optimize(&m->graph, 1, &m->diag) == HD_OK, "%s", m->diag.text);
	CHECK(!gradient || hd_graph_autodiff(&m->graph, &m->diag) == HD_OK, "%s", m->diag.text);
}

static const char *phases(struct made *m)
{
	struct hd_text text;

	CHECK(hd_separate(&m->list, &m->graph, &m->arena, &m->diag) == HD_OK, "%s", m->diag.text);
	hd_text_fixed(&text, m->text, sizeof m->text);
	hd_phase_list_print(&m->list, &text);
	return m->text;
}

#define SMALL { "input", "30" }, { "hidden", "8" }, { "classes", "3" }
static const struct { const char *model; struct hd_model_arg arg[6]; uint32_t nargs; bool gradient;
	const char *want; } cases[] = {
	{ "gcn", { SMALL }, 3, true, "AV SC GA AV SC GA AV^ SCB GAB AVB SCB GAB AVB WU" },
	{ "gcn", { SMALL, { "order", "gather" }, { "dropout", "0" } }, 5, true, "GA AV SC GA AV^ SCB GAB AVB WU" },
	{ "gcn", { SMALL, { "layers", "3" }, { "norm", "none" } }, 5, true,
	  "AV SC GA AV SC GA AV SC GA AV^ SCB GAB AVB SCB GAB AVB SCB GAB AVB WU" },
	{ "gat", { SMALL }, 3, true,
	  "AV SC AE GA AV SC AE GA AV^ AEB(in-edges) SCB AEB+GAB(out-edges) AVB AEB(in-edges) SCB "
	"AEB+GAB(out-edges) AVB WU" },
	{ "sage-mean", { SMALL }, 3, true, "AV SC GA AV SC GA AV^ SCB GAB AVB SCB GAB AVB WU" },
	{ "gcn", { SMALL }, 3, false, "AV SC GA AV SC GA AV^" },
	{ "gat", { SMALL }, 3, false, "AV SC AE GA AV SC AE GA AV^" },
	{ "mlp", { { "input", "[9]" } }, 1, true, "AV^ WU" },
};

static void phases_are_those_of_the_specification(void **state)
{
	(void)state;
	for (size_t k = 0; k < 2 * (sizeof cases / sizeof *cases); k++) {
		size_t i = k / 2;
		struct made m;
		build(&m, cases[i].model, cases[i].arg, cases[i].nargs, cases[i].gradient, k % 2);
		CHECK(strcmp(phases(&m), cases[i].want) == 0, "%s: %s\nwant %s", cases[i].model, m.text,
			cases[i].want);
		hd_arena_finish(&m.arena);
	}
}

/* What each phase reads is made before it: by an earlier phase, or earlier in its own. Counted again here,
 * from the
 * graph alone. */
static void every_node_is_once_in_a_phase_or_bound(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct made m;
		build(&m, cases[i].model, cases[i].arg, cases[i].nargs, cases[i].gradient, false);
		(void)phases(&m);
		uint32_t *times = hd_arena_take(&m.arena, m.graph.nnodes, sizeof *times), *where =
			hd_arena_take(&m.arena,
			m.graph.nnodes, sizeof *where), total = 0;
		for (uint32_t k = 0; k < m.list.nitems; k++) {
			const struct hd_phase_item *it = &m.list.item[k];
			if (it->kind == HD_PHASE_SC || it->kept || it->again)
				continue;
			times[m.graph.value[it->value].node]++;
			where[m.graph.value[it->value].node] = k + 1;
		}
		for (uint32_t n = 0; n < m.graph.nnodes; n++) {
			const struct hd_node *node = &m.graph.node[n];
			CHECK(times[n] <= 1, "%s: node %u is there %u times", cases[i].model, n, times[n]);
			total += times[n];
			for (int k = 0; k < node->nin && times[n]; k++) {
				const struct hd_value *v = &m.graph.value[node->in[k]];
				if (v->kind == HD_TEMP && where[v->node])
					CHECK(where[v->node] < where[n],
						"%s: node %u comes before what it reads",
						cases[i].model, n);
			}
		}
		CHECK(total > 0 && total >= m.graph.nnodes / 2, "%s: %u of %u", cases[i].model, total,
			m.graph.nnodes);
		for (uint32_t p = 0; p + 1 < m.list.nphases; p++)
			CHECK(m.list.phase[p + 1].first == m.list.phase[p].first + m.list.phase[p].n,
				"phase %u", p);
		hd_arena_finish(&m.arena);
	}
}

/* Attention backward: the row that is sent is the gradient, the score of the target, what its softmax
 * keeps, and the
 * sum of its gradient. */
static void attention_sends_rows_of_vertices_alone(void **state)
{
	struct made m;
	uint8_t *domain;
	uint32_t sent = 0, kept = 0;

	(void)state;
	build(&m, "gat", cases[3].arg, cases[3].nargs, true, false);
	(void)phases(&m);
	domain = hd_arena_take(&m.arena, m.graph.nvalues, 1);
	CHECK(hd_graph_domains(&m.graph, domain, &m.diag) == HD_OK, "%s", m.diag.text);
	for (uint32_t p = 0; p < m.list.nphases; p++)
		for (uint32_t k = m.list.phase[p].first; k < m.list.phase[p].first + m.list.phase[p].n; k++) {
			const struct hd_phase_item *it = &m.list.item[k];
			if (it->kind != HD_PHASE_SC)
				continue;
			CHECK(it->kept || domain[it->value] == HD_DOMAIN_V, "value %u of edges is sent",
				it->value);
			if (p <= 10 && m.list.phase[p].backward)        /* of the last layer */
				sent++, kept += it->kept;
		}
	CHECK(sent == 4 && kept == 2, "%u rows, %u of them kept by softmax", sent, kept);
	hd_arena_finish(&m.arena);
}

static uint32_t op(struct made *m, uint16_t op, uint8_t nin, const uint32_t *in, struct hd_attr attr)
{
	uint32_t out = 0;

	CHECK(hd_graph_node(&m->graph, op, nin, in, &attr, 0, &out, &m->diag) == HD_OK, "%s", m->diag.text);
	return out;
}

static uint32_t input(struct made *m, const char *name, enum hd_dtype type, int64_t width)
{
	uint32_t v = 0;

	CHECK(hd_graph_input(&m->graph, name, type, width ? 2 : 1, (int64_t[]){ -1, width }, &v,
		&m->diag) == HD_OK, "%s",
		m->diag.text);
	return v;
}

static void refusals_name_the_op(void **state)
{
	static const char *const want[] = {
		"(add): it reads rows of vertices and rows of edges", "(spmm): its list of edges is computed",
		"(dropout): what is drawn on edges", "(mul): it reads a sum over all vertices" };

	(void)state;
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		const struct hd_attr none = { .i = { 0 } };
		struct made m = { .text = "" };
		hd_arena_init(&m.arena, 0);
		hd_graph_init(&m.graph, &m.arena);
		uint32_t from = input(&m, "from", HD_I32, 0), to = input(&m, "to", HD_I32, 0), x = input(&m,
			"x", HD_F32, 4), w = 0;
		CHECK(hd_graph_param(&m.graph, "w", 2, (int64_t[]){ 4, 4 }, HD_INIT_ZEROS, 0, &w,
			&m.diag) == HD_OK, "%s",
			m.diag.text);
		uint32_t h = op(&m, HD_OP_MATMUL, 2, (uint32_t[]){ x, w }, none);
		uint32_t e = op(&m, HD_OP_EDGE_PAIR, 4, (uint32_t[]){ from, to, h, h }, none);
		if (i == 0)
			(void)op(&m, HD_OP_ADD, 2, (uint32_t[]){ h, e }, none);
		if (i == 1) {
			uint32_t ids = op(&m, HD_OP_ARGMAX, 1, &h, (struct hd_attr){ .i = { 1 } });
			(void)op(&m, HD_OP_SPMM, 4, (uint32_t[]){ ids, to, h, h }, none);
		}
		if (i == 2)
			(void)op(&m, HD_OP_DROPOUT, 1, &e, (struct hd_attr){ .f = { 0.5f } });
		if (i == 3) {
			uint32_t sum = op(&m, HD_OP_REDUCE_SUM, 1, &h, (struct hd_attr){ .i = { 1 } });
			(void)op(&m, HD_OP_MUL, 2, (uint32_t[]){ h, sum }, none);
		}
		enum hd_err err = hd_separate(&m.list, &m.graph, &m.arena, &m.diag);
		CHECK(err == HD_E_INVAL && strstr(m.diag.text, want[i]), "case %zu: %d, %s", i, (int)err,
			m.diag.text);
		hd_arena_finish(&m.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phases_are_those_of_the_specification),
		cmocka_unit_test(every_node_is_once_in_a_phase_or_bound),
		cmocka_unit_test(attention_sends_rows_of_vertices_alone),
		cmocka_unit_test(refusals_name_the_op),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
