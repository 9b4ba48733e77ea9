/* Any bytes are refused with a sentence, or are graphs of receives; of small ones every order has each
 * receive once and a makespan between all beside all and nothing beside anything. Or they are problems of
 * buckets: the best are no later than one a gradient, or one for all. */
#include <stdint.h>
#include <stdlib.h>

#include "planner/bucket.h"

enum { BUDGET = 64 << 20, RECVS_MOST = 24, OPS_MOST = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void order(const struct hd_order_graph *g, struct hd_arena *arena)
{
	const struct hd_order_bounds bounds = hd_order_bounds(g);

	for (int mode = 0; mode < HD_NORDERS; mode++) {
		bool seen[RECVS_MOST] = { false };
		struct hd_diag diag = { "" };
		struct hd_recv_order o;
		enum hd_err err = hd_order_make(&o, g, (enum hd_order_mode)mode, 1, arena, &diag);
		if (err == HD_E_BUG || (err && !diag.text[0]))
			abort();
		if (err)
			return;
		for (uint32_t k = 0; k < g->nrecvs; k++) {
			if (o.recv[k] >= g->nrecvs || seen[o.recv[k]] || o.priority[o.recv[k]] > k)
				abort();
			seen[o.recv[k]] = true;
		}
		if (o.makespan < bounds.lower || o.makespan > bounds.upper)
			abort();
	}
}

static void bucket(const struct hd_bucket_problem *p, struct hd_arena *arena)
{
	static const enum hd_bucket_rule rules[] = { HD_BUCKETS_EXACT, HD_BUCKETS_EACH, HD_BUCKETS_ONE };
	struct hd_bucketing out[3];
	uint32_t *order = NULL;
	enum hd_err err = hd_compute_greedy(&order, p, arena, NULL);

	for (int k = 0; k < 3 && !err; k++)
		err = hd_buckets_make(&out[k], p, order, rules[k], 0, arena, NULL);
	if (!err && (out[0].end > out[1].end || out[0].end > out[2].end || out[0].end < out[0].compute_end))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_bucket_problem *p = NULL;
	struct hd_order_graph *g = NULL;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	uint32_t n = 0;

	hd_arena_init(&arena, BUDGET);
	enum hd_err err = hd_order_read(&g, &n, (const char *)bytes, len, "f", &arena, &diag);
	if (err == HD_E_BUG || (err && !diag.text[0]))
		abort();
	for (uint32_t i = 0; i < n && i < 4 && !err; i++)
		if (g[i].nrecvs <= RECVS_MOST && g[i].nops <= OPS_MOST)
			order(&g[i], &arena);
	err = hd_bucket_read(&p, &n, (const char *)bytes, len, "f", &arena, &diag);
	for (uint32_t i = 0; i < n && i < 4 && !err; i++)
		if (p[i].graph.nops <= OPS_MOST)
			bucket(&p[i], &arena);
	hd_arena_finish(&arena);
	return 0;
}
