#include "run/replan.h"

#include <math.h>

#include "run/pipes.h"
#include "run/testing_costs.h"

/* Recordings are made up: what each kind of instruction takes, and the step that the lists then take, by an
 * oracle that walks them round by round until nothing is left. The truth of another plan is the oracle's,
 * too. What follows from nodes alone follows from the profile: all of its nodes are alike. */

enum { VNS = 8, WORKERS = 4, OVERHEAD_MS = 5 };

/* ms of an instruction of a virtual node, of the whole model; workers divide it by their speed. */
static const double forward_ms = 80, backward_ms = 160;

struct laid {
	struct hd_made made;
	struct hd_plan plan;
	double part[8];                   /* [stages] of the model */
};

static double sum_of(const struct hd_made *m, uint32_t from, uint32_t to)
{
	double sum = 0;

	for (uint32_t k = from; k < to; k++)
		sum += (double)m->costs->line.profile.node[k].f.p50_ns;
	return sum;
}

/* `stages` 0: whole models, counts [n] virtual nodes each (NULL: even). */
static void lay(struct laid *l, uint32_t n, const char *keys, const uint32_t *counts)
{
	struct hd_pipes pipes = { .most = 99 };
	struct hd_view view;

	hd_made_begin(&l->made, hd_made_gpt, keys, 0);
	struct hd_made *m = &l->made;
	const struct hd_plan_job job = hd_plan_job_whole(VNS, m->rig.task->layout.nchunks);
	CHECK(hd_pipes_make(&pipes, m->rig.task, &m->rig.arena, &m->diag) == HD_OK, "%s", m->diag.text);
	const bool staged = hd_pipes_view(&view, &pipes, n, 1, VNS);
	CHECK((staged ? hd_pipes_plan(&l->plan, &pipes, &view, &job, m->rig.task, &m->rig.arena, &m->diag) :
		hd_plan_data(&l->plan, &job, n, counts, &m->rig.arena, &m->diag)) == HD_OK, "%s",
		m->diag.text);
	for (uint32_t r = 0; r < l->plan.nranks && !staged; r++)
		l->plan.worker[r] = (uint16_t)r;
	uint32_t cut[9] = { 0 };
	assert_in_range(l->plan.nstages, 1, 8);
	if (staged)
		assert_int_equal(hd_run_costs_cuts(m->costs, l->plan.first, l->plan.nstages, cut), HD_OK);
	cut[l->plan.nstages] = m->nnodes;
	for (uint32_t s = 0; s < l->plan.nstages; s++)
		l->part[s] = sum_of(m, cut[s], cut[s + 1]) / sum_of(m, 0, m->nnodes);
}

static double takes_ms(const struct laid *l, const struct hd_ins *ins, double speed)
{
	const double part = l->part[ins->stage] / speed;

	return ins->op == HD_INS_F ? forward_ms * part : ins->op == HD_INS_B ? backward_ms * part :
		ins->op == HD_INS_I || ins->op == HD_INS_W ? backward_ms / 2 * part : 0;
}

/* When F, and B or I, of each stage and virtual node are over; below 0: not yet. */
struct over { double f[8][VNS], i[8][VNS]; };

static double ready_ms(const struct hd_plan *p, const struct over *o, const struct hd_ins *ins)
{
	const uint32_t s = ins->stage, v = ins->vn;

	if (ins->op == HD_INS_F)
		return s ? o->f[s - 1][v] : 0;
	if (ins->op == HD_INS_W)
		return o->i[s][v];
	if (ins->op != HD_INS_B && ins->op != HD_INS_I)
		return 0;
	const double above = s + 1 < p->nstages ? o->i[s + 1][v] : 0;
	return o->f[s][v] < 0 || above < 0 ? -1 : fmax(o->f[s][v], above);
}

/* And what it spends, a row an instruction. */
static double walk(const struct laid *l, const double *speed, struct hd_tl_spents *spents, uint64_t nsteps)
{
	const struct hd_plan *p = &l->plan;
	double now[WORKERS] = { 0 }, last = 0;
	uint32_t at[WORKERS] = { 0 };
	struct over o;
	bool went = true;

	for (uint32_t s = 0; s < 8; s++)
		for (uint32_t v = 0; v < VNS; v++)
			o.f[s][v] = o.i[s][v] = -1;
	while (went) {
		went = false;
		for (uint32_t r = 0; r < p->nranks; r++)
			for (; at[r] < p->list[r].len; at[r]++) {
				const struct hd_ins *ins = &p->list[r].at[at[r]];
				const double from = ready_ms(p, &o, ins), ms = takes_ms(l, ins,
					speed[p->worker[r]]);
				if (from < 0)
					break;
				now[r] = fmax(now[r], from) + ms;
				if (ins->op == HD_INS_F)
					o.f[ins->stage][ins->vn] = now[r];
				if (ins->op == HD_INS_B || ins->op == HD_INS_I)
					o.i[ins->stage][ins->vn] = now[r];
				if (spents && ms > 0)
					spents->at[spents->n++] = (struct hd_tl_spent){ ins->op, ins->stage,
						p->worker[r], nsteps, ms * 1e6 * (double)nsteps };
				went = true;
			}
	}
	for (uint32_t r = 0; r < p->nranks; r++) {
		assert_int_equal(at[r], p->list[r].len);
		last = fmax(last, now[r]);
	}
	return last;
}

struct recorded_run { struct laid laid; struct hd_tl_spents spents; uint32_t worker[WORKERS]; };

static void record(struct recorded_run *r, uint32_t n, const char *keys, const double *speed)
{
	enum { STEPS = 3 };

	*r = (struct recorded_run){ .spents = { .n = 0 } };
	lay(&r->laid, n, keys, NULL);
	r->spents.at = hd_arena_take(&r->laid.made.rig.arena, 1024, sizeof *r->spents.at);
	assert_non_null(r->spents.at);
	r->spents.step_ns = (walk(&r->laid, speed, &r->spents, STEPS) + OVERHEAD_MS) * 1e6;
	assert_in_range(r->spents.n, 1, 1023);
	r->spents.nprocesses = n;
	r->spents.nsteps = n * STEPS;
	for (uint32_t w = 0; w < WORKERS; w++)
		r->worker[w] = w < n ? w : HD_TL_NONE;
}

static struct hd_replan_ask ask_of(const struct recorded_run *r, const struct hd_plan *other)
{
	return (struct hd_replan_ask){ .task = r->laid.made.rig.task, .costs = r->laid.made.costs,
		.ran = &r->laid.plan, .other = other, .spent = &r->spents, .worker = r->worker };
}

static void another_plan_comes_out_as_if_run(void **state)
{
	static const char two[] = "parallel: {stages: 2, schedule: 1f1b}\n",
		four[] = "parallel: {stages: 4, schedule: 1f1b}\n";
	static const uint32_t uneven[] = { 6, 2 };
	static const struct {
		const char *what, *ran, *other;
		uint32_t nran, nother;
		const uint32_t *counts;
		double speed[WORKERS];
		bool no_costs;
		const char *gaps;         /* a letter each: op, stage, worker */
	} row[] = {
		{ "itself", two, two, 2, 2, NULL, { 1, 1 }, false, "" },
		{ "gpipe", two, "parallel: {stages: 2, schedule: gpipe}\n", 2, 2, NULL, { 1, 1 }, false, "" },
		{ "zb-h1", two, "parallel: {stages: 2, schedule: zb-h1}\n", 2, 2, NULL, { 1, 1 }, false,
			"oo" },
		{ "whole models", two, "", 2, 2, NULL, { 1, 1 }, false, "s" },
		{ "stages", "", two, 2, 2, NULL, { 1, 1 }, false, "ss" },
		{ "four stages", two, four, 2, 4, NULL, { 1, 1, 1, 1 }, false, "ssssww" },
		{ "three workers", "", "", 2, 3, NULL, { 1, 1, 1 }, false, "w" },
		{ "one worker", "", "", 2, 1, NULL, { 1, 1 }, false, "" },
		{ "shares for speeds", "", "", 2, 2, uneven, { 1.5, 0.5 }, false, "" },
		{ "three workers by counts of operations", "", "", 2, 3, NULL, { 1, 1, 1 }, true, "w" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct recorded_run r;
		struct laid other;
		struct hd_replan made;
		struct hd_diag diag = { "" };
		char gaps[16] = "";
		record(&r, row[i].nran, row[i].ran, row[i].speed);
		lay(&other, row[i].nother, row[i].other, row[i].counts);
		struct hd_replan_ask ask = ask_of(&r, &other.plan);
		ask.costs = row[i].no_costs ? NULL : ask.costs;
		CHECK(hd_replan(&made, &ask, &r.laid.made.rig.arena, &diag) == HD_OK, "%s: %s", row[i].what,
			diag.text);
		const double truth = (walk(&other, row[i].speed, NULL, 1) + OVERHEAD_MS) * 1e6,
			got = made.recorded_ns + made.other_ns - made.ran_ns;
		CHECK(fabs(got / truth - 1) < 0.01, "%s: %.1f ms, not %.1f; recorded %.1f, ran %.1f",
			row[i].what, got / 1e6, truth / 1e6, made.recorded_ns / 1e6, made.ran_ns / 1e6);
		for (uint32_t k = 0; k < made.ngaps && k + 1 < sizeof gaps; k++)
			gaps[k] = "osw"[made.gap[k].why];
		CHECK(!strcmp(gaps, row[i].gaps), "%s: gaps %s", row[i].what, gaps);
		hd_made_end(&other.made);
		hd_made_end(&r.laid.made);
	}
}

static void lose_a_pass(struct hd_replan_ask *ask, struct hd_plan *other, struct hd_tl_spents *spents)
{
	(void)ask, (void)other;
	for (uint32_t i = 0; i < spents->n; i++)
		if (spents->at[i].op == HD_INS_B) {
			spents->at[i].n--;
			return;
		}
}

static void lose_a_worker(struct hd_replan_ask *ask, struct hd_plan *other, struct hd_tl_spents *spents)
{
	(void)ask, (void)other;
	spents->nprocesses = 1;
	spents->nsteps /= 2;
}

static void other_chunks(struct hd_replan_ask *ask, struct hd_plan *other, struct hd_tl_spents *spents)
{
	(void)ask, (void)spents;
	other->nchunks++;
}

static void other_nodes(struct hd_replan_ask *ask, struct hd_plan *other, struct hd_tl_spents *spents)
{
	(void)ask, (void)spents;
	other->first[1] = 100000;
}

static void other_vns(struct hd_replan_ask *ask, struct hd_plan *other, struct hd_tl_spents *spents)
{
	(void)ask, (void)spents;
	other->nvns = 4;
}

static void odd_workers(struct hd_replan_ask *ask, struct hd_plan *other, struct hd_tl_spents *spents)
{
	(void)ask, (void)spents;
	other->worker[1] = 7;
}

static void no_list(struct hd_replan_ask *ask, struct hd_plan *other, struct hd_tl_spents *spents)
{
	(void)ask, (void)spents;
	other->list[1].len = 0;
}

static void what_does_not_fit_is_refused(void **state)
{
	static const struct {
		const char *what;
		void (*spoil)(struct hd_replan_ask *ask, struct hd_plan *other, struct hd_tl_spents *spents);
		enum hd_err err;
	} row[] = { { "a pass is lost", lose_a_pass, HD_E_REFUSED },
		{ "a worker", lose_a_worker, HD_E_REFUSED }, { "chunks", other_chunks, HD_E_INVAL },
		{ "nodes", other_nodes, HD_E_INVAL },
		{ "virtual nodes", other_vns, HD_E_INVAL }, { "workers", odd_workers, HD_E_REFUSED },
		{ "a list", no_list, HD_E_BADPLAN } };
	static const char two[] = "parallel: {stages: 2, schedule: 1f1b}\n";
	static const double speed[WORKERS] = { 1, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct recorded_run r;
		struct laid other;
		struct hd_replan made;
		struct hd_diag diag = { "" };
		record(&r, 2, two, speed);
		lay(&other, 2, two, NULL);
		struct hd_replan_ask ask = ask_of(&r, &other.plan);
		row[i].spoil(&ask, &other.plan, &r.spents);
		const enum hd_err err = hd_replan(&made, &ask, &r.laid.made.rig.arena, &diag);
		CHECK(err == row[i].err && *diag.text, "%s: %d, %s", row[i].what, err, diag.text);
		hd_made_end(&other.made);
		hd_made_end(&r.laid.made);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_plan_comes_out_as_if_run),
		cmocka_unit_test(what_does_not_fit_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
