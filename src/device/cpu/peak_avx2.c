#include "device/cpu/peak.h"

#include "device/cpu/peak.inc.h"

float hd_peak_run_avx2(uint64_t rounds) { return peak_run(rounds); }
double hd_peak_flops_avx2(void) { return peak_flops_per_round; }
