/* notice_call.h -- one request over HTTP/1.1 and its answer, beside others on one loop: what the agent of
 * notices speaks.
 *
 * One connection a request. Nothing blocks: begin() starts it, go_on() carries it as far as it goes, whenever
 * the loop says so. The answer is bounded by HD_HTTP_HEAD_BYTES and HD_NOTICE_BODY.
 *
 * Ownership: zeroed memory is a call that is not under way; end() ends one, finish() also frees its buffer.
 * Threads: the loop's. */
#ifndef HD_WORKER_NOTICE_CALL_H
#define HD_WORKER_NOTICE_CALL_H

#include "sys/loop.h"
#include "sys/socket.h"
#include "notice/notice.h"
#include "notice/place.h"

enum { HD_NOTICE_OUT = 1600 };

struct hd_notice_call {
	struct hd_loop *loop;             /* borrowed; NULL: not under way */
	uint64_t tag;                     /* of its events */
	struct hd_sock sock;
	bool connected;
	int what;
	int64_t until_ns;                 /* it has failed then */
	char out[HD_NOTICE_OUT];
	size_t out_len, out_at, in_len;
	char *in;                         /* owned; NULL before the first */
	struct hd_http_head head;         /* of the answer: points into `in` */
};

HD_MUST_USE enum hd_err hd_notice_call_begin(struct hd_notice_call *call, struct hd_loop *loop, uint64_t tag,
	struct hd_net *net, const struct hd_notice_place *place, const struct hd_notice_ask *ask,
	struct hd_diag *diag);
/* HD_E_AGAIN: it goes on. HD_OK: `answer` is filled but for its times, with the text in body; ended. Else it
 * has failed and is ended. */
HD_MUST_USE enum hd_err hd_notice_call_go_on(struct hd_notice_call *call, char body[HD_NOTICE_BODY],
	struct hd_notice_answer *answer, struct hd_diag *diag);
void hd_notice_call_end(struct hd_notice_call *call);
void hd_notice_call_finish(struct hd_notice_call *call);

#endif
