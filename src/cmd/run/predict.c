#include <string.h>

#include "base/num.h"
#include "base/philox.h"
#include "data/graph_layout.h"
#include "data/npy_write.h"
#include "run/generate.h"
#include "cmd/json_line.h"
#include "cmd/session.h"

enum { HD_PREDICT_TOKENS = 200, HD_TALLY_CLASSES = 4096 };

/* ---- outputs of a split */

struct outputs {
	struct hd_npy_out npy;
	uint32_t nclasses;                /* last extent */
	/* [nclasses] rows whose largest output is this class; NULL: outputs are not one row of classes */
	_Atomic uint64_t *tally;
	/* of a prepared graph: its rows are vertices, which the input numbered otherwise; n 0: other data */
	struct hd_graph_layout layout;
	struct hd_prepared_file graph;
};

static void tally(struct outputs *out, uint64_t n, const float *logits)
{
	for (uint64_t i = 0; out->tally && i < n; i++)
		atomic_fetch_add(&out->tally[hd_sampling_largest(logits + i * out->nclasses, out->nclasses)],
			1);
}

/* A vertex has the row of its number in the input; what is left over in a virtual node has none. */
static void put_vertex(struct outputs *out, uint64_t row, const float *logits)
{
	const struct hd_prepared *graph = &out->graph.graph;
	const uint64_t v = hd_graph_layout_vertex(&out->layout, row);

	if (v < graph->head.nvertices && graph->id[v] < graph->head.nvertices) {
		hd_npy_rows(&out->npy, graph->id[v], 1, logits);
		tally(out, 1, logits);
	}
}

static void on_logits(void *user, uint64_t first, uint64_t n, const float *logits)
{
	struct outputs *out = user;

	for (uint64_t i = 0; out->layout.n && i < n; i++)
		put_vertex(out, first + i, logits + i * out->npy.row_elems);
	if (!out->layout.n) {
		hd_npy_rows(&out->npy, first, n, logits);
		tally(out, n, logits);
	}
}

/* The rows that are written, of `count` of the split: of a graph its vertices. */
static enum hd_err rows_of(struct hd_cmd *cmd, const struct hd_job *job, struct outputs *out, uint64_t *count)
{
	const char *path = hd_job_text(job, HD_JOB_DATA_PATH);

	if (strcmp(hd_job_text(job, HD_JOB_DATA_KIND), "graph") != 0)
		return HD_OK;
	enum hd_err err = hd_prepared_open(&out->graph, &cmd->fs, path, false, &cmd->diag);
	const uint64_t vertices = out->graph.graph.head.nvertices;
	/* without rows that are left over virtual nodes are as one */
	if (!err)
		err = hd_graph_layout_make(&out->layout, &out->graph.graph, path, *count > vertices ?
			job->nvns : 1, &cmd->arena, &cmd->diag);
	if (!err && out->layout.n * out->layout.rows != *count)
		err = hd_fail(&cmd->diag, HD_E_INTEGRITY, "%s was changed while it is in use: its vertices",
			path);
	*count = vertices;
	return err;
}

/* The rows of the split, then the extents that a row of the graph's output has. */
static uint32_t shape_of(const struct hd_graph *g, uint64_t nrows, int64_t dim[HD_MAX_DIMS])
{
	const struct hd_value *v = &g->value[hd_graph_find_output(g, "logits")];
	uint32_t rank = 0;

	dim[rank++] = (int64_t)nrows;
	if (v->dim[0] < -1)
		dim[rank++] = -v->dim[0];
	for (uint32_t i = 1; i < v->rank && rank < HD_MAX_DIMS; i++)
		dim[rank++] = v->dim[i];
	return rank;
}

static void print_outputs(struct hd_cmd *cmd, const struct hd_session *s, const struct outputs *out,
	const char *split,
	const struct hd_metrics *m, uint32_t rank, const int64_t *dim)
{
	struct hd_json_writer w;
	struct hd_text text;

	if (!cmd->args.has[HD_OPT_JSON]) {
		printf("%s\n", out->npy.path);
		return;
	}
	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "step", (int64_t)s->ckpt.step);
	hd_json_put_text(&w, "split", split);
	hd_json_put_text(&w, "file", out->npy.path);
	hd_json_open_array(&w, "shape");
	for (uint32_t i = 0; i < rank; i++)
		hd_json_put_i64(&w, NULL, dim[i]);
	hd_json_close(&w);
	hd_json_put_i64(&w, "classes", out->nclasses);
	hd_json_put_i64(&w, "rows", dim[0]);
	hd_json_put_f64(&w, "loss", hd_metrics_loss(m));
	if (hd_metrics_has_accuracy(m))
		hd_json_put_f64(&w, "accuracy", hd_metrics_accuracy(m));
	if (out->tally) {
		hd_json_open_array(&w, "predicted");
		for (uint32_t c = 0; c < out->nclasses; c++)
			hd_json_put_i64(&w, NULL, (int64_t)atomic_load(&out->tally[c]));
		hd_json_close(&w);
	}
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static enum hd_err write_outputs(struct hd_cmd *cmd, struct hd_session *s, const char *split)
{
	const struct hd_task *task = hd_run_task(s->run);
	struct outputs *out = hd_arena_take(&cmd->arena, 1, sizeof *out);
	uint32_t isplit = hd_dataset_split(task->data, split), rank;
	char path[HD_PATH_CAP];
	int64_t dim[HD_MAX_DIMS];
	struct hd_metrics m;

	if (isplit == HD_NONE || task->data->split[isplit].count == 0)
		return hd_fail(&cmd->diag, HD_E_INVAL, "the data have no samples in a split \"%s\": %s",
			split, task->data->about);
	if (!out || hd_graph_find_output(&task->infer, "logits") == HD_NONE)
		return hd_fail(&cmd->diag, out ? HD_E_INVAL : HD_E_NOMEM,
			out ? "the graph has no output \"logits\": nothing to predict" : "no memory");
	struct hd_forward_job job = { .split = isplit, .count = task->data->split[isplit].count,
		.logits = on_logits, .user = out };
	uint64_t nrows = job.count;
	enum hd_err err = rows_of(cmd, task->job, out, &nrows);
	rank = shape_of(&task->infer, nrows, dim);
	snprintf(path, sizeof path, "%s/predictions.npy", s->dir);
	err = err ? err : hd_npy_begin(&out->npy, &cmd->fs,
		hd_args_text(&cmd->args, HD_OPT_OUTPUT, path), rank, dim, HD_F32, &cmd->diag);
	out->nclasses = (uint32_t)dim[rank - 1];
	if (rank == 2 && out->nclasses <= HD_TALLY_CLASSES &&
		hd_graph_find_output(&task->infer, "correct") != HD_NONE)
		out->tally = hd_arena_take(&cmd->arena, out->nclasses, sizeof *out->tally);
	if (!err)
		err = hd_worker_forward(hd_run_worker(s->run), &job, &m, &cmd->diag);
	enum hd_err ended = hd_npy_end(&out->npy, !err, &cmd->diag);
	err = err ? err : ended;
	hd_prepared_close(&out->graph);
	if (!err)
		print_outputs(cmd, s, out, split, &m, rank, dim);
	return err;
}

/* ---- sampled text */

static enum hd_err sampling_of(struct hd_cmd *cmd, struct hd_sampling *sampling)
{
	const struct hd_args *args = &cmd->args;
	uint64_t seed = hd_args_count(args, HD_OPT_SEED, 0);

	*sampling = (struct hd_sampling){ HD_GENERATE_TEMPERATURE, hd_philox_key(seed, HD_RNG_USER) };
	if (args->has[HD_OPT_TEMPERATURE] && hd_num_f64(args->text[HD_OPT_TEMPERATURE], 0,
		HD_GENERATE_HOTTEST, &sampling->temperature, NULL))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--temperature %s: write a number from 0 to %.0f",
			args->text[HD_OPT_TEMPERATURE], HD_GENERATE_HOTTEST);
	return HD_OK;
}

static void print_tokens(struct hd_cmd *cmd, const struct hd_generate *g)
{
	struct hd_json_line line;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_generate_text(g, &text);
	if (!cmd->args.has[HD_OPT_JSON]) {
		fwrite(text.at, 1, text.len, stdout);
		fputc('\n', stdout);
		return;
	}
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);
	hd_json_put_bytes(w, "text", text.at, text.len);
	hd_json_open_array(w, "sampled");
	for (uint64_t i = g->given; i < g->n; i++)
		hd_json_put_i64(w, NULL, g->token[i]);
	hd_json_close(w);
	hd_json_line_print(&line);
}

static enum hd_err sample_text(struct hd_cmd *cmd, struct hd_session *session)
{
	const struct hd_args *args = &cmd->args;
	uint64_t ntokens = hd_args_count(args, HD_OPT_TOKENS, HD_PREDICT_TOKENS);
	struct hd_sampling sampling;
	struct hd_generate g;
	enum hd_err err = sampling_of(cmd, &sampling);

	if (!err)
		err = hd_generate_init(&g, hd_run_worker(session->run), hd_run_task(session->run), &sampling,
			&cmd->arena, &cmd->diag);
	if (!err)
		err = hd_generate_prompt(&g, args->text[HD_OPT_PROMPT], ntokens, &cmd->arena, &cmd->diag);
	for (uint64_t i = 0; i < ntokens && !err; i++)
		err = hd_generate_next(&g, &cmd->diag);
	if (!err)
		print_tokens(cmd, &g);
	return err;
}

static enum hd_err verb_predict(struct hd_cmd *cmd)
{
	struct hd_session *session = hd_arena_take(&cmd->arena, 1, sizeof *session);
	enum hd_err err = session ? hd_session_open(cmd, cmd->args.pos[0], session) : hd_fail(&cmd->diag,
		HD_E_NOMEM, "no memory for a session");

	if (err)
		return err;
	if (cmd->args.has[HD_OPT_PROMPT])
		err = sample_text(cmd, session);
	else
		err = write_outputs(cmd, session, hd_session_split(cmd, session));
	hd_session_close(session);
	return err;
}

const struct hd_verb hd_verb_predict = {
	.name = "predict", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "outputs of a run's newest checkpoint: a .npy of a split, or sampled text",
	.more =
		"With --prompt the model continues the text (models of tokens); otherwise the outputs "
		"(logits) of every row of the split are written to --output (default predictions.npy in "
		"the run directory). Of a graph row i is the vertex with the number i in the files that "
		"it was prepared from, and every split has all vertices.",
	.opts = HD_OPTS(HD_OPT_SPLIT, HD_OPT_OUTPUT, HD_OPT_PROMPT, HD_OPT_TOKENS, HD_OPT_TEMPERATURE,
		HD_OPT_SEED, HD_OPT_BEST, HD_OPT_EMA, HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_SET),
	.run = verb_predict, .test = "program_predict.sh",
};
