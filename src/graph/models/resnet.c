/* He et al., "Deep residual learning for image recognition" (2015), with the names, storage and
 * initial values of torchvision; the stride of a bottleneck is in its 3 x 3 convolution, as there. */
#include "graph/models/rows.h"

#include <stdio.h>

enum { STEM, CHANNELS, HEIGHT, WIDTH, CLASSES, BASE, NORM, GROUPS };

const struct hd_model_param hd_resnet_params[] = {
	[STEM]     = { "stem",     HD_ARG_WORD, "imagenet", 0, 0,
		.about = "imagenet: 7 x 7 by 2 and pool 3 by 2; cifar: 3 x 3; small: 3 x 3 and pool 2 by 2" },
	[CHANNELS] = { "channels", HD_ARG_INT,  "3",     1, 1024, .about = "planes of an image" },
	[HEIGHT]   = { "height",   HD_ARG_INT,  "224",   2, 4096, .about = "rows of an image" },
	[WIDTH]    = { "width",    HD_ARG_INT,  "224",   2, 4096, .about = "columns of an image" },
	[CLASSES]  = { "classes",  HD_ARG_INT,  "1000",  1, 1 << 20, .about = "classes" },
	[BASE]     = { "base",     HD_ARG_INT,  "64",    1, 4096,
	.about = "channels of the first stage; each of the three others doubles them" },
	[NORM]     = { "norm",     HD_ARG_WORD, "batch", 0, 0,
	.about = "batch: over the virtual node; group: per sample" },
	[GROUPS]   = { "groups",   HD_ARG_INT,  "32",    1, 4096,
	.about = "groups of channels with norm: group; divides base" },
	{ 0 },
};

enum { STAGES = 4, EXPANSION = 4 };
struct depth { int blocks[STAGES]; bool bottleneck; };

struct resnet { struct hd_maker m; int32_t groups; bool bottleneck; };

/* prefix.conv, prefix.norm */
static uint32_t normed(struct resnet *r, const char *prefix, const char *conv, const char *norm, uint32_t x,
	struct hd_conv c)
{
	char name[HD_MAX_NAME];

	snprintf(name, sizeof name, "%s%s", prefix, conv);
	x = hd_make_conv(&r->m, name, x, c);
	snprintf(name, sizeof name, "%s%s", prefix, norm);
	return hd_make_norm(&r->m, name, x, r->groups);
}

static uint32_t block(struct resnet *r, const char *prefix, uint32_t x, int64_t planes, int32_t stride)
{
	int64_t out = r->bottleneck ? planes * EXPANSION : planes;
	uint32_t skip = x, h = x;

	if (r->bottleneck) {
		h = hd_make_relu(&r->m, normed(r, prefix, "conv1", "bn1", h,
			(struct hd_conv){ planes, 1, 1, 0 }));
		h = hd_make_relu(&r->m, normed(r, prefix, "conv2", "bn2", h,
			(struct hd_conv){ planes, 3, stride, 1 }));
		h = normed(r, prefix, "conv3", "bn3", h, (struct hd_conv){ out, 1, 1, 0 });
	} else {
		h = hd_make_relu(&r->m, normed(r, prefix, "conv1", "bn1", h,
			(struct hd_conv){ planes, 3, stride, 1 }));
		h = normed(r, prefix, "conv2", "bn2", h, (struct hd_conv){ planes, 3, 1, 1 });
	}
	if (stride != 1 || hd_make_dim(&r->m, x, 1) != out)
		skip = normed(r, prefix, "downsample.0", "downsample.1", x,
			(struct hd_conv){ out, 1, stride, 0 });
	return hd_make_relu(&r->m, hd_make2(&r->m, HD_OP_ADD, h, skip, (struct hd_attr){ 0 }));
}

static uint32_t trunk(struct resnet *r, const struct hd_stem *stem, const struct depth *depth, int64_t base,
	uint32_t x)
{
	struct hd_conv first = stem->conv;
	char prefix[32];

	first.out = base;
	x = hd_make_relu(&r->m, normed(r, "", "conv1", "bn1", x, first));
	if (stem->pool)
		x = hd_make_maxpool(&r->m, x, stem->pool, stem->stride, stem->pad);
	for (int i = 0; i < STAGES; i++)
		for (int j = 0; j < depth->blocks[i]; j++) {
			snprintf(prefix, sizeof prefix, "layer%d.%d.", i + 1, j);
			x = block(r, prefix, x, base << i, i > 0 && j == 0 ? 2 : 1);
		}
	return x;
}

static enum hd_err resnet(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts,
	const struct depth *depth, struct hd_diag *diag)
{
	struct resnet r = { .m = { graph, diag, HD_OK }, .bottleneck = depth->bottleneck };
	int64_t classes = value[CLASSES].n;
	const struct hd_stem *stem = NULL;
	enum hd_err err = hd_stem_find(value[STEM].word, &stem, diag);

	if (err == HD_OK)
		err = hd_norm_groups(value[NORM].word, value[GROUPS].n, "base", value[BASE].n, &r.groups,
			diag);
	if (err != HD_OK)
		return err;
	uint32_t x = hd_make_input(&r.m, "x", HD_F32, HD_DIMS(-1, value[CHANNELS].n, value[HEIGHT].n,
		value[WIDTH].n));
	uint32_t h = hd_make_global_pool(&r.m, trunk(&r, stem, depth, value[BASE].n, x));
	uint32_t logits = hd_make_linear(&r.m, "fc", h, hd_make_dim(&r.m, h, 1), classes);
	hd_make_ends(&r.m, opts, x, logits, 1, classes);
	return r.m.err;
}

enum hd_err hd_resnet18_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	return resnet(graph, value, opts, &(struct depth){ { 2, 2, 2, 2 }, false }, diag);
}

enum hd_err hd_resnet34_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	return resnet(graph, value, opts, &(struct depth){ { 3, 4, 6, 3 }, false }, diag);
}

enum hd_err hd_resnet50_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	return resnet(graph, value, opts, &(struct depth){ { 3, 4, 6, 3 }, true }, diag);
}
