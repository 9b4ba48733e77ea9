#include "exec/op_times.h"

#include "exec/worker_int.h"

/* A wave being run node by node. */
struct walk {
	struct hd_worker *worker;
	struct hd_rank *rank;
	struct hd_part part[HD_MAX_WAVE];
	struct hd_bind bind;
	uint32_t nwaves, ntaken;
	uint64_t repeat;
	uint32_t *first_node;             /* [n] of each row of times */
	struct hd_op_times *times;
};

static enum hd_err refuse(const struct hd_worker *w, struct hd_diag *diag)
{
	if (w->spec.ndevices != 1)
		return hd_fail(diag, HD_E_REFUSED, "ops are timed on one device, the worker has %u: --devices 1", w->spec.ndevices);
	if (hd_lockstep_needed(&w->lockstep))
		return hd_fail(diag, HD_E_REFUSED, "ops are timed wave by wave; norms over the global batch (model.bn) run all virtual nodes in lockstep");
	return HD_OK;
}

/* Rows of the first wave, as its LD instructions would take them. */
static enum hd_err load(struct walk *k, struct hd_diag *diag)
{
	struct hd_worker *w = k->worker;
	struct hd_rank *rank = k->rank;
	uint64_t end, nrows;
	enum hd_err err = HD_OK;

	w->step_rows = hd_sampler_rows(&w->task->sampler, (uint64_t)w->step);
	rank->first_ivn = 0;
	for (rank->nwave = 1; rank->nwave < rank->script.nvns_here && rank->wave[rank->nwave] == rank->wave[0]; rank->nwave++)
		;
	w->again = true;                  /* the rows taken here are the next step's: its reader goes back */
	for (uint32_t i = 0; i < rank->nwave && !err; i++) {
		struct hd_loaded *loaded = &rank->loaded[i];
		hd_vn_rows(w->task->job->per_vn, w->step_rows, i, &loaded->first_row, &end);
		loaded->rows = end - loaded->first_row;
		err = hd_prefetch_take(w->prefetch, (uint64_t)w->step, i, loaded->field, &nrows, diag);
		k->ntaken += !err;
	}
	return err;
}

static void bind(struct walk *k)
{
	struct hd_rank *rank = k->rank;

	hd_rank_bind(rank, 0, 0, 0, &k->bind);
	for (uint32_t i = 0; i < rank->nwave; i++)
		k->part[i] = (struct hd_part){ .rows = rank->nwave == 1 ? k->bind.rows : rank->loaded[i].rows, .vn = i, .fold = rank->fold[i],
			.nfolds = hd_rank_moves(rank, i, 0, rank->fold[i]) };
	k->bind.part = k->part;
	k->bind.nparts = rank->nwave;
}

static enum hd_err run(struct walk *k, enum hd_run_phase phase, uint32_t place, struct hd_diag *diag)
{
	struct hd_device *device = k->rank->device;
	uint64_t token = 0;

	k->bind.from = place;
	k->bind.to = place + 1;
	enum hd_err err = device->ops->run(device, &k->worker->train, phase, &k->bind, &token, diag);
	return err ? err : device->ops->wait(device, token, diag);
}

static bool is_shared(const struct hd_program *p, uint32_t inode) { return p->kind[p->graph->node[inode].out] == HD_KIND_SHARED; }

/* Do both run the same calls? A gradient of a parameter is folded, too. */
static bool alike(const struct hd_program *p, uint32_t a, uint32_t b)
{
	const struct hd_node *x = &p->graph->node[a], *y = &p->graph->node[b];

	return hd_call_same(&p->calls[0][a], &p->calls[0][b]) && p->together[a] == p->together[b] && is_shared(p, a) == is_shared(p, b) &&
		(p->grad_of_value[x->out] == HD_NONE) == (p->grad_of_value[y->out] == HD_NONE);
}

static struct hd_op_time *seen(const struct walk *k, uint32_t inode)
{
	for (uint32_t i = 0; i < k->times->n; i++)
		if (alike(&k->worker->train, k->first_node[i], inode))
			return &k->times->at[i];
	return NULL;
}

static struct hd_op_time *begin(struct walk *k, uint32_t inode)
{
	const struct hd_program *p = &k->worker->train;
	const struct hd_node *node = &p->graph->node[inode];
	uint32_t nparts = k->rank->nwave, wide = p->together[inode] ? nparts : 1;
	struct hd_cost one = hd_ops[node->op].cost(p->graph, node, p->part_rows), all = hd_ops[node->op].cost(p->graph, node, p->part_rows * wide);
	struct hd_op_time *t = &k->times->at[k->times->n];

	k->first_node[k->times->n++] = inode;
	*t = (struct hd_op_time){ .call = &p->calls[0][inode], .flops = one.flops, .bytes = all.bytes / wide, .best_s = -1 };
	return t;
}

static enum hd_err time_node(struct walk *k, enum hd_run_phase phase, uint32_t place, struct hd_op_time *t, uint32_t nparts, struct hd_diag *diag)
{
	struct hd_clock *clock = &k->worker->clock;
	enum hd_err err = HD_OK;

	for (uint64_t i = 0; i < k->repeat && !err; i++) {
		int64_t began_ns = hd_clock_now_ns(clock);
		err = run(k, phase, place, diag);
		double took_s = (double)(hd_clock_now_ns(clock) - began_ns) * 1e-9 / nparts;
		if (t->best_s < 0 || took_s < t->best_s)
			t->best_s = took_s;
	}
	return err;
}

static enum hd_err node(struct walk *k, enum hd_run_phase phase, uint32_t place, struct hd_diag *diag)
{
	const struct hd_program *p = &k->worker->train;
	uint32_t inode = p->order[phase][place], nslices = k->rank->script.nslices;
	bool shared = is_shared(p, inode);
	enum hd_err err;

	if (hd_ops[p->graph->node[inode].op].class == HD_OP_VIEW)
		return run(k, phase, place, diag);
	struct hd_op_time *t = seen(k, inode);
	if (t) {
		err = run(k, phase, place, diag);
	} else {
		t = begin(k, inode);
		err = time_node(k, phase, place, t, shared ? 1 : k->rank->nwave, diag);
	}
	t->count += (shared ? k->nwaves : k->worker->task->job->nvns) * nslices;
	return err;
}

enum hd_err hd_worker_op_times(struct hd_worker *w, uint64_t repeat, struct hd_arena *arena, struct hd_op_times *times, struct hd_diag *diag)
{
	uint32_t nnodes = w->train.graph->nnodes;
	struct walk k = { .worker = w, .rank = &w->rank[0], .repeat = repeat, .times = times };
	enum hd_err err = refuse(w, diag);

	*times = (struct hd_op_times){ .at = hd_arena_take(arena, nnodes + 1, sizeof *times->at) };
	k.first_node = hd_arena_take(arena, nnodes + 1, sizeof *k.first_node);
	if (!err && (!times->at || !k.first_node))
		err = hd_fail(diag, HD_E_NOMEM, "no memory for the times of %u ops", nnodes);
	if (!err && !w->plan)
		err = hd_fail(diag, HD_E_INVAL, "ops are timed under a plan, and the worker has none");
	if (!err && w->again)
		err = hd_worker_reread(w, diag);
	if (!err)
		err = load(&k, diag);
	if (!err) {
		bind(&k);
		times->wave = k.rank->nwave;
		k.nwaves = k.rank->wave[k.rank->script.nvns_here - 1] + 1;
	}
	for (int phase = HD_RUN_F; phase <= HD_RUN_B && !err; phase++)
		for (uint32_t i = 0; i < w->train.norder[phase] && !err; i++)
			err = node(&k, (enum hd_run_phase)phase, i, diag);
	for (uint32_t i = 0; i < k.ntaken; i++)
		hd_prefetch_done(w->prefetch, (uint64_t)w->step, i);
	k.rank->nwave = 0;
	return err;
}

enum hd_err hd_worker_fold_times(struct hd_worker *w, uint64_t repeat, struct hd_fold_times *times, struct hd_diag *diag)
{
	struct hd_rank *rank = &w->rank[0];
	const struct hd_fold_script *script = &rank->script;
	const struct hd_device_ops *ops = rank->device->ops;
	struct hd_fold_times made = { .nadds = 0 };
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	if (!w->plan)
		return hd_fail(diag, HD_E_INVAL, "folds are timed under a plan, and the worker has none");
	for (uint32_t i = 0; i < script->first_move[script->nvns_here * script->nslices]; i++)
		made.nadds += script->move[i].add;
	for (uint64_t i = 0; i < repeat && !err; i++) {
		int64_t began = hd_clock_now_ns(&w->clock);
		err = ops->add(rank->device, rank->buffer[0], rank->buffer[0], rank->buffer[rank->buffer_cap - 1], w->task->layout.elems, &token,
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
