/* pid_lock.h -- a file that a process holds for as long as it lives, and that says who it is.
 *
 * A worker of a scheduler holds the seat of its device, a coordinator that of its run: whoever looks at a
 * seat knows whether somebody is there, whoever started it, and a second one cannot sit down.
 *
 * 1. A seat is held by a lock that the system frees with the process, whichever way that ends; nothing is
 *    decided by what the file says alone.
 * 2. What it says (job, lease, process) is written after the lock is taken; who looks in between sees
 *    nobody's number (pid 0).
 * 3. A process number counts only with the time at which that process began: another process of the same
 *    number is not it.
 *
 * Threads: any. Does not block, but for taking: HD_PID_LOCK_WAIT_NS, since who looks holds a lock for an
 * instant. */
#ifndef HD_DRIVER_PID_LOCK_H
#define HD_DRIVER_PID_LOCK_H

#include "sys/clock.h"
#include "sys/file.h"

#define HD_PID_LOCK_WAIT_NS INT64_C(500000000)

/* pid 0: it has not said it yet */
struct hd_pid_lock_holder { uint64_t job; uint32_t lease; int pid; };

/* Until `seat` is closed or the process ends. HD_E_AGAIN: somebody else holds it. */
HD_MUST_USE enum hd_err hd_pid_lock_take(struct hd_file *lock, struct hd_fs *fs, struct hd_clock *clock,
	const char *path, uint64_t job, uint32_t lease,
	struct hd_diag *diag);
/* HD_E_NOTFOUND: nobody is there. */
HD_MUST_USE enum hd_err hd_pid_lock_look(struct hd_fs *fs, const char *path,
	struct hd_pid_lock_holder *holder, struct hd_diag *diag);

#endif
