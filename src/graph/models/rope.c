#include "graph/models/rope.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const double two_pi = 6.28318530717958647692;

/* One head. */
struct rope_turns { const struct hd_rope *rope; int64_t rotary, context, original; double high; };

static int64_t rotary_of(const struct hd_rope *rope, int64_t each) { return (int64_t)((double)each *
	rope->part); }

static double plain(const struct rope_turns *t, double base, int64_t i)
{
	return pow(base, -2.0 * (double)i / (double)t->rotary);
}

static double linear(const struct rope_turns *t, int64_t i)
{
	return plain(t, t->rope->base, i) / t->rope->factor;
}

static double dynamic(const struct rope_turns *t, int64_t i)
{
	const double longest = fmax((double)t->context, (double)t->original), r = (double)t->rotary;
	const double more = t->rope->factor * longest / (double)t->original - (t->rope->factor - 1);

	return plain(t, t->rope->base * pow(more, r / (r - 2)), i);
}

/* The channel that turns `n` times within the original positions. */
static double channel_of(const struct rope_turns *t, double n)
{
	return (double)t->rotary * log((double)t->original / (n * two_pi)) / (2 * log(t->rope->base));
}

static double yarn(const struct rope_turns *t, int64_t i)
{
	double from = channel_of(t, t->high > 0 ? t->high : 32), to = channel_of(t, t->rope->low);
	const double fast = plain(t, t->rope->base, i);

	if (t->rope->whole) {
		from = floor(from);
		to = ceil(to);
	}
	from = fmax(from, 0);
	to = fmin(to, (double)t->rotary - 1);
	to += from == to ? 0.001 : 0;
	const double ramp = fmin(fmax(((double)i - from) / (to - from), 0), 1);
	return fast / t->rope->factor * ramp + fast * (1 - ramp);
}

static double llama3(const struct rope_turns *t, int64_t i)
{
	const double f = plain(t, t->rope->base, i), wave = two_pi / f, old = (double)t->original,
		low = t->rope->low, high = t->high > 0 ? t->high : 4;

	if (wave < old / high)
		return f;
	if (wave > old / low)
		return f / t->rope->factor;
	const double smooth = (old / wave - low) / (high - low);
	return (1 - smooth) * f / t->rope->factor + smooth * f;
}

static double longrope(const struct rope_turns *t, int64_t i)
{
	const struct hd_model_value *by = t->context > t->original ? t->rope->many : t->rope->few;

	return plain(t, t->rope->base, i) / by->reals[i];
}

static double no_scale(const struct rope_turns *t)
{
	(void)t;
	return 1;
}

static double yarn_scale(const struct rope_turns *t) { return t->rope->factor > 1 ?
	0.1 * log(t->rope->factor) + 1 :
	1; }

static double longrope_scale(const struct rope_turns *t)
{
	return t->rope->factor > 1 ? sqrt(1 + log(t->rope->factor) / log((double)t->original)) : 1;
}

static const struct rope_kind { const char *name; double (*of)(const struct rope_turns *t, int64_t i);
	double (*scale)(const struct rope_turns *t); } kinds[] = {
	{ "plain",    NULL,     no_scale },
	{ "linear",   linear,   no_scale },
	{ "dynamic",  dynamic,  no_scale },
	{ "yarn",     yarn,     yarn_scale },
	{ "llama3",   llama3,   no_scale },
	{ "longrope", longrope, longrope_scale },
	{ 0 },
};

static const struct rope_kind *kind_of(const char *name)
{
	const struct rope_kind *kind = kinds;

	while (kind->name && strcmp(kind->name, name) != 0)
		kind++;
	return kind->name ? kind : NULL;
}

enum hd_err hd_rope_check(const struct hd_rope *rope, int64_t each, struct hd_diag *diag)
{
	const struct rope_kind *kind = kind_of(rope->kind);
	int64_t rotary = rotary_of(rope, each);

	if (!kind)
		return hd_fail(diag, HD_E_INVAL,
			"argument 'rope_kind': '%s' is none of plain, linear, dynamic, yarn, llama3, "
			"longrope",
			rope->kind);
	if (rotary < 2 || rotary % 2 != 0)
		return hd_fail(diag, HD_E_INVAL,
			"argument 'rope_part': %g of %lld channels of a head are not an even number of them",
			rope->part, (long long)each);
	if (kind->of == dynamic && rotary < 4)
		return hd_fail(diag, HD_E_INVAL,
			"argument 'rope_kind': dynamic wants four channels that turn");
	if (kind->of == longrope && (rope->few->nlist != rotary / 2 || rope->many->nlist != rotary / 2))
		return hd_fail(diag, HD_E_INVAL,
			"arguments 'rope_few' and 'rope_many': %u and %u divisors, for %lld pairs of "
			"channels",
			rope->few->nlist, rope->many->nlist, (long long)(rotary / 2));
	if (kind->of == llama3 && !(rope->low < (rope->high > 0 ? rope->high : 4)))
		return hd_fail(diag, HD_E_INVAL, "argument 'rope_low' is not below 'rope_high'");
	return HD_OK;
}

uint32_t hd_make_frequencies(struct hd_maker *m, const struct hd_rope *rope, int64_t each, int64_t context,
	float *scale)
{
	const struct rope_kind *kind = kind_of(rope->kind);
	const struct rope_turns t = { rope, rotary_of(rope, each), context,
		rope->original ? rope->original : context, rope->high };
	float at[1 << 14];
	uint32_t out = HD_NONE;

	assert(kind && t.rotary / 2 <= 1 << 14);
	*scale = (float)(rope->scale > 0 ? rope->scale : kind->scale(&t));
	if (m->err != HD_OK || (!kind->of && t.rotary == each))
		return HD_NONE;
	for (int64_t i = 0; i < t.rotary / 2; i++)
		at[i] = (float)(kind->of ? kind->of(&t, i) : plain(&t, rope->base, i));
	m->err = hd_graph_const(m->graph, HD_F32, 1, (int64_t[]){ t.rotary / 2 }, at, &out, m->diag);
	return out;
}

uint32_t hd_make_rotary(struct hd_maker *m, uint32_t x, int32_t heads, const struct hd_rope *rope,
	uint32_t frequencies, float scale)
{
	if (frequencies == HD_NONE)
		return hd_make1(m, HD_OP_ROTARY, x,
			(struct hd_attr){ .i = { heads, 0 }, .f = { (float)rope->base } });
	return hd_make2(m, HD_OP_ROTARY_BY, x, frequencies,
		(struct hd_attr){ .i = { heads, 0 }, .f = { scale == 1.0f ? 0 : scale } });
}
