#include "planner/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/philox.h"

/* Ops with equal dep are one group: real networks have about as many groups as receives. A group has the
 * sums over what is outstanding. */

#define NEVER INT64_MAX

const char *const hd_order_names[HD_NORDERS] = {
#define X(id, text, about) [HD_ORDER_##id] = text,
	HD_ORDERS(X)
#undef X
};

struct receive_group { const uint64_t *dep; uint32_t hash, left; int64_t time, sum; };

struct order_maker {
	const struct hd_order_graph *graph;
	uint32_t words;
	uint64_t *dep;                            /* [nops][words] */
	struct receive_group *group; uint32_t ngroups;
	uint32_t *of, *first;                     /* groups of receive r: of[first[r]] .. of[first[r + 1]] */
	int64_t *p, *mplus;                       /* [nrecvs] */
	bool *gone;
	int64_t *latest, *after;                  /* of a makespan: [nops], [nrecvs + 2] */
	uint32_t *place;                          /* [nrecvs] from 1 */
	struct hd_arena *arena;
	struct hd_diag *diag;
};

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory to order receives"); }

static uint32_t size_of(const struct order_maker *m, const uint64_t *set)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < m->words; w++)
		n += (uint32_t)__builtin_popcountll(set[w]);
	return n;
}

/* ---- sets and groups */

static enum hd_err find_deps(struct order_maker *m)
{
	const struct hd_order_graph *g = m->graph;

	m->words = g->nrecvs / 64 + 1;
	if ((uint64_t)m->words * g->nops > HD_ORDER_SET_BYTES / sizeof *m->dep)
		return hd_fail(m->diag, HD_E_INVAL,
			"%u receives and %u ops: what each op needs would take more than %d MiB", g->nrecvs,
			g->nops,
			HD_ORDER_SET_BYTES >> 20);
	m->dep = hd_arena_take(m->arena, (size_t)m->words * g->nops + 1, sizeof *m->dep);
	if (!m->dep)
		return no_memory(m->diag);
	for (uint32_t k = 0; k < g->nops; k++) {
		const struct hd_order_op *op = &g->op[g->topo[k]];
		uint64_t *set = m->dep + (size_t)g->topo[k] * m->words;
		for (uint32_t i = 0; i < op->ninputs; i++) {
			uint32_t from = g->input[op->first + i];
			if (from < g->nrecvs)
				set[from / 64] |= UINT64_C(1) << from % 64;
			for (uint32_t w = 0; from >= g->nrecvs && w < m->words; w++)
				set[w] |= m->dep[(size_t)(from - g->nrecvs) * m->words + w];
		}
	}
	return HD_OK;
}

/* The group of a set; ops that need nothing have none. */
static enum hd_err find_groups(struct order_maker *m)
{
	const struct hd_order_graph *g = m->graph;
	uint32_t cap = 16;

	while (cap < 2 * g->nops + 2)
		cap *= 2;
	uint32_t *slot = hd_arena_take(m->arena, cap, sizeof *slot);      /* of a group, from 1 */
	m->group = hd_arena_take(m->arena, (size_t)g->nops + 1, sizeof *m->group);
	if (!slot || !m->group)
		return no_memory(m->diag);
	for (uint32_t o = 0; o < g->nops; o++) {
		const uint64_t *set = m->dep + (size_t)o * m->words;
		uint32_t n = size_of(m, set), hash = (uint32_t)hd_hash64(set, m->words * sizeof *set),
			at = hash & (cap - 1);
		if (!n)
			continue;
		while (slot[at] && (m->group[slot[at] - 1].hash != hash ||
			memcmp(m->group[slot[at] - 1].dep, set, m->words * sizeof *set) != 0))
			at = (at + 1) & (cap - 1);
		if (!slot[at]) {
			m->group[m->ngroups++] = (struct receive_group){ .dep = set, .hash = hash,
				.left = n };
			slot[at] = m->ngroups;
		}
		m->group[slot[at] - 1].time += g->op[o].time;
	}
	return HD_OK;
}

static enum hd_err list_groups(struct order_maker *m)
{
	const uint32_t n = m->graph->nrecvs;
	uint64_t total = 0;

	for (uint32_t k = 0; k < m->ngroups; k++)
		total += m->group[k].left;
	m->first = hd_arena_take(m->arena, (size_t)n + 2, sizeof *m->first);
	m->of = total <= HD_ORDER_SET_BYTES / sizeof *m->of ? hd_arena_take(m->arena, total + 1,
		sizeof *m->of) : NULL;
	if (!m->first || !m->of)
		return no_memory(m->diag);
	for (int round = 0; round < 2; round++) {         /* how many, then which */
		for (uint32_t k = 0; k < m->ngroups; k++)
			for (uint32_t w = 0; w < m->words; w++)
				for (uint64_t bits = m->group[k].dep[w]; bits; bits &= bits - 1) {
					uint32_t r = w * 64 + (uint32_t)__builtin_ctzll(bits);
					if (round)
						m->of[m->first[r + 1]++] = k;
					else
						m->first[r + 2]++;
				}
		for (uint32_t r = 0; r < n && !round; r++)
			m->first[r + 2] += m->first[r + 1];
	}
	return HD_OK;
}

static enum hd_err prepare(struct order_maker *m)
{
	const uint32_t n = m->graph->nrecvs;

	m->p = hd_arena_take(m->arena, (size_t)n + 1, sizeof *m->p);
	m->mplus = hd_arena_take(m->arena, (size_t)n + 1, sizeof *m->mplus);
	m->gone = hd_arena_take(m->arena, (size_t)n + 1, sizeof *m->gone);
	m->place = hd_arena_take(m->arena, (size_t)n + 1, sizeof *m->place);
	m->after = hd_arena_take(m->arena, (size_t)n + 2, sizeof *m->after);
	m->latest = hd_arena_take(m->arena, (size_t)m->graph->nops + 1, sizeof *m->latest);
	if (!m->p || !m->mplus || !m->gone || !m->place || !m->after || !m->latest)
		return no_memory(m->diag);
	enum hd_err err = find_deps(m);
	err = err ? err : find_groups(m);
	return err ? err : list_groups(m);
}

/* ---- rule 3 */

static int64_t makespan_of(struct order_maker *m, const uint32_t *order)
{
	const struct hd_order_graph *g = m->graph;
	int64_t most = 0, arrived = 0;

	memset(m->after, 0, ((size_t)g->nrecvs + 2) * sizeof *m->after);
	for (uint32_t k = 0; k < g->nrecvs; k++)
		m->place[order[k]] = k + 1;
	for (uint32_t k = 0; k < g->nops; k++) {
		const struct hd_order_op *op = &g->op[g->topo[k]];
		int64_t last = 0;
		for (uint32_t i = 0; i < op->ninputs; i++) {
			uint32_t from = g->input[op->first + i];
			int64_t at = from < g->nrecvs ? m->place[from] : m->latest[from - g->nrecvs];
			last = at > last ? at : last;
		}
		m->latest[g->topo[k]] = last;
		m->after[last] += op->time;
	}
	for (uint32_t k = g->nrecvs; k-- > 0;)
		m->after[k] += m->after[k + 1];
	for (uint32_t k = 0; k <= g->nrecvs; k++) {
		arrived += k ? g->recv_time[order[k - 1]] : 0;
		most = arrived + m->after[k] > most ? arrived + m->after[k] : most;
	}
	return most;
}

/* ---- orders by keys: stable, ties share the place of the first */

struct keyed { int64_t key; uint32_t recv; };

static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	return x->key != y->key ? (x->key > y->key) - (x->key < y->key) :
		(x->recv > y->recv) - (x->recv < y->recv);
}

static enum hd_err sort_by(struct order_maker *m, struct hd_recv_order *out, const int64_t *key)
{
	const uint32_t n = m->graph->nrecvs;
	struct keyed *list = hd_arena_take(m->arena, (size_t)n + 1, sizeof *list);

	if (!list)
		return no_memory(m->diag);
	for (uint32_t r = 0; r < n; r++)
		list[r] = (struct keyed){ key[r], r };
	qsort(list, n, sizeof *list, by_key);
	for (uint32_t k = 0; k < n; k++) {
		bool tied = k && list[k].key == list[k - 1].key;
		out->recv[k] = list[k].recv;
		out->priority[list[k].recv] = tied ? out->priority[list[k - 1].recv] : k;
		out->ntied += tied || (k + 1 < n && list[k].key == list[k + 1].key);
	}
	return HD_OK;
}

static enum hd_err make_fifo(struct order_maker *m, struct hd_recv_order *out, uint64_t seed)
{
	int64_t *key = m->mplus;

	(void)seed;
	for (uint32_t r = 0; r < m->graph->nrecvs; r++)
		key[r] = r;
	return sort_by(m, out, key);
}

static enum hd_err make_random(struct order_maker *m, struct hd_recv_order *out, uint64_t seed)
{
	int64_t *key = m->mplus;

	for (uint32_t r = 0; r < m->graph->nrecvs; r++) {
		struct hd_philox x = hd_philox((uint32_t[]){ r, 0, 0, 0 }, hd_philox_key(seed, HD_RNG_USER));
		key[r] = (int64_t)((uint64_t)(x.word[0] & 0x7fffffff) << 32 | x.word[1]);
	}
	return sort_by(m, out, key);
}

/* Least size of a set that holds r and at least `least` receives. */
static enum hd_err by_size(struct order_maker *m, struct hd_recv_order *out, uint32_t least)
{
	int64_t *key = m->mplus;

	for (uint32_t r = 0; r < m->graph->nrecvs; r++) {
		key[r] = NEVER;
		for (uint32_t i = m->first[r]; i < m->first[r + 1]; i++) {
			uint32_t n = size_of(m, m->group[m->of[i]].dep);
			key[r] = n >= least && n < key[r] ? n : key[r];
		}
	}
	return sort_by(m, out, key);
}

static enum hd_err make_tic(struct order_maker *m, struct hd_recv_order *out,
	uint64_t seed) { return (void)seed,
	by_size(m, out, 2); }
static enum hd_err make_tic_plus(struct order_maker *m, struct hd_recv_order *out,
	uint64_t seed) { return (void)seed,
	by_size(m, out, 1); }

/* ---- tac */

static void begin(struct order_maker *m)
{
	const struct hd_order_graph *g = m->graph;

	for (uint32_t r = 0; r < g->nrecvs; r++) {
		m->p[r] = 0;
		m->mplus[r] = NEVER;
		m->gone[r] = false;
	}
	for (uint32_t k = 0; k < m->ngroups; k++) {
		m->group[k].left = size_of(m, m->group[k].dep);
		m->group[k].sum = 0;
	}
	for (uint32_t r = 0; r < g->nrecvs; r++)
		for (uint32_t i = m->first[r]; i < m->first[r + 1]; i++)
			m->group[m->of[i]].sum += g->recv_time[r];
	for (uint32_t r = 0; r < g->nrecvs; r++)
		for (uint32_t i = m->first[r]; i < m->first[r + 1]; i++) {
			const struct receive_group *k = &m->group[m->of[i]];
			if (k->left == 1)
				m->p[r] += k->time;
			else if (k->sum < m->mplus[r])
				m->mplus[r] = k->sum;
		}
}

static int64_t least_sum(const struct order_maker *m, uint32_t r)
{
	int64_t least = NEVER;

	for (uint32_t i = m->first[r]; i < m->first[r + 1]; i++) {
		const struct receive_group *k = &m->group[m->of[i]];
		if (k->left > 1 && k->sum < least)
			least = k->sum;
	}
	return least;
}

/* Sums only fall, so M+ only falls, but of the last one left of a group, which loses it. */
static void take(struct order_maker *m, uint32_t r)
{
	m->gone[r] = true;
	for (uint32_t i = m->first[r]; i < m->first[r + 1]; i++) {
		struct receive_group *k = &m->group[m->of[i]];
		k->left--;
		k->sum -= m->graph->recv_time[r];
	}
	for (uint32_t i = m->first[r]; i < m->first[r + 1]; i++) {
		const struct receive_group *k = &m->group[m->of[i]];
		for (uint32_t w = 0; w < m->words && k->left; w++)
			for (uint64_t bits = k->dep[w]; bits; bits &= bits - 1) {
				uint32_t q = w * 64 + (uint32_t)__builtin_ctzll(bits);
				if (m->gone[q])
					continue;
				if (k->left == 1) {
					m->p[q] += k->time;
					m->mplus[q] = least_sum(m, q);
				} else if (k->sum < m->mplus[q]) {
					m->mplus[q] = k->sum;
				}
			}
	}
}

static int64_t less(int64_t a, int64_t b) { return a < b ? a : b; }

static bool beats(const struct order_maker *m, uint32_t r, uint32_t b)
{
	const int64_t *time = m->graph->recv_time;
	int64_t x = less(m->p[b], time[r]), y = less(m->p[r], time[b]);

	return x < y || (x == y && m->mplus[r] < m->mplus[b]);
}

static enum hd_err make_tac(struct order_maker *m, struct hd_recv_order *out, uint64_t seed)
{
	const uint32_t n = m->graph->nrecvs;

	(void)seed;
	begin(m);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t best = HD_ORDER_RECVS;
		for (uint32_t r = 0; r < n; r++)
			if (!m->gone[r] && (best == HD_ORDER_RECVS || beats(m, r, best)))
				best = r;
		out->recv[k] = best;
		out->priority[best] = k;
		take(m, best);
	}
	return HD_OK;
}

/* ---- search */

static void move(uint32_t *order, uint32_t from, uint32_t to)
{
	uint32_t moved = order[from];

	if (from < to)
		memmove(order + from, order + from + 1, (to - from) * sizeof *order);
	else
		memmove(order + to + 1, order + to, (from - to) * sizeof *order);
	order[to] = moved;
}

/* The best strictly better move, made; false: there is none. `left`: how many makespans may still be
 * found. */
static bool improve(struct order_maker *m, uint32_t *order, int64_t *makespan, uint64_t *left)
{
	const uint32_t n = m->graph->nrecvs, reach = n > 64 ? 8 : n;
	uint32_t from = 0, to = 0;
	int64_t best = *makespan;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = i > reach ? i - reach : 0; j < n && j <= i + reach && *left; j++) {
			if (i == j)
				continue;
			--*left;
			move(order, i, j);
			int64_t now = makespan_of(m, order);
			move(order, j, i);
			if (now < best) {
				best = now;
				from = i;
				to = j;
			}
		}
	if (best == *makespan)
		return false;
	move(order, from, to);
	*makespan = best;
	return true;
}

static enum hd_err take_order(struct order_maker *m, struct hd_recv_order *out)
{
	const size_t n = (size_t)m->graph->nrecvs + 1;

	*out = (struct hd_recv_order){ .recv = hd_arena_take(m->arena, n, sizeof *out->recv),
		.priority = hd_arena_take(m->arena, n, sizeof *out->priority) };
	return out->recv && out->priority ? HD_OK : no_memory(m->diag);
}

static enum hd_err make_search(struct order_maker *m, struct hd_recv_order *out, uint64_t seed)
{
	static enum hd_err (*const starts[])(struct order_maker *, struct hd_recv_order *, uint64_t) =
		{ make_tac,
		make_tic_plus, make_tic };
	const uint32_t n = m->graph->nrecvs;
	uint64_t left = n > 64 ? 2000 : 20 * (uint64_t)n * n;
	int64_t best = NEVER;

	for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
		struct hd_recv_order start;
		enum hd_err err = take_order(m, &start);
		err = err ? err : starts[i](m, &start, seed);
		if (err)
			return err;
		int64_t makespan = makespan_of(m, start.recv);
		if (makespan < best) {
			best = makespan;
			memcpy(out->recv, start.recv, n * sizeof *out->recv);
		}
	}
	while (improve(m, out->recv, &best, &left))
		;
	for (uint32_t k = 0; k < n; k++)
		out->priority[out->recv[k]] = k;
	return HD_OK;
}

enum hd_err hd_order_make(struct hd_recv_order *out, const struct hd_order_graph *graph,
	enum hd_order_mode mode,
	uint64_t seed, struct hd_arena *arena,
	struct hd_diag *diag)
{
	static enum hd_err (*const makers[HD_NORDERS])(struct order_maker *, struct hd_recv_order *,
		uint64_t) = { [HD_ORDER_FIFO] = make_fifo,
		[HD_ORDER_RANDOM] = make_random, [HD_ORDER_TIC] = make_tic,
		[HD_ORDER_TIC_PLUS] = make_tic_plus, [HD_ORDER_TAC] = make_tac,
		[HD_ORDER_SEARCH] = make_search };
	struct order_maker m = { .graph = graph, .arena = arena, .diag = diag };
	struct hd_recv_order order;
	enum hd_err err = take_order(&m, &order);

	err = err ? err : prepare(&m);
	err = err ? err : makers[mode](&m, &order, seed);
	if (err)
		return err;
	order.makespan = makespan_of(&m, order.recv);
	*out = order;
	return HD_OK;
}

struct hd_order_bounds hd_order_bounds(const struct hd_order_graph *g)
{
	int64_t receives = 0, work = 0;

	for (uint32_t r = 0; r < g->nrecvs; r++)
		receives += g->recv_time[r];
	for (uint32_t o = 0; o < g->nops; o++)
		work += g->op[o].time;
	return (struct hd_order_bounds){ .upper = receives + work,
		.lower = receives > work ? receives : work };
}
