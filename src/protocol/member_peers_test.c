#include "protocol/testing_member.h"

#include "base/alloc.h"

/* What a worker makes of links that come and go, of its coordinator's absence, and of its own wish to
 * leave. */

static const struct hd_step_news none;

#define AT(step_) .step = (step_)
#define T AT_WORK_T
#define LOST(w_, why_) EVENT(LOST, .worker = (w_), .why = (why_))
#define COORDINATOR_LOST() LOST(HD_COORDINATOR, HD_CLOSED)
#define COORDINATOR_UP() EVENT(UP, .worker = HD_COORDINATOR)

static const char *tick_at(struct at_work *w, int64_t now)
{
	w->now = now - 1;
	return EVENT(TICK, .done = 4, .longest_ns = 9, .busy = true);
}

/* Joining: an id for this worker alone, then a state. */
static void a_worker_joins_and_syncs(void **state)
{
	struct at_work at, *w = &at;
	struct hd_msg refuse = { .kind = HD_MSG_REFUSE, .refuse = { .code = 2, .nwhy = 3, .why = "bad" } };

	(void)state;
	memset(w, 0, sizeof *w);
	w->term = 1;
	assert_int_equal(hd_member_create(&w->m, &at_work_config, NULL), HD_OK);
	IS(COORDINATOR_UP(), ">co JOIN@0 -1 at 0");
	IS(HEAR(ADMIT, .admit = { 5, 8 }), "");
	IS(HEAR(ADMIT, .admit = { 5, 7 }), "ADMITTED 5; WARM_UP");
	IS(HEAR(ADMIT, .admit = { 6, 7 }), "");
	assert_int_equal(hd_member_worker(w->m), 5);
	IS(EVENT(SYNCED, AT(3)), "");
	IS(EVENT(WARMED_UP), ">co READY_TO_SYNC@0 0");
	IS(EVENT(SYNC_LOST), "");
	IS(HEAR(SYNC, .sync = { 0, 4 }), "SYNC 0 4");
	IS(HEAR(SYNC, .sync = { 0, 4 }), "");
	IS(EVENT(SYNCED, AT(3)), ">co SYNCED@0 0 4");
	IS(EVENT(SYNCED, AT(4)), "");
	IS(HEAR(SYNC, .sync = { 0, 4 }), ">co SYNCED@0 0 4");
	IS(HEAR(SYNC, .sync = { 0, 5 }), "SYNC 0 5");
	IS(HEAR(SYNC, .sync = { 1, 5 }), "SYNC 1 5");
	EVENT(SYNCED, AT(4));
	IS(EVENT(SYNC_LOST), ">co READY_TO_SYNC@0 0");
	IS(EVENT(SYNCED, AT(5)), "");
	at_work_end(w);

	at_work_begin(w, &at_work_config);
	IS(hear(w, refuse), "EXIT 2 bad");
	IS(COORDINATOR_UP(), "");
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	IS(HEAR(SYNC, .sync = { 1, 4 }), "");
	IS(EVENT(SYNCED, AT(3)), "");
	IS(EVENT(SYNC_LOST), "");
	IS(HEAR(STALE, .epoch = 0), "FENCED the job went on without this worker");
	at_work_end(w);
	at_work_member(w, &at_work_config, 0, 2);
	IS(HEAR(RELEASE, .release = { .code = 10, .nwhy = 3, .why = "few" }), "EXIT 10 few");
	at_work_end(w);
}

/* A message of an earlier term is ignored; a new coordinator gets what only the previous one knew. */
static void a_coordinator_of_an_earlier_term_is_not_heard(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	w->term = 3;
	IS(HEAR(SEND_STATE, .send_state = { 2, true }), "SEND_STATE 2");
	w->term = 2;
	IS(FENCE(2), "");
	IS(HEAR(RELEASE, .release = { 0 }), "");
	w->term = 3;
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 0 member begun [0+2]");
	at_work_end(w);

	for (int synced = 0; synced < 2; synced++) {
		at_work_begin(w, &at_work_config);
		HEAR(ADMIT, .admit = { 2, 7 });
		EVENT(WARMED_UP);
		w->term = 2;
		IS(HEAR(ENTERED), "");          /* it syncs nothing */
		HEAR(SYNC, .sync = { 0, 4 });
		IS(HEAR(ENTERED), "");          /* the same */
		if (synced)
			EVENT(SYNCED, AT(6));
		w->term = 3;
		IS(HEAR(ENTERED), synced ? "" : ">co READY_TO_SYNC@0 0");
		IS(HEAR(ENTERED), "");
		at_work_end(w);
	}
	at_work_begin(w, &at_work_config);
	HEAR(ADMIT, .admit = { 2, 7 });
	EVENT(WARMED_UP);
	HEAR(SYNC, .sync = { HD_NOBODY, 4 });
	w->term = 2;
	IS(HEAR(ENTERED), "");                  /* what is on disk, any coordinator knows */
	at_work_end(w);
}

/* Rule 8: what was on a link that closed is lost. */
static void all_that_awaits_an_answer_is_said_again(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_begin(w, &at_work_config);
	COORDINATOR_LOST();
	IS(COORDINATOR_UP(), ">co JOIN@0 -1 at 0");
	HEAR(ADMIT, .admit = { 2, 7 });
	COORDINATOR_LOST();
	IS(COORDINATOR_UP(), ">co JOIN@0 2 at 0");
	COORDINATOR_LOST();
	IS(EVENT(WARMED_UP), "");
	IS(COORDINATOR_UP(), ">co JOIN@0 2 at 0; >co READY_TO_SYNC@0 0");
	HEAR(SYNC, .sync = { 0, 4 });
	COORDINATOR_LOST();
	IS(COORDINATOR_UP(), ">co JOIN@0 2 at 0");
	COORDINATOR_LOST();
	IS(EVENT(SYNCED, AT(6)), "");
	IS(COORDINATOR_UP(), ">co JOIN@0 2 at 6; >co SYNCED@0 0 4");
	COORDINATOR_LOST();
	IS(EVENT(DRAIN, .code = 75, .text = "notice"), "EXIT 75 notice");
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	LOST(1, HD_SILENT);
	COORDINATOR_LOST();
	EVENT(DRAIN, .code = 75, .text = "notice");
	IS(COORDINATOR_UP(), ">co JOIN@1 0 member at 0; >co SUSPECT@1 1 silent; >co LEAVE@1 75 notice");
	IS(EVENT(DRAIN, .code = 76, .text = "another", .left_ns = 9), ">co LEAVE@1 75 notice in 9");
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 0 member begun [0+2]");
	COORDINATOR_LOST();
	IS(COORDINATOR_UP(),
		">co JOIN@2 0 member at 0; >co SUSPECT@2 1 silent; >co STATUS@2 0 member begun [0+2]; >co "
		"LEAVE@2 75 notice in 6");
	at_work_end(w);

	/* what is left of its machine's time then; each event here takes 1 ns. The first end counts */
	at_work_member(w, &at_work_config, 0, 2);
	IS(EVENT(DRAIN, .code = 75, .text = "notice", .left_ns = 5), ">co LEAVE@1 75 notice in 5");
	COORDINATOR_LOST();
	IS(COORDINATOR_UP(), ">co JOIN@1 0 member at 0; >co LEAVE@1 75 notice in 3");
	COORDINATOR_LOST();
	COORDINATOR_UP();
	COORDINATOR_LOST();
	IS(COORDINATOR_UP(), ">co JOIN@1 0 member at 0; >co LEAVE@1 75 notice in 1");
	at_work_end(w);
	at_work_member(w, &at_work_config, 0, 2);
	EVENT(DRAIN, .code = 0, .text = "notice", .left_ns = 50);
	IS(EVENT(DRAIN, .code = 75, .text = "signal", .left_ns = 60), ">co LEAVE@1 0 notice in 49");
	IS(EVENT(DRAIN, .code = 75, .text = "signal", .left_ns = 10), ">co LEAVE@1 0 notice in 10");
	IS(EVENT(DRAIN, .code = 75, .text = "signal"), ">co LEAVE@1 0 notice in 9");
	at_work_end(w);
}

/* The seals of all steps whose record is kept: which of them it knows is not known. */
static void seals_that_a_coordinator_may_lack_are_said_again(void **state)
{
	struct at_work at, *w = &at;
	struct hd_member_config config = at_work_config;

	(void)state;
	config.nsteps = 400;
	at_work_member(w, &config, 0, 1);
	for (uint64_t s = 0; s < 300; s++) {
		if (s == 20)
			COORDINATOR_LOST();
		EVENT(COMPUTED, AT(s));
		EVENT(FOLDED, AT(s), .bucket = 0);
		EVENT(FOLDED, AT(s), .bucket = 1);
		EVENT(UPDATED, AT(s), .news = &none);
		EVENT(READY, AT(s + 1));
		if (s == 19 || s == 29 || s == 299) {
			const char *said = COORDINATOR_UP();
			uint32_t n = 0;
			char first[40], last[40];
			for (const char *at_ = said; (at_ = strstr(at_, "SEAL")); at_++)
				n++;
			uint64_t from = s < 256 ? 0 : s + 1 - 256;
			snprintf(first, sizeof first, "member at %d; >co SEAL@1 %d ", (int)s + 1, (int)from);
			snprintf(last, sizeof last, "SEAL@1 %d ran knows 1", (int)s);
			CHECK(strstr(said, first) && strstr(said, last) && n == s + 1 - from,
				"step %d: %u seals: %s", (int)s, n, said);
		}
		if (s == 29)
			w->m->co_up = false;
	}
	at_work_end(w);
}

/* Members that were lost are named, and named again to another coordinator; whoever takes no part is not. */
static void links_to_members_that_close_are_told(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	IS(LOST(2, HD_CLOSED), "");
	IS(LOST(9, HD_CLOSED), "");
	IS(LOST(1, HD_SILENT), ">co SUSPECT@1 1 silent");
	assert_true(hd_member_is_up(w->m, 1));
	IS(LOST(1, HD_HEARD), ">co SUSPECT@1 1 heard");
	IS(LOST(1, HD_HEARD), "");
	IS(LOST(1, HD_CLOSED), ">co SUSPECT@1 1 closed");
	assert_false(hd_member_is_up(w->m, 1));
	IS(LOST(1, HD_HEARD), "");
	COORDINATOR_LOST();
	IS(COORDINATOR_UP(), ">co JOIN@1 0 member at 0; >co SUSPECT@1 1 closed");
	IS(EVENT(UP, .worker = 1), ">co SUSPECT@1 1 heard");
	IS(EVENT(UP, .worker = 1), "");
	IS(LOST(1, HD_EXITED), ">co SUSPECT@1 1 exited");
	assert_false(hd_member_is_up(w->m, 1));
	at_work_end(w);
}

/* The worker with the higher id connects. */
static void whoever_came_later_calls(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_begin(w, &at_work_config);
	HEAR(ADMIT, .admit = { 1, 7 });
	IS(HEAR(PEER, .peer = { .worker = 0, .naddress = 3, .address = "abc" }), "CONNECT 0 abc");
	IS(HEAR(PEER, .peer = { .worker = 1, .naddress = 3, .address = "abc" }), "");
	IS(HEAR(PEER, .peer = { .worker = 2, .naddress = 3, .address = "abc" }), "");
	IS(HEAR(PEER, .peer = { .worker = 0 }), "");
	IS(HEAR(PEER, .peer = { .worker = 0, .naddress = 1, .address = "xyz" }), "CONNECT 0 x");
	EVENT(UP, .worker = 0);
	IS(HEAR(PEER, .peer = { .worker = 0, .naddress = 1, .address = "xyz" }), "");
	at_work_end(w);

	/* again and again: members, those to come, and its joiners */
	at_work_synced(w, &at_work_config, 2);
	IS(LOST(0, HD_CLOSED), "");
	IS(tick_at(w, T), "CONNECT 0 a");
	LOST(1, HD_CLOSED);
	FENCE(1);
	IS(hear_view(w, 1, (const uint32_t[]){ 1, 2 }, 2, (struct hd_msg_view){ .halt = HD_NO_STEP }),
		"ADOPT 1 of 2; >co SUSPECT@1 1 closed; BOUNDARY 0");
	IS(tick_at(w, 2 * T), ">co PROGRESS@1 0 4 9 busy; CONNECT 1 b");
	HEAR(SEND_STATE, .send_state = { 0, true });
	IS(tick_at(w, 3 * T), ">co PROGRESS@1 0 4 9 busy; CONNECT 0 a; CONNECT 1 b");
	HEAR(SEND_STATE, .send_state = { 0, false });
	IS(tick_at(w, 4 * T), ">co PROGRESS@1 0 4 9 busy; CONNECT 1 b");
	static const uint32_t three[] = { 0, 1, 2 };
	static const struct hd_vrank ranks[] = { { 0, 2 }, { 1, 1 }, { 2, 1 } };
	EVENT(UP, .worker = 1);
	IS(HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = three + 1, .nmember = 3,
		.member = three, .nrank = 3,
		.rank = ranks }),
		"PREPARE 2 of 3");
	IS(tick_at(w, 5 * T), ">co PROGRESS@1 0 4 9 busy; CONNECT 0 a");
	at_work_end(w);
}

/* The table of peers has room for all that take part: a peer that is down and takes no part is dropped
 * first. */
static void room_for_a_peer_is_made_of_one_who_takes_no_part(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	for (uint32_t i = 3; w->m->npeers < HD_MEMBER_PEERS; i++)
		EVENT(UP, .worker = i);
	HEAR(PEER, .peer = { .worker = 1000, .naddress = 1, .address = "a" });
	EVENT(UP, .worker = 1000);
	assert_false(hd_member_is_up(w->m, 1000));
	LOST(1, HD_CLOSED);                      /* a member */
	EVENT(UP, .worker = 1000);
	assert_false(hd_member_is_up(w->m, 1000));
	LOST(7, HD_CLOSED);
	EVENT(UP, .worker = 1000);
	assert_true(hd_member_is_up(w->m, 1000));
	EVENT(UP, .worker = 1);
	assert_true(hd_member_is_up(w->m, 1));
	assert_int_equal(w->m->npeers, HD_MEMBER_PEERS);
	at_work_end(w);
}

/* Rule 6. */
static void a_member_without_a_coordinator_calls_and_takes_over(void **state)
{
	struct at_work at, *w = &at;
	struct hd_member_config config = at_work_config;

	(void)state;
	config.takes_over = true;
	for (uint32_t id = 0; id < 3; id++) {    /* the third is no member: others are before it */
		int64_t place = id < 2 ? id : HD_MAX_MEMBERS / 4 + 2;
		if (id < 2)
			at_work_member(w, &config, id, 2);
		else
			at_work_synced(w, &config, id);
		COORDINATOR_LOST();
		int64_t lost = w->now;
		IS(tick_at(w, lost + 1), "CALL");
		IS(tick_at(w, lost + T / 4), "");
		IS(tick_at(w, lost + T / 4 + 1), "CALL");
		IS(tick_at(w, lost + 2 * T + place * T / 8 - 1), "CALL");
		IS(tick_at(w, lost + 2 * T + place * T / 8), "TAKE_OVER");
		IS(tick_at(w, lost + 2 * T + place * T / 8 + 1), "");
		IS(tick_at(w, lost + 4 * T + place * T / 8), "CALL; TAKE_OVER");
		at_work_end(w);
	}
	/* it has no id yet: it takes over all the same, nothing may have joined */
	at_work_begin(w, &config);
	COORDINATOR_LOST();
	IS(tick_at(w, w->now + 9 * T), "CALL; TAKE_OVER");
	at_work_end(w);
	at_work_member(w, &at_work_config, 0, 2);        /* it cannot open the store */
	COORDINATOR_LOST();
	IS(tick_at(w, w->now + 9 * T), "CALL");
	at_work_end(w);
	at_work_member(w, &config, 0, 2);
	IS(tick_at(w, w->now + 9 * T), ">co PROGRESS@1 0 4 9 busy");             /* it is there */
	IS(tick_at(w, w->now + 1), "");
	LOST(HD_COORDINATOR, HD_SILENT);                 /* it may be gone */
	int64_t lost = w->now;
	IS(tick_at(w, lost + T / 4), "CALL; >co PROGRESS@1 0 4 9 busy");
	LOST(HD_COORDINATOR, HD_SILENT);
	IS(tick_at(w, lost + 2 * T), "CALL; TAKE_OVER; >co PROGRESS@1 0 4 9 busy");
	LOST(HD_COORDINATOR, HD_HEARD);
	IS(tick_at(w, lost + 9 * T), ">co PROGRESS@1 0 4 9 busy");
	LOST(HD_COORDINATOR, HD_SILENT);
	LOST(HD_COORDINATOR, HD_CLOSED);
	IS(tick_at(w, lost + 12 * T), "CALL; TAKE_OVER");
	at_work_end(w);
}

/* After 30 T without one, and a member gone: the first that is left saves. */
static void members_that_cannot_go_on_without_a_coordinator_save_and_leave(void **state)
{
#define MISSING "EXIT 75 no coordinator for thirty times workers.detect, and a member is missing"
	static const struct { uint32_t me; bool first_up, lost, halted, finishing; const char *said;
		} row[] = {
		{ 0, true, true, false, false, "CANCEL 0; BOUNDARY 0 writer final; " MISSING }, { 1, true, true, false, false, MISSING },
		{ 1, false, true, false, false, "CANCEL 0; BOUNDARY 0 writer final; " MISSING "; CONNECT 0 a" }, { 0, true, false, false, false, "" },
		{ 0, true, false, true, false, "CANCEL 0; BOUNDARY 0 writer final; " MISSING }, { 0, true, true, false, true, "" },
	};
	struct at_work at, *w = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		at_work_member(w, &at_work_config, row[i].me, 3);
		COORDINATOR_LOST();
		int64_t lost = w->now;
		if (row[i].lost)
			LOST(2, HD_CLOSED);
		if (!row[i].first_up)
			LOST(0, HD_CLOSED);
		if (row[i].halted)
			w->m->state = HD_HALTED;
		w->m->finishing = row[i].finishing;
		tick_at(w, lost + 30 * T - 1);
		assert_int_not_equal(hd_member_state(w->m), HD_GONE);
		const char *said = tick_at(w, lost + 30 * T);
		IS(said, row[i].said);
		at_work_end(w);
	}
	/* one whose peers cannot start a coordinator, either, waits for none of them to be gone */
	struct hd_member_config config = at_work_config;
	config.none_takes_over = true;
	at_work_member(w, &config, 0, 3);
	COORDINATOR_LOST();
	tick_at(w, w->now + 30 * T - 1);
	assert_int_not_equal(hd_member_state(w->m), HD_GONE);
	IS(tick_at(w, w->now + 1), "CANCEL 0; BOUNDARY 0 writer final; EXIT 75 no coordinator for thirty "
		"times "
		"workers.detect, and no worker here can start one: `heddle resume` of the run goes on");
	at_work_end(w);
	at_work_synced(w, &at_work_config, 2);
	COORDINATOR_LOST();
	IS(tick_at(w, w->now + 40 * T), "CALL; EXIT 75 no coordinator for thirty times workers.detect");
	at_work_end(w);
}

/* What may not be saved: a step with a digest mismatch, a part of sharded state, or by a worker that
 * cannot reach the folder; what is saved already. */
static void nobody_saves_what_is_not_the_state(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	for (int row = 0; row < 3; row++) {
		at_work_member(w, &at_work_config, 0, 2);
		COORDINATOR_LOST();
		LOST(1, HD_CLOSED);
		if (row == 0)
			w->m->diverged = 1;
		if (row == 1)
			w->m->done = true;
		if (row == 2) {
			w->m->config.copies = 1;
			w->m->mine[0] = 1;
		}
		IS(tick_at(w, w->now + 31 * T),
			"CALL; EXIT 75 no coordinator for thirty times workers.detect, and a member is "
			"missing");
		at_work_end(w);
	}
	at_work_member(w, &at_work_config, 0, 2);
	w->m->config.copies = 1;
	w->m->mine[0] = 3;
	assert_true(hd_member_whole(w->m));
	w->m->updating = true;
	assert_false(hd_member_whole(w->m));
	COORDINATOR_LOST();
	LOST(1, HD_CLOSED);
	IS(tick_at(w, w->now + 31 * T), "CALL");    /* slots are being brought on */
	at_work_end(w);
}

static void progress_is_told_by_members_a_few_times_in_t(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	int64_t from = w->now + 1;
	IS(tick_at(w, from), ">co PROGRESS@1 0 4 9 busy");
	IS(tick_at(w, from + T / 4 - 1), "");
	IS(tick_at(w, from + T / 4), ">co PROGRESS@1 0 4 9 busy");
	at_work_end(w);
	at_work_synced(w, &at_work_config, 0);
	IS(tick_at(w, w->now + T), "");
	at_work_end(w);
}

static void who_wants_to_leave_goes_at_once_if_nobody_counts_on_it(void **state)
{
	static const uint32_t two[] = { 0, 1 }, three[] = { 0, 1, 2 };
	static const struct hd_vrank ranks[] = { { 0, 2 }, { 1, 1 }, { 2, 1 } };
	struct at_work at, *w = &at;
	const struct hd_member_event drain = { .kind = HD_IN_DRAIN, .code = 75, .text = "notice" };

	(void)state;
	at_work_begin(w, &at_work_config);
	IS(feed(w, drain), ">co LEAVE@0 75 gone notice; EXIT 75 notice");
	at_work_end(w);
	at_work_begin(w, &at_work_config);
	HEAR(ADMIT, .admit = { 2, 7 });
	IS(feed(w, drain), ">co LEAVE@0 75 gone notice; EXIT 75 notice");
	at_work_end(w);
	at_work_synced(w, &at_work_config, 2);
	IS(feed(w, drain), ">co LEAVE@0 75 gone notice; EXIT 75 notice");
	at_work_end(w);
	at_work_synced(w, &at_work_config, 2);
	FENCE(1);
	/* it may be a member of the view to come */
	IS(feed(w, drain), ">co LEAVE@1 75 notice");
	at_work_end(w);
	at_work_synced(w, &at_work_config, 2);
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 3,
		.member = three, .nrank = 3, .rank = ranks });
	IS(feed(w, drain), ">co LEAVE@1 75 notice");
	at_work_end(w);
	at_work_member(w, &at_work_config, 0, 2);
	IS(feed(w, drain), ">co LEAVE@1 75 notice");
	at_work_end(w);
}

static void lines_of_events_go_to_a_coordinator_that_is_there(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	IS(EVENT(NOTE, .name = "why", .text = "{}"), ">co EVENT@1 why {}");
	COORDINATOR_LOST();
	IS(EVENT(NOTE, .name = "why", .text = "{}"), "");
	at_work_end(w);
}

static void times_of_instructions_go_to_a_coordinator_that_is_there(void **state)
{
	static const struct hd_spent_kind spent[] = { { 0, 1, 2, 3, 4, 5 }, { 2, 0, 2, 3, 4, 5 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	IS(EVENT(SPENT, .step = 7, .spent = spent, .n = 2), ">co SPENT@1 7 0.1 2.0");
	COORDINATOR_LOST();
	IS(EVENT(SPENT, .step = 7, .spent = spent, .n = 2), "");
	at_work_end(w);
}

/* A joiner that lost one of those whose seals it waits for says so: it cannot know when to switch. */
static void a_newcomer_tells_of_members_that_it_waits_for(void **state)
{
	static const uint32_t two[] = { 0, 1 }, next[] = { 1, 2 };
	static const struct hd_vrank ranks[] = { { 1, 2 }, { 2, 2 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 2);
	IS(LOST(0, HD_SILENT), "");             /* before it prepares, it waits for no one */
	LOST(0, HD_HEARD);
	HEAR(PREPARE, .epoch = 1, .prepare = { .next = 2, .nold = 2, .old = two, .nmember = 2, .member = next,
		.nrank = 2, .rank = ranks });
	EVENT(PREPARED, .epoch = 2);
	IS(LOST(0, HD_SILENT), ">co SUSPECT@1 0 silent");
	IS(LOST(1, HD_SILENT), ">co SUSPECT@1 1 silent");
	LOST(0, HD_HEARD);
	IS(LOST(0, HD_CLOSED), ">co SUSPECT@1 0 closed");
	EVENT(UP, .worker = 0);
	PEER_SAYS(0, SEAL, .epoch = 1, .seal = { .step = 4, .ran = true, .knows = 2 });
	PEER_SAYS(0, SEAL, .epoch = 1, .seal = { .step = 5, .ran = true, .knows = 2 });
	PEER_SAYS(1, SEAL, .epoch = 1, .seal = { .step = 4, .ran = true, .knows = 1 });
	PEER_SAYS(1, SEAL, .epoch = 1, .seal = { .step = 5, .ran = true, .knows = 2 });
	IS(LOST(0, HD_CLOSED), "");             /* all that it needs of that one is here */
	IS(LOST(1, HD_CLOSED), ">co SUSPECT@1 1 closed");
	at_work_end(w);
}

/* Messages between members: others than those that members say to each other, or of strangers, do nothing. */
static void members_do_not_command_each_other(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	IS(PEER_SAYS(1, FENCE, .term = 9, .epoch = 9), "");
	IS(PEER_SAYS(1, RELEASE, .term = 9), "");
	IS(HEAR(SEAL, .epoch = 1, .seal = { .ran = true }), "");
	at_work_end(w);
	at_work_synced(w, &at_work_config, 0);
	IS(PEER_SAYS(1, HALT, .halt = { 0 }), "");      /* it is no member */
	IS(PEER_SAYS(1, SEAL, .seal = { .ran = true }), "");
	FENCE(1);
	IS(VIEW(1, 2, .step = 0), "ADOPT 1 of 2; BOUNDARY 0 writer");
	at_work_end(w);
}

/* ---- memory ---- */

static void a_machine_without_memory_is_not_made(void **state)
{
	struct hd_member *m = NULL;
	uint64_t n = 1;

	(void)state;
	for (;; n++) {
		hd_alloc_arm(n);
		enum hd_err err = hd_member_create(&m, &at_work_config, NULL);
		hd_alloc_arm(0);
		if (!err)
			break;
		assert_int_equal(err, HD_E_NOMEM);
		assert_null(m);
	}
	assert_true(n > 12);
	hd_member_destroy(m);
	hd_member_destroy(NULL);
}

/* Each event of a life in which everything comes by. */
static void life(struct at_work *w, uint32_t upto, size_t budget)
{
	static const struct hd_have all = { 0, 7 };
	static const struct hd_pass pass[] = { { 0, 0, 0, 1, 0 }, { 1, 0, 1, 1, 0 }, { 2, 0, 2, 1, 0 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 1 }, { 3, 1 } };
	struct hd_member_config config = at_work_config;
	uint32_t n = 0;

	config.copies = 2;
	config.takes_over = true;
	memset(w, 0, sizeof *w);
	w->term = 1;
	assert_int_equal(hd_member_create(&w->m, &config, NULL), HD_OK);
#define THEN(act) do { if (n++ == upto) { w->m->out.budget_bytes = budget; act; return; } act; } while (0)
	THEN(COORDINATOR_UP());
	THEN(HEAR(ADMIT, .admit = { 0, 7 }));
	THEN(EVENT(WARMED_UP));
	THEN(EVENT(NOTE, .name = "why", .text = "{}"));
	THEN(HEAR(SYNC, .sync = { HD_NOBODY, 0 }));
	THEN(EVENT(SYNCED, AT(0)));
	THEN(HEAR(PEER, .peer = { .worker = 1, .naddress = 1, .address = "b" }));
	EVENT(UP, .worker = 2);
	THEN(FENCE(1));
	THEN(VIEW(1, 3, .step = 0, .nchain = 1, .chain = &(struct hd_have){ 0, 2 }));
	THEN(EVENT(UP, .worker = 1));
	THEN(EVENT(READY, AT(0)));
	THEN(EVENT(COMPUTED, AT(0)));
	EVENT(ROOT, .epoch = 1, .worker = 1, AT(0));
	THEN(EVENT(ROOT, .epoch = 1, .worker = 2, AT(0)));
	THEN(EVENT(FOLDED, AT(0)));
	THEN(EVENT(FETCHED, .epoch = 1, AT(0)));
	EVENT(NORM, .epoch = 1, .worker = 1, .bucket = 1, AT(0));
	EVENT(LEAVES, .epoch = 1, .worker = 1, AT(0));
	EVENT(LEAVES, .epoch = 1, .worker = 2, AT(0));
	THEN(PEER_SAYS(2, SLOTTED, .epoch = 1, .halt = { 0 }));
	THEN(EVENT(UPDATED_OWN, AT(0)));
	THEN(EVENT(PARM, .epoch = 1, .worker = 2, .bucket = 1, AT(0)));
	THEN(EVENT(UPDATED, AT(0), .news = &none, .state_digest = 3));
	THEN(PEER_SAYS(1, SEAL, .epoch = 1, .seal = { .step = 0, .ran = true, .state_digest = 4 }));
	THEN(FENCE(2));
	THEN(VIEW(2, 3, .step = 0, .npass = 3, .pass = pass, .nrange = 3, .range = range, .nhave = 1,
		.have = &all, .nchain = 1, .chain = &all, .table = 1,
		.nat = 3, .at = (const uint64_t[]){ 1, 0, 0 }));
	THEN(EVENT(TICK));
	THEN(LOST(1, HD_CLOSED));
	COORDINATOR_LOST();
	THEN(COORDINATOR_UP());
	HEAR(STOP, .stop = { .code = 75 });
	w->m->diverged = 0;
	THEN(EVENT(READY, AT(1)));
	THEN(EVENT(READY, AT(1)));
	THEN(EVENT(DRAIN, .code = 75, .text = "x"));
	COORDINATOR_LOST();
	THEN(tick_at(w, w->now + 3 * T));
	THEN(tick_at(w, w->now + 40 * T));
#undef THEN
	w->len = SIZE_MAX;
}

/* At whichever request memory is out: the machine leaves with that code, and nothing else is done. */
static void a_machine_that_runs_out_of_memory_leaves(void **state)
{
	static char said[sizeof ((struct at_work *)0)->text];
	uint32_t tried = 0;

	(void)state;
	for (uint32_t upto = 0;; upto++) {
		struct at_work at, *w = &at;
		life(w, upto, 0);
		bool over = w->len == SIZE_MAX;
		bool asks = w->done.n > 0 && !strstr(w->text, "EXIT");
		memcpy(said, w->text, sizeof said);
		at_work_end(w);
		if (over)
			break;
		for (size_t budget = 64; asks; budget += 64) {
			life(w, upto, budget);
			bool broken = w->m->broken;
			if (broken) {
				CHECK(w->done.n == 1 && w->done.at[0].kind == HD_DO_EXIT &&
					w->done.at[0].code == 11,
					"event %u, %zu bytes: %s", upto, budget, w->text);
				tried++;
			} else {
				IS(w->text, said);        /* nothing was left out unnoticed */
			}
			at_work_end(w);
			if (!broken)
				break;
		}
	}
	CHECK(tried > 60, "%u times", tried);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_joins_and_syncs),
		cmocka_unit_test(a_coordinator_of_an_earlier_term_is_not_heard),
		cmocka_unit_test(all_that_awaits_an_answer_is_said_again),
		cmocka_unit_test(seals_that_a_coordinator_may_lack_are_said_again),
		cmocka_unit_test(links_to_members_that_close_are_told),
		cmocka_unit_test(whoever_came_later_calls),
		cmocka_unit_test(room_for_a_peer_is_made_of_one_who_takes_no_part),
		cmocka_unit_test(a_member_without_a_coordinator_calls_and_takes_over),
		cmocka_unit_test(members_that_cannot_go_on_without_a_coordinator_save_and_leave),
		cmocka_unit_test(nobody_saves_what_is_not_the_state),
		cmocka_unit_test(progress_is_told_by_members_a_few_times_in_t),
		cmocka_unit_test(who_wants_to_leave_goes_at_once_if_nobody_counts_on_it),
		cmocka_unit_test(lines_of_events_go_to_a_coordinator_that_is_there),
		cmocka_unit_test(times_of_instructions_go_to_a_coordinator_that_is_there),
		cmocka_unit_test(a_newcomer_tells_of_members_that_it_waits_for),
		cmocka_unit_test(members_do_not_command_each_other),
		cmocka_unit_test(a_machine_without_memory_is_not_made),
		cmocka_unit_test(a_machine_that_runs_out_of_memory_leaves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
