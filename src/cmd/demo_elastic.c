#include "cmd/demo_elastic.h"

#include <string.h>

#include "sys/signal.h"
#include "cmd/json_line.h"
#include "cmd/trial.h"

/* A fixed script over a real run of processes. Two workers are of this machine's speed, two compute three
 * times as slowly. */

static const char job[] =
	"job: {name: demo-elastic, seed: 17, steps: 300}\n"
	"model: {use: builtin:gpt, args: {layers: 2, width: 128, heads: 4, context: 32, vocab: 256, "
	"dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 4096}\n"
	"batch: {global: 64, virtual_nodes: 16}\n"
	"optim: {kind: adamw, lr: 1e-3, schedule: {kind: cosine, warmup: 20}}\n"
	"eval: {every: 0}\n"
	"checkpoint: {every: 50 steps}\n"
	"trace: {digest: 1}\n"
	"workers: {detect: 1 s}\n";

enum { HD_DEMO_STEPS = 300, HD_DEMO_FAST = 2, HD_DEMO_SLOW = 2 };

struct story {
	struct hd_trial trial;
	struct hd_proc slow[HD_DEMO_SLOW];
	char path[HD_RUN_PATH];
	bool quiet;
	uint32_t kills, joins;
	int64_t began_ns;
};

static void split_of(const struct hd_live *live, char *text, size_t cap)
{
	size_t at = 0;

	*text = 0;
	for (uint32_t i = 0; i < live->nworkers && at + 8 < cap; i++)
		if (live->worker[i].virtual_nodes)
			at += (size_t)snprintf(text + at, cap - at, "%s%lld", at ? "/" : "",
				(long long)live->worker[i].virtual_nodes);
}

static void tell(const struct story *s, const char *what)
{
	const struct hd_live *l = &s->trial.live;
	char split[128];

	if (s->quiet)
		return;
	split_of(l, split, sizeof split);
	if (!l->members) {                /* another coordinator has begun, and nobody has called it yet */
		printf("  the coordinator changes, workers go on   %s\n", what);
		fflush(stdout);
		return;
	}
	printf("  step %4lld  loss %.3f   %lld workers   virtual nodes %s   %s\n", (long long)l->step,
		l->loss, (long long)l->members, split, what);
	fflush(stdout);
}

static enum hd_err start_slow(struct story *s)
{
	const char *argv[] = { "/proc/self/exe", "worker", "--join", s->trial.dir, "--devices", "1", "--slow",
		"3", "--steps", "300", NULL };
	char path[HD_PATH_CAP];
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < HD_DEMO_SLOW && !err; i++) {
		struct hd_file log = { 0 };
		snprintf(path, sizeof path, "%s/log/slow-%u.log", s->trial.dir, i);
		err = hd_file_open(&s->trial.cmd->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND,
			&log, &s->trial.cmd->diag);
		if (!err)
			err = hd_proc_spawn(&s->trial.host,
				&(struct hd_spawn){ .argv = argv, .in = -1, .out = log.id, .err = log.id },
				&s->slow[i],
				&s->trial.cmd->diag);
		if (log.fs && hd_file_close(&log, NULL) && !err)
			err = HD_E_IO;
	}
	return err;
}

static int64_t members(const struct hd_live *live) { return live->members; }
static int64_t known(const struct hd_live *live) { return live->nworkers; }

/* Until there are so many; a run that is over has as many as it had. */
static enum hd_err await(struct story *s, int64_t (*count)(const struct hd_live *live), int64_t n)
{
	enum hd_err err = hd_trial_look(&s->trial);

	while (!err && count(&s->trial.live) < n && !hd_trial_ended(&s->trial)) {
		hd_clock_wait_until(&s->trial.cmd->clock, hd_clock_now_ns(&s->trial.cmd->clock) +
			HD_TRIAL_LOOK_NS);
		err = hd_trial_look(&s->trial);
	}
	return err;
}

static enum hd_err uneven(struct story *s)
{
	enum hd_err err = hd_trial_reach(&s->trial, 2);

	if (!err)
		err = start_slow(s);
	if (!err)
		/* else the coordinator would start two of its own */
		err = await(s, known, HD_DEMO_FAST + HD_DEMO_SLOW);
	if (!err)
		err = hd_trial_ask(&s->trial, "{\"do\":\"scale\",\"workers\":4}");
	if (!err)
		err = await(s, members, HD_DEMO_FAST + HD_DEMO_SLOW);
	s->joins += HD_DEMO_SLOW;
	if (!err)
		tell(s, "++ 2 workers joined that compute three times as slowly");
	if (!err)
		err = hd_trial_reach(&s->trial, (uint64_t)s->trial.live.step + 40);
	if (!err)
		tell(s, ">> shares follow the measured speeds");
	return err;
}

static enum hd_err kill_worker(struct story *s)
{
	int64_t pid = 0, epoch = s->trial.live.epoch;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < s->trial.live.nworkers && i < HD_DEMO_FAST; i++)
		if (s->trial.live.worker[i].virtual_nodes)
			pid = s->trial.live.worker[i].pid;
	if (pid && !hd_pid_signal((int)pid, HD_PROC_KILL))
		s->kills++;
	while (!err && pid && (s->trial.live.epoch == epoch || !s->trial.live.members) &&
		!hd_trial_ended(&s->trial)) {
		hd_clock_wait_until(&s->trial.cmd->clock, hd_clock_now_ns(&s->trial.cmd->clock) +
			HD_TRIAL_LOOK_NS);
		err = hd_trial_look(&s->trial);
	}
	if (!err)
		tell(s, "!! a worker was killed (SIGKILL); its virtual nodes were computed again");
	return err;
}

static enum hd_err grow(struct story *s)
{
	enum hd_err err = hd_trial_ask(&s->trial, "{\"do\":\"scale\",\"workers\":5}");

	if (!err)
		err = await(s, members, 5);
	s->joins += 2;
	if (!err)
		tell(s, "++ 5 workers: state learnt in the background, no step waited");
	return err;
}

static enum hd_err kill_coordinator(struct story *s)
{
	int64_t term = s->trial.live.term;
	enum hd_err err = HD_OK;

	if (s->trial.coordinator > 0 && !hd_pid_signal((int)s->trial.coordinator, HD_PROC_KILL))
		s->kills++;
	while (!err && (s->trial.live.term == term || !s->trial.live.members) && !hd_trial_ended(&s->trial)) {
		hd_clock_wait_until(&s->trial.cmd->clock, hd_clock_now_ns(&s->trial.cmd->clock) +
			HD_TRIAL_LOOK_NS);
		err = hd_trial_look(&s->trial);
	}
	if (!err)
		tell(s, s->trial.live.term == term ?
			"!! the coordinator was killed; workers kept stepping to the end"
			: "!! the coordinator was killed; workers kept stepping, a member started another "
			"from the store");
	return err;
}

static enum hd_err play(struct story *s)
{
	static enum hd_err (*const scene[])(struct story *s) = { uneven, kill_worker, grow,
		kill_coordinator };
	enum hd_err err = hd_trial_start(&s->trial, HD_DEMO_FAST, "1");

	for (size_t i = 0; i < sizeof scene / sizeof *scene && !err; i++)
		err = scene[i](s);
	return err ? err : hd_trial_reach(&s->trial, HD_DEMO_STEPS);
}

static void print_end(const struct story *s, const struct hd_trial_end *end)
{
	const struct hd_trial *t = &s->trial;
	double seconds = (double)(hd_clock_now_ns(&t->cmd->clock) - s->began_ns) * 1e-9;

	if (t->cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_line line;
		struct hd_json_writer *w = hd_json_line_open(t->cmd, &line);
		hd_json_put_text(w, "demo", "elastic");
		hd_json_put_i64(w, "steps", HD_DEMO_STEPS);
		hd_json_put_i64(w, "kills", s->kills);
		hd_json_put_i64(w, "joins", s->joins);
		hd_json_put_i64(w, "membership", t->live.epoch);
		hd_json_put_text(w, "digest", end->disturbed);
		hd_json_put_text(w, "digest_undisturbed", end->twin);
		hd_json_put_bool(w, "identical", end->same);
		hd_json_put_f64(w, "seconds", seconds);
		hd_json_put_text(w, "run", t->dir);
		hd_json_line_print(&line);
		return;
	}
	printf("  state    %s   (elastic: %u kills, %u joins, %lld memberships)\n", end->disturbed, s->kills,
		s->joins, (long long)t->live.epoch);
	printf("  state    %s   (one worker, undisturbed)%s\n", end->twin,
		end->same ? "   IDENTICAL" : "   DIFFERENT");
	printf("  report   %s/report.html\n", t->dir);
}

static enum hd_err prepare(struct story *s, struct hd_cmd *cmd)
{
	char dir[HD_RUN_PATH];

	hd_trial_folder(cmd, "demo-elastic", dir);
	snprintf(s->path, sizeof s->path, "%.480s/demo.yaml", dir);
	enum hd_err err = hd_trial_init(&s->trial, cmd, s->path, dir, HD_DEMO_STEPS);
	return err ? err : hd_file_write_atomic(&cmd->fs, s->path, job, strlen(job), &cmd->diag);
}

enum hd_err hd_demo_elastic(struct hd_cmd *cmd)
{
	struct story s = { .quiet = cmd->args.has[HD_OPT_JSON] || cmd->args.has[HD_OPT_QUIET],
		.began_ns = hd_clock_now_ns(&cmd->clock) };
	struct hd_trial_end end = { .same = false };

	if (cmd->args.has[HD_OPT_SHOW]) {
		fputs(job, stdout);
		return HD_OK;
	}
	enum hd_err err = prepare(&s, cmd);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err && !s.quiet)
		printf("  model  gpt of 2 layers, 16 virtual nodes, %d steps; 2 workers\n", HD_DEMO_STEPS);
	if (!err)
		err = play(&s);
	for (uint32_t i = 0; i < HD_DEMO_SLOW; i++)
		hd_proc_finish(&s.slow[i]);
	if (!err && !s.quiet)
		printf("  now the same job on one undisturbed worker ...\n");
	if (!err)
		err = hd_trial_compare(&s.trial, &end);
	if (end.twin[0])
		print_end(&s, &end);
	hd_trial_finish(&s.trial);
	return err;
}
