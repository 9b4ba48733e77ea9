#include "driver/db.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driver/testing_memory.h"
#include "tests/check.h"

static char path[128];

static const struct hd_db_kind kind = { .id = 4711, .version = 2, .name = "box", .busy = "it is taken",
	.damaged = "throw it away",
	.tables = "CREATE TABLE IF NOT EXISTS thing (n INTEGER, t TEXT)" };

static int fresh(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/hd_db_test.%d.sqlite", (int)getpid());
	return 0;
}

static int clean(void **state)
{
	static const char *const more[] = { "", "-wal", "-shm", "-journal" };
	char name[160];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "%s%s", path, more[i]);
		unlink(name);
	}
	return 0;
}

/* A file as another program leaves it. */
static void write_with(const char *sql)
{
	sqlite3 *at;

	assert_int_equal(sqlite3_open(path, &at), SQLITE_OK);
	CHECK(sqlite3_exec(at, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(at));
	sqlite3_close(at);
}

static size_t read_all(char *bytes, size_t cap)
{
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	size_t n = fread(bytes, 1, cap, f);
	fclose(f);
	return n;
}

/* Rule 1: what is taken for ours, and what is left as it is. */
static void only_a_file_of_its_kind_is_opened(void **state)
{
	static const struct { const char *sql; enum hd_err err; const char *says; } cases[] = {
		{ "PRAGMA application_id = 0", HD_OK, "" },                                       /* empty */
		{ "CREATE TABLE thing (n INTEGER, t TEXT); PRAGMA application_id = 4711; PRAGMA user_version = 1", HD_OK, "" },
		{ "CREATE TABLE thing (n INTEGER, t TEXT); PRAGMA application_id = 4711; PRAGMA user_version = 2", HD_OK, "" },
		{ "CREATE TABLE thing (n INTEGER, t TEXT); PRAGMA application_id = 4711; PRAGMA user_version = 3", HD_E_INTEGRITY,
		  "is of version 3, this program reads up to 2: use the newer one" },
		{ "CREATE TABLE other (n INTEGER); PRAGMA application_id = 4712; PRAGMA user_version = 1", HD_E_INTEGRITY, "is no box" },
		{ "CREATE TABLE other (n INTEGER)", HD_E_INTEGRITY, "is no box" },
		{ "PRAGMA application_id = 4712", HD_E_INTEGRITY, "is no box" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		static char before[1 << 16], after[1 << 16];
		struct hd_diag diag = { "" };
		struct hd_db db;
		int64_t n = 0;
		write_with(cases[i].sql);
		size_t len = read_all(before, sizeof before);
		CHECK(hd_db_open(&db, path, &kind, &diag) == cases[i].err, "case %zu: %s", i, diag.text);
		CHECK(strstr(diag.text, cases[i].says), "case %zu: %s", i, diag.text);
		if (!cases[i].err) {
			assert_int_equal(hd_db_number(&db, "PRAGMA user_version", &n, NULL), HD_OK);
			assert_int_equal(n, 2);
			assert_int_equal(hd_db_number(&db, "PRAGMA application_id", &n, NULL), HD_OK);
			assert_int_equal(n, 4711);
			assert_int_equal(hd_db_run(&db, "INSERT INTO thing VALUES (1, 'x')", NULL), HD_OK);
		}
		hd_db_close(&db);
		hd_db_close(&db);                                 /* takes a closed one */
		if (cases[i].err)
			CHECK(read_all(after, sizeof after) == len && !memcmp(before, after, len),
				"case %zu: the file was written to", i);
		clean(state);
	}
}

/* A page in the middle is overwritten; the header says nothing of it. */
static void a_damaged_file_is_refused(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_db db;

	(void)state;
	write_with("CREATE TABLE thing (n INTEGER, t TEXT); PRAGMA application_id = 4711; WITH RECURSIVE "
		"c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c "
		"WHERE x < 2000) INSERT INTO thing SELECT x, hex(randomblob(40)) FROM c");
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, 8 * 4096, SEEK_SET), 0);
	for (int i = 0; i < 4096; i++)
		fputc(0x5a, f);
	fclose(f);
	assert_int_equal(hd_db_open(&db, path, &kind, &diag), HD_E_INTEGRITY);
	assert_non_null(strstr(diag.text, "throw it away"));
	hd_db_close(&db);
}

static void what_cannot_be_opened_or_made_is_said(void **state)
{
	static const struct hd_db_kind wrong = { .id = 4711, .version = 2, .name = "box", .busy = "",
		.damaged = "", .tables = "CREATE NONSENSE" };
	struct hd_diag diag = { "" };
	struct hd_db db;
	int64_t n = 5;

	(void)state;
	assert_int_equal(hd_db_open(&db, "/tmp/no folder of that name/x", &kind, &diag), HD_E_REFUSED);
	assert_string_equal(diag.text, "/tmp/no folder of that name/x: open: unable to open database file");
	hd_db_close(&db);
	diag.text[0] = '\0';
	assert_int_equal(hd_db_open(&db, path, &wrong, &diag), HD_E_IO);
	hd_db_close(&db);
	/* nothing of the first try is left */
	assert_int_equal(hd_db_open(&db, path, &kind, &diag), HD_OK);
	assert_int_equal(hd_db_number(&db, "SELECT n FROM thing", &n, &diag), HD_E_IO);
	assert_int_equal(hd_db_number(&db, "SELECT nonsense", &n, &diag), HD_E_IO);
	assert_int_equal(n, 5);
	assert_int_equal(hd_db_run(&db, "nonsense", &diag), HD_E_IO);
	CHECK(strstr(diag.text, path), "%s", diag.text);
	hd_db_close(&db);
}

static void codes_become_errors(void **state)
{
	static const struct { int code; enum hd_err err; const char *says; } cases[] = {
		{ SQLITE_BUSY, HD_E_AGAIN, "it is taken" }, { SQLITE_LOCKED, HD_E_AGAIN, "it is taken" }, { SQLITE_BUSY_SNAPSHOT, HD_E_AGAIN, "it is taken" },
		{ SQLITE_NOTADB, HD_E_INTEGRITY, "throw it away" }, { SQLITE_CORRUPT, HD_E_INTEGRITY, "throw it away" },
		{ SQLITE_FULL, HD_E_REFUSED, "trying" }, { SQLITE_READONLY, HD_E_REFUSED, "trying" }, { SQLITE_CANTOPEN, HD_E_REFUSED, "trying" },
		{ SQLITE_PERM, HD_E_REFUSED, "trying" }, { SQLITE_NOMEM, HD_E_NOMEM, "box" }, { SQLITE_IOERR_FSYNC, HD_E_IO, "trying" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		struct hd_db db = { .kind = &kind };
		CHECK(hd_db_fail(&db, cases[i].code, "trying", &diag) == cases[i].err, "case %zu", i);
		CHECK(strstr(diag.text, cases[i].says), "case %zu: %s", i, diag.text);
	}
}

/* Rule 1 again, and what is said: one request of SQLite fails, each in turn. Such a file is opened or it is
 * not, for want of memory; one of another program is left as it is. */
static void memory_that_ends_once_opens_nothing_by_mistake(void **state)
{
	static const struct { const char *sql; enum hd_err err; } cases[] = {
		{ "CREATE TABLE thing (n INTEGER, t TEXT); PRAGMA application_id = 4711; PRAGMA user_version = 1", HD_OK },
		{ "CREATE TABLE other (n INTEGER); PRAGMA application_id = 4712; PRAGMA user_version = 1", HD_E_INTEGRITY },
		{ "CREATE TABLE thing (n INTEGER, t TEXT); PRAGMA application_id = 4711; PRAGMA user_version = 3", HD_E_INTEGRITY },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		static char before[1 << 16], after[1 << 16];
		bool failed = true;
		write_with(cases[i].sql);
		size_t len = read_all(before, sizeof before);
		for (uint64_t n = 1; failed; n++) {
			struct hd_diag diag = { "" };
			struct hd_db db;
			hd_sqlite_fail(n);
			enum hd_err err = hd_db_open(&db, path, &kind, &diag);
			failed = hd_sqlite_failed();
			hd_sqlite_fail(0);
			hd_db_close(&db);
			CHECK(err == cases[i].err || (failed && err == HD_E_NOMEM),
				"case %zu, request %llu: %d, %s", i, (unsigned long long)n, err, diag.text);
			CHECK(!err || diag.text[0], "case %zu, request %llu: nothing is said", i,
				(unsigned long long)n);
			CHECK(!cases[i].err || (read_all(after, sizeof after) == len &&
				!memcmp(before, after, len)),
				"case %zu, request %llu: the file was written to", i, (unsigned long long)n);
		}
		clean(state);
	}
}

/* Of a full disk that is said which has no space left, whether SQLite says so or calls it an I/O error. /proc
 * has none, however much is asked of it. */
static void a_full_disk_is_named(void **state)
{
	static const struct { const char *path; int code; enum hd_err err; bool full; } cases[] = {
		{ "/proc/version", SQLITE_FULL, HD_E_REFUSED, true }, { "/proc/version", SQLITE_IOERR_WRITE, HD_E_REFUSED, true },
		{ "/proc/version", SQLITE_CANTOPEN, HD_E_REFUSED, false }, { "/proc/version", SQLITE_CORRUPT, HD_E_INTEGRITY, false },
		{ "/proc/version", SQLITE_BUSY, HD_E_AGAIN, false }, { "/proc/version", SQLITE_ERROR, HD_E_IO, false },
		{ "/tmp", SQLITE_IOERR_WRITE, HD_E_IO, false },
		/* free space unknown: longer than any path may be */
		{ path, SQLITE_IOERR_WRITE, HD_E_IO, false },
	};

	(void)state;
	static char endless[5000];
	memset(endless, 'x', sizeof endless - 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		const struct hd_db db = { .kind = &kind, .opening = cases[i].path == path ? endless :
			cases[i].path };
		CHECK(hd_db_fail(&db, cases[i].code, "trying", &diag) == cases[i].err, "case %zu: %s", i,
			diag.text);
		CHECK(!strstr(diag.text, "its disk is full") == !cases[i].full, "case %zu: %s", i, diag.text);
		CHECK(!cases[i].full || strstr(diag.text, "/proc has 0 KiB left; free space there"),
			"case %zu: %s", i, diag.text);
	}
}

/* Rule 4: what was committed is in the copy, what was not is not, and there is one file of it. */
static void a_copy_is_what_was_committed_when_it_was_made(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_db db, copy;
	char to[160], more[200];
	int64_t n = 0;

	(void)state;
	snprintf(to, sizeof to, "%s.copy", path);
	assert_int_equal(hd_db_open(&db, path, &kind, &diag), HD_OK);
	assert_int_equal(hd_db_run(&db, "INSERT INTO thing VALUES (1, 'x'), (2, 'y')", &diag), HD_OK);
	CHECK(!hd_db_copy(&db, to, &diag), "%s", diag.text);
	assert_int_equal(hd_db_run(&db, "INSERT INTO thing VALUES (3, 'z')", &diag), HD_OK);
	snprintf(more, sizeof more, "%s-wal", to);
	assert_int_not_equal(access(more, F_OK), 0);
	assert_int_equal(hd_db_copy(&db, to, &diag), HD_E_EXISTS);
	/* the one that is served is locked; its copy is not */
	diag.text[0] = '\0';
	assert_int_equal(hd_db_look(&copy, path, &kind, &diag), HD_E_AGAIN);
	assert_non_null(strstr(diag.text, "it is taken"));
	hd_db_close(&copy);
	CHECK(!hd_db_look(&copy, to, &kind, &diag), "%s", diag.text);
	assert_int_equal(hd_db_number(&copy, "SELECT count(*) FROM thing", &n, &diag), HD_OK);
	assert_int_equal(n, 2);
	hd_db_close(&copy);
	/* and back: all that is there goes */
	CHECK(!hd_db_fill(&db, to, &diag), "%s", diag.text);
	hd_db_close(&db);
	CHECK(!hd_db_open(&db, path, &kind, &diag), "%s", diag.text);
	assert_int_equal(hd_db_number(&db, "SELECT sum(n) FROM thing", &n, &diag), HD_OK);
	assert_int_equal(n, 3);
	hd_db_close(&db);
	unlink(to);
}

/* A look brings no file to this version, and makes none. */
static void a_look_changes_no_file(void **state)
{
	static char before[1 << 16], after[1 << 16];
	struct hd_diag diag = { "" };
	struct hd_db db;

	(void)state;
	assert_int_equal(hd_db_look(&db, path, &kind, &diag), HD_E_NOTFOUND);
	hd_db_close(&db);
	assert_int_not_equal(access(path, F_OK), 0);
	write_with("CREATE TABLE thing (n INTEGER); PRAGMA application_id = 4711; PRAGMA user_version = 1");
	size_t len = read_all(before, sizeof before);
	assert_int_equal(hd_db_look(&db, path, &kind, &diag), HD_OK);
	hd_db_close(&db);
	CHECK(read_all(after, sizeof after) == len && !memcmp(before, after, len), "it was written to");
	write_with("PRAGMA user_version = 3");
	assert_int_equal(hd_db_look(&db, path, &kind, &diag), HD_E_INTEGRITY);
	hd_db_close(&db);
}

int main(void)
{
	if (!hd_sqlite_memory())
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_a_file_of_its_kind_is_opened, fresh, clean),
		cmocka_unit_test_setup_teardown(a_damaged_file_is_refused, fresh, clean),
		cmocka_unit_test_setup_teardown(what_cannot_be_opened_or_made_is_said, fresh, clean),
		cmocka_unit_test_setup_teardown(a_copy_is_what_was_committed_when_it_was_made, fresh, clean),
		cmocka_unit_test_setup_teardown(a_look_changes_no_file, fresh, clean),
		cmocka_unit_test_setup_teardown(codes_become_errors, fresh, clean),
		cmocka_unit_test_setup_teardown(memory_that_ends_once_opens_nothing_by_mistake, fresh, clean),
		cmocka_unit_test_setup_teardown(a_full_disk_is_named, fresh, clean),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
