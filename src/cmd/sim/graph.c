#include <stdio.h>
#include <string.h>

#include "functions/service.h"
#include "cmd/json_line.h"
#include "cmd/sim/graph_rates.h"

/* simulate graph: what functions are worth to the published runs. */

static const char *const default_prices[] = { "2021", "2025" };
enum { NDEFAULT = sizeof default_prices / sizeof *default_prices };

static void put_priced(struct hd_json_writer *w, const char *key, const struct hd_gval_priced *p)
{
	hd_json_open_object(w, key);
	hd_json_put_f64(w, "epoch_s", p->seconds);
	hd_json_put_f64(w, "epoch_usd", p->usd);
	hd_json_put_i64(w, "slots", p->slots);
	hd_json_put_f64(w, "calls", p->calls);
	hd_json_close(w);
}

static void put_run(struct hd_json_writer *w, const struct hd_gval_run *run, const struct hd_gval_answer *a,
	uint32_t slower)
{
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "model", hd_gval_models[run->model]);
	hd_json_put_text(w, "graph", run->graph.name);
	hd_json_put_i64(w, "machines", run->machines);
	hd_json_put_text(w, "machine", run->machine.name);
	put_priced(w, "cpu", &a->cpu);
	put_priced(w, "functions", &a->functions);
	hd_json_put_f64(w, "dense_share", a->dense);
	hd_json_put_f64(w, "call_over_core", a->call_over_core);
	hd_json_put_f64(w, "value_ratio", a->ratio);
	hd_json_put_f64(w, "published_ratio", run->ratio);
	hd_json_put_bool(w, "functions_pay", a->ratio > 1);
	hd_json_put_i64(w, "pay_if_products_slower", slower);
	hd_json_close(w);
}

static void print_run(const struct hd_gval_run *run, const struct hd_gval_answer *a, uint32_t slower)
{
	printf("%-4s %-13s %2u x %-12s %9.3f %10.6f %9.3f %10.6f %5u %5.1f%% %6.3f %9.2f  ",
		hd_gval_models[run->model], run->graph.name, run->machines, run->machine.name, a->cpu.seconds,
		a->cpu.usd, a->functions.seconds, a->functions.usd, a->functions.slots, a->dense * 100,
			a->ratio,
		run->ratio);
	if (a->ratio > 1) {
		printf("functions pay\n");
		return;
	}
	printf("functions do not pay: a call takes %.1f times its work here; ", a->call_over_core);
	if (slower)
		printf("they would with products %u times slower\n", slower);
	else
		printf("nor with products %d times slower\n", HD_GVAL_SLOWER);
}

static enum hd_err each_run(struct hd_cmd *cmd, const struct hd_gval_rates *rates,
	const struct hd_fn_price *price, struct hd_json_writer *w)
{
	const char *model = hd_args_text(&cmd->args, HD_OPT_GRAPH_MODEL, NULL);
	enum hd_err err = HD_OK;

	for (const struct hd_gval_run *run = hd_gval_runs; run->graph.name && !err; run++) {
		struct hd_gval_answer answer;
		uint32_t slower = 0;
		if (model && strcmp(model, hd_gval_models[run->model]) != 0)
			continue;
		err = hd_gval_answer(run, rates, price, &cmd->arena, &answer, &cmd->diag);
		err = err ? err : hd_gval_pays_from(run, rates, price, &cmd->arena, &slower, &cmd->diag);
		if (!err && w)
			put_run(w, run, &answer, slower);
		else if (!err)
			print_run(run, &answer, slower);
	}
	return err;
}

struct prices { struct hd_fn_price at[NDEFAULT]; size_t n; };

/* Those of --prices, else the default ones: before anything is measured. */
static enum hd_err read_prices(struct hd_cmd *cmd, struct prices *prices)
{
	const bool given = cmd->args.has[HD_OPT_GRAPH_PRICES];
	enum hd_err err = HD_OK;

	prices->n = given ? 1 : NDEFAULT;
	for (size_t i = 0; i < prices->n && !err; i++)
		err = hd_fn_price_named(&cmd->fs, given ? cmd->args.text[HD_OPT_GRAPH_PRICES] :
			default_prices[i], &cmd->arena, &prices->at[i], &cmd->diag);
	return err;
}

static enum hd_err each_price(struct hd_cmd *cmd, const struct hd_gval_rates *rates,
	const struct prices *prices, struct hd_json_writer *w)
{
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < prices->n && !err; i++) {
		const struct hd_fn_price price = prices->at[i];
		if (w) {
			hd_json_open_object(w, NULL);
			hd_json_put_text(w, "date", price.date);
			hd_json_open_array(w, "runs");
		} else {
			printf("\nprices of %s (%s, by %lld ms), an epoch:\n%-4s %-13s %-17s %9s %10s %9s "
				"%10s %5s "
				"%6s %6s %9s\n", price.date, price.kind, (long long)price.granularity_ms, "",
				"graph", "machines", "CPU s", "CPU $", "with s", "with $", "slots", "dense",
				"value", "published");
		}
		err = each_run(cmd, rates, &price, w);
		if (w && !err)
			hd_json_close(w), hd_json_close(w);
	}
	return err;
}

static void put_rates(struct hd_json_writer *w, const struct hd_gval_rates *rates)
{
	hd_json_open_object(w, "rates");
#define X(name, least, otherwise, most) hd_json_put_f64(w, #name, rates->name);
	HD_GVAL_RATES(X)
#undef X
	hd_json_close(w);
}

static void print_rates(const struct hd_gval_rates *r, const char *file)
{
	printf("a core (%s): %.2f G columns/s gathered, %.2f weighted, %.3f G weights/s of attention, "
		"%.1f GFLOP/s of products\n", file ? file : "measured here", r->gather_per_s * 1e-9,
		r->weighted_per_s * 1e-9, r->softmax_per_s * 1e-9, r->flops_per_s * 1e-9);
	printf("given: functions of %.0f MB with %.0f MB/s, %.1f ms until one begins, %.1f ms of a "
		"connection, at "
		"most %.0f at once; %.2f of the edges that a random split cuts\n", r->memory_mb,
		r->function_bytes_s * 1e-6, r->invoke_ms, r->call_ms, r->concurrent, r->cut);
}

static enum hd_err verb_simulate_graph(struct hd_cmd *cmd)
{
	const char *file = hd_args_text(&cmd->args, HD_OPT_GRAPH_RATES, NULL);
	const bool json = cmd->args.has[HD_OPT_JSON];
	struct hd_gval_rates rates;
	struct hd_json_line line;
	struct prices prices;
	enum hd_err err = read_prices(cmd, &prices);

	if (!err)
		err = file ? hd_graph_rates_read(cmd, file, &rates) : hd_graph_rates_measure(cmd, &rates);
	if (err)
		return err;
	struct hd_json_writer *w = json ? hd_json_line_open(cmd, &line) : NULL;
	if (json) {
		put_rates(w, &rates);
		hd_json_open_array(w, "prices");
	} else {
		print_rates(&rates, file);
	}
	err = each_price(cmd, &rates, &prices, w);
	if (!err && json) {
		hd_json_close(w);
		hd_json_line_print(&line);
	}
	return err;
}

const struct hd_verb hd_verb_simulate_graph = {
	.name = "simulate graph", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "whether functions are worth their price to published runs on whole graphs",
	.more =
		"Plays an epoch of each published run (four graphs, GCN and GAT) on its machines, with no "
		"functions and with the number of slots of 1, 2, 4, ... per machine that is worth most, and "
		"prints "
		"the ratio of the values, 1 / (seconds x dollars), beside the published one "
		"(docs/functions.md). `dense`: the share of the cores' work that functions can take.\n"
		"--prices NAME: 2020, 2021, 2025 or a file (`chaos lambda --price`); machines cost what "
		"reproduces the published costs.\n"
		"--rates FILE: {\"gather_per_s\": 3e9, \"weighted_per_s\": 3e9, \"softmax_per_s\": 2e8, "
		"\"flops_per_s\": 5e10} of one core, else measured here within seconds; optional: invoke_ms "
		"(10), "
		"call_ms (5), function_bytes_s (75e6), memory_mb (1769), concurrent (1000), cut (0.25). "
		"`rates` of "
		"--json is such an object.\n"
		" heddle simulate graph --model gcn --prices 2021",
	.opts = HD_OPTS(HD_OPT_GRAPH_MODEL, HD_OPT_GRAPH_PRICES, HD_OPT_GRAPH_RATES),
	.run = verb_simulate_graph, .test = "program_simulate_graph.sh",
};
