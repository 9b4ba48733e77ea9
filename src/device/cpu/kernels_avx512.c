#define HD_ISA_BF16                       /* its table of bf16 products, too */
#include "device/cpu/table.inc.h"

static const struct hd_cpu_vector vector = HD_ISA_VECTOR;

const struct hd_cpu_isa hd_cpu_avx512 = { rows, library_rows, bf16_rows, &vector, math_unit };
