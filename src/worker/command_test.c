#include "worker/command.h"

#include <string.h>

#include "sys/thread.h"
#include "tests/check.h"

static struct hd_commands commands;
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
	return hd_commands_init(&commands, wake, NULL, NULL);
}

static int close_all(void **state)
{
	(void)state;
	hd_commands_finish(&commands);
	return 0;
}

static void give(enum hd_command_kind kind, uint32_t bucket)
{
	assert_int_equal(hd_commands_give(&commands,
		&(struct hd_command){ .kind = kind, .bucket = bucket }, NULL),
		HD_OK);
}

static void neighbouring_folds_are_one_run_and_nothing_is_reordered(void **state)
{
	static const enum hd_command_kind kind[] = { HD_COMMAND_BEGIN, HD_COMMAND_FOLD, HD_COMMAND_FOLD,
		HD_COMMAND_FOLD,
		HD_COMMAND_ARRIVED, HD_COMMAND_ARRIVED,
		HD_COMMAND_COMPUTE, HD_COMMAND_COMPUTE, HD_COMMAND_FOLD };
	static const uint32_t runs[] = { 1, 2, 1, 2, 1, 1, 1 };       /* of at most 2 */
	struct hd_command got[2];
	uint32_t at = 0;

	(void)state;
	for (uint32_t i = 0; i < 9; i++)
		give(kind[i], i);
	for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
		uint32_t n = hd_commands_take(&commands, got, 2);
		assert_int_equal(n, runs[r]);
		for (uint32_t k = 0; k < n; k++, at++) {
			assert_int_equal(got[k].kind, kind[at]);
			assert_int_equal(got[k].bucket, at);
		}
	}
	assert_int_equal(at, 9);
}

static void compute_thread(void *user)
{
	struct hd_command d[HD_COMMANDS_RUN];

	(void)user;
	for (;;) {
		uint32_t n = hd_commands_take(&commands, d, HD_COMMANDS_RUN);
		for (uint32_t i = 0; i < n; i++) {
			struct hd_command_done done = { .command = d[i], .step = d[i].bucket };
			hd_commands_done(&commands, &done);
		}
		if (d[0].kind == HD_COMMAND_QUIT)
			return;
	}
}

/* Far more than either ring holds, with results fetched only now and then. */
static void every_command_has_its_result_in_order(void **state)
{
	struct hd_thread thread = { 0 };
	struct hd_command_done done;
	uint32_t given = 0, seen = 0;
	enum { MANY = 40000 };

	(void)state;
	assert_int_equal(hd_thread_start(&thread, "hand", -1, compute_thread, NULL, NULL), HD_OK);
	while (seen < MANY) {
		struct hd_command d = { .kind = given % 3 ? HD_COMMAND_FOLD : HD_COMMAND_FINISH,
			.bucket = given };
		if (given < MANY && !hd_commands_give(&commands, &d, NULL))
			given++;
		while ((given % 701 == 0 || given == MANY) && hd_commands_result(&commands, &done))
			assert_int_equal(done.step, seen++);
	}
	give(HD_COMMAND_QUIT, 0);
	hd_thread_join(&thread);
	assert_true(hd_commands_result(&commands, &done));
	assert_int_equal(done.command.kind, HD_COMMAND_QUIT);
	assert_false(hd_commands_result(&commands, &done));
	assert_int_equal(atomic_load(&woken), MANY + 1);
	assert_int_equal(atomic_load(&commands.progress), MANY + 1);
}

/* What lies behind the most that were queued at once is never written to. */
static void rings_take_no_more_than_is_queued_at_once(void **state)
{
	enum { MARK = 0xa5, ROUNDS = 300, AT_ONCE = 3 };
	const uint8_t *command = (const uint8_t *)&commands.command[AT_ONCE],
		*done = (const uint8_t *)&commands.done[AT_ONCE];
	struct hd_command got;
	struct hd_command_done result = { .err = HD_OK };

	(void)state;
	memset(&commands.command[AT_ONCE], MARK, ROUNDS * sizeof *commands.command);
	memset(&commands.done[AT_ONCE], MARK, ROUNDS * sizeof *commands.done);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		for (uint32_t k = 0; k < AT_ONCE; k++)
			give(HD_COMMAND_COMPUTE, i);
		for (uint32_t k = 0; k < AT_ONCE; k++) {
			assert_int_equal(hd_commands_take(&commands, &got, 1), 1);
			assert_int_equal(got.bucket, i);
			result.command = got;
			hd_commands_done(&commands, &result);
		}
		while (hd_commands_result(&commands, &result))
			assert_int_equal(result.command.bucket, i);
	}
	for (size_t i = 0; i < ROUNDS * sizeof *commands.command; i++)
		assert_int_equal(command[i], MARK);
	for (size_t i = 0; i < ROUNDS * sizeof *commands.done; i++)
		assert_int_equal(done[i], MARK);
}

static void called(void *user) { (*(uint32_t *)user)++; }

/* Whoever was called after it saw none finds one. */
static void each_command_calls_the_compute_thread_back(void **state)
{
	struct hd_command got;
	uint32_t calls = 0;

	(void)state;
	commands.call = called;
	commands.compute = &calls;
	assert_false(hd_commands_wait(&commands));
	for (uint32_t i = 1; i <= 3; i++) {
		give(HD_COMMAND_FOLD, i);
		assert_true(calls == i && hd_commands_wait(&commands));
	}
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(hd_commands_take(&commands, &got, 1), 1);
		assert_true(got.bucket == i && hd_commands_wait(&commands) == (i < 3));
	}
	assert_int_equal(calls, 3);
}

static void a_full_queue_says_so(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < HD_COMMANDS; i++)
		give(HD_COMMAND_FOLD, i);
	assert_int_equal(hd_commands_give(&commands, &(struct hd_command){ .kind = HD_COMMAND_FOLD }, NULL),
		HD_E_AGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(neighbouring_folds_are_one_run_and_nothing_is_reordered,
			open_all, close_all),
		cmocka_unit_test_setup_teardown(every_command_has_its_result_in_order, open_all, close_all),
		cmocka_unit_test_setup_teardown(rings_take_no_more_than_is_queued_at_once, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(a_full_queue_says_so, open_all, close_all),
		cmocka_unit_test_setup_teardown(each_command_calls_the_compute_thread_back, open_all,
			close_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
