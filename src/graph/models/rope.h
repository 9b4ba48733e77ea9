/* rope.h -- rotary positions of published models: which frequencies their channels turn by.
 *
 * Plain: f_i = base^(-2i/R) for the R rotary channels of a head. Models that were stretched to longer texts
 * change them, each by a rule that has a name in config.json:
 *
 *   linear    Chen et al., "Extending context window of large language models via positional interpolation"
 *             (2023): f_i / factor
 *   dynamic   the NTK-aware base, by the positions a sample has: up to `original` it is plain
 *   yarn      Peng et al., "YaRN" (2023): fast channels as they are, slow ones / factor, a ramp between the
 *             channels that turn `high` and `low` times within `original`; scores are scaled
 *   llama3    of Llama 3.1: the same idea over wave lengths between original/high and original/low
 *   longrope  Ding et al., "LongRoPE" (2024): a divisor for each channel, one list up to `original` positions
 *             and one beyond; scores are scaled
 *
 * A sample has `context` positions, so the rule is settled when the graph is made.
 * Numbers as transformers computes them (modeling_rope_utils.py). Pure. */
#ifndef HD_GRAPH_MODELS_ROPE_H
#define HD_GRAPH_MODELS_ROPE_H

#include "graph/models/rows.h"

struct hd_rope {
	const char *kind;                 /* a word of the above, or "plain" */
	double base, factor, low, high;
	double part;                      /* share of each head's channels that turn */
	double scale;                     /* of sines and cosines; 0: what the kind makes of factor */
	int64_t original;                 /* positions before stretching */
	bool whole;                       /* yarn: the ramp begins and ends at whole channels */
	const struct hd_model_value *few, *many;  /* longrope: up to `original` positions, beyond */
};

/* Of heads of `each` channels. */
HD_MUST_USE enum hd_err hd_rope_check(const struct hd_rope *rope, int64_t each, struct hd_diag *diag);
/* A constant for hd_make_rotary(); HD_NONE: plain, which wants none. *scale: of sines and cosines. */
uint32_t hd_make_frequencies(struct hd_maker *m, const struct hd_rope *rope, int64_t each, int64_t context,
	float *scale);
uint32_t hd_make_rotary(struct hd_maker *m, uint32_t x, int32_t heads, const struct hd_rope *rope,
	uint32_t frequencies, float scale);

/* Arguments of models with rotary positions, in the order of a table; all came late. */
#define HD_ROPE_ARGS ROPE_KIND, ROPE_FACTOR, ROPE_ORIGINAL, ROPE_LOW, ROPE_HIGH, ROPE_SCALE, ROPE_WHOLE, \
	ROPE_FEW, ROPE_MANY, ROPE_PART
#define HD_ROPE_PARAMS(part_) \
	[ROPE_KIND] = { "rope_kind", HD_ARG_WORD, "plain", 0, 0, \
	.about = "plain, linear, dynamic, yarn, llama3, longrope: how positions are stretched", \
	.late = true }, \
	[ROPE_FACTOR] = { "rope_factor", HD_ARG_REAL, "1", 1e-3, 1e6, \
	.about = "by how much positions are stretched", .late = true }, \
	[ROPE_ORIGINAL] = { "rope_original", HD_ARG_INT, "0", 0, 1 << 30, \
	.about = "positions before stretching; 0: context", .late = true }, \
	[ROPE_LOW] = { "rope_low", HD_ARG_REAL, "1", 1e-6, 1e6, \
	.about = "llama3: low_freq_factor; yarn: beta_slow", .late = true }, \
	[ROPE_HIGH] = { "rope_high", HD_ARG_REAL, "0", 0, 1e6, \
	.about = "llama3: high_freq_factor; yarn: beta_fast; 0: 4 and 32", .late = true }, \
	[ROPE_SCALE] = { "rope_scale", HD_ARG_REAL, "0", 0, 1e3, \
	.about = "of sines and cosines; 0: what rope_kind makes of rope_factor", .late = true }, \
	[ROPE_WHOLE] = { "rope_whole", HD_ARG_WORD, "true", 0, 0, \
	.about = "yarn: the ramp begins and ends at whole channels", .late = true }, \
	[ROPE_FEW] = { "rope_few", HD_ARG_REALS, "[]", 1e-6, 1e9, \
	.about = "longrope: a divisor a channel, up to rope_original positions", .late = true }, \
	[ROPE_MANY] = { "rope_many", HD_ARG_REALS, "[]", 1e-6, 1e9, \
	.about = "longrope: a divisor a channel, beyond", .late = true }, \
	[ROPE_PART] = { "rope_part", HD_ARG_REAL, part_, 0, 1, \
	.about = "share of each head's channels that turn", .late = true }
#define HD_ROPE_OF(value, base_) { .kind = (value)[ROPE_KIND].word, .base = (base_), \
	.factor = (value)[ROPE_FACTOR].real, .low = (value)[ROPE_LOW].real, .high = (value)[ROPE_HIGH].real, \
	.part = (value)[ROPE_PART].real, .scale = (value)[ROPE_SCALE].real, \
	.original = (value)[ROPE_ORIGINAL].n, .whole = strcmp((value)[ROPE_WHOLE].word, "false") != 0, \
	.few = &(value)[ROPE_FEW], .many = &(value)[ROPE_MANY] }

#endif
