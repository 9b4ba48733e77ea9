#include "driver/driver_int.h"

#include "driver/testing_run.h"

/* A coordinator that finds a checkpoint beyond what it knew of, or before it. */

static void note(void *user, const char *kind, uint32_t worker, const char *text)
{
	(void)worker;
	(void)kind;
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
	desk_close(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_stands_where_it_begins_from_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
