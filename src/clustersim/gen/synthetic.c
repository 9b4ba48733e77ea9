/* Marginals of the published analysis of Philly's trace: nine jobs of ten have one device, durations span
 * minutes to weeks (a log-normal with a mean ten times the median), arrivals follow day and week.
 *
 * Arrivals are a Poisson process whose rate is constant within an hour: unit exponentials, one a job, walked
 * along the integral of the rate. So a job more at the end changes none before it. */
#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "clustersim/job_generate.h"

enum { HOURS = 168 };

static struct hd_philox draw(const struct hd_job_synthesis *how, enum hd_rng_cluster what, uint64_t job)
{
	return hd_philox((uint32_t[4]){ what, (uint32_t)job, (uint32_t)(job >> 32), 0 },
		hd_philox_key(how->seed, HD_RNG_CLUSTER));
}

/* (0, 1), 53 bits: never an end of the interval. */
static double unit(const struct hd_philox *x, int k)
{
	return ((double)(x->word[2 * k] >> 6) * 0x1p27 + (double)(x->word[2 * k + 1] >> 5) + 0.5) * 0x1p-53;
}

/* Relative rate of each hour of a week that starts on Monday; the mean is 1. */
static void make_week(const struct hd_job_synthesis *how, double rate[HOURS])
{
	const double pi = 3.14159265358979323846;
	double sum = 0;

	for (int h = 0; h < HOURS; h++) {
		double day = 1 - how->day * 0.5 * (1 + cos(2 * pi * (h % 24 - 4) / 24.0));
		rate[h] = day * (h >= 120 ? 1 - how->week : 1);
		sum += rate[h];
	}
	for (int h = 0; h < HOURS; h++)
		rate[h] *= HOURS / sum;
}

/* in_hour: how much of the hour is over, [0, 1) */
struct clock { double hour, in_hour; const double *rate; double per_hour; };

static double walk(struct clock *c, double amount)
{
	for (;;) {
		double rate = c->rate[(int)fmod(c->hour, HOURS)] * c->per_hour,
			left = rate * (1 - c->in_hour);
		if (amount < left) {
			c->in_hour += amount / rate;
			return (c->hour + c->in_hour) * 3600;
		}
		amount -= left;
		c->hour += 1;
		c->in_hour = 0;
	}
}

static uint32_t scale_of(const struct hd_job_synthesis *how, double u)
{
	double rest = (u - how->single) / (1 - how->single);

	return u < how->single ? 1 : rest < 4 / 7.0 ? 2 : rest < 6 / 7.0 ? 4 : 8;
}

static double reference_rate(const struct hd_rates *rates, uint32_t kind, uint32_t reference)
{
	double best = 0;

	for (uint32_t t = 0; t < rates->ntypes; t++)
		if (reference == HD_RATES_NONE || t == reference)
			best = fmax(best, hd_rates_alone(rates, kind, t));
	return best;
}

/* One of the kinds that have the scale; NONE: there is none. */
static uint32_t kind_of(const struct hd_rates *rates, uint32_t reference, uint32_t scale, uint32_t word)
{
	uint32_t n = 0, k;

	for (k = 0; k < rates->nkinds; k++)
		n += rates->kind[k].scale == scale && reference_rate(rates, k, reference) > 0;
	uint32_t pick = (uint32_t)(((uint64_t)word * n) >> 32);
	for (k = 0; n && k < rates->nkinds; k++)
		if (rates->kind[k].scale == scale && reference_rate(rates, k, reference) > 0 && pick-- == 0)
			return k;
	return HD_RATES_NONE;
}

static enum hd_err complete(struct hd_job_synthesis *how, uint32_t *reference, struct hd_diag *diag)
{
	how->median_s = how->median_s > 0 ? how->median_s : 780;
	how->sigma = how->sigma > 0 ? how->sigma : 2.1;
	how->longest_s = how->longest_s > 0 ? how->longest_s : 30 * 86400.0;
	how->single = how->single > 0 ? how->single : 0.93;
	how->day = how->day > 0 ? how->day : 0.6;
	how->week = how->week > 0 ? how->week : 0.45;
	*reference = how->rates && how->reference ? hd_rates_type(how->rates, how->reference) : HD_RATES_NONE;
	if (how->rates && how->reference && *reference == HD_RATES_NONE)
		return hd_fail(diag, HD_E_INVAL, "the rates have no type \"%.60s\"", how->reference);
	if (!(how->per_hour > 0) || how->per_hour > 1e9 || how->day >= 1 || how->week >= 1 ||
		how->single > 1 || how->sigma > 10 || how->n > HD_JOB_LIST)
		return hd_fail(diag, HD_E_INVAL,
			"%zu jobs at %g per hour, %g of them of one device: 1 to %d jobs, above 0 per hour, "
			"shares below 1", how->n,
			how->per_hour, how->single, HD_JOB_LIST);
	return HD_OK;
}

enum hd_err hd_job_synthesize(struct hd_job_list *list, const struct hd_job_synthesis *asked,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job_synthesis how = *asked;
	uint32_t reference;
	double rate[HOURS];
	enum hd_err err = complete(&how, &reference, diag);
	struct hd_listed_job *jobs = err ? NULL : hd_arena_take(arena, how.n + 1, sizeof *jobs);

	if (!jobs)
		return err ? err : hd_fail(diag, HD_E_NOMEM, "no memory for %zu jobs", how.n);
	make_week(&how, rate);
	struct clock clock = { .rate = rate, .per_hour = how.per_hour };
	for (size_t i = 0; i < how.n; i++) {
		struct hd_philox came = draw(&how, HD_RNG_CLUSTER_ARRIVAL, i),
			wide = draw(&how, HD_RNG_CLUSTER_SCALE, i), took = draw(&how,
			HD_RNG_CLUSTER_DURATION, i);
		float normal[2];
		struct hd_listed_job *job = &jobs[i];
		hd_normal2(took.word[0], took.word[1], normal);
		*job = (struct hd_listed_job){ .kind = "", .command = "", .folder = "", .steps_arg = "",
			.user = "", .name = "", .weight = 1,
			.deadline_s = INFINITY };
		job->arrival_s = floor(walk(&clock, -log(unit(&came, 0))) * 1000) / 1000;
		job->scale = scale_of(&how, unit(&wide, 0));
		job->duration_s = fmax(1, floor(fmin(how.median_s * exp(how.sigma * (double)normal[0]),
			how.longest_s)));
		job->steps = job->duration_s;
		if (!how.rates)
			continue;
		uint32_t kind = kind_of(how.rates, reference, job->scale,
			draw(&how, HD_RNG_CLUSTER_KIND, i).word[0]);
		if (kind == HD_RATES_NONE)
			return hd_fail(diag, HD_E_INVAL, "the rates have no kind of job on %u devices",
				job->scale);
		job->kind = how.rates->kind[kind].name;
		job->steps = job->duration_s * reference_rate(how.rates, kind, reference);
	}
	*list = (struct hd_job_list){ .n = how.n, .at = jobs, .nrows = how.n };
	return HD_OK;
}
