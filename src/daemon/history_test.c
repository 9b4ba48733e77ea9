#include "daemon/history.h"

#include <math.h>

#include "tests/check.h"

/* A device that is busy every other hour, looked at five times a second for three days. */
static void days_are_kept_in_as_many_samples_as_minutes(void **state)
{
	static struct hd_history h = { .every_s = 1 };
	uint32_t most = 0;
	(void)state;

	for (int i = 0; i < 3 * 86400 * 5; i++) {
		double now_s = 7 + i / 5.0;
		struct hd_history_count of[2] = { { .busy = (uint32_t)(now_s / 3600) % 2 }, { .free = 3 } };
		if (hd_history_due(&h, now_s))
			hd_history_add(&h, now_s, of, 2);
		most = h.n > most ? h.n : most;
	}
	CHECK(most == HD_HISTORY && h.n > HD_HISTORY / 2, "%u samples, %u at most", h.n, most);
	CHECK(h.sample[0].at_s == 7, "the first is of %g", h.sample[0].at_s);
	CHECK(h.sample[h.n - 1].at_s > 3 * 86400 - 2 * h.every_s, "the last is of %g",
		h.sample[h.n - 1].at_s);
	for (uint32_t i = 0; i < h.n; i++) {
		const struct hd_history_sample *s = &h.sample[i];
		CHECK(s->of[0].busy == (uint32_t)(s->at_s / 3600) % 2 && s->of[1].free == 3 && !s->of[1].busy,
			"sample %u of %g: %u busy", i, s->at_s, s->of[0].busy);
		if (i)
			CHECK(fabs(s->at_s - s[-1].at_s - h.every_s) <= 0.5 * h.every_s, "%g after %g",
				s->at_s, s[-1].at_s);
	}
}

static void the_first_sample_is_due_at_once_and_the_next_is_not(void **state)
{
	struct hd_history h = { .every_s = 2 };
	const struct hd_history_count of = { 1, 2, 3 };
	(void)state;

	CHECK(hd_history_due(&h, 0), "not at once");
	hd_history_add(&h, 0, &of, 1);
	CHECK(!hd_history_due(&h, 1.99) && hd_history_due(&h, 2), "every 2 s");
	assert_int_equal(h.sample[0].of[0].lost, 3);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(days_are_kept_in_as_many_samples_as_minutes),
		cmocka_unit_test(the_first_sample_is_due_at_once_and_the_next_is_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
