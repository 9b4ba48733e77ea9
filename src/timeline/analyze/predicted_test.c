#include "timeline/analyze/predicted.h"

#include "timeline/analyze/testing.h"
#include "tests/check.h"

static void groups_have_their_medians_and_the_costliest_is_first(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	struct hd_tl_causes causes;
	struct hd_tl_predicted *g;
	size_t n;

	/* F: 1 to 11 times 100 predicted; B: twice; a transfer: its wait does not count */
	hd_tl_hand_init(&h, 1);
	for (int64_t i = 1; i <= 11; i++) {
		hd_tl_hand_op(&h, 0, 1, 10000 * i, 10000 * i + 100 * i);
		h.event[h.tl.nevents - 1].predicted_ns = 100;
		hd_tl_hand_op(&h, 0, 2, 10000 * i + 5000, 10000 * i + 5020);
		h.event[h.tl.nevents - 1].predicted_ns = 10;
		hd_tl_hand_op(&h, 0, 3, 10000 * i + 6000, 10000 * i + 9999);
	}
	struct hd_tl_event *e = hd_tl_hand_add(&h, 1, HD_EVENT_SEND, 0, 1000);
	*e = (struct hd_tl_event){ .t0 = 0, .t1 = 1000, .gate = 0, .first = 900, .lane = 1, .name = 4,
		.kind = HD_EVENT_SEND, .arg = 4096, .predicted_ns = 200 };
	hd_tl_hand_made(&h, &causes);
	assert_int_equal(hd_tl_predicted_of(&h.tl, &h.arena, &g, &n, NULL), HD_OK);
	assert_int_equal(n, 3);
	assert_true(g[0].name == 1 && g[0].n == 11 && g[0].ratio == 6 && g[0].p10 == 2 && g[0].p90 == 10);
	assert_true(g[0].cost_ns == 11 * 500);
	assert_true(g[1].name == 2 && g[1].ratio == 2 && g[1].error > 0.499 && g[1].error < 0.501);
	assert_true(g[2].kind == HD_EVENT_SEND && g[2].size == 12 && g[2].ratio == 0.5);
	hd_arena_finish(&h.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_have_their_medians_and_the_costliest_is_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
