/* kernels_auto.h -- what `job.kernels: auto` stands for: own kernels or the library's, a pure function of the
 * type of processor and the shapes of a model.
 *
 * The verb that starts a run asks once and writes the answer into the run (run/kernels.h): the two sets have
 * other bits, so a choice by a clock, or one that each machine makes for itself, would be another result.
 *
 * 1. Rates were measured on cold operands (`heddle bench op --cold`) and are committed. A call has the rates
 *    of the row of its op and processor that is nearest to it in operations, the earlier of two.
 * 2. Only calls that the two sets compute in different ways count (cpu_kernels.h, takes), by operations.
 * 3. Own kernels are taken where they need at most HD_OWN_WITHIN of the library's time: their bits hold on
 *    every machine. A type of processor without rows, and an op without, have equal rates: own kernels.
 *
 * Threads: pure. */
#ifndef HD_DEVICE_KERNELS_AUTO_H
#define HD_DEVICE_KERNELS_AUTO_H

#include "device/device.h"

#define HD_OWN_WITHIN 1.05

/* GFLOP/s of a core on cold operands, for a call of `mflop` million operations. */
struct hd_kernels_rate { const char *cpu; uint16_t op; double mflop, own, library; };
struct hd_kernels_rates { const struct hd_kernels_rate *at; uint32_t n; };

extern const struct hd_kernels_rates hd_kernels_measured;

/* Type of this machine's processor, as in the rows; "other" where there are none. */
const char *hd_cpu_type(void);

/* For a slice of `rows` rows of a training graph. A build without the library has no choice, and is not asked
 * about. */
enum hd_kernels hd_kernels_auto(const struct hd_kernels_rates *rates, const char *cpu,
	const struct hd_graph *graph, uint64_t rows);

#endif
