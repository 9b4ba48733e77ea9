#define _GNU_SOURCE
/* Slurm's order and backfill, by the rules of slurm.h.
 *
 * The queue is sorted at each pass in which a device is free; a profile of each type holds what running jobs
 * release by their limits and what jobs before have reserved. A pass costs (jobs looked at) x (steps of a
 * profile). A job that is in the queue by several partitions has started by one of them when the others are
 * looked at: these are dropped then. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "clustersim/schedsim/profile.h"
#include "clustersim/schedsim/queue.h"

/* A job in one of its partitions; ANY: it names none that is there. */
struct waiting { uint64_t id; double priority; uint32_t owner, partition, tier; };
enum { ANY = HD_SLURM_PARTITIONS };

/* A user in an account. */
struct owner {
	const char *account, *user;
	double share, usage;                      /* usage: device seconds, decayed until used_s */
	uint32_t devices, iaccount;               /* devices: held now */
	double level, factor;
};
struct account { const char *name; double share, usage, users_share, level; };

struct running { uint64_t id; double end_s; uint32_t n, partition; };

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
	bool preempts;                            /* jobs of some partition may be */
};

enum hd_err slurm_create(struct slurm **out, const struct hd_slurm_setting *set, struct job_queue *q)
{
	struct slurm *s = hd_alloc(sizeof *s);

	if (!s)
		return hd_fail(q->sim->diag, HD_E_NOMEM, "no memory for a queue");
	*s = (struct slurm){ .set = set, .q = q, .used_s = q->sim->now_s };
	for (uint32_t p = 0; q->sim->set->partitions && p < q->sim->set->partitions->n; p++)
		s->preempts |= q->sim->set->partitions->at[p].preempted != HD_PREEMPTED_NOT;
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

static const struct hd_slurm_partition *partition_at(const struct slurm *s, uint32_t p)
{
	static const struct hd_slurm_partition any = { .name = "", .tier = 1, .factor = 1,
		.limit_s = INFINITY };

	return p == ANY ? &any : &s->q->sim->set->partitions->at[p];
}

/* That of a partition over the largest of all. */
static double partition_factor(const struct slurm *s, const struct sim_job *job, uint32_t p)
{
	const struct hd_slurm_partitions *all = s->q->sim->set->partitions;
	const struct hd_job_record *r = job->listed.record;
	double most = most_of(s->set, HD_SLURM_PARTITION, all ? 0 : 1);

	if (!all)
		return number_of(s->set, HD_SLURM_PARTITION, r ? r->partition : "", 1) / most;
	for (uint32_t k = 0; k < all->n; k++)
		most = fmax(most, number_of(s->set, HD_SLURM_PARTITION, all->at[k].name, all->at[k].factor));
	const struct hd_slurm_partition *of = partition_at(s, p);
	return most > 0 ? fmin(1, number_of(s->set, HD_SLURM_PARTITION, of->name, of->factor) / most) : 0;
}

static const char *account_of(const struct sim_job *job)
{
	return job->listed.record ? job->listed.record->account : "";
}

/* That it asks for; INFINITY: none, NAN: not known. */
static double asked_of(const struct sim_job *job)
{
	const double limit_s = job->listed.record ? job->listed.record->limit_s : NAN;

	return limit_s > 0 ? limit_s : NAN;
}

static double limit_of(const struct slurm *s, const struct sim_job *job, uint32_t p)
{
	const double asked_s = asked_of(job), most_s = partition_at(s, p)->limit_s;

	return isfinite(asked_s) ? asked_s : isfinite(most_s) ? most_s : s->set->limit_s;
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
		partition = partition_factor(s, job, w->partition),
		most_qos = most_of(set, HD_SLURM_QOS, 0),
		qos = most_qos > 0 ? number_of(set, HD_SLURM_QOS, r ? r->qos : "", 0) / most_qos : 0;

	return floor(set->age * age + set->fairshare * s->owner[w->owner].factor +
		set->job_size * (set->favor_small ? 1 - size : size) + set->partition * partition +
		set->qos * qos);
}

static int by_priority(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->tier != y->tier)
		return x->tier > y->tier ? -1 : 1;
	if (x->priority > y->priority || x->priority < y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->id != y->id ? (x->id > y->id) - (x->id < y->id) :
		(x->partition > y->partition) - (x->partition < y->partition);
}

/* It could, were all devices of one kind free that the partition has. */
static bool could_start(const struct slurm *s, const struct sim_job *job, uint32_t p)
{
	const struct hd_sched_sim_setting *set = s->q->sim->set;

	for (uint32_t k = 0; k < set->ntypes; k++) {
		uint32_t n = 0;
		for (uint32_t t = 0; t < set->ntypes; t++)
			if (s->q->kind[t] == s->q->kind[k] && job->rate[t] > 0 &&
				(p == ANY || set->partitions->in[t] >> p & 1))
				n += set->types[t].n;
		if (n >= job->listed.scale)
			return true;
	}
	return false;
}

static enum hd_err queue_in(struct slurm *s, const struct sim_job *job, uint32_t p)
{
	enum hd_err err = hd_grow(&s->queue, &s->queue_cap, (uint64_t)s->nqueue + 1, sizeof *s->queue,
		"jobs that wait in a simulation", s->q->sim->diag);

	if (!err)
		s->queue[s->nqueue++] = (struct waiting){ .id = job->id, .owner = s->of[job->id],
			.partition = p, .tier = partition_at(s, p)->tier };
	return err;
}

/* In each of its partitions that has devices enough and that it does not ask for too long. */
enum hd_err slurm_came(struct slurm *s, const struct sim_job *job)
{
	const struct hd_slurm_partitions *all = s->q->sim->set->partitions;
	const uint32_t before = s->nqueue;
	uint32_t owner = 0;
	bool small = false;
	enum hd_err err = owner_of(s, job, &owner);

	if (!err)
		err = hd_grow(&s->of, &s->of_cap, job->id + 1, sizeof *s->of, "jobs of a simulation",
			s->q->sim->diag);
	if (err)
		return err;
	s->of[job->id] = owner;
	if (!all || job->partitions == UINT64_MAX) {
		small = could_start(s, job, ANY);
		err = small ? queue_in(s, job, ANY) : HD_OK;
	}
	for (uint32_t p = 0; all && job->partitions != UINT64_MAX && p < all->n && !err; p++) {
		if (!(job->partitions >> p & 1) || !could_start(s, job, p))
			continue;
		small = true;
		if (!(asked_of(job) > all->at[p].limit_s))
			err = queue_in(s, job, p);
	}
	s->q->sim->result->ntoo_large += !small;
	s->q->sim->result->ntoo_long += small && s->nqueue == before;
	return err;
}

void slurm_ended(struct slurm *s, const struct sim_job *job)
{
	const struct job_stay *stay = &s->q->stay[job->id];

	use(s);
	s->owner[s->of[job->id]].devices -= job->listed.scale;
	for (uint32_t i = 0; i < stay->nparts; i++) {
		const uint32_t type = s->q->part[stay->first + i].type;
		uint32_t at = 0;
		while (s->running[type][at].id != job->id)
			at++;
		memmove(&s->running[type][at], &s->running[type][at + 1],
			(--s->nrunning[type] - at) * sizeof *s->running[type]);
	}
}

/* ---- a pass ---- */

struct outlook { struct profile profile[HD_SCHED_TYPES]; bool closed[HD_SCHED_TYPES],
	reserved[HD_SCHED_TYPES]; uint32_t *room[HD_SCHED_TYPES];
	};

/* Types with devices of one kind that a job may have, and how many of each. */
struct seats { uint32_t n; struct job_part of[HD_SCHED_TYPES]; };

static enum hd_err start(struct slurm *s, const struct waiting *w, const struct seats *on)
{
	struct sched_sim *sim = s->q->sim;
	struct sim_job *job = schedsim_job(sim, w->id);
	const double end_s = sim->now_s + limit_of(s, job, w->partition);
	struct job_part part[HD_SCHED_TYPES];
	uint32_t nparts = 0;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < on->n && !err; i++) {
		const uint32_t type = on->of[i].type;
		uint32_t at = s->nrunning[type];
		if (!on->of[i].n)
			continue;
		err = hd_grow(&s->running[type], &s->running_cap[type], (uint64_t)at + 1,
			sizeof *s->running[type], "running jobs of a simulation", sim->diag);
		for (; !err && at && s->running[type][at - 1].end_s > end_s; at--)
			s->running[type][at] = s->running[type][at - 1];
		if (err)
			break;
		s->running[type][at] = (struct running){ w->id, end_s, on->of[i].n, w->partition };
		s->nrunning[type]++;
		part[nparts++] = on->of[i];
	}
	if (err)
		return err;
	s->owner[w->owner].devices += job->listed.scale;
	return queue_begin(s->q, job, part, nparts, sim->now_s + job->listed.steps / job->rate[part[0].type]);
}

static double expected_end(const struct slurm *s, const struct running *r)
{
	return fmax(r->end_s, s->q->sim->now_s + 1);
}

static bool open_pass(struct slurm *s, struct outlook *p)
{
	struct sched_sim *sim = s->q->sim;

	*p = (struct outlook){ .closed = { false } };
	hd_arena_reset(&sim->call);
	for (uint32_t t = 0; t < sim->set->ntypes; t++) {
		const size_t n = s->nrunning[t] + 2 * (size_t)s->set->depth + 2 * s->nqueue + 3;
		struct profile_step *room = hd_arena_take(&sim->call, n, sizeof *room);
		if (!room || !(p->room[t] = hd_arena_take(&sim->call, n, sizeof *p->room[t])))
			return false;
		profile_open(&p->profile[t], room, sim->now_s, sim->set->types[t].n - s->q->busy_of[t]);
		for (uint32_t i = 0; i < s->nrunning[t]; i++)
			profile_release(&p->profile[t], expected_end(s, &s->running[t][i]),
				s->running[t][i].n);
	}
	return true;
}

/* Its types of the kind at order[from]; *next: of the next kind. */
static void seats_of(const struct slurm *s, const struct outlook *p, const struct waiting *w,
	const struct sim_job *job, uint32_t from, struct seats *on, uint32_t *next)
{
	const struct hd_sched_sim_setting *set = s->q->sim->set;
	const uint32_t *order = s->q->order, kind = s->q->kind[order[from]];

	on->n = 0;
	for (*next = from; *next < set->ntypes && s->q->kind[order[*next]] == kind; ++*next) {
		const uint32_t t = order[*next];
		if (job->rate[t] > 0 && !p->closed[t] &&
			(w->partition == ANY || set->partitions->in[t] >> w->partition & 1))
			on->of[on->n++].type = t;
	}
}

/* When it can begin on these, and then on how many of each: the first give what they have. */
static double begins(const struct slurm *s, struct outlook *p, const struct waiting *w,
	const struct sim_job *job, struct seats *on)
{
	const double limit_s = limit_of(s, job, w->partition);
	struct profile_window window[HD_SCHED_TYPES];
	uint32_t left = job->listed.scale;
	double at_s;

	if (on->n == 1) {
		on->of[0].n = left;
		return profile_earliest(&p->profile[on->of[0].type], left, limit_s);
	}
	for (uint32_t i = 0; i < on->n; i++)
		window[i] = (struct profile_window){ .of = &p->profile[on->of[i].type],
			.room = p->room[on->of[i].type] };
	at_s = profile_earliest_of(window, on->n, left, 0, limit_s);
	for (uint32_t i = 0; i < on->n && at_s < INFINITY; i++) {
		on->of[i].n = left < window[i].least ? left : window[i].least;
		left -= on->of[i].n;
	}
	return at_s;
}

/* The kind on which it can begin soonest; INFINITY: on none. */
static double soonest(const struct slurm *s, struct outlook *p, const struct waiting *w,
	const struct sim_job *job, struct seats *on)
{
	double best = INFINITY;
	struct seats some;

	on->n = 0;
	for (uint32_t from = 0, next; from < s->q->sim->set->ntypes; from = next) {
		seats_of(s, p, w, job, from, &some, &next);
		const double at_s = some.n ? begins(s, p, w, job, &some) : INFINITY;
		if (at_s < best) {
			best = at_s;
			*on = some;
		}
	}
	return best;
}

static void take(const struct slurm *s, struct outlook *p, const struct waiting *w, const struct sim_job *job,
	const struct seats *on, double at_s)
{
	for (uint32_t i = 0; i < on->n; i++)
		if (on->of[i].n)
			profile_take(&p->profile[on->of[i].type], at_s, limit_of(s, job, w->partition),
				on->of[i].n);
}

/* A job that has to wait: what it keeps later ones from. */
static void hold_back(const struct slurm *s, struct outlook *p, const struct waiting *w,
	const struct sim_job *job, const struct seats *on, double at_s)
{
	bool reserved = false;

	if (s->set->backfill == HD_BACKFILL_NONE) {
		for (uint32_t from = 0, next; from < s->q->sim->set->ntypes; from = next) {
			struct seats some;
			seats_of(s, p, w, job, from, &some, &next);
			for (uint32_t i = 0; i < some.n; i++)
				p->closed[some.of[i].type] = true;
		}
		return;
	}
	for (uint32_t i = 0; i < on->n; i++) {
		reserved |= p->reserved[on->of[i].type];
		p->reserved[on->of[i].type] = true;
	}
	if (s->set->backfill != HD_BACKFILL_EASY || !reserved)
		take(s, p, w, job, on, at_s);
}

static bool is_free(const struct slurm *s, const struct outlook *p)
{
	for (uint32_t t = 0; t < s->q->sim->set->ntypes; t++)
		if (!p->closed[t] && p->profile[t].step[0].free)
			return true;
	return s->preempts;
}

/* ---- preemption ---- */

/* A running job that may be taken from its devices; its tier and size say when its turn is. */
struct victim { uint64_t id; uint32_t tier, n; bool goes; };

static int by_turn(const void *a, const void *b)
{
	const struct victim *x = a, *y = b;

	if (x->tier != y->tier || x->n != y->n)
		return x->tier != y->tier ? (x->tier > y->tier) - (x->tier < y->tier) :
			(x->n > y->n) - (x->n < y->n);
	return (x->id < y->id) - (x->id > y->id);
}

/* Jobs of lower tiers on these types, each once, in their turn. */
static bool victims_on(struct slurm *s, const struct waiting *w, const struct seats *on, struct victim **out,
	uint32_t *n)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < on->n; i++)
		most += s->nrunning[on->of[i].type];
	*n = 0;
	if (!(*out = hd_arena_take(&s->q->sim->call, (size_t)most + 1, sizeof **out)))
		return false;
	for (uint32_t i = 0; i < on->n; i++)
		for (uint32_t k = 0; k < s->nrunning[on->of[i].type]; k++) {
			const struct running *r = &s->running[on->of[i].type][k];
			const struct hd_slurm_partition *of = partition_at(s, r->partition);
			uint32_t seen = 0;
			while (seen < *n && (*out)[seen].id != r->id)
				seen++;
			if (seen == *n && of->tier < w->tier && of->preempted != HD_PREEMPTED_NOT)
				(*out)[(*n)++] = (struct victim){ r->id, of->tier,
					schedsim_job(s->q->sim, r->id)->listed.scale, false };
		}
	if (*n)
		qsort(*out, *n, sizeof **out, by_turn);
	return true;
}

/* Its devices are free from now on, or, `taken`, not before it ends. */
static void release(struct slurm *s, struct outlook *p, uint64_t id, bool taken)
{
	const struct job_stay *stay = &s->q->stay[id];
	const double now_s = s->q->sim->now_s;

	for (uint32_t i = 0; i < stay->nparts; i++) {
		const struct job_part *part = &s->q->part[stay->first + i];
		uint32_t at = 0;
		while (s->running[part->type][at].id != id)
			at++;
		const double for_s = expected_end(s, &s->running[part->type][at]) - now_s;
		(taken ? profile_take : profile_give)(&p->profile[part->type], now_s, for_s, part->n);
	}
}

static enum hd_err send_away(struct slurm *s, const struct victim *v)
{
	struct sched_sim *sim = s->q->sim;
	struct sim_job *job = schedsim_job(sim, v->id);
	const struct job_stay *stay = &s->q->stay[v->id];
	const uint32_t type = s->q->part[stay->first].type;
	uint32_t at = 0;

	while (s->running[type][at].id != v->id)
		at++;
	const bool again = partition_at(s, s->running[type][at].partition)->preempted == HD_PREEMPTED_REQUEUE;
	sim->result->npreempted++;
	schedsim_row(sim, v->id)->lost_s += sim->now_s - stay->from_s;
	slurm_ended(s, job);
	queue_leave(s->q, job);
	if (again)
		return queue_again(s->q, job, sim->now_s + HD_SLURM_REQUEUE_S);
	schedsim_leave(sim, job, sim->now_s, true);
	return HD_OK;
}

/* They go in their turn until it fits; then those that are not needed stay. *at_s: now, if it can begin. */
static enum hd_err preempt(struct slurm *s, struct outlook *p, const struct waiting *w,
	const struct sim_job *job, struct seats *on, double *at_s)
{
	const double now_s = s->q->sim->now_s;
	struct victim *victim;
	enum hd_err err = HD_OK;

	for (uint32_t from = 0, next, n; from < s->q->sim->set->ntypes && !err; from = next) {
		struct seats some;
		bool fits = false;
		seats_of(s, p, w, job, from, &some, &next);
		if (!some.n)
			continue;
		if (!victims_on(s, w, &some, &victim, &n))
			return hd_fail(s->q->sim->diag, HD_E_NOMEM, "no memory for jobs that are preempted");
		for (uint32_t k = 0; k < n && !fits; k++) {
			release(s, p, victim[k].id, false);
			victim[k].goes = true;
			fits = begins(s, p, w, job, &some) <= now_s;
		}
		for (uint32_t k = 0; k < n; k++) {
			if (!victim[k].goes)
				continue;
			release(s, p, victim[k].id, true);
			if (!fits || begins(s, p, w, job, &some) <= now_s)
				victim[k].goes = false;
			else
				release(s, p, victim[k].id, false);
		}
		if (!fits)
			continue;
		(void)begins(s, p, w, job, &some);
		*on = some;
		*at_s = now_s;
		for (uint32_t k = 0; k < n && !err; k++)
			if (victim[k].goes)
				err = send_away(s, &victim[k]);
		break;
	}
	return err;
}

/* It began by another of its partitions, or is over. */
static bool is_gone(const struct slurm *s, const struct waiting *w)
{
	return s->q->stay[w->id].goes_on || !schedsim_job(s->q->sim, w->id);
}

static enum hd_err look(struct slurm *s, struct outlook *p)
{
	const double now_s = s->q->sim->now_s;
	uint32_t kept = 0, looked = 0, i = 0;
	enum hd_err err = HD_OK;

	for (; i < s->nqueue && !err && looked < s->set->depth && is_free(s, p); i++) {
		const struct waiting w = s->queue[i];
		if (is_gone(s, &w))
			continue;
		const struct sim_job *job = schedsim_job(s->q->sim, w.id);
		struct seats on;
		double at_s = soonest(s, p, &w, job, &on);
		if (at_s > now_s && s->preempts)
			err = preempt(s, p, &w, job, &on, &at_s);
		if (!err && at_s <= now_s) {
			take(s, p, &w, job, &on, now_s);
			err = start(s, &w, &on);
			continue;
		}
		if (at_s < INFINITY)
			hold_back(s, p, &w, job, &on, at_s);
		looked++;
		s->queue[kept++] = w;
	}
	memmove(&s->queue[kept], &s->queue[i], (s->nqueue - i) * sizeof *s->queue);
	s->nqueue -= i - kept;
	return err;
}

static void drop_gone(struct slurm *s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->nqueue; i++)
		if (!is_gone(s, &s->queue[i]))
			s->queue[kept++] = s->queue[i];
	s->nqueue = kept;
}

enum hd_err slurm_pass(struct slurm *s)
{
	struct outlook p;

	if (s->q->sim->set->partitions)
		drop_gone(s);
	if (!s->nqueue || (s->q->busy == s->q->sim->ndevices && !s->preempts))
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
