#include "graph/published_int.h"

/* Of every type: what concerns the library, its ways of saving memory or of generating text; and what
 * would be another model. */
const struct hd_published_key hd_published_common[] = {
	{ .name = "is_encoder_decoder", .take = hd_take_must, .what = "false" },
	{ .name = "add_cross_attention", .take = hd_take_must, .what = "false" },
	{ .name = "pruned_heads", .take = hd_take_must, .what = "" },
	{ .name = "quantization_config", .take = hd_take_must, .what = "" },
	{ .name = "compression_config", .take = hd_take_must, .what = "" },
	{ .name = "auto_map", .take = hd_take_must, .what = "" },
	{ .name = "problem_type", .take = hd_take_must, .what = "single_label_classification" },
#define ANY(key) { .name = key, .take = hd_take_any }
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

/* Of models that came with one activation each and may have any now; the usual names first. */
#define ALL_ACTS "act:gelu_new=gelu_tanh|gelu_pytorch_tanh=gelu_tanh|gelu_fast=gelu_tanh|" \
	"gelu_accurate=gelu_tanh|gelu=gelu|gelu_python=gelu|relu=relu|silu=silu|swish=silu|tanh=tanh"

static const struct hd_published_key of_gpt2[] = {
	{ .name = "architectures", .take = hd_take_architectures },
	{ .name = "n_layer", .take = hd_take_arg, .what = "layers", .standard = "12" },
	{ .name = "n_embd", .take = hd_take_arg, .what = "width", .standard = "768" },
	{ .name = "n_head", .take = hd_take_arg, .what = "heads", .standard = "12" },
	{ .name = "n_positions", .take = hd_take_arg, .what = "context", .standard = "1024" },
	{ .name = "n_ctx", .take = hd_take_same, .what = "n_positions" },
	{ .name = "n_inner", .take = hd_take_inner, .what = "hidden" },
	{ .name = "vocab_size", .take = hd_take_arg, .what = "vocab", .standard = "50257" },
	{ .name = "layer_norm_epsilon", .take = hd_take_arg, .what = "eps", .standard = "1e-05" },
	{ .name = "resid_pdrop", .take = hd_take_arg, .what = "dropout", .standard = "0.1" },
	{ .name = "embd_pdrop", .take = hd_take_like, .what = "resid_pdrop", .standard = "0.1" },
	{ .name = "attn_pdrop", .take = hd_take_note, .what = "0", .standard = "0.1" },
	{ .name = "activation_function", .take = hd_take_word, .what = ALL_ACTS },
	{ .name = "scale_attn_weights", .take = hd_take_arg, .what = "scale" },
	{ .name = "scale_attn_by_inverse_layer_idx", .take = hd_take_arg, .what = "scale_by_layer" },
	{ .name = "tie_word_embeddings", .take = hd_take_arg, .what = "tie" },
	ANY("reorder_and_upcast_attn"), ANY("summary_type"), ANY("summary_use_proj"),
	ANY("summary_activation"), ANY("summary_proj_to_labels"),
	ANY("summary_first_dropout"), ANY("predict_special_tokens"), ANY("pad_token_id"), ANY("is_decoder"),
	ANY("id2label"), ANY("num_labels"),
	ANY("_num_labels"),
	{ 0 },
};
static const struct hd_published_head heads_of_gpt2[] = { { "GPT2LMHeadModel", NULL }, { "GPT2Model", NULL },
	{ "GPT2DoubleHeadsModel", NULL }, { 0 } };

/* Positions: version 4 writes rope_theta and rope_scaling, version 5 rope_parameters. */
#define ROPE_KINDS "rope_kind:default=plain|linear=linear|dynamic=dynamic|yarn=yarn|llama3=llama3|" \
	"longrope=longrope|su=longrope"
/* part: what becomes of the share of channels that turn, a function and its word */
#define ROPE_TABLE(table, part_take, part_what) \
	{ .name = table, .take = hd_take_table }, \
	{ .name = "rope_type", .take = hd_take_word, .what = ROPE_KINDS, .in = table }, \
	{ .name = "type", .take = hd_take_word, .what = ROPE_KINDS, .in = table }, \
	{ .name = "rope_theta", .take = hd_take_arg, .what = "rope", .in = table }, \
	{ .name = "partial_rotary_factor", .take = part_take, .what = part_what, .in = table }, \
	{ .name = "factor", .take = hd_take_arg, .what = "rope_factor", .in = table }, \
	{ .name = "original_max_position_embeddings", .take = hd_take_arg, .what = "rope_original", .in = table }, \
	{ .name = "attention_factor", .take = hd_take_arg, .what = "rope_scale", .in = table }, \
	{ .name = "low_freq_factor", .take = hd_take_arg, .what = "rope_low", .in = table }, \
	{ .name = "high_freq_factor", .take = hd_take_arg, .what = "rope_high", .in = table }, \
	{ .name = "beta_slow", .take = hd_take_arg, .what = "rope_low", .in = table }, \
	{ .name = "beta_fast", .take = hd_take_arg, .what = "rope_high", .in = table }, \
	{ .name = "truncate", .take = hd_take_arg, .what = "rope_whole", .in = table }, \
	{ .name = "short_factor", .take = hd_take_reals, .what = "rope_few", .in = table }, \
	{ .name = "long_factor", .take = hd_take_reals, .what = "rope_many", .in = table }, \
	{ .name = "mscale", .take = hd_take_must, .what = "", .in = table }, \
	{ .name = "mscale_all_dim", .take = hd_take_must, .what = "", .in = table }
#define ROPE_KEYS(theta, part_take, part_what) \
	ROPE_TABLE("rope_parameters", part_take, part_what), ROPE_TABLE("rope_scaling", part_take, \
		part_what), \
	{ .name = "rope_theta", .take = hd_take_arg, .what = "rope", .standard = theta }, \
	{ .name = "partial_rotary_factor", .take = part_take, .what = part_what }, \
	{ .name = " positions", .take = hd_take_rope }
#define ACTS "act:silu=silu|swish=silu|gelu_pytorch_tanh=gelu_tanh|gelu_new=gelu_tanh|gelu=gelu|relu=relu"
#define DECODER_KEYS(layers_, width_, heads_, hidden_, context_, vocab_) \
	{ .name = "architectures", .take = hd_take_architectures }, \
	{ .name = "num_hidden_layers", .take = hd_take_arg, .what = "layers", .standard = layers_ }, \
	{ .name = "hidden_size", .take = hd_take_arg, .what = "width", .standard = width_ }, \
	{ .name = "num_attention_heads", .take = hd_take_arg, .what = "heads", .standard = heads_ }, \
	{ .name = "intermediate_size", .take = hd_take_arg, .what = "hidden", .standard = hidden_ }, \
	{ .name = "max_position_embeddings", .take = hd_take_arg, .what = "context", .standard = context_ }, \
	{ .name = "vocab_size", .take = hd_take_arg, .what = "vocab", .standard = vocab_ }, \
	{ .name = "attention_dropout", .take = hd_take_note, .what = "0", .standard = "0" }, \
	ANY("pretraining_tp"), ANY("pad_token_id"), ANY("is_decoder"), ANY("id2label"), ANY("num_labels"), \
	ANY("_num_labels")
#define KV_HEADS(n) { .name = "num_key_value_heads", .take = hd_take_arg, .what = "kv_heads", .standard = n }
#define EPS(x) { .name = "rms_norm_eps", .take = hd_take_arg, .what = "eps", .standard = x }
#define TIE(yes) { .name = "tie_word_embeddings", .take = hd_take_arg, .what = "tie", .standard = yes }
#define BIASES { .name = "attention_bias", .take = hd_take_word, .what = "bias:false=none|true=attention" }

static const struct hd_published_key of_llama[] = {
	DECODER_KEYS("32", "4096", "32", "11008", "2048", "32000"), KV_HEADS(NULL), EPS("1e-06"),
		TIE("false"),
	{ .name = "head_dim", .take = hd_take_head_dim, .what = "head_dim" },
	{ .name = "hidden_act", .take = hd_take_word, .what = ACTS },
	{ .name = "mlp_bias", .take = hd_take_arg, .what = "mlp_bias" },
	BIASES, ROPE_KEYS("10000", hd_take_must, "1"),
	{ 0 },
};
static const struct hd_published_head heads_of_llama[] = { { "LlamaForCausalLM", NULL },
	{ "LLaMAForCausalLM", NULL },
	{ "LlamaModel", NULL }, { 0 } };

static const struct hd_published_key of_mistral[] = {
	DECODER_KEYS("32", "4096", "32", "14336", "131072", "32000"), KV_HEADS("8"), EPS("1e-06"),
		TIE("false"),
	{ .name = "head_dim", .take = hd_take_head_dim, .what = "head_dim" },
	{ .name = "hidden_act", .take = hd_take_word, .what = ACTS },
	{ .name = "sliding_window", .take = hd_take_arg, .what = "window", .standard = "4096", .null = "0" },
	ROPE_KEYS("10000", hd_take_must, "1"),
	{ 0 },
};
static const struct hd_published_head heads_of_mistral[] = { { "MistralForCausalLM", NULL },
	{ "MistralModel", NULL }, { 0 } };

/* Windows: layer_types counts more than max_window_layers, which it is made of. */
#define QWEN_WINDOWS \
	ANY("use_sliding_window"), \
	{ .name = "sliding_window", .take = hd_take_window, .what = "window", .standard = "4096", .null = "0" }, \
	{ .name = "layer_types", .take = hd_take_layers }, \
	{ .name = "max_window_layers", .take = hd_take_window_from, .what = "window_from", .standard = "28" }
static const struct hd_published_key of_qwen2[] = {
	DECODER_KEYS("32", "4096", "32", "22016", "32768", "151936"), KV_HEADS("32"), EPS("1e-06"),
		TIE("false"),
	{ .name = "hidden_act", .take = hd_take_word, .what = ACTS },
	QWEN_WINDOWS, ROPE_KEYS("10000", hd_take_must, "1"),
	{ 0 },
};
static const struct hd_published_head heads_of_qwen2[] = { { "Qwen2ForCausalLM", NULL }, { "Qwen2Model",
	NULL },
	{ 0 } };

static const struct hd_published_key of_qwen3[] = {
	DECODER_KEYS("32", "4096", "32", "22016", "32768", "151936"), KV_HEADS("32"), EPS("1e-06"),
		TIE("false"),
	{ .name = "head_dim", .take = hd_take_arg, .what = "head_dim", .standard = "128" },
	{ .name = "hidden_act", .take = hd_take_word, .what = ACTS },
	BIASES, QWEN_WINDOWS, ROPE_KEYS("10000", hd_take_must, "1"),
	{ 0 },
};
static const struct hd_published_head heads_of_qwen3[] = { { "Qwen3ForCausalLM", NULL }, { "Qwen3Model",
	NULL },
	{ 0 } };

/* Experts. Balance counts where the file says that the loss has it. */
#define EXPERT_KEYS(chosen_) \
	{ .name = "num_experts_per_tok", .take = hd_take_arg, .what = "chosen", .standard = chosen_ }, \
	ANY("output_router_logits"), \
	{ .name = "router_aux_loss_coef", .take = hd_take_balance, .what = "balance", .standard = "0.001" }
#define SPARSE_KEYS(hidden_, experts_key, experts_) \
	{ .name = experts_key, .take = hd_take_arg, .what = "experts", .standard = experts_ }, \
	{ .name = "moe_intermediate_size", .take = hd_take_arg, .what = "expert_hidden", .standard = hidden_ }, \
	{ .name = "decoder_sparse_step", .take = hd_take_arg, .what = "sparse_every", .standard = "1" }, \
	{ .name = "mlp_only_layers", .take = hd_take_reals, .what = "dense" }, \
	{ .name = "norm_topk_prob", .take = hd_take_arg, .what = "renormalize", .standard = "false" }, \
	{ .name = "use_sliding_window", .take = hd_take_must, .what = "false" }, \
	ANY("sliding_window"), ANY("max_window_layers"), \
	{ .name = "layer_types", .take = hd_take_layers }
static const struct hd_published_key of_mixtral[] = {
	DECODER_KEYS("32", "4096", "32", "14336", "131072", "32000"), KV_HEADS("8"), EPS("1e-05"),
		TIE("false"), EXPERT_KEYS("2"),
	{ .name = "num_local_experts", .take = hd_take_arg, .what = "experts", .standard = "8" },
	{ .name = "router_jitter_noise", .take = hd_take_note, .what = "0", .standard = "0" },
	{ .name = "head_dim", .take = hd_take_head_dim, .what = "head_dim" },
	{ .name = "hidden_act", .take = hd_take_word, .what = ACTS },
	{ .name = "sliding_window", .take = hd_take_arg, .what = "window", .null = "0" },
	ROPE_KEYS("1000000", hd_take_must, "1"),
	{ 0 },
};
static const struct hd_published_head heads_of_mixtral[] = { { "MixtralForCausalLM", NULL },
	{ "MixtralModel", NULL }, { 0 } };

static const struct hd_published_key of_qwen2_moe[] = {
	DECODER_KEYS("24", "2048", "16", "5632", "32768", "151936"), KV_HEADS("16"), EPS("1e-06"),
		TIE("false"), EXPERT_KEYS("4"), SPARSE_KEYS("1408", "num_experts", "60"),
	{ .name = "shared_expert_intermediate_size", .take = hd_take_arg, .what = "shared_hidden",
	  .standard = "5632" },
	{ .name = "hidden_act", .take = hd_take_word, .what = ACTS },
	{ .name = "qkv_bias", .take = hd_take_word, .what = "bias:true=qkv|false=none", .standard = "true" },
	ROPE_KEYS("10000", hd_take_must, "1"),
	{ 0 },
};
static const struct hd_published_head heads_of_qwen2_moe[] = { { "Qwen2MoeForCausalLM", NULL },
	{ "Qwen2MoeModel", NULL }, { 0 } };

static const struct hd_published_key of_qwen3_moe[] = {
	DECODER_KEYS("24", "2048", "32", "6144", "32768", "151936"), KV_HEADS("4"), EPS("1e-06"),
		TIE("false"), EXPERT_KEYS("8"),
	/* what the library writes; files of before have the other */
	{ .name = "num_local_experts", .take = hd_take_arg, .what = "experts" },
	SPARSE_KEYS("768", "num_experts", NULL),
	{ .name = "head_dim", .take = hd_take_head_dim, .what = "head_dim" },
	{ .name = "hidden_act", .take = hd_take_word, .what = ACTS },
	BIASES, ROPE_KEYS("10000", hd_take_must, "1"),
	{ 0 },
};
static const struct hd_published_head heads_of_qwen3_moe[] = { { "Qwen3MoeForCausalLM", NULL },
	{ "Qwen3MoeModel", NULL }, { 0 } };

static const struct hd_published_key of_gemma2[] = {
	DECODER_KEYS("26", "2304", "8", "9216", "8192", "256000"), KV_HEADS("4"), EPS("1e-06"), TIE("true"),
	{ .name = "head_dim", .take = hd_take_arg, .what = "head_dim", .standard = "256" },
	{ .name = "hidden_activation", .take = hd_take_word, .what = ACTS, .standard = "gelu_pytorch_tanh" },
	ANY("hidden_act"),
		               /* of files before hidden_activation; the library does not read it */
	{ .name = "query_pre_attn_scalar", .take = hd_take_arg, .what = "query", .standard = "256" },
	{ .name = "attn_logit_softcapping", .take = hd_take_arg, .what = "cap", .standard = "50", .null = "0" },
	{ .name = "final_logit_softcapping", .take = hd_take_arg, .what = "final_cap", .standard = "30", .null = "0" },
	{ .name = "sliding_window", .take = hd_take_arg, .what = "window", .standard = "4096", .null = "0" },
	{ .name = "layer_types", .take = hd_take_layers },
	{ .name = "use_bidirectional_attention", .take = hd_take_must, .what = "false" },
	ANY("cache_implementation"),
	BIASES, ROPE_KEYS("10000", hd_take_must, "1"),
	{ 0 },
};
static const struct hd_published_head heads_of_gemma2[] = { { "Gemma2ForCausalLM", NULL },
	{ "Gemma2Model", NULL }, { 0 } };

static const struct hd_published_key of_phi3[] = {
	DECODER_KEYS("32", "3072", "32", "8192", "4096", "32064"), KV_HEADS(NULL), EPS("1e-05"), TIE("false"),
	{ .name = "hidden_act", .take = hd_take_word, .what = ACTS },
	{ .name = "sliding_window", .take = hd_take_arg, .what = "window", .null = "0" },
	{ .name = "original_max_position_embeddings", .take = hd_take_arg, .what = "rope_original",
	  .standard = "4096" },
	{ .name = "resid_pdrop", .take = hd_take_note, .what = "0", .standard = "0" },
	{ .name = "embd_pdrop", .take = hd_take_note, .what = "0", .standard = "0" },
	{ .name = "attention_bias", .take = hd_take_must, .what = "false" },
	ROPE_KEYS("10000", hd_take_arg, "rope_part"),
	{ 0 },
};
static const struct hd_published_head heads_of_phi3[] = { { "Phi3ForCausalLM", NULL }, { "Phi3Model", NULL },
	{ 0 } };

/* Version 4 writes rotary_emb_base and rotary_pct. */
static const struct hd_published_key of_neox[] = {
	DECODER_KEYS("44", "6144", "64", "24576", "2048", "50432"), TIE("false"),
	{ .name = "layer_norm_eps", .take = hd_take_arg, .what = "eps", .standard = "1e-05" },
	{ .name = "hidden_act", .take = hd_take_word, .what = ACTS, .standard = "gelu" },
	{ .name = "hidden_dropout", .take = hd_take_arg, .what = "dropout", .standard = "0" },
	{ .name = "use_parallel_residual", .take = hd_take_arg, .what = "parallel", .standard = "true" },
	{ .name = "attention_bias", .take = hd_take_arg, .what = "bias", .standard = "true" },
	ROPE_TABLE("rope_parameters", hd_take_arg, "rope_part"), ROPE_TABLE("rope_scaling", hd_take_arg,
		"rope_part"),
	{ .name = "rotary_emb_base", .take = hd_take_arg, .what = "rope", .standard = "10000" },
	{ .name = "rotary_pct", .take = hd_take_arg, .what = "rope_part", .standard = "0.25" },
	{ .name = "rope_theta", .take = hd_take_arg, .what = "rope" },
	{ .name = "partial_rotary_factor", .take = hd_take_arg, .what = "rope_part" },
	{ .name = " positions", .take = hd_take_rope },
	ANY("classifier_dropout"),
	{ 0 },
};
static const struct hd_published_head heads_of_neox[] = { { "GPTNeoXForCausalLM", NULL },
	{ "GPTNeoXModel", NULL }, { 0 } };

/* Encoders, of the size of a "base" model where a file does not say it. */
#define ENCODER_KEYS \
	{ .name = "architectures", .take = hd_take_architectures }, \
	{ .name = "num_hidden_layers", .take = hd_take_arg, .what = "layers", .standard = "12" }, \
	{ .name = "hidden_size", .take = hd_take_arg, .what = "width", .standard = "768" }, \
	{ .name = "num_attention_heads", .take = hd_take_arg, .what = "heads", .standard = "12" }, \
	{ .name = "intermediate_size", .take = hd_take_arg, .what = "hidden", .standard = "3072" }
#define CLASS_AND_DROPOUT_KEYS \
	{ .name = "id2label", .take = hd_take_classes, .what = "classes" }, \
	{ .name = "num_labels", .take = hd_take_classes, .what = "classes" }, \
	{ .name = "_num_labels", .take = hd_take_classes, .what = "classes" }, \
	{ .name = "hidden_dropout_prob", .take = hd_take_arg, .what = "dropout", .standard = "0.1" }, \
	{ .name = "classifier_dropout", .take = hd_take_like, .what = "hidden_dropout_prob" }, \
	{ .name = "attention_probs_dropout_prob", .take = hd_take_note, .what = "0", .standard = "0.1" }
#define TEXT_ENCODER_KEYS \
	{ .name = "position_embedding_type", .take = hd_take_must, .what = "absolute" }, \
	{ .name = "is_decoder", .take = hd_take_must, .what = "false" }, \
	{ .name = "tie_word_embeddings", .take = hd_take_tied_head, .what = "true" }
static const struct hd_published_key of_bert[] = {
	ENCODER_KEYS,
	{ .name = "max_position_embeddings", .take = hd_take_arg, .what = "context", .standard = "512" },
	{ .name = "vocab_size", .take = hd_take_arg, .what = "vocab", .standard = "30522" },
	{ .name = "type_vocab_size", .take = hd_take_arg, .what = "types", .standard = "2" },
	{ .name = "pad_token_id", .take = hd_take_arg, .what = "pad", .standard = "0", .null = "-1" },
	{ .name = "layer_norm_eps", .take = hd_take_arg, .what = "eps", .standard = "1e-12" },
	CLASS_AND_DROPOUT_KEYS,
	{ .name = "hidden_act", .take = hd_take_word, .what = ALL_ACTS },
	TEXT_ENCODER_KEYS,
	ANY("directionality"), ANY("pooler_fc_size"),
	ANY("pooler_num_attention_heads"), ANY("pooler_num_fc_layers"),
	ANY("pooler_size_per_head"), ANY("pooler_type"),
	{ 0 },
};
static const struct hd_published_head heads_of_bert[] = { { "BertForMaskedLM", "mlm" },
	{ "BertForSequenceClassification", "cls" }, { "BertForPreTraining", "mlm" }, { 0 } };

/* Positions: max_position_embeddings counts the rows of pads, too. */
static const struct hd_published_key of_roberta[] = {
	ENCODER_KEYS,
	{ .name = "pad_token_id", .take = hd_take_pad, .what = "pad", .standard = "1" },
	{ .name = "max_position_embeddings", .take = hd_take_places, .what = "positions", .standard = "512" },
	{ .name = "vocab_size", .take = hd_take_arg, .what = "vocab", .standard = "50265" },
	{ .name = "type_vocab_size", .take = hd_take_arg, .what = "types", .standard = "2" },
	{ .name = "layer_norm_eps", .take = hd_take_arg, .what = "eps", .standard = "1e-12" },
	CLASS_AND_DROPOUT_KEYS,
	{ .name = "hidden_act", .take = hd_take_word, .what = ALL_ACTS, .standard = "gelu" },
	TEXT_ENCODER_KEYS,
	{ 0 },
};
static const struct hd_published_head heads_of_roberta[] = { { "RobertaForMaskedLM", "mlm" },
	{ "RobertaForSequenceClassification", "cls" }, { 0 } };

static const struct hd_published_key of_vit[] = {
	ENCODER_KEYS,
	{ .name = "num_channels", .take = hd_take_arg, .what = "channels", .standard = "3" },
	{ .name = "image_size", .take = hd_take_arg, .what = "image", .standard = "224" },
	{ .name = "patch_size", .take = hd_take_arg, .what = "patch", .standard = "16" },
	{ .name = "id2label", .take = hd_take_labels, .what = "classes", .standard = "2" },
	{ .name = "num_labels", .take = hd_take_labels, .what = "classes" },
	{ .name = "layer_norm_eps", .take = hd_take_arg, .what = "eps", .standard = "1e-12" },
	{ .name = "hidden_dropout_prob", .take = hd_take_arg, .what = "dropout", .standard = "0" },
	{ .name = "attention_probs_dropout_prob", .take = hd_take_note, .what = "0", .standard = "0" },
	{ .name = "hidden_act", .take = hd_take_word, .what = ACTS, .standard = "gelu" },
	{ .name = "qkv_bias", .take = hd_take_arg, .what = "bias", .standard = "true" },
	ANY("encoder_stride"), ANY("pooler_output_size"), ANY("pooler_act"), ANY("pad_token_id"),
		ANY("is_decoder"),
	ANY("tie_word_embeddings"),
	{ 0 },
};
static const struct hd_published_head heads_of_vit[] = { { "ViTForImageClassification", NULL }, { 0 } };

/* How many tokens it reads is the job's, n_positions of older files but a wish. That the head is the token
 * table says also that what it reads is scaled; version 5 says that apart. */
#define FFS "ff:relu=relu|gelu=gelu|gelu_new=gelu_tanh|silu=silu|gated-gelu=gated-gelu_tanh|" \
	"gated-gelu_new=gated-gelu_tanh|gated-relu=gated-relu|gated-silu=gated-silu"
static const struct hd_published_key of_t5[] = {
	{ .name = "architectures", .take = hd_take_architectures },
	{ .name = "is_encoder_decoder", .take = hd_take_must, .what = "true" },
	{ .name = "num_layers", .take = hd_take_arg, .what = "layers", .standard = "6" },
	{ .name = "num_decoder_layers", .take = hd_take_arg, .what = "decoder_layers", .null = "0" },
	{ .name = "d_model", .take = hd_take_arg, .what = "width", .standard = "512" },
	{ .name = "num_heads", .take = hd_take_arg, .what = "heads", .standard = "8" },
	{ .name = "d_kv", .take = hd_take_arg, .what = "head_dim", .standard = "64" },
	{ .name = "d_ff", .take = hd_take_arg, .what = "hidden", .standard = "2048" },
	{ .name = "n_positions", .take = hd_take_arg, .what = "context", .standard = "512" },
	{ .name = "vocab_size", .take = hd_take_arg, .what = "vocab", .standard = "32128" },
	{ .name = "relative_attention_num_buckets", .take = hd_take_arg, .what = "buckets", .standard = "32" },
	{ .name = "relative_attention_max_distance", .take = hd_take_arg, .what = "distance",
	  .standard = "128" },
	{ .name = "layer_norm_epsilon", .take = hd_take_arg, .what = "eps", .standard = "1e-06" },
	{ .name = "feed_forward_proj", .take = hd_take_word, .what = FFS, .standard = "relu" },
	{ .name = "dense_act_fn", .take = hd_take_act_of, .what = "feed_forward_proj" },
	{ .name = "is_gated_act", .take = hd_take_act_of, .what = "feed_forward_proj" },
	{ .name = "tie_word_embeddings", .take = hd_take_arg, .what = "tie", .standard = "true" },
	{ .name = "scale_decoder_outputs", .take = hd_take_arg, .what = "scale" },
	{ .name = "decoder_start_token_id", .take = hd_take_arg, .what = "start", .standard = "0" },
	{ .name = "pad_token_id", .take = hd_take_arg, .what = "pad", .standard = "0" },
	{ .name = "dropout_rate", .take = hd_take_note, .what = "0", .standard = "0.1" },
	{ .name = "is_decoder", .take = hd_take_must, .what = "false" },
	ANY("initializer_factor"), ANY("classifier_dropout"), ANY("id2label"), ANY("num_labels"),
	{ 0 },
};
static const struct hd_published_head heads_of_t5[] = { { "T5ForConditionalGeneration", NULL },
	{ "T5WithLMHeadModel", NULL }, { 0 } };

#undef ANY

const struct hd_published_type hd_published_types[] = {
	{ "bert", "bert", of_bert, heads_of_bert },
	{ "gemma2", "gemma2", of_gemma2, heads_of_gemma2 },
	{ "gpt2", "gpt", of_gpt2, heads_of_gpt2 },
	{ "gpt_neox", "neox", of_neox, heads_of_neox },
	{ "llama", "llama", of_llama, heads_of_llama },
	{ "mistral", "mistral", of_mistral, heads_of_mistral },
	{ "mixtral", "mixtral", of_mixtral, heads_of_mixtral },
	{ "phi3", "phi3", of_phi3, heads_of_phi3 },
	{ "qwen2", "qwen2", of_qwen2, heads_of_qwen2 },
	{ "qwen2_moe", "qwen2-moe", of_qwen2_moe, heads_of_qwen2_moe },
	{ "qwen3", "qwen3", of_qwen3, heads_of_qwen3 },
	{ "qwen3_moe", "qwen3-moe", of_qwen3_moe, heads_of_qwen3_moe },
	{ "roberta", "roberta", of_roberta, heads_of_roberta },
	{ "t5", "t5", of_t5, heads_of_t5 },
	{ "vit", "vit", of_vit, heads_of_vit },
	{ 0 },
};
