#include "checkpoint/peft.h"

#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/num.h"
#include "graph/names.h"
#include "graph/op.h"
#include "checkpoint/export.h"

static const char prefix[] = "base_model.model.";
enum { MAX_THEIRS = 2 * HD_MAX_NAME };

/* Of parameter p of the graph. */
struct peft_name {
	/* full name; without its last part, of a saved one the whole module */
	const char *theirs, *module;
	bool adapter, target, trained, bias, saved;
};

/* One call. */
struct peft_writing {
	const struct hd_peft_source *from;
	const struct hd_family *family;
	struct peft_name *name;
	struct hd_st_tensor *tensor;
	uint32_t n;                       /* of tensor */
	enum hd_peft_bias bias;
	bool turned;                      /* fan_in_fan_out: matrices are stored [in, out] */
	struct hd_arena *arena;
	struct hd_diag *diag;
};

static enum hd_err no_memory(const struct peft_writing *w) { return hd_fail(w->diag, HD_E_NOMEM,
	"no memory for the names of adapters"); }

static const char *ours(const struct peft_writing *w, uint32_t p)
{
	return hd_graph_text_of(w->from->graph, w->from->graph->value[w->from->graph->param[p].value].name);
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end);
}

static bool starts_with(const char *name, const char *module)
{
	size_t n = strlen(module);

	return !strncmp(name, module, n) && name[n] == '.';
}

/* ---- names */

static enum hd_err name_param(struct peft_writing *w, uint32_t p)
{
	const struct hd_graph *graph = w->from->graph;
	const char *name = ours(w, p), *before = w->family->prefix[0] ? w->family->prefix[0] : "";
	struct peft_name *to = &w->name[p];
	char full[MAX_THEIRS];
	struct hd_theirs theirs;

	*to = (struct peft_name){ .adapter = hd_lora_is_adapter(name), .trained = !graph->param[p].frozen };
	if (to->adapter)
		return HD_OK;
	if (!hd_name_in_memory(w->family, name, &theirs) || theirs.turned)
		return hd_fail(w->diag, HD_E_INVAL, "'%s' has no name in peft", name);
	if (theirs.stacked && to->trained)
		return hd_fail(w->diag, HD_E_INVAL, "%s is trained, and is several tensors in "
			"files of others, for which peft has no names: export with the adapters "
			"merged (--names torch)", name);
	snprintf(full, sizeof full, "%s%s", hd_name_is_second(w->family, theirs.name) ? "" : before,
		theirs.name);
	const char *dot = strrchr(full, '.');
	to->theirs = hd_arena_text(w->arena, full, strlen(full));
	to->module = hd_arena_text(w->arena, full, dot ? (size_t)(dot - full) : strlen(full));
	to->bias = ends_with(full, ".bias");
	snprintf(full, sizeof full, "%s.lora_A", name);
	to->target = hd_graph_find_param(graph, full) != HD_NONE;
	return to->theirs && to->module ? HD_OK : no_memory(w);
}

/* ---- what is trained beside the adapters */

/* Is all of the module trained, and has no adapters in it? */
static bool is_whole(const struct peft_writing *w, const char *module)
{
	for (uint32_t p = 0; p < w->from->graph->nparams; p++) {
		const struct peft_name *n = &w->name[p];
		if (!n->adapter && starts_with(n->theirs, module) && (!n->trained || n->target))
			return false;
	}
	return true;
}

/* The largest module around a trained parameter that is whole: peft wraps a head of two layers as one. */
static enum hd_err find_whole(const struct peft_writing *w, struct peft_name *n)
{
	for (const char *dot = strchr(n->theirs, '.'); dot; dot = strchr(dot + 1, '.')) {
		const char *module = hd_arena_text(w->arena, n->theirs, (size_t)(dot - n->theirs));
		if (!module)
			return no_memory(w);
		if (!is_whole(w, module))
			continue;
		n->module = module;
		n->saved = true;
		return HD_OK;
	}
	return HD_OK;
}

static bool has_adapters(const struct peft_writing *w, const char *module)
{
	for (uint32_t p = 0; p < w->from->graph->nparams; p++)
		if (w->name[p].target && !strcmp(w->name[p].module, module))
			return true;
	return false;
}

static bool is_tied(const struct peft_writing *w, uint32_t p)
{
	for (const struct hd_name_tie *tie = w->family->tied; tie->theirs; tie++)
		if (!strcmp(tie->ours, ours(w, p)) && hd_graph_find_param(w->from->graph, tie->theirs) ==
			HD_NONE && (!tie->with || hd_graph_find_param(w->from->graph, tie->with) != HD_NONE))
			return true;
	return false;
}

/* Rule 5: what is trained and in no whole module must be all biases, or all biases of adapted modules. */
static enum hd_err settle_bias(struct peft_writing *w)
{
	bool all = true, lora = true, any = false;

	for (uint32_t p = 0; p < w->from->graph->nparams; p++) {
		const struct peft_name *n = &w->name[p];
		bool rest = n->trained && !n->adapter && !n->saved;
		if (rest && !n->bias)
			return hd_fail(w->diag, HD_E_INVAL, "%s is trained, but not all of %s: peft keeps "
				"whole modules, all biases (*.bias) or those of adapted modules; export with "
				"the adapters merged (--names torch)", ours(w, p), n->module);
		any |= rest;
		if (n->bias && !n->adapter && !n->saved) {
			all &= n->trained;
			lora &= n->trained == has_adapters(w, n->module);
		}
	}
	if (any && !all && !lora)
		return hd_fail(w->diag, HD_E_INVAL, "some biases are trained: peft knows all (*.bias) and "
			"those of adapted modules; export with the adapters merged (--names torch)");
	w->bias = !any ? HD_PEFT_NO_BIAS : lora ? HD_PEFT_LORA_BIASES : HD_PEFT_ALL_BIASES;
	return HD_OK;
}

static enum hd_err sort_out(struct peft_writing *w)
{
	const struct hd_graph *graph = w->from->graph;
	enum hd_err err = HD_OK;

	for (uint32_t p = 0; p < graph->nparams && !err; p++)
		err = name_param(w, p);
	for (uint32_t p = 0; p < graph->nparams && !err; p++) {
		struct peft_name *n = &w->name[p];
		if (!n->adapter && n->trained)
			err = find_whole(w, n);
		if (!err && n->saved && is_tied(w, p))
			err = hd_fail(w->diag, HD_E_INVAL, "%s is trained and has two names in this model: "
				"peft would untie them; export with the adapters merged (--names torch)",
				ours(w, p));
	}
	return err ? err : settle_bias(w);
}

/* ---- tensors */

static enum hd_err add_tensor(struct peft_writing *w, uint32_t p, const char *theirs, const char *last)
{
	const struct hd_state_entry *e = hd_state_find(w->from->state, ours(w, p));
	struct hd_st_tensor *t = &w->tensor[w->n++];
	char full[MAX_THEIRS + 64];

	if (!e)
		return hd_fail(w->diag, HD_E_INTEGRITY, "the checkpoint has no tensor '%s'", ours(w, p));
	snprintf(full, sizeof full, "%s%s%s", prefix, theirs, last);
	*t = (struct hd_st_tensor){ .name = hd_arena_text(w->arena, full, strlen(full)), .dtype = HD_ST_F32,
		.rank = e->rank, .at = e->at, .len_bytes = e->len_bytes };
	for (int k = 0; k < e->rank; k++)
		t->dim[k] = (uint64_t)e->dim[k];
	return t->name ? HD_OK : no_memory(w);
}

static enum hd_err add_adapters(struct peft_writing *w, uint32_t p)
{
	static const char *const suffix[] = { ".lora_A", ".lora_B" }, *const last[] = { ".lora_A.weight",
		".lora_B.weight" };
	char name[HD_MAX_NAME + 8];
	enum hd_err err = HD_OK;

	for (int i = 0; i < 2 && !err; i++) {
		snprintf(name, sizeof name, "%s%s", ours(w, p), suffix[i]);
		uint32_t q = hd_graph_find_param(w->from->graph, name);
		err = q == HD_NONE ? hd_fail(w->diag, HD_E_INTEGRITY, "the model has no '%s'", name) :
			add_tensor(w, q, w->name[p].module, last[i]);
	}
	return err;
}

static enum hd_err add_all(struct peft_writing *w)
{
	enum hd_err err = HD_OK;

	for (uint32_t p = 0; p < w->from->graph->nparams && !err; p++) {
		const struct peft_name *n = &w->name[p];
		if (n->adapter)
			continue;
		if (n->target)
			err = add_adapters(w, p);
		else if (n->trained && n->bias && !n->saved && has_adapters(w, n->module))
			err = add_tensor(w, p, n->module, ".base_layer.bias");
		else if (n->trained)
			err = add_tensor(w, p, n->theirs, "");
	}
	return err;
}

/* ---- adapter_config.json */

/* Is the matrix of a product stored [in, out]? All of a model are alike. */
static void look_at_storage(struct peft_writing *w)
{
	const struct hd_graph *graph = w->from->graph;

	for (uint32_t i = 0; i < graph->nnodes; i++) {
		const struct hd_node *node = &graph->node[i];
		const struct hd_value *v = node->op == HD_OP_MATMUL ? &graph->value[node->in[1]] : NULL;
		if (v && v->kind == HD_PARAM && w->name[v->data].target)
			w->turned = !node->attr.i[1];
	}
}

static void put_number(struct hd_json_writer *j, const char *key, double x)
{
	if (x == (double)(int64_t)x)
		hd_json_put_i64(j, key, (int64_t)x);
	else
		hd_json_put_f64(j, key, x);
}

static void put_numbers(const struct peft_writing *w, struct hd_json_writer *j, const char *key, bool ranks)
{
	hd_json_open_object(j, key);
	for (uint32_t p = 0; p < w->from->graph->nparams; p++) {
		const struct hd_lora_of of = hd_lora_of(w->from->lora, ours(w, p));
		const double x = ranks ? of.rank : of.alpha,
			common = ranks ? w->from->lora->rank : (double)w->from->lora->alpha;
		if (w->name[p].target && x != common)
			put_number(j, w->name[p].module, x);
	}
	hd_json_close(j);
}

static void put_modules(const struct peft_writing *w, struct hd_json_writer *j, const char *key, bool saved)
{
	const char *last = "";
	bool any = !saved;

	for (uint32_t p = 0; p < w->from->graph->nparams; p++)
		any |= saved && w->name[p].saved;
	if (!any) {
		hd_json_put_null(j, key);
		return;
	}
	hd_json_open_array(j, key);
	for (uint32_t p = 0; p < w->from->graph->nparams; p++)
		if ((saved ? w->name[p].saved : w->name[p].target) && strcmp(w->name[p].module, last) != 0) {
			last = w->name[p].module;
			hd_json_put_text(j, NULL, last);
		}
	hd_json_close(j);
}

/* The word decides what class peft wraps the model in; that of classes copies the head, so it must be
 * trained. Of images there is no word. */
static const char *task_of(const struct peft_writing *w)
{
	const struct hd_graph *graph = w->from->graph;

	if (!strcmp(w->from->head, "cls")) {
		for (uint32_t p = 0; p < graph->nparams; p++)
			if (w->name[p].saved && !strncmp(w->name[p].theirs, "classifier", 10))
				return "SEQ_CLS";
		return NULL;
	}
	if (!strcmp(w->from->model, "t5"))
		return "SEQ_2_SEQ_LM";
	return *w->from->head || !strcmp(w->from->model, "vit") ? NULL : "CAUSAL_LM";
}

static void write_config(const struct peft_writing *w, struct hd_text *text)
{
	const char *task = task_of(w);
	struct hd_json_writer j;

	hd_json_writer_init(&j, text);
	hd_json_open_object(&j, NULL);
	hd_json_put_text(&j, "peft_type", "LORA");
	if (task)
		hd_json_put_text(&j, "task_type", task);
	else
		hd_json_put_null(&j, "task_type");
	if (w->from->base)
		hd_json_put_text(&j, "base_model_name_or_path", w->from->base);
	else
		hd_json_put_null(&j, "base_model_name_or_path");
	hd_json_put_bool(&j, "inference_mode", true);
	hd_json_put_i64(&j, "r", w->from->lora->rank);
	put_number(&j, "lora_alpha", (double)w->from->lora->alpha);
	hd_json_put_f32(&j, "lora_dropout", w->from->lora->dropout);
	hd_json_put_bool(&j, "use_rslora", w->from->lora->root);
	hd_json_put_bool(&j, "fan_in_fan_out", w->turned);
	hd_json_put_text(&j, "bias", hd_peft_biases[w->bias]);
	put_modules(w, &j, "target_modules", false);
	put_modules(w, &j, "modules_to_save", true);
	put_numbers(w, &j, "rank_pattern", true);
	put_numbers(w, &j, "alpha_pattern", false);
	hd_json_put_bool(&j, "init_lora_weights", true);
	hd_json_close(&j);
	hd_text_add(text, "\n");
}

/* The config comes last: a folder that has one is whole. */
static enum hd_err write_folder(const struct peft_writing *w, struct hd_fs *fs, const char *folder,
	const struct hd_text *config)
{
	static const struct hd_st_meta meta = { "format", "pt" };
	char path[HD_PATH_CAP];

	if ((size_t)snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder) >= sizeof path)
		return hd_fail(w->diag, HD_E_INVAL, "the path %.100s... is too long", folder);
	enum hd_err err = hd_fs_mkdirs(fs, folder, w->diag);
	if (!err)
		err = hd_export_tensors(fs, w->tensor, w->n, &meta, 1, path, w->diag);
	snprintf(path, sizeof path, "%s/adapter_config.json", folder);
	return err ? err : hd_file_write_atomic(fs, path, config->at, config->len, w->diag);
}

enum hd_err hd_peft_export(struct hd_fs *fs, const struct hd_peft_source *source, const char *folder,
	struct hd_diag *diag)
{
	const uint32_t n = source->graph->nparams;
	struct hd_arena arena;
	struct hd_text config;

	hd_arena_init(&arena, 0);
	hd_text_init(&config, &arena);
	struct peft_writing w = { .from = source, .family = hd_family_of(source->model), .arena = &arena,
		.diag = diag, .name = hd_arena_take(&arena, n + 1, sizeof *w.name),
		.tensor = hd_arena_take(&arena, n + 1, sizeof *w.tensor) };
	enum hd_err err = w.name && w.tensor ? sort_out(&w) : no_memory(&w);
	if (!err)
		err = add_all(&w);
	if (!err) {
		look_at_storage(&w);
		write_config(&w, &config);
		err = config.full ? no_memory(&w) : write_folder(&w, fs, folder, &config);
	}
	hd_arena_finish(&arena);
	return err;
}
