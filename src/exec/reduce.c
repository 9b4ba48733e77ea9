#include "exec/worker_int.h"

/* The next run of chunks that a rank owns, from chunk *next on, as one chunk: one call of the device for all of
 * it, so that its threads share the whole. false: there is none. */
bool hd_rank_owned(const struct hd_rank *rank, uint32_t *next, struct hd_chunk *run)
{
	const struct hd_layout *layout = &rank->worker->task->layout;
	const uint32_t *owner = rank->worker->plan->owner;
	uint32_t c = *next;

	while (c < layout->nchunks && owner[c] != rank->id)
		c++;
	*run = (struct hd_chunk){ 0 };
	for (; c < layout->nchunks && owner[c] == rank->id; c++) {
		const struct hd_chunk *chunk = &layout->chunk[c];
		if (run->nsegments == 0)
			*run = (struct hd_chunk){ .at = chunk->at, .first_segment = chunk->first_segment };
		run->len += chunk->len;
		run->nsegments += chunk->nsegments;
	}
	*next = c;
	return run->nsegments > 0;
}

/* RED: the owner of a chunk joins the roots of all ranks along the tree. The sum
 * takes the place of the left operand, so no memory but the ranks' own gradient
 * buffers is needed: "per chunk a worker holds either its roots or the sum". A root
 * is final when every rank has met; a chunk is touched by its owner alone. The
 * same join list serves roots that arrive from other workers: arrival order is
 * free, association is the list's. */
void hd_reduce_chunks(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	struct hd_chunk run;
	uint64_t token = 0;
	uint32_t next = 0;
	enum hd_err err = HD_OK;

	while (!err && hd_rank_owned(rank, &next, &run)) {
		const struct hd_reduction reduction = {
			.join = w->flat_join, .njoins = w->njoins, .flat = w->item[w->result],
			.segment = w->task->layout.segment + run.first_segment, .nsegments = run.nsegments,
			.partial = w->segment_sumsq + run.first_segment,
		};
		err = rank->device->ops->reduce(rank->device, &reduction, &token, &rank->diag);
	}
	if (!err)
		err = rank->device->ops->wait(rank->device, token, &rank->diag);
	if (err)
		hd_rank_fail(rank, err);
}
