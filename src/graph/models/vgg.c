/* Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition" (2014),
 * configuration D (16 layers), with the names, storage and initial values of torchvision.
 *
 * torchvision averages whatever the convolutions leave to 7 x 7; here the classifier reads what
 * they leave. For 224 x 224 that is 7 x 7 too, so the weights are the same. */
#include "graph/models/rows.h"

#include <stdio.h>
#include <string.h>

enum { CHANNELS, HEIGHT, WIDTH, CLASSES, BASE, NORM, HIDDEN, DROPOUT };

const struct hd_model_param hd_vgg_params[] = {
	[CHANNELS] = { "channels", HD_ARG_INT,  "3",    1,  1024, .about = "planes of an image" },
	[HEIGHT]   = { "height",   HD_ARG_INT,  "224",  32, 4096, .about = "rows of an image" },
	[WIDTH]    = { "width",    HD_ARG_INT,  "224",  32, 4096, .about = "columns of an image" },
	[CLASSES]  = { "classes",  HD_ARG_INT,  "1000", 1,  1 << 20, .about = "classes" },
	[BASE]     = { "base",     HD_ARG_INT,  "64",   1,  4096,
	.about = "channels of the first layers; the deepest have 8 times as many" },
	[NORM]     = { "norm",     HD_ARG_WORD, "none", 0,  0,
	.about = "none; batch: after each convolution, over the virtual node" },
	[HIDDEN]   = { "hidden",   HD_ARG_INT,  "4096", 1,  1 << 20,
	.about = "width of the two hidden layers of the classifier" },
	[DROPOUT]  = { "dropout",  HD_ARG_REAL, "0.5",  0,  0.95,
	.about = "share of elements dropped in the classifier" },
	{ 0 },
};

/* Channels in units of the first; 0: a 2 x 2 pool. */
static const int layers[] = { 1, 1, 0, 2, 2, 0, 4, 4, 4, 0, 8, 8, 8, 0, 8, 8, 8, 0 };

static uint32_t convolutions(struct hd_maker *m, uint32_t x, int64_t base, bool norm)
{
	char name[32];
	int at = 0;                       /* torchvision numbers pools and activations too */

	for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
		if (layers[i] == 0) {
			x = hd_make_maxpool(m, x, 2, 2, 0);
			at++;
			continue;
		}
		snprintf(name, sizeof name, "features.%d", at++);
		x = hd_make_conv(m, name, x, (struct hd_conv){ base * layers[i], 3, 1, 1 });
		uint32_t b = hd_make_param(m, name, ".bias", HD_INIT_ZEROS, 0, HD_DIMS(base * layers[i]));
		x = hd_make2(m, HD_OP_BIAS, x, b, (struct hd_attr){ .i = { 1 } });
		if (norm) {
			snprintf(name, sizeof name, "features.%d", at++);
			x = hd_make_norm(m, name, x, 0);
		}
		x = hd_make_relu(m, x);
		at++;
	}
	return x;
}

static uint32_t linear(struct hd_maker *m, const char *name, uint32_t x, int64_t out)
{
	uint32_t w = hd_make_param(m, name, ".weight", HD_INIT_NORMAL, 0.01f,
		HD_DIMS(out, hd_make_dim(m, x, 1)));
	uint32_t b = hd_make_param(m, name, ".bias", HD_INIT_ZEROS, 0, HD_DIMS(out));

	x = hd_make2(m, HD_OP_MATMUL, x, w, (struct hd_attr){ .i = { 0, 1 } });
	return hd_make2(m, HD_OP_BIAS, x, b, (struct hd_attr){ .i = { -1 } });
}

static uint32_t hidden(struct hd_maker *m, const char *name, uint32_t x, int64_t out, float dropout)
{
	x = hd_make_relu(m, linear(m, name, x, out));
	return dropout > 0 ? hd_make1(m, HD_OP_DROPOUT, x, (struct hd_attr){ .f = { dropout } }) : x;
}

enum hd_err hd_vgg16_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	struct hd_maker m = { graph, diag, HD_OK };
	bool norm = strcmp(value[NORM].word, "batch") == 0;
	float dropout = (float)value[DROPOUT].real;

	if (!norm && strcmp(value[NORM].word, "none") != 0)
		return hd_fail(diag, HD_E_INVAL, "argument 'norm': '%s' is none of none, batch",
			value[NORM].word);
	uint32_t x = hd_make_input(&m, "x", HD_F32, HD_DIMS(-1, value[CHANNELS].n, value[HEIGHT].n,
		value[WIDTH].n));
	uint32_t h = convolutions(&m, x, value[BASE].n, norm);
	int64_t flat = hd_make_dim(&m, h, 1) * hd_make_dim(&m, h, 2) * hd_make_dim(&m, h, 3);
	if (m.err == HD_OK && flat > HD_MAX_EXTENT)
		return hd_fail(diag, HD_E_INVAL,
			"arguments 'height', 'width' and 'base': the classifier would read %lld numbers",
			(long long)flat);
	h = hd_make1(&m, HD_OP_RESHAPE, h, (struct hd_attr){ .i = { -1, (int32_t)flat } });
	h = hidden(&m, "classifier.0", h, value[HIDDEN].n, dropout);
	h = hidden(&m, "classifier.3", h, value[HIDDEN].n, dropout);
	h = linear(&m, "classifier.6", h, value[CLASSES].n);
	hd_make_ends(&m, opts, x, h, 1, value[CLASSES].n);
	return m.err;
}
