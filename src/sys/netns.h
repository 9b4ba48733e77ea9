/* netns.h -- a thread in a network of its own, for measurements over links of a known rate.
 *
 * The interfaces, addresses and routes of the calling thread, and of what it starts from then on, are its
 * own: none but a loopback that is down. They are gone with the last thread and socket in them, however these
 * end.
 *
 * Threads: the calling one; others of the process stay where they are. */
#ifndef HD_SYS_NETNS_H
#define HD_SYS_NETNS_H

#include "base/err.h"

/* HD_E_REFUSED: this user may not, or the kernel cannot. */
HD_MUST_USE enum hd_err hd_netns_own(struct hd_diag *diag);
/* By which others name the network of the calling thread, as `ip link set dev X netns ID`. */
int hd_netns_id(void);

#endif
