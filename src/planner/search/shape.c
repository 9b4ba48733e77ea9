#include "planner/search/shape.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

/* ---- schedules: closed forms of what is in flight and what is idle */

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint32_t flight_all(uint32_t p, uint32_t m, uint32_t v, uint32_t rank) { return (void)p, (void)v,
	(void)rank, m; }
static uint32_t flight_1f1b(uint32_t p, uint32_t m, uint32_t v, uint32_t rank) { return (void)v,
	least(p - rank, m); }
/* over steps */
static uint32_t flight_on(uint32_t p, uint32_t m, uint32_t v, uint32_t rank) { return (void)m, (void)v,
	p - rank; }
static uint32_t flight_p(uint32_t p, uint32_t m, uint32_t v, uint32_t rank) { return (void)v, (void)rank,
	least(p, m); }
static uint32_t flight_2p(uint32_t p, uint32_t m, uint32_t v, uint32_t rank) { return (void)v, (void)rank,
	least(2 * p - 1, m); }
static uint32_t flight_half(uint32_t p, uint32_t m, uint32_t v, uint32_t rank) { return (void)v, (void)rank,
	least(p / 2 + 1, m); }
static uint32_t flight_third(uint32_t p, uint32_t m, uint32_t v, uint32_t rank) { return (void)v, (void)rank,
	least((p + 1) / 3 + 1, m); }
static uint32_t flight_dual(uint32_t p, uint32_t m, uint32_t v, uint32_t rank) { return (void)v, (void)rank,
	least(p + 1, m); }

/* Chunks ahead with near-equal groups, the first of g. */
static uint32_t flight_interleaved(uint32_t p, uint32_t m, uint32_t v, uint32_t rank)
{
	uint32_t groups = m / p ? m / p : 1, g = (m + groups - 1) / groups;
	uint64_t chunks = 2 * (uint64_t)(p - 1 - rank) + (uint64_t)(v - 1) * g + 1;

	return least((uint32_t)((chunks + v - 1) / v), m);
}

static double total(const struct hd_stage_cost *c) { return c->f + c->i + c->w > 0 ?
	(double)(c->f + c->i + c->w) : 1; }
static double positive(double x) { return x > 0 ? x : 0; }

static double idle_all(uint32_t p, uint32_t m, uint32_t v, const struct hd_stage_cost *c) { return (void)p,
	(void)m, (void)v, (void)c, 1; }
static double idle_none(uint32_t p, uint32_t m, uint32_t v, const struct hd_stage_cost *c) { return (void)p,
	(void)m, (void)v, (void)c, 0; }
static double idle_interleaved(uint32_t p, uint32_t m, uint32_t v,
	const struct hd_stage_cost *c) { return (void)p, (void)m, (void)c, 1.0 / v; }

static double idle_h1(uint32_t p, uint32_t m, uint32_t v, const struct hd_stage_cost *c)
{
	return (void)p, (void)m, (void)v, positive((double)(c->f + c->i - c->w)) / total(c);
}

static double idle_h2(uint32_t p, uint32_t m, uint32_t v, const struct hd_stage_cost *c)
{
	return m < 2 * p - 1 ? idle_h1(p, m, v, c) : ((double)c->f +
		positive((double)(c->f + c->i - 2 * c->w))) / total(c);
}

/* These hold for F = I = W. */
static double idle_v(uint32_t p, uint32_t m, uint32_t v, const struct hd_stage_cost *c) { return (void)v,
	(void)c, m < 2 * p - 1 ? 1.0 / 2 : 1.0 / 6; }
static double idle_half(uint32_t p, uint32_t m, uint32_t v, const struct hd_stage_cost *c)
{
	return (void)m, (void)v, (void)c, p > 1 ? (1.75 * p - 1) / (3.0 * (p - 1)) : 0;
}
static double idle_third(uint32_t p, uint32_t m, uint32_t v, const struct hd_stage_cost *c)
{
	return (void)m, (void)v, (void)c, p > 1 ? (2.0 * p - 1.5) / (3.0 * (p - 1)) : 0;
}
static double idle_dual(uint32_t p, uint32_t m, uint32_t v, const struct hd_stage_cost *c) { return (void)p,
	(void)m, (void)v, (void)c, 1.0 / 3; }

static uint32_t any_m(uint32_t p) { return (void)p, 1; }
static uint32_t m_of_p(uint32_t p) { return p; }
static uint32_t m_of_2p(uint32_t p) { return 2 * p; }

const struct hd_auto_row hd_auto_rows[] = {
	{ "data-parallel", HD_UPDATE_FLUSH, 1, 1, false, true, true, flight_1f1b, idle_all, any_m, "m >= 1" },
	{ "gpipe", HD_UPDATE_FLUSH, 1, 1, false, false, true, flight_all, idle_all, any_m, "m >= 1" },
	{ "1f1b", HD_UPDATE_FLUSH, 1, 1, false, false, true, flight_1f1b, idle_all, any_m, "m >= 1" },
	{ "interleaved", HD_UPDATE_FLUSH, 2, HD_AUTO_CHUNKS, false, false, true, flight_interleaved, idle_interleaved, any_m, "m >= 1" },
	{ "zb-h1", HD_UPDATE_FLUSH, 1, 1, false, false, false, flight_p, idle_h1, any_m, "m >= 1" },
	{ "zb-h2", HD_UPDATE_FLUSH, 1, 1, false, false, false, flight_2p, idle_h2, any_m, "m >= 1" },
	{ "zb-v", HD_UPDATE_FLUSH, 2, 2, true, false, false, flight_p, idle_v, any_m, "m >= 1" },
	{ "v-half", HD_UPDATE_FLUSH, 2, 2, true, false, false, flight_half, idle_half, any_m, "m >= 1" },
	{ "v-min", HD_UPDATE_FLUSH, 2, 2, true, false, false, flight_third, idle_third, any_m, "m >= 1" },
	{ "dualpipev", HD_UPDATE_FLUSH, 2, 2, true, false, false, flight_dual, idle_dual, m_of_2p, "m >= 2p" },
	{ "2bw", HD_UPDATE_2BW, 1, 1, false, false, false, flight_1f1b, idle_none, m_of_p, "m >= p" },
	{ "stash", HD_UPDATE_STASH, 1, 1, false, false, false, flight_on, idle_none, any_m, "m >= 1" },
	{ "vsync", HD_UPDATE_VSYNC, 1, 1, false, false, false, flight_on, idle_none, any_m, "m >= 1" },
	{ 0 },
};

bool hd_auto_row_may(const struct hd_auto_row *row, const struct hd_auto_ask *ask, uint32_t p, uint32_t v)
{
	if (row->update != ask->update || v < row->vmin || v > row->vmax ||
		(p == 1 && row->update == HD_UPDATE_FLUSH) != row->alone)
		return false;
	return !ask->schedule || !strcmp(ask->schedule, row->schedule);
}

/* ---- tensor groups */

/* Ops that shards leave whole (graph/shard.h) unless they are split along the sequence; names of weights
 * may follow the op. */
static bool lies_between(const char *op)
{
	static const char *const ops[] = { "layernorm", "add_layernorm", "rmsnorm", "add_rmsnorm", "dropout",
		"add" };
	size_t len = strcspn(op, " ");

	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (len == strlen(ops[i]) && !strncmp(op, ops[i], len))
			return true;
	return false;
}

/* What a device of a group has whole of such a node: its weights; its work and activations, but along the
 * sequence. */
static void add_whole(struct hd_stage_cost *to, const struct hd_stage_cost *x, bool sequence)
{
	to->param += x->param;
	to->opt += x->opt;
	to->step += x->step;
	to->add += x->add;
	if (sequence)
		return;
	to->f += x->f;
	to->i += x->i;
	to->w += x->w;
	to->r += x->r;
	to->saved += x->saved;
	to->saved_w += x->saved_w;
	to->kept += x->kept;
}

/* With the 2^62 ps of all nodes still below 2^63. */
#define MOST_SUMS_PS 0x1p60

/* The sums of a group's shards: every other node with weights sums its output on the way forward and as much
 * on the way back. Of pairs of linear nodes one sum each would do: this is a bound. `whole`: what is not
 * divided. */
static double shard_sums_ps(const struct hd_auto_space *space, uint32_t first, uint32_t last, uint32_t t,
	struct hd_stage_cost *whole)
{
	const struct hd_cut_sums *sums = space->sums;
	const struct hd_cluster_level *inner = &space->cluster->level[0];
	const struct hd_cuts *cuts = sums->cuts;
	double bytes = 0, n = 0;

	*whole = (struct hd_stage_cost){ 0 };
	for (uint32_t v = 0; v < sums->profile->nnodes; v++) {
		const struct hd_profile_node *node = &sums->profile->node[v];
		uint32_t home = cuts->home[v];
		if ((node->param <= 0 && !space->between[v]) || home == HD_NO_NODE ||
			!hd_cuts_ran(cuts, last, home) ||
		    (first && hd_cuts_ran(cuts, first - 1, home)))
			continue;
		if (space->between[v]) {
			const struct hd_stage_cost one = hd_cut_sums_node(sums, v);
			add_whole(whole, &one, space->ask->sequence);
			continue;
		}
		n++;
		for (uint32_t o = 0; o < node->nouts; o++)
			bytes += (double)node->out[o];
	}
	return 2 * (double)(t - 1) / t * bytes * (1e12 / inner->bytes_per_s) + n * 2 *
		(double)inner->latency_ps;
}

struct hd_stage_cost hd_auto_shard_cost(const struct hd_auto_space *space, struct hd_stage_cost cost,
	uint32_t first, uint32_t last, uint32_t t)
{
	struct hd_stage_cost whole;

	if (t == 1)
		return cost;
	int64_t sum = llround(shard_sums_ps(space, first, last, t, &whole)), by = t;
	const struct { int64_t *all, whole; } parts[] = {
		{ &cost.f, whole.f }, { &cost.i, whole.i }, { &cost.w, whole.w }, { &cost.r, whole.r }, { &cost.saved, whole.saved },
		{ &cost.saved_w, whole.saved_w }, { &cost.kept, whole.kept }, { &cost.in, 0 }, { &cost.out, 0 }, { &cost.param, whole.param },
		{ &cost.opt, whole.opt }, { &cost.work, 0 }, { &cost.step, whole.step }, { &cost.add, whole.add },
	};
	for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
		*parts[k].all = (*parts[k].all - parts[k].whole + by - 1) / by + parts[k].whole;
	cost.f += sum;
	cost.i += sum;
	cost.r += sum;
	cost.group = sum;
	return cost;
}

static enum hd_err find_between(struct hd_auto_space *space)
{
	const struct hd_profile *p = space->sums->profile;

	if (space->between)
		return HD_OK;
	space->between = hd_arena_take(space->work, (size_t)p->nnodes + 1, sizeof *space->between);
	for (uint32_t v = 0; space->between && v < p->nnodes; v++)
		space->between[v] = lies_between(p->node[v].op);
	return space->between ? HD_OK : hd_fail(space->diag, HD_E_NOMEM, "no memory for %u nodes", p->nnodes);
}

enum hd_err hd_auto_shard(struct hd_auto_space *space, uint32_t t)
{
	const struct hd_steady_table *w = &space->whole;
	size_t n = (size_t)w->n * (w->n + 1) / 2;

	space->t = t;
	space->sharded = *w;
	if (t == 1)
		return HD_OK;
	struct hd_stage_cost whole;
	enum hd_err err = find_between(space);
	if (err)
		return err;
	if (shard_sums_ps(space, 0, space->sums->cuts->n - 1, t, &whole) > MOST_SUMS_PS)
		return HD_E_NOTFOUND;
	if (!(space->sharded.range = hd_arena_take(space->work, n, sizeof *w->range)))
		return hd_fail(space->diag, HD_E_NOMEM, "no memory for the ranges of %u cuts", w->n);
	for (uint32_t j = 0; j < w->n; j++)
		for (uint32_t k = 0; k <= j; k++)
			if (w->may[hd_steady_at(k, j)])
				space->sharded.range[hd_steady_at(k, j)] = hd_auto_shard_cost(space,
					w->range[hd_steady_at(k, j)],
					k ? w->cut[k - 1] + 1 : 0, w->cut[j], t);
	return HD_OK;
}

/* ---- shares */

/* Virtual nodes in proportion to speeds; false: a pipeline has none. */
static bool deal_shares(uint32_t *share, const double *speed, uint32_t n, uint32_t vns,
	struct hd_arena *scratch)
{
	double *rest = hd_arena_take(scratch, n, sizeof *rest), sum = 0;
	uint32_t left = vns;

	if (!rest)
		return false;
	for (uint32_t q = 0; q < n; q++)
		sum += speed[q];
	for (uint32_t q = 0; q < n; q++) {
		double exact = (double)vns * speed[q] / sum;
		share[q] = exact < vns ? (uint32_t)exact : vns;
		share[q] = share[q] < left ? share[q] : left;
		rest[q] = exact - share[q];
		left -= share[q];
	}
	while (left--) {
		uint32_t best = 0;
		for (uint32_t q = 1; q < n; q++)
			if (rest[q] > rest[best])
				best = q;
		share[best]++;
		rest[best] -= 1;
	}
	for (uint32_t q = 0; q < n; q++)
		if (!share[q])
			return false;
	return true;
}

/* ---- one shape */

double hd_auto_speed_at(const struct hd_auto_space *s, const struct hd_auto_cand *c, uint32_t q, uint32_t r)
{
	double speed = INFINITY;

	for (uint32_t i = 0; i < c->shape.t; i++)
		speed = fmin(speed, hd_cluster_kind_of(s->cluster, hd_auto_device(c, q, r) + i)->speed);
	return speed;
}

static int64_t memory_at(const struct hd_auto_space *s, const struct hd_auto_cand *c, uint32_t q, uint32_t r)
{
	int64_t memory = 0;

	for (uint32_t i = 0; i < c->shape.t; i++) {
		int64_t mine = hd_cluster_kind_of(s->cluster, hd_auto_device(c, q, r) + i)->memory;
		memory = mine && (!memory || mine < memory) ? mine : memory;
	}
	return memory;
}

/* What stages may count on, of memory with a limit: never 0, which is none. */
static int64_t left_of(int64_t has, int64_t spare) { return has - spare > HD_AUTO_CHUNKS ? has - spare :
	HD_AUTO_CHUNKS; }

static enum hd_steady_recompute recompute_of(const struct hd_auto_space *s, const struct hd_auto_cand *c)
{
	return c->again || c->variant == HD_AUTO_AGAIN ? HD_STEADY_ALWAYS : c->variant == HD_AUTO_KEPT ?
		HD_STEADY_NEVER :
		(enum hd_steady_recompute)s->ask->recompute;
}

static void worse(double *inv, double *latency, const struct hd_cluster_level *level)
{
	*inv = fmax(*inv, 1e12 / level->bytes_per_s);
	*latency = fmax(*latency, (double)level->latency_ps);
}

/* Site s: the device of the pipeline `slow` that decides, memory and links of the worst of all pipelines. */
static void settle_site(const struct hd_auto_space *s, const struct hd_auto_cand *c, uint32_t slow,
	uint32_t stage, struct hd_steady_site *site)
{
	uint32_t p = c->shape.p, d = c->shape.d, r = hd_auto_rank_of(c->row, p, stage),
		before = stage ? hd_auto_rank_of(c->row, p, stage - 1) : r;
	uint32_t low = UINT32_MAX, high = 0;

	*site = (struct hd_steady_site){ .speed = hd_auto_speed_at(s, c, slow, r),
		.inflight = c->row->inflight(p, c->share[slow], c->shape.v, r) };
	if (hd_auto_of_each(c->row->update)) {
		site->versions = c->row->update == HD_UPDATE_STASH ? p - r : p;
		site->every = 1;
	}
	for (uint32_t q = 0; q < d; q++) {
		int64_t has = memory_at(s, c, q, r), memory = has ? left_of(has,
			c->spare ? c->spare[r] : 0) / c->shape.v : 0;
		uint32_t device = hd_auto_device(c, q, r);
		site->memory = memory && (!site->memory || memory < site->memory) ? memory : site->memory;
		low = device < low ? device : low;
		high = device > high ? device : high;
		if (before != r)
			worse(&site->inv_bytes_ps, &site->latency_ps,
				&s->cluster->level[hd_cluster_between(s->cluster,
				hd_auto_device(c, q, before),
				device)]);
	}
	if (d > 1)
		worse(&site->red_inv_bytes_ps, &site->red_latency_ps,
			&s->cluster->level[hd_cluster_between(s->cluster, low, high)]);
}

/* Shares of the pipelines, and the one that takes longest. */
static enum hd_err share_out(struct hd_auto_space *s, struct hd_auto_cand *c, uint32_t *slow)
{
	uint32_t d = c->shape.d, fewest = UINT32_MAX;
	double *speed = hd_arena_take(s->scratch, d, sizeof *speed), longest = 0;

	c->share = hd_arena_take(s->work, d, sizeof *c->share);
	if (!speed || !c->share)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for %u pipelines", d);
	for (uint32_t q = 0; q < d; q++) {
		speed[q] = INFINITY;
		for (uint32_t r = 0; r < c->shape.p; r++)
			speed[q] = fmin(speed[q], hd_auto_speed_at(s, c, q, r));
	}
	if (!deal_shares(c->share, speed, d, s->ask->vns, s->scratch))
		return HD_E_NOTFOUND;
	*slow = 0;
	for (uint32_t q = 0; q < d; q++) {
		fewest = c->share[q] < fewest ? c->share[q] : fewest;
		if (c->share[q] / speed[q] > longest) {
			longest = c->share[q] / speed[q];
			*slow = q;
		}
	}
	return fewest < c->row->least_m(c->shape.p) ? HD_E_NOTFOUND : HD_OK;
}

static enum hd_err ask_of(struct hd_auto_space *s, struct hd_auto_cand *c, struct hd_steady_how *how)
{
	uint32_t stages = c->shape.p * c->shape.v, slow = 0;
	enum hd_err err = stages > s->sharded.n ? HD_E_NOTFOUND : share_out(s, c, &slow);

	if (err)
		return err;
	struct hd_steady_site *site = hd_arena_take(s->scratch, stages, sizeof *site);
	if (!site)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for %u stages", stages);
	for (uint32_t stage = 0; stage < stages; stage++)
		settle_site(s, c, slow, stage, &site[stage]);
	*how = (struct hd_steady_how){ .m = c->share[slow], .chunks = c->shape.v, .site = site,
		.nsites = stages, .copies = c->shape.d,
		.recompute = recompute_of(s, c), .versions = c->row->update == HD_UPDATE_2BW ? 2 : 1 };
	return HD_OK;
}

static uint64_t hash_of(const struct hd_steady_how *how)
{
	uint64_t parts[] = { how->m, how->chunks, how->nsites, how->copies, how->versions,
		(uint64_t)how->recompute,
		hd_hash64(how->site, how->nsites * sizeof *how->site) };

	return hd_hash64(parts, sizeof parts);
}

/* Neighbours in the enumeration often ask for the same stages. */
static enum hd_err solve(struct hd_auto_space *s, const struct hd_steady_how *how, struct hd_steady *out)
{
	uint64_t hash = hash_of(how);

	for (uint32_t i = 0; i < s->nmemo && i < HD_AUTO_MEMO; i++)
		if (s->memo[i].hash == hash && s->memo[i].t == s->t) {
			*out = s->memo[i].stages;
			return s->memo[i].err;
		}
	enum hd_err err = hd_steady_solve(out, &s->sharded, how, s->work, s->scratch, s->diag);
	if (!err || err == HD_E_NOTFOUND)
		s->memo[s->nmemo++ % HD_AUTO_MEMO] = (struct hd_auto_memo){ hash, s->t, err, *out };
	return err;
}

enum hd_err hd_auto_estimate(struct hd_auto_space *s, struct hd_auto_cand *c, bool *unfit)
{
	struct hd_steady_how how = { 0 };
	enum hd_err err;

	*unfit = false;
	hd_arena_reset(s->scratch);
	err = ask_of(s, c, &how);
	if (err)
		return err;
	err = solve(s, &how, &c->stages);
	*unfit = err == HD_E_NOTFOUND;
	if (err)
		return err;
	struct hd_stage_cost all = s->sharded.range[hd_steady_at(0, s->sharded.n - 1)];
	double slowest = c->stages.steady_ps / (how.m > 1 ? how.m - 1 : 1),
		idle = c->row->idle(c->shape.p, how.m, c->shape.v, &all);
	if (how.m == 1)
		slowest = c->stages.fill_ps / c->shape.p;
	slowest = slowest < c->stages.fill_ps ? slowest : c->stages.fill_ps;
	c->estimate_ps = c->stages.steady_ps + slowest + idle * (c->stages.fill_ps - slowest);
	return HD_OK;
}

enum hd_err hd_auto_replicate(struct hd_auto_space *s, struct hd_auto_cand *c)
{
	struct hd_cluster cluster = *s->cluster;
	struct hd_steady_how how = { .m = s->ask->vns, .recompute = recompute_of(s, c), .cluster = &cluster };

	hd_arena_reset(s->scratch);
	cluster.kind = hd_arena_take(s->scratch, cluster.nkinds, sizeof *cluster.kind);
	if (!cluster.kind)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for %u kinds of devices", cluster.nkinds);
	memcpy(cluster.kind, s->cluster->kind, cluster.nkinds * sizeof *cluster.kind);
	for (uint32_t k = 0; k < cluster.nkinds && c->spare; k++)
		if (cluster.kind[k].memory)
			cluster.kind[k].memory = left_of(cluster.kind[k].memory, c->spare[0]);
	enum hd_err err = hd_steady_solve(&c->stages, &s->whole, &how, s->work, s->scratch, s->diag);
	if (err)
		return err;
	c->shape.p = c->stages.nstages;
	c->estimate_ps = hd_steady_ps(&c->stages);
	return HD_OK;
}

/* Where leaving all that was too much leaves no way, half of it may, or a quarter: other cuts need
 * something else. */
enum { HALVES = 4 };

static enum hd_err cut_again(struct hd_auto_space *s, struct hd_auto_cand *c)
{
	bool unfit;

	return c->row ? hd_auto_estimate(s, c, &unfit) : hd_auto_replicate(s, c);
}

enum hd_err hd_auto_tighten(struct hd_auto_space *s, struct hd_auto_cand *c,
	const struct hd_auto_plan *judged)
{
	uint32_t n = c->row ? c->shape.p : 1;
	int64_t *more = hd_arena_take(s->work, n, sizeof *more),
		*spare = hd_arena_take(s->work, n, sizeof *spare), *before = c->spare;
	bool over = false;

	if (!spare || !more)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for %u ranks", n);
	for (uint32_t r = 0; r < judged->nranks; r++) {
		int64_t much = judged->rank[r].memory ? judged->rank[r].peak - judged->rank[r].memory : 0;
		more[r % n] = much > more[r % n] ? much : more[r % n];
		over |= much > 0;
	}
	c->spare = spare;
	enum hd_err err = HD_E_NOTFOUND;
	for (int halves = 0; over && err == HD_E_NOTFOUND && halves < HALVES; halves++) {
		for (uint32_t at = 0; at < n; at++)
			spare[at] = (before ? before[at] : 0) + (more[at] >> halves);
		err = cut_again(s, c);
	}
	if (!over || err != HD_E_NOTFOUND || c->again || c->variant != HD_AUTO_AS_NEEDED ||
		s->ask->recompute != HD_AUTO_IF_NEEDED)
		return err;
	c->again = true;
	c->spare = NULL;
	return cut_again(s, c);
}

enum hd_err hd_auto_least(struct hd_auto_space *s, struct hd_auto_cand *c, int64_t *bytes)
{
	struct hd_steady_how how = { 0 };
	enum hd_err err;

	*bytes = INT64_MAX;
	hd_arena_reset(s->scratch);
	err = ask_of(s, c, &how);
	if (err == HD_E_NOTFOUND)
		return HD_OK;
	if (!err)
		err = hd_steady_least_bytes(bytes, &s->sharded, &how, s->scratch, s->diag);
	if (!err && *bytes < INT64_MAX / HD_AUTO_CHUNKS)
		*bytes *= c->shape.v;
	return err;
}
