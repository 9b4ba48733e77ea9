/* Attention and the ops of op_sequences.h in the words of ONNX 17, which has none of them: taken apart. */
#include <math.h>
#include <string.h>

#include "graph/onnx/writer.h"

#define T(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

/* x / sqrt(mean x^2 + eps) * gamma */
static void w_rmsnorm(struct hd_ox *w)
{
	const char *x = hd_ox_name(w, 0), *mean = hd_ox_fresh(w);
	Onnx__NodeProto *n = hd_ox_emit_to(w, mean, "ReduceMean", hd_ox_emit(w, "Mul", x, x, NULL), NULL,
		NULL);

	hd_ox_set_ints(w, n, "axes", 1, (int64_t[]){ -1 });
	hd_ox_set_int(w, n, "keepdims", 1);
	const char *root = hd_ox_emit(w, "Sqrt", hd_ox_emit(w, "Add", mean,
		hd_ox_number(w, (double)w->at->attr.f[0]), NULL), NULL, NULL);
	hd_ox_last(w, "Mul", hd_ox_emit(w, "Div", x, root, NULL), hd_ox_name(w, 1), NULL);
}

static void w_swiglu(struct hd_ox *w)
{
	const char *a = hd_ox_name(w, 0);

	hd_ox_last(w, "Mul", hd_ox_emit(w, "Mul", a, hd_ox_emit(w, "Sigmoid", a, NULL, NULL), NULL),
		hd_ox_name(w, 1), NULL);
}

/* Cosines and sines of every position and pair, [T,1,D]: both halves of a head have the same. */
static const char *angles(struct hd_ox *w, int64_t tokens, int64_t each, double (*of)(double), float sign)
{
	float *at = hd_ox_take(w, (size_t)(tokens * each), sizeof *at);

	for (int64_t t = 0; t < tokens && !w->full; t++)
		for (int64_t e = 0; e < each; e++)
			at[t * each + e] = sign * (float)of((double)t * pow((double)w->at->attr.f[0],
				-2.0 * (double)(e % (each / 2)) / (double)each));
	return hd_ox_floats(w, 3, (int64_t[]){ tokens, 1, each }, at);
}

/* x cos + (-second half, first half) sin */
static void w_rotary(struct hd_ox *w)
{
	const struct hd_value *x = hd_ox_in(w, 0);
	int64_t tokens = x->dim[1], heads = hd_ox_attr(w, 0), each = x->dim[2] / heads, half = each / 2;
	const char *cut = hd_ox_reshaped(w, hd_ox_name(w, 0), 4, (int64_t[]){ -1, tokens, heads, each }),
		*part[2], *turned = hd_ox_fresh(w);

	for (int k = 0; k < 2; k++) {
		part[k] = hd_ox_fresh(w);
		Onnx__NodeProto *n = hd_ox_emit_to(w, part[k], "Slice", cut,
			hd_ox_ints(w, 1, (int64_t[]){ k * half }),
			hd_ox_ints(w, 1, (int64_t[]){ (k + 1) * half }));
		hd_ox_more(w, n, hd_ox_ints(w, 1, (int64_t[]){ 3 }));
	}
	hd_ox_set_int(w, hd_ox_emit_to(w, turned, "Concat", hd_ox_emit(w, "Neg", part[1], NULL, NULL),
		part[0], NULL), "axis", -1);
	const char *straight = hd_ox_emit(w, "Mul", cut, angles(w, tokens, each, cos, 1), NULL);
	const char *across = hd_ox_emit(w, "Mul", turned, angles(w, tokens, each, sin,
		hd_ox_attr(w, 1) ? -1 : 1), NULL);
	hd_ox_shape_to(w, hd_ox_result(w), hd_ox_emit(w, "Add", straight, across, NULL), 3,
		(int64_t[]){ -1, tokens, x->dim[2] });
}

/* ---- attention */

/* ids NULL: nothing is padded */
struct attention {
	int64_t tokens, heads, kv, each;
	bool causal;
	const char *ids;
	int32_t pad;
	int64_t window;                   /* 0: none */
	double scale, cap;                /* 0: 1/sqrt(each); none */
};

/* [N,T,H D] as [N,H,T,D]; keys and values of fewer heads are repeated for those that share them. */
static const char *heads_of(struct hd_ox *w, const char *x, const struct attention *a, int64_t heads)
{
	const char *cut = hd_ox_reshaped(w, x, 4, (int64_t[]){ -1, a->tokens, heads, a->each });
	const char *moved = hd_ox_permuted(w, cut, 4, (int64_t[]){ 0, 2, 1, 3 });

	if (heads == a->heads)
		return moved;
	const char *apart = hd_ox_reshaped(w, moved, 5, (int64_t[]){ -1, heads, 1, a->tokens, a->each });
	const char *each = hd_ox_emit(w, "Expand", apart, hd_ox_ints(w, 5,
		(int64_t[]){ 1, 1, a->heads / heads, 1, 1 }), NULL);
	return hd_ox_reshaped(w, each, 4, (int64_t[]){ -1, a->heads, a->tokens, a->each });
}

/* Which keys a query does not see, as bools; NULL: it sees all. */
static const char *hidden(struct hd_ox *w, const struct attention *a)
{
	const char *later = NULL, *padded = NULL;

	if (a->causal) {
		uint8_t *mask = hd_ox_take(w, (size_t)(a->tokens * a->tokens), 1);
		later = hd_ox_fresh(w);
		for (int64_t i = 0; i < a->tokens * a->tokens && !w->full; i++) {
			int64_t back = i / a->tokens - i % a->tokens;
			mask[i] = back < 0 || (a->window && back >= a->window);
		}
		hd_ox_tensor(w, later, T(BOOL), 2, (int64_t[]){ a->tokens, a->tokens }, mask,
			(size_t)(a->tokens * a->tokens));
	}
	if (a->ids && a->pad == HD_PAD_OTHERS) {
		const char *own = hd_ox_reshaped(w, a->ids, 4, (int64_t[]){ -1, 1, a->tokens, 1 });
		padded = hd_ox_reshaped(w, a->ids, 4, (int64_t[]){ -1, 1, 1, a->tokens });
		padded = hd_ox_emit(w, "Not", hd_ox_emit(w, "Equal", own, padded, NULL), NULL, NULL);
	} else if (a->ids) {
		int32_t *pad = hd_ox_take(w, 1, sizeof *pad);
		const char *number = hd_ox_fresh(w);
		*pad = a->pad;
		hd_ox_tensor(w, number, T(INT32), 0, NULL, pad, sizeof *pad);
		padded = hd_ox_reshaped(w, hd_ox_emit(w, "Equal", a->ids, number, NULL), 4,
			(int64_t[]){ -1, 1, 1, a->tokens });
	}
	return later && padded ? hd_ox_emit(w, "Or", later, padded, NULL) : later ? later : padded;
}

/* A query that sees nothing has zeros: its weights are taken away once more behind the softmax. */
static void attend(struct hd_ox *w, const char *q, const char *k, const char *v, const struct attention *a)
{
	const char *turned = hd_ox_turned(w, heads_of(w, k, a, a->kv), 4), *weights = hd_ox_fresh(w),
		*mask = hidden(w, a);
	const char *scores = hd_ox_emit(w, "MatMul", heads_of(w, q, a, a->heads), turned, NULL);

	scores = hd_ox_emit(w, "Mul", scores,
		hd_ox_number(w, a->scale > 0 ? a->scale : 1 / sqrt((double)a->each)), NULL);
	if (a->cap > 0) {
		scores = hd_ox_emit(w, "Mul", scores, hd_ox_number(w, 1 / a->cap), NULL);
		scores = hd_ox_emit(w, "Tanh", scores, NULL, NULL);
		scores = hd_ox_emit(w, "Mul", scores, hd_ox_number(w, a->cap), NULL);
	}
	if (mask)
		scores = hd_ox_emit(w, "Where", mask, hd_ox_number(w, -1e30), scores);
	hd_ox_set_int(w, hd_ox_emit_to(w, weights, "Softmax", scores, NULL, NULL), "axis", -1);
	if (a->ids)
		weights = hd_ox_emit(w, "Where", mask, hd_ox_number(w, 0), weights);
	const char *y = hd_ox_emit(w, "MatMul", weights, heads_of(w, v, a, a->kv), NULL);
	y = hd_ox_permuted(w, y, 4, (int64_t[]){ 0, 2, 1, 3 });
	hd_ox_shape_to(w, hd_ox_result(w), y, 3, (int64_t[]){ -1, a->tokens, a->heads * a->each });
}

static void w_attend(struct hd_ox *w)
{
	const struct hd_value *q = hd_ox_in(w, 0);
	bool padded = w->at->op == HD_OP_ATTEND_PAD;
	struct attention a = { q->dim[1], hd_ox_attr(w, 0), hd_ox_attr(w, 1), q->dim[2] / hd_ox_attr(w, 0),
		hd_ox_attr(w, 2), NULL, hd_ox_attr(w, 3), hd_ox_attr(w, padded ? 4 : 3),
		(double)w->at->attr.f[0], (double)w->at->attr.f[1] };

	a.ids = padded ? hd_ox_name(w, 3) : NULL;
	attend(w, hd_ox_name(w, 0), hd_ox_name(w, 1), hd_ox_name(w, 2), &a);
}

/* [N,T,3C]: q, k and v side by side. */
static void w_attention(struct hd_ox *w)
{
	const struct hd_value *x = hd_ox_in(w, 0);
	int64_t width = x->dim[2] / 3, heads = hd_ox_attr(w, 0);
	struct attention a = { x->dim[1], heads, heads, width / heads, hd_ox_attr(w, 1), NULL, 0, 0, 0, 0 };
	const char *part[3];

	for (int64_t k = 0; k < 3; k++) {
		part[k] = hd_ox_fresh(w);
		Onnx__NodeProto *n = hd_ox_emit_to(w, part[k], "Slice", hd_ox_name(w, 0),
			hd_ox_ints(w, 1, (int64_t[]){ k * width }),
			hd_ox_ints(w, 1, (int64_t[]){ (k + 1) * width }));
		hd_ox_more(w, n, hd_ox_ints(w, 1, (int64_t[]){ 2 }));
	}
	attend(w, part[0], part[1], part[2], &a);
}

/* Tokens are masked to train with; a model that is used sees them as they are. */
static void w_unmasked(struct hd_ox *w) { hd_ox_last(w, "Identity", hd_ox_name(w, 0), NULL, NULL); }

hd_ox_writes *const hd_ox_sequences[HD_NOPS] = {
	[HD_OP_ATTENTION] = w_attention, [HD_OP_ATTEND] = w_attend, [HD_OP_ATTEND_PAD] = w_attend,
		[HD_OP_RMSNORM] = w_rmsnorm,
	[HD_OP_ROTARY] = w_rotary,       [HD_OP_SWIGLU] = w_swiglu, [HD_OP_MASK_TOKENS] = w_unmasked,
};
