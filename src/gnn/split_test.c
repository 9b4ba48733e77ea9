#include "gnn/split.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gnn/split_int.h"
#include "tests/check.h"

/* A small graph by a matrix: its rows are made from it. */
enum { MOST = 512 };
struct graph { uint32_t n; bool edge[MOST][MOST]; uint64_t offset[MOST + 1]; uint32_t at[MOST * MOST / 2],
	weight[MOST]; };

static void join(struct graph *g, uint32_t a, uint32_t b) { g->edge[a][b] = g->edge[b][a] = true; }

static struct hd_split_graph rows(struct graph *g)
{
	uint64_t n = 0;

	for (uint32_t v = 0; v < g->n; v++) {
		g->offset[v] = n;
		for (uint32_t w = 0; w < g->n; w++)
			if (g->edge[v][w])
				g->at[n++] = w;
		g->weight[v] = (uint32_t)(n - g->offset[v]);
	}
	g->offset[g->n] = n;
	return (struct hd_split_graph){ g->n, { g->offset, g->at }, g->weight };
}

static uint32_t cut_of(const struct graph *g, const uint32_t *interval)
{
	uint32_t cut = 0;

	for (uint32_t v = 0; v < g->n; v++)
		for (uint32_t w = 0; w < v; w++)
			cut += g->edge[v][w] && interval[v] != interval[w];
	return cut;
}

/* Every interval is there; vertex 0 is on the left of all cuts. */
static void split_all(struct graph *g, enum hd_split_with with, uint32_t nintervals, uint32_t *interval)
{
	struct hd_split_graph graph = rows(g);
	struct hd_split_how how = { .with = with, .nintervals = nintervals };
	uint32_t count[MOST] = { 0 };
	enum hd_graph_splitter used;
	struct hd_diag diag = { "" };

	CHECK(hd_split(&graph, &how, interval, &used, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t v = 0; v < g->n; v++) {
		CHECK(interval[v] < nintervals, "interval %u of vertex %u", interval[v], v);
		count[interval[v]]++;
	}
	for (uint32_t i = 0; i < nintervals; i++)
		CHECK(count[i], "interval %u of %u is empty", i, nintervals);
	assert_int_equal(interval[0], 0);
}

static const enum hd_split_with splitters[] = { HD_SPLIT_OWN, HD_SPLIT_METIS };

static bool there(enum hd_split_with with) { return with == HD_SPLIT_OWN || hd_split_metis_built(); }

static void two_cliques_are_cut_at_their_bridge(void **state)
{
	static struct graph g;
	uint32_t interval[MOST];

	(void)state;
	g = (struct graph){ .n = 48 };
	for (uint32_t v = 0; v < 48; v++)              /* even and odd ones: ids alone do not tell */
		for (uint32_t w = v % 2; w < v; w += 2)
			join(&g, v, w);
	join(&g, 10, 31);
	for (size_t s = 0; s < 2; s++) {
		if (!there(splitters[s]))
			continue;
		split_all(&g, splitters[s], 2, interval);
		for (uint32_t v = 0; v < 48; v++)
			CHECK(interval[v] == v % 2, "splitter %zu: vertex %u in %u", s, v, interval[v]);
	}
}

/* What a random split of that many intervals cuts: all edges but one in `nintervals`. */
static void cuts_less(struct graph *g, enum hd_split_with with, uint32_t nintervals, double share)
{
	uint32_t interval[MOST], again[MOST], edges = 0;

	split_all(g, with, nintervals, interval);
	for (uint32_t v = 0; v < g->n; v++)
		edges += g->weight[v];
	edges /= 2;
	CHECK(cut_of(g, interval) <= share * edges * (nintervals - 1) / nintervals,
		"%d cuts %u of %u edges in %u intervals", (int)with, cut_of(g, interval), edges, nintervals);
	split_all(g, with, nintervals, again);
	assert_memory_equal(interval, again, g->n * sizeof *interval);
}

static void a_grid_is_cut_into_patches(void **state)
{
	static struct graph g;

	(void)state;
	g = (struct graph){ .n = 400 };
	for (uint32_t v = 0; v < 400; v++) {
		if (v % 20)
			join(&g, v, v - 1);
		if (v >= 20)
			join(&g, v, v - 20);
	}
	for (size_t s = 0; s < 2; s++)
		if (there(splitters[s]))
			cuts_less(&g, splitters[s], 16, 0.4);
}

static void a_path_is_cut_into_pieces(void **state)
{
	static struct graph g;

	(void)state;
	g = (struct graph){ .n = 512 };
	for (uint32_t v = 1; v < 512; v++)
		join(&g, v, v - 1);
	for (size_t s = 0; s < 2; s++)
		if (there(splitters[s]))
			cuts_less(&g, splitters[s], 8, 0.06);
}

/* A hub has half of all edges; vertices without any; nothing at all: no interval is empty. */
static void hubs_and_lone_vertices_leave_no_interval_empty(void **state)
{
	static struct graph g;
	uint32_t interval[MOST];

	(void)state;
	for (size_t s = 0; s < 2; s++) {
		if (!there(splitters[s]))
			continue;
		g = (struct graph){ .n = 256 };
		for (uint32_t v = 1; v < 256; v++)
			join(&g, 7, v == 7 ? 0 : v);
		split_all(&g, splitters[s], 16, interval);
		split_all(&g, splitters[s], 256, interval);
		g = (struct graph){ .n = 64 };
		join(&g, 3, 60);
		split_all(&g, splitters[s], 16, interval);
		g = (struct graph){ .n = 5 };
		split_all(&g, splitters[s], 4, interval);
		g = (struct graph){ .n = 1 };
		split_all(&g, splitters[s], 1, interval);
	}
}

/* What a part keeps of balance: vertices alike, within the tolerances of four cuts. */
static void own_cuts_keep_balance(void **state)
{
	static struct graph g;
	uint32_t interval[MOST], count[16] = { 0 }, weight[16] = { 0 }, all = 0;

	(void)state;
	g = (struct graph){ .n = 512 };
	for (uint32_t i = 0; i < 2500; i++) {
		uint32_t v = i * 2654435761u >> 23, w = (i * 40503u ^ i * i) % 512;
		if (v != w && v < 512)
			join(&g, v, w);
	}
	split_all(&g, HD_SPLIT_OWN, 16, interval);
	for (uint32_t v = 0; v < 512; v++) {
		count[interval[v]]++;
		weight[interval[v]] += g.weight[v];
		all += g.weight[v];
	}
	for (int i = 0; i < 16; i++) {
		CHECK(count[i] <= 1.10 * 512 / 16 + 1, "%u vertices in interval %d", count[i], i);
		CHECK(weight[i] <= 1.25 * all / 16, "%u of %u edges into interval %d", weight[i], all, i);
	}
}

static void the_number_of_intervals_follows_the_edges(void **state)
{
	static const struct { uint64_t nvertices, nedges; uint32_t want; } cases[] = {
		{ 2708, 10556, 16 }, { 200000, 20000000, 32 }, { 1000000, 16000000, 16 },
		{ 1000000, 16000001, 32 }, { 100000000, 1ull << 40, 4096 }, { 255, 1000, 8 }, { 256, 1000, 16 },
		{ 31, 10, 1 }, { 32, 10, 2 }, { 1, 0, 1 }, { 1000, 1ull << 40, 32 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK(hd_split_intervals(cases[i].nvertices, cases[i].nedges) == cases[i].want, "%llu, "
			"%llu: %u",
			(unsigned long long)cases[i].nvertices, (unsigned long long)cases[i].nedges,
			hd_split_intervals(cases[i].nvertices, cases[i].nedges));
}

static void impossible_numbers_of_intervals_are_refused(void **state)
{
	static struct graph g;
	static const uint32_t bad[] = { 0, 3, 16 };
	uint32_t interval[MOST];
	enum hd_graph_splitter used;

	(void)state;
	g = (struct graph){ .n = 10 };
	struct hd_split_graph graph = rows(&g);
	for (size_t i = 0; i < 3; i++) {
		struct hd_split_how how = { .nintervals = bad[i] };
		struct hd_diag diag = { "" };
		assert_int_equal(hd_split(&graph, &how, interval, &used, &diag), HD_E_INVAL);
		assert_non_null(strstr(diag.text, "a power of two"));
	}
}

/* Each request for memory fails in its turn: METIS, too, says what it had no memory for. */
static void no_memory_is_said_by_any_splitter(void **state)
{
	static const enum hd_split_with with[] = { HD_SPLIT_AUTO, HD_SPLIT_OWN };
	static struct graph g;
	uint32_t interval[MOST];
	enum hd_graph_splitter used;

	(void)state;
	g = (struct graph){ .n = 128 };
	for (uint32_t v = 1; v < 128; v++)
		join(&g, v, v - 1);
	struct hd_split_graph graph = rows(&g);
	for (size_t s = 0; s < 2; s++) {
		struct hd_split_how how = { .with = with[s], .nintervals = 4 };
		enum hd_err err = HD_E_NOMEM;
		uint64_t n = 0;
		while (err && n < 1000) {
			struct hd_diag diag = { "" };
			hd_alloc_arm(++n);
			err = hd_split(&graph, &how, interval, &used, &diag);
			hd_alloc_arm(0);
			CHECK(err == HD_OK || err == HD_E_NOMEM, "request %u: %d", (unsigned)n, (int)err);
			CHECK(!err || *diag.text, "request %u of splitter %zu: no word", (unsigned)n, s);
		}
		CHECK(!err && n > 8, "%d after %u requests", (int)err, (unsigned)n);
	}
}

/* No array is read that such a graph would need: sizes alone. */
static void a_graph_too_large_for_metis_is_refused(void **state)
{
	static uint64_t offset[65];
	static uint32_t weight[64];
	uint8_t side[64];
	struct hd_diag many = { "" }, wide = { "" }, heavy = { "" };

	(void)state;
	if (!hd_split_metis_built())
		SKIP("no METIS in this build");
	struct hd_bisect graph = { .n = 64, .offset = offset, .weight = weight, .least = 1 };
	hd_alloc_arm(1);
	offset[64] = 1 << 30;
	enum hd_err edges = hd_bisect_metis(&graph, 0, side, &many);
	offset[64] = 126;
	for (uint32_t v = 0; v < 64; v++)
		weight[v] = 1 << 24;
	enum hd_err sum = hd_bisect_metis(&graph, 0, side, &heavy);
	graph.n = 1 << 29;
	enum hd_err vertices = hd_bisect_metis(&graph, 0, side, &wide);
	hd_alloc_arm(0);
	CHECK(edges == HD_E_REFUSED && strstr(many.text, "2^30 edges"), "%d, '%s'", (int)edges, many.text);
	CHECK(sum == HD_E_REFUSED && strstr(heavy.text, "2^30 edges"), "%d, '%s'", (int)sum, heavy.text);
	CHECK(vertices == HD_E_REFUSED && strstr(wide.text, "2^29 vertices"), "%d, '%s'", (int)vertices,
		wide.text);
}

static void metis_is_refused_where_it_is_not_built_in(void **state)
{
	static struct graph g;
	uint32_t interval[MOST];
	enum hd_graph_splitter used;
	struct hd_split_how how = { .with = HD_SPLIT_METIS, .nintervals = 2 };
	struct hd_diag diag = { "" };

	(void)state;
	if (hd_split_metis_built())
		SKIP("METIS is in this build");
	g = (struct graph){ .n = 40 };
	struct hd_split_graph graph = rows(&g);
	assert_int_equal(hd_split(&graph, &how, interval, &used, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "this build has no METIS"), "%s", diag.text);
	how.with = HD_SPLIT_AUTO;
	CHECK(!hd_split(&graph, &how, interval, &used, &diag), "%s", diag.text);
	assert_int_equal(used, HD_SPLITTER_OWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_cliques_are_cut_at_their_bridge),
		cmocka_unit_test(a_grid_is_cut_into_patches),
		cmocka_unit_test(a_path_is_cut_into_pieces),
		cmocka_unit_test(hubs_and_lone_vertices_leave_no_interval_empty),
		cmocka_unit_test(own_cuts_keep_balance),
		cmocka_unit_test(the_number_of_intervals_follows_the_edges),
		cmocka_unit_test(impossible_numbers_of_intervals_are_refused),
		cmocka_unit_test(no_memory_is_said_by_any_splitter),
		cmocka_unit_test(a_graph_too_large_for_metis_is_refused),
		cmocka_unit_test(metis_is_refused_where_it_is_not_built_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
