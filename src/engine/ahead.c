#include "engine/overlap.h"

#include <assert.h>
#include <stdatomic.h>

#include "engine/onset.h"
#include "engine/post.h"
#include "engine/worker_int.h"

/* The step to come of a pipeline, run on while the one at hand ends (overlap.h, rule 7). */

/* Does the last stage read what this step makes, and did it not make it yet? So it is before an empty step
 * ends, and where a worker saves inside the step. */
static bool lacks_early(const struct hd_worker *w, const struct hd_overlap *o)
{
	return w->step->begun && o->eager && o->eager->device != HD_NONE && !o->eager->made;
}

bool hd_dist_has_ahead(const struct hd_worker *w)
{
	const struct hd_overlap *o = hd_overlap_in_use(w);
	bool has = false;

	if (!o)
		return hd_onset_has(w);
	if (!o->ahead || o->err || (w->step->begun && !hd_worker_work(w)->computed) ||
		(!w->step->begun && w->step->again) || lacks_early(w, o))
		return false;
	for (uint32_t d = 0; d < w->spec.ndevices; d++)
		has |= o->done[d] < o->fore[d];
	return has;
}

/* The virtual nodes of the list are those of the step to come. */
static void run_on(struct hd_rank *rank)
{
	struct hd_overlap *o = hd_overlap_in_use(rank->worker);
	struct hd_pipe *next = hd_overlap_next(o);
	const struct hd_ilist *list = &o->list[1][1][rank->id];

	rank->undone = false;
	while (o->done[rank->id] < o->fore[rank->id] && !hd_post_called(next) &&
		!atomic_load(&next->fenced)) {
		struct hd_ins ins = list->at[o->done[rank->id]];
		ins.vn += next->nvns;
		(void)hd_interp_ins(rank, &ins, o->done[rank->id], 0);
		if (rank->undone || rank->err)
			break;
		o->done[rank->id]++;
	}
}

/* On average. */
static uint64_t stalled_ns(struct hd_worker *w, uint64_t before)
{
	uint64_t sum = 0;

	for (uint32_t d = 0; d < w->spec.ndevices; d++)
		sum += w->rank[d].stalled_ns;
	return sum / w->spec.ndevices - before;
}

uint64_t hd_dist_run_ahead(struct hd_worker *w, uint32_t seen)
{
	struct hd_overlap *o = hd_overlap_in_use(w);
	const uint64_t before = stalled_ns(w, 0);

	assert(hd_dist_has_ahead(w));
	if (!o) {
		(void)!hd_onset_run(w, seen, NULL);       /* the step says what failed */
		return 0;
	}
	hd_step_work(w, hd_worker_work(w));
	w->step->section = HD_SECTION_COMPUTE;
	hd_background_computing(w, w->step->begun);
	hd_post_roam(w, seen);
	o->err = hd_worker_all(w, run_on, &o->diag);
	hd_post_settle(w);
	hd_background_computing(w, false);
	return stalled_ns(w, before);
}

enum hd_err hd_overlap_failed(const struct hd_work *work, struct hd_diag *diag)
{
	const struct hd_overlap *o = work->overlap;

	return o && o->err ? hd_fail(diag, o->err, "%s", o->diag.text) : HD_OK;
}
