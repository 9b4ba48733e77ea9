#include "protocol/testing_member.h"

/* Rule 12 of member.h: one pipeline of three stages, at the members 0 to 2, of which 1 is lost in step 0.
 * This one is 0. */

static const struct hd_stage_bucket of_three[3] = {
	{ .stage = 0, .makers = 1, .readers = 1 }, { .stage = 1, .makers = 2, .readers = 2 },
	{ .stage = 2, .makers = 4, .readers = 4 },
};
static const struct hd_stage_buckets three = { .n = 3, .nstages = 3, .shadows = true,
	.at = (struct hd_stage_bucket *)(uintptr_t)of_three };
static const uint32_t place[] = { 0, 1, 2 }, second[] = { 1 }, left[] = { 0, 2 }, next[] = { 5, 0, 7 };
static const struct hd_vrank rank[] = { { 0, 4 }, { 1, 0 }, { 2, 0 } }, mended[] = { { 0, 4 }, { 0, 0 },
	{ 2, 0 } };
static const struct hd_have all = { 0, 7 }, none_of = { 0, 0 }, rest_of = { 0, 3 };
static const struct hd_pass passes[] = { { 0, 0, 0, 1, 0 }, { 0, 1, 1, 1, 1 }, { 2, 0, 2, 1, 2 } };
static const struct hd_vrange ranges[] = { { 0, 4 }, { 0, 4 }, { 0, 4 } };
static const uint8_t arrived[12] = { 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 2, 2 };
static const uint32_t own[] = { 0 };
static const struct hd_member_stood stood = { .nranks = 1, .narrived = 12, .rank = own, .next = next,
	.arrived = arrived };

#define SHAPE .width = 3, .nplace = 3, .place = place

static void begin(struct at_work *w, bool goes_on)
{
	const struct hd_member_config config = { .nvns = 4, .nbuckets = 3, .buckets = &three, .nsteps = 9,
		.detect_ns = AT_WORK_T, .ndevices = 1, .nonce = 7, .goes_on = goes_on };

	at_work_synced(w, &config, 0);
	FENCE(1);
	VIEW(1, 3, SHAPE, .nrank = 3, .rank = rank, .step = 0, .nchain = 1, .chain = &all);
	EVENT(READY, .step = 0);
}

static bool stops(const char *said) { return strstr(said, " stops; STOP 0") != NULL; }

/* The rest of step 0, of the two that are left. */
static const char *hear_rest(struct at_work *w, uint32_t epoch)
{
	return hear_view(w, epoch, left, 2, (struct hd_msg_view){ .halt = HD_NO_STEP, SHAPE, .nrank = 3,
		.rank = mended, .step = 0, .hold = true, .npass = 3, .pass = passes, .nrange = 3,
		.range = ranges, .nhave = 1, .have = &none_of, .nchain = 1, .chain = &rest_of,
		.ndoubled = 1, .doubled = second, .nnext = 3, .next = next });
}

static void ranks_stand_and_go_on_with_one_stage_more(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, true);
	CHECK(stops(FENCE(2)), "%s", w->text);
	IS(EVENT(STOPPED, .step = 1, .stood = &stood), "");       /* of another step */
	IS(EVENT(STOPPED, .step = 0, .stood = &stood), ">co STOPPED@2 0 of 1 0:5 4x1 4x0 4x2");
	IS(EVENT(STOPPED, .step = 0, .stood = &stood), "");
	/* in a further epoch it still stands */
	FENCE(3);
	CHECK(strstr(w->text, " stops; >co STOPPED@3 0 of 1 0:5") && !strstr(w->text, "STOP 0"), "%s",
		w->text);
	IS(hear_rest(w, 3), "ADOPT 3 of 2; GO_ON 0; AGAIN 0; COMPUTE 0.0 [0+4]; COMPUTE 0.1 [0+4]");
	/* once is all */
	IS(EVENT(TICK), ">co PROGRESS@3 0 0 0");
	FENCE(4);
	assert_null(strstr(w->text, "stops"));
	assert_null(strstr(w->text, "STOP"));
	at_work_end(w);
}

/* Without the runtime; with a sum; before what it computes with is here; in a halted step. */
static void who_cannot_stop_does_not_say_so(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	begin(w, false);
	CHECK(!stops(FENCE(2)) && strstr(w->text, "STATUS@2"), "%s", w->text);
	at_work_end(w);
	begin(w, true);
	EVENT(COMPUTED, .step = 0);
	EVENT(FOLDED, .step = 0, .bucket = 0);
	CHECK(!stops(FENCE(2)) && strstr(w->text, "STATUS@2"), "%s", w->text);
	at_work_end(w);
	begin(w, true);
	w->m->lacks = true;
	CHECK(!stops(FENCE(2)), "%s", w->text);
	at_work_end(w);
	begin(w, true);
	EVENT(FAILED, .step = 0, .code = 4, .text = "no");
	CHECK(!stops(FENCE(2)), "%s", w->text);
	at_work_end(w);
}

/* The view has four members; the last one waits for a place. It says so by no rank, and goes on too. */
static void who_has_no_rank_stands_at_once(void **state)
{
	static const uint32_t rest[] = { 0, 2, 3 };
	const struct hd_member_config config = { .nvns = 4, .nbuckets = 3, .buckets = &three, .nsteps = 9,
		.detect_ns = AT_WORK_T, .ndevices = 1, .nonce = 7, .goes_on = true };
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &config, 3);
	FENCE(1);
	VIEW(1, 4, SHAPE, .nrank = 3, .rank = rank, .step = 0, .nchain = 1, .chain = &all);
	EVENT(READY, .step = 0);
	FENCE(2);
	CHECK(strstr(w->text, " stops; >co STOPPED@2 0 of 1") && !strstr(w->text, "STOP 0"), "%s", w->text);
	hear_view(w, 2, rest, 3, (struct hd_msg_view){ .halt = HD_NO_STEP, SHAPE, .nrank = 3,
		.rank = mended, .step = 0, .hold = true, .npass = 3, .pass = passes, .nrange = 3,
		.range = ranges, .nhave = 1, .have = &none_of, .nchain = 1, .chain = &rest_of,
		.ndoubled = 1, .doubled = second, .nnext = 3, .next = next });
	CHECK(strstr(w->text, "GO_ON 0; AGAIN 0") && !strstr(w->text, "COMPUTE"), "%s", w->text);
	at_work_end(w);
}

static void an_engine_that_refuses_is_said_and_a_stuck_one_suspects_itself(void **state)
{
	static const struct hd_member_stood nothing = { .nranks = 0 };
	struct at_work at, *w = &at;

	(void)state;
	begin(w, true);
	FENCE(2);
	IS(EVENT(STOPPED, .step = 0, .stood = &nothing), ">co STOPPED@2 0 of 1");
	CHECK(!stops(FENCE(3)), "%s", w->text);
	at_work_end(w);
	begin(w, true);
	FENCE(2);
	EVENT(STOPPED, .step = 0, .stood = &stood);
	hear_rest(w, 2);
	IS(EVENT(STUCK, .step = 0), ">co SUSPECT@2 0 closed");
	at_work_end(w);
}

/* Rule 14, in the shape of these three: whoever has no rank in it may not refuse. */
static void a_view_with_fewer_stages_may_be_refused(void **state)
{
	static const struct hd_member_stood nothing = { .nranks = 0 };
	struct at_work at, *w = &at;

	(void)state;
	for (uint32_t fewer = 0; fewer < 2; fewer++) {
		begin(w, true);
		FENCE(2);
		VIEW(2, 3, SHAPE, .nrank = 3, .rank = rank, .afresh = true, .step = 0, .nchain = 1,
			.chain = &all, .fewer = fewer);
		CHECK(strstr(w->text, fewer ? "BEGIN 0 fewer" : "BEGIN 0;"), "%s", w->text);
		IS(EVENT(UNFIT, .epoch = 1, .text = "of a view before"), "");
		IS(EVENT(UNFIT, .epoch = 2, .text = "3 MiB"), ">co UNFIT@2 2 3 MiB");
		/* it computes nothing of it: its ranks stand nowhere */
		CHECK(!stops(FENCE(3)) && strstr(w->text, "STATUS@3 0 member begun"), "%s", w->text);
		/* another one, in which all begin again */
		VIEW(3, 3, SHAPE, .nrank = 3, .rank = rank, .afresh = true, .step = 0, .nchain = 1,
			.chain = &all);
		CHECK(strstr(w->text, "CANCEL 0") && strstr(w->text, "BEGIN 0;"), "%s", w->text);
		CHECK(stops(FENCE(4)), "%s", w->text);
		/* between STATUS and STOPPED: the one that stands nowhere is still said */
		IS(EVENT(UNFIT, .epoch = 3, .text = "3 MiB"), ">co UNFIT@4 3 3 MiB");
		IS(EVENT(STOPPED, .step = 0, .stood = &nothing), ">co STOPPED@4 0 of 3");
		at_work_end(w);
	}
	at_work_synced(w, &(const struct hd_member_config){ .nvns = 4, .nbuckets = 3, .buckets = &three,
		.nsteps = 9, .detect_ns = AT_WORK_T, .ndevices = 1, .nonce = 7, .goes_on = true }, 3);
	FENCE(1);
	VIEW(1, 4, SHAPE, .nrank = 3, .rank = rank, .step = 0, .nchain = 1, .chain = &all, .fewer = true);
	EVENT(READY, .step = 0);
	CHECK(!strstr(w->text, "fewer"), "%s", w->text);
	at_work_end(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_stand_and_go_on_with_one_stage_more),
		cmocka_unit_test(who_cannot_stop_does_not_say_so),
		cmocka_unit_test(who_has_no_rank_stands_at_once),
		cmocka_unit_test(a_view_with_fewer_stages_may_be_refused),
		cmocka_unit_test(an_engine_that_refuses_is_said_and_a_stuck_one_suspects_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
