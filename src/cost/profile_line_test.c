#include "cost/profile_line.h"

#include "graph/stages.h"
#include "graph/testing.h"
#include "cost/cuts.h"
#include "cost/profile_graph.h"
#include "tests/check.h"

/* The judge is the cutter of graphs: what it makes cross each place by itself, one cut at a time. */

enum { ROWS = 3 };

struct lined { struct hd_subject s; struct hd_profile p; uint32_t *home; struct hd_profile_line line; };

static void open_model(struct lined *t, const char *name, const struct hd_model_arg *arg, uint32_t nargs)
{
	const struct hd_profile_ask ask = { .rows = ROWS, .nslots = 2, .tensor_shards = 1 };

	hd_subject_model(&t->s, name, arg, nargs, (struct hd_model_opts){ 0 });
	CHECK(t->s.err == HD_OK, "%s", t->s.diag.text);
	CHECK(hd_graph_optimize(&t->s.graph, ROWS, &t->s.diag) == HD_OK, "%s", t->s.diag.text);
	CHECK(hd_graph_autodiff(&t->s.graph, &t->s.diag) == HD_OK, "%s", t->s.diag.text);
	CHECK(hd_profile_of_graph(&t->p, &t->home, &t->s.graph, &ask, &t->s.arena, &t->s.diag) == HD_OK,
		"%s", t->s.diag.text);
	for (uint32_t i = 0; i < t->p.nnodes; i++)
		t->p.node[i].f.p50_ns = 1 << (i % 16);
	CHECK(hd_profile_line(&t->line, &t->p, t->home, &t->s.graph, ROWS, &t->s.arena, &t->s.diag) == HD_OK,
		"%s", t->s.diag.text);
}

static int64_t bytes_of(const struct hd_graph *g, const struct hd_crossing *c)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < c->n; i++)
		sum += (int64_t)hd_value_bytes(&g->value[c->value[i]], ROWS);
	return sum;
}

static void check_places(const struct lined *t, const char *name)
{
	const struct hd_profile *p = &t->line.profile;
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	CHECK(p->nnodes == t->p.nnodes && p->nedges == p->nnodes - 1 && t->line.first[0] == 0, "%s", name);
	for (uint32_t k = 1; k < p->nnodes; k++) {
		const uint32_t first[2] = { 0, t->line.first[k] };
		struct hd_graph_stages cut;
		struct hd_diag diag = { "" };
		CHECK(first[1] > t->line.first[k - 1], "%s: node %u begins at %u", name, k, first[1]);
		CHECK(hd_graph_stages_make(&cut, &t->s.graph, first, 2, &arena, &diag) == HD_OK, "%s: %s",
			name, diag.text);
		CHECK(p->node[k - 1].nouts == 1 && p->node[k - 1].out[0] == bytes_of(&t->s.graph, cut.act) &&
			t->line.back[k] == bytes_of(&t->s.graph, cut.grad),
			"%s, before node %u: %lld and %lld, the graph sends %lld and %lld", name, k,
			(long long)p->node[k - 1].out[0], (long long)t->line.back[k],
			(long long)bytes_of(&t->s.graph, cut.act), (long long)bytes_of(&t->s.graph,
				cut.grad));
		hd_arena_reset(&arena);
	}
	hd_arena_finish(&arena);
}

/* So a planner's stage [a, b) of cuts is the run's stage of nodes first[a] .. first[b]. */
static void check_cuts(struct lined *t, const char *name)
{
	struct hd_cuts cuts;
	int64_t sum = 0;

	CHECK(hd_cuts_make(&cuts, &t->line.profile, (struct hd_cuts_how){ 0 }, name, &t->s.arena,
		&t->s.diag) == HD_OK, "%s", t->s.diag.text);
	CHECK(cuts.n == t->p.nnodes, "%s: %u cuts of %u nodes", name, cuts.n, t->p.nnodes);
	for (uint32_t k = 0; k < cuts.n; k++) {
		sum += t->p.node[k].f.p50_ns;
		CHECK(cuts.time_ns[k] == sum && !strcmp(cuts.name[k], t->p.node[k].id), "%s: cut %u",
			name, k);
	}
}

static void a_line_has_what_the_cut_graph_sends(void **state)
{
	static const struct hd_model_arg gpt[] = { { "layers", "2" }, { "width", "16" }, { "heads", "2" },
		{ "context", "8" }, { "vocab", "32" } };
	static const struct hd_model_arg llama[] = { { "layers", "2" }, { "width", "16" }, { "heads", "2" },
		{ "context", "8" }, { "vocab", "32" }, { "tie", "true" }, { "kv_heads", "1" } };
	static const struct { const char *name; const struct hd_model_arg *arg; uint32_t n; } models[] = {
		{ "mlp", NULL, 0 }, { "llama", llama, 7 }, { "lenet", NULL, 0 }, { "gpt", gpt, 5 },
			{ "resnet18", NULL, 0 },
		{ "inception", NULL, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct lined t;
		open_model(&t, models[i].name, models[i].arg, models[i].n);
		check_places(&t, models[i].name);
		check_cuts(&t, models[i].name);
		hd_subject_finish(&t.s);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_what_the_cut_graph_sends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
