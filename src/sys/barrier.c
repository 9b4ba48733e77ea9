#include "sys/thread.h"

#include <assert.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

/* A central counter and a round number. The last to arrive resets the counter, then opens
 * the round; the others wait for the round to change. The counter is reset before the round
 * opens, so a fast thread may arrive at the next round while slow ones still leave this one.
 *
 * No lost wakeup: a sleeper counts itself, then asks the kernel to sleep only if the round
 * is still the old one; the opener changes the round, then looks at the count. Both sides
 * are sequentially consistent, so one of the two sees the other. */

static void futex_wait(_Atomic uint32_t *word, uint32_t while_value)
{
	/* any return: the caller looks again */
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_value, NULL, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void hd_barrier_init(struct hd_barrier *barrier, uint32_t n, bool spin)
{
	assert(n >= 1);
	atomic_init(&barrier->arrived, 0);
	atomic_init(&barrier->round, 0);
	atomic_init(&barrier->sleepers, 0);
	barrier->n = n;
	barrier->spin = spin;
}

static bool spun_until_open(struct hd_barrier *barrier, uint32_t round)
{
	for (int i = 0; i < HD_BARRIER_SPINS; i++) {
		if (atomic_load_explicit(&barrier->round, memory_order_acquire) != round)
			return true;
		_mm_pause();
	}
	return false;
}

static void sleep_until_open(struct hd_barrier *barrier, uint32_t round)
{
	atomic_fetch_add(&barrier->sleepers, 1);
	while (atomic_load(&barrier->round) == round)
		futex_wait(&barrier->round, round);
	atomic_fetch_sub(&barrier->sleepers, 1);
}

void hd_barrier_wait(struct hd_barrier *barrier)
{
	uint32_t round = atomic_load_explicit(&barrier->round, memory_order_acquire);

	if (atomic_fetch_add(&barrier->arrived, 1) + 1 == barrier->n) {
		atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
		atomic_store(&barrier->round, round + 1);
		if (atomic_load(&barrier->sleepers))
			futex_wake_all(&barrier->round);
		return;
	}
	if (!barrier->spin || !spun_until_open(barrier, round))
		sleep_until_open(barrier, round);
}
