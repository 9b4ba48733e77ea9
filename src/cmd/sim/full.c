#include "cmd/sim/full.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "pipeline/sim_trace.h"
#include "cmd/json_line.h"
#include "cmd/plan/stages.h"

enum { CLUSTER_BYTES = 1 << 20, BAR = 40, FACTOR_MAX = 1000000 };

bool hd_cmd_sim_is_full(const struct hd_cmd *cmd, const struct hd_schedule *s)
{
	static const enum hd_opt opts[] = { HD_OPT_PROFILE, HD_OPT_CUTS, HD_OPT_CLUSTER, HD_OPT_TRANSPORT,
		HD_OPT_CREDITS, HD_OPT_WHAT_IF,
		HD_OPT_SEED, HD_OPT_TRACE, HD_OPT_STEPS };

	for (size_t i = 0; i < sizeof opts / sizeof *opts; i++)
		if (cmd->args.has[opts[i]])
			return true;
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++)
			if (s->list[r].at[i].op == HD_INS_FL || hd_ins_redundant(&s->list[r].at[i]))
				return true;
	return false;
}

static enum hd_err read_cluster(struct hd_cmd *cmd, const struct hd_schedule *s, struct hd_sim_setting *set)
{
	const char *path = cmd->args.text[HD_OPT_CLUSTER];
	struct hd_cluster *cluster = hd_arena_take(&cmd->arena, 1, sizeof *cluster);
	uint8_t *bytes;
	size_t len;

	if (!cmd->args.has[HD_OPT_CLUSTER])
		return HD_OK;
	if (!cluster)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a cluster");
	enum hd_err err = hd_file_read_all(&cmd->fs, path, &cmd->arena, CLUSTER_BYTES, &bytes, &len,
		&cmd->diag);
	err = err ? err : hd_cluster_parse(cluster, (const char *)bytes, len, path, &cmd->arena, &cmd->diag);
	if (!err && cluster->ndevices < s->nranks)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "%s has %u devices, the schedule %u ranks", path,
			cluster->ndevices, s->nranks);
	set->cluster = cluster;
	return err;
}

static enum hd_err read_transport(struct hd_cmd *cmd, struct hd_sim_setting *set)
{
	const char *name = cmd->args.text[HD_OPT_TRANSPORT];

	for (int t = 0; name && t < HD_NTRANSPORTS; t++)
		if (!strcmp(name, hd_transport_names[t]))
			set->transport = (enum hd_transport)t;
	if (!cmd->args.has[HD_OPT_CREDITS])
		return HD_OK;
	if (set->transport != HD_TRANSPORT_BUFFERED)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--credits belongs to --transport buffered");
	if (cmd->args.count[HD_OPT_CREDITS] < 1 || cmd->args.count[HD_OPT_CREDITS] > UINT32_MAX)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--credits is 1 or more");
	set->credits = (uint32_t)cmd->args.count[HD_OPT_CREDITS];
	return HD_OK;
}

/* A number from 1 that fits; 0: not said. */
static enum hd_err read_count(struct hd_cmd *cmd, enum hd_opt opt, uint32_t *out)
{
	if (!cmd->args.has[opt])
		return HD_OK;
	if (cmd->args.count[opt] < 1 || cmd->args.count[opt] > INT32_MAX)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s is 1 or more", hd_opts[opt].name);
	*out = (uint32_t)cmd->args.count[opt];
	return HD_OK;
}

enum hd_err hd_cmd_sim_ways(struct hd_cmd *cmd, struct hd_sim_setting *set)
{
	set->noise = cmd->args.has[HD_OPT_SEED];
	set->seed = cmd->args.count[HD_OPT_SEED];
	if (set->noise && !cmd->args.has[HD_OPT_PROFILE])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--seed draws costs from the deviations of a profile: give --profile FILE");
	enum hd_err err = read_transport(cmd, set);
	err = err ? err : read_count(cmd, HD_OPT_PERIODS, &set->steps);
	return err ? err : read_count(cmd, HD_OPT_STEPS, &set->steps);
}

enum hd_err hd_cmd_sim_setting(struct hd_cmd *cmd, const struct hd_schedule *s, const struct hd_sim_ask *ask,
	struct hd_sim_setting *out)
{
	struct hd_sim_setting set = { .per_ps = 1 };
	const struct hd_stage_costs *costs = NULL;
	enum hd_err err = HD_OK;

	if (cmd->args.has[HD_OPT_PROFILE]) {              /* what the other verbs of plans call --graph */
		cmd->args.has[HD_OPT_GRAPH] = true;
		cmd->args.text[HD_OPT_GRAPH] = cmd->args.text[HD_OPT_PROFILE];
		if (cmd->args.has[HD_OPT_COSTS] || cmd->args.has[HD_OPT_COMM])
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"--costs and --comm say what --profile says; give one of them");
		err = hd_cmd_stage_costs(cmd, s->nstages, &costs, NULL);
	} else if (cmd->args.has[HD_OPT_CUTS]) {
		return hd_fail(&cmd->diag, HD_E_INVAL, "--cuts belongs to --profile");
	} else {
		struct hd_stage_costs *even = hd_arena_take(&cmd->arena, 1, sizeof *even);
		if (!even)
			return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the costs of stages");
		set.per_ps = s->nranks ? (s->nstages + s->nranks - 1) / s->nranks : 1;
		set.hop = ask->costs.hop * set.per_ps;
		err = hd_stage_costs_even(even, &ask->costs, s->nstages, &cmd->arena, &cmd->diag);
		costs = even;
	}
	set.costs = costs;
	err = err ? err : read_cluster(cmd, s, &set);
	err = err ? err : hd_cmd_sim_ways(cmd, &set);
	if (!err)
		*out = set;
	return err;
}

/* ---- what if */

struct change { struct hd_sim_setting set; struct hd_cluster cluster; double *speed; };

/* One "key=factor" applied to a copy of the setting. */
static enum hd_err change_one(struct hd_cmd *cmd, const struct hd_schedule *s, char *word, struct change *to)
{
	char *value = strchr(word, '=');
	struct hd_diag why = { "" };
	uint64_t rank = 0;
	double x = 0;

	if (!value)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--what-if %s: it is KEY=FACTOR", word);
	*value++ = '\0';
	if (hd_num_f64(value, 0, FACTOR_MAX, &x, &why) || !(x > 0))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--what-if %s=%s: the factor is a number above 0",
			word, value);
	if (!strcmp(word, "bandwidth") || !strcmp(word, "latency")) {
		if (!to->set.cluster)
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"--what-if %s changes the links of --cluster FILE", word);
		for (uint32_t l = 0; l < to->cluster.nlevels; l++)
			if (*word == 'b')
				to->cluster.level[l].bytes_per_s *= x;
			else
				to->cluster.level[l].latency_ps =
					(int64_t)((double)to->cluster.level[l].latency_ps * x);
	} else if (!strcmp(word, "speed")) {
		for (uint32_t r = 0; r < s->nranks; r++)
			to->speed[r] *= x;
	} else if (!strncmp(word, "rank", 4) && !hd_num_u64(word + 4, HD_MAX_RANKS, &rank, &why) &&
		rank < s->nranks) {
		to->speed[rank] *= x;
	} else {
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--what-if %s: keys are bandwidth, latency, speed (of "
			"all devices) and rank0 to rank%u (its device's speed)", word, s->nranks - 1);
	}
	return HD_OK;
}

static enum hd_err change_all(struct hd_cmd *cmd, const struct hd_schedule *s,
	const struct hd_sim_setting *set, struct change *to)
{
	char *text = hd_arena_text(&cmd->arena, cmd->args.text[HD_OPT_WHAT_IF],
		strlen(cmd->args.text[HD_OPT_WHAT_IF]));

	*to = (struct change){ .set = *set, .speed = hd_arena_take(&cmd->arena, (size_t)s->nranks + 1,
		sizeof *to->speed) };
	if (!text || !to->speed)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for --what-if");
	for (uint32_t r = 0; r < s->nranks; r++)
		to->speed[r] = set->speed ? set->speed[r] : 1;
	to->set.speed = to->speed;
	if (set->cluster) {
		to->cluster = *set->cluster;
		to->set.cluster = &to->cluster;
	}
	for (char *next = text; next;) {
		char *word = next;
		if ((next = strchr(word, ',')))
			*next++ = '\0';
		enum hd_err err = change_one(cmd, s, word, to);
		if (err)
			return err;
	}
	return HD_OK;
}

/* ---- output */

/* In units of --costs, or in seconds by a profile. */
struct shown { struct hd_cmd *cmd; const struct hd_sim_plan *sim; const struct hd_sim_setting *set;
	bool seconds; double before; const char *planner; };

double hd_cmd_sim_time(const struct hd_sim_plan *sim, bool seconds, int64_t ticks)
{
	return seconds ? hd_sim_plan_s(sim, ticks) : (double)ticks / (double)sim->per_ps / (double)HD_UNIT_PS;
}

static double in_units(const struct shown *o, int64_t t) { return hd_cmd_sim_time(o->sim, o->seconds, t); }

static void put_ranks(const struct shown *o, struct hd_json_writer *w)
{
	hd_json_open_array(w, "rank");
	for (uint32_t r = 0; r < o->sim->ran.nranks; r++) {
		const struct hd_sim_share *k = &o->sim->rank[r];
		hd_json_open_object(w, NULL);
		hd_json_put_f64(w, "busy", in_units(o, k->busy));
		hd_json_open_object(w, "idle");
		for (int i = 0; i < HD_NIDLES; i++)
			hd_json_put_f64(w, hd_idle_names[i], in_units(o, k->idle[i]));
		hd_json_close(w);
		hd_json_put_i64(w, "peak_bytes", k->peak);
		hd_json_put_i64(w, "peak_at", k->peak_at);
		hd_json_put_i64(w, "host_bytes", k->host);
		hd_json_open_object(w, "memory");
		for (int i = 0; i < HD_NMEMORIES; i++)
			hd_json_put_i64(w, hd_memory_names[i], k->at_peak[i]);
		hd_json_close(w);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void print_json(const struct shown *o, const struct hd_sim_warning *warning, uint32_t nwarnings)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(o->cmd, &line);

	hd_json_put_text(w, "schedule", o->sim->ran.heading);
	if (o->planner)
		hd_json_put_text(w, "planner", o->planner);
	hd_json_put_text(w, "unit", o->seconds ? "s" : "as --costs");
	hd_json_put_i64(w, "ranks", o->sim->ran.nranks);
	hd_json_put_i64(w, "virtual_nodes", o->sim->ran.nvns / o->sim->steps);
	hd_json_put_i64(w, "stages", o->sim->ran.nstages);
	hd_json_put_i64(w, "steps", o->sim->steps);
	hd_json_put_text(w, "transport", hd_transport_names[o->set->transport]);
	hd_json_put_f64(w, "makespan", in_units(o, o->sim->makespan));
	hd_json_put_f64(w, "bubble_over_ideal", hd_sim_plan_bubble(o->sim));
	hd_json_put_f64(w, "span_idle", in_units(o, o->sim->span_idle));
	if (o->seconds)
		hd_json_put_f64(w, "virtual_nodes_s", hd_sim_plan_rate(o->sim));
	if (o->before > 0)
		hd_json_put_f64(w, "makespan_before", o->before);
	put_ranks(o, w);
	hd_json_open_array(w, "links");
	for (uint32_t k = 0; k < o->sim->nlinks; k++) {
		const struct hd_sim_link *l = &o->sim->link[k];
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "level", o->set->cluster->level[l->level].name);
		hd_json_put_i64(w, "component", l->component);
		hd_json_put_i64(w, "bytes_out", l->bytes);
		hd_json_put_f64(w, "busy", in_units(o, l->busy));
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "warnings");
	for (uint32_t k = 0; k < nwarnings; k++)
		hd_json_put_text(w, NULL, warning[k].text);
	hd_json_close(w);
	hd_json_line_print(&line);
}

/* 40 cells for the makespan: how much of each there is, not when. */
static void draw_bar(const struct hd_sim_plan *sim, const struct hd_sim_share *k, char bar[BAR + 1])
{
	const struct { int64_t part; char letter; } parts[] = {
		{ k->idle[HD_IDLE_WARM_UP], 'w' }, { k->busy, '#' }, { k->idle[HD_IDLE_DEPENDENCY], '.' }, { k->idle[HD_IDLE_TRANSFER], 't' },
		{ k->idle[HD_IDLE_CREDIT], 'c' },
	};
	int64_t upto = 0;
	int at = 0;

	memset(bar, 'd', BAR);
	bar[BAR] = '\0';
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		upto += parts[i].part;
		while (at < BAR && (at + 0.5) * (double)sim->makespan < (double)upto * BAR)
			bar[at++] = parts[i].letter;
	}
}

static void print_text(const struct shown *o)
{
	const struct hd_sim_plan *sim = o->sim;
	char bar[BAR + 1];

	printf("%s\n  makespan           %.6g%s\n  bubble over ideal  %.6g\n  span idle          %.6g\n",
		*sim->ran.heading ? sim->ran.heading : "(no heading)",
		in_units(o, sim->makespan), o->seconds ? " s" : "", hd_sim_plan_bubble(sim),
		in_units(o, sim->span_idle));
	if (o->before > 0)
		printf("  what if %s: %.6g before, %.4f times that\n", o->cmd->args.text[HD_OPT_WHAT_IF],
			o->before, in_units(o, sim->makespan) / o->before);
	if (o->seconds)
		printf("  virtual nodes/s    %.6g   (%u step%s)\n", hd_sim_plan_rate(sim), sim->steps,
			sim->steps > 1 ? "s" : "");
	printf("  %-5s %10s %10s %10s %10s %10s %10s  w warm-up, # work, . dependency, t transfer, c "
		"credit, d drain\n", "rank", "busy", "warm-up",
		"dependency", "transfer", "credit", "drain");
	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		const struct hd_sim_share *k = &sim->rank[r];
		draw_bar(sim, k, bar);
		printf("  %-5u %10.5g %10.5g %10.5g %10.5g %10.5g %10.5g  |%s|\n", r, in_units(o, k->busy),
			in_units(o, k->idle[HD_IDLE_WARM_UP]),
			in_units(o, k->idle[HD_IDLE_DEPENDENCY]), in_units(o, k->idle[HD_IDLE_TRANSFER]),
			in_units(o, k->idle[HD_IDLE_CREDIT]),
			in_units(o, k->idle[HD_IDLE_DRAIN]), bar);
	}
	if (!o->seconds)
		return;
	printf("  %-5s %12s", "MB", "at most");
	for (int i = 0; i < HD_NMEMORIES; i++)
		printf(" %12s", hd_memory_names[i]);
	printf("\n");
	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		printf("  %-5u %12.3f", r, (double)sim->rank[r].peak / 1e6);
		for (int i = 0; i < HD_NMEMORIES; i++)
			printf(" %12.3f", (double)sim->rank[r].at_peak[i] / 1e6);
		if (sim->rank[r].host)
			printf("  host %.3f", (double)sim->rank[r].host / 1e6);
		printf("  at #%u\n", sim->rank[r].peak_at);
	}
	for (uint32_t k = 0; k < sim->nlinks; k++)
		printf("  %s: out of component %u %.3f MB, busy %.5g s\n",
			o->set->cluster->level[sim->link[k].level].name, sim->link[k].component,
			(double)sim->link[k].bytes / 1e6, in_units(o, sim->link[k].busy));
}

/* ---- for the output of bare schedules, in units */

static void print_warnings(struct hd_cmd *cmd, const struct hd_sim_plan *sim)
{
	struct hd_sim_warning warning[HD_SIM_WARNINGS];
	uint32_t n = hd_sim_plan_warnings(sim, warning, HD_SIM_WARNINGS);

	for (uint32_t k = 0; k < n && !cmd->args.has[HD_OPT_QUIET]; k++)
		fprintf(stderr, "warning: %s\n", warning[k].text);
}

void hd_cmd_print_idle(struct hd_cmd *cmd, const struct hd_sim_plan *sim)
{
	char bar[BAR + 1];

	printf("  shares of the makespan: w warm-up, # work, . dependency, t transfer, d drain\n");
	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		draw_bar(sim, &sim->rank[r], bar);
		printf("  %-6u |%s|\n", r, bar);
	}
	print_warnings(cmd, sim);
}

void hd_cmd_put_idle(struct hd_json_writer *w, const struct hd_sim_plan *sim)
{
	struct hd_sim_warning warning[HD_SIM_WARNINGS];
	uint32_t n = hd_sim_plan_warnings(sim, warning, HD_SIM_WARNINGS);

	hd_json_open_array(w, "idle");
	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		hd_json_open_object(w, NULL);
		for (int i = 0; i < HD_NIDLES; i++)
			hd_json_put_f64(w, hd_idle_names[i],
				(double)sim->rank[r].idle[i] / (double)sim->per_ps / (double)HD_UNIT_PS);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "warnings");
	for (uint32_t k = 0; k < n; k++)
		hd_json_put_text(w, NULL, warning[k].text);
	hd_json_close(w);
}

static enum hd_err write_trace(struct hd_cmd *cmd, const struct hd_sim_plan *sim,
	const struct hd_sim_setting *set)
{
	uint8_t *bytes;
	size_t len;

	if (!cmd->args.has[HD_OPT_TRACE])
		return HD_OK;
	enum hd_err err = hd_sim_trace(sim, set, &bytes, &len, &cmd->arena, &cmd->diag);
	return err ? err : hd_file_write_atomic(&cmd->fs, cmd->args.text[HD_OPT_TRACE], bytes, len,
		&cmd->diag);
}

enum hd_err hd_cmd_simulate_on(struct hd_cmd *cmd, const struct hd_schedule *s, struct hd_sim_setting *set,
	bool seconds, const char *planner)
{
	struct hd_sim_warning warning[HD_SIM_WARNINGS];
	struct hd_sim_plan sim = { 0 };
	struct change change;
	struct shown o = { .cmd = cmd, .sim = &sim, .set = set, .seconds = seconds, .planner = planner };

	set->spans = cmd->args.has[HD_OPT_TRACE];
	enum hd_err err = hd_sim_plan(&sim, s, set, &cmd->arena, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_WHAT_IF]) {
		o.before = in_units(&o, sim.makespan);
		err = change_all(cmd, s, set, &change);
		err = err ? err : hd_sim_plan(&sim, s, &change.set, &cmd->arena, &cmd->diag);
		o.set = &change.set;
	}
	err = err ? err : write_trace(cmd, &sim, o.set);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON]) {
		print_json(&o, warning, hd_sim_plan_warnings(&sim, warning, HD_SIM_WARNINGS));
		return HD_OK;
	}
	print_text(&o);
	print_warnings(cmd, &sim);
	return HD_OK;
}

enum hd_err hd_cmd_simulate_full(struct hd_cmd *cmd, const struct hd_schedule *s,
	const struct hd_sim_ask *ask)
{
	struct hd_sim_setting set;
	enum hd_err err = hd_cmd_sim_setting(cmd, s, ask, &set);

	return err ? err : hd_cmd_simulate_on(cmd, s, &set, cmd->args.has[HD_OPT_PROFILE], NULL);
}
