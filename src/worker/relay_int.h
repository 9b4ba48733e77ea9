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

/* Is the channel with a member open, in the view's epoch? */
bool hd_relay_is_open(const struct hd_relay *relay, uint32_t member);
/* Where what a member says of virtual node v lies: metrics + at * metrics_len, metrics_here[at]. */
uint64_t hd_relay_metrics_at(const struct hd_relay *relay, uint32_t member, uint32_t v);
/* Makes `table` of what all say; the exchange has the whole table. */
void hd_relay_merge(struct hd_relay *relay);
/* Bits of the worker's passes that have virtual node v and of which all metrics are here. */
uint32_t hd_relay_passes_done(const struct hd_relay *relay, uint32_t worker, uint32_t v);
/* Is it the first pass of its worker that has the virtual node? Its metrics go with that one. */
bool hd_relay_tells(const struct hd_relay *relay, const struct hd_pass *pass, uint32_t v);
/* A step begins: none is here. `keep`: it begins again, and all were here. */
HD_MUST_USE enum hd_err hd_relay_metrics_begin(struct hd_relay *relay, bool keep, struct hd_diag *diag);
/* The runs of a bucket: how many, and the number of the i-th. */
uint32_t hd_relay_nruns(const struct hd_relay *relay, uint32_t bucket);
uint32_t hd_relay_run(const struct hd_relay *relay, uint32_t bucket, uint32_t i);
/* Rule 6: a step begins; sums that the hub has borrowed keep their buffers. One `sent` of them. */
HD_MUST_USE enum hd_err hd_relay_keep_lent(struct hd_relay *relay, struct hd_diag *diag);
bool hd_relay_given_back(struct hd_relay *relay, uint64_t token);
/* With pairs: how many partial sums of the bucket come here (protocol/exchange.h, rule 11). */
uint32_t hd_relay_children(const struct hd_relay *relay, uint32_t bucket);
/* The ordinal of a partial sum in the step at hand, whose row has that one; HD_NOBODY: of no row in use. */
uint32_t hd_relay_ordinal(const struct hd_relay *relay, uint32_t row);
/* The place in relay->operand of a partial sum's run that `worker` sends by a row of that ordinal; false: it
 * is none of the step's. */
bool hd_relay_operand_of(const struct hd_relay *relay, uint32_t worker, uint32_t row, uint32_t run,
	uint64_t *at);

/* The receive buffer of a row in the step at hand; NULL: it is none of those that can come. */
/* Of sums of squares of parameters and moves, to be sent or received. */
double *hd_relay_ratio_at(const struct hd_relay *relay, uint32_t bucket);
void *hd_relay_buffer(const struct hd_relay *relay, const struct hd_xfer_name *name);
/* Rows of the mail that goes between this worker and a member in every step of the plan in use, ascending,
 * from row[0] on; hd_dist_mail_list() says how many. `out`: to the member. HD_E_NOMEM. */
HD_MUST_USE enum hd_err hd_relay_mail_rows(struct hd_relay *relay, uint32_t member, bool out,
	struct hd_transfer *row, struct hd_diag *diag);
/* An epoch is over: nothing that is posted comes any more, nothing that waits goes. */
void hd_relay_mail_void(struct hd_relay *relay);
/* The mail that the row of an arrival is of. HD_E_INTEGRITY: none, or another buffer. */
HD_MUST_USE enum hd_err hd_relay_mail_here(struct hd_relay *relay, uint32_t member,
	const struct hd_arrival *arrival, struct hd_diag *diag);
/* Opens the channel with a member. */
HD_MUST_USE enum hd_err hd_relay_channel(struct hd_relay *relay, uint32_t member, struct hd_diag *diag);
/* Posts buffers for what the step at hand will bring from a member. */
HD_MUST_USE enum hd_err hd_relay_post(struct hd_relay *relay, uint32_t member, struct hd_diag *diag);

#endif
