/* allreduce_bench_int.h -- what leader and members of the bench say to each other (private to the two). */
#ifndef HD_WORKER_ALLREDUCE_BENCH_INT_H
#define HD_WORKER_ALLREDUCE_BENCH_INT_H

#include "base/text.h"
#include "worker/allreduce_bench.h"

/* Ids of control messages. Numbers are little-endian; an address fills HD_ADDR_CAP bytes, ending in zeros. */
enum hd_allreduce_says {
	HD_SAYS_START = HD_TELL_FIRST_ID, /* leader to member: the key of this bench */
	HD_SAYS_ADDR,                     /* member to leader: where it listens */
	HD_SAYS_PEERS,                    /* leader to member: where each of the n listens */
	HD_SAYS_READY,                    /* member to member 0, step: the round */
	HD_SAYS_GO,                       /* member 0 to others, step: the round */
	HD_SAYS_RESULT,                   /* member to leader: u64 ns of each round that counts */
	HD_SAYS_OVER,                     /* member 0 to others, step: the round that is not begun */
};

enum {
	HD_ALLREDUCE_LEADER = HD_ALLREDUCE_MEMBERS,       /* its worker id */
	HD_ALLREDUCE_KEY = 32,
	HD_ALLREDUCE_DETECT_MS = 10000,   /* longer than comparing a vector, in which no member polls */
};
#define HD_ALLREDUCE_PATIENCE_NS (60 * HD_NS_PER_S)       /* of every wait */

/* Sends to one member that may be queued at a time: of a bucket by a primitive at most all of its moves. */
static inline uint32_t hd_allreduce_queue(const struct hd_allreduce_bench *bench)
{
	uint64_t len = bench->bytes / sizeof(float);

	return bench->ncases ? (uint32_t)((len + HD_COLLECTIVE_BUCKET - 1) / HD_COLLECTIVE_BUCKET *
		HD_COLLECTIVE_MOVES) : hd_allreduce_streams(len, bench->n);
}

static inline struct hd_hub_config hd_allreduce_config(const struct hd_allreduce_bench *bench,
	uint32_t worker, enum hd_role role, const uint8_t *key)
{
	return (struct hd_hub_config){ .job = { "heddle bench" }, .worker = worker, .role = role,
		.detect_ms = HD_ALLREDUCE_DETECT_MS,
		.peers_cap = bench->n + 1, .streams_cap = hd_allreduce_queue(bench), .plaintext = true,
		.key = key, .key_len = HD_ALLREDUCE_KEY };
}

static inline void hd_allreduce_leader_addr(const struct hd_allreduce_bench *bench, char addr[HD_ADDR_CAP])
{
	struct hd_text text;

	hd_text_fixed(&text, addr, HD_ADDR_CAP);
	hd_text_addf(&text, "unix:%s/leader", bench->folder);
}

#endif
