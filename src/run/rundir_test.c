#include "run/rundir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/failpoint.h"
#include "sys/file_sim.h"
#include "sys/process.h"
#include "tests/check.h"

static uint64_t asked(const char *metrics, uint64_t (*ask)(const struct hd_rundir *dir))
{
	struct hd_rundir dir = { .path = "/run" };
	struct hd_fs_sim sim;

	hd_fs_sim_init(&sim);
	dir.fs = &sim.fs;
	assert_int_equal(hd_fs_mkdir(&sim.fs, "/run", NULL), HD_OK);
	if (metrics)
		assert_int_equal(hd_file_write_atomic(&sim.fs, "/run/metrics.ndjson", metrics,
			strlen(metrics), NULL), HD_OK);
	uint64_t next = ask(&dir);
	hd_fs_sim_finish(&sim);
	return next;
}

static uint64_t recorded(const char *metrics) { return asked(metrics, hd_rundir_recorded); }

static void the_last_line_with_a_digest_says_which_state_was_verified(void **state)
{
	(void)state;
	assert_int_equal(asked(NULL, hd_rundir_verified), 0);
	assert_int_equal(asked("{\"v\":1,\"step\":3,\"digest\":null}\n", hd_rundir_verified), 0);
	assert_int_equal(asked("{\"v\":1,\"step\":3,\"digest\":\"ab\"}\n{\"v\":1,\"step\":4,"
		"\"digest\":null}\n", hd_rundir_verified), 4);
	assert_int_equal(asked("{\"v\":1,\"step\":3,\"digest\":\"ab\"}\n{\"v\":1,\"step\":4,"
		"\"digest\":\"cd\"}", hd_rundir_verified), 4);
	assert_int_equal(asked("{\"v\":1,\"step\":3,\"digest\":null}\nof another \"digest\":\"ab\"\n",
		hd_rundir_verified), 0);
	for (int n = 1; n < 5000; n += n / 3 + 1) {       /* digests are of every so many steps */
		struct hd_arena arena;
		struct hd_text text;
		hd_arena_init(&arena, 0);
		hd_text_init(&text, &arena);
		hd_text_add(&text, "{\"v\":1,\"step\":7,\"digest\":\"ab\"}\n");
		for (int i = 0; i < n; i++)
			hd_text_addf(&text, "{\"v\":1,\"step\":%d,\"digest\":null}\n", 8 + i);
		assert_int_equal(asked(text.at, hd_rundir_verified), 8);
		assert_int_equal(asked(text.at, hd_rundir_recorded), 8 + n);
		hd_arena_finish(&arena);
	}
}

static void the_last_whole_line_says_up_to_where_steps_are_recorded(void **state)
{
	char many[40000] = "";
	size_t at = 0;

	(void)state;
	assert_int_equal(recorded(NULL), 0);
	assert_int_equal(recorded(""), 0);
	assert_int_equal(recorded("{\"v\":1,\"step\":0,\"t\":1}\n"), 1);
	assert_int_equal(recorded("{\"v\":1,\"step\":8,\"t\":1}\n{\"v\":1,\"step\":41,\"t\":1}\n"), 42);
	/* torn */
	assert_int_equal(recorded("{\"v\":1,\"step\":8,\"t\":1}\n{\"v\":1,\"step\":41,\"t\":"), 9);
	assert_int_equal(recorded("rubbish\n"), 0);
	for (int i = 0; i < 1000; i++)
		at += (size_t)snprintf(many + at, sizeof many - at, "{\"v\":1,\"step\":%d,\"t\":%d}\n", i, i);
	assert_int_equal(recorded(many), 1000);
}

static const char *text_of(struct hd_fs_sim *sim, const char *path, struct hd_arena *arena)
{
	uint8_t *bytes;
	size_t len;

	assert_int_equal(hd_file_read_all(&sim->fs, path, arena, 1 << 20, &bytes, &len, NULL), HD_OK);
	return (const char *)bytes;
}

static void steps_that_a_full_disk_took_are_named_once_there_is_space(void **state)
{
	struct hd_rundir dir;
	struct hd_fs_sim sim;
	struct hd_clock_sim clock;
	struct hd_arena arena;
	struct hd_step_times times = { 0 };
	(void)state;

	hd_fs_sim_init(&sim);
	hd_clock_sim(&clock, 0, 0);
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock.clock, "/", "/run", "n", "{}", 2, NULL),
		HD_OK);
	for (uint64_t step = 0; step < 10; step++) {
		if (step == 3)
			hd_fs_sim_fail(&sim, 1, ENOSPC, true);
		if (step == 7)
			hd_fs_sim_fail(&sim, 0, 0, false);
		hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = step, .weight = 1 }, &times, 0);
	}
	assert_true(dir.lines_lost);
	assert_int_equal(dir.metrics.lost, 0);
	hd_fs_sim_fail(&sim, 1, ENOSPC, true);
	hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = 10, .weight = 1 }, &times, 0);
	hd_fs_sim_fail(&sim, 0, 0, false);
	hd_rundir_close(&dir);
	const char *metrics = text_of(&sim, "/run/metrics.ndjson", &arena);
	for (uint64_t step = 0; step < 10; step++) {
		char head[40];
		snprintf(head, sizeof head, "{\"v\":1,\"step\":%d,", (int)step);
		assert_int_equal(strstr(metrics, head) != NULL, step < 3 || step >= 7);
	}
	const char *events = text_of(&sim, "/run/events.ndjson", &arena);
	assert_non_null(strstr(events,
		"\"kind\":\"unrecorded\",\"step\":7,\"membership\":0,\"text\":\"4 steps have no line"));
	assert_non_null(strstr(events, "\"step\":10,\"membership\":0,\"text\":\"1 steps have no line"));
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

/* A line that a death tore is no part of the next record. */
static void a_torn_line_is_cut_off_when_the_run_goes_on(void **state)
{
	static const char torn[] = "{\"v\":1,\"step\":0,\"t\":1}\n{\"v\":1,\"step\":1,\"t\":";
	struct hd_rundir dir;
	struct hd_fs_sim sim;
	struct hd_clock_sim clock;
	struct hd_arena arena;
	struct hd_step_times times = { 0 };
	(void)state;

	hd_fs_sim_init(&sim);
	hd_clock_sim(&clock, 0, 0);
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock.clock, "/", "/run", "n", "{}", 2, NULL),
		HD_OK);
	hd_rundir_close(&dir);
	assert_int_equal(hd_file_write_atomic(&sim.fs, "/run/metrics.ndjson", torn, strlen(torn), NULL),
		HD_OK);
	assert_int_equal(hd_rundir_open(&dir, &sim.fs, &clock.clock, "/run", NULL), HD_OK);
	hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = 1, .weight = 1 }, &times, 0);
	hd_rundir_close(&dir);
	const char *metrics = text_of(&sim, "/run/metrics.ndjson", &arena);
	assert_non_null(strstr(metrics, "\"t\":1}\n{\"v\":1,\"step\":1,\"t\":0,\"loss\""));
	assert_int_equal(metrics[strlen(metrics) - 1], '\n');
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

/* ---- folders ---- */

static bool is_there(struct hd_fs *fs, const char *path)
{
	struct hd_stat stat;

	return !hd_fs_stat(fs, path, &stat, NULL);
}

/* Rule 3. */
static void a_new_run_never_takes_the_place_of_another(void **state)
{
	static const char *const names[] = { "/p/runs/n", "/p/runs/n-2", "/p/runs/n-3" };
	char longest[600];
	struct hd_fs_sim sim;
	struct hd_clock_sim clock;
	struct hd_rundir dir[3], other;
	struct hd_diag diag = { "" };

	(void)state;
	hd_fs_sim_init(&sim);
	hd_clock_sim(&clock, 0, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(hd_rundir_create(&dir[i], &sim.fs, &clock.clock, "/p", NULL, "n", "{}", 2,
			&diag), HD_OK);
		assert_string_equal(dir[i].path, names[i]);
		assert_true(dir[i].fresh);
	}
	assert_int_equal(hd_rundir_create(&other, &sim.fs, &clock.clock, "/p", "/p/runs/n", "x", "{}", 2,
		&diag), HD_E_INVAL);
	assert_string_equal(diag.text, /* there is nothing to resume */
		"/p/runs/n was stopped before its job lay in it, and trained nothing: remove it, `rm -r "
		"/p/runs/n`, and start the job again with `heddle run`");
	assert_int_equal(hd_rundir_has_job(&sim.fs, "/p/runs/n", NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_rundir_put(&dir[0], HD_RUN_JOB, "{}", 2, &diag), HD_OK);
	assert_int_equal(hd_rundir_has_job(&sim.fs, "/p/runs/n", NULL), HD_OK);
	diag.text[0] = '\0';
	assert_int_equal(hd_rundir_create(&other, &sim.fs, &clock.clock, "/p", "/p/runs/n", "x", "{}", 2,
		&diag), HD_E_INVAL);
	assert_string_equal(diag.text,
		"/p/runs/n holds a run already: continue it with `heddle resume /p/runs/n`, or choose "
		"another --out");
	assert_false(other.fresh);
	hd_rundir_discard(&dir[1]);                               /* it was fresh: all of it goes */
	assert_false(is_there(&sim.fs, "/p/runs/n-2"));
	assert_int_equal(hd_fs_mkdirs(&sim.fs, "/here/already", NULL), HD_OK);
	assert_int_equal(hd_rundir_create(&other, &sim.fs, &clock.clock, "/p", "/here", "x", "{}", 2, NULL),
		HD_OK);
	assert_false(other.fresh);
	hd_rundir_discard(&other);
	assert_true(is_there(&sim.fs, "/here/already") && is_there(&sim.fs, "/here/job.yaml") &&
		!other.lines_lost);
	assert_int_equal(hd_rundir_create(&other, &sim.fs, &clock.clock, "/p", "/there", "x", "{}", 2, NULL),
		HD_OK);
	assert_true(other.fresh);
	hd_rundir_discard(&other);
	assert_false(is_there(&sim.fs, "/there"));
	for (int i = 0; i < 3; i += 2)
		hd_rundir_close(&dir[i]);
	hd_rundir_close(&(struct hd_rundir){ .fs = NULL });

	memset(longest, 'x', sizeof longest);
	for (size_t i = 0; i < sizeof longest; i += 100)          /* no name of it is too long */
		longest[i] = '/';
	longest[sizeof dir->path - 128] = '\0';
	diag.text[0] = '\0';
	assert_int_equal(hd_rundir_create(&other, &sim.fs, &clock.clock, "/p", longest, "x", "{}", 2, &diag),
		HD_E_INVAL);
	assert_non_null(strstr(diag.text, "longer than"));
	longest[sizeof dir->path - 129] = '\0';
	assert_int_equal(hd_rundir_create(&other, &sim.fs, &clock.clock, "/p", longest, "x", "{}", 2, NULL),
		HD_OK);
	hd_rundir_close(&other);
	memset(longest, 'x', sizeof longest);
	longest[sizeof dir->path - 6] = '\0';                     /* with the folder one byte too many */
	diag.text[0] = '\0';
	assert_int_equal(hd_rundir_create(&other, &sim.fs, &clock.clock, "/", NULL, longest, "{}", 2, &diag),
		HD_E_INVAL);
	assert_non_null(strstr(diag.text, "longer than 511 bytes"));
	memset(longest, 'x', sizeof longest);
	longest[sizeof dir->path] = '\0';
	assert_int_equal(hd_rundir_visit(&other, &sim.fs, &clock.clock, longest, NULL), HD_E_INVAL);
	assert_int_equal(hd_rundir_visit(&other, &sim.fs, &clock.clock, "/p", NULL), HD_E_NOTFOUND);
	assert_int_equal(hd_rundir_open(&other, &sim.fs, &clock.clock, "/p", NULL), HD_E_NOTFOUND);
	hd_fs_sim_finish(&sim);
}

/* Each call to the file system fails once: a run that began has all of it, or it did not begin and nothing is
 * held. Only the lock's text, which helps observers, may be missing. */
static void whatever_fails_a_run_is_whole_or_refused(void **state)
{
	static const char *const whole[] = { "/runs/n/job.yaml", "/runs/n/ckpt", "/runs/n/plan",
		"/runs/n/flight", "/runs/n/log", "/runs/n/lock",
		"/runs/n/metrics.ndjson", "/runs/n/events.ndjson" };
	int64_t refused = 0;
	bool reached = true;

	(void)state;
	for (uint64_t n = 1; reached; n++) {
		struct hd_fs_sim sim;
		struct hd_clock_sim clock;
		struct hd_rundir dir, again;
		hd_fs_sim_init(&sim);
		hd_clock_sim(&clock, 0, 0);
		assert_int_equal(hd_fs_mkdirs(&sim.fs, "/runs", NULL), HD_OK);
		uint64_t before = sim.calls;
		hd_fs_sim_fail(&sim, n, EIO, false);
		enum hd_err err = hd_rundir_create(&dir, &sim.fs, &clock.clock, "", NULL, "n", "{}", 2, NULL);
		reached = sim.calls - before >= n;
		hd_fs_sim_fail(&sim, 0, 0, false);
		refused += err != HD_OK;
		for (size_t i = 0; i < sizeof whole / sizeof *whole && !err; i++)
			CHECK(is_there(&sim.fs, whole[i]), "call %d: %s", (int)n, whole[i]);
		CHECK(dir.fresh == !err, "call %d", (int)n);
		if (!err)
			hd_rundir_close(&dir);
		if (is_there(&sim.fs, "/runs/n/job.yaml")) {      /* no process holds it */
			CHECK(hd_rundir_open(&again, &sim.fs, &clock.clock, "/runs/n", NULL) == HD_OK,
				"call %d", (int)n);
			hd_rundir_close(&again);
		}
		hd_fs_sim_finish(&sim);
	}
	assert_true(refused > 15);
}

/* ---- the holder ---- */

/* Rule 1, with real locks: of open files, so one process does for two. */
/* A file system that looks at the run `watched` before and after each call that may change its holder. */
static struct {
	struct hd_fs fs, under;
	struct hd_fs_ops ops;
	const char *watched;
	int nlooks, nunsure;
} looking;

static void look_now(void)
{
	struct hd_held held;

	if (!looking.watched)
		return;
	assert_int_equal(hd_rundir_held(&looking.under, looking.watched, &held, NULL), HD_OK);
	looking.nlooks++;
	looking.nunsure += held.hold != HD_HOLD_ALONE && held.hold != HD_HOLD_EVALUATES;
	looking.nunsure += held.pid != (int)getpid();
}

static int64_t write_and_look(struct hd_fs *fs, int id, const void *bytes, size_t len, int64_t offset)
{
	(void)fs;
	look_now();
	int64_t n = looking.under.ops->file.write(&looking.under, id, bytes, len, offset);
	look_now();
	return n;
}

static int truncate_and_look(struct hd_fs *fs, int id, int64_t size_bytes)
{
	(void)fs;
	look_now();
	int n = looking.under.ops->file.truncate(&looking.under, id, size_bytes);
	look_now();
	return n;
}

static void a_run_has_its_holder_at_every_moment(void **state)
{
	static const enum hd_hold holds[] = { HD_HOLD_EVALUATES, HD_HOLD_ALONE, HD_HOLD_EVALUATES,
		HD_HOLD_EVALUATES, HD_HOLD_ALONE };
	char root[] = "/tmp/hd_rundir_test.XXXXXX", path[80];
	struct hd_clock clock;
	struct hd_rundir dir;

	(void)state;
	hd_fs_real(&looking.under);
	looking.ops = *looking.under.ops;
	looking.ops.file.write = write_and_look;
	looking.ops.file.truncate = truncate_and_look;
	looking.fs.ops = &looking.ops;
	hd_clock_real(&clock);
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof path, "%s/run", root);
	assert_int_equal(hd_rundir_create(&dir, &looking.fs, &clock, root, path, "n", "{}", 2, NULL),
		HD_OK);
	hd_rundir_hold_as(&dir, HD_HOLD_ALONE);
	looking.watched = path;
	for (size_t i = 0; i < sizeof holds / sizeof *holds; i++)
		hd_rundir_hold_as(&dir, holds[i]);
	looking.watched = NULL;
	assert_true(looking.nlooks >= 10);
	assert_int_equal(looking.nunsure, 0);
	hd_rundir_close(&dir);
	assert_int_equal(hd_fs_remove_tree(&looking.under, root, NULL), HD_OK);
}

static void who_holds_a_run_is_seen(void **state)
{
	static const struct { const char *text; enum hd_hold hold; bool pid; } texts[] = {
		{ "alone %d %llu\n", HD_HOLD_ALONE, true }, { "conducts %d %llu\n", HD_HOLD_COORDINATES, true }, { "begins %d %llu\n", HD_HOLD_BEGINS, true },
		{ "sleeps %d %llu\n", HD_HOLD_BEGINS, true }, { "alone %d %llu1\n", HD_HOLD_BEGINS, false }, { "alone %d\n", HD_HOLD_BEGINS, false },
		{ "alone 0 0\n", HD_HOLD_BEGINS, false }, { "", HD_HOLD_BEGINS, false }, { "nobody %d %llu\n", HD_HOLD_BEGINS, true },
	};
	char root[] = "/tmp/hd_rundir_test.XXXXXX", path[80], lock[100];
	struct hd_fs fs;
	struct hd_clock clock;
	struct hd_rundir dir, second;
	struct hd_diag diag = { "" };
	struct hd_held held = { HD_HOLD_ALONE, -1, "x" };

	(void)state;
	hd_fs_real(&fs);
	hd_clock_real(&clock);
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof path, "%s/run", root);
	snprintf(lock, sizeof lock, "%s/lock", path);
	assert_int_equal(hd_rundir_held(&fs, path, &held, NULL), HD_OK);          /* no lock: not held */
	assert_true(held.hold == HD_HOLD_NONE && held.pid == 0);
	assert_int_equal(hd_rundir_create(&dir, &fs, &clock, root, path, "n", "{}", 2, NULL), HD_OK);
	assert_int_equal(hd_rundir_held(&fs, path, &held, NULL), HD_OK);
	assert_true(held.hold == HD_HOLD_BEGINS && held.pid == (int)getpid());
	hd_rundir_hold_as(&dir, HD_HOLD_COORDINATES);
	hd_rundir_hold_as(&dir, HD_HOLD_ALONE);
	assert_int_equal(hd_rundir_held(&fs, path, &held, NULL), HD_OK);
	assert_true(held.hold == HD_HOLD_ALONE && held.pid == (int)getpid());
	assert_int_equal(hd_rundir_open(&second, &fs, &clock, path, &diag), HD_E_AGAIN);
	assert_non_null(strstr(diag.text, "another process is running it"));
	assert_int_equal(hd_rundir_visit(&second, &fs, &clock, path, NULL), HD_OK);
	hd_rundir_hold_as(&second, HD_HOLD_COORDINATES);             /* an observer holds nothing */
	assert_int_equal(hd_rundir_held(&fs, path, &held, NULL), HD_OK);
	assert_int_equal(held.hold, HD_HOLD_ALONE);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		char text[100];
		snprintf(text, sizeof text, texts[i].text, (int)getpid(),
			(unsigned long long)hd_pid_began((int)getpid()));
		assert_int_equal(hd_file_truncate(&dir.lock, 0, NULL), HD_OK);
		assert_int_equal(hd_file_pwrite(&dir.lock, text, strlen(text), 0, NULL), HD_OK);
		assert_int_equal(hd_rundir_held(&fs, path, &held, NULL), HD_OK);
		CHECK(held.hold == texts[i].hold && held.pid == (texts[i].pid ? (int)getpid() : 0),
			"case %zu: %d, process %d", i, (int)held.hold, held.pid);
	}
	hd_rundir_close(&dir);
	assert_int_equal(hd_rundir_held(&fs, path, &held, NULL), HD_OK);
	assert_true(held.hold == HD_HOLD_NONE && held.pid == 0);
	/* looking held it for an instant only */
	assert_int_equal(hd_rundir_open(&second, &fs, &clock, path, NULL), HD_OK);
	hd_rundir_close(&second);
	assert_int_equal(hd_fs_remove_tree(&fs, root, NULL), HD_OK);
}

enum { CALLS = 4 };               /* open, lock, read, close */

/* Looking at it fails at each call in turn; of a run that is held, and of one that is not. */
static void what_cannot_be_looked_at_is_said(void **state)
{
	(void)state;
	for (int held = 0; held < 2; held++)
		for (uint64_t n = 1; n <= CALLS; n++) {
			struct hd_fs_sim sim;
			struct hd_clock_sim clock;
			struct hd_rundir dir;
			struct hd_held is = { HD_HOLD_ALONE, -1, "x" };
			hd_fs_sim_init(&sim);
			hd_clock_sim(&clock, 0, 0);
			assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock.clock, "/", "/run", "n", "{}",
				2, NULL), HD_OK);
			if (!held)
				hd_rundir_close(&dir);
			hd_fs_sim_fail(&sim, n, EIO, false);
			struct hd_diag diag = { "" };
			enum hd_err err = hd_rundir_held(&sim.fs, "/run", &is, &diag);
			hd_fs_sim_fail(&sim, 0, 0, false);
			CHECK(!err == !diag.text[0], "call %d: %s", (int)n, diag.text);
			/* the last one closes it */
			CHECK((err == HD_OK) == (n == CALLS), "call %d: %d", (int)n, err);
			if (held)
				hd_rundir_close(&dir);
			hd_fs_sim_finish(&sim);
		}
}

/* ---- lines ---- */

static void lines_say_what_they_are_told(void **state)
{
	static const struct hd_metrics seen = { .loss_sum = 2, .weight = 4, .correct = 1, .rows = 9,
		.has_hits = 1 };
	static const struct hd_metrics plain = { .loss_sum = 2, .weight = 4, .rows = 3 };
	struct hd_rundir dir;
	struct hd_fs_sim sim;
	struct hd_clock_sim clock;
	struct hd_arena arena;
	struct hd_step_times times = { 0 };
	struct hd_step_record record = { .step = 5, .weight = 4, .loss_sum = 2, .has_digest = true,
		.digest = { { 0xab, 1 } } };
	char body[5000];

	(void)state;
	hd_fs_sim_init(&sim);
	hd_clock_sim(&clock, 0, 0);
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock.clock, "/", "/run", "n", "{}", 2, NULL),
		HD_OK);
	hd_rundir_metrics(&dir, &record, &times, 0);
	record = (struct hd_step_record){ .step = 6, .weight = 0, .loss_sum = 2 };
	hd_rundir_metrics(&dir, &record, &times, 0);
	hd_rundir_event(&dir, "bare", 1, "");
	hd_rundir_event(&dir, "full", 2, "\"a\":1");
	hd_rundir_eval(&dir, 3, "valid", &seen);
	hd_rundir_eval(&dir, 4, "test", &plain);
	assert_false(dir.lines_lost);
	memset(body, 'x', sizeof body - 1);
	body[sizeof body - 1] = '\0';
	/* no line has so much room: it is lost, and counted */
	hd_rundir_event(&dir, "long", 5, body);
	assert_true(dir.lines_lost && dir.events.lost == 1);
	hd_rundir_event(&dir, "last", 6, "");
	hd_rundir_close(&dir);
	const char *metrics = text_of(&sim, "/run/metrics.ndjson", &arena),
		*events = text_of(&sim, "/run/events.ndjson", &arena);
	assert_non_null(strstr(metrics, "\"step\":5,\"t\":0,\"loss\":0.5,"));
	assert_non_null(strstr(metrics, "\"digest\":\"ab01000000"));
	assert_non_null(strstr(metrics, "\"step\":6,\"t\":0,\"loss\":0,"));
	assert_non_null(strstr(metrics, "\"digest\":null}\n"));
	assert_string_equal(events,
		"{\"v\":1,\"t\":0,\"kind\":\"bare\",\"step\":1,\"membership\":0}\n"
		"{\"v\":1,\"t\":0,\"kind\":\"full\",\"step\":2,\"membership\":0,\"a\":1}\n"
		"{\"v\":1,\"t\":0,\"kind\":\"eval\",\"step\":3,\"membership\":0,\"split\":\"valid\","
		"\"loss\":0.5,\"accuracy\":0.25,\"perplexity\":1.6487212,"
		"\"rows\":9}\n"
		"{\"v\":1,\"t\":0,\"kind\":\"eval\",\"step\":4,\"membership\":0,\"split\":\"test\","
		"\"loss\":0.5,\"rows\":3}\n"
		"{\"v\":1,\"t\":0,\"kind\":\"last\",\"step\":6,\"membership\":0}\n");
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

/* Rule 4: the event that tells of lost lines is lost itself, and comes with the next line. */
static void what_was_lost_is_told_until_it_is_heard(void **state)
{
	struct hd_rundir dir;
	struct hd_fs_sim sim;
	struct hd_clock_sim clock;
	struct hd_arena arena;
	struct hd_step_times times = { 0 };

	(void)state;
	hd_fs_sim_init(&sim);
	hd_clock_sim(&clock, 0, 0);
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock.clock, "/", "/run", "n", "{}", 2, NULL),
		HD_OK);
	dir.metrics.lost = 3;
	uint64_t before = sim.calls;
	hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = 1, .weight = 1 }, &times, 0);
	uint64_t calls = sim.calls - before;                     /* of a line and an event */
	assert_int_equal(dir.metrics.lost, 0);
	assert_int_equal(hd_rundir_lost(&dir), 3);                /* a total, whatever was said of it */
#ifdef HD_FAILPOINTS
	assert_int_equal(hd_failpoint_arm("metrics.write:err=ENOSPC@1", 1, NULL), HD_OK);
	hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = 7, .weight = 1 }, &times, 0);
	assert_int_equal(hd_failpoint_arm(NULL, 0, NULL), HD_OK);
	assert_true(dir.metrics.lost == 1 && dir.lines_lost);             /* counted, and not written */
#endif
	dir.metrics.lost = 4;
	const uint64_t total = hd_rundir_lost(&dir);
	hd_fs_sim_fail(&sim, calls, ENOSPC, true);                /* the event does not fit */
	hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = 2, .weight = 1 }, &times, 0);
	assert_int_equal(dir.metrics.lost, 4);
	assert_int_equal(hd_rundir_lost(&dir), total + 1);        /* and that event */
	hd_fs_sim_fail(&sim, 0, 0, false);
	hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = 3, .weight = 1 }, &times, 0);
	assert_int_equal(dir.metrics.lost, 0);
	assert_int_equal(hd_rundir_lost(&dir), total + 1);
	hd_rundir_close(&dir);
	const char *events = text_of(&sim, "/run/events.ndjson", &arena);
	assert_non_null(strstr(events, "\"step\":1,\"membership\":0,\"text\":\"3 steps"));
	assert_null(strstr(events, "\"step\":2,"));
	assert_null(strstr(text_of(&sim, "/run/metrics.ndjson", &arena), "\"step\":7,"));
	assert_non_null(strstr(events, "\"step\":3,\"membership\":0,\"text\":\"4 steps"));
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

/* What a checkpoint is of must have its records when the machine dies right after it. */
static void lines_that_were_synced_outlive_the_machine(void **state)
{
	struct hd_rundir dir;
	struct hd_fs_sim sim;
	struct hd_clock_sim clock;
	struct hd_step_times times = { 0 };
	(void)state;

	for (int synced = 0; synced < 2; synced++) {
		hd_fs_sim_init(&sim);
		hd_clock_sim(&clock, 0, 0);
		assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock.clock, "/", "/run", "n", "{}", 2,
			NULL), HD_OK);
		assert_int_equal(hd_fs_sync_folder(&sim.fs, "/", NULL), HD_OK);
		for (uint64_t step = 0; step < 4; step++) {
			hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = step, .weight = 1 }, &times,
				0);
			if (step == 2 && synced)
				hd_rundir_sync(&dir);
		}
		hd_fs_sim_crash(&sim, NULL, NULL);
		assert_int_equal(hd_rundir_recorded(&dir), synced ? 3 : 0);
		hd_fs_sim_finish(&sim);
	}
}

/* A letter is a look, a second after the last: the folder is there (h), moved away (m), another one has its
 * name (o), or its disk fails (f). The folder is gone from the second look that misses it on, for good. */
static void a_folder_that_is_missed_twice_is_gone(void **state)
{
	static const struct { const char *looks; size_t gone; } rows[] = {
		{ "hhhh", 4 }, { "hmm", 2 }, { "mhmhm", 5 }, { "hoo", 2 }, { "mo", 1 }, { "hmhmmh", 4 },
		{ "ffff", 4 }, { "mfm", 3 }, { "mfmm", 3 },
	};
	struct hd_fs_sim sim;
	struct hd_clock_sim clock;
	struct hd_rundir dir;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		hd_fs_sim_init(&sim);
		hd_clock_sim(&clock, 0, 0);
		assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock.clock, "/", "/run", "n", "{}", 2,
			NULL), HD_OK);
		for (size_t k = 0; rows[i].looks[k]; k++) {
			const char what = rows[i].looks[k];
			const bool away = what == 'm' || what == 'o', gone = k >= rows[i].gone;
			hd_clock_wait_until(&clock.clock, hd_clock_now_ns(&clock.clock) + 1000000000);
			if (away)
				assert_int_equal(hd_fs_rename(&sim.fs, "/run/lock", "/lock", NULL), HD_OK);
			if (what == 'o')
				assert_int_equal(hd_file_write_atomic(&sim.fs, "/run/lock", "", 0, NULL),
					HD_OK);
			hd_fs_sim_fail(&sim, what == 'f', EIO, what == 'f');
			CHECK(hd_rundir_is_gone(&dir) == gone, "%s: look %zu", rows[i].looks, k);
			CHECK(hd_rundir_is_gone(&dir) == gone, "%s: at once again", rows[i].looks);
			hd_fs_sim_fail(&sim, 0, 0, false);
			if (away)
				assert_int_equal(hd_fs_rename(&sim.fs, "/lock", "/run/lock", NULL), HD_OK);
		}
		hd_rundir_close(&dir);
		hd_fs_sim_finish(&sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_whole_line_says_up_to_where_steps_are_recorded),
		cmocka_unit_test(the_last_line_with_a_digest_says_which_state_was_verified),
		cmocka_unit_test(steps_that_a_full_disk_took_are_named_once_there_is_space),
		cmocka_unit_test(a_new_run_never_takes_the_place_of_another),
		cmocka_unit_test(whatever_fails_a_run_is_whole_or_refused),
		cmocka_unit_test(who_holds_a_run_is_seen),
		cmocka_unit_test(a_run_has_its_holder_at_every_moment),
		cmocka_unit_test(what_cannot_be_looked_at_is_said),
		cmocka_unit_test(lines_say_what_they_are_told),
		cmocka_unit_test(what_was_lost_is_told_until_it_is_heard),
		cmocka_unit_test(lines_that_were_synced_outlive_the_machine),
		cmocka_unit_test(a_folder_that_is_missed_twice_is_gone),
		cmocka_unit_test(a_torn_line_is_cut_off_when_the_run_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
