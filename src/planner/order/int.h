/* int.h -- what the readers of both files of this folder share (order.h, bucket.h). */
#ifndef HD_PLANNER_ORDER_INT_H
#define HD_PLANNER_ORDER_INT_H

#include "base/json.h"
#include "planner/bucket.h"

HD_MUST_USE enum hd_err hd_order_time(const struct hd_json *at, int64_t *ticks, struct hd_diag *diag);
/* "name", "recv" (absent where `bare`) and "ops" of an object. */
HD_MUST_USE enum hd_err hd_order_graph_read(struct hd_order_graph *graph, const struct hd_json *from,
	bool bare, struct hd_arena *arena,
	struct hd_diag *diag);
/* The object itself, or those of its "cases". */
struct hd_order_cases { const struct hd_json *root, *list; uint32_t n; };
HD_MUST_USE enum hd_err hd_order_cases(struct hd_order_cases *cases, const char *text, size_t len,
	const char *file, struct hd_arena *arena,
	struct hd_diag *diag);
static inline const struct hd_json *hd_order_case(const struct hd_order_cases *cases, uint32_t i)
{
	return cases->list ? hd_json_item(cases->list, i) : cases->root;
}

/* Ticks that all gradients take by beta. */
static inline double hd_bucket_ticks(const struct hd_bucket_problem *p)
{
	double bytes = 0;

	for (uint32_t o = 0; o < p->graph.nops; o++)
		bytes += (double)p->bytes[o];
	return p->beta * bytes;
}

#endif
