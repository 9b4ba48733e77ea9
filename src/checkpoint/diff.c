#include <math.h>
#include <string.h>

#include "checkpoint/ckpt.h"

/* Elements are equal when their bits are: a NaN equals itself, 0 and -0 differ (by no ulp).
 * A NaN is infinitely far from everything else. */

struct apart { double abs; uint64_t ulp; };

/* The bits of a float (in the low `width` bits) on a line where neighbours are 1 apart, through zero too. */
static uint64_t on_line(uint64_t bits, unsigned width)
{
	uint64_t zero = (uint64_t)1 << (width - 1), magnitude = bits & (zero - 1);

	return bits & zero ? zero - magnitude : zero + magnitude;
}

static uint64_t gap(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static struct apart floats(double x, double y, uint64_t ulp)
{
	if (isnan(x) || isnan(y))
		return (struct apart){ INFINITY, UINT64_MAX };
	return (struct apart){ fabs(x - y), ulp };
}

static struct apart measure(enum hd_dtype dtype, const uint8_t *a, const uint8_t *b)
{
	union { uint8_t u8; int32_t i32; int64_t i64; uint32_t b32; uint64_t b64; float f32; double f64;
		} x = { 0 }, y = { 0 };
	size_t size = hd_dtype_bytes(dtype);

	memcpy(&x, a, size);
	memcpy(&y, b, size);
	switch (dtype) {
	case HD_F32: return floats((double)x.f32, (double)y.f32, gap(on_line(x.b32, 32), on_line(y.b32, 32)));
	case HD_F64: return floats(x.f64, y.f64, gap(on_line(x.b64, 64), on_line(y.b64, 64)));
	case HD_I32: return (struct apart){ fabs((double)x.i32 - y.i32),
		(uint64_t)(x.i32 > y.i32 ? (int64_t)x.i32 - y.i32 : (int64_t)y.i32 - x.i32) };
	case HD_I64: return (struct apart){ fabs((double)x.i64 - (double)y.i64),
		x.i64 > y.i64 ? x.b64 - y.b64 : y.b64 - x.b64 };
	case HD_U8:  return (struct apart){ fabs((double)x.u8 - y.u8), gap(x.u8, y.u8) };
	}
	return (struct apart){ INFINITY, UINT64_MAX };
}

static struct hd_tensor_diff compare(const struct hd_state_entry *a, const struct hd_state_entry *b)
{
	size_t size = hd_dtype_bytes((enum hd_dtype)a->dtype);
	struct hd_tensor_diff d = { .name = a->name, .elems = a->len_bytes / size };
	const uint8_t *x = a->at, *y = b->at;

	d.shapes = a->dtype != b->dtype || a->rank != b->rank ||
		memcmp(a->dim, b->dim, a->rank * sizeof *a->dim);
	if (d.shapes || a->len_bytes == 0 || !memcmp(x, y, a->len_bytes))
		return d;
	for (uint64_t i = 0; i < d.elems; i++) {
		if (!memcmp(x + i * size, y + i * size, size))
			continue;
		struct apart apart = measure((enum hd_dtype)a->dtype, x + i * size, y + i * size);
		if (d.differing++ == 0)
			d.first = i;
		d.max_abs = apart.abs > d.max_abs ? apart.abs : d.max_abs;
		d.max_ulp = apart.ulp > d.max_ulp ? apart.ulp : d.max_ulp;
	}
	return d;
}

static struct hd_tensor_diff alone(const struct hd_state_entry *e, bool in_a)
{
	return (struct hd_tensor_diff){ .name = e->name, .elems =
		e->len_bytes / hd_dtype_bytes((enum hd_dtype)e->dtype),
		.only_a = in_a, .only_b = !in_a };
}

static bool differs(const struct hd_tensor_diff *d) { return d->only_a || d->only_b || d->shapes ||
	d->differing; }

/* Both tables are sorted by name: one walk over the two. */
static uint32_t walk(const struct hd_state *a, const struct hd_state *b, struct hd_tensor_diff *all)
{
	uint32_t n = 0, i = 0, k = 0;

	while (i < a->nentries || k < b->nentries) {
		int order = i == a->nentries ? 1 : k == b->nentries ? -1 : strcmp(a->entry[i].name,
			b->entry[k].name);
		if (order == 0)
			all[n++] = compare(&a->entry[i++], &b->entry[k++]);
		else
			all[n++] = order < 0 ? alone(&a->entry[i++], true) : alone(&b->entry[k++], false);
	}
	return n;
}

enum hd_err hd_state_diff(const struct hd_state *a, const struct hd_state *b, struct hd_arena *arena,
	struct hd_tensor_diff **out,
	uint32_t *ndiffering, uint32_t *ntotal, struct hd_diag *diag)
{
	size_t most = (size_t)a->nentries + b->nentries;
	struct hd_tensor_diff *all = hd_arena_take(arena, most + 1, sizeof *all),
		*sorted = hd_arena_take(arena, most + 1, sizeof *sorted);
	uint32_t n, at = 0;

	if (!all || !sorted)
		return hd_fail(diag, HD_E_NOMEM, "no memory to compare %zu tensors", most);
	n = walk(a, b, all);
	for (uint32_t i = 0; i < n; i++)
		if (differs(&all[i]))
			sorted[at++] = all[i];
	*ndiffering = at;
	for (uint32_t i = 0; i < n; i++)
		if (!differs(&all[i]))
			sorted[at++] = all[i];
	*out = sorted;
	*ntotal = n;
	return HD_OK;
}
