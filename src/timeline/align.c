#include "timeline/align_int.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What clipping keeps: a half-plane adds one corner at most, and many stay only while they are far apart. */
struct polygon { struct hd_tl_corner at[HD_TL_CORNERS]; uint32_t n; };

struct tl_fit {
	struct hd_arena *arena;
	const struct hd_tl_probe *probe; uint32_t n;
	struct hd_tl_clock *clock;
	uint32_t cap;
	bool *joined;                     /* [n] some window has this and the next */
	uint32_t past;                    /* windows that end long before the probe at hand */
};

static double upper_of(const struct tl_fit *f, uint32_t i)
{
	return (double)(f->probe[i].t2 - f->probe[i].t1 - f->clock->offset) + HD_TL_RESOLUTION_NS;
}

static double lower_of(const struct tl_fit *f, uint32_t i)
{
	return (double)(f->probe[i].t3 - f->probe[i].t4 - f->clock->offset) - HD_TL_RESOLUTION_NS;
}

/* Keeps what has sign * (a + b x - bound) <= 0 (Sutherland and Hodgman). A polygon that is full keeps a
 * corner outside: it may be larger than what is true, never smaller. */
static void clip(struct polygon *p, double x, double bound, double sign)
{
	struct polygon out = { .n = 0 };

	if (p->n == HD_TL_CORNERS)
		return;
	for (uint32_t i = 0; i < p->n; i++) {
		struct hd_tl_corner u = p->at[i], v = p->at[(i + 1) % p->n];
		double du = sign * (u.a + u.b * x - bound), dv = sign * (v.a + v.b * x - bound);
		if (du <= 0)
			out.at[out.n++] = u;
		if ((du < 0 && dv > 0) || (du > 0 && dv < 0)) {
			double part = du / (du - dv);
			out.at[out.n++] = (struct hd_tl_corner){ u.a + part * (v.a - u.a),
				u.b + part * (v.b - u.b) };
		}
	}
	*p = out;
}

/* What all probes [first, end) allow around `centre`. */
static void cut(const struct tl_fit *f, uint32_t first, uint32_t end, int64_t centre, struct polygon *p)
{
	double top = upper_of(f, first), bottom = lower_of(f, first), far = 0;

	for (uint32_t i = first; i < end; i++) {
		top = fmin(top, upper_of(f, i));
		bottom = fmax(bottom, lower_of(f, i));
		far = fmax(far, fmax(fabs((double)(f->probe[i].t1 - centre)),
			fabs((double)(f->probe[i].t4 - centre))));
	}
	top += HD_TL_DRIFT_MAX * far;
	bottom -= HD_TL_DRIFT_MAX * far;
	*p = (struct polygon){ .at = { { bottom, -HD_TL_DRIFT_MAX }, { top, -HD_TL_DRIFT_MAX },
		{ top, HD_TL_DRIFT_MAX }, { bottom, HD_TL_DRIFT_MAX } }, .n = bottom <= top ? 4 : 0 };
	for (uint32_t i = first; i < end; i++) {
		clip(p, (double)(f->probe[i].t1 - centre), upper_of(f, i), 1);
		clip(p, (double)(f->probe[i].t4 - centre), lower_of(f, i), -1);
	}
}

static void span_at(const struct hd_tl_window *w, int64_t t, double *lo, double *hi)
{
	*lo = INFINITY;
	*hi = -INFINITY;
	for (uint32_t i = 0; i < w->ncorners; i++) {
		double v = w->corner[i].a + w->corner[i].b * (double)(t - w->centre);
		*lo = fmin(*lo, v);
		*hi = fmax(*hi, v);
	}
}

static enum hd_err keep(struct tl_fit *f, uint32_t first, uint32_t end, int64_t from, int64_t to,
	const struct polygon *p, struct hd_diag *diag)
{
	struct hd_tl_clock *c = f->clock;
	struct hd_tl_corner *corner = hd_arena_take(f->arena, p->n, sizeof *corner);

	if (c->nwindows == f->cap) {
		struct hd_tl_window *more = hd_arena_take(f->arena, f->cap ? 2ull * f->cap : 16,
			sizeof *more);
		if (!more)
			return hd_fail(diag, HD_E_NOMEM, "no memory to align clocks");
		if (f->cap)
			memcpy(more, c->window, f->cap * sizeof *more);
		c->window = more;
		f->cap = f->cap ? 2 * f->cap : 16;
	}
	if (!corner)
		return hd_fail(diag, HD_E_NOMEM, "no memory to align clocks");
	memcpy(corner, p->at, p->n * sizeof *corner);
	c->window[c->nwindows++] = (struct hd_tl_window){ .from = from, .to = to,
		.centre = from + (to - from) / 2, .first = first, .end = end, .ncorners = p->n,
		.corner = corner };
	for (uint32_t i = first; i + 1 < end; i++)
		f->joined[i] = true;
	return HD_OK;
}

/* One window, or its halves. A single probe always fits. */
static enum hd_err window(struct tl_fit *f, uint32_t first, uint32_t end, int64_t from, int64_t to,
	struct hd_diag *diag)
{
	struct polygon p;

	if (first >= end)
		return HD_OK;
	cut(f, first, end, from + (to - from) / 2, &p);
	if (p.n)
		return keep(f, first, end, from, to, &p, diag);
	int64_t half = from + (to - from) / 2;
	uint32_t middle = first;
	while (middle < end && f->probe[middle].t1 < half)
		middle++;
	if (end - first == 2 || middle == first || middle == end) {
		/* halves of the probes, where those of the time do not part them */
		middle = middle == first || middle == end ? first + (end - first) / 2 : middle;
		half = f->probe[middle].t1;
	}
	if (end - first == 1)
		return HD_OK;
	enum hd_err err = window(f, first, middle, from, half, diag);
	return err ? err : window(f, middle, end, half, to, diag);
}

/* What the windows of probe i allow at t; where they contradict one another, the nearest centre's. */
static void allow(struct tl_fit *f, uint32_t i, int64_t t, double *lo, double *hi)
{
	const struct hd_tl_window *near = NULL;

	*lo = -INFINITY;
	*hi = INFINITY;
	while (f->past < f->clock->nwindows &&
		f->clock->window[f->past].to + HD_TL_WINDOW_NS < f->probe[i].t1)
		f->past++;
	for (uint32_t k = f->past; k < f->clock->nwindows; k++) {
		const struct hd_tl_window *w = &f->clock->window[k];
		double l, h;
		if (w->from > f->probe[i].t1 + HD_TL_WINDOW_NS)
			break;
		if (i < w->first || i >= w->end)
			continue;
		span_at(w, t, &l, &h);
		*lo = fmax(*lo, l);
		*hi = fmin(*hi, h);
		if (!near || llabs(w->centre - t) < llabs(near->centre - t))
			near = w;
	}
	if (near && *lo > *hi)
		span_at(near, t, lo, hi);
	if (!near) {
		*lo = lower_of(f, i) - HD_TL_DRIFT_MAX * fabs((double)(t - f->probe[i].t4));
		*hi = upper_of(f, i) + HD_TL_DRIFT_MAX * fabs((double)(t - f->probe[i].t1));
	}
}

static struct hd_tl_knot knot_of(struct tl_fit *f, uint32_t i, int64_t t, double wider)
{
	struct hd_tl_knot knot = { .t = t };

	allow(f, i, t, &knot.lo, &knot.hi);
	knot.lo -= wider;
	knot.hi += wider;
	knot.estimate = (knot.lo + knot.hi) / 2;
	return knot;
}

static int64_t middle_of(const struct hd_tl_probe *p) { return p->t1 + (p->t4 - p->t1) / 2; }

/* Knots of times before the first probe (side -1) or after the last (1), outermost first. */
static uint32_t beyond(struct tl_fit *f, uint32_t i, int side, int64_t until, struct hd_tl_knot out[2])
{
	int64_t at = middle_of(&f->probe[i]), edge = at + side * HD_TL_WINDOW_NS;
	uint32_t n = 0;

	if (side < 0 ? until >= at : until <= at)
		return 0;
	if (side < 0 ? until < edge : until > edge) {
		out[n] = knot_of(f, i, edge, HD_TL_DRIFT_MAX * fabs((double)(until - edge)));
		out[n++].t = until;
		out[n++] = knot_of(f, i, edge, 0);
	} else
		out[n++] = knot_of(f, i, until, 0);
	return n;
}

static int by_from(const void *a, const void *b)
{
	const struct hd_tl_window *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* Neighbours that halving has parted are a window of their own, unless a clock was set between them. */
static enum hd_err join_pairs(struct tl_fit *f, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i + 1 < f->n && !err; i++) {
		int64_t from = f->probe[i].t1, to = f->probe[i + 1].t4;
		struct polygon p;
		if (f->joined[i])
			continue;
		cut(f, i, i + 2, from + (to - from) / 2, &p);
		if (p.n)
			err = keep(f, i, i + 2, from, to, &p, diag);
	}
	if (!err)
		qsort(f->clock->window, f->clock->nwindows, sizeof *f->clock->window, by_from);
	return err;
}

static void put_knots(struct tl_fit *f, int64_t begin, int64_t end)
{
	struct hd_tl_clock *c = f->clock;
	struct hd_tl_knot last[2];
	uint32_t n = beyond(f, 0, -1, begin, c->knot);

	for (uint32_t i = 0; i < f->n; i++) {
		bool parted = i + 1 < f->n && !f->joined[i];
		if (parted)
			c->step[c->nsteps++] = f->probe[i].t4 + (f->probe[i + 1].t1 - f->probe[i].t4) / 2;
		if (!hd_tl_one_sided(&f->probe[i])) {
			c->knot[n] = knot_of(f, i, middle_of(&f->probe[i]), 0);
			n += !n || c->knot[n].t > c->knot[n - 1].t;
		}
		if (n)
			c->knot[n - 1].loose |= parted;
	}
	for (uint32_t k = beyond(f, f->n - 1, 1, end, last); k-- > 0;)
		if (last[k].t > c->knot[n - 1].t)
			c->knot[n++] = last[k];
	c->nknots = n;
}

enum hd_err hd_tl_fit(struct hd_arena *arena, const struct hd_tl_probe *probe, uint32_t n, int64_t begin,
	int64_t end, struct hd_tl_clock *clock, struct hd_diag *diag)
{
	struct hd_tl_clock got = { .aligned = true, .offset = probe[0].t2 - probe[0].t1 };
	struct tl_fit f = { .arena = arena, .probe = probe, .n = n, .clock = &got };
	uint32_t first = 0;
	enum hd_err err = HD_OK;

	assert(n >= 2 && begin <= end);
	got.knot = hd_arena_take(arena, n + 4ull, sizeof *got.knot);
	got.step = hd_arena_take(arena, n, sizeof *got.step);
	f.joined = hd_arena_take(arena, n, sizeof *f.joined);
	if (!got.knot || !got.step || !f.joined)
		return hd_fail(diag, HD_E_NOMEM, "no memory to align clocks");
	for (int64_t from = probe[0].t1; first < n && !err;) {
		uint32_t last = first;
		while (last < n && probe[last].t1 < from + HD_TL_WINDOW_NS)
			last++;
		err = window(&f, first, last, from, from + HD_TL_WINDOW_NS, diag);
		if (last == n)
			break;
		from += HD_TL_WINDOW_NS / 2;
		/* a gap without probes is left out at once */
		if (probe[last].t1 - from > HD_TL_WINDOW_NS && last == first)
			from = probe[last].t1;
		while (first < n && probe[first].t1 < from)
			first++;
	}
	if (!err)
		err = join_pairs(&f, diag);
	if (err)
		return err;
	put_knots(&f, begin, end);
	*clock = got;
	return HD_OK;
}

int64_t hd_tl_reference(const struct hd_tl_clock *clock, int64_t t, int64_t *error_ns)
{
	const struct hd_tl_knot *k = clock->knot;
	uint32_t low = 0, high = clock->nknots;
	double estimate, lo, hi;

	if (!clock->nknots) {
		if (error_ns)
			*error_ns = clock->error_ns;
		return t + clock->offset;
	}
	while (high - low > 1) {                          /* the last knot at or before t, else the first */
		uint32_t at = low + (high - low) / 2;
		if (k[at].t <= t)
			low = at;
		else
			high = at;
	}
	if (low + 1 < clock->nknots && t >= k[low].t) {
		double gap = (double)(k[low + 1].t - k[low].t), part = (double)(t - k[low].t) / gap;
		estimate = k[low].estimate + part * (k[low + 1].estimate - k[low].estimate);
		lo = k[low].lo + part * (k[low + 1].lo - k[low].lo);
		hi = k[low].hi + part * (k[low + 1].hi - k[low].hi);
		if (k[low].loose && t > k[low].t) {
			lo = fmin(k[low].lo, k[low + 1].lo) - HD_TL_DRIFT_MAX * gap;
			hi = fmax(k[low].hi, k[low + 1].hi) + HD_TL_DRIFT_MAX * gap;
		}
	} else {
		double wider = HD_TL_DRIFT_MAX * fabs((double)(t - k[low].t));
		estimate = k[low].estimate;
		lo = k[low].lo - wider;
		hi = k[low].hi + wider;
	}
	if (error_ns)
		*error_ns = (int64_t)ceil(fmax(hi - estimate, estimate - lo)) + HD_TL_RESOLUTION_NS;
	return t + clock->offset + llrint(estimate);
}
