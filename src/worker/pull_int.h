/* pull_int.h -- what the two ends of a pull share (private to pull*.c). */
#ifndef HD_WORKER_PULL_INT_H
#define HD_WORKER_PULL_INT_H

#include "sys/memory.h"
#include "worker/ends.h"
#include "worker/pull.h"

enum { PULL_ASKS = HD_TELL_FIRST_ID, PULL_OVER };      /* far to near, step: this pull; near to far */

/* Of one round of one order. */
struct pull_figures { double time, predicted, computing, transfers; };

struct pull {
	const struct hd_pull_spec *spec;
	struct hd_ends ends;
	struct hd_memory bytes[2];                /* of all receives, one after the other */
	uint64_t *at;                             /* [nrecvs] where in there */
	struct hd_recv_order *order;              /* [rounds * norders] */
	struct pull_figures *figures;             /* [rounds * norders], by the far end */
	struct hd_pull_row *row;                  /* displaced and arrival, by the far end */
};

static inline uint32_t pull_count(const struct pull *p) { return p->spec->rounds * p->spec->norders; }
/* Which order the k-th pull has: a round begins one further than the one before. */
static inline uint32_t pull_order(const struct pull *p, uint32_t k)
{
	const uint32_t n = p->spec->norders;
	return (k / n + k % n) % n;
}
/* Its place in `order` and `figures`. */
static inline uint32_t pull_place(const struct pull *p, uint32_t k)
{
	return k / p->spec->norders * p->spec->norders + pull_order(p, k);
}

/* Threads' whole lives. */
void pull_near(void *pull);
void pull_far(void *pull);

#endif
