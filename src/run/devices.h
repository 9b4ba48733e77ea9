/* devices.h -- what a process opens to compute: the words of `--devices`, `--threads` and of the job's
 * workers.devices and workers.memory, as a hd_worker_spec.
 *
 * 1. "4" and "cores:4": four devices of one thread. "cores:2x3": two of three. "reference:N" and "null:N" are
 *    devices of other kinds. "auto" and "auto:N": all cores, or N of them, are divided later
 *    (engine/choose.h). "paced:N": null devices that wait what a core takes; "paced:1,1,0.5": three, the last
 *    one half as fast; ":X" behind either: X times as long.
 * 2. Threads alone divide the cores by hand: as many devices as there are cores for, at most one a virtual
 *    node.
 * 3. What is missing or out of range is an error that names the words that there are.
 *
 * Plain values. Threads: any. */
#ifndef HD_RUN_DEVICES_H
#define HD_RUN_DEVICES_H

#include "run/run.h"

enum { HD_MAX_DEVICES = 1024, HD_MAX_THREADS = 256 };       /* of one process; of one device */

/* `devices` and `threads` as given, each NULL where it was not; ncores: usable ones. Sets options->worker and
 * options->auto_cores, of paced devices options->pace and ->paced. */
HD_MUST_USE enum hd_err hd_devices_ask(struct hd_run_options *options, const struct hd_job *job,
	const char *devices, const uint64_t *threads, uint32_t ncores, struct hd_diag *diag);

/* `--speeds`: a number above 0 for each device. Sets options->speeds. */
HD_MUST_USE enum hd_err hd_devices_speeds(struct hd_run_options *options, const char *text,
	struct hd_diag *diag);

#endif
