#include <math.h>
#include <string.h>

#include "base/text.h"
#include "graph/models/rows.h"

uint32_t hd_make_input(struct hd_maker *m, const char *name, enum hd_dtype dtype, uint8_t rank,
	const int64_t *dim)
{
	uint32_t value = 0;

	if (m->err == HD_OK)
		m->err = hd_graph_input(m->graph, name, dtype, rank, dim, &value, m->diag);
	return value;
}

uint32_t hd_make_param(struct hd_maker *m, const char *prefix, const char *suffix, enum hd_init_kind init,
	float scale,
	uint8_t rank, const int64_t *dim)
{
	uint32_t value = 0;
	char name[HD_MAX_NAME];
	struct hd_text text;

	hd_text_fixed(&text, name, sizeof name);
	hd_text_addf(&text, "%s%s", prefix, suffix);
	if (m->err == HD_OK)
		m->err = hd_graph_param(m->graph, name, rank, dim, init, scale, &value, m->diag);
	return value;
}

static uint32_t make(struct hd_maker *m, enum hd_op op, uint8_t nin, const uint32_t *in, struct hd_attr attr)
{
	uint32_t value = 0;

	if (m->err == HD_OK)
		m->err = hd_graph_node(m->graph, (uint16_t)op, nin, in, &attr, 0, &value, m->diag);
	return value;
}

uint32_t hd_make1(struct hd_maker *m, enum hd_op op, uint32_t a,
	struct hd_attr attr) { return make(m, op, 1, &a, attr); }

uint32_t hd_make2(struct hd_maker *m, enum hd_op op, uint32_t a, uint32_t b, struct hd_attr attr)
{
	return make(m, op, 2, (uint32_t[]){ a, b }, attr);
}

uint32_t hd_make3(struct hd_maker *m, enum hd_op op, uint32_t a, uint32_t b, uint32_t c, struct hd_attr attr)
{
	return make(m, op, 3, (uint32_t[]){ a, b, c }, attr);
}

uint32_t hd_make4(struct hd_maker *m, enum hd_op op, uint32_t a, uint32_t b, uint32_t c, uint32_t d,
	struct hd_attr attr)
{
	return make(m, op, 4, (uint32_t[]){ a, b, c, d }, attr);
}

static uint32_t make_const(struct hd_maker *m, enum hd_dtype dtype, int32_t id, uint8_t rank,
	const int64_t *dim)
{
	const size_t n = (size_t)hd_dims_product(dim, rank);
	uint32_t value = 0;
	void *at = NULL;

	if (m->err == HD_OK)
		at = hd_arena_take(m->graph->arena, n, hd_dtype_bytes(dtype));      /* zeros */
	if (m->err == HD_OK && !at)
		m->err = hd_fail(m->diag, HD_E_NOMEM, "no memory for a constant");
	for (size_t i = 0; at && id && i < n; i++)
		((int32_t *)at)[i] = id;
	if (m->err == HD_OK)
		m->err = hd_graph_const(m->graph, dtype, rank, dim, at, &value, m->diag);
	return value;
}

uint32_t hd_make_zeros(struct hd_maker *m, enum hd_dtype dtype, uint8_t rank, const int64_t *dim)
{
	return make_const(m, dtype, 0, rank, dim);
}

uint32_t hd_make_ids(struct hd_maker *m, int32_t id, uint8_t rank, const int64_t *dim)
{
	return make_const(m, HD_I32, id, rank, dim);
}

uint32_t hd_make_counts(struct hd_maker *m, int32_t first, int64_t n)
{
	int32_t *at = m->err == HD_OK ? hd_arena_take(m->graph->arena, (size_t)n, sizeof *at) : NULL;
	uint32_t value = 0;

	if (m->err == HD_OK && !at)
		m->err = hd_fail(m->diag, HD_E_NOMEM, "no memory for a constant");
	for (int64_t i = 0; at && i < n; i++)
		at[i] = first + (int32_t)i;
	if (m->err == HD_OK)
		m->err = hd_graph_const(m->graph, HD_I32, 1, &n, at, &value, m->diag);
	return value;
}

void hd_make_output(struct hd_maker *m, const char *name, uint32_t value)
{
	if (m->err == HD_OK)
		m->err = hd_graph_output(m->graph, name, value, m->diag);
}

uint32_t hd_make_linear(struct hd_maker *m, const char *prefix, uint32_t x, int64_t in, int64_t out)
{
	float bound = 1.0f / sqrtf((float)in);
	uint32_t w = hd_make_param(m, prefix, ".weight", HD_INIT_UNIFORM, bound, HD_DIMS(out, in));
	uint32_t b = hd_make_param(m, prefix, ".bias", HD_INIT_UNIFORM, bound, HD_DIMS(out));
	uint32_t z = hd_make2(m, HD_OP_MATMUL, x, w, (struct hd_attr){ .i = { 0, 1 } });

	return hd_make2(m, HD_OP_BIAS, z, b, (struct hd_attr){ .i = { -1 } });
}

enum hd_err hd_model_truth(const struct hd_model_param *param, const struct hd_model_value *value, bool *yes,
	struct hd_diag *diag)
{
	*yes = !strcmp(value->word, "true");
	if (!*yes && strcmp(value->word, "false") != 0)
		return hd_fail(diag, HD_E_INVAL, "argument '%s' is '%s': it is true or false", param->name,
			value->word);
	return HD_OK;
}

enum hd_err hd_model_act(const struct hd_model_value *value, enum hd_act *act, struct hd_diag *diag)
{
	static const struct { const char *word; enum hd_act act; } acts[] = {
		{ "silu", HD_ACT_SILU }, { "gelu_tanh", HD_ACT_GELU }, { "gelu", HD_ACT_GELU_ERF },
		{ "relu", HD_ACT_RELU }, { "tanh", HD_ACT_TANH },
	};

	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
		if (!strcmp(acts[i].word, value->word)) {
			*act = acts[i].act;
			return HD_OK;
		}
	return hd_fail(diag, HD_E_INVAL, "argument 'act' is '%s': it is silu, gelu_tanh, gelu, relu or tanh",
		value->word);
}
