#include "cmd/plan/planning.h"

#include <string.h>

#include "device/optim.h"
#include "pipeline/draw_time.h"
#include "planner/job_ask.h"
#include "engine/lockstep.h"
#include "engine/stamps.h"
#include "engine/worker.h"
#include "cmd/json_line.h"
#include "cmd/plan/explain.h"
#include "cmd/plan/spot.h"

enum { RANKS_SHOWN = 64, WHY_SHOWN = 5, COLUMNS = 120 };

/* What the keys alone do not say of why steps cannot overlap (hd_task_drains()); NULL: nothing. */
static const char *drains_of(const struct hd_plan_input *in)
{
	const bool early = hd_job_int(&in->job, HD_JOB_UPDATE) == HD_UPDATE_STASH;

	if (in->graph && in->graph->nrunning)
		return "the model has running statistics";
	if (early && hd_optims[hd_job_int(&in->job, HD_JOB_OPTIM)].unit == HD_UNIT_TENSOR)
		return "the last stage waits for the norms that optim.kind needs";
	/* a run moves the last cut there; plans here know cuts by their times alone */
	return early ? "the last stage has to begin where optim.cuts says (`heddle run JOB --dry-run` plans "
		"it)" : NULL;
}

/* How steps follow each other where each worker has the whole model; NULL: stages, or one device. */
static const char *steps_of(struct hd_cmd *cmd, const struct hd_planning *p)
{
	enum { MOST = 400 };
	const struct hd_job *job = &p->in.job;
	const bool late = hd_job_int(job, HD_JOB_UPDATE) != HD_UPDATE_FLUSH || hd_stamps_bound(job);
	char *text = p->plan.nstages == 1 && p->in.cluster.ndevices > 1 && p->in.graph ?
		hd_arena_take(&cmd->arena, MOST, 1) : NULL;

	if (text)
		hd_onset_say(hd_job_onset(job, p->in.graph, late), hd_job_onset_waits(job), text, MOST);
	return text;
}

static void ask(struct hd_cmd *cmd, struct hd_planning *p)
{
	p->ask = hd_job_ask(&p->in.job);
	p->ask.sums = &p->in.sums;
	p->ask.cluster = &p->in.cluster;
	p->ask.spans = cmd->args.has[HD_OPT_DRAW] || cmd->args.has[HD_OPT_EXPLAIN];
	p->ask.variant = hd_job_ask_variant(cmd->args.text[HD_OPT_PARTITIONER]);
	p->ask.drains = p->ask.drains ? p->ask.drains : drains_of(&p->in);
	p->ask.meetings = hd_lockstep_meetings(p->in.graph);
	p->ask.meeting_bytes = hd_lockstep_bytes(p->in.graph, &p->in.job);
	/* norms bring all to all; what rows go where the data say */
	if (p->ask.meetings && hd_job_int(&p->in.job, HD_JOB_BN) != HD_BN_GLOBAL) {
		p->ask.sent = hd_plan_input_sent;
		p->ask.user = &p->in;
	}
}

/* ---- what is said of it */

static double seconds(const struct hd_planning *p, int64_t ticks) { return hd_sim_plan_s(&p->plan.sim, ticks);
	}

static void rank_stages(const struct hd_planning *p, uint32_t r, struct hd_text *text)
{
	const struct hd_ilist *list = &p->plan.schedule.list[r];
	bool *seen = hd_arena_take(p->plan.why.arena, p->plan.nstages, sizeof *seen);
	uint32_t n = 0;

	for (uint32_t i = 0; seen && i < list->len; i++)
		if (list->at[i].op == HD_INS_F)
			seen[list->at[i].stage] = true;
	for (uint32_t s = 0; seen && s < p->plan.nstages; s++)
		if (seen[s])
			hd_text_addf(text, "%s%u", n++ ? "," : "", s);
}

static uint32_t rank_vns(const struct hd_planning *p, uint32_t r)
{
	const struct hd_ilist *list = &p->plan.schedule.list[r];
	uint32_t stage = UINT32_MAX, n = 0;

	for (uint32_t i = 0; i < list->len; i++) {
		if (list->at[i].op != HD_INS_F)
			continue;
		stage = stage == UINT32_MAX ? list->at[i].stage : stage;
		n += list->at[i].stage == stage;
	}
	return n;
}

static void print_ranks(struct hd_cmd *cmd, const struct hd_planning *p)
{
	const struct hd_sim_plan *sim = &p->plan.sim;

	printf("%5s %6s %8s %5s %10s", "rank", "device", "stages", "vns", "busy ms");
	for (int i = 0; i < HD_NIDLES; i++)
		printf(" %10s", hd_idle_names[i]);
	printf(" %11s %10s\n", "peak MiB", "has MiB");
	for (uint32_t r = 0; r < p->plan.schedule.nranks && r < RANKS_SHOWN; r++) {
		int64_t has = hd_cluster_kind_of(&p->in.cluster, p->plan.device[r])->memory;
		struct hd_text stages;
		hd_text_init(&stages, &cmd->arena);
		rank_stages(p, r, &stages);
		printf("%5u %6u %8s %5u %10.4f", r, p->plan.device[r], stages.full ? "?" : stages.at,
			rank_vns(p, r), seconds(p, sim->rank[r].busy) * 1e3);
		for (int i = 0; i < HD_NIDLES; i++)
			printf(" %10.4f", seconds(p, sim->rank[r].idle[i]) * 1e3);
		if (has)
			printf(" %11.1f %10.1f\n", (double)sim->rank[r].peak * 0x1p-20,
				(double)has * 0x1p-20);
		else
			printf(" %11.1f %10s\n", (double)sim->rank[r].peak * 0x1p-20, "no limit");
	}
	if (p->plan.schedule.nranks > RANKS_SHOWN)
		printf("and %u ranks more (--json has all)\n", p->plan.schedule.nranks - RANKS_SHOWN);
}

/* The op of the node that a cut is named by; "" of several. */
static const char *op_of(const struct hd_planning *p, uint32_t cut)
{
	for (uint32_t i = 0; i < p->in.profile.nnodes; i++)
		if (!strcmp(p->in.profile.node[i].id, p->in.cuts.name[cut]))
			return p->in.profile.node[i].op;
	return "";
}

static uint32_t last_cut(const struct hd_planning *p, uint32_t s) { return (s + 1 < p->plan.nstages ?
	p->plan.first[s + 1] : p->in.cuts.n) - 1; }

static void print_why(const char *at, uint32_t lines)
{
	for (; at && *at && lines; lines--) {
		size_t len = strcspn(at, "\n");
		printf("why       %.*s\n", (int)len, at);
		at += len + (at[len] == '\n');
	}
	if (at && *at)
		printf("why       (--explain says more)\n");
}

static void print_stage(const struct hd_planning *p, uint32_t s)
{
	const struct hd_stage_cost *c = &p->plan.costs.stage[s];

	printf("stage %-3u cuts %u-%u, up to %s %s: %.4f ms a virtual node, %.2f MiB of weights\n", s,
		p->plan.first[s], last_cut(p, s),
		p->in.cuts.name[last_cut(p, s)], op_of(p, last_cut(p, s)),
		(double)(c->f + c->i + c->w) * 1e-9, (double)c->param * 0x1p-20);
}

static void print_text(struct hd_cmd *cmd, const struct hd_planning *p)
{
	const struct hd_sim_plan *sim = &p->plan.sim;
	struct hd_sim_warning warning[HD_SIM_WARNINGS];
	uint32_t nwarnings = hd_sim_plan_warnings(sim, warning, HD_SIM_WARNINGS);

	printf("profile   %s: %s, %u nodes, %u cuts\n", p->in.profile_from,
		hd_profile_method_name(p->in.profile.method), p->in.profile.nnodes, p->in.cuts.n);
	printf("devices   %u: %s\n", p->in.cluster.ndevices, p->in.cluster_from);
	if (p->ask.tensor_shards > 1)
		printf("shards    %u, on %u device%s a rank: products, heads, vocabulary%s\n",
			p->ask.tensor_shards, p->plan.tensor ? p->plan.tensor : 1,
			p->plan.tensor > 1 ? "s" : "", p->ask.sequence ?
			"; norms, dropout and sums between them along the sequence" : "");
	if (hd_job_copies(&p->in.job))
		printf("state     %s: each part of the optimizer's slots on %u of the %s (heddle "
			"run --workers N); ranks below hold all\n",
			hd_job_text(&p->in.job, HD_JOB_SYNC), hd_job_copies(&p->in.job),
			hd_job_servers(&p->in.job) ? "servers" : "workers");
	printf("planner   %s\n", p->plan.planner);
	print_why(p->plan.why.at, cmd->args.has[HD_OPT_EXPLAIN] ? UINT32_MAX : WHY_SHOWN);
	for (uint32_t s = 0; s < p->plan.nstages; s++)
		print_stage(p, s);
	print_ranks(cmd, p);
	if (p->plan.overlap)
		printf("steps     overlap: each begins while the one before ends; what stands here is of one "
			"of many, from the norm of the one before to its own\n");
	if (steps_of(cmd, p))
		printf("steps     over several workers %s\n", steps_of(cmd, p));
	printf("step      %.4f ms predicted for %u virtual nodes; the busiest rank works %.4f ms, bubble "
		"%.1f %%\n", hd_job_plan_step_s(&p->plan) * 1e3,
		p->in.job.nvns, seconds(p, sim->busiest) * 1e3, hd_sim_plan_bubble(sim) * 100);
	for (uint32_t i = 0; i < nwarnings; i++)
		printf("!!        %s\n", warning[i].text);
}

static void put_rank(struct hd_cmd *cmd, struct hd_json_writer *w, const struct hd_planning *p, uint32_t r)
{
	const struct hd_sim_share *rank = &p->plan.sim.rank[r];
	struct hd_text stages;

	hd_text_init(&stages, &cmd->arena);
	rank_stages(p, r, &stages);
	hd_json_open_object(w, NULL);
	hd_json_put_i64(w, "device", p->plan.device[r]);
	hd_json_put_text(w, "stages", stages.full ? "" : stages.at);
	hd_json_put_i64(w, "virtual_nodes", rank_vns(p, r));
	hd_json_put_f64(w, "busy_s", seconds(p, rank->busy));
	hd_json_open_object(w, "idle_s");
	for (int i = 0; i < HD_NIDLES; i++)
		hd_json_put_f64(w, hd_idle_names[i], seconds(p, rank->idle[i]));
	hd_json_close(w);
	hd_json_put_i64(w, "peak_bytes", rank->peak);
	hd_json_open_object(w, "at_peak");
	for (int i = 0; i < HD_NMEMORIES; i++)
		hd_json_put_i64(w, hd_memory_names[i], rank->at_peak[i]);
	hd_json_close(w);
	hd_json_close(w);
}

static void print_json(struct hd_cmd *cmd, const struct hd_planning *p, const struct hd_explained *e)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "planner", p->plan.planner);
	hd_json_put_text(w, "profile", hd_profile_method_name(p->in.profile.method));
	hd_json_put_i64(w, "devices", p->in.cluster.ndevices);
	hd_json_put_f64(w, "predicted_s", hd_job_plan_step_s(&p->plan));
	hd_json_put_f64(w, "bubble", hd_sim_plan_bubble(&p->plan.sim));
	hd_json_put_text(w, "schedule", p->plan.schedule.heading);
	hd_json_put_bool(w, "runs", p->plan.whole);
	hd_json_put_bool(w, "overlap", p->plan.overlap);
	if (steps_of(cmd, p))
		hd_json_put_text(w, "steps", steps_of(cmd, p));
	hd_json_put_i64(w, "tensor", p->plan.tensor ? p->plan.tensor : 1);
	hd_json_put_i64(w, "tensor_shards", p->ask.tensor_shards);
	hd_json_put_bool(w, "sequence_shards", p->ask.sequence);
	hd_json_open_array(w, "stages");
	for (uint32_t s = 0; s < p->plan.nstages; s++) {
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "first", p->plan.first[s]);
		hd_json_put_i64(w, "last", last_cut(p, s));
		hd_json_put_text(w, "upto", p->in.cuts.name[last_cut(p, s)]);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "ranks");
	for (uint32_t r = 0; r < p->plan.schedule.nranks; r++)
		put_rank(cmd, w, p, r);
	hd_json_close(w);
	hd_json_put_text(w, "why", p->plan.why.at);
	if (e)
		hd_cmd_explain_put(w, p, e);
	hd_json_line_print(&line);
}

/* What every other planner would have made; a plan that several make is printed once. */
static void print_rivals(struct hd_cmd *cmd, const struct hd_planning *p)
{
	struct hd_job_plan made[HD_JOB_PLANNERS] = { p->plan };
	uint32_t n = 1;

	for (const struct hd_job_planner *row = hd_job_planners; row->name; row++) {
		struct hd_job_plan *rival = &made[n];
		struct hd_diag why = { "" };
		uint32_t same = 0;
		if (!strcmp(row->name, p->plan.planner))
			continue;
		if (hd_job_plan_make(rival, row, &p->ask, &cmd->arena, &why)) {
			printf("rival     %s: %s\n", row->name, why.text);
			continue;
		}
		while (!hd_job_plan_same(&made[same], rival))
			same++;
		if (same < n++)
			printf("rival     %s: the plan of %s\n", row->name, made[same].planner);
		else
			printf("rival     %s: %.4f ms, bubble %.1f %%: %.*s\n", row->name,
				hd_job_plan_step_s(rival) * 1e3,
				hd_sim_plan_bubble(&rival->sim) * 100, (int)strcspn(rival->why.at, "\n"),
				rival->why.at);
	}
}

static enum hd_err draw(struct hd_cmd *cmd, const struct hd_planning *p)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	enum hd_err err = hd_draw_time(&p->plan.sim, COLUMNS, &text, &cmd->diag);
	if (!err)
		printf("timeline  F forward, B backward, I W its halves, R again, U update; r sums of "
			"gradients; . nothing; b, c, ...: model chunks\n%s",
			text.at);
	return err;
}

static enum hd_err write_whole(struct hd_cmd *cmd, const struct hd_planning *p, struct hd_text *text)
{
	uint32_t *map = hd_arena_take(&cmd->arena, p->in.job.nvns, sizeof *map);

	if (!map)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the text of a plan");
	for (uint32_t r = 0, v = 0; r < p->plan.schedule.nranks; r++)
		for (uint32_t i = 0; i < p->plan.counts[r]; i++)
			map[v++] = p->plan.device[r];
	return hd_plan_input_whole(cmd, &p->in, map, text);
}

/* A plan that a run takes up where it can be one, else the schedule with remarks. */
static enum hd_err write_plan(struct hd_cmd *cmd, struct hd_planning *p)
{
	struct hd_text text;
	enum hd_err err = HD_OK;

	hd_text_init(&text, &cmd->arena);
	if (p->plan.whole)
		err = write_whole(cmd, p, &text);
	else
		hd_job_plan_print(&p->plan, &p->ask, &text);
	if (!err && text.full)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the text of a plan");
	return err ? err : hd_file_write_atomic(&cmd->fs, cmd->args.text[HD_OPT_OUTPUT], text.at, text.len,
		&cmd->diag);
}

enum hd_err hd_cmd_planning_read(struct hd_cmd *cmd, struct hd_planning **out)
{
	struct hd_planning *p = hd_arena_take(&cmd->arena, 1, sizeof *p);

	if (!p)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a plan");
	enum hd_err err = cmd->args.has[HD_OPT_PLANNER] ? hd_job_planner_find(&p->planner,
		cmd->args.text[HD_OPT_PLANNER], &cmd->diag) : HD_OK;
	if (!err)
		err = hd_plan_input_read(cmd, &p->in);
	if (!err && hd_job_int(&p->in.job, HD_JOB_PAR_MODE) == HD_PAR_EXPLICIT)
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"parallel.mode explicit names its plan, %s: `heddle plan check` proves "
			"it; leave mode out to have one made", hd_job_text(&p->in.job, HD_JOB_PAR_PLAN));
	if (!err)
		ask(cmd, p);
	if (!err)
		err = hd_job_ask_planner(&p->planner, &p->in.job, p->ask.meetings,
			cmd->args.text[HD_OPT_PLANNER], &cmd->diag);
	if (!err)
		*out = p;
	return err;
}

enum hd_err hd_cmd_planning(struct hd_cmd *cmd, struct hd_planning **out)
{
	enum hd_err err = hd_cmd_planning_read(cmd, out);

	return err ? err : hd_job_plan_make(&(*out)->plan, (*out)->planner, &(*out)->ask, &cmd->arena,
		&cmd->diag);
}

static enum hd_err verb_plan(struct hd_cmd *cmd)
{
	struct hd_planning *p = NULL;
	const bool others = cmd->args.has[HD_OPT_SUGGEST] || cmd->args.has[HD_OPT_MARKET];
	enum hd_err err = others ? hd_cmd_planning_read(cmd, &p) : hd_cmd_planning(cmd, &p);

	if (!err && others)
		return cmd->args.has[HD_OPT_SUGGEST] ? hd_cmd_suggest_job(cmd, p) : hd_cmd_plan_spot(cmd, p);
	if (!err && cmd->args.has[HD_OPT_OUTPUT])
		err = write_plan(cmd, p);
	const bool explains = cmd->args.has[HD_OPT_EXPLAIN];
	struct hd_explained explained;
	if (!err && explains)
		err = hd_cmd_explain(cmd, p, &explained);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON]) {
		print_json(cmd, p, explains ? &explained : NULL);
		return HD_OK;
	}
	print_text(cmd, p);
	if (explains) {
		hd_cmd_explain_print(p, &explained);
		print_rivals(cmd, p);
	}
	return cmd->args.has[HD_OPT_DRAW] ? draw(cmd, p) : HD_OK;
}

const struct hd_verb hd_verb_plan = {
	.name = "plan", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "make the plan of a job: where its stages run and what a step will take; runs nothing",
	.more =
		"JOB has a . or a / in its name (./check is a file). Costs are those of --profile FILE, "
		"else modelled from counts of operations on a nominal core; devices those of --cluster "
		"FILE, else --workers N equal ones. The table parallel of the job says what is wished "
		"for. Every plan is simulated with its transfers and sums of gradients: time of a step, "
		"bubble (step over the busiest rank's work, less 1), why each rank stands still, memory "
		"at the worst time. -o PLAN: what `heddle run\n"
		"--plan` takes where every device has the whole model; else a schedule for `heddle plan "
		"check`. --explain: also the critical path of the step by terms and parts, which rank "
		"waits for which, what is exchanged, memory by rank, with the shadows that "
		"elastic.redundancy asks for, and what other planners would have made. --suggest-job: how "
		"large a virtual node is belongs to the job; it prints sizes "
		"1, 2, 4, ... and the job's own, with how fast each would be.\n"
		"--spot FILE: on all pipelines and schedules that the job's keys leave open, what "
		"checkpoints, rerouting, shadows and spare pipelines are worth in samples per dollar of "
		"all machines, each with all terms, best first, and the choice as keys of the job. FILE "
		"is {\"losses_h\": 2, \"together\": [0.6, 0.4], ...} or a trace (docs/spot.md).",
	.opts = HD_OPTS(HD_OPT_WORKERS, HD_OPT_CLUSTER, HD_OPT_PROFILE, HD_OPT_FORCE_PROFILE,
		HD_OPT_PLANNER, HD_OPT_PARTITIONER, HD_OPT_SCHEDULE, HD_OPT_DRAW, HD_OPT_EXPLAIN,
		HD_OPT_SUGGEST, HD_OPT_MARKET, HD_OPT_OUTPUT, HD_OPT_MAX_CUTS, HD_OPT_COMPRESS, HD_OPT_SET),
	.run = verb_plan, .test = "program_plan_job.sh",
};
