#include "job/lr.h"

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

/* The share of lr after the warm-up. */
static double share(const struct hd_lr *lr, uint64_t step, uint64_t nsteps)
{
	double t = step >= nsteps ? 1 : (double)(step - lr->warmup) / (double)(nsteps - lr->warmup), falls;

	switch (lr->kind) {
	case HD_LR_CONSTANT: return 1;
	case HD_LR_LINEAR:   return 1 - (1 - lr->floor) * t;
	case HD_LR_COSINE:   return lr->floor + (1 - lr->floor) * ((1 + cos_pi(t)) / 2);
	case HD_LR_STEP:
		falls = power(lr->factor, step / lr->every);
		return falls > lr->floor ? falls : lr->floor;
	}
	return 1;
}

float hd_lr(const struct hd_lr *lr, uint64_t step, uint64_t nsteps)
{
	if (step < lr->warmup)
		return (float)(lr->lr * ((double)(step + 1) / (double)lr->warmup));
	return (float)(lr->lr * share(lr, step, nsteps));
}

static uint64_t warmup_of(const struct hd_job *job, uint64_t nsteps)
{
	const struct hd_job_value *v = &job->value[HD_JOB_WARMUP];

	return !v->is_auto ? (uint64_t)v->i : nsteps / 10 < HD_JOB_AUTO_WARMUP ? nsteps / 10 :
		HD_JOB_AUTO_WARMUP;
}

float hd_lr_at(const struct hd_job *job, uint64_t step, uint64_t nsteps)
{
	struct hd_lr lr = {
		.kind = (enum hd_lr_kind)hd_job_int(job, HD_JOB_SCHEDULE),
		.lr = hd_job_num(job, HD_JOB_LR),
		.floor = hd_job_num(job, HD_JOB_FLOOR),
		.factor = hd_job_num(job, HD_JOB_FACTOR),
		.warmup = warmup_of(job, nsteps),
		.every = (uint64_t)hd_job_int(job, HD_JOB_EVERY),
	};

	return hd_lr(&lr, step, nsteps);
}
