/* cpu_isa.h -- what each compiled path offers to the tables (cpu_kernels.c) and to tests.
 *
 * 1. A path's objects may only be called when hd_cpu_path() says that the processor has it. */
#ifndef HD_DEVICE_CPU_CPU_ISA_H
#define HD_DEVICE_CPU_CPU_ISA_H

#include "device/cpu/cpu_kernels.h"

struct hd_cpu_isa {
	const struct hd_cpu_row *rows;            /* [HD_NOPS] all ours */
	/* [HD_NOPS] the library's where library.h has them, else ours */
	const struct hd_cpu_row *library_rows;
	/* [HD_NOPS] products in bf16, else ours; NULL: the path has no instructions for them */
	const struct hd_cpu_row *bf16_rows;
	const struct hd_cpu_row *amx_rows;        /* the same by AMX */
	const struct hd_cpu_vector *vector;
	/* Sixteen values of a function of vmath.h for tests; pow is x^2.5. */
	void (*math)(int function, const float in[16], float out[16]);
};

#define X(path) extern const struct hd_cpu_isa hd_cpu_##path;
HD_CPU_PATHS(X)
#undef X

const struct hd_cpu_isa *hd_cpu_isa_of(const char *path);        /* for tests */

enum hd_cpu_math { HD_MATH_EXP, HD_MATH_LOG, HD_MATH_TANH, HD_MATH_SIGMOID, HD_MATH_GELU_GATE,
	HD_MATH_LOG_ANY, HD_MATH_EXPM1,
	HD_MATH_SOFTPLUS, HD_MATH_ERF, HD_MATH_NORMAL, HD_MATH_POW, HD_MATH_SIN,
	HD_MATH_COS, HD_MATH_ATAN, HD_NMATHS };

/* For rows that need no preparation. */
enum hd_err hd_cpu_prepare_none(const struct hd_call *call, void **prepared, struct hd_diag *diag);
void hd_cpu_release_none(void *prepared);

#endif
