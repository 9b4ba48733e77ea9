/* op.h -- the op table: what a node may compute.
 *
 * An op is one file, whose include is its row in ops.def: operands, meaning, class, rules, kernels, ONNX,
 * cases for tests (ADR 117). The families below are older: a line here, rules in op.c and op_*.c, a row in
 * each table of kernels. An elementwise activation is no op but a row of acts.def.
 *
 * Classes: dense (work grows faster than data: GEMM, convolution, attention), graph (sparse gathers over
 * vertices), view (no work, another shape of the same bytes), reduction (sums over a dimension), map
 * (elementwise), random (keyed by base/philox.h).
 *
 * Shapes: N the leading extents, flattened to rows; C channels or features; T positions; V vocabulary; HW
 * image extents (layout NCHW). A gradient op computes one gradient, so the gradient of an input (phase I) and
 * that of a weight (phase W) are separate nodes. */
#ifndef HD_GRAPH_OP_H
#define HD_GRAPH_OP_H

#include <stdint.h>

#include "graph/acts.h"
#include "graph/ir.h"
#include "graph/op_batch.h"
#include "graph/op_blocked.h"
#include "graph/op_images.h"
#include "graph/op_sequences.h"
#include "graph/op_tensors.h"

enum hd_op_class { HD_OP_DENSE, HD_OP_GRAPH, HD_OP_VIEW, HD_OP_REDUCTION, HD_OP_MAP, HD_OP_RANDOM };

/*  id               text               in -> out; attributes; meaning */
#define HD_OPS_CORE(X) \
	/* dense */ \
	X(MATMUL,        "matmul",        2, 1, DENSE,     "ta tb",  "a[..,K] b[K,N] -> [..,N]; ta, tb: operand is stored transposed; leading extents of a are flattened") \
	X(CONV2D,        "conv2d",        2, 1, DENSE,     "sh sw ph pw groups dh dw", "x[N,C,H,W] w[K,C/groups,R,S] -> [N,K,P,Q]; window elements lie dh, dw apart; groups, dh, dw: 0 is 1") \
	X(CONV2D_DX,     "conv2d_dx",     3, 1, DENSE,     "sh sw ph pw groups dh dw", "dy w x(shape only) -> dx; forwards: the transposed convolution of dy") \
	X(CONV2D_DW,     "conv2d_dw",     3, 1, DENSE,     "sh sw ph pw groups dh dw", "dy x w(shape only) -> dw")                   \
	X(ATTENTION,     "attention",     1, 2, DENSE,     "heads causal",  "qkv[N,T,3C] -> y[N,T,C], lse[N,heads,T]; scale 1/sqrt(C/heads)") \
	X(ATTENTION_DX,  "attention_dx",  4, 1, DENSE,     "heads causal",  "dy qkv y lse -> dqkv")                                 \
	/* view */ \
	X(RESHAPE,       "reshape",       1, 1, VIEW,      "d0 d1 d2 d3 d4 d5", "same elements, extents d (-k: k x rows, 0: end)")  \
	/* map */ \
	X(ADD,           "add",           2, 1, MAP,       "",       "a + b, f32 or i32; shapes broadcast (op_tensors.h)")           \
	X(SUB,           "sub",           2, 1, MAP,       "",       "a - b, as add")                                                \
	X(MUL,           "mul",           2, 1, MAP,       "",       "a * b, as add")                                                \
	X(SCALE,         "scale",         1, 1, MAP,       "f:by",   "a * by")                                                       \
	X(BIAS,          "bias",          2, 1, MAP,       "axis",   "x + b[C]; axis -1: C is the last extent, 1: C is extent 1 (images)") \
	X(BIAS_ACT,      "bias_act",      2, 2, MAP,       "axis act f:alpha f:beta", "fused: z = x + b (kept), y = act(z)")                        \
	X(ACT,           "act",           1, 1, MAP,       "act f:alpha f:beta",    "elementwise activation, see acts.def")                          \
	X(ACT_DX,        "act_dx",        2, 1, MAP,       "act f:alpha f:beta",    "dy, x (input of the activation) -> dx")                        \
	X(MAXPOOL2D,     "maxpool2d",     1, 1, MAP,       "kh kw sh sw ph pw", "x[N,C,H,W] -> [N,C,P,Q]; first maximum wins, pads never") \
	X(MAXPOOL2D_DX,  "maxpool2d_dx",  2, 1, MAP,       "kh kw sh sw ph pw", "dy x -> dx")                                        \
	X(EMBED,         "embed",         2, 1, MAP,       "",       "ids i32[N..] table[V,C] -> [N..,C]")                           \
	X(EMBED_DW,      "embed_dw",      3, 1, REDUCTION, "",       "dy ids table(shape only) -> dtable, rows added in order of position") \
	/* reductions and norms */ \
	X(SUM_ROWS,      "sum_rows",      1, 1, REDUCTION, "axis keep", "gradient of bias (axis as there): sum over all other extents -> [C]; keep = k: sum over leading extents only, last k stay") \
	X(LAYERNORM,     "layernorm",     3, 2, REDUCTION, "f:eps",  "x[..,C] gamma[C] beta[C] -> y[..,C], stats[..,2] (mean, 1/deviation)") \
	X(ADD_LAYERNORM, "add_layernorm", 4, 3, REDUCTION, "f:eps",  "fused: a b gamma beta -> y = layernorm(s), s = a + b, stats[..,2]") \
	X(LAYERNORM_DX,  "layernorm_dx",  4, 1, REDUCTION, "",       "dy x gamma stats -> dx")                                        \
	X(LAYERNORM_DG,  "layernorm_dg",  3, 1, REDUCTION, "",       "dy x stats -> dgamma[C]")                                       \
	X(SOFTMAX_XENT,  "softmax_xent",  2, 3, REDUCTION, "",       "logits[..,V] labels i32[..] -> loss[..] f32, lse[..] f32, hit[..] f32 (1 where argmax is the label); label -1: masked, loss and hit 0") \
	X(SOFTMAX_XENT_DX, "softmax_xent_dx", 3, 1, MAP,   "",       "logits labels lse -> d(sum of losses)/d logits; masked rows 0") \
	X(MSE,           "mse",           2, 1, REDUCTION, "",       "a[N,C] b[N,C] -> loss[N] = sum over C of (a-b)^2 / C")           \
	X(MSE_DX,        "mse_dx",        2, 1, MAP,       "",       "a b -> d(sum of losses)/da")                                    \
	X(SUM64,         "sum64",         1, 1, REDUCTION, "",       "x f32[..] -> f64 [1] in the order of lanes.h")                  \
	X(COUNT64,       "count64",       1, 1, REDUCTION, "",       "labels i32[..] -> f64 [1], how many are not -1 (for f32 inputs: extent 0)") \
	/* random */ \
	X(DROPOUT,       "dropout",       1, 1, RANDOM,    "f:p from whole", "x / (1-p) where the element is kept, else 0; keyed by its number in x; whole > 0: x is what lies from `from` on along extent 1 of a value of so many, and numbers are those of that value") \
	X(DROPOUT_DX,    "dropout_dx",    1, 1, RANDOM,    "f:p from whole", "dy / (1-p) where kept: same key and numbers as the forward node")

/* All families; a family has a file of its own. Ops that are one file each follow them (ops.def). */
#define HD_OPS(X) \
	HD_OPS_CORE(X) HD_OPS_IMAGES(X) HD_OPS_TENSORS(X) HD_OPS_SEQUENCES(X) \
	HD_OPS_BATCH(X) HD_OPS_BLOCKED(X)

enum hd_op {
#define X(id, text, nin, nout, class, attrs, about) HD_OP_##id,
	HD_OPS(X)
#undef X
#define OP(id, ...) HD_OP_##id,
#include "graph/ops.def"
	HD_NOPS
};

/* Work of one call: floating-point operations and bytes moved if nothing is cached. */
struct hd_cost { double flops, bytes; };

struct hd_autodiff;                       /* autodiff.h */

struct hd_op_row {
	const char *name;
	uint8_t nin, nout, class;
	/* names in order; "f:" marks the next float attribute, others are integers */
	const char *attrs;
	const char *about;
	/* Sets rank, dim and dtype of the nout outputs from the inputs; says which rule is broken. */
	enum hd_err (*shape)(const struct hd_graph *graph, const struct hd_node *node, struct hd_value *out,
		struct hd_diag *diag);
	/* Adds gradient nodes for `node`; NULL: has no gradient (then no path from a parameter may need
	 * one). */
	enum hd_err (*grad)(struct hd_autodiff *ad, uint32_t node, struct hd_diag *diag);
	struct hd_cost (*cost)(const struct hd_graph *graph, const struct hd_node *node, uint64_t rows);
};
extern const struct hd_op_row hd_ops[HD_NOPS];

bool hd_op_parse(const char *text, uint16_t *op);

/* Walks the attribute names of a row: name `i` without its mark; false: there is none. `slot` is the
 * index in i[] or, for a float, in f[]. */
struct hd_attr_name { char at[8]; bool is_float; uint8_t slot; };
bool hd_attr_is_act(const struct hd_attr_name *name);              /* written as a word of acts.def */
bool hd_op_attr(uint16_t op, uint32_t i, struct hd_attr_name *name);
/* Finite, and unnamed attributes are 0. Ranges are checked by the shape rule. */
HD_MUST_USE enum hd_err hd_op_attr_check(uint16_t op, const struct hd_attr *attr, struct hd_diag *diag);

#endif
