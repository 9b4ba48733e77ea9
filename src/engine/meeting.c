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
	w->meeting->borrowed = hd_arena_take(&w->arena, w->meeting->nsyncs + 1u,
		sizeof *w->meeting->borrowed);
	return w->meeting->borrowed ? HD_OK : no_memory(w, diag);
}

/* The block of the parts at hand, and smaller ones before it. */
uint64_t hd_meeting_bytes(const struct hd_worker *w)
{
	const struct hd_meeting *m = w->meeting;

	return m->taken_bytes + (m->need_bytes > m->cap_bytes ? m->need_bytes : 0);
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

/* Rows of both directions are met at by many syncs: lists are made once for each. */
static enum hd_err find_rows(const struct hd_worker *w, struct hd_meeting_part *p, uint32_t k,
	const uint16_t *worker_of, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_ghosts *ghosts = &sync_of(w, k)->ghosts;
	struct hd_meeting_sync *s = &p->sync[k];
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < k; i++)
		if (p->sync[i].sent && sync_of(w, i)->ghosts.ghost == ghosts->ghost) {
			s->sent = p->sync[i].sent;
			s->received = p->sync[i].received;
			return HD_OK;
		}
	struct hd_ghost_rows *sent = hd_arena_take(arena, p->npeers, sizeof *sent),
		*received = hd_arena_take(arena, p->npeers, sizeof *received);
	if (!sent || !received)
		return no_memory(w, diag);
	for (uint32_t i = 0; i < p->npeers && !err; i++) {
		const uint16_t peer = p->peer[i].worker;
		err = hd_ghost_rows_make(ghosts, worker_of, p->self, peer, &sent[i], arena, diag);
		err = err ? err : hd_ghost_rows_make(ghosts, worker_of, peer, p->self, &received[i], arena,
			diag);
	}
	s->sent = sent;
	s->received = received;
	return err;
}

/* Places one after another; of moments one for all peers to send. */
static void place_letters(const struct hd_worker *w, struct hd_meeting_part *p, uint32_t k)
{
	const uint64_t bytes = sync_of(w, k)->bytes, row_bytes = bytes / w->task->job->per_vn;
	struct hd_meeting_sync *s = &p->sync[k];

	for (uint32_t i = 0; i < p->npeers; i++) {
		s->in[i] = (struct hd_meeting_place){ p->bytes,
			s->sent ? s->received[i].n * row_bytes : p->peer[i].n * bytes };
		p->bytes += s->in[i].len;
	}
	for (uint32_t i = 0; i < p->npeers; i++) {
		s->out[i] = (struct hd_meeting_place){ p->bytes,
			s->sent ? s->sent[i].n * row_bytes : p->own.n * bytes };
		p->bytes += s->sent || i + 1 == p->npeers ? s->out[i].len : 0;
	}
}

static enum hd_err make_syncs(const struct hd_worker *w, struct hd_meeting_part *p,
	const struct hd_plan *plan, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t nsyncs = w->meeting->nsyncs;
	uint16_t *worker_of = hd_arena_take(arena, plan->nvns, sizeof *worker_of);
	struct hd_meeting_place *place = hd_arena_take(arena, 2 * (size_t)nsyncs * p->npeers, sizeof *place);
	enum hd_err err = HD_OK;

	p->sync = hd_arena_take(arena, nsyncs, sizeof *p->sync);
	p->here = hd_arena_take(arena, (size_t)nsyncs * p->npeers, 1);
	p->missing = hd_arena_take(arena, nsyncs, sizeof *p->missing);
	if (!worker_of || !place || !p->sync || !p->here || !p->missing)
		return no_memory(w, diag);
	for (uint32_t v = 0; v < plan->nvns; v++)
		worker_of[v] = plan->worker[plan->map[v]];
	for (uint32_t k = 0; k < nsyncs && !err; k++) {
		p->sync[k].in = place + 2 * (size_t)k * p->npeers;
		p->sync[k].out = p->sync[k].in + p->npeers;
		if (sync_of(w, k)->ghosts.ghost)
			err = find_rows(w, p, k, worker_of, arena, diag);
		if (!err)
			place_letters(w, p, k);
	}
	return err;
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
	p->number = ++w->meeting->nparts;
	p->order = hd_arena_take(arena, plan->nvns, sizeof *p->order);
	p->peer = hd_arena_take(arena, nworkers_of(plan), sizeof *p->peer);
	if (!p->order || !p->peer)
		return no_memory(w, diag);
	find_peers(p, plan, all);
	if ((!p->own.n && !all) || !p->npeers)
		return HD_OK;
	enum hd_err err = make_syncs(w, p, plan, arena, diag);
	*part = err ? NULL : p;
	return err;
}

enum hd_err hd_meeting_take(struct hd_worker *w, struct hd_meeting_part *p, struct hd_diag *diag)
{
	struct hd_meeting *m = w->meeting;

	if (!p)
		return HD_OK;
	enum hd_err err = hd_post_room(w, 2 * m->nsyncs * p->npeers, diag);
	if (err)
		return err;
	if (p->bytes > m->cap_bytes) {
		uint8_t *block = hd_arena_take(&w->arena, p->bytes, 1);
		if (!block)
			return no_memory(w, diag);
		m->block = block;
		m->cap_bytes = p->bytes;
		m->taken_bytes += p->bytes;
	}
	p->block = m->block;
	return HD_OK;
}

/* ---- letters ---- */

static struct hd_dist_letter letter_of(const struct hd_meeting_part *p, uint32_t i, uint32_t k, bool send)
{
	const struct hd_meeting_place *place = send ? &p->sync[k].out[i] : &p->sync[k].in[i];
	const uint16_t peer = p->peer[i].worker;

	return (struct hd_dist_letter){ .kind = HD_XFER_MOMENTS, .send = send, .stage = (uint16_t)k,
		.from = send ? p->self : peer, .to = send ? peer : p->self, .len = place->len,
		.bytes = p->block ? p->block + place->at : NULL };
}

/* Under the lock. What has no rows is no letter. */
static void queue(struct hd_worker *w, const struct hd_meeting_part *p, uint32_t i, uint32_t k, bool send)
{
	const struct hd_dist_letter l = letter_of(p, i, k, send);

	if (!l.len)
		return;
	w->meeting->borrowed[k] += send;
	w->meeting->nborrowed += send;
	hd_post_queue(w->post, &l);
}

size_t hd_meeting_list(const struct hd_meeting *m, const struct hd_meeting_part *p, uint16_t peer, bool send,
	struct hd_dist_letter *letter)
{
	uint32_t i = 0, n = 0;

	while (p && i < p->npeers && p->peer[i].worker != peer)
		i++;
	if (!p || i == p->npeers)
		return 0;
	for (uint32_t k = 0; k < m->nsyncs; k++) {
		struct hd_dist_letter l = letter_of(p, i, k, send);
		l.bytes = NULL;
		if (l.len && letter)
			letter[n] = l;
		n += l.len > 0;
	}
	return n;
}

enum hd_err hd_meeting_arrived(struct hd_meeting *m, struct hd_meeting_part *p,
	const struct hd_dist_letter *l)
{
	uint32_t i = 0;

	while (i < p->npeers && p->peer[i].worker != l->from)
		i++;
	if (l->stage >= m->nsyncs || i == p->npeers || p->here[l->stage * p->npeers + i] ||
		l->bytes != p->block + p->sync[l->stage].in[i].at || !p->sync[l->stage].in[i].len)
		return HD_E_STALE;
	p->here[l->stage * p->npeers + i] = ARRIVED;
	assert(p->missing[l->stage]);
	p->missing[l->stage]--;
	return HD_OK;
}

void hd_meeting_void(struct hd_meeting *m)
{
	memset(m->borrowed, 0, m->nsyncs * sizeof *m->borrowed);
	m->nborrowed = 0;
}

void hd_meeting_given(struct hd_meeting *m, const struct hd_dist_letter *l)
{
	assert(m->borrowed[l->stage] && m->nborrowed);
	m->borrowed[l->stage]--;
	m->nborrowed--;
}

/* ---- a pass ---- */

void hd_meeting_begin(struct hd_worker *w, struct hd_meeting_part *p)
{
	struct hd_meeting *m = w->meeting;

	m->waited_ns = 0;
	if (!p)
		return;
	hd_lock_take(&w->post->lock);
	hd_post_open(w->post, p, (uint64_t)w->count.step);
	memset(p->here, 0, (size_t)m->nsyncs * p->npeers);
	for (uint32_t k = 0; k < m->nsyncs; k++) {
		p->missing[k] = 0;
		for (uint32_t i = 0; i < p->npeers; i++) {
			p->missing[k] += p->sync[k].in[i].len > 0;
			queue(w, p, i, k, false);
		}
	}
	hd_lock_give(&w->post->lock);
	hd_post_call(w);
}

/* Of the step at hand: no letter is of another one. */
static uint8_t *leaf_of(const struct hd_worker *w, const struct hd_sync *s)
{
	return hd_sync_leaf(w, s, (uint64_t)w->count.step);
}

/* Rows of the step to a letter, or from one. */
static void copy_rows(const struct hd_worker *w, const struct hd_sync *s, const struct hd_ghost_rows *rows,
	uint8_t *letter, bool from)
{
	const uint64_t row_bytes = s->bytes / s->ghosts.rows;

	for (uint32_t r = 0; r < rows->n; r++) {
		uint8_t *row = leaf_of(w, s) + rows->row[r] * row_bytes;
		memcpy(from ? row : letter + r * row_bytes, from ? letter + r * row_bytes : row, row_bytes);
	}
}

static void copy_own(const struct hd_worker *w, const struct hd_meeting_part *p, const struct hd_sync *s)
{
	const struct hd_meeting_sync *m = &p->sync[s->number];

	for (uint32_t i = 0; i < p->npeers && m->sent; i++)
		copy_rows(w, s, &m->sent[i], p->block + m->out[i].at, false);
	for (uint32_t i = 0; i < p->own.n && !m->sent; i++)
		memcpy(p->block + m->out->at + i * s->bytes,
			leaf_of(w, s) + p->order[p->own.first + i] * s->bytes, s->bytes);
}

/* What a peer has sent, from its place to the leaves. */
static void take_letter(const struct hd_worker *w, const struct hd_meeting_part *p, const struct hd_sync *s,
	uint32_t i)
{
	const struct hd_meeting_sync *m = &p->sync[s->number];
	const struct hd_meeting_peer *peer = &p->peer[i];
	uint8_t *in = p->block + m->in[i].at;

	if (m->sent)
		copy_rows(w, s, &m->received[i], in, true);
	for (uint32_t v = 0; v < peer->n && !m->sent; v++)
		memcpy(leaf_of(w, s) + p->order[peer->first + v] * s->bytes, in + v * s->bytes, s->bytes);
}

uint32_t hd_dist_nsyncs(const struct hd_worker *w) { return w->meeting->nsyncs; }
uint64_t hd_dist_awaited_ns(const struct hd_worker *w) { return w->meeting->waited_ns; }

/* Waits while *n is not 0; false: fenced before. */
static bool await(struct hd_worker *w, const uint32_t *n)
{
	const struct hd_meeting_part *p = w->step->work->meeting;
	const int64_t began = hd_clock_now_ns(&w->clock);
	const uint64_t began_at = hd_recorder_now_of(w->spec.recorder, 0);

	hd_lock_take(&w->post->lock);
	atomic_store(&w->meeting->waits, true);
	while (*n && !p->fenced)
		hd_post_wait(w);
	atomic_store(&w->meeting->waits, false);
	w->meeting->waited_ns += (uint64_t)(hd_clock_now_ns(&w->clock) - began);
	hd_recorder_wait(w->spec.recorder, 0, began_at, HD_WAIT_TRANSFER);
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

	copy_own(w, p, s);
	hd_lock_take(&w->post->lock);
	for (uint32_t i = 0; i < p->npeers; i++)
		queue(w, p, i, s->number, true);
	hd_lock_give(&w->post->lock);
	hd_post_call(w);
}

/* Rule 2: the places of sync k, or of all of them, may be written. */
static bool are_back(struct hd_worker *w, const uint32_t *borrowed)
{
	struct hd_meeting *m = w->meeting;
	const uint32_t number = w->step->work->meeting->number;
	const bool all = await(w, m->laid == number ? borrowed : &m->nborrowed);

	m->laid = all ? number : m->laid;
	return all;
}

enum hd_err hd_meeting_hold(struct hd_rank *rank, const struct hd_sync *s, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	const struct hd_meeting_part *p = w->step->work->meeting;

	if (!are_back(w, &w->meeting->borrowed[s->number]))
		return gone(w, s->number, diag);
	hd_meeting_offer(w, s);
	if (!await(w, &p->missing[s->number]))
		return gone(w, s->number, diag);
	for (uint32_t i = 0; i < p->npeers; i++)
		take_letter(w, p, s, i);
	return HD_OK;
}

enum hd_err hd_meeting_ready(struct hd_worker *w, struct hd_diag *diag)
{
	return are_back(w, &w->meeting->nborrowed) ? HD_OK : gone(w, 0, diag);
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
		take_letter(w, p, s, i);
		for (uint32_t v = 0; v < p->peer[i].n; v++)
			hd_stamps_mark(w, s, p->order[p->peer[i].first + v], (uint64_t)w->count.step);
	}
}

enum hd_err hd_meeting_poll(struct hd_worker *w, bool *all, struct hd_diag *diag)
{
	const struct hd_meeting_part *p = w->step->work->meeting;
	uint32_t missing = 0;

	hd_lock_take(&w->post->lock);
	for (uint32_t k = 0; k < w->meeting->nsyncs; k++)
		missing += p->missing[k];
	const bool fenced = p->fenced;
	hd_lock_give(&w->post->lock);
	for (uint32_t k = 0; k < w->meeting->nsyncs; k++)
		if (sync_of(w, k)->rows)
			hd_meeting_look(w, sync_of(w, k));
	*all = missing == 0;
	return missing && fenced ? gone(w, 0, diag) : HD_OK;
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
