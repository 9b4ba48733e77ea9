#include "notice/hand.h"

#include <stdio.h>
#include <string.h>

#include "notice/source.h"

#define KEEP_NS (60 * HD_NOTICE_S)

size_t hd_hand_print(int64_t ends_wall_ns, char text[HD_HAND_TEXT])
{
	int n = ends_wall_ns ? snprintf(text, HD_HAND_TEXT,
		"{\"notice\":\"preempt\",\"ends_unix_ms\":%lld}\n",
		(long long)(ends_wall_ns / 1000000)) : snprintf(text, HD_HAND_TEXT,
		"{\"notice\":\"withdrawn\"}\n");

	return n > 0 ? (size_t)n : 0;
}

static enum hd_notice_verdict read(const struct hd_notice_answer *a, struct hd_arena *arena,
	struct hd_notice_seen *seen, struct hd_diag *diag)
{
	const struct hd_json *object;
	int64_t ms = 0;

	if (!hd_notice_object(arena, a, &object, diag))
		return HD_FAILED;
	const char *kind = hd_notice_member(object, "notice");
	if (!strcmp(kind, "withdrawn"))
		return HD_KNOWN;
	if (strcmp(kind, "preempt") != 0) {
		(void)!hd_fail(diag, HD_E_PROTOCOL, "its notice is \"%.40s\"", kind);
		return HD_FAILED;
	}
	if (hd_json_get_i64(object, "ends_unix_ms", 0, INT64_MAX / 1000000, &ms, diag))
		return HD_FAILED;
	if (ms * 1000000 < a->wall_ns - KEEP_NS)
		return HD_KNOWN;
	*seen = (struct hd_notice_seen){ .kind = HD_NOTICE_PREEMPT, .end = HD_END_WALL,
		.end_ns = ms * 1000000 };
	hd_notice_put(seen->text, sizeof seen->text, "stop --local", 12);
	return HD_KNOWN;
}

static enum hd_notice_verdict answer(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	struct hd_notice_seen *seen, struct hd_diag *diag)
{
	struct hd_arena arena;

	(void)m;
	if (a->status == 404)
		return HD_KNOWN;
	hd_arena_init(&arena, 4 << 20);
	enum hd_notice_verdict verdict = read(a, &arena, seen, diag);
	hd_arena_finish(&arena);
	return verdict;
}

const struct hd_notice_source hd_notice_of_hand = {
	.name = "hand", .cloud = "hand", .about = "heddle stop --local", .way = HD_NOTICE_BY_FILE,
	.every_ns = HD_NOTICE_S / 4, .lead_ns = 30 * HD_NOTICE_S, .answer = answer,
};
