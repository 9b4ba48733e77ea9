#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "clustersim/schedsim/log.h"

enum { POLICY_BYTES = 1 << 30 };

static bool packs(const struct hd_policy_setting *set) { return set->variant == HD_VARIANT_PACKED ||
	set->variant == HD_VARIANT_KINDS; }

/* The published scheduler draws the order of types again each round for policies that do not look at speeds:
 * the plain variants, and those of fixed parts that have no variant. It holds back jobs without share for
 * FIFO alone, whose row is the one of a queue with variants. */
static struct hd_rounds_setting rounds_of(const struct hd_sched_sim_setting *set)
{
	const struct hd_sched_policy *row = set->policy->policy;
	bool gavel = set->fidelity == HD_FIDELITY_GAVEL, parts =
		!(row->powers & (HD_POLICY_LP | HD_POLICY_WHOLE)) && row->variants == 1u << HD_VARIANT_HETERO;

	return (struct hd_rounds_setting){ .fidelity = set->fidelity, .round_s = set->round_s,
		.min_reset_s = set->min_reset_s, .kappa = set->kappa,
		.steady = row->powers & HD_POLICY_STEADY,
		.queue = (row->powers & HD_POLICY_QUEUE) &&
		(!gavel || row->variants & 1u << HD_VARIANT_PLAIN),
		.blind = set->policy->variant == HD_VARIANT_PLAIN || parts, .seed = set->seed };
}

static void fetch(struct sched_sim *sim)
{
	sim->more = sim->set->next(sim->set->source, &sim->ahead);
	if (sim->more)
		schedsim_log_job(sim, sim->admitted, &sim->ahead);
}

static enum hd_err open_rounds(struct sched_sim *sim)
{
	const struct hd_sched_sim_setting *set = sim->set;
	const struct hd_rounds_setting rounds = rounds_of(set);
	enum hd_err err = hd_policy_create(&sim->policy, set->policy, sim->diag);

	return err ? err : hd_rounds_create(&sim->rounds, &rounds, set->ntypes, set->types, set->host,
		sim->diag);
}

enum hd_err schedsim_open(struct sched_sim *sim, const struct hd_sched_sim_setting *set,
	struct hd_sched_sim_result *result, struct hd_arena *arena,
	struct hd_diag *diag)
{
	enum hd_err err;

	*sim = (struct sched_sim){ .set = set, .result = result, .arena = arena, .diag = diag,
		.packs = set->queue == HD_QUEUE_ROUNDS && packs(set->policy) };
	*result = (struct hd_sched_sim_result){ .ended = "" };
	hd_arena_init(&sim->call, POLICY_BYTES);
	if (sim->packs && set->rates && set->rates->pair)
		sim->table = (struct hd_pair_table){ set->rates->nkinds, set->rates->pair };
	if (set->estimate) {
		if (!sim->table.rate)
			return hd_fail(diag, HD_E_INVAL,
				"nothing is to be estimated: the policy packs no pairs, or their rates are "
				"in no table");
		if ((err = hd_estimator_create(&sim->estimator, set->estimate, set->rates, diag)))
			return err;
		sim->table = *hd_estimator_table(sim->estimator);
	}
	for (uint32_t t = 0; t < set->ntypes; t++) {
		sim->price[t] = set->types[t].price_usd_h;
		sim->ndevices += set->types[t].n;
	}
	sim->wanted = set->end ? set->end - set->first : UINT64_MAX;
	if (set->queue == HD_QUEUE_ROUNDS && (err = open_rounds(sim)))
		return err;
	schedsim_log_setting(sim);
	fetch(sim);
	sim->now_s = sim->more ? sim->ahead.arrival_s : 0;
	return HD_OK;
}

void schedsim_close(struct sched_sim *sim)
{
	for (uint32_t i = 0; i < sim->njobs; i++)
		hd_free(sim->job[i]);
	hd_free(sim->job);
	hd_rounds_destroy(sim->rounds);
	hd_policy_destroy(sim->policy);
	hd_estimator_destroy(sim->estimator);
	hd_arena_finish(&sim->call);
}

static uint32_t place(const struct sched_sim *sim, uint64_t id)
{
	uint32_t from = 0, to = sim->njobs;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;
		if (sim->job[mid]->id < id)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

struct sim_job *schedsim_job(const struct sched_sim *sim, uint64_t id)
{
	uint32_t at = place(sim, id);

	return at < sim->njobs && sim->job[at]->id == id ? sim->job[at] : NULL;
}

struct hd_sim_row *schedsim_row(const struct sched_sim *sim, uint64_t id)
{
	assert(id < sim->result->nrows);
	return &sim->result->row[id];
}

bool schedsim_wanted(const struct sched_sim *sim, uint64_t id) { return !sim->set->end ||
	(id >= sim->set->first && id < sim->set->end); }

bool schedsim_is_done(const struct sched_sim *sim)
{
	if (sim->set->end)
		return sim->over == sim->wanted || (!sim->more && !sim->njobs);
	return !sim->more && !sim->njobs;
}

/* What a factor of a deadline is a factor of. */
static double duration_of(const struct sched_sim *sim, const struct sim_job *job)
{
	double best = 0;

	if (job->listed.duration_s > 0)
		return job->listed.duration_s;
	for (uint32_t t = 0; t < sim->set->ntypes; t++) {
		if (!strcmp(sim->set->types[t].name, "v100") && job->rate[t] > 0)
			return job->listed.steps / job->rate[t];
		best = fmax(best, job->rate[t]);
	}
	return best > 0 ? job->listed.steps / best : INFINITY;
}

static double deadline_of(const struct sched_sim *sim, const struct sim_job *job)
{
	double factor = job->listed.slo > 0 ? job->listed.slo : sim->set->deadline_factor;

	if (isfinite(job->listed.deadline_s))
		return job->listed.deadline_s;
	return factor > 0 ? factor * duration_of(sim, job) : INFINITY;
}

static enum hd_err add_row(struct sched_sim *sim, const struct sim_job *job)
{
	struct hd_sched_sim_result *result = sim->result;

	if (result->nrows == sim->rows_cap) {
		size_t cap = sim->rows_cap ? 2 * sim->rows_cap : 1024;
		struct hd_sim_row *grown = hd_arena_take(sim->arena, cap, sizeof *grown);
		if (!grown)
			return hd_fail(sim->diag, HD_E_NOMEM, "no memory for the rows of %zu jobs", cap);
		if (result->nrows)
			memcpy(grown, result->row, (size_t)result->nrows * sizeof *grown);
		result->row = grown;
		sim->rows_cap = cap;
	}
	struct hd_sim_row *row = &result->row[result->nrows++];
	const struct hd_listed_job *listed = &job->listed;
	*row = (struct hd_sim_row){ .id = job->id, .kind = listed->kind, .user = listed->user,
		.scale = listed->scale, .arrival_s = listed->arrival_s,
		.first_start_s = NAN, .finish_s = NAN, .jct_s = NAN, .rho = NAN,
		.deadline_s = listed->arrival_s + deadline_of(sim, job),
		.name = listed->name, .type = listed->type, .record = listed->record };
	return HD_OK;
}

const char *schedsim_gpu(const struct hd_sched_sim_setting *set, uint32_t type)
{
	return set->partitions ? set->partitions->gpu[type] : set->types[type].name;
}

static void keep_to_partitions(const struct sched_sim *sim, struct sim_job *job)
{
	const struct hd_slurm_partitions *of = sim->set->partitions;

	job->partitions = UINT64_MAX;
	if (!of)
		return;
	job->partitions = hd_slurm_partitions_of(of, job->listed.record ? job->listed.record->partition : "");
	for (uint32_t t = 0; t < sim->set->ntypes; t++)
		job->rate[t] = of->in[t] & job->partitions ? job->rate[t] : 0;
}

/* None but the type that it names. */
static enum hd_err keep_to_type(const struct sched_sim *sim, struct sim_job *job)
{
	bool known = false;

	for (uint32_t t = 0; t < sim->set->ntypes; t++) {
		bool own = !strcmp(schedsim_gpu(sim->set, t), job->listed.type);
		known |= own;
		job->rate[t] = own ? job->rate[t] : 0;
	}
	return known ? HD_OK : hd_fail(sim->diag, HD_E_INPUT,
		"job %llu runs on type \"%.60s\" alone, which this cluster has not",
		(unsigned long long)job->id,
		job->listed.type);
}

static enum hd_err set_rates(struct sched_sim *sim, struct sim_job *job)
{
	const struct hd_sched_sim_setting *set = sim->set;

	job->ikind = HD_SCHED_NONE;
	if (set->rates && (job->ikind = hd_rates_kind(set->rates, job->listed.kind, job->listed.scale)) ==
		HD_RATES_NONE)
		return hd_fail(sim->diag, HD_E_INPUT,
			"job %llu is \"%.80s\" on %u devices, which the rates do not know",
			(unsigned long long)job->id,
			job->listed.kind, job->listed.scale);
	for (uint32_t t = 0; t < set->ntypes; t++)
		if (!hd_sched_in(HD_SCHED_IN_RATE, job->rate[t] = set->rates ? hd_rates_alone(set->rates,
			job->ikind, t) : set->speed ? set->speed[t] : 1))
			return hd_fail(sim->diag, HD_E_INPUT, "job %llu has %g steps/s on type %s; it is %s",
				(unsigned long long)job->id, job->rate[t],
				set->types[t].name, hd_sched_range_words(HD_SCHED_IN_RATE));
	if (job->listed.type && keep_to_type(sim, job))
		return HD_E_INPUT;
	keep_to_partitions(sim, job);
	if (sim->estimator)
		hd_estimator_came(sim->estimator, job->ikind);
	if (!hd_sched_in(HD_SCHED_IN_WEIGHT, job->listed.weight) ||
		!hd_sched_in(HD_SCHED_IN_STEPS, job->listed.steps))
		return hd_fail(sim->diag, HD_E_INPUT,
			"job %llu has %g steps and a weight of %g; these are %s and %s",
			(unsigned long long)job->id,
			job->listed.steps, job->listed.weight, hd_sched_range_words(HD_SCHED_IN_STEPS),
			hd_sched_range_words(HD_SCHED_IN_WEIGHT));
	return HD_OK;
}

static enum hd_err set_entity(struct sched_sim *sim, struct sim_job *job)
{
	const struct hd_sched_sim_setting *set = sim->set;

	job->entity = HD_SCHED_NONE;
	if (!set->nentities)
		return HD_OK;
	if (!*job->listed.user) {
		job->entity = (uint32_t)(job->id % set->nentities);
		return HD_OK;
	}
	for (uint32_t e = 0; e < set->nentities; e++)
		if (!strcmp(set->entities[e].name, job->listed.user))
			job->entity = e;
	return job->entity != HD_SCHED_NONE ? HD_OK : hd_fail(sim->diag, HD_E_INPUT,
		"job %llu is of \"%.80s\", which is no entity",
		(unsigned long long)job->id, job->listed.user);
}

static struct hd_sched_job seen(const struct sched_sim *sim, const struct sim_job *job)
{
	const struct hd_listed_job *listed = &job->listed;
	const struct hd_sim_row *row = schedsim_row(sim, job->id);
	double left = listed->steps - job->done;

	return (struct hd_sched_job){ .id = job->id, .kind = listed->kind, .ikind = job->ikind,
		.scale = listed->scale, .weight = listed->weight,
		.steps_left = left > 0 ? left : 0, .age_s = sim->now_s - listed->arrival_s,
		.deadline_s = isfinite(row->deadline_s) ? row->deadline_s - sim->now_s : INFINITY,
		.entity = job->entity, .lost_s = sim->set->lost_s, .rate = job->rate,
		.elastic = sim->set->elastic };
}

static enum hd_err pair_up(struct sched_sim *sim, const struct sim_job *job)
{
	const uint32_t n = sim->set->ntypes;
	double mine[HD_SCHED_TYPES], other[HD_SCHED_TYPES];
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i + 1 < sim->njobs && !err; i++) {
		const struct sim_job *with = sim->job[i];
		if (with->listed.scale != job->listed.scale)
			continue;
		for (uint32_t t = 0; t < n; t++) {
			const double *rate = sim->table.rate ?
				&sim->table.rate[(((size_t)with->ikind * sim->table.nkinds + job->ikind) * n +
				t) * 2] : NULL;
			other[t] = rate ? rate[0] : 0;
			mine[t] = rate ? rate[1] : 0;
		}
		err = hd_rounds_pair(sim->rounds, with->id, job->id, other, mine, sim->diag);
	}
	return err;
}

enum hd_err schedsim_admit(struct sched_sim *sim)
{
	struct sim_job *job = hd_alloc(sizeof *job + sim->set->ntypes * sizeof *job->rate);
	enum hd_err err = job ? hd_grow(&sim->job, &sim->jobs_cap, (uint64_t)sim->njobs + 1, sizeof *sim->job,
		"jobs of a simulation", sim->diag)
		: HD_E_NOMEM;

	if (err) {
		hd_free(job);
		return hd_fail(sim->diag, err, "no memory for a job");
	}
	*job = (struct sim_job){ .listed = sim->ahead, .id = sim->admitted, .admitted_s = sim->now_s,
		.jobs_before = sim->jobs_time, .run = UINT32_MAX };
	sim->job[sim->njobs++] = job;
	sim->admitted++;
	double came = sim->ahead.arrival_s;
	fetch(sim);
	if (sim->more && !(sim->ahead.arrival_s >= came))
		return hd_fail(sim->diag, HD_E_INPUT,
			"job %llu arrives at %.17g s, the one before at %.17g s: sort the list",
			(unsigned long long)sim->admitted,
			sim->ahead.arrival_s, came);
	if ((err = set_rates(sim, job)) || (err = set_entity(sim, job)) || (err = add_row(sim, job)))
		return err;
	if (sim->njobs > sim->result->most_at_once)
		sim->result->most_at_once = sim->njobs;
	if (!sim->rounds)
		return HD_OK;
	struct hd_sched_job as_seen = seen(sim, job);
	if ((err = hd_rounds_arrive(sim->rounds, &as_seen, sim->set->free_switching ? 0 :
		sim->set->costs.move_s, sim->diag)))
		return err;
	return sim->set->fidelity == HD_FIDELITY_GAVEL && sim->packs ? pair_up(sim, job) : HD_OK;
}

static double rho_of(const struct sched_sim *sim, const struct sim_job *job, double finish_s)
{
	const struct hd_sched_state state = { .ntypes = sim->set->ntypes, .njobs = 1,
		.types = sim->set->types,
		.jobs = &(struct hd_sched_job){ .scale = job->listed.scale, .rate = job->rate } };
	double jct = finish_s - job->listed.arrival_s, x[HD_SCHED_TYPES],
		among = jct > 0 ? (sim->jobs_time - job->jobs_before) / jct : 1;
	double e = hd_sched_isolated(&state, 0, job->rate, (uint32_t)(among > 1.5 ? among + 0.5 : 1),
		sim->set->fidelity == HD_FIDELITY_EXACT, x);

	return e > 0 && job->listed.steps > 0 ? jct * e / job->listed.steps : NAN;
}

void schedsim_begin_pair(const struct sched_sim *sim, struct hd_round_run *run)
{
	if (!sim->estimator || run->nmembers != 2)
		return;
	const struct hd_rates *rates = sim->set->rates;
	const uint32_t a = schedsim_job(sim, run->id[0])->ikind, b = schedsim_job(sim, run->id[1])->ikind,
		t = run->need[0].type;
	const double *is = &rates->pair[(((size_t)a * rates->nkinds + b) * rates->ntypes + t) * 2];

	hd_estimator_ran(sim->estimator, a, b, t);
	run->rate[0] = is[0];
	run->rate[1] = is[1];
}

void schedsim_leave(struct sched_sim *sim, struct sim_job *job, double finish_s, bool dropped)
{
	struct hd_sim_row *row = schedsim_row(sim, job->id);
	uint32_t at = place(sim, job->id);

	row->over = true;
	row->dropped = dropped;
	row->finish_s = finish_s;
	if (!dropped) {
		row->jct_s = finish_s - job->listed.arrival_s;
		row->rho = rho_of(sim, job, finish_s);
		row->met = finish_s <= row->deadline_s;
	}
	sim->over += schedsim_wanted(sim, job->id);
	if (sim->rounds)
		hd_rounds_leave(sim->rounds, job->id);
	hd_free(job);
	memmove(&sim->job[at], &sim->job[at + 1], (sim->njobs - at - 1) * sizeof *sim->job);
	sim->njobs--;
}

enum hd_err schedsim_solve(struct sched_sim *sim)
{
	const struct hd_sched_sim_setting *set = sim->set;
	struct hd_sched_state state = { .ntypes = set->ntypes, .njobs = sim->njobs,
		.table = sim->table.rate ? &sim->table : NULL,
		.nentities = set->nentities, .entities = set->entities };
	struct hd_shares shares = { 0 };

	hd_arena_reset(&sim->call);
	struct hd_sched_type *types = hd_arena_take(&sim->call, set->ntypes, sizeof *types);
	struct hd_sched_job *jobs = hd_arena_take(&sim->call, sim->njobs + 1, sizeof *jobs);
	if (!types || !jobs)
		return hd_fail(sim->diag, HD_E_NOMEM, "no memory for the state of %u jobs", sim->njobs);
	memcpy(types, set->types, set->ntypes * sizeof *types);
	for (uint32_t t = 0; t < set->ntypes; t++) {
		types[t].price_usd_h = sim->price[t];
		types[t].n = hd_rounds_usable(sim->rounds, t);
	}
	for (uint32_t i = 0; i < sim->njobs; i++)
		jobs[i] = seen(sim, sim->job[i]);
	state.types = types;
	state.jobs = jobs;
	enum hd_err err = hd_policy_allocate(sim->policy, &state, &sim->call, &shares, sim->diag);
	if (err)
		return err;
	schedsim_log_solve(sim, &state, &shares);
	sim->result->solves++;
	sim->result->kept += shares.kept;
	return hd_rounds_adopt(sim->rounds, sim->now_s, &state, &shares, sim->diag);
}

static int up(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The smallest value that at least the share p of all does not exceed. */
static double quantile(const double *sorted, size_t n, double p)
{
	size_t at = (size_t)ceil(p * (double)n);

	return n ? sorted[at ? at - 1 : 0] : NAN;
}

void schedsim_finish(struct sched_sim *sim, double busy_s, double device_s)
{
	struct hd_sched_sim_result *result = sim->result;
	double *jct = hd_arena_take(sim->arena, (size_t)result->nrows + 1, sizeof *jct), sum = 0, rho = 0;
	size_t n = 0, nrho = 0;

	for (uint64_t i = 0; i < result->nrows; i++) {
		const struct hd_sim_row *row = &result->row[i];
		result->cost_usd += row->cost_usd;
		result->lost_s += row->lost_s;
		result->starts += row->starts;
		result->moves += row->moves;
		result->resizes += row->resizes;
		if (!schedsim_wanted(sim, i))
			continue;
		result->njobs++;
		result->ndropped += row->dropped;
		result->deadlines += row->deadline_s < INFINITY;
		result->missed += row->deadline_s < INFINITY && row->over && !row->met;
		result->missed_as_published += row->deadline_s < INFINITY && row->jct_s > row->deadline_s;
		if (isnan(row->jct_s))
			continue;
		sum += row->jct_s;
		if (jct)
			jct[n] = row->jct_s;
		n++;
		if (isnan(row->rho))
			continue;
		rho += row->rho;
		nrho++;
		result->worst_rho = fmax(result->worst_rho, row->rho);
	}
	if (jct) {
		qsort(jct, n, sizeof *jct, up);
		result->median_jct_s = quantile(jct, n, 0.5);
		result->p95_jct_s = quantile(jct, n, 0.95);
	}
	result->nover = n;
	result->avg_jct_s = n ? sum / (double)n : NAN;
	result->avg_rho = nrho ? rho / (double)nrho : NAN;
	result->makespan_s = sim->now_s;
	result->utilisation = device_s > 0 ? busy_s / device_s : 0;
}

enum hd_err hd_sched_sim(struct hd_sched_sim_result *result, const struct hd_sched_sim_setting *setting,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct sched_sim sim;
	struct hd_sched_sim_result made;
	enum hd_err err = schedsim_open(&sim, setting, &made, arena, diag);

	if (!err && setting->queue != HD_QUEUE_ROUNDS)
		err = schedsim_queue(&sim);
	else if (!err)
		err = setting->fidelity == HD_FIDELITY_GAVEL ? schedsim_gavel(&sim) : schedsim_ours(&sim);
	if (!err && sim.estimator)
		hd_estimator_account(sim.estimator, &made.estimate);
	if (!err)
		schedsim_log_end(&sim);
	schedsim_close(&sim);
	if (!err)
		*result = made;
	return err;
}
