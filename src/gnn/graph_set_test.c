#include <stdlib.h>
#include <unistd.h>

#include "data/prepared.h"
#include "gnn/testing_graph.h"

/* data/graph_set.c, from text to fields: here, as rooms below cannot prepare a graph. */

enum { NVERTICES = 5, WIDTH = 3, SLOTS = 3 };

/* 2 to 1 twice, 3 to itself: left out. Six edges and five of vertices to themselves take three places a
 * vertex. */
static const char edges[] = "0 1\n2 1\n3 2\n4 0\n1 0\n0 4\n2 1\n3 3\n",
	features[] = "1 0:0.5\n0 1:2 2:3\n2\n-1 2:-1\n1 0:4\n",
	all_sets[] = "train 0 2\nval 1\ntest 3 4\n", unlabelled_valid[] = "train 0 2\nval 3\ntest 4\n";

struct sample { float x[WIDTH]; int32_t y, from[SLOTS], to[SLOTS], number[SLOTS]; float degrees[2]; };

static void *const *fields_of(struct sample *s, void *out[6])
{
	void *const at[6] = { s->x, &s->y, s->from, s->to, s->number, s->degrees };

	memcpy(out, at, sizeof at);
	return out;
}

static void prepare(struct hd_fs *fs, const char *sets, const char *out)
{
	struct hd_prepare how = { .edges = "edges.txt", .features = "features.svm", .split = "split.txt",
		.out = out, .directed = true, .nintervals = 1, .memory_bytes = 1 << 20 };
	struct hd_prepared_report report;
	struct hd_diag diag = { "" };

	put_text(fs, how.edges, edges);
	put_text(fs, how.features, features);
	put_text(fs, how.split, sets);
	CHECK(hd_prepare_graph(&how, fs, &report, &diag) == HD_OK, "%s", diag.text);
}

static struct hd_dataset *open_graph(struct hd_fs *fs, const char *path)
{
	const struct hd_data_spec spec = { .kind = "graph", .path = path, .rank = 1, .dim = { WIDTH },
		.classes = 3, .train = 1 };
	struct hd_dataset *set = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_dataset_open(&set, &spec, fs, &diag) == HD_OK, "%s", diag.text);
	return set;
}

static void the_fields_of_a_directed_graph_are_those_written_down_here(void **state)
{
	static const struct sample want[NVERTICES] = {
		{ { 0.5f, 0, 0 }, 1, { 0, 1, 4 }, { 0, 0, 0 }, { 0, 1, 2 }, { 3, 3 } },
		{ { 0, 2, 3 }, 0, { 0, 1, 2 }, { 1, 1, 1 }, { 3, 4, 5 }, { 3, 2 } },
		{ { 0, 0, 0 }, 2, { 2, 3, 3 }, { 2, 2, 3 }, { 6, 7, 8 }, { 2, 2 } },
		{ { 0, 0, -1 }, -1, { 0, 4, -1 }, { 4, 4, -1 }, { 9, 10, -1 }, { 1, 2 } },
		{ { 4, 0, 0 }, 1, { -1, -1, -1 }, { -1, -1, -1 }, { -1, -1, -1 }, { 2, 2 } },
	};
	static const uint32_t split_of[NVERTICES] = { 0, 1, 0, 2, 2 };
	struct hd_diag diag = { "" };
	struct hd_fs_sim sim;

	(void)state;
	hd_fs_sim_init(&sim);
	prepare(&sim.fs, all_sets, "g.graph");
	struct hd_dataset *set = open_graph(&sim.fs, "g.graph");
	assert_int_equal(set->count, NVERTICES);
	assert_int_equal(set->nsplits, 3);
	assert_int_equal(set->nfields, 6);
	for (uint32_t s = 0; s < 3; s++) {
		assert_int_equal(set->split[s].count, NVERTICES);
		for (uint32_t v = 0; v < NVERTICES; v++) {
			struct sample got, hidden = want[v];
			void *out[6];
			memset(&got, 0xff, sizeof got);
			if (split_of[v] != s)
				hidden.y = -1;
			CHECK(set->ops->read(set, s, v, fields_of(&got, out), &diag) == HD_OK, "%s",
				diag.text);
			CHECK(memcmp(&got, &hidden, sizeof got) == 0, "split %u, vertex %u", s, v);
		}
	}
	hd_dataset_destroy(set);
	hd_fs_sim_finish(&sim);
}

/* Else a loss of nothing, 0, would reach any target of an evaluation. */
static void a_set_without_a_label_is_empty(void **state)
{
	struct hd_fs_sim sim;

	(void)state;
	hd_fs_sim_init(&sim);
	prepare(&sim.fs, unlabelled_valid, "g.graph");
	struct hd_dataset *set = open_graph(&sim.fs, "g.graph");
	assert_int_equal(set->split[0].count, NVERTICES);
	assert_int_equal(set->split[hd_dataset_split(set, "valid")].count, 0);
	assert_int_equal(set->split[hd_dataset_split(set, "test")].count, NVERTICES);
	hd_dataset_destroy(set);
	hd_fs_sim_finish(&sim);
}

static void write_at(struct hd_fs *fs, const char *path, int64_t at, const void *bytes, size_t len)
{
	struct hd_file file = { 0 };
	struct hd_diag diag = { "" };

	CHECK(!hd_file_open(fs, path, HD_OPEN_WRITE, &file, &diag) &&
		!hd_file_pwrite(&file, bytes, len, at, &diag) && !hd_file_close(&file, &diag), "%s",
		diag.text);
}

/* Of the system's files alone: a map of the simulated ones is a copy. */
static void a_file_that_changes_under_its_map_is_not_read_beyond_its_sections(void **state)
{
	static const struct { unsigned section, at, bytes; uint64_t value; const char *says; } cases[] = {
		{ HD_PREPARED_FEATURE_OFFSETS, 1, 8, UINT64_C(1) << 40, "\"offsets of features\", vertex 0" },
		{ HD_PREPARED_FEATURE_COLUMNS, 0, 4, 1u << 30, "\"columns of features\", vertex 0" },
		{ HD_PREPARED_LABELS, 0, 4, 3, "\"labels\", vertex 0" },
		{ HD_PREPARED_LABELS, 0, 4, UINT32_MAX - 1, "\"labels\", vertex 0" },
	};
	char folder[] = "/tmp/hd_graph_set_test.XXXXXX", path[64];
	struct hd_fs_sim sim;
	struct hd_fs real;
	size_t len;

	(void)state;
	hd_fs_real(&real);
	hd_fs_sim_init(&sim);
	prepare(&sim.fs, all_sets, "g.graph");
	uint8_t *bytes = tg_bytes(&sim.fs, "g.graph", &len);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/g.graph", folder);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const uint64_t at = tg_offset(bytes, cases[i].section) + cases[i].at * cases[i].bytes;
		struct hd_diag diag = { "" };
		struct sample got;
		uint8_t number[8];
		void *out[6];
		put_file(&real, path, bytes, len);
		struct hd_dataset *set = open_graph(&real, path);
		CHECK(set->ops->read(set, 0, 0, fields_of(&got, out), &diag) == HD_OK, "%s", diag.text);
		store_le(number, cases[i].value, cases[i].bytes);
		write_at(&real, path, (int64_t)at, number, cases[i].bytes);
		CHECK(set->ops->read(set, 0, 0, fields_of(&got, out), &diag) == HD_E_INTEGRITY &&
			strstr(diag.text, cases[i].says) &&
			strstr(diag.text, "was changed while it is in use"), "%zu: %s", i, diag.text);
		hd_dataset_destroy(set);
	}
	free(bytes);
	struct hd_diag diag = { "" };
	assert_int_equal(hd_fs_unlink(&real, path, &diag), HD_OK);
	assert_int_equal(rmdir(folder), 0);
	hd_fs_sim_finish(&sim);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fields_of_a_directed_graph_are_those_written_down_here),
		cmocka_unit_test(a_set_without_a_label_is_empty),
		cmocka_unit_test(a_file_that_changes_under_its_map_is_not_read_beyond_its_sections),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
