#include <string.h>

#include "base/json_writer.h"
#include "graph/autodiff.h"
#include "graph/domain.h"
#include "graph/model.h"
#include "graph/op_doc.h"
#include "graph/pass.h"
#include "graph/published.h"
#include "graph/slices.h"
#include "graph/text.h"
#include "plan/separate.h"
#include "cmd/session.h"

static const char *published(struct hd_cmd *cmd, const char *model)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_text_add(&text, "");
	hd_published_list(model, &text);
	return text.full ? "" : text.at;
}

static void list_json(struct hd_cmd *cmd)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_array(&w, NULL);
	for (const struct hd_model_row *row = hd_models; row->name; row++) {
		hd_json_open_object(&w, NULL);
		hd_json_put_text(&w, "name", row->name);
		hd_json_put_text(&w, "about", row->about);
		hd_json_put_text(&w, "published", published(cmd, row->name));
		hd_json_open_array(&w, "args");
		for (const struct hd_model_param *p = row->param; p->name; p++) {
			hd_json_open_object(&w, NULL);
			hd_json_put_text(&w, "name", p->name);
			hd_json_put_text(&w, "default", p->standard);
			hd_json_put_text(&w, "about", p->about);
			hd_json_close(&w);
		}
		hd_json_close(&w);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static enum hd_err verb_model_ls(struct hd_cmd *cmd)
{
	if (cmd->args.has[HD_OPT_JSON]) {
		list_json(cmd);
		return HD_OK;
	}
	for (const struct hd_model_row *row = hd_models; row->name; row++) {
		const char *type = published(cmd, row->name);
		printf("%s%-8s %s\n", row == hd_models ? "" : "\n", row->name, row->about);
		if (*type)
			printf("  published as %s\n", type);
		for (const struct hd_model_param *p = row->param; p->name; p++)
			printf("  %-10s %-14s %s\n", p->name, p->standard, p->about);
	}
	return HD_OK;
}

const struct hd_verb hd_verb_model_ls = {
	.name = "model ls", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "built-in models and their arguments",
	.opts = HD_OPTS(),
	.run = verb_model_ls, .test = "program_model.sh",
};

/* ---- what a graph is written with */

static void ops_json(struct hd_cmd *cmd, struct hd_json_writer *w)
{
	hd_json_open_array(w, NULL);
	for (uint16_t op = 0; op < HD_NOPS; op++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "name", hd_ops[op].name);
		hd_json_put_i64(w, "operands", hd_ops[op].nin);
		hd_json_put_i64(w, "results", hd_ops[op].nout);
		hd_json_put_text(w, "attributes", hd_ops[op].attrs);
		hd_json_put_text(w, "about", hd_ops[op].about);
		hd_json_put_bool(w, "gradient", hd_ops[op].grad != NULL);
		if (hd_op_example(op))
			hd_json_put_text(w, "example", hd_op_example(op));
		hd_json_close(w);
	}
	hd_json_close(w);
	(void)cmd;
}

static enum hd_err verb_model_ops(struct hd_cmd *cmd)
{
	bool document = cmd->args.has[HD_OPT_OUTPUT], json = cmd->args.has[HD_OPT_JSON];
	struct hd_json_writer w;
	struct hd_text text;
	enum hd_err err = HD_OK;

	hd_text_init(&text, &cmd->arena);
	if (json) {
		hd_json_writer_init(&w, &text);
		ops_json(cmd, &w);
		hd_text_add(&text, "\n");
	} else {
		err = document ? hd_op_document(&cmd->arena, &text, &cmd->diag) :
			hd_op_list(&cmd->arena, &text, &cmd->diag);
	}
	if (!err && text.full)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the list of ops");
	if (!err && document)
		return hd_file_write_atomic(&cmd->fs, cmd->args.text[HD_OPT_OUTPUT], text.at, text.len,
			&cmd->diag);
	if (!err)
		fwrite(text.at, 1, text.len, stdout);
	return err;
}

const struct hd_verb hd_verb_model_ops = {
	.name = "model ops", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "ops that a graph of your own is written with: a line each, with what it gives",
	.opts = HD_OPTS(HD_OPT_OUTPUT),
	.run = verb_model_ops, .test = "program_model.sh",
};

/* ---- one model, from a name, a job or a graph file */

/* -s layers=2 or -s model.args.layers=2, as in a job. */
static enum hd_err of_name(struct hd_cmd *cmd, const char *name, struct hd_graph *graph)
{
	struct hd_model_arg arg[HD_MAX_ARGS];
	struct hd_model_opts opts = { .loss = HD_LOSS_CROSS_ENTROPY, .normalize = HD_NORMALIZE_SAMPLE };

	for (uint32_t i = 0; i < cmd->args.nsets; i++) {
		const char *key = cmd->args.set[i], *eq = strchr(key, '=');
		key += strncmp(key, "model.args.", 11) ? 0 : 11;
		if (!eq || eq < key || i == HD_MAX_ARGS)
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"-s %s: write ARGUMENT=VALUE, at most %d times; `heddle model ls` has the "
				"arguments",
				cmd->args.set[i], HD_MAX_ARGS);
		char *copy = hd_arena_text(&cmd->arena, key, (size_t)(eq - key));
		if (!copy)
			return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the arguments");
		arg[i] = (struct hd_model_arg){ copy, eq + 1 };
	}
	hd_graph_init(graph, &cmd->arena);
	return hd_model_build(graph, name, arg, cmd->args.nsets, &opts, &cmd->diag);
}

static enum hd_err of_file(struct hd_cmd *cmd, const char *path, struct hd_graph *graph)
{
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_file_read_all(&cmd->fs, path, &cmd->arena, HD_MAX_GRAPH_TEXT, &bytes, &len,
		&cmd->diag);

	hd_graph_init(graph, &cmd->arena);
	return err ? err : hd_graph_parse(graph, path, (const char *)bytes, len, &cmd->diag);
}

static enum hd_err of_job(struct hd_cmd *cmd, const char *path, struct hd_graph *graph)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	enum hd_err err = job ? hd_session_job(cmd, path, job, NULL, NULL) : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for a job");

	if (!err)
		err = hd_task_graph(job, &cmd->fs, &cmd->arena, graph, &cmd->diag);
	return err ? err : hd_task_shard(job, graph, &cmd->diag);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

static enum hd_err make(struct hd_cmd *cmd, const char *what, struct hd_graph *graph)
{
	const struct hd_model_row *row;
	struct hd_stat stat;

	if (ends_with(what, ".graph"))
		return of_file(cmd, what, graph);
	if (!hd_model_find(what, &row, NULL))
		return of_name(cmd, what, graph);
	/* A word that is no file was meant as a name: its did-you-mean says more than "no such file". */
	if (!strpbrk(what, "./") && hd_fs_stat(&cmd->fs, what, &stat, NULL))
		return hd_model_find(what, &row, &cmd->diag);
	return of_job(cmd, what, graph);
}

/* ---- what it costs */

struct size { uint64_t params; double forward, backward, moved; };      /* FLOPs and bytes of one sample */

static void measure(const struct hd_graph *g, struct size *size)
{
	*size = (struct size){ 0 };
	for (uint32_t p = 0; p < g->nparams; p++)
		size->params += hd_value_elems(&g->value[g->param[p].value], 1);
	for (uint32_t i = 0; i < g->nnodes; i++) {
		struct hd_cost cost = hd_ops[g->node[i].op].cost(g, &g->node[i], 1);
		*(g->node[i].phase == HD_PHASE_F ? &size->forward : &size->backward) += cost.flops;
		size->moved += cost.bytes;
	}
}

/* A tensor in slices is one (graph/slices.h). */
static void print_tensor(struct hd_json_writer *w, const struct hd_graph *g, uint32_t param)
{
	static const char *const inits[] = {
#define X(id, name, about) name,
		HD_INITS(X)
#undef X
	};
	const struct hd_value v = hd_whole_value(g, param);

	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "name", hd_whole_name(g, param));
	hd_json_open_array(w, "shape");
	for (uint32_t d = 0; d < v.rank; d++)
		hd_json_put_i64(w, NULL, v.dim[d]);
	hd_json_close(w);
	hd_json_put_i64(w, "elements", (int64_t)hd_value_elems(&v, 1));
	hd_json_put_i64(w, "slices", g->param[param].slice.n);
	hd_json_put_text(w, "init", inits[g->param[param].init]);
	hd_json_put_f32(w, "scale", g->param[param].scale);
	hd_json_close(w);
}

static void print_json(const struct hd_graph *g, const struct hd_wholes *wholes, const struct size *size,
	const char *phases, struct hd_text *text)
{
	struct hd_json_writer w;

	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "model", hd_graph_text_of(g, g->name));
	hd_json_put_i64(&w, "parameters", (int64_t)size->params);
	hd_json_put_i64(&w, "parameter_bytes", (int64_t)(size->params * sizeof(float)));
	hd_json_put_f64(&w, "flops_forward", size->forward);
	hd_json_put_f64(&w, "flops_backward", size->backward);
	hd_json_put_f64(&w, "bytes_moved", size->moved);
	hd_json_put_i64(&w, "nodes", g->nnodes);
	if (*phases)
		hd_json_put_text(&w, "phases", phases);
	hd_json_open_array(&w, "tensors");
	for (uint32_t t = 0; t < wholes->n; t++)
		print_tensor(&w, g, wholes->param[wholes->first[t]]);
	hd_json_close(&w);
	hd_json_close(&w);
	hd_text_add(text, "\n");
}

static enum hd_err print_text(struct hd_cmd *cmd, const struct hd_graph *g, const struct hd_wholes *wholes,
	const struct size *size, const char *phases, struct hd_text *text)
{
	if (*phases)
		hd_text_addf(text, "# phases of a step over intervals: %s\n", phases);
	hd_text_addf(text, "# %llu parameters in %u tensors, %.3f MiB\n"
		"# one sample: %.6g MFLOP forward, %.6g MFLOP backward, %.6g MB moved if nothing is cached\n",
		(unsigned long long)size->params, wholes->n, (double)(size->params * sizeof(float)) / 0x1p20,
		size->forward * 1e-6,
		size->backward * 1e-6, size->moved * 1e-6);
	return hd_graph_print(g, text, &cmd->diag);
}

/* The cost counts the backward pass, so gradients are made even where they are not shown. */
static enum hd_err differentiate(struct hd_cmd *cmd, struct hd_graph *g)
{
	enum hd_err err = hd_graph_optimize(g, 1, &cmd->diag);

	return err ? err : hd_graph_autodiff(g, &cmd->diag);
}

/* Of a model with edges, what a step does over the intervals of a graph; else "". A model that has no phases
 * trains all the same: on a graph of one interval. */
static enum hd_err phases_of(struct hd_cmd *cmd, const struct hd_graph *full, const char **phases)
{
	struct hd_phase_list list;
	struct hd_diag why = { "" };
	struct hd_text text;

	*phases = "";
	if (!hd_graph_has_edges(full))
		return HD_OK;
	enum hd_err err = hd_separate(&list, full, &cmd->arena, &why);
	if (err && err != HD_E_INVAL && err != HD_E_REFUSED)
		return hd_fail(&cmd->diag, err, "%s", why.text);
	hd_text_init(&text, &cmd->arena);
	if (err)
		hd_text_addf(&text, "none, %s", why.text);
	else
		hd_phase_list_print(&list, &text);
	*phases = text.at;
	return HD_OK;
}

static enum hd_err verb_model_show(struct hd_cmd *cmd)
{
	struct hd_graph plain, full;
	struct hd_wholes wholes;
	const char *phases = "";
	struct hd_text text;
	struct size size;
	enum hd_err err = make(cmd, cmd->args.pos[0], &plain);

	if (!err)
		err = make(cmd, cmd->args.pos[0], &full);
	if (!err)
		err = differentiate(cmd, &full);
	err = err ? err : phases_of(cmd, &full, &phases);
	err = err ? err : hd_wholes_make(&wholes, &plain, &cmd->arena, &cmd->diag);
	if (err)
		return err;
	measure(&full, &size);
	hd_text_init(&text, &cmd->arena);
	const struct hd_graph *shown = cmd->args.has[HD_OPT_AUTODIFF] ? &full : &plain;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(shown, &wholes, &size, phases, &text);
	else
		err = print_text(cmd, shown, &wholes, &size, phases, &text);
	if (!err && text.full)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the text of the graph");
	if (!err && cmd->args.has[HD_OPT_OUTPUT])
		return hd_file_write_atomic(&cmd->fs, cmd->args.text[HD_OPT_OUTPUT], text.at, text.len,
			&cmd->diag);
	if (!err)
		fwrite(text.at, 1, text.len, stdout);
	return err;
}

const struct hd_verb hd_verb_model_show = {
	.name = "model show", .args = "NAME|JOB|FILE.graph", .npos_min = 1, .npos_max = 1,
	.about = "a model as graph text, with its size and cost",
	.opts = HD_OPTS(HD_OPT_SET, HD_OPT_AUTODIFF, HD_OPT_OUTPUT),
	.run = verb_model_show, .test = "program_model.sh",
};
