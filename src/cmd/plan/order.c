#include <stdio.h>
#include <string.h>

#include "planner/order.h"
#include "cmd/json_line.h"
#include "cmd/plan/job.h"

struct order_summary { const struct hd_order_graph *graph; struct hd_recv_order order[HD_NORDERS];
	enum hd_order_mode mode;
	struct hd_order_bounds bounds; };

static double units(const struct order_summary *t, int64_t ticks) { return (double)ticks / t->graph->unit; }

/* 1: as short as can be; 0: nothing overlaps. */
static double efficiency(const struct order_summary *t)
{
	int64_t span = t->bounds.upper - t->bounds.lower;

	return span ? (double)(t->bounds.upper - t->order[t->mode].makespan) / (double)span : 1;
}

static double gain(const struct order_summary *t) { return t->bounds.lower ?
	(double)(t->bounds.upper - t->bounds.lower) / (double)t->bounds.lower : 0; }

static void print_text(const struct order_summary *t, const char *unit)
{
	const struct hd_recv_order *o = &t->order[t->mode];

	printf("%s%s%s: %g%s; %g if all overlapped, %g if nothing did; efficiency %.1f %%\n", t->graph->name,
		*t->graph->name ? ", " : "",
		hd_order_names[t->mode], units(t, o->makespan), unit, units(t, t->bounds.lower),
		units(t, t->bounds.upper), 100 * efficiency(t));
	printf("%8s %12s  receive\n", "priority", *unit ? "time s" : "time");
	for (uint32_t k = 0; k < t->graph->nrecvs; k++)
		printf("%8u %12g  %s\n", o->priority[o->recv[k]], units(t, t->graph->recv_time[o->recv[k]]),
			t->graph->recv[o->recv[k]]);
	if (o->ntied)
		printf("%u receives share their priority with another\n", o->ntied);
	for (int m = 0; m < HD_NORDERS; m++)
		printf("%s%s %g", m ? ", " : "all: ", hd_order_names[m], units(t, t->order[m].makespan));
	printf("\n");
}

static void print_json(struct hd_cmd *cmd, const struct order_summary *t, const char *unit)
{
	const struct hd_recv_order *o = &t->order[t->mode];
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "name", t->graph->name);
	hd_json_put_text(w, "mode", hd_order_names[t->mode]);
	hd_json_put_text(w, "unit", *unit ? "s" : "as given");
	hd_json_open_array(w, "order");
	for (uint32_t k = 0; k < t->graph->nrecvs; k++)
		hd_json_put_text(w, NULL, t->graph->recv[o->recv[k]]);
	hd_json_close(w);
	hd_json_open_array(w, "priority");
	for (uint32_t k = 0; k < t->graph->nrecvs; k++)
		hd_json_put_i64(w, NULL, o->priority[o->recv[k]]);
	hd_json_close(w);
	hd_json_put_f64(w, "makespan", units(t, o->makespan));
	hd_json_put_f64(w, "upper", units(t, t->bounds.upper));
	hd_json_put_f64(w, "lower", units(t, t->bounds.lower));
	hd_json_put_f64(w, "efficiency", efficiency(t));
	hd_json_put_f64(w, "gain", gain(t));
	hd_json_put_i64(w, "tied", o->ntied);
	hd_json_open_object(w, "makespans");
	for (int m = 0; m < HD_NORDERS; m++)
		hd_json_put_f64(w, hd_order_names[m], units(t, t->order[m].makespan));
	hd_json_close(w);
	hd_json_line_print(&line);
}

static enum hd_err tell(struct hd_cmd *cmd, const struct hd_order_graph *graph)
{
	struct order_summary t = { .graph = graph, .mode = hd_order_auto(graph),
		.bounds = hd_order_bounds(graph) };
	const char *name = cmd->args.text[HD_OPT_ORDER], *unit = graph->unit == HD_ORDER_TICKS ? "" : " s";
	enum hd_err err = HD_OK;

	for (int m = 0; m < HD_NORDERS && !err; m++) {
		if (name && !strcmp(name, hd_order_names[m]))
			t.mode = (enum hd_order_mode)m;
		err = hd_order_make(&t.order[m], graph, (enum hd_order_mode)m, cmd->args.count[HD_OPT_SEED],
			&cmd->arena, &cmd->diag);
	}
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, &t, unit);
	else
		print_text(&t, unit);
	return HD_OK;
}

static enum hd_err of_job(struct hd_cmd *cmd, const struct hd_plan_input *in,
	const struct hd_cluster_level *outer)
{
	struct hd_order_graph graph;
	enum hd_err err = hd_order_of_profile(&graph, &in->profile, outer->bytes_per_s, outer->latency_ps,
		&cmd->arena, &cmd->diag);

	return err ? err : tell(cmd, &graph);
}

static enum hd_err of_file(struct hd_cmd *cmd, const char *bytes, size_t len)
{
	struct hd_order_graph *graph = NULL;
	uint32_t n = 0;
	enum hd_err err = hd_order_read(&graph, &n, bytes, len, cmd->args.pos[0], &cmd->arena, &cmd->diag);

	for (uint32_t i = 0; i < n && !err; i++)
		err = tell(cmd, &graph[i]);
	return err;
}

static enum hd_err verb_plan_order(struct hd_cmd *cmd)
{
	return hd_cmd_graph_file(cmd, &(struct hd_cmd_graph_readers){ of_file, of_job });
}

const struct hd_verb hd_verb_plan_order = {
	.name = "plan order", .args = "FILE|JOB", .npos_min = 1, .npos_max = 1,
	.about = "in which order a step should receive what it waits for",
	.more =
		"FILE: {\"recv\": {NAME: TIME}, \"ops\": {NAME: {\"time\": T, \"inputs\": [NAME, "
		"...]}}}, or {\"cases\": [...]} of such: one channel, one compute unit. JOB: its "
		"parameters over the slowest link of the cluster, and its forward pass; costs as for "
		"`heddle plan JOB`.\n"
		"fifo as declared, random by --seed, tic and tic+ without times (receives that share a "
		"priority come as declared), tac by times (TicTac), search by moves from the best of "
		"these. efficiency: 100 % is all beside everything, 0 % nothing beside anything.",
	.opts = HD_OPTS(HD_OPT_ORDER, HD_OPT_SEED, HD_OPT_WORKERS, HD_OPT_CLUSTER, HD_OPT_PROFILE,
		HD_OPT_FORCE_PROFILE, HD_OPT_SET),
	.run = verb_plan_order, .test = "program_plan_order.sh",
};
