/* driver.h -- the coordinator of one run as a process: the pure machine of protocol/coordinator.h with a
 * clock, sockets, a store on disk and local workers.
 *
 * `heddle run --workers N` calls it in its own process. If that process dies, a member starts `heddle serve
 * --job RUN`, which calls it again for the same folder. No training state passes through it: parameters, sums
 * and checkpoints belong to the members.
 *
 * 1. One driver per run: it holds the lock of the store (store.h). A second one ends at once with HD_E_AGAIN
 *    and changes nothing.
 * 2. Write-ahead: a decision is in the store before any message about it leaves. The number of wanted workers
 *    is stored before the first one starts, so that any later driver can go on with the folder.
 * 3. metrics.ndjson gets a line for each committed step, events.ndjson one for each change. The loop never
 *    waits for either. Steps without a record (no coordinator was there) are counted and reported. "t" counts
 *    from the start of the run, whichever driver writes.
 * 4. Workers connect over Unix sockets in the run's folder. Other addresses are opened only on request; a
 *    worker that connects there is remote: it asks for the job and joins a run that has begun.
 * 5. The first worker that joins fixes the kernels of the job; they are stored.
 * 6. HD_LOCAL_ALIKE local workers in a row that fail with the same code before they took part make one event
 *    with the last line of the log. With no other worker left, the run ends with their exit code.
 *
 * Threads: one; returns when the job is over. */
#ifndef HD_DRIVER_DRIVER_H
#define HD_DRIVER_DRIVER_H

#include "protocol/coordinator.h"
#include "engine/task.h"
#include "run/rundir.h"

enum { HD_DRIVER_LISTENS = 3 };
#define HD_DRIVER_ADDRESS "listen"       /* in the run's folder: HOST:PORT where other machines join */
#define HD_DRIVER_STORE "store.sqlite"   /* log of decisions (store.h) */

/* Callbacks of a frontend; slots may be NULL. Called between turns of the loop. */
struct hd_driver_watch {
	void *user;
	void (*step)(void *user, const struct hd_step_news *news, uint64_t step, const struct hd_view *view);
	void (*note)(void *user, const char *kind, uint32_t worker, const char *text);
};

struct hd_driver_spec {
	const struct hd_task *task;       /* borrowed, as all of these */
	struct hd_fs *fs;
	struct hd_clock *clock;
	struct hd_rundir *dir;            /* held */
	uint32_t target;                  /* workers wanted; 0: as stored, HD_E_AGAIN if nothing is */
	/* that a new store begins with: of the checkpoint to resume from, or 0; without target: of the
	 * newest */
	uint64_t step;
	/* Lease: without a request that carries "for_s" for so long the run halts as preempted; 0: no lease.
	 * */
	int64_t lease_ns;
	/* of a worker on this machine, ends with NULL; NULL: none is started here */
	const char *const *worker_argv;
	/* addresses (worker/elastic.h), the first is the folder's own; NULL: no more */
	const char *listen[HD_DRIVER_LISTENS];
	/* for remote workers: the resolved job, and the folder of its relative paths */
	const char *job_text, *job_folder;
	struct hd_hash realm;             /* as of worker/elastic.h */
	const void *key;
	size_t key_len;
	bool plaintext;
	enum hd_err (*stop)(void *user);  /* HD_E_PREEMPTED, HD_E_INTERRUPT: halt at the next boundary */
	struct hd_driver_watch watch;
};

struct hd_driver_end {
	uint64_t step;                    /* committed */
	bool has_digest;
	struct hd_hash digest;            /* of the last step that had one */
	uint32_t commits, epochs, term;
	uint64_t redone;                  /* virtual nodes computed again */
	/* false positives: local workers declared lost that were alive; workers.detect is too small */
	uint32_t given_up;
	uint64_t unrecorded;              /* steps without a line in metrics.ndjson */
};

/* HD_OK: the job is done. Else how it ended. HD_E_AGAIN: another process drives this run. */
HD_MUST_USE enum hd_err hd_driver_run(const struct hd_driver_spec *spec, struct hd_driver_end *end,
	struct hd_diag *diag);

/* From how many workers to how many a job takes. HD_E_INVAL: from more than to. */
HD_MUST_USE enum hd_err hd_driver_bounds(const struct hd_job *job, uint32_t *min, uint32_t *max,
	struct hd_diag *diag);
/* HD_E_INVAL: it does not take so many. */
HD_MUST_USE enum hd_err hd_driver_takes(const struct hd_job *job, uint32_t nworkers, struct hd_diag *diag);

/* "unix unix:DIR/members.sock" or, where that is too long, another place: where the run's workers call;
 * "shm" to one another. */
HD_MUST_USE enum hd_err hd_driver_address(const char *transport, const char *dir, const char *name,
	char address[HD_MSG_ADDR + 1], struct hd_diag *diag);

#endif
