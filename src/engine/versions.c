#include "engine/worker_int.h"

/* Earlier versions of the parameters, where the job delays updates. Between two steps the store has what the
 * next one reads (store.h, rule 6). Ranks have met after the last one read it, and a parameter is written by
 * the owner of its chunk alone; so a step that failed before its update has changed none of it. */

struct hd_store_shape hd_worker_store_shape(const struct hd_worker *w)
{
	return (struct hd_store_shape){ .nslots = hd_optims[w->task->optim.kind].nslots,
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

/* Segments of the chunks that the rank owns, late ones or those that are not. */
static void for_owned(struct hd_rank *rank, bool late)
{
	struct hd_worker *w = rank->worker;
	const struct hd_segment *segment = w->task->layout.segment;
	struct hd_chunk run;
	uint32_t next = 0;

	while (hd_rank_owned(rank, &next, &run))
		for (uint32_t i = run.first_segment; i < run.first_segment + run.nsegments; i++) {
			const uint32_t delay = w->task->delays.of_param[segment[i].param];
			if (late && delay)
				hd_param_store_age(w->store, segment[i].at, segment[i].len, delay);
			else if (!late && !delay)
				hd_param_store_follow(w->store, segment[i].at, segment[i].len);
		}
}

void hd_versions_age(struct hd_rank *rank)
{
	if (rank->worker->task->delays.most)
		for_owned(rank, true);
}

void hd_versions_made(struct hd_rank *rank)
{
	if (rank->worker->task->delays.differ)
		for_owned(rank, false);
}
