/* Every row of every path this processor has: the same bits as the portable path, whatever
 * the order of the tiles; and near the reference, which shares no code with it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "device/cpu/cpu_isa.h"
#include "device/reference/reference.h"
#include "tests/check.h"

/* An operand: extents, 0 ends them. `ids`: i32 below that bound, one in five -1 if `masked`. */
/* wide: f64; an output with ids is i32 */
struct shape { int64_t dim[5]; int32_t ids; bool masked, wide, positive; };
struct example {
	uint16_t op;
	struct hd_attr attr;
	struct shape in[7], out[3];
	bool wide;                        /* out[0] is f64 and the same on the reference */
	double terms;                     /* of the longest sum: the tolerance against the reference */
};

#define MATMUL(ta, tb, m, n, k) \
	{ HD_OP_MATMUL, { .i = { ta, tb } }, { { .dim = { (ta) ? (k) : (m), (ta) ? (m) : (k) } }, { .dim = { (tb) ? (n) : (k), (tb) ? (k) : (n) } } }, { { .dim = { m, n } } }, false, k }
#define MAP1(id, at, n) { HD_OP_##id, at, { { .dim = { n } } }, { { .dim = { n } } }, false, 1 }
#define MAP2(id, at, n) \
	{ HD_OP_##id, at, { { .dim = { n } }, { .dim = { n } } }, { { .dim = { n } } }, false, 1 }
#define ATTR(...) { .i = { __VA_ARGS__ } }
#define REAL(x) { .f = { x } }
/* own: channels of a group */
#define GROUPED(n, c, h, w, k, own, r, s, p, q, ...) \
	{ HD_OP_CONV2D, { .i = { __VA_ARGS__ } }, { { .dim = { n, c, h, w } }, { .dim = { k, own, r, s } } }, { { .dim = { n, k, p, q } } }, false, c * r * s }, \
	{ HD_OP_CONV2D_DX, { .i = { __VA_ARGS__ } }, { { .dim = { n, k, p, q } }, { .dim = { k, own, r, s } }, { .dim = { n, c, h, w } } }, { { .dim = { n, c, h, w } } }, false, k * r * s }, \
	{ HD_OP_CONV2D_DW, { .i = { __VA_ARGS__ } }, { { .dim = { n, k, p, q } }, { .dim = { n, c, h, w } }, { .dim = { k, own, r, s } } }, { { .dim = { k, own, r, s } } }, false, n * p * q }
#define CONV(n, c, h, w, k, r, s, p, q, ...) GROUPED(n, c, h, w, k, c, r, s, p, q, __VA_ARGS__)
#define POOLS(n, h, w, p, q, ...) \
	{ HD_OP_MAXPOOL2D, { .i = { __VA_ARGS__ } }, { { .dim = { n, 3, h, w } } }, { { .dim = { n, 3, p, q } } }, false, 1 }, \
	{ HD_OP_MAXPOOL2D_DX, { .i = { __VA_ARGS__ } }, { { .dim = { n, 3, p, q } }, { .dim = { n, 3, h, w } } }, { { .dim = { n, 3, h, w } } }, false, 9 }, \
	{ HD_OP_AVGPOOL2D, { .i = { __VA_ARGS__ } }, { { .dim = { n, 3, h, w } } }, { { .dim = { n, 3, p, q } } }, false, 9 }, \
	{ HD_OP_AVGPOOL2D_DX, { .i = { __VA_ARGS__ } }, { { .dim = { n, 3, p, q } }, { .dim = { n, 3, h, w } } }, { { .dim = { n, 3, h, w } } }, false, 9 }
#define GROUPNORM(n, c, h, w, groups) \
	{ HD_OP_GROUPNORM, { .i = { groups }, .f = { 1e-5f } }, { { .dim = { n, c, h, w } }, { .dim = { c } }, { .dim = { c } } }, { { .dim = { n, c, h, w } }, { .dim = { n, groups, 2 } } }, false, c * h * w / groups }, \
	{ HD_OP_GROUPNORM_DX, ATTR(groups), { { .dim = { n, c, h, w } }, { .dim = { n, c, h, w } }, { .dim = { c } }, { .dim = { n, groups, 2 } } }, { { .dim = { n, c, h, w } } }, false, c * h * w / groups }, \
	{ HD_OP_GROUPNORM_DG, ATTR(groups), { { .dim = { n, c, h, w } }, { .dim = { n, c, h, w } }, { .dim = { n, groups, 2 } } }, { { .dim = { c } } }, false, n * h * w }
/* b, d: blocks of the c channels of x and of the k channels of y */
#define CONV_B(n, b, c, h, w, d, k, r, s, p, q, ...) \
	{ HD_OP_CONV2D_B, { .i = { __VA_ARGS__ } }, { { .dim = { n, b, h, w, 16 } }, { .dim = { k, c, r, s } } }, { { .dim = { n, d, p, q, 16 } } }, false, c * r * s }, \
	{ HD_OP_CONV2D_B_DX, { .i = { __VA_ARGS__ } }, { { .dim = { n, d, p, q, 16 } }, { .dim = { k, c, r, s } }, { .dim = { n, b, h, w, 16 } } }, { { .dim = { n, b, h, w, 16 } } }, false, k * r * s }, \
	{ HD_OP_CONV2D_B_DW, { .i = { __VA_ARGS__ } }, { { .dim = { n, d, p, q, 16 } }, { .dim = { n, b, h, w, 16 } }, { .dim = { k, c, r, s } } }, { { .dim = { k, c, r, s } } }, false, n * p * q }
#define ATTENTION(n, t, c, heads, causal) \
	{ HD_OP_ATTENTION, ATTR(heads, causal), { { .dim = { n, t, 3 * c } } }, { { .dim = { n, t, c } }, { .dim = { n, heads, t } } }, false, t + c }, \
	{ HD_OP_ATTENTION_DX, ATTR(heads, causal), { { .dim = { n, t, c } }, { .dim = { n, t, 3 * c } }, { .dim = { n, t, c } }, { .dim = { n, heads, t } } }, { { .dim = { n, t, 3 * c } } }, false, 4 * (t + c) }
#define NORM(rows, c) \
	{ HD_OP_LAYERNORM, REAL(1e-5f), { { .dim = { rows, c } }, { .dim = { c } }, { .dim = { c } } }, { { .dim = { rows, c } }, { .dim = { rows, 2 } } }, false, c }, \
	{ HD_OP_ADD_LAYERNORM, REAL(1e-5f), { { .dim = { rows, c } }, { .dim = { rows, c } }, { .dim = { c } }, { .dim = { c } } }, { { .dim = { rows, c } }, { .dim = { rows, c } }, { .dim = { rows, 2 } } }, false, c }, \
	{ HD_OP_LAYERNORM_DX, ATTR(0), { { .dim = { rows, c } }, { .dim = { rows, c } }, { .dim = { c } }, { .dim = { rows, 2 } } }, { { .dim = { rows, c } } }, false, c }, \
	{ HD_OP_LAYERNORM_DG, ATTR(0), { { .dim = { rows, c } }, { .dim = { rows, c } }, { .dim = { rows, 2 } } }, { { .dim = { c } } }, false, rows }
#define BATCHNORM(axis, infer, c, ...)                                                     \
	{ HD_OP_BATCHNORM, { .i = { axis, infer }, .f = { 1e-5f } }, { { .dim = { __VA_ARGS__ } }, { .dim = { c } }, { .dim = { c } }, { .dim = { c } }, { .dim = { c }, .positive = true } }, \
	  { { .dim = { __VA_ARGS__ } }, { .dim = { 3, c } }, { .dim = { 3, c }, .wide = true } }, false, 40 }, \
	{ HD_OP_BATCHNORM_DX, ATTR(axis), { { .dim = { __VA_ARGS__ } }, { .dim = { __VA_ARGS__ } }, { .dim = { c } }, { .dim = { 3, c } } }, \
	  { { .dim = { __VA_ARGS__ } }, { .dim = { 2, c }, .wide = true } }, false, 100 }, \
	{ HD_OP_BATCHNORM_SUMS, ATTR(axis), { { .dim = { __VA_ARGS__ } }, { .dim = { __VA_ARGS__ } }, { .dim = { 3, c } } }, { { .dim = { 2, c }, .wide = true } }, false, 4 }, \
	{ HD_OP_BATCHNORM_MOMENTS, ATTR(axis), { { .dim = { __VA_ARGS__ } } }, { { .dim = { 3, c }, .wide = true } }, false, 4 }, \
	{ HD_OP_BATCHNORM_APPLY, { .i = { axis }, .f = { 1e-5f } }, { { .dim = { __VA_ARGS__ } }, { .dim = { c } }, { .dim = { c } }, { .dim = { c } }, { .dim = { c }, .positive = true }, \
	  { .dim = { 3, c }, .wide = true, .positive = true } }, { { .dim = { __VA_ARGS__ } }, { .dim = { 3, c } } }, false, 40 }, \
	{ HD_OP_BATCHNORM_APPLY_DX, ATTR(axis), { { .dim = { __VA_ARGS__ } }, { .dim = { __VA_ARGS__ } }, { .dim = { c } }, { .dim = { 3, c } }, { .dim = { 2, c }, .wide = true } }, \
	  { { .dim = { __VA_ARGS__ } } }, false, 100 }
#define XENT(rows, v) \
	{ HD_OP_SOFTMAX_XENT, ATTR(0), { { .dim = { rows, v } }, { .dim = { rows }, .ids = v, .masked = true } }, { { .dim = { rows } }, { .dim = { rows } }, { .dim = { rows } } }, false, v }, \
	{ HD_OP_SOFTMAX_XENT_DX, ATTR(0), { { .dim = { rows, v } }, { .dim = { rows }, .ids = v, .masked = true }, { .dim = { rows } } }, { { .dim = { rows, v } } }, false, v }

#define RMS(rows, c) \
	{ HD_OP_RMSNORM, REAL(1e-5f), { { .dim = { rows, c } }, { .dim = { c } } }, { { .dim = { rows, c } }, { .dim = { rows, 1 } } }, false, c }, \
	{ HD_OP_ADD_RMSNORM, REAL(1e-5f), { { .dim = { rows, c } }, { .dim = { rows, c } }, { .dim = { c } } }, { { .dim = { rows, c } }, { .dim = { rows, c } }, { .dim = { rows, 1 } } }, false, c }, \
	{ HD_OP_RMSNORM_DX, ATTR(0), { { .dim = { rows, c } }, { .dim = { rows, c } }, { .dim = { c } }, { .dim = { rows, 1 } } }, { { .dim = { rows, c } } }, false, c }, \
	{ HD_OP_RMSNORM_DG, ATTR(0), { { .dim = { rows, c } }, { .dim = { rows, c } }, { .dim = { rows, 1 } } }, { { .dim = { c } } }, false, rows }
#define QKV(n, t, heads, kv, d) \
	{ .dim = { n, t, (heads) * (d) } }, { .dim = { n, t, (kv) * (d) } }, { .dim = { n, t, (kv) * (d) } }
#define MADE(n, t, heads, d) { .dim = { n, t, (heads) * (d) } }, { .dim = { n, heads, t } }
#define ATTEND(n, t, heads, kv, d, causal) \
	{ HD_OP_ATTEND, ATTR(heads, kv, causal), { QKV(n, t, heads, kv, d) }, { MADE(n, t, heads, d) }, false, t + d }, \
	{ HD_OP_ATTEND_DX, ATTR(heads, kv, causal), { { .dim = { n, t, (heads) * (d) } }, QKV(n, t, heads, kv, d), MADE(n, t, heads, d) }, { QKV(n, t, heads, kv, d) }, false, 4 * (t + d) }
/* with a window, a scale and a cap */
#define ATTEND_NEAR(n, t, heads, kv, d, window) \
	{ HD_OP_ATTEND, { .i = { heads, kv, 1, window }, .f = { 0.3f, 2.5f } }, { QKV(n, t, heads, kv, d) }, { MADE(n, t, heads, d) }, false, t + d }, \
	{ HD_OP_ATTEND_DX, { .i = { heads, kv, 1, window }, .f = { 0.3f, 2.5f } }, { { .dim = { n, t, (heads) * (d) } }, QKV(n, t, heads, kv, d), MADE(n, t, heads, d) }, { QKV(n, t, heads, kv, d) }, false, 4 * (t + d) }
#define ATTEND_PAD(n, t, heads, kv, d, causal, ntokens) \
	{ HD_OP_ATTEND_PAD, ATTR(heads, kv, causal, 1), { QKV(n, t, heads, kv, d), { .dim = { n, t }, .ids = ntokens } }, { MADE(n, t, heads, d) }, false, t + d }, \
	{ HD_OP_ATTEND_PAD_DX, ATTR(heads, kv, causal, 1), { { .dim = { n, t, (heads) * (d) } }, QKV(n, t, heads, kv, d), MADE(n, t, heads, d), { .dim = { n, t }, .ids = ntokens } }, \
	  { QKV(n, t, heads, kv, d) }, false, 4 * (t + d) }
#define CELLS(n, t, h) \
	{ HD_OP_LSTM, ATTR(0), { { .dim = { n, t, 4 * (h) } }, { .dim = { 4 * (h), h } }, { .dim = { 4 * (h) } } }, { { .dim = { n, t, h } }, { .dim = { n, t, h } }, { .dim = { n, t, 4 * (h) } } }, false, 16 * (h) }, \
	{ HD_OP_LSTM_DX, ATTR(0), { { .dim = { n, t, h } }, { .dim = { 4 * (h), h } }, { .dim = { n, t, h } }, { .dim = { n, t, 4 * (h) } } }, { { .dim = { n, t, 4 * (h) } } }, false, 64 * (h) }, \
	{ HD_OP_GRU, ATTR(0), { { .dim = { n, t, 3 * (h) } }, { .dim = { 3 * (h), h } }, { .dim = { 3 * (h) } } }, { { .dim = { n, t, h } }, { .dim = { n, t, 3 * (h) } }, { .dim = { n, t, h } } }, false, 16 * (h) }, \
	{ HD_OP_GRU_DX, ATTR(0), { { .dim = { n, t, h } }, { .dim = { 3 * (h), h } }, { .dim = { n, t, h } }, { .dim = { n, t, 3 * (h) } }, { .dim = { n, t, h } } }, { { .dim = { n, t, 3 * (h) } }, { .dim = { n, t, 3 * (h) } } }, false, 64 * (h) }, \
	{ HD_OP_RECUR_DW, ATTR(0), { { .dim = { n, t, 4 * (h) } }, { .dim = { n, t, h } } }, { { .dim = { 4 * (h), h } } }, false, n * t }

static const struct example examples[] = {
	MATMUL(0, 0, 1, 1, 1), MATMUL(0, 1, 65, 33, 300), MATMUL(1, 0, 170, 10, 64), MATMUL(1, 1, 31, 47, 19),
		MATMUL(0, 0, 200, 530, 270),
	CONV(3, 1, 28, 28, 6, 5, 5, 28, 28, 1, 1, 2, 2), CONV(2, 6, 14, 14, 16, 5, 5, 10, 10, 1, 1, 0, 0),
	CONV(2, 3, 9, 7, 4, 3, 2, 5, 3, 2, 3, 1, 1), CONV(1, 2, 3, 3, 2, 3, 3, 3, 3, 1, 1, 1, 1),
	CONV(2, 70, 4, 4, 3, 1, 1, 4, 4, 1, 1, 0, 0),
	GROUPED(3, 4, 9, 7, 6, 2, 3, 3, 9, 7, 1, 1, 1, 1, 2),
	GROUPED(2, 5, 11, 37, 10, 1, 3, 3, 6, 19, 2, 2, 1, 1, 5),
	GROUPED(2, 16, 5, 40, 16, 1, 3, 3, 5, 40, 1, 1, 1, 1, 16),
	GROUPED(2, 6, 12, 9, 6, 2, 3, 2, 7, 9, 2, 1, 4, 1, 3, 3, 2),
	CONV(2, 3, 9, 10, 5, 3, 3, 9, 10, 1, 1, 2, 2, 0, 2, 2),
	CONV(5, 2, 40, 33, 7, 3, 5, 40, 33, 1, 1, 1, 2), CONV(3, 9, 12, 12, 13, 2, 7, 11, 10, 1, 1, 0, 2),
	CONV(2, 2, 3, 11, 2, 5, 3, 7, 11, 1, 1, 4, 1),
	CONV(13, 1, 9, 10, 3, 3, 3, 9, 10, 1, 1, 1, 1), CONV(2, 16, 6, 16, 1, 1, 4, 6, 13, 1, 1, 0, 0),
	CONV_B(2, 2, 32, 9, 15, 3, 48, 3, 3, 9, 15, 1, 1, 1, 1),
	CONV_B(3, 1, 3, 11, 7, 2, 20, 3, 3, 6, 4, 2, 2, 1, 1),
	CONV_B(2, 2, 19, 8, 9, 1, 16, 1, 1, 4, 5, 2, 2, 0, 0),
	CONV_B(9, 1, 16, 4, 4, 5, 70, 3, 3, 4, 4, 1, 1, 1, 1),
	CONV_B(3, 2, 24, 7, 9, 3, 40, 3, 3, 7, 9, 1, 1, 1, 1),
	CONV_B(4, 6, 88, 14, 13, 2, 32, 3, 3, 14, 13, 1, 1, 1, 1),
	CONV_B(2, 5, 80, 6, 5, 1, 16, 3, 3, 4, 7, 1, 1, 0, 2),
	CONV_B(1, 1, 7, 40, 33, 1, 5, 5, 4, 14, 31, 3, 1, 2, 0),
	CONV_B(2, 1, 16, 5, 6, 2, 32, 1, 1, 5, 6, 1, 1, 0, 0),
	CONV_B(1, 1, 1, 3, 3, 1, 1, 2, 3, 1, 1, 4, 5, 0, 2),
	{ HD_OP_BLOCK, ATTR(0), { { .dim = { 3, 21, 5, 18 } } }, { { .dim = { 3, 2, 5, 18, 16 } } }, false, 1 },
	{ HD_OP_UNBLOCK, ATTR(37), { { .dim = { 2, 3, 4, 7, 16 } } }, { { .dim = { 2, 37, 4, 7 } } }, false, 1 },
	ATTENTION(2, 7, 12, 3, 0), ATTENTION(1, 130, 32, 2, 1), ATTENTION(2, 64, 16, 1, 1),
	ATTENTION(1, 65, 20, 1, 0), ATTENTION(1, 1, 4, 2, 1),
	MAP2(ADD, ATTR(0), 1000), MAP2(SUB, ATTR(0), 33), MAP2(MUL, ATTR(0), 40000),
	MAP1(SCALE, REAL(0.37f), 47),
	{ HD_OP_ADD, ATTR(0), { { .dim = { 5, 3, 7 } }, { .dim = { 3, 7 } } }, { { .dim = { 5, 3, 7 } } }, false, 1 },
	{ HD_OP_ADD, ATTR(0), { { .dim = { 50, 40, 17 } }, { .dim = { 40, 17 } } }, { { .dim = { 50, 40, 17 } } }, false, 1 },
	{ HD_OP_BIAS, ATTR(-1), { { .dim = { 33, 10 } }, { .dim = { 10 } } }, { { .dim = { 33, 10 } } }, false, 1 },
	{ HD_OP_BIAS, ATTR(1), { { .dim = { 3, 6, 5, 7 } }, { .dim = { 6 } } }, { { .dim = { 3, 6, 5, 7 } } }, false, 1 },
	{ HD_OP_BIAS, ATTR(1), { { .dim = { 3, 6 } }, { .dim = { 6 } } }, { { .dim = { 3, 6 } } }, false, 1 },
	{ HD_OP_BIAS_ACT, ATTR(-1, HD_ACT_GELU), { { .dim = { 70, 300 } }, { .dim = { 300 } } }, { { .dim = { 70, 300 } }, { .dim = { 70, 300 } } }, false, 8 },
	{ HD_OP_BIAS_ACT, ATTR(1, HD_ACT_TANH), { { .dim = { 2, 3, 4, 5 } }, { .dim = { 3 } } }, { { .dim = { 2, 3, 4, 5 } }, { .dim = { 2, 3, 4, 5 } } }, false, 8 },
#define BOTH(id) { .i = { HD_ACT_##id }, .f = { 0.3f, 0.7f } }
#define ACT(id, ...) MAP1(ACT, BOTH(id), 20001), MAP2(ACT_DX, BOTH(id), 77),
#include "graph/acts.def"
	{ HD_OP_MAXPOOL2D, ATTR(2, 2, 2, 2), { { .dim = { 2, 3, 8, 10 } } }, { { .dim = { 2, 3, 4, 5 } } }, false, 1 },
	{ HD_OP_MAXPOOL2D, ATTR(3, 2, 1, 2), { { .dim = { 40, 30, 7, 9 } } }, { { .dim = { 40, 30, 5, 4 } } }, false, 1 },
	{ HD_OP_MAXPOOL2D_DX, ATTR(2, 2, 2, 2), { { .dim = { 2, 3, 4, 5 } }, { .dim = { 2, 3, 8, 10 } } }, { { .dim = { 2, 3, 8, 10 } } }, false, 1 },
	{ HD_OP_MAXPOOL2D_DX, ATTR(3, 2, 1, 1), { { .dim = { 2, 3, 5, 8 } }, { .dim = { 2, 3, 7, 9 } } }, { { .dim = { 2, 3, 7, 9 } } }, false, 6 },
	POOLS(2, 13, 71, 7, 36, 3, 3, 2, 2, 1, 1), POOLS(30, 9, 37, 9, 37, 3, 3, 1, 1, 1, 1),
	POOLS(2, 7, 50, 3, 17, 2, 4, 3, 3, 1, 2),
	POOLS(2, 5, 9, 1, 1, 5, 9, 1, 1),
	POOLS(2, 9, 71, 4, 35, 2, 2, 2, 2), POOLS(2, 9, 41, 4, 20, 3, 2, 2, 2),
	POOLS(2, 7, 36, 3, 18, 2, 2, 3, 2, 1, 0), POOLS(2, 7, 9, 4, 4, 1, 2, 2, 2),
	{ HD_OP_AVGPOOL2D, ATTR(3, 3, 2, 2, 1, 1, 1), { { .dim = { 2, 3, 13, 71 } } }, { { .dim = { 2, 3, 7, 36 } } }, false, 9 },
	GROUPNORM(3, 6, 5, 7, 3), GROUPNORM(40, 32, 6, 6, 8), GROUPNORM(2, 4, 9, 9, 4),
	GROUPNORM(3, 4, 1, 1, 2),
	{ HD_OP_EMBED, ATTR(0), { { .dim = { 9, 5 }, .ids = 11 }, { .dim = { 11, 70 } } }, { { .dim = { 9, 5, 70 } } }, false, 1 },
	{ HD_OP_EMBED_DW, ATTR(0), { { .dim = { 9, 5, 70 } }, { .dim = { 9, 5 }, .ids = 11 }, { .dim = { 11, 70 } } }, { { .dim = { 11, 70 } } }, false, 45 },
	{ HD_OP_SUM_ROWS, ATTR(-1), { { .dim = { 200, 77 } } }, { { .dim = { 77 } } }, false, 200 },
	{ HD_OP_SUM_ROWS, ATTR(1), { { .dim = { 4, 6, 5, 7 } } }, { { .dim = { 6 } } }, false, 140 },
	{ HD_OP_SUM_ROWS, ATTR(1), { { .dim = { 4, 6 } } }, { { .dim = { 6 } } }, false, 4 },
	{ HD_OP_SUM_ROWS, ATTR(0, 2), { { .dim = { 40, 6, 5 } } }, { { .dim = { 6, 5 } } }, false, 40 },
	NORM(9, 768), NORM(300, 70), NORM(3, 1), NORM(2, 16),
	XENT(40, 10), XENT(3, 5000), XENT(7, 16), XENT(2, 1025),
	{ HD_OP_MSE, ATTR(0), { { .dim = { 9, 33 } }, { .dim = { 9, 33 } } }, { { .dim = { 9 } } }, false, 33 },
	{ HD_OP_MSE_DX, ATTR(0), { { .dim = { 9, 33 } }, { .dim = { 9, 33 } } }, { { .dim = { 9, 33 } } }, false, 2 },
	{ HD_OP_SUM64, ATTR(0), { { .dim = { 9, 33 } } }, { { .dim = { 1 } } }, true, 0 },
	{ HD_OP_COUNT64, ATTR(0), { { .dim = { 77 }, .ids = 5, .masked = true } }, { { .dim = { 1 } } }, true, 0 },
	{ HD_OP_COUNT64, ATTR(0), { { .dim = { 77, 3 } } }, { { .dim = { 1 } } }, true, 0 },
	BATCHNORM(1, 0, 5, 3, 5, 7, 7), BATCHNORM(1, 0, 70, 2, 70, 4, 8), BATCHNORM(1, 0, 37, 9, 37),
	BATCHNORM(-1, 0, 100, 30, 3, 100),
	BATCHNORM(16, 0, 32, 2, 2, 3, 5, 16), BATCHNORM(1, 1, 5, 3, 5, 7, 7), BATCHNORM(1, 0, 3, 1, 3),
	BATCHNORM(1, 0, 2, 8, 2, 40, 40),
	{ HD_OP_BATCHNORM_SYNC, ATTR(1), { { .dim = { 3, 19 }, .wide = true } }, { { .dim = { 3, 19 }, .wide = true } }, false, 0 },
	{ HD_OP_BATCHNORM_DP, ATTR(1), { { .dim = { 2, 19 }, .wide = true } }, { { .dim = { 19 } } }, false, 0 },
	RMS(9, 768), RMS(300, 70), RMS(3, 1),
	{ HD_OP_ROTARY, { .i = { 3, 0 }, .f = { 10000 } }, { { .dim = { 2, 300, 3 * 22 } } }, { { .dim = { 2, 300, 3 * 22 } } }, false, 1 },
	{ HD_OP_ROTARY, { .i = { 1, 1 }, .f = { 100 } }, { { .dim = { 3, 5, 130 } } }, { { .dim = { 3, 5, 130 } } }, false, 1 },
	MAP2(SWIGLU, ATTR(0), 20001),
	{ HD_OP_SWIGLU_DX, ATTR(0), { { .dim = { 77 } }, { .dim = { 77 } }, { .dim = { 77 } } }, { { .dim = { 77 } }, { .dim = { 77 } } }, false, 4 },
	ATTEND(2, 7, 3, 1, 4, 0), ATTEND(1, 300, 4, 2, 16, 1), ATTEND(2, 29, 2, 2, 33, 1),
	ATTEND(1, 1, 2, 1, 4, 1), ATTEND(1, 257, 1, 1, 8, 0),
	ATTEND_NEAR(2, 70, 4, 2, 9, 13), ATTEND_NEAR(1, 300, 2, 1, 16, 64),
	ATTEND_PAD(2, 70, 4, 2, 8, 0, 6), ATTEND_PAD(2, 30, 2, 2, 5, 1, 3),
	CELLS(3, 4, 5), CELLS(17, 3, 40), CELLS(2, 1, 1),
	{ HD_OP_MASK_TOKENS, { .i = { 3, 90 }, .f = { 0.3f } }, { { .dim = { 9, 70 }, .ids = 90 } }, { { .dim = { 9, 70 }, .ids = 1 }, { .dim = { 9, 70 }, .ids = 1 } }, false, 1 },
	MAP1(DROPOUT, REAL(0.3f), 5001), MAP1(DROPOUT_DX, REAL(0.3f), 5001), MAP1(DROPOUT, REAL(0.0f), 17),
	MAP1(DROPOUT, REAL(0.9f), 40003),
#include "tests/kernels_tensors.inc.h"
};
/* The results of a family's examples; changes whenever an example or an order of sums does. */
#define NOTHING "99aa06d3014798d86001c324468d497f"      /* no examples yet */
static const struct golden { const char *family, *hash; } goldens[] = {
	{ "core",      "c731e6fef805a46fd53bd4a8b886e3ae" },
	{ "images",    "1670e0f0535f453370a5c354c5cf26ba" },
	{ "tensors",   "34adf89ad42242cfb32e8be1adf0b528" },
	{ "sequences", "05fb108d4cc39db47bf9c8dc750c2063" },
	{ "batch",     "1107d7023e3b6bbb5038bc6f71d3c9a5" },
	{ "blocked",   "c999021b294ab046c4a8743be4dd9a07" },
};
enum { NFAMILIES = sizeof goldens / sizeof goldens[0] };

/* Those of an activation stand in its row, 16 digits of them. */
#define ACT_UNPACK(...) __VA_ARGS__
#define ACT_CALL(macro, ...) macro(__VA_ARGS__)
#define ACT_BITS(alpha, beta, domain, c, gain, c_dx, gain_dx, bits) bits
static const char *const act_bits[HD_NACTS] = {
#define ACT(id, text, nf, use, folds, about, value, slope, lanes, lanes_slope, oracle, onnx, tests) \
	ACT_CALL(ACT_BITS, ACT_UNPACK tests),
#include "graph/acts.def"
};

/* So do those of an op that is a file of its own (ops.def); NULL: of the others. */
static const char *const op_bits[HD_NOPS] = {
#define OP_BITS(id, bits) [HD_OP_##id] = bits,
#include "graph/ops.def"
};

static int family_of(uint16_t op)
{
	static const uint8_t families[HD_NOPS] = {
#define IN(n, id) [HD_OP_##id] = n,
#define X(id, ...) IN(0, id)
		HD_OPS_CORE(X)
#undef X
#define X(id, ...) IN(1, id)
		HD_OPS_IMAGES(X)
#undef X
#define X(id, ...) IN(2, id)
		HD_OPS_TENSORS(X)
#undef X
#define X(id, ...) IN(3, id)
		HD_OPS_SEQUENCES(X)
#undef X
#define X(id, ...) IN(4, id)
		HD_OPS_BATCH(X)
#undef X
#define X(id, ...) IN(5, id)
		HD_OPS_BLOCKED(X)
#undef X
	};
	return families[op];
}
enum { NEXAMPLES = sizeof examples / sizeof examples[0] };

static float random_of(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (float)((double)(*state >> 40) / (double)(1 << 23) - 1.0);
}

static void take(struct hd_operand *o, const struct shape *s, enum hd_dtype dtype)
{
	*o = (struct hd_operand){ .elems = 1, .dtype = (uint8_t)dtype };
	for (; o->rank < 5 && s->dim[o->rank]; o->rank++) {
		o->dim[o->rank] = s->dim[o->rank];
		o->elems *= (uint64_t)s->dim[o->rank];
	}
	o->at = malloc(o->elems * hd_dtype_bytes(dtype));
	assert_non_null(o->at);
}

static void fill(struct hd_operand *o, const struct shape *s, uint64_t *state)
{
	for (uint64_t i = 0; i < o->elems; i++) {
		float x = random_of(state);
		if (s->wide)
			((double *)o->at)[i] = s->positive ? fabs((double)x * 3.0) : (double)x * 3.0;
		else if (!s->ids)
			((float *)o->at)[i] = s->positive ? fabsf(x * 3.0f) : x * 3.0f;
		else
			((int32_t *)o->at)[i] = s->masked &&
				x > 0.6f ? -1 : (int32_t)((x + 1.0f) * 0.4999f * (float)s->ids);
	}
}

static void poison(struct hd_call *call)
{
	for (int i = 0; i < call->nout; i++)
		memset(call->out[i].at, 0xff, call->out[i].elems *
			hd_dtype_bytes((enum hd_dtype)call->out[i].dtype));
}

/* All tiles, or pieces if there are any of them, last first when `backwards`; scratch of exactly the promised
 * size, filled with no numbers. */
static void run_in(const struct hd_cpu_row *table, struct hd_call *call, bool backwards, uint32_t npieces)
{
	const struct hd_kernel *kernel = &table[call->op].kernel;
	void *prepared = NULL;

	assert_int_equal(table[call->op].prepare(call, &prepared, NULL), HD_OK);
	call->prepared = prepared;
	uint32_t n = npieces ? npieces : kernel->ntiles(call);
	size_t bytes = kernel->scratch(call);
	void *scratch = hd_alloc(bytes);

	assert_non_null(scratch);
	memset(scratch, 0xff, bytes);
	poison(call);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = backwards ? n - 1 - i : i;
		if (npieces)
			kernel->piece(call, at, npieces, scratch);
		else
			kernel->tile(call, at, scratch);
	}
	hd_free(scratch);
	table[call->op].release(prepared);
	call->prepared = NULL;
}

static void run(const struct hd_cpu_row *table, struct hd_call *call, bool backwards)
{
	run_in(table, call, backwards, 0);
}

/* Inputs that are outputs of the forward op must fit the others. */
static void prime(struct hd_call *call)
{
	struct hd_call f = { .attr = call->attr };

	switch (call->op) {
	case HD_OP_ATTENTION_DX:
		f.op = HD_OP_ATTENTION, f.nin = 1, f.nout = 2;
		f.in[0] = call->in[1], f.out[0] = call->in[2], f.out[1] = call->in[3];
		break;
	case HD_OP_ATTEND_DX:
	case HD_OP_ATTEND_PAD_DX:
		f.op = call->op == HD_OP_ATTEND_DX ? HD_OP_ATTEND : HD_OP_ATTEND_PAD,
			f.nin = (uint8_t)(call->nin - 3), f.nout = 2;
		f.in[0] = call->in[1], f.in[1] = call->in[2], f.in[2] = call->in[3], f.in[3] = call->in[6];
		f.out[0] = call->in[4], f.out[1] = call->in[5];
		break;
	case HD_OP_SOFTMAX_XENT_DX:
		f.op = HD_OP_SOFTMAX_XENT, f.nin = 2, f.nout = 3;
		f.in[0] = call->in[0], f.in[1] = call->in[1], f.out[1] = call->in[2];
		f.out[0] = f.out[2] = call->in[2];
		f.out[0].at = malloc(f.out[0].elems * 4), f.out[2].at = malloc(f.out[2].elems * 4);
		break;
	case HD_OP_CLASS_XENT_DX:
		f.op = HD_OP_CLASS_XENT, f.nin = 3, f.nout = 3;
		f.in[0] = call->in[0], f.in[1] = call->in[1], f.in[2] = call->in[3];
		f.out[0] = f.out[1] = f.out[2] = call->in[2];
		f.out[0].at = malloc(f.out[0].elems * 4), f.out[2].at = malloc(f.out[2].elems * 4);
		break;
	default:
		return;
	}
	run(hd_cpu_portable.rows, &f, false);
	if (call->op == HD_OP_SOFTMAX_XENT_DX || call->op == HD_OP_CLASS_XENT_DX)
		free(f.out[0].at), free(f.out[2].at);
}

static void call_make(struct hd_call *call, const struct example *e)
{
	uint64_t state = 88172645463325252u;

	/* by name: numbers move when another family grows */
	for (const char *at = hd_ops[e->op].name; *at; at++)
		state = state * 131 + (uint8_t)*at;
	*call = (struct hd_call){ .op = e->op, .attr = e->attr };
	call->draw = (struct hd_draw){ .seed = 7, .step = ((uint64_t)1 << 33) + 5, .vn = 3, .op = 11,
		.row0 = 2 };
	for (; call->nin < 7 && e->in[call->nin].dim[0]; call->nin++) {
		take(&call->in[call->nin], &e->in[call->nin],
			e->in[call->nin].ids ? HD_I32 : e->in[call->nin].wide ? HD_F64 : HD_F32);
		fill(&call->in[call->nin], &e->in[call->nin], &state);
	}
	for (; call->nout < 3 && e->out[call->nout].dim[0]; call->nout++)
		take(&call->out[call->nout], &e->out[call->nout], e->wide ||
			e->out[call->nout].wide ? HD_F64 : e->out[call->nout].ids ? HD_I32 : HD_F32);
	prime(call);
}

static void call_drop(struct hd_call *call)
{
	for (int i = 0; i < call->nin; i++)
		free(call->in[i].at);
	for (int i = 0; i < call->nout; i++)
		free(call->out[i].at);
}

static void every_op_has_a_row_on_every_path(void **state)
{
	(void)state;
#define X(path) for (int op = 0; op < HD_NOPS; op++) { \
		const struct hd_cpu_row *row = &hd_cpu_##path.rows[op]; \
		CHECK(row->kernel.ntiles && row->kernel.scratch && row->kernel.tile && row->prepare && \
			row->release, #path " %s", hd_ops[op].name); }
	HD_CPU_PATHS(X)
#undef X
}

static void every_op_but_views_has_an_example(void **state)
{
	bool seen[HD_NOPS] = { [HD_OP_RESHAPE] = true };

	(void)state;
	for (int i = 0; i < NEXAMPLES; i++)
		seen[examples[i].op] = true;
	for (int op = 0; op < HD_NOPS; op++)
		CHECK(seen[op], "%s", hd_ops[op].name);
}

static void same(const struct hd_call *call, const struct hd_call *plain, int example, const char *path,
	uint32_t npieces)
{
	for (int o = 0; o < call->nout; o++)
		CHECK(memcmp(call->out[o].at, plain->out[o].at,
			call->out[o].elems * hd_dtype_bytes((enum hd_dtype)call->out[o].dtype)) == 0,
			"example %d (%s), path %s, output %d, %u pieces (0: tiles)", example,
			hd_ops[call->op].name, path, o, npieces);
}

static void paths_give_the_same_bits_in_any_order_of_tiles_and_pieces(void **state)
{
	static const char *const path[] = {
#define X(name) #name,
		HD_CPU_PATHS(X)
#undef X
	};

	(void)state;
	for (int i = 0; i < NEXAMPLES; i++) {
		struct hd_call plain, call;
		call_make(&plain, &examples[i]);
		run(hd_cpu_portable.rows, &plain, false);
		for (int p = 0; p < 3; p++) {
			if (!hd_cpu_path(path[p])) {
				print_message("[  note   ] this processor has no %s\n", path[p]);
				continue;
			}
			const struct hd_cpu_row *table = hd_cpu_table(HD_KERNELS_PORTABLE, path[p]);
			call_make(&call, &examples[i]);
			/* tiles, then one piece to three where there are any */
			for (uint32_t n = 0; n <= (table[call.op].kernel.piece ? 3 : 0); n++) {
				run_in(table, &call, true, n);
				same(&call, &plain, i, path[p], n);
			}
			call_drop(&call);
		}
		call_drop(&plain);
	}
}

static double element(const struct hd_operand *o, uint64_t i)
{
	if (o->dtype == HD_I32)
		return (double)((const int32_t *)o->at)[i];
	return o->dtype == HD_F64 ? ((const double *)o->at)[i] : (double)((const float *)o->at)[i];
}

/* Error of a sum of n terms of size about s: some units of s times sqrt(n), doubled. */
static void near(const struct hd_operand *got, const struct hd_operand *want, double terms, int example,
	int output)
{
	double size = 0;

	for (uint64_t i = 0; i < want->elems; i++)
		size = fmax(size, fabs(element(want, i)));
	for (uint64_t i = 0; i < want->elems; i++) {
		double a = element(got, i), b = element(want, i);
		double tolerance = 0x1p-23 * (4 + 4 * sqrt(terms)) * fmax(1.0, fmax(size, fabs(b)));
		CHECK(fabs(a - b) <= tolerance || (isnan(a) && isnan(b)),
			"example %d (%s), output %d, element %llu: %.9g, reference %.9g, tolerance %.2g",
			example, hd_ops[examples[example].op].name, output, (unsigned long long)i, a, b,
			tolerance);
	}
}

static void results_are_near_those_of_the_reference(void **state)
{
	(void)state;
	for (int i = 0; i < NEXAMPLES; i++) {
		struct hd_call ref, call;
		call_make(&ref, &examples[i]);
		call_make(&call, &examples[i]);
		run(hd_ref_table(), &ref, false);
		for (int kernels = HD_KERNELS_LIBRARY; kernels <= HD_KERNELS_PORTABLE; kernels++) {
			run(hd_cpu_table((enum hd_kernels)kernels, hd_cpu_path(NULL)), &call,
				kernels == HD_KERNELS_LIBRARY);
			for (int o = 0; o < call.nout; o++)
				if (examples[i].wide)
					assert_memory_equal(call.out[o].at, ref.out[o].at, 8);
				else
					near(&call.out[o], &ref.out[o], examples[i].terms, i, o);
		}
		call_drop(&ref);
		call_drop(&call);
	}
}

/* Of an activation, of an op that is a file of its own, else of the op's family. */
static int group_of(const struct hd_call *call)
{
	bool act = call->op == HD_OP_ACT || call->op == HD_OP_ACT_DX;

	return act ? NFAMILIES + call->attr.i[0] : op_bits[call->op] ? NFAMILIES + HD_NACTS + call->op :
		family_of(call->op);
}

/* Compilers, optimisation and sanitizers must not change a bit either. */
static void results_are_those_of_every_other_build(void **state)
{
	enum { NGROUPS = NFAMILIES + HD_NACTS + HD_NOPS };
	struct hd_hasher hasher[NGROUPS];
	int other = 0;

	(void)state;
	for (int g = 0; g < NGROUPS; g++)
		hd_hasher_init(&hasher[g]);
	for (int i = 0; i < NEXAMPLES; i++) {
		struct hd_call call;
		call_make(&call, &examples[i]);
		run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &call, false);
		for (int o = 0; o < call.nout; o++)
			hd_hasher_add(&hasher[group_of(&call)], call.out[o].at,
				call.out[o].elems * hd_dtype_bytes((enum hd_dtype)call.out[o].dtype));
		call_drop(&call);
	}
	for (int g = 0; g < NGROUPS; g++) {
		const int act = g - NFAMILIES, op = act - HD_NACTS;
		const char *want = act < 0 ? goldens[g].hash : op < 0 ? act_bits[act] : op_bits[op];
		char hex[HD_HASH_HEX];
		hd_hash_hex(hd_hasher_end(&hasher[g]), hex);
		if (!want || (*want && memcmp(hex, want, strlen(want)) == 0))
			continue;
		print_message("             %s: %.*s, not %s\n", act < 0 ? goldens[g].family :
			op < 0 ? hd_acts[act].text : hd_ops[op].name, act < 0 ? 32 : 16, hex, want);
		other++;
	}
	assert_int_equal(other, 0);
}

static void a_slice_draws_what_the_whole_would(void **state)
{
	const struct example whole = { HD_OP_DROPOUT, REAL(0.5f), { { .dim = { 9, 7 } } },
		{ { .dim = { 9, 7 } } }, false, 1 };
	const struct example part = { HD_OP_DROPOUT, REAL(0.5f), { { .dim = { 4, 7 } } },
		{ { .dim = { 4, 7 } } }, false, 1 };
	struct hd_call all, slice;

	(void)state;
	call_make(&all, &whole);
	call_make(&slice, &part);
	all.draw.row0 = 0;
	slice.draw.row0 = 5;
	memcpy(slice.in[0].at, (float *)all.in[0].at + 5 * 7, 4 * 7 * sizeof(float));
	run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &all, false);
	run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &slice, false);
	assert_memory_equal(slice.out[0].at, (float *)all.out[0].at + 5 * 7, 4 * 7 * sizeof(float));
	call_drop(&all);
	call_drop(&slice);
}

/* Positions 3 to 6 of eight, rows 5 to 7 of nine: a part of a slice, over more elements than a tile has. */
static void a_part_draws_what_its_place_in_the_whole_would(void **state)
{
	enum { ALL = 8, FROM = 3, PART = 4, COLS = 1003 };
	const struct example whole = { HD_OP_DROPOUT, REAL(0.5f), { { .dim = { 9, ALL, COLS } } },
		{ { .dim = { 9, ALL, COLS } } }, false, 1 };
	const struct example part = { HD_OP_DROPOUT, { .i = { FROM, ALL }, .f = { 0.5f } },
		{ { .dim = { 3, PART, COLS } } },
		{ { .dim = { 3, PART, COLS } } }, false, 1 };
	const size_t bytes = PART * COLS * sizeof(float);
	struct hd_call all, piece;

	(void)state;
	call_make(&all, &whole);
	call_make(&piece, &part);
	all.draw.row0 = 0;
	piece.draw.row0 = 5;
	for (size_t row = 0; row < 3; row++)
		memcpy((float *)piece.in[0].at + row * PART * COLS,
			(float *)all.in[0].at + ((5 + row) * ALL + FROM) * COLS, bytes);
	run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &all, false);
	run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &piece, false);
	for (size_t row = 0; row < 3; row++)
		assert_memory_equal((float *)piece.out[0].at + row * PART * COLS,
			(float *)all.out[0].at + ((5 + row) * ALL + FROM) * COLS, bytes);
	call_drop(&all);
	call_drop(&piece);
}

/* The same samples in another order, slice and virtual node; another step draws other numbers. */
static void a_sample_is_masked_alike_wherever_it_lies(void **state)
{
	const struct example whole = { HD_OP_MASK_TOKENS, { .i = { 9, 30 }, .f = { 0.3f } },
		{ { .dim = { 6, 50 }, .ids = 30 } },
		{ { .dim = { 6, 50 }, .ids = 1 }, { .dim = { 6, 50 }, .ids = 1 } }, false, 1 };
	struct hd_call all, turned;
	int differ = 0;

	(void)state;
	call_make(&all, &whole);
	call_make(&turned, &whole);
	for (int row = 0; row < 6; row++)
		memcpy((int32_t *)turned.in[0].at + row * 50, (int32_t *)all.in[0].at + (5 - row) * 50,
			50 * sizeof(int32_t));
	turned.draw.row0 = 77;
	turned.draw.vn = 1;
	run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &all, false);
	run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &turned, false);
	for (int row = 0; row < 6; row++)
		for (int o = 0; o < 2; o++)
			assert_memory_equal((int32_t *)turned.out[o].at + row * 50,
				(int32_t *)all.out[o].at + (5 - row) * 50, 50 * sizeof(int32_t));
	turned.draw.step++;
	run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &turned, false);
	for (int i = 0; i < 50; i++)
		differ += ((int32_t *)turned.out[1].at)[i] != ((int32_t *)all.out[1].at)[5 * 50 + i];
	assert_true(differ > 5);
	call_drop(&all);
	call_drop(&turned);
}

/* Of 40000 tokens: a share of 0.15, of these 0.8 masked, 0.1 * 29/30 changed; within five standard
 * deviations. */
static void tokens_are_masked_in_the_shares_of_the_paper(void **state)
{
	const struct example many = { HD_OP_MASK_TOKENS, { .i = { 29, 30 }, .f = { 0.15f } },
		{ { .dim = { 400, 100 }, .ids = 29 } },
		{ { .dim = { 400, 100 }, .ids = 1 }, { .dim = { 400, 100 }, .ids = 1 } }, false, 1 };
	double chosen = 0, masked = 0, changed = 0;
	struct hd_call call;

	(void)state;
	call_make(&call, &many);
	run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &call, false);
	for (int i = 0; i < 40000; i++) {
		int32_t x = ((int32_t *)call.in[0].at)[i], id = ((int32_t *)call.out[0].at)[i],
			label = ((int32_t *)call.out[1].at)[i];
		assert_true(label == -1 ? id == x : label == x);
		chosen += label != -1;
		masked += id == 29;
		changed += id != 29 && id != x;
	}
	assert_true(fabs(chosen - 6000) < 5 * sqrt(6000));
	assert_true(fabs(masked - 0.8 * chosen) < 5 * sqrt(0.2 * 0.8 * chosen) + 0.01 * chosen);
	assert_true(fabs(changed - 0.1 * chosen) < 5 * sqrt(0.1 * chosen));
	call_drop(&call);
}

/* May select the element away, or has results that are numbers whatever comes. */
static bool selects(uint16_t op)
{
	static const uint16_t ops[] = { HD_OP_MAXPOOL2D, HD_OP_DROPOUT, HD_OP_DROPOUT_DX,
		HD_OP_SOFTMAX_XENT_DX, HD_OP_LESS, HD_OP_LESS_EQ,
		HD_OP_EQUAL, HD_OP_WHERE, HD_OP_SLICE, HD_OP_GATHER, HD_OP_SCATTER_ADD, HD_OP_ARGMAX,
		HD_OP_CAST, HD_OP_RECUR_DW,
#define OP_SELECTS(id) HD_OP_##id,
#include "graph/ops.def"
	};

	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
		if (ops[i] == op)
			return true;
	return false;
}

static void a_number_that_is_none_stays_none(void **state)
{
	(void)state;
	for (int i = 0; i < NEXAMPLES; i++) {
		const struct example *e = &examples[i];
		struct hd_call call;
		bool seen = false;
		if (e->in[0].ids || e->in[0].wide || e->wide || selects(e->op) ||
			(e->op == HD_OP_ATTEND_PAD && e->attr.i[2]))
			continue;
		call_make(&call, e);
		((float *)call.in[0].at)[0] = NAN;
		run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &call, false);
		for (int o = 0; o < call.nout; o++)
			for (uint64_t j = 0; j < call.out[o].elems; j++)
				seen |= isnan(element(&call.out[o], j)) != 0;
		CHECK(seen, "example %d (%s)", i, hd_ops[e->op].name);
		call_drop(&call);
	}
}

static void of_equal_logits_the_first_is_the_answer(void **state)
{
	const struct example two = { HD_OP_SOFTMAX_XENT, ATTR(0),
		{ { .dim = { 2, 40 } }, { .dim = { 2 }, .ids = 40 } },
		{ { .dim = { 2 } }, { .dim = { 2 } }, { .dim = { 2 } } }, false, 40 };
	struct hd_call call;

	(void)state;
	call_make(&call, &two);
	for (int row = 0; row < 2; row++) {
		((float *)call.in[0].at)[row * 40 + 7] = ((float *)call.in[0].at)[row * 40 + 30] = 9.0f;
		((int32_t *)call.in[1].at)[row] = row == 0 ? 7 : 30;
	}
	run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &call, false);
	assert_true(((float *)call.out[2].at)[0] == 1.0f);
	assert_true(((float *)call.out[2].at)[1] == 0.0f);
	call_drop(&call);
}

/* Pairs of columns, and windows of another kind; more than one vector of them. */
static void of_equal_pixels_the_first_is_the_maximum(void **state)
{
	(void)state;
	for (int side = 2; side <= 3; side++) {
		const struct example all = { HD_OP_MAXPOOL2D_DX, ATTR(side, side, side, side),
			{ { .dim = { 1, 1, 2, 20 } }, { .dim = { 1, 1, 2 * side, 20 * side } } }, { { .dim = { 1, 1, 2 * side, 20 * side } } }, false, 1 };
		struct hd_call call;
		call_make(&call, &all);
		for (uint64_t i = 0; i < call.in[1].elems; i++)
			((float *)call.in[1].at)[i] = -2.0f;
		run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &call, false);
		for (int y = 0; y < 2 * side; y++)
			for (int x = 0; x < 20 * side; x++) {
				float want = y % side || x % side ? 0.0f :
					((float *)call.in[0].at)[y / side * 20 + x / side];
				CHECK(((float *)call.out[0].at)[y * 20 * side + x] == want,
					"window of %d, pixel %d %d", side, y, x);
			}
		call_drop(&call);
	}
}

/* Whole blocks of them, before, between and after the others. */
static void logits_of_minus_infinity_weigh_nothing(void **state)
{
	enum { COLS = 4 * 1024 + 40, LEFT = 24 };
	const struct example wide = { HD_OP_SOFTMAX_XENT, ATTR(0),
		{ { .dim = { 3, COLS } }, { .dim = { 3 }, .ids = COLS } },
		{ { .dim = { 3 } }, { .dim = { 3 } }, { .dim = { 3 } } }, false, COLS };
	static const int first[] = { 0, 2 * 1024 + 500, COLS - LEFT };
	struct hd_call call;

	(void)state;
	call_make(&call, &wide);
	for (int row = 0; row < 3; row++) {
		for (int i = 0; i < COLS; i++)
			((float *)call.in[0].at)[row * COLS + i] = i >= first[row] &&
				i < first[row] + LEFT ? -2.0f : -INFINITY;
		((int32_t *)call.in[1].at)[row] = first[row];
	}
	run(hd_cpu_table(HD_KERNELS_PORTABLE, hd_cpu_path(NULL)), &call, false);
	for (int row = 0; row < 3; row++) {
		double loss = (double)((float *)call.out[0].at)[row];
		CHECK(fabs(loss - log(LEFT)) <= 0x1p-23 * 4 * log(LEFT), "row %d: a loss of %g", row, loss);
		assert_true(((float *)call.out[2].at)[row] == 1.0f);
	}
	call_drop(&call);
}

static void only_what_the_processor_has_is_chosen(void **state)
{
	(void)state;
	assert_string_equal(hd_cpu_path("portable"), "portable");
	assert_null(hd_cpu_path("sse9"));
	assert_string_equal(hd_cpu_path("auto"), hd_cpu_path(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_has_a_row_on_every_path),
		cmocka_unit_test(every_op_but_views_has_an_example),
		cmocka_unit_test(paths_give_the_same_bits_in_any_order_of_tiles_and_pieces),
		cmocka_unit_test(results_are_near_those_of_the_reference),
		cmocka_unit_test(results_are_those_of_every_other_build),
		cmocka_unit_test(a_slice_draws_what_the_whole_would),
		cmocka_unit_test(a_part_draws_what_its_place_in_the_whole_would),
		cmocka_unit_test(a_sample_is_masked_alike_wherever_it_lies),
		cmocka_unit_test(tokens_are_masked_in_the_shares_of_the_paper),
		cmocka_unit_test(a_number_that_is_none_stays_none),
		cmocka_unit_test(of_equal_logits_the_first_is_the_answer),
		cmocka_unit_test(of_equal_pixels_the_first_is_the_maximum),
		cmocka_unit_test(logits_of_minus_infinity_weigh_nothing),
		cmocka_unit_test(only_what_the_processor_has_is_chosen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
