/* Rebalance recommendation of EC2: this spot instance is likelier than others to be interrupted soon. 404 as
 * long as there is none, then {"noticeTime":"2020-10-27T08:22:00Z"}: when it was given, not an end. */
#include <string.h>

#include "base/date.h"
#include "notice/ec2_token.h"

static void ask(const struct hd_notice_memory *m, int64_t now_ns, struct hd_notice_ask *out)
{
	hd_ec2_ask(m, now_ns, "/latest/meta-data/events/recommendations/rebalance", out);
}

static enum hd_notice_verdict answer(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	struct hd_notice_seen *seen, struct hd_diag *diag)
{
	enum hd_notice_verdict verdict = HD_KNOWN;
	const struct hd_json *object;
	struct hd_arena arena;
	int64_t given_ns;

	if (hd_ec2_answer(m, a, &verdict, diag))
		return verdict;
	if (a->status == 404)
		return HD_KNOWN;
	hd_arena_init(&arena, 4 << 20);
	bool good = hd_notice_object(&arena, a, &object, diag);
	const char *time = good ? hd_notice_member(object, "noticeTime") : "";
	if (good && hd_date_read(time, strlen(time), &given_ns)) {
		(void)!hd_fail(diag, HD_E_PROTOCOL, "its noticeTime is \"%.40s\"", time);
		good = false;
	}
	if (good) {
		*seen = (struct hd_notice_seen){ .kind = HD_NOTICE_RISK };
		hd_notice_put(seen->id, sizeof seen->id, time, strlen(time));
		hd_notice_put(seen->text, sizeof seen->text, "rebalance recommendation", 24);
	}
	hd_arena_finish(&arena);
	return good ? HD_KNOWN : HD_FAILED;
}

const struct hd_notice_source hd_notice_of_ec2_rebalance = {
	.name = "ec2-rebalance", .cloud = "ec2", .about = "rebalance recommendation of EC2",
	.way = HD_NOTICE_BY_HTTP, .base = "http://169.254.169.254", .every_ns = 5 * HD_NOTICE_S, .ask = ask,
	.answer = answer,
};
