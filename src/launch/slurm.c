/* Slurm, by its commands or over the socket of slurmrestd (slurm_way.h); never by its library: that is of
 * another licence, and its interface changes with each release.
 *
 * What it said goes to slurm_jobs.h, which says what is asked next. Where the socket has failed its question
 * is put to the commands, and it is tried again SOCKET_AGAIN_NS later.
 *
 * A second program, `sh`, waits for the end of this process: if that is killed, it takes back what waits in
 * the queue at once, and what still runs after the time in which workers without a coordinator leave. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "launch/launcher_ops.h"
#include "launch/slurm_way.h"

enum { GUARD_S = 120 };
#define SCRIPT "launch.sh"        /* in the run's folder */
#define POLL_NS INT64_C(50000000)
#define SAY_NS INT64_C(5000000000)
#define SOCKET_AGAIN_NS INT64_C(60000000000)

enum { SOCKET, COMMANDS, WAYS };

struct launch_slurm {
	struct hd_launcher head;
	struct hd_launcher_spec spec;
	struct hd_slurm_jobs jobs;
	struct hd_slurm_next next;        /* that `question` says */
	struct hd_slurm_question question;
	struct hd_slurm_way *way[WAYS];   /* SOCKET: NULL where none is used */
	struct hd_slurm_way *asked;       /* NULL: nothing is under way */
	int64_t began_ns, socket_ns;      /* the socket: not before */
	bool slow, failed;                /* said: that it takes long; that the socket fails */
	bool unsaid[HD_SLURM_NODES + 1];  /* questions that the socket has no words for */
	struct hd_proc guard;
	struct hd_tie tie;
	char script[HD_PATH_CAP], name[128];
	bool submitted;                   /* once */
	struct hd_arena arena;            /* of the script */
};

static struct launch_slurm *of(struct hd_launcher *launcher) { return (struct launch_slurm *)launcher; }
static int64_t now(const struct launch_slurm *s) { return hd_clock_now_ns(s->spec.clock); }

/* ---- questions */

static enum hd_err begin_by(struct launch_slurm *s, int way, struct hd_diag *diag)
{
	enum hd_err err = s->way[way]->ops->begin(s->way[way], &s->question, diag);

	s->asked = err ? NULL : s->way[way];
	return err;
}

/* The socket does not answer, or has no words for the question: said once, and the commands are asked. */
static enum hd_err turn_to_commands(struct launch_slurm *s, enum hd_slurm_outcome outcome, const char *why,
	struct hd_diag *diag)
{
	const enum hd_slurm_ask ask = s->question.ask;
	bool *said = outcome == HD_SLURM_UNSAID ? &s->unsaid[ask] : &s->failed;

	if (!*said)
		hd_launcher_say(&s->head, HD_LAUNCHER_WAITS, "%s; Slurm's commands are used%s", why,
			outcome == HD_SLURM_UNSAID ? " for that" : ", and it is tried again each minute");
	*said = true;
	if (outcome == HD_SLURM_LOST)
		s->socket_ns = now(s) + SOCKET_AGAIN_NS;
	struct hd_diag second = { "" };
	enum hd_err err = begin_by(s, COMMANDS, &second);
	return err ? hd_fail(diag, err, "%s; and %s: %s", why,
		hd_slurm_by_commands.word(s->way[COMMANDS], ask), second.text) : HD_OK;
}

static enum hd_err begin(struct launch_slurm *s, struct hd_diag *diag)
{
	struct hd_diag why = { "" };

	s->began_ns = now(s);
	s->slow = false;
	if (!s->way[SOCKET] || s->began_ns < s->socket_ns || s->unsaid[s->question.ask])
		return begin_by(s, COMMANDS, diag);
	return begin_by(s, SOCKET, &why) ? turn_to_commands(s, HD_SLURM_LOST, why.text, diag) : HD_OK;
}

/* Waits wait_ns at most. false: it goes on. What may have been done by the socket is not asked for again by
 * a command: jobs that an answer was lost of are looked for first (slurm_jobs.h, rule 2). */
static bool go_on(struct launch_slurm *s, int64_t wait_ns, struct hd_slurm_answer *answer)
{
	struct hd_slurm_way *way = s->asked;
	const enum hd_slurm_ask ask = s->question.ask;

	if (!way->ops->go_on(way, wait_ns, answer)) {
		if (!s->slow && now(s) - s->began_ns >= SAY_NS)
			hd_launcher_say(&s->head, HD_LAUNCHER_WAITS,
			"%s has not answered for %d s; it is waited "
				"for until %d s", way->ops->word(way, ask), (int)(SAY_NS / 1000000000),
				(int)(HD_LAUNCHER_PATIENCE_NS / 1000000000));
		s->slow |= now(s) - s->began_ns >= SAY_NS;
		return false;
	}
	s->asked = NULL;
	if (way != s->way[SOCKET])
		return true;
	s->failed &= answer->outcome != HD_SLURM_ANSWERED;
	if (answer->outcome != HD_SLURM_LOST && answer->outcome != HD_SLURM_UNSAID)
		return true;
	if (ask == HD_SLURM_SUBMIT && answer->sent) {
		s->socket_ns = now(s) + SOCKET_AGAIN_NS;
		return true;
	}
	struct hd_diag why = { "" };
	const enum hd_err err = turn_to_commands(s, answer->outcome, answer->why.text, &why);
	if (!err)
		return false;
	*answer = (struct hd_slurm_answer){ .outcome = HD_SLURM_LOST, .err = err, .why = why };
	return true;
}

/* Waits for it. */
static void ask(struct launch_slurm *s, enum hd_slurm_ask what, bool running, struct hd_slurm_answer *answer)
{
	s->question = (struct hd_slurm_question){ .ask = what, .running = running };
	*answer = (struct hd_slurm_answer){ .outcome = HD_SLURM_LOST };
	answer->err = begin(s, &answer->why);
	while (s->asked && !go_on(s, SAY_NS / 5, answer))
		;
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

static void slurm_close(struct hd_launcher *launcher);

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
	snprintf(s->name, sizeof s->name, "--name=%s", spec->mark);
	err = write_script(s, diag);
	err = err ? err : hd_slurm_by_commands.open(&s->spec, s->script, &s->way[COMMANDS], diag);
	if (!err)
		err = hd_slurm_by_socket.open(&s->spec, s->script, &s->way[SOCKET], diag);
	if (err && err != HD_E_NOTFOUND) {
		slurm_close(&s->head);
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

/* Of the partition; the way's, until it is asked again. */
static enum hd_err ask_nodes(struct launch_slurm *s, struct hd_batch_nodes *nodes, struct hd_diag *diag)
{
	struct hd_slurm_answer answer;

	ask(s, HD_SLURM_NODES, false, &answer);
	*nodes = answer.nodes;
	if (answer.outcome == HD_SLURM_ANSWERED)
		return HD_OK;
	if (answer.outcome == HD_SLURM_REFUSED)
		return hd_fail(diag, answer.err == HD_E_AGAIN ? HD_E_PEERLOST : answer.err,
			"launch.kind: slurm: %s", answer.why.text);
	return hd_fail(diag, answer.err == HD_E_PEERLOST ? answer.err : HD_E_REFUSED,
		"launch.kind: slurm: %s; run on a machine that submits to Slurm (a login "
		"node), or take launch.kind: local", answer.why.text);
}

static enum hd_err slurm_check(struct hd_launcher *launcher, uint32_t most, char own[HD_ADDR_CAP],
	struct hd_diag *diag)
{
	struct launch_slurm *s = of(launcher);
	const char *partition = s->spec.settings->slurm.partition;
	struct hd_batch_nodes nodes;

	enum hd_err err = ask_nodes(s, &nodes, diag);
	if (err)
		return err;
	if (!nodes.n)
		return hd_fail(diag, HD_E_INVAL, "launch.slurm.partition: \"%s\": there is no such "
			"partition, or it "
			"has no node; `sinfo -s` lists them", partition);
	if (most > nodes.n && *partition)
		return hd_fail(diag, HD_E_INVAL, "--nodes asks for %u, and %s has %u: ask for fewer", most,
			partition_of(s), nodes.n);
	return own_address(&nodes.at[0], own, diag);
}

static enum hd_err slurm_types(struct hd_launcher *launcher, struct hd_launcher_types *types,
	struct hd_diag *diag)
{
	struct hd_batch_nodes nodes;
	enum hd_err err = ask_nodes(of(launcher), &nodes, diag);

	return err ? err : hd_slurm_types(&nodes, !*of(launcher)->spec.settings->slurm.partition, types,
		diag);
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
	struct hd_slurm_next *next = &s->next;
	enum hd_err err = HD_OK;

	hd_slurm_jobs_next(&s->jobs, now(s), next);
	s->question = (struct hd_slurm_question){ .ask = next->ask, .n = next->n, .running = s->jobs.ends };
	/* a look may move jobs meanwhile: the ids lie in the question */
	for (uint32_t i = 0; i < next->n && next->ask == HD_SLURM_TAKE_BACK; i++) {
		memcpy(s->question.id[i], next->id[i], HD_SLURM_ID);
		next->id[i] = s->question.id[i];
	}
	if (next->ask == HD_SLURM_SUBMIT) {
		err = begin_guard(s, diag);
		s->submitted = true;
	}
	return err || next->ask == HD_SLURM_NOTHING ? err : begin(s, diag);
}

static void tell(void *user, const struct hd_batch_job *job, const char *text)
{
	const struct launch_slurm *s = user;

	(void)job;
	hd_launcher_say(&s->head, HD_LAUNCHER_NEWS, "%s", text);
}

/* It may be well later: said once, then it is quiet until it is well. */
static void later(struct launch_slurm *s, const char *why)
{
	if (hd_slurm_jobs_failed(&s->jobs, s->question.ask, now(s)))
		hd_launcher_say(&s->head, HD_LAUNCHER_WAITS, "%s; workers that run go on, and it is tried "
			"again", why);
}

/* What is refused for good before anything was submitted ends it; else a site may change its mind: what
 * worked before is tried again. */
static enum hd_err take_answer(struct launch_slurm *s, const struct hd_slurm_answer *answer,
	struct hd_diag *diag)
{
	const enum hd_slurm_ask what = s->question.ask;
	char waits[HD_LAUNCHER_WHY + 64];

	if (answer->outcome == HD_SLURM_REFUSED && what == HD_SLURM_SUBMIT && answer->err != HD_E_AGAIN &&
		!s->jobs.n)
		return hd_fail(diag, answer->err, "%s", answer->why.text);
	if (answer->outcome != HD_SLURM_ANSWERED) {
		later(s, answer->why.text);
		return HD_OK;
	}
	if (what == HD_SLURM_SUBMIT)
		hd_slurm_jobs_submitted(&s->jobs, answer->id, s->next.n, now(s));
	else if (what == HD_SLURM_TAKE_BACK)
		hd_slurm_jobs_taken_back(&s->jobs, &s->next, now(s));
	else if (what == HD_SLURM_LOOK) {
		hd_slurm_jobs_looked(&s->jobs, &answer->lines, answer->whole, now(s), tell, s);
		if (hd_slurm_jobs_waits(&s->jobs, now(s), waits))
			hd_launcher_say(&s->head, HD_LAUNCHER_WAITS, "%s", waits);
		if (!answer->whole)
			later(s, answer->why.text);
	}
	return HD_OK;
}

static enum hd_err slurm_look(struct hd_launcher *launcher, struct hd_diag *diag)
{
	struct launch_slurm *s = of(launcher);
	struct hd_slurm_answer answer;

	if (!s->asked)
		return begin_next(s, diag);
	return go_on(s, 0, &answer) ? take_answer(s, &answer, diag) : HD_OK;
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

/* What Slurm says now. HD_E_REFUSED: nothing. */
static enum hd_err look_now(struct launch_slurm *s, struct hd_diag *diag)
{
	struct hd_slurm_answer answer;

	ask(s, HD_SLURM_LOOK, false, &answer);
	if (answer.outcome != HD_SLURM_ANSWERED)
		return hd_fail(diag, HD_E_REFUSED, "%s", answer.why.text);
	hd_slurm_jobs_looked(&s->jobs, &answer.lines, answer.whole, now(s), tell, s);
	return answer.whole ? HD_OK : hd_fail(diag, HD_E_REFUSED, "%s", answer.why.text);
}

static enum hd_err cancel(struct launch_slurm *s, bool all, struct hd_diag *diag)
{
	struct hd_slurm_answer answer;

	ask(s, HD_SLURM_CANCEL, all, &answer);
	for (uint32_t i = 0; i < s->jobs.n; i++)
		s->jobs.job[i].taken_back |= all || s->jobs.job[i].line.stage == HD_SLURM_WAITS;
	return answer.outcome == HD_SLURM_ANSWERED ? HD_OK : hd_fail(diag, HD_E_REFUSED, "%s",
		answer.why.text);
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
	struct hd_slurm_answer answer;
	struct hd_diag why = { "" };

	if (!s->submitted && !s->spec.stays)
		return HD_OK;
	/* a submission that is under way makes jobs, which are known then */
	while (s->asked && !go_on(s, SAY_NS / 5, &answer))
		;
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

	for (int i = 0; i < WAYS; i++)
		if (s->way[i])
			s->way[i]->ops->close(s->way[i]);
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
