#include "planner/search/search.h"

#include <math.h>
#include <string.h>

#include "planner/partition.h"

/* Fewer devices that stages with copies are tried on. */
enum { FEWER = 16 };
/* Where PipeDream's recurrence is a source of candidates. */
enum { PAPER_MACHINES = 48, PAPER_CUTS = 256 };

/* ---- what is kept */

static bool before(const struct hd_auto_cand *a, const struct hd_auto_cand *b)
{
	return a->estimate_ps != b->estimate_ps ? a->estimate_ps < b->estimate_ps : a->order < b->order;
}

static void keep(struct hd_auto_search *s, const struct hd_auto_cand *c)
{
	uint32_t at = s->nkept;

	s->out.nestimated++;
	s->best_ps = fmin(s->best_ps, c->estimate_ps);
	while (at > 0 && before(c, &s->kept[at - 1]))
		at--;
	if (s->second && s->nkept == s->most)
		hd_auto_leave(s, at == s->most ? c : &s->kept[s->most - 1], false);
	if (at == s->most)
		return;
	s->nkept += s->nkept < s->most;
	memmove(&s->kept[at + 1], &s->kept[at], (s->nkept - 1 - at) * sizeof *s->kept);
	s->kept[at] = *c;
}

/* ---- the enumeration */

bool hd_auto_same_shape(const struct hd_auto_cand *a, const struct hd_auto_cand *b)
{
	return a->row == b->row && a->base == b->base && a->shape.t == b->shape.t &&
		a->shape.p == b->shape.p && a->shape.d == b->shape.d &&
		a->shape.v == b->shape.v && (a->shape.d == 1 || a->shape.p == 1 ||
		a->shape.place == b->shape.place);
}

static bool is_reference(const struct hd_auto_search *s, const struct hd_auto_cand *c)
{
	bool same = hd_auto_same_shape(c, &s->one);

	for (uint32_t i = 0; i < s->ndata && !same; i++)
		same = hd_auto_same_shape(c, &s->data[i]);
	return same;
}

/* Of a shape that computes something again, and need not by what was asked, the one that does not, too:
 * other cuts may do without. */
static enum hd_err offer_never(struct hd_auto_search *s, const struct hd_auto_cand *c)
{
	struct hd_auto_cand never = *c;
	bool unfit, any = false;

	for (uint32_t k = 0; k < c->stages.nstages; k++)
		any |= c->stages.stage[k].recompute;
	if (!s->second || !any || c->variant != HD_AUTO_AS_NEEDED ||
		s->space.ask->recompute != HD_AUTO_IF_NEEDED)
		return HD_OK;
	never.variant = HD_AUTO_KEPT;
	never.order = s->order++;
	enum hd_err err = hd_auto_estimate(&s->space, &never, &unfit);
	if (!err)
		keep(s, &never);
	return err == HD_E_NOTFOUND ? HD_OK : err;
}

static enum hd_err offer(struct hd_auto_search *s, struct hd_auto_cand c)
{
	bool unfit;

	c.order = s->order++;
	s->out.nshapes += !s->second;
	if (3 * (uint64_t)c.shape.p * c.shape.v * s->space.ask->vns > HD_MAX_INS)
		return HD_OK;
	c.variant = s->again ? HD_AUTO_AGAIN : HD_AUTO_AS_NEEDED;
	if (!s->again && is_reference(s, &c))
		return HD_OK;
	enum hd_err err = hd_auto_estimate(&s->space, &c, &unfit);
	s->out.nunfit += unfit && !s->second;
	s->unfit |= unfit;
	if (err)
		return err == HD_E_NOTFOUND ? HD_OK : err;
	keep(s, &c);
	return offer_never(s, &c);
}

/* What no order of work can beat, from the virtual nodes and the speeds alone. */
static double bound(const struct hd_auto_search *s, uint32_t t, uint32_t p, uint32_t d)
{
	const struct hd_steady_table *table = &s->space.sharded;
	struct hd_stage_cost all = table->range[hd_steady_at(0, table->n - 1)];
	double work = (double)(all.f + all.i + all.w) * t, vns = s->space.ask->vns,
		used = s->speeds[t * p * d];

	if (s->alike)
		return ceil(vns / d) * work / (used / d);
	return vns * work / used;
}

/* The first round goes by estimates; the second leaves out what surely takes longer than what is there. */
static bool too_slow(const struct hd_auto_search *s, double bound_ps)
{
	return s->second ? bound_ps * (1 - 1e-9) > (double)s->best_made_ps :
		bound_ps > s->best_ps * HD_AUTO_SLACK;
}

static enum hd_err offer_all(struct hd_auto_search *s, uint32_t t, uint32_t p, uint32_t d)
{
	const struct hd_auto_ask *ask = s->space.ask;
	enum hd_err err = HD_OK;

	for (uint32_t v = 1; v <= HD_AUTO_CHUNKS; v++)
		for (const struct hd_auto_row *row = hd_auto_rows; row->schedule; row++)
			for (int place = 0; place < (p > 1 && d > 1 ? HD_AUTO_NPLACES : 1); place++)
				if (hd_auto_wanted(ask->v, v) && hd_auto_row_may(row, ask, p, v) &&
					p * v <= s->space.whole.n && !err)
					err = offer(s, (struct hd_auto_cand){ .shape = { row->schedule, t, p,
						d, v, (enum hd_auto_place)place },
						.row = row });
	return err;
}

/* More pipelines than the update knows, or, in the first round, the busiest has no less to do. */
static bool no_use(const struct hd_auto_search *s, uint32_t d)
{
	uint32_t vns = s->space.ask->vns;

	if (d > 1 && hd_auto_of_each(s->space.ask->update))
		return true;
	return !s->second && s->alike && d > 1 && !s->space.ask->d &&
		(vns + d - 1) / d == (vns + d - 2) / (d - 1);
}

static enum hd_err straight(struct hd_auto_search *s, uint32_t t)
{
	const struct hd_auto_ask *ask = s->space.ask;
	uint32_t n = s->space.cluster->ndevices;
	enum hd_err err = HD_OK;

	for (uint32_t p = 1; p <= n / t && p <= HD_AUTO_RANKS && p <= s->space.whole.n && !err; p++)
		for (uint32_t d = 1; d <= n / t / p && d <= ask->vns && !err; d++) {
			if (!hd_auto_wanted(ask->p, p) || !hd_auto_wanted(ask->d, d) || no_use(s, d))
				continue;
			if (too_slow(s, bound(s, t, p, d)))
				s->out.nskipped += !s->second;
			else
				err = offer_all(s, t, p, d);
		}
	return err;
}

static enum hd_err every_width(struct hd_auto_search *s)
{
	const struct hd_auto_ask *ask = s->space.ask;
	uint32_t shards = ask->tensor_shards ? ask->tensor_shards : 1,
		inner = s->space.cluster->level[0].components;
	enum hd_err err = HD_OK;

	for (uint32_t t = 1; t <= shards && t <= inner && !err; t++) {
		if (shards % t || inner % t || !hd_auto_wanted(ask->t, t))
			continue;
		err = hd_auto_shard(&s->space, t);
		s->out.nlate += err == HD_E_NOTFOUND && !s->second;
		err = err == HD_E_NOTFOUND ? HD_OK : err ? err : straight(s, t);
	}
	return err;
}

/* ---- stages with copies in different numbers */

/* The generator takes no more. */
static bool too_long(const struct hd_auto_search *s, uint32_t ranks) { return 2 * (uint64_t)ranks *
	s->space.ask->vns > HD_MAX_INS; }

static struct hd_auto_cand replicated(const struct hd_auto_search *s)
{
	return (struct hd_auto_cand){ .shape = { "1f1b-rr", 1, 0, 0, 1, HD_AUTO_WIDE }, .order = s->order,
		.variant = s->again ? HD_AUTO_AGAIN : HD_AUTO_AS_NEEDED };
}

static enum hd_err offer_ours(struct hd_auto_search *s)
{
	struct hd_auto_cand c = replicated(s);
	enum hd_err err = hd_auto_replicate(&s->space, &c);

	s->out.nshapes += !s->second;
	s->out.nunfit += err == HD_E_NOTFOUND && !s->second;
	s->unfit |= err == HD_E_NOTFOUND;
	if (err)
		return err == HD_E_NOTFOUND ? HD_OK : err;
	s->order++;
	keep(s, &c);
	return HD_OK;
}

static double least_speed(const struct hd_cluster *cluster)
{
	double least = INFINITY;

	for (uint32_t x = 0; x < cluster->ndevices; x++)
		least = fmin(least, hd_cluster_kind_of(cluster, x)->speed);
	return least;
}

/* PipeDream's recurrence over the first n devices as one level, its slowest link: the steady state alone. It
 * knows devices of speed 1: for others the link is slower by as much, and the time that comes out is
 * divided. */
static enum hd_err offer_paper(struct hd_auto_search *s, uint32_t n)
{
	const struct hd_cluster *cluster = s->space.cluster;
	const struct hd_cuts *cuts = s->space.sums->cuts;
	struct hd_part_how how = { .variant = HD_PART_PAPER, .level = { { n, INFINITY } }, .nlevels = 1 };
	struct hd_partition part;
	struct hd_diag why = { "" };
	double speed = least_speed(cluster);

	if (cluster->ndevices > PAPER_MACHINES || cuts->n > PAPER_CUTS)
		return HD_OK;
	for (uint32_t l = 0; l < cluster->nlevels; l++)
		how.level[0].bytes_per_s = fmin(how.level[0].bytes_per_s,
			cluster->level[l].bytes_per_s / speed);
	s->out.nshapes += !s->second;
	if (hd_part_solve(&part, cuts, &how, s->space.work, &why))
		return HD_OK;
	struct hd_steady stages = { .nstages = part.top.nstages, .nsites = n,
		.stage = hd_arena_take(s->space.work, part.top.nstages, sizeof *stages.stage) };
	if (!stages.stage)
		return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for %u stages", stages.nstages);
	for (uint32_t i = 0; i < stages.nstages; i++)
		stages.stage[i] = (struct hd_steady_stage){ part.top.stage[i].first, part.top.stage[i].last,
			part.top.stage[i].replicas,
			s->again || s->space.ask->recompute == HD_AUTO_ALWAYS, 0 };
	stages.steady_ps = part.time_s * 1e12 / speed * s->space.ask->vns;
	struct hd_auto_cand c = replicated(s);
	c.shape.p = stages.nstages;
	c.paper = n;
	c.stages = stages;
	c.estimate_ps = hd_steady_ps(&stages);
	s->order++;
	keep(s, &c);
	return HD_OK;
}

static enum hd_err enumerate_replicas(struct hd_auto_search *s)
{
	const struct hd_auto_ask *ask = s->space.ask;

	if (ask->update != HD_UPDATE_FLUSH || ask->p || ask->d || !hd_auto_wanted(ask->t, 1) ||
		!hd_auto_wanted(ask->v, 1) || s->space.cluster->ndevices == 1)
		return HD_OK;
	if (too_long(s, s->space.cluster->ndevices) || (ask->schedule &&
		strcmp(ask->schedule, "1f1b-rr") != 0))
		return HD_OK;
	enum hd_err err = offer_ours(s);
	for (uint32_t n = s->space.cluster->ndevices, most = n; n > 1 && n + FEWER > most && !err; n--)
		err = offer_paper(s, n);
	return err;
}

enum hd_err hd_auto_enumerate(struct hd_auto_search *s)
{
	enum hd_err err = hd_auto_shard(&s->space, 1);

	s->nkept = 0;
	err = err ? err : every_width(s);
	err = err ? err : hd_auto_shard(&s->space, 1);
	return err ? err : enumerate_replicas(s);
}

/* ---- one device, and copies of the whole model */

static const struct hd_auto_row *row_of(enum hd_update_mode update)
{
	const struct hd_auto_row *row = hd_auto_rows;

	while (row->schedule && row->update != update)
		row++;
	return row;
}

bool hd_auto_may_be_chosen(const struct hd_auto_ask *ask, const struct hd_auto_shape *shape)
{
	return hd_auto_wanted(ask->t, 1) && hd_auto_wanted(ask->p, 1) && hd_auto_wanted(ask->d, shape->d) &&
		hd_auto_wanted(ask->v, 1) &&
		(!ask->schedule || !strcmp(ask->schedule, shape->schedule));
}

static enum hd_err refer(struct hd_auto_search *s, struct hd_auto_cand *c, uint32_t d, uint32_t base)
{
	bool unfit;

	*c = (struct hd_auto_cand){ .row = row_of(s->space.ask->update), .reference = true, .base = base,
		.order = s->order++ };
	c->shape = (struct hd_auto_shape){ c->row->schedule, 1, 1, d, 1, HD_AUTO_DEEP };
	s->out.nshapes++;
	enum hd_err err = hd_auto_estimate(&s->space, c, &unfit);
	s->out.nunfit += unfit;
	s->unfit |= unfit;
	if (err)
		c->estimate_ps = -1;
	else if (hd_auto_may_be_chosen(s->space.ask, &c->shape))
		s->best_ps = fmin(s->best_ps, c->estimate_ps);
	return err == HD_E_NOTFOUND ? HD_OK : err;
}

/* Fewer copies take as long where the busiest has as much to do, and sum less; of different devices the
 * slow ones may be left out. */
enum hd_err hd_auto_refer(struct hd_auto_search *s)
{
	const struct hd_cluster *cluster = s->space.cluster;
	uint32_t vns = s->space.ask->vns, fastest = 0, most = cluster->ndevices < vns ? cluster->ndevices :
		vns;

	most = hd_auto_of_each(s->space.ask->update) ? 1 : most;
	s->data = hd_arena_take(s->space.work, (size_t)most + 1, sizeof *s->data);
	if (!s->data)
		return hd_fail(s->space.diag, HD_E_NOMEM, "no memory for %u copies", most);
	for (uint32_t x = 1; x < cluster->ndevices; x++)
		if (hd_cluster_kind_of(cluster, x)->speed > hd_cluster_kind_of(cluster, fastest)->speed)
			fastest = x;
	enum hd_err err = refer(s, &s->one, 1, fastest);
	for (uint32_t d = most; d > 0 && !err; d--)
		if (d == most || (d > 1 && (!s->alike || (vns + d - 1) / d != (vns + d - 2) / (d - 1))))
			err = refer(s, &s->data[s->ndata++], d, d > 1 ? 0 : fastest);
	return err;
}
