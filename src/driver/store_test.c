#include "driver/store.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "driver/db.h"
#include "driver/testing_memory.h"
#include "tests/check.h"

static char path[128];

static int fresh(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/hd_store_test.%d.sqlite", (int)getpid());
	return 0;
}

/* Where an fsync costs nothing, if there is such a place: for hundreds of openings. */
static int fresh_in_memory(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "%s/hd_store_test.%d.sqlite",
		access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
	return 0;
}

static int clean(void **state)
{
	char other[160];

	(void)state;
	unlink(path);
	for (size_t i = 0; i < 2; i++) {
		snprintf(other, sizeof other, "%s%s", path, i ? "-wal" : "-shm");
		unlink(other);
	}
	return 0;
}

static void the_newest_record_of_a_kind_is_found_again(void **state)
{
	struct hd_store *s;
	char bytes[16];
	size_t len = 99;

	(void)state;
	assert_int_equal(hd_store_open(&s, path, NULL), HD_OK);
	assert_int_equal(hd_store_get(s, 1, bytes, sizeof bytes, &len, NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_store_put(s, 1, "old", 3, NULL), HD_OK);
	assert_int_equal(hd_store_put(s, 2, "other", 5, NULL), HD_OK);
	assert_int_equal(hd_store_put(s, 1, "newer", 5, NULL), HD_OK);
	assert_int_equal(hd_store_put(s, 3, NULL, 0, NULL), HD_OK);
	hd_store_close(s);

	assert_int_equal(hd_store_open(&s, path, NULL), HD_OK);
	assert_int_equal(hd_store_get(s, 1, bytes, sizeof bytes, &len, NULL), HD_OK);
	assert_int_equal(len, 5);
	assert_memory_equal(bytes, "newer", 5);
	assert_int_equal(hd_store_get(s, 3, bytes, sizeof bytes, &len, NULL), HD_OK);
	assert_int_equal(len, 0);
	assert_int_equal(hd_store_get(s, 2, bytes, 4, &len, NULL), HD_E_NOSPACE);
	hd_store_close(s);
}

static enum hd_err collect(void *user, uint64_t number, uint32_t kind, const void *bytes, size_t len,
	struct hd_diag *diag)
{
	char *text = user;

	(void)number;
	(void)diag;
	snprintf(text + strlen(text), 64 - strlen(text), "%u%.*s ", kind, (int)len, (const char *)bytes);
	return kind == 9 ? HD_E_INVAL : HD_OK;
}

static void records_are_told_in_the_order_they_came_and_may_be_refused(void **state)
{
	struct hd_store *s;
	char text[64] = "";

	(void)state;
	assert_int_equal(hd_store_open(&s, path, NULL), HD_OK);
	assert_int_equal(hd_store_put(s, 5, "a", 1, NULL), HD_OK);
	assert_int_equal(hd_store_put(s, 4, "b", 1, NULL), HD_OK);
	assert_int_equal(hd_store_put(s, 5, "c", 1, NULL), HD_OK);
	assert_int_equal(hd_store_replay(s, text, collect, NULL), HD_OK);
	assert_string_equal(text, "5a 4b 5c ");
	assert_int_equal(hd_store_put(s, 9, "", 0, NULL), HD_OK);
	assert_int_equal(hd_store_put(s, 5, "d", 1, NULL), HD_OK);
	text[0] = 0;
	assert_int_equal(hd_store_replay(s, text, collect, NULL), HD_E_INVAL);
	assert_string_equal(text, "5a 4b 5c 9 ");
	assert_int_equal(hd_store_put(s, HD_STORE_KINDS, "x", 1, NULL), HD_E_INVAL);
	hd_store_close(s);
}

static void each_opener_has_a_higher_term(void **state)
{
	struct hd_store *s;

	(void)state;
	for (uint64_t term = 1; term <= 3; term++) {
		assert_int_equal(hd_store_open(&s, path, NULL), HD_OK);
		assert_int_equal(hd_store_term(s), term);
		hd_store_close(s);
	}
}

static void a_record_too_long_or_of_no_kind_is_refused(void **state)
{
	static char bytes[HD_STORE_RECORD_BYTES + 1];
	static const struct { uint32_t kind; size_t len; enum hd_err err; } cases[] = {
		{ HD_STORE_KINDS - 1, HD_STORE_RECORD_BYTES, HD_OK }, { HD_STORE_KINDS, 1, HD_E_INVAL }, { 0, HD_STORE_RECORD_BYTES + 1, HD_E_INVAL },
	};
	struct hd_store *s;
	size_t len = 0;

	(void)state;
	assert_int_equal(hd_store_open(&s, path, NULL), HD_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK(hd_store_put(s, cases[i].kind, bytes, cases[i].len, NULL) == cases[i].err, "case %zu",
			i);
	assert_int_equal(hd_store_get(s, 0, bytes, sizeof bytes, &len, NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_store_get(s, HD_STORE_KINDS - 1, bytes, sizeof bytes, &len, NULL), HD_OK);
	assert_int_equal(len, HD_STORE_RECORD_BYTES);
	hd_store_close(s);
	hd_store_close(NULL);
}

/* Rule 1, the other way round: what could not be written is said, and is not there afterwards. */
static void a_record_that_does_not_fit_the_disk_is_not_there(void **state)
{
	static char bytes[HD_STORE_RECORD_BYTES];
	struct rlimit before, little = { 200000, RLIM_INFINITY };
	struct hd_store *s;
	size_t len = 0;

	(void)state;
	assert_int_equal(hd_store_open(&s, path, NULL), HD_OK);
	assert_int_equal(hd_store_put(s, 3, "small", 5, NULL), HD_OK);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	little.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	enum hd_err err = hd_store_put(s, 3, bytes, sizeof bytes, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(err == HD_E_IO || err == HD_E_REFUSED);
	/* it goes on when there is space */
	assert_int_equal(hd_store_put(s, 4, "after", 5, NULL), HD_OK);
	hd_store_close(s);
	assert_int_equal(hd_store_open(&s, path, NULL), HD_OK);
	assert_int_equal(hd_store_get(s, 3, bytes, sizeof bytes, &len, NULL), HD_OK);
	assert_int_equal(len, 5);
	hd_store_close(s);
}

/* Another table of records: never opened. */
static void a_store_without_its_tables_is_refused(void **state)
{
	struct hd_store *s = NULL;

	(void)state;
	hd_alloc_arm(1);
	assert_int_equal(hd_store_open(&s, path, NULL), HD_E_NOMEM);
	hd_alloc_arm(0);
	struct hd_db db;
	static const struct hd_db_kind other = { .id = 0x48444c53, .version = 1, .name = "", .busy = "",
		.damaged = "",
		.tables =
		"CREATE TABLE record (number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, bodies TEXT)" };
	assert_int_equal(hd_db_open(&db, path, &other, NULL), HD_OK);
	hd_db_close(&db);
	assert_int_equal(hd_store_open(&s, path, NULL), HD_E_IO);
	assert_null(s);
	assert_int_equal(hd_store_open(&s, "/tmp/no folder of that name/x", NULL), HD_E_REFUSED);
	assert_null(s);
}

/* The holder is another process: the lock of one process does not bar itself. */
static void one_process_holds_it_until_it_dies(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_store *s = NULL;
	int ready[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		struct hd_store *mine;
		if (hd_store_open(&mine, path, NULL) || hd_store_put(mine, 7, "kept", 4, NULL) ||
			write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(hd_store_open(&s, path, &diag), HD_E_AGAIN);
	assert_non_null(strstr(diag.text, "another coordinator"));
	/* The transaction ends while we wait, as when a writing process is killed. */
	pid_t killer = fork();
	if (killer == 0) {
		(void)poll(NULL, 0, 300);
		_exit(kill(child, SIGKILL) ? 1 : 0);
	}
	enum hd_err err = HD_E_AGAIN;             /* at once, again and again, without a wait; or it waits */
	for (int tries = 0; err == HD_E_AGAIN && tries < 20; tries++)
		err = hd_store_open(&s, path, &diag);
	CHECK(err == HD_OK, "%s", diag.text);
	waitpid(killer, NULL, 0);
	waitpid(child, NULL, 0);
	char bytes[8];
	size_t len;
	assert_int_equal(hd_store_get(s, 7, bytes, sizeof bytes, &len, NULL), HD_OK);
	assert_int_equal(len, 4);
	assert_int_equal(hd_store_term(s), 2);
	hd_store_close(s);
	close(ready[0]);
	close(ready[1]);
}

static void a_file_that_is_not_ours_is_refused_and_left_alone(void **state)
{
	static const char text[] =
		"this is a diary, not a database; it is long enough to have a header of a hundred bytes, or "
		"so one hopes, dear diary";
	struct hd_store *s;
	char back[sizeof text];

	(void)state;
	FILE *f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
	assert_int_equal(hd_store_open(&s, path, NULL), HD_E_INTEGRITY);
	f = fopen(path, "r");
	assert_non_null(fgets(back, sizeof back, f));
	assert_string_equal(back, text);
	fclose(f);
}

/* Rule 1: one request of SQLite for memory fails, each in turn. What was said to be stored is there, and
 * nothing else. */
static void memory_that_ends_once_loses_no_record(void **state)
{
	bool failed = true;

	for (uint64_t n = 1; failed; n++) {
		struct hd_store *s = NULL;
		char text[64] = "", want[64] = "1first ", bytes[16];
		size_t len = 0;
		assert_int_equal(hd_store_open(&s, path, NULL), HD_OK);
		assert_int_equal(hd_store_put(s, 1, "first", 5, NULL), HD_OK);
		hd_store_close(s);
		s = NULL;
		hd_sqlite_fail(n);
		enum hd_err err = hd_store_open(&s, path, NULL),
			put = err ? err : hd_store_put(s, 1, "second", 6, NULL);
		enum hd_err got = err ? err : hd_store_get(s, 1, bytes, sizeof bytes, &len, NULL);
		enum hd_err replayed = err ? err : hd_store_replay(s, text, collect, NULL);
		failed = hd_sqlite_failed();
		hd_sqlite_fail(0);
		hd_store_close(s);
		const enum hd_err all[] = { err, put, got, replayed };
		for (size_t i = 0; i < 4; i++)
			CHECK(!all[i] || (failed && all[i] == HD_E_NOMEM), "request %llu: %zu is %d",
				(unsigned long long)n, i, all[i]);
		if (!put)
			strcat(want, "1second ");
		CHECK(got || !memcmp(bytes, put ? "first" : "second", put ? 5 : 6), "request %llu: %.*s",
			(unsigned long long)n, (int)len, bytes);
		CHECK(replayed || !strcmp(text, want), "request %llu: %s", (unsigned long long)n, text);
		text[0] = 0;
		assert_int_equal(hd_store_open(&s, path, NULL), HD_OK);
		assert_int_equal(hd_store_replay(s, text, collect, NULL), HD_OK);
		CHECK(!strcmp(text, want), "request %llu: %s is there", (unsigned long long)n, text);
		hd_store_close(s);
		clean(state);
	}
}

int main(void)
{
	if (!hd_sqlite_memory())
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_newest_record_of_a_kind_is_found_again, fresh, clean),
		cmocka_unit_test_setup_teardown(records_are_told_in_the_order_they_came_and_may_be_refused,
		fresh, clean),
		cmocka_unit_test_setup_teardown(a_record_too_long_or_of_no_kind_is_refused, fresh, clean),
		cmocka_unit_test_setup_teardown(a_record_that_does_not_fit_the_disk_is_not_there, fresh,
		clean),
		cmocka_unit_test_setup_teardown(a_store_without_its_tables_is_refused, fresh, clean),
		cmocka_unit_test_setup_teardown(memory_that_ends_once_loses_no_record, fresh_in_memory,
		clean),
		cmocka_unit_test_setup_teardown(each_opener_has_a_higher_term, fresh, clean),
		cmocka_unit_test_setup_teardown(one_process_holds_it_until_it_dies, fresh, clean),
		cmocka_unit_test_setup_teardown(a_file_that_is_not_ours_is_refused_and_left_alone, fresh,
		clean),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
