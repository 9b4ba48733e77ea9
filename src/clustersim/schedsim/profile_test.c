#include "clustersim/schedsim/profile.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"

enum { PROFILES = 4, STEPS = 90, HORIZON = 60 };

/* What is free of each in each second: the same without steps. */
struct seconds { int free[PROFILES][HORIZON]; };

static uint32_t draw(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

static void fill(struct profile *p, struct profile_step *room, int *free, uint32_t *state)
{
	int now = (int)draw(state, 4);

	profile_open(p, room, 0, (uint32_t)now);
	for (int at = 0, next = 1 + (int)draw(state, 9); at < HORIZON; at++) {
		if (at == next) {
			const uint32_t n = draw(state, 4);
			profile_release(p, at, n);
			now += (int)n;
			next += 1 + (int)draw(state, 20);
		}
		free[at] = now;
	}
}

static int least(const int *free, int from, int for_s)
{
	int n = free[from];

	for (int at = from; at < from + for_s && at < HORIZON; at++)
		n = free[at] < n ? free[at] : n;
	return n;
}

static int of_second(const struct seconds *s, int n, int at, int for_s, uint32_t per)
{
	int all = 0;

	for (int k = 0; k < n; k++) {
		const int one = least(s->free[k], at, for_s);
		all += !per ? one : one >= (int)per ? (int)per : 0;
	}
	return all;
}

static void several_profiles_are_free_when_every_second_says_so(void **state)
{
	uint32_t seed = 7;
	int nnever = 0, nlater = 0;

	(void)state;
	for (int turn = 0; turn < DRAWS(3000); turn++) {
		struct profile_step room[PROFILES][STEPS];
		uint32_t index[PROFILES][STEPS];
		struct profile p[PROFILES];
		struct profile_window w[PROFILES];
		struct seconds s;
		const int n = 1 + (int)draw(&seed, PROFILES), for_s = 1 + (int)draw(&seed, 30);
		const uint32_t per = draw(&seed, 3), devices = (per ? per : 1) * (1 + draw(&seed, 6));
		for (int k = 0; k < n; k++) {
			fill(&p[k], room[k], s.free[k], &seed);
			for (int take = 0; take < 3; take++) {
				const int at = (int)draw(&seed, 30), len = 1 + (int)draw(&seed, 25);
				const int most = least(s.free[k], at, len);
				const uint32_t some = most > 0 ? draw(&seed, (uint32_t)most + 1) : 0;
				if (!some)
					continue;
				profile_take(&p[k], at, len, some);
				for (int i = at; i < at + len && i < HORIZON; i++)
					s.free[k][i] -= (int)some;
			}
			w[k] = (struct profile_window){ .of = &p[k], .room = index[k] };
		}
		int want = 0;
		while (want < HORIZON && of_second(&s, n, want, for_s, per) < (int)devices)
			want++;
		const double got = profile_earliest_of(w, (uint32_t)n, devices, per, for_s);
		nnever += want == HORIZON;
		nlater += want > 0 && want < HORIZON;
		if (want == HORIZON) {
			assert_true(isinf(got));
			continue;
		}
		assert_true(got >= want && got <= want);
		for (int k = 0; k < n; k++) {
			const int one = least(s.free[k], want, for_s);
			assert_int_equal(w[k].least, !per ? one : one >= (int)per ? (int)per : 0);
		}
		if (n == 1 && !per)
			assert_true(got >= profile_earliest(&p[0], devices, for_s) &&
				got <= profile_earliest(&p[0], devices, for_s));
	}
	assert_true(nnever > 5 && nlater > 50);
}

static void what_is_given_back_is_as_if_it_had_not_been_taken(void **state)
{
	struct profile_step room[2][STEPS];
	struct profile p[2];
	uint32_t seed = 3;
	int free[HORIZON];

	(void)state;
	fill(&p[0], room[0], free, &seed);
	memcpy(room[1], room[0], sizeof room[0]);
	p[1] = (struct profile){ room[1], p[0].n };
	for (uint32_t n = 1; n < 9; n++)
		for (double for_s = 1; for_s < 40; for_s += 3) {
			const double at_s = profile_earliest(&p[0], n, for_s);
			if (!(at_s < INFINITY))
				continue;
			profile_take(&p[1], at_s, for_s, n);
			profile_give(&p[1], at_s, for_s, n);
			const double again_s = profile_earliest(&p[1], n, for_s);
			assert_true(again_s >= at_s && again_s <= at_s);
			p[1].n = p[0].n;
			memcpy(room[1], room[0], sizeof room[0]);
		}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_profiles_are_free_when_every_second_says_so),
		cmocka_unit_test(what_is_given_back_is_as_if_it_had_not_been_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
