/* pool.h -- the devices that a scheduler hands out on this machine: pools of declared types.
 *
 * A device is a place for one worker process with one core. The speed of a type is declared, and enforced: a
 * type of speed 1 has whole cores, a slower one that part of a core. If any speed is above 1, the fastest
 * type has whole cores, and the others the part of a core that their speed is of its.
 *
 * 1. "TYPE:N[:SPEED[:PRICE]]": N devices, speed 1 unless said, price in US dollars an hour. Types differ;
 *    numbers within a type go from 0.
 * 2. Means, the first that this machine allows: nothing (all have whole cores), CPU quota by a control group
 *    of version 2, of version 1 (both need the right to make groups), else the worker's own --slow, which
 *    waits after computing. `means` names it. Nothing is set before hd_pools_begin().
 * 3. A process that was put into a group stays there.
 *
 * Ownership: plain values; `fs` borrowed. Threads: one. */
#ifndef HD_DAEMON_POOL_H
#define HD_DAEMON_POOL_H

#include "sys/file.h"
#include "scheduler/dispatch.h"

enum { HD_POOL_DEVICES = 256,             /* worker processes on one machine */
       HD_POOL_PERIOD_US = 20000 };       /* of a quota: short against a step that is worth scheduling */

/*        id        text */
#define HD_POOL_MEANS(X) \
	X(EQUAL,   "none: all types have whole cores") \
	X(LENT,    "nodes: a batch system lends them (--launch)") \
	X(CGROUP2, "CPU quota (control group, version 2)") \
	X(CGROUP1, "CPU quota (control group, version 1)") \
	X(SLOW,    "the workers wait after computing (--slow): no control group for the CPU can be made here")

enum hd_pool_means {
#define X(id, text) HD_POOL_##id,
	HD_POOL_MEANS(X)
#undef X
};

struct hd_pools {
	uint32_t ntypes, ndevices, first_device[HD_DISPATCH_TYPES + 1];
	struct hd_dispatch_type type[HD_DISPATCH_TYPES];          /* sorted by name; names lie in `name` */
	char name[HD_DISPATCH_TYPES][64];
	enum hd_pool_means means;
	struct hd_fs *fs;
	char group[512];                  /* folder of our groups */
	double whole;                     /* the speed of a whole core */
};

/* One more pool, before open. HD_E_INVAL with what would be right. */
HD_MUST_USE enum hd_err hd_pools_add(struct hd_pools *pools, const char *text, struct hd_diag *diag);
/* Numbers their devices. The pools do not move from now on. */
HD_MUST_USE enum hd_err hd_pools_open(struct hd_pools *pools, struct hd_fs *fs, struct hd_diag *diag);
/* Finds the means and sets the quotas; `tag` names our groups: one process of a tag at a time. */
void hd_pools_begin(struct hd_pools *pools, const char *tag);
void hd_pools_close(struct hd_pools *pools);                      /* removes groups that are empty */
const char *hd_pool_means_text(enum hd_pool_means means);

uint32_t hd_pools_type(const struct hd_pools *pools, uint32_t device);
void hd_pools_device(const struct hd_pools *pools, uint32_t device, char name[96]);           /* "fast-0" */
double hd_pools_slow(const struct hd_pools *pools, uint32_t device);      /* for --slow; 1: not that way */
/* Gives the process its part of a core. */
HD_MUST_USE enum hd_err hd_pools_limit(const struct hd_pools *pools, uint32_t device, int pid,
	struct hd_diag *diag);

#endif
