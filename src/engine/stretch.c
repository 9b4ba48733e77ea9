#include "engine/stretch.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/op.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "functions/dense.h"
#include "functions/owner.h"
#include "engine/worker_int.h"

#define LOOK_NS INT64_C(100000000)        /* a turn at most: others see that this worker lives (pulse) */
enum { GRAPH_BYTES = 64 << 20, KEEP_BYTES = 1024 };     /* smaller inputs are sent again each time */

/* A stretch as a graph of its own. */
struct cut {
	const struct hd_worker *w;
	struct hd_stretch *s;
	struct hd_arena arena;
	struct hd_graph graph;
	bool *inside;                     /* [nodes] */
	uint32_t *there;                  /* [values] in the graph, HD_NONE: not so far */
	uint32_t in[HD_MAX_ENDS], out[HD_MAX_ENDS], place[HD_MAX_ENDS], nin, nout;
};

static const struct hd_program *program_of(const struct hd_worker *w) { return &w->stage->train; }

/* Of an output among the results: whole lines. */
static uint64_t place_bytes(const struct hd_fn_tensor *tensor)
{
	return (hd_fn_tensor_bytes(tensor) + HD_ALIGN - 1) / HD_ALIGN * HD_ALIGN;
}

/* ---- cutting ---- */

static enum hd_err take_input(struct cut *c, uint32_t v, struct hd_diag *diag)
{
	const struct hd_graph *from = program_of(c->w)->graph;
	const struct hd_value *value = &from->value[v];
	char name[16];

	if (value->kind == HD_CONST)
		return hd_graph_const(&c->graph, (enum hd_dtype)value->dtype, value->rank, value->dim,
			from->consts + value->data, &c->there[v], diag);
	if (c->nin == HD_MAX_ENDS)
		return hd_fail(diag, HD_E_INPUT, "it reads more than %d values", HD_MAX_ENDS);
	snprintf(name, sizeof name, "v%u", v);
	c->in[c->nin++] = v;
	return hd_graph_input(&c->graph, name, (enum hd_dtype)value->dtype, value->rank, value->dim,
		&c->there[v], diag);
}

static enum hd_err take_node(struct cut *c, uint32_t inode, struct hd_diag *diag)
{
	const struct hd_node *node = &program_of(c->w)->graph->node[inode];
	uint32_t in[HD_MAX_IN], out = HD_NONE;
	enum hd_err err = HD_OK;

	for (uint8_t k = 0; k < node->nin && !err; k++) {
		if (c->there[node->in[k]] == HD_NONE)
			err = take_input(c, node->in[k], diag);
		in[k] = c->there[node->in[k]];
	}
	if (!err)
		err = hd_graph_node(&c->graph, node->op, node->nin, in, &node->attr, 0, &out, diag);
	if (err)
		return err;
	if (hd_ops[node->op].class == HD_OP_RANDOM) {
		c->graph.node[c->graph.nnodes - 1].key = node->key;
		c->graph.nrandom = node->key + 1;
	}
	for (uint8_t k = 0; k < node->nout; k++)
		c->there[node->out + k] = out + k;
	return HD_OK;
}

static bool reads(const struct hd_node *node, uint32_t v)
{
	for (uint8_t k = 0; k < node->nin; k++)
		if (node->in[k] == v)
			return true;
	return false;
}

/* Is a value that a node inside makes wanted outside? */
static bool is_wanted(const struct cut *c, uint32_t v)
{
	const struct hd_program *p = program_of(c->w);
	const struct hd_graph *g = p->graph;

	if (p->grad_of_value[v] != HD_NONE)
		return true;
	for (uint32_t i = 0; i < g->noutputs; i++)
		if (g->output[i].value == v)
			return true;
	for (uint32_t i = 0; i < g->nrunning; i++)
		if (g->running[i].moments == v)
			return true;
	for (uint32_t i = 0; i < g->nnodes; i++)
		if (!c->inside[i] && reads(&g->node[i], v))
			return true;
	return false;
}

static enum hd_err take_outputs(struct cut *c, uint32_t place, struct hd_diag *diag)
{
	const struct hd_program *p = program_of(c->w);
	const struct hd_node *node = &p->graph->node[p->order[c->s->phase][place]];
	enum hd_err err = HD_OK;
	char name[16];

	for (uint32_t v = node->out; v < node->out + node->nout && !err; v++) {
		if (!is_wanted(c, v))
			continue;
		if (c->nout == HD_MAX_ENDS)
			return hd_fail(diag, HD_E_INPUT, "others read more than %d values of it",
				HD_MAX_ENDS);
		snprintf(name, sizeof name, "v%u", v);
		c->out[c->nout] = v;
		c->place[c->nout++] = place;
		err = hd_graph_output(&c->graph, name, c->there[v], diag);
	}
	return err;
}

/* Its graph's text and tensors, in the worker's arena. */
static enum hd_err write_work(struct cut *c, struct hd_diag *diag)
{
	struct hd_worker *w = (struct hd_worker *)(uintptr_t)c->w;
	struct hd_dense dense = { .graph = c->graph, .rows = w->task->job->per_vn };
	struct hd_stretch *s = c->s;
	struct hd_text text;

	hd_text_init(&text, &w->arena);
	s->work = hd_arena_take(&w->arena, 1, sizeof *s->work);
	s->value = hd_arena_take(&w->arena, HD_FN_TENSORS, sizeof *s->value);
	s->place = hd_arena_take(&w->arena, HD_FN_TENSORS, sizeof *s->place);
	if (!s->work || !s->value || !s->place)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a dense task");
	enum hd_err err = hd_graph_verify(&c->graph, dense.rows, diag);
	if (!err)
		err = hd_graph_print(&c->graph, &text, diag);
	if (!err && text.len > HD_FN_TEXT_BYTES)
		err = hd_fail(diag, HD_E_INPUT, "its text has more than %d bytes", HD_FN_TEXT_BYTES);
	if (!err)
		err = hd_dense_tensors(&dense, s->work, diag);
	if (err)
		return err;
	s->work->rows = dense.rows;
	s->work->text = text.at;
	s->work->text_len = text.len;
	snprintf(s->work->kernels, sizeof s->work->kernels, "%s",
		hd_dense_has_kernels("avx2", NULL) ? "portable" : "avx2");
	err = hd_dense_proof(s->work, w->spec.functions->spec.clock, INT64_MAX, &s->work->proof, diag);
	if (err)
		return err;
	for (uint32_t t = 0; t < s->work->ntensors; t++) {
		bool output = t >= c->nin;
		s->value[t] = output ? c->out[t - c->nin] : c->in[t];
		s->place[t] = output ? c->place[t - c->nin] : HD_NONE;
		if (output)
			s->out_bytes += place_bytes(&s->work->tensor[t]);
	}
	return HD_OK;
}

static enum hd_err cut(struct hd_worker *w, struct hd_stretch *s, struct hd_diag *diag)
{
	const struct hd_program *p = program_of(w);
	struct cut c = { .w = w, .s = s };
	enum hd_err err = HD_OK;

	hd_arena_init(&c.arena, GRAPH_BYTES);
	hd_graph_init(&c.graph, &c.arena);
	c.inside = hd_arena_take(&c.arena, p->graph->nnodes, sizeof *c.inside);
	c.there = hd_arena_take(&c.arena, p->graph->nvalues, sizeof *c.there);
	if (!c.inside || !c.there)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a dense task");
	for (uint32_t v = 0; !err && v < p->graph->nvalues; v++)
		c.there[v] = HD_NONE;
	for (uint32_t i = s->from; !err && i < s->to; i++)
		c.inside[p->order[s->phase][i]] = true;
	if (!err)
		err = hd_graph_name(&c.graph, "stretch", &c.graph.name, diag);
	for (uint32_t i = s->from; !err && i < s->to; i++)
		err = take_node(&c, p->order[s->phase][i], diag);
	for (uint32_t i = s->from; !err && i < s->to; i++)
		err = take_outputs(&c, i, diag);
	if (!err)
		err = write_work(&c, diag);
	hd_arena_finish(&c.arena);
	return err;
}

/* ---- all of them ---- */

static bool is_of_edges(const struct hd_program *p, uint32_t inode)
{
	const struct hd_node *node = &p->graph->node[inode];

	return hd_ops[node->op].class == HD_OP_GRAPH || hd_lockstep_is_sync(node);
}

/* Nodes from `from` on without one that others wait at or that knows edges; is one of class dense? */
static bool grows(const struct hd_program *p, enum hd_run_phase phase, uint32_t from, uint32_t *to)
{
	bool dense = false;

	for (*to = from; *to < p->norder[phase] && !is_of_edges(p, p->order[phase][*to]); ++*to)
		dense |= hd_ops[p->graph->node[p->order[phase][*to]].op].class == HD_OP_DENSE;
	return dense;
}

static enum hd_err add(struct hd_worker *w, enum hd_run_phase phase, uint32_t from, uint32_t to,
	struct hd_diag *diag)
{
	struct hd_stretches *all = w->stretches;
	struct hd_stretch s = { .phase = phase, .from = from, .to = to };
	struct hd_diag why = { "" };

	enum hd_err err = cut(w, &s, &why);
	if (err == HD_E_NOMEM)
		return hd_fail(diag, err, "%s", why.text);
	if (err && !all->why[0])
		snprintf(all->why, sizeof all->why, "a part of the %s pass of %u nodes is run here: %s",
			phase == HD_RUN_F ? "forward" : "backward", to - from, why.text);
	if (err)
		return HD_OK;
	if (s.out_bytes > all->result_bytes)
		all->result_bytes = s.out_bytes;
	all->at[all->n++] = s;
	return HD_OK;
}

enum hd_err hd_stretches_make(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_program *p = program_of(w);
	enum hd_err err = HD_OK;

	if (!w->spec.functions)
		return HD_OK;
	if (!hd_lockstep_needed(&w->stage->lockstep) || w->spec.ndevices != 1)
		return hd_fail(diag, HD_E_INVAL, "functions.kind: functions compute between the meetings of "
			"virtual nodes, of a process with one device: of a graph in several intervals "
			"(batch.virtual_nodes), with --devices cores:1xN; more processes come by --workers");
	w->stretches = hd_arena_take(&w->arena, 1, sizeof *w->stretches);
	if (w->stretches)
		w->stretches->at = hd_arena_take(&w->arena, p->norder[HD_RUN_F] + p->norder[HD_RUN_B],
			sizeof *w->stretches->at);
	if (!w->stretches || !w->stretches->at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for dense tasks");
	for (enum hd_run_phase phase = HD_RUN_F; phase <= HD_RUN_B; phase++)
		for (uint32_t from = 0, to; from < p->norder[phase] && !err; from = to + 1)
			if (grows(p, phase, from, &to))
				err = add(w, phase, from, to, diag);
	if (!err && !w->stretches->n)
		err = hd_fail(diag, HD_E_INVAL, "functions.kind: nothing of this model can be given out: %s",
			w->stretches->why[0] ? w->stretches->why : "no product lies between two meetings");
	return err;
}

uint64_t hd_stretches_bytes(const struct hd_worker *w, uint32_t need)
{
	const struct hd_stretches *all = w->stretches;

	return !all ? 0 : need * (all->result_bytes + sizeof *all->work + sizeof *all->job +
		sizeof *all->tensor + sizeof *all->ivn + sizeof *all->task);
}

enum hd_err hd_stretches_take(struct hd_worker *w, uint32_t need, struct hd_diag *diag)
{
	struct hd_stretches *all = w->stretches;
	struct hd_device *d = w->rank[0].device;

	if (!all || need <= all->cap)
		return HD_OK;
	if (all->results)
		d->ops->give(d, all->results, all->cap * all->result_bytes);
	all->results = NULL;
	all->cap = 0;
	all->work = hd_arena_take(&w->arena, need, sizeof *all->work);
	all->job = hd_arena_take(&w->arena, need, sizeof *all->job);
	all->tensor = hd_arena_take(&w->arena, need, sizeof *all->tensor);
	all->ivn = hd_arena_take(&w->arena, need, sizeof *all->ivn);
	all->task = hd_arena_take(&w->arena, need, sizeof *all->task);
	if (!all->work || !all->job || !all->tensor || !all->ivn || !all->task)
		return hd_fail(diag, HD_E_NOMEM, "no memory for dense tasks of %u virtual nodes", need);
	enum hd_err err = d->ops->take(d, need * all->result_bytes, (void **)&all->results, diag);
	all->cap = err ? 0 : need;
	return err;
}

void hd_stretches_finish(struct hd_worker *w)
{
	struct hd_stretches *all = w->stretches;

	if (!all)
		return;
	(void)!hd_fn_owner_submit(w->spec.functions, NULL, 0, NULL);
	if (all->results)
		w->rank[0].device->ops->give(w->rank[0].device, all->results, all->cap * all->result_bytes);
	all->results = NULL;
}

uint32_t hd_stretches_of(const struct hd_worker *w, const char **why)
{
	*why = w->stretches ? w->stretches->why : "";
	return w->stretches ? w->stretches->n : 0;
}

int64_t hd_stretches_idle_ns(const struct hd_worker *w) { return w->stretches ? w->stretches->idle_ns : 0; }

const struct hd_stretch *hd_stretch_in(const struct hd_rank *rank, enum hd_run_phase phase, uint32_t from,
	uint32_t to)
{
	const struct hd_stretches *all = rank->worker->stretches;

	for (uint32_t i = 0; all && i < all->n; i++)
		if (all->at[i].phase == phase && all->at[i].from >= from && all->at[i].to <= to)
			return &all->at[i];
	return NULL;
}

/* ---- a stretch in a step ---- */

/* Of a full virtual node; others are run here, in their turn. */
static bool is_task(const struct hd_rank *rank, uint32_t i)
{
	return rank->work->loaded[i].rows == rank->worker->task->job->per_vn;
}

static void bind_one(struct hd_rank *rank, uint32_t i, struct hd_part *part, struct hd_bind *bind)
{
	*part = (struct hd_part){ .rows = rank->work->loaded[i].rows, .vn = rank->work->script.vn[i],
		.fold = rank->fold[0] };
	hd_rank_bind(rank, i, part->vn, 0, bind);
	bind->arena = rank->arena[i];
	bind->part = part;
	bind->nparts = 1;
}

static void run_places(struct hd_rank *rank, const struct hd_stretch *s, struct hd_bind *bind, uint32_t from,
	uint32_t to)
{
	struct hd_device *d = rank->device;
	uint64_t token = 0;

	bind->from = from;
	bind->to = to;
	enum hd_err err = d->ops->run(d, program_of(rank->worker), s->phase, bind, &token, &rank->diag);
	if (!err)
		err = d->ops->wait(d, token, &rank->diag);
	if (err)
		hd_rank_fail(rank, err);
}

/* What stays the same from task to task, or from step to step, has a digest: a warm worker keeps it. */
static struct hd_hash digest_of(const struct hd_worker *w, const struct hd_stretch *s, uint32_t t,
	const void *at)
{
	const uint8_t kind = program_of(w)->graph->value[s->value[t]].kind;
	const uint64_t bytes = hd_fn_tensor_bytes(&s->work->tensor[t]);

	return (kind == HD_PARAM || kind == HD_INPUT) && bytes >= KEEP_BYTES ? hd_hash(at, bytes) :
		(struct hd_hash){ { 0 } };
}

static void fill_task(struct hd_rank *rank, const struct hd_stretch *s, uint32_t i, uint32_t n)
{
	struct hd_stretches *all = rank->worker->stretches;
	struct hd_fn_work *work = &all->work[n];
	uint8_t *result = all->results + n * all->result_bytes;
	struct hd_part part;
	struct hd_bind bind;

	bind_one(rank, i, &part, &bind);
	memcpy(work, s->work, sizeof *work);
	work->seed = bind.draw.seed;
	work->step = work->version = bind.draw.step;
	work->vn = part.vn;
	for (uint32_t t = 0; t < work->ntensors; t++) {
		struct hd_fn_tensor *tensor = &work->tensor[t];
		all->tensor[n][t] = tensor->is_output ? result :
			hd_program_value(program_of(rank->worker), &bind, s->value[t]);
		if (tensor->is_output)
			result += place_bytes(tensor);
		else if (n && program_of(rank->worker)->graph->value[s->value[t]].kind == HD_PARAM)
			tensor->digest = all->work[0].tensor[t].digest;
		else
			tensor->digest = digest_of(rank->worker, s, t, all->tensor[n][t]);
	}
	all->job[n] = (struct hd_fn_job){ work, all->tensor[n],
		(uint32_t)(s - all->at) % HD_FN_PHASES };
	all->ivn[n] = i;
	all->task[i] = n;
}

static uint32_t first_output(const struct hd_stretch *s)
{
	uint32_t t = 0;

	while (t < s->work->ntensors && s->place[t] == HD_NONE)
		t++;
	return t;
}

/* Node by node: the place of a gradient is another value's after it. */
static void run_here(struct hd_rank *rank, const struct hd_stretch *s, uint32_t n)
{
	struct hd_stretches *all = rank->worker->stretches;
	struct hd_fn_owner *o = rank->worker->spec.functions;
	int64_t began_ns = hd_clock_now_ns(o->spec.clock);
	struct hd_part part;
	struct hd_bind bind;
	uint32_t t = first_output(s);

	bind_one(rank, all->ivn[n], &part, &bind);
	for (uint32_t at = s->from; at < s->to && !hd_rank_idle(rank); at++) {
		run_places(rank, s, &bind, at, at + 1);
		for (; t < s->work->ntensors && s->place[t] == at; t++)
			memcpy(all->tensor[n][t], hd_program_value(program_of(rank->worker), &bind,
				s->value[t]), hd_fn_tensor_bytes(&s->work->tensor[t]));
	}
	hd_fn_owner_ran(o, n, all->tensor[n], hd_clock_now_ns(o->spec.clock) - began_ns);
}

static void compute(struct hd_rank *rank, const struct hd_stretch *s, uint32_t ntasks)
{
	struct hd_worker *w = rank->worker;
	struct hd_fn_owner *o = w->spec.functions;
	enum hd_err err = hd_fn_owner_submit(o, w->stretches->job, ntasks, &rank->diag);

	while (!err && hd_fn_owner_left(o) && !hd_rank_idle(rank)) {
		int64_t began_ns = hd_clock_now_ns(o->spec.clock);
		uint32_t task = UINT32_MAX;
		err = hd_fn_owner_turn(o, began_ns + LOOK_NS, true, &task, &rank->diag);
		w->stretches->idle_ns += hd_clock_now_ns(o->spec.clock) - began_ns;
		if (!err && task != UINT32_MAX)
			run_here(rank, s, task);
		atomic_fetch_add_explicit(&w->progress, 1, memory_order_relaxed);
	}
	if (err)
		hd_rank_fail(rank, err);
}

/* What a task made goes to its places in the order of its nodes, and each gradient is folded from there. */
static void take_results(struct hd_rank *rank, const struct hd_stretch *s, uint32_t i)
{
	struct hd_stretches *all = rank->worker->stretches;
	const struct hd_program *p = program_of(rank->worker);
	const uint32_t n = all->task[i];
	struct hd_part part;
	struct hd_bind bind;
	bool folds = false;

	bind_one(rank, i, &part, &bind);
	if (s->phase == HD_RUN_B)
		part.nfolds = hd_rank_moves(rank, i, 0, rank->fold[0]);
	if (n == HD_NONE) {
		run_places(rank, s, &bind, s->from, s->to);
		return;
	}
	bind.made = true;
	for (uint32_t t = first_output(s); t < s->work->ntensors && !hd_rank_idle(rank); t++) {
		memcpy(hd_program_value(p, &bind, s->value[t]), all->tensor[n][t],
			hd_fn_tensor_bytes(&s->work->tensor[t]));
		folds |= p->grad_of_value[s->value[t]] != HD_NONE;
		if (t + 1 < s->work->ntensors && s->place[t + 1] == s->place[t])
			continue;
		if (folds)
			run_places(rank, s, &bind, s->place[t], s->place[t] + 1);
		folds = false;
	}
}

void hd_stretch_run(struct hd_rank *rank, const struct hd_stretch *s)
{
	struct hd_stretches *all = rank->worker->stretches;
	const uint32_t nvns = rank->work->script.nvns_here;
	uint32_t ntasks = 0;

	for (uint32_t i = 0; i < nvns; i++) {
		all->task[i] = HD_NONE;
		if (is_task(rank, i))
			fill_task(rank, s, i, ntasks++);
	}
	if (ntasks)
		compute(rank, s, ntasks);
	for (uint32_t i = 0; i < nvns && !hd_rank_idle(rank); i++)
		take_results(rank, s, i);
}
