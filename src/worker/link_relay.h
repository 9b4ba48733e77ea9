/* link_relay.h -- the thread of a link that passes bytes on (private to link.c). */
#ifndef HD_WORKER_LINK_RELAY_H
#define HD_WORKER_LINK_RELAY_H

#include "worker/link.h"

/* the door, at a port of 127.0.0.1 that the system chooses */
HD_MUST_USE enum hd_err link_relay_listen(struct hd_link *link, struct hd_diag *diag);
/* A thread's whole life: one connection after the other, until link->ends. */
void link_relay_run(void *link);

#endif
