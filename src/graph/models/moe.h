/* moe.h -- a mixture of experts: each token goes through few of many mlps.
 *
 * Shazeer et al., "Outrageously large neural networks" (2017); capacity and balance after Fedus et al.,
 * "Switch Transformers" (2021) and Lepikhin et al., "GShard" (2020); routing as Mixtral (Jiang et al., 2024)
 * and Qwen2-MoE publish it (ADR 264).
 *
 * 1. A router gives each token a share of every expert (softmax); the `chosen` largest are taken, of equals
 *    the expert of the smaller number. They count as they are, or divided by their sum (`renormalize`).
 * 2. All that is counted over tokens is counted within a sample: capacity, balance. So what a token becomes
 *    depends on its sample alone, never on virtual nodes, devices or waves.
 * 3. An expert takes at most ceil(capacity x positions x chosen / experts) tokens of a sample;
 * capacity 0: all
 *    that come. The first choices of all tokens come first, in the order of the tokens, then the second ones,
 *    and so on. What finds no room is dropped: that choice adds nothing, the others of the token count as
 *    before.
 * 4. A token that attention_mask hides, or of document 0, goes to no expert and takes no room.
 * 5. Balance, of a sample, over all layers together, as transformers' load_balancing_loss_func: experts x the
 *    sum over experts of (choices of it a token) x (mean share of it). Choices are counted before any is
 *    dropped; only shares have a gradient. Hidden tokens do not count.
 *
 * Of an expert only the rows that chose it are computed (ops/expert_matmul.inc.h). Pure. */
#ifndef HD_GRAPH_MODELS_MOE_H
#define HD_GRAPH_MODELS_MOE_H

#include "graph/models/rows.h"

/* What its tensors are called: behind the layer's prefix. Those of all experts are one tensor each,
 * [experts, out, in] (names.h knows them one by one). */
struct hd_moe_names { const char *router, *gate, *up, *down; };

struct hd_moe {
	const struct hd_moe_names *names;
	int64_t experts, chosen, width, hidden, positions;
	bool renormalize;
	double capacity, balance;
	enum hd_act act;
	uint32_t mask;                    /* i32 [N,T], or HD_NONE */
	/* made by the layers: choices and shares of each expert [N,experts], summed over tokens and layers */
	uint32_t named, likely;
	int64_t nlayers;
};

HD_MUST_USE enum hd_err hd_moe_check(const struct hd_moe *moe, struct hd_diag *diag);
/* Tokens of a sample that an expert takes; 0: all. */
int64_t hd_moe_room(const struct hd_moe *moe);
/* x [N,T,width] -> the same. Adds to `named` and `likely` where balance is not 0. */
uint32_t hd_make_moe(struct hd_maker *m, struct hd_moe *moe, const char *prefix, uint32_t x);
/* balance x rule 5, [N,1]; HD_NONE: there is none. After the last layer. */
uint32_t hd_make_balance(struct hd_maker *m, const struct hd_moe *moe);

/* Arguments of models with experts; all came with their models. The first four are every one's. */
#define HD_MOE_ARGS EXPERTS, CHOSEN, CAPACITY, BALANCE, RENORMALIZE, EXPERT_HIDDEN, SHARED_HIDDEN, \
	SPARSE_EVERY, DENSE
#define HD_MOE_PARAMS(experts_, chosen_) \
	[EXPERTS] = { "experts", HD_ARG_INT, experts_, 1, 4096, \
		.about = "mlps of a layer, of which a token " \
	"goes through `chosen`" }, \
	[CHOSEN] = { "chosen", HD_ARG_INT, chosen_, 1, 64, .about = "experts of a token" }, \
	[CAPACITY] = { "capacity", HD_ARG_REAL, "0", 0, 1e6, \
		.about = "an expert takes at most so many times " \
	"its even share of a sample's tokens, rounded up; 0: all that come" }, \
	[BALANCE] = { "balance", HD_ARG_REAL, "0", 0, 1e6, \
		.about = "weight, in the loss, of how unevenly a " \
	"sample's tokens lie on the experts" }
#define HD_MOE_MORE(expert_hidden_, shared_hidden_) \
	[RENORMALIZE] = { "renormalize", HD_ARG_WORD, "false", 0, 0, \
	.about = "true: the shares of a token's experts are divided by their sum" }, \
	[EXPERT_HIDDEN] = { "expert_hidden", HD_ARG_INT, expert_hidden_, 1, 1 << 18, \
	.about = "channels inside an expert" }, \
	[SHARED_HIDDEN] = { "shared_hidden", HD_ARG_INT, shared_hidden_, 0, 1 << 18, \
	.about = "channels inside the expert that every token goes through; 0: there is none" }, \
	[SPARSE_EVERY] = { "sparse_every", HD_ARG_INT, "1", 1, 1000, \
	.about = "of so many layers the last has experts, the others an mlp of `hidden`" }, \
	[DENSE] = { "dense", HD_ARG_LIST, "[]", 0, 1000, .about = "layers without experts, counted from 0" }

#endif
