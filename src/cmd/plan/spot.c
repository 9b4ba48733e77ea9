#include "cmd/plan/spot.h"

#include <string.h>

#include "spot/value.h"
#include "pipeline/redundancy.h"
#include "clustersim/availability.h"
#include "cmd/json_line.h"

/* Every way through losses of machines, on the grid of the job's plan, with each term of what it is worth. */

enum { MARKET_BYTES = 64 << 20, CANDIDATES = HD_NSPOT_STRATEGIES + HD_SPOT_SPARES, SPARES = 2 };

struct spot_ask {
	struct hd_cmd *cmd;
	struct hd_planning *p;
	struct hd_spot_market market;
	struct hd_spot_grid grid;
	uint32_t n, nrefused;
	struct hd_spot_value value[CANDIDATES];
	struct { enum hd_spot_strategy strategy; struct hd_diag why; } refused[CANDIDATES];
};

/* A market as JSON begins with a brace; anything else is a trace of machines. */
static enum hd_err read_market(struct spot_ask *a)
{
	struct hd_cmd *cmd = a->cmd;
	const char *name = cmd->args.text[HD_OPT_MARKET];
	const struct hd_json *json;
	struct hd_spot_trace trace;
	uint8_t *bytes;
	size_t len, at = 0;
	enum hd_err err = hd_file_read_all(&cmd->fs, name, &cmd->arena, MARKET_BYTES, &bytes, &len,
		&cmd->diag);

	if (err)
		return err;
	while (at < len && strchr(" \t\r\n", bytes[at]) && bytes[at])
		at++;
	if (at < len && bytes[at] == '{') {
		err = hd_json_parse(&cmd->arena, name, (const char *)bytes, len, &json, &cmd->diag);
		return err ? err : hd_spot_market_read(&a->market, json, &cmd->diag);
	}
	if (!(err = hd_availability_read(&trace, name, bytes, len, 0, &cmd->arena, &cmd->diag)))
		hd_spot_market_of(&a->market, &trace);
	return err;
}

/* What shadows in this mode take beside the plan's step, as a share of it: both simulated alike. */
static enum hd_err cost_of_mode(struct spot_ask *a, enum hd_redundancy mode, double *overhead,
	struct hd_diag *why)
{
	const struct hd_job_plan *plan = &a->p->plan;
	const struct hd_sim_setting set = { .costs = &plan->costs, .per_ps = 1, .cluster = &a->p->in.cluster,
		.device = plan->device, .transport = HD_TRANSPORT_BUFFERED };
	const struct hd_redundancy_ask ask = { .mode = mode, .setting = &set };
	struct hd_arena *arena = &a->cmd->arena;
	struct hd_schedule with;
	struct hd_sim_plan before, after;
	enum hd_err err = hd_redundancy_add(&with, &plan->schedule, &ask, arena, why);

	err = err ? err : hd_sim_plan(&before, &plan->schedule, &set, arena, why);
	err = err ? err : hd_sim_plan(&after, &with, &set, arena, why);
	if (!err)
		*overhead = (double)after.makespan / (double)before.makespan - 1;
	return err;
}

static enum hd_err judge(struct spot_ask *a)
{
	static const enum hd_redundancy mode_of[HD_NSPOT_STRATEGIES] = { [HD_SPOT_LAZY] = HD_REDUNDANCY_LAZY,
		[HD_SPOT_EAGER] = HD_REDUNDANCY_EAGER, [HD_SPOT_FULL] = HD_REDUNDANCY_FULL };
	const struct hd_job_plan *plan = &a->p->plan;

	a->grid = (struct hd_spot_grid){ .stages = plan->nstages, .pipelines = plan->schedule.nranks /
		plan->nstages, .batch = (double)hd_job_int(&a->p->in.job, HD_JOB_GLOBAL),
		.step_s = hd_job_plan_step_s(plan) };
	if (plan->schedule.nranks % plan->nstages || plan->tensor > 1)
		return hd_fail(&a->cmd->diag, HD_E_INVAL,
			"--spot judges D pipelines of P stages, each on a device; this plan has %u ranks of "
			"%u devices for %u stages: another --workers N, or -s parallel.stages=P",
			plan->schedule.nranks, plan->tensor ? plan->tensor : 1, plan->nstages);
	for (int s = 0; s < HD_NSPOT_STRATEGIES; s++) {
		struct hd_diag why = { "" };
		double overhead = 0;
		enum hd_err err = mode_of[s] ? cost_of_mode(a, mode_of[s], &overhead, &why) : HD_OK;
		if (err && hd_err_radius(err) > HD_HURT_JOB)
			return hd_fail(&a->cmd->diag, err, "%s", why.text);
		if (err) {
			a->refused[a->nrefused].strategy = (enum hd_spot_strategy)s;
			a->refused[a->nrefused++].why = why;
			continue;
		}
		for (uint32_t f = 1; f <= (s == HD_SPOT_REPLICA ? SPARES : 1); f++)
			a->value[a->n++] = hd_spot_value(&a->market, &a->grid, (enum hd_spot_strategy)s, f,
				overhead);
	}
	return HD_OK;
}

static const char *name_of(const struct hd_spot_value *v, char out[32])
{
	snprintf(out, 32, v->spares ? "%s:%u" : "%s", hd_spot_strategy_names[v->strategy], v->spares);
	return out;
}

static void print_json(const struct spot_ask *a, uint32_t chosen)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(a->cmd, &line);
	char name[32];

	hd_json_put_text(w, "chosen", chosen < a->n ? name_of(&a->value[chosen], name) : "");
	hd_json_put_i64(w, "pipelines", a->grid.pipelines);
	hd_json_put_i64(w, "stages", a->grid.stages);
	hd_json_put_f64(w, "step_s", a->grid.step_s);
	hd_json_put_f64(w, "losses_h", a->market.losses_h);
	hd_json_open_array(w, "together");
	for (uint32_t k = 0; k < a->market.ntogether; k++)
		hd_json_put_f64(w, NULL, a->market.together[k]);
	hd_json_close(w);
	hd_json_open_array(w, "candidates");
	for (uint32_t i = 0; i < a->n; i++) {
		const struct hd_spot_value *v = &a->value[i];
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "strategy", name_of(v, name));
		hd_json_put_i64(w, "devices", v->devices);
		hd_json_put_f64(w, "overhead", v->overhead);
		hd_json_put_f64(w, "saving", v->saving);
		hd_json_put_f64(w, "exceeds", v->exceeds);
		hd_json_put_f64(w, "tolerated_s", v->tolerated_s);
		hd_json_put_f64(w, "exceeded_s", v->exceeded_s);
		hd_json_put_f64(w, "stall_s", v->stall_s);
		hd_json_put_f64(w, "checkpoint_every_s", v->interval_s);
		hd_json_put_f64(w, "useful", v->useful);
		hd_json_put_f64(w, "usd_h", v->usd_h);
		hd_json_put_f64(w, "value", v->value);
		hd_json_put_bool(w, "allowed", v->allowed);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "refused");
	for (uint32_t i = 0; i < a->nrefused; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "strategy", hd_spot_strategy_names[a->refused[i].strategy]);
		hd_json_put_text(w, "why", a->refused[i].why.text);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_line_print(&line);
}

static void print_text(const struct spot_ask *a, uint32_t chosen)
{
	char name[32];

	printf("grid      %u pipeline%s of %u stage%s, a step of %.4f ms\n", a->grid.pipelines,
		a->grid.pipelines > 1 ? "s" : "", a->grid.stages, a->grid.stages > 1 ? "s" : "",
		a->grid.step_s * 1e3);
	printf("market    %.6g losses/h, %.6g $/h a device; of 1, 2, ... at once:", a->market.losses_h,
		a->market.usd_h);
	for (uint32_t k = 0; k < a->market.ntogether; k++)
		printf(" %.4g", a->market.together[k]);
	printf("\n  %-13s %7s %9s %8s %8s %11s %10s %9s %8s %9s %12s\n", "strategy", "devices", "overhead",
		"saving", "exceeds", "tolerated s", "exceeded s", "stall s", "useful", "$/h", "samples/$");
	for (uint32_t i = 0; i < a->n; i++) {
		const struct hd_spot_value *v = &a->value[i];
		printf("%c %-13s %7u %8.2f%% %7.2f%% %7.2f%% %11.4g %10.4g %9.4g %7.2f%% %9.4g %12.6g%s\n",
			i == chosen ? '>' : ' ', name_of(v, name), v->devices, v->overhead * 100,
			v->saving * 100, v->exceeds * 100, v->tolerated_s, v->exceeded_s, v->stall_s,
			v->useful * 100, v->usd_h, v->value, v->allowed ? "" : "  pauses too long");
	}
	for (uint32_t i = 0; i < a->nrefused; i++)
		printf("  %-13s refused: %s\n", hd_spot_strategy_names[a->refused[i].strategy],
			a->refused[i].why.text);
	if (chosen < a->n)
		printf("chosen    %s\n", name_of(&a->value[chosen], name));
	else
		printf("chosen    none: all pause longer than %g s\n", a->market.pause_max_s);
}

enum hd_err hd_cmd_plan_spot(struct hd_cmd *cmd, struct hd_planning *planning)
{
	struct spot_ask *a = hd_arena_take(&cmd->arena, 1, sizeof *a);

	if (!a)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the candidates of --spot");
	a->cmd = cmd;
	a->p = planning;
	enum hd_err err = read_market(a);
	err = err ? err : judge(a);
	if (err)
		return err;
	const uint32_t chosen = hd_spot_choose(a->n, a->value);
	if (cmd->args.has[HD_OPT_JSON])
		print_json(a, chosen);
	else
		print_text(a, chosen);
	return HD_OK;
}
