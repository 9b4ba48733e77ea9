/* input.h -- what the verbs of the cluster scheduler are given: devices, rates, jobs, a policy.
 *
 * input.c reads jobs and what holds for all of them, pool.c the devices: how many, what they
 * cost, when they come and go. */
#ifndef HD_CMD_SCHED_INPUT_H
#define HD_CMD_SCHED_INPUT_H

#include "clustersim/job_generate.h"
#include "clustersim/sched_waits.h"
#include "clustersim/slurm.h"
#include "cmd/verbs.h"

#define HD_SCHED_OPTS HD_OPT_SCHED_POLICY, HD_OPT_JOBS, HD_OPT_GENERATE, HD_OPT_THROUGHPUTS, HD_OPT_POOL, \
	HD_OPT_PRICE, HD_OPT_SPEED, HD_OPT_REVOKE, HD_OPT_LOST, HD_OPT_MAP, HD_OPT_FAITHFUL, HD_OPT_ROUND, \
	HD_OPT_RESET, HD_OPT_SWITCHING, HD_OPT_SEED, HD_OPT_NODES, HD_OPT_SINFO_PARTITIONS, \
	HD_OPT_LP_ITERATIONS, HD_OPT_PRICES, \
	HD_OPT_ZONES, HD_OPT_PRICE_AS, HD_OPT_PRICES_FROM, HD_OPT_SPOT, HD_OPT_ELASTIC, HD_OPT_ENTITIES, \
	HD_OPT_ENTITY_KIND, HD_OPT_DEADLINE_FACTOR, HD_OPT_TUNE, HD_OPT_ESTIMATE, HD_OPT_SLURM, \
	HD_OPT_ANY_TYPE

enum { HD_SCHED_FILE = 256 << 20,                 /* bytes of an input file */
       HD_SCHED_FILES = 64,                       /* of one option */
       HD_SCHED_MOST = 4096 };                    /* devices of an elastic job */

#define HD_SCHED_FILTER HD_OPT_ONLY_USER, HD_OPT_ONLY_ACCOUNT, HD_OPT_ONLY_PARTITION, HD_OPT_FROM_TIME, \
	HD_OPT_TO_TIME, HD_OPT_MIN_GPUS

struct hd_slurm_now;

struct hd_sched_input {
	uint32_t ntypes;
	struct hd_sched_type type[HD_SCHED_TYPES];
	struct hd_rates all, rates;               /* of the file; of these types */
	double speed[HD_SCHED_TYPES];
	struct hd_job_list list;
	struct hd_job_generator generator;
	bool compares;                            /* of several policies some may not resize */
	bool has_rates, generates, bounded;       /* bounded: the generator ends */
	uint64_t left, first, end;
	size_t at;
	struct hd_policy_setting policy, tuned;   /* tuned: what --tune says, before the name is read */
	uint32_t *host;
	const struct hd_slurm_now *nodes;         /* of --partitions */
	struct hd_prices prices;
	uint32_t price_type[HD_SCHED_TYPES];
	struct hd_machine_events events;
	struct hd_sched_elastic elastic;
	struct hd_estimate_setting estimate;
	struct hd_slurm_setting slurm;
	struct hd_sched_sim_setting setting;
};

/* One of the names an option knows, and where its value goes: a flag has none. */
struct hd_sched_key { const char *key; double *number; uint64_t *count; bool *flag; const char **text;
	double least, most; };

/* All options of `sched simulate` but the policy; input->setting is complete but for it. */
HD_MUST_USE enum hd_err hd_sched_input(struct hd_cmd *cmd, struct hd_sched_input *input);
/* Chooses the policy, by a name of ours or a published one, and starts the jobs from the beginning. */
HD_MUST_USE enum hd_err hd_sched_input_policy(struct hd_cmd *cmd, struct hd_sched_input *input,
	const char *name);
/* --lp-iterations, where it is there, into the setting of a policy. */
HD_MUST_USE enum hd_err hd_sched_lp_limit(struct hd_cmd *cmd, struct hd_policy_setting *set);
/* Jobs of --trace or --generate alone. */
HD_MUST_USE enum hd_err hd_sched_input_jobs(struct hd_cmd *cmd, struct hd_sched_input *input);

/* --cluster or --nodes, and all that is said of devices: the part of hd_sched_input after the rates. */
HD_MUST_USE enum hd_err hd_sched_pool(struct hd_cmd *cmd, struct hd_sched_input *input);

/* With --partitions, when jobs know the kinds of the cluster: kinds become types, one for each set of
 * partitions. */
HD_MUST_USE enum hd_err hd_sched_split(struct hd_cmd *cmd, struct hd_sched_input *input);

/* --switching, which is there: "START,RESIZE,MOVE,PREEMPT" in seconds. */
HD_MUST_USE enum hd_err hd_sched_switching(struct hd_cmd *cmd, struct hd_switch_costs *costs);

/* --from, --to, --partition, --account, --user, --min-gpus */
HD_MUST_USE enum hd_err hd_sched_filter(struct hd_cmd *cmd, struct hd_job_filter *filter);

/* Can the files be written that are written at the end? Asked before anything is simulated. Leaves what is
 * there as it is. */
HD_MUST_USE enum hd_err hd_sched_outputs(struct hd_cmd *cmd);

HD_MUST_USE enum hd_err hd_sched_file(struct hd_cmd *cmd, const char *path, uint8_t **bytes, size_t *len);
HD_MUST_USE enum hd_err hd_sched_json(struct hd_cmd *cmd, const char *path, const struct hd_json **json);
/* "A:x,B=y,C": calls `put` for each, cut at the first of `marks`; the value is NULL where there is none. */
typedef enum hd_err hd_sched_put(struct hd_cmd *cmd, void *to, char *key, char *value);
HD_MUST_USE enum hd_err hd_sched_each(struct hd_cmd *cmd, enum hd_opt opt, const char *marks,
	hd_sched_put *put, void *to);
/* Puts the value where its key says; an unknown key is an error that names the nearest one. */
HD_MUST_USE enum hd_err hd_sched_keys(struct hd_cmd *cmd, enum hd_opt opt, uint32_t nkeys,
	const struct hd_sched_key *keys, char *name, char *value);

#endif
