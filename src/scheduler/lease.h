/* lease.h -- the right of a job to a set of devices until a time: its states, and what may follow what.
 *
 * dispatch.h gives leases out and keeps them; the store writes them down by the names below.
 *
 * 1. A job has one lease at most, and a device is in one at most.
 * 2. No state is left by silence alone but through EXPIRED: a process that should have left is killed, and a
 *    device is free when it was seen free.
 * 3. A lease whose set changes stays the same lease; its epoch rises with every set.
 *
 * A pure table; any thread. */
#ifndef HD_SCHEDULER_LEASE_H
#define HD_SCHEDULER_LEASE_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers and names are stored: never used for another state.
 *        id         number  name        what holds */
#define HD_LEASE_STATES(X)                                                                             \
	X(OFFERED,  0, "offered")   /* written down, and the job is to start; not seen running yet */  \
	X(HELD,     1, "held")      /* it runs on its devices; at a boundary extended, if the set stays the same */ \
	X(RESIZE,   2, "resize")    /* it runs; some of its devices come or go */                      \
	X(DRAIN,    3, "drain")     /* it was asked to commit and leave */                             \
	X(EXPIRED,  4, "expired")   /* it should have gone by now */                                   \
	X(KILLED,   5, "killed")    /* it was killed; its devices are free when they were seen free */ \
	X(RELEASED, 6, "released")  /* over: nothing of it runs, its devices are free */

enum hd_lease_state {
#define X(id, number, name) HD_LEASE_##id = (number),
	HD_LEASE_STATES(X)
#undef X
	HD_LEASE_NSTATES
};

/*        id       what happened                                                      */
#define HD_LEASE_EVENTS(X)                                                             \
	X(RAN)          /* the job was seen running on all devices of the set */      \
	X(CHANGED)      /* another set is wanted */                                   \
	X(LEAVE)        /* the devices are wanted back, all of them */                \
	X(LATE)         /* it has not gone in time */                                 \
	X(KILL)         /* it was killed */                                      \
	X(ENDED)        /* the run is over by itself, its workers leave */            \
	X(GONE)         /* nothing of it runs any more */

enum hd_lease_event {
#define X(id) HD_LEASE_ON_##id,
	HD_LEASE_EVENTS(X)
#undef X
	HD_LEASE_NEVENTS
};

/* The state that follows; false: that event does not happen in that state, and `next` stays. */
bool hd_lease_next(enum hd_lease_state state, enum hd_lease_event event, enum hd_lease_state *next);
const char *hd_lease_name(enum hd_lease_state state);

#endif
