#include "timeline/analyze/breakdown.h"

#include <math.h>

#include "base/philox.h"
#include "timeline/analyze/testing.h"
#include "tests/check.h"

/* Random lanes against a bitmap of one entry per ns. */

enum { WIDTH = 200 };

static uint32_t draw(uint64_t seed, uint32_t *i, uint32_t below)
{
	return hd_philox((uint32_t[4]){ (*i)++, 0, 0, 0 }, hd_philox_key(seed, HD_RNG_USER)).word[0] % below;
}

/* Disjoint or strictly nested, two deep: reasons that no transfer ends. */
static void some_events(struct hd_tl_hand *h, uint64_t seed, uint8_t *part)
{
	static const struct { enum hd_wait reason; enum hd_tl_part part; } wait[] = {
		{ HD_WAIT_DATA, HD_TL_PART_DATA }, { HD_WAIT_SLOT, HD_TL_PART_SLOT },
		{ HD_WAIT_MEMORY, HD_TL_PART_MEMORY }, { HD_WAIT_OTHER, HD_TL_PART_OTHER },
	};
	uint32_t i = 0;

	for (int t = 0; t < WIDTH; t++)
		part[t] = HD_TL_PART_IDLE;
	for (int64_t t = draw(seed, &i, 20); t < WIDTH;) {
		const int64_t end = t + 1 + draw(seed, &i, 30), to = end < WIDTH ? end : WIDTH;
		const bool work = draw(seed, &i, 2);
		const uint32_t w = draw(seed, &i, 4);
		if (work)
			hd_tl_hand_op(h, 0, 1, t, to);
		else
			hd_tl_hand_wait(h, 0, wait[w].reason, t, to);
		for (int64_t k = t; k < to; k++)
			part[k] = (uint8_t)(work ? HD_TL_PART_WORK : wait[w].part);
		if (to - t > 4 && draw(seed, &i, 2)) {
			const int64_t a = t + 1, b = a + 1 + draw(seed, &i, (uint32_t)(to - t - 3));
			if (work)
				hd_tl_hand_wait(h, 0, wait[3 - w].reason, a, b);
			else
				hd_tl_hand_op(h, 0, 2, a, b);
			for (int64_t k = a; k < b; k++)
				part[k] = (uint8_t)(work ? wait[3 - w].part : HD_TL_PART_WORK);
		}
		t = to + draw(seed, &i, 3) * draw(seed, &i, 8);
	}
}

static void some_transfers(struct hd_tl_hand *h, uint64_t seed, uint8_t *bit)
{
	uint32_t i = 1000;

	for (uint32_t n = draw(seed, &i, 6); n > 0; n--) {
		const int64_t t = draw(seed, &i, WIDTH), first = t + draw(seed, &i, 10), end = first +
			draw(seed, &i, 40);
		struct hd_tl_event *e = hd_tl_hand_add(h, 1, draw(seed, &i, 2) ? HD_EVENT_SEND :
			HD_EVENT_RECV, t, end);
		e->first = first;
		for (int64_t k = first; k < end; k++)
			if (k < WIDTH)
				bit[k] = 1;
	}
}

static void the_parts_of_random_steps_are_those_of_a_bitmap(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	for (uint64_t seed = 0; seed < DRAWS(600); seed++) {
		uint8_t part[WIDTH], moved[WIDTH] = { 0 };
		uint32_t i = 2000;
		const int64_t from = draw(seed, &i, WIDTH / 2), to = from + draw(seed, &i, WIDTH / 2);
		struct hd_tl_causes causes;
		struct hd_tl_breakdown b;
		int64_t want[HD_TL_NPARTS] = { 0 }, sum = 0, hidden = 0, exposed = 0, rest = 0;
		hd_tl_hand_init(&h, 1);
		some_events(&h, seed, part);
		some_transfers(&h, seed, moved);
		hd_tl_hand_step(&h, 0, 7, from, to);
		hd_tl_hand_made(&h, &causes);
		for (int64_t t = from; t < to; t++) {
			const bool work = part[t] == HD_TL_PART_WORK;
			want[part[t]]++;
			hidden += work && moved[t];
			exposed += !work && moved[t];
			rest += !work && !moved[t];
		}
		CHECK(!hd_tl_breakdown_of(&causes, 0, 0, &h.arena, &b, NULL), "seed %u", (unsigned)seed);
		for (int p = 0; p < HD_TL_NPARTS; p++) {
			sum += b.part[p];
			CHECK(b.part[p] == want[p], "seed %u, %s: %lld, not %lld", (unsigned)seed,
				hd_tl_part_text((enum hd_tl_part)p), (long long)b.part[p], (long
					long)want[p]);
		}
		CHECK(sum == b.m && b.m == to - from, "seed %u", (unsigned)seed);
		CHECK(b.hidden == hidden && b.exposed == exposed && b.rest == rest, "seed %u",
			(unsigned)seed);
		CHECK(b.u == b.compute + b.transfer && b.l == (b.compute > b.transfer ? b.compute :
			b.transfer), "seed %u", (unsigned)seed);
		hd_arena_finish(&h.arena);
	}
}

static void overlap_is_one_when_all_is_hidden_and_zero_when_nothing_is(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	struct hd_tl_causes causes;
	struct hd_tl_breakdown b;

	/* step 1: 100 of work and 60 of transfers in 160; step 2: in 100; step 3: no transfer */
	hd_tl_hand_init(&h, 1);
	hd_tl_hand_op(&h, 0, 1, 0, 100);
	hd_tl_hand_add(&h, 1, HD_EVENT_SEND, 100, 160);
	hd_tl_hand_op(&h, 0, 1, 160, 260);
	hd_tl_hand_add(&h, 1, HD_EVENT_SEND, 180, 240);
	hd_tl_hand_op(&h, 0, 1, 260, 300);
	hd_tl_hand_step(&h, 0, 1, 0, 160);
	hd_tl_hand_step(&h, 0, 2, 165, 260);
	hd_tl_hand_step(&h, 0, 3, 260, 300);
	hd_tl_hand_made(&h, &causes);
	assert_int_equal(hd_tl_breakdown_of(&causes, 0, 0, &h.arena, &b, NULL), HD_OK);
	assert_true(b.e == 0 && b.s == 0.6 && b.alpha == 0.6);
	assert_int_equal(hd_tl_breakdown_of(&causes, 1, 0, &h.arena, &b, NULL), HD_OK);
	assert_int_equal(b.m, 100);       /* from the end of the step before */
	assert_true(b.e == 1 && b.exposed == 0 && b.hidden == 60);
	assert_int_equal(hd_tl_breakdown_of(&causes, 2, 0, &h.arena, &b, NULL), HD_OK);
	assert_true(isnan(b.e) && b.s == 0 && b.alpha == 0);
	hd_arena_finish(&h.arena);
}

/* Of all steps together about as many transfers are looked at as there are, not all of them for each. */
static void a_step_looks_at_its_own_transfers(void **state)
{
	(void)state;
	enum { STEPS = 200, EACH = 5 };
	static struct hd_tl_hand h;
	struct hd_tl_causes causes;
	uint64_t looked = 0;

	hd_tl_hand_init(&h, 1);
	for (int64_t s = 0; s < STEPS; s++) {
		hd_tl_hand_op(&h, 0, 1, 100 * s, 100 * s + 90);
		for (int64_t k = 0; k < EACH; k++)
			hd_tl_hand_add(&h, 1, HD_EVENT_SEND, 100 * s + 10 * k, 100 * s + 10 * k + 60);
		hd_tl_hand_step(&h, 0, (uint64_t)s, 100 * s, 100 * s + 100);
	}
	hd_tl_hand_made(&h, &causes);
	for (int64_t s = 0; s < STEPS; s++) {
		const uint64_t from = hd_tl_first_until(&causes, 1, 100 * s);
		uint64_t e = from;
		while (e < h.lane[1].end && h.event[e].t0 < 100 * s + 100)
			e++;
		looked += e - from;
		for (uint64_t i = h.lane[1].begin; i < from; i++)
			assert_true(h.event[i].t1 <= 100 * s);
	}
	CHECK(looked == STEPS * EACH, "%llu", (unsigned long long)looked);
	assert_int_equal(hd_tl_first_until(&causes, 1, 100 * STEPS), h.lane[1].end);
	hd_arena_finish(&h.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_parts_of_random_steps_are_those_of_a_bitmap),
		cmocka_unit_test(overlap_is_one_when_all_is_hidden_and_zero_when_nothing_is),
		cmocka_unit_test(a_step_looks_at_its_own_transfers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
