/* table_images.inc.h -- rows of the family of op_images.h; see table.inc.h for the columns. */
#ifndef HD_DEVICE_CPU_TABLE_IMAGES_INC_H
#define HD_DEVICE_CPU_TABLE_IMAGES_INC_H

#include "device/cpu/groups.inc.h"
#include "device/cpu/pools.inc.h"

#define HD_IMAGES_ROWS(X)                                                                 \
	X(AVGPOOL2D,       ROWS, pool2d_ntiles,       scratch_none,         avgpool2d_tile)       \
	X(AVGPOOL2D_DX,    ROWS, pool2d_dx_ntiles,    scratch_none,         avgpool2d_dx_tile)    \
	X(GROUPNORM,       ROWS, groupnorm_ntiles,    scratch_none,         groupnorm_tile)       \
	X(GROUPNORM_DX,    ROWS, groupnorm_ntiles,    scratch_none,         groupnorm_dx_tile)    \
	X(GROUPNORM_DG,    ROWS, groupnorm_dg_ntiles, scratch_none,         groupnorm_dg_tile)

#endif
