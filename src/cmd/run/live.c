#include "cmd/run/live.h"

#include <math.h>
#include <string.h>

#include "sys/signal.h"
#include "run/ending.h"
#include "driver/standing.h"

#define HD_LIVE_WAIT_NS INT64_C(5000000000)     /* for an answer */
/* for the next coordinator, while there is a process that can be or start it */
#define HD_LIVE_NEXT_NS INT64_C(60000000000)
#define HD_LIVE_TELL_NS INT64_C(5000000000)
#define HD_LIVE_FIRST_NS INT64_C(50000000)      /* each pause is twice as long as the one before */
#define HD_LIVE_PAUSE_NS INT64_C(1000000000)

static bool is_alone(enum hd_hold hold) { return hold == HD_HOLD_ALONE || hold == HD_HOLD_EVALUATES; }

/* No process took the question, or the one that did died with it. A question that may be carried out twice is
 * asked again. */
static bool again(enum hd_err err, const char *ask, int64_t took_ns)
{
	return err == HD_E_NOTFOUND || (err == HD_E_PEERLOST && took_ns < HD_LIVE_WAIT_NS &&
		!strstr(ask, "\"by\":"));
}

/* A process of this machine will answer soon, or starts one that does. */
static bool may_come(const struct hd_standing *s)
{
	return s->workers || (s->held.hold != HD_HOLD_NONE && !is_alone(s->held.hold) && !s->held.host[0]);
}

static enum hd_err none_coordinates(struct hd_cmd *cmd, const char *run, const struct hd_standing *s)
{
	const char *host = s->held.host;

	cmd->diag.text[0] = '\0';
	if (*host && is_alone(s->held.hold))
		return hd_fail(&cmd->diag, HD_E_NOTFOUND,
			"no process coordinates %s: it was started without --workers and goes on in "
			"one process "
			"on %s",
			run, host);
	if (*host && s->held.hold != HD_HOLD_NONE)
		return hd_fail(&cmd->diag, HD_E_NOTFOUND, "its coordinator is on %s: ask for %s there", host,
			run);
	if (*host)
		return hd_fail(&cmd->diag, HD_E_NOTFOUND,
			"no process coordinates %s on this machine, and no worker of it is left here; "
			"its last "
			"coordinator was on %s: ask there; if it has ended, `heddle resume %s` goes on with "
			"it", run, host, run);
	if (is_alone(s->held.hold))
		return hd_fail(&cmd->diag, HD_E_NOTFOUND,
			"no process coordinates %s: it was started without --workers and goes on in "
			"one process",
			run);
	return hd_fail(&cmd->diag, HD_E_NOTFOUND,
		"no process coordinates %s, and no worker of it is left on this machine: it has ended; "
		"`heddle "
		"resume %s` goes "
		"on with it", run, run);
}

static void tell_wait(const char *run, const struct hd_standing *s, int64_t waited_ns)
{
	fprintf(stderr, ">> %s has no coordinator at the moment; waiting for the next one since %.0f s", run,
		(double)waited_ns * 1e-9);
	if (s->workers)
		fprintf(stderr, ", %u of its workers are there\n", s->workers);
	else
		fprintf(stderr, ", %s\n", s->held.hold == HD_HOLD_COORDINATES ? "the last one is going" :
			"one is beginning");
}

enum hd_err hd_live_ask(struct hd_cmd *cmd, const char *run, const char *ask, const struct hd_json **answer)
{
	int64_t began_ns = hd_clock_now_ns(&cmd->clock), said_ns = began_ns, pause_ns = HD_LIVE_FIRST_NS;
	char addr[HD_ADDR_CAP];
	struct hd_stat stat;
	struct hd_standing standing;
	enum hd_err err = hd_fs_stat(&cmd->fs, run, &stat, &cmd->diag);

	if (!err && stat.kind != HD_FILE_FOLDER)
		err = hd_fail(&cmd->diag, HD_E_INPUT, "%s is no run directory", run);
	if (!err)
		err = hd_control_path(run, "run.sock", addr, &cmd->diag);
	while (!err) {
		int64_t asked_ns = hd_clock_now_ns(&cmd->clock);
		err = hd_control_ask(addr, ask, HD_LIVE_WAIT_NS, &cmd->arena, answer, &cmd->diag);
		int64_t now_ns = hd_clock_now_ns(&cmd->clock);
		if (!again(err, ask, now_ns - asked_ns))
			return err;
		if (hd_standing_look(&cmd->fs, run, &standing, NULL))
			return err;
		if (hd_signal_stop())
			return hd_fail(&cmd->diag, hd_stop_err(hd_signal_stop()), "no answer yet");
		if (!may_come(&standing))
			return none_coordinates(cmd, run, &standing);
		cmd->diag.text[0] = '\0';
		if (now_ns - began_ns >= HD_LIVE_NEXT_NS)
			return hd_fail(&cmd->diag, HD_E_PEERLOST,
				"no coordinator of %s has answered for %d s, although %u of its workers are "
				"there%s: "
				"look into %s/log, and ask again", run, (int)(HD_LIVE_NEXT_NS / HD_NS_PER_S),
				standing.workers,
				standing.held.hold == HD_HOLD_NONE ? "" : " and one is beginning or going",
				run);
		if (now_ns - said_ns >= HD_LIVE_TELL_NS && !cmd->args.has[HD_OPT_QUIET]) {
			tell_wait(run, &standing, now_ns - began_ns);
			said_ns = now_ns;
		}
		hd_clock_wait_until(&cmd->clock, now_ns + pause_ns);
		pause_ns = 2 * pause_ns < HD_LIVE_PAUSE_NS ? 2 * pause_ns : HD_LIVE_PAUSE_NS;
		err = HD_OK;
	}
	return err;
}

bool hd_live_missed(struct hd_live_misses *misses, enum hd_err err)
{
	misses->in_a_row = err == HD_E_PEERLOST ? misses->in_a_row + 1 : 0;
	return misses->in_a_row == 1;
}

int hd_live_alone(struct hd_cmd *cmd, const char *run)
{
	struct hd_standing s;

	return !hd_standing_look(&cmd->fs, run, &s, NULL) && is_alone(s.held.hold) ? s.held.pid : 0;
}

static const char *kept(struct hd_cmd *cmd, const char *text)
{
	const char *copy = hd_arena_text(&cmd->arena, text, strlen(text));

	return copy ? copy : "";
}

enum { WHY = HD_HOST_CAP + 60 };

/* What is known of it beside its state; of another machine less. */
static const char *why_of(const struct hd_standing *s, const struct hd_ending *e, char room[WHY])
{
	const char *host = s->held.host;

	if (is_alone(s->held.hold))
		snprintf(room, WHY, "in one process, without workers%s%s", *host ? ", on " : "", host);
	else if (*host && s->held.hold != HD_HOLD_NONE)
		snprintf(room, WHY, "its coordinator is on %s", host);
	else if (*host && e->began && !e->ended)
		snprintf(room, WHY, "its last coordinator was on %s", host);
	else
		return e->text;
	return room;
}

enum hd_err hd_live_look(struct hd_cmd *cmd, const char *run, struct hd_live *live)
{
	const struct hd_json *answer;
	struct hd_standing s = { .held.hold = HD_HOLD_NONE };
	struct hd_ending e;
	char room[WHY];
	enum hd_err err = hd_live_ask(cmd, run, "{\"do\":\"status\"}", &answer);

	if (err != HD_E_NOTFOUND)
		return err ? err : hd_live_read(answer, live, &cmd->diag);
	if (hd_ending_look(&cmd->fs, run, &e, NULL))
		return err;
	cmd->diag.text[0] = '\0';
	if (hd_standing_look(&cmd->fs, run, &s, NULL))
		s = (struct hd_standing){ .held.hold = HD_HOLD_NONE };
	bool away = s.held.host[0], goes_on = is_alone(s.held.hold) || (away && s.held.hold != HD_HOLD_NONE);
	*live = (struct hd_live){ .goes_on = goes_on, .alone = s.held.pid, .away = away && goes_on,
		.exit = goes_on || !e.ended ? -1 : e.exit,
		.step = (int64_t)e.step, .steps = (int64_t)e.steps, .loss = e.has_loss ? e.loss : NAN,
		.name = kept(cmd, e.name),
		.state = s.held.hold == HD_HOLD_EVALUATES ? "evaluating" : goes_on ? "running" : away &&
		e.began && !e.ended ? "unknown" : hd_ending_state(&e),
		.why = kept(cmd, why_of(&s, &e, room)), .plan_why = "", .autoscale = "off",
		.autoscale_why = "", .listen = "" };
	return HD_OK;
}

/* One line: no worker can be listed. */
static void print_alone(const struct hd_live *l, struct hd_text *text)
{
	const struct hd_fields *f = &hd_live_fields;

	hd_fields_say(f, l, l->steps ? "{name}  {state}  step {step}/{steps}  loss {loss}" :
		"{name}  {state}  step {step}  loss {loss}", text);
	if (l->exit >= 0)
		hd_fields_say(f, l, "  exit code {exit}", text);
	if (l->alone)
		hd_text_addf(text, "  process %lld", (long long)l->alone);
	hd_text_addf(text, "%s%s\n", *l->why ? "  " : "", l->why);
	if (!strcmp(l->state, "unknown"))
		hd_text_add(text, "whether it goes on there cannot be seen from this machine: ask there; "
			"if it has ended, `heddle resume` goes on with it\n");
	if (!strcmp(l->state, "died"))
		hd_text_add(text, "its processes are gone, and did not say why: what they said last is in "
			"its log folder; `heddle resume` goes on with it\n");
}

static void print_run(const struct hd_live *l, struct hd_text *text)
{
	const struct hd_fields *f = &hd_live_fields;

	hd_fields_say(f, l, "{name}  {state}  step {step}/{steps}  loss {loss}  "
		"{members} of {target} workers  {virtual_nodes} virtual nodes  "
		"membership {membership}  plan {plan}  step {step_ms} ms",
		text);
	hd_text_addf(text, "%s%s\n", *l->why ? "  " : "", l->why);
	if (l->copies)
		hd_text_addf(text, "state sharded: each part of the optimizer's slots lies on %lld of the "
			"workers\n", (long long)(l->copies < l->members ? l->copies : l->members));
	if (l->unrecorded)
		hd_fields_say(f, l,
			"{unrecorded} steps have no line in metrics.ndjson: no process coordinated "
			"them\n", text);
	if (l->given_up)
		hd_fields_say(f, l, "{given_up} workers were given up for lost and lived: this machine is "
			"busier than workers.detect ({detect_ms} ms) allows for; a larger one waits "
			"longer\n", text);
	if (strcmp(l->autoscale, "off") != 0)
		hd_text_addf(text, "autoscale %s: %s\n", l->autoscale,
			*l->autoscale_why ? l->autoscale_why : "measures");
	if (*l->plan_why)
		hd_text_addf(text, "map: %.*s\n", (int)strcspn(l->plan_why, "\n"), l->plan_why);
	for (uint32_t i = 0; i < l->nworkers; i++)
		if (l->worker[i].notice && *l->worker[i].notice)
			hd_text_addf(text, "worker %lld has notice by %s\n", (long long)l->worker[i].id,
				l->worker[i].notice);
	hd_fields_head(&hd_live_worker_fields, text);
	for (uint32_t i = 0; i < l->nworkers; i++)
		hd_fields_line(&hd_live_worker_fields, &l->worker[i], text);
}

void hd_live_print(const struct hd_live *l, FILE *to)
{
	struct hd_arena arena;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	if (!l->goes_on || l->alone || l->away)
		print_alone(l, &text);
	else
		print_run(l, &text);
	fputs(text.full ? "no memory for the status\n" : text.at, to);
	hd_arena_finish(&arena);
}
