#include "protocol/testing_views.h"

/* Fences (rules 3 and 8), the checkpoint writer, and what is not for this worker. */

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
	/* another one while it is held */
	IS(FENCE(3), "EPOCH 3; >co STATUS@3 0 member begun [0+2]");
	IS(VIEW(2, 2, .step = 0), "");
	IS(VIEW(3, 2, .step = 0), "ADOPT 3 of 2");
	IS(VIEW(3, 2, .step = 0), "");
	at_work_end(w);
}

/* A worker that is warmed up and holds nothing says so on FENCE, and is not held. */
static void who_has_no_state_answers_and_waits_for_no_view(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_begin(w, &at_work_config);
	HEAR(ADMIT, .admit = { 2, 7 });
	EVENT(WARMED_UP);
	IS(FENCE(3), "EPOCH 3");
	IS(VIEW(3, 2, .step = 0), "");
	HEAR(SYNC, .sync = { 0, 4 });
	IS(FENCE(4), "EPOCH 4");
	EVENT(SYNCED, AT(5));
	IS(FENCE(5), "EPOCH 5; >co STATUS@5 5");
	IS(VIEW(5, 2, .step = 5), "");
	IS(FENCE(6), "EPOCH 6; >co STATUS@6 5");
	IS(VIEW(6, 3, .step = 4, .nat = 3, .at = (const uint64_t[]){ 4, 4, 5 }),
		"ADOPT 6 of 3; BOUNDARY 5");
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

/* A new writer has a boundary before it contributes; unless the table has a holder: then the writer
 * before had contributed. */
static void who_becomes_the_checkpoint_writer_has_its_boundary_again(void **state)
{
	static const struct hd_pass pass[] = { { 1, 0, 0, 2, 0 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 2 } };
	static const struct hd_have no_holder = { 0, 0 };
	static const uint32_t rest[] = { 1 };
	static const struct hd_vrank alone[] = { { 1, 4 } };
	struct at_work at, *w = &at;

	(void)state;
	for (int table = 0; table < 2; table++) {
		at_work_member(w, &at_work_config, 1, 2);
		EVENT(COMPUTED, AT(0));
		FENCE(2);
		IS(hear_view(w, 2, rest, 1, (struct hd_msg_view){ .step = 0, .halt = HD_NO_STEP, .npass = 1,
			.pass = pass, .nrange = 2, .range = range,
			.nhave = 1, .have = &no_holder, .table = (uint64_t)table, .nrank = 1,
			.rank = alone }),
			table ?
			"ADOPT 2 of 1; AGAIN 0; FOLD 0.0; FOLD 0.1" :
			"ADOPT 2 of 1; AGAIN 0; FOLD 0.0; FOLD 0.1; BOUNDARY 0 writer");
		at_work_end(w);
	}
	/* it has all, so the one before had contributed */
	at_work_member(w, &at_work_config, 1, 2);
	EVENT(COMPUTED, AT(0));
	EVENT(ROOT, .epoch = 1, .worker = 0, .bucket = 1, AT(0));
	EVENT(FOLDED, .bucket = 1, AT(0));
	EVENT(SUM, .epoch = 1, .worker = 0, .bucket = 0, AT(0));
	IS(EVENT(LEAVES, .epoch = 1, .worker = 0, AT(0)), "FINISH 0");
	FENCE(2);
	IS(hear_view(w, 2, rest, 1, (struct hd_msg_view){ .step = 0, .halt = HD_NO_STEP, .nrank = 1,
		.rank = alone }), "ADOPT 2 of 1");
	at_work_end(w);

	at_work_member(w, &at_work_config, 1, 2);
	seal(w, 1, 0);
	FENCE(2);
	IS(hear_view(w, 2, rest, 1, (struct hd_msg_view){ .step = 0, .halt = HD_NO_STEP, .nrank = 1,
		.rank = alone }),
		"ADOPT 2 of 1; >co SEAL@2 0 ran knows 2; BOUNDARY 1 writer");
	at_work_end(w);
}

/* Too few: none begins; what was begun is dropped where it is to be begun afresh; a halt that others
 * know of is known. */
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
		"ADOPT 2 of 2; >1 HALT@2 0; >co HALT@2 0; CANCEL 0; BOUNDARY 0 writer final");
	IS(EVENT(READY, AT(0)), ">co DONE@2 0 code 75 ");
	FENCE(3);
	/* it is said again, to whoever decided this view */
	IS(VIEW(3, 2, .step = 0), "ADOPT 3 of 2; >1 HALT@3 0; >co HALT@3 0; >co DONE@3 0 code 75 ");
	at_work_end(w);
}

/* VIEW is for a worker that was asked and has answered; another one gets the epoch from it. */
static void a_view_is_for_who_has_answered(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 1);
	EVENT(COMPUTED, AT(0));
	IS(FENCE(2), "EPOCH 2");                /* folds are under way */
	IS(VIEW(2, 1, .step = 0), "");
	EVENT(FOLDED, AT(0), .bucket = 0);
	IS(EVENT(FOLDED, AT(0), .bucket = 1), ">co STATUS@2 0 member begun table [0+4] sum 3");
	at_work_end(w);

	at_work_synced(w, &at_work_config, 2);
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 0");
	IS(VIEW(3, 2, .step = 0), "");          /* it is held for another one */
	at_work_end(w);

	at_work_begin(w, &at_work_config);
	HEAR(ADMIT, .admit = { 2, 7 });
	EVENT(WARMED_UP);
	IS(VIEW(3, 2, .step = 0), "EPOCH 3");
	at_work_end(w);

	at_work_member(w, &at_work_config, 1, 2);
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 2,
		.member = (const uint32_t[]){ 0, 2 }, .nrank = 2,
		.rank = (const struct hd_vrank[]){ { 0, 2 }, { 2, 2 } } });
	IS(VIEW(2, 1, .step = 0), ">co LEAVE@1 0 gone ; EXIT 0 this worker left the job");
	at_work_end(w);
}

/* What a member has heard of the others since it answered counts; what it has begun on that is not taken
 * back by a member that is behind. */
static void who_knows_more_than_the_view_goes_on(void **state)
{
	static const uint64_t ahead[] = { 1, 0 };
	static const struct hd_have mine = { 0, 1 };
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	seal(w, 1, 0);
	IS(SEAL_OF(1, 1, 0, 1), "BEGIN 1; COMPUTE 1.0 [0+2]");
	FENCE(2);
	IS(VIEW(2, 2, .step = 0, .afresh = true, .nat = 2, .at = ahead, .nhave = 1, .have = &mine),
		"ADOPT 2 of 2; >1 SEAL@2 0 ran knows 2; >co SEAL@2 0 ran knows 2");
	IS(EVENT(COMPUTED, AT(1)), "ROOTS 1.0.1 >1; LEAVES 1.0");
	at_work_end(w);
}

/* A writer that becomes it after its seal has the boundary of the next step, whoever holds the table of
 * the one before. */
static void who_becomes_the_checkpoint_writer_after_its_seal_has_its_boundary(void **state)
{
	static const uint32_t rest[] = { 1, 2 };
	static const struct hd_vrank rank[] = { { 1, 2 }, { 2, 2 } };
	static const struct hd_have mine = { 0, 1 };
	static const uint64_t ahead[] = { 1, 0 };
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 1, 2);
	seal(w, 1, 0);
	FENCE(2);
	IS(hear_view(w, 2, rest, 2, (struct hd_msg_view){ .step = 0, .halt = HD_NO_STEP, .nhave = 1,
		.have = &mine, .table = 1, .nrank = 2, .rank = rank,
		.nat = 2, .at = ahead }),
		"ADOPT 2 of 2; AGAIN 0; PUBLISH 0.0 {1}; PUBLISH 0.1 {1}; TABLE 0 {1}; >2 SEAL@2 0 ran "
		"knows 2; >co SEAL@2 0 ran knows 2; BOUNDARY 1 writer");
	at_work_end(w);
}

/* A status names the step before only if all of it is here, and the open one is not the one that failed. */
static void a_status_names_the_step_before_if_it_is_whole(void **state)
{
	static const struct hd_have no_holder = { 0, 0 };
	static const struct hd_pass pass[] = { { 0, 0, 0, 1, 0 }, { 1, 0, 1, 1, 0 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 2 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	seal(w, 1, 0);
	SEAL_OF(1, 1, 0, 1);
	EVENT(COMPUTED, AT(1));
	EVENT(ROOT, .epoch = 1, .worker = 1, AT(1));
	EVENT(FOLDED, AT(1));
	EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(1));
	IS(EVENT(LEAVES, .epoch = 1, .worker = 1, AT(1)), "FINISH 1");
	EVENT(FAILED, .code = 4, .text = "nan");
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 1 member halted");
	at_work_end(w);

	/* it came with X_1 into a view that still runs step 0 */
	at_work_synced(w, &at_work_config, 0);
	EVENT(SYNCED, AT(1));
	FENCE(1);
	IS(VIEW(1, 2, .step = 0, .npass = 2, .pass = pass, .nrange = 2, .range = range, .nhave = 1,
		.have = &no_holder, .nat = 2,
		.at = (const uint64_t[]){ 1, 0 }),
		"ADOPT 1 of 2; AGAIN 0; BOUNDARY 1 writer");
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 1 member");
	at_work_end(w);
}

/* A view that others have begun a step under is entered with nothing of the step before; one that cannot
 * be ends the worker. */
static void a_step_that_others_began_is_begun_anew(void **state)
{
	static const struct hd_have no_holder = { 0, 0 };
	static const struct hd_pass pass[] = { { 0, 0, 0, 1, 0 }, { 1, 0, 1, 1, 0 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 2 } };
	static const uint64_t same[] = { 1, 1 };
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	seal(w, 1, 0);
	FENCE(2);
	w->m->fetched = true;
	IS(VIEW(2, 2, .step = 1, .npass = 2, .pass = pass, .nrange = 2, .range = range, .nhave = 1,
		.have = &no_holder, .nat = 2, .at = same),
		"ADOPT 2 of 2; BEGIN 1; COMPUTE 1.0 [0+2]");
	assert_false(w->m->fetched);
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	FENCE(2);
	IS(VIEW(2, 2, .step = 0, .npass = 1, .pass = pass, .nrange = 1, .range = range, .nhave = 1,
		.have = &no_holder),
		"EXIT 1 step 0: virtual node 2 is not computed exactly once");
	at_work_end(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fence_of_an_epoch_that_is_past_changes_nothing),
		cmocka_unit_test(who_has_no_state_answers_and_waits_for_no_view),
		cmocka_unit_test(a_view_without_this_worker_or_at_another_step_fences_it),
		cmocka_unit_test(who_becomes_the_checkpoint_writer_has_its_boundary_again),
		cmocka_unit_test(a_view_says_where_to_hold_to_halt_and_to_begin_afresh),
		cmocka_unit_test(a_view_is_for_who_has_answered),
		cmocka_unit_test(who_knows_more_than_the_view_goes_on),
		cmocka_unit_test(who_becomes_the_checkpoint_writer_after_its_seal_has_its_boundary),
		cmocka_unit_test(a_status_names_the_step_before_if_it_is_whole),
		cmocka_unit_test(a_step_that_others_began_is_begun_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
