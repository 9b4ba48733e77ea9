#include "protocol/testing_coordinator.h"

/* Rule 12: what members tell of a step differs. */

enum { NO = 0, A = 7, B = 8, C = 9 };

/* Worker w has sealed step s of epoch e and tells these digests of its sums and of its state. */
#define DIGESTS(w, e, s, sum_, state_) \
	FROM(w, SEAL, .epoch = (e), .seal = { .step = (s), .ran = true, .knows = (e), .sum_digest = (sum_), \
		.state_digest = (state_) })
#define SUSPECTS_DIGEST(by, sender) FROM(by, SUSPECT, .epoch = 1, .suspect = { sender, HD_CORRUPT })

/* Digests that are the same, or of which there is none, are committed. */
static void what_is_the_same_at_all_is_committed_and_verified(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	IS(DIGESTS(0, 1, 0, NO, NO), "");
	IS(DIGESTS(1, 1, 0, NO, NO), "");
	IS(DIGESTS(2, 1, 0, NO, NO), "COMMIT 0@1");
	assert_int_equal(c->co->verified, 0);
	IS(DIGESTS(0, 1, 1, B, A), "");
	IS(DIGESTS(1, 1, 1, B, A), "");
	IS(DIGESTS(2, 1, 1, B, A), "COMMIT 1@1");
	assert_int_equal(c->co->verified, 2);
	IS(DIGESTS(0, 1, 2, B, NO), "");          /* sums alone say nothing of the state */
	IS(DIGESTS(1, 1, 2, B, NO), "");
	IS(DIGESTS(2, 1, 2, B, NO), "COMMIT 2@1");
	assert_int_equal(c->co->verified, 2);
	IS(DIGESTS(0, 1, 3, A, A), "");           /* one reported another step in the meantime */
	IS(DIGESTS(1, 1, 3, A, A), "");
	IS(DIGESTS(1, 1, 5, A, A), "");
	IS(DIGESTS(2, 1, 3, A, A), "COMMIT 3@1");
	assert_int_equal(c->co->verified, 2);
	co_end(c);
}

/* Of parts of the state: what no two have, or cut otherwise, was compared with nothing. */
static void parts_that_two_hold_are_verified_when_they_were_compared(void **state)
{
	static const struct { struct hd_held_run of[3]; uint64_t verified; } row[] = {
		{ { { 0, 2, A }, { 0, 2, A }, { 2, 2, B } }, 1 }, { { { 0, 2, A }, { 2, 2, B }, { 4, 2, C } }, 0 },
		{ { { 0, 2, A }, { 0, 2, A }, { 1, 2, B } }, 0 },
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &co_config, 3);
		for (uint32_t w = 0; w < 3; w++) {
			struct hd_held_run held = row[i].of[w];
			FROM(w, SEAL, .epoch = 1, .seal = { .step = 0, .ran = true, .knows = 1, .nheld = 1,
				.held = &held });
		}
		assert_int_equal(c->co->committed, 1);
		CHECK(c->co->verified == row[i].verified, "row %zu", i);
		co_end(c);
	}
}

/* Of three the last differs, in its sums or in its state. */
static void who_told_another_digest_than_most_goes(void **state)
{
	static const struct { uint64_t sum, state; } row[] = { { A, B }, { B, A }, { NO, A }, { A, NO },
		{ NO, C } };
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &co_config, 3);
		IS(DIGESTS(0, 1, 0, A, A), "");
		IS(DIGESTS(1, 1, 0, A, A), "");
		IS(DIGESTS(2, 1, 0, row[i].sum, row[i].state),
			"NOTE corrupt 2; >2 RELEASE@1 5; NOTE lost 2; >2 STALE@1; DROP 2; END 2; STORE 6 e "
			"2 next 3 of 0 1 2 mismatches 1 to 0; "
			"NOTE lost 0; >0 STALE@1; DROP 0; END 0; STORE 7 e 3 next 3 of 0 1 2 mismatches 1 to "
			"0; NOTE lost 1; >1 STALE@1; DROP 1; "
			"END 1; STORE 8 e 4 next 3 of 0 1 2 mismatches 1 to 0; INVALIDATE 0");
		assert_string_equal(co_note_text(c, "corrupt"),
			"worker 2 held another state after step 0 than 2 of 3 workers: its memory or its "
			"processor gives wrong bits");
		/* repeated when no possible writer is left */
		IS(STORED(),
			"STORE 9 e 4 next 3 not started mismatches 1 to 0; NOTE restore; INVALIDATE 0; "
			"RESTORE; "
			"SPAWN 3");
		co_end(c);
	}
}

/* Nothing of the step, or later, is committed; no worker is expelled before all have reported. The first
 * mismatch is judged first. */
static void a_mismatch_waits_until_all_have_sealed_the_step(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	DIGESTS(0, 1, 4, A, A);
	DIGESTS(0, 1, 5, A, A);
	IS(DIGESTS(1, 1, 5, A, B), "");           /* a later one is mismatched first */
	IS(DIGESTS(1, 1, 4, A, A), "");
	IS(DIGESTS(2, 1, 3, NO, NO), "COMMIT 0@1 lost; COMMIT 1@1 lost; COMMIT 2@1 lost; COMMIT 3@1");
	IS(DIGESTS(2, 1, 4, B, A),
		"NOTE corrupt 2; >2 RELEASE@1 5; NOTE lost 2; >2 STALE@1; DROP 2; END 2; STORE 6 e 2 next 3 "
		"of 0 1 2 mismatches 1 to 4; "
		"NOTE lost 0; >0 STALE@1; DROP 0; END 0; STORE 7 e 3 next 3 of 0 1 2 mismatches 1 to 4; NOTE "
		"lost 1; >1 STALE@1; DROP 1; "
		"END 1; STORE 8 e 4 next 3 of 0 1 2 mismatches 1 to 4; INVALIDATE 0");
	co_end(c);

	co_run(c, &co_config, 3);
	DIGESTS(0, 1, 4, A, A);
	DIGESTS(0, 1, 5, A, A);
	IS(DIGESTS(1, 1, 4, A, B), "");
	IS(DIGESTS(1, 1, 5, A, B), "");           /* a later one too: the earlier counts */
	IS(DIGESTS(2, 1, 4, NO, NO),
		"COMMIT 0@1 lost; COMMIT 1@1 lost; COMMIT 2@1 lost; COMMIT 3@1 lost; NOTE integrity; "
		"INVALIDATE 0; "
		"STORE 6 e 1 next 3 of 0 1 2 mismatches 1 to 4; >0 RELEASE@1 5; >1 RELEASE@1 5; >2 RELEASE@1 "
		"5");
	co_end(c);
}

/* Seals may come late and twice. */
static void what_is_told_late_or_twice_counts_once(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	DIGESTS(0, 1, 2, A, A);
	IS(DIGESTS(0, 1, 0, A, A), "");           /* late: what it reported since stays */
	DIGESTS(1, 1, 2, A, B);
	IS(DIGESTS(2, 1, 2, NO, NO),
		"COMMIT 0@1; COMMIT 1@1 lost; NOTE integrity; INVALIDATE 0; STORE 6 e 1 next 3 of 0 1 2 "
		"mismatches 1 to 2; >0 RELEASE@1 5; "
		">1 RELEASE@1 5; >2 RELEASE@1 5");
	co_end(c);

	co_run(c, &co_config, 3);                /* another step: digests of it may be others */
	DIGESTS(0, 1, 0, A, A);
	IS(DIGESTS(1, 1, 2, B, B), "");
	IS(DIGESTS(1, 1, 3, B, B), "");
	IS(DIGESTS(2, 1, 0, A, A), "COMMIT 0@1");
	co_end(c);

	co_run(c, &co_config, 2);                /* a joiner's seal only announces */
	co_one_more(c, 2);
	IS(FROM(2, SEAL, .epoch = 1, .seal = { .step = 0, .state_digest = B }), "");
	DIGESTS(0, 1, 0, A, A);
	IS(DIGESTS(1, 1, 0, A, A), "COMMIT 0@1");
	co_end(c);
}

/* Rule 12: without a majority the job ends. The message names two that differ. */
static void without_a_majority_the_job_ends_and_two_are_named(void **state)
{
	/* digests of step 0 by member; suspect: bits of the members with a suspect digest */
	static const struct { uint64_t digests[5]; uint32_t n, suspect_digest; const char *says; } row[] = {
		{ { A, B }, 2, 0, "workers 0 and 1 hold" },
		{ { A, B, C }, 3, 0, "workers 0 and 1 hold" },
		{ { A, A, B, B }, 4, 0, "workers 0 and 2 hold" },
		{ { A, A, B, B }, 4, 1 << 1, "workers 0 and 2 hold" },         /* here it reported the same */
		{ { A, NO }, 2, 1 << 1, "workers 0 and 1 hold" },
		{ { A, NO, NO }, 3, 1 << 1 | 1 << 2, "workers 0 and 1 hold" },
		{ { A, B, NO }, 3, 1 << 2, "workers 0 and 1 hold" },
		{ { NO, A, B }, 3, 0, "workers 1 and 2 hold" },
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_co_config config = co_config;
		config.max = 5;
		co_run(c, &config, row[i].n);
		for (int digest = 1; digest >= 0; digest--) {
			uint32_t first = row[i].digests[0] ? 0 : 1;
			for (uint32_t w = 0; w < row[i].n; w++) {
				if ((row[i].digests[w] != NO) == digest)
					DIGESTS(w, 1, 0, NO, row[i].digests[w]);
				for (uint32_t d = 0; w == first && d < row[i].n && digest; d++)
					if (row[i].suspect_digest >> d & 1)
						SUSPECTS_DIGEST(first, d);
			}
		}
		CHECK(strstr(co_note_text(c, "integrity"), row[i].says) && c->co->phase == HD_CO_ENDING &&
			c->co->end_code == 5, "row %zu: %s, %s", i,
			co_note_text(c, "integrity"), c->text);
		assert_null(strstr(c->text, "corrupt"));
		co_end(c);
	}
	co_run(c, &co_config, 2);
	DIGESTS(0, 1, 0, A, A);
	IS(DIGESTS(1, 1, 0, A, B),
		"NOTE integrity; INVALIDATE 0; STORE 5 e 1 next 2 of 0 1 mismatches 1 to 0; >0 RELEASE@1 5; "
		">1 "
		"RELEASE@1 5");
	IS(DIGESTS(0, 1, 0, B, B), "");           /* it is over: nothing is committed */
	IS(CO(LOST, .worker = 0, .why = HD_CLOSED), "");
	/* a checkpoint writer may have saved until it went */
	IS(CO(LOST, .worker = 1, .why = HD_CLOSED),
		"INVALIDATE 0; "
		"EXIT 5 step 0: workers 0 and 1 hold different states, and no majority says which is right: "
		"a memory or a processor gives wrong "
		"bits. Checkpoints up to step 0 are sound, later ones were removed: have the machines "
		"looked at, and resume the run on others");
	co_end(c);

	co_run(c, &co_config, 2);                /* no worker that reported it is left */
	DIGESTS(0, 1, 0, A, A);
	SUSPECTS_DIGEST(0, 1);
	DIGESTS(0, 1, 1, A, A);
	DIGESTS(0, 1, 2, A, A);
	IS(DIGESTS(1, 1, 2, A, A),
		"NOTE integrity; INVALIDATE 0; STORE 5 e 1 next 2 of 0 1 mismatches 1 to 0; >0 RELEASE@1 5; "
		">1 "
		"RELEASE@1 5");
	assert_non_null(strstr(co_note_text(c, "integrity"), ": workers hold different states"));
	co_end(c);
}

/* A digest reported by SUSPECT need not have come here. */
static void what_a_member_heard_of_another_counts(void **state)
{
	/* reports of the members, the sender that member 0 suspects then, and the actions of the last */
	static const struct { uint64_t digests[4]; uint32_t n, sender; const char *says; } row[] = {
		{ { A }, 1, 77, "NOTE integrity; INVALIDATE 0; STORE 4 e 1 next 1 of 0 mismatches 1 to 0; >0 RELEASE@1 5" },         /* gone since */
		{ { A, A }, 2, 77, "NOTE lost 0; >0 STALE@1; DROP 0; END 0; STORE 5 e 2 next 2 of 0 1 mismatches 1 to 0; "
			"NOTE lost 1; >1 STALE@1; DROP 1; END 1; STORE 6 e 3 next 2 of 0 1 mismatches 1 to "
			"0; "
			"INVALIDATE 0" },
		/* its report here is that of most: none is known to be wrong */
		{ { A, A }, 2, 1, "NOTE lost 0; >0 STALE@1; DROP 0; END 0; STORE 5 e 2 next 2 of 0 1 mismatches 1 to 0; "
			"NOTE lost 1; >1 STALE@1; DROP 1; END 1; STORE 6 e 3 next 2 of 0 1 mismatches 1 to "
			"0; "
			"INVALIDATE 0" },
		{ { A, A, NO }, 3, 2, "NOTE corrupt 2; >2 RELEASE@1 5; NOTE lost 2; >2 STALE@1; DROP 2; END 2; "
			"STORE 6 e 2 next 3 of 0 1 2 mismatches 1 to 0; NOTE lost 0; >0 STALE@1; DROP 0; END "
			"0; "
			"STORE 7 e 3 next 3 of 0 1 2 mismatches 1 to 0; NOTE lost 1; >1 STALE@1; DROP 1; END "
			"1; "
			"STORE 8 e 4 next 3 of 0 1 2 mismatches 1 to 0; INVALIDATE 0" },
		/* a member without a report is no part of it */
		{ { A, A, B, NO }, 4, 77, "NOTE integrity; INVALIDATE 0; STORE 7 e 1 next 4 of 0 1 2 3 mismatches 1 to 0; "
			">0 RELEASE@1 5; >1 RELEASE@1 5; >2 RELEASE@1 5; >3 RELEASE@1 5" },
		{ { A, A, B, NO }, 4, 2, "NOTE corrupt 2; >2 RELEASE@1 5; NOTE lost 2; >2 STALE@1; DROP 2; END 2; "
			"STORE 7 e 2 next 4 of 0 1 2 3 mismatches 1 to 0; NOTE lost 0; >0 STALE@1; DROP 0; "
			"END 0; "
			"STORE 8 e 3 next 4 of 0 1 2 3 mismatches 1 to 0; NOTE lost 1; >1 STALE@1; DROP 1; "
			"END 1; "
			"STORE 9 e 4 next 4 of 0 1 2 3 mismatches 1 to 0; NOTE lost 3; >3 STALE@1; DROP 3; "
			"END 3; "
			"STORE 10 e 5 next 4 of 0 1 2 3 mismatches 1 to 0; INVALIDATE 0" },
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &co_config, row[i].n);
		for (uint32_t w = 0; w < row[i].n; w++)
			if (row[i].digests[w])
				DIGESTS(w, 1, 0, A, row[i].digests[w]);
		SUSPECTS_DIGEST(0, row[i].sender);
		for (uint32_t w = 0; w < row[i].n; w++)
			if (!row[i].digests[w])
				DIGESTS(w, 1, 0, NO, NO);
		CHECK(!strcmp(c->text, row[i].says), "row %zu: %s", i, c->text);
		co_end(c);
	}
	/* it is of the newest step that the member reported */
	for (uint64_t step = 0; step < 2; step++) {
		co_run(c, &co_config, 2);
		for (uint64_t s = 0; s < step + 2; s++)
			DIGESTS(0, 1, s, A, A);
		IS(SUSPECTS_DIGEST(0, 1), "");
		IS(DIGESTS(1, 1, step, A, A), step ? "COMMIT 0@1; COMMIT 1@1" : "COMMIT 0@1");
		const char *said = DIGESTS(1, 1, step + 1, A, A);
		CHECK(strstr(said, step ? "INVALIDATE 2" : "INVALIDATE 1") && !strstr(said, "COMMIT"),
			"step %d: %s", (int)step, said);
		co_end(c);
	}
	co_run(c, &co_config, 3);                /* without a report there is no step to suspect */
	DIGESTS(0, 1, 0, A, A);
	DIGESTS(1, 1, 0, A, B);
	IS(SUSPECTS_DIGEST(2, 0), "");
	IS(DIGESTS(2, 1, 0, NO, NO),
		"NOTE integrity; INVALIDATE 0; STORE 6 e 1 next 3 of 0 1 2 mismatches 1 to 0; >0 RELEASE@1 "
		"5; "
		">1 RELEASE@1 5; >2 RELEASE@1 5");
	co_end(c);
}

/* A member that left is not waited for; its report counts. */
static void who_is_gone_is_not_waited_for(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	DIGESTS(0, 1, 0, A, A);
	IS(FROM(2, LEAVE, .epoch = 1, .leave = { .gone = true }),
		"NOTE leave 2; SPAWN 1; STORE 6 e 2 next 3 of 0 1 2");
	IS(DIGESTS(1, 1, 0, A, B),
		"NOTE integrity; INVALIDATE 0; STORE 7 e 2 next 3 of 0 1 2 mismatches 1 to 0; NOTE void; >0 "
		"RELEASE@1 5; >1 RELEASE@1 5");
	co_end(c);

	co_run(c, &co_config, 3);
	DIGESTS(0, 1, 0, A, A);
	DIGESTS(2, 1, 0, A, B);
	IS(FROM(2, LEAVE, .epoch = 1, .leave = { .gone = true }),
		"NOTE leave 2; SPAWN 1; STORE 6 e 2 next 3 of 0 1 2");
	IS(DIGESTS(1, 1, 0, A, A),
		"NOTE lost 0; >0 STALE@1; DROP 0; END 0; NOTE void; STORE 7 e 3 next 3 of 0 1 2 mismatches 1 "
		"to 0; NOTE lost 1; "
		/* it is not here to be released */
		">1 STALE@1; DROP 1; END 1; STORE 8 e 4 next 3 of 0 1 2 mismatches 1 to 0; INVALIDATE 0");
	co_end(c);

	co_run(c, &co_config, 1);                /* no worker is left, and nothing mismatches */
	IS(FROM(0, LEAVE, .epoch = 1, .leave = { .gone = true }),
		"NOTE leave 0; SPAWN 1; NOTE halt; STORE 4 e 1 next 1 of 0 halting");
	co_end(c);
}

/* During FENCE none is judged: the new view has the answer. So before there is one. */
static void nobody_is_judged_without_a_view(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	DIGESTS(0, 1, 0, A, A);
	CO(LOST, .worker = 2, .why = HD_EXITED);
	IS(DIGESTS(1, 1, 0, A, B), "");           /* its epoch is being stored */
	IS(STORED(), ">0 FENCE@2 dead 2; >1 FENCE@2 dead 2");
	IS(DIGESTS(1, 1, 0, A, B), "");
	IS(FROM(0, STATUS, .epoch = 2, .status = { .member = true, .at = 1, .prev = true }), "");
	IS(FROM(1, STATUS, .epoch = 2, .status = { .member = true, .at = 1, .prev = true }),
		">0 VIEW@2 1 of 0 1; >1 VIEW@2 1 of 0 1; NOTE view; STORE 7 e 2 next 3 of 0 1; "
		"NOTE integrity; INVALIDATE 0; "
		"STORE 8 e 2 next 3 of 0 1 mismatches 1 to 0; >0 RELEASE@2 5; >1 RELEASE@2 5");
	co_end(c);

	co_begin(c, &co_config);
	for (uint32_t i = 0; i < 2; i++) {
		co_admit(c, i);
		DIGESTS(i, 0, 0, A, i ? B : A);
		IS(c->text, "");
	}
	co_end(c);
}

/* A joiner that may have entered holds what came of it; one that only syncs does not take part. */
static void who_was_decided_into_a_view_begins_again_too(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int decided = 0; decided < 2; decided++) {
		co_run(c, &co_config, 3);
		co_one_more(c, 3);
		STORED();
		for (uint32_t i = 0; i < 4 && decided; i++)
			FROM(i, PREPARED, .epoch = 1, .decided = { 2 });
		if (decided)
			STORED();
		DIGESTS(0, 1, 0, A, A);
		DIGESTS(1, 1, 0, A, A);
		IS(DIGESTS(2, 1, 0, A, B), decided ?
			"NOTE corrupt 2; >2 RELEASE@1 5; NOTE lost 2; >2 STALE@1; DROP 2; END 2; NOTE void; "
				"STORE 10 e 3 next 4 of 0 1 2 3 mismatches 1 to 0; NOTE lost 0; >0 STALE@1; "
				"DROP 0; END 0; "
				"STORE 11 e 4 next 4 of 0 1 2 3 mismatches 1 to 0; NOTE lost 1; >1 STALE@1; "
				"DROP 1; END 1; "
				"STORE 12 e 5 next 4 of 0 1 2 3 mismatches 1 to 0; NOTE lost 3; >3 STALE@1; "
				"DROP 3; END 3; INVALIDATE 0" :
			"NOTE corrupt 2; >2 RELEASE@1 5; NOTE lost 2; >2 STALE@1; DROP 2; END 2; >2 "
			"SEND_STATE@1 3 no more; NOTE void; "
				"STORE 9 e 3 next 4 of 0 1 2 mismatches 1 to 0; NOTE lost 0; >0 STALE@1; "
				"DROP "
				"0; END 0; "
				"STORE 10 e 4 next 4 of 0 1 2 mismatches 1 to 0; NOTE lost 1; >1 STALE@1; "
				"DROP 1; END 1; "
				"STORE 11 e 5 next 4 of 0 1 2 mismatches 1 to 0; INVALIDATE 0");
		co_end(c);
	}
}

/* "From the newest step whose state was the same at all, or one before": a step that was verified may be
 * mismatched after all. */
static void what_is_mismatched_after_all_is_verified_no_more(void **state)
{
	static const struct { uint64_t step; const char *invalidate; } row[] = { { 1, "INVALIDATE 0" },
		{ 2, "INVALIDATE 2" }, { 3, "INVALIDATE 3" } };
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &co_config, 2);
		CO(SCALE, .n = 3);
		co_admit(c, 2);
		for (uint64_t s = 0; s < 3; s++) {
			DIGESTS(0, 1, s, A, A);
			DIGESTS(1, 1, s, A, A);
		}
		assert_int_equal(c->co->verified, 3);
		DIGESTS(2, 1, row[i].step, A, B);
		if (row[i].step == 3) {
			DIGESTS(0, 1, 3, A, A);
			DIGESTS(1, 1, 3, A, A);
		}
		CHECK(strstr(c->text, row[i].invalidate) && strstr(c->text, "NOTE corrupt 2"),
			"row %zu: %s", i,
			c->text);
		co_end(c);
	}
}

/* No worker is left before it could be judged: the same holds for what they saved. */
static void a_mismatch_that_nobody_outlives_is_invalidated_too(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	DIGESTS(0, 1, 0, A, A);
	DIGESTS(1, 1, 0, A, B);
	for (uint32_t i = 0; i < 3; i++)
		CO(LOST, .worker = i, .why = HD_EXITED);
	IS(STORED(), "STORE 9 e 4 next 3 not started; NOTE restore; INVALIDATE 0; RESTORE; SPAWN 3");
	IS(CO(RESTORED, .step = 0), "");
	for (uint32_t i = 3; i < 6; i++) {
		co_admit(c, i);
		co_ready_to_sync(c, i);
		co_synced(c, i);
	}
	STORED();
	for (uint32_t i = 3; i < 6; i++)
		FROM(i, STATUS, .epoch = 5, .status = { .at = 0 });
	IS(STORED(), ">3 VIEW@5 0 of 3 4 5; >4 VIEW@5 0 of 3 4 5; >5 VIEW@5 0 of 3 4 5; NOTE view");
	DIGESTS(3, 5, 0, A, B);
	DIGESTS(4, 5, 0, A, B);
	IS(DIGESTS(5, 5, 0, A, B), "COMMIT 0@5");          /* earlier reports are forgotten */
	co_end(c);

	/* the job ends before it could be judged, for another reason */
	co_run(c, &co_config, 3);
	DIGESTS(0, 1, 0, A, A);
	DIGESTS(1, 1, 0, A, B);
	FROM(2, DONE, .epoch = 1, .done = { .step = 0, .code = 4, .nwhy = 3, .why = "nan" });
	for (uint32_t i = 0; i < 2; i++)
		IS(CO(LOST, .worker = i, .why = HD_CLOSED), "");
	IS(CO(LOST, .worker = 2, .why = HD_CLOSED), "INVALIDATE 0; EXIT 4 nan");
	co_end(c);

	/* what was not mismatched is not: the same job has the same states */
	co_run(c, &co_config, 1);
	DIGESTS(0, 1, 0, A, A);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	IS(STORED(), "STORE 5 e 2 next 1 not started; NOTE restore; RESTORE; SPAWN 1");
	CO(RESTORED, .step = 0);
	co_admit(c, 1);
	co_ready_to_sync(c, 1);
	co_synced(c, 1);
	STORED();
	FROM(1, STATUS, .epoch = 3, .status = { .at = 0 });
	STORED();
	IS(DIGESTS(1, 3, 0, A, B),
		"NOTE integrity; INVALIDATE 0; STORE 9 e 3 next 2 of 1 mismatches 1 to 0; >1 RELEASE@3 5");
	co_end(c);
}

/* The slot of a gone worker may have another worker by now: it reported nothing, and is not waited for. */
static void a_place_given_away_says_nothing_of_who_had_it(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	for (int same = 0; same < 2; same++) {
		co_run(c, &co_config, 3);
		co_crowd(c);
		FROM(2, LEAVE, .epoch = 1, .leave = { .gone = true });
		CO(LOST, .worker = 2, .why = HD_CLOSED);
		co_admit(c, c->co->record.next_worker);
		assert_null(hd_co_find(c->co, 2));
		DIGESTS(0, 1, 0, A, A);
		const char *said = DIGESTS(1, 1, 0, A, same ? A : B);
		CHECK(same ? !*said : strstr(said, "NOTE integrity") != NULL, "%s", said);
		co_end(c);
	}
}

/* Memory that is out ends the job, wherever. */
static void without_memory_nobody_is_judged(void **state)
{
	struct co_at_work at, *c = &at;
	const char *said = "";

	(void)state;
	for (size_t budget = 64; !strstr(said, "NOTE corrupt"); budget += 64) {
		co_run(c, &co_config, 3);
		DIGESTS(0, 1, 0, A, A);
		DIGESTS(1, 1, 0, A, A);
		c->co->out.budget_bytes = budget;
		said = DIGESTS(2, 1, 0, A, B);
		if (!strstr(said, "NOTE corrupt"))
			IS(said, "EXIT 11 out of memory");
		co_end(c);
	}
}

/* Where a step that is run again may have other bits, those of a worker that is gone are not compared. */
static void a_worker_that_is_gone_is_not_compared_where_steps_vary(void **state)
{
	struct hd_co_config config = co_config;
	struct co_at_work at, *c = &at;

	(void)state;
	for (int varies = 0; varies <= 1; varies++) {
		config.varies = varies;
		co_run(c, &config, 3);
		DIGESTS(0, 1, 0, A, A);
		CO(LOST, .worker = 0, .why = HD_EXITED);
		DIGESTS(1, 1, 0, B, B);
		assert_int_equal(c->co->mismatched, !varies);
		co_end(c);
		co_run(c, &config, 3);           /* of those that are here as ever */
		DIGESTS(0, 1, 0, A, A);
		DIGESTS(1, 1, 0, B, B);
		assert_true(c->co->mismatched > 0);
		co_end(c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_the_same_at_all_is_committed_and_verified),
		cmocka_unit_test(parts_that_two_hold_are_verified_when_they_were_compared),
		cmocka_unit_test(who_told_another_digest_than_most_goes),
		cmocka_unit_test(a_mismatch_waits_until_all_have_sealed_the_step),
		cmocka_unit_test(what_is_told_late_or_twice_counts_once),
		cmocka_unit_test(without_a_majority_the_job_ends_and_two_are_named),
		cmocka_unit_test(what_a_member_heard_of_another_counts),
		cmocka_unit_test(who_is_gone_is_not_waited_for),
		cmocka_unit_test(nobody_is_judged_without_a_view),
		cmocka_unit_test(who_was_decided_into_a_view_begins_again_too),
		cmocka_unit_test(what_is_mismatched_after_all_is_verified_no_more),
		cmocka_unit_test(a_mismatch_that_nobody_outlives_is_invalidated_too),
		cmocka_unit_test(a_place_given_away_says_nothing_of_who_had_it),
		cmocka_unit_test(without_memory_nobody_is_judged),
		cmocka_unit_test(a_worker_that_is_gone_is_not_compared_where_steps_vary),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
