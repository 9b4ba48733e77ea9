#define _GNU_SOURCE
#include "sys/account.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/file.h"
#include "sys/process.h"
#include "sys/thread.h"
#include "tests/check.h"

enum { WEAK = 65534, NAMELESS = 54321 };

static char dir[] = "/tmp/hd_account_test.XXXXXX";
static struct hd_fs fs;

static void path_of(char path[200], const char *name) { snprintf(path, 200, "%s/%s", dir, name); }

static bool opens(const char *name)
{
	struct hd_file file;
	char path[200];

	path_of(path, name);
	enum hd_err err = hd_file_open(&fs, path, HD_OPEN_READ, &file, NULL);
	if (!err)
		assert_int_equal(hd_file_close(&file, NULL), HD_OK);
	return !err;
}

static void make(const char *name, mode_t mode)
{
	char path[200];

	path_of(path, name);
	assert_int_equal(hd_file_write_atomic(&fs, path, "x", 1, NULL), HD_OK);
	assert_int_equal(chmod(path, mode), 0);
}

static void an_account_is_its_number_with_or_without_a_name(void **state)
{
	struct hd_account account;
	(void)state;

	assert_int_equal(hd_account_of(0, 0, &account), HD_OK);
	assert_string_equal(account.name, "root");
	assert_int_equal(hd_account_uid("root"), 0);
	assert_int_equal(hd_account_of(NAMELESS, 77, &account), HD_E_NOTFOUND);
	assert_int_equal(account.uid, NAMELESS);
	assert_int_equal(account.gid, 77);
	assert_int_equal(account.ngroups, 0);
	assert_string_equal(account.name, "");
	assert_int_equal(hd_account_uid("no such account, surely"), HD_NO_UID);
}

static void the_other_end_of_a_unix_connection_is_known(void **state)
{
	struct hd_sock_user peer = { 0 };
	int ends[2], other;
	(void)state;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_true(hd_sock_user_of(ends[0], &peer));
	assert_int_equal(peer.uid, geteuid());
	assert_int_equal(peer.pid, getpid());
	close(ends[0]);
	close(ends[1]);
	other = socket(AF_INET, SOCK_STREAM, 0);
	assert_false(hd_sock_user_of(other, &peer));
	close(other);
	assert_int_equal(hd_pid_uid(getpid()), getuid());
	assert_int_equal(hd_pid_uid(-1), HD_NO_UID);
}

static void a_socket_is_held_if_it_is_the_accounts_and_no_link(void **state)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX }, held = name;
	char link[200], at[HD_ACCOUNT_AT];
	int id, to = socket(AF_UNIX, SOCK_STREAM, 0), from = socket(AF_UNIX, SOCK_STREAM, 0);
	(void)state;

	path_of(link, "link");
	snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", dir);
	assert_int_equal(bind(to, (struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(listen(to, 1), 0);
	assert_int_equal(symlink(name.sun_path, link), 0);
	assert_int_equal(hd_account_hold_socket(link, geteuid(), at, &id), HD_E_NOTFOUND);
	assert_int_equal(hd_account_hold_socket(name.sun_path, NAMELESS, at, &id), HD_E_NOTFOUND);
	assert_int_equal(hd_account_hold_socket(dir, geteuid(), at, &id), HD_E_NOTFOUND);
	assert_int_equal(hd_account_hold_socket(name.sun_path, geteuid(), at, &id), HD_OK);
	/* what is put under the name meanwhile changes nothing */
	assert_int_equal(unlink(name.sun_path), 0);
	assert_int_equal(symlink("/dev/null", name.sun_path), 0);
	snprintf(held.sun_path, sizeof held.sun_path, "%s", at);
	assert_int_equal(connect(from, (struct sockaddr *)&held, sizeof held), 0);
	hd_account_let_go(id);
	close(from);
	close(to);
	assert_int_equal(unlink(name.sun_path), 0);
	assert_int_equal(unlink(link), 0);
}

struct other { atomic_int turn; bool seen; };

static void look_when_it_is_its_turn(void *user)
{
	struct other *other = user;

	while (atomic_load(&other->turn) == 0)
		;
	other->seen = opens("closed");
	atomic_store(&other->turn, 2);
}

static void lent_rights_open_what_the_account_may_open_and_in_this_thread_alone(void **state)
{
	struct hd_account weak;
	struct hd_diag diag = { "" };
	struct hd_thread thread;
	struct other other = { 0 };
	(void)state;

	make("closed", 0600);
	make("open", 0644);
	(void)!hd_account_of(NAMELESS, NAMELESS, &weak);
	if (!hd_account_is_root()) {
		assert_int_equal(hd_account_lend(&weak, &diag), HD_E_REFUSED);
		assert_true(opens("closed"));
		SKIP("not root: no rights can be lent");
	}
	assert_int_equal(chmod(dir, 0755), 0);
	/* before: a thread begins with the rights of the one that starts it */
	assert_int_equal(hd_thread_start(&thread, "other", -1, look_when_it_is_its_turn, &other, NULL),
		HD_OK);
	assert_int_equal(hd_account_lend(&weak, &diag), HD_OK);
	assert_false(opens("closed"));
	assert_true(opens("open"));
	atomic_store(&other.turn, 1);
	while (atomic_load(&other.turn) == 1)
		;
	hd_account_take_back();
	hd_thread_join(&thread);
	assert_true(opens("closed"));
	assert_true(other.seen);
	assert_int_equal(chmod(dir, 0700), 0);
}

static void a_pipe_in_the_place_of_a_file_is_not_waited_for(void **state)
{
	struct hd_account weak;
	char path[200];
	(void)state;

	if (!hd_account_is_root())
		SKIP("not root: no rights can be lent");
	(void)!hd_account_of(WEAK, WEAK, &weak);
	path_of(path, "pipe");
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(hd_account_lend(&weak, NULL), HD_OK);
	assert_true(opens("pipe"));
	hd_account_take_back();
	assert_int_equal(chmod(dir, 0700), 0);
}

static void a_group_of_the_account_opens_too(void **state)
{
	struct hd_account member = { .uid = NAMELESS, .gid = NAMELESS, .ngroups = 1, .group = { 4242 } };
	struct hd_account other = { .uid = NAMELESS, .gid = NAMELESS };
	char path[200];
	(void)state;

	if (!hd_account_is_root())
		SKIP("not root: no rights can be lent");
	make("group", 0640);
	path_of(path, "group");
	assert_int_equal(chown(path, 0, 4242), 0);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(hd_account_lend(&other, NULL), HD_OK);
	assert_false(opens("group"));
	hd_account_take_back();
	assert_int_equal(hd_account_lend(&member, NULL), HD_OK);
	assert_true(opens("group"));
	hd_account_take_back();
	assert_int_equal(chmod(dir, 0700), 0);
}

static void a_link_is_not_given_away(void **state)
{
	struct hd_account weak;
	char path[200], link[200];
	struct stat st;
	(void)state;

	(void)!hd_account_of(WEAK, WEAK, &weak);
	make("mine", 0600);
	path_of(path, "mine");
	path_of(link, "link");
	assert_int_equal(symlink(path, link), 0);
	assert_int_not_equal(hd_account_give(link, &weak, 0600, NULL), HD_OK);
	assert_int_not_equal(hd_account_mode(link, 0666, NULL), HD_OK);
	assert_int_equal(hd_account_mode(path, 0640, NULL), HD_OK);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(st.st_uid, geteuid());
	assert_true(hd_account_is_folder_ours(dir));
	assert_int_equal(chmod(dir, 0777), 0);
	assert_false(hd_account_is_folder_ours(dir));
	assert_int_equal(chmod(dir, 0700), 0);
	assert_false(hd_account_is_folder_ours(link));
}

/* What a program says that is started as that account. */
static int said(const struct hd_account *as, const char *script, char *text, size_t cap)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	struct hd_diag diag = { "" };
	struct hd_proc proc = { 0 };
	struct hd_host host;
	int ends[2], code = -1;
	size_t len = 0;
	ssize_t n;

	hd_host_real(&host);
	assert_int_equal(pipe(ends), 0);
	CHECK(!hd_account_spawn(&host, as, &(struct hd_spawn){ .argv = argv, .in = -1, .out = ends[1],
		.err = -1 }, &proc, &diag), "%s", diag.text);
	close(ends[1]);
	while (len < cap - 1 && (n = read(ends[0], text + len, cap - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	close(ends[0]);
	assert_int_equal(hd_proc_wait(&proc, 60 * HD_NS_PER_S, &code, NULL), HD_OK);
	return code;
}

static void a_program_runs_as_the_account_with_nothing_of_ours(void **state)
{
	struct hd_account as = { .uid = NAMELESS, .gid = 4343, .ngroups = 1, .group = { 4242 },
		.name = "ada", .home = "/home/ada" };
	char text[2000];
	(void)state;

	if (!hd_account_is_root())
		SKIP("not root: no program can be started as another account");
	assert_int_equal(setenv("HD_SECRET", "of root", 1), 0);
	assert_int_equal(said(&as, "id -u; id -g; id -G; env | grep -v ^PWD= | grep -v ^_= | sort; "
		"ls /proc/self/fd | wc -l; pwd; exit 7", text, sizeof text), 7);
	assert_string_equal(text, "54321\n4343\n4343 4242\nHOME=/home/ada\nLOGNAME=ada\n"
		"PATH=/usr/local/bin:/usr/bin:/bin\nUSER=ada\n4\n/\n");
	/* no way back, not by a saved number either */
	assert_int_equal(said(&as, "grep ^Uid: /proc/self/status; grep ^Gid: /proc/self/status", text,
		sizeof text), 0);
	assert_string_equal(text, "Uid:\t54321\t54321\t54321\t54321\nGid:\t4343\t4343\t4343\t4343\n");
}

static void a_program_that_the_account_may_not_run_is_an_error_of_the_start(void **state)
{
	struct hd_account as = { .uid = NAMELESS, .gid = 4343 };
	struct hd_proc proc = { 0 };
	char path[200];
	const char *const argv[] = { path, NULL };
	struct hd_diag diag = { "" };
	struct hd_host host;
	(void)state;

	make("program", 0700);
	path_of(path, "program");
	hd_host_real(&host);
	assert_int_equal(hd_account_spawn(&host, &as, &(struct hd_spawn){ .argv = argv, .in = -1, .out = -1,
		.err = -1 }, &proc, &diag), HD_E_REFUSED);
	assert_null(proc.host);
}

static void a_signal_goes_to_a_process_of_that_account_only(void **state)
{
	static const char *const argv[] = { "sleep", "600", NULL };
	struct hd_proc proc = { 0 };
	struct hd_host host;
	int code = 0;
	(void)state;

	hd_host_real(&host);
	assert_int_equal(hd_proc_spawn(&host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = -1,
		.err = -1 }, &proc, NULL), HD_OK);
	assert_int_equal(hd_account_signal(proc.pid, NAMELESS, HD_PROC_KILL), HD_E_NOTFOUND);
	assert_int_equal(hd_proc_wait(&proc, 0, &code, NULL), HD_E_AGAIN);
	assert_int_equal(hd_account_signal(proc.pid, getuid(), HD_PROC_KILL), HD_OK);
	assert_int_equal(hd_proc_wait(&proc, 60 * HD_NS_PER_S, &code, NULL), HD_OK);
	assert_int_equal(code, 128 + 9);
}

static int begin(void **state)
{
	(void)state;
	hd_fs_real(&fs);
	return !mkdtemp(dir);
}

static int end(void **state)
{
	(void)state;
	return hd_fs_remove_tree(&fs, dir, NULL) != HD_OK;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_account_is_its_number_with_or_without_a_name),
		cmocka_unit_test(the_other_end_of_a_unix_connection_is_known),
		cmocka_unit_test(a_socket_is_held_if_it_is_the_accounts_and_no_link),
		cmocka_unit_test(lent_rights_open_what_the_account_may_open_and_in_this_thread_alone),
		cmocka_unit_test(a_pipe_in_the_place_of_a_file_is_not_waited_for),
		cmocka_unit_test(a_group_of_the_account_opens_too),
		cmocka_unit_test(a_link_is_not_given_away),
		cmocka_unit_test(a_program_runs_as_the_account_with_nothing_of_ours),
		cmocka_unit_test(a_program_that_the_account_may_not_run_is_an_error_of_the_start),
		cmocka_unit_test(a_signal_goes_to_a_process_of_that_account_only),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
