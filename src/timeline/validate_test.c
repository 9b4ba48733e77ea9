#include "timeline/validate.h"

#include "timeline/testing.h"

static struct tl_maker m;

static struct hd_timeline *made(void)
{
	tl_begin(&m);
	uint32_t p = tl_process(&m, "worker 0", 0), d = tl_lane(&m, p, HD_LANE_DEVICE, "dev 0"),
		x = tl_lane(&m, p, HD_LANE_TRANSFER, "net"), q = tl_process(&m, "worker 1", 1),
		e = tl_lane(&m, q, HD_LANE_DEVICE, "dev 0");
	tl_event(&m, d, HD_EVENT_OP, HD_TL_FORWARD, 0, 10, "F");
	tl_event(&m, d, HD_EVENT_WAIT, HD_TL_WAIT, 2, 10, "data");
	tl_event(&m, d, HD_EVENT_OP, HD_TL_BACKWARD, 10, 20, "B");
	tl_event(&m, x, HD_EVENT_SEND, HD_TL_SEND, 0, 10, "SA");
	tl_event(&m, x, HD_EVENT_SEND, HD_TL_SEND, 5, 15, "SA");
	tl_event(&m, e, HD_EVENT_OP, HD_TL_FORWARD, 3, 4, "F");
	tl_step(&m, p, 0, 0, 10, true);
	tl_step(&m, p, 1, 10, 20, true);
	(void)tl_end(&m);
	return &m.timeline;
}

#define BROKEN(change, says) do { \
		struct hd_timeline *t = made(); \
		struct hd_diag diag = { "" }; \
		assert_int_equal(hd_tl_validate(t, &diag), HD_OK); \
		change; \
		CHECK(hd_tl_validate(t, &diag) == HD_E_BUG && strstr(diag.text, says), "%s", diag.text); \
		tl_free(&m); \
	} while (0)

static void each_promise_that_is_broken_is_named(void **state)
{
	(void)state;
	BROKEN(t->process[1].lane_begin = 1, "follow one another");
	BROKEN(t->process[0].step_end = 1, "follow one another");
	BROKEN(t->nsteps = 3, "each lane and step");
	BROKEN(t->process[0].error_ns = -1, "follow one another");
	BROKEN(t->nlanes = 2, "each lane and step");
	BROKEN(t->lane[1].begin = 4, "events of lanes");
	BROKEN(t->lane[2].end = 5, "each event is of a lane");
	BROKEN(t->lane[0].process = 1, "events of lanes");
	BROKEN(t->step[1].begin = 9, "steps of a process");
	BROKEN(t->step[0].process = 1, "steps of a process");
	BROKEN(t->event[0].name = 99, "a name and a class");
	BROKEN(t->event[0].class = 99, "a name and a class");
	BROKEN(t->event[0].lane = 1, "a lane");
	BROKEN(t->event[3].gate = -1, "stamps");
	BROKEN(t->event[3].first = 11, "stamps");
	BROKEN(t->event[2].t1 = 9, "stamps");
	BROKEN(t->end = 19, "bounds");
	BROKEN(t->begin = 1, "bounds");
	BROKEN(t->event[3].peer = 2, "a peer");
	BROKEN(t->event[2].step = 0; t->step[0].end = 9, "in its step");
	BROKEN(t->event[5].step = 0, "in its step");
	BROKEN(t->event[2].t0 = t->event[2].gate = t->event[2].first = 1; t->event[2].step = HD_TL_NONE,
		"in order");
	BROKEN(t->event[1].t1 = 11, "apart or nested");
	BROKEN(t->lane[1].kind = HD_LANE_DEVICE, "apart or nested");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_promise_that_is_broken_is_named) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
