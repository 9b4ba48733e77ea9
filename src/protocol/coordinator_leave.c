#include "protocol/coordinator_int.h"

#include <assert.h>
#include <string.h>

#include "base/timeouts.h"

/* Requests to leave: for one worker (DRAIN), or all of them (HALT). Both are in the record: rule 14. */

bool hd_co_is_going(const struct hd_coordinator *co, uint32_t worker)
{
	for (uint32_t i = 0; i < co->record.ngoing; i++)
		if (co->record.going[i] == worker)
			return true;
	return false;
}

/* It is gone: stored with the next record, since its id is not used again. */
void hd_co_forget_going(struct hd_coordinator *co, uint32_t worker)
{
	struct hd_co_record *r = &co->record;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->ngoing; i++)
		if (r->going[i] != worker)
			r->going[n++] = r->going[i];
	assert(n <= r->ngoing);
	r->ngoing = n;
}

/* A worker that leaves on its own says so to each coordinator; one that was asked to, here, does not
 * know. */
void hd_co_on_drain(struct hd_coordinator *co, uint32_t worker)
{
	struct hd_co_worker *w = hd_co_find(co, worker);
	struct hd_co_record *r = &co->record;

	if (!w || !hd_co_is_here(w) || w->draining)
		return;
	w->draining = true;
	if (r->ngoing == HD_MAX_WORKERS)
		memmove(r->going, r->going + 1, --r->ngoing * sizeof *r->going);
	assert(r->ngoing < HD_MAX_WORKERS && !hd_co_is_going(co, worker));
	r->going[r->ngoing++] = worker;
	hd_co_store(co);
}

void hd_co_halt(struct hd_coordinator *co, uint32_t code, const char *why)
{
	size_t n = strnlen(why, HD_MSG_TEXT);

	if (co->halting)
		return;
	assert(co->phase != HD_CO_OVER);
	co->halting = true;
	co->halt_code = code;
	memcpy(co->halt_why, why, n);
	co->halt_why[n] = '\0';
	for (uint32_t i = 0; i < co->nplaces; i++)
		hd_co_change_again(co, &co->worker[i]);
}

void hd_co_on_halt(struct hd_coordinator *co, uint32_t code, const char *why)
{
	size_t n = why ? strnlen(why, HD_MSG_TEXT) : 0;

	if (co->record.halting)
		return;
	co->record.halting = true;
	co->record.halt_code = code;
	memcpy(co->record.halt_why, why ? why : "", n);
	co->record.halt_why[n] = '\0';
	hd_co_store(co);
	hd_co_halt(co, code, co->record.halt_why);
}

void hd_co_end_halted(struct hd_coordinator *co, uint64_t step)
{
	bool all = co->config.nsteps && step >= co->config.nsteps;

	hd_co_end(co, co->halting && !all ? co->halt_code : 0, co->halting && !all ? co->halt_why : "");
}

/* ---- workers that are gone ---- */

void hd_co_stale(struct hd_coordinator *co, uint32_t worker)
{
	hd_co_send_to(co, worker, hd_co_msg(co, HD_MSG_STALE));
	struct hd_co_action *a = hd_co_act(co, HD_CO_DO_DROP);
	a->worker = worker;
	a->text = "not in this epoch any more";
}

void hd_co_forget_reports(struct hd_coordinator *co, const struct hd_co_worker *w)
{
	uint64_t bit = (uint64_t)(w - co->worker);

	assert(bit < HD_MAX_WORKERS);
	for (uint32_t i = 0; i < co->nplaces; i++) {
		co->worker[i].suspected[bit / 64] &= ~(UINT64_C(1) << bit % 64);
		co->worker[i].closed[bit / 64] &= ~(UINT64_C(1) << bit % 64);
	}
}

void hd_co_left(struct hd_coordinator *co, struct hd_co_worker *w)
{
	hd_co_transfer_ended(co, w);
	hd_co_forget_going(co, w->worker);
	hd_co_forget_reports(co, w);
	for (uint32_t i = 0; i < co->nplaces; i++)
		if (w->closed[i / 64] >> i % 64 & 1)
			hd_co_may_lack(co, &co->worker[i]);
	w->state = HD_W_LEFT;
}

/* Nothing more is taken from it. Whoever synced from it syncs from another. */
static void take_out(struct hd_coordinator *co, struct hd_co_worker *w, bool ends)
{
	hd_co_transfer_ended(co, w);
	hd_co_forget_going(co, w->worker);
	w->state = HD_W_OUT;
	if (w->up)
		hd_co_stale(co, w->worker);
	if (ends)
		hd_co_act(co, HD_CO_DO_END)->worker = w->worker;
	hd_co_forget_reports(co, w);
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *other = &co->worker[i];
		if (other->source != w->worker)
			continue;
		if (other->state == HD_W_READY && other->decided)
			/* it may have entered, and be the only holder of the state: it is asked */
			other->source = HD_NOBODY;
		else
			hd_co_sync_lost(co, other);
	}
}

static void die(struct hd_coordinator *co, struct hd_co_worker *w, const char *why, bool ends)
{
	bool member = w->state == HD_W_MEMBER, of_next = (co->phase == HD_CO_DECIDED ||
		co->phase == HD_CO_DECIDING) && hd_view_has(&co->next, w->worker);

	/* released: it closes its links one after the other, and ends */
	if (!hd_co_is_here(w) || co->phase == HD_CO_ENDING)
		return;
	hd_co_note(co, "lost", w->worker, "%s", why);
	take_out(co, w, ends);
	if (member || of_next || w->asked)
		hd_co_fence(co, HD_TIMEOUT_NS(SILENT, co->config.detect_ns));
	else if (hd_view_has(&co->next, w->worker))
		hd_co_void(co);
}

void hd_co_dead(struct hd_coordinator *co, struct hd_co_worker *w, const char *why)
{
	die(co, w, why, true);
}

void hd_co_rejoin(struct hd_coordinator *co, struct hd_co_worker *w)
{
	assert(hd_co_is_here(w));
	if (!hd_is_remote(w->worker))
		w->rejoins_ns = co->now_ns ? co->now_ns : 1;
	take_out(co, w, false);
}

/* A process of this machine, which may have been several workers one after the other. */
static bool is_process(const struct hd_co_worker *w, const char *host)
{
	return w->state != HD_W_FREE && !hd_is_remote(w->worker) && *w->host && strcmp(w->host, host) == 0;
}

/* Of the worker that it was, only the link is gone so far. It must not be ended T later: it is another one by
 * then. */
bool hd_co_rejoined(struct hd_coordinator *co, const struct hd_co_worker *now)
{
	bool known = false;

	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		if (w == now || !is_process(w, now->host))
			continue;
		known |= w->rejoins_ns || hd_co_is_here(w);
		w->rejoins_ns = 0;
		die(co, w, "its process joined again, as a new worker", false);
	}
	return known;
}

void hd_co_ended(struct hd_coordinator *co, struct hd_co_worker *w)
{
	hd_co_dead(co, w, "its process ended");
	w->rejoins_ns = 0;
	for (uint32_t i = 0; i < co->nplaces; i++)
		if (is_process(&co->worker[i], w->host))
			co->worker[i].rejoins_ns = 0;
}
