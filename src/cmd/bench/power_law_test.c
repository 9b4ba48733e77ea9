/* The made graph: ascending rows without loops and doubles, each edge both ways, few vertices with many. */
#include "cmd/bench/power_law.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "tests/check.h"

enum { VERTICES = 1000, EDGES = 20000 };

static int falling(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x < y) - (x > y);
}

static bool has(const struct hd_power_law *g, uint32_t from, uint32_t to)
{
	for (uint64_t e = g->offset[to]; e < g->offset[to + 1]; e++)
		if (g->at[e] == from)
			return true;
	return false;
}

static void the_graph_is_simple_symmetric_and_skewed(void **state)
{
	struct hd_power_law g;
	struct hd_diag diag = { 0 };
	uint64_t degree[VERTICES], tenth = 0;

	(void)state;
	assert_int_equal(hd_power_law_make(&g, VERTICES, EDGES, 1, &diag), HD_OK);
	assert_int_equal(g.nvertices, VERTICES);
	assert_int_equal(g.offset[0], 0);
	assert_int_equal(g.offset[VERTICES], g.nedges);
	CHECK(g.nedges <= EDGES && g.nedges > EDGES * 9 / 10, "%d edges", (int)g.nedges);
	for (uint32_t v = 0; v < VERTICES; v++) {
		degree[v] = g.offset[v + 1] - g.offset[v];
		for (uint64_t e = g.offset[v]; e < g.offset[v + 1]; e++) {
			assert_true(g.at[e] < VERTICES && g.at[e] != v);
			assert_true(e == g.offset[v] || g.at[e - 1] < g.at[e]);
			CHECK(has(&g, v, g.at[e]), "%u to %u", v, g.at[e]);
		}
	}
	/* the ends of edges in the first tenth of the ranks: sqrt(1/10) = 0.316 of all, before doubles go */
	qsort(degree, VERTICES, sizeof *degree, falling);
	for (int i = 0; i < VERTICES / 10; i++)
		tenth += degree[i];
	CHECK(tenth * 100 > g.nedges * 28 && tenth * 100 < g.nedges * 36, "%d of %d", (int)tenth,
		(int)g.nedges);
	hd_power_law_free(&g);
}

static void no_memory_is_an_error(void **state)
{
	struct hd_power_law g = { 0 };
	struct hd_diag diag = { 0 };

	(void)state;
	for (uint64_t n = 1; n <= 5; n++) {
		hd_alloc_arm(n);
		assert_int_equal(hd_power_law_make(&g, VERTICES, EDGES, 1, &diag), HD_E_NOMEM);
		hd_alloc_arm(0);
		assert_null(g.at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_graph_is_simple_symmetric_and_skewed),
		cmocka_unit_test(no_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
