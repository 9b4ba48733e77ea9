#include "worker/command.h"

#include "sys/thread.h"
#include "tests/check.h"

static struct hd_duties duties;
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
	return hd_duties_init(&duties, wake, NULL, NULL);
}

static int close_all(void **state)
{
	(void)state;
	hd_duties_finish(&duties);
	return 0;
}

static void give(enum hd_duty_kind kind, uint32_t bucket)
{
	assert_int_equal(hd_duties_give(&duties, &(struct hd_duty){ .kind = kind, .bucket = bucket }, NULL),
		HD_OK);
}

static void neighbouring_folds_are_one_run_and_nothing_is_reordered(void **state)
{
	static const enum hd_duty_kind kind[] = { HD_DUTY_BEGIN, HD_DUTY_FOLD, HD_DUTY_FOLD, HD_DUTY_FOLD,
		HD_DUTY_ARRIVED, HD_DUTY_ARRIVED,
		HD_DUTY_COMPUTE, HD_DUTY_COMPUTE, HD_DUTY_FOLD };
	static const uint32_t runs[] = { 1, 2, 1, 2, 1, 1, 1 };       /* of at most 2 */
	struct hd_duty got[2];
	uint32_t at = 0;

	(void)state;
	for (uint32_t i = 0; i < 9; i++)
		give(kind[i], i);
	for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
		uint32_t n = hd_duties_take(&duties, got, 2);
		assert_int_equal(n, runs[r]);
		for (uint32_t k = 0; k < n; k++, at++) {
			assert_int_equal(got[k].kind, kind[at]);
			assert_int_equal(got[k].bucket, at);
		}
	}
	assert_int_equal(at, 9);
}

static void hand(void *user)
{
	struct hd_duty d[HD_DUTIES_RUN];

	(void)user;
	for (;;) {
		uint32_t n = hd_duties_take(&duties, d, HD_DUTIES_RUN);
		for (uint32_t i = 0; i < n; i++) {
			struct hd_duty_done done = { .duty = d[i], .step = d[i].bucket };
			hd_duties_done(&duties, &done);
		}
		if (d[0].kind == HD_DUTY_QUIT)
			return;
	}
}

/* Far more than either ring holds, with results fetched only now and then. */
static void every_duty_has_its_result_in_order(void **state)
{
	struct hd_thread thread = { 0 };
	struct hd_duty_done done;
	uint32_t given = 0, seen = 0;
	enum { MANY = 40000 };

	(void)state;
	assert_int_equal(hd_thread_start(&thread, "hand", -1, hand, NULL, NULL), HD_OK);
	while (seen < MANY) {
		struct hd_duty d = { .kind = given % 3 ? HD_DUTY_FOLD : HD_DUTY_FINISH, .bucket = given };
		if (given < MANY && !hd_duties_give(&duties, &d, NULL))
			given++;
		while ((given % 701 == 0 || given == MANY) && hd_duties_result(&duties, &done))
			assert_int_equal(done.step, seen++);
	}
	give(HD_DUTY_QUIT, 0);
	hd_thread_join(&thread);
	assert_true(hd_duties_result(&duties, &done));
	assert_int_equal(done.duty.kind, HD_DUTY_QUIT);
	assert_false(hd_duties_result(&duties, &done));
	assert_int_equal(atomic_load(&woken), MANY + 1);
	assert_int_equal(atomic_load(&duties.progress), MANY + 1);
}

static void a_full_queue_says_so(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HD_DUTIES; i++)
		give(HD_DUTY_FOLD, i);
	assert_int_equal(hd_duties_give(&duties, &(struct hd_duty){ .kind = HD_DUTY_FOLD }, NULL),
		HD_E_AGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(neighbouring_folds_are_one_run_and_nothing_is_reordered,
			open_all, close_all),
		cmocka_unit_test_setup_teardown(every_duty_has_its_result_in_order, open_all, close_all),
		cmocka_unit_test_setup_teardown(a_full_queue_says_so, open_all, close_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
