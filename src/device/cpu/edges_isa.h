/* edges_isa.h -- the compiled forms of edges.inc.h, and which one serves; private to the back-end.
 *
 * 1. A path's table may only be called when hd_cpu_path() says that the processor has it. */
#ifndef HD_DEVICE_CPU_EDGES_ISA_H
#define HD_DEVICE_CPU_EDGES_ISA_H

#include "device/cpu/cpu_kernels.h"
#include "device/spmm.h"

#define X(path) extern const struct hd_edge_kernels hd_edges_##path;
HD_CPU_PATHS(X)
#undef X

#endif
