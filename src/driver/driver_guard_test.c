#include "driver/driver_int.h"

#include "protocol/testing_coordinator.h"
#include "worker/elastic.h"
#include "driver/testing_run.h"

/* elastic.redundancy: by-notice on its way through a driver: what workers' ends are counted as, the run's
 * job, which the switch leaves as it is, its machine, what users ask for between. */

#define PREEMPT "{\"source\":\"ec2\",\"notice\":\"preempt\",\"lead_ms\":120000," \
	"\"deadline\":\"2017-09-18T08:22:00.000Z\",\"of\":\"machine\",\"text\":\"terminate\"}"
#define RISK "{\"source\":\"ec2-rebalance\",\"notice\":\"risk\",\"text\":\"rebalance recommendation\"}"
#define WITHDRAWN "{\"source\":\"ec2\",\"notice\":\"withdrawn\",\"text\":\"terminate\"}"

struct run {
	struct desk desk;
	struct driver c;
	struct hd_driver_spec spec;
	struct co_at_work at;
	struct hd_clock_sim clock;
	uint64_t step;
};

static void note(void *user, const char *kind, uint32_t worker, const char *text)
{
	char line[700];

	(void)worker;
	if (strcmp(kind, "resilience") != 0 && strcmp(kind, "warning") != 0)
		return;
	snprintf(line, sizeof line, "%s: %s", kind, text);
	desk_say(user, line);
}

static void begin_with(struct run *r, const char *parallel, const char *elastic, uint32_t n)
{
	struct driver *c = &r->c;
	char more[200];

	memset(r, 0, sizeof *r);
	snprintf(more, sizeof more, "parallel: {%s}\ncomm: {sync: stages}\n%s\n", parallel, elastic);
	desk_open(&r->desk, more);
	const struct hd_task *task = r->desk.made.rig.task;
	hd_clock_sim(&r->clock, INT64_C(1000000000000), 0);
	r->spec = (struct hd_driver_spec){ .task = task, .fs = &r->desk.made.rig.fs, .clock = &r->clock.clock,
		.dir = &r->desk.dir, .watch = { .user = &r->desk, .note = note } };
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
	c->config.max = c->config.max > n ? c->config.max : n;
	co_run(&r->at, &c->config, n);
	assert_int_equal(r->at.co->view.nranks, n);
	c->machine = r->at.co;
	c->stepping = true;
	driver_guard_begin(c, task->job);
}

static void begin_as(struct run *r, const char *parallel, const char *elastic)
{
	begin_with(r, parallel, elastic, 2);
}

static void begin(struct run *r, const char *elastic)
{
	begin_as(r, "mode: auto, settled: '1f1b 2 2 0,5 of 2'", elastic);
}

static void pass(struct run *r, int64_t s) { hd_clock_sim_advance(&r->clock, s * 1000000000); }

static void end(struct run *r)
{
	co_end(&r->at);
	hd_pipe_set_finish(&r->c.pipes);
	desk_close(&r->desk);
}

/* A step; the view that was asked for is in force before the next. True: another one was asked for. */
static bool steps(struct run *r)
{
	const uint32_t before = r->c.nqueued;

	driver_guard_step(&r->c, r->step, true);
	const bool asked = r->c.nqueued != before;
	if (asked)
		driver_guard_step(&r->c, r->step, true); /* until it is there nothing else is asked for */
	assert_int_equal(r->c.nqueued, before + asked);
	r->c.nqueued = r->c.first = 0;
	r->at.co->view.shape = r->c.config.shape;
	return asked;
}

static bool is_redundant(const struct run *r)
{
	return hd_shape_redundancy(&r->c.config.shape) != HD_REDUNDANCY_NONE;
}

/* elastic.redundancy and resilience as the next coordinator reads them. */
static const char *kept(struct run *r)
{
	static char text[60];
	struct hd_job *job = NULL;

	CHECK(hd_kept_job_read(&job, &r->desk.dir, NULL, 0, &r->desk.made.rig.arena, &r->desk.diag) == HD_OK,
		"%s", r->desk.diag.text);
	snprintf(text, sizeof text, "%s %s", hd_job_text(job, HD_JOB_REDUNDANCY),
		hd_job_text(job, HD_JOB_RESILIENCE));
	return text;
}

static void leave(struct run *r, uint32_t worker, const char *notice)
{
	driver_noticed(&r->c, worker, notice);
	driver_noted(&r->c, "leave", worker, "");
}

static void notices_in_time_take_the_place_of_redundancy(void **state)
{
	struct run r;

	(void)state;
	begin(&r, "elastic: {redundancy: by-notice}");
	assert_true(is_redundant(&r) && !steps(&r));
	/* no loss: asked to go, only at risk, not of this view */
	leave(&r, 0, WITHDRAWN);
	leave(&r, 0, RISK);
	for (int i = 0; i < 40; i++)
		leave(&r, 77, PREEMPT);
	for (uint32_t i = 0; i < 20; i++) {
		assert_false(steps(&r));
		leave(&r, i % 2, PREEMPT);
	}
	assert_true(steps(&r) && !is_redundant(&r) && !steps(&r));
	assert_string_equal(r.desk.notes,
		"resilience: off: 20 of the last 20 losses were announced in time\n");
	assert_string_equal(kept(&r), "lazy by-notice");
	leave(&r, 0, PREEMPT);
	assert_false(steps(&r));
	driver_noted(&r.c, "lost", 1, "its process ended");
	assert_true(steps(&r) && is_redundant(&r) && !steps(&r));
	assert_string_equal(kept(&r), "lazy by-notice");
	assert_true(strstr(r.desk.notes, "resilience: on: 0 of 0 losses since it is on"));
	end(&r);
	/* a job that has none, and has seen nothing */
	begin(&r, "elastic: {redundancy: none, resilience: by-notice}");
	assert_true(!is_redundant(&r) && steps(&r) && is_redundant(&r));
	assert_non_null(strstr(r.desk.notes, "elastic.redundancy is none, so it is lazy while it is on"));
	end(&r);
}

static void announce_all(struct run *r)
{
	for (uint32_t i = 0; i < HD_GUARD_LOSSES; i++)
		leave(r, i % 2, PREEMPT);
	assert_true(steps(r) && !is_redundant(r));
}

/* A coordinator that takes over, or resumes, reads the run's job after the switch. */
static void the_mode_that_was_asked_for_survives_the_switch(void **state)
{
	static const enum hd_redundancy modes[] = { HD_REDUNDANCY_LAZY, HD_REDUNDANCY_EAGER,
		HD_REDUNDANCY_FULL };

	(void)state;
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		char mode[20], by[20], elastic[80];
		struct run r;
		snprintf(elastic, sizeof elastic, "elastic: {redundancy: %s, resilience: by-notice}",
			hd_redundancy_names[modes[i]]);
		for (int coordinator = 0; coordinator < 2; coordinator++) {
			begin_as(&r, "mode: pipeline, stages: 2", elastic);
			CHECK(hd_shape_redundancy(&r.c.config.shape) == modes[i], "%s, coordinator %d: %s",
				hd_redundancy_names[modes[i]], coordinator, elastic);
			announce_all(&r);
			assert_int_equal(sscanf(kept(&r), "%19s %19s", mode, by), 2);
			snprintf(elastic, sizeof elastic, "elastic: {redundancy: %s, resilience: %s}", mode,
				by);
			if (coordinator) {
				driver_noted(&r.c, "lost", 1, "its process ended");
				assert_true(steps(&r));
				assert_int_equal(hd_shape_redundancy(&r.c.config.shape), modes[i]);
			}
			end(&r);
		}
	}
}

/* The next coordinator goes on with what was counted: off stays off, and one more loss counts as before. */
static void what_was_counted_outlives_a_coordinator(void **state)
{
	struct hd_diag diag = { "" };
	char path[100];
	struct run r;

	(void)state;
	begin(&r, "elastic: {redundancy: by-notice}");
	snprintf(path, sizeof path, "%s/guard.db", r.desk.parent);
	CHECK(hd_store_open(&r.c.store, path, &diag) == HD_OK, "%s", diag.text);
	driver_guard_go_on(&r.c);                 /* nothing is there yet */
	announce_all(&r);
	memset(&r.c.guard, 0, sizeof r.c.guard);
	driver_guard_go_on(&r.c);
	assert_true(r.c.guard.off && !steps(&r) && !is_redundant(&r));
	driver_noted(&r.c, "lost", 1, "its process ended");
	leave(&r, 0, PREEMPT);
	memset(&r.c.guard, 0, sizeof r.c.guard);
	driver_guard_go_on(&r.c);
	assert_true(!r.c.guard.off && r.c.guard.n == 1 && steps(&r) && is_redundant(&r));
	/* asked for again it begins to count */
	driver_guard_begin(&r.c, r.spec.task->job);
	driver_guard_go_on(&r.c);
	assert_true(r.c.guard.n == 0);
	hd_store_close(r.c.store);
	end(&r);
}

static void next_coordinator(struct run *r)
{
	struct hd_job *job = NULL;

	CHECK(hd_kept_job_read(&job, &r->desk.dir, NULL, 0, &r->desk.made.rig.arena, &r->desk.diag) == HD_OK,
		"%s", r->desk.diag.text);
	hd_clock_sim(&r->clock, INT64_C(5000000000), r->clock.wall_ns);          /* its machine began later */
	r->c.machine = NULL;
	memset(r->c.notice, 0, sizeof r->c.notice);
	driver_guard_begin(&r->c, job);
	driver_guard_go_on(&r->c);
	driver_notice_go_on(&r->c);
	r->c.machine = r->at.co;
}

static void begin_stored(struct run *r, const char *parallel, const char *elastic)
{
	char path[100];

	begin_as(r, parallel, elastic);
	snprintf(path, sizeof path, "%s/way.db", r->desk.parent);
	CHECK(hd_store_open(&r->c.store, path, &r->desk.diag) == HD_OK, "%s", r->desk.diag.text);
	r->spec.target = 2;
	driver_guard_go_on(&r->c);
	r->spec.target = 0;
}

static void end_stored(struct run *r)
{
	hd_store_close(r->c.store);
	end(r);
}

static void refuse_memory(struct run *r)
{
	driver_noted(&r->c, HD_NOTE_REFUSED, 1, "{\"text\":\"memory\"}");
	r->c.nqueued = r->c.first = 0;
	r->at.co->view.shape = r->c.config.shape;
}

/* auto: what a worker has no memory for is taken back to what the job had, which no refusal ends; the next
 * coordinator knows both, and the losses. */
static void a_refusal_leaves_the_jobs_own_mode(void **state)
{
	static const char in_stages[] = "mode: pipeline, stages: 2";
	struct run r;

	(void)state;
	for (int takeovers = 0; takeovers < 2; takeovers++) {
		begin_stored(&r, in_stages, "elastic: {redundancy: lazy, resilience: auto}");
		r.c.step_ms = 100;
		refuse_memory(&r);
		assert_true(hd_shape_redundancy(&r.c.config.shape) == HD_REDUNDANCY_LAZY);
		assert_false(r.c.cannot[HD_SPOT_LAZY]);
		/* what a loss takes with lazy is worth more than eager costs */
		r.c.resilience.takes_s[HD_SPOT_LAZY] = 300;
		r.c.resilience.takes_s[HD_SPOT_EAGER] = 1;
		CHECK(steps(&r) && hd_shape_redundancy(&r.c.config.shape) == HD_REDUNDANCY_EAGER, "%s",
			r.c.judged);
		driver_noted(&r.c, "lost", r.at.co->view.rank[1].worker, "its process ended");
		if (takeovers)
			next_coordinator(&r);
		refuse_memory(&r);
		CHECK(hd_shape_redundancy(&r.c.config.shape) == HD_REDUNDANCY_LAZY, "takeover %d: %s",
			takeovers, r.desk.notes);
		assert_string_equal(kept(&r), "lazy auto");
		if (takeovers)
			next_coordinator(&r);
		assert_true(r.c.resilience.n == 1 && r.c.cannot[HD_SPOT_EAGER]);
		pass(&r, 3);
		r.c.resilience.takes_s[HD_SPOT_EAGER] = 1;
		for (r.step = 1; r.step < 2 * HD_RESILIENCE_COMMITS; r.step++)
			CHECK(!steps(&r) || hd_shape_redundancy(&r.c.config.shape) != HD_REDUNDANCY_EAGER,
				"takeover %d, step %d", takeovers, (int)r.step);
		end_stored(&r);
	}
	/* of a run whose coordinator stored none it is not known that it was the job's */
	begin(&r, "elastic: {redundancy: lazy, resilience: auto}");
	driver_guard_go_on(&r.c);
	refuse_memory(&r);
	assert_true(!is_redundant(&r));
	end(&r);
}

/* auto: a takeover goes on with the times that were measured; a resume, which may be on other machines, with
 * the losses alone. */
static void a_resume_measures_again(void **state)
{
	struct run r;

	(void)state;
	begin_stored(&r, "mode: pipeline, stages: 2", "elastic: {redundancy: lazy, resilience: auto}");
	driver_noted(&r.c, "lost", r.at.co->view.rank[1].worker, "its process ended");
	for (int resumed = 0; resumed < 2; resumed++) {
		struct hd_resilience *is = &r.c.resilience;
		is->step_s[HD_SPOT_LAZY] = 5;
		is->nsteps[HD_SPOT_LAZY] = HD_RESILIENCE_STEPS;
		is->takes_s[HD_SPOT_LAZY] = is->back_s = 300;
		driver_guard_keep(&r.c);
		r.spec.target = resumed ? 2 : 0;
		next_coordinator(&r);
		CHECK(is->n == 1 && is->nsteps[HD_SPOT_LAZY] == (resumed ? 0 : HD_RESILIENCE_STEPS),
			"resumed %d: %u losses, %u steps", resumed, is->n, is->nsteps[HD_SPOT_LAZY]);
		const double times[] = { is->step_s[HD_SPOT_LAZY], is->takes_s[HD_SPOT_LAZY], is->back_s };
		for (int i = 0; i < 3; i++)
			CHECK((times[i] > 0) == !resumed, "resumed %d: time %d is %g s", resumed, i,
				times[i]);
	}
	end_stored(&r);
}

/* by-notice: what was refused stays off, and an announced end is one, whichever coordinator heard of it. A
 * resume begins with what is there then. */
static void refusals_and_notices_outlive_a_coordinator(void **state)
{
	struct run r;

	(void)state;
	begin_stored(&r, "mode: auto, settled: '1f1b 2 2 0,5 of 2'", "elastic: {redundancy: by-notice}");
	announce_all(&r);
	driver_noted(&r.c, "lost", 1, "its process ended");
	assert_true(steps(&r) && is_redundant(&r));
	next_coordinator(&r);
	refuse_memory(&r);
	assert_false(is_redundant(&r));
	next_coordinator(&r);
	assert_true(!steps(&r) && !is_redundant(&r));
	assert_string_equal(driver_notice_of(&r.c, 0), "ec2: terminate at 2017-09-18T08:22:00.000Z");
	assert_true(driver_is_announced(&r.c, 0) && !driver_may_start(&r.c));
	pass(&r, 149);
	next_coordinator(&r);
	assert_false(driver_may_start(&r.c));
	pass(&r, 1);
	next_coordinator(&r);
	assert_true(driver_may_start(&r.c));
	r.spec.target = 2;
	next_coordinator(&r);
	assert_true(!driver_is_announced(&r.c, 0) && steps(&r) && is_redundant(&r));
	/* nor are they those of a coordinator that takes that one over */
	r.spec.target = 0;
	next_coordinator(&r);
	assert_true(!driver_is_announced(&r.c, 0) && !*driver_notice_of(&r.c, 0));
	end_stored(&r);
}

/* Of a worker that could not run with shadows: the switch is taken back, once and for all. */
static void what_a_workers_memory_refuses_is_taken_back(void **state)
{
	struct run r;

	(void)state;
	begin(&r, "elastic: {redundancy: by-notice}");
	/* the job's own mode is no switch */
	driver_noted(&r.c, HD_NOTE_REFUSED, 1, "{\"text\":\"memory\"}");
	assert_true(is_redundant(&r));
	announce_all(&r);
	driver_noted(&r.c, "lost", 1, "its process ended");
	assert_true(steps(&r) && is_redundant(&r));
	driver_noted(&r.c, HD_NOTE_REFUSED, 1, "{\"text\":\"memory\"}");
	assert_true(!is_redundant(&r) && r.c.nqueued == 1);
	r.c.nqueued = r.c.first = 0;
	r.at.co->view.shape = r.c.config.shape;
	assert_true(!steps(&r) && strstr(r.desk.notes, "which stays off"));
	driver_noted(&r.c, HD_NOTE_REFUSED, 1, "{\"text\":\"memory\"}");
	assert_true(!is_redundant(&r) && r.c.nqueued == 0);
	end(&r);
}

/* A worker whose source left syncs again: it was not lost. */
static void one_that_syncs_again_is_no_loss(void **state)
{
	struct run r;

	(void)state;
	begin(&r, "elastic: {redundancy: by-notice}");
	announce_all(&r);
	driver_noted(&r.c, "resync", 1, "its source left");
	assert_true(!steps(&r) && !is_redundant(&r));
	end(&r);
}

/* auto: what the losses make worth most. Half of ten minutes is lost with one, which is expected in ten. */
static void what_is_worth_most_is_judged(void **state)
{
	struct run r;
	char text[400];

	(void)state;
	begin(&r, "elastic: {resilience: auto}\ncheckpoint: {every: 10 min}");
	r.c.step_ms = 100;
	assert_string_equal(driver_resilience(&r.c, text, sizeof text), "auto, not judged yet");
	assert_true(!is_redundant(&r) && steps(&r) && is_redundant(&r) && !steps(&r));
	assert_non_null(strstr(r.desk.notes, "resilience: auto: redundancy lazy; 6 losses/h, 0 % in time: "
		"none useful 66.5 %"));
	CHECK(strstr(driver_resilience(&r.c, text, sizeof text), "auto, 6 losses/h") == text, "%s", text);
	/* whoever takes over goes on with it */
	assert_string_equal(kept(&r), "lazy auto");
	/* in stages that a planner settled no rank computes a shadow */
	assert_true(hd_shape_redundancy(&r.c.config.shape) == HD_REDUNDANCY_LAZY);
	/* a worker has no memory for it: that is that */
	driver_noted(&r.c, HD_NOTE_REFUSED, 1, "{\"text\":\"memory\"}");
	assert_true(!is_redundant(&r) && r.c.nqueued == 1);
	r.c.nqueued = r.c.first = 0;
	r.at.co->view.shape = r.c.config.shape;
	for (r.step = 0; r.step < 2 * HD_RESILIENCE_COMMITS; r.step++)
		assert_true(!steps(&r) && !is_redundant(&r));
	assert_string_equal(kept(&r), "none auto");
	end(&r);
	/* every few seconds a checkpoint: none is worth as much */
	begin(&r, "elastic: {resilience: auto}\ncheckpoint: {every: 10 s}");
	r.c.step_ms = 100;
	for (r.step = 0; r.step < 2 * HD_RESILIENCE_COMMITS; r.step++)
		assert_true(!steps(&r) && !is_redundant(&r));
	/* losses that go back, one after another: it is judged again, and shadows are taken */
	for (uint32_t i = 0; i < 2; i++) {
		driver_noted(&r.c, "lost", i, "its process ended");
		driver_noted(&r.c, "restore", HD_NOBODY, "");
	}
	assert_true(r.c.resilience.n == 2 && r.c.resilience.back && r.c.resilience.until == r.c.end.step + 1);
	pass(&r, 60);
	assert_true(steps(&r) && is_redundant(&r));
	/* with notice and out of itself it takes nothing */
	leave(&r, 0, PREEMPT);
	assert_true(r.c.resilience.n == 2 && r.c.resilience.until == 0);
	end(&r);
	begin(&r, "elastic: {resilience: checkpoint}");
	assert_string_equal(driver_resilience(&r.c, text, sizeof text), "checkpoint");
	r.c.step_ms = 100;
	assert_true(!steps(&r) && !is_redundant(&r));
	end(&r);
}

/* auto: of six machines mostly five are there, and two pipelines of two stages are worth more than one of
 * three. A takeover keeps them, a resume judges what it finds. */
static void two_pipelines_are_kept_by_the_next_coordinator(void **state)
{
	struct run r;
	char path[100];

	(void)state;
	begin_with(&r, "mode: pipeline, stages: 3, replicas: 2",
		"elastic: {resilience: auto}\ncheckpoint: {every: 10 min}", 6);
	snprintf(path, sizeof path, "%s/way.db", r.desk.parent);
	CHECK(hd_store_open(&r.c.store, path, &r.desk.diag) == HD_OK, "%s", r.desk.diag.text);
	r.c.step_ms = 100;
	r.c.config.least = 1;
	/* what is there counts from the first note on */
	driver_noted(&r.c, "join", 5, "");
	pass(&r, 100);
	driver_noted(&r.c, "join", 5, "");
	assert_true(r.c.resilience.there == 6 && r.c.resilience.there_ms[6] == 100000);
	r.c.resilience.there_ms[5] = 3000000;
	assert_true(steps(&r) && !is_redundant(&r));
	assert_int_equal(r.c.config.least, 2);
	CHECK(strstr(r.desk.notes, "resilience: auto: replica:1; "), "%s", r.desk.notes);
	assert_string_equal(kept(&r), "none auto");
	r.c.config.least = 1;
	next_coordinator(&r);
	assert_true(r.c.config.least == 2 && r.c.resilience.is == HD_SPOT_REPLICA &&
		r.c.resilience.there_ms[5] == 3000000);
	/* it stays where it gains less than 5 % */
	r.c.resilience.there_ms[5] = 0;
	assert_true(!steps(&r) && r.c.config.least == 2);
	r.c.config.least = 1;
	r.spec.target = 6;
	next_coordinator(&r);
	assert_true(r.c.config.least == 1 && r.c.resilience.is == HD_SPOT_CHECKPOINT);
	end_stored(&r);
}

static void take_two(struct run *r)
{
	begin_with(r, "mode: pipeline, stages: 3, replicas: 2",
		"elastic: {resilience: auto}\ncheckpoint: {every: 10 min}", 6);
	r->c.step_ms = 100;
	r->c.config.least = 1;
	r->c.config.target = 6;
	r->c.resilience.there_ms[5] = 3000000;
	assert_true(steps(r) && r->c.config.least == 2 && r->c.resilience.is == HD_SPOT_REPLICA);
}

/* One pipeline is asked for, with no redundancy; what was asked for is done. */
static bool goes_on_with_one(struct run *r)
{
	const bool is = r->c.nqueued == 1 && r->c.queue[r->c.first].kind == HD_CO_IN_RESHAPE &&
		r->c.queue[r->c.first].least == 1 && r->c.config.least == 1 &&
		r->c.resilience.is == HD_SPOT_CHECKPOINT;

	r->c.nqueued = r->c.first = 0;
	return is;
}

/* auto: where two pipelines cannot be kept the run does not wait for them, but goes on as it would with none.
 * Devices for two stages each were there: these have no room, and are asked for no more. */
static void two_pipelines_that_cannot_be_hold_no_run_up(void **state)
{
	struct run r;

	(void)state;
	for (uint32_t there = 3; there <= 5; there++) {
		take_two(&r);
		for (uint32_t i = there; i < 6; i++)
			r.at.co->worker[i].up = false;
		/* after a loss, or of a worker that is to leave */
		driver_noted(&r.c, there % 2 ? "stays" : "hold", HD_NOBODY, "more workers are waited for");
		CHECK(goes_on_with_one(&r), "of %u", there);
		assert_int_equal(r.c.cannot[HD_SPOT_REPLICA], there > 3);
		assert_string_equal(kept(&r), "none auto");
		CHECK(strstr(r.desk.notes, there > 3 ? "replica:1 stays off" : "one is enough"), "%s",
			r.desk.notes);
		/* without them all wait for workers as ever */
		driver_noted(&r.c, "hold", HD_NOBODY, "more workers are waited for");
		assert_int_equal(r.c.nqueued, 0);
		end(&r);
	}
	/* of the job it is a user's word */
	begin_with(&r, "mode: pipeline, stages: 3, replicas: 2", "elastic: {resilience: 'replica:1'}", 6);
	driver_noted(&r.c, "hold", HD_NOBODY, "more workers are waited for");
	driver_noted(&r.c, "stays", HD_NOBODY, "more workers are waited for");
	assert_int_equal(r.c.nqueued, 0);
	end(&r);
	/* so few are asked for */
	for (uint32_t target = 5; target <= 6; target++) {
		take_two(&r);
		assert_int_equal(driver_scale(&r.c, target, &r.desk.diag), HD_OK);
		assert_int_equal(r.c.nqueued, target < 6 ? 2 : 1);
		assert_int_equal(r.c.config.least, target < 6 ? 1 : 2);
		r.c.nqueued = r.c.first = 0;
		end(&r);
	}
}

/* The commit that is where the run was ends a loss, also under fewer stages, which are not judged: what goes
 * by until a worker has come is no part of it. */
static void a_loss_is_made_up_for_under_any_view(void **state)
{
	struct run r;

	(void)state;
	begin(&r, "elastic: {resilience: auto}\ncheckpoint: {every: 10 s}");
	const struct hd_resilience *is = &r.c.resilience;
	r.c.step_ms = 100;
	assert_false(steps(&r));
	driver_noted(&r.c, "lost", r.at.co->view.rank[1].worker, "its process ended");
	assert_true(is->until == 1);
	r.at.co->view.shape.first[1]++;
	pass(&r, 3);
	driver_guard_step(&r.c, 0, false);
	assert_true(is->until == 0 && is->nsteps[HD_SPOT_CHECKPOINT] == 1);
	pass(&r, 600);
	r.at.co->view.shape = r.c.config.shape;
	assert_false(steps(&r));
	CHECK(is->takes_s[HD_SPOT_CHECKPOINT] > 2.999 && is->takes_s[HD_SPOT_CHECKPOINT] < 3.001, "%g s",
		is->takes_s[HD_SPOT_CHECKPOINT]);
	/* nor is a step that ends a loss a measure of one, whatever was done twice */
	driver_noted(&r.c, "lost", r.at.co->view.rank[0].worker, "its process ended");
	assert_true(is->until == 1 && is->nsteps[HD_SPOT_CHECKPOINT] == 2);
	assert_true(!steps(&r) && is->until == 0 && is->nsteps[HD_SPOT_CHECKPOINT] == 2);
	end(&r);
}

/* A commit of which something was done twice is no measure of a step, but 600 of them lie between
 * checkpoints: 30 s are lost on average. One loss in ten minutes does not pay for shadows, three do. */
static void what_lies_between_checkpoints_is_in_steps_that_were_measured(void **state)
{
	struct run r;

	(void)state;
	begin(&r, "elastic: {resilience: auto}\ncheckpoint: {every: 600 steps}");
	r.c.step_ms = 100;
	assert_true(!steps(&r) && !is_redundant(&r));
	for (uint32_t i = 0; i < 2; i++) {
		driver_noted(&r.c, "lost", r.at.co->view.rank[i].worker, "its process ended");
		pass(&r, 3);
	}
	r.c.step_ms = 100000;
	driver_guard_step(&r.c, 0, false);
	CHECK(is_redundant(&r), "%s", r.c.judged);
	end(&r);
}

static void losses_count_by_the_ranks_that_are_lost(void **state)
{
	struct run r;

	(void)state;
	begin(&r, "elastic: {resilience: auto}");
	struct hd_view *view = &r.at.co->view;
	const uint32_t waits = 9;
	view->member[view->nmembers++] = waits;
	driver_noted(&r.c, "lost", waits, "its process ended");
	assert_true(r.c.resilience.n == 0 && r.c.resilience.until == 0);
	view->rank[1].worker = view->rank[0].worker;
	driver_noted(&r.c, "lost", view->rank[0].worker, "its process ended");
	assert_int_equal(r.c.resilience.n, 2);
	end(&r);
	/* what it ran for a lost one is lost once */
	begin(&r, "elastic: {resilience: auto}");
	view = &r.at.co->view;
	view->rank[1].worker = view->rank[0].worker;
	view->doubled[0] = 2;
	driver_noted(&r.c, "lost", view->rank[0].worker, "its process ended");
	assert_int_equal(r.c.resilience.n, 1);
	end(&r);
}

static void a_job_without_it_keeps_what_it_has(void **state)
{
	struct run r;

	(void)state;
	begin(&r, "elastic: {redundancy: lazy}");
	for (int i = 0; i < 40; i++)
		leave(&r, 0, PREEMPT);
	assert_true(!steps(&r) && is_redundant(&r));
	end(&r);
	begin(&r, "");
	driver_noted(&r.c, "lost", 1, "its process ended");
	assert_true(!steps(&r) && !is_redundant(&r));
	end(&r);
}

static void what_cannot_be_is_said_once(void **state)
{
	struct run r;

	(void)state;
	begin(&r, "elastic: {redundancy: none, resilience: by-notice}");
	r.c.guard_mode = HD_NREDUNDANCIES;
	for (int i = 0; i < 5; i++)
		assert_true(!steps(&r) && !is_redundant(&r));
	const char *first = strstr(r.desk.notes, "warning: ");
	CHECK(first && !strstr(first + 1, "warning: "), "%s", r.desk.notes);
	r.c.guard_mode = HD_REDUNDANCY_LAZY;
	assert_true(steps(&r) && is_redundant(&r));
	end(&r);
}

static enum hd_err ask_for(struct run *r, const char *set)
{
	struct hd_arena *arena = &r->desk.made.rig.arena;
	struct hd_json_writer w;
	struct hd_text out;
	const struct hd_json *ask;
	char text[120];

	snprintf(text, sizeof text, "{\"set\":[\"%s\"]}", set);
	CHECK(!hd_json_parse(arena, "ask", text, strlen(text), &ask, &r->desk.diag), "%s", r->desk.diag.text);
	hd_text_init(&out, arena);
	hd_json_writer_init(&w, &out);
	hd_json_open_object(&w, NULL);
	return driver_answer_shape(&r->c, ask, &w, &r->desk.diag);
}

static void who_asks_for_a_mode_has_it_until_notices_are_asked_to_say(void **state)
{
	static const struct { const char *set, *kept; bool on, changes; } row[] = {
		{ "elastic.redundancy=none", "none given", false, false },
		{ "redundancy=by-notice", "lazy by-notice", true, false },
		{ "redundancy=lazy", "lazy given", true, false },
		{ "elastic.resilience=by-notice", "lazy by-notice", true, false },
		{ "elastic.resilience=given", "lazy given", true, false },
		{ "elastic.resilience=checkpoint", "none checkpoint", false, false },
	};
	char text[400];
	struct run r;

	(void)state;
	begin(&r, "elastic: {redundancy: by-notice}");
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		CHECK(ask_for(&r, row[i].set) == HD_OK, "%s: %s", row[i].set, r.desk.diag.text);
		r.c.nqueued = r.c.first = 0;
		r.at.co->view.shape = r.c.config.shape;
		CHECK(steps(&r) == row[i].changes && is_redundant(&r) == row[i].on, "%s", row[i].set);
		CHECK(!strcmp(kept(&r), row[i].kept), "%s: %s", row[i].set, kept(&r));
		/* status says so */
		const char *said = driver_resilience(&r.c, text, sizeof text),
			*by = strchr(row[i].kept, ' ') + 1;
		CHECK(!strncmp(said, by, strlen(by)), "%s: %s", row[i].set, said);
	}
	end(&r);
}

static void while_it_is_off_other_keys_leave_it_so(void **state)
{
	static const struct { const char *set, *kept; bool on; } row[] = {
		{ "parallel.replicas=1", "lazy by-notice", false },
		{ "elastic.resilience=given", "lazy given", true },
	};
	struct run r;

	(void)state;
	begin(&r, "elastic: {redundancy: by-notice}");
	announce_all(&r);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		CHECK(ask_for(&r, row[i].set) == HD_OK, "%s: %s", row[i].set, r.desk.diag.text);
		r.c.nqueued = r.c.first = 0;
		CHECK(is_redundant(&r) == row[i].on && !strcmp(kept(&r), row[i].kept), "%s: %s", row[i].set,
			kept(&r));
		r.at.co->view.shape = r.c.config.shape;
		assert_false(steps(&r));
	}
	end(&r);
}

/* auto: two pipelines that it keeps are kept in other stages, if these have two. */
static void other_keys_leave_two_pipelines(void **state)
{
	static const struct { const char *set; uint32_t least; enum hd_spot_strategy is; } row[] = {
		{ "parallel.stages=2", 2, HD_SPOT_REPLICA },
		{ "parallel.schedule=gpipe", 2, HD_SPOT_REPLICA },
		{ "parallel.replicas=1", 1, HD_SPOT_CHECKPOINT },
		{ "elastic.resilience=given", 1, HD_SPOT_CHECKPOINT },
		{ "elastic.resilience=replica:1", 2, HD_SPOT_CHECKPOINT },
	};
	struct run r;

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		take_two(&r);
		CHECK(ask_for(&r, row[i].set) == HD_OK, "%s: %s", row[i].set, r.desk.diag.text);
		assert_true(r.c.nqueued == 1 && r.c.queue[r.c.first].least == row[i].least);
		CHECK(r.c.config.least == row[i].least && r.c.resilience.is == row[i].is, "%s: %u, mode %d",
			row[i].set, r.c.config.least, (int)r.c.resilience.is);
		r.c.nqueued = r.c.first = 0;
		end(&r);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(notices_in_time_take_the_place_of_redundancy),
		cmocka_unit_test(the_mode_that_was_asked_for_survives_the_switch),
		cmocka_unit_test(what_was_counted_outlives_a_coordinator),
		cmocka_unit_test(a_refusal_leaves_the_jobs_own_mode),
		cmocka_unit_test(a_resume_measures_again),
		cmocka_unit_test(refusals_and_notices_outlive_a_coordinator),
		cmocka_unit_test(what_a_workers_memory_refuses_is_taken_back),
		cmocka_unit_test(one_that_syncs_again_is_no_loss),
		cmocka_unit_test(what_is_worth_most_is_judged),
		cmocka_unit_test(two_pipelines_are_kept_by_the_next_coordinator),
		cmocka_unit_test(two_pipelines_that_cannot_be_hold_no_run_up),
		cmocka_unit_test(a_loss_is_made_up_for_under_any_view),
		cmocka_unit_test(what_lies_between_checkpoints_is_in_steps_that_were_measured),
		cmocka_unit_test(losses_count_by_the_ranks_that_are_lost),
		cmocka_unit_test(a_job_without_it_keeps_what_it_has),
		cmocka_unit_test(what_cannot_be_is_said_once),
		cmocka_unit_test(who_asks_for_a_mode_has_it_until_notices_are_asked_to_say),
		cmocka_unit_test(while_it_is_off_other_keys_leave_it_so),
		cmocka_unit_test(other_keys_leave_two_pipelines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
