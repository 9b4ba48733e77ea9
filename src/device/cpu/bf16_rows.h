/* bf16_rows.h -- products in bf16, for the tables: the op matmul and its gradient's fold, once by AVX512-BF16
 * (kernels_bf16.c) and once by AMX (kernels_amx.c).
 *
 * 1. To be called where hd_cpu_has_bf16() alone, or hd_cpu_has_amx(). The arithmetic is that of
 *    device/bf16.h. */
#ifndef HD_DEVICE_CPU_BF16_ROWS_H
#define HD_DEVICE_CPU_BF16_ROWS_H

#include "device/kernel.h"

#define HD_BF16_ROWS(kind) \
	uint32_t hd_##kind##_matmul_ntiles(const struct hd_call *call); \
	size_t hd_##kind##_matmul_scratch(const struct hd_call *call); \
	void hd_##kind##_matmul_tile(const struct hd_call *call, uint32_t tile, void *scratch); \
	void hd_##kind##_matmul_piece(const struct hd_call *call, uint32_t i, uint32_t n, void *scratch); \
	extern const struct hd_fold_kernel hd_##kind##_matmul_fold;
HD_BF16_ROWS(bf16)
HD_BF16_ROWS(amx)
#undef HD_BF16_ROWS

/* Lanes of sum, a pair of a and a pair of b, as the processor adds them; the low half is the even term. */
void hd_bf16_unit(const float sum[16], const uint32_t a[16], const uint32_t b[16], float out[16]);
/* A tile: sum + 16 rows of 16 pairs of a times 16 pairs of 16 columns of b. */
void hd_amx_unit(float sum[16][16], uint32_t a[16][16], uint32_t b[16][16], float out[16][16]);

#endif
