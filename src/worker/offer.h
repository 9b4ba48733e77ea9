/* offer.h -- which job it is that one may join: asked of its coordinator by who knows no more than its
 * address and key.
 *
 * A connection for this alone: it asks, hears one OFFER and ends. What comes is as good as the key: it was
 * proven by both ends (or, over plaintext, by nobody, and the user was warned). The text is a resolved job,
 * to be parsed and judged like any other.
 *
 * One attempt, bounded: 6 seconds to be connected and greeted, 5 to be answered. Threads: one; blocks. */
#ifndef HD_WORKER_OFFER_H
#define HD_WORKER_OFFER_H

#include "base/arena.h"
#include "base/hash.h"
#include "sys/clock.h"

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

/* HD_E_PEERLOST: nobody is there. HD_E_INVAL: it does not take this key, or speaks another version; the
 * sentence says which. */
HD_MUST_USE enum hd_err hd_offer_ask(const struct hd_offer_spec *spec, struct hd_arena *arena,
	struct hd_offer *offer, struct hd_diag *diag);

#endif
