/* Preemption of an instance of GCE: instance/preempted turns from FALSE to TRUE. ACPI tells the machine to go
 * at once, and it is off 30 s later, best effort. */
#include "notice/gce_wait.h"

static void ask(const struct hd_notice_memory *m, int64_t now_ns, struct hd_notice_ask *out)
{
	(void)now_ns;
	hd_gce_ask(m, "preempted", out);
}

static enum hd_notice_verdict answer(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	struct hd_notice_seen *seen, struct hd_diag *diag)
{
	struct hd_http_span value = hd_gce_value(m, a, diag);

	if (!value.at)
		return HD_FAILED;
	if (hd_http_is(value, "FALSE"))
		return HD_KNOWN;
	if (!hd_http_is(value, "TRUE")) {
		m->etag[0] = '\0';
		(void)!hd_fail(diag, HD_E_PROTOCOL, "it says neither TRUE nor FALSE");
		return HD_FAILED;
	}
	*seen = (struct hd_notice_seen){ .kind = HD_NOTICE_PREEMPT, .end = HD_END_USUAL };
	hd_notice_put(seen->text, sizeof seen->text, "preempted", 9);
	return HD_KNOWN;
}

const struct hd_notice_source hd_notice_of_gce = {
	.name = "gce", .cloud = "gce", .about = "preemption of a GCE instance", .way = HD_NOTICE_BY_HTTP,
	.base = "http://169.254.169.254", .every_ns = HD_NOTICE_S, .lead_ns = 30 * HD_NOTICE_S, .ask = ask,
	.answer = answer,
};
