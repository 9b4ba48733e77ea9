/* table.inc.h -- the rows of one path: which functions compute which op. Included once by
 * each kernels_<path>.c, which gives the path its compiler flags and its name.
 *
 * The lists give op and functions; rows of HD_DENSE_ROWS have a twin in library.h. */
#ifndef HD_DEVICE_CPU_TABLE_INC_H
#define HD_DEVICE_CPU_TABLE_INC_H

#include "device/cpu/attention.inc.h"
#include "device/cpu/bf16_rows.h"
#include "device/cpu/cpu_isa.h"
#include "device/cpu/embed_fold.inc.h"
#include "device/cpu/flat.inc.h"
#include "device/cpu/images.inc.h"
#include "device/cpu/library.h"
#include "device/cpu/matmul.inc.h"
#include "device/cpu/rows.inc.h"
#include "device/cpu/table_batch.inc.h"
#include "device/cpu/table_blocked.inc.h"
#include "device/cpu/table_images.inc.h"
#include "device/cpu/table_sequences.inc.h"
#include "device/cpu/table_tensors.inc.h"

static inline uint32_t no_tiles(const struct hd_call *call) { (void)call; return 0; }
static inline void view_tile(const struct hd_call *call, uint32_t tile, void *scratch) { (void)call;
	(void)tile; (void)scratch; }

static inline void math_unit(int function, const float in[HD_UNIT], float out[HD_UNIT])
{
	struct vf x = vf_load(in);

	switch ((enum hd_cpu_math)function) {
	case HD_MATH_EXP:       x = vf_exp(x); break;
	case HD_MATH_LOG:       x = vf_log(x); break;
	case HD_MATH_TANH:      x = vf_tanh(x); break;
	case HD_MATH_SIGMOID:   x = vf_sigmoid(x); break;
	case HD_MATH_GELU_GATE: x = vf_gelu_gate(x); break;
	case HD_MATH_LOG_ANY:   x = vf_log_any(x); break;
	case HD_MATH_EXPM1:     x = vf_expm1(x); break;
	case HD_MATH_SOFTPLUS:  x = vf_softplus(x); break;
	case HD_MATH_ERF:       x = vf_erf(x); break;
	case HD_MATH_NORMAL:    x = vf_normal(x); break;
	case HD_MATH_POW:       x = vf_pow(x, vf_set(2.5f)); break;
	case HD_MATH_SIN:       x = vf_sin(x); break;
	case HD_MATH_COS:       x = vf_cos(x); break;
	case HD_MATH_ATAN:      x = vf_atan(x); break;
	case HD_NMATHS:         break;
	}
	vf_store(out, x);
}

/* The gradient of a weight folds as it goes. */
static const struct hd_fold_kernel matmul_fold = { 2, matmul_fold_takes, matmul_fold_ntiles,
	matmul_fold_scratch, matmul_fold_tile, matmul_fold_piece, matmul_fold_divides };
static const struct hd_fold_kernel embed_dw_fold = { 2, embed_fold_takes, embed_fold_ntiles,
	embed_fold_scratch, embed_fold_tile, NULL, NULL };

/*    op               rows  tiles                scratch               tile; rows: see rowwise in kernel.h */
#define HD_PIECE_ROWS(W)                                                              \
	W(MATMUL,          ROWS, matmul_ntiles,       matmul_scratch,       matmul_tile, &matmul_fold, \
		matmul_piece, matmul_divides)
#define HD_HEADS_ROW(W, id, stem) \
	W(id, ROWS, stem##_ntiles, stem##_scratch, stem##_tile, NULL, stem##_piece, stem##_divides)
#define HD_HEADS_ROWS(W) \
	HD_HEADS_ROW(W, ATTENTION, attention) HD_HEADS_ROW(W, ATTENTION_DX, attention_dx) \
	HD_HEADS_ROW(W, ATTEND, attend) HD_HEADS_ROW(W, ATTEND_DX, attend_dx) \
	HD_HEADS_ROW(W, ATTEND_PAD, attend_pad) HD_HEADS_ROW(W, ATTEND_PAD_DX, attend_pad_dx)
#define HD_DENSE_ROWS(X)                                                              \
	X(CONV2D,          ROWS, conv2d_ntiles,       conv2d_scratch,       conv2d_tile)          \
	X(CONV2D_DX,       ROWS, conv2d_dx_ntiles,    conv2d_dx_scratch,    conv2d_dx_tile)       \
	X(CONV2D_DW,       ROWS, conv2d_dw_ntiles,    conv2d_dw_scratch,    conv2d_dw_tile)
#define HD_FOLD_ROWS(F)                                                               \
	F(EMBED_DW,        ROWS, embed_dw_ntiles,     scratch_none,         embed_dw_tile, &embed_dw_fold) \
	HD_BLOCKED_FOLD_ROWS(F)
#define HD_OTHER_ROWS(X)                                                            \
	X(RESHAPE,         ROWS, no_tiles,            scratch_none,         view_tile)            \
	X(ADD,             ROWS, map_ntiles,          scratch_none,         add_tile)             \
	X(SUB,             ROWS, map_ntiles,          scratch_none,         sub_tile)             \
	X(MUL,             ROWS, map_ntiles,          scratch_none,         mul_tile)             \
	X(SCALE,           ROWS, map_ntiles,          scratch_none,         scale_tile)           \
	X(BIAS,            ROWS, bias_ntiles,         scratch_none,         bias_tile)            \
	X(BIAS_ACT,        ROWS, bias_ntiles,         scratch_none,         bias_act_tile)        \
	X(ACT,             ROWS, map_ntiles,          scratch_none,         act_tile)             \
	X(ACT_DX,          ROWS, map_ntiles,          scratch_none,         act_dx_tile)          \
	X(MAXPOOL2D,       ROWS, pool2d_ntiles,       scratch_none,         maxpool2d_tile)       \
	X(MAXPOOL2D_DX,    ROWS, pool2d_dx_ntiles,    scratch_none,         maxpool2d_dx_tile)    \
	X(EMBED,           ROWS, embed_ntiles,        scratch_none,         embed_tile)           \
	X(SUM_ROWS,        ROWS, sum_rows_ntiles,     scratch_none,         sum_rows_tile)        \
	X(LAYERNORM,       ROWS, norm_ntiles,         scratch_none,         layernorm_tile)       \
	X(ADD_LAYERNORM,   ROWS, norm_ntiles,         scratch_none,         add_layernorm_tile)   \
	X(LAYERNORM_DX,    ROWS, norm_ntiles,         scratch_none,         layernorm_dx_tile)    \
	X(LAYERNORM_DG,    ROWS, layernorm_dg_ntiles, scratch_none,         layernorm_dg_tile)    \
	X(SOFTMAX_XENT,    ROWS, logits_ntiles,       scratch_none,         softmax_xent_tile)    \
	X(SOFTMAX_XENT_DX, ROWS, logits_ntiles,       scratch_none,         softmax_xent_dx_tile) \
	X(MSE,             ROWS, mse_ntiles,          scratch_none,         mse_tile)             \
	X(MSE_DX,          ROWS, map_ntiles,          scratch_none,         mse_dx_tile)          \
	X(SUM64,           ROWS, one_tile,            scratch_none,         sum64_tile)           \
	X(COUNT64,         ROWS, one_tile,            scratch_none,         count64_tile)         \
	X(DROPOUT,         CALL, map_ntiles,          scratch_none,         dropout_tile)         \
	X(DROPOUT_DX,      CALL, map_ntiles,          scratch_none,         dropout_tile)

#define HD_FAMILY_ROWS(X) \
	HD_IMAGES_ROWS(X) HD_TENSORS_ROWS(X) HD_SEQUENCES_ROWS(X) HD_BATCH_ROWS(X) HD_BLOCKED_ROWS(X)

#define ROWS true
#define CALL false
#define W(id, rowwise, ntiles, scratch, tile, fold, piece, divides) \
	[HD_OP_##id] = { { ntiles, scratch, tile, rowwise, fold, piece, divides }, \
		hd_cpu_prepare_none, hd_cpu_release_none, NULL },
#define F(id, rowwise, ntiles, scratch, tile, fold) \
	W(id, rowwise, ntiles, scratch, tile, fold, NULL, NULL)
#define X(id, rowwise, ntiles, scratch, tile) W(id, rowwise, ntiles, scratch, tile, NULL, NULL, NULL)
#define P(id, rowwise, ntiles, scratch, tile, piece, divides) \
	W(id, rowwise, ntiles, scratch, tile, NULL, piece, divides)
#define L(id, stem) \
	[HD_OP_##id] = { \
		{ hd_library_##stem##_ntiles, hd_library_scratch, hd_library_##stem##_tile, CALL, NULL, NULL, NULL }, \
		hd_library_##stem##_prepare, hd_library_release, hd_library_##stem##_takes },
#define HD_PRODUCT_ROWS(W, kind) \
	W(MATMUL, ROWS, hd_##kind##_matmul_ntiles, hd_##kind##_matmul_scratch, hd_##kind##_matmul_tile, \
		&hd_##kind##_matmul_fold, hd_##kind##_matmul_piece, matmul_divides)

/* The ops that are one file each; their rows stand in every table. */
#define OP_KERNEL
#include "graph/ops.def"

static const struct hd_cpu_row rows[HD_NOPS] = {
	HD_PIECE_ROWS(W) HD_HEADS_ROWS(W) HD_DENSE_ROWS(X) HD_OTHER_ROWS(X) HD_FAMILY_ROWS(X) HD_FOLD_ROWS(F)
#define OP_TILES X
#define OP_PIECES P
#include "graph/ops.def"
};
static const struct hd_cpu_row library_rows[HD_NOPS] = {
	HD_LIBRARY_OPS(L) HD_HEADS_ROWS(W) HD_OTHER_ROWS(X) HD_FAMILY_ROWS(X) HD_FOLD_ROWS(F)
#define OP_TILES X
#define OP_PIECES P
#include "graph/ops.def"
};
#ifdef HD_ISA_BF16
static const struct hd_cpu_row bf16_rows[HD_NOPS] = {
	HD_PRODUCT_ROWS(W, bf16) HD_HEADS_ROWS(W)
	HD_DENSE_ROWS(X) HD_OTHER_ROWS(X) HD_FAMILY_ROWS(X) HD_FOLD_ROWS(F)
#define OP_TILES X
#define OP_PIECES P
#include "graph/ops.def"
};
static const struct hd_cpu_row amx_rows[HD_NOPS] = {
	HD_PRODUCT_ROWS(W, amx) HD_HEADS_ROWS(W)
	HD_DENSE_ROWS(X) HD_OTHER_ROWS(X) HD_FAMILY_ROWS(X) HD_FOLD_ROWS(F)
#define OP_TILES X
#define OP_PIECES P
#include "graph/ops.def"
};
#endif

#define HD_ISA_VECTOR { flat_update, flat_measure, flat_add, flat_copy, flat_sumsq }

#endif
