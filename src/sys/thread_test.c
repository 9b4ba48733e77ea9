#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/thread.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "tests/check.h"

struct thread_seen { char name[16]; int core; bool arith, blocked; float subnormal; };

static void look(void *user)
{
	struct thread_seen *seen = user;
	volatile float tiny = 0x1p-126f;
	sigset_t mask;

	pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
	seen->core = sched_getcpu();
	seen->arith = hd_thread_arith_ok();
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	seen->blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGINT) == 1;
	seen->subnormal = tiny * 0.5f;
}

static void a_thread_starts_with_our_arithmetic_name_core_and_mask(void **state)
{
	struct hd_thread thread;
	struct thread_seen seen = { 0 };
	struct hd_cores cores;
	struct hd_diag diag = { "" };
	unsigned before = _mm_getcsr();
	sigset_t mask;

	(void)state;
	hd_cores_usable(&cores);
	_mm_setcsr(before | 0x8040);        /* the parent flushes subnormals: its child must not */
	enum hd_err err = hd_thread_start(&thread, "a-name-that-is-far-too-long",
		cores.core[cores.n_affinity - 1], look, &seen, &diag);
	_mm_setcsr(before);
	CHECK(!err, "%s", diag.text);
	hd_thread_join(&thread);
	hd_thread_join(&thread);
	assert_string_equal(seen.name, "a-name-that-is-");
	assert_int_equal(seen.core, cores.core[cores.n_affinity - 1]);
	assert_true(seen.arith);
	assert_true(seen.blocked);
	assert_true(seen.subnormal == 0x1p-127f);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	assert_int_equal(sigismember(&mask, SIGTERM), 0);        /* ours is as it was */
}

static void wrong_arithmetic_is_seen_and_set_right(void **state)
{
	unsigned before = _mm_getcsr();

	(void)state;
	for (unsigned bit = 0; bit < 3; bit++) {
		static const unsigned bits[] = { 0x8000, 0x0040, 0x6000 };
		_mm_setcsr(before | bits[bit]);
		CHECK(!hd_thread_arith_ok(), "bit %#x", bits[bit]);
		hd_thread_arith_set();
		CHECK(hd_thread_arith_ok(), "bit %#x", bits[bit]);
	}
	fesetround(FE_UPWARD);
	assert_false(hd_thread_arith_ok());
	hd_thread_arith_set();
	assert_int_equal(fegetround(), FE_TONEAREST);
}

static void a_core_we_do_not_have_is_refused(void **state)
{
	struct hd_thread thread;
	struct thread_seen seen;
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_thread_start(&thread, "x", CPU_SETSIZE - 1, look, &seen, &diag), HD_E_REFUSED);
	assert_non_null(strstr(diag.text, "1023"));
	hd_thread_join(&thread);
	assert_int_equal(hd_thread_start(&thread, "x", 1 << 20, look, &seen, NULL), HD_E_REFUSED);
	assert_int_equal(hd_thread_pin(CPU_SETSIZE - 1, NULL), HD_E_REFUSED);
	assert_int_equal(hd_thread_pin(-1, NULL), HD_E_REFUSED);
	assert_int_equal(hd_thread_pin(1 << 20, NULL), HD_E_REFUSED);
}

static void the_affinity_mask_bounds_the_cores(void **state)
{
	cpu_set_t before, one;
	struct hd_cores cores;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	hd_cores_usable(&cores);
	assert_int_equal(cores.n_affinity, CPU_COUNT(&before));
	assert_in_range(cores.n, 1, cores.n_affinity);
	assert_int_equal(hd_thread_pin(cores.core[0], NULL), HD_OK);
	struct hd_cores fewer;
	hd_cores_usable(&fewer);
	assert_int_equal(fewer.n_affinity, 1);
	assert_int_equal(fewer.n, 1);
	assert_int_equal(fewer.core[0], cores.core[0]);
	assert_int_equal(sched_getaffinity(0, sizeof one, &one), 0);
	assert_int_equal(CPU_COUNT(&one), 1);
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static void quotas_are_read_as_the_kernel_writes_them(void **state)
{
	(void)state;
	assert_true(hd_quota_v2("max 100000\n") == 0);
	assert_true(hd_quota_v2("150000 100000\n") == 1.5);
	assert_true(hd_quota_v2("200000 100000") == 2);
	assert_true(hd_quota_v2("") == 0);
	assert_true(hd_quota_v2("5") == 0);
	assert_true(hd_quota_v2("5 0") == 0);
	assert_true(hd_quota_v2("-1 100000") == 0);
	assert_true(hd_quota_v1("-1\n", "100000\n") == 0);
	assert_true(hd_quota_v1("50000\n", "100000\n") == 0.5);
	assert_true(hd_quota_v1("", "") == 0);
	assert_int_equal(hd_cores_within(4, 0), 4);
	assert_int_equal(hd_cores_within(4, 0.5), 1);
	assert_int_equal(hd_cores_within(4, 1.5), 2);
	assert_int_equal(hd_cores_within(4, 2), 2);
	assert_int_equal(hd_cores_within(4, 64), 4);
}

/* What /proc/cpuinfo does not list is not lent; what it lists may be refused all the same. */
static void tiles_are_allowed_where_the_system_has_them_and_to_children(void **state)
{
	enum { ASK = 0x1022, TILE_DATA = 18 };        /* ARCH_GET_XCOMP_PERM */
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[8192];
	bool listed = false;
	uint64_t allowed = 0;
	int status;

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof line, file))
		listed |= strstr(line, " amx_tile") != NULL;
	fclose(file);
	const bool lent = hd_thread_tiles_allowed();
	CHECK(!lent || listed, "tiles are lent that the system does not list");
	CHECK(hd_thread_tiles_allowed() == lent, "lent %d, not so when asked again", lent);
	if (!lent)
		SKIP("this system lends no tiles of AMX");
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(syscall(SYS_arch_prctl, ASK, &allowed) || !(allowed >> TILE_DATA & 1));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_starts_with_our_arithmetic_name_core_and_mask),
		cmocka_unit_test(wrong_arithmetic_is_seen_and_set_right),
		cmocka_unit_test(a_core_we_do_not_have_is_refused),
		cmocka_unit_test(the_affinity_mask_bounds_the_cores),
		cmocka_unit_test(tiles_are_allowed_where_the_system_has_them_and_to_children),
		cmocka_unit_test(quotas_are_read_as_the_kernel_writes_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
