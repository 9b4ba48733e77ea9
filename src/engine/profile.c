#include "engine/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/times.h"
#include "engine/walk.h"

enum { NPARTS = 3, LOOK_EVERY = 20, SAMPLE_BYTES = 256 << 20 };      /* f, i, w */

/* Samples of all nodes, [node][part][sample], and the running sums that rule 2 looks at. */
struct record {
	const uint32_t *home;
	const struct hd_graph *graph;
	uint32_t nnodes;
	uint64_t n, cap, nwarm;
	uint32_t together;
	bool processor;
	int64_t *at, *pass;               /* pass: [node][part] of the one at hand */
	double *sum, *square;             /* [node] of f + i + w, ns */
	int64_t *all, *sorted;            /* [NPARTS + 1][sample] of all nodes; the last of all parts */
};

static enum hd_err take(struct record *r, struct hd_arena *arena, struct hd_diag *diag)
{
	size_t per_pass = (size_t)r->nnodes * NPARTS;

	if (per_pass * r->cap > SAMPLE_BYTES / sizeof *r->at)
		r->cap = SAMPLE_BYTES / sizeof *r->at / per_pass;
	r->at = hd_arena_take(arena, per_pass * r->cap, sizeof *r->at);
	r->pass = hd_arena_take(arena, per_pass, sizeof *r->pass);
	r->sum = hd_arena_take(arena, r->nnodes, sizeof *r->sum);
	r->square = hd_arena_take(arena, r->nnodes, sizeof *r->square);
	r->all = hd_arena_take(arena, (NPARTS + 1) * r->cap, sizeof *r->all);
	r->sorted = hd_arena_take(arena, r->cap, sizeof *r->sorted);
	if (r->at && r->pass && r->sum && r->square && r->all && r->sorted)
		return HD_OK;
	return hd_fail(diag, HD_E_NOMEM, "no memory for %llu samples of %u nodes",
		(unsigned long long)r->cap, r->nnodes);
}

static int64_t now_ns(const struct record *r, struct hd_walk *walk)
{
	return r->processor ? hd_clock_thread_ns() : hd_clock_now_ns(&walk->worker->clock);
}

static enum hd_err pass(struct record *r, struct hd_walk *walk, struct hd_diag *diag)
{
	const struct hd_program *p = &walk->worker->stage->train;
	enum hd_err err = HD_OK;

	memset(r->pass, 0, (size_t)r->nnodes * NPARTS * sizeof *r->pass);
	for (int phase = HD_RUN_F; phase <= HD_RUN_B; phase++)
		for (uint32_t i = 0; i < p->norder[phase] && !err; i++) {
			uint32_t inode = p->order[phase][i];
			int64_t began_ns = now_ns(r, walk);
			err = hd_walk_run(walk, (enum hd_run_phase)phase, i, diag);
			r->pass[r->home[inode] * NPARTS + r->graph->node[inode].phase] += now_ns(r, walk) -
				began_ns;
		}
	return err;
}

static void keep(struct record *r)
{
	for (uint32_t i = 0; i < r->nnodes; i++) {
		double ns = 0;
		for (uint32_t k = 0; k < NPARTS; k++) {
			r->at[((size_t)i * NPARTS + k) * r->cap + r->n] = r->pass[i * NPARTS + k];
			r->all[k * r->cap + r->n] += r->pass[i * NPARTS + k];
			r->all[NPARTS * r->cap + r->n] += r->pass[i * NPARTS + k];
			ns += (double)r->pass[i * NPARTS + k];
		}
		r->sum[i] += ns;
		r->square[i] += ns * ns;
	}
	r->n++;
}

/* Standard error of a node's mean below 1 % of it, of every node above 1 % of the total. */
static bool is_settled(const struct record *r)
{
	double n = (double)r->n, total = 0;

	for (uint32_t i = 0; i < r->nnodes; i++)
		total += r->sum[i];
	for (uint32_t i = 0; i < r->nnodes; i++) {
		double mean = r->sum[i] / n, variance = (r->square[i] - n * mean * mean) / (n - 1);
		if (r->sum[i] > 0.01 * total && variance > 0 && sqrt(variance / n) > 0.01 * mean)
			return false;
	}
	return true;
}

static int rising(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Samples of a part of all nodes, ascending. */
static const int64_t *sorted(const struct record *r, uint32_t part)
{
	memcpy(r->sorted, r->all + part * r->cap, r->n * sizeof *r->sorted);
	qsort(r->sorted, r->n, sizeof *r->sorted, rising);
	return r->sorted;
}

bool hd_profile_is_known(const int64_t *sorted, uint64_t n)
{
	const uint64_t beside = (uint64_t)ceil(sqrt((double)n)), low = (n - 1) / 2, high = n / 2;

	return n >= HD_PROFILE_KNOWN && (double)(sorted[high + beside] - sorted[low - beside]) <=
		2 * HD_PROFILE_ERROR * (double)sorted[low];
}

/* Rule 5: a share of the budget is used up. */
static bool is_over(struct hd_walk *walk, const struct hd_profile_how *how, int64_t began_ns, int64_t share)
{
	return how->budget_ns &&
		hd_clock_now_ns(&walk->worker->clock) - began_ns >= how->budget_ns / share;
}

static enum hd_err sample(struct record *r, struct hd_walk *walk, const struct hd_profile_how *how,
	struct hd_diag *diag)
{
	const int64_t began_ns = hd_clock_now_ns(&walk->worker->clock);
	enum hd_err err = HD_OK;

	for (; r->nwarm < (how->budget_ns ? HD_PROFILE_FEW : HD_PROFILE_WARMUP) && !err && !(r->nwarm &&
		is_over(walk, how, began_ns, 4));
		r->nwarm++)
		err = pass(r, walk, diag);
	while (r->n < r->cap && !err) {
		err = pass(r, walk, diag);
		if (!err)
			keep(r);
		if (!how->samples && r->n >= HD_PROFILE_LEAST && r->n % LOOK_EVERY == 0 && is_settled(r))
			break;
		if (how->budget_ns && (hd_profile_is_known(sorted(r, NPARTS), r->n) ||
			(r->n >= HD_PROFILE_FEW && is_over(walk, how, began_ns, 1))))
			break;
	}
	return err;
}

struct hd_profile_cost hd_profile_cost_of(int64_t *ns, uint64_t n)
{
	struct hd_profile_cost cost = { .n = n };
	double sum = 0, square = 0;

	qsort(ns, n, sizeof *ns, rising);
	for (uint64_t i = 0; i < n; i++)
		sum += (double)ns[i];
	for (uint64_t i = 0; i < n; i++)
		square += ((double)ns[i] - sum / (double)n) * ((double)ns[i] - sum / (double)n);
	cost.p50_ns = ns[(n - 1) / 2];
	cost.min_ns = ns[0];
	cost.mean_ns = (int64_t)(sum / (double)n + 0.5);
	cost.sd_ns = n > 1 ? (int64_t)(sqrt(square / (double)(n - 1)) + 0.5) : 0;
	return cost;
}

int64_t hd_profile_undisturbed(int64_t *ns, uint64_t n)
{
	qsort(ns, n, sizeof *ns, rising);
	return ns[n / 4];
}

static struct hd_profile_cost *part_of(struct hd_profile_node *node, uint32_t part)
{
	return part == HD_PHASE_F ? &node->f : part == HD_PHASE_I ? &node->i : &node->w;
}

void hd_profile_fit(struct hd_profile_node *node, uint32_t n, uint32_t phase, double all_ns)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (double)part_of(&node[i], phase)->p50_ns;
	for (uint32_t i = 0; i < n && sum > 0; i++) {
		struct hd_profile_cost *cost = part_of(&node[i], phase);
		cost->p50_ns = llround((double)cost->p50_ns * all_ns / sum);
	}
}

static void fill_in(struct record *r, bool fits, struct hd_profile *p)
{
	for (uint32_t i = 0; i < r->nnodes; i++) {
		int64_t *at = r->at + (size_t)i * NPARTS * r->cap;
		for (uint64_t k = 0; k < NPARTS * r->cap; k++)
			at[k] /= r->together;
		p->node[i].f = hd_profile_cost_of(at + HD_PHASE_F * r->cap, r->n);
		p->node[i].i = hd_profile_cost_of(at + HD_PHASE_I * r->cap, r->n);
		p->node[i].w = hd_profile_cost_of(at + HD_PHASE_W * r->cap, r->n);
	}
	for (uint32_t k = 0; k < NPARTS && fits; k++)
		hd_profile_fit(p->node, r->nnodes, k, (double)sorted(r, k)[(r->n - 1) / 2] / r->together);
	p->method = HD_PROFILE_MEASURED;
	p->warmup = r->nwarm;
	p->samples = r->n;
}

static enum hd_err is_whole(const struct hd_walk *walk, struct hd_diag *diag)
{
	const struct hd_job *job = walk->worker->task->job;

	if (hd_job_int(job, HD_JOB_SLICES) > 1)
		return hd_fail(diag, HD_E_INVAL,
			"a profile is of whole virtual nodes, and batch.slices is %lld: -s batch.slices=1",
			(long long)hd_job_int(job, HD_JOB_SLICES));
	if (walk->rank->work->loaded[0].rows != job->per_vn)
		return hd_fail(diag, HD_E_INVAL,
			"a virtual node has %llu samples and this step's first has %llu: the data are too "
			"few for batch.global %llu",
			(unsigned long long)job->per_vn, (unsigned long long)walk->rank->work->loaded[0].rows,
			(unsigned long long)job->batch);
	return HD_OK;
}

static enum hd_err describe(const struct hd_worker *w, struct hd_arena *arena, struct hd_profile *p,
	uint32_t **home, struct hd_diag *diag)
{
	const struct hd_device *device = w->rank[0].device;
	const char *path = hd_worker_path(w), *kernels = hd_kernels_text(w->spec.kernels);
	const bool cores = strcmp(w->spec.kind, "cpu") == 0;
	struct hd_profile_ask ask = { .rows = w->task->job->per_vn,
		.nslots = hd_optim_nslots(&w->task->optim),
		.tensor_shards = (uint32_t)hd_job_int(w->task->job, HD_JOB_SHARDS),
		.scratch_bytes = device->scratch_bytes };
	enum hd_err err = hd_profile_of_graph(p, home, &w->task->train, &ask, arena, diag);
	struct hd_text isa;

	hd_text_init(&isa, arena);
	hd_text_addf(&isa, "%s%s%s", path, cores ? " " : "", cores ? kernels : "");
	if (!err && isa.full)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a profile");
	p->device_kind = w->spec.kind;
	p->isa = isa.at;
	p->threads = w->spec.nthreads;
	return err;
}

enum hd_err hd_worker_profile(struct hd_worker *w, const struct hd_profile_how *how, struct hd_arena *arena,
	struct hd_profile *profile, struct hd_diag *diag)
{
	struct hd_walk walk;
	struct hd_profile made;
	struct hd_arena scratch;
	struct record r = { .graph = w->stage->train.graph, .processor = how->processor,
		.cap = how->samples ? how->samples : HD_PROFILE_MOST };
	uint32_t *home = NULL;
	enum hd_err err = hd_walk_open(&walk, w, how->together ? how->together : 1, diag);

	hd_arena_init(&scratch, 0);
	if (!err)
		err = is_whole(&walk, diag);
	if (!err)
		err = describe(w, arena, &made, &home, diag);
	r.home = home;
	if (!err) {
		r.nnodes = made.nnodes;
		err = take(&r, &scratch, diag);
	}
	if (!err)
		err = sample(&r, &walk, how, diag);
	r.together = walk.rank->nwave;
	hd_walk_close(&walk);
	if (!err) {
		fill_in(&r, how->budget_ns > 0, &made);
		*profile = made;
	}
	hd_arena_finish(&scratch);
	return err;
}

enum hd_err hd_worker_profile_step(struct hd_worker *w, struct hd_profile *p, struct hd_profile_step *step,
	struct hd_diag *diag)
{
	double bytes = (double)w->task->layout.elems * sizeof(float);
	struct hd_step_record record;
	struct hd_times whole = { .n = 0 }, update = { .n = 0 };
	struct hd_fold_times folds;
	enum hd_err err = HD_OK;

	for (int i = 0; i <= HD_PROFILE_STEPS && !err; i++) {
		int64_t began_ns = hd_clock_now_ns(&w->clock);
		err = hd_worker_step(w, false, &record, diag);
		if (i) {                  /* the first one prepares */
			hd_times_add(&whole, (double)(hd_clock_now_ns(&w->clock) - began_ns));
			hd_times_add(&update, (double)record.ins_ns[HD_INS_STEP]);
		}
	}
	if (!err)
		err = hd_worker_fold_times(w, HD_PROFILE_STEPS, &folds, diag);
	if (err)
		return err;
	*step = (struct hd_profile_step){ hd_times_quantile(&whole, 0.5), hd_times_quantile(&whole, 0),
		hd_times_quantile(&update, 0.5) };
	p->step_ns_per_byte = bytes > 0 ? step->update_ns / bytes : 0;
	p->sum_ns_per_byte = bytes > 0 ? folds.best_s * 1e9 / bytes : 0;
	return HD_OK;
}
