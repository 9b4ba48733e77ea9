#include "device/cpu/edges.inc.h"

const struct hd_edge_kernels hd_edges_portable = HD_EDGES_TABLE("portable");
