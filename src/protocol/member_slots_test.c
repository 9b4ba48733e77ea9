#include "protocol/testing_member.h"

/* Rule 7 of member.h. Three members, two buckets, two copies: 0 and 1 bring the slots of bucket 0 on, 1 and 2
 * those of bucket 1; 0 and 1 add the roots of them. So 1 gives the parameters of bucket 0 to 2, and 2
 * those of bucket 1 to 0. Of the four virtual nodes 0 has two. */

static const struct hd_member_config sharded = { .nvns = 4, .nbuckets = 2, .copies = 2, .nsteps = 9,
	.detect_ns = AT_WORK_T, .ndevices = 1, .nonce = 7 };
static const struct hd_have all = { 0, 7 }, four = { 0, 15 }, first_alone = { 0, 1 }, no_holder = { 0, 0 };
static const struct hd_step_news none;

#define AT(step_) .step = (step_)
#define CAME(id, from, b) EVENT(id, .epoch = 1, .worker = (from), .bucket = (b), AT(0))
#define CAME_AT(step_, id, from, b) EVENT(id, .epoch = 1, .worker = (from), .bucket = (b), AT(step_))

/* Member `id` of three in step 0 of epoch 1; `has`: the holders of slots. */
static void begin(struct at_work *w, uint32_t id, const struct hd_have *has)
{
	at_work_synced(w, &sharded, id);
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
	IS(EVENT(FOLDED, AT(0)), "PUBLISH 0.0 {1}");
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
		">1 SEAL@1 0 ran knows 1; >2 SEAL@1 0 ran knows 1; >co SEAL@1 0 ran knows 1; BOUNDARY 1 "
		"writer");
	at_work_end(w);

	begin(w, 1, &all);
	EVENT(READY, AT(0));
	IS(EVENT(COMPUTED, AT(0)), "ROOTS 0.0.0 >0; LEAVES 0.0");
	IS(EVENT(SQUARED, AT(0)), "");            /* of a sum that is not here */
	IS(CAME(SUM, 0, 0), "");
	IS(EVENT(SQUARED, AT(1)), "");
	IS(EVENT(SQUARED, AT(0)), "NORM 0.0 {2}");
	IS(EVENT(SQUARED, AT(0)), "");
	CAME(ROOT, 0, 1);
	IS(CAME(ROOT, 2, 1), "FOLD 0.1");
	IS(EVENT(FOLDED, AT(0), .bucket = 1), "PUBLISH 0.1 {2}");
	CAME(LEAVES, 0, 0);
	IS(CAME(LEAVES, 2, 0), "UPDATE 0");
	IS(EVENT(UPDATED_OWN, AT(0)), "PARM 0.0 {2}; FINISH 0");
	at_work_end(w);

	begin(w, 2, &all);
	EVENT(READY, AT(0));
	EVENT(COMPUTED, AT(0));
	CAME(LEAVES, 0, 0);
	CAME(LEAVES, 1, 0);
	IS(CAME(SUM, 1, 1), "");
	IS(EVENT(SQUARED, AT(0), .bucket = 1), "NORM 0.1 {0}");
	IS(CAME(NORM, 1, 0), "UPDATE 0");
	IS(EVENT(UPDATED_OWN, AT(0)), "PARM 0.1 {0}");
	IS(CAME(PARM, 1, 0), "FINISH 0");
	at_work_end(w);
}

/* In the second step of a view: once, before UPDATE, which sends the others. In the first it waits. */
static void new_parameters_may_go_before_the_update(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	for (uint64_t step = 0; step < 2; step++) {
		if (!step)
			begin(w, 1, &all);
		EVENT(READY, AT(step));
		EVENT(COMPUTED, AT(step));
		CAME_AT(step, ROOT, 0, 1);
		CAME_AT(step, ROOT, 2, 1);
		EVENT(FOLDED, AT(step), .bucket = 1);
		CAME_AT(step, LEAVES, 0, 0);
		/* before the sum is here none is taken; before the table is, they are */
		assert_false(hd_member_may_early(w->m, 0));
		IS(EVENT(EARLY, AT(step), .bucket = 0), "");
		CAME_AT(step, SUM, 0, 0);
		assert_true(hd_member_may_early(w->m, 0) == (step > 0));
		assert_false(hd_member_may_early(w->m, 2) || hd_member_may_early(w->m, 1000));
		IS(EVENT(EARLY, AT(step), .bucket = 0), step ? "PARM 1.0 {2}" : "");
		IS(EVENT(EARLY, AT(step), .bucket = 0), "");
		CAME_AT(step, LEAVES, 2, 0);
		EVENT(SQUARED, AT(step));
		IS(EVENT(UPDATED_OWN, AT(step)), step ? "FINISH 1" : "PARM 0.0 {2}; FINISH 0");
		EVENT(UPDATED, AT(step), .news = &none);
		for (uint32_t i = 0; i < 3; i += 2)
			PEER_SAYS(i, SEAL, .epoch = 1, .seal = { .step = step, .ran = true, .knows = 1 });
	}
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
	IS(EVENT(FOLDED, AT(0)), "PUBLISH 0.0 {1}; UPDATE 0");
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

/* Rule 4 for what all need before slots are brought on: a checkpoint writer that still saves them has sent no
 * sum, and whoever has a boundary to do no sums of squares. */
static void no_sum_and_no_norm_goes_out_before_the_boundary_is_done(void **state)
{
	static const struct hd_pass pass[] = { { 0, 0, 0, 1, 0 }, { 1, 0, 1, 1, 0 }, { 2, 0, 2, 1, 0 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 1 }, { 3, 1 } };
	static const struct hd_have chain[] = { { 0, 3 }, { 1, 6 } };
	struct at_work at, *w = &at;

	(void)state;
	for (int halts = 0; halts < 2; halts++) {
		at_work_synced(w, &sharded, 0);
		FENCE(1);
		IS(VIEW(1, 3, .step = 0, .npass = 3, .pass = pass, .nrange = 3, .range = range, .nhave = 1,
			.have = &no_holder, .nchain = 2, .chain = chain),
			"ADOPT 1 of 3; BEGIN 0; COMPUTE 0.0 [0+2]; BOUNDARY 0 writer");
		EVENT(COMPUTED, AT(0));
		CAME(ROOT, 1, 0);
		CAME(ROOT, 2, 0);
		IS(EVENT(FOLDED, AT(0)), "");
		CAME(NORM, 1, 1);
		EVENT(TABLE, .epoch = 1, .worker = 1, AT(0));
		IS(EVENT(TICK), ">co PROGRESS@1 0 0 0");
		IS(EVENT(READY, AT(0), .halt = halts), halts ?
			">1 HALT@1 0; >2 HALT@1 0; >co HALT@1 0; CANCEL 0; BOUNDARY 0 writer final" :
			"PUBLISH 0.0 {1}; LEAVES 0.0; UPDATE 0");
		at_work_end(w);
	}
	at_work_synced(w, &sharded, 1);
	FENCE(1);
	IS(VIEW(1, 3, .step = 0, .npass = 3, .pass = pass, .nrange = 3, .range = range, .nhave = 1,
		.have = &no_holder, .nchain = 2, .chain = chain),
		"ADOPT 1 of 3; BEGIN 0; COMPUTE 0.0 [2+1]; BOUNDARY 0");
	CAME(SUM, 0, 0);
	IS(EVENT(SQUARED, AT(0)), "");
	IS(EVENT(READY, AT(0)), "NORM 0.0 {2}");
	IS(EVENT(TICK), ">co PROGRESS@1 0 0 0");
	at_work_end(w);
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
	/* it is ahead, in an epoch that is yet to come here */
	PEER_SAYS(2, SLOTTED, .epoch = 2, .halt = { 4 });
	PEER_SAYS(2, SLOTTED, .epoch = 1, .halt = { 0 });
	assert_int_equal(w->m->peer[1].slotted_epoch, 2);
	assert_int_equal(w->m->peer[1].slotted, 5);
	at_work_end(w);
}

/* They came after the status that the view was made of. */
static void what_is_here_by_now_is_not_fetched_again(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &sharded, 1);
	FENCE(1);
	VIEW(1, 3, .step = 0, .nchain = 1, .chain = &first_alone);
	IS(EVENT(READY, AT(0)), "BEGIN 0; >0 SLOTTED@1 0; >2 SLOTTED@1 0; COMPUTE 0.0 [2+1]");
	IS(EVENT(FETCHED, .epoch = 1, AT(0)), "");
	at_work_end(w);
}

/* What FINISH changes is not said before it is done. */
static void a_fence_waits_for_the_end_of_a_step_of_parts(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 0, &all);
	EVENT(READY, AT(0));
	bring_all_but(w, "nothing");
	EVENT(UPDATED_OWN, AT(0));
	IS(CAME(PARM, 2, 1), "FINISH 0");
	IS(FENCE(2), "EPOCH 2");
	IS(EVENT(UPDATED, AT(0), .news = &none),
		">1 SEAL@2 0 ran knows 1; >2 SEAL@2 0 ran knows 1; >co SEAL@2 0 ran knows 1; "
		">co STATUS@2 1 member prev sum 1 parm 3 slot fffffffffffffffd; BOUNDARY 1 writer");
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
	IS(EVENT(UPDATED_OWN, AT(0)),
		">co STATUS@2 0 member begun table updated [0+2] sum 1 parm 1 slot fffffffffffffffd");
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

/* Parameters of the own chains go to members that lack them; sums to the rest of the chain, sums of
 * squares to those that have not sealed it. */
static void a_sharded_step_that_is_taken_up_again_hands_on_what_is_here(void **state)
{
	static const struct hd_pass pass[] = { { 0, 0, 0, 1, 0 }, { 1, 0, 1, 1, 0 }, { 2, 0, 2, 1, 0 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 1 }, { 3, 1 } };
	static const struct hd_have sums[] = { { 0, 3 }, { 1, 6 } }, parms[] = { { 0, 2 }, { 1, 0 } };
	static const struct hd_have chain[] = { { 0, 3 }, { 1, 6 } };
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
	IS(EVENT(UPDATED_OWN, AT(0)),
		">co STATUS@2 0 member begun table updated [2+1] sum 3 parm 3 slot ffffffffffffffff");
	IS(VIEW(2, 3, .step = 0, .npass = 3, .pass = pass, .nrange = 3, .range = range, .nhave = 2,
		.have = sums, .nparm = 2, .parm = parms,
		.nchain = 2, .chain = chain, .table = 2),
		"ADOPT 2 of 3; AGAIN 0; PARM 0.0 {2}; TABLE 0 {02}; NORM 0.0 {2}; FINISH 0");
	at_work_end(w);
}

/* A member that sealed the step sends its sums, and all parameters. */
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

/* ---- guards of rule 7, one after the other ---- */

static const struct hd_pass own_pass[] = { { 0, 0, 0, 1, 0 }, { 1, 0, 1, 1, 0 }, { 2, 0, 2, 1, 0 } };
static const struct hd_vrange own_range[] = { { 0, 2 }, { 2, 1 }, { 3, 1 } };
#define OPEN .step = 0, .npass = 3, .pass = own_pass, .nrange = 3, .range = own_range

/* A lone member sends nothing. */
static void one_alone_brings_all_slots_on(void **state)
{
	struct hd_member_config config = sharded;
	struct at_work at, *w = &at;

	(void)state;
	config.copies = 1;
	at_work_synced(w, &config, 0);
	FENCE(1);
	VIEW(1, 1, .step = 0, .nchain = 1, .chain = &first_alone);
	IS(EVENT(READY, AT(0)), "BEGIN 0; COMPUTE 0.0 [0+4]");
	IS(EVENT(UPDATED_OWN, AT(0)), "");
	IS(EVENT(COMPUTED, AT(0)), "FOLD 0.0; FOLD 0.1");
	IS(EVENT(FOLDED, AT(0), .bucket = 0), "");
	IS(EVENT(FOLDED, AT(0), .bucket = 1), "UPDATE 0");
	IS(EVENT(UPDATED_OWN, AT(0)), "FINISH 0");
	IS(EVENT(UPDATED, AT(0), .news = &none), ">co SEAL@1 0 ran knows 1; BOUNDARY 1 writer");
	at_work_end(w);
}

/* Whoever stands in the middle of a chain hands the sum on, once. */
static void a_sum_is_handed_on_along_the_chain(void **state)
{
	struct hd_member_config config = sharded;
	struct at_work at, *w = &at;

	(void)state;
	config.copies = 3;
	at_work_synced(w, &config, 1);
	EVENT(UP, .worker = 3);
	FENCE(1);
	VIEW(1, 4, .step = 0, .nchain = 1, .chain = &four);
	EVENT(READY, AT(0));
	IS(CAME(SUM, 0, 0), "PUBLISH 0.0 {2}");
	IS(EVENT(SQUARED, AT(0)), "");            /* the last of the line says so */
	IS(CAME(SUM, 0, 0), "");
	at_work_end(w);
}

/* New parameters are sent by the last of the chain, when they are here, and once. */
static void parameters_are_told_when_they_are_here(void **state)
{
	static const struct hd_have sums[] = { { 0, 3 }, { 1, 2 } }, chain[] = { { 0, 3 }, { 1, 6 } },
		parms[] = { { 0, 0 }, { 1, 2 } };
	static const struct hd_have none_made[] = { { 0, 0 }, { 1, 0 } };
	struct at_work at, *w = &at;

	(void)state;
	for (int updated = 0; updated < 2; updated++) {
		begin(w, 1, &all);
		EVENT(READY, AT(0));
		EVENT(COMPUTED, AT(0));
		CAME(SUM, 0, 0);
		CAME(ROOT, 0, 1);
		CAME(ROOT, 2, 1);
		EVENT(FOLDED, AT(0), .bucket = 1);
		if (updated) {
			CAME(NORM, 0, 0);
			CAME(LEAVES, 0, 0);
			IS(CAME(LEAVES, 2, 0), "UPDATE 0");
		}
		FENCE(2);
		if (updated)
			EVENT(UPDATED_OWN, AT(0));
		IS(VIEW(2, 3, OPEN, .nhave = 2, .have = sums, .nparm = 2, .parm = updated ? parms : none_made,
			.nchain = 2, .chain = chain,
			.table = updated ? 2 : 0), updated ?
			"ADOPT 2 of 3; AGAIN 0; PARM 0.0 {2}; PUBLISH 0.1 {2}; PARM 0.1 {0}; TABLE 0 {02}; "
			"NORM 0.0 {2}; FINISH 0" :
			"ADOPT 2 of 3; AGAIN 0; PUBLISH 0.1 {2}; LEAVES 0.0");
		at_work_end(w);
	}
	begin(w, 2, &all);
	EVENT(READY, AT(0));
	EVENT(COMPUTED, AT(0));
	CAME(LEAVES, 0, 0);
	CAME(LEAVES, 1, 0);
	CAME(NORM, 0, 0);
	CAME(NORM, 1, 1);
	IS(CAME(SUM, 1, 1), "UPDATE 0");
	IS(EVENT(UPDATED_OWN, AT(0)), "NORM 0.1 {0}; PARM 0.1 {0}");
	IS(EVENT(UPDATED_OWN, AT(0)), "");
	at_work_end(w);
}

/* Member 0 has sealed step 0. */
static void seal_it(struct at_work *w)
{
	begin(w, 0, &all);
	EVENT(READY, AT(0));
	bring_all_but(w, "nothing");
	EVENT(UPDATED_OWN, AT(0));
	IS(CAME(PARM, 2, 1), "FINISH 0");
	EVENT(UPDATED, AT(0), .news = &none);
}

/* A member that sealed the step has contributed to it: rule 4 holds back nothing of it. Its roots are
 * over, and nothing is updated twice. */
static void who_has_sealed_the_step_gives_its_sums_of_squares(void **state)
{
	static const uint64_t ahead[] = { 1, 0, 0 };
	static const struct hd_have sums[] = { { 0, 1 }, { 1, 0 } }, mine = { 0, 1 },
		chain[] = { { 0, 1 }, { 1, 2 } };
	struct at_work at, *w = &at;

	(void)state;
	for (int ready = 0; ready < 2; ready++) {
		seal_it(w);
		if (ready)
			IS(EVENT(READY, AT(1)), "");
		IS(FENCE(2), "EPOCH 2; >co STATUS@2 1 member prev sum 1 parm 3 slot fffffffffffffffd");
		IS(VIEW(2, 3, OPEN, .nhave = 2, .have = sums, .nparm = 1, .parm = &mine, .nchain = 2,
			.chain = chain, .table = 1, .nat = 3, .at = ahead),
			"ADOPT 2 of 3; AGAIN 0; PARM 0.0 {12}; PARM 0.1 {2}; TABLE 0 {12}; >1 SEAL@2 0 ran "
			"knows 2; >2 SEAL@2 0 ran knows 2; "
			">co SEAL@2 0 ran knows 2; NORM 0.0 {12}");
		IS(EVENT(TICK), ">co PROGRESS@2 1 0 0");
		at_work_end(w);
	}
}

/* Two members that own two buckets each; the first holds all slots, so the sums of its buckets go nowhere. */
static void sums_of_squares_go_out_once_each(void **state)
{
	static const struct hd_pass pass[] = { { 0, 0, 0, 1, 0 }, { 1, 0, 1, 1, 0 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 2 } };
	struct hd_member_config config = sharded;
	struct at_work at, *w = &at;

	(void)state;
	config.nbuckets = 4;
	for (int afresh = 0; afresh < 2; afresh++) {
		at_work_synced(w, &config, 0);
		FENCE(1);
		VIEW(1, 2, .step = 0, .npass = 2, .pass = pass, .nrange = 2, .range = range, .nhave = 1,
			.have = &no_holder, .nchain = 1, .chain = &first_alone);
		IS(EVENT(COMPUTED, AT(0)), "ROOTS 0.0.2 >1; ROOTS 0.0.3 >1");
		IS(CAME(ROOT, 1, 0), "FOLD 0.0");
		IS(CAME(ROOT, 1, 1), "FOLD 0.1");
		IS(EVENT(FOLDED, AT(0), .bucket = 0), "");
		if (afresh) {
			IS(EVENT(FOLDED, AT(0), .bucket = 1), "");
			FENCE(2);
			IS(VIEW(2, 2, .step = 0, .afresh = true, .hold = true, .nchain = 1, .chain = &all),
				"ADOPT 2 of 2; CANCEL 0");
			IS(EVENT(READY, AT(0)), "");
		} else {
			IS(EVENT(READY, AT(0)), "NORM 0.0 {1}; LEAVES 0.0");
			IS(EVENT(FOLDED, AT(0), .bucket = 1), "NORM 0.1 {1}");
			IS(EVENT(TICK), ">co PROGRESS@1 0 0 0");
		}
		at_work_end(w);
	}
}

/* Whoever gets slots brings nothing on before it has them, though all others have said so. */
static void who_gets_slots_waits_for_its_own(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 1, &first_alone);
	EVENT(READY, AT(0));
	EVENT(COMPUTED, AT(0));
	CAME(SUM, 0, 0);
	CAME(ROOT, 0, 1);
	CAME(ROOT, 2, 1);
	EVENT(FOLDED, AT(0), .bucket = 1);
	CAME(LEAVES, 0, 0);
	CAME(LEAVES, 2, 0);
	CAME(NORM, 0, 0);
	IS(PEER_SAYS(2, STOP, .epoch = 9), "");                 /* not its to say */
	IS(PEER_SAYS(2, SLOTTED, .epoch = 1, .halt = { 0 }), "");
	IS(EVENT(FETCHED, .epoch = 1, AT(0)), ">0 SLOTTED@1 0; >2 SLOTTED@1 0; UPDATE 0");
	at_work_end(w);
}

/* A step that is done is not brought on again while its gate is awaited. */
static void slots_are_brought_on_once(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	seal_it(w);
	IS(EVENT(READY, AT(1)), "");
	IS(EVENT(TICK), ">co PROGRESS@1 1 0 0");
	at_work_end(w);
}

/* Member 0 holds no slots and is the source of nothing: rule 4 still holds it, and so does what UPDATE has
 * to do. */
static void who_brings_no_slots_on_waits_as_others_do(void **state)
{
	static const struct hd_have sums[] = { { 0, 2 }, { 1, 4 } }, chain[] = { { 0, 6 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &sharded, 0);
	FENCE(1);
	IS(VIEW(1, 3, OPEN, .nhave = 2, .have = sums, .nparm = 1, .parm = &no_holder, .nchain = 1,
		.chain = chain),
		"ADOPT 1 of 3; BEGIN 0; COMPUTE 0.0 [0+2]; BOUNDARY 0 writer");
	EVENT(COMPUTED, AT(0));
	CAME(TABLE, 1, 0);
	CAME(PARM, 1, 0);
	CAME(PARM, 2, 1);
	CAME(NORM, 1, 0);
	IS(CAME(NORM, 2, 1), "");
	IS(EVENT(READY, AT(0)), "LEAVES 0.0; UPDATE 0");
	IS(EVENT(UPDATED_OWN, AT(0)), "FINISH 0");
	at_work_end(w);
}

/* Slots that were brought on are not those of the step, also when it failed; while others wait for a view
 * that halts, nothing is taken back. */
static void slots_that_were_brought_on_are_not_the_state(void **state)
{
	static const struct hd_have sums[] = { { 0, 3 }, { 1, 6 } }, parms[] = { { 0, 3 }, { 1, 0 } };
	static const uint32_t members[] = { 0, 1, 2 };
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 0, &all);
	EVENT(READY, AT(0));
	bring_all_but(w, "nothing");
	EVENT(UPDATED_OWN, AT(0));
	FENCE(2);
	IS(hear_view(w, 2, members, 3, (struct hd_msg_view){ OPEN, .halt = 0, .nhave = 2, .have = sums,
		.nparm = 2, .parm = parms, .nchain = 1,
		.chain = &all, .table = 1 }), "ADOPT 2 of 3; AGAIN 0; TABLE 0 {12}");
	IS(EVENT(FAILED, .code = 4, .text = "nan"), ">co DONE@2 0 code 4 nan; CANCEL 0");
	assert_false(hd_member_has_slots(w->m, 0) || hd_member_whole(w->m));
	at_work_end(w);
}

/* Slots go with the remaining members: of a chain of 0 and 1, which leaves with 0, 1 has them all. */
static void a_planned_change_carries_slots_over(void **state)
{
	static const uint32_t two[] = { 0, 1 }, next[] = { 1, 2 };
	static const struct hd_vrank rank[] = { { 1, 2 }, { 2, 2 } };
	struct at_work at, *w = &at;
	uint32_t worker[HD_MAX_MEMBERS];

	(void)state;
	for (int newcomer = 0; newcomer < 2; newcomer++) {
		at_work_synced(w, &sharded, newcomer ? 2 : 1);
		if (!newcomer) {
			FENCE(1);
			VIEW(1, 2, .step = 0, .nchain = 1, .chain = &all);
			EVENT(READY, AT(0));
		}
		HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 2,
			.member = next, .nrank = 2, .rank = rank });
		EVENT(PREPARED, .epoch = 2);
		if (newcomer) {
			PEER_SAYS(0, SEAL, .epoch = 1, .seal = { .step = 5, .ran = true, .knows = 2 });
			PEER_SAYS(1, SEAL, .epoch = 1, .seal = { .step = 5, .ran = true, .knows = 2 });
			IS(EVENT(SYNCED, AT(6)),
				">0 SEAL@2 5 knows 2; >1 SEAL@2 5 knows 2; >co SEAL@2 5 knows 2; BOUNDARY 6");
			memset(w->m->mine, 0, w->m->own.words * sizeof *w->m->mine);
			assert_int_equal(hd_member_holders(w->m, 0, worker), 1);
			IS(EVENT(READY, AT(6)),
				"EPOCH 2; ADOPT 2 of 2; BEGIN 6; FETCH 6; COMPUTE 6.0 [2+2]");
		} else {
			w->m->at = w->m->switch_step = 6;
			w->m->begun = false;
			hd_seals_of(&w->m->seals, 1, two, NULL, 6, 2);
			hd_seals_expect(&w->m->seals, 2, next, 2);
			IS(PEER_SAYS(2, SEAL, .epoch = 2, .seal = { .step = 5 }),
				"EPOCH 2; ADOPT 2 of 2; BEGIN 6; COMPUTE 6.0 [0+2]");
		}
		for (uint32_t b = 0; b < 2; b++) {
			assert_int_equal(hd_member_holders(w->m, b, worker), 1);
			assert_int_equal(worker[0], 1);
		}
		at_work_end(w);
	}
}

static const struct hd_msg_status *status_of(const struct at_work *w)
{
	for (size_t i = 0; i < w->done.n; i++)
		if (w->done.at[i].kind == HD_DO_SEND && w->done.at[i].msg->kind == HD_MSG_STATUS)
			return &w->done.at[i].msg->status;
	return NULL;
}

/* What a status has of sums, parameters and slots: words, whatever is in them. */
static void a_status_says_what_there_is_and_no_more(void **state)
{
	static const struct { bool shards, member, begun, prev; uint32_t sum, parm, slot; } row[] = {
		{ false, false, false, false, 0, 0, 0 }, { false, true, true, false, 1, 0, 0 }, { false, true, false, true, 0, 0, 0 },
		{ true, false, false, false, 0, 0, 1 }, { true, true, true, false, 1, 1, 1 }, { true, true, false, true, 1, 1, 1 },
		{ true, true, false, false, 0, 0, 1 },
	};
	struct at_work at, *w = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		at_work_synced(w, row[i].shards ? &sharded : &at_work_config, 0);
		FENCE(1);
		if (row[i].member) {
			VIEW(1, 3, .step = 0, .nchain = row[i].shards, .chain = &all);
			if (row[i].begun || row[i].prev)
				EVENT(READY, AT(0));
		}
		if (row[i].prev) {
			bring_all_but(w, "nothing");
			CAME(SUM, 1, 1);
			EVENT(UPDATED_OWN, AT(0));
			CAME(PARM, 2, 1);
			EVENT(UPDATED, AT(0), .news = &none);
		}
		FENCE(2);
		const struct hd_msg_status *s = status_of(w);
		CHECK(s && s->member == row[i].member && s->begun == row[i].begun && s->prev == row[i].prev,
			"row %zu: %s", i, w->text);
		CHECK(s->npass == row[i].begun && s->nrange == row[i].begun, "row %zu: %u %u", i, s->npass,
			s->nrange);
		CHECK(s->nsum == row[i].sum && s->nparm == row[i].parm && s->nslot == row[i].slot,
			"row %zu: %u %u %u", i, s->nsum, s->nparm, s->nslot);
		at_work_end(w);
	}
}

/* Whoever has sealed the step needs no sums of squares of it. */
static void sums_of_squares_go_to_those_who_have_not_sealed(void **state)
{
	static const uint64_t ahead[] = { 1, 0, 0 };
	static const struct hd_have sums[] = { { 0, 3 }, { 1, 2 } }, mine = { 0, 1 };
	static const struct hd_have chain[] = { { 0, 3 }, { 1, 2 } };
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 1, &all);
	EVENT(READY, AT(0));
	EVENT(COMPUTED, AT(0));
	CAME(SUM, 0, 0);
	EVENT(SQUARED, AT(0));
	CAME(ROOT, 0, 1);
	CAME(ROOT, 2, 1);
	EVENT(FOLDED, AT(0), .bucket = 1);
	FENCE(2);
	IS(VIEW(2, 3, OPEN, .nhave = 2, .have = sums, .nparm = 1, .parm = &mine, .nchain = 2,
		.chain = chain, .table = 1, .nat = 3, .at = ahead),
		"ADOPT 2 of 3; AGAIN 0; NORM 0.0 {2}; NORM 0.1 {2}");
	at_work_end(w);
}

/* What was said of slots is of the step and the view that were then. */
static void who_gets_slots_says_of_which_step(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &sharded, 1);
	EVENT(SYNCED, AT(4));
	memset(w->m->mine, 0, w->m->own.words * sizeof *w->m->mine);
	FENCE(1);
	VIEW(1, 3, .step = 4, .nchain = 1, .chain = &first_alone);
	w->m->fetched = w->m->norms_due = true;
	IS(EVENT(READY, AT(4)), "BEGIN 4; FETCH 4; COMPUTE 4.0 [2+1]");
	assert_false(w->m->fetched || w->m->norms_due);
	IS(EVENT(FETCHED, .epoch = 1, AT(4)), ">0 SLOTTED@1 4; >2 SLOTTED@1 4");
	at_work_end(w);
}

/* A fence waits for slots that are being brought on; if that fails, it is answered. */
static void a_failure_ends_the_wait_for_slots(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, 0, &all);
	EVENT(READY, AT(0));
	bring_all_but(w, "nothing");
	IS(FENCE(2), "EPOCH 2");
	IS(EVENT(FAILED, .code = 4, .text = "nan"),
		">co DONE@2 0 code 4 nan; >co STATUS@2 0 member begun halted table [0+2] sum 1 slot "
		"fffffffffffffffd");
	at_work_end(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_go_along_the_chain_and_the_last_gives_the_parameters),
		cmocka_unit_test(new_parameters_may_go_before_the_update),
		cmocka_unit_test(slots_are_brought_on_when_all_is_here),
		cmocka_unit_test(no_sum_and_no_norm_goes_out_before_the_boundary_is_done),
		cmocka_unit_test(who_lacks_slots_gets_them_in_the_first_step_and_tells_all),
		cmocka_unit_test(who_has_them_waits_for_those_who_get_them),
		cmocka_unit_test(what_is_here_by_now_is_not_fetched_again),
		cmocka_unit_test(a_fence_waits_for_the_end_of_a_step_of_parts),
		cmocka_unit_test(a_fence_is_answered_when_slots_stand_still),
		cmocka_unit_test(a_sharded_step_that_is_taken_up_again_hands_on_what_is_here),
		cmocka_unit_test(who_has_sealed_a_sharded_step_says_what_it_holds_of_it),
		cmocka_unit_test(one_alone_brings_all_slots_on),
		cmocka_unit_test(a_sum_is_handed_on_along_the_chain),
		cmocka_unit_test(parameters_are_told_when_they_are_here),
		cmocka_unit_test(who_has_sealed_the_step_gives_its_sums_of_squares),
		cmocka_unit_test(sums_of_squares_go_out_once_each),
		cmocka_unit_test(who_gets_slots_waits_for_its_own),
		cmocka_unit_test(slots_are_brought_on_once),
		cmocka_unit_test(who_brings_no_slots_on_waits_as_others_do),
		cmocka_unit_test(slots_that_were_brought_on_are_not_the_state),
		cmocka_unit_test(a_planned_change_carries_slots_over),
		cmocka_unit_test(a_status_says_what_there_is_and_no_more),
		cmocka_unit_test(sums_of_squares_go_to_those_who_have_not_sealed),
		cmocka_unit_test(who_gets_slots_says_of_which_step),
		cmocka_unit_test(a_failure_ends_the_wait_for_slots),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
