#include "engine/eager.h"

#include <assert.h>
#include <string.h>

#include "engine/overlap.h"
#include "engine/worker_int.h"

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for an update before the norm");
}

/* Is it learned, and read by the next step as this one makes it? */
static bool is_early(const struct hd_task *task, uint32_t param)
{
	return !task->train.param[param].frozen && !task->delays.of_param[param];
}

static bool reads(const struct hd_node *node, uint32_t value)
{
	for (uint32_t i = 0; i < node->nin; i++)
		if (node->in[i] == value)
			return true;
	return false;
}

static bool is_apart(const struct hd_graph_stages *cuts, uint32_t param)
{
	const struct hd_graph *graph = cuts->whole;
	bool apart = cuts->of_grad[param] + 1u != cuts->n;

	for (uint32_t i = 0; i < graph->nnodes && !apart; i++)
		apart = cuts->of_node[i] + 1u != cuts->n && reads(&graph->node[i], graph->param[param].value);
	return apart;
}

/* Rule 4. */
static enum hd_err check_stages(const struct hd_task *task, const struct hd_graph_stages *cuts,
	struct hd_diag *diag)
{
	const struct hd_graph *graph = cuts->whole;

	for (uint32_t p = 0; p < task->layout.nparams && task->delays.early; p++) {
		const char *why = is_early(task, p) && is_apart(cuts, p) ?
			"lies in a stage before the plan's last" : NULL;
		for (uint32_t g = task->layout.nparams; g < task->layout.ngrads && is_early(task, p); g++)
			why = task->layout.grad_param[g] == p ? "is read in several places" : why;
		if (why)
			return hd_fail(diag, HD_E_REFUSED, "%s of the job's last stage (optim.cuts) %s",
				graph->names + graph->value[graph->param[p].value].name, why);
	}
	return HD_OK;
}

enum hd_err hd_stages_overlap(const struct hd_task *task, const uint32_t *first, uint32_t n,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_graph_stages cuts;
	enum hd_err err = hd_graph_stages_make(&cuts, &task->train, first, n, arena, diag);

	return err ? err : check_stages(task, &cuts, diag);
}

static void add_segment(struct hd_eager *e, const struct hd_layout *layout, uint32_t i)
{
	const struct hd_segment *s = &layout->segment[i];

	if (!i || !e->early[i - 1])
		e->run[e->nruns++] = (struct hd_chunk){ .at = s->at, .first_segment = i };
	struct hd_chunk *run = &e->run[e->nruns - 1];
	run->nsegments++;
	run->len = s->at + s->len - run->at;
	e->early[i] = true;
}

enum hd_err hd_eager_make(struct hd_eager **eager, struct hd_worker *w, const struct hd_pipe *pipe,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_layout *layout = &w->task->layout;
	struct hd_diag why = { "" };

	*eager = NULL;
	if (!w->task->delays.early)
		return HD_OK;
	enum hd_err err = check_stages(w->task, &pipe->cuts, &why);
	if (err)
		return hd_fail(diag, err,
			"the plan's steps overlap, and cannot: %s; cut the plan's last stage no later than "
			"the job's, or leave out the plan's line overlap", why.text);
	struct hd_eager *e = hd_arena_take(arena, 1, sizeof *e);
	if (!e)
		return no_memory(diag);
	*e = (struct hd_eager){ .rank = pipe->nranks - 1, .device = pipe->device_of[pipe->nranks - 1],
		.early = hd_arena_take(arena, layout->nsegments, sizeof *e->early),
		.run = hd_arena_take(arena, layout->nsegments, sizeof *e->run) };
	if (!e->early || !e->run)
		return no_memory(diag);
	for (uint32_t i = 0; i < layout->nsegments; i++)
		if (is_early(w->task, layout->segment[i].param))
			add_segment(e, layout, i);
	for (uint32_t i = 0; i < e->nruns; i++)
		e->elems += e->run[i].len;
	*eager = e;
	return HD_OK;
}

uint64_t hd_eager_bytes(const struct hd_eager *e, const struct hd_worker *w)
{
	return e && e->device != HD_NONE ? e->elems * hd_worker_store_shape(w).nslots * sizeof *e->kept : 0;
}

enum hd_err hd_eager_take(struct hd_eager *e, struct hd_worker *w, struct hd_diag *diag)
{
	const uint64_t bytes = hd_eager_bytes(e, w);
	struct hd_device *device = bytes ? w->rank[e->device].device : NULL;

	return bytes ? device->ops->take(device, bytes, (void **)&e->kept, diag) : HD_OK;
}

void hd_eager_give(struct hd_eager *e, struct hd_worker *w)
{
	if (!e || !e->kept)
		return;
	struct hd_device *device = w->rank[e->device].device;
	device->ops->give(device, e->kept, hd_eager_bytes(e, w));
	e->kept = NULL;
}

/* Whoever reads the state has ended when this returns. */
static void publish(struct hd_worker *w, struct hd_eager *e, bool made)
{
	hd_lock_take(&w->early_lock);
	e->made = made;
	w->early = made ? e : NULL;
	hd_lock_give(&w->early_lock);
}

/* Of what was kept. */
static void read_kept(const struct hd_worker *w, enum hd_vector vector, uint32_t irun, uint64_t at,
	uint64_t len, uint8_t *to)
{
	const struct hd_eager *e = w->early;
	uint64_t from = 0;

	if (vector == HD_VEC_PARAMS) {
		hd_param_store_read(w->store, HD_VEC_EARLIER, at, len, to);
		return;
	}
	for (uint32_t i = 0; i < irun; i++)
		from += e->run[i].len;
	from += (uint64_t)(vector - HD_VEC_SLOT0) * e->elems + at - e->run[irun].at;
	memcpy(to, e->kept + from, len * sizeof *e->kept);
}

void hd_eager_read(struct hd_worker *w, enum hd_vector vector, uint64_t at, uint64_t len, uint8_t *to)
{
	const uint64_t end = at + len;

	hd_lock_take(&w->early_lock);
	for (uint32_t i = 0; w->early && vector < HD_VEC_BUFFERS && i < w->early->nruns; i++) {
		const struct hd_chunk *run = &w->early->run[i];
		const uint64_t first = run->at > at ? run->at : at,
			last = run->at + run->len < end ? run->at + run->len : end;
		if (first >= last)
			continue;
		hd_param_store_read(w->store, vector, at, first - at, to);
		read_kept(w, vector, i, first, last - first, to + (first - at) * sizeof(float));
		to += (last - at) * sizeof(float);
		at = last;
	}
	hd_param_store_read(w->store, vector, at, end - at, to);
	hd_lock_give(&w->early_lock);
}

static void keep_slots(struct hd_eager *e, const struct hd_worker *w)
{
	float *to = e->kept;

	for (uint32_t k = 0; k < hd_param_store_nslots(w->store); k++)
		for (uint32_t i = 0; i < e->nruns; to += e->run[i++].len)
			hd_param_store_read(w->store, hd_vec_slot(k), e->run[i].at, e->run[i].len, to);
}

static void go_back(struct hd_eager *e, struct hd_worker *w)
{
	const float *from = e->kept;

	for (uint32_t k = 0; k < hd_param_store_nslots(w->store); k++)
		for (uint32_t i = 0; i < e->nruns; from += e->run[i++].len)
			hd_param_store_write(w->store, hd_vec_slot(k), e->run[i].at, e->run[i].len, from);
	for (uint32_t i = 0; i < e->nruns; i++)
		hd_param_store_write(w->store, HD_VEC_PARAMS, e->run[i].at, e->run[i].len,
			hd_param_store_at(w->store, HD_VEC_EARLIER, e->run[i].at, e->run[i].len));
	publish(w, e, false);
}

static struct hd_eager *of_rank(const struct hd_rank *rank)
{
	const struct hd_overlap *o = rank->worker->step->work->overlap;

	return o && o->eager && o->eager->device == rank->id ? o->eager : NULL;
}

enum hd_err hd_eager_step(struct hd_rank *rank, struct hd_diag *diag)
{
	struct hd_worker *w = rank->worker;
	struct hd_eager *e = of_rank(rank);
	struct hd_step_scalars scalars;
	uint64_t token = 0;
	enum hd_err err = HD_OK;

	if (!e || hd_rank_idle(rank) || !hd_scalars_early(w, &scalars))
		return HD_OK;
	/* all of a stage's virtual nodes are one rank's, so the sum is the one root that the fold has left */
	const struct hd_pipe_stage *last = &rank->pipe->stage[rank->pipe->nstages - 1];
	assert(last->nroots == 1 && !last->njoins);
	keep_slots(e, w);
	publish(w, e, true);
	for (uint32_t i = 0; i < e->nruns && !err; i++)
		err = hd_update_run(rank, &scalars, &e->run[i], last->item[last->root->item], &token, diag);
	err = err ? err : rank->device->ops->wait(rank->device, token, diag);
	/* whoever fetches a bucket reads that vector, too: of others it means something there */
	hd_lock_take(&w->early_lock);
	for (uint32_t i = 0; i < e->nruns && !err; i++)
		hd_param_store_near(w->store, e->run[i].at, e->run[i].len);
	hd_lock_give(&w->early_lock);
	return err;
}

void hd_eager_settle(struct hd_rank *rank)
{
	struct hd_eager *e = of_rank(rank);

	if (!e || !e->made || !rank->scalars.skip)
		return;
	go_back(e, rank->worker);
	e->dropped = true;
}

void hd_eager_back(struct hd_eager *e, struct hd_worker *w)
{
	if (e && e->made)
		go_back(e, w);
}

bool hd_eager_end(struct hd_eager *e, struct hd_worker *w, enum hd_err err)
{
	const bool dropped = e && e->dropped;

	if (err)
		hd_eager_back(e, w);
	if (e && e->made)
		publish(w, e, false);
	if (e)
		e->dropped = false;
	return dropped;
}
