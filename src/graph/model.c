#include "graph/model.h"

#include <string.h>

#include "base/near.h"
#include "base/num.h"
#include "graph/models/rows.h"

const struct hd_model_row hd_models[] = {
	{ "mlp",   "fully connected layers",                                       hd_mlp_params,   hd_mlp_build },
	{ "lenet", "LeNet-5 with ReLU and max pooling, for small images",          hd_lenet_params, hd_lenet_build },
	{ "gpt",   "decoder-only transformer with GPT-2's shapes and names",       hd_gpt_params,   hd_gpt_build },
	{ "resnet18", "residual network of 18 layers, torchvision's names", hd_resnet_params, hd_resnet18_build },
	{ "resnet34", "residual network of 34 layers, torchvision's names", hd_resnet_params, hd_resnet34_build },
	{ "resnet50", "residual network of 50 layers, torchvision's names", hd_resnet_params, hd_resnet50_build },
	{ "resnet101", "residual network of 101 layers, torchvision's names", hd_resnet_params, hd_resnet101_build },
	{ "resnet152", "residual network of 152 layers, torchvision's names", hd_resnet_params, hd_resnet152_build },
	{ "resnext50_32x4d", "resnet50 whose blocks have 32 paths of 4 channels", hd_resnext32x4_params, hd_resnet50_build },
	{ "resnext101_32x8d", "resnet101 whose blocks have 32 paths of 8 channels", hd_resnext32x8_params, hd_resnet101_build },
	{ "resnext101_64x4d", "resnet101 whose blocks have 64 paths of 4 channels", hd_resnext64x4_params, hd_resnet101_build },
	{ "wide_resnet50_2", "resnet50 with twice the channels inside blocks", hd_wide_params, hd_resnet50_build },
	{ "wide_resnet101_2", "resnet101 with twice the channels inside blocks", hd_wide_params, hd_resnet101_build },
	{ "vgg16", "VGG with 16 layers, torchvision's names", hd_vgg_params, hd_vgg16_build },
	{ "inception", "blocks of parallel convolutions joined over channels", hd_inception_params, hd_inception_build },
	{ "llama", "decoder with rotary positions, gated mlp and grouped queries", hd_llama_params, hd_decoder_build },
	{ "mistral", "llama whose queries see a window",                           hd_llama_params, hd_decoder_build },
	{ "qwen2", "llama with biases of queries, keys and values",                hd_qwen2_params, hd_decoder_build },
	{ "qwen3", "llama with norms of each head's queries and keys",             hd_llama_params, hd_decoder_build },
	{ "gemma2", "decoder with capped scores and a window in every other layer", hd_gemma2_params, hd_decoder_build },
	{ "phi3",  "llama whose q, k, v are one product, and gate and up another", hd_llama_params, hd_decoder_build },
	{ "mixtral", "mistral whose mlps are mixtures of experts",                 hd_mixtral_params, hd_decoder_build },
	{ "qwen2-moe", "qwen2 with experts, and one for every token",              hd_qwen2_moe_params, hd_decoder_build },
	{ "qwen3-moe", "qwen3 with experts",                                       hd_qwen3_moe_params, hd_decoder_build },
	{ "neox",  "decoder whose attention and mlp stand side by side",           hd_neox_params,  hd_neox_build },
	{ "bert",  "encoder; its head guesses masked tokens or tells the class of a text", hd_bert_params,  hd_bert_build },
	{ "roberta", "bert with RoBERTa's positions and heads",                    hd_bert_params,  hd_bert_build },
	{ "t5",    "encoder-decoder whose positions are a bias of the scores",     hd_t5_params,    hd_t5_build },
	{ "vit",   "vision transformer for classes of images",                     hd_vit_params,   hd_vit_build },
	{ "lstm",  "recurrent language model of LSTM layers",                      hd_recurrent_params, hd_lstm_build },
	{ "gru",   "recurrent language model of GRU layers",                       hd_recurrent_params, hd_gru_build },
	{ "gcn", "graph convolutions over a whole graph",                          hd_gcn_params,       hd_gcn_build },
	{ "gat", "graph attention over a whole graph",                             hd_gat_params,       hd_gat_build },
	{ "sage-mean", "GraphSAGE with means, over a whole graph",                 hd_sage_params,      hd_sage_build },
	{ 0 },
};

static const char *const normalizes[] = { [HD_NORMALIZE_SAMPLE] = "sample", [HD_NORMALIZE_TOKEN] = "token" };

const struct hd_loss_row hd_losses[HD_NLOSSES] = {
	[HD_LOSS_CROSS_ENTROPY] = { "cross-entropy", .classes = true, .hits = true },
		[HD_LOSS_MSE] = { .name = "mse" },
	[HD_LOSS_SOFT] = { "soft-cross-entropy", .hits = true }, [HD_LOSS_KL] = { .name = "kl" },
		[HD_LOSS_BCE] = { .name = "bce" },
	[HD_LOSS_L1] = { .name = "l1" }, [HD_LOSS_SMOOTH_L1] = { .name = "smooth-l1" },
	[HD_LOSS_HUBER] = { .name = "huber" },
};

static bool word_parse(const char *text, const char *const *words, int nwords, int *at)
{
	for (int i = 0; i < nwords; i++)
		if (strcmp(words[i], text) == 0) {
			*at = i;
			return true;
		}
	return false;
}

bool hd_normalize_parse(const char *text, enum hd_normalize *normalize)
{
	int at;

	if (!word_parse(text, normalizes, 2, &at))
		return false;
	*normalize = (enum hd_normalize)at;
	return true;
}

bool hd_loss_parse(const char *text, enum hd_loss *loss)
{
	for (int i = 0; i < HD_NLOSSES; i++)
		if (strcmp(hd_losses[i].name, text) == 0) {
			*loss = (enum hd_loss)i;
			return true;
		}
	return false;
}

enum hd_err hd_model_find(const char *name, const struct hd_model_row **row, struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(name);

	for (const struct hd_model_row *r = hd_models; r->name; r++) {
		if (strcmp(r->name, name) == 0) {
			*row = r;
			return HD_OK;
		}
		hd_near_offer(&near, r->name);
	}
	return hd_fail(diag, HD_E_INVAL, "there is no model '%s'%s%s%s (heddle model ls prints all)", name,
		near.best ? "; did you mean '" : "", near.best ? near.best : "", near.best ? "'?" : "");
}

static enum hd_err int_parse(const struct hd_model_param *param, const char *text, int64_t *n,
	struct hd_diag *diag)
{
	struct hd_diag why = { "" };

	if (hd_num_i64(text, (int64_t)param->min, (int64_t)param->max, n, &why) == HD_OK)
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL, "argument '%s': %s", param->name, why.text);
}

/* "[512, 256]"; brackets may be missing, so that one item is a list too. */
static enum hd_err list_parse(const struct hd_model_param *param, const char *text,
	enum hd_err (*each)(const struct hd_model_param *param, const char *item,
		struct hd_model_value *value,
		struct hd_diag *diag), struct hd_model_value *value, struct hd_diag *diag)
{
	size_t len = strlen(text);
	char item[HD_NUM_CAP];

	if (len && text[0] == '[') {
		if (text[len - 1] != ']')
			return hd_fail(diag, HD_E_INVAL, "argument '%s': the list '%s' does not end with ']'",
				param->name, text);
		text++;
		len -= 2;
	}
	while (len && strspn(text, " ") < len) {
		size_t skip = strspn(text, " "), room = len - skip, n = 0;
		while (n < room && text[skip + n] != ',')
			n++;
		size_t next = skip + n + (n < room);
		size_t kept = n;
		while (kept && text[skip + kept - 1] == ' ')
			kept--;
		if (kept >= sizeof item)
			return hd_fail(diag, HD_E_INVAL, "argument '%s': '%.*s' is too long", param->name,
				(int)kept, text + skip);
		memcpy(item, text + skip, kept);
		item[kept] = '\0';
		enum hd_err err = each(param, item, value, diag);
		if (err != HD_OK)
			return err;
		text += next;
		len -= next;
	}
	return HD_OK;
}

static enum hd_err take_int(const struct hd_model_param *param, const char *item,
	struct hd_model_value *value,
	struct hd_diag *diag)
{
	if (value->nlist == HD_MAX_ARG_LIST)
		return hd_fail(diag, HD_E_INVAL, "argument '%s': more than %d numbers", param->name,
			HD_MAX_ARG_LIST);
	return int_parse(param, item, &value->list[value->nlist++], diag);
}

static enum hd_err take_real(const struct hd_model_param *param, const char *item,
	struct hd_model_value *value,
	struct hd_diag *diag)
{
	struct hd_diag why = { "" };

	if (value->nlist == HD_MAX_ARG_REALS)
		return hd_fail(diag, HD_E_INVAL, "argument '%s': more than %d numbers", param->name,
			HD_MAX_ARG_REALS);
	if (hd_num_real(item, param->min, param->max, &value->reals[value->nlist++], &why) == HD_OK)
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL, "argument '%s': %s", param->name, why.text);
}

/* Word `i` of "a|b|c"; its length is 0 behind the last. */
static const char *word_at(const char *words, uint32_t i, size_t *len)
{
	for (; i && *words; i--)
		words += strcspn(words, "|") + (words[strcspn(words, "|")] != '\0');
	*len = strcspn(words, "|");
	return words;
}

static enum hd_err take_word(const struct hd_model_param *param, const char *item,
	struct hd_model_value *value,
	struct hd_diag *diag)
{
	const char *word;
	size_t len;

	for (uint32_t i = 0; (word = word_at(param->words, i, &len)), len; i++)
		if (strlen(item) == len && !memcmp(item, word, len)) {
			value->n |= (int64_t)1 << i;
			return HD_OK;
		}
	return hd_fail(diag, HD_E_INVAL, "argument '%s': '%s' is none of %s", param->name, item,
		param->words);
}

static enum hd_err value_parse(const struct hd_model_param *param, const char *text,
	struct hd_model_value *value, struct hd_diag *diag)
{
	struct hd_diag why = { "" };

	*value = (struct hd_model_value){ 0 };
	switch (param->kind) {
	case HD_ARG_INT:
		return int_parse(param, text, &value->n, diag);
	case HD_ARG_REAL:
		if (hd_num_real(text, param->min, param->max, &value->real, &why) != HD_OK)
			return hd_fail(diag, HD_E_INVAL, "argument '%s': %s", param->name, why.text);
		return HD_OK;
	case HD_ARG_WORD:
		if (strlen(text) >= sizeof value->word)
			return hd_fail(diag, HD_E_INVAL, "argument '%s': '%s' is too long", param->name,
				text);
		memcpy(value->word, text, strlen(text) + 1);
		return HD_OK;
	case HD_ARG_LIST:
		return list_parse(param, text, take_int, value, diag);
	case HD_ARG_REALS:
		return list_parse(param, text, take_real, value, diag);
	case HD_ARG_SET:
		return list_parse(param, text, take_word, value, diag);
	}
	return hd_fail(diag, HD_E_BUG, "argument '%s': kind %d", param->name, (int)param->kind);
}

static enum hd_err arg_find(const struct hd_model_row *row, const char *name, uint32_t *at,
	struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(name);

	for (uint32_t i = 0; row->param[i].name; i++) {
		if (strcmp(row->param[i].name, name) == 0) {
			*at = i;
			return HD_OK;
		}
		hd_near_offer(&near, row->param[i].name);
	}
	return hd_fail(diag, HD_E_INVAL, "model '%s' has no argument '%s'%s%s%s", row->name, name,
		near.best ? "; did you mean '" : "", near.best ? near.best : "", near.best ? "'?" : "");
}

enum hd_err hd_model_args(const struct hd_model_row *row, const struct hd_model_arg *arg, uint32_t nargs,
	struct hd_model_value value[HD_MAX_ARGS], struct hd_diag *diag)
{
	bool given[HD_MAX_ARGS] = { false };
	enum hd_err err = HD_OK;
	uint32_t at = 0;

	for (uint32_t i = 0; row->param[i].name && err == HD_OK; i++)
		err = value_parse(&row->param[i], row->param[i].standard, &value[i], diag);
	for (uint32_t i = 0; i < nargs && err == HD_OK; i++) {
		err = arg_find(row, arg[i].name, &at, diag);
		if (err == HD_OK && given[at])
			err = hd_fail(diag, HD_E_INVAL, "model '%s': argument '%s' is given twice", row->name,
				arg[i].name);
		if (err != HD_OK)
			break;
		given[at] = true;
		err = value_parse(&row->param[at], arg[i].value, &value[at], diag);
	}
	return err;
}

bool hd_model_arg_listed(const struct hd_model_param *param, const struct hd_model_value *value)
{
	struct hd_model_value standard;

	if (!param->late || value_parse(param, param->standard, &standard, NULL))
		return true;
	return value->n != standard.n || value->real != standard.real ||
		strcmp(value->word, standard.word) != 0 || value->nlist != standard.nlist ||
		memcmp(value->list, standard.list, sizeof value->list) != 0 ||
		memcmp(value->reals, standard.reals, sizeof value->reals) != 0;
}

static void set_print(struct hd_text *text, const struct hd_model_param *param, int64_t bits)
{
	const char *word, *comma = "";
	size_t len;

	hd_text_add(text, "[");
	for (uint32_t i = 0; (word = word_at(param->words, i, &len)), len; i++)
		if (bits >> i & 1) {
			hd_text_addf(text, "%s%.*s", comma, (int)len, word);
			comma = ",";
		}
	hd_text_add(text, "]");
}

void hd_model_arg_print(struct hd_text *text, const struct hd_model_param *param,
	const struct hd_model_value *value)
{
	char number[HD_NUM_CAP];

	switch (param->kind) {
	case HD_ARG_INT:
		hd_text_addf(text, "%lld", (long long)value->n);
		break;
	case HD_ARG_REAL:
		hd_text_add(text, hd_num_print_f64(number, value->real));
		break;
	case HD_ARG_WORD:
		hd_text_addf(text, "\"%s\"", value->word);
		break;
	case HD_ARG_LIST:
		hd_text_add(text, "[");
		for (uint32_t i = 0; i < value->nlist; i++)
			hd_text_addf(text, "%s%lld", i ? "," : "", (long long)value->list[i]);
		hd_text_add(text, "]");
		break;
	case HD_ARG_REALS:
		hd_text_add(text, "[");
		for (uint32_t i = 0; i < value->nlist; i++)
			hd_text_addf(text, "%s%s", i ? "," : "", hd_num_print_f64(number, value->reals[i]));
		hd_text_add(text, "]");
		break;
	case HD_ARG_SET:
		set_print(text, param, value->n);
		break;
	}
}

enum hd_err hd_model_build(struct hd_graph *graph, const char *name, const struct hd_model_arg *arg,
	uint32_t nargs, const struct hd_model_opts *opts, struct hd_diag *diag)
{
	struct hd_model_value value[HD_MAX_ARGS];
	const struct hd_model_row *row;
	enum hd_err err = hd_model_find(name, &row, diag);

	if (err == HD_OK)
		err = hd_model_args(row, arg, nargs, value, diag);
	if (err == HD_OK)
		err = hd_graph_name(graph, row->name, &graph->name, diag);
	return err == HD_OK ? row->build(graph, value, opts, diag) : err;
}
