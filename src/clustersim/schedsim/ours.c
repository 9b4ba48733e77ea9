/* Events in place of turns. Between two events every run goes at one rate, so the time of its end is known
 * when it starts and nothing is stepped through. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/philox.h"
#include "base/grow.h"
#include "clustersim/schedsim/int.h"

/* boundaries at which no job runs, arrives or returns: none ever will */
/* Rounds without a job that runs, and nothing to come, until no policy is believed to start one; and how many
 * count as one where devices that left may yet come back. */
enum { PATIENCE = 2000, OF_AWAY = 50 };

struct sim_run {
	struct hd_round_run run;
	uint32_t first;                           /* into devices */
	double at_s, ready_s;                     /* charged until; computes from */
	double end_s[2], fails_s;
};

struct events {
	struct sched_sim *sim;
	struct sim_run *live, *old;                  /* owned */
	uint32_t nlive, live_cap, nold, old_cap;
	uint32_t *device, *old_device;            /* owned, [ndevices] */
	uint32_t *owner;                          /* owned, [ndevices] index of `live` + 1 */
	double *next_s;                           /* owned, [ndevices] when it is lost, or back */
	bool *away;                               /* owned */
	uint32_t *draws;                          /* owned, [ndevices] */
	double start_s, round_s, boundary_s, price_s, solved_s;
	double solved_price[HD_SCHED_TYPES];
	uint32_t event;                           /* of the log */
	uint32_t idle;
	double busy_s, productive_s, device_s;    /* device seconds */
	uint32_t nusable;
	bool free, came;                          /* something for an offer */
	uint64_t same, leases;
};

static double exponential(const struct sched_sim *sim, enum hd_rng_cluster what, uint64_t id, uint32_t draw,
	double rate)
{
	struct hd_philox x = hd_philox((uint32_t[4]){ what, (uint32_t)id, (uint32_t)(id >> 32), draw },
		hd_philox_key(sim->set->seed, HD_RNG_CLUSTER));

	return rate > 0 ? -log(((double)x.word[0] + 0.5) * 0x1p-32) / rate : INFINITY;
}

static uint32_t type_of(const struct sched_sim *sim, uint32_t device)
{
	uint32_t t = 0, above = sim->set->types[0].n;

	while (device >= above)
		above += sim->set->types[++t].n;
	return t;
}

/* ---- time passes ---- */

static double price_of(const struct sched_sim *sim, const struct hd_round_run *run)
{
	double usd_h = 0;

	for (uint8_t k = 0; k < run->nneeds; k++)
		usd_h += sim->price[run->need[k].type] * run->need[k].n;
	return usd_h;
}

static void tell(const struct sched_sim *sim, uint64_t id, const struct sim_run *l, double part, double now_s)
{
	const struct hd_sim_watch *watch = sim->set->watch;

	for (uint8_t k = 0; watch && k < l->run.nneeds; k++) {
		uint32_t type = l->run.need[k].type, n = l->run.need[k].n;
		watch->ran(watch->self, id, type, part * n,
			part * n * sim->price[type] * (now_s - l->at_s) / 3600, l->at_s, now_s);
	}
}

static void charge(struct events *e, struct sim_run *l, double now_s)
{
	double took = now_s - l->at_s, computed = now_s - fmax(l->at_s, l->ready_s);

	if (!(took > 0) || !l->run.nmembers)
		return;
	computed = computed > 0 ? computed : 0;
	hd_rounds_ran(e->sim->rounds, &l->run, took);
	e->busy_s += took * l->run.ndevices;
	e->productive_s += computed * l->run.ndevices;
	for (uint8_t m = 0; m < l->run.nmembers; m++) {
		struct sim_job *job = schedsim_job(e->sim, l->run.id[m]);
		struct hd_sim_row *row = schedsim_row(e->sim, job->id);
		double part = 1.0 / l->run.nmembers;
		job->done += computed * l->run.rate[m];
		row->cost_usd += part * price_of(e->sim, &l->run) * took / 3600;
		tell(e->sim, job->id, l, part, now_s);
		row->lost_s += took - computed;
		for (uint8_t k = 0; k < l->run.nneeds; k++)
			if (l->run.need[k].type < sizeof row->device_s / sizeof *row->device_s)
				row->device_s[l->run.need[k].type] += part * took * l->run.need[k].n;
	}
	l->at_s = now_s;
}

static void pass(struct events *e, double now_s)
{
	struct sched_sim *sim = e->sim;

	sim->jobs_time += (now_s - sim->now_s) * sim->njobs;
	e->device_s += (now_s - sim->now_s) * e->nusable;
	for (uint32_t i = 0; i < e->nlive; i++)
		charge(e, &e->live[i], now_s);
	sim->now_s = now_s;
}

static void set_ends(struct events *e, struct sim_run *l)
{
	for (uint8_t m = 0; m < l->run.nmembers; m++) {
		const struct sim_job *job = schedsim_job(e->sim, l->run.id[m]);
		l->end_s[m] = fmax(l->at_s, l->ready_s) + fmax(0,
			job->listed.steps - job->done) / l->run.rate[m];
	}
}

static double next_event(const struct events *e)
{
	const struct sched_sim *sim = e->sim;
	double next = fmin(e->boundary_s, e->price_s);

	if (sim->more)
		next = fmin(next, sim->ahead.arrival_s);
	for (uint32_t i = 0; i < e->nlive; i++) {
		next = fmin(next, e->live[i].fails_s);
		for (uint8_t m = 0; m < e->live[i].run.nmembers; m++)
			next = fmin(next, e->live[i].end_s[m]);
	}
	for (uint32_t d = 0; d < sim->ndevices && e->next_s; d++)
		next = fmin(next, e->next_s[d]);
	if (sim->set->events && e->event < sim->set->events->n)
		next = fmin(next, e->start_s + sim->set->events->at[e->event].at_s);
	return fmax(next, sim->now_s);
}

/* ---- what an event does ---- */

static void drop_run(struct events *e, uint32_t i)
{
	struct sim_run *l = &e->live[i];

	for (uint8_t m = 0; m < l->run.nmembers; m++) {
		struct sim_job *job = schedsim_job(e->sim, l->run.id[m]);
		if (job)
			job->run = UINT32_MAX;
	}
	l->run.nmembers = 0;
	l->end_s[0] = l->end_s[1] = l->fails_s = INFINITY;
}

static void complete(struct events *e)
{
	for (uint32_t i = 0; i < e->nlive; i++) {
		struct sim_run *l = &e->live[i];
		uint8_t kept = 0;
		for (uint8_t m = 0; m < l->run.nmembers; m++) {
			struct sim_job *job = schedsim_job(e->sim, l->run.id[m]);
			if (l->end_s[m] > e->sim->now_s) {
				l->run.id[kept] = l->run.id[m];
				l->run.rate[kept] = l->run.rate[m];
				l->end_s[kept++] = l->end_s[m];
				continue;
			}
			job->done = job->listed.steps;
			schedsim_leave(e->sim, job, e->sim->now_s, false);
			e->free = true;
		}
		if (!kept && l->run.nmembers)
			drop_run(e, i);
		l->run.nmembers = kept;
	}
}

static void lose_work(struct events *e, const struct sim_run *l)
{
	for (uint8_t m = 0; m < l->run.nmembers; m++) {
		struct sim_job *job = schedsim_job(e->sim, l->run.id[m]);
		double again = fmin(job->done, e->sim->set->lost_s * l->run.rate[m]);
		job->done -= again;
		schedsim_row(e->sim, job->id)->lost_s += again / l->run.rate[m];
	}
}

static void draw_failure(struct events *e, struct sim_run *l)
{
	struct sim_job *job = schedsim_job(e->sim, l->run.id[0]);

	l->fails_s = e->sim->set->failures_per_s > 0
		? e->sim->now_s + exponential(e->sim, HD_RNG_CLUSTER_FAILURE, job->id, job->draws++,
			e->sim->set->failures_per_s * l->run.ndevices) : INFINITY;
}

static void fail(struct events *e)
{
	for (uint32_t i = 0; i < e->nlive; i++) {
		struct sim_run *l = &e->live[i];
		if (!l->run.nmembers || l->fails_s > e->sim->now_s)
			continue;
		lose_work(e, l);
		l->ready_s = e->sim->now_s + (e->sim->set->free_switching ? 0 : e->sim->set->costs.start_s);
		draw_failure(e, l);
		set_ends(e, l);
		e->sim->result->failed++;
	}
}

static void turn_device(struct events *e, uint32_t device, bool away)
{
	uint32_t owner = e->owner[device];

	if (e->away[device] == away)
		return;
	e->away[device] = away;
	e->nusable += away ? -1u : 1u;
	hd_rounds_device(e->sim->rounds, device, !away);
	e->free = true;
	if (!away)
		return;
	e->sim->result->revoked++;
	if (owner && e->live[owner - 1].run.nmembers) {
		lose_work(e, &e->live[owner - 1]);
		drop_run(e, owner - 1);
	}
}

static void draw_devices(struct events *e)
{
	const struct hd_sched_sim_setting *set = e->sim->set;

	for (uint32_t d = 0; d < e->sim->ndevices && e->next_s; d++) {
		if (e->next_s[d] > e->sim->now_s)
			continue;
		bool away = !e->away[d];
		turn_device(e, d, away);
		e->next_s[d] = e->sim->now_s + (away ? set->away_s
			: exponential(e->sim, HD_RNG_CLUSTER_REVOKED, d, e->draws[d]++,
				set->types[type_of(e->sim, d)].revoked_per_s));
	}
}

/* Machines of the log: the lowest that are away come back, of those that are there the highest leave. */
static void follow_log(struct events *e)
{
	const struct hd_sched_sim_setting *set = e->sim->set;
	uint32_t from = 0;

	for (uint32_t t = 0; set->events && t < set->event_type; t++)
		from += set->types[t].n;
	for (; set->events && e->event < set->events->n && e->start_s +
		set->events->at[e->event].at_s <= e->sim->now_s; e->event++) {
		int32_t change = set->events->at[e->event].change;
		uint32_t n = set->types[set->event_type].n;
		for (uint32_t d = 0; d < n && change > 0; d++)
			if (e->away[from + d]) {
				turn_device(e, from + d, false);
				change--;
			}
		for (uint32_t d = n; d-- > 0 && change < 0;)
			if (!e->away[from + d]) {
				turn_device(e, from + d, true);
				change++;
			}
	}
}

static void read_prices(struct events *e)
{
	const struct hd_sched_sim_setting *set = e->sim->set;
	double at_s = set->prices_from_s + e->sim->now_s - e->start_s;

	if (!set->prices || e->price_s > e->sim->now_s)
		return;
	e->price_s = INFINITY;
	for (uint32_t t = 0; t < set->ntypes; t++) {
		if (set->price_type[t] == HD_PRICE_NONE)
			continue;
		e->sim->price[t] = hd_price_at(set->prices, set->price_type[t], at_s);
		e->price_s = fmin(e->price_s, hd_price_change(set->prices, set->price_type[t],
			at_s) - at_s + e->sim->now_s);
	}
}

/* ---- decisions ---- */

static void log_round(struct events *e, const char *why)
{
	struct hd_text *log = e->sim->set->log;
	char number[HD_NUM_CAP];
	static const char *const kinds[] = { "start", "same", "resize", "move" };

	if (!log)
		return;
	size_t before = log->len;
	hd_text_addf(log, "{\"at\":%s,\"%s\":[", hd_num_print_f64(number, e->sim->now_s), why);
	bool follows = false, changes = false;
	for (uint32_t i = 0; i < e->nlive; i++) {
		const struct sim_run *l = &e->live[i];
		if (l->run.kind == HD_RUN_SAME)
			continue;
		hd_text_addf(log, "%s{\"%s\":%llu", follows ? "," : "", kinds[l->run.kind],
			(unsigned long long)l->run.id[0]);
		if (l->run.nmembers == 2)
			hd_text_addf(log, ",\"with\":%llu", (unsigned long long)l->run.id[1]);
		hd_text_add(log, ",\"on\":[");
		for (uint32_t d = 0; d < l->run.ndevices; d++)
			hd_text_addf(log, "%s%u", d ? "," : "", e->device[l->first + d]);
		hd_text_add(log, "]}");
		follows = changes = true;
	}
	hd_text_add(log, "],\"off\":[");
	follows = false;
	for (uint32_t i = 0; i < e->nold; i++)
		for (uint8_t m = 0; m < e->old[i].run.nmembers; m++) {
			const struct sim_job *job = schedsim_job(e->sim, e->old[i].run.id[m]);
			if (!job || job->run != UINT32_MAX)
				continue;
			hd_text_addf(log, "%s%llu", follows ? "," : "", (unsigned long long)job->id);
			follows = changes = true;
		}
	hd_text_add(log, "]}\n");
	if (!changes && !log->full) {                     /* running jobs go on: no line */
		log->len = before;
		log->at[before] = 0;
	}
}

static double resize_cost(const struct sched_sim *sim)
{
	return sim->set->elastic && sim->set->elastic->resize_s > 0 ? sim->set->elastic->resize_s :
		sim->set->costs.resize_s;
}

/* Until the job that had the device has released it: one that goes on with fewer resizes, all others commit
 * and leave. */
static double let_go(const struct events *e, uint32_t owner)
{
	const struct sim_job *job = schedsim_job(e->sim, e->old[owner].run.id[0]);

	return job && job->resizes ? resize_cost(e->sim) : e->sim->set->costs.preempt_s;
}

static void begin(struct events *e, struct sim_run *l, const struct hd_round_run *run, const uint32_t *device,
	uint32_t *used)
{
	const struct hd_switch_costs *costs = &e->sim->set->costs;
	const double cost[] = { [HD_RUN_START] = costs->start_s, [HD_RUN_SAME] = 0,
		[HD_RUN_RESIZE] = resize_cost(e->sim), [HD_RUN_MOVE] = costs->move_s };
	uint32_t was = schedsim_job(e->sim, run->id[0])->run;
	double now_s = e->sim->now_s, from_s = now_s;

	*l = (struct sim_run){ .run = *run, .first = *used, .at_s = now_s, .ready_s = now_s,
		.fails_s = INFINITY };
	schedsim_begin_pair(e->sim, &l->run);
	memcpy(&e->device[*used], &device[run->first], run->ndevices * sizeof *device);
	*used += run->ndevices;
	if (run->kind == HD_RUN_SAME && was != UINT32_MAX) {
		l->ready_s = e->old[was].ready_s;
		l->fails_s = e->old[was].fails_s;
		set_ends(e, l);
		return;
	}
	for (uint32_t d = 0; d < run->ndevices; d++) {
		uint32_t owner = e->owner[device[run->first + d]];
		if (owner && owner - 1 != was && e->old[owner - 1].run.nmembers)
			from_s = fmax(from_s, now_s + let_go(e, owner - 1));
	}
	/* what it was charged for is not done yet */
	bool starting = was != UINT32_MAX && e->old[was].ready_s > now_s;
	if (starting && run->kind == HD_RUN_RESIZE)
		from_s = fmax(from_s, e->old[was].ready_s);
	if (e->sim->set->free_switching)
		from_s = now_s;
	else
		from_s += starting && run->kind == HD_RUN_MOVE ? fmax(costs->start_s, costs->move_s) :
			cost[run->kind];
	l->ready_s = from_s;
	draw_failure(e, l);
	set_ends(e, l);
}

static enum hd_err assign(struct events *e, const struct hd_round *round, const char *why)
{
	struct sched_sim *sim = e->sim;
	struct sim_run *live = e->old;
	uint32_t *device = e->old_device, cap = e->old_cap, used = 0;
	enum hd_err err;

	e->old = e->live;
	e->nold = e->nlive;
	e->old_cap = e->live_cap;
	e->old_device = e->device;
	e->live = live;
	e->live_cap = cap;
	e->device = device;
	if ((err = hd_grow(&e->live, &e->live_cap, (uint64_t)round->nruns + 1, sizeof *e->live,
		"entries of a simulation", sim->diag)))
		return err;
	e->nlive = 0;
	for (uint32_t i = 0; i < sim->njobs; i++)
		sim->job[i]->resizes = false;
	for (uint32_t i = 0; i < round->nruns; i++)
		schedsim_job(sim, round->run[i].id[0])->resizes = round->run[i].kind == HD_RUN_RESIZE;
	for (uint32_t i = 0; i < round->nruns; i++) {
		struct sim_run *l = &e->live[e->nlive++];
		begin(e, l, &round->run[i], round->device, &used);
		e->leases++;
		e->same += l->run.kind == HD_RUN_SAME;
		for (uint8_t m = 0; m < l->run.nmembers; m++) {
			struct hd_sim_row *row = schedsim_row(sim, l->run.id[m]);
			row->starts += l->run.kind == HD_RUN_START;
			row->moves += l->run.kind == HD_RUN_MOVE;
			row->resizes += l->run.kind == HD_RUN_RESIZE;
			if (isnan(row->first_start_s))
				row->first_start_s = sim->now_s;
		}
	}
	for (uint32_t i = 0; i < sim->njobs; i++)
		sim->job[i]->run = UINT32_MAX;
	memset(e->owner, 0, sim->ndevices * sizeof *e->owner);
	for (uint32_t i = 0; i < e->nlive; i++) {
		for (uint8_t m = 0; m < e->live[i].run.nmembers; m++)
			schedsim_job(sim, e->live[i].run.id[m])->run = i;
		for (uint32_t d = 0; d < e->live[i].run.ndevices; d++)
			e->owner[e->device[e->live[i].first + d]] = i + 1;
	}
	log_round(e, why);
	e->free = e->came = false;
	return HD_OK;
}

static bool prices_moved(const struct events *e)
{
	if (e->sim->set->policy->patience > 0 && e->sim->now_s - e->solved_s >= 3600)
		return true;                              /* a waiting job has an hour less */
	for (uint32_t t = 0; t < e->sim->set->ntypes; t++)
		if (fabs(e->sim->price[t] - e->solved_price[t]) >= 0.1 * e->solved_price[t] &&
			e->solved_price[t] > 0)
			return e->sim->now_s - e->solved_s >= 3600;
	return false;
}

static enum hd_err decide(struct events *e)
{
	struct sched_sim *sim = e->sim;
	struct hd_round round;
	enum hd_err err = HD_OK;

	if (sim->now_s < e->boundary_s) {
		if (!(e->free || e->came) || !sim->njobs)
			return HD_OK;
		err = hd_rounds_offer(sim->rounds, &round, sim->diag);
		return err ? err : assign(e, &round, "offer");
	}
	if (prices_moved(e))
		hd_rounds_stale(sim->rounds);
	if (hd_rounds_due(sim->rounds, sim->now_s)) {
		err = schedsim_solve(sim);
		e->solved_s = sim->now_s;
		memcpy(e->solved_price, sim->price, sizeof e->solved_price);
	}
	if (!err && !(err = hd_rounds_next(sim->rounds, &round, sim->diag)))
		err = assign(e, &round, "round");
	sim->result->rounds++;
	return err;
}

/* The next multiple of the round after now; without jobs: none. */
static void set_boundary(struct events *e)
{
	double k = floor((e->sim->now_s - e->start_s) / e->round_s);

	if (e->boundary_s > e->sim->now_s && isfinite(e->boundary_s) && e->sim->njobs)
		return;
	do                                                /* the quotient may be rounded down */
		e->boundary_s = e->sim->njobs ? e->start_s + ++k * e->round_s : INFINITY;
	while (e->boundary_s <= e->sim->now_s);
}

static enum hd_err step(struct events *e)
{
	struct sched_sim *sim = e->sim;
	enum hd_err err = HD_OK;

	pass(e, next_event(e));
	complete(e);
	fail(e);
	draw_devices(e);
	follow_log(e);
	read_prices(e);
	while (!err && sim->more && sim->ahead.arrival_s <= sim->now_s) {
		err = schedsim_admit(sim);
		e->came = true;
	}
	/* after an empty cluster, and at the start: decide now */
	if (!isfinite(e->boundary_s) && sim->njobs)
		e->boundary_s = sim->now_s;
	if (!err)
		err = decide(e);
	set_boundary(e);
	return err;
}

static enum hd_err open_events(struct events *e, struct sched_sim *sim)
{
	uint32_t n = sim->ndevices;
	bool revokes = false;

	*e = (struct events){ .sim = sim, .start_s = sim->now_s,
		.round_s = sim->set->round_s > 0 ? sim->set->round_s : 60, .boundary_s = INFINITY,
		.price_s = sim->set->prices ? sim->now_s : INFINITY, .nusable = n };
	for (uint32_t t = 0; t < sim->set->ntypes; t++)
		revokes |= sim->set->types[t].revoked_per_s > 0;
	e->device = hd_alloc(n * sizeof *e->device);
	e->old_device = hd_alloc(n * sizeof *e->old_device);
	e->owner = hd_alloc(n * sizeof *e->owner);
	e->away = hd_alloc(n * sizeof *e->away);
	e->draws = hd_alloc(n * sizeof *e->draws);
	e->next_s = revokes ? hd_alloc(n * sizeof *e->next_s) : NULL;
	if (!e->device || !e->old_device || !e->owner || !e->away || !e->draws || (revokes && !e->next_s))
		return hd_fail(sim->diag, HD_E_NOMEM, "no memory for %u devices", n);
	memset(e->owner, 0, n * sizeof *e->owner);
	memset(e->away, 0, n * sizeof *e->away);
	memset(e->draws, 0, n * sizeof *e->draws);
	for (uint32_t d = 0; d < n && revokes; d++)
		e->next_s[d] = sim->now_s + exponential(sim, HD_RNG_CLUSTER_REVOKED, d, e->draws[d]++,
			sim->set->types[type_of(sim, d)].revoked_per_s);
	/* a log starts with no machine there */
	for (uint32_t d = 0; d < n && sim->set->events; d++)
		if (type_of(sim, d) == sim->set->event_type) {
			e->away[d] = true;
			e->nusable--;
			hd_rounds_device(sim->rounds, d, false);
		}
	return HD_OK;
}

/* With patience a job may wait on purpose, but never beyond its deadline. */
static bool waits(const struct sched_sim *sim)
{
	for (uint32_t i = 0; i < sim->njobs && sim->set->policy->patience > 0; i++) {
		double deadline = schedsim_row(sim, sim->job[i]->id)->deadline_s;
		if (isfinite(deadline) && deadline > sim->now_s)
			return true;
	}
	return false;
}

/* How much longer nothing has run; 0: something does, or is to come. */
static uint32_t idle_for(const struct events *e)
{
	const struct hd_machine_events *log = e->sim->set->events;
	const bool comes = e->nlive || e->sim->more || (log && e->event < log->n) || waits(e->sim);

	return comes ? 0 : e->idle + (e->next_s && e->nusable < e->sim->ndevices ? 1 : OF_AWAY);
}

enum hd_err schedsim_ours(struct sched_sim *sim)
{
	struct events e;
	enum hd_err err = open_events(&e, sim);

	while (!err && !schedsim_is_done(sim)) {
		if (sim->set->stop_s > 0 && sim->now_s >= e.start_s + sim->set->stop_s) {
			sim->result->ended = "the time limit";
			break;
		}
		err = step(&e);
		e.idle = idle_for(&e);
		if (!err && e.idle > PATIENCE * OF_AWAY) {
			sim->result->ended = "jobs are left that the policy never gives devices";
			break;
		}
	}
	schedsim_finish(sim, e.busy_s, e.device_s);
	sim->result->makespan_s = sim->now_s - e.start_s;
	sim->result->productive = e.device_s > 0 ? e.productive_s / e.device_s : 0;
	sim->result->extended = e.leases ? (double)e.same / (double)e.leases : 0;
	void *owned[] = { e.live, e.old, e.device, e.old_device, e.owner, e.next_s, e.away, e.draws };
	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
		hd_free(owned[i]);
	return err;
}
