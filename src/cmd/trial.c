#include "cmd/trial.h"

#include <string.h>

#include "sys/signal.h"
#include "exec/ckpt.h"

enum { HD_TRIAL_ARGS = 8 + 2 * HD_MAX_SETS + 8 };
#define HD_TRIAL_ANSWER_NS INT64_C(1000000000)
#define HD_TRIAL_TWIN_NS INT64_C(86400000000000)

enum hd_err hd_trial_init(struct hd_trial *t, struct hd_cmd *cmd, const char *job, const char *parent, uint64_t nsteps)
{
	struct hd_stat stat;

	*t = (struct hd_trial){ .cmd = cmd, .job = job, .nsteps = nsteps };
	hd_arena_init(&t->arena, 0);
	hd_host_real(&t->host);
	if (!hd_fs_stat(&cmd->fs, parent, &stat, NULL))
		return hd_fail(&cmd->diag, HD_E_INVAL, "%s is there already: choose another --out, or remove it", parent);
	snprintf(t->dir, sizeof t->dir, "%.400s/chaos", parent);
	snprintf(t->twin_dir, sizeof t->twin_dir, "%.400s/undisturbed", parent);
	return hd_fs_mkdirs(&cmd->fs, parent, &cmd->diag);
}

void hd_trial_finish(struct hd_trial *t)
{
	if (!t->cmd)
		return;
	if (t->run.host || t->known)
		(void)!hd_trial_ask(t, "{\"do\":\"stop\",\"now\":true}");
	hd_proc_finish(&t->run);
	hd_arena_finish(&t->arena);
}

static enum hd_err start(struct hd_trial *t, const char *out, const char *workers, const char *devices, struct hd_proc *proc)
{
	const char *argv[HD_TRIAL_ARGS] = { "/proc/self/exe", "run", t->job, "--out", out, "-q", "--devices", devices };
	char steps[24];
	uint32_t n = 8;

	snprintf(steps, sizeof steps, "%llu", (unsigned long long)t->nsteps);
	argv[n++] = "--steps";
	argv[n++] = steps;
	if (workers) {
		argv[n++] = "--workers";
		argv[n++] = workers;
	}
	for (uint32_t i = 0; i < t->cmd->args.nsets; i++) {
		argv[n++] = "-s";
		argv[n++] = t->cmd->args.set[i];
	}
	return hd_proc_spawn(&t->host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = -1, .err = -1 }, proc, &t->cmd->diag);
}

enum hd_err hd_trial_start(struct hd_trial *t, uint32_t workers, const char *devices)
{
	char n[16];

	snprintf(n, sizeof n, "%u", workers);
	t->moved_ns = hd_clock_now_ns(&t->cmd->clock);
	return start(t, t->dir, n, devices, &t->run);
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

	return !hd_ckpt_find(&t->cmd->fs, t->dir, UINT64_MAX, &info, NULL, NULL, NULL) && info.step >= t->nsteps;
}

/* A coordinator that was killed leaves with 137; its run goes on. */
static enum hd_err look_at_process(struct hd_trial *t)
{
	int code = 0;

	if (!t->run.host || hd_proc_wait(&t->run, 0, &code, NULL) != HD_OK)
		return HD_OK;
	t->run = (struct hd_proc){ 0 };
	return code && code < 128 ? hd_fail(&t->cmd->diag, HD_E_INTEGRITY, "the run %s ended with exit code %d: its log says why", t->dir, code) : HD_OK;
}

enum hd_err hd_trial_look(struct hd_trial *t)
{
	int64_t now = hd_clock_now_ns(&t->cmd->clock);
	const struct hd_json *answer;
	struct hd_live live;
	struct hd_diag diag = { "" };

	if (!ask(t, "{\"do\":\"status\"}", &answer) && !hd_live_read(answer, &live, &diag)
		&& !hd_json_get_i64(answer, "pid", 0, INT64_MAX, &t->coordinator, &diag)) {
		t->live = live;
		t->known = true;
	}
	enum hd_err err = look_at_process(t);
	if (err)
		return err;
	if (hd_signal_wish())
		return hd_wish_err(hd_signal_wish());
	if (hd_trial_step(t) != t->moved_step || hd_trial_ended(t)) {
		t->moved_step = hd_trial_step(t);
		t->moved_ns = now;
	}
	return now - t->moved_ns < HD_TRIAL_STILL_NS ? HD_OK
		: hd_fail(&t->cmd->diag, HD_E_INTEGRITY, "the run %s stands still at step %llu: see its log", t->dir, (unsigned long long)t->moved_step);
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
	enum hd_err err = start(t, t->twin_dir, NULL, "1", &proc);

	if (!err)
		err = hd_proc_wait(&proc, HD_TRIAL_TWIN_NS, &code, &t->cmd->diag);
	hd_proc_finish(&proc);
	return err ? err : code ? hd_fail(&t->cmd->diag, HD_E_INTEGRITY, "the undisturbed run ended with exit code %d", code) : HD_OK;
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
	return end->same ? HD_OK : hd_fail(&t->cmd->diag, HD_E_INTEGRITY, "the states differ: heddle ckpt diff %s %s", t->dir, t->twin_dir);
}
