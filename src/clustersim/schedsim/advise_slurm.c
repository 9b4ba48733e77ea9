#define _GNU_SOURCE
/* Slurm's order and backfill, as advice.h says. A profile of each node; a pass costs (jobs that wait) x
 * (steps of the profiles of its nodes), for at most DEPTH jobs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clustersim/schedsim/advice.h"
#include "clustersim/schedsim/profile.h"

enum { NAME_CAP = 260,                            /* of a node, with its end */
       DEPTH = 500,                               /* bf_max_job_test of slurm.conf(5) in 22.05 */
       LIMIT_S = 365 * 86400 };                   /* Slurm's for UNLIMITED */

/* A job in one of its partitions. */
struct entry { uint32_t job, partition; };

struct outlook_now {
	const struct hd_slurm_now *live;
	struct profile *profile;                  /* [nnodes] */
	uint32_t **room;
	struct profile_window *window;            /* [nnodes] */
	uint32_t *node;                           /* [nnodes] of windows */
	uint32_t *of;                             /* [nnodes] devices of a job that starts */
	uint32_t *first_free;                     /* [nnodes] before anything starts */
};

/* ---- which nodes a running job is on ---- */

/* A number, as written, between the brackets of "v[01-10,12]" or "v[0-12]". */
static bool in_ranges(const char *ranges, const char *end, const char *digits, size_t n)
{
	unsigned long x = 0;

	for (size_t k = 0; k < n; k++)
		x = 10 * x + (unsigned long)(digits[k] - '0');
	while (ranges < end) {
		char *stop;
		const size_t width = strspn(ranges, "0123456789");
		const unsigned long low = strtoul(ranges, &stop, 10);
		const unsigned long high = *stop == '-' ? strtoul(stop + 1, &stop, 10) : low;
		const bool padded = width > 1 && *ranges == '0';
		if (x >= low && x <= high && (padded ? n == width : n == 1 || *digits != '0'))
			return true;
		while (stop < end && *stop != ',')
			stop++;
		ranges = stop + 1;
	}
	return false;
}

/* Where in the name it may end, and a number of the brackets after it. */
static void pass_brackets(const char *open, const char *close, const char *name, size_t len,
	bool ends[NAME_CAP])
{
	bool after[NAME_CAP] = { false };

	for (size_t at = 0; at < len; at++)
		for (size_t n = 1; ends[at] && n < 10 && n <= strspn(name + at, "0123456789"); n++)
			after[at + n] |= in_ranges(open + 1, close, name + at, n);
	memcpy(ends, after, (len + 1) * sizeof *ends);
}

/* Of one item of a list: "k1", "v[1-2]", "c[0-1]n[0-3]". ends[n]: the item so far may be the first n bytes of
 * the name. */
static bool is_of_item(const char *item, size_t len, const char *name)
{
	const size_t of_name = strlen(name);
	const char *const end = item + len;
	bool ends[NAME_CAP] = { true };

	if (of_name >= NAME_CAP)
		return false;
	for (const char *at = item; at < end;) {
		const char *close = *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
		if (close) {
			pass_brackets(at, close, name, of_name, ends);
			at = close + 1;
			continue;
		}
		for (size_t n = of_name; n-- > 0;)
			ends[n + 1] = ends[n] && name[n] == *at;
		ends[0] = false;
		at++;
	}
	return ends[of_name];
}

static bool is_on(const char *list, const char *name)
{
	for (const char *at = list; *at;) {
		size_t len = 0;
		for (bool inside = false; at[len] && (inside || at[len] != ','); len++)
			inside = at[len] == '[' || (inside && at[len] != ']');
		if (is_of_item(at, len, name))
			return true;
		at += len + (at[len] == ',');
	}
	return false;
}

/* ---- what is free, and when ---- */

static double limit_of(const struct hd_slurm_now *live, const struct hd_slurm_job *job, uint32_t partition)
{
	const double most_s = live->partitions.at[partition].limit_s;

	return isfinite(job->limit_s) && job->limit_s > 0 ? job->limit_s :
		isfinite(most_s) ? most_s : LIMIT_S;
}

static double end_of(const struct hd_slurm_now *live, const struct hd_slurm_job *job)
{
	const double limit_s = isfinite(job->limit_s) && job->limit_s > 0 ? job->limit_s : LIMIT_S,
		from_s = isnan(job->start_s) ? live->now_s : job->start_s;

	return fmax(from_s + limit_s, live->now_s + 1);
}

struct ending { double at_s; const struct hd_slurm_job *job; };

static int by_end(const void *a, const void *b)
{
	const struct ending *x = a, *y = b;

	return (x->at_s > y->at_s) - (x->at_s < y->at_s);
}

/* A job's GPUs are as many on each of its nodes; a node gets back no more than are used. */
static void release_running(struct outlook_now *o, const struct ending *running, uint32_t n)
{
	const struct hd_slurm_now *live = o->live;

	for (uint32_t i = 0; i < n; i++) {
		const struct hd_slurm_job *job = running[i].job;
		uint32_t on = 0;
		for (uint32_t k = 0; k < live->nnodes; k++)
			on += is_on(job->nodes, live->node[k].name);
		for (uint32_t k = 0; k < live->nnodes && on; k++) {
			struct profile *p = &o->profile[k];
			const uint32_t used = live->node[k].gpus - p->step[p->n - 1].free,
				each = job->gpus / on, back = each < used ? each : used;
			if (back && live->node[k].usable && is_on(job->nodes, live->node[k].name))
				profile_release(p, running[i].at_s, back);
		}
	}
}

static bool open_outlook(struct outlook_now *o, uint32_t nentries, struct hd_arena *arena)
{
	const struct hd_slurm_now *live = o->live;
	const size_t taken = 2 * (size_t)(nentries < DEPTH ? nentries : DEPTH) + 4;
	struct ending *running = hd_arena_take(arena, (size_t)live->njobs + 1, sizeof *running);
	uint32_t n = 0;

	o->profile = hd_arena_take(arena, live->nnodes, sizeof *o->profile);
	o->room = hd_arena_take(arena, live->nnodes, sizeof *o->room);
	o->window = hd_arena_take(arena, live->nnodes, sizeof *o->window);
	o->node = hd_arena_take(arena, live->nnodes, sizeof *o->node);
	o->of = hd_arena_take(arena, live->nnodes, sizeof *o->of);
	o->first_free = hd_arena_take(arena, live->nnodes, sizeof *o->first_free);
	if (!running || !o->profile || !o->room || !o->window || !o->node || !o->of || !o->first_free)
		return false;
	for (uint32_t i = 0; i < live->njobs; i++)
		if (live->job[i].runs)
			running[n++] = (struct ending){ end_of(live, &live->job[i]), &live->job[i] };
	qsort(running, n, sizeof *running, by_end);
	for (uint32_t k = 0; k < live->nnodes; k++) {
		const struct hd_slurm_node *node = &live->node[k];
		/* of its devices each is released, and taken now, once at most */
		const size_t steps = taken + 3 * (size_t)node->gpus;
		struct profile_step *step = hd_arena_take(arena, steps, sizeof *step);
		if (!step || !(o->room[k] = hd_arena_take(arena, steps, sizeof *o->room[k])))
			return false;
		o->first_free[k] = node->usable ? node->gpus - node->used : 0;
		profile_open(&o->profile[k], step, live->now_s, o->first_free[k]);
	}
	release_running(o, running, n);
	return true;
}

/* ---- a job ---- */

/* Its nodes of the kind of type t; how many windows. */
static uint32_t nodes_of(struct outlook_now *o, const struct entry *e, const char *gpu)
{
	const struct hd_slurm_now *live = o->live;
	const struct hd_slurm_job *job = &live->job[e->job];
	uint32_t n = 0;

	for (uint32_t k = 0; k < live->nnodes; k++) {
		const struct hd_slurm_node *node = &live->node[k];
		if (!(node->partitions >> e->partition & 1) || strcmp(node->gpu, gpu) != 0 ||
			(*job->gpu && strcmp(job->gpu, gpu) != 0))
			continue;
		o->node[n] = k;
		o->window[n++] = (struct profile_window){ .of = &o->profile[k], .room = o->room[k] };
	}
	return n;
}

/* o->of: how many of each node, the first give what they have. */
static void choose(struct outlook_now *o, uint32_t n, uint32_t devices)
{
	memset(o->of, 0, o->live->nnodes * sizeof *o->of);
	for (uint32_t i = 0; i < n && devices; i++) {
		const uint32_t least = o->window[i].least;
		o->of[o->node[i]] = least < devices ? least : devices;
		devices -= o->of[o->node[i]];
	}
}

/* When it can begin, and on what (o->of): on the kind where that is soonest. */
static double soonest(struct outlook_now *o, const struct entry *e, uint32_t *best_of)
{
	const struct hd_slurm_now *live = o->live;
	const struct hd_slurm_job *job = &live->job[e->job];
	double best = INFINITY;

	for (uint32_t t = 0; t < live->ntypes; t++) {
		bool seen = false;
		for (uint32_t k = 0; k < t; k++)
			seen |= !strcmp(live->partitions.gpu[k], live->partitions.gpu[t]);
		const uint32_t n = seen ? 0 : nodes_of(o, e, live->partitions.gpu[t]);
		const double at_s = profile_earliest_of(o->window, n, job->gpus, job->per_node,
			limit_of(live, job, e->partition));
		if (at_s < best) {
			best = at_s;
			choose(o, n, job->gpus);
			memcpy(best_of, o->of, live->nnodes * sizeof *best_of);
		}
	}
	return best;
}

static uint32_t fits(const struct hd_slurm_job *job, uint32_t free)
{
	return !job->per_node ? free : free < job->per_node ? 0 : job->per_node;
}

/* Why it waits: by what its nodes of all kinds have, have free, and had. */
static enum hd_why_code reason(const struct outlook_now *o, const struct entry *e, double at_s)
{
	const struct hd_slurm_job *job = &o->live->job[e->job];
	uint64_t all = 0, before = 0, now = 0;

	for (uint32_t k = 0; k < o->live->nnodes; k++) {
		const struct hd_slurm_node *node = &o->live->node[k];
		if (!(node->partitions >> e->partition & 1) ||
			(*job->gpu && strcmp(job->gpu, node->gpu) != 0))
			continue;
		all += fits(job, node->gpus);
		before += fits(job, o->first_free[k]);
		now += fits(job, o->profile[k].step[0].free);
	}
	if (all < job->gpus)
		return HD_WHY_UNRUNNABLE;
	return !(at_s < INFINITY) ? HD_WHY_DRAINING : now >= job->gpus ? HD_WHY_HELD_BACK :
		before >= job->gpus ? HD_WHY_OUTRANKED : HD_WHY_GANG_NO_FIT;
}

/* ---- the queue ---- */

static int by_order(const void *a, const void *b, void *self)
{
	const struct hd_slurm_now *live = ((const struct outlook_now *)self)->live;
	const struct entry *x = a, *y = b;
	const uint32_t tx = live->partitions.at[x->partition].tier,
		ty = live->partitions.at[y->partition].tier;
	const double px = live->job[x->job].priority, py = live->job[y->job].priority;

	if (tx != ty)
		return tx > ty ? -1 : 1;
	if (px > py || px < py)
		return px > py ? -1 : 1;
	return x->job != y->job ? (x->job > y->job) - (x->job < y->job) :
		(x->partition > y->partition) - (x->partition < y->partition);
}

static struct entry *entries_of(struct outlook_now *o, uint32_t *n, struct hd_arena *arena)
{
	const struct hd_slurm_now *live = o->live;
	struct entry *entry;
	size_t most = 1;

	for (uint32_t i = 0; i < live->njobs; i++)
		most += (size_t)__builtin_popcountll(live->job[i].partitions);
	entry = most < UINT32_MAX ? hd_arena_take(arena, most, sizeof *entry) : NULL;
	*n = 0;
	for (uint32_t i = 0; i < live->njobs && entry; i++)
		for (uint32_t p = 0; p < live->partitions.n; p++)
			if (!live->job[i].runs && !live->job[i].bar && live->job[i].partitions >> p & 1)
				entry[(*n)++] = (struct entry){ i, p };
	if (entry && *n)
		qsort_r(entry, *n, sizeof *entry, by_order, o);
	return entry;
}

enum hd_err slurm_advice(const struct hd_slurm_now *live, struct hd_advice *by_job, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct outlook_now o = { .live = live };
	uint32_t n = 0, waiting = 0;
	struct entry *entry = entries_of(&o, &n, arena);
	uint32_t *on = hd_arena_take(arena, live->nnodes, sizeof *on);

	if (!entry || !on || !open_outlook(&o, n, arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory for advice on %u jobs", live->njobs);
	for (uint32_t i = 0; i < live->njobs; i++)
		by_job[i].wait.type = HD_SCHED_NONE;
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_slurm_job *job = &live->job[entry[i].job];
		struct hd_advice *a = &by_job[entry[i].job];
		if (a->starts)
			continue;
		if (waiting == DEPTH) {
			a->code = HD_WHY_QUEUED;
			continue;
		}
		const double limit_s = limit_of(live, job, entry[i].partition),
			at_s = soonest(&o, &entry[i], on);
		if (at_s > live->now_s) {
			a->code = reason(&o, &entry[i], at_s);
			waiting++;
		} else {
			a->starts = true;
			a->code = HD_WHY_RUNS;
			if (!(a->where = advice_where(live, on, arena)))
				return hd_fail(diag, HD_E_NOMEM, "no memory for names of nodes");
		}
		for (uint32_t k = 0; k < live->nnodes && at_s < INFINITY; k++)
			if (on[k])
				profile_take(&o.profile[k], at_s, limit_s, on[k]);
	}
	return HD_OK;
}
