#include "cmd/demo/elastic.h"

#include <string.h>

#include "sys/signal.h"
#include "chaos/harness.h"
#include "cmd/json_line.h"
#include "cmd/session.h"

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
	struct hd_cmd *cmd;
	struct hd_harness harness;
	struct hd_proc slow[HD_DEMO_SLOW];
	char path[HD_RUN_PATH];
	bool quiet;
	uint32_t kills, joins;
	int64_t began_ns;
};

static void tell(const struct story *s, const char *what)
{
	const struct hd_status *l = &s->harness.live;
	char split[128];

	if (s->quiet)
		return;
	uint32_t n = hd_status_split(l, split, sizeof split);
	if (!l->members || !n) {          /* another coordinator has begun, and no worker has called it yet */
		printf("  the coordinator changes, workers go on   %s\n", what);
		fflush(stdout);
		return;
	}
	printf("  step %4lld  loss %.3f   %u workers   virtual nodes %s   %s\n", (long long)l->step,
		l->loss, n, split, what);
	fflush(stdout);
}

static enum hd_err start_slow(struct story *s)
{
	const char *argv[] = { "/proc/self/exe", "worker", "--join", s->harness.dir, "--devices", "1",
		"--slow",
		"3", "--steps", "300", NULL };
	char path[HD_PATH_CAP];
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < HD_DEMO_SLOW && !err; i++) {
		struct hd_file log = { 0 };
		snprintf(path, sizeof path, "%s/log/slow-%u.log", s->harness.dir, i);
		err = hd_file_open(&s->cmd->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND,
			&log, &s->cmd->diag);
		if (!err)
			err = hd_proc_spawn(s->harness.host,
				&(struct hd_spawn){ .argv = argv, .in = -1, .out = log.id, .err = log.id },
				&s->slow[i],
				&s->cmd->diag);
		if (log.fs && hd_file_close(&log, NULL) && !err)
			err = HD_E_IO;
	}
	return err;
}

static int64_t members(const struct hd_status *live) { return live->members; }
static int64_t known(const struct hd_status *live) { return live->nworkers; }

static enum hd_err uneven(struct story *s)
{
	enum hd_err err = hd_harness_reach(&s->harness, 2, &s->cmd->diag);

	if (!err)
		err = start_slow(s);
	if (!err)
		/* else the coordinator would start two of its own */
		err = hd_harness_until(&s->harness, known, HD_DEMO_FAST + HD_DEMO_SLOW, &s->cmd->diag);
	if (!err)
		err = hd_harness_ask(&s->harness, "{\"do\":\"scale\",\"workers\":4}");
	if (!err)
		err = hd_harness_until(&s->harness, members, HD_DEMO_FAST + HD_DEMO_SLOW,
			&s->cmd->diag);
	s->joins += HD_DEMO_SLOW;
	if (!err)
		tell(s, "++ 2 workers joined that compute three times as slowly");
	if (!err)
		err = hd_harness_reach(&s->harness, (uint64_t)s->harness.live.step + 40, &s->cmd->diag);
	if (!err)
		tell(s, ">> shares follow the measured speeds");
	return err;
}

static enum hd_err kill_worker(struct story *s)
{
	int64_t pid = 0, epoch = s->harness.live.epoch;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < s->harness.live.nworkers && i < HD_DEMO_FAST; i++)
		if (s->harness.live.worker[i].virtual_nodes)
			pid = s->harness.live.worker[i].pid;
	if (pid && !hd_pid_signal((int)pid, HD_PROC_KILL))
		s->kills++;
	while (!err && pid && (s->harness.live.epoch == epoch || !s->harness.live.members) &&
		!hd_harness_ended(&s->harness)) {
		hd_clock_wait_until(&s->cmd->clock, hd_clock_now_ns(&s->cmd->clock) +
			HD_HARNESS_LOOK_NS);
		err = hd_harness_look(&s->harness, &s->cmd->diag);
	}
	if (!err)
		tell(s, "!! a worker was killed (SIGKILL); its virtual nodes were computed again");
	return err;
}

static enum hd_err grow(struct story *s)
{
	enum hd_err err = hd_harness_ask(&s->harness, "{\"do\":\"scale\",\"workers\":5}");

	if (!err)
		err = hd_harness_until(&s->harness, members, 5, &s->cmd->diag);
	s->joins += 2;
	if (!err)
		tell(s, "++ 5 workers: state learnt in the background, no step waited");
	return err;
}

static enum hd_err kill_coordinator(struct story *s)
{
	int64_t term = s->harness.live.term;
	enum hd_err err = HD_OK;

	if (s->harness.coordinator > 0 && !hd_pid_signal((int)s->harness.coordinator, HD_PROC_KILL))
		s->kills++;
	while (!err && (s->harness.live.term == term || !s->harness.live.members) &&
		!hd_harness_ended(&s->harness)) {
		hd_clock_wait_until(&s->cmd->clock, hd_clock_now_ns(&s->cmd->clock) +
			HD_HARNESS_LOOK_NS);
		err = hd_harness_look(&s->harness, &s->cmd->diag);
	}
	if (!err)
		tell(s, s->harness.live.term == term ?
			"!! the coordinator was killed; workers kept stepping to the end"
			: "!! the coordinator was killed; workers kept stepping, a member started another "
			"from the store");
	return err;
}

static enum hd_err play(struct story *s)
{
	static enum hd_err (*const scene[])(struct story *s) = { uneven, kill_worker, grow,
		kill_coordinator };
	enum hd_err err = hd_harness_start(&s->harness, HD_DEMO_FAST, "1", &s->cmd->diag);

	for (size_t i = 0; i < sizeof scene / sizeof *scene && !err; i++)
		err = scene[i](s);
	return err ? err : hd_harness_reach(&s->harness, HD_DEMO_STEPS, &s->cmd->diag);
}

static void print_end(const struct story *s, const struct hd_harness_end *end)
{
	const struct hd_harness *t = &s->harness;
	double seconds = (double)(hd_clock_now_ns(&s->cmd->clock) - s->began_ns) * 1e-9;

	if (s->cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_line line;
		struct hd_json_writer *w = hd_json_line_open(s->cmd, &line);
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

	hd_harness_folder(&cmd->fs, hd_args_text(&cmd->args, HD_OPT_DIR, "."),
		"demo-elastic", dir);
	snprintf(s->path, sizeof s->path, "%.480s/demo.yaml", dir);
	enum hd_err err = hd_harness_init(&s->harness, &cmd->fs, &cmd->clock, s->path, dir, HD_DEMO_STEPS,
		&cmd->diag);
	s->harness.set = cmd->args.set;
	s->harness.nsets = cmd->args.nsets;
	return err ? err : hd_file_write_atomic(&cmd->fs, s->path, job, strlen(job), &cmd->diag);
}

enum hd_err hd_demo_elastic(struct hd_cmd *cmd)
{
	struct story s = { .cmd = cmd, .quiet = cmd->args.has[HD_OPT_JSON] || cmd->args.has[HD_OPT_QUIET],
		.began_ns = hd_clock_now_ns(&cmd->clock) };
	struct hd_harness_end end = { .same = false };

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
		err = hd_harness_compare(&s.harness, &end, &cmd->diag);
	if (end.twin[0])
		print_end(&s, &end);
	hd_harness_finish(&s.harness);
	return err;
}
