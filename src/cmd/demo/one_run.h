/* one_run.h -- one run of a demo's job in this process: made, trained to its end, and reported.
 *
 * The kernels are those that the job names, or that fit it here (run/kernels.h). The folder stays. */
#ifndef HD_CMD_DEMO_ONE_RUN_H
#define HD_CMD_DEMO_ONE_RUN_H

#include "job/sets.h"
#include "run/job_files.h"
#include "run/run.h"
#include "cmd/verbs.h"

struct demo_end {
	char hex[HD_HASH_HEX], dir[HD_RUN_PATH];          /* digest of the state; the folder */
	double accuracy, loss_first, loss_last, seconds;
	uint64_t steps;
	bool has_accuracy;
};

/* In a folder of --dir. `options`: what is special to the demo; the rest is set here. */
HD_MUST_USE enum hd_err demo_run(struct hd_cmd *cmd, const char *yaml, const struct hd_job_set *set,
	uint32_t nsets, const struct hd_run_options *options, struct demo_end *end);

#endif
