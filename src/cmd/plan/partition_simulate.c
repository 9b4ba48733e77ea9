#include "cmd/plan/partition_simulate.h"

#include <stdio.h>

#include "planner/pipedream.h"
#include "cmd/json_line.h"

static const char *split_text(struct hd_cmd *cmd, const struct hd_part_split *split)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_part_print(&(struct hd_partition){ .top = *split }, 1, &text);
	return text.full ? "" : text.at;
}

static void print_json(struct hd_cmd *cmd, const struct hd_pd_choice *c)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "best", hd_pd_way_names[c->best]);
	hd_json_put_text(w, "split", split_text(cmd, &c->way[c->best].split));
	hd_json_put_f64(w, "minibatches_s", c->way[c->best].rate);
	hd_json_put_f64(w, "gain", c->way[c->best].rate / c->way[HD_PD_DATA].rate);
	hd_json_open_array(w, "ways");
	for (int k = 0; k < HD_NPD_WAYS; k++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "way", hd_pd_way_names[k]);
		if (c->way[k].made) {
			hd_json_put_f64(w, "minibatches_s", c->way[k].rate);
			hd_json_put_text(w, "split", split_text(cmd, &c->way[k].split));
		} else {
			hd_json_put_text(w, "why_not", c->way[k].why);
		}
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_line_print(&line);
}

static void print_table(struct hd_cmd *cmd, const struct hd_pd_choice *c)
{
	printf("%-5s %-14s %14s %8s  %s\n", "", "way", "minibatches/s", "gain", "split");
	for (int k = 0; k < HD_NPD_WAYS; k++)
		if (c->way[k].made)
			printf("%-5s %-14s %14.4f %8.3f  %s\n", k == (int)c->best ? "best" : "",
				hd_pd_way_names[k], c->way[k].rate,
				c->way[k].rate / c->way[HD_PD_DATA].rate, split_text(cmd, &c->way[k].split));
		else
			printf("%-5s %-14s %14s %8s  %s\n", "", hd_pd_way_names[k], "-", "-", c->way[k].why);
}

enum hd_err hd_cmd_partition_simulate(struct hd_cmd *cmd, const struct hd_profile *profile,
	const struct hd_cuts *cuts, const struct hd_part_how *how)
{
	static const char *const names[HD_PART_LEVELS] = { "level 1", "level 2", "level 3", "level 4" };
	struct hd_cluster_level level[HD_PART_LEVELS] = { 0 };
	struct hd_cluster cluster;
	struct hd_cut_sums sums;
	struct hd_pd_choice choice;

	for (uint32_t l = 0; l < how->nlevels; l++)
		level[l] = (struct hd_cluster_level){ names[l], how->level[l].machines,
			how->level[l].bytes_per_s, 0 };
	enum hd_err err = hd_cluster_make(&cluster, level, how->nlevels,
		(struct hd_cluster_kind){ "machine", 1, 0 }, &cmd->arena, &cmd->diag);
	err = err ? err : hd_cut_sums_make(&sums, profile, cuts, &cmd->arena, &cmd->diag);
	err = err ? err : hd_pd_choose(&choice, &sums, &cluster, &cmd->arena, &cmd->diag);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, &choice);
	else
		print_table(cmd, &choice);
	return HD_OK;
}
