#include "graph/published.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

/* What transformers 4.57 and 5.23 write of small models lies in tests/weights/published and is imported whole
 * by tests/program_weights.sh; here each key has its say. */
static const char gpt2[] =
	"\"model_type\":\"gpt2\",\"n_layer\":1,\"n_embd\":16,\"n_head\":2,\"n_positions\":8,"
	"\"vocab_size\":32,"
	"\"resid_pdrop\":0.0,\"embd_pdrop\":0.0,\"attn_pdrop\":0";
static const char llama[] =
	"\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":16,\"num_attention_heads\":4,"
	"\"intermediate_size\":24,"
	"\"max_position_embeddings\":8,\"vocab_size\":32";
static const char qwen2[] = "\"model_type\":\"qwen2\"", gemma2[] = "\"model_type\":\"gemma2\"";
static const char bert[] =
	"\"model_type\":\"bert\",\"num_hidden_layers\":2,\"hidden_size\":16,\"num_attention_heads\":4,"
	"\"intermediate_size\":24,"
	"\"max_position_embeddings\":8,\"vocab_size\":32,\"hidden_dropout_prob\":0,"
	"\"attention_probs_dropout_prob\":0";

static enum hd_err read(struct hd_arena *arena, const char *base, const char *more, const char *asked,
	struct hd_published *out, struct hd_diag *diag)
{
	const struct hd_json *json;
	char text[2048];
	int len = snprintf(text, sizeof text, "{%s%s%s}", base, *base && *more ? "," : "", more);

	*diag = (struct hd_diag){ "" };
	assert_in_range(len, 1, sizeof text - 1);
	CHECK(hd_json_parse(arena, "config.json", text, (size_t)len, &json, diag) == HD_OK, "%s", diag->text);
	return hd_published_read(out, json, "config.json", asked, arena, diag);
}

static void print_args(const struct hd_published *p, char *out, size_t cap)
{
	struct hd_text text;

	hd_text_fixed(&text, out, cap);
	for (uint32_t i = 0; i < p->nargs; i++)
		hd_text_addf(&text, "%s%s=%s", i ? " " : "", p->arg[i].name, p->arg[i].value);
}

static void a_key_gives_its_argument_or_what_the_library_takes(void **state)
{
	static const struct { const char *base, *more, *model, *args, *notes; } cases[] = {
		{ gpt2, "", "gpt", "layers=1 width=16 heads=2 context=8 vocab=32 eps=1e-05 dropout=0", "" },
		{ "\"model_type\":\"gpt2\"", "", "gpt", "layers=12 width=768 heads=12 context=1024 vocab=50257 eps=1e-05 dropout=0.1", "attn_pdrop is 0.1" },
		{ gpt2, "\"n_inner\":null,\"layer_norm_epsilon\":1e-6", "gpt", "layers=1 width=16 heads=2 context=8 vocab=32 eps=1e-06 dropout=0", "" },
		{ gpt2, "\"n_inner\":64,\"n_ctx\":8", "gpt", "layers=1 width=16 heads=2 context=8 vocab=32 eps=1e-05 dropout=0", "" },
		{ gpt2, "\"n_inner\":24", "gpt", "layers=1 width=16 heads=2 context=8 hidden=24 vocab=32 eps=1e-05 dropout=0", "" },
		{ gpt2, "\"activation_function\":\"gelu_pytorch_tanh\",\"architectures\":[\"GPT2LMHeadModel\"],\"summary_type\":\"cls_index\"", "gpt",
		  "layers=1 width=16 heads=2 context=8 vocab=32 eps=1e-05 dropout=0 act=gelu_tanh", "" },
		{ gpt2, "\"activation_function\":\"gelu\",\"scale_attn_weights\":false,\"scale_attn_by_inverse_layer_idx\":true,\"tie_word_embeddings\":false,\"reorder_and_upcast_attn\":true", "gpt",
		  "layers=1 width=16 heads=2 context=8 vocab=32 eps=1e-05 dropout=0 act=gelu scale=false "
		  "scale_by_layer=true tie=false", "" },
		{ bert, "\"hidden_act\":\"relu\",\"architectures\":[\"BertForPreTraining\"],\"type_vocab_size\":1", "bert",
		  "head=mlm layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 types=1 pad=0 eps=1e-12 "
		  "dropout=0 act=relu", "" },
		{ bert, "\"architectures\":[\"BertForSequenceClassification\"],\"tie_word_embeddings\":false", "bert",
		  "head=cls layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 types=2 pad=0 eps=1e-12 "
		  "dropout=0", "" },
		{ "\"model_type\":\"roberta\"", "\"hidden_dropout_prob\":0,\"attention_probs_dropout_prob\":0,\"max_position_embeddings\":514", "roberta",
		  "layers=12 width=768 heads=12 hidden=3072 pad=1 offset=2 context=512 positions=514 "
		  "vocab=50265 types=2 eps=1e-12 dropout=0 act=gelu", "" },
		{ "\"model_type\":\"roberta\"", "\"hidden_dropout_prob\":0,\"attention_probs_dropout_prob\":0,\"max_position_embeddings\":40,\"pad_token_id\":0", "roberta",
		  "layers=12 width=768 heads=12 hidden=3072 pad=0 offset=1 context=39 positions=40 "
		  "vocab=50265 types=2 eps=1e-12 dropout=0 act=gelu", "" },
		{ llama, "", "llama", "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 eps=1e-06 tie=false rope=10000", "" },
		{ llama, "\"rope_theta\":500000.0,\"rope_scaling\":null,\"rms_norm_eps\":1e-05,\"num_key_value_heads\":2,\"head_dim\":4", "llama",
		  "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 kv_heads=2 eps=1e-05 tie=false "
		  "rope=500000", "" },
		{ llama, "\"rope_parameters\":{\"rope_theta\":5e5,\"rope_type\":\"default\",\"partial_rotary_factor\":1.0},\"head_dim\":8,\"tie_word_embeddings\":true",
		  "llama",
		  "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 eps=1e-06 tie=true head_dim=8 "
		  "rope=500000", "" },
		{ llama, "\"rope_scaling\":{\"rope_type\":\"default\"},\"rope_theta\":7,\"pruned_heads\":{},\"tomorrow\":null", "llama",
		  "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 eps=1e-06 tie=false rope=7", "" },
		{ llama, "\"rope_parameters\":{\"rope_theta\":7},\"rope_theta\":7.0,\"attention_dropout\":0.25", "llama",
		  "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 eps=1e-06 tie=false rope=7",
		  "attention_dropout is 0.25, builtin:llama trains with 0" },
		{ llama, "\"hidden_act\":\"gelu\",\"attention_bias\":true,\"mlp_bias\":true", "llama",
		  "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 eps=1e-06 tie=false act=gelu "
		  "mlp_bias=true bias=attention rope=10000", "" },
		{ llama, "\"rope_scaling\":{\"factor\":2.0,\"type\":\"linear\"}", "llama",
		  "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 eps=1e-06 tie=false "
		  "rope_kind=linear rope_factor=2 rope=10000 rope_original=8", "" },
		{ llama, "\"rope_scaling\":{\"factor\":2.0}", "llama",
		  "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 eps=1e-06 tie=false rope=10000",
			"" },
		{ llama, "\"rope_parameters\":{\"rope_type\":\"llama3\",\"rope_theta\":5e5,\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192}", "llama",
		  "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 eps=1e-06 tie=false "
		  "rope_kind=llama3 rope=500000 rope_factor=8 rope_original=8192 rope_low=1 "
		  "rope_high=4", "" },
		{ llama, "\"rope_scaling\":{\"type\":\"su\",\"short_factor\":[1.0,2],\"long_factor\":[3,4.5],\"original_max_position_embeddings\":4}", "llama",
		  "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 eps=1e-06 tie=false "
		  "rope_kind=longrope rope_original=4 rope_few=[1,2] rope_many=[3,4.5] "
		  "rope=10000 rope_factor=2", "" },
		{ bert, "", "bert", "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 types=2 pad=0 eps=1e-12 dropout=0", "" },
		{ bert, "\"pad_token_id\":null,\"architectures\":[\"BertForMaskedLM\"],\"id2label\":{\"0\":\"a\"}", "bert",
		  "head=mlm layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 types=2 pad=-1 eps=1e-12 "
		  "dropout=0", "" },
		{ bert, "\"architectures\":[\"BertForSequenceClassification\"],\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"},\"num_labels\":3", "bert",
		  "head=cls layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 types=2 pad=0 eps=1e-12 "
		  "classes=3 dropout=0", "" },
		{ bert, "\"classifier_dropout\":0.5,\"problem_type\":\"single_label_classification\"", "bert",
		  "layers=2 width=16 heads=4 hidden=24 context=8 vocab=32 types=2 pad=0 eps=1e-12 dropout=0",
		  "classifier_dropout is 0.5, builtin:bert trains with 0" },
	};
	char args[512];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_published got;
		struct hd_arena arena;
		struct hd_diag diag;
		hd_arena_init(&arena, 0);
		CHECK(read(&arena, cases[i].base, cases[i].more, NULL, &got, &diag) == HD_OK, "%s: %s",
			cases[i].more, diag.text);
		print_args(&got, args, sizeof args);
		CHECK(got.model && !strcmp(got.model, cases[i].model) && !strcmp(args, cases[i].args),
			"%s: builtin:%s %s", cases[i].more, got.model, args);
		CHECK(*cases[i].notes ? strstr(got.notes.at, cases[i].notes) != NULL : !*got.notes.at,
			"%s: notes '%s'", cases[i].more, got.notes.at);
		hd_arena_finish(&arena);
	}
}

static void what_would_compute_otherwise_is_refused_by_name(void **state)
{
	static const struct { const char *base, *more, *asked, *says; } cases[] = {
		{ gpt2, "\"activation_function\":\"quick_gelu\"", NULL, "activation_function is quick_gelu; builtin:gpt computes with gelu_new" },
		{ gpt2, "\"add_cross_attention\":true", NULL, "add_cross_attention is true" },
		{ gpt2, "\"n_ctx\":4", NULL, "n_ctx is 4 and n_positions 8" },
		{ gpt2, "\"n_inner\":\"many\"", NULL, "n_inner" },
		{ gpt2, "\"architectures\":[\"GPT2ForSequenceClassification\"]", NULL, "architectures says GPT2ForSequenceClassification" },
		{ gpt2, "\"pruned_heads\":{\"0\":[1]}", NULL, "pruned_heads is an object; builtin:gpt computes with nothing" },
		{ gpt2, "\"rope_theta\":10000", NULL, "the key rope_theta is not known of a gpt2" },
		{ "\"model_type\":\"gpt2\"", "\"attn_pdrop\":\"\\u001b[2J\"", NULL, "not a share from 0 to 1" },
		{ llama, "\"rope_parameters\":{\"rope_theta\":1e4,\"full_attention\":{}}", NULL, "the key rope_parameters.full_attention" },
		{ llama, "\"rope_parameters\":[1]", NULL, "rope_parameters" },
		{ llama, "\"rope_parameters\":{\"rope_theta\":500000.0},\"rope_theta\":10000.0", NULL, "rope_theta is 10000, but another key of the file says 500000" },
		{ llama, "\"partial_rotary_factor\":0.5", NULL, "partial_rotary_factor is 0.5" },
		{ llama, "\"hidden_act\":\"quick_gelu\"", NULL, "hidden_act is quick_gelu" },
		{ llama, "\"rope_scaling\":{\"rope_type\":\"proportional\"}", NULL, "rope_scaling.rope_type is proportional" },
		{ llama, "\"rope_parameters\":{\"rope_type\":\"yarn\",\"mscale\":0.7}", NULL, "rope_parameters.mscale is 0.7" },
		{ llama, "\"rope_parameters\":{\"rope_type\":\"longrope\",\"short_factor\":\"1\"}", NULL, "short_factor" },
		{ qwen2, "\"use_sliding_window\":true,\"layer_types\":[\"full_attention\",\"sliding_attention\",\"sliding_attention\",\"full_attention\"]", NULL, "every n-th layer" },
		{ qwen2, "\"use_sliding_window\":true,\"layer_types\":[\"chunked_attention\"]", NULL, "layer_types has 'chunked_attention'" },
		{ gemma2, "\"use_bidirectional_attention\":true", NULL, "use_bidirectional_attention is true" },
		{ llama, "\"quantization_config\":{\"bits\":4}", NULL, "quantization_config is an object" },
		{ llama, "\"sliding_window\":4096", NULL, "the key sliding_window is not known of a llama" },
		{ llama, "\"auto_map\":{\"AutoModel\":\"m.M\"}", NULL, "auto_map" },
		{ bert, "\"hidden_act\":\"quick_gelu\"", NULL, "hidden_act is quick_gelu" },
		{ bert, "\"tie_word_embeddings\":false", NULL, "tie_word_embeddings is false" },
		{ "\"model_type\":\"roberta\"", "\"pad_token_id\":null", NULL, "pad_token_id is null" },
		{ "\"model_type\":\"roberta\"", "\"pad_token_id\":-1", NULL, "pad_token_id is '-1'" },
		{ "\"model_type\":\"roberta\"", "\"max_position_embeddings\":3", NULL, "none are left for two tokens" },
		{ "\"model_type\":\"roberta\"", "\"is_decoder\":true", NULL, "is_decoder is true" },
		{ bert, "\"position_embedding_type\":\"relative_key\"", NULL, "position_embedding_type is relative_key" },
		{ bert, "\"is_decoder\":true", NULL, "is_decoder is true" },
		{ bert, "\"architectures\":[\"BertForNextSentencePrediction\"]", NULL, "is a BertForMaskedLM or a BertForSequenceClassification" },
		{ bert, "\"architectures\":[\"BertForSequenceClassification\"],\"id2label\":{\"0\":\"a\"},\"num_labels\":3", NULL, "num_labels is 3, but another" },
		{ bert, "\"problem_type\":\"regression\"", NULL, "problem_type is regression" },
		{ "\"model_type\":\"gemma\"", "\"hidden_size\":16", NULL, "model_type is gemma; this build imports" },
		{ "\"model_type\":\"gemma\"", "\"hidden_size\":16", "llama", "model_type is gemma; this build imports" },
		{ gpt2, "", "llama", "model_type is gpt2, which is builtin:gpt and not builtin:llama" },
		{ "\"hidden_size\":16", "\"query_pre_attn_scalar\":8", "llama", "the key query_pre_attn_scalar is not known of a llama" },
		{ "\"model_type\":3", "", NULL, "model_type" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_published got;
		struct hd_arena arena;
		struct hd_diag diag;
		hd_arena_init(&arena, 0);
		enum hd_err err = read(&arena, cases[i].base, cases[i].more, cases[i].asked, &got, &diag);
		CHECK(err == HD_E_INPUT && strstr(diag.text, cases[i].says), "%s: %d, %s", cases[i].more, err,
			diag.text);
		CHECK(strstr(diag.text, "config.json"), "no place: %s", diag.text);
		hd_arena_finish(&arena);
	}
}

static void another_programs_file_is_not_read_and_that_is_said(void **state)
{
	struct hd_published got;
	struct hd_arena arena;
	struct hd_diag diag;

	(void)state;
	hd_arena_init(&arena, 0);
	CHECK(read(&arena, "\"architecture\":\"resnet18\"", "", "resnet18", &got, &diag) == HD_OK, "%s",
		diag.text);
	assert_true(!got.model && !got.nargs && strstr(got.notes.at, "no model_type"));
	CHECK(read(&arena, "\"architecture\":\"resnet18\"", "", NULL, &got, &diag) == HD_OK, "%s", diag.text);
	assert_true(!got.model && !got.nargs);
	hd_arena_finish(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_gives_its_argument_or_what_the_library_takes),
		cmocka_unit_test(what_would_compute_otherwise_is_refused_by_name),
		cmocka_unit_test(another_programs_file_is_not_read_and_that_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
