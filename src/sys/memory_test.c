#include "sys/memory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

static void a_block_is_zero_aligned_and_writable_to_its_end(void **state)
{
	static const size_t sizes[] = { 0, 1, 4096, 4097, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 5 << 20 };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int how = 0; how < 2; how++) {
			struct hd_memory memory = { 0 };
			struct hd_diag diag = { "" };
			CHECK(!hd_memory_take(sizes[i], (enum hd_memory_how)how, &memory, &diag), "%s",
				diag.text);
			size_t align = sizes[i] >= 2 << 20 ? 2 << 20 : 4096;
			CHECK((uintptr_t)memory.at % align == 0 && memory.len_bytes >= sizes[i] &&
				memory.len_bytes > 0, "%zu bytes", sizes[i]);
			CHECK(memory.len_bytes < sizes[i] + 4096 + !sizes[i], "%zu bytes became %zu",
				sizes[i], memory.len_bytes);
			unsigned char *at = memory.at;
			for (size_t k = 0; k < memory.len_bytes; k += 1021)
				assert_int_equal(at[k], 0);
			memset(at, 0xa5, memory.len_bytes);
			hd_memory_give(&memory);
			hd_memory_give(&memory);
			assert_null(memory.at);
		}
}

static void touched_memory_counts_and_is_given_back(void **state)
{
	enum { BIG = 64 << 20 };
	struct hd_memory_info before, during, after;
	struct hd_memory memory;

	(void)state;
	hd_memory_look(&before);
	assert_int_equal(hd_memory_take(BIG, HD_MEMORY_TOUCH, &memory, NULL), HD_OK);
	hd_memory_look(&during);
	assert_true(during.rss_bytes >= before.rss_bytes + BIG / 2);
	hd_memory_give(&memory);
	hd_memory_look(&after);
	assert_true(after.rss_bytes + BIG / 2 <= during.rss_bytes);
	/* the kernel counts in batches */
	assert_true(after.rss_peak_bytes + (4 << 20) >= during.rss_bytes);
	assert_true(before.machine_bytes >= before.limit_bytes && before.limit_bytes >= before.free_bytes &&
		before.free_bytes > 0);
}

static void a_shared_block_outlives_the_process_that_wrote_it(void **state)
{
	enum { LEN = 3 * 4096 + 17 };
	char folder[] = "/tmp/hd_memory_XXXXXX", path[64], got[LEN];
	struct hd_memory memory = { 0 };
	struct hd_diag diag = { "" };
	struct stat stat;
	int status = 0;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/shared", folder);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (hd_memory_share(path, LEN, &memory, &diag))
			_exit(1);
		((char *)memory.at)[0] = 7;
		((char *)memory.at)[LEN - 1] = 9;
		raise(SIGKILL);
	}
	assert_true(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	int id = open(path, O_RDONLY);
	assert_true(fstat(id, &stat) == 0 && stat.st_size == LEN && (stat.st_mode & 0777) == 0600);
	assert_int_equal(read(id, got, LEN), LEN);
	close(id);
	assert_true(got[0] == 7 && got[LEN - 1] == 9 && got[1] == 0);
	assert_int_equal(hd_memory_share(path, LEN, &memory, &diag), HD_E_EXISTS);
	assert_null(memory.at);
	unlink(path);
	assert_int_equal(hd_memory_share(path, LEN, &memory, &diag), HD_OK);
	hd_memory_give(&memory);
	unlink(path);
	rmdir(folder);
	assert_int_equal(hd_memory_share(path, LEN, &memory, &diag), HD_E_NOTFOUND);
	CHECK(strstr(diag.text, path), "%s", diag.text);
}

static void more_than_there_is_is_refused_with_numbers(void **state)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, (size_t)1 << 60 };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct hd_memory memory = { 0 };
		struct hd_diag diag = { "" };
		CHECK(hd_memory_take(sizes[i], HD_MEMORY_LAZY, &memory, &diag) == HD_E_NOMEM, "%zu",
			sizes[i]);
		assert_null(memory.at);
		assert_non_null(strstr(diag.text, "MiB are free of"));
	}
}

#if !SANITIZED
static void the_address_space_limit_counts(void **state)
{
	struct rlimit before, few;
	struct hd_memory_info info;
	struct hd_memory memory;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	few = (struct rlimit){ 200u << 20, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &few), 0);
	hd_memory_look(&info);
	enum hd_err err = hd_memory_take(300 << 20, HD_MEMORY_LAZY, &memory, NULL);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(err, HD_E_NOMEM);
	assert_int_equal(info.limit_bytes, 200 << 20);
	assert_true(info.free_bytes < 200 << 20);
}
#else
static void the_address_space_limit_counts(void **state) { (void)state;
	SKIP("the sanitizer's shadow is larger than any limit"); }
#endif

/* Of 5 MiB and a bit: two huge pages, then small ones. */
static void a_block_takes_the_pages_that_are_written_to(void **state)
{
	enum { K = 1 << 10, M = 1 << 20, LEN = 5 * M + 100 };
	static const struct { struct hd_memory_part part[3]; uint32_t n; uint64_t takes; } cases[] = {
		{ { { 0 } }, 0, 0 }, { { { 7, 7 } }, 1, 0 }, { { { 0, 1 } }, 1, 2 * M },
		{ { { 2 * M - 1, 2 * M + 1 } }, 1, 4 * M }, { { { 2 * M, 4 * M } }, 1, 2 * M },
		{ { { 4 * M, 4 * M + 1 } }, 1, 4 * K }, { { { 4 * M - 1, 4 * M + 1 } }, 1, 2 * M + 4 * K },
		{ { { 4 * M + 5 * K, 4 * M + 9 * K }, { 3 * M, 3 * M + 5 } }, 2, 2 * M + 8 * K },
		{ { { 1 * M, 1 * M + 9 }, { 9, 99 }, { 2 * M - 9, 2 * M } }, 3, 2 * M },
		{ { { 0, 5 * M }, { 1 * M, 2 * M } }, 2, 5 * M },
		{ { { 5 * M, LEN } }, 1, 4 * K },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_memory_part part[3];
		memcpy(part, cases[i].part, sizeof part);
		uint64_t takes = hd_memory_taken_by(part, cases[i].n, LEN);
		CHECK(takes == cases[i].takes, "case %zu: %llu", i, (unsigned long long)takes);
	}
	/* a block without room for a huge page has small ones alone */
	struct hd_memory_part one = { 5, 6 };
	assert_int_equal(hd_memory_taken_by(&one, 1, 2 * M - 1), 4 * K);
}

static void limits_are_read_as_the_kernel_writes_them(void **state)
{
	(void)state;
	assert_true(hd_memory_limit_parse("max\n") == UINT64_MAX);
	assert_true(hd_memory_limit_parse("1073741824\n") == 1 << 30);
	assert_true(hd_memory_limit_parse("0") == 0);
	assert_true(hd_memory_limit_parse("") == UINT64_MAX);
	assert_true(hd_memory_limit_parse("12x") == UINT64_MAX);
	assert_true(hd_memory_limit_parse("-5") == UINT64_MAX);
	assert_true(hd_memory_limit_parse("99999999999999999999999") == UINT64_MAX);
}

/* Whole pages move; what lies beside them stays. The file reads as it was left, or as zeros. */
static void spilled_pages_are_the_file_s_and_their_neighbours_stay(void **state)
{
	enum { PAGE = 4096, BIG = 4 << 20 };
	struct hd_memory memory;
	int id = -1;

	(void)state;
	assert_int_equal(hd_memory_take(BIG, HD_MEMORY_LAZY, &memory, NULL), HD_OK);
	assert_int_equal(hd_memory_spill_open("/tmp", BIG, &id, NULL), HD_OK);
	unsigned char *at = memory.at;
	memset(at, 0xa5, BIG);
	assert_int_equal(hd_memory_spill(id, at + 100, 3 * PAGE, 100, NULL), HD_OK);
	for (size_t i = 0; i < 5 * PAGE; i++)
		assert_int_equal(at[i], i >= PAGE && i < 3 * PAGE ? 0 : 0xa5);
	memset(at + PAGE, 0x77, 2 * PAGE);
	/* less than a page is not moved */
	assert_int_equal(hd_memory_spill(id, at + 5 * PAGE + 1, PAGE, 5 * PAGE + 1, NULL), HD_OK);
	assert_int_equal(at[5 * PAGE + 100], 0xa5);
	assert_int_equal(hd_memory_unspill(id, at + PAGE, PAGE, PAGE, NULL), HD_OK);
	assert_true(at[PAGE] == 0 && at[2 * PAGE] == 0x77 && at[3 * PAGE] == 0xa5);
	at[PAGE] = 9;
	assert_int_equal(hd_memory_spill(id, at + PAGE, PAGE, PAGE, NULL), HD_OK);
	assert_int_equal(at[PAGE], 0);                     /* its blocks were given back */
	hd_memory_id_close(id);
	assert_int_equal(at[2 * PAGE], 0x77);
	hd_memory_give(&memory);
	struct hd_diag diag = { "" };
	assert_true(hd_memory_spill_open("/nonexistent", BIG, &id, &diag) != HD_OK && id == -1);
	assert_non_null(strstr(diag.text, "/nonexistent"));
}

static void bytes_are_put_into_the_file_and_got_from_it(void **state)
{
	unsigned char in[3000], out[3000];
	struct hd_diag diag = { "" };
	int id = -1;

	(void)state;
	assert_int_equal(hd_memory_spill_open("/tmp", 10000, &id, NULL), HD_OK);
	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (unsigned char)(i * 7 + i / 256);
	assert_int_equal(hd_memory_put(id, in, sizeof in, 5001, NULL), HD_OK);
	assert_int_equal(hd_memory_get(id, out, sizeof out, 5001, NULL), HD_OK);
	assert_memory_equal(in, out, sizeof in);
	assert_int_equal(hd_memory_get(id, out, 2000, 4001, NULL), HD_OK);
	for (size_t i = 0; i < 2000; i++)
		assert_int_equal(out[i], i < 1000 ? 0 : in[i - 1000]);
	assert_int_equal(hd_memory_get(id, out, 3000, 7001, &diag), HD_E_IO);
	assert_non_null(strstr(diag.text, "ends before byte 10001"));
	hd_memory_id_close(id);
	for (int i = 0; i < 2; i++) {
		diag.text[0] = 0;
		assert_int_not_equal(i ? hd_memory_get(-1, out, 1, 0, &diag) : hd_memory_put(-1, in, 1, 0,
			&diag), HD_OK);
		assert_non_null(strstr(diag.text, i ? "read from a file" : "write to a file"));
	}
}

/* The device that is always full stands for a disk. */
static void a_full_disk_of_a_file_without_a_name_is_said_by_its_folder(void **state)
{
	struct hd_diag diag = { "" };
	int id = open("/dev/full", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_true(id >= 0);
	assert_int_not_equal(hd_memory_put(id, "abcd", 4, 0, &diag), HD_OK);
	CHECK(strstr(diag.text, "a file without a name in /dev: ") && strstr(diag.text, "(/dev has "), "%s",
		diag.text);
	close(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_disk_of_a_file_without_a_name_is_said_by_its_folder),
		cmocka_unit_test(bytes_are_put_into_the_file_and_got_from_it),
		cmocka_unit_test(a_block_is_zero_aligned_and_writable_to_its_end),
		cmocka_unit_test(touched_memory_counts_and_is_given_back),
		cmocka_unit_test(a_shared_block_outlives_the_process_that_wrote_it),
		cmocka_unit_test(more_than_there_is_is_refused_with_numbers),
		cmocka_unit_test(the_address_space_limit_counts),
		cmocka_unit_test(spilled_pages_are_the_file_s_and_their_neighbours_stay),
		cmocka_unit_test(a_block_takes_the_pages_that_are_written_to),
		cmocka_unit_test(limits_are_read_as_the_kernel_writes_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
