#include "driver/scaler.h"

#include <string.h>

#include "tests/check.h"

/* A run whose steps take what `step_ms` says at each size; members come one step after they are asked for. */
/* best at 6 */
static double step_ms(uint32_t size) { return 64.0 / size + (size > 6 ? 4.0 * (size - 6) : 0); }

static uint32_t guests;
struct scaled_run { uint32_t members, target, changes; uint64_t last, step; char why[HD_SCALE_WHY]; };

static void play(struct hd_scaler *s, struct scaled_run *r, uint64_t steps)
{
	for (uint64_t end = r->step + steps; r->step < end; r->step++) {
		bool said;
		const struct hd_scaler_now now = { .members = r->members, .target = r->target,
			.guests = guests,
			.step_ns = (uint64_t)(step_ms(r->members + guests) * 1e6),
			.vn_ps = 1000000000, .left = 100000 - r->step,
			.now_ns = (int64_t)r->step * 10000000 };
		uint32_t size = hd_scaler_step(s, &now, &said);
		if (said)
			memcpy(r->why, s->why, sizeof r->why);
		r->members = r->target;
		if (!size)
			continue;
		assert_int_not_equal(size, r->members);
		r->target = size;
		r->changes++;
		r->last = r->step;
	}
}

static void from_every_size_it_settles_and_stays(void **state)
{
	static const struct { enum hd_objective objective; uint32_t best;
		} rows[] = { { HD_OBJECTIVE_TIME, 6 }, { HD_OBJECTIVE_COST, 6 } };

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (uint32_t start = 1; start <= 16; start++) {
			static struct hd_scaler s;
			struct scaled_run r = { .members = start, .target = start };
			s = (struct hd_scaler){ .nvns = 64, .min = 1, .max = 16,
				.objective = rows[i].objective, .every = 20, .price_usd_h = 1 };
			assert_int_equal(hd_scaler_turn(&s, "curve", NULL), HD_OK);
			play(&s, &r, 3000);
			double j = step_ms(r.members) * (rows[i].objective == HD_OBJECTIVE_COST ? r.members :
				1);
			double best = step_ms(rows[i].best) * (rows[i].objective == HD_OBJECTIVE_COST ?
				rows[i].best : 1);
			CHECK(j <= 1.05 * best, "from %u: ends at %u: %s", start, r.members, r.why);
			CHECK(r.last < 1500, "from %u: still changes at step %u: %s", start, (unsigned)r.last,
				r.why);
			CHECK(strlen(r.why) > 10, "no reason");
		}
}

static void nothing_is_tried_before_it_is_on_or_while_members_come(void **state)
{
	static struct hd_scaler s;
	struct scaled_run r = { .members = 4, .target = 4 };
	struct hd_diag diag = { "" };
	bool said = true;

	(void)state;
	s = (struct hd_scaler){ .nvns = 64, .min = 1, .max = 16, .every = 20, .price_usd_h = 1 };
	play(&s, &r, 200);
	assert_int_equal(r.changes, 0);
	assert_int_equal(hd_scaler_turn(&s, "curv", &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "did you mean curve"), "%s", diag.text);
	assert_null(s.policy);
	assert_int_equal(hd_scaler_turn(&s, "curve", NULL), HD_OK);
	for (uint32_t i = 0; i < 200; i++) {
		const struct hd_scaler_now now = { .members = 4, .target = 5, .step_ns = 16000000,
			.vn_ps = 1000000000, .left = 1000 };
		assert_int_equal(hd_scaler_step(&s, &now, &said), 0);
		assert_false(said);
	}
	assert_int_equal(hd_scaler_turn(&s, NULL, NULL), HD_OK);
	play(&s, &r, 200);
	assert_int_equal(r.changes, 0);
}

/* From 2 members it asks for more than 3, and 3 come. */
static void ask_for_more_than_come(struct hd_scaler *s, struct scaled_run *r)
{
	*r = (struct scaled_run){ .members = 2, .target = 2 };
	*s = (struct hd_scaler){ .nvns = 64, .min = 1, .max = 16, .every = 20, .price_usd_h = 1,
		.detect_ns = 1000000000 };
	assert_int_equal(hd_scaler_turn(s, "curve", NULL), HD_OK);
	while (r->target <= 3)
		play(s, r, 1);
	r->members = 3;
}

static uint32_t look(struct hd_scaler *s, const struct scaled_run *r, uint32_t here, double after_s,
	double step_s, bool *said)
{
	const struct hd_scaler_now now = { .members = r->members, .target = r->target, .here = here,
		.step_ns = (uint64_t)(step_s * 1e9),
		.vn_ps = 1000000000, .left = 1000, .now_ns = (int64_t)r->step * 10000000 +
		(int64_t)(after_s * 1e9) };

	return hd_scaler_step(s, &now, said);
}

static void workers_that_do_not_come_are_not_asked_for_again(void **state)
{
	static struct hd_scaler s;
	struct scaled_run r;
	bool said;

	(void)state;
	ask_for_more_than_come(&s, &r);
	for (double second = 1; second < 40; second++) {
		uint32_t size = look(&s, &r, 3, second, 0.02, &said);
		/* 30 T and 4 steps */
		CHECK(size == (second < 31 ? 0 : 3), "%u after %g s", size, second);
		if (size) {
			CHECK(said && strstr(s.why, "3 of ") && strstr(s.why, "workers came in 31 s"), "%s",
				s.why);
			break;
		}
	}
	r.target = 3;
	r.changes = 0;
	play(&s, &r, 2000);
	assert_true(r.members <= 3);
}

static void a_long_step_makes_it_wait_longer(void **state)
{
	static struct hd_scaler s;
	struct scaled_run r;
	bool said;

	(void)state;
	ask_for_more_than_come(&s, &r);
	for (double step = 1; step <= 4; step++)
		CHECK(look(&s, &r, 3, step * 90, 90, &said) == 0, "gave up after %g steps: %s", step, s.why);
	assert_int_equal(look(&s, &r, 3, 5 * 90, 90, &said), 3);
	assert_true(said);
}

static void who_is_to_go_is_waited_for_without_end(void **state)
{
	static struct hd_scaler s;
	struct scaled_run r = { .members = 12, .target = 12 };
	bool said;

	(void)state;
	s = (struct hd_scaler){ .nvns = 64, .min = 1, .max = 16, .every = 20, .price_usd_h = 1,
		.detect_ns = 1000000000 };
	assert_int_equal(hd_scaler_turn(&s, "curve", NULL), HD_OK);
	while (r.target >= 12 && r.step < 3000)
		play(&s, &r, 1);
	assert_true(r.target < 12);
	r.members = 12;
	for (double second = 1; second < 1000; second += 10)
		CHECK(look(&s, &r, 12, second, 0.02, &said) == 0 && !said, "after %g s: %s", second, s.why);
}

static void slow_workers_open_the_sizes_above_again(void **state)
{
	static struct hd_scaler s;
	struct scaled_run r;
	bool said;

	(void)state;
	ask_for_more_than_come(&s, &r);
	assert_int_equal(look(&s, &r, 3, 40, 0.02, &said), 3);
	r.target = 3;
	look(&s, &r, 3, 41, 0.02, &said);
	assert_int_equal(s.cut, 3);
	look(&s, &r, 4, 42, 0.02, &said);        /* one came late, and stands by */
	assert_int_equal(s.cut, 0);
	r.step += 10000;
	play(&s, &r, 3000);
	assert_int_equal(r.members, 6);
	/* turned on again: tried again */
	ask_for_more_than_come(&s, &r);
	assert_int_equal(look(&s, &r, 3, 40, 0.02, &said), 3);
	assert_int_equal(hd_scaler_turn(&s, "curve", NULL), HD_OK);
	assert_int_equal(s.cut, 0);
}

/* Three guests: 6 in all are best, so 3 of those that can be asked for; when the guests go, 6 again. */
static void guests_are_no_size_but_shorten_steps(void **state)
{
	static struct hd_scaler s;
	struct scaled_run r = { .members = 1, .target = 1 };

	(void)state;
	s = (struct hd_scaler){ .nvns = 64, .min = 1, .max = 8, .every = 20, .price_usd_h = 1,
		.detect_ns = 1000000000 };
	assert_int_equal(hd_scaler_turn(&s, "curve", NULL), HD_OK);
	for (uint32_t phase = 0; phase < 2; phase++) {
		guests = phase ? 0 : 3;
		play(&s, &r, 3000);
		double got = step_ms(r.members + guests);
		assert_int_equal(s.compute_ps[1], (phase ? 64 : 16) * INT64_C(1000000000));
		CHECK(r.changes > phase && got <= 1.05 * step_ms(6), "with %u guests it ends at %u: %s",
			guests, r.members, r.why);
	}
	guests = 0;
}

/* More guests than a local machine has workers: it neither stops nor asks for fewer on their account. */
static void many_guests_do_not_silence_it(void **state)
{
	static struct hd_scaler s;
	struct scaled_run r = { .members = 2, .target = 2 };

	(void)state;
	s = (struct hd_scaler){ .nvns = 12, .min = 1, .max = 2, .every = 20, .price_usd_h = 1,
		.detect_ns = 1000000000 };
	assert_int_equal(hd_scaler_turn(&s, "curve", NULL), HD_OK);
	guests = 4;
	play(&s, &r, 1000);
	guests = 0;
	CHECK(strlen(r.why) > 10 && r.members == 2, "%u members: %s", r.members, r.why);
	/* each has a virtual node at least */
	guests = 11;
	r.members = r.target = 1;
	play(&s, &r, 10);
	guests = 0;
	assert_int_equal(s.scale.set.max, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_every_size_it_settles_and_stays),
		cmocka_unit_test(nothing_is_tried_before_it_is_on_or_while_members_come),
		cmocka_unit_test(workers_that_do_not_come_are_not_asked_for_again),
		cmocka_unit_test(a_long_step_makes_it_wait_longer),
		cmocka_unit_test(who_is_to_go_is_waited_for_without_end),
		cmocka_unit_test(slow_workers_open_the_sizes_above_again),
		cmocka_unit_test(guests_are_no_size_but_shorten_steps),
		cmocka_unit_test(many_guests_do_not_silence_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
