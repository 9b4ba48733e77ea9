#include "run/step_end.h"

#include <math.h>
#include <string.h>

#include "plan/buckets.h"
#include "plan/tree.h"
#include "run/port_exchange.h"

/* What each worker does of each stage. */
struct step_ends {
	const struct hd_plan *plan;
	const struct hd_step_holders *holders;
	uint32_t nworkers;
	uint32_t *roots, *all;            /* [worker][stage] partial sums that it makes; [stage] all */
	uint32_t *makers;                 /* [stage] workers that run it */
	uint8_t *keeps;                   /* [worker][stage] it has the shadow */
	const double *last_ns;
};

static uint32_t worker_of(const struct step_ends *e, uint32_t rank)
{
	return e->holders->devices ? rank * hd_plan_width(e->plan) / e->holders->devices : 0;
}

static bool is_of(const struct step_ends *e, const struct hd_ins *ins, uint32_t stage)
{
	const bool back = ins->op == HD_INS_B || ins->op == HD_INS_I || ins->op == HD_INS_W;

	return back && !(ins->flags & HD_INS_SHADOW) && (!e->plan->first || ins->stage == stage);
}

/* The pipelines of a plan with shadows have as many ranks each, one of which runs stage 0. */
static uint32_t width_of(const struct hd_plan *plan)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < plan->nranks; r++) {
		bool first = false;
		for (uint32_t i = 0; i < plan->list[r].len; i++)
			first |= plan->list[r].at[i].op == HD_INS_F && !plan->list[r].at[i].stage &&
				!(plan->list[r].at[i].flags & HD_INS_SHADOW);
		n += first;
	}
	return n ? plan->nranks / n : plan->nranks;
}

static void keep_shadow(struct step_ends *e, uint32_t rank, uint32_t stage)
{
	const uint32_t width = width_of(e->plan), first = rank - rank % width;

	for (uint32_t back = 1; back < width; back++) {
		const uint32_t w = worker_of(e, first + (rank % width + width - back) % width);
		if (w != worker_of(e, rank)) {
			e->keeps[w * e->plan->nstages + stage] = 1;
			return;
		}
	}
}

static enum hd_err count_rank(struct step_ends *e, uint32_t rank, uint32_t stage, uint8_t *has,
	struct hd_tnode *root, struct hd_diag *diag)
{
	const struct hd_ilist *list = &e->plan->list[rank];
	const uint32_t nvns = e->plan->nvns, at = worker_of(e, rank) * e->plan->nstages + stage;
	uint32_t n = 0;
	bool any = false;

	memset(has, 0, nvns);
	for (uint32_t i = 0; i < list->len; i++)
		if (is_of(e, &list->at[i], stage)) {
			has[list->at[i].vn % nvns] = 1;
			any = true;
		}
	if (!any)
		return HD_OK;
	if (hd_tree_roots(nvns, has, root, nvns, &n))
		return hd_fail(diag, HD_E_BUG, "more roots than virtual nodes");
	e->makers[stage] += !e->roots[at];
	e->roots[at] += n;
	e->all[stage] += n;
	if (e->holders->shadows)
		keep_shadow(e, rank, stage);
	return HD_OK;
}

static enum hd_err count(struct step_ends *e, const struct hd_plan *plan,
	const struct hd_step_holders *holders, struct hd_arena *arena, struct hd_diag *diag)
{
	uint8_t *has = hd_arena_take(arena, plan->nvns, 1);
	struct hd_tnode *root = hd_arena_take(arena, plan->nvns, sizeof *root);
	enum hd_err err = HD_OK;

	*e = (struct step_ends){ .plan = plan, .holders = holders };
	e->nworkers = holders->devices ? (plan->nranks * hd_plan_width(plan) + holders->devices - 1) /
		holders->devices : 1;
	e->roots = hd_arena_take(arena, (size_t)e->nworkers * plan->nstages, sizeof *e->roots);
	e->all = hd_arena_take(arena, plan->nstages, sizeof *e->all);
	e->makers = hd_arena_take(arena, plan->nstages, sizeof *e->makers);
	e->keeps = hd_arena_take(arena, (size_t)e->nworkers * plan->nstages, 1);
	if (!has || !root || !e->roots || !e->all || !e->makers || !e->keeps)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");
	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t s = 0; s < plan->nstages && !err; s++)
			err = count_rank(e, r, s, has, root, diag);
	return err;
}

static bool holds(const struct step_ends *e, uint32_t worker, uint32_t stage)
{
	const size_t at = (size_t)worker * e->plan->nstages + stage;

	return e->holders->whole || e->roots[at] > 0 || e->keeps[at];
}

static uint32_t copies_of(const struct step_ends *e, uint32_t stage)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < e->nworkers; w++)
		n += holds(e, w, stage);
	return n ? n : 1;
}

enum hd_err hd_step_copies(uint32_t *copies, const struct hd_plan *plan,
	const struct hd_step_holders *holders, struct hd_arena *arena, struct hd_diag *diag)
{
	struct step_ends e;
	enum hd_err err = count(&e, plan, holders, arena, diag);

	for (uint32_t s = 0; s < plan->nstages && !err; s++)
		copies[s] = copies_of(&e, s);
	return err;
}

struct step_moved { double owned, out, in; };      /* bytes */

/* What a worker owns of a stage, sends and gets: partial sums to their owners, sums to their holders. */
static struct step_moved moved(const struct step_ends *e, uint32_t worker, uint32_t s,
	const struct hd_stage_costs *stages)
{
	const double bytes = (double)stages->stage[s].param, makers = e->makers[s],
		copies = copies_of(e, s), own = e->roots[(size_t)worker * e->plan->nstages + s],
		owned = own > 0 ? bytes / makers : 0, held = holds(e, worker, s) ? bytes : 0;

	return (struct step_moved){ owned, own * bytes - own * owned + owned * (copies - 1),
		owned * (e->all[s] - own) + held - owned };
}

/* Of one worker: seconds of work as ns, the bytes that it sends and gets among them. */
static double work_of(const struct step_ends *e, uint32_t worker, const struct hd_stage_costs *stages,
	const struct hd_run_costs *costs, double all_bytes)
{
	double ns = 0;

	for (uint32_t s = 0; s < e->plan->nstages; s++) {
		const struct step_moved m = moved(e, worker, s, stages);
		const double held = holds(e, worker, s) ? (double)stages->stage[s].param : 0;
		ns += (e->all[s] > 1 ? (e->all[s] - 1) * m.owned : 0) * costs->line.profile.sum_ns_per_byte;
		ns += all_bytes > 0 ? held / all_bytes * costs->norm_ns : 0;
		ns += (m.out + m.in) * costs->link_ns_per_byte;
	}
	return ns;
}

enum hd_err hd_step_end_time(double *took_ns, const struct hd_plan *plan, const struct hd_stage_costs *stages,
	const struct hd_run_costs *costs, const struct hd_step_holders *holders, uint32_t cores,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct step_ends e;
	double bytes = 0, most = 0, all = 0;
	enum hd_err err = count(&e, plan, holders, arena, diag);

	if (err)
		return err;
	for (uint32_t s = 0; s < plan->nstages; s++)
		bytes += (double)stages->stage[s].param;
	for (uint32_t w = 0; w < e.nworkers; w++) {
		const double ns = work_of(&e, w, stages, costs, bytes);
		most = ns > most ? ns : most;
		all += ns;
	}
	const double each = (double)plan->nranks / e.nworkers;
	const double alone = most / (each > 1 ? each : 1), shared = cores ? all / cores : 0;
	*took_ns = (alone > shared ? alone : shared) +
		(holders->devices ? HD_STEP_HOPS * costs->hop_ns : 0);
	return HD_OK;
}

/* ---- rule 5 */

static void find_owner(struct hd_port_bucket *b, const struct step_ends *e, uint32_t stage, uint32_t nth)
{
	for (uint32_t w = 0; w < e->nworkers; w++)
		if (e->roots[(size_t)w * e->plan->nstages + stage] && !nth--)
			b->owner = w;
}

/* Workers that bring slots on. */
static uint32_t serving(const struct step_ends *e)
{
	return e->holders->servers && e->holders->servers < e->nworkers ? e->holders->servers : e->nworkers;
}

/* Number `nth` of `all` of the same stage. */
static struct hd_port_bucket port_bucket(const struct step_ends *e, const struct hd_step_bucket *of,
	uint32_t nth, uint32_t all)
{
	struct hd_port_bucket b = { .bytes = of->bytes };

	for (uint32_t w = 0; w < e->nworkers; w++)
		b.ready_ns[w] = of->ready_ns;
	for (uint32_t r = 0; r < e->plan->nranks && e->last_ns; r++)
		for (uint32_t s = 0; s < e->plan->nstages; s++)
			if (of->makers >> s & 1)
				b.ready_ns[worker_of(e, r)] = fmax(b.ready_ns[worker_of(e, r)],
					e->last_ns[r * e->plan->nstages + s]);
	find_owner(&b, e, of->stage, (uint32_t)((uint64_t)nth * (e->holders->servers ? serving(e) :
		e->makers[of->stage]) / all));
	for (uint32_t w = 0; w < e->nworkers; w++)
		for (uint32_t s = 0; s < e->plan->nstages; s++) {
			if (of->makers >> s & 1)
				b.parts[w] = (uint16_t)(b.parts[w] +
					e->roots[(size_t)w * e->plan->nstages + s]);
			b.holds[w] |= holds(e, w, s) && of->readers >> s & 1;
		}
	const uint32_t serve = serving(e);
	for (uint32_t i = 0; e->holders->copies && i < serve; i++)
		b.holds[(b.owner + i) % serve] = i < e->holders->copies;
	for (uint32_t i = serve; e->holders->copies && i < e->nworkers; i++)
		b.holds[i] = false;
	return b;
}

static bool go_together(const struct hd_port_bucket *a, const struct hd_port_bucket *b)
{
	return a->owner == b->owner && !memcmp(a->parts, b->parts, sizeof a->parts) &&
		!memcmp(a->holds, b->holds, sizeof a->holds);
}

static void put_bucket(struct hd_port_bucket *to, const struct hd_port_bucket *b, uint32_t nworkers)
{
	to->bytes += b->bytes;
	for (uint32_t w = 0; w < nworkers; w++)
		to->ready_ns[w] = fmax(to->ready_ns[w], b->ready_ns[w]);
}

/* The last bucket first, as the rows of the exchange are urgent; up to `each` in one. `to` NULL: they are
 * counted. More than `most`: they are too many. */
static uint32_t take_buckets(struct hd_port_bucket *to, uint32_t most, const struct step_ends *e,
	const struct hd_step_bucket *bucket, uint32_t nbuckets, uint32_t each)
{
	uint32_t n = 0, in = 0, all[HD_STAGE_BITS] = { 0 }, left[HD_STAGE_BITS];
	struct hd_port_bucket last = { 0 };

	for (uint32_t i = 0; i < nbuckets; i++)
		all[bucket[i].stage]++;
	memcpy(left, all, sizeof left);
	for (uint32_t i = nbuckets; i--;) {
		const uint32_t stage = bucket[i].stage;
		const struct hd_port_bucket b = port_bucket(e, &bucket[i], --left[stage], all[stage]);
		if (n && in < each && go_together(&b, &last)) {
			put_bucket(&last, &b, e->nworkers);
			in++;
		} else {
			if (n == most)
				return most + 1;
			last = b;
			n++;
			in = 1;
		}
		if (to)
			to[n - 1] = last;
	}
	return n;
}

/* As many as are simulated, if neighbours that go together make so few; else those that are left when all of
 * them have: each maker of a stage owns some of it, and a cut within a bucket is one more. */
static enum hd_err buckets_of(struct hd_port_exchange *x, const struct step_ends *e,
	const struct hd_step_bucket *bucket, uint32_t nbuckets, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_port_bucket *to = hd_arena_take(arena, HD_PORT_BUCKETS, sizeof *to);
	uint32_t n = HD_PORT_BUCKETS + 1;

	for (uint32_t each = 1; to && n > HD_PORT_BUCKETS && each < 2 * nbuckets; each *= 2)
		n = take_buckets(to, HD_PORT_BUCKETS, e, bucket, nbuckets, each);
	if (to && n > HD_PORT_BUCKETS) {
		n = take_buckets(NULL, nbuckets, e, bucket, nbuckets, nbuckets);
		to = hd_arena_take(arena, n, sizeof *to);
		n = to ? take_buckets(to, n, e, bucket, nbuckets, nbuckets) : n;
	}
	x->bucket = to;
	x->nbuckets = n;
	return to ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");
}

enum hd_err hd_step_link_time(double *done_ns, const struct hd_plan *plan, const struct hd_run_costs *costs,
	const struct hd_step_holders *holders, const struct hd_step_bucket *bucket, uint32_t nbuckets,
	const double *last_ns, struct hd_arena *arena, struct hd_diag *diag)
{
	struct step_ends e;
	enum hd_err err = count(&e, plan, holders, arena, diag);

	*done_ns = 0;
	if (err || !nbuckets || e.nworkers > HD_PORT_WORKERS)
		return err;
	e.last_ns = last_ns;
	struct hd_port_exchange x = { .nworkers = e.nworkers, .apart = holders->copies > 0,
		.ns_per_byte = 1e9 / costs->port_bytes_per_s, .late_ns = costs->port_latency_ns };
	err = buckets_of(&x, &e, bucket, nbuckets, arena, diag);
	return err ? err : hd_port_exchange_time(done_ns, &x, arena, diag);
}
