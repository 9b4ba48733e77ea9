#include "base/timeouts.h"

#include "tests/check.h"

enum { MS = 1000000, MOST_MS = 60000 };

/* Of each workers.detect, by a clock that stands still while the loop works: signs of life come each quarter,
 * and looks no more rarely than they do, nor than each 250 ms. */
static void a_sign_of_life_is_never_late_for_a_look(void **state)
{
	(void)state;
	for (int64_t t_ns = INT64_C(50) * MS; t_ns <= INT64_C(1) * MOST_MS * MS; t_ns += 10 * MS) {
		const int64_t beat_ns = HD_TIMEOUT_NS(HEARTBEAT, t_ns);
		int64_t now_ns = 0, beat_at_ns = beat_ns, looks = 0;
		while (now_ns < beat_at_ns) {
			const int64_t at_ns = hd_look_at_ns(now_ns, beat_at_ns, t_ns);
			CHECK(at_ns > now_ns && at_ns - now_ns <= 250 * MS, "%lld ns: a look",
				(long long)t_ns);
			now_ns = at_ns;
			looks++;
		}
		CHECK(now_ns == beat_at_ns && looks == (beat_ns + 250 * MS - 1) / (250 * MS),
			"%lld ns: a sign of life after %lld", (long long)t_ns, (long long)now_ns);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sign_of_life_is_never_late_for_a_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
