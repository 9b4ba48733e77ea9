/* The published simulator's turn, step by step: what it does is kept, right or wrong; the header says what
 * is wrong. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/grow.h"
#include "clustersim/schedsim/int.h"

enum { FAILURES = 5 };                            /* in a row drop a job */

struct going { struct hd_round_run run; double steps[2], finish_s; uint32_t order; };

struct turns {
	struct sched_sim *sim;
	struct going *going;                      /* owned */
	uint32_t ngoing, going_cap;
	struct hd_round round;
	uint64_t *last;                           /* owned: ids of the runs of the last round, two each */
	uint32_t nlast, last_cap;
	double start_s, end_s, busy_s;            /* of the round */
	uint64_t extensions, chances;
};

/* Later finishes first, then singles, then ids. */
static int by_finish(const void *a, const void *b)
{
	const struct going *x = a, *y = b;

	if (x->finish_s > y->finish_s || x->finish_s < y->finish_s)
		return x->finish_s > y->finish_s ? -1 : 1;
	if (x->run.nmembers != y->run.nmembers)
		return x->run.nmembers < y->run.nmembers ? -1 : 1;
	if (x->run.id[0] != y->run.id[0])
		return x->run.id[0] < y->run.id[0] ? -1 : 1;
	return (x->run.id[1] > y->run.id[1]) - (x->run.id[1] < y->run.id[1]);
}

/* x // n as the language of the original divides floats. */
static double floor_divide(double x, double n)
{
	double rest = fmod(x, n), quotient = (x - rest) / n, whole = floor(quotient);

	if (rest < 0)
		quotient -= 1;
	if (rest < 0)
		whole = floor(quotient);
	return quotient - whole > 0.5 ? whole + 1 : whole;
}

/* The parts of all devices, added up again; NAN: one of them has nothing to do. */
static double split_steps(double steps, uint32_t ndevices)
{
	double part = floor_divide(steps, ndevices), given = 0;

	for (uint32_t d = 0; d + 1 < ndevices; d++)
		given += part;
	if ((ndevices > 1 && part <= 0) || steps - given <= 0)
		return NAN;
	return given + (steps - given);
}

static void complete(struct turns *t, const struct going *g)
{
	struct sched_sim *sim = t->sim;
	double seconds = g->finish_s - t->start_s, steps[2] = { 0 };
	bool failed = !(seconds > 0);
	uint32_t type = g->run.need[0].type;

	for (uint8_t m = 0; m < g->run.nmembers; m++) {
		steps[m] = split_steps(g->steps[m], g->run.ndevices);
		failed |= isnan(steps[m]);
	}
	if (failed) {
		hd_rounds_stale(sim->rounds);
		struct sim_job *job = schedsim_job(sim, g->run.id[0]);
		if (g->run.nmembers == 1 && ++job->failures == FAILURES)
			schedsim_leave(sim, job, g->finish_s, true);
		sim->result->failed++;
		return;
	}
	hd_rounds_ran(sim->rounds, &g->run, seconds);
	t->busy_s += seconds * g->run.ndevices;
	for (uint8_t m = 0; m < g->run.nmembers; m++) {
		struct sim_job *job = schedsim_job(sim, g->run.id[m]);
		struct hd_sim_row *row = schedsim_row(sim, job->id);
		if (g->run.nmembers == 1)
			job->failures = 0;
		job->done += steps[m];
		row->cost_usd += sim->price[type] * seconds / 3600 * g->run.ndevices;
		if (type < sizeof row->device_s / sizeof *row->device_s)
			row->device_s[type] += seconds * g->run.ndevices;
		if (sim->set->watch)
			sim->set->watch->ran(sim->set->watch->self, job->id, type,
				1.0 / g->run.nmembers * g->run.ndevices,
				sim->price[type] * seconds / 3600 * g->run.ndevices, t->start_s, g->finish_s);
	}
	for (uint8_t m = 0; m < g->run.nmembers; m++) {
		struct sim_job *job = schedsim_job(sim, g->run.id[m]);
		if (job->listed.steps - job->done <= 0)
			schedsim_leave(sim, job, g->finish_s, false);
	}
}

static enum hd_err remember(struct turns *t)
{
	enum hd_err err = hd_grow(&t->last, &t->last_cap, 2 * (uint64_t)t->ngoing, sizeof *t->last,
		"entries of a simulation", t->sim->diag);

	for (uint32_t i = 0; i < t->ngoing && !err; i++) {
		t->last[2 * i] = t->going[i].run.id[0];
		t->last[2 * i + 1] = t->going[i].run.nmembers == 2 ? t->going[i].run.id[1] :
			t->going[i].run.id[0];
	}
	t->nlast = t->ngoing;
	return err;
}

static enum hd_err start_runs(struct turns *t)
{
	struct sched_sim *sim = t->sim;
	double round_s = sim->set->round_s > 0 ? sim->set->round_s : 360;
	enum hd_err err = hd_grow(&t->going, &t->going_cap, (uint64_t)t->round.nruns + 1, sizeof *t->going,
		"entries of a simulation", sim->diag);

	t->ngoing = 0;
	for (uint32_t i = 0; i < t->nlast; i++)
		t->chances += schedsim_job(sim, t->last[2 * i]) || schedsim_job(sim, t->last[2 * i + 1]);
	for (uint32_t i = 0; i < t->round.nruns && !err; i++) {
		struct going *g = &t->going[t->ngoing++];
		*g = (struct going){ .run = t->round.run[i], .finish_s = sim->now_s };
		schedsim_begin_pair(sim, &g->run);
		t->extensions += g->run.kind == HD_RUN_SAME;
		for (uint8_t m = 0; m < g->run.nmembers; m++) {
			const struct sim_job *job = schedsim_job(sim, g->run.id[m]);
			struct hd_sim_row *row = schedsim_row(sim, job->id);
			g->steps[m] = fmin(trunc(g->run.rate[m] * round_s), job->listed.steps - job->done);
			g->finish_s = fmax(g->finish_s, sim->now_s + g->steps[m] / g->run.rate[m]);
			if (isnan(row->first_start_s))
				row->first_start_s = sim->now_s;
			row->starts += g->run.kind == HD_RUN_START;
			row->moves += g->run.kind == HD_RUN_MOVE;
		}
	}
	return err ? err : remember(t);
}

static void log_turn(const struct turns *t)
{
	struct hd_text *log = t->sim->set->log;
	char number[HD_NUM_CAP];

	if (!log)
		return;
	hd_text_addf(log, "{\"at\":%s,\"round\":[", hd_num_print_f64(number, t->sim->now_s));
	for (uint32_t i = 0; i < t->round.nruns; i++) {
		const struct hd_round_run *run = &t->round.run[i];
		hd_text_addf(log, "%s{\"run\":%llu", i ? "," : "", (unsigned long long)run->id[0]);
		if (run->nmembers == 2)
			hd_text_addf(log, ",\"with\":%llu", (unsigned long long)run->id[1]);
		for (uint32_t d = 0; d < run->ndevices; d++)
			hd_text_addf(log, "%s%u", d ? "," : ",\"on\":[", t->round.device[run->first + d]);
		hd_text_add(log, "]}");
	}
	hd_text_add(log, "]}\n");
}

static enum hd_err turn(struct turns *t)
{
	struct sched_sim *sim = t->sim;
	double before_s = sim->now_s;
	enum hd_err err = HD_OK;

	if (sim->set->trace && !sim->more && !t->ngoing)
		hd_rounds_forget(sim->rounds);
	if (t->ngoing) {
		qsort(t->going, t->ngoing, sizeof *t->going, by_finish);
		t->start_s = t->end_s;
		t->end_s = sim->now_s = t->going[0].finish_s;
	} else if (sim->more) {
		sim->now_s = sim->ahead.arrival_s;
	}
	sim->jobs_time += (sim->now_s - before_s) * sim->njobs;
	for (uint32_t i = 0; i < t->ngoing; i++)
		complete(t, &t->going[i]);
	while (!err && sim->more && sim->ahead.arrival_s <= sim->now_s)
		err = schedsim_admit(sim);
	if (!err && hd_rounds_due(sim->rounds, sim->now_s))
		err = schedsim_solve(sim);
	if (!err)
		err = hd_rounds_next(sim->rounds, &t->round, sim->diag);
	sim->result->rounds++;
	if (!err)
		log_turn(t);
	return err ? err : start_runs(t);
}

enum hd_err schedsim_gavel(struct sched_sim *sim)
{
	struct turns t = { .sim = sim };
	uint32_t idle = 0;
	enum hd_err err = HD_OK;

	while (!err && !schedsim_is_done(sim)) {
		err = turn(&t);
		/* no job runs or arrives, and the next round sees the same state: it would never end */
		idle = t.ngoing || sim->more ? 0 : idle + 1;
		if (idle > 2 && !schedsim_is_done(sim)) {
			sim->result->ended = "jobs are left that the policy never gives devices";
			break;
		}
	}
	schedsim_finish(sim, t.busy_s, sim->now_s * sim->ndevices);
	sim->result->productive = sim->result->utilisation;
	sim->result->extended = t.chances ? (double)t.extensions / (double)t.chances : 0;
	hd_free(t.going);
	hd_free(t.last);
	return err;
}
