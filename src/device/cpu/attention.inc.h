/* attention.inc.h -- attention of one head over blocks of queries. One source for all paths.
 *
 * The scores of ATT_BLOCK queries against all keys they may see lie in scratch;
 * nothing of size T x T is kept, as in FlashAttention (Dao et al. 2022). Where we
 * depart: with T of some thousands a row of scores fits the cache, so the exact
 * maximum is taken first and nothing is rescaled. The backward pass computes the
 * probabilities anew from lse.
 *
 * 1. Forward: a tile is one block of queries of one head of one sample. Backward:
 *    one head of one sample, its blocks in ascending order.
 * 2. Order of sums: products are those of gemm.inc.h, over head size, keys, or (dk,
 *    dv) queries, all ascending; sums along a row of scores have 16 lanes.
 * 3. Causal: keys after the last query of the block are never touched; inside the
 *    block, hidden probabilities are +0 and take part in the products. */
#ifndef HD_DEVICE_CPU_ATTENTION_INC_H
#define HD_DEVICE_CPU_ATTENTION_INC_H

#include "device/cpu/gemm.inc.h"
#include "device/cpu/rows.inc.h"

enum { ATT_BLOCK = 64 };

/* What a tile works on: one head of one sample. Rows of q, k, v are `step` apart. */
struct head {
	int64_t t, d, c, step, nheads;
	bool causal;
	float scale;
	const float *q, *k, *v;
	uint64_t index;                   /* sample * heads + head */
	int64_t at_qkv, at_y;             /* where the head's first element lies in qkv and in y */
};

static inline struct head head_of(const struct hd_call *call, const struct hd_operand *qkv, uint64_t index)
{
	int64_t nheads = call->attr.i[0], step = qkv->dim[2], c = step / 3, d = c / nheads;
	int64_t sample = (int64_t)index / nheads, head = (int64_t)index % nheads, t = qkv->dim[1];
	struct head h = { .t = t, .d = d, .c = c, .step = step, .nheads = nheads, .causal = call->attr.i[1] != 0, .index = index };

	h.scale = 1.0f / __builtin_sqrtf((float)d);
	h.at_qkv = sample * t * step + head * d;
	h.at_y = sample * t * c + head * d;
	h.q = (const float *)qkv->at + h.at_qkv;
	h.k = h.q + c;
	h.v = h.k + c;
	return h;
}

/* Rows of scores start on whole vectors. */
HD_INLINE int64_t score_step(const struct head *h) { return round_up(h->t, HD_UNIT); }

/* Keys that the block of queries [at, at + rows) may see, and those that its query `i` may. */
HD_INLINE int64_t keys_of(const struct head *h, int64_t at, int64_t rows) { return h->causal ? at + rows : h->t; }
HD_INLINE int64_t seen_by(const struct head *h, int64_t at, int64_t i) { return h->causal ? at + i + 1 : h->t; }

static inline size_t head_gemm_scratch(const struct head *h)
{
	size_t wide = gemm_scratch(ATT_BLOCK, h->t, h->d), flat = gemm_scratch(ATT_BLOCK, h->d, h->t), tall = gemm_scratch(h->t, h->d, ATT_BLOCK);
	size_t most = wide > flat ? wide : flat;

	most = most > tall ? most : tall;
	return (most + 63) / 64 * 64;
}

/* s[rows, keys] = q k^T, unscaled. */
HD_INLINE void scores(const struct head *h, int64_t at, int64_t rows, int64_t keys, float *s, float *scratch)
{
	struct gemm_out out = { s, score_step(h), rows, keys, false };

	gemm((struct mat){ h->q + at * h->step, h->step, false }, (struct mat){ h->k, h->step, true }, out, h->d, scratch);
}

/* One row of scores becomes probabilities; the rest up to `keys` becomes 0. Returns lse. */
HD_INLINE float soften(float *s, size_t seen, size_t keys, float scale)
{
	struct vf lanes = vf_set(0.0f), by = vf_set(scale);
	float top = row_max(s, seen, -__builtin_inff()) * scale;

	HD_UNITS(i, len, seen) {
		struct vf e = vf_only(vf_exp(vf_sub(vf_mul(vf_load_n(s + i, len), by), vf_set(top))), len, vf_set(0.0f));
		vf_store_n(s + i, e, len);
		lanes = vf_add(lanes, e);
	}
	float sum = vf_sum(lanes);
	HD_UNITS(i, len, seen)
		vf_store_n(s + i, vf_div(vf_load_n(s + i, len), vf_set(sum)), len);
	for (size_t i = seen; i < keys; i++)
		s[i] = 0.0f;
	return top + one_log(sum);
}

HD_INLINE int64_t query_blocks(const struct hd_operand *qkv) { return div_up(qkv->dim[1], ATT_BLOCK); }

static inline uint32_t attention_ntiles(const struct hd_call *call)
{
	return (uint32_t)(call->in[0].dim[0] * call->attr.i[0] * query_blocks(&call->in[0]));
}

static inline size_t attention_scratch(const struct hd_call *call)
{
	struct head h = head_of(call, &call->in[0], 0);
	return (size_t)(ATT_BLOCK * score_step(&h)) * sizeof(float) + head_gemm_scratch(&h);
}

static inline void attention_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	int64_t nblocks = query_blocks(&call->in[0]), at = tile % nblocks * ATT_BLOCK;
	struct head h = head_of(call, &call->in[0], (uint64_t)(tile / nblocks));
	int64_t rows = min64(ATT_BLOCK, h.t - at), keys = keys_of(&h, at, rows);
	float *s = scratch, *work = s + ATT_BLOCK * score_step(&h);
	float *lse = (float *)call->out[1].at + (int64_t)h.index * h.t + at;
	struct gemm_out y = { (float *)call->out[0].at + h.at_y + at * h.c, h.c, rows, h.d, false };

	scores(&h, at, rows, keys, s, work);
	for (int64_t i = 0; i < rows; i++)
		lse[i] = soften(s + i * score_step(&h), (size_t)seen_by(&h, at, i), (size_t)keys, h.scale);
	gemm((struct mat){ s, score_step(&h), false }, (struct mat){ h.v, h.step, false }, y, keys, work);
}

static inline uint32_t attention_dx_ntiles(const struct hd_call *call)
{
	return (uint32_t)(call->in[1].dim[0] * call->attr.i[0]);
}

static inline size_t attention_dx_scratch(const struct hd_call *call)
{
	struct head h = head_of(call, &call->in[1], 0);
	return (size_t)(2 * ATT_BLOCK * score_step(&h)) * sizeof(float) + head_gemm_scratch(&h);
}

/* Row of scores s and of dp = dy v^T: s becomes p, dp becomes ds = p (dp - dy.y) scale. */
HD_INLINE void soften_dx(float *s, float *dp, size_t seen, size_t keys, float scale, float lse, float along)
{
	struct vf by = vf_set(scale);

	HD_UNITS(i, len, seen) {
		struct vf p = vf_exp(vf_sub(vf_mul(vf_load_n(s + i, len), by), vf_set(lse)));
		struct vf gap = vf_sub(vf_load_n(dp + i, len), vf_set(along));
		vf_store_n(s + i, p, len);
		vf_store_n(dp + i, vf_mul(vf_mul(p, gap), by), len);
	}
	for (size_t i = seen; i < keys; i++)
		s[i] = dp[i] = 0.0f;
}

HD_INLINE float row_dot(const float *a, const float *b, size_t n)
{
	struct vf lanes = vf_set(0.0f);

	HD_UNITS(i, len, n)
		lanes = vf_fma(vf_load_n(a + i, len), vf_load_n(b + i, len), lanes);
	return vf_sum(lanes);
}

/* Gradients of one block of queries: its rows of dq, and its share of all rows of dk and dv. */
static inline void attention_dx_block(const struct hd_call *call, const struct head *h, int64_t at, float *s, float *work)
{
	int64_t rows = min64(ATT_BLOCK, h->t - at), keys = keys_of(h, at, rows), pitch = score_step(h);
	float *dp = s + ATT_BLOCK * pitch, *dq = (float *)call->out[0].at + h->at_qkv;
	const float *dy = (const float *)call->in[0].at + h->at_y + at * h->c, *y = (const float *)call->in[2].at + h->at_y + at * h->c;
	const float *lse = (const float *)call->in[3].at + (int64_t)h->index * h->t + at;
	struct mat p = { s, pitch, false }, ds = { dp, pitch, false }, out = { dy, h->c, false };

	scores(h, at, rows, keys, s, work);
	gemm(out, (struct mat){ h->v, h->step, true }, (struct gemm_out){ dp, pitch, rows, keys, false }, h->d, work);
	for (int64_t i = 0; i < rows; i++)
		soften_dx(s + i * pitch, dp + i * pitch, (size_t)seen_by(h, at, i), (size_t)keys, h->scale, lse[i],
			row_dot(dy + i * h->c, y + i * h->c, (size_t)h->d));
	gemm(ds, (struct mat){ h->k, h->step, false }, (struct gemm_out){ dq + at * h->step, h->step, rows, h->d, false }, keys, work);
	p.turned = ds.turned = true;
	gemm(ds, (struct mat){ h->q + at * h->step, h->step, false }, (struct gemm_out){ dq + h->c, h->step, keys, h->d, true }, rows, work);
	gemm(p, out, (struct gemm_out){ dq + 2 * h->c, h->step, keys, h->d, true }, rows, work);
}

static inline void attention_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct head h = head_of(call, &call->in[1], tile);
	float *dk = (float *)call->out[0].at + h.at_qkv + h.c, *s = scratch, *work = s + 2 * ATT_BLOCK * score_step(&h);

	for (int64_t i = 0; i < h.t; i++) {
		memset(dk + i * h.step, 0, (size_t)h.d * sizeof *dk);
		memset(dk + h.c + i * h.step, 0, (size_t)h.d * sizeof *dk);
	}
	for (int64_t at = 0; at < h.t; at += ATT_BLOCK)
		attention_dx_block(call, &h, at, s, work);
}

#endif
