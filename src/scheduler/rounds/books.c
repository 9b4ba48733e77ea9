#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "scheduler/rounds/int.h"

/* What the published code calls fast first; a type that is not in it comes after, by name. */
/* Drawn workloads, rounds of 60 s, moves of 20 s: the policy cost pays 4 to 17 % less than with 1, and misses
 * fewer deadlines; 60 gains no more (docs/results/prices.md). */
static const double STEADY_KAPPA = 20;
static const char *const published_order[] = { "v100", "p100", "k80" };

static void order_types(struct hd_rounds *r)
{
	uint32_t n = 0;

	for (size_t p = 0; p < sizeof published_order / sizeof *published_order; p++)
		for (uint32_t t = 0; t < r->ntypes; t++)
			if (!strcmp(r->type[t].name, published_order[p]))
				r->order[n++] = t;
	for (uint32_t t = 0; t < r->ntypes; t++) {
		bool listed = false;
		for (uint32_t k = 0; k < n; k++)
			listed |= r->order[k] == t;
		if (!listed)
			r->order[n++] = t;
	}
}

static enum hd_err take_devices(struct hd_rounds *r, const uint32_t *host, struct hd_diag *diag)
{
	uint32_t n = r->first_device[r->ntypes];

	r->usable = hd_alloc(n * sizeof *r->usable);
	r->taken = hd_alloc(n * sizeof *r->taken);
	r->kept_for = hd_alloc(n * sizeof *r->kept_for);
	r->host = hd_alloc(n * sizeof *r->host);
	for (uint32_t d = 0; d < n && r->host; d++) {
		r->host[d] = host ? host[d] : d;
		r->nhosts = r->host[d] >= r->nhosts ? r->host[d] + 1 : r->nhosts;
	}
	r->free_at_host = hd_alloc(r->nhosts * sizeof *r->free_at_host);
	if (!r->usable || !r->taken || !r->kept_for || !r->host || !r->free_at_host)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u devices", n);
	for (uint32_t d = 0; d < n; d++) {
		r->usable[d] = true;
		r->kept_for[d] = 0;
	}
	return HD_OK;
}

enum hd_err hd_rounds_create(struct hd_rounds **rounds, const struct hd_rounds_setting *setting,
	uint32_t ntypes, const struct hd_sched_type *types,
	const uint32_t *host, struct hd_diag *diag)
{
	bool gavel = setting->fidelity == HD_FIDELITY_GAVEL;
	struct hd_rounds *r;
	uint64_t n = 0;

	for (uint32_t t = 0; t < ntypes && t < HD_SCHED_TYPES; t++)
		n += types[t].n;
	if (ntypes == 0 || ntypes > HD_SCHED_TYPES || n == 0 || n > HD_SCHED_DEVICES)
		return hd_fail(diag, HD_E_INVAL, "%llu devices of %u types: 1 to %d of 1 to %d",
			(unsigned long long)n, ntypes, HD_SCHED_DEVICES,
			HD_SCHED_TYPES);
	if (!(setting->round_s >= 0) || !(setting->min_reset_s >= 0) || isinf(setting->round_s))
		return hd_fail(diag, HD_E_INVAL,
			"a round of %g s and %g s between resets: both are 0 (standard) or more",
			setting->round_s,
			setting->min_reset_s);
	if (!(r = hd_alloc(sizeof *r)))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the rounds");
	memset(r, 0, sizeof *r);
	r->set = *setting;
	r->set.round_s = setting->round_s > 0 ? setting->round_s : gavel ? 360 : 60;
	r->set.min_reset_s = setting->min_reset_s > 0 ? setting->min_reset_s : gavel ? 1920 : 30;
	r->set.kappa = gavel || setting->kappa < 0 ? 0 : setting->kappa > 0 ? setting->kappa :
		setting->steady ? STEADY_KAPPA : 1;
	r->set.reserve_after = setting->reserve_after ? setting->reserve_after : 3;
	r->ntypes = ntypes;
	for (uint32_t t = 0; t < ntypes; t++) {
		r->type[t] = types[t];
		r->first_device[t + 1] = r->first_device[t] + types[t].n;
	}
	order_types(r);
	hd_mt_init(&r->mt, setting->seed + 5);
	enum hd_err err = take_devices(r, host, diag);
	if (err) {
		hd_rounds_destroy(r);
		return err;
	}
	*rounds = r;
	return HD_OK;
}

void hd_rounds_destroy(struct hd_rounds *r)
{
	if (!r)
		return;
	void *owned[] = { r->host, r->usable, r->taken, r->kept_for, r->free_at_host, r->cell, r->job,
		r->list, r->pick, r->run, r->old_run, r->device,
		r->old_device, r->limit };
	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
		hd_free(owned[i]);
	hd_free(r);
}

struct round_job *rounds_job(const struct hd_rounds *r, uint64_t id)
{
	uint32_t from = 0, to = r->njobs;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;
		if (r->job[mid].id < id)
			from = mid + 1;
		else
			to = mid;
	}
	return from < r->njobs && r->job[from].id == id ? &r->job[from] : NULL;
}

/* The younger member, singles first, the other member, needs. */
int rounds_order(const struct combination *a, const struct combination *b)
{
	uint64_t x = a->id[a->nmembers - 1], y = b->id[b->nmembers - 1];

	if (x != y)
		return x < y ? -1 : 1;
	if (a->nmembers != b->nmembers)
		return a->nmembers < b->nmembers ? -1 : 1;
	if (a->id[0] != b->id[0])
		return a->id[0] < b->id[0] ? -1 : 1;
	for (uint8_t k = 0; k < a->nneeds && k < b->nneeds; k++) {
		if (a->need[k].type != b->need[k].type)
			return a->need[k].type < b->need[k].type ? -1 : 1;
		if (a->need[k].n != b->need[k].n)
			return a->need[k].n < b->need[k].n ? -1 : 1;
	}
	return (a->nneeds > b->nneeds) - (a->nneeds < b->nneeds);
}

static struct combination *find(const struct hd_rounds *r, const struct combination *key)
{
	uint32_t from = 0, to = r->ncells;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;
		if (rounds_order(&r->cell[mid], key) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from < r->ncells && rounds_order(&r->cell[from], key) == 0 ? &r->cell[from] : NULL;
}

static enum hd_err add(struct hd_rounds *r, const struct combination *cell, struct hd_diag *diag)
{
	enum hd_err err = hd_grow(&r->cell, &r->cells_cap, (uint64_t)r->ncells + 1, sizeof *r->cell,
		"entries of the rounds", diag);

	if (err)
		return err;
	uint32_t at = r->ncells++;
	for (; at && rounds_order(&r->cell[at - 1], cell) > 0; at--)
		r->cell[at] = r->cell[at - 1];
	r->cell[at] = *cell;
	return HD_OK;
}

enum hd_err hd_rounds_arrive(struct hd_rounds *r, const struct hd_sched_job *job, double switch_s,
	struct hd_diag *diag)
{
	enum hd_err err;

	rounds_bury(r);
	if (rounds_job(r, job->id))
		return hd_fail(diag, HD_E_INVAL, "job %llu arrives, and is there",
			(unsigned long long)job->id);
	if ((err = hd_grow(&r->job, &r->jobs_cap, (uint64_t)r->njobs + 1, sizeof *r->job,
		"entries of the rounds", diag)))
		return err;
	for (uint32_t t = 0; t < r->ntypes; t++) {
		struct combination cell = { .id = { job->id }, .nmembers = 1, .nneeds = 1, .own = true,
			.need = { { t, job->scale } }, .rate = { job->rate[t] },
			.t = r->set.round_s / 2 };
		if (r->type[t].n && (err = add(r, &cell, diag)))
			return err;
	}
	uint32_t at = r->njobs++;
	for (; at && r->job[at - 1].id > job->id; at--)          /* one that was held is older than others */
		r->job[at] = r->job[at - 1];
	r->job[at] = (struct round_job){ .id = job->id, .scale = job->scale, .switch_s = switch_s,
		.held = UINT32_MAX };
	r->stale = true;
	return HD_OK;
}

enum hd_err hd_rounds_limit(struct hd_rounds *r, uint32_t limit, uint32_t devices, uint32_t jobs,
	struct hd_diag *diag)
{
	enum hd_err err = hd_grow(&r->limit, &r->limits_cap, (uint64_t)limit + 1, sizeof *r->limit,
		"limits of the rounds", diag);

	if (err)
		return err;
	for (; r->nlimits <= limit; r->nlimits++)
		r->limit[r->nlimits] = (struct round_limit){ UINT32_MAX, UINT32_MAX, 0, 0 };
	r->stale |= r->limit[limit].devices != devices || r->limit[limit].jobs != jobs;
	r->limit[limit] = (struct round_limit){ devices, jobs, 0, 0 };
	return HD_OK;
}

void hd_rounds_limit_job(struct hd_rounds *r, uint64_t id, const uint32_t *limit, uint32_t n)
{
	struct round_job *job = rounds_job(r, id);

	assert(job && n <= HD_ROUND_LIMITS);
	job->nlimits = n;
	for (uint32_t i = 0; i < n; i++) {
		assert(limit[i] < r->nlimits);
		job->limit[i] = limit[i];
	}
}

uint32_t hd_rounds_over(const struct hd_rounds *r, uint64_t id)
{
	const struct round_job *job = rounds_job(r, id);

	return job && job->over ? job->over - 1 : UINT32_MAX;
}

enum hd_err hd_rounds_pair(struct hd_rounds *r, uint64_t a, uint64_t b, const double *rate_a,
	const double *rate_b, struct hd_diag *diag)
{
	const struct round_job *job = rounds_job(r, a);
	enum hd_err err = HD_OK;

	assert(a < b && job && rounds_job(r, b) && rounds_job(r, b)->scale == job->scale);
	for (uint32_t t = 0; t < r->ntypes && !err; t++) {
		struct combination cell = { .id = { a, b }, .nmembers = 2, .nneeds = 1, .own = true,
			.need = { { t, job->scale } }, .rate = { rate_a[t], rate_b[t] } };
		if (r->type[t].n)
			err = add(r, &cell, diag);
	}
	return err;
}

void hd_rounds_leave(struct hd_rounds *r, uint64_t id)
{
	struct round_job *job = rounds_job(r, id);

	if (!job)
		return;
	job->dead = r->dead = r->stale = true;
	for (uint32_t i = 0; i < r->ncells; i++)
		if (r->cell[i].id[0] == id || (r->cell[i].nmembers == 2 && r->cell[i].id[1] == id))
			r->cell[i].dead = true;
}

/* Ways that a policy made up of the job's old size go; its own ones keep their places, one a type. */
void hd_rounds_scale(struct hd_rounds *r, uint64_t id, uint32_t scale, const double *rate)
{
	rounds_bury(r);
	for (uint32_t i = 0; i < r->ncells; i++)
		if (r->cell[i].nmembers == 1 && r->cell[i].id[0] == id)
			r->dead |= r->cell[i].dead = !r->cell[i].own;
	rounds_bury(r);
	for (uint32_t i = 0; i < r->ncells; i++)
		if (r->cell[i].nmembers == 1 && r->cell[i].id[0] == id) {
			r->cell[i].need[0].n = scale;
			r->cell[i].rate[0] = rate[r->cell[i].need[0].type];
		}
	rounds_job(r, id)->scale = scale;
	r->stale = true;
}

/* Runs of the last round name jobs by id and stay valid; cells are looked up again by hd_rounds_ran. */
void rounds_bury(struct hd_rounds *r)
{
	uint32_t n = 0;

	if (!r->dead)
		return;
	for (uint32_t i = 0; i < r->ncells; i++)
		if (!r->cell[i].dead)
			r->cell[n++] = r->cell[i];
	r->ncells = n;
	n = 0;
	for (uint32_t i = 0; i < r->njobs; i++)
		if (!r->job[i].dead)
			r->job[n++] = r->job[i];
	r->njobs = n;
	r->dead = false;
}

void hd_rounds_stale(struct hd_rounds *r) { r->stale = true; }

void hd_rounds_device(struct hd_rounds *r, uint32_t device, bool usable)
{
	assert(device < r->first_device[r->ntypes]);
	r->stale |= r->usable[device] != usable;
	r->usable[device] = usable;
}

bool hd_rounds_device_usable(const struct hd_rounds *r, uint32_t device) { return r->usable[device]; }

uint32_t hd_rounds_usable(const struct hd_rounds *r, uint32_t type)
{
	uint32_t n = 0;

	for (uint32_t d = r->first_device[type]; d < r->first_device[type + 1]; d++)
		n += r->usable[d];
	return n;
}

bool hd_rounds_due(const struct hd_rounds *r, double now_s)
{
	return r->stale && (!r->was_reset || now_s - r->last_reset_s >= r->set.min_reset_s);
}

void hd_rounds_ask(struct hd_rounds *r)
{
	r->asked = true;
	r->stale = false;
}

/* The published code knows "never" as the time 0: what is due since then is due since 0. */
void hd_rounds_forget(struct hd_rounds *r)
{
	r->was_reset = false;
	r->last_reset_s = 0;
}

static void close_books(struct hd_rounds *r, double now_s)
{
	double half = r->set.round_s / 2, elapsed = now_s - r->last_reset_s;

	memset(r->worked, 0, sizeof r->worked);
	for (uint32_t i = 0; i < r->ncells; i++) {
		struct combination *c = &r->cell[i];
		c->deficit += c->x * elapsed - (c->t - half);
		c->t = half;
		for (uint8_t k = 0; k < c->nneeds; k++)
			r->worked[c->need[k].type] += half;
		c->x = 0;
		c->known = true;
	}
}

static enum hd_err open_shape(struct hd_rounds *r, const struct hd_sched_state *state,
	const struct hd_shape *shape, double x, struct hd_diag *diag)
{
	struct combination key = { .nmembers = shape->nmembers, .nneeds = shape->nneeds, .known = true,
		.x = x,
		.t = r->set.round_s / 2 };
	struct combination *found;

	for (uint8_t m = 0; m < shape->nmembers; m++) {
		key.id[m] = state->jobs[shape->member[m]].id;
		key.rate[m] = shape->rate[m];
		if (!rounds_job(r, key.id[m]))
			return hd_fail(diag, HD_E_BUG, "shares of job %llu, which never arrived",
				(unsigned long long)key.id[m]);
	}
	memcpy(key.need, shape->need, sizeof key.need);
	if ((found = find(r, &key))) {
		found->x = x;
		return HD_OK;
	}
	for (uint8_t k = 0; k < key.nneeds; k++)
		r->worked[key.need[k].type] += key.t;
	return add(r, &key, diag);
}

enum hd_err hd_rounds_adopt(struct hd_rounds *r, double now_s, const struct hd_sched_state *state,
	const struct hd_shares *shares, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	uint32_t n = 0;

	rounds_bury(r);
	close_books(r, now_s);
	for (uint32_t i = 0; i < shares->nshapes && !err; i++)
		err = open_shape(r, state, &shares->shape[i], shares->x[i], diag);
	if (err)
		return err;
	/* ways that the policy made up and no longer wants */
	for (uint32_t i = 0; i < r->ncells; i++)
		if (r->cell[i].own || r->cell[i].x > 0)
			r->cell[n++] = r->cell[i];
		else
			for (uint8_t k = 0; k < r->cell[i].nneeds; k++)
				r->worked[r->cell[i].need[k].type] -= r->set.round_s / 2;
	r->ncells = n;
	r->last_reset_s = now_s;
	/* published: a reset at time 0 is none */
	r->was_reset = r->set.fidelity != HD_FIDELITY_GAVEL || now_s > 0;
	r->stale &= r->asked;
	r->asked = false;
	r->conserving = shares->work_conserving;
	return HD_OK;
}

static void set_priorities(struct hd_rounds *r)
{
	for (uint32_t i = 0; i < r->ncells; i++) {
		struct combination *c = &r->cell[i];
		double worked = r->worked[c->need[0].type], fraction = worked > 0 ? c->t / worked : 0;
		bool runs = c->rate[0] > 0 && (c->nmembers == 1 || c->rate[1] > 0);
		c->priority = !c->known || !(c->x > 0) || !runs ? 0 : fraction > 0 ? c->x / fraction :
			c->x * 1e9;
		c->plain = c->priority;
		const struct round_job *job = r->set.kappa > 0 &&
			c->priority > 0 ? rounds_job(r, c->id[0]) : NULL;
		if (!job || job->held == UINT32_MAX)
			continue;
		const struct hd_round_run *held = &r->run[job->held];
		if (held->nneeds == c->nneeds && held->nmembers == c->nmembers && held->id[1] == c->id[1] &&
			!memcmp(held->need, c->need,
			c->nneeds * sizeof *c->need))
			c->priority *= 1 + r->set.kappa * job->switch_s / r->set.round_s;
	}
}

bool rounds_fits(const struct combination *c, const uint32_t *left)
{
	for (uint8_t k = 0; k < c->nneeds; k++)
		if (c->need[k].n > left[c->need[k].type])
			return false;
	return true;
}

/* The round becomes the last round. */
static void turn(struct hd_rounds *r)
{
	struct hd_round_run *run = r->old_run;
	uint32_t *device = r->old_device, cap = r->old_cap, device_cap = r->old_device_cap;

	r->old_run = r->run;
	r->nold = r->nruns;
	r->old_cap = r->runs_cap;
	r->old_device = r->device;
	r->old_device_cap = r->device_cap;
	r->run = run;
	r->runs_cap = cap;
	r->nruns = 0;
	r->device = device;
	r->device_cap = device_cap;
	r->ndevices_used = 0;
}

static enum hd_err close_round(struct hd_rounds *r, struct hd_round *round)
{
	for (uint32_t j = 0; j < r->njobs; j++) {
		r->job[j].held = UINT32_MAX;
		r->job[j].waited++;
	}
	for (uint32_t i = 0; i < r->nruns; i++)
		for (uint8_t m = 0; m < r->run[i].nmembers; m++) {
			struct round_job *job = rounds_job(r, r->run[i].id[m]);
			job->held = i;
			job->waited = job->first_out = 0;
		}
	*round = (struct hd_round){ r->nruns, r->run, r->device };
	return HD_OK;
}

static enum hd_err room(struct hd_rounds *r, struct hd_diag *diag)
{
	uint32_t devices = r->first_device[r->ntypes];
	enum hd_err err = hd_grow(&r->list, &r->list_cap, (uint64_t)r->ncells + r->njobs + 1, sizeof *r->list,
		"entries of the rounds", diag);

	if (!err)
		err = hd_grow(&r->pick, &r->picks_cap, (uint64_t)r->njobs + 1, sizeof *r->pick,
			"entries of the rounds", diag);
	if (!err)
		err = hd_grow(&r->run, &r->runs_cap, (uint64_t)r->njobs + 1, sizeof *r->run,
			"entries of the rounds", diag);
	if (!err)
		err = hd_grow(&r->old_run, &r->old_cap, (uint64_t)r->njobs + 1, sizeof *r->old_run,
			"entries of the rounds", diag);
	if (!err)
		err = hd_grow(&r->device, &r->device_cap, devices, sizeof *r->device, "entries of the rounds",
			diag);
	return err ? err : hd_grow(&r->old_device, &r->old_device_cap, devices, sizeof *r->old_device,
		"entries of the rounds", diag);
}

enum hd_err hd_rounds_next(struct hd_rounds *r, struct hd_round *round, struct hd_diag *diag)
{
	uint32_t types[HD_SCHED_TYPES];
	enum hd_err err;

	rounds_bury(r);
	if ((err = room(r, diag)))
		return err;
	memcpy(types, r->order, sizeof types);
	if (r->set.blind && r->set.fidelity == HD_FIDELITY_GAVEL)
		hd_mt_shuffle(&r->mt, types, r->ntypes);
	set_priorities(r);
	turn(r);
	r->npicks = 0;
	r->mid = false;
	for (uint32_t j = 0; j < r->njobs; j++) {
		r->job[j].picked = false;
		r->job[j].walked = true;
	}
	if (r->set.fidelity == HD_FIDELITY_GAVEL) {
		rounds_pick_gavel(r, types);
		err = rounds_place_gavel(r, types, diag);
	} else {
		rounds_pick(r, false);
		err = rounds_place(r, diag);
	}
	return err ? err : close_round(r, round);
}

enum hd_err hd_rounds_offer(struct hd_rounds *r, struct hd_round *round, struct hd_diag *diag)
{
	enum hd_err err;

	assert(r->set.fidelity == HD_FIDELITY_EXACT);
	rounds_bury(r);
	if ((err = room(r, diag)))
		return err;
	set_priorities(r);
	turn(r);
	r->npicks = 0;
	r->mid = true;
	for (uint32_t j = 0; j < r->njobs; j++)
		r->job[j].picked = false;
	rounds_pick(r, true);
	if (!(err = rounds_place(r, diag)))
		err = close_round(r, round);
	return err;
}

void hd_rounds_ran(struct hd_rounds *r, const struct hd_round_run *run, double seconds)
{
	struct combination key = { .nmembers = run->nmembers, .nneeds = run->nneeds,
		.id = { run->id[0], run->id[1] } }, *c;

	memcpy(key.need, run->need, sizeof key.need);
	if (!(c = find(r, &key)))
		return;
	c->t += seconds;
	for (uint8_t k = 0; k < run->nneeds; k++)
		r->worked[run->need[k].type] += seconds;
}

bool hd_rounds_view(const struct hd_rounds *r, uint64_t id, uint32_t type, struct hd_cell_view *view)
{
	const struct round_job *job = rounds_job(r, id);
	struct combination key = { .id = { id }, .nmembers = 1, .nneeds = 1,
		.need = { { type, job ? job->scale : 0 } } };
	const struct combination *c = job ? find(r, &key) : NULL;

	if (c)
		*view = (struct hd_cell_view){ c->x, c->t, c->deficit, c->priority };
	return c;
}
