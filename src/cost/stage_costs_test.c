/* Costs of stages against sums over nodes whose membership is found from the graph alone. */
#include "cost/stage_costs.h"

#include <string.h>

#include "tests/planning.h"
#include "tests/check.h"

enum { NODES = 7 };

/* A chain a-b-c with a branch b-d-e, joined in g by c and e; before all a data source, after all an unused
 * output. Costs differ in every digit, so that each sum tells its terms. */
static struct hd_profile_node node[NODES + 2];
static int64_t bytes[NODES + 2];
static struct hd_profile_edge edge[] = {
	{ 0, 1, 0 }, { 1, 2, 0 }, { 2, 3, 0 }, { 2, 4, 0 }, { 4, 5, 0 }, { 3, 6, 0 }, { 5, 6, 0 }, { 6, 7, 0 }, { 7, 8, 0 },
};
static const struct { const char *id, *op; } names[NODES + 2] = {
	{ "in", "Input0" }, { "a", "embed" }, { "b", "linear" }, { "c", "linear" }, { "d", "relu" }, { "e", "linear" }, { "g", "add" }, { "h", "head" },
	{ "u", "__getitem__(1)" },
};

static struct hd_profile model(void)
{
	int64_t x = 1;

	for (int v = 0; v < NODES + 2; v++, x *= 3) {
		bytes[v] = 100 * x;
		node[v] = (struct hd_profile_node){ .id = names[v].id, .op = names[v].op, .tied = "",
			.f = { x, x + 1, 2 * x, 1, 10 },
			.i = { 10 * x, 10 * x, x, 1, 10 },
			.w = { 7 * x, 0, 0, 0, 0 }, .r_ns = v % 2 ? -1 : x / 2, .out = &bytes[v], .nouts = 1,
			.param = 11 * x,
			.saved = 1000 * x + 1, .work = (v * 5) % 7, .opt = 3 * x,
			.act_w = v == 3 ? 0.25 : 0.5, .recompute_ok = v != 5 };
	}
	node[1].tied = node[7].tied = "words";
	node[3].tied = node[5].tied = "ce";
	node[3].param = node[5].param = 42;
	return (struct hd_profile){ .node = node, .nnodes = NODES + 2, .edge = edge,
		.nedges = sizeof edge / sizeof *edge, .vn_size = 1,
		.step_ns_per_byte = 0.5, .sum_ns_per_byte = 0.25 };
}

/* v has run at a cut: the cut's name "c+e" holds its letter, or that of a descendant. */
static bool has_run(const struct hd_cuts *c, uint32_t cut, uint32_t v)
{
	bool ran[NODES + 2] = { false };

	for (uint32_t k = 1; k <= NODES; k++)
		ran[k] = strchr(c->name[cut], names[k].id[0]) != NULL;
	for (uint32_t e = sizeof edge / sizeof *edge; e-- > 0;)
		ran[edge[e].from] |= ran[edge[e].to];
	return v >= 1 && v <= NODES && ran[v];
}

static void check_range(const struct hd_cut_sums *sums, uint32_t first, uint32_t last)
{
	const struct hd_cuts *c = sums->cuts;
	struct hd_stage_cost want = { 0 }, have = hd_cut_sums_range(sums, first, last);
	bool words = false, ce = false;

	for (uint32_t v = 0; v < NODES + 2; v++) {
		const struct hd_profile_node *n = &node[v];
		if (!has_run(c, last - 1, v) || (first && has_run(c, first - 1, v)))
			continue;
		bool again = (!strcmp(n->tied, "words") && words) || (!strcmp(n->tied, "ce") && ce);
		words |= !strcmp(n->tied, "words");
		ce |= !strcmp(n->tied, "ce");
		want.f += 1000 * n->f.p50_ns;
		want.i += 1000 * n->i.p50_ns;
		want.w += 1000 * n->w.p50_ns;
		want.r += n->recompute_ok ? 1000 * (n->r_ns == -1 ? n->f.p50_ns : n->r_ns) : 0;
		want.saved += n->saved;
		want.saved_w += v == 3 ? n->saved / 4 : n->saved / 2;
		want.kept += n->recompute_ok ? 0 : n->saved;
		want.param += again ? 0 : n->param;
		want.opt += again ? 0 : n->opt;
		want.step += again ? 0 : 500 * n->param;
		want.add += again ? 0 : 250 * n->param;
		want.work = n->work > want.work ? n->work : want.work;
	}
	want.in = first ? c->out[first - 1] : 0;
	want.out = last == c->n ? 0 : c->out[last - 1];
	want.kept += want.in;
	CHECK(!memcmp(&want, &have, sizeof want),
		"cuts %u to %u: f %lld, %lld wanted; param %lld, %lld; work %lld, %lld", first, last,
		(long long)have.f,
		(long long)want.f, (long long)have.param, (long long)want.param, (long long)have.work,
		(long long)want.work);
}

static void every_range_costs_the_sum_of_its_nodes(void **state)
{
	struct hd_profile p = model();
	struct hd_cut_sums sums;
	struct hd_cuts cuts;
	uint32_t stages = 0;

	(void)state;
	hd_sums_of(&sums, &cuts, &p, (struct hd_cuts_how){ 0 });
	for (uint32_t first = 0; first < cuts.n; first++)
		for (uint32_t last = first + 1; last <= cuts.n; last++)
			if (hd_cut_sums_is_stage(&sums, first, last)) {
				check_range(&sums, first, last);
				stages++;
			}
	/* of the cuts a, b, c, d, e, c+d, c+e, g, h three pairs are in no order: c with d, c with e, e
	 * with c+d */
	CHECK(cuts.n == 9 && stages == 9 * 10 / 2 - 3, "%u cuts, %u stages", cuts.n, stages);
}

static void one_stage_of_all_cuts_costs_the_whole_model(void **state)
{
	struct hd_profile p = model();
	struct hd_stage_costs costs[2];
	struct hd_diag diag = { "" };

	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		struct hd_cut_sums sums;
		struct hd_cuts cuts;
		hd_sums_of(&sums, &cuts, &p, (struct hd_cuts_how){ .compress = compress });
		CHECK(hd_stage_costs_make(&costs[compress], &sums, (const uint32_t[]){ 0 }, 1, &arena,
			&diag) == HD_OK, "%s", diag.text);
		const struct hd_stage_cost *one = costs[compress].stage;
		assert_int_equal(one->f, 1000 * (3 + 9 + 27 + 81 + 243 + 729 + 2187));
		assert_int_equal(one->i, 10 * one->f);
		assert_int_equal(one->in + one->out, 0);
		assert_int_equal(one->work, 6);
		assert_int_equal(one->of_f.mean, one->f + 1000 * NODES);
		assert_int_equal(one->of_w.mean, one->w);           /* not measured: what is known of it */
		assert_int_equal(one->of_w.sd, 0);
		/* sqrt(4 sum x^2), x = 3..3^7 */
		CHECK(one->of_f.sd > 4638 * 1000 && one->of_f.sd < 4640 * 1000, "%lld",
			(long long)one->of_f.sd);
		assert_int_equal(costs[compress].ntied, 0);
	}
	assert_memory_equal(costs[0].stage, costs[1].stage, sizeof *costs[0].stage);
}

static void what_several_stages_share_is_told(void **state)
{
	struct hd_profile p = model();
	struct hd_stage_costs costs;
	struct hd_cut_sums sums;
	struct hd_cuts cuts;
	struct hd_diag diag = { "" };

	(void)state;
	hd_sums_of(&sums, &cuts, &p, (struct hd_cuts_how){ 0 });
	CHECK(hd_stage_costs_make(&costs, &sums, (const uint32_t[]){ 0, 1, cuts.n - 1 }, 3, &arena,
		&diag) == HD_OK, "%s", diag.text);
	assert_int_equal(costs.nstages, 3);
	assert_int_equal(costs.ntied, 1);                            /* c and e are in one stage */
	assert_string_equal(costs.tied[0].name, "words");
	assert_int_equal(costs.tied[0].param, 33);
	assert_int_equal(costs.tied[0].nstages, 2);
	assert_true(costs.tied[0].holds[0] && !costs.tied[0].holds[1] && costs.tied[0].holds[2]);
	assert_int_equal(costs.stage[0].out, 300);                   /* a's, and it enters the next */
	assert_int_equal(costs.stage[1].in, 300);
	assert_int_equal(costs.stage[1].kept, 300 + 243001);         /* e may not be computed again */
	assert_true(costs.ovl == 1 && costs.comm_tax == 1);
	p.ovl = 0.75;
	p.comm_tax = 1.5;
	CHECK(hd_stage_costs_make(&costs, &sums, (const uint32_t[]){ 0, 1, cuts.n - 1 }, 3, &arena,
		&diag) == HD_OK, "%s", diag.text);
	assert_true(costs.ovl == 0.75 && costs.comm_tax == 1.5);
}

static void ranges_that_are_no_stages_are_refused(void **state)
{
	struct hd_profile p = model();
	struct hd_stage_costs costs = { 0 };
	struct hd_cut_sums sums;
	struct hd_cuts cuts;
	uint32_t c = 0, d = 0;

	(void)state;
	hd_sums_of(&sums, &cuts, &p, (struct hd_cuts_how){ 0 });
	for (uint32_t j = 0; j < cuts.n; j++) {
		c = !strcmp(cuts.name[j], "c") ? j : c;
		d = !strcmp(cuts.name[j], "d") ? j : d;
	}
	const uint32_t low = c < d ? c : d, high = c < d ? d : c;
	const struct { uint32_t first[3], n; const char *says; } cases[] = {
		{ { 0, low + 1, high + 1 }, 3, "they are on two branches" },
		{ { 1, 2, 3 }, 3, "stages begin at cut 0" },
		{ { 0, 2, 2 }, 3, "stage 1 has cuts 2 to 2 of 9: there is no node in it" },
		{ { 0, 10, 0 }, 2, "stage 0 has cuts 0 to 10 of 9" },
		{ { 0, 9, 0 }, 2, "stage 1 has cuts 9 to 9 of 9" },
		{ { 0 }, 0, "at least one" },
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_diag diag = { "" };
		assert_int_equal(hd_stage_costs_make(&costs, &sums, cases[k].first, cases[k].n, &arena,
			&diag), HD_E_INVAL);
		CHECK(strstr(diag.text, cases[k].says), "case %zu: %s", k, diag.text);
	}
	assert_null(costs.stage);
}

static void rates_that_pass_what_is_counted_are_refused(void **state)
{
	static const struct { double step, sum; int64_t mean, sd; const char *says; } rows[] = {
		{ 1e18, 0.25, 0, 0, "\"optimizer\" add up to" }, { 0.5, 1e18, 0, 0, "\"sum\" add up to" }, { 0.5, 0.25, INT64_C(1) << 53, 0, "\"mean\" add up to" },
		{ 0.5, 0.25, 0, INT64_C(1) << 53, "\"sd\" add up to" }, { 0.5, 0.25, 0, 0, NULL },
	};

	(void)state;
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		struct hd_profile p = model();
		struct hd_cut_sums sums;
		struct hd_cuts cuts;
		struct hd_diag diag = { "" };
		p.step_ns_per_byte = rows[k].step;
		p.sum_ns_per_byte = rows[k].sum;
		node[2].f.mean_ns += rows[k].mean;
		node[2].f.sd_ns += rows[k].sd;
		CHECK(hd_cuts_make(&cuts, &p, (struct hd_cuts_how){ 0 }, "g", &arena, &diag) == HD_OK, "%s",
			diag.text);
		enum hd_err err = hd_cut_sums_make(&sums, &p, &cuts, &arena, &diag);
		CHECK(rows[k].says ? err == HD_E_INPUT && strstr(diag.text, rows[k].says) : err == HD_OK,
			"row %zu: %s", k, diag.text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_range_costs_the_sum_of_its_nodes, make_arena,
			drop_arena),
		cmocka_unit_test_setup_teardown(one_stage_of_all_cuts_costs_the_whole_model, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(what_several_stages_share_is_told, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(ranges_that_are_no_stages_are_refused, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(rates_that_pass_what_is_counted_are_refused, make_arena,
		drop_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
