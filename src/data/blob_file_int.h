/* blob_file_int.h -- files as stores of ranges: what reading by threads and by io_uring share. Private to the
 * room. */
#ifndef HD_DATA_BLOB_FILE_INT_H
#define HD_DATA_BLOB_FILE_INT_H

#include "sys/clock.h"
#include "sys/direct.h"
#include "sys/lock.h"
#include "sys/memory.h"
#include "sys/thread.h"
#include "data/blob.h"

enum { HD_PREAD_THREADS = 63, HD_PREAD_SPARES = 16 };

/* Memory of one thread, or of a ring's reads: whole blocks where the file is read directly. */
struct hd_pread_room { struct hd_memory memory; };
struct hd_pread_batch;
struct hd_uring_lane;

struct hd_file_store {
	struct hd_blob store;
	struct hd_direct file, buffered;  /* `buffered` is for the one try after a failure */
	struct hd_lock lock;
	struct hd_cond work, done;
	struct hd_pread_batch *first;     /* those with requests that nothing has taken */
	struct hd_pread_room spare[HD_PREAD_SPARES];      /* of callers that have left */
	uint32_t nspares;
	struct hd_thread thread[HD_PREAD_THREADS];
	uint32_t nthreads;
	bool closed;
	bool by_uring;
	struct hd_uring_lane *lane;       /* that no call has; under the lock */
	struct hd_clock clock;
};

/* Memory of at least so many bytes. */
HD_MUST_USE enum hd_err hd_pread_room(struct hd_pread_room *room, size_t len, struct hd_diag *diag);
/* One request by pread: directly, then once past nothing (buffered); with the messages of both. */
HD_MUST_USE enum hd_err hd_pread_one(const struct hd_file_store *store, struct hd_pread_room *room,
	const struct hd_request *request, struct hd_diag *diag);

/* blob_uring.c. Whether a ring can be had here; why not into store.by_why. */
bool hd_blob_uring_probe(struct hd_file_store *store);
/* As read of hd_blob_ops. HD_E_REFUSED: no ring could be had now, and nothing was read. */
HD_MUST_USE enum hd_err hd_blob_uring_read(struct hd_file_store *store, const struct hd_request *request,
	uint32_t n, uint32_t depth, struct hd_diag *diag);
void hd_blob_uring_close(struct hd_file_store *store);

#endif
