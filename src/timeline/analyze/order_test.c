#include "timeline/analyze/order.h"

#include "base/philox.h"
#include "timeline/analyze/testing.h"
#include "tests/check.h"

static uint32_t draw(uint64_t seed, uint32_t *i, uint32_t below)
{
	return hd_philox((uint32_t[4]){ (*i)++, 0, 0, 0 }, hd_philox_key(seed, HD_RNG_USER)).word[0] % below;
}

/* All pairs of all transfers, by the definition. */
static void violations_are_those_of_the_definition(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	uint64_t seen = 0;

	for (uint64_t seed = 0; seed < DRAWS(300); seed++) {
		struct hd_tl_causes causes;
		struct hd_tl_orders o;
		uint64_t want = 0;
		uint32_t i = 0;
		hd_tl_hand_init(&h, 2);
		for (int k = 0; k < 12; k++) {
			const uint32_t from = draw(seed, &i, 2);
			const int64_t t = draw(seed, &i, 50), gate = t + draw(seed, &i, 10), first = gate +
				draw(seed, &i, 30);
			hd_tl_hand_move(&h, from, 1 - from, 0, 8, (int64_t[]){ t, gate, first, first + 5,
				first + 6 });
			h.event[h.tl.nevents - 2].priority_class = (uint16_t)draw(seed, &i, 3);
			h.event[h.tl.nevents - 2].step = draw(seed, &i, 2);
		}
		hd_tl_hand_made(&h, &causes);
		for (uint64_t a = 0; a < h.tl.nevents; a++)
			for (uint64_t b = 0; b < h.tl.nevents; b++) {
				const struct hd_tl_event *x = &h.event[a], *y = &h.event[b];
				want += x->kind == HD_EVENT_SEND && y->kind == HD_EVENT_SEND && x->lane ==
					y->lane && x->step == y->step && x->priority_class < y->priority_class
						&&
					x->gate < y->first && y->first < x->first;
			}
		CHECK(!hd_tl_orders_of(&h.tl, &h.arena, &o, NULL), "seed %u", (unsigned)seed);
		CHECK(o.violations == want && o.transfers == 12 && o.pairs >= want, "seed %u: %u, not %u",
			(unsigned)seed, (unsigned)o.violations, (unsigned)want);
		seen += want;
		hd_arena_finish(&h.arena);
	}
	assert_true(seen > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(violations_are_those_of_the_definition),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
