#include "exec/testing_member.h"

/* Rule 7 of member.h. Three members, two buckets, two copies: 0 and 1 bring the slots of bucket 0 on, 1 and 2 those of bucket 1; 0 and 1
 * add the roots of them. So 1 gives the parameters of bucket 0 to 2, and 2 those of bucket 1 to 0. Of the four virtual nodes 0 has two. */

static const struct hd_member_config sharded = { .nvns = 4, .nbuckets = 2, .copies = 2, .nsteps = 9, .detect_ns = AT_WORK_T, .ndevices = 1, .nonce = 7 };
static const struct hd_have all = { 0, 7 }, first_alone = { 0, 1 }, nobody = { 0, 0 };
static const struct hd_step_news none;

#define AT(step_) .step = (step_)
#define CAME(id, from, b) EVENT(id, .epoch = 1, .worker = (from), .bucket = (b), AT(0))

/* Member `id` of three in step 0 of epoch 1; `has`: who has slots. */
static void begin(struct at_work *w, uint32_t id, const struct hd_have *has)
{
	at_work_learned(w, &sharded, id);
	if (!(has->members >> id & 1))
		memset(w->m->mine, 0, w->m->own.words * sizeof *w->m->mine);
	FENCE(1);
	VIEW(1, 3, .step = 0, .nchain = 1, .chain = has);
}

/* Member 0 has all that it needs but what the caller adds. */
static void bring_all_but(struct at_work *w, const char *but)
{
	EVENT(COMPUTED, AT(0));
	CAME(ROOT, 1, 0);
	CAME(ROOT, 2, 0);
	if (strcmp(but, "sum"))
		EVENT(FOLDED, AT(0));
	if (strcmp(but, "norm"))
		CAME(NORM, 1, 1);
	CAME(LEAVES, 1, 0);
	if (strcmp(but, "table"))
		CAME(LEAVES, 2, 0);
}

static void sums_go_along_the_chain_and_the_last_gives_the_parameters(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 0, &all);
	IS(EVENT(READY, AT(0)), "BEGIN 0; COMPUTE 0.0 [0+2]");
	IS(EVENT(COMPUTED, AT(0)), "ROOTS 0.0.1 >1; LEAVES 0.0");
	CAME(ROOT, 1, 0);
	IS(CAME(ROOT, 2, 0), "FOLD 0.0");
	IS(EVENT(FOLDED, AT(0)), "PUBLISH 0.0 {1}; NORM 0.0 {12}");
	IS(CAME(NORM, 1, 1), "");
	IS(CAME(NORM, 1, 1), "");
	CAME(LEAVES, 1, 0);
	IS(CAME(LEAVES, 2, 0), "UPDATE 0");
	IS(CAME(PARM, 2, 1), "");
	IS(CAME(PARM, 2, 1), "");
	IS(EVENT(UPDATED_OWN, AT(1)), "");
	IS(EVENT(UPDATED_OWN, AT(0)), "FINISH 0");
	IS(EVENT(UPDATED_OWN, AT(0)), "");
	IS(EVENT(UPDATED, AT(0), .news = &none),
		">1 SEAL@1 0 ran knows 1; >2 SEAL@1 0 ran knows 1; >co SEAL@1 0 ran knows 1; BOUNDARY 1 scribe");
	at_work_end(w);

	begin(w, 1, &all);
	EVENT(READY, AT(0));
	IS(EVENT(COMPUTED, AT(0)), "ROOTS 0.0.0 >0; LEAVES 0.0");
	IS(CAME(SUM, 0, 0), "");
	CAME(ROOT, 0, 1);
	IS(CAME(ROOT, 2, 1), "FOLD 0.1");
	IS(EVENT(FOLDED, AT(0), .bucket = 1), "PUBLISH 0.1 {2}; NORM 0.1 {02}");
	CAME(LEAVES, 0, 0);
	CAME(LEAVES, 2, 0);
	IS(CAME(NORM, 0, 0), "UPDATE 0");
	IS(EVENT(UPDATED_OWN, AT(0)), "PARM 0.0 {2}; FINISH 0");
	at_work_end(w);

	begin(w, 2, &all);
	EVENT(READY, AT(0));
	EVENT(COMPUTED, AT(0));
	CAME(LEAVES, 0, 0);
	CAME(LEAVES, 1, 0);
	CAME(NORM, 0, 0);
	CAME(NORM, 1, 1);
	IS(CAME(SUM, 1, 1), "UPDATE 0");
	IS(EVENT(UPDATED_OWN, AT(0)), "PARM 0.1 {0}");
	IS(CAME(PARM, 1, 0), "FINISH 0");
	at_work_end(w);
}

/* Whichever is the last to come. */
static void slots_are_brought_on_when_all_is_here(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 0, &all);
	EVENT(READY, AT(0));
	bring_all_but(w, "sum");
	IS(EVENT(FOLDED, AT(0)), "PUBLISH 0.0 {1}; NORM 0.0 {12}; UPDATE 0");
	at_work_end(w);
	begin(w, 0, &all);
	EVENT(READY, AT(0));
	bring_all_but(w, "norm");
	IS(CAME(NORM, 1, 1), "UPDATE 0");
	at_work_end(w);
	begin(w, 0, &all);
	EVENT(READY, AT(0));
	bring_all_but(w, "table");
	IS(CAME(LEAVES, 2, 0), "UPDATE 0");
	at_work_end(w);
}

/* Rule 4 for what all need before slots are brought on: a scribe that still saves them has not said it. */
static void nothing_of_the_norms_goes_out_before_the_boundary_is_done(void **state)
{
	static const struct hd_pass pass[] = { { 0, 0, 0, 1 }, { 1, 0, 1, 1 }, { 2, 0, 2, 1 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 1 }, { 3, 1 } };
	struct at_work at, *w = &at;

	(void)state;
	for (int halts = 0; halts < 2; halts++) {
		at_work_learned(w, &sharded, 0);
		FENCE(1);
		IS(VIEW(1, 3, .step = 0, .npass = 3, .pass = pass, .nrange = 3, .range = range, .nhave = 1, .have = &nobody, .nchain = 1,
			.chain = &all),
			"ADOPT 1 of 3; BEGIN 0; COMPUTE 0.0 [0+2]; BOUNDARY 0 scribe");
		EVENT(COMPUTED, AT(0));
		CAME(ROOT, 1, 0);
		CAME(ROOT, 2, 0);
		IS(EVENT(FOLDED, AT(0)), "PUBLISH 0.0 {1}");
		CAME(NORM, 1, 1);
		EVENT(TABLE, .epoch = 1, .worker = 1, AT(0));
		IS(EVENT(TICK), ">co PROGRESS@1 0 0 0");
		IS(EVENT(READY, AT(0), .halt = halts), halts ? ">1 HALT@1 0; >2 HALT@1 0; >co HALT@1 0; CANCEL 0; BOUNDARY 0 scribe final" :
			"NORM 0.0 {12}; LEAVES 0.0");
		at_work_end(w);
	}
}

static void who_lacks_slots_gets_them_in_the_first_step_and_tells_all(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 1, &first_alone);
	IS(EVENT(READY, AT(0)), "BEGIN 0; FETCH 0; COMPUTE 0.0 [2+1]");
	assert_false(hd_member_has_slots(w->m, 0) || hd_member_has_slots(w->m, 1));
	EVENT(COMPUTED, AT(0));
	CAME(SUM, 0, 0);
	CAME(ROOT, 0, 1);
	CAME(ROOT, 2, 1);
	EVENT(FOLDED, AT(0), .bucket = 1);
	CAME(LEAVES, 0, 0);
	CAME(LEAVES, 2, 0);
	CAME(NORM, 0, 0);
	IS(EVENT(FETCHED, .epoch = 0, AT(0)), "");
	IS(EVENT(FETCHED, .epoch = 1, AT(0)), ">0 SLOTTED@1 0; >2 SLOTTED@1 0");
	assert_true(hd_member_has_slots(w->m, 0) && hd_member_has_slots(w->m, 1));
	IS(EVENT(FETCHED, .epoch = 1, AT(0)), "");
	IS(PEER_SAYS(2, SLOTTED, .epoch = 0, .halt = { 0 }), "");
	IS(PEER_SAYS(2, SLOTTED, .epoch = 1, .halt = { 1 }), "");
	IS(PEER_SAYS(9, SLOTTED, .epoch = 1, .halt = { 0 }), "");
	IS(PEER_SAYS(2, SLOTTED, .epoch = 1, .halt = { 0 }), "UPDATE 0");
	assert_false(hd_member_has_slots(w->m, 0));
	IS(EVENT(FETCHED, .epoch = 1, AT(0)), "");
	at_work_end(w);

	begin(w, 1, &first_alone);
	EVENT(READY, AT(0));
	PEER_SAYS(2, SLOTTED, .epoch = 2, .halt = { 4 });         /* it is ahead, in an epoch that is yet to come here */
	PEER_SAYS(2, SLOTTED, .epoch = 1, .halt = { 0 });
	assert_int_equal(w->m->peer[1].slotted_epoch, 2);
	assert_int_equal(w->m->peer[1].slotted, 5);
	at_work_end(w);
}

static void who_has_them_waits_for_those_who_get_them(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 0, &first_alone);
	IS(EVENT(READY, AT(0)), "BEGIN 0; COMPUTE 0.0 [0+2]");
	bring_all_but(w, "nothing");
	IS(EVENT(TICK), ">co PROGRESS@1 0 0 0");
	IS(PEER_SAYS(1, SLOTTED, .epoch = 1, .halt = { 0 }), "");
	IS(PEER_SAYS(2, SLOTTED, .epoch = 1, .halt = { 0 }), "UPDATE 0");
	assert_false(hd_member_has_slots(w->m, 1));        /* not of its chain: they would stay behind */
	at_work_end(w);
}

/* A status says what is here when all that may change it is done. */
static void a_fence_is_answered_when_slots_stand_still(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 0, &all);
	EVENT(READY, AT(0));
	bring_all_but(w, "nothing");
	IS(FENCE(2), "EPOCH 2");
	IS(EVENT(UPDATED_OWN, AT(0)), ">co STATUS@2 0 member begun table updated [0+2] sum 1 parm 1 slot fffffffffffffffd");
	IS(EVENT(UPDATED_OWN, AT(0)), "");
	at_work_end(w);

	begin(w, 0, &all);
	EVENT(READY, AT(0));
	bring_all_but(w, "sum");
	IS(FENCE(2), "EPOCH 2");
	IS(EVENT(FOLDED, AT(0)), ">co STATUS@2 0 member begun table [0+2] sum 1 slot ffffffffffffffff");
	at_work_end(w);

	begin(w, 1, &first_alone);
	EVENT(READY, AT(0));
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 0 member begun [2+1]");
	IS(EVENT(FETCHED, .epoch = 1, AT(0)), ">co STATUS@2 0 member begun [2+1] slot 3");
	at_work_end(w);

	begin(w, 1, &first_alone);       /* the answer is said once, with them */
	EVENT(READY, AT(0));
	EVENT(COMPUTED, AT(0));
	CAME(ROOT, 0, 1);
	CAME(ROOT, 2, 1);
	IS(FENCE(2), "EPOCH 2");
	IS(EVENT(FETCHED, .epoch = 1, AT(0)), "");
	IS(EVENT(FOLDED, AT(0), .bucket = 1), ">co STATUS@2 0 member begun [2+1] sum 2 slot 3");
	at_work_end(w);
}

/* Parameters of the own chains go to those who lack them; sums to the rest of the chain, sums of squares to those who have not sealed it. */
static void a_sharded_step_that_is_taken_up_again_hands_on_what_is_here(void **state)
{
	static const struct hd_pass pass[] = { { 0, 0, 0, 1 }, { 1, 0, 1, 1 }, { 2, 0, 2, 1 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 1 }, { 3, 1 } };
	static const struct hd_have sums[] = { { 0, 3 }, { 1, 6 } }, parms[] = { { 0, 2 }, { 1, 0 } };
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 1, &all);
	EVENT(READY, AT(0));
	EVENT(COMPUTED, AT(0));
	CAME(SUM, 0, 0);
	CAME(ROOT, 0, 1);
	CAME(ROOT, 2, 1);
	EVENT(FOLDED, AT(0), .bucket = 1);
	CAME(LEAVES, 0, 0);
	CAME(LEAVES, 2, 0);
	CAME(NORM, 0, 0);
	IS(FENCE(2), "EPOCH 2");
	IS(EVENT(UPDATED_OWN, AT(0)), ">co STATUS@2 0 member begun table updated [2+1] sum 3 parm 3 slot ffffffffffffffff");
	IS(VIEW(2, 3, .step = 0, .npass = 3, .pass = pass, .nrange = 3, .range = range, .nhave = 2, .have = sums, .nparm = 2, .parm = parms,
		.nchain = 1, .chain = &all, .table = 2), "ADOPT 2 of 3; AGAIN 0; PUBLISH 0.0 {2}; TABLE 0 {02}; NORM 0.1 {02}; FINISH 0");
	at_work_end(w);
}

/* Who has sealed the step gives its sums, and all parameters. */
static void who_has_sealed_a_sharded_step_says_what_it_holds_of_it(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 0, &all);
	EVENT(READY, AT(0));
	bring_all_but(w, "nothing");
	EVENT(UPDATED_OWN, AT(0));
	CAME(PARM, 2, 1);
	EVENT(UPDATED, AT(0), .news = &none);
	assert_true(hd_member_has_slots(w->m, 0));
	assert_false(hd_member_has_slots(w->m, 1));
	uint32_t worker[HD_MAX_MEMBERS];
	assert_int_equal(hd_member_holders(w->m, 1, worker), 2);
	assert_int_equal(worker[0], 1);
	assert_int_equal(worker[1], 2);
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 1 member prev sum 1 parm 3 slot fffffffffffffffd");
	at_work_end(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_go_along_the_chain_and_the_last_gives_the_parameters),
		cmocka_unit_test(slots_are_brought_on_when_all_is_here),
		cmocka_unit_test(nothing_of_the_norms_goes_out_before_the_boundary_is_done),
		cmocka_unit_test(who_lacks_slots_gets_them_in_the_first_step_and_tells_all),
		cmocka_unit_test(who_has_them_waits_for_those_who_get_them),
		cmocka_unit_test(a_fence_is_answered_when_slots_stand_still),
		cmocka_unit_test(a_sharded_step_that_is_taken_up_again_hands_on_what_is_here),
		cmocka_unit_test(who_has_sealed_a_sharded_step_says_what_it_holds_of_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
