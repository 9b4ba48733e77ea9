#include "protocol/testing_coordinator.h"

/* Peers that do not hear each other (rule 5): which of them goes, and when. */

#define SUSPECTS(by, suspect_, why_) FROM(by, SUSPECT, .epoch = 1, .suspect = { suspect_, why_ })

/* Bits of the workers 0 .. n - 1 that are out. */
static uint32_t out(struct co_at_work *c, uint32_t n)
{
	uint32_t bits = 0;

	for (uint32_t w = 0; w < n; w++)
		bits |= (uint32_t)(hd_co_find(c->co, w)->state == HD_W_OUT) << w;
	return bits;
}

/* The word that it hears worker 1 again was on a link that closed. */
static void a_worker_that_calls_again_says_its_reports_again(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int still = 0; still < 2; still++) {
		co_run(c, &co_config, 3);
		SUSPECTS(0, 1, HD_SILENT);
		CO(LOST, .worker = 0, .why = HD_CLOSED);
		co_return(c, 0, 10, true);
		if (still)
			SUSPECTS(0, 1, HD_SILENT);
		co_heard_at(c, c->now + CO_T);
		assert_int_equal(out(c, 3), still ? 2 : 0);
		co_end(c);
	}
}

/* Worker 2 was a member to this coordinator, and is none: it takes its report back all the same. */
static void a_report_is_taken_back_by_a_worker_that_is_no_member_any_more(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 3,
		.target = 3, .nmembers = 3, .member = { 0, 1, 2 }, .started = true };
	for (int heard = 0; heard < 2; heard++) {
		co_begin(c, &config);
		CO(TICK);
		for (uint32_t w = 0; w < 3; w++)
			co_return(c, w, 10 + w, w < 2);
		STORED();
		FROM(2, SUSPECT, .epoch = 5, .suspect = { 1, HD_SILENT });
		MEMBER_AT(0, 5, 0);
		MEMBER_AT(1, 5, 0);
		NEWCOMER_AT(2, 5, 0);
		STORED();
		assert_int_equal(hd_co_find(c->co, 2)->state == HD_W_MEMBER, false);
		if (heard)
			FROM(2, SUSPECT, .epoch = 5, .suspect = { 1, HD_HEARD });
		co_heard_at(c, c->now + CO_T);
		assert_int_equal(out(c, 3), heard ? 0 : 2);
		co_end(c);
	}
}

/* Those of a worker that lost its state are of a view that it is not in. */
static void a_worker_that_is_to_sync_again_reports_nothing(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	SUSPECTS(2, 1, HD_SILENT);
	co_ready_to_sync(c, 2);
	STORED();
	MEMBER_AT(0, 2, 0);
	MEMBER_AT(1, 2, 0);
	STORED();
	co_heard_at(c, c->now + CO_T);
	assert_int_equal(out(c, 3), 0);
	co_end(c);
}

static const char *waits(const struct co_at_work *c)
{
	for (uint32_t i = 0; i < c->done.n; i++)
		if (c->done.at[i].kind == HD_CO_DO_NOTE && !strcmp(c->done.at[i].name, "waits"))
			return c->done.at[i].text;
	return NULL;
}

/* Steps may be long; but all end one at the same time. */
static void a_run_that_stands_still_says_for_whom(void **state)
{
	const int64_t s = 1000000000;
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	for (int k = 0; k < 100; k++) {
		co_tick_at(c, c->now + s);
		assert_null(waits(c));    /* none has ended it */
	}
	co_seal(c, 0, 1, 0);
	co_tick_at(c, c->now + s / 2);
	const int64_t since = c->now;
	for (int64_t t = 1; t <= 40; t++) {
		co_tick_at(c, since + t * s);
		CHECK((waits(c) != NULL) == (t == 5 || t == 10 || t == 20 || t == 40), "after %lld s",
			(long long)t);
		if (t == 5)
			assert_string_equal(waits(c), "for 5 s all wait for workers 1 2 to end step 0, which "
				"others have ended");
		if (t == 6)
			co_seal(c, 1, 1, 0);
		if (t == 10)
			assert_string_equal(waits(c), "for 10 s all wait for worker 2 to end step 0, which "
				"others have ended");
	}
	co_seal(c, 2, 1, 0);
	co_seal(c, 2, 1, 1);
	co_tick_at(c, c->now + s);
	for (int k = 0; k < 5; k++) {
		assert_null(waits(c));    /* of the next step, from the beginning */
		co_tick_at(c, c->now + s);
	}
	assert_non_null(waits(c));
	co_end(c);
}

/* With a long T, or long instructions. */
static void one_that_stands_still_is_named_before_it_is_given_up(void **state)
{
	const int64_t s = 1000000000;
	static const struct { int64_t detect_s, longest_s; bool busy, heard; const char *at[4]; } row[] = {
		{ 48, 0, false, false, { [2] = "nothing was heard of it for 15 s; it counts as lost after 48 s" } },
		{ 8, 0, false, false, { "nothing was heard of it for 5 s; it counts as lost after 8 s" } },
		{ 1, 2, true, true, { "it makes no progress for 5 s; it counts as hung after 16 s", [1] =
			"it makes no progress for 10 s; it counts as hung after 16 s" } },
		{ 1, 5, true, true, { [1] = "it makes no progress for 10 s; it counts as hung after 40 s",
			[3] = "it makes no progress for 20 s; it counts as hung after 40 s" } },
		{ 40, 0, true, true, { [3] = "it makes no progress for 20 s; it counts as hung after 80 s" } },
		{ 1, 4, false, true, { NULL } }, { 1, 0, false, false, { NULL } },
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct hd_co_config config = co_config;
		config.detect_ns = row[i].detect_s * s;
		co_run(c, &config, 2);
		FROM(0, PROGRESS, .epoch = 1);
		const uint64_t longest = (uint64_t)(row[i].longest_s * s);
		FROM(1, PROGRESS, .epoch = 1, .progress = { 0, 5, longest, row[i].busy });
		const int64_t since = c->now;
		for (int64_t t = 1; t <= 20; t++) {
			c->now = since + t * s - 10;
			FROM(0, PROGRESS, .epoch = 1);
			if (row[i].heard)
				FROM(1, PROGRESS, .epoch = 1, .progress = { 0, 5, longest, row[i].busy });
			co_tick_at(c, since + t * s);
			const char *want = t % 5 == 0 && !(row[i].detect_s == 8 && t > 5) ?
				row[i].at[t / 5 - 1] : NULL;
			if (waits(c) || want)
				CHECK(waits(c) && want && strcmp(waits(c), want) == 0,
					"row %zu, %d s: %s", i, (int)t, waits(c) ? waits(c) : "nothing");
			if (row[i].longest_s == 2 && t == 15)
				break;
		}
		co_end(c);
	}
}

/* Of many some are named, each whole. */
static void a_list_of_words_is_cut_between_two(void **state)
{
	char out[16];

	(void)state;
	for (uint32_t n = 1; n < 8; n++) {
		size_t len = 0;
		for (uint32_t i = 0; i < n; i++)
			hd_co_list(out, sizeof out, &len, " 120");
		assert_string_equal(out, n == 1 ? " 120" : n == 2 ? " 120 120" : " 120 120 ...");
	}
}

static void all_that_are_due_go_at_once(void **state)
{
	/* reports, in order; the bits of those that are to go after T */
	static const struct { struct { uint32_t by, suspect_; } report[6]; uint32_t n, go; } row[] = {
		{ { { 0, 2 }, { 1, 2 }, { 0, 3 }, { 1, 3 } }, 4, 0xc },
		{ { { 0, 1 }, { 2, 3 } }, 2, 0xa },
		/* 0 hears none of the others */
		{ { { 0, 1 }, { 0, 2 }, { 0, 3 } }, 3, 0x1 },
		/* nor do they hear it */
		{ { { 0, 1 }, { 0, 2 }, { 2, 0 }, { 1, 0 } }, 4, 0x1 },
		/* each of three misses the others: without two of them no link is broken */
		{ { { 2, 0 }, { 2, 1 }, { 0, 1 } }, 3, 0x3 },
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &co_config, 4);
		for (uint32_t k = 0; k < row[i].n; k++)
			IS(SUSPECTS(row[i].report[k].by, row[i].report[k].suspect_, HD_SILENT), "");
		co_heard_at(c, c->now + CO_T);
		CHECK(out(c, 4) == row[i].go, "row %zu: %x are out: %s", i, out(c, 4), c->text);
		co_end(c);
	}
}

/* Workers 0 and 1 ended before this coordinator began: the only one that is left does not go for it. */
static void a_worker_is_not_blamed_for_those_that_are_heard_nowhere(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;

	(void)state;
	config.record = (struct hd_co_record){ .serial = 9, .term = 3, .epoch = 4, .next_worker = 3,
		.target = 3, .nmembers = 3, .member = { 0, 1, 2 }, .started = true };
	co_begin(c, &config);
	CO(TICK);
	co_return(c, 2, 12, true);
	STORED();
	FROM(2, SUSPECT, .epoch = 5, .suspect = { 0, HD_CLOSED });
	FROM(2, SUSPECT, .epoch = 5, .suspect = { 1, HD_CLOSED });
	MEMBER_AT(2, 5, 0);
	co_heard_at(c, c->now + CO_T);
	assert_int_equal(out(c, 3), 3);
	co_end(c);
}

/* Worker 2 has more reports, but they may be taken back the next moment. */
static void a_suspicion_of_the_last_moment_does_not_count(void **state)
{
	static const struct { int64_t at; uint32_t go; } row[] = {
		{ CO_T / 2 - 4, 0x4 }, { CO_T / 2 + 4, 0x2 }, { CO_T - 9, 0x2 },
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &co_config, 4);
		SUSPECTS(0, 1, HD_SILENT);
		const int64_t first = c->now;
		co_tick_at(c, first + row[i].at);
		SUSPECTS(0, 2, HD_SILENT);
		SUSPECTS(3, 2, HD_SILENT);
		co_heard_at(c, first + CO_T);
		CHECK((out(c, 4) & row[i].go) == row[i].go, "row %zu: %x are out", i, out(c, 4));
		CHECK(i == 0 || out(c, 4) == row[i].go, "row %zu: %x are out", i, out(c, 4));
		co_end(c);
	}
}

/* Worker 0 does not hear 1, and is heard last at that time: what says nothing for T/2 may be gone, and 1 may
 * be all that is left. Once it is heard again, or another says the same, 1 goes. */
static void a_report_counts_while_its_reporter_is_heard(void **state)
{
	static const struct { int64_t heard; bool lost, another; uint32_t later, go; } row[] = {
		{ CO_T - CO_T / 2, .go = 0x2 },
		{ CO_T - CO_T / 2 - 1, .go = 0x0 },
		{ CO_T - CO_T / 2 - 1, .later = CO_T / 4, .go = 0x2 },
		{ CO_T - CO_T / 2 - 1, .another = true, .go = 0x2 },
		{ CO_T - 9, .lost = true, .go = 0x0 },
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &co_config, 3);
		SUSPECTS(0, 1, HD_SILENT);
		if (row[i].another)
			SUSPECTS(2, 1, HD_SILENT);
		const int64_t first = c->now;
		c->now = first + row[i].heard - 1;
		FROM(0, PROGRESS, .epoch = 1);
		if (row[i].lost)
			CO(LOST, .worker = 0, .why = HD_SILENT);
		c->now = first + CO_T - 3;
		FROM(1, PROGRESS, .epoch = 1);
		FROM(2, PROGRESS, .epoch = 1);
		CO(TICK);
		CHECK(row[i].later || out(c, 3) == row[i].go, "row %zu: %x are out", i, out(c, 3));
		if (row[i].later)
			co_heard_at(c, c->now + row[i].later);
		CHECK(out(c, 3) == row[i].go, "row %zu: %x are out later", i, out(c, 3));
		co_end(c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_that_calls_again_says_its_reports_again),
		cmocka_unit_test(a_report_is_taken_back_by_a_worker_that_is_no_member_any_more),
		cmocka_unit_test(a_worker_that_is_to_sync_again_reports_nothing),
		cmocka_unit_test(a_run_that_stands_still_says_for_whom),
		cmocka_unit_test(one_that_stands_still_is_named_before_it_is_given_up),
		cmocka_unit_test(a_list_of_words_is_cut_between_two),
		cmocka_unit_test(all_that_are_due_go_at_once),
		cmocka_unit_test(a_worker_is_not_blamed_for_those_that_are_heard_nowhere),
		cmocka_unit_test(a_suspicion_of_the_last_moment_does_not_count),
		cmocka_unit_test(a_report_counts_while_its_reporter_is_heard),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
