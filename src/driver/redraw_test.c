#include "driver/redraw.h"

#include <math.h>
#include <string.h>

#include "run/pipes_forecast.h"
#include "run/testing_costs.h"

/* Nodes that take equally long, and workers that take so many times what they are predicted to: where they
 * must be cut then follows from their number. */

struct drawn {
	struct hd_made job;
	struct hd_redraw redraw;
	struct hd_pipes pipes;
	struct hd_view view;
	struct hd_pace pace;
	uint64_t step;
	struct hd_view_shape shape;       /* asked for last */
	char said[HD_REDRAW_WORDS];
	bool changes;                     /* a user's wish is under way */
	uint32_t ndevices;                /* of a worker */
	bool by_rank;                     /* slow[] is of ranks */
	bool says_nothing;                /* the last worker */
	uint64_t spent_ns[HD_VIEW_RANKS]; /* of the plan */
	uint32_t under;                   /* steps of it */
	uint32_t nasked;                  /* how often it asked what fits */
	bool unfit;
};

static void take_shape(struct drawn *d, uint32_t nworkers, uint32_t ndevices)
{
	const uint32_t epoch = d->view.epoch + 1;

	CHECK(hd_pipes_view(&d->view, &d->pipes, nworkers, ndevices, d->job.rig.job->nvns), "%u", nworkers);
	d->view.epoch = epoch;
	d->ndevices = ndevices;
	memset(d->spent_ns, 0, sizeof d->spent_ns);
	d->under = 0;
}

static bool fits(void *self, const struct hd_view_shape *shape, uint32_t nworkers, uint32_t ndevices,
	struct hd_diag *why)
{
	struct drawn *d = self;

	d->nasked++;
	assert_true(shape->nstages == 2 && shape->first[1] && nworkers == d->view.nmembers &&
		ndevices == d->ndevices);
	return !d->unfit || hd_fail(why, HD_E_REFUSED, "too large") == HD_OK;
}

static void begin_of(struct drawn *d, const char *model, const char *parallel, uint32_t nworkers,
	uint32_t ndevices, bool is_auto)
{
	char more[120];

	*d = (struct drawn){ .step = 0 };
	snprintf(more, sizeof more, "parallel: {%s}\n", parallel);
	hd_made_begin(&d->job, model, more, 0);
	hd_redraw_init(&d->redraw, &(struct hd_redraw_spec){ .task = d->job.rig.task, .costs = d->job.costs,
		.cores = 8, .is_auto = is_auto, .fits = fits, .self = d });
	CHECK(hd_pipes_make(&d->pipes, d->job.rig.task, &d->job.rig.arena, &d->job.diag) == HD_OK, "%s",
		d->job.diag.text);
	take_shape(d, nworkers, ndevices);
}

static void begin(struct drawn *d, const char *parallel, uint32_t nworkers, uint32_t ndevices, bool is_auto)
{
	begin_of(d, hd_made_gpt, parallel, nworkers, ndevices, is_auto);
}

static void end(struct drawn *d)
{
	hd_redraw_finish(&d->redraw);
	hd_made_end(&d->job);
}

/* What a device like those that the costs are of computes of a stage in a step. */
static double stage_ns(const struct drawn *d, uint32_t stage, uint32_t nvns)
{
	const uint32_t *first = d->pipes.stages.first;
	uint32_t n = 0;

	for (uint32_t k = 0; k < d->job.costs->cuts.n; k++)
		n += d->job.costs->line.first[k] >= first[stage] &&
			(stage == 1 || d->job.costs->line.first[k] < first[1]);
	return 3e6 * n * nvns;
}

/* What a worker says at the end of a step: of its ranks, since the first step of the plan. */
static void say(struct drawn *d, uint32_t w)
{
	struct hd_spent_kind kind[HD_VIEW_RANKS];
	struct hd_msg_spent msg = { .step = d->step, .spent = kind };

	for (uint32_t k = 0; k < d->view.nranks; k++)
		if (d->view.rank[k].worker == w)
			kind[msg.nspent++] = (struct hd_spent_kind){ k, (uint8_t)(k % 2), HD_INS_F, d->under,
				d->spent_ns[k], d->spent_ns[k] / 2 };
	hd_spent_take(&d->redraw.said, w, d->view.epoch, &msg);
}

/* A step in which worker w computes slow[w] times as long as such a device, but for the first one of a plan,
 * which is not said. */
static bool step(struct drawn *d, const double *slow, uint32_t redone)
{
	const struct hd_redraw_step s = { d->step, 10, &d->view, &d->pipes, &d->pace, d->changes };

	for (uint32_t k = 0; k < d->view.nranks && d->under; k++)
		d->spent_ns[k] += (uint64_t)(stage_ns(d, k % 2, d->view.rank[k - k % 2].nvns) *
			slow[d->by_rank ? k : d->view.rank[k].worker]);
	for (uint32_t i = 0; i < d->view.nmembers; i++) {
		const uint32_t w = d->view.member[i];
		hd_pace_seal(&d->pace, w, d->step, &(struct hd_step_news){ .step_ns = 10000000,
			.redone = redone }, &d->view);
		if (!d->says_nothing || i + 1 < d->view.nmembers)
			say(d, w);
	}
	d->under++;
	const bool asks = hd_redraw_step(&d->redraw, &s, &d->shape, d->said);
	d->step++;
	return asks;
}

/* The step at which it asks; 0: not in so many. */
static uint32_t asks_within(struct drawn *d, uint32_t n, const double *slow, uint32_t redone)
{
	for (uint32_t i = 1; i <= n; i++)
		if (step(d, slow, redone))
			return i;
	return 0;
}

static double share_below(const struct drawn *d, uint32_t first)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < d->job.costs->cuts.n; k++)
		n += d->job.costs->line.first[k] < first;
	return (double)n / d->job.costs->cuts.n;
}

/* The slower of two gets as much less; under the new view all is as predicted, and nothing is asked for. */
static void a_slow_worker_gets_as_many_nodes_as_it_is_fast(void **state)
{
	static const double slow[][2] = { { 1, 3 }, { 3, 1 }, { 6, 2 } };

	(void)state;
	for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
		struct drawn d;
		begin(&d, "mode: auto, settled: '1f1b 2 2'", 2, 1, true);
		const uint32_t at = asks_within(&d, 40, slow[i], 0);
		CHECK(at == HD_STAGE_DRIFT_STEPS + 1, "row %zu: %u", i, at);
		const double share = slow[i][1] / (slow[i][0] + slow[i][1]),
			is = share_below(&d, d.shape.first[1]);
		CHECK(fabs(is - share) <= 1.5 / d.job.costs->cuts.n &&
			strstr(d.said, i ? "worker 0" : "worker 1"),
			"row %zu: %g of the nodes, %s", i, is, d.said);
		hd_redraw_kept(&d.redraw, &d.view, true);
		/* until the change has come it asks for nothing */
		assert_int_equal(asks_within(&d, 40, slow[i], 0), 0);
		assert_int_equal(hd_pipes_of_shape(&d.pipes, d.job.rig.task, &d.shape, &d.job.rig.arena,
			NULL), HD_OK);
		take_shape(&d, 2, 1);
		const double before_ns = d.redraw.forecast.step_ns;
		assert_int_equal(asks_within(&d, 40, slow[i], 0), 0);
		assert_true(d.redraw.forecast.step_ns != before_ns && d.redraw.times.n == 40);
		for (uint32_t k = 0; k < 2; k++)
			CHECK(fabs(d.redraw.forecast.busy_ns[k] / (stage_ns(&d, k, d.view.rank[0].nvns) *
				slow[i][k]) - 1) < 1e-3, "row %zu: rank %u is predicted %g ns", i, k,
				d.redraw.forecast.busy_ns[k]);
		end(&d);
	}
}

static void what_says_nothing_of_stages_changes_nothing(void **state)
{
	static const double one_slow[] = { 1, 3, 1, 1 }, all_slow[] = { 4, 4, 4, 4 },
		near[] = { 1, 1.1, 1, 1 }, last_slow[] = { 1, 1, 1, 3 }, two_slow[] = { 1, 3, 1, 3 };
	static const struct { const char *parallel; uint32_t nworkers, ndevices, redone; bool is_auto;
		const double *slow; bool asks, by_rank, says_nothing; } rows[] = {
		{ "mode: auto, settled: '1f1b 2 2'", 2, 1, 0, true, one_slow, true, false, false },
		{ "mode: auto, settled: '1f1b 2 2'", 4, 1, 0, true, one_slow, true, false, false },
		{ "mode: auto, settled: '1f1b 2 2'", 4, 1, 0, true, last_slow, true, false, false },
		{ "mode: auto, settled: '1f1b 2 2'", 2, 1, 0, true, all_slow, false, false, false },
		{ "mode: auto, settled: '1f1b 2 2'", 2, 1, 0, true, near, false, false, false },
		{ "mode: auto, settled: '1f1b 2 2'", 2, 1, 1, true, one_slow, false, false, false },
		{ "mode: auto, settled: '1f1b 2 2'", 2, 2, 0, true, one_slow, false, false, false },
		{ "mode: auto, settled: '1f1b 2 2'", 2, 2, 0, true, two_slow, true, true, false },
		{ "mode: auto, settled: '1f1b 2 2'", 2, 1, 0, true, one_slow, false, false, true },
		{ "stages: 2", 2, 1, 0, false, one_slow, false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct drawn d;
		begin(&d, rows[i].parallel, rows[i].nworkers, rows[i].ndevices, rows[i].is_auto);
		d.by_rank = rows[i].by_rank;
		d.says_nothing = rows[i].says_nothing;
		assert_false(step(&d, rows[i].slow, rows[i].redone));
		assert_true((d.redraw.busy_ns != NULL) == rows[i].is_auto);
		const uint32_t at = asks_within(&d, 40, rows[i].slow, rows[i].redone);
		CHECK((at > 0) == rows[i].asks && d.redraw.forecast.step_ns > 0, "row %zu: %u", i, at);
		end(&d);
	}
}

static double speed_of(const struct drawn *d, uint32_t worker)
{
	for (uint32_t i = 0; i < d->redraw.nspeeds; i++)
		if (d->redraw.speed[i].worker == worker)
			return d->redraw.speed[i].speed;
	return 0;
}

/* Three times as slow, then twice that. */
static void a_worker_that_slows_down_more_is_slower_still(void **state)
{
	static const double slow[][2] = { { 1, 3 }, { 1, 6 } };
	struct drawn d;

	(void)state;
	begin(&d, "mode: auto, settled: '1f1b 2 2'", 2, 1, true);
	for (int i = 0; i < 2; i++) {
		assert_true(asks_within(&d, 40, slow[i], 0) > 0);
		hd_redraw_kept(&d.redraw, &d.view, true);
		for (uint32_t w = 0; w < 2; w++)
			CHECK(fabs(speed_of(&d, w) * slow[i][w] - 1) < 1e-3, "%d: worker %u has speed %g", i,
				w, speed_of(&d, w));
		assert_int_equal(hd_pipes_of_shape(&d.pipes, d.job.rig.task, &d.shape, &d.job.rig.arena,
			NULL), HD_OK);
		take_shape(&d, 2, 1);
	}
	end(&d);
}

/* Of workers with two devices each, whose second one is slow: cut as for four workers of which two are. */
static void devices_of_a_worker_have_speeds_of_their_own(void **state)
{
	static const double slow[] = { 1, 3, 1, 3 };
	struct hd_view_shape other;
	struct drawn d;

	(void)state;
	for (uint32_t each = 1; each <= 2; each++) {
		begin(&d, "mode: auto, settled: '1f1b 2 2'", 4 / each, each, true);
		d.by_rank = true;
		assert_int_equal(asks_within(&d, 40, slow, 0), HD_STAGE_DRIFT_STEPS + 1);
		if (each == 1) {
			other = d.shape;
			end(&d);
		}
	}
	assert_true(hd_view_same_shape(&d.shape, &other) && share_below(&d, other.first[1]) > 0.7);
	hd_redraw_kept(&d.redraw, &d.view, true);
	assert_int_equal(hd_pipes_of_shape(&d.pipes, d.job.rig.task, &d.shape, &d.job.rig.arena, NULL),
		HD_OK);
	take_shape(&d, 2, 2);
	assert_int_equal(asks_within(&d, 40, slow, 0), 0);
	for (uint32_t k = 0; k < 4; k++)
		CHECK(fabs(d.redraw.forecast.busy_ns[k] / (stage_ns(&d, k % 2,
			d.view.rank[k - k % 2].nvns) * slow[k]) - 1) < 1e-3, "rank %u: %g ns", k,
			d.redraw.forecast.busy_ns[k]);
	end(&d);
}

/* What could not be kept has not happened: the workers are as slow as before for what is predicted of them,
 * and it is asked for again. */
static void what_is_not_kept_is_asked_for_again(void **state)
{
	static const double slow[] = { 1, 3 };
	struct drawn d;

	(void)state;
	begin(&d, "mode: auto, settled: '1f1b 2 2'", 2, 1, true);
	assert_int_equal(asks_within(&d, 40, slow, 0), HD_STAGE_DRIFT_STEPS + 1);
	const struct hd_view_shape first = d.shape;
	hd_redraw_kept(&d.redraw, &d.view, false);
	assert_int_equal(d.redraw.nspeeds, 0);
	assert_int_equal(asks_within(&d, 40, slow, 0), 2 * HD_STAGE_DRIFT_STEPS);
	assert_true(hd_view_same_shape(&d.shape, &first));
	hd_redraw_kept(&d.redraw, &d.view, true);
	assert_int_equal(d.redraw.nspeeds, 2);
	end(&d);
}

/* A user's wish that is under way, one that a worker refused, and what would not fit: nothing changes. */
static void cuts_that_are_not_to_be_are_not_asked_for(void **state)
{
	static const double slow[] = { 1, 3 };
	struct drawn d;

	(void)state;
	begin(&d, "mode: auto, settled: '1f1b 2 2'", 2, 1, true);
	d.changes = true;
	assert_int_equal(asks_within(&d, 40, slow, 0), 0);
	assert_true(d.redraw.times.n == 40 && !*d.said);
	d.changes = false;
	d.unfit = true;
	uint32_t nsaid = 0;
	for (uint32_t i = 0; i < 3 * HD_STAGE_DRIFT_STEPS; i++) {
		assert_false(step(&d, slow, 0));
		nsaid += strstr(d.said, "do not fit: too large") != NULL;
	}
	CHECK(nsaid == 1 && d.nasked == 2, "said %u times, looked at %u times", nsaid, d.nasked);
	d.unfit = false;
	d.redraw.off = true;
	assert_int_equal(asks_within(&d, 200, slow, 0), 0);
	d.redraw.off = false;
	assert_true(asks_within(&d, 200, slow, 0) > 0);
	end(&d);
}

/* Beside what was predicted: the means of what both ranks of a stage said. One that said nothing is named. */
static void what_was_said_stands_beside_what_was_predicted(void **state)
{
	static const double slow[] = { 1, 3, 2, 4 };
	struct hd_forecast f;
	struct drawn d;

	(void)state;
	begin(&d, "mode: auto, settled: '1f1b 2 2'", 4, 1, true);
	assert_false(hd_redraw_measured(&d.redraw, &f));
	step(&d, slow, 0);
	assert_true(hd_redraw_measured(&d.redraw, &f) && f.nmissing == 4);
	for (int i = 0; i < 3; i++)
		step(&d, slow, 0);
	assert_true(hd_redraw_measured(&d.redraw, &f) && !f.nmissing && f.nsteps == 4);
	for (uint32_t i = 0; i < f.nrows; i++) {
		const double all = stage_ns(&d, f.row[i].stage, d.view.rank[0].nvns) *
			(f.row[i].stage ? 7 : 3);
		if (f.row[i].op == HD_INS_F)
			CHECK(fabs(f.row[i].measured_ns - all / 2) < 1 &&
				fabs(f.row[i].processor_ns - all / 4) < 1,
				"stage %u: %g ns, %g of the processor", f.row[i].stage,
				f.row[i].measured_ns, f.row[i].processor_ns);
		else
			assert_true(f.row[i].measured_ns == 0);
	}
	d.view.epoch++;                   /* what was said in the view before counts no more */
	d.says_nothing = true;
	step(&d, slow, 0);
	assert_true(hd_redraw_measured(&d.redraw, &f) && f.nmissing == 1 && f.missing[0] == 3);
	const double was = f.row[0].measured_ns;
	d.view.epoch++;                   /* in the next one workers speak before its first commit */
	for (uint32_t w = 0; w < 3; w++)
		say(&d, w);
	assert_true(was > 0 && hd_redraw_measured(&d.redraw, &f) && f.nmissing == 1 &&
		f.row[0].measured_ns == was);
	end(&d);
}

/* A lost worker's replacement takes its ranks: the step is predicted as before, and what was measured is of
 * the new view alone, steps as well as instructions. */
static void what_was_measured_is_of_one_view(void **state)
{
	static const double even[] = { 1, 1 };
	struct hd_forecast f;
	struct drawn d;

	(void)state;
	begin(&d, "mode: auto, settled: '1f1b 2 2'", 2, 1, true);
	d.by_rank = true;
	for (int i = 0; i < 5; i++)
		step(&d, even, 0);
	assert_true(hd_redraw_measured(&d.redraw, &f) && f.nsteps == 5);
	const double was_ns = f.step_ns;
	take_shape(&d, 2, 1);
	for (uint32_t k = 0; k < d.view.nranks; k++)
		d.view.rank[k].worker = d.view.rank[k].worker == 1 ? 7 : d.view.rank[k].worker;
	d.view.member[1] = 7;
	for (int i = 0; i < 2; i++)
		step(&d, even, 0);
	assert_true(hd_redraw_measured(&d.redraw, &f) && f.step_ns == was_ns);
	CHECK(f.nsteps == 2 && !f.nmissing, "%llu steps, %u workers missing", (unsigned long long)f.nsteps,
		f.nmissing);
	end(&d);
}

/* A view without stages, for want of devices, has no forecast; its steps are none of one. */
static void a_view_without_stages_is_not_predicted(void **state)
{
	static const double even[] = { 1, 1 };
	struct drawn d;

	(void)state;
	begin(&d, "mode: auto, settled: '1f1b 2 2'", 2, 1, true);
	step(&d, even, 0);
	assert_true(d.redraw.forecast.step_ns > 0 && d.redraw.times.n == 1);
	assert_false(hd_pipes_view(&d.view, &d.pipes, 1, 1, d.job.rig.job->nvns));
	d.view.epoch = 7;
	step(&d, even, 0);
	assert_true(d.redraw.forecast.step_ns <= 0 && !d.redraw.times.n);
	end(&d);
}

/* Of ranks of several devices, on one worker or several. A rank is as slow as the slowest of its workers. */
static void ranks_of_several_devices_are_predicted_as_at_the_start(void **state)
{
	static const struct { const char *parallel; uint32_t nworkers, ndevices; } rows[] = {
		{ "stages: 2, tensor: 2", 2, 2 }, { "stages: 2, tensor: 2", 8, 2 },
		{ "stages: 2, tensor: 2, groups: 2", 4, 1 }, { "stages: 2, tensor: 2, groups: 2", 8, 1 },
		{ "stages: 2, tensor: 4, groups: 2", 4, 2 } };
	static const char sharded[] = "model: {use: builtin:gpt, shards: 4, args: {layers: 4, width: 16, "
		"heads: 4, context: 8}}\ndata: {kind: synthetic, count: 64}\n";

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_pipes_forecast start;
		struct hd_pace pace = { 0 };
		struct drawn d;
		begin_of(&d, sharded, rows[i].parallel, rows[i].nworkers, rows[i].ndevices, true);
		CHECK(hd_pipes_forecast(&start, d.job.rig.task, d.job.costs, rows[i].nworkers,
			rows[i].ndevices, 8, &d.job.rig.arena, &d.job.diag) == HD_OK, "row %zu: %s", i,
			d.job.diag.text);
		const struct hd_redraw_step s = { 0, 10, &d.view, &d.pipes, &pace, false };
		assert_false(hd_redraw_step(&d.redraw, &s, &d.shape, d.said));
		const double step_ns = d.redraw.forecast.step_ns;
		CHECK(step_ns > 0 && fabs(step_ns / start.step.step_ns - 1) < 1e-9 && d.redraw.times.n == 1,
			"row %zu: %g ns, at the start %g", i, step_ns, start.step.step_ns);
		assert_true(d.redraw.busy_ns == NULL);
		/* a worker of the last rank is half as fast */
		d.redraw.speed[0].worker = d.view.rank[d.view.nranks - hd_view_groups(&d.view.shape)].worker;
		d.redraw.speed[0].nth = 0;
		d.redraw.speed[0].speed = 0.5;
		d.redraw.nspeeds = 1;
		const double *busy_ns = start.step.busy_ns;
		const uint32_t last = d.view.nranks / hd_view_groups(&d.view.shape) - 1;
		d.view.epoch++;
		assert_false(hd_redraw_step(&d.redraw, &s, &d.shape, d.said));
		for (uint32_t k = 0; k <= last; k++)
			CHECK(fabs(d.redraw.forecast.busy_ns[k] / busy_ns[k] - (k == last ? 2 : 1)) < 0.01,
				"row %zu: rank %u: %g ns of %g", i, k, d.redraw.forecast.busy_ns[k],
				busy_ns[k]);
		end(&d);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_worker_gets_as_many_nodes_as_it_is_fast),
		cmocka_unit_test(what_says_nothing_of_stages_changes_nothing),
		cmocka_unit_test(a_worker_that_slows_down_more_is_slower_still),
		cmocka_unit_test(devices_of_a_worker_have_speeds_of_their_own),
		cmocka_unit_test(what_is_not_kept_is_asked_for_again),
		cmocka_unit_test(cuts_that_are_not_to_be_are_not_asked_for),
		cmocka_unit_test(what_was_said_stands_beside_what_was_predicted),
		cmocka_unit_test(what_was_measured_is_of_one_view),
		cmocka_unit_test(a_view_without_stages_is_not_predicted),
		cmocka_unit_test(ranks_of_several_devices_are_predicted_as_at_the_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
