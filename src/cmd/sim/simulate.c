#include <stdio.h>

#include "cmd/json_line.h"
#include "cmd/plan/schedule.h"
#include "cmd/sim/full.h"

/* Of longer ones only figures are printed. */
enum { WHY_MOST = 1 << 20 };

static void print_json(struct hd_cmd *cmd, const struct hd_schedule *s, const struct hd_sim *sim,
	const struct hd_sim_ask *ask,
	const struct hd_sim_plan *full)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "schedule", s->heading);
	hd_json_put_i64(w, "ranks", s->nranks);
	hd_json_put_i64(w, "virtual_nodes", s->nvns);
	hd_json_put_i64(w, "stages", s->nstages);
	hd_json_put_f64(w, "makespan", hd_sim_units(sim, sim->makespan));
	hd_json_put_f64(w, "bubble_over_ideal", hd_sim_bubble(sim));
	hd_json_put_f64(w, "span_idle", hd_sim_units(sim, sim->span_idle));
	hd_json_open_array(w, "peak_activations");
	for (uint32_t r = 0; r < s->nranks; r++)
		hd_json_put_f64(w, NULL, (double)sim->rank[r].peak / sim->per_rank);
	hd_json_close(w);
	hd_json_open_array(w, "busy");
	for (uint32_t r = 0; r < s->nranks; r++)
		hd_json_put_f64(w, NULL, hd_sim_units(sim, sim->rank[r].busy));
	hd_json_close(w);
	if (s->prologue) {
		hd_json_put_i64(w, "steps", sim->steps);
		if (sim->steps >= 4)
			hd_json_put_f64(w, "steady_bubble", hd_sim_steady_bubble(sim, &ask->costs));
	}
	if (full)
		hd_cmd_put_idle(w, full);
	hd_json_line_print(&line);
}

static void print_text(const struct hd_schedule *s, const struct hd_sim *sim, const struct hd_sim_ask *ask)
{
	printf("%s\n  makespan           %.6g\n  bubble over ideal  %.6g\n  span idle          %.6g\n",
		*s->heading ? s->heading : "(no heading)",
		hd_sim_units(sim, sim->makespan), hd_sim_bubble(sim), hd_sim_units(sim, sim->span_idle));
	if (s->prologue && sim->steps >= 4)
		printf("  steady bubble      %.6g   (steps 3 to %u)\n",
			hd_sim_steady_bubble(sim, &ask->costs), sim->steps);
	printf("  %-6s %10s %10s %10s %12s\n", "rank", "busy", "first", "last", "activations");
	for (uint32_t r = 0; r < s->nranks; r++)
		printf("  %-6u %10.6g %10.6g %10.6g %12.6g\n", r, hd_sim_units(sim, sim->rank[r].busy),
			hd_sim_units(sim, sim->rank[r].first),
			hd_sim_units(sim, sim->rank[r].last), (double)sim->rank[r].peak / sim->per_rank);
}

/* How fast the simulator itself is: best of --repeat runs. */
static enum hd_err time_it(struct hd_cmd *cmd, const struct hd_schedule *s, const struct hd_sim_ask *ask)
{
	struct hd_arena arena;
	struct hd_sim sim = { 0 };
	int64_t best_ns = INT64_MAX;
	enum hd_err err = HD_OK;

	hd_arena_init(&arena, 0);
	for (uint64_t i = 0; i < cmd->args.count[HD_OPT_REPEAT] && !err; i++) {
		hd_arena_reset(&arena);
		int64_t start_ns = hd_clock_now_ns(&cmd->clock);
		err = hd_simulate(&sim, s, ask, &arena, &cmd->diag);
		int64_t took_ns = hd_clock_now_ns(&cmd->clock) - start_ns;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
	}
	hd_arena_finish(&arena);
	if (err || best_ns == INT64_MAX)
		return err ? err : hd_fail(&cmd->diag, HD_E_INVAL, "--repeat is 1 or more");
	printf("%s: %llu instructions in %.3f ms, %.1f million a second\n", s->heading,
		(unsigned long long)sim.nins, (double)best_ns / 1e6,
		(double)sim.nins / (double)(best_ns ? best_ns : 1) * 1e3);
	return HD_OK;
}

/* The file is a job: `yes`; options that only a job has are refused for schedules. */
static enum hd_err is_job(struct hd_cmd *cmd, bool *yes)
{
	static const enum hd_opt of_jobs[] = { HD_OPT_WORKERS, HD_OPT_FORCE_PROFILE, HD_OPT_PLANNER,
		HD_OPT_PARTITIONER };
	uint8_t *bytes = NULL;
	size_t len;
	enum hd_err err = cmd->args.npos ? hd_file_read_all(&cmd->fs, cmd->args.pos[0], &cmd->arena,
		HD_SCHEDULE_FILE_BYTES, &bytes, &len, &cmd->diag) : HD_OK;

	*yes = bytes && hd_cmd_is_job((const char *)bytes);
	for (size_t i = 0; i < sizeof of_jobs / sizeof *of_jobs && !err && !*yes; i++)
		if (cmd->args.has[of_jobs[i]])
			err = hd_fail(&cmd->diag, HD_E_INVAL,
				"--%s belongs to a JOB, which is planned first; a schedule is simulated as "
				"it stands",
				hd_opts[of_jobs[i]].name);
	if (!err && !*yes && cmd->args.nsets)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "-s %s sets a key of a JOB; a schedule has none",
			cmd->args.set[0]);
	return err;
}

static enum hd_err verb_simulate(struct hd_cmd *cmd)
{
	bool job = false;
	struct hd_schedules all = { 0 };
	struct hd_sim_ask ask;
	enum hd_err err;

	if (hd_cmd_schedule_help(cmd))
		return HD_OK;
	err = is_job(cmd, &job);
	if (!err && job)
		return hd_cmd_simulate_job(cmd);
	err = err ? err : hd_cmd_sim_ask(cmd, &ask);
	err = err ? err : hd_cmd_schedules_sound(cmd, &all);
	for (uint32_t i = 0; i < all.len && !err; i++) {
		const bool full = hd_cmd_sim_is_full(cmd, &all.at[i]);
		struct hd_sim sim;
		if (cmd->args.has[HD_OPT_REPEAT]) {
			err = time_it(cmd, &all.at[i], &ask);
			continue;
		}
		if (full) {
			err = hd_cmd_simulate_full(cmd, &all.at[i], &ask);
			continue;
		}
		struct hd_diag why = { "" };
		err = hd_simulate(&sim, &all.at[i], &ask, &cmd->arena, &why);
		struct hd_sim_setting set;
		struct hd_sim_plan why_idle = { 0 };
		if (!err && sim.nins <= WHY_MOST) {
			err = hd_cmd_sim_setting(cmd, &all.at[i], &ask, &set);
			err = err ? err : hd_sim_plan(&why_idle, &all.at[i], &set, &cmd->arena, &why);
		}
		if (!err && sim.busiest == 0)
			err = hd_fail(&why, HD_E_INVAL, "no instruction in it costs anything");
		if (err)
			return hd_fail(&cmd->diag, err, "%s: %s",
				*all.at[i].heading ? all.at[i].heading : "schedule", why.text);
		if (cmd->args.has[HD_OPT_JSON])
			print_json(cmd, &all.at[i], &sim, &ask, sim.nins <= WHY_MOST ? &why_idle : NULL);
		else
			print_text(&all.at[i], &sim, &ask);
		if (sim.nins <= WHY_MOST && !cmd->args.has[HD_OPT_JSON])
			hd_cmd_print_idle(cmd, &why_idle);
	}
	return err;
}

const struct hd_verb hd_verb_simulate = {
	.name = "simulate", .args = "[FILE|JOB]", .npos_min = 0, .npos_max = 1,
	.about = "predict time, bubble and activations of a schedule, or of the plan of a job",
	.more =
		"Costs are of a full rank and one virtual node, in units of your choice; a chunk costs "
		"1/V of them. bubble over ideal: makespan over the busiest rank's work, less 1. span "
		"idle: the most that a rank idles between its first and last instruction. peak "
		"activations: in those of a full rank and virtual node. Exact and equal on every "
		"machine.\n"
		"--repeat N: times the simulator itself instead, best of N runs. FILE may be a plan "
		"that a run wrote (plan/NNNN.plan).\n"
		"--redundancy MODE: with a shadow of the next stage on each rank, as `heddle plan show` "
		"adds it, of a JOB too.\n"
		"A FILE, schedules or a plan, passes `heddle plan check` first: what it refuses is "
		"printed as there, with exit 2.\n"
		"With any of the options from --profile to --trace: per rank work and why it stands "
		"still, memory by what it is for, traffic of links, warnings. --profile FILE: seconds "
		"and bytes of a model's stages (--cuts; default: the straight partition) instead of "
		"units; --cluster FILE: devices and links that transfers share (as `heddle plan` takes "
		"it); --seed N: costs vary as they did when profiled; --steps N: as many steps; --trace "
		"FILE: what happens, as a run's flight/N.hdfr.\n"
		"A JOB is planned first, as `heddle plan JOB` does with the same options (--workers, "
		"--cluster, --profile, --planner, --schedule, -s); then that plan is simulated on those "
		"devices, buffered unless --transport says otherwise.",
	.opts = HD_OPTS(HD_SCHEDULE_OPTS, HD_OPT_PERIODS, HD_OPT_REPEAT, HD_OPT_PROFILE, HD_OPT_CUTS,
		HD_OPT_MAX_CUTS, HD_OPT_COMPRESS, HD_OPT_CLUSTER, HD_OPT_TRANSPORT, HD_OPT_CREDITS,
		HD_OPT_WHAT_IF, HD_OPT_SEED, HD_OPT_STEPS, HD_OPT_TRACE, HD_OPT_WORKERS,
		HD_OPT_FORCE_PROFILE, HD_OPT_PLANNER, HD_OPT_PARTITIONER, HD_OPT_SET),
	.run = verb_simulate, .test = "program_schedule.sh",
};
