#include "engine/profile.h"

#include <string.h>

#include "sys/lock.h"
#include "sys/memory.h"
#include "sys/thread.h"
#include "cost/line_fit.h"

/* What a pipeline within one process does with a tensor: its maker writes it where the reader finds it, they
 * meet, the reader copies it to where its kernels read. Two threads meet at a barrier, which wakes as devices
 * wake each other; spinning only where each has a core of its own. */
enum { LEAST = 1 << 10, MOST = 16 << 20, NSIZES = 8, ROUNDS = 32, ROUNDS_OF_LARGE = 8, LARGE = 1 << 20,
	WARM = 2,
	PLACES = 4 };                     /* of a file: more than a cache holds, as that of a pipeline */

struct pair {
	struct hd_barrier barrier;
	uint8_t *mine[2], *from[2];       /* a tensor of each thread, and the place where it hands one over */
};

static uint64_t rounds(int64_t bytes) { return WARM + (bytes >= LARGE ? ROUNDS_OF_LARGE : ROUNDS); }

/* A writer comes to its place again only after the reader has met it for the answer, and so has read. */
static void half(struct pair *pair, int me, int writer, size_t bytes)
{
	if (me == writer)
		memcpy(pair->from[writer], pair->mine[me], bytes);
	hd_barrier_wait(&pair->barrier);
	if (me != writer)
		memcpy(pair->mine[me], pair->from[writer], bytes);
}

static void other_side(void *user)
{
	struct pair *pair = user;

	hd_barrier_wait(&pair->barrier);
	for (int64_t bytes = LEAST; bytes <= MOST; bytes *= 4)
		for (uint64_t i = 0; i < rounds(bytes); i++) {
			half(pair, 1, 0, (size_t)bytes);
			half(pair, 1, 1, (size_t)bytes);
		}
}

static void this_side(struct pair *pair, struct hd_clock *clock, struct hd_line_point point[NSIZES])
{
	int64_t ns[ROUNDS];
	int k = 0;

	for (int64_t bytes = LEAST; bytes <= MOST; bytes *= 4, k++) {
		uint64_t n = 0;
		for (uint64_t i = 0; i < rounds(bytes); i++) {
			int64_t began_ns = hd_clock_now_ns(clock);
			half(pair, 0, 0, (size_t)bytes);
			half(pair, 0, 1, (size_t)bytes);
			if (i >= WARM)
				ns[n++] = (hd_clock_now_ns(clock) - began_ns) / 2;
		}
		int64_t median = hd_profile_cost_of(ns, n).p50_ns;
		point[k] = (struct hd_line_point){ bytes, median > 0 ? median : 1 };
	}
}

enum hd_err hd_profile_memory_link(struct hd_clock *clock, struct hd_arena *arena,
	struct hd_profile_link **link, struct hd_diag *diag)
{
	struct hd_profile_link *made = hd_arena_take(arena, 1, sizeof *made);
	struct hd_line_point point[NSIZES];
	struct hd_memory memory = { 0 };
	struct hd_thread thread = { 0 };
	struct hd_cores cores;
	struct pair pair;
	enum hd_err err = made ? hd_memory_take(4 * (size_t)MOST, HD_MEMORY_TOUCH, &memory, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory for a link");

	if (err)
		return err;
	hd_cores_usable(&cores);
	hd_barrier_init(&pair.barrier, 2, cores.n >= 2);
	for (int i = 0; i < 2; i++) {
		pair.mine[i] = (uint8_t *)memory.at + (size_t)i * MOST;
		pair.from[i] = (uint8_t *)memory.at + (size_t)(i + 2) * MOST;
	}
	err = hd_thread_start(&thread, "hd-link", -1, other_side, &pair, diag);
	if (!err) {
		hd_barrier_wait(&pair.barrier);
		this_side(&pair, clock, point);
		hd_thread_join(&thread);
		struct hd_line line = hd_line_fit(point, NSIZES);
		*made = (struct hd_profile_link){ .level = 0, .kind = "memory", .latency_ns = line.latency_ns,
			.bytes_per_s = line.bytes_per_s,
			.duplex = true };
		*link = made;
	}
	hd_memory_give(&memory);
	return err;
}

/* ---- wakes */

#define IDLE_NS INT64_C(1000000)          /* before a wake: what a rank waits is of that order */
#define GIVEN_UP_NS INT64_C(10000000000)

struct sleeper {
	struct hd_lock lock;
	struct hd_cond cond;
	struct hd_clock *clock;
	uint64_t turn, slept;             /* wakes, and those that were answered; under the lock */
	int64_t woken_ns;                 /* when the last wake was */
	int64_t ns[WARM + HD_PROFILE_WAKES];
};

static void sleep_and_wake(void *user)
{
	struct sleeper *s = user;

	hd_lock_take(&s->lock);
	for (uint64_t i = 0; i < WARM + HD_PROFILE_WAKES; i++) {
		while (s->turn <= i)
			(void)hd_cond_wait(&s->cond, &s->lock, hd_clock_now_ns(s->clock) + GIVEN_UP_NS);
		s->ns[i] = hd_clock_now_ns(s->clock) - s->woken_ns;
		s->slept = i + 1;
		hd_cond_wake(&s->cond);
	}
	hd_lock_give(&s->lock);
}

static void be_busy(struct hd_clock *clock, int64_t ns)
{
	const int64_t until_ns = hd_clock_now_ns(clock) + ns;

	while (hd_clock_now_ns(clock) < until_ns)
		;
}

enum hd_err hd_profile_wake(struct hd_clock *clock, double *wake_ns, struct hd_diag *diag)
{
	struct sleeper s = { .clock = clock };
	struct hd_thread thread = { 0 };

	hd_lock_init(&s.lock);
	hd_cond_init(&s.cond);
	enum hd_err err = hd_thread_start(&thread, "hd-wake", -1, sleep_and_wake, &s, diag);
	for (uint64_t i = 0; i < WARM + HD_PROFILE_WAKES && !err; i++) {
		be_busy(clock, IDLE_NS);
		hd_lock_take(&s.lock);
		s.turn = i + 1;
		s.woken_ns = hd_clock_now_ns(clock);
		hd_cond_wake(&s.cond);
		while (s.slept <= i)
			(void)hd_cond_wait(&s.cond, &s.lock, hd_clock_now_ns(clock) + GIVEN_UP_NS);
		hd_lock_give(&s.lock);
	}
	if (!err) {
		hd_thread_join(&thread);
		*wake_ns = (double)hd_profile_undisturbed(s.ns + WARM, HD_PROFILE_WAKES);
	}
	hd_cond_finish(&s.cond);
	hd_lock_finish(&s.lock);
	return err;
}

enum hd_err hd_profile_file_link(struct hd_clock *clock, const char *folder, double *ns_per_byte,
	struct hd_diag *diag)
{
	struct hd_memory memory = { 0 };
	int64_t ns[ROUNDS_OF_LARGE];
	int id = -1;
	enum hd_err err = hd_memory_take(MOST, HD_MEMORY_TOUCH, &memory, diag);

	err = err ? err : hd_memory_spill_open(folder, PLACES * (uint64_t)MOST, &id, diag);
	for (uint64_t i = 0; i < PLACES + ROUNDS_OF_LARGE && !err; i++) {
		const int64_t began_ns = hd_clock_now_ns(clock);
		err = hd_memory_put(id, memory.at, MOST, i % PLACES * MOST, diag);
		err = err ? err : hd_memory_get(id, memory.at, MOST, (i + 1) % PLACES * MOST, diag);
		if (i >= PLACES)
			ns[i - PLACES] = (hd_clock_now_ns(clock) - began_ns) / 2;
	}
	if (!err)
		*ns_per_byte = (double)hd_profile_cost_of(ns, ROUNDS_OF_LARGE).p50_ns / MOST;
	hd_memory_id_close(id);
	hd_memory_give(&memory);
	return err;
}
