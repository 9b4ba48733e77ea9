#include "checkpoint/peft.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "token/pattern.h"
#include "graph/names.h"
#include "graph/pass.h"
#include "checkpoint/adopt_int.h"
#include "checkpoint/export.h"

enum { CONFIG_BYTES = 4 << 20, MAX_PATTERNS = 256, MAX_MODULE = 2 * HD_MAX_NAME };

static const char prefix[] = "base_model.model.";

/* Of parameter p of the model without adapters. */
struct peft_param {
	const struct hd_st_tensor *a, *b, *plain;
	const char *module;               /* theirs, of one with adapters */
	double rank, alpha;
	bool trained, target, saved;      /* saved: by modules_to_save */
};

struct peft_list { const char *at[MAX_PATTERNS]; uint32_t n; };

/* One call. */
struct peft_reading {
	const struct hd_adopt_desk *d;
	const char *file;                 /* of the tensors */
	struct hd_peft peft;
	struct hd_weights *adapter;
	const struct hd_family *family;
	struct hd_graph *graph;
	struct peft_param *param;
	uint32_t nparams;
	struct peft_list targets, train, ranks, alphas;
};

static enum hd_err no_memory(const struct peft_reading *r) { return hd_fail(r->d->diag, HD_E_NOMEM,
	"no memory for the adapters of %s", r->file); }

static const char *name_of(const struct peft_reading *r, uint32_t p)
{
	return hd_graph_text_of(r->graph, r->graph->value[r->graph->param[p].value].name);
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(text + len - n, end, n);
}

/* ---- patterns, rule 3 */

/* (.*\.)?(KEY)$ of the module's name, from its beginning. */
static enum hd_err key_matches(const struct peft_reading *r, const char *key, const char *module, bool *yes)
{
	struct hd_pattern pattern = { .code = NULL };
	struct hd_finder finder = { .data = NULL };
	struct hd_text text;

	hd_text_init(&text, r->d->arena);
	hd_text_addf(&text, "\\A(?:.*\\.)?(?:%s)\\z", key);
	if (text.full)
		return no_memory(r);
	enum hd_err err = hd_pattern_make(&pattern, text.at, "adapter_config.json", r->d->arena, r->d->diag);
	if (!err)
		err = hd_finder_make(&finder, r->d->diag);
	struct hd_found found = { .pattern = &pattern, .finder = &finder,
		.text = { (const uint8_t *)module, strlen(module), 0 } };
	if (!err)
		*yes = hd_found_next(&found, &err, r->d->diag);
	hd_finder_finish(&finder);
	hd_pattern_finish(&pattern);
	return err;
}

static enum hd_err number_of(const struct peft_reading *r, const struct hd_json *table, const char *module,
	double common, double *out)
{
	enum hd_err err = HD_OK;
	bool yes = false;

	*out = common;
	for (size_t i = 0; i < hd_peft_count(table) && !err && !yes; i++) {
		err = key_matches(r, hd_json_key(table, i), module, &yes);
		if (!err && yes)
			err = hd_json_as_f64(hd_json_item(table, i), out, r->d->diag);
	}
	return err;
}

/* ---- tensors */

static enum hd_err find_param(const struct peft_reading *r, const char *theirs, const char *tensor,
	struct hd_ours *ours, uint32_t *p)
{
	bool known = hd_name_from_theirs(r->family, theirs, ours);

	if (known && ours->kind == HD_NAME_NOTHING)
		return HD_OK;
	if (known && ours->kind == HD_NAME_TIED && hd_graph_find_param(r->graph, ours->second) != HD_NONE) {
		ours->kind = HD_NAME_OURS;
		snprintf(ours->name, sizeof ours->name, "%s", ours->second);
	}
	*p = known ? hd_graph_find_param(r->graph, ours->name) : HD_NONE;
	if (*p == HD_NONE)
		return hd_fail(r->d->diag, HD_E_INPUT,
			"%s: tensor '%s' is not of the model %s; is --base the model that it was made for?",
			r->file, tensor, hd_graph_text_of(r->graph, r->graph->name));
	return HD_OK;
}

/* `len`: of the module's name. */
static enum hd_err take_adapter(struct peft_reading *r, const struct hd_st_tensor *t, const char *name,
	size_t len, bool is_b)
{
	char theirs[MAX_MODULE];
	struct hd_ours ours;
	uint32_t p = HD_NONE;

	if ((size_t)snprintf(theirs, sizeof theirs, "%.*s.weight", (int)len, name) >= sizeof theirs)
		return hd_fail(r->d->diag, HD_E_INPUT, "%s: the name '%.80s...' is too long", r->file, name);
	enum hd_err err = find_param(r, theirs, t->name, &ours, &p);
	if (!err && (p == HD_NONE || ours.turned || ours.kind == HD_NAME_TIED || t->rank != 2))
		err = hd_fail(r->d->diag, HD_E_INPUT, "%s: '%s': this build has no adapters there%s", r->file,
			t->name, p != HD_NONE && ours.kind == HD_NAME_TIED ?
			", since the matrix is a table of the model too" : "");
	if (err)
		return err;
	struct peft_param *param = &r->param[p];
	param->module = hd_arena_text(r->d->arena, name, len);
	*(is_b ? &param->b : &param->a) = t;
	return param->module ? HD_OK : no_memory(r);
}

/* Without what peft puts into a name that had none of it. */
static enum hd_err plain_name(const struct peft_reading *r, const char *name, char out[MAX_MODULE])
{
	static const char *const wrappers[] = { ".base_layer.", ".modules_to_save." };

	if ((size_t)snprintf(out, MAX_MODULE, "%s", name) >= MAX_MODULE)
		return hd_fail(r->d->diag, HD_E_INPUT, "%s: the name '%.80s...' is too long", r->file, name);
	for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
		char *at = strstr(out, wrappers[i]);
		if (at)
			memmove(at, at + strlen(wrappers[i]) - 1, strlen(at + strlen(wrappers[i]) - 1) + 1);
	}
	return HD_OK;
}

/* A module of modules_to_save: one whose name ends with the entry, and what lies in it. */
static bool is_saved(const struct peft_reading *r, const char *theirs)
{
	const char *entry = "";

	for (const char *dot = strchr(theirs, '.'); dot; dot = strchr(dot + 1, '.'))
		for (size_t i = 0; i < hd_peft_count(r->peft.save); i++)
			if (!hd_json_as_text(hd_json_item(r->peft.save, i), &entry, NULL) &&
				ends_with(theirs, (size_t)(dot - theirs), entry))
				return true;
	return false;
}

static enum hd_err take_plain(struct peft_reading *r, const struct hd_st_tensor *t, const char *name,
	bool tied)
{
	char theirs[MAX_MODULE];
	struct hd_ours ours;
	uint32_t p = HD_NONE;
	enum hd_err err = plain_name(r, name, theirs);

	if (!err)
		err = find_param(r, theirs, t->name, &ours, &p);
	if (err || p == HD_NONE || (ours.kind == HD_NAME_TIED) != tied)
		return err;
	struct peft_param *param = &r->param[p];
	const char *unfit = hd_fit_unfit(t, ours.turned, &r->graph->value[r->graph->param[p].value]);
	if (tied && (!param->plain || param->plain->len_bytes != t->len_bytes ||
		memcmp(param->plain->at, t->at, t->len_bytes) != 0))
		return hd_fail(r->d->diag, HD_E_INPUT, "%s: '%s' is a second name of %s, and the adapter has "
			"another tensor under it: peft has untied them, and this model is tied", r->file,
			t->name, ours.name);
	if (unfit)
		return hd_fail(r->d->diag, HD_E_INPUT, "%s: tensor '%s' %s for %s %s", r->file, t->name,
			unfit, ours.name, hd_value_shape(&r->graph->value[r->graph->param[p].value]).at);
	if (tied)
		return HD_OK;
	param->plain = t;
	param->saved = is_saved(r, theirs);
	param->trained = param->saved || (r->peft.bias != HD_PEFT_NO_BIAS && ends_with(theirs, strlen(theirs),
		".bias"));
	return HD_OK;
}

static enum hd_err take_tensor(struct peft_reading *r, const struct hd_st_tensor *t, bool tied)
{
	static const char *const ends[] = { ".lora_A.weight", ".lora_B.weight" };
	const char *name = t->name + strlen(prefix);

	if (strncmp(t->name, prefix, strlen(prefix)) != 0)
		return hd_fail(r->d->diag, HD_E_INPUT, "%s: tensor '%s' does not begin with %s: no file of "
			"PeftModel.save_pretrained()", r->file, t->name, prefix);
	for (size_t i = 0; i < 2; i++)
		if (ends_with(name, strlen(name), ends[i]))
			return tied ? HD_OK : take_adapter(r, t, name, strlen(name) - strlen(ends[i]), i);
	if (strstr(name, ".original_module."))    /* the base's, beside a module of modules_to_save */
		return HD_OK;
	if (strstr(name, ".lora_"))
		return hd_fail(r->d->diag, HD_E_INPUT, "%s: tensor '%s': this build has adapters of matrices "
			"(lora_A, lora_B) alone", r->file, t->name);
	return take_plain(r, t, name, tied);
}

/* ---- what was found */

/* peft unties what it copies. */
static bool is_tied(const struct peft_reading *r, const char *ours)
{
	for (const struct hd_name_tie *tie = r->family->tied; tie->theirs; tie++)
		if (!strcmp(tie->ours, ours) && hd_graph_find_param(r->graph, tie->theirs) == HD_NONE &&
			(!tie->with || hd_graph_find_param(r->graph, tie->with) != HD_NONE))
			return true;
	return false;
}

/* A job has them: what it would refuse is refused here, before anything is written. */
static enum hd_err check_numbers(const struct peft_reading *r, const struct peft_param *param)
{
	if (!(param->rank >= 1 && param->rank <= HD_LORA_MAX_RANK))
		return hd_fail(r->d->diag, HD_E_INPUT, "%s: the adapters of %s are of rank %g; this build "
			"has ranks from 1 to %d", r->file, param->module, param->rank, HD_LORA_MAX_RANK);
	return hd_peft_check_alpha(param->alpha, "adapter_config.json", param->module, r->d->diag);
}

static enum hd_err settle_param(struct peft_reading *r, uint32_t p, uint32_t *n)
{
	struct peft_param *param = &r->param[p];
	const char *name = name_of(r, p);
	double rank = 0;

	if (param->saved && is_tied(r, name))
		return hd_fail(r->d->diag, HD_E_INPUT, "%s: modules_to_save has %s, which has two names in "
			"this model: peft unties them, this build does not", r->file, name);
	if (!param->a && !param->b)
		return HD_OK;
	if (!param->a || !param->b)
		return hd_fail(r->d->diag, HD_E_INPUT, "%s: %s has lora_%c and no lora_%c", r->file,
			param->module, param->a ? 'A' : 'B', param->a ? 'B' : 'A');
	enum hd_err err = number_of(r, r->peft.ranks, param->module, r->peft.rank, &rank);
	param->rank = (double)param->a->dim[0];
	if (!err && rank != param->rank)
		err = hd_fail(r->d->diag, HD_E_INPUT, "%s: the adapters of %s are of rank %g, "
			"adapter_config.json says %g", r->file, param->module, param->rank, rank);
	param->target = true;
	++*n;
	if (!err)
		err = number_of(r, r->peft.alphas, param->module, r->peft.alpha, &param->alpha);
	return err ? err : check_numbers(r, param);
}

/* Each of target_modules must have found something, or a part of the file is missing. */
static enum hd_err check_targets(const struct peft_reading *r)
{
	const char *entry = "";

	for (size_t i = 0; i < hd_peft_count(r->peft.targets); i++) {
		uint32_t p = 0;
		if (hd_json_as_text(hd_json_item(r->peft.targets, i), &entry, NULL))
			continue;
		while (p < r->nparams && !(r->param[p].target && ends_with(r->param[p].module,
			strlen(r->param[p].module), entry)))
			p++;
		if (p == r->nparams)
			return hd_fail(r->d->diag, HD_E_INPUT, "%s has no adapters for '%s' of "
				"target_modules: a part of the file is missing", r->file, entry);
	}
	return HD_OK;
}

static enum hd_err sort_out(struct peft_reading *r)
{
	uint32_t n = 0;
	enum hd_err err = HD_OK;

	for (int tied = 0; tied < 2; tied++)      /* second names after the first */
		for (uint32_t i = 0; i < r->adapter->ntensors && !err; i++)
			err = take_tensor(r, &r->adapter->tensor[i], tied);
	for (uint32_t p = 0; p < r->nparams && !err; p++)
		err = settle_param(r, p, &n);
	if (!err && !n)
		err = hd_fail(r->d->diag, HD_E_INPUT, "%s has no adapters", r->file);
	return err ? err : check_targets(r);
}

/* ---- what the job says */

/* "h.0.attn.weight" -> "h.{i}.attn.weight" */
static void generalize(const char *name, char out[HD_MAX_NAME])
{
	struct hd_text text;

	hd_text_fixed(&text, out, HD_MAX_NAME);
	while (*name) {
		size_t len = strcspn(name, "."), digits = strspn(name, "0123456789");
		if (digits == len && len)
			hd_text_add(&text, "{i}");
		else
			hd_text_put(&text, name, len);
		name += len;
		if (*name)
			hd_text_put(&text, name++, 1);
	}
	if (text.full)
		out[0] = '\0';
}

/* What list a parameter is in, and the number that it has there. */
typedef bool peft_in(const struct peft_param *param, const struct hd_peft *peft, double *number);

static bool is_target(const struct peft_param *p, const struct hd_peft *peft, double *number)
{
	(void)peft;
	*number = 0;
	return p->target;
}

static bool is_trained(const struct peft_param *p, const struct hd_peft *peft, double *number)
{
	(void)peft;
	*number = 0;
	return p->plain && p->trained;
}

static bool has_rank(const struct peft_param *p, const struct hd_peft *peft, double *number)
{
	*number = p->rank;
	return p->target && p->rank != peft->rank;
}

static bool has_alpha(const struct peft_param *p, const struct hd_peft *peft, double *number)
{
	*number = p->alpha;
	return p->target && p->alpha != peft->alpha;
}

/* One pattern for all layers where it names nothing else. */
static enum hd_err list_up(struct peft_reading *r, peft_in *in, bool numbers, struct peft_list *list)
{
	char pattern[HD_MAX_NAME], number[HD_NUM_CAP];
	double mine, other;

	for (uint32_t p = 0; p < r->nparams; p++) {
		struct hd_text text;
		if (!in(&r->param[p], &r->peft, &mine))
			continue;
		generalize(name_of(r, p), pattern);
		for (uint32_t q = 0; q < r->nparams; q++)
			if (hd_name_matches(pattern, name_of(r, q)) &&
				!(in(&r->param[q], &r->peft, &other) && mine == other))
				snprintf(pattern, sizeof pattern, "%s", name_of(r, p));
		hd_text_init(&text, r->d->arena);
		hd_text_addf(&text, "%s%s%s", pattern, numbers ? "=" : "",
			numbers ? hd_num_print_f64(number, mine) : "");
		if (text.full)
			return no_memory(r);
		uint32_t i = 0;
		while (i < list->n && strcmp(list->at[i], text.at) != 0)
			i++;
		if (i == MAX_PATTERNS)
			return hd_fail(r->d->diag, HD_E_INPUT, "%s needs more than %d patterns in model.lora",
				r->file, MAX_PATTERNS);
		list->at[i] = text.at;
		list->n = i == list->n ? i + 1 : list->n;
	}
	return HD_OK;
}

static enum hd_err list_all(struct peft_reading *r)
{
	enum hd_err err = list_up(r, is_target, false, &r->targets);

	if (!err)
		err = list_up(r, is_trained, false, &r->train);
	if (!err)
		err = list_up(r, has_rank, true, &r->ranks);
	return err ? err : list_up(r, has_alpha, true, &r->alphas);
}

static void add_list(struct hd_text *text, const char *key, const struct peft_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		hd_text_addf(text, "%s%s\"%s\"%s", i ? ", " : "", i ? "" : key, list->at[i],
			i + 1 == list->n ? "]\n" : "");
}

static void lora_lines(const struct peft_reading *r, struct hd_text *text)
{
	char number[HD_NUM_CAP];

	hd_text_addf(text, "  lora:\n    rank: %lld\n    alpha: %s\n", (long long)r->peft.rank,
		hd_num_print_f64(number, r->peft.alpha));
	add_list(text, "    targets: [", &r->targets);
	add_list(text, "    train: [", &r->train);
	add_list(text, "    ranks: [", &r->ranks);
	add_list(text, "    alphas: [", &r->alphas);
	if (r->peft.root)
		hd_text_add(text, "    scale: root\n");
	if (r->peft.dropout > 0)
		hd_text_addf(text, "    dropout: %s\n", hd_num_print_f64(number, r->peft.dropout));
}

/* ---- weights */

static enum hd_err put_adapter(const struct peft_reading *r, struct hd_weight_source *fit, uint32_t p,
	const char *suffix, const struct hd_st_tensor *t)
{
	char name[HD_MAX_NAME + 8];

	snprintf(name, sizeof name, "%s%s", name_of(r, p), suffix);
	uint32_t at = hd_graph_find_param(r->graph, name);
	const struct hd_value *v = at == HD_NONE ? NULL : hd_fit_value(r->graph, at);
	const char *unfit = v ? hd_fit_unfit(t, false, v) : "is too much";
	if (unfit)
		return hd_fail(r->d->diag, HD_E_INPUT, "%s: tensor '%s' %s for %s %s", r->file, t->name,
			unfit, name, v ? hd_value_shape(v).at : "of a model without adapters there");
	fit[at] = (struct hd_weight_source){ .from = t };
	return HD_OK;
}

/* The base's, then what the adapter has in their place. The first `nparams` of the graph are the base's. */
static enum hd_err fit_all(struct peft_reading *r, struct hd_weights *base, struct hd_weight_source **fit,
	struct hd_text *full)
{
	const char **skip = hd_arena_take(r->d->arena, r->nparams + 1, sizeof *skip);
	uint32_t n = 0;

	if (!skip)
		return no_memory(r);
	for (uint32_t p = 0; p < r->nparams; p++)
		if (r->param[p].plain)
			skip[n++] = name_of(r, p);
	enum hd_err err = hd_weights_fit(base, r->graph, skip, n, fit, full, r->d->diag);
	for (uint32_t p = 0; p < r->nparams && !err; p++) {
		if (r->param[p].plain)
			(*fit)[p] = (struct hd_weight_source){ .from = r->param[p].plain };
		if (r->param[p].target)
			err = put_adapter(r, *fit, p, ".lora_A", r->param[p].a);
		if (!err && r->param[p].target)
			err = put_adapter(r, *fit, p, ".lora_B", r->param[p].b);
	}
	return err;
}

static enum hd_err adapt(struct peft_reading *r)
{
	const struct hd_lora lora = { .rank = (uint32_t)r->peft.rank, .alpha = (float)r->peft.alpha,
		.target = r->targets.at, .ntargets = r->targets.n, .train = r->train.at,
		.ntrain = r->train.n, .ranks = r->ranks.at, .nranks = r->ranks.n,
		.alphas = r->alphas.at, .nalphas = r->alphas.n, .root = r->peft.root };

	return hd_graph_lora(r->graph, &lora, r->d->diag);
}

/* ---- files */

static enum hd_err read_config(struct peft_reading *r, const char *source)
{
	const struct hd_json *json;
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	if ((size_t)snprintf(path, sizeof path, "%s/adapter_config.json", source) >= sizeof path)
		return hd_fail(r->d->diag, HD_E_INVAL, "the path %.100s... is too long", source);
	enum hd_err err = hd_file_read_all(r->d->fs, path, r->d->arena, CONFIG_BYTES, &bytes, &len,
		r->d->diag);
	if (!err)
		err = hd_json_parse(r->d->arena, path, (const char *)bytes, len, &json, r->d->diag);
	return err ? err : hd_peft_read(&r->peft, json, path, r->d->diag);
}

static enum hd_err open_adapter(struct peft_reading *r, const char *source)
{
	char *path = hd_arena_take(r->d->arena, HD_PATH_CAP, 1);
	struct hd_stat stat;

	if (!path)
		return no_memory(r);
	if ((size_t)snprintf(path, HD_PATH_CAP, "%s/adapter_model.safetensors", source) >= HD_PATH_CAP)
		return hd_fail(r->d->diag, HD_E_INVAL, "the path %.100s... is too long", source);
	r->file = path;
	if (hd_fs_stat(r->d->fs, path, &stat, NULL))
		return hd_fail(r->d->diag, HD_E_INPUT, "%s is not there; of an adapter_model.bin (a pickle) "
			"make one with PeftModel.save_pretrained(DIR, safe_serialization=True)", path);
	return hd_weights_open(&r->adapter, r->d->fs, path, r->d->diag);
}

static enum hd_err find_base(const struct peft_reading *r, const char *base, const char **out)
{
	struct hd_stat stat;

	*out = base ? base : r->peft.base;
	if (base)
		return HD_OK;
	if (!*out)
		return hd_fail(r->d->diag, HD_E_INVAL, "which model is this an adapter of? give --base DIR");
	if (hd_fs_stat(r->d->fs, *out, &stat, NULL))
		return hd_fail(r->d->diag, HD_E_INPUT, "the adapter is of %s, which is no folder here; give "
			"--base DIR with that model's config.json and weights", *out);
	return HD_OK;
}

static enum hd_err prepare(struct peft_reading *r, struct hd_adopt_given *given, const char *model,
	const struct hd_model_arg *arg, uint32_t nargs)
{
	enum hd_err err = hd_adopt_settle(r->d, given, model, arg, nargs);

	if (!err)
		err = hd_adopt_build(r->d, given, r->graph);
	if (err)
		return err;
	r->family = hd_family_of(hd_graph_text_of(r->graph, r->graph->name));
	r->nparams = r->graph->nparams;
	r->param = hd_arena_take(r->d->arena, r->nparams + 1, sizeof *r->param);
	if (!r->param)
		return no_memory(r);
	err = sort_out(r);
	if (!err)
		err = list_all(r);
	return err ? err : adapt(r);
}

static enum hd_err write_all(struct peft_reading *r, const struct hd_adopt_given *given)
{
	struct hd_weights *base = NULL;
	struct hd_weight_source *fit;
	struct hd_text full, lines;

	hd_text_init(&full, r->d->arena);
	hd_text_init(&lines, r->d->arena);
	lora_lines(r, &lines);
	if (lines.full)
		return no_memory(r);
	enum hd_err err = hd_weights_open(&base, r->d->fs, r->d->source, r->d->diag);
	if (!err)
		err = fit_all(r, base, &fit, &full);
	if (!err)
		hd_adopt_say_surplus(r->d, given, base);
	if (r->d->diag && full.len >= sizeof r->d->diag->text)
		hd_text_addf(&r->d->out->notes, "%s\n", full.at);
	if (!err)
		err = hd_fs_mkdirs(r->d->fs, r->d->folder, r->d->diag);
	if (!err)
		err = hd_export_fit(r->d->fs, base, r->graph, fit, r->d->arena, r->d->out->weights,
			r->d->diag);
	if (!err)
		err = hd_adopt_write_job(r->d, given, lines.at);
	if (!err) {
		r->d->out->model = given->model;
		r->d->out->nnodes = r->graph->nnodes;
		r->d->out->ntensors = base->ntensors + r->adapter->ntensors;
	}
	hd_weights_close(base);
	return err;
}

enum hd_err hd_adopt_peft(struct hd_adopted *adopted, struct hd_fs *fs, const char *source, const char *base,
	const char *folder, const char *model, const struct hd_model_arg *arg, uint32_t nargs,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_adopt_desk d = { adopted, fs, base, folder, arena, diag };
	struct hd_adopt_given given;
	struct hd_graph graph;
	struct peft_reading r = { .d = &d, .graph = &graph };
	enum hd_err err = hd_adopt_begin(&d);

	if (!err)
		err = read_config(&r, source);
	if (!err)
		err = find_base(&r, base, &d.source);
	if (!err)
		err = open_adapter(&r, source);
	if (!err)
		err = prepare(&r, &given, model, arg, nargs);
	if (!err)
		err = write_all(&r, &given);
	hd_weights_close(r.adapter);
	return err;
}
