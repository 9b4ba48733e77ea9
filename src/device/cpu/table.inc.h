/* table.inc.h -- the rows of one path: which functions compute which op. Included once by
 * each kernels_<path>.c, which gives the path its compiler flags and its name.
 *
 * The lists give op and functions; rows of HD_DENSE_ROWS have a twin in library.h. */
#ifndef HD_DEVICE_CPU_TABLE_INC_H
#define HD_DEVICE_CPU_TABLE_INC_H

#include "device/cpu/attention.inc.h"
#include "device/cpu/cpu_isa.h"
#include "device/cpu/flat.inc.h"
#include "device/cpu/images.inc.h"
#include "device/cpu/library.h"
#include "device/cpu/matmul.inc.h"
#include "device/cpu/rows.inc.h"

static inline uint32_t no_tiles(const struct hd_call *call) { (void)call; return 0; }
static inline void view_tile(const struct hd_call *call, uint32_t tile, void *scratch) { (void)call; (void)tile; (void)scratch; }

static inline void math_unit(int function, const float in[HD_UNIT], float out[HD_UNIT])
{
	struct vf x = vf_load(in);

	switch ((enum hd_cpu_math)function) {
	case HD_MATH_EXP:       x = vf_exp(x); break;
	case HD_MATH_LOG:       x = vf_log(x); break;
	case HD_MATH_TANH:      x = vf_tanh(x); break;
	case HD_MATH_SIGMOID:   x = vf_sigmoid(x); break;
	case HD_MATH_GELU_GATE: x = vf_gelu_gate(x); break;
	}
	vf_store(out, x);
}

/*    op               tiles                scratch               tile */
#define HD_DENSE_ROWS(X)                                                              \
	X(MATMUL,          matmul_ntiles,       matmul_scratch,       matmul_tile)          \
	X(CONV2D,          conv2d_ntiles,       conv2d_scratch,       conv2d_tile)          \
	X(CONV2D_DX,       conv2d_dx_ntiles,    conv2d_dx_scratch,    conv2d_dx_tile)       \
	X(CONV2D_DW,       conv2d_dw_ntiles,    conv2d_dw_scratch,    conv2d_dw_tile)
#define HD_OTHER_ROWS(X)                                                            \
	X(ATTENTION,       attention_ntiles,    attention_scratch,    attention_tile)       \
	X(ATTENTION_DX,    attention_dx_ntiles, attention_dx_scratch, attention_dx_tile)    \
	X(RESHAPE,         no_tiles,            scratch_none,         view_tile)            \
	X(ADD,             map_ntiles,          scratch_none,         add_tile)             \
	X(SUB,             map_ntiles,          scratch_none,         sub_tile)             \
	X(MUL,             map_ntiles,          scratch_none,         mul_tile)             \
	X(SCALE,           map_ntiles,          scratch_none,         scale_tile)           \
	X(BIAS,            bias_ntiles,         scratch_none,         bias_tile)            \
	X(BIAS_ACT,        bias_ntiles,         scratch_none,         bias_act_tile)        \
	X(ACT,             map_ntiles,          scratch_none,         act_tile)             \
	X(ACT_DX,          map_ntiles,          scratch_none,         act_dx_tile)          \
	X(MAXPOOL2D,       maxpool2d_ntiles,    scratch_none,         maxpool2d_tile)       \
	X(MAXPOOL2D_DX,    maxpool2d_dx_ntiles, scratch_none,         maxpool2d_dx_tile)    \
	X(EMBED,           embed_ntiles,        scratch_none,         embed_tile)           \
	X(EMBED_DW,        embed_dw_ntiles,     scratch_none,         embed_dw_tile)        \
	X(SUM_ROWS,        sum_rows_ntiles,     scratch_none,         sum_rows_tile)        \
	X(LAYERNORM,       norm_ntiles,         scratch_none,         layernorm_tile)       \
	X(ADD_LAYERNORM,   norm_ntiles,         scratch_none,         add_layernorm_tile)   \
	X(LAYERNORM_DX,    norm_ntiles,         scratch_none,         layernorm_dx_tile)    \
	X(LAYERNORM_DG,    layernorm_dg_ntiles, scratch_none,         layernorm_dg_tile)    \
	X(SOFTMAX_XENT,    logits_ntiles,       scratch_none,         softmax_xent_tile)    \
	X(SOFTMAX_XENT_DX, logits_ntiles,       scratch_none,         softmax_xent_dx_tile) \
	X(MSE,             mse_ntiles,          scratch_none,         mse_tile)             \
	X(MSE_DX,          map_ntiles,          scratch_none,         mse_dx_tile)          \
	X(SUM64,           one_tile,            scratch_none,         sum64_tile)           \
	X(COUNT64,         one_tile,            scratch_none,         count64_tile)         \
	X(DROPOUT,         map_ntiles,          scratch_none,         dropout_tile)         \
	X(DROPOUT_DX,      map_ntiles,          scratch_none,         dropout_tile)

#define X(id, ntiles, scratch, tile) [HD_OP_##id] = { { ntiles, scratch, tile }, hd_cpu_prepare_none, hd_cpu_release_none },
#define L(id, stem) [HD_OP_##id] = { { hd_library_##stem##_ntiles, hd_library_scratch, hd_library_##stem##_tile }, \
	hd_library_##stem##_prepare, hd_library_release },
#define HD_ISA_TABLE { HD_DENSE_ROWS(X) HD_OTHER_ROWS(X) }
#define HD_ISA_LIBRARY_TABLE { HD_LIBRARY_OPS(L) HD_OTHER_ROWS(X) }
#define HD_ISA_VECTOR { flat_update, flat_add, flat_copy, flat_sumsq }

#endif
