/* message.h -- what a function worker and the owner of its task say to each other on their one connection.
 *
 *	worker   HELLO   task, attempt, token, request id, digests of the tensors that it still has
 *	owner    WORK    kernels and their proof, rows, draw, tensors, the task's graph as text
 *	owner    DATA    rows of an input: once each, ascending; none of a tensor that the worker has
 *	worker   RESULT  rows of an output: once each, ascending
 *	worker   COMMIT  digest of all outputs, time
 *	owner    REPLY   reply.h
 *
 *	0       2   3    4        8         12       16
 *	| magic | v | ty | length | payload | header |  payload
 *	|  u16  | u8| u8 |  u32   | crc u32 | crc u32|          little endian; CRC-32C,
	the header's of bytes 0..11
 *
 * 1. A reader accepts only what it understands completely [HD_E_PROTOCOL]: known type, a length that the type
 *    may have, no bytes left over, extents that are those of tensors.
 * 2. Nothing is believed before HELLO: an owner reads HD_FN_HELLO_BYTES at most of a stranger.
 * 3. Rows of a tensor are its extent 0. A frame holds whole rows, at most HD_FN_DATA_BYTES of them.
 * 4. Numbers are never reused.
 * 5. After the REPLY to a COMMIT, but REFUSED, the next HELLO may follow on the same connection, of another
 *    task and token; with any other end, both end the connection. Over TLS that HELLO has in place of the
 *    token its HMAC-SHA-256 over what this connection alone exports (link.h), so each task is proved by its
 *    own token, whatever became of those before it.
 *
 * Plain values; texts point into the payload. Pure. */
#ifndef HD_FUNCTIONS_MESSAGE_H
#define HD_FUNCTIONS_MESSAGE_H

#include "base/text.h"
#include "graph/ir.h"
#include "functions/event.h"
#include "functions/runtime_api.h"

enum {
	HD_FN_FRAME = 16,                 /* bytes of a header */
	HD_FN_HAVE = 16,                  /* digests in a HELLO */
	HD_FN_TENSORS = 2 * HD_MAX_ENDS,
	HD_FN_NAME = 64,
	HD_FN_DATA_BYTES = 1 << 20,
	HD_FN_TEXT_BYTES = 1 << 20,       /* of a task's graph */
	HD_FN_HELLO_BYTES = 512,
	HD_FN_PAYLOAD = HD_FN_TEXT_BYTES + HD_FN_TENSORS * 160 + 256,     /* at most, of any type */
};

/*        id      no  payload bytes, least and most */
#define HD_FN_FRAMES(X) \
	X(HELLO,  1,  16 + 4 + 32 + 2 + 1,  HD_FN_HELLO_BYTES)     \
	X(WORK,   2,  1,                    HD_FN_PAYLOAD)         \
	X(DATA,   3,  12 + 1,               12 + HD_FN_DATA_BYTES) \
	X(RESULT, 4,  12 + 1,               12 + HD_FN_DATA_BYTES) \
	X(COMMIT, 5,  16 + 8,               16 + 8)                \
	X(REPLY,  6,  1,                    1)

/* Types of the frames. */
enum hd_fn_frame_type {
#define X(id, no, least, most) HD_FN_##id = (no),
	HD_FN_FRAMES(X)
#undef X
};

/* A header. */
struct hd_fn_frame { enum hd_fn_frame_type type; uint32_t len, crc; };
/* Of a payload that follows it. */
void hd_fn_frame_put(enum hd_fn_frame_type type, const void *payload, size_t len, uint8_t bytes[HD_FN_FRAME]);
/* HD_E_PROTOCOL: it is none. */
HD_MUST_USE enum hd_err hd_fn_frame_get(const uint8_t bytes[HD_FN_FRAME], struct hd_fn_frame *frame,
	struct hd_diag *diag);
/* HD_E_PROTOCOL: the payload is not what the header says. */
HD_MUST_USE enum hd_err hd_fn_frame_check(const struct hd_fn_frame *frame, const void *payload,
	struct hd_diag *diag);

/* The first word of a worker. */
struct hd_fn_hello {
	struct hd_hash task;
	uint32_t attempt;
	struct hd_sha256 token;
	char request[HD_RUNTIME_ID];      /* of the invocation; "" where there is none */
	uint32_t nhave;
	struct hd_hash have[HD_FN_HAVE];
};

/* A tensor of a task. `digest`: of an input that stays the same over tasks, else zeros. */
struct hd_fn_tensor {
	char name[HD_FN_NAME];
	bool is_output;
	uint8_t dtype, rank;
	int64_t dim[HD_MAX_DIMS];         /* above 0 */
	struct hd_hash digest;
};

/* What is to be computed: `text` is a graph (graph/text.h), run on `rows` rows. `proof`: of the owner's
 * kernels (hd_dense_proof); of no digest: they are not compared. */
struct hd_fn_work {
	char kernels[HD_FN_KERNELS];
	struct hd_hash proof;
	uint64_t rows, version;           /* version of the weights, the owner's */
	uint64_t seed, step;              /* with vn: what random ops are keyed by */
	uint32_t vn;
	uint32_t ntensors;
	struct hd_fn_tensor tensor[HD_FN_TENSORS];
	const char *text;
	size_t text_len;
};

/* Rows of tensor number `tensor`. */
struct hd_fn_rows { uint32_t tensor, first, n; const uint8_t *bytes; size_t len; };

/* A digest over all outputs, in the order of the tensors. */
struct hd_fn_commit { struct hd_hash digest; uint64_t busy_ns; };

/* Bytes of a tensor, and of one of its rows; 0: they are too many. */
uint64_t hd_fn_tensor_bytes(const struct hd_fn_tensor *tensor);
/* Bytes of one row: of all but extent 0. */
uint64_t hd_fn_row_bytes(const struct hd_fn_tensor *tensor);
/* A digest that says nothing. */
bool hd_fn_no_digest(struct hd_hash digest);

/* Payloads, written into a text. */
void hd_fn_hello_put(const struct hd_fn_hello *hello, struct hd_text *text);
/* The payload of a WORK. */
void hd_fn_work_put(const struct hd_fn_work *work, struct hd_text *text);
/* The first bytes of a DATA or RESULT: the rows follow. */
void hd_fn_rows_put(const struct hd_fn_rows *rows, uint8_t bytes[12]);
/* The payload of a COMMIT. */
void hd_fn_commit_put(const struct hd_fn_commit *commit, uint8_t bytes[24]);

/* Payloads, read. HD_E_PROTOCOL: which rule is broken. */
HD_MUST_USE enum hd_err hd_fn_hello_get(const uint8_t *bytes, size_t len, struct hd_fn_hello *hello,
	struct hd_diag *diag);
/* The payload of a WORK. */
HD_MUST_USE enum hd_err hd_fn_work_get(const uint8_t *bytes, size_t len, struct hd_fn_work *work,
	struct hd_diag *diag);
/* Of a DATA or RESULT; whether such rows are due, the reader of rows knows. */
HD_MUST_USE enum hd_err hd_fn_rows_get(const uint8_t *bytes, size_t len, struct hd_fn_rows *rows,
	struct hd_diag *diag);
/* The payload of a COMMIT. */
HD_MUST_USE enum hd_err hd_fn_commit_get(const uint8_t *bytes, size_t len, struct hd_fn_commit *commit,
	struct hd_diag *diag);
/* The payload of a REPLY. */
HD_MUST_USE enum hd_err hd_fn_reply_get(const uint8_t *bytes, size_t len, enum hd_fn_reply *reply,
	struct hd_diag *diag);

/* Tensors of one kind (outputs or inputs) as their rows come: each once, ascending. */
struct hd_fn_intake {
	const struct hd_fn_work *work;    /* borrowed */
	void *const *to;                  /* [ntensors], borrowed: where each goes; NULL: it is not awaited */
	uint32_t tensor;                  /* the next one's number; ntensors: all are there */
	uint32_t row;
};
/* Awaits those of work's tensors that have a place. */
void hd_fn_intake_begin(struct hd_fn_intake *in, const struct hd_fn_work *work, void *const *to);
/* HD_E_PROTOCOL: these rows are not due. */
HD_MUST_USE enum hd_err hd_fn_intake_take(struct hd_fn_intake *in, const struct hd_fn_rows *rows,
	struct hd_diag *diag);
/* All that was awaited is there. */
bool hd_fn_intake_done(const struct hd_fn_intake *in);

#endif
