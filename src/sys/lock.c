#include "sys/lock.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

/* These calls fail only by misuse (a lock not held, a struct not made): assert, not errors. */
static void must(int error)
{
	assert(error == 0);
	(void)error;
}

void hd_lock_init(struct hd_lock *lock) { must(pthread_mutex_init(&lock->mutex, NULL)); }
void hd_lock_finish(struct hd_lock *lock) { must(pthread_mutex_destroy(&lock->mutex)); }
void hd_lock_take(struct hd_lock *lock) { must(pthread_mutex_lock(&lock->mutex)); }
bool hd_lock_try(struct hd_lock *lock)
{
	const int error = pthread_mutex_trylock(&lock->mutex);

	assert(error == 0 || error == EBUSY);
	return error == 0;
}

void hd_lock_give(struct hd_lock *lock) { must(pthread_mutex_unlock(&lock->mutex)); }

void hd_cond_init(struct hd_cond *cond)
{
	pthread_condattr_t attr;

	must(pthread_condattr_init(&attr));
	must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
	must(pthread_cond_init(&cond->cond, &attr));
	must(pthread_condattr_destroy(&attr));
}

void hd_cond_finish(struct hd_cond *cond) { must(pthread_cond_destroy(&cond->cond)); }
void hd_cond_wake(struct hd_cond *cond) { must(pthread_cond_broadcast(&cond->cond)); }

bool hd_cond_wait(struct hd_cond *cond, struct hd_lock *lock, int64_t until_ns)
{
	struct timespec until = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };
	int error = pthread_cond_timedwait(&cond->cond, &lock->mutex, &until);

	assert(error == 0 || error == ETIMEDOUT);
	return error == 0;
}
