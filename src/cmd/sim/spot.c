#include <stdio.h>

#include "spot/replay.h"
#include "clustersim/availability.h"
#include "cmd/json_line.h"

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

static void print_json(struct hd_cmd *cmd, const struct hd_spot_model *model, const struct hd_spot_replay *r)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "name", model->name);
	hd_json_put_i64(w, "steps", (int64_t)r->steps);
	hd_json_put_i64(w, "removals", (int64_t)r->removals);
	hd_json_put_i64(w, "level2", (int64_t)r->level2);
	hd_json_put_i64(w, "rendezvous", (int64_t)r->rendezvous);
	hd_json_put_i64(w, "absorbed", (int64_t)r->absorbed);
	hd_json_open_object(w, "asked_by_rule");
	for (int i = HD_RECONFIGURE_GO_ON + 1; i < HD_NRECONFIGURES; i++)
		hd_json_put_i64(w, hd_reconfigure_names[i], (int64_t)r->asked[i]);
	hd_json_close(w);
	hd_json_put_f64(w, "samples_per_s", r->samples_per_s);
	hd_json_put_f64(w, "usd_per_h", r->usd_per_h);
	hd_json_put_f64(w, "value", r->value);
	hd_json_put_f64(w, "on_demand_value", r->on_demand);
	hd_json_put_f64(w, "value_ratio", r->ratio);
	hd_json_put_i64(w, "end_ms", r->end_ms);
	hd_json_open_object(w, "paid");
	hd_json_put_i64(w, "ms", r->paid.ms);
	hd_json_put_i64(w, "nano_usd", r->paid.nano_usd);
	for (int p = 0; p < HD_NLEDGER; p++) {
		hd_json_open_object(w, hd_ledger_names[p]);
		hd_json_put_i64(w, "ms", r->ledger.ms[p]);
		hd_json_put_i64(w, "nano_usd", r->paid.part[p]);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_line_print(&line);
}

static void print_text(const struct hd_spot_model *model, const struct hd_spot_replay *r)
{
	printf("%s, %.3f h\n  steps              %llu\n  samples/s          %.6g\n"
		"  $/h                %.6g\n", model->name, (double)r->end_ms / 3.6e6,
		(unsigned long long)r->steps, r->samples_per_s, r->usd_per_h);
	printf("  samples/$          %.6g, %.4f times on-demand machines (%.6g)\n", r->value, r->ratio,
		r->on_demand);
	printf("  removals           %llu: %llu absorbed by a neighbour, %llu beyond that (level 2)\n",
		(unsigned long long)r->removals, (unsigned long long)r->absorbed,
		(unsigned long long)r->level2);
	printf("  rendezvous         %llu", (unsigned long long)r->rendezvous);
	for (int i = HD_RECONFIGURE_GO_ON + 1; i < HD_NRECONFIGURES; i++)
		printf("%s%llu to %s", i == HD_RECONFIGURE_GO_ON + 1 ? "; at commits " : ", ",
			(unsigned long long)r->asked[i], hd_reconfigure_names[i]);
	printf("\n  %-9s %14s %7s %14s\n", "paid", "device hours", "%", "$");
	for (int p = 0; p < HD_NLEDGER; p++)
		printf("  %-9s %14.3f %7.2f %14.4f\n", hd_ledger_names[p], (double)r->ledger.ms[p] / 3.6e6,
			r->paid.ms ? 100.0 * (double)r->ledger.ms[p] / (double)r->paid.ms : 0,
			(double)r->paid.part[p] / 1e9);
	printf("  %-9s %14.3f %7.2f %14.4f\n", "all", (double)r->paid.ms / 3.6e6, 100.0,
		(double)r->paid.nano_usd / 1e9);
}

static enum hd_err verb_simulate_spot(struct hd_cmd *cmd)
{
	struct hd_spot_replay replay;
	struct hd_spot_trace trace;
	struct hd_spot_model model;
	enum hd_err err = read_model(cmd, &model);

	err = err ? err : read_trace(cmd, &trace);
	err = err ? err : hd_spot_replay(&replay, &trace, &model, &cmd->arena, &cmd->diag);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, &model, &replay);
	else
		print_text(&model, &replay);
	return HD_OK;
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
		"usd_h (0.91), on_demand.usd_h (3.06), redundant and bubble (shares of a step, for the "
		"ledger).\n"
		" heddle simulate spot --trace p3-trace.csv --model bert.json",
	.opts = HD_OPTS(HD_OPT_SPOT_TRACE, HD_OPT_SPOT_MODEL, HD_OPT_SEED),
	.run = verb_simulate_spot, .test = "program_simulate_spot.sh",
};
