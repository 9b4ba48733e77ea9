/* Interruption of a spot instance of EC2: spot/instance-action, 404 as long as there is none, then
 * {"action":"terminate","time":"2017-09-18T08:22:00Z"}. Two minutes ahead, best effort; a hibernation begins
 * at once. The service may be asked each 5 s. */
#include <string.h>

#include "base/date.h"
#include "notice/ec2_token.h"

static void ask(const struct hd_notice_memory *m, int64_t now_ns, struct hd_notice_ask *out)
{
	hd_ec2_ask(m, now_ns, "/latest/meta-data/spot/instance-action", out);
}

static bool is_action(const char *action)
{
	static const char *const actions[] = { "terminate", "stop", "hibernate" };

	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
		if (!strcmp(actions[i], action))
			return true;
	return false;
}

static enum hd_notice_verdict read(const struct hd_notice_answer *a, struct hd_arena *arena,
	struct hd_notice_seen *seen, struct hd_diag *diag)
{
	const struct hd_json *object;

	if (!hd_notice_object(arena, a, &object, diag))
		return HD_FAILED;
	const char *action = hd_notice_member(object, "action"), *time = hd_notice_member(object, "time");
	if (!is_action(action)) {
		(void)!hd_fail(diag, HD_E_PROTOCOL, "its action is \"%.40s\"", action);
		return HD_FAILED;
	}
	*seen = (struct hd_notice_seen){ .kind = HD_NOTICE_PREEMPT, .end = HD_END_USUAL };
	hd_notice_put(seen->text, sizeof seen->text, action, strlen(action));
	/* a date that cannot be read does not make the notice untrue */
	if (hd_date_read(time, strlen(time), &seen->end_ns) == HD_OK)
		seen->end = HD_END_WALL;
	return HD_KNOWN;
}

static enum hd_notice_verdict answer(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	struct hd_notice_seen *seen, struct hd_diag *diag)
{
	enum hd_notice_verdict verdict = HD_KNOWN;
	struct hd_arena arena;

	if (hd_ec2_answer(m, a, &verdict, diag))
		return verdict;
	if (a->status == 404)
		return HD_KNOWN;
	hd_arena_init(&arena, 4 << 20);
	verdict = read(a, &arena, seen, diag);
	hd_arena_finish(&arena);
	return verdict;
}

const struct hd_notice_source hd_notice_of_ec2 = {
	.name = "ec2", .cloud = "ec2", .about = "interruption of an EC2 spot instance",
	.way = HD_NOTICE_BY_HTTP,
	.base = "http://169.254.169.254", .every_ns = 5 * HD_NOTICE_S, .lead_ns = 120 * HD_NOTICE_S,
	.most_ns = 180 * HD_NOTICE_S, .ask = ask, .answer = answer,
};
