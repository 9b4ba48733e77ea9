#define HD_BF16
#define HD_AMX

#include "device/cpu/bf16_rows.h"

#include "device/cpu/matmul.inc.h"
#include "device/cpu/peak.h"

uint32_t hd_amx_matmul_ntiles(const struct hd_call *call) { return matmul_ntiles(call); }
size_t hd_amx_matmul_scratch(const struct hd_call *call) { return matmul_scratch(call); }

void hd_amx_matmul_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	amx_begin();
	matmul_tile(call, tile, scratch);
	amx_end();
}

void hd_amx_matmul_piece(const struct hd_call *call, uint32_t i, uint32_t n, void *scratch)
{
	amx_begin();
	matmul_piece(call, i, n, scratch);
	amx_end();
}

static void fold_tile(const struct hd_call *call, const struct hd_fold_job *job, uint32_t tile, void *scratch)
{
	amx_begin();
	matmul_fold_tile(call, job, tile, scratch);
	amx_end();
}

static void fold_piece(const struct hd_call *call, const struct hd_fold_job *job, uint32_t i, uint32_t n,
	void *scratch)
{
	amx_begin();
	matmul_fold_piece(call, job, i, n, scratch);
	amx_end();
}

const struct hd_fold_kernel hd_amx_matmul_fold = { 2, matmul_fold_takes, matmul_fold_ntiles,
	matmul_fold_scratch, fold_tile, fold_piece, matmul_fold_divides };

void hd_amx_unit(float sum[16][16], uint32_t a[16][16], uint32_t b[16][16], float out[16][16])
{
	amx_begin();
	AMX_FENCE();
	_tile_loadd(0, sum, AMX_LINE);
	_tile_loadd(1, a, AMX_LINE);
	_tile_loadd(2, b, AMX_LINE);
	_tile_dpbf16ps(0, 1, 2);
	_tile_stored(0, out, AMX_LINE);
	AMX_FENCE();
	amx_end();
}

/* As in micro_amx.inc.h, without reading: four sums, each of operands that another one shares. */
float hd_peak_run_amx(uint64_t rounds)
{
	uint32_t at[16][16];
	float out[16][16];

	for (int i = 0; i < 256; i++)
		at[i / 16][i % 16] = 0x3f803f80;
	amx_begin();
	AMX_FENCE();
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
	_tile_loadd(4, at, AMX_LINE);
	_tile_loadd(5, at, AMX_LINE);
	_tile_loadd(6, at, AMX_LINE);
	_tile_loadd(7, at, AMX_LINE);
	for (uint64_t r = 0; r < rounds; r++) {
		_tile_dpbf16ps(0, 4, 6);
		_tile_dpbf16ps(1, 4, 7);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
	}
	_tile_stored(0, out, AMX_LINE);
	AMX_FENCE();
	amx_end();
	return out[0][0];
}

double hd_peak_flops_amx(void) { return 2.0 * 4 * AMX_TILE * AMX_TILE * 2 * AMX_TILE; }
