#include "device/cpu/table.inc.h"

static const struct hd_cpu_vector vector = HD_ISA_VECTOR;

const struct hd_cpu_isa hd_cpu_avx2 = { rows, library_rows, NULL, NULL, &vector, math_unit };
