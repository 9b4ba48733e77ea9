/* pid_lock.h -- pid file with a lock: shows whether a process is alive, and which.
 *
 * A worker of a scheduler holds the lock of its device, a coordinator that of its run. Any process can look
 * whether the holder is alive, no matter how it was started; a second holder is refused.
 *
 * 1. The system frees the lock when the process ends, however it ends. The text alone decides nothing.
 * 2. The text (job, lease, process) is written after the lock is taken; a look in between finds pid 0.
 * 3. A pid counts only with the start time of its process: a reused pid is another process.
 *
 * Threads: any. Only hd_pid_lock_take() blocks, for HD_PID_LOCK_WAIT_NS: a look holds the lock for an
 * instant. */
#ifndef HD_DRIVER_PID_LOCK_H
#define HD_DRIVER_PID_LOCK_H

#include "sys/clock.h"
#include "sys/file.h"

#define HD_PID_LOCK_WAIT_NS INT64_C(500000000)

/* pid 0: not written yet */
struct hd_pid_lock_holder { uint64_t job; uint32_t lease; int pid; };

/* Held until `lock` is closed or the process ends. HD_E_AGAIN: another process holds it. */
HD_MUST_USE enum hd_err hd_pid_lock_take(struct hd_file *lock, struct hd_fs *fs, struct hd_clock *clock,
	const char *path, uint64_t job, uint32_t lease,
	struct hd_diag *diag);
/* HD_E_NOTFOUND: no process holds it. */
HD_MUST_USE enum hd_err hd_pid_lock_look(struct hd_fs *fs, const char *path,
	struct hd_pid_lock_holder *holder, struct hd_diag *diag);

#endif
