/* The ends of steps, simulated (reorder.h). */
#include "timeline/analyze/reorder_play.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/xfer.h"
#include "planner/ports.h"

_Static_assert((int)HD_TL_MEMBERS <= (int)HD_PORTS, "a worker has a port each way");

static const double never = INFINITY;

/* What is still to come of a bucket to a worker goes first. */
static void want(struct ends_play *p, uint32_t b, uint32_t m)
{
	if (hd_tl_bucket(p, b, m)->wanted || !(p->how->now ? p->e->order->wants_now : p->e->order->wants_was))
		return;
	hd_tl_bucket(p, b, m)->wanted = true;
}

/* ---- sums ---- */

/* A sum is to be at m, made there or passed on by it, from t on. */
static void sum_from(struct ends_play *p, uint32_t b, uint32_t m, double t, uint32_t why)
{
	const double off = p->off[b] > 0 ? p->off[b] / p->how->compute : 0,
		own = p->turn[m].pass - (p->e->within ? off : 0);

	t = why == HD_TL_MADE && own > t ? own : t;
	hd_tl_due_push(p, t + p->e->delay[m][why], p->nmoved + b * p->n + m);
}

/* Parameters go when all is there that they are made of. */
static void release(struct ends_play *p, uint32_t b, uint32_t m)
{
	const struct played_bucket *at = hd_tl_bucket(p, b, m);

	for (uint32_t k = at->first; k < at->end && at->made; k++) {
		const uint32_t i = p->sends[k];
		const bool parm = hd_tl_xfer(p, i)->kind == HD_XFER_PARAMETERS;
		if (p->state[i] != HD_TL_WAITS)
			continue;
		if (!parm || (!p->turn[m].metrics && !(p->e->norms && p->unmade)))
			hd_tl_may_go(p, i);
	}
}

static void release_all(struct ends_play *p, uint32_t m)
{
	for (uint32_t b = 0; b < p->nb; b++)
		release(p, b, m);
}

static void sum_is_at(struct ends_play *p, uint32_t b, uint32_t m)
{
	struct played_bucket *at = hd_tl_bucket(p, b, m);

	at->made = at->here = true;
	p->over = fmax(p->over, p->now);
	p->unmade -= p->unmade > 0;
	release(p, b, m);
	for (uint32_t w = 0; p->e->norms && !p->unmade && w < p->n; w++)
		release_all(p, w);
}

/* ---- the next forward pass ---- */

/* What stands in the way of the node at hand: a bucket; HD_TL_NONE: nothing. */
static uint32_t lacks(struct ends_play *p, uint32_t m)
{
	const struct hd_tl_node *node = &p->e->order->node[p->turn[m].node];

	for (uint32_t k = 0; k < node->n; k++)
		if (!hd_tl_bucket(p, p->e->order->reads[node->first + k], m)->here)
			return p->e->order->reads[node->first + k];
	return HD_TL_NONE;
}

static void run_node(struct ends_play *p, uint32_t m)
{
	struct played_turn *t = &p->turn[m];
	const struct hd_tl_order *o = p->e->order;

	t->until = p->now < t->pass ? t->pass : never;
	t->runs = false;
	if (!p->e->ahead || t->node == o->nnodes || p->now < t->pass || t->metrics)
		return;
	const uint32_t b = lacks(p, m);
	if (b != HD_TL_NONE) {
		want(p, b, m);
		return;
	}
	const struct hd_tl_node *node = &o->node[t->node];
	t->bring_ns = 0;
	for (uint32_t k = 0; k < node->n; k++) {
		struct played_bucket *at = hd_tl_bucket(p, o->reads[node->first + k], m);
		t->bring_ns += at->parm ? 0 : p->e->bring * p->size[o->reads[node->first + k]];
		at->parm = true;          /* it is made once */
	}
	t->node_ns = node->share * t->fore;
	t->until = p->now + t->node_ns + t->bring_ns;
	t->runs = true;
}

static void node_ends(struct ends_play *p, uint32_t m)
{
	struct played_turn *t = &p->turn[m];

	if (t->runs) {
		t->ahead += t->node_ns;
		t->node++;
	}
	run_node(p, m);
}

/* ---- the wire ---- */

static void arrived(struct ends_play *p, uint32_t i)
{
	const struct hd_tl_moved *m = hd_tl_xfer(p, i);
	struct played_bucket *at = hd_tl_bucket(p, m->bucket, m->to);
	struct played_turn *to = &p->turn[m->to];

	p->over = fmax(p->over, p->now);
	if (m->kind == HD_XFER_METRICS) {
		if (!--to->metrics)
			release_all(p, m->to);
	} else if (m->kind == HD_XFER_PARTIAL) {
		if (!--at->due)
			sum_from(p, m->bucket, m->to, p->now, HD_TL_MADE);
	} else {
		at->here = true;
		at->parm = m->kind == HD_XFER_PARAMETERS;
		if (m->kind == HD_XFER_SUM && at->end > at->first)
			sum_from(p, m->bucket, m->to, p->now, HD_TL_PASSED);
	}
	if (!to->runs)
		run_node(p, m->to);
}

static void comes(struct ends_play *p)
{
	const struct play_due d = hd_tl_due_pop(p);
	const uint32_t i = d.what;

	if (i >= p->nmoved + p->nb * p->n) {
		arrived(p, i - p->nmoved - p->nb * p->n);
	} else if (i >= p->nmoved) {
		const uint32_t at = i - p->nmoved, m = at % p->n;
		sum_is_at(p, at / p->n, m);
		if (!p->turn[m].runs)
			run_node(p, m);
	} else {
		hd_tl_may_go(p, i);
	}
}

/* Until the next thing comes, or a message or its chunk is over. False: nothing is left. */
static bool go_on(struct ends_play *p)
{
	struct hd_port_flow flow[HD_TL_MEMBERS * HD_TL_MEMBERS];
	struct played_pair *of[HD_TL_MEMBERS * HD_TL_MEMBERS];
	double until = p->nheap ? p->heap[0].t : never;
	uint32_t nflows = 0, node = HD_TL_NONE;

	for (uint32_t at = 0; at < p->n * p->n; at++)
		if (p->pair[at].first < p->pair[at].end) {
			flow[nflows] = (struct hd_port_flow){ .from = at / p->n, .to = at % p->n };
			of[nflows++] = &p->pair[at];
		}
	hd_ports_share(flow, nflows, p->n, p->how->rate);
	for (uint32_t i = 0; i < nflows; i++)
		until = fmin(until, p->now + of[i]->to_come / flow[i].rate);
	for (uint32_t m = 0; m < p->n; m++)
		if (p->turn[m].until < until || (p->turn[m].until <= until && node == HD_TL_NONE &&
			p->turn[m].until < never)) {
			until = p->turn[m].until;
			node = m;
		}
	if (until >= never)
		return false;
	const double ns = until > p->now ? until - p->now : 0;
	p->now = fmax(p->now, until);
	for (uint32_t i = 0; i < nflows; i++) {
		of[i]->to_come -= flow[i].rate * ns;
		/* a rest that takes less than the clock can tell is none: far from 0 it is coarse */
		if (of[i]->to_come < 0.5 || p->now + of[i]->to_come / flow[i].rate <= p->now)
			hd_tl_chunk_came(p, of[i]);
	}
	if (node != HD_TL_NONE && p->turn[node].until <= p->now)
		node_ends(p, node);
	else if (p->nheap && p->heap[0].t <= p->now)
		comes(p);
	return true;
}

/* ---- a step ---- */

static void sort_sends(struct ends_play *p)
{
	const uint32_t all = p->nb * p->n;

	for (uint32_t i = 0; i < p->nmoved; i++)
		if (hd_tl_xfer(p, i)->kind == HD_XFER_SUM || hd_tl_xfer(p, i)->kind == HD_XFER_PARAMETERS)
			hd_tl_bucket(p, hd_tl_xfer(p, i)->bucket, hd_tl_xfer(p, i)->from)->end++;
	for (uint32_t at = 0, n = 0; at < all; at++) {
		const uint32_t count = p->at[at].end;
		p->at[at].first = p->at[at].end = n;
		n += count;
	}
	for (uint32_t i = 0; i < p->nmoved; i++) {
		const struct hd_tl_moved *m = hd_tl_xfer(p, i);
		if (m->kind == HD_XFER_SUM || m->kind == HD_XFER_PARAMETERS)
			p->sends[hd_tl_bucket(p, m->bucket, m->from)->end++] = i;
	}
}

/* What is sent by the clock of a pass: partial sums, metrics. */
static void send_own(struct ends_play *p)
{
	for (uint32_t i = 0; i < p->nmoved; i++) {
		const struct hd_tl_moved *m = hd_tl_xfer(p, i);
		const struct hd_tl_turn *was = &p->step->turn[m->from];
		const double behind = m->enqueued - was->pass;
		p->left[i] = p->unsent[i] = fmax(m->bytes, 1);
		p->state[i] = HD_TL_WAITS;
		if (m->kind == HD_XFER_PARTIAL || m->kind == HD_XFER_METRICS)
			hd_tl_due_push(p, p->turn[m->from].pass + (behind < 0 ? behind / p->how->compute :
				behind), i);
		p->turn[m->to].metrics += m->kind == HD_XFER_METRICS;
		if (m->kind == HD_XFER_METRICS)
			continue;
		struct played_bucket *to = hd_tl_bucket(p, m->bucket, m->to);
		to->due += m->kind == HD_XFER_PARTIAL;
		to->gets |= m->kind == HD_XFER_SUM;
		if (m->kind != HD_XFER_PARTIAL)
			p->size[m->bucket] = m->bytes;
		else if (p->off[m->bucket] < 0 || -behind < p->off[m->bucket])
			p->off[m->bucket] = behind < 0 ? -behind : 0;
	}
}

static void begin_step(struct ends_play *p, const struct hd_tl_ending *step)
{
	p->step = step;
	p->nmoved = step->nmoved;
	p->nheap = p->unmade = 0;
	p->now = p->over = 0;
	memset(p->at, 0, (size_t)p->nb * p->n * sizeof *p->at);
	for (uint32_t b = 0; b < p->nb; b++)
		p->off[b] = -1;
	for (uint32_t i = 0; i < p->n * p->n; i++) {
		p->pair[i].n = p->pair[i].first = p->pair[i].end = 0;
		p->pair[i].under_way = 0;
	}
	for (uint32_t m = 0; m < p->n; m++) {
		struct played_turn *t = &p->turn[m];
		t->metrics = t->node = 0;
		t->ahead = 0;
		t->runs = false;
		t->until = t->pass;
		p->over = fmax(p->over, t->pass);
	}
	send_own(p);
	sort_sends(p);
	for (uint32_t at = 0; at < p->nb * p->n; at++) {
		struct played_bucket *b = &p->at[at];
		p->unmade += b->due || b->end > b->first;
		if (!b->due && b->end > b->first && !b->gets)
			sum_from(p, at / p->n, at % p->n, 0, HD_TL_MADE);
	}
}

/* Nodes that begin before `limit`, after all has come; a node is not broken off. When the last of them is
 * done, or `limit`. */
static double run_out(struct ends_play *p, uint32_t m, double limit)
{
	struct played_turn *t = &p->turn[m];

	while (t->runs && t->until < limit) {
		p->now = t->until;
		node_ends(p, m);
	}
	if (!t->runs)
		return limit;
	t->ahead += t->node_ns;
	t->node++;
	t->runs = false;
	return t->until;
}

/* A step ends at each worker when all is everywhere, and the next one begins when it has ended at all. */
static void end_step(struct ends_play *p)
{
	double all = 0;

	for (uint32_t m = 0; m < p->n; m++) {
		p->turn[m].end = run_out(p, m, p->over + p->e->last[m]);
		all = fmax(all, p->turn[m].end);
	}
	for (uint32_t m = 0; m < p->n; m++) {
		p->now = p->turn[m].end;
		run_node(p, m);
		p->turn[m].open = run_out(p, m, fmax(all + p->e->pause[m], p->now));
	}
}

static enum hd_err play_step(struct ends_play *p, const struct hd_tl_ending *step, struct hd_diag *diag)
{
	uint32_t left = step->nmoved;

	begin_step(p, step);
	while (go_on(p)) {
		bool all = p->nheap == 0;
		for (uint32_t i = 0; i < p->n * p->n && all; i++)
			all = !p->pair[i].n && p->pair[i].first == p->pair[i].end;
		if (all)
			break;
	}
	for (uint32_t i = 0; i < p->nmoved; i++)
		left -= p->state[i] == HD_TL_DONE;
	if (left)
		return hd_fail(diag, HD_E_REFUSED, "step %llu is incomplete in the recording: %u of its "
			"transfers follow from none that it has; replay fewer steps (--steps N)",
			(unsigned long long)step->number, left);
	end_step(p);
	return HD_OK;
}

/* ---- steps ---- */

static bool open_play(struct ends_play *p, struct hd_arena *arena)
{
	const size_t all = (size_t)p->nb * p->n;
	size_t most = 0, chunks = 0;
	bool whole;

	for (uint32_t k = 0; k < p->e->nsteps; k++) {
		size_t n = 0;
		most = p->e->step[k].nmoved > most ? p->e->step[k].nmoved : most;
		for (uint32_t i = 0; i < p->e->step[k].nmoved; i++)
			n += 1 + (size_t)(p->e->step[k].moved[i].bytes / HD_TL_REORDER_CHUNK);
		chunks = n > chunks ? n : chunks;
	}
	p->at = hd_arena_take(arena, all + 1, sizeof *p->at);
	p->off = hd_arena_take(arena, (size_t)p->nb + 1, sizeof *p->off);
	p->size = hd_arena_take(arena, (size_t)p->nb + 1, sizeof *p->size);
	p->sends = hd_arena_take(arena, most + 1, sizeof *p->sends);
	p->left = hd_arena_take(arena, most + 1, sizeof *p->left);
	p->unsent = hd_arena_take(arena, most + 1, sizeof *p->unsent);
	p->state = hd_arena_take(arena, most + 1, sizeof *p->state);
	p->heap = hd_arena_take(arena, 2 * most + all + p->n + 1, sizeof *p->heap);
	p->pair = hd_arena_take(arena, (size_t)p->n * p->n, sizeof *p->pair);
	whole = p->at && p->off && p->size && p->sends && p->left && p->unsent && p->state && p->heap &&
		p->pair;
	for (uint32_t i = 0; i < p->n * p->n && whole; i++) {
		p->pair[i].at = hd_arena_take(arena, most + 1, sizeof *p->pair[i].at);
		p->pair[i].way = hd_arena_take(arena, chunks + 1, sizeof *p->pair[i].way);
		whole = p->pair[i].at && p->pair[i].way;
	}
	return whole;
}

/* The forward pass that begins while step k ends: of the next one, as recorded. */
static double fore_of(const struct hd_tl_endings *e, uint32_t k, uint32_t m)
{
	k = k + 1 < e->nsteps ? k : k ? k - 1 : 0;
	const struct hd_tl_turn *next = k + 1 < e->nsteps ? &e->step[k + 1].turn[m] : NULL;
	return e->step[k].turn[m].ahead + (next ? next->between + next->fore : 0);
}

enum hd_err hd_tl_endings_play(const struct hd_tl_endings *e, const struct hd_tl_play *how, double *took,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct ends_play p = { .e = e, .how = how, .n = e->n, .nb = e->order->nbuckets };
	double begin = never, end = 0;
	enum hd_err err = open_play(&p, arena) ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory to replay transfers");

	for (uint32_t k = 0; k < e->nsteps && !err; k++) {
		for (uint32_t m = 0; m < p.n; m++) {
			const struct hd_tl_turn *turn = &e->step[k].turn[m];
			struct played_turn *t = &p.turn[m];
			const double from = k ? t->open : turn->open,
				did = k ? e->step[k - 1].turn[m].ahead + turn->between : 0;
			t->pass = from + fmax(0, (turn->pass - turn->open + did) / how->compute - (k ?
				t->ahead : 0));
			t->fore = fore_of(e, k, m) / how->compute;
			begin = k ? begin : fmin(begin, turn->begin);
		}
		err = play_step(&p, &e->step[k], diag);
	}
	for (uint32_t m = 0; m < p.n; m++)
		end = fmax(end, p.turn[m].end);
	*took = end - begin;
	return err;
}
