/* job.h -- what `heddle plan JOB` plans for: the job, its graph, its profile and the devices.
 *
 * Read by input.c, which knows jobs and devices; planned, printed and drawn by job.c, which knows
 * schedules. Everything lies in the arena of the call. */
#ifndef HD_CMD_PLAN_JOB_H
#define HD_CMD_PLAN_JOB_H

#include "cost/topology.h"
#include "cost/stage_costs.h"
#include "job/job.h"
#include "cmd/verbs.h"

struct hd_graph;

struct hd_plan_input {
	struct hd_job job;
	struct hd_fs *fs;                         /* borrowed */
	struct hd_graph *graph;
	struct hd_profile profile;
	struct hd_cuts cuts;
	struct hd_cut_sums sums;
	struct hd_cluster cluster;
	bool measured;                            /* the profile is a file's */
	const char *profile_from, *cluster_from;  /* in words */
};

/* FILE|JOB of `plan order` and `plan buckets`: what reads which. Options of jobs are refused for files. */
struct hd_cmd_graph_readers {
	enum hd_err (*file)(struct hd_cmd *cmd, const char *bytes, size_t len);
	/* without cuts and sums; `outer`: the slowest level of the cluster, over which all of it comes or is
	 * summed */
	enum hd_err (*job)(struct hd_cmd *cmd, const struct hd_plan_input *input,
		const struct hd_cluster_level *outer);
};
HD_MUST_USE enum hd_err hd_cmd_graph_file(struct hd_cmd *cmd, const struct hd_cmd_graph_readers *readers);
/* --max-cuts and --compress-branches. */
struct hd_cuts_how hd_plan_input_cuts(const struct hd_cmd *cmd);
HD_MUST_USE enum hd_err hd_plan_input_read(struct hd_cmd *cmd, struct hd_plan_input *input);
/* All but cuts and sums, of which a graph of many branches has too many. */
HD_MUST_USE enum hd_err hd_plan_input_costs(struct hd_cmd *cmd, struct hd_plan_input *input);
/* How many steps the job has: job.steps, or of its data as many as job.epochs takes. 0: it says neither. */
HD_MUST_USE enum hd_err hd_plan_input_steps(struct hd_cmd *cmd, const struct hd_plan_input *input,
	uint64_t *steps);
/* The profile for virtual nodes of `rows` (profile_graph.h); for hd_suggest(). */
HD_MUST_USE enum hd_err hd_plan_input_profile_at(void *input, uint64_t rows, struct hd_profile *profile,
	struct hd_arena *arena, struct hd_diag *diag);
/* Of a graph in intervals (struct hd_job_plan_ask, sent): opens its data. */
HD_MUST_USE enum hd_err hd_plan_input_sent(void *input, const uint32_t *count, uint32_t n, uint64_t *most,
	struct hd_diag *diag);
/* The text of a data-parallel plan that `heddle run --plan` takes: a rank for every device of the cluster,
 * those without virtual nodes too. map[v] is the device of virtual node v. */
HD_MUST_USE enum hd_err hd_plan_input_whole(struct hd_cmd *cmd, const struct hd_plan_input *input,
	const uint32_t *map, struct hd_text *text);

#endif
