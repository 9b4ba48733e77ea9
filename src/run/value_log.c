#include "run/value_log.h"

#include <stdio.h>

#include "base/json_writer.h"
#include "graph/op.h"
#include "run/run_int.h"

/* ---- names ---- */

/* The parameter that a node works on, seen from itself or from the node whose gradient it makes. */
static const char *param_of(const struct hd_graph *g, const struct hd_node *node)
{
	for (uint8_t i = 0; i < node->nin; i++)
		if (g->value[node->in[i]].kind == HD_PARAM)
			return hd_graph_text_of(g, g->value[node->in[i]].name);
	return node->of == HD_NONE ? NULL : param_of(g, &g->node[node->of]);
}

static void put_node(struct hd_json_writer *w, const struct hd_graph *g, uint32_t i)
{
	static const char phase[] = { [HD_PHASE_F] = 'F', [HD_PHASE_I] = 'I', [HD_PHASE_W] = 'W' };
	const struct hd_node *node = &g->node[i];
	const char *param = param_of(g, node);
	char text[HD_MAX_NAME + 80], shard[24] = "";

	if (node->shard)
		snprintf(shard, sizeof shard, ", shard %u", node->shard - 1);
	snprintf(text, sizeof text, "#%u %c %s%s%s%s", i, phase[node->phase], hd_ops[node->op].name,
		param ? " of " : "", param ? param : "", shard);
	hd_json_put_text(w, NULL, text);
}

static void put_segment(struct hd_json_writer *w, const struct hd_layout *layout, const struct hd_segment *s)
{
	hd_json_open_array(w, NULL);
	hd_json_put_i64(w, NULL, s->param);
	hd_json_put_i64(w, NULL, (int64_t)(s->at - layout->at[s->param]));
	hd_json_put_i64(w, NULL, (int64_t)s->len);
	hd_json_close(w);
}

static void put_names(struct hd_json_writer *w, const struct hd_task *task)
{
	const struct hd_graph *g = &task->train;
	const struct hd_layout *layout = &task->layout;

	hd_json_open_object(w, NULL);
	hd_json_open_array(w, "graph");
	for (uint32_t i = 0; i < g->nnodes; i++)
		put_node(w, g, i);
	hd_json_close(w);
	hd_json_open_array(w, "tensors");
	for (uint32_t p = 0; p < g->nparams; p++)
		hd_json_put_text(w, NULL, hd_graph_text_of(g, g->value[g->param[p].value].name));
	hd_json_close(w);
	hd_json_open_array(w, "segments");
	for (uint32_t i = 0; i < layout->nsegments; i++)
		put_segment(w, layout, &layout->segment[i]);
	hd_json_close(w);
	hd_json_close(w);
}

/* ---- lines ---- */

static void begin(struct hd_value_log *log, struct hd_text *text, struct hd_json_writer *w)
{
	hd_arena_reset(&log->arena);
	hd_text_init(text, &log->arena);
	hd_json_writer_init(w, text);
}

static enum hd_err end(struct hd_value_log *log, struct hd_text *text, struct hd_diag *diag)
{
	hd_text_add(text, "\n");
	return text->full ? hd_fail(diag, HD_E_NOMEM, "no memory for a line of digests") :
		hd_lines_add(&log->lines, text->at, text->len, diag);
}

enum hd_err hd_value_log_open(struct hd_value_log *log, struct hd_fs *fs, const char *dir, uint32_t worker,
	const struct hd_task *task, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_json_writer w;
	struct hd_text text;

	*log = (struct hd_value_log){ .open = true };
	hd_arena_init(&log->arena, 0);
	if ((size_t)snprintf(path, sizeof path, "%s/" HD_VALUES_FOLDER, dir) + 32 > sizeof path)
		return hd_fail(diag, HD_E_INVAL, "the path of %s is too long", dir);
	enum hd_err err = hd_fs_mkdirs(fs, path, diag);
	snprintf(path, sizeof path, "%s/" HD_VALUES_FOLDER "/%u.ndjson", dir, worker);
	err = err ? err : hd_lines_open(&log->lines, fs, path, diag);
	if (err)
		return err;
	begin(log, &text, &w);
	put_names(&w, task);
	return end(log, &text, diag);
}

static void put_mark(struct hd_json_writer *w, uint32_t of, uint64_t digest)
{
	hd_json_open_array(w, NULL);
	hd_json_put_i64(w, NULL, of);
	hd_json_put_u64(w, NULL, digest);
	hd_json_close(w);
}

/* Marks of one place, from the first on; `seen` of them before. */
static enum hd_err put_line(struct hd_value_log *log, uint64_t step, uint32_t vn, const struct hd_mark *mark,
	uint32_t first, uint32_t n, struct hd_diag *diag)
{
	struct hd_json_writer w;
	struct hd_text text;

	begin(log, &text, &w);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "step", (int64_t)step);
	if (vn != HD_NONE)
		hd_json_put_i64(&w, "vn", vn);
	hd_json_put_i64(&w, "rank", mark[first].rank);
	if (vn != HD_NONE)
		hd_json_put_i64(&w, "stage", mark[first].stage);
	hd_json_open_array(&w, vn == HD_NONE ? "state" : "made");
	for (uint32_t i = first; i < n; i++)
		if (mark[i].digest && mark[i].rank == mark[first].rank && mark[i].stage == mark[first].stage)
			put_mark(&w, i, mark[i].digest);
	hd_json_close(&w);
	hd_json_close(&w);
	return end(log, &text, diag);
}

/* Is there none of its place before it? */
static bool is_first(const struct hd_mark *mark, uint32_t i)
{
	for (uint32_t k = i; k-- > 0;)
		if (mark[k].digest && mark[k].rank == mark[i].rank && mark[k].stage == mark[i].stage)
			return false;
	return mark[i].digest != 0;
}

static enum hd_err put_all(struct hd_value_log *log, uint64_t step, uint32_t vn, const struct hd_mark *mark,
	uint32_t n, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < n && !err; i++)
		if (is_first(mark, i))
			err = put_line(log, step, vn, mark, i, n, diag);
	return err;
}

enum hd_err hd_value_log_put(struct hd_value_log *log, const struct hd_values *v, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t vn = 0; vn < v->nvns && !err; vn++)
		err = put_all(log, v->step, vn, v->made + (size_t)vn * v->nnodes, v->nnodes, diag);
	return err ? err : put_all(log, v->step, HD_NONE, v->state, v->nsegments, diag);
}

void hd_value_log_close(struct hd_value_log *log)
{
	(void)!hd_lines_close(&log->lines, NULL);
	hd_arena_finish(&log->arena);
	*log = (struct hd_value_log){ 0 };
}

/* ---- a run's own ---- */

static enum hd_err put_values(struct hd_run *run, struct hd_values *values, uint32_t worker,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (!run->values.open || run->values_of != worker) {
		hd_value_log_close(&run->values);
		err = hd_value_log_open(&run->values, run->fs, run->dir->path, worker, run->task, diag);
	}
	run->values_of = worker;
	err = err ? err : hd_value_log_put(&run->values, values, diag);
	hd_values_clear(values);
	return err;
}

void hd_run_made(struct hd_run *run, uint32_t worker)
{
	struct hd_values *values = hd_worker_values(run->worker);
	struct hd_diag diag = { "" };

	if (!values || !hd_values_any(values) || !run->dir || run->no_values)
		return;
	if (!put_values(run, values, worker, &diag))
		return;
	run->no_values = true;
	hd_run_note(run, "warning", "no more record of values from step %llu on: %s",
		(unsigned long long)values->step, diag.text);
}
