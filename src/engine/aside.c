#include "engine/worker_int.h"

/* Buckets summed by another thread while the devices compute: on a device of one thread that belongs to
 * nobody else. The lock is held over a bucket, so that the worker's caller does not leave its pass
 * meanwhile; inside a pass it touches nothing of this. */

enum hd_err hd_share_aside_open(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_device_spec spec = { .nthreads = 1, .kernels = w->spec.kernels, .path = w->spec.path,
		.memory_limit_bytes = w->spec.memory_limit_bytes };

	w->aside.worker = w;
	return w->aside.device ? HD_OK : hd_device_create(&w->aside.device, w->spec.kind, &spec, diag);
}

void hd_aside_computing(struct hd_worker *w, bool computing)
{
	hd_lock_take(&w->aside_lock);
	w->computing = computing;
	hd_lock_give(&w->aside_lock);
}

enum hd_err hd_share_aside(struct hd_worker *w, const struct hd_tnode *root, uint32_t nroots,
	const struct hd_share_fold *fold, bool *taken,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	hd_lock_take(&w->aside_lock);
	*taken = w->computing && w->aside.device;
	if (*taken && fold->operand)
		err = hd_share_operands(w, root, nroots, diag);
	if (*taken && !err)
		err = hd_sum_bucket(&w->aside, fold->bucket, fold->operand ? fold : NULL, diag);
	if (*taken && !err)
		hd_step_mark(w, fold->bucket);
	hd_lock_give(&w->aside_lock);
	return err;
}
