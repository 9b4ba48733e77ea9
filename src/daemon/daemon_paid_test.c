/* What a job's workers were paid for, out of the folder of its run and out of its coordinator's answer: only
 * whole ledgers, the newest. */
#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "daemon/daemon_int.h"
#include "tests/check.h"

static struct hd_fs_sim sim;
static struct hd_arena arena;

static int set_up(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	return hd_fs_mkdirs(&sim.fs, "/run", NULL) != HD_OK;
}

static int tear_down(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
	return 0;
}

/* `ms` useful, and 35 ms of others. */
static const char *event(const char *kind, int64_t ms, int64_t all)
{
	static char line[400];

	(void)snprintf(line, sizeof line,
		"{\"v\":1,\"t\":1,\"kind\":\"%s\",\"step\":7,\"ms\":%lld,\"nano_usd\":11,\"useful_ms\":%lld,"
		"\"redundant_ms\":2,\"bubble_ms\":3,\"pause_ms\":4,\"redo_ms\":5,\"rebuild_ms\":6,"
		"\"waiting_ms\":7,\"boot_ms\":8}\n", kind, (long long)all, (long long)ms);
	return line;
}

static struct hd_paid read_of(const char *text)
{
	struct hd_paid paid = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_file_write_atomic(&sim.fs, "/run/events.ndjson", text, strlen(text), &diag) == HD_OK, "%s",
		diag.text);
	daemon_paid_read(&paid, &sim.fs, "/run");
	return paid;
}

static void add(char *to, const char *text) { strcat(to, text); }

static void the_newest_whole_ledger_of_the_folder_counts(void **state)
{
	static char text[200000];
	struct hd_paid paid = { .ms = 3 };

	(void)state;
	daemon_paid_read(&paid, &sim.fs, "/run");         /* no file */
	assert_true(paid.ms == 3);
	add(text, event("paid", 100, 135));
	add(text, event("view", 900, 935));
	add(text, event("paid", 200, 235));
	add(text, event("paid", 300, 336));               /* its parts do not sum */
	add(text, "{\"kind\":\"paid\",\"ms\":400}\n{half of a li");
	paid = read_of(text);
	assert_true(paid.ms == 235 && paid.nano_usd == 11 && paid.part_ms[HD_LEDGER_USEFUL] == 200 &&
		paid.part_ms[HD_LEDGER_BOOT] == 8);
	int64_t sum = 0;
	for (int p = 0; p < HD_NLEDGER; p++)
		sum += paid.part_ms[p];
	assert_true(sum == paid.ms);
	/* behind a long file, and before more than is looked at */
	text[0] = '\0';
	add(text, event("paid", 100, 135));
	for (int i = 0; i < 600; i++)
		add(text, event("view", 1, 36));
	assert_true(read_of(text).ms == 0);
	add(text, event("paid", 500, 535));
	assert_true(read_of(text).ms == 535);
	/* a coordinator that was asked knows more */
	paid.ms = 536;
	daemon_paid_read(&paid, &sim.fs, "/run");
	assert_true(paid.ms == 536);
}

static void an_answer_that_is_newer_is_taken(void **state)
{
	struct hd_paid paid = { 0 };
	const struct hd_json *json;

	(void)state;
	for (int i = 0; i < 4; i++) {
		char text[400];
		/* newer; older; without its parts; not whole */
		(void)snprintf(text, sizeof text, "{\"paid_ms\":%d,\"paid_nano_usd\":%d,\"useful_ms\":%d%s}",
			i ? 35 : 45, 7 + i, i ? 0 : 10, i == 2 ? "" : ",\"redundant_ms\":2,\"bubble_ms\":3,"
			"\"pause_ms\":4,\"redo_ms\":5,\"rebuild_ms\":6,\"waiting_ms\":7,\"boot_ms\":8");
		CHECK(!hd_json_parse(&arena, "answer", text, strlen(text), &json, NULL), "%s", text);
		daemon_paid_heard(&paid, json);
		assert_true(paid.ms == 45 && paid.nano_usd == 7);
	}
	static const int64_t parts[HD_NLEDGER] = { 10, 2, 3, 4, 5, 6, 7, 8 };
	assert_memory_equal(paid.part_ms, parts, sizeof parts);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		T(the_newest_whole_ledger_of_the_folder_counts), T(an_answer_that_is_newer_is_taken),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
