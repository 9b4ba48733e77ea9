#include "planner/suggest.h"

#include "tests/planning.h"

/* A chain of three nodes whose times and activations grow with the rows; what a virtual node takes
 * besides, it takes whatever its size. */
enum { NODES = 3 };
struct model { int64_t ns_a_row, ns_besides, saved_a_row; uint32_t calls; uint64_t fails_at; };

static enum hd_err profile_at(void *user, uint64_t rows, struct hd_profile *out, struct hd_arena *to,
	struct hd_diag *diag)
{
	struct model *m = user;

	(void)to;
	m->calls++;
	if (m->fails_at == rows)
		return hd_fail(diag, HD_E_INPUT, "no answer");
	*out = hd_chain_profile(NODES);
	for (uint32_t i = 0; i < NODES; i++) {
		struct hd_profile_node *node = &out->node[i];
		node->f.p50_ns = node->i.p50_ns = node->w.p50_ns = m->ns_besides + m->ns_a_row *
			(int64_t)rows;
		node->out[0] = 4;
		node->saved = m->saved_a_row * (int64_t)rows;
	}
	return HD_OK;
}

static void ask_for(struct hd_suggest_ask *ask, struct model *m, struct hd_cluster *cluster, uint64_t batch,
	uint32_t own, uint32_t devices, int64_t memory)
{
	struct hd_cluster_level level = { "link", devices, 1e12, 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_cluster_make(cluster, &level, 1, (struct hd_cluster_kind){ "device", 1, memory }, &arena,
		&diag) == HD_OK, "%s", diag.text);
	*ask = (struct hd_suggest_ask){ .batch = batch, .profile = profile_at, .user = m,
		.plan = { .cluster = cluster, .vns = own, .tensor_shards = 1, .variant = HD_PART_PAPER } };
	CHECK(hd_job_planner_find(&ask->planner, "data", &diag) == HD_OK, "%s", diag.text);
}

/* Rule 1, the other way round: of all V that ceil(B / 2^k) can be, and the job's own. */
static bool is_candidate(uint64_t batch, uint32_t vns, uint32_t own)
{
	for (uint64_t b = 1; b < 2 * batch; b *= 2)
		if ((batch + b - 1) / b == vns)
			return true;
	return vns == own;
}

static void sizes_double_and_the_own_one_is_among_them(void **state)
{
	static const struct { uint64_t batch; uint32_t own; } cases[] = {
		{ 1, 1 }, { 2, 1 }, { 14, 7 }, { 60, 12 }, { 60, 15 }, { 64, 22 }, { 97, 97 }, { 97, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_suggestion list[HD_SUGGEST_MOST];
		struct hd_suggest_ask ask;
		struct hd_cluster cluster;
		struct hd_diag diag = { "" };
		struct model m = { 1000, 10, 8, 0, 0 };
		uint32_t n = 0, own = 0, best = 0, all = 0;
		ask_for(&ask, &m, &cluster, cases[i].batch, cases[i].own, 2, 0);
		CHECK(hd_suggest(list, &n, &ask, &arena, &diag) == HD_OK, "case %zu: %s", i, diag.text);
		for (uint32_t v = 1; v <= cases[i].batch; v++)
			all += is_candidate(cases[i].batch, v, cases[i].own);
		CHECK(n == all && m.calls == n, "case %zu: %u sizes, not %u", i, n, all);
		for (uint32_t k = 0; k < n; k++) {
			const struct hd_suggestion *s = &list[k];
			CHECK(is_candidate(cases[i].batch, s->vns, cases[i].own) &&
				s->vn_size == (cases[i].batch + s->vns - 1) / s->vns
				&& (s->vns - 1) * s->vn_size < cases[i].batch,
					"case %zu: %u virtual nodes of %llu", i, s->vns,
					(unsigned long long)s->vn_size);
			CHECK(k == 0 || s->vns < list[k - 1].vns, "case %zu: %u after %u", i, s->vns,
				list[k - 1].vns);
			CHECK(s->fits && s->own == (s->vns == cases[i].own), "case %zu: %u", i, s->vns);
			own += s->own;
			best += s->best;
		}
		CHECK(own == 1 && best == 1, "case %zu: %u are the job's own, %u the best", i, own, best);
	}
}

/* On d devices each takes ceil(V / d) virtual nodes of three nodes, three passes each. */
static void the_best_gives_the_most_samples_a_second(void **state)
{
	static const uint32_t devices[] = { 1, 2, 3, 5 };

	(void)state;
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
		struct hd_suggestion list[HD_SUGGEST_MOST];
		struct hd_suggest_ask ask;
		struct hd_cluster cluster;
		struct hd_diag diag = { "" };
		struct model m = { 1000, 2500, 8, 0, 0 };
		uint32_t n = 0;
		int64_t least = INT64_MAX;
		ask_for(&ask, &m, &cluster, 64, 16, devices[i], 0);
		CHECK(hd_suggest(list, &n, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
		for (uint32_t k = 0; k < n; k++) {
			int64_t each = (list[k].vns + devices[i] - 1) / devices[i],
				ns = each * NODES * 3 * (2500 + 1000 * (int64_t)list[k].vn_size);
			CHECK(list[k].step_s > (double)ns * 0.999999e-9 &&
				list[k].step_s < (double)ns * 1.000001e-9,
				"%u devices, %u virtual nodes: %g s, not %g", devices[i], list[k].vns,
				list[k].step_s, (double)ns * 1e-9);
			CHECK(list[k].samples_s > 63.9999 / list[k].step_s &&
				list[k].samples_s < 64.0001 / list[k].step_s, "%g samples/s",
				list[k].samples_s);
			least = ns < least ? ns : least;
		}
		for (uint32_t k = 0; k < n; k++)
			CHECK(!list[k].best || list[k].step_s < (double)least * 1.000001e-9,
				"%u virtual nodes are not the best", list[k].vns);
	}
}

static void of_equals_the_smaller_is_best_and_none_passes_the_limit(void **state)
{
	struct hd_suggestion list[HD_SUGGEST_MOST];
	struct hd_suggest_ask ask;
	struct hd_cluster cluster;
	struct hd_diag diag = { "" };
	struct model m = { 1000, 0, 8, 0, 0 };
	uint32_t n = 0;

	(void)state;
	ask_for(&ask, &m, &cluster, 64, 4, 1, 0);
	CHECK(hd_suggest(list, &n, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(n == 7 && list[0].best && list[0].step_s == list[6].step_s, "%u sizes, %g and %g s", n,
		list[0].step_s, list[6].step_s);
	/* the smallest of a million samples in at most 65,536 parts */
	m = (struct model){ .fails_at = 16 };
	ask_for(&ask, &m, &cluster, 1 << 20, 1, 1, 0);
	CHECK(hd_suggest(list, &n, &ask, &arena, &diag) == HD_E_INPUT && m.calls == 1, "%u profiles",
		m.calls);
}

static void what_does_not_fit_says_why_and_the_rest_is_told(void **state)
{
	struct hd_suggestion list[HD_SUGGEST_MOST];
	struct hd_suggest_ask ask;
	struct hd_cluster cluster;
	struct hd_diag diag = { "" };
	struct model m = { 1000, 10, 1 << 20, 0, 0 };
	uint32_t n = 0, small = 0;

	(void)state;
	ask_for(&ask, &m, &cluster, 64, 4, 2, 20 << 20);       /* three nodes keep 3 MiB a sample */
	CHECK(hd_suggest(list, &n, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t k = 0; k < n; k++) {
		CHECK(list[k].fits == (list[k].vn_size <= 4), "%llu samples",
			(unsigned long long)list[k].vn_size);
		CHECK(list[k].fits || (list[k].step_s == 0 && strstr(list[k].what, "does not fit")), "%s",
			list[k].what);
		CHECK(!list[k].fits || list[k].peak >= 3 * (int64_t)list[k].vn_size << 20, "%lld bytes",
			(long long)list[k].peak);
		small += list[k].fits;
	}
	CHECK(small == 3 && n == 7, "%u of %u fit", small, n);
	ask_for(&ask, &m, &cluster, 64, 4, 2, 1 << 20);
	CHECK(hd_suggest(list, &n, &ask, &arena, &diag) == HD_E_INVAL, "it fits");
	CHECK(strstr(diag.text,
		"no size of virtual nodes has a plan; with the job's own: the plan of data does not fit"),
		"%s", diag.text);
	m.fails_at = 8;
	diag.text[0] = 0;
	CHECK(hd_suggest(list, &n, &ask, &arena, &diag) == HD_E_INPUT && !strcmp(diag.text, "no answer"),
		"%s", diag.text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sizes_double_and_the_own_one_is_among_them, make_arena,
			drop_arena),
		cmocka_unit_test_setup_teardown(the_best_gives_the_most_samples_a_second, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(of_equals_the_smaller_is_best_and_none_passes_the_limit,
		make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(what_does_not_fit_says_why_and_the_rest_is_told, make_arena,
		drop_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
