#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/failpoint.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/clock.h"
#include "tests/check.h"

static int off(void **state) { (void)state; return hd_failpoint_arm(NULL, 0, NULL) ? -1 : 0; }

static void every_row_has_a_name_of_its_own_and_a_sentence(void **state)
{
	(void)state;
	for (enum hd_failpoint i = 0; i < HD_FP_COUNT; i++) {
		CHECK(strspn(hd_failpoint_name(i), "abcdefghijklmnopqrstuvwxyz.") ==
			strlen(hd_failpoint_name(i)), "%s", hd_failpoint_name(i));
		CHECK(strlen(hd_failpoint_where(i)) > 10, "%s", hd_failpoint_name(i));
		for (enum hd_failpoint k = 0; k < i; k++)
			CHECK(strcmp(hd_failpoint_name(i), hd_failpoint_name(k)), "%s twice",
				hd_failpoint_name(i));
	}
}

#ifdef HD_FAILPOINTS

static void arm(const char *spec, uint64_t seed)
{
	struct hd_diag diag = { "" };
	CHECK(!hd_failpoint_arm(spec, seed, &diag), "%s", diag.text);
}

static void every_failpoint_can_be_armed_and_fires(void **state)
{
	char spec[100];

	(void)state;
	for (enum hd_failpoint i = 0; i < HD_FP_COUNT; i++) {
		snprintf(spec, sizeof spec, "%s:err=ENOSPC", hd_failpoint_name(i));
		arm(spec, 0);
		for (enum hd_failpoint k = 0; k < HD_FP_COUNT; k++)
			CHECK(hd_failpoint_hit(k, NULL, NULL) == (k == i ? ENOSPC : 0), "%s at %s", spec,
				hd_failpoint_name(k));
	}
}

static void nothing_fires_when_nothing_is_armed(void **state)
{
	(void)state;
	arm("", 0);
	assert_int_equal(HD_FAILPOINT(CKPT_FSYNC), 0);
	assert_int_equal(hd_failpoint_hits(HD_FP_CKPT_FSYNC), 0);
	arm("ckpt.fsync:err=5", 0);
	assert_int_equal(HD_FAILPOINT(CKPT_FSYNC), 5);
	assert_int_equal(hd_failpoint_hits(HD_FP_CKPT_FSYNC), 1);
	arm(NULL, 0);
	assert_int_equal(HD_FAILPOINT(CKPT_FSYNC), 0);
}

static void the_nth_time_fires_once(void **state)
{
	(void)state;
	arm("step.seal:err=EIO@3;ckpt.gc:err=EACCES", 0);
	for (int i = 1; i < 6; i++) {
		CHECK(HD_FAILPOINT(STEP_SEAL) == (i == 3 ? EIO : 0), "time %d", i);
		assert_int_equal(HD_FAILPOINT(CKPT_GC), EACCES);
	}
	arm("step.seal:err=EIO@1", 0);        /* arming resets the count */
	assert_int_equal(HD_FAILPOINT(STEP_SEAL), EIO);
}

static void transfers_are_shortened_and_flipped(void **state)
{
	uint8_t bytes[5] = { 0 };
	size_t len = 5;

	(void)state;
	arm("ckpt.write.before:short=3;metrics.write:flip;events.write:short=9", 0);
	assert_int_equal(HD_FAILPOINT_BYTES(CKPT_WRITE_BEFORE, bytes, &len), 0);
	assert_int_equal(len, 3);
	len = 5;
	assert_int_equal(HD_FAILPOINT_BYTES(METRICS_WRITE, bytes, &len), 0);
	assert_memory_equal(bytes, "\0\0\1\0\0", 5);
	len = 0;
	assert_int_equal(HD_FAILPOINT_BYTES(METRICS_WRITE, bytes, &len), 0);
	len = 5;
	assert_int_equal(HD_FAILPOINT_BYTES(EVENTS_WRITE, bytes, &len), 0);
	assert_int_equal(len, 5);
}

static unsigned fired(uint64_t seed, uint8_t pattern[1000])
{
	unsigned n = 0;
	arm("step.begin:err=EIO/0.25", seed);
	for (int i = 0; i < 1000; i++)
		n += pattern[i] = HD_FAILPOINT(STEP_BEGIN) == EIO;
	return n;
}

static void chance_is_a_function_of_the_seed(void **state)
{
	uint8_t a[1000], b[1000];

	(void)state;
	/* binomial(1000, 1/4): six standard deviations are 82 */
	assert_in_range(fired(1, a), 250 - 82, 250 + 82);
	fired(1, b);
	assert_memory_equal(a, b, sizeof a);
	fired(2, b);
	assert_memory_not_equal(a, b, sizeof a);
}

static void a_kill_kills_without_a_word(void **state)
{
	int status;

	(void)state;
	pid_t child = fork();
	if (!child) {
		arm("ckpt.rename.before:kill@2", 0);
		(void)HD_FAILPOINT(CKPT_RENAME_BEFORE);
		(void)HD_FAILPOINT(CKPT_RENAME_BEFORE);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void a_delay_waits_at_least_so_long(void **state)
{
	struct hd_clock clock;

	(void)state;
	hd_clock_real(&clock);
	arm("step.commit:delay=2", 0);
	int64_t start = hd_clock_now_ns(&clock);
	assert_int_equal(HD_FAILPOINT(STEP_COMMIT), 0);
	assert_true(hd_clock_now_ns(&clock) - start >= 2 * HD_NS_PER_MS);
}

static void a_key_is_met_or_it_is_not_counted(void **state)
{
	(void)state;
	arm("wire.read:err=ECONNRESET#7@2", 0);
	assert_int_equal(HD_FAILPOINT_KEY(WIRE_READ, 3), 0);
	assert_int_equal(HD_FAILPOINT_KEY(WIRE_READ, 7), 0);
	assert_int_equal(HD_FAILPOINT(WIRE_READ), 0);          /* a place without a key is not the one */
	assert_int_equal(HD_FAILPOINT_KEY(WIRE_READ, 3), 0);
	assert_int_equal(HD_FAILPOINT_KEY(WIRE_READ, 7), ECONNRESET);
	assert_int_equal(HD_FAILPOINT_KEY(WIRE_READ, 7), 0);
	arm("wire.read:err=EIO", 0);           /* without a key: whatever it is about */
	assert_int_equal(HD_FAILPOINT_KEY(WIRE_READ, 3), EIO);
}

/* ---- orders ---- */

static void put(const char *folder, const char *name, const char *text)
{
	char path[300], temporary[300];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	snprintf(temporary, sizeof temporary, "%s/new", folder);
	FILE *file = fopen(temporary, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(temporary, path), 0);
}

static void an_order_is_taken_changed_and_withdrawn(void **state)
{
	char folder[] = "/tmp/heddle-orders-XXXXXX", mine[32], path[300];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(mine, sizeof mine, "%d", (int)getpid());
	snprintf(path, sizeof path, "%s/%s", folder, mine);
	hd_failpoint_watch(folder);
	hd_failpoint_look();
	assert_int_equal(HD_FAILPOINT(CKPT_GC), 0);
	put(folder, mine, "ckpt.gc:err=EIO\n");
	assert_int_equal(HD_FAILPOINT(CKPT_GC), 0);            /* not before it looks */
	hd_failpoint_look();
	assert_int_equal(HD_FAILPOINT(CKPT_GC), EIO);
	put(folder, "any", "step.begin:err=EACCES");           /* both count */
	hd_failpoint_look();
	assert_int_equal(HD_FAILPOINT(CKPT_GC), EIO);
	assert_int_equal(HD_FAILPOINT(STEP_BEGIN), EACCES);
	put(folder, mine, "nonsense");
	hd_failpoint_look();
	assert_int_equal(HD_FAILPOINT(CKPT_GC), 0);
	assert_int_equal(HD_FAILPOINT(STEP_BEGIN), EACCES);
	put(folder, mine, "ckpt.gc:err=ENOSPC");
	hd_failpoint_look();
	assert_int_equal(unlink(path), 0);
	hd_failpoint_look();
	assert_int_equal(HD_FAILPOINT(CKPT_GC), 0);
	snprintf(path, sizeof path, "%s/any", folder);
	assert_int_equal(unlink(path), 0);
	hd_failpoint_look();
	assert_int_equal(HD_FAILPOINT(STEP_BEGIN), 0);
	hd_failpoint_watch(NULL);
	assert_int_equal(rmdir(folder), 0);
}

/* Processes that reach a place, `place` of their own, while the orders in `any` are `orders`: one of them
 * dies, and its name says which process and where. */
static void kill_one_of(const char *orders, const enum hd_failpoint place[3])
{
	char folder[] = "/tmp/heddle-orders-XXXXXX", path[300];
	int status, dead = 0, killed = 0;
	pid_t child[3];

	assert_non_null(mkdtemp(folder));
	put(folder, "any", orders);
	for (int i = 0; i < 3; i++) {
		child[i] = fork();
		if (!child[i]) {
			hd_failpoint_watch(folder);
			hd_failpoint_look();
			(void)HD_FAILPOINT_AT(place[i]);
			(void)HD_FAILPOINT_AT(place[i]);
			_exit(0);
		}
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		killed += WIFSIGNALED(status);
		dead = WIFSIGNALED(status) ? i : dead;
	}
	assert_int_equal(killed, 1);
	snprintf(path, sizeof path, "%s/hit.%s.%d", folder, hd_failpoint_name(place[dead]), child[dead]);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void of_all_orders_for_anybody_one_kills_one(void **state)
{
	(void)state;
	kill_one_of("fold.after:kill", (const enum hd_failpoint[3]){ HD_FP_FOLD_AFTER, HD_FP_FOLD_AFTER,
		HD_FP_FOLD_AFTER });
	kill_one_of("fold.before:kill@1;fold.after:kill@1;seal.here:kill@1",
		(const enum hd_failpoint[3]){ HD_FP_FOLD_AFTER, HD_FP_SEAL_HERE, HD_FP_FOLD_BEFORE });
}

static void a_bad_spec_says_where_and_arms_nothing(void **state)
{
	static const struct { const char *spec, *word; } cases[] = {
		{ "ckpt.nothing:kill", "no such failpoint" },       { "ckpt.gc", "action is missing" },
		{ "ckpt.gc:", "no such action" },                   { "ckpt.gc:explode", "no such action" },
		{ "ckpt.gc:err", "needs =" },                       { "ckpt.gc:err=", "not an errno" },
		{ "ckpt.gc:err=EWRONG", "not an errno" },           { "ckpt.gc:err=0", "not an errno" },
		{ "ckpt.gc:err=5000", "not an errno" },             { "ckpt.gc:kill=3", "takes no =" },
		{ "ckpt.gc:delay=x", "not a number" },              { "ckpt.gc:short=3", "carries no bytes" },
		{ "ckpt.gc:flip", "carries no bytes" },             { "ckpt.gc:kill@0", "number from 1" },
		{ "ckpt.gc:kill@", "number from 1" },               { "ckpt.gc:kill/0", "probability" },
		{ "ckpt.gc:kill/1", "probability" },                { "ckpt.gc:kill/nan", "probability" },
		{ "ckpt.gc:kill@2x", "too much" },                  { "ckpt.gc:kill;ckpt.gc:kill", "named twice" },
		{ "ckpt.gc:err=EIO;oops:kill", "\"oops:kill\"" },   { "ckpt.gc:delay=99999999999999999999", "not a number" },
		{ ";", "no such failpoint" },                       { "wire.read:kill#", "after # comes" },
		{ "wire.read:kill#4294967296", "after # comes" },   { "wire.read:err=EIO#x", "after # comes" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		arm("step.seal:err=EIO", 0);
		CHECK(hd_failpoint_arm(cases[i].spec, 0, &diag) == HD_E_INVAL, "%s", cases[i].spec);
		CHECK(strstr(diag.text, cases[i].word), "%s: %s", cases[i].spec, diag.text);
		assert_int_equal(HD_FAILPOINT(STEP_SEAL), EIO);        /* as it was before */
		assert_int_equal(HD_FAILPOINT(CKPT_GC), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_has_a_name_of_its_own_and_a_sentence),
		cmocka_unit_test_teardown(every_failpoint_can_be_armed_and_fires, off),
		cmocka_unit_test_teardown(nothing_fires_when_nothing_is_armed, off),
		cmocka_unit_test_teardown(the_nth_time_fires_once, off),
		cmocka_unit_test_teardown(transfers_are_shortened_and_flipped, off),
		cmocka_unit_test_teardown(chance_is_a_function_of_the_seed, off),
		cmocka_unit_test_teardown(a_kill_kills_without_a_word, off),
		cmocka_unit_test_teardown(a_delay_waits_at_least_so_long, off),
		cmocka_unit_test_teardown(a_key_is_met_or_it_is_not_counted, off),
		cmocka_unit_test_teardown(an_order_is_taken_changed_and_withdrawn, off),
		cmocka_unit_test_teardown(of_all_orders_for_anybody_one_kills_one, off),
		cmocka_unit_test_teardown(a_bad_spec_says_where_and_arms_nothing, off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void a_build_without_failpoints_says_so(void **state)
{
	struct hd_diag diag = { "" };

	(void)state;
	assert_false(hd_failpoint_built());
	assert_int_equal(hd_failpoint_arm("ckpt.gc:kill", 0, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "HD_FAILPOINTS=ON"));
	assert_int_equal(HD_FAILPOINT(CKPT_GC), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_row_has_a_name_of_its_own_and_a_sentence, off),
		cmocka_unit_test(a_build_without_failpoints_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
