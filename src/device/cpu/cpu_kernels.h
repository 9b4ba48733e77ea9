/* cpu_kernels.h -- the kernels of the processor back-end: one table of rows per
 * instruction set, and the few loops over flat vectors that are no ops.
 *
 * The frame of the `cpu` device opens with hd_cpu_path(), takes its table once
 * and shares the tiles of each call among its threads.
 *
 * 1. Our own rows give the same bits on every path, compiler and build: sums have
 *    a fixed order (16 lanes, then a tree; or one ascending chain of explicit
 *    fused multiply-adds), functions are our own polynomials.
 *    Those of HD_KERNELS_BF16 and HD_KERNELS_BF16_AMX are ours with products in bf16, whose bits bf16.h
 *    defines.
 * 2. Rows of the library (HD_KERNELS_LIBRARY) promise bits only between machines
 *    of equal kernel fingerprint.
 * 3. Every row has all slots; ops that are views have `ntiles` 0 and a tile that
 *    does nothing.
 * 4. prepare() and release() are called outside the step loop, on one thread; prepare()
 *    comes before ntiles() and scratch() of its call, which may read `prepared`.
 *    What prepare() made is read-only afterwards and shared by all threads.
 *
 * Threads: everything here is constant data or pure. */
#ifndef HD_DEVICE_CPU_CPU_KERNELS_H
#define HD_DEVICE_CPU_CPU_KERNELS_H

#include "device/device.h"
#include "device/kernel.h"
#include "device/optim.h"

struct hd_cpu_row {
	struct hd_kernel kernel;
	/* For one op and shape (operands without addresses). `*prepared` may be NULL on success. */
	enum hd_err (*prepare)(const struct hd_call *call, void **prepared, struct hd_diag *diag);
	void (*release)(void *prepared);          /* takes NULL */
	/* false: our own row does this shape (a function of shape alone); NULL: all */
	bool (*takes)(const struct hd_call *call);
};

/* Loops over flat vectors, any alignment, any length; the caller splits them among threads
 * (sumsq and measure excepted: their order is that of the whole segment). */
struct hd_cpu_vector {
	void   (*update)(const struct hd_step_scalars *scalars, float *param, const float *grad,
		float *slot0, float *slot1, uint64_t len);      /* bits of hd_optim_update_plain() */
	void   (*measure)(const struct hd_step_scalars *scalars, const float *param, const float *grad,
		/* bits of hd_optim_measure_plain() */
		float *slot0, float *slot1, uint64_t len, double sums[2]);
	void   (*add)(float *dst, const float *a, const float *b, uint64_t len);      /* dst may be a or b */
	void   (*copy)(float *dst, const float *src, uint64_t len);
	double (*sumsq)(const float *at, uint64_t len);         /* bits of hd_lanes_sumsq() */
};

/* Paths, widest first. */
#define HD_CPU_PATHS(X) X(avx512) X(avx2) X(portable)

/* The widest path that this processor has, or `wanted` if it has that; NULL otherwise.
 * `wanted` NULL or "auto": choose. The text is constant and lives for ever. */
const char *hd_cpu_path(const char *wanted);

/* [HD_NOPS], by enum hd_op; `path` as hd_cpu_path() gave it. HD_KERNELS_LIBRARY in a build
 * without the library gives our rows: a caller that was asked for it by name asks
 * hd_cpu_has_library() first, as hd_cpu_has_bf16() for HD_KERNELS_BF16 and hd_cpu_has_amx() for
 * HD_KERNELS_BF16_AMX. */
const struct hd_cpu_row *hd_cpu_table(enum hd_kernels kernels, const char *path);
bool hd_cpu_has_library(void);
/* Has the path products in bf16, and do they answer as bf16.h defines? */
bool hd_cpu_has_bf16(const char *path);
/* What products by AMX lack on a path, the first of these: kernels, a processor with tiles, a system that
 * lends them, answers that are those of bf16.h (of pairs too, which round the operands). */
enum hd_amx_lack {
	HD_AMX_COMPLETE,
	HD_AMX_NO_KERNELS,
	HD_AMX_NO_PROCESSOR,
	HD_AMX_NOT_LENT,
	HD_AMX_OTHERWISE,
};
/* Asks the system for its tiles: threads that are there and all later ones may use them then. */
enum hd_amx_lack hd_cpu_lacks_amx(const char *path);
/* Does a path lack nothing of it? */
bool hd_cpu_has_amx(const char *path);
const struct hd_cpu_vector *hd_cpu_vectors(const char *path);

/* To be called once by each thread of a device before its first tile: keeps the library
 * from growing threads of its own. */
void hd_cpu_thread_init(void);

#endif
