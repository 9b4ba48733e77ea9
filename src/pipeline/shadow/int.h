/* int.h -- private to this folder: what a rank's list says of its own stage and its shadow's. */
#ifndef HD_PIPELINE_SHADOW_INT_H
#define HD_PIPELINE_SHADOW_INT_H

#include "pipeline/redundancy.h"

#define SHADOW_NOWHERE UINT32_MAX

static inline bool shadow_is_back(uint8_t op) { return op == HD_INS_B || op == HD_INS_I; }
/* It takes part in forward and backward, or moves their tensors. */
static inline bool shadow_is_pass(uint8_t op)
{
	return op <= HD_INS_RG || op == HD_INS_OFF || op == HD_INS_ON;
}

#endif
