/* owner.h -- the owner of dense tasks: leases them to functions, takes what they commit, and says which ones
 * are for running here.
 *
 * A trainer gives it tasks and turns it until all are done; `bench functions` is its smallest user.
 *
 * 1. Outputs of a task are written at its first COMMIT or by the run here, once, never in part
 *    (functions/board.h).
 * 2. Nothing is believed of a connection before its HELLO: where TLS is on it has proven the token in the
 *    handshake, and HELLO proves it again. A stranger has HD_FN_HELLO_BYTES and HD_FN_STRANGER_NS.
 *    After a COMMIT that was answered it is a stranger again, for HD_FN_REST_END_NS, whose next HELLO proves
 *    the token of another task (message.h, 5); it is the first to go where all HD_FN_CONNECTIONS are taken.
 * 3. Digests of all outputs are compared before they count. What differs is refused.
 * 4. Each call is in the ledger when it ended.
 * 5. A call ended well if its own worker brought a result, or proved its token when the task was over. What
 *    its service says does not count without that (HD_FN_EMPTY, functions/board.h).
 *
 * Ownership: open/close in the caller's memory, which does not move; tasks, their tensors and the invoker are
 * borrowed until they are done. Threads: one; turn() blocks until the time given. */
#ifndef HD_FUNCTIONS_OWNER_H
#define HD_FUNCTIONS_OWNER_H

#include "sys/crypto_tls.h"
#include "functions/bill.h"
#include "functions/board.h"
#include "functions/invoker.h"
#include "functions/message.h"

enum { HD_FN_CONNECTIONS = 96 };
#define HD_FN_STRANGER_NS INT64_C(10000000000)

/* A task: tensors by number, inputs read and outputs written. */
struct hd_fn_job { const struct hd_fn_work *work; void *const *at; uint32_t phase; };

/* How tasks are given out. Borrowed until close. */
struct hd_fn_owner_spec {
	struct hd_clock *clock;
	const char *listen;               /* "unix:PATH", "tcp:HOST:0": where workers call */
	const char *host;                 /* what events name; NULL: as listened */
	bool tls;
	uint32_t ntasks, slots;           /* tasks at once; slots 0: all is run here */
	int64_t lease_ns, memory_mb;      /* memory: of a call without a report */
	uint64_t seed;
	struct hd_fn_price price;
};

struct hd_fn_connection;

/* The token of an attempt. A task has those of its last HD_FN_PROOFS attempts. */
enum { HD_FN_PROOFS = 4 };
struct hd_fn_proof { uint32_t attempt; struct hd_sha256 token; };

/* A call under way; attempt 0: none. `met`: of rule 5. */
enum { HD_FN_UNDER_WAY = 64 };            /* as many as invokers make */
struct hd_fn_under_way { uint64_t call; struct hd_hash task; struct hd_fn_proof proof; bool met; };

/* The owner. */
struct hd_fn_owner {
	struct hd_fn_owner_spec spec;
	struct hd_fn_board board;
	struct hd_fn_bill bill;
	struct hd_arena arena;
	struct hd_loop loop;
	struct hd_net net;
	struct hd_sock listener;
	struct hd_tls_realm realm;
	struct hd_fn_invoker invoker;     /* set by hd_fn_owner_calls */
	uint8_t key[32];
	uint64_t generation;              /* with a task's number its id: of one call of submit */
	const struct hd_fn_job *job;      /* borrowed: [board.ntasks] */
	struct hd_fn_proof *proof;        /* [ntasks x HD_FN_PROOFS], of the arena */
	struct hd_fn_connection *at;      /* owned: HD_FN_CONNECTIONS */
	uint32_t calling;                 /* calls under way */
	struct hd_fn_under_way under_way[HD_FN_UNDER_WAY];
	int64_t tried_ns;                 /* the first call since one ended well; 0: none */
	uint64_t refused, unanswered;     /* connections refused; calls that ended without an answer */
	uint64_t connections;             /* that were taken in */
	char last_error[HD_FN_MESSAGE];   /* that a function said, or its service */
};

enum { HD_FN_OWNER_TAGS = 2 + HD_FN_CONNECTIONS };     /* of its loop, from 0; others are the invoker's */

/* Listens. */
HD_MUST_USE enum hd_err hd_fn_owner_open(struct hd_fn_owner *owner, const struct hd_fn_owner_spec *spec,
	struct hd_diag *diag);
/* Takes zeroed and closed ones. */
void hd_fn_owner_close(struct hd_fn_owner *owner);
/* What makes calls, on the owner's loop. */
void hd_fn_owner_calls(struct hd_fn_owner *owner, const struct hd_fn_invoker *invoker);
/* Tasks in place of those before, which are forgotten, done or not. */
HD_MUST_USE enum hd_err hd_fn_owner_submit(struct hd_fn_owner *owner, const struct hd_fn_job *job, uint32_t n,
	struct hd_diag *diag);
/* One turn: what came, what is due; waits until at_ns for something. `here`: is a device here idle?
 * `run_here`: the task that the caller must compute now and then hand to hd_fn_owner_ran; UINT32_MAX:
	none. */
HD_MUST_USE enum hd_err hd_fn_owner_turn(struct hd_fn_owner *owner, int64_t at_ns, bool here,
	uint32_t *run_here, struct hd_diag *diag);
/* The run took so long; at[] has all tensors of the task, outputs too. */
void hd_fn_owner_ran(struct hd_fn_owner *owner, uint32_t task, void *const *at, int64_t took_ns);
/* So many calls at once from now on; 0: all is run here. Calls under way go on. */
void hd_fn_owner_resize(struct hd_fn_owner *owner, uint32_t slots);
/* Tasks that are not done. */
uint32_t hd_fn_owner_left(const struct hd_fn_owner *owner);
/* Calls are under way whose end, and price, is not known yet. */
bool hd_fn_owner_is_calling(const struct hd_fn_owner *owner);
/* For how long calls have gone out and none has ended well; 0: the last one did, or none goes out. */
int64_t hd_fn_owner_silent_ns(const struct hd_fn_owner *owner);

#endif
