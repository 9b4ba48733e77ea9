#include "device/cpu/table.inc.h"

static const struct hd_cpu_row rows[HD_NOPS] = HD_ISA_TABLE, library_rows[HD_NOPS] = HD_ISA_LIBRARY_TABLE,
	bf16_rows[HD_NOPS] = HD_ISA_BF16_TABLE;
static const struct hd_cpu_vector vector = HD_ISA_VECTOR;

const struct hd_cpu_isa hd_cpu_avx512 = { rows, library_rows, bf16_rows, &vector, math_unit };
