#include "timeline/analyze/summary.h"

#include "timeline/analyze/testing_train.h"
#include "tests/check.h"

static struct hd_tl_summary summary_of(const struct hd_tl_train *t, struct hd_tl_hand *h)
{
	struct hd_tl_causes causes;
	struct hd_tl_summary s;
	struct hd_arena scratch;

	hd_tl_train_record(t, h);
	hd_tl_hand_made(h, &causes);
	hd_arena_init(&scratch, 0);
	assert_int_equal(hd_tl_summary_of(&h->tl, 8, &h->arena, &scratch, &s, NULL), HD_OK);
	hd_arena_finish(&scratch);
	return s;
}

static void sums_are_kept_from_the_steps_to_the_whole(void **state)
{
	(void)state;
	static struct hd_tl_hand h;

	for (uint64_t seed = 0; seed < DRAWS(50); seed++) {
		const struct hd_tl_train t = hd_tl_train_of(seed);
		const struct hd_tl_summary s = summary_of(&t, &h);
		int64_t time = 0, parts = 0, path = 0, blame = 0;
		assert_true(s.range.first == HD_TL_TRAIN_STEPS - 8 && s.range.last == HD_TL_TRAIN_STEPS - 1);
		for (uint32_t p = 0; p < HD_TL_TRAIN_PROCESSES; p++)
			for (int k = 0; k < HD_TL_NPARTS; k++) {
				time += s.process[p].sum.part[k];
				path += s.process[p].path[k];
				blame += s.process[p].blame[k];
				parts += p ? 0 : s.part[k];
			}
		CHECK(time == s.time && parts == s.time && blame == s.time && path == s.path, "seed %u",
			(unsigned)seed);
		CHECK(s.nsteps == 8 && s.replayed.recorded == s.path && s.replayed.replayed == s.path,
			"seed %u: steps of one commit after another are one path", (unsigned)seed);
		hd_arena_finish(&h.arena);
	}
}

/* Work that is marked, of the steps that are summed up, at its process. */
static void what_was_done_again_is_summed_up(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	const struct hd_tl_train t = hd_tl_train_of(3);
	struct hd_tl_causes causes;
	struct hd_tl_summary s;
	struct hd_arena scratch;
	int64_t want = 0;

	hd_tl_train_record(&t, &h);
	for (uint64_t i = 0; i < h.tl.nevents; i++)
		if (h.event[i].kind == HD_EVENT_OP && h.event[i].lane == 2)
			h.event[i].flags = HD_EVENT_FLAG_REDONE;
	for (int k = HD_TL_TRAIN_STEPS - 8; k < HD_TL_TRAIN_STEPS; k++)
		want += t.work[k][1];
	hd_tl_hand_made(&h, &causes);
	hd_arena_init(&scratch, 0);
	assert_int_equal(hd_tl_summary_of(&h.tl, 8, &h.arena, &scratch, &s, NULL), HD_OK);
	hd_arena_finish(&scratch);
	CHECK(s.process[1].redone == want && !s.process[0].redone && !s.process[2].redone, "%lld of %lld",
		(long long)s.process[1].redone, (long long)want);
	hd_arena_finish(&h.arena);
}

static void the_sentence_says_what_held_and_nothing_where_nothing_did(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	char text[HD_TL_HELD_BYTES];
	struct hd_tl_train t = hd_tl_train_of(1);

	for (int s = 0; s < HD_TL_TRAIN_STEPS; s++)
		for (int p = 0; p < HD_TL_TRAIN_PROCESSES; p++) {
			t.work[s][p] = 100000;
			t.data[s][p] = 100;
		}
	struct hd_tl_summary s = summary_of(&t, &h);
	hd_tl_held(&s, text);
	assert_string_equal(text, "");
	hd_arena_finish(&h.arena);
	for (int k = 0; k < HD_TL_TRAIN_STEPS; k++)
		for (int p = 0; p < HD_TL_TRAIN_PROCESSES; p++)
			t.data[k][p] = 20000;
	s = summary_of(&t, &h);
	hd_tl_held(&s, text);
	assert_string_equal(text, "17 % of the devices' time went into waiting for data");
	hd_arena_finish(&h.arena);
	for (int k = 0; k < HD_TL_TRAIN_STEPS; k++)
		t.work[k][2] = 300000;
	s = summary_of(&t, &h);
	hd_tl_held(&s, text);
	CHECK(strncmp(text, "worker held the run back (compute): ", 36) == 0, "%s", text);
	hd_arena_finish(&h.arena);
}

/* twenty short steps, then twenty that are long for want of a processor */
static void waits_for_a_processor_are_never_more_than_all(void **state)
{
	(void)state;
	static struct hd_tl_hand h;
	struct hd_tl_causes causes;
	struct hd_tl_summary s;
	struct hd_arena scratch;
	char text[HD_TL_HELD_BYTES];

	hd_tl_hand_init(&h, 3);
	for (uint32_t p = 0; p < 3; p++) {
		int64_t at = 0;
		uint64_t waited = 0;
		for (uint64_t n = 0; n < 40; n++) {
			const int64_t ns = n < 20 ? 2000000 : 100000000;
			hd_tl_hand_op(&h, p, 1, at, at + ns);
			hd_tl_hand_step(&h, p, n, at, at + ns);
			at += ns;
			waited += n < 20 ? 0 : (uint64_t)ns / 10 * 9;
			struct hd_tl_event *e = hd_tl_hand_add(&h, 2 * p + 1, HD_EVENT_COUNTER, at, at);
			e->name = 6;
			e->arg = waited;
		}
	}
	hd_tl_hand_made(&h, &causes);
	hd_arena_init(&scratch, 0);
	assert_int_equal(hd_tl_summary_of(&h.tl, 40, &h.arena, &scratch, &s, NULL), HD_OK);
	hd_arena_finish(&scratch);
	hd_tl_held(&s, text);
	assert_string_equal(text, "90 % of the devices' time went into waiting for a processor: "
		"there are fewer than threads that could run");
	hd_arena_finish(&h.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_kept_from_the_steps_to_the_whole),
		cmocka_unit_test(what_was_done_again_is_summed_up),
		cmocka_unit_test(the_sentence_says_what_held_and_nothing_where_nothing_did),
		cmocka_unit_test(waits_for_a_processor_are_never_more_than_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
