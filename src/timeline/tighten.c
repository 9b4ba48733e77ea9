#include "timeline/tighten.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/align_int.h"
#include "timeline/lives_int.h"

#define BUCKET_NS INT64_C(250000000)     /* of half-planes in so long the tightest of each side counts */
#define STILL 0.01                       /* ns: changes below it end the relaxation */
enum { RELAXATIONS = 1000, RESTARTS = 8, PEER_NONE = 0xffff };

struct tl_end { uint64_t flow; int64_t t; uint32_t life; bool send; };
struct tl_pair { uint32_t from, to; int64_t sent, got; bool out; };

struct tighten {
	struct hd_arena *arena;
	const struct hd_tl_lives *lives;
	struct hd_tl_clock *clock;
	struct tl_probes *probes;
	bool *mine;                       /* [lives] its clock is fitted to probes of its own */
	struct tl_end *end; uint32_t nends, ends_cap;
	struct tl_pair *transfer; uint32_t ntransfers;
	uint64_t *base;                   /* [lives + 1] where corrections of its knots begin */
	double *low, *high;
	uint32_t nkept;
	struct hd_diag *diag;
};

static enum hd_err no_memory(struct tighten *t)
{
	return hd_fail(t->diag, HD_E_NOMEM, "no memory to tighten clocks; merge without --tighten");
}

static enum hd_err read_ends(struct tighten *t, uint32_t i, const struct hd_tl_ring *ring, uint32_t piece)
{
	const struct hd_flight_info *info = &t->lives->life[i]->info;
	enum hd_err err = HD_OK;

	for (uint64_t k = 0; k < ring->piece[piece].nslots && !err; k++) {
		const uint8_t *slot = ring->piece[piece].slot + k * HD_SLOT_BYTES, *after;
		struct hd_event_transfer more;
		struct hd_event e;
		if (!hd_event_get(slot, &e) || (e.kind != HD_EVENT_SEND && e.kind != HD_EVENT_RECV) ||
			!(after = hd_tl_slot_after(ring, piece, k)) ||
			!hd_event_get_transfer(after, &more) || !more.flow)
			continue;
		err = hd_tl_grow(t->arena, &t->end, &t->ends_cap, t->nends + 1ull, sizeof *t->end, t->diag);
		if (!err)
			t->end[t->nends++] = (struct tl_end){ .flow = more.flow, .life = i,
				.t = hd_tl_local(info, e.t0) + more.first_ns,
				.send = e.kind == HD_EVENT_SEND };
	}
	return err;
}

static int by_flow(const void *a, const void *b)
{
	const struct tl_end *x = a, *y = b;

	if (x->flow != y->flow)
		return x->flow < y->flow ? -1 : 1;
	if (x->send != y->send)
		return x->send ? -1 : 1;
	return x->t < y->t ? -1 : x->t > y->t;
}

/* Flows of one send and one receive, between clocks of which one at least may move. */
static enum hd_err pair_ends(struct tighten *t)
{
	if (t->nends)
		qsort(t->end, t->nends, sizeof *t->end, by_flow);
	t->transfer = hd_arena_take(t->arena, t->nends / 2 + 1ull, sizeof *t->transfer);
	if (!t->transfer)
		return no_memory(t);
	for (uint32_t i = 0, n; i < t->nends; i += n) {
		const struct tl_end *e = &t->end[i];
		for (n = 1; i + n < t->nends && e[n].flow == e->flow; n++)
			;
		if (n != 2 || !e[0].send || e[1].send || e[0].life == e[1].life ||
			!t->clock[e[0].life].aligned || !t->clock[e[1].life].aligned ||
			(!t->mine[e[0].life] && t->clock[e[0].life].nknots) ||
			(!t->mine[e[1].life] && t->clock[e[1].life].nknots) ||
			(!t->mine[e[0].life] && !t->mine[e[1].life]))
			continue;
		t->transfer[t->ntransfers++] = (struct tl_pair){ .from = e[0].life, .to = e[1].life,
			.sent = e[0].t, .got = e[1].t };
	}
	return HD_OK;
}

/* ---- bounds ---- */

struct tl_side { struct hd_tl_probe probe; int64_t bucket; double width; bool upper; };

static int by_bucket(const void *a, const void *b)
{
	const struct tl_side *x = a, *y = b;

	if (x->bucket != y->bucket)
		return x->bucket < y->bucket ? -1 : 1;
	if (x->upper != y->upper)
		return x->upper ? -1 : 1;
	if (x->width < y->width || x->width > y->width)
		return x->width < y->width ? -1 : 1;
	return x->probe.t1 < y->probe.t1 ? -1 : x->probe.t1 > y->probe.t1;
}

static int by_t1(const void *a, const void *b)
{
	const struct hd_tl_probe *x = a, *y = b;

	if (x->t1 != y->t1)
		return x->t1 < y->t1 ? -1 : 1;
	return x->t2 < y->t2 ? -1 : x->t2 > y->t2;
}

/* What the transfer says of the clock of i, by the bounds of the other. False: its time is not among the
 * probes'. */
static bool side_of(const struct tighten *t, const struct tl_pair *x, uint32_t i, struct tl_side *side)
{
	bool upper = x->from == i;
	const struct tl_probes *p = &t->probes[i];
	int64_t at = upper ? x->sent : x->got, error,
		other = hd_tl_reference(&t->clock[upper ? x->to : x->from], upper ? x->got : x->sent, &error);

	if (at < p->at[0].t1 || at > p->at[p->n - 1].t1)
		return false;
	int64_t bound = upper ? other + error : other - error;
	*side = (struct tl_side){ .bucket = at / BUCKET_NS, .upper = upper, .probe = { .t1 = at, .t4 = at,
		.t2 = upper ? bound : bound + HD_TL_ONE_SIDE,
		.t3 = upper ? bound - HD_TL_ONE_SIDE : bound } };
	double off = (double)(bound - hd_tl_reference(&t->clock[i], at, NULL));
	side->width = upper ? off : -off;
	return true;
}

static enum hd_err fit_again(struct tighten *t, uint32_t i, struct hd_tl_clock *clock)
{
	const struct tl_probes *p = &t->probes[i];
	uint32_t n = 0, all = p->n;
	struct tl_side *side;
	struct hd_tl_probe *probe;

	for (uint32_t k = 0; k < t->ntransfers; k++)
		n += t->transfer[k].from == i || t->transfer[k].to == i;
	side = hd_arena_take(t->arena, n + 1ull, sizeof *side);
	probe = hd_arena_take(t->arena, (uint64_t)n + p->n, sizeof *probe);
	if (!side || !probe)
		return no_memory(t);
	n = 0;
	for (uint32_t k = 0; k < t->ntransfers; k++)
		if (t->transfer[k].from == i || t->transfer[k].to == i)
			n += side_of(t, &t->transfer[k], i, &side[n]);
	if (n)
		qsort(side, n, sizeof *side, by_bucket);
	memcpy(probe, p->at, p->n * sizeof *probe);
	for (uint32_t k = 0; k < n; k++)
		if (!k || side[k].bucket != side[k - 1].bucket || side[k].upper != side[k - 1].upper)
			probe[all++] = side[k].probe;
	qsort(probe + 1, all - 1, sizeof *probe, by_t1);        /* the first stays: it gives the offset */
	return hd_tl_fit(t->arena, probe, all, p->begin, p->end, clock, t->diag);
}

static enum hd_err tighten_bounds(struct tighten *t)
{
	enum hd_err err = HD_OK;

	for (uint32_t round = 0; round < HD_TL_TIGHTEN_ROUNDS; round++)
		for (uint32_t i = 0; i < t->lives->n && !err; i++) {
			struct hd_tl_clock fitted;
			if (!t->mine[i])
				continue;
			err = fit_again(t, i, &fitted);
			if (!err && fitted.nsteps > t->clock[i].nsteps) {
				t->nkept++;
				t->mine[i] = false;
			} else if (!err)
				t->clock[i] = fitted;
		}
	return err;
}

/* ---- estimates ---- */

/* The corrections that count at a time: of the knots before and after it. None of a clock that stands. */
static uint32_t knots_at(const struct tighten *t, uint32_t i, int64_t at, uint64_t out[2])
{
	const struct hd_tl_clock *c = &t->clock[i];
	uint32_t low = 0, high = c->nknots;

	if (!t->mine[i])
		return 0;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (c->knot[middle].t <= at)
			low = middle;
		else
			high = middle;
	}
	out[0] = t->base[i] + low;
	out[1] = t->base[i] + low + 1;
	return at < c->knot[0].t || low + 1 == c->nknots ? 1 : 2;
}

/* x_to - x_from >= c, for each correction of either end. */
static bool relax(struct tighten *t, const struct tl_pair *x)
{
	uint64_t to[2], from[2];
	uint32_t nto = knots_at(t, x->to, x->got, to), nfrom = knots_at(t, x->from, x->sent, from);
	double c = (double)(hd_tl_reference(&t->clock[x->from], x->sent, NULL) -
		hd_tl_reference(&t->clock[x->to], x->got, NULL)) + 1, low = nfrom ? -INFINITY : 0,
		high = nto ? INFINITY : 0;
	bool moved = false;

	for (uint32_t k = 0; k < nfrom; k++)
		low = fmax(low, t->low[from[k]]);
	for (uint32_t k = 0; k < nto; k++)
		high = fmin(high, t->high[to[k]]);
	for (uint32_t k = 0; k < nto; k++)
		if (t->low[to[k]] < low + c - STILL) {
			t->low[to[k]] = low + c;
			moved = true;
		}
	for (uint32_t k = 0; k < nfrom; k++)
		if (t->high[from[k]] > high - c + STILL) {
			t->high[from[k]] = high - c;
			moved = true;
		}
	return moved;
}

static void begin_again(struct tighten *t)
{
	for (uint32_t i = 0; i < t->lives->n; i++)
		for (uint32_t k = 0; t->mine[i] && k < t->clock[i].nknots; k++) {
			const struct hd_tl_knot *knot = &t->clock[i].knot[k];
			t->low[t->base[i] + k] = knot->lo - knot->estimate;
			t->high[t->base[i] + k] = knot->hi - knot->estimate;
		}
}

static bool contradicts(const struct tighten *t, uint64_t k) { return t->low[k] > t->high[k] + 2 * STILL; }

/* Leaves out what meets a knot that has no correction left; how many. */
static uint32_t leave_out(struct tighten *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->ntransfers; i++) {
		struct tl_pair *x = &t->transfer[i];
		uint64_t at[4];
		uint32_t count = knots_at(t, x->to, x->got, at);
		count += knots_at(t, x->from, x->sent, at + count);
		for (uint32_t k = 0; k < count && !x->out; k++)
			x->out = contradicts(t, at[k]);
		n += x->out;
	}
	return n;
}

static enum hd_err tighten_estimates(struct tighten *t)
{
	uint64_t n = 0;
	uint32_t out = 0, now = 0;

	t->base = hd_arena_take(t->arena, t->lives->n + 1ull, sizeof *t->base);
	for (uint32_t i = 0; t->base && i < t->lives->n; i++) {
		t->base[i] = n;
		n += t->mine[i] ? t->clock[i].nknots : 0;
	}
	t->low = hd_arena_take(t->arena, n + 1, sizeof *t->low);
	t->high = hd_arena_take(t->arena, n + 1, sizeof *t->high);
	if (!t->base || !t->low || !t->high)
		return no_memory(t);
	for (uint32_t restart = 0; restart < RESTARTS; restart++, out = now) {
		bool moved = true;
		begin_again(t);
		for (uint32_t round = 0; moved && round < RELAXATIONS; round++) {
			moved = false;
			for (uint32_t i = 0; i < t->ntransfers; i++)
				moved |= !t->transfer[i].out && relax(t, &t->transfer[i]);
		}
		now = leave_out(t);
		if (now == out)
			break;
	}
	for (uint32_t i = 0; i < t->lives->n; i++)
		for (uint32_t k = 0; t->mine[i] && k < t->clock[i].nknots; k++) {
			uint64_t at = t->base[i] + k;
			t->nkept += contradicts(t, at);
			if (!contradicts(t, at))
				t->clock[i].knot[k].estimate += (t->low[at] + t->high[at]) / 2;
		}
	return HD_OK;
}

enum hd_err hd_tl_tighten(struct hd_arena *arena, const struct hd_tl_lives *lives, struct hd_tl_clock *clock,
	uint32_t *nkept, struct hd_diag *diag)
{
	static const struct hd_flight_info plain = { .clock = HD_FLIGHT_CLOCK_MONOTONIC_RAW };
	struct tighten t = { .arena = arena, .lives = lives, .clock = clock, .diag = diag };
	const struct hd_flight_info *other = lives->n && lives->life[0]->info.worker == UINT32_MAX ?
		&lives->life[0]->info : &plain;

	t.probes = hd_arena_take(arena, lives->n + 1ull, sizeof *t.probes);
	t.mine = hd_arena_take(arena, lives->n + 1ull, sizeof *t.mine);
	enum hd_err err = t.probes && t.mine ? HD_OK : no_memory(&t);
	for (uint32_t i = 0; i < lives->n && !err; i++) {
		err = hd_tl_probes_of(arena, lives->life[i], other, &t.probes[i], diag);
		t.mine[i] = !err && clock[i].aligned && clock[i].nknots && t.probes[i].n >= 2;
		for (uint32_t r = 0; r < lives->life[i]->info.nrings && !err; r++)
			for (uint32_t k = 0; k < lives->life[i]->ring[r].npieces && !err; k++)
				err = read_ends(&t, i, &lives->life[i]->ring[r], k);
	}
	if (!err)
		err = pair_ends(&t);
	if (!err)
		err = tighten_bounds(&t);
	if (!err)
		err = tighten_estimates(&t);
	if (!err)
		*nkept = t.nkept;
	return err;
}
