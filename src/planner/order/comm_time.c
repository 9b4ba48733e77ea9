#include "planner/comm_time.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "plan/holding.h"
#include "planner/order/flows.h"

_Static_assert((int)HD_COMM_TIME_WORKERS == (int)HD_FLOW_PORTS, "a worker has a port");

enum { PART, SUM, PARAMETERS, KINDS };
enum { MOST = HD_COMM_TIME_WORKERS };

struct timed_bucket {
	double bytes, part_bytes;         /* of its sum; of a partial sum, with its pieces */
	double final_ns;                  /* from the begin of the last backward pass on */
	uint32_t owner, chain[MOST], nchain;      /* from the owner on */
	/* of the step at hand */
	uint32_t due;
	double all_ns;                    /* when all partial sums that have come were there */
};

/* A forward node and what it reads. */
struct timed_node { double ns; uint32_t first, n; };

struct timed {
	const struct hd_comm_way *way;
	const struct hd_comm *comm;
	uint64_t step;                    /* that at hand */
	uint32_t nbuckets, nnodes;
	struct timed_bucket *bucket;
	struct timed_node *node;
	uint32_t *reads;
	double forward_ns, backward_ns;   /* of one virtual node */
	struct hd_flows flows;
	double *got_ns;                   /* [nbuckets][workers] sum or parameters are there */
	double back_ns[MOST], table_ns[MOST];     /* end of the backward pass; metrics of all are there */
};

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory to predict a step");
}

static double *got(struct timed *t, uint32_t bucket, uint32_t worker)
{
	return &t->got_ns[(size_t)bucket * t->way->nworkers + worker];
}

/* ---- buckets and nodes ---- */

static uint32_t *buckets_of_segments(const struct hd_layout *l, const struct hd_comm_cut *cut, uint32_t *n,
	struct hd_arena *arena)
{
	uint32_t *of = hd_arena_take(arena, l->nsegments + 1u, sizeof *of), s = 0;

	*n = cut ? cut->nbuckets : hd_layout_nbuckets(l);
	for (uint32_t b = 0; of && cut && b < cut->nbuckets; b++)
		for (uint32_t i = 0; i < cut->nsegments[b]; i++)
			of[s++] = b;
	for (; of && s < l->nsegments; s++)
		of[s] = hd_layout_bucket_of(l, l->segment[s].chunk);
	return of;
}

/* Bytes and when they are final; a further part of a tied parameter is sent with it. */
static void fill_buckets(struct timed *t, const struct hd_comm_ask *ask, const uint32_t *of)
{
	const struct hd_graph *g = ask->graph;
	const struct hd_layout *l = ask->layout;
	double now = 0;

	for (uint32_t s = 0; s < l->nsegments; s++)
		t->bucket[of[s]].bytes += (double)l->segment[s].len * sizeof(float);
	for (uint32_t k = 0; k < l->ngrads; k++) {
		const uint32_t p = l->grad_param[k];
		for (uint32_t s = l->first_segment[p]; s < l->first_segment[p + 1]; s++)
			t->bucket[of[s]].part_bytes += (double)l->segment[s].len * sizeof(float);
	}
	for (uint32_t i = g->nforward; i < g->nnodes; i++) {
		now += (double)ask->node_ns[i] * t->way->wave;
		for (uint32_t k = 0; k < hd_graph_ngrads(g); k++) {
			const uint32_t v = hd_graph_grad(g, k), p = hd_graph_grad_param(g, k);
			for (uint32_t s = v != HD_NONE && g->value[v].node == i ? l->first_segment[p] :
				l->first_segment[p + 1]; s < l->first_segment[p + 1]; s++)
				t->bucket[of[s]].final_ns = now;
		}
	}
	t->backward_ns = now / t->way->wave;
}

static uint32_t reads_of(uint32_t *to, uint32_t *seen, const struct hd_comm_ask *ask, const uint32_t *of,
	uint32_t inode)
{
	const struct hd_node *node = &ask->graph->node[inode];
	const struct hd_layout *l = ask->layout;
	uint32_t n = 0;

	for (uint32_t k = 0; k < node->nin; k++) {
		const struct hd_value *v = &ask->graph->value[node->in[k]];
		if (v->kind != HD_PARAM)
			continue;
		for (uint32_t s = l->first_segment[v->data]; s < l->first_segment[v->data + 1]; s++) {
			if (seen[of[s]] == inode + 1)
				continue;
			seen[of[s]] = inode + 1;
			if (to)
				to[n] = of[s];
			n++;
		}
	}
	return n;
}

static enum hd_err fill_nodes(struct timed *t, const struct hd_comm_ask *ask, const uint32_t *of,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t *seen = hd_arena_take(arena, t->nbuckets + 1u, sizeof *seen), all = 0;

	t->nnodes = ask->graph->nforward;
	t->node = hd_arena_take(arena, t->nnodes + 1u, sizeof *t->node);
	if (!seen || !t->node)
		return no_memory(diag);
	for (uint32_t i = 0; i < t->nnodes; i++) {
		t->node[i] = (struct timed_node){ (double)ask->node_ns[i], all, 0 };
		t->node[i].n = reads_of(NULL, seen, ask, of, i);
		t->forward_ns += t->node[i].ns;
		all += t->node[i].n;
	}
	t->reads = hd_arena_take(arena, all + 1u, sizeof *t->reads);
	if (!t->reads)
		return no_memory(diag);
	memset(seen, 0, t->nbuckets * sizeof *seen);
	for (uint32_t i = 0; i < t->nnodes; i++)
		(void)reads_of(t->reads + t->node[i].first, seen, ask, of, i);
	return HD_OK;
}

/* Owners and chains are those of the view that a run begins with. */
static enum hd_err hold(struct timed *t, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_comm_way *way = t->way;
	uint64_t *bytes = hd_arena_take(arena, t->nbuckets + 1u, sizeof *bytes);
	struct hd_holding held;
	enum hd_err err = bytes ? hd_holding_init(&held, t->nbuckets, diag) : no_memory(diag);

	if (err)
		return err;
	for (uint32_t b = 0; b < t->nbuckets; b++)
		bytes[b] = (uint64_t)(t->bucket[b].bytes + t->bucket[b].part_bytes);
	held.bytes = bytes;
	hd_holding_make(&held, NULL, &(struct hd_holders){ .n = way->nworkers }, way->copies, way->servers);
	for (uint32_t b = 0; b < t->nbuckets; b++) {
		struct timed_bucket *at = &t->bucket[b];
		at->owner = held.owner[b];
		for (uint32_t i = 0; i < way->nworkers; i++) {
			const uint32_t m = (at->owner + i) % way->nworkers;
			if (held.slot[b] >> m & 1)
				at->chain[at->nchain++] = m;
		}
		assert(at->nchain && at->chain[0] == at->owner);
	}
	hd_holding_finish(&held);
	return HD_OK;
}

/* ---- messages ---- */

static void send(struct timed *t, uint8_t kind, uint32_t b, uint32_t from, uint32_t to, double ready_ns)
{
	const struct timed_bucket *at = &t->bucket[b];

	const uint32_t urgency = hd_comm_urgency(t->comm, t->nbuckets, b, kind == PART,
		&(struct hd_comm_turn){ t->step, from, to });

	hd_flows_add(&t->flows, &(struct hd_flow_message){ ready_ns,
		kind == PART ? at->part_bytes : at->bytes, urgency, b, kind, (uint8_t)from, (uint8_t)to });
}

static uint32_t place_of(const struct timed_bucket *of, uint32_t worker)
{
	uint32_t i = 0;

	while (i < of->nchain && of->chain[i] != worker)
		i++;
	return i;
}

static void hand_out(struct timed *t, uint32_t b, double ready_ns)
{
	const struct timed_bucket *of = &t->bucket[b];

	for (uint32_t w = 0; w < t->way->nworkers; w++)
		if (place_of(of, w) == of->nchain)
			send(t, PARAMETERS, b, of->chain[of->nchain - 1], w, ready_ns);
}

/* Worker `place` of the chain has the sum: where all hold slots it sends it to all, else to the next. The
 * last of the chain sends parameters. */
static void has_sum(struct timed *t, uint32_t b, uint32_t place, double ns)
{
	const struct timed_bucket *of = &t->bucket[b];
	const uint32_t n = t->way->nworkers, me = of->chain[place];

	*got(t, b, me) = ns;
	if (of->nchain == n) {
		for (uint32_t i = 1; i < n && !place; i++)
			send(t, SUM, b, me, of->chain[i], ns);
		return;
	}
	if (place + 1 < of->nchain) {
		send(t, SUM, b, me, of->chain[place + 1], ns);
		return;
	}
	if (!t->way->norms)
		hand_out(t, b, (t->way->early ? ns : fmax(ns, t->table_ns[me])) + (double)t->way->hop_ns);
}

static void arrived(void *user, const struct hd_flow_message *m, double at_ns)
{
	struct timed *t = user;
	struct timed_bucket *of = &t->bucket[m->bucket];

	if (m->kind == PARAMETERS) {
		*got(t, m->bucket, m->to) = at_ns;
	} else if (m->kind == SUM) {
		has_sum(t, m->bucket, place_of(of, m->to), at_ns);
	} else {
		of->all_ns = fmax(of->all_ns, at_ns);
		if (!--of->due)
			has_sum(t, m->bucket, 0, of->all_ns + (double)t->way->hop_ns);
	}
}

/* When a worker knows the norms of all sums, and so updates its slots: of those in whose chain it is not the
 * last of the chain tells it. */
static double normed(struct timed *t, uint32_t w)
{
	double ns = t->table_ns[w];

	for (uint32_t b = 0; b < t->nbuckets; b++) {
		const struct timed_bucket *of = &t->bucket[b];
		const uint32_t last = of->chain[of->nchain - 1];
		ns = fmax(ns, place_of(of, w) < of->nchain ? *got(t, b, w) :
			*got(t, b, last) + t->flows.late_ns);
	}
	return ns + (double)t->way->hop_ns;
}

/* Parameters that wait for norms: readable where their slots lie, and sent, when these are updated. */
static void hand_out_late(struct timed *t)
{
	double ns[MOST];

	for (uint32_t w = 0; w < t->way->nworkers; w++)
		ns[w] = normed(t, w);
	for (uint32_t b = 0; b < t->nbuckets; b++) {
		const struct timed_bucket *of = &t->bucket[b];
		for (uint32_t i = 0; i < of->nchain; i++)
			*got(t, b, of->chain[i]) = ns[of->chain[i]];
		if (of->nchain < t->way->nworkers)
			hand_out(t, b, ns[of->chain[of->nchain - 1]]);
	}
	hd_flows_run(&t->flows);
}

/* Backward passes begin at begin_ns[worker]. */
static void exchange(struct timed *t, const double *begin_ns)
{
	const uint32_t n = t->way->nworkers;
	const double hop_ns = (double)t->way->hop_ns, back_ns = t->backward_ns * t->way->wave;

	for (uint32_t w = 0; w < n; w++)
		t->back_ns[w] = begin_ns[w] + back_ns + (double)t->way->phase_ns;
	for (uint32_t w = 0; w < n; w++) {
		t->table_ns[w] = t->back_ns[w];
		for (uint32_t v = 0; v < n; v++)
			if (v != w)
				t->table_ns[w] = fmax(t->table_ns[w], t->back_ns[v] + t->flows.late_ns +
					hop_ns);
	}
	for (uint32_t b = 0; b < t->nbuckets; b++) {
		struct timed_bucket *of = &t->bucket[b];
		of->due = n - 1;
		of->all_ns = begin_ns[of->owner] + of->final_ns;
		for (uint32_t w = 0; w < n; w++)
			if (w != of->owner)
				send(t, PART, b, w, of->owner, begin_ns[w] + of->final_ns + hop_ns);
		if (n == 1)
			has_sum(t, b, 0, of->all_ns);
	}
	hd_flows_run(&t->flows);
	if (t->way->norms && t->way->copies)
		hand_out_late(t);
}

/* ---- steps ---- */

/* When all is there and each has heard so. */
static double over(struct timed *t)
{
	const uint32_t n = t->way->nworkers;
	double ns = 0;

	for (uint32_t w = 0; w < n; w++) {
		ns = fmax(ns, t->table_ns[w]);
		for (uint32_t b = 0; b < t->nbuckets; b++)
			ns = fmax(ns, *got(t, b, w));
	}
	return ns + (n > 1 ? t->flows.late_ns : 0) + 3 * (double)t->way->hop_ns;
}

/* When the first wave's forward nodes are through at a worker, which may begin while the step ends. */
static double forward(struct timed *t, uint32_t w, double over_ns)
{
	const bool waits = t->way->norms && !t->way->copies;
	double now_ns = waits ? over_ns : t->back_ns[w];

	for (uint32_t i = 0; i < t->nnodes; i++) {
		double ready_ns = t->node[i].n ? t->table_ns[w] : 0;
		for (uint32_t k = 0; k < t->node[i].n; k++)
			ready_ns = fmax(ready_ns, *got(t, t->reads[t->node[i].first + k], w));
		now_ns = fmax(now_ns, fmin(ready_ns, over_ns)) + t->node[i].ns * t->way->wave;
	}
	return now_ns + (double)t->way->phase_ns;
}

/* What is computed between the first wave's forward and the last wave's backward pass. */
static double between(const struct timed *t)
{
	return (t->forward_ns + t->backward_ns) * (t->way->nvns - t->way->wave);
}

/* The last step; of an order that is drawn for each step the mean of all but the first. */
static int64_t play(struct timed *t)
{
	const bool drawn = t->comm && t->comm->order == HD_COMM_RANDOM;
	const uint32_t n = t->way->nworkers, nsteps = drawn ? HD_COMM_TIME_DRAWS + 1 : HD_COMM_TIME_STEPS,
		from = drawn ? 1 : nsteps - 1;
	double begin_ns[MOST], end_ns[2] = { 0, 0 };

	for (uint32_t w = 0; w < n; w++)
		begin_ns[w] = t->forward_ns * t->way->wave + between(t);
	for (t->step = 0; t->step < nsteps; t->step++) {
		double mean_ns = 0;
		exchange(t, begin_ns);
		const double over_ns = over(t);
		for (uint32_t w = 0; w < n; w++) {
			mean_ns += t->back_ns[w] / n;
			begin_ns[w] = fmax(over_ns, forward(t, w, over_ns)) + between(t);
		}
		end_ns[t->step >= from] = mean_ns;
	}
	return llround((end_ns[1] - end_ns[0]) / (nsteps - from));
}

static bool is_small(uint32_t nbuckets, uint32_t nworkers)
{
	return nworkers <= HD_COMM_TIME_WORKERS &&
		(uint64_t)nbuckets * nworkers * nworkers <= HD_COMM_TIME_MESSAGES;
}

enum hd_err hd_comm_step_time(struct hd_comm_time *time, const struct hd_comm_ask *ask,
	const struct hd_comm_cut *cut, const struct hd_comm *comm, const struct hd_comm_way *way,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct timed t = { .way = way, .comm = comm };
	uint32_t *of = buckets_of_segments(ask->layout, cut, &t.nbuckets, arena);

	assert(ask->node_ns && way->nworkers && way->wave && way->wave <= way->nvns);
	*time = (struct hd_comm_time){ 0, 0 };
	if (!of)
		return no_memory(diag);
	if (!is_small(t.nbuckets, way->nworkers))
		return HD_OK;
	t.bucket = hd_arena_take(arena, t.nbuckets + 1u, sizeof *t.bucket);
	t.got_ns = hd_arena_take(arena, (size_t)t.nbuckets * way->nworkers + 1, sizeof *t.got_ns);
	t.flows = (struct hd_flows){ .ns_per_byte = 1e9 / ask->link.bytes_per_s,
		.late_ns = (double)ask->link.latency_ns, .arrived = arrived, .user = &t,
		.own_bytes = (double)way->message_ns * ask->link.bytes_per_s * 1e-9 };
	if (!t.bucket || !t.got_ns || !hd_flows_init(&t.flows, way->nworkers, KINDS * t.nbuckets, arena))
		return no_memory(diag);
	fill_buckets(&t, ask, of);
	enum hd_err err = fill_nodes(&t, ask, of, arena, diag);
	err = err ? err : hold(&t, arena, diag);
	if (err)
		return err;
	time->step_ns = play(&t);
	time->computing_ns = llround((t.forward_ns + t.backward_ns) * way->nvns);
	return HD_OK;
}
