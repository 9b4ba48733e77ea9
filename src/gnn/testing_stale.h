/* testing_stale.h -- jobs of graphs whose rows are late, for tests of this room: included by *_test.c
 * only. */
#ifndef HD_GNN_TESTING_STALE_H
#define HD_GNN_TESTING_STALE_H

#include "engine/testing_net.h"
#include "gnn/testing_intervals.h"

static const char *const models[] = { "gcn", "sage-mean", "gcn", "gat" },
	*const more[] = { "hidden: 6, order: product, act: tanh", "hidden: 6",
	"hidden: 6, order: gather, layers: 3", "hidden: 3, heads: 2" };
enum { NMODELS = 4, ATTENTION = 3, EPOCHS = 7 };

/* How it is trained. */
struct how { int model, kind; uint32_t n, cells, k; enum hd_mode mode; const char *dropout, *optim; };

/* every: batch.close.every, where any loss is near the target; 0: it has no batch.close. */
static inline void open_closing(struct graphs *g, struct hd_rig *rig, const struct how *how,
	uint32_t ndevices, uint32_t every)
{
	const struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };
	char text[600];

	snprintf(text, sizeof text, "model: {use: \"builtin:%s\", args: {input: %u, classes: %u, slots: %u, "
		"dropout: %s, %s}}\ndata: {kind: graph, path: %s, order: sequential}\n", models[how->model],
		TG_WIDTH, CLASSES, g->slots[how->kind], how->dropout, more[how->model], g->path[how->kind]);
	hd_rig_begin(rig, text, (uint32_t)(how->n * rows_of(g, how->kind, how->n)), how->n, how->optim);
	rig->job->value[HD_JOB_MODE].i = how->mode;
	rig->job->value[HD_JOB_STALENESS].i = how->k;
	rig->job->value[HD_JOB_CELLS].i = how->cells;
	if (every) {
		rig->job->value[HD_JOB_CLOSE_TARGET].is_none = false;
		rig->job->value[HD_JOB_CLOSE_TARGET].f = 1e9;
		rig->job->value[HD_JOB_CLOSE_METRIC].i = HD_METRIC_LOSS;
		rig->job->value[HD_JOB_CLOSE_EVERY].i = every;
	}
	hd_rig_go(rig, &spec);
}

static inline void open_stale(struct graphs *g, struct hd_rig *rig, const struct how *how,
	uint32_t ndevices)
{
	open_closing(g, rig, how, ndevices, 0);
}

#endif
