/* fold.inc.h -- what kernels that sum the gradient of a parameter over the parts of a wave share
 * (hd_fold_kernel in kernel.h): where a tile's part of each buffer lies. One source for all paths. */
#ifndef HD_DEVICE_CPU_FOLD_INC_H
#define HD_DEVICE_CPU_FOLD_INC_H

#include "device/cpu/gemm.inc.h"
#include "device/device.h"
#include "device/kernel.h"

/* A buffer's copy of a tile: its first element, and floats from a row to the next. */
struct rect { float *at; int64_t step; };

/* A tile in the flat buffers and in the kernel's own temporary ones, `len` floats each. */
struct fold_site { int64_t at, step; float *temp; int64_t len, temp_step; };

/* Temporary buffers pend at the levels below a wave's root: one a level. */
static inline int64_t fold_temps(uint32_t max_parts)
{
	int64_t n = 1;

	while (max_parts >>= 1)
		n++;
	return n;
}

static inline struct rect fold_rect(const struct fold_site *s, const float *flat, uint8_t temp)
{
	return temp ? (struct rect){ s->temp + (temp - 1) * s->len, s->temp_step } :
		(struct rect){ (float *)(uintptr_t)flat + s->at, s->step };
}

/* The moves of a part as what its leaf is added to and where the sum goes (kernel.h: they are a chain). */
static inline struct rect fold_chain(const struct fold_site *s, const struct hd_part *of,
	struct gemm_adds *adds)
{
	struct rect dst = { NULL, 0 };

	adds->n = 0;
	for (uint32_t k = 0; k < of->nfolds; k++) {
		dst = fold_rect(s, of->fold[k].dst, of->fold[k].dst_temp);
		if (of->fold[k].add)
			adds->of[adds->n++] = (struct gemm_add){ dst.at, dst.step };
	}
	return dst;
}

#endif
