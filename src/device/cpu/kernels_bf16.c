#define HD_BF16
/* of peak.inc.h: the chain is the sum, not a factor */
#define HD_PEAK_TERM(sum, x, y) lane_fma(x, y, sum)

#include "device/cpu/bf16_rows.h"

#include "device/cpu/matmul.inc.h"
#include "device/cpu/peak.h"
#include "device/cpu/peak.inc.h"

uint32_t hd_bf16_matmul_ntiles(const struct hd_call *call) { return matmul_ntiles(call); }
size_t hd_bf16_matmul_scratch(const struct hd_call *call) { return matmul_scratch(call); }

void hd_bf16_matmul_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	matmul_tile(call, tile, scratch);
}

void hd_bf16_matmul_piece(const struct hd_call *call, uint32_t i, uint32_t n, void *scratch)
{
	matmul_piece(call, i, n, scratch);
}

float hd_peak_run_bf16(uint64_t rounds) { return peak_run(rounds); }
double hd_peak_flops_bf16(void) { return peak_flops_per_round * LANE_TERMS; }

const struct hd_fold_kernel hd_bf16_matmul_fold = { 2, matmul_fold_takes, matmul_fold_ntiles,
	matmul_fold_scratch, matmul_fold_tile, matmul_fold_piece, matmul_fold_divides };

void hd_bf16_unit(const float sum[16], const uint32_t a[16], const uint32_t b[16], float out[16])
{
	part_store(out, lane_fma((part)_mm512_loadu_si512(a), (part)_mm512_loadu_si512(b), part_load(sum)));
}
