#include "graph/models/moe.h"

#include <math.h>
#include <stdio.h>

static const float init_scale = 0.02f;
static const struct hd_attr none, turned = { .i = { 0, 1 } };

enum hd_err hd_moe_check(const struct hd_moe *moe, struct hd_diag *diag)
{
	if (moe->chosen > moe->experts)
		return hd_fail(diag, HD_E_INVAL, "argument 'chosen' is %lld, of %lld experts",
			(long long)moe->chosen, (long long)moe->experts);
	return HD_OK;
}

int64_t hd_moe_room(const struct hd_moe *moe)
{
	const double share = (double)(moe->positions * moe->chosen) / (double)moe->experts;
	const double room = ceil(moe->capacity * share);

	return moe->capacity > 0 && room < (double)moe->positions ? (int64_t)room : 0;
}

static uint32_t number(struct hd_maker *m, float x)
{
	uint32_t value = 0;

	if (m->err == HD_OK)
		m->err = hd_graph_const(m->graph, HD_F32, 1, &(int64_t){ 1 }, &x, &value, m->diag);
	return value;
}

static uint32_t scaled(struct hd_maker *m, uint32_t x, double by)
{
	return hd_make1(m, HD_OP_SCALE, x, (struct hd_attr){ .f = { (float)by } });
}

static uint32_t shaped(struct hd_maker *m, uint32_t x, int64_t a, int64_t b, int64_t c)
{
	return hd_make1(m, HD_OP_RESHAPE, x, (struct hd_attr){ .i = { -1, (int32_t)a, (int32_t)b,
		(int32_t)c } });
}

/* Sum over the extents of the mask `axes`; those of `keep` stay as 1. */
static uint32_t summed(struct hd_maker *m, uint32_t x, int32_t axes, int32_t keep)
{
	return hd_make1(m, HD_OP_REDUCE_SUM, x, (struct hd_attr){ .i = { axes, keep } });
}

static uint32_t param(struct hd_maker *m, const char *prefix, const char *name, uint8_t rank,
	const int64_t *dim)
{
	char full[HD_MAX_NAME];

	snprintf(full, sizeof full, "%s%s", prefix, name);
	return hd_make_param(m, full, ".weight", HD_INIT_NORMAL, init_scale, rank, dim);
}

/* 1 where a token is seen, f32 [N,T]. */
static uint32_t seen(struct hd_maker *m, const struct hd_moe *moe)
{
	return hd_make1(m, HD_OP_CAST, moe->mask, (struct hd_attr){ .i = { HD_F32 } });
}

/* Rule 3. Choices in order are a running number in each expert. ids, hot: [N,T,chosen], [N,T,chosen,E]. */
static uint32_t admitted(struct hd_maker *m, const struct hd_moe *moe, uint32_t ids)
{
	const int64_t room = hd_moe_room(moe), t = moe->positions, k = moe->chosen, e = moe->experts;
	const struct hd_attr swap = { .i = { 0, 2, 1 } };

	if (room == 0)
		return ids;
	uint32_t in_order = shaped(m, hd_make1(m, HD_OP_PERMUTE, ids, swap), k * t, 0, 0);
	uint32_t hot = hd_make1(m, HD_OP_ONE_HOT, in_order, (struct hd_attr){ .i = { (int32_t)e } });
	uint32_t upto = hd_make1(m, HD_OP_CUMSUM, hot, (struct hd_attr){ .i = { 1 } });
	uint32_t place = summed(m, hd_make2(m, HD_OP_MUL, upto, hot, none), 4, 0);
	uint32_t fits = hd_make2(m, HD_OP_LESS_EQ, place, number(m, (float)room), none);
	fits = hd_make1(m, HD_OP_PERMUTE, shaped(m, fits, k, t, 0), swap);
	return hd_make3(m, HD_OP_WHERE, fits, ids, hd_make_ids(m, -1, HD_DIMS(1)), none);
}

/* Rule 5, one layer of it. */
static void count(struct hd_maker *m, struct hd_moe *moe, uint32_t share, uint32_t hot)
{
	const int64_t t = moe->positions;

	if (!(moe->balance > 0))
		return;
	if (moe->mask != HD_NONE) {
		share = hd_make2(m, HD_OP_MUL, share, shaped(m, seen(m, moe), t, 1, 0), none);
		hot = hd_make2(m, HD_OP_MUL, hot, shaped(m, seen(m, moe), t, 1, 1), none);
	}
	share = summed(m, share, 2, 0);
	hot = summed(m, hot, 6, 0);
	moe->likely = moe->nlayers ? hd_make2(m, HD_OP_ADD, moe->likely, share, none) : share;
	moe->named = moe->nlayers ? hd_make2(m, HD_OP_ADD, moe->named, hot, none) : hot;
	moe->nlayers++;
}

static uint32_t experts(struct hd_maker *m, const struct hd_moe *moe, const char *prefix, uint32_t x,
	uint32_t ids)
{
	const struct hd_attr tb = { .i = { 1 } };
	uint32_t gate = hd_make3(m, HD_OP_EXPERT_MATMUL, x, ids, param(m, prefix, moe->names->gate,
		HD_DIMS(moe->experts, moe->hidden, moe->width)), tb);
	uint32_t up = hd_make3(m, HD_OP_EXPERT_MATMUL, x, ids, param(m, prefix, moe->names->up,
		HD_DIMS(moe->experts, moe->hidden, moe->width)), tb);
	uint32_t h = moe->act == HD_ACT_SILU ? hd_make2(m, HD_OP_SWIGLU, gate, up, none) :
		hd_make2(m, HD_OP_MUL, hd_make1(m, HD_OP_ACT, gate,
		(struct hd_attr){ .i = { (int32_t)moe->act } }), up, none);

	return hd_make3(m, HD_OP_EXPERT_MATMUL, h, ids, param(m, prefix, moe->names->down,
		HD_DIMS(moe->experts, moe->width, moe->hidden)), tb);
}

uint32_t hd_make_moe(struct hd_maker *m, struct hd_moe *moe, const char *prefix, uint32_t x)
{
	const int64_t t = moe->positions, k = moe->chosen, e = moe->experts;
	uint32_t share = hd_make1(m, HD_OP_SOFTMAX, hd_make2(m, HD_OP_MATMUL, x, param(m, prefix,
		moe->names->router, HD_DIMS(e, moe->width)), turned), none);
	uint32_t ids = hd_make1(m, HD_OP_TOPK, share, (struct hd_attr){ .i = { 2, (int32_t)k } });
	uint32_t hot = hd_make1(m, HD_OP_ONE_HOT, ids, (struct hd_attr){ .i = { (int32_t)e } });
	uint32_t by = summed(m, hd_make2(m, HD_OP_MUL, hot, shaped(m, share, t, 1, e), none), 8, 0);

	if (moe->renormalize)
		by = hd_make2(m, HD_OP_DIV, by, summed(m, by, 4, 4), none);
	count(m, moe, share, hot);
	if (moe->mask != HD_NONE)
		ids = hd_make3(m, HD_OP_WHERE, shaped(m, moe->mask, t, 1, 0), ids,
			hd_make_ids(m, -1, HD_DIMS(1)), none);
	uint32_t y = experts(m, moe, prefix, x, admitted(m, moe, ids));
	return summed(m, hd_make2(m, HD_OP_MUL, y, shaped(m, by, t, k, 1), none), 4, 0);
}

uint32_t hd_make_balance(struct hd_maker *m, const struct hd_moe *moe)
{
	const double layers = (double)moe->nlayers, all = moe->mask == HD_NONE ? (double)moe->positions : 1;

	if (moe->nlayers == 0)
		return HD_NONE;
	uint32_t sum = scaled(m, summed(m, hd_make2(m, HD_OP_MUL, moe->named, moe->likely, none), 2, 2),
		moe->balance * (double)moe->experts / (layers * layers * all * all));
	if (moe->mask == HD_NONE)
		return sum;
	uint32_t tokens = summed(m, seen(m, moe), 2, 2);
	return hd_make2(m, HD_OP_DIV, sum, hd_make2(m, HD_OP_MUL, tokens, tokens, none), none);
}
