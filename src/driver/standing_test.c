#include "driver/standing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "sys/process.h"
#include "driver/control.h"
#include "tests/check.h"

static struct hd_fs fs;
static struct hd_clock clock_;
static struct hd_net net;
static char folder[40], run[110];

static int fresh(void **state)
{
	(void)state;
	hd_fs_real(&fs);
	hd_clock_real(&clock_);
	hd_net_real(&net);
	snprintf(folder, sizeof folder, "/tmp/hd_standing.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(run, sizeof run, "%s/run", folder);
	return 0;
}

static int gone(void **state)
{
	(void)state;
	return hd_fs_remove_tree(&fs, folder, NULL);
}

static void who_holds_a_run_says_as_what(void **state)
{
	static const enum hd_hold as[] = { HD_HOLD_ALONE, HD_HOLD_COORDINATES, HD_HOLD_BEGINS };
	struct hd_rundir dir;
	struct hd_standing at;
	struct hd_held held;
	(void)state;

	assert_int_equal(hd_rundir_held(&fs, run, &held, NULL), HD_OK);
	assert_int_equal(held.hold, HD_HOLD_NONE);
	assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
	assert_int_equal(hd_standing_look(&fs, run, &at, NULL), HD_OK);
	CHECK(at.held.hold == HD_HOLD_BEGINS && at.held.pid == getpid() && !at.workers, "hold %d, process %d",
		(int)at.held.hold, at.held.pid);
	for (size_t i = 0; i < sizeof as / sizeof *as; i++) {
		hd_rundir_hold_as(&dir, as[i]);
		assert_int_equal(hd_rundir_held(&fs, run, &held, NULL), HD_OK);
		CHECK(held.hold == as[i] && held.pid == getpid() && !held.host[0], "hold %d, process %d",
			(int)held.hold, held.pid);
	}
	hd_rundir_close(&dir);
	assert_int_equal(hd_standing_look(&fs, run, &at, NULL), HD_OK);
	assert_int_equal(at.held.hold, HD_HOLD_NONE);
}

/* What an earlier program left there, or another machine whose processes are others. */
static void a_number_that_names_nobody_is_not_believed(void **state)
{
	static const char *const texts[] = { "", "alone", "alone 4194304 5\n", "alone 1 0\n", "else 1 2\n",
		"alone 1 2 node7\n", "alone 1 2 node7 12\n" };
	struct hd_rundir dir;
	char path[160];
	(void)state;

	assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
	snprintf(path, sizeof path, "%s/lock", run);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct hd_held held;
		assert_int_equal(hd_file_truncate(&dir.lock, 0, NULL), HD_OK);
		if (*texts[i])
			assert_int_equal(hd_file_pwrite(&dir.lock, texts[i], strlen(texts[i]), 0, NULL),
				HD_OK);
		assert_int_equal(hd_rundir_held(&fs, run, &held, NULL), HD_OK);
		CHECK(held.hold == HD_HOLD_BEGINS && held.pid == 0 && !held.host[0],
			"\"%s\": hold %d, process %d", texts[i], (int)held.hold, held.pid);
	}
	hd_rundir_close(&dir);
}

static void a_holder_of_another_machine_is_named(void **state)
{
	struct hd_proc_self self;
	struct hd_rundir dir, second;
	struct hd_diag diag = { "" };
	char path[160], boot[HD_HASH_HEX], text[200];
	(void)state;

	hd_proc_self(&self);
	struct hd_hash id;
	memcpy(id.byte, self.boot, sizeof id.byte);
	hd_hash_hex(id, boot);
	static const char other[] = "00112233445566778899aabbccddeeff";
	unsigned long long began = hd_pid_began((int)getpid());
	/* `left`: named, too, when the lock is free. A process of another boot is no number here, be it
	 * that of one that lives. */
	const struct { const char *host, *boot; enum hd_hold hold; bool pid, host_held, host_left;
		} cases[] = {
		{ "node7", other, HD_HOLD_COORDINATES, false, true, true }, { self.host, boot, HD_HOLD_COORDINATES, true, false, false },
		{ self.host, other, HD_HOLD_BEGINS, false, false, false }, { "node7", boot, HD_HOLD_COORDINATES, true, false, false },
	};
	assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
	snprintf(path, sizeof path, "%s/lock", run);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_held held;
		snprintf(text, sizeof text, "conducts %d %llu %s %s\n", (int)getpid(), began, cases[i].host,
			cases[i].boot);
		assert_int_equal(hd_file_truncate(&dir.lock, 0, NULL), HD_OK);
		assert_int_equal(hd_file_pwrite(&dir.lock, text, strlen(text), 0, NULL), HD_OK);
		assert_int_equal(hd_rundir_held(&fs, run, &held, NULL), HD_OK);
		CHECK(held.hold == cases[i].hold && held.pid == (cases[i].pid ? (int)getpid() : 0) &&
			!strcmp(held.host, cases[i].host_held ? cases[i].host : ""),
			"%zu: hold %d, process %d, on %s", i, (int)held.hold, held.pid, held.host);
		diag.text[0] = '\0';
		assert_int_equal(hd_rundir_open(&second, &fs, &clock_, run, &diag), HD_E_AGAIN);
		CHECK((strstr(diag.text, "on node7") != NULL) == cases[i].host_held, "%zu: %s", i, diag.text);
		hd_rundir_close(&dir);
		assert_int_equal(hd_rundir_held(&fs, run, &held, NULL), HD_OK);
		CHECK(held.hold == HD_HOLD_NONE && !held.pid &&
			!strcmp(held.host, cases[i].host_left ? cases[i].host : ""),
			"%zu: on %s when it is free", i,
			held.host);
		assert_int_equal(hd_rundir_open(&dir, &fs, &clock_, run, NULL), HD_OK);
	}
	/* one of this boot under another name, a container: while it holds the lock it is there, and its
	 * number is not known here */
	struct hd_held held;
	int n = snprintf(text, sizeof text, "alone 4194304 5 pod7 %s\n", boot);
	assert_int_equal(hd_file_truncate(&dir.lock, 0, NULL), HD_OK);
	assert_int_equal(hd_file_pwrite(&dir.lock, text, (size_t)n, 0, NULL), HD_OK);
	assert_int_equal(hd_rundir_held(&fs, run, &held, NULL), HD_OK);
	CHECK(held.hold == HD_HOLD_ALONE && !held.pid && !strcmp(held.host, "pod7"),
		"hold %d, process %d, on %s", (int)held.hold, held.pid, held.host);
	hd_rundir_close(&dir);
	assert_int_equal(hd_rundir_held(&fs, run, &held, NULL), HD_OK);
	CHECK(held.hold == HD_HOLD_NONE && !held.host[0], "a lock of this boot is seen: on %s", held.host);
}

static void two_that_look_do_not_see_each_other(void **state)
{
	struct hd_rundir dir;
	struct hd_file looker;
	struct hd_held held;
	char path[160];
	(void)state;

	assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
	hd_rundir_hold_as(&dir, HD_HOLD_ALONE);
	/* what it said stays there, and names a process that lives: this one */
	hd_rundir_close(&dir);
	snprintf(path, sizeof path, "%s/lock", run);
	assert_int_equal(hd_file_open(&fs, path, HD_OPEN_READ, &looker, NULL), HD_OK);
	assert_int_equal(hd_file_lock_shared(&looker, NULL), HD_OK);
	assert_int_equal(hd_rundir_held(&fs, run, &held, NULL), HD_OK);
	CHECK(held.hold == HD_HOLD_NONE && !held.pid, "hold %d, process %d", (int)held.hold, held.pid);
	assert_int_equal(hd_file_close(&looker, NULL), HD_OK);
}

/* A look takes the lock for an instant: a process that starts then is not refused. */
static void a_process_that_starts_during_a_look_gets_in(void **state)
{
	struct hd_rundir dir;
	char path[160];
	int ready[2], status;
	char word;
	(void)state;

	assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
	hd_rundir_close(&dir);
	snprintf(path, sizeof path, "%s/lock", run);
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (!child) {
		struct hd_file file;
		enum hd_err err = hd_file_open(&fs, path, HD_OPEN_READ, &file, NULL);
		err = err ? err : hd_file_lock_shared(&file, NULL);
		word = err ? 'n' : 'y';
		if (write(ready[1], &word, 1) == 1)
			hd_clock_wait_until(&clock_, hd_clock_now_ns(&clock_) + 20 * HD_NS_PER_MS);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &word, 1), 1);
	assert_int_equal(word, 'y');
	assert_int_equal(hd_rundir_open(&dir, &fs, &clock_, run, NULL), HD_OK);
	hd_rundir_close(&dir);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(ready[0]);
	close(ready[1]);
}

static void listen_as(uint32_t pid, struct hd_sock *sock)
{
	char name[HD_POST_NAME], addr[HD_ADDR_CAP + HD_POST_NAME];

	hd_post_name(pid, name);
	snprintf(addr, sizeof addr, "unix:%s/%s", run, name);
	assert_int_equal(hd_sock_listen(&net, addr, sock, NULL), HD_OK);
}

static bool is_there(const char *name)
{
	char path[200];
	struct hd_stat stat;

	snprintf(path, sizeof path, "%s/%s", run, name);
	return !hd_fs_stat(&fs, path, &stat, NULL);
}

static void workers_count_while_they_listen_and_the_dead_are_swept(void **state)
{
	static const char *const not_ours[] = { "w.sock", "w1x.sock", "x1.sock", "w1.sock2",
		"w99999999999.sock", "w4194304-12.sock",
		"w4194304-zzzz.sock", "w-0000.sock" };
	struct hd_sock here, dead, mute;
	struct hd_standing at;
	struct hd_rundir dir;
	uint32_t living = 9;
	char name[HD_POST_NAME];
	(void)state;

	assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
	for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
		assert_int_equal(hd_rundir_put(&dir, not_ours[i], "x", 1, NULL), HD_OK);
	assert_int_equal(hd_posts_look(&fs, run, true, &living, NULL), HD_OK);
	assert_int_equal(living, 0);
	listen_as((uint32_t)getppid(), &here);
	listen_as(4194304, &dead);                /* the kernel's processes end below */
	listen_as((uint32_t)getpid(), &mute);     /* it lives and does not listen yet */
	close(dead.id);
	close(mute.id);
	for (int sweep = 0; sweep < 2; sweep++) {
		assert_int_equal(hd_posts_look(&fs, run, sweep, &living, NULL), HD_OK);
		assert_int_equal(living, 1);
		hd_post_name(4194304, name);
		CHECK(is_there(name) == !sweep, "the dead worker's socket, sweep %d", sweep);
	}
	assert_int_equal(hd_standing_look(&fs, run, &at, NULL), HD_OK);
	CHECK(at.workers == 1 && at.held.hold == HD_HOLD_NONE, "%u workers, hold %d", at.workers,
		(int)at.held.hold);
	for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
		CHECK(is_there(not_ours[i]), "%s was swept", not_ours[i]);
	hd_post_name((uint32_t)getpid(), name);
	CHECK(is_there(name), "%s was swept", name);
	hd_sock_close(&here);
	hd_rundir_close(&dir);
}

static void listen_at(const char *name, struct hd_sock *sock)
{
	char addr[2 * HD_ADDR_CAP];

	snprintf(addr, sizeof addr, "unix:%s/%s", run, name);
	assert_int_equal(hd_sock_listen(&net, addr, sock, NULL), HD_OK);
}

/* The folder is another machine's, too: its workers refuse here while they live there, and their numbers
 * are no processes of this one. */
static void sockets_of_another_machine_stay(void **state)
{
	char own[HD_POST_NAME], theirs[HD_POST_NAME + 8], of_old[] = "w4194304.sock";
	struct hd_sock sock;
	struct hd_rundir dir;
	unsigned tag;
	uint32_t living = 9;
	(void)state;

	assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
	hd_post_name(4194304, own);
	assert_int_equal(sscanf(own, "w4194304-%4x.sock", &tag), 1);
	snprintf(theirs, sizeof theirs, "w4194304-%04x.sock", tag ^ 1);
	const char *const names[] = { own, theirs, of_old };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		listen_at(names[i], &sock);
		close(sock.id);
	}
	assert_int_equal(hd_posts_look(&fs, run, true, &living, NULL), HD_OK);
	assert_int_equal(living, 0);
	CHECK(!is_there(own) && is_there(theirs) && is_there(of_old), "%s %d, %s %d, %s %d", own,
		is_there(own), theirs, is_there(theirs), of_old,
		is_there(of_old));
	hd_rundir_close(&dir);
}

/* In a folder whose path is so long that sockets of small numbers have their place in it, and those of
 * large ones do not. */
static void near_the_limit_of_a_path_both_places_are_looked_at(void **state)
{
	char small[HD_POST_NAME], large[HD_POST_NAME], addr[HD_ADDR_CAP], at[2][HD_ADDR_CAP];
	struct hd_sock sock[2];
	struct hd_rundir dir;
	uint32_t living = 9;
	(void)state;

	hd_post_name(4, small);
	hd_post_name(4194303, large);
	assert_int_equal(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
	size_t n = strlen(run), lengths = 0;
	for (run[n] = '\0'; n < sizeof run - 1; run[n++] = 'r', run[n] = '\0') {
		assert_int_equal(hd_fs_mkdirs(&fs, run, NULL), HD_OK);
		if (hd_control_path(run, small, at[0], NULL) || hd_control_path(run, large, at[1], NULL) ||
			strncmp(at[0] + 5, run, n) != 0 ||
			!strncmp(at[1] + 5, run, n))
			continue;
		lengths++;
		assert_int_equal(hd_rundir_create(&dir, &fs, &clock_, "", run, "n", "{}", 2, NULL), HD_OK);
		for (int i = 0; i < 2; i++)
			assert_int_equal(hd_sock_listen(&net, at[i], &sock[i], NULL), HD_OK);
		assert_int_equal(hd_posts_look(&fs, run, true, &living, NULL), HD_OK);
		CHECK(living == 2, "%zu bytes: %u of 2 workers", n, living);
		for (int i = 0; i < 2; i++)
			hd_sock_close(&sock[i]);
		hd_post_name(4194304, large);
		assert_int_equal(hd_control_path(run, large, addr, NULL), HD_OK);
		assert_int_equal(hd_sock_listen(&net, addr, &sock[0], NULL), HD_OK);
		close(sock[0].id);
		struct hd_stat stat;
		assert_int_equal(hd_posts_look(&fs, run, true, &living, NULL), HD_OK);
		CHECK(living == 0 && hd_fs_stat(&fs, addr + 5, &stat, NULL) == HD_E_NOTFOUND,
			"%zu bytes: the dead one's socket", n);
		hd_post_name(4194303, large);
		hd_rundir_close(&dir);
	}
	unsetenv("XDG_RUNTIME_DIR");
	CHECK(lengths >= 5, "%zu lengths", lengths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_holds_a_run_says_as_what, fresh, gone),
		cmocka_unit_test_setup_teardown(a_number_that_names_nobody_is_not_believed, fresh, gone),
		cmocka_unit_test_setup_teardown(a_process_that_starts_during_a_look_gets_in, fresh, gone),
		cmocka_unit_test_setup_teardown(a_holder_of_another_machine_is_named, fresh, gone),
		cmocka_unit_test_setup_teardown(two_that_look_do_not_see_each_other, fresh, gone),
		cmocka_unit_test_setup_teardown(sockets_of_another_machine_stay, fresh, gone),
		cmocka_unit_test_setup_teardown(near_the_limit_of_a_path_both_places_are_looked_at, fresh,
		gone),
		cmocka_unit_test_setup_teardown(workers_count_while_they_listen_and_the_dead_are_swept, fresh,
		gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
