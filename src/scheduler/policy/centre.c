/* The middle of all shares that keep a promise, for fidelity gavel. The published programs leave what is
 * beyond their objective to the solver, an interior-point method: it ends near the point of the optimal face
 * that is farthest from all its edges, in the sense of
 *
 *	max  sum log x_k + sum log (1 - time_i) + sum log (N_j - used_j) + sum v log (e_i - lo_i) + log
 *	(worth - least)
 *
 * (the analytic centre). A simplex method ends in a corner, where a job that does not hold the objective down
 * has no more than it must, all on one type: replays end up to a sixth later in the mean. `lo` and `least`
 * are a little below what is promised, so that there is an inside.
 *
 * Newton steps on x z = 1, s y = v with slacks s and A x + s = b, A'y = z, from any start (Wright,
 * "Primal-Dual Interior-Point Methods", 1997). The system is one row a job for time, one for its promise, one
 * a type, one for the worth; without pairs the jobs' rows meet only in the last rows, so the factor is kept
 * from the first entry of each row on that is not 0. */
#include <math.h>
#include <string.h>

#include "scheduler/policy/int.h"

enum { HD_STEPS = 80, HD_COLUMNS = 1 << 17, HD_ENTRIES = 6 };
#define HD_INSIDE 1e-7                            /* of a promise: how far below it is asked for */
#define HD_BACK 0.9                               /* of the way to the nearest edge */
#define HD_NEAR 1e-6                              /* of x z and s y, at the end */
#define HD_TINY 1e-9                              /* of the rows */

struct centre_column { struct hd_shape shape; uint32_t row[HD_ENTRIES]; double at[HD_ENTRIES], x, z, dx, dz,
	q;
	int n; };
/* factor: [first .. itself] */
struct centre_row { double b, v, s, y, ds, dy, left; uint32_t first; double *factor; };

struct centre {
	const struct hd_seen *seen;
	struct hd_arena *arena;
	struct centre_column *col;
	struct centre_row *row;
	uint32_t ncols, cap, nrows, *time, *promise, type[HD_SCHED_TYPES];
	uint32_t worth;                           /* HD_SCHED_NONE: no such row */
};

static void enter(struct centre_column *c, uint32_t row, double at)
{
	if (row != HD_SCHED_NONE && at != 0) {
		c->row[c->n] = row;
		c->at[c->n++] = at;
	}
}

static bool add(struct centre *c, const struct hd_shape *shape, const double rate[2],
	const struct hd_middle *m)
{
	const struct hd_seen *seen = c->seen;
	double devices = shape->need[0].n / (double)seen->state->types[shape->need[0].type].n;

	if (c->ncols == c->cap) {
		uint32_t cap = c->cap ? 2 * c->cap : 256;
		struct centre_column *more = cap > HD_COLUMNS ? NULL : hd_arena_take(c->arena, cap,
			sizeof *more);
		if (!more)
			return false;
		if (c->ncols)
			memcpy(more, c->col, c->ncols * sizeof *more);
		c->col = more;
		c->cap = cap;
	}
	struct centre_column *k = &c->col[c->ncols++];
	*k = (struct centre_column){ .shape = *shape };
	for (int i = 0; i < shape->nmembers; i++) {
		uint32_t job = shape->member[i];
		enter(k, c->time[job], 1);
		enter(k, c->promise[job], m->lo && m->lo[job] > 0 ? -rate[i] / seen->p[job] / m->lo[job] : 0);
	}
	enter(k, c->type[shape->need[0].type], devices);
	enter(k, c->worth, m->worth ? -m->worth(shape, rate, m->context) / m->least : 0);
	return true;
}

/* All singles and pairs that run at all; what the policy never lists, the published program does. */
static bool columns(struct centre *c, const struct hd_middle *m)
{
	const struct hd_sched_state *s = c->seen->state;
	bool pairs = c->seen->set->variant == HD_VARIANT_PACKED, ok = true;
	double rate[2] = { 0 };

	for (uint32_t i = 0; ok && i < s->njobs; i++)
		for (uint32_t j = 0; ok && !c->seen->absent[i] && j < s->ntypes; j++) {
			struct hd_shape shape = hd_way_single(s, i, j);
			rate[0] = hd_seen_rate(c->seen, i, j);
			ok = !(rate[0] > 0) || add(c, &shape, rate, m);
		}
	for (uint32_t a = 0; ok && pairs && a < s->njobs; a++)
		for (uint32_t b = a + 1; ok && b < s->njobs; b++)
			for (uint32_t j = 0; ok && j < s->ntypes; j++)
				if (hd_seen_pair(c->seen, a, b, j, rate)) {
					struct hd_shape shape = hd_way_pair(s, a, b, j);
					ok = add(c, &shape, rate, m);
				}
	return ok;
}

static uint32_t add_row(struct centre *c, double b, double v)
{
	c->row[c->nrows] = (struct centre_row){ .b = b, .v = v, .first = c->nrows };
	return c->nrows++;
}

static bool rows(struct centre *c, const struct hd_middle *m)
{
	const struct hd_sched_state *s = c->seen->state;

	c->row = hd_arena_take(c->arena, 2 * (size_t)s->njobs + s->ntypes + 1, sizeof *c->row);
	c->time = hd_arena_take(c->arena, s->njobs, sizeof *c->time);
	c->promise = hd_arena_take(c->arena, s->njobs, sizeof *c->promise);
	if (!c->row || !c->time || !c->promise)
		return false;
	for (uint32_t i = 0; i < s->njobs; i++) {
		c->time[i] = c->seen->absent[i] ? HD_SCHED_NONE : add_row(c, 1, 1);
		c->promise[i] = !c->seen->absent[i] && m->lo &&
			m->lo[i] > 0 ? add_row(c, -(1 - HD_INSIDE), m->v > 0 ? m->v : 1) : HD_SCHED_NONE;
	}
	for (uint32_t j = 0; j < s->ntypes; j++)
		c->type[j] = s->types[j].n ? add_row(c, 1, 1) : HD_SCHED_NONE;
	c->worth = m->worth && m->least > 0 ? add_row(c, -(1 - HD_INSIDE), 1) : HD_SCHED_NONE;
	return true;
}

/* Where each row of the factor begins: at the first row that it shares a column with. */
static bool shape_factor(struct centre *c)
{
	for (uint32_t k = 0; k < c->ncols; k++) {
		uint32_t least = c->nrows;
		for (int i = 0; i < c->col[k].n; i++)
			least = c->col[k].row[i] < least ? c->col[k].row[i] : least;
		for (int i = 0; i < c->col[k].n; i++)
			c->row[c->col[k].row[i]].first = least < c->row[c->col[k].row[i]].first ? least :
				c->row[c->col[k].row[i]].first;
	}
	for (uint32_t r = 0; r < c->nrows; r++)
		if (!(c->row[r].factor = hd_arena_take(c->arena, r - c->row[r].first + 1, sizeof(double))))
			return false;
	return true;
}

static double *entry(const struct centre *c, uint32_t r, uint32_t k) { return &c->row[r].factor[k -
	c->row[r].first]; }

static bool factor(struct centre *c)
{
	for (uint32_t r = 0; r < c->nrows; r++) {
		memset(c->row[r].factor, 0, (r - c->row[r].first + 1) * sizeof(double));
		*entry(c, r, r) = c->row[r].s / c->row[r].y;
	}
	for (uint32_t k = 0; k < c->ncols; k++) {
		const struct centre_column *col = &c->col[k];
		for (int i = 0; i < col->n; i++)
			for (int j = 0; j < col->n; j++)
				if (col->row[j] <= col->row[i])
					*entry(c, col->row[i],
						col->row[j]) += col->at[i] * col->at[j] * col->x / col->z;
	}
	for (uint32_t r = 0; r < c->nrows; r++) {
		struct centre_row *row = &c->row[r];
		for (uint32_t k = row->first; k <= r; k++) {
			const struct centre_row *other = &c->row[k];
			uint32_t from = row->first > other->first ? row->first : other->first;
			const double *a = row->factor + (from - row->first),
				*b = other->factor + (from - other->first);
			double sum = *entry(c, r, k);
			for (uint32_t l = 0; l < k - from; l++)
				sum -= a[l] * b[l];
			if (k == r && !(sum > 0))
				return false;
			*entry(c, r, k) = k == r ? sqrt(sum) : sum / *entry(c, k, k);
		}
	}
	return true;
}

/* dy of the right sides in dy. */
static void solve(struct centre *c)
{
	for (uint32_t r = 0; r < c->nrows; r++) {
		struct centre_row *row = &c->row[r];
		for (uint32_t k = row->first; k < r; k++)
			row->dy -= *entry(c, r, k) * c->row[k].dy;
		row->dy /= *entry(c, r, r);
	}
	for (uint32_t r = c->nrows; r-- > 0;) {
		struct centre_row *row = &c->row[r];
		row->dy /= *entry(c, r, r);
		for (uint32_t k = row->first; k < r; k++)
			c->row[k].dy -= *entry(c, r, k) * row->dy;
	}
}

/* How far the rows are off, and the products. */
static double measure(struct centre *c, double *products)
{
	double most = 0;

	*products = 0;
	for (uint32_t r = 0; r < c->nrows; r++)
		c->row[r].left = c->row[r].b - c->row[r].s;
	for (uint32_t k = 0; k < c->ncols; k++) {
		for (int i = 0; i < c->col[k].n; i++)
			c->row[c->col[k].row[i]].left -= c->col[k].at[i] * c->col[k].x;
		*products = fmax(*products, fabs(c->col[k].x * c->col[k].z - 1));
	}
	for (uint32_t r = 0; r < c->nrows; r++) {
		most = fmax(most, fabs(c->row[r].left));
		*products = fmax(*products, fabs(c->row[r].s * c->row[r].y / c->row[r].v - 1));
	}
	return most;
}

static double within(double v, double d, double step) { return d < 0 ? fmin(step, -HD_BACK * v / d) : step; }

static bool advance(struct centre *c)
{
	double step = 1;

	for (uint32_t r = 0; r < c->nrows; r++)
		c->row[r].dy = c->row[r].v / c->row[r].y - c->row[r].s - c->row[r].left;
	for (uint32_t k = 0; k < c->ncols; k++) {
		struct centre_column *col = &c->col[k];
		col->q = 1 / col->x;
		for (int i = 0; i < col->n; i++)
			col->q -= col->at[i] * c->row[col->row[i]].y;
		for (int i = 0; i < col->n; i++)
			c->row[col->row[i]].dy += col->at[i] * col->x / col->z * col->q;
	}
	if (!factor(c))
		return false;
	solve(c);
	for (uint32_t k = 0; k < c->ncols; k++) {
		struct centre_column *col = &c->col[k];
		double sum = col->q;
		for (int i = 0; i < col->n; i++)
			sum -= col->at[i] * c->row[col->row[i]].dy;
		col->dx = col->x / col->z * sum;
		col->dz = 1 / col->x - col->z - col->z / col->x * col->dx;
		step = within(col->x, col->dx, within(col->z, col->dz, step));
	}
	for (uint32_t r = 0; r < c->nrows; r++) {
		struct centre_row *row = &c->row[r];
		row->ds = row->v / row->y - row->s - row->s / row->y * row->dy;
		step = within(row->s, row->ds, within(row->y, row->dy, step));
	}
	for (uint32_t k = 0; k < c->ncols; k++) {
		c->col[k].x += step * c->col[k].dx;
		c->col[k].z += step * c->col[k].dz;
	}
	for (uint32_t r = 0; r < c->nrows; r++) {
		c->row[r].s += step * c->row[r].ds;
		c->row[r].y += step * c->row[r].dy;
	}
	return true;
}

static void begin(struct centre *c)
{
	const struct hd_sched_state *s = c->seen->state;
	double products;

	for (uint32_t k = 0; k < c->ncols; k++) {
		const struct hd_need *need = c->col[k].shape.need;
		double part = fmin(1.0 / s->ntypes, s->types[need->type].n / ((double)need->n * s->njobs));
		c->col[k].x = 0.5 * part / (c->ncols > s->njobs * s->ntypes ? s->njobs : 1);
		c->col[k].z = 1 / c->col[k].x;
	}
	(void)measure(c, &products);
	for (uint32_t r = 0; r < c->nrows; r++) {
		c->row[r].s = fmax(0.1, c->row[r].left);
		c->row[r].y = c->row[r].v / c->row[r].s;
	}
}

enum hd_err hd_middle(const struct hd_seen *seen, const struct hd_middle *m, struct hd_arena *arena,
	struct hd_shares *out)
{
	struct centre c = { .seen = seen, .arena = arena };
	struct hd_collect to = { .out = out, .arena = arena };
	struct hd_shares before = *out;
	double products = INFINITY;
	bool near = false;
	enum hd_err err = HD_OK;

	if (!rows(&c, m) || !columns(&c, m) || !shape_factor(&c))
		return HD_OK;                             /* too many for it: the corner stays */
	begin(&c);
	for (int step = 0; step < HD_STEPS && !near && !hd_policy_is_stopped(seen->set); step++) {
		near = measure(&c, &products) < HD_TINY && products < HD_NEAR;
		if (!near && !advance(&c))
			break;
	}
	if (!near)
		return HD_OK;
	out->nshapes = 0;
	for (uint32_t k = 0; !err && k < c.ncols; k++)
		err = hd_collect(&to, &c.col[k].shape, c.col[k].x);
	if (err)
		*out = before;
	return err;
}
