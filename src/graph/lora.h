/* lora.h -- parameters that stay as they are, and small ones that are learned beside them.
 *
 * Hu et al., "LoRA: Low-rank adaptation of large language models" (2021): a matrix W of a
 * product y = x W keeps its value, and y becomes x W + (alpha / rank) (x A') B' with two
 * narrow matrices A [rank, in] and B [out, rank], named W.lora_A and W.lora_B (A', B'
 * transposed; the shapes of the PEFT library, whether W is stored [in, out] or [out, in]).
 * A begins uniform in 1/sqrt(in) -- the paper's PEFT form, kaiming with a = sqrt 5 -- and
 * B as zeros, so that a model begins as what it was: outputs are equal bit for bit, but
 * for -0, which becomes +0. Kalajdzievski, "A rank stabilization scaling factor for
 * fine-tuning with LoRA" (2023), counts alpha / sqrt(rank) instead (`root`). With `dropout` an
 * adapter reads x with a share of its elements dropped; the product itself reads all.
 *
 * Both work on a forward graph, before optimization: what a job trains is in the graph.
 *
 * 1. Parameters keep their number and order; adapters come after them, so initial values of
 *    the others do not depend on them.
 * 2. A pattern (names.h) that names nothing is refused, and a target that is no matrix on
 *    the right of products: one that is read otherwise too (a tied token table) could not be
 *    merged.
 * 3. Merging adds (alpha / rank) B A to W, in f64, rounded once per element.
 * 4. Rank and alpha of a matrix are those of the first of `ranks`, `alphas` that matches its
 *    name, else the common ones.
 *
 * Pure. */
#ifndef HD_GRAPH_LORA_H
#define HD_GRAPH_LORA_H

#include "graph/state.h"

/* Parameters that a pattern matches become frozen. */
HD_MUST_USE enum hd_err hd_graph_freeze(struct hd_graph *graph, const char *const *pattern, uint32_t n,
	struct hd_diag *diag);

struct hd_lora {
	uint32_t rank;
	float alpha;
	/* patterns: what gets adapters; what is learned beside them */
	const char *const *target, *const *train;
	uint32_t ntargets, ntrain;
	/* "PATTERN=NUMBER" */
	const char *const *ranks, *const *alphas;
	uint32_t nranks, nalphas;
	bool root;
	float dropout;
};
/* "PATTERN=NUMBER"; false: it is none. A rank is a whole number from 1 to HD_LORA_MAX_RANK. */
enum { HD_LORA_MAX_RANK = 4096, HD_LORA_MAX_ALPHA = 1000000 };
bool hd_lora_split(const char *text, char pattern[HD_MAX_NAME], double *number);
/* Of the matrix `name`: its rank, its alpha, and what its adapters count. */
struct hd_lora_of { uint32_t rank; double alpha; float scale; };
struct hd_lora_of hd_lora_of(const struct hd_lora *lora, const char *name);

/* Adapters for the targets; all other parameters but those of `train` become frozen. */
HD_MUST_USE enum hd_err hd_graph_lora(struct hd_graph *graph, const struct hd_lora *lora,
	struct hd_diag *diag);

bool hd_lora_is_adapter(const char *name);
bool hd_lora_any(const struct hd_state *state);    /* has it adapters? */
/* Into the memory of the state's matrices; the adapters leave the table. `graph` has them. */
HD_MUST_USE enum hd_err hd_lora_merge(struct hd_state *state, const struct hd_graph *graph,
	const struct hd_lora *lora, struct hd_diag *diag);

#endif
