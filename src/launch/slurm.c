/* Slurm, by its commands alone: libslurm is of another licence, and its interface changes with each release.
 *
 * A command runs beside the caller, its output in a file of the run's folder; when it has ended the file is
 * read. What it said goes to slurm_jobs.h, which says what is asked next.
 *
 * A second program, `sh`, waits for the end of this process: if that is killed, it takes back what waits in
 * the
 * queue at once, and what still runs after the time in which workers without a coordinator leave. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "launch/launcher_ops.h"
#include "launch/slurm_jobs.h"

enum { OUTPUT_MOST = 1 << 20, GUARD_S = 120 };
#define SCRIPT "launch.sh"        /* in the run's folder */
#define OUTPUT "log/slurm.out"
#define POLL_NS INT64_C(50000000)
#define SAY_NS INT64_C(5000000000)

struct launch_slurm {
	struct hd_launcher head;
	struct hd_launcher_spec spec;
	struct hd_slurm_jobs jobs;
	struct hd_slurm_next asked;       /* of `command`; the ids lie in `jobs`, or in `ids` */
	char ids[HD_SLURM_IDS][HD_SLURM_ID];
	struct hd_proc command;           /* host NULL: none runs */
	int64_t began_ns;
	struct hd_proc guard;
	struct hd_tie tie;
	char output[HD_PATH_CAP], script[HD_PATH_CAP], name[128];
	bool submitted;                   /* once */
	struct hd_arena arena;            /* of an output */
};

static struct launch_slurm *of(struct hd_launcher *launcher) { return (struct launch_slurm *)launcher; }
static int64_t now(const struct launch_slurm *s) { return hd_clock_now_ns(s->spec.clock); }

/* ---- commands */

static enum hd_err begin(struct launch_slurm *s, const char *const *argv, struct hd_diag *diag)
{
	struct hd_file out = { 0 };
	enum hd_err err = hd_file_open(s->spec.fs, s->output, HD_OPEN_WRITE | HD_OPEN_CREATE |
		HD_OPEN_TRUNCATE, &out,
		diag);

	if (err)
		return err;
	struct hd_spawn how = { .argv = argv, .in = -1, .out = out.id, .err = out.id };
	err = hd_proc_spawn(s->spec.host, &how, &s->command, diag);
	if (err)
		s->command = (struct hd_proc){ 0 };
	s->began_ns = now(s);
	return hd_file_close(&out, err ? NULL : diag) && !err ? HD_E_IO : err;
}

/* Waits for the command no longer than that, and never beyond HD_LAUNCHER_PATIENCE_NS since it began.
 * HD_E_AGAIN:
 * it still runs. HD_E_PEERLOST: it was given up. */
static enum hd_err await(struct launch_slurm *s, int64_t wait_ns, int *code, struct hd_diag *diag)
{
	const int64_t left_ns = s->began_ns + HD_LAUNCHER_PATIENCE_NS - now(s);
	enum hd_err err = hd_proc_wait(&s->command, wait_ns < left_ns ? wait_ns : left_ns > 0 ? left_ns : 0,
		code,
		diag);

	if (err == HD_E_AGAIN && left_ns > wait_ns)
		return err;
	if (err)
		hd_proc_finish(&s->command);
	s->command = (struct hd_proc){ 0 };
	return err == HD_E_AGAIN ? hd_fail(diag, HD_E_PEERLOST, "it has not answered for %d s",
		(int)(HD_LAUNCHER_PATIENCE_NS / 1000000000)) : err;
}

static enum hd_err read_output(struct launch_slurm *s, const char **text, size_t *len, struct hd_diag *diag)
{
	uint8_t *bytes = NULL;

	hd_arena_reset(&s->arena);
	enum hd_err err = hd_file_read_all(s->spec.fs, s->output, &s->arena, OUTPUT_MOST, &bytes, len, diag);
	*text = (const char *)bytes;
	return err;
}

/* Waits for it. */
static enum hd_err ask(struct launch_slurm *s, const char *const *argv, int *code, const char **text, size_t
	*len,
	struct hd_diag *diag)
{
	enum hd_err err = begin(s, argv, diag);

	err = err ? err : await(s, HD_LAUNCHER_PATIENCE_NS, code, diag);
	return err ? err : read_output(s, text, len, diag);
}

/* ---- open, check */

static enum hd_err write_script(struct launch_slurm *s, struct hd_diag *diag)
{
	struct hd_text text;

	hd_arena_reset(&s->arena);
	hd_text_init(&text, &s->arena);
	hd_slurm_script(&text, &s->spec);
	if (text.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the batch script");
	snprintf(s->script, sizeof s->script, "%s/log", s->spec.dir);
	enum hd_err err = hd_fs_mkdirs(s->spec.fs, s->script, diag);
	snprintf(s->script, sizeof s->script, "%s/" SCRIPT, s->spec.dir);
	return err ? err : hd_file_write_atomic(s->spec.fs, s->script, text.at, text.len, diag);
}

static enum hd_err slurm_open(const struct hd_launcher_spec *spec, struct hd_launcher **launcher,
	struct hd_diag *diag)
{
	enum hd_err err = hd_slurm_check(spec->settings, diag);
	struct launch_slurm *s = err ? NULL : hd_alloc(sizeof *s);

	if (!s)
		return err ? err : hd_fail(diag, HD_E_NOMEM, "no memory for a launcher");
	*s = (struct launch_slurm){ .head = { .ops = &hd_launcher_of_slurm }, .spec = *spec };
	hd_arena_init(&s->arena, 0);
	hd_slurm_jobs_init(&s->jobs);
	if (spec->stays)
		hd_slurm_jobs_find(&s->jobs);
	snprintf(s->output, sizeof s->output, "%s/" OUTPUT, spec->dir);
	snprintf(s->name, sizeof s->name, "--name=%s", spec->mark);
	err = write_script(s, diag);
	if (err) {
		hd_arena_finish(&s->arena);
		hd_free(s);
		return err;
	}
	*launcher = &s->head;
	return HD_OK;
}

static enum hd_err slurm_show(const struct hd_launcher_spec *spec, uint32_t n, struct hd_text *text,
	struct hd_diag *diag)
{
	enum hd_err err = hd_slurm_check(spec->settings, diag);

	if (err)
		return err;
	hd_slurm_script(text, spec);
	hd_text_addf(text, "\n# submitted by: sbatch --parsable --array=0-%u ", n - 1);
	hd_launcher_quote(text, spec->dir);
	hd_text_add(text, "/" SCRIPT "\n");
	return HD_OK;
}

/* The address by which a node calls back is the one by which this machine calls it. */
static enum hd_err own_address(const struct hd_batch_node *node, char own[HD_ADDR_CAP], struct hd_diag *diag)
{
	char host[HD_ADDR_CAP], to[HD_ADDR_CAP + 16];

	own[0] = '\0';
	enum hd_err err = hd_sock_lookup(*node->address ? node->address : node->name, host, diag);
	if (err)
		return err;
	snprintf(to, sizeof to, strchr(host, ':') ? "tcp:[%.80s]:1" : "tcp:%.80s:1", host);
	char from[HD_ADDR_CAP];
	err = hd_sock_source(to, from, diag);
	if (!err)
		snprintf(own, HD_ADDR_CAP, "%.*s", (int)(strrchr(from, ':') - from - 4), from + 4);
	return err;
}

static const char *partition_of(const struct launch_slurm *s)
{
	return *s->spec.settings->slurm.partition ? s->spec.settings->slurm.partition :
		"the default partition";
}

/* What sinfo prints of the partition; in the arena. */
static enum hd_err ask_nodes(struct launch_slurm *s, const char **text, size_t *len, struct hd_diag *diag)
{
	const char *partition = s->spec.settings->slurm.partition;
	const char *argv[] = { "sinfo", "-h", "-N", "-o", HD_SLURM_NODES, *partition ? "-p" : NULL,
		partition, NULL };
	struct hd_diag why = { "" };
	int code = 0;

	enum hd_err err = ask(s, argv, &code, text, len, &why);
	if (err)
		return hd_fail(diag, err == HD_E_PEERLOST ? err : HD_E_REFUSED,
			"launch.kind: slurm: sinfo: %s; run on a machine that submits to Slurm (a login "
			"node), or take launch.kind: local", why.text);
	if (!code)
		return HD_OK;
	err = hd_slurm_refusal("launch.kind: slurm: sinfo", *text, *len, diag);
	return err == HD_E_AGAIN ? HD_E_PEERLOST : err;
}

static enum hd_err slurm_check(struct hd_launcher *launcher, uint32_t most, char own[HD_ADDR_CAP],
	struct hd_diag *diag)
{
	struct launch_slurm *s = of(launcher);
	const char *partition = s->spec.settings->slurm.partition;
	struct hd_batch_node node, first = { .name = "" };
	const char *text = "", *line, *at;
	size_t len = 0, n;

	enum hd_err err = ask_nodes(s, &text, &len, diag);
	if (err)
		return err;
	at = text;
	uint32_t nodes = 0;
	while (hd_slurm_next_line(&at, text + len, &line, &n))
		if (n && !hd_slurm_node_parse(line, n, &node, NULL)) {
			first = nodes ? first : node;
			nodes++;
		}
	if (!nodes)
		return hd_fail(diag, HD_E_INVAL, "launch.slurm.partition: \"%s\": there is no such "
			"partition, or it "
			"has no node; `sinfo -s` lists them", partition);
	if (most > nodes && *partition)
		return hd_fail(diag, HD_E_INVAL, "--nodes asks for %u, and %s has %u: ask for fewer", most,
			partition_of(s), nodes);
	return own_address(&first, own, diag);
}

static enum hd_err slurm_types(struct hd_launcher *launcher, struct hd_launcher_types *types,
	struct hd_diag *diag)
{
	const char *text = "";
	size_t len = 0;
	enum hd_err err = ask_nodes(of(launcher), &text, &len, diag);

	return err ? err : hd_slurm_types(text, len,
		!*of(launcher)->spec.settings->slurm.partition, types, diag);
}

/* ---- the guard */

/* Its input ends with us, however we end; it is ended first where we end as we should. */
static enum hd_err begin_guard(struct launch_slurm *s, struct hd_diag *diag)
{
	char line[600];

	if (s->guard.host || s->spec.stays)
		return HD_OK;
	snprintf(line, sizeof line, "cat >/dev/null; scancel --state=PENDING %s; i=0; while [ $i -lt %d ] && "
		"[ -n \"$(squeue -h %s)\" ]; do sleep 2; i=$((i + 2)); done; scancel %s", s->name, GUARD_S,
		s->name,
		s->name);
	const char *argv[] = { "sh", "-c", line, NULL };
	enum hd_err err = hd_tie_open(&s->tie, diag);
	if (err)
		return err;
	struct hd_spawn how = { .argv = argv, .in = s->tie.in, .out = -1, .err = -1 };
	err = hd_proc_spawn(s->spec.host, &how, &s->guard, diag);
	if (err)
		s->guard = (struct hd_proc){ 0 };
	return err;
}

static void end_guard(struct launch_slurm *s)
{
	if (s->guard.host)
		hd_proc_finish(&s->guard);
	s->guard = (struct hd_proc){ 0 };
	hd_tie_cut(&s->tie);
}

/* ---- work */

static void slurm_want(struct hd_launcher *launcher, uint32_t n)
{
	struct launch_slurm *s = of(launcher);

	hd_slurm_jobs_want(&s->jobs, n, now(s));
}

static void slurm_end(struct hd_launcher *launcher)
{
	hd_slurm_jobs_end(&of(launcher)->jobs, now(of(launcher)));
}

static void slurm_changed(struct hd_launcher *launcher)
{
	hd_slurm_jobs_changed(&of(launcher)->jobs, now(of(launcher)));
}

static enum hd_err begin_next(struct launch_slurm *s, struct hd_diag *diag)
{
	const char *submit[] = { "sbatch", "--parsable", NULL, s->script, NULL };
	const char *look[] = { "squeue", "-h", "-r", "-t", "all", s->name, "-O", HD_SLURM_FIELDS, NULL };
	const char *back[HD_SLURM_IDS + 3] = { "scancel", s->jobs.ends ? "-Q" : "--state=PENDING" };
	char array[32];

	hd_slurm_jobs_next(&s->jobs, now(s), &s->asked);
	for (uint32_t i = 0; i < s->asked.n && s->asked.ask == HD_SLURM_TAKE_BACK; i++) {
		memcpy(s->ids[i], s->asked.id[i], HD_SLURM_ID);
		back[2 + i] = s->asked.id[i] = s->ids[i];
	}
	snprintf(array, sizeof array, "--array=0-%u", s->asked.n - 1);
	submit[2] = array;
	switch (s->asked.ask) {
	case HD_SLURM_NOTHING:
		return HD_OK;
	case HD_SLURM_SUBMIT: {
		enum hd_err err = begin_guard(s, diag);
		s->submitted = true;
		return err ? err : begin(s, submit, diag);
	}
	case HD_SLURM_TAKE_BACK:
		return begin(s, back, diag);
	case HD_SLURM_LOOK:
		return begin(s, look, diag);
	}
	return HD_OK;
}

static void tell(void *user, const struct hd_batch_job *job, const char *text)
{
	const struct launch_slurm *s = user;

	(void)job;
	hd_launcher_say(&s->head, HD_LAUNCHER_NEWS, "%s", text);
}

static const char *command_of(enum hd_slurm_ask ask)
{
	return ask == HD_SLURM_SUBMIT ? "sbatch" : ask == HD_SLURM_LOOK ? "squeue" : "scancel";
}

/* It may be well later: said once, then it is quiet until it is well. */
static void later(struct launch_slurm *s, const char *why)
{
	if (hd_slurm_jobs_failed(&s->jobs, s->asked.ask, now(s)))
		hd_launcher_say(&s->head, HD_LAUNCHER_WAITS, "%s; workers that run go on, and it is tried "
			"again", why);
}

static enum hd_err take_answer(struct launch_slurm *s, int code, const char *text, size_t len, struct hd_diag
	*diag)
{
	char id[HD_SLURM_ID], waits[HD_LAUNCHER_WHY + 64];
	struct hd_diag why = { "" };
	enum hd_err err = HD_OK;

	if (code) {
		err = hd_slurm_refusal(command_of(s->asked.ask), text, len, &why);
		/* a site may change its mind; what worked before is tried again */
		const bool fatal = s->asked.ask == HD_SLURM_SUBMIT && err != HD_E_AGAIN && !s->jobs.n;
		if (fatal)
			return hd_fail(diag, err, "%s", why.text);
		later(s, why.text);
		return HD_OK;
	}
	switch (s->asked.ask) {
	case HD_SLURM_SUBMIT:
		err = hd_slurm_id_parse(text, len, id, &why);
		if (!err)
			hd_slurm_jobs_submitted(&s->jobs, id, s->asked.n, now(s));
		break;
	case HD_SLURM_TAKE_BACK:
		hd_slurm_jobs_taken_back(&s->jobs, &s->asked, now(s));
		break;
	case HD_SLURM_LOOK:
		err = hd_slurm_jobs_looked(&s->jobs, text, len, now(s), tell, s, &why);
		if (hd_slurm_jobs_waits(&s->jobs, now(s), waits))
			hd_launcher_say(&s->head, HD_LAUNCHER_WAITS, "%s", waits);
		break;
	case HD_SLURM_NOTHING:
		break;
	}
	if (err)
		later(s, why.text);
	return HD_OK;
}

static enum hd_err slurm_look(struct hd_launcher *launcher, struct hd_diag *diag)
{
	struct launch_slurm *s = of(launcher);
	struct hd_diag why = { "" };
	const char *text = "";
	size_t len = 0;
	int code = 0;

	if (!s->command.host)
		return begin_next(s, diag);
	enum hd_err err = await(s, 0, &code, &why);
	if (err == HD_E_AGAIN)
		return HD_OK;
	err = err ? err : read_output(s, &text, &len, &why);
	if (!err)
		return take_answer(s, code, text, len, diag);
	char line[HD_LAUNCHER_WHY];
	snprintf(line, sizeof line, "%s: %.180s", command_of(s->asked.ask), why.text);
	later(s, line);
	return HD_OK;
}

static bool slurm_ended(struct hd_launcher *launcher, struct hd_launcher_end *end)
{
	return hd_slurm_jobs_ended(&of(launcher)->jobs, end, now(of(launcher)));
}

static void slurm_count(const struct hd_launcher *launcher, struct hd_launcher_count *count)
{
	const struct launch_slurm *s = (const struct launch_slurm *)launcher;

	count->waiting = hd_slurm_jobs_seats(&s->jobs, HD_SLURM_WAITS);
	count->running = hd_slurm_jobs_seats(&s->jobs, HD_SLURM_RUNS);
	count->left = hd_slurm_jobs_left(&s->jobs);
	count->found = !s->jobs.finds;
	hd_slurm_jobs_why(&s->jobs, count->why);
	hd_slurm_jobs_at(&s->jobs, count->at, sizeof count->at);
}

/* ---- the end */

/* What squeue says now. */
static enum hd_err look_now(struct launch_slurm *s, struct hd_diag *diag)
{
	const char *look[] = { "squeue", "-h", "-r", "-t", "all", s->name, "-O", HD_SLURM_FIELDS, NULL };
	const char *text = "";
	size_t len = 0;
	int code = 0;
	enum hd_err err = ask(s, look, &code, &text, &len, diag);

	if (!err && code)
		err = hd_slurm_refusal("squeue", text, len, diag);
	return err ? err : hd_slurm_jobs_looked(&s->jobs, text, len, now(s), tell, s, diag);
}

static enum hd_err cancel(struct launch_slurm *s, bool all, struct hd_diag *diag)
{
	const char *argv[] = { "scancel", s->name, all ? NULL : "--state=PENDING", NULL };
	const char *text = "";
	size_t len = 0;
	int code = 0;
	enum hd_err err = ask(s, argv, &code, &text, &len, diag);

	for (uint32_t i = 0; i < s->jobs.n; i++)
		s->jobs.job[i].taken_back |= all || s->jobs.job[i].line.stage == HD_SLURM_WAITS;
	return err || !code ? err : hd_slurm_refusal("scancel", text, len, diag);
}

/* Until none is left, or `until_ns`. */
static enum hd_err await_none(struct launch_slurm *s, int64_t until_ns, struct hd_diag *diag)
{
	int64_t pause_ns = POLL_NS, said_ns = now(s);

	for (;;) {
		enum hd_err err = look_now(s, diag);
		if (err || !hd_slurm_jobs_left(&s->jobs))
			return err;
		if (now(s) >= until_ns)
			return HD_E_AGAIN;
		if (now(s) - said_ns >= SAY_NS) {
			hd_launcher_say(&s->head, HD_LAUNCHER_WAITS, "waiting for Slurm to end %u jobs",
				hd_slurm_jobs_left(&s->jobs));
			said_ns = now(s);
		}
		hd_clock_wait_until(s->spec.clock, now(s) + pause_ns);
		pause_ns = pause_ns < 1000000000 ? 2 * pause_ns : pause_ns;
	}
}

static enum hd_err slurm_stop(struct hd_launcher *launcher, int64_t grace_ns, struct hd_diag *diag)
{
	struct launch_slurm *s = of(launcher);
	struct hd_diag why = { "" };
	int code;

	if (!s->submitted && !s->spec.stays)
		return HD_OK;
	/* an sbatch that is under way makes jobs, which squeue knows then */
	if (s->command.host && await(s, HD_LAUNCHER_PATIENCE_NS, &code, NULL))
		hd_proc_finish(&s->command);
	enum hd_err err = cancel(s, false, &why);
	err = err ? err : await_none(s, now(s) + grace_ns, &why);
	if (err == HD_E_AGAIN && !why.text[0]) {
		err = cancel(s, true, &why);
		err = err ? err : await_none(s, now(s) + HD_LAUNCHER_PATIENCE_NS, &why);
	}
	if (!err)
		return HD_OK;
	return hd_fail(diag, HD_E_REFUSED, "%s%sjobs may be left in Slurm's queue: `squeue %s` shows "
		"them, `scancel "
		"%s` ends them", why.text, why.text[0] ? "; " : "", s->name, s->name);
}

static void slurm_close(struct hd_launcher *launcher)
{
	struct launch_slurm *s = of(launcher);

	if (s->command.host)
		hd_proc_finish(&s->command);
	end_guard(s);
	hd_arena_finish(&s->arena);
	hd_free(s);
}

const struct hd_launcher_ops hd_launcher_of_slurm = {
	.name = "slurm", .about = "batch jobs of one node each", .net = true, .open = slurm_open,
	.show = slurm_show, .check = slurm_check, .types = slurm_types, .want = slurm_want,
	.end = slurm_end, .changed = slurm_changed, .look = slurm_look, .ended = slurm_ended,
	.count = slurm_count, .stop = slurm_stop, .close = slurm_close,
};
