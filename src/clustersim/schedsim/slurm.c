#define _GNU_SOURCE
/* Slurm's order and backfill, by the rules of slurm.h.
 *
 * The queue is sorted at each pass in which a device is free; a profile of each type holds what running jobs
 * release by their limits and what jobs before have reserved. A pass costs (jobs looked at) x (steps of a
 * profile). */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "clustersim/schedsim/profile.h"
#include "clustersim/schedsim/queue.h"

struct waiting { uint64_t id; double priority; uint32_t owner; };

/* A user in an account. */
struct owner {
	const char *account, *user;
	double share, usage;                      /* usage: device seconds, decayed until used_s */
	uint32_t devices, iaccount;               /* devices: held now */
	double level, factor;
};
struct account { const char *name; double share, usage, users_share, level; };

struct running { uint64_t id; double end_s; uint32_t n; };

struct slurm {
	const struct hd_slurm_setting *set;
	struct job_queue *q;
	struct waiting *queue;                    /* owned */
	struct owner *owner;                      /* owned, in the order in which they came */
	struct account *account;                  /* owned */
	uint32_t *rank;                           /* owned: owners, the first first */
	uint32_t *of;                             /* owned, by id: its owner */
	struct running *running[HD_SCHED_TYPES];  /* owned, by end */
	uint32_t nqueue, queue_cap, nowners, owner_cap, naccounts, account_cap, rank_cap, of_cap;
	uint32_t nrunning[HD_SCHED_TYPES], running_cap[HD_SCHED_TYPES];
	double used_s;
};

enum hd_err slurm_create(struct slurm **out, const struct hd_slurm_setting *set, struct job_queue *q)
{
	struct slurm *s = hd_alloc(sizeof *s);

	if (!s)
		return hd_fail(q->sim->diag, HD_E_NOMEM, "no memory for a queue");
	*s = (struct slurm){ .set = set, .q = q, .used_s = q->sim->now_s };
	*out = s;
	return HD_OK;
}

void slurm_destroy(struct slurm *s)
{
	if (!s)
		return;
	void *owned[] = { s->queue, s->owner, s->account, s->rank, s->of };
	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
		hd_free(owned[i]);
	for (uint32_t t = 0; t < HD_SCHED_TYPES; t++)
		hd_free(s->running[t]);
	hd_free(s);
}

/* ---- what is said of a name ---- */

static double number_of(const struct hd_slurm_setting *set, enum hd_slurm_of of, const char *name,
	double otherwise)
{
	for (uint32_t i = 0; i < set->nnumbers; i++)
		if (set->number[i].of == of && !strcmp(set->number[i].name, name))
			return set->number[i].value;
	return otherwise;
}

static double most_of(const struct hd_slurm_setting *set, enum hd_slurm_of of, double otherwise)
{
	double most = otherwise;

	for (uint32_t i = 0; i < set->nnumbers; i++)
		if (set->number[i].of == of)
			most = fmax(most, set->number[i].value);
	return most;
}

static const char *account_of(const struct sim_job *job)
{
	return job->listed.record ? job->listed.record->account : "";
}

static double limit_of(const struct slurm *s, const struct sim_job *job)
{
	const double limit_s = job->listed.record ? job->listed.record->limit_s : NAN;

	return isfinite(limit_s) && limit_s > 0 ? limit_s : s->set->limit_s;
}

/* ---- usage and fair share ---- */

static enum hd_err add_account(struct slurm *s, const char *name, uint32_t *at)
{
	for (*at = 0; *at < s->naccounts; ++*at)
		if (!strcmp(s->account[*at].name, name))
			return HD_OK;
	enum hd_err err = hd_grow(&s->account, &s->account_cap, (uint64_t)s->naccounts + 1,
		sizeof *s->account, "accounts of a simulation", s->q->sim->diag);
	if (!err)
		s->account[s->naccounts++] = (struct account){ .name = name,
			.share = number_of(s->set, HD_SLURM_SHARE, name, 1) };
	return err;
}

static enum hd_err owner_of(struct slurm *s, const struct sim_job *job, uint32_t *at)
{
	const char *account = account_of(job), *user = job->listed.user;
	uint32_t iaccount;
	enum hd_err err;

	for (*at = 0; *at < s->nowners; ++*at)
		if (!strcmp(s->owner[*at].user, user) && !strcmp(s->owner[*at].account, account))
			return HD_OK;
	if ((err = add_account(s, account, &iaccount)) ||
		(err = hd_grow(&s->owner, &s->owner_cap, (uint64_t)s->nowners + 1, sizeof *s->owner,
		"users of a simulation", s->q->sim->diag)) ||
		(err = hd_grow(&s->rank, &s->rank_cap, (uint64_t)s->nowners + 1, sizeof *s->rank,
		"users of a simulation", s->q->sim->diag)))
		return err;
	s->rank[s->nowners] = s->nowners;
	s->owner[s->nowners++] = (struct owner){ account, user,
		number_of(s->set, HD_SLURM_SHARE, user, 1), .iaccount = iaccount };
	s->account[iaccount].users_share += s->owner[*at].share;
	return HD_OK;
}

/* Half-life decay of what was used, and of what is used meanwhile: the integral of 2^(-(t - x) / h). */
static void use(struct slurm *s)
{
	const double passed = s->q->sim->now_s - s->used_s, h = s->set->half_life_s,
		left = exp2(-passed / h);

	for (uint32_t i = 0; i < s->nowners; i++)
		s->owner[i].usage = s->owner[i].usage * left + s->owner[i].devices * h / log(2) * (1 - left);
	s->used_s = s->q->sim->now_s;
}

static double level_of(double share, double shares, double usage, double usages)
{
	return usage > 0 ? share / shares / (usage / usages) : INFINITY;
}

static int by_level(const void *a, const void *b, void *self)
{
	const struct slurm *s = self;
	const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct owner *x = &s->owner[i], *y = &s->owner[k];
	const double level[2][2] = { { s->account[x->iaccount].level, s->account[y->iaccount].level },
		{ x->level, y->level } };

	for (int l = 0; l < 2; l++)
		if (level[l][0] > level[l][1] || level[l][0] < level[l][1])
			return level[l][0] > level[l][1] ? -1 : 1;
	return 0;
}

static void rank_owners(struct slurm *s)
{
	double shares = 0, usages = 0;

	for (uint32_t a = 0; a < s->naccounts; a++) {
		s->account[a].usage = 0;
		shares += s->account[a].share;
	}
	for (uint32_t i = 0; i < s->nowners; i++) {
		s->account[s->owner[i].iaccount].usage += s->owner[i].usage;
		usages += s->owner[i].usage;
	}
	for (uint32_t a = 0; a < s->naccounts; a++)
		s->account[a].level = level_of(s->account[a].share, shares, s->account[a].usage, usages);
	for (uint32_t i = 0; i < s->nowners; i++) {
		const struct account *a = &s->account[s->owner[i].iaccount];
		s->owner[i].level = level_of(s->owner[i].share, a->users_share, s->owner[i].usage, a->usage);
	}
	if (s->nowners)
		qsort_r(s->rank, s->nowners, sizeof *s->rank, by_level, s);
	for (uint32_t k = 0, first = 0; k < s->nowners; k++) {
		first = k && !by_level(&s->rank[k - 1], &s->rank[k], s) ? first : k;
		s->owner[s->rank[k]].factor = (double)(s->nowners - first) / s->nowners;
	}
}

/* ---- priorities ---- */

static double priority_of(const struct slurm *s, const struct waiting *w)
{
	const struct hd_slurm_setting *set = s->set;
	const struct sim_job *job = schedsim_job(s->q->sim, w->id);
	const struct hd_job_record *r = job->listed.record;
	const double size = (double)job->listed.scale / s->q->sim->ndevices,
		age = fmin(1, (s->q->sim->now_s - job->listed.arrival_s) / set->max_age_s),
		partition = number_of(set, HD_SLURM_PARTITION, r ? r->partition : "", 1) /
			most_of(set, HD_SLURM_PARTITION, 1),
		most_qos = most_of(set, HD_SLURM_QOS, 0),
		qos = most_qos > 0 ? number_of(set, HD_SLURM_QOS, r ? r->qos : "", 0) / most_qos : 0;

	return floor(set->age * age + set->fairshare * s->owner[w->owner].factor +
		set->job_size * (set->favor_small ? 1 - size : size) + set->partition * partition +
		set->qos * qos);
}

static int by_priority(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->priority > y->priority || x->priority < y->priority)
		return x->priority > y->priority ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

enum hd_err slurm_came(struct slurm *s, const struct sim_job *job)
{
	uint32_t owner = 0;
	enum hd_err err = owner_of(s, job, &owner);

	if (!err)
		err = hd_grow(&s->queue, &s->queue_cap, (uint64_t)s->nqueue + 1, sizeof *s->queue,
			"jobs that wait in a simulation", s->q->sim->diag);
	if (!err)
		err = hd_grow(&s->of, &s->of_cap, job->id + 1, sizeof *s->of, "jobs of a simulation",
			s->q->sim->diag);
	if (err)
		return err;
	s->of[job->id] = owner;
	s->queue[s->nqueue++] = (struct waiting){ .id = job->id, .owner = owner };
	return HD_OK;
}

void slurm_ended(struct slurm *s, const struct sim_job *job)
{
	const uint32_t type = s->q->type[job->id];
	uint32_t at = 0;

	use(s);
	s->owner[s->of[job->id]].devices -= job->listed.scale;
	while (s->running[type][at].id != job->id)
		at++;
	memmove(&s->running[type][at], &s->running[type][at + 1],
		(--s->nrunning[type] - at) * sizeof *s->running[type]);
}

/* ---- a pass ---- */

struct outlook { struct profile profile[HD_SCHED_TYPES]; bool closed[HD_SCHED_TYPES],
	reserved[HD_SCHED_TYPES];
	};

static enum hd_err start(struct slurm *s, const struct waiting *w, uint32_t type)
{
	struct sched_sim *sim = s->q->sim;
	struct sim_job *job = schedsim_job(sim, w->id);
	const double end_s = sim->now_s + limit_of(s, job);
	uint32_t at = s->nrunning[type];
	enum hd_err err = hd_grow(&s->running[type], &s->running_cap[type], (uint64_t)at + 1,
		sizeof *s->running[type], "running jobs of a simulation", sim->diag);

	if (err)
		return err;
	for (; at && s->running[type][at - 1].end_s > end_s; at--)
		s->running[type][at] = s->running[type][at - 1];
	s->running[type][at] = (struct running){ w->id, end_s, job->listed.scale };
	s->nrunning[type]++;
	s->owner[w->owner].devices += job->listed.scale;
	return queue_begin(s->q, job, type, sim->now_s + job->listed.steps / job->rate[type]);
}

static bool open_pass(struct slurm *s, struct outlook *p)
{
	struct sched_sim *sim = s->q->sim;

	*p = (struct outlook){ .closed = { false } };
	hd_arena_reset(&sim->call);
	for (uint32_t t = 0; t < sim->set->ntypes; t++) {
		struct profile_step *room = hd_arena_take(&sim->call,
			s->nrunning[t] + 2 * (size_t)s->set->depth + 2 * s->nqueue + 3, sizeof *room);
		if (!room)
			return false;
		profile_open(&p->profile[t], room, sim->now_s, sim->set->types[t].n - s->q->busy_of[t]);
		for (uint32_t i = 0; i < s->nrunning[t]; i++)
			profile_release(&p->profile[t], fmax(s->running[t][i].end_s, sim->now_s + 1),
				s->running[t][i].n);
	}
	return true;
}

/* The type on which it can begin soonest; INFINITY: on none. */
static double soonest(const struct slurm *s, const struct outlook *p, const struct sim_job *job, uint32_t
	*type)
{
	double best = INFINITY;

	for (uint32_t t = 0; t < s->q->sim->set->ntypes; t++) {
		if (!(job->rate[t] > 0) || p->closed[t])
			continue;
		double at_s = profile_earliest(&p->profile[t], job->listed.scale, limit_of(s, job));
		if (at_s < best) {
			best = at_s;
			*type = t;
		}
	}
	return best;
}

/* A job that has to wait: what it keeps later ones from. */
static void hold_back(const struct slurm *s, struct outlook *p, const struct sim_job *job, uint32_t type,
	double at_s)
{
	if (s->set->backfill == HD_BACKFILL_NONE) {
		for (uint32_t t = 0; t < s->q->sim->set->ntypes; t++)
			p->closed[t] |= job->rate[t] > 0;
		return;
	}
	if (s->set->backfill == HD_BACKFILL_EASY && p->reserved[type])
		return;
	p->reserved[type] = true;
	profile_take(&p->profile[type], at_s, limit_of(s, job), job->listed.scale);
}

static bool is_free(const struct slurm *s, const struct outlook *p)
{
	for (uint32_t t = 0; t < s->q->sim->set->ntypes; t++)
		if (!p->closed[t] && p->profile[t].step[0].free)
			return true;
	return false;
}

static enum hd_err look(struct slurm *s, struct outlook *p)
{
	const double now_s = s->q->sim->now_s;
	uint32_t kept = 0, looked = 0, i = 0;
	enum hd_err err = HD_OK;

	for (; i < s->nqueue && !err && looked < s->set->depth && is_free(s, p); i++) {
		const struct waiting *w = &s->queue[i];
		const struct sim_job *job = schedsim_job(s->q->sim, w->id);
		uint32_t type = 0;
		double at_s = soonest(s, p, job, &type);
		if (at_s <= now_s) {
			profile_take(&p->profile[type], now_s, limit_of(s, job), job->listed.scale);
			err = start(s, w, type);
			continue;
		}
		if (at_s < INFINITY)
			hold_back(s, p, job, type, at_s);
		looked++;
		s->queue[kept++] = *w;
	}
	memmove(&s->queue[kept], &s->queue[i], (s->nqueue - i) * sizeof *s->queue);
	s->nqueue -= i - kept;
	return err;
}

enum hd_err slurm_pass(struct slurm *s)
{
	struct outlook p;

	if (!s->nqueue || s->q->busy == s->q->sim->ndevices)
		return HD_OK;
	use(s);
	rank_owners(s);
	for (uint32_t i = 0; i < s->nqueue; i++)
		s->queue[i].priority = priority_of(s, &s->queue[i]);
	qsort(s->queue, s->nqueue, sizeof *s->queue, by_priority);
	if (!open_pass(s, &p))
		return hd_fail(s->q->sim->diag, HD_E_NOMEM, "no memory for a queue of %u jobs", s->nqueue);
	s->q->sim->result->solves++;
	return look(s, &p);
}
