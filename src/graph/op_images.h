/* op_images.h -- image ops beyond the core: average pools, norms of groups.
 * Lines of the op table; op.h joins the families and says what the columns mean.
 *
 * Pools: windows kh x kw, sh and sw apart, over an image with ph rows and pw columns of pads
 * on each side. Pads are smaller than a window, so that every window sees the image.
 * A window over the whole image is the global average pool.
 *
 * Norm of groups: Wu and He, "Group normalization" (2018). Each sample's channels are cut into
 * `groups` groups of neighbours; one group: layer norm of images; groups = channels:
 * instance norm. Gradient of beta: sum_rows over axis 1. */
#ifndef HD_GRAPH_OP_IMAGES_H
#define HD_GRAPH_OP_IMAGES_H

#define HD_OPS_IMAGES(X) \
	X(AVGPOOL2D,    "avgpool2d",    1, 1, MAP,       "kh kw sh sw ph pw all", "x[N,C,H,W] -> [N,C,P,Q]: mean of a window; all = 1: pads count as zeros, else they do not count") \
	X(AVGPOOL2D_DX, "avgpool2d_dx", 2, 1, MAP,       "kh kw sh sw ph pw all", "dy x(shape only) -> dx")                                 \
	X(GROUPNORM,    "groupnorm",    3, 2, REDUCTION, "groups f:eps", "x[N,C,..] gamma[C] beta[C] -> y[N,C,..], stats[N,groups,2] (mean, 1/deviation)") \
	X(GROUPNORM_DX, "groupnorm_dx", 4, 1, REDUCTION, "groups", "dy x gamma stats -> dx")                                              \
	X(GROUPNORM_DG, "groupnorm_dg", 3, 1, REDUCTION, "groups", "dy x stats -> dgamma[C]")

#endif
