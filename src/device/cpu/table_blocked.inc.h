/* table_blocked.inc.h -- rows of the family of op_blocked.h; see table.inc.h for the columns. */
#ifndef HD_DEVICE_CPU_TABLE_BLOCKED_INC_H
#define HD_DEVICE_CPU_TABLE_BLOCKED_INC_H

#include "device/cpu/conv_b.inc.h"

static const struct hd_fold_kernel conv2d_b_dw_fold = { 2, conv2d_b_dw_fold_takes, conv2d_b_dw_ntiles,
	conv2d_b_dw_fold_scratch,
	conv2d_b_dw_fold_tile, NULL, NULL };

#define HD_BLOCKED_FOLD_ROWS(F)                                                     \
	F(CONV2D_B_DW,     ROWS, conv2d_b_dw_ntiles, conv2d_b_dw_scratch, conv2d_b_dw_tile, &conv2d_b_dw_fold)
#define HD_BLOCKED_ROWS(X)                                                          \
	X(BLOCK,           ROWS, block_ntiles,        scratch_none,         block_tile)           \
	X(UNBLOCK,         ROWS, block_ntiles,        scratch_none,         block_tile)           \
	X(CONV2D_B,        ROWS, conv2d_b_ntiles,     conv2d_b_scratch,     conv2d_b_tile)        \
	X(CONV2D_B_DX,     ROWS, conv2d_b_ntiles,     conv2d_b_scratch,     conv2d_b_tile)

#endif
