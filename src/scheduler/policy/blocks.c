/* Programs of thousands of jobs and a few types, solved by prices: jobs are tied to one another by the rows
 * of the types and the level alone.
 *
 *	max  c + sum worth x     sum_j x_ij <= 1,  sum_j gain_ij x_ij >= lo_i + g_i c,  sum_i s_i x_ij <= N_j,
 *	                         sum_ij row_ij x_ij >= lo
 *
 * Rows over all shapes (an objective that is held while a later one is sought) are priced as types are: of
 * "devices" -row, -lo of them there.
 *
 * 1. Given prices y of devices, a job is a convex curve: the least cost of reaching r, over the lower hull of
 *    the points (gain_ij, s_i y_j - worth_ij) and the origin. The best level c for these prices is where the
 *    slopes g_i cost_i' add up to its worth. That answers all of the program for y, and bounds it (the
 *    Lagrangian).
 * 2. Prices are found as Dantzig and Wolfe do: each answer (c, devices used, worth) is a column of a master
 *    program of m + 1 rows, whose duals are the next prices, smoothed towards the best ones so far (Wentges
 *    1997).
 * 3. Near the best prices nearly every job has one edge of its hull that cannot change: what it uses is
 *    affine in c. The few others stay as they are, in a program of their rows alone, solved exactly; jobs
 *    whose edge the new prices refute join them, until none. Where that ends nowhere, and where no type is
 *    short so that all edges may change, the answers are mixed as the last master says: what is left to be
 *    had by then is HD_NEARLY at most.
 * 4. Jobs equal in everything here are one block with as many times the devices; each gets the same share.
 *
 * The result is the optimum with all duals, and believed only with the certificate over all rows (lp.h).
 * Where this does not get there, the solver is given the whole program. 10,000 jobs of 8 types: 80,000
 * columns, of which the solver sees some hundreds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/policy/int.h"

enum { HD_PRICINGS = 400, HD_ROUNDS = 30, HD_NARROWS = 4, HD_OPEN = 3000,
	HD_COUPLED = HD_SCHED_TYPES + HD_PROGRAM_ROWS };
/* bound against value, relative, at which prices are good enough */
#define HD_CLOSE 1e-8
#define HD_NEARLY 5e-8                            /* and good enough to mix the answers */
#define HD_SMOOTH 0.7                             /* of the best prices in the next */
#define HD_REFUTED 1e-10                          /* relative: a reduced cost below minus this is one */

/* Jobs that are equal; points by gain. */
struct block {
	uint32_t first, count;                    /* in `member` */
	uint32_t npoints, nhull;
	double s, lo, g;                          /* of one of them; lo >= 0 */
	/* points of its edge, HD_SCHED_NONE: the origin; b == a: it has no more than a, or no need of more */
	uint32_t a, b;
	double t0, t1;                            /* the part of b at level c: t0 + t1 c */
	bool open;                                /* in the last program itself */
	uint32_t col, row;                        /* there */
	double margin;
};

/* row: what it takes of each row over all */
struct point { double gain, worth, row[HD_PROGRAM_ROWS]; uint32_t type; };
struct corner { double gain, cost; uint32_t point; };      /* point HD_SCHED_NONE: the origin */

/* prices, and the part of their answer in the master's last solution */
struct block_price { double part, y[HD_COUPLED]; };

struct blocks {
	const struct hd_policy_lp *pg;
	/* blocks, types, what is coupled (types, then rows over all), columns of the master */
	uint32_t n, m, nrows, nmaster;
	struct block *block;
	uint32_t *member;                         /* jobs, block by block */
	struct point *point;                      /* [n * m] */
	struct corner *hull;                      /* [n * (m + 1)] at the prices last asked about */
	double there[HD_COUPLED];                 /* devices; of rows over all -lo */
	double y[HD_COUPLED], c, most_c, used[HD_COUPLED], worth, bound;      /* the answer to them */
	struct block_price *asked;                      /* [nasked] */
	uint32_t nasked;
	bool level, close;                        /* close: to HD_CLOSE */
	struct hd_lp *lp;                         /* owned, of the moment */
	struct hd_lp_result last;
};

static struct point *points(const struct blocks *b, uint32_t i) { return &b->point[(size_t)i * b->m]; }
static struct corner *hull(const struct blocks *b, uint32_t i) { return &b->hull[(size_t)i * (b->m + 1)]; }

/* ---- blocks ---- */

struct block_key { const struct blocks *b; uint32_t job; double s, lo, g; struct point *point;
	uint32_t npoints; };

static int by_values(const double *a, const double *b, int n)
{
	for (int k = 0; k < n; k++)
		if (a[k] != b[k])
			return a[k] < b[k] ? -1 : 1;
	return 0;
}

static int by_content(const void *x, const void *y)
{
	const struct block_key *a = x, *b = y;
	int order = by_values((double[]){ a->npoints, a->s, a->lo, a->g },
		(double[]){ b->npoints, b->s, b->lo, b->g }, 4);

	for (uint32_t k = 0; !order && k < a->npoints; k++)
		order = by_values((double[]){ a->point[k].type, a->point[k].gain, a->point[k].worth },
			(double[]){ b->point[k].type, b->point[k].gain, b->point[k].worth }, 3);
	for (uint32_t k = 0; !order && k < a->npoints; k++)
		order = by_values(a->point[k].row, b->point[k].row, HD_PROGRAM_ROWS);
	return order;
}

static int by_job(const void *x, const void *y)
{
	const struct block_key *a = x, *b = y;
	int order = by_content(x, y);

	return order ? order : a->job < b->job ? -1 : a->job > b->job;
}

static int by_gain(const void *x, const void *y)
{
	const struct point *a = x, *b = y;

	return a->gain != b->gain ? (a->gain < b->gain ? -1 : 1) : a->type < b->type ? -1 : a->type > b->type;
}

/* Shapes stand by job, then by type: program.c adds singles so. */
static bool gather(struct blocks *b)
{
	const struct hd_policy_lp *pg = b->pg;
	const struct hd_sched_state *s = pg->seen->state;
	struct block_key *key = hd_arena_take(pg->arena, s->njobs + 1, sizeof *key);
	struct point *all = hd_arena_take(pg->arena, pg->nshapes + 1, sizeof *all);
	uint32_t n = 0;

	b->m = s->ntypes;
	b->nrows = b->m + pg->nrows_over;
	for (uint32_t j = 0; j < b->m; j++)
		b->there[j] = s->types[j].n;
	for (uint32_t k = 0; k < pg->nrows_over; k++)
		b->there[b->m + k] = pg->slack * fabs(pg->row_lo[k]) - pg->row_lo[k];
	b->member = hd_arena_take(pg->arena, s->njobs + 1, sizeof *b->member);
	b->block = hd_arena_take(pg->arena, s->njobs + 1, sizeof *b->block);
	b->point = hd_arena_take(pg->arena, (size_t)s->njobs * b->m + 1, sizeof *b->point);
	b->hull = hd_arena_take(pg->arena, (size_t)s->njobs * (b->m + 1) + 1, sizeof *b->hull);
	if (!key || !all || !b->member || !b->block || !b->point || !b->hull)
		return false;
	for (uint32_t k = 0; k < pg->nshapes; k++) {
		uint32_t i = pg->shape[k].member[0];
		if (n == 0 || key[n - 1].job != i)
			key[n++] = (struct block_key){ b, i, s->jobs[i].scale,
				fmax(0, pg->promise_lo[i] * (1 - pg->slack)), b->level ? pg->g[i] : 0,
				&all[k], 0 };
		key[n - 1].npoints++;
		all[k] = (struct point){ .gain = pg->gain[k][0],
			.worth = pg->worth ? pg->worth(pg, k, pg->context) : 0,
			.type = pg->shape[k].need[0].type };
		for (uint32_t over = 0; over < pg->nrows_over; over++)
			all[k].row[over] = -pg->row_worth[over](pg, k, pg->row_context[over]);
	}
	qsort(key, n, sizeof *key, by_job);
	for (uint32_t k = 0; k < n; k++) {
		if (k == 0 || by_content(&key[k], &key[k - 1])) {
			b->block[b->n] = (struct block){ .first = k, .npoints = key[k].npoints, .s = key[k].s,
				.lo = key[k].lo, .g = key[k].g };
			memcpy(points(b, b->n), key[k].point, key[k].npoints * sizeof *key[k].point);
			qsort(points(b, b->n), key[k].npoints, sizeof *key[k].point, by_gain);
			b->n++;
		}
		b->block[b->n - 1].count++;
		b->member[k] = key[k].job;
	}
	b->most_c = b->level ? INFINITY : 0;
	for (uint32_t i = 0; i < b->n; i++) {
		double top = points(b, i)[b->block[i].npoints - 1].gain;
		b->block[i].lo = fmin(b->block[i].lo, top);
		if (b->block[i].g > 0)
			b->most_c = fmin(b->most_c, (top - b->block[i].lo) / b->block[i].g);
	}
	return isfinite(b->most_c);
}

/* ---- rule 1 ---- */

static double cost_of(const struct blocks *b, uint32_t i, uint32_t point, const double *y)
{
	if (point == HD_SCHED_NONE)
		return 0;
	const struct point *p = &points(b, i)[point];
	double cost = b->block[i].s * y[p->type] - p->worth;
	for (uint32_t k = b->m; k < b->nrows; k++)
		cost += p->row[k - b->m] * y[k];
	return cost;
}

/* The lower hull from its cheapest corner on: gains and costs ascend. */
static void make_hull(struct blocks *b, uint32_t i, const double *y)
{
	struct block *block = &b->block[i];
	struct corner *h = hull(b, i);
	uint32_t n = 0, from = 0;

	h[n++] = (struct corner){ 0, 0, HD_SCHED_NONE };
	for (uint32_t k = 0; k < block->npoints; k++) {
		const struct point *p = &points(b, i)[k];
		double cost = cost_of(b, i, k, y);
		if (p->gain <= h[n - 1].gain && cost >= h[n - 1].cost)
			continue;
		while (n > 0 && (p->gain <= h[n - 1].gain || (n > 1 &&
			(h[n - 1].cost - h[n - 2].cost) * (p->gain - h[n - 2].gain) >= (cost -
			h[n - 2].cost) * (h[n - 1].gain - h[n - 2].gain))))
			n--;
		h[n++] = (struct corner){ p->gain, cost, k };
	}
	while (from + 1 < n && h[from + 1].cost <= h[from].cost)
		from++;
	memmove(h, h + from, (n - from) * sizeof *h);
	block->nhull = n - from;
}

/* The edge [e, e + 1] that holds r: the last with hull[e].gain < r; nhull: r is reached at corner 0
 * already. */
static uint32_t edge_of(const struct blocks *b, uint32_t i, double r)
{
	const struct corner *h = hull(b, i);
	uint32_t n = b->block[i].nhull;

	if (r <= h[0].gain || n == 1)
		return n;
	for (uint32_t e = n - 2; e > 0; e--)
		if (h[e].gain < r)
			return e;
	return 0;
}

static double slope(const struct corner *h, uint32_t e) { return (h[e + 1].cost -
	h[e].cost) / (h[e + 1].gain - h[e].gain); }

/* What one more c costs just below it. */
static double dear(const struct blocks *b, double c)
{
	double sum = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		const struct block *k = &b->block[i];
		uint32_t e = k->g > 0 ? edge_of(b, i, k->lo + k->g * c) : k->nhull;
		sum += e < k->nhull ? k->count * k->g * slope(hull(b, i), e) : 0;
	}
	return sum;
}

/* The corners of a block at level c and the part of the second. */
static uint32_t place(const struct blocks *b, uint32_t i, double c, double *part)
{
	const struct corner *h = hull(b, i);
	double r = b->block[i].lo + b->block[i].g * c;
	uint32_t e = edge_of(b, i, r);

	*part = 0;
	if (e < b->block[i].nhull)
		*part = fmin(1, (r - h[e].gain) / (h[e + 1].gain - h[e].gain));
	return e;
}

static void use(struct blocks *b, uint32_t i, uint32_t corner, double x)
{
	const struct corner *h = &hull(b, i)[corner];

	if (h->point == HD_SCHED_NONE)
		return;
	const struct point *p = &points(b, i)[h->point];
	b->used[p->type] += b->block[i].count * b->block[i].s * x;
	for (uint32_t k = b->m; k < b->nrows; k++)
		b->used[k] += b->block[i].count * p->row[k - b->m] * x;
	b->worth += b->block[i].count * p->worth * x;
}

static void answer(struct blocks *b, const double *y)
{
	double low = 0, high = b->most_c, part;

	memcpy(b->y, y, b->nrows * sizeof *y);
	for (uint32_t i = 0; i < b->n; i++)
		make_hull(b, i, y);
	if (b->level && dear(b, high) <= 1)
		low = high;
	for (int k = 0; k < 60 && low < high * (1 - 1e-14); k++) {
		double mid = (low + high) / 2;
		*(dear(b, mid) <= 1 ? &low : &high) = mid;
	}
	b->c = low;
	b->worth = b->c;
	memset(b->used, 0, sizeof b->used);
	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t e = place(b, i, b->c, &part), first = e < b->block[i].nhull ? e : 0;
		use(b, i, first, 1 - part);
		if (e < b->block[i].nhull)
			use(b, i, e + 1, part);
	}
	b->bound = b->worth;
	for (uint32_t j = 0; j < b->nrows; j++)
		b->bound += y[j] * (b->there[j] - b->used[j]);
}

/* ---- rule 2 ---- */

static bool master_open(struct blocks *b, double most)
{
	double devices = 0, lo = -INFINITY, one = 1, zero = 0, inf = INFINITY;
	uint32_t none[2] = { 0, 0 };
	bool ok = (b->lp = hd_lp_new(true)) != NULL;

	b->nmaster = b->nrows;
	for (uint32_t j = 0; j < b->m; j++)
		devices += b->there[j];
	for (uint32_t j = 0; ok && j < b->nrows; j++)
		ok = !hd_lp_rows(b->lp, 1, &lo, &b->there[j], none, NULL, NULL);
	ok = ok && !hd_lp_rows(b->lp, 1, &one, &one, none, NULL, NULL);
	/* devices beyond: the dearest that a price can be; a whole row as all devices */
	for (uint32_t j = 0; ok && j < b->nrows; j++) {
		double cost = j < b->m ? -most : -most * devices / fmax(1e-300, fabs(b->there[j]));
		ok = !hd_lp_cols(b->lp, 1, &zero, &inf, &cost, (uint32_t[]){ 0, 1 }, &j, (double[]){ -1 });
	}
	return ok;
}

static bool master_add(struct blocks *b)
{
	uint32_t idx[HD_COUPLED + 1], n = 0, start[2] = { 0, 0 };
	double val[HD_COUPLED + 1], zero = 0, inf = INFINITY;

	for (uint32_t j = 0; j < b->nrows; j++)
		if (b->used[j] > 0 || b->used[j] < 0) {
			idx[n] = j;
			val[n++] = b->used[j];
		}
	idx[n] = b->nrows;
	val[n++] = 1;
	start[1] = n;
	b->nmaster++;
	return !hd_lp_cols(b->lp, 1, &zero, &inf, &b->worth, start, idx, val);
}

/* A scale of prices: devices of all types together are worth about what there is to gain. */
static double dearest(struct blocks *b)
{
	double zero[HD_COUPLED] = { 0 }, devices = 0, all = 0;

	answer(b, zero);
	for (uint32_t j = 0; j < b->m; j++)
		devices += b->there[j];
	for (uint32_t i = 0; i < b->n; i++)
		for (uint32_t k = 0; k < b->block[i].npoints; k++)
			all = fmax(all, fabs(points(b, i)[k].worth) / b->block[i].s);
	return 1e3 * fmax(all, b->c / devices);
}

/* The prices that bound it best into the last answer; its level that of the master: there may be several
 * for the prices. */
static bool find_prices(struct blocks *b, double *best_y)
{
	double y[HD_COUPLED] = { 0 }, level[HD_PRICINGS], c = 0, best = INFINITY, value = -INFINITY,
		most = dearest(b);
	bool ok = most > 0 && master_open(b, most) && (b->asked = hd_arena_take(b->pg->arena, HD_PRICINGS,
		sizeof *b->asked));

	for (uint32_t turn = 0; ok && !b->close && turn < HD_PRICINGS &&
		!hd_policy_is_stopped(b->pg->seen->set); turn++) {
		if (turn > 0) {
			ok = !hd_lp_solve(b->lp, NULL, &b->last) && b->last.status == HD_LP_OPTIMAL;
			value = ok ? b->last.objective : value;
		}
		if (!ok || (b->close = turn > 1 && best - value <= HD_CLOSE * fmax(fabs(best), fabs(value))))
			break;
		for (int smooth = turn > 1; smooth >= 0; smooth--) {
			for (uint32_t j = 0; j < b->nrows; j++) {
				double dual = turn > 0 ? fmax(0, b->last.dual[j]) : 0;
				y[j] = j < b->m && b->there[j] <= 0 ? 0 : smooth ?
					HD_SMOOTH * best_y[j] + (1 - HD_SMOOTH) * dual : dual;
			}
			answer(b, y);
			double reduced = turn > 0 ? b->worth - b->last.dual[b->nrows] : 1;
			for (uint32_t j = 0; turn > 0 && j < b->nrows; j++)
				reduced -= b->used[j] * b->last.dual[j];
			bool better = b->bound < best;
			if (better) {
				best = b->bound;
				memcpy(best_y, y, sizeof y);
			}
			/* else the master knows it: ask where the master is */
			if (reduced > 0 || better)
				break;
		}
		level[turn] = b->c;
		memcpy(b->asked[turn].y, y, sizeof y);
		ok = master_add(b);
	}
	if (ok && !b->close)                                      /* its last column too */
		ok = !hd_lp_solve(b->lp, NULL, &b->last) && b->last.status == HD_LP_OPTIMAL;
	value = ok ? b->last.objective : value;
	ok = ok && best - value <= HD_NEARLY * fmax(fabs(best), fabs(value));
	for (b->nasked = 0; ok && b->nrows + b->nasked < b->nmaster; b->nasked++) {
		b->asked[b->nasked].part = b->last.x[b->nrows + b->nasked];
		c += b->asked[b->nasked].part * level[b->nasked];
	}
	hd_lp_free(b->lp);
	b->lp = NULL;
	if (ok)
		answer(b, best_y);
	b->c = fmin(b->most_c, c);
	return ok;
}

/* ---- rule 3 ---- */

static double gain_of(const struct blocks *b, uint32_t i, uint32_t point) { return point == HD_SCHED_NONE ?
	0 : points(b, i)[point].gain; }

/* The block at its edge for the prices of the last answer. */
static void fix(struct blocks *b, uint32_t i)
{
	struct block *k = &b->block[i];
	const struct corner *h = hull(b, i);
	uint32_t e = edge_of(b, i, k->lo + k->g * b->c);

	k->a = k->b = h[e < k->nhull ? e : 0].point;
	k->t0 = k->t1 = 0;
	if (e == k->nhull)
		return;
	k->b = h[e + 1].point;
	k->t0 = (k->lo - h[e].gain) / (h[e + 1].gain - h[e].gain);
	k->t1 = k->g / (h[e + 1].gain - h[e].gain);
}

/* Prices of the block's own rows along its edge, cost = l gain - u: of its promise and of its time. */
static void own_prices(const struct blocks *b, uint32_t i, const double *y, double *l, double *u)
{
	const struct block *k = &b->block[i];

	*l = k->a == k->b ? 0 : (cost_of(b, i, k->b, y) - cost_of(b, i, k->a, y)) / (gain_of(b, i,
		k->b) - gain_of(b, i, k->a));
	*u = *l * gain_of(b, i, k->a) - cost_of(b, i, k->a, y);
}

/* The least reduced cost of what is off the edge, prices of the block's rows with it, by what the block
 * costs at most. */
static double margin(const struct blocks *b, uint32_t i, const double *y)
{
	const struct block *k = &b->block[i];
	double l, u, unit = 0, least;

	own_prices(b, i, y, &l, &u);
	for (uint32_t p = 0; p < k->npoints; p++)
		unit = fmax(unit, fabs(cost_of(b, i, p, y)));
	unit = unit > 0 ? unit : 1;
	least = k->a == HD_SCHED_NONE || k->b == HD_SCHED_NONE ? INFINITY : u;
	if (k->a != k->b)
		least = fmin(least, l * gain_of(b, i, k->b));
	for (uint32_t p = 0; p < k->npoints; p++)
		if (p != k->a && p != k->b)
			least = fmin(least, cost_of(b, i, p, y) - l * points(b, i)[p].gain + u);
	return least / unit;
}

/* The levels between which the block stays on its edge. */
static void stays(const struct blocks *b, uint32_t i, double *low, double *high)
{
	const struct block *k = &b->block[i];

	*low = 0;
	*high = b->most_c;
	if (k->g <= 0)
		return;
	*low = k->a == k->b ? 0 : -k->t0 / k->t1;
	*high = k->a == k->b ? (gain_of(b, i, k->a) - k->lo) / k->g : (1 - k->t0) / k->t1;
}

static int by_margin(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/* Opens whoever's edge may be another one: the nearest `least` of them, all within `near`, all that leave
 * their edge within `step` of c. */
static bool open_some(struct blocks *b, uint32_t least, double near, double step)
{
	double *sorted = hd_arena_take(b->pg->arena, b->n, sizeof *sorted), low, high;

	if (!sorted)
		return false;
	for (uint32_t i = 0; i < b->n; i++)
		sorted[i] = b->block[i].margin;
	qsort(sorted, b->n, sizeof *sorted, by_margin);
	near = fmax(near, sorted[least < b->n ? least : b->n - 1]);
	for (uint32_t i = 0; i < b->n; i++) {
		stays(b, i, &low, &high);
		/* a job that bounds the level by its maximum must be there to do so */
		bool leaves = b->block[i].g > 0 && (low > b->c * (1 - step) || high < b->c * (1 + step));
		b->block[i].open |= b->block[i].margin <= near || leaves;
	}
	return true;
}

/* A point, `at0` + `slope` c of all jobs of its block. */
static void fixed_point(const struct blocks *b, uint32_t i, uint32_t point, double at0, double slope,
	double *sum0, double *sum_c, double *worth_c)
{
	const struct block *k = &b->block[i];

	if (point == HD_SCHED_NONE)
		return;
	const struct point *p = &points(b, i)[point];
	sum0[p->type] += k->count * k->s * at0;
	sum_c[p->type] += k->count * k->s * slope;
	*worth_c += k->count * p->worth * slope;
	for (uint32_t over = b->m; over < b->nrows; over++) {
		sum0[over] += k->count * p->row[over - b->m] * at0;
		sum_c[over] += k->count * p->row[over - b->m] * slope;
	}
}

/* What fixed blocks use, at level 0 and for each unit of it. */
static void fixed_use(const struct blocks *b, double *at0, double *slope_c, double *worth_c)
{
	for (uint32_t j = 0; j < b->nrows; j++)
		at0[j] = slope_c[j] = 0;
	*worth_c = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct block *k = &b->block[i];
		if (k->open)
			continue;
		fixed_point(b, i, k->a, 1 - k->t0, -k->t1, at0, slope_c, worth_c);
		fixed_point(b, i, k->b, k->t0, k->t1, at0, slope_c, worth_c);
	}
}

static bool rows_of_open(struct blocks *b, const double *at0)
{
	double least = -INFINITY, inf = INFINITY, one = 1;
	uint32_t none[2] = { 0, 0 }, row = b->nrows;
	bool ok = true;

	for (uint32_t j = 0; ok && j < b->nrows; j++) {
		double left = b->there[j] - at0[j];
		ok = !hd_lp_rows(b->lp, 1, &least, &left, none, NULL, NULL);
	}
	for (uint32_t i = 0; ok && i < b->n; i++) {
		struct block *k = &b->block[i];
		if (!k->open)
			continue;
		k->row = row;
		row += 2;
		ok = !hd_lp_rows(b->lp, 1, &least, &one, none, NULL, NULL) &&
			!hd_lp_rows(b->lp, 1, &k->lo, &inf, none, NULL, NULL);
	}
	return ok;
}

/* The level first, then the points of the open blocks: shares of one of its jobs. */
static bool columns_of_open(struct blocks *b, const double *slope_c, double worth_c, double low, double high,
	uint32_t nopen)
{
	uint32_t *idx = hd_arena_take(b->pg->arena, b->nrows + nopen + 1, sizeof *idx), n = 0, col = 1;
	double *val = hd_arena_take(b->pg->arena, b->nrows + nopen + 1, sizeof *val), zero = 0,
		inf = INFINITY, cost = b->level + worth_c;
	bool ok = idx && val;

	for (uint32_t j = 0; ok && j < b->nrows; j++)
		if (slope_c[j] < 0 || slope_c[j] > 0) {
			idx[n] = j;
			val[n++] = slope_c[j];
		}
	for (uint32_t i = 0; ok && i < b->n; i++)
		if (b->block[i].open && b->block[i].g > 0) {
			idx[n] = b->block[i].row + 1;
			val[n++] = -b->block[i].g;
		}
	ok = ok && !hd_lp_cols(b->lp, 1, &low, &high, &cost, (uint32_t[]){ 0, n }, idx, val);
	for (uint32_t i = 0; ok && i < b->n; i++) {
		struct block *k = &b->block[i];
		k->col = col;
		for (uint32_t p = 0; ok && k->open && p < k->npoints; p++, col++) {
			const struct point *at = &points(b, i)[p];
			uint32_t in[3 + HD_PROGRAM_ROWS] = { at->type, k->row, k->row + 1 }, nin = 3;
			double of[3 + HD_PROGRAM_ROWS] = { k->count * k->s, 1, at->gain };
			for (uint32_t over = b->m; over < b->nrows; over++) {
				in[nin] = over;
				of[nin++] = k->count * at->row[over - b->m];
			}
			cost = k->count * at->worth;
			ok = !hd_lp_cols(b->lp, 1, &zero, &inf, &cost, (uint32_t[]){ 0, nin }, in, of);
		}
	}
	return ok;
}

enum tried { TRIED_FAILED, TRIED_REFUTED, TRIED_NARROW, TRIED_DONE };

/* One program of the open blocks; y and c are its prices and level. */
static enum tried try_open(struct blocks *b, double step)
{
	double at0[HD_COUPLED], slope_c[HD_COUPLED], worth_c;
	double low = b->level ? b->c * (1 - step) : 0, high = b->level ? b->c * (1 + step) : 0;
	uint32_t nopen = 0;
	enum tried tried = TRIED_DONE;

	for (uint32_t i = 0; i < b->n; i++)
		nopen += b->block[i].open;
	if (nopen > HD_OPEN)
		return TRIED_FAILED;
	hd_lp_free(b->lp);
	b->lp = hd_lp_new(true);
	fixed_use(b, at0, slope_c, &worth_c);
	if (!b->lp || !rows_of_open(b, at0) || !columns_of_open(b, slope_c, worth_c, low, high, nopen) ||
		hd_lp_solve(b->lp, NULL, &b->last))
		return TRIED_FAILED;
	if (b->last.status != HD_LP_OPTIMAL)
		return TRIED_NARROW;
	for (uint32_t j = 0; j < b->nrows; j++)
		b->y[j] = fmax(0, b->last.dual[j]);
	if (b->level && (b->last.reduced[0] > HD_REFUTED || (b->last.reduced[0] < -HD_REFUTED && low > 0)))
		return TRIED_NARROW;
	for (uint32_t i = 0; i < b->n; i++)
		if (!b->block[i].open && margin(b, i, b->y) < -HD_REFUTED) {
			b->block[i].open = true;
			tried = TRIED_REFUTED;
		}
	return tried;
}

static bool close_in(struct blocks *b)
{
	uint32_t least = 4 * b->nrows + 16, narrow = 0;
	double near = 1e-6, step = 1e-4;

	for (uint32_t i = 0; i < b->n; i++) {
		fix(b, i);
		b->block[i].margin = margin(b, i, b->y);
	}
	if (!open_some(b, least, near, step))
		return false;
	for (int round = 0; round < HD_ROUNDS; round++) {
		enum tried tried = try_open(b, step);
		if (tried == TRIED_DONE || tried == TRIED_FAILED ||
			(tried == TRIED_NARROW && ++narrow > HD_NARROWS))
			return tried == TRIED_DONE;
		if (tried == TRIED_REFUTED)
			continue;
		least *= 2;
		near *= 4;
		step = fmin(0.5, 4 * step);
		if (!open_some(b, least, near, step))
			return false;
	}
	return false;
}

/* ---- the answer ---- */

/* Shapes by job and type. */
static uint32_t *shapes_of(const struct blocks *b)
{
	const struct hd_policy_lp *pg = b->pg;
	uint32_t *shape_of = hd_arena_take(pg->arena, pg->seen->state->njobs * b->m + 1, sizeof *shape_of);

	for (uint32_t k = 0; shape_of && k < pg->nshapes; k++)
		shape_of[(size_t)pg->shape[k].member[0] * b->m + pg->shape[k].need[0].type] = k;
	return shape_of;
}

static void write_prices(const struct blocks *b, double *dual)
{
	for (uint32_t j = 0; j < b->m; j++)
		if (b->pg->cap_row[j] != HD_SCHED_NONE)
			dual[b->pg->cap_row[j]] = b->y[j];
	for (uint32_t over = b->m; over < b->nrows; over++)       /* a row of at least */
		dual[b->pg->row_over[over - b->m]] = -b->y[over];
}

static bool write(struct blocks *b, double *x, double *dual)
{
	const struct hd_policy_lp *pg = b->pg;
	double c = b->last.x[0], l, u;
	uint32_t *shape_of = shapes_of(b);

	if (!shape_of)
		return false;
	if (b->level)
		x[pg->level] = c;
	write_prices(b, dual);
	for (uint32_t i = 0; i < b->n; i++) {
		const struct block *k = &b->block[i];
		double part = fmin(1, fmax(0, k->t0 + k->t1 * c));
		own_prices(b, i, b->y, &l, &u);
		if (k->open) {
			u = b->last.dual[k->row] / k->count;
			l = -b->last.dual[k->row + 1] / k->count;
		}
		for (uint32_t q = 0; q < k->count; q++) {
			uint32_t job = b->member[k->first + q];
			const uint32_t *shapes = &shape_of[(size_t)job * b->m];
			dual[pg->time_row[job]] = fmax(0, u);
			dual[pg->promise_row[job]] = fmin(0, -l);
			for (uint32_t p = 0; p < k->npoints; p++) {
				double share = p == k->a ? 1 - part : p == k->b ? part : 0;
				x[pg->col[shapes[points(b, i)[p].type]]] = k->open ? b->last.x[k->col + p] :
					share;
			}
		}
	}
	return true;
}

/* Prices of the rows of all jobs at the prices of the last answer. Of a level they are not known there but
 * where no type is short: what bounds it then is one job that can have no more. */
static bool own_rows(struct blocks *b, double *dual)
{
	bool found = !b->level;
	double l, u;

	for (uint32_t j = 0; b->level && j < b->nrows; j++)
		if (b->y[j] > 0)
			return false;
	for (uint32_t i = 0; i < b->n; i++) {
		struct block *k = &b->block[i];
		double top = points(b, i)[k->npoints - 1].gain;
		uint32_t nlast = k->count;
		l = u = 0;
		if (!b->level) {
			fix(b, i);
			own_prices(b, i, b->y, &l, &u);
		} else if (!found && k->g > 0 && (top - k->lo) / k->g <= b->most_c) {
			found = true;
			l = 1 / k->g;
			u = l * top;
			nlast = 1;
		}
		for (uint32_t q = 0; q < nlast; q++) {
			dual[b->pg->time_row[b->member[k->first + q]]] = fmax(0, u);
			dual[b->pg->promise_row[b->member[k->first + q]]] = fmin(0, -l);
		}
	}
	return found;
}

/* The master's mixture of answers; `y` are the best prices. */
static bool mix(struct blocks *b, const double *y, double *x, double *dual)
{
	const struct hd_policy_lp *pg = b->pg;
	uint32_t *shape_of = shapes_of(b);
	double level = 0, part;

	if (!shape_of)
		return false;
	memset(x, 0, pg->ncols * sizeof *x);
	memset(dual, 0, pg->nrows * sizeof *dual);
	for (uint32_t a = 0; a < b->nasked; a++) {
		if (!(b->asked[a].part > 0))
			continue;
		answer(b, b->asked[a].y);
		level += b->asked[a].part * b->c;
		for (uint32_t i = 0; i < b->n; i++) {
			const struct block *k = &b->block[i];
			uint32_t e = place(b, i, b->c, &part), first = e < k->nhull ? e : 0;
			for (uint32_t q = 0; q < k->count; q++)
				for (int side = 0; side < 1 + (e < k->nhull); side++) {
					const struct corner *h = &hull(b, i)[first + (uint32_t)side];
					if (h->point != HD_SCHED_NONE)
						x[pg->col[shape_of[(size_t)b->member[k->first + q] * b->m +
							points(b, i)[h->point].type]]] +=
							b->asked[a].part * (side ? part : 1 - part);
				}
		}
	}
	if (b->level)
		x[pg->level] = level;
	answer(b, y);
	b->c = 0;
	write_prices(b, dual);
	return own_rows(b, dual);
}

enum hd_err hd_blocks_solve(struct hd_policy_lp *pg, const struct hd_lp_limits *limits, bool *solved)
{
	struct blocks b = { .pg = pg, .level = pg->level != HD_SCHED_NONE && pg->g };
	double y[HD_COUPLED] = { 0 }, *x = hd_arena_take(pg->arena, pg->ncols + 1, sizeof *x);
	double *dual = hd_arena_take(pg->arena, pg->nrows + 1, sizeof *dual);
	enum hd_err err = HD_OK;

	*solved = false;
	if (!x || !dual)
		return HD_E_NOMEM;
	if (gather(&b) && find_prices(&b, y) && ((b.close && close_in(&b) && write(&b, x, dual)) ||
		mix(&b, y, x, dual))) {
		err = hd_lp_check(pg->lp, x, dual, limits, &pg->last);
		*solved = !err && pg->last.status == HD_LP_OPTIMAL;
	}
	hd_lp_free(b.lp);
	return err;
}
