/* trip.h -- what a request over HTTP to another thread takes: the measure of a task's round trip.
 *
 * `heddle bench functions` is its user. Server and caller are those of this room (server.h, calls.h): a
 * connection each, an event of some hundred bytes, an answer of two.
 *
 * Threads: one more, joined by the end. */
#ifndef HD_FUNCTIONS_TRIP_H
#define HD_FUNCTIONS_TRIP_H

#include <stdint.h>

#include "base/err.h"
#include "sys/clock.h"

/* The fastest of so many, one after the other. */
HD_MUST_USE enum hd_err hd_fn_http_trip(struct hd_clock *clock, uint32_t count, int64_t *ns,
	struct hd_diag *diag);

#endif
