#include "device/cpu/peak.h"

#include "device/cpu/peak.inc.h"

float hd_peak_run_avx512(uint64_t rounds) { return peak_run(rounds); }
double hd_peak_flops_avx512(void) { return peak_flops_per_round; }
