#include <math.h>

#include "scheduler/dispatch/int.h"

/* Steps per second: asked for, guessed, measured. */

#define CONFIRMS 0.1                              /* no news: less would not make new shares either */

/* Steps/s on `scale` devices of speed 1. */
static double guess(const struct hd_dispatch *d, const struct hd_dispatch_job *row)
{
	double fastest = 0;

	for (uint32_t t = 0; t < d->set.ntypes; t++)
		if (row->rate[t].steps_s != 0)
			fastest = fmax(fastest, d->type[t].speed);
	return row->terms.expect_s > 0 && row->steps && fastest > 0 ?
		(double)row->steps / row->terms.expect_s / fastest : row->scale;
}

void dispatch_guess(const struct hd_dispatch *d, struct hd_dispatch_job *row)
{
	double plain = guess(d, row);

	for (uint32_t t = 0; t < d->set.ntypes; t++) {
		struct hd_dispatch_rate *r = &row->rate[t];
		bool asked = r->steps_s >= 0;
		*r = (struct hd_dispatch_rate){ asked ? r->steps_s : d->type[t].speed * plain, -1,
			asked ? HD_RATE_ASKED : HD_RATE_GUESSED };
	}
}

void dispatch_steps_s(const struct hd_dispatch *d, const struct hd_dispatch_job *row, double *rate)
{
	for (uint32_t t = 0; t < d->set.ntypes; t++)
		rate[t] = row->rate[t].steps_s;
}

/* Types without a measurement are as much faster or slower as their devices are said to be. */
static void correct_guesses(const struct hd_dispatch *d, struct hd_dispatch_job *row, uint32_t type)
{
	for (uint32_t t = 0; t < d->set.ntypes; t++)
		if (row->rate[t].from == HD_RATE_GUESSED)
			row->rate[t].steps_s = row->rate[type].steps_s *
				d->type[t].speed / d->type[type].speed;
}

static void take(const struct hd_dispatch *d, struct hd_dispatch_job *row, uint32_t type, double measured)
{
	struct hd_dispatch_rate *r = &row->rate[type];

	if (r->from == HD_RATE_GUESSED && measured > 0) {
		*r = (struct hd_dispatch_rate){ measured, -1, HD_RATE_MEASURED };
		correct_guesses(d, row, type);
		return;
	}
	if (r->from != HD_RATE_GUESSED && fabs(measured - r->steps_s) <= CONFIRMS * r->steps_s) {
		*r = (struct hd_dispatch_rate){ r->steps_s, -1, HD_RATE_MEASURED };
		return;
	}
	bool odd = !(measured > 0) || measured > 10 * r->steps_s;
	bool agrees = r->outlier >= 0 && measured <= 2 * r->outlier && measured >= r->outlier / 2;
	if (odd && !agrees) {
		r->outlier = measured;
		return;
	}
	*r = (struct hd_dispatch_rate){ odd ? measured : 0.5 * r->steps_s + 0.5 * measured, -1,
		HD_RATE_MEASURED };
	/* it does run there, however slowly: 0 would say that it cannot */
	if (!(r->steps_s > 0))
		*r = (struct hd_dispatch_rate){ 1e-6, -1, HD_RATE_MEASURED };
}

static bool on_one_type(const struct hd_dispatch *d, const struct live *j, uint32_t *type)
{
	if (j->lease.n != j->row.scale || !j->lease.n)
		return false;
	*type = d->device[j->lease.device[0]].type;
	return d->device[j->lease.device[j->lease.n - 1]].type == *type;
}

void dispatch_measure(struct hd_dispatch *d, struct live *j)
{
	bool runs = j->lease.state == HD_LEASE_HELD && j->n_seen >= j->lease.n && !j->lease.over;
	uint64_t steps = j->row.done > j->from_step ? j->row.done - j->from_step : 0;
	double took_s = j->seen_s - j->from_s, was, rate[HD_DISPATCH_TYPES];
	uint32_t type;

	if (j->measuring && took_s > 0 && (steps >= HD_DISPATCH_STEPS ||
		(!steps && took_s >= d->set.round_s)) && on_one_type(d, j, &type) &&
		j->row.rate[type].steps_s > 0) {
		was = j->row.rate[type].steps_s;
		j->rate_now = (double)steps / took_s;
		take(d, &j->row, type, j->rate_now);
		j->row_dirty = true;
		dispatch_steps_s(d, &j->row, rate);
		hd_rounds_rate(dispatch_part(d, j)->rounds, j->row.id, rate);
		if (fabs(j->row.rate[type].steps_s - was) > 0.1 * was)
			hd_rounds_stale(dispatch_part(d, j)->rounds);
		j->measuring = false;
	} else if (j->measuring && runs) {
		return;                           /* too few steps: the stretch goes on */
	}
	j->measuring = runs;
	j->from_s = j->seen_s;
	j->from_step = j->row.done;
}
