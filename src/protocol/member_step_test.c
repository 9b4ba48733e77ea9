#include "protocol/testing_member.h"

#include "base/alloc.h"

/* The life of a step, one event at a time. Of four virtual nodes and two buckets member 0 of 0 and 1
 * computes the first two and owns bucket 0. */

static const struct hd_step_news none;

#define AT(step_) .step = (step_)
#define UPDATED_AT(s) EVENT(UPDATED, .step = (s), .news = &none)
#define SEAL_OF(from, e, s, ...) PEER_SAYS(from, SEAL, .epoch = (e), .seal = { .step = (s), .ran = true, \
	__VA_ARGS__ })

/* All of step s but FINISH's answer: the last thing that comes is the table. */
static void run_to_finish(struct at_work *w, uint32_t epoch, uint64_t s)
{
	EVENT(COMPUTED, AT(s));
	EVENT(ROOT, .epoch = epoch, .worker = 1, AT(s));
	EVENT(FOLDED, AT(s));
	EVENT(SUM, .epoch = epoch, .worker = 1, .bucket = 1, AT(s));
	EVENT(LEAVES, .epoch = epoch, .worker = 1, AT(s));
}

/* X_{s+1}, and its boundary is done: the gate alone is missing. */
static void run_to_gate(struct at_work *w, uint32_t epoch, uint64_t s)
{
	run_to_finish(w, epoch, s);
	UPDATED_AT(s);
	EVENT(READY, AT(s + 1));
}

static void a_step_goes_from_begin_to_the_gate(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 0);
	IS(FENCE(1), "EPOCH 1; >co STATUS@1 0");
	IS(VIEW(1, 2, .step = 0), "ADOPT 1 of 2; BOUNDARY 0 writer");
	IS(EVENT(READY, AT(0)), "BEGIN 0; COMPUTE 0.0 [0+2]");
	IS(EVENT(FINAL, AT(0), .bucket = 1), "ROOTS 0.0.1 >1");
	IS(EVENT(FINAL, AT(0), .bucket = 0), "");
	IS(EVENT(ROOT, .epoch = 1, .worker = 1, AT(0)), "FOLD 0.0");
	IS(EVENT(FOLDED, AT(0)), "PUBLISH 0.0 {1}");
	IS(EVENT(COMPUTED, AT(0)), "LEAVES 0.0");
	IS(EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(0)), "");
	IS(EVENT(LEAVES, .epoch = 1, .worker = 1, AT(0)), "FINISH 0");
	IS(UPDATED_AT(0), ">1 SEAL@1 0 ran knows 1; >co SEAL@1 0 ran knows 1; BOUNDARY 1 writer");
	IS(EVENT(READY, AT(1)), "");
	IS(SEAL_OF(1, 1, 0), "BEGIN 1; COMPUTE 1.0 [0+2]");
	assert_int_equal(hd_member_at(w->m), 1);
	at_work_end(w);
}

/* Rule 1: whichever of the two comes last. */
static void nobody_begins_before_all_have_sealed_and_its_boundary_is_done(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 3);
	EVENT(COMPUTED, AT(0));
	IS(EVENT(ROOT, .epoch = 1, .worker = 2, AT(0)), "");
	IS(EVENT(ROOT, .epoch = 1, .worker = 1, AT(0)), "FOLD 0.0");
	IS(EVENT(FOLDED, AT(0)), "PUBLISH 0.0 {12}");
	EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(0));
	EVENT(LEAVES, .epoch = 1, .worker = 1, AT(0));
	IS(EVENT(LEAVES, .epoch = 1, .worker = 2, AT(0)), "FINISH 0");
	UPDATED_AT(0);
	IS(SEAL_OF(1, 1, 0), "");
	IS(SEAL_OF(1, 1, 0), "");
	IS(EVENT(READY, AT(1)), "");
	IS(SEAL_OF(2, 0, 0), "");
	IS(SEAL_OF(2, 1, 0), "BEGIN 1; COMPUTE 1.0 [0+2]");
	at_work_end(w);
}

static void what_comes_twice_or_names_nothing_of_the_step_does_nothing(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	IS(EVENT(FINAL, AT(1), .bucket = 1), "");
	IS(EVENT(FINAL, AT(0), .pass = 1, .bucket = 1), "");
	IS(EVENT(FINAL, AT(0), .bucket = 2), "");
	IS(EVENT(COMPUTED, AT(0), .pass = 1), "");
	IS(EVENT(FINAL, AT(0), .bucket = 1), "ROOTS 0.0.1 >1");
	IS(EVENT(FINAL, AT(0), .bucket = 1), "");
	IS(EVENT(ROOT, .epoch = 1, .worker = 1, AT(0)), "");
	IS(EVENT(COMPUTED, AT(0)), "FOLD 0.0; LEAVES 0.0");
	IS(EVENT(ROOT, .epoch = 1, .worker = 1, AT(0)), "");
	IS(EVENT(FOLDED, AT(0)), "PUBLISH 0.0 {1}");
	IS(EVENT(SUM, .epoch = 0, .worker = 1, .bucket = 1, AT(0)), "");
	IS(EVENT(LEAVES, .epoch = 1, .worker = 1, AT(0)), "");
	IS(EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(1)), "");
	IS(UPDATED_AT(0), "");
	IS(EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(0)), "FINISH 0");
	IS(EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(0)), "");
	IS(UPDATED_AT(1), "");
	IS(UPDATED_AT(0), ">1 SEAL@1 0 ran knows 1; >co SEAL@1 0 ran knows 1; BOUNDARY 1 writer");
	IS(UPDATED_AT(0), "");
	IS(UPDATED_AT(1), "");
	IS(EVENT(READY, AT(0)), "");
	IS(SEAL_OF(1, 1, 0), "");
	IS(EVENT(READY, AT(1)), "BEGIN 1; COMPUTE 1.0 [0+2]");
	IS(EVENT(READY, AT(1)), "");
	at_work_end(w);
}

/* The owner of both buckets folds alone, and is its own gate. */
static void one_worker_alone_runs_through_the_same_machine(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 1);
	IS(EVENT(FINAL, AT(0), .bucket = 1), "FOLD 0.1");
	IS(EVENT(COMPUTED, AT(0)), "FOLD 0.0");
	IS(EVENT(FOLDED, AT(0), .bucket = 1), "");
	IS(EVENT(FOLDED, AT(0), .bucket = 0), "FINISH 0");
	IS(UPDATED_AT(0), ">co SEAL@1 0 ran knows 1; BOUNDARY 1 writer");
	IS(EVENT(READY, AT(1)), "BEGIN 1; COMPUTE 1.0 [0+4]");
	at_work_end(w);
}

static const struct hd_pass both[] = { { 0, 0, 0, 1, 0 }, { 1, 0, 1, 1, 0 } };
static const struct hd_vrange halves[] = { { 0, 2 }, { 2, 2 } };
static const struct hd_have no_holder = { 0, 0 };
#define OPEN(s) .step = (s), .npass = 2, .pass = both, .nrange = 2, .range = halves, .nhave = 1, \
	.have = &no_holder

/* Rule 4: the entries of the table are the checkpoint writer's word that the step is run. */
static void nothing_of_the_table_goes_out_before_the_boundary_is_done(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	for (int halts = 0; halts < 2; halts++) {
		at_work_synced(w, &at_work_config, 0);
		FENCE(1);
		IS(VIEW(1, 2, OPEN(0)), "ADOPT 1 of 2; BEGIN 0; COMPUTE 0.0 [0+2]; BOUNDARY 0 writer");
		IS(EVENT(COMPUTED, AT(0)), "ROOTS 0.0.1 >1");
		if (halts) {
			IS(EVENT(READY, AT(0), .halt = true),
				">1 HALT@1 0; >co HALT@1 0; CANCEL 0; BOUNDARY 0 writer final");
			IS(EVENT(READY, AT(0)), ">co DONE@1 0 code 0 ");
		} else {
			IS(EVENT(READY, AT(0)), "LEAVES 0.0");
		}
		at_work_end(w);
	}
}

/* A member that is fenced says nothing of the step any more, and goes on where it is under the new view
 * (rule 3). */
static void a_step_that_is_taken_up_again_sends_what_is_there_once(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	EVENT(FINAL, AT(0), .bucket = 1);
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 0 member begun [0+2]");
	IS(EVENT(COMPUTED, AT(0)), "");
	IS(EVENT(ROOT, .epoch = 2, .worker = 1, AT(0)), "");
	IS(VIEW(2, 2, OPEN(0)), "ADOPT 2 of 2; AGAIN 0; ROOTS 0.0.1 >1; LEAVES 0.0");
	IS(EVENT(FINAL, AT(0), .bucket = 1), "");
	IS(EVENT(ROOT, .epoch = 1, .worker = 1, AT(0)), "");
	IS(EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(0)), "");
	IS(EVENT(LEAVES, .epoch = 1, .worker = 1, AT(0)), "");
	IS(EVENT(TABLE, .epoch = 1, .worker = 1, AT(0)), "");
	IS(EVENT(ROOT, .epoch = 2, .worker = 1, AT(0)), "FOLD 0.0");
	IS(EVENT(FOLDED, AT(0)), "PUBLISH 0.0 {1}");
	IS(EVENT(SUM, .epoch = 2, .worker = 1, .bucket = 1, AT(0)), "");
	IS(EVENT(LEAVES, .epoch = 2, .worker = 1, AT(0)), "FINISH 0");
	at_work_end(w);
}

/* Its sums stay; the status waits for a running fold, and has its sum. */
static void a_fold_under_way_is_awaited_before_the_status(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 1);
	EVENT(FINAL, AT(0), .bucket = 1);
	EVENT(COMPUTED, AT(0));
	IS(FENCE(2), "EPOCH 2");
	IS(EVENT(FOLDED, AT(0), .bucket = 1), "");
	IS(EVENT(FOLDED, AT(0), .bucket = 0), ">co STATUS@2 0 member begun table [0+4] sum 3");
	IS(FENCE(2), ">co STATUS@2 0 member begun table [0+4] sum 3");
	static const struct hd_have mine = { 0, 1 };
	IS(VIEW(2, 2, .step = 0, .npass = 1, .pass = both, .nrange = 1,
		.range = (const struct hd_vrange[]){ { 0, 4 } }, .nhave = 1, .have = &mine,
		.table = 1),
		"ADOPT 2 of 2; AGAIN 0; PUBLISH 0.0 {1}; PUBLISH 0.1 {1}; TABLE 0 {1}; FINISH 0");
	IS(EVENT(READY, AT(0)), "");
	at_work_end(w);
}

/* Sums and the table go to members that lack them; roots of a bucket whose sum has a holder are not
 * sent. */
static void holders_publish_what_others_lack(void **state)
{
	struct at_work at, *w = &at;
	static const struct hd_have first[] = { { 0, 1 }, { 1, 2 } };

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	EVENT(ROOT, .epoch = 1, .worker = 1, AT(0));
	EVENT(COMPUTED, AT(0));
	EVENT(FOLDED, AT(0));
	FENCE(2);
	IS(VIEW(2, 2, .step = 0, .npass = 2, .pass = both, .nrange = 2, .range = halves, .nhave = 2,
		.have = first),
		"ADOPT 2 of 2; AGAIN 0; PUBLISH 0.0 {1}; LEAVES 0.0");
	IS(EVENT(SUM, .epoch = 2, .worker = 1, .bucket = 1, AT(0)), "");
	IS(EVENT(LEAVES, .epoch = 2, .worker = 1, AT(0)), "FINISH 0");
	FENCE(3);
	IS(VIEW(3, 3, .step = 0, .npass = 2, .pass = both, .nrange = 2, .range = halves, .nhave = 2,
		.have = first, .table = 1,
		.nat = 3, .at = (const uint64_t[]){ 0, 0, 0 }),
		"ADOPT 3 of 3; AGAIN 0; PUBLISH 0.0 {12}; TABLE 0 {12}");
	at_work_end(w);
}

/* A member that sealed it sends what it has, as a publisher; what is over for all is not resumed. */
static void who_has_sealed_the_step_publishes_and_seals_again(void **state)
{
	struct at_work at, *w = &at;
	static const struct hd_have mine = { 0, 1 };
	static const uint64_t ahead[] = { 1, 0 }, all[] = { 1, 1 };

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	run_to_gate(w, 1, 0);
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 1 member prev");
	IS(VIEW(2, 2, .step = 0, .npass = 2, .pass = both, .nrange = 2, .range = halves, .nhave = 1,
		.have = &mine, .table = 1, .nat = 2,
		.at = ahead),
		"ADOPT 2 of 2; AGAIN 0; PUBLISH 0.0 {1}; PUBLISH 0.1 {1}; TABLE 0 {1}; >1 SEAL@2 0 ran "
		"knows 2; >co SEAL@2 0 ran knows 2");
	IS(SEAL_OF(1, 2, 0), "BEGIN 1; COMPUTE 1.0 [0+2]");
	FENCE(3);
	IS(VIEW(3, 2, .step = 0, .npass = 2, .pass = both, .nrange = 2, .range = halves, .nhave = 1,
		.have = &mine, .table = 1, .nat = 2,
		.at = ahead),
		"ADOPT 3 of 2; >1 SEAL@3 0 ran knows 3; >co SEAL@3 0 ran knows 3");
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	run_to_gate(w, 1, 0);
	FENCE(2);
	IS(VIEW(2, 2, .step = 0, .npass = 2, .pass = both, .nrange = 2, .range = halves, .nhave = 1,
		.have = &mine, .table = 1, .nat = 2,
		.at = all),
		"ADOPT 2 of 2; >1 SEAL@2 0 ran knows 2; >co SEAL@2 0 ran knows 2; BEGIN 1; COMPUTE 1.0 "
		"[0+2]");
	at_work_end(w);
}

/* What a lost worker had is dealt out as a further pass; the roots of the own passes are numbered through. */
static void a_further_pass_is_computed_and_its_roots_are_numbered_on(void **state)
{
	struct at_work at, *w = &at;
	static const struct hd_pass pass[] = { { 0, 0, 0, 1, 0 }, { 0, 1, 1, 1, 0 } };

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	EVENT(COMPUTED, AT(0));
	FENCE(2);
	IS(VIEW(2, 1, .step = 0, .npass = 2, .pass = pass, .nrange = 2, .range = halves, .nhave = 1,
		.have = &no_holder),
		"ADOPT 2 of 1; AGAIN 0; COMPUTE 0.1 [2+2]");
	assert_true(hd_exchange_has_root(hd_member_exchange(w->m), 0, 0, 0) &&
		!hd_exchange_has_root(hd_member_exchange(w->m), 0, 1, 0));
	IS(EVENT(FINAL, AT(0), .pass = 1, .bucket = 0), "FOLD 0.0");
	assert_true(hd_exchange_has_root(hd_member_exchange(w->m), 0, 0, 0) &&
		hd_exchange_has_root(hd_member_exchange(w->m), 0, 1, 0));
	IS(EVENT(COMPUTED, AT(0), .pass = 1), "FOLD 0.1");
	IS(EVENT(FOLDED, AT(0), .bucket = 0), "");
	IS(EVENT(FOLDED, AT(0), .bucket = 1), "FINISH 0");
	at_work_end(w);
}

/* The last step; a target; a stop. */
static void who_halts_saves_and_says_so(void **state)
{
	struct at_work at, *w = &at;
	struct hd_member_config config = at_work_config;

	(void)state;
	config.nsteps = 1;
	at_work_member(w, &config, 0, 2);
	run_to_finish(w, 1, 0);
	IS(UPDATED_AT(0), ">1 SEAL@1 0 ran knows 1; >co SEAL@1 0 ran knows 1; BOUNDARY 1 writer final");
	IS(EVENT(READY, AT(1)), ">co DONE@1 1 code 0 ");
	IS(SEAL_OF(1, 1, 0), "");
	assert_int_equal(hd_member_state(w->m), HD_HALTED);
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	run_to_finish(w, 1, 0);
	UPDATED_AT(0);
	IS(SEAL_OF(1, 1, 0), "");
	IS(EVENT(READY, AT(1), .halt = true), ">1 HALT@1 1; >co HALT@1 1; BOUNDARY 1 writer final");
	IS(EVENT(READY, AT(1)), ">co DONE@1 1 code 0 ");
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	run_to_finish(w, 1, 0);
	IS(HEAR(STOP, .stop = { .code = 75 }), "");
	UPDATED_AT(0);
	IS(EVENT(READY, AT(1)), ">1 HALT@1 1; >co HALT@1 1; BOUNDARY 1 writer final");
	IS(EVENT(READY, AT(1)), ">co DONE@1 1 code 75 ");
	IS(SEAL_OF(1, 1, 0), "");
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	IS(HEAR(STOP, .stop = { .code = 75 }), "");
	assert_int_equal(hd_member_state(w->m), HD_MEMBER);
	at_work_end(w);
}

/* A member that is not the writer follows the writer's HALT: of its epoch, and of no past step. */
static void others_halt_where_the_checkpoint_writer_does(void **state)
{
	static const struct { uint32_t epoch; uint64_t step; bool heard; } row[] = { { 1, 1, true },
		{ 0, 1, false }, { 2, 1, false }, { 1, 0, false } };
	struct at_work at, *w = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		at_work_member(w, &at_work_config, 1, 2);
		HEAR(STOP, .stop = { .code = 75 });
		EVENT(COMPUTED, AT(0));
		EVENT(ROOT, .epoch = 1, .worker = 0, .bucket = 1, AT(0));
		EVENT(FOLDED, .bucket = 1, AT(0));
		EVENT(SUM, .epoch = 1, .worker = 0, AT(0));
		EVENT(LEAVES, .epoch = 1, .worker = 0, AT(0));
		UPDATED_AT(0);
		IS(PEER_SAYS(0, HALT, .epoch = row[i].epoch, .halt = { row[i].step }),
			row[i].heard ? "BOUNDARY 1 final" : "");
		IS(EVENT(READY, AT(1)), "");
		IS(SEAL_OF(0, 1, 0), row[i].heard ? "" : "BEGIN 1; COMPUTE 1.0 [2+2]");
		IS(EVENT(READY, AT(1)), row[i].heard ? ">co DONE@1 1 code 75 " : "");
		at_work_end(w);
	}
}

/* It was begun before the checkpoint writer's word of it came. */
static void a_step_that_is_halted_after_it_began_is_cancelled(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 1, 2);
	EVENT(COMPUTED, AT(0));
	IS(PEER_SAYS(0, HALT, .epoch = 1, .halt = { 0 }), "CANCEL 0; BOUNDARY 0 final");
	IS(EVENT(READY, AT(0)), ">co DONE@1 0 code 0 ");
	IS(EVENT(COMPUTED, AT(0)), "");
	at_work_end(w);
}

/* A fold of a step that is cancelled is not reported any more: a fence does not wait for it. */
static void a_fold_of_a_cancelled_step_holds_no_status_back(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	for (int failed = 0; failed < 2; failed++) {
		at_work_member(w, &at_work_config, 0, 2);
		EVENT(COMPUTED, AT(0));
		IS(EVENT(ROOT, .epoch = 1, .worker = 1, AT(0)), "FOLD 0.0");
		if (failed)
			IS(EVENT(FAILED, .code = 4, .text = "nan"), ">co DONE@1 0 code 4 nan; CANCEL 0");
		else
			IS(PEER_SAYS(1, HALT, .epoch = 1, .halt = { 0 }),
				">1 HALT@1 0; >co HALT@1 0; CANCEL 0; BOUNDARY 0 writer final");
		IS(EVENT(FOLDED, AT(0)), "");
		IS(FENCE(2), "EPOCH 2; >co STATUS@2 0 member halted");
		at_work_end(w);
	}
}

static void a_number_that_is_not_finite_ends_the_step(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	run_to_finish(w, 1, 0);
	IS(EVENT(FAILED, .code = 4, .text = "nan"), ">co DONE@1 0 code 4 nan; CANCEL 0");
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 0 member halted");
	at_work_end(w);
	at_work_member(w, &at_work_config, 0, 2);
	run_to_finish(w, 1, 0);
	EVENT(LOST, .worker = HD_COORDINATOR, .why = HD_CLOSED);
	IS(EVENT(FAILED, .code = 4, .text = "nan"), "EXIT 4 nan");
	at_work_end(w);
}

/* Rule 10. */
static void who_hears_another_digest_begins_no_step_more(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	/* the other one's word comes before the own result, or after it */
	for (int late = 0; late < 2; late++) {
		at_work_member(w, &at_work_config, 0, 2);
		run_to_finish(w, 1, 0);
		if (!late)
			IS(SEAL_OF(1, 1, 0, .sum_digest = 5, .state_digest = 6), "");
		IS(EVENT(UPDATED, AT(0), .news = &none, .sum_digest = 5, .state_digest = 7), late ?
			 ">1 SEAL@1 0 ran knows 1 5/7; >co SEAL@1 0 ran knows 1 5/7; BOUNDARY 1 writer" :
			">1 SEAL@1 0 ran knows 1 5/7; >co SEAL@1 0 ran knows 1 5/7; >co SUSPECT@1 1 "
			"corrupt; BOUNDARY 1 writer");
		if (late)
			IS(SEAL_OF(1, 1, 0, .sum_digest = 5, .state_digest = 6), ">co SUSPECT@1 1 corrupt");
		IS(SEAL_OF(1, 1, 0, .sum_digest = 5, .state_digest = 6), "");
		IS(EVENT(READY, AT(1)), "");
		IS(SEAL_OF(1, 1, 1), "");
		at_work_end(w);
	}
}

static void digests_that_are_the_same_or_of_no_such_step_say_nothing(void **state)
{
	static const struct { uint64_t own_sum, own_state, step, sum, state; bool ran; } row[] = {
		{ 5, 6, 0, 5, 6, true }, { 0, 0, 0, 5, 6, true }, { 5, 6, 1, 5, 7, true }, { 5, 6, 0, 0, 0, true }, { 5, 6, 0, 5, 7, false },
	};
	struct at_work at, *w = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		at_work_member(w, &at_work_config, 0, 3);
		hd_member_on_digests(w->m, 2, &(struct hd_msg_seal){ .step = row[i].step, .ran = row[i].ran,
			.sum_digest = row[i].sum,
			 .state_digest = row[i].state });
		EVENT(COMPUTED, AT(0));
		EVENT(ROOT, .epoch = 1, .worker = 1, AT(0));
		EVENT(ROOT, .epoch = 1, .worker = 2, AT(0));
		EVENT(FOLDED, AT(0));
		EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(0));
		EVENT(LEAVES, .epoch = 1, .worker = 1, AT(0));
		EVENT(LEAVES, .epoch = 1, .worker = 2, AT(0));
		const char *said = EVENT(UPDATED, AT(0), .news = &none, .sum_digest = row[i].own_sum,
			.state_digest = row[i].own_state);
		CHECK(!strstr(said, "SUSPECT") && !w->m->diverged, "row %zu: %s", i, said);
		at_work_end(w);
	}
}

/* ---- guards of the step, one after the other ---- */

/* What names a pass or bucket that there is not. */
static void reports_of_what_there_is_not_do_nothing(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 1, 2);
	IS(EVENT(FINAL, AT(0), .pass = 1, .bucket = 0), "");
	IS(EVENT(FINAL, AT(0), .bucket = UINT32_MAX), "");
	IS(EVENT(COMPUTED, AT(0), .pass = UINT32_MAX), "");
	IS(EVENT(COMPUTED, AT(0)), "ROOTS 0.0.0 >0; LEAVES 0.0");
	at_work_end(w);
}

/* What comes of a step before it is begun here is of no exchange yet. */
static void what_comes_before_the_step_is_begun_counts_for_nothing(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	run_to_gate(w, 1, 0);
	IS(EVENT(COMPUTED, AT(1)), "");
	IS(EVENT(FOLDED, AT(1)), "");
	IS(EVENT(ROOT, .epoch = 1, .worker = 1, AT(1)), "");
	IS(EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(1)), "");
	IS(EVENT(LEAVES, .epoch = 1, .worker = 1, AT(1)), "");
	IS(SEAL_OF(1, 1, 0), "BEGIN 1; COMPUTE 1.0 [0+2]");
	IS(EVENT(COMPUTED, AT(1)), "ROOTS 1.0.1 >1; LEAVES 1.0");
	IS(EVENT(ROOT, .epoch = 1, .worker = 1, AT(1)), "FOLD 1.0");
	IS(EVENT(FOLDED, AT(1)), "PUBLISH 1.0 {1}");
	IS(EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(1)), "");
	IS(EVENT(LEAVES, .epoch = 1, .worker = 1, AT(1)), "FINISH 1");
	at_work_end(w);
}

/* Rule 3: a held member ignores the exchange, and sends nothing of it. */
static void nothing_is_exchanged_between_fence_and_view(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	FENCE(2);
	IS(EVENT(FINAL, AT(0), .bucket = 1), "");
	IS(EVENT(SUM, .epoch = 2, .worker = 1, .bucket = 1, AT(0)), "");
	IS(VIEW(2, 2, OPEN(0)), "ADOPT 2 of 2; AGAIN 0; ROOTS 0.0.1 >1");
	IS(EVENT(COMPUTED, AT(0)), "LEAVES 0.0");
	IS(EVENT(ROOT, .epoch = 2, .worker = 1, AT(0)), "FOLD 0.0");
	IS(EVENT(FOLDED, AT(0)), "PUBLISH 0.0 {1}");
	IS(EVENT(LEAVES, .epoch = 2, .worker = 1, AT(0)), "");
	IS(EVENT(SUM, .epoch = 2, .worker = 1, .bucket = 1, AT(0)), "FINISH 0");
	at_work_end(w);
}

/* READY without a BOUNDARY changes nothing. */
static void a_boundary_is_done_once(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	IS(EVENT(READY, AT(0)), "");
	run_to_finish(w, 1, 0);
	IS(w->text, "FINISH 0");
	at_work_end(w);
}

/* Rule 4, of a member that has all and is not done at the boundary. */
static void nothing_is_finished_before_the_boundary_is_done(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 0);
	FENCE(1);
	VIEW(1, 2, OPEN(0));
	EVENT(COMPUTED, AT(0));
	EVENT(ROOT, .epoch = 1, .worker = 1, AT(0));
	EVENT(FOLDED, AT(0));
	EVENT(SUM, .epoch = 1, .worker = 1, .bucket = 1, AT(0));
	IS(EVENT(TABLE, .epoch = 1, .worker = 1, AT(0)), "");
	assert_true(hd_exchange_complete(hd_member_exchange(w->m)));
	IS(EVENT(READY, AT(0)), "LEAVES 0.0; FINISH 0");
	at_work_end(w);
}

/* Its roots are those of its own passes, however many others have. */
static void own_roots_are_counted_by_own_passes(void **state)
{
	static const struct hd_vrank uneven[] = { { 0, 3 }, { 1, 1 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 0);
	FENCE(1);
	VIEW(1, 2, .step = 0, .nrank = 2, .rank = uneven);
	IS(EVENT(READY, AT(0)), "BEGIN 0; COMPUTE 0.0 [0+3]");
	IS(EVENT(COMPUTED, AT(0)), "ROOTS 0.0.1 >1; LEAVES 0.0");
	IS(EVENT(ROOT, .epoch = 1, .worker = 1, AT(0)), "FOLD 0.0");
	at_work_end(w);
}

/* A member without virtual nodes computes nothing; it still adds, and finishes. */
static void a_member_without_a_share_computes_nothing(void **state)
{
	static const struct hd_vrank alone[] = { { 0, 4 }, { 1, 0 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 1);
	FENCE(1);
	VIEW(1, 2, .step = 0, .nrank = 2, .rank = alone);
	IS(EVENT(READY, AT(0)), "BEGIN 0");
	IS(EVENT(ROOT, .epoch = 1, .worker = 0, .bucket = 1, AT(0)), "FOLD 0.1");
	IS(EVENT(FOLDED, AT(0), .bucket = 1), "PUBLISH 0.1 {0}");
	EVENT(SUM, .epoch = 1, .worker = 0, AT(0));
	IS(EVENT(LEAVES, .epoch = 1, .worker = 0, AT(0)), "FINISH 0");
	at_work_end(w);
}

/* ---- guards of the end ---- */

static const uint32_t pair[] = { 0, 1 };

/* The first that is heard counts: neither an earlier HALT, nor STOP, nor what a boundary finds undoes it. */
static void where_it_halts_is_said_once(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	run_to_finish(w, 1, 0);
	UPDATED_AT(0);
	IS(PEER_SAYS(1, HALT, .epoch = 1, .halt = { 2 }), "");
	IS(PEER_SAYS(1, HALT, .epoch = 1, .halt = { 0 }), "");
	IS(EVENT(READY, AT(1), .halt = true), "");
	IS(HEAR(STOP, .stop = { .code = 75 }), "");
	IS(SEAL_OF(1, 1, 0), "BEGIN 1; COMPUTE 1.0 [0+2]");
	run_to_finish(w, 1, 1);
	IS(UPDATED_AT(1),
		">1 SEAL@1 1 ran knows 1; >co SEAL@1 1 ran knows 1; BOUNDARY 2 writer final; >1 HALT@1 2; "
		">co HALT@1 2");
	IS(EVENT(READY, AT(2)), ">co DONE@1 2 code 75 ");
	at_work_end(w);
}

/* What the boundary finds is the checkpoint writer's to say. */
static void who_is_not_the_checkpoint_writer_does_not_halt_by_itself(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 1);
	FENCE(1);
	VIEW(1, 2, .step = 0);
	IS(EVENT(READY, AT(0), .halt = true), "BEGIN 0; COMPUTE 0.0 [2+2]");
	at_work_end(w);
}

/* Why it failed is said again as it was, though a stop was asked for as well. */
static void the_code_of_a_failure_stays(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	HEAR(STOP, .stop = { .code = 75 });
	run_to_finish(w, 1, 0);
	IS(EVENT(FAILED, .code = 4, .text = "nan"), ">co DONE@1 0 code 4 nan; CANCEL 0");
	FENCE(2);
	IS(hear_view(w, 2, pair, 2, (struct hd_msg_view){ .step = 0, .halt = 0 }),
		"ADOPT 2 of 2; >1 HALT@2 0; >co HALT@2 0; BOUNDARY 0 writer final");
	IS(EVENT(READY, AT(0)), ">co DONE@2 0 code 4 nan");
	at_work_end(w);
}

/* The step failed elsewhere, and a view says so, while this one is about to find out. */
static void a_finish_under_way_is_not_cancelled(void **state)
{
	static const struct hd_have mine = { 0, 1 };
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	run_to_finish(w, 1, 0);
	FENCE(2);
	IS(hear_view(w, 2, pair, 2, (struct hd_msg_view){ .step = 0, .halt = 0, .npass = 2, .pass = both,
		.nrange = 2, .range = halves,
		.nhave = 1, .have = &mine, .table = 1 }),
		"ADOPT 2 of 2; AGAIN 0; PUBLISH 0.0 {1}; PUBLISH 0.1 {1}; TABLE 0 {1}");
	IS(EVENT(FAILED, .code = 4, .text = "nan"), ">co DONE@2 0 code 4 nan; CANCEL 0");
	at_work_end(w);
}

/* A fence is answered once, when no fold is under way; a failure meanwhile answers what waited for the end
 * of the step alone. */
static void a_failure_answers_no_fence_twice_nor_early(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	IS(FENCE(2), "EPOCH 2; >co STATUS@2 0 member begun [0+2]");
	IS(EVENT(FAILED, .code = 4, .text = "nan"), ">co DONE@2 0 code 4 nan");
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	EVENT(COMPUTED, AT(0));
	IS(EVENT(ROOT, .epoch = 1, .worker = 1, AT(0)), "FOLD 0.0");
	IS(FENCE(2), "EPOCH 2");
	IS(EVENT(FAILED, .code = 4, .text = "nan"), ">co DONE@2 0 code 4 nan");
	IS(EVENT(FOLDED, AT(0)), ">co STATUS@2 0 member begun halted [0+2] sum 1");
	at_work_end(w);
}

/* ---- guards of rule 10 ---- */

/* Digests that differ in either half; of this very step; said once. */
static void digests_are_compared_whole(void **state)
{
	static const struct { uint64_t own_sum, own_state, step, sum, state; bool suspect; } row[] = {
		{ 5, 0, 0, 6, 0, true }, { 0, 5, 0, 0, 6, true }, { 5, 6, 0, 7, 6, true }, { 5, 6, 0, 5, 7, true }, { 5, 6, 0, 5, 6, false },
		{ 5, 6, HD_MEMBER_NEWS, 5, 7, false },
	};
	struct at_work at, *w = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		at_work_member(w, &at_work_config, 0, 2);
		run_to_finish(w, 1, 0);
		EVENT(UPDATED, AT(0), .news = &none, .sum_digest = row[i].own_sum,
			.state_digest = row[i].own_state);
		const char *said = SEAL_OF(1, 1, row[i].step, .sum_digest = row[i].sum,
			.state_digest = row[i].state);
		CHECK(!strcmp(said, row[i].suspect ? ">co SUSPECT@1 1 corrupt" : ""), "row %zu: %s", i, said);
		at_work_end(w);
	}
}

static void a_digest_that_is_said_again_is_not_judged_again(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	run_to_finish(w, 1, 0);
	EVENT(UPDATED, AT(0), .news = &none, .sum_digest = 5, .state_digest = 6);
	IS(SEAL_OF(1, 1, 0, .sum_digest = 5, .state_digest = 6), "");
	EVENT(READY, AT(1));
	IS(SEAL_OF(1, 1, 0, .sum_digest = 5, .state_digest = 7), "");
	at_work_end(w);

	/* of a worker that is no member: the step under way is finished, its sender is named once */
	at_work_member(w, &at_work_config, 0, 2);
	run_to_finish(w, 1, 0);
	EVENT(UPDATED, AT(0), .news = &none, .sum_digest = 5, .state_digest = 6);
	EVENT(READY, AT(1));
	IS(SEAL_OF(1, 1, 0, .sum_digest = 5, .state_digest = 6), "BEGIN 1; COMPUTE 1.0 [0+2]");
	IS(SEAL_OF(2, 1, 0, .sum_digest = 5, .state_digest = 7), ">co SUSPECT@1 2 corrupt");
	run_to_finish(w, 1, 1);
	IS(w->text, "FINISH 1");
	IS(UPDATED_AT(1), ">1 SEAL@1 1 ran knows 1; >co SEAL@1 1 ran knows 1; BOUNDARY 2 writer");
	EVENT(READY, AT(2));
	IS(SEAL_OF(1, 1, 1), "");
	at_work_end(w);

	/* nor is it, where a step that it was lost in may have been run again with other bits */
	struct hd_member_config varies = at_work_config;
	varies.varies = true;
	at_work_member(w, &varies, 0, 2);
	run_to_finish(w, 1, 0);
	EVENT(UPDATED, AT(0), .news = &none, .sum_digest = 5, .state_digest = 6);
	EVENT(READY, AT(1));
	IS(SEAL_OF(1, 1, 0, .sum_digest = 5, .state_digest = 6), "BEGIN 1; COMPUTE 1.0 [0+2]");
	IS(SEAL_OF(2, 1, 0, .sum_digest = 5, .state_digest = 7), "");
	at_work_end(w);
}

/* The earliest step counts: it is run, none after it. */
static void the_step_whose_digests_differ_is_the_last(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	hd_member_diverged(w->m, 5);
	hd_member_diverged(w->m, 3);
	hd_member_diverged(w->m, 4);
	assert_int_equal(w->m->diverged, 3);
	at_work_end(w);

	at_work_member(w, &at_work_config, 0, 2);
	run_to_gate(w, 1, 0);
	w->m->diverged = 2;
	IS(SEAL_OF(1, 1, 0), "BEGIN 1; COMPUTE 1.0 [0+2]");
	run_to_gate(w, 1, 1);
	IS(SEAL_OF(1, 1, 1), "");
	at_work_end(w);
}

/* ---- further passes, and what cannot be begun ---- */

static void roots_of_a_further_pass_are_named(void **state)
{
	static const struct hd_pass pass[] = { { 0, 0, 0, 1, 0 }, { 0, 1, 1, 1, 0 }, { 1, 0, 2, 1, 0 } };
	static const struct hd_vrange range[] = { { 0, 2 }, { 2, 1 }, { 3, 1 } };
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 2);
	FENCE(2);
	IS(VIEW(2, 2, .step = 0, .npass = 3, .pass = pass, .nrange = 3, .range = range, .nhave = 1,
		.have = &no_holder),
		"ADOPT 2 of 2; AGAIN 0; COMPUTE 0.1 [2+1]");
	IS(EVENT(FINAL, AT(0), .pass = 1, .bucket = 1), "ROOTS 0.1.1 >1");
	IS(EVENT(COMPUTED, AT(0), .pass = 1), "LEAVES 0.1");
	at_work_end(w);
}

/* Digests of others that differ say so at once, before there is one here. */
static void others_that_differ_end_the_run_after_the_step(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_member(w, &at_work_config, 0, 3);
	IS(SEAL_OF(1, 1, 0, .sum_digest = 5, .state_digest = 6), "");
	IS(SEAL_OF(2, 1, 0, .sum_digest = 5, .state_digest = 7), "");
	assert_int_equal(w->m->diverged, 1);
	at_work_end(w);
}

static void a_step_without_memory_ends_the_worker(void **state)
{
	struct at_work at, *w = &at;

	(void)state;
	at_work_synced(w, &at_work_config, 0);
	FENCE(1);
	VIEW(1, 2, .step = 0);
	hd_alloc_arm(1);
	const char *said = EVENT(READY, AT(0));
	hd_alloc_arm(0);
	IS(said, "EXIT 1 no memory for the roots of 2 buckets");
	at_work_end(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_goes_from_begin_to_the_gate),
		cmocka_unit_test(nobody_begins_before_all_have_sealed_and_its_boundary_is_done),
		cmocka_unit_test(what_comes_twice_or_names_nothing_of_the_step_does_nothing),
		cmocka_unit_test(one_worker_alone_runs_through_the_same_machine),
		cmocka_unit_test(nothing_of_the_table_goes_out_before_the_boundary_is_done),
		cmocka_unit_test(a_step_that_is_taken_up_again_sends_what_is_there_once),
		cmocka_unit_test(a_fold_under_way_is_awaited_before_the_status),
		cmocka_unit_test(holders_publish_what_others_lack),
		cmocka_unit_test(who_has_sealed_the_step_publishes_and_seals_again),
		cmocka_unit_test(a_further_pass_is_computed_and_its_roots_are_numbered_on),
		cmocka_unit_test(who_halts_saves_and_says_so),
		cmocka_unit_test(others_halt_where_the_checkpoint_writer_does),
		cmocka_unit_test(a_step_that_is_halted_after_it_began_is_cancelled),
		cmocka_unit_test(a_fold_of_a_cancelled_step_holds_no_status_back),
		cmocka_unit_test(a_number_that_is_not_finite_ends_the_step),
		cmocka_unit_test(who_hears_another_digest_begins_no_step_more),
		cmocka_unit_test(digests_that_are_the_same_or_of_no_such_step_say_nothing),
		cmocka_unit_test(reports_of_what_there_is_not_do_nothing),
		cmocka_unit_test(what_comes_before_the_step_is_begun_counts_for_nothing),
		cmocka_unit_test(nothing_is_exchanged_between_fence_and_view),
		cmocka_unit_test(a_boundary_is_done_once),
		cmocka_unit_test(nothing_is_finished_before_the_boundary_is_done),
		cmocka_unit_test(own_roots_are_counted_by_own_passes),
		cmocka_unit_test(a_member_without_a_share_computes_nothing),
		cmocka_unit_test(where_it_halts_is_said_once),
		cmocka_unit_test(who_is_not_the_checkpoint_writer_does_not_halt_by_itself),
		cmocka_unit_test(the_code_of_a_failure_stays),
		cmocka_unit_test(a_finish_under_way_is_not_cancelled),
		cmocka_unit_test(a_failure_answers_no_fence_twice_nor_early),
		cmocka_unit_test(digests_are_compared_whole),
		cmocka_unit_test(a_digest_that_is_said_again_is_not_judged_again),
		cmocka_unit_test(the_step_whose_digests_differ_is_the_last),
		cmocka_unit_test(roots_of_a_further_pass_are_named),
		cmocka_unit_test(others_that_differ_end_the_run_after_the_step),
		cmocka_unit_test(a_step_without_memory_ends_the_worker),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
