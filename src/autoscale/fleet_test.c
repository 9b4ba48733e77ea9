#include "autoscale/fleet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/philox.h"
#include "tests/check.h"

/* Fleets are drawn: every host has one worker in each of some jobs, jobs differ in pace, windows have noise.
 * What is slow is chosen here; the oracle is that choice. */

enum { WORKERS = 64, JOBS = 100 };
#define WINDOW 5.0
#define BASE_PS 8e9

struct fleet_draw {
	uint32_t seed, njobs, slow;               /* host; UINT32_MAX: none */
	enum hd_fleet_cause cause;
	double factor;
};

static float normal(uint32_t seed, uint32_t a, uint32_t b, uint32_t c)
{
	const struct hd_philox x = hd_philox((uint32_t[4]){ a, b, c, 0 }, seed);
	float z[2];

	hd_normal2(x.word[0], x.word[1], z);
	return z[0];
}

/* Of 64 hosts each group of jobs shares, one worker a job: job j runs on hosts of group j / 8. */
static uint32_t host_of(uint32_t job, uint32_t worker) { return job / 8 * WORKERS + worker; }

static void window(struct hd_fleet *f, const struct fleet_draw *g, uint32_t at)
{
	static struct hd_fleet_summary s[WORKERS];
	static char name[WORKERS][16];

	for (uint32_t j = 0; j < g->njobs; j++) {
		const double pace = BASE_PS * (1 + j % 7), part[] = { 0.6, 0.25, 0.15 };
		for (uint32_t w = 0; w < WORKERS; w++) {
			const uint32_t host = host_of(j, w);
			const double noise = 1 + 0.03 * (double)normal(g->seed, j, w, at);
			snprintf(name[w], sizeof name[w], "h%u", host);
			s[w] = (struct hd_fleet_summary){ .host = name[w], .worker = w, .steps = 20 };
			for (uint32_t c = 0; c < HD_FLEET_NCAUSES; c++)
				s[w].ps[c] = (uint64_t)(pace * part[c] * noise);
			if (host == g->slow)
				s[w].ps[g->cause] += (uint64_t)(pace * (g->factor - 1));
		}
		hd_fleet_take(f, j + 1, s, WORKERS, at * WINDOW);
	}
}

/* Slow hosts now; *first: one of them. */
static uint32_t count(const struct hd_fleet *f, double now_s, struct hd_fleet_said *first)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		struct hd_fleet_said said;
		if (hd_fleet_say(f, i, now_s, &said) && said.slow && !n++)
			*first = said;
	}
	return n;
}

static struct hd_fleet *empty(void)
{
	static struct hd_fleet f;

	hd_fleet_init(&f);
	return &f;
}

/* Every tenth fleet has 100 jobs, the others two to nine. */
static struct fleet_draw drawn(uint32_t i)
{
	const struct hd_philox x = hd_philox((uint32_t[4]){ i, 1, 2, 3 }, 5);
	struct fleet_draw g = { .seed = i, .njobs = i % 10 ? 2 + x.word[0] % 8 : JOBS, .factor = 1.3 + 1.7 *
		(double)hd_uniform(x.word[1]), .cause = (enum hd_fleet_cause)(x.word[2] % HD_FLEET_NCAUSES) };

	g.slow = host_of(x.word[3] % g.njobs, x.word[3] / 128 % WORKERS);
	return g;
}

static void a_slow_host_is_named_within_three_windows(void **state)
{
	const uint32_t n = DRAWS(100);
	uint32_t right = 0;
	(void)state;

	for (uint32_t i = 0; i < n; i++) {
		const struct fleet_draw g = drawn(i);
		struct hd_fleet *f = empty();
		struct hd_fleet_said said = { .name = "" };
		char name[16];
		for (uint32_t at = 1; at <= 3; at++)
			window(f, &g, at);
		snprintf(name, sizeof name, "h%u", g.slow);
		right += count(f, 3 * WINDOW, &said) == 1 && !strcmp(said.name, name) && said.cause ==
			g.cause && fabs(said.times - g.factor) < 0.15;
		assert_int_equal(f->left_out, 0);
	}
	CHECK(right == n, "%u of %u slow hosts were named", right, n);      /* 95 of 100 are wanted */
}

static void no_host_of_a_healthy_fleet_is_named(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < DRAWS(100); i++) {
		struct fleet_draw g = drawn(1000 + i);
		struct hd_fleet *f = empty();
		struct hd_fleet_said said = { .name = "" };
		g.slow = UINT32_MAX;
		for (uint32_t at = 1; at <= 3; at++) {
			window(f, &g, at);
			CHECK(!count(f, at * WINDOW, &said), "fleet %u, window %u: %s by %s, %g", i, at,
				said.name, hd_fleet_cause_name(said.cause), said.times);
		}
	}
}

/* ---- one rule at a time: four or more hosts, ps by hand */

static void take(struct hd_fleet *f, uint64_t job, const char *hosts, const double *times, double now_s)
{
	struct hd_fleet_summary s[16];
	char name[16][2];
	uint32_t n = 0;

	for (; hosts[n]; n++) {
		name[n][0] = hosts[n];
		name[n][1] = 0;
		s[n] = (struct hd_fleet_summary){ .host = name[n], .ps = { (uint64_t)(1e9 * times[n]) } };
	}
	hd_fleet_take(f, job, s, n, now_s);
}

static bool is_slow(const struct hd_fleet *f, char host, double now_s, struct hd_fleet_said *said)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->host[i].name[0] == host)
			return hd_fleet_say(f, i, now_s, said) && said->slow;
	return false;
}

static void one_job_of_several_says_nothing_of_a_host(void **state)
{
	const double even[] = { 1, 1, 1, 1 }, odd[] = { 1, 1, 1, 2 };
	struct hd_fleet *f = empty();
	struct hd_fleet_said said;
	char text[HD_FLEET_TEXT];
	(void)state;

	for (uint32_t at = 1; at < 3; at++) {
		take(f, 1, "abcd", odd, at * WINDOW);
		assert_int_equal(is_slow(f, 'd', at * WINDOW, &said), at > 1);      /* alone on it */
	}
	for (uint32_t at = 3; at < 5; at++) {
		take(f, 1, "abcd", odd, at * WINDOW);
		take(f, 2, "efgd", even, at * WINDOW);
		assert_false(is_slow(f, 'd', at * WINDOW, &said));
	}
	for (uint32_t at = 5; at < 8; at++) {
		take(f, 1, "abcd", odd, at * WINDOW);
		take(f, 2, "efgd", odd, at * WINDOW);
		take(f, 3, "hijd", even, at * WINDOW);
	}
	assert_true(is_slow(f, 'd', 40, &said));
	assert_int_equal(said.slow_jobs, 2);
	assert_int_equal(said.judged, 3);
	assert_float_equal(said.times, 2, 1e-6);
	assert_float_equal(said.since_s, 30, 0);
	hd_fleet_text(&said, 40, text);
	assert_string_equal(text, "d is slow by computing: 2.00 times the median worker's time in "
		"2 of 3 jobs, for 10 s");
	assert_false(is_slow(f, 'a', 40, &said));
	hd_fleet_text(&said, 40, text);
	assert_string_equal(text, "");
}

/* Two slow jobs of five judge a host less than the three that find it well. */
static void most_jobs_that_judge_decide(void **state)
{
	const double even[] = { 1, 1, 1, 1 }, odd[] = { 1, 1, 1, 2 };
	struct hd_fleet *f = empty();
	struct hd_fleet_said said;
	(void)state;

	for (uint32_t at = 1; at < 4; at++)
		for (uint64_t job = 1; job <= 5; job++)
			take(f, job, "abcd", job < 3 ? odd : even, at * WINDOW);
	assert_false(is_slow(f, 'd', 15, &said));
	assert_int_equal(said.slow_jobs, 2);
	assert_int_equal(said.judged, 5);
}

/* A worker of many is slow by 3 MAD, by what it has most of, and only if that is a part of its time. */
static void deviations_and_parts_of_the_time_count(void **state)
{
	static const char *const host[] = { "a", "b", "c", "d", "e" };
	static const struct {
		uint64_t ps[5][HD_FLEET_NCAUSES]; bool slow; enum hd_fleet_cause cause;
	} row[] = {
		{ { { 700 }, { 900 }, { 1000 }, { 1100 }, { 1400 } }, true, HD_FLEET_COMPUTE },
		{ { { 600 }, { 800 }, { 1000 }, { 1200 }, { 1400 } }, false, 0 },
		{ { { 1000 }, { 1000 }, { 1000 }, { 1000 }, { 1300, 0, 900 } }, true, HD_FLEET_DATA },
		{ { { 1000 }, { 1000 }, { 1000 }, { 1000 }, { 1900, 0, 300 } }, true, HD_FLEET_COMPUTE },
		{ { { 1000 }, { 1000 }, { 1000 }, { 1000 }, { 1000, 0, 49 } }, false, 0 },
		{ { { 1000 }, { 1000 }, { 1000 }, { 1000 }, { 1000, 0, 51 } }, true, HD_FLEET_DATA },
	};
	(void)state;

	for (size_t r = 0; r < sizeof row / sizeof *row; r++) {
		struct hd_fleet_summary s[5];
		struct hd_fleet *f = empty();
		struct hd_fleet_said said;
		for (uint32_t i = 0; i < 5; i++) {
			s[i] = (struct hd_fleet_summary){ .host = host[i] };
			memcpy(s[i].ps, row[r].ps[i], sizeof s[i].ps);
		}
		hd_fleet_take(f, 1, s, 5, 5);
		hd_fleet_take(f, 1, s, 5, 10);
		CHECK(is_slow(f, 'e', 10, &said) == row[r].slow, "row %zu", r);
		CHECK(said.cause == row[r].cause, "row %zu: by %s", r, hd_fleet_cause_name(said.cause));
	}
}

static void one_odd_window_is_none_and_a_host_recovers(void **state)
{
	const double even[] = { 1, 1, 1, 1 }, odd[] = { 1, 1, 1, 3 };
	struct hd_fleet *f = empty();
	struct hd_fleet_said said;
	(void)state;

	for (uint32_t at = 1; at < 21; at++) {
		take(f, 1, "abcd", at % 3 ? even : odd, at * WINDOW);
		assert_false(is_slow(f, 'd', at * WINDOW, &said));
	}
	take(f, 1, "abcd", odd, 105);
	assert_false(is_slow(f, 'd', 105, &said));
	take(f, 1, "abcd", odd, 110);
	assert_true(is_slow(f, 'd', 110, &said));
	take(f, 1, "abcd", even, 115);
	assert_true(is_slow(f, 'd', 115, &said));
	take(f, 1, "abcd", even, 120);
	assert_false(is_slow(f, 'd', 120, &said));
}

static void what_is_not_heard_is_forgotten(void **state)
{
	const double odd[] = { 1, 1, 1, 3 }, even[] = { 1, 1, 1, 1 };
	struct hd_fleet *f = empty();
	struct hd_fleet_said said;
	char many[HD_FLEET_HOSTS][8];
	(void)state;

	for (uint32_t at = 1; at < 4; at++)
		take(f, 1, "abcd", odd, at * WINDOW);
	assert_true(is_slow(f, 'd', 15 + HD_FLEET_FORGET_S, &said));
	assert_false(is_slow(f, 'd', 16 + HD_FLEET_FORGET_S, &said));
	assert_false(hd_fleet_say(f, 0, 16 + HD_FLEET_FORGET_S, &said));
	take(f, 1, "abcd", odd, 100);
	assert_false(is_slow(f, 'd', 100, &said));        /* what it was before that does not count */
	for (uint32_t i = 0; i < HD_FLEET_HOSTS; i++) {   /* four hosts too many, until those went */
		snprintf(many[i], sizeof many[i], "x%u", i);
		hd_fleet_take(f, 9, &(struct hd_fleet_summary){ .host = many[i] }, 1, 110);
	}
	assert_int_equal(f->n, HD_FLEET_HOSTS);
	assert_int_equal(f->left_out, 4);
	hd_fleet_take(f, 9, &(struct hd_fleet_summary){ .host = "y" }, 1, 165);
	assert_int_equal(f->n, HD_FLEET_HOSTS - 4 + 1);
	for (uint64_t job = 1; job < 3 * HD_FLEET_JOBS; job++)
		take(f, job, "yzuv", even, 170);
	for (uint32_t i = 0; i < f->n; i++)
		assert_true(f->host[i].n <= HD_FLEET_JOBS);
}

static void few_workers_are_held_against_the_least(void **state)
{
	const double below[] = { 1, 1.45 }, above[] = { 1, 1.55 }, zeros[] = { 0, 0, 0, 0 };
	const double mine[] = { 1, 3, 3, 3 };
	struct hd_fleet *f = empty();
	struct hd_fleet_said said;
	(void)state;

	for (uint32_t at = 1; at < 4; at++) {
		take(f, 1, "ab", below, at * WINDOW);
		take(f, 2, "cd", above, at * WINDOW);
		take(f, 3, "efgh", zeros, at * WINDOW);
		take(f, 4, "ijjj", mine, at * WINDOW);    /* j is most of the job: it has no measure */
		take(f, 5, "k", mine, at * WINDOW);
	}
	assert_false(is_slow(f, 'b', 15, &said));
	assert_true(is_slow(f, 'd', 15, &said));
	assert_int_equal(count(f, 15, &said), 1);
	assert_false(is_slow(f, 'j', 15, &said));
	assert_int_equal(said.jobs, 1);
	assert_int_equal(said.judged, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_host_is_named_within_three_windows),
		cmocka_unit_test(no_host_of_a_healthy_fleet_is_named),
		cmocka_unit_test(one_job_of_several_says_nothing_of_a_host),
		cmocka_unit_test(most_jobs_that_judge_decide),
		cmocka_unit_test(deviations_and_parts_of_the_time_count),
		cmocka_unit_test(one_odd_window_is_none_and_a_host_recovers),
		cmocka_unit_test(what_is_not_heard_is_forgotten),
		cmocka_unit_test(few_workers_are_held_against_the_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
