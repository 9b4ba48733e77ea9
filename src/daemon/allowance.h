/* allowance.h -- a rate limit: how much time of the daemon's one thread each user's questions may take.
 *
 * The daemon answers in one thread; a question that asks a policy, or takes in a thousand jobs, takes long
 * there. A user may use HD_ALLOWANCE_MOST_NS of it at once, and is given back a fixed part of the time that
 * passes: a user that asks much waits, the others are answered.
 *
 * 1. What a question takes is known when it is answered: one may take more than is left, and the next ones
 *    wait the longer. Questions are refused while nothing is left.
 * 2. A job that is taken in costs HD_ALLOWANCE_JOB_NS at least: most of its time is the disk's.
 * 3. At most HD_ALLOWANCE_USERS users are tracked. Those with the most left are forgotten first, and begin
 *    again with all of it. A user that owes time is not forgotten for one that does not.
 *
 * Pure, a plain value; zeroed: none took any. */
#ifndef HD_DAEMON_ALLOWANCE_H
#define HD_DAEMON_ALLOWANCE_H

#include <stdint.h>

enum {
	HD_ALLOWANCE_USERS = 64,
	HD_ALLOWANCE_PART = 4,            /* one of so many parts of the time that goes by */
};
#define HD_ALLOWANCE_MOST_NS INT64_C(2000000000)
#define HD_ALLOWANCE_JOB_NS  INT64_C(4000000)

struct hd_allowance {
	uint32_t n;
	struct hd_allowed { uint32_t uid; int64_t left_ns, at_ns; } user[HD_ALLOWANCE_USERS];
};

/* What that user has left at that time; 0 or less: nothing. */
int64_t hd_allowance_left(const struct hd_allowance *allowance, uint32_t uid, int64_t now_ns);
/* Of a question that took so much of a processor, and took in so many jobs. */
int64_t hd_allowance_price(int64_t cpu_ns, uint32_t njobs);
void hd_allowance_took(struct hd_allowance *allowance, uint32_t uid, int64_t now_ns, int64_t took_ns);
/* Until it has some again; 0: it has. */
int64_t hd_allowance_wait(const struct hd_allowance *allowance, uint32_t uid, int64_t now_ns);

#endif
