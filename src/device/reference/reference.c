#include "device/reference/reference.h"

#include "base/lanes.h"
#include "device/grid.h"

/* Units per tile: small enough that the little shapes of tests have several tiles. */
enum { TILE_UNITS = 32 };

uint64_t hd_ref_elems(const struct hd_call *call) { return call->out[0].elems; }
uint64_t hd_ref_rows(const struct hd_call *call) { return (uint64_t)hd_rows(&call->out[0]); }
uint64_t hd_ref_whole(const struct hd_call *call) { (void)call; return 1; }
size_t hd_ref_no_scratch(const struct hd_call *call) { (void)call; return 0; }

static const struct hd_ref_op *find(uint16_t op)
{
	static const struct hd_ref_op *(*const files[])(uint16_t op) = {
		hd_ref_batch, hd_ref_blocked, hd_ref_dense, hd_ref_images, hd_ref_map, hd_ref_ops,
		hd_ref_sequences, hd_ref_tensors, hd_ref_reduce,
	};
	enum { NFILES = sizeof files / sizeof files[0] };

	for (size_t i = 0; i + 1 < NFILES; i++)
		if (files[i](op)->run)
			return files[i](op);
	return files[NFILES - 1](op);
}

static uint32_t ntiles(const struct hd_call *call)
{
	return (uint32_t)((find(call->op)->units(call) + TILE_UNITS - 1) / TILE_UNITS);
}

static size_t scratch_bytes(const struct hd_call *call) { return find(call->op)->scratch(call); }

static void tile(const struct hd_call *call, uint32_t itile, void *scratch)
{
	const struct hd_ref_op *op = find(call->op);
	uint64_t units = op->units(call), first = (uint64_t)itile * TILE_UNITS;

	op->run(call, first, first + TILE_UNITS < units ? first + TILE_UNITS : units, scratch);
}

static enum hd_err prepare(const struct hd_call *call, void **prepared, struct hd_diag *diag)
{
	(void)call;
	(void)diag;
	*prepared = NULL;
	return HD_OK;
}

static void release(void *prepared) { (void)prepared; }

static const struct hd_cpu_row rows[HD_NOPS] = {
#define X(id, ...) \
	[HD_OP_##id] = { { ntiles, scratch_bytes, tile, false, NULL, NULL }, prepare, release, NULL },
	HD_OPS(X)
#define OP X
#include "graph/ops.def"
#undef X
};

const struct hd_cpu_row *hd_ref_table(void) { return rows; }

/* Products in bf16 are defined bit for bit: these are they. */
static uint32_t bf16_ntiles(const struct hd_call *call)
{
	return (uint32_t)((hd_ref_elems(call) + TILE_UNITS - 1) / TILE_UNITS);
}

#define BF16_TILE(kind) \
	static void kind##_tile(const struct hd_call *call, uint32_t itile, void *scratch) \
	{ \
		uint64_t units = hd_ref_elems(call), first = (uint64_t)itile * TILE_UNITS; \
		(void)scratch; \
		hd_ref_matmul_##kind(call, first, first + TILE_UNITS < units ? first + TILE_UNITS : \
			units); \
	}
BF16_TILE(bf16)
BF16_TILE(amx)
#undef BF16_TILE

#define BF16_ROW(id, kind) \
	[HD_OP_##id] = { { HD_OP_##id == HD_OP_MATMUL ? bf16_ntiles : ntiles, scratch_bytes, \
		HD_OP_##id == HD_OP_MATMUL ? kind##_tile : tile, false, NULL, NULL }, \
		prepare, release, NULL },
static const struct hd_cpu_row bf16_rows[HD_NOPS] = {
#define X(id, ...) BF16_ROW(id, bf16)
	HD_OPS(X)
#define OP X
#include "graph/ops.def"
#undef X
};
static const struct hd_cpu_row amx_rows[HD_NOPS] = {
#define X(id, ...) BF16_ROW(id, amx)
	HD_OPS(X)
#define OP X
#include "graph/ops.def"
#undef X
};
#undef BF16_ROW

static void add(float *dst, const float *a, const float *b, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		dst[i] = a[i] + b[i];
}

static void copy(float *dst, const float *src, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		dst[i] = src[i];
}

static double sumsq(const float *at, uint64_t len) { return hd_lanes_sumsq(at, len); }

const struct hd_cpu_vector hd_ref_vector = {
	.update = hd_optim_update_plain, .measure = hd_optim_measure_plain, .add = add, .copy = copy,
		.sumsq = sumsq,
};

static void no_init(void) { }

static enum hd_err reference_open(struct hd_device *device, const struct hd_device_spec *spec,
	struct hd_diag *diag)
{
	const struct hd_cpu_row *table = spec->kernels == HD_KERNELS_BF16 ? bf16_rows :
		spec->kernels == HD_KERNELS_BF16_AMX ? amx_rows : rows;

	return hd_grid_open(device, spec, &(struct hd_grid_kernels){ table, table, &hd_ref_vector, no_init,
		"none", NULL }, diag);
}

const struct hd_device_ops hd_device_reference = {
	HD_GRID_OPS,
	.name = "reference", .about = "plain loops computed in f64: slow, the oracle of the others",
	.powers = HD_DEVICE_HOST_MEMORY, .open = reference_open,
};
