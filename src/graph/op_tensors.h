/* op_tensors.h -- tensor algebra: broadcasting, reductions, slicing, gathering, contractions.
 * Lines of the op table; op.h joins the families and says what the columns mean.
 *
 * 1. Broadcasting is numpy's: extents are paired from the last one; 1 stretches to whatever it
 *    meets, and what is missing counts as 1. An extent of rows meets the same or 1, never a number.
 * 2. Comparisons give f32 0 or 1: "and" is mul, "or" is maximum, "not" is 1 - m.
 * 3. What would mix rows is refused: slices, joins, gathers, running sums, means, maxima and products along
 *    the extent of rows. reduce_sum may: the gradient of what is repeated over the rows is such a sum.
 * 4. Ids below 0 or past the end read zeros and receive no gradient. */
#ifndef HD_GRAPH_OP_TENSORS_H
#define HD_GRAPH_OP_TENSORS_H

/*  id               text               in -> out; attributes; meaning */
#define HD_OPS_TENSORS(X) \
	/* elementwise, with broadcasting as add */ \
	X(DIV,           "div",           2, 1, MAP,       "",       "a / b; i32: towards 0, and 0 where b is 0")                    \
	X(MAXIMUM,       "maximum",       2, 1, MAP,       "",       "the larger; of equals each has half of the gradient")          \
	X(MINIMUM,       "minimum",       2, 1, MAP,       "",       "the smaller; of equals each has half of the gradient")         \
	X(LESS,          "less",          2, 1, MAP,       "",       "f32 1 where a < b, else 0")                                    \
	X(LESS_EQ,       "less_eq",       2, 1, MAP,       "",       "f32 1 where a <= b, else 0")                                   \
	X(EQUAL,         "equal",         2, 1, MAP,       "",       "f32 1 where a == b, else 0")                                   \
	X(WHERE,         "where",         3, 1, MAP,       "",       "c a b -> a where c is not 0, else b")                          \
	X(EXPAND,        "expand",        1, 1, MAP,       "d0 d1 d2 d3 d4 d5", "x repeated to the extents d (-k: k x rows, 0: end)") \
	/* reductions */ \
	X(REDUCE_SUM,    "reduce_sum",    1, 1, REDUCTION, "axes keep", "sum over the axes in the bit mask; those also in keep stay as extent 1") \
	X(REDUCE_MEAN,   "reduce_mean",   1, 1, REDUCTION, "axes keep", "mean over the axes in the bit mask")                        \
	X(REDUCE_MAX,    "reduce_max",    1, 1, REDUCTION, "axes keep", "maximum over the axes in the bit mask; equals share the gradient") \
	X(REDUCE_MIN,    "reduce_min",    1, 1, REDUCTION, "axes keep", "minimum over the axes in the bit mask; equals share the gradient") \
	X(REDUCE_PROD,   "reduce_prod",   1, 1, REDUCTION, "axes keep", "product over the axes in the bit mask")                     \
	X(ARGMAX,        "argmax",        1, 1, REDUCTION, "axis",   "x -> i32 without the axis: where the first maximum lies")      \
	X(SOFTMAX,       "softmax",       1, 1, REDUCTION, "",       "over the last extent")                                         \
	X(SOFTMAX_DX,    "softmax_dx",    2, 1, REDUCTION, "",       "dy y -> dx = y (dy - sum dy y)")                               \
	X(LOG_SOFTMAX,   "log_softmax",   1, 1, REDUCTION, "",       "over the last extent")                                         \
	X(LOG_SOFTMAX_DX, "log_softmax_dx", 2, 1, REDUCTION, "",     "dy y -> dx = dy - e^y sum dy")                                 \
	/* moving data: elements of any type */ \
	X(PERMUTE,       "permute",       1, 1, MAP,       "p0 p1 p2 p3 p4 p5", "extent i of the result is extent p_i of x")         \
	X(SLICE,         "slice",         1, 1, MAP,       "axis from step count", "elements from, from + step, .. of the axis")    \
	X(SLICE_DX,      "slice_dx",      2, 1, MAP,       "axis from step count", "dy x(shape only) -> dx, 0 beside the slice")    \
	X(CONCAT,        "concat",        2, 1, MAP,       "axis",   "b behind a along the axis")                                    \
	X(PAD,           "pad",           1, 1, MAP,       "axis before after f:value", "x between so many elements of value along the axis") \
	X(GATHER,        "gather",        2, 1, MAP,       "axis",   "x ids i32[..] -> x with the axis replaced by the extents of ids") \
	X(SCATTER_ADD,   "scatter_add",   3, 1, REDUCTION, "axis",   "u ids x(shape only) -> zeros like x with each u added at its id, in order") \
	X(ONE_HOT,       "one_hot",       1, 1, MAP,       "depth",  "ids i32[..] -> f32 [..,depth]")                                \
	X(CAST,          "cast",          1, 1, MAP,       "to",     "to: number of a dtype (ir.h); towards 0, clamped, no number: 0") \
	/* dense */ \
	X(CONTRACT,      "contract",      2, 1, DENSE,     "ta tb",  "a[..,M,K] b[..,K,N] -> [..,M,N], leading extents broadcast; ta, tb: stored transposed")

#endif
