#include "plan/bucket.h"

#include <math.h>
#include <string.h>

__extension__ typedef __int128 wide;

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM, "no memory for buckets"); }

/* ---- compute orders */

struct walker {
	const struct hd_order_graph *graph;
	bool *done;                               /* in the order */
	uint32_t *seen, round;                    /* of the walk at hand */
	struct visit { uint32_t op, next; } *stack;
	uint32_t *order, n;
};

static bool begin(struct walker *x, const struct hd_order_graph *g, struct hd_arena *arena)
{
	const size_t n = (size_t)g->nops + 1;

	*x = (struct walker){ .graph = g, .done = hd_arena_take(arena, n, sizeof *x->done), .seen = hd_arena_take(arena, n, sizeof *x->seen),
		.stack = hd_arena_take(arena, n, sizeof *x->stack), .order = hd_arena_take(arena, n, sizeof *x->order) };
	return x->done && x->seen && x->stack && x->order;
}

/* Time of what is missing of an op and all it needs; `run`: it is put into the order, in depth-first post-order. */
static int64_t walk(struct walker *x, uint32_t op, bool run)
{
	const struct hd_order_graph *g = x->graph;
	uint32_t depth = 0;
	int64_t time = 0;

	if (x->done[op])
		return 0;
	x->seen[op] = ++x->round;
	x->stack[depth++] = (struct visit){ op, 0 };
	while (depth) {
		struct visit *v = &x->stack[depth - 1];
		if (v->next < g->op[v->op].ninputs) {
			uint32_t from = g->input[g->op[v->op].first + v->next++];
			if (from < g->nrecvs || x->done[from - g->nrecvs] || x->seen[from - g->nrecvs] == x->round)
				continue;
			x->seen[from - g->nrecvs] = x->round;
			x->stack[depth++] = (struct visit){ from - g->nrecvs, 0 };
			continue;
		}
		time += g->op[v->op].time;
		if (run)
			x->order[x->n++] = v->op;
		depth--;
	}
	for (uint32_t k = x->n; run && k-- > 0 && !x->done[x->order[k]];)
		x->done[x->order[k]] = true;
	return time;
}

static void run_rest(struct walker *x)
{
	for (uint32_t o = 0; o < x->graph->nops; o++)
		(void)walk(x, o, true);
}

enum hd_err hd_compute_declared(uint32_t **order, const struct hd_bucket_problem *p, struct hd_arena *arena, struct hd_diag *diag)
{
	struct walker x;

	if (!begin(&x, &p->graph, arena))
		return no_memory(diag);
	run_rest(&x);
	*order = x.order;
	return HD_OK;
}

enum hd_err hd_compute_greedy(uint32_t **order, const struct hd_bucket_problem *p, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t left = 0;
	struct walker x;

	if (!begin(&x, &p->graph, arena))
		return no_memory(diag);
	for (uint32_t o = 0; o < p->graph.nops; o++)
		left += p->bytes[o] > 0;
	if (left > HD_BUCKET_GRADIENTS)
		return hd_fail(diag, HD_E_INVAL, "%u gradients: the greedy order is for at most %d", left, HD_BUCKET_GRADIENTS);
	for (;;) {
		uint32_t best = UINT32_MAX;
		int64_t best_time = 0;
		for (uint32_t o = 0; o < p->graph.nops; o++) {
			if (p->bytes[o] <= 0 || x.done[o])
				continue;
			int64_t time = walk(&x, o, false);
			if (best == UINT32_MAX || (wide)time * p->bytes[best] < (wide)best_time * p->bytes[o]) {
				best = o;
				best_time = time;
			}
		}
		if (best == UINT32_MAX)
			break;
		(void)walk(&x, best, true);
	}
	run_rest(&x);
	*order = x.order;
	return HD_OK;
}

/* ---- buckets */

struct line { const struct hd_bucket_problem *problem; int64_t *ready, *upto; uint32_t n; };      /* upto[j]: bytes of the first j pieces */

static int64_t cost(const struct hd_bucket_problem *p, int64_t bytes) { return p->alpha + llround(p->beta * (double)bytes); }

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* Gradients as they are made, the large ones in pieces. Ops that end at once stand as declared: times may be 0. */
static enum hd_err lay_out(struct hd_bucketing *out, struct line *l, const uint32_t *order, int64_t most, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_bucket_problem *p = l->problem;
	uint64_t pieces = 0;

	for (uint32_t o = 0; o < p->graph.nops; o++)
		pieces += p->bytes[o] <= 0 ? 0 : most > 0 ? (uint64_t)((p->bytes[o] + most - 1) / most) : 1;
	if (pieces > HD_BUCKET_PIECES)
		return hd_fail(diag, HD_E_INVAL, "%llu gradients, or pieces of at most %lld bytes: %d are the most", (unsigned long long)pieces,
			(long long)most, HD_BUCKET_PIECES);
	out->gradient = hd_arena_take(arena, pieces + 1, sizeof *out->gradient);
	out->piece = hd_arena_take(arena, pieces + 1, sizeof *out->piece);
	l->ready = hd_arena_take(arena, pieces + 1, sizeof *l->ready);
	l->upto = hd_arena_take(arena, pieces + 1, sizeof *l->upto);
	if (!out->gradient || !out->piece || !l->ready || !l->upto)
		return no_memory(diag);
	for (uint32_t k = 0; k < p->graph.nops; k++) {
		out->compute_end += p->graph.op[order[k]].time;
		for (int64_t left = p->bytes[order[k]], n; left > 0; left -= n) {
			uint32_t at = l->n++;
			n = most > 0 && left > most ? most : left;
			for (; at && l->ready[at - 1] == out->compute_end && out->gradient[at - 1] > order[k]; at--) {
				out->gradient[at] = out->gradient[at - 1];
				out->piece[at] = out->piece[at - 1];
			}
			out->gradient[at] = order[k];
			out->piece[at] = n;
			l->ready[l->n - 1] = out->compute_end;
		}
	}
	for (uint32_t j = 0; j < l->n; j++)
		l->upto[j + 1] = l->upto[j] + out->piece[j];
	out->ngradients = l->n;
	return HD_OK;
}

/* Where the bucket that ends before piece j begins. */
static enum hd_err solve(const struct line *l, int64_t most, uint32_t *from, struct hd_arena *arena, struct hd_diag *diag)
{
	int64_t *f = hd_arena_take(arena, (size_t)l->n + 1, sizeof *f);
	uint32_t *count = hd_arena_take(arena, (size_t)l->n + 1, sizeof *count);

	if (!f || !count)
		return no_memory(diag);
	for (uint32_t j = 1; j <= l->n; j++) {
		f[j] = INT64_MAX;
		for (uint32_t i = j; i-- > 0;) {
			int64_t bytes = l->upto[j] - l->upto[i];
			if (most > 0 && bytes > most)
				break;
			int64_t end = later(f[i], l->ready[j - 1]) + cost(l->problem, bytes);
			if (end < f[j] || (end == f[j] && count[i] + 1 < count[j])) {
				f[j] = end;
				count[j] = count[i] + 1;
				from[j] = i;
			}
		}
	}
	return HD_OK;
}

static void fill(struct hd_bucketing *out, const struct line *l, const uint32_t *from)
{
	int64_t free = 0;

	for (uint32_t j = l->n; j; j = from[j])
		out->nbuckets++;
	for (uint32_t j = l->n, k = out->nbuckets; j; j = from[j])
		out->bucket[--k] = (struct hd_bucket){ .first = from[j], .n = j - from[j], .bytes = l->upto[j] - l->upto[from[j]], .ready = l->ready[j - 1] };
	for (uint32_t k = 0; k < out->nbuckets; k++) {
		out->bucket[k].start = later(free, out->bucket[k].ready);
		out->bucket[k].end = free = out->bucket[k].start + cost(l->problem, out->bucket[k].bytes);
	}
	out->end = later(free, out->compute_end);
}

enum hd_err hd_buckets_make(struct hd_bucketing *result, const struct hd_bucket_problem *p, const uint32_t *order, enum hd_bucket_rule rule, int64_t most,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_bucketing out = { 0 };
	struct line l = { .problem = p };
	enum hd_err err = lay_out(&out, &l, order, most, arena, diag);
	uint32_t *from = err ? NULL : hd_arena_take(arena, (size_t)l.n + 1, sizeof *from);

	if (!err)
		out.bucket = hd_arena_take(arena, (size_t)l.n + 1, sizeof *out.bucket);
	if (!err && (!from || !out.bucket))
		err = no_memory(diag);
	for (uint32_t j = 1; j <= l.n && !err; j++)
		from[j] = rule == HD_BUCKETS_EACH ? j - 1 : 0;
	if (!err && rule == HD_BUCKETS_EXACT)
		err = solve(&l, most, from, arena, diag);
	if (err)
		return err;
	fill(&out, &l, from);
	*result = out;
	return HD_OK;
}
