/* rows.h -- what the files of this folder give to the table of models, and what they share.
 *
 * A builder writes a straight list of calls on a *maker*: the first that fails is kept,
 * all later ones do nothing, and finish reports it. */
#ifndef HD_GRAPH_MODELS_ROWS_H
#define HD_GRAPH_MODELS_ROWS_H

#include "graph/model.h"
#include "graph/op.h"

extern const struct hd_model_param hd_mlp_params[], hd_lenet_params[], hd_gpt_params[];
typedef enum hd_err hd_model_builder(struct hd_graph *graph, const struct hd_model_value *value, const struct hd_model_opts *opts,
	struct hd_diag *diag);
hd_model_builder hd_mlp_build, hd_lenet_build, hd_gpt_build;

struct hd_maker {
	struct hd_graph *graph;
	struct hd_diag *diag;
	enum hd_err err;                  /* the first failure */
};

#define HD_DIMS(...) (uint8_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]){ __VA_ARGS__ }

uint32_t hd_make_input(struct hd_maker *m, const char *name, enum hd_dtype dtype, uint8_t rank, const int64_t *dim);
/* The name is `prefix` + `suffix`. */
uint32_t hd_make_param(struct hd_maker *m, const char *prefix, const char *suffix, enum hd_init_kind init, float scale,
	uint8_t rank, const int64_t *dim);
uint32_t hd_make1(struct hd_maker *m, enum hd_op op, uint32_t a, struct hd_attr attr);
uint32_t hd_make2(struct hd_maker *m, enum hd_op op, uint32_t a, uint32_t b, struct hd_attr attr);
uint32_t hd_make3(struct hd_maker *m, enum hd_op op, uint32_t a, uint32_t b, uint32_t c, struct hd_attr attr);
void hd_make_output(struct hd_maker *m, const char *name, uint32_t value);

/* x[.., in] -> [.., out] with PyTorch's names, storage [out,in] and initial values: prefix.weight, prefix.bias. */
uint32_t hd_make_linear(struct hd_maker *m, const char *prefix, uint32_t x, int64_t in, int64_t out);
/* y, the losses and the outputs; `positions` per row (1: a row is one prediction). */
void hd_make_ends(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t logits, int64_t positions, int64_t classes);

#endif
