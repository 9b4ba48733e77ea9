/* allreduce_bench.h -- the processes that time hd_allreduce: a leader, and members that it starts.
 *
 * The leader (`heddle bench allreduce`) starts n processes of the program itself, tells them one another's
 * addresses, and hears their times. Members do the rest among themselves:
 *
 *	listen -> ADDR to the leader -> PEERS -> connect to those below
 *	       -> [READY to 0 -> GO from 0 -> round] ... -> RESULT
 *
 * 1. Before each round the values are put back, then all wait for one another (READY, GO); each measures from
 *    GO until its sums are here and its memory is its own. The time of a round is that of the slowest member.
 * 2. In the first round and the last every element is compared with a sum that each member makes alone, by
 *    recursion over the members' values: `checked`. A difference is an error (HD_E_INTEGRITY), not a figure.
 * 3. Each message goes as above, and once (READY and GO: of each round); anything else is HD_E_PROTOCOL.
 * 4. Every wait has a deadline. A member whose leader is gone ends; the leader ends what it started.
 * 5. Of a bench with *cases* each is a sum by a primitive (collective_sum.h);
	training's exchange has none. All
 *    cases are summed once, then again in the same order, as often as rounds count; the first time counts for
 *    nothing. The sum that must be is made alone by rules of each primitive. When the time that the bench
 *    may take is over, member 0 says OVER in place of GO, and what was not summed has no time.
 * 6. A process looks for events without sleeping only if there is a core for each.
 *
 * The folder (mode 0700) holds the sockets; over TCP members listen at 127.0.0.1 with the row's proof or none
 * (`tcp`). Threads: one a process. */
#ifndef HD_WORKER_ALLREDUCE_BENCH_H
#define HD_WORKER_ALLREDUCE_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/clock.h"
#include "sys/process.h"
#include "worker/allreduce.h"
#include "worker/collective_sum.h"

/* rounds before those that count; of those, at most */
enum { HD_ALLREDUCE_WARMUP = 3, HD_ALLREDUCE_ROUNDS = 1000 };

enum { HD_ALLREDUCE_CASES = 256 };
#define HD_ALLREDUCE_CASE_MOST (UINT64_C(1) << 28)        /* bytes of a vector */
struct hd_allreduce_case { enum hd_collective kind; struct hd_collective_shape shape; uint64_t bytes; };

struct hd_allreduce_bench {
	uint32_t n;                       /* members, 2..HD_ALLREDUCE_MEMBERS */
	uint64_t bytes;                   /* of the vector, a multiple of 4 */
	const char *transport;            /* row of wire/transports.h */
	uint32_t rounds;                  /* that count: 1..HD_ALLREDUCE_ROUNDS */
	const char *folder;               /* for this alone, mode 0700 */
	struct hd_clock *clock;           /* borrowed */
	/* borrowed: `bytes` is the greatest of them; 0: the exchange of training */
	const struct hd_allreduce_case *cases; uint32_t ncases;
	int64_t budget_ns;                /* of all rounds; 0: as long as they take */
};

/* How many times are measured: round by round, of each its cases. */
static inline uint32_t hd_allreduce_bench_times(const struct hd_allreduce_bench *bench)
{
	return bench->rounds * (bench->ncases ? bench->ncases : 1);
}

HD_MUST_USE enum hd_err hd_allreduce_bench_verify(const struct hd_allreduce_bench *bench,
	struct hd_diag *diag);

/* What the leader gathers: the slowest member's times; 0: the bench was over before. ms is the caller's,
 * [hd_allreduce_bench_times()]. */
struct hd_allreduce_times { bool checked; double *ms; };

/* Starts `argv` n times, each with HD_ALLREDUCE_MEMBER=I:FOLDER in its environment, and waits for all. */
#define HD_ALLREDUCE_MEMBER "HEDDLE_BENCH_MEMBER"
HD_MUST_USE enum hd_err hd_allreduce_bench_lead(const struct hd_allreduce_bench *bench, struct hd_host *host,
	const char *const *argv,
						struct hd_allreduce_times *times, struct hd_diag *diag);
/* A member's whole life. */
HD_MUST_USE enum hd_err hd_allreduce_bench_member(const struct hd_allreduce_bench *bench, uint32_t me,
	struct hd_diag *diag);

#endif
