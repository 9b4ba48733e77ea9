/* lock.h -- a lock, and conditions to wait for under it, never without a deadline.
 *
 * For what is rare and may block: readers that run ahead, queues. Device threads meet
 * at barriers instead (sys/thread.h).
 *
 * 1. A wait gives the lock back while it sleeps and has it again when it returns. It may
 *    return early; look at the condition again.
 * 2. Deadlines are on the clock of hd_clock_real().
 *
 * Ownership: init/finish, in your memory, which does not move. Threads: any. */
#ifndef HD_SYS_LOCK_H
#define HD_SYS_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct hd_lock { pthread_mutex_t mutex; };
struct hd_cond { pthread_cond_t cond; };

void hd_lock_init(struct hd_lock *lock);
void hd_lock_finish(struct hd_lock *lock);               /* not held */
void hd_lock_take(struct hd_lock *lock);
bool hd_lock_try(struct hd_lock *lock);                   /* true: taken; never waits */
void hd_lock_give(struct hd_lock *lock);

void hd_cond_init(struct hd_cond *cond);
void hd_cond_finish(struct hd_cond *cond);               /* no waiter */
/* false: the deadline has passed */
bool hd_cond_wait(struct hd_cond *cond, struct hd_lock *lock, int64_t until_ns);
void hd_cond_wake(struct hd_cond *cond);                 /* all waiters */

#endif
