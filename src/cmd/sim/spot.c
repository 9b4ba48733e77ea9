#include "cmd/sim/spot.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "spot/replay.h"
#include "clustersim/availability.h"
#include "cmd/json_line.h"
#include "cmd/ledger.h"

/* What training on machines that come and go would have reached and cost. */

enum { SPOT_FILE_BYTES = 64 << 20 };

static enum hd_err read_file(struct hd_cmd *cmd, enum hd_opt opt, const char *what, uint8_t **bytes,
	size_t *len)
{
	if (!cmd->args.has[opt])
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s FILE %s", hd_opts[opt].name, what);
	return hd_file_read_all(&cmd->fs, cmd->args.text[opt], &cmd->arena, SPOT_FILE_BYTES, bytes, len,
		&cmd->diag);
}

static enum hd_err read_model(struct hd_cmd *cmd, struct hd_spot_model *model)
{
	const struct hd_json *json;
	uint8_t *bytes;
	size_t len;
	enum hd_err err = read_file(cmd, HD_OPT_SPOT_MODEL, "says what a step takes on 1, 2, ... pipelines",
		&bytes, &len);

	err = err ? err : hd_json_parse(&cmd->arena, cmd->args.text[HD_OPT_SPOT_MODEL], (const char *)bytes,
		len, &json, &cmd->diag);
	return err ? err : hd_spot_model_read(model, json, &cmd->diag);
}

static enum hd_err read_trace(struct hd_cmd *cmd, struct hd_spot_trace *trace)
{
	uint8_t *bytes;
	size_t len;
	enum hd_err err = read_file(cmd, HD_OPT_SPOT_TRACE, "says when machines came and went", &bytes, &len);

	return err ? err : hd_availability_read(trace, cmd->args.text[HD_OPT_SPOT_TRACE], bytes, len,
		cmd->args.count[HD_OPT_SEED], &cmd->arena, &cmd->diag);
}

/* What was asked for, and checkpoints alone at their best interval. */
struct spot_played { struct hd_spot_way way; struct hd_spot_replay of, checkpoints; uint32_t every; };

static enum hd_err read_way(struct hd_cmd *cmd, const char *text, struct hd_spot_way *way, bool *best)
{
	static const struct { const char *word; enum hd_spot_strategy strategy; } row[] = {
		{ "shadow", HD_SPOT_EAGER }, { "reroute", HD_SPOT_REROUTE }, { "checkpoint", HD_SPOT_CHECKPOINT } };
	const size_t len = strcspn(text, ":");
	uint64_t every = 0;
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		if (strlen(row[i].word) != len || strncmp(row[i].word, text, len) != 0)
			continue;
		if (text[len])
			err = hd_num_u64(text + len + 1, INT32_MAX, &every, &cmd->diag);
		*best = row[i].strategy != HD_SPOT_EAGER && !text[len];
		*way = (struct hd_spot_way){ row[i].strategy, (uint32_t)every, 0 };
		return err;
	}
	return hd_fail(&cmd->diag, HD_E_INVAL, "--resilience %.40s: it is shadow, reroute or checkpoint, "
		"each with :STEPS between two checkpoints", text);
}

static enum hd_err play(struct hd_cmd *cmd, struct spot_played *p, const char *way,
	const struct hd_spot_trace *trace, const struct hd_spot_model *model)
{
	bool best = false;
	enum hd_err err = read_way(cmd, way, &p->way, &best);

	err = err ? err : hd_spot_replay_best(&p->checkpoints, &p->every, HD_SPOT_CHECKPOINT, trace, model,
		&cmd->diag);
	if (!err && best)
		return hd_spot_replay_best(&p->of, &p->way.every, p->way.strategy, trace, model, &cmd->diag);
	return err ? err : hd_spot_replay(&p->of, trace, model, &p->way, &cmd->arena, &cmd->diag);
}

static const char *word_of(const struct hd_spot_way *way)
{
	return way->strategy == HD_SPOT_EAGER ? "shadow" : hd_spot_strategy_names[way->strategy];
}

static void print_json(struct hd_cmd *cmd, const struct hd_spot_model *model, const struct spot_played *p)
{
	const struct hd_spot_replay *r = &p->of;
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "name", model->name);
	hd_json_put_text(w, "resilience", word_of(&p->way));
	hd_json_put_i64(w, "checkpoint_every", p->way.every);
	hd_json_put_i64(w, "steps", (int64_t)r->steps);
	hd_json_put_i64(w, "removals", (int64_t)r->removals);
	hd_json_put_i64(w, "level2", (int64_t)r->level2);
	hd_json_put_i64(w, "rendezvous", (int64_t)r->rendezvous);
	hd_json_put_i64(w, "absorbed", (int64_t)r->absorbed);
	hd_json_put_i64(w, "evacuated", (int64_t)r->evacuated);
	hd_json_put_i64(w, "given_up", (int64_t)r->given_up);
	hd_json_open_object(w, "asked_by_rule");
	for (int i = HD_RECONFIGURE_GO_ON + 1; i < HD_NRECONFIGURES; i++)
		hd_json_put_i64(w, hd_reconfigure_names[i], (int64_t)r->asked[i]);
	hd_json_close(w);
	hd_json_put_f64(w, "samples_per_s", r->samples_per_s);
	hd_json_put_f64(w, "usd_per_h", r->usd_per_h);
	hd_json_put_f64(w, "value", r->value);
	hd_json_put_f64(w, "on_demand_value", r->on_demand);
	hd_json_put_f64(w, "value_ratio", r->ratio);
	hd_json_open_object(w, "checkpoints_alone");
	hd_json_put_i64(w, "every", p->every);
	hd_json_put_i64(w, "steps", (int64_t)p->checkpoints.steps);
	hd_json_put_f64(w, "value", p->checkpoints.value);
	hd_json_close(w);
	hd_json_put_i64(w, "saves", (int64_t)r->saves);
	hd_json_put_i64(w, "steps_again", (int64_t)r->again);
	hd_json_put_i64(w, "end_ms", r->end_ms);
	hd_ledger_put_json(&r->ledger, &r->paid, w);
	hd_json_line_print(&line);
}

static void print_text(const struct hd_spot_model *model, const struct spot_played *p)
{
	const struct hd_spot_replay *r = &p->of;

	printf("%s, %.3f h\n  steps              %llu\n  samples/s          %.6g\n"
		"  $/h                %.6g\n", model->name, (double)r->end_ms / 3.6e6,
		(unsigned long long)r->steps, r->samples_per_s, r->usd_per_h);
	printf("  samples/$          %.6g, %.4f times on-demand machines (%.6g)\n", r->value, r->ratio,
		r->on_demand);
	printf("  checkpoints alone  %.6g samples/$ at their best, every %u steps\n", p->checkpoints.value,
		p->every);
	printf("  removals           %llu: %llu absorbed by a neighbour, %llu beyond that (level 2)\n",
		(unsigned long long)r->removals, (unsigned long long)r->absorbed,
		(unsigned long long)r->level2);
	printf("  rendezvous         %llu", (unsigned long long)r->rendezvous);
	for (int i = HD_RECONFIGURE_GO_ON + 1; i < HD_NRECONFIGURES; i++)
		printf("%s%llu to %s", i == HD_RECONFIGURE_GO_ON + 1 ? "; at commits " : ", ",
			(unsigned long long)r->asked[i], hd_reconfigure_names[i]);
	printf("\n");
	hd_ledger_print(&r->ledger, &r->paid);
}

enum hd_err hd_simulate_spot(struct hd_cmd *cmd, const char *way, const struct hd_spot_trace *trace)
{
	struct spot_played played;
	struct hd_spot_model model;
	enum hd_err err = read_model(cmd, &model);

	err = err ? err : play(cmd, &played, way, trace, &model);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, &model, &played);
	else
		print_text(&model, &played);
	return HD_OK;
}

static enum hd_err verb_simulate_spot(struct hd_cmd *cmd)
{
	struct hd_spot_trace trace;
	enum hd_err err = read_trace(cmd, &trace);

	return err ? err : hd_simulate_spot(cmd, hd_args_text(&cmd->args, HD_OPT_RESILIENCE, "shadow"),
		&trace);
}

const struct hd_verb hd_verb_simulate_spot = {
	.name = "simulate spot", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "what training on machines that come and go reaches, and what it costs",
	.more =
		"Plays the first 40,000 s of a trace against a table of a model's steps: losses that a "
		"neighbour absorbs, rendezvous, waiting machines (docs/spot.md).\n"
		"--trace FILE: milliseconds,add|remove,name; samples of a count; or name,start,stop. Of a "
		"count that falls --seed draws the machines that go.\n"
		"--model FILE: {\"name\": \"BERT\", \"stages\": 12, \"batch\": 264, \"local_ms\": 20000, "
		"\"step_ms\": [4310, 2390, 1805, 1450], \"on_demand\": {\"nodes\": 20, \"step_ms\": 2510}, "
		"\"wanted\": 32}; step_ms of 1, 2, ... pipelines. Optional: wanted (machines taken at once), "
		"usd_h (0.91), on_demand.usd_h (3.06; prices of 2021), redundant and bubble (shares of a "
		"step, for the ledger), boot_ms, rendezvous_ms, save_ms, reload_ms, pause_ms, end_ms.\n"
		"--resilience WAY: shadow, reroute or checkpoint; with :STEPS a checkpoint is written so "
		"often (0: never), else, but for shadows, at the best interval. "
		"What checkpoints alone are worth at their best interval is always said beside it.\n"
		" heddle simulate spot --trace p3-trace.csv --model bert.json",
	.opts = HD_OPTS(HD_OPT_SPOT_TRACE, HD_OPT_SPOT_MODEL, HD_OPT_RESILIENCE, HD_OPT_SEED),
	.run = verb_simulate_spot, .test = "program_simulate_spot.sh",
};
