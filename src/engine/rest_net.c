#include <assert.h>
#include <stdatomic.h>

#include "engine/post.h"
#include "engine/rest.h"
#include "engine/worker_int.h"

/* The rest of a step that several workers run together: what each says of its ranks, and how it goes on. */

static bool joins(const struct hd_pipe *pipe)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < pipe->nstages; s++)
		n += pipe->stage[s].njoins;
	return n > 0;
}

static enum hd_err may_go_on(const struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_work *work = hd_worker_work(w);
	const struct hd_pipe *pipe = work ? work->pipe : NULL;

	if (!w->step->begun || !pipe || !pipe->keeps)
		return hd_fail(diag, HD_E_REFUSED, "no step is under way whose ranks keep what they send");
	if (pipe->before)
		return hd_fail(diag, HD_E_REFUSED,
			"ranks were lost in this step before, and stages have no shadow since");
	if (work->computed && joins(pipe))
		return hd_fail(diag, HD_E_REFUSED,
			"the sums of ranks of this worker were added to one another already");
	return HD_OK;
}

enum hd_err hd_dist_stopped(struct hd_worker *w, uint32_t *at, uint8_t *arrived, struct hd_diag *diag)
{
	enum hd_err err = may_go_on(w, diag);

	if (err)
		return err;
	const struct hd_work *work = hd_worker_work(w);
	const struct hd_pipe *pipe = work->pipe;
	hd_post_end(w, false, false);                 /* no letter is given or taken until the step goes on */
	for (uint32_t d = 0; d < pipe->ndevices; d++)
		if (pipe->rank_of[d] != HD_NONE)
			at[pipe->rank_of[d]] = work->rank[d].at;
	hd_rest_arrived(pipe, NULL, arrived);
	return HD_OK;
}

enum hd_err hd_dist_rest(struct hd_worker *w, uint32_t epoch, const struct hd_dist_loss *loss,
	uint32_t *redone, struct hd_diag *diag)
{
	const struct hd_ilist *lists;
	enum hd_err err = may_go_on(w, diag);

	if (err)
		return err;
	hd_post_end(w, false, false);                 /* letters of the epoch before are void */
	err = hd_rest_make(w, loss, &lists, redone, diag);
	if (err)
		return err;
	hd_dist_epoch(w, epoch);
	hd_post_begin(hd_worker_work(w)->pipe);
	return HD_OK;
}
