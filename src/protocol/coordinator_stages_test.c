#include "protocol/testing_coordinator.h"

/* Rule 15 of coordinator.h: two stages, at most two pipelines, so two or four members compute. The first two
 * buckets are of stage 0. */

static const struct hd_co_config staged = { .nvns = 4, .nbuckets = 4, .min = 1, .max = 6, .target = 2,
	.detect_ns = CO_T, .min_wait_ns = 100 * CO_T, .shape = { 2, 2, { 0, 1 } }, .pipes = 2 };

static const struct hd_msg_view *view_of(const struct co_at_work *c)
{
	for (size_t i = 0; i < c->done.n; i++)
		if (c->done.at[i].kind == HD_CO_DO_SEND && c->done.at[i].msg->kind == HD_MSG_VIEW)
			return &c->done.at[i].msg->view;
	return NULL;
}

/* Step 0 of epoch 1 as it is at one member: its sums and slots; at 1 it has finished it. */
#define HAS(w, at_, sum_, table_, slot_) FROM(w, STATUS, .epoch = 2, \
	.status = { .member = true, .at = (at_), \
	.begun = !(at_), .prev = (at_), .table = (table_), .nsum = 1, .sum = (const uint64_t[]){ sum_ }, \
	.nslot = 1, .slot = (const uint64_t[]){ slot_ } })

static void a_start_waits_for_a_pipeline_of_devices(void **state)
{
	struct hd_co_config config = staged;
	struct co_at_work at, *c = &at;

	(void)state;
	config.target = 1;
	co_begin(c, &config);
	co_admit(c, 0);
	co_ready_to_sync(c, 0);
	co_synced(c, 0);
	assert_int_equal(c->co->phase, HD_CO_START);      /* one of one that is wanted, and no pipeline */
	co_tick_at(c, 50 * CO_T);
	assert_int_equal(c->co->phase, HD_CO_START);
	CO(SCALE, .n = 2);
	co_admit(c, 1);
	co_ready_to_sync(c, 1);
	co_synced(c, 1);
	assert_int_equal(c->co->phase, HD_CO_FENCING);
	co_end(c);

	co_begin(c, &config);
	co_admit(c, 0);
	co_ready_to_sync(c, 0);
	co_synced(c, 0);
	co_tick_at(c, 101 * CO_T);
	assert_int_equal(c->co->phase, HD_CO_ENDING);
	assert_int_equal(c->co->end_code, 10);
	assert_non_null(strstr(c->co->halt_why, "--devices"));
	co_end(c);
}

static void members_in_order_are_the_ranks_of_pipelines(void **state)
{
	static const struct { uint32_t n, nranks, nvns[4]; } row[] = { { 2, 2, { 4, 0 } }, { 3, 2, { 4, 0 } },
		{ 4, 4, { 2, 0, 2, 0 } }, { 5, 4, { 2, 0, 2, 0 } } };
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		co_run(c, &staged, row[i].n);
		const struct hd_view *view = &c->co->view;
		CHECK(view->nranks == row[i].nranks && view->shape.nstages == 2 && !c->co->holding,
			"row %zu", i);
		for (uint32_t r = 0; r < view->nranks; r++)
			CHECK(view->rank[r].worker == r && view->rank[r].nvns == row[i].nvns[r], "row %zu",
				i);
		co_end(c);
	}
}

static void admit_with(struct co_at_work *c, uint32_t id, uint32_t ndevices)
{
	FROM(CO_GUEST + id, JOIN, .join = { .worker = HD_NOBODY, .ndevices = ndevices, .vn_ps = 1,
		.nonce = 10 + id, .naddress = 1, .address = &"abcdefgh"[id % 8], .nhost = 1,
		.host = &"abcdefgh"[id % 8] });
	assert_int_equal(strstr(co_note_text(c, "join"), "too few for a rank") != NULL, ndevices < 2);
	STORED();
	FROM(id, JOIN, .join = { .worker = id, .ndevices = ndevices, .vn_ps = 1, .nonce = 10 + id,
		.naddress = 1, .address = &"abcdefgh"[id % 8], .nhost = 1, .host = &"abcdefgh"[id % 8] });
	co_ready_to_sync(c, id);
	co_synced(c, id);
}

/* Devices of two members are no rank, and one that is left over is none. */
static void a_rank_is_some_devices_of_one_member(void **state)
{
	static const uint32_t ndevices[] = { 1, 3, 1, 5, 2 }, of[] = { 1, 3, 3, 4 };
	struct hd_co_config config = staged;
	struct co_at_work at, *c = &at;

	(void)state;
	config.shape.each = 2;
	config.target = 5;
	co_begin(c, &config);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(c->co->phase, HD_CO_START);
		admit_with(c, i, ndevices[i]);
	}
	STORED();
	for (uint32_t i = 0; i < 5; i++)
		FROM(i, STATUS, .epoch = 1, .status = { .nslot = 1,
			.slot = (const uint64_t[]){ UINT64_MAX } });
	const struct hd_view *view = &c->co->next;
	CHECK(view->nranks == 4 && view->shape.nstages == 2, "%u ranks", view->nranks);
	for (uint32_t r = 0; r < view->nranks; r++)
		CHECK(view->rank[r].worker == of[r], "rank %u is of %u", r, view->rank[r].worker);
	co_end(c);

	/* two members of a device each are none at all, however long */
	config.target = 2;
	co_begin(c, &config);
	for (uint32_t i = 0; i < 2; i++)
		admit_with(c, i, 1);
	assert_int_equal(c->co->phase, HD_CO_START);
	co_end(c);
}

static void lose(struct co_at_work *c, uint32_t n, uint32_t dead)
{
	co_run(c, &staged, n);
	CO(LOST, .worker = dead, .why = HD_EXITED);
	STORED();
}

/* Nothing is finished: 2 of 4 is lost, its stage is at 0, too. */
static void a_step_that_lost_a_sum_begins_again_where_state_is_covered(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	lose(c, 4, 2);
	HAS(0, 0, 1, false, 3);
	HAS(1, 0, 4, false, 12);
	HAS(3, 0, 0, false, 12);
	assert_non_null(strstr(co_note_text(c, "afresh"), "workers compute together"));
	const struct hd_msg_view *v = view_of(c);
	assert_true(v && v->afresh && !v->nhave && !v->npass && !v->hold);
	assert_true(v->width == 2 && v->nplace == 2 && v->place[0] == 0 && v->place[1] == 1);
	assert_true(v->nrank == 2 && v->rank[0].worker == 0 && v->rank[1].worker == 1);
	assert_true(v->nchain == 2 && v->chain[0].members == 1 && v->chain[1].members == 6);
	co_end(c);
}

/* 0 has finished it, so every sum is at all its holders: of those that live one has each. */
static void a_step_that_was_finished_is_finished_by_all(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	lose(c, 4, 2);
	HAS(0, 1, 3, false, 3);
	HAS(1, 0, 12, false, 12);
	HAS(3, 0, 12, false, 12);
	const struct hd_msg_view *v = view_of(c);
	assert_true(v && !v->afresh && !v->npass && v->table == 1);
	assert_true(v->nhave == 2 && v->have[0].members == 1 && v->have[1].members == 6);
	assert_true(v->nchain == 2 && v->chain[0].members == 1 && v->chain[1].members == 6);
	co_end(c);
}

/* Rule 15: of stages no pass is taken over, also where members that have not finished the step still have
 * theirs. */
static void what_was_computed_of_a_stage_is_no_part_of_the_view(void **state)
{
	static const struct hd_pass pass[] = { { 0, 0, 0, 1, 0 } };
	static const struct hd_vrange range[] = { { 0, 2 } };
	struct co_at_work at, *c = &at;

	(void)state;
	lose(c, 4, 2);
	HAS(0, 1, 3, false, 3);
	for (uint32_t w = 1; w < 4; w += 2)
		FROM(w, STATUS, .epoch = 2, .status = { .member = true, .begun = true, .nsum = 1,
			.sum = (const uint64_t[]){ 12 }, .nslot = 1, .slot = (const uint64_t[]){ 12 },
			.npass = 1, .pass = pass, .nrange = 1, .range = range });
	const struct hd_msg_view *v = view_of(c);
	assert_true(v && !v->afresh && v->nhave == 2);
	assert_int_equal(v->npass, 0);
	assert_int_equal(v->nrange, 0);
	co_end(c);
}

/* A member that was a pipeline by itself is back with one device: nothing is changed for what would be no
 * pipeline, until another device has come. */
static void no_change_is_begun_for_devices_that_are_no_pipeline(void **state)
{
	struct co_at_work at, *c = &at;
	struct hd_co_config config = staged;

	(void)state;
	config.target = 1;
	co_begin(c, &config);
	co_admit(c, 0);
	hd_co_find(c->co, 0)->ndevices = 2;
	co_ready_to_sync(c, 0);
	co_synced(c, 0);
	STORED();
	FROM(0, STATUS, .epoch = 1, .status = { .nslot = 1, .slot = (const uint64_t[]){ 15 } });
	STORED();
	FROM(0, PROGRESS, .epoch = 1);
	assert_true(c->co->phase == HD_CO_IDLE && c->co->view.nranks == 2);
	co_return(c, 0, 10, true);
	assert_int_equal(hd_co_find(c->co, 0)->ndevices, 1);
	c->co->replan = true;
	CO(TICK, .n = 0);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	assert_int_equal(c->co->record.epoch, 1);
	co_one_more(c, 1);
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	assert_true(c->co->next.nranks == 2 && c->co->next.rank[1].worker == 1);
	co_end(c);
}

static void without_a_holder_of_a_stage_all_goes_back_to_disk(void **state)
{
	static const struct { uint64_t at0, sum0, slot0, at1, sum1, slot1; bool lost; } row[] = {
		{ 0, 0, 3, 0, 0, 12, false }, { 0, 0, 3, 0, 0, 3, true },  /* none holds stage 1 */
		{ 1, 3, 3, 0, 4, 12, true },                       /* 0 cannot go back,
			one sum of 1 is gone */
		{ 1, 3, 3, 0, 12, 12, false }, { 1, 1, 3, 0, 12, 12, true },
	};
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		lose(c, 3, 2);
		HAS(0, row[i].at0, row[i].sum0, false, row[i].slot0);
		HAS(1, row[i].at1, row[i].sum1, false, row[i].slot1);
		CHECK((c->co->phase == HD_CO_IDLE) == !row[i].lost, "row %zu: phase %d", i,
			(int)c->co->phase);
		CHECK((strstr(co_note_text(c, "rejoin"), "are gone") != NULL) == row[i].lost, "row %zu",
			i);
		co_end(c);
	}
}

static void too_few_devices_hold_and_say_for_what(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	lose(c, 2, 1);
	FROM(0, STATUS, .epoch = 2, .status = { .member = true, .nslot = 1, .slot =
		(const uint64_t[]){ 15 } });
	assert_non_null(strstr(co_note_text(c, "hold"), "2 stages has 2 ranks"));
	const struct hd_msg_view *v = view_of(c);
	assert_true(v && v->hold && !v->nplace && !v->width);
	assert_true(c->co->holding && !c->co->view.shape.nstages);
	/* another one: all are asked again */
	c->now += 2 * CO_T;
	co_admit(c, 2);
	co_ready_to_sync(c, 2);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	co_synced(c, 2);
	CO(TICK, .n = 0);
	assert_int_equal(c->co->phase, HD_CO_FENCING);
	co_end(c);
}

/* Of two pipelines one goes: PREPARE says what both views are; a stage keeps a holder. */
static void a_planned_change_keeps_a_holder_of_each_stage(void **state)
{
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &staged, 4);
	CO(SCALE, .n = 2);
	STORED();
	const struct hd_msg_prepare *p = NULL;
	for (size_t i = 0; i < c->done.n && !p; i++)
		if (c->done.at[i].kind == HD_CO_DO_SEND && c->done.at[i].msg->kind == HD_MSG_PREPARE)
			p = &c->done.at[i].msg->prepare;
	assert_true(p && p->nold == 4 && p->nold_rank == 4 && p->old_width == 2 && p->nold_place == 2);
	assert_true(p->nmember == 2 && p->nrank == 2 && p->width == 2 && p->nplace == 2 && p->place[1] == 1);
	co_end(c);

	/* 1 and 3 are all holders of stage 1: 1 stays for now */
	co_run(c, &staged, 4);
	c->co->record.target = 4;
	hd_co_find(c->co, 1)->draining = hd_co_find(c->co, 3)->draining = true;
	CO(TICK, .n = 0);
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	assert_true(c->co->next.nmembers == 3 && hd_view_has(&c->co->next, 1) && !hd_view_has(&c->co->next,
		3));
	co_end(c);

	/* one device is no pipeline: the leaver waits */
	co_run(c, &staged, 2);
	hd_co_find(c->co, 1)->draining = true;
	c->co->record.target = 1;
	CO(TICK, .n = 0);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	co_end(c);
}

/* Two pipelines of two stages; the state of stage 0 is buckets 0 and 1. */
static struct hd_stage_bucket bucket[] = { { 0, 1, 1 }, { 0, 1, 1 }, { 1, 2, 2 }, { 1, 2, 2 } };
static const struct hd_stage_buckets buckets = { .n = 4, .nstages = 2, .at = bucket };
static const uint64_t bytes[] = { 1000, 200, 30, 4 };

static const struct hd_stage_buckets *of_shape(void *self, const struct hd_view_shape *shape)
{
	(void)self;
	return shape->nstages == 2 && shape->width == 2 && shape->place[1] == 1 ? &buckets : NULL;
}

static struct hd_co_config weighed(void)
{
	struct hd_co_config config = staged;

	config.of_shape = of_shape;
	config.bucket_bytes = bytes;
	return config;
}

#define RANKS(c, ...) \
	do { \
		static const uint32_t is_[] = { __VA_ARGS__ }; \
		assert_int_equal((c)->co->next.nranks, sizeof is_ / sizeof *is_); \
		for (uint32_t r_ = 0; r_ < (c)->co->next.nranks; r_++) \
			CHECK((c)->co->next.rank[r_].worker == is_[r_], "rank %u is at %u, not %u", r_, \
				(c)->co->next.rank[r_].worker, is_[r_]); \
	} while (0)

/* 0 of 0 1 2 3 dies: 2 has stage 0, so 1 stays at its own. 4 joins: what has no holder of its own yet goes to
 * it and to 3, which held stage 1 before and was left over. */
static void members_that_are_left_stay_at_their_stage(void **state)
{
	const struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &config, 4);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	HAS(1, 0, 0, false, 12);
	HAS(2, 0, 0, false, 3);
	HAS(3, 0, 0, false, 12);
	RANKS(c, 2, 1);
	assert_string_equal(co_note_text(c, "moves"), "");
	assert_string_equal(co_note_text(c, "stands_by"),
		"worker 3: what is left over is no other pipeline of 2 ranks");
	/* another takes over, in order of members 1 would get stage 0 */
	for (uint32_t w = 1; w < 4; w++)
		FROM(w, PROGRESS, .epoch = 2);
	co_one_more(c, 4);
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	RANKS(c, 2, 1, 3, 4);
	assert_int_equal(c->co->moves, 1234);
	assert_int_equal(c->co->movers, 4 | 8);           /* indices of 3 and 4 */
	co_end(c);
}

/* All prepared, the next view is in force. */
static void enter(struct co_at_work *c, uint32_t seals, uint64_t step)
{
	const uint32_t epoch = c->co->next.epoch;

	STORED();
	for (uint32_t i = 0; i < c->co->nplaces; i++)
		if (c->co->worker[i].state == HD_W_MEMBER || c->co->worker[i].state == HD_W_READY)
			FROM(c->co->worker[i].worker, PREPARED, .epoch = epoch - 1,
				.decided = { .next = epoch });
	STORED();
	co_seal(c, seals, epoch, step);
	assert_int_equal(c->co->view.epoch, epoch);
}

/* Planned: 1 leaves, 4 takes its place and nothing else moves. Of equal views none is made. */
static void a_substitute_gets_the_stage_of_the_one_that_leaves(void **state)
{
	const struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &config, 4);
	c->co->replan = true;
	CO(TICK, .n = 0);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	CO(SCALE, .n = 5);
	co_admit(c, 4);
	co_ready_to_sync(c, 4);
	hd_co_find(c->co, 1)->draining = true;
	co_synced(c, 4);
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	assert_int_equal(c->co->next.nmembers, 4);
	RANKS(c, 0, 3, 2, 4);
	assert_int_equal(c->co->moves, 34);
	enter(c, 0, 1);
	assert_string_equal(co_note_text(c, "moves"), "34 bytes of state move, to worker 4");
	assert_string_equal(co_note_text(c, "stands_by"), "");
	co_end(c);
}

/* Of two pipelines the first has one virtual node; of one pipeline it is no share of all. */
static bool shares_of(void *self, const struct hd_view_shape *shape, uint32_t npipes, uint32_t *share)
{
	(void)self;
	assert_int_equal(shape->width, 2);
	share[0] = 1;
	share[1] = staged.nvns - 1;
	return npipes <= 2;
}

/* 0 goes, so one pipeline has all, whatever is said of it; a fourth comes, and two have what the job says. */
static void pipelines_have_the_shares_of_the_job(void **state)
{
	struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;

	(void)state;
	config.shares = shares_of;
	co_run(c, &config, 4);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	HAS(1, 0, 0, false, 12);
	HAS(2, 0, 0, false, 3);
	HAS(3, 0, 0, false, 12);
	RANKS(c, 2, 1);
	assert_int_equal(c->co->next.rank[0].nvns, staged.nvns);
	for (uint32_t w = 1; w < 4; w++)
		FROM(w, PROGRESS, .epoch = 2);
	co_one_more(c, 4);
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	RANKS(c, 2, 1, 3, 4);
	const struct hd_vrank *rank = c->co->next.rank;
	assert_true(rank[0].nvns == 1 && rank[2].nvns == staged.nvns - 1 && !rank[1].nvns && !rank[3].nvns);
	assert_int_equal(hd_view_verify(&c->co->next, staged.nvns, NULL), HD_OK);
	co_end(c);
}

/* More members than ranks of the pipelines that the job takes. */
static void members_beyond_the_last_pipeline_stand_by(void **state)
{
	const struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &config, 6);
	CO(LOST, .worker = 5, .why = HD_EXITED);
	STORED();
	HAS(0, 0, 0, false, 3);
	HAS(1, 0, 0, false, 12);
	HAS(2, 0, 0, false, 3);
	HAS(3, 0, 0, false, 12);
	HAS(4, 0, 0, false, 0);
	RANKS(c, 0, 1, 2, 3);
	assert_string_equal(co_note_text(c, "stands_by"),
		"worker 4: the job has at most 2 pipelines (parallel.replicas, virtual nodes)");
	co_end(c);
}

/* Of 2 x 2 and one more, 1 dies: 4 runs its stage in the view of the loss, before anything is started. */
static void a_member_that_stands_by_takes_the_place_of_a_lost_one(void **state)
{
	const struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &config, 5);
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
	HAS(0, 0, 0, false, 3);
	HAS(2, 0, 0, false, 3);
	HAS(3, 0, 0, false, 12);
	HAS(4, 0, 0, false, 0);
	RANKS(c, 0, 3, 2, 4);
	assert_string_equal(co_note_text(c, "stands_in"),
		"worker 4, which stood by, takes the place of worker 1");
	assert_string_equal(co_note_text(c, "moves"), "34 bytes of state move, to worker 4");
	assert_string_equal(co_note_text(c, "stands_by"), "");
	co_end(c);
}

static const struct hd_stage_buckets followed = { .n = 4, .nstages = 2, .at = bucket, .follows = true };

static const struct hd_stage_buckets *of_followed_shape(void *self, const struct hd_view_shape *shape)
{
	return of_shape(self, shape) ? &followed : NULL;
}

/* 2 x 2 and one more, which follows the first stage: 0, which runs that, dies, and no byte moves. */
static void a_follower_takes_the_place_of_a_lost_one_without_a_move(void **state)
{
	struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;

	(void)state;
	config.of_shape = of_followed_shape;
	co_run(c, &config, 5);
	assert_true(c->co->view.nfollows == 1 && hd_view_follows(&c->co->view, 3) == HD_NOBODY &&
		hd_view_follows(&c->co->view, 4) == 0);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	STORED();
	HAS(1, 0, 0, false, 12);
	HAS(2, 0, 0, false, 3);
	HAS(3, 0, 0, false, 12);
	HAS(4, 0, 0, false, 3);
	RANKS(c, 2, 1, 4, 3);
	assert_string_equal(co_note_text(c, "stands_in"),
		"worker 4, which stood by, takes the place of worker 0");
	assert_string_equal(co_note_text(c, "moves"), "");
	assert_string_equal(co_note_text(c, "stands_by"), "");
	co_end(c);
}

/* One pipeline: 0 leaves in one change, since 2 follows its stage; 1 alone has the other, and stays, without
 * a rank and following nothing, while 2 learns it. */
static void a_leaver_whose_stage_is_followed_leaves_at_once(void **state)
{
	static const struct { uint32_t leaver, nmembers; uint64_t moves; } row[] = { { 0, 2, 0 },
		{ 1, 3, 34 } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_co_config config = weighed();
		struct hd_co_status status;
		struct co_at_work at, *c = &at;
		config.of_shape = of_followed_shape;
		config.pipes = 1;
		co_run(c, &config, 3);
		for (uint32_t w = 0; w < 3; w++)
			co_seal(c, w, 1, 0);
		hd_coordinator_status(c->co, &status);
		assert_int_equal(status.single, 1);       /* the second stage */
		assert_int_equal(hd_view_follows(&c->co->view, 2), 0);
		hd_co_find(c->co, row[i].leaver)->draining = true;
		CO(TICK, .n = 0);
		assert_int_equal(c->co->phase, HD_CO_NUMBERING);
		CHECK(c->co->next.nmembers == row[i].nmembers && c->co->moves == row[i].moves,
			"%u leaves: %u members, %llu bytes move", row[i].leaver, c->co->next.nmembers,
			(unsigned long long)c->co->moves);
		CHECK(c->co->next.rank[row[i].leaver].worker == 2 && !c->co->next.nfollows,
			"%u leaves: its rank is at %u", row[i].leaver,
			c->co->next.rank[row[i].leaver].worker);
		co_end(c);
	}
}

/* One pipeline and a follower of each stage, of which one is about to leave when 0 dies: it stays without a
 * rank, and follows nothing more. */
static void a_member_that_is_about_to_leave_follows_nothing(void **state)
{
	struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;

	(void)state;
	config.of_shape = of_followed_shape;
	config.pipes = 1;
	for (int leaves = 0; leaves < 2; leaves++) {
		co_run(c, &config, 4);
		assert_true(hd_view_follows(&c->co->view, 2) == 0 && hd_view_follows(&c->co->view, 3) == 1);
		hd_co_find(c->co, 3)->draining = leaves;
		CO(LOST, .worker = 0, .why = HD_EXITED);
		STORED();
		HAS(1, 0, 0, false, 12);
		HAS(2, 0, 0, false, 3);
		HAS(3, 0, 0, false, 12);
		assert_int_equal(hd_view_follows(&c->co->view, 3), leaves ? HD_NOBODY : 1);
		co_end(c);
	}
}

/* Of views alone. */
static void a_place_is_taken_where_a_worker_went_and_another_had_none(void **state)
{
	static const struct { uint32_t nbefore, nnext, next[6]; const char *text; } row[] = {
		{ 4, 4, { 0, 1, 2, 3 }, "" }, { 4, 3, { 0, 1, 2 }, "" }, { 5, 5, { 0, 1, 2, 3, 4 }, "" },
		{ 5, 4, { 0, 1, 2, 3 }, "" },
		{ 5, 4, { 0, 1, 2, 4 }, "worker 4, which stood by, takes the place of worker 3" },
		{ 6, 4, { 0, 2, 4, 5 }, "workers 4 5, which stood by, take the place of workers 1 3" },
		{ 5, 5, { 1, 2, 3, 4, 7 }, "worker 4, which stood by, takes the place of worker 0" },
		{ 3, 4, { 0, 1, 2, 3 }, "" },
	};
	static const uint32_t all[] = { 0, 1, 2, 3, 4, 5 }, one[] = { 1, 1, 1, 1, 1, 1 };
	struct hd_view_shape shape;

	(void)state;
	hd_view_shape(&shape, 2, 1, false);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_view before, next, whole = { .nmembers = 1 };
		assert_true(hd_view_staged(&before, 1, all, one, row[i].nbefore, 8, &shape, 2));
		assert_true(hd_view_staged(&next, 2, row[i].next, one, row[i].nnext, 8, &shape, 2));
		CHECK(!strcmp(hd_co_standing_in(&before, &next).text, row[i].text), "row %zu: %s", i,
			hd_co_standing_in(&before, &next).text);
		/* nothing is said of views without stages */
		assert_string_equal(hd_co_standing_in(&whole, &next).text, "");
		assert_string_equal(hd_co_standing_in(&before, &whole).text, "");
	}
}

/* The only holder of stage 0 is to leave: it stays for its state and computes no more; then it leaves. */
static void a_last_holder_leaves_when_its_stage_is_another_s(void **state)
{
	const struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &config, 2);
	hd_co_find(c->co, 0)->draining = true;
	co_admit(c, 2);
	co_ready_to_sync(c, 2);
	co_synced(c, 2);
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	assert_int_equal(c->co->next.nmembers, 3);
	RANKS(c, 2, 1);
	assert_int_equal(hd_view_writer(&c->co->next), 1);
	assert_int_equal(c->co->moves, 1200);
	enter(c, 1, 1);
	assert_int_equal(c->co->phase, HD_CO_IDLE);       /* 0 and 2 are not in it yet */
	co_seal(c, 0, 2, 1);
	co_seal(c, 2, 2, 1);
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	RANKS(c, 2, 1);
	assert_true(c->co->next.nmembers == 2 && !hd_view_has(&c->co->next, 0));
	assert_int_equal(c->co->moves, 0);
	co_end(c);
}

static struct hd_stage_bucket bucket_of_three[] = { { 0, 1, 1 }, { 1, 2, 2 }, { 1, 2, 2 }, { 2, 4, 4 } };
static const struct hd_stage_buckets shadowed = { .n = 4, .nstages = 3, .at = bucket_of_three,
	.shadows = true };

static const struct hd_stage_buckets *of_three(void *self, const struct hd_view_shape *shape)
{
	(void)self;
	return shape->nstages == 3 && shape->width == 3 ? &shadowed : NULL;
}

/* With shadows the only one that runs a stage may leave at once: its state is at the rank before it, so the
 * substitute lacks its stage and the shadow of the next. Two neighbours may not: one of them stays for what
 * both hold. */
static void with_shadows_a_last_holder_leaves_at_once(void **state)
{
	struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;

	(void)state;
	config.of_shape = of_three;
	config.shape = (struct hd_view_shape){ .nstages = 3, .width = 3, .place = { 0, 1, 2 } };
	config.pipes = 1;
	config.target = 3;
	for (uint32_t two_leave = 0; two_leave < 2; two_leave++) {
		co_run(c, &config, 3);
		hd_co_find(c->co, 0)->draining = true;
		hd_co_find(c->co, 1)->draining = two_leave;
		co_admit(c, 3);
		co_ready_to_sync(c, 3);
		co_synced(c, 3);
		assert_int_equal(c->co->phase, HD_CO_NUMBERING);
		assert_int_equal(c->co->next.nmembers, 3);
		CHECK(hd_view_has(&c->co->next, 0) == two_leave, "%u", two_leave);
		if (two_leave)
			RANKS(c, 0, 3, 2);
		else
			RANKS(c, 3, 1, 2);
		/* 3 lacks its stage and the shadow of the next */
		assert_int_equal(c->co->moves, two_leave ? 230 + 4 : 1000 + 230);
		assert_int_equal(c->co->movers, 4);
		co_end(c);
	}
}

static int32_t single(const struct co_at_work *c)
{
	struct hd_co_status status;

	hd_coordinator_status(c->co, &status);
	return status.single;
}

/* After the loss of 0 its stage is at 2 alone, and the shadow of stage 1 was lost; with 3 there all are held
 * twice once the first step of the view is committed, and not before. Without a view nothing is known, nor
 * while the view in force still has the dead one. */
static void stages_that_one_member_holds_are_counted_until_they_have_moved(void **state)
{
	struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;

	(void)state;
	config.of_shape = of_three;
	config.shape = (struct hd_view_shape){ .nstages = 3, .width = 3, .place = { 0, 1, 2 } };
	config.pipes = 1;
	config.target = 3;
	co_begin(c, &config);
	assert_int_equal(single(c), -1);
	co_end(c);
	co_run(c, &config, 3);
	assert_int_equal(single(c), 0);
	CO(LOST, .worker = 0, .why = HD_EXITED);
	assert_int_equal(c->co->phase, HD_CO_FENCING);
	assert_int_equal(single(c), -1);
	STORED();
	assert_int_equal(c->co->phase, HD_CO_ASKING);
	assert_int_equal(single(c), -1);
	HAS(1, 0, 0, false, 2 | 4 | 8);
	HAS(2, 0, 0, false, 1 | 8);
	assert_true(c->co->holding);
	assert_int_equal(single(c), 2);
	co_admit(c, 3);
	co_ready_to_sync(c, 3);
	co_synced(c, 3);
	co_tick_at(c, 20 * CO_T);
	STORED();
	const uint32_t epoch = c->co->record.epoch;
	static const uint64_t slot[] = { 0, 2 | 4 | 8, 1 | 8, 0 };
	for (uint32_t w = 1; w < 4; w++)
		FROM(w, STATUS, .epoch = epoch, .status = { .member = w < 3, .nslot = 1, .slot = &slot[w] });
	STORED();
	assert_true(!c->co->holding && c->co->view.shape.nstages == 3);
	assert_int_equal(single(c), 2);
	for (uint32_t w = 1; w < 4; w++)
		co_seal(c, w, epoch, 0);
	assert_int_equal(c->co->committed, 1);
	assert_int_equal(single(c), 0);
	co_end(c);
}

/* A coordinator that takes over knows no view: by what members say that they hold, it makes the same. */
static void a_takeover_leaves_stages_where_they_are(void **state)
{
	struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;
	static const uint64_t slot[] = { 12, 3, 12, 3 };

	(void)state;
	config.record = (struct hd_co_record){ .serial = 9, .term = 1, .epoch = 6, .next_worker = 4,
		.target = 4, .nmembers = 4, .member = { 0, 1, 2, 3 }, .started = true };
	co_begin(c, &config);
	CO(TICK, .n = 0);
	for (uint32_t w = 0; w < 4; w++)
		co_return(c, w, 10 + w, true);
	STORED();
	for (uint32_t w = 0; w < 4; w++)
		FROM(w, STATUS, .epoch = 7, .status = { .member = true, .at = 5, .nslot = 1,
			.slot = &slot[w] });
	RANKS(c, 1, 0, 3, 2);
	assert_string_equal(co_note_text(c, "moves"), "");
	co_end(c);
}

/* Another order of the same two stages. */
static const struct hd_view_shape other = { .nstages = 2, .width = 2, .place = { 0, 1 }, .schedule = 7,
	.first = { 0, 5 } };
static const struct hd_view_shape on_one = { .nstages = 2, .width = 1, .schedule = 7, .first = { 0, 5 } };

/* Asked for with the same members: one planned change; asked for again, none. */
static void another_shape_comes_by_a_planned_change(void **state)
{
	const struct hd_co_config config = weighed();
	struct co_at_work at, *c = &at;

	(void)state;
	co_run(c, &config, 4);
	CO(RESHAPE, .shape = &other, .n = 2);
	assert_string_equal(co_note_text(c, "reshape"),
		"2 stages, 2 devices a pipeline, at most 2 pipelines");
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	assert_true(hd_view_same_shape(&c->co->next.shape, &other) && c->co->moves == 0);
	STORED();
	const struct hd_msg_prepare *p = NULL;
	for (size_t i = 0; i < c->done.n && !p; i++)
		if (c->done.at[i].kind == HD_CO_DO_SEND && c->done.at[i].msg->kind == HD_MSG_PREPARE)
			p = &c->done.at[i].msg->prepare;
	assert_true(p && p->schedule == 7 && p->old_schedule == 0);
	assert_true(p->nfirst == 2 && p->first[1] == 5 && !p->nold_first);
	for (uint32_t w = 0; w < 4; w++)
		FROM(w, PREPARED, .epoch = 1, .decided = { .next = 2 });
	STORED();
	for (uint32_t w = 0; w < 4; w++)
		co_seal(c, w, 2, 1);
	assert_int_equal(c->co->view.epoch, 2);
	CO(RESHAPE, .shape = &other, .n = 2);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	/* fewer pipelines */
	CO(RESHAPE, .shape = &other, .n = 1);
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	RANKS(c, 0, 1);
	CO(RESHAPE, .shape = &on_one, .n = 1);
	assert_string_equal(co_note_text(c, "reshape"), "2 stages, 1 device a pipeline, at most 1 pipeline");
	co_end(c);
}

/* A worker dies while another shape is wanted: a step that was finished keeps its own, one that begins
 * again gets the new one; without devices for that it keeps the old one. */
static void a_loss_finishes_a_step_in_the_shape_it_was_begun_in(void **state)
{
	static const uint32_t places[] = { 0, 1 }, none[] = { 0, 63 };
	static const struct { uint64_t at0, sum0; const uint32_t *place; uint32_t width, schedule; } row[] = {
		{ 1, 3, places, 2, 0 }, { 0, 1, places, 2, 7 }, { 1, 3, none, 2, 7 },
		{ 0, 1, places, 9, 0 } };
	struct co_at_work at, *c = &at;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct hd_co_config config = weighed();
		const struct hd_view_shape wide = { .nstages = 9, .width = 9, .schedule = 7,
			.place = { 0, 1, 2, 3, 4, 5, 6, 7, 8 } };
		co_run(c, &config, 4);
		/* while a change is under way that the loss makes void */
		CO(RESHAPE, .shape = row[i].width == 9 ? &wide : &other, .n = 2);
		CO(LOST, .worker = 2, .why = HD_EXITED);
		STORED();
		for (uint32_t w = 0; w < 4; w += w == 1 ? 2 : 1)
			FROM(w, STATUS, .epoch = c->co->record.epoch, .status = { .member = true,
				.at = w ? 0 : row[i].at0, .begun = w || !row[i].at0, .prev = !w && row[i].at0,
				.nsum = 1, .sum = (const uint64_t[]){ w ? 12 : row[i].sum0 }, .nslot = 1,
				.slot = (const uint64_t[]){ w ? 12 : 3 }, .width = 2, .nplace = 2,
				.place = row[i].place });
		const struct hd_msg_view *v = view_of(c);
		CHECK(v && v->schedule == row[i].schedule && v->width == 2 && v->afresh == !row[i].at0 &&
			v->hold == !v->afresh &&
			v->nfirst == (row[i].schedule ? 2 : 0), "row %zu: schedule %u", i,
			v ? v->schedule : 99);
		co_end(c);
	}
}

static void a_shape_that_cannot_be_is_refused(void **state)
{
	static const struct { uint32_t copies, pipes; enum hd_err err; const char *says; } row[] = {
		{ 0, 2, HD_OK, "" }, { 2, 2, HD_E_REFUSED, "comm.sync" }, { 0, 0, HD_E_INVAL,
			"in no pipeline" } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_co_config config = staged;
		struct hd_coordinator *co = NULL;
		struct hd_diag diag = { "" };
		config.copies = row[i].copies;
		config.pipes = row[i].pipes;
		CHECK(hd_coordinator_create(&co, &config, 0, &diag) == row[i].err &&
			strstr(diag.text, row[i].says), "row %zu: %s", i, diag.text);
		hd_coordinator_destroy(co);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_waits_for_a_pipeline_of_devices),
		cmocka_unit_test(a_rank_is_some_devices_of_one_member),
		cmocka_unit_test(members_in_order_are_the_ranks_of_pipelines),
		cmocka_unit_test(a_step_that_lost_a_sum_begins_again_where_state_is_covered),
		cmocka_unit_test(a_step_that_was_finished_is_finished_by_all),
		cmocka_unit_test(what_was_computed_of_a_stage_is_no_part_of_the_view),
		cmocka_unit_test(no_change_is_begun_for_devices_that_are_no_pipeline),
		cmocka_unit_test(without_a_holder_of_a_stage_all_goes_back_to_disk),
		cmocka_unit_test(too_few_devices_hold_and_say_for_what),
		cmocka_unit_test(a_planned_change_keeps_a_holder_of_each_stage),
		cmocka_unit_test(members_beyond_the_last_pipeline_stand_by),
		cmocka_unit_test(a_member_that_stands_by_takes_the_place_of_a_lost_one),
		cmocka_unit_test(a_follower_takes_the_place_of_a_lost_one_without_a_move),
		cmocka_unit_test(a_leaver_whose_stage_is_followed_leaves_at_once),
		cmocka_unit_test(a_member_that_is_about_to_leave_follows_nothing),
		cmocka_unit_test(a_place_is_taken_where_a_worker_went_and_another_had_none),
		cmocka_unit_test(members_that_are_left_stay_at_their_stage),
		cmocka_unit_test(pipelines_have_the_shares_of_the_job),
		cmocka_unit_test(a_substitute_gets_the_stage_of_the_one_that_leaves),
		cmocka_unit_test(a_last_holder_leaves_when_its_stage_is_another_s),
		cmocka_unit_test(with_shadows_a_last_holder_leaves_at_once),
		cmocka_unit_test(stages_that_one_member_holds_are_counted_until_they_have_moved),
		cmocka_unit_test(a_takeover_leaves_stages_where_they_are),
		cmocka_unit_test(another_shape_comes_by_a_planned_change),
		cmocka_unit_test(a_loss_finishes_a_step_in_the_shape_it_was_begun_in),
		cmocka_unit_test(a_shape_that_cannot_be_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
