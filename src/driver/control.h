/* control.h -- control socket of a live run: one line of JSON each way over a Unix socket.
 *
 * `heddle scale`, `stop`, `status`, `top` and `chaos` ask; the coordinator answers:
 *
 *	{"do":"scale","workers":5}          -> {"ok":true,"asked":5,"target":5,"members":4}
 *	{"do":"dance"}                      -> {"ok":false,"exit":2,"error":"..."}
 *
 * 1. The socket lies in the run's folder, whose mode is 0700; where its path is longer than a socket's may
 *    be, in $XDG_RUNTIME_DIR/heddle (hd_control_path). Nothing else listens for it.
 * 2. A request is one object of at most HD_CONTROL_REQUEST bytes, a line, one a connection; the answer is one
 *    line, then the connection ends. What is longer, later than HD_CONTROL_WAIT_NS or not JSON is answered
 *    with an error or closed, and changes nothing.
 * 3. At most HD_CONTROL_CLIENTS at a time; the others wait in the kernel's queue.
 *
 * Ownership: open/close in the caller's memory, which does not move. Threads: the loop's. */
#ifndef HD_DRIVER_CONTROL_H
#define HD_DRIVER_CONTROL_H

#include "base/json.h"
#include "base/json_writer.h"
#include "sys/loop.h"
#include "sys/socket.h"

enum { HD_CONTROL_CLIENTS = 16, HD_CONTROL_REQUEST = 4096, HD_CONTROL_ANSWER = 1 << 18,
       HD_CONTROL_TAGS = HD_CONTROL_CLIENTS + 1 };
#define HD_CONTROL_WAIT_NS INT64_C(2000000000)

struct hd_control_client {
	struct hd_sock sock;
	int64_t until_ns;
	size_t got, put, len;             /* bytes of the request; of the answer, which has len */
	char *buf;                       /* request, then answer */
};

struct hd_control {
	struct hd_loop *loop;             /* borrowed, as are all of these */
	void *self;
	/* Answers `ask`, whose member "do" is a text: writes members into the open object `answer`. An
	 * error becomes the answer. */
	enum hd_err (*answer)(void *self, const char *what, const struct hd_json *ask,
		struct hd_json_writer *answer, struct hd_diag *diag);
	uint64_t tag;                     /* of the loop: [tag, tag + HD_CONTROL_TAGS) are this control's */
	struct hd_sock listener;
	struct hd_control_client client[HD_CONTROL_CLIENTS];
};

/* "unix:PATH" of a socket of the run in folder `dir`, an absolute path or one below the current folder.
 * "run.sock" is the control's. */
HD_MUST_USE enum hd_err hd_control_path(const char *dir, const char *name, char addr[HD_ADDR_CAP],
	struct hd_diag *diag);

/* Fields self, answer, tag are set by the caller. */
HD_MUST_USE enum hd_err hd_control_open(struct hd_control *control, const char *addr, struct hd_loop *loop,
	struct hd_net *net, struct hd_diag *diag);
void hd_control_close(struct hd_control *control);            /* takes zeroed and closed ones */
/* An event of the loop whose tag is one of this control's. */
void hd_control_event(struct hd_control *control, const struct hd_loop_event *event);
/* Closes connections that are late. Call it now and then. */
void hd_control_tick(struct hd_control *control, int64_t now_ns);

/* The other side: sends the object `ask` and waits for the answer, at most wait_ns. The text lies in `arena`.
 * HD_E_NOTFOUND: no coordinator answers for that run. An answer that is not ok is returned as the error that
 * it names. */
HD_MUST_USE enum hd_err hd_control_ask(const char *addr, const char *ask, int64_t wait_ns,
	struct hd_arena *arena, const struct hd_json **answer,
	struct hd_diag *diag);
/* The same of the run in that folder, whose files are `uid`'s (HD_NO_UID: ours): nothing else is spoken to,
 * if that account put a link or another one's socket there. */
HD_MUST_USE enum hd_err hd_control_ask_run(const char *dir, uint32_t uid, const char *ask, int64_t wait_ns,
	struct hd_arena *arena, const struct hd_json **answer, struct hd_diag *diag);

#endif
