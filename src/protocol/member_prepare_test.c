#include "protocol/testing_views.h"

/* Preparations of the next view: what is prepared, for what, and what is said of it. */

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

/* Rule 14. */
static void what_cannot_be_prepared_is_said(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	PREPARE(1, 2);
	IS(EVENT(UNFIT, .epoch = 3, .text = "another"), "");
	IS(EVENT(UNFIT, .epoch = 2, .text = "3 MiB"), ">co UNFIT@1 2 3 MiB");
	IS(PREPARE(1, 3), "PREPARE 3 of 3");      /* that one is void */
	IS(EVENT(PREPARED, .epoch = 3), ">co PREPARED@1 3");
	IS(EVENT(UNFIT, .epoch = 3, .text = "late"), "");
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
		{ true, true, false, ">1 SEAL@1 0 ran knows 2; >2 SEAL@1 0 ran knows 2; >co SEAL@1 0 ran knows 2" },
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(prepared_is_who_is_connected_with_all),
		cmocka_unit_test(what_cannot_be_prepared_is_said),
		cmocka_unit_test(a_preparation_that_is_not_for_now_is_not_made),
		cmocka_unit_test(prepared_is_said_of_the_view_that_is_open),
		cmocka_unit_test(a_preparation_that_cannot_be_leaves_none_open),
		cmocka_unit_test(a_seal_says_what_is_decided),
		cmocka_unit_test(a_preparation_forgets_no_seal),
		cmocka_unit_test(prepared_is_who_reaches_those_who_leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
