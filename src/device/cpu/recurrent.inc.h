/* recurrent.inc.h -- LSTM and GRU through time. One source for all paths.
 *
 * The input products come as one operand, made by matmul for all positions at once; here only the product of
 * the state with w remains, of the CELL_ROWS samples of a tile at a time. w is packed once per tile and
 * read at every position.
 *
 * 1. A tile is CELL_ROWS samples over all positions, forward in ascending, backward in descending order.
 * 2. Every element of a product is one chain of gemm.inc.h over the state (forward, from the bias), or over
 *    the gates (backward, from +0): so a sample has the same bits in any tile.
 * 3. The tile of recur_dw is a block of rows of dw; its chain goes over samples, then positions,
 *    ascending. */
#ifndef HD_DEVICE_CPU_RECURRENT_INC_H
#define HD_DEVICE_CPU_RECURRENT_INC_H

#include "device/cpu/gemm.inc.h"
#include "device/cpu/rows.inc.h"

enum { CELL_ROWS = 14 };

/* One tile: samples [first, first + rows) of T positions; G gates of H channels each. */
struct rnn_tile { int64_t first, rows, t, h, g; };

static inline uint32_t cell_ntiles(const struct hd_call *call) { return (uint32_t)div_up(call->in[0].dim[0],
	CELL_ROWS); }

HD_INLINE struct rnn_tile cell_of(const struct hd_call *call, uint32_t tile)
{
	int64_t first = (int64_t)tile * CELL_ROWS, n = call->in[0].dim[0];
	return (struct rnn_tile){ first, min64(CELL_ROWS, n - first), call->in[0].dim[1], call->in[1].dim[1],
		call->in[1].dim[0] };
}

/* Packed w of either direction; a packed; G columns and 3H columns of CELL_ROWS rows. */
static inline size_t cell_scratch(const struct hd_call *call)
{
	int64_t h = call->in[1].dim[1], g = call->in[1].dim[0];
	int64_t w = packed_b(g, h) > packed_b(h, g) ? packed_b(g, h) : packed_b(h, g);

	return (size_t)(w + packed_a(CELL_ROWS, g) + CELL_ROWS * (g + 3 * h) + HD_UNIT) * sizeof(float);
}

struct cell_room { float *w, *a, *g, *state; };

HD_INLINE struct cell_room cell_room(const struct rnn_tile *c, float *at)
{
	int64_t w = packed_b(c->g, c->h) > packed_b(c->h, c->g) ? packed_b(c->g, c->h) : packed_b(c->h, c->g);
	float *a = at + w, *g = a + packed_a(CELL_ROWS, c->g);

	return (struct cell_room){ at, a, g, g + CELL_ROWS * c->g };
}

HD_INLINE const float *cell_row(const struct hd_operand *o, const struct rnn_tile *c, int64_t row, int64_t s)
{
	return (const float *)o->at + ((c->first + row) * c->t + s) * o->dim[2];
}
HD_INLINE float *cell_out(const struct hd_operand *o, const struct rnn_tile *c, int64_t row, int64_t s)
{
	return (float *)o->at + ((c->first + row) * c->t + s) * o->dim[2];
}

/* g[rows, G] = bias + w y(s - 1); the state before position 0 is zeros. */
static inline void recur_forward(const struct hd_call *call, const struct rnn_tile *c, int64_t s,
	const struct cell_room *room)
{
	struct gemm_out out = { room->g, c->g, c->rows, c->g, true };

	for (int64_t row = 0; row < c->rows; row++)
		memcpy(room->g + row * c->g, call->in[2].at, (size_t)c->g * sizeof(float));
	if (s == 0)
		return;
	struct mat y = { cell_row(&call->out[0], c, 0, s - 1), c->t * c->h, false };
	gemm_pack_a(room->a, y, 0, c->rows, 0, c->h);
	gemm_block(room->a, room->w, c->h, c->h, &out);
}

static inline void lstm_row(const struct hd_call *call, const struct rnn_tile *c, int64_t row, int64_t s,
	const float *g)
{
	size_t h = (size_t)c->h;
	const float *z = cell_row(&call->in[0], c, row, s),
		*before = s ? cell_row(&call->out[1], c, row, s - 1) : NULL;
	float *y = cell_out(&call->out[0], c, row, s), *cell = cell_out(&call->out[1], c, row, s),
		*gates = cell_out(&call->out[2], c, row, s);

	HD_UNITS(k, len, h) {
		struct vf i = vf_sigmoid(vf_add(vf_load_n(z + k, len), vf_load_n(g + k, len)));
		struct vf f = vf_sigmoid(vf_add(vf_load_n(z + h + k, len), vf_load_n(g + h + k, len)));
		struct vf n = vf_tanh(vf_add(vf_load_n(z + 2 * h + k, len), vf_load_n(g + 2 * h + k, len)));
		struct vf o = vf_sigmoid(vf_add(vf_load_n(z + 3 * h + k, len),
			vf_load_n(g + 3 * h + k, len)));
		struct vf now = vf_fma(f, before ? vf_load_n(before + k, len) : vf_set(0.0f), vf_mul(i, n));
		vf_store_n(gates + k, i, len);
		vf_store_n(gates + h + k, f, len);
		vf_store_n(gates + 2 * h + k, n, len);
		vf_store_n(gates + 3 * h + k, o, len);
		vf_store_n(cell + k, now, len);
		vf_store_n(y + k, vf_mul(o, vf_tanh(now)), len);
	}
}

static inline void gru_row(const struct hd_call *call, const struct rnn_tile *c, int64_t row, int64_t s,
	const float *g)
{
	size_t h = (size_t)c->h;
	const float *x = cell_row(&call->in[0], c, row, s),
		*before = s ? cell_row(&call->out[0], c, row, s - 1) : NULL;
	float *y = cell_out(&call->out[0], c, row, s), *gates = cell_out(&call->out[1], c, row, s),
		*kept = cell_out(&call->out[2], c, row, s);

	HD_UNITS(k, len, h) {
		struct vf pre = vf_load_n(g + 2 * h + k, len),
			last = before ? vf_load_n(before + k, len) : vf_set(0.0f);
		struct vf r = vf_sigmoid(vf_add(vf_load_n(x + k, len), vf_load_n(g + k, len)));
		struct vf z = vf_sigmoid(vf_add(vf_load_n(x + h + k, len), vf_load_n(g + h + k, len)));
		struct vf n = vf_tanh(vf_fma(r, pre, vf_load_n(x + 2 * h + k, len)));
		vf_store_n(gates + k, r, len);
		vf_store_n(gates + h + k, z, len);
		vf_store_n(gates + 2 * h + k, n, len);
		vf_store_n(kept + k, pre, len);
		vf_store_n(y + k, vf_fma(z, vf_sub(last, n), n), len);
	}
}

typedef void cell_row_fn(const struct hd_call *call, const struct rnn_tile *c, int64_t row, int64_t s,
	const float *g);

HD_INLINE void cell_forward(const struct hd_call *call, uint32_t tile, float *scratch, cell_row_fn *step)
{
	struct rnn_tile c = cell_of(call, tile);
	struct cell_room room = cell_room(&c, scratch);

	gemm_pack_b(room.w, (struct mat){ call->in[1].at, c.h, true }, 0, c.g, 0, c.h);
	for (int64_t s = 0; s < c.t; s++) {
		recur_forward(call, &c, s, &room);
		for (int64_t row = 0; row < c.rows; row++)
			step(call, &c, row, s, room.g + row * c.g);
	}
}

static inline void lstm_tile(const struct hd_call *call, uint32_t tile,
	void *scratch) { cell_forward(call, tile, scratch, lstm_row); }
static inline void gru_tile(const struct hd_call *call, uint32_t tile,
	void *scratch) { cell_forward(call, tile, scratch, gru_row); }

/* Backward: state is dh from the later position, then (lstm) that of the cell or (gru) what passes the
 * cell by. */

/* dc = dc' + d o (1 - tanh^2 c); the gates' own slopes are y (1 - y) and 1 - n^2. */
static inline void lstm_dx_row(const struct hd_call *call, const struct rnn_tile *c, int64_t row, int64_t s,
	float *dh, float *dc, float *dg)
{
	size_t h = (size_t)c->h;
	const float *dy = cell_row(&call->in[0], c, row, s), *cell = cell_row(&call->in[2], c, row, s),
		*gates = cell_row(&call->in[3], c, row, s);
	const float *before = s ? cell_row(&call->in[2], c, row, s - 1) : NULL;
	float *dz = cell_out(&call->out[0], c, row, s);
	struct vf one = vf_set(1.0f);

	HD_UNITS(k, len, h) {
		struct vf i = vf_load_n(gates + k, len), f = vf_load_n(gates + h + k, len),
			n = vf_load_n(gates + 2 * h + k, len);
		struct vf o = vf_load_n(gates + 3 * h + k, len),
			last = before ? vf_load_n(before + k, len) : vf_set(0.0f);
		struct vf u = vf_tanh(vf_load_n(cell + k, len)),
			d = vf_add(vf_load_n(dy + k, len), vf_load_n(dh + k, len));
		struct vf e = vf_fma(vf_mul(d, o), vf_sub(one, vf_mul(u, u)), vf_load_n(dc + k, len));
		vf_store_n(dg + k, vf_mul(vf_mul(e, n), vf_mul(i, vf_sub(one, i))), len);
		vf_store_n(dg + h + k, vf_mul(vf_mul(e, last), vf_mul(f, vf_sub(one, f))), len);
		vf_store_n(dg + 2 * h + k, vf_mul(vf_mul(e, i), vf_sub(one, vf_mul(n, n))), len);
		vf_store_n(dg + 3 * h + k, vf_mul(vf_mul(d, u), vf_mul(o, vf_sub(one, o))), len);
		vf_store_n(dc + k, vf_mul(e, f), len);
	}
	memcpy(dz, dg, 4 * h * sizeof *dz);
}

static inline void gru_dx_row(const struct hd_call *call, const struct rnn_tile *c, int64_t row, int64_t s,
	float *dh, float *past, float *dg)
{
	size_t h = (size_t)c->h;
	const float *dy = cell_row(&call->in[0], c, row, s), *gates = cell_row(&call->in[3], c, row, s),
		*kept = cell_row(&call->in[4], c, row, s);
	const float *before = s ? cell_row(&call->in[2], c, row, s - 1) : NULL;
	float *dz = cell_out(&call->out[0], c, row, s);
	struct vf one = vf_set(1.0f);

	HD_UNITS(k, len, h) {
		struct vf r = vf_load_n(gates + k, len), z = vf_load_n(gates + h + k, len),
			n = vf_load_n(gates + 2 * h + k, len);
		struct vf pre = vf_load_n(kept + k, len), last = before ? vf_load_n(before + k, len) :
			vf_set(0.0f);
		struct vf d = vf_add(vf_add(vf_load_n(dy + k, len), vf_load_n(dh + k, len)),
			vf_load_n(past + k, len));
		struct vf dn = vf_mul(vf_mul(d, vf_sub(one, z)), vf_sub(one, vf_mul(n, n)));
		vf_store_n(dg + k, vf_mul(vf_mul(dn, pre), vf_mul(r, vf_sub(one, r))), len);
		vf_store_n(dg + h + k, vf_mul(vf_mul(d, vf_sub(last, n)), vf_mul(z, vf_sub(one, z))), len);
		vf_store_n(dg + 2 * h + k, vf_mul(dn, r), len);
		vf_store_n(dz + 2 * h + k, dn, len);
		vf_store_n(past + k, vf_mul(d, z), len);
	}
	memcpy(dz, dg, 2 * h * sizeof *dz);
	memcpy(cell_out(&call->out[1], c, row, s), dg, 3 * h * sizeof *dg);
}

typedef void cell_dx_fn(const struct hd_call *call, const struct rnn_tile *c, int64_t row, int64_t s,
	float *dh,
	float *past, float *dg);

HD_INLINE void cell_backward(const struct hd_call *call, uint32_t tile, float *scratch, cell_dx_fn *step)
{
	struct rnn_tile c = cell_of(call, tile);
	struct cell_room room = cell_room(&c, scratch);
	float *past = room.state + CELL_ROWS * c.h;
	struct gemm_out dh = { room.state, c.h, c.rows, c.h, false };

	gemm_pack_b(room.w, (struct mat){ call->in[1].at, c.h, false }, 0, c.h, 0, c.g);
	memset(room.state, 0, (size_t)(2 * CELL_ROWS * c.h) * sizeof(float));
	for (int64_t s = c.t - 1; s >= 0; s--) {
		for (int64_t row = 0; row < c.rows; row++)
			step(call, &c, row, s, room.state + row * c.h, past + row * c.h, room.g + row * c.g);
		gemm_pack_a(room.a, (struct mat){ room.g, c.g, false }, 0, c.rows, 0, c.g);
		gemm_block(room.a, room.w, c.g, c.g, &dh);
	}
}

static inline void lstm_dx_tile(const struct hd_call *call, uint32_t tile,
	void *scratch) { cell_backward(call, tile, scratch, lstm_dx_row); }
static inline void gru_dx_tile(const struct hd_call *call, uint32_t tile,
	void *scratch) { cell_backward(call, tile, scratch, gru_dx_row); }

/* dw = sum of dg[t] y[t - 1]: a product per sample, continued. */

enum { RECUR_ROWS = 84 };

static inline uint32_t recur_dw_ntiles(const struct hd_call *call)
{
	return (uint32_t)div_up(call->out[0].dim[0], RECUR_ROWS);
}

static inline size_t recur_dw_scratch(const struct hd_call *call)
{
	return gemm_scratch(RECUR_ROWS, call->out[0].dim[1], call->in[0].dim[1]);
}

static inline void recur_dw_tile(const struct hd_call *call, uint32_t tile, void *scratch)
{
	int64_t n = call->in[0].dim[0], t = call->in[0].dim[1], g = call->out[0].dim[0],
		h = call->out[0].dim[1], first = tile * RECUR_ROWS;
	struct gemm_out dw = { (float *)call->out[0].at + first * h, h, min64(RECUR_ROWS, g - first), h,
		true };

	memset(dw.at, 0, (size_t)(dw.m * h) * sizeof(float));
	for (int64_t s = 0; s < n; s++) {
		const float *dg = (const float *)call->in[0].at + (s * t + 1) * g + first,
			*y = (const float *)call->in[1].at + s * t * h;
		gemm((struct mat){ dg, g, true }, (struct mat){ y, h, false }, dw, t - 1, scratch);
	}
}

#endif
