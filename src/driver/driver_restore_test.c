#include "driver/driver_int.h"

#include <string.h>

#include "driver/testing_run.h"

/* A clock that goes on where it is waited for, and a search that ends when 12 s went by. */
struct slow { struct hd_clock clock; int64_t now; struct driver_search *search; };

static int64_t now_ns(struct hd_clock *clock) { return ((struct slow *)clock)->now; }

static void wait_until(struct hd_clock *clock, int64_t at_ns)
{
	struct slow *s = (struct slow *)clock;

	s->now = at_ns;
	if (at_ns >= 12 * HD_NS_PER_S)
		atomic_store(&s->search->ended, true);
}

static void hear(void *user, const char *kind, uint32_t worker, const char *text)
{
	char line[200];

	assert_int_equal(worker, HD_NOBODY);
	snprintf(line, sizeof line, "%s: %s", kind, text);
	desk_say(user, line);
}

static void a_run_that_is_stopped_while_it_reads_says_what_it_waits_for(void **state)
{
	static const struct hd_clock_ops ops = { "slow", now_ns, now_ns, wait_until };
	struct desk desk;

	(void)state;
	desk_open(&desk, "");
	struct slow slow = { .clock.ops = &ops };
	struct hd_driver_spec spec = { .clock = &slow.clock, .dir = &desk.dir,
		.watch = { .user = &desk, .note = hear } };
	struct driver c = { .spec = &spec };
	slow.search = &c.search;
	driver_restore_finish(&c);                /* nothing is read */
	assert_true(slow.now == 0 && !*desk.notes);
	c.search.running = true;
	driver_restore_finish(&c);
	CHECK(strstr(desk.notes, "waits: the newest checkpoint is read and verified: 5 s so far\n") &&
		strstr(desk.notes, ": 10 s so far\n") && !strstr(desk.notes, ": 1 s"), "%s", desk.notes);
	assert_true(slow.now < 13 * HD_NS_PER_S);
	desk_close(&desk);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_that_is_stopped_while_it_reads_says_what_it_waits_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
