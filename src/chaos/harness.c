#include "chaos/harness.h"

#include <stdio.h>
#include <string.h>

#include "sys/signal.h"
#include "checkpoint/ckpt.h"
#include "driver/control.h"

enum { OWN_SETS = 2,                      /* pace and samples */
       HD_HARNESS_ARGS = 8 + 2 * HD_HARNESS_SETS + 14 };
const char *const hd_harness_whole_model[HD_HARNESS_WHOLE] = { "parallel.mode=given", "parallel.stages=auto",
	"parallel.schedule=auto", "parallel.chunks=auto", "parallel.replicas=auto", "parallel.tensor=auto",
	"parallel.recompute=auto", "parallel.offload=none" };

#define HD_HARNESS_ANSWER_NS INT64_C(1000000000)
#define HD_HARNESS_GAP_NS INT64_C(1000000000)
#define HD_HARNESS_DEAD_NS INT64_C(5000000000)
#define HD_HARNESS_TWIN_NS INT64_C(86400000000000)

/* By the call that fails where it is there: of two that want it at once one has it. */
static enum hd_err make_new(struct hd_fs *fs, const char *given, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	char path[HD_HARNESS_PATH], above[HD_HARNESS_PATH];
	struct hd_stat stat;
	size_t len = strlen(given);
	enum hd_err err = HD_OK;

	while (len > 1 && given[len - 1] == '/')
		len--;
	if (len >= sizeof path)
		return hd_fail(diag, HD_E_INVAL, "%s: a name of %zu bytes is too long for --out", given, len);
	(void)snprintf(path, sizeof path, "%.*s", (int)len, given);
	const char *last = strrchr(path, '/');
	(void)snprintf(above, sizeof above, "%.*s", last ? (int)(last - path) : 0, path);
	if (*above)
		err = hd_fs_mkdirs(fs, above, diag);
	if (err || !(err = hd_fs_mkdir(fs, path, &why)))
		return err;
	return hd_fs_stat(fs, path, &stat, NULL) ? hd_fail(diag, err, "%s", why.text) :
		hd_fail(diag, HD_E_INVAL, "%s is there already: choose another --out, or remove it", path);
}

enum hd_err hd_harness_init(struct hd_harness *t, struct hd_fs *fs, struct hd_clock *clock, const char *job,
	const char *parent, uint64_t nsteps, struct hd_diag *diag)
{
	*t = (struct hd_harness){ .fs = fs, .clock = clock, .job = job, .nsteps = nsteps };
	hd_arena_init(&t->arena, 0);
	hd_host_real(&t->own);
	t->host = &t->own;
	enum hd_err err = make_new(fs, parent, diag);
	snprintf(t->dir, sizeof t->dir, "%.400s/chaos", parent);
	snprintf(t->twin_dir, sizeof t->twin_dir, "%.400s/undisturbed", parent);
	return err;
}

void hd_harness_folder(struct hd_fs *fs, const char *parent, const char *name, char dir[HD_HARNESS_PATH])
{
	struct hd_stat stat;
	uint32_t n = 1;

	snprintf(dir, HD_HARNESS_PATH, "%.400s/runs/%s", parent, name);
	while (!hd_fs_stat(fs, dir, &stat, NULL))
		snprintf(dir, HD_HARNESS_PATH, "%.400s/runs/%s-%u", parent, name, ++n);
}

enum hd_err hd_harness_visit(struct hd_harness *t, struct hd_fs *fs, struct hd_clock *clock, const char *dir,
	struct hd_diag *diag)
{
	*t = (struct hd_harness){ .fs = fs, .clock = clock, .nsteps = UINT64_MAX,
		.looked_ns = hd_clock_now_ns(clock) };
	hd_arena_init(&t->arena, 0);
	if ((size_t)snprintf(t->dir, sizeof t->dir, "%s", dir) >= sizeof t->dir)
		return hd_fail(diag, HD_E_INVAL, "the path of %s is too long", dir);
	return HD_OK;
}

void hd_harness_finish(struct hd_harness *t)
{
	if (!t->fs)
		return;
	if (t->ours && (t->run.host || t->known))
		(void)!hd_harness_ask(t, "{\"do\":\"stop\",\"now\":true}");
	hd_proc_finish(&t->run);
	hd_tie_cut(&t->tie);
	hd_arena_finish(&t->arena);
}

static uint32_t put_sets(const char **argv, uint32_t n, const char *const *set, uint32_t nsets)
{
	for (uint32_t i = 0; i < nsets; i++) {
		argv[n++] = "-s";
		argv[n++] = set[i];
	}
	return n;
}

/* With `said` all its words go there. */
static enum hd_err spawn(struct hd_harness *t, const char *const *argv, const char *said,
	struct hd_proc *proc, struct hd_diag *diag)
{
	struct hd_spawn how = { .argv = argv, .in = -1, .out = -1, .err = -1, .tie = t->tie.hold ? &t->tie :
		NULL };
	struct hd_file file = { 0 };
	enum hd_err err = said ? hd_file_open(t->fs, said, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND,
		&file, diag) : HD_OK;

	if (said)
		how.out = how.err = file.id;
	err = err ? err : hd_proc_spawn(t->host, &how, proc, diag);
	if (file.fs)
		(void)!hd_file_close(&file, NULL);        /* nothing was written by this process */
	return err;
}

static enum hd_err start(struct hd_harness *t, const char *verb, const char *out, const char *workers,
	const char *devices, struct hd_proc *proc, struct hd_diag *diag)
{
	const bool again = !strcmp(verb, "resume");
	const char *argv[HD_HARNESS_ARGS] = { "/proc/self/exe", verb, again ? out : t->job, "-q", "--devices",
		devices };
	char steps[24], pace[48];
	uint32_t n = 6;

	if (t->nsets + t->ntwin_sets + OWN_SETS > HD_HARNESS_SETS)
		return hd_fail(diag, HD_E_INVAL,
			"the run and its undisturbed twin take %u times -s, those of this verb among them, "
			"and a run takes %d: write some into the job file", t->nsets + t->ntwin_sets +
			OWN_SETS, HD_HARNESS_SETS);
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
	if (workers && t->said)
		argv[n++] = "--json";
	if (t->pace_ms && workers && !again) {
		snprintf(pace, sizeof pace, "workers.pace=%llu ms", (unsigned long long)t->pace_ms);
		argv[n++] = "-s";
		argv[n++] = pace;
	}
	if (!again)
		n = put_sets(argv, n, t->set, t->nsets);
	if (!workers)
		n = put_sets(argv, n, t->twin_set, t->ntwin_sets);
	if (t->samples && workers && !again) {
		argv[n++] = "-s";
		argv[n++] = "trace.samples=true";
	}
	return spawn(t, argv, workers ? t->said : NULL, proc, diag);
}

enum hd_err hd_harness_start(struct hd_harness *t, uint32_t workers, const char *devices,
	struct hd_diag *diag)
{
	char n[16];

	snprintf(n, sizeof n, "%u", workers);
	t->looked_ns = t->alive_ns = hd_clock_now_ns(t->clock);
	t->ours = true;
	t->workers = workers;
	t->devices = devices;
	return start(t, "run", t->dir, n, devices, &t->run, diag);
}

static enum hd_err ask(struct hd_harness *t, const char *what, const struct hd_json **answer)
{
	char addr[HD_ADDR_CAP];
	enum hd_err err = hd_control_path(t->dir, "run.sock", addr, NULL);

	hd_arena_reset(&t->arena);
	return err ? err : hd_control_ask(addr, what, HD_HARNESS_ANSWER_NS, &t->arena, answer, NULL);
}

enum hd_err hd_harness_ask(struct hd_harness *t, const char *what)
{
	const struct hd_json *answer;

	return ask(t, what, &answer);
}

uint64_t hd_harness_step(const struct hd_harness *t) { return t->known ? (uint64_t)t->live.step : 0; }

bool hd_harness_ended(struct hd_harness *t)
{
	struct hd_ckpt_info info;

	return !hd_ckpt_find(t->fs, t->dir, UINT64_MAX, &info, NULL, NULL, NULL) &&
		info.step >= t->nsteps;
}

/* A coordinator that was killed leaves with 137; its run goes on. */
static enum hd_err look_at_process(struct hd_harness *t, struct hd_diag *diag)
{
	int code = 0;

	if (!t->run.host || hd_proc_wait(&t->run, 0, &code, NULL) != HD_OK)
		return HD_OK;
	t->run = (struct hd_proc){ 0 };
	const bool wanted = ((t->stopping || t->may_starve) && code == hd_err_exit(HD_E_PREEMPTED)) ||
		(t->may_starve && code == hd_err_exit(HD_E_WORKERS));

	return code && code < 128 && !wanted ? hd_fail(diag, HD_E_INTEGRITY,
		"the run %s ended with exit code %d: its log says why", t->dir, code) : HD_OK;
}

/* Is any process left that could go on? Those of the last answer are looked for by their numbers. */
static bool any_alive(const struct hd_harness *t)
{
	bool some = t->run.host || t->heard;

	for (uint32_t i = 0; i < t->live.nworkers && !some; i++)
		some = t->live.worker[i].pid > 0 && !hd_pid_signal((int)t->live.worker[i].pid, HD_PROC_CONT);
	return some;
}

/* A coordinator that died may have had workers that no answer named: they get twice the time in which they
 * would take over. */
static enum hd_err resume_if_all_died(struct hd_harness *t, int64_t now, struct hd_diag *diag)
{
	char n[16];

	if (!t->ours || t->holds || any_alive(t) || hd_harness_ended(t)) {
		t->alive_ns = now;
		return HD_OK;
	}
	if (now - t->alive_ns < HD_HARNESS_DEAD_NS)
		return HD_OK;
	t->alive_ns = now;
	t->resumed++;
	snprintf(n, sizeof n, "%u", t->workers);
	return start(t, "resume", t->dir, n, t->devices, &t->run, diag);
}

enum hd_err hd_harness_look(struct hd_harness *t, struct hd_diag *diag)
{
	int64_t now = hd_clock_now_ns(t->clock);
	const struct hd_json *answer;
	struct hd_status live;

	t->heard = !ask(t, "{\"do\":\"status\"}", &answer) && !hd_status_read(answer, &live, NULL);
	if (t->heard) {
		t->live = live;
		t->coordinator = live.coordinator;
		t->known = true;
	}
	enum hd_err err = look_at_process(t, diag);
	if (!err)
		err = resume_if_all_died(t, now, diag);
	if (err)
		return err;
	if (hd_signal_stop())
		return hd_stop_err(hd_signal_stop());
	/* a machine that stood still as a whole is no hang of the run */
	int64_t gap = now - t->looked_ns < HD_HARNESS_GAP_NS ? now - t->looked_ns : HD_HARNESS_GAP_NS;
	t->still_ns += gap;
	t->silent_ns = t->heard ? 0 : t->silent_ns + gap;
	t->looked_ns = now;
	if (!t->ours && t->silent_ns >= HD_HARNESS_STILL_NS)
		return hd_fail(diag, HD_E_NOTFOUND,
			"no process has coordinated %s for a minute, since step %llu: its events.ndjson says "
			"how it ended", t->dir, (unsigned long long)t->moved_step);
	if (hd_harness_step(t) != t->moved_step || hd_harness_ended(t)) {
		t->moved_step = hd_harness_step(t);
		t->still_ns = 0;
	}
	return !t->ours || t->still_ns < HD_HARNESS_STILL_NS ? HD_OK
		: hd_fail(diag, HD_E_INTEGRITY, "the run %s stands still at step %llu: see its log",
			t->dir, (unsigned long long)t->moved_step);
}

static enum hd_err look_later(struct hd_harness *t, struct hd_diag *diag)
{
	hd_clock_wait_until(t->clock, hd_clock_now_ns(t->clock) + HD_HARNESS_LOOK_NS);
	return hd_harness_look(t, diag);
}

enum hd_err hd_harness_until(struct hd_harness *t, int64_t (*of)(const struct hd_status *live), int64_t n,
	struct hd_diag *diag)
{
	enum hd_err err = hd_harness_look(t, diag);

	while (!err && of(&t->live) < n && !hd_harness_ended(t))
		err = look_later(t, diag);
	return err;
}

static int64_t step_of(const struct hd_status *live) { return live->step; }

enum hd_err hd_harness_reach(struct hd_harness *t, uint64_t step, struct hd_diag *diag)
{
	return hd_harness_until(t, step_of, step > INT64_MAX ? INT64_MAX : (int64_t)step, diag);
}

enum hd_err hd_harness_take_end(struct hd_harness *t, struct hd_diag *diag)
{
	struct hd_ckpt_info info;
	enum hd_err err = hd_ckpt_find(t->fs, t->dir, UINT64_MAX, &info, NULL, NULL, diag);

	if (!err)
		t->nsteps = info.step;
	return err;
}

enum hd_err hd_harness_stop(struct hd_harness *t, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	t->stopping = true;
	/* again and again: a coordinator that has just begun may not answer yet, or take the wish along */
	while (!err && any_alive(t)) {
		(void)!hd_harness_ask(t, "{\"do\":\"stop\"}");
		err = look_later(t, diag);
	}
	return err ? err : hd_harness_take_end(t, diag);
}

/* Until it ended, or somebody wants an end. */
static enum hd_err await_twin(const struct hd_harness *t, struct hd_proc *proc, int *code,
	struct hd_diag *diag)
{
	const int64_t end_ns = hd_clock_now_ns(t->clock) + HD_HARNESS_TWIN_NS;
	enum hd_err err;

	while ((err = hd_proc_wait(proc, HD_HARNESS_LOOK_NS, code, diag)) == HD_E_AGAIN) {
		if (hd_signal_stop())
			return hd_stop_err(hd_signal_stop());
		if (hd_clock_now_ns(t->clock) >= end_ns)
			return hd_fail(diag, HD_E_INTEGRITY, "the undisturbed run did not end within a day");
	}
	return err;
}

static enum hd_err run_twin(struct hd_harness *t, struct hd_diag *diag)
{
	struct hd_proc proc = { 0 };
	int code = 0;
	enum hd_err err = start(t, "run", t->twin_dir, NULL, "1", &proc, diag);

	if (!err)
		err = await_twin(t, &proc, &code, diag);
	hd_proc_finish(&proc);
	return err ? err : code ? hd_fail(diag, HD_E_INTEGRITY,
		"the undisturbed run ended with exit code %d", code) : HD_OK;
}

static enum hd_err digest_of(struct hd_harness *t, const char *dir, char hex[HD_HASH_HEX],
	struct hd_diag *diag)
{
	struct hd_ckpt_info info;
	enum hd_err err = hd_ckpt_find(t->fs, dir, UINT64_MAX, &info, NULL, NULL, diag);

	if (!err)
		hd_hash_hex(info.digest, hex);
	return err;
}

enum hd_err hd_harness_compare(struct hd_harness *t, struct hd_harness_end *end, struct hd_diag *diag)
{
	enum hd_err err = run_twin(t, diag);

	*end = (struct hd_harness_end){ .same = false };
	if (!err)
		err = digest_of(t, t->dir, end->disturbed, diag);
	if (!err)
		err = digest_of(t, t->twin_dir, end->twin, diag);
	if (err)
		return err;
	end->same = !strcmp(end->disturbed, end->twin);
	return end->same ? HD_OK : hd_fail(diag, HD_E_INTEGRITY,
		"the states differ: heddle ckpt diff %s %s", t->dir, t->twin_dir);
}
