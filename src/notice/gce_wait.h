/* gce_wait.h -- a value of GCE's metadata service, waited for, shared by the sources of that cloud.
 *
 * The first request asks for the value as it is; the next ones wait for a change of what that answer's ETag
 * names, at most WAIT_S. An answer without `Metadata-Flavor: Google` is not the service's. memory: etag. */
#ifndef HD_NOTICE_GCE_WAIT_H
#define HD_NOTICE_GCE_WAIT_H

#include "notice/source.h"

/* `key`: "preempted" */
void hd_gce_ask(const struct hd_notice_memory *m, const char *key, struct hd_notice_ask *ask);
/* The value, without blanks around it; at NULL: the answer is not understood, diag says why. */
struct hd_http_span hd_gce_value(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	struct hd_diag *diag);

#endif
