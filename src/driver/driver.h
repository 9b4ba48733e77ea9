/* driver.h -- the coordinator of one run as a process: the machine of protocol/coordinator.h with a clock,
 * links, a disk, and workers of its own.
 *
 * `heddle run --workers N` calls it in its own process; when that one is gone, a member starts `heddle serve
 * --job RUN`, which calls it again for the same folder. Nothing of the state passes here: steps, sums and
 * checkpoints are the members'.
 *
 * 0. How many workers are wanted is in the store before one is started: whoever finds the folder without a
 *    coordinator can go on with it, also when nobody had joined yet.
 * 1. Who holds the store conducts (store.h). A second conductor ends at once with HD_E_AGAIN and changes
 *    nothing.
 * 2. What is decided is in the store before a message of it leaves.
 * 3. metrics.ndjson has a line for each committed step, events.ndjson one for each change; both are lost
 *    rather than awaited. Steps whose records were lost while nobody coordinated are counted and told. "t"
 *    counts from the run's beginning, whoever conducts.
 * 4. Workers listen and are listened to on Unix sockets of the run's folder; on other addresses only if they
 *    are asked for. Who comes by such an address is remote: it asks which job this is, and joins a run that
 *    has begun.
 * 5. The kernels of the job are those of the first worker that joined; they are in the store.
 *
 * 6. Of workers of its own that end with the same error before they took part, HD_LOCAL_ALIKE in a row, an
 *    event has what the last one said; if nobody else is there, the run ends with their exit code.
 *
 * Threads: one; returns when the job is over. */
#ifndef HD_DRIVER_DRIVER_H
#define HD_DRIVER_DRIVER_H

#include "protocol/coordinator.h"
#include "engine/task.h"
#include "run/rundir.h"

enum { HD_DRIVER_LISTENS = 3 };
#define HD_DRIVER_ADDRESS "listen"       /* in the run's folder: HOST:PORT where other machines join */
#define HD_DRIVER_STORE "store.sqlite"   /* what must not be forgotten (store.h) */

/* What a front end hears; slots may be NULL. Called between turns of the loop. */
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
	/* it halts as preempted when no question says "for_s" for so long; 0: nobody needs to ask */
	int64_t lease_ns;
	/* of a worker on this machine, ends with NULL; NULL: none is started here */
	const char *const *worker_argv;
	/* addresses (worker/elastic.h), the first is the folder's own; NULL: no more */
	const char *listen[HD_DRIVER_LISTENS];
	/* for those who ask: the resolved job, and where its relative paths begin */
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
	/* workers of this machine that were given up for lost and lived: workers.detect is too small for
	 * it */
	uint32_t given_up;
	uint64_t unrecorded;              /* steps without a line in metrics.ndjson */
};

/* HD_OK: the job is done. Else how it ended. HD_E_AGAIN: somebody else conducts this run. */
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
