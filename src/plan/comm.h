/* comm.h -- what is decided of a run's transfers: of which segments each bucket is, and in which order the
 * next step reads the buckets' parameters.
 *
 * planner/comm.h makes it when a run starts; it lies in the run's job as a text (comm.settled), which every
 * worker gets, so that none recomputes it from a clock of its own. A layout is cut by it (graph/layout.h),
 * the transfer table takes urgencies from it (protocol/transfers.h).
 *
 * 1. No bit of a result depends on it: sums are per element, norms and digests per segment.
 * 2. rank[b]: the place of bucket b in the order in which the first virtual node of a step reads parameters;
 *    smaller is read earlier. Buckets that share a rank may come in any order. Below nbuckets.
 * 3. nsegments[b]: of how many consecutive segments bucket b is, at least one. NULL: HD_BUCKET_CHUNKS chunks
 *    each.
 * 4. A rank is an urgency, never a gate: nothing waits for what is more urgent, and no watchdog is needed.
 *    With RANDOM the ranks are the seed of what is drawn for each step, sender and receiver: what TicTac
 *    compares with, a framework without an order, whose transfers come in another one at each worker in each
 *    step. An order that all workers keep is no such thing, whichever it is (ADR 271).
 * 5. `parts`: partial sums go by rank, too, each before what its owner makes of it. That pays where a step
 *    begins on the parameters that have arrived. Else partial sums go first, as backward passes make them
 *    (ADR 171), and ranks order what owners send.
 * 6. `link`: what ranks and buckets were settled by, for predictions; 0: nothing was known of it.
 *
 * The text: ORDER [parts] ranks LIST [segments LIST] [link KIB_PER_S LATENCY_NS]. A list is numbers, each 7,
 * or 4-7 or 7-4 (every number between), or 3x7 (three times 7), with commas. "tic+ ranks 0-4 segments
 * 2x3,1,2,8 link 97656 50000".
 *
 * Ownership: arrays lie in the arena. Pure. */
#ifndef HD_PLAN_COMM_H
#define HD_PLAN_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

/*        id        text */
#define HD_COMM_ORDERS(X)   \
	X(AUTO,     "auto")   /* search where all times are known, else tic+ */ \
	X(FIFO,     "fifo")   /* as backward passes make them */ \
	X(RANDOM,   "random") /* by the job's seed, another one in each step between each two workers */ \
	X(TIC,      "tic") \
	X(TIC_PLUS, "tic+") \
	X(TAC,      "tac") \
	X(SEARCH,   "search")

/* Of job key comm.order, in the order of its words; all but auto as planner/order.h, one behind. */
enum hd_comm_order {
#define X(id, text) HD_COMM_##id,
	HD_COMM_ORDERS(X)
#undef X
	HD_NCOMM_ORDERS
};
extern const char *const hd_comm_order_names[HD_NCOMM_ORDERS];

#define HD_COMM_SLACK_NS INT64_C(4000000)
enum { HD_COMM_FLIGHT = 64 << 10 };
enum { HD_COMM_BUCKETS = 65536, HD_COMM_TEXT = 1 << 17 };       /* buckets; bytes of a text */

/* Between two workers, each way. */
struct hd_comm_pace { uint32_t kib_per_s, latency_ns; };

/* nbuckets 0: nothing is decided. */
struct hd_comm {
	enum hd_comm_order order;         /* never AUTO, where something is decided */
	bool parts;
	uint32_t nbuckets;
	uint32_t *rank;                   /* [nbuckets] */
	uint32_t *nsegments;              /* [nbuckets], or NULL */
	struct hd_comm_pace link;         /* rule 6 */
};

/* HD_E_INPUT: it is no such text, with the word; HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_comm_read(struct hd_comm *comm, const char *text, struct hd_arena *arena,
	struct hd_diag *diag);
/* Reads back to the same. */
void hd_comm_put(const struct hd_comm *comm, struct hd_text *text);

/* In which step a transfer goes, and between which workers. */
struct hd_comm_turn { uint64_t step; uint32_t from, to; };
/* Urgency of a transfer of bucket b among n (`comm` NULL or undecided: rank as backward passes make them, the
 * last first). `part`: a partial sum. `turn` NULL: of all; it counts with RANDOM alone, where several buckets
 * may share a rank. From 1 on, at most 2 n. */
uint32_t hd_comm_urgency(const struct hd_comm *comm, uint32_t nbuckets, uint32_t bucket, bool part,
	const struct hd_comm_turn *turn);

/* How many bytes between two workers may be on their way at once: what the link carries while one comes and
 * its acknowledgement goes, and in HD_COMM_SLACK_NS beside it, in which threads on both ends are late; at
 * least HD_COMM_FLIGHT. More waits where nothing overtakes it. 0: nothing is known of the link. */
uint32_t hd_comm_flight_bytes(const struct hd_comm *comm);

/* What so many bytes take over the link alone, at least 1 ns; 0: nothing is known of it. */
uint64_t hd_comm_takes_ns(const struct hd_comm *comm, uint64_t bytes);

#endif
