#include "device/reference/reference.h"

/* Element (n, c, h, w) of an image in blocks of 16 channels. */
static uint64_t at(const struct hd_operand *o, int64_t n, int64_t c, int64_t h, int64_t w)
{
	return (uint64_t)((((n * o->dim[1] + c / HD_BLOCK) * o->dim[2] + h) * o->dim[3] + w) * HD_BLOCK +
		c % HD_BLOCK);
}

/* The other way: the place of element e of a blocked image. */
struct pixel { int64_t n, c, h, w; };
static struct pixel place_of(const struct hd_operand *o, uint64_t e)
{
	int64_t pixel = (int64_t)e / HD_BLOCK, row = pixel / o->dim[3], plane = row / o->dim[2];

	return (struct pixel){ plane / o->dim[1], plane % o->dim[1] * HD_BLOCK + (int64_t)e % HD_BLOCK,
		row % o->dim[2], pixel % o->dim[3] };
}

static double read(const struct hd_operand *o, int64_t n, int64_t c, int64_t h, int64_t w)
{
	return (double)((const float *)o->at)[at(o, n, c, h, w)];
}

static void block(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *x = &call->in[0];

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		struct pixel p = place_of(&call->out[0], e);
		hd_ref_out(call, 0)[e] = p.c < x->dim[1] ? hd_ref_in(call,
			0)[((p.n * x->dim[1] + p.c) * x->dim[2] + p.h) * x->dim[3] + p.w] : 0;
	}
}

static void unblock(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const int64_t *y = call->out[0].dim;

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		int64_t w = (int64_t)e % y[3], h = (int64_t)e / y[3] % y[2],
			c = (int64_t)e / (y[3] * y[2]) % y[1], n = (int64_t)e / (y[3] * y[2] * y[1]);
		hd_ref_out(call, 0)[e] = (float)read(&call->in[0], n, c, h, w);
	}
}

/* w[K,C,R,S], whatever role it plays in the call. */
static double weight(const struct hd_operand *w, int64_t k, int64_t c, int64_t r, int64_t s)
{
	return (double)((const float *)w->at)[((k * w->dim[1] + c) * w->dim[2] + r) * w->dim[3] + s];
}

static void conv2d_b(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *x = &call->in[0], *w = &call->in[1];
	const int32_t *a = call->attr.i;

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		struct pixel y = place_of(&call->out[0], e);
		double sum = 0;
		for (int64_t c = 0; y.c < w->dim[0] && c < w->dim[1]; c++)
			for (int64_t r = 0; r < w->dim[2]; r++)
				for (int64_t s = 0; s < w->dim[3]; s++) {
					int64_t h = y.h * a[0] + r - a[2], i = y.w * a[1] + s - a[3];
					if (h >= 0 && h < x->dim[2] && i >= 0 && i < x->dim[3])
						sum += read(x, y.n, c, h, i) * weight(w, y.c, c, r, s);
				}
		hd_ref_out(call, 0)[e] = (float)sum;
	}
}

/* Every pixel of dy whose window covers the pixel of x. */
static void conv2d_b_dx(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *dy = &call->in[0], *w = &call->in[1];
	const int32_t *a = call->attr.i;

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		struct pixel x = place_of(&call->out[0], e);
		double sum = 0;
		for (int64_t k = 0; x.c < w->dim[1] && k < w->dim[0]; k++)
			for (int64_t r = 0; r < w->dim[2]; r++)
				for (int64_t s = 0; s < w->dim[3]; s++) {
					int64_t up = x.h + a[2] - r, left = x.w + a[3] - s;
					if (up >= 0 && left >= 0 && up % a[0] == 0 && left % a[1] == 0 &&
						up / a[0] < dy->dim[2] && left / a[1] < dy->dim[3])
						sum += read(dy, x.n, k, up / a[0], left / a[1]) * weight(w, k,
							x.c, r, s);
				}
		hd_ref_out(call, 0)[e] = (float)sum;
	}
}

static void conv2d_b_dw(const struct hd_call *call, uint64_t first, uint64_t last, void *scratch)
{
	const struct hd_operand *dy = &call->in[0], *x = &call->in[1];
	const int64_t *w = call->out[0].dim;
	const int32_t *a = call->attr.i;

	(void)scratch;
	for (uint64_t e = first; e < last; e++) {
		int64_t s = (int64_t)e % w[3], r = (int64_t)e / w[3] % w[2],
			c = (int64_t)e / (w[3] * w[2]) % w[1], k = (int64_t)e / (w[3] * w[2] * w[1]);
		double sum = 0;
		for (int64_t n = 0; n < x->dim[0]; n++)
			for (int64_t p = 0; p < dy->dim[2]; p++)
				for (int64_t q = 0; q < dy->dim[3]; q++) {
					int64_t h = p * a[0] + r - a[2], i = q * a[1] + s - a[3];
					if (h >= 0 && h < x->dim[2] && i >= 0 && i < x->dim[3])
						sum += read(dy, n, k, p, q) * read(x, n, c, h, i);
				}
		hd_ref_out(call, 0)[e] = (float)sum;
	}
}

static const struct hd_ref_op rows[HD_NOPS] = {
	[HD_OP_BLOCK]       = { hd_ref_elems, hd_ref_no_scratch, block },
	[HD_OP_UNBLOCK]     = { hd_ref_elems, hd_ref_no_scratch, unblock },
	[HD_OP_CONV2D_B]    = { hd_ref_elems, hd_ref_no_scratch, conv2d_b },
	[HD_OP_CONV2D_B_DX] = { hd_ref_elems, hd_ref_no_scratch, conv2d_b_dx },
	[HD_OP_CONV2D_B_DW] = { hd_ref_elems, hd_ref_no_scratch, conv2d_b_dw },
};

const struct hd_ref_op *hd_ref_blocked(uint16_t op) { return &rows[op]; }
