/* Without rounds: between two events nothing changes, and of a job that begins the end is known. */
#include "clustersim/schedsim/queue.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/grow.h"

/* ---- events: a heap ---- */

/* What ends makes room for what begins. */
static bool before(const struct job_event *a, const struct job_event *b)
{
	if (a->at_s < b->at_s || a->at_s > b->at_s)
		return a->at_s < b->at_s;
	return a->begins != b->begins ? b->begins : a->id < b->id;
}

static void swap(struct job_event *a, struct job_event *b)
{
	struct job_event c = *a;

	*a = *b;
	*b = c;
}

static enum hd_err push(struct job_queue *q, double at_s, bool begins, uint64_t id)
{
	enum hd_err err = hd_grow(&q->event, &q->events_cap, (uint64_t)q->nevents + 1, sizeof *q->event,
		"events of a simulation", q->sim->diag);

	if (err)
		return err;
	uint32_t at = q->nevents++;
	q->event[at] = (struct job_event){ at_s, begins, id };
	for (; at && before(&q->event[at], &q->event[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&q->event[at], &q->event[(at - 1) / 2]);
	return HD_OK;
}

static struct job_event pop(struct job_queue *q)
{
	struct job_event first = q->event[0];

	q->event[0] = q->event[--q->nevents];
	for (uint32_t at = 0, child; (child = 2 * at + 1) < q->nevents; at = child) {
		child += child + 1 < q->nevents && before(&q->event[child + 1], &q->event[child]);
		if (!before(&q->event[child], &q->event[at]))
			break;
		swap(&q->event[at], &q->event[child]);
	}
	return first;
}

/* ---- what a job gets ---- */

static double cost_of(const struct job_queue *q, uint32_t type, uint32_t n, double from_s, double to_s)
{
	const struct hd_sched_sim_setting *set = q->sim->set;
	double usd = 0, at_s = set->prices_from_s + from_s - q->start_s,
		end_s = set->prices_from_s + to_s - q->start_s;

	if (!set->prices || set->price_type[type] == HD_PRICE_NONE)
		return set->types[type].price_usd_h * n * (to_s - from_s) / 3600;
	while (at_s < end_s) {
		double until_s = fmin(end_s, hd_price_change(set->prices, set->price_type[type], at_s));
		usd += hd_price_at(set->prices, set->price_type[type], at_s) * n * (until_s - at_s) / 3600;
		at_s = until_s;
	}
	return usd;
}

enum hd_err queue_begin(struct job_queue *q, struct sim_job *job, uint32_t type, double end_s)
{
	struct sched_sim *sim = q->sim;
	struct hd_sim_row *row = schedsim_row(sim, job->id);
	const uint32_t n = job->listed.scale;
	const double took_s = end_s - sim->now_s;
	const struct hd_sim_watch *watch = sim->set->watch;

	row->first_start_s = sim->now_s;
	row->starts = 1;
	q->busy_s += took_s * n;
	q->busy += n;
	if (q->busy > sim->result->peak)
		sim->result->peak = q->busy;
	q->type[job->id] = type;
	if (type != HD_SCHED_NONE) {
		q->busy_of[type] += n;
		if (q->busy_of[type] > sim->set->types[type].n + sim->result->over)
			sim->result->over = q->busy_of[type] - sim->set->types[type].n;
		row->cost_usd = cost_of(q, type, n, sim->now_s, end_s);
		if (type < sizeof row->device_s / sizeof *row->device_s)
			row->device_s[type] = took_s * n;
		if (watch)
			watch->ran(watch->self, job->id, type, n, row->cost_usd, sim->now_s, end_s);
	}
	return push(q, end_s, false, job->id);
}

static void end(struct job_queue *q, struct sim_job *job)
{
	const uint32_t type = q->type[job->id];

	q->busy -= job->listed.scale;
	if (type != HD_SCHED_NONE)
		q->busy_of[type] -= job->listed.scale;
	if (q->slurm)
		slurm_ended(q->slurm, job);
	schedsim_leave(q->sim, job, q->sim->now_s, false);
}

/* ---- as it was ---- */

static uint32_t type_that_it_had(const struct sched_sim *sim, const struct hd_job_record *r)
{
	for (uint32_t t = 0; t < sim->set->ntypes; t++)
		if (!strcasecmp(sim->set->types[t].name, r->type))
			return t;
	return HD_SCHED_NONE;
}

/* With its devices for as long as it had them: that may be longer than it ran, if it was suspended. */
static enum hd_err begin_as_it_was(struct job_queue *q, struct sim_job *job)
{
	const struct hd_job_record *r = job->listed.record;
	const double held_s = r->end_s - r->start_s;

	return queue_begin(q, job, type_that_it_had(q->sim, r), q->sim->now_s +
		(held_s > 0 ? held_s : job->listed.duration_s));
}

static enum hd_err came(struct job_queue *q, const struct sim_job *job)
{
	const struct hd_job_record *r = job->listed.record;

	if (q->slurm)
		return slurm_came(q->slurm, job);
	if (!r)
		return hd_fail(q->sim->diag, HD_E_INPUT,
			"as-it-was: job %llu is from a list that does not say when jobs started; give an "
			"accounting (sacct --parsable, with Start and End)", (unsigned long long)job->id);
	q->sim->result->nunstarted += isnan(r->waited_s) ? 1 : 0;
	return push(q, job->listed.arrival_s + (r->waited_s > 0 ? r->waited_s : 0), true, job->id);
}

/* ---- time passes ---- */

static enum hd_err admit(struct job_queue *q)
{
	struct sched_sim *sim = q->sim;
	uint64_t id = sim->admitted;
	enum hd_err err = schedsim_admit(sim);

	if (!err)
		err = hd_grow(&q->type, &q->type_cap, id + 1, sizeof *q->type, "jobs of a simulation",
			sim->diag);
	if (err)
		return err;
	q->type[id] = HD_SCHED_NONE;
	return came(q, schedsim_job(sim, id));
}

static enum hd_err step(struct job_queue *q)
{
	struct sched_sim *sim = q->sim;
	double now_s = sim->more ? sim->ahead.arrival_s : INFINITY;
	enum hd_err err = HD_OK;

	if (q->nevents)
		now_s = fmin(now_s, q->event[0].at_s);
	sim->jobs_time += (now_s - sim->now_s) * sim->njobs;
	sim->now_s = now_s;
	while (!err && sim->more && sim->ahead.arrival_s <= now_s)
		err = admit(q);
	while (!err && q->nevents && q->event[0].at_s <= now_s) {
		struct job_event e = pop(q);
		struct sim_job *job = schedsim_job(sim, e.id);
		if (e.begins)
			err = begin_as_it_was(q, job);
		else
			end(q, job);
	}
	return err || !q->slurm ? err : slurm_pass(q->slurm);
}

enum hd_err schedsim_queue(struct sched_sim *sim)
{
	struct job_queue q = { .sim = sim, .start_s = sim->now_s };
	enum hd_err err = sim->set->queue == HD_QUEUE_SLURM ? slurm_create(&q.slurm, sim->set->slurm, &q) :
		HD_OK;

	while (!err && !schedsim_is_done(sim) && (sim->more || q.nevents)) {
		if (sim->set->stop_s > 0 && sim->now_s >= q.start_s + sim->set->stop_s) {
			sim->result->ended = "the time limit";
			break;
		}
		err = step(&q);
	}
	if (!err && !*sim->result->ended && sim->njobs && !schedsim_is_done(sim))
		sim->result->ended = "jobs are left that no type has devices enough for";
	schedsim_finish(sim, q.busy_s, (sim->now_s - q.start_s) * sim->ndevices);
	sim->result->makespan_s = sim->now_s - q.start_s;
	sim->result->productive = sim->result->utilisation;
	slurm_destroy(q.slurm);
	hd_free(q.event);
	hd_free(q.type);
	return err;
}
