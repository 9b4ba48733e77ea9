/* store.h -- the only owner of what a job learns: parameters, optimizer slots and running statistics.
 *
 * Four flat vectors of f32 by the job's layout (graph/layout.h): the parameters (those that are learned, then
 * the frozen ones), up to two slots of the optimizer, the buffers. All ranges are (vector, at, len) in
 * elements. No one else knows where they lie: code of the host reads, writes and hashes ranges; a kernel gets
 * addresses of its device by hd_param_store_bind(), _span() and _at(). Gradients are a stage's (stage.h).
 *
 * 1. A range lies wholly inside its vector (hd_param_store_has()): all functions assert it. One of no
 *    elements may lie at the end.
 * 2. Slots have the offsets of the parameters and end where the frozen ones begin; a slot that the optimizer
 *    does not have, has no elements.
 * 3. The version is the number of updates that the vectors are of. It follows the commit and never changes
 *    inside a step: a vector is written by STEP of the step that commits the next one, or between two steps.
 * 4. Whole pages of what was dropped read as +0.0 until they are written again.
 * 5. Neither addresses nor sizes change between create and destroy.
 *
 * Ownership: the memory is the device's that was given; it outlives the store. Threads: disjoint ranges may
 * be read and written at once; the version is the worker's caller's. Errors: HD_E_NOMEM and those of the
 * device, from create() alone. */
#ifndef HD_ENGINE_STORE_H
#define HD_ENGINE_STORE_H

#include "base/hash.h"
#include "graph/layout.h"
#include "device/device.h"

enum hd_vector { HD_VEC_PARAMS, HD_VEC_SLOT0, HD_VEC_SLOT1, HD_VEC_BUFFERS, HD_VECS };
enum { HD_MAX_SLOTS = HD_VEC_BUFFERS - HD_VEC_SLOT0 };

static inline enum hd_vector hd_vec_slot(uint32_t slot) { return (enum hd_vector)(HD_VEC_SLOT0 + slot); }

/* Elements of a vector, before there is a store: what memory a job needs. */
uint64_t hd_vector_elems(const struct hd_layout *layout, uint32_t nslots, enum hd_vector vector);

struct hd_param_store;

/* Zeroed, at version 0. `layout` is borrowed, `nslots` of the job's optimizer. */
HD_MUST_USE enum hd_err hd_param_store_create(struct hd_param_store **store, const struct hd_layout *layout,
	uint32_t nslots, struct hd_device *device, struct hd_diag *diag);
void hd_param_store_destroy(struct hd_param_store *store);            /* takes NULL */

uint32_t hd_param_store_nslots(const struct hd_param_store *store);
uint64_t hd_param_store_elems(const struct hd_param_store *store, enum hd_vector vector);
bool hd_param_store_has(const struct hd_param_store *store, enum hd_vector vector, uint64_t at, uint64_t len);

void hd_param_store_read(const struct hd_param_store *store, enum hd_vector vector, uint64_t at, uint64_t len,
	void *bytes);                                               /* len f32, of any alignment */
void hd_param_store_write(struct hd_param_store *store, enum hd_vector vector, uint64_t at, uint64_t len,
	const void *bytes);
struct hd_hash hd_param_store_hash(const struct hd_param_store *store, enum hd_vector vector, uint64_t at,
	uint64_t len);
/* The memory of whole pages goes back to the system. */
void hd_param_store_drop(struct hd_param_store *store, enum hd_vector vector, uint64_t at, uint64_t len);

/* Updates that the vectors are of. */
uint64_t hd_param_store_version(const struct hd_param_store *store);
void hd_param_store_set_version(struct hd_param_store *store, uint64_t version);

/* ---- for kernels, on the device ---- */

/* parameters and buffers of a forward or backward pass */
void hd_param_store_bind(const struct hd_param_store *store, struct hd_bind *bind);
/* param, slot and len of an update of a range of what is learned; the rest of it is the caller's */
void hd_param_store_span(struct hd_param_store *store, uint64_t at, uint64_t len, struct hd_update *update);
/* The address of a range: for arguments of a device's functions, and for entries of the state table. */
float *hd_param_store_at(const struct hd_param_store *store, enum hd_vector vector, uint64_t at,
	uint64_t len);
/* Which element lies there? false: none of the store. */
bool hd_param_store_find(const struct hd_param_store *store, const void *address, enum hd_vector *vector,
	uint64_t *at);

#endif
