#include "protocol/coordinator_int.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/timeouts.h"

const char *hd_co_worker_state_name(enum hd_co_worker_state state)
{
	static const char *const names[] = {
#define X(id, text) text,
		HD_CO_STATES(X)
#undef X
	};
	return state < HD_W_NSTATES ? names[state] : "unknown";
}

/* ---- what goes out ---- */

struct hd_co_action *hd_co_act(struct hd_coordinator *co, enum hd_co_action_kind kind)
{
	assert(kind < HD_CO_DO_NKINDS && co->nact <= co->act_cap);
	if (co->nact == co->act_cap) {
		size_t cap = co->act_cap ? 2 * co->act_cap : 64;
		struct hd_co_action *more = hd_arena_take(&co->out, cap, sizeof *more);
		if (!more) {
			co->broken = true;
			return &co->no_action;
		}
		if (co->nact)
			memcpy(more, co->act, co->nact * sizeof *more);
		co->act = more;
		co->act_cap = cap;
	}
	co->act[co->nact] = (struct hd_co_action){ .kind = kind, .worker = HD_NOBODY };
	return &co->act[co->nact++];
}

struct hd_msg *hd_co_msg(struct hd_coordinator *co, enum hd_msg_kind kind)
{
	struct hd_msg *msg = hd_arena_take(&co->out, 1, sizeof *msg);

	assert(hd_msg_name(kind));
	if (!msg) {
		co->broken = true;
		return NULL;
	}
	msg->kind = kind;
	msg->term = co->record.term;
	msg->epoch = co->has_view ? co->view.epoch : 0;
	return msg;
}

void hd_co_send_to(struct hd_coordinator *co, uint32_t worker, const struct hd_msg *msg)
{
	/* without memory for msg none of it is done */
	struct hd_co_action *a = hd_co_act(co, HD_CO_DO_SEND);
	a->worker = worker;
	a->msg = msg;
}

void hd_co_send(struct hd_coordinator *co, const struct hd_co_worker *w, const struct hd_msg *msg)
{
	if (w->up)
		hd_co_send_to(co, w->worker, msg);
}

void hd_co_note(struct hd_coordinator *co, const char *name, uint32_t worker, const char *fmt, ...)
{
	char *text = hd_arena_take(&co->out, HD_MSG_TEXT, 1);
	va_list args;

	assert(name && *name);
	if (!text) {
		co->broken = true;
		return;
	}
	va_start(args, fmt);
	vsnprintf(text, HD_MSG_TEXT, fmt, args);
	va_end(args);
	struct hd_co_action *a = hd_co_act(co, HD_CO_DO_NOTE);
	a->name = name;
	a->text = text;
	a->worker = worker;
	a->epoch = co->record.epoch;
}

static uint64_t put_record(struct hd_coordinator *co)
{
	struct hd_co_record *copy = hd_arena_take(&co->out, 1, sizeof *copy);
	if (!copy) {
		co->broken = true;
		return co->record.serial;
	}
	*copy = co->record;
	hd_co_act(co, HD_CO_DO_STORE)->record = copy;
	return co->record.serial;
}

uint64_t hd_co_store(struct hd_coordinator *co)
{
	assert(co->record.serial < UINT64_MAX && co->record.nmembers <= HD_MAX_WORKERS);
	co->record.serial++;
	return put_record(co);
}

void hd_co_release(struct hd_coordinator *co, const struct hd_co_worker *w, uint32_t code, const char *why)
{
	struct hd_msg *msg = hd_co_msg(co, HD_MSG_RELEASE);

	if (!msg)
		return;
	assert(hd_co_is_here(w));
	msg->release = (struct hd_msg_release){ .code = code, .nwhy = (uint32_t)strlen(why), .why = why };
	hd_co_send(co, w, msg);
}

void hd_co_end(struct hd_coordinator *co, uint32_t code, const char *why)
{
	size_t n = strnlen(why, HD_MSG_TEXT);

	assert(co->phase != HD_CO_OVER);
	if (co->phase == HD_CO_ENDING)
		return;
	hd_co_void(co);
	co->phase = HD_CO_ENDING;
	co->end_ns = co->now_ns + HD_TIMEOUT_NS(SHUTDOWN, co->config.detect_ns);
	co->end_code = code;
	memmove(co->halt_why, why, n);    /* it may be that */
	co->halt_why[n] = '\0';
	for (uint32_t i = 0; i < co->nplaces; i++)
		if (hd_co_is_here(&co->worker[i]))
			hd_co_release(co, &co->worker[i], code, co->halt_why);
}

static void end_if_all_left(struct hd_coordinator *co)
{
	if (co->phase != HD_CO_ENDING)
		return;
	for (uint32_t i = 0; i < co->nplaces && co->now_ns < co->end_ns; i++)
		if (co->worker[i].up)
			return;
	assert(co->phase == HD_CO_ENDING);
	co->phase = HD_CO_OVER;
	hd_co_invalidate(co);
	struct hd_co_action *a = hd_co_act(co, HD_CO_DO_EXIT);
	a->code = co->end_code;
	a->text = co->halt_why;
}

/* ---- workers ---- */

struct hd_co_worker *hd_co_find(struct hd_coordinator *co, uint32_t worker)
{
	for (uint32_t i = 0; i < co->nplaces; i++)
		if (co->worker[i].state != HD_W_FREE && co->worker[i].worker == worker)
			return &co->worker[i];
	return NULL;
}

bool hd_co_is_here(const struct hd_co_worker *w)
{
	return w->state != HD_W_FREE && w->state != HD_W_LEFT && w->state != HD_W_OUT;
}

/* A place in the table that no worker had. */
static struct hd_co_worker *first_place(struct hd_coordinator *co)
{
	const uint32_t i = co->nplaces++;
	struct hd_co_worker *w = &co->worker[i];

	assert(i < HD_MAX_WORKERS);
	memset(w, 0, sizeof *w);
	w->answer.sum = co->sums + (size_t)3 * i * co->words;
	w->answer.parm = w->answer.sum + co->words;
	w->answer.slot = w->answer.parm + co->words;
	w->guest = w->source = HD_NOBODY;
	w->joined_ns = w->done_ns = co->now_ns;
	return w;
}

struct hd_co_worker *hd_co_place(struct hd_coordinator *co)
{
	struct hd_co_worker *best = NULL;

	if (co->nplaces < HD_MAX_WORKERS)
		return first_place(co);
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		if (!hd_co_is_here(w) && !w->up && (!best || w->worker < best->worker))
			best = w;
	}
	if (best) {
		uint64_t *sum = best->answer.sum, *parm = best->answer.parm, *slot = best->answer.slot;
		memset(best, 0, sizeof *best);
		best->answer.sum = sum;
		best->answer.parm = parm;
		best->answer.slot = slot;
		best->guest = best->source = HD_NOBODY;
		best->joined_ns = best->done_ns = co->now_ns;
	}
	return best;
}

static void refuse(struct hd_coordinator *co, uint32_t guest, uint32_t code, const char *why)
{
	struct hd_msg *msg = hd_co_msg(co, HD_MSG_REFUSE);

	if (msg)
		msg->refuse = (struct hd_msg_refuse){ .code = code, .nwhy = (uint32_t)strlen(why),
			.why = why };
	hd_co_send_to(co, guest, msg);
	hd_co_note(co, "refused", guest, "%s", why);
}

static void admit(struct hd_coordinator *co, const struct hd_co_worker *w)
{
	struct hd_msg *msg = hd_co_msg(co, HD_MSG_ADMIT);

	/* rule 1: the id is in a stored record */
	assert(w->state != HD_W_FREE && w->guest != HD_NOBODY && w->id_serial <= co->stored);
	if (msg)
		msg->admit = (struct hd_msg_admit){ w->worker, w->nonce };
	hd_co_send_to(co, w->guest, msg);
}

/* the text of a message may be NULL where it is empty */
static void keep_text(char *to, const char *text, size_t n)
{
	if (n > 0)
		memcpy(to, text, n);
	to[n] = '\0';
}

static void take_facts(struct hd_co_worker *w, const struct hd_msg_join *join)
{
	w->ndevices = join->ndevices ? join->ndevices : 1;
	w->memory = join->memory;
	w->vn_ps = join->vn_ps;
	w->nonce = join->nonce;
	keep_text(w->address, join->address, join->naddress);
	keep_text(w->host, join->host, join->nhost);
	keep_text(w->zone, join->zone, join->nzone);
}

uint32_t hd_co_remotes(const struct hd_coordinator *co)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < co->nplaces; i++)
		n += hd_co_is_here(&co->worker[i]) && !co->worker[i].draining &&
			hd_is_remote(co->worker[i].worker);
	return n;
}

uint32_t hd_co_wanted(const struct hd_coordinator *co)
{
	uint32_t n = co->record.target + hd_co_remotes(co);

	return n < co->config.max ? n : co->config.max;
}

bool hd_co_has_room(const struct hd_coordinator *co, uint32_t worker, uint32_t nlocals, uint32_t nremotes)
{
	if (hd_is_remote(worker))
		return nlocals + nremotes + (nlocals == 0) < co->config.max;
	return nlocals < co->record.target && nlocals + nremotes < co->config.max;
}

static void on_guest(struct hd_coordinator *co, uint32_t guest, const struct hd_msg_join *join, bool remote)
{
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		/* it asks again */
		if (hd_co_is_here(w) && w->nonce == join->nonce && w->guest != HD_NOBODY) {
			w->guest = guest;
			w->lost_ns = 0;
			if (co->stored >= w->id_serial)
				admit(co, w);
			return;
		}
	}
	if (!hd_hash_same(join->job, co->config.job)) {
		refuse(co, guest, 2,
			"another job runs here, or the same with other buckets, as it began again since the "
			"worker read it; start the worker with this run's job");
		return;
	}
	if (!hd_hash_same(join->kernels, co->config.kernels)) {
		refuse(co, guest, 2,
			"its kernels differ from the job's: use a like machine, or start with kernels: "
			"portable");
		return;
	}
	struct hd_co_worker *w = co->phase == HD_CO_ENDING ||
		co->record.next_worker == HD_REMOTE_WORKER ? NULL : hd_co_place(co);
	if (!w) {
		refuse(co, guest, 10, "the job takes no more workers");
		return;
	}
	assert(co->record.next_worker < HD_REMOTE_WORKER);
	w->state = HD_W_ADMITTED;
	w->worker = co->record.next_worker++ + (remote ? HD_REMOTE_WORKER : 0);
	take_facts(w, join);
	w->guest = guest;
	w->id_serial = hd_co_store(co);
	co->spawned -= !remote && !hd_co_rejoined(co, w) && co->spawned;
	hd_co_note(co, "join", w->worker, "%u devices at %s%s%s%s", w->ndevices, w->host,
		*w->zone ? " in zone " : "", w->zone, w->ndevices < hd_view_each(&co->config.shape) ?
		", which are too few for a rank (parallel.tensor): it computes nothing" : "");
}

static void introduce(struct hd_coordinator *co, const struct hd_co_worker *to,
	const struct hd_co_worker *about)
{
	struct hd_msg *msg = hd_co_msg(co, HD_MSG_PEER);

	assert(to != about);
	if (msg)
		msg->peer = (struct hd_msg_peer){ .worker = about->worker,
			.naddress = (uint32_t)strlen(about->address), .address = about->address };
	hd_co_send(co, to, msg);
}

/* Connected under its id, for the first time or again. Messages lost on a closed link are sent again. */
static void on_return(struct hd_coordinator *co, const struct hd_msg_join *join)
{
	struct hd_co_worker *w = hd_co_find(co, join->worker);
	uint32_t number = join->worker % HD_REMOTE_WORKER;

	if (!w && co->record.started && !join->member && number < co->record.next_worker &&
		(w = hd_co_place(co))) {
		w->state = HD_W_ADMITTED;                         /* a joiner of the previous coordinator */
		w->worker = join->worker;
		w->draining = hd_co_is_going(co, w->worker);
	}
	if (!w || !hd_co_is_here(w) || (w->nonce && w->nonce != join->nonce) ||
		(join->member && w->state != HD_W_MEMBER && w->state != HD_W_READY)) {
		hd_co_stale(co, join->worker);
		return;
	}
	/* its reports on its links while this one was closed are lost: a link that closed and came back
	 * would go unnoticed */
	co->mend |= !w->up && co->phase <= HD_CO_DECIDED && hd_view_has(&co->view, w->worker);
	hd_co_forget_reports(co, w);      /* so is that it hears a worker again */
	w->guest = HD_NOBODY;
	w->up = true;
	w->silent = false;
	w->lost_ns = 0;
	w->done_ns = co->now_ns;
	take_facts(w, join);
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *other = &co->worker[i];
		if (other == w || !hd_co_is_here(other) || !*other->address)
			continue;
		introduce(co, w, other);
		introduce(co, other, w);
	}
	if (co->phase == HD_CO_ENDING) {
		hd_co_release(co, w, co->end_code, co->halt_why);
		return;
	}
	if (w->state != HD_W_MEMBER && co->has_view)
		hd_co_send(co, w, hd_co_msg(co, HD_MSG_ENTERED));
	hd_co_change_again(co, w);
	hd_co_ask(co, w);
}

/* ---- messages ---- */

static void on_progress(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg_progress *msg)
{
	if (msg->done != w->done || !msg->busy)
		w->done_ns = co->now_ns;
	w->done = msg->done;
	w->longest_ns = msg->longest_ns;
	w->busy = msg->busy;
}

/* Its source was gone when it was let into a view: it never entered that view, and syncs again. */
static void lose_synced_state(struct hd_coordinator *co, struct hd_co_worker *w)
{
	assert(w->state == HD_W_MEMBER);
	hd_co_note(co, "resync", w->worker,
		"its source left before the transfer was complete: it syncs again");
	w->state = HD_W_STANDBY;
	w->asked = false;
	hd_co_forget_reports(co, w);      /* those of members count */
	hd_co_fence(co, HD_TIMEOUT_NS(SILENT, co->config.detect_ns));
}

static void on_ready_to_sync(struct hd_coordinator *co, struct hd_co_worker *w,
	const struct hd_msg_ready_to_sync *msg)
{
	bool slow = msg->given_up && msg->given_up == w->transfer &&
		(w->state == HD_W_SYNCING || w->state == HD_W_READY);

	w->ready_to_sync = true;
	if (w->state == HD_W_SYNCING || w->state == HD_W_READY)
		hd_co_sync_lost(co, w);
	else if (w->state == HD_W_ADMITTED)
		w->state = HD_W_STANDBY;
	else if (w->state == HD_W_MEMBER)
		lose_synced_state(co, w);
	w->answer.said = false;           /* whatever it answered before, it holds nothing any more */
	w->sealed = 0;
	if (slow)
		hd_co_back_off(co, w);
	hd_co_unasked(co, w);
}

static void on_leave(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg_leave *msg)
{
	if (!w->draining)
		hd_co_note(co, "leave", w->worker, "%.*s", (int)msg->nwhy, msg->why);
	/* a worker decided into a view may be a member there */
	if (msg->gone || (w->state != HD_W_MEMBER && !w->decided)) {
		if ((co->phase == HD_CO_NUMBERING || co->phase == HD_CO_PREPARING) &&
			hd_view_has(&co->next, w->worker))
			hd_co_void(co);
		if ((co->phase == HD_CO_DECIDING || co->phase == HD_CO_DECIDED) &&
			hd_view_has(&co->next, w->worker)) {
			hd_co_dead(co, w, "it left before it took part");
			return;
		}
		if (w->asked) {
			hd_co_dead(co, w, "it left while it was asked");
			return;
		}
		hd_co_left(co, w);
		return;
	}
	w->draining = true;
	w->goes_ns = msg->left_ns && msg->left_ns < INT64_MAX / 2 ? co->now_ns + (int64_t)msg->left_ns : 0;
}

/* A failure says why. What stopped otherwise with a code was asked to, by a coordinator before whose
 * record of it was lost. */
static void on_done(struct hd_coordinator *co, struct hd_co_worker *w, const struct hd_msg_done *msg)
{
	bool writer = hd_view_writer(&co->view) == w->worker, failed = msg->code && msg->nwhy && !co->halting;

	if (w->state != HD_W_MEMBER || !(writer || failed))
		return;
	char *why = hd_arena_text(&co->out, msg->why, msg->nwhy);
	hd_co_note(co, "done", w->worker, "stopped before step %llu", (unsigned long long)msg->step);
	if (failed)
		hd_co_end(co, msg->code, why ? why : "");
	else if (msg->code)
		hd_co_halt(co, msg->code, "it was asked to stop");
	co->done = true;
	co->done_step = msg->step;
}

static void on_event(struct hd_coordinator *co, const struct hd_co_worker *w, const struct hd_msg_event *msg)
{
	struct hd_co_action *a = hd_co_act(co, HD_CO_DO_NOTE);
	const char *name = hd_arena_text(&co->out, msg->kind, msg->nkind),
		*text = hd_arena_text(&co->out, msg->json, msg->njson);

	a->worker = w->worker;
	a->epoch = co->record.epoch;
	a->name = name ? name : "";
	a->text = text ? text : "";
}

/* A plan stays over views of the same map: the newest that the member was in says which it is. */
static void on_spent(struct hd_coordinator *co, const struct hd_co_worker *w, const struct hd_msg *msg)
{
	struct hd_co_action *a = hd_co_act(co, HD_CO_DO_SPENT);

	a->worker = w->worker;
	a->epoch = msg->epoch;
	a->msg = msg;
}

/* SYNCED of another transfer is out of date, or was arranged by the previous coordinator. */
static void on_synced(struct hd_co_worker *w, const struct hd_msg_synced *msg)
{
	if (w->state == HD_W_SYNCING && msg->source == w->source && msg->transfer == w->transfer)
		w->state = HD_W_READY;
	else if (w->state == HD_W_ADMITTED)
		w->state = HD_W_STANDBY;
	w->ready_to_sync = true;
}

static void on_message(struct hd_coordinator *co, uint32_t from, const struct hd_msg *msg, bool remote)
{
	if (msg->kind == HD_MSG_JOIN) {
		if (msg->join.worker == HD_NOBODY)
			on_guest(co, from, &msg->join, remote);
		else
			on_return(co, &msg->join);
		return;
	}
	struct hd_co_worker *w = hd_co_find(co, from);
	if (!w || !hd_co_is_here(w) || !w->up) {
		if (w && w->state == HD_W_OUT && w->up)
			hd_co_stale(co, from);
		return;
	}
	w->heard_ns = co->now_ns;
	/* a worker that sends in an epoch has adopted it; a joiner's seal only announces it */
	bool announces = msg->kind == HD_MSG_SEAL && !msg->seal.ran;
	if (msg->epoch > w->spoke && !announces)
		w->spoke = msg->epoch;
	if (co->phase == HD_CO_DECIDED && msg->epoch == co->next.epoch && !announces)
		hd_co_switched(co);
	switch ((int)msg->kind) {
	case HD_MSG_READY_TO_SYNC:     on_ready_to_sync(co, w, &msg->ready_to_sync); break;
	case HD_MSG_SYNCED:  on_synced(w, &msg->synced); break;
	case HD_MSG_PREPARED: hd_co_on_prepared(co, w, msg->decided.next); break;
	case HD_MSG_SEAL:     hd_co_on_seal(co, w, msg); break;
	case HD_MSG_SUSPECT:  hd_co_on_suspect(co, w, &msg->suspect); break;
	case HD_MSG_STATUS:   hd_co_on_status(co, w, msg); break;
	case HD_MSG_STOPPED:  hd_co_on_stopped(co, w, msg); break;
	case HD_MSG_UNFIT:    hd_co_on_unfit(co, w, &msg->unfit); break;
	case HD_MSG_LEAVE:    on_leave(co, w, &msg->leave); break;
	case HD_MSG_DONE:     on_done(co, w, &msg->done); break;
	case HD_MSG_EVENT:    on_event(co, w, &msg->event); break;
	case HD_MSG_PROGRESS: on_progress(co, w, &msg->progress); break;
	case HD_MSG_SPENT:    on_spent(co, w, msg); break;
	default: break;
	}
}

/* ---- the caller's wishes ---- */

static void on_scale(struct hd_coordinator *co, uint32_t n)
{
	uint32_t max = co->config.max, min = co->config.min;

	co->record.target = n > max ? max : n < min ? min : n;
	co->spawned = 0;
	hd_co_end_backoff(co);
	hd_co_store(co);
	co->noted_target = 0;
}

/* A job without stages has no shape, and one with stages always has. */
static void on_reshape(struct hd_coordinator *co, const struct hd_co_event *event)
{
	assert(co->config.shape.nstages && event->shape->nstages && event->n);
	co->config.shape = *event->shape;
	co->config.pipes = event->n;
	co->config.least = event->least;
	co->replan = true;                /* of the same shape: other pipelines */
	uint32_t stages = event->shape->nstages, most = event->n,
		devices = event->shape->width * hd_view_each(event->shape);
	hd_co_note(co, "reshape", HD_NOBODY, "%u stage%s, %u device%s a pipeline, at most %u pipeline%s",
		stages, stages == 1 ? "" : "s", devices, devices == 1 ? "" : "s", most,
		most == 1 ? "" : "s");
}

/* The number changed: on request, or a remote worker came or left. */
static void note_wanted(struct hd_coordinator *co)
{
	uint32_t n = hd_co_wanted(co), remotes = n - (co->record.target < n ? co->record.target : n);

	if (n == co->noted_target)
		return;
	co->noted_target = n;
	if (remotes)
		hd_co_note(co, "scale", HD_NOBODY, "%u workers are wanted, %u of them of other machines", n,
			remotes);
	else
		hd_co_note(co, "scale", HD_NOBODY, "%u workers are wanted", n);
}

static void on_stored(struct hd_coordinator *co, const struct hd_co_event *event)
{
	if (!event->ok) {
		co->store_failed = true;
		return;
	}
	assert(event->serial <= co->record.serial);       /* only what STORE asked for */
	if (event->serial > co->stored)
		co->stored = event->serial;
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		if (hd_co_is_here(w) && w->guest != HD_NOBODY && w->id_serial && w->id_serial <= co->stored) {
			w->id_serial = 0;
			admit(co, w);
		}
	}
	if (co->stored >= co->phase_serial) {             /* 0: no phase waits */
		co->phase_serial = 0;
		hd_co_change_stored(co);
		hd_co_view_stored(co);
	}
}

static void on_restored(struct hd_coordinator *co, uint64_t step)
{
	if (co->phase != HD_CO_RESTORING)
		return;
	if (step == HD_NO_STEP) {
		hd_co_end(co, 10, "no worker is left, and no checkpoint");
		return;
	}
	co->config.step = step;
	co->committed = co->verified = step;
	co->phase = HD_CO_START;
	co->start_ns = co->now_ns;
	for (uint32_t i = 0; i < HD_CO_NEWS; i++)
		co->news[i].step = 0;                     /* of steps that are run again */
	for (uint32_t i = 0; i < co->nplaces; i++)
		if (co->worker[i].state == HD_W_SYNCING || co->worker[i].state == HD_W_READY)
			hd_co_sync_lost(co, &co->worker[i]);
}

static void on_tick(struct hd_coordinator *co)
{
	if (co->store_failed) {
		co->store_failed = false;
		/* as it is now, under the number that is awaited */
		put_record(co);
	}
	if (co->phase == HD_CO_ENDING)
		return;
	hd_co_watch(co);
	hd_co_view_tick(co);
}

/* Does the phase wait for a record to be stored? */
static bool waits_for_store(enum hd_co_phase phase)
{
	return phase == HD_CO_NUMBERING || phase == HD_CO_DECIDING || phase == HD_CO_FENCING ||
		phase == HD_CO_VIEWING;
}

/* What coordinator_int.h promises of the fields, between two events. */
static void check(const struct hd_coordinator *co)
{
	bool planned = co->phase >= HD_CO_NUMBERING && co->phase <= HD_CO_DECIDED;

	assert(co->stored <= co->record.serial && co->phase_serial <= co->record.serial);
	assert(!waits_for_store(co->phase) || co->phase_serial);
	assert(!co->has_view || co->view.epoch <= co->record.epoch);
	assert(!planned || (co->has_view && co->next.epoch > co->view.epoch &&
		co->next.epoch <= co->record.epoch));
	assert(co->phase != HD_CO_IDLE || co->has_view);
	assert(!co->holding || co->has_view);
	for (uint32_t i = 0; i < co->nplaces; i++) {
		const struct hd_co_worker *w = &co->worker[i];
		assert(w->source == HD_NOBODY || w->state == HD_W_SYNCING || w->state == HD_W_READY);
		assert(!w->being_replaced || !hd_is_remote(w->worker));
		assert(!w->silent || w->up);
	}
}

static void dispatch(struct hd_coordinator *co, const struct hd_co_event *event)
{
	struct hd_co_worker *w = NULL;

	switch (event->kind) {
	case HD_CO_IN_MESSAGE:  on_message(co, event->worker, event->msg, event->remote); break;
	case HD_CO_IN_LOST:     hd_co_on_lost(co, event->worker, event->why); break;
	case HD_CO_IN_SCALE:    on_scale(co, event->n); break;
	case HD_CO_IN_DRAIN:    hd_co_on_drain(co, event->worker); break;
	case HD_CO_IN_REPLACE:
		w = hd_co_find(co, event->worker);
		if (w && !hd_is_remote(w->worker))
			w->being_replaced = event->ok;
		break;
	case HD_CO_IN_HALT:     hd_co_on_halt(co, event->code, event->text); break;
	case HD_CO_IN_UNSPAWNED: co->spawned -= event->n < co->spawned ? event->n : co->spawned; break;
	case HD_CO_IN_REPLAN:   co->replan = true; break;
	case HD_CO_IN_RESHAPE:  on_reshape(co, event); break;
	case HD_CO_IN_STORED:   on_stored(co, event); break;
	case HD_CO_IN_RESTORED: on_restored(co, event->step); break;
	case HD_CO_IN_TICK:     on_tick(co); break;
	case HD_CO_IN_NKINDS:   break;
	}
}

struct hd_co_actions hd_coordinator_step(struct hd_coordinator *co, const struct hd_co_event *event,
	int64_t now_ns)
{
	static const struct hd_co_action out_of_memory = { .kind = HD_CO_DO_EXIT, .worker = HD_NOBODY,
		.code = 11, .text = "out of memory" };

	assert(now_ns >= co->now_ns);
	co->now_ns = now_ns;
	hd_arena_reset(&co->out);
	co->act = NULL;
	co->nact = co->act_cap = 0;
	if (co->phase == HD_CO_OVER)
		return (struct hd_co_actions){ NULL, 0 };
	dispatch(co, event);
	if (co->phase != HD_CO_ENDING) {
		note_wanted(co);
		hd_co_judge(co);
		hd_co_plan(co);
	}
	end_if_all_left(co);
	if (!co->broken)
		check(co);
	if (co->broken) {
		co->phase = HD_CO_OVER;
		return (struct hd_co_actions){ &out_of_memory, 1 };
	}
	return (struct hd_co_actions){ co->act, co->nact };
}

/* ---- birth and death ---- */

/* Found in the store: its members hold the state. They are asked as after a failure without a death. */
static void take_over(struct hd_coordinator *co)
{
	for (uint32_t i = 0; i < co->record.nmembers; i++) {
		struct hd_co_worker *w = first_place(co);
		w->state = HD_W_MEMBER;
		w->worker = co->record.member[i];
		w->draining = hd_co_is_going(co, w->worker);
	}
}

enum hd_err hd_coordinator_create(struct hd_coordinator **out, const struct hd_co_config *config,
	int64_t now_ns, struct hd_diag *diag)
{
	if (config->min < 1 || config->min > config->max || config->max > HD_MAX_MEMBERS ||
		config->nbuckets < 1 || config->nbuckets > HD_MAX_BUCKETS ||
	    config->record.nmembers > HD_MAX_WORKERS)
		return hd_fail(diag, HD_E_INVAL, "workers %u..%u of at most %d, %u buckets of at most %d",
			config->min, config->max, HD_MAX_MEMBERS,
			config->nbuckets, HD_MAX_BUCKETS);
	if (config->shape.nstages && config->copies)
		return hd_fail(diag, HD_E_REFUSED, HD_NO_SHARDED_STAGES);
	if (config->shape.nstages && !config->pipes)
		return hd_fail(diag, HD_E_INVAL, "%u stages in no pipeline", config->shape.nstages);
	struct hd_coordinator *co = hd_alloc(sizeof *co);
	if (!co)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a coordinator");
	memset(co, 0, offsetof(struct hd_coordinator, worker));
	hd_arena_init(&co->out, 0);
	co->config = *config;
	co->record = config->record;
	co->words = (config->nbuckets + 63) / 64;
	co->sums = hd_alloc((size_t)3 * HD_MAX_WORKERS * co->words * sizeof *co->sums);
	co->have = co->sums ? hd_alloc((size_t)3 * config->nbuckets * sizeof *co->have) : NULL;
	co->held = hd_alloc(config->nbuckets * sizeof *co->held);
	if (!co->have || !co->held ||
		(config->copies && hd_holding_init(&co->of_view, config->nbuckets, NULL))) {
		hd_coordinator_destroy(co);
		return hd_fail(diag, HD_E_NOMEM, "no memory for a coordinator of %u buckets",
			config->nbuckets);
	}
	co->of_view.bytes = config->bytes;
	co->parm = co->have + config->nbuckets;
	co->chain = co->parm + config->nbuckets;
	co->now_ns = co->start_ns = now_ns;
	co->stored = co->record.serial;
	co->committed = config->record.started && config->recorded && config->recorded < config->step ?
		config->recorded : config->step;
	co->verified = config->record.started ? config->verified : config->step;
	co->record.term++;
	if (!co->record.target)
		co->record.target = config->target;
	take_over(co);
	if (co->record.halting)
		hd_co_halt(co, co->record.halt_code, co->record.halt_why);
	co->noted_target = hd_co_wanted(co);
	*out = co;
	return HD_OK;
}

void hd_coordinator_destroy(struct hd_coordinator *co)
{
	if (!co)
		return;
	hd_free(co->sums);
	hd_free(co->have);
	hd_free(co->held);
	hd_holding_finish(&co->of_view);
	hd_free(co->arrived);
	hd_free(co->arrived_run);
	hd_arena_finish(&co->out);
	hd_free(co);
}

void hd_coordinator_status(const struct hd_coordinator *co, struct hd_co_status *status)
{
	*status = (struct hd_co_status){
		.term = co->record.term, .epoch = co->record.epoch,
			.nmembers = co->has_view ? co->view.nmembers : 0, .asked = co->record.target,
		.target = hd_co_wanted(co),
		.committed = co->committed, .changing = co->phase != HD_CO_IDLE, .holding = co->holding &&
			!co->view_alone,
		.halting = co->halting, .single = hd_co_single(co),
	};
}

uint32_t hd_coordinator_workers(const struct hd_coordinator *co, struct hd_co_worker_status *out,
	uint32_t cap)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < co->nplaces && n < cap; i++) {
		const struct hd_co_worker *w = &co->worker[i];
		if (w->state == HD_W_FREE)
			continue;
		out[n] = (struct hd_co_worker_status){ .worker = w->worker, .ndevices = w->ndevices,
			.state = w->state, .sealed = w->sealed, .up = w->up,
						       .host = w->host, .address = w->address,
			.zone = w->zone };
		for (uint32_t r = 0; co->has_view && r < co->view.nranks; r++)
			out[n].nvns += co->view.rank[r].worker == w->worker ? co->view.rank[r].nvns : 0;
		n++;
	}
	return n;
}

const struct hd_view *hd_coordinator_view(const struct hd_coordinator *co) { return co->has_view ? &co->view :
	NULL; }
