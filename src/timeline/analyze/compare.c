#include "timeline/analyze/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest k with P(Binomial(n, 1/2) < k) <= 2.5 %: then x[k] <= median <= x[n + 1 - k] (1-based) with 95
 * %. */
bool hd_tl_median_ranks(uint64_t n, uint64_t *low, uint64_t *high)
{
	uint64_t k = 0;

	if (n < HD_TL_MEDIAN_LEAST)
		return false;
	if (n > 1000) {
		k = (uint64_t)(((double)n - 1.96 * sqrt((double)n)) / 2);
	} else {
		double term = pow(0.5, (double)n), below = term;
		while (below <= 0.025) {
			k++;
			term *= (double)(n - k + 1) / (double)k;
			below += term;
		}
	}
	*low = k - 1;
	*high = n - k;
	return true;
}

struct sample { const char *name; int64_t ns; uint8_t kind; };

static int by_name(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	const int order = strcmp(x->name, y->name);

	if (order)
		return order;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static enum hd_err samples_of(const struct hd_timeline *tl, struct hd_arena *arena, struct sample **sample,
	size_t *n, struct hd_diag *diag)
{
	struct sample *s = hd_arena_take(arena, (size_t)tl->nevents + 1, sizeof *s);

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory to compare %llu events",
			(unsigned long long)tl->nevents);
	*n = 0;
	for (uint64_t i = 0; i < tl->nevents; i++) {
		const struct hd_tl_event *e = &tl->event[i];
		const bool moves = e->kind == HD_EVENT_SEND || e->kind == HD_EVENT_RECV;
		if (e->flags & HD_EVENT_FLAG_OPEN || e->name >= tl->nnames ||
			!(moves || e->kind == HD_EVENT_OP || e->kind == HD_EVENT_READ))
			continue;
		s[(*n)++] = (struct sample){ tl->name[e->name], e->t1 - (moves ? e->first : e->t0), e->kind };
	}
	if (*n)
		qsort(s, *n, sizeof *s, by_name);
	*sample = s;
	return HD_OK;
}

static size_t alike(const struct sample *s, size_t i, size_t n)
{
	size_t end = i + 1;

	while (end < n && s[end].kind == s[i].kind && strcmp(s[end].name, s[i].name) == 0)
		end++;
	return end;
}

static bool median_of(const struct sample *s, uint64_t n, struct hd_tl_median *m)
{
	uint64_t low, high;

	if (!hd_tl_median_ranks(n, &low, &high))
		return false;
	*m = (struct hd_tl_median){ n, n % 2 ? s[n / 2].ns : s[n / 2 - 1].ns + (s[n / 2].ns - s[n / 2 - 1].ns)
		/ 2,
		s[low].ns, s[high].ns };
	return true;
}

static double weight(const struct hd_tl_change *c)
{
	return (double)c->after.n * fabs((double)c->after.ns - (double)c->before.ns);
}

static int by_weight(const void *a, const void *b)
{
	const struct hd_tl_change *x = a, *y = b;

	if (weight(x) != weight(y))
		return weight(x) > weight(y) ? -1 : 1;
	const int order = strcmp(x->name, y->name);
	return order ? order : (x->kind > y->kind) - (x->kind < y->kind);
}

static bool changed(const struct hd_tl_median *a, const struct hd_tl_median *b)
{
	const double ratio = fabs((double)b->ns - (double)a->ns) * 100;

	return (a->high < b->low || b->high < a->low) && ratio > HD_TL_CHANGE_PERCENT * (double)a->ns;
}

enum hd_err hd_tl_compare(const struct hd_timeline *before, const struct hd_timeline *after,
	struct hd_arena *arena, struct hd_tl_change **change, size_t *nchanges, struct hd_diag *diag)
{
	struct sample *a, *b;
	size_t na, nb, n = 0, j = 0;
	enum hd_err err = samples_of(before, arena, &a, &na, diag);

	if (!err)
		err = samples_of(after, arena, &b, &nb, diag);
	if (err)
		return err;
	struct hd_tl_change *c = hd_arena_take(arena, (na < nb ? na : nb) + 1, sizeof *c);
	if (!c)
		return hd_fail(diag, HD_E_NOMEM, "no memory to compare two recordings");
	for (size_t i = 0, end; i < na; i = end) {
		struct hd_tl_median x, y;
		end = alike(a, i, na);
		while (j < nb && (strcmp(b[j].name, a[i].name) < 0 || (strcmp(b[j].name, a[i].name) == 0 &&
			b[j].kind < a[i].kind)))
			j++;
		if (j == nb || b[j].kind != a[i].kind || strcmp(b[j].name, a[i].name) != 0)
			continue;
		if (median_of(a + i, end - i, &x) && median_of(b + j, alike(b, j, nb) - j, &y) && changed(&x,
			&y))
			c[n++] = (struct hd_tl_change){ a[i].name, a[i].kind, x, y, y.ns > x.ns };
	}
	if (n)
		qsort(c, n, sizeof *c, by_weight);
	*change = c;
	*nchanges = n;
	return HD_OK;
}
