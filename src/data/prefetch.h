/* prefetch.h -- the input rows of steps: read ahead by threads of their own, or by the caller.
 *
 * engine makes one for a training run. Device threads take the rows of (step, virtual
 * node), compute on them where they lie, and give the place back. It is a cache
 * without authority: what a place holds is a function of the data set, the sampler and
 * (step, virtual node); neither depth nor threads nor timing can change a byte.
 *
 * 1. Places: a ring of `depth` steps; each virtual node has its own place in each, so
 *    (step + depth, vn) waits only for (step, vn) to be given back.
 * 2. In a place each field has its rows one after the other. The places of neighbours lie so that the rows of
 *    vn + 1 follow those of a full vn: input of a wave is one array. Those of virtual node 0 are aligned to
 *    64 bytes.
 * 3. Each (step, vn) of [first_step, end_step) x [0, nvns) is taken once and given back
 *    once, the steps of a virtual node in order. A virtual node without rows (a short
 *    last batch) is taken and given back like any other, with 0 rows.
 *    A worker that computes only some virtual nodes wants those only: the others are not read ahead; a take
 *    of one of them fills it as without threads (6).
 * 4. A failed read ends the reading; every take of a place that is not filled returns
 *    that error with its message.
 * 5. After create nothing is allocated. No wait is longer than `limit_ms`.
 * 6. Without threads the taker fills its place itself when it is free: nothing is read ahead. For rows that
 *    are at hand (dataset.h) where every core has its device: a thread beside them takes one of their cores
 *    for each of its turns, and the devices that have the others wait; and the rows come from another core's
 *    cache.
 * 7. Where it begins with fewer readers and steps ahead than it may have (`first_threads`, `first_depth`),
 *    each time that a taker waits doubles both, if filling a place takes HD_PREFETCH_FAR_NS or longer: how
 *    many requests a far store needs at once is seen by waiting alone, and one that is near is read by one
 *    thread.
 * 8. With `named`, a place also has the names of its rows: what was asked of the data set for them, noted
 *    where it is asked.
 *
 * Ownership: create/destroy; data set and sampler are borrowed until destroy.
 * Threads: take, done and close any; create and destroy one. */
#ifndef HD_DATA_PREFETCH_H
#define HD_DATA_PREFETCH_H

#include "data/dataset.h"
#include "data/sampler.h"
#include "data/step_rows.h"

enum { HD_PREFETCH_THREADS = 16,          /* readers: more than any disk has use for */
       HD_PREFETCH_DEPTH = 64,            /* steps */
       HD_PREFETCH_FAR_NS = 1000000,
       HD_PREFETCH_LIMIT_MS = 120000 };   /* the default: longer than a network disk's bad minute */

struct hd_prefetch_spec {
	const struct hd_dataset *set;
	uint32_t split;
	const struct hd_sampler *sampler;
	uint32_t nvns;
	const uint8_t *wanted;            /* [nvns] flags, read in create; NULL: all */
	uint64_t per_vn;                  /* rows of a full virtual node */
	uint64_t first_step, end_step;    /* end_step 0: no end */
	uint32_t depth;                   /* steps ahead wanted; fewer if the memory is less; 0: 2 */
	uint32_t nthreads;                /* that read ahead; 0: none, see 6 */
	uint32_t first_threads, first_depth;      /* see 7; 0, or more than there are: all */
	/* for all places, but one step is held whatever it takes; 0: no bound */
	uint64_t memory_bytes;
	uint32_t limit_ms;                /* 0: HD_PREFETCH_LIMIT_MS */
	uint32_t look_ms;                 /* a reader that sleeps looks after so long; 0: a second */
	bool named;                       /* see 8 */
	/* called for each place that was filled, which took from `began`, as now() gave it then, to now. By
	 * one thread at a time, each of which sees what the others did; NULL: not called, and now() neither.
	 * now(): by any thread */
	void (*filled)(void *user, uint32_t vn, uint64_t began, uint64_t bytes);
	uint64_t (*now)(const void *user);
	void *user;
};

struct hd_prefetch;

/* HD_E_INVAL if the samples of a step cannot be addressed. */
HD_MUST_USE enum hd_err hd_prefetch_create(struct hd_prefetch **prefetch, const struct hd_prefetch_spec *spec,
	struct hd_diag *diag);
/* closes, joins the threads; no thread may be inside; takes NULL */
void hd_prefetch_destroy(struct hd_prefetch *prefetch);

/* input[f]: first row of field f, valid until done. HD_E_INTERRUPT: it was closed. */
HD_MUST_USE enum hd_err hd_prefetch_take(struct hd_prefetch *prefetch, uint64_t step, uint32_t vn,
	const void *input[HD_MAX_FIELDS], uint64_t *nrows, struct hd_diag *diag);
/* Would take() return at once, without waiting for a read or for a place? */
bool hd_prefetch_ready(struct hd_prefetch *prefetch, uint64_t step, uint32_t vn);
/* Names of the rows of a place that is taken, valid until done; NULL: not `named`. */
const struct hd_sample *hd_prefetch_names(const struct hd_prefetch *prefetch, uint64_t step, uint32_t vn);
void hd_prefetch_done(struct hd_prefetch *prefetch, uint64_t step, uint32_t vn);
/* From `step` on these are wanted. All that was taken has been given back; rows of earlier steps are
 * forgotten, those read for virtual nodes that stay wanted are kept. Of a reader without end_step. Does
 * not wait. */
void hd_prefetch_want(struct hd_prefetch *prefetch, uint64_t step, const uint8_t *wanted);
void hd_prefetch_close(struct hd_prefetch *prefetch);          /* wakes all waiting threads; for tests */

uint32_t hd_prefetch_depth(const struct hd_prefetch *prefetch);        /* steps, as chosen; for tests */
/* memory of one step's places; UINT64_MAX: beyond counting. For tests. */
uint64_t hd_prefetch_bytes(const struct hd_prefetch_spec *spec);

#endif
