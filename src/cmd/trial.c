#include "cmd/trial.h"

#include <string.h>

#include "sys/signal.h"
#include "checkpoint/ckpt.h"

enum { HD_TRIAL_ARGS = 8 + 2 * HD_MAX_SETS + 12 };
#define HD_TRIAL_ANSWER_NS INT64_C(1000000000)
#define HD_TRIAL_GAP_NS INT64_C(1000000000)
#define HD_TRIAL_RUIN_NS INT64_C(5000000000)
#define HD_TRIAL_TWIN_NS INT64_C(86400000000000)

enum hd_err hd_trial_init(struct hd_trial *t, struct hd_cmd *cmd, const char *job, const char *parent,
	uint64_t nsteps)
{
	struct hd_stat stat;

	*t = (struct hd_trial){ .cmd = cmd, .job = job, .nsteps = nsteps };
	hd_arena_init(&t->arena, 0);
	hd_host_real(&t->host);
	if (!hd_fs_stat(&cmd->fs, parent, &stat, NULL))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"%s is there already: choose another --out, or remove it", parent);
	snprintf(t->dir, sizeof t->dir, "%.400s/chaos", parent);
	snprintf(t->twin_dir, sizeof t->twin_dir, "%.400s/undisturbed", parent);
	return hd_fs_mkdirs(&cmd->fs, parent, &cmd->diag);
}

void hd_trial_folder(struct hd_cmd *cmd, const char *name, char dir[HD_RUN_PATH])
{
	const char *parent = cmd->args.has[HD_OPT_DIR] ? cmd->args.text[HD_OPT_DIR] : ".";
	struct hd_stat stat;
	uint32_t n = 1;

	snprintf(dir, HD_RUN_PATH, "%.400s/runs/%s", parent, name);
	while (!hd_fs_stat(&cmd->fs, dir, &stat, NULL))
		snprintf(dir, HD_RUN_PATH, "%.400s/runs/%s-%u", parent, name, ++n);
}

enum hd_err hd_trial_visit(struct hd_trial *t, struct hd_cmd *cmd, const char *dir)
{
	*t = (struct hd_trial){ .cmd = cmd, .nsteps = UINT64_MAX, .looked_ns = hd_clock_now_ns(&cmd->clock) };
	hd_arena_init(&t->arena, 0);
	if ((size_t)snprintf(t->dir, sizeof t->dir, "%s", dir) >= sizeof t->dir)
		return hd_fail(&cmd->diag, HD_E_INVAL, "the path of %s is too long", dir);
	return HD_OK;
}

void hd_trial_finish(struct hd_trial *t)
{
	if (!t->cmd)
		return;
	if (t->ours && (t->run.host || t->known))
		(void)!hd_trial_ask(t, "{\"do\":\"stop\",\"now\":true}");
	hd_proc_finish(&t->run);
	hd_arena_finish(&t->arena);
}

static enum hd_err start(struct hd_trial *t, const char *verb, const char *out, const char *workers,
	const char *devices, struct hd_proc *proc)
{
	const bool again = !strcmp(verb, "resume");
	const char *argv[HD_TRIAL_ARGS] = { "/proc/self/exe", verb, again ? out : t->job, "-q", "--devices",
		devices };
	char steps[24], pace[48];
	uint32_t n = 6;

	if (!again) {
		argv[n++] = "--out";
		argv[n++] = out;
	}
	snprintf(steps, sizeof steps, "%llu", (unsigned long long)t->nsteps);
	argv[n++] = "--steps";
	argv[n++] = steps;
	if (workers) {
		argv[n++] = "--workers";
		argv[n++] = workers;
	}
	if (t->pace_ms && workers && !again) {
		snprintf(pace, sizeof pace, "workers.pace=%llu ms", (unsigned long long)t->pace_ms);
		argv[n++] = "-s";
		argv[n++] = pace;
	}
	for (uint32_t i = 0; i < t->cmd->args.nsets && !again; i++) {
		argv[n++] = "-s";
		argv[n++] = t->cmd->args.set[i];
	}
	if (t->samples && workers && !again) {
		argv[n++] = "-s";
		argv[n++] = "trace.samples=true";
	}
	return hd_proc_spawn(&t->host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = -1, .err = -1 },
		proc, &t->cmd->diag);
}

enum hd_err hd_trial_start(struct hd_trial *t, uint32_t workers, const char *devices)
{
	char n[16];

	snprintf(n, sizeof n, "%u", workers);
	t->looked_ns = t->somebody_ns = hd_clock_now_ns(&t->cmd->clock);
	t->ours = true;
	t->workers = workers;
	t->devices = devices;
	return start(t, "run", t->dir, n, devices, &t->run);
}

static enum hd_err ask(struct hd_trial *t, const char *what, const struct hd_json **answer)
{
	char addr[HD_ADDR_CAP];
	enum hd_err err = hd_control_path(t->dir, "run.sock", addr, NULL);

	hd_arena_reset(&t->arena);
	return err ? err : hd_control_ask(addr, what, HD_TRIAL_ANSWER_NS, &t->arena, answer, NULL);
}

enum hd_err hd_trial_ask(struct hd_trial *t, const char *what)
{
	const struct hd_json *answer;

	return ask(t, what, &answer);
}

uint64_t hd_trial_step(const struct hd_trial *t) { return t->known ? (uint64_t)t->live.step : 0; }

bool hd_trial_ended(struct hd_trial *t)
{
	struct hd_ckpt_info info;

	return !hd_ckpt_find(&t->cmd->fs, t->dir, UINT64_MAX, &info, NULL, NULL, NULL) &&
		info.step >= t->nsteps;
}

/* A coordinator that was killed leaves with 137; its run goes on. */
static enum hd_err look_at_process(struct hd_trial *t)
{
	int code = 0;

	if (!t->run.host || hd_proc_wait(&t->run, 0, &code, NULL) != HD_OK)
		return HD_OK;
	t->run = (struct hd_proc){ 0 };
	return code && code < 128 ? hd_fail(&t->cmd->diag, HD_E_INTEGRITY,
		"the run %s ended with exit code %d: its log says why", t->dir, code) : HD_OK;
}

/* Is any process left that could go on? Those that were there at the last answer are asked for by number. */
static bool anybody(const struct hd_trial *t)
{
	bool some = t->run.host || t->heard;

	for (uint32_t i = 0; i < t->live.nworkers && !some; i++)
		some = t->live.worker[i].pid > 0 && !hd_pid_signal((int)t->live.worker[i].pid, HD_PROC_CONT);
	return some;
}

/* Workers of a coordinator that died before it told of them may be about: they get twice the time in which
 * they would take over. */
static enum hd_err look_at_ruin(struct hd_trial *t, int64_t now)
{
	char n[16];

	if (!t->ours || anybody(t) || hd_trial_ended(t)) {
		t->somebody_ns = now;
		return HD_OK;
	}
	if (now - t->somebody_ns < HD_TRIAL_RUIN_NS)
		return HD_OK;
	t->somebody_ns = now;
	t->resumed++;
	snprintf(n, sizeof n, "%u", t->workers);
	return start(t, "resume", t->dir, n, t->devices, &t->run);
}

enum hd_err hd_trial_look(struct hd_trial *t)
{
	int64_t now = hd_clock_now_ns(&t->cmd->clock);
	const struct hd_json *answer;
	struct hd_live live;
	struct hd_diag diag = { "" };

	t->heard = !ask(t, "{\"do\":\"status\"}", &answer) && !hd_live_read(answer, &live, &diag)
		&& !hd_json_get_i64(answer, "pid", 0, INT64_MAX, &t->coordinator, &diag);
	if (t->heard) {
		t->live = live;
		t->known = true;
	}
	enum hd_err err = look_at_process(t);
	if (!err)
		err = look_at_ruin(t, now);
	if (err)
		return err;
	if (hd_signal_stop())
		return hd_stop_err(hd_signal_stop());
	/* a machine that stood still as a whole is no hang of the run */
	int64_t gap = now - t->looked_ns < HD_TRIAL_GAP_NS ? now - t->looked_ns : HD_TRIAL_GAP_NS;
	t->still_ns += gap;
	t->silent_ns = t->heard ? 0 : t->silent_ns + gap;
	t->looked_ns = now;
	if (!t->ours && t->silent_ns >= HD_TRIAL_STILL_NS)
		return hd_fail(&t->cmd->diag, HD_E_NOTFOUND,
			"nobody has coordinated %s for a minute, since step %llu: its events.ndjson says "
			"how it ended", t->dir, (unsigned long long)t->moved_step);
	if (hd_trial_step(t) != t->moved_step || hd_trial_ended(t)) {
		t->moved_step = hd_trial_step(t);
		t->still_ns = 0;
	}
	return !t->ours || t->still_ns < HD_TRIAL_STILL_NS ? HD_OK
		: hd_fail(&t->cmd->diag, HD_E_INTEGRITY, "the run %s stands still at step %llu: see its log",
			t->dir, (unsigned long long)t->moved_step);
}

enum hd_err hd_trial_reach(struct hd_trial *t, uint64_t step)
{
	enum hd_err err = hd_trial_look(t);

	while (!err && hd_trial_step(t) < step && !hd_trial_ended(t)) {
		hd_clock_wait_until(&t->cmd->clock, hd_clock_now_ns(&t->cmd->clock) + HD_TRIAL_LOOK_NS);
		err = hd_trial_look(t);
	}
	return err;
}

static enum hd_err run_twin(struct hd_trial *t)
{
	struct hd_proc proc = { 0 };
	int code = 0;
	enum hd_err err = start(t, "run", t->twin_dir, NULL, "1", &proc);

	if (!err)
		err = hd_proc_wait(&proc, HD_TRIAL_TWIN_NS, &code, &t->cmd->diag);
	hd_proc_finish(&proc);
	return err ? err : code ? hd_fail(&t->cmd->diag, HD_E_INTEGRITY,
		"the undisturbed run ended with exit code %d", code) : HD_OK;
}

static enum hd_err digest_of(struct hd_trial *t, const char *dir, char hex[HD_HASH_HEX])
{
	struct hd_ckpt_info info;
	enum hd_err err = hd_ckpt_find(&t->cmd->fs, dir, UINT64_MAX, &info, NULL, NULL, &t->cmd->diag);

	if (!err)
		hd_hash_hex(info.digest, hex);
	return err;
}

enum hd_err hd_trial_compare(struct hd_trial *t, struct hd_trial_end *end)
{
	enum hd_err err = run_twin(t);

	*end = (struct hd_trial_end){ .same = false };
	if (!err)
		err = digest_of(t, t->dir, end->disturbed);
	if (!err)
		err = digest_of(t, t->twin_dir, end->twin);
	if (err)
		return err;
	end->same = !strcmp(end->disturbed, end->twin);
	return end->same ? HD_OK : hd_fail(&t->cmd->diag, HD_E_INTEGRITY,
		"the states differ: heddle ckpt diff %s %s", t->dir, t->twin_dir);
}
