#include <stdio.h>

#include "pipeline/generate.h"
#include "planner/two_bw.h"
#include "cmd/json_line.h"
#include "cmd/plan/stages.h"

enum { CLUSTER_BYTES = 1 << 20 };

static enum hd_err read_cluster(struct hd_cmd *cmd, struct hd_cluster *cluster)
{
	struct hd_cluster_level level[HD_CLUSTER_LEVELS];
	const char *path = cmd->args.text[HD_OPT_CLUSTER];
	struct hd_part_how how = { 0 };
	enum hd_err err = HD_OK;
	uint8_t *bytes;
	size_t len;

	if (path && (cmd->args.has[HD_OPT_MACHINES] || cmd->args.has[HD_OPT_BANDWIDTH]))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--cluster says which devices there are; leave --machines and --bandwidth out");
	if (path) {
		err = hd_file_read_all(&cmd->fs, path, &cmd->arena, CLUSTER_BYTES, &bytes, &len, &cmd->diag);
		return err ? err : hd_cluster_parse(cluster, (const char *)bytes, len, path, &cmd->arena,
			&cmd->diag);
	}
	err = hd_cmd_levels(cmd, &how);
	if (!err && how.nlevels > HD_CLUSTER_LEVELS)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--machines %s: at most %d levels",
			cmd->args.text[HD_OPT_MACHINES], HD_CLUSTER_LEVELS);
	for (uint32_t l = 0; l < how.nlevels && !err; l++)
		level[l] = (struct hd_cluster_level){ "level", how.level[l].machines,
			how.level[l].bytes_per_s, 0 };
	return err ? err : hd_cluster_make(cluster, level, how.nlevels,
		(struct hd_cluster_kind){ "machine", 1, 0 }, &cmd->arena, &cmd->diag);
}

static enum hd_err read_ask(struct hd_cmd *cmd, struct hd_2bw_ask *ask)
{
	uint64_t vns = cmd->args.count[HD_OPT_STEP_VNS], p = cmd->args.count[HD_OPT_RANKS];

	if (!cmd->args.has[HD_OPT_STEP_VNS] || vns < 1 || vns > HD_MAX_VNS)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"how many virtual nodes has a step? give --vns V, from 1 to %u",
			(unsigned)HD_MAX_VNS);
	if (cmd->args.has[HD_OPT_RANKS] && (p < 1 || p > HD_MAX_RANKS))
		return hd_fail(&cmd->diag, HD_E_INVAL, "-p is from 1 to %d", HD_MAX_RANKS);
	*ask = (struct hd_2bw_ask){ .vns = (uint32_t)vns, .p = (uint32_t)p };
	return hd_cmd_memory(cmd, &ask->memory);
}

static void print_json(struct hd_cmd *cmd, const struct hd_cuts *cuts, const struct hd_2bw_plan *plan)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_i64(w, "p", plan->p);
	hd_json_put_i64(w, "d", plan->d);
	hd_json_put_i64(w, "m", plan->m);
	hd_json_put_bool(w, "recompute", plan->recompute);
	hd_json_put_f64(w, "predicted_s", hd_2bw_step_s(plan));
	hd_json_put_f64(w, "virtual_node_s", (double)plan->vn_ps / 1e12);
	hd_json_put_i64(w, "need_bytes", plan->need);
	hd_json_put_i64(w, "limit_bytes", plan->limit);
	if (plan->gpipe < 0)
		hd_json_put_null(w, "gpipe_bytes");
	else
		hd_json_put_i64(w, "gpipe_bytes", plan->gpipe);
	hd_json_put_i64(w, "flush_bytes", plan->flush);
	hd_json_put_i64(w, "tried", (int64_t)plan->ntried);
	hd_json_put_i64(w, "fit", (int64_t)plan->nfit);
	hd_json_put_i64(w, "left_out", (int64_t)plan->nlate);
	if (plan->data_d) {
		hd_json_put_i64(w, "data_parallel_d", plan->data_d);
		hd_json_put_f64(w, "data_parallel_virtual_node_s", (double)plan->data_ps / 1e12);
	}
	hd_json_open_array(w, "stages");
	for (uint32_t s = 0; s < plan->p; s++) {
		uint32_t last = (s + 1 < plan->p ? plan->first[s + 1] : cuts->n) - 1;
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "first", plan->first[s]);
		hd_json_put_i64(w, "last", last);
		hd_json_put_text(w, "upto", cuts->name[last]);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_line_print(&line);
}

static void print_text(const struct hd_cuts *cuts, const struct hd_cluster *cluster,
	const struct hd_2bw_plan *plan, bool all)
{
	printf("p=%u d=%u           %u of %u devices; %u virtual nodes a pipeline, recomputation %s; %llu "
		"of %llu choices fit\n", plan->p, plan->d,
		plan->p * plan->d, cluster->ndevices, plan->m, plan->recompute ? "on" : "off",
		(unsigned long long)plan->nfit,
		(unsigned long long)plan->ntried);
	printf("step              %.6g s, a virtual node %.6g s\n", hd_2bw_step_s(plan),
		(double)plan->vn_ps / 1e12);
	if (plan->data_d)
		printf("data parallel     d=%u: a virtual node %.6g s, so 2bw is %.2f times as fast\n",
			plan->data_d, (double)plan->data_ps / 1e12,
			(double)plan->data_ps / plan->data_d / ((double)plan->vn_ps / plan->d));
	else
		printf("data parallel     %s\n", !all ? "was not tried: -p asks for another depth" :
			plan->nlate ? "does not fit, or takes longer than is counted" : "does not fit");
	printf("memory            %lld bytes a device", (long long)plan->need);
	if (plan->limit)
		printf(" of %lld", (long long)plan->limit);
	if (plan->gpipe < 0)
		printf("; gpipe more than 2^63");
	else
		printf("; gpipe %lld", (long long)plan->gpipe);
	printf(", 1f1b with a flush %lld\n", (long long)plan->flush);
	if (plan->nlate)
		printf("left out          %llu choices that take more than 2^62 ps (53 days) or 2^63 bytes, "
			"as far as is counted\n",
			(unsigned long long)plan->nlate);
	for (uint32_t s = 0; s < plan->p; s++) {
		uint32_t last = (s + 1 < plan->p ? plan->first[s + 1] : cuts->n) - 1;
		printf("stage %-4u        cuts %u-%u, up to %s\n", s, plan->first[s], last, cuts->name[last]);
	}
}

static enum hd_err write_schedule(struct hd_cmd *cmd, const struct hd_2bw_plan *plan)
{
	const struct hd_schedule_ask how = { .name = "2bw", .p = plan->p, .m = plan->m };
	struct hd_schedule schedule = { .heading = "" };
	struct hd_text text;
	enum hd_err err = hd_schedule_make(&schedule, &how, &cmd->arena, &cmd->diag);

	hd_text_init(&text, &cmd->arena);
	if (!err)
		hd_schedule_print(&schedule, &text);
	if (!err && text.full)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the text of a schedule");
	return err ? err : hd_file_write_atomic(&cmd->fs, cmd->args.text[HD_OPT_OUTPUT], text.at, text.len,
		&cmd->diag);
}

static enum hd_err verb_plan_2bw(struct hd_cmd *cmd)
{
	struct hd_profile profile;
	struct hd_cluster cluster;
	struct hd_2bw_plan plan;
	struct hd_cut_sums sums;
	struct hd_2bw_ask ask;
	struct hd_cuts cuts;
	enum hd_err err = read_ask(cmd, &ask);

	if (!err)
		err = read_cluster(cmd, &cluster);
	if (!err)
		err = hd_cmd_cuts(cmd, &profile, &cuts);
	if (!err)
		err = hd_cut_sums_make(&sums, &profile, &cuts, &cmd->arena, &cmd->diag);
	if (!err)
		err = hd_2bw_plan(&plan, &sums, &cluster, &ask, &cmd->arena, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_OUTPUT])
		err = write_schedule(cmd, &plan);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, &cuts, &plan);
	else
		print_text(&cuts, &cluster, &plan, ask.p <= 1);
	return HD_OK;
}

const struct hd_verb hd_verb_plan_2bw = {
	.name = "plan 2bw", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "stages and copies for a model whose updates are one step late, by PipeDream-2BW's formulas",
	.more =
		"Tries every depth p and width d that divides the V virtual nodes with m = V/d of at "
		"least p, without and with recomputation, on equal stages: memory 2W/p + p A/p + p In, "
		"or 2W/p + A/p + p In (W weights, A activations and In input of a stage); the time of a "
		"virtual node is the slowest stage's. Gradients, optimizer and workspace are not in "
		"these formulas. Of equally fast ones: no recomputation, smaller p, smaller d. -p P: "
		"this depth alone. Nothing fits: exit 2, with the smallest need.\n"
		"What takes more than 2^62 ps a virtual node is left out and counted.\n"
		"-o FILE: the schedule of one pipeline, for `heddle plan check` and `plan draw`.",
	.opts = HD_OPTS(HD_OPT_GRAPH, HD_OPT_STEP_VNS, HD_OPT_MACHINES, HD_OPT_BANDWIDTH,
		HD_OPT_CLUSTER, HD_OPT_RANKS, HD_OPT_MEMORY, HD_OPT_OUTPUT, HD_OPT_MAX_CUTS,
		HD_OPT_COMPRESS),
	.run = verb_plan_2bw, .test = "program_2bw.sh",
};
