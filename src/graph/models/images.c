/* What the models of images share: stems, convolution, norm, pools. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "graph/models/rows.h"

static const float eps = 1e-5f, momentum = 0.1f;           /* PyTorch's */

static const struct hd_stem stems[] = {
	{ "imagenet", { 0, 7, 2, 3 }, 3, 2, 1 },
	{ "cifar",    { 0, 3, 1, 1 }, 0, 0, 0 },
	{ "small",    { 0, 3, 1, 1 }, 2, 2, 0 },
};

enum hd_err hd_stem_find(const char *name, const struct hd_stem **stem, struct hd_diag *diag)
{
	for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++)
		if (strcmp(stems[i].name, name) == 0) {
			*stem = &stems[i];
			return HD_OK;
		}
	return hd_fail(diag, HD_E_INVAL, "argument 'stem': '%s' is none of imagenet, cifar, small", name);
}

enum hd_err hd_norm_groups(const char *norm, int64_t groups, const char *of, int64_t channels, int32_t *out,
	struct hd_diag *diag)
{
	bool group = strcmp(norm, "group") == 0;

	if (!group && strcmp(norm, "batch") != 0)
		return hd_fail(diag, HD_E_INVAL, "argument 'norm': '%s' is none of batch, group", norm);
	if (group && channels % groups != 0)
		return hd_fail(diag, HD_E_INVAL,
			"arguments 'base' and 'groups': %s, %lld, is no multiple of %lld", of,
			(long long)channels,
			(long long)groups);
	*out = group ? (int32_t)groups : 0;
	return HD_OK;
}

int64_t hd_make_dim(const struct hd_maker *m, uint32_t x, int d) { return m->err == HD_OK ?
	m->graph->value[x].dim[d] : 1; }

uint32_t hd_make_conv(struct hd_maker *m, const char *prefix, uint32_t x, struct hd_conv c)
{
	return hd_make_conv_by(m, prefix, x, c, 1, 1);
}

uint32_t hd_make_conv_by(struct hd_maker *m, const char *prefix, uint32_t x, struct hd_conv c, int32_t groups,
	int32_t dilation)
{
	const int32_t by = groups > 1 ? groups : 0, apart = dilation > 1 ? dilation : 0;
	float deviation = sqrtf(2.0f / ((float)c.out * (float)(c.kernel * c.kernel)));
	uint32_t w = hd_make_param(m, prefix, ".weight", HD_INIT_NORMAL, deviation,
		HD_DIMS(c.out, hd_make_dim(m, x, 1) / groups, c.kernel, c.kernel));

	return hd_make2(m, HD_OP_CONV2D, x, w,
		(struct hd_attr){ .i = { c.stride, c.stride, c.pad, c.pad, by, apart, apart } });
}

static uint32_t buffer(struct hd_maker *m, const char *prefix, const char *suffix, enum hd_init_kind init,
	int64_t len)
{
	uint32_t value = 0;
	char name[HD_MAX_NAME];
	struct hd_text text;

	hd_text_fixed(&text, name, sizeof name);
	hd_text_addf(&text, "%s%s", prefix, suffix);
	if (m->err == HD_OK)
		m->err = hd_graph_buffer(m->graph, name, 1, &len, init, &value, m->diag);
	return value;
}

uint32_t hd_make_norm(struct hd_maker *m, const char *prefix, uint32_t x, int32_t groups)
{
	return hd_make_norm_from(m, prefix, x, groups, HD_INIT_ONES);
}

uint32_t hd_make_norm_from(struct hd_maker *m, const char *prefix, uint32_t x, int32_t groups,
	enum hd_init_kind gamma)
{
	int64_t c = hd_make_dim(m, x, 1);
	uint32_t in[5] = { x }, y = 0;

	in[1] = hd_make_param(m, prefix, ".weight", gamma, 0, HD_DIMS(c));
	in[2] = hd_make_param(m, prefix, ".bias", HD_INIT_ZEROS, 0, HD_DIMS(c));
	if (groups)
		return hd_make3(m, HD_OP_GROUPNORM, in[0], in[1], in[2],
			(struct hd_attr){ .i = { groups }, .f = { eps } });
	in[3] = buffer(m, prefix, ".running_mean", HD_INIT_ZEROS, c);
	in[4] = buffer(m, prefix, ".running_var", HD_INIT_ONES, c);
	if (m->err == HD_OK)
		m->err = hd_graph_node(m->graph, HD_OP_BATCHNORM, 5, in,
			&(struct hd_attr){ .i = { 1 }, .f = { eps } }, 0, &y, m->diag);
	if (m->err == HD_OK)
		m->err = hd_graph_running(m->graph, &(struct hd_running){ in[3], in[4], y + 2, momentum },
			m->diag);
	return y;
}

uint32_t hd_make_relu(struct hd_maker *m, uint32_t x) { return hd_make1(m, HD_OP_ACT, x,
	(struct hd_attr){ .i = { HD_ACT_RELU } }); }

uint32_t hd_make_maxpool(struct hd_maker *m, uint32_t x, int32_t kernel, int32_t stride, int32_t pad)
{
	return hd_make1(m, HD_OP_MAXPOOL2D, x, (struct hd_attr){ .i = { kernel, kernel, stride, stride, pad,
		pad } });
}

uint32_t hd_make_global_pool(struct hd_maker *m, uint32_t x)
{
	int32_t c = (int32_t)hd_make_dim(m, x, 1), h = (int32_t)hd_make_dim(m, x, 2),
		w = (int32_t)hd_make_dim(m, x, 3);

	x = hd_make1(m, HD_OP_AVGPOOL2D, x, (struct hd_attr){ .i = { h, w, 1, 1 } });
	return hd_make1(m, HD_OP_RESHAPE, x, (struct hd_attr){ .i = { -1, c } });
}
