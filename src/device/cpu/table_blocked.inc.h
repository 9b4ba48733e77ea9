/* table_blocked.inc.h -- rows of the family of op_blocked.h; see table.inc.h for the columns. */
#ifndef HD_DEVICE_CPU_TABLE_BLOCKED_INC_H
#define HD_DEVICE_CPU_TABLE_BLOCKED_INC_H

#include "device/cpu/winograd.inc.h"

#define HD_BLOCKED_ROWS(X)                                                          \
	X(BLOCK,           ROWS, block_ntiles,        scratch_none,         block_tile)           \
	X(UNBLOCK,         ROWS, block_ntiles,        scratch_none,         block_tile)           \
	X(CONV2D_B,        ROWS, conv2d_b_ntiles,     conv2d_b_scratch,     conv2d_b_tile)        \
	X(CONV2D_B_DX,     ROWS, conv2d_b_ntiles,     conv2d_b_scratch,     conv2d_b_tile)        \
	X(CONV2D_B_DW,     ROWS, conv2d_b_dw_ntiles,  conv2d_b_dw_scratch,  conv2d_b_dw_tile)

#endif
