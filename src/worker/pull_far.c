/* The end that pulls: buffers are posted for all receives, ops follow what has come. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "worker/pull_int.h"

/* From when to when something was under way, or ready (from). */
struct pull_span { int64_t from, to; };

struct pull_far {
	struct pull *p;
	struct hd_end *e;
	bool up, over;
	uint32_t narrived, greatest;      /* of the pull at hand; rank, of those that arrived */
	struct pull_span *came;                /* [nrecvs] of each receive; to 0: not here */
	struct pull_span *ran;                 /* [nops] of each op; to 0: not over */
	uint32_t *arrival;                /* [nrecvs] */
	uint64_t displaced;
	uint32_t k;
};

static void failed(struct pull_far *f, enum hd_err err) { hd_ends_failed(&f->p->ends, HD_END_FAR, err); }
static const struct hd_order_graph *graph(const struct pull_far *f) { return f->p->spec->graph; }
static uint8_t *buffer(const struct pull_far *f, uint32_t r)
{
	return (uint8_t *)f->p->bytes[HD_END_FAR].at + f->p->at[r];
}

/* ---- what the hub says ---- */

static void on_up(void *self, const struct hd_peer_info *peer)
{
	struct pull_far *f = self;
	struct hd_transfer row[HD_PULL_RECVS];

	for (uint32_t r = 0; r < graph(f)->nrecvs; r++)
		row[r] = (struct hd_transfer){ r, 1, f->p->spec->bytes[r] };
	failed(f, hd_hub_channel(&f->e->hub, peer->worker, row, graph(f)->nrecvs, NULL, 0, &f->e->diag));
	for (uint32_t r = 0; r < graph(f)->nrecvs; r++)
		failed(f, hd_hub_post(&f->e->hub, HD_END_NEAR, r, buffer(f, r), &f->e->diag));
	f->up = true;
}

static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	struct pull_far *f = self;

	(void)worker;
	(void)why;
	if (!f->over)
		failed(f, hd_fail(&f->e->diag, HD_E_PEERLOST, "the receiver lost the sender: %s", text));
}

static void on_message(void *self, const struct hd_message *message)
{
	struct pull_far *f = self;
	f->over |= message->id == PULL_OVER;
}

static void on_arrived(void *self, const struct hd_arrival *a)
{
	struct pull_far *f = self;
	const uint32_t rank = f->p->order[pull_place(f->p, f->k)].priority[a->transfer];

	f->came[a->transfer] = (struct pull_span){ a->first_ns, a->end_ns };
	f->arrival[f->narrived++] = a->transfer;
	f->displaced += rank < f->greatest;
	f->greatest = rank > f->greatest ? rank : f->greatest;
}

/* ---- computing ---- */

/* When the op could begin: all inputs are over; 0: not yet. */
static int64_t ready_at(const struct pull_far *f, const struct hd_order_op *op, int64_t began)
{
	const struct hd_order_graph *g = graph(f);
	int64_t at = began;

	for (uint32_t i = op->first; i < op->first + op->ninputs; i++) {
		const uint32_t in = g->input[i];
		const int64_t to = in < g->nrecvs ? f->came[in].to : f->ran[in - g->nrecvs].to;
		if (!to)
			return 0;
		at = to > at ? to : at;
	}
	return at;
}

/* Of the ops that could begin now the one that was ready first; nops: none. */
static uint32_t next_op(const struct pull_far *f, int64_t began, int64_t *ready)
{
	const struct hd_order_graph *g = graph(f);
	uint32_t found = g->nops;

	for (uint32_t o = 0; o < g->nops; o++) {
		const int64_t at = f->ran[o].to ? 0 : ready_at(f, &g->op[o], began);
		if (at && (found == g->nops || at < *ready)) {
			found = o;
			*ready = at;
		}
	}
	return found;
}

struct pull_more { const struct pull_far *f; uint32_t than; };
static bool has_more(const void *more)
{
	const struct pull_more *m = more;
	return m->f->narrived > m->than;
}
static bool never(const void *f) { return (void)f, false; }
static bool is_true(const void *flag) { return *(const bool *)flag; }

static void until(struct pull_far *f, int64_t at_ns)
{
	enum hd_err err = hd_ends_wait(&f->p->ends, HD_END_FAR, never, f, at_ns, "the end of an op");

	failed(f, err == HD_E_AGAIN ? HD_OK : err);
}

/* Runs every op and takes every receive; returns when the last of them was over. */
static int64_t compute(struct pull_far *f, int64_t began)
{
	const struct hd_order_graph *g = graph(f);
	const double ns = f->p->spec->tick_ns * f->p->spec->compute;
	int64_t is_free = began, ready = began;

	for (uint32_t over = 0; (over < g->nops || f->narrived < g->nrecvs) && !f->e->err;) {
		const uint32_t o = next_op(f, began, &ready);
		if (o == g->nops) {
			failed(f, hd_ends_wait(&f->p->ends, HD_END_FAR, has_more,
				&(struct pull_more){ f, f->narrived }, INT64_MAX, "parameters"));
			continue;
		}
		f->ran[o].from = ready > is_free ? ready : is_free;
		is_free = f->ran[o].from + (int64_t)((double)g->op[o].time * ns);
		until(f, is_free);
		f->ran[o].to = is_free;
		over++;
	}
	int64_t end = is_free;
	for (uint32_t r = 0; r < g->nrecvs; r++)
		end = f->came[r].to > end ? f->came[r].to : end;
	return end;
}

/* ---- one pull after the other ---- */

static int by_begin(const void *a, const void *b)
{
	const struct pull_span *x = a, *y = b;
	return (x->from > y->from) - (x->from < y->from);
}

/* How long any of them was under way. Sorts them. */
static int64_t together(struct pull_span *at, uint32_t n)
{
	int64_t sum = 0, end = INT64_MIN;

	qsort(at, n, sizeof *at, by_begin);
	for (uint32_t i = 0; i < n; i++) {
		const int64_t from = at[i].from > end ? at[i].from : end;
		sum += at[i].to > from ? at[i].to - from : 0;
		end = at[i].to > end ? at[i].to : end;
	}
	return sum;
}

static void compare(struct pull_far *f)
{
	for (uint32_t r = 0; r < graph(f)->nrecvs && !f->e->err; r++) {
		const uint64_t len = f->p->spec->bytes[r];
		if (memcmp(buffer(f, r), (uint8_t *)f->p->bytes[HD_END_NEAR].at + f->p->at[r], len) != 0)
			failed(f, hd_fail(&f->e->diag, HD_E_INTEGRITY,
				"transfer %u did not bring the bytes that were sent; the transport is wrong: "
				"report it", r));
		memset(buffer(f, r), 0, len);
		if (!f->e->err)
			failed(f, hd_hub_post(&f->e->hub, HD_END_NEAR, r, buffer(f, r), &f->e->diag));
	}
}

static void pull_once(struct pull_far *f, uint32_t k)
{
	struct pull *p = f->p;
	const struct hd_order_graph *g = graph(f);
	struct hd_pull_row *row = &p->row[pull_order(p, k)];

	f->k = k;
	f->narrived = f->greatest = 0;
	f->displaced = 0;
	memset(f->came, 0, g->nrecvs * sizeof *f->came);
	memset(f->ran, 0, g->nops * sizeof *f->ran);
	const int64_t began = hd_clock_now_ns(p->ends.clock);
	failed(f, hd_hub_tell(&f->e->hub, HD_END_NEAR, PULL_ASKS, k, NULL, 0, &f->e->diag));
	const int64_t end = compute(f, began);
	if (f->e->err)
		return;
	struct pull_figures *x = &p->figures[pull_place(p, k)];
	x->time = (double)(end - began) * 1e-6;
	x->computing = (double)together(f->ran, g->nops) * 1e-6;
	x->transfers = (double)together(f->came, g->nrecvs) * 1e-6;
	row->displaced += f->displaced;
	memcpy(row->arrival, f->arrival, g->nrecvs * sizeof *f->arrival);
	compare(f);
}

static void take_room(struct pull_far *f)
{
	const struct hd_order_graph *g = graph(f);
	const uint32_t last = g->nrecvs - 1;

	f->came = hd_alloc(g->nrecvs * sizeof *f->came);
	f->ran = hd_alloc((g->nops + 1) * sizeof *f->ran);
	f->arrival = hd_alloc(g->nrecvs * sizeof *f->arrival);
	if (!f->came || !f->ran || !f->arrival)
		failed(f, hd_fail(&f->e->diag, HD_E_NOMEM, "no memory for %u receives", g->nrecvs));
	failed(f, hd_memory_take(f->p->at[last] + f->p->spec->bytes[last], HD_MEMORY_TOUCH,
		&f->p->bytes[HD_END_FAR], &f->e->diag));
}

void pull_far(void *user)
{
	struct pull *p = user;
	struct pull_far f = { .p = p, .e = &p->ends.end[HD_END_FAR] };
	struct hd_wire_events events;

	hd_ends_hear_nothing(&events);
	events.self = &f;
	events.up = on_up;
	events.lost = on_lost;
	events.arrived = on_arrived;
	events.message = on_message;
	take_room(&f);
	if (!f.e->err)
		failed(&f, hd_ends_join(&p->ends, &events));
	if (!f.e->err)
		failed(&f, hd_ends_wait(&p->ends, HD_END_FAR, is_true, &f.up, INT64_MAX, "the connection"));
	for (uint32_t k = 0; k < pull_count(p) && !f.e->err; k++)
		pull_once(&f, k);
	if (!f.e->err)
		failed(&f, hd_ends_wait(&p->ends, HD_END_FAR, is_true, &f.over, INT64_MAX, "the end"));
	hd_ends_finish(&p->ends, HD_END_FAR);
	hd_free(f.came);
	hd_free(f.ran);
	hd_free(f.arrival);
}
