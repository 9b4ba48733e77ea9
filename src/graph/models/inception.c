/* Szegedy et al., "Going deeper with convolutions" (2014), with norms over the batch as in Ioffe and Szegedy,
 * "Batch normalization" (2015), and, if asked for, two 3 x 3 convolutions instead of a 5 x 5, as in
 * "Rethinking the inception architecture" (2015).
 *
 * The paper gives each block channels of its own; here those of its first block (3a: 64, 96 -> 128, 16 -> 32,
 * 32) are the rule for all, in units of `base` = 64, doubled from stage to stage: a stage of unit u leaves 4
 * u channels, all of them whole blocks of 16 when u is a multiple of 64. Names are made as torchvision makes
 * GoogLeNet's (inception3a.branch2.0.conv.weight); a branch3.2 is the second 3 x 3. Pools have pads and no
 * ceiling. */
#include "graph/models/rows.h"

#include <stdio.h>
#include <string.h>

enum { STEM, CHANNELS, HEIGHT, WIDTH, CLASSES, BASE, BLOCKS, WIDE, NORM, GROUPS, DROPOUT };
enum { FIRST_STAGE = 3 };                 /* the stem is 1 and 2 */

const struct hd_model_param hd_inception_params[] = {
	[STEM]     = { "stem",     HD_ARG_WORD, "imagenet", 0, 0,
		.about = "imagenet: 7 x 7 by 2 and pool 3 by 2; cifar: 3 x 3; small: 3 x 3 and pool 2 by 2" },
	[CHANNELS] = { "channels", HD_ARG_INT,  "3",     1, 1024, .about = "planes of an image" },
	[HEIGHT]   = { "height",   HD_ARG_INT,  "224",   2, 4096, .about = "rows of an image" },
	[WIDTH]    = { "width",    HD_ARG_INT,  "224",   2, 4096, .about = "columns of an image" },
	[CLASSES]  = { "classes",  HD_ARG_INT,  "1000",  1, 1 << 20, .about = "classes" },
	[BASE]     = { "base",     HD_ARG_INT,  "64",    4, 1024,
	.about = "channels of the first 1 x 1 branch, doubled from stage to stage; a multiple of 4" },
	[BLOCKS]   = { "blocks",   HD_ARG_LIST, "[2, 5, 2]", 1, 26,
	.about = "blocks of each stage; at most 5 stages, a pool 3 by 2 before each" },
	[WIDE]     = { "wide",     HD_ARG_WORD, "5x5",   0, 0,
	.about = "the wide branch: 5x5, or 3x3: two of these" },
	[NORM]     = { "norm",     HD_ARG_WORD, "batch", 0, 0,
	.about = "batch: over the virtual node; group: per sample" },
	[GROUPS]   = { "groups",   HD_ARG_INT,  "16",    1, 1024,
	.about = "groups of channels with norm: group; divides a quarter of base" },
	[DROPOUT]  = { "dropout",  HD_ARG_REAL, "0.2",   0, 0.95,
	.about = "share of elements dropped before the last layer" },
	{ 0 },
};

enum { MAX_STAGES = 5 };

struct inception { struct hd_maker m; int32_t groups; bool two; };

/* prefix.name.conv, prefix.name.bn and a relu */
static uint32_t conv(struct inception *n, const char *prefix, const char *name, uint32_t x, struct hd_conv c)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s.conv", prefix, name);
	x = hd_make_conv(&n->m, full, x, c);
	snprintf(full, sizeof full, "%s%s.bn", prefix, name);
	return hd_make_relu(&n->m, hd_make_norm(&n->m, full, x, n->groups));
}

static uint32_t join(struct inception *n, uint32_t a, uint32_t b) { return hd_make2(&n->m, HD_OP_CONCAT, a, b,
	(struct hd_attr){ .i = { 1 } }); }

/* Joined in pairs, so that an element is copied twice and not up to three times. */
static uint32_t block(struct inception *n, const char *prefix, uint32_t x, int64_t u)
{
	uint32_t a = conv(n, prefix, "branch1", x, (struct hd_conv){ u, 1, 1, 0 });
	uint32_t b = conv(n, prefix, "branch2.0", x, (struct hd_conv){ u / 4 * 6, 1, 1, 0 });
	b = conv(n, prefix, "branch2.1", b, (struct hd_conv){ 2 * u, 3, 1, 1 });
	uint32_t c = conv(n, prefix, "branch3.0", x, (struct hd_conv){ u / 4, 1, 1, 0 });
	c = conv(n, prefix, "branch3.1", c, n->two ? (struct hd_conv){ u / 2, 3, 1, 1 } :
		(struct hd_conv){ u / 2, 5, 1, 2 });
	if (n->two)
		c = conv(n, prefix, "branch3.2", c, (struct hd_conv){ u / 2, 3, 1, 1 });
	uint32_t d = conv(n, prefix, "branch4.1", hd_make_maxpool(&n->m, x, 3, 1, 1),
		(struct hd_conv){ u / 2, 1, 1, 0 });
	return join(n, join(n, a, b), join(n, c, d));
}

static uint32_t trunk(struct inception *n, const struct hd_stem *stem, const struct hd_model_value *value,
	uint32_t x)
{
	const struct hd_model_value *blocks = &value[BLOCKS];
	struct hd_conv first = stem->conv;
	int64_t base = value[BASE].n;
	char prefix[32];

	first.out = base;
	x = conv(n, "", "conv1", x, first);
	if (stem->pool)
		x = hd_make_maxpool(&n->m, x, stem->pool, stem->stride, stem->pad);
	x = conv(n, "", "conv2", x, (struct hd_conv){ base, 1, 1, 0 });
	x = conv(n, "", "conv3", x, (struct hd_conv){ 3 * base, 3, 1, 1 });
	for (uint32_t i = 0; i < blocks->nlist; i++) {
		x = hd_make_maxpool(&n->m, x, 3, 2, 1);
		for (int64_t j = 0; j < blocks->list[i]; j++) {
			snprintf(prefix, sizeof prefix, "inception%u%c.", FIRST_STAGE + i, (char)('a' + j));
			x = block(n, prefix, x, base << i);
		}
	}
	return x;
}

static enum hd_err check(struct inception *n, const struct hd_model_value *value, struct hd_diag *diag)
{
	const char *wide = value[WIDE].word;

	if (value[BASE].n % 4 != 0)
		return hd_fail(diag, HD_E_INVAL, "argument 'base': %lld is no multiple of 4",
			(long long)value[BASE].n);
	if (value[BLOCKS].nlist < 1 || value[BLOCKS].nlist > MAX_STAGES)
		return hd_fail(diag, HD_E_INVAL, "argument 'blocks': %u stages; give the blocks of 1 to %d",
			value[BLOCKS].nlist, MAX_STAGES);
	n->two = strcmp(wide, "3x3") == 0;
	if (!n->two && strcmp(wide, "5x5") != 0)
		return hd_fail(diag, HD_E_INVAL, "argument 'wide': '%s' is none of 5x5, 3x3", wide);
	return hd_norm_groups(value[NORM].word, value[GROUPS].n, "a quarter of base", value[BASE].n / 4,
		&n->groups, diag);
}

enum hd_err hd_inception_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts, struct hd_diag *diag)
{
	struct inception n = { .m = { graph, diag, HD_OK } };
	int64_t classes = value[CLASSES].n;
	const struct hd_stem *stem = NULL;
	enum hd_err err = hd_stem_find(value[STEM].word, &stem, diag);

	if (err == HD_OK)
		err = check(&n, value, diag);
	if (err != HD_OK)
		return err;
	uint32_t x = hd_make_input(&n.m, "x", HD_F32, HD_DIMS(-1, value[CHANNELS].n, value[HEIGHT].n,
		value[WIDTH].n));
	uint32_t h = hd_make_global_pool(&n.m, trunk(&n, stem, value, x));
	if (value[DROPOUT].real > 0)
		h = hd_make1(&n.m, HD_OP_DROPOUT, h, (struct hd_attr){ .f = { (float)value[DROPOUT].real } });
	uint32_t logits = hd_make_linear(&n.m, "fc", h, hd_make_dim(&n.m, h, 1), classes);
	hd_make_ends(&n.m, opts, x, logits, 1, classes);
	return n.m.err;
}
