/* dnnl.h -- what we use of oneDNN, in our words: products and convolutions prepared for one
 * shape, run by one thread.
 *
 * library.c is the only user. dnnl2.c speaks to versions 2.x and is the only file that
 * includes the library's headers; dnnl0.c stands in where the library is absent.
 *
 * 1. Operands are dense and row-major, images NCHW, as everywhere in the tree. Where the
 *    library computes faster on a layout of its own, run() reorders into scratch.
 * 2. A prepared object is read-only after make and shared by all threads. run() takes
 *    small objects (handles of operands) from the library's own heap and gives them back.
 * 3. If the library fails in run() (it has no other way than memory), every element of
 *    the result is not-a-number, which the guard of a step finds.
 *
 * Ownership: make() gives an object to its caller, destroy() frees it. Threads: make() and
 * destroy() outside the step loop, run() and scratch() from any, each with its own scratch. */
#ifndef HD_DEVICE_CPU_DNNL_H
#define HD_DEVICE_CPU_DNNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hd_dnnl;

enum hd_dnnl_conv_kind { HD_DNNL_CONV, HD_DNNL_CONV_DX, HD_DNNL_CONV_DW };

/* c[m,n] = a b, rows of c `cstep` apart; a and b are parts of larger matrices with rows
 * `astep` and `bstep` apart, stored transposed if ta, tb. */
struct hd_dnnl_matmul { int64_t m, n, k, astep, bstep, cstep; bool ta, tb; };
/* x[n,c,h,w] w[k,c/groups,r,s] y[n,k,p,q]; window elements lie dh and dw apart */
struct hd_dnnl_conv { enum hd_dnnl_conv_kind kind; int64_t n, c, h, w, k, r, s, p, q, sh, sw, ph, pw, groups,
	dh, dw; };

bool hd_dnnl_present(void);
/* The library's threads are a setting of the calling thread: one. */
void hd_dnnl_thread_init(void);

HD_MUST_USE enum hd_err hd_dnnl_matmul_make(struct hd_dnnl **made, const struct hd_dnnl_matmul *shape,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_dnnl_conv_make(struct hd_dnnl **made, const struct hd_dnnl_conv *shape,
	struct hd_diag *diag);
void hd_dnnl_destroy(struct hd_dnnl *made);              /* takes NULL */

size_t hd_dnnl_scratch(const struct hd_dnnl *made);      /* bytes, 64-byte aligned memory */
/* Operands in the order of the op: matmul a b -> c; conv x w -> y; conv_dx dy w -> dx; conv_dw dy x -> dw. */
void hd_dnnl_run(const struct hd_dnnl *made, const void *a, const void *b, void *out, void *scratch);

#endif
