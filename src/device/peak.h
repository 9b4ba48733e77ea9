/* peak.h -- what one core of this machine can do at most, measured: the denominator
 * of "fraction of peak" in every benchmark. Not a constant of a data sheet: clock,
 * neighbours and instruction set decide it. */
#ifndef HD_DEVICE_PEAK_H
#define HD_DEVICE_PEAK_H

#include "sys/clock.h"

/* FLOP/s of the calling thread's core in f32 fused multiply-adds on `path` ("avx512", ...), or in pairs of
 * "bf16" or tiles of "bf16-amx" (where a device of such kernels could be opened): the best of five runs of
 * some 10 ms. Blocks for about 60 ms. */
double hd_core_peak(const char *path, struct hd_clock *clock);
/* The same of one run that takes HD_PEAK_BRIEF_NS on a core of `about` FLOP/s, for use between other work: a
 * core's clock changes within seconds, and with it what "peak" is. Reads and writes no memory. */
enum { HD_PEAK_BRIEF_NS = 50000 };
double hd_core_peak_brief(const char *path, double about, struct hd_clock *clock);

/* Bytes/s of the calling thread's core copying between two arrays of HD_BANDWIDTH_BYTES each, bytes read and
 * bytes written both counted: the best of five copies. 0: no memory for the arrays. Blocks for some 100
 * ms. */
enum { HD_BANDWIDTH_BYTES = 64 << 20 };
double hd_core_bandwidth(struct hd_clock *clock);

#endif
