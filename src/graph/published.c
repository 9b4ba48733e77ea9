#include "graph/published.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"

/* ---- the tables */

struct reading;
struct published_key;
/* `found`: NULL where the file has no such key; it may be a null. */
typedef enum hd_err take_fn(struct reading *r, const struct published_key *key, const struct hd_json *found);

struct published_key {
	const char *name;
	take_fn *take;
	const char *what;                 /* what the function makes of it */
	/* what the library takes where the key is missing; NULL: our default */
	const char *standard;
	const char *null;                 /* what a null stands for; NULL: as if missing */
	const char *in;                   /* the table of the file that it lies in */
};
struct published_head { const char *architecture, *head; };

static take_fn take_arg, take_inner, take_head_dim, take_must, take_same, take_note, take_like, take_classes,
	take_architectures, take_table, take_any;

/* Of every type: what concerns the library, its ways of saving memory or of generating text; and what
 * would be another model. */
static const struct published_key common[] = {
	{ .name = "is_encoder_decoder", .take = take_must, .what = "false" },
	{ .name = "add_cross_attention", .take = take_must, .what = "false" },
	{ .name = "pruned_heads", .take = take_must, .what = "" },
	{ .name = "quantization_config", .take = take_must, .what = "" },
	{ .name = "compression_config", .take = take_must, .what = "" },
	{ .name = "auto_map", .take = take_must, .what = "" },
	{ .name = "problem_type", .take = take_must, .what = "single_label_classification" },
#define ANY(key) { .name = key, .take = take_any }
	ANY("model_type"), ANY("transformers_version"), ANY("dtype"), ANY("torch_dtype"),
	ANY("_name_or_path"), ANY("name_or_path"),
	ANY("return_dict"), ANY("output_hidden_states"), ANY("output_attentions"), ANY("output_past"),
	ANY("torchscript"), ANY("use_bfloat16"),
	ANY("tf_legacy_loss"), ANY("chunk_size_feed_forward"), ANY("gradient_checkpointing"),
	ANY("use_cache"), ANY("initializer_range"),
	ANY("attn_implementation"), ANY("_attn_implementation"), ANY("_attn_implementation_autoset"),
	ANY("cross_attention_hidden_size"),
	ANY("tie_encoder_decoder"), ANY("finetuning_task"), ANY("label2id"), ANY("task_specific_params"),
	ANY("tokenizer_class"), ANY("prefix"),
	ANY("bos_token_id"), ANY("eos_token_id"), ANY("sep_token_id"), ANY("decoder_start_token_id"),
	ANY("max_length"), ANY("min_length"),
	ANY("do_sample"), ANY("early_stopping"), ANY("num_beams"), ANY("temperature"), ANY("top_k"),
	ANY("top_p"), ANY("typical_p"),
	ANY("repetition_penalty"), ANY("length_penalty"), ANY("no_repeat_ngram_size"),
	ANY("encoder_no_repeat_ngram_size"), ANY("bad_words_ids"),
	ANY("num_return_sequences"), ANY("output_scores"), ANY("return_dict_in_generate"),
	ANY("forced_bos_token_id"), ANY("forced_eos_token_id"),
	ANY("remove_invalid_values"), ANY("exponential_decay_length_penalty"), ANY("suppress_tokens"),
	ANY("begin_suppress_tokens"),
	ANY("num_beam_groups"), ANY("diversity_penalty"),
	{ 0 },
};

static const struct published_key of_gpt2[] = {
	{ .name = "architectures", .take = take_architectures },
	{ .name = "n_layer", .take = take_arg, .what = "layers", .standard = "12" },
	{ .name = "n_embd", .take = take_arg, .what = "width", .standard = "768" },
	{ .name = "n_head", .take = take_arg, .what = "heads", .standard = "12" },
	{ .name = "n_positions", .take = take_arg, .what = "context", .standard = "1024" },
	{ .name = "n_ctx", .take = take_same, .what = "n_positions" },
	{ .name = "n_inner", .take = take_inner, .what = "hidden" },
	{ .name = "vocab_size", .take = take_arg, .what = "vocab", .standard = "50257" },
	{ .name = "layer_norm_epsilon", .take = take_arg, .what = "eps", .standard = "1e-05" },
	{ .name = "resid_pdrop", .take = take_arg, .what = "dropout", .standard = "0.1" },
	{ .name = "embd_pdrop", .take = take_like, .what = "resid_pdrop", .standard = "0.1" },
	{ .name = "attn_pdrop", .take = take_note, .what = "0", .standard = "0.1" },
	{ .name = "activation_function", .take = take_must, .what = "gelu_new|gelu_pytorch_tanh" },
	{ .name = "scale_attn_weights", .take = take_must, .what = "true" },
	{ .name = "scale_attn_by_inverse_layer_idx", .take = take_must, .what = "false" },
	{ .name = "tie_word_embeddings", .take = take_must, .what = "true" },
	ANY("reorder_and_upcast_attn"), ANY("summary_type"), ANY("summary_use_proj"),
	ANY("summary_activation"), ANY("summary_proj_to_labels"),
	ANY("summary_first_dropout"), ANY("predict_special_tokens"), ANY("pad_token_id"), ANY("is_decoder"),
	ANY("id2label"), ANY("num_labels"),
	ANY("_num_labels"),
	{ 0 },
};
static const struct published_head heads_of_gpt2[] = { { "GPT2LMHeadModel", NULL }, { "GPT2Model", NULL },
	{ 0 } };

/* Positions: version 4 writes rope_theta and rope_scaling, version 5 rope_parameters. */
static const struct published_key of_llama[] = {
	{ .name = "architectures", .take = take_architectures },
	{ .name = "num_hidden_layers", .take = take_arg, .what = "layers", .standard = "32" },
	{ .name = "hidden_size", .take = take_arg, .what = "width", .standard = "4096" },
	{ .name = "num_attention_heads", .take = take_arg, .what = "heads", .standard = "32" },
	{ .name = "num_key_value_heads", .take = take_arg, .what = "kv_heads" },
	{ .name = "head_dim", .take = take_head_dim, .what = "head_dim" },
	{ .name = "intermediate_size", .take = take_arg, .what = "hidden", .standard = "11008" },
	{ .name = "max_position_embeddings", .take = take_arg, .what = "context", .standard = "2048" },
	{ .name = "vocab_size", .take = take_arg, .what = "vocab", .standard = "32000" },
	{ .name = "rope_parameters", .take = take_table },
	{ .name = "rope_type", .take = take_must, .what = "default", .in = "rope_parameters" },
	{ .name = "type", .take = take_must, .what = "default", .in = "rope_parameters" },
	{ .name = "partial_rotary_factor", .take = take_must, .what = "1", .in = "rope_parameters" },
	{ .name = "rope_theta", .take = take_arg, .what = "rope", .in = "rope_parameters" },
	{ .name = "rope_scaling", .take = take_table },
	{ .name = "rope_type", .take = take_must, .what = "default", .in = "rope_scaling" },
	{ .name = "type", .take = take_must, .what = "default", .in = "rope_scaling" },
	{ .name = "rope_theta", .take = take_arg, .what = "rope", .in = "rope_scaling" },
	{ .name = "rope_theta", .take = take_arg, .what = "rope", .standard = "10000" },
	{ .name = "partial_rotary_factor", .take = take_must, .what = "1" },
	{ .name = "rms_norm_eps", .take = take_arg, .what = "eps", .standard = "1e-06" },
	{ .name = "tie_word_embeddings", .take = take_arg, .what = "tie", .standard = "false" },
	{ .name = "hidden_act", .take = take_must, .what = "silu|swish" },
	{ .name = "attention_bias", .take = take_must, .what = "false" },
	{ .name = "mlp_bias", .take = take_must, .what = "false" },
	{ .name = "attention_dropout", .take = take_note, .what = "0", .standard = "0" },
	ANY("pretraining_tp"), ANY("pad_token_id"), ANY("is_decoder"), ANY("id2label"), ANY("num_labels"),
	ANY("_num_labels"),
	{ 0 },
};
static const struct published_head heads_of_llama[] = { { "LlamaForCausalLM", NULL },
	{ "LLaMAForCausalLM", NULL },
	{ "LlamaModel", NULL }, { 0 } };

static const struct published_key of_bert[] = {
	{ .name = "architectures", .take = take_architectures },
	{ .name = "num_hidden_layers", .take = take_arg, .what = "layers", .standard = "12" },
	{ .name = "hidden_size", .take = take_arg, .what = "width", .standard = "768" },
	{ .name = "num_attention_heads", .take = take_arg, .what = "heads", .standard = "12" },
	{ .name = "intermediate_size", .take = take_arg, .what = "hidden", .standard = "3072" },
	{ .name = "max_position_embeddings", .take = take_arg, .what = "context", .standard = "512" },
	{ .name = "vocab_size", .take = take_arg, .what = "vocab", .standard = "30522" },
	{ .name = "type_vocab_size", .take = take_arg, .what = "types", .standard = "2" },
	{ .name = "pad_token_id", .take = take_arg, .what = "pad", .standard = "0", .null = "-1" },
	{ .name = "layer_norm_eps", .take = take_arg, .what = "eps", .standard = "1e-12" },
	{ .name = "id2label", .take = take_classes, .what = "classes" },
	{ .name = "num_labels", .take = take_classes, .what = "classes" },
	{ .name = "_num_labels", .take = take_classes, .what = "classes" },
	{ .name = "hidden_dropout_prob", .take = take_arg, .what = "dropout", .standard = "0.1" },
	{ .name = "classifier_dropout", .take = take_like, .what = "hidden_dropout_prob" },
	{ .name = "attention_probs_dropout_prob", .take = take_note, .what = "0", .standard = "0.1" },
	{ .name = "hidden_act", .take = take_must, .what = "gelu" },
	{ .name = "position_embedding_type", .take = take_must, .what = "absolute" },
	{ .name = "is_decoder", .take = take_must, .what = "false" },
	/* a head of its own is refused with the weights */
	ANY("tie_word_embeddings"), ANY("directionality"), ANY("pooler_fc_size"),
	ANY("pooler_num_attention_heads"), ANY("pooler_num_fc_layers"),
	ANY("pooler_size_per_head"), ANY("pooler_type"),
#undef ANY
	{ 0 },
};
static const struct published_head heads_of_bert[] = { { "BertForMaskedLM", "mlm" },
	{ "BertForSequenceClassification", "cls" }, { 0 } };

static const struct type {
	const char *name, *model;
	const struct published_key *key;
	const struct published_head *head;
} types[] = {
	{ "bert", "bert", of_bert, heads_of_bert },
	{ "gpt2", "gpt", of_gpt2, heads_of_gpt2 },
	{ "llama", "llama", of_llama, heads_of_llama },
	{ 0 },
};

/* ---- values */

struct reading {
	struct hd_published *out;
	const struct type *type;
	const struct hd_json *json;
	const char *name, *head;
	struct hd_arena *arena;
	struct hd_diag *diag;
};

static bool is_null(const struct hd_json *json) { return !json || hd_json_kind(json) == HD_JSON_NULL; }

static enum hd_err no_memory(struct reading *r) { return hd_fail(r->diag, HD_E_NOMEM,
	"no memory for what %s says", r->name); }

/* A value as a user of ours would write it; an empty list or table is as good as none. */
static enum hd_err text_of(struct reading *r, const struct hd_json *json, const char **out)
{
	struct hd_text text;
	const char *word;
	char number[HD_NUM_CAP];
	int64_t n;
	double x;
	bool yes;

	hd_text_init(&text, r->arena);
	hd_text_add(&text, "");
	if (!hd_json_as_text(json, &word, NULL))
		hd_text_add(&text, word);
	else if (!hd_json_as_i64(json, INT64_MIN, INT64_MAX, &n, NULL))
		hd_text_addf(&text, "%lld", (long long)n);
	else if (!hd_json_as_f64(json, &x, NULL))
		hd_text_add(&text, hd_num_print_f64(number, x));
	else if (!hd_json_as_bool(json, &yes, NULL))
		hd_text_add(&text, yes ? "true" : "false");
	else if (hd_json_count(json))
		hd_text_add(&text, hd_json_kind_name(hd_json_kind(json)));
	if (text.full)
		return no_memory(r);
	*out = text.at;
	return HD_OK;
}

/* Of the file, else what the library takes; NULL: it says nothing. */
static enum hd_err value_of(struct reading *r, const struct published_key *key, const struct hd_json *found,
	const char **out)
{
	*out = found && is_null(found) && key->null ? key->null : key->standard;
	return is_null(found) ? HD_OK : text_of(r, found, out);
}

static bool same_value(const char *a, const char *b, size_t len)
{
	char word[64];
	double x, y;

	if (len >= sizeof word)
		return false;
	memcpy(word, b, len);
	word[len] = '\0';
	if (!hd_num_f64(a, -1e300, 1e300, &x, NULL) && !hd_num_f64(word, -1e300, 1e300, &y, NULL))
		return x == y;
	return !strcmp(a, word);
}

/* The text of another key of the same file, or what is taken for it. */
static enum hd_err other_value(struct reading *r, const char *name, const char **out)
{
	const struct published_key *key = r->type->key;

	while (key->name && (strcmp(key->name, name) != 0 || key->in))
		key++;
	return value_of(r, key, hd_json_find(r->json, name), out);
}

static const char *dotted(const struct published_key *key, char out[96])
{
	snprintf(out, 96, "%s%s%s", key->in ? key->in : "", key->in ? "." : "", key->name);
	return out;
}

/* ---- what becomes of a key */

static enum hd_err give(struct reading *r, const struct published_key *key, const char *argument,
	const char *value,
	bool found)
{
	struct hd_published *out = r->out;
	char path[96];

	for (uint32_t i = 0; i < out->nargs; i++)
		if (!strcmp(out->arg[i].name, argument)) {
			if (!found || same_value(value, out->arg[i].value, strlen(out->arg[i].value)))
				return HD_OK;
			return hd_fail(r->diag, HD_E_INPUT,
				"%s: %s is %s, but another key of the file says %s; leave one of them",
				r->name, dotted(key, path),
				value, out->arg[i].value);
		}
	if (out->nargs == HD_MAX_ARGS)
		return hd_fail(r->diag, HD_E_BUG, "%s: more than %d arguments of builtin:%s", r->name,
			HD_MAX_ARGS, r->type->model);
	out->arg[out->nargs++] = (struct hd_model_arg){ argument, value };
	return HD_OK;
}

static enum hd_err take_arg(struct reading *r, const struct published_key *key, const struct hd_json *found)
{
	const char *value;
	enum hd_err err = value_of(r, key, found, &value);

	return err || !value ? err : give(r, key, key->what, value, found != NULL);
}

/* What our default comes to as well is left to it: the job says no more than it must. */
static enum hd_err take_unless(struct reading *r, const struct published_key *key,
	const struct hd_json *found,
	int64_t standard)
{
	int64_t n;
	enum hd_err err = is_null(found) ? HD_OK : hd_json_as_i64(found, 1, 1 << 30, &n, r->diag);

	return err || is_null(found) || n == standard ? err : take_arg(r, key, found);
}

static enum hd_err integer_of(struct reading *r, const char *name, int64_t *n)
{
	const char *text = "";
	enum hd_err err = other_value(r, name, &text);

	if (!err && hd_num_i64(text, 1, 1 << 30, n, NULL))
		err = hd_fail(r->diag, HD_E_INPUT, "%s: %s is '%s', not a number above 0", r->name, name,
			text);
	return err;
}

static enum hd_err take_inner(struct reading *r, const struct published_key *key, const struct hd_json *found)
{
	int64_t width = 0;
	enum hd_err err = integer_of(r, "n_embd", &width);

	return err ? err : take_unless(r, key, found, 4 * width);
}

static enum hd_err take_head_dim(struct reading *r, const struct published_key *key,
	const struct hd_json *found)
{
	int64_t width = 0, heads = 1;
	enum hd_err err = integer_of(r, "hidden_size", &width);

	if (!err)
		err = integer_of(r, "num_attention_heads", &heads);
	return err ? err : take_unless(r, key, found, width % heads ? 0 : width / heads);
}

/* `what`: the words that ours computes with, the usual one first; "": only where the key says nothing. */
static enum hd_err take_must(struct reading *r, const struct published_key *key, const struct hd_json *found)
{
	const char *value = "";
	char path[96];
	enum hd_err err = is_null(found) ? HD_OK : text_of(r, found, &value);
	size_t first = strcspn(key->what, "|");

	if (err || is_null(found) || (!*value && !*key->what))
		return err;
	for (const char *at = key->what; *at; at += strspn(at, "|")) {
		size_t len = strcspn(at, "|");
		if (same_value(value, at, len))
			return HD_OK;
		at += len;
	}
	return hd_fail(r->diag, HD_E_INPUT,
		"%s: %s is %s; builtin:%s computes with %.*s and would give other outputs", r->name,
		dotted(key, path), value,
		r->type->model, first ? (int)first : 7, first ? key->what : "nothing of the kind");
}

static enum hd_err take_same(struct reading *r, const struct published_key *key, const struct hd_json *found)
{
	const char *value = "", *other = "";
	enum hd_err err = is_null(found) ? HD_OK : text_of(r, found, &value);

	if (!err)
		err = other_value(r, key->what, &other);
	if (err || is_null(found) || same_value(value, other, strlen(other)))
		return err;
	return hd_fail(r->diag, HD_E_INPUT, "%s: %s is %s and %s %s; builtin:%s has one number for both",
		r->name, key->name, value, key->what, other,
		r->type->model);
}

static enum hd_err note(struct reading *r, const struct published_key *key, const char *value,
	const char *ours)
{
	double x;

	if (hd_num_f64(value, 0, 1, &x, NULL) || hd_num_f64(ours, 0, 1, &x, NULL))
		return hd_fail(r->diag, HD_E_INPUT, "%s: %s is '%s', not a share from 0 to 1", r->name,
			key->name, value);
	hd_text_addf(&r->out->notes,
		"%s: %s is %s, builtin:%s trains with %s there; outputs do not depend on it\n", r->name,
		key->name, value,
		r->type->model, ours);
	return r->out->notes.full ? no_memory(r) : HD_OK;
}

static enum hd_err take_note(struct reading *r, const struct published_key *key, const struct hd_json *found)
{
	const char *value;
	enum hd_err err = value_of(r, key, found, &value);

	return err || !value || same_value(value, key->what, strlen(key->what)) ? err : note(r, key, value,
		key->what);
}

static enum hd_err take_like(struct reading *r, const struct published_key *key, const struct hd_json *found)
{
	const char *value, *other;
	enum hd_err err = value_of(r, key, found, &value);

	if (!err)
		err = other_value(r, key->what, &other);
	return err || !value || same_value(value, other, strlen(other)) ? err : note(r, key, value, other);
}

/* id2label names them, num_labels counts them; a head that has none leaves them alone. */
static enum hd_err take_classes(struct reading *r, const struct published_key *key,
	const struct hd_json *found)
{
	struct hd_text text;

	if (is_null(found) || !r->head || strcmp(r->head, "cls") != 0)
		return HD_OK;
	if (hd_json_kind(found) != HD_JSON_OBJECT)
		return take_arg(r, key, found);
	hd_text_init(&text, r->arena);
	hd_text_addf(&text, "%zu", hd_json_count(found));
	return text.full ? no_memory(r) : give(r, key, key->what, text.at, true);
}

static enum hd_err take_architectures(struct reading *r, const struct published_key *key,
	const struct hd_json *found)
{
	const struct published_head *h = r->type->head;
	const char *first = "";
	enum hd_err err = HD_OK;

	if (is_null(found))
		return HD_OK;
	err = hd_json_as(found, HD_JSON_ARRAY, r->diag);
	if (err || !hd_json_count(found))
		return err;
	err = hd_json_as_text(hd_json_item(found, 0), &first, r->diag);
	while (!err && h->architecture && strcmp(h->architecture, first) != 0)
		h++;
	if (!err && !h->architecture)
		err = hd_fail(r->diag, HD_E_INPUT,
			"%s: %s says %s; builtin:%s is a %s%s%s and has no other head", r->name, key->name,
			first, r->type->model,
			r->type->head[0].architecture, r->type->head[1].head ? " or a " : "",
			r->type->head[1].head ? r->type->head[1].architecture : "");
	r->head = err ? NULL : h->head;
	return err || !r->head ? err : give(r, key, "head", r->head, true);
}

static enum hd_err take_table(struct reading *r, const struct published_key *key, const struct hd_json *found)
{
	(void)key;
	return is_null(found) ? HD_OK : hd_json_as(found, HD_JSON_OBJECT, r->diag);
}

static enum hd_err take_any(struct reading *r, const struct published_key *key, const struct hd_json *found)
{
	(void)r, (void)key, (void)found;
	return HD_OK;
}

/* ---- the file */

static enum hd_err take_keys(struct reading *r, const struct published_key *key)
{
	enum hd_err err = HD_OK;

	for (; key->name && !err; key++) {
		const struct hd_json *table = key->in ? hd_json_find(r->json, key->in) : r->json;
		err = key->take(r, key, table ? hd_json_find(table, key->name) : NULL);
	}
	return err;
}

static bool is_known(const struct published_key *key, const char *name, const char *in)
{
	for (; key->name; key++)
		if (!strcmp(key->name, name) && (in ? key->in && !strcmp(key->in, in) : !key->in))
			return true;
	return false;
}

static enum hd_err know_table(struct reading *r, const struct hd_json *table, const char *in)
{
	for (size_t i = 0; i < hd_json_count(table); i++) {
		const char *name = hd_json_key(table, i);
		if (!is_null(hd_json_item(table, i)) && !is_known(r->type->key, name, in) &&
			(in || !is_known(common, name, NULL)))
			return hd_fail(r->diag, HD_E_INPUT,
				"%s: the key %s%s%s is not known of a %s, and outputs may depend on it; "
				"remove it if you know that "
				"they do not", r->name, in ? in : "", in ? "." : "", name, r->type->name);
	}
	return HD_OK;
}

static enum hd_err know_all(struct reading *r)
{
	enum hd_err err = know_table(r, r->json, NULL);

	for (const struct published_key *key = r->type->key; key->name && !err; key++) {
		const struct hd_json *table = key->take == take_table ? hd_json_find(r->json, key->name) :
			NULL;
		if (!is_null(table))
			err = know_table(r, table, key->name);
	}
	return err;
}

static enum hd_err find_type(struct reading *r, const char *asked)
{
	const char *name = NULL;
	const struct hd_json *found = hd_json_find(r->json, "model_type");
	enum hd_err err = is_null(found) ? HD_OK : hd_json_as_text(found, &name, r->diag);

	if (err || (!name && !asked))
		return err;
	for (r->type = types; r->type->name; r->type++)
		if (name ? !strcmp(r->type->name, name) : !strcmp(r->type->model, asked))
			break;
	if (name && !r->type->name)
		return hd_fail(r->diag, HD_E_INPUT,
			"%s: model_type is %s; this build imports bert, gpt2 and llama. Another type "
			"computes otherwise even where its tensors have the same names; to take the "
			"tensors alone, import the .safetensors file from a folder without config.json",
			r->name, name);
	if (name && asked && strcmp(r->type->model, asked) != 0)
		return hd_fail(r->diag, HD_E_INPUT,
			"%s: model_type is %s, which is builtin:%s and not builtin:%s; leave out "
			"--model, or import the .safetensors file from a folder without config.json",
			r->name, name, r->type->model,
			asked);
	if (!r->type->name) {
		r->type = NULL;
		hd_text_addf(&r->out->notes, "%s has no model_type: it was not read\n", r->name);
	}
	return r->out->notes.full ? no_memory(r) : HD_OK;
}

enum hd_err hd_published_read(struct hd_published *published, const struct hd_json *json, const char *name,
	const char *asked,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct reading r = { .out = published, .json = json, .name = name, .arena = arena, .diag = diag };
	enum hd_err err;

	*published = (struct hd_published){ 0 };
	hd_text_init(&published->notes, arena);
	hd_text_add(&published->notes, "");
	err = hd_json_as(json, HD_JSON_OBJECT, diag);
	if (!err)
		err = find_type(&r, asked);
	if (err || !r.type)
		return err;
	published->model = r.type->model;
	err = take_keys(&r, r.type->key);
	if (!err)
		err = take_keys(&r, common);
	return err ? err : know_all(&r);
}
