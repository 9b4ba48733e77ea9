#include "run/pipes_choose.h"

#include <math.h>
#include <stdio.h>

#include "run/pipes_forecast.h"
#include "run/pipes_settled.h"
#include "run/testing_costs.h"

/* Times that are made up: what must be chosen is found by trying every cut, or follows by hand. */

enum { VNS = 8, NODE_MS = 3 };

static void begin(struct hd_made *m, const char *more, uint32_t heavy)
{
	hd_made_begin(m, hd_made_gpt, more, heavy);
}

static struct hd_pipes_choices choose(struct hd_made *m, uint32_t nworkers)
{
	const struct hd_pipes_ask ask = { .task = m->rig.task, .costs = m->costs, .nworkers = nworkers,
		.ndevices = 1, .cores = 8 };
	struct hd_pipes_choices c;

	CHECK(hd_pipes_choose(&c, &ask, &m->rig.arena, &m->diag) == HD_OK, "%s", m->diag.text);
	assert_true(c.n > 0 && c.why.len > 0);
	return c;
}

/* What a run would be predicted whose job has settled on the shape. */
static double settled_ms(struct hd_made *m, const struct hd_view_shape *shape, uint32_t nworkers)
{
	struct hd_job *job = (struct hd_job *)m->rig.task->job;
	const struct hd_job was = *job;
	struct hd_pipes_forecast f = { .npipes = 0 };

	assert_int_equal(hd_pipes_settled(&job->value[HD_JOB_PAR_SETTLED], shape,
		(struct hd_pipes_settling){ .ndevices = nworkers }, &m->rig.arena, NULL), HD_OK);
	enum hd_err err = hd_pipes_forecast(&f, m->rig.task, m->costs, nworkers, 1, 8, &m->rig.arena,
		&m->diag);
	*job = was;
	return err ? INFINITY : f.step.step_ns * 1e-6;
}

/* No cut of the chosen shape is predicted faster, and an even one slower where nodes are not alike. */
static void no_other_cut_is_faster(void **state)
{
	static const uint32_t heavy[] = { 0, 5, 7 };

	(void)state;
	for (size_t i = 0; i < sizeof heavy / sizeof *heavy; i++) {
		struct hd_made m;
		begin(&m, "parallel: {mode: auto, schedule: 1f1b, stages: 2}\n", heavy[i]);
		m.costs->norm_ns = 7e6;
		m.costs->update_ns = 5e6;
		m.costs->link_ns_per_byte = 3;
		const struct hd_pipes_choices c = choose(&m, 2);
		struct hd_view_shape other = c.at[0].shape;
		double least = INFINITY;
		for (uint32_t k = 1; k < m.costs->cuts.n; k++) {
			other.first[1] = m.costs->line.first[k];
			least = fmin(least, settled_ms(&m, &other, 2));
		}
		const double chosen = settled_ms(&m, &c.at[0].shape, 2);
		CHECK(chosen < least * (1 + 1e-9) && fabs(chosen / (c.at[0].step_ns * 1e-6) - 1) < 1e-9,
			"heavy %u: %g, least %g", heavy[i], chosen, least);
		hd_made_end(&m);
	}
}

/* What the keys ask for is chosen, and nothing else. */
static void keys_bound_the_choice(void **state)
{
	static const struct { const char *parallel; uint32_t nworkers, stages, width; const char *schedule;
		} rows[] = {
		{ "mode: auto, schedule: gpipe", 3, 3, 3, "gpipe" },
		{ "mode: auto, stages: 2", 4, 2, 2, NULL },
		{ "mode: auto, stages: 4, chunks: 1", 4, 4, 4, NULL },
		{ "mode: auto, schedule: zb-v", 4, 0, 0, "zb-v" },
		{ "mode: auto, replicas: 2, schedule: 1f1b", 4, 2, 2, "1f1b" },
		{ "mode: auto, schedule: interleaved, chunks: 2", 2, 4, 2, "interleaved" },
		{ "mode: auto, schedule: 2bw}\noptim: {update: 2bw", 2, 2, 2, "2bw" },
		{ "mode: auto, schedule: 2bw, stages: 2}\noptim: {update: 2bw", 4, 2, 2, "2bw" },
		{ "mode: auto, schedule: stash}\noptim: {update: stash, clip: 0, cuts: 'auto:2'", 2, 2, 2,
			"stash" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_made m;
		char more[120];
		snprintf(more, sizeof more, "parallel: {%s}\n", rows[i].parallel);
		begin(&m, more, 5);
		const struct hd_pipes_choices c = choose(&m, rows[i].nworkers);
		for (uint32_t k = 0; k < c.n; k++) {
			const struct hd_view_shape *s = &c.at[k].shape;
			struct hd_pipes pipes;
			assert_true(s->nstages > 0);
			CHECK(hd_pipes_of_shape(&pipes, m.rig.task, s, &m.rig.arena, &m.diag) == HD_OK &&
				hd_view_same_shape(&pipes.shape, s), "%s", m.diag.text);
			CHECK((!rows[i].stages || s->nstages == rows[i].stages) &&
				(!rows[i].width || s->width == rows[i].width) &&
				(!rows[i].schedule || !strcmp(pipes.stages.schedule, rows[i].schedule)),
				"%s: %s, %u of %u", rows[i].parallel, pipes.stages.schedule, s->nstages,
				s->width);
		}
		hd_made_end(&m);
	}
}

/* What the next step reads as this one makes it lies in the last stage, wherever the times would cut. */
static void the_last_stage_of_early_updates_holds_what_they_make(void **state)
{
	enum { EARLY = 13 };              /* where the job's last stage begins: before the middle */
	struct hd_made m;

	(void)state;
	begin(&m, "parallel: {mode: auto, schedule: stash}\n"
		"optim: {update: stash, clip: 0, cuts: '0,13'}\n", 0);
	const struct hd_pipes_choices stash = choose(&m, 2);
	CHECK(stash.at[0].shape.first[1] <= EARLY, "the last stage begins at node %u",
		stash.at[0].shape.first[1]);
	hd_made_end(&m);
	begin(&m, "parallel: {mode: auto, schedule: 1f1b}\n", 0);
	assert_true(choose(&m, 2).at[0].shape.first[1] > EARLY);
	hd_made_end(&m);
}

/* Compute that all ranks divide evenly leaves a pipeline behind by its bubble; where bytes are dear it sends
 * half as many: two workers with the whole model give half of their sums, get as much, and so again with what
 * was added. */
static void the_exchange_decides_where_bytes_are_dear(void **state)
{
	(void)state;
	for (int dear = 0; dear < 2; dear++) {
		struct hd_made m;
		begin(&m, "parallel: {mode: auto}\n", 0);
		const double bytes = (double)m.rig.task->layout.elems * sizeof(float);
		m.costs->link_ns_per_byte = dear ? VNS * NODE_MS * m.nnodes * 1e6 / bytes : 0;
		const struct hd_pipes_choices c = choose(&m, 2);
		double whole = 0;
		for (uint32_t k = 0; k < c.n; k++)
			whole = c.at[k].shape.nstages ? whole : c.at[k].step_ns * 1e-6;
		CHECK(dear ? c.at[0].shape.nstages > 0 : c.at[0].shape.nstages == 0, "dear %d: %s", dear,
			c.at[0].about);
		CHECK(fabs(whole / (VNS * NODE_MS * m.nnodes * (0.5 + 2 * dear)) - 1) < 0.05,
			"dear %d: %g ms of %d", dear, whole, VNS * NODE_MS * (int)m.nnodes);
		hd_made_end(&m);
	}
}

/* Unless the keys say otherwise. A run that settles on one is predicted as it was chosen. */
static void stages_with_copies_are_candidates(void **state)
{
	static const struct { const char *more; bool any; } rows[] = {
		{ "parallel: {mode: auto}\n", true }, { "parallel: {mode: auto, copies: '1,3'}\n", true },
		{ "parallel: {mode: auto, stages: 2}\n", false }, { "parallel: {mode: auto, schedule: 1f1b}\n", false },
		{ "parallel: {mode: auto}\ncomm: {sync: stages}\nelastic: {redundancy: lazy}\n", false } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_made m;
		uint32_t n = 0;
		begin(&m, rows[i].more, 5);
		const struct hd_pipes_choices c = choose(&m, 4);
		for (uint32_t k = 0; k < c.n; k++) {
			const struct hd_view_shape *s = &c.at[k].shape;
			if (!hd_view_has_copies(s))
				continue;
			const double ms = settled_ms(&m, s, 4);
			CHECK(fabs(ms / (c.at[k].step_ns * 1e-6) - 1) < 1e-9 && s->width == 4 &&
				strstr(c.at[k].about, "on ranks"), "%s: %g, %g", c.at[k].about, ms,
				c.at[k].step_ns * 1e-6);
			n++;
		}
		CHECK((n > 0) == rows[i].any && (i != 1 || n == c.n), "row %zu: %u of %u", i, n, c.n);
		hd_made_end(&m);
	}
}

/* Of an odd number: the best of all cuts of both numbers of copies that make up five is among what is tried,
 * and what is chosen is no slower. */
static void five_workers_get_the_best_copies(void **state)
{
	static const uint32_t numbers[][2] = { { 4, 1 }, { 1, 4 } };

	(void)state;
	for (uint32_t dear = 0; dear < 2; dear++) {
		struct hd_made m;
		const struct hd_view_shape *with = NULL;
		double least = INFINITY, best = 0;
		begin(&m, "parallel: {mode: auto}\n", 5);
		m.costs->link_ns_per_byte = dear ? 200 : 0;
		const struct hd_pipes_choices c = choose(&m, 5);
		for (uint32_t k = 0; k < c.n && !with; k++)
			if (hd_view_has_copies(&c.at[k].shape)) {
				with = &c.at[k].shape;
				best = c.at[k].step_ns * 1e-6;
			}
		assert_non_null(with);
		for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
			for (uint32_t k = 1; k < m.costs->cuts.n; k++) {
				struct hd_view_shape s = *with;
				s.nstages = 2;
				s.width = 5;
				s.place[1] = (uint8_t)numbers[i][0];
				s.first[1] = m.costs->line.first[k];
				least = fmin(least, settled_ms(&m, &s, 5));
			}
		CHECK(with->width == 5 && fabs(best / least - 1) < 1e-9 && c.at[0].step_ns * 1e-6 <= best,
			"bytes %u: %g, least %g", dear, best, least);
		hd_made_end(&m);
	}
}

static void the_whole_model_is_a_candidate_unless_state_is_by_stages(void **state)
{
	static const struct { const char *more; bool whole; uint32_t more_than_vns; } rows[] = {
		{ "parallel: {mode: auto}\n", true, 0 },
		{ "parallel: {mode: auto}\ncomm: {sync: stages}\n", false, 0 },
		{ "parallel: {mode: auto, schedule: 1f1b}\n", false, 0 },
		/* hd_driver_takes() takes a worker a virtual node at most */
		{ "parallel: {mode: auto}\n", false, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_made m;
		uint32_t whole = 0;
		begin(&m, rows[i].more, 5);
		const struct hd_pipes_choices c = choose(&m, rows[i].more_than_vns ?
			(uint32_t)m.rig.task->job->nvns + rows[i].more_than_vns : 2);
		for (uint32_t k = 0; k < c.n; k++)
			whole += !c.at[k].shape.nstages;
		CHECK(whole == rows[i].whole, "row %zu: %u", i, whole);
		hd_made_end(&m);
	}
}

/* Asked for, or since stages fit no other way, all stages compute again: what a run with the choice as its
 * job's value is predicted to take says that they do. */
static void stages_that_must_compute_again_are_chosen(void **state)
{
	static const struct { const char *more; uint64_t memory_bytes; int asked; } rows[] = {
		{ "parallel: {mode: auto, recompute: stage}\n", 0, 1 },
		{ "parallel: {mode: auto, schedule: 1f1b}\n", 0, 0 },
		{ "parallel: {mode: auto, recompute: none}\n", 0, 0 },
		{ "parallel: {mode: auto, schedule: gpipe}\n", 390000, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_pipes_choices c;
		struct hd_made m;
		begin(&m, rows[i].more, 0);
		const struct hd_pipes_ask ask = { .task = m.rig.task, .costs = m.costs, .nworkers = 2,
			.ndevices = 1, .cores = 8, .memory_bytes = rows[i].memory_bytes };
		CHECK(hd_pipes_choose(&c, &ask, &m.rig.arena, &m.diag) == HD_OK, "row %zu: %s", i,
			m.diag.text);
		for (uint32_t k = 0; k < c.n; k++)
			CHECK(c.at[k].recompute == (rows[i].asked && c.at[k].shape.nstages) &&
				(strstr(c.at[k].about, "recomputation") != NULL) == c.at[k].recompute,
				"row %zu: %s", i, c.at[k].about);
		struct hd_job *job = (struct hd_job *)m.rig.task->job;
		struct hd_pipes_forecast f;
		struct hd_pipes pipes;
		assert_int_equal(hd_pipes_settled(&job->value[HD_JOB_PAR_SETTLED], &c.at[0].shape,
			(struct hd_pipes_settling){ c.at[0].recompute, 2 }, &m.rig.arena, NULL), HD_OK);
		assert_int_equal(hd_pipes_make(&pipes, m.rig.task, &m.rig.arena, NULL), HD_OK);
		assert_true(pipes.stages.recompute == rows[i].asked);
		assert_int_equal(hd_pipes_forecast(&f, m.rig.task, m.costs, 2, 1, 8, &m.rig.arena, NULL),
			HD_OK);
		CHECK(!f.npipes || fabs(f.step.step_ns / c.at[0].step_ns - 1) < 1e-9,
			"row %zu: %g, chosen %g", i, f.step.step_ns, c.at[0].step_ns);
		hd_made_end(&m);
	}
}

static void what_the_keys_forbid_is_refused(void **state)
{
	struct hd_pipes_choices c;
	struct hd_made m;

	(void)state;
	begin(&m, "parallel: {mode: auto, stages: 5}\n", 0);
	const struct hd_pipes_ask ask = { .task = m.rig.task, .costs = m.costs, .nworkers = 2,
		.ndevices = 1 };
	assert_int_equal(hd_pipes_choose(&c, &ask, &m.rig.arena, &m.diag), HD_E_INVAL);
	CHECK(strstr(m.diag.text, "no plan of stages"), "%s", m.diag.text);
	hd_made_end(&m);
}

static uint32_t nodes_below(const struct hd_made *m, uint32_t first)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < m->costs->cuts.n; k++)
		n += m->costs->line.first[k] < first;
	return n;
}

/* Of alike nodes a rank of half the speed gets half as many as the other, computed again or not. */
static void a_slower_rank_gets_fewer_nodes(void **state)
{
	static const double speed[][2] = { { 1, 1 }, { 0.5, 1 }, { 1, 0.5 }, { 0.5, 1 }, { 1, 0.5 } };
	static const char *const parallel[] = { "settled: '1f1b 2 2 0,5'", "settled: '1f1b 2 2 0,5'",
		"settled: '1f1b 2 2 0,5'", "settled: '1f1b 2 2 0,5 recompute'",
		"recompute: stage, settled: '1f1b 2 2 0,5 recompute'" };

	(void)state;
	for (size_t i = 0; i < sizeof speed / sizeof *speed; i++) {
		char more[120];
		const struct hd_forecast_setting setting = { .speed = speed[i] };
		struct hd_view_shape shape;
		struct hd_pipes pipes;
		struct hd_made m;
		snprintf(more, sizeof more, "parallel: {mode: auto, %s}\n", parallel[i]);
		begin(&m, more, 0);
		assert_int_equal(hd_pipes_make(&pipes, m.rig.task, &m.rig.arena, NULL), HD_OK);
		CHECK(hd_pipes_cut_again(&shape, &pipes, 1, m.rig.task, m.costs, &setting, 0,
			&m.rig.arena, &m.diag) == HD_OK, "%s", m.diag.text);
		const double share = speed[i][0] / (speed[i][0] + speed[i][1]),
			is = (double)nodes_below(&m, shape.first[1]) / m.costs->cuts.n;
		CHECK(shape.nstages == 2 && shape.width == 2 && shape.schedule == pipes.shape.schedule &&
			fabs(is - share) <= 1.5 / m.costs->cuts.n, "row %zu: %g of the nodes", i, is);
		hd_made_end(&m);
	}
}

/* The fast rank of two gets less than its speed says where it has not the memory for that. */
static void cuts_for_other_speeds_heed_the_memory(void **state)
{
	static const double speed[] = { 1, 0.1 };
	static const struct hd_forecast_setting setting = { .speed = speed };
	struct hd_view_shape open;
	struct hd_pipes pipes;
	struct hd_made m;
	uint32_t tighter = 0;

	(void)state;
	begin(&m, "parallel: {mode: auto, settled: 'gpipe 2 2 0,5'}\n", 0);
	assert_int_equal(hd_pipes_make(&pipes, m.rig.task, &m.rig.arena, NULL), HD_OK);
	assert_int_equal(hd_pipes_cut_again(&open, &pipes, 1, m.rig.task, m.costs, &setting, 0, &m.rig.arena,
		NULL), HD_OK);
	for (uint64_t bytes = 400000; bytes < 1200000; bytes += 20000) {
		struct hd_view_shape shape;
		assert_int_equal(hd_pipes_cut_again(&shape, &pipes, 1, m.rig.task, m.costs, &setting, bytes,
			&m.rig.arena, NULL), HD_OK);
		assert_true(shape.first[1] <= open.first[1]);
		tighter += shape.first[1] < open.first[1];
	}
	assert_true(tighter > 0);
	hd_made_end(&m);
}

/* The model has a waist far from its middle: over a slow link stages are cut there, for equal speeds as for
 * others; where tensors cost nothing in its middle. */
static void stages_between_machines_are_cut_where_little_crosses(void **state)
{
	static const char model[] =
		"model: {use: builtin:mlp, args: {input: [1, 8, 8], "
		"hidden: [512, 4, 512, 512, 512, 512, 512, 512], classes: 4}}\n"
		"data: {kind: synthetic, count: 64}\n";
	static const double speed[] = { 1, 1 };

	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		struct hd_view_shape shape, other;
		struct hd_pipes pipes;
		struct hd_made m;
		double least = INFINITY;
		hd_made_begin(&m, model, "parallel: {mode: auto, settled: '1f1b 2 2 0,4'}\n"
			"comm: {sync: stages}\n", 0);
		m.costs->port_bytes_per_s = slow ? 1e5 : 1e15;
		const struct hd_forecast_setting setting = { .speed = speed,
			.holders = hd_pipes_holders(m.rig.task->job, 1) };
		assert_int_equal(hd_pipes_make(&pipes, m.rig.task, &m.rig.arena, NULL), HD_OK);
		CHECK(hd_pipes_cut_again(&shape, &pipes, 1, m.rig.task, m.costs, &setting, 0, &m.rig.arena,
			&m.diag) == HD_OK, "%s", m.diag.text);
		other = shape;
		for (uint32_t k = 1; k < m.costs->cuts.n; k++) {
			other.first[1] = m.costs->line.first[k];
			least = fmin(least, settled_ms(&m, &other, 2));
		}
		const double is = settled_ms(&m, &shape, 2);
		CHECK(is < least * 1.001, "slow %d, cut at node %u: %g ms, least %g", slow, shape.first[1],
			is, least);
		hd_made_end(&m);
	}
}

/* What lies in the arena counts the plans that are tried: over links not more for each stage, since a run
 * waits. */
static void a_run_that_goes_on_tries_few_cuts(void **state)
{
	static const double speed[] = { 1, 0.6, 1, 1, 1, 1, 1, 1 };
	double of_two = 0;

	(void)state;
	for (uint32_t p = 2; p <= 8; p *= 2) {
		size_t bytes[2];
		for (int links = 0; links < 2; links++) {
			char more[100];
			struct hd_view_shape shape;
			struct hd_pipes pipes;
			struct hd_made m;
			snprintf(more, sizeof more, "parallel: {mode: auto, settled: '1f1b %u %u'}\n"
				"comm: {sync: stages}\n", p, p);
			begin(&m, more, 0);
			m.costs->port_bytes_per_s = links ? 1e8 : 0;
			const struct hd_forecast_setting setting = { .speed = speed,
				.holders = hd_pipes_holders(m.rig.task->job, 1) };
			assert_int_equal(hd_pipes_make(&pipes, m.rig.task, &m.rig.arena, NULL), HD_OK);
			const size_t was = m.rig.arena.used_bytes;
			CHECK(hd_pipes_cut_again(&shape, &pipes, 1, m.rig.task, m.costs, &setting, 0,
				&m.rig.arena, &m.diag) == HD_OK, "%s", m.diag.text);
			bytes[links] = m.rig.arena.used_bytes - was;
			hd_made_end(&m);
		}
		const double times = (double)bytes[1] / (double)bytes[0];
		of_two = p == 2 ? times : of_two;
		CHECK(times > 1 && times <= of_two, "%u stages: %g times as much, of two stages %g", p,
			times, of_two);
	}
}

/* Of what the planner hands out only the first plans are whole: the rest says how they compare. */
static void plans_without_stages_are_no_candidates(void **state)
{
	static const char model[] =
		"model: {use: builtin:mlp, args: {input: [1, 8, 8], "
		"hidden: [512, 256, 128, 64, 32, 16, 512, 512], classes: 4}}\n"
		"data: {kind: synthetic, count: 64}\n";

	(void)state;
	for (double rate = 1e4; rate < 1e10; rate *= 10) {
		struct hd_made m;
		hd_made_begin(&m, model, "parallel: {mode: auto}\ncomm: {sync: stages}\n", 3);
		m.costs->port_bytes_per_s = rate;
		const struct hd_pipes_choices c = choose(&m, 4);
		for (uint32_t k = 0; k < c.n; k++)
			assert_true(c.at[k].shape.nstages >= 2);
		hd_made_end(&m);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_other_cut_is_faster),
		cmocka_unit_test(keys_bound_the_choice),
		cmocka_unit_test(the_last_stage_of_early_updates_holds_what_they_make),
		cmocka_unit_test(the_exchange_decides_where_bytes_are_dear),
		cmocka_unit_test(stages_with_copies_are_candidates),
		cmocka_unit_test(five_workers_get_the_best_copies),
		cmocka_unit_test(the_whole_model_is_a_candidate_unless_state_is_by_stages),
		cmocka_unit_test(stages_that_must_compute_again_are_chosen),
		cmocka_unit_test(what_the_keys_forbid_is_refused),
		cmocka_unit_test(a_slower_rank_gets_fewer_nodes),
		cmocka_unit_test(cuts_for_other_speeds_heed_the_memory),
		cmocka_unit_test(stages_between_machines_are_cut_where_little_crosses),
		cmocka_unit_test(a_run_that_goes_on_tries_few_cuts),
		cmocka_unit_test(plans_without_stages_are_no_candidates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
