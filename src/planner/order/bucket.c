#include "planner/bucket.h"

#include <math.h>
#include <string.h>

__extension__ typedef __int128 wide;

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory for buckets"); }

/* ---- compute orders */

struct walker {
	const struct hd_order_graph *graph;
	bool *seen;                               /* in the order, or about to be */
	struct visit { uint32_t op, next; } *stack;
	uint32_t *order, n;
};

static bool begin(struct walker *x, const struct hd_order_graph *g, struct hd_arena *arena)
{
	const size_t n = (size_t)g->nops + 1;

	*x = (struct walker){ .graph = g, .seen = hd_arena_take(arena, n, sizeof *x->seen),
		.stack = hd_arena_take(arena, n, sizeof *x->stack),
		.order = hd_arena_take(arena, n, sizeof *x->order) };
	return x->seen && x->stack && x->order;
}

/* What is missing of an op and all it needs, in depth-first post-order. */
static void run(struct walker *x, uint32_t op)
{
	const struct hd_order_graph *g = x->graph;
	uint32_t depth = 0;

	if (x->seen[op])
		return;
	x->seen[op] = true;
	x->stack[depth++] = (struct visit){ op, 0 };
	while (depth) {
		struct visit *v = &x->stack[depth - 1];
		if (v->next < g->op[v->op].ninputs) {
			uint32_t from = g->input[g->op[v->op].first + v->next++];
			if (from < g->nrecvs || x->seen[from - g->nrecvs])
				continue;
			x->seen[from - g->nrecvs] = true;
			x->stack[depth++] = (struct visit){ from - g->nrecvs, 0 };
			continue;
		}
		x->order[x->n++] = v->op;
		depth--;
	}
}

static void run_rest(struct walker *x)
{
	for (uint32_t o = 0; o < x->graph->nops; o++)
		run(x, o);
}

enum hd_err hd_compute_declared(uint32_t **order, const struct hd_bucket_problem *p, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct walker x;

	if (!begin(&x, &p->graph, arena))
		return no_memory(diag);
	run_rest(&x);
	*order = x.order;
	return HD_OK;
}

/* Which gradients need an op, and how much time of what each needs is missing: an op that is computed lowers
 * the time of those that need it, so nothing is walked again. */
struct needs {
	const struct hd_bucket_problem *problem;
	uint32_t *op, n, nwords;                  /* [n] gradients as declared */
	int64_t *missing;                         /* [n] */
	uint64_t *by;                             /* [nops][nwords] the gradients that need the op, as bits */
};

static enum hd_err find_needs(struct needs *x, const struct hd_bucket_problem *p, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_order_graph *g = &p->graph;

	*x = (struct needs){ .problem = p, .op = hd_arena_take(arena, (size_t)g->nops + 1, sizeof *x->op) };
	for (uint32_t o = 0; x->op && o < g->nops; o++)
		if (p->bytes[o] > 0)
			x->op[x->n++] = o;
	if (x->n > HD_BUCKET_GRADIENTS)
		return hd_fail(diag, HD_E_INVAL, "%u gradients: the greedy order is for at most %d", x->n,
			HD_BUCKET_GRADIENTS);
	x->nwords = (x->n + 63) / 64;
	if ((uint64_t)g->nops * x->nwords * sizeof *x->by > HD_ORDER_SET_BYTES)
		return hd_fail(diag, HD_E_INVAL,
			"%u gradients of %u ops: which need which takes more than %d MiB", x->n, g->nops,
			HD_ORDER_SET_BYTES >> 20);
	x->missing = hd_arena_take(arena, (size_t)x->n + 1, sizeof *x->missing);
	x->by = hd_arena_take(arena, (size_t)g->nops * x->nwords + 1, sizeof *x->by);
	if (!x->op || !x->missing || !x->by)
		return no_memory(diag);
	for (uint32_t i = 0; i < x->n; i++)
		x->by[(size_t)x->op[i] * x->nwords + i / 64] |= UINT64_C(1) << i % 64;
	for (uint32_t k = g->nops; k-- > 0;) {
		const struct hd_order_op *op = &g->op[g->topo[k]];
		const uint64_t *mine = &x->by[(size_t)g->topo[k] * x->nwords];
		for (uint32_t i = 0; i < op->ninputs; i++) {
			uint32_t from = g->input[op->first + i];
			uint64_t *its = from < g->nrecvs ? NULL :
				&x->by[(size_t)(from - g->nrecvs) * x->nwords];
			for (uint32_t w = 0; its && w < x->nwords; w++)
				its[w] |= mine[w];
		}
	}
	return HD_OK;
}

static void add_time(struct needs *x, uint32_t op, int64_t time)
{
	const uint64_t *by = &x->by[(size_t)op * x->nwords];

	for (uint32_t w = 0; time && w < x->nwords; w++)
		for (uint64_t bits = by[w]; bits; bits &= bits - 1)
			x->missing[w * 64 + (uint32_t)__builtin_ctzll(bits)] += time;
}

static uint32_t least_per_byte(const struct needs *x, const bool *done)
{
	const int64_t *bytes = x->problem->bytes;
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < x->n; i++)
		if (!done[x->op[i]] && (best == UINT32_MAX ||
		    (wide)x->missing[i] * bytes[x->op[best]] < (wide)x->missing[best] * bytes[x->op[i]]))
			best = i;
	return best;
}

enum hd_err hd_compute_greedy(uint32_t **order, const struct hd_bucket_problem *p, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct walker x;
	struct needs needs = { 0 };
	enum hd_err err = begin(&x, &p->graph, arena) ? find_needs(&needs, p, arena, diag) : no_memory(diag);

	if (err)
		return err;
	for (uint32_t o = 0; o < p->graph.nops; o++)
		add_time(&needs, o, p->graph.op[o].time);
	for (uint32_t best; (best = least_per_byte(&needs, x.seen)) != UINT32_MAX;) {
		uint32_t k = x.n;
		run(&x, needs.op[best]);
		for (; k < x.n; k++)
			add_time(&needs, x.order[k], -p->graph.op[x.order[k]].time);
	}
	run_rest(&x);
	*order = x.order;
	return HD_OK;
}

/* ---- buckets */

/* upto[j]: bytes of the first j pieces */
struct bucket_line { const struct hd_bucket_problem *problem; int64_t *ready, *upto; uint32_t n; };

static int64_t cost(const struct hd_bucket_problem *p, int64_t bytes) { return p->alpha +
	llround(p->beta * (double)bytes); }

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

/* Gradients as they are made, the large ones in pieces. Ops that end at once stand as declared: times may
 * be 0. */
static enum hd_err lay_out(struct hd_bucketing *out, struct bucket_line *l, const uint32_t *order,
	int64_t most,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_bucket_problem *p = l->problem;
	uint64_t pieces = 0;

	for (uint32_t o = 0; o < p->graph.nops; o++)
		pieces += p->bytes[o] <= 0 ? 0 : most > 0 ? (uint64_t)((p->bytes[o] + most - 1) / most) : 1;
	if (pieces > HD_BUCKET_PIECES)
		return hd_fail(diag, HD_E_INVAL,
			"%llu gradients, or pieces of at most %lld bytes: %d are the most",
			(unsigned long long)pieces,
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
			for (; at && l->ready[at - 1] == out->compute_end && out->gradient[at - 1] > order[k];
				at--) {
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
static enum hd_err solve(const struct bucket_line *l, int64_t most, uint32_t *from, struct hd_arena *arena,
	struct hd_diag *diag)
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
			int64_t takes = cost(l->problem, bytes), end = later(f[i], l->ready[j - 1]) + takes;
			if (l->ready[j - 1] + takes > f[j])
				break;                    /* longer buckets take no less */
			if (end < f[j] || (end == f[j] && count[i] + 1 < count[j])) {
				f[j] = end;
				count[j] = count[i] + 1;
				from[j] = i;
			}
		}
	}
	return HD_OK;
}

static void fill(struct hd_bucketing *out, const struct bucket_line *l, const uint32_t *from)
{
	int64_t free = 0;

	for (uint32_t j = l->n; j; j = from[j])
		out->nbuckets++;
	for (uint32_t j = l->n, k = out->nbuckets; j; j = from[j])
		out->bucket[--k] = (struct hd_bucket){ .first = from[j], .n = j - from[j],
			.bytes = l->upto[j] - l->upto[from[j]], .ready = l->ready[j - 1] };
	for (uint32_t k = 0; k < out->nbuckets; k++) {
		out->bucket[k].start = later(free, out->bucket[k].ready);
		out->bucket[k].end = free = out->bucket[k].start + cost(l->problem, out->bucket[k].bytes);
	}
	out->end = later(free, out->compute_end);
}

enum hd_err hd_buckets_make(struct hd_bucketing *result, const struct hd_bucket_problem *p,
	const uint32_t *order, enum hd_bucket_rule rule, int64_t most,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_bucketing out = { 0 };
	struct bucket_line l = { .problem = p };
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
