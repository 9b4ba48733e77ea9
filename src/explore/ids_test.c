/* Which jobs a sweep asks its scheduler about: those of its trials that run, each once, in few ranges. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore/explore_int.h"
#include "tests/check.h"

enum { TRIALS = 700, CAP = 60 };

static struct hd_trials trials = { .ntrials = TRIALS };
static struct explore_trial of[TRIALS];
static const struct explore x = { .trials = &trials, .of = of };

/* Reads a text as what is answered by daemon_ids.c does, by other means. */
static uint32_t mark(const char *text, bool *asked, uint64_t most)
{
	char copy[CAP + 1], *rest = copy, *one;
	uint32_t n = 0;

	snprintf(copy, sizeof copy, "%s", text);
	while ((one = strsep(&rest, "."))) {
		char *end = NULL;
		uint64_t from = strtoull(one, &end, 10), to = *end == '-' ? strtoull(end + 1, &end, 10) :
			from;
		CHECK(from && from <= to && to < most && !*end, "%s in %s", one, text);
		for (uint64_t id = from; id <= to; id++, n++) {
			CHECK(!asked[id], "job %llu is asked about twice", (unsigned long long)id);
			asked[id] = true;
		}
	}
	return n;
}

static void jobs_of_trials_that_run_are_asked_about_once_and_no_others(void **state)
{
	static bool asked[4 * TRIALS], want[4 * TRIALS];
	uint32_t rng = 1, several = 0;
	(void)state;

	for (uint32_t k = 0; k < 200; k++) {
		memset(asked, 0, sizeof asked);
		memset(want, 0, sizeof want);
		for (uint32_t i = 0; i < TRIALS; i++) {
			rng = rng * 1664525u + 1013904223u;
			bool runs = (rng >> 24) % 8 < k % 9, ordered = (rng >> 16 & 15) != 0;
			/* in any order of trials; of some no job was made yet */
			uint64_t job = ordered ? 1 + (i * 7) % TRIALS * (1 + k % 3) : 0;
			trials.trial[i].state = runs ? HD_TRIAL_RUNNING : HD_TRIAL_PAUSED;
			of[i] = (struct explore_trial){ .job = job };
			want[job] |= runs && job;
		}
		char text[CAP];
		uint64_t after = 0;
		uint32_t n = 0;
		while (explore_ids(&x, &after, text, sizeof text)) {
			CHECK(strlen(text) < CAP && mark(text, asked, 4 * TRIALS), "\"%s\"", text);
			n++;
		}
		several += n > 1;
		assert_memory_equal(asked, want, sizeof want);
	}
	CHECK(several, "all went into one question");
}

static void neighbours_are_one_range(void **state)
{
	char text[900];
	uint64_t after = 0;
	(void)state;

	for (uint32_t i = 0; i < TRIALS; i++) {
		trials.trial[i].state = HD_TRIAL_RUNNING;
		of[i] = (struct explore_trial){ .job = 1000000 + i + (i > 99) + (i > 199) };
	}
	assert_true(explore_ids(&x, &after, text, sizeof text));
	assert_string_equal(text, "1000000-1000099.1000101-1000200.1000202-1000701");
	assert_false(explore_ids(&x, &after, text, sizeof text));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_of_trials_that_run_are_asked_about_once_and_no_others),
		cmocka_unit_test(neighbours_are_one_range),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
