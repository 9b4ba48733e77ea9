#define _GNU_SOURCE        /* of the C library: CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME */
#include "sys/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t read_ns(clockid_t which)
{
	struct timespec t;

	int failed = clock_gettime(which, &t);
	assert(!failed);
	(void)failed;
	return (int64_t)t.tv_sec * HD_NS_PER_S + t.tv_nsec;
}

static int64_t real_now(struct hd_clock *clock) { (void)clock; return read_ns(CLOCK_MONOTONIC); }
static int64_t real_wall(struct hd_clock *clock) { (void)clock; return read_ns(CLOCK_REALTIME); }

uint64_t hd_clock_raw_ns(void) { return (uint64_t)read_ns(CLOCK_MONOTONIC_RAW); }
int64_t hd_clock_thread_ns(void) { return read_ns(CLOCK_THREAD_CPUTIME_ID); }
int64_t hd_clock_boot_ns(void) { return read_ns(CLOCK_BOOTTIME); }

static void real_wait(struct hd_clock *clock, int64_t at_ns)
{
	struct timespec t = { .tv_sec = at_ns / HD_NS_PER_S, .tv_nsec = at_ns % HD_NS_PER_S };

	(void)clock;
	if (at_ns <= 0)
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static int64_t thread_now(struct hd_clock *clock) { (void)clock; return hd_clock_thread_ns(); }

/* Computing is what moves it. */
static void thread_wait(struct hd_clock *clock, int64_t at_ns)
{
	while (thread_now(clock) < at_ns)
		;
}

static int64_t sim_now(struct hd_clock *clock) { return ((struct hd_clock_sim *)clock)->now_ns; }
static int64_t sim_wall(struct hd_clock *clock) { return ((struct hd_clock_sim *)clock)->wall_ns; }

static void sim_wait(struct hd_clock *clock, int64_t at_ns)
{
	struct hd_clock_sim *sim = (struct hd_clock_sim *)clock;
	int64_t now = sim->now_ns;

	if (at_ns > now)
		hd_clock_sim_advance(sim, at_ns - now);
}

static const struct hd_clock_ops real_ops = { "real", real_now, real_wall, real_wait };
static const struct hd_clock_ops thread_ops = { "thread", thread_now, real_wall, thread_wait };
static const struct hd_clock_ops sim_ops = { "simulated", sim_now, sim_wall, sim_wait };

void hd_clock_real(struct hd_clock *clock) { clock->ops = &real_ops; }

void hd_clock_thread(struct hd_clock *clock) { clock->ops = &thread_ops; }

void hd_clock_sim(struct hd_clock_sim *sim, int64_t now_ns, int64_t wall_ns)
{
	sim->clock.ops = &sim_ops;
	atomic_init(&sim->now_ns, now_ns);
	atomic_init(&sim->wall_ns, wall_ns);
}

void hd_clock_sim_advance(struct hd_clock_sim *sim, int64_t by_ns)
{
	assert(by_ns >= 0);
	sim->now_ns += by_ns;
	sim->wall_ns += by_ns;
}

void hd_clock_sim_jump(struct hd_clock_sim *sim, int64_t by_ns) { sim->wall_ns += by_ns; }

void hd_clock_text(int64_t wall_ns, char text[HD_CLOCK_TEXT])
{
	/* floor division: 1969 counts down from its midnight, too */
	int64_t s = wall_ns / HD_NS_PER_S - (wall_ns % HD_NS_PER_S < 0);
	int ms = (int)((wall_ns - s * HD_NS_PER_S) / HD_NS_PER_MS);
	time_t at = (time_t)s;
	struct tm tm;

	gmtime_r(&at, &tm);        /* int64 nanoseconds end in 2262: it cannot fail */
	size_t n = strftime(text, HD_CLOCK_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, HD_CLOCK_TEXT - n, ".%03dZ", ms);
}
