/* One conformance suite for every row of hd_fs, then what only the system's row has: links, locks, limits. */
#include "sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/file_sim.h"
#include "sys/thread.h"
#include "tests/check.h"

struct file_place { struct hd_fs *fs; struct hd_fs real; struct hd_fs_sim sim; char root[64];
	struct hd_arena arena; struct hd_diag diag; };

static void enter(struct file_place *place, bool sim)
{
	memset(place, 0, sizeof *place);
	hd_arena_init(&place->arena, 0);
	if (sim) {
		hd_fs_sim_init(&place->sim);
		place->fs = &place->sim.fs;
		strncpy(place->root, "/t", sizeof place->root - 1);
		assert_int_equal(hd_fs_mkdir(place->fs, place->root, &place->diag), HD_OK);
	} else {
		hd_fs_real(&place->real);
		place->fs = &place->real;
		strncpy(place->root, "/tmp/hd_file_test.XXXXXX", sizeof place->root - 1);
		assert_non_null(mkdtemp(place->root));
	}
}

static void leave(struct file_place *place, bool sim)
{
	CHECK(!hd_fs_remove_tree(place->fs, place->root, &place->diag), "%s", place->diag.text);
	if (sim)
		hd_fs_sim_finish(&place->sim);
	hd_arena_finish(&place->arena);
}

static const char *in(struct file_place *place, const char *name)
{
	char path[256];
	int len = snprintf(path, sizeof path, "%s/%s", place->root, name);
	return hd_arena_text(&place->arena, path, (size_t)len);
}

static void put(struct file_place *place, const char *name, const char *text)
{
	CHECK(!hd_file_write_atomic(place->fs, in(place, name), text, strlen(text), &place->diag), "%s",
		place->diag.text);
}

static const char *get(struct file_place *place, const char *name)
{
	uint8_t *bytes;
	size_t len;
	CHECK(!hd_file_read_all(place->fs, in(place, name), &place->arena, 1 << 20, &bytes, &len,
		&place->diag), "%s", place->diag.text);
	assert_int_equal(strlen((char *)bytes), len);
	return (char *)bytes;
}

static void what_is_written_is_read(struct file_place *at)
{
	struct hd_file file = { 0 };
	char back[32];
	size_t got = 99;

	assert_int_equal(hd_file_open(at->fs, in(at, "a"), HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_NEW,
		&file, &at->diag), HD_OK);
	assert_int_equal(hd_file_write(&file, "hello", 5, &at->diag), HD_OK);
	assert_int_equal(hd_file_write(&file, " world", 6, &at->diag), HD_OK);
	assert_int_equal(hd_file_pwrite(&file, "J", 1, 0, &at->diag), HD_OK);
	assert_int_equal(hd_file_pwrite(&file, "!", 1, 13, &at->diag), HD_OK);
	assert_int_equal(hd_file_pread(&file, back, sizeof back, 0, &got, &at->diag), HD_OK);
	assert_int_equal(got, 14);
	assert_memory_equal(back, "Jello world\0\0!", 14);
	assert_int_equal(hd_file_read(&file, back, sizeof back, &got, &at->diag), HD_OK);
	assert_int_equal(got, 3);        /* the position stood after " world" */
	assert_int_equal(hd_file_truncate(&file, 5, &at->diag), HD_OK);
	assert_int_equal(hd_file_pread(&file, back, sizeof back, 2, &got, &at->diag), HD_OK);
	assert_int_equal(got, 3);
	assert_int_equal(hd_file_pread(&file, back, sizeof back, 5, &got, &at->diag), HD_OK);
	assert_int_equal(got, 0);
	assert_int_equal(hd_file_sync(&file, &at->diag), HD_OK);
	assert_int_equal(hd_file_close(&file, &at->diag), HD_OK);
	assert_int_equal(hd_file_close(&file, &at->diag), HD_OK);
	assert_string_equal(get(at, "a"), "Jello");
}

static void appending_goes_to_the_end(struct file_place *at)
{
	for (int i = 0; i < 3; i++) {
		struct hd_file file = { 0 };
		assert_int_equal(hd_file_open(at->fs, in(at, "log"),
			HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND, &file, &at->diag), HD_OK);
		assert_int_equal(hd_file_write(&file, "x\n", 2, &at->diag), HD_OK);
		assert_int_equal(hd_file_close(&file, &at->diag), HD_OK);
	}
	assert_string_equal(get(at, "log"), "x\nx\nx\n");
}

static void codes_and_words_fit_what_happened(struct file_place *at)
{
	struct hd_file file = { 0 };
	struct hd_stat stat;
	uint8_t *bytes;
	size_t len;

	put(at, "here", "1234");
	assert_int_equal(hd_file_open(at->fs, in(at, "gone"), 0, &file, &at->diag), HD_E_NOTFOUND);
	assert_null(file.fs);
	CHECK(strstr(at->diag.text, "gone") && strstr(at->diag.text, "No such file"), "%s", at->diag.text);
	assert_int_equal(hd_file_open(at->fs, in(at, "here"), HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_NEW,
		&file, NULL), HD_E_EXISTS);
	assert_int_equal(hd_file_open(at->fs, at->root, HD_OPEN_WRITE, &file, NULL), HD_E_INVAL);
	assert_int_equal(hd_fs_mkdir(at->fs, in(at, "here"), NULL), HD_E_EXISTS);
	assert_int_equal(hd_fs_stat(at->fs, in(at, "gone"), &stat, NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_fs_rename(at->fs, in(at, "gone"), in(at, "x"), NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_fs_unlink(at->fs, in(at, "gone"), NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_fs_rmdir(at->fs, at->root, NULL), HD_E_EXISTS);
	assert_int_equal(hd_file_read_all(at->fs, in(at, "here"), &at->arena, 3, &bytes, &len, NULL),
		HD_E_INPUT);
	assert_int_equal(hd_file_read_all(at->fs, at->root, &at->arena, 99, &bytes, &len, NULL), HD_E_INPUT);
	assert_int_equal(hd_file_open(at->fs, in(at, "here"), HD_OPEN_FOLDER, &file, NULL), HD_E_NOTFOUND);
}

static void folders_are_made_listed_and_removed(struct file_place *at)
{
	struct hd_stat stat;
	char **names;
	size_t n;

	assert_int_equal(hd_fs_mkdirs(at->fs, in(at, "p/q/r"), &at->diag), HD_OK);
	assert_int_equal(hd_fs_mkdirs(at->fs, in(at, "p/q/r"), &at->diag), HD_OK);
	put(at, "p/b", "2");
	put(at, "p/a", "1");
	put(at, "p/q/r/deep", "3");
	assert_int_equal(hd_fs_list(at->fs, in(at, "p"), &at->arena, &names, &n, &at->diag), HD_OK);
	assert_int_equal(n, 3);
	assert_string_equal(names[0], "a");
	assert_string_equal(names[1], "b");
	assert_string_equal(names[2], "q");
	assert_int_equal(hd_fs_stat(at->fs, in(at, "p/q"), &stat, &at->diag), HD_OK);
	assert_int_equal(stat.kind, HD_FILE_FOLDER);
	assert_int_equal(hd_fs_rename(at->fs, in(at, "p"), in(at, "s"), &at->diag), HD_OK);
	assert_string_equal(get(at, "s/q/r/deep"), "3");
	assert_int_equal(hd_fs_stat(at->fs, in(at, "p/q"), &stat, NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_fs_mkdirs(at->fs, in(at, "s/a/x"), NULL), HD_E_EXISTS);       /* "a" is a file */
	assert_int_equal(hd_fs_remove_tree(at->fs, in(at, "s"), &at->diag), HD_OK);
	assert_int_equal(hd_fs_list(at->fs, at->root, &at->arena, &names, &n, &at->diag), HD_OK);
	assert_int_equal(n, 0);
	assert_int_equal(hd_fs_sync_folder(at->fs, at->root, &at->diag), HD_OK);
}

static void an_atomic_write_replaces_and_leaves_nothing_else(struct file_place *at)
{
	char **names;
	size_t n;

	put(at, "m", "old and long");
	put(at, "m", "new");
	assert_string_equal(get(at, "m"), "new");
	assert_int_equal(hd_fs_list(at->fs, at->root, &at->arena, &names, &n, &at->diag), HD_OK);
	assert_int_equal(n, 1);
}

static void what_lies_under_a_path_is_known_by_its_inode_and_its_time(struct file_place *at)
{
	struct hd_stat first, again, written, replaced;
	struct hd_file file = { 0 };

	put(at, "f", "one");
	assert_int_equal(hd_fs_stat(at->fs, in(at, "f"), &first, NULL), HD_OK);
	assert_int_equal(hd_fs_stat(at->fs, in(at, "f"), &again, NULL), HD_OK);
	CHECK(first.inode && first.changed_wall_ns && first.inode == again.inode &&
		first.changed_wall_ns == again.changed_wall_ns, "unread");
	assert_int_equal(hd_file_open(at->fs, in(at, "f"), HD_OPEN_WRITE, &file, &at->diag), HD_OK);
	assert_int_equal(hd_file_pwrite(&file, "two", 3, 0, &at->diag), HD_OK);
	assert_int_equal(hd_file_close(&file, &at->diag), HD_OK);
	assert_int_equal(hd_fs_stat(at->fs, in(at, "f"), &written, NULL), HD_OK);
	CHECK(written.inode == first.inode && written.changed_wall_ns >= first.changed_wall_ns, "written to");
	/* else its number may be given again */
	assert_int_equal(hd_file_open(at->fs, in(at, "f"), 0, &file, &at->diag), HD_OK);
	put(at, "f", "two");
	assert_int_equal(hd_fs_stat(at->fs, in(at, "f"), &replaced, NULL), HD_OK);
	assert_int_equal(hd_file_close(&file, &at->diag), HD_OK);
	CHECK(replaced.inode != first.inode, "replaced");
}

static void a_map_outlives_its_file_and_empty_ones_are_empty(struct file_place *at)
{
	struct hd_file file = { 0 };
	struct hd_map map = { 0 };

	put(at, "m", "mapped");
	assert_int_equal(hd_file_open(at->fs, in(at, "m"), 0, &file, &at->diag), HD_OK);
	assert_int_equal(hd_file_map(&file, &map, &at->diag), HD_OK);
	assert_int_equal(hd_file_close(&file, &at->diag), HD_OK);
	assert_int_equal(map.len, 6);
	assert_memory_equal(map.bytes, "mapped", 6);
	hd_file_unmap(at->fs, &map);
	hd_file_unmap(at->fs, &map);
	put(at, "e", "");
	assert_int_equal(hd_file_open(at->fs, in(at, "e"), 0, &file, &at->diag), HD_OK);
	assert_int_equal(hd_file_map(&file, &map, &at->diag), HD_OK);
	assert_null(map.bytes);
	assert_int_equal(hd_file_close(&file, &at->diag), HD_OK);
}

static void a_lock_is_held_by_one(struct file_place *at)
{
	struct hd_file a = { 0 }, b = { 0 };

	put(at, "lock", "");
	assert_int_equal(hd_file_open(at->fs, in(at, "lock"), 0, &a, &at->diag), HD_OK);
	assert_int_equal(hd_file_open(at->fs, in(at, "lock"), 0, &b, &at->diag), HD_OK);
	assert_int_equal(hd_file_lock(&a, &at->diag), HD_OK);
	assert_int_equal(hd_file_lock(&b, &at->diag), HD_E_AGAIN);
	assert_non_null(strstr(at->diag.text, "lock is in use"));
	assert_int_equal(hd_file_close(&a, NULL), HD_OK);
	assert_int_equal(hd_file_lock(&b, NULL), HD_OK);
	assert_int_equal(hd_file_close(&b, NULL), HD_OK);
}

static void a_shared_lock_is_held_by_many_and_by_none_beside_an_owner(struct file_place *at)
{
	struct hd_file owner = { 0 }, a = { 0 }, b = { 0 };

	put(at, "lock", "");
	assert_int_equal(hd_file_open(at->fs, in(at, "lock"), HD_OPEN_WRITE, &owner, &at->diag), HD_OK);
	assert_int_equal(hd_file_open(at->fs, in(at, "lock"), HD_OPEN_READ, &a, &at->diag), HD_OK);
	assert_int_equal(hd_file_open(at->fs, in(at, "lock"), HD_OPEN_READ, &b, &at->diag), HD_OK);
	assert_int_equal(hd_file_lock_shared(&a, &at->diag), HD_OK);
	assert_int_equal(hd_file_lock_shared(&b, &at->diag), HD_OK);
	assert_int_equal(hd_file_lock(&owner, NULL), HD_E_AGAIN);
	assert_int_equal(hd_file_close(&a, NULL), HD_OK);
	assert_int_equal(hd_file_lock(&owner, NULL), HD_E_AGAIN);
	assert_int_equal(hd_file_close(&b, NULL), HD_OK);
	assert_int_equal(hd_file_lock(&owner, NULL), HD_OK);
	assert_int_equal(hd_file_open(at->fs, in(at, "lock"), HD_OPEN_READ, &a, &at->diag), HD_OK);
	assert_int_equal(hd_file_lock_shared(&a, NULL), HD_E_AGAIN);
	assert_int_equal(hd_file_close(&a, NULL), HD_OK);
	assert_int_equal(hd_file_close(&owner, NULL), HD_OK);
}

static void names_from_data_stay_in_their_folder(struct file_place *at)
{
	static const char *const wild[] = { "", "/etc/passwd", "..", "../x", "a/../../x", "./x", "a//b", "a/",
		".", "a/.." };
	struct hd_file file = { 0 };

	assert_int_equal(hd_fs_mkdir(at->fs, in(at, "box"), &at->diag), HD_OK);
	assert_int_equal(hd_fs_mkdir(at->fs, in(at, "box/a"), &at->diag), HD_OK);
	put(at, "x", "outside");
	put(at, "box/a/...x", "inside");
	for (size_t i = 0; i < sizeof wild / sizeof *wild; i++)
		CHECK(hd_file_open_beneath(at->fs, in(at, "box"), wild[i], 0, &file, NULL) == HD_E_INPUT,
			"\"%s\"", wild[i]);
	assert_int_equal(hd_file_open_beneath(at->fs, in(at, "box"), "a/...x", 0, &file, &at->diag), HD_OK);
	assert_int_equal(hd_file_close(&file, &at->diag), HD_OK);
	assert_int_equal(hd_file_open_beneath(at->fs, in(at, "box"), "a/none", 0, &file, NULL),
		HD_E_NOTFOUND);
	assert_int_equal(hd_file_open_beneath(at->fs, in(at, "nobox"), "a", 0, &file, NULL), HD_E_NOTFOUND);
}

static void offsets_that_cannot_be_are_refused(struct file_place *at)
{
	struct hd_file file = { 0 };
	size_t got;
	char c = 0;

	put(at, "o", "x");
	assert_int_equal(hd_file_open(at->fs, in(at, "o"), HD_OPEN_WRITE, &file, &at->diag), HD_OK);
	assert_int_equal(hd_file_pread(&file, &c, 1, -1, &got, NULL), HD_E_INVAL);
	assert_int_equal(hd_file_pread(&file, &c, 1, INT64_MAX, &got, NULL), HD_E_INVAL);
	assert_int_equal(hd_file_pwrite(&file, &c, 1, INT64_MAX, NULL), HD_E_INVAL);
	assert_int_equal(hd_file_pwrite(&file, &c, 1, -7, NULL), HD_E_INVAL);
	assert_int_equal(hd_file_close(&file, NULL), HD_OK);
}

static void (*const suite[])(struct file_place *) = {
	what_is_written_is_read, appending_goes_to_the_end, codes_and_words_fit_what_happened,
		folders_are_made_listed_and_removed,
	an_atomic_write_replaces_and_leaves_nothing_else, a_map_outlives_its_file_and_empty_ones_are_empty,
	a_lock_is_held_by_one,
	a_shared_lock_is_held_by_many_and_by_none_beside_an_owner,
	names_from_data_stay_in_their_folder, offsets_that_cannot_be_are_refused,
	what_lies_under_a_path_is_known_by_its_inode_and_its_time,
};

static void run(bool sim)
{
	for (size_t i = 0; i < sizeof suite / sizeof *suite; i++) {
		struct file_place place;
		enter(&place, sim);
		suite[i](&place);
		place.diag.text[0] = 0;
		leave(&place, sim);
	}
}

static void the_systems_files_keep_the_contract(void **state) { (void)state; run(false); }
static void the_files_in_memory_keep_the_contract(void **state) { (void)state; run(true); }

static void links_out_of_the_folder_are_not_followed(void **state)
{
	struct file_place at;
	struct hd_file file = { 0 };

	(void)state;
	enter(&at, false);
	put(&at, "secret", "no");
	assert_int_equal(hd_fs_mkdir(at.fs, in(&at, "box"), &at.diag), HD_OK);
	put(&at, "box/good", "yes");
	assert_int_equal(symlink("../secret", in(&at, "box/up")), 0);
	assert_int_equal(symlink("/etc/passwd", in(&at, "box/abs")), 0);
	assert_int_equal(symlink("..", in(&at, "box/dir")), 0);
	assert_int_equal(hd_file_open_beneath(at.fs, in(&at, "box"), "up", 0, &file, &at.diag), HD_E_REFUSED);
	assert_int_equal(hd_file_open_beneath(at.fs, in(&at, "box"), "abs", 0, &file, NULL), HD_E_REFUSED);
	CHECK(hd_file_open_beneath(at.fs, in(&at, "box"), "dir/secret", 0, &file, NULL) != HD_OK,
		"through a linked folder");
	/* removing a tree removes links, not what they show */
	assert_int_equal(hd_fs_remove_tree(at.fs, in(&at, "box"), NULL), HD_OK);
	assert_string_equal(get(&at, "secret"), "no");
	leave(&at, false);
}

static void too_many_open_files_say_so(void **state)
{
	struct rlimit before, few;
	struct file_place at;
	struct hd_file files[64] = { 0 };
	enum hd_err err = HD_OK;
	size_t n = 0;

	(void)state;
	enter(&at, false);
	put(&at, "f", "");
	const char *path = in(&at, "f");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ 32, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (!err && n < 64)
		err = hd_file_open(at.fs, path, 0, &files[n++], &at.diag);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(err, HD_E_REFUSED);
	assert_non_null(strstr(at.diag.text, "ulimit -n"));
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(hd_file_close(&files[i], NULL), HD_OK);
	leave(&at, false);
}

static void a_full_disk_says_so(void **state)
{
	struct hd_fs fs;
	struct hd_file file = { 0 };
	struct hd_diag diag = { "" };

	(void)state;
	hd_fs_real(&fs);
	if (hd_file_open(&fs, "/dev/full", HD_OPEN_WRITE, &file, NULL))
		SKIP("no /dev/full here");
	assert_int_equal(hd_file_write(&file, "x", 1, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "/dev/full") && strstr(diag.text, "free space"), "%s", diag.text);
	assert_int_equal(hd_file_close(&file, NULL), HD_OK);
}

static void long_paths_end_in_the_message_and_fail_cleanly(void **state)
{
	char path[HD_PATH_CAP + 10];
	struct file_place at;
	struct hd_file file = { 0 };

	(void)state;
	enter(&at, false);
	memset(path, 'a', sizeof path - 1);
	path[sizeof path - 1] = 0;
	assert_int_equal(hd_file_open(at.fs, path, 0, &file, &at.diag), HD_E_INVAL);
	assert_int_equal(hd_fs_mkdirs(at.fs, path, NULL), HD_E_INVAL);
	assert_int_equal(hd_fs_mkdirs(at.fs, "", NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_file_write_atomic(at.fs, path, "", 0, NULL), HD_E_INVAL);
	/* a path longer than a handle keeps: its end is what tells files apart */
	char name[220];
	memset(name, 'n', sizeof name - 1);
	memcpy(name + sizeof name - 5, "tail", 5);
	put(&at, name, "x");
	assert_int_equal(hd_file_open(at.fs, in(&at, name), 0, &file, &at.diag), HD_OK);
	assert_int_equal(strncmp(file.name, "...", 3), 0);
	assert_string_equal(file.name + strlen(file.name) - 4, "tail");
	assert_int_equal(strlen(file.name), HD_FILE_NAME - 1);
	assert_int_equal(hd_file_close(&file, NULL), HD_OK);
	leave(&at, false);
}

enum { LOST_LEN = 3 * 65536 };            /* over a page of any machine */

static void read_last(void *user)
{
	volatile const uint8_t *bytes = user;

	_exit(bytes[LOST_LEN - 1] ? 98 : 97);
}

enum lost_by { BY_OTHER, BY_MAIN, BY_THREAD, NLOST_BYS };

/* In a child: maps `path`, cuts it to nothing, reads where its end was: by a map of this room, in the main
 * thread or another, or by a map of another. */
static void read_what_is_lost(const char *path, enum lost_by by, int said)
{
	struct hd_thread thread;
	struct hd_diag diag = { "" };
	struct hd_file file = { 0 };
	struct hd_map map = { 0 };
	struct hd_fs fs;

	hd_fs_real(&fs);
	dup2(said, 2);
	signal(SIGBUS, SIG_DFL);                                  /* cmocka's would report a failed test */
	if (hd_file_open(&fs, path, HD_OPEN_WRITE, &file, &diag) || hd_file_map(&file, &map, &diag))
		_exit(99);
	void *other = mmap(NULL, LOST_LEN, PROT_READ, MAP_SHARED, file.id, 0);
	if (hd_file_truncate(&file, 0, &diag))
		_exit(99);
	if (by != BY_THREAD)
		read_last(by == BY_MAIN ? (void *)(uintptr_t)map.bytes : other);
	if (hd_thread_start(&thread, "reader", -1, read_last, (void *)(uintptr_t)map.bytes, &diag))
		_exit(99);
	hd_thread_join(&thread);
	_exit(96);
}

/* How the child ended, and what it said. */
static int end_of_reader(const char *path, enum lost_by by, char *text, size_t cap)
{
	int ends[2], status = 0;
	size_t len = 0;
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (!child)
		read_what_is_lost(path, by, ends[1]);
	close(ends[1]);
	while (len < cap - 1 && (n = read(ends[0], text + len, cap - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void a_mapped_file_that_is_cut_is_named(void **state)
{
	static uint8_t bytes[LOST_LEN];
	char path[100], text[4000];
	struct file_place place;
	(void)state;

	enter(&place, false);
	snprintf(path, sizeof path, "%s/rows.bin", place.root);
	for (enum lost_by by = 0; by < NLOST_BYS; by++) {
		bool ours = by != BY_OTHER;
		assert_int_equal(hd_file_write_atomic(place.fs, path, bytes, sizeof bytes, &place.diag),
			HD_OK);
		int status = end_of_reader(path, by, text, sizeof text);
		bool named = WIFEXITED(status) && WEXITSTATUS(status) == 5 && strstr(text, path) &&
			strstr(text, "lost bytes");
		CHECK(named == ours, "by %d: status %x, \"%s\"", (int)by, (unsigned)status, text);
		bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
		CHECK(killed != ours, "by %d: status %x", (int)by, (unsigned)status);
	}
	leave(&place, false);
}

/* The handler of maps must not swallow it. */
static void a_sent_sigbus_still_ends_the_process(void **state)
{
	static uint8_t bytes[LOST_LEN];
	char path[100];
	struct file_place place;
	int status = 0;
	(void)state;

	enter(&place, false);
	snprintf(path, sizeof path, "%s/rows.bin", place.root);
	assert_int_equal(hd_file_write_atomic(place.fs, path, bytes, sizeof bytes, &place.diag), HD_OK);
	pid_t child = fork();
	if (!child) {
		struct hd_file file;
		struct hd_map map;
		signal(SIGBUS, SIG_DFL);                          /* cmocka has one of its own */
		if (hd_file_open(place.fs, path, HD_OPEN_READ, &file, NULL) || hd_file_map(&file, &map, NULL))
			_exit(99);
		kill(getpid(), SIGBUS);
		_exit(98);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS, "status %x", (unsigned)status);
	leave(&place, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sent_sigbus_still_ends_the_process),
		cmocka_unit_test(the_systems_files_keep_the_contract),
		cmocka_unit_test(the_files_in_memory_keep_the_contract),
		cmocka_unit_test(links_out_of_the_folder_are_not_followed),
		cmocka_unit_test(too_many_open_files_say_so),
		cmocka_unit_test(a_full_disk_says_so),
		cmocka_unit_test(long_paths_end_in_the_message_and_fail_cleanly),
		cmocka_unit_test(a_mapped_file_that_is_cut_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
