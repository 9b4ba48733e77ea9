#include "cmd/demo/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "sys/signal.h"
#include "chaos/harness.h"
#include "cmd/json_line.h"
#include "cmd/session.h"

/* A fixed script over a real run of processes. No scene waits for a time or has an end to miss: each waits
 * for what the run says of itself, the run goes on until the last one is over, and the twin takes as many
 * steps. */

static const char job[] =
	"job: {name: demo-pipeline, seed: 17, steps: 100000}\n"
	"model: {use: builtin:gpt, args: {layers: 6, width: 320, heads: 4, context: 16, vocab: 256, "
	"dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 4096}\n"
	"batch: {global: 6, virtual_nodes: 3}\n"
	"optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 10}}\n"
	"eval: {every: 0}\n"
	"checkpoint: {every: 10 steps}\n"
	"parallel: {mode: pipeline}\n"
	"comm: {sync: stages}\n"
	"workers: {detect: 5 s, memory: 100MiB}\n";
/* the same model on one device, and the same without the limit */
static const char *const whole[] = { "parallel.mode=data", "workers.memory=auto" };

enum { HD_DEMO_STEPS = 100000, HD_DEMO_WORKERS = 3, HD_DEMO_MORE = 4, HD_DEMO_APART = 6, HD_DEMO_WORDS = 400,
	HD_DEMO_FILE = 1 << 16 };
#define HD_DEMO_ASK_NS INT64_C(600000000000)

struct stages_story {
	struct hd_cmd *cmd;
	struct hd_harness harness;
	char path[HD_RUN_PATH];           /* the job; the words of its run, and of dry ones */
	char said[HD_RUN_PATH], asked[HD_RUN_PATH];
	char refusal[HD_DEMO_WORDS];
	double memory_mib[HD_DEMO_WORKERS];       /* predicted */
	double predicted_ms, measured_ms, least_ms;       /* 0: not known */
	bool quiet;
	uint32_t kills, joins;
	int64_t began_ns;
};

static void tell(const struct stages_story *s, const char *what)
{
	const struct hd_status *l = &s->harness.live;

	if (s->quiet)
		return;
	printf("  step %4lld  loss %.3f   %lld workers   %s\n", (long long)l->step, l->loss,
		(long long)l->members, what);
	fflush(stdout);
}

/* ---- what fits ---- */

/* What `heddle run --dry-run` says with these options, and its exit code. */
static enum hd_err ask(struct stages_story *s, const char *const *option, const char **words, int *code)
{
	const char *argv[16] = { "/proc/self/exe", "run", s->path, "--dry-run", "--devices", "1" };
	struct hd_proc proc = { 0 };
	struct hd_file log = { 0 };
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_file_open(&s->cmd->fs, s->asked, HD_OPEN_WRITE | HD_OPEN_CREATE |
		HD_OPEN_TRUNCATE, &log, &s->cmd->diag);

	for (uint32_t i = 0; option[i]; i++)
		argv[6 + i] = option[i];
	if (!err)
		err = hd_proc_spawn(s->harness.host,
			&(struct hd_spawn){ .argv = argv, .in = -1, .out = log.id, .err = log.id }, &proc,
			&s->cmd->diag);
	if (!err)
		err = hd_proc_wait(&proc, HD_DEMO_ASK_NS, code, &s->cmd->diag);
	hd_proc_finish(&proc);
	if (log.fs)
		(void)!hd_file_close(&log, NULL);         /* nothing was written by this process */
	if (!err)
		err = hd_file_read_all(&s->cmd->fs, s->asked, &s->cmd->arena, HD_DEMO_FILE, &bytes, &len,
			&s->cmd->diag);
	if (!err)
		*words = (const char *)bytes;
	return err;
}

static enum hd_err one_is_refused(struct stages_story *s)
{
	static const char *const alone[] = { "-q", "-s", "parallel.mode=data", NULL };
	static const char program[] = "heddle: ";
	const char *words = "";
	int code = 0;
	enum hd_err err = ask(s, alone, &words, &code);

	if (err)
		return err;
	words += strncmp(words, program, sizeof program - 1) ? 0 : sizeof program - 1;
	snprintf(s->refusal, sizeof s->refusal, "%.*s", (int)strcspn(words, "\n"), words);
	if (code != hd_err_exit(HD_E_REFUSED))
		return hd_fail(&s->cmd->diag, HD_E_INTEGRITY,
			"one worker was to be refused for its memory, and `heddle run --dry-run` ended with "
			"exit code %d: %s", code, s->refusal);
	if (!s->quiet)
		printf("  one worker is refused: %s\n", s->refusal);
	return HD_OK;
}

/* The lines "worker N: memory: X MiB". */
static enum hd_err three_fit(struct stages_story *s)
{
	static const char *const team[] = { "--workers", "3", NULL };
	static const char memory[] = ": memory: ";
	const char *words = "";
	int code = 0;
	uint32_t n = 0;
	enum hd_err err = ask(s, team, &words, &code);

	if (err)
		return err;
	if (code)
		return hd_fail(&s->cmd->diag, HD_E_INTEGRITY,
			"three workers were to fit, and `heddle run --dry-run` ended with exit code %d: see "
			"%s", code, s->asked);
	while (n < HD_DEMO_WORKERS && (words = strstr(words, memory)) != NULL) {
		words += sizeof memory - 1;
		s->memory_mib[n++] = strtod(words, NULL);
	}
	if (!s->quiet)
		printf("  three fit: %.1f, %.1f and %.1f MiB predicted\n", s->memory_mib[0], s->memory_mib[1],
			s->memory_mib[2]);
	return HD_OK;
}

/* ---- scenes ---- */

static int64_t members(const struct hd_status *live) { return live->members; }
static int64_t epoch(const struct hd_status *live) { return live->epoch; }

static enum hd_err some_steps(struct stages_story *s)
{
	return hd_harness_reach(&s->harness, (uint64_t)s->harness.live.step + HD_DEMO_APART, &s->cmd->diag);
}

static enum hd_err three(struct stages_story *s)
{
	enum hd_err err = hd_harness_reach(&s->harness, HD_DEMO_APART, &s->cmd->diag);

	if (!err)
		tell(s, "a third of the model on each");
	return err;
}

/* The second member has a stage, whichever left before. */
static int64_t second_of(const struct hd_status *live)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < live->nworkers; i++)
		if (live->worker[i].member && n++)
			return live->worker[i].pid;
	return 0;
}

static enum hd_err lose(struct stages_story *s, const char *what)
{
	const int64_t pid = second_of(&s->harness.live), before = s->harness.live.epoch;

	if (pid <= 0 || hd_pid_signal((int)pid, HD_PROC_KILL))
		return hd_fail(&s->cmd->diag, HD_E_INTEGRITY, "the run %s has no second member to kill at "
			"step %lld", s->harness.dir, (long long)s->harness.live.step);
	s->kills++;
	enum hd_err err = hd_harness_until(&s->harness, epoch, before + 1, &s->cmd->diag);
	err = err ? err : hd_harness_until(&s->harness, members, HD_DEMO_WORKERS, &s->cmd->diag);
	err = err ? err : some_steps(s);
	if (!err)
		tell(s, what);
	return err;
}

static enum hd_err lose_one(struct stages_story *s)
{
	return lose(s, "!! a worker was killed (SIGKILL); a new one has its stage, from the "
		"newest checkpoint on");
}

static enum hd_err grow(struct stages_story *s)
{
	enum hd_err err = hd_harness_ask(&s->harness, "{\"do\":\"scale\",\"workers\":4}");

	err = err ? err : hd_harness_until(&s->harness, members, HD_DEMO_MORE, &s->cmd->diag);
	s->joins++;
	if (!err)
		tell(s, "++ a fourth worker, which no stage is left for, stands by");
	return err;
}

static enum hd_err lose_another(struct stages_story *s)
{
	return lose(s, "!! another was killed; the fourth worker has its stage, from the newest "
		"checkpoint on");
}

static enum hd_err play(struct stages_story *s)
{
	static enum hd_err (*const scene[])(struct stages_story *s) = { three, lose_one, grow,
		lose_another };
	enum hd_err err = hd_harness_start(&s->harness, HD_DEMO_WORKERS, "1", &s->cmd->diag);

	for (size_t i = 0; i < sizeof scene / sizeof *scene && !err; i++)
		err = scene[i](s);
	return err ? err : hd_harness_stop(&s->harness, &s->cmd->diag);
}

/* ---- the end ---- */

/* What the line that ends the run says of a step; without one, or a number in it, nothing is known. */
static void read_times(struct stages_story *s)
{
	const struct { const char *key; double *at; } number[] = { { "predicted_ms", &s->predicted_ms },
		{ "measured_ms", &s->measured_ms }, { "least_ms", &s->least_ms } };
	const struct hd_json *end;
	uint8_t *bytes;
	size_t len;

	if (hd_file_read_all(&s->cmd->fs, s->said, &s->cmd->arena, HD_DEMO_FILE, &bytes, &len, NULL))
		return;
	const char *line = strstr((const char *)bytes, "{\"run\":");
	if (!line || hd_json_parse(&s->cmd->arena, s->said, line, strcspn(line, "\n"), &end, NULL))
		return;
	for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
		const struct hd_json *value = hd_json_find(end, number[i].key);
		if (value)
			(void)!hd_json_as_f64(value, number[i].at, NULL);
	}
}

static void put_ms(struct hd_json_writer *w, const char *key, double ms)
{
	if (ms > 0)
		hd_json_put_f64(w, key, ms);
	else
		hd_json_put_null(w, key);
}

static void print_json(const struct stages_story *s, const struct hd_harness_end *end)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(s->cmd, &line);

	hd_json_put_text(w, "demo", "pipeline");
	hd_json_put_i64(w, "steps", (int64_t)s->harness.nsteps);
	hd_json_put_text(w, "refusal", s->refusal);
	hd_json_open_array(w, "memory_mib");
	for (uint32_t i = 0; i < HD_DEMO_WORKERS; i++)
		hd_json_put_f64(w, NULL, s->memory_mib[i]);
	hd_json_close(w);
	hd_json_put_i64(w, "kills", s->kills);
	hd_json_put_i64(w, "joins", s->joins);
	hd_json_put_i64(w, "membership", s->harness.live.epoch);
	put_ms(w, "predicted_ms", s->predicted_ms);
	put_ms(w, "measured_ms", s->measured_ms);
	put_ms(w, "least_ms", s->least_ms);
	hd_json_put_text(w, "digest", end->disturbed);
	hd_json_put_text(w, "digest_one_device", end->twin);
	hd_json_put_bool(w, "identical", end->same);
	hd_json_put_f64(w, "seconds", (double)(hd_clock_now_ns(&s->cmd->clock) - s->began_ns) * 1e-9);
	hd_json_put_text(w, "run", s->harness.dir);
	hd_json_line_print(&line);
}

static void print_end(const struct stages_story *s, const struct hd_harness_end *end)
{
	if (s->cmd->args.has[HD_OPT_JSON]) {
		print_json(s, end);
		return;
	}
	if (s->predicted_ms > 0 && s->measured_ms > 0)
		printf("  step     predicted %.4g ms of idle cores, measured %.4g ms (median; least %.4g)\n",
			s->predicted_ms, s->measured_ms, s->least_ms);
	printf("  state    %s   (%llu steps in stages over workers: %u kills, %u join, %lld "
		"memberships)\n", end->disturbed, (unsigned long long)s->harness.nsteps, s->kills, s->joins,
		(long long)s->harness.live.epoch);
	printf("  state    %s   (one device, no limit)%s\n", end->twin,
		end->same ? "   IDENTICAL" : "   DIFFERENT");
	printf("  report   %s/report.html\n", s->harness.dir);
}

static enum hd_err prepare(struct stages_story *s)
{
	struct hd_cmd *cmd = s->cmd;
	struct hd_harness *h = &s->harness;
	char dir[HD_RUN_PATH];

	hd_harness_folder(&cmd->fs, hd_args_text(&cmd->args, HD_OPT_DIR, "."),
		"demo-pipeline", dir);
	snprintf(s->path, sizeof s->path, "%.480s/demo.yaml", dir);
	snprintf(s->asked, sizeof s->asked, "%.480s/dry-run.log", dir);
	snprintf(s->said, sizeof s->said, "%.480s/workers.log", dir);
	enum hd_err err = hd_harness_init(h, &cmd->fs, &cmd->clock, s->path, dir, HD_DEMO_STEPS, &cmd->diag);
	h->twin_set = whole;
	h->ntwin_sets = sizeof whole / sizeof *whole;
	h->said = s->said;
	return err ? err : hd_file_write_atomic(&cmd->fs, s->path, job, strlen(job), &cmd->diag);
}

enum hd_err hd_demo_pipeline(struct hd_cmd *cmd)
{
	struct stages_story s = { .cmd = cmd,
		.quiet = cmd->args.has[HD_OPT_JSON] || cmd->args.has[HD_OPT_QUIET],
		.began_ns = hd_clock_now_ns(&cmd->clock) };
	struct hd_harness_end end = { .same = false };

	if (cmd->args.has[HD_OPT_SHOW]) {
		fputs(job, stdout);
		return HD_OK;
	}
	enum hd_err err = prepare(&s);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err && !s.quiet)
		printf("  model  gpt of 6 layers; 100 MiB of memory a worker\n");
	err = err ? err : one_is_refused(&s);
	err = err ? err : three_fit(&s);
	err = err ? err : play(&s);
	if (!err && !s.quiet)
		printf("  now the same job on one device without the limit ...\n");
	if (!err) {
		read_times(&s);
		err = hd_harness_compare(&s.harness, &end, &cmd->diag);
	}
	if (end.twin[0])
		print_end(&s, &end);
	hd_harness_finish(&s.harness);
	return err;
}
