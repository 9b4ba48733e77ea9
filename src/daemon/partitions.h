/* partitions.h -- partitions of a scheduler: which devices jobs of that name are given, and on what limits.
 *
 * `partitions.yaml` in the scheduler's folder; without it all jobs share all devices. The daemon reads it
 * (daemon_partitions.c), and again when it changes; the machine obeys it (scheduler/dispatch.h, rule 17).
 *
 *	partitions:
 *	  day:
 *	    devices: [fast, slow:2, slow-3]  # all of a type, its first two, one by name
 *	    default: true                    # of jobs that name none; a lone partition is it anyway
 *	    priority: 10                     # of devices in several the higher takes first (1)
 *	    preempt: [night]                 # whose jobs leave devices that it takes
 *	    time: 4h                         # the longest a job runs, also one that says nothing
 *	    job_devices: 2                   # of one job, at once
 *	    most_devices: 6                  # of all its jobs together; most_running: jobs
 *	    user_devices: 4                  # of one user's; user_running: jobs with devices
 *	    accounts: [vision]               # whose jobs it takes: any of these; groups, users: likewise
 *	  night: {devices: [fast, slow]}
 *
 * 1. They stand in the order in which they take devices: by priority, then as in the file. One preempts
 *    partitions of lower priority alone.
 * 2. A device may be in several, or in none: then no job is given it.
 * 3. Limits hold for all its jobs; whose it takes, for all but the scheduler's owner.
 * 4. Devices that a batch system lends come in any order: there a partition has all of a type, or none.
 * 5. A file that is not understood completely is HD_E_INPUT with its place; nothing of it is used.
 *
 * Pure. Ownership: all lies in the arena of the read, and holds as long as it does. */
#ifndef HD_DAEMON_PARTITIONS_H
#define HD_DAEMON_PARTITIONS_H

#include "base/arena.h"
#include "daemon/pool.h"
#include "daemon/users.h"

enum { HD_PARTITIONS_BYTES = 1 << 20, HD_PARTITION_ADMITS = 64 };
#define HD_PARTITIONS_FILE "partitions.yaml"
#define HD_PARTITIONS_NONE UINT32_MAX

/*        id             key             of what */
#define HD_PARTITION_MOSTS(X) \
	X(JOB_DEVICES,   "job_devices")   /* of one job */                    \
	X(DEVICES,       "most_devices")  /* of all its jobs together */      \
	X(RUNNING,       "most_running")  /* jobs with devices, of these */   \
	X(USER_DEVICES,  "user_devices")  /* of the jobs of one user */       \
	X(USER_RUNNING,  "user_running")

enum hd_partition_most {
#define X(id, key) HD_PARTITION_##id,
	HD_PARTITION_MOSTS(X)
#undef X
	HD_PARTITION_NMOSTS
};

struct hd_partition_row {
	struct hd_dispatch_partition is;          /* as the machine knows it */
	double priority, time_s;                  /* time_s 0: none */
	uint32_t most[HD_PARTITION_NMOSTS];       /* UINT32_MAX: any */
	/* "account vision", "group students", "user ada"; none: everybody */
	uint32_t nadmits;
	const char *admits[HD_PARTITION_ADMITS];
	const char *preempt_text;                 /* names, with commas; "": none */
};

struct hd_partitions {
	uint32_t n, standard;                     /* standard: HD_PARTITIONS_NONE: jobs have to name one */
	const struct hd_partition_row *of;
};

/* `pools` as opened. */
HD_MUST_USE enum hd_err hd_partitions_read(struct hd_partitions *partitions, const char *name,
	const char *text, size_t len, const struct hd_pools *pools, struct hd_arena *arena,
	struct hd_diag *diag);
/* HD_PARTITIONS_NONE: there is none of that name. */
uint32_t hd_partitions_find(const struct hd_partitions *partitions, const char *name);
/* Whether it has one of that type. */
bool hd_partition_has(const struct hd_partition_row *partition, const struct hd_pools *pools, uint32_t type);
/* Rule 4. HD_E_INPUT: one has a part of a type. */
HD_MUST_USE enum hd_err hd_partitions_whole(const struct hd_partitions *partitions, const char *name,
	const struct hd_pools *pools, struct hd_diag *diag);
/* Whether one with these limits (hd_users_limits) may submit to it. */
bool hd_partition_admits(const struct hd_partition_row *partition, const struct hd_users_limit *limit,
	uint32_t nlimits);
/* The limits that it sets a job of that user, for the machine: two at most, as far as they are any. */
uint32_t hd_partition_limits(const struct hd_partition_row *partition, const char *user,
	struct hd_dispatch_limit limit[2]);

#endif
