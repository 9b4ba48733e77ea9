/* Slurm over the Unix socket of slurmrestd: a question is one request or several, one after the other.
 *
 * Jobs that wait are taken back in two requests each: one that keeps the job from beginning, which Slurm
 * refuses of a job that has begun, and one that ends it. So none that computes is ended. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "launch/slurm_call.h"
#include "launch/slurm_rest.h"
#include "launch/slurm_way.h"

#define PAUSE_NS INT64_C(10000000)

enum request { PING, SUBMIT, JOBS, HOLD, END, PARTITIONS, NODES };

struct slurm_socket {
	struct hd_slurm_way head;
	const struct hd_launcher_spec *spec;
	struct hd_net net;
	struct hd_slurm_call call;
	struct hd_slurm_question asked;
	const struct hd_slurm_version *version;   /* NULL: not known yet */
	uint32_t tried;                   /* versions that do not answer */
	enum request request;             /* that is under way */
	char what[64];                    /* "GET jobs" */
	const char *script;               /* the file */
	char (*id)[HD_SLURM_ID];          /* to be ended; in the arena, or of the question */
	uint32_t nids, at;                /* at: the next one */
	const char *usual;                /* partition */
	int64_t began_ns;
	struct hd_arena arena;            /* of a question: its requests, what was answered */
};

static struct slurm_socket *of(struct hd_slurm_way *way) { return (struct slurm_socket *)way; }
static int64_t now(const struct slurm_socket *s) { return hd_clock_now_ns(s->spec->clock); }

static enum hd_err socket_open(const struct hd_launcher_spec *spec, const char *script,
	struct hd_slurm_way **way, struct hd_diag *diag)
{
	const char *path = spec->settings->slurm.socket;

	if (!path || !*path)
		return HD_E_NOTFOUND;
	struct slurm_socket *s = hd_alloc(sizeof *s);
	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a launcher");
	*s = (struct slurm_socket){ .head = { .ops = &hd_slurm_by_socket }, .spec = spec, .script = script };
	hd_net_real(&s->net);
	hd_arena_init(&s->arena, 0);
	*way = &s->head;
	return HD_OK;
}

static const char *socket_word(const struct hd_slurm_way *way, enum hd_slurm_ask ask)
{
	static const char *const words[] = { [HD_SLURM_NOTHING] = "", [HD_SLURM_SUBMIT] =
		"slurmrestd (submit)",
		[HD_SLURM_LOOK] = "slurmrestd (jobs)", [HD_SLURM_TAKE_BACK] = "slurmrestd (take back)",
		[HD_SLURM_CANCEL] = "slurmrestd (cancel)", [HD_SLURM_NODES] = "slurmrestd (nodes)" };

	(void)way;
	return words[ask];
}

/* ---- requests */

/* The token is in no message and in no file. */
static enum hd_err send(struct slurm_socket *s, enum request request, const char *method, const char *target,
	const struct hd_text *body, struct hd_diag *diag)
{
	const struct hd_launcher_settings *set = s->spec->settings;
	const bool token = set->slurm.token && *set->slurm.token;
	struct hd_text out;

	s->request = request;
	snprintf(s->what, sizeof s->what, "%s %.50s", method, target);
	hd_text_init(&out, &s->arena);
	hd_text_addf(&out, "%s /slurm/%s/%s HTTP/1.1\r\nHost: localhost\r\n"
		"Accept: application/json\r\nConnection: close\r\n", method,
		(s->version ? s->version : &hd_slurm_versions[s->tried])->name, target);
	if (token)
		hd_text_addf(&out, "X-SLURM-USER-NAME: %s\r\nX-SLURM-USER-TOKEN: %s\r\n", set->slurm.user,
			set->slurm.token);
	if (body)
		hd_text_addf(&out, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
			body->len);
	else
		hd_text_add(&out, "\r\n");
	if (body)
		hd_text_put(&out, body->at, body->len);
	if (out.full || (body && body->full))
		return hd_fail(diag, HD_E_NOMEM, "no memory for a request");
	return hd_slurm_call_begin(&s->call, &s->net, set->slurm.socket, !token, out.at, out.len, diag);
}

static enum hd_err submit(struct slurm_socket *s, struct hd_diag *diag)
{
	char folder[HD_PATH_CAP];
	uint8_t *script = NULL;
	size_t len = 0;
	struct hd_text body;
	enum hd_err err = hd_file_read_all(s->spec->fs, s->script, &s->arena, HD_SLURM_SCRIPT, &script, &len,
		diag);

	err = err ? err : hd_proc_folder(folder, sizeof folder, diag);
	hd_text_init(&body, &s->arena);
	const struct hd_slurm_submission what = { .spec = s->spec, .n = s->asked.n, .folder = folder,
		.script = (const char *)script, .environment = hd_proc_environment() };
	err = err ? err : hd_slurm_rest_submission(s->version, &what, &body, diag);
	return err ? err : send(s, SUBMIT, "POST", "job/submit", &body, diag);
}

static enum hd_err end_next(struct slurm_socket *s, bool hold, struct hd_diag *diag)
{
	char target[HD_SLURM_ID + 8];
	struct hd_text body;

	snprintf(target, sizeof target, "job/%s", s->id[s->at]);
	hd_text_init(&body, &s->arena);
	if (!hold)
		return send(s, END, "DELETE", target, NULL, diag);
	hd_slurm_rest_hold(s->version, &body);
	return send(s, HOLD, "POST", target, &body, diag);
}

/* The first request of the question. */
static enum hd_err send_first(struct slurm_socket *s, struct hd_diag *diag)
{
	const bool partition = *s->spec->settings->slurm.partition;

	switch (s->asked.ask) {
	case HD_SLURM_SUBMIT:
		return submit(s, diag);
	case HD_SLURM_LOOK:
	case HD_SLURM_CANCEL:
		return send(s, JOBS, "GET", "jobs", NULL, diag);
	case HD_SLURM_TAKE_BACK:
		return end_next(s, !s->asked.running, diag);
	case HD_SLURM_NODES:
		return partition ? send(s, NODES, "GET", "nodes", NULL, diag) :
			send(s, PARTITIONS, "GET", "partitions", NULL, diag);
	case HD_SLURM_NOTHING:
		break;
	}
	return HD_E_BUG;
}

static enum hd_err socket_begin(struct hd_slurm_way *way, const struct hd_slurm_question *question,
	struct hd_diag *diag)
{
	struct slurm_socket *s = of(way);
	struct hd_diag why = { "" };

	hd_arena_reset(&s->arena);
	s->asked = *question;
	s->id = s->asked.id;
	s->nids = question->n;
	s->at = 0;
	s->usual = "";
	s->began_ns = now(s);
	if (!s->version)
		s->tried = 0;
	enum hd_err err = s->version && question->ask != HD_SLURM_SUBMIT ? send_first(s, &why) :
		send(s, PING, "GET", "ping", NULL, &why);
	return err ? hd_fail(diag, err, "slurmrestd at %s: %s", s->spec->settings->slurm.socket, why.text) :
		HD_OK;
}

/* ---- answers */

enum said { GOES_ON, DONE };

static enum said fails(struct slurm_socket *s, struct hd_slurm_answer *answer, enum hd_slurm_outcome outcome,
	enum hd_err err, const char *why)
{
	answer->outcome = outcome;
	answer->sent = s->request == SUBMIT && s->call.out_at;
	answer->err = outcome == HD_SLURM_UNSAID ? hd_fail(&answer->why, err, "%s", why) :
		hd_fail(&answer->why, err, "slurmrestd at %s: %s: %s", s->spec->settings->slurm.socket,
		s->what,
		why);
	return DONE;
}

/* Another request of the question. */
static enum said goes_on(struct slurm_socket *s, struct hd_slurm_answer *answer, enum hd_err err,
	const struct hd_diag *why)
{
	if (!err)
		return GOES_ON;
	return fails(s, answer, err == HD_E_NOTFOUND ? HD_SLURM_UNSAID : HD_SLURM_LOST, err, why->text);
}

/* Those of our name that are not over. */
static enum hd_err take_ids(struct slurm_socket *s, const struct hd_slurm_lines *lines)
{
	s->id = hd_arena_take(&s->arena, lines->n + 1, sizeof *s->id);
	s->nids = 0;
	for (uint32_t i = 0; s->id && i < lines->n; i++) {
		const struct hd_slurm_line *l = &lines->at[i];
		if (l->stage == HD_SLURM_WAITS || (l->stage == HD_SLURM_RUNS && s->asked.running))
			memcpy(s->id[s->nids++], l->id, HD_SLURM_ID);
	}
	return s->id ? HD_OK : HD_E_NOMEM;
}

static enum said take_ping(struct slurm_socket *s, struct hd_slurm_answer *answer)
{
	struct hd_diag why = { "" };
	char line[80];
	enum hd_err err;

	if (s->call.head.status == 404 && !s->version && s->tried + 1 < HD_SLURM_VERSIONS) {
		s->tried++;
		err = send(s, PING, "GET", "ping", NULL, &why);
		return goes_on(s, answer, err, &why);
	}
	if (s->call.head.status != 200) {
		snprintf(line, sizeof line, s->call.head.status == 404 ?
			"answer %d: it has none of the versions v0.0.38 to v0.0.43" : "answer %d",
			s->call.head.status);
		return fails(s, answer, HD_SLURM_LOST, HD_E_PROTOCOL, line);
	}
	if (!s->version)
		s->version = &hd_slurm_versions[s->tried];
	err = send_first(s, &why);
	return goes_on(s, answer, err, &why);
}

/* What Slurm said no to. */
static enum said take_error(struct hd_slurm_answer *answer, const char *text)
{
	struct hd_diag why = { "" };
	const enum hd_err err = hd_slurm_refusal("slurmrestd", text, strlen(text), &why);

	answer->outcome = HD_SLURM_REFUSED;
	answer->err = hd_fail(&answer->why, err, "%s", why.text);
	return DONE;
}

/* One was kept from beginning, or ended; or it was too late for that. */
static enum said take_end(struct slurm_socket *s, struct hd_slurm_answer *answer, enum hd_slurm_error error)
{
	struct hd_diag why = { "" };
	enum hd_err err;

	if (s->request == HOLD && error == HD_SLURM_NO_ERROR) {
		err = end_next(s, false, &why);
		return goes_on(s, answer, err, &why);
	}
	if (++s->at >= s->nids)
		return DONE;
	err = end_next(s, !s->asked.running, &why);
	return goes_on(s, answer, err, &why);
}

static enum said take_jobs(struct slurm_socket *s, struct hd_slurm_answer *answer)
{
	struct hd_diag why = { "" };
	enum hd_err err = hd_slurm_rest_jobs(s->call.body, s->call.body_len, s->spec->mark, &s->arena,
		&answer->lines, &why);

	if (err || s->asked.ask == HD_SLURM_LOOK)
		return err ? fails(s, answer, HD_SLURM_LOST, err, why.text) : DONE;
	err = take_ids(s, &answer->lines);
	if (err)
		return fails(s, answer, HD_SLURM_LOST, err, "no memory for jobs");
	if (!s->nids)
		return DONE;
	err = end_next(s, !s->asked.running, &why);
	return goes_on(s, answer, err, &why);
}

static enum said take_nodes(struct slurm_socket *s, struct hd_slurm_answer *answer)
{
	const char *body = s->call.body;
	struct hd_diag why = { "" };
	enum hd_err err;

	if (s->request == NODES) {
		err = hd_slurm_rest_nodes(body, s->call.body_len, s->spec->settings->slurm.partition,
			s->usual,
			&s->arena, &answer->nodes, &why);
		return err ? fails(s, answer, HD_SLURM_LOST, err, why.text) : DONE;
	}
	err = hd_slurm_rest_usual(body, s->call.body_len, &s->arena, &s->usual, &why);
	if (err)
		return fails(s, answer, HD_SLURM_LOST, err, why.text);
	if (!*s->usual)
		return fails(s, answer, HD_SLURM_UNSAID, HD_E_NOTFOUND,
			"slurmrestd does not say which partition is the default");
	err = send(s, NODES, "GET", "nodes", NULL, &why);
	return goes_on(s, answer, err, &why);
}

/* An answer is there, whole. */
static enum said take(struct slurm_socket *s, struct hd_slurm_answer *answer)
{
	const int status = s->call.head.status;
	enum hd_slurm_error error = HD_SLURM_NO_ERROR;
	const char *text = "";
	char line[80];

	if (status == 401 || status == 403)
		return fails(s, answer, HD_SLURM_LOST, HD_E_REFUSED, "it does not take this user's word: is "
			"SLURM_JWT set, and not too old? (docs/slurm.md)");
	if (s->request == PING)
		return take_ping(s, answer);
	if (s->request == JOBS && status == 200)
		return take_jobs(s, answer);
	if ((s->request == NODES || s->request == PARTITIONS) && status == 200)
		return take_nodes(s, answer);
	if (hd_slurm_rest_error(s->call.body, s->call.body_len, &s->arena, &error, &text, NULL)) {
		snprintf(line, sizeof line, "answer %d is not understood", status);
		return fails(s, answer, HD_SLURM_LOST, HD_E_PROTOCOL, line);
	}
	if (s->request == SUBMIT && !hd_slurm_rest_id(s->call.body, s->call.body_len, &s->arena, answer->id,
		NULL))
		return DONE;
	if (s->request == HOLD || s->request == END)
		return error == HD_SLURM_ERROR ? take_error(answer, text) : take_end(s, answer, error);
	if (error != HD_SLURM_NO_ERROR)
		return take_error(answer, text);
	snprintf(line, sizeof line, "answer %d says neither what was done nor why not", status);
	return fails(s, answer, HD_SLURM_LOST, HD_E_PROTOCOL, line);
}

/* As far as it goes now. */
static enum said go_far(struct slurm_socket *s, struct hd_slurm_answer *answer)
{
	for (;;) {
		struct hd_diag why = { "" };
		enum hd_err err = hd_slurm_call_go_on(&s->call, &why);
		if (err == HD_E_AGAIN && now(s) - s->began_ns >= HD_LAUNCHER_PATIENCE_NS)
			err = hd_fail(&why, HD_E_PEERLOST, "it has not answered for %d s",
				(int)(HD_LAUNCHER_PATIENCE_NS / 1000000000));
		if (err == HD_E_AGAIN)
			return GOES_ON;
		if (err)
			return fails(s, answer, HD_SLURM_LOST, err, why.text);
		if (take(s, answer) == DONE)
			return DONE;
	}
}

static bool socket_go_on(struct hd_slurm_way *way, int64_t wait_ns, struct hd_slurm_answer *answer)
{
	struct slurm_socket *s = of(way);
	const int64_t until_ns = now(s) + wait_ns;

	*answer = (struct hd_slurm_answer){ .sent = true, .whole = true };
	while (go_far(s, answer) != DONE) {
		if (now(s) >= until_ns)
			return false;
		hd_clock_wait_until(s->spec->clock, now(s) + PAUSE_NS);
	}
	hd_slurm_call_end(&s->call);
	if (answer->outcome == HD_SLURM_LOST)
		s->version = NULL;
	return true;
}

static void socket_give_up(struct hd_slurm_way *way) { hd_slurm_call_end(&of(way)->call); }

static void socket_close(struct hd_slurm_way *way)
{
	if (!way)
		return;
	socket_give_up(way);
	hd_arena_finish(&of(way)->arena);
	hd_free(way);
}

const struct hd_slurm_way_ops hd_slurm_by_socket = {
	.name = "socket", .open = socket_open, .word = socket_word, .begin = socket_begin,
	.go_on = socket_go_on, .give_up = socket_give_up, .close = socket_close,
};
