/* event.h -- what an invocation of a function worker carries, both ways: a small JSON event without tensors,
 * and a small JSON answer.
 *
 * Owners write events and read answers; function workers read events and write answers.
 *
 *	{"v":1,"task":"<32 hex>","attempt":1,"host":"127.0.0.1","port":4000,"token":"<64 hex>",
 *	 "deadline_ms":1700000000000,"kernel_set":"avx2"}               "tls":false only where it is off
 *	{"ok":true,"busy_ms":12.5,"reply":"accepted"}
 *	{"ok":false,"error":"kernel_set","message":"..."}
 *
 * 1. An event is shorter than HD_FN_EVENT_BYTES. What has other members, or lacks one, is refused
 *    [HD_E_INPUT]: a worker of another version does not guess.
 * 2. `host` is a number of IPv4 or IPv6, or "unix:PATH" with port 0: no names are looked up.
 *
 * Plain values. Pure. */
#ifndef HD_FUNCTIONS_EVENT_H
#define HD_FUNCTIONS_EVENT_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/json_writer.h"
#include "sys/crypto.h"
#include "functions/reply.h"

enum { HD_FN_EVENT_BYTES = 1024, HD_FN_HOST = 112, HD_FN_KERNELS = 16, HD_FN_MESSAGE = 400 };

/* What proves itself to the owner by its token, and until when (Unix time). */
struct hd_fn_ticket { struct hd_hash task; uint32_t attempt; int64_t deadline_ms; };

/* One invocation. */
struct hd_fn_event {
	struct hd_fn_ticket ticket;
	char host[HD_FN_HOST];
	uint16_t port;
	bool tls;
	struct hd_sha256 token;
	char kernels[HD_FN_KERNELS];
};

/* Why a worker did not commit. */
#define HD_FN_ERRORS(X) \
	X(NONE,       "none",       "it did")                                              \
	X(KERNEL_SET, "kernel_set", "it lacks the kernels that the job names, or has others") \
	X(DEADLINE,   "deadline",   "the time ran out")                                    \
	X(OWNER,      "owner",      "the owner does not answer, or ended the connection")  \
	X(EVENT,      "event",      "the event, or what the owner sent, makes no sense")   \
	X(TASK,       "task",       "the task cannot be computed")

/* Its ids. */
enum hd_fn_error {
#define X(id, name, about) HD_FN_ERROR_##id,
	HD_FN_ERRORS(X)
#undef X
	HD_FN_NERRORS
};
/* Names of errors, and what they mean. */
extern const struct hd_fn_error_row { const char *name, *about; } hd_fn_errors[HD_FN_NERRORS];

/* How an invocation ended. */
struct hd_fn_answer {
	enum hd_fn_error error;           /* NONE: `reply` is the owner's */
	enum hd_fn_reply reply;
	double busy_ms;
	char message[HD_FN_MESSAGE];
};

/* The object, whole. */
void hd_fn_event_write(const struct hd_fn_event *event, struct hd_text *text);
/* HD_E_INPUT: which member is wrong. */
HD_MUST_USE enum hd_err hd_fn_event_read(const char *text, size_t len, struct hd_arena *arena,
	struct hd_fn_event *event, struct hd_diag *diag);
/* The object, whole. */
void hd_fn_answer_write(const struct hd_fn_answer *answer, struct hd_text *text);
/* HD_E_INPUT: which member is wrong. */
HD_MUST_USE enum hd_err hd_fn_answer_read(const char *text, size_t len, struct hd_arena *arena,
	struct hd_fn_answer *answer, struct hd_diag *diag);

/* HMAC-SHA-256 under the owner's session key over task, attempt and deadline. */
HD_MUST_USE enum hd_err hd_fn_token(const void *key, size_t key_len, const struct hd_fn_ticket *ticket,
	struct hd_sha256 *token, struct hd_diag *diag);

#endif
