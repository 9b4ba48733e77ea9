#include <string.h>

#include "base/num.h"
#include "sys/signal.h"
#include "run/samples.h"
#include "chaos/campaign.h"
#include "cmd/json_line.h"
#include "cmd/session.h"
#include "cmd/run/live.h"

/* A job under faults and undisturbed, and both states; and one kind of fault in a run that goes on. */

enum { HD_CHAOS_WORKERS = 3, HD_CHAOS_KILLS = 20, HD_CHAOS_STEPS = 200, HD_CHAOS_MTBF_MS = 1000 };
_Static_assert((int)HD_MAX_SETS == (int)HD_HARNESS_SETS, "a run takes as many -s as a verb");

struct chaos {
	struct hd_cmd *cmd;
	struct hd_campaign plan;
	struct hd_harness harness;
	struct hd_faults faults;
	struct hd_job *job;
	struct hd_samples_found samples;
	bool recorded;                    /* the run keeps a record of its samples */
	bool exact;                       /* each data epoch took each sample once */
	bool named;                       /* the user said how many of the other kinds */
};

/* ---- what is printed ---- */

static void print_json(const struct chaos *c, const struct hd_harness_end *end)
{
	const struct hd_harness *t = &c->harness;
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(c->cmd, &line);

	hd_json_put_u64(w, "seed", c->plan.seed);
	hd_json_put_i64(w, "steps", (int64_t)t->nsteps);
	hd_json_put_i64(w, "pace_ms", (int64_t)t->pace_ms);
	hd_json_put_i64(w, "kills", c->faults.done[HD_FAULT_KILL] + c->faults.done[HD_FAULT_POINT]);
	hd_json_put_i64(w, "coordinators", c->faults.coordinators);
	for (uint32_t k = HD_FAULT_POINT; k < HD_FAULTS; k++) {
		char name[24];
		snprintf(name, sizeof name, "%ss", hd_fault_name[k]);
		hd_json_put_i64(w, name, c->faults.done[k]);
	}
	hd_json_put_i64(w, "planned", c->plan.nfaults);
	hd_json_put_i64(w, "begun", c->plan.begun);
	hd_json_put_i64(w, "missed", hd_campaign_missed_all(&c->plan, &c->faults));
	hd_json_put_i64(w, "resumed", t->resumed);
	hd_json_put_i64(w, "membership", t->live.epoch);
	hd_json_open_object(w, "phases");
	for (uint32_t p = 0; p < HD_FP_NPHASES; p++)
		hd_json_put_i64(w, hd_fp_phase_name(p), hd_campaign_killed_in(&c->plan, &c->faults, p));
	hd_json_close(w);
	hd_json_open_object(w, "places");
	for (uint32_t p = 0; p < c->plan.npoints; p++)
		hd_json_put_i64(w, hd_failpoint_name(p), c->faults.killed[p]);
	hd_json_close(w);
	hd_json_put_text(w, "digest", end->disturbed);
	hd_json_put_text(w, "digest_undisturbed", end->twin);
	hd_json_put_bool(w, "identical", end->same);
	hd_json_open_object(w, "samples");
	hd_json_put_i64(w, "epochs", (int64_t)c->samples.epochs);
	hd_json_put_i64(w, "each", (int64_t)c->samples.epoch);
	hd_json_put_i64(w, "rest", (int64_t)c->samples.rest);
	hd_json_put_i64(w, "again", (int64_t)c->samples.again);
	if (c->recorded)
		hd_json_put_bool(w, "exact", c->exact);
	else
		hd_json_put_null(w, "exact");
	hd_json_close(w);
	hd_json_line_print(&line);
}

/* Deaths by phase, and within it by place. */
static void print_table(const struct chaos *c)
{
	printf("%-12s %5s  at\n", "killed in", "times");
	for (uint32_t phase = 0; phase < HD_FP_NPHASES; phase++) {
		printf("%-12s %5u ", hd_fp_phase_name(phase), hd_campaign_killed_in(&c->plan, &c->faults,
			phase));
		for (uint32_t p = 0; p < c->plan.npoints; p++)
			if (hd_failpoint_phase(p) == phase)
				printf(" %s %u", hd_failpoint_name(p), c->faults.killed[p]);
		putchar('\n');
	}
	printf("%-12s %5u  at any instant\n", "", c->faults.done[HD_FAULT_KILL]);
}

/* Equal states prove less than was asked for. */
static void print_missed(const struct chaos *c)
{
	const char *before = "";

	if (!hd_campaign_missed_all(&c->plan, &c->faults))
		return;
	printf("missed   %u of %u that were planned (", hd_campaign_missed_all(&c->plan, &c->faults),
		c->plan.nfaults);
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		if (hd_campaign_missed(&c->plan, &c->faults, k)) {
			printf("%s%u %s", before, hd_campaign_missed(&c->plan, &c->faults, k),
				hd_fault_name[k]);
			before = ", ";
		}
	printf("): the run ended first, or no process came by the place; give it more --steps\n");
}

static void print(const struct chaos *c, const struct hd_harness_end *end)
{
	const struct hd_harness *t = &c->harness;

	if (c->cmd->args.has[HD_OPT_JSON]) {
		print_json(c, end);
		return;
	}
	printf("faults   ");
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		printf("%s%u %s%s", k ? ", " : "", c->faults.done[k], hd_fault_name[k],
			c->faults.done[k] == 1 ? "" : "s");
	printf(" (the coordinator killed %u times at any instant, the run resumed %u times), membership "
		"%lld\n", c->faults.coordinators, t->resumed,
		(long long)t->live.epoch);
	print_missed(c);
	if (c->plan.count[HD_FAULT_POINT])
		print_table(c);
	printf("state    %s  (under chaos, seed %llu)\nstate    %s  (one device, undisturbed)      %s\n",
		end->disturbed, (unsigned long long)c->plan.seed,
		end->twin, end->same ? "IDENTICAL" : "DIFFERENT");
	if (!c->recorded)
		printf("samples  not recorded, as with half of all seeds: so steps overlap\n");
	if (c->exact)
		printf("samples  each of %llu once in each of %llu data epochs, and %llu of the next; %llu "
			"virtual nodes were computed again, from the "
			"same samples\n", (unsigned long long)c->samples.epoch,
			(unsigned long long)c->samples.epochs, (unsigned long long)c->samples.rest,
			(unsigned long long)c->samples.again);
}

/* From what was gathered, not from what should have been. */
static enum hd_err count_samples(struct chaos *c)
{
	struct hd_cmd *cmd = c->cmd;
	struct hd_task *task = NULL;
	enum hd_err err = hd_task_create(&task, c->job, &cmd->fs, &cmd->diag);

	if (!err)
		err = hd_samples_verify(task, &cmd->fs, c->harness.dir, c->harness.nsteps, &c->samples,
			&cmd->diag);
	hd_task_destroy(task);
	c->exact = !err;
	return err;
}

/* Equal states after fewer faults than were asked for: not what was asked for. Kinds that were not named are
 * printed, no more. */
static enum hd_err all_planned(const struct chaos *c)
{
	uint32_t n = c->named || c->plan.each_point ? hd_campaign_missed_all(&c->plan, &c->faults) :
		hd_campaign_missed(&c->plan, &c->faults, HD_FAULT_KILL);

	return !n ? HD_OK : hd_fail(&c->cmd->diag, HD_E_AGAIN,
		"%u of %u planned faults did not happen, though the states are equal: "
		"give it more --steps", n, c->plan.nfaults);
}

/* Steps: 200, or as many as the job has, where --steps does not say. */
static enum hd_err how_much(struct chaos *c, struct hd_cmd *cmd)
{
	struct hd_campaign *plan = &c->plan;
	const struct hd_args *args = &cmd->args;
	const uint64_t kills = hd_args_count(args, HD_OPT_KILLS, HD_CHAOS_KILLS);
	const uint64_t points = hd_args_count(args, HD_OPT_POINTS, 0);
	const uint64_t most = c->job->value[HD_JOB_STEPS].is_none ? UINT64_MAX : (uint64_t)hd_job_int(c->job,
		HD_JOB_STEPS);

	plan->seed = hd_args_count(args, HD_OPT_SEED, 1);
	plan->nworkers = args->has[HD_OPT_WORKERS] ? (uint32_t)args->count[HD_OPT_WORKERS] : HD_CHAOS_WORKERS;
	plan->nsteps = args->has[HD_OPT_STEPS] ? args->count[HD_OPT_STEPS] : HD_CHAOS_STEPS < most ?
		HD_CHAOS_STEPS : most;
	if (plan->nworkers < 1 || plan->nworkers > HD_STATUS_WORKERS / 2 || kills > HD_CAMPAIGN_MOST ||
		points > HD_CAMPAIGN_MOST / HD_FP_OF_RUNS || plan->nsteps < 3)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"from 1 to %d workers, at most %d kills, at most %d deaths at each place, at least "
			"3 steps",
			HD_STATUS_WORKERS / 2, HD_CAMPAIGN_MOST, HD_CAMPAIGN_MOST / HD_FP_OF_RUNS);
	if (plan->nsteps > most)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--steps %llu: the job has %llu (job.steps)",
			(unsigned long long)plan->nsteps, (unsigned long long)most);
	plan->detect_ns = hd_job_int(c->job, HD_JOB_DETECT);
	plan->each_point = (uint32_t)points;
	plan->npoints = hd_job_copies(c->job) ? HD_FP_OF_RUNS : HD_FP_OF_WHOLE;
	c->named = args->has[HD_OPT_FAULTS];
	return hd_campaign_counts(c->named ? args->text[HD_OPT_FAULTS] : NULL, (uint32_t)kills, plan->count,
		&cmd->diag);
}
static enum hd_err prepare(struct chaos *c, struct hd_cmd *cmd)
{
	const struct hd_args *args = &cmd->args;
	char parent[HD_HARNESS_PATH];

	c->job = hd_arena_take(&cmd->arena, 1, sizeof *c->job);
	if (!c->job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job");
	enum hd_err err = hd_session_job(cmd, args->pos[0], c->job, NULL, NULL);
	if (!err)
		err = how_much(c, cmd);
	if (args->has[HD_OPT_OUT])
		snprintf(parent, sizeof parent, "%.400s", args->text[HD_OPT_OUT]);
	else
		hd_harness_folder(&cmd->fs, hd_args_text(args, HD_OPT_DIR, "."), "chaos",
			parent);
	if (!err)
		err = hd_harness_init(&c->harness, &cmd->fs, &cmd->clock, args->pos[0], parent,
			c->plan.nsteps,
			&cmd->diag);
	if (err)
		return err;
	/* steps of a run that records its samples do not overlap (engine/onset_needs.c) */
	c->recorded = c->plan.seed / 2 % 2 == 0 || hd_job_int(c->job, HD_JOB_SAMPLES);
	c->harness.samples = c->recorded;
	c->harness.set = args->set;
	c->harness.nsets = args->nsets;
	c->harness.twin_set = hd_harness_whole_model;
	c->harness.ntwin_sets = HD_HARNESS_WHOLE;
	bool needs = c->plan.each_point > 0;
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		needs |= hd_fault_orders(k) && c->plan.count[k];
	err = hd_fault_init(&c->faults, &c->harness, c->plan.detect_ns, needs, &cmd->diag);
	if (!err)
		err = hd_campaign_plan(&c->plan, &cmd->arena, &cmd->diag);
	if (!err)
		c->harness.pace_ms = hd_campaign_pace_ms(&c->plan);
	return err;
}

static enum hd_err verb_chaos_run(struct hd_cmd *cmd)
{
	struct hd_harness_end end = { .same = false };
	struct chaos c = { .cmd = cmd };
	enum hd_err err = prepare(&c, cmd);

	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err)
		err = hd_harness_start(&c.harness, c.plan.nworkers,
			hd_args_text(&cmd->args, HD_OPT_DEVICES, "1"), &cmd->diag);
	if (!err)
		err = hd_campaign_run(&c.plan, &c.harness, &c.faults, &cmd->diag);
	if (!err)
		err = hd_harness_compare(&c.harness, &end, &cmd->diag);
	if (!err && c.recorded)
		err = count_samples(&c);
	if (end.twin[0])
		print(&c, &end);
	if (!err)
		err = hd_campaign_all_places(&c.plan, &c.faults, &cmd->diag);
	if (!err)
		err = all_planned(&c);
	hd_harness_finish(&c.harness);
	return err;
}

const struct hd_verb hd_verb_chaos_run = {
	.name = "chaos run", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "run a job under faults, and undisturbed on one device, and compare the states",
	.more =
		"SIGKILL to any process of the run, the coordinator too, at any instant; a tenth as "
		"many of each other kind (--faults): pauses (SIGSTOP, SIGCONT), processes slowed, "
		"links cut, silent or slow, disks full, failing or slow, deaths at named places, other "
		"numbers of workers. What, when and at which process is drawn from --seed. Exit 0 only "
		"if both runs end with the same bits, and the run recorded each sample once in each data "
		"epoch (heddle data verify); of a seed that is 2 or 3 more than a multiple of 4 samples "
		"are not recorded, unless the job says so, and steps overlap; 5 if not, if no step is "
		"committed for a minute, or if "
		"--points was asked for and a place had fewer deaths; 1 if kills, or faults of a kind "
		"that --faults names, could not be injected. Steps that would be over before their "
		"faults are made longer (workers.pace). If all processes died, the run is resumed. The "
		"run directories stay: --out DIR (default runs/chaos, chaos-2, ...) holds chaos and "
		"undisturbed.",
	.opts = HD_OPTS(HD_OPT_SEED, HD_OPT_KILLS, HD_OPT_POINTS, HD_OPT_FAULTS, HD_OPT_STEPS,
		HD_OPT_WORKERS, HD_OPT_DEVICES, HD_OPT_OUT, HD_OPT_SET),
	.run = verb_chaos_run, .test = "program_chaos.sh",
};

/* ---- one kind, in a run that goes on ---- */

static enum hd_err read_asked(struct chaos *c, enum hd_fault_kind kind, struct hd_fault *asked)
{
	struct hd_cmd *cmd = c->cmd;
	const struct hd_args *args = &cmd->args;
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	char dir[HD_RUN_PATH];
	double by = 0;

	if (!job)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the job");
	enum hd_err err = hd_session_job_of(cmd, args->pos[0], job, dir);
	if (!err && args->has[HD_OPT_SLOW])
		err = hd_num_f64(args->text[HD_OPT_SLOW], 2, 100, &by, &cmd->diag);
	if (err)
		return err;
	c->plan.detect_ns = hd_job_int(job, HD_JOB_DETECT);
	asked->by = (uint32_t)by;
	asked->for_ns = args->has[HD_OPT_FOR] ? (int64_t)args->count[HD_OPT_FOR] * HD_NS_PER_MS : 0;
	asked->target = HD_TARGET_ANY;
	if (args->has[HD_OPT_TARGET])
		asked->target = !strcmp(args->text[HD_OPT_TARGET], "worker") ? HD_TARGET_WORKER
			: !strcmp(args->text[HD_OPT_TARGET], "coordinator") ? HD_TARGET_COORDINATOR :
				HD_TARGET_ANY;
	asked->how = HD_HOWS;
	for (uint32_t h = 0; args->has[HD_OPT_HOW] && h < HD_HOWS; h++)
		if (!strcmp(args->text[HD_OPT_HOW], hd_fault_how_name[h]) &&
			(kind == HD_FAULT_DISK) == (h >= HD_HOW_FULL))
			asked->how = h;
	if (args->has[HD_OPT_HOW] && asked->how == HD_HOWS)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--how %s: of a net it is cut, drop or delay, of a disk full, error or slow",
			args->text[HD_OPT_HOW]);
	return HD_OK;
}

static enum hd_err inject_fault(struct hd_cmd *cmd, enum hd_fault_kind kind)
{
	const struct hd_args *args = &cmd->args;
	struct chaos c = { .cmd = cmd, .plan.seed = hd_args_count(args, HD_OPT_SEED, 1),
		.plan.nworkers = 1, .plan.npoints = 1, .plan.nsteps = UINT64_MAX };
	enum hd_opt many = kind == HD_FAULT_KILL ? HD_OPT_KILLS : HD_OPT_COUNT_;
	struct hd_injection in = { .kind = kind, .times = args->has[many] ? args->count[many] : 1,
		.mtbf_ms = hd_args_count(args, HD_OPT_MTBF, HD_CHAOS_MTBF_MS) };
	const struct hd_json *answer;
	enum hd_err err = hd_harness_visit(&c.harness, &cmd->fs, &cmd->clock, args->pos[0], &cmd->diag);

	if (!err)
		err = read_asked(&c, kind, &in.asked);
	if (!err)
		err = hd_live_ask(cmd, args->pos[0], "{\"do\":\"status\"}", &answer);
	if (!err)
		err = hd_fault_init(&c.faults, &c.harness, c.plan.detect_ns, hd_fault_orders(kind),
			&cmd->diag);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err)
		err = hd_campaign_inject(&c.plan, &c.harness, &c.faults, &in, &cmd->diag);
	if (!err || c.faults.done[kind]) {
		if (args->has[HD_OPT_JSON]) {
			struct hd_json_line line;
			struct hd_json_writer *w = hd_json_line_open(cmd, &line);
			hd_json_put_text(w, "fault", hd_fault_name[kind]);
			hd_json_put_i64(w, "times", c.faults.done[kind]);
			hd_json_put_i64(w, "step", (int64_t)hd_harness_step(&c.harness));
			hd_json_line_print(&line);
		} else {
			printf("%u of %llu: %s, up to step %llu\n", c.faults.done[kind],
				(unsigned long long)in.times, hd_fault_name[kind],
				(unsigned long long)hd_harness_step(&c.harness));
		}
	}
	hd_harness_finish(&c.harness);
	return err;
}

static enum hd_err verb_chaos_kill(struct hd_cmd *cmd) { return inject_fault(cmd, HD_FAULT_KILL); }

const struct hd_verb hd_verb_chaos_kill = {
	.name = "chaos kill", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "kill processes of a run that goes on with workers",
	.more =
		"--kills K, one after the other, --mtbf apart on average; a process is left each time "
		"that can go on.",
	.opts = HD_OPTS(HD_OPT_SEED, HD_OPT_KILLS, HD_OPT_MTBF, HD_OPT_TARGET),
	.run = verb_chaos_kill, .test = "program_chaos.sh",
};
static enum hd_err verb_chaos_pause(struct hd_cmd *cmd) { return inject_fault(cmd, HD_FAULT_PAUSE); }

const struct hd_verb hd_verb_chaos_pause = {
	.name = "chaos pause", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "stop processes of a run (SIGSTOP) and let them go on (SIGCONT)",
	.more =
		"A process that stands still for longer than workers.detect finds that the others went "
		"on without it, and joins again.",
	.opts = HD_OPTS(HD_OPT_SEED, HD_OPT_COUNT_, HD_OPT_MTBF, HD_OPT_TARGET, HD_OPT_FOR),
	.run = verb_chaos_pause, .test = "program_chaos.sh",
};
static enum hd_err verb_chaos_slow(struct hd_cmd *cmd) { return inject_fault(cmd, HD_FAULT_SLOW); }

const struct hd_verb hd_verb_chaos_slow = {
	.name = "chaos slow", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "slow processes of a run down to a part of their time",
	.more = "--slow X: one X-th of it, by stops of less than 30 ms.",
	.opts = HD_OPTS(HD_OPT_SEED, HD_OPT_COUNT_, HD_OPT_MTBF, HD_OPT_TARGET, HD_OPT_FOR,
		HD_OPT_SLOW),
	.run = verb_chaos_slow, .test = "program_chaos.sh",
};
static enum hd_err verb_chaos_net(struct hd_cmd *cmd) { return inject_fault(cmd, HD_FAULT_NET); }

const struct hd_verb hd_verb_chaos_net = {
	.name = "chaos net", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "disturb links between processes of a run",
	.more =
		"One end of a link between two workers, or of a worker to the coordinator: it closes "
		"and cannot be opened (cut), drops what it receives (drop), or delays everything (delay). "
		"Builds with failpoints.",
	.opts = HD_OPTS(HD_OPT_SEED, HD_OPT_COUNT_, HD_OPT_MTBF, HD_OPT_FOR, HD_OPT_HOW),
	.run = verb_chaos_net, .test = "program_chaos.sh",
};
static enum hd_err verb_chaos_disk(struct hd_cmd *cmd) { return inject_fault(cmd, HD_FAULT_DISK); }

const struct hd_verb hd_verb_chaos_disk = {
	.name = "chaos disk", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "make writes of checkpoints, decisions and logs of a run fail, or slow",
	.more = "Builds with failpoints.",
	.opts = HD_OPTS(HD_OPT_SEED, HD_OPT_COUNT_, HD_OPT_MTBF, HD_OPT_TARGET, HD_OPT_FOR, HD_OPT_HOW),
	.run = verb_chaos_disk, .test = "program_chaos.sh",
};
