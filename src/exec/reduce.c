#include "exec/worker_int.h"

/* RED: the owner of a chunk joins the roots of all ranks along the tree. The sum
 * takes the place of the left operand, so no memory but the ranks' own gradient
 * buffers is needed: "per chunk a worker holds either its roots or the sum". A root
 * is final when every rank has met; a chunk is touched by its owner alone. The
 * same join list serves roots that arrive from other workers: arrival order is
 * free, association is the list's. */
void hd_reduce_chunks(struct hd_rank *rank)
{
	struct hd_worker *w = rank->worker;
	const struct hd_layout *layout = &w->task->layout;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	for (uint32_t c = 0; c < layout->nchunks && !err; c++) {
		if (w->plan->owner[c] != rank->id)
			continue;
		uint64_t at = layout->chunk[c].at, len = layout->chunk[c].len;
		for (uint32_t j = 0; j < w->njoins && !err; j++) {
			const struct hd_join *join = &w->join[j];
			err = rank->device->ops->add(rank->device, w->item[join->dst] + at, w->item[join->a] + at,
				w->item[join->b] + at, len, &token, &rank->diag);
		}
		if (!err)
			err = rank->device->ops->sumsq(rank->device, w->item[w->result],
				layout->segment + layout->chunk[c].first_segment, layout->chunk[c].nsegments,
				w->segment_sumsq + layout->chunk[c].first_segment, &token, &rank->diag);
	}
	if (!err)
		err = rank->device->ops->wait(rank->device, token, &rank->diag);
	if (err)
		hd_rank_fail(rank, err);
}
