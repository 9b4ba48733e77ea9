#include "protocol/testing_coordinator.h"

/* Rule 12: what is forgotten when a job begins again after a mismatch, and what is not. */

enum { NO = 0, A = 7, B = 8 };

/* Worker w has sealed step s of epoch e, with these digests; its record of the step has that loss. */
#define SEALS(w, e, s, sum_, state_, loss) \
	FROM(w, SEAL, .epoch = (e), .seal = { .step = (s), .ran = true, .knows = (e), .sum_digest = (sum_), \
		.state_digest = (state_), .news = { .loss_sum = (loss) } })
#define SUSPECTS_DIGEST(by, sender) FROM(by, SUSPECT, .epoch = 1, .suspect = { sender, HD_CORRUPT })

/* All are expelled or have to go, and what that changed is stored: workers first .. first + 2 begin
 * again from X_step in that epoch. */
static void begin_again(struct co_at_work *c, uint32_t first, uint32_t epoch, uint64_t step)
{
	CO(RESTORED, .step = step);
	for (uint32_t i = first; i < first + 3; i++) {
		co_admit(c, i);
		co_ready_to_sync(c, i);
		co_synced(c, i);
	}
	STORED();
	for (uint32_t i = first; i < first + 3; i++)
		FROM(i, STATUS, .epoch = epoch, .status = { .at = step });
	STORED();
	CHECK(c->co->has_view && c->co->view.epoch == epoch && c->co->view.nmembers == 3,
		"there is no view of epoch %u: %s", epoch, c->text);
}

static const struct hd_step_news *news_of_commit(const struct co_at_work *c, uint64_t step)
{
	for (size_t i = 0; i < c->done.n; i++)
		if (c->done.at[i].kind == HD_CO_DO_COMMIT && c->done.at[i].step == step)
			return c->done.at[i].news;
	fail_msg("step %u is not committed", (unsigned)step);
	return NULL;
}

/* The record of a step that is run again is that of the second time. */
static void records_of_mismatched_steps_are_forgotten(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	SEALS(0, 1, 0, A, A, 1);
	SEALS(0, 1, 1, A, A, 1);
	SEALS(1, 1, 0, A, A, 1);
	SEALS(1, 1, 1, A, A, 1);
	CHECK(strstr(SEALS(2, 1, 0, A, B, 1), "NOTE corrupt 2"), "%s", c->text);
	STORED();
	begin_again(c, 3, 5, 0);
	for (uint64_t s = 0; s < 2; s++) {
		IS(SEALS(3, 5, s, B, B, 2), "");
		IS(SEALS(4, 5, s, B, B, 2), "");
		IS(SEALS(5, 5, s, B, B, 2), s ? "COMMIT 1@5" : "COMMIT 0@5");
		assert_true(news_of_commit(c, s)->loss_sum == 2);
	}
	co_end(c);
}

/* Once: a loss of all workers later on has nothing to do with it. */
static void a_state_is_invalidated_once(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	SEALS(0, 1, 0, A, A, 1);
	SEALS(1, 1, 0, A, A, 1);
	SEALS(2, 1, 0, A, B, 1);
	IS(STORED(), "STORE 9 e 4 next 3 not started mismatches 1 to 0; NOTE restore; INVALIDATE 0; RESTORE; "
		"SPAWN 3");
	begin_again(c, 3, 5, 0);
	for (uint32_t i = 3; i < 6; i++)
		CO(LOST, .worker = i, .why = HD_EXITED);
	STORED();
	CHECK(strstr(c->text, "RESTORE") && !strstr(c->text, "INVALIDATE"), "%s", c->text);
	co_end(c);
}

/* A joiner whose digest was suspected at a later step than the one that is judged stays, as others do. */
static void suspicions_are_forgotten(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	CO(SCALE, .n = 4);
	co_admit(c, 3);
	SEALS(0, 1, 0, A, A, 1);
	SEALS(0, 1, 1, A, A, 1);
	SUSPECTS_DIGEST(0, 3);
	assert_int_equal(hd_co_find(c->co, 3)->suspect_digest, 2);
	SEALS(1, 1, 0, A, A, 1);
	CHECK(strstr(SEALS(2, 1, 0, A, B, 1), "NOTE corrupt 2"), "%s", c->text);
	assert_null(strstr(c->text, "END 3"));
	assert_int_equal(hd_co_find(c->co, 3)->suspect_digest, 0);
	co_end(c);
}

/* The first worker as well as the last. */
static void the_first_may_be_the_one_that_is_wrong(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	SEALS(0, 1, 0, A, B, 1);
	SEALS(1, 1, 0, A, A, 1);
	CHECK(!strncmp(SEALS(2, 1, 0, A, A, 1), "NOTE corrupt 0; >0 RELEASE@1 5;", 31), "%s", c->text);
	co_end(c);
}

/* It has reported a later step since: its state after this one is not known any more. */
static void nothing_is_verified_without_the_first(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	SEALS(0, 1, 0, A, A, 1);
	SEALS(0, 1, 2, A, A, 1);
	SEALS(1, 1, 0, A, A, 1);
	IS(SEALS(2, 1, 0, A, A, 1), "COMMIT 0@1");
	assert_int_equal(c->co->verified, 0);
	co_end(c);
}

/* The state before the mismatched step was verified: that is not a newer one. */
static void only_a_newer_state_makes_a_mismatch_the_first(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &co_config, 3);
	for (uint64_t s = 0; s < 2; s++)
		for (uint32_t w = 0; w < 3; w++)
			SEALS(w, 1, s, A, A, 1);
	assert_int_equal(c->co->verified, 2);
	SEALS(0, 1, 2, A, A, 1);
	SEALS(1, 1, 2, A, A, 1);
	CHECK(strstr(SEALS(2, 1, 2, A, B, 1), "mismatches 1 to 2; INVALIDATE 2"), "%s", c->text);
	STORED();
	begin_again(c, 3, 5, 2);
	SEALS(3, 5, 2, A, A, 1);
	SEALS(4, 5, 2, A, A, 1);
	CHECK(strstr(SEALS(5, 5, 2, A, B, 1), "mismatches 2 to 2; INVALIDATE 2"), "%s", c->text);
	STORED();
	/* a verified one that is newer by a step, and it is the first again */
	begin_again(c, 6, 9, 2);
	for (uint32_t w = 6; w < 9; w++)
		SEALS(w, 9, 2, A, A, 1);
	assert_int_equal(c->co->verified, 3);
	SEALS(6, 9, 3, A, A, 1);
	SEALS(7, 9, 3, A, A, 1);
	CHECK(strstr(SEALS(8, 9, 3, A, B, 1), "mismatches 1 to 3; INVALIDATE 3"), "%s", c->text);
	co_end(c);
}

/* Members say their seals to a coordinator that took over whenever their link is there again, and before the
 * first view none of them counts as said. */
static void what_was_done_again_is_counted_once(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = co_config;
	uint32_t redone = 0;

	(void)state;
	config.record = (struct hd_co_record){ .term = 1, .epoch = 4, .next_worker = 3, .target = 2,
		.started = true, .nmembers = 2, .member = { 0, 1 } };
	config.step = 5;
	co_begin(c, &config);
	CO(TICK, .n = 0);
	for (uint32_t i = 0; i < 4; i++) {
		co_return(c, i % 2, 10 + i % 2, true);
		FROM(i % 2, SEAL, .epoch = 4, .seal = { .step = 5, .knows = 4, .ran = true,
			.news = { .samples = 1, .redone = 3 + i % 2 } });
	}
	STORED();
	for (uint32_t w = 0; w < 2; w++) {
		MEMBER_AT(w, 5, 6);
		for (size_t i = 0; i < c->done.n; i++)
			if (c->done.at[i].kind == HD_CO_DO_COMMIT && c->done.at[i].step == 5)
				redone = c->done.at[i].news ? c->done.at[i].news->redone : 99;
	}
	CHECK(redone == 7, "%u, %s", redone, c->text);
	co_end(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_done_again_is_counted_once),
		cmocka_unit_test(records_of_mismatched_steps_are_forgotten),
		cmocka_unit_test(a_state_is_invalidated_once),
		cmocka_unit_test(suspicions_are_forgotten),
		cmocka_unit_test(the_first_may_be_the_one_that_is_wrong),
		cmocka_unit_test(nothing_is_verified_without_the_first),
		cmocka_unit_test(only_a_newer_state_makes_a_mismatch_the_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
