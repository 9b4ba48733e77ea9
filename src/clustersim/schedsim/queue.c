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

static enum hd_err push(struct job_queue *q, double at_s, bool begins, uint32_t nth, uint64_t id)
{
	enum hd_err err = hd_grow(&q->event, &q->events_cap, (uint64_t)q->nevents + 1, sizeof *q->event,
		"events of a simulation", q->sim->diag);

	if (err)
		return err;
	uint32_t at = q->nevents++;
	q->event[at] = (struct job_event){ at_s, begins, nth, id };
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

enum hd_err queue_begin(struct job_queue *q, struct sim_job *job, const struct job_part *part,
	uint32_t nparts, double end_s)
{
	struct sched_sim *sim = q->sim;
	struct hd_sim_row *row = schedsim_row(sim, job->id);
	enum hd_err err = hd_grow(&q->part, &q->parts_cap, (uint64_t)q->nparts + nparts + 1, sizeof *q->part,
		"devices of jobs of a simulation", sim->diag);

	if (err)
		return err;
	if (isnan(row->first_start_s))
		row->first_start_s = sim->now_s;
	row->starts++;
	q->busy += job->listed.scale;
	if (q->busy > sim->result->peak)
		sim->result->peak = q->busy;
	q->stay[job->id] = (struct job_stay){ .from_s = sim->now_s, .first = q->nparts, .nparts = nparts,
		.nth = row->starts, .goes_on = true };
	for (uint32_t i = 0; i < nparts; i++) {
		q->part[q->nparts++] = part[i];
		q->busy_of[part[i].type] += part[i].n;
	}
	return push(q, end_s, false, row->starts, job->id);
}

void queue_leave(struct job_queue *q, struct sim_job *job)
{
	struct sched_sim *sim = q->sim;
	struct hd_sim_row *row = schedsim_row(sim, job->id);
	struct job_stay *stay = &q->stay[job->id];
	const double took_s = sim->now_s - stay->from_s;
	const struct hd_sim_watch *watch = sim->set->watch;

	stay->goes_on = false;
	q->busy -= job->listed.scale;
	q->busy_s += took_s * job->listed.scale;
	for (uint32_t i = 0; i < stay->nparts; i++) {
		const struct job_part *p = &q->part[stay->first + i];
		const double usd = cost_of(q, p->type, p->n, stay->from_s, sim->now_s);
		q->busy_of[p->type] -= p->n;
		row->cost_usd += usd;
		if (p->type < sizeof row->device_s / sizeof *row->device_s)
			row->device_s[p->type] += took_s * p->n;
		if (watch)
			watch->ran(watch->self, job->id, p->type, p->n, usd, stay->from_s, sim->now_s);
	}
}

enum hd_err queue_again(struct job_queue *q, const struct sim_job *job, double at_s)
{
	return push(q, at_s, true, 0, job->id);
}

static void count_as_it_was(struct job_queue *q, const struct sim_job *job, bool begins);

static void end(struct job_queue *q, struct sim_job *job)
{
	if (q->slurm)
		slurm_ended(q->slurm, job);
	else
		count_as_it_was(q, job, false);
	queue_leave(q, job);
	schedsim_leave(q->sim, job, q->sim->now_s, false);
}

/* ---- as it was ---- */

/* The kind of its devices; HD_SCHED_NONE: the cluster has none of it. */
static uint32_t kind_that_it_had(const struct job_queue *q, const struct hd_job_record *r)
{
	for (uint32_t t = 0; t < q->sim->set->ntypes; t++)
		if (!strcasecmp(schedsim_gpu(q->sim->set, t), r->type))
			return q->kind[t];
	return HD_SCHED_NONE;
}

/* Of free ones of its partitions; what is more than there are goes to the first of them. */
static uint32_t place_as_it_was(const struct job_queue *q, const struct sim_job *job, uint32_t kind,
	struct job_part part[HD_SCHED_TYPES])
{
	const struct hd_sched_sim_setting *set = q->sim->set;
	uint32_t n = 0, left = job->listed.scale, first = kind;

	for (uint32_t i = 0; i < set->ntypes && kind != HD_SCHED_NONE; i++) {
		const uint32_t t = q->order[i], busy = q->busy_of[t],
			room = busy < set->types[t].n ? set->types[t].n - busy : 0;
		if (q->kind[t] != kind || (set->partitions && !(set->partitions->in[t] & job->partitions)))
			continue;
		first = n ? first : t;
		if (!left || !room)
			continue;
		part[n++] = (struct job_part){ t, left < room ? left : room };
		left -= part[n - 1].n;
	}
	if (left && kind != HD_SCHED_NONE) {
		if (!n)
			part[n++] = (struct job_part){ first, 0 };
		part[0].n += left;
	}
	return n;
}

/* How many more it has than there are, of the kind, or of that on the nodes of its partition. */
static void count_as_it_was(struct job_queue *q, const struct sim_job *job, bool begins)
{
	const struct hd_sched_sim_setting *set = q->sim->set;
	const uint32_t kind = kind_that_it_had(q, job->listed.record);
	uint32_t p = set->partitions && job->partitions && !(job->partitions & (job->partitions - 1)) ?
		(uint32_t)__builtin_ctzll(job->partitions) : HD_SLURM_PARTITIONS, busy = 0, all = 0, own = 0;

	if (kind == HD_SCHED_NONE)
		return;
	if (p < HD_SLURM_PARTITIONS)
		q->used[p][kind] += begins ? job->listed.scale : -job->listed.scale;
	for (uint32_t t = 0; t < set->ntypes && begins; t++) {
		if (q->kind[t] != kind)
			continue;
		busy += q->busy_of[t];
		all += set->types[t].n;
		own += p < HD_SLURM_PARTITIONS && (set->partitions->in[t] >> p & 1) ? set->types[t].n : 0;
	}
	if (begins && busy > all + q->sim->result->over)
		q->sim->result->over = busy - all;
	if (begins && p < HD_SLURM_PARTITIONS && q->used[p][kind] > own + q->sim->result->over)
		q->sim->result->over = q->used[p][kind] - own;
}

/* With its devices for as long as it had them: that may be longer than it ran, if it was suspended. */
static enum hd_err begin_as_it_was(struct job_queue *q, struct sim_job *job)
{
	const struct hd_job_record *r = job->listed.record;
	const double held_s = r->end_s - r->start_s;
	struct job_part part[HD_SCHED_TYPES];
	const uint32_t n = place_as_it_was(q, job, kind_that_it_had(q, r), part);
	enum hd_err err = queue_begin(q, job, part, n, q->sim->now_s +
		(held_s > 0 ? held_s : job->listed.duration_s));

	if (!err)
		count_as_it_was(q, job, true);
	return err;
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
	return push(q, job->listed.arrival_s + (r->waited_s > 0 ? r->waited_s : 0), true, 0, job->id);
}

/* ---- time passes ---- */

static enum hd_err admit(struct job_queue *q)
{
	struct sched_sim *sim = q->sim;
	uint64_t id = sim->admitted;
	enum hd_err err = schedsim_admit(sim);

	if (!err)
		err = hd_grow(&q->stay, &q->stays_cap, id + 1, sizeof *q->stay, "jobs of a simulation",
			sim->diag);
	if (err)
		return err;
	q->stay[id] = (struct job_stay){ .goes_on = false };
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
			err = q->slurm ? slurm_came(q->slurm, job) : begin_as_it_was(q, job);
		else if (q->stay[e.id].goes_on && q->stay[e.id].nth == e.nth)
			end(q, job);              /* else it was preempted before */
	}
	return err || !q->slurm ? err : slurm_pass(q->slurm);
}

/* Types of the same GPUs beside each other, of these those first that few partitions have. */
static void order_types(struct job_queue *q)
{
	const struct hd_sched_sim_setting *set = q->sim->set;
	const struct hd_slurm_partitions *of = set->partitions;

	for (uint32_t t = 0; t < set->ntypes; t++) {
		uint32_t at = t;
		q->kind[t] = t;
		for (uint32_t k = 0; k < t && of; k++)
			if (!strcmp(of->gpu[k], of->gpu[t])) {
				q->kind[t] = k;
				break;
			}
		for (; at; at--) {
			const uint32_t k = q->order[at - 1];
			if (q->kind[k] < q->kind[t] || (q->kind[k] == q->kind[t] &&
				__builtin_popcountll(of->in[k]) <= __builtin_popcountll(of->in[t])))
				break;
			q->order[at] = k;
		}
		q->order[at] = t;
	}
}

/* Jobs that are there when time ends are charged until then. */
static void charge_the_rest(struct job_queue *q)
{
	for (uint32_t i = 0; i < q->sim->njobs; i++)
		if (q->stay[q->sim->job[i]->id].goes_on)
			queue_leave(q, q->sim->job[i]);
}

enum hd_err schedsim_queue(struct sched_sim *sim)
{
	struct job_queue *q = hd_alloc(sizeof *q);
	enum hd_err err = HD_OK;

	if (!q)
		return hd_fail(sim->diag, HD_E_NOMEM, "no memory for a queue");
	*q = (struct job_queue){ .sim = sim, .start_s = sim->now_s };
	order_types(q);
	if (sim->set->queue == HD_QUEUE_SLURM)
		err = slurm_create(&q->slurm, sim->set->slurm, q);
	while (!err && !schedsim_is_done(sim) && (sim->more || q->nevents)) {
		if (sim->set->stop_s > 0 && sim->now_s >= q->start_s + sim->set->stop_s) {
			sim->result->ended = "the time limit";
			break;
		}
		err = step(q);
	}
	if (!err && !*sim->result->ended && sim->njobs && !schedsim_is_done(sim))
		sim->result->ended = sim->set->partitions ?
			"jobs are left that none of their partitions can start" :
			"jobs are left that no type has devices enough for";
	if (!err)
		charge_the_rest(q);
	schedsim_finish(sim, q->busy_s, (sim->now_s - q->start_s) * sim->ndevices);
	sim->result->makespan_s = sim->now_s - q->start_s;
	sim->result->productive = sim->result->utilisation;
	slurm_destroy(q->slurm);
	hd_free(q->event);
	hd_free(q->stay);
	hd_free(q->part);
	hd_free(q);
	return err;
}
