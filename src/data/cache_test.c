#include "data/cache.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "tests/check.h"

enum { LENGTH = 5000 };
static uint8_t held[LENGTH];
static uint32_t nread;
static bool is_down;

static enum hd_err read_held(struct hd_blob *blob, const struct hd_request *request, uint32_t n,
	uint32_t depth, struct hd_diag *diag)
{
	(void)blob, (void)depth;
	nread++;
	if (is_down)
		return hd_fail(diag, HD_E_IO, "the store is away");
	for (uint32_t i = 0; i < n; i++)
		hd_ranges_put(&request[i], request[i].offset, held + request[i].offset, request[i].len);
	return HD_OK;
}

static void keep_open(struct hd_blob *blob) { (void)blob; }
static const struct hd_blob_ops ops = { .name = "held", .read = read_held, .close = keep_open };

static struct hd_blob blob_of(const char *name, uint64_t length)
{
	struct hd_blob blob = { .ops = &ops, .size_bytes = length, .version = "\"v1\"" };

	for (size_t i = 0; i < LENGTH; i++)
		held[i] = (uint8_t)(i * 7 + i / 256);
	(void)snprintf(blob.name, sizeof blob.name, "http://h/%s", name);
	nread = 0;
	return blob;
}

static bool is_whole(struct hd_fs *fs, const char *path, uint64_t length)
{
	struct hd_arena arena;
	uint8_t *bytes;
	size_t len;

	hd_arena_init(&arena, 0);
	const bool is = !hd_file_read_all(fs, path, &arena, LENGTH, &bytes, &len, NULL) && len == length &&
		!memcmp(bytes, held, len);
	hd_arena_finish(&arena);
	return is;
}

/* The disk is full at each call of the system, once and from then on: the object is had all the same, and
 * what is said to be there is whole; after it, with room, the object is kept. */
static void a_full_disk_ends_nothing(void **state)
{
	static const int errors[] = { ENOSPC, EDQUOT, EIO, EROFS };
	const struct hd_blob_rules rules = { .cache = "/kept", .cache_bytes = 20000 };
	uint32_t without = 0;

	(void)state;
	for (size_t k = 0; k < sizeof errors / sizeof *errors; k++)
		for (int on = 0; on < 2; on++)
			for (uint64_t call = 1; call < 40; call++) {
				struct hd_diag warning = { "" }, diag = { "" };
				struct hd_blob blob = blob_of("a", LENGTH);
				char path[HD_PATH_CAP];
				struct hd_fs_sim sim;
				bool there = true;
				hd_fs_sim_init(&sim);
				hd_fs_sim_fail(&sim, call, errors[k], on);
				CHECK(!hd_cache_get(&rules, &blob, &sim.fs, path, &there, &warning, &diag),
					"errno %d at call %d: %s", errors[k], (int)call, diag.text);
				hd_fs_sim_fail(&sim, 0, 0, false);
				CHECK(!there || is_whole(&sim.fs, path, LENGTH), "errno %d at call %d",
					errors[k], (int)call);
				CHECK(there || strstr(warning.text, "data.cache /kept keeps no more"),
					"errno %d at call %d: no warning", errors[k], (int)call);
				without += !there;
				CHECK(!hd_cache_get(&rules, &blob, &sim.fs, path, &there, &warning, &diag) &&
					there && is_whole(&sim.fs, path, LENGTH),
					"errno %d at call %d: not kept after it", errors[k], (int)call);
				hd_fs_sim_finish(&sim);
			}
	assert_true(without > 60);
}

static void a_store_that_fails_is_an_error(void **state)
{
	const struct hd_blob_rules rules = { .cache = "/kept", .cache_bytes = 20000 };
	struct hd_diag warning = { "" }, diag = { "" };
	struct hd_blob blob = blob_of("a", LENGTH);
	char path[HD_PATH_CAP];
	struct hd_fs_sim sim;
	bool there;

	(void)state;
	hd_fs_sim_init(&sim);
	is_down = true;
	assert_int_equal(hd_cache_get(&rules, &blob, &sim.fs, path, &there, &warning, &diag), HD_E_IO);
	assert_string_equal(diag.text, "the store is away");
	assert_string_equal(warning.text, "");
	is_down = false;
	hd_fs_sim_finish(&sim);
}

/* How many files of the folder end so. */
static uint32_t files(struct hd_fs *fs, const char *dir, const char *end)
{
	struct hd_arena arena;
	char **names;
	size_t n;
	uint32_t k = 0;

	hd_arena_init(&arena, 0);
	assert_int_equal(hd_fs_list(fs, dir, &arena, &names, &n, NULL), HD_OK);
	for (size_t i = 0; i < n; i++) {
		const size_t len = strlen(names[i]), tail = strlen(end);
		k += len >= tail && !strcmp(names[i] + len - tail, end);
	}
	hd_arena_finish(&arena);
	return k;
}

/* Fetched, there already, too long, a store that fails; and what a process that is gone has left. */
static void locks_of_objects_do_not_stay(void **state)
{
	const struct hd_blob_rules rules = { .cache = "/kept", .cache_bytes = 6000 };
	static const struct { const char *name; bool down, there; } row[] = { { "a", false, true },
		{ "a", false, true }, { "b", true, false }, { "b", false, true } };
	struct hd_diag warning = { "" }, diag = { "" };
	struct hd_fs_sim sim;
	struct hd_file left;
	char path[HD_PATH_CAP];
	bool there;

	(void)state;
	hd_fs_sim_init(&sim);
	assert_int_equal(hd_fs_mkdirs(&sim.fs, "/kept", NULL), HD_OK);
	assert_int_equal(hd_file_open(&sim.fs, "/kept/0123456789abcdef0123456789abcdef.lock", HD_OPEN_WRITE |
		HD_OPEN_CREATE, &left, NULL), HD_OK);
	assert_int_equal(hd_file_close(&left, NULL), HD_OK);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_blob blob = blob_of(row[i].name, LENGTH);
		is_down = row[i].down;
		CHECK(!hd_cache_get(&rules, &blob, &sim.fs, path, &there, &warning, &diag) == !row[i].down &&
			there == row[i].there, "row %zu: %s", i, diag.text);
		is_down = false;
		CHECK(files(&sim.fs, "/kept", ".lock") == 1 && files(&sim.fs, "/kept", "room.lock") == 1,
			"row %zu: %u locks", i, files(&sim.fs, "/kept", ".lock"));
	}
	struct hd_blob blob = blob_of("long", 7000);
	assert_int_equal(hd_cache_get(&rules, &blob, &sim.fs, path, &there, &warning, &diag), HD_OK);
	assert_true(!there && files(&sim.fs, "/kept", ".lock") == 1);
	hd_fs_sim_finish(&sim);
}

/* Others do something when the lock of the object has been opened and is not locked yet: the one that has it
 * removes it and ends, and a third one takes up the name. */
static struct {
	const struct hd_fs_ops *ops;
	struct hd_fs_ops mine;
	struct hd_file first, third;
	uint32_t turn, nread;
} race;

static void end_first(struct hd_fs *fs, const char *path)
{
	assert_int_equal(hd_fs_unlink(fs, path, NULL), HD_OK);
	assert_int_equal(hd_file_close(&race.first, NULL), HD_OK);
}

static int open_between(struct hd_fs *fs, const char *beneath, const char *path, unsigned how)
{
	struct hd_file room = { 0 };
	const char *end = strrchr(path, '.');

	if (!end || strcmp(end, ".lock") != 0 || strstr(path, "room.lock") || race.turn > 1)
		return race.ops->open(fs, beneath, path, how);
	fs->ops = race.ops;
	if (race.turn++ == 0) {           /* the first one has come before */
		assert_int_equal(hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, &race.first, NULL),
			HD_OK);
		assert_int_equal(hd_file_lock(&race.first, NULL), HD_OK);
	}
	const int id = fs->ops->open(fs, beneath, path, how);
	assert_int_equal(hd_file_open(fs, "/kept/room.lock", HD_OPEN_WRITE | HD_OPEN_CREATE, &room, NULL),
		HD_OK);
	if (hd_file_lock(&room, NULL) == HD_OK) {
		end_first(fs, path);
		assert_int_equal(hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, &race.third, NULL),
			HD_OK);
		assert_int_equal(hd_file_lock(&race.third, NULL), HD_OK);
	} else if (race.turn == 2) {      /* it had its turn between two openings */
		(void)!hd_file_close(&race.first, NULL);
	}
	assert_int_equal(hd_file_close(&room, NULL), HD_OK);
	fs->ops = &race.mine;
	return id;
}

static enum hd_err read_alone(struct hd_blob *blob, const struct hd_request *request, uint32_t n,
	uint32_t depth, struct hd_diag *diag)
{
	assert_false(race.first.fs || race.third.fs);
	race.nread++;
	return read_held(blob, request, n, depth, diag);
}

static void a_lock_that_was_removed_is_held_by_none(void **state)
{
	static const struct hd_blob_ops alone = { .name = "alone", .read = read_alone, .close = keep_open };
	const struct hd_blob_rules rules = { .cache = "/kept", .cache_bytes = 20000 };
	struct hd_diag warning = { "" }, diag = { "" };
	struct hd_blob blob = blob_of("a", LENGTH);
	char path[HD_PATH_CAP];
	struct hd_fs_sim sim;
	bool there;

	(void)state;
	hd_fs_sim_init(&sim);
	race.ops = sim.fs.ops;
	race.mine = *sim.fs.ops;
	race.mine.open = open_between;
	sim.fs.ops = &race.mine;
	blob.ops = &alone;
	assert_int_equal(hd_cache_get(&rules, &blob, &sim.fs, path, &there, &warning, &diag), HD_OK);
	assert_true(there && race.nread);
	sim.fs.ops = race.ops;
	assert_int_equal(files(&sim.fs, "/kept", ".lock"), 1);
	hd_fs_sim_finish(&sim);
}

/* What another process has said and written so far; its lock is held while `lock` is open. */
static void begin_other(struct hd_fs *fs, struct hd_file *lock, const char *text, size_t written)
{
	const char *key = "0123456789abcdef0123456789abcdef";
	char path[HD_PATH_CAP];
	struct hd_file part;

	(void)snprintf(path, sizeof path, "/kept/%s.lock", key);
	assert_int_equal(hd_fs_mkdirs(fs, "/kept", NULL), HD_OK);
	assert_int_equal(hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, lock, NULL), HD_OK);
	assert_int_equal(hd_file_lock(lock, NULL), HD_OK);
	assert_int_equal(hd_file_write(lock, text, strlen(text), NULL), HD_OK);
	(void)snprintf(path, sizeof path, "/kept/%s.part", key);
	assert_int_equal(hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, &part, NULL), HD_OK);
	assert_int_equal(hd_file_write(&part, held, written, NULL), HD_OK);
	assert_int_equal(hd_file_close(&part, NULL), HD_OK);
}

/* Another process has 10 of 8000 bytes: 20000 have room for both objects, 12000 have not. */
static void what_comes_counts_as_it_will_be(void **state)
{
	static const struct { uint64_t budget; const char *text; bool there; } row[] = {
		{ 20000, "00000000000000008000\n", true }, { 12000, "00000000000000008000\n", false },
		{ 13000, "00000000000000008000\n", true }, { 12999, "00000000000000008000\n", false },
		{ 5010, "", true }, { 5009, "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_blob_rules rules = { .cache = "/kept", .cache_bytes = row[i].budget };
		struct hd_diag warning = { "" }, diag = { "" };
		struct hd_blob blob = blob_of("a", LENGTH);
		struct hd_file lock = { 0 };
		char path[HD_PATH_CAP];
		struct hd_fs_sim sim;
		bool there;
		hd_fs_sim_init(&sim);
		begin_other(&sim.fs, &lock, row[i].text, 10);
		CHECK(!hd_cache_get(&rules, &blob, &sim.fs, path, &there, &warning, &diag), "row %zu: %s", i,
			diag.text);
		CHECK(there == row[i].there, "row %zu: %d", i, there);
		assert_string_equal(warning.text, "");
		assert_int_equal(hd_file_close(&lock, NULL), HD_OK);
		/* its process is gone: what it left goes */
		CHECK(!hd_cache_get(&rules, &blob, &sim.fs, path, &there, &warning, &diag) && there,
			"row %zu: not kept after the other process is gone", i);
		hd_fs_sim_finish(&sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_disk_ends_nothing),
		cmocka_unit_test(a_store_that_fails_is_an_error),
		cmocka_unit_test(what_comes_counts_as_it_will_be),
		cmocka_unit_test(locks_of_objects_do_not_stay),
		cmocka_unit_test(a_lock_that_was_removed_is_held_by_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
