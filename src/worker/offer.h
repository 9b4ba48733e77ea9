/* offer.h -- which job a worker would join, asked of a coordinator of which only address and key are known.
 *
 * One connection for this alone: it asks, receives one OFFER, and ends. The answer is as good as the key,
 * which both ends have proven (over plaintext there is no proof, and the user was warned). The text is a
 * resolved job, to be parsed and judged like any other.
 *
 * One attempt, bounded: 6 seconds to connect and greet, 5 to be answered. Threads: one; blocks. */
#ifndef HD_WORKER_OFFER_H
#define HD_WORKER_OFFER_H

#include "base/arena.h"
#include "base/hash.h"
#include "sys/clock.h"
#include "engine/task.h"

struct hd_offer_spec {
	struct hd_clock *clock;           /* borrowed, as all of these */
	const char *coordinator;          /* its address (worker/elastic.h) */
	struct hd_hash realm;
	const void *key;                  /* NULL: none */
	size_t key_len;
	bool plaintext;
};

struct hd_offer {
	struct hd_hash job, data;         /* hash of the task, of the content of its data */
	uint64_t data_count;
	/* resolved job; where its relative paths begin, on the machine of the coordinator. In the arena */
	const char *text, *folder;
	size_t len;
};

/* HD_E_PEERLOST: no answer. HD_E_INVAL: it refuses this key, or speaks another version; the message says
 * which. */
HD_MUST_USE enum hd_err hd_offer_ask(const struct hd_offer_spec *spec, struct hd_arena *arena,
	struct hd_offer *offer, struct hd_diag *diag);

/* Is `task`, made here of the offer of the run at `where`, the same job on the same data? HD_E_INVAL: another
 * job. HD_E_INPUT: other data. */
HD_MUST_USE enum hd_err hd_offer_agrees(const struct hd_offer *offer, const char *where,
	const struct hd_task *task, struct hd_diag *diag);

#endif
