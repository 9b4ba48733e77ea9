#include "engine/worker_int.h"

#include <assert.h>
#include <string.h>

#include "plan/check.h"
#include "pipeline/staged.h"
#include "engine/fore.h"
#include "engine/meeting.h"
#include "engine/part_int.h"
#include "engine/onset.h"
#include "engine/overlap.h"
#include "engine/shadow.h"

/* A part of a view is made beside the one in use and taken up between two steps. The pools of buffers are
 * shared by both: their steps do not overlap, and pools only grow. */

/* The ranks of the plan that are this worker's devices; *mine: there are such. */
static enum hd_err find_ranks(const struct hd_worker *w, const struct hd_dist_view *view, uint32_t *rank,
	bool *mine, bool *alone, struct hd_diag *diag)
{
	const struct hd_plan *plan = view->plan;
	const uint32_t width = plan ? hd_plan_width(plan) : 1;
	uint32_t n = 0;

	for (uint32_t d = 0; d < w->spec.ndevices; d++)
		rank[d] = HD_NONE;
	for (uint32_t r = 0; plan && r < plan->nranks; r++)
		if (view->worker != HD_DIST_NOBODY && plan->worker[r] == view->worker)
			for (uint32_t k = 0; k < width; k++, n++)
				if (n < w->spec.ndevices)
					rank[n] = r;
	*mine = n > 0;
	*alone = plan && n == plan->nranks * width;
	/* a pipeline may leave devices over, which hold no stage */
	if (n > w->spec.ndevices || (n && n != w->spec.ndevices && !plan->first))
		return hd_fail(diag, HD_E_BADPLAN, "the plan is for %u devices, the worker has %u", n,
			w->spec.ndevices);
	return HD_OK;
}

static uint32_t more(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void need_of(struct hd_worker *w, const struct hd_work *work)
{
	for (uint32_t r = 0; r < w->spec.ndevices; r++) {
		const struct hd_fold_script *s = &work->rank[r].script;
		struct hd_rank_need *need = &w->rank[r].need;
		if (work->pipe) {
			need->staged = true;
			uint64_t vector_bytes = hd_pipe_vector_bytes(work->pipe, r);
			need->nbuffers = more(need->nbuffers, hd_pipe_vectors_of(work->overlap ?
				work->overlap->pipe[1] : work->pipe, r));
			need->pipe_bytes += hd_pipe_bytes(work->pipe, r);
			need->idle_bytes += hd_pipe_idle_bytes(work->pipe, r);
			if (work->overlap) {
				vector_bytes += hd_pipe_vector_bytes(hd_overlap_next(work->overlap), r);
				need->pipe_bytes += hd_pipe_bytes(hd_overlap_next(work->overlap), r) +
					hd_overlap_bytes(work->overlap, w, r);
				need->idle_bytes += hd_pipe_idle_bytes(hd_overlap_next(work->overlap), r);
			}
			need->vector_bytes = larger(need->vector_bytes, vector_bytes);
			continue;
		}
		need->whole = true;
		need->nbuffers = more(need->nbuffers, (1 + hd_fore_steps(w->task->job)) *
			more(s->nbuffers, 1));
		need->ntemps = more(need->ntemps, s->ntemps);
		need->narenas = more(need->narenas, hd_lockstep_needed(&w->stage->lockstep) ? s->nvns_here :
			0);
	}
}

/* What the parts at hand need; before they are taken. */
static void set_needs(struct hd_worker *w, const struct hd_worker_part *coming)
{
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		w->rank[r].need = (struct hd_rank_need){ 0 };
	w->parts->need_places = w->parts->need_received_bytes = w->parts->need_links = 0;
	w->parts->need_held = w->parts->need_sum_bytes = w->parts->need_used_received_bytes = 0;
	w->parts->need_table_bytes = 0;
	w->parts->need_rests = true;
	w->parts->need_idle_slot_elems = UINT64_MAX;
	w->parts->need_sum = w->parts->need_moments = false;
	w->meeting->need_bytes = 0;
	for (size_t i = 0; i < 2; i++) {
		const struct hd_worker_part *s = i ? coming : w->parts->part;
		if (!s)
			continue;
		need_of(w, &s->work);
		w->parts->need_places = s->nplaces > w->parts->need_places ? s->nplaces :
			w->parts->need_places;
		w->parts->need_held = s->held_elems > w->parts->need_held ? s->held_elems :
			w->parts->need_held;
		w->parts->need_sum_bytes = larger(w->parts->need_sum_bytes, s->sum_bytes);
		w->parts->need_table_bytes += s->table_bytes;
		w->parts->need_rests &= s->rests;
		if (s->idle_slot_elems < w->parts->need_idle_slot_elems)
			w->parts->need_idle_slot_elems = s->idle_slot_elems;
		w->parts->need_links = s->nlinks > w->parts->need_links ? s->nlinks : w->parts->need_links;
		w->parts->need_received_bytes = larger(w->parts->need_received_bytes, s->received_bytes);
		w->parts->need_used_received_bytes = larger(w->parts->need_used_received_bytes,
			s->received_bytes - s->idle_received_bytes);
		w->parts->need_sum |= s->needs_sum || s->needs_parm;
		w->parts->need_moments |= !s->alone;
		w->meeting->need_bytes = larger(w->meeting->need_bytes,
			s->work.meeting ? s->work.meeting->bytes : 0);
	}
}

/* Seats of a part that is neither in use nor to come: what set_needs() no longer counts is held no more. */
static void give_unused(struct hd_worker *w)
{
	for (size_t i = 0; i < 2; i++)
		if (&w->parts->of[i] != w->parts->part && &w->parts->of[i] != w->parts->next)
			hd_overlap_give(w, &w->parts->of[i].work);
}

/* Chunks of a rank of several devices, dealt to them as they stand. rank[]: of each device. */
static enum hd_err deal_chunks(struct hd_worker_part *s, uint32_t nchunks, const uint32_t *rank,
	uint32_t ndevices, struct hd_diag *diag)
{
	const struct hd_plan *plan = s->plan;
	const uint32_t width = hd_plan_width(plan);
	uint32_t *first = hd_arena_take(&s->arena, plan->nranks, sizeof *first);
	uint32_t *all = hd_arena_take(&s->arena, plan->nranks, sizeof *all);
	uint32_t *now = hd_arena_take(&s->arena, plan->nranks, sizeof *now);

	if (!first || !all || !now)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the owners of %u chunks", nchunks);
	for (uint32_t d = ndevices; d-- > 0;)
		if (rank[d] != HD_NONE)
			first[rank[d]] = d;
	for (uint32_t c = 0; c < nchunks; c++)
		all[plan->owner[c]]++;
	for (uint32_t c = 0; c < nchunks; c++) {
		const uint32_t r = plan->owner[c];
		s->owner[c] = first[r] + (uint32_t)((uint64_t)now[r]++ * width / all[r]);
	}
	return HD_OK;
}

/* Each chunk has one device that joins, updates and hashes it: as the plan says when all its ranks are
 * here, else as even as can be. */
static enum hd_err own_chunks(const struct hd_worker *w, struct hd_worker_part *s, const uint32_t *rank,
	struct hd_diag *diag)
{
	const uint32_t nchunks = w->task->layout.nchunks;

	s->owner = hd_arena_take(&s->arena, nchunks, sizeof *s->owner);
	if (!s->owner)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the owners of %u chunks", nchunks);
	for (uint32_t c = 0; c < nchunks; c++)
		s->owner[c] = (uint32_t)((uint64_t)c * w->spec.ndevices / nchunks);
	return s->alone ? deal_chunks(s, nchunks, rank, w->spec.ndevices, diag) : HD_OK;
}

/* Sums of several workers need a flat vector that is no root's: a gradient buffer that the roots leave free
 * when the pass is computed, if there is one. */
static enum hd_err find_sum(struct hd_worker *w, struct hd_worker_part *s, struct hd_diag *diag)
{
	struct hd_device *first = w->rank[0].device;

	s->sum = s->work.whole ? s->work.item[s->work.root[0].item] : NULL;
	for (uint32_t r = 0; r < w->spec.ndevices && !s->sum; r++)
		for (uint32_t i = 0; i < more(1, s->work.rank[r].script.nbuffers) && !s->sum; i++) {
			bool is_root = false;
			for (uint32_t k = 0; k < s->work.nroots; k++)
				is_root |= s->work.item[s->work.root[k].item] == w->rank[r].pool->buffer[i];
			s->sum = is_root ? NULL : w->rank[r].pool->buffer[i];
		}
	assert(!s->needs_sum == !!s->sum);
	if (s->sum)
		return HD_OK;
	enum hd_err err = hd_stage_take_sum(w->stage, first, diag);
	s->sum = w->stage->sum;
	return err;
}

/* New parameters of sharded state: whoever gets them has no more use for the root. Without one, a vector
 * that is not that of the sums. */
static enum hd_err find_parm(struct hd_worker *w, struct hd_worker_part *s, struct hd_diag *diag)
{
	struct hd_device *first = w->rank[0].device;

	s->parm = s->work.nroots ? s->work.item[s->work.root[0].item] : NULL;
	if (!s->needs_parm)
		return HD_OK;
	assert(s->sum != w->stage->sum || !w->stage->sum);
	enum hd_err err = hd_stage_take_sum(w->stage, first, diag);
	s->parm = w->stage->sum;
	return err;
}

/* Are all gradient buffers roots' in the end? */
static enum hd_err count_spare(const struct hd_worker *w, struct hd_worker_part *s, struct hd_diag *diag)
{
	uint32_t nvns = w->task->job->nvns, nbuffers = 0, nroots = 0;
	struct hd_tnode *root = hd_arena_take(&s->arena, nvns, sizeof *root);

	if (!root)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the roots of %u virtual nodes", nvns);
	for (uint32_t r = 0; r < w->spec.ndevices; r++)
		nbuffers += more(1, s->work.rank[r].script.nbuffers);
	enum hd_err err = hd_tree_roots(nvns, s->work.has, root, nvns, &nroots);
	assert(!err);
	s->needs_sum = !s->alone && nroots == nbuffers;
	s->needs_parm = w->parts->sharded && s->plan && !s->alone && nroots == 0;
	return err;
}

/* At least as many as all workers have roots: a run of a worker's neighbours has HD_MAX_ROOTS at most. */
static uint32_t nroots_of_all(const struct hd_worker_part *s)
{
	const struct hd_plan *plan = s->plan;
	uint32_t n = 0, end;

	for (uint32_t v = 0; v < plan->nvns; v = end) {
		for (end = v + 1; end < plan->nvns && plan->worker[plan->map[end]] ==
			plan->worker[plan->map[v]]; end++)
			;
		n += end - v < HD_MAX_ROOTS ? end - v : HD_MAX_ROOTS;
	}
	return n;
}

/* Sums of all stages come to lie in one flat vector: of one worker, that of the roots. */
static enum hd_err place_pipe(struct hd_worker *w, struct hd_worker_part *s, struct hd_diag *diag)
{
	struct hd_pipe *pipe = s->work.pipe;
	enum hd_err err = hd_pipe_take(pipe, w, &s->arena, diag);

	if (!err && s->work.overlap)
		err = hd_pipe_take(hd_overlap_next(s->work.overlap), w, &s->arena, diag);
	if (!err && s->work.overlap)
		err = hd_eager_take(s->work.overlap->eager, w, diag);
	if (!err && !s->alone)
		err = hd_stage_take_sum(w->stage, w->rank[0].device, diag);
	if (err)
		return err;
	s->work.whole = s->alone;
	for (uint32_t i = 0; i < pipe->nstages; i++)
		s->work.nroots += pipe->stage[i].nroots;
	s->parm = pipe->vector[0];
	s->sum = s->alone ? s->parm : w->stage->sum;
	return HD_OK;
}

static enum hd_err place_whole(struct hd_worker *w, struct hd_worker_part *s, struct hd_diag *diag)
{
	enum hd_err err = hd_work_place(w, &s->work, NULL, &s->arena, diag);

	s->work.whole = !err && s->alone && s->work.nroots == 1;
	if (!err)
		err = find_sum(w, s, diag);
	return err ? err : find_parm(w, s, diag);
}

/* Of a part whose steps overlap there is a way that takes less. */
static enum hd_err check_fits(const struct hd_worker *w, const struct hd_worker_part *s, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	enum hd_err err = hd_worker_fits(w, &why);

	if (!err)
		return HD_OK;
	return hd_fail(diag, err, "%s%s", why.text, err != HD_E_REFUSED || !s->work.overlap ? "" :
		"; steps that overlap hold activations and gradients of two: -s parallel.schedule=1f1b "
		"(without a plan that has the line overlap) drains each, with the same bits");
}

static enum hd_err take_all(struct hd_worker *w, struct hd_worker_part *s, const uint32_t *rank,
	struct hd_diag *diag)
{
	enum hd_err err = check_fits(w, s, diag);

	if (!err)
		err = hd_work_take(w, diag);
	if (!err)
		err = s->work.pipe ? place_pipe(w, s, diag) : place_whole(w, s, diag);
	if (!err)
		err = own_chunks(w, s, rank, diag);
	if (!err && !s->alone)
		err = hd_moments_apart(w, diag);
	if (!err)
		err = hd_meeting_take(w, s->work.meeting, diag);
	if (!err && !s->alone && s->plan)
		err = hd_operands_cap(w, s->work.pipe ? s->work.pipe->nstages * s->plan->nvns :
			nroots_of_all(s), s->work.pipe ? s->work.pipe->nstages : 1, diag);
	if (!err && s->nplaces > w->parts->nreceive)
		err = hd_dist_places(w, s->nplaces, diag);
	return err;
}

/* To each other worker of the plan, and to the coordinator. */
static uint64_t links_of(const struct hd_plan *plan)
{
	uint64_t n = 0;

	for (uint32_t r = 0; plan && r < plan->nranks; r++)
		n = plan->worker[r] >= n ? plan->worker[r] + UINT64_C(1) : n;
	return n;
}

static uint32_t nfar(const struct hd_pipe *pipe)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < pipe->nshadows; i++)
		n += pipe->shadow[i].far;
	return n;
}

static enum hd_err make_staged(struct hd_worker *w, struct hd_worker_part *s, const uint32_t *rank,
	const uint8_t *held, struct hd_diag *diag)
{
	s->needs_sum = !s->alone;
	s->needs_parm = false;
	if (hd_job_int(w->task->job, HD_JOB_SLICES) > 1)
		return hd_fail(diag, HD_E_REFUSED,
			"batch.slices cuts a virtual node, and stages take it whole: batch.slices: 1, or "
			"more batch.virtual_nodes");
	enum hd_err err = hd_pipe_work(w, &s->work, s->plan, rank, &s->arena, diag);
	err = err ? err : hd_shadows_held(s->work.pipe, held, diag);
	if (!err && !s->alone && w->parts->sharded && s->work.pipe->nshadows > nfar(s->work.pipe))
		err = hd_fail(diag, HD_E_REFUSED,
			"a rank and the owner of the stage that it shadows are of one worker, whose loss "
			"takes both: each rank another worker");
	return err || !s->plan->overlap ? err : hd_overlap_make(w, &s->work, s->plan, rank, &s->arena, diag);
}

/* By stages a worker without a part holds nothing yet: what it has lies in the file. */
static enum hd_err count_held(const struct hd_worker *w, const struct hd_dist_view *view,
	struct hd_worker_part *s, struct hd_diag *diag)
{
	struct hd_memory_part *part = hd_arena_take(&s->arena, w->stage->nbuckets + 1, sizeof *part);
	const bool holds = !w->spec.by_stage || view->worker != HD_DIST_NOBODY;
	uint32_t n = 0;

	if (!part)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the pages of %u buckets", w->stage->nbuckets);
	s->held_elems = s->idle_slot_elems = 0;
	for (uint32_t b = 0; b < w->stage->nbuckets && holds; b++) {
		const struct hd_chunk run = hd_layout_bucket(&w->task->layout, b);
		s->idle_slot_elems += view->slots && !view->slots[b] ? run.len : 0;
		if (view->held && !view->held[b])
			continue;
		s->held_elems += run.len;
		part[n++] = (struct hd_memory_part){ run.at * sizeof(float),
			(run.at + run.len) * sizeof(float) };
	}
	s->sum_bytes = hd_memory_taken_by(part, n, w->stage->sum_bytes);
	return HD_OK;
}

/* What is to be computed and what it needs; nothing is taken. *rank: of the part's arena. */
static enum hd_err make(struct hd_worker *w, const struct hd_dist_view *view, struct hd_worker_part *s,
	uint32_t **ranks, struct hd_diag *diag)
{
	const struct hd_plan_job job = hd_worker_plan_job(w);
	bool mine = false, alone = false;

	hd_dist_forget(w);
	s->work.pipe = NULL;
	s->work.overlap = NULL;
	s->work.meeting = NULL;
	hd_arena_reset(&s->arena);
	uint32_t *rank = hd_arena_take(&s->arena, w->spec.ndevices, sizeof *rank);
	if (!rank)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the ranks of %u devices", w->spec.ndevices);
	const bool staged = view->plan && view->plan->first;
	enum hd_err err = !view->plan ? HD_OK : staged ? hd_plan_staged_check(view->plan, &job, NULL, diag) :
		hd_plan_check(view->plan, &job, NULL, diag);
	if (!err)
		err = find_ranks(w, view, rank, &mine, &alone, diag);
	s->plan = view->plan;
	s->alone = alone;
	s->nplaces = view->nplaces;
	s->received_bytes = view->received_bytes;
	s->idle_received_bytes = view->idle_received_bytes;
	s->rests = view->rests;
	s->nlinks = alone ? 0 : links_of(view->plan);
	err = err ? err : count_held(w, view, s, diag);
	if (!err && staged)
		err = make_staged(w, s, rank, view->held, diag);
	else if (!err)
		err = hd_work_make(w, &s->work, view->plan, mine ? rank : NULL, &s->arena, diag);
	if (!err && !staged)
		err = count_spare(w, s, diag);
	if (!err && !staged && mine && !alone && hd_worker_lockstep(w))
		err = hd_meeting_plan(w, view->plan, view->worker, &s->work.meeting, &s->arena, diag);
	if (err)
		return err;
	s->table_bytes = s->arena.used_bytes;
	set_needs(w, s);
	*ranks = rank;
	return HD_OK;
}

static struct hd_worker_part *unused(struct hd_worker *w) { return w->parts->part == &w->parts->of[0] ?
	&w->parts->of[1] :
	&w->parts->of[0]; }

enum hd_err hd_dist_memory(struct hd_worker *w, const struct hd_dist_view *view,
	struct hd_memory_terms *terms, struct hd_diag *diag)
{
	uint32_t *rank;
	enum hd_err err = make(w, view, unused(w), &rank, diag);

	if (!err)
		err = check_fits(w, unused(w), diag);
	if (!err)
		hd_worker_memory(w, terms);
	set_needs(w, NULL);
	return err;
}

enum hd_err hd_dist_prepare(struct hd_worker *w, const struct hd_dist_view *view, struct hd_diag *diag)
{
	struct hd_worker_part *s = unused(w);
	uint32_t *rank;
	enum hd_err err = make(w, view, s, &rank, diag);

	if (err)
		return err;
	err = take_all(w, s, rank, diag);
	if (!err && !hd_reading_any(w))
		err = hd_worker_reread(w, diag);
	w->parts->next = err ? NULL : s;
	if (err)
		hd_dist_forget(w);
	return err;
}

bool hd_dist_prepared(const struct hd_worker *w) { return w->parts->next != NULL; }

void hd_dist_forget(struct hd_worker *w)
{
	w->parts->next = NULL;
	set_needs(w, NULL);
	give_unused(w);
}

void hd_dist_adopt(struct hd_worker *w)
{
	/* rows of a step to come have been taken: no reader lets go of them */
	assert(w->parts->next && !w->step->begun && !hd_overlap_ahead(w) &&
		!hd_onset_any(w));
	w->parts->part = w->parts->next;
	w->parts->next = NULL;
	set_needs(w, NULL);
	hd_step_work(w, &w->parts->part->work);
	hd_fore_forget(w);
	hd_reading_want(w, w->parts->part->work.reads);
	give_unused(w);
}

enum hd_err hd_dist_roots_of(const struct hd_plan *plan, uint16_t worker, uint16_t stage, uint8_t *has,
	struct hd_tnode *root, uint32_t cap, uint32_t *nroots)
{
	const bool whole = plan->nstages == HD_WHOLE_MODEL;

	for (uint32_t v = 0; v < plan->nvns; v++)
		has[v] = whole && plan->worker[plan->map[v]] == worker;
	for (uint32_t r = 0; r < plan->nranks && !whole; r++)
		for (uint32_t i = 0; i < plan->list[r].len && plan->worker[r] == worker; i++)
			if (plan->list[r].at[i].op == HD_INS_F && plan->list[r].at[i].stage == stage &&
				!hd_ins_redundant(&plan->list[r].at[i]))
				has[plan->list[r].at[i].vn] = 1;
	return hd_tree_roots(plan->nvns, has, root, cap, nroots);
}

enum hd_err hd_worker_adopt(struct hd_worker *w, const struct hd_plan *plan, struct hd_diag *diag)
{
	const struct hd_dist_view view = { .plan = plan, .worker = plan->nranks ? plan->worker[0] :
		HD_DIST_NOBODY };
	enum hd_err err = hd_overlap_ahead(w) || hd_onset_any(w) ? hd_worker_reread(w, diag) : HD_OK;

	err = err ? err : hd_dist_prepare(w, &view, diag);
	if (!err && !w->parts->next->alone)
		err = hd_fail(diag, HD_E_BADPLAN, "the plan is for %u devices, the worker has %u",
			hd_plan_devices(plan), w->spec.ndevices);
	if (err) {
		hd_dist_forget(w);
		return err;
	}
	hd_dist_adopt(w);
	return HD_OK;
}

enum hd_err hd_worker_moved(struct hd_worker *w, struct hd_diag *diag)
{
	atomic_store(&w->step->torn, false);
	w->moves++;
	hd_digest_forget(w);
	hd_param_store_set_version(w->store, (uint64_t)w->count.updates);
	memset(w->parts->slot_here, 1, w->stage->nbuckets);     /* they may take memory */
	memset(w->parts->own, 1, w->stage->nbuckets);
	hd_digest_frozen(w);
	return hd_worker_reread(w, diag);
}

enum hd_err hd_worker_rewind(struct hd_worker *w, struct hd_diag *diag)
{
	hd_versions_follow(w);
	return hd_worker_moved(w, diag);
}
