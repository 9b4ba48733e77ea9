#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/data_disk.h"

static int set_up(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	put_folder(&sim.fs, "texts");
	return 0;
}

static struct hd_data_spec text_of(const char *path, uint32_t context)
{
	return (struct hd_data_spec){ .kind = "text", .path = path, .context = context, .classes = 256,
		.train = 1 };
}

static void a_sample_is_the_bytes_and_the_same_one_later(void **state)
{
	int32_t x[4], y[4];
	(void)state;

	put_text(&sim.fs, "texts/a.txt", "hello, world!");
	struct hd_dataset *set = open_set(&sim.fs, text_of("texts/a.txt", 4));
	assert_int_equal(set->count, 3);
	assert_int_equal(set->split[0].count, 3);
	assert_string_equal(set->field[0].name, "x");
	assert_string_equal(set->field[1].name, "y");
	assert_int_equal(set->field[0].dtype, HD_I32);
	assert_int_equal(set->field[1].sample_bytes, 16);
	read_sample(set, 0, 1, x, y);
	for (int i = 0; i < 4; i++)
		CHECK(x[i] == "hello, world!"[4 + i] && y[i] == "hello, world!"[5 + i], "at %d: %d %d", i,
			(int)x[i], (int)y[i]);
	hd_dataset_destroy(set);
}

/* Oracle: the file that holds all the bytes. Pieces of 1, 2, 3 ... bytes cross every sample. */
static void several_files_read_as_one_in_the_order_of_their_names(void **state)
{
	char whole[256];
	size_t len = 0;
	int32_t x[2][5], y[2][5];
	(void)state;

	for (int f = 0; f < 15; f++) {
		char name[32], part[16];
		for (int i = 0; i <= f; i++)
			part[i] = (char)(32 + (f * 7 + i * 3) % 90);
		snprintf(name, sizeof name, "texts/%02d.txt", f);
		put_file(&sim.fs, name, part, (size_t)f + 1);
		memcpy(whole + len, part, (size_t)f + 1);
		len += (size_t)f + 1;
	}
	put_file(&sim.fs, "whole", whole, len);
	put_text(&sim.fs, "texts/not-this.md", "other");
	put_text(&sim.fs, "texts/.hidden.txt", "other");
	struct hd_dataset *many = open_set(&sim.fs, text_of("texts/*.txt", 5)),
		*one = open_set(&sim.fs, text_of("whole", 5));
	assert_int_equal(many->count, (120 - 1) / 5);
	assert_int_equal(many->count, one->count);
	assert_true(hd_hash_same(many->hash, one->hash));
	for (uint64_t i = 0; i < many->count; i++) {
		read_sample(many, 0, i, x[0], y[0]);
		read_sample(one, 0, i, x[1], y[1]);
		assert_memory_equal(x[0], x[1], sizeof x[0]);
		assert_memory_equal(y[0], y[1], sizeof y[0]);
	}
	hd_dataset_destroy(many);
	hd_dataset_destroy(one);
}

static void write_at(const char *path, const char *text, int64_t at, struct hd_fs *fs, int64_t seconds)
{
	struct hd_file file = { 0 };
	struct hd_diag diag = { "" };
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = seconds } };

	CHECK(hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, &file, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_file_pwrite(&file, text, strlen(text), at, &diag) == HD_OK &&
		hd_file_close(&file, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Of the system's files alone: a map of the simulated ones is a copy. */
static void a_file_that_is_written_to_under_its_map_is_found_to_be_another(void **state)
{
	char folder[] = "/tmp/hd_stream_test.XXXXXX", path[64];
	struct hd_diag diag = { "" };
	struct hd_fs fs;
	(void)state;

	hd_fs_real(&fs);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/text", folder);
	write_at(path, "hello, world!", 0, &fs, 100);
	struct hd_dataset *set = open_set(&fs, text_of(path, 4));
	assert_int_equal(set->nfiles, 1);
	assert_string_equal(set->file[0].name, path);
	assert_int_equal(hd_dataset_look(set, &fs, &diag), HD_OK);
	write_at(path, "hello", 0, &fs, 200);      /* the same bytes, another time of change */
	assert_int_equal(hd_dataset_look(set, &fs, &diag), HD_OK);
	write_at(path, "jello", 0, &fs, 300);
	assert_int_equal(hd_dataset_look(set, &fs, &diag), HD_E_INTEGRITY);
	CHECK(strstr(diag.text, path) && strstr(diag.text, "was written to while it is in use"), "%s",
		diag.text);
	hd_dataset_destroy(set);

	set = open_set(&fs, text_of(path, 4));
	CHECK(!hd_fs_unlink(&fs, path, &diag), "%s", diag.text);
	assert_int_equal(hd_dataset_look(set, &fs, NULL), HD_OK);        /* the map is of the old one */
	write_at(path, "other, world!", 0, &fs, 400);
	assert_int_equal(hd_dataset_look(set, &fs, NULL), HD_OK);
	hd_dataset_destroy(set);
	CHECK(!hd_fs_remove_tree(&fs, folder, &diag), "%s", diag.text);
}

static void the_last_token_is_a_target_and_what_is_left_over_is_not_used(void **state)
{
	static const struct { const char *text; uint64_t count; } cases[] =
		{ { "abcd", 1 }, { "abcdef", 1 }, { "abcdefg", 2 } };
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		put_text(&sim.fs, "t", cases[i].text);
		struct hd_dataset *set = open_set(&sim.fs, text_of("t", 3));
		CHECK(set->count == cases[i].count, "%s: %llu", cases[i].text,
			(unsigned long long)set->count);
		hd_dataset_destroy(set);
	}
}

static void the_validation_split_is_the_last_part(void **state)
{
	struct hd_data_spec spec = text_of("t", 1);
	int32_t x, y;
	(void)state;

	put_text(&sim.fs, "t", "0123456789abcdefghijk");
	spec.train = 0.9;
	spec.valid = 0.1;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	uint32_t valid = hd_dataset_split(set, "valid");
	assert_int_equal(set->split[0].count, 18);
	assert_int_equal(set->split[valid].count, 2);
	read_sample(set, valid, 0, &x, &y);
	assert_int_equal(x, 'i');
	read_sample(set, 0, 17, &x, &y);
	assert_int_equal(y, 'i');
	hd_dataset_destroy(set);
}

static void a_byte_beyond_the_vocabulary_is_reported_with_its_place(void **state)
{
	struct hd_data_spec spec = text_of("texts/*", 2);
	(void)state;

	put_text(&sim.fs, "texts/a", "abc");
	put_text(&sim.fs, "texts/b", "abz");
	spec.classes = 122;
	check_refused(&sim.fs, spec, HD_E_INPUT, "texts/b: token 122 at byte 2, the model knows 0 to 121: "
		"give the model a vocabulary of 123 or more");
	spec.classes = 97;
	check_refused(&sim.fs, spec, HD_E_INPUT, "texts/a: token 97 at byte 0");
	spec.classes = 123;
	hd_dataset_destroy(open_set(&sim.fs, spec));
}

static void missing_empty_short_and_odd_paths_say_what_to_do(void **state)
{
	(void)state;
	put_text(&sim.fs, "empty", "");
	put_text(&sim.fs, "short", "abcd");
	check_refused(&sim.fs, text_of("nothing.txt", 4), HD_E_NOTFOUND, "nothing.txt");
	check_refused(&sim.fs, text_of("texts/*.none", 4), HD_E_NOTFOUND, "no file matches");
	check_refused(&sim.fs, text_of("empty", 4), HD_E_INPUT, "is empty");
	check_refused(&sim.fs, text_of("short", 4), HD_E_INPUT, "4 bytes of text, one sample needs 5");
	check_refused(&sim.fs, text_of("texts", 4), HD_E_INPUT, "is a folder");
	check_refused(&sim.fs, text_of("t*/a", 4), HD_E_INVAL, "last part");
	check_refused(&sim.fs, text_of(NULL, 4), HD_E_INVAL, "set data.path");
	check_refused(&sim.fs, text_of("short", 0), HD_E_INVAL, "context");
	struct hd_data_spec none = text_of("short", 3);
	none.train = none.valid = 0.5;
	check_refused(&sim.fs, none, HD_E_INPUT, "none is left to train on");
}

/* Each call on the files fails once, with every code a disk gives; nothing may leak and the message names the
 * file. */
static void every_failing_call_is_reported(void **state)
{
	static const int errors[] = { 5 /* EIO */, 13 /* EACCES */, 12 /* ENOMEM */ };
	(void)state;

	put_text(&sim.fs, "texts/a.txt", "hello, world!");
	for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++)
		for (uint64_t n = 1;; n++) {
			struct hd_dataset *set = NULL;
			struct hd_diag diag = { "" };
			struct hd_data_spec spec = text_of("texts/*.txt", 4);
			hd_fs_sim_fail(&sim, n, errors[e], false);
			uint64_t before = sim.calls;
			enum hd_err err = hd_dataset_open(&set, &spec, &sim.fs, &diag);
			bool reached = sim.calls >= before + n;
			hd_fs_sim_fail(&sim, 0, 0, false);
			hd_dataset_destroy(set);
			if (!reached) {
				CHECK(err == HD_OK && n > 3, "%s after %llu calls", diag.text,
					(unsigned long long)n);
				break;
			}
			CHECK(err != HD_OK && strstr(diag.text, "texts"), "errno %d at call %llu: %d '%s'",
				errors[e], (unsigned long long)n, (int)err, diag.text);
		}
}

static uint16_t ascending(uint32_t i) { return (uint16_t)(i * 31 % 50257); }

static struct hd_data_spec tokens_of(uint32_t context, uint32_t classes)
{
	return (struct hd_data_spec){ .kind = "tokens", .path = "shard", .context = context,
		.classes = classes, .train = 1 };
}

static void tokens_are_16_bits_wide_and_shifted_by_one(void **state)
{
	uint8_t file[4096];
	int32_t x[7], y[7];
	(void)state;

	put_file(&sim.fs, "shard", file, make_tokens(file, 1500, ascending));
	struct hd_dataset *set = open_set(&sim.fs, tokens_of(7, 50257));
	assert_int_equal(set->count, 1499 / 7);
	read_sample(set, 0, 200, x, y);
	for (uint32_t i = 0; i < 7; i++)
		CHECK(x[i] == ascending(1400 + i) && y[i] == ascending(1401 + i), "at %u: %d", i, (int)x[i]);
	hd_dataset_destroy(set);
}

/* The head of llm.c's files for Llama 3, and tokens of four bytes. */
static size_t make_wide(uint8_t *file, uint32_t n, uint32_t step)
{
	const uint32_t head[3] = { 20240801, 7, n };

	memset(file, 0, 1024);
	for (uint32_t i = 0; i < 3 + n; i++) {
		const uint32_t v = i < 3 ? head[i] : (i - 3) * step;
		for (unsigned b = 0; b < 4; b++)
			file[(i < 3 ? 4 * i : 1024 + 4 * (i - 3)) + b] = (uint8_t)(v >> 8 * b);
	}
	return 1024 + 4 * (size_t)n;
}

static void tokens_of_32_bits_are_read_by_their_own_head(void **state)
{
	uint8_t file[2048];
	int32_t x[7], y[7];
	(void)state;

	put_file(&sim.fs, "shard", file, make_wide(file, 100, 1281));
	struct hd_dataset *set = open_set(&sim.fs, tokens_of(7, 128256));
	assert_int_equal(set->count, 99 / 7);
	read_sample(set, 0, 13, x, y);
	for (uint32_t i = 0; i < 7; i++)
		CHECK(x[i] == (int32_t)(91 + i) * 1281 && y[i] == (int32_t)(92 + i) * 1281, "at %u: %d", i,
			(int)x[i]);
	hd_dataset_destroy(set);
	check_refused(&sim.fs, tokens_of(7, 70000), HD_E_INPUT, "shard: token 70455 at byte 1244");
	put_file(&sim.fs, "shard", file, make_wide(file, 100, 1281) - 1);
	check_refused(&sim.fs, tokens_of(7, 128256), HD_E_INPUT, "100 tokens need 1424 bytes, it has 1423");
	put_file(&sim.fs, "shard", file, make_wide(file, 100, 1u << 30));
	check_refused(&sim.fs, tokens_of(7, 0), HD_E_INPUT, "token 2147483648 at byte 1032");
}

static void a_token_beyond_the_vocabulary_is_reported_with_its_offset(void **state)
{
	uint8_t file[4096];
	(void)state;

	put_file(&sim.fs, "shard", file, make_tokens(file, 1500, ascending));
	check_refused(&sim.fs, tokens_of(7, 310), HD_E_INPUT, "shard: token 310 at byte 1044");
}

static void bad_token_files_are_refused(void **state)
{
	static const struct { size_t at, bytes; uint64_t value; size_t cut; const char *says; } cases[] = {
		{ 0, 4, 20240521, 0, "not a token file" }, { 4, 4, 2, 0, "version 2" }, { 8, 4, 101, 0, "101 tokens need 1226 bytes, it has 1224" },
		{ 8, 4, 99, 0, "longer than its header" }, { 8, 4, UINT32_MAX, 0, "above the format's limit" }, { 0, 0, 0, 201, "cut off" },
		{ 0, 0, 0, 1, "cut off" }, { 8, 4, 0, 200, "0 tokens" },
	};
	uint8_t file[4096];
	(void)state;

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		size_t len = make_tokens(file, 100, ascending);
		store_le(file + cases[c].at, cases[c].value, cases[c].bytes);
		put_file(&sim.fs, "shard", file, len - cases[c].cut);
		check_refused(&sim.fs, tokens_of(7, 0), HD_E_INPUT, cases[c].says);
	}
}

static void a_token_written_over_after_open_is_an_integrity_error_not_a_wild_index(void **state)
{
	uint8_t file[4096];
	int32_t x[7], y[7];
	void *out[] = { x, y };
	struct hd_diag diag = { "" };
	struct hd_data_spec spec = tokens_of(7, 50257);
	struct hd_fs real;
	(void)state;

	hd_fs_real(&real);
	spec.path = "stream_test.shard";
	put_file(&real, spec.path, file, make_tokens(file, 100, ascending));
	struct hd_dataset *set = open_set(&real, spec);
	struct hd_file open = { 0 };
	assert_int_equal(hd_file_open(&real, spec.path, HD_OPEN_WRITE, &open, &diag), HD_OK);
	assert_int_equal(hd_file_pwrite(&open, "\xff\xff", 2, 1024 + 2 * 3, &diag), HD_OK);
	assert_int_equal(hd_file_close(&open, &diag), HD_OK);
	assert_int_equal(set->ops->read(set, 0, 0, out, &diag), HD_E_INTEGRITY);
	hd_dataset_destroy(set);
	assert_int_equal(hd_fs_unlink(&real, spec.path, &diag), HD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_sample_is_the_bytes_and_the_same_one_later,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(several_files_read_as_one_in_the_order_of_their_names,
			set_up, tear_down),
		cmocka_unit_test(a_file_that_is_written_to_under_its_map_is_found_to_be_another),
		cmocka_unit_test_setup_teardown(the_last_token_is_a_target_and_what_is_left_over_is_not_used,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_validation_split_is_the_last_part, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_byte_beyond_the_vocabulary_is_reported_with_its_place,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(missing_empty_short_and_odd_paths_say_what_to_do,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_failing_call_is_reported, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tokens_of_32_bits_are_read_by_their_own_head, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(tokens_are_16_bits_wide_and_shifted_by_one,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_token_beyond_the_vocabulary_is_reported_with_its_offset,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(bad_token_files_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_token_written_over_after_open_is_an_integrity_error_not_a_wild_index,
			set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
