/* slurm_call.h -- one request over HTTP/1.1 on a Unix socket, and its answer: what is said to slurmrestd.
 *
 * One connection a request. Nothing blocks: begin() starts it, go_on() carries it as far as it goes now.
 * The answer is bounded by HD_HTTP_HEAD_BYTES and HD_SLURM_BODY.
 *
 * Ownership: zeroed memory is a call that is not under way; end() ends one and frees its answer. The net and
 * the request's text are borrowed until then. Threads: one. */
#ifndef HD_LAUNCH_SLURM_CALL_H
#define HD_LAUNCH_SLURM_CALL_H

#include "base/http_head.h"
#include "sys/socket.h"

enum { HD_SLURM_BODY = 32 << 20 };

struct hd_slurm_call {
	struct hd_sock sock;              /* net NULL: not under way, or ended */
	const char *out; size_t out_len, out_at;
	bool connected, ours;
	char *in, *body;                  /* owned */
	uint32_t in_cap;
	size_t in_len, body_len;
	struct hd_http_head head;         /* of the answer: points into `in` */
};

/* `path`: of the socket. `out`: the whole request. ours: only a process of this user gets it. */
HD_MUST_USE enum hd_err hd_slurm_call_begin(struct hd_slurm_call *call, struct hd_net *net, const char *path,
	bool ours, const char *out, size_t out_len, struct hd_diag *diag);
/* HD_E_AGAIN: it goes on. HD_OK: head.status, and the body, ended by 0, until end(). HD_E_PEERLOST: nothing
 * answers, or not whole; HD_E_REFUSED: another user does; HD_E_PROTOCOL, HD_E_NOSPACE: what answers speaks no
 * HTTP, or too much. */
HD_MUST_USE enum hd_err hd_slurm_call_go_on(struct hd_slurm_call *call, struct hd_diag *diag);
void hd_slurm_call_end(struct hd_slurm_call *call);

#endif
