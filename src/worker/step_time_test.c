#include "worker/step_time.h"

#include "tests/check.h"

/* A thread's life by the millisecond: in a step or between two, at instructions of the step at hand or of the
 * next, at work or waiting. Each millisecond is put down by hand with the step that it is of. */
enum { STEPS = 200, MOST = 20 };

static uint32_t draw(uint64_t *seed, uint32_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % below;
}

/* What a step is to have: all its time, and of that waits before BEGIN and for commands, and work. */
struct own { int64_t took, waited, computed; };

static int64_t run_ahead(struct hd_step_time *t, bool between, int64_t now, struct own *of, uint64_t *seed)
{
	const int64_t worked = draw(seed, MOST), waited = draw(seed, MOST);

	hd_step_time_ahead(t, between, worked + waited, waited);
	of->computed += worked;
	of->took += worked + waited;
	of->waited += between ? waited : 0;       /* inside a step the engine's record has it */
	return now + worked + waited;
}

static void each_millisecond_is_of_one_step(void **state)
{
	struct hd_step_time t = { 0 };
	struct own at = { 0 }, next = { 0 };
	uint64_t seed = 3;
	int64_t now = 1000;

	(void)state;
	for (uint32_t step = 0; step < STEPS; step++) {
		const bool ahead = step % 7 != 3;         /* else another view came between */
		hd_step_time_begin(&t, ahead, now);
		at = ahead ? next : (struct own){ 0 };
		next = (struct own){ 0 };
		for (uint32_t i = draw(&seed, 4); i > 0; i--) {
			now = run_ahead(&t, false, now, &at, &seed);
			const int64_t idle = draw(&seed, MOST);
			t.waited_ns += idle;
			at.waited += idle;
			at.took += idle;
			now += idle;
		}
		CHECK(now - t.began_ns == at.took && t.waited_ns == at.waited && t.computed_ns == at.computed,
			"step %u: took %lld of %lld, waited %lld of %lld, computed %lld of %lld", step,
			(long long)(now - t.began_ns), (long long)at.took, (long long)t.waited_ns,
			(long long)at.waited, (long long)t.computed_ns, (long long)at.computed);
		for (uint32_t i = draw(&seed, 3); i > 0; i--)
			now = run_ahead(&t, true, now, &next, &seed);
		const int64_t gate = draw(&seed, MOST);   /* no command, and nothing to run: of no step */
		t.waited_ns += gate;
		now += gate;
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_millisecond_is_of_one_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
