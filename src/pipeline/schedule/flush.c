/* Schedules of one chunk a rank with full backwards, drained at the end of every step. */
#include "pipeline/schedule/kind.h"

/* One stage, p copies: copy q takes a contiguous share, larger shares first, as hd_plan_data() does. */
static void data_list(struct hd_emit *e)
{
	uint32_t share = e->m / e->p, more = e->m % e->p;
	uint32_t first = e->r * share + hd_least(e->r, more), end = first + share + (e->r < more);

	for (uint32_t i = first; i < end; i++) {
		hd_emit(e, HD_INS_F, 0, i);
		hd_emit(e, HD_INS_B, 0, i);
	}
}

/* Backwards ascend too: the order of the tree (the paper's descend). */
static void gpipe_list(struct hd_emit *e)
{
	for (uint32_t i = 0; i < e->m; i++)
		hd_emit(e, HD_INS_F, e->r, i);
	for (uint32_t i = 0; i < e->m; i++)
		hd_emit(e, HD_INS_B, e->r, i);
}

/* The n virtual nodes first, first + stride, ...; w forwards ahead. */
static void one_one(struct hd_emit *e, uint32_t stage, uint32_t w, uint32_t n, uint32_t first,
	uint32_t stride)
{
	w = hd_least(w, n);
	for (uint32_t i = 0; i < w; i++)
		hd_emit(e, HD_INS_F, stage, first + i * stride);
	for (uint32_t i = 0; i < n; i++) {
		if (w + i < n)
			hd_emit(e, HD_INS_F, stage, first + (w + i) * stride);
		hd_emit(e, HD_INS_B, stage, first + i * stride);
	}
}

static void one_one_list(struct hd_emit *e) { one_one(e, e->r, e->p - 1 - e->r, e->m, 0, 1); }

/* Replica q of a stage owns the virtual nodes i with i mod replicas = q. It runs ahead by as many
 * as the ranks behind it hold, divided over the replicas. */
static void replicas_list(struct hd_emit *e)
{
	uint32_t before = 0, s = 0;

	while (e->ask->replicas && e->r >= before + e->ask->replicas[s])
		before += e->ask->replicas[s++];
	uint32_t n = e->ask->replicas ? e->ask->replicas[s] : 1;
	if (!e->ask->replicas)
		before = s = e->r;
	uint32_t q = e->r - before, owned = e->m / n + (q < e->m % n);
	uint32_t last = e->ask->replicas ? e->ask->nreplicas - 1 : e->p - 1;
	one_one(e, s, s == last ? 0 : (e->p - 1 - before) / n, owned, q, n);
}

static enum hd_err replicas_limits(const struct hd_emit *e)
{
	uint64_t sum = 0;

	for (uint32_t s = 0; e->ask->replicas && s < e->ask->nreplicas; s++) {
		if (e->ask->replicas[s] == 0)
			return hd_fail(e->diag, HD_E_INVAL,
				"%s: stage %u has no replica; each stage needs at least one", e->ask->name,
				s);
		sum += e->ask->replicas[s];
	}
	if (e->ask->replicas && sum != e->p)
		return hd_fail(e->diag, HD_E_INVAL,
			"%s: the replicas of all stages make %llu ranks, not p = %u; the nearest that "
			"works: -p %llu",
			e->ask->name, (unsigned long long)sum, e->p, (unsigned long long)sum);
	return HD_OK;
}

const struct hd_schedule_maker
	hd_make_data    = { HD_PLACE_REPLICAS, false, hd_no_limits, data_list, NULL },
	hd_make_gpipe   = { HD_PLACE_MOD, false, hd_no_limits, gpipe_list, NULL },
	hd_make_1f1b    = { HD_PLACE_MOD, false, hd_no_limits, one_one_list, NULL },
	hd_make_1f1b_rr = { HD_PLACE_REPLICAS, false, replicas_limits, replicas_list, NULL };
