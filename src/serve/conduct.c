#include "serve/conduct.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/le.h"
#include "base/num.h"
#include "sys/failpoint.h"
#include "sys/thread.h"
#include "wire/hub.h"
#include "wire/patience.h"
#include "exec/ckpt.h"
#include "exec/elastic.h"
#include "exec/member.h"
#include "serve/control.h"
#include "serve/crew.h"
#include "serve/reshape.h"
#include "serve/scaler.h"
#include "serve/store.h"

enum { HD_CONDUCT_EVENTS = 256, HD_CONDUCT_OTHERS = 32,
       HD_RECORD_MEMBERSHIP = 1, HD_RECORD_KERNELS = 2, HD_RECORD_BEGAN = 3, HD_RECORD_POLICY = 4,
       HD_CONDUCT_BAD_STARTS = 6, HD_CONDUCT_BODY = 3584,       /* of an event: with its head it fits a line of rundir.c */
       HD_RECORD_BYTES = 8 + 5 * 4 + 2 + HD_MAX_MEMBERS * 4 };
#define HD_CONDUCT_LAST_NS INT64_C(300000000)
#define HD_CREW_GRACE_NS INT64_C(3000000000)

struct conduct {
	const struct hd_conduct_spec *spec;
	struct hd_loop loop;
	struct hd_net net;
	struct hd_hub hub;
	struct hd_control control;
	struct hd_store *store;
	struct hd_host host;
	struct hd_crew crew;
	uint32_t to_start, started_before;        /* workers that are wanted and not started yet; started before there was a machine */
	struct hd_coordinator *machine;   /* NULL: the kernels of the job are not known yet */
	struct hd_co_config config;
	struct hd_reshape reshape;
	struct hd_scaler scaler;
	struct hd_arena messages;
	uint8_t *room;
	struct hd_co_event queue[HD_CONDUCT_EVENTS];
	uint32_t first, nqueued;
	bool stepping, over, wished;
	int64_t detect_ns;
	struct hd_conduct_end end;
	double loss, step_ms, wait_ms;
	uint64_t unrecorded, recorded;    /* steps in a row, up to now, of whom no record is left; up to which a coordinator before this one had them */
	char address[HD_ADDR_CAP];        /* where other machines join; "": nowhere */
	uint32_t exit_code;
	char exit_text[HD_MSG_TEXT + 1];
	enum hd_err err;
	struct hd_diag diag;
};

static void fail(struct conduct *c, enum hd_err err, const struct hd_diag *diag)
{
	if (!c->err) {
		c->err = err;
		c->diag = *diag;
	}
	c->over = true;
}

/* ---- the record, as bytes ---- */

static void record_put(const struct hd_co_record *r, uint8_t bytes[HD_RECORD_BYTES])
{
	memset(bytes, 0, HD_RECORD_BYTES);
	hd_put64(bytes, r->serial);
	hd_put32(bytes + 8, r->term);
	hd_put32(bytes + 12, r->epoch);
	hd_put32(bytes + 16, r->next_worker);
	hd_put32(bytes + 20, r->target);
	hd_put32(bytes + 24, r->nmembers);
	bytes[28] = r->started;
	bytes[29] = r->halting;
	for (uint32_t i = 0; i < r->nmembers; i++)
		hd_put32(bytes + 30 + 4 * (size_t)i, r->member[i]);
}

static enum hd_err record_get(struct hd_co_record *r, const uint8_t *bytes, size_t len, struct hd_diag *diag)
{
	if (len != HD_RECORD_BYTES || hd_get32(bytes + 24) > HD_MAX_MEMBERS || bytes[28] > 1 || bytes[29] > 1)
		return hd_fail(diag, HD_E_INTEGRITY, "the coordinator's record is not of this program");
	*r = (struct hd_co_record){ .serial = hd_get64(bytes), .term = hd_get32(bytes + 8), .epoch = hd_get32(bytes + 12),
		.next_worker = hd_get32(bytes + 16), .target = hd_get32(bytes + 20), .nmembers = hd_get32(bytes + 24), .started = bytes[28],
		.halting = bytes[29] };
	for (uint32_t i = 0; i < r->nmembers; i++)
		r->member[i] = hd_get32(bytes + 30 + 4 * (size_t)i);
	return HD_OK;
}

/* ---- what the run's folder is told ---- */

/* The body of an event, made by a worker: only what is one object goes among the lines as it is. */
static bool put_body(struct conduct *c, const char *kind, const char *text)
{
	size_t n = strlen(text);
	const struct hd_json *json;
	struct hd_arena arena;
	char room[HD_CONDUCT_BODY];

	hd_arena_init(&arena, 0);
	bool good = n < sizeof room && text[n - 1] == '}' && !strpbrk(text, "\r\n") && !hd_json_parse(&arena, "an event", text, n, &json, NULL) &&
		hd_json_kind(json) == HD_JSON_OBJECT;
	hd_arena_finish(&arena);
	if (!good)
		return false;
	snprintf(room, sizeof room, "%.*s", (int)n - 2, text + 1);
	hd_rundir_event(c->spec->dir, kind, c->end.step, room);
	return true;
}

static void note(struct conduct *c, const char *kind, uint32_t worker, const char *text)
{
	char room[HD_CONDUCT_BODY];
	struct hd_json_writer w;
	struct hd_text body;

	if (c->spec->watch.note)
		c->spec->watch.note(c->spec->watch.user, kind, worker, text);
	if (*text == '{' && put_body(c, kind, text))
		return;
	hd_text_fixed(&body, room, sizeof room);
	hd_json_writer_init(&w, &body);
	hd_json_open_object(&w, NULL);
	if (worker != HD_NOBODY)
		hd_json_put_i64(&w, "worker", worker);
	if (*text)
		hd_json_put_text(&w, "text", strlen(text) <= HD_MSG_TEXT ? text : "what it says is too long to keep");
	hd_json_close(&w);
	if (body.full || body.len < 3)
		body.len = 2;
	body.at[body.len - 1] = 0;
	hd_rundir_event(c->spec->dir, kind, c->end.step, body.len > 2 ? body.at + 1 : "");
}

static void feed(struct conduct *c, const struct hd_co_event *event);

/* ---- actions ---- */

#define ACT(name) static void do_##name(struct conduct *c, const struct hd_co_action *a)

/* Deaths before a message, by its kind. */
static const uint8_t before[HD_MSG_NKINDS] = { [HD_MSG_ADMIT] = 1 + HD_FP_CO_ADMIT, [HD_MSG_LEARN] = 1 + HD_FP_CO_LEARN,
	[HD_MSG_PREPARE] = 1 + HD_FP_CO_PREPARE, [HD_MSG_DECIDE] = 1 + HD_FP_CO_DECIDE, [HD_MSG_FENCE] = 1 + HD_FP_CO_FENCE,
	[HD_MSG_VIEW] = 1 + HD_FP_CO_VIEW };

ACT(send)
{
	size_t len = 0;
	struct hd_diag diag = { "" };

	if (before[a->msg->kind])
		(void)HD_FAILPOINT_AT((enum hd_failpoint)(before[a->msg->kind] - 1));
	enum hd_err err = hd_msg_encode(a->msg, c->room, HD_TELL_MAX, &len, &diag);

	if (!err)
		err = hd_hub_tell(&c->hub, a->worker, (uint32_t)a->msg->kind, 0, c->room, len, &diag);
	if (err == HD_E_AGAIN)
		hd_hub_drop(&c->hub, a->worker, HD_CLOSE_DROPPED, "its queue is full");
	else if (err && err != HD_E_PEERLOST)
		fail(c, err, &diag);
}

ACT(drop) { hd_hub_drop(&c->hub, a->worker, HD_CLOSE_DROPPED, a->text ? a->text : ""); }

ACT(store)
{
	uint8_t bytes[HD_RECORD_BYTES];
	struct hd_diag diag = { "" };

	record_put(a->record, bytes);
	int error = HD_FAILPOINT(STORE_BEFORE);
	enum hd_err err = error ? hd_fail_errno(&diag, error, "write a record", "store.sqlite")
		: hd_store_put(c->store, HD_RECORD_MEMBERSHIP, bytes, sizeof bytes, &diag);
	(void)HD_FAILPOINT(STORE_AFTER);
	if (err)
		note(c, "warning", HD_NOBODY, diag.text);
	feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_STORED, .serial = a->record->serial, .ok = !err });
}

/* Workers call themselves "pid:123"; that of a remote one is of its own machine, and names nobody here. */
static int pid_here(const struct hd_co_worker_status *w)
{
	uint64_t pid = 0;

	return !hd_is_remote(w->worker) && w->host && !strncmp(w->host, "pid:", 4) && !hd_num_u64(w->host + 4, INT32_MAX, &pid, NULL) ? (int)pid : 0;
}

static int pid_of(const struct conduct *c, uint32_t worker)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) : 0;

	for (uint32_t i = 0; i < n; i++)
		if (w[i].worker == worker)
			return pid_here(&w[i]);
	return 0;
}

/* The machine counts from its first worker on; those that were started before are under way already. */
ACT(spawn)
{
	uint32_t owed = a->n < c->started_before ? a->n : c->started_before;

	c->started_before -= owed;
	c->to_start += c->spec->worker_argv ? a->n - owed : 0;
}

/* A stopped process of ours would lie about for ever: it is dead to the job, so it may be dead. */
ACT(end)
{
	struct hd_hand *hand = hd_crew_find(&c->crew, pid_of(c, a->worker));

	if (hand && hd_proc_signal(&hand->proc, HD_PROC_KILL, NULL))
		note(c, "warning", a->worker, "its process could not be ended");
}

ACT(restore)
{
	struct hd_ckpt_info info;
	uint64_t step = HD_NO_STEP;

	(void)a;
	if (!hd_ckpt_find(c->spec->fs, c->spec->dir->path, UINT64_MAX, &info, NULL, NULL, NULL))
		step = info.step;
	else if (c->end.commits == 0 || !c->config.record.started || c->spec->step == 0)
		step = c->spec->step;     /* nothing was saved yet: from where the run began */
	feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_RESTORED, .step = step });
}

/* Members keep the records of their last steps for a coordinator that is to come; of more there is no line. */
static void tell_unrecorded(struct conduct *c)
{
	char text[160];

	if (!c->unrecorded)
		return;
	c->end.unrecorded += c->unrecorded;
	snprintf(text, sizeof text, "%llu steps have no line in metrics.ndjson: nobody coordinated them, and members keep the records of their last %d",
		(unsigned long long)c->unrecorded, HD_MEMBER_NEWS);
	c->unrecorded = 0;
	note(c, "unrecorded", HD_NOBODY, text);
}

static void reshape(struct conduct *c, uint64_t step)
{
	struct hd_reshape_said said;
	bool asks = hd_reshape_step(&c->reshape, step, hd_coordinator_view(c->machine), &said);

	if (said.kind[0])
		note(c, said.kind, HD_NOBODY, said.text);
	if (asks)
		feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_REPLAN });
}

/* Local members, and those who have loaded the job: a policy may count on them. */
static uint32_t could_be(const struct conduct *c)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS), here = 0;

	for (uint32_t i = 0; i < n; i++)
		here += w[i].state >= HD_W_STANDBY && w[i].state <= HD_W_MEMBER && !hd_is_remote(w[i].worker);
	return here;
}

/* A policy asks as a user would; what it asks for is stored with the membership. */
static void autoscale(struct conduct *c, const struct hd_step_news *n)
{
	const struct hd_view *view = hd_coordinator_view(c->machine);
	struct hd_co_status status;
	uint32_t guests = 0;
	bool said;

	hd_coordinator_status(c->machine, &status);
	for (uint32_t i = 0; view && i < view->nmembers; i++)
		guests += hd_is_remote(view->member[i]);
	const struct hd_scaler_now now = { .members = status.nmembers - guests, .target = status.asked, .guests = guests, .here = could_be(c),
		.step_ns = n->redone ? 0 : n->step_ns,
		.vn_ps = view ? hd_pace_median(&c->reshape.pace, view->member, view->nmembers) : 0,
		.left = c->spec->task->nsteps > c->end.step ? c->spec->task->nsteps - c->end.step : 0,
		.since_ns = c->spec->dir->began_ns, .now_ns = hd_clock_now_ns(c->spec->clock) };
	uint32_t size = status.halting ? 0 : hd_scaler_step(&c->scaler, &now, &said);
	if (!status.halting && said)
		note(c, "autoscale", HD_NOBODY, c->scaler.why);
	if (!size)
		return;
	c->config.target = size;
	feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_SCALE, .n = size });
}

ACT(commit)
{
	const struct hd_step_news *n = a->news;
	struct hd_co_status status;

	(void)HD_FAILPOINT(CO_COMMIT);
	hd_coordinator_status(c->machine, &status);
	c->end.step = a->step + 1;
	c->end.commits++;
	c->spec->dir->membership = a->epoch;
	if (!n) {
		c->unrecorded += a->step >= c->recorded;
		return;
	}
	tell_unrecorded(c);
	c->end.has_digest |= n->has_digest;
	if (n->has_digest)
		c->end.digest = n->digest;
	c->end.redone += n->redone;
	c->loss = n->weight > 0 ? n->loss_sum / n->weight : 0;
	c->step_ms = (double)n->step_ns * 1e-6;
	c->wait_ms = (double)n->wait_ns * 1e-6;
	const struct hd_step_record r = { .step = a->step, .samples = n->samples, .epoch = n->data_epoch, .loss_sum = n->loss_sum, .weight = n->weight,
		.correct = n->correct, .gnorm = n->gnorm, .lr = (float)n->lr, .empty = n->empty, .skipped = n->skipped, .has_digest = n->has_digest,
		.digest = n->digest };
	const struct hd_step_times t = { .step_ms = c->step_ms, .wait_ms = c->wait_ms, .workers = status.nmembers, .membership = a->epoch,
		.redone = n->redone };
	if (c->end.step % (uint64_t)hd_job_int(c->spec->task->job, HD_JOB_METRICS_EVERY) == 0)
		hd_rundir_metrics(c->spec->dir, &r, &t, a->epoch);
	if (c->spec->watch.step)
		c->spec->watch.step(c->spec->watch.user, n, a->step, hd_coordinator_view(c->machine));
	reshape(c, a->step);
	autoscale(c, n);
}

ACT(note) { note(c, a->name, a->worker, a->text ? a->text : ""); }

ACT(exit)
{
	c->exit_code = a->code;
	snprintf(c->exit_text, sizeof c->exit_text, "%s", a->text ? a->text : "");
	c->over = true;
}

static void (*const act[HD_CO_DO_NKINDS])(struct conduct *c, const struct hd_co_action *a) = {
	[HD_CO_DO_SEND] = do_send, [HD_CO_DO_DROP] = do_drop, [HD_CO_DO_STORE] = do_store, [HD_CO_DO_SPAWN] = do_spawn, [HD_CO_DO_END] = do_end,
	[HD_CO_DO_RESTORE] = do_restore, [HD_CO_DO_COMMIT] = do_commit, [HD_CO_DO_NOTE] = do_note, [HD_CO_DO_EXIT] = do_exit,
};

static void feed(struct conduct *c, const struct hd_co_event *event)
{
	if (!c->machine || c->nqueued == HD_CONDUCT_EVENTS)
		return;                   /* the machine asks again for what it needs */
	c->queue[(c->first + c->nqueued++) % HD_CONDUCT_EVENTS] = *event;
	if (c->stepping)
		return;
	c->stepping = true;
	while (c->nqueued && !c->over) {
		const struct hd_co_event next = c->queue[c->first];
		c->first = (c->first + 1) % HD_CONDUCT_EVENTS;
		c->nqueued--;
		struct hd_co_actions done = hd_coordinator_step(c->machine, &next, hd_clock_now_ns(c->spec->clock));
		for (size_t i = 0; i < done.n; i++)
			act[done.at[i].kind](c, &done.at[i]);
	}
	c->stepping = false;
}

/* ---- the wire ---- */

static bool make_machine(struct conduct *c)
{
	struct hd_diag diag = { "" };
	enum hd_err err = hd_coordinator_create(&c->machine, &c->config, hd_clock_now_ns(c->spec->clock), &diag);

	if (err)
		fail(c, err, &diag);
	return !err;
}

/* The kernels of the first who joins are the job's: kept before anything else of the membership is. */
static bool begin(struct conduct *c, const struct hd_msg *msg)
{
	struct hd_diag diag = { "" };
	enum hd_err err = HD_OK;

	if (c->machine)
		return true;
	if (msg->kind != HD_MSG_JOIN)
		return false;
	if (!c->config.record.serial) {
		c->config.kernels = msg->join.kernels;
		err = hd_store_put(c->store, HD_RECORD_KERNELS, &c->config.kernels, sizeof c->config.kernels, &diag);
	}
	if (err)
		fail(c, err, &diag);
	c->started_before = c->crew.n + c->to_start ? c->crew.n + c->to_start - 1 : 0;
	return !err && make_machine(c);
}

/* Nobody calls. Where members were, and this process was not told how many to start, the machine begins without them and asks for
 * others; else somebody must join before workers.min_wait is over, or what a start takes where that is more. */
static void look_for_a_beginning(struct conduct *c, int64_t waited_ns)
{
	int64_t start_ns = HD_PATIENCE_NS(START, c->detect_ns), most_ns = c->config.min_wait_ns > start_ns ? c->config.min_wait_ns : start_ns;
	struct hd_diag diag = { "" };

	if (c->machine || c->over)
		return;
	if (c->config.record.started && !c->spec->target && waited_ns > HD_PATIENCE_NS(CALLED_BACK, c->detect_ns))
		(void)make_machine(c);
	else if (waited_ns > most_ns)
		fail(c, hd_fail(&diag, HD_E_WORKERS, "nobody joined within workers.min_wait: %s/log says what workers met", c->spec->dir->path), &diag);
}

static void tell_job(struct conduct *c, uint32_t worker)
{
	const struct hd_task *task = c->spec->task;
	const char *text = c->spec->job_text ? c->spec->job_text : "", *folder = c->spec->job_folder ? c->spec->job_folder : "";
	const struct hd_msg msg = { .kind = HD_MSG_OFFER, .offer = { .job = task->job_hash, .data = task->data->hash, .data_count = task->data->count,
		.ntext = (uint32_t)strcspn(text, "\n"), .text = text, .nfolder = (uint32_t)strlen(folder), .folder = folder } };

	size_t len = 0;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_msg_encode(&msg, c->room, HD_TELL_MAX, &len, &diag);

	if (!err)
		err = hd_hub_tell(&c->hub, worker, HD_MSG_OFFER, 0, c->room, len, &diag);
	if (err && err != HD_E_PEERLOST)          /* whoever asks can ask again; the run goes on */
		hd_hub_drop(&c->hub, worker, HD_CLOSE_DROPPED, diag.text);
}

static void on_message(void *self, const struct hd_message *m)
{
	struct conduct *c = self;
	struct hd_diag diag = { "" };
	bool remote = hd_hub_is_away(&c->hub, m->worker);
	struct hd_msg msg;

	hd_arena_reset(&c->messages);
	enum hd_err err = hd_msg_decode(&msg, m->id, m->bytes, m->len, &c->messages, &diag);
	if (err == HD_E_PROTOCOL)
		hd_hub_drop(&c->hub, m->worker, HD_CLOSE_FRAME, diag.text);
	else if (err)
		fail(c, err, &diag);
	else if (msg.kind == HD_MSG_ASK)
		tell_job(c, m->worker);
	else if (remote && !c->machine && !c->config.record.started)
		hd_hub_drop(&c->hub, m->worker, HD_CLOSE_DROPPED, "the run has not begun; call again");
	else if (begin(c, &msg) && msg.kind == HD_MSG_SEAL && msg.seal.ran)
		hd_reshape_seal(&c->reshape, m->worker, msg.seal.step, &msg.seal.news, hd_coordinator_view(c->machine));
	if (!err && c->machine)
		feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_MESSAGE, .worker = m->worker, .msg = &msg, .remote = remote });
}

static void on_up(void *self, const struct hd_peer_info *peer)
{
	(void)self;
	(void)peer;                       /* it says JOIN */
}

static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	(void)why;
	(void)text;
	feed(self, &(struct hd_co_event){ .kind = HD_CO_IN_LOST, .worker = worker, .why = HD_CLOSED });
}

static void on_suspect(void *self, uint32_t worker, int64_t silent_ms)
{
	feed(self, &(struct hd_co_event){ .kind = HD_CO_IN_LOST, .worker = worker, .why = silent_ms ? HD_SILENT : HD_HEARD });
}

/* No transfer ends here. */
static void on_arrived(void *self, const struct hd_arrival *arrival) { (void)self; (void)arrival; }
static void on_sent(void *self, const struct hd_sent *sent) { (void)self; (void)sent; }
static void on_epoch(void *self, uint32_t worker, uint32_t epoch) { (void)self; (void)worker; (void)epoch; }
static void on_probed(void *self, const struct hd_probe *probe) { (void)self; (void)probe; }

/* ---- the crew ---- */

/* One that was to come will not. Before there is a machine nobody else counts the missing ones; it asks for others itself. */
static void unspawned(struct conduct *c)
{
	if (c->machine)
		feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_UNSPAWNED, .n = 1 });
	else
		c->to_start++;
}

/* Nobody ever joined, and those who were started end at once with a reason of their own: so would all others. */
static bool is_hopeless(const struct conduct *c) { return !c->machine && c->crew.bad_starts >= HD_CONDUCT_BAD_STARTS; }

static void give_up(struct conduct *c, uint32_t number, int code)
{
	struct hd_diag diag = { "" };
	enum hd_err err = hd_err_of_exit(code);

	bool for_all = err == HD_E_INVAL || err == HD_E_INPUT || err == HD_E_INTEGRITY || err == HD_E_REFUSED;

	if (!is_hopeless(c) || !for_all)
		return;
	err = hd_fail(&diag, err, "workers end before they join, %u in a row, the last with exit code %d: %s/log/hand-%u.log says why", c->crew.bad_starts,
		code, c->spec->dir->path, number);
	fail(c, err, &diag);
}

static void look_at_crew(struct conduct *c)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t number;
	int pid, code;

	while (hd_crew_ended(&c->crew, &number, &pid, &code)) {
		char text[80];
		uint32_t worker = HD_NOBODY, n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) : 0;
		for (uint32_t i = 0; i < n; i++)
			if (pid_here(&w[i]) == pid)
				worker = w[i].worker;
		snprintf(text, sizeof text, "process %d ended with exit code %d", pid, code);
		note(c, "process_ended", worker, text);
		if (worker != HD_NOBODY)
			feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_LOST, .worker = worker, .why = HD_EXITED });
		else
			unspawned(c);
		if (worker == HD_NOBODY)
			give_up(c, number, code);
	}
	while (c->to_start && !c->over) {
		struct hd_diag diag = { "" };
		enum hd_err err = hd_crew_start(&c->crew, NULL, &diag);
		if (err == HD_E_AGAIN)
			break;
		c->to_start--;
		if (err) {
			note(c, "unspawned", HD_NOBODY, diag.text);
			unspawned(c);
			if (is_hopeless(c))
				fail(c, err, &diag);
		}
	}
}

/* ---- users ---- */

/* Turns the autoscaler; another coordinator of this run goes on with it. */
static enum hd_err keep_policy(struct conduct *c, const char *policy, struct hd_diag *diag)
{
	const char *was = c->scaler.policy;
	enum hd_err err = hd_scaler_turn(&c->scaler, policy, diag);

	if (err || was == c->scaler.policy)
		return err;
	note(c, "autoscale", HD_NOBODY, policy ? policy : "off: a number was asked for");
	return hd_store_put(c->store, HD_RECORD_POLICY, policy ? policy : "off", strlen(policy ? policy : "off"), diag);
}

static enum hd_err turn_auto(struct conduct *c, const struct hd_json *ask, const struct hd_co_status *status, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	const char *policy = "curve";
	enum hd_err err = hd_json_find(ask, "policy") ? hd_json_get_text(ask, "policy", &policy, diag) : HD_OK;

	if (!err)
		err = keep_policy(c, policy, diag);
	if (err)
		return err;
	hd_json_put_i64(w, "asked", status->asked);
	hd_json_put_i64(w, "target", status->target);
	hd_json_put_i64(w, "members", status->nmembers);
	return HD_OK;
}

static enum hd_err answer_scale(struct conduct *c, const struct hd_json *ask, struct hd_json_writer *w, struct hd_diag *diag)
{
	struct hd_co_status status = { .asked = c->config.target, .target = c->config.target };
	int64_t n = 0;

	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	if (hd_json_find(ask, "auto"))
		return turn_auto(c, ask, &status, w, diag);
	enum hd_err err = hd_json_find(ask, "by") ? hd_json_get_i64(ask, "by", INT32_MIN, INT32_MAX, &n, diag)
		: hd_json_get_i64(ask, "workers", 1, INT32_MAX, &n, diag);
	if (err)
		return err;
	n += hd_json_find(ask, "by") ? (int64_t)status.asked : 0;
	if (n < (int64_t)c->config.min || n > (int64_t)c->config.max)
		return hd_fail(diag, HD_E_INVAL, "%lld workers: this job takes from %u (workers.min) to %u (workers.max, or one a virtual node)", (long long)n,
			c->config.min, c->config.max);
	c->config.target = (uint32_t)n;
	err = keep_policy(c, NULL, diag);         /* a number is a user's word */
	if (err)
		return err;
	feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_SCALE, .n = (uint32_t)n });
	status.target = (uint32_t)n;
	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	hd_json_put_i64(w, "asked", n);
	hd_json_put_i64(w, "target", status.target);
	hd_json_put_i64(w, "members", status.nmembers);
	return HD_OK;
}

static const char *state_of(const struct conduct *c, const struct hd_co_status *s)
{
	return !c->machine ? "starting" : s->halting ? "stopping" : s->holding ? "waiting" : s->nmembers ? "running" : "starting";
}

/* A worker's own times of its last step; 0 before it has sealed one. */
static void put_pace(const struct conduct *c, uint32_t worker, struct hd_json_writer *w)
{
	static const struct hd_pace_worker none;
	const struct hd_pace_worker *p = hd_pace_of(&c->reshape.pace, worker);

	p = p ? p : &none;
	const struct hd_pace_step *s = hd_pace_last(p);
	hd_json_put_f64(w, "step_ms", (double)s->step_ns * 1e-6);
	hd_json_put_f64(w, "wait_ms", (double)s->wait_ns * 1e-6);
	hd_json_put_f64(w, "compute_ms", (double)s->compute_ns * 1e-6);
	hd_json_put_f64(w, "vn_ms", (double)p->vn_ps * 1e-9);
	hd_json_put_f64(w, "speed", c->machine ? hd_pace_speed(&c->reshape.pace, worker, hd_coordinator_view(c->machine)) : 0);
	hd_json_put_i64(w, "redone_vn", (int64_t)p->redone);
}

/* Connections that ended by a fault of the other side, by reason. */
static void put_refusals(struct conduct *c, struct hd_json_writer *w)
{
	struct hd_hub_stats stats;

	hd_hub_stats(&c->hub, &stats);
	hd_json_open_object(w, "refused");
	for (uint32_t why = 1; why < HD_CLOSE_COUNT; why++)
		if (stats.closed[why] && hd_close_blame((enum hd_close)why) == HD_BLAME_PEER)
			hd_json_put_i64(w, hd_close_name((enum hd_close)why), (int64_t)stats.closed[why]);
	hd_json_close(w);
}

static enum hd_err answer_status(struct conduct *c, const struct hd_json *ask, struct hd_json_writer *w, struct hd_diag *diag)
{
	struct hd_co_worker_status worker[HD_MAX_WORKERS];
	struct hd_co_status s = { .asked = c->config.target, .target = c->config.target };
	struct hd_proc_self self;
	uint32_t n = 0;

	(void)ask;
	(void)diag;
	if (c->machine) {
		hd_coordinator_status(c->machine, &s);
		n = hd_coordinator_workers(c->machine, worker, HD_MAX_WORKERS);
	}
	hd_proc_self(&self);
	hd_json_put_i64(w, "pid", self.pid);
	hd_json_put_text(w, "name", hd_job_text(c->spec->task->job, HD_JOB_NAME));
	hd_json_put_text(w, "state", state_of(c, &s));
	hd_json_put_text(w, "why", s.holding ? "fewer workers than workers.min" : s.changing ? "membership is changing" : "");
	hd_json_put_i64(w, "step", (int64_t)c->end.step);
	hd_json_put_i64(w, "steps", (int64_t)c->spec->task->nsteps);
	hd_json_put_f64(w, "loss", c->loss);
	hd_json_put_f64(w, "step_ms", c->step_ms);
	hd_json_put_f64(w, "wait_ms", c->wait_ms);
	hd_json_put_i64(w, "membership", s.epoch);
	hd_json_put_i64(w, "term", s.term);
	hd_json_put_i64(w, "plan", s.epoch);
	hd_json_put_i64(w, "members", s.nmembers);
	hd_json_put_i64(w, "target", s.target);
	hd_json_put_i64(w, "asked", s.asked);
	hd_json_put_i64(w, "virtual_nodes", c->spec->task->job->nvns);
	hd_json_put_text(w, "autoscale", c->scaler.policy ? c->scaler.policy : "off");
	hd_json_put_text(w, "autoscale_why", c->scaler.why);
	hd_json_put_text(w, "plan_why", c->reshape.used.why);
	hd_json_put_f64(w, "predicted_ms", (double)c->reshape.used.predicted_ps * 1e-9);
	hd_json_put_i64(w, "unrecorded", (int64_t)(c->end.unrecorded + c->unrecorded));
	hd_json_put_text(w, "listen", c->address);
	put_refusals(c, w);
	hd_json_open_array(w, "workers");
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_co_worker_status *p = &worker[i];
		if (p->state == HD_W_FREE || p->state == HD_W_OUT)
			continue;
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "id", p->worker);
		hd_json_put_bool(w, "remote", hd_is_remote(p->worker));
		hd_json_put_text(w, "state", hd_co_worker_state_name(p->state));
		hd_json_put_i64(w, "pid", pid_here(p));
		hd_json_put_i64(w, "devices", p->ndevices);
		hd_json_put_i64(w, "virtual_nodes", p->nvns);
		put_pace(c, p->worker, w);
		hd_json_put_text(w, "address", p->address ? p->address : "");
		hd_json_close(w);
	}
	hd_json_close(w);
	return HD_OK;
}

static enum hd_err answer_stop(struct conduct *c, const struct hd_json *ask, struct hd_json_writer *w, struct hd_diag *diag)
{
	bool now = false;
	enum hd_err err = hd_json_find(ask, "now") ? hd_json_get_bool(ask, "now", &now, diag) : HD_OK;

	(void)w;
	if (!err && (now || !c->machine)) {
		c->exit_code = (uint32_t)hd_err_exit(HD_E_PREEMPTED);
		snprintf(c->exit_text, sizeof c->exit_text, "stopped at step %llu", (unsigned long long)c->end.step);
		c->over = true;
	} else if (!err) {
		feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_HALT, .code = (uint32_t)hd_err_exit(HD_E_PREEMPTED), .text = "somebody asked it to stop" });
	}
	return err;
}

static enum hd_err answer_drain(struct conduct *c, const struct hd_json *ask, struct hd_json_writer *w, struct hd_diag *diag)
{
	int64_t id = 0;
	enum hd_err err = hd_json_get_i64(ask, "worker", 0, INT32_MAX, &id, diag);
	struct hd_co_worker_status worker[HD_MAX_WORKERS];
	uint32_t n = c->machine ? hd_coordinator_workers(c->machine, worker, HD_MAX_WORKERS) : 0;

	(void)w;
	for (uint32_t i = 0; i < n && !err; i++)
		if (worker[i].worker == (uint32_t)id && worker[i].state != HD_W_OUT && worker[i].state != HD_W_FREE) {
			feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_DRAIN, .worker = (uint32_t)id, .code = (uint32_t)hd_err_exit(HD_E_PREEMPTED) });
			return HD_OK;
		}
	return err ? err : hd_fail(diag, HD_E_INVAL, "there is no worker %lld; `heddle status` lists them", (long long)id);
}

static enum hd_err answer(void *self, const char *what, const struct hd_json *ask, struct hd_json_writer *w, struct hd_diag *diag)
{
	static const struct {
		const char *what;
		enum hd_err (*answer)(struct conduct *, const struct hd_json *, struct hd_json_writer *, struct hd_diag *);
	} row[] = {
		{ "status", answer_status }, { "scale", answer_scale }, { "stop", answer_stop }, { "drain", answer_drain },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (!strcmp(row[i].what, what))
			return row[i].answer(self, ask, w, diag);
	return hd_fail(diag, HD_E_INVAL, "a coordinator does not \"%s\"", what);
}

/* ---- from beginning to end ---- */

static enum hd_err read_store(struct conduct *c, struct hd_diag *diag)
{
	uint8_t bytes[HD_RECORD_BYTES];
	size_t len = 0;
	enum hd_err err = hd_store_get(c->store, HD_RECORD_MEMBERSHIP, bytes, sizeof bytes, &len, diag);

	if (!err)
		err = record_get(&c->config.record, bytes, len, diag);
	if (!err)
		err = hd_store_get(c->store, HD_RECORD_KERNELS, &c->config.kernels, sizeof c->config.kernels, &len, diag);
	return err == HD_E_NOTFOUND ? HD_OK : err;
}

/* The zero of "t" is the beginning of the run, whoever coordinates it. */
static enum hd_err set_began(struct conduct *c, struct hd_diag *diag)
{
	int64_t wall = hd_clock_wall_ns(c->spec->clock), age = 0;
	uint8_t bytes[8];
	size_t len = 0;
	enum hd_err err = hd_store_get(c->store, HD_RECORD_BEGAN, bytes, sizeof bytes, &len, diag);

	if (err == HD_E_NOTFOUND) {
		hd_put64(bytes, (uint64_t)wall);
		return hd_store_put(c->store, HD_RECORD_BEGAN, bytes, sizeof bytes, diag);
	}
	if (!err && len != sizeof bytes)
		err = hd_fail(diag, HD_E_INTEGRITY, "the record of when the run began is not of this program");
	if (!err)
		age = wall - (int64_t)hd_get64(bytes);
	c->spec->dir->began_ns -= age > 0 ? age : 0;
	c->recorded = hd_rundir_recorded(c->spec->dir);
	return err;
}

/* The job's policy, or what a user said since. */
static enum hd_err set_scaler(struct conduct *c, struct hd_diag *diag)
{
	static const char *const row[] = { NULL, "curve", "ae-2020" };   /* words of elastic.autoscale.policy */
	const struct hd_job *job = c->spec->task->job;
	char kept[32] = "";
	size_t len = 0;

	struct hd_cores cores;
	hd_cores_usable(&cores);
	uint32_t most = cores.n > c->config.target ? cores.n : c->config.target;         /* that are started here */
	c->scaler = (struct hd_scaler){ .nvns = job->nvns, .min = c->config.min, .max = c->config.max < most ? c->config.max : most,
		.objective = hd_job_int(job, HD_JOB_AUTOSCALE_OBJECTIVE) ? HD_OBJECTIVE_COST : HD_OBJECTIVE_TIME,
		.every = (uint32_t)hd_job_int(job, HD_JOB_AUTOSCALE_EVERY), .price_usd_h = hd_job_num(job, HD_JOB_AUTOSCALE_PRICE),
		.detect_ns = c->detect_ns };
	enum hd_err err = hd_store_get(c->store, HD_RECORD_POLICY, kept, sizeof kept - 1, &len, diag);
	if (err && err != HD_E_NOTFOUND)
		return err;
	const char *policy = err ? row[hd_job_int(job, HD_JOB_AUTOSCALE)] : !strcmp(kept, "off") ? NULL : kept;
	return hd_scaler_turn(&c->scaler, policy, diag);
}

static enum hd_err configure(struct conduct *c, struct hd_diag *diag)
{
	const struct hd_job *job = c->spec->task->job;
	const struct hd_job_value *max = &job->value[HD_JOB_MAX_WORKERS];
	uint32_t most = job->nvns < HD_MAX_MEMBERS ? job->nvns : HD_MAX_MEMBERS;

	c->detect_ns = hd_job_int(job, HD_JOB_DETECT);
	c->config = (struct hd_co_config){ .job = c->spec->task->job_hash, .nvns = job->nvns, .nbuckets = hd_layout_nbuckets(&c->spec->task->layout),
		.min = (uint32_t)hd_job_int(job, HD_JOB_MIN_WORKERS), .max = max->is_auto || max->i > most ? most : (uint32_t)max->i,
		.detect_ns = c->detect_ns, .min_wait_ns = hd_job_int(job, HD_JOB_MIN_WAIT), .step = c->spec->step };
	hd_reshape_init(&c->reshape, job->nvns, (int64_t)c->config.nbuckets * HD_BUCKET_BYTES,
		hd_job_int(job, HD_JOB_STRAGGLER_ACT) > 0);
	c->config.plan = hd_reshape_plan;
	c->config.plan_self = &c->reshape;
	if (c->config.min > c->config.max)
		return hd_fail(diag, HD_E_INVAL, "workers.min is %u, more than the %u workers that this job can use", c->config.min, c->config.max);
	enum hd_err err = read_store(c, diag);
	if (!err)
		err = set_began(c, diag);
	c->config.target = c->spec->target ? c->spec->target : c->config.record.target;
	c->config.record.target = c->config.target;
	if (!err)
		err = set_scaler(c, diag);
	if (c->config.record.halting && c->spec->target) {       /* that run was stopped, with a checkpoint: this one begins there */
		c->config.record.halting = c->config.record.started = false;
		c->config.record.nmembers = 0;
	}
	if (!err && (c->config.target < c->config.min || c->config.target > c->config.max))
		err = hd_fail(diag, HD_E_INVAL, "%u workers: this job takes from %u (workers.min) to %u (workers.max, or one a virtual node)", c->config.target,
			c->config.min, c->config.max);
	return err;
}

/* Users read it, and a coordinator that follows listens there again. */
static enum hd_err tell_address(struct conduct *c, const char *addr, struct hd_diag *diag)
{
	char text[HD_ADDR_CAP + 64];

	snprintf(c->address, sizeof c->address, "%s", addr + (strncmp(addr, "tcp:", 4) ? 0 : 4));
	snprintf(text, sizeof text, "workers of other machines join at %s%s", c->address, c->spec->key ? "" : ", without a key");
	note(c, "listening", HD_NOBODY, text);
	return hd_rundir_put(c->spec->dir, HD_CONDUCT_ADDRESS, c->address, strlen(c->address), diag);
}

static enum hd_err open_links(struct conduct *c, struct hd_diag *diag)
{
	const struct hd_wire_events events = { .self = c, .up = on_up, .lost = on_lost, .suspect = on_suspect, .message = on_message,
		.arrived = on_arrived, .sent = on_sent, .stale = on_epoch, .ahead = on_epoch, .probed = on_probed };
	struct hd_hub_config config = { .job = hd_elastic_realm(c->spec->realm, c->spec->task->job_hash), .job_hash = c->spec->task->job_hash,
		.worker = HD_COORDINATOR_LINK, .role = HD_ROLE_COORDINATOR, .detect_ms = (uint32_t)(c->detect_ns / 1000000),
		.peers_cap = HD_HUB_PEERS, .streams_cap = 4096,
		.plaintext = c->spec->plaintext, .key = c->spec->key, .key_len = c->spec->key_len };
	char transport[16], addr[HD_ADDR_CAP];

	hd_net_real(&c->net);
	c->net.world = c->spec->key || c->spec->plaintext;
	enum hd_err err = hd_loop_init(&c->loop, c->spec->clock, diag);
	if (!err)
		err = hd_hub_init(&c->hub, &config, &events, &c->loop, &c->net, diag);
	for (size_t i = 0; i < HD_CONDUCT_LISTENS && c->spec->listen[i] && !err; i++) {
		err = hd_elastic_address(c->spec->listen[i], transport, addr, diag);
		if (!err)
			err = hd_hub_listen(&c->hub, transport, addr, diag);
		if (!err && i)
			err = tell_address(c, addr, diag);
	}
	c->control = (struct hd_control){ .self = c, .answer = answer, .tag = 1 };
	if (!err)
		err = hd_control_path(c->spec->dir->path, "run.sock", addr, diag);
	return err ? err : hd_control_open(&c->control, addr, &c->loop, &c->net, diag);
}

static void look_at_wish(struct conduct *c)
{
	enum hd_err wish = c->spec->wish ? c->spec->wish(c->spec->watch.user) : HD_OK;

	if (!wish || c->wished)
		return;
	c->wished = true;
	if (c->machine) {
		feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_HALT, .code = (uint32_t)hd_err_exit(wish), .text = hd_err_text(wish) });
		return;
	}
	c->exit_code = (uint32_t)hd_err_exit(wish);
	c->over = true;
}

static void turn(struct conduct *c, int64_t until)
{
	struct hd_loop_event other[HD_CONDUCT_OTHERS];
	struct hd_diag diag = { "" };
	size_t n = 0;
	enum hd_err err = hd_hub_poll(&c->hub, until, other, HD_CONDUCT_OTHERS, &n, &diag);

	if (err)
		fail(c, err, &diag);
	for (size_t i = 0; i < n; i++)
		if (other[i].tag >= c->control.tag && other[i].tag < c->control.tag + HD_CONTROL_TAGS)
			hd_control_event(&c->control, &other[i]);
}

static void conduct(struct conduct *c)
{
	int64_t every = HD_PATIENCE_NS(HEARTBEAT, c->detect_ns), began = hd_clock_now_ns(c->spec->clock), next = began;

	if (c->spec->target && c->spec->worker_argv)     /* else the members that there are call */
		c->to_start = c->config.target;
	while (!c->over) {
		turn(c, next);
		if (hd_clock_now_ns(c->spec->clock) < next)
			continue;
		hd_failpoint_look();
		look_at_crew(c);
		look_at_wish(c);
		look_for_a_beginning(c, hd_clock_now_ns(c->spec->clock) - began);
		hd_control_tick(&c->control, hd_clock_now_ns(c->spec->clock));
		feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_TICK });
		next = hd_clock_now_ns(c->spec->clock) + every;
	}
	/* what was told goes out: members leave by themselves */
	int64_t until = hd_clock_now_ns(c->spec->clock) + HD_CONDUCT_LAST_NS;
	struct hd_hub_stats stats;
	do {
		turn(c, hd_clock_now_ns(c->spec->clock) + HD_CONDUCT_LAST_NS / 20);
		hd_hub_stats(&c->hub, &stats);
	} while (stats.up && hd_clock_now_ns(c->spec->clock) < until);
}

static enum hd_err verdict(struct conduct *c, struct hd_conduct_end *end, struct hd_diag *diag)
{
	struct hd_co_status status = { 0 };

	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	c->end.epochs = status.epoch;
	c->end.term = status.term;
	*end = c->end;
	if (c->err)
		return hd_fail(diag, c->err, "%s", c->diag.text);
	enum hd_err err = hd_err_of_exit((int)c->exit_code);
	return err ? hd_fail(diag, err, "%s", c->exit_text[0] ? c->exit_text : hd_err_text(err)) : HD_OK;
}

enum hd_err hd_conduct(const struct hd_conduct_spec *spec, struct hd_conduct_end *end, struct hd_diag *diag)
{
	struct conduct *c = hd_alloc(sizeof *c);
	char path[HD_PATH_CAP];

	if (!c)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a coordinator");
	*c = (struct conduct){ .spec = spec, .end.step = spec->step };
	hd_arena_init(&c->messages, 0);
	hd_host_real(&c->host);
	hd_crew_init(&c->crew, &(struct hd_crew_spec){ .host = &c->host, .fs = spec->fs, .clock = spec->clock, .dir = spec->dir->path,
		.argv = spec->worker_argv });
	c->room = hd_alloc(HD_TELL_MAX);
	hd_rundir_path(spec->dir, "store.sqlite", path, sizeof path);
	enum hd_err err = c->room ? hd_store_open(&c->store, path, diag) : hd_fail(diag, HD_E_NOMEM, "no memory for messages");
	if (!err)
		err = configure(c, diag);
	if (!err)
		err = open_links(c, diag);
	if (!err) {
		hd_rundir_event(spec->dir, "job_start", spec->step, "");
		conduct(c);
		err = verdict(c, end, diag);
	}
	hd_crew_finish(&c->crew, HD_CREW_GRACE_NS);
	hd_control_close(&c->control);
	hd_hub_finish(&c->hub);
	hd_loop_finish(&c->loop);
	hd_coordinator_destroy(c->machine);
	hd_reshape_finish(&c->reshape);
	hd_store_close(c->store);
	hd_arena_finish(&c->messages);
	hd_free(c->room);
	hd_free(c);
	return err;
}

enum hd_err hd_conduct_address(const char *transport, const char *dir, const char *name, char address[HD_MSG_ADDR + 1], struct hd_diag *diag)
{
	char addr[HD_ADDR_CAP];
	enum hd_err err = hd_control_path(dir, name, addr, diag);

	if (!err && (size_t)snprintf(address, HD_MSG_ADDR + 1, "%s %s", transport, addr) > HD_MSG_ADDR)
		err = hd_fail(diag, HD_E_REFUSED, "the path of %s is too long for a socket", dir);
	return err;
}
