/* Our splitter: breadth-first order, cut at half of the edges, moves by gain (Fiduccia and Mattheyses). */
#include <string.h>

#include "base/alloc.h"
#include "gnn/split_int.h"

enum { PASSES = 8 };

/* A queue of one side's vertices: the highest gain first, then the lowest number. */
struct gain_queue { uint32_t *at, n; };

struct bisecting {
	const struct hd_bisect *graph;
	uint8_t *side;
	uint32_t *order, *by_degree;      /* later: the moves of a pass; where a vertex stands in its queue */
	int64_t *gain;                    /* of the cut, if the vertex changes its side */
	struct gain_queue queue[2];
	uint64_t weight[2], count[2];
};

static uint64_t degree(const struct hd_bisect *g, uint32_t v) { return g->offset[v + 1] - g->offset[v]; }

/* Vertices by (degree, number): where the next search begins. By counting. */
static enum hd_err sort_by_degree(struct bisecting *b, struct hd_diag *diag)
{
	const struct hd_bisect *g = b->graph;
	uint64_t most = 0, sum = 0;
	uint32_t *start;

	for (uint32_t v = 0; v < g->n; v++)
		if (degree(g, v) > most)
			most = degree(g, v);
	if (!(start = hd_alloc((most + 1) * sizeof *start)))
		return hd_fail(diag, HD_E_NOMEM, "no memory to cut a graph of %u vertices", g->n);
	memset(start, 0, (most + 1) * sizeof *start);
	for (uint32_t v = 0; v < g->n; v++)
		start[degree(g, v)]++;
	for (uint64_t d = 0; d <= most; d++) {
		uint32_t n = start[d];
		start[d] = (uint32_t)sum;
		sum += n;
	}
	for (uint32_t v = 0; v < g->n; v++)
		b->by_degree[start[degree(g, v)]++] = v;
	hd_free(start);
	return HD_OK;
}

/* `side` says which are met: 1. */
static void breadth_first(struct bisecting *b)
{
	const struct hd_bisect *g = b->graph;
	uint32_t head = 0, tail = 0, from = 0;

	memset(b->side, 0, g->n);
	while (tail < g->n) {
		while (b->side[b->by_degree[from]])
			from++;
		b->order[tail++] = b->by_degree[from];
		b->side[b->by_degree[from]] = 1;
		while (head < tail) {
			uint32_t v = b->order[head++];
			for (uint64_t e = g->offset[v]; e < g->offset[v + 1]; e++)
				if (!b->side[g->at[e]]) {
					b->side[g->at[e]] = 1;
					b->order[tail++] = g->at[e];
				}
		}
	}
}

static void cut_at_half(struct bisecting *b)
{
	const struct hd_bisect *g = b->graph;
	uint64_t all = 0, left = 0;
	uint32_t n = 0;

	for (uint32_t v = 0; v < g->n; v++)
		all += g->weight[v];
	for (; n < g->n - g->least && (n < g->least || left < all / 2); n++)
		left += g->weight[b->order[n]];
	for (uint32_t i = 0; i < g->n; i++)
		b->side[b->order[i]] = i >= n;
	b->weight[0] = left;
	b->weight[1] = all - left;
	b->count[0] = n;
	b->count[1] = g->n - n;
}

/* ---- moves */

static bool before(const struct bisecting *b, uint32_t v, uint32_t w)
{
	return b->gain[v] != b->gain[w] ? b->gain[v] > b->gain[w] : v < w;
}

static void stand(struct bisecting *b, struct gain_queue *q, uint32_t place, uint32_t v)
{
	q->at[place] = v;
	b->by_degree[v] = place;
}

static void rise(struct bisecting *b, struct gain_queue *q, uint32_t place)
{
	uint32_t v = q->at[place];

	for (; place && before(b, v, q->at[(place - 1) / 2]); place = (place - 1) / 2)
		stand(b, q, place, q->at[(place - 1) / 2]);
	stand(b, q, place, v);
}

static void sink(struct bisecting *b, struct gain_queue *q, uint32_t place)
{
	uint32_t v = q->at[place];

	for (uint32_t child; (child = 2 * place + 1) < q->n; place = child) {
		if (child + 1 < q->n && before(b, q->at[child + 1], q->at[child]))
			child++;
		if (!before(b, q->at[child], v))
			break;
		stand(b, q, place, q->at[child]);
	}
	stand(b, q, place, v);
}

enum { GONE = -1 };                       /* by_degree of a vertex that is in no queue */

static uint32_t take_first(struct bisecting *b, struct gain_queue *q)
{
	uint32_t v = q->at[0], last = q->at[--q->n];

	if (q->n) {
		stand(b, q, 0, last);
		sink(b, q, 0);
	}
	b->by_degree[v] = (uint32_t)GONE;
	return v;
}

static void begin_pass(struct bisecting *b)
{
	const struct hd_bisect *g = b->graph;

	b->queue[0].n = b->queue[1].n = 0;
	for (uint32_t v = 0; v < g->n; v++) {
		int64_t sum = 0;
		for (uint64_t e = g->offset[v]; e < g->offset[v + 1]; e++)
			sum += b->side[g->at[e]] != b->side[v] ? 1 : -1;
		b->gain[v] = sum;
	}
	for (uint32_t v = 0; v < g->n; v++) {
		struct gain_queue *q = &b->queue[b->side[v]];
		stand(b, q, q->n++, v);
		rise(b, q, q->n - 1);
	}
}

/* By how much a side is beyond so many hundredths of a half, as a share of it. */
static double beyond(const uint64_t have[2], int64_t moved, unsigned percent)
{
	double x = (double)have[0] - (double)moved, y = (double)have[1] + (double)moved;
	double most = x > y ? x : y, allowed = (x + y) / 200 * percent;

	return most > allowed && x + y > 0 ? (most - allowed) / (x + y) : 0;
}

/* What a cut has beyond its tolerances if `v` changes its side, or as it is (UINT32_MAX). */
static double excess(const struct bisecting *b, uint32_t v)
{
	int64_t sign = v == UINT32_MAX ? 0 : b->side[v] ? -1 : 1;
	int64_t weight = v == UINT32_MAX ? 0 : b->graph->weight[v];

	return beyond(b->count, sign, 102) + beyond(b->weight, sign * weight, 105);
}

static void move(struct bisecting *b, uint32_t v)
{
	const struct hd_bisect *g = b->graph;
	unsigned from = b->side[v], to = !from;

	b->side[v] = (uint8_t)to;
	b->count[to]++;
	b->count[from]--;
	b->weight[to] += g->weight[v];
	b->weight[from] -= g->weight[v];
	for (uint64_t e = g->offset[v]; e < g->offset[v + 1]; e++) {
		uint32_t w = g->at[e];
		struct gain_queue *q = &b->queue[b->side[w]];
		b->gain[w] += b->side[w] == to ? -2 : 2;
		if (b->by_degree[w] == (uint32_t)GONE)
			continue;
		rise(b, q, b->by_degree[w]);
		sink(b, q, b->by_degree[w]);
	}
	b->gain[v] = -b->gain[v];
}

static bool may_move(const struct bisecting *b, unsigned from, double now)
{
	if (!b->queue[from].n || b->count[from] <= b->graph->least)
		return false;
	double then = excess(b, b->queue[from].at[0]);
	return then < now || (now <= 0 && then <= 0);
}

/* The next move: of both sides' first vertices the better, if balance allows it, else the other one; the
 * better is out of the pass if it allows neither. UINT32_MAX: there is none. */
static uint32_t next_move(struct bisecting *b, double now)
{
	while (b->queue[0].n || b->queue[1].n) {
		bool second = !b->queue[0].n || (b->queue[1].n && before(b, b->queue[1].at[0],
			b->queue[0].at[0]));
		if (may_move(b, second, now))
			return take_first(b, &b->queue[second]);
		if (may_move(b, !second, now))
			return take_first(b, &b->queue[!second]);
		(void)take_first(b, &b->queue[second]);
	}
	return UINT32_MAX;
}

/* Moves vertices, also such as make the cut larger for a while, and takes back those after the best state:
 * the least excess, then the smallest cut. false: it was the best before. */
static bool pass(struct bisecting *b)
{
	uint32_t n = 0, kept = 0, patience = 100 + b->graph->n / 8;
	double now = excess(b, UINT32_MAX), best = now;
	int64_t gained = 0, most = 0;

	begin_pass(b);
	while (n - kept < patience) {
		uint32_t v = next_move(b, now);
		if (v == UINT32_MAX)
			break;
		gained += b->gain[v];
		move(b, v);
		b->order[n++] = v;
		now = excess(b, UINT32_MAX);
		if (now < best || (now <= best && gained > most)) {
			best = now;
			most = gained;
			kept = n;
		}
	}
	while (n > kept)
		move(b, b->order[--n]);
	return kept > 0;
}

enum hd_err hd_bisect_own(const struct hd_bisect *graph, uint8_t *side, struct hd_diag *diag)
{
	struct bisecting b = { .graph = graph, .side = side,
		.order = hd_alloc(graph->n * sizeof *b.order), .by_degree =
		hd_alloc(graph->n * sizeof *b.by_degree),
		.gain = hd_alloc(graph->n * sizeof *b.gain),
		.queue = { { hd_alloc(graph->n * sizeof *b.order), 0 },
		{ hd_alloc(graph->n * sizeof *b.order), 0 } } };
	enum hd_err err = HD_OK;

	if (!b.order || !b.by_degree || !b.gain || !b.queue[0].at || !b.queue[1].at)
		err = hd_fail(diag, HD_E_NOMEM, "no memory to cut a graph of %u vertices", graph->n);
	if (!err)
		err = sort_by_degree(&b, diag);
	if (!err) {
		breadth_first(&b);
		cut_at_half(&b);
		for (int i = 0; i < PASSES && pass(&b); i++)
			;
	}
	hd_free(b.order);
	hd_free(b.by_degree);
	hd_free(b.gain);
	hd_free(b.queue[0].at);
	hd_free(b.queue[1].at);
	return err;
}
