#include "cmd/live.h"

#include <math.h>
#include <string.h>

#include "sys/signal.h"
#include "run/ending.h"
#include "driver/standing.h"

#define HD_LIVE_WAIT_NS INT64_C(5000000000)     /* for an answer */
#define HD_LIVE_NEXT_NS INT64_C(60000000000)    /* for the next coordinator, while somebody is there who can be or start it */
#define HD_LIVE_TELL_NS INT64_C(5000000000)
#define HD_LIVE_FIRST_NS INT64_C(50000000)      /* each pause is twice as long as the one before */
#define HD_LIVE_PAUSE_NS INT64_C(1000000000)

static bool is_alone(enum hd_hold hold) { return hold == HD_HOLD_ALONE || hold == HD_HOLD_EVALUATES; }

/* Nobody took the question, or whoever did died with it: one that may be carried out twice is asked again. */
static bool again(enum hd_err err, const char *ask, int64_t took_ns)
{
	return err == HD_E_NOTFOUND || (err == HD_E_PEERLOST && took_ns < HD_LIVE_WAIT_NS &&
		!strstr(ask, "\"by\":"));
}

/* Somebody of this machine is there who answers soon, or starts one who does. */
static bool may_come(const struct hd_standing *s)
{
	return s->workers || (s->held.hold != HD_HOLD_NONE && !is_alone(s->held.hold) && !s->held.host[0]);
}

static enum hd_err nobody(struct hd_cmd *cmd, const char *run, const struct hd_standing *s)
{
	const char *host = s->held.host;

	cmd->diag.text[0] = '\0';
	if (*host && is_alone(s->held.hold))
		return hd_fail(&cmd->diag, HD_E_NOTFOUND,
			"nobody coordinates %s: it was started without --workers and goes on in one process "
			"on %s",
			run, host);
	if (*host && s->held.hold != HD_HOLD_NONE)
		return hd_fail(&cmd->diag, HD_E_NOTFOUND, "its coordinator is on %s: ask for %s there", host,
			run);
	if (*host)
		return hd_fail(&cmd->diag, HD_E_NOTFOUND,
			"nobody coordinates %s on this machine, and no worker of it is left here; its last "
			"coordinator was on %s: ask there; if it has ended, `heddle resume %s` goes on with "
			"it", run, host, run);
	if (is_alone(s->held.hold))
		return hd_fail(&cmd->diag, HD_E_NOTFOUND,
			"nobody coordinates %s: it was started without --workers and goes on in one process",
			run);
	return hd_fail(&cmd->diag, HD_E_NOTFOUND,
		"nobody coordinates %s, and no worker of it is left on this machine: it has ended; `heddle "
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
	int64_t began_ns = hd_clock_now_ns(&cmd->clock), told_ns = began_ns, pause_ns = HD_LIVE_FIRST_NS;
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
			return hd_fail(&cmd->diag, hd_stop_err(hd_signal_stop()), "nobody has answered yet");
		if (!may_come(&standing))
			return nobody(cmd, run, &standing);
		cmd->diag.text[0] = '\0';
		if (now_ns - began_ns >= HD_LIVE_NEXT_NS)
			return hd_fail(&cmd->diag, HD_E_PEERLOST,
				"no coordinator of %s has answered for %d s, although %u of its workers are "
				"there%s: "
				"look into %s/log, and ask again", run, (int)(HD_LIVE_NEXT_NS / HD_NS_PER_S),
				standing.workers,
				standing.held.hold == HD_HOLD_NONE ? "" : " and one is beginning or going",
				run);
		if (now_ns - told_ns >= HD_LIVE_TELL_NS && !cmd->args.has[HD_OPT_QUIET]) {
			tell_wait(run, &standing, now_ns - began_ns);
			told_ns = now_ns;
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

static enum hd_err read_worker(const struct hd_json *item, struct hd_live_worker *w, struct hd_diag *diag)
{
	const struct { const char *key; int64_t *at; } number[] = { { "id", &w->id }, { "pid", &w->pid },
		{ "devices", &w->devices },
		{ "virtual_nodes", &w->virtual_nodes }, { "redone_vn", &w->redone } };
	const struct { const char *key; double *at; } real[] = { { "step_ms", &w->step_ms },
		{ "wait_ms", &w->wait_ms }, { "compute_ms", &w->compute_ms },
		{ "vn_ms", &w->vn_ms }, { "speed", &w->speed } };
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof number / sizeof *number && !err; i++)
		err = hd_json_get_i64(item, number[i].key, 0, INT64_MAX, number[i].at, diag);
	if (!err)
		err = hd_json_get_text(item, "state", &w->state, diag);
	if (!err)
		err = hd_json_get_text(item, "address", &w->address, diag);
	for (size_t i = 0; i < sizeof real / sizeof *real && !err; i++)
		err = hd_json_get_f64(item, real[i].key, real[i].at, diag);
	return err;
}

enum hd_err hd_live_read(const struct hd_json *answer, struct hd_live *live, struct hd_diag *diag)
{
	const struct { const char *key; int64_t *at; } number[] = { { "step", &live->step },
		{ "steps", &live->steps }, { "membership", &live->epoch },
		{ "term", &live->term }, { "plan", &live->plan }, { "members", &live->members }, { "asked", &live->asked },
		{ "target", &live->target },
		{ "virtual_nodes", &live->virtual_nodes }, { "unrecorded", &live->unrecorded }, { "copies", &live->copies },
		{ "given_up", &live->given_up } };
	const struct { const char *key; const char **at; } text[] = { { "name", &live->name },
		{ "state", &live->state }, { "why", &live->why },
		{ "plan_why", &live->plan_why }, { "autoscale", &live->autoscale }, { "autoscale_why", &live->autoscale_why } };
	const struct { const char *key; double *at; } real[] = { { "loss", &live->loss },
		{ "step_ms", &live->step_ms }, { "wait_ms", &live->wait_ms },
		{ "predicted_ms", &live->predicted_ms }, { "detect_ms", &live->detect_ms } };
	const struct hd_json *workers = NULL;
	enum hd_err err = HD_OK;

	*live = (struct hd_live){ .goes_on = true, .exit = -1 };
	for (size_t i = 0; i < sizeof number / sizeof *number && !err; i++)
		err = hd_json_get_i64(answer, number[i].key, 0, INT64_MAX, number[i].at, diag);
	for (size_t i = 0; i < sizeof text / sizeof *text && !err; i++)
		err = hd_json_get_text(answer, text[i].key, text[i].at, diag);
	for (size_t i = 0; i < sizeof real / sizeof *real && !err; i++)
		err = hd_json_get_f64(answer, real[i].key, real[i].at, diag);
	if (!err)
		err = hd_json_get(answer, "workers", HD_JSON_ARRAY, &workers, diag);
	for (size_t i = 0; !err && i < hd_json_count(workers) && live->nworkers < HD_LIVE_WORKERS; i++)
		err = read_worker(hd_json_item(workers, i), &live->worker[live->nworkers++], diag);
	return err;
}

int hd_live_alone(struct hd_cmd *cmd, const char *run)
{
	struct hd_standing s;

	return !hd_standing_look(&cmd->fs, run, &s, NULL) && is_alone(s.held.hold) ? s.held.pid : 0;
}

static const char *state_of(const struct hd_ending *e)
{
	bool asked = e->exit == hd_err_exit(HD_E_PREEMPTED) || e->exit == hd_err_exit(HD_E_INTERRUPT);

	return !e->began ? "new" : !e->ended ? "died" : e->exit < 0 ? "ended" : e->exit == 0 ? "done" :
		asked ? "stopped" : "failed";
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
		e.began && !e.ended ? "unknown" : state_of(&e),
		.why = kept(cmd, why_of(&s, &e, room)), .plan_why = "", .autoscale = "off",
		.autoscale_why = "" };
	return HD_OK;
}

/* One line: there is nobody to be listed. */
static void print_alone(const struct hd_live *l, const char *loss, FILE *to)
{
	fprintf(to, "%s  %s  step %lld", l->name, l->state, (long long)l->step);
	if (l->steps)
		fprintf(to, "/%lld", (long long)l->steps);
	fprintf(to, "  loss %s", loss);
	if (l->exit >= 0)
		fprintf(to, "  exit code %lld", (long long)l->exit);
	if (l->alone)
		fprintf(to, "  process %lld", (long long)l->alone);
	fprintf(to, "%s%s\n", *l->why ? "  " : "", l->why);
	if (!strcmp(l->state, "unknown"))
		fprintf(to,
			"whether it goes on there cannot be seen from this machine: ask there; if it has "
			"ended, `heddle resume` goes on with it\n");
	if (!strcmp(l->state, "died"))
		fprintf(to,
			"its processes are gone, and did not say why: what they said last is in its log "
			"folder; `heddle resume` goes on with it\n");
}

void hd_live_print(const struct hd_live *l, FILE *to)
{
	char loss[32] = "-";

	if (isfinite(l->loss))
		snprintf(loss, sizeof loss, "%.4f", l->loss);
	if (!l->goes_on || l->alone || l->away) {
		print_alone(l, loss, to);
		return;
	}
	fprintf(to, "%s  %s  step %lld/%lld  loss %s  %lld of %lld workers  %lld virtual nodes  "
		"membership %lld  plan %lld  step %.3g ms%s%s\n", l->name, l->state,
		(long long)l->step, (long long)l->steps, loss, (long long)l->members, (long long)l->target,
		(long long)l->virtual_nodes,
		(long long)l->epoch, (long long)l->plan, l->step_ms, *l->why ? "  " : "", l->why);
	if (l->copies)
		fprintf(to, "state sharded: each part of the optimizer's slots lies on %lld of the workers\n",
			(long long)(l->copies < l->members ? l->copies : l->members));
	if (l->unrecorded)
		fprintf(to, "%lld steps have no line in metrics.ndjson: nobody coordinated them\n",
			(long long)l->unrecorded);
	if (l->given_up)
		fprintf(to,
			"%lld workers were given up for lost and lived: this machine is busier than "
			"workers.detect (%.4g ms) allows for; a larger "
			"one waits longer\n", (long long)l->given_up, l->detect_ms);
	if (strcmp(l->autoscale, "off") != 0)
		fprintf(to, "autoscale %s: %s\n", l->autoscale,
			*l->autoscale_why ? l->autoscale_why : "measures");
	if (*l->plan_why)
		fprintf(to, "map: %.*s\n", (int)strcspn(l->plan_why, "\n"), l->plan_why);
	fprintf(to, "%6s  %-9s %8s %8s %9s %9s %9s %7s %7s %9s  %s\n", "worker", "state", "devices", "vnodes",
		"step ms", "wait ms", "vn ms", "speed",
		"redone", "pid", "address");
	for (uint32_t i = 0; i < l->nworkers; i++) {
		const struct hd_live_worker *w = &l->worker[i];
		fprintf(to, "%6lld  %-9s %8lld %8lld %9.4g %9.4g %9.4g %7.2f %7lld %9lld  %s\n",
			(long long)w->id, w->state, (long long)w->devices,
			(long long)w->virtual_nodes, w->step_ms, w->wait_ms, w->vn_ms, w->speed,
			(long long)w->redone, (long long)w->pid, w->address);
	}
}
