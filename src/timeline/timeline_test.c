#include "timeline/testing.h"

static void classes_have_texts_and_colours_of_their_own(void **state)
{
	(void)state;
	for (uint8_t a = 0; a < HD_TL_CLASS_COUNT; a++) {
		assert_true(strlen(hd_tl_class_text(a)) > 0 && strlen(hd_tl_class_colour(a)) == 7);
		for (uint8_t b = 0; b < a; b++)
			CHECK(strcmp(hd_tl_class_text(a), hd_tl_class_text(b)) != 0 &&
				strcmp(hd_tl_class_colour(a), hd_tl_class_colour(b)) != 0,
				"classes %d and %d", a, b);
	}
	assert_null(hd_tl_class_text(HD_TL_CLASS_COUNT));
	assert_null(hd_tl_class_colour(255));
}

static void what_is_made_by_hand_has_the_order_of_the_value(void **state)
{
	(void)state;
	static struct tl_maker m;
	tl_begin(&m);
	uint32_t p = tl_process(&m, "worker 0", 0), d = tl_lane(&m, p, HD_LANE_DEVICE, "dev 0"),
		r = tl_lane(&m, p, HD_LANE_READER, "reader"), q = tl_process(&m, "worker 1", 1),
		e = tl_lane(&m, q, HD_LANE_DEVICE, "dev 0");
	tl_event(&m, e, HD_EVENT_OP, HD_TL_FORWARD, 5, 9, "F")->vn = 4;
	tl_event(&m, d, HD_EVENT_OP, HD_TL_BACKWARD, 20, 25, "B");
	tl_event(&m, d, HD_EVENT_WAIT, HD_TL_WAIT, 20, 22, "?");
	tl_event(&m, d, HD_EVENT_OP, HD_TL_FORWARD, -3, 4, "F");
	tl_step(&m, q, 8, 0, 30, true);
	tl_step(&m, p, 8, 10, 30, false);
	tl_step(&m, p, 7, -5, 10, true);
	const struct hd_timeline *t = tl_end(&m);
	assert_true(t->nevents == 4 && t->nlanes == 3 && t->nprocesses == 2 && t->nsteps == 3);
	assert_true(t->begin == -3 && t->end == 25 && t->nnames == 3);
	assert_true(t->lane[d].begin == 0 && t->lane[d].end == 3 && t->lane[r].begin == t->lane[r].end);
	assert_true(t->event[0].t0 == -3 && t->event[1].t1 == 25 && t->event[2].t1 == 22 &&
		t->event[3].vn == 4);
	assert_true(t->step[0].number == 7 && t->process[0].step_end == 2 && t->process[1].step_begin == 2);
	assert_true(t->event[0].step == 0 && t->event[1].step == 1 && t->event[3].step == 2);
	tl_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_have_texts_and_colours_of_their_own),
		cmocka_unit_test(what_is_made_by_hand_has_the_order_of_the_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
