#include "driver/driver_int.h"

#include "driver/testing_run.h"

/* A coordinator that finds a checkpoint beyond what it knew of, or before it. */

static void note(void *user, const char *kind, uint32_t worker, const char *text)
{
	(void)worker;
	desk_say(user, kind);
	desk_say(user, text);
}

/* The members went on without a coordinator, saved the last step, and are gone: the run has ended there, and
 * not at a target. */
static void a_run_stands_where_it_begins_from_disk(void **state)
{
	static struct driver c;
	struct desk d;

	(void)state;
	desk_open(&d, "");
	const struct hd_driver_spec spec = { .task = d.made.rig.task, .fs = &d.made.rig.fs, .clock = &d.clock,
		.dir = &d.dir, .watch = { .user = &d, .note = note } };
	c = (struct driver){ .spec = &spec, .recorded = 4, .end.step = 4 };
	driver_begins_at(&c, 20);
	assert_int_equal(c.end.step, 20);
	CHECK(c.end.unrecorded == 16 && strstr(d.notes, "16 steps have no line"), "%s", d.notes);
	driver_begins_at(&c, 10);                 /* back, from an older one: its lines are there */
	assert_int_equal(c.end.step, 10);
	assert_int_equal(c.end.unrecorded, 16);
	CHECK(strstr(d.notes, "again") && strstr(d.notes, "10 steps that have a line are done again, from "
		"the checkpoint of step 10 on"), "%s", d.notes);
	desk_close(&d);
}

/* One line a step, but where the state went back: then the later one is of the state that is there. */
static void lines_are_written_again_only_where_the_state_went_back(void **state)
{
	static struct driver c;
	struct desk d;

	(void)state;
	desk_open(&d, "");
	const struct hd_driver_spec spec = { .task = d.made.rig.task, .fs = &d.made.rig.fs, .clock = &d.clock,
		.dir = &d.dir, .watch = { .user = &d, .note = note } };
	c = (struct driver){ .spec = &spec, .recorded = 30, .had_lines = 30, .end.step = 30 };
	driver_begins_at(&c, 30);
	assert_int_equal(c.had_lines, 30);
	assert_false(strstr(d.notes, "again"));
	driver_begins_at(&c, 20);
	assert_int_equal(c.had_lines, 0);
	desk_close(&d);
}

/* Members went on and saved; they say what they keep of the steps before that checkpoint. */
static void a_takeover_asks_for_the_steps_between_the_last_line_and_the_checkpoint(void **state)
{
	static struct driver c;
	struct desk d;

	(void)state;
	desk_open(&d, "");
	const struct hd_driver_spec spec = { .task = d.made.rig.task, .fs = &d.made.rig.fs, .clock = &d.clock,
		.dir = &d.dir, .watch = { .user = &d, .note = note } };
	c = (struct driver){ .spec = &spec, .recorded = 162, .had_lines = 162 };
	driver_goes_on_at(&c, 200);
	CHECK(c.config.recorded == 162 && !c.end.unrecorded && c.had_lines == 162, "from step %llu on",
		(unsigned long long)c.config.recorded);
	driver_goes_on_at(&c, 10000);
	CHECK(c.config.recorded == 10000 - HD_CO_NEWS && c.end.unrecorded == 10000 - HD_CO_NEWS - 162 &&
		strstr(d.notes, "longer than members keep"), "%s", d.notes);
	desk_close(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_stands_where_it_begins_from_disk),
		cmocka_unit_test(lines_are_written_again_only_where_the_state_went_back),
		cmocka_unit_test(a_takeover_asks_for_the_steps_between_the_last_line_and_the_checkpoint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
