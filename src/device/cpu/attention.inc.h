/* attention.inc.h -- attention, one head at a time over blocks of queries. One source for all
 * paths and for all four forms: packed or with operands of its own, with or without padding.
 *
 * The scores of ATT_ROWS queries against all keys they may see lie in scratch;
 * nothing of size T x T is kept, as in FlashAttention (Dao et al. 2022). Where we
 * depart: with T of some thousands a row of scores fits the cache, so the exact
 * maximum is taken first and nothing is rescaled. The backward pass computes the
 * probabilities again from lse. Keys and values are packed once per tile; queries and
 * scores are read where they lie.
 *
 * 1. Forward: a tile is one head of one sample, at most ATT_TILE of its queries.
 *    Backward: one head of keys of one sample and all heads of queries that read it, these and
 *    their queries in ascending order.
 * 2. Order of sums: products are those of gemm.inc.h, over head size, keys, or (dk,
 *    dv) queries, all ascending; sums along a row of scores have 16 lanes. The weighted values
 *    are divided by the sum of weights last.
 * 3. Causal: blocks of keys after the last query of a block are never touched; inside the
 *    block, hidden weights are +0 and take part in the products.
 * 4. Padding: a key whose token is `pad` scores minus infinity. A query that may see no
 *    other has y = 0 and lse = 0, and sends nothing back. */
#ifndef HD_DEVICE_CPU_ATTENTION_INC_H
#define HD_DEVICE_CPU_ATTENTION_INC_H

#include "device/cpu/gemm.inc.h"
#include "device/cpu/rows.inc.h"

enum { ATT_ROWS = 28, ATT_DEEP = 4 * ATT_ROWS, ATT_TILE = 256 };

/* Rows of one head: row i at at + i*step. */
struct head_rows { float *at; int64_t step; };

/* A call, seen from one head of queries of one sample. */
struct head {
	int64_t t, d;
	bool causal;
	float scale;
	struct head_rows q, k, v, y;
	float *lse;
	const int32_t *ids;               /* of the sample's tokens; NULL: no key is padding */
	int32_t pad;
};

/* How the operands of a call lie: `first` is the operand q (or qkv, packed), y and lse are what forward
 * makes. */
struct att { int64_t t, d, heads, kv; int first; bool packed, padded; };

HD_INLINE struct att att_of(const struct hd_call *call, int first, bool packed, bool padded)
{
	const struct hd_operand *q = &call->in[first];
	int64_t heads = call->attr.i[0];

	return (struct att){ .t = q->dim[1], .d = q->dim[2] / (packed ? 3 : 1) / heads, .heads = heads,
		.kv = packed ? heads : call->attr.i[1],
		.first = first, .packed = packed, .padded = padded };
}

/* `which`: q, k or v. The same places serve the gradients, whose operands begin at *at. */
HD_INLINE struct head_rows lines_of(const struct att *s, const struct hd_operand *at, int which,
	int64_t sample,
	int64_t head)
{
	int64_t heads = which == 0 ? s->heads : s->kv, step = heads * s->d * (s->packed ? 3 : 1);
	float *from = s->packed ? (float *)at[0].at + which * s->heads * s->d : at[which].at;

	return (struct head_rows){ from + sample * s->t * step + head * s->d, step };
}

HD_INLINE struct head_rows outs_of(const struct att *s, const struct hd_operand *y, int64_t sample,
	int64_t head)
{
	int64_t step = s->heads * s->d;
	return (struct head_rows){ (float *)y->at + sample * s->t * step + head * s->d, step };
}

static inline struct head head_of(const struct hd_call *call, const struct att *s, const struct hd_operand *y,
	const struct hd_operand *lse,
	int64_t sample, int64_t head)
{
	const struct hd_operand *in = &call->in[s->first];
	int64_t reads = head / (s->heads / s->kv);
	struct head h = { .t = s->t, .d = s->d, .causal = call->attr.i[s->packed ? 1 : 2] != 0,
		.scale = 1.0f / __builtin_sqrtf((float)s->d) };

	h.q = lines_of(s, in, 0, sample, head);
	h.k = lines_of(s, in, 1, sample, reads);
	h.v = lines_of(s, in, 2, sample, reads);
	h.y = outs_of(s, y, sample, head);
	h.lse = (float *)lse->at + (sample * s->heads + head) * s->t;
	if (s->padded) {
		h.ids = (const int32_t *)call->in[call->nin - 1].at + sample * s->t;
		h.pad = call->attr.i[3];
	}
	return h;
}

HD_INLINE struct mat mat_of(struct head_rows x, int64_t row, bool turned) { return (struct mat){ x.at + row *
	x.step, x.step, turned }; }

/* Rows of scores start on whole vectors, and not in the same few sets of the cache. */
HD_INLINE int64_t score_step(int64_t t) { return gemm_pitch(t); }

/* Keys that the queries [at, at + rows) may see, and those that query `i` of them may. */
HD_INLINE int64_t keys_of(const struct head *h, int64_t at,
	int64_t rows) { return h->causal ? at + rows : h->t; }
HD_INLINE int64_t seen_by(const struct head *h, int64_t at, int64_t i) { return h->causal ? at + i + 1 : h->t;
	}

/* to[rows, keys] = x b for rows [at, at + rows) of x and b packed for `packed_keys` keys, of which whole
 * panels are computed. */
HD_INLINE void against_keys(struct head_rows x, int64_t at, int64_t rows, const float *b, int64_t packed_keys,
	int64_t keys, int64_t d,
	float *to, int64_t pitch, float *work)
{
	struct gemm_out out = { to, pitch, rows, min64(round_up(keys, GEMM_WIDTH), packed_keys), false };

	gemm_lines(mat_of(x, at, false), b, d, d, &out, work);
}

static inline void hide_padding(const struct head *h, float *s, int64_t keys)
{
	for (int64_t j = 0; j < keys; j++)
		if (h->ids[j] == h->pad)
			s[j] = -__builtin_inff();
}

/* One row of scores becomes weights e^(s - top); the rest up to `keys` becomes 0. Returns lse; *sum is
 * that of the weights. */
HD_INLINE float soften(float *s, size_t seen, size_t keys, float scale, float *sum)
{
	struct vf lanes = vf_set(0.0f), by = vf_set(scale);
	float top = row_max(s, seen, -__builtin_inff()) * scale, base = top == -__builtin_inff() ? 0.0f : top;

	HD_UNITS(i, len, seen) {
		struct vf e = vf_only(vf_exp(vf_sub(vf_mul(vf_load_n(s + i, len), by), vf_set(base))), len,
			vf_set(0.0f));
		vf_store_n(s + i, e, len);
		lanes = vf_add(lanes, e);
	}
	*sum = vf_sum(lanes);
	for (size_t i = seen; i < keys; i++)
		s[i] = 0.0f;
	if (*sum == 0.0f)
		*sum = 1.0f;                      /* every key hidden: y is 0 */
	return base + one_log(*sum);
}

HD_INLINE void divide_row(float *x, size_t n, float by)
{
	HD_UNITS(i, len, n)
		vf_store_n(x + i, vf_div(vf_load_n(x + i, len), vf_set(by)), len);
}

/* Forward. */

/* Floats of scratch: keys turned and values, packed; scores; whatever is packed at the moment. */
struct attend_room { float *kt, *v, *s, *work; };

HD_INLINE int64_t scores_room(int64_t t, int64_t rows) { return rows * score_step(t) + HD_UNIT; }
HD_INLINE int64_t work_room(int64_t t, int64_t d) { return gemm_room_a(ATT_ROWS, d > t ? d : t); }

static inline size_t attend_bytes(int64_t t, int64_t d)
{
	return (size_t)(packed_b(t, d) + packed_b(d, t) + scores_room(t, ATT_ROWS) + work_room(t, d)) *
		sizeof(float);
}

static inline struct attend_room attend_room(int64_t t, int64_t d, float *at)
{
	float *v = at + packed_b(t, d), *s = v + packed_b(d, t);
	return (struct attend_room){ at, v, s, s + scores_room(t, ATT_ROWS) };
}

HD_INLINE int64_t query_parts(int64_t t) { return div_up(t, ATT_TILE); }

static inline uint32_t attend_tiles(const struct hd_call *call, struct att s)
{
	return (uint32_t)(call->in[0].dim[0] * s.heads * query_parts(s.t));
}

static inline void attend_block(const struct head *h, int64_t at, int64_t rows, int64_t packed_keys,
	const struct attend_room *room)
{
	int64_t keys = keys_of(h, at, rows), pitch = score_step(h->t);
	struct gemm_out y = { h->y.at + at * h->y.step, h->y.step, rows, h->d, false };
	float sum[ATT_ROWS];

	against_keys(h->q, at, rows, room->kt, packed_keys, keys, h->d, room->s, pitch, room->work);
	for (int64_t i = 0; i < rows; i++) {
		float *s = room->s + i * pitch;
		if (h->ids)
			hide_padding(h, s, seen_by(h, at, i));
		h->lse[at + i] = soften(s, (size_t)seen_by(h, at, i), (size_t)keys, h->scale, &sum[i]);
	}
	gemm_lines((struct mat){ room->s, pitch, false }, room->v, packed_keys, keys, &y, room->work);
	for (int64_t i = 0; i < rows; i++)
		divide_row(y.at + i * y.step, (size_t)h->d, sum[i]);
}

static inline void attend_run(const struct hd_call *call, struct att s, uint32_t tile, void *scratch)
{
	int64_t parts = query_parts(s.t), per = div_up(s.t, parts), first = tile % parts * per,
		rows = min64(per, s.t - first);
	struct head h = head_of(call, &s, &call->out[0], &call->out[1], tile / parts / s.heads,
		tile / parts % s.heads);
	struct attend_room room = attend_room(h.t, h.d, scratch);
	int64_t keys = keys_of(&h, first, rows);

	gemm_pack_b(room.kt, mat_of(h.k, 0, true), 0, keys, 0, h.d);
	gemm_pack_b(room.v, mat_of(h.v, 0, false), 0, h.d, 0, keys);
	for (int64_t at = 0; at < rows; at += ATT_ROWS)
		attend_block(&h, first + at, min64(ATT_ROWS, rows - at), keys, &room);
}

/* Backward. */

struct attend_dx_room { float *kt, *vt, *k, *q, *dy, *s, *ds, *work; };

static inline size_t attend_dx_bytes(int64_t t, int64_t d)
{
	int64_t whole = 2 * packed_b(t, d) + packed_b(d, t),
		deep = 2 * packed_b(d, ATT_DEEP) + 2 * scores_room(t, ATT_DEEP);
	return (size_t)(whole + deep + work_room(t, d)) * sizeof(float);
}

static inline struct attend_dx_room attend_dx_room(int64_t t, int64_t d, float *at)
{
	struct attend_dx_room r = { .kt = at };

	r.vt = r.kt + packed_b(t, d);
	r.k = r.vt + packed_b(t, d);
	r.q = r.k + packed_b(d, t);
	r.dy = r.q + packed_b(d, ATT_DEEP);
	r.s = r.dy + packed_b(d, ATT_DEEP);
	r.ds = r.s + scores_room(t, ATT_DEEP);
	r.work = r.ds + scores_room(t, ATT_DEEP);
	return r;
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

struct grads { struct head_rows dy, dq, dk, dv; };

/* Rows [at, at + rows) of p and of ds, into rows `to` of the scratch, and those of dq. */
static inline void attend_dx_rows(const struct head *h, const struct grads *g, int64_t at, int64_t rows,
	int64_t to, const struct attend_dx_room *room)
{
	int64_t keys = keys_of(h, at, rows), pitch = score_step(h->t);
	float *s = room->s + to * pitch, *ds = room->ds + to * pitch;
	struct gemm_out dq = { g->dq.at + at * g->dq.step, g->dq.step, rows, h->d, false };

	against_keys(h->q, at, rows, room->kt, h->t, keys, h->d, s, pitch, room->work);
	against_keys(g->dy, at, rows, room->vt, h->t, keys, h->d, ds, pitch, room->work);
	for (int64_t i = 0; i < rows; i++) {
		float along = row_dot(g->dy.at + (at + i) * g->dy.step, h->y.at + (at + i) * h->y.step,
			(size_t)h->d);
		if (h->ids)
			hide_padding(h, s + i * pitch, seen_by(h, at, i));
		soften_dx(s + i * pitch, ds + i * pitch, (size_t)seen_by(h, at, i), (size_t)keys, h->scale,
			h->lse[at + i], along);
	}
	gemm_lines((struct mat){ ds, pitch, false }, room->k, h->t, keys, &dq, room->work);
}

/* What the queries [at, at + rows), whose p and ds lie in scratch, add to the rows of dk and dv that they
 * see. Blocks of keys start where blocks of queries do, so a causal block skips whole rows of zeros. */
static inline void attend_dx_keys(const struct head *h, const struct grads *g, int64_t at, int64_t rows,
	const struct attend_dx_room *room)
{
	int64_t keys = keys_of(h, at, rows), pitch = score_step(h->t);

	gemm_pack_b(room->q, mat_of(h->q, at, false), 0, h->d, 0, rows);
	gemm_pack_b(room->dy, mat_of(g->dy, at, false), 0, h->d, 0, rows);
	for (int64_t j = 0; j < keys; j += ATT_ROWS) {
		int64_t m = min64(ATT_ROWS, keys - j), from = h->causal && j > at ? j - at : 0;
		struct gemm_out dk = { g->dk.at + j * g->dk.step, g->dk.step, m, h->d, true };
		struct gemm_out dv = { g->dv.at + j * g->dv.step, g->dv.step, m, h->d, true };
		gemm_turned(room->ds + from * pitch + j, pitch, room->q, rows, from, rows, &dk);
		gemm_turned(room->s + from * pitch + j, pitch, room->dy, rows, from, rows, &dv);
	}
}

static inline void zero_lines(struct head_rows x, int64_t rows, int64_t d)
{
	for (int64_t i = 0; i < rows; i++)
		memset(x.at + i * x.step, 0, (size_t)d * sizeof *x.at);
}

static inline void attend_dx_run(const struct hd_call *call, struct att s, uint32_t tile, void *scratch)
{
	int64_t sample = tile / s.kv, kv = tile % s.kv, group = s.heads / s.kv;
	const struct hd_operand *y = &call->in[s.packed ? 2 : 4], *lse = y + 1;
	struct attend_dx_room room = attend_dx_room(s.t, s.d, scratch);
	struct head h = head_of(call, &s, y, lse, sample, kv * group);
	struct grads g = { .dk = lines_of(&s, call->out, 1, sample, kv),
		.dv = lines_of(&s, call->out, 2, sample, kv) };

	zero_lines(g.dk, h.t, h.d);
	zero_lines(g.dv, h.t, h.d);
	gemm_pack_b(room.kt, mat_of(h.k, 0, true), 0, h.t, 0, h.d);
	gemm_pack_b(room.vt, mat_of(h.v, 0, true), 0, h.t, 0, h.d);
	gemm_pack_b(room.k, mat_of(h.k, 0, false), 0, h.d, 0, h.t);
	for (int64_t head = kv * group; head < (kv + 1) * group; head++) {
		h = head_of(call, &s, y, lse, sample, head);
		g.dy = outs_of(&s, &call->in[0], sample, head);
		g.dq = lines_of(&s, call->out, 0, sample, head);
		for (int64_t at = 0; at < h.t; at += ATT_DEEP) {
			int64_t rows = min64(ATT_DEEP, h.t - at);
			for (int64_t i = 0; i < rows; i += ATT_ROWS)
				attend_dx_rows(&h, &g, at + i, min64(ATT_ROWS, rows - i), i, &room);
			attend_dx_keys(&h, &g, at, rows, &room);
		}
	}
}

/* name, packed, padded: each form is its own code, for the constants. */
#define HD_ATTENTIONS(X) X(attention, true, false) X(attend, false, false) X(attend_pad, false, true)
#define X(name, packed, padded)                                                                     \
	static inline uint32_t name##_ntiles(const struct hd_call *call)                            \
	{                                                                                           \
		return attend_tiles(call, att_of(call, 0, packed, padded));                         \
	}                                                                                           \
	static inline size_t name##_scratch(const struct hd_call *call)                             \
	{                                                                                           \
		struct att s = att_of(call, 0, packed, padded);                                     \
		return attend_bytes(s.t, s.d);                                                      \
	}                                                                                           \
	static inline void name##_tile(const struct hd_call *call, uint32_t tile, void *scratch)    \
	{                                                                                           \
		attend_run(call, att_of(call, 0, packed, padded), tile, scratch);                   \
	}                                                                                           \
	static inline uint32_t name##_dx_ntiles(const struct hd_call *call)                         \
	{                                                                                           \
		return (uint32_t)(call->in[1].dim[0] * att_of(call, 1, packed, padded).kv);         \
	}                                                                                           \
	static inline size_t name##_dx_scratch(const struct hd_call *call)                          \
	{                                                                                           \
		struct att s = att_of(call, 1, packed, padded);                                     \
		return attend_dx_bytes(s.t, s.d);                                                   \
	}                                                                                           \
	static inline void name##_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch) \
	{                                                                                           \
		attend_dx_run(call, att_of(call, 1, packed, padded), tile, scratch);                \
	}
HD_ATTENTIONS(X)
#undef X

#endif
