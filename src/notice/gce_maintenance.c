/* Maintenance of the host of a GCE instance: instance/maintenance-event turns from NONE to
 * TERMINATE_ON_HOST_MAINTENANCE (the instance ends after 60 s) or MIGRATE_ON_HOST_MAINTENANCE (it pauses for
 * a moment, and goes on elsewhere). */
#include "notice/gce_wait.h"

static void ask(const struct hd_notice_memory *m, int64_t now_ns, struct hd_notice_ask *out)
{
	(void)now_ns;
	hd_gce_ask(m, "maintenance-event", out);
}

static enum hd_notice_verdict answer(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	struct hd_notice_seen *seen, struct hd_diag *diag)
{
	struct hd_http_span value = hd_gce_value(m, a, diag);

	if (!value.at)
		return HD_FAILED;
	if (hd_http_is(value, "NONE"))
		return HD_KNOWN;
	bool ends = hd_http_is(value, "TERMINATE_ON_HOST_MAINTENANCE");
	if (!ends && !hd_http_is(value, "MIGRATE_ON_HOST_MAINTENANCE")) {
		m->etag[0] = '\0';
		(void)!hd_fail(diag, HD_E_PROTOCOL, "it names no maintenance event that is known");
		return HD_FAILED;
	}
	*seen = (struct hd_notice_seen){ .kind = ends ? HD_NOTICE_PREEMPT : HD_NOTICE_RISK };
	hd_notice_put(seen->text, sizeof seen->text, value.at, value.len);
	return HD_KNOWN;
}

const struct hd_notice_source hd_notice_of_gce_maintenance = {
	.name = "gce-maintenance", .cloud = "gce", .about = "host maintenance of a GCE instance",
	.way = HD_NOTICE_BY_HTTP, .base = "http://169.254.169.254", .every_ns = HD_NOTICE_S,
	.lead_ns = 60 * HD_NOTICE_S, .ask = ask, .answer = answer,
};
