#include "sys/lock.h"

#include "sys/clock.h"
#include "sys/thread.h"
#include "tests/check.h"

static struct hd_lock lock;
static struct hd_cond cond;
static unsigned turn, total;
enum { THREADS = 4, ROUNDS = 2000 };

static int64_t in_ns(int64_t ns)
{
	struct hd_clock clock;
	hd_clock_real(&clock);
	return hd_clock_now_ns(&clock) + ns;
}

/* Each thread waits for its turn, so a lost wakeup stops all of them. */
static void take_turns(void *user)
{
	unsigned me = *(const unsigned *)user;

	for (unsigned i = 0; i < ROUNDS; i++) {
		hd_lock_take(&lock);
		while (turn != me)
			(void)hd_cond_wait(&cond, &lock, in_ns(60 * HD_NS_PER_S));
		total++;
		turn = (me + 1) % THREADS;
		hd_cond_wake(&cond);
		hd_lock_give(&lock);
	}
}

static void threads_take_turns_and_none_is_forgotten(void **state)
{
	struct hd_thread thread[THREADS] = { 0 };
	unsigned id[THREADS];
	struct hd_diag diag = { "" };
	(void)state;

	hd_lock_init(&lock);
	hd_cond_init(&cond);
	for (unsigned i = 0; i < THREADS; i++) {
		id[i] = i;
		assert_int_equal(hd_thread_start(&thread[i], "turns", -1, take_turns, &id[i], &diag), HD_OK);
	}
	for (unsigned i = 0; i < THREADS; i++)
		hd_thread_join(&thread[i]);
	assert_int_equal(total, THREADS * ROUNDS);
	hd_cond_finish(&cond);
	hd_lock_finish(&lock);
}

static void a_deadline_that_has_passed_ends_the_wait(void **state)
{
	(void)state;
	hd_lock_init(&lock);
	hd_cond_init(&cond);
	hd_lock_take(&lock);
	assert_false(hd_cond_wait(&cond, &lock, in_ns(0)));
	assert_false(hd_cond_wait(&cond, &lock, in_ns(HD_NS_PER_MS)));
	hd_lock_give(&lock);
	hd_cond_finish(&cond);
	hd_lock_finish(&lock);
}

static void try_other(void *got)
{
	*(bool *)got = hd_lock_try(&lock);
	if (*(bool *)got)
		hd_lock_give(&lock);
}

static void a_try_takes_what_is_free_and_waits_for_nothing(void **state)
{
	struct hd_thread thread;
	bool got = true;

	(void)state;
	hd_lock_init(&lock);
	assert_true(hd_lock_try(&lock));
	assert_int_equal(hd_thread_start(&thread, "try", -1, try_other, &got, NULL), HD_OK);
	hd_thread_join(&thread);
	assert_false(got);
	hd_lock_give(&lock);
	assert_int_equal(hd_thread_start(&thread, "try", -1, try_other, &got, NULL), HD_OK);
	hd_thread_join(&thread);
	assert_true(got);
	hd_lock_finish(&lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_take_turns_and_none_is_forgotten),
		cmocka_unit_test(a_deadline_that_has_passed_ends_the_wait),
		cmocka_unit_test(a_try_takes_what_is_free_and_waits_for_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
