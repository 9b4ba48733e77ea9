#include "functions/board.h"

#include <stdio.h>
#include <string.h>

#include "base/philox.h"
#include "tests/check.h"

#define MS INT64_C(1000000)
#define S  INT64_C(1000000000)

struct fixture { struct hd_arena arena; struct hd_fn_board board; };

static struct fixture *with(uint32_t ntasks, uint32_t slots)
{
	static struct fixture f;

	hd_arena_init(&f.arena, 64 << 20);
	assert_int_equal(hd_fn_board_init(&f.board, ntasks, slots, 10 * S, 7, &f.arena, NULL), HD_OK);
	for (uint32_t i = 0; i < ntasks; i++) {
		uint32_t task = 0;
		assert_int_equal(hd_fn_board_add(&f.board, 0, &task, NULL), HD_OK);
		assert_int_equal(task, i);
	}
	return &f;
}

static void close_it(struct fixture *f) { hd_arena_finish(&f->arena); }

/* ---- every short history of one task with at most two attempts ---- */

enum event { GREET1, GREET2, COMMIT1, COMMIT2, ENDED1, ENDED2, FAILED1, FAILED2, REVOKE, NEVENTS };

/* The oracle: rule 1 and 2 in a few words, from the history alone. */
static void judge(const enum event *h, size_t n, const int *answer)
{
	bool done = false, revoked = false, greeted[2] = { false }, dead[2] = { false };

	for (size_t i = 0; i < n; i++) {
		int k = h[i] & 1;
		if (h[i] <= GREET2) {
			bool right = !dead[k] && !greeted[k] && !done && !revoked;
			CHECK(answer[i] == right, "greeting %zu", i);
			greeted[k] |= right;
		} else if (h[i] <= COMMIT2) {
			int right = revoked ? HD_FN_STALE : done ? HD_FN_ALREADY : HD_FN_ACCEPTED;
			CHECK(answer[i] == right, "commit %zu: %d, not %d", i, answer[i], right);
			done |= !revoked;
		} else if (h[i] <= FAILED2) {
			dead[k] = true;
		} else {
			revoked |= !done;
		}
	}
}

static void play(const enum event *h, size_t n, int *answer)
{
	struct fixture *f = with(1, 2);
	struct hd_fn_board *b = &f->board;
	int64_t now = S;

	/* a window in which one more duplicate is allowed */
	b->nwindow = b->window_at = 40;
	struct hd_fn_step one = hd_fn_board_next(b, now, false), two;
	assert_int_equal(one.what, HD_FN_INVOKE);
	now += HD_FN_UNKNOWN_NS;
	two = hd_fn_board_next(b, now, false);
	assert_int_equal(two.what, HD_FN_INVOKE);
	assert_true(two.duplicate && !one.duplicate);
	assert_int_equal(one.attempt, 1);
	assert_int_equal(two.attempt, 2);
	for (size_t i = 0; i < n; i++) {
		uint32_t k = (h[i] & 1) + 1u;
		answer[i] = 0;
		switch (h[i]) {
		case GREET1: case GREET2: answer[i] = hd_fn_board_greet(b, 0, k, now); break;
		case COMMIT1: case COMMIT2: answer[i] = (int)hd_fn_board_commit(b, 0, k, now); break;
		case ENDED1: case ENDED2: hd_fn_board_called(b, 0, k, HD_FN_ENDED, now); break;
		case FAILED1: case FAILED2: hd_fn_board_called(b, 0, k, HD_FN_FAILED, now); break;
		case REVOKE: hd_fn_board_revoke(b, 0); break;
		case NEVENTS: break;
		}
		assert_true(b->live <= 2 && b->open <= 1);
	}
	close_it(f);
}

static void each_short_history_commits_once(void **state)
{
	enum { LONG = 5 };
	enum event h[LONG];
	int answer[LONG];
	size_t total = 1;

	(void)state;
	for (int i = 0; i < LONG; i++)
		total *= NEVENTS;
	for (size_t code = 0; code < total; code += SANITIZED ? 7 : 1) {
		size_t left = code, accepted = 0;
		for (size_t i = 0; i < LONG; i++, left /= NEVENTS)
			h[i] = (enum event)(left % NEVENTS);
		play(h, LONG, answer);
		judge(h, LONG, answer);
		for (size_t i = 0; i < LONG; i++)
			accepted += (h[i] == COMMIT1 || h[i] == COMMIT2) && answer[i] == HD_FN_ACCEPTED;
		assert_true(accepted <= 1);
	}
}

/* ---- rules one by one ---- */

static void three_failures_bring_a_task_home(void **state)
{
	struct fixture *f = with(1, 4);
	struct hd_fn_board *b = &f->board;

	(void)state;
	for (uint32_t i = 1; i <= HD_FN_FAILURES; i++) {
		struct hd_fn_step s = hd_fn_board_next(b, i * S, true);
		assert_int_equal(s.what, HD_FN_INVOKE);
		assert_int_equal(s.attempt, i);
		hd_fn_board_called(b, 0, i, i == 2 ? HD_FN_ENDED : HD_FN_FAILED, i * S + 1);
	}
	assert_int_equal(hd_fn_board_next(b, 5 * S, false).what, HD_FN_WAIT);
	assert_int_equal(hd_fn_board_next(b, 5 * S, true).what, HD_FN_RUN_HERE);
	assert_int_equal(hd_fn_board_next(b, 5 * S, true).what, HD_FN_WAIT);
	/* a result that comes late is still one; then the run here is the second */
	assert_int_equal(hd_fn_board_commit(b, 0, 2, 6 * S), HD_FN_ACCEPTED);
	assert_int_equal(hd_fn_board_ran(b, 0, MS), HD_FN_ALREADY);
	assert_int_equal(b->count.accepted, 1);
	assert_int_equal(b->count.here, 0);
	assert_int_equal(hd_fn_board_commit(b, 0, 4, 6 * S), HD_FN_STALE);
	close_it(f);
}

static void what_no_function_can_compute_is_run_here_at_once(void **state)
{
	struct fixture *f = with(1, 4);

	(void)state;
	assert_int_equal(hd_fn_board_next(&f->board, S, true).what, HD_FN_INVOKE);
	hd_fn_board_called(&f->board, 0, 1, HD_FN_UNFIT, S);
	assert_int_equal(hd_fn_board_next(&f->board, S, true).what, HD_FN_RUN_HERE);
	assert_int_equal(hd_fn_board_ran(&f->board, 0, MS), HD_FN_ACCEPTED);
	assert_int_equal(f->board.open, 0);
	assert_int_equal(f->board.count.here, 1);
	close_it(f);
}

static void ten_failures_in_a_row_close_the_pool_for_thirty_seconds(void **state)
{
	struct fixture *f = with(20, 1);
	struct hd_fn_board *b = &f->board;
	int64_t now = S;

	(void)state;
	for (int i = 0; i < HD_FN_CIRCUIT; i++) {
		struct hd_fn_step s = hd_fn_board_next(b, now, false);
		assert_int_equal(s.what, HD_FN_INVOKE);
		hd_fn_board_called(b, s.task, s.attempt, HD_FN_FAILED, now);
	}
	struct hd_fn_step s = hd_fn_board_next(b, now, false);
	assert_int_equal(s.what, HD_FN_WAIT);
	assert_int_equal(s.until_ns, now + HD_FN_CLOSED_NS);
	/* home: those that failed three times first, then whatever is ready */
	for (int i = 0; i < 5; i++)
		assert_int_equal(hd_fn_board_next(b, now + i, true).what, HD_FN_RUN_HERE);
	assert_int_equal(b->count.closed, 1);
	assert_int_equal(hd_fn_board_next(b, now + HD_FN_CLOSED_NS - 1, false).what, HD_FN_WAIT);
	assert_int_equal(hd_fn_board_next(b, now + HD_FN_CLOSED_NS, false).what, HD_FN_INVOKE);
	close_it(f);
}

/* Whether its task is open, was done here, or is forgotten. */
static void an_end_without_a_result_is_a_failed_call(void **state)
{
	struct fixture *f = with(2, 2);
	struct hd_fn_board *b = &f->board;

	(void)state;
	assert_int_equal(hd_fn_board_next(b, S, false).what, HD_FN_INVOKE);
	assert_int_equal(hd_fn_board_next(b, S, false).what, HD_FN_INVOKE);
	hd_fn_board_called(b, 0, 1, HD_FN_EMPTY, S);
	assert_int_equal(b->failed_in_row, 1);
	assert_int_equal(b->task[0].state, HD_FN_READY);
	b->shares = true;
	assert_int_equal(hd_fn_board_next(b, S, false).what, HD_FN_INVOKE);
	struct hd_fn_step s = hd_fn_board_next(b, S + HD_FN_UNKNOWN_NS, true);
	assert_int_equal(s.what, HD_FN_RUN_HERE);
	assert_int_equal(hd_fn_board_ran(b, s.task, MS), HD_FN_ACCEPTED);
	hd_fn_board_called(b, s.task, s.task == 0 ? 2 : 1, HD_FN_EMPTY, 8 * S);
	assert_int_equal(b->failed_in_row, 2);
	assert_int_equal(b->count.failures, 2);
	hd_fn_board_clear(b, 1);
	hd_fn_board_ended(b, HD_FN_EMPTY, 9 * S);
	assert_int_equal(b->failed_in_row, 3);
	assert_true(hd_fn_board_is_away(b));
	close_it(f);
}

static void throttled_calls_halve_the_slots_and_wait_longer_each_time(void **state)
{
	struct fixture *f = with(64, 8);
	struct hd_fn_board *b = &f->board;
	int64_t now = S, most = 100 * MS;
	uint32_t n = 0;

	(void)state;
	while (hd_fn_board_next(b, now, false).what == HD_FN_INVOKE)
		n++;
	assert_int_equal(n, 8);
	for (uint32_t i = 0; i < 8; i++) {
		struct hd_fn_step s;
		hd_fn_board_called(b, i, 1, HD_FN_THROTTLED, now);
		assert_int_equal(b->task[i].failed, 0);
		assert_int_equal(b->task[i].state, HD_FN_READY);
		int64_t wait = b->wait_ns - now;
		CHECK(wait >= 100 * MS && wait >= most / 2 && wait <= most, "%d: %lld", (int)i,
			(long long)wait);
		most = most * 2 > 5 * S ? 5 * S : most * 2;
		s = hd_fn_board_next(b, now, false);
		assert_int_equal(s.what, HD_FN_WAIT);
	}
	now = b->wait_ns;
	for (n = 0; hd_fn_board_next(b, now, false).what == HD_FN_INVOKE; n++) {
	}
	assert_int_equal(n, now < b->halved_ns ? 4 : 8);
	now = b->halved_ns;
	for (; hd_fn_board_next(b, now, false).what == HD_FN_INVOKE; n++) {
	}
	assert_int_equal(n, 8);
	close_it(f);
}

/* 429 or 503 without an end: the tasks come home, and no attempt of them counts as failed. */
static void a_pool_that_only_refuses_is_closed(void **state)
{
	struct fixture *f = with(4, 2);
	struct hd_fn_board *b = &f->board;
	int64_t now = S;
	uint32_t n = 0;

	(void)state;
	while (!b->count.closed && n < 100) {
		struct hd_fn_step s = hd_fn_board_next(b, now, true);
		assert_int_not_equal(s.what, HD_FN_RUN_HERE);
		if (s.what == HD_FN_INVOKE)
			hd_fn_board_called(b, s.task, s.attempt, HD_FN_THROTTLED, (n++, now));
		else
			now = s.until_ns;
	}
	assert_int_equal(n, HD_FN_REFUSALS + HD_FN_CIRCUIT - 1);
	assert_true(now < 60 * S);
	assert_int_equal(b->count.failures, 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(b->task[i].failed, 0);
		assert_int_equal(hd_fn_board_next(b, now, true).what, HD_FN_RUN_HERE);
	}
	close_it(f);
}

/* One call computes for long, and there is no slot for others: they are refused, and the pool stays open. */
static void a_pool_that_is_busy_stays_open(void **state)
{
	struct fixture *f = with(4, 2);
	struct hd_fn_board *b = &f->board;
	int64_t now = S;

	(void)state;
	b->lease_ns = 10000 * S;
	b->look_ns = INT64_MAX;
	struct hd_fn_step first = hd_fn_board_next(b, now, false);
	for (uint32_t n = 0; n < 300; n++) {
		struct hd_fn_step s = hd_fn_board_next(b, now, false);
		if (s.what == HD_FN_INVOKE)
			hd_fn_board_called(b, s.task, s.attempt, HD_FN_THROTTLED, now);
		else
			now = b->wait_ns > now ? b->wait_ns : b->halved_ns;
	}
	assert_int_equal(b->count.closed, 0);
	assert_true(b->count.throttled > 50);
	assert_int_equal(hd_fn_board_commit(b, first.task, first.attempt, now), HD_FN_ACCEPTED);
	close_it(f);
}

static void an_attempt_is_dead_at_its_deadline(void **state)
{
	struct fixture *f = with(1, 1);
	struct hd_fn_board *b = &f->board;
	struct hd_fn_step s = hd_fn_board_next(b, S, false);

	(void)state;
	assert_int_equal(s.deadline_ns, 11 * S);
	assert_false(hd_fn_board_greet(b, 0, 1, 11 * S));
	assert_true(hd_fn_board_greet(b, 0, 1, 11 * S - 1));
	b->look_ns = INT64_MAX;
	s = hd_fn_board_next(b, 11 * S - 1, false);
	assert_int_equal(s.what, HD_FN_WAIT);
	assert_int_equal(s.until_ns, 11 * S);
	s = hd_fn_board_next(b, 11 * S, false);
	assert_int_equal(s.what, HD_FN_INVOKE);
	assert_int_equal(s.attempt, 2);
	assert_int_equal(hd_fn_board_commit(b, 0, 1, 12 * S), HD_FN_ACCEPTED);
	assert_int_equal(hd_fn_board_commit(b, 0, 2, 12 * S), HD_FN_ALREADY);
	close_it(f);
}

static void idle_devices_take_what_finds_no_slot_where_they_may(void **state)
{
	struct fixture *f = with(3, 1);

	(void)state;
	assert_int_equal(hd_fn_board_next(&f->board, S, true).what, HD_FN_INVOKE);
	assert_int_equal(hd_fn_board_next(&f->board, S, true).what, HD_FN_WAIT);
	f->board.shares = true;
	assert_int_equal(hd_fn_board_next(&f->board, S, true).what, HD_FN_RUN_HERE);
	close_it(f);
	f = with(2, 0);
	assert_int_equal(hd_fn_board_next(&f->board, S, true).what, HD_FN_RUN_HERE);
	assert_int_equal(hd_fn_board_next(&f->board, S, false).until_ns, INT64_MAX);
	close_it(f);
}

/* No answer at all: what was leased is done here long before its deadline, each task once. */
static void a_service_that_hangs_does_not_stop_the_device(void **state)
{
	struct fixture *f = with(4, 4);
	struct hd_fn_board *b = &f->board;
	int64_t now = S;
	uint32_t here = 0, steps = 0;

	(void)state;
	b->shares = true;
	while (b->open && steps++ < 1000) {
		struct hd_fn_step s = hd_fn_board_next(b, now, true);
		if (s.what == HD_FN_RUN_HERE)
			here += hd_fn_board_ran(b, s.task, MS) == HD_FN_ACCEPTED;
		else if (s.what == HD_FN_WAIT)
			now = s.until_ns;
	}
	assert_int_equal(b->open, 0);
	assert_int_equal(here, 4);
	CHECK(now < S + 5 * S, "done at %lld, after more than five seconds", (long long)now);
	assert_int_equal(b->live, 4);     /* they hold their slots */
	assert_int_equal(hd_fn_board_commit(b, 0, 1, now), HD_FN_ALREADY);
	close_it(f);
	/* where devices do not share, it is for a function */
	f = with(1, 1);
	assert_int_equal(hd_fn_board_next(&f->board, S, true).what, HD_FN_INVOKE);
	assert_int_equal(hd_fn_board_next(&f->board, S + HD_FN_UNKNOWN_NS, true).what, HD_FN_WAIT);
	close_it(f);
}

/* It hangs after it was well, with slots to spare: the second attempt hangs as the first one does, and the
 * device takes the task all the same. */
static void a_duplicate_that_hangs_does_not_keep_the_device_from_the_task(void **state)
{
	struct fixture *f = with(2, 4);
	struct hd_fn_board *b = &f->board;
	int64_t now = S;
	uint32_t task;

	(void)state;
	b->shares = true;
	for (uint32_t done = 0; done < 40; done++) {      /* so many that one more may be a duplicate */
		assert_int_equal(hd_fn_board_next(b, now, true).what, HD_FN_INVOKE);
		assert_int_equal(hd_fn_board_commit(b, done % 2, 1, now + MS), HD_FN_ACCEPTED);
		hd_fn_board_called(b, done % 2, 1, HD_FN_ENDED, now + MS);
		if (done % 2 == 0)
			continue;
		hd_fn_board_clear(b, 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(hd_fn_board_add(b, 0, &task, NULL), HD_OK);
	}
	for (now += S; b->open && now < 4 * S; ) {
		struct hd_fn_step s = hd_fn_board_next(b, now, true);
		if (s.what == HD_FN_RUN_HERE)
			(void)hd_fn_board_ran(b, s.task, MS);
		else if (s.what == HD_FN_WAIT)
			now += 9 * MS;    /* as of other events: looks by both clocks, not at once */
	}
	assert_true(b->count.duplicates > 0);
	CHECK(!b->open && now < 3 * S, "%u open after %lld ms", b->open, (long long)((now - 2 * S) / MS));
	close_it(f);
}

/* Calls that are under way and never come back: when they are given up. */
struct hung { int64_t until_ns[4]; uint32_t n; };

static int64_t give_up(struct hung *h, struct hd_fn_board *b, int64_t now)
{
	int64_t next_ns = INT64_MAX;
	uint32_t n = 0;

	for (uint32_t i = 0; i < h->n; i++)
		if (now >= h->until_ns[i]) {
			hd_fn_board_ended(b, HD_FN_FAILED, now);
		} else {
			h->until_ns[n] = h->until_ns[i];
			next_ns = h->until_ns[n] < next_ns ? h->until_ns[n] : next_ns;
			n++;
		}
	h->n = n;
	return next_ns;
}

/* Step after step of four tasks that take 50 ms here: beside these it costs the first wait, and half a second
 * for each round of calls that ran out. */
static void a_service_that_hangs_leaves_training_its_speed(void **state)
{
	enum { STEPS = 400, TASKS = 4 };
	struct fixture *f = with(TASKS, 2);
	struct hd_fn_board *b = &f->board;
	struct hung hung = { .n = 0 };
	int64_t now = S;

	(void)state;
	b->shares = true;
	assert_false(hd_fn_board_is_away(b));
	for (int step = 0; step < STEPS; step++) {
		uint32_t task;
		hd_fn_board_clear(b, hung.n);
		for (int i = 0; i < TASKS; i++)
			assert_int_equal(hd_fn_board_add(b, 0, &task, NULL), HD_OK);
		while (b->open) {
			int64_t next_ns = give_up(&hung, b, now);
			struct hd_fn_step s = hd_fn_board_next(b, now, true);
			if (s.what == HD_FN_INVOKE)
				hung.until_ns[hung.n++] = s.deadline_ns + 2 * S;
			else if (s.what == HD_FN_WAIT)
				now = s.until_ns < next_ns ? s.until_ns : next_ns;
			else
				(void)hd_fn_board_ran(b, s.task, 50 * MS), now += 50 * MS;
		}
	}
	assert_int_equal(b->count.here, STEPS * TASKS);
	assert_true(b->count.closed > 0 && hd_fn_board_is_away(b));
	const int64_t alone = STEPS * TASKS * 50 * MS;
	CHECK(now - S < alone + HD_FN_FIRST_NS + alone / 10, "%lld ms in place of %lld",
		(long long)((now - S) / MS), (long long)(alone / MS));
	close_it(f);
}

/* After the pause one call at once, and its failure closes the pool; a good one opens it. */
static void a_pool_that_was_closed_is_probed_by_one_call(void **state)
{
	struct fixture *f = with(40, 11);
	struct hd_fn_board *b = &f->board;
	struct hd_fn_step s[11];
	int64_t now = S;

	(void)state;
	b->look_ns = INT64_MAX;
	for (int i = 0; i < 11; i++)
		s[i] = hd_fn_board_next(b, now, false);
	for (int i = 0; i < 11; i++)      /* the last one fails when it is closed: it counts not */
		hd_fn_board_called(b, s[i].task, s[i].attempt, HD_FN_FAILED, now + i);
	assert_int_equal(b->count.closed, 1);
	assert_int_equal(b->failed_in_row, 0);
	for (uint64_t round = 1; round <= 3; round++) {
		now = b->closed_ns;
		s[0] = hd_fn_board_next(b, now, false);
		assert_int_equal(s[0].what, HD_FN_INVOKE);
		assert_int_equal(hd_fn_board_next(b, now, false).what, HD_FN_WAIT);
		assert_int_equal(b->count.closed, round);
		if (round < 3)
			hd_fn_board_called(b, s[0].task, s[0].attempt, HD_FN_FAILED, now);
	}
	assert_int_equal(hd_fn_board_commit(b, s[0].task, s[0].attempt, now), HD_FN_ACCEPTED);
	hd_fn_board_called(b, s[0].task, s[0].attempt, HD_FN_ENDED, now);
	for (int i = 0; i < 11; i++)
		assert_int_equal(hd_fn_board_next(b, now, false).what, HD_FN_INVOKE);
	/* those of a step that is over count, too */
	const uint64_t before = b->count.closed;
	hd_fn_board_clear(b, 11);
	for (int i = 0; i < HD_FN_CIRCUIT; i++)
		hd_fn_board_ended(b, HD_FN_FAILED, now);
	assert_int_equal(b->count.closed, before + 1);
	hd_fn_board_ended(b, HD_FN_ENDED, now);
	assert_false(b->probes);
	close_it(f);
}

/* All of 40 straggle: 42 attempts hold two duplicates. The window forgets what was 200 attempts ago. */
static void one_attempt_in_twenty_may_be_a_duplicate(void **state)
{
	struct fixture *f = with(40, 100);
	struct hd_fn_board *b = &f->board;
	uint32_t n = 0;

	(void)state;
	while (hd_fn_board_next(b, S, false).what == HD_FN_INVOKE)
		n++;
	assert_int_equal(n, 40);
	for (n = 0; hd_fn_board_next(b, S + HD_FN_UNKNOWN_NS, false).what == HD_FN_INVOKE; n++) {
	}
	assert_int_equal(n, 2);
	assert_int_equal(b->count.duplicates, 2);
	close_it(f);
	f = with(2, 2);
	b->nwindow = HD_FN_WINDOW;
	b->window_dups = 10;
	b->window[0] = true;
	assert_int_equal(hd_fn_board_next(b, S, false).what, HD_FN_INVOKE);
	assert_int_equal(b->window_dups, 9);
	assert_int_equal(hd_fn_board_next(b, S, false).what, HD_FN_INVOKE);
	close_it(f);
}

/* ---- many tasks on functions that die, straggle and lose answers ---- */

enum { MANY = 400, CALLS = 4000 };
struct sim_call { bool busy; uint32_t task, attempt; int64_t commit_ns, end_ns; enum hd_fn_outcome outcome; };

static uint32_t draw(uint64_t seed, uint32_t number, uint32_t which)
{
	const uint32_t counter[4] = { number, which, 0, 0 };

	return hd_philox(counter, hd_philox_key(seed, HD_RNG_USER)).word[0] % 100;
}

static void start(struct sim_call *c, const struct hd_fn_step *s, uint64_t seed, uint32_t number, int64_t now)
{
	bool killed = draw(seed, number, 0) < 5, straggles = draw(seed, number, 1) < 5,
		lost = draw(seed, number, 2) < 2;
	int64_t takes = (100 + draw(seed, number, 3)) * MS * (straggles ? 10 : 1);

	*c = (struct sim_call){ true, s->task, s->attempt, killed ? INT64_MAX : now + takes, now + takes + MS,
		killed || lost ? HD_FN_FAILED : HD_FN_ENDED };
}

static void many_tasks_are_done_once_each_with_few_duplicates(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= DRAWS(20); seed++) {
		struct fixture *f = with(MANY, 16);
		struct hd_fn_board *b = &f->board;
		static struct sim_call call[16];
		uint32_t done[MANY] = { 0 }, number = 0;
		int64_t now = S;
		memset(call, 0, sizeof call);
		while (b->open) {
			struct hd_fn_step s = hd_fn_board_next(b, now, true);
			assert_true(number < CALLS);
			if (s.what == HD_FN_RUN_HERE) {
				done[s.task] += hd_fn_board_ran(b, s.task, 100 * MS) == HD_FN_ACCEPTED;
				continue;
			}
			if (s.what == HD_FN_INVOKE) {
				size_t k = 0;
				while (call[k].busy)
					k++;
				start(&call[k], &s, seed, number++, now);
				assert_true(hd_fn_board_greet(b, s.task, s.attempt, now));
				assert_false(hd_fn_board_greet(b, s.task, s.attempt, now));
				continue;
			}
			/* the earliest of what is to come */
			struct sim_call *c = NULL;
			int64_t at = s.until_ns;
			for (size_t k = 0; k < 16; k++) {
				int64_t its = call[k].commit_ns < call[k].end_ns ? call[k].commit_ns :
					call[k].end_ns;
				if (call[k].busy && its < at) {
					at = its;
					c = &call[k];
				}
			}
			assert_true(at < INT64_MAX);
			now = at;
			if (!c)
				continue;
			if (c->commit_ns == at) {
				done[c->task] += hd_fn_board_commit(b, c->task, c->attempt,
					now) == HD_FN_ACCEPTED;
				c->commit_ns = INT64_MAX;
			} else {
				c->busy = false;
				hd_fn_board_called(b, c->task, c->attempt, c->outcome, now);
			}
		}
		for (uint32_t i = 0; i < MANY; i++)
			assert_int_equal(done[i], 1);
		CHECK(b->count.duplicates * 20 <= b->count.attempts, "%llu of %llu",
			(unsigned long long)b->count.duplicates, (unsigned long long)b->count.attempts);
		assert_true(b->count.duplicates > 0);
		close_it(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_short_history_commits_once),
		cmocka_unit_test(three_failures_bring_a_task_home),
		cmocka_unit_test(what_no_function_can_compute_is_run_here_at_once),
		cmocka_unit_test(ten_failures_in_a_row_close_the_pool_for_thirty_seconds),
		cmocka_unit_test(an_end_without_a_result_is_a_failed_call),
		cmocka_unit_test(throttled_calls_halve_the_slots_and_wait_longer_each_time),
		cmocka_unit_test(a_pool_that_only_refuses_is_closed),
		cmocka_unit_test(a_pool_that_is_busy_stays_open),
		cmocka_unit_test(an_attempt_is_dead_at_its_deadline),
		cmocka_unit_test(idle_devices_take_what_finds_no_slot_where_they_may),
		cmocka_unit_test(a_service_that_hangs_does_not_stop_the_device),
		cmocka_unit_test(a_duplicate_that_hangs_does_not_keep_the_device_from_the_task),
		cmocka_unit_test(a_service_that_hangs_leaves_training_its_speed),
		cmocka_unit_test(a_pool_that_was_closed_is_probed_by_one_call),
		cmocka_unit_test(one_attempt_in_twenty_may_be_a_duplicate),
		cmocka_unit_test(many_tasks_are_done_once_each_with_few_duplicates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
