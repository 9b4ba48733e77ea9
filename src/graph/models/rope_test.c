#include "graph/models/rope.h"

#include <math.h>
#include <stdio.h>

#include "tests/check.h"

enum { PAIRS = 8 };

static const struct hd_model_value few = { .nlist = PAIRS, .reals = { 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6,
	1.7 } },
	many = { .nlist = PAIRS, .reals = { 1, 2, 3, 4.5, 5, 6, 7, 8 } };

/* Numbers by ROPE_INIT_FUNCTIONS of transformers 5.24: a base of 500, heads of 16 channels, 64 positions. */
static void frequencies_are_those_of_transformers(void **state)
{
	static const struct { struct hd_rope rope; double scale, f[PAIRS]; } row[] = {
		{ { .kind = "linear", .factor = 2.5 }, 1, { 0.400000006, 0.183945313, 0.0845896974,
			0.0388996974,
			0.0178885441, 0.00822628476, 0.00378296641, 0.00173964747 } },
		{ { .kind = "yarn", .factor = 4, .original = 64, .high = 8, .low = 1, .whole = true },
			1.13862944,
			{ 1, 0.344897449, 0.10573712, 0.0243123118, 0.0111803403, 0.00514142821,
				0.00236435398,
			0.00108727964 } },
		{ { .kind = "yarn", .factor = 4, .original = 64, .high = 8, .low = 1 }, 1.13862944,
			{ 1, 0.371084481, 0.11139711, 0.0243123118, 0.0111803403, 0.00514142821,
				0.00236435398,
			0.00108727964 } },
		{ { .kind = "llama3", .factor = 8, .original = 64, .high = 4, .low = 1 }, 1, { 1, 0.459863275,
			0.0976166278, 0.0121561559, 0.00559017016, 0.0025707141, 0.00118217699,
				0.000543639821 } },
		{ { .kind = "longrope", .factor = 4, .original = 16, .few = &few, .many = &many }, 1.22474487,
			{ 1, 0.229931638, 0.0704914108, 0.0216109455, 0.00894427206, 0.00342761865,
			0.00135105941, 0.000543639821 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct hd_arena arena;
		struct hd_graph graph;
		struct hd_diag diag = { "" };
		float scale;
		hd_arena_init(&arena, 0);
		hd_graph_init(&graph, &arena);
		struct hd_maker m = { .graph = &graph, .diag = &diag };
		struct hd_rope rope = row[i].rope;
		rope.base = 500;
		rope.part = 1;
		assert_int_equal(hd_rope_check(&rope, 2 * PAIRS, &diag), HD_OK);
		const uint32_t v = hd_make_frequencies(&m, &rope, 2 * PAIRS, 64, &scale);
		CHECK(m.err == HD_OK && v != HD_NONE && fabs((double)scale - row[i].scale) < 1e-6,
			"row %zu: %s, %g", i,
			diag.text, (double)scale);
		const float *f = (const void *)(graph.consts + graph.value[v].data);
		for (int k = 0; k < PAIRS; k++)
			CHECK(fabs((double)f[k] - row[i].f[k]) < 1e-6 * row[i].f[k], "row %zu, %d: %.9g", i,
				k,
				(double)f[k]);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frequencies_are_those_of_transformers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
