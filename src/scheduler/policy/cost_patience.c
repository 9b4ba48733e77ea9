#include "scheduler/policy/cost_patience.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

struct aged { uint64_t id; double age_s; };

/* Seconds since the last call, and all ages for the next. */
static enum hd_err passed(struct hd_patience *p, const struct hd_sched_state *s, double *seconds)
{
	*seconds = 0;
	p->ages.size = sizeof(struct aged);
	hd_ledger_keep(&p->ages, s);
	for (uint32_t i = 0; i < s->njobs; i++) {
		struct aged *a = hd_ledger_find(&p->ages, s->jobs[i].id);
		if (a)
			*seconds = fmax(*seconds, s->jobs[i].age_s - a->age_s);
		else if (!(a = hd_ledger_add(&p->ages, s->jobs[i].id)))
			return HD_E_NOMEM;
		a->age_s = s->jobs[i].age_s;
	}
	return HD_OK;
}

static void thin(struct hd_patience *p)
{
	p->n = HD_PATIENCE_SEEN / 2;
	for (uint32_t k = 0; k < p->n; k++) {
		size_t longer = 2 * (size_t)k + (p->span_s[2 * k + 1] > p->span_s[2 * k]);
		memmove(&p->usd_h[(size_t)k * p->ntypes], &p->usd_h[longer * p->ntypes],
			p->ntypes * sizeof *p->usd_h);
		p->span_s[k] = p->span_s[2 * k] + p->span_s[2 * k + 1];
	}
}

static enum hd_err begin(struct hd_patience *p, uint32_t ntypes)
{
	hd_patience_finish(p);
	p->span_s = hd_alloc(HD_PATIENCE_SEEN * sizeof *p->span_s);
	p->usd_h = hd_alloc((size_t)HD_PATIENCE_SEEN * ntypes * sizeof *p->usd_h);
	p->ntypes = ntypes;
	return p->span_s && p->usd_h ? HD_OK : HD_E_NOMEM;
}

enum hd_err hd_patience_see(struct hd_patience *p, const struct hd_sched_state *s, struct hd_diag *diag)
{
	double seconds;
	enum hd_err err = p->ntypes == s->ntypes && p->span_s ? HD_OK : begin(p, s->ntypes);

	if (!err)
		err = passed(p, s, &seconds);
	if (err)
		return hd_fail(diag, err, "no memory for the prices that were");
	if (p->n)
		p->span_s[p->n - 1] += seconds;
	const double *last = p->n ? &p->usd_h[(size_t)(p->n - 1) * p->ntypes] : NULL;
	bool same = last;
	for (uint32_t t = 0; same && t < s->ntypes; t++)
		same = !(last[t] < s->types[t].price_usd_h || last[t] > s->types[t].price_usd_h);
	if (same)
		return HD_OK;
	if (p->n == HD_PATIENCE_SEEN)
		thin(p);
	for (uint32_t t = 0; t < s->ntypes; t++)
		p->usd_h[(size_t)p->n * p->ntypes + t] = s->types[t].price_usd_h;
	p->span_s[p->n++] = 0;
	return HD_OK;
}

/* Steps/s on average over the past, of a job to which a step is worth v: it takes the type on which it
 * gains most, if it gains. */
static double made(const struct hd_patience *p, const double *rate, uint32_t scale, double v)
{
	double steps = 0, all_s = 0;

	for (uint32_t k = 0; k < p->n; k++) {
		double gain = 0, with = 0, span = p->n == 1 ? 1 : p->span_s[k];
		for (uint32_t t = 0; t < p->ntypes; t++) {
			double g = v * rate[t] - p->usd_h[(size_t)k * p->ntypes + t] / 3600 * scale;
			if (rate[t] > 0 && g > gain) {
				gain = g;
				with = rate[t];
			}
		}
		steps += span * with;
		all_s += span;
	}
	return all_s > 0 ? steps / all_s : 0;
}

double hd_patience_price(const struct hd_patience *p, const double *rate, uint32_t scale, double need)
{
	double low = 0, high = 0;

	for (uint32_t k = 0; k < p->n; k++)
		for (uint32_t t = 0; t < p->ntypes; t++)
			if (rate[t] > 0)
				high = fmax(high, p->usd_h[(size_t)k * p->ntypes + t] / 3600 *
					scale / rate[t]);
	high *= 1 + 1e-6;
	/* dearer types are faster: worth more than the dearest step */
	for (int k = 0; k < 60 && made(p, rate, scale, high) < need; k++)
		high *= 2;
	if (made(p, rate, scale, high) < need)
		return INFINITY;
	for (int k = 0; k < 40; k++) {
		double v = (low + high) / 2;
		*(made(p, rate, scale, v) < need ? &low : &high) = v;
	}
	return high;
}

void hd_patience_finish(struct hd_patience *p)
{
	hd_free(p->span_s);
	hd_free(p->usd_h);
	hd_ledger_finish(&p->ages);
	*p = (struct hd_patience){ 0 };
}
