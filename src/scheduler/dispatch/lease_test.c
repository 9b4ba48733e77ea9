#include "scheduler/lease.h"

#include "tests/check.h"

/* The rules of the header, not the table. */
static void no_state_is_left_by_silence_but_through_expired(void **state)
{
	enum hd_lease_state next;
	(void)state;

	for (int s = 0; s < HD_LEASE_NSTATES; s++) {
		bool late = hd_lease_next((enum hd_lease_state)s, HD_LEASE_ON_LATE, &next);
		CHECK(late == (s < HD_LEASE_EXPIRED) && (!late || next == HD_LEASE_EXPIRED), "state %d", s);
		bool killed = hd_lease_next((enum hd_lease_state)s, HD_LEASE_ON_KILL, &next);
		CHECK(killed == (s == HD_LEASE_EXPIRED || s == HD_LEASE_KILLED), "state %d", s);
	}
}

static void a_released_lease_stays_released_and_every_other_can_end(void **state)
{
	enum hd_lease_state next;
	(void)state;

	for (int e = 0; e < HD_LEASE_NEVENTS; e++)
		CHECK(!hd_lease_next(HD_LEASE_RELEASED, (enum hd_lease_event)e, &next), "event %d", e);
	for (int s = 0; s < HD_LEASE_RELEASED; s++)
		CHECK(hd_lease_next((enum hd_lease_state)s, HD_LEASE_ON_GONE, &next) &&
			next == HD_LEASE_RELEASED, "state %d", s);
}

static void who_was_told_to_leave_does_not_run_again(void **state)
{
	(void)state;

	for (int s = HD_LEASE_DRAIN; s < HD_LEASE_NSTATES; s++)
		for (int e = 0; e < HD_LEASE_NEVENTS; e++) {
			enum hd_lease_state next = (enum hd_lease_state)s;
			(void)hd_lease_next((enum hd_lease_state)s, (enum hd_lease_event)e, &next);
			CHECK((int)next >= s, "state %d, event %d: %s", s, e, hd_lease_name(next));
		}
}

static void the_life_of_a_lease_is_that_of_the_document(void **state)
{
	static const struct { enum hd_lease_event on; const char *then; } life[] = {
		{ HD_LEASE_ON_RAN, "held" }, { HD_LEASE_ON_CHANGED, "resize" }, { HD_LEASE_ON_RAN, "held" }, { HD_LEASE_ON_LEAVE, "drain" },
		{ HD_LEASE_ON_LATE, "expired" }, { HD_LEASE_ON_KILL, "killed" }, { HD_LEASE_ON_GONE, "released" },
	};
	enum hd_lease_state s = HD_LEASE_OFFERED;
	(void)state;

	for (size_t i = 0; i < sizeof life / sizeof *life; i++) {
		CHECK(hd_lease_next(s, life[i].on, &s), "step %zu", i);
		assert_string_equal(hd_lease_name(s), life[i].then);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_state_is_left_by_silence_but_through_expired),
		cmocka_unit_test(a_released_lease_stays_released_and_every_other_can_end),
		cmocka_unit_test(who_was_told_to_leave_does_not_run_again),
		cmocka_unit_test(the_life_of_a_lease_is_that_of_the_document),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
