#include "engine/worker_int.h"

#include "engine/overlap.h"

/* Earlier versions of the parameters, where the job delays updates. Between two steps the store has what the
 * next one reads (store.h, rule 6). Ranks have met after the last one read it, and a parameter is written by
 * the owner of its chunk alone; so a step that failed before its update has changed none of it. Over workers
 * they are where the parameters are: at all of them, or of state by stages with the bucket. */

struct hd_store_shape hd_worker_store_shape(const struct hd_worker *w)
{
	return (struct hd_store_shape){ .nslots = hd_optim_nslots(&w->task->optim),
		.nearlier = w->task->delays.most };
}

void hd_versions_begin(struct hd_worker *w)
{
	const struct hd_layout *layout = &w->task->layout;

	for (uint32_t p = 0; p < layout->nparams; p++)
		for (uint32_t k = 0; k < w->task->delays.of_param[p]; k++)
			hd_param_store_age(w->store, layout->at[p], layout->len[p],
				w->task->delays.of_param[p]);
	hd_versions_follow(w);
}

void hd_versions_follow(struct hd_worker *w)
{
	const struct hd_layout *layout = &w->task->layout;

	for (uint32_t p = 0; p < layout->nparams; p++)
		if (!w->task->delays.of_param[p])
			hd_param_store_follow(w->store, layout->at[p], layout->len[p]);
}

/* Segments of a run, late ones or those that are not. Of state by stages only what is held. */
static void for_run(struct hd_worker *w, const struct hd_chunk *run, bool late)
{
	for (uint32_t i = run->first_segment; i < run->first_segment + run->nsegments; i++) {
		const struct hd_segment *s = &w->task->layout.segment[i];
		const uint32_t delay = w->task->delays.of_param[s->param];
		if (w->spec.by_stage && !hd_worker_owns(w, hd_layout_bucket_of(&w->task->layout, s->chunk)))
			continue;
		if (late && delay)
			hd_param_store_age(w->store, s->at, s->len, delay);
		else if (!late && !delay)
			hd_param_store_follow(w->store, s->at, s->len);
	}
}

void hd_versions_age_run(struct hd_worker *w, const struct hd_chunk *run)
{
	if (w->task->delays.most)
		for_run(w, run, true);
}

void hd_versions_made_run(struct hd_worker *w, const struct hd_chunk *run)
{
	if (w->task->delays.differ)
		for_run(w, run, false);
}

/* Where steps overlap: of all that is read no later than one step. */
static void near_run(struct hd_worker *w, const struct hd_chunk *run)
{
	for (uint32_t i = run->first_segment; i < run->first_segment + run->nsegments; i++) {
		const struct hd_segment *s = &w->task->layout.segment[i];
		if (w->task->delays.of_param[s->param] < 2)
			hd_param_store_near(w->store, s->at, s->len);
	}
}

void hd_versions_near(struct hd_worker *w)
{
	const struct hd_chunk all = { .nsegments = w->task->layout.nsegments };

	near_run(w, &all);
}

void hd_versions_age(struct hd_rank *rank)
{
	struct hd_chunk run;
	uint32_t next = 0;

	while (hd_rank_owned(rank, &next, &run))
		hd_versions_age_run(rank->worker, &run);
}

void hd_versions_made(struct hd_rank *rank)
{
	struct hd_chunk run;
	uint32_t next = 0;

	while (hd_rank_owned(rank, &next, &run)) {
		hd_versions_made_run(rank->worker, &run);
		if (rank->worker->step->work->overlap)
			near_run(rank->worker, &run);
	}
}
