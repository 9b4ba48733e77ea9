/* link.h -- a connection that a function worker makes and waits on: plain, or TLS 1.3 by its token.
 *
 * Every wait ends: at its deadline [HD_E_AGAIN], at the peer's end [HD_E_PEERLOST], or when this process is
 * asked to stop, where the caller wants that [HD_E_INTERRUPT].
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: one. */
#ifndef HD_FUNCTIONS_LINK_H
#define HD_FUNCTIONS_LINK_H

#include "sys/crypto_tls.h"
#include "sys/loop.h"
#include "functions/event.h"

/* The variable by which the emulator paces a worker's connections to owners: bytes a second; 0: no bound. */
#define HD_FN_PACE_NAME "HEDDLE_FUNCTION_BYTES_S"

/* How long a connection may rest between two tasks: a worker that comes later makes a new one, and the owner
 * ends it a little later. A cloud ends what is silent after minutes. */
#define HD_FN_REST_NS INT64_C(5000000000)
#define HD_FN_REST_END_NS (2 * HD_FN_REST_NS)

/* One connection. bytes_s is set after open. */
struct hd_fn_link {
	struct hd_loop loop;
	struct hd_net net;
	struct hd_sock sock;
	struct hd_tls tls;
	bool secure, stops;               /* stops: a signal ends its waits */
	int64_t bytes_s, free_ns;         /* of both ways together; 0: no bound. When the next may go */
};

/* The identity that TLS names, of a task and an attempt, and back. */
void hd_fn_identity(const struct hd_fn_ticket *ticket, char identity[HD_TLS_IDENTITY]);
/* False: it is none. */
bool hd_fn_identity_read(const char *identity, struct hd_hash *task, uint32_t *attempt);

/* What a HELLO proves on a connection that rested: of TLS the token's HMAC over the connection's own binding,
 * so that a proof serves on no other one; of a plain one the token itself. */
HD_MUST_USE enum hd_err hd_fn_proof_again(const struct hd_tls *tls, bool secure,
	const struct hd_sha256 *token, struct hd_sha256 *proof, struct hd_diag *diag);

/* `event` NULL: plain. Else TLS where it says so, by its token, in the realm: one for all links of a process,
 * since it takes longer to make than a task takes. Borrowed until close. */
HD_MUST_USE enum hd_err hd_fn_link_open(struct hd_fn_link *link, struct hd_clock *clock, const char *addr,
	const struct hd_fn_event *event, struct hd_tls_realm *realm, int64_t until_ns, struct hd_diag *diag);
/* Takes zeroed and closed ones. */
void hd_fn_link_close(struct hd_fn_link *link);
/* All of it. */
HD_MUST_USE enum hd_err hd_fn_link_send(struct hd_fn_link *link, const void *bytes, size_t len,
	int64_t until_ns, struct hd_diag *diag);
/* 1 to cap bytes; *got 0: the peer's orderly end. */
HD_MUST_USE enum hd_err hd_fn_link_some(struct hd_fn_link *link, void *bytes, size_t cap, size_t *got,
	int64_t until_ns, struct hd_diag *diag);
/* Exactly so many. */
HD_MUST_USE enum hd_err hd_fn_link_recv(struct hd_fn_link *link, void *bytes, size_t len, int64_t until_ns,
	struct hd_diag *diag);

#endif
