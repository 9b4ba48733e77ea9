/* Which trials go on: by hand, under every order in which things may come, and again from any part of a
 * record. */
#include "sweep/trials.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sweep/record.h"
#include "sweep/table.h"
#include "tests/check.h"

static uint64_t seed;
static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

static struct hd_sweep a_sweep(enum hd_sweep_method method, uint32_t ntrials, uint32_t eta)
{
	return (struct hd_sweep){ .file = "f", .job = "j", .method = method, .draw = HD_SWEEP_RANDOM,
		.ntrials = ntrials, .naxes = 1, .axis[0] = { .key = "optim.lr", .kind = HD_SWEEP_AXIS_LINEAR,
		.to = 1, .n = 2 }, .eta = eta };
}

/* A loss for trial and rung that has ties and, where `bad`, numbers that are none. */
static double loss_of(uint32_t trial, uint32_t rung, bool bad)
{
	if (bad && trial % 7 == 3)
		return NAN;
	return (trial * 5 % 9) / 4.0 - rung * 0.125 * (trial % 3);
}

static const uint64_t rungs[] = { 10, 30, 90, 270 };

/* One that runs, drawn, comes to its rung, or fails there. */
static struct hd_trial_event next_event(const struct hd_trials *t, bool in_order, bool bad)
{
	uint32_t which = in_order ? 0 : draw(t->nrunning);
	uint32_t i = 0;

	for (;; i++)
		if (t->trial[i].state == HD_TRIAL_RUNNING && !which--)
			break;
	const uint32_t rung = t->trial[i].target;
	if (bad && i % 5 == 4 && rung == 1)
		return (struct hd_trial_event){ .trial = i, .rung = rung, .failed = true,
			.step = rungs[0] + 1, .exit = 4, .why = "the loss is not a number" };
	return (struct hd_trial_event){ .trial = i, .rung = rung, .step = rungs[rung],
		.metric = loss_of(i, rung, bad), .digest = "d" };
}

static void run_out(struct hd_trials *t, const struct hd_sweep *s, uint32_t nrungs, uint32_t parallel,
	bool bad,
	bool in_order, struct hd_text *record)
{
	const struct hd_hash hash = hd_hash("x", 1);

	hd_trials_begin(t, s, rungs, nrungs, parallel);
	if (record)
		hd_sweep_record_begin(&hash, s->ntrials, parallel, record);
	for (int n = 0; !hd_trials_is_over(t); n++) {
		const struct hd_trial_event e = next_event(t, in_order, bad);
		CHECK(n < 4000, "it does not end");
		CHECK(s->method != HD_SWEEP_ASHA || t->nrunning <= parallel, "%u run at once", t->nrunning);
		if (record)
			hd_sweep_record_event(&e, record);
		CHECK(!hd_trials_take(t, &e, NULL), "an event is refused");
	}
	for (uint32_t i = 0; i < t->ntrials; i++)
		CHECK(t->trial[i].state >= HD_TRIAL_STOPPED, "trial %u is %s at the end", i,
			hd_trial_state_name(t->trial[i].state));
}

static const char *table_of(const struct hd_sweep *s, const struct hd_trials *t, struct hd_arena *arena)
{
	struct hd_sweep_table table;
	struct hd_text text;

	hd_text_init(&text, arena);
	CHECK(!hd_sweep_table_make(&table, "s", s, t, arena, NULL), "no table");
	hd_sweep_table_json(&table, &text);
	return text.at;
}

static struct hd_trials one, two;

static void what_goes_on_of_nine_is_what_the_rule_says(void **state)
{
	/* losses at 10: trials 4, 7, 1; at 30 of these: 7 first; written down by hand from the rule */
	static const double at_10[9] = { 5, 3, 9, 8, 1, 7, 6, 2, 4 }, at_30[9] = { 0, 3, 0, 0, 2, 0, 0, 1,
		0 };
	const struct hd_sweep s = a_sweep(HD_SWEEP_HALVING, 9, 3);
	(void)state;

	hd_trials_begin(&one, &s, rungs, 3, 0);
	CHECK(one.nrunning == 9, "%u begin", one.nrunning);
	for (uint32_t i = 9; i--;)
		CHECK(!hd_trials_take(&one, &(struct hd_trial_event){ .trial = i, .step = 10,
			.metric = at_10[i] }, NULL), "trial %u", i);
	for (uint32_t i = 0; i < 9; i++)
		CHECK(one.trial[i].state == (i == 1 || i == 4 || i == 7 ? HD_TRIAL_RUNNING :
			HD_TRIAL_STOPPED),
			"trial %u is %s", i, hd_trial_state_name(one.trial[i].state));
	for (uint32_t i = 1; i < 9; i += 3)
		CHECK(!hd_trials_take(&one, &(struct hd_trial_event){ .trial = i, .rung = 1, .step = 30,
			.metric = at_30[i] }, NULL), "trial %u", i);
	CHECK(one.nrunning == 1 && one.trial[7].state == HD_TRIAL_RUNNING && one.trial[7].target == 2,
		"trial 7 does not go on alone");
	CHECK(!hd_trials_take(&one, &(struct hd_trial_event){ .trial = 7, .rung = 2, .step = 90 }, NULL),
		"7");
	CHECK(hd_trials_is_over(&one) && hd_trials_best(&one) == 7 && hd_trials_steps(&one) ==
		6 * 10 + 2 * 30 + 90, "best %u, %llu steps", hd_trials_best(&one),
		(unsigned long long)hd_trials_steps(&one));
}

static void of_equals_the_lower_number_goes_on_and_what_is_no_number_comes_last(void **state)
{
	const struct hd_sweep s = a_sweep(HD_SWEEP_HALVING, 4, 2);
	static const double at[4] = { NAN, 1, 1, 1 };
	(void)state;

	hd_trials_begin(&one, &s, rungs, 2, 0);
	for (uint32_t i = 4; i--;)
		CHECK(!hd_trials_take(&one, &(struct hd_trial_event){ .trial = i, .step = 10, .metric =
			at[i] },
			NULL), "trial %u", i);
	CHECK(one.trial[1].state == HD_TRIAL_RUNNING && one.trial[2].state == HD_TRIAL_RUNNING &&
		one.trial[0].state == HD_TRIAL_STOPPED && one.trial[3].state == HD_TRIAL_STOPPED,
		"others than 1 and 2 go on");
}

static void no_order_of_what_comes_changes_the_table_of_a_synchronous_sweep(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 5, 9, 27 };
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t k = 0; k < 5; k++)
		for (uint32_t method = 0; method < HD_SWEEP_ASHA; method++)
			for (int bad = 0; bad < 2; bad++) {
				const struct hd_sweep s = a_sweep((enum hd_sweep_method)method, sizes[k], 3);
				const uint32_t n = hd_sweep_halves(s.method) ? 4 : 1;
				run_out(&one, &s, n, 0, bad, true, NULL);
				const char *want = table_of(&s, &one, &arena);
				for (seed = 1; seed < 40; seed++) {
					run_out(&two, &s, n, 0, bad, false, NULL);
					assert_string_equal(table_of(&s, &two, &arena), want);
				}
			}
	hd_arena_finish(&arena);
}

/* Events of a record's lines, read without the reader of records. */
static void take_lines(struct hd_trials *t, const char *line)
{
	for (; *line; line = strchr(line, '\n') + 1) {
		const char *metric = strstr(line, "\"metric\":"), *end = strchr(line, '\n');
		const bool failed = !metric || metric > end;
		struct hd_trial_event e = { .failed = failed, .exit = 4, .why = "the loss is not a number",
			.digest = "d", .metric = NAN };
		unsigned step = 0;
		CHECK(sscanf(strstr(line, "\"trial\""), "\"trial\":%u,\"rung\":%u,\"step\":%u", &e.trial,
			&e.rung,
			&step) == 3, "%s", line);
		e.step = step;
		if (!failed && metric[9] != '"')
			e.metric = strtod(metric + 9, NULL);
		CHECK(!hd_trials_take(t, &e, NULL), "%.100s", line);
	}
}

/* A machine that reads the first n lines of a record, and goes on with the rest, is where the first was. */
static void any_part_of_a_record_makes_the_machine_again(void **state)
{
	const struct hd_hash hash = hd_hash("x", 1), other = hd_hash("y", 1);
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (uint32_t method = 0; method < HD_SWEEP_NMETHODS; method++) {
		const struct hd_sweep s = a_sweep((enum hd_sweep_method)method, 27, 3);
		const uint32_t n = hd_sweep_halves(s.method) ? 4 : 1;
		struct hd_diag diag = { "" };
		struct hd_text record;
		bool began;
		hd_text_init(&record, &arena);
		seed = 7 + method;
		run_out(&one, &s, n, 4, true, false, &record);
		const char *want = table_of(&s, &one, &arena);
		for (size_t len = 0; len <= record.len; len++) {
			if (len % 13 && record.at[len - 1] != '\n')
				continue;         /* of the torn ones some: each replays all before it */
			CHECK(!hd_sweep_replay("r", record.at, len, &hash, &s, rungs, n, &two, &began, &diag),
				"%zu bytes: %s", len, diag.text);
			if (len && record.at[len - 1] != '\n' && len != record.len)
				continue;
			/* the rest, and the table is the same */
			if (!began)
				hd_trials_begin(&two, &s, rungs, n, 4);
			take_lines(&two, record.at + (began ? len : strcspn(record.at, "\n") + 1));
			assert_string_equal(table_of(&s, &two, &arena), want);
		}
		CHECK(hd_sweep_replay("r", record.at, record.len, &other, &s, rungs, n, &two, &began,
			&diag) ==
			HD_E_EXISTS && strstr(diag.text, "of another sweep"), "%s", diag.text);
	}
	hd_arena_finish(&arena);
}

static void what_does_not_follow_is_refused_and_changes_nothing(void **state)
{
	static const struct { const char *line; enum hd_err err; const char *says; } cases[] = {
		{ "{\"kind\":\"report\"}\n", HD_E_INPUT, "r:1: a record begins" },
		{ "nonsense\n", HD_E_INPUT, "r:1" },
		{ "BEGIN{\"v\":1,\"kind\":\"report\",\"trial\":0,\"rung\":1,\"step\":30,\"metric\":1,\"digest\":\"\"}\n",
		  HD_E_INTEGRITY, "r:2: trial 0 is not on its way to rung 1" },
		{ "BEGIN{\"v\":1,\"kind\":\"report\",\"trial\":0,\"rung\":0,\"step\":11,\"metric\":1,\"digest\":\"\"}\n",
		  HD_E_INTEGRITY, "reports at step 11" },
		{ "BEGIN{\"v\":1,\"kind\":\"report\",\"trial\":9,\"rung\":0,\"step\":10,\"metric\":1,\"digest\":\"\"}\n",
		  HD_E_INTEGRITY, "trial 9" },
		{ "BEGIN{\"v\":1,\"kind\":\"begun\"}\n", HD_E_INPUT, "none of report and failed" },
		{ "BEGIN{\"v\":1,\"kind\":\"report\",\"trial\":\n", HD_E_INPUT, "r:2" },
	};
	const struct hd_sweep s = a_sweep(HD_SWEEP_HALVING, 9, 3);
	const struct hd_hash hash = hd_hash("x", 1);
	struct hd_arena arena;
	bool began;
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		struct hd_text text;
		const bool begins = !strncmp(cases[i].line, "BEGIN", 5);
		hd_text_init(&text, &arena);
		if (begins)
			hd_sweep_record_begin(&hash, 9, 1, &text);
		hd_text_add(&text, cases[i].line + (begins ? 5 : 0));
		enum hd_err err = hd_sweep_replay("r", text.at, text.len, &hash, &s, rungs, 3, &one, &began,
			&diag);
		CHECK(err == cases[i].err && strstr(diag.text, cases[i].says), "case %zu: %d, %s", i, err,
			diag.text);
	}
	hd_arena_finish(&arena);
}

static void asha_lets_a_trial_go_on_before_its_rung_is_full(void **state)
{
	const struct hd_sweep s = a_sweep(HD_SWEEP_ASHA, 9, 3);
	(void)state;

	hd_trials_begin(&one, &s, rungs, 3, 2);
	CHECK(one.nrunning == 2, "%u begin", one.nrunning);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(!hd_trials_take(&one, &(struct hd_trial_event){ .trial = i, .step = 10, .metric =
			3.0 - i },
			NULL), "trial %u", i);
	CHECK(one.trial[2].state == HD_TRIAL_RUNNING && one.trial[2].target == 1 &&
		one.trial[4].state == HD_TRIAL_WAITING, "of three the best does not go on at once");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_on_of_nine_is_what_the_rule_says),
		cmocka_unit_test(of_equals_the_lower_number_goes_on_and_what_is_no_number_comes_last),
		cmocka_unit_test(no_order_of_what_comes_changes_the_table_of_a_synchronous_sweep),
		cmocka_unit_test(any_part_of_a_record_makes_the_machine_again),
		cmocka_unit_test(what_does_not_follow_is_refused_and_changes_nothing),
		cmocka_unit_test(asha_lets_a_trial_go_on_before_its_rung_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
