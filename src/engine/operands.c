#include "engine/worker_int.h"

#include "engine/overlap.h"

/* The joins that make the sums of buckets, worked out once for the roots of a step: a stage has its own. */

static enum hd_err no_memory(uint32_t n, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for the joins of %u roots", n);
}

enum hd_err hd_operands_cap(struct hd_worker *w, uint32_t n, uint32_t nstages, struct hd_diag *diag)
{
	const struct hd_operands *old = &w->step->operands;
	struct hd_operands o = { .cap = n > old->cap ? n : old->cap,
		.nstages = nstages > old->nstages ? nstages : old->nstages };

	if (n <= old->cap && nstages <= old->nstages)
		return HD_OK;
	o.root = hd_arena_take(&w->arena, o.cap, sizeof *o.root);
	o.mine = hd_arena_take(&w->arena, o.cap, sizeof *o.mine);
	o.stage = hd_arena_take(&w->arena, o.cap, sizeof *o.stage);
	o.of = hd_arena_take(&w->arena, o.nstages, sizeof *o.of);
	o.flat_join = hd_arena_take(&w->arena, (size_t)o.cap * w->spec.ndevices, sizeof *o.flat_join);
	o.item = hd_arena_take(&w->arena, (size_t)2 * o.cap * w->spec.ndevices, sizeof *o.item);
	if (!o.root || !o.mine || !o.stage || !o.of || !o.flat_join || !o.item)
		return no_memory(n, diag);
	for (uint32_t s = 0; s < o.nstages; s++) {
		o.of[s].index = hd_arena_take(&w->arena, o.cap, sizeof *o.of[s].index);
		o.of[s].join = hd_arena_take(&w->arena, o.cap, sizeof *o.of[s].join);
		if (!o.of[s].index || !o.of[s].join)
			return no_memory(n, diag);
	}
	w->step->operands = o;
	return HD_OK;
}

static bool is_same(const struct hd_operands *o, const struct hd_tnode *root, const uint16_t *stage,
	uint32_t n)
{
	bool same = n && n == o->n;

	for (uint32_t i = 0; i < n && same; i++)
		same = hd_tnode_same(root[i], o->root[i]) && (stage ? stage[i] : 0) == o->stage[i];
	return same;
}

/* The roots of stage s cover the tree. */
static enum hd_err join_stage(struct hd_worker *w, struct hd_operands *o, uint32_t s, struct hd_diag *diag)
{
	struct hd_stage_operands *of = &o->of[s];
	const struct hd_tnode *root = o->root;
	struct hd_tnode *mine = o->mine;

	of->n = 0;
	for (uint32_t i = 0; i < o->n; i++)
		if (o->stage[i] == s) {
			mine[of->n] = root[i];
			of->index[of->n++] = i;
		}
	return hd_join_make(w->task->job->nvns, mine, of->n, of->join, o->cap, &of->njoins, &of->result,
		diag);
}

enum hd_err hd_dist_operands(struct hd_worker *w, const struct hd_tnode *root, const uint16_t *stage,
	uint32_t n, struct hd_diag *diag)
{
	struct hd_operands *o = &w->step->operands;
	const struct hd_pipe *pipe = hd_overlap_tables(hd_worker_work(w));
	const uint32_t nstages = pipe ? pipe->nstages : 1;

	if (is_same(o, root, stage, n))
		return HD_OK;
	enum hd_err err = hd_operands_cap(w, n, nstages, diag);
	if (err)
		return err;
	for (uint32_t i = 0; i < n; i++) {
		o->root[i] = root[i];
		o->stage[i] = stage ? stage[i] : 0;
		if (o->stage[i] >= nstages)
			err = hd_fail(diag, HD_E_INVAL, "a root of stage %u; the plan has %u", o->stage[i],
				nstages);
	}
	o->n = n;
	for (uint32_t s = 0; s < nstages && !err; s++)
		err = join_stage(w, o, s, diag);
	o->n = err ? 0 : n;
	return err;
}

bool hd_dist_run_has(const struct hd_worker *w, uint32_t run, uint16_t stage)
{
	const struct hd_layout *layout = &w->task->layout;
	const struct hd_pipe *pipe = hd_overlap_tables(hd_worker_work(w));
	const uint32_t nbuckets = hd_layout_nbuckets(layout);
	bool has = false;

	if (!pipe)
		return true;
	if (run >= nbuckets)
		return pipe->spread.of_grad[layout->piece[run - nbuckets].grad] == stage;
	const struct hd_chunk bucket = hd_layout_bucket(layout, run);
	for (uint32_t i = bucket.first_segment; i < bucket.first_segment + bucket.nsegments; i++)
		has |= pipe->spread.of_grad[layout->segment[i].param] == stage;
	return has;
}
