#include <stdio.h>
#include <string.h>

#include "planner/planner.h"
#include "cmd/json_line.h"
#include "cmd/verbs.h"

enum { RANKS_IN_JSON = 4096 };

struct plan_ask {
	struct hd_profile profile;
	struct hd_cuts cuts;
	struct hd_cut_sums sums;
	struct hd_cluster cluster;
	struct hd_auto_ask ask;
};

static enum hd_err read_file(struct hd_cmd *cmd, enum hd_opt opt, const char *what, size_t most,
	const char **text, size_t *len)
{
	uint8_t *bytes = NULL;

	if (!cmd->args.has[opt])
		return hd_fail(&cmd->diag, HD_E_INVAL, "%s? give --%s FILE", what, hd_opts[opt].name);
	enum hd_err err = hd_file_read_all(&cmd->fs, cmd->args.text[opt], &cmd->arena, most, &bytes, len,
		&cmd->diag);
	*text = (const char *)bytes;
	return err;
}

static enum hd_err read_model(struct hd_cmd *cmd, struct plan_ask *g)
{
	const char *text = NULL, *path = cmd->args.text[HD_OPT_PROFILE];
	uint64_t max = hd_args_count(&cmd->args, HD_OPT_MAX_CUTS, HD_CUTS_MAX);
	size_t len = 0;
	enum hd_err err = read_file(cmd, HD_OPT_PROFILE, "of which model", HD_PROFILE_BYTES, &text, &len);

	if (err)
		return err;
	if (max < 1 || max > HD_CUTS_CAP)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--max-cuts is from 1 to %d", HD_CUTS_CAP);
	err = hd_profile_read(&g->profile, text, len, path, &cmd->arena, &cmd->diag);
	if (!err && *g->profile.ignored && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "warning: %s: left out what this version does not know: %s\n", path,
			g->profile.ignored);
	err = err ? err : hd_cuts_make(&g->cuts, &g->profile,
		(struct hd_cuts_how){ (uint32_t)max, cmd->args.has[HD_OPT_COMPRESS] }, path, &cmd->arena,
		&cmd->diag);
	return err ? err : hd_cut_sums_make(&g->sums, &g->profile, &g->cuts, &cmd->arena, &cmd->diag);
}

static enum hd_err read_cluster(struct hd_cmd *cmd, struct plan_ask *g)
{
	const char *text = NULL;
	size_t len = 0;
	enum hd_err err = read_file(cmd, HD_OPT_CLUSTER, "on which devices", 1 << 20, &text, &len);

	return err ? err : hd_cluster_parse(&g->cluster, text, len, cmd->args.text[HD_OPT_CLUSTER],
		&cmd->arena, &cmd->diag);
}

static enum hd_err number(struct hd_cmd *cmd, enum hd_opt opt, uint32_t *out)
{
	if (!cmd->args.has[opt])
		return HD_OK;
	if (cmd->args.count[opt] < 1 || cmd->args.count[opt] > UINT32_MAX)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %llu: a number from 1", hd_opts[opt].name,
			(unsigned long long)cmd->args.count[opt]);
	*out = (uint32_t)cmd->args.count[opt];
	return HD_OK;
}

static enum hd_err read_ask(struct hd_cmd *cmd, struct hd_auto_ask *ask)
{
	static const char *const recompute[] = { [HD_AUTO_IF_NEEDED] = "auto", [HD_AUTO_NEVER] = "none",
		[HD_AUTO_ALWAYS] = "stage" };
	enum hd_err err;

	*ask = (struct hd_auto_ask){ .schedule = cmd->args.text[HD_OPT_SCHEDULE],
		.sequence = cmd->args.has[HD_OPT_SEQUENCE] };
	if (!cmd->args.has[HD_OPT_STEP_VNS])
		return hd_fail(&cmd->diag, HD_E_INVAL, "how many virtual nodes has a step? give --vns V");
	err = number(cmd, HD_OPT_STEP_VNS, &ask->vns);
	err = err ? err : number(cmd, HD_OPT_SHARDS, &ask->tensor_shards);
	err = err ? err : number(cmd, HD_OPT_RANKS, &ask->p);
	err = err ? err : number(cmd, HD_OPT_PIPELINES, &ask->d);
	err = err ? err : number(cmd, HD_OPT_CHUNKS, &ask->v);
	for (int r = 0; r < 3 && cmd->args.has[HD_OPT_RECOMPUTE]; r++)
		if (!strcmp(cmd->args.text[HD_OPT_RECOMPUTE], recompute[r]))
			ask->recompute = (enum hd_auto_recompute)r;
	for (int u = 0; u < HD_NUPDATES && cmd->args.has[HD_OPT_UPDATE]; u++)
		if (!strcmp(cmd->args.text[HD_OPT_UPDATE], hd_update_names[u]))
			ask->update = (enum hd_update_mode)u;
	return err;
}

static enum hd_err write_plan(struct hd_cmd *cmd, const struct plan_ask *g, const struct hd_auto *a)
{
	struct hd_text text;

	if (!cmd->args.has[HD_OPT_OUTPUT])
		return HD_OK;
	hd_text_init(&text, &cmd->arena);
	hd_auto_print(&a->plan[0], &g->sums, &g->cluster, &text);
	if (text.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to print the plan");
	return hd_file_write_atomic(&cmd->fs, cmd->args.text[HD_OPT_OUTPUT], text.at, text.len, &cmd->diag);
}

static void put_seconds(struct hd_json_writer *w, const char *key, int64_t ps)
{
	if (ps < 0)
		hd_json_put_null(w, key);
	else
		hd_json_put_f64(w, key, (double)ps * 1e-12);
}

static void put_shape(struct hd_cmd *cmd, struct hd_json_writer *w, const struct hd_auto_plan *p)
{
	struct hd_text words;

	hd_text_init(&words, &cmd->arena);
	hd_auto_shape_print(p, &words);
	hd_json_put_text(w, "what", words.full ? "" : words.at);
	hd_json_put_text(w, "schedule", p->shape.schedule);
	hd_json_put_i64(w, "t", p->shape.t);
	hd_json_put_i64(w, "p", p->shape.p);
	hd_json_put_i64(w, "d", p->shape.d);
	hd_json_put_i64(w, "v", p->shape.v);
	hd_json_put_text(w, "place", hd_auto_place_name(p->shape.place));
	hd_json_put_i64(w, "devices_used", (int64_t)p->nranks * p->shape.t);
	put_seconds(w, "predicted_s", p->makespan_ps);
	hd_json_put_i64(w, "predicted_ps", p->makespan_ps);
	put_seconds(w, "low_s", p->low_ps);
	put_seconds(w, "high_s", p->high_ps);
	hd_json_put_i64(w, "peak_bytes", p->peak);
}

static void put_stages(struct hd_json_writer *w, const struct plan_ask *g, const struct hd_auto_plan *p)
{
	hd_json_open_array(w, "stages");
	for (uint32_t s = 0; s < p->nstages; s++) {
		uint32_t last = (s + 1 < p->nstages ? p->first[s + 1] : g->cuts.n) - 1;
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "first", p->first[s]);
		hd_json_put_i64(w, "last", last);
		hd_json_put_text(w, "upto", g->cuts.name[last]);
		hd_json_put_i64(w, "replicas", p->replicas[s]);
		hd_json_put_bool(w, "recompute", p->recompute[s]);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "share");
	for (uint32_t q = 0; q < p->npipelines; q++)
		hd_json_put_i64(w, NULL, p->share[q]);
	hd_json_close(w);
	hd_json_open_array(w, "ranks");
	for (uint32_t r = 0; r < p->nranks && r < RANKS_IN_JSON; r++) {
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "device", p->rank[r].device);
		hd_json_put_i64(w, "pipeline", p->rank[r].pipeline);
		put_seconds(w, "busy_s", p->rank[r].busy_ps);
		hd_json_put_i64(w, "peak_bytes", p->rank[r].peak);
		hd_json_put_text(w, "held_back_by", hd_auto_bound_name(p->rank[r].bound));
		hd_json_close(w);
	}
	hd_json_close(w);
}

/* What the bounded search did not go through, though it may be better. */
static void put_left(struct hd_json_writer *w, const struct hd_auto *a)
{
	hd_json_put_u64(w, "not_gone_through", a->nleft);
	hd_json_open_array(w, "not_gone_through_first");
	for (uint64_t k = 0; k < a->nleft && k < HD_AUTO_LEFT; k++) {
		const struct hd_auto_shape *x = &a->left[k].shape;
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "schedule", x->schedule);
		hd_json_put_i64(w, "t", x->t);
		hd_json_put_i64(w, "p", x->p);
		hd_json_put_i64(w, "d", x->d);
		hd_json_put_i64(w, "v", x->v);
		hd_json_put_text(w, "place", hd_auto_place_name(x->place));
		hd_json_put_bool(w, "begun", a->left[k].begun);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void print_json(struct hd_cmd *cmd, const struct plan_ask *g, const struct hd_auto *a, const char *why)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	put_shape(cmd, w, &a->plan[0]);
	hd_json_put_bool(w, "sequence", g->ask.sequence);
	hd_json_put_i64(w, "states", g->cuts.n);
	put_seconds(w, "one_device_s", a->one_ps);
	put_seconds(w, "data_parallel_s", a->data_ps);
	put_stages(w, g, &a->plan[0]);
	hd_json_open_array(w, "alternatives");
	for (uint32_t i = 1; i < a->nplans && (i < 3 || cmd->args.has[HD_OPT_EXPLAIN]); i++) {
		hd_json_open_object(w, NULL);
		put_shape(cmd, w, &a->plan[i]);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_put_u64(w, "shapes", a->nshapes);
	hd_json_put_u64(w, "simulated", a->nsimulated);
	hd_json_put_u64(w, "left_out", a->nlate);
	put_left(w, a);
	hd_json_open_array(w, "why");
	for (; *why; why += strcspn(why, "\n") + 1)
		hd_json_put_bytes(w, NULL, why, strcspn(why, "\n"));
	hd_json_close(w);
	hd_json_line_print(&line);
}

static enum hd_err verb_plan_auto(struct hd_cmd *cmd)
{
	struct plan_ask g;
	struct hd_auto a;
	struct hd_text why;
	enum hd_err err = read_ask(cmd, &g.ask);

	err = err ? err : read_model(cmd, &g);
	err = err ? err : read_cluster(cmd, &g);
	err = err ? err : hd_plan_auto(&a, &g.sums, &g.cluster, &g.ask, &cmd->arena, &cmd->diag);
	err = err ? err : write_plan(cmd, &g, &a);
	if (err)
		return err;
	hd_text_init(&why, &cmd->arena);
	hd_auto_explain(&a, &g.sums, &g.cluster, &g.ask, cmd->args.has[HD_OPT_EXPLAIN], &why);
	if (why.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to print the reasons");
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, &g, &a, why.at);
	else
		fputs(why.at, stdout);
	return HD_OK;
}

const struct hd_verb hd_verb_plan_auto = {
	.name = "plan auto", .args = "", .npos_min = 0, .npos_max = 0,
	.about =
		"choose a plan for a model and a cluster: stages, pipelines, schedule, recomputation; "
		"say why",
	.more =
		"Goes through (t, p, d, v, schedule, placement): t devices a tensor group, p ranks a "
		"pipeline, d pipelines, v stages a rank.\n"
		"Each is cut for fill and steady state under the memory of its devices, the 50 best "
		"estimates are made into schedules, checked and simulated with links and sums of "
		"gradients (fewer where they are very long). The choice is never slower there than one "
		"device or data parallel; what would take more than 2^62 ps is left out and counted. "
		"The same input gives the same bytes everywhere. --update stash|vsync: every virtual "
		"node updates by itself, in one pipeline of -p stages (or of as many as are fastest: "
		"they become part of the job).\n"
		"-o PLAN: the schedule of all ranks with its map as remarks, for `heddle plan check` "
		"and `plan draw`. -p, --pipelines, --chunks, --schedule, --recompute: keep this, choose "
		"the rest. Nothing works: exit 2, the reason and what would.\n"
		"A cluster file: kinds of devices (speed 1: the one profiled; memory), levels of links "
		"innermost first, devices in order:\n"
		"  kinds: {new: {speed: 1, memory: 16GiB}, old: {speed: 0.5}}\n"
		"  levels: [{name: server, components: 4, bytes_per_s: 12e9, latency_ns: 5000}, {name: "
		"rack, components: 2, bytes_per_s: 1.25e9}]\n"
		"  devices: [{kind: new, count: 4}, {kind: old, count: 4}]",
	.opts = HD_OPTS(HD_OPT_PROFILE, HD_OPT_CLUSTER, HD_OPT_STEP_VNS, HD_OPT_SHARDS, HD_OPT_SEQUENCE,
		HD_OPT_UPDATE, HD_OPT_RANKS, HD_OPT_PIPELINES, HD_OPT_CHUNKS, HD_OPT_SCHEDULE,
		HD_OPT_RECOMPUTE, HD_OPT_EXPLAIN, HD_OPT_OUTPUT, HD_OPT_MAX_CUTS, HD_OPT_COMPRESS),
	.run = verb_plan_auto, .test = "program_plan_auto.sh",
};
