/* bf16_rows.h -- products in bf16 (kernels_bf16.c), for the tables: the op matmul, and its gradient's fold.
 *
 * 1. To be called where hd_cpu_has_bf16() alone. The arithmetic is that of device/bf16.h. */
#ifndef HD_DEVICE_CPU_BF16_ROWS_H
#define HD_DEVICE_CPU_BF16_ROWS_H

#include "device/kernel.h"

uint32_t hd_bf16_matmul_ntiles(const struct hd_call *call);
size_t hd_bf16_matmul_scratch(const struct hd_call *call);
void hd_bf16_matmul_tile(const struct hd_call *call, uint32_t tile, void *scratch);
void hd_bf16_matmul_piece(const struct hd_call *call, uint32_t i, uint32_t n, void *scratch);
extern const struct hd_fold_kernel hd_bf16_matmul_fold;

/* Lanes of sum, a pair of a and a pair of b, as the processor adds them; the low half is the even term. */
void hd_bf16_unit(const float sum[16], const uint32_t a[16], const uint32_t b[16], float out[16]);

#endif
