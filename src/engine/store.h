/* store.h -- the only owner of the training state in memory: parameters, optimizer slots, running statistics.
 *
 * It holds flat f32 vectors, in the order of the job's layout (graph/layout.h): parameters (trained, then
 * frozen), up to three optimizer slots (the means of optim.ema are the last), buffers (running statistics),
 * and earlier versions of the parameters
 * where the job delays updates (delays.h). A range is (vector, at, len), in elements. Only the store knows
 * addresses: host code reads, writes and hashes ranges; kernels get addresses in their device's memory by
 * hd_param_store_bind(), _bind_step(), _span() and _at(). Gradients belong to a stage (stage.h).
 *
 * 1. A range lies wholly inside its vector (hd_param_store_has()): all functions assert it. An empty range
 *    may lie at the end.
 * 2. The slot of a parameter has the parameter's offset. Frozen parameters have no slots. The vector of a
 *    slot that the optimizer does not use is empty.
 * 3. The version is the number of updates that made the present contents. It changes with the commit, never
 *    inside a step. Vectors are written only by STEP (the instruction that updates), or between two steps.
 * 4. After hd_param_store_drop() whole pages of the range read as +0.0 until they are written again.
 * 5. Neither addresses nor sizes change between create and destroy.
 * 6. Delayed updates (delays.h): the next step, t, reads a parameter that is D steps late as it was D updates
 *    ago. For it EARLIER vector j < D holds the values that step t + j reads: vector 0 those for the next
 *    step, vector D - 1 those before the newest. The newest are in PARAMS. Of a parameter that is not late,
 *    or frozen, EARLIER vector 0 is a copy of PARAMS, so that a step reads one vector. hd_param_store_age()
 *    and hd_param_store_follow() keep these vectors up to date.
 *    Where steps overlap (overlap.h) the step after the next one reads one vector, too: PARAMS, or where
 *    parameters are two steps late and more, EARLIER vector 1, which has a copy of PARAMS of all others
 *    (hd_param_store_near()). So it goes without frozen parameters, which that vector has not.
 * 7. A range may be *spilled*: its whole pages lie in a file that the system may take from memory. Nothing
 *    else differs, addresses least of all.
 *
 * Ownership: memory is taken from the device that is given to create(), which outlives the store. Threads:
 * disjoint ranges may be read and written concurrently; the version is read and set by the worker's caller.
 * Errors: HD_E_NOMEM and those of the device, from create() alone. */
#ifndef HD_ENGINE_STORE_H
#define HD_ENGINE_STORE_H

#include "base/hash.h"
#include "graph/layout.h"
#include "device/device.h"
#include "engine/delays.h"

enum hd_vector { HD_VEC_PARAMS, HD_VEC_SLOT0, HD_VEC_SLOT1, HD_VEC_SLOT2, HD_VEC_BUFFERS, HD_VEC_EARLIER,
	HD_VECS = HD_VEC_EARLIER + HD_MAX_DELAY };
enum { HD_MAX_SLOTS = HD_VEC_BUFFERS - HD_VEC_SLOT0 };

static inline enum hd_vector hd_vec_slot(uint32_t slot) { return (enum hd_vector)(HD_VEC_SLOT0 + slot); }
static inline enum hd_vector hd_vec_earlier(uint32_t j) { return (enum hd_vector)(HD_VEC_EARLIER + j); }

/* How many vectors of a kind a store has: slots, as the job's optimizer needs, 0..3; earlier versions, as
 * many as the steps by which a parameter is late, 0..HD_MAX_DELAY. */
struct hd_store_shape { uint32_t nslots, nearlier; };

/* Elements of a vector, before there is a store: what memory a job needs. */
uint64_t hd_vector_elems(const struct hd_layout *layout, struct hd_store_shape shape, enum hd_vector vector);

struct hd_param_store;

/* Makes a store of zeros at version 0. `layout` is borrowed. */
HD_MUST_USE enum hd_err hd_param_store_create(struct hd_param_store **store, const struct hd_layout *layout,
	struct hd_store_shape shape, struct hd_device *device, struct hd_diag *diag);
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
/* Gives the whole pages of a range back to the system (rule 4). */
void hd_param_store_drop(struct hd_param_store *store, enum hd_vector vector, uint64_t at, uint64_t len);

/* From now on ranges may be spilled, to a file without a name in `folder`. */
HD_MUST_USE enum hd_err hd_param_store_spills(struct hd_param_store *store, const char *folder,
	struct hd_diag *diag);
/* Rule 7. The range loses what it holds: it reads as it did when it was spilled last, else as zeros. */
HD_MUST_USE enum hd_err hd_param_store_spill(struct hd_param_store *store, enum hd_vector vector,
	uint64_t at, uint64_t len, struct hd_diag *diag);
/* The range is memory again; its whole pages are zero. */
HD_MUST_USE enum hd_err hd_param_store_unspill(struct hd_param_store *store, enum hd_vector vector,
	uint64_t at, uint64_t len, struct hd_diag *diag);

/* Rule 3. */
uint64_t hd_param_store_version(const struct hd_param_store *store);
void hd_param_store_set_version(struct hd_param_store *store, uint64_t version);

/* ---- for kernels, on the device ---- */

/* Sets bind->params, to the newest, and bind->buffers. */
void hd_param_store_bind(const struct hd_param_store *store, struct hd_bind *bind);
/* The same for the next step, with the version of the parameters that it reads. */
void hd_param_store_bind_step(const struct hd_param_store *store, struct hd_bind *bind);
/* The same with the version of `back` updates ago, 0 to as many as the store has; of parameters that are all
 * as late (fore.h). */
void hd_param_store_bind_back(const struct hd_param_store *store, uint32_t back, struct hd_bind *bind);
/* The same for the step after the next one. */
void hd_param_store_bind_after(const struct hd_param_store *store, struct hd_bind *bind);
/* Rule 6, for a range of parameters that are one step late or none, after they were written; nothing where
 * PARAMS is read. */
void hd_param_store_near(struct hd_param_store *store, uint64_t at, uint64_t len);
/* Rule 6, for a range of parameters that are `delay` > 0 steps late: at the end of a step, before they are
 * updated. */
void hd_param_store_age(struct hd_param_store *store, uint64_t at, uint64_t len, uint32_t delay);
/* Rule 6, for a range of parameters that are not late, after they were written. */
void hd_param_store_follow(struct hd_param_store *store, uint64_t at, uint64_t len);
/* Sets param, slot and len of `update` for a range of trained parameters; the caller sets the rest. */
void hd_param_store_span(struct hd_param_store *store, uint64_t at, uint64_t len, struct hd_update *update);
/* Exchanges the contents of all trained elements of a slot and the parameters: a forward pass of the means
 * needs no room of its own. Whoever does it does it again before anything else looks. */
void hd_param_store_swap(struct hd_param_store *store, enum hd_vector slot);
/* The address of a range: for arguments of a device's functions, and for entries of the
 * state table (graph/state.h). */
float *hd_param_store_at(const struct hd_param_store *store, enum hd_vector vector, uint64_t at,
	uint64_t len);
/* Which element lies at that address? false: none of this store. */
bool hd_param_store_find(const struct hd_param_store *store, const void *address, enum hd_vector *vector,
	uint64_t *at);

#endif
