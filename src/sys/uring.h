/* uring.h -- reads of files, many in flight from one thread: io_uring, by liburing where it is built in.
 *
 * 1. HD_E_REFUSED of open: this build, this kernel or what it runs under has none (ENOSYS, EPERM, EACCES, too
 *    little memory that may be locked). Nothing is lost: threads read the same (data/blob.h).
 * 2. A ring is one thread's at a time, and has as many reads in flight as it was opened for. No thread of
 *    the kernel polls it.
 * 3. What a read gives is what pread gives: bytes, fewer at the end of a file, or an errno. Reads that EINTR
 *    or EAGAIN ended are begun again here.
 * 4. Memory of a read is the kernel's until it was taken: drain before it is given away.
 *
 * Ownership: open/close, which drains. */
#ifndef HD_SYS_URING_H
#define HD_SYS_URING_H

#include "sys/direct.h"

enum { HD_URING_DEPTH = 256 };

struct hd_uring;
struct hd_uring_read { const struct hd_direct *file; void *into; uint32_t len; int64_t offset; };

HD_MUST_USE enum hd_err hd_uring_open(struct hd_uring **ring, uint32_t depth, struct hd_diag *diag);
void hd_uring_close(struct hd_uring *ring);      /* takes NULL */
/* `slot` below the depth, with no read in flight: it has that one now. */
void hd_uring_begin(struct hd_uring *ring, uint32_t slot, const struct hd_uring_read *read);
/* Until one has ended. HD_E_IO: the ring itself fails. */
HD_MUST_USE enum hd_err hd_uring_wait(struct hd_uring *ring, struct hd_diag *diag);
/* One that has ended; *got: bytes, or below 0: the errno, negated. false: none has. */
bool hd_uring_take(struct hd_uring *ring, uint32_t *slot, int64_t *got);
void hd_uring_drain(struct hd_uring *ring);

#endif
