/* Fill and steady state: PipeDream's recurrence (partition.h) with the sum over stages as the value and the
 * slowest stage as a cap.
 *
 * For a cap C on the second term, least[x][j] is the least fill with which the cuts up to j run on x sites,
 * every stage below C:
 *
 *	least[x][j] = min over k, r of least[x - r][k] + fill(k + 1 .. j on the r sites from x - r)
 *
 * With a smaller cap the least fill can only rise. So of a solution (fill H, slowest q) and the best time so
 * far T only solutions with a slowest below min(q, T - H) can be better: that is the next cap, and when there
 * are no stages below it, T is the answer. Each cap takes n^2/2 steps for every site count that is still
 * open; some ten caps suffice in practice. */
#include "planner/steady.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "pipeline/schedule_check.h"

#define PS_PER_S 1e12
#define NO_FILL INFINITY
#define NONE UINT32_MAX
#define STEADY_BYTES_MAX (INT64_C(1) << 60)
enum { BOUND_TRIES = 6 };

/* ---- ranges of the cuts that are considered */

/* Rule 5: the share of the time that the cut ends in. Sums do not rise along the order where the graph
 * branches. */
static uint32_t share_of(const struct hd_cuts *c, uint32_t j, uint32_t most)
{
	double all = (double)c->time_ns[c->n - 1];

	return c->n <= most ? j : (uint32_t)((double)(most - 1) *
		((double)c->time_ns[j] / (all > 0 ? all : 1)));
}

static uint32_t thin(const struct hd_cuts *c, uint32_t most, uint32_t *pick, uint32_t *cut)
{
	uint32_t n = 0;

	memset(pick, 0xff, most * sizeof *pick);
	for (uint32_t j = 0; j < c->n; j++) {
		uint32_t *of = &pick[share_of(c, j, most)];
		if (*of == NONE || c->out[j] < c->out[*of])
			*of = j;
	}
	for (uint32_t j = 0; j < c->n; j++)
		if (j == c->n - 1 || pick[share_of(c, j, most)] == j)
			cut[n++] = j;
	return n;
}

enum hd_err hd_steady_table_make(struct hd_steady_table *table, const struct hd_cut_sums *sums, uint32_t most,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_steady_table t = { .sums = sums, .cut = hd_arena_take(arena, (size_t)most + 1,
		sizeof *t.cut) };
	uint32_t *pick = hd_arena_take(arena, most, sizeof *pick);

	assert(most >= 2);
	if (t.cut && pick)
		t.n = thin(sums->cuts, most, pick, t.cut);
	assert(t.n <= most + 1);
	t.range = hd_arena_take(arena, (size_t)t.n * (t.n + 1) / 2, sizeof *t.range);
	t.may = hd_arena_take(arena, (size_t)t.n * (t.n + 1) / 2, sizeof *t.may);
	if (!t.cut || !pick || !t.range || !t.may)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the ranges of %u cuts", sums->cuts->n);
	for (uint32_t j = 0; j < t.n; j++)
		for (uint32_t k = 0; k <= j; k++) {
			uint32_t first = k ? t.cut[k - 1] + 1 : 0;
			t.may[hd_steady_at(k, j)] = hd_cut_sums_is_stage(sums, first, t.cut[j] + 1);
			if (t.may[hd_steady_at(k, j)])
				t.range[hd_steady_at(k, j)] = hd_cut_sums_range(sums, first, t.cut[j] + 1);
		}
	*table = t;
	return HD_OK;
}

/* ---- what a stage costs on its sites */

static uint32_t fewer(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Partial sums of gradients that a rank holds at once: the binary counter of the tree. */
static uint32_t partials(uint32_t n)
{
	uint32_t p = 1;

	for (; n > 1; n >>= 1)
		p++;
	return p;
}

/* Sizes of one virtual node are below 2^53 (profile.h); what is more than devices can have (topology.h) is
 * all the same. */
int64_t hd_steady_bytes(const struct hd_stage_cost *cost, uint32_t held, uint32_t versions, uint32_t every,
	bool recompute)
{
	int64_t each = recompute && cost->kept < cost->saved ? cost->kept : cost->saved,
		again = recompute ? cost->saved - each : 0, kept;

	if (!hd_mul_i64(held, each, &kept) || kept > STEADY_BYTES_MAX)
		kept = STEADY_BYTES_MAX;
	return cost->param * (versions + partials(every)) + cost->opt + cost->work + kept + again +
		HD_CREDITS * (cost->in + cost->out);
}

/* Sites x .. x + r - 1 as one stage sees them. */
struct spot { double speed; int64_t memory; double inv, latency, red_inv, red_latency; uint32_t n, held,
	copies, versions, every; };

struct steady_solver {
	const struct hd_steady_table *t;
	const struct hd_steady_how *how;
	uint32_t nsites, chunks, versions;
	bool straight, plain;             /* plain: all sites alike, no limit of memory */
	double top_speed;
	uint32_t nlogs;
	/* [nlogs][nsites] over 2^log sites: of clusters of several kinds */
	double *slowest; int64_t *tightest;
	double cap, best;
	struct spot *spots;               /* [nsites] straight: of each site */
	double *rest;                     /* [n] of the fill, at least, behind each cut */
	struct { double fill; uint32_t stages, k, r; } *at;      /* [n][nsites + 1] */
	uint32_t *open, *nopen;           /* [n][nsites + 1] site counts with a finite fill, ascending */
};

static int64_t limit(int64_t memory) { return memory ? memory : INT64_MAX; }

static uint32_t log_of(uint32_t r)
{
	uint32_t log = 0;

	while (r >> (log + 1))
		log++;
	return log;
}

static struct spot spot_of_devices(const struct steady_solver *s, uint32_t x, uint32_t r)
{
	const struct hd_cluster *c = s->how->cluster;
	const struct hd_cluster_level *hop = x ? &c->level[hd_cluster_span(c, x - 1, r + 1)] : NULL,
		*red = r > 1 ? &c->level[hd_cluster_span(c, x, r)] : NULL;
	uint32_t log = log_of(r), behind = s->nsites - 1 - x;
	const double *slow = s->slowest + (size_t)log * s->nsites;
	const int64_t *tight = s->tightest + (size_t)log * s->nsites;
	uint32_t other = x + r - (UINT32_C(1) << log);

	return (struct spot){ .speed = slow[x] < slow[other] ? slow[x] : slow[other],
		.memory = tight[x] < tight[other] ? tight[x] : tight[other],
		.inv = hop ? PS_PER_S / hop->bytes_per_s : 0, .latency = hop ? (double)hop->latency_ps : 0,
		.red_inv = red ? PS_PER_S / red->bytes_per_s : 0,
		.red_latency = red ? (double)red->latency_ps : 0, .n = (s->how->m + r - 1) / r,
		.held = fewer(behind / r + 1, (s->how->m + r - 1) / r), .copies = r,
		.versions = s->versions, .every = (s->how->m + r - 1) / r };
}

static struct spot spot_straight(const struct steady_solver *s, uint32_t x)
{
	const struct hd_steady_site *site = &s->how->site[x];

	return (struct spot){ .speed = site->speed, .memory = limit(site->memory), .inv = site->inv_bytes_ps,
		.latency = site->latency_ps,
		.red_inv = site->red_inv_bytes_ps, .red_latency = site->red_latency_ps, .n = s->how->m,
		.held = site->every ? site->inflight : fewer(site->inflight, s->how->m),
		.copies = s->how->copies, .versions = site->versions ? site->versions : s->versions,
		.every = site->every ? site->every : s->how->m };
}

static const struct spot *spot_of(const struct steady_solver *s, uint32_t x, uint32_t r, struct spot *room)
{
	if (s->straight)
		return &s->spots[x];
	*room = spot_of_devices(s, x, r);
	return room;
}

struct price { double fill, slow; bool fits, recompute; };

/* The range on its spot: plainly if that fits and may be, else computing again. */
static struct price price_of(const struct steady_solver *s, const struct hd_stage_cost *cost,
	const struct spot *spot, bool first)
{
	struct price p = { .recompute = s->how->recompute == HD_STEADY_ALWAYS };

	p.fits = hd_steady_bytes(cost, spot->held, spot->versions, spot->every, p.recompute) <= spot->memory;
	if (!p.fits && s->how->recompute == HD_STEADY_IF_NEEDED) {
		p.recompute = true;
		p.fits = hd_steady_bytes(cost, spot->held, spot->versions, spot->every, true) <= spot->memory;
	}
	if (!p.fits)
		return p;
	double t = (double)(cost->f + cost->i + cost->w + (p.recompute ? cost->r : 0)) / spot->speed;
	double hop = first ? 0 : spot->latency + (double)cost->in * spot->inv;
	double copies = spot->copies, rounds = (double)(spot->n - 1) * (double)s->chunks;
	double red = spot->copies > 1 ? 2 * (copies - 1) / copies * (double)cost->param * spot->red_inv + 2 *
		spot->red_latency : 0;
	double busy = rounds * t + red, sent = rounds * hop;
	p.fill = t + 2 * hop;
	p.slow = busy < sent ? sent : busy;
	return p;
}

/* ---- the recurrence for one cap */

static inline size_t state(const struct steady_solver *s, uint32_t j,
	uint32_t x) { return (size_t)j * (s->nsites + 1) + x; }

static void relax(struct steady_solver *s, uint32_t k, uint32_t j, uint32_t from, uint32_t r,
	const struct price *p)
{
	double before = k ? s->at[state(s, k - 1, from)].fill : 0, fill = before + p->fill;
	uint32_t stages = k ? s->at[state(s, k - 1, from)].stages + 1 : 1;
	size_t to = state(s, j, from + r);

	if (!p->fits || !(p->slow < s->cap) || (!s->plain && !(fill + s->rest[j] + p->slow < s->best)))
		return;
	if (fill < s->at[to].fill || (fill == s->at[to].fill && stages < s->at[to].stages)) {
		s->at[to].fill = fill;
		s->at[to].stages = stages;
		s->at[to].k = k;
		s->at[to].r = r;
	}
}

/* No copies, however many, keep the cap. */
static bool hopeless(const struct steady_solver *s, const struct hd_stage_cost *cost)
{
	uint32_t most = s->straight ? 1 : s->nsites, n = (s->how->m + most - 1) / most;

	return !((double)(n - 1) * (double)s->chunks * ((double)(cost->f + cost->i +
		cost->w) / s->top_speed) < s->cap);
}

/* Fewer copies cannot keep the cap, even on the fastest devices. */
static uint32_t least_copies(const struct steady_solver *s, const struct hd_stage_cost *cost, uint32_t most)
{
	double each = (double)s->chunks * ((double)(cost->f + cost->i + cost->w) / s->top_speed);
	uint32_t lo = 1, hi = most;

	while (lo < hi) {
		uint32_t r = lo + (hi - lo) / 2;
		if ((double)((s->how->m + r - 1) / r - 1) * each < s->cap)
			hi = r;
		else
			lo = r + 1;
	}
	return lo;
}

/* One number of copies behind `from`. */
static void offer(struct steady_solver *s, uint32_t k, uint32_t j, uint32_t from, uint32_t r)
{
	if (k && !(s->at[state(s, k - 1, from)].fill + s->rest[j] < s->best))
		return;                           /* whatever it costs */
	struct spot room;
	struct price p = price_of(s, &s->t->range[hd_steady_at(k, j)], spot_of(s, from, r, &room), k == 0);

	relax(s, k, j, from, r, &p);
}

/* Rule 5, many sites: the fewest copies that can serve, and the next that end where a component of a level
 * does. */
static void offer_few(struct steady_solver *s, uint32_t k, uint32_t j, uint32_t from, uint32_t least,
	uint32_t most)
{
	uint32_t size = 1, last = least;

	offer(s, k, j, from, least);
	for (uint32_t l = 0; l < s->how->cluster->nlevels; l++) {
		size *= s->how->cluster->level[l].components;
		uint32_t r = (from + least + size - 1) / size * size - from;
		if (r > last && r <= most)
			offer(s, k, j, from, last = r);
	}
}

static void spread(struct steady_solver *s, uint32_t k, uint32_t j)
{
	const struct hd_stage_cost *cost = &s->t->range[hd_steady_at(k, j)];
	static const uint32_t none[1] = { 0 };
	const uint32_t *from = k ? s->open + state(s, k - 1, 0) : none;
	uint32_t nfrom = k ? s->nopen[k - 1] : 1, all = s->straight ? 1 : s->nsites,
		least = s->straight ? 1 : least_copies(s, cost, all);

	for (uint32_t i = 0; i < nfrom; i++) {
		if (s->straight && s->t->n - 1 - j < s->nsites - 1 - from[i])
			continue;                         /* too few cuts are left for the stages behind */
		uint32_t most = s->nsites - from[i] < all ? s->nsites - from[i] : all;
		if (s->nsites > HD_STEADY_SITES && !s->straight && least <= most)
			offer_few(s, k, j, from[i], least, most);
		for (uint32_t r = least; r <= most && (s->nsites <= HD_STEADY_SITES || s->straight); r++)
			offer(s, k, j, from[i], r);
	}
}

/* Sites all alike: the fewest copies that keep the cap, the same wherever they are (so what is too slow for
 * the best time so far is not left out: more copies might do). But for the first site: it has no link
 * before it. */
static void spread_plain(struct steady_solver *s, uint32_t k, uint32_t j)
{
	const struct hd_stage_cost *cost = &s->t->range[hd_steady_at(k, j)];
	const uint32_t *from = s->open + (k ? state(s, k - 1, 0) : 0);
	uint32_t most = s->nsites - (k > 0), r = most ? least_copies(s, cost, most) : 1;
	struct price p = { 0 };

	for (; r <= most; r++) {
		struct spot spot = spot_of_devices(s, k > 0, r);
		p = price_of(s, cost, &spot, k == 0);
		if (p.slow < s->cap)
			break;
	}
	if (r > most)
		return;
	if (k == 0)
		relax(s, 0, j, 0, r, &p);
	for (uint32_t i = 0; k && i < s->nopen[k - 1] && from[i] + r <= s->nsites; i++)
		relax(s, k, j, from[i], r, &p);
}

/* Lists what is reached. Of sites all alike more of them must buy less fill. */
static void close_row(struct steady_solver *s, uint32_t j)
{
	uint32_t *open = s->open + state(s, j, 0), n = 0, kept = 0;

	for (uint32_t x = 1; x <= s->nsites; x++) {
		if (!(s->at[state(s, j, x)].fill < NO_FILL))
			continue;
		if (s->plain && kept && !(s->at[state(s, j, x)].fill < s->at[state(s, j, kept)].fill) &&
		    s->at[state(s, j, x)].stages >= s->at[state(s, j, kept)].stages)
			continue;
		if (!kept || s->at[state(s, j, x)].fill < s->at[state(s, j, kept)].fill)
			kept = x;
		open[n++] = x;
	}
	s->nopen[j] = n;
}

static void fill_rows(struct steady_solver *s)
{
	for (uint32_t j = 0; j < s->t->n; j++) {
		for (uint32_t x = 0; x <= s->nsites; x++) {
			s->at[state(s, j, x)].fill = NO_FILL;
			s->at[state(s, j, x)].stages = NONE;
		}
		for (uint32_t k = 0; k <= j; k++)
			if (s->t->may[hd_steady_at(k, j)] && (k == 0 || s->nopen[k - 1]) &&
				!hopeless(s, &s->t->range[hd_steady_at(k, j)]))
				(s->plain ? spread_plain : spread)(s, k, j);
		close_row(s, j);
	}
}

/* ---- the caps */

/* Rounding must not hide what is as good. */
#define SAFELY (1 - 1e-12)

static void find_rest(struct steady_solver *s)
{
	const struct hd_stage_cost *all = &s->t->range[hd_steady_at(0, s->t->n - 1)];

	for (uint32_t j = 0; j < s->t->n; j++) {
		const struct hd_stage_cost *upto = &s->t->range[hd_steady_at(0, j)];
		int64_t left = all->f + all->i + all->w - (upto->f + upto->i + upto->w);
		s->rest[j] = s->t->may[hd_steady_at(0, j)] &&
			left > 0 ? SAFELY * ((double)left / s->top_speed) : 0;
	}
}

/* Least fill, fewest stages, fewest sites; NONE: nothing keeps the cap. */
static uint32_t best_sites(const struct steady_solver *s)
{
	uint32_t j = s->t->n - 1, best = NONE;

	for (uint32_t x = s->straight ? s->nsites : 1; x <= s->nsites; x++) {
		size_t at = state(s, j, x);
		if (s->at[at].fill < NO_FILL && (best == NONE ||
			s->at[at].fill < s->at[state(s, j, best)].fill ||
			(s->at[at].fill == s->at[state(s, j, best)].fill &&
			s->at[at].stages < s->at[state(s, j, best)].stages)))
			best = x;
	}
	return best;
}

/* The stages behind the state, and their slowest. */
static void walk_back(const struct steady_solver *s, uint32_t x, struct hd_steady *out)
{
	uint32_t j = s->t->n - 1, n = s->at[state(s, j, x)].stages;

	out->nstages = n;
	out->nsites = x;
	out->fill_ps = s->at[state(s, j, x)].fill;
	out->steady_ps = -1;
	for (uint32_t i = n; i-- > 0;) {
		uint32_t k = s->at[state(s, j, x)].k, r = s->at[state(s, j, x)].r;
		const struct hd_stage_cost *cost = &s->t->range[hd_steady_at(k, j)];
		struct spot room;
		const struct spot *spot = spot_of(s, x - r, r, &room);
		struct price p = price_of(s, cost, spot, k == 0);
		out->stage[i] = (struct hd_steady_stage){ k ? s->t->cut[k - 1] + 1 : 0, s->t->cut[j], r,
			p.recompute,
			hd_steady_bytes(cost, spot->held, spot->versions, spot->every, p.recompute) };
		if (p.slow >= out->steady_ps) {
			out->steady_ps = p.slow;
			out->slowest = i;
		}
		x -= r;
		j = k - 1;
	}
}

static bool prepare(struct steady_solver *s, struct hd_arena *scratch)
{
	const struct hd_cluster *c = s->how->cluster;
	size_t states = (size_t)s->t->n * (s->nsites + 1);

	s->at = hd_arena_take(scratch, states, sizeof *s->at);
	s->open = hd_arena_take(scratch, states, sizeof *s->open);
	s->nopen = hd_arena_take(scratch, s->t->n, sizeof *s->nopen);
	s->rest = hd_arena_take(scratch, s->t->n, sizeof *s->rest);
	if (!s->at || !s->open || !s->nopen || !s->rest)
		return false;
	for (uint32_t x = 0; x < s->nsites; x++) {
		double speed = s->straight ? s->how->site[x].speed : hd_cluster_kind_of(c, x)->speed;
		s->top_speed = speed > s->top_speed ? speed : s->top_speed;
	}
	find_rest(s);
	if (s->straight) {
		s->spots = hd_arena_take(scratch, s->nsites, sizeof *s->spots);
		for (uint32_t x = 0; s->spots && x < s->nsites; x++)
			s->spots[x] = spot_straight(s, x);
		return s->spots != NULL;
	}
	s->nlogs = log_of(s->nsites) + 1;
	s->slowest = hd_arena_take(scratch, (size_t)s->nlogs * s->nsites, sizeof *s->slowest);
	s->tightest = hd_arena_take(scratch, (size_t)s->nlogs * s->nsites, sizeof *s->tightest);
	if (!s->slowest || !s->tightest)
		return false;
	s->plain = c->nlevels == 1;
	for (uint32_t x = 0; x < s->nsites; x++) {
		const struct hd_cluster_kind *kind = hd_cluster_kind_of(c, x);
		s->slowest[x] = kind->speed;
		s->tightest[x] = limit(kind->memory);
		s->plain &= !kind->memory && c->device_kind[x] == c->device_kind[0];
	}
	for (uint32_t log = 1; log < s->nlogs; log++)
		for (uint32_t x = 0; x + (UINT32_C(1) << log) <= s->nsites; x++) {
			size_t a = (size_t)(log - 1) * s->nsites + x, b = a + (UINT32_C(1) << (log - 1)),
				to = (size_t)log * s->nsites + x;
			s->slowest[to] = s->slowest[a] < s->slowest[b] ? s->slowest[a] : s->slowest[b];
			s->tightest[to] = s->tightest[a] < s->tightest[b] ? s->tightest[a] : s->tightest[b];
		}
	return true;
}

static struct steady_solver solver_of(const struct hd_steady_table *table, const struct hd_steady_how *how)
{
	return (struct steady_solver){ .t = table, .how = how, .straight = how->site != NULL,
		.nsites = how->site ? how->nsites : how->cluster->ndevices,
		.chunks = how->chunks ? how->chunks : 1, .versions = how->versions ? how->versions : 1,
		.cap = INFINITY, .best = INFINITY };
}

static struct hd_stage_cost range_again(const struct hd_steady_table *t, const struct hd_steady_stage *g)
{
	uint32_t k = 0, j = 0;

	while (g->first && t->cut[k] != g->first - 1)
		k++;
	while (t->cut[j] != g->last)
		j++;
	return t->range[(size_t)j * (j + 1) / 2 + (g->first ? k + 1 : 0)];
}

/* A time that is surely reached, found by halving the room for the cap from twice an even share down;
 * INFINITY: none at hand. It only spares the search what cannot be better, and lets through what is as
 * good. */
static double bound(struct steady_solver *s, struct hd_steady *now)
{
	const struct hd_stage_cost *all = &s->t->range[hd_steady_at(0, s->t->n - 1)];
	double even = (double)s->how->m * s->chunks * ((double)(all->f + all->i +
		all->w) / s->top_speed) / s->nsites, low = 0, high = 2 * even;

	s->best = INFINITY;
	for (int tries = 0; tries < BOUND_TRIES && even > 0; tries++) {
		s->cap = tries ? (low + high) / 2 : high;
		fill_rows(s);
		uint32_t sites = best_sites(s);
		if (sites == NONE && !tries)
			break;
		if (sites == NONE) {
			low = s->cap;
			continue;
		}
		walk_back(s, sites, now);
		high = now->steady_ps;
		s->best = hd_steady_ps(now) < s->best ? hd_steady_ps(now) : s->best;
	}
	s->cap = s->best * (1 + 1e-9);
	return s->cap;              /* sums in another order may be rounded up */
}

/* Rule 6: the two sums again, from the stages, the costs and the cluster. */
static double cost_again(const struct hd_steady *a, const struct hd_steady_table *t,
	const struct hd_steady_how *h)
{
	double fill = 0, slow = -1, chunks = h->chunks ? h->chunks : 1;
	uint32_t x = 0;

	for (uint32_t i = 0; i < a->nstages; i++) {
		const struct hd_steady_stage *g = &a->stage[i];
		struct hd_stage_cost c = range_again(t, g);
		double speed = INFINITY, in = 0, sum = 0, own =
			(double)((h->m + g->replicas - 1) / g->replicas) - 1;
		for (uint32_t d = x; !h->site && d < x + g->replicas; d++)
			speed = fmin(speed, hd_cluster_kind_of(h->cluster, d)->speed);
		if (h->site) {
			const struct hd_steady_site *at = &h->site[x];
			speed = at->speed;
			in = i ? at->latency_ps + (double)c.in * at->inv_bytes_ps : 0;
			sum = h->copies > 1 ? 2 * ((double)h->copies - 1) / (double)h->copies *
				(double)c.param * at->red_inv_bytes_ps
				+ 2 * at->red_latency_ps : 0;
			own = (double)h->m - 1;
		} else {
			const struct hd_cluster_level *level = h->cluster->level;
			uint32_t to = i ? hd_cluster_between(h->cluster, x - 1, x + g->replicas - 1) : 0;
			in = i ? (double)level[to].latency_ps + (double)c.in *
				(PS_PER_S / level[to].bytes_per_s) : 0;
			uint32_t over = g->replicas > 1 ? hd_cluster_between(h->cluster, x,
				x + g->replicas - 1) : 0;
			sum = g->replicas > 1 ? 2 * ((double)g->replicas - 1) / (double)g->replicas *
				(double)c.param * (PS_PER_S / level[over].bytes_per_s) +
				2 * (double)level[over].latency_ps : 0;
		}
		double time = (double)(c.f + c.i + c.w + (g->recompute ? c.r : 0)) / speed;
		fill += time + 2 * in;
		slow = fmax(slow, fmax(own * chunks * time + sum, own * chunks * in));
		x += g->replicas;
	}
	return fill + slow;
}

enum hd_err hd_steady_solve(struct hd_steady *out, const struct hd_steady_table *table,
	const struct hd_steady_how *how, struct hd_arena *arena,
	struct hd_arena *scratch, struct hd_diag *diag)
{
	struct steady_solver s = solver_of(table, how);
	struct hd_steady best = { 0 }, now = { 0 };
	uint32_t most = s.nsites < table->n ? s.nsites : table->n, sites;

	assert(how->m > 0 && s.nsites > 0);
	if (s.straight && s.nsites > table->n)
		return HD_E_NOTFOUND;
	best.stage = hd_arena_take(arena, most, sizeof *best.stage);
	now.stage = hd_arena_take(scratch, most, sizeof *now.stage);
	if (!best.stage || !now.stage || !prepare(&s, scratch))
		return hd_fail(diag, HD_E_NOMEM, "no memory to split %u cuts over %u devices", table->n,
			s.nsites);
	s.best = bound(&s, &now);
	while (fill_rows(&s), (sites = best_sites(&s)) != NONE) {
		walk_back(&s, sites, &now);
		if (hd_steady_ps(&now) < s.best) {
			struct hd_steady_stage *keep = best.stage;
			memcpy(keep, now.stage, now.nstages * sizeof *keep);
			best = now;
			best.stage = keep;
			s.best = hd_steady_ps(&now);
		}
		/* the difference may be rounded */
		double next = nextafter(s.best - now.fill_ps, INFINITY);
		s.cap = now.steady_ps < next ? now.steady_ps : next;
	}
	if (!best.nstages)
		return HD_E_NOTFOUND;
	if (cost_again(&best, table, how) != hd_steady_ps(&best))
		return hd_fail(diag, HD_E_BUG,
			"the stages found do not take the time found (%.17g ps, not %.17g ps): please "
			"report this profile",
			cost_again(&best, table, how), hd_steady_ps(&best));
	*out = best;
	return HD_OK;
}

/* ---- the least memory */

static int64_t least_of(const struct steady_solver *s, const struct hd_stage_cost *cost, uint32_t x,
	uint32_t r)
{
	struct spot room;
	const struct spot *spot = spot_of(s, x, r, &room);
	bool may = s->how->recompute != HD_STEADY_NEVER;
	int64_t plain = hd_steady_bytes(cost, spot->held, spot->versions, spot->every,
		s->how->recompute == HD_STEADY_ALWAYS);
	int64_t again = may ? hd_steady_bytes(cost, spot->held, spot->versions, spot->every, true) : plain;

	return plain < again ? plain : again;
}

enum hd_err hd_steady_least_bytes(int64_t *bytes, const struct hd_steady_table *table,
	const struct hd_steady_how *how, struct hd_arena *scratch,
	struct hd_diag *diag)
{
	struct steady_solver s = solver_of(table, how);
	uint32_t n = table->n;
	int64_t *least, best = INT64_MAX;

	if (!prepare(&s, scratch) || !(least = hd_arena_take(scratch, (size_t)n * (s.nsites + 1),
		sizeof *least)))
		return hd_fail(diag, HD_E_NOMEM, "no memory to split %u cuts over %u devices", n, s.nsites);
	for (size_t i = 0; i < (size_t)n * (s.nsites + 1); i++)
		least[i] = INT64_MAX;
	for (uint32_t j = 0; j < n; j++)
		for (uint32_t k = 0; k <= j; k++)
			for (uint32_t x = 0; table->may[hd_steady_at(k, j)] && x < s.nsites; x++) {
				int64_t before = k ? least[state(&s, k - 1, x)] : x ? INT64_MAX : 0;
				uint32_t rmost = s.straight ? 1 : s.nsites - x;
				for (uint32_t r = 1; before < INT64_MAX && r <= rmost; r++) {
					int64_t mine = least_of(&s, &table->range[hd_steady_at(k, j)], x, r),
						worst = mine > before ? mine : before;
					if (worst < least[state(&s, j, x + r)])
						least[state(&s, j, x + r)] = worst;
				}
			}
	for (uint32_t x = s.straight ? s.nsites : 1; x <= s.nsites; x++)
		best = least[state(&s, n - 1, x)] < best ? least[state(&s, n - 1, x)] : best;
	*bytes = best;
	return HD_OK;
}
