#include "run/ending.h"

#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "tests/check.h"

static struct hd_fs_sim sim;
static struct hd_clock_sim clock_;
static struct hd_rundir dir;

static int fresh(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	hd_clock_sim(&clock_, 0, 0);
	assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock_.clock, "/", "/run", "n", "{}", 2, NULL),
		HD_OK);
	assert_int_equal(hd_rundir_put(&dir, "job.resolved.json", "{\"job\":{\"name\":\"cats\"}}", 24 - 1,
		NULL), HD_OK);
	return 0;
}

static int gone(void **state)
{
	(void)state;
	hd_rundir_close(&dir);
	hd_fs_sim_finish(&sim);
	return 0;
}

static struct hd_ending look(void)
{
	struct hd_ending e;

	assert_int_equal(hd_ending_look(&sim.fs, "/run", &e, NULL), HD_OK);
	assert_string_equal(e.name, "cats");
	return e;
}

static void commit(uint64_t step)
{
	hd_rundir_metrics(&dir, &(struct hd_step_record){ .step = step, .weight = 2,
		.loss_sum = 1 + (double)step }, &(struct hd_step_times){ 0 }, 0);
}

static void a_run_says_how_it_ended(void **state)
{
	struct hd_ending e = look();
	(void)state;

	CHECK(!e.began && !e.ended && e.exit == -1 && !e.has_loss, "before it begins: exit %d", e.exit);
	hd_ending_begins(&dir, 0, 20);
	e = look();
	CHECK(e.began && !e.ended && e.steps == 20 && e.step == 0, "begun: step %llu of %llu",
		(unsigned long long)e.step, (unsigned long long)e.steps);
	commit(0);
	commit(1);
	e = look();
	CHECK(e.began && !e.ended && e.step == 2 && e.has_loss && e.loss == 1, "killed: step %llu, loss %g",
		(unsigned long long)e.step, e.loss);
	hd_ending_ends(&dir, 2, 20, HD_E_PREEMPTED, &(struct hd_diag){ "somebody \"asked\" it" });
	e = look();
	CHECK(e.ended && e.exit == hd_err_exit(HD_E_PREEMPTED) && e.step == 2 &&
		!strcmp(e.text, "somebody \"asked\" it"), "exit %d, %s", e.exit, e.text);
	/* it goes on, and nothing of the end before counts any more */
	hd_ending_begins(&dir, 2, 30);
	e = look();
	CHECK(!e.ended && e.exit == -1 && e.steps == 30 && !e.text[0], "resumed: exit %d, %s", e.exit,
		e.text);
	hd_ending_ends(&dir, 30, 30, HD_OK, &(struct hd_diag){ "rest" });
	e = look();
	CHECK(e.ended && e.exit == 0 && e.step == 30 && !e.text[0] && !e.reached, "done: exit %d, %s",
		e.exit, e.text);
	hd_ending_begins(&dir, 30, 40);
	hd_ending_reached(&dir, 34, 40);
	e = look();
	CHECK(e.ended && e.exit == 0 && e.step == 34 && e.steps == 40 && !e.text[0] && e.reached,
		"reached: exit %d, %s", e.exit, e.text);
	hd_ending_begins(&dir, 34, 40);
	assert_false(look().reached);
}

/* The lines that are ready, as a signal would write them: nothing before, and then the whole of one. */
static void each_end_has_a_word(void **state)
{
	static const struct { struct hd_ending ending; const char *word; } rows[] = {
		{ { .exit = -1 }, "new" },
		{ { .began = true, .exit = -1 }, "died" },
		{ { .began = true, .ended = true, .exit = -1 }, "ended" },
		{ { .began = true, .ended = true, .exit = 0 }, "done" },
		{ { .began = true, .ended = true, .exit = 75 }, "stopped" },
		{ { .began = true, .ended = true, .exit = 130 }, "stopped" },
		{ { .began = true, .ended = true, .exit = 4 }, "failed" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_string_equal(hd_ending_state(&rows[i].ending), rows[i].word);
}

/* Not one that --steps or a wish ended before its last step. */
static void a_run_is_done_when_it_has_all_its_steps(void **state)
{
	static const struct { struct hd_ending ending; bool done; } rows[] = {
		{ { .ended = true, .step = 30, .steps = 30 }, true },
		{ { .ended = true, .step = 29, .steps = 30 }, false },
		{ { .ended = true, .exit = 75, .step = 30, .steps = 30 }, false },
		{ { .began = true, .step = 30, .steps = 30 }, false },
		{ { .ended = true, .step = 0, .steps = 0 }, false },
		{ { .ended = true, .reached = true, .step = 12, .steps = 30 }, true },
		{ { .ended = true, .reached = true, .exit = 75, .step = 12, .steps = 30 }, false },
		{ { .reached = true, .step = 12, .steps = 30 }, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK(hd_ending_is_done(&rows[i].ending) == rows[i].done, "row %zu", i);
}

static void a_run_that_leaves_at_once_says_so(void **state)
{
	static const enum hd_stop stops[] = { HD_STOP_PREEMPT, HD_STOP_INTERRUPT };
	struct hd_ending_word word = { 0 };
	(void)state;

	hd_ending_begins(&dir, 0, 20);
	for (uint64_t step = 0; step < 3; step++) {
		hd_ending_at_once(&word, &dir, step, 20);
		CHECK(!look().ended, "step %llu: it says so before it leaves", (unsigned long long)step);
		const struct hd_signal_word *w = &word.word[!word.next];
		CHECK(w->to == &dir.events.file, "step %llu: into another file", (unsigned long long)step);
		for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
			struct hd_lines *events = &dir.events;
			assert_int_equal(hd_lines_add(events, w->line[stops[i]].at,
				w->line[stops[i]].len_bytes, NULL), HD_OK);
			struct hd_ending e = look();
			CHECK(e.ended && e.exit == hd_err_exit(hd_stop_err(stops[i])) && e.step == step &&
				e.steps == 20 &&
				!strcmp(e.text, "stopped at once, without a checkpoint") &&
				hd_ending_is_stopped(&e) && !hd_ending_is_over(&e),
				"step %llu: exit %d, %s", (unsigned long long)step, e.exit, e.text);
		}
		hd_ending_begins(&dir, step, 20);
	}
	hd_signal_word_set(NULL);
	/* of a visitor: nothing to write to */
	hd_ending_at_once(&word, &(struct hd_rundir){ .clock = &clock_.clock }, 3, 20);
	for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
		assert_int_equal(word.word[!word.next].line[stops[i]].len_bytes, 0);
	hd_signal_word_set(NULL);
}

/* What other programs left, torn lines, more events than are looked at. */
static void what_is_not_there_is_not_guessed(void **state)
{
	struct hd_ending e;
	char text[HD_ENDING_TEXT];
	(void)state;

	assert_int_equal(hd_ending_look(&sim.fs, "/other", &e, NULL), HD_E_NOTFOUND);
	hd_rundir_event(&dir, "job_start", 0, "");
	hd_rundir_event(&dir, "job_end", 7, "");
	e = look();
	CHECK(e.ended && e.exit == -1 && e.step == 7 && e.steps == 0, "of an earlier program: exit %d",
		e.exit);
	memset(text, '"', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	hd_ending_begins(&dir, 0, 9);
	struct hd_diag quotes;
	snprintf(quotes.text, sizeof quotes.text, "%s", text);
	hd_ending_ends(&dir, 3, 9, HD_E_IO, &quotes);
	e = look();
	CHECK(e.ended && e.exit == hd_err_exit(HD_E_IO) && !strcmp(e.text, text), "a text of quotes: exit %d",
		e.exit);
	/* six bytes each, where it is written: too many */
	memset(quotes.text, 1, sizeof quotes.text - 1);
	hd_ending_begins(&dir, 3, 9);
	hd_ending_ends(&dir, 4, 9, HD_E_IO, &quotes);
	e = look();
	CHECK(e.ended && e.exit == hd_err_exit(HD_E_IO) && e.step == 4 && e.text[0],
		"a text that does not fit: exit %d", e.exit);
	hd_ending_begins(&dir, 3, 9);
	assert_int_equal(hd_file_write(&dir.events.file, "{\"kind\":\"job_end\",\"exit\":0", 26, NULL),
		HD_OK);
	e = look();
	CHECK(!e.ended, "a torn line counts");
	dir.events.torn = true;
	for (int i = 0; i < 2000; i++)
		hd_rundir_event(&dir, "checkpoint_done", 3, "\"text\":\"one of many\"");
	commit(3);
	e = look();
	CHECK(e.began && !e.ended && e.step == 4, "many events after its beginning: step %llu",
		(unsigned long long)e.step);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_run_says_how_it_ended, fresh, gone),
		cmocka_unit_test(each_end_has_a_word),
		cmocka_unit_test(a_run_is_done_when_it_has_all_its_steps),
		cmocka_unit_test_setup_teardown(a_run_that_leaves_at_once_says_so, fresh, gone),
		cmocka_unit_test_setup_teardown(what_is_not_there_is_not_guessed, fresh, gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
