/* lease_renewer.h -- leases of runs while their scheduler decides.
 *
 * The daemon has one thread: it asks runs how far they are, which gives each its lease for another while
 * (daemon.h, 8), and it decides, which takes as long as the policy takes. A decision on many jobs must not
 * look like a scheduler that died, so a second thread asks meanwhile.
 *
 * 1. It speaks only between begin and end, and then each quarter of a lease: a daemon that hangs anywhere
 *    else is given up by its runs as before. The quarter counts from when the runs were asked, by it or,
 *    before hd_renewer_set(), by the daemon: many short decisions one after the other are as one that is
 *    long.
 * 2. It asks the runs of the last hd_renewer_set(); what they answer is not used. It touches nothing else of
 *    the daemon.
 *
 * 3. What a user waits for may not take long: begin can be told after how long a flag is to be set, which
 *    policies look for (scheduler/sched_policy.h). Each begin has a flag of its own.
 *
 * Ownership: create/destroy; texts are copied. Threads: the daemon's. */
#ifndef HD_DAEMON_LEASE_RENEWER_H
#define HD_DAEMON_LEASE_RENEWER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "sys/clock.h"

struct hd_lease_renewer;

HD_MUST_USE enum hd_err hd_renewer_create(struct hd_lease_renewer **renewer, struct hd_clock *clock,
	struct hd_diag *diag);
/* takes NULL; waits for the question at hand, 1 s at most */
void hd_renewer_destroy(struct hd_lease_renewer *renewer);

/* Forgets the runs, and has leases last so long, s. */
void hd_renewer_set(struct hd_lease_renewer *renewer, double for_s);
/* its folder */
HD_MUST_USE enum hd_err hd_renewer_add(struct hd_lease_renewer *renewer, const char *run,
	struct hd_diag *diag);

/* A decision begins... After for_ns (INT64_MAX: never) the flag that is returned is set; it is the
 * renewer's, until the end. */
const atomic_bool *hd_renewer_begin(struct hd_lease_renewer *renewer, int64_t for_ns);
bool hd_renewer_end(struct hd_lease_renewer *renewer);             /* ...and ends: was the flag set? */

#endif
