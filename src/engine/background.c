#include "sys/lock.h"
#include "engine/onset.h"
#include "engine/worker_int.h"

/* Buckets summed by another thread while the devices compute: on a device of one thread that belongs to no
 * rank. The lock is held over a bucket, so that the worker's caller does not leave its pass meanwhile;
 * inside a pass it touches nothing of this. */

struct hd_background {
	struct hd_rank rank;              /* its device: none until it is opened */
	struct hd_lock lock;              /* of computing, and held while it sums one */
	bool computing;
};

enum hd_err hd_background_make(struct hd_worker *w, struct hd_diag *diag)
{
	w->background = hd_arena_take(&w->arena, 1, sizeof *w->background);
	if (!w->background)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a worker");
	hd_lock_init(&w->background->lock);
	return HD_OK;
}

void hd_background_finish(struct hd_worker *w)
{
	hd_lock_finish(&w->background->lock);
	hd_device_destroy(w->background->rank.device);
}

enum hd_err hd_dist_aside_open(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_device_spec spec = { .nthreads = 1, .kernels = w->spec.kernels, .path = w->spec.path,
		.memory_limit_bytes = hd_worker_device_limit(w) };
	struct hd_rank *rank = &w->background->rank;

	rank->worker = w;
	return rank->device ? HD_OK : hd_device_create(&rank->device, w->spec.kind, &spec, diag);
}

void hd_background_computing(struct hd_worker *w, bool computing)
{
	hd_lock_take(&w->background->lock);
	w->background->computing = computing;
	hd_lock_give(&w->background->lock);
}

enum hd_err hd_dist_aside(struct hd_worker *w, const struct hd_tnode *root, const uint16_t *stage,
	uint32_t nroots, const struct hd_dist_fold *fold, bool *taken, struct hd_diag *diag)
{
	struct hd_background *b = w->background;
	enum hd_err err = HD_OK;

	hd_lock_take(&b->lock);
	*taken = b->computing && b->rank.device;
	if (*taken && fold->operand)
		err = hd_dist_operands(w, root, stage, nroots, diag);
	if (*taken && !err)
		err = hd_sum_bucket(&b->rank, fold->bucket, fold->operand ? fold : NULL, diag);
	if (*taken && !err)
		hd_step_mark(w, fold->bucket);
	hd_lock_give(&b->lock);
	return err;
}

enum hd_err hd_dist_aside_bring(struct hd_worker *w, uint32_t bucket, bool *brought, struct hd_diag *diag)
{
	struct hd_background *b = w->background;
	enum hd_err err = HD_OK;

	hd_lock_take(&b->lock);
	*brought = b->computing && b->rank.device && hd_onset_may_aside(w, bucket);
	if (*brought)
		err = hd_onset_aside(&b->rank, bucket);
	hd_lock_give(&b->lock);
	return err ? hd_fail(diag, err, "%s", b->rank.diag.text[0] ? b->rank.diag.text : hd_err_text(err)) :
		HD_OK;
}
