#include "engine/diverge.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/op.h"
#include "data/step_rows.h"

struct search {
	struct hd_worker *worker;
	struct hd_rank *rank;             /* 0 */
	uint32_t vn;
	char cause[200];                  /* "": nothing found yet */
};

static uint64_t first_bad(const void *at, uint8_t dtype, uint64_t n)
{
	uint64_t i = 0;

	if (dtype == HD_F32)
		while (i < n && isfinite(((const float *)at)[i]))
			i++;
	else if (dtype == HD_F64)
		while (i < n && isfinite(((const double *)at)[i]))
			i++;
	else
		return n;
	return i;
}

/* The parameter an op works on, seen from itself or from the op whose gradient it makes. */
static const char *param_of(const struct hd_graph *g, const struct hd_node *node)
{
	for (uint8_t i = 0; i < node->nin; i++)
		if (g->value[node->in[i]].kind == HD_PARAM)
			return hd_graph_text_of(g, g->value[node->in[i]].name);
	return node->of == HD_NONE ? NULL : param_of(g, &g->node[node->of]);
}

static void name_op(struct search *s, const struct hd_node *node, float value)
{
	const struct hd_graph *g = s->worker->stage->train.graph;
	const char *param = param_of(g, node);

	snprintf(s->cause, sizeof s->cause, "first %s made by op %s%s%s%s (%s), virtual node %u",
		isnan(value) ? "not a number" : "infinite",
		hd_ops[node->op].name, param ? " (of " : "", param ? param : "", param ? ")" : "",
		node->phase == HD_PHASE_F ? "forward" : "backward", s->vn);
}

static void look_at_node(struct search *s, const struct hd_bind *bind, uint32_t inode)
{
	const struct hd_graph *g = s->worker->stage->train.graph;
	const struct hd_node *node = &g->node[inode];

	for (uint32_t v = node->out; v < node->out + node->nout && !*s->cause; v++) {
		const void *at = hd_program_value(&s->worker->stage->train, bind, v);
		uint64_t n = hd_value_elems(&g->value[v], bind->rows),
			i = at ? first_bad(at, g->value[v].dtype, n) : n;
		if (i < n)
			name_op(s, node, g->value[v].dtype == HD_F64 ? (float)((const double *)at)[i] :
				((const float *)at)[i]);
	}
}

/* A phase as a list of one node after the other: the arena holds a result only until it is reused. */
static enum hd_err walk(struct search *s, enum hd_run_phase phase, const struct hd_bind *bind,
	struct hd_diag *diag)
{
	struct hd_program *p = &s->worker->stage->train;
	const struct hd_device_ops *ops = s->rank->device->ops;
	uint32_t *order = p->order[phase], n = p->norder[phase];
	enum hd_err err = HD_OK;
	uint64_t token = 0;

	p->norder[phase] = 1;
	for (uint32_t i = 0; i < n && !err && !*s->cause; i++) {
		p->order[phase] = order + i;
		err = ops->run(s->rank->device, p, phase, bind, &token, diag);
		if (!err)
			err = ops->wait(s->rank->device, token, diag);
		if (!err)
			look_at_node(s, bind, order[i]);
	}
	p->order[phase] = order;
	p->norder[phase] = n;
	return err;
}

/* Row `row` of the step, the i-th that was read. */
static void look_at_row(struct search *s, uint64_t row, uint64_t i)
{
	const struct hd_dataset *data = s->worker->task->data;

	for (uint32_t f = 0; f < data->nfields && !*s->cause; f++) {
		const uint64_t bytes = data->field[f].sample_bytes,
			n = bytes / hd_dtype_bytes((enum hd_dtype)data->field[f].dtype);
		if (first_bad(s->rank->eval_input[f] + i * bytes, data->field[f].dtype, n) < n)
			snprintf(s->cause, sizeof s->cause,
				"\"%s\" of training sample %" PRIu64 " is not finite (virtual node %u)",
				data->field[f].name, hd_sampler_at(&s->worker->task->sampler,
					(uint64_t)s->worker->count.step, row), s->vn);
	}
}

static enum hd_err read_rows(struct search *s, struct hd_diag *diag)
{
	struct hd_dataset *data = s->worker->task->data;
	struct hd_step_rows rows = { .set = data, .sampler = &s->worker->task->sampler,
		.step = (uint64_t)s->worker->count.step, .first = s->rank->work->loaded[0].first_row };
	const uint64_t spare = hd_step_spare_bytes(data);

	rows.end = rows.first + s->rank->work->loaded[0].rows;
	for (uint32_t f = 0; f < data->nfields; f++)
		s->rank->work->loaded[0].field[f] = rows.out[f] = s->rank->eval_input[f];
	if (spare && !(rows.spare = hd_alloc(spare)))
		return hd_fail(diag, HD_E_NOMEM, "no memory to read rows once more");
	enum hd_err err = hd_step_rows_read(&rows, diag);
	for (uint64_t i = 0; i < rows.end - rows.first && !err && !*s->cause; i++)
		look_at_row(s, rows.first + i, i);
	hd_free(rows.spare);
	return err;
}

static enum hd_err search_vn(struct search *s, struct hd_diag *diag)
{
	const struct hd_worker *w = s->worker;
	struct hd_bind bind;
	uint64_t end;

	hd_vn_rows(w->task->job->per_vn, w->step->rows, s->vn, &s->rank->work->loaded[0].first_row, &end);
	s->rank->work->loaded[0].rows = end - s->rank->work->loaded[0].first_row;
	enum hd_err err = read_rows(s, diag);
	for (uint32_t q = 0; q < s->rank->work->script.nslices && !err && !*s->cause; q++) {
		hd_rank_bind(s->rank, 0, s->vn, q, &bind);
		if (bind.rows == 0)
			continue;
		err = walk(s, HD_RUN_F, &bind, diag);
		if (!err && !*s->cause)
			err = walk(s, HD_RUN_B, &bind, diag);
	}
	return err;
}

void hd_diverge_explain(struct hd_worker *w, struct hd_diag *diag)
{
	struct search s = { .worker = w, .rank = &w->rank[0], .cause = "" };
	struct hd_diag reading = { "" };
	enum hd_err err = HD_OK;

	for (s.vn = 0; s.vn < w->task->job->nvns && !err && !*s.cause; s.vn++)
		if (hd_worker_work(w)->has[s.vn])
			err = search_vn(&s, &reading);
	if (err || !diag)
		return;
	if (!*s.cause)
		snprintf(s.cause, sizeof s.cause, "%s", hd_worker_alone(w) ?
			"every virtual node is finite, their sum is not" :
			"every virtual node of this worker is finite; another one's is not, or their sum");
	size_t len = strlen(diag->text);
	snprintf(diag->text + len, sizeof diag->text - len, ": %s; the state before the step is kept",
		s.cause);
}
