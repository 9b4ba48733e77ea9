#include "driver/reach.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sys/signal.h"
#include "run/best.h"
#include "run/ending.h"
#include "run/functions_bill.h"
#include "driver/standing.h"

#define HD_REACH_WAIT_NS INT64_C(5000000000)     /* for an answer */
/* for the next coordinator, while there is a process that can be or start it */
#define HD_REACH_NEXT_NS INT64_C(60000000000)
#define HD_REACH_TELL_NS INT64_C(5000000000)
#define HD_REACH_FIRST_NS INT64_C(50000000)      /* each pause is twice as long as the one before */
#define HD_REACH_PAUSE_NS INT64_C(1000000000)

static bool is_alone(enum hd_hold hold) { return hold == HD_HOLD_ALONE || hold == HD_HOLD_EVALUATES; }

/* No process took the question, or the one that did died with it. A question that may be carried out twice is
 * asked again. */
static bool again(enum hd_err err, const char *ask, int64_t took_ns)
{
	return err == HD_E_NOTFOUND || (err == HD_E_PEERLOST && took_ns < HD_REACH_WAIT_NS &&
		!strstr(ask, "\"by\":"));
}

/* A process of this machine will answer soon, or starts one that does. */
static bool may_come(const struct hd_standing *s)
{
	return s->workers || (s->held.hold != HD_HOLD_NONE && !is_alone(s->held.hold) && !s->held.host[0]);
}

static enum hd_err none_coordinates(const struct hd_reach *reach, const char *run,
	const struct hd_standing *s, struct hd_diag *diag)
{
	const char *host = s->held.host;
	struct hd_rundir dir;

	diag->text[0] = '\0';
	enum hd_err err = hd_rundir_visit(&dir, reach->fs, reach->clock, run, diag);
	if (err)
		return err;
	if (*host && is_alone(s->held.hold))
		return hd_fail(diag, HD_E_NOTFOUND,
			"no process coordinates %s: it was started without --workers and goes on "
			"in one process on %s", run, host);
	if (*host && s->held.hold != HD_HOLD_NONE)
		return hd_fail(diag, HD_E_NOTFOUND, "its coordinator is on %s: ask for %s there", host,
			run);
	if (*host)
		return hd_fail(diag, HD_E_NOTFOUND,
			"no process coordinates %s on this machine, and no worker "
			"of it is left here; its last coordinator was on %s: ask "
			"there; if it has ended, `heddle resume %s` goes on with it", run, host, run);
	if (is_alone(s->held.hold))
		return hd_fail(diag, HD_E_NOTFOUND,
			"no process coordinates %s: it was started without --workers and goes on "
			"in one process", run);
	return hd_fail(diag, HD_E_NOTFOUND,
		"no process coordinates %s, and no worker of it is left on "
		"this machine: it has ended; `heddle resume %s` goes on with it", run, run);
}

static void say_wait(const struct hd_reach *reach, const char *run, const struct hd_standing *s,
	int64_t waited_ns)
{
	char text[HD_PATH_CAP + 120];
	int n = snprintf(text, sizeof text,
		"%s has no coordinator at the moment; waiting for the next one since %.0f s, ", run,
		(double)waited_ns * 1e-9);

	if (n > 0 && (size_t)n < sizeof text && s->workers)
		snprintf(text + n, sizeof text - (size_t)n, "%u of its workers are there", s->workers);
	else if (n > 0 && (size_t)n < sizeof text)
		snprintf(text + n, sizeof text - (size_t)n, "%s", s->held.hold == HD_HOLD_COORDINATES ?
			"the last one is ending" : "one is starting");
	reach->waits(text);
}

enum hd_err hd_reach_ask(const struct hd_reach *reach, const char *run, const char *ask,
	const struct hd_json **answer, struct hd_diag *diag)
{
	int64_t began_ns = hd_clock_now_ns(reach->clock), said_ns = began_ns, pause_ns = HD_REACH_FIRST_NS;
	char addr[HD_ADDR_CAP];
	struct hd_stat stat;
	struct hd_standing standing;
	enum hd_err err = hd_fs_stat(reach->fs, run, &stat, diag);

	if (!err && stat.kind != HD_FILE_FOLDER)
		err = hd_fail(diag, HD_E_INPUT, "%s is no run directory", run);
	if (!err)
		err = hd_control_path(run, "run.sock", addr, diag);
	while (!err) {
		int64_t asked_ns = hd_clock_now_ns(reach->clock);
		err = hd_control_ask(addr, ask, HD_REACH_WAIT_NS, reach->arena, answer, diag);
		int64_t now_ns = hd_clock_now_ns(reach->clock);
		if (!again(err, ask, now_ns - asked_ns))
			return err;
		if (hd_standing_look(reach->fs, run, &standing, NULL))
			return err;
		if (hd_signal_stop())
			return hd_fail(diag, hd_stop_err(hd_signal_stop()), "no answer yet");
		if (!may_come(&standing))
			return none_coordinates(reach, run, &standing, diag);
		diag->text[0] = '\0';
		if (now_ns - began_ns >= HD_REACH_NEXT_NS)
			return hd_fail(diag, HD_E_PEERLOST,
				"no coordinator of %s has answered for %d s, although %u "
				"of its workers are there%s: look into %s/log, and ask again",
				run, (int)(HD_REACH_NEXT_NS / HD_NS_PER_S), standing.workers,
				standing.held.hold == HD_HOLD_NONE ? "" : " and one is starting or ending",
				run);
		if (now_ns - said_ns >= HD_REACH_TELL_NS && reach->waits) {
			say_wait(reach, run, &standing, now_ns - began_ns);
			said_ns = now_ns;
		}
		hd_clock_wait_until(reach->clock, now_ns + pause_ns);
		pause_ns = 2 * pause_ns < HD_REACH_PAUSE_NS ? 2 * pause_ns : HD_REACH_PAUSE_NS;
		err = HD_OK;
	}
	return err;
}

bool hd_reach_missed(struct hd_reach_misses *misses, enum hd_err err)
{
	misses->in_a_row = err == HD_E_PEERLOST ? misses->in_a_row + 1 : 0;
	return misses->in_a_row == 1;
}

int hd_reach_alone(const struct hd_reach *reach, const char *run)
{
	struct hd_standing s;

	return !hd_standing_look(reach->fs, run, &s, NULL) && is_alone(s.held.hold) ? s.held.pid : 0;
}

static const char *kept(const struct hd_reach *reach, const char *text)
{
	const char *copy = hd_arena_text(reach->arena, text, strlen(text));

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

static const char *best_of(const struct hd_reach *reach, const char *run, char said[HD_BEST_WORDS])
{
	char parent[HD_PATH_CAP];

	return hd_ckpt_parent(reach->fs, run, parent, sizeof parent, NULL) ? "none" :
		hd_best_text(said, reach->fs, parent);
}

enum hd_err hd_reach_look(const struct hd_reach *reach, const char *run, struct hd_live *live,
	struct hd_diag *diag)
{
	const struct hd_json *answer;
	struct hd_standing s = { .held.hold = HD_HOLD_NONE };
	struct hd_ending e;
	char room[WHY], best[HD_BEST_WORDS], functions[HD_FN_BILL_WORDS];
	struct hd_functions_bill bill;
	enum hd_err err = hd_reach_ask(reach, run, "{\"do\":\"status\"}", &answer, diag);

	if (err != HD_E_NOTFOUND)
		return err ? err : hd_live_read(answer, live, diag);
	if (hd_ending_look(reach->fs, run, &e, NULL))
		return err;
	diag->text[0] = '\0';
	if (hd_standing_look(reach->fs, run, &s, NULL))
		s = (struct hd_standing){ .held.hold = HD_HOLD_NONE };
	hd_functions_bill_sum(&bill, reach->fs, run);
	bool away = s.held.host[0], goes_on = is_alone(s.held.hold) || (away && s.held.hold != HD_HOLD_NONE);
	*live = (struct hd_live){ .goes_on = goes_on, .alone = s.held.pid, .away = away && goes_on,
		.exit = goes_on || !e.ended ? -1 : e.exit,
		.step = (int64_t)e.step, .steps = (int64_t)e.steps, .loss = e.has_loss ? e.loss : NAN,
		.name = kept(reach, e.name),
		.state = s.held.hold == HD_HOLD_EVALUATES ? "evaluating" : goes_on ? "running" : away &&
		e.began && !e.ended ? "unknown" : hd_ending_state(&e),
		.why = kept(reach, why_of(&s, &e, room)), .plan_why = "", .autoscale = "off",
		.redundancy = "none", .resilience = "given", .saving = "given",
		.best = kept(reach, best_of(reach, run, best)),
		.functions = kept(reach, hd_functions_bill_say(functions, &bill)),
		.functions_nano_usd = bill.nano_usd,
		.autoscale_why = "", .listen = "" };
	return HD_OK;
}
