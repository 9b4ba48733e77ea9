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
 * 3. metrics.ndjson gets a line for each committed step, events.ndjson one for each change of the run. The
 *    loop never waits for either file. Steps that were committed while no coordinator ran have no line; they
 *    are counted and reported. Only steps that are done again, from a checkpoint, have two (`again`).
 *    Times "t" count from the start of the run, whichever driver writes.
 * 4. Workers connect over Unix sockets in the run's folder. Other addresses are opened only on request; a
 *    worker that connects there is remote: it asks for the job and joins a run that has begun.
 * 5. The first worker that joins fixes the kernels of the job; they are stored.
 * 6. If HD_LOCAL_ALIKE local workers in a row exit with the same code before they became members, one event
 *    says so, with the last line of their log. If no other worker is left, the run ends with that exit code.
 * 7. Asked to go on as another program, it ends with HD_E_AGAIN and leaves its workers as they are: for
 *    them it is a coordinator that is gone, and the program that the process becomes is the next one.
 *    Children that a program before started are reaped.
 *
 * Threads: one; returns when the job is over. */
#ifndef HD_DRIVER_DRIVER_H
#define HD_DRIVER_DRIVER_H

#include "launch/launcher.h"
#include "protocol/coordinator.h"
#include "engine/task.h"
#include "run/ending.h"
#include "run/rundir.h"

enum { HD_DRIVER_LISTENS = 3 };
#define HD_DRIVER_ADDRESS "listen"       /* in the run's folder: HOST:PORT where other machines join */
#define HD_DRIVER_STORE "store.sqlite"   /* log of decisions (store.h) */

struct hd_redraw;

/* Callbacks of a frontend; each may be NULL. Called on the driver's thread, between turns of its loop. */
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
	/* what a second signal writes; it still does after hd_driver_run(), until another word is set */
	struct hd_ending_word *word;
	uint32_t target;                  /* workers wanted; 0: as stored, HD_E_AGAIN if nothing is stored */
	/* The first step of a run whose store is new: that of the checkpoint to resume from, else 0. With
	 * target 0: that of the newest checkpoint. */
	uint64_t step;
	/* Lease: if no request that carries "for_s" comes for so long, the run halts as preempted. 0: no
	 * lease. */
	int64_t lease_ns;
	/* command line of a local worker, ends with NULL; NULL: none is started here */
	const char *const *worker_argv;
	/* what starts workers on other machines, as many as are wanted; its places are gone when the run has
	 * ended. NULL: nothing does */
	struct hd_launcher *launcher;
	/* addresses to listen on (worker/elastic.h): first that in the run's folder; NULL: no more */
	const char *listen[HD_DRIVER_LISTENS];
	/* for remote workers: the resolved job, and the folder of its relative paths */
	const char *job_text, *job_folder;
	struct hd_hash realm;             /* as of worker/elastic.h */
	const void *key;
	size_t key_len;
	bool plaintext;
	struct hd_redraw *redraw;         /* what steps are predicted to take (redraw.h); NULL: nothing is */
	enum hd_err (*stop)(void *user);  /* HD_E_PREEMPTED, HD_E_INTERRUPT: halt at the next boundary */
	struct hd_driver_watch watch;
};

struct hd_driver_end {
	/* HD_E_AGAIN: the process is to go on as this program, with its workers as they are; "": it is not */
	char become[HD_PATH_CAP];
	uint64_t step;                    /* committed */
	bool has_digest;
	struct hd_hash digest;            /* of the last step that had one */
	uint32_t commits, epochs, term;
	uint64_t redone;                  /* virtual nodes recomputed after losses */
	/* false positives: local workers declared lost that were alive; workers.detect is too small */
	uint32_t given_up;
	uint64_t unrecorded;              /* steps without a line in metrics.ndjson */
};

/* Blocks until the run ends. HD_OK: the job is done; else the error that ended the run. HD_E_AGAIN: another
 * process drives this run. */
HD_MUST_USE enum hd_err hd_driver_run(const struct hd_driver_spec *spec, struct hd_driver_end *end,
	struct hd_diag *diag);

/* The least and the greatest number of workers that a job allows. HD_E_INVAL: least > greatest. */
HD_MUST_USE enum hd_err hd_driver_bounds(const struct hd_job *job, uint32_t *min, uint32_t *max,
	struct hd_diag *diag);
/* May the job run on so many workers? HD_E_INVAL: it may not. */
HD_MUST_USE enum hd_err hd_driver_takes(const struct hd_job *job, uint32_t nworkers, struct hd_diag *diag);

/* Writes "TRANSPORT unix:DIR/NAME", the address of a socket in the run's folder `dir` (at another path if
 * that one is too long for a socket). `transport`: "unix" to the driver, "shm" between members. */
HD_MUST_USE enum hd_err hd_driver_address(const char *transport, const char *dir, const char *name,
	char address[HD_MSG_ADDR + 1], struct hd_diag *diag);

#endif
