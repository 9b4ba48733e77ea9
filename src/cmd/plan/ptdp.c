#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "planner/ptdp_plan.h"
#include "cmd/json_line.h"
#include "cmd/verbs.h"
#include "cmd/plan/stages.h"

/* "3,4,5" into out[0..n): how many there are, 0 if one is no count or there are more than n. */
static uint32_t counts(const char *list, uint32_t out[], uint32_t n)
{
	struct hd_diag why = { "" };
	uint32_t at = 0;

	for (;; at++) {
		size_t len = strcspn(list, ",");
		char one[HD_NUM_CAP];
		uint64_t value;
		if (at == n || len >= sizeof one)
			return 0;
		memcpy(one, list, len);
		one[len] = 0;
		if (hd_num_u64(one, UINT32_MAX, &value, &why))
			return 0;
		out[at] = (uint32_t)value;
		if (!list[len])
			return at + 1;
		list += len + 1;
	}
}

static enum hd_err read_count(struct hd_cmd *cmd, enum hd_opt opt, uint32_t *out)
{
	if (cmd->args.has[opt] && (cmd->args.count[opt] < 1 || cmd->args.count[opt] > UINT32_MAX))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: 1 or more", hd_opts[opt].name);
	*out = (uint32_t)cmd->args.count[opt];
	return HD_OK;
}

static enum hd_err read_ask(struct hd_cmd *cmd, struct hd_ptdp_ask *ask)
{
	const char *model = cmd->args.text[HD_OPT_MODEL], *devices = cmd->args.text[HD_OPT_DEVICES];
	uint32_t x[5];

	*ask = (struct hd_ptdp_ask){ .site = { hd_ptdp_devices, hd_ptdp_fitted, HD_PTDP_MIXED_ADAM, 0,
		cmd->args.has[HD_OPT_SEQUENCE] } };
	if (!model || !devices || !cmd->args.has[HD_OPT_BATCH])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"which model, on how many devices, with what batch? give --model "
			"layers,hidden,heads,vocabulary,sequence --devices N --batch B, as --model "
			"128,25600,160,51200,2048 --devices 3072 --batch 3072");
	if (counts(model, x, 5) != 5)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--model %s: five counts, layers,hidden,heads,vocabulary,sequence", model);
	ask->model = (struct hd_ptdp_model){ x[0], x[1], x[2], x[3], x[4] };
	if (counts(devices, &ask->ndevices, 1) != 1)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--devices %s: a count; they are %s", devices,
			hd_ptdp_devices[0].name);
	enum hd_err err = read_count(cmd, HD_OPT_BATCH, &ask->batch);
	if (!err)
		err = read_count(cmd, HD_OPT_VN_SIZE, &ask->b);
	return err ? err : hd_cmd_memory(cmd, &ask->site.memory);
}

/* --at t,p,d[,b[,v[,recomputation]]] */
static enum hd_err read_split(struct hd_cmd *cmd, struct hd_ptdp_split *split)
{
	const char *text = cmd->args.text[HD_OPT_AT], *word = NULL;
	char numbers[HD_NUM_CAP * 4];
	uint32_t x[5] = { 0, 0, 0, 1, 1 }, r = HD_PTDP_FULL;

	size_t len = strlen(text);
	for (uint32_t commas = 0, i = 0; i < len && !word; i++) {
		commas += text[i] == ',';
		if (commas == 5)
			word = text + i + 1;
	}
	if (word) {
		r = 0;
		while (r < HD_NPTDP_RECOMPUTES && strcmp(word, hd_ptdp_recompute_names[r]) != 0)
			r++;
		len = (size_t)(word - text) - 1;
	}
	if (len < sizeof numbers && r < HD_NPTDP_RECOMPUTES) {
		memcpy(numbers, text, len);
		numbers[len] = 0;
		if (counts(numbers, x, 5) >= 3) {
			*split = (struct hd_ptdp_split){ .t = x[0], .p = x[1], .d = x[2], .b = x[3],
				.v = x[4], .recompute = (enum hd_ptdp_recompute)r };
			return HD_OK;
		}
	}
	return hd_fail(&cmd->diag, HD_E_INVAL,
		"--at %s: t,p,d, then b, v and none, selective or full if you like, as 8,64,6,1,1,full",
		text);
}

static double seconds(int64_t ps) { return (double)ps / 1e12; }

static void put_split(struct hd_json_writer *w, const struct hd_ptdp_split *split)
{
	hd_json_put_i64(w, "t", split->t);
	hd_json_put_i64(w, "p", split->p);
	hd_json_put_i64(w, "d", split->d);
	hd_json_put_i64(w, "b", split->b);
	hd_json_put_i64(w, "v", split->v);
	hd_json_put_text(w, "recompute", hd_ptdp_recompute_names[split->recompute]);
}

static void put_model(struct hd_json_writer *w, const struct hd_ptdp_model *model)
{
	hd_json_open_object(w, "model");
	hd_json_put_i64(w, "layers", model->layers);
	hd_json_put_i64(w, "hidden", model->hidden);
	hd_json_put_i64(w, "heads", model->heads);
	hd_json_put_i64(w, "vocabulary", model->vocab);
	hd_json_put_i64(w, "sequence", model->seq);
	/* below 2^54 by the limits of a model */
	hd_json_put_i64(w, "parameters", (int64_t)hd_ptdp_params(model));
	hd_json_close(w);
}

static int64_t limit(const struct hd_ptdp_ask *ask) { return ask->site.memory ? ask->site.memory :
	ask->site.device->memory; }

static void put_cost(struct hd_json_writer *w, const struct hd_ptdp_ask *ask, const struct hd_ptdp_plan *plan)
{
	const struct hd_ptdp_cost *cost = &plan->cost;
	struct hd_ptdp_volume volume = hd_ptdp_volume(&ask->model, &plan->split, cost->m, true);
	const struct { const char *name; double share; } shares[] = {
		{ "products", cost->products }, { "memory", cost->memory }, { "tensor", cost->tensor }, { "pipeline", cost->pipeline }, { "bubble", cost->bubble },
		{ "data", cost->data }, { "update", cost->update },
	};

	hd_json_put_f64(w, "flop_per_step", hd_ptdp_flop(&ask->model, ask->batch, plan->split.recompute));
	hd_json_put_f64(w, "tflop_per_s_device", cost->flop_per_s / 1e12);
	hd_json_put_f64(w, "utilization", hd_ptdp_utilization(&ask->model, &plan->split, ask->batch,
		plan->step_ps, ask->site.device));
	hd_json_open_object(w, "shares");
	for (uint32_t i = 0; i < sizeof shares / sizeof *shares; i++)
		hd_json_put_f64(w, shares[i].name, shares[i].share);
	hd_json_close(w);
	hd_json_open_object(w, "memory");
	hd_json_put_i64(w, "state", cost->need.state);
	hd_json_put_i64(w, "activations", cost->need.activations);
	hd_json_put_i64(w, "work", cost->need.work);
	hd_json_put_i64(w, "total", cost->need.total);
	hd_json_put_i64(w, "limit", limit(ask));
	hd_json_close(w);
	hd_json_open_object(w, "elements_sent");
	hd_json_put_f64(w, "tensor", volume.tensor);
	hd_json_put_f64(w, "pipeline", volume.pipeline);
	hd_json_put_f64(w, "data", volume.data);
	hd_json_close(w);
}

static void print_json(struct hd_cmd *cmd, const struct hd_ptdp_ask *ask, const struct hd_ptdp_plan *plan)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	put_model(w, &ask->model);
	hd_json_put_text(w, "device", ask->site.device->name);
	hd_json_put_i64(w, "devices", ask->ndevices);
	hd_json_put_i64(w, "idle", plan->idle);
	hd_json_put_i64(w, "batch", ask->batch);
	put_split(w, &plan->split);
	hd_json_put_bool(w, "sequence", ask->site.sequence);
	hd_json_put_text(w, "schedule", plan->schedule);
	hd_json_put_i64(w, "virtual_nodes", plan->cost.m);
	hd_json_put_f64(w, "predicted_s", seconds(plan->step_ps));
	hd_json_put_f64(w, "formula_s", seconds(plan->cost.step_ps));
	hd_json_put_bool(w, "simulated", plan->simulated);
	put_cost(w, ask, plan);
	hd_json_open_array(w, "choices");
	for (uint32_t i = 0; i < plan->nchoices; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "choice", plan->choice[i].what);
		hd_json_put_text(w, "why", plan->choice[i].why);
		hd_json_close(w);
	}
	hd_json_close(w);
	if (plan->next.t) {
		hd_json_open_object(w, "next");
		put_split(w, &plan->next);
		hd_json_put_f64(w, "predicted_s", seconds(plan->next_ps));
		hd_json_close(w);
	}
	hd_json_line_print(&line);
}

static void print_text(const struct hd_ptdp_ask *ask, const struct hd_ptdp_plan *plan)
{
	const struct hd_ptdp_split *s = &plan->split;
	const struct hd_ptdp_cost *cost = &plan->cost;

	printf("%.4g parameters, a batch of %u on %u of %u %s\n\n", hd_ptdp_params(&ask->model), ask->batch,
		ask->ndevices - plan->idle, ask->ndevices,
		ask->site.device->name);
	for (uint32_t i = 0; i < plan->nchoices; i++)
		printf("%-20s %s\n", plan->choice[i].what, plan->choice[i].why);
	printf("\nschedule             %s, %u virtual nodes of %u samples in each of %u pipelines\n",
		plan->schedule, cost->m, s->b, s->d);
	printf("step                 %.6g s (%s), %.1f TFLOP/s a device, %.1f %% of the peak for the "
		"model's own operations\n", seconds(plan->step_ps),
		plan->simulated ? "simulated" : "by the formula", cost->flop_per_s / 1e12,
		100 * hd_ptdp_utilization(&ask->model, s, ask->batch, plan->step_ps, ask->site.device));
	printf("of the step          products %.1f %%, memory %.1f %%, tensor sums %.1f %%, transfers %.1f "
		"%%, bubble %.1f %%, gradients %.1f %%, "
		"update %.1f %%\n", 100 * cost->products, 100 * cost->memory, 100 * cost->tensor,
		100 * cost->pipeline, 100 * cost->bubble,
		100 * cost->data, 100 * cost->update);
	printf("memory               %.1f of %.1f GB: state %.1f, activations %.1f, work %.1f\n",
		(double)cost->need.total / 1e9, (double)limit(ask) / 1e9,
		(double)cost->need.state / 1e9, (double)cost->need.activations / 1e9,
		(double)cost->need.work / 1e9);
	if (plan->next.t)
		printf("next best            t=%u p=%u d=%u b=%u v=%u, recomputation %s: %.6g s\n",
			plan->next.t, plan->next.p, plan->next.d,
			plan->next.b, plan->next.v, hd_ptdp_recompute_names[plan->next.recompute],
			seconds(plan->next_ps));
}

static double magnitude(double x) { return x < 0 ? -x : x; }

/* Mean and worst magnitude of the errors of the rows that are not among `fit`, with shares fitted to
 * those. */
static void judge_fit(const uint32_t fit[3], double *mean, double *worst)
{
	struct hd_ptdp_shares shares = hd_ptdp_fit(fit, 3, hd_ptdp_devices);
	double sum = 0;

	*worst = 0;
	for (uint32_t i = 0; i < HD_PTDP_RUNS; i++) {
		if (i == fit[0] || i == fit[1] || i == fit[2])
			continue;
		double error = magnitude(hd_ptdp_error(&hd_ptdp_runs[i], &shares, hd_ptdp_devices));
		sum += error;
		*worst = error > *worst ? error : *worst;
	}
	*mean = sum / (HD_PTDP_RUNS - 3);
}

static bool next_fit(uint32_t fit[3])
{
	for (uint32_t i = 3; i-- > 0;)
		if (fit[i] < HD_PTDP_RUNS - 3 + i) {
			fit[i]++;
			for (uint32_t j = i + 1; j < 3; j++)
				fit[j] = fit[j - 1] + 1;
			return true;
		}
	return false;
}

static bool is_fitted(uint32_t i) { return i == hd_ptdp_fit_rows[0] || i == hd_ptdp_fit_rows[1] ||
	i == hd_ptdp_fit_rows[2]; }

static struct hd_ptdp_cost cost_of(const struct hd_ptdp_run *run)
{
	const struct hd_ptdp_site site = { hd_ptdp_devices, hd_ptdp_fitted, HD_PTDP_MIXED_ADAM, 0, false };

	return hd_ptdp_cost(&run->model, &run->split, run->batch, &site);
}

static void put_run(struct hd_cmd *cmd, uint32_t i)
{
	const struct hd_ptdp_run *run = &hd_ptdp_runs[i];
	struct hd_ptdp_cost cost = cost_of(run);
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "run", run->name);
	put_model(w, &run->model);
	hd_json_put_f64(w, "published_parameters", run->params * 1e9);
	put_split(w, &run->split);
	hd_json_put_i64(w, "devices", run->ndevices);
	hd_json_put_i64(w, "batch", run->batch);
	hd_json_put_f64(w, "published_tflop_per_s_device", run->tflop_per_s);
	hd_json_put_f64(w, "tflop_per_s_device", cost.flop_per_s / 1e12);
	hd_json_put_f64(w, "error", hd_ptdp_error(run, &hd_ptdp_fitted, hd_ptdp_devices));
	hd_json_put_f64(w, "predicted_s", seconds(cost.step_ps));
	hd_json_put_bool(w, "fitted", is_fitted(i));
	hd_json_line_print(&line);
}

static void print_run(struct hd_cmd *cmd, uint32_t i)
{
	const struct hd_ptdp_run *run = &hd_ptdp_runs[i];
	const struct hd_ptdp_split *s = &run->split;

	(void)cmd;
	printf("%-8s %10.4g %4u %4u %4u %4u %4u %10g %10.1f %+8.2f%s\n", run->name,
		hd_ptdp_params(&run->model), s->t, s->p, s->d, s->b, s->v, run->tflop_per_s,
		cost_of(run).flop_per_s / 1e12, 100 * hd_ptdp_error(run, &hd_ptdp_fitted, hd_ptdp_devices),
		is_fitted(i) ? " fitted" : "");
}

/* The ten runs, predicted from three of them; then every choice of three. */
static enum hd_err print_published(struct hd_cmd *cmd)
{
	bool json = cmd->args.has[HD_OPT_JSON];
	double mean, worst;

	if (!json)
		printf("%-8s %10s %4s %4s %4s %4s %4s %10s %10s %8s\n", "run", "parameters", "t", "p", "d",
			"b", "v", "published", "predicted", "error %");
	for (uint32_t i = 0; i < HD_PTDP_RUNS; i++)
		(json ? put_run : print_run)(cmd, i);
	uint32_t fit[3] = { 0, 1, 2 };
	if (!json)
		printf("\n%-24s %10s %10s\n", "fitted to", "mean %", "worst %");
	do {
		judge_fit(fit, &mean, &worst);
		if (json) {
			struct hd_json_line line;
			struct hd_json_writer *w = hd_json_line_open(cmd, &line);
			hd_json_open_array(w, "fitted_to");
			for (uint32_t i = 0; i < 3; i++)
				hd_json_put_text(w, NULL, hd_ptdp_runs[fit[i]].name);
			hd_json_close(w);
			hd_json_put_f64(w, "mean_error", mean);
			hd_json_put_f64(w, "worst_error", worst);
			hd_json_line_print(&line);
		} else {
			char names[40];
			snprintf(names, sizeof names, "%s %s %s", hd_ptdp_runs[fit[0]].name,
				hd_ptdp_runs[fit[1]].name, hd_ptdp_runs[fit[2]].name);
			printf("%-24s %10.2f %10.2f\n", names, 100 * mean, 100 * worst);
		}
	} while (next_fit(fit));
	return HD_OK;
}

static enum hd_err verb_plan_ptdp(struct hd_cmd *cmd)
{
	struct hd_ptdp_ask ask;
	struct hd_ptdp_split split;
	struct hd_ptdp_plan plan;

	if (cmd->args.has[HD_OPT_PUBLISHED])
		return print_published(cmd);
	enum hd_err err = read_ask(cmd, &ask);
	if (!err && cmd->args.has[HD_OPT_AT] && cmd->args.has[HD_OPT_RULES])
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"--at says the split, --rules choose one: give one of them");
	if (!err && cmd->args.has[HD_OPT_AT]) {
		err = read_split(cmd, &split);
		if (!err)
			err = hd_ptdp_judge(&plan, &ask, &split, &cmd->arena, &cmd->diag);
	} else if (!err) {
		err = (cmd->args.has[HD_OPT_RULES] ? hd_ptdp_rules : hd_ptdp_search)(&plan, &ask, &cmd->arena,
			&cmd->diag);
	}
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, &ask, &plan);
	else
		print_text(&ask, &plan);
	return HD_OK;
}

const struct hd_verb hd_verb_plan_ptdp = {
	.name = "plan ptdp", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "split a transformer over tensor, pipeline and data, by the model of PTD-P",
	.more =
		"Finds the fastest (t, p, d), with samples b of a virtual node, model chunks v of a "
		"rank and recomputation, that fits the memory; --rules decides one after the other as "
		"the paper does; --at judges a split that you name. Devices are A100 of 80 GB, eight a "
		"server with a network card of 200 Gb/s each, half precision, Adam; what of their peak "
		"is reached was fitted to three published runs (--published shows how well it predicts "
		"the others). t lies inside a server. The step is that of the simulated schedule. "
		"Nothing fits: exit 2, with the least memory that would do.",
	.opts = HD_OPTS(HD_OPT_MODEL, HD_OPT_DEVICES, HD_OPT_BATCH, HD_OPT_VN_SIZE, HD_OPT_MEMORY,
		HD_OPT_SEQUENCE, HD_OPT_RULES, HD_OPT_AT, HD_OPT_PUBLISHED),
	.run = verb_plan_ptdp, .test = "program_ptdp.sh",
};
