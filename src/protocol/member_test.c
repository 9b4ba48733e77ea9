#include "protocol/member.h"

#include <string.h>

#include "tests/check.h"

/* Events that come too late, which the simulation's worker holds back as the runtime does: the machine needs
 * neither. Worker 0 of 0 and 1, which own nothing but one bucket (0 does) and two virtual nodes. */
struct member_rig { struct hd_member *m; struct hd_view view; int64_t now; };

static struct hd_member_actions feed(struct member_rig *w,
	struct hd_member_event event) { return hd_member_step(w->m, &event, ++w->now); }

static struct hd_member_actions hear(struct member_rig *w, struct hd_msg msg)
{
	msg.term = 1;
	return feed(w, (struct hd_member_event){ .kind = HD_IN_MESSAGE, .worker = HD_COORDINATOR,
		.msg = &msg });
}

static uint32_t count(struct hd_member_actions done, enum hd_member_action_kind kind)
{
	uint32_t n = 0;

	for (size_t i = 0; i < done.n; i++)
		n += done.at[i].kind == kind;
	return n;
}

/* FENCE, and the view of all `n` from step 0 on, in which nothing is there yet. */
static struct hd_member_actions enter(struct member_rig *w, uint32_t epoch, uint32_t n, bool again,
	bool afresh)
{
	static const uint32_t member[] = { 0, 1 }, ndevices[] = { 1, 1 };
	static const uint64_t at[] = { 0, 0 };
	struct hd_passes passes = { 0 };
	const struct hd_have no_holder = { 0, 0 }, other = { 0, 2 };

	hd_view_even(&w->view, epoch, member, ndevices, n, 2);
	assert_int_equal(hd_passes_of_view(&passes, &w->view), HD_OK);
	hear(w, (struct hd_msg){ .kind = HD_MSG_FENCE, .epoch = epoch });
	struct hd_msg msg = { .kind = HD_MSG_VIEW, .epoch = epoch,
		.view = { .afresh = afresh, .hold = afresh, .halt = HD_NO_STEP,
		.nmember = n, .member = member, .nat = n, .at = at, .nrank = w->view.nranks,
		.rank = w->view.rank, .nchain = 1, .chain = &other } };
	if (again) {
		msg.view.npass = passes.npasses;
		msg.view.pass = passes.pass;
		msg.view.nrange = passes.nranges;
		msg.view.range = passes.range;
		msg.view.nhave = 1;
		msg.view.have = &no_holder;
	}
	return hear(w, msg);
}

/* Both have begun step 0 in epoch 1. Sharded state: worker 1 alone has slots. */
static void set_up(struct member_rig *w, uint32_t copies)
{
	const struct hd_member_config config = { .nvns = 2, .nbuckets = 1, .copies = copies, .nsteps = 9,
		.detect_ns = 1000000000, .ndevices = 1,
		.nonce = 7 };
	uint32_t begun;

	memset(w, 0, sizeof *w);
	assert_int_equal(hd_member_create(&w->m, &config, NULL), HD_OK);
	feed(w, (struct hd_member_event){ .kind = HD_IN_UP, .worker = HD_COORDINATOR });
	hear(w, (struct hd_msg){ .kind = HD_MSG_ADMIT, .admit = { 0, 7 } });
	feed(w, (struct hd_member_event){ .kind = HD_IN_WARMED_UP });
	hear(w, (struct hd_msg){ .kind = HD_MSG_SYNC, .sync = { copies ? 1 : HD_NOBODY, 0 } });
	feed(w, (struct hd_member_event){ .kind = HD_IN_SYNCED, .step = 0 });
	hear(w, (struct hd_msg){ .kind = HD_MSG_PEER, .peer = { .worker = 1, .naddress = 1,
		.address = "1" } });
	feed(w, (struct hd_member_event){ .kind = HD_IN_UP, .worker = 1 });
	assert_int_equal(count(enter(w, 1, 2, false, false), HD_DO_BOUNDARY), 1);
	begun = count(feed(w, (struct hd_member_event){ .kind = HD_IN_READY, .step = 0 }), HD_DO_BEGIN);
	assert_int_equal(begun, 1);
}

static void a_root_of_an_earlier_epoch_counts_for_nothing(void **state)
{
	struct member_rig w;

	(void)state;
	set_up(&w, 0);
	assert_int_equal(count(enter(&w, 2, 2, true, false), HD_DO_AGAIN), 1);
	assert_int_equal(count(feed(&w, (struct hd_member_event){ .kind = HD_IN_COMPUTED, .step = 0 }),
		HD_DO_FOLD), 0);
	assert_int_equal(count(feed(&w, (struct hd_member_event){ .kind = HD_IN_ROOT, .epoch = 1,
		.worker = 1 }), HD_DO_FOLD), 0);
	assert_int_equal(count(feed(&w, (struct hd_member_event){ .kind = HD_IN_ROOT, .epoch = 2,
		.worker = 1 }), HD_DO_FOLD), 1);
	hd_member_destroy(w.m);
}

static void what_was_computed_for_a_cancelled_step_counts_for_nothing(void **state)
{
	struct member_rig w;

	(void)state;
	set_up(&w, 0);
	assert_int_equal(count(enter(&w, 2, 1, false, true), HD_DO_CANCEL), 1);
	assert_true(hd_member_holds(w.m));
	assert_int_equal(feed(&w, (struct hd_member_event){ .kind = HD_IN_COMPUTED, .step = 0 }).n, 0);
	assert_int_equal(count(enter(&w, 3, 2, false, false), HD_DO_BEGIN), 1);
	assert_int_equal(count(feed(&w, (struct hd_member_event){ .kind = HD_IN_ROOT, .epoch = 3,
		.worker = 1 }), HD_DO_FOLD), 0);
	assert_int_equal(count(feed(&w, (struct hd_member_event){ .kind = HD_IN_COMPUTED, .step = 0 }),
		HD_DO_FOLD), 1);
	hd_member_destroy(w.m);
}

static const struct hd_msg_status *status_in(struct hd_member_actions done)
{
	for (size_t i = 0; i < done.n; i++)
		if (done.at[i].kind == HD_DO_SEND && done.at[i].msg->kind == HD_MSG_STATUS)
			return &done.at[i].msg->status;
	return NULL;
}

/* Else the coordinator takes them for lost, and everybody begins again from the disk. */
static void slots_that_come_after_a_status_are_told(void **state)
{
	struct member_rig w;

	(void)state;
	set_up(&w, 2);
	const struct hd_msg_status *status = status_in(hear(&w,
		(struct hd_msg){ .kind = HD_MSG_FENCE, .epoch = 2 }));
	assert_non_null(status);
	assert_int_equal(status->slot[0], 0);
	status = status_in(feed(&w, (struct hd_member_event){ .kind = HD_IN_FETCHED, .epoch = 1,
		.step = 0 }));
	assert_non_null(status);
	assert_int_equal(status->slot[0], 1);
	hd_member_destroy(w.m);
}

static uint64_t given_up_in(struct hd_member_actions done)
{
	for (size_t i = 0; i < done.n; i++)
		if (done.at[i].kind == HD_DO_SEND && done.at[i].msg->kind == HD_MSG_READY_TO_SYNC)
			return done.at[i].msg->ready_to_sync.given_up;
	return UINT64_MAX;
}

/* Also to a coordinator that comes back; not once it syncs again. */
static void the_transfer_that_its_source_gave_up_is_named(void **state)
{
	const struct hd_member_config config = { .nvns = 2, .nbuckets = 1, .nsteps = 9,
		.detect_ns = 1000000000, .ndevices = 1, .nonce = 7 };
	const struct hd_member_event up = { .kind = HD_IN_UP, .worker = HD_COORDINATOR },
		lost = { .kind = HD_IN_LOST, .worker = HD_COORDINATOR,
		.why = HD_CLOSED, .text = "" };
	struct member_rig w = { 0 };

	(void)state;
	assert_int_equal(hd_member_create(&w.m, &config, NULL), HD_OK);
	feed(&w, up);
	hear(&w, (struct hd_msg){ .kind = HD_MSG_ADMIT, .admit = { 5, 7 } });
	assert_int_equal(given_up_in(feed(&w, (struct hd_member_event){ .kind = HD_IN_WARMED_UP })), 0);
	hear(&w, (struct hd_msg){ .kind = HD_MSG_SYNC, .sync = { 0, 12 } });
	assert_int_equal(given_up_in(feed(&w, (struct hd_member_event){ .kind = HD_IN_SYNC_LOST,
		.slow = true })), 12);
	feed(&w, lost);
	assert_int_equal(given_up_in(feed(&w, up)), 12);
	hear(&w, (struct hd_msg){ .kind = HD_MSG_SYNC, .sync = { 0, 13 } });
	assert_int_equal(given_up_in(feed(&w, (struct hd_member_event){ .kind = HD_IN_SYNC_LOST })), 0);
	hd_member_destroy(w.m);
}

static const struct hd_msg_done *done_in(struct hd_member_actions done)
{
	for (size_t i = 0; i < done.n; i++)
		if (done.at[i].kind == HD_DO_SEND && done.at[i].msg->kind == HD_MSG_DONE)
			return &done.at[i].msg->done;
	return NULL;
}

/* Worker 1 said that step 0 must not be run, and why the checkpoint writer does not know: it was asked
 * to stop, or X_0 is what was wanted, which the checkpoint writer sees as well. */
static void a_halt_whose_reason_is_not_known_is_no_success(void **state)
{
	static const struct { bool stop, target; uint32_t code; } row[] = { { false, false, 75 },
		{ false, true, 0 }, { true, false, 130 },
		{ true, true, 130 } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct member_rig w;
		set_up(&w, 0);
		if (row[i].stop)
			hear(&w, (struct hd_msg){ .kind = HD_MSG_STOP, .stop = { .code = 130 } });
		feed(&w, (struct hd_member_event){ .kind = HD_IN_MESSAGE, .worker = 1,
			.msg = &(struct hd_msg){ .kind = HD_MSG_HALT, .term = 1, .epoch = 1 } });
		const struct hd_msg_done *done = done_in(feed(&w,
			(struct hd_member_event){ .kind = HD_IN_READY, .step = 0, .halt = row[i].target }));
		CHECK(done && done->code == row[i].code && done->step == 0, "row %zu: %u", i,
			done ? done->code : UINT32_MAX);
		hd_member_destroy(w.m);
	}
}

/* Its coordinator may have died before anybody joined: whoever has the run's folder starts another, in a
 * while and again. */
static void who_never_met_a_coordinator_takes_over_too(void **state)
{
	struct hd_member_config config = { .nvns = 2, .nbuckets = 1, .nsteps = 9, .detect_ns = 1000000000,
		.ndevices = 1 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct member_rig w = { .now = 5 };
		config.takes_over = i != 3;               /* a remote one cannot */
		config.nonce = 3 + 16 * (uint64_t)i;
		assert_int_equal(hd_member_create(&w.m, &config, NULL), HD_OK);
		feed(&w, (struct hd_member_event){ .kind = HD_IN_TICK });
		if (i == 1) {                             /* it met one, which died before it said an id */
			feed(&w, (struct hd_member_event){ .kind = HD_IN_UP, .worker = HD_COORDINATOR });
			feed(&w, (struct hd_member_event){ .kind = HD_IN_LOST, .worker = HD_COORDINATOR,
				.why = HD_CLOSED });
		}
		int64_t from = w.now;
		w.now = from + 2374999990;                /* 2 T, and three eighths for its place */
		assert_int_equal(count(feed(&w, (struct hd_member_event){ .kind = HD_IN_TICK }),
			HD_DO_TAKE_OVER), 0);
		w.now = from + 2375000000;
		assert_int_equal(count(feed(&w, (struct hd_member_event){ .kind = HD_IN_TICK }),
			HD_DO_TAKE_OVER), i != 3);
		assert_int_equal(count(feed(&w, (struct hd_member_event){ .kind = HD_IN_TICK }),
			HD_DO_TAKE_OVER), 0);
		w.now += 2000000000;
		assert_int_equal(count(feed(&w, (struct hd_member_event){ .kind = HD_IN_TICK }),
			HD_DO_TAKE_OVER), i != 3);
		hd_member_destroy(w.m);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_root_of_an_earlier_epoch_counts_for_nothing),
		cmocka_unit_test(what_was_computed_for_a_cancelled_step_counts_for_nothing),
		cmocka_unit_test(slots_that_come_after_a_status_are_told),
		cmocka_unit_test(who_never_met_a_coordinator_takes_over_too),
		cmocka_unit_test(a_halt_whose_reason_is_not_known_is_no_success),
		cmocka_unit_test(the_transfer_that_its_source_gave_up_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
