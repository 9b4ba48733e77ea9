#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "sys/signal.h"
#include "cmd/json_line.h"
#include "cmd/trial.h"

/* A job under faults and undisturbed, and both states. Every fault is drawn from the seed: when (a committed step and a
 * part of a step's time), whom (any process, the coordinator too), what. */

enum { HD_CHAOS_WORKERS = 3, HD_CHAOS_KILLS = 20, HD_CHAOS_STEPS = 200, HD_CHAOS_MOST = 4096 };

enum fault { FAULT_KILL, FAULT_PAUSE, FAULT_SCALE, FAULTS };
static const char *const fault_name[FAULTS] = { "kill", "pause", "scale" };

struct chaos {
	struct hd_trial trial;
	uint64_t seed;
	uint32_t nworkers, nfaults, next;
	struct planned { uint64_t step; uint32_t part, pick; enum fault fault; } *fault;    /* part: of a step, in 1/2^32 */
	uint32_t done[FAULTS], coordinators;
	int64_t paused_pid, paused_until_ns;
};

static int by_step(const void *a, const void *b)
{
	const struct planned *x = a, *y = b;

	return x->step != y->step ? (x->step < y->step ? -1 : 1) : x->part < y->part ? -1 : x->part > y->part;
}

/* Kills are as many as asked for; between them a tenth as many pauses and changes of size. */
static enum hd_err plan(struct chaos *c, uint32_t kills)
{
	struct hd_cmd *cmd = c->trial.cmd;

	c->nfaults = kills + kills / 10 + kills / 10;
	c->fault = hd_arena_take(&cmd->arena, c->nfaults + 1, sizeof *c->fault);
	if (!c->fault)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %u faults", c->nfaults);
	for (uint32_t i = 0; i < c->nfaults; i++) {
		const struct hd_philox w = hd_philox((const uint32_t[4]){ i, 0, 0, 0 }, hd_philox_key(c->seed, HD_RNG_USER));
		c->fault[i] = (struct planned){ .step = 1 + w.word[0] % (c->trial.nsteps - 2), .part = w.word[1], .pick = w.word[2],
			.fault = i < kills ? FAULT_KILL : i < kills + kills / 10 ? FAULT_PAUSE : FAULT_SCALE };
	}
	qsort(c->fault, c->nfaults, sizeof *c->fault, by_step);
	return HD_OK;
}

/* Any process of the run, the coordinator among them where it may be. 0: none is known. */
static int64_t victim(const struct chaos *c, uint32_t pick, bool coordinator_too)
{
	const struct hd_trial *t = &c->trial;
	uint32_t n = t->live.nworkers + (coordinator_too && t->coordinator > 0);

	if (!n)
		return 0;
	pick %= n;
	return pick < t->live.nworkers ? t->live.worker[pick].pid : t->coordinator;
}

static bool kill_one(struct chaos *c, const struct planned *f)
{
	struct hd_trial *t = &c->trial;
	int64_t pid = victim(c, f->pick, true);

	if (!pid || hd_pid_signal((int)pid, HD_PROC_KILL))
		return false;
	c->coordinators += pid == t->coordinator;
	if (pid == t->coordinator)
		t->coordinator = 0;
	return true;
}

static bool pause_one(struct chaos *c, const struct planned *f)
{
	int64_t pid = victim(c, f->pick, false);

	if (!pid || c->paused_pid || hd_pid_signal((int)pid, HD_PROC_STOP))
		return false;
	c->paused_pid = pid;
	c->paused_until_ns = hd_clock_now_ns(&c->trial.cmd->clock) + INT64_C(200000000) + (int64_t)(f->part >> 1);      /* up to 2.3 s */
	return true;
}

static bool scale(struct chaos *c, const struct planned *f)
{
	char ask[64];

	snprintf(ask, sizeof ask, "{\"do\":\"scale\",\"workers\":%u}", 1 + f->pick % (c->nworkers + 1));
	return !hd_trial_ask(&c->trial, ask);
}

static void let_paused_go(struct chaos *c, bool now)
{
	if (!c->paused_pid || (!now && hd_clock_now_ns(&c->trial.cmd->clock) < c->paused_until_ns))
		return;
	(void)!hd_pid_signal((int)c->paused_pid, HD_PROC_CONT);       /* it may have been killed meanwhile */
	c->paused_pid = 0;
}

/* Faults whose time has come. One that finds nobody is tried again at the next look. */
static enum hd_err act(struct chaos *c)
{
	static bool (*const commit[FAULTS])(struct chaos *c, const struct planned *f) = { kill_one, pause_one, scale };
	struct hd_clock *clock = &c->trial.cmd->clock;

	while (c->next < c->nfaults && c->fault[c->next].step <= hd_trial_step(&c->trial)) {
		const struct planned *f = &c->fault[c->next];
		double part_ns = (double)f->part / 0x1p32 * c->trial.live.step_ms * 1e6;
		hd_clock_wait_until(clock, hd_clock_now_ns(clock) + (int64_t)part_ns);
		if (!commit[f->fault](c, f))
			return HD_OK;
		c->done[f->fault]++;
		c->next++;
		enum hd_err err = hd_trial_look(&c->trial);
		if (err)
			return err;
	}
	return HD_OK;
}

static enum hd_err watch(struct chaos *c)
{
	struct hd_clock *clock = &c->trial.cmd->clock;
	enum hd_err err = HD_OK;

	while (!err && !hd_trial_ended(&c->trial)) {
		hd_clock_wait_until(clock, hd_clock_now_ns(clock) + HD_TRIAL_LOOK_NS);
		err = hd_trial_look(&c->trial);
		if (!err)
			err = act(c);
		let_paused_go(c, err != HD_OK);
	}
	let_paused_go(c, true);
	return err;
}

static void print(const struct chaos *c, const struct hd_trial_end *end)
{
	const struct hd_trial *t = &c->trial;

	if (t->cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_line line;
		struct hd_json_writer *w = hd_json_line_open(t->cmd, &line);
		hd_json_put_u64(w, "seed", c->seed);
		hd_json_put_i64(w, "steps", (int64_t)t->nsteps);
		hd_json_put_i64(w, "kills", c->done[FAULT_KILL]);
		hd_json_put_i64(w, "coordinators", c->coordinators);
		hd_json_put_i64(w, "pauses", c->done[FAULT_PAUSE]);
		hd_json_put_i64(w, "scales", c->done[FAULT_SCALE]);
		hd_json_put_i64(w, "membership", t->live.epoch);
		hd_json_put_text(w, "digest", end->disturbed);
		hd_json_put_text(w, "digest_undisturbed", end->twin);
		hd_json_put_bool(w, "identical", end->same);
		hd_json_line_print(&line);
		return;
	}
	printf("faults   ");
	for (int f = 0; f < FAULTS; f++)
		printf("%s%u %s%s", f ? ", " : "", c->done[f], fault_name[f], c->done[f] == 1 ? "" : "s");
	printf(" (the coordinator killed %u times), membership %lld\n", c->coordinators, (long long)t->live.epoch);
	printf("state    %s  (under chaos, seed %llu)\nstate    %s  (one device, undisturbed)      %s\n", end->disturbed, (unsigned long long)c->seed,
		end->twin, end->same ? "IDENTICAL" : "DIFFERENT");
}

static enum hd_err prepare(struct chaos *c, struct hd_cmd *cmd)
{
	const char *parent = cmd->args.has[HD_OPT_OUT] ? cmd->args.text[HD_OPT_OUT] : "runs/chaos";
	uint64_t kills = cmd->args.has[HD_OPT_KILLS] ? cmd->args.count[HD_OPT_KILLS] : HD_CHAOS_KILLS;
	uint64_t nsteps = cmd->args.has[HD_OPT_STEPS] ? cmd->args.count[HD_OPT_STEPS] : HD_CHAOS_STEPS;

	c->seed = cmd->args.has[HD_OPT_SEED] ? cmd->args.count[HD_OPT_SEED] : 1;
	c->nworkers = cmd->args.has[HD_OPT_WORKERS] ? (uint32_t)cmd->args.count[HD_OPT_WORKERS] : HD_CHAOS_WORKERS;
	if (c->nworkers < 1 || c->nworkers > HD_LIVE_WORKERS / 2 || kills > HD_CHAOS_MOST || nsteps < 3)
		return hd_fail(&cmd->diag, HD_E_INVAL, "from 1 to %d workers, at most %d kills, at least 3 steps", HD_LIVE_WORKERS / 2, HD_CHAOS_MOST);
	enum hd_err err = hd_trial_init(&c->trial, cmd, cmd->args.pos[0], parent, nsteps);
	return err ? err : plan(c, (uint32_t)kills);
}

enum hd_err hd_cmd_chaos_run(struct hd_cmd *cmd)
{
	struct hd_trial_end end = { .same = false };
	struct chaos c = { .seed = 0 };
	enum hd_err err = prepare(&c, cmd);

	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err)
		err = hd_trial_start(&c.trial, c.nworkers, cmd->args.has[HD_OPT_DEVICES] ? cmd->args.text[HD_OPT_DEVICES] : "1");
	if (!err)
		err = watch(&c);
	if (!err)
		err = hd_trial_compare(&c.trial, &end);
	if (end.twin[0])
		print(&c, &end);
	hd_trial_finish(&c.trial);
	return err;
}
