#include "sys/loop.h"

#include <string.h>
#include <unistd.h>

#include "sys/lock.h"
#include "sys/thread.h"
#include "tests/check.h"

struct loop_world { struct hd_loop loop; struct hd_clock real; struct hd_clock_sim sim;
	struct hd_loop_event events[8]; size_t n; };

static void enter(struct loop_world *world, bool sim)
{
	memset(world, 0, sizeof *world);
	hd_clock_real(&world->real);
	hd_clock_sim(&world->sim, 0, 0);
	assert_int_equal(sim ? hd_loop_sim_init(&world->loop, &world->sim, NULL) : hd_loop_init(&world->loop,
		&world->real, NULL), HD_OK);
}

static void poll_until(struct loop_world *world, int64_t at_ns)
{
	assert_int_equal(hd_loop_poll(&world->loop, at_ns, world->events, 8, &world->n, NULL), HD_OK);
}

/* Both rows: equal times in the order of arming, none early, none twice, none cancelled. */
static void timers_fire_in_order_once_and_not_early(void **state)
{
	static const int64_t after[] = { 300, 100, 200, 100, 400, 100 };
	static const uint64_t want[] = { 1, 5, 2, 0, 4 };       /* 3 is cancelled */

	(void)state;
	for (int sim = 0; sim < 2; sim++) {
		struct loop_world world;
		uint64_t ids[6], order[8];
		size_t n = 0;

		enter(&world, sim);
		int64_t start = hd_clock_now_ns(world.loop.clock);
		for (size_t i = 0; i < 6; i++)
			assert_int_equal(hd_loop_timer_at(&world.loop, start + after[i] * 1000, i, &ids[i],
				NULL), HD_OK);
		hd_loop_timer_cancel(&world.loop, ids[3]);
		while (n < 5) {
			poll_until(&world, start + 10 * HD_NS_PER_S);
			CHECK(world.n, "sim %d: %zu came", sim, n);
			for (size_t i = 0; i < world.n && n < 8; i++) {
				assert_int_equal(world.events[i].what, HD_LOOP_TIMER);
				order[n++] = world.events[i].tag;
				assert_true(hd_clock_now_ns(world.loop.clock) >= start + after[order[n - 1]] *
					1000);
			}
		}
		assert_memory_equal(order, want, sizeof want);
		hd_loop_timer_cancel(&world.loop, ids[0]);
		assert_int_equal(world.loop.n_timers, 0);
		hd_loop_finish(&world.loop);
		hd_loop_finish(&world.loop);
	}
}

/* An oracle that sorts: random times, small arrays of events, cancellations in between. */
static void many_timers_come_as_a_sort_would_have_them(void **state)
{
	struct loop_world world;
	int64_t at[200];
	uint64_t id[200], noise = 88172645463325252u;
	bool alive[200];

	(void)state;
	enter(&world, true);
	for (size_t i = 0; i < 200; i++) {
		noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
		at[i] = (int64_t)(noise % 50);
		alive[i] = true;
		assert_int_equal(hd_loop_timer_at(&world.loop, at[i], i, &id[i], NULL), HD_OK);
	}
	for (size_t i = 0; i < 200; i += 3) {
		hd_loop_timer_cancel(&world.loop, id[i]);
		alive[i] = false;
	}
	for (;;) {
		poll_until(&world, INT64_MAX);
		if (!world.n)
			break;
		for (size_t e = 0; e < world.n; e++) {
			size_t first = 200;
			for (size_t i = 0; i < 200; i++)
				if (alive[i] && (first == 200 || at[i] < at[first]))
					first = i;
			assert_int_equal(world.events[e].tag, first);
			alive[first] = false;
		}
	}
	for (size_t i = 0; i < 200; i++)
		assert_false(alive[i]);
	hd_loop_finish(&world.loop);
}

/* Cancelling 13 puts the last timer, 5, below 10 and 11: it has to rise there, not sink. */
static void a_cancelled_timer_leaves_the_others_in_order(void **state)
{
	static const int64_t at[] = { 0, 10, 1, 11, 12, 2, 20, 13, 14, 15, 16, 5 },
		want[] = { 0, 1, 2, 5, 10, 11, 12, 14, 15, 16, 20 };
	struct loop_world world;
	uint64_t id[12];

	(void)state;
	enter(&world, true);
	for (size_t i = 0; i < 12; i++)
		assert_int_equal(hd_loop_timer_at(&world.loop, at[i], (uint64_t)at[i], &id[i], NULL), HD_OK);
	hd_loop_timer_cancel(&world.loop, id[7]);
	for (size_t i = 0; i < 11; i++) {
		poll_until(&world, INT64_MAX);
		assert_int_equal(world.n, 1);
		assert_int_equal(world.events[0].tag, want[i]);
	}
	hd_loop_finish(&world.loop);
}

static void a_wake_from_another_thread_ends_the_wait(void **state)
{
	struct loop_world world;
	struct hd_thread thread;

	(void)state;
	enter(&world, false);
	assert_int_equal(hd_thread_start(&thread, "waker", -1, (void (*)(void *))hd_loop_wake, &world.loop,
		NULL), HD_OK);
	poll_until(&world, INT64_MAX);
	assert_int_equal(world.n, 1);
	assert_int_equal(world.events[0].what, HD_LOOP_WAKE);
	hd_thread_join(&thread);
	hd_loop_wake(&world.loop);
	hd_loop_wake(&world.loop);
	poll_until(&world, INT64_MAX);
	assert_int_equal(world.n, 1);
	poll_until(&world, 0);
	assert_int_equal(world.n, 0);        /* two wakes were one */
	hd_loop_finish(&world.loop);
	enter(&world, true);
	hd_loop_wake(&world.loop);
	poll_until(&world, 1000);
	assert_int_equal(world.events[0].what, HD_LOOP_WAKE);
	assert_int_equal(hd_clock_now_ns(world.loop.clock), 0);
	poll_until(&world, 1000);
	assert_int_equal(world.n, 0);
	assert_int_equal(hd_clock_now_ns(world.loop.clock), 1000);
	hd_loop_finish(&world.loop);
}

static void descriptors_report_what_was_asked_and_their_loss(void **state)
{
	struct loop_world world;
	int ends[2];

	(void)state;
	enter(&world, false);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(hd_loop_watch(&world.loop, ends[0], HD_LOOP_READ, 5, NULL), HD_OK);
	poll_until(&world, 0);
	assert_int_equal(world.n, 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	poll_until(&world, INT64_MAX);
	assert_int_equal(world.n, 1);
	assert_int_equal(world.events[0].what, HD_LOOP_READ);
	assert_int_equal(world.events[0].tag, 5);
	/* a new tag */
	assert_int_equal(hd_loop_watch(&world.loop, ends[0], HD_LOOP_READ, 6, NULL), HD_OK);
	close(ends[1]);
	poll_until(&world, INT64_MAX);
	assert_int_equal(world.events[0].what, HD_LOOP_READ | HD_LOOP_LOST);
	assert_int_equal(world.events[0].tag, 6);
	hd_loop_unwatch(&world.loop, ends[0]);
	hd_loop_unwatch(&world.loop, ends[0]);
	poll_until(&world, 0);
	assert_int_equal(world.n, 0);
	close(ends[0]);
	struct hd_diag diag = { "" };
	assert_int_equal(hd_loop_watch(&world.loop, HD_LOOP_WATCHED, HD_LOOP_READ, 1, &diag), HD_E_NOSPACE);
	/* a closed one */
	assert_int_not_equal(hd_loop_watch(&world.loop, ends[0], HD_LOOP_READ, 1, NULL), HD_OK);
	hd_loop_finish(&world.loop);
}

static struct { struct hd_lock lock; unsigned begun, ended; } rests;

static void rest(void *self, bool begins)
{
	assert_ptr_equal(self, &rests);
	if (begins) {
		rests.begun++;
		hd_lock_give(&rests.lock);
	} else {
		hd_lock_take(&rests.lock);
		rests.ended++;
	}
}

struct meanwhile { struct hd_loop *loop; int id; enum hd_err err; };

static void watch_meanwhile(void *user)
{
	struct meanwhile *m = user;

	hd_lock_take(&rests.lock);
	m->err = hd_loop_watch(m->loop, m->id, HD_LOOP_READ, 9, NULL);
	hd_lock_give(&rests.lock);
}

/* The other thread comes in when the wait begins; what it asks for ends that wait. */
static void another_thread_uses_a_loop_that_rests(void **state)
{
	struct loop_world world;
	struct hd_thread thread;
	int ends[2];

	(void)state;
	enter(&world, false);
	hd_lock_init(&rests.lock);
	hd_lock_take(&rests.lock);
	world.loop.rest = rest;
	world.loop.rest_self = &rests;
	poll_until(&world, 0);
	assert_int_equal(rests.begun, 0);        /* a look is no rest */
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	struct meanwhile m = { &world.loop, ends[0], HD_E_BUG };
	assert_int_equal(hd_thread_start(&thread, "other", -1, watch_meanwhile, &m, NULL), HD_OK);
	poll_until(&world, INT64_MAX);
	assert_true(rests.begun == 1 && rests.ended == 1);
	hd_thread_join(&thread);
	assert_true(!m.err && world.n == 1 && world.events[0].what == HD_LOOP_READ &&
		world.events[0].tag == 9);
	hd_lock_give(&rests.lock);
	hd_lock_finish(&rests.lock);
	hd_loop_finish(&world.loop);
	close(ends[0]);
	close(ends[1]);
}

static void simulated_posts_reach_who_watches_then(void **state)
{
	struct loop_world world;

	(void)state;
	enter(&world, true);
	assert_int_equal(hd_loop_watch(&world.loop, 3, HD_LOOP_READ, 33, NULL), HD_OK);
	assert_int_equal(hd_loop_sim_post(&world.loop, 20, 3, HD_LOOP_READ, NULL), HD_OK);
	/* 4 is not watched */
	assert_int_equal(hd_loop_sim_post(&world.loop, 10, 4, HD_LOOP_READ, NULL), HD_OK);
	/* not asked for */
	assert_int_equal(hd_loop_sim_post(&world.loop, 15, 3, HD_LOOP_WRITE, NULL), HD_OK);
	poll_until(&world, INT64_MAX);
	assert_int_equal(world.n, 1);
	assert_int_equal(world.events[0].tag, 33);
	assert_int_equal(hd_clock_now_ns(world.loop.clock), 20);
	assert_int_equal(hd_loop_sim_post(&world.loop, 30, 3, HD_LOOP_LOST, NULL), HD_OK);
	poll_until(&world, 25);
	assert_int_equal(world.n, 0);
	assert_int_equal(hd_clock_now_ns(world.loop.clock), 25);
	poll_until(&world, INT64_MAX);
	assert_int_equal(world.events[0].what, HD_LOOP_LOST);
	hd_loop_finish(&world.loop);
}

static void a_full_loop_says_so(void **state)
{
	struct loop_world world;
	struct hd_diag diag = { "" };
	uint64_t id;

	(void)state;
	enter(&world, true);
	for (int i = 0; i < HD_LOOP_TIMERS; i++)
		assert_int_equal(hd_loop_timer_at(&world.loop, i, 0, &id, NULL), HD_OK);
	assert_int_equal(hd_loop_timer_at(&world.loop, 5, 0, &id, &diag), HD_E_NOSPACE);
	assert_non_null(strstr(diag.text, "1024"));
	hd_loop_finish(&world.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_fire_in_order_once_and_not_early),
		cmocka_unit_test(many_timers_come_as_a_sort_would_have_them),
		cmocka_unit_test(a_cancelled_timer_leaves_the_others_in_order),
		cmocka_unit_test(a_wake_from_another_thread_ends_the_wait),
		cmocka_unit_test(descriptors_report_what_was_asked_and_their_loss),
		cmocka_unit_test(another_thread_uses_a_loop_that_rests),
		cmocka_unit_test(simulated_posts_reach_who_watches_then),
		cmocka_unit_test(a_full_loop_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
