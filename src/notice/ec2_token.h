/* ec2_token.h -- session tokens of EC2's metadata service (IMDSv2), shared by the sources of that cloud.
 *
 * A token is fetched by PUT, lives TTL, is renewed at half of its life and when a request with it is refused
 * [401]. Requests without one (IMDSv1) are never made. memory: token*. */
#ifndef HD_NOTICE_EC2_TOKEN_H
#define HD_NOTICE_EC2_TOKEN_H

#include "notice/source.h"

enum { HD_EC2_TOKEN, HD_EC2_GET };        /* `what` of a request */

/* The request for a token if one is due; else GET of `target` with the token at hand. */
void hd_ec2_ask(const struct hd_notice_memory *m, int64_t now_ns, const char *target,
	struct hd_notice_ask *ask);
/* True: the answer is dealt with, and this is the verdict; false: status 200 or 404 of the GET. */
bool hd_ec2_answer(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	enum hd_notice_verdict *verdict, struct hd_diag *diag);

#endif
