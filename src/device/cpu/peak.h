/* peak.h -- the compiled forms of peak.inc.h; private to the back-end. */
#ifndef HD_DEVICE_CPU_PEAK_H
#define HD_DEVICE_CPU_PEAK_H

#include <stdint.h>

#include "device/cpu/cpu_kernels.h"

#define X(path) float hd_peak_run_##path(uint64_t rounds); double hd_peak_flops_##path(void);
HD_CPU_PATHS(X)
#undef X
float hd_peak_run_bf16(uint64_t rounds);              /* where hd_cpu_has_bf16() alone */
double hd_peak_flops_bf16(void);
float hd_peak_run_amx(uint64_t rounds);               /* where hd_cpu_has_amx() alone */
double hd_peak_flops_amx(void);

#endif
