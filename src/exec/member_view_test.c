#include "exec/testing_member.h"

/* Views: planned changes (rule 2), fences (rules 3 and 8), and what is not for this worker. Members are 0 and 1; 2 is to come. */

static const struct hd_step_news none;
static const uint32_t two[] = { 0, 1 }, three[] = { 0, 1, 2 };
static const struct hd_vrank ranks[] = { { 0, 2 }, { 1, 1 }, { 2, 1 } };

#define AT(step_) .step = (step_)
#define SEAL_OF(from, e, s, k) PEER_SAYS(from, SEAL, .epoch = (e), .seal = { .step = (s), .ran = true, .knows = (k) })
#define PREPARE(in, n) HEAR(PREPARE, .epoch = (in), .prepare = { .next = (n), .nold = 2, .old = two, .nmember = 3, .member = three, .nrank = 3, .rank = ranks })
#define DECIDE(n) HEAR(DECIDE, .epoch = 1, .decided = { n })

/* Of 0 and 1 whichever this is seals step s of epoch e, and its boundary is done. */
static const char *seal(struct at_work *w, uint32_t e, uint64_t s)
{
	uint32_t me = w->m->worker, other = 1 - me;

	EVENT(COMPUTED, AT(s));
	EVENT(ROOT, .epoch = e, .worker = other, .bucket = me, AT(s));
	EVENT(FOLDED, .bucket = me, AT(s));
	EVENT(SUM, .epoch = e, .worker = other, .bucket = other, AT(s));
	EVENT(LEAVES, .epoch = e, .worker = other, AT(s));
	EVENT(UPDATED, AT(s), .news = &none);
	return EVENT(READY, AT(s + 1));
}

/* Rule 2: s0 is the first step all of whose seals know of it; s0 + 2 runs under it. */
static void a_decided_view_is_in_force_two_steps_after_all_know(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	IS(PREPARE(1, 2), "PREPARE 2 of 3");
	IS(EVENT(PREPARED, .epoch = 3), "");
	IS(EVENT(PREPARED, .epoch = 2), ">co PREPARED@1 2");
	seal(w, 1, 0);
	IS(SEAL_OF(1, 1, 0, 1), "BEGIN 1; COMPUTE 1.0 [0+2]");
	IS(DECIDE(2), "DECIDED 2");
	seal(w, 1, 1);
	IS(SEAL_OF(1, 1, 1, 1), "BEGIN 2; COMPUTE 2.0 [0+2]");
	IS(seal(w, 1, 2), "");
	IS(SEAL_OF(1, 1, 2, 2), "BEGIN 3; COMPUTE 3.0 [0+2]");
	IS(seal(w, 1, 3), "");
	IS(SEAL_OF(1, 1, 3, 2), "");
	IS(SEAL_OF(2, 1, 3, 2), "");
	IS(SEAL_OF(2, 2, 3, 2), "EPOCH 2; ADOPT 2 of 3; BEGIN 4; COMPUTE 4.0 [0+2]");
	assert_int_equal(hd_member_epoch(w->m), 2);
	assert_int_equal(hd_member_view(w->m)->nmembers, 3);
	at_work_end(w);
}

/* Who was not told that it is decided learns it from all seals that know. */
static void that_it_is_decided_may_be_known_from_seals_alone(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_learned(w, &at_work_config, 2);
	IS(PREPARE(1, 2), "EPOCH 1; PREPARE 2 of 3");
	IS(SEAL_OF(0, 1, 4, 2), "");
	IS(SEAL_OF(1, 1, 4, 1), "");
	IS(SEAL_OF(1, 1, 5, 2), "DECIDED 2");
	assert_int_equal(w->m->switch_step, 7);
	IS(EVENT(LEARNED, AT(6)), "");
	IS(EVENT(LEARNED, AT(7)), ">0 SEAL@2 6 knows 2; >1 SEAL@2 6 knows 2; >co SEAL@2 6 knows 2; BOUNDARY 7");
	IS(SEAL_OF(0, 1, 6, 2), "");
	IS(SEAL_OF(1, 1, 6, 2), "");
	IS(EVENT(READY, AT(7)), "EPOCH 2; ADOPT 2 of 3; BEGIN 7; COMPUTE 7.0 [3+1]");
	assert_int_equal(hd_member_state(w->m), HD_MEMBER);
	at_work_end(w);
}

/* Prepared is who has all links: also to those who are to come. */
static void prepared_is_who_is_connected_with_all(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	EVENT(LOST, .worker = 2, .why = HD_CLOSED);
	PREPARE(1, 2);
	IS(EVENT(PREPARED, .epoch = 2), "");
	IS(EVENT(UP, .worker = 2), ">co PREPARED@1 2");
	IS(EVENT(UP, .worker = 2), "");
	IS(PREPARE(1, 2), ">co PREPARED@1 2");
	EVENT(LOST, .worker = HD_COORDINATOR, .why = HD_CLOSED);
	IS(EVENT(UP, .worker = HD_COORDINATOR), ">co JOIN@1 0 member at 0; >co PREPARED@1 2");
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	EVENT(LOST, .worker = 1, .why = HD_CLOSED);
	PREPARE(1, 2);
	IS(EVENT(PREPARED, .epoch = 2), "");
	EVENT(LOST, .worker = HD_COORDINATOR, .why = HD_CLOSED);
	IS(EVENT(UP, .worker = 1), "");
	at_work_end(w);
}

static void a_preparation_that_is_not_for_now_is_not_made(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	IS(PREPARE(1, 1), "");                  /* of the present epoch */
	IS(DECIDE(1), "");
	FENCE(2);
	IS(PREPARE(1, 3), "");                  /* held */
	IS(DECIDE(3), "");
	at_work_end(w);

	at_work_begin(w, &at_work_config);
	IS(PREPARE(1, 2), "");                  /* outside */
	HEAR(ADMIT, .admit = { 2, 7 });
	IS(PREPARE(1, 2), "");                  /* admitted */
	EVENT(WARMED);
	HEAR(LEARN, .learn = { 0, 4 });
	IS(PREPARE(1, 2), "");                  /* has learned nothing yet */
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	IS(HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 0, .old = two, .nmember = 3, .member = three, .nrank = 3,
		.rank = ranks }),
		"");
	IS(HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 3, .member = three, .nrank = 2,
		.rank = ranks }),
		"");
	IS(EVENT(PREPARED, .epoch = 2), "");
	IS(PREPARE(1, 3), "PREPARE 3 of 3");
	IS(EVENT(PREPARED, .epoch = 3), ">co PREPARED@1 3");
	IS(PREPARE(1, 2), ">co PREPARED@1 3");                  /* of before: the answer is that to the newest */
	IS(PREPARE(1, 4), "PREPARE 4 of 3");                  /* it was void */
	IS(EVENT(PREPARED, .epoch = 3), "");
	IS(DECIDE(4), "DECIDED 4");
	assert_false(w->m->next.decided);        /* not prepared */
	IS(EVENT(PREPARED, .epoch = 4), ">co PREPARED@1 4");
	DECIDE(3);
	assert_false(w->m->next.decided);        /* another one */
	DECIDE(4);
	assert_true(w->m->next.decided);
	IS(PREPARE(1, 5), "");                  /* decided is decided */
	at_work_end(w);
}

/* Who has no part in the next view goes when its steps are done and all who are to come have them. */
static void who_is_not_of_the_next_view_leaves_at_the_switch(void **state)
{
	struct at_work at, *w = &at;
	static const uint32_t rest[] = { 0, 2 };
	static const struct hd_vrank rank[] = { { 0, 2 }, { 2, 2 } };

	(void)state;
	for (int entered = 0; entered < 2; entered++) {
		at_work_member(w, &at_work_config, 1, 2);
		HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 2, .member = rest, .nrank = 2, .rank = rank });
		EVENT(PREPARED, .epoch = 2);
		DECIDE(2);
		if (entered) {
			IS(HEAR(ENTERED, .epoch = 3), "");
			IS(HEAR(ENTERED, .epoch = 2), ">co LEAVE@1 0 gone ; EXIT 0 this worker left the job");
			at_work_end(w);
			continue;
		}
		for (uint64_t s = 0; s < 2; s++) {
			SEAL_OF(0, 1, s, 2);
			IS(seal(w, 1, s), s ? "" : "BEGIN 1; COMPUTE 1.0 [2+2]");
		}
		IS(SEAL_OF(2, 2, 1, 2), ">co LEAVE@1 0 gone ; EXIT 0 this worker left the job");
		assert_int_equal(hd_member_state(w->m), HD_GONE);
		IS(EVENT(TICK), "");
		at_work_end(w);
	}
}

/* A newcomer keeps what it announced though its donor goes, and gives it back when it is to be no member after all. */
static void what_a_newcomer_announced_it_keeps(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	for (int row = 0; row < 4; row++) {
		at_work_learned(w, &at_work_config, 2);
		PREPARE(1, 2);
		EVENT(PREPARED, .epoch = 2);
		SEAL_OF(0, 1, 4, 2);
		SEAL_OF(1, 1, 4, 2);
		IS(EVENT(LEARNED, AT(6)), ">0 SEAL@2 5 knows 2; >1 SEAL@2 5 knows 2; >co SEAL@2 5 knows 2; BOUNDARY 6");
		IS(EVENT(READY, AT(6)), "");
		switch (row) {
		case 0:                          /* whole: it becomes a member */
			IS(EVENT(UNLEARNED, .whole = true), "");
			SEAL_OF(0, 1, 5, 2);
			IS(SEAL_OF(1, 1, 5, 2), "EPOCH 2; ADOPT 2 of 3; BEGIN 6; COMPUTE 6.0 [3+1]");
			break;
		case 1:                          /* not whole: what it announced is not there */
			IS(EVENT(UNLEARNED), ">co WARM@1 0");
			IS(HEAR(ENTERED, .epoch = 2), "EPOCH 2");
			break;
		case 2:                          /* the members went on without it */
			EVENT(UNLEARNED, .whole = true);
			IS(HEAR(ENTERED, .epoch = 1), "");
			IS(HEAR(ENTERED, .epoch = 3), "EPOCH 3; >co WARM@3 0");
			break;
		case 3:                          /* so they did, and it follows on */
			IS(EVENT(LEARNED, AT(7)), "");
			assert_false(w->m->next.open);
			IS(EVENT(READY, AT(6)), "");
			IS(EVENT(READY, AT(7)), "");
			break;
		}
		at_work_end(w);
	}
}

/* Rule 3. */
static void a_fence_of_an_epoch_that_is_past_changes_nothing(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_begin(w, &at_work_config);
	IS(FENCE(1), "");                       /* outside */
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	IS(FENCE(0), "");
	IS(FENCE(1), "");                       /* it is not held */
	IS(VIEW(1, 2, .step = 0), "");
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 0 member begun [0+2]");
	IS(FENCE(1), "");
	IS(FENCE(2), ">co STATUS@2 0 member begun [0+2]");                       /* its answer was lost */
	IS(VIEW(1, 2, .step = 0), "");
	IS(VIEW(3, 2, .step = 0), "");
	IS(VIEW(2, 2, .step = 0, .nat = 1, .at = (const uint64_t[]){ 0 }), "");
	IS(VIEW(2, 2, .step = 0, .nrank = 1, .rank = ranks), "");
	IS(FENCE(3), "EPOCH 3; >co STATUS@3 0 member begun [0+2]");                       /* another one while it is held */
	IS(VIEW(2, 2, .step = 0), "");
	IS(VIEW(3, 2, .step = 0), "ADOPT 3 of 2");
	IS(VIEW(3, 2, .step = 0), "");
	at_work_end(w);
}

/* Who is warm and holds nothing says so when it is asked, and is not held. */
static void who_has_no_state_answers_and_waits_for_no_view(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_begin(w, &at_work_config);
	HEAR(ADMIT, .admit = { 2, 7 });
	EVENT(WARMED);
	IS(FENCE(3), "EPOCH 3");
	IS(VIEW(3, 2, .step = 0), "");
	HEAR(LEARN, .learn = { 0, 4 });
	IS(FENCE(4), "EPOCH 4");
	EVENT(LEARNED, AT(5));
	IS(FENCE(5), "EPOCH 5; >co STATUS@5 5");
	IS(VIEW(5, 2, .step = 5), "");
	IS(FENCE(6), "EPOCH 6; >co STATUS@6 5");
	IS(VIEW(6, 3, .step = 4, .nat = 3, .at = (const uint64_t[]){ 4, 4, 5 }),
		"ADOPT 6 of 3; >co SUSPECT@6 0 closed; >co SUSPECT@6 1 closed; BOUNDARY 5");
	at_work_end(w);
}

static void a_view_without_this_worker_or_at_another_step_fences_it(void **state)
{
	static const struct { uint32_t n; uint64_t step; const char *said; } row[] = {
		{ 1, 0, "FENCED the job went on without this worker" }, { 2, 1, "FENCED the job is at another step" },
		{ 2, 5, "FENCED the job is at another step" }, { 2, 0, "ADOPT 2 of 2" },
	};
	struct at_work at, *w = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		at_work_member(w, &at_work_config, 1, 2);
		FENCE(2);
		const char *said = VIEW(2, row[i].n, .step = row[i].step);
		IS(said, row[i].said);
		at_work_end(w);
	}
}

/* Who becomes the scribe has a boundary before it contributes; unless somebody holds the table: then the one before had contributed. */
static void who_becomes_the_scribe_has_its_boundary_again(void **state)
{
	static const struct hd_pass pass[] = { { 1, 0, 0, 2 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 2 } };
	static const struct hd_have nobody = { 0, 0 };
	static const uint32_t rest[] = { 1 };
	static const struct hd_vrank alone[] = { { 1, 4 } };
	struct at_work at, *w = &at;

	(void)state;
	for (int table = 0; table < 2; table++) {
		at_work_member(w, &at_work_config, 1, 2);
		EVENT(COMPUTED, AT(0));
		FENCE(2);
		IS(hear_view(w, 2, rest, 1, (struct hd_msg_view){ .step = 0, .halt = HD_NO_STEP, .npass = 1, .pass = pass, .nrange = 2, .range = range,
			.nhave = 1, .have = &nobody, .table = (uint64_t)table, .nrank = 1, .rank = alone }), table ?
			"ADOPT 2 of 1; AGAIN 0; FOLD 0.0; FOLD 0.1" :
			"ADOPT 2 of 1; AGAIN 0; FOLD 0.0; FOLD 0.1; BOUNDARY 0 scribe");
		at_work_end(w);
	}
	at_work_member(w, &at_work_config, 1, 2);
	seal(w, 1, 0);
	FENCE(2);
	IS(hear_view(w, 2, rest, 1, (struct hd_msg_view){ .step = 0, .halt = HD_NO_STEP, .nrank = 1, .rank = alone }),
		"ADOPT 2 of 1; >co SEAL@2 0 ran knows 2; BOUNDARY 1 scribe");
	at_work_end(w);
}

/* Too few: nobody begins; what was begun is forgotten where it is to be begun afresh; a halt that others know of is known. */
static void a_view_says_where_to_hold_to_halt_and_to_begin_afresh(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	FENCE(2);
	IS(VIEW(2, 2, .step = 0, .hold = true), "ADOPT 2 of 2");
	assert_false(hd_member_holds(w->m));     /* it has begun */
	FENCE(3);
	IS(VIEW(3, 2, .step = 0, .afresh = true, .hold = true), "ADOPT 3 of 2; CANCEL 0");
	assert_true(hd_member_holds(w->m));
	FENCE(4);
	IS(VIEW(4, 2, .step = 0, .afresh = true), "ADOPT 4 of 2; BEGIN 0; COMPUTE 0.0 [0+2]");
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	FENCE(2);
	IS(hear_view(w, 2, two, 2, (struct hd_msg_view){ .step = 0, .halt = 0 }),
		"ADOPT 2 of 2; >1 HALT@2 0; >co HALT@2 0; CANCEL 0; BOUNDARY 0 scribe final");
	IS(EVENT(READY, AT(0)), ">co DONE@2 0 code 75 ");
	FENCE(3);
	/* it is said again, to whoever decided this view */
	IS(VIEW(3, 2, .step = 0), "ADOPT 3 of 2; >1 HALT@3 0; >co HALT@3 0; >co DONE@3 0 code 75 ");
	at_work_end(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_decided_view_is_in_force_two_steps_after_all_know),
		cmocka_unit_test(that_it_is_decided_may_be_known_from_seals_alone),
		cmocka_unit_test(prepared_is_who_is_connected_with_all),
		cmocka_unit_test(a_preparation_that_is_not_for_now_is_not_made),
		cmocka_unit_test(who_is_not_of_the_next_view_leaves_at_the_switch),
		cmocka_unit_test(what_a_newcomer_announced_it_keeps),
		cmocka_unit_test(a_fence_of_an_epoch_that_is_past_changes_nothing),
		cmocka_unit_test(who_has_no_state_answers_and_waits_for_no_view),
		cmocka_unit_test(a_view_without_this_worker_or_at_another_step_fences_it),
		cmocka_unit_test(who_becomes_the_scribe_has_its_boundary_again),
		cmocka_unit_test(a_view_says_where_to_hold_to_halt_and_to_begin_afresh),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
