/* testing_faulty.h -- a reader in front of a rig's, with faults: included by *_test.c only.
 *
 * Sample `at` of the first split cannot be read, or is no number; or no label counts. */
#ifndef HD_ENGINE_TESTING_FAULTY_H
#define HD_ENGINE_TESTING_FAULTY_H

#include <math.h>

#include "engine/testing.h"

static struct { const struct hd_reader_ops *under; uint64_t at; bool number, empty; } faulty;

static inline enum hd_err faulty_read(const struct hd_dataset *set, uint32_t split, uint64_t index,
	void *const *out, struct hd_diag *diag)
{
	enum hd_err err = faulty.under->read(set, split, index, out, diag);

	for (uint64_t i = 0; faulty.empty && !err && i < set->field[1].sample_bytes / 4; i++)
		((int32_t *)out[1])[i] = -1;
	if (err || split != 0 || index != faulty.at)
		return err;
	if (!faulty.number)
		return hd_fail(diag, HD_E_IO, "sample %llu cannot be read", (unsigned long long)index);
	*(float *)out[0] = NAN;
	return HD_OK;
}

static inline void faulty_destroy(struct hd_dataset *set) { faulty.under->destroy(set); }

static const struct hd_reader_ops faults = { .name = "faulty", .about = "another reader, with faults",
	.read = faulty_read, .destroy = faulty_destroy };

/* Of n rigs, whose readers run ahead: none does while the fault is set. */
static inline void spoil(struct hd_rig *rig, int n, uint64_t at, bool number, bool empty)
{
	struct hd_diag diag = { "" };

	for (int k = 0; k < n; k++)
		hd_rig_hush(&rig[k]);
	faulty.under = rig->task->data->ops;
	faulty.at = at;
	faulty.number = number;
	faulty.empty = empty;
	for (int k = 0; k < n; k++) {
		rig[k].task->data->ops = &faults;
		assert_int_equal(hd_worker_rewind(rig[k].worker, &diag), HD_OK);
	}
}

static inline void mend(struct hd_rig *rig)
{
	struct hd_diag diag = { "" };

	hd_rig_hush(rig);
	rig->task->data->ops = faulty.under;
	assert_int_equal(hd_worker_rewind(rig->worker, &diag), HD_OK);
}

#endif
