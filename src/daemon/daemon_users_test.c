/* What a scheduler of several users makes on the disk and takes from it: locks of devices, the file of
 * users. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/daemon_int.h"
#include "tests/check.h"

enum { ADA = 54321, BOB = 54322 };            /* accounts without names */

static char dir[] = "/tmp/hd_daemon_users_test.XXXXXX";
static struct hd_fs fs;
static struct hd_pools pools;
static struct daemon_users users = { .run_as = true };
static struct hd_daemon_spec spec = { .fs = &fs, .dir = dir, .pools = &pools };

static int begin(void **state)
{
	char path[64];
	(void)state;

	hd_fs_real(&fs);
	if (!mkdtemp(dir) || hd_pools_add(&pools, "a:1", NULL) || hd_pools_open(&pools, &fs, NULL))
		return 1;
	snprintf(path, sizeof path, "%s/devices", dir);
	return mkdir(path, 0711);
}

static int end(void **state)
{
	(void)state;
	return hd_fs_remove_tree(&fs, dir, NULL) != HD_OK;
}

static struct watch watch_of(uint32_t uid)
{
	return (struct watch){ .job = 1, .as = true, .account = { .uid = uid, .gid = uid } };
}

static ino_t inode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

/* A scheduler that is killed as it has started a worker orders it again in its next life, while the first one
 * has opened the lock and not taken it yet: it must be the same lock, or both would work on the device. */
static void an_order_that_comes_again_finds_the_lock_of_the_first(void **state)
{
	struct hd_daemon d = { .spec = &spec, .fs = &fs, .users = &users };
	const struct watch ada = watch_of(ADA), bob = watch_of(BOB);
	struct hd_diag diag = { "" };
	char path[HD_PATH_CAP];
	(void)state;

	if (!hd_account_is_root())
		SKIP("not root: no lock can be given away");
	daemon_pid_lock_path(&d, 0, path);
	CHECK(!daemon_make_lock(&d, 0, &ada, &diag), "%s", diag.text);
	assert_int_equal(hd_account_owner(path), ADA);
	int first = open(path, O_RDWR | O_CLOEXEC);
	CHECK(!daemon_make_lock(&d, 0, &ada, &diag), "%s", diag.text);
	int second = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(first, LOCK_EX | LOCK_NB), 0);
	CHECK(flock(second, LOCK_EX | LOCK_NB) != 0, "two workers hold one device");
	close(second);
	/* of the user before, which may have it open still, it is another one */
	ino_t was = inode_of(path);
	CHECK(!daemon_make_lock(&d, 0, &bob, &diag), "%s", diag.text);
	CHECK(inode_of(path) != was && hd_account_owner(path) == BOB, "bob's worker has ada's lock");
	close(first);
	const struct watch ours = { .job = 2 };
	CHECK(!daemon_make_lock(&d, 0, &ours, &diag), "%s", diag.text);
	assert_int_equal(hd_account_owner(path), 0);
}

static void put(const char *text, uint32_t mode)
{
	char path[64];

	snprintf(path, sizeof path, "%s/" HD_USERS_FILE, dir);
	(void)unlink(path);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static void a_file_of_users_that_others_can_write_is_refused(void **state)
{
	static const struct { uint32_t file, folder; const char *says; } rows[] = {
		{ 0600, 0700, NULL }, { 0644, 0711, NULL }, { 0664, 0700, "users.yaml (mode 664): `chmod go-w` it" },
		{ 0602, 0700, "users.yaml (mode 602)" }, { 0600, 0770, "(mode 770)" }, { 0600, 0701, NULL },
		{ 0600, 0777, "(mode 777)" },
	};
	struct hd_arena arena;
	struct hd_users read;
	struct hd_diag diag = { "" };
	char path[64], link[80];
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		put("users: {ada: {uid: 54321}}\n", rows[i].file);
		assert_int_equal(chmod(dir, rows[i].folder), 0);
		diag.text[0] = 0;
		enum hd_err err = hd_users_load(&fs, dir, &read, &arena, &diag);
		CHECK(rows[i].says ? err == HD_E_REFUSED && strstr(diag.text, rows[i].says) : !err,
			"row %zu: %d, \"%s\"", i, err, diag.text);
	}
	assert_int_equal(chmod(dir, 0700), 0);
	snprintf(path, sizeof path, "%s/" HD_USERS_FILE, dir);
	snprintf(link, sizeof link, "%s/real", dir);
	assert_int_equal(rename(path, link), 0);
	assert_int_equal(symlink(link, path), 0);
	diag.text[0] = 0;
	assert_int_equal(hd_users_load(&fs, dir, &read, &arena, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "is a link"), "%s", diag.text);
	assert_int_equal(unlink(path), 0);
	if (hd_account_is_root()) {
		put("users:\n  ada:\n", 0600);
		assert_int_equal(chown(path, ADA, ADA), 0);
		diag.text[0] = 0;
		assert_int_equal(hd_users_load(&fs, dir, &read, &arena, &diag), HD_E_REFUSED);
		CHECK(strstr(diag.text, "is account 54321's, which could change it: `chown 0` it"), "%s",
			diag.text);
	}
	hd_arena_finish(&arena);
}

static int64_t still(struct hd_clock *c) { (void)c; return 1000; }
static const struct hd_clock_ops standing = { .name = "standing", .now_ns = still };

static enum hd_err ask_as(struct hd_daemon *d, const struct hd_caller *by, const char *what,
	struct hd_diag *diag)
{
	struct hd_json_writer w;
	const struct hd_json *ask;
	struct hd_arena arena;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	assert_int_equal(hd_json_parse(&arena, "ask", "{}", 2, &ask, NULL), HD_OK);
	diag->text[0] = '\0';
	enum hd_err err = daemon_answer(d, by, what, ask, &w, diag);
	hd_arena_finish(&arena);
	return err;
}

/* Of a question without a job the scheduler says that, if it looks at the question at all. */
static void a_user_that_took_all_its_time_waits_and_others_are_answered(void **state)
{
	static const char *const costly[] = { "explain", "whatif", "submit", "continue", "scale", "waiting",
		"hold", "release" };
	struct hd_clock clock = { &standing };
	struct hd_daemon d = { .spec = &spec, .fs = &fs, .users = &users, .clock = &clock };
	const struct hd_caller ada = { .uid = ADA }, bob = { .uid = BOB },
		root = hd_caller_owner(0, 0, "root");
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(ask_as(&d, &ada, "explain", &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "says which"), "%s", diag.text);
	CHECK(hd_allowance_left(&d.allowance, ADA, 1000) < HD_ALLOWANCE_MOST_NS, "it took no time");
	hd_allowance_took(&d.allowance, ADA, 1000, 3 * HD_ALLOWANCE_MOST_NS);
	for (size_t i = 0; i < sizeof costly / sizeof *costly; i++) {
		CHECK(ask_as(&d, &ada, costly[i], &diag) == HD_E_AGAIN, "%s: %s", costly[i], diag.text);
		CHECK(strstr(diag.text, "2 s at once and then 1 s in 4: ask again in 1") &&
			strstr(diag.text, "heddle sched whatif"), "%s", diag.text);
	}
	assert_int_equal(ask_as(&d, &ada, "me", &diag), HD_OK);
	assert_int_equal(ask_as(&d, &ada, "cancel", &diag), HD_E_INVAL);
	assert_int_equal(ask_as(&d, &bob, "explain", &diag), HD_E_INVAL);
	assert_int_equal(ask_as(&d, &root, "explain", &diag), HD_E_INVAL);
	for (int i = 0; i < 10; i++)
		hd_allowance_took(&d.allowance, 0, 1000, HD_ALLOWANCE_MOST_NS);
	assert_int_equal(ask_as(&d, &root, "explain", &diag), HD_E_INVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_order_that_comes_again_finds_the_lock_of_the_first),
		cmocka_unit_test(a_file_of_users_that_others_can_write_is_refused),
		cmocka_unit_test(
			a_user_that_took_all_its_time_waits_and_others_are_answered),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
