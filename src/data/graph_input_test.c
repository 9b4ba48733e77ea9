#include "data/graph_input.h"

#include <string.h>

#include "data/prepared.h"
#include "tests/data_files.h"

static enum hd_err see_edge(void *user, uint32_t from, uint32_t to, bool both, struct hd_diag *diag)
{
	uint32_t *seen = user;

	(void)both, (void)diag;
	seen[0] = from;
	seen[1] = to;
	return HD_OK;
}

/* 0x00088b1f is the id of a vertex, and how a gzipped file begins. */
static void pairs_that_begin_like_gzip_are_pairs(void **state)
{
	static const uint8_t bytes[] = { 0x1f, 0x8b, 8, 0, 5, 0, 0, 0 };
	static const struct { const char *name; enum hd_err err; } cases[] = {
		{ "e.u32", HD_OK }, { "e.txt", HD_E_INPUT }, { "e.u32.gz", HD_E_INPUT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint32_t seen[2] = { 0 };
		struct hd_edge_sink sink = { seen, see_edge };
		struct hd_graph_input input = { 0 };
		struct hd_diag diag = { "" };
		struct hd_fs_sim sim;
		hd_fs_sim_init(&sim);
		put_file(&sim.fs, cases[i].name, bytes, sizeof bytes);
		enum hd_err err = hd_graph_input_open(&input, &sim.fs, cases[i].name, HD_GRAPH_IS_EDGES,
			&diag);
		if (!err)
			err = hd_graph_edges(&input, 600000, &sink, &diag);
		CHECK(err == cases[i].err, "%s: %d, '%s'", cases[i].name, (int)err, diag.text);
		CHECK(err || (seen[0] == 0x88b1f && seen[1] == 5), "%u, %u", seen[0], seen[1]);
		hd_graph_input_close(&input);
		hd_fs_sim_finish(&sim);
	}
}

/* Of OGB's three files two may have no vertex. */
static void a_folder_needs_a_training_set_alone(void **state)
{
	static const struct { const char *train, *valid, *test, *says; uint8_t mask[3]; } cases[] = {
		{ "0\n1\n", "", "", NULL, { HD_GRAPH_TRAIN, HD_GRAPH_TRAIN, 0 } },
		{ "0\n", "", "2\n", NULL, { HD_GRAPH_TRAIN, 0, HD_GRAPH_TEST } },
		{ "0\n", "2\n", "", NULL, { HD_GRAPH_TRAIN, 0, HD_GRAPH_VALID } },
		{ "", "0\n", "2\n", "set/train.csv is empty", { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_diag diag = { "" };
		struct hd_fs_sim sim;
		uint8_t mask[3] = { 0 };
		hd_fs_sim_init(&sim);
		put_folder(&sim.fs, "set");
		put_text(&sim.fs, "set/train.csv", cases[i].train);
		put_text(&sim.fs, "set/valid.csv", cases[i].valid);
		put_text(&sim.fs, "set/test.csv", cases[i].test);
		enum hd_err err = hd_graph_sets(&sim.fs, "set", 3, mask, &diag);
		CHECK(err == (cases[i].says ? HD_E_INPUT : HD_OK), "case %zu: %d, '%s'", i, (int)err,
			diag.text);
		CHECK(!cases[i].says || strstr(diag.text, cases[i].says), "case %zu: '%s'", i, diag.text);
		CHECK(cases[i].says || !memcmp(mask, cases[i].mask, sizeof mask), "case %zu: %u %u %u", i,
			mask[0], mask[1], mask[2]);
		hd_fs_sim_finish(&sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_that_begin_like_gzip_are_pairs),
		cmocka_unit_test(a_folder_needs_a_training_set_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
