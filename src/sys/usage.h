/* usage.h -- what the calling thread got of a processor, and how long it waited for one while it could run.
 *
 * Linux counts both for each thread (/proc/thread-self/schedstat). A thread that waits for others, sleeps or
 * is stopped waits for no processor; one whose group has used up its quota does.
 *
 * 1. After the first call of a thread a read is one system call and allocates nothing.
 * 2. Where the system does not count (no CONFIG_SCHED_INFO, no /proc) every read fails.
 *
 * Which of that was for a quota say the control groups (cpu.stat): they count how long they held back what
 * is in them, each processor on its own.
 *
 * 3. The groups are looked for at each read (a handful of system calls): a process can be moved to others.
 * 4. hd_throttle_grow() makes of what they say a count that neither goes back nor outruns the clock,
 *    whichever group the process is in: a group that was there before has a past of its own.
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

/* What quotas held the control groups of this process back so far, in sum, ns. False: no group has one. */
bool hd_throttle_read(uint64_t *held_ns);

/* first: of what the groups said then. Ticks and counts in ns. */
struct hd_throttle { uint64_t said, at, owed, ns; bool first; };
/* The groups say so much at `now`: held->ns grows by it, by no more than time went. */
void hd_throttle_grow(struct hd_throttle *held, uint64_t said, uint64_t now);

#endif
