#include "worker/finals.h"

#include "sys/thread.h"
#include "tests/check.h"

enum { NBUCKETS = 130 };                  /* three words, the last one partly used */

static struct hd_finals finals;
static atomic_uint woken;

static void wake(void *user)
{
	(void)user;
	atomic_fetch_add(&woken, 1);
}

static int open_all(void **state)
{
	(void)state;
	atomic_store(&woken, 0);
	return hd_finals_init(&finals, NBUCKETS, wake, NULL, NULL);
}

static int close_all(void **state)
{
	(void)state;
	hd_finals_finish(&finals);
	hd_finals_finish(&finals);
	return 0;
}

static void begin(uint64_t step, uint32_t pass, uint32_t round)
{
	hd_finals_begin(&finals, &(struct hd_finals_pass){ step, pass, round });
}

static bool has(const uint64_t *bit, uint32_t b) { return bit[b / 64] >> b % 64 & 1; }

static void what_was_noted_is_fetched_once_and_wakes_once(void **state)
{
	struct hd_finals_pass pass;

	(void)state;
	begin(7, 2, 5);
	assert_null(hd_finals_fetch(&finals, 5, &pass));
	hd_finals_note(&finals, 129);
	hd_finals_note(&finals, 0);
	hd_finals_note(&finals, 64);
	assert_int_equal(atomic_load(&woken), 1);
	const uint64_t *bit = hd_finals_fetch(&finals, 5, &pass);
	assert_non_null(bit);
	assert_int_equal(pass.step, 7);
	assert_int_equal(pass.pass, 2);
	for (uint32_t b = 0; b < NBUCKETS; b++)
		assert_int_equal(has(bit, b), b == 129 || b == 0 || b == 64);
	assert_null(hd_finals_fetch(&finals, 5, &pass));
	hd_finals_note(&finals, 1);
	assert_int_equal(atomic_load(&woken), 2);
	bit = hd_finals_fetch(&finals, 5, &pass);
	for (uint32_t b = 0; b < NBUCKETS; b++)
		assert_int_equal(has(bit, b), b == 1);
}

static void a_pass_that_is_over_or_cancelled_leaves_nothing(void **state)
{
	struct hd_finals_pass pass;

	(void)state;
	begin(7, 0, 1);
	hd_finals_note(&finals, 3);
	/* it was cancelled: the wire is in round 2 */
	assert_null(hd_finals_fetch(&finals, 2, &pass));
	begin(7, 0, 2);
	assert_null(hd_finals_fetch(&finals, 2, &pass));
	hd_finals_note(&finals, 4);
	assert_int_equal(atomic_load(&woken), 2);
	const uint64_t *bit = hd_finals_fetch(&finals, 2, &pass);
	assert_true(has(bit, 4) && !has(bit, 3));
}

static void device(void *user)
{
	const uint32_t *first = user;

	for (uint32_t b = *first; b < NBUCKETS; b += 2)
		hd_finals_note(&finals, b);
}

static void two_devices_lose_nothing(void **state)
{
	struct hd_thread thread[2] = { 0 };
	uint32_t first[2] = { 0, 1 }, seen = 0;
	struct hd_finals_pass pass;

	(void)state;
	begin(1, 0, 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(hd_thread_start(&thread[i], "device", -1, device, &first[i], NULL), HD_OK);
	while (seen < NBUCKETS) {
		const uint64_t *bit = hd_finals_fetch(&finals, 0, &pass);
		for (uint32_t b = 0; bit && b < NBUCKETS; b++)
			seen += has(bit, b);
	}
	for (uint32_t i = 0; i < 2; i++)
		hd_thread_join(&thread[i]);
	assert_null(hd_finals_fetch(&finals, 0, &pass));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_noted_is_fetched_once_and_wakes_once, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(a_pass_that_is_over_or_cancelled_leaves_nothing, open_all,
		close_all),
		cmocka_unit_test_setup_teardown(two_devices_lose_nothing, open_all, close_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
