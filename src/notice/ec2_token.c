#include "notice/ec2_token.h"

#include <stdio.h>
#include <string.h>

enum { TTL_S = 21600 };

void hd_ec2_ask(const struct hd_notice_memory *m, int64_t now_ns, const char *target,
	struct hd_notice_ask *ask)
{
	if (!*m->token || now_ns >= m->token_renew_ns) {
		ask->what = HD_EC2_TOKEN;
		ask->method = "PUT";
		snprintf(ask->target, sizeof ask->target, "/latest/api/token");
		snprintf(ask->lines, sizeof ask->lines, "X-aws-ec2-metadata-token-ttl-seconds: %d\r\n",
			TTL_S);
		return;
	}
	ask->what = HD_EC2_GET;
	snprintf(ask->target, sizeof ask->target, "%s", target);
	snprintf(ask->lines, sizeof ask->lines, "X-aws-ec2-metadata-token: %s\r\n", m->token);
}

/* It goes into a line of our requests: printable, without blanks. */
static bool is_token(const struct hd_notice_answer *a)
{
	for (size_t i = 0; i < a->len; i++)
		if (a->body[i] <= ' ' || a->body[i] >= 0x7f)
			return false;
	return a->len > 0 && a->len < sizeof ((struct hd_notice_memory *)0)->token;
}

/* One that cannot be renewed is used to its end. */
static enum hd_notice_verdict take_token(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	struct hd_diag *diag)
{
	if (a->status == 403) {
		(void)!hd_fail(diag, HD_E_REFUSED,
			"the metadata service of this instance is switched off (403): no notice will come "
			"from it; switch it on, or say elastic.notice.source: none");
		return HD_OFF;
	}
	if (a->status == 200 && is_token(a)) {
		memcpy(m->token, a->body, a->len);
		m->token[a->len] = '\0';
		m->token_renew_ns = a->now_ns + TTL_S / 2 * HD_NOTICE_S;
		m->token_until_ns = a->now_ns + TTL_S * HD_NOTICE_S;
		m->token_is_new = true;
		return HD_MORE;
	}
	if (*m->token && a->now_ns + HD_NOTICE_BACKOFF_NS < m->token_until_ns) {
		m->token_renew_ns = a->now_ns + HD_NOTICE_BACKOFF_NS;
		return HD_MORE;
	}
	m->token[0] = '\0';
	if (a->status != 200)
		return hd_notice_strange(a, diag);
	(void)!hd_fail(diag, HD_E_PROTOCOL, "its token is empty, too long, or no token");
	return HD_FAILED;
}

bool hd_ec2_answer(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	enum hd_notice_verdict *verdict, struct hd_diag *diag)
{
	bool was_new = m->token_is_new;

	if (a->what == HD_EC2_TOKEN) {
		*verdict = take_token(m, a, diag);
		return true;
	}
	m->token_is_new = false;
	if (a->status == 200 || a->status == 404)
		return false;
	*verdict = HD_MORE;
	if (a->status == 401)
		m->token[0] = '\0';
	if (a->status != 401 || was_new)
		*verdict = hd_notice_strange(a, diag);
	return true;
}
