#include "protocol/testing_member.h"

/* Views: planned changes (rule 2), fences (rules 3 and 8), and what is not for this worker. Members are 0
 * and 1; 2 is to come. */

static const struct hd_step_news none;
static const uint32_t two[] = { 0, 1 }, three[] = { 0, 1, 2 };
static const struct hd_vrank ranks[] = { { 0, 2 }, { 1, 1 }, { 2, 1 } };

#define AT(step_) .step = (step_)
#define SEAL_OF(from, e, s, k, ...) PEER_SAYS(from, SEAL, .epoch = (e), .seal = { .step = (s), .ran = true, \
	.knows = (k), __VA_ARGS__ })
#define PREPARE(in, n) HEAR(PREPARE, .epoch = (in), .prepare = { .next = (n), .nold = 2, .old = two, \
	.nmember = 3, .member = three, .nrank = 3, .rank = ranks })
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

/* A member without DECIDE finds out from all seals that know. */
static void that_it_is_decided_may_be_known_from_seals_alone(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	IS(PREPARE(1, 2), "EPOCH 1; PREPARE 2 of 3");
	IS(SEAL_OF(0, 1, 4, 2), "");
	IS(SEAL_OF(1, 1, 4, 1), "");
	IS(SEAL_OF(1, 1, 5, 2), "DECIDED 2");
	assert_int_equal(w->m->switch_step, 7);
	IS(EVENT(SYNCED, AT(6)), "");
	IS(EVENT(SYNCED, AT(7)),
		">0 SEAL@2 6 knows 2; >1 SEAL@2 6 knows 2; >co SEAL@2 6 knows 2; BOUNDARY 7");
	IS(SEAL_OF(0, 1, 6, 2), "");
	IS(SEAL_OF(1, 1, 6, 2), "");
	IS(EVENT(READY, AT(7)), "EPOCH 2; ADOPT 2 of 3; BEGIN 7; COMPUTE 7.0 [3+1]");
	assert_int_equal(hd_member_state(w->m), HD_MEMBER);
	at_work_end(w);
}

/* Prepared: all links are up, also to those that are to come. */
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
	EVENT(WARMED_UP);
	HEAR(SYNC, .sync = { 0, 4 });
	IS(PREPARE(1, 2), "");                  /* has synced nothing yet */
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	IS(HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 0, .old = two, .nmember = 3,
		.member = three, .nrank = 3,
		.rank = ranks }),
		"");
	IS(HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 3,
		.member = three, .nrank = 2,
		.rank = ranks }),
		"");
	IS(EVENT(PREPARED, .epoch = 2), "");
	IS(PREPARE(1, 3), "PREPARE 3 of 3");
	IS(EVENT(PREPARED, .epoch = 3), ">co PREPARED@1 3");
	/* of before: the answer is that to the newest */
	IS(PREPARE(1, 2), ">co PREPARED@1 3");
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

/* A member without a part in the next view leaves when its steps are done and all new members have them. */
static void who_is_not_of_the_next_view_leaves_at_the_switch(void **state)
{
	struct at_work at, *w = &at;
	static const uint32_t rest[] = { 0, 2 };
	static const struct hd_vrank rank[] = { { 0, 2 }, { 2, 2 } };

	(void)state;
	for (int entered = 0; entered < 2; entered++) {
		at_work_member(w, &at_work_config, 1, 2);
		HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 2,
			.member = rest, .nrank = 2, .rank = rank });
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

/* A joiner keeps what it announced though its source goes, and gives it back when it is to be no member
 * after all. */
static void what_a_newcomer_announced_it_keeps(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	for (int row = 0; row < 4; row++) {
		at_work_synced(w, &at_work_config, 2);
		PREPARE(1, 2);
		EVENT(PREPARED, .epoch = 2);
		SEAL_OF(0, 1, 4, 2);
		SEAL_OF(1, 1, 4, 2);
		IS(EVENT(SYNCED, AT(6)),
			">0 SEAL@2 5 knows 2; >1 SEAL@2 5 knows 2; >co SEAL@2 5 knows 2; BOUNDARY 6");
		IS(EVENT(READY, AT(6)), "");
		switch (row) {
		case 0:                          /* whole: it becomes a member */
			IS(EVENT(SYNC_LOST, .whole = true), "");
			SEAL_OF(0, 1, 5, 2);
			IS(SEAL_OF(1, 1, 5, 2), "EPOCH 2; ADOPT 2 of 3; BEGIN 6; COMPUTE 6.0 [3+1]");
			break;
		case 1:                          /* not whole: what it announced is not there */
			IS(EVENT(SYNC_LOST), ">co READY_TO_SYNC@1 0");
			IS(HEAR(ENTERED, .epoch = 2), "EPOCH 2");
			break;
		case 2:                          /* the members went on without it */
			EVENT(SYNC_LOST, .whole = true);
			IS(HEAR(ENTERED, .epoch = 1), "");
			IS(HEAR(ENTERED, .epoch = 3), "EPOCH 3; >co READY_TO_SYNC@3 0");
			break;
		case 3:                          /* so they did, and it follows on */
			IS(EVENT(SYNCED, AT(7)), "");
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

/* ---- guards of a planned change, one after the other ---- */

/* Prepared is said when the runtime is, of a view that is still open, and of a decided one as well. */
static void prepared_is_said_of_the_view_that_is_open(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	PREPARE(1, 2);
	IS(PREPARE(1, 2), "");                  /* it is at it */
	IS(EVENT(UP, .worker = 2), "");
	EVENT(LOST, .worker = 2, .why = HD_CLOSED);
	IS(EVENT(PREPARED, .epoch = 2), "");
	FENCE(3);
	VIEW(3, 2, .step = 0);
	IS(EVENT(UP, .worker = 2), ">co SUSPECT@3 2 heard");     /* what it prepared for came to nothing */
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	DECIDE(2);
	IS(PREPARE(1, 2), ">co PREPARED@1 2");
	IS(PREPARE(1, 3), "");
	FENCE(3);
	VIEW(3, 2, .step = 0);
	IS(PREPARE(3, 4), "PREPARE 4 of 3");    /* what was decided is void */
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	IS(PREPARE(1, 4), "PREPARE 4 of 3");
	FENCE(2);
	VIEW(2, 2, .step = 0);
	IS(PREPARE(2, 3), "PREPARE 3 of 3");    /* a later number of a view that is void */
	at_work_end(w);
}

/* An invalid one in the place of one that is open makes nothing of both. */
static void a_preparation_that_cannot_be_leaves_none_open(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	IS(HEAR(PREPARE, .epoch = 1, .prepare = { .next = 3, .nold = 2, .old = two, .nmember = 3,
		.member = three, .nrank = 2, .rank = ranks }), "");
	IS(EVENT(PREPARED, .epoch = 3), "");
	DECIDE(3);
	EVENT(COMPUTED, AT(0));
	EVENT(ROOT, .epoch = 1, .worker = 1, AT(0));
	EVENT(FOLDED, AT(0));
	EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(0));
	EVENT(LEAVES, .epoch = 1, .worker = 1, AT(0));
	IS(EVENT(UPDATED, AT(0), .news = &none),
		">1 SEAL@1 0 ran knows 1; >co SEAL@1 0 ran knows 1; BOUNDARY 1 writer");
	at_work_end(w);
}

/* A seal goes also to future members, once to each; what it knows of is decided, and not void. */
static void a_seal_says_what_is_decided(void **state)
{
	static const struct { bool prepared, decided, void_; const char *said; } row[] = {
		{ false, false, false, ">1 SEAL@1 0 ran knows 1; >co SEAL@1 0 ran knows 1; BOUNDARY 1 writer" },
		{ true, false, false, ">1 SEAL@1 0 ran knows 1; >2 SEAL@1 0 ran knows 1; >co SEAL@1 0 ran knows 1; BOUNDARY 1 writer" },
		{ true, true, false, ">1 SEAL@1 0 ran knows 2; >2 SEAL@1 0 ran knows 2; >co SEAL@1 0 ran knows 2; BOUNDARY 1 writer" },
		{ true, true, true, ">1 SEAL@3 0 ran knows 3; >co SEAL@3 0 ran knows 3; BOUNDARY 1 writer" },
	};
	struct at_work at, *w = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		at_work_member(w, &at_work_config, 0, 2);
		if (row[i].prepared)
			PREPARE(1, 2);
		if (row[i].decided) {
			EVENT(PREPARED, .epoch = 2);
			DECIDE(2);
		}
		if (row[i].void_) {
			FENCE(3);
			VIEW(3, 2, .step = 0);
		}
		uint32_t e = w->m->epoch;
		EVENT(COMPUTED, AT(0));
		EVENT(ROOT, .epoch = e, .worker = 1, AT(0));
		EVENT(FOLDED, AT(0));
		EVENT(SUM, .epoch = e, .worker = 1, .bucket = 1, AT(0));
		EVENT(LEAVES, .epoch = e, .worker = 1, AT(0));
		const char *said = EVENT(UPDATED, AT(0), .news = &none);
		IS(said, row[i].said);
		at_work_end(w);
	}
}

/* What a member had counted of the step stays when a change is prepared. */
static void a_preparation_forgets_no_seal(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	SEAL_OF(1, 1, 0, 1);
	IS(PREPARE(1, 2), "PREPARE 2 of 3");
	IS(seal(w, 1, 0), "BEGIN 1; COMPUTE 1.0 [0+2]");
	at_work_end(w);
}

/* The switch waits for all future members, and for leavers to have sealed what is before. */
static void the_switch_waits_for_who_leaves(void **state)
{
	static const uint32_t rest[] = { 0, 2 };
	static const struct hd_vrank rank[] = { { 0, 2 }, { 2, 2 } };
	struct at_work at, *w = &at;

	(void)state;
	for (int released = 0; released < 2; released++) {
		at_work_member(w, &at_work_config, 0, 2);
		HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 2,
			.member = rest, .nrank = 2, .rank = rank });
		EVENT(PREPARED, .epoch = 2);
		DECIDE(2);
		SEAL_OF(1, 1, 0, 2);
		IS(seal(w, 1, 0), "BEGIN 1; COMPUTE 1.0 [0+2]");
		IS(seal(w, 1, 1), "");
		IS(SEAL_OF(2, 2, 1, 2), "");
		if (released)
			IS(HEAR(RELEASE, .release = { .code = 10, .nwhy = 3, .why = "few" }), "EXIT 10 few");
		else
			IS(SEAL_OF(1, 1, 1, 2), "EPOCH 2; ADOPT 2 of 2; BEGIN 2; COMPUTE 2.0 [0+2]");
		at_work_end(w);
	}
	/* released when nothing but its own boundary is missing */
	at_work_member(w, &at_work_config, 0, 2);
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 2, .member = rest,
		.nrank = 2, .rank = rank });
	EVENT(PREPARED, .epoch = 2);
	DECIDE(2);
	SEAL_OF(1, 1, 0, 2);
	seal(w, 1, 0);
	seal(w, 1, 1);
	w->m->ready = false;
	SEAL_OF(2, 2, 1, 2);
	SEAL_OF(1, 1, 1, 2);
	w->m->ready = true;
	IS(HEAR(RELEASE, .release = { .code = 10, .nwhy = 3, .why = "few" }), "EXIT 10 few");
	assert_int_equal(hd_member_state(w->m), HD_GONE);
	at_work_end(w);
}

/* s0 is found of a view that is open, and once. */
static void the_step_of_the_switch_is_found_once(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	SEAL_OF(0, 1, 3, 2);
	IS(SEAL_OF(1, 1, 5, 2), "DECIDED 2");
	IS(SEAL_OF(1, 1, 4, 2), "");
	assert_int_equal(w->m->switch_step, 7);
	at_work_end(w);

	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 0");
	/* as if it had been a member: then it counts seals */
	w->m->has_view = true;
	w->m->view = (struct hd_view){ .epoch = 1, .nmembers = 1, .member = { 2 } };
	w->m->state = HD_MEMBER;
	SEAL_OF(0, 2, 3, 2);
	IS(SEAL_OF(1, 2, 3, 2), "");
	assert_int_equal(w->m->switch_step, HD_NO_STEP);
	at_work_end(w);
}

/* ---- guards of a joiner ---- */

/* What it has synced again as it was changes nothing that it announced; what is later makes it void. */
static void what_is_synced_again_changes_nothing(void **state)
{
	static const struct hd_msg_prepare later = { .next = 4, .nold = 2, .old = two, .nmember = 3,
		.member = three, .nrank = 3, .rank = ranks };
	struct at_work at, *w = &at;

	(void)state;
	for (int again = 0; again < 2; again++) {
		at_work_synced(w, &at_work_config, 2);
		PREPARE(1, 2);
		EVENT(PREPARED, .epoch = 2);
		SEAL_OF(0, 1, 4, 2);
		SEAL_OF(1, 1, 4, 2);
		EVENT(SYNCED, AT(6));
		if (again) {
			IS(EVENT(SYNCED, AT(6)), "");
			EVENT(READY, AT(6));
			SEAL_OF(0, 1, 5, 2);
			IS(SEAL_OF(1, 1, 5, 2), "EPOCH 2; ADOPT 2 of 3; BEGIN 6; COMPUTE 6.0 [3+1]");
			IS(EVENT(SYNCED, AT(9)), "");  /* it is a member */
			assert_int_equal(hd_member_at(w->m), 6);
		} else {
			IS(EVENT(SYNCED, AT(7)), "");
			IS(hear(w, (struct hd_msg){ .kind = HD_MSG_PREPARE, .epoch = 3, .prepare = later }),
				"EPOCH 3; PREPARE 4 of 3");
			EVENT(PREPARED, .epoch = 4);
			SEAL_OF(0, 3, 6, 4);
			SEAL_OF(1, 3, 6, 4);
			IS(EVENT(SYNCED, AT(8)),
				">0 SEAL@4 7 knows 4; >1 SEAL@4 7 knows 4; >co SEAL@4 7 knows 4; BOUNDARY 8");
			SEAL_OF(0, 3, 7, 4);
			IS(SEAL_OF(1, 3, 7, 4), "");
			IS(EVENT(READY, AT(8)), "EPOCH 4; ADOPT 4 of 3; BEGIN 8; COMPUTE 8.0 [3+1]");
		}
		at_work_end(w);
	}
}

/* The source's end: whole or not, announced or not yet. */
static void what_is_cut_was_announced(void **state)
{
	static const struct { uint64_t synced; bool whole; const char *said; } row[] = {
		{ 6, true, "" }, { 6, false, ">co READY_TO_SYNC@1 0" }, { 5, true, ">co READY_TO_SYNC@1 0" },
	};
	struct at_work at, *w = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		at_work_synced(w, &at_work_config, 2);
		PREPARE(1, 2);
		EVENT(PREPARED, .epoch = 2);
		SEAL_OF(0, 1, 4, 2);
		SEAL_OF(1, 1, 4, 2);
		EVENT(SYNCED, .step = row[i].synced);
		const char *said = EVENT(SYNC_LOST, .whole = row[i].whole);
		IS(said, row[i].said);
		if (*said)
			IS(EVENT(SYNC_LOST, .whole = true), ">co READY_TO_SYNC@1 0");
		at_work_end(w);
	}
}

/* Void again, it is no member: it neither begins, nor halts, nor hears of steps. */
static void a_newcomer_whose_view_is_void_does_nothing(void **state)
{
	static const uint32_t four[] = { 0, 1, 2, 3 };
	static const struct hd_vrank rank[] = { { 0, 1 }, { 1, 1 }, { 2, 1 }, { 3, 1 } };
	struct hd_member_config config = at_work_config;
	struct at_work at, *w = &at;

	(void)state;
	for (uint64_t nsteps = 9; nsteps >= 6; nsteps -= 3) {
		config.nsteps = nsteps;
		at_work_synced(w, &config, 2);
		HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 4,
			.member = four, .nrank = 4, .rank = rank });
		EVENT(PREPARED, .epoch = 2);
		SEAL_OF(0, 1, 4, 2);
		SEAL_OF(1, 1, 4, 2);
		IS(EVENT(SYNCED, AT(6)), nsteps == 6 ?
			">0 SEAL@2 5 knows 2; >1 SEAL@2 5 knows 2; >3 SEAL@2 5 knows 2; >co SEAL@2 5 knows "
			"2; BOUNDARY 6 final" :
			">0 SEAL@2 5 knows 2; >1 SEAL@2 5 knows 2; >3 SEAL@2 5 knows 2; >co SEAL@2 5 knows "
			"2; BOUNDARY 6");
		EVENT(READY, AT(6));
		SEAL_OF(0, 1, 5, 2);
		IS(SEAL_OF(1, 1, 5, 2), "");
		IS(HEAR(ENTERED, .epoch = 3), "EPOCH 3");
		IS(EVENT(TICK), "");
		IS(SEAL_OF(0, 1, 6, 2, .sum_digest = 4), "");
		IS(SEAL_OF(1, 1, 6, 2, .sum_digest = 5), "");
		assert_int_equal(w->m->diverged, 0);
		at_work_end(w);
	}
}

/* ENTERED is for a worker that is no member, of an epoch ahead of its own and of what it prepares for;
 * and for one that is to be none. */
static void who_hears_that_others_have_entered(void **state)
{
	static const uint32_t others[] = { 0, 1 };
	static const struct hd_vrank rank[] = { { 0, 2 }, { 1, 2 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	PREPARE(1, 2);
	IS(HEAR(ENTERED, .epoch = 2), "");      /* it is to be a member */
	at_work_end(w);

	at_work_member(w, &at_work_config, 1, 2);
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 2,
		.member = (const uint32_t[]){ 0, 2 }, .nrank = 2,
		.rank = (const struct hd_vrank[]){ { 0, 2 }, { 2, 2 } } });
	FENCE(2);
	VIEW(2, 2, .step = 0);
	IS(HEAR(ENTERED, .epoch = 2), "");      /* it is in it, what it prepared for is void */
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	PEER_SAYS(1, HALT, .epoch = 1, .halt = { 0 });
	assert_int_equal(hd_member_state(w->m), HD_HALTED);
	IS(HEAR(ENTERED, .epoch = 2), "");
	at_work_end(w);

	at_work_synced(w, &at_work_config, 2);
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 4, .nold = 2, .old = two, .nmember = 2,
		.member = others, .nrank = 2, .rank = rank });
	IS(HEAR(ENTERED, .epoch = 3), "");      /* it prepares for a later one */
	HEAR(SYNC, .sync = { 0, 8 });
	IS(HEAR(ENTERED, .epoch = 3), "EPOCH 3");        /* it does not any more */
	at_work_end(w);

	at_work_synced(w, &at_work_config, 2);
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 2,
		.member = others, .nrank = 2, .rank = rank });
	/* it is no member, and is to be none: it goes on syncing */
	IS(HEAR(ENTERED, .epoch = 2), "EPOCH 2");
	assert_int_equal(hd_member_state(w->m), HD_SYNCING);
	at_work_end(w);
}

/* ---- guards of a view ---- */

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

/* ---- what a change leaves behind, and what it does not ---- */

/* Links to leavers count as well: they seal until then. */
static void prepared_is_who_reaches_those_who_leave(void **state)
{
	static const uint32_t rest[] = { 0, 2 };
	static const struct hd_vrank rank[] = { { 0, 2 }, { 2, 2 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	EVENT(LOST, .worker = 1, .why = HD_CLOSED);
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 2, .member = rest,
		.nrank = 2, .rank = rank });
	IS(EVENT(PREPARED, .epoch = 2), "");
	IS(EVENT(UP, .worker = 1), ">co SUSPECT@1 1 heard; >co PREPARED@1 2");
	at_work_end(w);
}

/* A joiner hears seals in any order of their senders; that they know makes the view decided for it. */
static void a_newcomer_hears_seals_in_any_skew(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	SEAL_OF(0, 1, 4, 1);
	SEAL_OF(1, 1, 4, 1);
	SEAL_OF(0, 1, 8, 2);
	assert_true(hd_seals_has(&w->m->seals, 0, 9));
	IS(SEAL_OF(1, 1, 8, 2), "DECIDED 2");
	IS(PREPARE(1, 3), "");                  /* decided is decided */
	at_work_end(w);
}

/* Void and prepared for again, it announces again what it holds. */
static void a_newcomer_announces_to_each_view(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	SEAL_OF(0, 1, 4, 2);
	SEAL_OF(1, 1, 4, 2);
	EVENT(SYNCED, AT(6));
	EVENT(READY, AT(6));
	IS(HEAR(ENTERED, .epoch = 3), "EPOCH 3");
	IS(PREPARE(3, 4), "PREPARE 4 of 3");
	EVENT(PREPARED, .epoch = 4);
	SEAL_OF(0, 3, 4, 4);
	IS(SEAL_OF(1, 3, 4, 4),
		"DECIDED 4; >0 SEAL@4 5 knows 4; >1 SEAL@4 5 knows 4; >co SEAL@4 5 knows 4; BOUNDARY 6");
	at_work_end(w);

	/* the boundary of the view that is void is not awaited under the next */
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	SEAL_OF(0, 1, 4, 2);
	SEAL_OF(1, 1, 4, 2);
	EVENT(SYNCED, AT(6));
	IS(FENCE(3), "EPOCH 3; >co STATUS@3 6");
	assert_int_equal(w->m->switch_step, HD_NO_STEP);
	IS(VIEW(3, 3, .step = 6), "ADOPT 3 of 3; BOUNDARY 6");
	IS(EVENT(READY, AT(6)), "BEGIN 6; COMPUTE 6.0 [3+1]");
	at_work_end(w);

	/* cut, and not in the view that comes */
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	SEAL_OF(0, 1, 4, 2);
	SEAL_OF(1, 1, 4, 2);
	EVENT(SYNCED, AT(6));
	IS(EVENT(SYNC_LOST, .whole = true), "");
	FENCE(3);
	IS(VIEW(3, 2, .step = 6), ">co READY_TO_SYNC@3 0");
	at_work_end(w);

	/* later than what it announced: nothing is announced of it */
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	SEAL_OF(0, 1, 4, 2);
	SEAL_OF(1, 1, 4, 2);
	EVENT(SYNCED, AT(6));
	EVENT(SYNCED, AT(7));
	assert_int_equal(w->m->switch_step, HD_NO_STEP);
	at_work_end(w);
}

/* Under the new view the gate is of its members, and what was prepared is over. */
static void after_the_switch_all_new_members_count(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	SEAL_OF(0, 1, 4, 2);
	SEAL_OF(1, 1, 4, 2);
	EVENT(SYNCED, AT(6));
	EVENT(READY, AT(6));
	SEAL_OF(0, 1, 5, 2);
	IS(SEAL_OF(1, 1, 5, 2), "EPOCH 2; ADOPT 2 of 3; BEGIN 6; COMPUTE 6.0 [3+1]");
	EVENT(LOST, .worker = HD_COORDINATOR, .why = HD_CLOSED);
	IS(EVENT(UP, .worker = HD_COORDINATOR), ">co JOIN@2 2 member at 6");
	EVENT(COMPUTED, AT(6));
	EVENT(SUM, .epoch = 2, .worker = 0, .bucket = 0, AT(6));
	EVENT(SUM, .epoch = 2, .worker = 1, .bucket = 1, AT(6));
	EVENT(LEAVES, .epoch = 2, .worker = 0, AT(6));
	IS(EVENT(LEAVES, .epoch = 2, .worker = 1, AT(6)), "FINISH 6");
	EVENT(UPDATED, AT(6), .news = &none);
	EVENT(READY, AT(7));
	IS(SEAL_OF(0, 1, 6, 2), "");
	IS(SEAL_OF(0, 2, 6, 2), "");
	IS(SEAL_OF(1, 2, 6, 2), "BEGIN 7; COMPUTE 7.0 [3+1]");
	at_work_end(w);
}

/* A member that got its VIEW first seals in the coming epoch: members, and those that were to come. */
static void seals_of_the_epoch_to_come_count(void **state)
{
	static const uint64_t ahead[] = { 1, 0, 0 };
	static const struct hd_have mine = { 0, 1 };
	struct at_work at, *w = &at;

	(void)state;
	for (uint32_t n = 2; n < 4; n++) {
		at_work_member(w, &at_work_config, 0, 2);
		if (n == 3)
			PREPARE(1, 2);
		seal(w, 1, 0);
		FENCE(3);
		IS(SEAL_OF(1, 3, 0, 3), "");
		if (n == 3)
			IS(SEAL_OF(2, 3, 0, 3), "");
		const char *said = VIEW(3, n, .step = 0, .nat = n, .at = ahead, .nhave = 1, .have = &mine,
			.table = 1);
		IS(said,
			n == 2 ?
			"ADOPT 3 of 2; >1 SEAL@3 0 ran knows 3; >co SEAL@3 0 ran knows 3; BEGIN 1; COMPUTE "
			"1.0 [0+2]" :
			"ADOPT 3 of 3; >1 SEAL@3 0 ran knows 3; >2 SEAL@3 0 ran knows 3; >co SEAL@3 0 ran "
			"knows 3; BEGIN 1; COMPUTE 1.0 [0+2]");
		at_work_end(w);
	}
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
		cmocka_unit_test(a_decided_view_is_in_force_two_steps_after_all_know),
		cmocka_unit_test(that_it_is_decided_may_be_known_from_seals_alone),
		cmocka_unit_test(prepared_is_who_is_connected_with_all),
		cmocka_unit_test(a_preparation_that_is_not_for_now_is_not_made),
		cmocka_unit_test(who_is_not_of_the_next_view_leaves_at_the_switch),
		cmocka_unit_test(what_a_newcomer_announced_it_keeps),
		cmocka_unit_test(a_fence_of_an_epoch_that_is_past_changes_nothing),
		cmocka_unit_test(who_has_no_state_answers_and_waits_for_no_view),
		cmocka_unit_test(a_view_without_this_worker_or_at_another_step_fences_it),
		cmocka_unit_test(who_becomes_the_checkpoint_writer_has_its_boundary_again),
		cmocka_unit_test(a_view_says_where_to_hold_to_halt_and_to_begin_afresh),
		cmocka_unit_test(prepared_is_said_of_the_view_that_is_open),
		cmocka_unit_test(a_preparation_that_cannot_be_leaves_none_open),
		cmocka_unit_test(a_seal_says_what_is_decided),
		cmocka_unit_test(a_preparation_forgets_no_seal),
		cmocka_unit_test(the_switch_waits_for_who_leaves),
		cmocka_unit_test(the_step_of_the_switch_is_found_once),
		cmocka_unit_test(what_is_synced_again_changes_nothing),
		cmocka_unit_test(what_is_cut_was_announced),
		cmocka_unit_test(a_newcomer_whose_view_is_void_does_nothing),
		cmocka_unit_test(who_hears_that_others_have_entered),
		cmocka_unit_test(a_view_is_for_who_has_answered),
		cmocka_unit_test(who_knows_more_than_the_view_goes_on),
		cmocka_unit_test(who_becomes_the_checkpoint_writer_after_its_seal_has_its_boundary),
		cmocka_unit_test(a_status_names_the_step_before_if_it_is_whole),
		cmocka_unit_test(prepared_is_who_reaches_those_who_leave),
		cmocka_unit_test(a_newcomer_hears_seals_in_any_skew),
		cmocka_unit_test(a_newcomer_announces_to_each_view),
		cmocka_unit_test(after_the_switch_all_new_members_count),
		cmocka_unit_test(seals_of_the_epoch_to_come_count),
		cmocka_unit_test(a_step_that_others_began_is_begun_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
