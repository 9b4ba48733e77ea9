/* table_sequences.inc.h -- rows of the family of op_sequences.h; see table.inc.h for the columns. */
#ifndef HD_DEVICE_CPU_TABLE_SEQUENCES_INC_H
#define HD_DEVICE_CPU_TABLE_SEQUENCES_INC_H

#include "device/cpu/recurrent.inc.h"
#include "device/cpu/sequences.inc.h"

#define HD_SEQUENCES_ROWS(X)                                                                          \
	X(RMSNORM,         ROWS, norm_ntiles,          scratch_none,          rmsnorm_tile)           \
	X(ADD_RMSNORM,     ROWS, norm_ntiles,          scratch_none,          add_rmsnorm_tile)       \
	X(RMSNORM_DX,      ROWS, norm_ntiles,          scratch_none,          rmsnorm_dx_tile)        \
	X(RMSNORM_DG,      ROWS, layernorm_dg_ntiles,  scratch_none,          rmsnorm_dg_tile)        \
	X(ROTARY,          ROWS, rotary_ntiles,        rotary_scratch,        rotary_tile)            \
	X(SWIGLU,          ROWS, map_ntiles,           scratch_none,          swiglu_tile)            \
	X(SWIGLU_DX,       ROWS, map_ntiles,           scratch_none,          swiglu_dx_tile)         \
	X(LSTM,            ROWS, cell_ntiles,          cell_scratch,          lstm_tile)              \
	X(LSTM_DX,         ROWS, cell_ntiles,          cell_scratch,          lstm_dx_tile)           \
	X(GRU,             ROWS, cell_ntiles,          cell_scratch,          gru_tile)               \
	X(GRU_DX,          ROWS, cell_ntiles,          cell_scratch,          gru_dx_tile)            \
	X(RECUR_DW,        ROWS, recur_dw_ntiles,      recur_dw_scratch,      recur_dw_tile)          \
	X(MASK_TOKENS,     CALL, sample_ntiles,        scratch_none,          mask_tokens_tile)

#endif
