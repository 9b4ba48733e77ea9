/* lease_renewer.h -- renews the leases of runs while their scheduler decides.
 *
 * The daemon's thread polls runs, which renews their leases (rule 8 of daemon.h), and it decides, which takes
 * as long as the policy takes. A long decision must not look like a dead scheduler, so a second thread renews
 * leases meanwhile.
 *
 * 1. It is active only between begin and end: a daemon that hangs anywhere else loses its runs as before. It
 *    sends each quarter of a lease, counted from the last renewal by it or, before hd_renewer_set(), by the
 *    daemon: many short decisions in a row count as one long one.
 * 2. It sends to the runs of the last hd_renewer_set() and ignores their answers. It touches nothing else of
 *    the daemon.
 * 3. Requests of users must not take long: begin can set a flag after a given time, which policies look for
 *    (scheduler/sched_policy.h). Each begin has its own flag.
 *
 * Ownership: create/destroy; texts are copied. Threads: the daemon's. */
#ifndef HD_DAEMON_LEASE_RENEWER_H
#define HD_DAEMON_LEASE_RENEWER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/clock.h"

struct hd_lease_renewer;

HD_MUST_USE enum hd_err hd_renewer_create(struct hd_lease_renewer **renewer, struct hd_clock *clock,
	struct hd_diag *diag);
/* takes NULL; waits for the question at hand, 1 s at most */
void hd_renewer_destroy(struct hd_lease_renewer *renewer);

/* Forgets the runs, and has leases last so long, s. */
void hd_renewer_set(struct hd_lease_renewer *renewer, double for_s);
/* its folder, and whose processes it has (HD_NO_UID: ours): no other account's socket is spoken to */
HD_MUST_USE enum hd_err hd_renewer_add(struct hd_lease_renewer *renewer, const char *run, uint32_t uid,
	struct hd_diag *diag);

/* A decision begins... After for_ns (INT64_MAX: never) the flag that is returned is set; it is the
 * renewer's, until the end. */
const atomic_bool *hd_renewer_begin(struct hd_lease_renewer *renewer, int64_t for_ns);
bool hd_renewer_end(struct hd_lease_renewer *renewer);             /* ...and ends: was the flag set? */

#endif
