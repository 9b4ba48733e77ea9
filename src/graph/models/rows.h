/* rows.h -- what the files of this folder give to the table of models, and what they share.
 *
 * A builder writes a straight list of calls on a *maker*: the first that fails is kept,
 * all later ones do nothing, and finish reports it. */
#ifndef HD_GRAPH_MODELS_ROWS_H
#define HD_GRAPH_MODELS_ROWS_H

#include "graph/model.h"
#include "graph/op.h"

extern const struct hd_model_param hd_mlp_params[], hd_lenet_params[], hd_gpt_params[], hd_resnet_params[],
	hd_resnext32x4_params[], hd_resnext32x8_params[], hd_resnext64x4_params[], hd_wide_params[],
	hd_vgg_params[], hd_inception_params[],
	hd_llama_params[], hd_qwen2_params[], hd_gemma2_params[], hd_bert_params[], hd_recurrent_params[],
	hd_t5_params[], hd_mixtral_params[], hd_qwen2_moe_params[], hd_qwen3_moe_params[],
		hd_neox_params[], hd_vit_params[], hd_gcn_params[], hd_gat_params[], hd_sage_params[];
typedef enum hd_err hd_model_builder(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts,
	struct hd_diag *diag);
hd_model_builder hd_mlp_build, hd_lenet_build, hd_gpt_build, hd_resnet18_build, hd_resnet34_build,
	hd_resnet50_build, hd_resnet101_build, hd_resnet152_build, hd_vgg16_build, hd_inception_build,
	hd_decoder_build, hd_bert_build, hd_lstm_build, hd_gru_build,
	hd_t5_build, hd_neox_build, hd_vit_build, hd_gcn_build, hd_gat_build, hd_sage_build;

/* Words of arguments: true, false; silu, gelu_tanh, gelu, relu, tanh. */
HD_MUST_USE enum hd_err hd_model_truth(const struct hd_model_param *param, const struct hd_model_value *value,
	bool *yes, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_model_act(const struct hd_model_value *value, enum hd_act *act,
	struct hd_diag *diag);

struct hd_maker {
	struct hd_graph *graph;
	struct hd_diag *diag;
	enum hd_err err;                  /* the first failure */
};

#define HD_DIMS(...) \
	(uint8_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]){ __VA_ARGS__ }

uint32_t hd_make_input(struct hd_maker *m, const char *name, enum hd_dtype dtype, uint8_t rank,
	const int64_t *dim);
/* The name is `prefix` + `suffix`. */
uint32_t hd_make_param(struct hd_maker *m, const char *prefix, const char *suffix, enum hd_init_kind init,
	float scale,
	uint8_t rank, const int64_t *dim);
uint32_t hd_make1(struct hd_maker *m, enum hd_op op, uint32_t a, struct hd_attr attr);
uint32_t hd_make2(struct hd_maker *m, enum hd_op op, uint32_t a, uint32_t b, struct hd_attr attr);
uint32_t hd_make3(struct hd_maker *m, enum hd_op op, uint32_t a, uint32_t b, uint32_t c, struct hd_attr attr);
uint32_t hd_make4(struct hd_maker *m, enum hd_op op, uint32_t a, uint32_t b, uint32_t c, uint32_t d,
	struct hd_attr attr);
/* a constant */
uint32_t hd_make_zeros(struct hd_maker *m, enum hd_dtype dtype, uint8_t rank, const int64_t *dim);
/* the same of i32 that are all `id` */
uint32_t hd_make_ids(struct hd_maker *m, int32_t id, uint8_t rank, const int64_t *dim);
/* i32 [n]: first, first + 1, ... */
uint32_t hd_make_counts(struct hd_maker *m, int32_t first, int64_t n);
void hd_make_output(struct hd_maker *m, const char *name, uint32_t value);

/* x[.., in] -> [.., out] with PyTorch's names, storage [out,in] and initial values: prefix.weight,
 * prefix.bias. */
uint32_t hd_make_linear(struct hd_maker *m, const char *prefix, uint32_t x, int64_t in, int64_t out);
/* Images [N,C,H,W]; extents are read from the graph. Parameters have PyTorch's names. */
struct hd_conv { int64_t out; int32_t kernel, stride, pad; };      /* square */
int64_t hd_make_dim(const struct hd_maker *m, uint32_t x, int d);  /* 1 after a failure */
/* prefix.weight, no bias; initially normal with the variance 2 / (kernel^2 out) of He et al., "Delving deep
 * into rectifiers" (2015), counted at the output. */
uint32_t hd_make_conv(struct hd_maker *m, const char *prefix, uint32_t x, struct hd_conv conv);
/* In groups of channels, which divide both extents; the window's elements lie `dilation` apart. */
uint32_t hd_make_conv_by(struct hd_maker *m, const char *prefix, uint32_t x, struct hd_conv conv,
	int32_t groups, int32_t dilation);
/* How a net meets an image: a convolution (of `out` channels, which the net knows), then a pool; pool 0:
 * none. */
struct hd_stem { const char *name; struct hd_conv conv; int32_t pool, stride, pad; };
HD_MUST_USE enum hd_err hd_stem_find(const char *name, const struct hd_stem **stem, struct hd_diag *diag);
/* Normalisation over channels: over the batch with running statistics (groups = 0), or per sample in groups
 * of channels. prefix.weight, prefix.bias; over the batch also the buffers prefix.running_mean,
 * prefix.running_var. */
uint32_t hd_make_norm(struct hd_maker *m, const char *prefix, uint32_t x, int32_t groups);
/* Its weights begin as ones, or zeros. */
uint32_t hd_make_norm_from(struct hd_maker *m, const char *prefix, uint32_t x, int32_t groups,
	enum hd_init_kind gamma);
/* What hd_make_norm takes for the word of an argument, batch or group: 0, or `groups`, which must divide
 * `channels`, called `of`. */
HD_MUST_USE enum hd_err hd_norm_groups(const char *norm, int64_t groups, const char *of, int64_t channels,
	int32_t *out, struct hd_diag *diag);
uint32_t hd_make_relu(struct hd_maker *m, uint32_t x);
uint32_t hd_make_maxpool(struct hd_maker *m, uint32_t x, int32_t kernel, int32_t stride, int32_t pad);
uint32_t hd_make_global_pool(struct hd_maker *m, uint32_t x);      /* mean of each plane: [N,C] */

/* losses.c. Cross-entropy of labels that are there already (i32, -1: none), and the outputs. */
void hd_make_losses(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t labels,
	uint32_t logits, int64_t positions);
/* y, the loss and the outputs; `positions` per row (1: a row is one prediction). Losses of numbers: one. */
void hd_make_ends(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t logits,
	int64_t positions, int64_t classes);
/* The same of classes, and a loss of each row more, f32 [N,1], which weighs as much as the row does; HD_NONE:
 * none. */
void hd_make_ends_with(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t logits,
	int64_t positions, uint32_t more);

#endif
