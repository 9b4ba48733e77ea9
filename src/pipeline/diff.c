#include "pipeline/diff.h"

#include <string.h>

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory to compare plans"); }

enum hd_err hd_layout_of_plan(struct hd_plan_layout *out, const struct hd_plan *p, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_plan_layout l = { .nranks = p->nranks, .nvns = p->nvns, .nstages = p->nstages,
		.nchunks = p->nchunks, .owner = p->owner, .worker = p->worker,
		.list = { NULL, p->list, NULL } };
	size_t n = (size_t)p->nstages * p->nvns;

	if (!(l.rank = hd_arena_take(arena, n + 1, sizeof *l.rank)))
		return no_memory(diag);
	for (size_t k = 0; k < n; k++)
		l.rank[k] = p->map[k % p->nvns];
	*out = l;
	return HD_OK;
}

enum hd_err hd_layout_of_schedule(struct hd_plan_layout *out, const struct hd_schedule *s,
	struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_plan_layout l = { .nranks = s->nranks, .nvns = s->nvns, .nstages = s->nstages,
		.update = s->update,
		.list = { s->prologue, s->list, s->epilogue } };
	size_t n = (size_t)s->nstages * s->nvns, nins = 0;

	for (uint32_t r = 0; r < s->nranks; r++)
		nins += s->list[r].len;
	if (n > nins)
		return hd_fail(diag, HD_E_BADPLAN,
			"%u stages of %u virtual nodes need more than its %zu instructions", s->nstages,
			s->nvns, nins);
	if (!(l.rank = hd_arena_take(arena, n + 1, sizeof *l.rank)))
		return no_memory(diag);
	for (size_t k = 0; k < n; k++)
		l.rank[k] = HD_NO_RANK;
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *x = &s->list[r].at[i];
			if (x->op != HD_INS_F)
				continue;
			/* in a period the forwards of one step may belong to neighbours: their number
			 * inside the step decides */
			int64_t v = (int32_t)x->vn % (int64_t)s->nvns;
			if (x->stage < s->nstages)
				l.rank[(size_t)x->stage * s->nvns + (size_t)(v < 0 ? v + s->nvns : v)] = r;
		}
	*out = l;
	return HD_OK;
}

struct differ {
	struct hd_plan_diff d;
	const struct hd_plan_layout *a, *b;
	const struct hd_stage_costs *costs;
	struct hd_arena *arena;
	struct hd_diag *diag;
	/* holders of the stage at hand, ascending; seen: stage + 1 */
	uint32_t *seen_a, *seen_b, *held_a, *held_b, na, nb;
};

/* Ranks that run a stage, in ascending order. */
static uint32_t holders(const struct hd_plan_layout *l, uint32_t stage, uint32_t *seen, uint32_t *held)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < l->nvns; v++) {
		uint32_t r = l->rank[(size_t)stage * l->nvns + v], k;
		if (r >= l->nranks || seen[r] == stage + 1)
			continue;
		seen[r] = stage + 1;
		for (k = n++; k > 0 && held[k - 1] > r; k--)
			held[k] = held[k - 1];
		held[k] = r;
	}
	return n;
}

static enum hd_err move_stage(struct differ *x, uint32_t stage)
{
	struct hd_stage_move *m = &x->d.stage[x->d.nstages++];
	uint32_t i = 0, fresh = 0;

	*m = (struct hd_stage_move){ .stage = stage, .nfrom = x->na, .nto = x->nb };
	m->from = hd_arena_take(x->arena, (size_t)x->na + 1, sizeof *m->from);
	m->to = hd_arena_take(x->arena, (size_t)x->nb + 1, sizeof *m->to);
	if (!m->from || !m->to)
		return no_memory(x->diag);
	memcpy(m->from, x->held_a, x->na * sizeof *m->from);
	memcpy(m->to, x->held_b, x->nb * sizeof *m->to);
	for (uint32_t k = 0; k < x->nb; k++) {
		while (i < x->na && x->held_a[i] < x->held_b[k])
			i++;
		fresh += i == x->na || x->held_a[i] != x->held_b[k];
	}
	if (x->costs)
		m->bytes = (x->costs->stage[stage].param + x->costs->stage[stage].opt) * fresh;
	x->d.bytes += x->costs ? m->bytes : 0;
	return HD_OK;
}

static void move_vns(struct differ *x, uint32_t stage)
{
	uint32_t m = x->a->nvns < x->b->nvns ? x->a->nvns : x->b->nvns;

	for (uint32_t v = 0; v < m; v++) {
		uint32_t from = x->a->rank[(size_t)stage * x->a->nvns + v],
			to = x->b->rank[(size_t)stage * x->b->nvns + v];
		struct hd_vn_move *last = x->d.nvns ? &x->d.vn[x->d.nvns - 1] : NULL;
		if (from == to)
			continue;
		x->d.vns_moved++;
		if (last && last->stage == stage && last->first + last->n == v && last->from == from &&
			last->to == to)
			last->n++;
		else
			x->d.vn[x->d.nvns++] = (struct hd_vn_move){ stage, v, 1, from, to };
	}
}

static enum hd_err compare_stages(struct differ *x)
{
	uint32_t n = x->a->nstages < x->b->nstages ? x->a->nstages : x->b->nstages,
		m = x->a->nvns < x->b->nvns ? x->a->nvns : x->b->nvns;

	x->d.stage = hd_arena_take(x->arena, (size_t)n + 1, sizeof *x->d.stage);
	x->d.vn = hd_arena_take(x->arena, (size_t)n * m + 1, sizeof *x->d.vn);
	x->seen_a = hd_arena_take(x->arena, (size_t)x->a->nranks + 1, sizeof *x->seen_a);
	x->seen_b = hd_arena_take(x->arena, (size_t)x->b->nranks + 1, sizeof *x->seen_b);
	x->held_a = hd_arena_take(x->arena, (size_t)x->a->nranks + 1, sizeof *x->held_a);
	x->held_b = hd_arena_take(x->arena, (size_t)x->b->nranks + 1, sizeof *x->held_b);
	if (!x->d.stage || !x->d.vn || !x->seen_a || !x->seen_b || !x->held_a || !x->held_b)
		return no_memory(x->diag);
	for (uint32_t s = 0; s < n; s++) {
		x->na = holders(x->a, s, x->seen_a, x->held_a);
		x->nb = holders(x->b, s, x->seen_b, x->held_b);
		bool moved = x->na != x->nb || memcmp(x->held_a, x->held_b, x->na * sizeof *x->held_a) != 0;
		if (moved && move_stage(x, s))
			return HD_E_NOMEM;
		/* of one holder before and after, all its virtual nodes go with the stage */
		if (!moved || x->na > 1 || x->nb > 1)
			move_vns(x, s);
	}
	return HD_OK;
}

static enum hd_err compare_chunks(struct differ *x)
{
	uint32_t n = x->a->nchunks < x->b->nchunks ? x->a->nchunks : x->b->nchunks;
	uint32_t p = x->a->worker && x->b->worker ? x->a->nranks < x->b->nranks ? x->a->nranks :
		x->b->nranks : 0;

	x->d.chunk = hd_arena_take(x->arena, (size_t)n + 1, sizeof *x->d.chunk);
	x->d.rank = hd_arena_take(x->arena, (size_t)p + 1, sizeof *x->d.rank);
	if (!x->d.chunk || !x->d.rank)
		return no_memory(x->diag);
	for (uint32_t c = 0; c < n; c++) {
		uint32_t from = x->a->owner[c], to = x->b->owner[c];
		struct hd_chunk_move *last = x->d.nchunks ? &x->d.chunk[x->d.nchunks - 1] : NULL;
		if (from == to)
			continue;
		x->d.chunks_moved++;
		if (last && last->first + last->n == c && last->from == from && last->to == to)
			last->n++;
		else
			x->d.chunk[x->d.nchunks++] = (struct hd_chunk_move){ c, 1, from, to };
	}
	for (uint32_t r = 0; r < p; r++)
		if (x->a->worker[r] != x->b->worker[r])
			x->d.rank[x->d.nranks++] = (struct hd_rank_move){ r, x->a->worker[r],
				x->b->worker[r] };
	return HD_OK;
}

/* ---- lists */

static bool equal(const struct hd_ins *a, const struct hd_ins *b) { return memcmp(a, b, sizeof *a) == 0; }

/* Length of the longest common subsequence; two rows of the table. */
static enum hd_err common(struct differ *x, const struct hd_ins *a, uint32_t na, const struct hd_ins *b,
	uint32_t nb, uint32_t *out)
{
	*out = 0;
	if (na == 0 || nb == 0 || (uint64_t)na * nb > HD_DIFF_CELLS)
		return HD_OK;
	uint32_t *row = hd_arena_take(x->arena, (size_t)nb + 1, sizeof *row);
	if (!row)
		return no_memory(x->diag);
	for (uint32_t i = 0; i < na; i++)
		for (uint32_t j = 0, diagonal = 0; j < nb; j++) {
			uint32_t above = row[j + 1], left = row[j];
			row[j + 1] = equal(&a[i], &b[j]) ? diagonal + 1 : above > left ? above : left;
			diagonal = above;
		}
	*out = row[nb];
	return HD_OK;
}

static enum hd_err compare_list(struct differ *x, uint32_t rank, uint32_t section, const struct hd_ilist *a,
	const struct hd_ilist *b)
{
	static const struct hd_ilist none = { 0 };
	uint32_t first = 0, end_a, end_b, kept;

	a = a ? a : &none;
	b = b ? b : &none;
	while (first < a->len && first < b->len && equal(&a->at[first], &b->at[first]))
		first++;
	for (end_a = a->len, end_b = b->len; end_a > first && end_b > first &&
		equal(&a->at[end_a - 1], &b->at[end_b - 1]); end_a--)
		end_b--;
	if (end_a == first && end_b == first)
		return HD_OK;
	enum hd_err err = common(x, first ? &a->at[first] : a->at, end_a - first,
		first ? &b->at[first] : b->at, end_b - first, &kept);
	if (err)
		return err;
	struct hd_list_change *c = &x->d.list[x->d.nlists++];
	*c = (struct hd_list_change){ .rank = rank, .section = section, .at = first,
		.removed = end_a - first - kept, .added = end_b - first - kept };
	if (end_a > first)
		c->first_removed = a->at[first];
	if (end_b > first)
		c->first_added = b->at[first];
	x->d.removed += c->removed;
	x->d.added += c->added;
	return HD_OK;
}

static enum hd_err compare_lists(struct differ *x)
{
	uint32_t p = x->a->nranks > x->b->nranks ? x->a->nranks : x->b->nranks;
	enum hd_err err = HD_OK;

	if (!(x->d.list = hd_arena_take(x->arena, 3 * (size_t)p + 1, sizeof *x->d.list)))
		return no_memory(x->diag);
	for (uint32_t r = 0; r < p && !err; r++)
		for (uint32_t k = 0; k < 3 && !err; k++)
			err = compare_list(x, r, k, x->a->list[k] &&
				r < x->a->nranks ? &x->a->list[k][r] : NULL,
				x->b->list[k] && r < x->b->nranks ? &x->b->list[k][r] : NULL);
	return err;
}

enum hd_err hd_plan_diff(struct hd_plan_diff *out, const struct hd_plan_layout *a,
	const struct hd_plan_layout *b,
	const struct hd_stage_costs *costs,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct differ x = { .d = { .a = a, .b = b, .bytes = costs ? 0 : -1 }, .a = a, .b = b, .costs = costs,
		.arena = arena, .diag = diag };

	if (costs && costs->nstages != b->nstages)
		return hd_fail(diag, HD_E_INVAL, "costs of %u stages for a plan of %u", costs->nstages,
			b->nstages);
	enum hd_err err = compare_stages(&x);
	err = err ? err : compare_chunks(&x);
	err = err ? err : compare_lists(&x);
	if (err)
		return err;
	x.d.same = a->nranks == b->nranks && a->nvns == b->nvns && a->nstages == b->nstages &&
		a->nchunks == b->nchunks &&
		a->update == b->update && !x.d.nvns && !x.d.nstages &&
		!x.d.nchunks && !x.d.nranks && !x.d.nlists;
	*out = x.d;
	return HD_OK;
}
