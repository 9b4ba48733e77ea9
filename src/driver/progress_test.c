#include "driver/progress.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

struct seen {
	uint32_t nsteps, nnotes, nranks, counts[4];
	struct hd_progress last;
	char kind[32], text[800];
};

static void on_step(void *user, const struct hd_progress *p)
{
	struct seen *s = user;

	s->nsteps++;
	s->last = *p;
	s->nranks = p->plan->nranks;
	memset(s->counts, 0, sizeof s->counts);
	for (uint32_t v = 0; v < p->plan->nvns; v++)
		s->counts[p->plan->map[v]]++;
}

static void on_note(void *user, const char *kind, const char *text)
{
	struct seen *s = user;

	s->nnotes++;
	snprintf(s->kind, sizeof s->kind, "%s", kind);
	snprintf(s->text, sizeof s->text, "%s", text);
}

struct desk {
	struct hd_clock_sim time;
	struct seen seen;
	struct hd_driver_progress progress;
	struct hd_driver_watch watch;
};

static int enter(void **state)
{
	static struct desk d;

	memset(&d, 0, sizeof d);
	hd_clock_sim(&d.time, 0, 0);
	hd_driver_progress_init(&d.progress, &(struct hd_driver_progress_spec){ .clock = &d.time.clock,
		.watch = { .user = &d.seen, .step = on_step, .note = on_note },
		.nvns = 6, .nsteps = 100, .batch = 60 });
	d.watch = hd_driver_progress_watch(&d.progress);
	*state = &d;
	return 0;
}

static int leave(void **state)
{
	hd_driver_progress_finish(&((struct desk *)*state)->progress);
	return 0;
}

static void a_step_becomes_loss_speed_and_what_is_left(void **state)
{
	struct desk *d = *state;
	static const uint32_t member[2] = { 0, 1 }, ndevices[2] = { 1, 1 };
	struct hd_step_news news = { .loss_sum = 30, .weight = 60, .lr = 0.5, .step_ns = 20000000,
		.wait_ns = 5000000 };
	struct hd_view view;

	hd_view_even(&view, 1, member, ndevices, 2, 6);
	d->watch.step(d->watch.user, &news, 10, &view);
	assert_true(d->seen.last.loss == 0.5 && d->seen.last.step_ms == 20 &&
		d->seen.last.wait_share == 0.25);
	assert_true(d->seen.last.samples_per_s == 3000);
	assert_true(d->seen.last.eta_s == 0);             /* one step says nothing of the next */
	assert_int_equal(d->seen.last.nsteps, 100);
	assert_int_equal(d->seen.last.record.step, 10);
	hd_clock_wait_until(&d->time.clock, INT64_C(4000000000));
	d->watch.step(d->watch.user, &news, 12, &view);   /* 2 s a step, 87 are left */
	assert_true(d->seen.last.eta_s == 174);
	news.weight = 0;
	news.step_ns = 0;
	d->watch.step(d->watch.user, &news, 13, &view);   /* a step without rows divides by nothing */
	assert_true(d->seen.last.loss == 0 && d->seen.last.samples_per_s == 0 &&
		d->seen.last.wait_share == 0);
}

static void the_plan_is_that_of_the_newest_view(void **state)
{
	struct desk *d = *state;
	static const uint32_t member[3] = { 0, 1, 2 }, ndevices[3] = { 1, 1, 1 };
	const struct hd_step_news news = { .weight = 1 };
	struct hd_view view;

	hd_view_even(&view, 7, member, ndevices, 2, 6);
	d->watch.step(d->watch.user, &news, 0, &view);
	assert_int_equal(d->seen.nranks, 2);
	assert_int_equal(d->seen.counts[0], 3);
	hd_view_even(&view, 8, member, ndevices, 3, 6);
	d->watch.step(d->watch.user, &news, 1, &view);
	assert_int_equal(d->seen.nranks, 3);
	assert_int_equal(d->seen.counts[2], 2);
	d->watch.step(d->watch.user, &news, 2, NULL);     /* recorded without a view: the last one stays */
	assert_int_equal(d->seen.nranks, 3);
}

static void stages_and_pipelines_of_a_view_are_shown(void **state)
{
	struct desk *d = *state;
	static const uint32_t member[4] = { 0, 1, 2, 3 }, ndevices[4] = { 1, 1, 1, 1 };
	struct hd_step_news news = { .weight = 1 };
	struct hd_view_shape shape;
	struct hd_view view;

	hd_view_shape(&shape, 2, 1, false);
	for (uint32_t n = 1; n <= 4; n++) {
		if (!hd_view_staged(&view, 10 + n, member, ndevices, n, 6, &shape, 2))
			hd_view_even(&view, 10 + n, member, ndevices, n, 6);
		d->watch.step(d->watch.user, &news, n, &view);
		assert_int_equal(d->seen.last.nstages, n < 2 ? 0 : 2);
		assert_int_equal(d->seen.last.npipes, n / 2);
	}
	d->watch.step(d->watch.user, &news, 5, NULL);
	assert_int_equal(d->progress.times.n, 5);
}

static void a_note_of_a_worker_becomes_words(void **state)
{
	static const struct { uint32_t worker; const char *text, *words; } notes[] = {
		{ HD_NOBODY, "as it is", "as it is" },
		{ 3, "{\"text\":\"one \\\"sentence\\\"\"}", "worker 3: one \"sentence\"" },
		{ 0, "{\"file\":\"a.bin\",\"bytes\":12,\"list\":[1]}", "worker 0: file a.bin  bytes 12" },
		{ 1, "{\"text\":\"more\",\"n\":2}", "worker 1: text more  n 2" },
		{ 1, "{broken", "worker 1: {broken" },
		{ HD_NOBODY, "{}", "{}" },
		{ HD_NOBODY, "", "" },
	};
	struct desk *d = *state;

	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
		d->watch.note(d->watch.user, "warning", notes[i].worker, notes[i].text);
		assert_string_equal(d->seen.text, notes[i].words);
		assert_string_equal(d->seen.kind, "warning");
		assert_int_equal(d->seen.nnotes, i + 1);
	}
}

static void a_note_too_long_for_a_line_is_cut(void **state)
{
	struct desk *d = *state;
	char text[2000];

	memset(text, 'x', sizeof text);
	memcpy(text, "{\"text\":\"", 9);
	memcpy(text + sizeof text - 3, "\"}", 3);
	d->watch.note(d->watch.user, "warning", 2, text);
	assert_true(strlen(d->seen.text) < 720 && !strncmp(d->seen.text, "worker 2: ", 10));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_step_becomes_loss_speed_and_what_is_left, enter, leave),
		cmocka_unit_test_setup_teardown(the_plan_is_that_of_the_newest_view, enter, leave),
		cmocka_unit_test_setup_teardown(stages_and_pipelines_of_a_view_are_shown, enter,
			leave),
		cmocka_unit_test_setup_teardown(a_note_of_a_worker_becomes_words, enter, leave),
		cmocka_unit_test_setup_teardown(a_note_too_long_for_a_line_is_cut, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
