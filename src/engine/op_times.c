#include "engine/op_times.h"

#include "device/peak.h"
#include "engine/times.h"
#include "engine/walk.h"

/* A wave being run node by node. */
struct timing {
	struct hd_walk walk;
	uint32_t nwaves;
	struct hd_op_timing how;
	uint32_t *first_node;             /* [n] of each row of times */
	double *node_s;                   /* [nnodes], cold: best of the passes so far; < 0: none */
	struct hd_times *node_peak;       /* [nnodes], cold, with a path: peak_flops of the passes */
	double peak;                      /* the last one measured */
	struct hd_op_times *times;
};

static bool is_shared(const struct hd_program *p,
	uint32_t inode) { return p->kind[p->graph->node[inode].out] == HD_KIND_SHARED; }

/* Do both run the same calls? A gradient of a parameter is folded, too. */
static bool alike(const struct hd_program *p, uint32_t a, uint32_t b)
{
	const struct hd_node *x = &p->graph->node[a], *y = &p->graph->node[b];

	return hd_call_same(&p->calls[0][a], &p->calls[0][b]) && p->together[a] == p->together[b] &&
		is_shared(p, a) == is_shared(p, b) &&
		(p->grad_of_value[x->out] == HD_NONE) == (p->grad_of_value[y->out] == HD_NONE);
}

static struct hd_op_time *seen(const struct timing *k, uint32_t inode)
{
	for (uint32_t i = 0; i < k->times->n; i++)
		if (alike(&k->walk.worker->stage->train, k->first_node[i], inode))
			return &k->times->at[i];
	return NULL;
}

static double bytes_in(const struct hd_operand *o) { return (double)(o->elems *
	hd_dtype_bytes((enum hd_dtype)o->dtype)); }

/* The table of an embedding's gradient gives its shape alone. */
static double bytes_unread(const struct hd_call *call)
{
	return call->op == HD_OP_EMBED_DW ? bytes_in(&call->in[2]) : 0;
}

/* Bytes of one virtual node of W, if nothing is cached. A gradient of a parameter has to be written once a
 * wave: it is summed over the wave's virtual nodes. */
static double bytes_of(const struct hd_program *p, uint32_t inode, uint32_t nparts)
{
	const struct hd_node *node = &p->graph->node[inode];
	const struct hd_call *call = &p->calls[0][inode];
	const uint32_t wide = p->together[inode] ? nparts : 1;
	const double all = hd_ops[node->op].cost(p->graph, node, p->part_rows * wide).bytes,
		bytes = (all - bytes_unread(call)) / wide, sum = bytes_in(&call->out[0]);

	return wide > 1 || p->grad_of_value[node->out] == HD_NONE ? bytes : bytes - sum + sum / nparts;
}

static struct hd_op_time *begin(struct timing *k, uint32_t inode)
{
	const struct hd_program *p = &k->walk.worker->stage->train;
	const struct hd_node *node = &p->graph->node[inode];
	const double flops = hd_ops[node->op].cost(p->graph, node, p->part_rows).flops;
	struct hd_op_time *t = &k->times->at[k->times->n];

	k->first_node[k->times->n++] = inode;
	*t = (struct hd_op_time){ .call = &p->calls[0][inode], .flops = flops,
		.bytes = bytes_of(p, inode, k->walk.rank->nwave), .best_s = -1 };
	return t;
}

/* Of one run, into *best_s if it is less. */
static enum hd_err time_once(struct timing *k, enum hd_run_phase phase, uint32_t place, uint32_t nparts,
	double *best_s, struct hd_diag *diag)
{
	struct hd_clock *clock = &k->walk.worker->clock;
	int64_t began_ns = hd_clock_now_ns(clock);
	enum hd_err err = hd_walk_run(&k->walk, phase, place, diag);
	double took_s = (double)(hd_clock_now_ns(clock) - began_ns) * 1e-9 / nparts;

	if (*best_s < 0 || took_s < *best_s)
		*best_s = took_s;
	return err;
}

static enum hd_err time_node(struct timing *k, enum hd_run_phase phase, uint32_t place, struct hd_op_time *t,
	uint32_t nparts, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint64_t i = 0; i < k->how.repeat && !err; i++)
		err = time_once(k, phase, place, nparts, &t->best_s, diag);
	return err;
}

static bool is_view(const struct hd_program *p, uint32_t inode)
{
	return hd_ops[p->graph->node[inode].op].class == HD_OP_VIEW;
}

static uint32_t parts_of(const struct timing *k, uint32_t inode)
{
	return is_shared(&k->walk.worker->stage->train, inode) ? 1 : k->walk.rank->nwave;
}

static double measure_peak(struct timing *k)
{
	struct hd_op_times *t = k->times;
	const double peak = hd_core_peak_brief(k->how.path, k->how.about, &k->how.clock);

	t->peak_least = t->peak_least > 0 && t->peak_least < peak ? t->peak_least : peak;
	t->peak_most = t->peak_most > peak ? t->peak_most : peak;
	return peak;
}

/* A node has run so long: what would its core have done at its peak, a virtual node? */
static void add_peak(struct timing *k, uint32_t inode, int64_t took_ns)
{
	const double took_s = (double)took_ns * 1e-9 / parts_of(k, inode), before = k->peak;

	k->peak = measure_peak(k);
	hd_times_add(&k->node_peak[inode], took_s * (before + k->peak) / 2);
}

/* A pass over both phases; the times of the first are not kept. */
static enum hd_err pass(struct timing *k, bool kept, struct hd_diag *diag)
{
	const struct hd_program *p = &k->walk.worker->stage->train;
	enum hd_err err = HD_OK;

	for (int phase = HD_RUN_F; phase <= HD_RUN_B && !err; phase++)
		for (uint32_t i = 0; i < p->norder[phase] && !err; i++) {
			uint32_t inode = p->order[phase][i];
			double unkept_s = -1;
			const bool beside = kept && k->node_peak && !is_view(p, inode);
			const int64_t began_ns = beside ? hd_clock_now_ns(&k->how.clock) : 0;
			err = time_once(k, (enum hd_run_phase)phase, i, parts_of(k, inode),
				kept ? &k->node_s[inode] : &unkept_s, diag);
			if (beside)
				add_peak(k, inode, hd_clock_now_ns(&k->how.clock) - began_ns);
		}
	return err;
}

static enum hd_err passes(struct timing *k, struct hd_diag *diag)
{
	enum hd_err err = pass(k, false, diag);

	for (uint32_t i = 0; i < k->walk.worker->stage->train.graph->nnodes; i++)
		k->node_s[i] = -1;
	if (k->node_peak)
		k->peak = measure_peak(k);
	for (uint64_t i = 0; i < k->how.repeat && !err; i++)
		err = pass(k, true, diag);
	return err;
}

/* Weighs a node's time by how often it counts: those of a row are means of all its nodes. */
static void add_node(struct timing *k, struct hd_op_time *t, uint32_t inode, uint64_t count)
{
	const double before = (double)t->count, n = (double)count, all = before + n;
	const double peak = k->node_peak ? hd_times_quantile(&k->node_peak[inode], 0.5) : 0;

	t->best_s = ((t->count ? t->best_s * before : 0) + k->node_s[inode] * n) / all;
	t->peak_flops = (t->peak_flops * before + peak * n) / all;
}

static enum hd_err node(struct timing *k, enum hd_run_phase phase, uint32_t place, struct hd_diag *diag)
{
	const struct hd_program *p = &k->walk.worker->stage->train;
	uint32_t inode = p->order[phase][place], nslices = k->walk.rank->work->script.nslices;
	uint64_t ncalls = is_shared(p, inode) ? k->nwaves : k->walk.worker->task->job->nvns,
		count = ncalls * nslices;
	enum hd_err err = HD_OK;

	if (is_view(p, inode))
		return k->how.cold ? HD_OK : hd_walk_run(&k->walk, phase, place, diag);
	struct hd_op_time *t = seen(k, inode);
	bool first = !t;
	t = t ? t : begin(k, inode);
	if (k->how.cold)
		add_node(k, t, inode, count);
	else if (first)
		err = time_node(k, phase, place, t, parts_of(k, inode), diag);
	else
		err = hd_walk_run(&k->walk, phase, place, diag);
	t->count += count;
	return err;
}

double hd_op_times_sum(const struct hd_op_times *times)
{
	double sum_s = 0;

	for (uint32_t i = 0; i < times->n; i++)
		sum_s += (double)times->at[i].count * times->at[i].best_s;
	return sum_s;
}

enum hd_err hd_worker_op_times(struct hd_worker *w, const struct hd_op_timing *how, struct hd_arena *arena,
	struct hd_op_times *times, struct hd_diag *diag)
{
	const uint32_t nnodes = w->stage->train.graph->nnodes;
	const bool peaks = how->cold && how->path;
	struct timing k = { .how = *how, .times = times };
	enum hd_err err = hd_walk_open(&k.walk, w, 0, diag);

	*times = (struct hd_op_times){ .at = hd_arena_take(arena, nnodes + 1, sizeof *times->at) };
	k.first_node = hd_arena_take(arena, nnodes + 1, sizeof *k.first_node);
	k.node_s = hd_arena_take(arena, nnodes + 1, sizeof *k.node_s);
	if (peaks)
		k.node_peak = hd_arena_take(arena, nnodes + 1, sizeof *k.node_peak);
	if (!err && (!times->at || !k.first_node || !k.node_s || (peaks && !k.node_peak)))
		err = hd_fail(diag, HD_E_NOMEM, "no memory for the times of %u ops", nnodes);
	if (!err) {
		times->wave = k.walk.rank->nwave;
		k.nwaves = k.walk.rank->work->wave[k.walk.rank->work->script.nvns_here - 1] + 1;
	}
	if (!err && how->cold)
		err = passes(&k, diag);
	for (int phase = HD_RUN_F; phase <= HD_RUN_B && !err; phase++)
		for (uint32_t i = 0; i < w->stage->train.norder[phase] && !err; i++)
			err = node(&k, (enum hd_run_phase)phase, i, diag);
	hd_walk_close(&k.walk);
	return err;
}

enum hd_err hd_worker_fold_times(struct hd_worker *w, uint64_t repeat, struct hd_fold_times *times,
	struct hd_diag *diag)
{
	if (!hd_worker_planned(w))
		return hd_fail(diag, HD_E_INVAL, "folds are timed under a plan, and the worker has none");
	struct hd_rank *rank = &w->rank[0];
	const struct hd_fold_script *script = &rank->work->script;
	const struct hd_device_ops *ops = rank->device->ops;
	struct hd_fold_times made = { .nadds = 0 };
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < script->first_move[script->nvns_here * script->nslices]; i++)
		made.nadds += script->move[i].add;
	for (uint64_t i = 0; i < repeat && !err; i++) {
		int64_t began = hd_clock_now_ns(&w->clock);
		err = ops->add(rank->device, rank->pool->buffer[0], rank->pool->buffer[0],
			rank->pool->buffer[rank->pool->cap - 1], w->task->layout.elems, &token,
			diag);
		if (!err)
			err = ops->wait(rank->device, token, diag);
		double took = (double)(hd_clock_now_ns(&w->clock) - began) * 1e-9;
		made.best_s = i == 0 || took < made.best_s ? took : made.best_s;
	}
	if (!err)
		*times = made;
	return err;
}

enum hd_err hd_worker_norm_time(struct hd_worker *w, uint64_t repeat, double *best_s, struct hd_diag *diag)
{
	if (!hd_worker_planned(w))
		return hd_fail(diag, HD_E_INVAL, "norms are timed under a plan, and the worker has none");
	struct hd_device *device = w->rank[0].device;
	const struct hd_reduction reduction = { .flat = hd_worker_sum(w), .segment = w->task->layout.segment,
		.nsegments = w->task->layout.nsegments, .partial = w->stage->segment_sumsq };
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	for (uint64_t i = 0; i < repeat && !err; i++) {
		const int64_t began = hd_clock_now_ns(&w->clock);
		err = device->ops->reduce(device, &reduction, &token, diag);
		err = err ? err : device->ops->wait(device, token, diag);
		const double took = (double)(hd_clock_now_ns(&w->clock) - began) * 1e-9;
		*best_s = i == 0 || took < *best_s ? took : *best_s;
	}
	return err;
}
