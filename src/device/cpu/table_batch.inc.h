/* table_batch.inc.h -- rows of the family of op_batch.h; see table.inc.h for the columns. */
#ifndef HD_DEVICE_CPU_TABLE_BATCH_INC_H
#define HD_DEVICE_CPU_TABLE_BATCH_INC_H

#include "device/cpu/batch.inc.h"

#define HD_BATCH_ROWS(X)                                                                           \
	X(BATCHNORM,       CALL, batchnorm_ntiles,      scratch_none,         batchnorm_tile)      \
	X(BATCHNORM_DX,    CALL, batchnorm_dx_ntiles,   scratch_none,         batchnorm_dx_tile)   \
	X(BATCHNORM_SUMS,  CALL, batchnorm_sums_ntiles, scratch_none,         batchnorm_sums_tile) \
	X(BATCHNORM_DP,    CALL, one_tile,              scratch_none,         batchnorm_dp_tile)   \
	X(BATCHNORM_MOMENTS,  CALL, batchnorm_moments_ntiles,  scratch_none,  batchnorm_moments_tile)  \
	X(BATCHNORM_SYNC,     CALL, one_tile,                  scratch_none,  batchnorm_sync_tile)     \
	X(BATCHNORM_APPLY,    CALL, batchnorm_apply_ntiles,    scratch_none,  batchnorm_apply_tile)    \
	X(BATCHNORM_APPLY_DX, CALL, batchnorm_apply_dx_ntiles, scratch_none,  batchnorm_apply_dx_tile)

#endif
