/* table_tensors.inc.h -- rows of the family of op_tensors.h; see table.inc.h for the columns. */
#ifndef HD_DEVICE_CPU_TABLE_TENSORS_INC_H
#define HD_DEVICE_CPU_TABLE_TENSORS_INC_H

#include "device/cpu/reduce.inc.h"

#define HD_TENSORS_ROWS(X)                                                            \
	X(DIV,             ROWS, map_ntiles,          scratch_none,         div_tile)             \
	X(MAXIMUM,         ROWS, map_ntiles,          scratch_none,         maximum_tile)         \
	X(MINIMUM,         ROWS, map_ntiles,          scratch_none,         minimum_tile)         \
	X(LESS,            ROWS, map_ntiles,          scratch_none,         less_tile)            \
	X(LESS_EQ,         ROWS, map_ntiles,          scratch_none,         less_eq_tile)         \
	X(EQUAL,           ROWS, map_ntiles,          scratch_none,         equal_tile)           \
	X(WHERE,           ROWS, map_ntiles,          scratch_none,         where_tile)           \
	X(EXPAND,          ROWS, map_ntiles,          scratch_none,         expand_tile)          \
	X(REDUCE_SUM,      ROWS, reduce_ntiles,       scratch_none,         reduce_sum_tile)      \
	X(REDUCE_MEAN,     ROWS, reduce_ntiles,       scratch_none,         reduce_mean_tile)     \
	X(REDUCE_MAX,      ROWS, reduce_ntiles,       scratch_none,         reduce_max_tile)      \
	X(REDUCE_MIN,      ROWS, reduce_ntiles,       scratch_none,         reduce_min_tile)      \
	X(REDUCE_PROD,     ROWS, reduce_ntiles,       scratch_none,         reduce_prod_tile)     \
	X(ARGMAX,          ROWS, argmax_ntiles,       scratch_none,         argmax_tile)          \
	X(SOFTMAX,         ROWS, norm_ntiles,         scratch_none,         softmax_tile)         \
	X(SOFTMAX_DX,      ROWS, norm_ntiles,         scratch_none,         softmax_dx_tile)      \
	X(LOG_SOFTMAX,     ROWS, norm_ntiles,         scratch_none,         log_softmax_tile)     \
	X(LOG_SOFTMAX_DX,  ROWS, norm_ntiles,         scratch_none,         log_softmax_dx_tile)  \
	X(PERMUTE,         ROWS, map_ntiles,          scratch_none,         permute_tile)         \
	X(SLICE,           ROWS, map_ntiles,          scratch_none,         slice_tile)           \
	X(SLICE_DX,        ROWS, blocks_ntiles,       scratch_none,         slice_dx_tile)        \
	X(CONCAT,          ROWS, blocks_ntiles,       scratch_none,         concat_tile)          \
	X(PAD,             ROWS, blocks_ntiles,       scratch_none,         pad_tile)             \
	X(GATHER,          ROWS, gather_ntiles,       scratch_none,         gather_tile)          \
	X(SCATTER_ADD,     ROWS, scatter_add_ntiles,  scratch_none,         scatter_add_tile)     \
	X(ONE_HOT,         ROWS, one_hot_ntiles,      scratch_none,         one_hot_tile)         \
	X(CAST,            ROWS, map_ntiles,          scratch_none,         cast_tile)            \
	X(CONTRACT,        ROWS, contract_ntiles,     contract_scratch,     contract_tile)

#endif
