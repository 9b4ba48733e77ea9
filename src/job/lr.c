#include "job/lr.h"

#include <math.h>

/* cos(pi t) for t in [0,1]: the right half is the left one turned over, so that the series
 * sees at most pi/2; the first term left out is a^24/24! < 1e-18. */
static double cos_pi(double t)
{
	static const double coeff[] = {
		-1.0 / 1124000727777607680000.0, 1.0 / 2432902008176640000.0, -1.0 / 6402373705728000.0,
			1.0 / 20922789888000.0,
		-1.0 / 87178291200.0, 1.0 / 479001600.0, -1.0 / 3628800.0, 1.0 / 40320.0, -1.0 / 720.0,
		1.0 / 24.0, -1.0 / 2.0, 1.0,
	};
	bool right = t > 0.5;
	double a = (right ? 1.0 - t : t) * 3.14159265358979323846, aa = a * a, sum = 0;

	if (t == 0.5)                         /* exactly nothing, which no series ends at */
		return 0;
	for (size_t i = 0; i < sizeof coeff / sizeof coeff[0]; i++)
		sum = sum * aa + coeff[i];
	return right ? -sum : sum;
}

static double power(double x, uint64_t n)
{
	double result = 1;

	for (; n; n >>= 1, x *= x)
		result = n & 1 ? result * x : result;
	return result;
}

/* log(x), x in (0,1]: of x = m 2^e, m in [1/2, 1), twice the series of atanh((m - c) / (m + c)) about
 * c = 1/sqrt(2), whose argument is below 0.172; the first term left out is below 1e-21. */
static double logarithm(double x)
{
	static const double ln2 = 0.69314718055994530942, c = 0.70710678118654752440;
	int e;
	const double m = frexp(x, &e), z = (m - c) / (m + c);
	double sum = 0;

	for (int k = 25; k > 0; k -= 2)
		sum = sum * z * z + 1.0 / k;
	return 2 * z * sum + ((double)e - 0.5) * ln2;
}

/* exp(z), z <= 0: a power of 2 by its exponent, the rest, above -ln 2, by its series. */
static double exponential(double z)
{
	static const double ln2 = 0.69314718055994530942;
	const int e = z < -700 ? -1010 : (int)(z / ln2);
	const double r = z < -700 ? 0 : z - (double)e * ln2;
	double sum = 1;

	for (int k = 20; k > 0; k--)
		sum = 1 + sum * r / k;
	return ldexp(sum, e);
}

/* x^p for x in [0,1]. */
static double power_of(double x, double p)
{
	if (p == floor(p))
		return power(x, (uint64_t)p);
	return x <= 0 ? 0 : exponential(p * logarithm(x));
}

static double half_wave(double t) { return (1 + cos_pi(t)) / 2; }

static double one_cycle(const struct hd_lr *lr, uint64_t step, uint64_t nsteps)
{
	const uint64_t top = lr->warmup ? lr->warmup - 1 : 0;

	if (step < top)
		return 1 + (lr->start - 1) * half_wave((double)step / (double)top);
	const double t = step + 1 >= nsteps ? 1 : (double)(step - top) / (double)(nsteps - 1 - top);
	return step == top ? 1 : lr->end + (1 - lr->end) * half_wave(t);
}

/* The share of lr after the warm-up. */
static double share(const struct hd_lr *lr, uint64_t step, uint64_t nsteps)
{
	double t = step >= nsteps ? 1 : (double)(step - lr->warmup) / (double)(nsteps - lr->warmup), falls;

	switch (lr->kind) {
	case HD_LR_CONSTANT: return 1;
	case HD_LR_LINEAR:   return 1 - (1 - lr->floor) * t;
	case HD_LR_COSINE:   return lr->floor + (1 - lr->floor) * half_wave(t);
	case HD_LR_POLYNOMIAL: return lr->floor + (1 - lr->floor) * power_of(1 - t, lr->power);
	case HD_LR_ONE_CYCLE: return one_cycle(lr, step, nsteps);
	case HD_LR_STEP:
	case HD_LR_PLATEAU:
		falls = power(lr->factor, lr->kind == HD_LR_STEP ? step / lr->every : lr->falls);
		return falls > lr->floor ? falls : lr->floor;
	}
	return 1;
}

float hd_lr(const struct hd_lr *lr, uint64_t step, uint64_t nsteps)
{
	if (step < lr->warmup && lr->kind != HD_LR_ONE_CYCLE)
		return (float)(lr->lr * ((double)(step + 1) / (double)lr->warmup));
	return (float)(lr->lr * share(lr, step, nsteps));
}

uint64_t hd_lr_auto_warmup(enum hd_lr_kind kind, uint64_t nsteps)
{
	if (kind == HD_LR_ONE_CYCLE)
		return nsteps / 10 * 3 + nsteps % 10 * 3 / 10;
	return nsteps / 10 < HD_JOB_AUTO_WARMUP ? nsteps / 10 : HD_JOB_AUTO_WARMUP;
}

static uint64_t warmup_of(const struct hd_job *job, uint64_t nsteps)
{
	const struct hd_job_value *v = &job->value[HD_JOB_WARMUP];

	return !v->is_auto ? (uint64_t)v->i :
		hd_lr_auto_warmup((enum hd_lr_kind)hd_job_int(job, HD_JOB_SCHEDULE), nsteps);
}

float hd_lr_at(const struct hd_job *job, uint64_t step, uint64_t nsteps, uint64_t falls)
{
	struct hd_lr lr = {
		.kind = (enum hd_lr_kind)hd_job_int(job, HD_JOB_SCHEDULE),
		.lr = hd_job_num(job, HD_JOB_LR),
		.floor = hd_job_num(job, HD_JOB_FLOOR),
		.factor = hd_job_num(job, HD_JOB_FACTOR),
		.start = hd_job_num(job, HD_JOB_LR_START),
		.end = hd_job_num(job, HD_JOB_LR_END),
		.power = hd_job_num(job, HD_JOB_LR_POWER),
		.warmup = warmup_of(job, nsteps),
		.every = (uint64_t)hd_job_int(job, HD_JOB_EVERY),
		.falls = falls,
	};

	return hd_lr(&lr, step, nsteps);
}
