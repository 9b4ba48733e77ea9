/* He et al., "Deep residual learning for image recognition" (2015), with the names, storage and
 * initial values of torchvision; the stride of a bottleneck is in its 3 x 3 convolution, as there.
 * Xie et al., "Aggregated residual transformations for deep neural networks" (2016): `paths` groups of
 * `path_width` channels in that convolution; Zagoruyko and Komodakis, "Wide residual networks" (2016): one of
 * twice the width. */
#include "graph/models/rows.h"

#include <stdio.h>

enum { STEM, CHANNELS, HEIGHT, WIDTH, CLASSES, BASE, NORM, GROUPS, PATHS, PATH_WIDTH, ZERO_LAST, DILATED };

#define PARAMS(name, paths_, path_width_) \
const struct hd_model_param name[] = { \
	[STEM]     = { "stem",     HD_ARG_WORD, "imagenet", 0, 0, \
	.about = "imagenet: 7 x 7 by 2 and pool 3 by 2; cifar: 3 x 3; small: 3 x 3 and pool 2 by 2" }, \
	[CHANNELS] = { "channels", HD_ARG_INT,  "3",     1, 1024, .about = "planes of an image" }, \
	[HEIGHT]   = { "height",   HD_ARG_INT,  "224",   2, 4096, .about = "rows of an image" }, \
	[WIDTH]    = { "width",    HD_ARG_INT,  "224",   2, 4096, .about = "columns of an image" }, \
	[CLASSES]  = { "classes",  HD_ARG_INT,  "1000",  1, 1 << 20, .about = "classes" }, \
	[BASE]     = { "base",     HD_ARG_INT,  "64",    1, 4096, \
	.about = "channels of the first stage; each of the three others doubles them" }, \
	[NORM]     = { "norm",     HD_ARG_WORD, "batch", 0, 0, \
	.about = "batch: over the virtual node; group: per sample" }, \
	[GROUPS]   = { "groups",   HD_ARG_INT,  "32",    1, 4096, \
	.about = "groups of channels with norm: group; divides base" }, \
	[PATHS]    = { "paths",    HD_ARG_INT,  paths_,  1, 4096, .late = true, \
	.about = "bottlenecks: groups of channels that the 3 x 3 convolution keeps apart" }, \
	[PATH_WIDTH] = { "path_width", HD_ARG_INT, path_width_, 1, 4096, .late = true, \
	.about = "bottlenecks: channels of such a group in the first stage, of base 64" }, \
	[ZERO_LAST] = { "zero_init_residual", HD_ARG_WORD, "false", 0, 0, .late = true, \
	.about = "true: the last norm of each block begins with weights 0" }, \
	[DILATED]  = { "dilate",   HD_ARG_SET,  "[]",    0, 0, \
	.words = "layer2|layer3|layer4", .late = true, \
	.about = "bottlenecks: stages that widen windows and do not stride: layer2, layer3, layer4" }, \
	{ 0 }, \
}
PARAMS(hd_resnet_params, "1", "64");
PARAMS(hd_resnext32x4_params, "32", "4");
PARAMS(hd_resnext32x8_params, "32", "8");
PARAMS(hd_resnext64x4_params, "64", "4");
PARAMS(hd_wide_params, "1", "128");
#undef PARAMS

enum { STAGES = 4, EXPANSION = 4 };
struct depth { int blocks[STAGES]; bool bottleneck; };

struct resnet { struct hd_maker m; int32_t groups, paths, path_width; bool bottleneck, zero_last; };

/* prefix.conv, prefix.norm; `spread`: groups of the convolution and how far apart its window's elements are.
 * `gamma`: what the norm's weights begin as. */
struct spread { int32_t paths, dilation; };
static uint32_t normed_by(struct resnet *r, const char *prefix, const char *conv, const char *norm,
	uint32_t x, struct hd_conv c, struct spread spread, enum hd_init_kind gamma)
{
	char name[HD_MAX_NAME];

	snprintf(name, sizeof name, "%s%s", prefix, conv);
	x = hd_make_conv_by(&r->m, name, x, c, spread.paths, spread.dilation);
	snprintf(name, sizeof name, "%s%s", prefix, norm);
	return hd_make_norm_from(&r->m, name, x, r->groups, gamma);
}

static uint32_t normed(struct resnet *r, const char *prefix, const char *conv, const char *norm, uint32_t x,
	struct hd_conv c)
{
	return normed_by(r, prefix, conv, norm, x, c, (struct spread){ 1, 1 }, HD_INIT_ONES);
}

static uint32_t block(struct resnet *r, const char *prefix, uint32_t x, int64_t planes, int32_t stride,
	int32_t dilation)
{
	const int64_t out = r->bottleneck ? planes * EXPANSION : planes,
		inside = planes * r->path_width / 64 * r->paths;
	const enum hd_init_kind gamma = r->zero_last ? HD_INIT_ZEROS : HD_INIT_ONES;
	uint32_t skip = x, h = x;

	if (r->bottleneck) {
		h = hd_make_relu(&r->m, normed(r, prefix, "conv1", "bn1", h,
			(struct hd_conv){ inside, 1, 1, 0 }));
		h = hd_make_relu(&r->m, normed_by(r, prefix, "conv2", "bn2", h,
			(struct hd_conv){ inside, 3, stride, dilation },
			(struct spread){ r->paths, dilation }, HD_INIT_ONES));
		h = normed_by(r, prefix, "conv3", "bn3", h, (struct hd_conv){ out, 1, 1, 0 },
			(struct spread){ 1, 1 }, gamma);
	} else {
		h = hd_make_relu(&r->m, normed(r, prefix, "conv1", "bn1", h,
			(struct hd_conv){ planes, 3, stride, 1 }));
		h = normed_by(r, prefix, "conv2", "bn2", h, (struct hd_conv){ planes, 3, 1, 1 },
			(struct spread){ 1, 1 }, gamma);
	}
	if (stride != 1 || hd_make_dim(&r->m, x, 1) != out)
		skip = normed(r, prefix, "downsample.0", "downsample.1", x,
			(struct hd_conv){ out, 1, stride, 0 });
	return hd_make_relu(&r->m, hd_make2(&r->m, HD_OP_ADD, h, skip, (struct hd_attr){ 0 }));
}

/* `dilated`: bit i: stage i + 2 widens windows in place of its stride; its first block has those of the stage
 * before. */
static uint32_t trunk(struct resnet *r, const struct hd_stem *stem, const struct depth *depth, int64_t base,
	int64_t dilated, uint32_t x)
{
	int32_t dilation = 1;
	struct hd_conv first = stem->conv;
	char prefix[32];

	first.out = base;
	x = hd_make_relu(&r->m, normed(r, "", "conv1", "bn1", x, first));
	if (stem->pool)
		x = hd_make_maxpool(&r->m, x, stem->pool, stem->stride, stem->pad);
	for (int i = 0; i < STAGES; i++) {
		const bool widens = i > 0 && dilated >> (i - 1) & 1;
		const int32_t before = dilation;
		dilation *= widens ? 2 : 1;
		for (int j = 0; j < depth->blocks[i]; j++) {
			snprintf(prefix, sizeof prefix, "layer%d.%d.", i + 1, j);
			x = block(r, prefix, x, base << i, i > 0 && j == 0 && !widens ? 2 : 1,
				j ? dilation : before);
		}
	}
	return x;
}

/* What only bottlenecks have, and what must divide. */
static enum hd_err check(struct resnet *r, const struct hd_model_value *value, struct hd_diag *diag)
{
	const long long paths = value[PATHS].n, width = value[PATH_WIDTH].n, base = value[BASE].n;

	r->paths = (int32_t)paths;
	r->path_width = (int32_t)width;
	if (!r->bottleneck && (paths != 1 || width != 64 || value[DILATED].n))
		return hd_fail(diag, HD_E_INVAL, "arguments 'paths', 'path_width' and 'dilate' are of models "
			"with bottlenecks: resnet50 and deeper");
	if (r->bottleneck && (base * width / 64 < 1 || (base * width) % 64))
		return hd_fail(diag, HD_E_INVAL, "arguments 'base' and 'path_width': %lld times %lld is no "
			"multiple of 64", base, width);
	if (r->groups && base * width / 64 * paths % r->groups)
		return hd_fail(diag, HD_E_INVAL,
			"argument 'groups': %d does not divide the %lld channels of a block",
			r->groups, base * width / 64 * paths);
	return hd_model_truth(&hd_resnet_params[ZERO_LAST], &value[ZERO_LAST], &r->zero_last, diag);
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
	if (err == HD_OK)
		err = check(&r, value, diag);
	if (err != HD_OK)
		return err;
	uint32_t x = hd_make_input(&r.m, "x", HD_F32, HD_DIMS(-1, value[CHANNELS].n, value[HEIGHT].n,
		value[WIDTH].n));
	uint32_t h = hd_make_global_pool(&r.m, trunk(&r, stem, depth, value[BASE].n,
		value[DILATED].n, x));
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

enum hd_err hd_resnet101_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	return resnet(graph, value, opts, &(struct depth){ { 3, 4, 23, 3 }, true }, diag);
}

enum hd_err hd_resnet152_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	return resnet(graph, value, opts, &(struct depth){ { 3, 8, 36, 3 }, true }, diag);
}
