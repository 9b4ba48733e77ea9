#include "timeline/analyze/predicted.h"

#include <math.h>
#include <stdlib.h>

struct guess { uint64_t group; double ratio, measured, off; };

static int by_group(const void *a, const void *b)
{
	const struct guess *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int by_cost(const void *a, const void *b)
{
	const struct hd_tl_predicted *x = a, *y = b;

	if (x->cost_ns != y->cost_ns)
		return x->cost_ns > y->cost_ns ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->size > y->size) - (x->size < y->size);
}

static uint64_t bytes_of(const struct hd_tl_event *e)
{
	return e->kind == HD_EVENT_OP ? hd_work_bytes(e->arg) : e->arg;
}

static uint8_t size_of(uint64_t bytes) { return bytes < 2 ? 0 : (uint8_t)(63 - __builtin_clzll(bytes)); }

static bool sample_of(const struct hd_tl_event *e, struct guess *s)
{
	const bool moves = e->kind == HD_EVENT_SEND || e->kind == HD_EVENT_RECV;
	const int64_t ns = e->t1 - (moves ? e->first : e->t0);

	if (!e->predicted_ns || ns <= 0 || e->flags & HD_EVENT_FLAG_OPEN || !(moves || e->kind == HD_EVENT_OP
		||
		e->kind == HD_EVENT_READ))
		return false;
	*s = (struct guess){ (uint64_t)e->name << 32 | (uint64_t)e->kind << 16 | (uint64_t)e->primitive << 8
		|
		size_of(bytes_of(e)), (double)ns / e->predicted_ns, (double)ns,
		fabs((double)ns - (double)e->predicted_ns) };
	return true;
}

static double median(const double *v, size_t n) { return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2; }

/* Of n samples by ascending ratio; `off` is scratch. */
static struct hd_tl_predicted group_of(const struct guess *s, size_t n, double *off)
{
	struct hd_tl_predicted g = { .name = (uint32_t)(s->group >> 32), .kind = (uint8_t)(s->group >> 16),
		.primitive = (uint8_t)(s->group >> 8), .size = (uint8_t)s->group, .n = n };

	for (size_t i = 0; i < n; i++) {
		off[i] = s[i].off;
		g.error += s[i].off / s[i].measured / (double)n;
	}
	qsort(off, n, sizeof *off, by_value);
	g.ratio = n % 2 ? s[n / 2].ratio : (s[n / 2 - 1].ratio + s[n / 2].ratio) / 2;
	g.p10 = s[(n - 1) / 10].ratio;
	g.p90 = s[n - 1 - (n - 1) / 10].ratio;
	g.cost_ns = (double)n * median(off, n);
	return g;
}

enum hd_err hd_tl_predicted_of(const struct hd_timeline *tl, struct hd_arena *arena,
	struct hd_tl_predicted **group, size_t *ngroups, struct hd_diag *diag)
{
	struct guess *s = hd_arena_take(arena, (size_t)tl->nevents + 1, sizeof *s);
	double *off = hd_arena_take(arena, (size_t)tl->nevents + 1, sizeof *off);
	size_t n = 0, ng = 0;

	if (!s || !off)
		return hd_fail(diag, HD_E_NOMEM, "no memory for predictions of %llu events",
			(unsigned long long)tl->nevents);
	for (uint64_t e = 0; e < tl->nevents; e++)
		n += sample_of(&tl->event[e], &s[n]);
	if (n)
		qsort(s, n, sizeof *s, by_group);
	struct hd_tl_predicted *g = hd_arena_take(arena, n + 1, sizeof *g);
	if (!g)
		return hd_fail(diag, HD_E_NOMEM, "no memory for predictions of %zu events", n);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && s[end].group == s[i].group; end++)
			;
		g[ng++] = group_of(s + i, end - i, off);
	}
	if (ng)
		qsort(g, ng, sizeof *g, by_cost);
	*group = g;
	*ngroups = ng;
	return HD_OK;
}
