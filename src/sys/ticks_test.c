#include "sys/ticks.h"

#include <string.h>

#include "sys/clock.h"
#include "tests/check.h"

/* By the kernel's clock before and after: the oracle. */
static void check_look(struct hd_ticks *ticks, const struct hd_ticks_rate *rate, uint64_t off_ns)
{
	const uint64_t before = hd_clock_raw_ns(), now = hd_ticks_ns(ticks, rate), after = hd_clock_raw_ns();

	CHECK(now + off_ns >= before && now <= after + off_ns, "%llu is not in [%llu, %llu] by %llu",
		(unsigned long long)now, (unsigned long long)before, (unsigned long long)after,
		(unsigned long long)off_ns);
}

static void pass_ns(uint64_t ns)
{
	for (const uint64_t began = hd_clock_raw_ns(); hd_clock_raw_ns() - began < ns;)
		;
}

static bool known(struct hd_ticks_rate *rate)
{
	*rate = (struct hd_ticks_rate){ 0 };
	for (int i = 0; i < 100 && hd_ticks_usable() && !rate->mult; i++) {
		hd_ticks_measure(rate);
		pass_ns(HD_TICKS_KNOWN_NS / 4);
	}
	return rate->mult;
}

static void a_look_is_the_kernels_time(void **state)
{
	struct hd_ticks_rate rate;
	struct hd_ticks ticks = { 0 };

	(void)state;
	if (!known(&rate))
		SKIP("this kernel does not keep time by the processor's counter");
	for (int i = 0; i < 200000; i++)          /* some tens of spans, and the middles of them */
		check_look(&ticks, &rate, HD_TICKS_OFF_NS);
	assert_true(ticks.tick);                  /* it was not the kernel that answered */
}

static void a_look_is_never_before_the_last(void **state)
{
	struct hd_ticks_rate rate;
	struct hd_ticks ticks = { 0 };
	uint64_t last = 0;

	(void)state;
	if (!known(&rate))
		SKIP("this kernel does not keep time by the processor's counter");
	for (int i = 0; i < 500000; i++) {
		const uint64_t now = hd_ticks_ns(&ticks, &rate);
		assert_true(now >= last);
		last = now;
	}
	/* an anchor that says that less time has gone than the last look said */
	ticks.ns -= 100000;
	assert_true(hd_ticks_ns(&ticks, &rate) == last);
}

static void without_a_rate_the_kernel_is_asked(void **state)
{
	struct hd_ticks_rate rate = { 0 };
	struct hd_ticks ticks = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		check_look(&ticks, &rate, 0);
	const uint64_t began = hd_clock_raw_ns();
	hd_ticks_measure(&rate);
	assert_true(!rate.mult);                  /* of one look nothing follows, of two close ones little */
	pass_ns(HD_TICKS_OFF_NS);
	hd_ticks_measure(&rate);
	assert_true(!rate.mult || hd_clock_raw_ns() - began >= HD_TICKS_KNOWN_NS);
	if (!known(&rate))
		return;
	hd_ticks_forget(&rate);
	for (int i = 0; i < 10; i++) {            /* for good, however often it is measured */
		hd_ticks_measure(&rate);
		pass_ns(HD_TICKS_KNOWN_NS / 4);
	}
	ticks = (struct hd_ticks){ 0 };
	for (int i = 0; i < 1000; i++)
		check_look(&ticks, &rate, 0);
}

/* A counter that runs twice as fast as it was measured to: no time is off by more than a span. */
static void a_wrong_rate_is_wrong_for_a_span(void **state)
{
	struct hd_ticks_rate rate;
	struct hd_ticks ticks = { 0 };

	(void)state;
	if (!known(&rate))
		SKIP("this kernel does not keep time by the processor's counter");
	atomic_store(&rate.mult, atomic_load(&rate.mult) / 2);
	for (const uint64_t began = hd_clock_raw_ns(); hd_clock_raw_ns() - began < 20 * HD_TICKS_SPAN_NS;)
		check_look(&ticks, &rate, HD_TICKS_SPAN_NS + HD_TICKS_OFF_NS);
}

/* As if the counter had gone on while the kernel's clock stood still, for long, or for a ms; or was set back.
 */
static void a_machine_that_slept_is_measured_again(void **state)
{
	static const int64_t slept[] = { 3600ll << 31, 1ll << 31, -(1ll << 31), 1ll << 22 };      /* ticks */
	struct hd_ticks_rate rate;

	(void)state;
	for (size_t i = 0; i < sizeof slept / sizeof *slept; i++) {
		if (!known(&rate))
			SKIP("this kernel does not keep time by the processor's counter");
		const double mult = (double)rate.mult;
		rate.first_tick -= (uint64_t)slept[i];
		rate.last_tick -= (uint64_t)slept[i];
		for (int k = 0; k < 10 || (k < 100 && !rate.mult); k++) {
			hd_ticks_measure(&rate);
			const double now = (double)rate.mult;
			assert_true(!rate.mult || (now > mult * 0.999 && now < mult * 1.001));
			pass_ns(HD_TICKS_KNOWN_NS / 4);
		}
		assert_true(rate.mult);           /* it is known again */
	}
}

static void an_old_anchor_is_made_again(void **state)
{
	struct hd_ticks_rate rate;
	struct hd_ticks ticks = { 0 };

	(void)state;
	if (!known(&rate))
		SKIP("this kernel does not keep time by the processor's counter");
	check_look(&ticks, &rate, HD_TICKS_OFF_NS);
	ticks.tick -= 2 * rate.span;              /* as if the thread had slept */
	ticks.ns -= 7 * HD_TICKS_SPAN_NS;         /* and what it knew were wrong */
	pass_ns(10 * HD_TICKS_OFF_NS);            /* so that the last time is too early, too */
	check_look(&ticks, &rate, HD_TICKS_OFF_NS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_is_the_kernels_time),
		cmocka_unit_test(a_look_is_never_before_the_last),
		cmocka_unit_test(without_a_rate_the_kernel_is_asked),
		cmocka_unit_test(a_wrong_rate_is_wrong_for_a_span),
		cmocka_unit_test(a_machine_that_slept_is_measured_again),
		cmocka_unit_test(an_old_anchor_is_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
