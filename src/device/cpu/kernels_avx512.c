#define HD_ISA_BF16                       /* its tables of products in bf16, too */
#include "device/cpu/table.inc.h"

static const struct hd_cpu_vector vector = HD_ISA_VECTOR;

const struct hd_cpu_isa hd_cpu_avx512 = { rows, library_rows, bf16_rows, amx_rows, &vector, math_unit };
