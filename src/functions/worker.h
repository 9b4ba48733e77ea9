/* worker.h -- what a function worker does with an event: calls the owner, computes, commits; and the loop
 * around it that speaks Lambda's Runtime API.
 *
 * 1. One event at a time. Nothing of a task is kept but what may be needed again: inputs with a digest, at
 *    most HD_FN_HAVE and HD_FN_KEPT_BYTES of them, the oldest that the task does not use dropped; and the
 *    last graph with its kernels.
 * 2. It stops HD_FN_STOP_MS before the earlier of the event's and the service's deadline.
 * 3. Kernels whose proof is not the owner's (dense.h) compute nothing: the answer is `kernel_set`.
 * 4. Whatever comes from the owner is checked before it is used: frames, tensors, digests of kept inputs.
 * 5. The connection to the owner rests after a COMMIT that was answered, and serves the next event of the
 *    same address within HD_FN_REST_NS; that event's token is proved on it (message.h, 5). One that turns out
 *    to have ended, before a word of the owner came, is met by one new connection.
 *
 * Ownership: init/finish. Threads: one. */
#ifndef HD_FUNCTIONS_WORKER_H
#define HD_FUNCTIONS_WORKER_H

#include "functions/dense.h"
#include "functions/event.h"
#include "functions/link.h"
#include "functions/message.h"

enum { HD_FN_STOP_MS = 200, HD_FN_OUT = 8192 };
enum { HD_FN_READY_TASKS = 8 };           /* a step has several alike tasks, one stretch after another */
#define HD_FN_KEPT_BYTES (UINT64_C(256) << 20)

/* An input that may be needed again. */
struct hd_fn_kept { struct hd_hash digest; uint8_t *bytes; uint64_t len; };

/* What a warm worker has. */
struct hd_fn_worker {
	struct hd_clock *clock;           /* borrowed */
	struct hd_dense dense[HD_FN_READY_TASKS]; /* for tasks like earlier ones; the oldest goes */
	uint32_t ndense;                  /* opened so far */
	char kernels[HD_FN_KERNELS];      /* that are known to be here */
	struct hd_fn_kept kept[HD_FN_HAVE];       /* the oldest first */
	uint32_t nkept;
	uint64_t kept_bytes;
	struct hd_fn_work *work;          /* owned */
	uint8_t *payload;                 /* owned: HD_FN_PAYLOAD + 1 */
	struct hd_tls_realm realm;        /* of all connections; made at the first one that is secure */
	int64_t bytes_s;                  /* of a connection to an owner (link.h) */
	struct hd_fn_link link;           /* to an owner, while a task or after it; sock.net NULL: none */
	uint8_t out[HD_FN_OUT];           /* small frames, until they are sent */
	size_t out_len;
	char owner[HD_ADDR_CAP];          /* its address */
	int64_t rested_ns, rested_wall_ns;        /* since when it rests; a freeze may stop one clock */
};

/* Of nothing kept. */
HD_MUST_USE enum hd_err hd_fn_worker_init(struct hd_fn_worker *worker, struct hd_clock *clock,
	struct hd_diag *diag);
/* Takes zeroed and finished ones. */
void hd_fn_worker_finish(struct hd_fn_worker *worker);
/* Does what the event asks for; whatever happens is in the answer. `request`: the service's id of the
 * invocation, or "". `deadline_ms`: of the service, Unix time; INT64_MAX: none. */
void hd_fn_worker_do(struct hd_fn_worker *worker, const char *event, size_t len, const char *request,
	int64_t deadline_ms, struct hd_fn_answer *answer);

/* The loop of a custom runtime: next, work, response, until the service ends the connection while no
 * invocation is under way, or a signal asks to stop [HD_OK]. `api`: "HOST:PORT", or "unix:PATH" of a local
 * pool. HD_E_REFUSED, HD_E_PROTOCOL: the service says no, or speaks something else. */
HD_MUST_USE enum hd_err hd_fn_serve_runtime(const char *api, struct hd_clock *clock, struct hd_diag *diag);

#endif
