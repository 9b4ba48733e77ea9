/* acts.h -- the elementwise activations that the attribute `act` of a node may name.
 *
 * An activation is one row of acts.def. From that row come, by a definition of ACT each:
 *   enum, word in files, ONNX by name           this file; graph/onnx/{ops,export}.c
 *   shape rule, folding of constants            op_map.c, fold.c
 *   the reference, in f64                       hd_act_value(), hd_act_slope()
 *   kernels of every instruction set            device/cpu/acts.inc.h
 *   what builtin:mlp offers                     models/mlp.c
 *   cases of every test that loops over them    device/{acts,conform,gradient,property,cpu/kernels}_test.c,
 *                                               tests/eval64.inc.h (reference of the tests)
 *
 * 1. The order of the rows is that of enum hd_act; files write the word, never the number.
 * 2. hd_act_value() and hd_act_slope() compute in f64 and share no code with the kernels. */
#ifndef HD_GRAPH_ACTS_H
#define HD_GRAPH_ACTS_H

#include <stdbool.h>
#include <stdint.h>

enum hd_act {
#define ACT(id, ...) HD_ACT_##id,
#include "graph/acts.def"
	HD_NACTS
};

struct hd_act_row {
	const char *text, *about;
	uint8_t nf;                               /* how many of alpha and beta it reads */
	bool folds;                               /* exact arithmetic: constants are computed ahead */
	struct hd_act_onnx { const char *read; uint8_t since; double alpha; const char *write; } onnx;
};
extern const struct hd_act_row hd_acts[HD_NACTS];

const char *hd_act_text(int act);                 /* "?": there is none */
bool hd_act_parse(const char *text, int *act);

/* The function and its derivative (slope); f: alpha, beta. */
double hd_act_value(int act, const float f[2], double x);
double hd_act_slope(int act, const float f[2], double x);

#endif
