#include "driver/driver_int.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "sys/failpoint.h"
#include "checkpoint/ckpt.h"
#include "run/functions_bill.h"
#include "worker/elastic.h"

enum { BODY = 3584 };             /* of an event: with its head it fits a line of rundir.c */

void driver_fail(struct driver *c, enum hd_err err, const struct hd_diag *diag)
{
	if (!c->err) {
		c->err = err;
		c->diag = *diag;
	}
	c->over = true;
}

/* ---- events into the run's folder ---- */

/* The body of an event, made by a worker: only what is one object goes among the lines as it is. One that
 * begins with its step keeps it: an evaluation may come before this process counts the commit it is of. */
static bool put_body(struct driver *c, const char *kind, const char *text)
{
	static const char own[] = "{\"step\":";
	int64_t step = (int64_t)c->end.step;
	const struct hd_json *json = NULL;
	const char *body = text + 1;
	size_t n = strlen(text);
	struct hd_arena arena;
	char buf[BODY];

	hd_arena_init(&arena, 0);
	bool good = n < sizeof buf && text[n - 1] == '}' && !strpbrk(text, "\r\n") &&
		!hd_json_parse(&arena, "an event", text, n, &json, NULL) &&
		hd_json_kind(json) == HD_JSON_OBJECT;
	if (good && !strncmp(text, own, sizeof own - 1)) {
		good = !hd_json_get_i64(json, "step", 0, INT64_MAX, &step, NULL) && strchr(text, ',');
		body = good ? strchr(text, ',') + 1 : body;
	}
	hd_arena_finish(&arena);
	if (!good)
		return false;
	snprintf(buf, sizeof buf, "%.*s", (int)(text + n - 1 - body), body);
	hd_rundir_event(c->spec->dir, kind, (uint64_t)step, buf);
	return true;
}

void driver_note(struct driver *c, const char *kind, uint32_t worker, const char *text)
{
	char buf[BODY];
	struct hd_json_writer w;
	struct hd_text body;

	hd_recorder_note(c->recorder, kind, worker, c->end.step);
	if (c->spec->watch.note)
		c->spec->watch.note(c->spec->watch.user, kind, worker, text);
	if (*text == '{' && put_body(c, kind, text))
		return;
	hd_text_fixed(&body, buf, sizeof buf);
	hd_json_writer_init(&w, &body);
	hd_json_open_object(&w, NULL);
	if (worker != HD_NOBODY)
		hd_json_put_i64(&w, "worker", worker);
	if (*text)
		hd_json_put_text(&w, "text", strlen(text) <= HD_MSG_TEXT ? text :
			"what it says is too long to keep");
	hd_json_close(&w);
	if (body.full || body.len < 3)
		body.len = 2;
	body.at[body.len - 1] = 0;
	hd_rundir_event(c->spec->dir, kind, c->end.step, body.len > 2 ? body.at + 1 : "");
}

int driver_pid(const struct hd_co_worker_status *w)
{
	uint64_t pid = 0;

	return !hd_is_remote(w->worker) && w->host && !strncmp(w->host, "pid:", 4) &&
		!hd_num_u64(w->host + 4, INT32_MAX, &pid, NULL) ? (int)pid : 0;
}

#define ACT(name) static void do_##name(struct driver *c, const struct hd_co_action *a)

/* Deaths before a message, by its kind. */
static const uint8_t before[HD_MSG_NKINDS] = { [HD_MSG_ADMIT] = 1 + HD_FP_CO_ADMIT,
	[HD_MSG_SYNC] = 1 + HD_FP_CO_LEARN,
	[HD_MSG_PREPARE] = 1 + HD_FP_CO_PREPARE, [HD_MSG_DECIDE] = 1 + HD_FP_CO_DECIDE,
	[HD_MSG_FENCE] = 1 + HD_FP_CO_FENCE,
	[HD_MSG_VIEW] = 1 + HD_FP_CO_VIEW };

ACT(send)
{
	size_t len = 0;
	struct hd_diag diag = { "" };

	if (before[a->msg->kind])
		(void)HD_FAILPOINT_AT((enum hd_failpoint)(before[a->msg->kind] - 1));
	enum hd_err err = hd_msg_encode(a->msg, c->buf, HD_TELL_MAX, &len, &diag);

	if (!err)
		err = hd_hub_tell(&c->hub, a->worker, (uint32_t)a->msg->kind, 0, c->buf, len, &diag);
	if (err == HD_E_AGAIN)
		hd_hub_drop(&c->hub, a->worker, HD_CLOSE_DROPPED, "its queue is full");
	else if (err && err != HD_E_PEERLOST)
		driver_fail(c, err, &diag);
}

ACT(drop) { hd_hub_drop(&c->hub, a->worker, HD_CLOSE_DROPPED, a->text ? a->text : ""); }

ACT(store)
{
	struct hd_diag diag = { "" };
	int error = HD_FAILPOINT(STORE_BEFORE);
	enum hd_err err = error ? hd_fail_errno(&diag, error, "write a record", HD_DRIVER_STORE) :
		driver_keep_record(c, a->record, &diag);

	(void)HD_FAILPOINT(STORE_AFTER);
	/* it is tried again and again: nothing changes before it is written */
	if (err && !c->unstored++)
		driver_note(c, "warning", HD_NOBODY, diag.text);
	if (!err && c->unstored) {
		snprintf(diag.text, sizeof diag.text, "%s is written again, after %u times that it was not",
			HD_DRIVER_STORE, c->unstored);
		driver_note(c, "warning", HD_NOBODY, diag.text);
		c->unstored = 0;
	}
	driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_STORED, .serial = a->record->serial,
		.ok = !err });
}

static int pid_of(const struct driver *c, uint32_t worker)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) : 0;

	for (uint32_t i = 0; i < n; i++)
		if (w[i].worker == worker)
			return driver_pid(&w[i]);
	return 0;
}

/* The machine counts from the first time that it asks; those that are under way by then it cannot know of. */
ACT(spawn)
{
	uint32_t known = c->has_spawned ? 0 : driver_under_way(c) + c->presumed,
		owed = a->n < known ? a->n : known;

	c->has_spawned = true;
	c->to_start += c->spec->worker_argv ? a->n - owed : 0;
}

/* A stopped process of ours would lie about for ever: it is dead to the job, so it may be dead. */
ACT(end)
{
	struct hd_child *child = hd_local_find(&c->local, pid_of(c, a->worker));

	if (child && hd_proc_signal(&child->proc, HD_PROC_KILL, NULL))
		driver_note(c, "warning", a->worker, "its process could not be ended");
}

ACT(invalidate)
{
	struct hd_diag diag = { "" };
	uint32_t n = 0;
	char text[160];

	if (hd_ckpt_drop_after(c->spec->fs, c->spec->dir->path, a->step, &n, &diag))
		driver_fail(c, HD_E_INTEGRITY, &diag);   /* no run may start from them */
	if (!n)
		return;
	snprintf(text, sizeof text, "%u checkpoints of steps after %llu are removed: their bits may be wrong",
		n, (unsigned long long)a->step);
	driver_note(c, "distrust", HD_NOBODY, text);
}

ACT(restore)
{
	(void)a;
	driver_ledger_halted(c, HD_METER_REBUILDS);
	driver_restore(c);
}

/* paces are stored at most so often, and when shares change */
#define DRIVER_PACES_NS INT64_C(10000000000)

static void reshape(struct driver *c, uint64_t step)
{
	struct hd_reshape_said said;
	bool asks = hd_reshape_step(&c->reshape, step, hd_coordinator_view(c->machine), &said);

	if (said.kind[0])
		driver_note(c, said.kind, HD_NOBODY, said.text);
	int64_t now = hd_clock_now_ns(c->spec->clock);
	if (said.kind[0] || now - c->paces_ns > DRIVER_PACES_NS) {
		c->paces_ns = now;
		driver_keep_paces(c);
	}
	if (asks)
		driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_REPLAN });
}

static void replace_straggler(struct driver *c, uint64_t step)
{
	const struct hd_view *view = hd_coordinator_view(c->machine);
	const struct hd_replacement_now now = { .step = step, .left = c->spec->task->nsteps > c->end.step ?
		c->spec->task->nsteps - c->end.step : 0,
		.now_ns = hd_clock_now_ns(c->spec->clock), .detect_ns = c->detect_ns };
	struct hd_straggler_action action;
	struct hd_co_status status;

	hd_coordinator_status(c->machine, &status);
	if (!view || !c->straggler.rule || status.halting)
		return;
	hd_replacement_step(&c->straggler, &c->reshape, view, &now, &action);
	if (!action.act)
		return;
	driver_note(c, "straggler", action.worker, action.why);
	driver_trace_dump(c);             /* of what made it one */
	if (action.act == HD_STRAGGLER_REPLACE || action.act == HD_STRAGGLER_KEEP)
		driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_REPLACE, .worker = action.worker,
			.ok = action.act == HD_STRAGGLER_REPLACE });
}

/* Local members, and local workers that have loaded the job: a policy may count on them. */
static uint32_t could_be(const struct driver *c)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS), here = 0;

	for (uint32_t i = 0; i < n; i++)
		here += w[i].state >= HD_W_STANDBY && w[i].state <= HD_W_MEMBER && !hd_is_remote(w[i].worker);
	return here;
}

/* A policy asks as a user would; what it asks for is stored with the membership. */
static void autoscale(struct driver *c, const struct hd_step_news *n)
{
	const struct hd_view *view = hd_coordinator_view(c->machine);
	struct hd_co_status status;
	uint32_t guests = 0;
	bool said;

	hd_coordinator_status(c->machine, &status);
	for (uint32_t i = 0; view && i < view->nmembers; i++)
		guests += hd_is_remote(view->member[i]);
	const struct hd_scaler_now now = { .members = status.nmembers - guests, .target = status.asked,
		.guests = guests, .here = could_be(c),
		.step_ns = n->redone ? 0 : n->step_ns,
		.vn_ps = view ? hd_pace_median(&c->reshape.pace, view->member, view->nmembers) : 0,
		.left = c->spec->task->nsteps > c->end.step ? c->spec->task->nsteps - c->end.step : 0,
		.since_ns = c->spec->dir->began_ns, .now_ns = hd_clock_now_ns(c->spec->clock) };
	uint32_t size = status.halting ? 0 : hd_scaler_step(&c->scaler, &now, &said);
	if (!status.halting && said)
		driver_note(c, "autoscale", HD_NOBODY, c->scaler.why);
	if (!size)
		return;
	c->config.target = size;
	driver_guard_scales(c, size);
	driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_SCALE, .n = size });
}

ACT(commit)
{
	const struct hd_step_news *n = a->news;
	struct hd_co_status status;

	(void)HD_FAILPOINT(CO_COMMIT);
	driver_trace_commit(c, a->step);
	hd_coordinator_status(c->machine, &status);
	c->evaluating = false;
	c->end.step = a->step + 1;
	c->end.commits++;
	hd_local_passed(&c->local, a->step);
	c->spec->dir->membership = a->epoch;
	hd_ending_at_once(c->spec->word, c->spec->dir, c->end.step, c->spec->task->nsteps);
	if (!n) {
		c->unrecorded += a->step >= c->recorded;
		c->recorded = a->step >= c->recorded ? a->step + 1 : c->recorded;
		return;
	}
	c->recorded = a->step >= c->recorded ? a->step + 1 : c->recorded;
	driver_tell_unrecorded(c);
	c->end.has_digest |= n->has_digest;
	if (n->has_digest)
		c->end.digest = n->digest;
	driver_ledger_commit(c, a->step);
	c->end.redone += n->redone;
	c->loss = n->weight > 0 ? n->loss_sum / n->weight : 0;
	c->step_ms = (double)n->step_ns * 1e-6;
	c->wait_ms = (double)n->wait_ns * 1e-6;
	const struct hd_pace_total all = hd_pace_total(&c->reshape.pace, a->step,
		hd_coordinator_view(c->machine));
	struct hd_step_record r = { .step = a->step, .samples = n->samples, .epoch = n->data_epoch,
		.loss_sum = n->loss_sum, .weight = n->weight,
		.correct = n->correct, .gnorm = n->gnorm, .lr = (float)n->lr, .empty = n->empty,
		.skipped = n->skipped, .has_digest = n->has_digest,
		.digest = n->digest, .wait_data_ns = all.read_wait_ns, .nterms = n->nterms };
	memcpy(r.term_sum, n->term_sum, sizeof r.term_sum);
	const struct hd_step_times t = { .step_ms = c->step_ms, .wait_ms = c->wait_ms,
		.workers = status.nmembers, .membership = a->epoch,
		.redone = n->redone, .bytes_out = all.bytes_out, .preempted = all.preempted,
		.inverted = all.inverted, .peers_ms = c->wait_ms };
	hd_rundir_stepped(c->spec->dir, &r, &t, a->epoch);
	if (a->step >= c->had_lines &&
		c->end.step % (uint64_t)hd_job_int(c->spec->task->job, HD_JOB_METRICS_EVERY) == 0)
		hd_rundir_metrics(c->spec->dir, &r, &t, a->epoch);
	if (c->spec->watch.step)
		c->spec->watch.step(c->spec->watch.user, n, a->step, hd_coordinator_view(c->machine));
	reshape(c, a->step);
	replace_straggler(c, a->step);
	autoscale(c, n);
	driver_reading_step(c);
	driver_redraw(c, a->step, n);
	driver_saving_step(c);
	driver_guard_step(c, a->step, !n->redone);
}

/* Given up because of the time that went by, and it lives: a machine with too much to do looks like a
 * worker that is gone. */
static void look_at_lost(struct driver *c, uint32_t worker, const char *why)
{
	static const char *const by_time[] = { "nothing was heard of it", "it makes no progress",
		"its peers do not hear it", "it does not hear its peers",
		"it did not come back under its id", "it did not prepare for the next view",
		"it did not tell its status" };
	int pid = pid_of(c, worker);
	char text[200];

	c->sweep = true;
	for (size_t i = 0; i < sizeof by_time / sizeof *by_time; i++)
		if (!strcmp(why, by_time[i]) && hd_pid_lives(pid)) {
			c->end.given_up++;
			snprintf(text, sizeof text,
				"its process %d lives: this machine is busier than workers.detect (%lld ms) "
				"allows for; a larger one waits "
				"longer (so far: %u)", pid, (long long)(c->detect_ns / 1000000),
				c->end.given_up);
			driver_note(c, "given_up", worker, text);
		}
}

/* Of a worker of another machine; what fails is said once. */
static void keep_bill(struct driver *c, uint32_t worker, const char *text)
{
	const struct hd_json *json = NULL;
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	const char *note = text;

	hd_arena_init(&arena, 0);
	if (!hd_json_parse(&arena, "a bill", text, strlen(text), &json, NULL) &&
		hd_json_kind(json) == HD_JSON_OBJECT && hd_json_find(json, "text") &&
		hd_json_as_text(hd_json_find(json, "text"), &note, NULL))
		note = text;
	if (hd_functions_bill_put_far(c->spec->fs, c->spec->dir->path, note, &diag) && !c->bill_unkept) {
		c->bill_unkept = true;
		driver_note(c, "warning", worker, diag.text);
	}
	hd_arena_finish(&arena);
}

void driver_noted(struct driver *c, const char *name, uint32_t worker, const char *text)
{
	if (!strcmp(name, HD_NOTE_BILL)) {
		keep_bill(c, worker, text);
		return;
	}
	if (driver_reading_noted(c, name, worker, text))
		return;
	/* shown by status only; its result is an event */
	if (!strcmp(name, HD_NOTE_EVALUATING)) {
		c->evaluating = true;
		return;
	}
	c->evaluating &= strcmp(name, "eval") != 0;
	driver_note(c, name, worker, text);
	if (!strcmp(name, HD_NOTE_NOTICE))
		driver_noticed(c, worker, text);
	driver_guard_noted(c, name, worker);
	driver_saving_noted(c, name, text);
	const bool few = driver_fewer_noted(c, name);
	if (!few && !strcmp(name, HD_NOTE_REFUSED) && !driver_guard_refused(c))
		driver_redraw_refused(c);
	if (!strcmp(name, "checkpoint_done"))
		hd_rundir_sync(c->spec->dir);
	if (!strcmp(name, "lost") || !strcmp(name, "resync"))
		driver_ledger_halted(c, HD_METER_PAUSES);
	if (!strcmp(name, "lost"))
		look_at_lost(c, worker, text);
	if (!strcmp(name, "view"))
		driver_ledger_halted(c, HD_METER_STEPS);
	if (!strcmp(name, "done"))
		driver_ledger_rest(c);
}

ACT(note) { driver_noted(c, a->name, a->worker, a->text ? a->text : ""); }

ACT(exit)
{
	c->exit_code = a->code;
	snprintf(c->exit_text, sizeof c->exit_text, "%s", a->text ? a->text : "");
	c->over = true;
}

ACT(spent)
{
	if (c->spec->redraw)
		hd_spent_take(&c->spec->redraw->said, a->worker, a->epoch, &a->msg->spent);
}

static void (*const act[HD_CO_DO_NKINDS])(struct driver *c, const struct hd_co_action *a) = {
	[HD_CO_DO_SEND] = do_send, [HD_CO_DO_DROP] = do_drop, [HD_CO_DO_STORE] = do_store,
		[HD_CO_DO_SPAWN] = do_spawn, [HD_CO_DO_END] = do_end,
	[HD_CO_DO_RESTORE] = do_restore, [HD_CO_DO_INVALIDATE] = do_invalidate, [HD_CO_DO_COMMIT] = do_commit,
	[HD_CO_DO_NOTE] = do_note, [HD_CO_DO_SPENT] = do_spent, [HD_CO_DO_EXIT] = do_exit,
};

void driver_feed(struct driver *c, const struct hd_co_event *event)
{
	if (!c->machine || c->nqueued == HD_DRIVER_EVENTS)
		return;                   /* the machine asks again for what it needs */
	c->queue[(c->first + c->nqueued++) % HD_DRIVER_EVENTS] = *event;
	if (c->stepping)
		return;
	c->stepping = true;
	while (c->nqueued && !c->over) {
		const struct hd_co_event next = c->queue[c->first];
		c->first = (c->first + 1) % HD_DRIVER_EVENTS;
		c->nqueued--;
		struct hd_co_actions done = hd_coordinator_step(c->machine, &next,
			hd_clock_now_ns(c->spec->clock));
		driver_keep_plan(c);     /* before the actions: a commit of the view may be one of them */
		for (size_t i = 0; i < done.n; i++)
			act[done.at[i].kind](c, &done.at[i]);
	}
	c->stepping = false;
}
