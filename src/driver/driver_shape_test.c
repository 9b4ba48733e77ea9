#include "driver/driver_int.h"

#include <math.h>

#include "protocol/testing_coordinator.h"
#include "run/kept_forecast.h"
#include "run/kept_plan.h"
#include "worker/elastic.h"
#include "driver/testing_run.h"

/* Other cuts of stages that drift, on their way through a driver: the run's job, its machine, what comes
 * between. */

struct run {
	struct desk desk;
	struct driver c;
	struct hd_driver_spec spec;
	struct hd_redraw redraw;
	struct co_at_work at;
	uint64_t step;
};

static void note(void *user, const char *kind, uint32_t worker, const char *text)
{
	char line[700];

	(void)worker;
	snprintf(line, sizeof line, "%s: %s", kind, text);
	desk_say(user, line);
}

/* Two workers in the view that the job settled on; events for the machine stay in the queue. */
static void begin(struct run *r)
{
	struct co_at_work *at = &r->at;
	struct driver *c = &r->c;

	memset(r, 0, sizeof *r);
	desk_open(&r->desk, "parallel: {mode: auto, settled: '1f1b 2 2 0,5 of 2'}\n");
	const struct hd_task *task = r->desk.made.rig.task;
	hd_redraw_init(&r->redraw, &(struct hd_redraw_spec){ .task = task, .costs = r->desk.made.costs,
		.cores = 8, .is_auto = true });
	r->spec = (struct hd_driver_spec){ .task = task, .fs = &r->desk.made.rig.fs, .clock = &r->desk.clock,
		.dir = &r->desk.dir, .redraw = &r->redraw, .watch = { .user = &r->desk, .note = note } };
	c->spec = &r->spec;
	CHECK(hd_pipe_set_init(&c->pipes, task, &r->desk.diag) == HD_OK, "%s", r->desk.diag.text);
	c->config = co_config;
	c->config.nvns = task->job->nvns;
	c->config.nbuckets = hd_layout_nbuckets(&task->layout);
	c->config.shape = c->pipes.first.shape;
	c->config.pipes = c->pipes.first.most;
	c->config.of_shape = hd_pipe_set_buckets;
	c->config.of_shape_self = &c->pipes;
	c->config.bucket_bytes = c->pipes.first.bytes;
	c->config.whole = true;
	co_run(at, &c->config, 2);
	assert_int_equal(at->co->view.nranks, 2);
	c->machine = at->co;
	c->stepping = true;
}

static void end(struct run *r)
{
	co_end(&r->at);
	hd_redraw_finish(&r->redraw);
	hd_pipe_set_finish(&r->c.pipes);
	desk_close(&r->desk);
}

/* What a worker with one rank says after a step; what it said after the one before comes first. */
static void says(struct run *r, const struct hd_view *view, uint32_t w, uint64_t ns)
{
	for (uint64_t i = 0; i < 2; i++) {
		const struct hd_spent_kind kind = { w, (uint8_t)w, HD_INS_F, 1, (r->step + i) * ns, 0 };
		hd_spent_take(&r->redraw.said, w, view->epoch, &(struct hd_msg_spent){ r->step + i - 1, 1,
			&kind });
	}
}

/* Steps in which worker 1 computes so many times as long as its stage was cut for. */
static void run_slow(struct run *r, uint32_t n, double slow)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_view *view = hd_coordinator_view(r->c.machine);
		struct hd_step_news news = { .step_ns = 10000000 };
		for (uint32_t w = 0; w < 2; w++) {
			hd_pace_seal(&r->c.reshape.pace, w, r->step, &news, view);
			says(r, view, w, w ? (uint64_t)(slow * 1.728e9) : 192000000);
		}
		driver_redraw(&r->c, r->step++, &news);
	}
}

static void run(struct run *r, uint32_t n) { run_slow(r, n, 3); }

/* The n-th and last event for the machine is that of the shape. */
static bool was_fed(const struct run *r, uint32_t n, const struct hd_view_shape *shape)
{
	const struct hd_co_event *e = &r->c.queue[n - 1];

	return r->c.nqueued == n && e->kind == HD_CO_IN_RESHAPE && hd_view_same_shape(e->shape, shape) &&
		hd_view_same_shape(&r->c.config.shape, shape);
}

static const char was[] = "1f1b 2 2 0,5 of 2";

static void stages_that_drift_are_cut_again_in_job_and_machine(void **state)
{
	struct run r;

	(void)state;
	begin(&r);
	run(&r, HD_STAGE_DRIFT_STEPS);
	CHECK(r.c.nqueued == 1 && strstr(r.desk.notes, "redraw: stages drift: worker 1"), "%s", r.desk.notes);
	assert_true(was_fed(&r, 1, &r.c.config.shape) && r.c.config.shape.first[1] > 5);
	CHECK(!strncmp(desk_kept(&r.desk), "1f1b 2 2 0,", 11) && strcmp(desk_kept(&r.desk), was) != 0 &&
		strstr(desk_kept(&r.desk), " of 2"), "%s", desk_kept(&r.desk));
	/* until it is in force nothing else is asked for */
	run(&r, 40);
	assert_int_equal(r.c.nqueued, 1);
	end(&r);
}

/* Before a step of the view, in a folder that has no plans yet, and again for the next one. */
static void what_a_view_is_predicted_to_take_is_kept_when_it_comes(void **state)
{
	struct run r;

	(void)state;
	begin(&r);
	for (uint32_t i = 0; i < 2; i++) {
		struct hd_view *view = &r.at.co->view;
		const struct hd_json *json = NULL;
		char name[64], path[HD_PATH_CAP];
		int64_t plan = 0;
		double ms = 0;
		uint8_t *bytes;
		size_t len;
		view->epoch += i;
		driver_keep_plan(&r.c);
		snprintf(name, sizeof name, HD_PLAN_FOLDER "/%04u." HD_KEPT_PREDICTED ".json", view->epoch);
		hd_rundir_path(&r.desk.dir, name, path, sizeof path);
		CHECK(!hd_file_read_all(r.spec.fs, path, &r.desk.made.rig.arena, HD_FORECAST_BYTES, &bytes,
			&len, &r.desk.diag) && !hd_json_parse(&r.desk.made.rig.arena, name,
			(const char *)bytes, len, &json, &r.desk.diag), "%s", r.desk.diag.text);
		assert_int_equal(hd_json_get_i64(json, "plan", 0, 9, &plan, NULL), HD_OK);
		assert_int_equal(hd_json_get_f64(json, "predicted_ms", &ms, NULL), HD_OK);
		assert_int_equal(plan, view->epoch);
		run_slow(&r, 1, 1);
		assert_true(ms > 0 && fabs(ms * 1e6 / r.redraw.forecast.step_ns - 1) < 1e-12);
		CHECK(!*r.desk.notes, "%s", r.desk.notes);
	}
	end(&r);
}

/* Of a shape that a user asked for, until the view has it. */
static void what_a_user_asked_for_goes_before_what_is_found(void **state)
{
	struct run r;

	(void)state;
	begin(&r);
	r.c.config.shape.first[1] = 9;
	const struct hd_view_shape wish = r.c.config.shape;
	run(&r, 80);
	assert_true(r.c.nqueued == 0 && hd_view_same_shape(&r.c.config.shape, &wish) && !*r.desk.notes);
	assert_string_equal(desk_kept(&r.desk), was);
	end(&r);
}

static void a_disk_that_takes_nothing_loses_no_wish(void **state)
{
	char job[HD_PATH_CAP], away[HD_PATH_CAP + 8];
	struct run r;

	(void)state;
	begin(&r);
	const struct hd_view_shape before = r.c.config.shape;
	hd_rundir_path(&r.desk.dir, HD_RUN_JOB, job, sizeof job);
	snprintf(away, sizeof away, "%s.away", job);
	assert_int_equal(rename(job, away), 0);
	run(&r, HD_STAGE_DRIFT_STEPS);
	CHECK(r.c.nqueued == 0 && strstr(r.desk.notes, "warning: "), "%s", r.desk.notes);
	assert_true(hd_view_same_shape(&r.c.config.shape, &before) && !r.c.redrawn.nstages);
	assert_int_equal(rename(away, job), 0);
	run(&r, 2 * HD_STAGE_DRIFT_STEPS);
	CHECK(r.c.nqueued == 1 && strcmp(desk_kept(&r.desk), was) != 0, "%s", r.desk.notes);
	end(&r);
}

/* Of a worker of whichever machine: no process of this one ends by it. */
static void refuse(struct run *r)
{
	driver_noted(&r->c, "plan_refused", 1, "{\"text\":\"the job needs more\"}");
}

/* A worker that has not the memory for it ends, and the next one would. */
static void a_change_that_a_worker_refuses_is_taken_back_for_good(void **state)
{
	struct run r;

	(void)state;
	begin(&r);
	const struct hd_view_shape before = r.c.config.shape;
	refuse(&r);                       /* of no change */
	assert_true(!r.c.nqueued && !r.redraw.off);
	run(&r, HD_STAGE_DRIFT_STEPS);
	assert_true(r.c.nqueued == 1 && !r.redraw.off);
	refuse(&r);
	assert_true(was_fed(&r, 2, &before));
	assert_string_equal(desk_kept(&r.desk), was);
	refuse(&r);
	r.redraw.epoch = 0;               /* in another view, slower still */
	run_slow(&r, 300, 20);
	assert_int_equal(r.c.nqueued, 2);
	end(&r);
}

/* The coordinator that cut them again is gone: the next one knows by the job and the view. But what it was
 * asked for itself, or with other shadows, is the user's, unless notices say whether there are any. */
static void a_change_of_the_coordinator_before_is_taken_back(void **state)
{
	enum { INHERITED, NOTICES, ASKED, SHADOWS, KINDS };

	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		struct run r;
		begin(&r);
		const struct hd_view_shape before = r.c.config.shape;
		refuse(&r);               /* of the shape in force: there is nothing to take back */
		assert_int_equal(r.c.nqueued, 0);
		run(&r, HD_STAGE_DRIFT_STEPS);
		assert_int_equal(r.c.nqueued, 1);
		r.c.redrawn.nstages = 0;
		r.c.reshaped = kind == ASKED;
		r.c.guards = kind == NOTICES;
		if (kind == SHADOWS || kind == NOTICES)
			hd_shape_make_redundant(&r.c.config.shape, HD_REDUNDANCY_FULL);
		refuse(&r);
		if (kind == INHERITED || kind == NOTICES) {
			assert_true(was_fed(&r, 2, &before) && r.redraw.off);
			assert_string_equal(desk_kept(&r.desk), was);
		} else {
			assert_true(r.c.nqueued == 1 && !r.redraw.off);
		}
		end(&r);
	}
}

/* While it waits for devices a run of stages has a view without a shape, by which none is computed. */
static void a_run_of_stages_that_waits_has_none_anywhere(void **state)
{
	static const struct { bool waits; const char *each; } row[] = { { false, "\"stages\":1," },
		{ true, "\"stages\":0," } };
	const struct hd_hub_config config = { .worker = HD_COORDINATOR_LINK, .role = HD_ROLE_COORDINATOR,
		.detect_ms = 1000, .peers_cap = 1, .streams_cap = 1 };
	const struct hd_wire_events events = { .self = NULL };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_json_writer w;
		const struct hd_json *ask;
		struct hd_text out;
		struct run r;
		begin(&r);
		hd_net_real(&r.c.net);
		assert_int_equal(hd_loop_init(&r.c.loop, &r.desk.clock, NULL), HD_OK);
		assert_int_equal(hd_hub_init(&r.c.hub, &config, &events, &r.c.loop, &r.c.net, NULL), HD_OK);
		if (row[i].waits)
			r.at.co->view.shape = (struct hd_view_shape){ .nstages = 0 };
		assert_int_equal(hd_json_parse(&r.desk.made.rig.arena, "ask", "{}", 2, &ask, NULL), HD_OK);
		hd_text_init(&out, &r.desk.made.rig.arena);
		hd_json_writer_init(&w, &out);
		hd_json_open_object(&w, NULL);
		CHECK(driver_answer(&r.c, "status", ask, &w, &r.desk.diag) == HD_OK, "%s", r.desk.diag.text);
		const char *first = strstr(out.at, row[i].each);
		CHECK(first && strstr(first + 1, row[i].each), "%s", out.at);
		hd_hub_finish(&r.c.hub);
		hd_loop_finish(&r.c.loop);
		end(&r);
	}
}

/* What it asks for is of this machine: workers of others are ranks, too, while they are there. */
static void fewer_local_workers_do_beside_those_of_other_machines(void **state)
{
	static const struct { uint32_t other; bool up, takes; } row[] = { { 1, true, false },
		{ HD_REMOTE_WORKER, true, true }, { HD_REMOTE_WORKER, false, false } };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_json_writer w;
		const struct hd_json *ask;
		struct hd_text out;
		struct run r;
		begin(&r);
		r.c.config.min = 1;
		r.at.co->worker[1].worker = row[i].other;
		r.at.co->worker[1].up = row[i].up;
		assert_int_equal(hd_json_parse(&r.desk.made.rig.arena, "ask", "{\"workers\":1}", 13, &ask,
			NULL), HD_OK);
		hd_text_init(&out, &r.desk.made.rig.arena);
		hd_json_writer_init(&w, &out);
		hd_json_open_object(&w, NULL);
		const enum hd_err err = driver_answer(&r.c, "scale", ask, &w, &r.desk.diag);
		CHECK(!err == row[i].takes, "row %zu: %s", i, r.desk.diag.text);
		CHECK(row[i].takes || strstr(r.desk.diag.text, "it takes 2 on this machine"), "%s",
			r.desk.diag.text);
		end(&r);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_that_drift_are_cut_again_in_job_and_machine),
		cmocka_unit_test(what_a_view_is_predicted_to_take_is_kept_when_it_comes),
		cmocka_unit_test(what_a_user_asked_for_goes_before_what_is_found),
		cmocka_unit_test(a_disk_that_takes_nothing_loses_no_wish),
		cmocka_unit_test(a_change_that_a_worker_refuses_is_taken_back_for_good),
		cmocka_unit_test(a_change_of_the_coordinator_before_is_taken_back),
		cmocka_unit_test(a_run_of_stages_that_waits_has_none_anywhere),
		cmocka_unit_test(fewer_local_workers_do_beside_those_of_other_machines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
