#include "checkpoint/peft.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

const char *const hd_peft_biases[HD_PEFT_NBIASES] = { "none", "all", "lora_only" };

/* EMPTY: what it asks for is no plain LoRA, so null, false, 0, [] and {} alone pass. */
enum peft_use { READ, ANY, EMPTY };

static const struct peft_key { const char *name; enum peft_use use; const char *about; } keys[] = {
	{ "peft_type", READ, "" }, { "r", READ, "" }, { "lora_alpha", READ, "" },
	{ "lora_dropout", READ, "" }, { "use_rslora", READ, "" }, { "bias", READ, "" },
	{ "base_model_name_or_path", READ, "" }, { "rank_pattern", READ, "" }, { "alpha_pattern", READ, "" },
	{ "modules_to_save", READ, "" }, { "target_modules", READ, "" }, { "init_lora_weights", READ, "" },
	/* the tensors say it */
	{ "exclude_modules", ANY, "" }, { "layers_to_transform", ANY, "" }, { "layers_pattern", ANY, "" },
	{ "fan_in_fan_out", ANY, "" },
	/* of no effect on outputs */
	{ "task_type", ANY, "" }, { "inference_mode", ANY, "" }, { "auto_mapping", ANY, "" },
	{ "peft_version", ANY, "" }, { "revision", ANY, "" }, { "megatron_core", ANY, "" },
	{ "eva_config", ANY, "" }, { "qalora_group_size", ANY, "" }, { "runtime_config", ANY, "" },
	{ "loftq_config", EMPTY, "LoftQ changes the base" },
	{ "corda_config", EMPTY, "CorDA changes the base" },
	{ "lora_ga_config", EMPTY, "LoRA-GA changes the base" },
	{ "use_dora", EMPTY, "DoRA has a magnitude for each output" },
	{ "use_qalora", EMPTY, "QA-LoRA pools what adapters read" },
	{ "lora_bias", EMPTY, "adapters with biases" },
	{ "layer_replication", EMPTY, "layers that stand in the model twice" },
	{ "megatron_config", EMPTY, "layers of Megatron" },
	{ "trainable_token_indices", EMPTY, "rows of a table that are trained alone" },
	{ "target_parameters", EMPTY, "adapters of parameters that are no modules" },
	{ "alora_invocation_tokens", EMPTY, "adapters that begin behind a token" },
	{ "arrow_config", EMPTY, "adapters chosen by Arrow" },
	{ "use_bdlora", EMPTY, "adapters of diagonal blocks" },
	{ "velora_config", EMPTY, "VeLoRA has another gradient" },
	{ "kasa_config", EMPTY, "KaSA changes the base" },
	{ "monteclora_config", EMPTY, "adapters that are sampled" },
	{ "ensure_weight_tying", EMPTY, "adapters that are tied" },
};

static bool is_empty(const struct hd_json *json)
{
	bool yes = true;
	double x = 0;

	if (!json || hd_json_kind(json) == HD_JSON_NULL)
		return true;
	if (!hd_json_as_bool(json, &yes, NULL))
		return !yes;
	if (!hd_json_as_f64(json, &x, NULL))
		return x == 0;
	return hd_json_kind(json) != HD_JSON_TEXT && !hd_json_count(json);
}

static enum hd_err know_all(const struct hd_json *json, const char *name, struct hd_diag *diag)
{
	for (size_t i = 0; i < hd_json_count(json); i++) {
		const char *key = hd_json_key(json, i);
		size_t k = 0;
		if (is_empty(hd_json_item(json, i)))
			continue;
		while (k < sizeof keys / sizeof *keys && strcmp(keys[k].name, key) != 0)
			k++;
		if (k == sizeof keys / sizeof *keys)
			return hd_fail(diag, HD_E_INPUT,
				"%s: the key %s is not known, and outputs may depend on it; remove it if you "
				"know that they do not", name, key);
		if (keys[k].use == EMPTY)
			return hd_fail(diag, HD_E_INPUT,
				"%s: %s is set (%s): this build has plain LoRA, and would give other outputs",
				name, key, keys[k].about);
	}
	return HD_OK;
}

/* How a file was begun does not matter once it has tensors, but where the base was changed, too, or where
 * training goes on otherwise. */
static enum hd_err read_init(const struct hd_json *json, const char *name, struct hd_diag *diag)
{
	static const char *const plain[] = { "gaussian", "eva", "orthogonal" };
	const char *word = NULL;

	if (!json || hd_json_as_text(json, &word, NULL))
		return HD_OK;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (!strcmp(plain[i], word))
			return HD_OK;
	return hd_fail(diag, HD_E_INPUT,
		"%s: init_lora_weights is %s, which changes the base's weights or what is trained; save the "
		"adapter as plain LoRA (path_initial_model_for_weight_conversion)", name, word);
}

static enum hd_err read_number(const struct hd_json *json, const char *name, const char *key, double min,
	double max, double *out, struct hd_diag *diag)
{
	const struct hd_json *found = hd_json_find(json, key);

	if (!found || hd_json_kind(found) == HD_JSON_NULL)
		return HD_OK;
	enum hd_err err = hd_json_as_f64(found, out, diag);
	if (!err && !(*out >= min && *out <= max))
		err = hd_fail(diag, HD_E_INPUT, "%s: %s is %g; this build takes %g to %g", name, key, *out,
			min, max);
	if (!err && fabs(*out) < 1 && !hd_num_fits_f32(*out))
		err = hd_fail(diag, HD_E_INPUT, "%s: %s is %g, which 32-bit floats do not have; write 0, or "
			"more", name, key, *out);
	return err;
}

enum hd_err hd_peft_check_alpha(double alpha, const char *name, const char *of, struct hd_diag *diag)
{
	const char *more = *of ? " for " : "";

	if (alpha < 0)
		return hd_fail(diag, HD_E_INPUT, "%s: lora_alpha%s%s is %g, so the adapter is subtracted; "
			"this build adds them: turn the sign of its lora_B, and of lora_alpha", name, more,
			of, alpha);
	if (!(alpha <= (double)HD_LORA_MAX_ALPHA) || !hd_num_fits_f32(alpha))
		return hd_fail(diag, HD_E_INPUT, "%s: lora_alpha%s%s is %g; this build takes 0, and 1.2e-38 "
			"to %d", name, more, of, alpha, HD_LORA_MAX_ALPHA);
	return HD_OK;
}

static enum hd_err read_numbers(struct hd_peft *peft, const struct hd_json *json, const char *name,
	struct hd_diag *diag)
{
	enum hd_err err = read_number(json, name, "r", 1, HD_LORA_MAX_RANK, &peft->rank, diag);

	if (!err && peft->rank != (double)(int64_t)peft->rank)
		err = hd_fail(diag, HD_E_INPUT, "%s: r is %g: it is a whole number", name, peft->rank);
	if (!err)
		err = read_number(json, name, "lora_alpha", -HUGE_VAL, HUGE_VAL, &peft->alpha, diag);
	if (!err)
		err = hd_peft_check_alpha(peft->alpha, name, "", diag);
	return err ? err : read_number(json, name, "lora_dropout", 0, 0.95, &peft->dropout, diag);
}

static enum hd_err read_words(struct hd_peft *peft, const struct hd_json *json, const char *name,
	struct hd_diag *diag)
{
	const struct hd_json *root = hd_json_find(json, "use_rslora"), *bias = hd_json_find(json, "bias"),
		*base = hd_json_find(json, "base_model_name_or_path");
	const char *word = "none";
	enum hd_err err = hd_json_get_text(json, "peft_type", &word, diag);

	if (!err && strcmp(word, "LORA") != 0)
		err = hd_fail(diag, HD_E_INPUT, "%s: peft_type is %s; this build imports LORA", name, word);
	if (!err && !is_empty(root))
		err = hd_json_as_bool(root, &peft->root, diag);
	if (!err && !is_empty(base))
		err = hd_json_as_text(base, &peft->base, diag);
	word = "none";
	if (!err && !is_empty(bias))
		err = hd_json_as_text(bias, &word, diag);
	while (!err && peft->bias < HD_PEFT_NBIASES && strcmp(hd_peft_biases[peft->bias], word) != 0)
		peft->bias++;
	if (!err && peft->bias == HD_PEFT_NBIASES)
		err = hd_fail(diag, HD_E_INPUT, "%s: bias is %s: it is none, all or lora_only", name, word);
	return err;
}

static enum hd_err read_table(const struct hd_json *json, const char *key, enum hd_json_kind kind,
	const struct hd_json **out, struct hd_diag *diag)
{
	const struct hd_json *found = hd_json_find(json, key);
	const char *word;
	double x;
	enum hd_err err = is_empty(found) ? HD_OK : hd_json_as(found, kind, diag);

	for (size_t i = 0; i < hd_peft_count(found) && !err; i++)
		err = kind == HD_JSON_OBJECT ? hd_json_as_f64(hd_json_item(found, i), &x, diag) :
			hd_json_as_text(hd_json_item(found, i), &word, diag);
	*out = is_empty(found) ? NULL : found;
	return err;
}

enum hd_err hd_peft_read(struct hd_peft *peft, const struct hd_json *json, const char *name,
	struct hd_diag *diag)
{
	const struct hd_json *targets = hd_json_find(json, "target_modules");
	enum hd_err err = hd_json_as(json, HD_JSON_OBJECT, diag);

	*peft = (struct hd_peft){ .rank = 8, .alpha = 8 };
	if (!err)
		err = read_words(peft, json, name, diag);
	if (!err)
		err = know_all(json, name, diag);
	if (!err)
		err = read_init(hd_json_find(json, "init_lora_weights"), name, diag);
	if (!err)
		err = read_numbers(peft, json, name, diag);
	if (!err)
		err = read_table(json, "rank_pattern", HD_JSON_OBJECT, &peft->ranks, diag);
	if (!err)
		err = read_table(json, "alpha_pattern", HD_JSON_OBJECT, &peft->alphas, diag);
	if (!err)
		err = read_table(json, "modules_to_save", HD_JSON_ARRAY, &peft->save, diag);
	/* a text, or a list of which others are excluded: the tensors say it */
	if (!err && targets && hd_json_kind(targets) != HD_JSON_TEXT && is_empty(hd_json_find(json,
		"exclude_modules")))
		err = read_table(json, "target_modules", HD_JSON_ARRAY, &peft->targets, diag);
	return err;
}

size_t hd_peft_count(const struct hd_json *list) { return list ? hd_json_count(list) : 0; }

bool hd_peft_is(struct hd_fs *fs, const char *folder)
{
	char path[HD_PATH_CAP];
	struct hd_stat stat;

	return (size_t)snprintf(path, sizeof path, "%s/adapter_config.json", folder) < sizeof path &&
		!hd_fs_stat(fs, path, &stat, NULL);
}
