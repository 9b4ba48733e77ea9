/* port_exchange.h -- when the exchange of a step is over between workers that have one port each way.
 *
 * A fluid model of what workers send (protocol/exchange.h, protocol/transfers.h, rule 4), for step_end.h.
 *
 * 1. Between two workers one message goes at a time: of those that are there the most urgent. Partial sums go
 *    before sums, of each the bucket that comes first in the array. A more urgent one goes between.
 * 2. Messages on their way share the ports of their ends max-min fairly, as streams of TCP do.
 * 3. A worker's partial sums of a bucket are there at its `ready_ns`; the sum is at the owner `late_ns` after
 *    the last of the others has come, and not before its own. Holders that are all workers get it from the
 *    owner at once; else each passes it on to the next (exchange.h, rule 6).
 * 4. With `apart` workers that do not hold a bucket get as many bytes from the last that does, when all sums
 *    are there: new parameters of sharded state.
 * 5. Of more than HD_PORT_FLUID workers, or HD_PORT_BUCKETS buckets, what each sends and gets takes its port
 *    in the order of the buckets, and none waits for another: what the model takes is bounded by the product
 *    of workers, twice, and buckets.
 *
 * Pure; memory is the arena's. */
#ifndef HD_RUN_PORT_EXCHANGE_H
#define HD_RUN_PORT_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { HD_PORT_WORKERS = 64, HD_PORT_FLUID = 8, HD_PORT_BUCKETS = 64 };

struct hd_port_bucket {
	double bytes, ready_ns[HD_PORT_WORKERS];
	uint32_t owner;
	uint16_t parts[HD_PORT_WORKERS];  /* partial sums that each worker makes */
	bool holds[HD_PORT_WORKERS];      /* that get the sum */
};

struct hd_port_exchange {
	uint32_t nworkers, nbuckets;
	const struct hd_port_bucket *bucket;      /* the most urgent first */
	double ns_per_byte, late_ns;      /* of a port, each way; until a message that is sent is there */
	bool apart;
};

/* When the last message is there; 0: none is sent. */
HD_MUST_USE enum hd_err hd_port_exchange_time(double *done_ns, const struct hd_port_exchange *exchange,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
