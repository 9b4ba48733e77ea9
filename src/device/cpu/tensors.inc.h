/* tensors.inc.h -- elementwise ops of broadcast operands, and data moved about. One source for
 * all paths.
 *
 * 1. Tiles are runs of the output, or whole rows [axis, inner] of an operand seen as
 *    [outer, axis, inner].
 * 2. Elements are computed alone or copied: no order to fix, sums of scatter_add excepted,
 *    which go up in the order of the ids. */
#ifndef HD_DEVICE_CPU_TENSORS_INC_H
#define HD_DEVICE_CPU_TENSORS_INC_H

#include "device/cpu/rows.inc.h"
#include "device/cpu/walk.inc.h"

/* What is no number wins, so that it shows. */
HD_INLINE struct vf vf_larger(struct vf a, struct vf b) { return vf_select(vm_or(vf_lt(b, a),
	vm_not(vf_eq(a, a))), a, b); }
HD_INLINE struct vf vf_smaller(struct vf a, struct vf b) { return vf_select(vm_or(vf_lt(a, b),
	vm_not(vf_eq(a, a))), a, b); }
HD_INLINE struct vf vf_truth(struct vm m) { return vf_select(m, vf_set(1.0f), vf_set(0.0f)); }

HD_INLINE struct vf pair_of(int op, struct vf a, struct vf b)
{
	switch (op) {
	case HD_OP_ADD:     return vf_add(a, b);
	case HD_OP_SUB:     return vf_sub(a, b);
	case HD_OP_MUL:     return vf_mul(a, b);
	case HD_OP_DIV:     return vf_div(a, b);
	case HD_OP_MAXIMUM: return vf_larger(a, b);
	case HD_OP_MINIMUM: return vf_smaller(a, b);
	case HD_OP_LESS:    return vf_truth(vf_lt(a, b));
	case HD_OP_LESS_EQ: return vf_truth(vm_or(vf_lt(a, b), vf_eq(a, b)));
	default:            return vf_truth(vf_eq(a, b));
	}
}

/* Sums that do not fit wrap. */
HD_INLINE int32_t pair_of_int(int op, int32_t a, int32_t b)
{
	switch (op) {
	case HD_OP_ADD:     return (int32_t)((uint32_t)a + (uint32_t)b);
	case HD_OP_SUB:     return (int32_t)((uint32_t)a - (uint32_t)b);
	case HD_OP_MUL:     return (int32_t)((uint32_t)a * (uint32_t)b);
	case HD_OP_DIV:     return b == 0 ? 0 : b == -1 ? (int32_t)(0u - (uint32_t)a) : a / b;
	case HD_OP_MAXIMUM: return a > b ? a : b;
	default:            return a < b ? a : b;
	}
}
HD_INLINE float truth_of_int(int op, int32_t a, int32_t b) { return (op == HD_OP_LESS ? a < b :
	op == HD_OP_LESS_EQ ? a <= b : a == b) ? 1.0f : 0.0f; }

HD_INLINE struct vf still_or_load(const float *at, bool still,
	size_t n) { return still ? vf_set(*at) : vf_load_n(at, n); }

/* Steps of the innermost axis are 0 or 1. */
HD_INLINE void pair_run(int op, const float *a, bool sa, const float *b, bool sb, float *out, uint64_t n)
{
	if (!sa && !sb) {
		HD_UNITS(i, len, n)
			vf_store_n(out + i, pair_of(op, vf_load_n(a + i, len), vf_load_n(b + i, len)), len);
		return;
	}
	HD_UNITS(i, len, n)
		vf_store_n(out + i, pair_of(op, still_or_load(sa ? a : a + i, sa, len),
			still_or_load(sb ? b : b + i, sb, len)), len);
}

/* All of them in one loop: integers are few. */
static __attribute__((noinline)) void pair_run_int(int op, const int32_t *a, int64_t sa, const int32_t *b,
	int64_t sb, void *out, uint64_t n)
{
	bool compares = op == HD_OP_LESS || op == HD_OP_LESS_EQ || op == HD_OP_EQUAL;

	for (int64_t i = 0; i < (int64_t)n; i++)
		if (compares)
			((float *)out)[i] = truth_of_int(op, a[i * sa], b[i * sb]);
		else
			((int32_t *)out)[i] = pair_of_int(op, a[i * sa], b[i * sb]);
}

typedef void pair_fn(const float *a, bool sa, const float *b, bool sb, float *out, uint64_t n);
static __attribute__((noinline)) void pair_tile(const struct hd_call *call, uint32_t tile, pair_fn *fn)
{
	struct elem_run run = map_run(call, tile);
	struct walk w = walk_broadcast(call);
	struct walk_place p = walk_start(&w, run.at);
	int64_t sa = w.step[0][w.naxes - 1], sb = w.step[1][w.naxes - 1];
	bool ints = call->in[0].dtype == HD_I32;

	HD_WALK(w, p, i, n, run) {
		const float *a = (const float *)call->in[0].at + p.off[0] + p.col * sa,
			*b = (const float *)call->in[1].at + p.off[1] + p.col * sb;
		float *out = (float *)call->out[0].at + i;
		if (ints)
			pair_run_int(call->op, (const int32_t *)(const void *)a, sa,
				(const int32_t *)(const void *)b, sb, out, n);
		else
			fn(a, sa == 0, b, sb == 0, out, n);
	}
}

#define HD_PAIRS(X) X(add, ADD) X(sub, SUB) X(mul, MUL) X(div, DIV) X(maximum, MAXIMUM) X(minimum, MINIMUM) \
	X(less, LESS) X(less_eq, LESS_EQ) X(equal, EQUAL)
#define X(name, id) \
	static void name##_pairs(const float *a, bool sa, const float *b, bool sb, float *out, uint64_t n) \
	{ pair_run(HD_OP_##id, a, sa, b, sb, out, n); } \
	static inline void name##_tile(const struct hd_call *call, uint32_t tile, void *scratch) \
	{ (void)scratch; pair_tile(call, tile, name##_pairs); }
HD_PAIRS(X)
#undef X

/* The tile of a pair of f32 in a file of its own (graph/ops.def); NAME_lanes(a, b) is what it computes. */
#define HD_PAIR_TILE(name) \
	static void name##_pairs(const float *a, bool sa, const float *b, bool sb, float *out, uint64_t n) \
	{ \
		HD_UNITS(i, len, n) \
			vf_store_n(out + i, name##_lanes(still_or_load(sa ? a : a + i, sa, len), \
				still_or_load(sb ? b : b + i, sb, len)), len); \
	} \
	static inline void name##_tile(const struct hd_call *call, uint32_t tile, void *scratch) \
	{ (void)scratch; pair_tile(call, tile, name##_pairs); }

HD_INLINE bool is_true(const struct hd_operand *c, int64_t i)
{
	return c->dtype == HD_U8 ? ((const uint8_t *)c->at)[i] != 0 : c->dtype == HD_I32 ?
		((const int32_t *)c->at)[i] != 0 :
		((const float *)c->at)[i] != 0.0f;
}

static inline void where_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct elem_run run = map_run(call, tile);
	struct walk w = walk_broadcast(call);
	struct walk_place p = walk_start(&w, run.at);
	int last = w.naxes - 1;
	(void)scratch;

	HD_WALK(w, p, i, n, run)
		for (int64_t j = 0; j < (int64_t)n; j++) {
			int64_t col = p.col + j;
			bool yes = is_true(&call->in[0], p.off[0] + col * w.step[0][last]);
			const uint32_t *from = call->in[yes ? 1 : 2].at;
			((uint32_t *)call->out[0].at)[(int64_t)i + j] =
				from[p.off[yes ? 1 : 2] + col * w.step[yes ? 1 : 2][last]];
		}
}

/* Elements of any size, n of them, `step` apart where they come from. */
#define HD_MOVE(type) \
	for (int64_t i = 0; i < (int64_t)n; i++) ((type *)to)[i] = ((const type *)from)[i * step]
HD_INLINE void move_run(void *to, const void *from, int64_t step, uint64_t n, size_t bytes)
{
	if (step == 1)
		memcpy(to, from, n * bytes);
	else if (bytes == 4)
		HD_MOVE(uint32_t);
	else if (bytes == 8)
		HD_MOVE(uint64_t);
	else
		HD_MOVE(uint8_t);
}

static __attribute__((noinline)) void move_tile(const struct hd_call *call, uint32_t tile, struct walk w,
	int64_t base)
{
	struct elem_run run = map_run(call, tile);
	struct walk_place p = walk_start(&w, run.at);
	int64_t step = w.step[0][w.naxes - 1];
	size_t bytes = hd_dtype_bytes((enum hd_dtype)call->in[0].dtype);

	HD_WALK(w, p, i, n, run)
		move_run((uint8_t *)call->out[0].at + i * bytes,
			(const uint8_t *)call->in[0].at + (base + p.off[0] + p.col * step) * (int64_t)bytes,
			step, n, bytes);
}

static inline void expand_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	(void)scratch;
	move_tile(call, tile, walk_broadcast(call), 0);
}

/* Elements between neighbours of extent d. */
HD_INLINE int64_t inner_of(const struct hd_operand *x, int d)
{
	int64_t n = 1;

	for (int i = d + 1; i < x->rank; i++)
		n *= x->dim[i];
	return n;
}

static inline void permute_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct hd_operand *x = &call->in[0];
	struct walk w = { .nin = 1 };
	(void)scratch;

	for (int d = 0; d < x->rank; d++) {
		int64_t step = inner_of(x, call->attr.i[d]);
		walk_axis(&w, x->dim[call->attr.i[d]], &step);
	}
	walk_close(&w);
	move_tile(call, tile, w, 0);
}

/* axis from step count */
static inline void slice_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	const struct hd_operand *x = &call->in[0];
	const int32_t *a = call->attr.i;
	struct walk w = { .nin = 1 };
	(void)scratch;

	for (int d = 0; d < x->rank; d++) {
		int64_t step = inner_of(x, d) * (d == a[0] ? a[2] : 1);
		walk_axis(&w, call->out[0].dim[d], &step);
	}
	walk_close(&w);
	move_tile(call, tile, w, inner_of(x, a[0]) * a[1]);
}

/* An operand as [outer, axis, inner]. */
struct axis_split { int64_t outer, axis, inner; };
HD_INLINE struct axis_split blocks_of(const struct hd_operand *x, int axis)
{
	int64_t inner = inner_of(x, axis);
	return (struct axis_split){ (int64_t)x->elems / (inner * x->dim[axis]), x->dim[axis], inner };
}
static inline uint32_t blocks_ntiles(const struct hd_call *call)
{
	struct axis_split b = blocks_of(&call->out[0], call->attr.i[0]);
	return row_ntiles((uint64_t)b.outer, (uint64_t)(b.axis * b.inner));
}
HD_INLINE struct elem_run blocks_run(struct axis_split b, uint32_t tile) { return row_run((uint64_t)b.outer,
	(uint64_t)(b.axis * b.inner), tile); }

static inline void slice_dx_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct axis_split b = blocks_of(&call->out[0], call->attr.i[0]);
	struct elem_run run = blocks_run(b, tile);
	const int32_t *a = call->attr.i;
	size_t bytes = hd_dtype_bytes((enum hd_dtype)call->out[0].dtype),
		row = (size_t)(b.axis * b.inner) * bytes, piece = (size_t)b.inner * bytes;
	(void)scratch;

	for (uint64_t o = run.at; o < run.at + run.n; o++) {
		uint8_t *to = (uint8_t *)call->out[0].at + o * row;
		const uint8_t *from = (const uint8_t *)call->in[0].at + o * (size_t)a[3] * piece;
		memset(to, 0, row);
		for (int64_t j = 0; j < a[3]; j++)
			memcpy(to + (a[1] + j * a[2]) * (int64_t)piece, from + (size_t)j * piece, piece);
	}
}

static inline void concat_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct axis_split b = blocks_of(&call->out[0], call->attr.i[0]);
	struct elem_run run = blocks_run(b, tile);
	size_t piece = (size_t)b.inner * hd_dtype_bytes((enum hd_dtype)call->out[0].dtype);
	size_t first = (size_t)call->in[0].dim[call->attr.i[0]] * piece,
		second = (size_t)call->in[1].dim[call->attr.i[0]] * piece;
	(void)scratch;

	for (uint64_t o = run.at; o < run.at + run.n; o++) {
		uint8_t *to = (uint8_t *)call->out[0].at + o * (first + second);
		memcpy(to, (const uint8_t *)call->in[0].at + o * first, first);
		memcpy(to + first, (const uint8_t *)call->in[1].at + o * second, second);
	}
}

/* Towards 0, clamped; no number: 0. */
HD_INLINE int64_t whole_of(double x)
{
	return x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : x == x ? (int64_t)x : 0;
}
HD_INLINE int64_t between(int64_t x, int64_t lo, int64_t hi) { return x < lo ? lo : x > hi ? hi : x; }

/* Four bytes each: f32, or i32 as cast makes it. */
HD_INLINE uint32_t pad_word(const struct hd_call *call)
{
	uint32_t word;
	int32_t whole = (int32_t)between(whole_of((double)call->attr.f[0]), INT32_MIN, INT32_MAX);

	memcpy(&word, call->in[0].dtype == HD_I32 ? (const void *)&whole : (const void *)&call->attr.f[0],
		sizeof word);
	return word;
}

static inline void pad_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct axis_split b = blocks_of(&call->out[0], call->attr.i[0]);
	struct elem_run run = blocks_run(b, tile);
	int64_t before = call->attr.i[1] * b.inner, n = call->in[0].dim[call->attr.i[0]] * b.inner,
		row = b.axis * b.inner;
	uint32_t word = pad_word(call);
	(void)scratch;

	for (uint64_t o = run.at; o < run.at + run.n; o++) {
		uint32_t *to = (uint32_t *)call->out[0].at + (int64_t)o * row;
		for (int64_t i = 0; i < before; i++)
			to[i] = word;
		memcpy(to + before, (const uint32_t *)call->in[0].at + (int64_t)o * n,
			(size_t)n * sizeof *to);
		for (int64_t i = before + n; i < row; i++)
			to[i] = word;
	}
}

/* Rows of the gathered: [outer, ids, inner]. */
struct gather { int64_t outer, axis, inner, nids; };
HD_INLINE struct gather gather_of(const struct hd_operand *x, const struct hd_operand *ids, int axis)
{
	struct axis_split b = blocks_of(x, axis);
	return (struct gather){ b.outer, b.axis, b.inner, (int64_t)ids->elems };
}

static inline uint32_t gather_ntiles(const struct hd_call *call)
{
	struct gather g = gather_of(&call->in[0], &call->in[1], call->attr.i[0]);
	return row_ntiles((uint64_t)(g.outer * g.nids), (uint64_t)g.inner);
}

static inline void gather_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct gather g = gather_of(&call->in[0], &call->in[1], call->attr.i[0]);
	struct elem_run run = row_run((uint64_t)(g.outer * g.nids), (uint64_t)g.inner, tile);
	size_t piece = (size_t)g.inner * hd_dtype_bytes((enum hd_dtype)call->in[0].dtype);
	const int32_t *ids = call->in[1].at;
	(void)scratch;

	for (uint64_t r = run.at; r < run.at + run.n; r++) {
		int64_t id = ids[(int64_t)r % g.nids], outer = (int64_t)r / g.nids;
		uint8_t *to = (uint8_t *)call->out[0].at + r * piece;
		if (id < 0 || id >= g.axis)
			memset(to, 0, piece);
		else
			memcpy(to, (const uint8_t *)call->in[0].at + (size_t)(outer * g.axis + id) * piece,
				piece);
	}
}

static inline uint32_t scatter_add_ntiles(const struct hd_call *call)
{
	struct gather g = gather_of(&call->out[0], &call->in[1], call->attr.i[0]);
	return (uint32_t)g.outer * column_ntiles((uint64_t)g.inner);
}

/* A tile is a block of columns of one outer index: its sums go up in the order of the ids. */
static inline void scatter_add_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct gather g = gather_of(&call->out[0], &call->in[1], call->attr.i[0]);
	int64_t wide = column_ntiles((uint64_t)g.inner), outer = tile / wide,
		first = tile % wide * COLUMN_BLOCK;
	uint64_t n = (uint64_t)(g.inner - first < COLUMN_BLOCK ? g.inner - first : COLUMN_BLOCK);
	const int32_t *ids = call->in[1].at;
	float *out = (float *)call->out[0].at + outer * g.axis * g.inner + first;
	const float *dy = (const float *)call->in[0].at + outer * g.nids * g.inner + first;
	(void)scratch;

	for (int64_t row = 0; row < g.axis; row++)
		memset(out + row * g.inner, 0, n * sizeof *out);
	for (int64_t at = 0; at < g.nids; at++) {
		float *to = out + ids[at] * g.inner;
		if (ids[at] < 0 || ids[at] >= g.axis)
			continue;
		HD_UNITS(i, len, n)
			vf_store_n(to + i, vf_add(vf_load_n(to + i, len),
				vf_load_n(dy + at * g.inner + (int64_t)i, len)), len);
	}
}

static inline uint32_t one_hot_ntiles(const struct hd_call *call) { return row_ntiles(call->in[0].elems,
	(uint64_t)call->attr.i[0]); }

static inline void one_hot_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	uint64_t depth = (uint64_t)call->attr.i[0];
	struct elem_run run = row_run(call->in[0].elems, depth, tile);
	const int32_t *ids = call->in[0].at;
	float *out = call->out[0].at;
	(void)scratch;

	memset(out + run.at * depth, 0, run.n * depth * sizeof *out);
	for (uint64_t r = run.at; r < run.at + run.n; r++)
		if (ids[r] >= 0 && (uint64_t)ids[r] < depth)
			out[r * depth + (uint64_t)ids[r]] = 1.0f;
}

/* Every number of these types is one of f64, i64 excepted, which moves between integers as itself. */
HD_INLINE double number_of(const struct hd_operand *x, uint64_t i)
{
	switch (x->dtype) {
	case HD_F32: return (double)((const float *)x->at)[i];
	case HD_F64: return ((const double *)x->at)[i];
	case HD_I32: return (double)((const int32_t *)x->at)[i];
	case HD_I64: return (double)((const int64_t *)x->at)[i];
	default:     return (double)((const uint8_t *)x->at)[i];
	}
}
static inline void cast_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	struct elem_run run = map_run(call, tile);
	const struct hd_operand *x = &call->in[0];
	void *to = call->out[0].at;
	(void)scratch;

	for (uint64_t i = run.at; i < run.at + run.n; i++) {
		double real = number_of(x, i);
		int64_t whole = x->dtype == HD_I64 ? ((const int64_t *)x->at)[i] : whole_of(real);
		switch (call->out[0].dtype) {
		case HD_F32: ((float *)to)[i] = x->dtype == HD_I64 ? (float)whole : (float)real; break;
		case HD_F64: ((double *)to)[i] = real; break;
		case HD_I32: ((int32_t *)to)[i] = (int32_t)between(whole, INT32_MIN, INT32_MAX); break;
		case HD_I64: ((int64_t *)to)[i] = whole; break;
		default:     ((uint8_t *)to)[i] = (uint8_t)between(whole, 0, UINT8_MAX); break;
		}
	}
}

#endif
