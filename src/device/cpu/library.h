/* library.h -- rows of the kernel table whose work is oneDNN's.
 *
 * The tables of all paths take them when a job asks for the library's kernels: the
 * library looks at the processor itself.
 *
 * 1. Tiles are shapes of their own for the library: the last row or column of tiles
 *    may be smaller and has its own prepared object. A row holds at most four.
 * 2. conv2d_dw is one tile: its sum over samples is the library's.
 * 3. What our kernels do faster they do, by shape alone: takes(). */
#ifndef HD_DEVICE_CPU_LIBRARY_H
#define HD_DEVICE_CPU_LIBRARY_H

#include "device/cpu/cpu_kernels.h"

#define HD_LIBRARY_OPS(X) X(MATMUL, matmul) X(CONV2D, conv2d) X(CONV2D_DX, conv2d_dx) X(CONV2D_DW, conv2d_dw)

#define X(id, stem)                                                                                         \
	bool hd_library_##stem##_takes(const struct hd_call *call);                                         \
	uint32_t hd_library_##stem##_ntiles(const struct hd_call *call);                                    \
	enum hd_err hd_library_##stem##_prepare(const struct hd_call *call, void **prepared,                \
		struct hd_diag *diag);
HD_LIBRARY_OPS(X)
#undef X

size_t hd_library_scratch(const struct hd_call *call);
void hd_library_matmul_tile(const struct hd_call *call, uint32_t tile, void *scratch);
void hd_library_conv2d_tile(const struct hd_call *call, uint32_t tile, void *scratch);
void hd_library_conv2d_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch);
void hd_library_conv2d_dw_tile(const struct hd_call *call, uint32_t tile, void *scratch);
void hd_library_release(void *prepared);

#endif
