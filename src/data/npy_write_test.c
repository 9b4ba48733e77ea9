#include "data/npy_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sys/file_sim.h"
#include "tests/check.h"

/* Files are judged by the rules of numpy.lib.format for version 1.0, without the reader of this room:
 * magic, two bytes of version, a little-endian length, a Python literal of exactly three keys, blanks up to a
 * multiple of 64 bytes, a line end, then the numbers in C order. */

static struct hd_fs_sim sim;
static struct hd_arena arena;

static int set_up(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	return hd_fs_mkdirs(&sim.fs, "out", NULL);
}

static int tear_down(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
	return 0;
}

static const uint8_t *read_all(const char *path, size_t *len)
{
	struct hd_diag diag = { "" };
	uint8_t *bytes;

	CHECK(hd_file_read_all(&sim.fs, path, &arena, 1 << 20, &bytes, len, &diag) == HD_OK, "%s", diag.text);
	return bytes;
}

static bool is_there(const char *path)
{
	struct hd_stat stat;

	return !hd_fs_stat(&sim.fs, path, &stat, NULL);
}

/* Reads "(3, 4,)" as Python does: a tuple of one needs its comma. */
static uint32_t tuple(const char *at, int64_t dim[HD_NPY_RANK], const char **end)
{
	uint32_t n = 0, commas = 0;

	assert_int_equal(*at++, '(');
	while (*at != ')') {
		char *stop;
		dim[n++] = strtoll(at, &stop, 10);
		assert_true(stop != at && n <= HD_NPY_RANK);
		at = stop;
		if (*at == ',') {
			commas++;
			at++;
		}
		at += *at == ' ';
	}
	assert_true(n > 1 || commas == 1);
	assert_true(commas == n || commas + 1 == n);
	*end = at + 1;
	return n;
}

/* The offset of the first number. */
static size_t check_header(const uint8_t *file, size_t len, uint32_t rank, const int64_t *dim)
{
	static const char before[] = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
	int64_t got[HD_NPY_RANK];
	const char *at;

	assert_true(len >= 10);
	assert_memory_equal(file, "\x93NUMPY\x01\x00", 8);
	size_t header = file[8] | (size_t)file[9] << 8;
	assert_int_equal((10 + header) % 64, 0);
	assert_true(10 + header <= len);
	assert_int_equal(file[10 + header - 1], '\n');
	assert_memory_equal(file + 10, before, sizeof before - 1);
	assert_int_equal(tuple((const char *)file + 10 + sizeof before - 1, got, &at), rank);
	assert_memory_equal(got, dim, rank * sizeof *dim);
	assert_memory_equal(at, ", }", 3);
	for (at += 3; at < (const char *)file + 10 + header - 1; at++)
		assert_int_equal(*at, ' ');
	return 10 + header;
}

static void the_header_is_what_numpy_documents(void **state)
{
	static const struct { uint32_t rank; int64_t dim[HD_NPY_RANK]; } cases[] = {
		{ 1, { 1 } }, { 1, { 5 } }, { 2, { 3, 4 } }, { 2, { 90, 1 } }, { 3, { 2, 3, 5 } },
		{ 2, { INT64_C(1234567890123), 7 } }, { 4, { 1, 1, 1, 1 } },
	};
	struct hd_diag diag = { "" };
	(void)state;

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct hd_npy_out out;
		uint64_t elems = 1;
		size_t len;
		for (uint32_t i = 1; i < cases[c].rank; i++)
			elems *= (uint64_t)cases[c].dim[i];
		assert_int_equal(hd_npy_begin(&out, &sim.fs, "out/a.npy", cases[c].rank, cases[c].dim, HD_F32,
			&diag), HD_OK);
		assert_int_equal(out.row_elems, elems);
		assert_int_equal(hd_npy_end(&out, true, &diag), HD_OK);
		const uint8_t *file = read_all("out/a.npy", &len);
		assert_int_equal(check_header(file, len, cases[c].rank, cases[c].dim), out.header_bytes);
	}
}

static void rows_lie_in_their_places_whatever_order_they_come_in(void **state)
{
	static const int64_t dim[] = { 5, 2, 3 };
	static const struct { uint64_t first, n; } parts[] = { { 3, 2 }, { 0, 1 }, { 1, 2 } };
	struct hd_diag diag = { "" };
	struct hd_npy_out out;
	float row[5 * 6];
	size_t len;
	(void)state;

	for (int i = 0; i < 30; i++)
		row[i] = (float)i * 0.5f - 3;
	assert_int_equal(hd_npy_begin(&out, &sim.fs, "out/a.npy", 3, dim, HD_F32, &diag), HD_OK);
	for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
		hd_npy_rows(&out, parts[p].first, parts[p].n, row + 6 * parts[p].first);
	assert_int_equal(hd_npy_end(&out, true, &diag), HD_OK);
	const uint8_t *file = read_all("out/a.npy", &len);
	size_t at = check_header(file, len, 3, dim);
	assert_int_equal(len, at + sizeof row);
	assert_memory_equal(file + at, row, sizeof row);
}

static void the_name_appears_with_the_last_row_or_never(void **state)
{
	static const int64_t dim[] = { 2, 1 };
	static const float rows[] = { 1, 2 };
	struct hd_diag diag = { "" };
	struct hd_npy_out out;
	(void)state;

	for (int keep = 0; keep < 2; keep++) {
		assert_int_equal(hd_npy_begin(&out, &sim.fs, "out/kept.npy", 2, dim, HD_F32, &diag), HD_OK);
		hd_npy_rows(&out, 0, 2, rows);
		assert_false(is_there("out/kept.npy"));
		assert_true(is_there("out/kept.npy.tmp"));
		assert_int_equal(hd_npy_end(&out, keep, &diag), HD_OK);
		assert_int_equal(is_there("out/kept.npy"), keep);
		assert_false(is_there("out/kept.npy.tmp"));
	}
}

/* Whatever call fails: an error, no file of that name, and what lay there before stays. */
static void a_disk_that_fails_at_any_call_leaves_the_older_file(void **state)
{
	static const int64_t dim[] = { 2, 1 };
	static const float rows[] = { 1, 2 }, older[] = { 8, 9 };
	bool done = false;
	(void)state;

	for (uint64_t call = 1; call < 64 && !done; call++) {
		struct hd_diag diag = { "" };
		struct hd_npy_out out;
		size_t len;
		assert_int_equal(hd_npy_begin(&out, &sim.fs, "out/a.npy", 2, dim, HD_F32, &diag), HD_OK);
		hd_npy_rows(&out, 0, 2, older);
		assert_int_equal(hd_npy_end(&out, true, &diag), HD_OK);
		hd_fs_sim_fail(&sim, call, ENOSPC, true);
		enum hd_err err = hd_npy_begin(&out, &sim.fs, "out/a.npy", 2, dim, HD_F32, &diag);
		if (!err) {
			hd_npy_rows(&out, 0, 1, rows);
			hd_npy_rows(&out, 1, 1, rows + 1);
		}
		enum hd_err ended = hd_npy_end(&out, !err, &diag);
		err = err ? err : ended;
		hd_fs_sim_fail(&sim, 0, 0, false);
		const uint8_t *file = read_all("out/a.npy", &len);
		assert_memory_equal(file + len - sizeof rows, err ? older : rows, sizeof rows);
		CHECK(!err || diag.text[0], "call %d", (int)call);
		done = !err;
	}
	assert_true(done);
}

static void a_path_without_room_for_its_temporary_name_is_refused(void **state)
{
	static const int64_t dim[] = { 1 };
	char path[HD_PATH_CAP];
	struct hd_diag diag = { "" };
	struct hd_npy_out out;
	(void)state;

	memset(path, 'a', sizeof path);
	path[sizeof path - 4] = '\0';
	assert_int_equal(hd_npy_begin(&out, &sim.fs, path, 1, dim, HD_F32, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "longer than"));
	assert_int_equal(hd_npy_end(&out, false, &diag), HD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_header_is_what_numpy_documents, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rows_lie_in_their_places_whatever_order_they_come_in, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(the_name_appears_with_the_last_row_or_never, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_disk_that_fails_at_any_call_leaves_the_older_file, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_path_without_room_for_its_temporary_name_is_refused,
			set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
