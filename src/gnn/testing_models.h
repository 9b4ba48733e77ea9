/* testing_models.h -- workers that train models of graphs in several intervals, for tests of this room:
 * included by *_test.c only. */
#ifndef HD_GNN_TESTING_MODELS_H
#define HD_GNN_TESTING_MODELS_H

#include "engine/testing_net.h"
#include "gnn/testing_intervals.h"

static const struct { const char *name, *more; } models[] = {
	{ "gcn", "hidden: 6, order: product" }, { "sage-mean", "hidden: 30" },
	{ "gat", "hidden: 4, heads: 3" }, { "gat", "hidden: 3, heads: 2, out_heads: 3, layers: 3" },
	{ "gcn", "hidden: 6, order: gather, layers: 3" },
	{ "gcn", "hidden: 4000, order: product" },
};
enum { NMODELS = 5, WIDE = NMODELS };
__attribute__((unused))
static const char adam[] = "optim: {kind: adamw, lr: 0.01, clip: 0.5, schedule: {kind: constant, warmup: "
	"0}}\n",
	plain[] = "optim: {kind: sgd, lr: 1, clip: 0, schedule: {kind: constant, warmup: 0}}\n";

static inline void open_rig(struct graphs *g, struct hd_rig *rig, int model, int kind, uint32_t n,
	const char *dropout,
	const char *optim, uint32_t ndevices)
{
	const struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };
	char text[600];

	snprintf(text, sizeof text, "model: {use: \"builtin:%s\", args: {input: %u, classes: %u, slots: %u, "
		"dropout: %s, %s}}\ndata: {kind: graph, path: %s, order: sequential}\n", models[model].name,
		TG_WIDTH, CLASSES, g->slots[kind], dropout, models[model].more, g->path[kind]);
	hd_rig_begin(rig, text, (uint32_t)(n * rows_of(g, kind, n)), n, optim);
	hd_rig_go(rig, &spec);
}

#endif
