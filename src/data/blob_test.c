#include "data/blob_file_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/failpoint.h"
#include "tests/check.h"

enum { BYTES = 300000, RANGES = 40 };

/* Files lie where direct reads can be: not in memory. */
static char path[] = "blob_test_XXXXXX";
static uint8_t held[BYTES];

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		held[i] = (uint8_t)(i * 73 + i / 256);
	if (fd < 0 || write(fd, held, BYTES) != BYTES)
		return -1;
	return close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

/* -1: the file system here has no direct reads. */
static int read_all_ways(enum hd_blob_direct direct, enum hd_blob_api api, uint32_t depth, uint32_t size)
{
	const struct hd_blob_rules rules = { .direct = direct, .api = api };
	const struct hd_ranges_knobs knobs = { depth, size, 512 };
	static uint8_t into[RANGES][20000];
	struct hd_range range[RANGES];
	struct hd_blob *store;
	struct hd_diag diag = { "" };

	enum hd_err err = hd_blob_open(&store, path, &rules, &diag);
	if (err == HD_E_REFUSED)
		return -1;
	assert_int_equal(err, HD_OK);
	assert_int_equal(store->size_bytes, BYTES);
	if (api == HD_API_THREADS)
		assert_true(!strcmp(store->by, "threads") && !store->by_why.text[0]);
	else if (api == HD_API_URING)
		assert_true(!strcmp(store->by, "io_uring") || strstr(store->by_why.text, "read by threads"));
	for (uint32_t i = 0; i < RANGES; i++)
		range[i] = (struct hd_range){ i == RANGES - 1 ? BYTES - 20000 : (i * 7919u) % (BYTES - 20000),
			i % 3 ? 20000 : 1 + i, into[i] };
	hd_ranges_sort(range, RANGES);
	memset(into, 0, sizeof into);
	assert_int_equal(hd_blob_read(store, range, RANGES, &knobs, &diag), HD_OK);
	for (uint32_t i = 0; i < RANGES; i++)
		assert_memory_equal(range[i].into, held + range[i].offset, range[i].len);
	hd_blob_close(store);
	return 0;
}

static void a_file_reads_the_same_by_any_depth_size_and_way(void **state)
{
	static const enum hd_blob_direct ways[] = { HD_DIRECT_NEVER, HD_DIRECT_AUTO, HD_DIRECT_ALWAYS };

	(void)state;
	for (size_t w = 0; w < 3; w++)
		for (uint32_t api = HD_API_AUTO; api <= HD_API_THREADS; api++)
			for (uint32_t depth = 1; depth <= 64; depth *= 8)
				for (uint32_t size = 4096; size <= 1 << 20; size *= 16)
					if (read_all_ways(ways[w], (enum hd_blob_api)api, depth, size) < 0)
						print_message("no direct reads here\n");
}

/* Requests of few bytes that are in the page cache are worth no thread; what is past it needs some. */
static void what_is_in_memory_is_read_without_threads(void **state)
{
	const struct hd_ranges_knobs knobs = { 8, 4096, 0 };
	static uint8_t into[BYTES];
	const struct hd_range all = { 0, BYTES, into };

	(void)state;
	for (uint32_t direct = HD_DIRECT_ALWAYS; direct <= HD_DIRECT_NEVER; direct++) {
		const struct hd_blob_rules rules = { .direct = (enum hd_blob_direct)direct,
			.api = HD_API_THREADS };
		const bool past = direct == HD_DIRECT_ALWAYS;
		struct hd_blob *store;
		struct hd_diag diag = { "" };
		if (hd_blob_open(&store, path, &rules, &diag))
			continue;         /* no direct reads here */
		const bool here = hd_blob_read_here(store, &all, 1);      /* else evicted, or not said */
		memset(into, 0, BYTES);
		CHECK(!hd_blob_read(store, &all, 1, &knobs, &diag), "%s", diag.text);
		assert_memory_equal(into, held, BYTES);
		assert_false(past && here);
		if (past || here)
			assert_true((((struct hd_file_store *)store)->nthreads > 0) == past);
		hd_blob_close(store);
	}
}

#ifdef HD_FAILPOINTS

/* What each way of reading does where a read fails: once, it is read again, past nothing; always, it says
 * so, with the place; the memory of the others is not written to after the call. */
static void a_read_that_fails_is_tried_once_more(void **state)
{
	const struct hd_ranges_knobs knobs = { 8, 4096, 0 };
	static uint8_t into[BYTES];
	const struct hd_range all = { 0, BYTES, into };

	(void)state;
	for (uint32_t direct = HD_DIRECT_AUTO; direct <= HD_DIRECT_NEVER; direct++)
		for (uint32_t api = HD_API_AUTO; api <= HD_API_THREADS; api++) {
			const struct hd_blob_rules rules = { .direct = (enum hd_blob_direct)direct,
				.api = (enum hd_blob_api)api };
			struct hd_diag diag = { "" };
			struct hd_blob *store;
			if (hd_blob_open(&store, path, &rules, &diag))
				continue;         /* no direct reads here */
			memset(into, 0, BYTES);
			assert_int_equal(hd_failpoint_arm("blob.read:err=EIO@7", 1, &diag), HD_OK);
			CHECK(!hd_blob_read(store, &all, 1, &knobs, &diag), "%s: %s", store->by, diag.text);
			assert_memory_equal(into, held, BYTES);
			assert_int_equal(hd_failpoint_arm("blob.read:err=EIO", 1, &diag), HD_OK);
			CHECK(hd_blob_read(store, &all, 1, &knobs, &diag) == HD_E_IO &&
				strstr(diag.text, "(byte 0, tried twice)"), "%s: %s", store->by, diag.text);
			assert_int_equal(hd_failpoint_arm("", 1, &diag), HD_OK);
			memset(into, 0, BYTES);
			CHECK(!hd_blob_read(store, &all, 1, &knobs, &diag), "%s: %s", store->by, diag.text);
			assert_memory_equal(into, held, BYTES);
			hd_blob_close(store);
		}
}

/* The system's, as a container's rules forbid it, and as an old kernel lacks it. */
static void without_io_uring_threads_read(void **state)
{
	static const char *const spec[] = { "uring.open:err=ENOSYS", "uring.open:err=EPERM",
		"uring.open:err=EACCES" };
	const struct hd_blob_rules rules = { .api = HD_API_URING };
	const struct hd_ranges_knobs knobs = { 8, 4096, 0 };
	static uint8_t into[BYTES];
	const struct hd_range all = { 0, BYTES, into };

	(void)state;
	for (size_t i = 0; i < sizeof spec / sizeof *spec; i++) {
		struct hd_diag diag = { "" };
		struct hd_blob *store;
		assert_int_equal(hd_failpoint_arm(spec[i], 1, &diag), HD_OK);
		assert_int_equal(hd_blob_open(&store, path, &rules, &diag), HD_OK);
		assert_string_equal(store->by, "threads");
		const char *why = store->by_why.text;
		CHECK(strstr(why, "io_uring") && strstr(why, "by threads"), "%s", why);
		memset(into, 0, BYTES);
		assert_int_equal(hd_blob_read(store, &all, 1, &knobs, &diag), HD_OK);
		assert_memory_equal(into, held, BYTES);
		hd_blob_close(store);
		assert_int_equal(hd_failpoint_arm("", 1, &diag), HD_OK);
	}
}

#endif

static void a_file_that_is_removed_is_read_on(void **state)
{
	const struct hd_ranges_knobs knobs = { 4, 4096, 0 };
	static uint8_t into[BYTES];
	const struct hd_range all = { 0, BYTES, into };

	(void)state;
	for (uint32_t api = HD_API_AUTO; api <= HD_API_THREADS; api++) {
		const struct hd_blob_rules rules = { .api = (enum hd_blob_api)api };
		char other[] = "blob_gone_XXXXXX";
		struct hd_diag diag = { "" };
		struct hd_blob *store;
		int fd = mkstemp(other);
		assert_true(fd >= 0 && write(fd, held, BYTES) == BYTES);
		assert_int_equal(hd_blob_open(&store, other, &rules, &diag), HD_OK);
		assert_int_equal(unlink(other), 0);
		assert_int_equal(hd_blob_read(store, &all, 1, &knobs, &diag), HD_OK);
		assert_memory_equal(into, held, BYTES);
		hd_blob_close(store);
		close(fd);
	}
}

static void a_range_behind_the_end_is_refused(void **state)
{
	const struct hd_ranges_knobs knobs = { 4, 4096, 0 };
	struct hd_diag diag = { "" };
	struct hd_blob *store;
	uint8_t into[8];

	(void)state;
	assert_int_equal(hd_blob_open(&store, path, NULL, &diag), HD_OK);
	const struct hd_range range[] = { { BYTES - 4, 5, into }, { UINT64_MAX - 2, 4, into } };
	assert_int_equal(hd_blob_read(store, &range[0], 1, &knobs, &diag), HD_E_INPUT);
	assert_non_null(strstr(diag.text, "300000 bytes"));
	assert_int_equal(hd_blob_read(store, &range[1], 1, &knobs, NULL), HD_E_INPUT);
	hd_blob_close(store);
}

static void a_file_that_is_cut_off_is_another_one(void **state)
{
	const struct hd_ranges_knobs knobs = { 4, 4096, 0 };
	static uint8_t into[BYTES];
	const struct hd_range all = { 0, BYTES, into };

	(void)state;
	for (uint32_t direct = HD_DIRECT_AUTO; direct <= HD_DIRECT_ALWAYS; direct++)
		for (uint32_t api = HD_API_AUTO; api <= HD_API_THREADS; api++) {
			const struct hd_blob_rules rules = { .direct = (enum hd_blob_direct)direct,
				.api = (enum hd_blob_api)api };
			char other[] = "blob_cut_XXXXXX";
			struct hd_diag diag = { "" };
			struct hd_blob *store;
			int fd = mkstemp(other);
			assert_true(fd >= 0 && write(fd, held, BYTES) == BYTES);
			const enum hd_err err = hd_blob_open(&store, other, &rules, &diag);
			unlink(other);
			if (!err) {
				assert_int_equal(ftruncate(fd, 5000), 0);
				assert_int_equal(hd_blob_read(store, &all, 1, &knobs, &diag), HD_E_INTEGRITY);
				CHECK(strstr(diag.text, "ends at byte 5000"), "%s: %s", store->by, diag.text);
				hd_blob_close(store);
			}
			close(fd);
		}
}

static uint32_t files_open(void)
{
	uint32_t n = 0;

	for (int id = 0; id < 1024; id++)
		n += fcntl(id, F_GETFD) >= 0;
	return n;
}

/* A set may have thousands of shards. */
static void many_stores_have_few_rings(void **state)
{
	enum { MANY = 16, PIECES = 8 };
	const struct hd_blob_rules rules = { .direct = HD_DIRECT_NEVER, .api = HD_API_URING };
	const struct hd_ranges_knobs knobs = { PIECES, 4096, 0 };
	static uint8_t into[PIECES][100];
	const uint32_t before = files_open();
	struct hd_range range[PIECES];
	struct hd_blob *store[MANY];

	(void)state;
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(hd_blob_open(&store[i], path, &rules, NULL), HD_OK);
	CHECK(files_open() == before + 2 * MANY, "%u files for %d stores", files_open() - before, MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		store[i]->rings = i ? store[0] : NULL;
		for (uint32_t k = 0; k < PIECES; k++)
			range[k] = (struct hd_range){ 20000 * k + i, 100, into[k] };
		assert_int_equal(hd_blob_read(store[i], range, PIECES, &knobs, NULL), HD_OK);
		for (uint32_t k = 0; k < PIECES; k++)
			assert_memory_equal(into[k], held + 20000 * k + i, 100);
	}
	CHECK(files_open() <= before + 2 * MANY + 1, "%u files for %d stores", files_open() - before, MANY);
	for (uint32_t i = MANY; i-- > 0;)
		hd_blob_close(store[i]);
	assert_int_equal(files_open(), before);
}

static void what_is_no_file_says_so(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_blob *store;

	(void)state;
	assert_int_equal(hd_blob_open(&store, "/nowhere/x", NULL, &diag), HD_E_NOTFOUND);
	assert_int_equal(hd_blob_open(&store, "/", NULL, NULL), HD_E_INPUT);
	assert_int_equal(hd_blob_open(&store, "http://example.com/x", NULL, NULL), HD_E_REFUSED);
	assert_int_equal(hd_blob_open(&store, "s3://b", NULL, NULL), HD_E_INVAL);
}

/* 100 ms * 2^k, 50 % either way, 10 s at most; the same draw for the same place and try. */
static void waits_double_and_are_drawn(void **state)
{
	(void)state;
	for (uint64_t offset = 0; offset < 1000; offset++)
		for (uint32_t k = 1; k < HD_BLOB_TRIES; k++) {
			const int64_t ms = hd_blob_backoff_ms(offset * 4097, k), middle = 100ll << (k - 1);
			CHECK(ms >= middle / 2 && ms <= middle * 3 / 2 && ms <= 10000, "try %u: %d ms", k,
				(int)ms);
			assert_int_equal(ms, hd_blob_backoff_ms(offset * 4097, k));
		}
	assert_int_not_equal(hd_blob_backoff_ms(0, 5), hd_blob_backoff_ms(4096, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_reads_the_same_by_any_depth_size_and_way),
		cmocka_unit_test(what_is_in_memory_is_read_without_threads),
#ifdef HD_FAILPOINTS
		cmocka_unit_test(a_read_that_fails_is_tried_once_more),
		cmocka_unit_test(without_io_uring_threads_read),
#endif
		cmocka_unit_test(a_file_that_is_removed_is_read_on),
		cmocka_unit_test(a_range_behind_the_end_is_refused),
		cmocka_unit_test(a_file_that_is_cut_off_is_another_one),
		cmocka_unit_test(many_stores_have_few_rings),
		cmocka_unit_test(what_is_no_file_says_so),
		cmocka_unit_test(waits_double_and_are_drawn),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
