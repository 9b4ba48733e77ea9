/* successor.h -- another coordinator for a run whose own is gone, started by a member.
 *
 * 1. At most one at a time: while the last one still tries, no other is started.
 * 2. HD_E_NOTFOUND where the run's folder is gone: nothing that is computed could be kept. Before the run's
 *    store exists nothing is started: its first coordinator has started no worker yet.
 * 3. One that ends because another process drives the run (HD_E_AGAIN) has not failed. When
 *    HD_SUCCESSOR_TRIES in a row fail with the same exit code, that is reported, once.
 * 4. It outlives the process that starts it; what it says goes into log/coordinator.log of the run's folder.
 *
 * Ownership: all that the struct names is borrowed. Threads: one. */
#ifndef HD_DRIVER_SUCCESSOR_H
#define HD_DRIVER_SUCCESSOR_H

#include "sys/file.h"
#include "sys/process.h"

enum { HD_SUCCESSOR_TRIES = 5 };
#define HD_SUCCESSOR_LOG "log/coordinator.log"

struct hd_successor {
	struct hd_host *host;
	struct hd_fs *fs;
	const char *dir;                  /* of the run */
	const char *const *argv;          /* ends with NULL */
	void (*failing)(void *user, uint32_t n, int code);
	void *user;
	/* zeroed */
	struct hd_proc proc;              /* the last one; reaped at the next */
	uint32_t nfailed;                 /* in a row with the same exit code */
	int failed_code;
};

/* HD_OK: one was started, or need not be. */
HD_MUST_USE enum hd_err hd_successor_start(struct hd_successor *successor, struct hd_diag *diag);

#endif
