#include "sys/file_sim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/check.h"

static bool keep_all(void *user, size_t i) { (void)user; (void)i; return true; }
static bool keep_bits(void *user, size_t i) { return *(const uint32_t *)user >> i & 1; }

static void put(struct hd_fs_sim *sim, const char *path, const void *bytes, size_t len, bool sync)
{
	struct hd_file file = { 0 };
	assert_int_equal(hd_file_open(&sim->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, &file, NULL), HD_OK);
	assert_int_equal(hd_file_write(&file, bytes, len, NULL), HD_OK);
	if (sync)
		assert_int_equal(hd_file_sync(&file, NULL), HD_OK);
	assert_int_equal(hd_file_close(&file, NULL), HD_OK);
}

/* The content of a file, "-" if there is none; into text[64]. */
static const char *get(struct hd_fs_sim *sim, const char *path, char *text)
{
	struct hd_file file = { 0 };
	size_t got = 0;
	if (hd_file_open(&sim->fs, path, 0, &file, NULL))
		return "-";
	assert_int_equal(hd_file_read(&file, text, 63, &got, NULL), HD_OK);
	text[got] = 0;
	assert_int_equal(hd_file_close(&file, NULL), HD_OK);
	return text;
}

static void a_crash_takes_what_was_not_synced(void **state)
{
	struct hd_fs_sim sim;
	char text[64];

	(void)state;
	hd_fs_sim_init(&sim);
	put(&sim, "/synced", "a", 1, true);
	assert_int_equal(hd_fs_sync_folder(&sim.fs, "/", NULL), HD_OK);
	put(&sim, "/nameless", "b", 1, true);        /* the content is durable, its name is not */
	put(&sim, "/synced", "B", 1, false);
	assert_int_equal(hd_fs_sim_unsynced(&sim), 2);
	hd_fs_sim_crash(&sim, NULL, NULL);
	assert_string_equal(get(&sim, "/synced", text), "a");
	assert_string_equal(get(&sim, "/nameless", text), "-");
	assert_int_equal(hd_fs_sim_unsynced(&sim), 0);
	hd_fs_sim_finish(&sim);
}

static void a_crash_may_keep_all(void **state)
{
	struct hd_fs_sim sim;
	char text[64];

	(void)state;
	hd_fs_sim_init(&sim);
	put(&sim, "/a", "1", 1, false);
	assert_int_equal(hd_fs_mkdir(&sim.fs, "/d", NULL), HD_OK);
	assert_int_equal(hd_fs_rename(&sim.fs, "/a", "/d/b", NULL), HD_OK);
	hd_fs_sim_crash(&sim, keep_all, NULL);
	assert_string_equal(get(&sim, "/d/b", text), "1");
	assert_string_equal(get(&sim, "/a", text), "-");
	hd_fs_sim_finish(&sim);
}

static void a_write_tears_at_sectors_in_any_combination(void **state)
{
	(void)state;
	for (uint32_t kept = 0; kept < 8; kept++) {
		struct hd_fs_sim sim;
		struct hd_file file = { 0 };
		uint8_t old[3 * HD_SECTOR_BYTES], new[3 * HD_SECTOR_BYTES], back[3 * HD_SECTOR_BYTES];
		size_t got;

		hd_fs_sim_init(&sim);
		memset(old, 'o', sizeof old);
		memset(new, 'n', sizeof new);
		put(&sim, "f", old, sizeof old, true);
		assert_int_equal(hd_fs_sync_folder(&sim.fs, ".", NULL), HD_OK);
		put(&sim, "f", new, sizeof new, false);
		assert_int_equal(hd_fs_sim_unsynced(&sim), 3);
		hd_fs_sim_crash(&sim, keep_bits, &kept);
		assert_int_equal(hd_file_open(&sim.fs, "f", 0, &file, NULL), HD_OK);
		assert_int_equal(hd_file_read(&file, back, sizeof back, &got, NULL), HD_OK);
		assert_int_equal(got, sizeof back);
		for (size_t i = 0; i < sizeof back; i++)
			CHECK(back[i] == (kept >> (i / HD_SECTOR_BYTES) & 1 ? 'n' : 'o'), "kept %u, byte %zu",
				kept, i);
		assert_int_equal(hd_file_close(&file, NULL), HD_OK);
		hd_fs_sim_finish(&sim);
	}
}

static void a_size_is_lost_or_kept_apart_from_the_bytes(void **state)
{
	static const struct { uint32_t kept; size_t len; char byte; } grown[] = { { 0, 2, 0 }, { 1, 4, 0 },
		{ 2, 2, 0 }, { 3, 4, 'b' } };
	char text[64];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct hd_fs_sim sim;
		uint32_t kept = grown[i].kept;
		struct hd_stat stat;

		hd_fs_sim_init(&sim);
		put(&sim, "f", "aa", 2, true);
		assert_int_equal(hd_fs_sync_folder(&sim.fs, "/", NULL), HD_OK);
		put(&sim, "f", "aabb", 4, false);
		hd_fs_sim_crash(&sim, keep_bits, &kept);
		assert_int_equal(hd_fs_stat(&sim.fs, "f", &stat, NULL), HD_OK);
		CHECK(stat.size_bytes == (int64_t)grown[i].len, "kept %u: %lld", kept,
			(long long)stat.size_bytes);
		get(&sim, "f", text);
		assert_memory_equal(text, "aa", 2);
		if (grown[i].len == 4)
			assert_int_equal(text[3], grown[i].byte);
		hd_fs_sim_finish(&sim);
	}
	/* a cut that is lost brings the end back */
	struct hd_fs_sim sim;
	hd_fs_sim_init(&sim);
	put(&sim, "f", "abcd", 4, true);
	assert_int_equal(hd_fs_sync_folder(&sim.fs, "/", NULL), HD_OK);
	struct hd_file file = { 0 };
	assert_int_equal(hd_file_open(&sim.fs, "f", HD_OPEN_WRITE, &file, NULL), HD_OK);
	assert_int_equal(hd_file_truncate(&file, 1, NULL), HD_OK);
	hd_fs_sim_crash(&sim, NULL, NULL);
	assert_string_equal(get(&sim, "f", text), "abcd");
	hd_fs_sim_finish(&sim);
}

static void a_lost_name_takes_the_later_ones_of_its_folder(void **state)
{
	(void)state;
	for (uint32_t kept = 0; kept < 16; kept++) {
		struct hd_fs_sim sim;
		char text[64];

		hd_fs_sim_init(&sim);
		assert_int_equal(hd_fs_mkdir(&sim.fs, "/d", NULL), HD_OK);
		assert_int_equal(hd_fs_sync_folder(&sim.fs, "/", NULL), HD_OK);
		put(&sim, "/a", "1", 1, true);
		put(&sim, "/d/x", "2", 1, true);
		assert_int_equal(hd_fs_rename(&sim.fs, "/a", "/b", NULL), HD_OK);
		assert_int_equal(hd_fs_unlink(&sim.fs, "/d/x", NULL), HD_OK);
		assert_int_equal(hd_fs_sim_unsynced(&sim), 4);
		hd_fs_sim_crash(&sim, keep_bits, &kept);
		bool a = kept & 1, x = kept & 2, b = a && kept & 4, unlinked = x && kept & 8;
		assert_string_equal(get(&sim, "/a", text), a && !b ? "1" : "-");
		assert_string_equal(get(&sim, "/b", text), b ? "1" : "-");
		assert_string_equal(get(&sim, "/d/x", text), x && !unlinked ? "2" : "-");
		hd_fs_sim_finish(&sim);
	}
}

static void a_rename_into_another_folder_needs_the_changes_of_its_source(void **state)
{
	(void)state;
	for (uint32_t kept = 0; kept < 4; kept++)
		for (int sync = 0; sync < 2; sync++) {
			struct hd_fs_sim sim;
			char text[64];

			hd_fs_sim_init(&sim);
			assert_int_equal(hd_fs_mkdir(&sim.fs, "/d", NULL), HD_OK);
			assert_int_equal(hd_fs_sync_folder(&sim.fs, "/", NULL), HD_OK);
			put(&sim, "/a", "1", 1, true);
			assert_int_equal(hd_fs_rename(&sim.fs, "/a", "/d/b", NULL), HD_OK);
			if (sync)
				assert_int_equal(hd_fs_sync_folder(&sim.fs, "/d", NULL), HD_OK);
			hd_fs_sim_crash(&sim, keep_bits, &kept);
			assert_string_equal(get(&sim, "/d/b", text), sync || kept == 3 ? "1" : "-");
			assert_string_equal(get(&sim, "/a", text), !sync && kept == 1 ? "1" : "-");
			hd_fs_sim_finish(&sim);
		}
}

static void syncing_a_folder_keeps_its_names_only(void **state)
{
	struct hd_fs_sim sim;
	char text[64];

	(void)state;
	hd_fs_sim_init(&sim);
	assert_int_equal(hd_fs_mkdirs(&sim.fs, "/d/e", NULL), HD_OK);
	put(&sim, "/d/e/f", "deep", 4, true);
	assert_int_equal(hd_fs_sync_folder(&sim.fs, "/d/e", NULL), HD_OK);
	put(&sim, "/g", "high", 4, true);
	assert_int_equal(hd_fs_rename(&sim.fs, "/d", "/D", NULL), HD_OK);
	assert_int_equal(hd_fs_sync_folder(&sim.fs, "/", NULL), HD_OK);
	hd_fs_sim_crash(&sim, NULL, NULL);
	assert_string_equal(get(&sim, "/g", text), "high");
	assert_string_equal(get(&sim, "/D/e/f", text), "-");       /* /D was not synced: "e" is gone */
	hd_fs_sim_finish(&sim);
}

/* The promise of file.h, invariant 4, at every call and for every combination of what survives. */
static void an_atomic_write_is_old_or_new_at_every_crash(void **state)
{
	unsigned opened = 0, old_seen = 0, new_seen = 0;
	char text[64];

	(void)state;
	for (uint64_t call = 1; call <= 8; call++) {
		size_t questions = 1;
		for (uint32_t kept = 0; kept < 1u << questions; kept++) {
			struct hd_fs_sim sim;
			hd_fs_sim_init(&sim);
			assert_int_equal(hd_file_write_atomic(&sim.fs, "/m", "old!", 4, NULL), HD_OK);
			hd_fs_sim_fail(&sim, call, EIO, true);
			enum hd_err err = hd_file_write_atomic(&sim.fs, "/m", "newer", 5, NULL);
			questions = hd_fs_sim_unsynced(&sim);
			assert_in_range(questions, 0, 8);
			hd_fs_sim_crash(&sim, keep_bits, &kept);
			get(&sim, "/m", text);
			bool is_new = !strcmp(text, "newer");
			CHECK(is_new || !strcmp(text, "old!"), "call %llu, kept %u: \"%s\"",
				(unsigned long long)call, kept, text);
			CHECK(err || is_new, "call %llu, kept %u: reported as written",
				(unsigned long long)call, kept);
			opened++;
			old_seen += !is_new;
			new_seen += is_new;
			hd_fs_sim_finish(&sim);
		}
	}
	CHECK(opened > 12 && old_seen && new_seen, "%u states, %u old, %u new", opened, old_seen, new_seen);
}

static void the_nth_call_fails_and_leaves_no_mixture(void **state)
{
	static const struct { int error; enum hd_err code; } cases[] = {
		{ ENOSPC, HD_E_REFUSED }, { EIO, HD_E_IO }, { EACCES, HD_E_REFUSED }, { EROFS, HD_E_REFUSED }, { EMFILE, HD_E_REFUSED },
	};
	char text[64];

	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
		for (uint64_t n = 1; ; n++) {
			struct hd_fs_sim sim;
			struct hd_diag diag = { "" };
			char **names;
			size_t n_names;
			struct hd_arena arena;

			hd_fs_sim_init(&sim);
			hd_arena_init(&arena, 0);
			assert_int_equal(hd_file_write_atomic(&sim.fs, "/m", "old!", 4, NULL), HD_OK);
			uint64_t before = sim.calls;
			hd_fs_sim_fail(&sim, n, cases[c].error, false);
			enum hd_err err = hd_file_write_atomic(&sim.fs, "/m", "newer", 5, &diag);
			bool reached = sim.calls - before >= n;
			CHECK(!reached || (err == cases[c].code && diag.text[0]),
				"call %llu, errno %d: %d %s", (unsigned long long)n, cases[c].error,
				err, diag.text);
			get(&sim, "/m", text);
			CHECK(!strcmp(text, "old!") || !strcmp(text, "newer"), "call %llu: %s",
				(unsigned long long)n, text);
			assert_int_equal(hd_fs_list(&sim.fs, "/", &arena, &names, &n_names, NULL), HD_OK);
			assert_int_equal(n_names, 1);        /* no temporary file is left */
			hd_arena_finish(&arena);
			hd_fs_sim_finish(&sim);
			if (!reached) {
				CHECK(err == HD_OK && n > 6, "%llu calls", (unsigned long long)n);
				break;
			}
		}
}

static void short_transfers_and_interrupts_are_not_seen_above(void **state)
{
	struct hd_fs_sim sim;
	uint8_t bytes[1000], *back;
	struct hd_arena arena;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7);
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	sim.short_bytes = 7;
	sim.interrupt_every = 3;
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/f", bytes, sizeof bytes, NULL), HD_OK);
	assert_int_equal(hd_file_read_all(&sim.fs, "/f", &arena, 1000, &back, &len, NULL), HD_OK);
	assert_int_equal(len, sizeof bytes);
	assert_memory_equal(back, bytes, sizeof bytes);
	assert_true(sim.calls > 2 * 1000 / 7);
	size_t interrupts[HD_FS_CALL_COUNT] = { 0 };
	for (size_t i = 0; i < sim.n_log; i++)
		interrupts[sim.log[i].call] += sim.log[i].result == -EINTR;
	assert_true(interrupts[HD_FS_READ] > 30 && interrupts[HD_FS_WRITE] > 30);
	/* EINTR at open, sync and rename is repeated or harmless */
	for (uint64_t n = 1; n < 4; n++) {
		hd_fs_sim_fail(&sim, n, EINTR, false);
		CHECK(!hd_file_write_atomic(&sim.fs, "/g", "x", 1, NULL), "call %llu", (unsigned long long)n);
	}
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

static void the_log_tells_what_was_done(void **state)
{
	static const enum hd_fs_call want[] = { HD_FS_OPEN, HD_FS_WRITE, HD_FS_SYNC, HD_FS_CLOSE,
		HD_FS_RENAME, HD_FS_OPEN, HD_FS_SYNC, HD_FS_CLOSE };
	struct hd_fs_sim sim;

	(void)state;
	hd_fs_sim_init(&sim);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/a-file", "xyz", 3, NULL), HD_OK);
	assert_int_equal(sim.n_log, sizeof want / sizeof *want);
	for (size_t i = 0; i < sim.n_log; i++)
		CHECK(sim.log[i].call == want[i], "call %zu is %s, not %s", i,
			hd_fs_call_text(sim.log[i].call), hd_fs_call_text(want[i]));
	assert_string_equal(sim.log[0].path, "/a-file.tmp");
	assert_int_equal(sim.log[1].result, 3);
	assert_string_equal(sim.log[5].path, "/");
	hd_fs_sim_finish(&sim);
}

static void a_full_disk_takes_half_of_the_write(void **state)
{
	struct hd_fs_sim sim;
	struct hd_file file = { 0 };
	struct hd_stat stat;

	(void)state;
	hd_fs_sim_init(&sim);
	assert_int_equal(hd_file_open(&sim.fs, "f", HD_OPEN_WRITE | HD_OPEN_CREATE, &file, NULL), HD_OK);
	hd_fs_sim_fail(&sim, 1, ENOSPC, false);
	assert_int_equal(hd_file_write(&file, "12345678", 8, NULL), HD_E_REFUSED);
	assert_int_equal(hd_fs_stat(&sim.fs, "f", &stat, NULL), HD_OK);
	assert_int_equal(stat.size_bytes, 4);
	assert_int_equal(hd_file_close(&file, NULL), HD_OK);
	hd_fs_sim_finish(&sim);
}

static int told_one_byte_less(struct hd_fs *fs, const char *path, bool follow, struct hd_stat *stat)
{
	(void)fs, (void)path, (void)follow;
	*stat = (struct hd_stat){ .kind = HD_FILE_REGULAR, .size_bytes = 4 };
	return 0;
}

static void a_file_that_grows_while_it_is_read_is_not_taken_for_whole(void **state)
{
	struct hd_fs_sim sim;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	uint8_t *bytes;
	size_t len;

	(void)state;
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/f", "12345", 5, NULL), HD_OK);
	struct hd_fs_ops growing = *sim.fs.ops;
	growing.stat = told_one_byte_less;
	sim.fs.ops = &growing;
	assert_int_equal(hd_file_read_all(&sim.fs, "/f", &arena, 100, &bytes, &len, &diag), HD_E_INPUT);
	assert_non_null(strstr(diag.text, "grew"));
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

static void a_file_system_with_too_little_room_is_named_with_what_is_missing(void **state)
{
	struct hd_fs_space space = { 0 };
	struct hd_fs_sim sim;
	struct hd_diag diag = { "" };
	struct hd_fs real;
	(void)state;

	hd_fs_sim_init(&sim);
	assert_int_equal(hd_fs_space(&sim.fs, "/f", &space), HD_E_NOTFOUND);
	/* unknown */
	assert_int_equal(hd_fs_has_space(&sim.fs, "/f", UINT64_MAX, "it", &diag), HD_OK);
	sim.free_bytes = 3 << 20;
	assert_int_equal(hd_fs_space(&sim.fs, "/f", &space), HD_OK);
	assert_int_equal(space.free_bytes, 3 << 20);
	assert_int_equal(hd_fs_has_space(&sim.fs, "/f", 3 << 20, "it", &diag), HD_OK);
	assert_int_equal(hd_fs_has_space(&sim.fs, "/f", (3 << 20) + 1, "the next checkpoint", &diag),
		HD_E_REFUSED);
	CHECK(strstr(diag.text, "the next checkpoint needs 3.0 MiB") &&
		strstr(diag.text, "/sim has 3.0 MiB left; free at least 1.0 MiB"), "%s", diag.text);
	hd_fs_sim_finish(&sim);

	static const char *const there[] = { "/proc/self/absent/f", "/proc", "/proc/none" };
	hd_fs_real(&real);
	for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
		assert_int_equal(hd_fs_space(&real, there[i], &space), HD_OK);
		CHECK(!strcmp(space.at, "/proc"), "%s: %s", there[i], space.at);
	}
	static const char *const here[] = { "nowhere/f", "f", "", "/" };
	for (size_t i = 0; i < sizeof here / sizeof *here; i++) {
		assert_int_equal(hd_fs_space(&real, here[i], &space), HD_OK);
		CHECK(space.at[0] == '/', "%s: %s", here[i], space.at);
	}
	CHECK(!strcmp(space.at, "/"), "the root: %s", space.at);
	assert_int_equal(hd_fail_errno(&diag, ENOENT, "write", "/proc/f"), HD_E_NOTFOUND);
	diag.text[0] = '\0';
	assert_int_equal(hd_fail_errno(&diag, ENOSPC, "write", "/proc/self/none/f"), HD_E_REFUSED);
	CHECK(strstr(diag.text, "free space on that disk (/proc has 0 KiB left)"), "%s", diag.text);
}

static void no_memory_at_any_allocation_is_an_error_and_no_leak(void **state)
{
	(void)state;
	for (uint64_t n = 1; ; n++) {
		struct hd_fs_sim sim;
		struct hd_arena arena;
		char **names;
		size_t n_names;

		hd_fs_sim_init(&sim);
		hd_arena_init(&arena, 0);
		hd_alloc_arm(n);
		enum hd_err err = hd_file_write_atomic(&sim.fs, "/m", "new", 3, NULL);
		if (!err)
			err = hd_fs_list(&sim.fs, "/", &arena, &names, &n_names, NULL);
		bool reached = hd_alloc_count() >= n;
		hd_alloc_arm(0);
		CHECK(err == (reached ? HD_E_NOMEM : HD_OK), "allocation %llu: %d", (unsigned long long)n,
			err);
		hd_arena_finish(&arena);
		hd_fs_sim_finish(&sim);
		if (!reached)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crash_takes_what_was_not_synced),
		cmocka_unit_test(a_crash_may_keep_all),
		cmocka_unit_test(a_write_tears_at_sectors_in_any_combination),
		cmocka_unit_test(a_size_is_lost_or_kept_apart_from_the_bytes),
		cmocka_unit_test(a_lost_name_takes_the_later_ones_of_its_folder),
		cmocka_unit_test(a_rename_into_another_folder_needs_the_changes_of_its_source),
		cmocka_unit_test(syncing_a_folder_keeps_its_names_only),
		cmocka_unit_test(an_atomic_write_is_old_or_new_at_every_crash),
		cmocka_unit_test(the_nth_call_fails_and_leaves_no_mixture),
		cmocka_unit_test(short_transfers_and_interrupts_are_not_seen_above),
		cmocka_unit_test(the_log_tells_what_was_done),
		cmocka_unit_test(a_full_disk_takes_half_of_the_write),
		cmocka_unit_test(a_file_that_grows_while_it_is_read_is_not_taken_for_whole),
		cmocka_unit_test(a_file_system_with_too_little_room_is_named_with_what_is_missing),
		cmocka_unit_test(no_memory_at_any_allocation_is_an_error_and_no_leak),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
