#include "engine/meeting.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "sys/clock.h"
#include "plan/xfer.h"
#include "engine/post.h"
#include "engine/stale.h"
#include "engine/stamps.h"
#include "engine/worker_int.h"

/* A letter that is awaited, here, and taken by a rank that did not wait for it. */
enum { AWAITED, ARRIVED, TAKEN };

static enum hd_err no_memory(const struct hd_worker *w, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for what other workers' %u virtual nodes bring",
		w->task->job->nvns);
}

enum hd_err hd_meeting_make(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_lockstep *l = &w->stage->lockstep;

	w->meeting = hd_arena_take(&w->arena, 1, sizeof *w->meeting);
	if (!w->meeting)
		return no_memory(w, diag);
	w->meeting->nsyncs = l->nsyncs[HD_RUN_F] + l->nsyncs[HD_RUN_B];
	return HD_OK;
}

uint64_t hd_meeting_bytes(const struct hd_worker *w)
{
	return w->meeting->need || w->meeting->sync ?
		2 * hd_lockstep_bytes(&w->task->train, w->task->job) : 0;
}

static const struct hd_sync *sync_of(const struct hd_worker *w, uint32_t k)
{
	const struct hd_lockstep *l = &w->stage->lockstep;

	return k < l->nsyncs[HD_RUN_F] ? &l->sync[HD_RUN_F][k] :
		&l->sync[HD_RUN_B][k - l->nsyncs[HD_RUN_F]];
}

/* ---- of a plan ---- */

static uint32_t put_in_order(const struct hd_plan *plan, uint16_t worker, uint32_t *order, uint32_t at)
{
	const uint32_t first = at;

	for (uint32_t v = 0; v < plan->nvns; v++)
		if (plan->worker[plan->map[v]] == worker)
			order[at++] = v;
	return at - first;
}

/* Workers have the numbers below that of the last rank, and one. */
static uint32_t nworkers_of(const struct hd_plan *plan)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < plan->nranks; r++)
		n = plan->worker[r] >= n ? plan->worker[r] + 1u : n;
	return n;
}

/* `all`: those without virtual nodes, too. */
static void find_peers(struct hd_meeting_part *p, const struct hd_plan *plan, bool all)
{
	uint32_t at = 0, n;

	for (uint32_t i = 0; i < nworkers_of(plan); i++, at += n) {
		n = put_in_order(plan, (uint16_t)i, p->order, at);
		if (i == p->self)
			p->own = (struct hd_meeting_peer){ p->self, at, n };
		else if (n || all)
			p->peer[p->npeers++] = (struct hd_meeting_peer){ (uint16_t)i, at, n };
	}
	assert(at == plan->nvns);
}

enum hd_err hd_meeting_plan(struct hd_worker *w, const struct hd_plan *plan, uint16_t self,
	struct hd_meeting_part **part, struct hd_arena *arena, struct hd_diag *diag)
{
	const bool all = hd_stale_epochs(w->task->job) > 0;
	const uint32_t nsyncs = w->meeting->nsyncs;
	struct hd_meeting_part *p = hd_arena_take(arena, 1, sizeof *p);

	*part = NULL;
	if (!p)
		return no_memory(w, diag);
	if (nsyncs > UINT16_MAX)
		return hd_fail(diag, HD_E_REFUSED, "virtual nodes meet at %u places of the model: several "
			"workers can meet at %u", nsyncs, UINT16_MAX);
	p->self = self;
	p->order = hd_arena_take(arena, plan->nvns, sizeof *p->order);
	p->peer = hd_arena_take(arena, nworkers_of(plan), sizeof *p->peer);
	if (!p->order || !p->peer)
		return no_memory(w, diag);
	find_peers(p, plan, all);
	if ((!p->own.n && !all) || !p->npeers)
		return HD_OK;
	p->here = hd_arena_take(arena, (size_t)nsyncs * p->npeers, 1);
	p->missing = hd_arena_take(arena, nsyncs, sizeof *p->missing);
	if (!p->here || !p->missing)
		return no_memory(w, diag);
	*part = p;
	return HD_OK;
}

enum hd_err hd_meeting_take(struct hd_worker *w, const struct hd_meeting_part *p, struct hd_diag *diag)
{
	struct hd_meeting *m = w->meeting;

	if (!p)
		return HD_OK;
	enum hd_err err = hd_post_room(w, 2 * m->nsyncs * p->npeers, diag);
	if (err || m->sync)
		return err;
	struct hd_meeting_sync *sync = hd_arena_take(&w->arena, m->nsyncs, sizeof *sync);
	for (uint32_t k = 0; sync && k < m->nsyncs; k++) {
		const uint64_t bytes = sync_of(w, k)->bytes;
		sync[k] = (struct hd_meeting_sync){ .bytes = bytes,
			.in = hd_arena_take(&w->arena, bytes, w->task->job->nvns),
			.out = hd_arena_take(&w->arena, bytes, w->task->job->nvns) };
		if (!sync[k].in || !sync[k].out)
			sync = NULL;
	}
	if (!sync)
		return no_memory(w, diag);
	hd_lock_take(&w->post->lock);
	m->sync = sync;
	hd_lock_give(&w->post->lock);
	return HD_OK;
}

/* ---- letters ---- */

static struct hd_dist_letter letter_of(const struct hd_meeting_part *p, const struct hd_meeting_peer *peer,
	uint32_t k, uint64_t bytes, bool send)
{
	return (struct hd_dist_letter){ .kind = HD_XFER_MOMENTS, .send = send, .stage = (uint16_t)k,
		.from = send ? p->self : peer->worker, .to = send ? peer->worker : p->self,
		.len = (send ? p->own.n : peer->n) * bytes };
}

static uint8_t *place_of(const struct hd_meeting_sync *s, const struct hd_meeting_peer *peer)
{
	return s->in + peer->first * s->bytes;
}

/* Workers without virtual nodes send nothing. */
static bool sends(const struct hd_meeting_part *p, const struct hd_meeting_peer *peer, bool send)
{
	return (send ? p->own.n : peer->n) > 0;
}

/* Under the lock. */
static void queue(struct hd_worker *w, const struct hd_meeting_part *p, uint32_t i, uint32_t k, bool send)
{
	struct hd_meeting_sync *s = &w->meeting->sync[k];
	struct hd_dist_letter l = letter_of(p, &p->peer[i], k, s->bytes, send);

	l.bytes = send ? s->out : place_of(s, &p->peer[i]);
	s->borrowed += send;
	hd_post_queue(w->post, &l);
}

size_t hd_meeting_list(const struct hd_meeting *m, const struct hd_meeting_part *p, uint16_t peer, bool send,
	struct hd_dist_letter *letter)
{
	uint32_t i = 0;

	while (p && i < p->npeers && p->peer[i].worker != peer)
		i++;
	if (!p || i == p->npeers || !sends(p, &p->peer[i], send))
		return 0;
	for (uint32_t k = 0; letter && k < m->nsyncs; k++)
		letter[k] = letter_of(p, &p->peer[i], k, m->sync[k].bytes, send);
	return m->nsyncs;
}

enum hd_err hd_meeting_arrived(struct hd_meeting *m, struct hd_meeting_part *p,
	const struct hd_dist_letter *l)
{
	uint32_t i = 0;

	while (i < p->npeers && p->peer[i].worker != l->from)
		i++;
	if (l->stage >= m->nsyncs || i == p->npeers || p->here[l->stage * p->npeers + i] ||
		l->bytes != place_of(&m->sync[l->stage], &p->peer[i]))
		return HD_E_STALE;
	p->here[l->stage * p->npeers + i] = ARRIVED;
	assert(p->missing[l->stage]);
	p->missing[l->stage]--;
	return HD_OK;
}

void hd_meeting_void(struct hd_meeting *m)
{
	for (uint32_t k = 0; m->sync && k < m->nsyncs; k++)
		m->sync[k].borrowed = 0;
}

/* ---- a pass ---- */

void hd_meeting_begin(struct hd_worker *w, struct hd_meeting_part *p)
{
	struct hd_meeting *m = w->meeting;

	m->waited_ns = 0;
	hd_lock_take(&w->post->lock);
	hd_post_open(w->post, p, (uint64_t)w->count.step);
	memset(p->here, 0, (size_t)m->nsyncs * p->npeers);
	for (uint32_t k = 0; k < m->nsyncs; k++) {
		p->missing[k] = 0;
		for (uint32_t i = 0; i < p->npeers; i++) {
			if (!sends(p, &p->peer[i], false))
				continue;
			p->missing[k]++;
			queue(w, p, i, k, false);
		}
	}
	hd_lock_give(&w->post->lock);
	hd_post_call(w);
}

static void copy_own(const struct hd_meeting_part *p, const struct hd_sync *s, uint8_t *out)
{
	for (uint32_t i = 0; i < p->own.n; i++)
		memcpy(out + i * s->bytes, s->leaf + p->order[p->own.first + i] * s->bytes, s->bytes);
}

static void take_leaves(const struct hd_meeting_part *p, const struct hd_meeting_peer *peer,
	const struct hd_sync *s, const uint8_t *in)
{
	for (uint32_t v = peer->first; v < peer->first + peer->n; v++)
		memcpy(s->leaf + p->order[v] * s->bytes, in + v * s->bytes, s->bytes);
}

uint32_t hd_dist_nsyncs(const struct hd_worker *w) { return w->meeting->nsyncs; }
uint64_t hd_dist_awaited_ns(const struct hd_worker *w) { return w->meeting->waited_ns; }

/* Waits while *n is not 0; false: fenced before. */
static bool await(struct hd_worker *w, const uint32_t *n)
{
	const struct hd_meeting_part *p = w->step->work->meeting;
	const int64_t began = hd_clock_now_ns(&w->clock);

	hd_lock_take(&w->post->lock);
	atomic_store(&w->meeting->waits, true);
	while (*n && !p->fenced)
		hd_post_wait(w);
	atomic_store(&w->meeting->waits, false);
	w->meeting->waited_ns += (uint64_t)(hd_clock_now_ns(&w->clock) - began);
	const bool all = *n == 0;
	hd_lock_give(&w->post->lock);
	return all;
}

static enum hd_err gone(const struct hd_worker *w, uint32_t k, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_STALE, "step %lld: other workers are gone, at meeting %u of %u",
		(long long)w->count.step, k, w->meeting->nsyncs);
}

void hd_meeting_offer(struct hd_worker *w, const struct hd_sync *s)
{
	const struct hd_meeting_part *p = w->step->work->meeting;

	copy_own(p, s, w->meeting->sync[s->number].out);
	hd_lock_take(&w->post->lock);
	for (uint32_t i = 0; i < p->npeers; i++)
		if (sends(p, &p->peer[i], true))
			queue(w, p, i, s->number, true);
	hd_lock_give(&w->post->lock);
	hd_post_call(w);
}

enum hd_err hd_meeting_hold(struct hd_rank *rank, const struct hd_sync *s, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	const struct hd_meeting_part *p = w->step->work->meeting;

	if (!await(w, &w->meeting->sync[s->number].borrowed))
		return gone(w, s->number, diag);
	hd_meeting_offer(w, s);
	if (!await(w, &p->missing[s->number]))
		return gone(w, s->number, diag);
	for (uint32_t i = 0; i < p->npeers; i++)
		take_leaves(p, &p->peer[i], s, w->meeting->sync[s->number].in);
	return HD_OK;
}

enum hd_err hd_meeting_ready(struct hd_worker *w, struct hd_diag *diag)
{
	for (uint32_t k = 0; k < w->meeting->nsyncs; k++)
		if (!await(w, &w->meeting->sync[k].borrowed))
			return gone(w, k, diag);
	return HD_OK;
}

void hd_meeting_look(struct hd_worker *w, const struct hd_sync *s)
{
	const struct hd_meeting_part *p = w->step->work->meeting;

	for (uint32_t i = 0; i < p->npeers; i++) {
		uint8_t *here = &p->here[s->number * p->npeers + i];
		hd_lock_take(&w->post->lock);
		const bool mine = *here == ARRIVED;
		*here = mine ? TAKEN : *here;
		hd_lock_give(&w->post->lock);
		if (!mine)
			continue;
		take_leaves(p, &p->peer[i], s, w->meeting->sync[s->number].in);
		for (uint32_t v = 0; v < p->peer[i].n; v++)
			hd_stamps_mark(w, s, p->order[p->peer[i].first + v]);
	}
}

enum hd_err hd_meeting_drain(struct hd_worker *w, struct hd_diag *diag)
{
	for (uint32_t k = 0; k < w->meeting->nsyncs; k++) {
		if (!await(w, &w->step->work->meeting->missing[k]))
			return gone(w, k, diag);
		if (sync_of(w, k)->rows)
			hd_meeting_look(w, sync_of(w, k));
	}
	return HD_OK;
}
