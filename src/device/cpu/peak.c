#include "device/cpu/peak.h"

#include <string.h>

#include "device/peak.h"

enum { TRIALS = 5, TRIAL_NS = 10000000 };

static const struct { const char *name; float (*run)(uint64_t rounds); double (*flops)(void); } peaks[] = {
	{ "bf16", hd_peak_run_bf16, hd_peak_flops_bf16 },
#define X(path) { #path, hd_peak_run_##path, hd_peak_flops_##path },
	HD_CPU_PATHS(X)
#undef X
};

double hd_core_peak(const char *path, struct hd_clock *clock)
{
	size_t i = 0, last = sizeof peaks / sizeof *peaks - 1;
	uint64_t rounds = 100000;
	double best = 0;

	while (i < last && strncmp(peaks[i].name, path, strlen(peaks[i].name)) != 0)
		i++;
	for (int trial = 0; trial < TRIALS; trial++) {
		int64_t began_ns = hd_clock_now_ns(clock);
		volatile float kept = peaks[i].run(rounds);
		(void)kept;
		int64_t took_ns = hd_clock_now_ns(clock) - began_ns;
		double rate = (double)rounds * peaks[i].flops() / ((double)(took_ns > 0 ? took_ns : 1) *
			1e-9);
		best = rate > best ? rate : best;
		if (took_ns < TRIAL_NS && took_ns > 0)
			rounds = rounds * TRIAL_NS / (uint64_t)took_ns + 1;
	}
	return best;
}
