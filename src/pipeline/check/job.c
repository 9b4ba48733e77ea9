/* Rules about what stands around the lists: the layers of stages (K5), members of tensor groups (K26),
 * pipelines (K28), and what a period leaves behind (K30). */
#include <stdlib.h>
#include <string.h>

#include "pipeline/check/int.h"

#define NO_ONE UINT32_MAX

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory to check a schedule"); }

/* ---- K5 */

enum hd_err hd_lists_layers(const struct hd_lists *l, struct hd_diag *diag)
{
	const struct hd_layers *g = l->job->layers;
	uint32_t *stage = hd_arena_take(l->arena, (size_t)g->nnodes + 1, sizeof *stage);

	if (!stage)
		return no_memory(diag);
	if (g->nstages != l->s->nstages)
		hd_lists_say_all(l, "K5", "the nodes are given to %u stages, the lists have %u", g->nstages,
			l->s->nstages);
	for (uint32_t n = 0; n < g->nnodes; n++)
		stage[n] = NO_ONE;
	for (uint32_t s = 0; s < g->nstages; s++)
		for (uint32_t i = g->first[s]; i < g->first[s + 1]; i++) {
			uint32_t n = g->node[i];
			if (n >= g->nnodes)
				hd_lists_say_all(l, "K5", "stage %u has node %u of %u", s, n, g->nnodes);
			else if (stage[n] != NO_ONE)
				hd_lists_say_all(l, "K5", "node %s belongs to stages %u and %u", g->name[n],
					stage[n], s);
			else
				stage[n] = s;
		}
	for (uint32_t n = 0; n < g->nnodes; n++)
		if (stage[n] == NO_ONE)
			hd_lists_say_all(l, "K5", "node %s belongs to no stage", g->name[n]);
	for (uint32_t e = 0; e < g->nedges; e++) {
		uint32_t from = g->edge[e][0], to = g->edge[e][1];
		if (from >= g->nnodes || to >= g->nnodes)
			hd_lists_say_all(l, "K5", "an edge names node %u of %u",
				from >= g->nnodes ? from : to, g->nnodes);
		else if (stage[from] != NO_ONE && stage[to] != NO_ONE && stage[from] > stage[to])
			hd_lists_say_all(l, "K5", "edge %s -> %s runs backwards from stage %u to %u",
				g->name[from], g->name[to], stage[from], stage[to]);
	}
	return HD_OK;
}

/* ---- K28 */

enum hd_err hd_lists_pipelines(const struct hd_lists *l, struct hd_diag *diag)
{
	const struct hd_schedule_job *job = l->job;
	uint32_t *owner = hd_arena_take(l->arena, (size_t)job->nvns + 1, sizeof *owner);

	if (!owner)
		return no_memory(diag);
	for (uint32_t v = 0; v < job->nvns; v++)
		owner[v] = NO_ONE;
	for (uint32_t p = 0; p < job->npipelines; p++) {
		if (job->pipeline[p].len != l->step_vns)
			hd_lists_say_all(l, "K28",
				"pipeline %u is given %u virtual nodes, its lists have m = %u", p,
				job->pipeline[p].len, l->step_vns);
		for (uint32_t i = 0; i < job->pipeline[p].len; i++) {
			uint32_t v = job->pipeline[p].at[i];
			if (v >= job->nvns)
				hd_lists_say_all(l, "K28",
					"pipeline %u is given virtual node %u, the job has %u", p, v,
					job->nvns);
			else if (owner[v] != NO_ONE)
				hd_lists_say_all(l, "K28",
					"virtual node %u is assigned to pipelines %u and %u", v, owner[v], p);
			else
				owner[v] = p;
		}
	}
	for (uint32_t v = 0; v < job->nvns; v++)
		if (owner[v] == NO_ONE)
			hd_lists_say_all(l, "K28", "virtual node %u is assigned to no pipeline", v);
	return HD_OK;
}

/* ---- K26 */

static const struct hd_ilist *section(const struct hd_schedule *s,
	int i) { return i == 0 ? s->prologue : i == 1 ? s->list : s->epilogue; }

/* Peers are compared by their group: each member talks to its like. */
static bool alike(const struct hd_ins *a, const struct hd_ins *b, const uint32_t *group, uint32_t nranks)
{
	struct hd_ins x = *a, y = *b;
	uint32_t to_a = a->peer < nranks ? group[a->peer] : a->peer,
		to_b = b->peer < nranks ? group[b->peer] : b->peer;

	x.peer = y.peer = 0;
	return memcmp(&x, &y, sizeof x) == 0 && (to_a == to_b || a->peer == b->peer);
}

static void compare_member(const struct hd_lists *l, uint32_t rank, uint32_t leader)
{
	for (int k = 0; k < 3; k++) {
		const struct hd_ilist *all = section(l->s, k), *a = all ? &all[leader] : NULL,
			*b = all ? &all[rank] : NULL;
		uint32_t i = 0;
		if (!all)
			continue;
		while (i < a->len && i < b->len && alike(&a->at[i], &b->at[i], l->job->tensor, l->s->nranks))
			i++;
		if (i == a->len && i == b->len)
			continue;
		if (k == 1 && i < a->len && i < b->len)
			hd_lists_say_both(l, "K26", rank, i, leader, i,
				"ranks of one tensor group run different lists (first difference at #%u)", i);
		else
			hd_lists_say_all(l, "K26",
				"ranks %u and %u: ranks of one tensor group run different lists (first "
				"difference at #%u%s)", leader,
				rank, i, k == 1 ? "" : k == 0 ? " of the prologue" : " of the epilogue");
		return;
	}
}

/* The lists of the first members, with groups for ranks. */
static bool keep_leaders(struct hd_schedule *out, const struct hd_schedule *s, const uint32_t *group,
	uint32_t ngroups, struct hd_arena *arena)
{
	struct hd_ilist *lists[3] = { NULL };

	for (int k = 0; k < 3; k++) {
		if (!section(s, k))
			continue;
		if (!(lists[k] = hd_arena_take(arena, (size_t)ngroups + 1, sizeof *lists[k])))
			return false;
		for (uint32_t r = s->nranks; r-- > 0;) {
			const struct hd_ilist *from = &section(s, k)[r];
			struct hd_ilist *to = &lists[k][group[r]];
			if (r && group[r - 1] == group[r])
				continue;
			if (!(to->at = hd_arena_take(arena, (size_t)from->len + 1, sizeof *to->at)))
				return false;
			memcpy(to->at, from->at, from->len * sizeof *to->at);
			to->len = to->cap = from->len;
			for (uint32_t i = 0; i < to->len; i++)
				to->at[i].peer = hd_is_transfer(to->at[i].op) &&
					to->at[i].peer < s->nranks ? (uint16_t)group[to->at[i].peer] :
					to->at[i].peer;
		}
	}
	*out = *s;
	out->nranks = ngroups;
	out->prologue = lists[0];
	out->list = lists[1];
	out->epilogue = lists[2];
	return true;
}

enum hd_err hd_lists_tensor_groups(const struct hd_lists *l, struct hd_schedule *out, struct hd_diag *diag)
{
	const uint32_t *group = l->job->tensor;
	const struct hd_schedule *s = l->s;

	for (uint32_t r = 0, leader = 0; r < s->nranks; r++) {
		if (group[r] != (r ? group[r - 1] + (group[r] != group[r - 1]) : 0)) {
			hd_lists_say_all(l, "K26",
				"tensor groups count up from 0 and stand together: rank %u is of group %u", r,
				group[r]);
			return HD_OK;
		}
		leader = r && group[r] == group[r - 1] ? leader : r;
		if (leader != r)
			compare_member(l, r, leader);
	}
	if (l->report->total)
		return HD_OK;
	if (!keep_leaders(out, s, group, group[s->nranks - 1] + 1, l->arena))
		return no_memory(diag);
	return hd_schedule_infer(out, l->arena, diag);
}

/* ---- K30 */

struct held_count { uint32_t stage; int64_t vn; int count; };

static int by_number(const void *a, const void *b)
{
	const struct held_count *x = a, *y = b;

	return x->stage != y->stage ? (x->stage > y->stage) - (x->stage < y->stage) :
		(x->vn > y->vn) - (x->vn < y->vn);
}

static uint32_t add(struct held_count *at, uint32_t n, const struct hd_ilist *list)
{
	for (uint32_t i = 0; i < list->len; i++) {
		const struct hd_ins *x = &list->at[i];
		if (x->op == HD_INS_F || x->op == HD_INS_B || x->op == HD_INS_W)
			at[n++] = (struct held_count){ x->stage, (int32_t)x->vn, x->op == HD_INS_F ? 1 : -1 };
	}
	return n;
}

/* Sums the counts of equals, drops what comes to 0. */
static uint32_t settle(struct held_count *at, uint32_t n)
{
	uint32_t kept = 0;

	qsort(at, n, sizeof *at, by_number);
	for (uint32_t i = 0, next; i < n; i = next) {
		int count = 0;
		for (next = i; next < n && by_number(&at[i], &at[next]) == 0; next++)
			count += at[next].count;
		if (count)
			at[kept++] = (struct held_count){ at[i].stage, at[i].vn, count };
	}
	return kept;
}

static void name(char out[24], const struct held_count *h, uint32_t i, uint32_t n)
{
	struct hd_text text;

	hd_text_fixed(&text, out, 24);
	if (i < n)
		hd_text_addf(&text, "%u.%lld", h[i].stage, (long long)h[i].vn);
	else
		hd_text_add(&text, "nothing more");
}

/* Virtual nodes of a step before, which a period has and a prologue has not. */
static bool prologue_looks_back(const struct hd_lists *l)
{
	for (uint32_t r = 0; r < l->s->nranks; r++)
		for (uint32_t i = 0; i < l->s->prologue[r].len; i++) {
			const struct hd_ins *x = &l->s->prologue[r].at[i];
			if (!hd_ins_uses(x->op, 'v') || (int32_t)x->vn >= 0)
				continue;
			hd_lists_say_all(l, "K30",
				"the period does not repeat: the prologue of rank %u names virtual node %d, "
				"and begins with 0", r, (int32_t)x->vn);
			return true;
		}
	return false;
}

enum hd_err hd_lists_period(const struct hd_lists *l, uint32_t first, struct hd_diag *diag)
{
	const struct hd_schedule *s = l->s;
	const int64_t m = s->nvns;

	if (prologue_looks_back(l))
		return HD_OK;
	for (uint32_t r = 0; r < s->nranks; r++) {
		size_t most = (size_t)s->prologue[r].len + s->list[r].len;
		struct held_count *before = hd_arena_take(l->arena, most + 1, sizeof *before),
			*after = hd_arena_take(l->arena, most + 1, sizeof *after);
		char was[24], is[24];
		if (!before || !after)
			return no_memory(diag);
		uint32_t n = settle(before, add(before, 0, &s->prologue[r])), i = 0;
		for (uint32_t k = 0; k < n; k++)
			before[k].vn -= first * m;
		memcpy(after, before, n * sizeof *after);
		uint32_t left = settle(after, add(after, n, &s->list[r]));
		for (uint32_t k = 0; k < left; k++)
			after[k].vn -= m;
		while (i < n && i < left && by_number(&before[i], &after[i]) == 0 &&
			before[i].count == after[i].count)
			i++;
		if (i == n && i == left)
			continue;
		name(was, before, i, n);
		name(is, after, i, left);
		hd_lists_say_all(l, "K30",
			"the period does not repeat: after it rank %u holds %s, before it it held %s", r, is,
			was);
		return HD_OK;
	}
	return HD_OK;
}
