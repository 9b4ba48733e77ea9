#include "graph/onnx/host.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/le.h"

/*  id        number  text       bytes  float */
#define TYPES(X)                             \
	X(FLOAT,    1,  "float",    4, 1)    \
	X(UINT8,    2,  "uint8",    1, 0)    \
	X(INT8,     3,  "int8",     1, 0)    \
	X(UINT16,   4,  "uint16",   2, 0)    \
	X(INT16,    5,  "int16",    2, 0)    \
	X(INT32,    6,  "int32",    4, 0)    \
	X(INT64,    7,  "int64",    8, 0)    \
	X(STRING,   8,  "string",   0, 0)    \
	X(BOOL,     9,  "bool",     1, 0)    \
	X(FLOAT16,  10, "float16",  2, 1)    \
	X(DOUBLE,   11, "double",   8, 1)    \
	X(UINT32,   12, "uint32",   4, 0)    \
	X(UINT64,   13, "uint64",   0, 0)    \
	X(COMPLEX64, 14, "complex64", 0, 0)  \
	X(COMPLEX128, 15, "complex128", 0, 0) \
	X(BFLOAT16, 16, "bfloat16", 2, 1)

static const struct { const char *text; uint8_t bytes; bool is_float; } types[] = {
#define X(id, number, text, bytes, is_float) [number] = { text, bytes, is_float },
	TYPES(X)
#undef X
};
enum { NTYPES = sizeof types / sizeof types[0] };

uint32_t hd_onnx_type_bytes(int32_t type) { return type > 0 && type < NTYPES ? types[type].bytes : 0; }
const char *hd_onnx_type_text(int32_t type) { return type > 0 &&
	type < NTYPES ? types[type].text : "of an unknown type"; }
bool hd_onnx_type_is_float(int32_t type) { return type > 0 && type < NTYPES && types[type].is_float; }

/* An extent of 0 makes the product 0, and leaves the others bounded: strides are their products. */
static bool times(uint64_t *n, int64_t dim, uint64_t most, bool *none)
{
	*none = *none || dim == 0;
	return dim >= 0 && (dim == 0 || hd_mul_u64(*n, (uint64_t)dim, n)) && *n <= most;
}

enum hd_err hd_host_make(struct hd_host_tensor *host, struct hd_arena *arena, int32_t type, uint32_t rank,
	const int64_t *dim, struct hd_diag *diag)
{
	bool none = false;

	*host = (struct hd_host_tensor){ .type = type, .is_float = hd_onnx_type_is_float(type),
		.rank = (uint8_t)rank, .n = 1 };
	if (rank > HD_ONNX_DIMS)
		return hd_fail(diag, HD_E_INPUT, "%u extents; at most %d", rank, HD_ONNX_DIMS);
	for (uint32_t i = 0; i < rank; i++) {
		if (!times(&host->n, dim[i], HD_HOST_ELEMS, &none))
			return hd_fail(diag, HD_E_INPUT,
				"a constant of more than %d elements, or with a negative extent",
				HD_HOST_ELEMS);
		host->dim[i] = dim[i];
	}
	host->n = none ? 0 : host->n;
	if (host->is_float)
		host->f = hd_arena_take(arena, host->n + 1, sizeof *host->f);
	else
		host->i = hd_arena_take(arena, host->n + 1, sizeof *host->i);
	return host->f || host->i ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"no memory for a constant of %llu elements", (unsigned long long)host->n);
}

enum hd_err hd_host_ints(struct hd_host_tensor *host, struct hd_arena *arena, uint32_t n,
	const struct hd_sym *values, struct hd_diag *diag)
{
	enum hd_err err = hd_host_make(host, arena, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 1, (int64_t[]){ n },
		diag);

	if (!err && n)
		memcpy(host->i, values, n * sizeof *values);
	return err;
}

enum hd_err hd_onnx_extents(const Onnx__TensorProto *t, int64_t dim[HD_ONNX_DIMS], uint64_t *n,
	struct hd_diag *diag)
{
	const char *name = t->name ? t->name : "";

	bool none = false;

	*n = 1;
	if (t->n_dims > HD_ONNX_DIMS)
		return hd_fail(diag, HD_E_INPUT, "tensor '%s' has %zu extents; at most %d", name, t->n_dims,
			HD_ONNX_DIMS);
	for (size_t i = 0; i < t->n_dims; i++) {
		if (!times(n, t->dims[i], (uint64_t)1 << 40, &none))
			return hd_fail(diag, HD_E_INPUT,
				"tensor '%s': extent %zu is %lld, or there are more than 2^40 elements", name,
				i,
				(long long)t->dims[i]);
		dim[i] = t->dims[i];
	}
	*n = none ? 0 : *n;
	if (!hd_onnx_type_bytes(t->data_type))
		return hd_fail(diag, HD_E_INPUT, "tensor '%s' is %s, which Heddle does not read", name,
			hd_onnx_type_text(t->data_type));
	if (t->segment)
		return hd_fail(diag, HD_E_INPUT,
			"tensor '%s' is stored in segments, which Heddle does not read", name);
	return HD_OK;
}

static double half(uint32_t h)
{
	double m = h & 0x3ff, sign = h & 0x8000 ? -1 : 1;
	int e = (int)(h >> 10 & 31);

	if (e == 31)
		return m != 0 ? (double)NAN : sign * (double)INFINITY;
	return sign * (e ? ldexp(1024 + m, e - 25) : ldexp(m, -24));
}

static double f32_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return (double)f;
}

static double f64_of(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof d);
	return d;
}

static double float_at(int32_t type, const uint8_t *p)
{
	switch (type) {
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
		return f32_of(hd_get32(p));
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
		return half(hd_get16(p));
	case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
		return f32_of(hd_get16(p) << 16);
	default:
		return f64_of(hd_get64(p));
	}
}

static int64_t int_at(int32_t type, const uint8_t *p)
{
	switch (type) {
	case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
		return (int8_t)p[0];
	case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8:
		return p[0];
	case ONNX__TENSOR_PROTO__DATA_TYPE__BOOL:
		return p[0] != 0;
	case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16:
		return hd_get16(p);
	case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
		return (int16_t)hd_get16(p);
	case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
		return hd_get32(p);
	case ONNX__TENSOR_PROTO__DATA_TYPE__INT32:
		return (int32_t)hd_get32(p);
	default:
		return (int64_t)hd_get64(p);
	}
}

/* The typed fields: which of them a type uses is a rule of the format. */
static bool from_fields(struct hd_host_tensor *host, const Onnx__TensorProto *t)
{
	bool narrow = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ||
		t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
	size_t have = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ? t->n_float_data :
		t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ? t->n_double_data :
		t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ? t->n_int64_data :
		t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT32 ? t->n_uint64_data : t->n_int32_data;

	if (have != host->n)
		return false;
	for (uint64_t k = 0; k < host->n; k++) {
		if (narrow) {
			uint8_t p[2];
			hd_put16(p, (uint32_t)t->int32_data[k]);
			host->f[k] = float_at(t->data_type, p);
		} else if (host->is_float) {
			host->f[k] = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ?
				(double)t->float_data[k] : t->double_data[k];
		} else {
			host->i[k].a = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ?
				t->int64_data[k] :
				t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT32 ?
				(int64_t)(t->uint64_data[k] & UINT32_MAX) : t->int32_data[k];
		}
	}
	return true;
}

enum hd_err hd_host_read(struct hd_host_tensor *host, struct hd_arena *arena, const struct hd_onnx_init *init,
	struct hd_diag *diag)
{
	const Onnx__TensorProto *t = init->tensor;
	int64_t dim[HD_ONNX_DIMS];
	uint64_t n;
	enum hd_err err = hd_onnx_extents(t, dim, &n, diag);

	if (!err)
		err = hd_host_make(host, arena, t->data_type, (uint32_t)t->n_dims, dim, diag);
	if (err)
		return err;
	uint32_t size = hd_onnx_type_bytes(t->data_type);
	if (init->raw ? init->raw_len != n * size : !from_fields(host, t))
		return hd_fail(diag, HD_E_INPUT, "tensor '%s' does not hold the %llu elements of its extents",
			t->name ? t->name : "", (unsigned long long)n);
	for (uint64_t k = 0; init->raw && k < n; k++)
		if (host->is_float)
			host->f[k] = float_at(t->data_type, init->raw + k * size);
		else
			host->i[k].a = int_at(t->data_type, init->raw + k * size);
	return HD_OK;
}

/* ---- attributes */

const Onnx__AttributeProto *hd_onnx_attr(const Onnx__NodeProto *node, const char *name)
{
	for (size_t i = 0; i < node->n_attribute; i++)
		if (node->attribute[i]->name && !strcmp(node->attribute[i]->name, name))
			return node->attribute[i];
	return NULL;
}

int64_t hd_onnx_attr_int(const Onnx__NodeProto *node, const char *name, int64_t standard)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(node, name);

	return a && a->has_i ? a->i : standard;
}

double hd_onnx_attr_float(const Onnx__NodeProto *node, const char *name, double standard)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(node, name);

	return a && a->has_f ? (double)a->f : standard;
}

bool hd_onnx_attr_is(const Onnx__NodeProto *node, const char *name, const char *text, bool standard)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(node, name);

	if (!a || !a->has_s)
		return standard;
	return a->s.len == strlen(text) && (!a->s.len || !memcmp(a->s.data, text, a->s.len));
}

void hd_onnx_slice(int64_t extent, int64_t start, int64_t end, int64_t step, int64_t *first, int64_t *count)
{
	int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;

	start += start < 0 ? extent : 0;
	end = end < 0 ? (end < -extent ? -1 : end + extent) : end;
	start = start < 0 ? 0 : start > high ? high : start;
	end = end < low ? low : end > extent ? extent : end;
	*first = start;
	*count = step > 0 ? (end > start ? (end - start - 1) / step + 1 : 0) :
		(start > end ? (start - end - 1) / -step + 1 : 0);
}
