#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "planner/order.h"
#include "cmd/json_line.h"
#include "cmd/plan/job.h"
#include "cmd/plan/schedule.h"

struct order_summary { const struct hd_order_graph *graph; struct hd_order order[HD_NORDERS];
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
	const struct hd_order *o = &t->order[t->mode];

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
	const struct hd_order *o = &t->order[t->mode];
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

/* Parameters come over the slowest level of the cluster. */
static enum hd_err of_job(struct hd_cmd *cmd)
{
	struct hd_plan_input *in = hd_arena_take(&cmd->arena, 1, sizeof *in);
	struct hd_order_graph graph;

	if (!in)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a job");
	enum hd_err err = hd_plan_input_read(cmd, in);
	if (err)
		return err;
	const struct hd_cluster_level *outer = &in->cluster.level[in->cluster.nlevels - 1];
	err = hd_order_of_profile(&graph, &in->profile, outer->bytes_per_s, outer->latency_ps, &cmd->arena,
		&cmd->diag);
	return err ? err : tell(cmd, &graph);
}

/* A job in JSON has a model, a graph of receives or gradients has none. */
static bool is_job(struct hd_cmd *cmd, const char *text, size_t len)
{
	const struct hd_json *root;
	struct hd_diag why = { "" };

	if (text[strspn(text, " \t\r\n")] != '{')
		return hd_cmd_is_job(text);
	return !hd_json_parse(&cmd->arena, "job", text, len, &root, &why) && hd_json_find(root, "model");
}

enum hd_err hd_cmd_graph_file(struct hd_cmd *cmd, uint8_t **bytes, size_t *len, bool *job)
{
	static const enum hd_opt of_jobs[] = { HD_OPT_WORKERS, HD_OPT_CLUSTER, HD_OPT_PROFILE,
		HD_OPT_FORCE_PROFILE };
	enum hd_err err = hd_file_read_all(&cmd->fs, cmd->args.pos[0], &cmd->arena, HD_JSON_BYTES, bytes, len,
		&cmd->diag);

	*job = !err && is_job(cmd, (const char *)*bytes, *len);
	for (size_t i = 0; i < sizeof of_jobs / sizeof *of_jobs && !err && !*job; i++)
		if (cmd->args.has[of_jobs[i]])
			err = hd_fail(&cmd->diag, HD_E_INVAL,
				"--%s belongs to a JOB; the file says what takes how long",
				hd_opts[of_jobs[i]].name);
	return err;
}

static enum hd_err verb_plan_order(struct hd_cmd *cmd)
{
	struct hd_order_graph *graph = NULL;
	uint8_t *bytes = NULL;
	size_t len = 0;
	uint32_t n = 0;
	bool job = false;
	enum hd_err err = hd_cmd_graph_file(cmd, &bytes, &len, &job);

	if (err)
		return err;
	if (job)
		return of_job(cmd);
	err = hd_order_read(&graph, &n, (const char *)bytes, len, cmd->args.pos[0], &cmd->arena, &cmd->diag);
	for (uint32_t i = 0; i < n && !err; i++)
		err = tell(cmd, &graph[i]);
	return err;
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
