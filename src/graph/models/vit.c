/* The vision transformer of Dosovitskiy et al., "An image is worth 16x16 words" (2020): an image's patches
 * are
 * tokens, a token of its own tells the class; norms before each block. Names and storage ([out, in]) of the
 * published files of Hugging Face's ViTForImageClassification. */
#include "graph/models/rows.h"

#include <stdio.h>
#include <string.h>

enum { LAYERS, WIDTH, HEADS, HIDDEN, CHANNELS, IMAGE, PATCH, CLASSES, DROPOUT, EPS, BIAS, ACT };

const struct hd_model_param hd_vit_params[] = {
	[LAYERS]   = { "layers",   HD_ARG_INT,  "4",     1, 1000,    .about = "transformer blocks" },
	[WIDTH]    = { "width",    HD_ARG_INT,  "128",   2, 1 << 16,
		.about = "channels of a token; a multiple of heads" },
	[HEADS]    = { "heads",    HD_ARG_INT,  "4",     1, 1024,    .about = "attention heads" },
	[HIDDEN]   = { "hidden",   HD_ARG_INT,  "0",     0, 1 << 18,
	.about = "channels inside the mlp; 0: four times width" },
	[CHANNELS] = { "channels", HD_ARG_INT,  "3",     1, 1024,    .about = "planes of an image" },
	[IMAGE]    = { "image",    HD_ARG_INT,  "224",   1, 4096,
	.about = "rows and columns of an image" },
	[PATCH]    = { "patch",    HD_ARG_INT,  "16",    1, 4096,
		   .about = "rows and columns of a patch; divides image" },
	[CLASSES]  = { "classes",  HD_ARG_INT,  "1000",  1, 1 << 20, .about = "classes" },
	[DROPOUT]  = { "dropout",  HD_ARG_REAL, "0",     0, 0.95,
	.about = "share of elements dropped after embedding, attention and mlp" },
	[EPS]      = { "eps",      HD_ARG_REAL, "1e-12", 1e-30, 1,
	.about = "added to the variance of norms" },
	[BIAS]     = { "bias",     HD_ARG_WORD, "true",  0, 0,
	.about = "true: q, k and v have biases" },
	[ACT]      = { "act",      HD_ARG_WORD, "gelu",  0, 0,
		      .about = "of the mlp: gelu, gelu_tanh, relu, silu" },
	{ 0 },
};

static const float init_scale = 0.02f;
static const struct hd_attr none, turned = { .i = { 0, 1 } };

struct vit { struct hd_maker m; int64_t width, hidden; int32_t heads; bool bias; enum hd_act act;
	float dropout, eps; };

static uint32_t norm(struct vit *v, const char *prefix, const char *name, uint32_t x)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	uint32_t gamma = hd_make_param(&v->m, full, ".weight", HD_INIT_ONES, 0, HD_DIMS(v->width));
	uint32_t beta = hd_make_param(&v->m, full, ".bias", HD_INIT_ZEROS, 0, HD_DIMS(v->width));
	return hd_make3(&v->m, HD_OP_LAYERNORM, x, gamma, beta, (struct hd_attr){ .f = { v->eps } });
}

static uint32_t linear(struct vit *v, const char *prefix, const char *name, uint32_t x, int64_t in,
	int64_t out,
	bool bias)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	x = hd_make2(&v->m, HD_OP_MATMUL, x, hd_make_param(&v->m, full, ".weight", HD_INIT_NORMAL,
		init_scale, HD_DIMS(out, in)), turned);
	return !bias ? x : hd_make2(&v->m, HD_OP_BIAS, x, hd_make_param(&v->m, full, ".bias", HD_INIT_ZEROS,
		0,
		HD_DIMS(out)), (struct hd_attr){ .i = { -1 } });
}

static uint32_t drop(struct vit *v, uint32_t x)
{
	return v->dropout > 0 ? hd_make1(&v->m, HD_OP_DROPOUT, x,
		(struct hd_attr){ .f = { v->dropout } }) : x;
}

static uint32_t block(struct vit *v, int64_t i, uint32_t x)
{
	static const char *const names[] = { "attention.attention.query", "attention.attention.key",
		"attention.attention.value" };
	char prefix[48];
	uint32_t qkv[3];

	snprintf(prefix, sizeof prefix, "vit.encoder.layer.%lld.", (long long)i);
	uint32_t h = norm(v, prefix, "layernorm_before", x);
	for (int k = 0; k < 3; k++)
		qkv[k] = linear(v, prefix, names[k], h, v->width, v->width, v->bias);
	h = hd_make3(&v->m, HD_OP_ATTEND, qkv[0], qkv[1], qkv[2],
		(struct hd_attr){ .i = { v->heads, v->heads, 0 } });
	h = drop(v, linear(v, prefix, "attention.output.dense", h, v->width, v->width, true));
	x = hd_make2(&v->m, HD_OP_ADD, h, x, none);
	h = linear(v, prefix, "intermediate.dense", norm(v, prefix, "layernorm_after", x), v->width,
		v->hidden, true);
	h = hd_make1(&v->m, HD_OP_ACT, h, (struct hd_attr){ .i = { (int32_t)v->act } });
	h = drop(v, linear(v, prefix, "output.dense", h, v->hidden, v->width, true));
	return hd_make2(&v->m, HD_OP_ADD, h, x, none);
}

/* Patches are a convolution whose windows do not meet; its planes become tokens behind the one of the
 * class. */
static uint32_t embedding(struct vit *v, const struct hd_model_value *value, uint32_t x)
{
	const int64_t c = v->width, channels = value[CHANNELS].n, patch = value[PATCH].n,
		side = value[IMAGE].n / patch, patches = side * side;
	uint32_t token = hd_make_param(&v->m, "vit.embeddings.cls_token", "", HD_INIT_NORMAL, init_scale,
		HD_DIMS(1, 1, c));
	uint32_t places = hd_make_param(&v->m, "vit.embeddings.position_embeddings", "", HD_INIT_NORMAL,
		init_scale, HD_DIMS(1, patches + 1, c));
	uint32_t w = hd_make_param(&v->m, "vit.embeddings.patch_embeddings.projection", ".weight",
		HD_INIT_NORMAL, init_scale, HD_DIMS(c, channels, patch, patch));
	uint32_t b = hd_make_param(&v->m, "vit.embeddings.patch_embeddings.projection", ".bias",
		HD_INIT_ZEROS, 0,
		HD_DIMS(c));
	uint32_t h = hd_make2(&v->m, HD_OP_CONV2D, x, w,
		(struct hd_attr){ .i = { (int32_t)patch, (int32_t)patch } });

	h = hd_make2(&v->m, HD_OP_BIAS, h, b, (struct hd_attr){ .i = { 1 } });
	h = hd_make1(&v->m, HD_OP_RESHAPE, h, (struct hd_attr){ .i = { -1, (int32_t)c, (int32_t)patches } });
	h = hd_make1(&v->m, HD_OP_PERMUTE, h, (struct hd_attr){ .i = { 0, 2, 1 } });
	token = hd_make1(&v->m, HD_OP_EXPAND, token, (struct hd_attr){ .i = { -1, 1, (int32_t)c } });
	h = hd_make2(&v->m, HD_OP_CONCAT, token, h, (struct hd_attr){ .i = { 1 } });
	return drop(v, hd_make2(&v->m, HD_OP_ADD, h, places, none));
}

static enum hd_err check(const struct hd_model_value *value, struct vit *v, struct hd_diag *diag)
{
	long long width = value[WIDTH].n, heads = value[HEADS].n, image = value[IMAGE].n,
		patch = value[PATCH].n;

	if (width % heads != 0)
		return hd_fail(diag, HD_E_INVAL, "arguments 'width' and 'heads': %lld is no multiple of %lld",
			width, heads);
	if (image % patch != 0)
		return hd_fail(diag, HD_E_INVAL, "arguments 'image' and 'patch': %lld is no multiple of %lld",
			image, patch);
	enum hd_err err = hd_model_truth(&hd_vit_params[BIAS], &value[BIAS], &v->bias, diag);
	return err ? err : hd_model_act(&value[ACT], &v->act, diag);
}

enum hd_err hd_vit_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	struct vit v = { .m = { graph, diag, HD_OK }, .width = value[WIDTH].n,
		.hidden = value[HIDDEN].n ? value[HIDDEN].n : 4 * value[WIDTH].n,
		.heads = (int32_t)value[HEADS].n, .dropout = (float)value[DROPOUT].real,
		.eps = (float)value[EPS].real };
	enum hd_err err = check(value, &v, diag);

	if (err != HD_OK)
		return err;
	uint32_t x = hd_make_input(&v.m, "x", HD_F32,
		HD_DIMS(-1, value[CHANNELS].n, value[IMAGE].n, value[IMAGE].n));
	uint32_t h = embedding(&v, value, x);
	for (int64_t i = 0; i < value[LAYERS].n; i++)
		h = block(&v, i, h);
	h = norm(&v, "", "vit.layernorm", h);
	h = hd_make1(&v.m, HD_OP_SLICE, h, (struct hd_attr){ .i = { 1, 0, 1, 1 } });
	h = hd_make1(&v.m, HD_OP_RESHAPE, h, (struct hd_attr){ .i = { -1, (int32_t)v.width } });
	uint32_t logits = linear(&v, "", "classifier", h, v.width, value[CLASSES].n, true);
	hd_make_ends(&v.m, opts, x, logits, 1, value[CLASSES].n);
	return v.m.err;
}
