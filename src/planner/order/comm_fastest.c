#include "planner/comm_time.h"

#include <string.h>

/* Longer by no more than this is as good, with fewer buckets. */
#define HD_AS_GOOD 1.002
/* Partial sums by rank are as good with no more than this. */
#define HD_PARTS_AS_GOOD 1.02

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory to choose buckets");
}

/* Ranks by the first node that reads each, or as backward passes make them. */
static enum hd_err rank(struct hd_comm *comm, const struct hd_comm_ask *ask, const struct hd_comm_cut *cut,
	bool parts, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_layout *l = ask->layout;
	uint32_t *of = hd_arena_take(arena, l->nsegments + 1u, sizeof *of), s = 0, next = 0;

	*comm = (struct hd_comm){ .order = HD_COMM_FIFO, .nbuckets = cut->nbuckets, .parts = parts,
		.rank = hd_arena_take(arena, cut->nbuckets + 1u, sizeof *comm->rank) };
	if (!of || !comm->rank)
		return no_memory(diag);
	for (uint32_t b = 0; b < cut->nbuckets; b++) {
		comm->rank[b] = ask->order == HD_COMM_FIFO ? cut->nbuckets - 1 - b : cut->nbuckets;
		for (uint32_t i = 0; i < cut->nsegments[b]; i++)
			of[s++] = b;
	}
	for (uint32_t i = 0; i < ask->graph->nforward; i++)
		for (uint32_t k = 0; k < ask->graph->node[i].nin; k++) {
			const struct hd_value *v = &ask->graph->value[ask->graph->node[i].in[k]];
			const bool is = v->kind == HD_PARAM;
			s = is ? l->first_segment[v->data] : 0;
			for (; is && s < l->first_segment[v->data + 1]; s++)
				if (comm->rank[of[s]] == cut->nbuckets)
					comm->rank[of[s]] = next++;
		}
	for (uint32_t b = 0; b < cut->nbuckets; b++)
		if (comm->rank[b] == cut->nbuckets)
			comm->rank[b] = next++;
	return HD_OK;
}

static enum hd_err time_of(int64_t *ns, const struct hd_comm_ask *ask, const struct hd_comm_cut *cut,
	bool parts, const struct hd_comm_way *way, struct hd_diag *diag)
{
	struct hd_arena scratch;
	struct hd_comm comm;
	struct hd_comm_time time = { 0, 0 };

	hd_arena_init(&scratch, 0);
	enum hd_err err = rank(&comm, ask, cut, parts, &scratch, diag);
	err = err ? err : hd_comm_step_time(&time, ask, cut, &comm, way, &scratch, diag);
	hd_arena_finish(&scratch);
	*ns = time.step_ns;
	return err;
}

static bool is_better(int64_t ns, uint32_t n, int64_t than_ns, uint32_t than_n)
{
	if (!than_ns || !ns)
		return ns > 0;
	return n < than_n ? (double)ns <= HD_AS_GOOD * (double)than_ns : HD_AS_GOOD * (double)ns <
		(double)than_ns;
}

/* What was found so far, of one value of `parts`. */
struct fastest { struct hd_comm_cut cut; int64_t ns; };

static enum hd_err try_cut(struct fastest *found, const struct hd_comm_ask *ask,
	const struct hd_comm_way *way, const struct hd_comm_cut *cut, bool parts, struct hd_diag *diag)
{
	int64_t ns = 0;
	enum hd_err err = time_of(&ns, ask, cut, parts, way, diag);

	if (!err && is_better(ns, cut->nbuckets, found->ns, found->cut.nbuckets))
		*found = (struct fastest){ *cut, ns };
	return err;
}

static enum hd_err try_cuts(struct fastest *found, const struct hd_comm_ask *ask,
	const struct hd_comm_way *way, const struct hd_comm_cut *cut, uint32_t n, bool parts,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < n && !err; i++)
		if (!i || cut[i].nbuckets <= HD_ORDER_RECVS)
			err = try_cut(found, ask, way, &cut[i], parts, diag);
	return err;
}

enum hd_err hd_comm_cut_fastest(struct hd_comm_cut *best, bool *parts, int64_t *ns,
	const struct hd_comm_ask *ask, const struct hd_comm_way *way, const int64_t *bytes, uint32_t n,
	const struct hd_comm_cut *first, struct hd_arena *arena, struct hd_diag *diag)
{
	const bool named = ask->order != HD_COMM_AUTO && ask->order != HD_COMM_FIFO,
		both = ask->order == HD_COMM_AUTO && way->copies && way->copies < way->nworkers;
	struct hd_comm_cut *cut = hd_arena_take(arena, n + 1u, sizeof *cut);
	struct fastest by_rank = { *first, 0 }, behind = by_rank;
	enum hd_err err = cut ? HD_OK : no_memory(diag);

	for (uint32_t i = 0; i <= n && !err; i++) {
		cut[i] = *first;
		err = i ? hd_comm_cut(&cut[i], ask->layout, bytes[i - 1], arena, diag) : HD_OK;
	}
	if (!err && (named || both))
		err = try_cuts(&by_rank, ask, way, cut, n + 1, true, diag);
	if (!err && !named)
		err = try_cuts(&behind, ask, way, cut, n + 1, false, diag);
	if (err)
		return err;
	/* by rank they are as fast as said, else slower (ADR 246, 270) */
	*parts = named || (by_rank.ns && (double)by_rank.ns <= HD_PARTS_AS_GOOD * (double)behind.ns);
	*best = *parts ? by_rank.cut : behind.cut;
	*ns = *parts ? by_rank.ns : behind.ns;
	return HD_OK;
}
