/* bench.h -- what the benchmarks share: how often they repeat, and jobs long enough for it. */
#ifndef HD_CMD_BENCH_BENCH_H
#define HD_CMD_BENCH_BENCH_H

#include "cmd/session.h"

enum { HD_BENCH_REPEAT = 20, HD_BENCH_WARMUP = 3 };        /* steps: timed; run before */

uint64_t hd_bench_repeat(const struct hd_cmd *cmd);       /* --repeat, or HD_BENCH_REPEAT */
/* By which device/peak.h measures a core, for the products of the run. */
const char *hd_bench_path(struct hd_run *run);
/* FLOP/s of a core, in the numbers that the run's products have. */
double hd_bench_peak(struct hd_cmd *cmd, struct hd_run *run);
void hd_bench_take_steps(struct hd_job *job, uint64_t nsteps);

#endif
