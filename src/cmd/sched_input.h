/* sched_input.h -- what the verbs of the cluster scheduler are given: devices, rates, jobs, a policy. */
#ifndef HD_CMD_SCHED_INPUT_H
#define HD_CMD_SCHED_INPUT_H

#include "cluster/job_generate.h"
#include "cluster/sched_sim.h"
#include "cmd/verbs.h"

enum { HD_SCHED_FILE = 256 << 20 };               /* bytes of an input file */

struct hd_sched_input {
	uint32_t ntypes;
	struct hd_sched_type type[HD_SCHED_TYPES];
	struct hd_rates all, rates;               /* of the file; of these types */
	double speed[HD_SCHED_TYPES];
	struct hd_job_list list;
	struct hd_job_generator generator;
	bool has_rates, generates, bounded;       /* bounded: the generator ends */
	uint64_t left, first, end;
	size_t at;
	struct hd_policy_setting policy;
	struct hd_sched_sim_setting setting;
};

/* All options of `sched simulate` but the policy; input->setting is complete but for it. */
HD_MUST_USE enum hd_err hd_sched_input(struct hd_cmd *cmd, struct hd_sched_input *input);
/* Chooses the policy, by a name of ours or a published one, and starts the jobs from the beginning. */
HD_MUST_USE enum hd_err hd_sched_input_policy(struct hd_cmd *cmd, struct hd_sched_input *input, const char *name);
/* Jobs of --trace or --generate alone. */
HD_MUST_USE enum hd_err hd_sched_input_jobs(struct hd_cmd *cmd, struct hd_sched_input *input);

#endif
