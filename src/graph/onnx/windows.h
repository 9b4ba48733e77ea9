/* windows.h -- where the windows of a convolution or a pool of ONNX lie.
 *
 * 1. Axes are depth, height, width, in this order; one that the op has not has extent 1, a window of 1 and
 *    no pads. So a sequence is an image of height 1, an image a volume of depth 1.
 * 2. Our ops are of images and pad both sides alike: other pads are put on by a node (hd_onnx_pad_uneven).
 * 3. A volume goes through ops of images: a window of depth 1 over all its slices, then one along the depth.
 *
 * Private to graph/onnx. */
#ifndef HD_GRAPH_ONNX_WINDOWS_H
#define HD_GRAPH_ONNX_WINDOWS_H

#include "graph/onnx/import.h"

enum { HD_WINDOW_AXES = 3, HD_DEPTH = 0, HD_HEIGHT = 1, HD_WIDTH = 2 };

struct hd_onnx_windows {
	uint32_t axes;                    /* that the op has: 1 to 3 */
	int64_t image[HD_WINDOW_AXES], size[HD_WINDOW_AXES], stride[HD_WINDOW_AXES],
		before[HD_WINDOW_AXES], after[HD_WINDOW_AXES], apart[HD_WINDOW_AXES];
	bool explicit_pads;               /* auto_pad does not say them */
};

/* Extents of input 0, strides, dilations and pads; sizes are those of the kernel, input 1, or where there is
 * none kernel_shape. `pads` false: pads are the caller's (transposed convolutions). */
HD_MUST_USE enum hd_err hd_onnx_windows_read(struct hd_onnx_call *call, const struct hd_onnx_val *kernel,
	bool pads, struct hd_onnx_windows *w);
/* `axes` numbers of an attribute; absent: `standard`. */
HD_MUST_USE enum hd_err hd_onnx_window_ints(struct hd_onnx_call *call, const char *name, uint32_t axes,
	int64_t standard, int64_t least, int64_t out[HD_WINDOW_AXES]);
/* Pads of one axis, at extent `at` of x, that differ: put on by a node; then there are none. */
HD_MUST_USE enum hd_err hd_onnx_pad_uneven(struct hd_onnx_call *call, struct hd_onnx_windows *w,
	uint32_t axis, int32_t at, float value, uint32_t *x);
/* Value `x` of input 0 as images [N,C,H,W], and a result of that form as output 0 (not of volumes). */
HD_MUST_USE enum hd_err hd_onnx_image(struct hd_onnx_call *call, const struct hd_onnx_windows *w,
	uint32_t *x);
HD_MUST_USE enum hd_err hd_onnx_put_image(struct hd_onnx_call *call, const struct hd_onnx_windows *w,
	uint32_t y);

#endif
