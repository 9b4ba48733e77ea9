#include "protocol/seal.h"

#include "tests/check.h"

static struct hd_seal seal_of(uint32_t member, uint64_t step, uint64_t digest)
{
	return (struct hd_seal){ .epoch = 3, .member = member, .step = step, .sum_digest = digest,
		.state_digest = 7 };
}

static void one_member_commits_each_step_as_it_seals_it(void **state)
{
	struct hd_seals seals;
	uint32_t n = 0;

	(void)state;
	hd_seals_init(&seals, 3, 1, 10);
	for (uint64_t s = 10; s < 20; s++) {
		struct hd_seal seal = seal_of(0, s, s);
		assert_false(hd_seals_gate(&seals, s + 1));
		assert_int_equal(hd_seals_add(&seals, &seal, &n, NULL), HD_OK);
		assert_int_equal(n, 1);
		assert_true(hd_seals_gate(&seals, s + 1));
	}
	assert_int_equal(hd_seals_known_since(&seals), HD_SEAL_UNKNOWN);          /* no view is expected */
}

/* Many orders in which n members can seal two steps, each its own steps in order; the oracle is the
 * slowest member. */
static void a_step_is_committed_when_the_last_member_has_sealed_it(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 4; n++)
		for (uint32_t order = 0; order < 200; order++) {
			struct hd_seals seals;
			uint64_t next[4] = { 0 };
			uint32_t total = 0, bits = order;
			hd_seals_init(&seals, 3, n, 0);
			for (uint32_t turn = 0; turn < 1000 && seals.committed < 2; turn++) {
				uint32_t m = (bits >> 16) % n;
				bits = bits * 1664525u + 1013904223u;
				if (next[m] == 2 || !hd_seals_gate(&seals, next[m]))
					continue;
				struct hd_seal seal = seal_of(m, next[m], 1 + next[m]);
				uint32_t done = 0;
				CHECK(hd_seals_add(&seals, &seal, &done, NULL) == HD_OK, "n %u order %u", n,
					order);
				next[m]++;
				total += done;
				uint64_t least = next[0];
				for (uint32_t i = 1; i < n; i++)
					least = next[i] < least ? next[i] : least;
				CHECK(seals.committed == least && total == least,
					"n %u order %u: %u committed, least %u", n, order,
					(unsigned)seals.committed, (unsigned)least);
			}
			CHECK(seals.committed == 2, "n %u order %u", n, order);
		}
}

static void a_seal_counts_once(void **state)
{
	struct hd_seals seals;
	struct hd_seal seal = seal_of(1, 0, 1);
	uint32_t n = 9;

	(void)state;
	hd_seals_init(&seals, 3, 2, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(hd_seals_add(&seals, &seal, &n, NULL), HD_OK);
		assert_int_equal(n, 0);
	}
	assert_int_equal(seals.committed, 0);
}

/* Its sender was one ahead of what others had heard of it. */
static void a_seal_that_differs_says_that_those_before_are_sealed(void **state)
{
	struct hd_seals seals;
	uint32_t n = 0;

	(void)state;
	hd_seals_init(&seals, 1, 2, 5);
	assert_int_equal(hd_seals_add(&seals, &(struct hd_seal){ 1, 0, 5, 1, 7, 0 }, &n, NULL), HD_OK);
	assert_int_equal(hd_seals_add(&seals, &(struct hd_seal){ 1, 0, 6, 1, 7, 0 }, &n, NULL), HD_OK);
	assert_int_equal(hd_seals_add(&seals, &(struct hd_seal){ 1, 1, 6, 1, 8, 0 }, &n, NULL),
		HD_E_INTEGRITY);
	assert_true(hd_seals_gate(&seals, 6) && !hd_seals_gate(&seals, 7));
}

static void refusals_name_what_is_wrong_and_change_nothing(void **state)
{
	static const struct { struct hd_seal seal; enum hd_err err; const char *says; } cases[] = {
		{ { 2, 0, 5, 1, 7, 0 }, HD_E_STALE,     "seal of membership epoch 2 in epoch 3" },
		{ { 3, 2, 5, 1, 7, 0 }, HD_E_PROTOCOL,  "seal of member 2 of 2" },
		{ { 3, 0, 4, 1, 7, 0 }, HD_E_STALE,     "seal of step 4, which is committed" },
		{ { 3, 0, 7, 1, 7, 0 }, HD_E_PROTOCOL,  "member 0 seals step 7 while step 5 is open" },
		{ { 3, 0, 5, 2, 7, 0 }, HD_E_INTEGRITY, "step 5: members 1 and 0 hold different sums (0000000000000001, 0000000000000002)" },
		{ { 3, 0, 5, 1, 8, 0 }, HD_E_INTEGRITY, "step 5: members 1 and 0 hold different states (0000000000000007, 0000000000000008)" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_seals seals;
		struct hd_diag diag = { "" };
		struct hd_seal first = seal_of(1, 5, 1);
		uint32_t n = 9;
		hd_seals_init(&seals, 3, 2, 5);
		assert_int_equal(hd_seals_add(&seals, &first, &n, NULL), HD_OK);
		n = 9;
		CHECK(hd_seals_add(&seals, &cases[i].seal, &n, &diag) == cases[i].err, "case %zu", i);
		assert_string_equal(diag.text, cases[i].says);
		CHECK(seals.committed == 5 && n == 9, "case %zu", i);
	}
}

/* Two members and a joiner; the decided view 4 has members 1 and 7. */
static void newcomers_are_expected_and_gate_nothing(void **state)
{
	struct hd_seals seals;
	struct hd_seal by7 = { 4, 7, 5, 0, 0, 4 }, by0 = seal_of(0, 5, 1), by1 = seal_of(1, 5, 1);
	uint32_t n = 9;

	(void)state;
	hd_seals_init(&seals, 3, 2, 5);
	assert_int_equal(hd_seals_add(&seals, &by7, &n, NULL), HD_E_STALE);
	hd_seals_expect(&seals, 4, (uint32_t[]){ 1, 7 }, 2);
	assert_int_equal(hd_seals_add(&seals, &by7, &n, NULL), HD_OK);
	assert_true(hd_seals_has(&seals, 7, 6) && !hd_seals_has(&seals, 7, 7) && !hd_seals_has(&seals, 1, 6));
	by7.epoch = 3;
	/* it speaks in its own epoch alone */
	assert_int_equal(hd_seals_add(&seals, &by7, &n, NULL), HD_E_STALE);
	by1.epoch = 4;
	assert_int_equal(hd_seals_add(&seals, &by1, &n, NULL), HD_E_STALE);
	by1.epoch = 3;
	by0.knows = by1.knows = 4;
	assert_int_equal(hd_seals_add(&seals, &by0, &n, NULL), HD_OK);
	assert_int_equal(n, 0);
	assert_int_equal(hd_seals_add(&seals, &by1, &n, NULL), HD_OK);
	assert_int_equal(n, 1);
	assert_int_equal(hd_seals_known_since(&seals), 5);
}

/* Two members, heard by a joiner in any skew: member 2 knows from step 1000001 on, member 9 from
 * 1000002. */
static void the_first_step_that_all_know_of_is_found_in_any_skew(void **state)
{
	static const struct { uint32_t worker; uint64_t step; uint32_t knows; } said[] = {
		{ 2, 1000000, 3 }, { 2, 1000001, 8 }, { 2, 1000002, 8 }, { 2, 1000003, 8 }, { 9, 1000000, 3 }, { 9, 1000001, 3 }, { 9, 1000002, 8 },
	};
	struct hd_seals seals;
	uint32_t worker[] = { 2, 9 }, n = 9;
	uint64_t unknown[] = { HD_SEAL_UNKNOWN, HD_SEAL_UNKNOWN };

	(void)state;
	hd_seals_of(&seals, 3, worker, unknown, 0, 2);
	hd_seals_expect(&seals, 8, worker, 2);
	seals.observes = true;
	for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
		struct hd_seal seal = { 3, said[i].worker, said[i].step, 1, 1, said[i].knows };
		CHECK(hd_seals_known_since(&seals) == HD_SEAL_UNKNOWN, "seal %zu", i);
		assert_int_equal(hd_seals_add(&seals, &seal, &n, NULL), HD_OK);
	}
	assert_int_equal(hd_seals_known_since(&seals), 1000002);
	assert_int_equal(seals.committed, 1000003);
}

/* One after another to the same seals: member, step, digest of the sums, the verdict, what it completes. */
struct seal_case { uint32_t member; uint64_t step, digest; enum hd_err err; uint32_t commits; };

static void hear_all(struct hd_seals *seals, const struct seal_case *heard, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct hd_seal seal = seal_of(heard[i].member, heard[i].step, heard[i].digest);
		uint32_t commits = 0;
		seal.epoch = seals->epoch;
		CHECK(hd_seals_add(seals, &seal, &commits, NULL) == heard[i].err, "seal %zu", i);
		CHECK(commits == heard[i].commits, "seal %zu commits %u", i, commits);
	}
}

/* Rule 5: member 0 is two steps ahead of what is heard of 1; step 7 has the place of 5, which is committed
 * later. */
static void an_observer_compares_the_newest_step_of_a_place(void **state)
{
	static const struct seal_case heard[] = {
		{ 0, 5, 1, HD_OK, 0 }, { 0, 6, 2, HD_OK, 0 }, { 0, 7, 3, HD_OK, 0 },
		{ 1, 5, 9, HD_OK, 1 },                            /* 5 is not there any more: nothing to compare with */
		{ 1, 6, 2, HD_OK, 1 }, { 1, 7, 4, HD_E_INTEGRITY, 0 },
	};
	struct hd_seals seals;

	(void)state;
	hd_seals_init(&seals, 3, 2, 5);
	seals.observes = true;
	hear_all(&seals, heard, sizeof heard / sizeof *heard);
	assert_int_equal(seals.committed, 7);
}

/* Rules 1 and 6: as long as the progress of member 9 is unknown, none is too far ahead and nothing
 * commits; then the gate holds again. */
static void a_member_whose_place_is_unknown_is_where_its_first_seal_says(void **state)
{
	static const struct seal_case heard[] = {
		{ 2, 5, 1, HD_OK, 0 }, { 2, 6, 2, HD_OK, 0 }, { 2, 7, 3, HD_OK, 0 },
		{ 9, 6, 2, HD_OK, 2 }, { 2, 9, 5, HD_E_PROTOCOL, 0 }, { 2, 8, 4, HD_OK, 0 },
	};
	struct hd_seals seals;

	(void)state;
	hd_seals_of(&seals, 3, (uint32_t[]){ 2, 9 }, (uint64_t[]){ 5, HD_SEAL_UNKNOWN }, 0, 2);
	assert_false(hd_seals_has(&seals, 9, 1));
	hear_all(&seals, heard, 3);
	assert_int_equal(seals.committed, 0);
	hear_all(&seals, heard + 3, 3);
	assert_int_equal(seals.committed, 7);
}

/* Rule 2: a repeated seal moves no member back, neither when it is the same nor when it differs. */
static void a_repeated_seal_takes_nothing_back(void **state)
{
	static const struct seal_case heard[] = {
		{ 1, 5, 1, HD_OK, 0 }, { 1, 6, 2, HD_OK, 0 }, { 1, 5, 1, HD_OK, 0 }, { 1, 5, 8, HD_E_INTEGRITY, 0 },
	};
	struct hd_seals seals;

	(void)state;
	hd_seals_init(&seals, 3, 2, 5);
	hear_all(&seals, heard, 3);
	assert_true(hd_seals_has(&seals, 1, 7));
	hear_all(&seals, heard + 3, 1);
	assert_true(hd_seals_has(&seals, 1, 7));
}

/* Rule 3, of a member nothing was heard of before. */
static void a_seal_that_differs_says_where_its_sender_is(void **state)
{
	static const struct seal_case heard[] = { { 2, 6, 1, HD_OK, 0 }, { 9, 6, 2, HD_E_INTEGRITY, 0 } };
	struct hd_seals seals;

	(void)state;
	hd_seals_of(&seals, 3, (uint32_t[]){ 2, 9 }, (uint64_t[]){ 6, HD_SEAL_UNKNOWN }, 0, 2);
	hear_all(&seals, heard, 2);
	assert_true(hd_seals_has(&seals, 9, 6) && !hd_seals_has(&seals, 9, 7));
	assert_int_equal(seals.committed, 6);
}

/* Rule 4: an expected member may be behind or far ahead at its first seal; it counts once like others. */
static void who_is_expected_may_be_anywhere(void **state)
{
	static const struct { uint32_t worker; uint64_t step; enum hd_err err; } said[] = {
		{ 7, 3, HD_OK }, { 7, 4, HD_OK }, { 7, 3, HD_E_STALE }, { 8, 9, HD_OK },
	};
	struct hd_seals seals;
	uint32_t n = 9;

	(void)state;
	hd_seals_init(&seals, 3, 2, 5);
	hd_seals_expect(&seals, 4, (uint32_t[]){ 1, 7, 8, 7 }, 4);
	assert_int_equal(seals.n, 4);                             /* 0, 1, 7, 8: each once */
	for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
		struct hd_seal seal = { 4, said[i].worker, said[i].step, 0, 0, 4 };
		CHECK(hd_seals_add(&seals, &seal, &n, NULL) == said[i].err, "seal %zu", i);
	}
	assert_true(hd_seals_has(&seals, 7, 5) && !hd_seals_has(&seals, 7, 6) && hd_seals_has(&seals, 8, 10));
	assert_int_equal(seals.committed, 5);
}

static void a_place_known_otherwise_only_moves_forward(void **state)
{
	struct hd_seals seals;

	(void)state;
	hd_seals_of(&seals, 3, (uint32_t[]){ 2, 9 }, (uint64_t[]){ 7, HD_SEAL_UNKNOWN }, 0, 2);
	hd_seals_reach(&seals, 4, 9);                             /* of no member */
	assert_true(!hd_seals_has(&seals, 4, 0) && seals.committed == 0);
	hd_seals_reach(&seals, 9, 6);
	assert_true(hd_seals_has(&seals, 9, 6) && seals.committed == 6);
	hd_seals_reach(&seals, 9, 5);
	assert_true(hd_seals_has(&seals, 9, 6));
	hd_seals_reach(&seals, 9, 8);
	assert_true(hd_seals_has(&seals, 9, 8) && seals.committed == 7);
}

/* Rules 1 and 5: what a member may not seal yet an observer takes; at most two steps are complete at once. */
static void an_observer_takes_what_is_far_ahead(void **state)
{
	static const struct seal_case ahead[] = { { 0, 5, 1, HD_OK, 0 }, { 0, 8, 4, HD_OK, 0 },
		{ 0, 7, 3, HD_OK, 0 }, { 1, 5, 1, HD_OK, 1 }, { 1, 8, 4, HD_OK, 2 } };
	static const struct seal_case refused[] = { { 0, 5, 1, HD_OK, 0 }, { 0, 8, 4, HD_E_PROTOCOL, 0 },
		{ 0, 7, 3, HD_E_PROTOCOL, 0 }, { 0, 6, 2, HD_OK, 0 } };
	struct hd_seals seals;

	(void)state;
	hd_seals_init(&seals, 3, 2, 5);
	seals.observes = true;
	hear_all(&seals, ahead, sizeof ahead / sizeof *ahead);
	assert_int_equal(seals.committed, 9);
	hd_seals_init(&seals, 3, 2, 5);
	hear_all(&seals, refused, sizeof refused / sizeof *refused);
	/* neither while one is expected of which nothing is known */
	hd_seals_init(&seals, 3, 2, 5);
	hd_seals_expect(&seals, 4, (uint32_t[]){ 7 }, 1);
	hear_all(&seals, refused, sizeof refused / sizeof *refused);
}

/* Rule 5: digests are compared in each parity, whichever came first. */
static void an_observer_names_the_step_that_differs(void **state)
{
	static const struct seal_case heard[] = {
		{ 1, 6, 2, HD_OK, 0 }, { 1, 5, 1, HD_OK, 0 }, { 0, 5, 9, HD_E_INTEGRITY, 0 },
		{ 0, 5, 1, HD_OK, 1 }, { 0, 6, 9, HD_E_INTEGRITY, 0 }, { 0, 6, 2, HD_OK, 1 },
	};
	struct hd_seals seals;

	(void)state;
	hd_seals_init(&seals, 3, 2, 5);
	seals.observes = true;
	hear_all(&seals, heard, sizeof heard / sizeof *heard);
	assert_int_equal(seals.committed, 7);
}

/* Rule 4: of two views decided one after the other the second counts, and what was said of the first does
 * not; no more are expected than it has. */
static void a_later_view_replaces_the_one_expected(void **state)
{
	struct hd_seals seals;
	struct hd_seal seal = seal_of(0, 5, 1);
	uint32_t n;

	(void)state;
	hd_seals_init(&seals, 3, 2, 5);
	hd_seals_expect(&seals, 4, (uint32_t[]){ 7, 1 }, 2);
	assert_int_equal(seals.n, 3);
	seal.knows = 4;
	assert_int_equal(hd_seals_add(&seals, &seal, &n, NULL), HD_OK);
	seal.member = 1;
	assert_int_equal(hd_seals_add(&seals, &seal, &n, NULL), HD_OK);
	assert_int_equal(hd_seals_known_since(&seals), 5);
	hd_seals_expect(&seals, 6, (uint32_t[]){ 8, 9 }, 1);
	assert_true(seals.n == 3 && !hd_seals_has(&seals, 7, 0) && !hd_seals_has(&seals, 9, 0));
	assert_int_equal(hd_seals_known_since(&seals), HD_SEAL_UNKNOWN);
	for (uint32_t m = 0; m < 2; m++) {
		assert_int_equal(seals.by[m].since, HD_SEAL_UNKNOWN);
		seal = seal_of(m, 6, 1);
		seal.knows = 6;
		assert_int_equal(hd_seals_add(&seals, &seal, &n, NULL), HD_OK);
	}
	assert_int_equal(hd_seals_known_since(&seals), 6);
	seal = (struct hd_seal){ 4, 8, 5, 0, 0, 6 };
	assert_int_equal(hd_seals_add(&seals, &seal, &n, NULL), HD_E_STALE);
	seal.epoch = 6;
	assert_int_equal(hd_seals_add(&seals, &seal, &n, NULL), HD_OK);
}

static void a_view_known_from_the_first_step_on_is_known_since_then(void **state)
{
	struct hd_seals seals;
	struct hd_seal seal = seal_of(0, 0, 1);
	uint32_t n;

	(void)state;
	hd_seals_init(&seals, 3, 1, 0);
	hd_seals_expect(&seals, 4, (uint32_t[]){ 0 }, 1);
	seal.knows = 5;                                           /* of a later one, so of this one too */
	assert_int_equal(hd_seals_add(&seals, &seal, &n, NULL), HD_OK);
	assert_int_equal(hd_seals_known_since(&seals), 0);
}

/* As many as there can be, members and newcomers; the first of them is no different. */
static void all_places_can_be_taken(void **state)
{
	struct hd_seals seals;
	uint32_t worker[2 * HD_MAX_MEMBERS], n = 0;
	uint64_t next[HD_MAX_MEMBERS];

	(void)state;
	for (uint32_t i = 0; i < 2 * HD_MAX_MEMBERS; i++)
		worker[i] = 10 + i;
	for (uint32_t i = 0; i < HD_MAX_MEMBERS; i++)
		next[i] = i ? 5 : HD_SEAL_UNKNOWN;
	hd_seals_of(&seals, 3, worker, next, 0, HD_MAX_MEMBERS);
	hd_seals_expect(&seals, 4, worker + HD_MAX_MEMBERS, HD_MAX_MEMBERS);
	assert_int_equal(seals.n, HD_MAX_SEALERS);
	/* the first is the one whose place is unknown: none is too far ahead before it has said so */
	const struct seal_case heard[] = { { 11, 9, 1, HD_OK, 0 }, { 10, 4, 1, HD_OK, 2 },
		{ 11, 12, 1, HD_E_PROTOCOL, 0 } };
	hear_all(&seals, heard, 3);
	struct hd_seal last = { 4, worker[2 * HD_MAX_MEMBERS - 1], 9, 0, 0, 4 };
	assert_int_equal(hd_seals_add(&seals, &last, &n, NULL), HD_OK);
	assert_true(hd_seals_has(&seals, last.member, 10));
	/* worker 0 is none of them, also where places are free */
	struct hd_seal other = { 3, 0, 5, 0, 0, 0 };
	assert_int_equal(hd_seals_add(&seals, &other, &n, NULL), HD_E_PROTOCOL);
	hd_seals_of(&seals, 3, worker, NULL, 5, 2);
	assert_int_equal(hd_seals_add(&seals, &other, &n, NULL), HD_E_PROTOCOL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_member_commits_each_step_as_it_seals_it),
		cmocka_unit_test(a_step_is_committed_when_the_last_member_has_sealed_it),
		cmocka_unit_test(a_seal_counts_once),
		cmocka_unit_test(newcomers_are_expected_and_gate_nothing),
		cmocka_unit_test(the_first_step_that_all_know_of_is_found_in_any_skew),
		cmocka_unit_test(a_seal_that_differs_says_that_those_before_are_sealed),
		cmocka_unit_test(refusals_name_what_is_wrong_and_change_nothing),
		cmocka_unit_test(an_observer_compares_the_newest_step_of_a_place),
		cmocka_unit_test(a_member_whose_place_is_unknown_is_where_its_first_seal_says),
		cmocka_unit_test(a_repeated_seal_takes_nothing_back),
		cmocka_unit_test(a_seal_that_differs_says_where_its_sender_is),
		cmocka_unit_test(who_is_expected_may_be_anywhere),
		cmocka_unit_test(a_place_known_otherwise_only_moves_forward),
		cmocka_unit_test(an_observer_takes_what_is_far_ahead),
		cmocka_unit_test(an_observer_names_the_step_that_differs),
		cmocka_unit_test(a_later_view_replaces_the_one_expected),
		cmocka_unit_test(a_view_known_from_the_first_step_on_is_known_since_then),
		cmocka_unit_test(all_places_can_be_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
