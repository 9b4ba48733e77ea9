#include "data/parquet.h"

#include <stdlib.h>

#include "data/parquet/page_int.h"
#include "tests/data_disk.h"

/* Files of tests/data/rows were written by pyarrow (tests/torch/rows.py --fixtures): three rows, two row
 * groups. */

static uint8_t file_bytes[1 << 14];

static size_t load(const char *name)
{
	const char *folder = getenv("SOURCE_DIR");
	char path[HD_PATH_CAP];
	struct hd_fs fs;
	struct hd_file file;
	struct hd_diag diag = { "" };
	size_t len = 0;

	hd_fs_real(&fs);
	snprintf(path, sizeof path, "%s/tests/data/rows/%s.parquet", folder ? folder : ".", name);
	CHECK(!hd_file_open(&fs, path, HD_OPEN_READ, &file, &diag), "%s", diag.text);
	CHECK(!hd_file_read(&file, file_bytes, sizeof file_bytes, &len, &diag), "%s", diag.text);
	CHECK(!hd_file_close(&file, &diag), "%s", diag.text);
	assert_true(len && len < sizeof file_bytes);
	return len;
}

static void put_fixture(const char *name) { put_file(&sim.fs, "d/t.parquet", file_bytes, load(name)); }

static size_t store_varint(uint8_t *at, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		at[n++] = (uint8_t)(v | 0x80);
	at[n++] = (uint8_t)v;
	return n;
}

static struct hd_data_spec spec_of(void) { return (struct hd_data_spec){ .kind = "parquet",
	.path = "d/t.parquet",
	.train = 1, .pad = -1, .seed = 7 }; }

static const char *const packings[] = { "snappy1", "zstd2", "delta", "gzip" };
enum { PACKINGS = sizeof packings / sizeof *packings };

static void numbers_of_all_types_are_read_in_all_packings(void **state)
{
	static const char *const columns[] = { "f", "n", "u", "h", "b", "st.v" };
	static const float want[3][9] = { { 1, 2, 3, 4, 1, 0, 0.5f, 1, 1 }, { 5, 6, 7, 8, -2, 4294967296.0f,
		-2, 0, 2 },
		{ 9, 10, 11, 12, 3, 7, 4, 1, 3 } };
	float x[9];
	int32_t y;

	(void)state;
	for (size_t p = 0; p < PACKINGS; p++) {
		struct hd_data_spec spec = spec_of();
		put_fixture(packings[p]);
		spec.column = columns;
		spec.ncolumns = 6;
		struct hd_dataset *set = open_set(&sim.fs, spec);
		assert_true(set->count == 3 && set->field[0].dim[0] == 9 && set->field[1].rank == 0);
		CHECK(strstr(set->about, "3 rows of 6 columns, d/t.parquet"), "%s", set->about);
		for (uint64_t i = 0; i < 3; i++) {
			read_sample(set, 0, i, x, &y);
			CHECK(!memcmp(x, want[i], sizeof x) && y == (i > 0), "%s row %d", packings[p],
				(int)i);
		}
		hd_dataset_destroy(set);
	}
}

static void lists_have_extents_and_texts_their_bytes(void **state)
{
	static const char *const columns[] = { "t", "f" };
	int32_t x[6], y;

	(void)state;
	for (size_t p = 0; p < PACKINGS; p++) {
		struct hd_data_spec spec = spec_of();
		put_fixture(packings[p]);
		spec.column = columns + 1;
		spec.ncolumns = 1;
		struct hd_dataset *set = open_set(&sim.fs, spec);
		assert_true(set->field[0].rank == 2 && set->field[0].dim[0] == 2 &&
			set->field[0].dim[1] == 2);
		hd_dataset_destroy(set);
		spec.column = columns;
		spec.context = 6;
		spec.tokens = 257;
		spec.pad = 256;
		spec.one_label = true;
		set = open_set(&sim.fs, spec);
		read_sample(set, 0, 1, x, &y);
		assert_true(x[0] == 256 && y == 1);
		read_sample(set, 0, 2, x, &y);
		CHECK(x[0] == 'd' && x[4] == 0xc3 && x[5] == 0xa9, "%s: %d %d", packings[p], x[4], x[5]);
		hd_dataset_destroy(set);
	}
}

static void what_is_not_read_is_named(void **state)
{
	static const struct { const char *file, *column, *says; } cases[] = {
		{ "snappy1", "hole", "d/t.parquet row 2: \"hole\": no value here" },
		{ "snappy1", "ragged", "d/t.parquet row 2: \"ragged\": the shape [2], that of the first row is [1]" },
		{ "snappy1", "bent", "d/t.parquet row 1: \"bent\": lists of several lengths" },
		{ "snappy1", "day", "d/t.parquet: column \"day\" holds dates or times, which are not read" },
		{ "snappy1", "nn", "there is no \"nn\", which data.columns names" },
		{ "snappy1", "st", "there is no \"st\", which data.columns names; did you mean st.v?" },
		{ "brotli", "n", "column \"n\" is packed by brotli, which is not read: write it with snappy" },
		{ "empty", "n", "d/t.parquet has no row" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_data_spec spec = spec_of();
		put_fixture(cases[i].file);
		spec.column = &cases[i].column;
		spec.ncolumns = 1;
		check_refused(&sim.fs, spec, HD_E_INPUT, cases[i].says);
	}
}

/* Each byte of a file turned round, and each cut: an error, or one of no use: pages have checksums. */
static void a_damaged_file_is_an_error_or_the_same(void **state)
{
	static const char *const columns[] = { "n", "b", "f" };
	static const float want[6] = { -2, 0, 5, 6, 7, 8 };
	static uint8_t bad[1 << 14];
	struct hd_data_spec spec = spec_of();
	struct hd_diag diag;
	float x[6];
	int32_t y;

	(void)state;
	spec.column = columns;
	spec.ncolumns = 3;
	const size_t len = load("snappy1");
	for (size_t i = 0; i < len; i++) {
		struct hd_dataset *set = NULL;
		memcpy(bad, file_bytes, len);
		bad[i] ^= 0xff;
		put_file(&sim.fs, "d/t.parquet", bad, len);
		diag.text[0] = 0;
		const enum hd_err err = hd_dataset_open(&set, &spec, &sim.fs, &diag);
		CHECK(!err || err == HD_E_INPUT, "byte %zu: %d %s", i, (int)err, diag.text);
		if (!err) {
			read_sample(set, 0, 1, x, &y);
			CHECK(!memcmp(x, want, sizeof x) && y == 1, "byte %zu", i);
		}
		hd_dataset_destroy(set);
		if (i % 7)
			continue;
		put_file(&sim.fs, "d/t.parquet", bad, i ? i : 1);
		set = NULL;
		CHECK(hd_dataset_open(&set, &spec, &sim.fs, &diag) == HD_E_INPUT, "cut at %zu", i);
	}
}

static void two_files_are_one_set(void **state)
{
	static const char *const columns[] = { "n" };
	struct hd_data_spec spec = spec_of();
	float x;
	int32_t y;

	(void)state;
	spec.column = columns;
	spec.ncolumns = 1;
	put_fixture("delta");
	put_file(&sim.fs, "d/u.parquet", file_bytes, load("zstd2"));
	spec.path = "d/*.parquet";
	struct hd_dataset *set = open_set(&sim.fs, spec);
	assert_true(set->count == 6);
	read_sample(set, 0, 4, &x, &y);
	assert_true(x == -2.0f && y == 1);
	hd_dataset_destroy(set);
}

/* ---- what no writer says ---- */

/* A page of version 2 whose definition levels would have 2^63 - 1 bytes: one null, if that were believed. */
static void a_page_with_levels_beyond_its_end_is_damaged(void **state)
{
	static const uint8_t bytes[] = { 'P', 'A', 'R', '1', 0x15, 6, 0x15, 4, 0x15, 4, 0x5c, 0x15, 2, 0x35,
		0, 0x16, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x16, 4, 0x12, 0, 0,
		1 << 1, 0, 1 << 1, 0 };
	struct hd_parquet_leaf leaf = { .path = "n", .type = HD_PARQUET_INT32, .max_def = 1, .max_rep = 1 };
	struct hd_parquet_chunk chunk = { .at = 4, .len = sizeof bytes - 4, .nvalues = 1 };
	const struct hd_parquet file = { .bytes = bytes, .len = sizeof bytes, .name = "f", .leaf = &leaf,
		.nleaves = 1, .nrows = 1, .chunk = &chunk, .ngroups = 1 };
	struct hd_parquet_cursor c = { .file = &file, .leaf = &leaf };
	struct hd_diag diag = { "" };
	bool found;

	(void)state;
	assert_int_equal(hd_parquet_chunk_begin(&c, 0, &diag), HD_OK);
	assert_int_equal(hd_parquet_page_next(&c, &found, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "the levels of a page are cut off"), "%s", diag.text);
	hd_parquet_cursor_finish(&c);
}

/* A footer of `nleaves` columns, "c0" and on, and one row group of no pages; both say `nrows`, under 64. */
static size_t make_footer(uint8_t *at, uint32_t nleaves, int64_t nrows)
{
	const uint8_t rows = (uint8_t)((uint64_t)nrows << 1 ^ (nrows < 0 ? UINT64_MAX : 0));
	size_t n = 4;

	memcpy(at, "PAR1", 4);
	at[n++] = 0x29, at[n++] = 0xfc, n += store_varint(at + n, nleaves + 1);
	at[n++] = 0x48, at[n++] = 1, at[n++] = 'r', at[n++] = 0x15, n += store_varint(at + n, 2 * nleaves);
	at[n++] = 0;
	for (uint32_t i = 0; i < nleaves; i++) {
		char name[16];
		const size_t len = (size_t)snprintf(name, sizeof name, "c%u", i);
		at[n++] = 0x15, at[n++] = 2, at[n++] = 0x25, at[n++] = 0, at[n++] = 0x18;
		at[n++] = (uint8_t)len;
		memcpy(at + n, name, len);
		n += len;
		at[n++] = 0;
	}
	at[n++] = 0x16, at[n++] = rows, at[n++] = 0x19, at[n++] = 0x1c, at[n++] = 0x19, at[n++] = 0xfc;
	n += store_varint(at + n, nleaves);
	memset(at + n, 0, nleaves);                              /* chunks that say nothing */
	n += nleaves;
	at[n++] = 0x26, at[n++] = rows, at[n++] = 0, at[n++] = 0;
	n += store_le(at + n, n - 4, 4);
	memcpy(at + n, "PAR1", 4);
	return n + 4;
}

static void a_count_of_rows_below_zero_is_damaged(void **state)
{
	struct hd_parquet file;
	struct hd_arena arena;
	struct hd_diag diag = { "" };

	(void)state;
	hd_arena_init(&arena, 0);
	size_t len = make_footer(file_bytes, 1, 5);
	assert_int_equal(hd_parquet_open(&file, &arena, file_bytes, len, "f", &diag), HD_OK);
	assert_true(file.nrows == 5 && file.ngroups == 1);
	len = make_footer(file_bytes, 1, -1);
	assert_int_equal(hd_parquet_open(&file, &arena, file_bytes, len, "f", &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "its count of rows"), "%s", diag.text);
	hd_arena_finish(&arena);
}

/* Of more columns than a row may have those of use are named: it is found, and has no pages here. */
static void one_of_many_columns_is_found(void **state)
{
	static const char *const columns[] = { "c399" }, *const none[] = { "c400" };
	struct hd_data_spec spec = spec_of();

	(void)state;
	put_file(&sim.fs, "d/t.parquet", file_bytes, make_footer(file_bytes, 400, 1));
	check_refused(&sim.fs, spec, HD_E_INPUT, "more than 255 columns: name those of use in data.columns");
	spec.column = columns;
	spec.ncolumns = 1;
	spec.label = "c398";
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"column \"c399\", row group 0: its pages lie in another file");
	spec.column = none;
	check_refused(&sim.fs, spec, HD_E_INPUT, "there is no \"c400\", which data.columns names");
}

/* ---- encodings by the examples of their description ---- */

/* Encodings.md: 0 to 7 in three bits each are 0x88 0xc6 0xfa; runs say their count twice. */
static void runs_and_packed_groups_are_mixed(void **state)
{
	static const uint8_t bytes[] = { 1 << 1 | 1, 0x88, 0xc6, 0xfa, 5 << 1, 6 };
	struct hd_parquet_bytes in = { bytes, bytes + sizeof bytes };
	uint32_t out[13];

	(void)state;
	assert_true(hd_parquet_hybrid(&in, 3, 13, out) && in.at == in.end);
	for (uint32_t i = 0; i < 13; i++)
		assert_int_equal(out[i], i < 8 ? i : 6);
	in = (struct hd_parquet_bytes){ bytes, bytes + sizeof bytes };
	assert_false(hd_parquet_hybrid(&in, 3, 14, out));
	in = (struct hd_parquet_bytes){ bytes, bytes + 3 };
	assert_false(hd_parquet_hybrid(&in, 3, 8, out));
	static const uint8_t wide[] = { 1 << 1, 8 };             /* 8 has no place in three bits */
	in = (struct hd_parquet_bytes){ wide, wide + 2 };
	assert_false(hd_parquet_hybrid(&in, 3, 1, out));
}

/* Encodings.md: 7, 5, 3, 1, 2, 3, 4, 5: least difference -2, the others 0 0 0 3 3 3 3 in two bits. */
static void differences_are_added_up(void **state)
{
	static const uint8_t bytes[] = { 8, 1, 8, 14, 3, 2, 0xc0, 0x3f };
	static const int64_t want[] = { 7, 5, 3, 1, 2, 3, 4, 5 };
	struct hd_parquet_bytes in = { bytes, bytes + sizeof bytes };
	struct hd_parquet_value out[8];

	(void)state;
	assert_true(hd_parquet_delta(&in, true, 8, out));
	for (int i = 0; i < 8; i++)
		assert_int_equal(out[i].as.whole, want[i]);
	in = (struct hd_parquet_bytes){ bytes, bytes + sizeof bytes };
	assert_false(hd_parquet_delta(&in, true, 7, out));
	in = (struct hd_parquet_bytes){ bytes, bytes + 7 };
	assert_false(hd_parquet_delta(&in, true, 8, out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_DISK(numbers_of_all_types_are_read_in_all_packings),
		ON_DISK(lists_have_extents_and_texts_their_bytes),
		ON_DISK(what_is_not_read_is_named),
		ON_DISK(a_damaged_file_is_an_error_or_the_same),
		ON_DISK(two_files_are_one_set),
		cmocka_unit_test(a_page_with_levels_beyond_its_end_is_damaged),
		cmocka_unit_test(a_count_of_rows_below_zero_is_damaged),
		ON_DISK(one_of_many_columns_is_found),
		cmocka_unit_test(runs_and_packed_groups_are_mixed),
		cmocka_unit_test(differences_are_added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
