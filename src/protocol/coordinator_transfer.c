#include "protocol/coordinator_int.h"

#include <assert.h>

#include "base/timeouts.h"

/* State transfers to workers that are not members yet: from which member, when they begin, end, or are tried
 * again later. Begun by hd_co_plan(), as far as workers are missing. */

static struct hd_co_worker *source_for(struct hd_coordinator *co)
{
	struct hd_co_worker *best = NULL;
	uint32_t fewest = UINT32_MAX;

	assert(co->has_view);
	for (uint32_t i = 0; i < co->view.nmembers; i++) {
		struct hd_co_worker *w = hd_co_find(co, co->view.member[i]);
		uint32_t n = 0;
		if (!w || w->state != HD_W_MEMBER || !w->up)
			continue;
		/* one that leaves: only if there is no other */
		n += w->draining || w->being_replaced ? HD_MAX_WORKERS : 0;
		for (uint32_t k = 0; k < co->nplaces; k++)
			n += co->worker[k].source == w->worker;    /* workers that are gone have none */
		/* ties: the higher id, to spare the checkpoint writer */
		if (n <= fewest) {
			fewest = n;
			best = w;
		}
	}
	return best;
}

static void say_sync(struct hd_coordinator *co, const struct hd_co_worker *w)
{
	struct hd_msg *msg = hd_co_msg(co, HD_MSG_SYNC);

	if (msg)
		msg->sync = (struct hd_msg_sync){ w->source, w->transfer };
	hd_co_send(co, w, msg);
}

static void say_send_state(struct hd_coordinator *co, uint32_t source, uint32_t joiner, bool on)
{
	const struct hd_co_worker *w = hd_co_find(co, source);
	struct hd_msg *msg = w ? hd_co_msg(co, HD_MSG_SEND_STATE) : NULL;

	if (!msg)
		return;
	assert(source != joiner);
	msg->send_state = (struct hd_msg_send_state){ joiner, on };
	hd_co_send(co, w, msg);
}

void hd_co_transfer_ended(struct hd_coordinator *co, struct hd_co_worker *w)
{
	say_send_state(co, w->source, w->worker, false);       /* if there is one */
	w->source = HD_NOBODY;
}

void hd_co_sync_lost(struct hd_coordinator *co, struct hd_co_worker *w)
{
	hd_co_transfer_ended(co, w);
	assert(w->state != HD_W_FREE && w->source == HD_NOBODY);
	w->state = w->ready_to_sync ? HD_W_STANDBY : HD_W_ADMITTED;
	if ((co->phase == HD_CO_NUMBERING || co->phase == HD_CO_PREPARING) &&
		hd_view_has(&co->next, w->worker))
		hd_co_void(co);
	else if ((co->phase == HD_CO_DECIDING || co->phase == HD_CO_DECIDED || co->phase == HD_CO_VIEWING) &&
		hd_view_has(&co->next, w->worker))
		hd_co_fence(co, HD_TIMEOUT_NS(SILENT, co->config.detect_ns));
}

static void start_transfer(struct hd_coordinator *co, struct hd_co_worker *w)
{
	struct hd_co_worker *source = co->record.started ? source_for(co) : NULL;

	if (co->record.started && !source)
		return;
	assert(w->state == HD_W_STANDBY && w->source == HD_NOBODY && w->up);
	w->state = HD_W_SYNCING;
	w->source = source ? source->worker : HD_NOBODY;
	w->transfer = source ? (uint64_t)co->record.term << 32 | ++co->transfers : co->config.step;
	say_sync(co, w);
	if (source)
		say_send_state(co, source->worker, w->worker, true);
}

void hd_co_back_off(struct hd_coordinator *co, struct hd_co_worker *w)
{
	int64_t pause = HD_TIMEOUT_NS(BACKOFF, co->config.detect_ns) << (w->given_up < HD_CO_PAUSES ?
		w->given_up : HD_CO_PAUSES);

	assert(w->source == HD_NOBODY);
	w->given_up++;
	w->state = HD_W_BACKOFF;
	w->retry_at_ns = co->now_ns + pause;
	hd_co_note(co, "aside", w->worker,
		"state transfer: training is faster than this joiner, and its source gave up (%u times now). "
		"It is retried in %.1f s, with the next view, or when a number of workers is asked for. "
		"Its link or its machine is too slow", w->given_up,
		(double)pause / 1e9);
}

static void recall(struct hd_co_worker *w)
{
	if (w->state == HD_W_BACKOFF)
		w->state = HD_W_STANDBY;
}

void hd_co_end_backoff(struct hd_coordinator *co)
{
	for (uint32_t i = 0; i < co->nplaces; i++) {
		recall(&co->worker[i]);
		co->worker[i].given_up = 0;
	}
}

static bool is_or_will_be(const struct hd_co_worker *w)
{
	return !w->draining && !w->being_replaced && (w->state == HD_W_MEMBER || w->state == HD_W_READY ||
		w->state == HD_W_SYNCING);
}

void hd_co_transfers_again(struct hd_coordinator *co, const struct hd_co_worker *w)
{
	if (w->state == HD_W_SYNCING)
		say_sync(co, w);
	for (uint32_t i = 0; i < co->nplaces; i++)
		if (co->worker[i].source == w->worker)
			say_send_state(co, w->worker, co->worker[i].worker, true);
}

void hd_co_start_transfers(struct hd_coordinator *co)
{
	uint32_t n[2] = { 0 };                            /* local, remote */

	for (uint32_t i = 0; i < co->nplaces; i++)
		n[hd_is_remote(co->worker[i].worker)] += is_or_will_be(&co->worker[i]);
	n[0] = n[0] < co->record.target ? n[0] : co->record.target;       /* the others will not be members */
	for (uint32_t i = 0; i < co->nplaces; i++) {
		struct hd_co_worker *w = &co->worker[i];
		bool remote = hd_is_remote(w->worker);
		if (co->now_ns >= w->retry_at_ns)
			recall(w);
		if (w->state == HD_W_STANDBY && w->up && !w->draining &&
			hd_co_has_room(co, w->worker, n[0], n[1]) &&
		    /* remote workers cannot read the disk */
		    (co->record.started || !remote)) {
			start_transfer(co, w);
			n[remote]++;
		}
	}
}
