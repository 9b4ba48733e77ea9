#include "protocol/testing_views.h"

/* A planned change (rule 2): when a decided view is in force, and what counts around the switch. */

/* Rule 2: s0 is the first step all of whose seals know of it; the next one runs under it. Whether a step is
 * s0 its last seal says: BOUNDARY waits for that. */
static void a_decided_view_is_in_force_right_after_all_know(void **state)
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
	end_step(w, 1, 1);
	IS(SEAL_OF(1, 1, 1, 1), "BOUNDARY 2 writer");
	IS(EVENT(READY, AT(2)), "BEGIN 2; COMPUTE 2.0 [0+2]");
	IS(end_step(w, 1, 2), ">1 SEAL@1 2 ran knows 2; >2 SEAL@1 2 ran knows 2; >co SEAL@1 2 ran knows 2");
	IS(SEAL_OF(1, 1, 2, 1), "BOUNDARY 3 writer");
	IS(EVENT(READY, AT(3)), "BEGIN 3; COMPUTE 3.0 [0+2]");
	IS(end_step(w, 1, 3), ">1 SEAL@1 3 ran knows 2; >2 SEAL@1 3 ran knows 2; >co SEAL@1 3 ran knows 2");
	IS(EVENT(READY, AT(4)), "");            /* of no boundary */
	IS(SEAL_OF(1, 1, 3, 2), "BOUNDARY 4 writer");
	IS(SEAL_OF(2, 1, 3, 2), "");
	IS(SEAL_OF(2, 2, 3, 2), "");
	IS(EVENT(READY, AT(4)), "EPOCH 2; ADOPT 2 of 3; BEGIN 4; COMPUTE 4.0 [0+2]");
	assert_int_equal(hd_member_epoch(w->m), 2);
	assert_int_equal(hd_member_view(w->m)->nmembers, 3);
	at_work_end(w);
}

/* Did the last event begin a step, and what did it say of it (rule 13)? */
static const char *begun(const struct at_work *w)
{
	for (size_t i = 0; i < w->done.n; i++)
		if (w->done.at[i].kind == HD_DO_BEGIN)
			return w->done.at[i].ahead ? w->done.at[i].goes_on ? "ahead, goes on" : "ahead" :
				w->done.at[i].goes_on ? "goes on" : "alone";
	return "not";
}

/* Rule 13: what a step began of the first one of another view does not count, and none begins one that is not
 * run. */
static void steps_are_begun_ahead_within_a_view(void **state)
{
	struct hd_member_config config = at_work_config;
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &config, 0, 2);
	assert_string_equal(begun(w), "goes on");
	seal(w, 1, 0);
	SEAL_OF(1, 1, 0, 1);
	assert_string_equal(begun(w), "ahead, goes on");
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	DECIDE(2);
	seal(w, 1, 1);
	SEAL_OF(1, 1, 1, 1);
	EVENT(READY, AT(2));
	assert_string_equal(begun(w), "ahead, goes on");
	end_step(w, 1, 2);
	SEAL_OF(1, 1, 2, 2);
	SEAL_OF(2, 2, 2, 2);
	EVENT(READY, AT(3));
	assert_string_equal(begun(w), "goes on");
	at_work_end(w);
	config.nsteps = 2;
	at_work_member(w, &config, 0, 2);
	assert_string_equal(begun(w), "goes on");
	seal(w, 1, 0);
	SEAL_OF(1, 1, 0, 1);
	assert_string_equal(begun(w), "ahead");
	at_work_end(w);
}

static bool is_early;
static bool early_view(void *self, const struct hd_view *view)
{
	assert_ptr_equal(self, &is_early);
	return is_early && view->nmembers == 2;
}

/* Rule 13: what was begun with an update that never was ends the epoch, for all; the first member says so,
 * and again to a coordinator that is back. */
static void a_skipped_step_ends_the_epoch_of_early_updates(void **state)
{
	static const uint64_t both[] = { 1, 1 };
	const struct hd_step_news skipped = { .skipped = true };
	struct hd_member_config config = at_work_config;
	struct at_work at, *w = &at;

	(void)state;
	config.of_shape_self = &is_early;
	for (uint32_t early = 0; early < 3; early++)      /* the last: not of this view */
		for (uint32_t me = 0; me < 2; me++) {
			config.early = early ? early_view : NULL;
			is_early = early == 1;
			at_work_member(w, &config, me, 2);
			EVENT(COMPUTED, AT(0));
			EVENT(ROOT, .epoch = 1, .worker = 1 - me, .bucket = me, AT(0));
			EVENT(FOLDED, .bucket = me, AT(0));
			EVENT(SUM, .epoch = 1, .worker = 1 - me, .bucket = 1 - me, AT(0));
			EVENT(LEAVES, .epoch = 1, .worker = 1 - me, AT(0));
			const char *said = EVENT(UPDATED, AT(0), .news = &skipped);
			CHECK(!strstr(said, "SUSPECT@1 0 closed") == !(is_early && !me), "%s", said);
			EVENT(READY, AT(1));
			SEAL_OF(1 - me, 1, 0, 1);
			assert_string_equal(begun(w), is_early ? "not" : "ahead, goes on");
			assert_int_equal(hd_member_holds(w->m), is_early);
			EVENT(LOST, .worker = HD_COORDINATOR, .why = HD_CLOSED);
			said = EVENT(UP, .worker = HD_COORDINATOR);
			CHECK(!strstr(said, "SUSPECT@1 0 closed") == !(is_early && !me), "%s", said);
			if (is_early) {
				FENCE(2);
				VIEW(2, 2, .step = 1, .nat = 2, .at = both);
				assert_string_equal(begun(w), "goes on");
			}
			at_work_end(w);
		}
}

/* Without a coordinator, too, and the first member saves; other views go on. */
static void a_skipped_step_waits_for_a_coordinator_where_updates_are_early(void **state)
{
	const struct hd_step_news skipped = { .skipped = true };
	struct hd_member_config config = at_work_config;
	struct at_work at, *w = &at;

	(void)state;
	config.of_shape_self = &is_early;
	config.early = early_view;
	for (int early = 0; early < 2; early++) {
		is_early = early;
		at_work_member(w, &config, 0, 2);
		EVENT(COMPUTED, AT(0));
		EVENT(ROOT, .epoch = 1, .worker = 1, .bucket = 0, AT(0));
		EVENT(FOLDED, .bucket = 0, AT(0));
		EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(0));
		EVENT(LEAVES, .epoch = 1, .worker = 1, AT(0));
		EVENT(UPDATED, AT(0), .news = &skipped);
		EVENT(READY, AT(1));
		SEAL_OF(1, 1, 0, 1);
		EVENT(LOST, .worker = HD_COORDINATOR, .why = HD_CLOSED);
		w->now += 40 * AT_WORK_T;
		IS(EVENT(TICK), early ? "CALL; BOUNDARY 1 writer final; EXIT 75 no coordinator for thirty "
			"times workers.detect, and after a step that was skipped its members wait for one" :
			"CALL");
		at_work_end(w);
	}
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
	assert_int_equal(w->m->switch_step, 6);
	IS(EVENT(SYNCED, AT(5)), "");
	IS(EVENT(SYNCED, AT(6)),
		">0 SEAL@2 5 knows 2; >1 SEAL@2 5 knows 2; >co SEAL@2 5 knows 2; BOUNDARY 6");
	IS(EVENT(READY, AT(6)), "");
	IS(SEAL_OF(0, 1, 5, 2), "EPOCH 2; ADOPT 2 of 3; BEGIN 6; COMPUTE 6.0 [3+1]");
	assert_int_equal(hd_member_state(w->m), HD_MEMBER);
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
		SEAL_OF(0, 1, 0, 2);
		IS(seal(w, 1, 0), "");
		IS(SEAL_OF(2, 2, 0, 2), ">co LEAVE@1 0 gone ; EXIT 0 this worker left the job");
		assert_int_equal(hd_member_state(w->m), HD_GONE);
		IS(EVENT(TICK), "");
		at_work_end(w);
	}
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
		IS(seal(w, 1, 0), "");
		IS(SEAL_OF(2, 2, 0, 2), "");
		if (released) {
			IS(HEAR(RELEASE, .release = { .code = 10, .nwhy = 3, .why = "few" }), "EXIT 10 few");
		} else {
			IS(SEAL_OF(1, 1, 0, 2), "BOUNDARY 1 writer");
			IS(EVENT(READY, AT(1)), "EPOCH 2; ADOPT 2 of 2; BEGIN 1; COMPUTE 1.0 [0+2]");
		}
		at_work_end(w);
	}
	/* released when nothing but its own boundary is missing */
	at_work_member(w, &at_work_config, 0, 2);
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 2, .member = rest,
		.nrank = 2, .rank = rank });
	EVENT(PREPARED, .epoch = 2);
	DECIDE(2);
	SEAL_OF(1, 1, 0, 2);
	end_step(w, 1, 0);
	SEAL_OF(2, 2, 0, 2);
	w->m->ready = true;
	w->m->asked = 0;
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
	assert_int_equal(w->m->switch_step, 6);
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

/* Under the new view the gate is of its members, and what was prepared is over. */
static void after_the_switch_all_new_members_count(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	SEAL_OF(0, 1, 5, 2);
	SEAL_OF(1, 1, 5, 2);
	EVENT(SYNCED, AT(6));
	IS(EVENT(READY, AT(6)), "EPOCH 2; ADOPT 2 of 3; BEGIN 6; COMPUTE 6.0 [3+1]");
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_decided_view_is_in_force_right_after_all_know),
		cmocka_unit_test(steps_are_begun_ahead_within_a_view),
		cmocka_unit_test(a_skipped_step_ends_the_epoch_of_early_updates),
		cmocka_unit_test(a_skipped_step_waits_for_a_coordinator_where_updates_are_early),
		cmocka_unit_test(that_it_is_decided_may_be_known_from_seals_alone),
		cmocka_unit_test(who_is_not_of_the_next_view_leaves_at_the_switch),
		cmocka_unit_test(the_switch_waits_for_who_leaves),
		cmocka_unit_test(the_step_of_the_switch_is_found_once),
		cmocka_unit_test(who_hears_that_others_have_entered),
		cmocka_unit_test(after_the_switch_all_new_members_count),
		cmocka_unit_test(seals_of_the_epoch_to_come_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
