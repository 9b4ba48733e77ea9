#include "timeline/analyze/straggler.h"

#include "timeline/analyze/counted.h"
#include "timeline/analyze/testing_train.h"
#include "tests/check.h"

/* Trainings with an injected truth. Times of the little training are taken as us. */

enum { US = 1000 };

static struct hd_tl_train steady(uint64_t seed)
{
	struct hd_tl_train t = hd_tl_train_of(seed);
	uint32_t i = 5000;

	t.gate *= US;
	t.queue *= US;
	t.delivery *= US;
	t.commit *= US;
	for (int s = 0; s < HD_TL_TRAIN_STEPS; s++)
		for (int p = 0; p < HD_TL_TRAIN_PROCESSES; p++) {
			/* +- 20 %, as on a busy machine */
			t.work[s][p] = (20000 + hd_tl_train_draw(seed, &i, 8000)) * US;
			t.data[s][p] = (100 + hd_tl_train_draw(seed, &i, 400)) * US;
		}
	for (int p = 0; p < HD_TL_TRAIN_PROCESSES; p++)
		for (int q = 0; q < HD_TL_TRAIN_PROCESSES; q++)
			t.wire[p][q] = (1000 + hd_tl_train_draw(seed, &i, 300)) * US;
	return t;
}

static struct hd_tl_stragglers judge_made(struct hd_tl_hand *h)
{
	struct hd_tl_causes causes;
	struct hd_tl_stragglers s;
	struct hd_arena scratch;

	hd_tl_hand_made(h, &causes);
	hd_arena_init(&scratch, 0);
	assert_int_equal(hd_tl_stragglers_of(&causes, &h->arena, &scratch, &s, NULL), HD_OK);
	hd_arena_finish(&scratch);
	assert_int_equal(s.nsteps, HD_TL_TRAIN_STEPS);
	return s;
}

static struct hd_tl_stragglers judge(const struct hd_tl_train *t, struct hd_tl_hand *h, uint32_t notice)
{
	hd_tl_train_record(t, h);
	if (notice != HD_TL_NONE)
		hd_tl_hand_add(h, 2 * notice + 1, HD_EVENT_MARK, 5, 5)->name = 4;
	return judge_made(h);
}

static void slow(struct hd_tl_train *t, enum hd_tl_hold cause, uint32_t w, uint64_t seed)
{
	uint32_t i = 9000;

	for (int s = 0; s < HD_TL_TRAIN_STEPS; s++) {
		if (cause == HD_TL_HOLD_COMPUTE || cause == HD_TL_HOLD_PREEMPTION)
			t->work[s][w] *= 3;
		if (cause == HD_TL_HOLD_IO)
			t->data[s][w] += 60000 * US;
		/* three of four steps */
		if (cause == HD_TL_HOLD_PAUSED && s % 4 != 1)
			t->work[s][w] += (300000 + hd_tl_train_draw(seed, &i, 400000)) * US;
	}
	for (int p = 0; p < HD_TL_TRAIN_PROCESSES && cause == HD_TL_HOLD_LINK; p++) {
		t->wire[p][w] *= 50;
		t->wire[w][p] *= 50;
	}
}

static void the_injected_straggler_and_its_cause_are_named(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (uint64_t seed = 0; seed < DRAWS(60); seed++) {
		const enum hd_tl_hold cause = (enum hd_tl_hold)(seed % 5);
		const uint32_t w = (uint32_t)(seed / 5 % HD_TL_TRAIN_PROCESSES);
		struct hd_tl_train t = steady(seed);
		/* a channel has two ends: which of two is slow by it nothing says */
		t.n = cause != HD_TL_HOLD_LINK && w < 2 && seed % 2 ? 2 : HD_TL_TRAIN_PROCESSES;
		slow(&t, cause, w, seed);
		const struct hd_tl_stragglers s = judge(&t, &h, cause == HD_TL_HOLD_PREEMPTION ? w :
			HD_TL_NONE);
		CHECK(s.n == 1 && s.straggler[0].process == w, "seed %u, %s of %u: %u found", (unsigned)seed,
			hd_tl_hold_text(cause), w, s.n);
		CHECK(s.straggler[0].cause == cause, "seed %u: %s, not %s", (unsigned)seed,
			hd_tl_hold_text(s.straggler[0].cause), hd_tl_hold_text(cause));
		CHECK(s.straggler[0].share > 0.5 && s.straggler[0].gain > 0.05, "seed %u", (unsigned)seed);
		hd_arena_finish(&h.arena);
	}
}

static void a_balanced_run_names_none(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (uint64_t seed = 0; seed < DRAWS(100); seed++) {
		struct hd_tl_train t = steady(1000 + seed);
		t.n = seed % 2 ? 2 : HD_TL_TRAIN_PROCESSES;
		const struct hd_tl_stragglers s = judge(&t, &h, HD_TL_NONE);
		CHECK(s.n == 0, "seed %u: %s of %u, gain %g", (unsigned)seed,
			hd_tl_hold_text(s.straggler[0].cause), s.straggler[0].process, s.straggler[0].gain);
		hd_arena_finish(&h.arena);
	}
}

/* Whatever its steps look like: the heartbeat of one that was stopped says so. */
static void one_whose_heartbeat_stood_still_is_paused(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (int64_t percent = 2; percent < 60; percent += 6) {
		const struct hd_tl_train t = steady(3);
		const int64_t took = hd_tl_train_record(&t, &h);
		hd_tl_hand_add(&h, 3, HD_EVENT_OP, took / 4, took / 4 + took * percent / 100)->name = 5;
		hd_tl_hand_add(&h, 5, HD_EVENT_OP, took / 4, took / 4 + took / 100)->name = 5;
		const struct hd_tl_stragglers s = judge_made(&h);
		CHECK(s.n == (percent > 5), "%lld %%", (long long)percent);
		if (s.n)
			assert_true(s.straggler[0].process == 1 && s.straggler[0].cause == HD_TL_HOLD_PAUSED);
		hd_arena_finish(&h.arena);
	}
}

static void count(struct hd_tl_hand *h, uint32_t lane, uint32_t name, int64_t t, int64_t ns)
{
	struct hd_tl_event *e = hd_tl_hand_add(h, lane, HD_EVENT_COUNTER, t, t);

	e->name = name;
	e->arg = (uint64_t)ns;
}

/* Process 1 takes three times as long; so much of that, of ten parts, it waited for a processor, and process
 * `held` of all of that for a quota. */
static struct hd_tl_train starve(struct hd_tl_hand *h, uint32_t tenths, uint32_t held, int64_t *waited)
{
	struct hd_tl_train t = steady(7);

	*waited = 0;
	slow(&t, HD_TL_HOLD_COMPUTE, 1, 7);
	hd_tl_train_record(&t, h);
	for (uint32_t k = 0; k < HD_TL_TRAIN_STEPS; k++) {
		/* two of three parts of its work are excess */
		const int64_t end = h->step[h->process[1].step_begin + k].end;
		*waited += t.work[k][1] * 2 / 3 * tenths / 10;
		count(h, 2, 6, end, *waited);
		for (uint32_t p = 0; p < t.n; p++)
			if (held >> p & 1)
				count(h, 2 * p + 1, 7, end, *waited);
	}
	return t;
}

static void one_that_waits_for_a_shared_processor_is_not_named(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (uint32_t tenths = 0; tenths <= 10; tenths += 2)
		for (int apart = 0; apart < 2; apart++) {
			int64_t waited;
			const struct hd_tl_train t = starve(&h, tenths, 0, &waited);
			h.process[1].host = apart ? "far" : "";
			const struct hd_tl_stragglers s = judge_made(&h);
			CHECK(s.n == (tenths < 7 || apart), "%u tenths, %s: %u named", tenths, apart ? "alone"
				:
				"shared", s.n);
			assert_true(s.starved[1] == waited - t.work[0][1] * 2 / 3 * tenths / 10 ||
				tenths == 0);
			hd_arena_finish(&h.arena);
		}
}

/* But not where a quota of its own is why it waits; one that all are under is no different from a small
 * machine. */
static void one_that_waits_for_a_quota_of_its_own_is_named(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (uint32_t held = 0; held < 8; held++) {
		int64_t waited;
		const struct hd_tl_train t = starve(&h, 10, held, &waited);
		const struct hd_tl_stragglers s = judge_made(&h);
		CHECK(s.n == (held & 2 && held != 7), "held %u: %u named", held, s.n);
		if (s.n)
			assert_true(s.straggler[0].process == 1 && s.straggler[0].cause ==
				HD_TL_HOLD_COMPUTE);
		assert_true(s.held[1] == (held & 2 ? waited - t.work[0][1] * 2 / 3 : 0));
		hd_arena_finish(&h.arena);
	}
}

/* It waits for data, or for a link, and what it computes takes longer still, for want of a processor: what it
 * waits for is its own. */
static void one_that_waits_for_data_on_a_busy_machine_is_named(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (int link = 0; link < 2; link++)
		for (int data = 0; data < 2; data++) {
			struct hd_tl_train t = steady(11);
			int64_t waited = 0;
			for (int k = 0; k < HD_TL_TRAIN_STEPS; k++) {
				t.work[k][1] *= 2;
				t.data[k][1] += data && !link ? 15000 * US : 0;
			}
			for (int p = 0; p < HD_TL_TRAIN_PROCESSES && data && link; p++)
				t.wire[p][1] = t.wire[1][p] = 15000 * US;
			hd_tl_train_record(&t, &h);
			for (uint32_t k = 0; k < HD_TL_TRAIN_STEPS; k++)
				count(&h, 2, 6, h.step[h.process[1].step_begin + k].end,
					waited += t.work[k][1] / 2);
			const struct hd_tl_stragglers s = judge_made(&h);
			CHECK(s.n == (uint32_t)data, "data %d: %u named", data, s.n);
			if (s.n)
				assert_true(s.straggler[0].process == 1 && s.straggler[0].cause == (link ?
					HD_TL_HOLD_LINK : HD_TL_HOLD_IO));
			hd_arena_finish(&h.arena);
		}
}

/* On a machine where all wait, a quota gains little: that it held this one, and that this one comes last, is
 * evidence enough. */
static void one_that_comes_last_and_was_held_by_a_quota_is_named(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (int64_t percent = 0; percent <= 30; percent += 6)
		for (uint32_t of = 0; of < 2; of++) {
			struct hd_tl_train t = steady(13);
			int64_t sum = 0;
			for (int k = 0; k < HD_TL_TRAIN_STEPS; k++)
				for (uint32_t p = 0; p < t.n; p++)
					t.work[k][p] = (p == 1 ? 20500 : 20000) * US;
			const int64_t took = hd_tl_train_record(&t, &h);
			count(&h, 2 * of + 1, 7, -1, 0);
			for (uint32_t k = 0; k < HD_TL_TRAIN_STEPS; k++)
				count(&h, 2 * of + 1, 7, h.step[k].end, sum += took / HD_TL_TRAIN_STEPS *
					percent / 100);
			const struct hd_tl_stragglers s = judge_made(&h);
			CHECK(s.n == (of == 1 && percent > 10), "%u held for %lld %%: %u named", of,
				(long long)percent, s.n);
			if (s.n)
				assert_true(s.straggler[0].process == 1 && s.straggler[0].cause ==
					HD_TL_HOLD_COMPUTE);
			hd_arena_finish(&h.arena);
		}
}

/* Of a quota in long periods each piece is as long as a pause. */
static void one_that_a_quota_holds_for_long_is_not_paused(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (int held = 0; held < 2; held++) {
		struct hd_tl_train t = steady(3);
		int64_t sum = 0;
		slow(&t, HD_TL_HOLD_PAUSED, 1, 3);
		hd_tl_train_record(&t, &h);
		for (uint32_t k = 0; k < HD_TL_TRAIN_STEPS && held; k++)
			count(&h, 3, 7, h.step[h.process[1].step_begin + k].end,
				sum += t.work[k][1] * 9 / 10);
		const struct hd_tl_stragglers s = judge_made(&h);
		assert_true(s.n == 1 && s.straggler[0].process == 1);
		assert_int_equal(s.straggler[0].cause, held ? HD_TL_HOLD_COMPUTE : HD_TL_HOLD_PAUSED);
		hd_arena_finish(&h.arena);
	}
}

/* What a process owns decides how much it is sent: no size of its transfers is one of the others'. */
static void a_link_is_named_by_its_rate(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (uint32_t w = 0; w < HD_TL_TRAIN_PROCESSES; w++)
		for (int slow_link = 0; slow_link < 2; slow_link++) {
			struct hd_tl_train t = steady(17 + w);
			for (uint32_t p = 0; p < HD_TL_TRAIN_PROCESSES; p++)
				for (uint32_t q = 0; q < HD_TL_TRAIN_PROCESSES; q++) {
					const bool its = p == w || q == w;
					t.bytes[p][q] = UINT64_C(1) << (its ? 21 : 18);
					t.wire[p][q] = (its ? slow_link ? 80000 : 8000 : 1000) * US;
				}
			const struct hd_tl_stragglers s = judge(&t, &h, HD_TL_NONE);
			CHECK(s.n == (uint32_t)slow_link, "worker %u, slow %d: %u named", w, slow_link, s.n);
			if (s.n)
				assert_true(s.straggler[0].process == w && s.straggler[0].cause ==
					HD_TL_HOLD_LINK);
			hd_arena_finish(&h.arena);
		}
}

/* What lacks a processor moves its bytes as slowly as it computes, and more may be gained by those. */
static void slow_transfers_of_one_that_computes_slowly_are_no_link(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (int64_t times = 1; times <= 4; times++) {
		struct hd_tl_train t = steady(19);
		for (int s = 0; s < HD_TL_TRAIN_STEPS; s++)
			t.work[s][1] *= times;
		for (int p = 0; p < HD_TL_TRAIN_PROCESSES; p++)
			t.wire[p][1] = t.wire[1][p] = 200000 * US;
		const struct hd_tl_stragglers s = judge(&t, &h, HD_TL_NONE);
		assert_true(s.n == 1 && s.straggler[0].process == 1);
		CHECK(s.straggler[0].cause == (times > 2 ? HD_TL_HOLD_COMPUTE : HD_TL_HOLD_LINK),
			"%lld times: %s", (long long)times, hd_tl_hold_text(s.straggler[0].cause));
		hd_arena_finish(&h.arena);
	}
}

/* Chance makes one slow for some of the steps: the gains of their quarters differ by more than they are. */
static void one_that_was_slow_for_some_of_the_steps_is_not_named(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (int nslow = 10; nslow <= HD_TL_TRAIN_STEPS; nslow += 10)
		for (int kind = 0; kind < 2; kind++) {
			struct hd_tl_train t = steady(23);
			for (int s = 0; s < nslow; s++) {
				t.work[s][1] *= kind ? 1 : 3;
				t.data[s][1] += (kind ? 60000 : 0) * US;
			}
			const struct hd_tl_stragglers s = judge(&t, &h, HD_TL_NONE);
			CHECK(s.n == (nslow == HD_TL_TRAIN_STEPS), "%d slow steps, kind %d: %u named",
				nslow, kind, s.n);
			hd_arena_finish(&h.arena);
		}
}

/* What moves its bytes waits for the processor, too: that is no link. */
static void slow_transfers_of_one_that_waits_for_a_processor_are_no_link(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (int64_t waits_us = 0; waits_us <= 20000; waits_us += 20000) {
		struct hd_tl_train t = steady(29);
		int64_t waited = 0;
		for (int p = 0; p < HD_TL_TRAIN_PROCESSES; p++)
			t.wire[p][1] = t.wire[1][p] = 16000 * US;
		hd_tl_train_record(&t, &h);
		for (uint32_t k = 0; k < HD_TL_TRAIN_STEPS; k++)
			count(&h, 2, 6, h.step[h.process[1].step_begin + k].end, waited += waits_us * US);
		const struct hd_tl_stragglers s = judge_made(&h);
		CHECK(s.n == (waits_us == 0), "%lld us: %u named", (long long)waits_us, s.n);
		if (s.n)
			assert_true(s.straggler[0].process == 1 && s.straggler[0].cause == HD_TL_HOLD_LINK);
		hd_arena_finish(&h.arena);
	}
}

/* Without a heartbeat a long stretch is taken for a pause; one that went on through it has none. */
static void one_whose_heartbeat_went_on_is_not_paused(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (int beats = 0; beats < 2; beats++) {
		struct hd_tl_train t = steady(3);
		slow(&t, HD_TL_HOLD_PAUSED, 1, 3);
		hd_tl_train_record(&t, &h);
		if (beats)
			h.lane[3].name = HD_TL_HEARTBEAT;
		const struct hd_tl_stragglers s = judge_made(&h);
		assert_true(s.n == 1 && s.straggler[0].process == 1);
		assert_int_equal(s.straggler[0].cause, beats ? HD_TL_HOLD_COMPUTE : HD_TL_HOLD_PAUSED);
		hd_arena_finish(&h.arena);
	}
}

/* Of two that is slow in all that it does transfers hide the gain, which varies as it does. */
static void one_of_two_that_computes_slowly_in_all_steps_is_named(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (int64_t times = 2; times <= 6; times++)
		for (int spared = 0; spared < 2; spared++) {
			struct hd_tl_train t = steady(31);
			t.n = 2;
			for (int k = 0; k < HD_TL_TRAIN_STEPS; k++) {
				t.work[k][0] = 20000 * US;
				t.work[k][1] = 20000 * US * (k < 15 ? k < 5 && spared ? 1 : times : 60);
			}
			for (int p = 0; p < 2; p++)
				t.wire[p][1 - p] = 200000 * US;
			hd_tl_train_record(&t, &h);
			h.lane[3].name = HD_TL_HEARTBEAT;
			const struct hd_tl_stragglers s = judge_made(&h);
			CHECK(s.n == (times > 3 && !spared), "%lld times, spared %d: %u named",
				(long long)times, spared, s.n);
			if (s.n)
				assert_true(s.straggler[0].process == 1 && s.straggler[0].cause ==
					HD_TL_HOLD_COMPUTE);
			hd_arena_finish(&h.arena);
		}
}

/* Each gets what it can do in the time, or has more to do by its plan; is cold in its first steps, or was
 * given another share. */
static void unlike_devices_and_shares_name_none(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	/* of process 1, where others have eight instructions: how many in the steps before 10 and from there
	 * on; what each takes in eighths of theirs; and how many times that in the first two steps */
	static const struct { const char *what; uint32_t ops[2]; int64_t eighths, cold; } row[] = {
		{ "a quarter of the speed and of the work", { 2, 2 }, 32, 1 },
		{ "an eighth of the speed and of the work", { 1, 1 }, 64, 1 },
		{ "eight times the speed and the work", { 64, 64 }, 1, 1 },
		{ "twice the work by its plan", { 16, 16 }, 8, 1 },
		{ "ten times as long in its first steps", { 8, 8 }, 8, 10 },
		{ "a resize that gives it what it can do", { 1, 2 }, 32, 1 },
		{ "a resize that takes from it", { 16, 4 }, 8, 1 },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
		for (uint64_t seed = 0; seed < DRAWS(40); seed++) {
			struct hd_tl_train t = steady(4000 + seed);
			t.n = seed % 2 ? 2 : HD_TL_TRAIN_PROCESSES;
			for (int k = 0; k < HD_TL_TRAIN_STEPS; k++)
				for (uint32_t p = 0; p < t.n; p++) {
					t.ops[k][p] = p == 1 ? row[i].ops[k >= 10] : 8;
					if (p == 1)
						t.work[k][p] = t.work[k][p] * row[i].ops[k >= 10] / 8 *
							row[i].eighths / 8 * (k < 2 ? row[i].cold : 1);
				}
			const struct hd_tl_stragglers s = judge(&t, &h, HD_TL_NONE);
			CHECK(s.n == 0, "%s, seed %u: %s of %u, gain %g", row[i].what, (unsigned)seed,
				hd_tl_hold_text(s.straggler[0].cause), s.straggler[0].process,
				s.straggler[0].gain);
			hd_arena_finish(&h.arena);
		}
}

/* Whatever its instructions and transfers say: those of one that is stopped for short are as others', for the
 * most part. */
static void one_that_is_stopped_for_short_is_named_where_it_leads(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (int64_t percent = 0; percent <= 30; percent += 6)
		for (uint32_t of = 0; of < 2; of++)
			for (int notice = 0; notice < 2; notice++) {
				struct hd_tl_train t = steady(37);
				int64_t sum = 0;
				t.n = 2;
				for (int k = 0; k < HD_TL_TRAIN_STEPS; k++)
					for (uint32_t p = 0; p < t.n; p++)
						t.work[k][p] = (p == 1 ? 20500 : 20000) * US;
				const int64_t took = hd_tl_train_record(&t, &h);
				count(&h, 2 * of + 1, 10, -1, 0);
				for (uint32_t k = 0; k < HD_TL_TRAIN_STEPS; k++)
					count(&h, 2 * of + 1, 10, h.step[k].end, sum += took * percent / 100 /
						HD_TL_TRAIN_STEPS);
				if (notice)
					hd_tl_hand_add(&h, 3, HD_EVENT_MARK, 5, 5)->name = 4;
				const struct hd_tl_stragglers s = judge_made(&h);
				CHECK(s.n == (of == 1 && percent > 5), "%u stopped for %lld %%: %u named", of,
					(long long)percent, s.n);
				if (s.n)
					assert_true(s.straggler[0].process == 1 && s.straggler[0].cause ==
						(notice ? HD_TL_HOLD_PREEMPTION : HD_TL_HOLD_COMPUTE));
				hd_arena_finish(&h.arena);
			}
}

/* Slow transfers are a link, however slow the few instructions are, but where a quota held the process, or it
 * was stopped for short. */
static void slow_transfers_are_a_link_unless_it_lacks_a_processor(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	static const struct { uint32_t counter; int64_t percent; enum hd_tl_hold cause; } row[] = {
		{ 7, 0, HD_TL_HOLD_LINK }, { 7, 20, HD_TL_HOLD_LINK }, { 7, 60, HD_TL_HOLD_COMPUTE },
		{ 10, 3, HD_TL_HOLD_LINK }, { 10, 10, HD_TL_HOLD_COMPUTE },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
		for (int64_t times = 1; times <= 3; times += 2) {
			struct hd_tl_train t = steady(41);
			int64_t sum = 0;
			for (int k = 0; k < HD_TL_TRAIN_STEPS; k++) {
				for (uint32_t p = 0; p < t.n; p++)
					t.work[k][p] /= 10;
				t.work[k][1] *= times;
			}
			for (int p = 0; p < HD_TL_TRAIN_PROCESSES; p++)
				t.wire[p][1] = t.wire[1][p] = 200000 * US;
			const int64_t took = hd_tl_train_record(&t, &h);
			count(&h, 3, row[i].counter, -1, 0);
			for (uint32_t k = 0; k < HD_TL_TRAIN_STEPS; k++)
				count(&h, 3, row[i].counter, h.step[k].end, sum += took / HD_TL_TRAIN_STEPS *
					row[i].percent / 100);
			const struct hd_tl_stragglers s = judge_made(&h);
			assert_true(s.n == 1 && s.straggler[0].process == 1);
			CHECK(s.straggler[0].cause == row[i].cause, "row %zu, %lld times: %s", i,
				(long long)times, hd_tl_hold_text(s.straggler[0].cause));
			hd_arena_finish(&h.arena);
		}
}

/* Whenever it came, unless it was taken back; the coordinator's says which worker, and one after the last
 * step says nothing of these. */
static void a_notice_stands_until_it_is_taken_back(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	static const struct { int64_t given, back; uint32_t lane, worker; bool has; } row[] = {
		{ -1000000, 0, 3, 0, true }, { -1000000, 0, 1, 1, true }, { -1000000, 0, 1, 2, false },
		{ -1000000, -5, 1, 1, false }, { 70, 60, 1, 1, true }, { INT64_MAX / 2, 0, 3, 0, false },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct hd_tl_train t = steady(5);
		slow(&t, HD_TL_HOLD_COMPUTE, 1, 5);
		hd_tl_train_record(&t, &h);
		struct hd_tl_event *e = hd_tl_hand_add(&h, row[i].lane, HD_EVENT_MARK, row[i].given,
			row[i].given);
		e->name = 4;
		e->instr = row[i].worker;
		if (row[i].back) {
			e = hd_tl_hand_add(&h, row[i].lane, HD_EVENT_MARK, row[i].back, row[i].back);
			e->name = 8;
			e->instr = row[i].worker;
		}
		const struct hd_tl_stragglers s = judge_made(&h);
		assert_true(s.n == 1 && s.straggler[0].process == 1);
		CHECK((s.straggler[0].cause == HD_TL_HOLD_PREEMPTION) == row[i].has, "row %zu", i);
		hd_arena_finish(&h.arena);
	}
}

/* Steps of 5 ms of three processes. Now and then process 1 first waits for data, or computes for longer. */
struct hold_lumps { uint32_t nsteps, from, every; int64_t ms; bool reading; };

static void record_lumps(struct hd_tl_hand *h, const struct hold_lumps *l)
{
	const int64_t ms = 1000 * US;
	int64_t end[HD_TL_HAND_STEPS / 3], begin = 0;

	assert_true(l->nsteps <= HD_TL_HAND_STEPS / 3);
	hd_tl_hand_init(h, 3);
	for (uint32_t s = 0; s < l->nsteps; s++) {
		const int64_t more = s >= l->from && s % l->every == 0 ? l->ms * ms : 0;
		end[s] = begin + more + 5 * ms;
		for (uint32_t p = 0; p < 3; p++) {
			const int64_t ready = begin + (p == 1 && l->reading ? more : 0) + ms / 10,
				done = p == 1 ? end[s] - ms / 10 : begin + 5 * ms - ms / 4;
			hd_tl_hand_wait(h, p, HD_WAIT_DATA, begin, ready);
			hd_tl_hand_op(h, p, 1, ready, done);
			hd_tl_hand_wait(h, p, HD_WAIT_COMMIT, done, end[s]);
		}
		begin = end[s];
	}
	for (uint32_t p = 0; p < 3; p++)
		for (uint32_t s = 0; s < l->nsteps; s++)
			hd_tl_hand_step(h, p, s, s ? end[s - 1] : 0, end[s]);
}

/* What comes in lumps, each for many steps, is no chance where it comes again and again. */
static void what_comes_in_lumps_is_named_where_they_are_many(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	static const struct { struct hold_lumps l; int64_t cause; } row[] = {
		{ { 120, 0, 24, 600, true }, HD_TL_HOLD_IO },        /* a reader that has 24 steps ready */
		{ { 120, 110, 24, 300, true }, -1 },                 /* none of them, or one */
		{ { 120, 96, 24, 900, true }, -1 },
		{ { 120, 0, 15, 75, false }, HD_TL_HOLD_COMPUTE },   /* in each period of 150 ms */
		{ { 120, 118, 119, 75, false }, -1 },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct hd_tl_causes causes;
		struct hd_tl_stragglers s;
		struct hd_arena scratch;
		record_lumps(&h, &row[i].l);
		hd_tl_hand_made(&h, &causes);
		hd_arena_init(&scratch, 0);
		assert_int_equal(hd_tl_stragglers_of(&causes, &h.arena, &scratch, &s, NULL), HD_OK);
		CHECK(s.n == (row[i].cause >= 0), "row %zu: %u", i, s.n);
		if (s.n)
			CHECK(s.straggler[0].process == 1 && s.straggler[0].cause == row[i].cause,
				"row %zu: %u, %s", i, s.straggler[0].process,
				hd_tl_hold_text(s.straggler[0].cause));
		hd_arena_finish(&scratch);
		hd_arena_finish(&h.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_injected_straggler_and_its_cause_are_named),
		cmocka_unit_test(a_balanced_run_names_none),
		cmocka_unit_test(one_whose_heartbeat_stood_still_is_paused),
		cmocka_unit_test(one_that_waits_for_a_shared_processor_is_not_named),
		cmocka_unit_test(one_that_waits_for_a_quota_of_its_own_is_named),
		cmocka_unit_test(one_that_waits_for_data_on_a_busy_machine_is_named),
		cmocka_unit_test(one_that_comes_last_and_was_held_by_a_quota_is_named),
		cmocka_unit_test(one_that_a_quota_holds_for_long_is_not_paused),
		cmocka_unit_test(a_link_is_named_by_its_rate),
		cmocka_unit_test(slow_transfers_of_one_that_computes_slowly_are_no_link),
		cmocka_unit_test(one_that_was_slow_for_some_of_the_steps_is_not_named),
		cmocka_unit_test(slow_transfers_of_one_that_waits_for_a_processor_are_no_link),
		cmocka_unit_test(one_whose_heartbeat_went_on_is_not_paused),
		cmocka_unit_test(one_of_two_that_computes_slowly_in_all_steps_is_named),
		cmocka_unit_test(unlike_devices_and_shares_name_none),
		cmocka_unit_test(one_that_is_stopped_for_short_is_named_where_it_leads),
		cmocka_unit_test(slow_transfers_are_a_link_unless_it_lacks_a_processor),
		cmocka_unit_test(a_notice_stands_until_it_is_taken_back),
		cmocka_unit_test(what_comes_in_lumps_is_named_where_they_are_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
