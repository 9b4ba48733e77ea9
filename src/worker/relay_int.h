/* relay_int.h -- what the files of a relay share: relay.c opens steps, relay_post.c knows channels and
 * receive buffers, relay_send.c sends, relay_here.c takes what arrives. */
#ifndef HD_WORKER_RELAY_INT_H
#define HD_WORKER_RELAY_INT_H

#include "worker/relay.h"

enum { HD_RELAY_HEAD = 8 };               /* version and count, before the metrics of a message (dist.h) */

/* `old` or more: room for `need` of that size. NULL: no memory, and `old` stays. What was in it is lost. */
void *hd_relay_grown(void *old, uint64_t *cap, uint64_t need, size_t size);

/* Does the step at hand have digests of that bucket? Where they lie in relay->digest. */
bool hd_relay_has_digest(const struct hd_relay *relay, uint32_t bucket);
uint64_t hd_relay_digest_at(const struct hd_relay *relay, uint32_t bucket);
/* Bit of `parts`. */
uint8_t hd_relay_part(enum hd_xfer_kind kind);

/* The receive buffer of a row in the step at hand; NULL: it is none of those that can come. */
void *hd_relay_buffer(const struct hd_relay *relay, const struct hd_xfer_name *name);
/* Opens the channel with a member. */
HD_MUST_USE enum hd_err hd_relay_channel(struct hd_relay *relay, uint32_t member, struct hd_diag *diag);
/* Posts buffers for what the step at hand will bring from a member. */
HD_MUST_USE enum hd_err hd_relay_post(struct hd_relay *relay, uint32_t member, struct hd_diag *diag);

#endif
