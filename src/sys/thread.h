/* thread.h -- threads, the cores they may use, a barrier, and the arithmetic they start with.
 *
 * engine starts its device threads here; device/cpu shares tiles out between barriers.
 *
 * 1. A thread started here has the arithmetic of invariant 4, a name, and every signal
 *    blocked but those of its own faults (SIGBUS, SIGSEGV, ...): signals go to the main thread.
 * 2. The number of usable cores is the affinity mask cut by the cgroup's CPU quota
 *    (v1 and v2, rounded up), never the number of cores in the machine.
 * 3. A barrier of n threads opens when all n have arrived; everything
 *    written before it by any is seen after it by all. It is used again at once.
 * 4. Rounding is to nearest, subnormals are kept (FTZ = DAZ = 0): libraries change this
 *    behind our back, so it is set per thread and asserted after foreign calls.
 *
 * Ownership: a thread started is joined, once. Threads: any. */
#ifndef HD_SYS_THREAD_H
#define HD_SYS_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_CORES_CAP = 1024 };             /* what the kernel's default mask holds */

struct hd_thread {
	unsigned long handle;
	void (*run)(void *user);          /* borrowed until joined, as is user */
	void *user;
	int core;                         /* -1: not pinned */
	bool started;
	char name[16];
};

/* `core` < 0: wherever the system likes. `thread` must not move until joined. */
HD_MUST_USE enum hd_err hd_thread_start(struct hd_thread *thread, const char *name, int core,
	void (*run)(void *user), void *user,
					struct hd_diag *diag);
/* Likewise, wherever the system likes, with a stack of HD_THREAD_SMALL: for a thread beside those that work,
 * which calls little. A stack counts where the address space is limited. */
enum { HD_THREAD_SMALL = 256 << 10 };
HD_MUST_USE enum hd_err hd_thread_start_small(struct hd_thread *thread, const char *name,
	void (*run)(void *user), void *user, struct hd_diag *diag);
void hd_thread_join(struct hd_thread *thread);            /* takes zeroed and joined ones */
HD_MUST_USE enum hd_err hd_thread_pin(int core, struct hd_diag *diag);      /* the calling thread */

/* Of a processor's time, what the calling thread took since it began. */
int64_t hd_thread_cpu_ns(void);

struct hd_cores {
	unsigned n;                       /* threads worth starting: >= 1 */
	unsigned n_affinity;              /* cores in the mask */
	double quota_cores;               /* of the cgroup; 0: none */
	uint16_t core[HD_CORES_CAP];      /* the first n_affinity: their numbers, rising */
};
void hd_cores_usable(struct hd_cores *cores);
/* The quota out of the text of "cpu.max" (v2), or of "cpu.cfs_quota_us" and "cpu.cfs_period_us" (v1); 0:
 * none or not readable. */
double hd_quota_v2(const char *cpu_max);
double hd_quota_v1(const char *quota_us, const char *period_us);
unsigned hd_cores_within(unsigned n_affinity, double quota_cores);        /* invariant 2 */

/* Spins at most HD_BARRIER_SPINS looks, then sleeps in the kernel. `spin` is the caller's
 * knowledge that each of the n has a core of its own; otherwise spinning only delays those awaited. */
/* some 20-50 us: longer than the gap between two ops, shorter than a time slice */
enum { HD_BARRIER_SPINS = 4000 };
struct hd_barrier {
	_Alignas(64) _Atomic uint32_t arrived;
	_Alignas(64) _Atomic uint32_t round;       /* the word slept on */
	_Alignas(64) _Atomic uint32_t sleepers;
	uint32_t n;
	bool spin;
};
void hd_barrier_init(struct hd_barrier *barrier, uint32_t n, bool spin);      /* n >= 1; no finish */
void hd_barrier_wait(struct hd_barrier *barrier);

void hd_thread_arith_set(void);           /* invariant 4, for the calling thread */
bool hd_thread_arith_ok(void);

/* May threads of this process use the tiles of AMX from now on? Asks the system, and again at each call: the
 * answer stays, and children inherit it. false: no AMX here, or a system that does not know it. */
bool hd_thread_tiles_allowed(void);

#endif
