#include "driver/driver_int.h"

#include "pipeline/staged.h"
#include "protocol/testing_coordinator.h"
#include "run/pipes_listed.h"
#include "worker/elastic.h"
#include "driver/testing_run.h"

/* Four stages, some of which no worker is left to run: the shape with which the others go on. */

struct room { bool cuts, any; };

/* As if there were not the memory for it. */
static bool fits(void *self, const struct hd_view_shape *shape, uint32_t nworkers, uint32_t ndevices,
	struct hd_diag *why)
{
	const struct room *room = self;

	assert_true(nworkers == 5 && ndevices == 3 && shape->nstages < 4);
	(void)hd_fail(why, HD_E_NOMEM, "no room");
	return shape->first[1] ? room->cuts : room->any;
}

static void the_holder_of_a_shadow_has_the_stages_as_one(void **state)
{
	/* which of the four begin a stage; 0: cuts by the FLOPs; 9: there is none */
	static const struct { uint64_t lost; uint32_t width, of[3]; struct room room; } row[] = {
		{ 2, 3, { 0, 2, 3 }, { true, true } }, { 1, 3, { 0, 2, 3 }, { true, true } },
		{ 8, 3, { 0, 1, 2 }, { true, true } }, { 6, 2, { 0, 3 }, { true, true } },
		{ 9, 2, { 0, 2 }, { true, true } }, { 3, 2, { 0 }, { true, true } },
		{ 4, 2, { 0 }, { true, true } }, { 0, 3, { 0 }, { true, true } },
		{ 2, 3, { 0 }, { false, true } }, { 2, 3, { 9 }, { false, false } },
		{ 14, 1, { 0 }, { true, true } }, { 14, 1, { 9 }, { true, false } },
	};
	struct hd_redraw redraw = { .spec.fits = fits };
	struct hd_driver_spec spec = { .redraw = &redraw };
	struct driver c = { .spec = &spec };
	struct desk desk;

	(void)state;
	desk_open(&desk, "parallel: {mode: pipeline, stages: 4}\n");
	CHECK(hd_pipe_set_init(&c.pipes, desk.made.rig.task, &desk.diag) == HD_OK, "%s", desk.diag.text);
	/* as many devices as the workers that are here have, whatever this one would start */
	struct co_at_work at;
	co_run(&at, &co_config, 2);
	at.co->worker[1].ndevices = 3;
	c.machine = at.co;
	const struct hd_view_shape *had = &c.pipes.first.shape;
	const uint32_t *first = c.pipes.first.stages.first;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_view_shape is;
		struct room room = row[i].room;
		redraw.spec.self = &room;
		const struct hd_fewer_ask ask = { .shape = had, .lost = row[i].lost, .width = row[i].width,
			.n = 5 };
		const bool some = driver_fewer(&c, &ask, &is);
		CHECK(some == (row[i].of[0] != 9), "row %zu", i);
		if (!some)
			continue;
		CHECK(is.nstages == row[i].width && is.width == row[i].width &&
			is.schedule == had->schedule && is.place[is.nstages - 1] == is.nstages - 1, "row %zu",
			i);
		for (uint32_t s = 0; s < is.nstages; s++)
			CHECK(is.first[s] == (row[i].of[1] ? first[row[i].of[s]] : 0), "row %zu: stage %u "
				"begins with %u", i, s, is.first[s]);
	}
	co_end(&at);
	hd_pipe_set_finish(&c.pipes);
	desk_close(&desk);
}

/* Whatever the order before, and without a shadow, since no other rank has one. All of the state is its. */
static void one_rank_has_the_model_as_one_stage(void **state)
{
	static const char *const keys[] = { "stages: 2}\ncomm: {sync: stages}\nelastic: {redundancy: eager",
		"stages: 4, schedule: interleaved}\ncomm: {sync: stages}\nelastic: {redundancy: lazy",
		"stages: 4, schedule: zb-v}\ncomm: {sync: stages}\nelastic: {redundancy: lazy" };

	(void)state;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct desk desk;
		char text[200];
		snprintf(text, sizeof text, "parallel: {mode: pipeline, %s}\n", keys[i]);
		desk_open(&desk, text);
		struct hd_driver_spec spec = { .task = desk.made.rig.task };
		struct driver c = { .spec = &spec };
		struct hd_view_shape is;
		const struct hd_pipes *pipes;
		CHECK(hd_pipe_set_init(&c.pipes, spec.task, &desk.diag) == HD_OK, "%s", desk.diag.text);
		struct hd_fewer_ask ask = { .shape = &c.pipes.first.shape, .lost = 2, .width = 1, .n = 1 };
		assert_true(driver_fewer(&c, &ask, &is));
		assert_true(is.nstages == 1 && is.width == 1 &&
			hd_shape_redundancy(&is) == HD_REDUNDANCY_NONE);
		assert_string_equal(hd_schedule_kinds[hd_shape_order(&is)].name, "1f1b");
		CHECK(hd_pipe_set_find(&c.pipes, &is, &pipes, &desk.diag) == HD_OK, "%s", desk.diag.text);
		assert_true(pipes->buckets.nstages == 1 && !pipes->buckets.whole && !pipes->buckets.shadows &&
			hd_state_is_partial(&pipes->buckets, 0));
		hd_pipe_set_finish(&c.pipes);
		desk_close(&desk);
	}
}

/* Of a plan file: of fewer ranks it has no lists, so they work in the order of 1f1b. */
static void fewer_stages_than_a_plan_file_has_work_in_the_order_of_1f1b(void **state)
{
	struct hd_driver_spec spec = { .task = NULL };
	struct driver c = { .spec = &spec };
	struct hd_view_shape is;
	struct hd_plan plan;
	struct hd_schedule one;
	struct hd_text text;
	struct desk desk;

	(void)state;
	desk_open(&desk, "parallel: {mode: explicit, plan: a.plan}\ncomm: {sync: stages}\n"
		"elastic: {redundancy: lazy}\n");
	struct hd_job *job = desk.made.rig.job;
	struct hd_arena *arena = &desk.made.rig.arena;
	const struct hd_plan_job asks = { .nvns = job->nvns, .nchunks = 3, .nstages = 1 };
	const struct hd_schedule_ask ask = { .name = "gpipe", .p = 3, .m = job->nvns };
	assert_int_equal(hd_schedule_make(&one, &ask, arena, NULL), HD_OK);
	assert_int_equal(hd_plan_staged(&plan, &asks, &one, 1, (uint32_t[]){ 0, 5, 11 }, HD_KEEPS_ALL, arena,
		NULL), HD_OK);
	plan.cause = "";
	hd_text_init(&text, arena);
	assert_int_equal(hd_plan_print(&plan, &text), HD_OK);
	CHECK(hd_pipes_list(job, text.at, text.len, "a.plan", arena, &desk.diag) == HD_OK, "%s",
		desk.diag.text);
	spec.task = desk.made.rig.task;
	CHECK(hd_pipe_set_init(&c.pipes, spec.task, &desk.diag) == HD_OK, "%s", desk.diag.text);
	const struct hd_fewer_ask lost = { .shape = &c.pipes.first.shape, .lost = 2, .width = 2, .n = 2 };
	assert_true(driver_fewer(&c, &lost, &is));
	assert_string_equal(hd_schedule_kinds[hd_shape_order(&is)].name, "1f1b");
	/* the holder of the lost stage's shadow has it and its own as one */
	assert_true(hd_shape_redundancy(&is) == HD_REDUNDANCY_LAZY && is.nstages == 2 && is.first[1] == 11);
	hd_pipe_set_finish(&c.pipes);
	desk_close(&desk);
}

/* With workers.memory: auto nothing is known before. Each shape that is refused is followed by one that takes
 * less, and the last by none. */
static void what_a_worker_refused_is_proposed_no_more(void **state)
{
	/* which stage of the four begins the second one; 0: cuts by the FLOPs */
	static const struct { uint32_t second; bool again; } row[] = { { 2, false }, { 0, false },
		{ 2, true }, { 0, true } };
	const uint32_t n = sizeof row / sizeof *row;
	struct desk desk;

	(void)state;
	desk_open(&desk, "parallel: {mode: pipeline, stages: 4}\n");
	struct hd_driver_spec spec = { .task = desk.made.rig.task };
	struct driver c = { .spec = &spec };
	struct hd_view_shape is;
	uint64_t refused[4];
	CHECK(hd_pipe_set_init(&c.pipes, spec.task, &desk.diag) == HD_OK, "%s", desk.diag.text);
	struct hd_fewer_ask ask = { .shape = &c.pipes.first.shape, .lost = 2, .width = 3, .n = 3,
		.refused = refused };
	for (uint32_t i = 0; i < n; i++) {
		CHECK(driver_fewer(&c, &ask, &is), "refusal %u: no shape", i);
		CHECK(is.again == row[i].again && is.width == 3 && is.first[1] == (row[i].second ?
			c.pipes.first.stages.first[row[i].second] : 0), "refusal %u: %u, %d", i, is.first[1],
			is.again);
		refused[ask.nrefused++] = hd_view_shape_key(&is);
	}
	assert_false(driver_fewer(&c, &ask, &is));
	hd_pipe_set_finish(&c.pipes);
	desk_close(&desk);
}

/* Stages that were cut again, or redundancy that is new, are not what a worker refuses then. */
static void the_way_back_from_fewer_stages_is_told_from_other_changes(void **state)
{
	enum { LOSS, WANTED, RESHAPED };
	static const struct { const char *note[3]; int view; bool back; } row[] = {
		{ { "view" }, WANTED, false }, { { "fewer", "view" }, LOSS, false },
		{ { "warning" }, WANTED, false }, { { HD_NOTE_STUCK }, WANTED, false },
		{ { "fewer", "view", HD_NOTE_REFUSED }, LOSS, true },
		{ { "view", HD_NOTE_REFUSED }, WANTED, false },
		{ { "fewer", "view", HD_NOTE_REFUSED }, WANTED, false },
		/* this coordinator found them */
		{ { "view", HD_NOTE_REFUSED }, LOSS, true },
		{ { "view", "warning" }, LOSS, false },
		/* asked for, and not there yet */
		{ { "view", HD_NOTE_REFUSED }, RESHAPED, false },
	};
	struct desk desk;

	(void)state;
	desk_open(&desk, "parallel: {mode: pipeline, stages: 4}\n");
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_driver_spec spec = { .task = desk.made.rig.task };
		struct driver c = { .spec = &spec };
		struct co_at_work at;
		bool back = false;
		CHECK(hd_pipe_set_init(&c.pipes, spec.task, &desk.diag) == HD_OK, "%s", desk.diag.text);
		co_run(&at, &co_config, 2);
		c.machine = at.co;
		c.reshaped = row[i].view == RESHAPED;
		c.config.shape = at.co->view.shape = c.pipes.first.shape;
		if (row[i].view != WANTED)
			hd_view_shape(&at.co->view.shape, 3, 1, false);
		for (uint32_t n = 0; n < 3 && row[i].note[n]; n++)
			back |= driver_fewer_noted(&c, row[i].note[n]);
		CHECK(back == row[i].back, "row %zu", i);
		co_end(&at);
		hd_pipe_set_finish(&c.pipes);
	}
	desk_close(&desk);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_holder_of_a_shadow_has_the_stages_as_one),
		cmocka_unit_test(one_rank_has_the_model_as_one_stage),
		cmocka_unit_test(fewer_stages_than_a_plan_file_has_work_in_the_order_of_1f1b),
		cmocka_unit_test(what_a_worker_refused_is_proposed_no_more),
		cmocka_unit_test(the_way_back_from_fewer_stages_is_told_from_other_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
