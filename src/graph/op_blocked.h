/* op_blocked.h -- images and kernels in blocks of 16 channels.
 * Lines of the op table; op.h joins the families and says what the columns mean.
 *
 * A blocked image is an ordinary value [N,B,H,W,16]: element (n, c, h, w) lies at
 * (n, c / 16, h, w, c % 16), B is C / 16 rounded up. Kernels and their gradients stay
 * [K,C,R,S], so parameters, checkpoints and layouts know nothing of blocks.
 *
 * 1. Channels past the last real one are zero where an op here makes them, and are not
 *    read: the extents of the kernel, or the attribute c, say how many are real.
 * 2. Elementwise ops take blocked images as they are. */
#ifndef HD_GRAPH_OP_BLOCKED_H
#define HD_GRAPH_OP_BLOCKED_H

enum { HD_BLOCK = 16 };                   /* channels of a block */

#define HD_OPS_BLOCKED(X) \
	X(BLOCK,         "block",         1, 1, MAP,       "",       "x[N,C,H,W] -> [N,B,H,W,16]")                                   \
	X(UNBLOCK,       "unblock",       1, 1, MAP,       "c",      "x[N,B,H,W,16] -> [N,c,H,W]")                                   \
	X(CONV2D_B,      "conv2d_b",      2, 1, DENSE,     "sh sw ph pw", "conv2d of x[N,B,H,W,16] w[K,C,R,S] -> [N,K/16,P,Q,16]")    \
	X(CONV2D_B_DX,   "conv2d_b_dx",   3, 1, DENSE,     "sh sw ph pw", "dy w x(shape only) -> dx; dy, x, dx blocked")              \
	X(CONV2D_B_DW,   "conv2d_b_dw",   3, 1, DENSE,     "sh sw ph pw", "dy x w(shape only) -> dw[K,C,R,S]; dy, x blocked")

#endif
