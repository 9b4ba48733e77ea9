#include "run/pipes_forecast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/pipes.h"
#include "run/testing_costs.h"

/* Nodes whose times are made up: each takes 1 ms forward, 1 for its input and 1 for its weights, and what
 * lies between them nothing. */

enum { VNS = 8, NODE_MS = 3 };

static void begin(struct hd_made *m, const char *more) { hd_made_begin(m, hd_made_gpt, more, 0); }

static struct hd_pipes_forecast of(struct hd_made *m, uint32_t nworkers, uint32_t ndevices, uint32_t cores)
{
	struct hd_pipes_forecast f = { .npipes = 99 };
	struct hd_diag diag = { "" };

	CHECK(hd_pipes_forecast(&f, m->rig.task, m->costs, nworkers, ndevices, cores, &m->rig.arena,
		&diag) == HD_OK, "%s", diag.text);
	return f;
}

/* One core is never idle while anything is left to do: it takes what the nodes take together. */
static void ranks_of_one_core_take_the_sum_of_all_nodes(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 4; n++) {
		struct hd_made m;
		char more[64];
		snprintf(more, sizeof more, "parallel: {mode: pipeline, width: %u}\n", n);
		begin(&m, more);
		const struct hd_pipes_forecast f = of(&m, n, 1, 1);
		CHECK(f.npipes == 1 && f.step.cores == 1 &&
			fabs(f.step.step_ns * 1e-6 / (VNS * NODE_MS * m.nnodes) - 1) < 1e-6,
			"%u workers: %g ms", n, f.step.step_ns * 1e-6);
		hd_made_end(&m);
	}
}

/* A core each: the slowest stage has all virtual nodes one after the other, the others some before and
 * behind. A second pipeline takes half of them. */
static void more_workers_make_the_pipelines_of_the_view(void **state)
{
	struct hd_made m;

	(void)state;
	begin(&m, "parallel: {stages: 2, replicas: 2}\n");
	const double all_ms = VNS * NODE_MS * m.nnodes;
	const struct hd_pipes_forecast one = of(&m, 2, 1, 8), wide = of(&m, 1, 2, 8), spare = of(&m, 3, 1, 8),
		two = of(&m, 4, 1, 8);
	CHECK(one.npipes == 1 && one.step.step_ns * 1e-6 > all_ms / 2 && one.step.step_ns * 1e-6 < all_ms,
		"%g of %g ms", one.step.step_ns * 1e-6, all_ms);
	assert_true(one.step.cores == 0 && wide.npipes == 1 && wide.step.step_ns == one.step.step_ns);
	assert_true(spare.npipes == 1 && spare.step.step_ns == one.step.step_ns);
	CHECK(two.npipes == 2 && two.step.step_ns * 1e-6 >= all_ms / 4 && two.step.step_ns < one.step.step_ns,
		"%g of %g ms", two.step.step_ns * 1e-6, all_ms);
	assert_true(of(&m, 4, 1, 4).step.cores == 0 && of(&m, 4, 1, 3).step.cores == 3);
	hd_made_end(&m);
}

/* Steps that overlap take what the rank computes that has most nodes; drained ones take longer. */
static void steps_that_overlap_take_what_the_busiest_rank_computes(void **state)
{
	static const uint32_t nodes[] = { 1, 4, 7 };

	(void)state;
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
		struct hd_made m;
		struct hd_forecast f[2];
		begin(&m, NULL);
		const uint32_t first[] = { 0, m.costs->line.first[nodes[i]] };
		for (int overlap = 0; overlap < 2; overlap++) {
			const struct hd_run_stages s = { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 1,
				.delayed = true, .overlap = overlap, .first = first };
			const struct hd_plan_job job = hd_plan_job_whole(VNS, m.rig.task->layout.nchunks);
			struct hd_plan plan;
			assert_int_equal(hd_run_stages_plan(&plan, &s, &job, m.rig.task, m.costs,
				&m.rig.arena, NULL), HD_OK);
			assert_int_equal(plan.overlap, overlap);
			assert_int_equal(hd_forecast_make(&f[overlap], &plan, m.costs,
				&(struct hd_forecast_setting){ .cores = 0 }, &m.rig.arena, NULL), HD_OK);
		}
		const uint32_t most = nodes[i] > m.nnodes - nodes[i] ? nodes[i] : m.nnodes - nodes[i];
		CHECK(fabs(f[1].step_ns * 1e-6 / (VNS * NODE_MS * most) - 1) < 1e-6 &&
			f[0].step_ns > f[1].step_ns, "%u nodes: %g ms", nodes[i], f[1].step_ns * 1e-6);
		hd_made_end(&m);
	}
}

/* Of two workers with a stage each, of so many nodes; `whole`: all parameters are with both. */
static struct hd_forecast over_two(struct hd_made *m, uint32_t nodes, bool overlap, bool whole)
{
	const uint32_t first[] = { 0, m->costs->line.first[nodes] };
	const struct hd_run_stages s = { .schedule = "1f1b", .p = 2, .v = 1, .d = 1, .t = 1, .delayed = true,
		.overlap = overlap, .first = first };
	const struct hd_plan_job job = hd_plan_job_whole(VNS, m->rig.task->layout.nchunks);
	struct hd_forecast f;
	struct hd_plan plan;

	assert_int_equal(hd_run_stages_plan(&plan, &s, &job, m->rig.task, m->costs, &m->rig.arena, NULL),
		HD_OK);
	assert_int_equal(hd_forecast_make(&f, &plan, m->costs, &(struct hd_forecast_setting){
		.holders = { .devices = 1, .whole = whole } }, &m->rig.arena, NULL), HD_OK);
	return f;
}

/* Two virtual nodes are on their way between two stages: in two turns each stage does two, and a tensor goes
 * there and one back. In ms: */
static double turn_ms(uint32_t a, uint32_t b, double latency_ms)
{
	return fmax(NODE_MS * fmax(a, b), (NODE_MS * (a + b) + 2 * latency_ms) / 2);
}

static void steps_that_overlap_wait_for_tensors_on_links(void **state)
{
	static const double latency_ms[] = { 0.01, 1, 4, 30 };

	(void)state;
	for (size_t i = 0; i < sizeof latency_ms / sizeof *latency_ms; i++)
		for (uint32_t nodes = 2; nodes < 8; nodes += 2) {
			struct hd_made m;
			begin(&m, NULL);
			m.costs->port_bytes_per_s = 1e15;
			m.costs->port_latency_ns = latency_ms[i] * 1e6;
			const struct hd_forecast f = over_two(&m, nodes, true, false);
			const double want = VNS * turn_ms(nodes, m.nnodes - nodes, latency_ms[i]);
			CHECK(f.end_ns == 0 && fabs(f.step_ns * 1e-6 / want - 1) < 1e-4,
				"%u of %u nodes, %g ms: %g ms, %g of it the end, %g wanted", nodes,
				m.nnodes, latency_ms[i], f.step_ns * 1e-6, f.end_ns * 1e-6, want);
			hd_made_end(&m);
		}
}

/* Six of eight virtual nodes of the next step need nothing of this one. */
static void the_end_of_a_step_hides_behind_the_next(void **state)
{
	static const double ns_per_byte[] = { 1, 1e3, 1e5 };
	uint32_t hidden = 0, left = 0;

	(void)state;
	for (size_t i = 0; i < sizeof ns_per_byte / sizeof *ns_per_byte; i++) {
		struct hd_made m;
		begin(&m, NULL);
		m.costs->link_ns_per_byte = ns_per_byte[i];
		const struct hd_forecast drained = over_two(&m, 4, false, true),
			f = over_two(&m, 4, true, true);
		const double most_ns = VNS * NODE_MS * 1e6 * fmax(4, m.nnodes - 4),
			end_ns = fmax(0, drained.end_ns - most_ns * 6 / 8);
		CHECK(drained.end_ns > 0 && fabs(f.step_ns / (most_ns + end_ns) - 1) < 1e-6 &&
			fabs(f.end_ns - end_ns) <= 1e-6 * end_ns, "%g ns a byte: %g ms, %g of it the end",
			ns_per_byte[i], f.step_ns * 1e-6, f.end_ns * 1e-6);
		hidden += end_ns == 0;
		left += end_ns > 0;
		hd_made_end(&m);
	}
	CHECK(hidden && left, "%u hidden, %u not", hidden, left);
}

/* On shared cores what they take is not known: none is predicted, drained they are. */
static void steps_that_overlap_on_shared_cores_are_not_predicted(void **state)
{
	static const struct { const char *schedule; uint32_t cores; bool known; } rows[] = {
		{ "2bw", 2, true }, { "2bw", 1, false }, { "1f1b", 1, true } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_made m;
		char more[100];
		snprintf(more, sizeof more,
			"parallel: {mode: pipeline, width: 2, schedule: %s}\noptim: {update: 2bw}\n",
			rows[i].schedule);
		begin(&m, more);
		const struct hd_pipes_forecast f = of(&m, 2, 1, rows[i].cores);
		CHECK(f.npipes == 1 && (f.step.step_ns > 0) == rows[i].known, "row %zu: %g ns", i,
			f.step.step_ns);
		hd_made_end(&m);
	}
}

/* Of two stages of 8 virtual nodes: `op` of each, in ms. */
static void rows_of(double ms[2], struct hd_made *m, const char *schedule, uint8_t op)
{
	const uint32_t first[] = { 0, m->costs->line.first[m->nnodes / 2] };
	const struct hd_run_stages s = { .schedule = schedule, .p = 2, .v = 1, .d = 1, .t = 1,
		.first = first };
	const struct hd_plan_job job = hd_plan_job_whole(VNS, m->rig.task->layout.nchunks);
	struct hd_forecast f;
	struct hd_plan plan;

	assert_int_equal(hd_run_stages_plan(&plan, &s, &job, m->rig.task, m->costs, &m->rig.arena, NULL),
		HD_OK);
	assert_int_equal(hd_forecast_make(&f, &plan, m->costs, &(struct hd_forecast_setting){ .cores = 0 },
		&m->rig.arena, NULL), HD_OK);
	ms[0] = ms[1] = 0;
	for (uint32_t i = 0; i < f.nrows; i++)
		if (f.row[i].op == op)
			ms[f.row[i].stage] = f.row[i].predicted_ns * 1e-6;
}

/* Backward of gpipe comes back after 8 virtual nodes of a stage, the last stage of 1f1b at once. */
static void who_comes_back_late_to_activations_takes_longer(void **state)
{
	double warm[2], b[2], f[2], last[2];
	struct hd_made m;

	(void)state;
	begin(&m, NULL);
	rows_of(warm, &m, "gpipe", HD_INS_B);
	m.costs->reuse = (struct hd_reuse){ { { 1, 1, 1 }, { 1, 3, 3 }, { 1, 2, 2 }, { 9, 9, 9 },
		{ 9, 9, 9 } } };
	rows_of(b, &m, "gpipe", HD_INS_B);
	rows_of(f, &m, "gpipe", HD_INS_F);
	rows_of(last, &m, "1f1b", HD_INS_B);
	for (int s = 0; s < 2; s++)
		CHECK(fabs(b[s] / warm[s] - 2.5) < 1e-9 && fabs(f[s] / warm[s] - 0.5) < 1e-9,
			"stage %d: B %g ms, %g where it is measured; F %g", s, b[s], warm[s], f[s]);
	CHECK(fabs(last[1] / warm[1] - 1) < 1e-9, "%g ms, %g where it is measured", last[1], warm[1]);
	hd_made_end(&m);
}

/* Once an instruction: B sleeps once, I and W each. */
static void who_sleeps_wakes_late_once_an_instruction(void **state)
{
	static const struct { const char *schedule; uint8_t op; } rows[] = { { "1f1b", HD_INS_F },
		{ "1f1b", HD_INS_B }, { "zb-h1", HD_INS_F }, { "zb-h1", HD_INS_I }, { "zb-h1", HD_INS_W } };
	struct hd_made m;

	(void)state;
	begin(&m, NULL);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		double on_time[2], late[2];
		m.costs->late_ns = 0;
		rows_of(on_time, &m, rows[i].schedule, rows[i].op);
		m.costs->late_ns = 250000;
		rows_of(late, &m, rows[i].schedule, rows[i].op);
		CHECK(fabs(late[0] - on_time[0] - 0.25) < 1e-9 && fabs(late[1] - on_time[1] - 0.25) < 1e-9,
			"row %zu: %g and %g ms, on time %g and %g", i, late[0], late[1], on_time[0],
			on_time[1]);
	}
	hd_made_end(&m);
}

/* Of two workers a letter wakes a thread of each besides the rank; of two devices of one the rank alone. */
static void a_letter_between_workers_wakes_three_threads(void **state)
{
	double more[2];
	struct hd_made m;

	(void)state;
	begin(&m, "parallel: {mode: pipeline, width: 2}\n");
	for (uint32_t each = 1; each <= 2; each++) {
		double step[2];
		for (int i = 0; i < 2; i++) {
			m.costs->hop_ns = i ? 1000 : 0;
			const struct hd_pipes_forecast f = of(&m, 2 / each, each, 8);
			step[i] = f.step.step_ns - f.step.end_ns;
		}
		more[each - 1] = step[1] - step[0];
	}
	CHECK(more[1] >= 1000 && fabs(more[0] - HD_LETTER_HOPS * more[1]) < 1,
		"%g ns of workers, %g of devices", more[0], more[1]);
	hd_made_end(&m);
}

/* A line of the table, and a member that is no null. */
static bool says(const struct hd_forecast *f, struct hd_arena *arena, double end_ms)
{
	struct hd_text table, json;
	struct hd_json_writer w;
	char line[80];

	hd_text_init(&table, arena);
	hd_text_init(&json, arena);
	hd_forecast_print(f, &table);
	hd_json_writer_init(&w, &json);
	hd_json_open_object(&w, NULL);
	hd_forecast_put(f, &w);
	hd_json_close(&w);
	snprintf(line, sizeof line, "\nend      all       1 %12.4f", end_ms);
	const char *member = strstr(json.at, "\"end_ms\":");
	assert_non_null(member);
	const double put = strtod(member + strlen("\"end_ms\":"), NULL);      /* null: 0 */
	CHECK(fabs(put - end_ms) < 1e-9, "%s", member);
	return strstr(table.at, line);
}

/* What step_end.h says is in the step, of workers with what they lack of each other, and not in the rows but
 * for the update, which each makes of what it holds. */
static void the_end_of_a_step_is_in_it(void **state)
{
	static const char *const keys[] = { "parallel: {mode: pipeline, width: 2}\n",
		"parallel: {mode: pipeline, width: 2}\ncomm: {sync: stages}\n" };

	(void)state;
	for (int staged = 0; staged < 2; staged++) {
		struct hd_made m;
		double step[2], update[2];
		begin(&m, keys[staged]);
		m.costs->update_ns = 6e6;
		for (int i = 0; i < 2; i++) {
			m.costs->norm_ns = i ? 8e6 : 0;
			const struct hd_pipes_forecast f = of(&m, 2, 1, 8);
			step[i] = f.step.step_ns - f.step.end_ns;
			for (uint32_t r = 0; r < f.step.nrows; r++)
				if (f.step.row[r].op == HD_INS_STEP)
					update[i] = f.step.row[r].predicted_ns;
			const double end = f.step.end_ns - HD_STEP_HOPS * m.costs->hop_ns;
			CHECK(staged ? end >= 4e6 * i && end <= 7e6 * i : fabs(end - 8e6 * i) < 1,
				"staged %d: %g ns", staged, end);
			assert_true(says(&f.step, &m.rig.arena, f.step.end_ns * 1e-6) == (f.step.end_ns > 0));
		}
		CHECK(fabs(step[0] - step[1]) < 1 && update[0] == update[1] &&
			fabs(update[0] - (staged ? 3e6 : 6e6)) < 1, "staged %d: %g ns, update %g", staged,
			step[0] - step[1], update[0]);
		hd_made_end(&m);
	}
}

/* By stages the step waits for the worker with more parameters; with a shadow each of two has all of them. */
static void workers_update_what_they_hold(void **state)
{
	static const char *const mode[] = { "none", "lazy", "eager" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct hd_made m;
		struct hd_pipes pipes;
		char more[160];
		uint32_t cut[3];
		double took[2];
		snprintf(more, sizeof more, "parallel: {mode: pipeline, width: 2}\ncomm: {sync: stages}\n"
			"elastic: {redundancy: %s}\n", mode[i]);
		begin(&m, more);
		assert_int_equal(hd_pipes_make(&pipes, m.rig.task, &m.rig.arena, NULL), HD_OK);
		assert_int_equal(hd_run_costs_cuts(m.costs, pipes.stages.first, 2, cut), HD_OK);
		const double first = (double)hd_cut_sums_range(&m.costs->sums, 0, cut[1]).param,
			second = (double)hd_cut_sums_range(&m.costs->sums, cut[1], m.costs->cuts.n).param,
			most = first > second ? first : second;
		for (int k = 0; k < 2; k++) {
			m.costs->update_ns = k ? 6e9 : 0;
			const struct hd_pipes_forecast f = of(&m, 2, 1, 8);
			took[k] = f.step.step_ns - f.step.end_ns;
		}
		const double part = i ? 1 : most / (first + second);
		CHECK(part > 0.53 && fabs((took[1] - took[0]) / 6e9 - part) < 1e-3, "%s: %g, not %g", mode[i],
			(took[1] - took[0]) / 6e9, part);
		hd_made_end(&m);
	}
}

/* What a worker's list says it took is written here, so that means are by hand. */
static void what_was_before_is_not_measured(void **state)
{
	struct hd_forecast_row rows[] = { { .op = HD_INS_F }, { .op = HD_INS_STEP }, { .op = HD_INS_B } };
	struct hd_forecast f = { .row = rows, .nrows = 3 };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, 1);
	struct hd_spent *spent = hd_worker_work(rig.worker)->rank[0].spent;
	spent[hd_spent_index(0, HD_INS_F)] = (struct hd_spent){ 4, 400, 200 };
	spent[hd_spent_index(0, HD_INS_SA)] = (struct hd_spent){ 4, 40, 20 };
	spent[hd_spent_index(0, HD_INS_STEP)] = (struct hd_spent){ 1, 70, 7 };
	hd_forecast_measure(&f, &rig.plan, rig.worker);
	CHECK(rows[0].measured_ns == 110 && rows[0].processor_ns == 55 && rows[1].measured_ns == 70 &&
		rows[2].measured_ns == 0, "%g %g %g", rows[0].measured_ns, rows[0].processor_ns,
		rows[1].measured_ns);
	hd_forecast_begin(&f, &rig.plan, rig.worker);
	spent[hd_spent_index(0, HD_INS_F)] = (struct hd_spent){ 6, 1000, 520 };
	spent[hd_spent_index(0, HD_INS_SA)] = (struct hd_spent){ 6, 50, 40 };
	for (int i = 0; i < 2; i++) {
		hd_forecast_measure(&f, &rig.plan, rig.worker);
		CHECK(rows[0].measured_ns == 305 && rows[0].processor_ns == 170 && rows[1].measured_ns == 0 &&
			rows[2].measured_ns == 0, "%g %g %g", rows[0].measured_ns, rows[0].processor_ns,
			rows[1].measured_ns);
	}
	hd_rig_close(&rig);
}

/* Of workers each says what its ranks took; SA is in F, all STEPs are one row. */
static void what_workers_say_is_in_the_rows(void **state)
{
	static const struct hd_spent_kind spent[] = { { 0, 0, HD_INS_F, 4, 400, 200 },
		{ 0, 0, HD_INS_SA, 4, 40, 20 }, { 0, 0, HD_INS_STEP, 1, 70, 7 }, { 1, 1, HD_INS_F, 2, 900, 90 },
		{ 1, 1, HD_INS_STEP, 1, 30, 3 }, { 2, 0, HD_INS_F, 4, 600, 100 } };
	static const uint32_t missing[] = { 3, 5 };
	struct hd_forecast_row rows[] = { { .op = HD_INS_F }, { .op = HD_INS_F, .stage = 1 },
		{ .op = HD_INS_STEP }, { .op = HD_INS_W } };
	struct hd_forecast f = { .row = rows, .nrows = 4 };
	struct hd_json_writer w;
	struct hd_arena arena;
	struct hd_text text;

	(void)state;
	for (int i = 0; i < 2; i++)       /* what was there before is gone */
		hd_forecast_measured(&f, spent, 6);
	CHECK(rows[0].measured_ns == 130 && rows[0].processor_ns == 40 && rows[1].measured_ns == 450 &&
		rows[2].measured_ns == 50 && rows[2].processor_ns == 5 && rows[3].measured_ns == 0,
		"%g %g %g %g", rows[0].measured_ns, rows[1].measured_ns, rows[2].measured_ns,
		rows[3].measured_ns);
	hd_arena_init(&arena, 0);
	for (uint32_t n = 0; n <= 2; n += 2) {
		f.missing = missing;
		f.nmissing = n;
		hd_text_init(&text, &arena);
		hd_json_writer_init(&w, &text);
		hd_json_open_object(&w, NULL);
		hd_forecast_put(&f, &w);
		hd_json_close(&w);
		assert_true((strstr(text.at, ",\"missing\":[3,5]}") != NULL) == (n > 0) &&
			(strstr(text.at, "missing") != NULL) == (n > 0));
		hd_text_init(&text, &arena);
		hd_forecast_print(&f, &text);
		assert_true((strstr(text.at, "times by workers: 3, 5\n") != NULL) == (n > 0));
	}
	hd_arena_finish(&arena);
}

/* Waits for others, and what hands tensors on, is no work of a rank by its forecast. */
static void a_rank_is_busy_with_what_is_predicted_of_it(void **state)
{
	(void)state;
	for (uint8_t op = 0; op < HD_INS_END; op++) {
		const bool busy = op == HD_INS_F || op == HD_INS_R || op == HD_INS_B || op == HD_INS_I ||
			op == HD_INS_W || op == HD_INS_OFF || op == HD_INS_ON;
		assert_true(hd_forecast_is_busy(op) == busy && hd_forecast_counts(op) == (busy ||
			op == HD_INS_SA || op == HD_INS_SG || op == HD_INS_STEP));
	}
}

static void what_has_no_pipeline_is_not_predicted(void **state)
{
	struct hd_made m;

	(void)state;
	begin(&m, "parallel: {stages: 4}\n");
	assert_int_equal(of(&m, 3, 1, 4).npipes, 0);
	assert_int_equal(of(&m, HD_MAX_MEMBERS + 1, 1, 4).npipes, 0);
	assert_int_equal(of(&m, 2, HD_VIEW_RANKS, 4).npipes, 0);
	assert_int_equal(of(&m, 0, 1, 4).npipes, 0);
	hd_made_end(&m);
	begin(&m, NULL);
	assert_int_equal(of(&m, 2, 1, 4).npipes, 0);
	hd_made_end(&m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_of_one_core_take_the_sum_of_all_nodes),
		cmocka_unit_test(more_workers_make_the_pipelines_of_the_view),
		cmocka_unit_test(steps_that_overlap_take_what_the_busiest_rank_computes),
		cmocka_unit_test(steps_that_overlap_on_shared_cores_are_not_predicted),
		cmocka_unit_test(steps_that_overlap_wait_for_tensors_on_links),
		cmocka_unit_test(the_end_of_a_step_hides_behind_the_next),
		cmocka_unit_test(who_comes_back_late_to_activations_takes_longer),
		cmocka_unit_test(who_sleeps_wakes_late_once_an_instruction),
		cmocka_unit_test(a_letter_between_workers_wakes_three_threads),
		cmocka_unit_test(the_end_of_a_step_is_in_it),
		cmocka_unit_test(workers_update_what_they_hold),
		cmocka_unit_test(what_was_before_is_not_measured),
		cmocka_unit_test(what_workers_say_is_in_the_rows),
		cmocka_unit_test(a_rank_is_busy_with_what_is_predicted_of_it),
		cmocka_unit_test(what_has_no_pipeline_is_not_predicted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
