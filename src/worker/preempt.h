/* preempt.h -- what urgent bytes wait for behind others on one connection: `heddle bench preempt`.
 *
 * Two threads of this process, each with its hub, over a link of a given rate (link.h). One sends; the other
 * looks at every byte. Both read one clock, so a transfer's time is from its send to its arrival.
 *
 *   planned   a transfer of `bulk` bytes; in its midst an urgent one is sent
 *   answer    the same behind an answer of class 2
 *   order     the transfers of a step as backward makes them: the last layer first, the most urgent last
 *   state     steps one after the other, each sent at once, while an answer goes: state for a joiner
 *   gaps      the same, with as long a pause after each step as it takes alone: its computing
 *
 * 1. Each case runs alone, by arrival (`fifo`: all of one priority) and in order, in turns, `rounds` times;
 *    of times the median counts.
 * 2. Wire time: the urgent bytes at the link's rate, and its delay; without a rate, at that of the bulk
 *    alone.
 * 3. An inversion is a pair of transfers of which the more urgent could have begun before the other did, and
 *    began after it; or a chunk that its stream counts as one (hd_hub_stats.inverted).
 * 4. Bytes are compared, all of them: `correct`. A difference is HD_E_INTEGRITY, not a figure.
 *
 * Ownership: the caller's. Threads: two more while it runs, three over a relay. Every wait has a deadline. */
#ifndef HD_WORKER_PREEMPT_H
#define HD_WORKER_PREEMPT_H

#include "worker/link.h"

enum { HD_PREEMPT_ROUNDS = 100 };
enum hd_preempt_case { HD_PREEMPT_PLANNED, HD_PREEMPT_ANSWER, HD_PREEMPT_ORDER, HD_PREEMPT_STATE,
	HD_PREEMPT_GAPS, HD_PREEMPT_CASES };
#define HD_PREEMPT_BULK_LEAST (UINT64_C(64) << 10)
#define HD_PREEMPT_BULK_MOST (UINT64_C(1) << 30)

struct hd_preempt_spec {
	const char *transport;            /* row of wire/transports.h */
	struct hd_link_spec link;         /* rate 0, kind NONE: no shaping */
	uint64_t bulk, urgent;            /* bytes; bulk within the bounds above, urgent 1..bulk */
	uint32_t rounds;                  /* 1..HD_PREEMPT_ROUNDS */
	const char *folder;               /* mode 0700, for sockets */
};

/* Times in ms. Of order: `bulk` is the whole step, alone: by arrival. Of state and gaps: one step. */
struct hd_preempt_row {
	double wire, urgent, fifo;        /* of state and gaps: 0 */
	double alone, bulk;
	double share;                     /* of the answer in the bytes of the steps; of state and gaps */
	uint64_t inversions, fifo_inversions, preempted, aged;
};

const char *hd_preempt_case_name(enum hd_preempt_case what);
HD_MUST_USE enum hd_err hd_preempt_run(const struct hd_preempt_spec *spec,
	struct hd_preempt_row row[HD_PREEMPT_CASES], struct hd_diag *diag);

#endif
