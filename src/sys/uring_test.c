#define _GNU_SOURCE
#include "sys/uring.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

enum { BYTES = 100000, N = 32, PIECE = 3000 };
static char path[] = "uring_test_XXXXXX";
static uint8_t held[BYTES];

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		held[i] = (uint8_t)(i * 31 + i / 300);
	return fd < 0 || write(fd, held, BYTES) != BYTES ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static struct hd_uring *ring_or_skip(uint32_t depth)
{
	struct hd_diag diag = { "" };
	struct hd_uring *ring;

	if (hd_uring_open(&ring, depth, &diag) == HD_E_REFUSED) {
		print_message("skip: %s\n", diag.text);
		skip();
	}
	return ring;
}

/* All slots at once, in whichever order they end; one behind the end of the file, one across it. */
static void reads_give_what_pread_gives(void **state)
{
	static uint8_t into[N][PIECE];
	struct hd_uring *ring = ring_or_skip(N);
	struct hd_direct file;
	int64_t got, offset[N];
	uint32_t slot, taken = 0;

	(void)state;
	assert_int_equal(hd_direct_open(path, false, false, &file, NULL), HD_OK);
	for (uint32_t i = 0; i < N; i++) {
		offset[i] = i == N - 1 ? BYTES + 5 : i == N - 2 ? BYTES - 10 : i * 2999;
		hd_uring_begin(ring, i, &(struct hd_uring_read){ &file, into[i], PIECE, offset[i] });
	}
	while (taken < N) {
		assert_int_equal(hd_uring_wait(ring, NULL), HD_OK);
		while (hd_uring_take(ring, &slot, &got)) {
			const int64_t want = slot == N - 1 ? 0 : slot == N - 2 ? 10 : PIECE;
			assert_int_equal(got, want);
			assert_memory_equal(into[slot], held + (want ? offset[slot] : 0), (size_t)want);
			taken++;
		}
	}
	hd_direct_close(&file);
	const struct hd_direct none = { .id = -1 };
	hd_uring_begin(ring, 0, &(struct hd_uring_read){ &none, into[0], 1, 0 });
	assert_int_equal(hd_uring_wait(ring, NULL), HD_OK);
	assert_true(hd_uring_take(ring, &slot, &got) && got == -EBADF);
	assert_false(hd_uring_take(ring, &slot, &got));
	hd_uring_close(ring);
}

static void closing_waits_for_what_is_in_flight(void **state)
{
	static uint8_t into[N][PIECE];
	struct hd_uring *ring = ring_or_skip(N);
	struct hd_direct file;

	(void)state;
	assert_int_equal(hd_direct_open(path, false, false, &file, NULL), HD_OK);
	for (uint32_t i = 0; i < N; i++)
		hd_uring_begin(ring, i, &(struct hd_uring_read){ &file, into[i], PIECE, i * 100 });
	hd_uring_close(ring);
	for (uint32_t i = 0; i < N; i++)
		assert_memory_equal(into[i], held + i * 100, PIECE);
	hd_direct_close(&file);
}

/* In a process that a filter forbids the call, as containers do. */
static void a_filter_that_forbids_it_is_a_refusal(void **state)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof code / sizeof *code, code };
	int status = 0;

	(void)state;
	const pid_t child = fork();
	if (!child) {
		struct hd_diag diag = { "" };
		struct hd_uring *ring;
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
			_exit(77);
		_exit(hd_uring_open(&ring, 8, &diag) == HD_E_REFUSED && !ring ? 0 : 1);
	}
	assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_give_what_pread_gives),
		cmocka_unit_test(closing_waits_for_what_is_in_flight),
		cmocka_unit_test(a_filter_that_forbids_it_is_a_refusal),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
