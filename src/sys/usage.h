/* usage.h -- what the calling thread got of a processor, and how long it waited for one while it could run.
 *
 * Linux counts both for each thread (/proc/thread-self/schedstat). A thread that waits for others, sleeps or
 * is stopped waits for no processor; one whose group has used up its quota does.
 *
 * 1. After the first call of a thread a read is one system call and allocates nothing.
 * 2. Where the system does not count (no CONFIG_SCHED_INFO, no /proc) every read fails.
 *
 * Ownership: open/close. Threads: one at a time; another one may go on with it. */
#ifndef HD_SYS_USAGE_H
#define HD_SYS_USAGE_H

#include <stdbool.h>
#include <stdint.h>

struct hd_usage { int fd, tid; };
#define HD_USAGE_CLOSED ((struct hd_usage){ -1, 0 })

/* Since the thread began. False: not known. */
bool hd_usage_read(struct hd_usage *usage, uint64_t *ran_ns, uint64_t *waited_ns);
void hd_usage_close(struct hd_usage *usage);

#endif
