#include "protocol/coordinator_int.h"

#include <string.h>

#include "tests/check.h"

/* Rules that the simulation seldom comes by: a view in force, made by hand, and what is opened next. */
enum { GUEST = HD_REMOTE_WORKER };

static struct hd_coordinator *at_rest(uint32_t max, uint32_t target, const uint32_t *member, uint32_t n)
{
	const struct hd_co_config config = { .nvns = 16, .nbuckets = 1, .min = 1, .max = max,
		.target = target, .detect_ns = 1000000000,
		.min_wait_ns = 1000000000 };
	struct hd_coordinator *co = NULL;

	assert_int_equal(hd_coordinator_create(&co, &config, 1, NULL), HD_OK);
	co->phase = HD_CO_IDLE;
	co->has_view = true;
	co->record.started = true;
	co->record.epoch = co->view.epoch = 1;
	co->view.nmembers = n;
	memcpy(co->view.member, member, n * sizeof *member);
	for (uint32_t i = 0; i < n; i++) {
		struct hd_co_worker *w = hd_co_place(co);
		w->state = HD_W_MEMBER;
		w->worker = member[i];
		w->ndevices = w->spoke = 1;
		w->up = true;
	}
	co->noted_target = hd_co_wanted(co);
	return co;
}

/* As the first of its members, but that it is none yet. */
static void is_ready_too(struct hd_coordinator *co, uint32_t worker)
{
	struct hd_co_worker *w = hd_co_place(co);

	*w = co->worker[0];
	w->state = HD_W_READY;
	w->worker = worker;
}

static bool is_next(const struct hd_coordinator *co, const uint32_t *member, uint32_t n)
{
	return co->phase == HD_CO_NUMBERING && co->next.nmembers == n &&
		!memcmp(co->next.member, member, n * sizeof *member);
}

static const char *note_of(struct hd_co_actions done, const char *name)
{
	for (size_t i = 0; i < done.n; i++)
		if (done.at[i].kind == HD_CO_DO_NOTE && !strcmp(done.at[i].name, name))
			return done.at[i].text;
	return "";
}

static void fewer_local_workers_keep_those_of_other_machines(void **state)
{
	const uint32_t member[] = { 0, 1, 2, 3, GUEST + 4 }, next[] = { 0, 1, GUEST + 4 };
	struct hd_coordinator *co = at_rest(8, 4, member, 5);
	struct hd_co_status status;

	(void)state;
	struct hd_co_actions done = hd_coordinator_step(co,
		&(struct hd_co_event){ .kind = HD_CO_IN_SCALE, .n = 2 }, 2);
	CHECK(!strcmp(note_of(done, "scale"), "3 workers are wanted, 1 of them of other machines"), "%s",
		note_of(done, "scale"));
	CHECK(is_next(co, next, 3), "%u members, the last %u", co->next.nmembers,
		co->next.member[co->next.nmembers - 1]);
	hd_coordinator_status(co, &status);
	assert_int_equal(status.asked, 2);
	assert_int_equal(status.target, 3);
	hd_coordinator_destroy(co);
}

static void one_of_another_machine_that_goes_takes_nothing_from_what_was_asked_for(void **state)
{
	const uint32_t member[] = { 0, 1, GUEST + 2 };
	struct hd_coordinator *co = at_rest(8, 2, member, 3);
	struct hd_co_status status;

	(void)state;
	struct hd_co_actions done = hd_coordinator_step(co,
		&(struct hd_co_event){ .kind = HD_CO_IN_DRAIN, .worker = GUEST + 2, .code = 75 }, 2);
	CHECK(!strcmp(note_of(done, "scale"), "2 workers are wanted"), "%s", note_of(done, "scale"));
	hd_coordinator_status(co, &status);
	assert_int_equal(status.asked, 2);
	assert_int_equal(status.target, 2);
	assert_true(is_next(co, member, 2));
	hd_coordinator_destroy(co);
}

static void a_place_is_kept_for_one_who_can_save(void **state)
{
	const uint32_t member[] = { GUEST + 1, GUEST + 2, GUEST + 3, GUEST + 4 },
		next[] = { 5, GUEST + 1, GUEST + 2, GUEST + 3 };
	struct hd_coordinator *co = at_rest(4, 2, member, 4);

	(void)state;
	is_ready_too(co, 5);
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_REPLAN }, 2);
	CHECK(is_next(co, next, 4), "%u members, the first %u", co->next.nmembers, co->next.member[0]);
	hd_coordinator_destroy(co);
}

/* Whoever loaded the state and cannot be asked just now is waited for: an epoch opened without it would
 * be empty, and so would the next. */
static void nobody_is_asked_to_begin_whose_link_is_down(void **state)
{
	const uint32_t member[] = { 7 };
	struct hd_coordinator *co = at_rest(4, 1, member, 1);

	(void)state;
	co->phase = HD_CO_START;
	co->has_view = co->record.started = false;
	co->worker[0].state = HD_W_READY;
	co->worker[0].up = false;
	co->worker[0].lost_ns = 1;
	struct hd_co_actions done = hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK },
		2);
	/* STORED comes at once, as in the runtime */
	for (uint32_t i = 0; i < 20 && done.n; i++)
		done = hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_STORED,
			.serial = co->record.serial, .ok = true }, 2);
	CHECK(co->phase == HD_CO_START && co->record.epoch == 1, "epoch %u, phase %u", co->record.epoch,
		(unsigned)co->phase);
	co->worker[0].up = true;
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, 3);
	assert_int_equal(co->phase, HD_CO_FENCING);
	assert_int_equal(co->record.epoch, 2);
	hd_coordinator_destroy(co);
}

static const struct hd_msg *said_in(struct hd_co_actions done, enum hd_msg_kind kind, uint32_t to)
{
	for (size_t i = 0; i < done.n; i++)
		if (done.at[i].kind == HD_CO_DO_SEND && done.at[i].msg->kind == kind &&
			done.at[i].worker == to)
			return done.at[i].msg;
	return NULL;
}

/* A planned change has taken a number since, and came to nothing: of that epoch no view will come. */
static void who_comes_back_is_asked_in_the_epoch_of_its_view(void **state)
{
	const uint32_t member[] = { 0, 1 };
	struct hd_coordinator *co = at_rest(4, 2, member, 2);
	const struct hd_msg again = { .kind = HD_MSG_JOIN, .epoch = 1,
		.join = { .worker = 1, .member = true, .ndevices = 1 } };

	(void)state;
	co->view_epoch = 1;
	co->record.epoch = 2;
	struct hd_co_actions done = hd_coordinator_step(co,
		&(struct hd_co_event){ .kind = HD_CO_IN_MESSAGE, .worker = 1, .msg = &again }, 2);
	const struct hd_msg *fence = said_in(done, HD_MSG_FENCE, 1), *view = said_in(done, HD_MSG_VIEW, 1);
	assert_non_null(fence);
	assert_non_null(view);
	assert_int_equal(fence->epoch, 1);
	assert_int_equal(view->epoch, 1);
	hd_coordinator_destroy(co);
}

/* After a planned change there is no view to repeat, and its number says so by 0: an answer of epoch 0, in
 * which no coordinator asks, means no view. */
static void an_answer_of_epoch_0_is_sent_no_view(void **state)
{
	static const struct { uint32_t view, answer; bool sent; } cases[] = {
		{ 1, 1, true }, { 1, 0, false }, { 0, 0, false }, { 0, 1, false }, { 1, 2, false } };
	const uint32_t member[] = { 0, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_coordinator *co = at_rest(4, 2, member, 2);
		const struct hd_msg answer = { .kind = HD_MSG_STATUS, .epoch = cases[i].answer,
			.status = { .member = true } };
		co->view_epoch = cases[i].view;
		struct hd_co_actions done = hd_coordinator_step(co,
			&(struct hd_co_event){ .kind = HD_CO_IN_MESSAGE, .worker = 1, .msg = &answer }, 2);
		CHECK(!said_in(done, HD_MSG_VIEW, 1) == !cases[i].sent,
			"an answer of epoch %u while the view is of epoch %u (0: none)", cases[i].answer,
			cases[i].view);
		hd_coordinator_destroy(co);
	}
}

static bool was_asked_for(struct hd_co_actions done, uint32_t n)
{
	for (size_t i = 0; i < done.n; i++)
		if (done.at[i].kind == HD_CO_DO_SPAWN)
			return done.at[i].n == n;
	return false;
}

static void who_is_being_replaced_goes_when_another_is_ready(void **state)
{
	const uint32_t member[] = { 0, 1, GUEST + 2 }, next[] = { 1, 5, GUEST + 2 };
	struct hd_coordinator *co = at_rest(8, 2, member, 3);

	(void)state;
	for (int again = 0; again < 2; again++) {         /* the checkpoint writer; it may be said twice */
		struct hd_co_actions done = hd_coordinator_step(co,
			&(struct hd_co_event){ .kind = HD_CO_IN_REPLACE, .worker = 0, .ok = true }, 2);
		assert_int_equal(was_asked_for(done, 1), !again);
		assert_int_equal(co->phase, HD_CO_IDLE);  /* nothing changes before that one is here */
	}
	struct hd_co_actions guest = hd_coordinator_step(co,
		&(struct hd_co_event){ .kind = HD_CO_IN_REPLACE, .worker = GUEST + 2, .ok = true }, 2);
	CHECK(!was_asked_for(guest, 1), "none can be started on another machine");
	is_ready_too(co, 5);
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, 2);
	CHECK(is_next(co, next, 3), "%u members, the first %u", co->next.nmembers, co->next.member[0]);
	hd_coordinator_destroy(co);
}

static void who_is_to_stay_after_all_stays(void **state)
{
	const uint32_t member[] = { 0, 1 };
	struct hd_coordinator *co = at_rest(8, 2, member, 2);

	(void)state;
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_REPLACE, .worker = 0, .ok = true },
		2);
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_REPLACE, .worker = 0, .ok = false },
		2);
	is_ready_too(co, 5);
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, 2);
	assert_int_equal(co->phase, HD_CO_IDLE);
	hd_coordinator_destroy(co);
}

static struct hd_co_actions hear(struct hd_coordinator *co, uint32_t from, struct hd_msg msg)
{
	msg.term = co->record.term;
	return hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_MESSAGE, .worker = from,
		.msg = &msg }, co->now_ns + 1);
}

/* T is a second; a standby syncs as soon as it may. */
static void a_joiner_that_is_too_slow_is_put_in_backoff(void **state)
{
	const uint32_t member[] = { 0 };
	struct hd_coordinator *co = at_rest(8, 2, member, 1);
	struct hd_co_worker *w = hd_co_place(co);

	(void)state;
	*w = co->worker[0];
	w->worker = 5;
	w->state = HD_W_STANDBY;
	w->source = w->guest = HD_NOBODY;
	w->ready_to_sync = true;
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, 2);
	for (uint32_t i = 0; i < 12; i++) {
		const int64_t pause = INT64_C(2000000000) << (i < 9 ? i : 9);
		assert_int_equal(w->state, HD_W_SYNCING);
		uint64_t transfer = w->transfer;
		/* its source is gone, or any other reason */
		struct hd_co_actions done = hear(co, 5, (struct hd_msg){ .kind = HD_MSG_READY_TO_SYNC });
		CHECK(w->state == HD_W_SYNCING && w->transfer != transfer && !*note_of(done, "aside"),
			"it syncs again at once");
		/* of the transfer before */
		done = hear(co, 5, (struct hd_msg){ .kind = HD_MSG_READY_TO_SYNC,
			.ready_to_sync = { transfer } });
		CHECK(w->state == HD_W_SYNCING && !*note_of(done, "aside"), "what is past is past");
		done = hear(co, 5, (struct hd_msg){ .kind = HD_MSG_READY_TO_SYNC,
			.ready_to_sync = { w->transfer } });
		assert_int_equal(w->state, HD_W_BACKOFF);
		CHECK(strstr(note_of(done, "aside"), "too slow"), "%s", note_of(done, "aside"));
		int64_t until = co->now_ns + pause;
		/* repeated: its link was down */
		done = hear(co, 5, (struct hd_msg){ .kind = HD_MSG_READY_TO_SYNC,
			.ready_to_sync = { w->transfer } });
		CHECK(w->state == HD_W_BACKOFF && !*note_of(done, "aside"), "it backs off once");
		hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, until - 1);
		CHECK(w->state == HD_W_BACKOFF, "pause %u ended early", i);
		hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, until);
	}
	for (uint32_t i = 0; i < 2; i++) {                /* a number is asked for; another view */
		hear(co, 5, (struct hd_msg){ .kind = HD_MSG_READY_TO_SYNC,
			.ready_to_sync = { w->transfer } });
		assert_int_equal(w->state, HD_W_BACKOFF);
		if (i == 0) {
			hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_SCALE, .n = 2 },
				co->now_ns);
		} else {
			co->next = co->view;
			co->phase = HD_CO_DECIDED;
			hd_co_switched(co);
			hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, co->now_ns);
		}
		CHECK(w->state == HD_W_SYNCING && w->given_up == 0, "row %u: %s", i,
			hd_co_worker_state_name(w->state));
	}
	hd_coordinator_destroy(co);
}

/* A worker in BACKOFF takes up no room. */
static void another_one_is_synced_while_one_is_in_backoff(void **state)
{
	const uint32_t member[] = { 0 };
	struct hd_coordinator *co = at_rest(8, 2, member, 1);

	(void)state;
	for (uint32_t i = 1; i < 3; i++) {
		struct hd_co_worker *w = hd_co_place(co);
		*w = co->worker[0];
		w->worker = 4 + i;
		w->source = w->guest = HD_NOBODY;
		w->ready_to_sync = true;
		w->state = i == 1 ? HD_W_BACKOFF : HD_W_STANDBY;
		w->retry_at_ns = INT64_MAX;
	}
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, 2);
	assert_int_equal(co->worker[1].state, HD_W_BACKOFF);
	assert_int_equal(co->worker[2].state, HD_W_SYNCING);
	hd_coordinator_destroy(co);
}

/* One got the word that the step is begun afresh, and splits it again; the other still holds what it
 * computed before. */
static void what_was_computed_twice_is_begun_afresh(void **state)
{
	const uint32_t member[] = { 0, 1 };

	(void)state;
	for (int twice = 0; twice < 2; twice++) {
		struct hd_coordinator *co = at_rest(8, 2, member, 2);
		for (uint32_t i = 0; i < 2; i++) {
			struct hd_co_worker_answer *a = &co->worker[i].answer;
			a->said = a->member = a->begun = true;
			a->at = 3;
			assert_int_equal(hd_passes_add(&a->passes, i, 0,
				&(struct hd_vrange){ i ? 4 - (uint32_t)twice : 0, 4 }, 1), HD_OK);
		}
		co->phase = HD_CO_FENCING;
		co->phase_serial = co->record.serial = 5;
		const struct hd_co_event stored = { .kind = HD_CO_IN_STORED, .serial = co->record.serial,
			.ok = true };
		struct hd_co_actions done = hd_coordinator_step(co, &stored, 2);
		CHECK((*note_of(done, "afresh") != 0) == twice, "row %d: %s", twice, note_of(done, "view"));
		hd_coordinator_destroy(co);
	}
}

/* Of three members the last is another each time, and newly there; `verified` was the same at all of them
 * before. */
static struct hd_co_actions mismatch(struct hd_coordinator *co, uint64_t verified, uint64_t step)
{
	co->phase = HD_CO_IDLE;
	co->has_view = true;
	co->verified = verified;
	for (uint32_t i = 0; i < 3; i++) {
		co->worker[i].state = HD_W_MEMBER;
		co->worker[i].up = true;
		co->worker[i].sealed = step + 1;
		hd_co_on_digests(co, &co->worker[i], &(struct hd_msg_seal){ .step = step, .ran = true,
			.state_digest = i == 2 ? 8 : 7 });
	}
	return hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, co->now_ns + 1);
}

/* A memory that gives wrong bits at any step, in a run that never comes as far as its first checkpoint.
 * The step mismatched last is not what is to be passed: 32 is beyond 20, and 45 was mismatched before. */
static void it_is_no_accident_when_nothing_newer_was_the_same_at_all(void **state)
{
	static const struct { uint64_t verified, step; bool ends; } row[] = { { 16, 30, false },
		{ 32, 45, false }, { 16, 20, false }, { 32, 37, true } };
	const uint32_t member[] = { 0, 1, 2 };
	struct hd_coordinator *co = at_rest(8, 3, member, 3);

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_co_actions done = mismatch(co, row[i].verified, row[i].step);
		CHECK((co->phase == HD_CO_ENDING && co->end_code == 5) == row[i].ends,
			"row %zu: phase %u, code %u", i, (unsigned)co->phase, co->end_code);
		assert_true(*note_of(done, row[i].ends ? "integrity" : "corrupt"));
	}
	hd_coordinator_destroy(co);
}

static struct hd_co_record stored_of(struct hd_co_actions done)
{
	struct hd_co_record record = { .serial = 0 };

	for (size_t i = 0; i < done.n; i++)
		if (done.at[i].kind == HD_CO_DO_STORE)
			record = *done.at[i].record;
	return record;
}

/* Each is killed when it has had a worker go: the next one knows how often it was. */
static void tries_are_counted_whichever_coordinators_do(void **state)
{
	const uint32_t member[] = { 0, 1, 2 };
	struct hd_co_record record = { .serial = 0 };

	(void)state;
	for (uint32_t i = 1; i <= 3; i++) {
		struct hd_coordinator *co = at_rest(8, 3, member, 3);
		co->record.mismatches = record.mismatches;
		co->record.mismatched = record.mismatched;
		record = stored_of(mismatch(co, 16, 20));
		CHECK((co->phase == HD_CO_ENDING) == (i == 3), "coordinator %u: phase %u", i,
			(unsigned)co->phase);
		/* one that is killed before the others know of the end: the next one gives up too */
		assert_int_equal(record.mismatches, i);
		assert_int_equal(record.mismatched, 20);
		hd_coordinator_destroy(co);
	}
}

/* Another one in the place of that of `record`, with the same members. */
static struct hd_coordinator *after(const struct hd_co_record *record, const uint32_t *member, uint32_t n,
	bool begun)
{
	struct hd_co_config config = { .nvns = 16, .nbuckets = 1, .min = 1, .max = 8, .target = n,
		.detect_ns = 1000000000, .min_wait_ns = 100000000000,
		.nsteps = 80, .record = *record };
	struct hd_coordinator *co = NULL;

	config.record.started = begun;
	config.record.nmembers = begun ? n : 0;
	if (n)
		memcpy(config.record.member, member, n * sizeof *member);
	config.target = n ? n : 1;
	assert_int_equal(hd_coordinator_create(&co, &config, 1, NULL), HD_OK);
	if (!begun)
		return co;
	co->phase = HD_CO_IDLE;
	co->has_view = true;
	co->view.epoch = co->record.epoch = 7;
	co->view.nmembers = n;
	memcpy(co->view.member, member, n * sizeof *member);
	for (uint32_t i = 0; i < n; i++)
		co->worker[i].up = true;
	return co;
}

/* It stopped on request and died when that was stored: the next coordinator knows the reason. With all
 * steps run the job is done all the same. */
static void a_stop_keeps_its_code_whichever_coordinators_see_to_it(void **state)
{
	static const struct { uint64_t step; uint32_t said, ends; } row[] = { { 5, 75, 75 }, { 5, 0, 75 },
		{ 80, 0, 0 } };
	const uint32_t member[] = { 0, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_coordinator *first = at_rest(8, 2, member, 2);
		struct hd_co_actions done = hd_coordinator_step(first,
			&(struct hd_co_event){ .kind = HD_CO_IN_HALT, .code = 75, .text = "drained" }, 2);
		const struct hd_co_record record = stored_of(done);
		assert_true(record.halting && record.halt_code == 75);
		assert_string_equal(record.halt_why, "drained");
		hd_coordinator_destroy(first);
		struct hd_coordinator *co = after(&record, member, 2, true);
		co->committed = co->seals.committed = row[i].step;
		hear(co, 0, (struct hd_msg){ .kind = HD_MSG_DONE,
			.done = { .step = row[i].step, .code = row[i].said } });
		CHECK(co->phase == HD_CO_ENDING && co->end_code == row[i].ends, "row %zu: phase %u, code %u",
			i, (unsigned)co->phase, co->end_code);
		assert_string_equal(co->halt_why, row[i].ends ? "drained" : "");
		hd_coordinator_destroy(co);
	}
}

static void a_stop_before_the_first_view_is_kept_too(void **state)
{
	const struct hd_co_record record = { .serial = 3, .term = 1, .target = 2, .halting = true,
		.halt_code = 75, .halt_why = "drained" };
	const uint32_t member[] = { 0, 1 };
	struct hd_coordinator *co = after(&record, member, 2, false);

	(void)state;
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, 2);
	CHECK(co->phase == HD_CO_OVER && co->end_code == 75, "phase %u, code %u", (unsigned)co->phase,
		co->end_code);
	hd_coordinator_destroy(co);
}

/* The record of the stop was lost with the store; members have heard it. Only the checkpoint writer
 * saves: the word of another one ends nothing. */
static void a_stop_that_only_members_know_of_is_believed(void **state)
{
	const struct hd_co_record record = { .serial = 3, .term = 1, .target = 2 };
	const uint32_t member[] = { 0, 1 };
	struct hd_coordinator *co = after(&record, member, 2, true);

	(void)state;
	co->committed = co->seals.committed = 5;
	hear(co, 1, (struct hd_msg){ .kind = HD_MSG_DONE, .done = { .step = 5, .code = 75 } });
	CHECK(co->phase == HD_CO_IDLE && !co->done, "phase %u", (unsigned)co->phase);
	hear(co, 0, (struct hd_msg){ .kind = HD_MSG_DONE, .done = { .step = 5, .code = 75 } });
	CHECK(co->phase == HD_CO_ENDING && co->end_code == 75, "phase %u, code %u", (unsigned)co->phase,
		co->end_code);
	hd_coordinator_destroy(co);
}

static void that_all_members_leave_is_stored_as_a_stop(void **state)
{
	const uint32_t member[] = { 4 };
	struct hd_coordinator *co = at_rest(8, 1, member, 1);

	(void)state;
	const struct hd_co_record record = stored_of(hear(co, 4, (struct hd_msg){ .kind = HD_MSG_LEAVE }));
	CHECK(record.halting && record.halt_code == 75 && *record.halt_why, "halting %d, code %u",
		record.halting, record.halt_code);
	hd_coordinator_destroy(co);
}

static void whoever_was_asked_to_leave_leaves_under_the_next_coordinator_too(void **state)
{
	const uint32_t member[] = { 0, 1, 2 }, next[] = { 0, 2 };
	struct hd_coordinator *first = at_rest(8, 3, member, 3);

	(void)state;
	const struct hd_co_event drain = { .kind = HD_CO_IN_DRAIN, .worker = 1, .code = 75 };
	const struct hd_co_record record = stored_of(hd_coordinator_step(first, &drain, 2));
	assert_true(record.ngoing == 1 && record.going[0] == 1);
	hd_coordinator_destroy(first);
	struct hd_coordinator *co = after(&record, member, 3, true);
	for (uint32_t i = 0; i < 3; i++)
		co->worker[i].spoke = 7;
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, 2);
	CHECK(is_next(co, next, 2), "%u members, phase %u", co->next.nmembers, (unsigned)co->phase);
	hd_co_left(co, &co->worker[1]);
	assert_int_equal(co->record.ngoing, 0);
	hd_coordinator_destroy(co);
}

/* It joined and died before it called again under its id; its process was noticed before its word. It must
 * not count as here for 30 T. */
static void who_does_not_call_again_under_its_id_is_replaced(void **state)
{
	const struct hd_co_record record = { .serial = 3, .term = 1, .target = 1 };
	struct hd_coordinator *co = after(&record, NULL, 0, false);
	const struct hd_msg_join join = { .worker = HD_NOBODY, .ndevices = 1, .nonce = 9, .address = "",
		.host = "" };
	const uint32_t guest = UINT32_C(0x80000000);

	(void)state;
	assert_true(was_asked_for(hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, 2),
		1));
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_UNSPAWNED, .n = 1 }, 3);
	hear(co, guest, (struct hd_msg){ .kind = HD_MSG_JOIN, .join = join });
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_STORED, .serial = co->record.serial,
		.ok = true }, 5);
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_LOST, .worker = guest,
		.why = HD_CLOSED }, 6);
	struct hd_co_actions done = hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK },
		1000000005);
	assert_false(was_asked_for(done, 1));
	done = hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, 1000000006);
	CHECK(was_asked_for(done, 1) && co->worker[0].state == HD_W_OUT, "it is %s",
		hd_co_worker_state_name(co->worker[0].state));
	hd_coordinator_destroy(co);
}

/* Its link broke before it heard its id: it asks again, as the same one, and is not lost. */
static void who_asks_again_for_its_id_is_no_loss(void **state)
{
	const struct hd_co_record record = { .serial = 3, .term = 1, .target = 1 };
	struct hd_coordinator *co = after(&record, NULL, 0, false);
	const struct hd_msg_join join = { .worker = HD_NOBODY, .ndevices = 1, .nonce = 9, .address = "",
		.host = "" };
	const uint32_t guest = UINT32_C(0x80000000);

	(void)state;
	hear(co, guest, (struct hd_msg){ .kind = HD_MSG_JOIN, .join = join });
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_LOST, .worker = guest,
		.why = HD_CLOSED }, 6);
	hear(co, guest + 1, (struct hd_msg){ .kind = HD_MSG_JOIN, .join = join });
	hd_coordinator_step(co, &(struct hd_co_event){ .kind = HD_CO_IN_TICK }, 2000000000);
	CHECK(co->worker[0].state == HD_W_ADMITTED, "it is %s", hd_co_worker_state_name(co->worker[0].state));
	hd_coordinator_destroy(co);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(fewer_local_workers_keep_those_of_other_machines),
		cmocka_unit_test(one_of_another_machine_that_goes_takes_nothing_from_what_was_asked_for),
		cmocka_unit_test(a_place_is_kept_for_one_who_can_save),
		cmocka_unit_test(nobody_is_asked_to_begin_whose_link_is_down),
		cmocka_unit_test(who_comes_back_is_asked_in_the_epoch_of_its_view),
		cmocka_unit_test(an_answer_of_epoch_0_is_sent_no_view),
		cmocka_unit_test(who_is_being_replaced_goes_when_another_is_ready),
		cmocka_unit_test(who_is_to_stay_after_all_stays),
		cmocka_unit_test(a_joiner_that_is_too_slow_is_put_in_backoff),
		cmocka_unit_test(another_one_is_synced_while_one_is_in_backoff),
		cmocka_unit_test(what_was_computed_twice_is_begun_afresh),
		cmocka_unit_test(it_is_no_accident_when_nothing_newer_was_the_same_at_all),
		cmocka_unit_test(a_stop_keeps_its_code_whichever_coordinators_see_to_it),
		cmocka_unit_test(a_stop_before_the_first_view_is_kept_too),
		cmocka_unit_test(a_stop_that_only_members_know_of_is_believed),
		cmocka_unit_test(that_all_members_leave_is_stored_as_a_stop),
		cmocka_unit_test(whoever_was_asked_to_leave_leaves_under_the_next_coordinator_too),
		cmocka_unit_test(who_does_not_call_again_under_its_id_is_replaced),
		cmocka_unit_test(who_asks_again_for_its_id_is_no_loss),
		cmocka_unit_test(tries_are_counted_whichever_coordinators_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
