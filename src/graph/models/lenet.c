#include "graph/models/rows.h"

#include <math.h>

enum { CHANNELS, HEIGHT, WIDTH, CLASSES };

const struct hd_model_param hd_lenet_params[] = {
	[CHANNELS] = { "channels", HD_ARG_INT, "1",  1,  1024, .about = "planes of an image" },
	[HEIGHT]   = { "height",   HD_ARG_INT, "28", 12, 1024, .about = "rows of an image" },
	[WIDTH]    = { "width",    HD_ARG_INT, "28", 12, 1024, .about = "columns of an image" },
	[CLASSES]  = { "classes",  HD_ARG_INT, "10", 1,  1 << 20, .about = "classes" },
	{ 0 },
};

enum { KERNEL = 5 };

/* Convolution, bias, ReLU and 2 x 2 max pooling. */
static uint32_t layer(struct hd_maker *m, const char *name, uint32_t x, int64_t in, int64_t out, int32_t pad)
{
	float bound = 1.0f / sqrtf((float)(in * KERNEL * KERNEL));
	uint32_t w = hd_make_param(m, name, ".weight", HD_INIT_UNIFORM, bound,
		HD_DIMS(out, in, KERNEL, KERNEL));
	uint32_t b = hd_make_param(m, name, ".bias", HD_INIT_UNIFORM, bound, HD_DIMS(out));
	uint32_t h = hd_make2(m, HD_OP_CONV2D, x, w, (struct hd_attr){ .i = { 1, 1, pad, pad } });

	h = hd_make2(m, HD_OP_BIAS, h, b, (struct hd_attr){ .i = { 1 } });
	h = hd_make1(m, HD_OP_ACT, h, (struct hd_attr){ .i = { HD_ACT_RELU } });
	return hd_make1(m, HD_OP_MAXPOOL2D, h, (struct hd_attr){ .i = { 2, 2, 2, 2 } });
}

enum hd_err hd_lenet_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	static const struct hd_attr relu = { .i = { HD_ACT_RELU } };
	struct hd_maker m = { graph, diag, HD_OK };
	int64_t channels = value[CHANNELS].n, height = value[HEIGHT].n, width = value[WIDTH].n;

	uint32_t x = hd_make_input(&m, "x", HD_F32, HD_DIMS(-1, channels, height, width));
	uint32_t h = layer(&m, "conv1", x, channels, 6, 2);
	h = layer(&m, "conv2", h, 6, 16, 0);
	int64_t flat = 16 * ((height / 2 - 4) / 2) * ((width / 2 - 4) / 2);
	h = hd_make1(&m, HD_OP_RESHAPE, h, (struct hd_attr){ .i = { -1, (int32_t)flat } });
	h = hd_make1(&m, HD_OP_ACT, hd_make_linear(&m, "fc1", h, flat, 120), relu);
	h = hd_make1(&m, HD_OP_ACT, hd_make_linear(&m, "fc2", h, 120, 84), relu);
	h = hd_make_linear(&m, "fc3", h, 84, value[CLASSES].n);
	hd_make_ends(&m, opts, x, h, 1, value[CLASSES].n);
	return m.err;
}
