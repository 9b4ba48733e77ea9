#include "scheduler/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"

enum { ARENA_BYTES = 1 << 30 };
static const double MU = 0.01, CAUTION = 0.8;

enum draw { DRAW_REFERENCE, DRAW_CELL, DRAW_LEAST, DRAW_START };

struct hd_estimator {
	struct hd_estimate_setting set;
	const struct hd_rates *truth;
	struct hd_pair_table table;
	double caution;
	struct hd_arena arena;                    /* owned: everything below */
	double *rate;                             /* the table's */
	/* [nkinds][nkinds][ntypes]; measured: cells of the row's own kind, and all of references */
	bool *known, *measured, *ran;
	bool *came, *is_reference;                /* [nkinds] */
	uint32_t *near;                           /* [nkinds] */
};

static size_t cell(const struct hd_estimator *e, uint32_t a, uint32_t b, uint32_t t)
{
	return ((size_t)a * e->truth->nkinds + b) * e->truth->ntypes + t;
}

/* A number in (0, 1) of its own for each kind, cell and purpose. */
static double draw(const struct hd_estimator *e, enum draw what, uint32_t kind, uint32_t i)
{
	struct hd_philox x = hd_philox((uint32_t[4]){ HD_RNG_CLUSTER_PROFILE, kind, i, what },
		hd_philox_key(e->set.seed, HD_RNG_CLUSTER));

	return ((double)x.word[0] + 0.5) * 0x1p-32;
}

/* Rule 1: what kind a does beside b, over what it does alone. */
static double value(const struct hd_estimator *e, uint32_t a, uint32_t b, uint32_t t)
{
	double alone = hd_rates_alone(e->truth, a, t);

	return alone > 0 ? fmin(1, fmax(0, e->truth->pair[2 * cell(e, a, b, t)] / alone)) : 0;
}

/* ---- references ---- */

struct ticket { double draw; uint32_t kind; };

static int by_draw(const void *a, const void *b)
{
	const struct ticket *x = a, *y = b;

	if (x->draw < y->draw || x->draw > y->draw)
		return x->draw < y->draw ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

static enum hd_err choose_references(struct hd_estimator *e, uint32_t scale, struct hd_diag *diag)
{
	const struct hd_rates *r = e->truth;
	struct ticket *ticket = hd_arena_take(&e->arena, r->nkinds, sizeof *ticket);
	uint32_t n = 0;

	if (!ticket)
		return hd_fail(diag, HD_E_NOMEM, "no memory to estimate %u kinds", r->nkinds);
	for (uint32_t k = 0; k < r->nkinds; k++)
		if (r->kind[k].scale == scale)
			ticket[n++] = (struct ticket){ draw(e, DRAW_REFERENCE, k, 0), k };
	qsort(ticket, n, sizeof *ticket, by_draw);
	for (uint32_t i = 0; i < n && (!e->set.references || i < e->set.references); i++)
		e->is_reference[ticket[i].kind] = true;
	return HD_OK;
}

/* ---- one scale ---- */

struct reference_group {
	uint32_t nrefs, *ref;
	/* rows: the references, and last the kind that is looked at */
	double *x, *u, *v;
	bool *known;
	uint32_t rows, cols;
};

static enum hd_err open_group(struct hd_estimator *e, uint32_t scale, struct reference_group *g,
	struct hd_diag *diag)
{
	const struct hd_rates *r = e->truth;

	*g = (struct reference_group){ .ref = hd_arena_take(&e->arena, r->nkinds, sizeof *g->ref) };
	for (uint32_t k = 0; g->ref && k < r->nkinds; k++)
		if (r->kind[k].scale == scale && e->is_reference[k])
			g->ref[g->nrefs++] = k;
	g->rows = g->nrefs + 1;
	g->cols = g->nrefs * r->ntypes;
	g->x = hd_arena_take(&e->arena, (size_t)g->rows * g->cols, sizeof *g->x);
	g->known = hd_arena_take(&e->arena, (size_t)g->rows * g->cols, sizeof *g->known);
	g->u = hd_arena_take(&e->arena, (size_t)g->rows * HD_COMPLETE_RANK, sizeof *g->u);
	g->v = hd_arena_take(&e->arena, (size_t)g->cols * HD_COMPLETE_RANK, sizeof *g->v);
	if (!g->ref || !g->x || !g->known || !g->u || !g->v)
		return hd_fail(diag, HD_E_NOMEM, "no memory to estimate %u kinds", r->nkinds);
	return HD_OK;
}

/* Rule 2. Profiling a beside b tells of both. */
static void measure(struct hd_estimator *e, const struct reference_group *g, uint32_t kind)
{
	for (uint32_t t = 0; t < e->truth->ntypes; t++) {
		uint32_t least = (uint32_t)(draw(e, DRAW_LEAST, kind, t) * g->nrefs);
		for (uint32_t i = 0; i < g->nrefs; i++)
			e->measured[cell(e, kind, g->ref[i], t)] = e->is_reference[kind] || i == least
				|| draw(e, DRAW_CELL, kind, t * g->nrefs + i) < e->set.q;
	}
}

/* The matrix: references are known, of the kind what is measured. A reference is looked at as any other
 * kind would be. */
static void fill(const struct hd_estimator *e, struct reference_group *g, uint32_t kind)
{
	for (uint32_t i = 0; i < g->rows; i++) {
		uint32_t k = i < g->nrefs ? g->ref[i] : kind;
		for (uint32_t c = 0; c < g->cols; c++) {
			uint32_t t = c / g->nrefs, beside = g->ref[c % g->nrefs];
			size_t at = (size_t)i * g->cols + c;
			g->known[at] = e->measured[cell(e, k, beside, t)];
			g->x[at] = g->known[at] ? value(e, k, beside, t) : 0;
		}
	}
	for (uint32_t i = 0; i < g->rows * HD_COMPLETE_RANK; i++)
		g->u[i] = draw(e, DRAW_START, 0, i);
	for (uint32_t i = 0; i < g->cols * HD_COMPLETE_RANK; i++)
		g->v[i] = draw(e, DRAW_START, 1, i);
}

/* A measurement says two things: how the kind fares beside a reference, and how that one fares beside the
 * kind. */
static double distance(const struct hd_estimator *e, const struct reference_group *g, uint32_t row,
	uint32_t kind)
{
	const double *x = g->x + (size_t)row * g->cols, *own = g->x + (size_t)g->nrefs * g->cols;
	const bool *known = g->known + (size_t)g->nrefs * g->cols;
	double sum = 0;

	for (uint32_t c = 0; c < g->cols; c++)
		if (known[c]) {
			uint32_t t = c / g->nrefs, beside = g->ref[c % g->nrefs];
			double back = value(e, beside, g->ref[row], t) - value(e, beside, kind, t);
			sum += (x[c] - own[c]) * (x[c] - own[c]) + back * back;
		}
	return sum;
}

/* Of the completed row to a reference's; a row of zeros has the angle of the mean of all columns. */
static double cosine(const struct reference_group *g, uint32_t row)
{
	const double *x = g->x + (size_t)row * g->cols, *own = g->x + (size_t)g->nrefs * g->cols;
	double xx = 0, yy = 0, xy = 0, norm = 0;

	for (uint32_t c = 0; c < g->cols; c++)
		norm += own[c] * own[c];
	for (uint32_t c = 0; c < g->cols; c++) {
		double y = own[c];
		if (!(norm > 0)) {
			y = 0;
			for (uint32_t i = 0; i < g->nrefs; i++)
				y += g->x[(size_t)i * g->cols + c] / g->nrefs;
		}
		xx += x[c] * x[c];
		yy += y * y;
		xy += x[c] * y;
	}
	return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

static enum hd_err match(struct hd_estimator *e, struct reference_group *g, uint32_t kind,
	struct hd_diag *diag)
{
	double nearest = INFINITY, best = -INFINITY;
	uint32_t ties = 0, first = 0;
	struct hd_arena scratch;
	enum hd_err err;

	fill(e, g, kind);
	for (uint32_t i = 0; i < g->nrefs; i++) {
		double d = e->set.published ? 0 : distance(e, g, i, kind);
		if (d < nearest) {
			nearest = d;
			ties = 0;
			first = i;
		}
		ties += !(d > nearest);
	}
	e->near[kind] = g->ref[first];
	if (ties < 2)
		return HD_OK;
	hd_arena_init(&scratch, ARENA_BYTES);
	err = hd_complete(g->x, g->known, g->rows, g->cols, HD_COMPLETE_RANK, MU, g->u, g->v, &scratch, diag);
	hd_arena_finish(&scratch);
	for (uint32_t i = 0; i < g->nrefs && !err; i++) {
		double c = cosine(g, i);
		if (!e->set.published && distance(e, g, i, kind) > nearest)
			continue;
		if (c > best) {
			best = c;
			e->near[kind] = g->ref[i];
		}
	}
	return err;
}

static enum hd_err look_at_scale(struct hd_estimator *e, uint32_t scale, struct hd_diag *diag)
{
	struct reference_group g;
	enum hd_err err = choose_references(e, scale, diag);

	if (!err)
		err = open_group(e, scale, &g, diag);
	for (uint32_t k = 0; k < e->truth->nkinds && !err; k++)
		if (e->truth->kind[k].scale == scale)
			measure(e, &g, k);
	for (uint32_t k = 0; k < e->truth->nkinds && !err; k++) {
		if (e->truth->kind[k].scale != scale)
			continue;
		if (e->is_reference[k])
			e->near[k] = k;
		else
			err = match(e, &g, k, diag);
	}
	return err;
}

/* ---- the table ---- */

static void know(struct hd_estimator *e, uint32_t a, uint32_t b, uint32_t t)
{
	e->known[cell(e, a, b, t)] = e->known[cell(e, b, a, t)] = true;
	memcpy(&e->rate[2 * cell(e, a, b, t)], &e->truth->pair[2 * cell(e, a, b, t)], 2 * sizeof(double));
	memcpy(&e->rate[2 * cell(e, b, a, t)], &e->truth->pair[2 * cell(e, b, a, t)], 2 * sizeof(double));
}

/* Rule 4. */
static bool fits(const struct hd_estimator *e, uint32_t a, uint32_t b, uint32_t t)
{
	const double *both = &e->truth->pair[2 * cell(e, a, b, t)];

	return both[0] > 0 && both[1] > 0;
}

static void fill_table(struct hd_estimator *e)
{
	const struct hd_rates *r = e->truth;

	for (uint32_t a = 0; a < r->nkinds; a++)
		for (uint32_t b = 0; b < r->nkinds; b++)
			for (uint32_t t = 0; t < r->ntypes && r->kind[a].scale == r->kind[b].scale; t++) {
				double *rate = &e->rate[2 * cell(e, a, b, t)];
				rate[0] = e->caution * value(e, e->near[a], e->near[b], t) * hd_rates_alone(r,
					a, t);
				rate[1] = e->caution * value(e, e->near[b], e->near[a], t) * hd_rates_alone(r,
					b, t);
				if (!fits(e, a, b, t) || !(rate[0] > 0) || !(rate[1] > 0))
					rate[0] = rate[1] = 0;
			}
	for (uint32_t a = 0; a < r->nkinds; a++)
		for (uint32_t b = 0; b < r->nkinds; b++)
			for (uint32_t t = 0; t < r->ntypes; t++)
				if (e->measured[cell(e, a, b, t)])
					know(e, a, b, t);
}

enum hd_err hd_estimator_create(struct hd_estimator **estimator, const struct hd_estimate_setting *set,
	const struct hd_rates *truth, struct hd_diag *diag)
{
	struct hd_estimator *e;
	size_t n = truth->nkinds, cells = n * n * truth->ntypes;
	enum hd_err err = HD_OK;

	if (!(set->q > 0 && set->q <= 1))
		return hd_fail(diag, HD_E_INVAL,
			"estimate: q is %g: the part of the cells that is measured, above 0, at most 1",
			set->q);
	if (!truth->pair)
		return hd_fail(diag, HD_E_INVAL,
			"estimate: the rates have no pairs, so there is nothing to estimate");
	if (!(e = hd_alloc(sizeof *e)))
		return hd_fail(diag, HD_E_NOMEM, "no memory for an estimator");
	*e = (struct hd_estimator){ .set = *set, .truth = truth, .caution = set->published ? 1 : CAUTION };
	hd_arena_init(&e->arena, ARENA_BYTES);
	e->rate = hd_arena_take(&e->arena, 2 * cells + 1, sizeof *e->rate);
	bool **flags[] = { &e->known, &e->measured, &e->ran };
	for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
		if (!(*flags[k] = hd_arena_take(&e->arena, cells + 1, sizeof **flags[k])))
			err = HD_E_NOMEM;
	e->came = hd_arena_take(&e->arena, n + 1, sizeof *e->came);
	e->is_reference = hd_arena_take(&e->arena, n + 1, sizeof *e->is_reference);
	e->near = hd_arena_take(&e->arena, n + 1, sizeof *e->near);
	if (err || !e->rate || !e->came || !e->is_reference || !e->near)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for the pairs of %zu kinds", n);
	for (uint32_t k = 0; k < n && !err; k++) {
		bool first = true;
		for (uint32_t i = 0; i < k; i++)
			first &= truth->kind[i].scale != truth->kind[k].scale;
		if (first)
			err = look_at_scale(e, truth->kind[k].scale, diag);
	}
	if (err) {
		hd_estimator_destroy(e);
		return err;
	}
	fill_table(e);
	e->table = (struct hd_pair_table){ truth->nkinds, e->rate };
	*estimator = e;
	return HD_OK;
}

void hd_estimator_destroy(struct hd_estimator *e)
{
	if (!e)
		return;
	hd_arena_finish(&e->arena);
	hd_free(e);
}

const struct hd_pair_table *hd_estimator_table(const struct hd_estimator *e) { return &e->table; }
uint32_t hd_estimator_reference(const struct hd_estimator *e, uint32_t kind) { return e->near[kind]; }
void hd_estimator_came(struct hd_estimator *e, uint32_t kind) { e->came[kind] = true; }

void hd_estimator_ran(struct hd_estimator *e, uint32_t a, uint32_t b, uint32_t type)
{
	if (!e->known[cell(e, a, b, type)])
		e->ran[cell(e, a, b, type)] = e->ran[cell(e, b, a, type)] = true;
	know(e, a, b, type);
}

void hd_estimator_account(const struct hd_estimator *e, struct hd_estimate_account *account)
{
	const struct hd_rates *r = e->truth;
	struct hd_estimate_account a = { 0 };
	uint64_t n = 0;

	for (uint32_t x = 0; x < r->nkinds; x++)
		for (uint32_t y = 0; y < r->nkinds; y++)
			for (uint32_t t = 0; t < r->ntypes && e->came[x] && e->came[y] &&
				r->kind[x].scale == r->kind[y].scale; t++) {
				const double *have = &e->rate[2 * cell(e, x, y, t)],
					*want = &r->pair[2 * cell(e, x, y, t)];
				double guess = e->known[cell(e, x, y, t)] ? 1 : 1 / e->caution;
				double alone[2] = { hd_rates_alone(r, x, t), hd_rates_alone(r, y, t) },
					sum = 0, off = 0;
				a.pairs++;
				a.ran += e->ran[cell(e, x, y, t)];
				a.measured += e->known[cell(e, x, y, t)] && !e->ran[cell(e, x, y, t)];
				for (int m = 0; m < 2; m++) {
					sum += alone[m] > 0 ? want[m] / alone[m] : 0;
					off += alone[m] > 0 ? (guess * have[m] - want[m]) / alone[m] : 0;
				}
				if (!(sum > 0))
					continue;
				a.error += fabs(off) / sum;
				n++;
			}
	a.error /= n ? (double)n : 1;
	*account = a;
}
