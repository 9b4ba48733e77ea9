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
 * 5. A process looks for events without sleeping only if there is a core for each.
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

/* rounds before those that count; of those, at most */
enum { HD_ALLREDUCE_WARMUP = 3, HD_ALLREDUCE_ROUNDS = 1000 };

struct hd_allreduce_bench {
	uint32_t n;                       /* members, 2..HD_ALLREDUCE_MEMBERS */
	uint64_t bytes;                   /* of the vector, a multiple of 4 */
	const char *transport;            /* row of wire/transports.h */
	uint32_t rounds;                  /* that count: 1..HD_ALLREDUCE_ROUNDS */
	const char *folder;               /* for this alone, mode 0700 */
	struct hd_clock *clock;           /* borrowed */
};

HD_MUST_USE enum hd_err hd_allreduce_bench_verify(const struct hd_allreduce_bench *bench,
	struct hd_diag *diag);

/* What the leader gathers: of each round the slowest member's time. */
struct hd_allreduce_times { bool checked; double *ms; };          /* ms[rounds]: the caller's */

/* Starts `argv` n times, each with HD_ALLREDUCE_MEMBER=I:FOLDER in its environment, and waits for all. */
#define HD_ALLREDUCE_MEMBER "HEDDLE_BENCH_MEMBER"
HD_MUST_USE enum hd_err hd_allreduce_bench_lead(const struct hd_allreduce_bench *bench, struct hd_host *host,
	const char *const *argv,
						struct hd_allreduce_times *times, struct hd_diag *diag);
/* A member's whole life. */
HD_MUST_USE enum hd_err hd_allreduce_bench_member(const struct hd_allreduce_bench *bench, uint32_t me,
	struct hd_diag *diag);

#endif
