#include "protocol/testing_member.h"

/* Guards of what a worker makes of links, of its coordinator's words, and of time, one after the other. */

static const uint32_t two[] = { 0, 1 }, three[] = { 0, 1, 2 };
static const struct hd_vrank ranks[] = { { 0, 2 }, { 1, 1 }, { 2, 1 } };

#define AT(step_) .step = (step_)
#define T AT_WORK_T
#define LOST(w_, why_) EVENT(LOST, .worker = (w_), .why = (why_))
#define COORDINATOR_LOST() LOST(HD_COORDINATOR, HD_CLOSED)
#define COORDINATOR_UP() EVENT(UP, .worker = HD_COORDINATOR)
#define PREPARE(in, n) \
	HEAR(PREPARE, .epoch = (in), .prepare = { .next = (n), .nold = 2, .old = two, .nmember = 3, \
		.member = three, .nrank = 3, .rank = ranks })
#define MISSING "EXIT 75 no coordinator for thirty times workers.detect, and a member is missing"

static const char *tick_at(struct at_work *w, int64_t now)
{
	w->now = now - 1;
	return EVENT(TICK, .done = 4, .longest_ns = 9, .busy = true);
}

/* ---- peers ---- */

/* A known peer stays known while there is room; without room only itself. */
static void nobody_is_forgotten_while_there_is_room(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	LOST(0, HD_CLOSED);
	HEAR(PEER, .peer = { .worker = 5, .naddress = 1, .address = "e" });
	IS(tick_at(w, T), "CONNECT 0 a");
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	for (uint32_t i = 3; w->m->npeers < HD_MEMBER_PEERS; i++)
		EVENT(UP, .worker = i);
	LOST(7, HD_CLOSED);
	EVENT(UP, .worker = 1);
	uint32_t known = 0;
	for (uint32_t i = 0; i < w->m->npeers; i++)
		known += w->m->peer[i].worker == 7;
	assert_int_equal(known, 1);
	at_work_end(w);
}

/* An address may be empty, and is never longer than its room. */
static void an_address_is_taken_as_it_is(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_begin(w, &at_work_config);
	HEAR(ADMIT, .admit = { 1, 7 });
	IS(HEAR(PEER, .peer = { .worker = 0, .naddress = 3, .address = "abcd" }), "CONNECT 0 abc");
	IS(HEAR(PEER, .peer = { .worker = 0 }), "");
	at_work_end(w);
}

/* Losses of future members are reported as of members, until that view is void; then only that it is
 * heard again. */
static void who_is_to_come_matters_until_it_is_not_to_come(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	PREPARE(1, 2);
	EVENT(UP, .worker = 5);
	IS(LOST(5, HD_SILENT), "");
	IS(LOST(2, HD_SILENT), ">co SUSPECT@1 2 silent");
	FENCE(3);
	VIEW(3, 2, .step = 0);
	IS(LOST(2, HD_HEARD), ">co SUSPECT@3 2 heard");
	IS(LOST(2, HD_SILENT), "");
	at_work_end(w);
}

/* A joiner waits for the members that it has to hear of, while it prepares. */
static void a_newcomer_waits_for_who_seals(void **state)
{
	static const uint32_t one[] = { 1 }, next[] = { 1, 2 };
	static const struct hd_vrank rank[] = { { 1, 2 }, { 2, 2 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 1, .old = one, .nmember = 2, .member = next,
		.nrank = 2, .rank = rank });
	IS(LOST(0, HD_SILENT), "");             /* it is of neither view */
	LOST(0, HD_HEARD);
	EVENT(UP, .worker = 5);
	IS(LOST(5, HD_SILENT), "");
	IS(LOST(1, HD_SILENT), ">co SUSPECT@1 1 silent");
	IS(LOST(1, HD_HEARD), ">co SUSPECT@1 1 heard");
	HEAR(SYNC, .sync = { 0, 4 });
	IS(LOST(1, HD_SILENT), "");             /* it prepares for nothing any more */
	at_work_end(w);
}

/* Peers that it calls again: none of a void view, nor of no view. */
static void only_who_takes_part_is_called_again(void **state)
{
	static const uint32_t old[] = { 1, 2 }, next[] = { 1, 2, 3 };
	static const struct hd_vrank rank[] = { { 1, 1 }, { 2, 1 }, { 3, 2 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	FENCE(1);
	hear_view(w, 1, old, 2, (struct hd_msg_view){ .halt = HD_NO_STEP });
	EVENT(READY, AT(0));
	LOST(0, HD_CLOSED);
	IS(tick_at(w, T), ">co PROGRESS@1 0 4 9 busy");
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = old, .nmember = 3, .member = next,
		.nrank = 3, .rank = rank });
	IS(tick_at(w, 2 * T), ">co PROGRESS@1 0 4 9 busy");
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 3, .nold = 2, .old = old, .nmember = 3,
		.member = three, .nrank = 3, .rank = ranks });
	IS(tick_at(w, 3 * T), ">co PROGRESS@1 0 4 9 busy; CONNECT 0 a");
	FENCE(4);
	hear_view(w, 4, old, 2, (struct hd_msg_view){ .halt = HD_NO_STEP });
	IS(tick_at(w, 4 * T), ">co PROGRESS@4 0 4 9 busy");
	at_work_end(w);
}

/* ---- the coordinator's words ---- */

/* The same transfer starts over once its stream has ended. */
static void a_transfer_is_begun_again_after_it_ended(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_begin(w, &at_work_config);
	HEAR(ADMIT, .admit = { 2, 7 });
	EVENT(WARMED_UP);
	HEAR(SYNC, .sync = { 0, 4 });
	EVENT(SYNC_LOST);
	w->term = 2;
	/* another coordinator: that nothing is synced was said when it came up */
	IS(HEAR(ENTERED), "");
	IS(HEAR(SYNC, .sync = { 0, 4 }), "SYNC 0 4");
	at_work_end(w);
}

static void teaching_nobody_ends_without_having_begun(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	IS(HEAR(SEND_STATE, .send_state = { 9, false }), "SEND_STATE 9 no more");
	at_work_end(w);
}

/* A halted worker is a member: it says so, and how far it is. */
static void who_halted_is_a_member(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 1, 2);
	PEER_SAYS(0, HALT, .epoch = 1, .halt = { 0 });
	assert_int_equal(hd_member_state(w->m), HD_HALTED);
	IS(tick_at(w, T), ">co PROGRESS@1 0 4 9 busy");
	COORDINATOR_LOST();
	IS(COORDINATOR_UP(), ">co JOIN@1 1 member at 0");
	at_work_end(w);
}

/* A status that waits for a fold waits on, though the coordinator is there again. */
static void a_status_that_is_not_due_is_not_said_again(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	EVENT(COMPUTED, AT(0));
	EVENT(ROOT, .epoch = 1, .worker = 1, AT(0));
	IS(FENCE(2), "EPOCH 2");
	COORDINATOR_LOST();
	IS(COORDINATOR_UP(), ">co JOIN@2 0 member at 0");
	at_work_end(w);
}

/* A joiner that was never held has no status to say when its step fails, sharded or not. */
static void who_is_not_held_says_no_status(void **state)
{
	struct hd_member_config config = at_work_config;
	struct at_work at, *w = &at;

	(void)state;
	config.copies = 2;
	at_work_synced(w, &config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	PEER_SAYS(0, SEAL, .epoch = 1, .seal = { .step = 5, .ran = true, .knows = 2 });
	PEER_SAYS(1, SEAL, .epoch = 1, .seal = { .step = 5, .ran = true, .knows = 2 });
	EVENT(SYNCED, AT(6));
	memset(w->m->mine, 0, w->m->own.words * sizeof *w->m->mine);
	IS(EVENT(READY, AT(6)),
		"EPOCH 2; ADOPT 2 of 3; BEGIN 6; FETCH 6; COMPUTE 6.0 [3+1]");
	EVENT(FETCHED, .epoch = 2, AT(6));
	EVENT(COMPUTED, AT(6));
	EVENT(NORM, .epoch = 2, .worker = 0, .bucket = 0, AT(6));
	EVENT(NORM, .epoch = 2, .worker = 1, .bucket = 1, AT(6));
	EVENT(SUM, .epoch = 2, .worker = 1, .bucket = 1, AT(6));
	EVENT(LEAVES, .epoch = 2, .worker = 0, AT(6));
	IS(EVENT(LEAVES, .epoch = 2, .worker = 1, AT(6)), "UPDATE 6");
	IS(EVENT(UPDATED_OWN, AT(6)), "NORM 6.1 {0}; PARM 6.1 {0}");
	IS(EVENT(FAILED, .code = 4, .text = "nan"), ">co DONE@2 6 code 4 nan; CANCEL 6");
	at_work_end(w);
}

/* What a member said to the coordinator may come after what the joiner says: it hands on the records that it
 * heard, of the steps that its seal lets the coordinator commit. */
static void a_newcomer_hands_on_the_records_that_it_heard(void **state)
{
	static const struct hd_step_news news[] = { { .samples = 8, .loss_sum = 4 },
		{ .samples = 8, .loss_sum = 5 } };
	struct at_work at, *w = &at;
	uint32_t n = 0;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	for (uint32_t step = 4; step < 6; step++)
		for (uint32_t i = 0; i < 2; i++)
			PEER_SAYS(i, SEAL, .epoch = 1, .seal = { .step = step, .ran = true,
				.knows = step == 5 ? 2 : 1, .news = news[step - 4] });
	EVENT(SYNCED, AT(6));
	for (size_t i = 0; i < w->done.n; i++) {
		const struct hd_msg *msg = w->done.at[i].msg;

		if (!msg || msg->kind != HD_MSG_SEAL || w->done.at[i].worker != HD_COORDINATOR || n == 2)
			continue;
		CHECK(msg->seal.step == 4 + n && !msg->seal.ran && msg->seal.news.loss_sum == 4 + n,
			"record %u: step %llu", n, (unsigned long long)msg->seal.step);
		n++;
	}
	assert_int_equal(n, 2);
	at_work_end(w);
}

/* The steps after a checkpoint that it is given are run again: what was sealed of them before counts no
 * more, or the step would count before all have sealed it. */
static void seals_of_before_a_restore_are_forgotten(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	for (uint32_t peer = 0; peer < 2; peer++)
		PEER_SAYS(peer, SEAL, .epoch = 1, .seal = { .step = 4, .ran = true, .knows = 2 });
	assert_true(hd_seals_has(&w->m->seals, 0, 5));
	EVENT(SYNC_LOST);
	HEAR(SYNC, .sync = { HD_NOBODY, 4 });
	EVENT(SYNCED, .step = 4);
	FENCE(3);
	VIEW(3, 3, .step = 4, .nat = 3, .at = (const uint64_t[]){ 4, 4, 4 });
	assert_true(hd_seals_has(&w->m->seals, 0, 4) && !hd_seals_has(&w->m->seals, 0, 5));
	assert_int_equal(w->m->seals.committed, 4);
	at_work_end(w);
}

/* ---- time, and a coordinator that is gone ---- */

/* Since when it is gone counts from the first word of it, which no later one takes back. */
static void a_coordinator_is_lost_once(void **state)
{
	struct hd_member_config config = at_work_config;
	struct at_work at, *w = &at;

	(void)state;
	config.takes_over = true;
	at_work_member(w, &config, 0, 2);
	COORDINATOR_LOST();
	int64_t lost = w->now;
	tick_at(w, lost + T);
	COORDINATOR_LOST();
	LOST(HD_COORDINATOR, HD_SILENT);
	LOST(HD_COORDINATOR, HD_HEARD);
	IS(EVENT(NOTE, .name = "why", .text = "{}"), "");       /* a link that closed is not there */
	IS(tick_at(w, lost + 2 * T), "CALL; TAKE_OVER");
	COORDINATOR_UP();
	IS(tick_at(w, lost + 2 * T + 9), ">co PROGRESS@1 0 4 9 busy");     /* nothing was sent meanwhile */
	at_work_end(w);
}

/* Held, it cannot go on without one. Remote workers save nothing, whoever is the first of them; others all
 * that they hold. */
static void who_saves_when_no_coordinator_comes(void **state)
{
	static const uint32_t far[] = { HD_REMOTE_WORKER };
	static const struct hd_vrank rank[] = { { HD_REMOTE_WORKER, 4 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	FENCE(2);
	COORDINATOR_LOST();
	IS(tick_at(w, w->now + 40 * T), "CALL; CANCEL 0; BOUNDARY 0 writer final; " MISSING);
	at_work_end(w);

	at_work_synced(w, &at_work_config, 0);            /* no step is begun */
	FENCE(1);
	VIEW(1, 2, .step = 0);
	FENCE(2);
	COORDINATOR_LOST();
	IS(tick_at(w, w->now + 40 * T), "CALL; BOUNDARY 0 writer final; " MISSING);
	at_work_end(w);

	at_work_synced(w, &at_work_config, HD_REMOTE_WORKER);
	FENCE(1);
	hear_view(w, 1, far, 1, (struct hd_msg_view){ .halt = HD_NO_STEP, .nrank = 1, .rank = rank });
	FENCE(2);
	COORDINATOR_LOST();
	IS(tick_at(w, w->now + 40 * T), "CALL; " MISSING);
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);         /* replicated: slots are no matter */
	memset(w->m->mine, 0, w->m->own.words * sizeof *w->m->mine);
	LOST(1, HD_CLOSED);
	COORDINATOR_LOST();
	LOST(1, HD_EXITED);
	IS(tick_at(w, w->now + 40 * T), "CALL; CANCEL 0; BOUNDARY 0 writer final; " MISSING);
	at_work_end(w);
}

/* ---- what is asked of it ---- */

/* Holding between steps: with a view, its boundary done, nothing begun, on request. */
static void who_holds_and_who_is_the_checkpoint_writer(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_begin(w, &at_work_config);
	assert_false(hd_member_is_writer(w->m) || hd_member_holds(w->m));
	at_work_end(w);
	for (int hold = 0; hold < 2; hold++) {
		at_work_synced(w, &at_work_config, 0);
		FENCE(1);
		VIEW(1, 2, .step = 0, .hold = hold);
		assert_false(hd_member_holds(w->m));            /* its boundary is not done */
		IS(EVENT(READY, AT(0)), hold ? "" : "BEGIN 0; COMPUTE 0.0 [0+2]");
		assert_int_equal(hd_member_holds(w->m), hold);
		assert_true(hd_member_is_writer(w->m));
		at_work_end(w);
	}
	at_work_member(w, &at_work_config, 0, 2);
	EVENT(COMPUTED, AT(0));
	EVENT(ROOT, .epoch = 1, .worker = 1, AT(0));
	EVENT(FOLDED, AT(0));
	EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(0));
	EVENT(LEAVES, .epoch = 1, .worker = 1, AT(0));
	EVENT(UPDATED, AT(0), .news = &(struct hd_step_news){ 0 });
	IS(EVENT(READY, AT(1)), "");
	assert_false(hd_member_holds(w->m));                    /* at the gate, without a request */
	at_work_end(w);
}

/* The first reason counts. */
static void why_a_machine_cannot_go_on_is_said_once(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	hd_member_break(w->m, 1, "first");
	hd_member_break(w->m, 2, "second");
	IS(EVENT(TICK), "EXIT 1 first");
	at_work_end(w);
}

static void a_machine_of_no_virtual_nodes_is_not_made(void **state)
{
	struct hd_member_config config = at_work_config;
	struct hd_member *m = NULL;

	(void)state;
	config.nvns = 0;
	assert_int_equal(hd_member_create(&m, &config, NULL), HD_E_INVAL);
	assert_null(m);
}

/* ---- what is forgotten, and what is not ---- */

/* Another transfer is another life: what the one before heard of steps may come another way. */
static void a_new_transfer_forgets_the_one_before(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	PREPARE(1, 2);
	EVENT(PREPARED, .epoch = 2);
	PEER_SAYS(0, SEAL, .epoch = 1, .seal = { .step = 5, .ran = true, .knows = 2 });
	PEER_SAYS(1, SEAL, .epoch = 1, .seal = { .step = 5, .ran = true, .knows = 2 });
	EVENT(SYNCED, AT(6));
	PEER_SAYS(0, SEAL, .epoch = 1, .seal = { .step = 6, .ran = true, .knows = 2, .state_digest = 5 });
	PEER_SAYS(1, SEAL, .epoch = 1, .seal = { .step = 6, .ran = true, .knows = 2, .state_digest = 6 });
	assert_true(w->m->diverged == 7 && w->m->peer[0].reported == 7 && w->m->asked == 1 &&
		w->m->switch_step == 6);
	IS(HEAR(SYNC, .sync = { 1, 9 }), "SYNC 1 9");
	assert_true(!w->m->diverged && !w->m->peer[0].reported && !w->m->asked &&
		w->m->switch_step == HD_NO_STEP);
	IS(EVENT(SYNCED, AT(4)), ">co SYNCED@1 1 9");
	at_work_end(w);

	at_work_begin(w, &at_work_config);
	HEAR(ADMIT, .admit = { 2, 7 });
	EVENT(WARMED_UP);
	HEAR(SYNC, .sync = { 0, 4 });
	w->term = 2;
	IS(HEAR(ENTERED), ">co READY_TO_SYNC@0 0");
	w->term = 3;
	IS(HEAR(ENTERED), "");                  /* it syncs nothing any more */
	at_work_end(w);
}

/* Nothing is heard any more. */
static void who_is_fenced_is_gone(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	HEAR(STALE);
	assert_int_equal(hd_member_state(w->m), HD_GONE);
	IS(FENCE(2), "");
	at_work_end(w);
}

/* A member that is not connected when its view comes is lost as one whose link closed. */
static void who_is_not_there_when_its_view_comes_is_lost(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 0);
	LOST(1, HD_CLOSED);
	FENCE(1);
	COORDINATOR_LOST();
	COORDINATOR_UP();
	IS(VIEW(1, 2, .step = 0), "ADOPT 1 of 2; >co SUSPECT@1 1 closed; BOUNDARY 0 writer");
	EVENT(READY, AT(0));
	COORDINATOR_LOST();
	IS(tick_at(w, w->now + 40 * T), "CALL; CANCEL 0; BOUNDARY 0 writer final; " MISSING);
	at_work_end(w);

	at_work_synced(w, &at_work_config, 0);
	LOST(1, HD_CLOSED);
	FENCE(1);
	VIEW(1, 2, .step = 0);
	COORDINATOR_LOST();
	IS(COORDINATOR_UP(), ">co JOIN@1 0 member at 0; >co SUSPECT@1 1 closed");
	/* it knows of that one: since it is there again, none was lost */
	COORDINATOR_LOST();
	IS(tick_at(w, w->now + 40 * T), "CALL");
	at_work_end(w);
}

/* Worker 2, before step 0, with a link to worker 0 and none to 1 yet, is to enter its first view. Another one
 * that it had, to a worker that is gone, does not matter. */
static void come(struct at_work *w)
{
	at_work_begin(w, &at_work_config);
	HEAR(ADMIT, .admit = { 2, at_work_config.nonce });
	EVENT(WARMED_UP);
	HEAR(SYNC, .sync = { HD_NOBODY, 0 });
	EVENT(SYNCED, AT(0));
	for (uint32_t peer = 0; peer < 2; peer++)
		HEAR(PEER, .peer = { .worker = peer, .naddress = 1, .address = &"ab"[peer] });
	EVENT(UP, .worker = 0);
	EVENT(UP, .worker = 5);
	LOST(5, HD_CLOSED);
	FENCE(1);
}

static void enter(struct at_work *w)
{
	come(w);
	IS(VIEW(1, 3, .step = 0), "ADOPT 1 of 3; BOUNDARY 0");
}

/* What was never sent is not lost: no epoch is needed for a link that is late. */
static void a_first_step_waits_for_links_that_come_up(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	enter(w);
	IS(EVENT(READY, AT(0)), "");
	IS(tick_at(w, w->now + T / 8), ">co PROGRESS@1 0 4 9 busy; CONNECT 1 b");
	IS(EVENT(UP, .worker = 1), "BEGIN 0; COMPUTE 0.0 [3+1]");
	/* from now on a link that closes loses what is on it */
	IS(LOST(1, HD_CLOSED), ">co SUSPECT@1 1 closed");
	IS(EVENT(UP, .worker = 1), ">co SUSPECT@1 1 heard");
	at_work_end(w);

	/* as long as T/2, in this view and in the next */
	enter(w);
	const int64_t entered = w->now;
	EVENT(READY, AT(0));
	IS(tick_at(w, entered + T / 2 - 1), ">co PROGRESS@1 0 4 9 busy; CONNECT 1 b");
	IS(tick_at(w, entered + T / 2), ">co SUSPECT@1 1 closed; CONNECT 1 b; BEGIN 0; COMPUTE 0.0 [3+1]");
	FENCE(2);
	IS(VIEW(2, 3, .step = 0, .afresh = true),
		"ADOPT 2 of 3; >co SUSPECT@2 1 closed; CANCEL 0; BEGIN 0; COMPUTE 0.0 [3+1]");
	at_work_end(w);

	enter(w);
	FENCE(2);
	IS(VIEW(2, 3, .step = 0), "ADOPT 2 of 3");
	IS(EVENT(READY, AT(0)), "");
	IS(EVENT(UP, .worker = 1), "BEGIN 0; COMPUTE 0.0 [3+1]");
	at_work_end(w);
}

/* A call that failed, as of one whose own socket is late, lost nothing either: it is made again, and costs no
 * epoch. */
static void a_first_call_that_fails_is_made_again(void **state)
{
	static const uint32_t four[] = { 0, 1, 2, 7 };
	static const struct hd_vrank rank[] = { { 0, 1 }, { 1, 1 }, { 2, 1 }, { 7, 1 } };
	struct at_work at, *w = &at;

	(void)state;
	enter(w);
	const int64_t entered = w->now;
	EVENT(READY, AT(0));
	IS(LOST(1, HD_CLOSED), "");
	IS(tick_at(w, entered + T / 8), ">co PROGRESS@1 0 4 9 busy; CONNECT 1 b");
	IS(LOST(1, HD_CLOSED), "");
	IS(EVENT(UP, .worker = 1), "BEGIN 0; COMPUTE 0.0 [3+1]");
	at_work_end(w);

	/* as long as it waits */
	enter(w);
	EVENT(READY, AT(0));
	IS(LOST(1, HD_CLOSED), "");
	IS(tick_at(w, w->now + T / 2),
		">co SUSPECT@1 1 closed; >co PROGRESS@1 0 4 9 busy; CONNECT 1 b; BEGIN 0; COMPUTE 0.0 [3+1]");
	IS(LOST(1, HD_CLOSED), ">co SUSPECT@1 1 closed");
	at_work_end(w);

	/* an end, a link that was up before and one of a member to come are reported at once */
	enter(w);
	IS(LOST(1, HD_EXITED), ">co SUSPECT@1 1 exited");
	at_work_end(w);
	enter(w);
	IS(LOST(0, HD_CLOSED), ">co SUSPECT@1 0 closed");
	at_work_end(w);
	enter(w);
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 3, .old = three, .nmember = 4,
		.member = four, .nrank = 4, .rank = rank });
	HEAR(PEER, .peer = { .worker = 7, .naddress = 1, .address = "e" });
	IS(LOST(7, HD_CLOSED), ">co SUSPECT@1 7 closed");
	at_work_end(w);
}

static void what_would_be_lost_is_waited_for_no_longer(void **state)
{
	static const struct hd_pass pass[] = { { 0, 0, 0, 1, 0 }, { 1, 0, 1, 1, 0 }, { 2, 0, 2, 1, 0 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 1 }, { 3, 1 } };
	static const struct hd_have no_holder = { 0, 0 };
	struct at_work at, *w = &at;

	(void)state;
	/* something to send */
	enter(w);
	struct hd_msg *msg = hd_member_msg(w->m, HD_MSG_HALT);
	hd_member_send(w->m, 0, msg);
	assert_true(w->m->links_ns);
	hd_member_send(w->m, 1, msg);
	assert_true(!w->m->links_ns && w->m->peer_lost);
	at_work_end(w);

	/* a step that is open */
	come(w);
	IS(VIEW(1, 3, .step = 0, .npass = 3, .pass = pass, .nrange = 3, .range = range, .nhave = 1,
		.have = &no_holder),
		"ADOPT 1 of 3; >co SUSPECT@1 1 closed; BEGIN 0; COMPUTE 0.0 [3+1]; BOUNDARY 0");
	at_work_end(w);
	/* a link that was up before */
	at_work_synced(w, &at_work_config, 0);
	LOST(1, HD_CLOSED);
	FENCE(1);
	IS(VIEW(1, 3, .step = 0), "ADOPT 1 of 3; >co SUSPECT@1 1 closed; BOUNDARY 0 writer");
	IS(EVENT(READY, AT(0)), "BEGIN 0; COMPUTE 0.0 [0+2]");
	at_work_end(w);
	/* of one that is no member nothing is awaited */
	at_work_synced(w, &at_work_config, 0);
	LOST(2, HD_CLOSED);
	FENCE(1);
	VIEW(1, 2, .step = 0);
	IS(EVENT(READY, AT(0)), "BEGIN 0; COMPUTE 0.0 [0+2]");
	at_work_end(w);
}

/* Silent, then on a new link: it is there. */
static void a_coordinator_that_comes_back_is_there(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	tick_at(w, T);
	LOST(HD_COORDINATOR, HD_SILENT);
	COORDINATOR_UP();
	IS(tick_at(w, 2 * T), ">co PROGRESS@1 0 4 9 busy");
	at_work_end(w);

	/* what is done and whose bits differ is said again */
	at_work_member(w, &at_work_config, 0, 2);
	EVENT(COMPUTED, AT(0));
	EVENT(ROOT, .epoch = 1, .worker = 1, AT(0));
	EVENT(FOLDED, AT(0));
	EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(0));
	EVENT(LEAVES, .epoch = 1, .worker = 1, AT(0));
	EVENT(UPDATED, AT(0), .news = &(struct hd_step_news){ 0 }, .state_digest = 5);
	IS(PEER_SAYS(1, SEAL, .epoch = 1, .seal = { .step = 0, .ran = true, .state_digest = 6 }),
		">co SUSPECT@1 1 corrupt");
	EVENT(READY, AT(1), .halt = true);
	IS(EVENT(READY, AT(1)), ">co DONE@1 1 code 0 ");
	COORDINATOR_LOST();
	IS(COORDINATOR_UP(),
		">co JOIN@1 0 member at 1; >co SEAL@1 0 ran knows 1 0/5; >co SUSPECT@1 1 corrupt; >co "
		"DONE@1 1 code 0 ");
	at_work_end(w);
}

/* Thirty times T count from when it woke up. */
static void who_wakes_up_late_has_not_waited(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	memset(w, 0, sizeof *w);
	assert_int_equal(hd_member_create(&w->m, &at_work_config, NULL), HD_OK);
	assert_false(hd_member_has_slots(w->m, 0) || hd_member_has_slots(w->m, 1));
	IS(tick_at(w, 100 * T), "CALL");
	IS(tick_at(w, 130 * T), "CALL; EXIT 75 no coordinator for thirty times workers.detect");
	at_work_end(w);
}

/* Whoever reads the run's folder tells those that cannot; they believe it where no coordinator says more. */
static void the_end_of_a_run_is_told_to_peers(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 3);
	COORDINATOR_LOST();
	EVENT(LOST, .worker = 2, .why = HD_CLOSED);
	IS(EVENT(ENDED, .code = 11, .text = "stopped at step 7"),
		">1 ENDED@1 stopped at step 7; EXIT 11 stopped at step 7");
	IS(PEER_SAYS(1, ENDED, .ended = { .nwhy = 5, .why = "again" }), "");
	at_work_end(w);
	for (int silent = 0; silent < 3; silent++) {
		at_work_member(w, &at_work_config, 1, 2);
		IS(PEER_SAYS(0, ENDED, .ended = { .nwhy = 4, .why = "over" }), "");
		if (silent == 2)
			EVENT(LOST, .worker = HD_COORDINATOR, .why = HD_SILENT);
		else
			COORDINATOR_LOST();
		if (silent == 1)
			COORDINATOR_UP();
		IS(PEER_SAYS(0, ENDED, .ended = { .nwhy = 4, .why = "over" }), silent == 1 ? "" :
			">0 ENDED@1 over; >2 ENDED@1 over; EXIT 75 over");
		at_work_end(w);
	}
}

/* What is said last is what is said, whole. */
static void the_last_failure_is_the_one_that_is_told(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	EVENT(FAILED, .code = 4, .text = "a long story");
	IS(EVENT(FAILED, .code = 5, .text = "nan"), ">co DONE@1 0 code 5 nan");
	at_work_end(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_forgotten_while_there_is_room),
		cmocka_unit_test(an_address_is_taken_as_it_is),
		cmocka_unit_test(who_is_to_come_matters_until_it_is_not_to_come),
		cmocka_unit_test(a_newcomer_waits_for_who_seals),
		cmocka_unit_test(only_who_takes_part_is_called_again),
		cmocka_unit_test(a_transfer_is_begun_again_after_it_ended),
		cmocka_unit_test(teaching_nobody_ends_without_having_begun),
		cmocka_unit_test(who_halted_is_a_member),
		cmocka_unit_test(a_status_that_is_not_due_is_not_said_again),
		cmocka_unit_test(who_is_not_held_says_no_status),
		cmocka_unit_test(a_newcomer_hands_on_the_records_that_it_heard),
		cmocka_unit_test(seals_of_before_a_restore_are_forgotten),
		cmocka_unit_test(a_coordinator_is_lost_once),
		cmocka_unit_test(who_saves_when_no_coordinator_comes),
		cmocka_unit_test(who_holds_and_who_is_the_checkpoint_writer),
		cmocka_unit_test(why_a_machine_cannot_go_on_is_said_once),
		cmocka_unit_test(a_machine_of_no_virtual_nodes_is_not_made),
		cmocka_unit_test(a_new_transfer_forgets_the_one_before),
		cmocka_unit_test(who_is_fenced_is_gone),
		cmocka_unit_test(who_is_not_there_when_its_view_comes_is_lost),
		cmocka_unit_test(a_first_step_waits_for_links_that_come_up),
		cmocka_unit_test(a_first_call_that_fails_is_made_again),
		cmocka_unit_test(what_would_be_lost_is_waited_for_no_longer),
		cmocka_unit_test(a_coordinator_that_comes_back_is_there),
		cmocka_unit_test(who_wakes_up_late_has_not_waited),
		cmocka_unit_test(the_end_of_a_run_is_told_to_peers),
		cmocka_unit_test(the_last_failure_is_the_one_that_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
