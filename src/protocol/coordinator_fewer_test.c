#include "protocol/testing_coordinator.h"

/* Rule 17 of coordinator.h: three stages at the members 0 to 2, each with the shadow of the next, of which 1
 * is lost. The two that are left go on with two stages, and with three when another worker is there; where
 * one is left, it goes on with one. */

static const struct hd_stage_bucket of_three[3] = { { 0, 1, 1 }, { 1, 2, 2 }, { 2, 4, 4 } },
	of_two[3] = { { 0, 1, 1 }, { 0, 1, 1 }, { 1, 2, 2 } },
	of_one[3] = { { 0, 1, 1 }, { 0, 1, 1 }, { 0, 1, 1 } };
static const struct hd_stage_buckets three = { .n = 3, .nstages = 3, .shadows = true,
	.at = (struct hd_stage_bucket *)(uintptr_t)of_three }, bare = { .n = 3, .nstages = 3,
	.at = (struct hd_stage_bucket *)(uintptr_t)of_three }, two = { .n = 3, .nstages = 2, .shadows = true,
	.at = (struct hd_stage_bucket *)(uintptr_t)of_two }, one = { .n = 3, .nstages = 1,
	.at = (struct hd_stage_bucket *)(uintptr_t)of_one },
	four = { .n = 3, .nstages = 4, .shadows = true, .at = (struct hd_stage_bucket *)(uintptr_t)of_three };
static const struct hd_view_shape shape = { .nstages = 3, .width = 3, .place = { 0, 1, 2 } },
	smaller = { .nstages = 2, .width = 2, .place = { 0, 1 }, .first = { 0, 9 } },
	other = { .nstages = 2, .width = 2, .place = { 0, 1 }, .first = { 0, 8 } },
	cut = { .nstages = 3, .width = 3, .place = { 0, 1, 2 }, .first = { 0, 5, 7 } },
	wide = { .nstages = 4, .width = 4, .place = { 0, 1, 2, 3 } },
	single = { .nstages = 1, .width = 1 };
static const uint64_t bytes[3] = { 8, 8, 8 };

struct asked {
	bool shadows, says, alien, knows_one, narrow;
	uint32_t n, width, members, refused;
	uint64_t lost;
	struct hd_view_shape had;
};

static const struct hd_stage_buckets *buckets_of(void *self, const struct hd_view_shape *of)
{
	const struct asked *a = self;

	if (hd_view_same_shape(of, &single))
		return &one;
	if (hd_view_same_shape(of, &wide))
		return &four;
	return hd_view_same_shape(of, &shape) || hd_view_same_shape(of, &cut) ? a->shadows ? &three : &bare :
		(hd_view_same_shape(of, &smaller) || hd_view_same_shape(of, &other)) && !a->alien ? &two :
		NULL;
}

static bool fewer(void *self, const struct hd_fewer_ask *ask, struct hd_view_shape *to)
{
	struct asked *a = self;

	a->had = *ask->shape;
	a->n++;
	a->lost = ask->lost;
	a->width = ask->width;
	a->members = ask->n;
	a->refused = ask->nrefused;
	*to = ask->width == 1 || a->narrow ? single : a->refused ? other : smaller;
	return ask->width == 1 ? a->knows_one : a->says && a->refused < 2;
}

static bool goes_on(void *self, const struct hd_view *view, const uint32_t *next, const uint8_t *arrived,
	const bool *lost)
{
	(void)self;
	(void)view;
	(void)next;
	(void)arrived;
	(void)lost;
	return true;
}

static struct hd_co_config config_of(struct asked *asked, uint32_t min)
{
	return (struct hd_co_config){ .nvns = 4, .nbuckets = 3, .min = min, .max = 6, .target = 3,
		.detect_ns = CO_T, .min_wait_ns = 100 * CO_T, .shape = shape, .pipes = 1,
		.of_shape = buckets_of, .of_shape_self = asked, .bucket_bytes = bytes, .goes_on = goes_on,
		.fewer = fewer, .fewer_self = asked };
}

static void lose_one(struct co_at_work *c, struct asked *asked, uint32_t min)
{
	const struct hd_co_config config = config_of(asked, min);

	co_run(c, &config, 3);
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
}

/* It has its stage and the shadow of the next. */
static void say_status(struct co_at_work *c, uint32_t w, uint64_t step, bool begun, bool stops)
{
	static const uint32_t place[] = { 0, 1, 2 };

	FROM(w, STATUS, .epoch = c->co->record.epoch, .status = { .member = true, .begun = begun,
		.stops = stops, .at = step, .width = 3, .nplace = 3, .place = place, .nslot = 1,
		.slot = (const uint64_t[]){ w ? 5 : 3 } });
}

static const struct hd_msg_view *view_of(const struct co_at_work *c)
{
	for (size_t i = 0; i < c->done.n; i++)
		if (c->done.at[i].kind == HD_CO_DO_SEND && c->done.at[i].msg->kind == HD_MSG_VIEW)
			return &c->done.at[i].msg->view;
	return NULL;
}

static void go_on_with_two(const struct co_at_work *c, const struct asked *asked)
{
	const struct hd_msg_view *v = view_of(c);

	assert_true(v && !v->hold && v->nplace == 2 && v->width == 2 && v->nfirst == 2 && v->first[1] == 9);
	assert_true(v->nrank == 2 && v->rank[0].worker == 0 && v->rank[1].worker == 2);
	assert_true(asked->n == 1 && asked->lost == 2 && asked->width == 2 && asked->members == 2 &&
		hd_view_same_shape(&asked->had, &shape));
	CHECK(strstr(co_note_text(c, "fewer"), "2 stages on 2 devices until there are 3"), "%s", c->text);
	assert_false(c->co->holding);
}

static void a_step_that_is_begun_again_waits_for_no_worker(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true };

	(void)state;
	lose_one(c, &asked, 1);
	say_status(c, 0, 0, true, false);
	say_status(c, 2, 0, true, false);
	assert_true(view_of(c) && view_of(c)->afresh);
	go_on_with_two(c, &asked);
	/* with three, once another one is there */
	FROM(0, PROGRESS, .epoch = 2);
	FROM(2, PROGRESS, .epoch = 2);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	co_admit(c, 3);
	co_ready_to_sync(c, 3);
	co_synced(c, 3);
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	assert_true(hd_view_same_shape(&c->co->next.shape, &shape) && c->co->next.nmembers == 3);
	co_end(c);
}

/* The stage of a rank that was doubled for the rest of a step is run by none after it. */
static void after_a_step_that_went_on_no_worker_is_waited_for(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true };

	(void)state;
	lose_one(c, &asked, 1);
	for (uint32_t w = 0; w < 3; w += 2)
		say_status(c, w, 0, true, true);
	for (uint32_t w = 0; w < 3; w += 2)
		FROM(w, STOPPED, .epoch = 2, .stopped = { .of = 1, .nrank = 1, .rank = &w, .nnext = 1,
			.next = &(const uint32_t){ 7 }, .narrived = 1,
			.arrived = &(const struct hd_vrange){ 1, 12 } });
	assert_true(view_of(c) && view_of(c)->ndoubled == 1 && view_of(c)->hold && !asked.n);
	for (uint32_t w = 0; w < 3; w += 2)
		FROM(w, SEAL, .epoch = 2, .seal = { .step = 0, .knows = 2, .ran = true,
			.news = { .samples = 1 } });
	assert_int_equal(c->co->phase, HD_CO_FENCING);
	STORED();
	say_status(c, 0, 1, false, false);
	say_status(c, 2, 1, false, false);
	assert_true(view_of(c) && !view_of(c)->afresh && view_of(c)->step == 1);
	go_on_with_two(c, &asked);
	co_end(c);
}

/* Worker 0 has all: 2 is lost, too, before the step is begun again. */
static void lose_two(struct co_at_work *c, struct asked *asked)
{
	lose_one(c, asked, 1);
	CO(LOST, .worker = 2, .why = HD_EXITED);
	STORED();
	FROM(0, STATUS, .epoch = c->co->record.epoch, .status = { .member = true, .begun = true, .nslot = 1,
		.slot = (const uint64_t[]){ 7 } });
	assert_true(view_of(c) && view_of(c)->hold == !asked->knows_one &&
		c->co->holding == !asked->knows_one && asked->n == asked->shadows);
	FROM(0, PROGRESS, .epoch = c->co->record.epoch);
}

static void come_back(struct co_at_work *c, uint32_t id)
{
	co_admit(c, id);
	co_ready_to_sync(c, id);
	co_synced(c, id);
	(void)co_tick_at(c, c->now + 10 * CO_T);
}

static void a_wait_ends_with_the_second_worker(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true };

	(void)state;
	lose_two(c, &asked);
	come_back(c, 3);
	assert_int_equal(c->co->phase, HD_CO_FENCING);
	STORED();
	FROM(0, STATUS, .epoch = c->co->record.epoch, .status = { .member = true, .nslot = 1,
		.slot = (const uint64_t[]){ 7 } });
	FROM(3, STATUS, .epoch = c->co->record.epoch, .status = { .nslot = 1,
		.slot = (const uint64_t[]){ 0 } });
	STORED();
	const struct hd_msg_view *v = view_of(c);
	assert_true(v && !v->hold && v->nplace == 2 && v->width == 2 && v->nrank == 2 && asked.n == 2 &&
		!asked.lost && asked.width == 2 && !c->co->holding);
	co_end(c);
}

/* No worker is waited for. */
static void the_last_worker_goes_on_with_one_stage(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true, .knows_one = true };

	(void)state;
	lose_two(c, &asked);
	assert_true(asked.width == 1 && asked.lost == 6 && asked.members == 1);
	const struct hd_view *v = &c->co->view;
	assert_true(v->shape.nstages == 1 && v->shape.width == 1 && v->nranks == 1 &&
		v->rank[0].worker == 0 && v->rank[0].nvns == 4 && hd_view_stages(v, 0) == 1);
	co_end(c);
}

/* Of three stages one, with the next worker two, and with another one three: none stands by without a rank
 * while the state is at one. */
static void stages_are_as_many_as_there_are_devices(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true, .knows_one = true };

	(void)state;
	lose_two(c, &asked);
	STORED();
	FROM(0, PROGRESS, .epoch = c->co->record.epoch);
	come_back(c, 3);
	assert_true(asked.n == 2 && asked.width == 2 && !asked.lost && asked.members == 2 &&
		hd_view_same_shape(&asked.had, &shape));
	assert_true(c->co->phase == HD_CO_NUMBERING && c->co->next.nmembers == 2 &&
		hd_view_same_shape(&c->co->next.shape, &smaller) && c->co->next.nranks == 2);
	co_end(c);
}

/* Two devices that are no more stages than one change nothing. */
static void an_answer_of_no_more_stages_is_no_change(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true, .knows_one = true };

	(void)state;
	lose_two(c, &asked);
	STORED();
	FROM(0, PROGRESS, .epoch = c->co->record.epoch);
	asked.narrow = true;
	come_back(c, 3);
	assert_true(asked.n > 1 && asked.width == 2 && !asked.lost && c->co->phase == HD_CO_IDLE);
	co_end(c);
}

/* Worker 0 has the one stage, and leaves as there are two others: of the four stages that are wanted none is
 * lost with it. */
static void more_stages_come_as_whoever_has_all_leaves(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true, .narrow = true };

	(void)state;
	lose_one(c, &asked, 1);
	say_status(c, 0, 0, true, false);
	say_status(c, 2, 0, true, false);
	assert_true(c->co->view.nmembers == 2 && c->co->view.nranks == 1 && c->co->view.rank[0].worker == 0);
	asked = (struct asked){ .shadows = true, .says = true };
	hd_co_find(c->co, 2)->spoke = 1;          /* no change before it is in the view */
	CO(RESHAPE, .shape = &wide, .n = 1, .least = 1);
	CO(DRAIN, .worker = 0);
	STORED();
	co_admit(c, 3);
	co_ready_to_sync(c, 3);
	co_synced(c, 3);
	assert_true(c->co->phase == HD_CO_IDLE && !asked.n);
	FROM(2, PROGRESS, .epoch = 2);
	assert_true(asked.n == 1 && asked.width == 2 && !asked.lost && asked.members == 3 &&
		hd_view_same_shape(&asked.had, &wide));
	const struct hd_view *next = &c->co->next;
	assert_true(c->co->phase == HD_CO_NUMBERING && hd_view_same_shape(&next->shape, &smaller) &&
		next->rank[0].worker + next->rank[1].worker == 5 && hd_view_has(next, 0));
	co_end(c);
}

/* None comes in its place: its stage and the shadow of it become one, while it is there. */
static void who_leaves_and_is_not_replaced_leaves_fewer_stages(void **state)
{
	static const struct { bool shadows, says, other; } row[] = { { true, true, false },
		{ true, false, false }, { false, true, false }, { true, true, true } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct co_at_work at, *c = &at;
		struct asked asked = { .shadows = row[i].shadows, .says = row[i].says };
		struct hd_co_config config = config_of(&asked, 1);
		co_run(c, &config, 3);
		CO(DRAIN, .worker = 1);
		STORED();
		CO(TICK, .n = 0);
		c->now += 5 * CO_T;
		CO(TICK, .n = 0);
		assert_true(c->co->phase == HD_CO_IDLE && !asked.n);
		if (row[i].other)
			co_one_more(c, 3);
		c->now += 2 * CO_T;
		CO(TICK, .n = 0);
		const struct hd_view *next = &c->co->next;
		if (row[i].other)         /* in its place */
			assert_true(!asked.n && c->co->phase == HD_CO_NUMBERING &&
				hd_view_same_shape(&next->shape, &shape) && !hd_view_has(next, 1));
		else if (row[i].shadows && row[i].says)
			assert_true(asked.n == 1 && asked.width == 2 && asked.lost == 2 &&
				c->co->phase == HD_CO_NUMBERING && next->nmembers == 2 &&
				!hd_view_has(next, 1) && hd_view_same_shape(&next->shape, &smaller));
		else
			/* without shadows it has what no other has, and nothing else is looked for */
			CHECK(c->co->phase == HD_CO_IDLE && row[i].shadows == !!strstr(co_note_text(c,
				"stays"), "the others are no pipeline of fewer stages"), "row %zu: %s", i,
				c->text);
		co_end(c);
	}
}

/* Worker 0 has the whole pipeline and its state, and 1, with too few devices for that, stands by: what 0 is
 * kept for moves to fewer stages. */
static void who_has_all_and_leaves_hands_it_to_a_standby(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true, .knows_one = true };
	struct hd_co_config config = config_of(&asked, 1);

	(void)state;
	config.target = 2;
	co_begin(c, &config);
	for (uint32_t w = 0; w < 2; w++) {
		co_admit(c, w);
		hd_co_find(c->co, w)->ndevices = w ? 1 : 3;
		co_ready_to_sync(c, w);
		co_synced(c, w);
	}
	STORED();
	for (uint32_t w = 0; w < 2; w++)
		FROM(w, STATUS, .epoch = 1, .status = { .nslot = 1, .slot = (const uint64_t[]){ 7 } });
	STORED();
	FROM(0, PROGRESS, .epoch = 1);
	FROM(1, PROGRESS, .epoch = 1);
	assert_true(c->co->phase == HD_CO_IDLE && !hd_view_stages(&c->co->view, 1));
	CO(DRAIN, .worker = 0);
	STORED();
	co_heard_at(c, c->now + CO_T);
	assert_true(c->co->phase == HD_CO_IDLE && !asked.n);
	co_heard_at(c, c->now + 6 * CO_T);
	const struct hd_view *next = &c->co->next;
	assert_true(c->co->phase == HD_CO_NUMBERING && asked.n == 1 && asked.width == 1 && asked.lost == 7);
	assert_true(next->nmembers == 2 && next->nranks == 1 && next->rank[0].worker == 1);
	co_end(c);
}

/* It has half of what its machine has left, where that is less than 6 T. */
static void who_has_a_notice_leaves_before_its_machine_goes(void **state)
{
	static const struct { uint64_t left_ns; int64_t waits_ns; } row[] = { { 4 * CO_T, 2 * CO_T },
		{ 20 * CO_T, 6 * CO_T }, { 0, 6 * CO_T }, { 1, 0 }, { UINT64_MAX, 6 * CO_T } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct co_at_work at, *c = &at;
		struct asked asked = { .shadows = true, .says = true };
		struct hd_co_config config = config_of(&asked, 1);
		co_run(c, &config, 3);
		FROM(1, LEAVE, .epoch = 1, .leave = { .left_ns = row[i].left_ns });
		CO(TICK, .n = 0);
		for (int64_t end = c->now + row[i].waits_ns; c->now + CO_T / 2 < end; c->now += CO_T / 2) {
			CHECK(c->co->phase == HD_CO_IDLE && !asked.n, "row %zu: too early", i);
			CO(TICK, .n = 0);
		}
		c->now += CO_T / 2;
		CO(TICK, .n = 0);
		CHECK(c->co->phase == HD_CO_NUMBERING && asked.n == 1 && !hd_view_has(&c->co->next, 1),
			"row %zu: it stays", i);
		co_end(c);
	}
}

/* Stages that become fewer a moment before it has its state become more at once: two changes for one. */
static void one_that_comes_in_its_place_is_waited_for(void **state)
{
	static const struct { uint64_t left_ns; int64_t waits_ns; bool syncs, leaves, aside; } row[] = {
		{ 0, 30 * CO_T, false, false, false }, { 0, 30 * CO_T, true, false, false },
		{ 0, 6 * CO_T, true, true, false }, { 8 * CO_T, 4 * CO_T, true, false, false },
		{ 0, 30 * CO_T, false, false, true } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct co_at_work at, *c = &at;
		struct asked asked = { .shadows = true, .says = true };
		struct hd_co_config config = config_of(&asked, 1);
		co_run(c, &config, 3);
		FROM(1, LEAVE, .epoch = 1, .leave = { .left_ns = row[i].left_ns });
		const int64_t from = c->now;
		co_admit(c, 3);
		if (row[i].syncs)
			co_ready_to_sync(c, 3);
		if (row[i].aside) {
			hd_co_find(c->co, 3)->state = HD_W_BACKOFF;
			hd_co_find(c->co, 3)->retry_at_ns = INT64_MAX;
		}
		if (row[i].leaves)
			CO(DRAIN, .worker = 3);
		co_heard_at(c, from + row[i].waits_ns - CO_T);
		CHECK(c->co->phase == HD_CO_IDLE && !asked.n, "row %zu: too early: %s", i, c->text);
		co_heard_at(c, from + row[i].waits_ns + CO_T);
		CHECK(c->co->phase == HD_CO_NUMBERING && asked.n == 1 && !hd_view_has(&c->co->next, 1),
			"row %zu: it stays: %s", i, c->text);
		co_end(c);
	}
}

/* Of two the one that waits longest: none stays for another that was asked later. */
static void of_two_that_leave_the_older_is_enough(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true, .knows_one = true };
	struct hd_co_config config = config_of(&asked, 1);

	(void)state;
	co_run(c, &config, 3);
	CO(DRAIN, .worker = 1);
	STORED();
	CO(TICK, .n = 0);
	c->now += 4 * CO_T;
	CO(DRAIN, .worker = 2);
	STORED();
	CO(TICK, .n = 0);
	assert_int_equal(asked.n, 0);
	c->now += 3 * CO_T;
	CO(TICK, .n = 0);
	assert_true(asked.n == 1 && c->co->phase == HD_CO_NUMBERING);
	co_end(c);
}

/* Rule 19: of six one leaves. With two stages each the others are two pipelines; where they are not it stays,
 * and that is said once. */
static void who_leaves_two_pipelines_leaves_them_fewer_stages(void **state)
{
	(void)state;
	for (int says = 0; says < 2; says++) {
		struct co_at_work at, *c = &at;
		struct asked asked = { .says = says };
		struct hd_co_config config = config_of(&asked, 1);
		config.pipes = config.least = 2;
		config.target = 6;
		co_run(c, &config, 6);
		CO(DRAIN, .worker = 4);
		STORED();
		CO(TICK, .n = 0);
		c->now += 7 * CO_T;
		CO(TICK, .n = 0);
		assert_true(asked.n == 1 && asked.width == 2);
		if (says)
			assert_true(c->co->phase == HD_CO_NUMBERING && hd_view_pipes(&c->co->next) == 2 &&
				hd_view_same_shape(&c->co->next.shape, &smaller) &&
				!hd_view_has(&c->co->next, 4));
		else
			CHECK(strstr(co_note_text(c, "stays"), "the others are no 2 pipelines"), "%s",
				c->text);
		CO(TICK, .n = 0);
		assert_false(strstr(c->text, "stays"));
		/* one is enough after all: it leaves */
		CO(RESHAPE, .shape = &shape, .n = 2, .least = 1);
		assert_true(c->co->phase == HD_CO_NUMBERING);
		co_end(c);
	}
}

/* It is asked once for as many ranks: a view that is refused is not made again and again. */
static void what_was_refused_is_asked_with_more_ranks_alone(void **state)
{
	static const struct asked row[] = { { .shadows = true }, { .says = true } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct co_at_work at, *c = &at;
		struct asked asked = row[i];
		lose_two(c, &asked);
		come_back(c, 3);
		CHECK((c->co->phase == HD_CO_FENCING) == asked.shadows, "row %zu", i);
		if (asked.shadows) {
			STORED();
			FROM(0, STATUS, .epoch = c->co->record.epoch, .status = { .member = true,
				.nslot = 1, .slot = (const uint64_t[]){ 7 } });
			FROM(3, STATUS, .epoch = c->co->record.epoch, .status = { .nslot = 1,
				.slot = (const uint64_t[]){ 0 } });
			STORED();
			assert_true(view_of(c) && view_of(c)->hold && c->co->view.nmembers == 2);
		}
		FROM(0, PROGRESS, .epoch = c->co->record.epoch);
		FROM(3, PROGRESS, .epoch = c->co->record.epoch);
		(void)co_tick_at(c, c->now + 10 * CO_T);
		CHECK(c->co->phase == HD_CO_IDLE && c->co->holding && asked.n == 2 * asked.shadows,
			"row %zu", i);
		co_end(c);
	}
}

/* Members say which stages they have: whoever takes over has them cut no other way. */
static void a_coordinator_that_takes_over_cuts_nothing_again(void **state)
{
	static const uint32_t place[] = { 0, 1 }, first[] = { 0, 9 };

	(void)state;
	for (int alien = 0; alien < 2; alien++) {
		struct co_at_work at, *c = &at;
		struct asked asked = { .shadows = true, .says = true, .alien = alien };
		struct hd_co_config config = config_of(&asked, 1);
		config.record = (struct hd_co_record){ .term = 1, .epoch = 4, .next_worker = 3, .target = 3,
			.started = true, .nmembers = 2, .member = { 0, 2 } };
		co_begin(c, &config);
		CO(TICK, .n = 0);
		for (uint32_t w = 0; w < 3; w += 2)
			co_return(c, w, 10 + w, true);
		STORED();
		for (uint32_t w = 0; w < 3; w += 2)
			FROM(w, STATUS, .epoch = 5, .status = { .member = true, .at = 8, .width = 2,
				.nplace = 2, .place = place, .nfirst = 2, .first = first,
				.nslot = 1, .slot = (const uint64_t[]){ 7 } });
		const struct hd_msg_view *v = view_of(c);
		assert_true(v && v->step == 8 && !v->afresh);
		if (alien)
			assert_true(v->hold && !v->nplace && asked.n == 1);
		else
			assert_true(!v->hold && v->nplace == 2 && v->nfirst == 2 && v->first[1] == 9 &&
				!asked.n);
		co_end(c);
	}
}

static void refuse(struct co_at_work *c, uint32_t w, uint32_t view)
{
	FROM(w, UNFIT, .epoch = view, .unfit = { .view = view, .nwhy = 9, .why = "3 MiB more" });
}

static void answer(struct co_at_work *c, bool begun)
{
	STORED();
	say_status(c, 0, 0, begun, false);
	say_status(c, 2, 0, begun, false);
}

/* Whoever has not the memory stays; the shape after it is another, then none is left. */
static void a_view_that_is_refused_is_followed_by_another(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true };

	(void)state;
	lose_one(c, &asked, 1);
	say_status(c, 0, 0, true, false);
	say_status(c, 2, 0, true, false);
	assert_true(view_of(c)->fewer && view_of(c)->first[1] == 9);
	refuse(c, 2, 1);                          /* of a view before */
	assert_true(c->co->phase == HD_CO_IDLE && !c->co->record.nunfit);
	refuse(c, 2, 2);
	assert_true(c->co->phase == HD_CO_FENCING && c->record.nunfit == 1 &&
		c->record.unfit[0].worker == 2 && c->record.unfit[0].shape == hd_view_shape_key(&smaller));
	CHECK(strstr(co_note_text(c, "unfit"), "its part of 2 stages: 3 MiB mor"), "%s", c->text);
	answer(c, true);
	/* the lost stage is that of the view before both */
	assert_true(view_of(c) && view_of(c)->fewer && view_of(c)->nfirst == 2 && view_of(c)->first[1] == 8 &&
		asked.n == 2 && asked.lost == 2 && asked.refused == 1);
	refuse(c, 0, 3);
	refuse(c, 2, 3);                          /* which is fenced already */
	assert_int_equal(c->co->record.nunfit, 3);
	answer(c, true);
	assert_true(view_of(c) && view_of(c)->hold && !view_of(c)->nplace && !view_of(c)->fewer);
	/* no worker is dead to the job for it */
	assert_true(hd_co_find(c->co, 0)->state == HD_W_MEMBER && hd_co_find(c->co, 2)->state == HD_W_MEMBER);
	co_end(c);
}

/* The next coordinator has it from the record, and not the stages of the view before. */
static void a_refusal_outlives_the_coordinator(void **state)
{
	static const uint32_t place[] = { 0, 1 }, first[] = { 0, 9 };

	(void)state;
	for (uint32_t here = 0; here < 2; here++) {
		struct co_at_work at, *c = &at;
		struct asked asked = { .shadows = true, .says = true };
		struct hd_co_config config = config_of(&asked, 1);
		config.record = (struct hd_co_record){ .term = 1, .epoch = 4, .next_worker = 8, .target = 3,
			.started = true, .nmembers = 2, .member = { 0, 2 }, .nunfit = 1,
			.unfit = { { here ? 2 : 7, hd_view_shape_key(&smaller) } } };
		co_begin(c, &config);
		CO(TICK, .n = 0);
		for (uint32_t w = 0; w < 3; w += 2)
			co_return(c, w, 10 + w, true);
		STORED();
		for (uint32_t w = 0; w < 3; w += 2)
			FROM(w, STATUS, .epoch = 5, .status = { .member = true, .begun = true, .at = 8,
				.width = 2, .nplace = 2, .place = place, .nfirst = 2, .first = first,
				.nslot = 1, .slot = (const uint64_t[]){ 7 } });
		const struct hd_msg_view *v = view_of(c);
		CHECK(v && !v->hold && v->nfirst == 2 && v->first[1] == (here ? 8 : 9) && asked.n == here,
			"here %u: %s", here, c->text);
		co_end(c);
	}
}

/* As many as there is room for: first those go whose worker is gone, then those of a shape that another one
 * refused as well. */
static void refusals_of_workers_that_are_gone_make_room(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true };

	(void)state;
	lose_one(c, &asked, 1);
	say_status(c, 0, 0, true, false);
	say_status(c, 2, 0, true, false);
	const struct hd_co_record *r = &c->co->record;
	for (uint32_t i = 0; i < HD_CO_UNFIT; i++)
		c->co->record.unfit[i] = (struct hd_co_unfit){ i == 5 ? 1 : 0, 100 + i };
	c->co->record.nunfit = HD_CO_UNFIT;
	refuse(c, 2, 2);
	assert_true(r->nunfit == HD_CO_UNFIT && r->unfit[4].shape == 104 && r->unfit[5].shape == 106 &&
		r->unfit[HD_CO_UNFIT - 1].worker == 2);
	/* of another one: none is gone */
	refuse(c, 0, 2);
	assert_true(r->nunfit == HD_CO_UNFIT && r->unfit[0].shape == 101 && r->unfit[62].worker == 2 &&
		r->unfit[63].worker == 0);
	/* said again: nothing new */
	const uint64_t serial = r->serial;
	refuse(c, 2, 2);
	assert_true(r->unfit[0].shape == 101 && r->serial == serial);
	co_end(c);
}

/* Each of many refuses all that there is, more often than there is room for: of each shape some refusal is
 * remembered. */
static void no_shape_is_forgotten_that_all_refuse(void **state)
{
	enum { MANY = 40 };
	static const struct hd_view_shape *const refused[] = { &smaller, &other, &cut, &shape };
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true };
	struct hd_co_config config = config_of(&asked, 1);

	(void)state;
	config.max = MANY;
	co_run(c, &config, MANY);
	const struct hd_view all = c->co->view;
	assert_true(all.nmembers == MANY && 4 * MANY > 2 * HD_CO_UNFIT);
	for (uint32_t k = 0; k < 4; k++) {
		c->co->view.shape = *refused[k];
		for (uint32_t i = 0; i < all.nmembers; i++) {
			refuse(c, all.member[i], all.epoch);
			for (uint32_t before = 0; before <= k; before++)
				CHECK(hd_co_is_refused(c->co, refused[before], all.member, all.nmembers),
					"shape %u after worker %u refused shape %u", before, i, k);
		}
	}
	c->co->view.shape = all.shape;
	co_end(c);
}

/* This coordinator never saw worker 7. */
static void refusals_of_workers_that_did_not_come_back_make_room(void **state)
{
	static const uint32_t place[] = { 0, 1 }, first[] = { 0, 9 };
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true };
	struct hd_co_config config = config_of(&asked, 1);

	(void)state;
	config.record = (struct hd_co_record){ .term = 1, .epoch = 4, .next_worker = 8, .target = 3,
		.started = true, .nmembers = 2, .member = { 0, 2 }, .nunfit = HD_CO_UNFIT };
	for (uint32_t i = 0; i < HD_CO_UNFIT; i++)
		config.record.unfit[i] = (struct hd_co_unfit){ i == 5 ? 7 : 0, 100 + i };
	co_begin(c, &config);
	CO(TICK, .n = 0);
	for (uint32_t w = 0; w < 3; w += 2)
		co_return(c, w, 10 + w, true);
	STORED();
	for (uint32_t w = 0; w < 3; w += 2)
		FROM(w, STATUS, .epoch = 5, .status = { .member = true, .at = 8, .width = 2, .nplace = 2,
			.place = place, .nfirst = 2, .first = first, .nslot = 1,
			.slot = (const uint64_t[]){ 7 } });
	refuse(c, 2, 5);
	const struct hd_co_record *r = &c->co->record;
	assert_true(r->nunfit == HD_CO_UNFIT && r->unfit[0].shape == 100 && r->unfit[5].shape == 106 &&
		r->unfit[HD_CO_UNFIT - 1].worker == 2);
	co_end(c);
}

/* Members have the stages that they have; the change is asked for no more, until whoever refused is gone. */
static void a_planned_change_that_is_refused_is_void(void **state)
{
	struct co_at_work at, *c = &at;
	struct asked asked = { .shadows = true, .says = true };
	const struct hd_co_config config = config_of(&asked, 1);

	(void)state;
	co_run(c, &config, 3);
	CO(RESHAPE, .shape = &smaller, .n = 1);
	STORED();
	assert_true(c->co->phase == HD_CO_PREPARING && c->co->next.epoch == 2);
	refuse(c, 1, 2);
	assert_true(c->co->phase == HD_CO_IDLE && c->record.nunfit == 1);
	CHECK(strstr(c->text, "NOTE void") && !strstr(c->text, "FENCE"), "%s", c->text);
	CO(REPLAN, .n = 0);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	/* one more comes: in the stages that they have */
	co_one_more(c, 3);
	assert_int_equal(c->co->phase, HD_CO_NUMBERING);
	assert_true(c->co->next.nmembers == 4 && hd_view_same_shape(&c->co->next.shape, &shape));
	CO(LOST, .worker = 3, .why = HD_EXITED);
	/* whoever refused leaves: in the stages that are wanted */
	CO(DRAIN, .worker = 1);
	STORED();
	assert_true(c->co->next.nmembers == 2 && !hd_view_has(&c->co->next, 1) &&
		hd_view_same_shape(&c->co->next.shape, &smaller));
	co_end(c);
}

/* Not of those that the job wants; and by what is held, since this coordinator knows no view. */
static void what_is_lost_at_a_takeover_is_lost_of_the_stages_that_run(void **state)
{
	static const uint32_t place[] = { 0, 1, 2 };
	/* buckets of the workers 0 and 2; whoever has all may run any */
	static const struct { uint64_t slot[2], lost; } row[] = { { { 3, 5 }, 2 }, { { 6, 5 }, 1 },
		{ { 3, 6 }, 4 }, { { 7, 7 }, 7 } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct co_at_work at, *c = &at;
		struct asked asked = { .shadows = true, .says = true };
		struct hd_co_config config = config_of(&asked, 1);
		config.record = (struct hd_co_record){ .term = 1, .epoch = 4, .next_worker = 3, .target = 3,
			.started = true, .nmembers = 2, .member = { 0, 2 } };
		co_begin(c, &config);
		CO(TICK, .n = 0);
		for (uint32_t w = 0; w < 3; w += 2)
			co_return(c, w, 10 + w, true);
		STORED();
		for (uint32_t w = 0; w < 3; w += 2)
			FROM(w, STATUS, .epoch = 5, .status = { .member = true, .begun = true, .at = 8,
				.width = 3, .nplace = 3, .place = place, .nfirst = 3, .first = cut.first,
				.nslot = 1, .slot = &row[i].slot[w / 2] });
		CHECK(view_of(c) && asked.n == 1 && asked.lost == row[i].lost &&
			hd_view_same_shape(&asked.had, &cut), "row %zu: lost %u: %s", i, (uint32_t)asked.lost,
			c->text);
		co_end(c);
	}
}

static void who_asked_for_more_or_has_no_shadows_waits(void **state)
{
	static const struct { const char *what; uint32_t min, asked; bool shadows, says, alien; } row[] = {
		{ "workers.min", 3, 0, true, true, false }, { "no shadows", 1, 0, false, true, false },
		{ "no such shape", 1, 1, true, false, false }, { "a shape of no job", 1, 1, true, true, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct asked asked = { .shadows = row[i].shadows, .says = row[i].says,
			.alien = row[i].alien };
		struct co_at_work at, *c = &at;
		lose_one(c, &asked, row[i].min);
		/* both hold all, so that without shadows nothing is lost */
		for (uint32_t w = 0; w < 3; w += 2)
			FROM(w, STATUS, .epoch = 2, .status = { .member = true, .begun = true, .nslot = 1,
				.slot = (const uint64_t[]){ 7 } });
		CHECK(view_of(c) && view_of(c)->hold && !view_of(c)->nplace && asked.n == row[i].asked,
			"%s", row[i].what);
		co_end(c);
	}
}

/* Each has the state of its stage alone. */
static void say_stages(struct co_at_work *c, uint64_t gone)
{
	const struct hd_view was = c->co->view;

	for (uint32_t r = 0; r < was.nranks; r++) {
		const uint64_t slot = UINT64_C(1) << r % 3;
		if (!(gone >> was.rank[hd_view_rank(&was, r / 3, r % 3)].worker & 1))
			FROM(was.rank[hd_view_rank(&was, r / 3, r % 3)].worker, STATUS,
				.epoch = c->co->record.epoch, .status = { .member = true, .begun = true,
				.width = 3, .nplace = 3, .place = (const uint32_t[]){ 0, 1, 2 }, .nslot = 1,
				.slot = &slot });
	}
}

/* Until fewer pipelines are asked for: no other worker has to come for that. */
static void one_is_enough(struct co_at_work *c, const struct hd_msg_view *v)
{
	assert_true(v->hold && !v->nplace && strstr(co_note_text(c, "hold"),
		"2 pipelines of the job's 3 stages have 6 ranks"));
	STORED();
	assert_true(c->co->holding && c->co->phase == HD_CO_IDLE);
	c->now += 2 * CO_T;
	CO(TICK, .n = 0);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	CO(RESHAPE, .shape = &shape, .n = 2, .least = 1);
	assert_int_equal(c->co->phase, HD_CO_FENCING);
}

/* Rule 19: two pipelines of three ranks, never fewer. With five devices the stages are two, with three, of
 * which each has another stage, one; where none has the room for that all hold, though one pipeline were
 * enough for the job. */
static void two_pipelines_at_least_are_left_or_none(void **state)
{
	static const struct { uint64_t gone; uint32_t left, width; bool knows_one; const char *note; }
		row[] = { { 1 << 1, 5, 2, false, "2 stages on 4 devices until there are 6" },
		{ 1 << 1 | 1 << 3, 4, 2, false, "2 stages on 4 devices until there are 6" },
		{ 1 << 1 | 1 << 3 | 1 << 5, 3, 1, true, "1 stage on 2 devices until there are 6" },
		{ 1 << 1 | 1 << 3 | 1 << 5, 3, 1, false, NULL } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct asked asked = { .says = true, .knows_one = row[i].knows_one };
		struct hd_co_config config = config_of(&asked, 1);
		struct co_at_work at, *c = &at;
		config.pipes = config.least = 2;
		config.target = 6;
		co_run(c, &config, 6);
		assert_true(hd_view_pipes(&c->co->view) == 2 && !c->co->holding);
		for (uint32_t w = 0; w < 6; w++)
			if (row[i].gone >> w & 1)
				CO(LOST, .worker = w, .why = HD_EXITED);
		STORED();
		say_stages(c, row[i].gone);
		const struct hd_msg_view *v = view_of(c);
		assert_true(v && asked.n == 1 && asked.width == row[i].width &&
			asked.members == row[i].left && !asked.lost);
		if (row[i].note)
			assert_true(!v->hold && v->width == row[i].width && v->nrank == 2 * v->width &&
				strstr(co_note_text(c, "fewer"), row[i].note));
		else
			one_is_enough(c, v);
		co_end(c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_that_is_begun_again_waits_for_no_worker),
		cmocka_unit_test(after_a_step_that_went_on_no_worker_is_waited_for),
		cmocka_unit_test(a_wait_ends_with_the_second_worker),
		cmocka_unit_test(the_last_worker_goes_on_with_one_stage),
		cmocka_unit_test(stages_are_as_many_as_there_are_devices),
		cmocka_unit_test(more_stages_come_as_whoever_has_all_leaves),
		cmocka_unit_test(who_leaves_and_is_not_replaced_leaves_fewer_stages),
		cmocka_unit_test(who_has_all_and_leaves_hands_it_to_a_standby),
		cmocka_unit_test(who_has_a_notice_leaves_before_its_machine_goes),
		cmocka_unit_test(one_that_comes_in_its_place_is_waited_for),
		cmocka_unit_test(of_two_that_leave_the_older_is_enough),
		cmocka_unit_test(an_answer_of_no_more_stages_is_no_change),
		cmocka_unit_test(who_leaves_two_pipelines_leaves_them_fewer_stages),
		cmocka_unit_test(what_was_refused_is_asked_with_more_ranks_alone),
		cmocka_unit_test(a_coordinator_that_takes_over_cuts_nothing_again),
		cmocka_unit_test(a_view_that_is_refused_is_followed_by_another),
		cmocka_unit_test(a_refusal_outlives_the_coordinator),
		cmocka_unit_test(refusals_of_workers_that_are_gone_make_room),
		cmocka_unit_test(refusals_of_workers_that_did_not_come_back_make_room),
		cmocka_unit_test(no_shape_is_forgotten_that_all_refuse),
		cmocka_unit_test(a_planned_change_that_is_refused_is_void),
		cmocka_unit_test(what_is_lost_at_a_takeover_is_lost_of_the_stages_that_run),
		cmocka_unit_test(who_asked_for_more_or_has_no_shadows_waits),
		cmocka_unit_test(two_pipelines_at_least_are_left_or_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
