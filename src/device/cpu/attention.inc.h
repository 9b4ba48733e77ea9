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
 * 4. Padding: a key whose token is `pad`, or with HD_PAD_OTHERS another than the query's, scores minus
 *    infinity. A query that may see no
 *    other has y = 0 and lse = 0, and sends nothing back.
 * 5. Window: keys before the last `window` that a query sees score minus infinity too.
 * 6. Cap: scores become cap tanh(score / cap) before keys are hidden; what the slope of that is (1 - tanh^2)
 *    waits in scratch for the gradient. */
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
	int64_t window;                   /* 0: all that came before */
	float cap;                        /* 0: none */
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
	if (!s->packed) {
		h.window = call->attr.i[s->padded ? 4 : 3];
		h.scale = call->attr.f[0] > 0 ? call->attr.f[0] : h.scale;
		h.cap = call->attr.f[1];
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

/* Of query `at`. */
static inline void hide_padding(const struct head *h, float *s, int64_t at, int64_t keys)
{
	for (int64_t j = 0; h->pad == HD_PAD_OTHERS && j < keys; j++)
		if (h->ids[j] != h->ids[at])
			s[j] = -__builtin_inff();
	if (h->pad == HD_PAD_OTHERS)
		return;
	for (int64_t j = 0; j < keys; j++)
		if (h->ids[j] == h->pad)
			s[j] = -__builtin_inff();
}

/* The keys before the window of query `at`. */
static inline void hide_before(const struct head *h, float *s, int64_t at)
{
	for (int64_t j = 0; h->window && j + h->window <= at; j++)
		s[j] = -__builtin_inff();
}

/* Scores, still without their scale, become as large as if they had been capped with it; *slope, unless NULL:
 * by how much a capped score moves with its own. */
static inline void cap_row(const struct head *h, float *s, float *slope, int64_t keys)
{
	const struct vf in = vf_set(h->scale / h->cap), out = vf_set(h->cap / h->scale), one = vf_set(1.0f);

	HD_UNITS(j, len, (size_t)keys) {
		struct vf t = vf_tanh(vf_mul(vf_load_n(s + j, len), in));
		vf_store_n(s + j, vf_mul(t, out), len);
		if (slope)
			vf_store_n(slope + j, vf_sub(one, vf_mul(t, t)), len);
	}
}

static inline void mul_row(float *x, const float *by, int64_t n)
{
	HD_UNITS(j, len, (size_t)n)
		vf_store_n(x + j, vf_mul(vf_load_n(x + j, len), vf_load_n(by + j, len)), len);
}

/* What is done to row `i` of the scores of the queries from `at` on before they are weighed. */
static inline void ready_row(const struct head *h, float *s, float *slope, int64_t at, int64_t i,
	int64_t keys)
{
	if (h->cap > 0)
		cap_row(h, s, slope, keys);
	if (h->ids)
		hide_padding(h, s, at + i, seen_by(h, at, i));
	hide_before(h, s, at + i);
}

/* Rows of each matrix that later ones read or write, fetched while these are computed: head by head an
 * operand is rows that lie apart, nothing that a processor guesses. */
struct att_next { uint32_t n; int64_t lines; struct head_rows of[8]; };

HD_INLINE void next_add(struct att_next *next, struct head_rows rows, int64_t row)
{
	next->of[next->n++] = (struct head_rows){ rows.at + row * rows.step, rows.step };
}

HD_INLINE void fetch_next(const struct att_next *next, int64_t row)
{
	for (uint32_t m = 0; m < next->n; m++)
		for (int64_t l = 0; l < next->lines; l++)
			__builtin_prefetch(next->of[m].at + row * next->of[m].step +
				l * GEMM_LINE / (int64_t)sizeof(float), 0, 2);
}

/* Columns, whole units, that all queries from `at` on see. */
HD_INLINE int64_t surely_seen(const struct head *h, int64_t at)
{
	return seen_by(h, at, 0) / HD_UNIT * HD_UNIT;
}

/* Of the `len` columns from j on, those that a query sees that sees `seen` of all. */
HD_INLINE size_t seen_of(int64_t seen, int64_t j, int64_t len)
{
	return (size_t)(seen <= j ? 0 : min64(seen - j, len));
}

/* Rows of scores of the queries from `at` on become weights e^(s - top), those that are not seen 0; lse, and
 * sum[] of the weights. Each step is done for all rows, and all rows of a block have the same number of
 * units: so they do not wait for the end of each other's sums. */
HD_INLINE void soften(const struct head *h, int64_t at, int64_t rows, int64_t keys, float *s, float *sum,
	const struct att_next *next, int64_t first)
{
	const int64_t pitch = score_step(h->t), sure = surely_seen(h, at);
	const struct vf by = vf_set(h->scale), none = vf_set(-__builtin_inff()), zero = vf_set(0.0f);
	float base[ATT_ROWS];

	for (int64_t i = 0; i < rows; i++) {
		const float *x = s + i * pitch;
		struct vf top = none;
		for (int64_t j = 0; j < sure; j += HD_UNIT)
			top = vf_max(vf_load(x + j), top);
		for (int64_t j = sure; j < keys; j += HD_UNIT) {
			const int64_t len = min64(HD_UNIT, keys - j);
			const size_t seen = seen_of(seen_by(h, at, i), j, len);
			top = vf_max(vf_only(vf_load_n(x + j, (size_t)len), seen, none), top);
		}
		base[i] = vf_top(top) * h->scale;
		base[i] = base[i] == -__builtin_inff() ? 0.0f : base[i];
	}
	for (int64_t i = 0; i < rows; i++) {
		float *x = s + i * pitch;
		const struct vf less = vf_set(base[i]);
		struct vf lanes = zero;
		fetch_next(next, at - first + i);
		for (int64_t j = 0; j < sure; j += HD_UNIT) {
			struct vf e = vf_exp_finite(vf_sub(vf_mul(vf_load(x + j), by), less));
			vf_store(x + j, e);
			lanes = vf_add(lanes, e);
		}
		for (int64_t j = sure; j < keys; j += HD_UNIT) {
			const int64_t len = min64(HD_UNIT, keys - j);
			struct vf e = vf_exp_finite(vf_sub(vf_mul(vf_load_n(x + j, (size_t)len), by), less));
			e = vf_only(e, seen_of(seen_by(h, at, i), j, len), zero);
			vf_store_n(x + j, e, (size_t)len);
			lanes = vf_add(lanes, e);
		}
		sum[i] = vf_sum(lanes);
		if (sum[i] == 0.0f)
			sum[i] = 1.0f;            /* every key hidden: y is 0 */
	}
	HD_UNITS(i, len, (size_t)rows)
		vf_store_n(h->lse + at + i, vf_add(vf_load_n(base + i, len), vf_log(vf_load_n(sum + i, len))),
			len);
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

/* Of a tile whose queries begin with `first`. */
static inline void attend_block(const struct head *h, int64_t at, int64_t rows, int64_t packed_keys,
	const struct attend_room *room, const struct att_next *next, int64_t first)
{
	int64_t keys = keys_of(h, at, rows), pitch = score_step(h->t);
	struct gemm_out y = { h->y.at + at * h->y.step, h->y.step, rows, h->d, false };
	float sum[ATT_ROWS];

	against_keys(h->q, at, rows, room->kt, packed_keys, keys, h->d, room->s, pitch, room->work);
	for (int64_t i = 0; i < rows; i++)
		ready_row(h, room->s + i * pitch, NULL, at, i, keys);
	soften(h, at, rows, keys, room->s, sum, next, first);
	gemm_lines((struct mat){ room->s, pitch, false }, room->v, packed_keys, keys, &y, room->work);
	for (int64_t i = 0; i < rows; i++)
		divide_row(y.at + i * y.step, (size_t)h->d, sum[i]);
}

/* The queries [*first, *first + *rows) of a tile. */
static inline struct head attend_head(const struct hd_call *call, const struct att *s, uint32_t tile,
	int64_t *first, int64_t *rows)
{
	int64_t parts = query_parts(s->t), per = div_up(s->t, parts);

	*first = tile % parts * per;
	*rows = min64(per, s->t - *first);
	tile /= (uint32_t)parts;
	return head_of(call, s, &call->out[0], &call->out[1], tile / s->heads, tile % s->heads);
}

/* What tile + 1 needs, if it comes before `end`: keys and values where it has others. */
static inline struct att_next attend_next(const struct hd_call *call, const struct att *s, uint32_t tile,
	uint32_t end, int64_t from)
{
	struct att_next next = { .lines = div_up(s->d * (int64_t)sizeof(float), GEMM_LINE) };
	int64_t first, rows;

	if (tile + 1 >= end)
		return next;
	struct head h = attend_head(call, s, tile + 1, &first, &rows);
	next_add(&next, h.q, first);
	next_add(&next, h.y, first);
	h = attend_head(call, s, (uint32_t)min64(tile + query_parts(s->t), end - 1), &first, &rows);
	next_add(&next, h.k, from);
	next_add(&next, h.v, from);
	return next;
}

/* A tile; those from it up to `end` come after it. */
static inline void attend_run(const struct hd_call *call, struct att s, uint32_t tile, uint32_t end,
	void *scratch)
{
	int64_t first, rows;
	struct head h = attend_head(call, &s, tile, &first, &rows);
	struct attend_room room = attend_room(h.t, h.d, scratch);
	struct att_next next = attend_next(call, &s, tile, end, first);
	int64_t keys = keys_of(&h, first, rows);

	gemm_pack_b(room.kt, mat_of(h.k, 0, true), 0, keys, 0, h.d);
	gemm_pack_b(room.v, mat_of(h.v, 0, false), 0, h.d, 0, keys);
	for (int64_t at = 0; at < rows; at += ATT_ROWS)
		attend_block(&h, first + at, min64(ATT_ROWS, rows - at), keys, &room, &next, first);
}

/* Backward. */

struct attend_dx_room { float *kt, *vt, *k, *q, *dy, *s, *ds, *work, *slope; };

static inline size_t attend_dx_bytes(const struct hd_call *call, bool packed, int64_t t, int64_t d)
{
	int64_t whole = 2 * packed_b(t, d) + packed_b(d, t),
		deep = 2 * packed_b(d, ATT_DEEP) + 2 * scores_room(t, ATT_DEEP);
	int64_t slope = !packed && call->attr.f[1] > 0 ? scores_room(t, ATT_ROWS) : 0;
	return (size_t)(whole + deep + work_room(t, d) + slope) * sizeof(float);
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
	r.slope = r.work + work_room(t, d);
	return r;
}

/* Of a unit: scores s become p, dp = dy v^T becomes ds = p (dp - dy.y) scale. */
HD_INLINE void soften_unit(struct vf *s, struct vf *dp, struct vf by, struct vf lse, struct vf along)
{
	*s = vf_exp(vf_sub(vf_mul(*s, by), lse));
	*dp = vf_mul(vf_mul(*s, vf_sub(*dp, along)), by);
}

/* Rows of scores and of dp of the queries from `at` on; 0 where they are not seen. */
HD_INLINE void soften_dx(const struct head *h, int64_t at, int64_t rows, int64_t keys, float *s, float *ds,
	const float *along, const struct att_next *next)
{
	const int64_t pitch = score_step(h->t), sure = surely_seen(h, at);
	const struct vf by = vf_set(h->scale), zero = vf_set(0.0f);

	for (int64_t i = 0; i < rows; i++) {
		float *x = s + i * pitch, *dx = ds + i * pitch;
		const struct vf lse = vf_set(h->lse[at + i]), less = vf_set(along[i]);
		fetch_next(next, at + i);
		for (int64_t j = 0; j < sure; j += HD_UNIT) {
			struct vf p = vf_load(x + j), dp = vf_load(dx + j);
			soften_unit(&p, &dp, by, lse, less);
			vf_store(x + j, p);
			vf_store(dx + j, dp);
		}
		for (int64_t j = sure; j < keys; j += HD_UNIT) {
			const size_t len = (size_t)min64(HD_UNIT, keys - j),
				seen = seen_of(seen_by(h, at, i), j, (int64_t)len);
			struct vf p = vf_load_n(x + j, len), dp = vf_load_n(dx + j, len);
			soften_unit(&p, &dp, by, lse, less);
			vf_store_n(x + j, vf_only(p, seen, zero), len);
			vf_store_n(dx + j, vf_only(dp, seen, zero), len);
		}
	}
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
	int64_t to, const struct attend_dx_room *room, const struct att_next *next)
{
	int64_t keys = keys_of(h, at, rows), pitch = score_step(h->t);
	float *s = room->s + to * pitch, *ds = room->ds + to * pitch, along[ATT_ROWS];
	struct gemm_out dq = { g->dq.at + at * g->dq.step, g->dq.step, rows, h->d, false };

	against_keys(h->q, at, rows, room->kt, h->t, keys, h->d, s, pitch, room->work);
	against_keys(g->dy, at, rows, room->vt, h->t, keys, h->d, ds, pitch, room->work);
	for (int64_t i = 0; i < rows; i++) {
		along[i] = row_dot(g->dy.at + (at + i) * g->dy.step, h->y.at + (at + i) * h->y.step,
			(size_t)h->d);
		ready_row(h, s + i * pitch, room->slope + i * pitch, at, i, keys);
	}
	soften_dx(h, at, rows, keys, s, ds, along, next);
	for (int64_t i = 0; h->cap > 0 && i < rows; i++)
		mul_row(ds + i * pitch, room->slope + i * pitch, keys);
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

/* A head of queries and of keys with what their gradients are. */
static inline struct head attend_dx_head(const struct hd_call *call, const struct att *s, int64_t sample,
	int64_t head, struct grads *g)
{
	const struct hd_operand *y = &call->in[s->packed ? 2 : 4], *lse = y + 1;
	int64_t kv = head / (s->heads / s->kv);

	*g = (struct grads){ .dy = outs_of(s, &call->in[0], sample, head),
		.dq = lines_of(s, call->out, 0, sample, head), .dk = lines_of(s, call->out, 1, sample, kv),
		.dv = lines_of(s, call->out, 2, sample, kv) };
	return head_of(call, s, y, lse, sample, head);
}

/* What the next head of queries needs, of this tile or of the next one that comes before `end`. */
static inline struct att_next attend_dx_next(const struct hd_call *call, const struct att *s, uint32_t tile,
	uint32_t end, int64_t head)
{
	struct att_next next = { .lines = div_up(s->d * (int64_t)sizeof(float), GEMM_LINE) };
	int64_t sample = tile / s->kv, group = s->heads / s->kv, after = head + 1;
	bool other = after % group == 0;
	struct grads g;

	if (other && tile + 1 >= end)
		return next;
	struct head h = attend_dx_head(call, s, sample + after / s->heads, after % s->heads, &g);
	next_add(&next, h.q, 0);
	next_add(&next, h.y, 0);
	next_add(&next, g.dy, 0);
	next_add(&next, g.dq, 0);
	if (other) {
		next_add(&next, h.k, 0);
		next_add(&next, h.v, 0);
		next_add(&next, g.dk, 0);
		next_add(&next, g.dv, 0);
	}
	return next;
}

static inline void attend_dx_run(const struct hd_call *call, struct att s, uint32_t tile, uint32_t end,
	void *scratch)
{
	int64_t sample = tile / s.kv, kv = tile % s.kv, group = s.heads / s.kv;
	struct attend_dx_room room = attend_dx_room(s.t, s.d, scratch);
	struct grads g;
	struct head h = attend_dx_head(call, &s, sample, kv * group, &g);

	zero_lines(g.dk, h.t, h.d);
	zero_lines(g.dv, h.t, h.d);
	gemm_pack_b(room.kt, mat_of(h.k, 0, true), 0, h.t, 0, h.d);
	gemm_pack_b(room.vt, mat_of(h.v, 0, true), 0, h.t, 0, h.d);
	gemm_pack_b(room.k, mat_of(h.k, 0, false), 0, h.d, 0, h.t);
	for (int64_t head = kv * group; head < (kv + 1) * group; head++) {
		struct att_next next = attend_dx_next(call, &s, tile, end, head);
		h = attend_dx_head(call, &s, sample, head, &g);
		for (int64_t at = 0; at < h.t; at += ATT_DEEP) {
			int64_t rows = min64(ATT_DEEP, h.t - at);
			for (int64_t i = 0; i < rows; i += ATT_ROWS)
				attend_dx_rows(&h, &g, at + i, min64(ATT_ROWS, rows - i), i, &room, &next);
			attend_dx_keys(&h, &g, at, rows, &room);
		}
	}
}

/* Tiles [*from, *end) of piece i of n. */
HD_INLINE void piece_tiles(uint32_t ntiles, uint32_t i, uint32_t n, uint32_t *from, uint32_t *end)
{
	*from = (uint32_t)((uint64_t)ntiles * i / n);
	*end = (uint32_t)((uint64_t)ntiles * (i + 1) / n);
}

/* The longest is at most a tenth longer than an equal share. */
HD_INLINE bool piece_tiles_equal(uint32_t ntiles, uint32_t n)
{
	return 10 * (int64_t)n * div_up(ntiles, n) <= 11 * (int64_t)ntiles;
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
		attend_run(call, att_of(call, 0, packed, padded), tile, tile + 1, scratch);         \
	}                                                                                           \
	static inline void name##_piece(const struct hd_call *call, uint32_t i, uint32_t n, void *scratch) \
	{                                                                                           \
		uint32_t tile, end;                                                                 \
		for (piece_tiles(name##_ntiles(call), i, n, &tile, &end); tile < end; tile++)       \
			attend_run(call, att_of(call, 0, packed, padded), tile, end, scratch);      \
	}                                                                                           \
	static inline bool name##_divides(const struct hd_call *call, uint32_t n)                   \
	{                                                                                           \
		return piece_tiles_equal(name##_ntiles(call), n);                                   \
	}                                                                                           \
	static inline uint32_t name##_dx_ntiles(const struct hd_call *call)                         \
	{                                                                                           \
		return (uint32_t)(call->in[1].dim[0] * att_of(call, 1, packed, padded).kv);         \
	}                                                                                           \
	static inline size_t name##_dx_scratch(const struct hd_call *call)                          \
	{                                                                                           \
		struct att s = att_of(call, 1, packed, padded);                                     \
		return attend_dx_bytes(call, packed, s.t, s.d);                                     \
	}                                                                                           \
	static inline void name##_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch) \
	{                                                                                           \
		attend_dx_run(call, att_of(call, 1, packed, padded), tile, tile + 1, scratch);      \
	}                                                                                           \
	static inline void name##_dx_piece(const struct hd_call *call, uint32_t i, uint32_t n,      \
		void *scratch)                                                                      \
	{                                                                                           \
		uint32_t tile, end;                                                                 \
		for (piece_tiles(name##_dx_ntiles(call), i, n, &tile, &end); tile < end; tile++)    \
			attend_dx_run(call, att_of(call, 1, packed, padded), tile, end, scratch);   \
	}                                                                                           \
	static inline bool name##_dx_divides(const struct hd_call *call, uint32_t n)                \
	{                                                                                           \
		return piece_tiles_equal(name##_dx_ntiles(call), n);                                \
	}
HD_ATTENTIONS(X)
#undef X

#endif
