/* Schedules of one chunk a rank with full backwards, drained at the end of every step. */
#include "pipeline/schedule/kind.h"

#include "pipeline/lanes.h"

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

/* The n virtual nodes first, first + stride, ... */
struct stride { uint32_t first, by; };
static uint32_t in_stride(const void *self, uint32_t i)
{
	const struct stride *s = self;

	return s->first + i * s->by;
}

/* n virtual nodes, the i-th as `vn` says; w forwards ahead. */
static void one_one(struct hd_emit *e, uint32_t stage, uint32_t w, uint32_t n,
	uint32_t (*vn)(const void *self, uint32_t i), const void *self)
{
	w = hd_least(w, n);
	for (uint32_t i = 0; i < w; i++)
		hd_emit(e, HD_INS_F, stage, vn(self, i));
	for (uint32_t i = 0; i < n; i++) {
		if (w + i < n)
			hd_emit(e, HD_INS_F, stage, vn(self, w + i));
		hd_emit(e, HD_INS_B, stage, vn(self, i));
	}
}

static void one_one_list(struct hd_emit *e)
{
	one_one(e, e->r, e->p - 1 - e->r, e->m, in_stride, &(struct stride){ 0, 1 });
}

/* The rank at hand: replica q of the n of its stage, with `before` ranks of the stages before. It runs ahead
 * by as many virtual nodes as the ranks behind it hold, divided over the replicas. */
struct replica { uint32_t stage, q, n, before, ahead; };
static struct replica replica_of(const struct hd_emit *e)
{
	const struct hd_schedule_ask *ask = e->ask;
	struct replica x = { .n = 1, .before = e->r, .stage = e->r };
	const uint32_t last = ask->replicas ? ask->nreplicas - 1 : e->p - 1;

	if (ask->replicas) {
		x.before = x.stage = 0;
		while (e->r >= x.before + ask->replicas[x.stage])
			x.before += ask->replicas[x.stage++];
		x.n = ask->replicas[x.stage];
	}
	x.q = e->r - x.before;
	x.ahead = x.stage == last ? 0 : (e->p - 1 - x.before) / x.n;
	return x;
}

/* It owns the virtual nodes i with i mod replicas = q. */
static void replicas_list(struct hd_emit *e)
{
	const struct replica x = replica_of(e);

	one_one(e, x.stage, x.ahead, e->m / x.n + (x.q < e->m % x.n), in_stride,
		&(struct stride){ x.q, x.n });
}

static uint32_t in_list(const void *self, uint32_t i) { return ((const uint32_t *)self)[i]; }

/* It owns those of its lanes, which take turns. */
static void lanes_list(struct hd_emit *e, const struct hd_lanes *lanes, uint32_t *vn)
{
	const struct replica x = replica_of(e);
	uint32_t n = 0;

	for (uint32_t turn = 0; turn <= e->m / lanes->n; turn++)
		for (uint32_t i = 0; i < lanes->n; i++) {
			const uint32_t l = lanes->order[i];
			if (hd_lanes_copy(lanes, l, x.stage) == x.q && turn < hd_lanes_share(lanes, l, e->m))
				vn[n++] = hd_lanes_first(lanes, l, e->m) + turn;
		}
	one_one(e, x.stage, x.ahead, n, in_list, vn);
}

static enum hd_err all_replicas(struct hd_emit *e)
{
	struct hd_lanes lanes = { .n = 0 };
	uint32_t *vn = NULL;
	const bool neighbours = e->ask->neighbours && e->ask->replicas;
	enum hd_err err = !neighbours ? HD_OK : hd_lanes_make(&lanes, e->ask->replicas, e->ask->nreplicas,
		e->arena, e->diag);

	if (!err && neighbours && !(vn = hd_arena_take(e->arena, e->m, sizeof *vn)))
		err = hd_fail(e->diag, HD_E_NOMEM, "no memory for %u lanes", lanes.n);
	for (e->r = 0; e->r < e->p && !err; e->r++) {
		e->list = &e->schedule->list[e->r];
		if (neighbours)
			lanes_list(e, &lanes, vn);
		else
			replicas_list(e);
	}
	return err;
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
	hd_make_1f1b_rr = { HD_PLACE_REPLICAS, false, replicas_limits, NULL, all_replicas };
