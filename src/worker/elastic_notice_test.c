#include "worker/elastic_int.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "sys/clock.h"
#include "sys/signal.h"
#include "tests/check.h"

/* What a worker does that hears of its machine's end, by what is left of its step. Agent, machine and hub are
 * played. */

#define MS INT64_C(1000000)

static struct hd_elastic e;
static struct hd_elastic_spec spec;
static struct hd_clock_sim sim;
static int64_t left_ns;               /* of the notice that stands; -1: none does */
static int64_t drain_left_ns;
static int64_t signal_left_ns;        /* of the signal, once it came; 0: none says so */
static int signalled;
static uint32_t drains, wakes, drain_code;
static char said[300];

bool hd_notice_agent_fetch(struct hd_notice_agent *agent, struct hd_notice_news *news)
{
	(void)agent;
	(void)news;
	return false;
}

bool hd_notice_agent_leaves(struct hd_notice_agent *agent, int64_t *left)
{
	(void)agent;
	if (left_ns >= 0 && left)
		*left = left_ns;
	return left_ns >= 0;
}

void hd_notice_agent_signal(struct hd_notice_agent *agent, int number)
{
	(void)agent;
	signalled = number;
}

bool hd_notice_agent_left(struct hd_notice_agent *agent, int64_t *left)
{
	if (agent && signalled && signal_left_ns)
		*left = signal_left_ns;
	return agent && signalled && signal_left_ns;
}

void hd_notice_news_put(const struct hd_notice_news *news, struct hd_json_writer *w)
{
	(void)news;
	(void)w;
}

void hd_elastic_feed(struct hd_elastic *of, const struct hd_member_event *event)
{
	assert_true(of == &e && event->kind == HD_IN_DRAIN);
	drain_left_ns = event->left_ns;
	drain_code = event->code;
	drains++;
}

void hd_elastic_note(struct hd_elastic *of, const char *kind, const char *text)
{
	assert_true(of == &e && !strcmp(kind, "notices"));
	snprintf(said, sizeof said, "%s", text);
}

void hd_hub_wake(struct hd_hub *hub)
{
	assert_true(hub == &e.hub);
	wakes++;
}

/* Steps take took_ms; this one began ago_ms before now. */
static void hears(int64_t took_ms, int64_t ago_ms, uint32_t members, int64_t left_ms)
{
	const int64_t now_ns = hd_clock_now_ns(&sim.clock);

	e = (struct hd_elastic){ .spec = &spec, .opened = { .nmembers = members },
		.step_from_ns = took_ms ? now_ns - ago_ms * MS : 0, .step_took_ns = took_ms * MS,
		.notice_why = "gce: preempted" };
	left_ns = left_ms * MS;
	drains = wakes = 0;
	said[0] = '\0';
	hd_elastic_look_at_notices(&e);
}

static void a_step_that_can_be_ended_is_ended(void **state)
{
	/* took, begun ago, members, left */
	static const int64_t cases[][4] = {
		{ 1000, 100, 2, 1000 },           /* a margin of 100: 900 are left of both */
		{ 60000, 50000, 4, 30000 },
		{ 60000, 70000, 4, 1 },           /* it takes longer than the last: it may be over any moment */
		{ 0, 0, 4, 1 },                   /* nothing is known of steps yet */
		{ 60000, 0, 1, 1 },               /* alone: no other could go on */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		hears(cases[i][0], cases[i][1], (uint32_t)cases[i][2], cases[i][3]);
		CHECK(drains == 1 && e.noticed && !e.given_up && !e.leaving && drain_left_ns == left_ns,
			"case %zu", i);
		hd_elastic_look_at_notices(&e);   /* once */
		assert_true(drains == 1 && !e.leaving);
	}
	left_ns = -1;
	e = (struct hd_elastic){ .spec = &spec };
	drains = 0;
	hd_elastic_look_at_notices(&e);
	assert_true(drains == 0 && !e.drained);
}

static void a_step_that_cannot_be_ended_is_given_up_at_once(void **state)
{
	(void)state;
	hears(1000, 100, 2, 998);
	assert_true(drains == 0 && e.given_up && e.noticed && wakes == 1);
	assert_false(e.leaving);          /* before the note is on its way */
	CHECK(!strcmp(said, "gce: preempted in 998 ms, before the end of its step: it counts as lost now"),
		"%s", said);
	hd_elastic_look_at_notices(&e);
	assert_true(e.leaving && e.exit_code == 0 && drains == 0);
	/* it comes back if the notice is withdrawn, not while it stands */
	assert_false(hd_elastic_comes_back(&e));
	left_ns = -1;
	assert_true(hd_elastic_comes_back(&e));
	e.stopped = true;                 /* a signal asked it to leave, too */
	assert_false(hd_elastic_comes_back(&e));
	/* a notice that comes when the machine goes */
	hears(60000, 1, 8, 0);
	assert_true(drains == 0 && e.given_up);
}

static enum hd_err stop(void *user)
{
	(void)user;
	return hd_stop_err(hd_signal_stop());
}

/* So the wait for another worker in its place is no longer than that. Once; but a worker that leaves for a
 * notice says it, too. */
static void a_signal_says_when_the_machine_goes(void **state)
{
	/* the last: no signal, but the end of run.max_seconds */
	static const struct { int64_t left_ms, says_ns; bool drained, agent; int signal; } row[] = {
		{ 10000, 10000 * MS, false, true, SIGTERM }, { -5, 1, false, true, SIGTERM },
		{ 0, 0, false, true, SIGTERM }, { 10000, 10000 * MS, true, true, SIGTERM },
		{ 10000, 0, false, false, SIGTERM }, { 10000, 0, false, true, 0 },
	};

	(void)state;
	assert_int_equal(hd_signal_install(NULL), HD_OK);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_elastic_spec with = spec;
		with.stop = stop;
		with.notices = row[i].agent ? spec.notices : NULL;
		e = (struct hd_elastic){ .spec = &with, .drained = row[i].drained };
		hd_signal_stop_set(HD_STOP_NONE);
		drains = 0;
		signalled = 0;
		signal_left_ns = row[i].left_ms * MS;
		hd_elastic_look_at_stop(&e);
		assert_true(drains == 0 && !e.stopped);
		if (row[i].signal)
			raise(row[i].signal);
		else
			hd_signal_stop_set(HD_STOP_PREEMPT);
		hd_elastic_look_at_stop(&e);
		CHECK(drains == 1 && drain_code == 75 && drain_left_ns == row[i].says_ns && e.drained &&
			signalled == row[i].signal, "row %zu: %lld ns are left", i, (long long)drain_left_ns);
		hd_elastic_look_at_stop(&e);
		assert_int_equal(drains, 1);
	}
	hd_signal_stop_set(HD_STOP_NONE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_that_can_be_ended_is_ended),
		cmocka_unit_test(a_step_that_cannot_be_ended_is_given_up_at_once),
		cmocka_unit_test(a_signal_says_when_the_machine_goes),
	};

	hd_clock_sim(&sim, 1000 * 1000 * MS, 0);
	spec = (struct hd_elastic_spec){ .clock = &sim.clock, .notices = (struct hd_notice_agent *)&spec };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
