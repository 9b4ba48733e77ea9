/* batches.h -- batch jobs that carry out leases: one for each lease, of as many nodes as it has devices, with
 * a worker of its run on each. For sites where no pilot (pilots.h) may hold a node.
 *
 * A device of a pool is a node that may be had; which one it is, is the batch system's. A lease is given
 * first (the devices of a pool are there), and then asked for: it may wait in the batch system's queue.
 *
 * 1. A batch job is named by folder, job and lease: one that an earlier process of this folder asked for is
 *    found before any is asked for. What was found is never asked for twice.
 * 2. It counts as there from the moment that it is wanted until the batch system says that it is over; until
 *    the batch system has answered, it counts as there.
 * 3. One that ended is not replaced before it is wanted again. After failures in a row that waits, longer
 *    each time (launch/slurm_jobs.h).
 * 4. One that is no longer wanted is cancelled if it waits in the queue. If it runs, its workers leave with
 *    their run, and it is ended HD_BATCHES_LEAVE_NS after it ceased to be wanted.
 * 5. A refusal is said once and tried again HD_BATCHES_REFUSED_NS later; the job's `why` has it meanwhile.
 *
 * Ownership: open/close, which ends none of them; the spec is borrowed. Threads: one; nothing blocks but the
 * disk. */
#ifndef HD_DAEMON_BATCHES_H
#define HD_DAEMON_BATCHES_H

#include "launch/launcher.h"
#include "daemon/pool.h"

enum { HD_BATCHES_PASSED = 8, HD_BATCHES_RUN = 512 };
#define HD_BATCHES_LEAVE_NS   INT64_C(5000000000)
#define HD_BATCHES_REFUSED_NS INT64_C(60000000000)

struct hd_batches_spec {
	struct hd_host *host;
	struct hd_fs *fs;
	struct hd_clock *clock;
	const struct hd_launcher_ops *ops;
	const struct hd_pools *pools;     /* open */
	/* [pools->ntypes]: each asks for nodes of its type */
	const struct hd_launcher_settings *settings;
	const char *mark;                 /* of the folder: the begin of each name */
	const char *program;              /* of the worker; absolute */
	const char *passed[HD_BATCHES_PASSED];    /* of its command line; ends with NULL */
	const char *own;                  /* the host, in numbers, by which nodes call this machine */
};

/* limit_s: of running time that is left, said to the batch system; 0: none. until: the step that the workers
 * stop at; 0: the job says. */
struct hd_batches_ask {
	uint64_t job, until;
	uint32_t lease, type, n;
	double limit_s;
	const char *name, *run;           /* of the job, a name; the run's folder */
};

/* there: rule 2. runs: on its nodes. code: of the last that ended, -1: none did. */
struct hd_batch_seen { uint64_t job; uint32_t lease, type, n; bool there, runs; int code; };

struct hd_batches;
typedef void hd_batches_say(void *user, const char *kind, uint64_t job, const char *text);

HD_MUST_USE enum hd_err hd_batches_open(struct hd_batches **batches, const struct hd_batches_spec *spec,
	hd_batches_say *say, void *user, struct hd_diag *diag);
void hd_batches_close(struct hd_batches *batches);                /* takes NULL */

/* It is known from now on, and looked for; not wanted yet. One of another lease of the job has to be gone. */
HD_MUST_USE enum hd_err hd_batches_find(struct hd_batches *batches, const struct hd_batches_ask *ask,
	struct hd_diag *diag);
/* The same, and it is wanted. */
HD_MUST_USE enum hd_err hd_batches_want(struct hd_batches *batches, const struct hd_batches_ask *ask,
	struct hd_diag *diag);
void hd_batches_leave(struct hd_batches *batches, uint64_t job);
void hd_batches_kill(struct hd_batches *batches, uint64_t job);
/* Its state is about to change, or did: the batch system is asked soon. */
void hd_batches_changed(struct hd_batches *batches, uint64_t job);
/* Of no use any more; one that is still there stays known. */
void hd_batches_forget(struct hd_batches *batches, uint64_t job);

void hd_batches_look(struct hd_batches *batches);
uint32_t hd_batches_n(const struct hd_batches *batches);
struct hd_batch_seen hd_batches_at(const struct hd_batches *batches, uint32_t i);
/* false: none */
bool hd_batches_of(const struct hd_batches *batches, uint64_t job, struct hd_batch_seen *seen);
/* "Slurm job 77_0 on k[1-2]", "Slurm job 77_0 waits: Priority (1)", or the last refusal; "" none. */
void hd_batches_text(const struct hd_batches *batches, uint64_t job, char *text, size_t cap);
/* Nodes of a type. */
void hd_batches_count(const struct hd_batches *batches, uint32_t type, struct hd_launcher_count *count,
	uint32_t *want);

#endif
