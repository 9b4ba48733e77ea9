/* store.h -- write-ahead log of a coordinator: a record is on disk before the coordinator acts on it.
 *
 * One SQLite file in the run's folder. A record is a kind and bytes. For kinds that hold a *value* (epoch and
 * view, target, open decision) the newest record replaces all before it, so a restarted coordinator reads the
 * newest of each kind it knows.
 *
 * 1. hd_store_put() returns after the record is on the disk (WAL, synchronous = FULL).
 * 2. One process at a time: the file is locked while it is open, and the system frees the lock when the
 *    process dies, whichever way. A second opener waits as db.h says and gets HD_E_AGAIN. That lock is the
 *    coordinator's role; no lease and no timer decides it.
 * 3. Each open raises the *term*, a number that rises with every coordinator of the run.
 * 4. Membership, plan and decision records only: never one a step.
 * 5. A file that is not ours, or damaged, is HD_E_INTEGRITY and stays as it is.
 *
 * Ownership: open/close. Threads: one. May block for an fsync. */
#ifndef HD_DRIVER_STORE_H
#define HD_DRIVER_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hd_store;

enum { HD_STORE_RECORD_BYTES = 1 << 20, HD_STORE_KINDS = 64 };

HD_MUST_USE enum hd_err hd_store_open(struct hd_store **store, const char *path, struct hd_diag *diag);
void hd_store_close(struct hd_store *store);                  /* takes NULL */
uint64_t hd_store_term(const struct hd_store *store);
/* kind < HD_STORE_KINDS, len <= HD_STORE_RECORD_BYTES. */
HD_MUST_USE enum hd_err hd_store_put(struct hd_store *store, uint32_t kind, const void *bytes, size_t len,
	struct hd_diag *diag);
/* The newest of its kind, into bytes[0..cap). HD_E_NOTFOUND: none; HD_E_NOSPACE: longer than cap. */
HD_MUST_USE enum hd_err hd_store_get(struct hd_store *store, uint32_t kind, void *bytes, size_t cap,
	size_t *len, struct hd_diag *diag);
/* Records from the oldest on; stops at the first that `each` refuses. */
HD_MUST_USE enum hd_err hd_store_replay(struct hd_store *store, void *user,
	enum hd_err (*each)(void *user, uint64_t number, uint32_t kind, const void *bytes, size_t len,
	struct hd_diag *diag), struct hd_diag *diag);

#endif
