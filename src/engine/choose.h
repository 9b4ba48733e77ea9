/* choose.h -- how a worker divides the cores it may use: devices x threads and how many virtual
 * nodes a device runs at once, by predicted time and memory.
 *
 * `run` asks when the job says `devices: auto`; `run --dry-run` prints the whole list.
 * Nothing here fixes a bit of the result (ARCHITECTURE.md, "Why the bits are equal").
 *
 * 1. Every division D x T of the cores with D <= V is sketched: programs and fold scripts are
 *    made as for a run, nothing is opened. Their sizes are the memory that a run takes, but for the kernels'
 *    scratch.
 * 2. A wave is as wide as hd_worker_wave() likes it, and halved until the memory fits.
 * 3. Time: a virtual node is the sum over its nodes of max(FLOP / F, bytes / B), divided over the threads as
 *    tiles are (device/tiles.h): the thread with the most tiles counts, since two tiles keep only two of
 *    eight threads busy. A wave adds what it pays once: laying parameters out for F and for B, writing their
 *    gradient, and one barrier of the threads for each node. The time of a step is that of the device with
 *    the most virtual nodes, plus the update and the joining of roots, both shared by all cores. F, B and the
 *    cost of a barrier are nominal: only the order of the list depends on them.
 * 4. The best is the fastest that fits; of equally fast ones, the one with more devices. If none fits it is
 *    the smallest, and opening that is refused, with the numbers.
 *
 * Pure but for the machine's memory, which the caller passes. */
#ifndef HD_ENGINE_CHOOSE_H
#define HD_ENGINE_CHOOSE_H

#include "engine/worker.h"

enum { HD_MAX_CHOICES = 64 };

struct hd_choice {
	uint32_t ndevices, nthreads, wave;
	struct hd_memory_terms memory;
	double step_s;                    /* predicted, nominal */
	bool fits;
};

struct hd_choices { struct hd_choice at[HD_MAX_CHOICES]; uint32_t n, best; };

struct hd_choose_spec {
	uint32_t ncores;
	uint32_t ndevices, nthreads;      /* given by hand: only the wave is chosen; 0: both are */
	uint64_t device_limit_bytes;      /* workers.memory; 0: none */
	uint64_t machine_bytes;           /* what this process may have; 0: no bound */
};

HD_MUST_USE enum hd_err hd_choose(struct hd_choices *choices, const struct hd_task *task,
	const struct hd_choose_spec *spec, struct hd_diag *diag);

#endif
