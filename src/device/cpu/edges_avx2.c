#include "device/cpu/edges.inc.h"

const struct hd_edge_kernels hd_edges_avx2 = HD_EDGES_TABLE("avx2");
