#include "device/cpu/peak.h"

#include <string.h>

#include "device/peak.h"

enum { TRIALS = 5, TRIAL_NS = 10000000 };

static const struct { const char *name; float (*run)(uint64_t rounds); double (*flops)(void); } peaks[] = {
	{ "bf16-amx", hd_peak_run_amx, hd_peak_flops_amx }, { "bf16", hd_peak_run_bf16, hd_peak_flops_bf16 },
#define X(path) { #path, hd_peak_run_##path, hd_peak_flops_##path },
	HD_CPU_PATHS(X)
#undef X
};

static size_t row_of(const char *path)
{
	size_t i = 0, last = sizeof peaks / sizeof *peaks - 1;

	while (i < last && strncmp(peaks[i].name, path, strlen(peaks[i].name)) != 0)
		i++;
	return i;
}

static double rate_of(size_t i, uint64_t rounds, struct hd_clock *clock, int64_t *took_ns)
{
	int64_t began_ns = hd_clock_now_ns(clock);
	volatile float kept = peaks[i].run(rounds);

	(void)kept;
	*took_ns = hd_clock_now_ns(clock) - began_ns;
	return (double)rounds * peaks[i].flops() / ((double)(*took_ns > 0 ? *took_ns : 1) * 1e-9);
}

double hd_core_peak(const char *path, struct hd_clock *clock)
{
	const size_t i = row_of(path);
	uint64_t rounds = 100000;
	double best = 0;

	for (int trial = 0; trial < TRIALS; trial++) {
		int64_t took_ns;
		double rate = rate_of(i, rounds, clock, &took_ns);
		best = rate > best ? rate : best;
		if (took_ns < TRIAL_NS && took_ns > 0)
			rounds = rounds * TRIAL_NS / (uint64_t)took_ns + 1;
	}
	return best;
}

double hd_core_peak_brief(const char *path, double about, struct hd_clock *clock)
{
	const size_t i = row_of(path);
	int64_t took_ns;

	return rate_of(i, (uint64_t)(about * HD_PEAK_BRIEF_NS * 1e-9 / peaks[i].flops()) + 1, clock,
		&took_ns);
}
