#include "timeline/analyze/straggler.h"

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

static struct hd_tl_stragglers judge(const struct hd_tl_train *t, struct hd_tl_hand *h, uint32_t notice)
{
	struct hd_tl_causes causes;
	struct hd_tl_stragglers s;
	struct hd_arena scratch;

	hd_tl_train_record(t, h);
	if (notice != HD_TL_NONE)
		hd_tl_hand_add(h, 2 * notice + 1, HD_EVENT_MARK, 5, 5)->name = 4;
	hd_tl_hand_made(h, &causes);
	hd_arena_init(&scratch, 0);
	assert_int_equal(hd_tl_stragglers_of(&causes, &h->arena, &scratch, &s, NULL), HD_OK);
	hd_arena_finish(&scratch);
	assert_int_equal(s.nsteps, HD_TL_TRAIN_STEPS);
	return s;
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
		const struct hd_tl_train t = steady(1000 + seed);
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
		struct hd_tl_causes causes;
		struct hd_tl_stragglers s;
		struct hd_arena scratch;
		const int64_t took = hd_tl_train_record(&t, &h);
		hd_tl_hand_add(&h, 3, HD_EVENT_OP, took / 4, took / 4 + took * percent / 100)->name = 5;
		hd_tl_hand_add(&h, 5, HD_EVENT_OP, took / 4, took / 4 + took / 100)->name = 5;
		hd_tl_hand_made(&h, &causes);
		hd_arena_init(&scratch, 0);
		assert_int_equal(hd_tl_stragglers_of(&causes, &h.arena, &scratch, &s, NULL), HD_OK);
		CHECK(s.n == (percent > 5), "%lld %%", (long long)percent);
		if (s.n)
			assert_true(s.straggler[0].process == 1 && s.straggler[0].cause == HD_TL_HOLD_PAUSED);
		hd_arena_finish(&scratch);
		hd_arena_finish(&h.arena);
	}
}

/* The same slow process, and a counter that says how long it waited for a processor. */
static void one_that_waits_for_a_shared_processor_is_not_named(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (uint32_t tenths = 0; tenths <= 10; tenths += 2)
		for (int apart = 0; apart < 2; apart++) {
			struct hd_tl_train t = steady(7);
			struct hd_tl_causes causes;
			struct hd_tl_stragglers s;
			struct hd_arena scratch;
			uint64_t waited = 0;
			slow(&t, HD_TL_HOLD_COMPUTE, 1, 7);
			hd_tl_train_record(&t, &h);
			h.tl.name = (const char *const[]){ "?", "F", "B", "STEP", HD_TL_PROCESSOR_WAIT, "" };
			for (uint32_t k = h.process[1].step_begin; k < h.process[1].step_end; k++) {
				/* two of three parts of its work are excess */
				waited += (uint64_t)t.work[k - h.process[1].step_begin][1] * 2 / 3 * tenths /
					10;
				struct hd_tl_event *e = hd_tl_hand_add(&h, 2, HD_EVENT_COUNTER, h.step[k].end,
					h.step[k].end);
				e->name = 4;
				e->arg = waited;
			}
			h.process[1].host = apart ? "far" : "";
			hd_tl_hand_made(&h, &causes);
			hd_arena_init(&scratch, 0);
			assert_int_equal(hd_tl_stragglers_of(&causes, &h.arena, &scratch, &s, NULL), HD_OK);
			CHECK(s.n == (tenths < 7 || apart), "%u tenths, %s: %u named", tenths, apart ? "alone"
				:
				"shared", s.n);
			assert_true(s.starved[1] == (int64_t)waited - (int64_t)(t.work[0][1] * 2 / 3 * tenths
				/ 10) ||
				tenths == 0);
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
