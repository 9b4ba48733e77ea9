#include "run/pipes.h"

#include <assert.h>

#include "pipeline/redundancy.h"
#include "protocol/passes.h"
#include "protocol/ranks.h"
#include "run/pipes_shadows.h"

/* Views of pipelines, what their members do, and what each of them must hold. */

bool hd_pipes_shares(const struct hd_pipes *pipes, uint32_t npipes, uint32_t *share)
{
	const struct hd_listed *l = pipes->stages.listed;

	for (uint32_t k = 0; l && npipes == l->d && k < npipes; k++)
		share[k] = l->share[k];
	return l && npipes == l->d && !l->copies;
}

bool hd_pipes_view(struct hd_view *view, const struct hd_pipes *pipes, uint32_t n, uint32_t ndevices,
	uint32_t nvns)
{
	uint32_t member[HD_MAX_MEMBERS], of[HD_MAX_MEMBERS], ranks[HD_MAX_MEMBERS], share[HD_VIEW_RANKS];

	assert(n >= 1 && n <= HD_MAX_MEMBERS && n <= HD_VIEW_RANKS / ndevices);
	for (uint32_t i = 0; i < n; i++) {
		member[i] = i;
		of[i] = ndevices;
		ranks[i] = pipes->shape.nstages ? ndevices / hd_pipes_each(pipes) : 0;
	}
	if (pipes->shape.nstages && hd_view_staged(view, 1, member, ranks, n, nvns, &pipes->shape,
		pipes->most)) {
		if (hd_pipes_shares(pipes, hd_view_pipes(view), share))
			hd_view_deal_pipes(view, share);
		hd_ranks_follow(view, &pipes->buckets, pipes->bytes, NULL, 0);
		return true;
	}
	hd_view_even(view, 1, member, of, n, nvns);
	return false;
}

/* Chunks of a member's buckets, dealt to its ranks as they stand in the view; without a rank it has none. */
static enum hd_err own_chunks(struct hd_plan *plan, const struct hd_pipes *pipes,
	const struct hd_view *view, const struct hd_layout *layout, const struct hd_job *job,
	struct hd_diag *diag)
{
	const uint32_t servers = job ? hd_job_servers(job) : 0, copies = job ? hd_job_copies(job) : 0;
	const uint32_t nbuckets = layout->first_chunk ? layout->nbuckets : hd_bucket_count(plan->nchunks);
	uint32_t rank[HD_VIEW_RANKS];
	struct hd_holding held;
	enum hd_err err = hd_holding_init(&held, nbuckets, diag);

	if (err)
		return err;
	held.bytes = layout->moved;
	hd_view_holding(&held, view, view->shape.nstages ? &pipes->buckets : NULL, copies, servers);
	for (uint32_t m = 0; m < view->nmembers; m++) {
		uint32_t n = 0, nchunks = 0, at = 0;
		for (uint32_t r = 0; r < view->nranks; r++)
			if (view->rank[r].worker == view->member[m])
				rank[n++] = r;
		for (uint32_t c = 0; c < plan->nchunks; c++)
			nchunks += held.owner[hd_layout_bucket_of(layout, c)] == m;
		for (uint32_t c = 0; c < plan->nchunks; c++)
			if (held.owner[hd_layout_bucket_of(layout, c)] == m)
				plan->owner[c] = rank[(uint64_t)at++ * n / nchunks];
	}
	hd_holding_finish(&held);
	return HD_OK;
}

static const char *cause_of(const struct hd_view *view, const char *shape, struct hd_arena *arena)
{
	struct hd_text text;

	hd_text_init(&text, arena);
	hd_text_addf(&text, "view %u: worker%s", view->epoch, view->nmembers == 1 ? "" : "s");
	for (uint32_t m = 0; m < view->nmembers; m++)
		hd_text_addf(&text, " %u", view->member[m]);
	hd_text_addf(&text, "%s%s", shape ? "; " : "", shape ? shape : "");
	return text.full ? "" : text.at;
}

const char *hd_pipes_drain(const struct hd_pipes *pipes, const struct hd_view_shape *shape,
	const struct hd_task *task)
{
	const struct hd_run_stages *s = &pipes->stages;
	const char *drains = s->delayed ? hd_task_drains(task, s->p) : "its order is of no delayed update";

	if (!drains && hd_shape_redundancy(shape) != HD_REDUNDANCY_NONE)
		drains = "workers hold shadows of stages: elastic.redundancy";
	if (!drains && pipes->buckets.follows)
		drains = "workers that are left over follow stages: elastic.standby";
	return drains;
}

/* Do steps of the view overlap? What a plan says besides is in stages.c. */
static void find_overlap(struct hd_run_stages *s, const struct hd_pipes *pipes, const struct hd_view *view,
	const struct hd_task *task)
{
	if (!s->delayed)
		return;
	s->drains = hd_pipes_drain(pipes, &view->shape, task);
	s->overlap = !s->drains;
}

static enum hd_err staged(struct hd_plan *plan, const struct hd_pipes *pipes, const struct hd_view *view,
	const struct hd_plan_job *job, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_run_stages s = pipes->stages;
	uint32_t share[HD_VIEW_RANKS];

	assert(view->shape.nstages == pipes->shape.nstages && view->shape.width == s.p * pipes->groups);
	s.d = hd_view_pipes(view);
	for (uint32_t k = 0; k < s.d; k++)
		for (uint32_t r = share[k] = 0; r < hd_view_copies(&view->shape, 0); r++)
			share[k] += view->rank[k * view->shape.width + r].nvns;
	s.share = share;
	s.shared = true;
	find_overlap(&s, pipes, view, task);
	return hd_run_stages_plan(plan, &s, job, task, NULL, arena, diag);
}

/* Where the plan has the file's own lists, and the file shadows of this mode. */
static const struct hd_ilist *shadows_of_file(const struct hd_plan *plan, const struct hd_pipes *pipes,
	enum hd_redundancy mode)
{
	const struct hd_listed *l = pipes->stages.listed;

	return l && l->shadowed && l->mode == mode && plan->list == l->plan.list ? l->shadowed : NULL;
}

enum hd_err hd_pipes_plan(struct hd_plan *plan, const struct hd_pipes *pipes, const struct hd_view *view,
	const struct hd_plan_job *job, const struct hd_task *task, struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const struct hd_layout uncut = { .nchunks = 0 };
	uint32_t counts[HD_VIEW_RANKS];
	enum hd_err err;

	for (uint32_t r = 0; r < view->nranks; r++)
		counts[r] = view->rank[r].nvns;
	if (view->shape.nstages)
		err = staged(plan, pipes, view, job, task, arena, diag);
	else
		err = hd_plan_data(plan, job, view->nranks, counts, arena, diag);
	err = err ? err : own_chunks(plan, pipes, view, task ? &task->layout : &uncut,
		task ? task->job : NULL, diag);
	if (err)
		return err;
	for (uint32_t r = 0; r < view->nranks; r++)
		plan->worker[r] = (uint16_t)hd_view_index(view, view->rank[r].worker);
	const enum hd_redundancy mode = (enum hd_redundancy)hd_shape_redundancy(&view->shape);
	err = view->shape.nstages ? hd_pipes_shadows(plan, mode, shadows_of_file(plan, pipes, mode), job,
		task, arena, diag) : HD_OK;
	plan->number = view->epoch;
	plan->cause = cause_of(view, view->shape.nstages ? plan->cause : NULL, arena);
	return err;
}

/* The buckets whose parameters, or of sharded state whose slots, a member holds. */
static enum hd_err find_held(const uint8_t **held, const struct hd_stage_buckets *buckets,
	const struct hd_layout *layout, uint32_t copies, uint32_t servers, const struct hd_view *view,
	uint32_t member, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t n = hd_layout_nbuckets(layout);
	uint8_t *is = hd_arena_take(arena, n, 1);
	struct hd_holding all;

	if (!is)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the holders of %u buckets", n);
	enum hd_err err = hd_holding_init(&all, n, diag);
	if (err)
		return err;
	all.bytes = layout->moved;
	hd_view_holding(&all, view, buckets, copies, servers);
	for (uint32_t b = 0; b < n; b++)
		is[b] = member < view->nmembers && (copies ? all.slot : all.param)[b] >> member & 1;
	hd_holding_finish(&all);
	*held = is;
	return HD_OK;
}

/* The places to bring others state and to get it in (worker/elastic_slots.c). While the view stays, the
 * checkpoint writer alone lacks buckets; the others leave those to get state in alone. */
static enum hd_err count_moved(struct hd_dist_view *part, const uint8_t *held, const struct hd_pipes *pipes,
	const struct hd_view *view, uint32_t member, const struct hd_worker *engine, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint32_t n = hd_layout_nbuckets(hd_dist_layout(engine)), copies = hd_dist_copies(engine),
		writer = hd_view_index(view, hd_view_writer(view));
	uint64_t most = 0, given = 0, got = 0, nlacking = 0;
	const uint8_t *his;
	enum hd_err err = find_held(&his, copies ? NULL : &pipes->buckets,
		hd_dist_layout(engine), copies, hd_dist_servers(engine), view, writer, arena, diag);

	if (err)
		return err;
	for (uint32_t b = 0; b < n; b++) {
		const uint64_t bytes = hd_dist_slot_bytes(engine, b);
		most = bytes > most ? bytes : most;
		if (writer != HD_NOBODY && held[b] && !his[b])
			given = bytes > given ? bytes : given;
		if (writer == member && !held[b]) {
			got = bytes > got ? bytes : got;
			nlacking++;
		}
	}
	nlacking = nlacking < HD_PIPES_FETCHED ? nlacking : HD_PIPES_FETCHED;
	part->received_bytes += HD_PIPES_MOVED * most;
	part->idle_received_bytes = HD_PIPES_MOVED * most - given - nlacking * got;
	return HD_OK;
}

enum hd_err hd_pipes_part(struct hd_dist_view *part, const struct hd_pipes *pipes, const struct hd_view *view,
	uint32_t worker, const struct hd_worker *engine, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t member = hd_view_index(view, worker);
	enum hd_err err = hd_view_received(view, worker, part->plan->nvns, hd_dist_layout(engine),
		&pipes->buckets, hd_dist_copies(engine), hd_dist_servers(engine), &part->received_bytes);

	part->worker = member == HD_NOBODY ? HD_DIST_NOBODY : (uint16_t)member;
	part->held = NULL;
	part->rests = hd_view_writer(view) != worker;
	part->slots = NULL;
	part->idle_received_bytes = 0;
	const bool staged = view->shape.nstages, sharded = hd_dist_copies(engine) && !staged;
	if (err || !(sharded || (hd_dist_by_stage(engine) && staged)))
		return err;
	const uint8_t *held;
	err = find_held(&held, sharded ? NULL : &pipes->buckets, hd_dist_layout(engine),
		hd_dist_copies(engine), hd_dist_servers(engine), view, member, arena, diag);
	err = err ? err : count_moved(part, held, pipes, view, member, engine, arena, diag);
	if (!err)
		*(sharded ? &part->slots : &part->held) = held;
	return err;
}
