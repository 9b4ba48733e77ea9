/* edges.inc.h -- the table of kernels along edges of one path. */
#include "device/cpu/edges_isa.h"
#include "device/cpu/spmm.inc.h"

#define HD_EDGES_TABLE(name) { .path = name, .spmm = spmm, .rows = spmm_rows, .plain = spmm_plain }
