/* ptdp.h -- formulas for what it takes to train a transformer that is split by tensor, pipeline and data
 * parallelism.
 *
 * The published figures of PTD-P (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU
 * Clusters Using Megatron-LM", SC 2021; activations: Korthikanti et al., "Reducing Activation Recomputation
 * in Large Transformer Models", arXiv 2205.05198). ptdp_cost.h turns them into time, ptdp_plan.h chooses by
 * them.
 *
 * Letters: l layers, H hidden, a heads, Y vocabulary, q sequence; t tensor, p pipeline, d data width, n = t p
 * d devices; B samples of a step, b of a virtual node (the papers' micro-batch), m = B / (b d) virtual nodes
 * a pipeline, v model chunks a rank. The feed-forward is 4 H wide.
 *
 * 1. Counts are doubles: 1e24 operations are no integer of 64 bits. They are written as in the papers, so
 *    that every machine gives the same bits.
 * 2. An operation is a multiplication or an addition. Only products of matrices count.
 *
 * Pure; nothing is allocated. */
#ifndef HD_PLANNER_PTDP_H
#define HD_PLANNER_PTDP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum {
	HD_PTDP_HIDDEN = 1 << 20, HD_PTDP_HEADS = 1 << 14, HD_PTDP_VOCAB = 1 << 24, HD_PTDP_SEQ = 1 << 20,
	/* together some 20 million splits, seconds */
	HD_PTDP_LAYERS = 1024, HD_PTDP_BATCH = 1 << 16, HD_PTDP_DEVICES = 1 << 16,
};

struct hd_ptdp_model { uint32_t layers, hidden, heads, vocab, seq; };

/* What of the forward pass is done again in the backward pass.
 *        id         name                                                                       */
#define HD_PTDP_RECOMPUTES(X)                                                                     \
	X(NONE,      "none")         /* nothing: all activations are kept */                       \
	X(SELECTIVE, "selective")    /* the attention between Q, K, V and its output projection */ \
	X(FULL,      "full")         /* the layer: only its input is kept */

enum hd_ptdp_recompute {
#define X(id, name) HD_PTDP_##id,
	HD_PTDP_RECOMPUTES(X)
#undef X
	HD_NPTDP_RECOMPUTES
};
extern const char *const hd_ptdp_recompute_names[HD_NPTDP_RECOMPUTES];

/* Bytes per parameter: its weight, its gradient (one for each partial sum held at once), master copy and
 * slots.
 *        id            name             weight grad state  activation */
#define HD_PTDP_STATES(X) \
	X(F32_ADAM,     "f32 adam",     4,     4,   8,     4)                                                       \
	X(MIXED_ADAM,   "mixed adam",   2,     4,   12,    2)     /* 18, or 6 + 12/d with a sharded optimizer */    \
	X(F32_MOMENTUM, "f32 momentum", 4,     4,   4,     4)

enum hd_ptdp_state {
#define X(id, name, weight, grad, state, activation) HD_PTDP_##id,
	HD_PTDP_STATES(X)
#undef X
	HD_NPTDP_STATES
};
/* shards 1: not sharded, else over that many replicas; partials: gradients held at once. */
double hd_ptdp_state_bytes(enum hd_ptdp_state state, uint32_t partials, uint32_t shards);

/* P = 12 l H^2 (1 + 13/(12 H) + (Y + q)/(12 l H)). */
double hd_ptdp_params(const struct hd_ptdp_model *model);
/* Of one layer: 12 H^2 (1 + 13/(12 H)). */
double hd_ptdp_layer_params(const struct hd_ptdp_model *model);

/* Of a step of B samples: 96 B q l H^2 (1 + q/(6 H) + Y/(16 l H)) with full recomputation, else
 * 72 B q l H^2 (1 + q/(6 H) + Y/(12 l H)). Selective counts as none, as in the papers. */
double hd_ptdp_flop(const struct hd_ptdp_model *model, double batch, enum hd_ptdp_recompute recompute);
/* Days for `tokens` at `flop_per_s` of each of n devices: 8 N P / (n X). For tests. */
double hd_ptdp_days(double tokens, double params, double ndevices, double flop_per_s);

/* Virtual nodes' times that a step lasts: m + (p - 1)/v; and its share lost, (p - 1)/(v m). */
double hd_ptdp_slots(double m, uint32_t p, uint32_t v);
double hd_ptdp_bubble(double m, uint32_t p, uint32_t v);

/* Elements that a device sends in a step. */
struct hd_ptdp_volume {
	/* l/p m 8 b q H (t-1)/t: two sums a layer in each direction */
	double tensor;
	/* over one boundary and one way: v m b q H, or 1/t of it if scattered */
	double pipeline;
	double data;                              /* 2 (d-1)/d P/(t p) */
};
struct hd_ptdp_split { uint32_t t, p, d, v, b; enum hd_ptdp_recompute recompute; };
struct hd_ptdp_volume hd_ptdp_volume(const struct hd_ptdp_model *model, const struct hd_ptdp_split *split,
	double m, bool scatter);

/* Bytes of activations that one layer keeps of one virtual node, `element` bytes each but for the masks of
 * dropout:
 *   none       q b H (34 + 5 a q/H);  t > 1: q b H (10 + 24/t + 5 a q/(H t));  `sequence`: the first by t
 *   selective  q b H 34;              t > 1: q b H (10 + 24/t);                `sequence`: q b H 34/t
 *   full       2 q b H;               `sequence`: by t
 * with element 2. Masks are 1 byte: of 34 they are 2, of 10 too, of 5 it is 1. */
double hd_ptdp_activation_bytes(const struct hd_ptdp_model *model, uint32_t b, uint32_t t, bool sequence,
	enum hd_ptdp_recompute recompute, uint32_t element);
/* Checkpoints of a stage of `layers` that keep c A_in + layers/c A_int bytes least: sqrt(layers
 * A_int/A_in) within [1, layers]. For tests. */
uint32_t hd_ptdp_checkpoints(uint32_t layers, double input_bytes, double inside_bytes);

/* HD_E_INVAL: an extent of 0 or beyond its limit, heads that do not divide the hidden width. */
HD_MUST_USE enum hd_err hd_ptdp_model_check(const struct hd_ptdp_model *model, struct hd_diag *diag);

#endif
