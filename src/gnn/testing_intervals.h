/* testing_intervals.h -- prepared graphs in eight intervals, as files, for tests that train on them. */
#ifndef HD_GNN_TESTING_INTERVALS_H
#define HD_GNN_TESTING_INTERVALS_H

#include <unistd.h>

#include "data/graph_layout.h"
#include "gnn/testing_graph.h"

enum { INTERVALS = 8, CLASSES = 5, VERTICES = 150 };

/* Files of both kinds, the first directed, and what they were made of. */
struct graphs { struct hd_fs fs; char folder[64], path[2][80]; struct known *known[2]; uint32_t slots[2]; };

static inline void make_graphs(struct graphs *g)
{
	struct hd_prepared_report report;
	struct hd_diag diag = { "" };
	struct hd_fs_sim sim;
	size_t len;

	hd_fs_real(&g->fs);
	snprintf(g->folder, sizeof g->folder, "/tmp/hd_intervals_test.XXXXXX");
	assert_non_null(mkdtemp(g->folder));
	hd_fs_sim_init(&sim);
	for (int k = 0; k < 2; k++) {
		snprintf(g->path[k], sizeof g->path[k], "%s/%d.graph", g->folder, k);
		g->known[k] = tg_make(&sim.fs, VERTICES, k == 0, 11 + (uint64_t)k);
		struct hd_prepare how = tg_how(g->known[k]);
		how.nintervals = INTERVALS;
		CHECK(hd_prepare_graph(&how, &sim.fs, &report, &diag) == HD_OK, "%s", diag.text);
		g->slots[k] = (uint32_t)((report.head.nedges + 2 * VERTICES - 1) / VERTICES);
		uint8_t *bytes = tg_bytes(&sim.fs, how.out, &len);
		put_file(&g->fs, g->path[k], bytes, len);
		free(bytes);
	}
	hd_fs_sim_finish(&sim);
}

static inline void drop_graphs(struct graphs *g)
{
	struct hd_diag diag = { "" };

	for (int k = 0; k < 2; k++) {
		free(g->known[k]);
		assert_int_equal(hd_fs_unlink(&g->fs, g->path[k], &diag), HD_OK);
	}
	assert_int_equal(rmdir(g->folder), 0);
}

static inline uint64_t rows_of(struct graphs *g, int kind, uint32_t n)
{
	struct hd_graph_shape shape;
	struct hd_diag diag = { "" };

	CHECK(hd_graph_shape(&shape, &g->fs, g->path[kind], n, &diag) == HD_OK, "%s", diag.text);
	return shape.rows;
}

/* The vertex of the input that each row is, -1 none: by the file's bytes alone. */
static inline void ids_of_rows(struct graphs *g, int kind, uint32_t n, uint64_t rows, int *id)
{
	size_t len;
	uint8_t *bytes = tg_bytes(&g->fs, g->path[kind], &len);

	for (uint64_t r = 0; r < n * rows; r++)
		id[r] = -1;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t first = tg_at(bytes, HD_PREPARED_INTERVALS, i * INTERVALS / n, 8),
			end = tg_at(bytes, HD_PREPARED_INTERVALS, (i + 1) * INTERVALS / n, 8);
		CHECK(end - first <= rows, "virtual node %u has %d rows", i, (int)(end - first));
		for (uint64_t v = first; v < end; v++)
			id[i * rows + v - first] = (int)tg_at(bytes, HD_PREPARED_IDS, v, 4);
	}
	free(bytes);
}

#endif
