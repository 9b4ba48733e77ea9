#include "protocol/testing_coordinator.h"

/* Rule 15 of coordinator.h, after a loss: three stages at the members 0 to 2, each with the shadow of the
 * next, of which 1 is lost in step 0. The step goes on if nothing is missing, else it is begun again. */

static const struct hd_stage_bucket of_three[3] = { { 0, 1, 1 }, { 1, 2, 2 }, { 2, 4, 4 } };
static const struct hd_stage_buckets three = { .n = 3, .nstages = 3, .shadows = true,
	.at = (struct hd_stage_bucket *)(uintptr_t)of_three };
static const struct hd_view_shape shape = { .nstages = 3, .width = 3, .place = { 0, 1, 2 } };
static const uint64_t bytes[3] = { 8, 8, 8 };

static const struct hd_stage_buckets *buckets_of(void *self, const struct hd_view_shape *of)
{
	(void)self;
	return hd_view_same_shape(of, &shape) ? &three : NULL;
}

struct asked { uint32_t n, next[3]; uint8_t arrived[12]; bool lost[3], says; };

static bool goes_on(void *self, const struct hd_view *view, const uint32_t *next, const uint8_t *arrived,
	const bool *lost)
{
	struct asked *a = self;

	assert_int_equal(view->epoch, 1);
	a->n++;
	memcpy(a->next, next, sizeof a->next);
	memcpy(a->arrived, arrived, sizeof a->arrived);
	memcpy(a->lost, lost, sizeof a->lost);
	return a->says;
}

/* What is said of 0 and 2: as it is said in the good case, but for one thing. */
struct case_of {
	const char *what;
	bool unbegun, runs, table, no, far, short_, wrong, alien, goes_on;
	uint64_t sum, slot, step;
	uint32_t of;
};

static void lose_one(struct co_at_work *c, struct asked *asked, bool says)
{
	const struct hd_co_config config = { .nvns = 4, .nbuckets = 3, .min = 1, .max = 6, .target = 3,
		.detect_ns = CO_T, .min_wait_ns = 100 * CO_T, .shape = shape, .pipes = 1,
		.of_shape = buckets_of, .bucket_bytes = bytes, .goes_on = goes_on, .goes_on_self = asked };

	*asked = (struct asked){ .says = says };
	co_run(c, &config, 3);
	CO(LOST, .worker = 1, .why = HD_EXITED);
	STORED();
}

static void say_status(struct co_at_work *c, uint32_t w, const struct case_of *k)
{
	static const uint32_t place[] = { 0, 1, 2 };

	FROM(w, STATUS, .epoch = 2, .status = { .member = true, .begun = !(k->unbegun && w),
		.stops = !k->runs, .table = k->table, .width = 3, .nplace = 3, .place = place,
		.nsum = 1, .sum = &k->sum,
		.nslot = 1, .slot = (const uint64_t[]){ w ? k->slot ? k->slot : 5 : k->slot ? 5 : 3 } });
}

static void say_stopped(struct co_at_work *c, uint32_t w, const struct case_of *k)
{
	const uint32_t rank = k->wrong ? 2 - w : w, next = 7 + w;
	const struct hd_vrange run[] = { { k->alien ? 256 : w ? 4 : 1, 6 },
		{ w ? 2 : 1, k->short_ ? 5 : 6 } };

	FROM(w, STOPPED, .epoch = 2, .stopped = { .step = k->step, .of = k->of ? k->of : 1,
		.nrank = !k->far, .rank = &rank, .nnext = !k->far, .next = &next, .narrived = 2,
		.arrived = run });
}

#define SEALED(w) FROM(w, SEAL, .epoch = 2, .seal = { .step = 0, .knows = 2, .ran = true, \
	.news = { .samples = 1, .redone = 2 + (w) } })

static const struct hd_msg_view *view_of(const struct co_at_work *c)
{
	for (size_t i = 0; i < c->done.n; i++)
		if (c->done.at[i].kind == HD_CO_DO_SEND && c->done.at[i].msg->kind == HD_MSG_VIEW)
			return &c->done.at[i].msg->view;
	return NULL;
}

static bool has_view(const struct co_at_work *c, struct hd_msg_view *view)
{
	const struct hd_msg_view *said = view_of(c);

	if (said)
		*view = *said;
	return said != NULL;
}

static void a_step_goes_on_if_nothing_is_missing(void **state)
{
	static const struct case_of cases[] = {
		{ .what = "all is there", .goes_on = true }, { .what = "a step that is not begun", .unbegun = true },
		{ .what = "ranks that run", .runs = true }, { .what = "a table", .table = true },
		{ .what = "a sum", .sum = 2 }, { .what = "the answer", .no = true },
		{ .what = "no rank", .far = true }, { .what = "of fewer cells", .short_ = true },
		{ .what = "the rank of another", .wrong = true }, { .what = "a value", .alien = true },
		{ .what = "an heir without the stage", .slot = 7 }, { .what = "another view", .of = 3 },
		{ .what = "another step", .step = 1 },
	};
	struct co_at_work at, *c = &at;
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct case_of *k = &cases[i];
		lose_one(c, &asked, !k->no);
		say_status(c, 0, k);
		say_status(c, 2, k);
		if (!view_of(c)) {
			say_stopped(c, 0, k);
			if (!view_of(c))
				say_stopped(c, 2, k);
		}
		const struct hd_msg_view *v = view_of(c);
		CHECK(v && v->afresh != k->goes_on, "%s", k->what);
		CHECK(!v->ndoubled == !k->goes_on && !v->nnext == !k->goes_on, "%s", k->what);
		CHECK(asked.n == (k->goes_on || k->no), "%s: asked %u times", k->what, asked.n);
		co_end(c);
	}
}

static void the_view_of_the_rest_says_how_far_all_are(void **state)
{
	static const struct case_of good = { .what = "" };
	struct co_at_work at, *c = &at;
	struct asked asked;

	(void)state;
	lose_one(c, &asked, true);
	say_status(c, 0, &good);
	say_status(c, 2, &good);
	assert_null(view_of(c));
	say_stopped(c, 2, &good);
	say_stopped(c, 2, &good);         /* once more changes nothing */
	assert_null(view_of(c));
	say_stopped(c, 0, &good);
	const struct hd_msg_view *v = view_of(c);
	assert_true(v && v->hold && v->ndoubled == 1 && v->doubled[0] == 1 && v->nrank == 3 &&
		v->rank[1].worker == 0 && v->rank[2].worker == 2);
	assert_true(v->nnext == 3 && v->next[0] == 7 && v->next[1] == 0 && v->next[2] == 9);
	assert_true(v->narrived == 2 && v->arrived[0].first == 5 && v->arrived[0].n == 6 &&
		v->arrived[1].first == 3);
	assert_true(v->npass == 3 && v->pass[1].worker == 0 && v->pass[1].pass == 1 && v->pass[1].stage == 1);
	assert_true(asked.lost[1] && !asked.lost[0] && asked.arrived[5] == 5 && asked.next[2] == 9);
	assert_string_equal(co_note_text(c, "failover"), "step 0 goes on: worker 0 runs what 1 ran");

	/* none is asked for another view before the step is committed, and then at once; none waits */
	struct hd_co_status status;
	co_tick_at(c, c->now + 3 * CO_T / 4);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	hd_coordinator_status(c->co, &status);
	assert_false(status.holding);
	SEALED(0);
	assert_int_equal(c->co->phase, HD_CO_IDLE);
	SEALED(0);
	SEALED(2);
	assert_int_equal(c->co->phase, HD_CO_FENCING);
	assert_int_equal(c->co->news[0].news.redone, 2 + 4);
	co_end(c);
}

/* The step may take as long as that: the others wait for a worker since it was committed. */
static void the_wait_for_workers_begins_after_the_step(void **state)
{
	static const struct case_of good = { .what = "" };
	static const uint32_t place[] = { 0, 1, 2 };
	struct co_at_work at, *c = &at;
	struct asked asked;

	(void)state;
	lose_one(c, &asked, true);
	c->co->config.min_wait_ns = CO_T / 2;
	say_status(c, 0, &good);
	say_status(c, 2, &good);
	say_stopped(c, 0, &good);
	say_stopped(c, 2, &good);
	co_tick_at(c, c->now + 3 * CO_T / 4);
	SEALED(0);
	SEALED(2);
	STORED();
	for (uint32_t w = 0; w <= 2; w += 2)
		FROM(w, STATUS, .epoch = 3, .status = { .member = true, .at = 1, .width = 3, .nplace = 3,
			.place = place, .nslot = 1, .slot = (const uint64_t[]){ w ? 5 : 3 } });
	assert_true(c->co->phase == HD_CO_IDLE && c->co->holding && !c->co->view_alone);
	co_tick_at(c, c->now + CO_T / 4);
	assert_false(c->co->halting);
	co_tick_at(c, c->now + CO_T / 2);
	assert_true(c->co->halting);
	co_end(c);
}

/* A rank in a long instruction: no longer than for a STATUS, and its worker is not dead. */
static void a_rank_that_does_not_stand_is_not_waited_for(void **state)
{
	static const struct case_of good = { .what = "" };
	struct co_at_work at, *c = &at;
	struct asked asked;

	(void)state;
	lose_one(c, &asked, true);
	say_status(c, 0, &good);
	say_status(c, 2, &good);
	say_stopped(c, 2, &good);
	co_tick_at(c, c->now + CO_T / 2);
	assert_null(view_of(c));
	co_tick_at(c, c->now + CO_T);
	const struct hd_msg_view *v = view_of(c);
	assert_true(v && v->afresh && v->nmember == 2 && !asked.n);
	co_end(c);
}

/* Four members, of which 3 has no rank. It stands at once, if it began the step in the view that is known. */
static void a_member_without_a_rank_goes_on_too(void **state)
{
	static const struct { const char *what; uint32_t of, nrank, narrived; bool stops, goes_on; } row[] = {
		{ "it stands", 1, 0, 0, true, true }, { "of another view", 3, 0, 0, true, false },
		{ "a rank of another", 1, 1, 0, true, false }, { "what arrived", 1, 0, 1, true, false },
		{ "it says nothing", 1, 0, 0, false, false },
	};
	static const struct case_of good = { .what = "" };
	static const uint32_t place[] = { 0, 1, 2 }, rank = 0, next = 1;
	static const struct hd_vrange run = { 1, 12 };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct co_at_work at, *c = &at;
		struct asked asked = { .says = true };
		const struct hd_co_config config = { .nvns = 4, .nbuckets = 3, .min = 1, .max = 6,
			.target = 4, .detect_ns = CO_T, .min_wait_ns = 100 * CO_T, .shape = shape,
			.pipes = 1, .of_shape = buckets_of, .bucket_bytes = bytes, .goes_on = goes_on,
			.goes_on_self = &asked };
		co_run(c, &config, 4);
		assert_int_equal(c->co->view.nranks, 3);
		CO(LOST, .worker = 1, .why = HD_EXITED);
		STORED();
		say_status(c, 0, &good);
		say_status(c, 2, &good);
		FROM(3, STATUS, .epoch = 2, .status = { .member = true, .begun = true, .stops = row[i].stops,
			.width = 3, .nplace = 3, .place = place });
		struct hd_msg_view v = { 0 };     /* a copy: the message ends with the next event */
		bool said = has_view(c, &v);
		FROM(3, STOPPED, .epoch = 2, .stopped = { .of = row[i].of, .nrank = row[i].nrank,
			.rank = &rank, .nnext = row[i].nrank, .next = &next, .narrived = row[i].narrived,
			.arrived = &run });
		said = said || has_view(c, &v);
		for (uint32_t w = 0; w < 3 && !said; w += 2) {
			say_stopped(c, w, &good);
			said = has_view(c, &v);
		}
		CHECK(said && v.afresh == !row[i].goes_on && v.ndoubled == row[i].goes_on && v.nmember == 3,
			"%s", row[i].what);
		co_end(c);
	}
}

/* A member that cannot go on suspects itself. */
static void whoever_is_stuck_gets_another_view(void **state)
{
	static const struct case_of good = { .what = "" };
	struct co_at_work at, *c = &at;
	struct asked asked;

	(void)state;
	lose_one(c, &asked, true);
	say_status(c, 0, &good);
	say_status(c, 2, &good);
	say_stopped(c, 0, &good);
	say_stopped(c, 2, &good);
	FROM(0, SUSPECT, .epoch = 2, .suspect = { 0, HD_CLOSED });
	assert_int_equal(c->co->phase, HD_CO_FENCING);
	assert_true(hd_co_is_here(hd_co_find(c->co, 0)));
	co_end(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_goes_on_if_nothing_is_missing),
		cmocka_unit_test(the_view_of_the_rest_says_how_far_all_are),
		cmocka_unit_test(the_wait_for_workers_begins_after_the_step),
		cmocka_unit_test(a_rank_that_does_not_stand_is_not_waited_for),
		cmocka_unit_test(a_member_without_a_rank_goes_on_too),
		cmocka_unit_test(whoever_is_stuck_gets_another_view),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
