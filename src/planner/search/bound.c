#include "planner/search/bound.h"

#include <math.h>
#include <string.h>

/* ---- rounding: half a picosecond for each instruction or transfer, and what sums of doubles lose */

static double surely(double ps, double nrounded) { return fmax(0, ps * (1 - 1e-9) - nrounded); }

/* ---- ports of the cluster, as the simulator has them (sim/links.h): picoseconds that what goes over them
 * takes */

struct ports { const struct hd_cluster *cluster; double *ps[HD_CLUSTER_LEVELS][2];
	uint32_t size[HD_CLUSTER_LEVELS], n[HD_CLUSTER_LEVELS]; };

static bool make_ports(struct ports *p, const struct hd_cluster *cluster, struct hd_arena *scratch)
{
	uint32_t size = 1;
	bool made = true;

	*p = (struct ports){ .cluster = cluster };
	for (uint32_t l = 0; l < cluster->nlevels; l++) {
		p->size[l] = size;
		p->n[l] = cluster->ndevices / size;
		for (int in = 0; in < 2; in++)
			made &= (p->ps[l][in] = hd_arena_take(scratch, p->n[l], sizeof **p->ps[l])) != NULL;
		size *= cluster->level[l].components;
	}
	return made;
}

/* What activations from a to b take, and gradients back. */
static void exchange(struct ports *p, uint32_t a, uint32_t b, double ps)
{
	uint32_t l = hd_cluster_between(p->cluster, a, b);

	for (int in = 0; in < 2; in++) {
		p->ps[l][in][a / p->size[l]] += ps;
		p->ps[l][in][b / p->size[l]] += ps;
	}
}

static void exchange_bytes(struct ports *p, uint32_t a, uint32_t b, int64_t bytes, double times)
{
	if (a != b && bytes > 0)
		exchange(p, a, b, times * fmax(0, (double)bytes *
			1e12 / p->cluster->level[hd_cluster_between(p->cluster, a, b)].bytes_per_s - 1));
}

/* The sum of a stage's gradients over `n` copies (sim_plan.h, rule 4) with one partial sum each: picoseconds
 * of a byte of weights at the slowest level of their ring, over a port each way of each component there.
 * `device` gives the k-th of them. */
struct ring { double inv, latency; uint32_t level, n; const uint32_t *device; };

static struct ring ring_of(const struct hd_cluster *cluster, const uint32_t *device, uint32_t n)
{
	struct ring ring = { .n = n, .device = device };
	uint32_t far = 0;

	for (uint32_t k = 0; k < n && n > 1; k++) {
		uint32_t l = hd_cluster_between(cluster, device[k], device[(k + 1) % n]);
		far = l > far ? l : far;
		if (k == 0 || cluster->level[l].bytes_per_s < cluster->level[ring.level].bytes_per_s)
			ring.level = l;
	}
	for (uint32_t k = 1; k < n; k *= 2)
		ring.latency += 2 * (double)cluster->level[far].latency_ps;
	ring.inv = n > 1 ? 2. * (n - 1) / n * 1e12 / cluster->level[ring.level].bytes_per_s : 0;
	return ring;
}

/* Whole bytes go over it: at least half of them are lost to that with a byte of weights less. */
static double sent_ps(const struct ring *ring, int64_t param) { return param > 0 ?
	ring->inv * (double)(param - 1) : 0; }

/* Devices of a ring ascend: those of one component are neighbours. Returns how many components there are. */
static uint32_t reduce(struct ports *p, const struct ring *ring, double ps)
{
	uint32_t size = p->size[ring->level], n = 0;

	for (uint32_t k = 0; k < ring->n && ring->n > 1; k++) {
		if (k && ring->device[k - 1] / size == ring->device[k] / size)
			continue;
		n++;
		for (int in = 0; in < 2; in++)
			p->ps[ring->level][in][ring->device[k] / size] += ps;
	}
	return n;
}

static double busiest_port(const struct ports *p)
{
	double most = 0;

	for (uint32_t l = 0; l < p->cluster->nlevels; l++)
		for (uint32_t k = 0; k < p->n[l]; k++)
			most = fmax(most, fmax(p->ps[l][0][k], p->ps[l][1][k]));
	return most;
}

/* ---- stages */

static struct hd_stage_cost stage_of(const struct hd_auto_space *s, const struct hd_auto_cand *c,
	uint32_t stage)
{
	uint32_t end = stage + 1 < c->stages.nstages ? c->stages.stage[stage + 1].first : s->sums->cuts->n;

	return hd_cut_sums_range(s->sums, c->stages.stage[stage].first, end);
}

static double work_of(const struct hd_auto_cand *c, uint32_t stage, const struct hd_stage_cost *x)
{
	return (double)(x->f + x->i + x->w + (c->stages.stage[stage].recompute ? x->r : 0));
}

/* ---- stages with copies in different numbers: copy k of r has the virtual nodes i with i mod r = k */

static double busiest_copy(const struct hd_auto_space *s, const struct hd_auto_cand *c,
	const struct hd_stage_cost *cost)
{
	double most = 0, way = 0;
	uint32_t rank = 0;

	for (uint32_t stage = 0; stage < c->stages.nstages; stage++) {
		uint32_t replicas = c->stages.stage[stage].replicas, vns = s->ask->vns / replicas;
		double fastest = 0;
		for (uint32_t i = 0; i < replicas; i++, rank++) {
			double speed = hd_cluster_kind_of(s->cluster, rank)->speed;
			fastest = fmax(fastest, speed);
			most = fmax(most, surely(way + work_of(c, stage, &cost[stage]) * vns / speed,
				4. * vns + 2. * stage));
		}
		way += (double)(cost[stage].f + cost[stage].i + cost[stage].w) / fastest;
	}
	return most;
}

/* Of more copies than virtual nodes the last ones have nothing, and are in no sum. */
static uint32_t working(uint32_t replicas, uint32_t vns) { return replicas < vns ? replicas : vns; }

/* Rank r is device r. */
static void exchange_of_copies(struct ports *p, const struct hd_auto_space *s, const struct hd_auto_cand *c,
	const struct hd_stage_cost *cost,
	uint32_t *room)
{
	uint32_t before = 0, at = 0;              /* first rank of the stage before */

	for (uint32_t stage = 0; stage < c->stages.nstages; stage++) {
		uint32_t replicas = c->stages.stage[stage].replicas;
		for (uint32_t k = 0; k < replicas; k++)
			room[k] = at++;
		const struct ring ring = ring_of(s->cluster, room, working(replicas, s->ask->vns));
		reduce(p, &ring, fmax(0, sent_ps(&ring, cost[stage].param) - 1));
	}

	for (uint32_t stage = 1; stage < c->stages.nstages; stage++) {
		uint32_t n = c->stages.stage[stage - 1].replicas, m = c->stages.stage[stage].replicas;
		for (uint32_t vn = 0; vn < s->ask->vns; vn++)
			exchange_bytes(p, before + vn % n, before + n + vn % m, cost[stage].in, 1);
		before += n;
	}
}

/* ---- pipelines of one shape */

/* Rank r of all pipelines; room: [d]. */
static struct ring ring_of_rank(const struct hd_auto_space *s, const struct hd_auto_cand *c, uint32_t r,
	uint32_t *room)
{
	for (uint32_t q = 0; q < c->shape.d; q++)
		room[q] = hd_auto_device(c, q, r);
	return ring_of(s->cluster, room, c->shape.d);
}

static double sum_ps(const struct ring *ring, int64_t param) { return ring->latency + sent_ps(ring, param); }

/* What a tensor is under way between stage - 1 and stage of pipeline q, alone. */
static double hop_ps(const struct hd_auto_space *s, const struct hd_auto_cand *c, uint32_t q, uint32_t stage,
	double bytes)
{
	uint32_t a = hd_auto_device(c, q, hd_auto_rank_of(c->row, c->shape.p, stage - 1));
	uint32_t b = hd_auto_device(c, q, hd_auto_rank_of(c->row, c->shape.p, stage));

	if (a == b)
		return 0;
	const struct hd_cluster_level *level = &s->cluster->level[hd_cluster_between(s->cluster, a, b)];
	return (double)level->latency_ps + bytes * 1e12 / level->bytes_per_s;
}

/* A rank of one pipeline: its stages, what is before them, behind them and back. */
struct bound_rank { double speed, work, there, back, sum, trips, nstages; };

/* Its trips: of each of its stages, from a virtual node's F to its backward there, through all stages
 * behind. */
static struct bound_rank look_at(const struct hd_auto_space *s, const struct hd_auto_cand *c,
	const struct hd_stage_cost *cost, const struct ring *ring,
	uint32_t q, uint32_t r)
{
	struct bound_rank x = { .speed = hd_auto_speed_at(s, c, q, r), .sum = INFINITY };
	uint32_t p = c->shape.p;
	double trip = 0;

	for (uint32_t stage = c->stages.nstages; stage-- > 0;) {
		uint32_t home = hd_auto_rank_of(c->row, p, stage);
		double speed = hd_auto_speed_at(s, c, q, home),
			hop = stage ? hop_ps(s, c, q, stage, (double)cost[stage].in) : 0;
		trip += (double)(cost[stage].f + cost[stage].i) / speed;
		if (home == r) {
			x.work += work_of(c, stage, &cost[stage]);
			x.sum = fmin(x.sum, sum_ps(ring, cost[stage].param));
			x.trips += trip;
			x.nstages++;
		}
		trip += 2 * hop;
		if (stage >= r)
			x.there += stage == r ? hop : 0, x.back += stage == r && c->row->whole_back ? hop : 0;
		else {
			x.there += (double)cost[stage].f / speed + hop;
			x.back += c->row->whole_back ? (double)(cost[stage].i + cost[stage].w) / speed + hop :
				0;
		}
	}
	return x;
}

static double busiest_rank(const struct hd_auto_space *s, const struct hd_auto_cand *c,
	const struct hd_stage_cost *cost, const struct ring *ring,
	uint32_t r)
{
	double most = 0;
	uint32_t p = c->shape.p, v = c->shape.v;

	for (uint32_t q = 0; q < c->shape.d; q++) {
		const struct bound_rank x = look_at(s, c, cost, ring, q, r);
		double share = c->share[q], rounded = 4 * x.nstages * share + 8. * c->stages.nstages + 4;
		most = fmax(most, surely(x.there + x.work / x.speed * share + fmax(x.back, x.sum), rounded));
		most = fmax(most, surely(x.trips * share, rounded *
			c->stages.nstages) / ((double)c->row->inflight(p, c->share[q], v, r) * v));
	}
	return most;
}

static void exchange_of_ranks(struct ports *p, const struct hd_auto_cand *c, const struct hd_stage_cost *cost)
{
	for (uint32_t q = 0; q < c->shape.d; q++)
		for (uint32_t stage = 1; stage < c->stages.nstages; stage++)
			exchange_bytes(p, hd_auto_device(c, q,
				hd_auto_rank_of(c->row, c->shape.p, stage - 1)),
				hd_auto_device(c, q, hd_auto_rank_of(c->row, c->shape.p, stage)),
				cost[stage].in, c->share[q]);
}

enum hd_err hd_auto_bound(const struct hd_auto_space *s, const struct hd_auto_cand *c,
	struct hd_arena *scratch, double *ps)
{
	struct hd_stage_cost *cost;
	struct ports ports;

	*ps = 0;
	if (s->ask->update != HD_UPDATE_FLUSH || c->shape.t > 1)
		return HD_OK;
	cost = hd_arena_take(scratch, c->stages.nstages, sizeof *cost);
	uint32_t *room = hd_arena_take(scratch, s->cluster->ndevices, sizeof *room);
	if (!cost || !room || !make_ports(&ports, s->cluster, scratch))
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for the bound of a plan");
	for (uint32_t stage = 0; stage < c->stages.nstages; stage++)
		cost[stage] = stage_of(s, c, stage);
	if (c->row)
		exchange_of_ranks(&ports, c, cost);
	else
		exchange_of_copies(&ports, s, c, cost, room);
	for (uint32_t r = 0; c->row && r < c->shape.p; r++) {
		const struct ring ring = ring_of_rank(s, c, r, room);
		for (uint32_t stage = 0; stage < c->stages.nstages; stage++)
			if (hd_auto_rank_of(c->row, c->shape.p, stage) == r)
				reduce(&ports, &ring, fmax(0, sent_ps(&ring, cost[stage].param) - 1));
		*ps = fmax(*ps, busiest_rank(s, c, cost, &ring, r));
	}
	if (!c->row)
		*ps = busiest_copy(s, c, cost);
	*ps = fmax(*ps, surely(busiest_port(&ports), 0));
	return HD_OK;
}

/* ---- wherever the boundaries are */

/* Steps of the search over places: cuts squared times stages; and ports times stages. */
enum { MOST_PLACES = 4000000, MOST_PORTS = 1000000 };

/* What a stage takes of each picosecond of work and each byte of weights; the boundary before it of each
 * byte: on the port that it and the boundary before use most, and over all ports; and of a tensor by
 * itself. */
struct weights {
	double work, before, own, latency, inv;
	/* of a byte of weights, and latencies: their sum over copies */
	double param, sum;
	/* over all ports of a level: of a byte over the boundary, of one of weights */
	double all[HD_CLUSTER_LEVELS], reds[HD_CLUSTER_LEVELS];
	uint32_t firsts, behind;                  /* ranks whose first stage it is; or is not before it */
	uint32_t trips;                           /* stages of rank 0 up to it */
	/* of SUM_MEANS: of a mean's weights those behind it, those of its rank up to it, those from it on */
	struct { double behind, rank, from; } mean[2];
};

struct places {
	const struct hd_auto_space *space;
	const struct hd_auto_cand *cand;
	struct weights *stage;                    /* [stages + 1] the last one of nothing */
	uint32_t nstages, slow;                   /* slow: the pipeline that has most to do for its speed */
	double target, fastest, slowest, speeds;  /* of the slow pipeline's ranks, and their sum */
	uint32_t nports[HD_CLUSTER_LEVELS], vns;  /* that anything goes over; of the slow pipeline */
	bool *used;                               /* [levels][devices] */
	uint32_t *room;                           /* [devices] */
	/* [stages + 1][cuts + 1] a virtual node's least time between stages up to one that begins there;
	 * INFINITY: none may */
	double *hops;
	bool mean[2];
};

/* Sums over all stages that have a least value: what all ports of a level carry; what ranks wait for their
 * first virtual node, and after their last; how long virtual nodes are in the stages of rank 0, from F to
 * the backward there; and means over stages of their work and the way to it (find_mean()). */
enum sum { SUM_PORTS, SUM_WAITS = HD_CLUSTER_LEVELS, SUM_TRIPS, SUM_MEANS };

static void find_most(const struct places *x, const struct ports *now, const struct ports *before,
	struct weights *w)
{
	double most = -1;

	for (uint32_t l = 0; l < now->cluster->nlevels; l++)
		for (uint32_t k = 0; k < now->n[l]; k++) {
			double own = now->ps[l][0][k], prior = before->ps[l][0][k];
			x->used[l * now->cluster->ndevices + k] |= own > 0;
			w->all[l] += own;
			if (own + prior <= most)
				continue;
			most = own + prior;
			w->before = prior;
			w->own = own;
		}
}

/* What is kept of the stage's weights. Tied ones count once in a stage: then nothing is known of a range
 * of cuts. */
static void weigh_sums(const struct places *x, const struct ring *ring, struct weights *w,
	struct ports *scratch)
{
	w->sum = ring->latency;
	if (x->space->sums->ntwins || ring->n < 2)
		return;
	w->param = ring->inv;
	w->reds[ring->level] = ring->inv * reduce(scratch, ring, 1);
	for (uint32_t k = 0; k < scratch->n[ring->level]; k++)
		x->used[ring->level * x->space->cluster->ndevices + k] |= scratch->ps[ring->level][0][k] > 0;
}

static void clear(struct ports *p)
{
	for (uint32_t l = 0; l < p->cluster->nlevels; l++)
		for (int in = 0; in < 2; in++)
			memset(p->ps[l][in], 0, p->n[l] * sizeof *p->ps[l][in]);
}

static void exchange_over(const struct places *x, struct ports *p, uint32_t a, uint32_t b, double times)
{
	const struct hd_cluster *cluster = x->space->cluster;

	exchange(p, a, b, 1e12 * times / cluster->level[hd_cluster_between(cluster, a, b)].bytes_per_s);
}

/* Of stage `stage`, and the boundary in front of it, of pipelines of one shape. */
static void weigh_rank(const struct places *x, uint32_t stage, struct weights *w, struct ports *p)
{
	const struct hd_auto_cand *c = x->cand;
	uint32_t r = hd_auto_rank_of(c->row, c->shape.p, stage),
		before = stage ? hd_auto_rank_of(c->row, c->shape.p, stage - 1) : r;

	w->work = c->share[x->slow] / hd_auto_speed_at(x->space, c, x->slow, r);
	clear(p);
	const struct ring ring = ring_of_rank(x->space, c, r, x->room);
	weigh_sums(x, &ring, w, p);
	clear(p);
	w->firsts = stage < c->shape.p;
	w->behind = w->firsts ? c->shape.p - stage : 0;
	w->trips = stage ? w[-1].trips + (r == 0) : 1;
	if (r != before) {
		w->latency = hop_ps(x->space, c, x->slow, stage, 0);
		w->inv = hop_ps(x->space, c, x->slow, stage, 1) - w->latency;
	}
	for (uint32_t q = 0; q < c->shape.d && r != before; q++)
		exchange_over(x, p, hd_auto_device(c, q, before), hd_auto_device(c, q, r), c->share[q]);
}

/* Of copies in different numbers, from rank `first` on. */
static void weigh_copies(const struct places *x, uint32_t stage, uint32_t first, struct weights *w,
	struct ports *p)
{
	const struct hd_steady_stage *s = &x->cand->stages.stage[stage];
	const struct hd_cluster *cluster = x->space->cluster;
	uint32_t before = stage ? s[-1].replicas : 0;
	double slowest = INFINITY;

	for (uint32_t i = 0; i < s->replicas; i++)
		slowest = fmin(slowest, hd_cluster_kind_of(cluster, first + i)->speed);
	w->work = x->vns / s->replicas / slowest;
	w->firsts = working(s->replicas, x->vns);
	for (uint32_t i = 0; i < s->replicas; i++)
		x->room[i] = first + i;
	clear(p);
	const struct ring ring = ring_of(cluster, x->room, working(s->replicas, x->vns));
	weigh_sums(x, &ring, w, p);
	clear(p);
	w->latency = w->inv = before ? INFINITY : 0;
	for (uint32_t vn = 0; vn < x->vns && before; vn++) {
		uint32_t a = first - before + vn % before, b = first + vn % s->replicas;
		const struct hd_cluster_level *level = &cluster->level[hd_cluster_between(cluster, a, b)];
		exchange_over(x, p, a, b, 1);
		w->latency = fmin(w->latency, (double)level->latency_ps);
		w->inv = fmin(w->inv, 1e12 / level->bytes_per_s);
	}
	for (uint32_t k = stage; k < x->nstages; k++)
		w->behind += working(x->cand->stages.stage[k].replicas, x->vns);
}

/* Before the first virtual node is through all stages before s nothing of a rank's stages from s on begins;
 * all its virtual nodes are worked on there; then the last one has its way back. So for each s a step takes
 *
 *	the way through the stages before s, there and back + vns x (work of that rank's stages from s on)
 *
 * where work is all of it if backward passes are whole, else that which the way back waits for (mean 0), or
 * all of it and no way back (mean 1). A mean of these is a sum over stages. Its weights are such that equal
 * stages make it the same wherever they lie, where weights can do that; `way`: the share of work that is on
 * the way. */
static bool find_mean(const struct places *x, uint32_t mean, double way, double *of_rank)
{
	const uint32_t p = x->cand->shape.p;
	const double m = x->vns;
	double last = 0, sum = 0;

	if (m <= way)
		return false;
	memset(of_rank, 0, p * sizeof *of_rank);
	for (uint32_t s = 0; s < x->nstages; s++) {
		double *rank = &of_rank[hd_auto_rank_of(x->cand->row, p, s)];
		const double weight = s ? fmax(0, m * (last - *rank) / (m - way)) : 1;
		x->stage[s].mean[mean].from = weight;
		x->stage[s].mean[mean].rank = last = *rank += weight;
		sum += weight;
	}
	for (uint32_t s = x->nstages; s-- > 0;) {
		x->stage[s].mean[mean].behind = s + 1 < x->nstages ? x->stage[s + 1].mean[mean].from : 0;
		x->stage[s].mean[mean].from = x->stage[s].mean[mean].from / sum +
			x->stage[s].mean[mean].behind;
		x->stage[s].mean[mean].rank /= sum;
	}
	return sum < 1e300;
}

static enum hd_err weigh(struct places *x, struct hd_arena *scratch)
{
	const struct hd_auto_cand *c = x->cand;
	const struct hd_cluster *cluster = x->space->cluster;
	struct ports turn[2];
	uint32_t rank = 0;

	x->used = hd_arena_take(scratch, (size_t)cluster->ndevices * cluster->nlevels, sizeof *x->used);
	x->room = hd_arena_take(scratch, cluster->ndevices, sizeof *x->room);
	x->stage = hd_arena_take(scratch, (size_t)x->nstages + 1, sizeof *x->stage);
	if (!x->used || !x->room || !x->stage || !make_ports(&turn[0], cluster, scratch) ||
		!make_ports(&turn[1], cluster, scratch))
		return hd_fail(x->space->diag, HD_E_NOMEM, "no memory for the bound of a plan");
	for (uint32_t stage = 0; stage < x->nstages; stage++) {
		struct ports *now = &turn[stage % 2];
		if (c->row)
			weigh_rank(x, stage, &x->stage[stage], now);
		else
			weigh_copies(x, stage, rank, &x->stage[stage], now);
		rank += c->stages.stage[stage].replicas;
		find_most(x, now, &turn[1 - stage % 2], &x->stage[stage]);
	}
	for (uint32_t l = 0; l < cluster->nlevels; l++)
		for (uint32_t k = 0; k < cluster->ndevices; k++)
			x->nports[l] += x->used[l * cluster->ndevices + k];
	return HD_OK;
}

static bool whole_back(const struct places *x) { return !x->cand->row || x->cand->row->whole_back; }

/* Of a range [first, end) of cuts, by differences: times on the fastest device but for work, and what of it
 * the way back waits for; bytes; and the way of a virtual node before it, there and back. */
struct stage_range { double work, waited, f, i, param, in, out, there, back; };

static struct stage_range range_of(const struct places *x, uint32_t first, uint32_t end)
{
	const struct hd_cut_sums *sums = x->space->sums;
	const struct hd_stage_cost *to = &sums->upto[end - 1], zero = { 0 },
		*from = first ? &sums->upto[first - 1] : &zero;
	const int64_t w = whole_back(x) ? to->w - from->w : 0, behind = whole_back(x) ? from->w : 0;

	return (struct stage_range){ .work = (double)(to->f - from->f + to->i - from->i + to->w - from->w),
		.waited = (double)(to->f - from->f + to->i - from->i + w),
		.f = (double)(to->f - from->f) / x->fastest,
		.i = (double)(to->i - from->i) / x->fastest,
		.param = fmax(0, (double)(to->param - from->param - 1)),
		.in = first ? (double)sums->cuts->out[first - 1] : 0,
		.out = end < sums->cuts->n ? (double)sums->cuts->out[end - 1] : 0,
		.there = (double)from->f / x->fastest, .back = (double)(from->i + behind) / x->fastest };
}

/* A stage of the range: its work with the way to it and what follows, that of `hops` between stages there;
 * and the ports of both its ends. */
static bool stage_may(const struct places *x, uint32_t stage, const struct stage_range *range, double hops)
{
	const struct weights *w = &x->stage[stage];
	double rounded = 4. * x->space->ask->vns + 8. * x->nstages + 4, way = range->there + hops;
	double sum = w->sum + w->param * range->param;

	return surely(way + w->work * range->work + sum, rounded) <= x->target &&
		surely(way + w->work * range->waited + range->back + hops, rounded) <= x->target &&
		surely(w[1].before * range->in + w[1].own * range->out, rounded) <= x->target;
}

static double adds(const struct places *x, enum sum sum, uint32_t stage, const struct stage_range *range)
{
	const struct weights *w = &x->stage[stage];
	double hop = w->latency + range->in * w->inv;

	const bool back = sum == SUM_MEANS;

	if (sum < SUM_WAITS)
		return w->all[sum] * range->in + w->reds[sum] * range->param;
	if (sum >= SUM_MEANS)
		return w->mean[!back].behind * (back ? range->waited / x->fastest : range->f) +
			w->mean[!back].rank * w->work * (back ? range->waited : range->work) +
			w->mean[!back].from * (back ? 2 : 1) * hop;
	if (sum == SUM_WAITS)
		return (range->there + (whole_back(x) ? range->back : 0)) * w->firsts + (whole_back(x) ? 2 :
			1) * hop * w->behind;
	return w->trips * (range->f + range->i) + (stage ? w[-1].trips : 0) * 2 * hop;
}

/* Cuts at which a stage that begins at `first` may end. */
static struct ends { uint32_t from, to; } ends_of(const struct places *x, uint32_t stage, uint32_t first)
{
	const uint32_t n = x->space->sums->cuts->n;

	return stage + 1 == x->nstages ? (struct ends){ n, n } : (struct ends){ first + 1, n - 1 };
}

/* false: however stages begin, one of them may not. */
static bool find_hops(struct places *x)
{
	const struct hd_cut_sums *sums = x->space->sums;
	const uint32_t n = sums->cuts->n;

	for (size_t k = 0; k < ((size_t)n + 1) * (x->nstages + 1); k++)
		x->hops[k] = k ? INFINITY : 0;
	for (uint32_t stage = 0; stage < x->nstages; stage++) {
		const double *at = &x->hops[stage * (n + 1)];
		double *next = &x->hops[(stage + 1) * (n + 1)];
		const struct weights *w = &x->stage[stage + 1];
		for (uint32_t first = stage; first < n; first++) {
			const struct ends ends = ends_of(x, stage, first);
			for (uint32_t end = ends.from; at[first] < INFINITY && end <= ends.to; end++) {
				if (!hd_cut_sums_is_stage(sums, first, end))
					continue;
				const struct stage_range range = range_of(x, first, end);
				if (stage_may(x, stage, &range, at[first]))
					next[end] = fmin(next[end], at[first] + w->latency +
						range.out * w->inv);
			}
		}
	}
	return x->hops[(size_t)(x->nstages + 1) * (n + 1) - 1] < INFINITY;
}

/* The least of a sum, wherever stages begin that may; INFINITY: nowhere. */
static double least_sum(const struct places *x, enum sum sum, double *at, double *next)
{
	const struct hd_cut_sums *sums = x->space->sums;
	uint32_t n = sums->cuts->n;

	for (uint32_t k = 0; k <= n; k++)
		at[k] = k ? INFINITY : 0;
	for (uint32_t stage = 0; stage < x->nstages; stage++) {
		for (uint32_t k = 0; k <= n; k++)
			next[k] = INFINITY;
		for (uint32_t first = stage; first < n; first++) {
			const struct ends ends = ends_of(x, stage, first);
			for (uint32_t end = ends.from; at[first] < INFINITY && end <= ends.to; end++) {
				if (!hd_cut_sums_is_stage(sums, first, end))
					continue;
				const struct stage_range range = range_of(x, first, end);
				if (stage_may(x, stage, &range, x->hops[stage * (n + 1) + first]))
					next[end] = fmin(next[end], at[first] + adds(x, sum, stage, &range));
			}
		}
		memcpy(at, next, ((size_t)n + 1) * sizeof *at);
	}
	return at[n];
}

/* Over all ranks: ports have their bandwidth and ranks their speed, and rank 0 as many virtual nodes as
 * its list leaves open. */
static bool sums_may(const struct places *x, double *at, double *next)
{
	const struct hd_auto_cand *c = x->cand;
	double rounded = (4. * x->space->ask->vns + 8. * x->nstages + 4) * x->nstages,
		all = range_of(x, 0, x->space->sums->cuts->n).work * x->vns;

	for (uint32_t k = 0; k < 2; k++)
		if (x->mean[k] && surely(least_sum(x, SUM_MEANS + k, at, next), rounded) > x->target)
			return false;
	for (uint32_t l = 0; l < x->space->cluster->nlevels; l++)
		if (x->nports[l] && surely(least_sum(x, SUM_PORTS + l, at, next),
			rounded) > x->target * x->nports[l])
			return false;
	/* none waits with less speed than the slowest */
	if (surely(all + least_sum(x, SUM_WAITS, at, next) * x->slowest,
		rounded * x->nstages) > x->target * x->speeds)
		return false;
	return !c->row || surely(least_sum(x, SUM_TRIPS, at, next) * x->vns, rounded * x->nstages) <=
		x->target * c->row->inflight(c->shape.p, x->vns, c->shape.v, 0) * c->shape.v;
}

static void find_speeds(struct places *x)
{
	const struct hd_cluster *cluster = x->space->cluster;
	uint32_t n = 0;

	x->slowest = INFINITY;
	x->vns = x->space->ask->vns;
	for (uint32_t stage = 0; stage < x->nstages; stage++)
		n += x->cand->stages.stage[stage].replicas;
	for (uint32_t r = 0; r < n; r++) {
		double speed = hd_cluster_kind_of(cluster, r)->speed;
		x->fastest = fmax(x->fastest, speed);
		x->slowest = fmin(x->slowest, speed);
		x->speeds += speed;
	}
}

static void find_slow(struct places *x)
{
	const struct hd_auto_cand *c = x->cand;
	double longest = -1;

	for (uint32_t q = 0; q < c->shape.d; q++) {
		double fastest = 0, slowest = INFINITY, speeds = 0;
		for (uint32_t r = 0; r < c->shape.p; r++) {
			double speed = hd_auto_speed_at(x->space, c, q, r);
			fastest = fmax(fastest, speed);
			slowest = fmin(slowest, speed);
			speeds += speed;
		}
		if (c->share[q] / speeds <= longest)
			continue;
		longest = c->share[q] / speeds;
		x->slow = q;
		x->vns = c->share[q];
		x->fastest = fastest;
		x->slowest = slowest;
		x->speeds = speeds;
	}
}

enum hd_err hd_auto_may_take(const struct hd_auto_space *s, const struct hd_auto_cand *c, int64_t target_ps,
	struct hd_arena *scratch, bool *may)
{
	uint32_t n = s->sums->cuts->n, stages = c->stages.nstages;
	struct places x = { .space = s, .cand = c, .nstages = stages, .target = (double)target_ps };

	*may = true;
	if (s->ask->update != HD_UPDATE_FLUSH || c->shape.t > 1 || stages == 1)
		return HD_OK;
	if ((uint64_t)n * n * stages > MOST_PLACES || (uint64_t)s->cluster->ndevices * s->cluster->nlevels *
		stages > MOST_PORTS)
		return HD_OK;
	double *at = hd_arena_take(scratch, (size_t)n + 1, sizeof *at),
		*next = hd_arena_take(scratch, (size_t)n + 1, sizeof *next);
	x.hops = hd_arena_take(scratch, ((size_t)n + 1) * (stages + 1), sizeof *x.hops);
	if (!at || !next || !x.hops)
		return hd_fail(s->diag, HD_E_NOMEM, "no memory for the bound of a plan");
	if (c->row)
		find_slow(&x);
	else
		find_speeds(&x);
	enum hd_err err = weigh(&x, scratch);
	if (err)
		return err;
	if (c->row) {
		const struct hd_stage_cost *all = &s->sums->upto[n - 1];
		const double work = (double)(all->f + all->i + all->w);
		x.mean[0] = find_mean(&x, 0, 1, next);
		x.mean[1] = !whole_back(&x) && find_mean(&x, 1, work > 0 ? (double)all->f / work : 1, next);
	}
	*may = find_hops(&x) && sums_may(&x, at, next);
	return HD_OK;
}
