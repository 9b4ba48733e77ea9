/* The ops that shapes are computed with, on tensors of host.h. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "graph/onnx/host.h"

#define T(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name

static enum hd_err no(struct hd_host_fold *x, const char *why) { return hd_fail(x->diag, HD_E_INPUT, "%s",
	why); }

static enum hd_err make(struct hd_host_fold *x, int32_t type, uint32_t rank, const int64_t *dim)
{
	return hd_host_make(&x->out[0], x->arena, type, rank, dim, x->diag);
}

static const struct hd_host_tensor *input(const struct hd_host_fold *x,
	uint32_t i) { return i < x->nin ? x->in[i] : NULL;
	}

/* What an integer type holds; our i64 is all that is computed in. */
static bool fits(int32_t type, int64_t v)
{
	static const struct { int64_t low, high; } range[] = {
		[T(UINT8)] = { 0, UINT8_MAX }, [T(INT8)] = { INT8_MIN, INT8_MAX },
			[T(UINT16)] = { 0, UINT16_MAX }, [T(INT16)] = { INT16_MIN, INT16_MAX },
		[T(INT32)] = { INT32_MIN, INT32_MAX }, [T(INT64)] = { INT64_MIN, INT64_MAX },
		[T(BOOL)] = { 0, 1 }, [T(UINT32)] = { 0, UINT32_MAX },
	};

	return v >= range[type].low && v <= range[type].high;
}

static void put(struct hd_host_tensor *to, uint64_t at, const struct hd_host_tensor *from, uint64_t k)
{
	if (to->is_float)
		to->f[at] = from->f[k];
	else
		to->i[at] = from->i[k];
}

/* ---- elementwise */

/* MOD has the sign of what is divided by, FMOD that of what is divided. */
enum binary { ADD, SUB, MUL, DIV, POW, MIN, MAX, MOD, FMOD, EQUAL, LESS, LESSEQ, GREATER, GREATEREQ, AND,
	OR };

static double real(enum binary op, double a, double b)
{
	switch (op) {
	case ADD: return a + b;
	case SUB: return a - b;
	case MUL: return a * b;
	case DIV: return a / b;
	case POW: return pow(a, b);
	case MIN: return a < b ? a : b;
	case MAX: return a > b ? a : b;
	case MOD: return fmod(a, b) + (fmod(a, b) != 0 && (fmod(a, b) < 0) != (b < 0) ? b : 0);
	case FMOD: return fmod(a, b);
	case EQUAL: return a == b;
	case LESS: return a < b;
	case LESSEQ: return a <= b;
	case GREATER: return a > b;
	case GREATEREQ: return a >= b;
	case AND: case OR: break;
	}
	return 0;
}

static bool multiply(struct hd_sym a, struct hd_sym b, struct hd_sym *out)
{
	if (a.rows && b.rows)
		return false;
	struct hd_sym s = a.rows ? a : b;
	int64_t by = a.rows ? b.a : a.a;
	return hd_mul_i64(s.a, by, &out->a) && hd_mul_i64(s.rows, by, &out->rows);
}

/* rows >= 1 decides some comparisons of numbers that depend on it. */
static bool order(struct hd_sym d, int *sign)
{
	if (d.rows == 0)
		*sign = (d.a > 0) - (d.a < 0);
	else if (d.rows > 0 && d.a > -d.rows)
		*sign = 1;
	else if (d.rows < 0 && d.a < -d.rows)
		*sign = -1;
	else
		return false;
	return true;
}

/* Truncated; the one quotient that does not fit is refused like that of 0. */
static bool quotient(int64_t a, int64_t b, int64_t *out)
{
	if (b == 0 || (b == -1 && a == INT64_MIN))
		return false;
	*out = a / b;
	return true;
}

static bool divide(struct hd_sym a, struct hd_sym b, struct hd_sym *out)
{
	int64_t by = b.rows ? b.rows : b.a;
	struct hd_sym q, back;

	if ((b.rows && (b.a || a.a)) || !quotient(a.a, by, &q.a) || !quotient(a.rows, by, &q.rows))
		return false;
	*out = b.rows ? (struct hd_sym){ q.rows, 0 } : q;
	/* truncated: no further from 0 than the number divided */
	back = (struct hd_sym){ q.a * by, q.rows * by };
	return !a.rows || (back.a == a.a && back.rows == a.rows);
}

static bool power(struct hd_sym a, struct hd_sym b, struct hd_sym *out)
{
	int64_t n = 1;

	if (a.rows || b.rows || b.a < 0 || b.a > 62)
		return false;
	for (int64_t i = 0; i < b.a; i++)
		if (!hd_mul_i64(n, a.a, &n))
			return false;
	*out = (struct hd_sym){ n, 0 };
	return true;
}

static bool whole(enum binary op, struct hd_sym a, struct hd_sym b, struct hd_sym *out)
{
	struct hd_sym d;
	int sign;

	switch (op) {
	case ADD: return hd_add_i64(a.a, b.a, &out->a) && hd_add_i64(a.rows, b.rows, &out->rows);
	case SUB: return hd_sub_i64(a.a, b.a, &out->a) && hd_sub_i64(a.rows, b.rows, &out->rows);
	case MUL: return multiply(a, b, out);
	case DIV: return divide(a, b, out);
	case POW: return power(a, b, out);
	case MOD: case FMOD:
		if (a.rows || b.rows || b.a == 0)
			return false;
		*out = (struct hd_sym){ b.a == -1 ? 0 : a.a % b.a, 0 };
		out->a += op == MOD && out->a && (out->a < 0) != (b.a < 0) ? b.a : 0;
		return true;
	case AND:
		*out = (struct hd_sym){ a.a && b.a, 0 };
		return true;
	case OR:
		*out = (struct hd_sym){ a.a || b.a, 0 };
		return true;
	case MIN: case MAX: case EQUAL: case LESS: case LESSEQ: case GREATER: case GREATEREQ: break;
	}
	if (!hd_sub_i64(a.a, b.a, &d.a) || !hd_sub_i64(a.rows, b.rows, &d.rows) || d.rows == INT64_MIN ||
		!order(d, &sign))
		return false;
	if (op == MIN || op == MAX)
		*out = (sign < 0) == (op == MIN) ? a : b;
	else
		*out = (struct hd_sym){ op == EQUAL ? !sign : op == LESS ? sign < 0 : op == LESSEQ ?
			sign <= 0 : op == GREATER ? sign > 0 : sign >= 0, 0 };
	return true;
}

/* Element of `h` that broadcasting puts at `at` of the extents of `out`. */
static uint64_t spread(const struct hd_host_tensor *h, const struct hd_host_tensor *out, uint64_t at)
{
	uint64_t k = 0, stride = 1;

	for (uint32_t d = 0; d < out->rank; d++) {
		uint32_t axis = out->rank - 1u - d;
		uint64_t index = out->dim[axis] ? at % (uint64_t)out->dim[axis] : 0;
		at /= out->dim[axis] ? (uint64_t)out->dim[axis] : 1;
		if (d < h->rank && h->dim[h->rank - 1u - d] != 1)
			k += index * stride;
		stride *= d < h->rank ? (uint64_t)h->dim[h->rank - 1u - d] : 1;
	}
	return k;
}

static enum hd_err join(struct hd_host_fold *x, const struct hd_host_tensor *const *in, uint32_t n,
	uint32_t *rank,
	int64_t *dim)
{
	*rank = 0;
	for (uint32_t i = 0; i < n; i++)
		*rank = in[i]->rank > *rank ? in[i]->rank : *rank;
	for (uint32_t d = 0; d < *rank; d++) {
		dim[*rank - 1 - d] = 1;
		for (uint32_t i = 0; i < n; i++) {
			int64_t e = d < in[i]->rank ? in[i]->dim[in[i]->rank - 1u - d] : 1;
			if (e != 1 && dim[*rank - 1 - d] != 1 && dim[*rank - 1 - d] != e)
				return no(x, "the extents of the constants cannot be broadcast");
			if (e != 1)
				dim[*rank - 1 - d] = e;
		}
	}
	return HD_OK;
}

static enum hd_err binary(struct hd_host_fold *x, enum binary op)
{
	const struct hd_host_tensor *a = input(x, 0), *b = input(x, 1);
	int64_t dim[HD_ONNX_DIMS];
	uint32_t rank;

	if (!a || !b || a->is_float != b->is_float || (a->is_float && op >= AND))
		return no(x, "takes two constants of one type");
	enum hd_err err = join(x, (const struct hd_host_tensor *[]){ a, b }, 2, &rank, dim);
	if (!err)
		err = make(x, op >= EQUAL ? T(BOOL) : a->type, rank, dim);
	for (uint64_t k = 0; !err && k < x->out->n; k++) {
		uint64_t ka = spread(a, x->out, k), kb = spread(b, x->out, k);
		if (!a->is_float) {
			if (!whole(op, a->i[ka], b->i[kb], &x->out->i[k]) ||
				!fits(x->out->type, x->out->i[k].a))
				return no(x,
					"integer arithmetic overflows, divides by 0, or its result depends "
					"on the number of rows in no simple way");
		} else if (op >= EQUAL) {
			x->out->i[k].a = real(op, a->f[ka], b->f[kb]) != 0;
		} else {
			double r = real(op, a->f[ka], b->f[kb]);
			x->out->f[k] = a->type == T(FLOAT) ? (double)(float)r : r;
		}
	}
	return err;
}

static enum hd_err f_add(struct hd_host_fold *x) { return binary(x, ADD); }
static enum hd_err f_sub(struct hd_host_fold *x) { return binary(x, SUB); }
static enum hd_err f_mul(struct hd_host_fold *x) { return binary(x, MUL); }
static enum hd_err f_div(struct hd_host_fold *x) { return binary(x, DIV); }
static enum hd_err f_pow(struct hd_host_fold *x) { return binary(x, POW); }
static enum hd_err f_mod(struct hd_host_fold *x) { return binary(x,
	hd_onnx_attr_int(x->node, "fmod", 0) ? FMOD : MOD); }
static enum hd_err f_min(struct hd_host_fold *x) { return x->nin == 2 ? binary(x, MIN) : no(x,
	"takes two constants"); }
static enum hd_err f_max(struct hd_host_fold *x) { return x->nin == 2 ? binary(x, MAX) : no(x,
	"takes two constants"); }
static enum hd_err f_equal(struct hd_host_fold *x) { return binary(x, EQUAL); }
static enum hd_err f_less(struct hd_host_fold *x) { return binary(x, LESS); }
static enum hd_err f_lesseq(struct hd_host_fold *x) { return binary(x, LESSEQ); }
static enum hd_err f_greater(struct hd_host_fold *x) { return binary(x, GREATER); }
static enum hd_err f_greatereq(struct hd_host_fold *x) { return binary(x, GREATEREQ); }
static enum hd_err f_and(struct hd_host_fold *x) { return binary(x, AND); }
static enum hd_err f_or(struct hd_host_fold *x) { return binary(x, OR); }

static double neg(double a) { return -a; }
static double reciprocal(double a) { return 1 / a; }

static bool whole_neg(int64_t a, int64_t *out) { return hd_sub_i64(0, a, out); }
static bool whole_abs(int64_t a, int64_t *out) { return a < 0 ? whole_neg(a, out) : ((*out = a), true); }

static enum hd_err unary(struct hd_host_fold *x, double (*of)(double), bool (*ints)(int64_t, int64_t *))
{
	const struct hd_host_tensor *a = input(x, 0);

	if (!a || (!a->is_float && !ints))
		return no(x, "takes a float constant");
	if (!hd_host_plain(a))
		return no(x, "the result depends on the number of rows");
	enum hd_err err = make(x, a->type, a->rank, a->dim);
	for (uint64_t k = 0; !err && k < a->n; k++)
		if (a->is_float)
			x->out->f[k] = a->type == T(FLOAT) ? (double)(float)of(a->f[k]) : of(a->f[k]);
		else if (!ints(a->i[k].a, &x->out->i[k].a) || !fits(a->type, x->out->i[k].a))
			return no(x, "integer arithmetic overflows");
	return err;
}

static enum hd_err f_neg(struct hd_host_fold *x) { return unary(x, neg, whole_neg); }
static enum hd_err f_abs(struct hd_host_fold *x) { return unary(x, fabs, whole_abs); }
static enum hd_err f_sqrt(struct hd_host_fold *x) { return unary(x, sqrt, NULL); }
static enum hd_err f_exp(struct hd_host_fold *x) { return unary(x, exp, NULL); }
static enum hd_err f_log(struct hd_host_fold *x) { return unary(x, log, NULL); }
static enum hd_err f_floor(struct hd_host_fold *x) { return unary(x, floor, NULL); }
static enum hd_err f_ceil(struct hd_host_fold *x) { return unary(x, ceil, NULL); }
static enum hd_err f_reciprocal(struct hd_host_fold *x) { return unary(x, reciprocal, NULL); }

static enum hd_err f_not(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0);

	if (!a || a->is_float)
		return no(x, "takes a bool constant");
	enum hd_err err = make(x, T(BOOL), a->rank, a->dim);
	for (uint64_t k = 0; !err && k < a->n; k++)
		x->out->i[k].a = !a->i[k].a;
	return err;
}

/* What an integer type keeps of v; float to integer truncates, and what does not fit has no value. */
static bool narrow(int32_t type, double v, int64_t *out)
{
	if (type == T(BOOL)) {
		*out = v != 0;
		return true;
	}
	if (!(fabs(v) < 0x1p53))
		return false;
	*out = (int64_t)v;
	return fits(type, *out);
}

static enum hd_err f_cast(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0), *like = input(x, 1);
	int32_t to = like ? like->type : 0;

	if (!a || (!like && !hd_i32_from(hd_onnx_attr_int(x->node, "to", 0), &to)) || !hd_onnx_type_bytes(to))
		return no(x, "casts to a type that Heddle does not read");
	if (!hd_host_plain(a) && to != T(INT64) && to != T(INT32))
		return no(x, "the result depends on the number of rows");
	enum hd_err err = make(x, to, a->rank, a->dim);
	for (uint64_t k = 0; !err && k < a->n; k++)
		if (x->out->is_float)
			x->out->f[k] = to == T(FLOAT) ? (double)(float)(a->is_float ? a->f[k] :
				(double)a->i[k].a) : a->is_float ? a->f[k] : (double)a->i[k].a;
		else if (!a->is_float && to != T(BOOL) && (!fits(to, a->i[k].a) || !fits(to, a->i[k].rows)))
			return hd_fail(x->diag, HD_E_INPUT, "%lld does not fit the integer type",
				(long long)(fits(to, a->i[k].a) ? a->i[k].rows : a->i[k].a));
		else if (!a->is_float)
			x->out->i[k] = to == T(BOOL) ? (struct hd_sym){ a->i[k].a != 0, 0 } : a->i[k];
		else if (!narrow(to, a->f[k], &x->out->i[k].a))
			return no(x, "a float does not fit the integer type");
	return err;
}

static enum hd_err f_where(struct hd_host_fold *x)
{
	const struct hd_host_tensor *c = input(x, 0), *a = input(x, 1), *b = input(x, 2);
	int64_t dim[HD_ONNX_DIMS];
	uint32_t rank;

	if (!c || !a || !b || c->is_float || a->is_float != b->is_float)
		return no(x, "takes a bool and two constants of one type");
	enum hd_err err = join(x, (const struct hd_host_tensor *[]){ c, a, b }, 3, &rank, dim);
	if (!err)
		err = make(x, a->type, rank, dim);
	for (uint64_t k = 0; !err && k < x->out->n; k++) {
		const struct hd_host_tensor *from = c->i[spread(c, x->out, k)].a ? a : b;
		put(x->out, k, from, spread(from, x->out, k));
	}
	return err;
}

/* ---- shape and order */

static enum hd_err same(struct hd_host_fold *x, uint32_t rank, const int64_t *dim)
{
	const struct hd_host_tensor *a = input(x, 0);
	enum hd_err err = make(x, a->type, rank, dim);

	if (!err && x->out->n != a->n)
		return no(x, "the new extents hold another number of elements");
	for (uint64_t k = 0; !err && k < a->n; k++)
		put(x->out, k, a, k);
	return err;
}

static enum hd_err f_identity(struct hd_host_fold *x) { return input(x, 0) ? same(x, input(x, 0)->rank,
	input(x, 0)->dim) : no(x, "takes a constant"); }

/* Integers of an attribute or, since its opset, of an input: bit i of `set` for axis i; none given: *given
 * is false. */
static enum hd_err axes_of(struct hd_host_fold *x, uint32_t rank, uint32_t *set, bool *given)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(x->node, "axes");
	const struct hd_host_tensor *h = input(x, 1);
	uint64_t n = a ? a->n_ints : h && !h->is_float ? h->n : 0;
	uint32_t at;

	*set = 0;
	*given = a || h;
	for (uint64_t k = 0; k < n; k++) {
		if (!hd_onnx_axis(a ? a->ints[k] : h->i[k].a, rank, &at))
			return no(x, "an axis does not exist");
		*set |= 1u << at;
	}
	return HD_OK;
}

static enum hd_err f_squeeze(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0);
	int64_t dim[HD_ONNX_DIMS];
	uint32_t set, rank = 0;
	bool given;

	if (!a)
		return no(x, "takes a constant");
	enum hd_err err = axes_of(x, a->rank, &set, &given);
	for (uint32_t d = 0; d < a->rank; d++)
		if (given ? !(set >> d & 1) : a->dim[d] != 1)
			dim[rank++] = a->dim[d];
	return err ? err : same(x, rank, dim);
}

static enum hd_err f_unsqueeze(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0);
	int64_t dim[HD_ONNX_DIMS];
	const Onnx__AttributeProto *attr = hd_onnx_attr(x->node, "axes");
	uint64_t more = attr ? attr->n_ints : input(x, 1) ? input(x, 1)->n : 0;
	uint32_t set, from = 0;
	bool given;

	if (!a || more > HD_ONNX_DIMS || a->rank + more > HD_ONNX_DIMS)
		return no(x, "takes a constant, and axes");
	uint32_t rank = a->rank + (uint32_t)more;
	enum hd_err err = axes_of(x, rank, &set, &given);
	if (err || (uint64_t)__builtin_popcount(set) != more)
		return err ? err : no(x, "an axis is given twice");
	for (uint32_t d = 0; d < rank; d++)
		dim[d] = set >> d & 1 ? 1 : a->dim[from++];
	return same(x, rank, dim);
}

static enum hd_err f_reshape(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0), *s = input(x, 1);
	int64_t dim[HD_ONNX_DIMS], hole = -1, n = 1;

	if (!a || !s || s->is_float || s->n > HD_ONNX_DIMS || !hd_host_plain(s))
		return no(x, "takes a constant and its new extents");
	for (uint32_t d = 0; d < s->n; d++) {
		dim[d] = s->i[d].a == 0 && d < a->rank && !hd_onnx_attr_int(x->node, "allowzero", 0) ?
			a->dim[d] : s->i[d].a;
		if (dim[d] == -1 && hole < 0)
			hole = d;
		else if (dim[d] < 0 || !hd_mul_i64(n, dim[d], &n))
			return no(x, "an extent is negative or too large");
	}
	if (hole >= 0)
		dim[hole] = n ? (int64_t)a->n / n : 0;
	return same(x, (uint32_t)s->n, dim);
}

static enum hd_err f_flatten(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0);
	int64_t dim[2] = { 1, 1 }, axis = hd_onnx_attr_int(x->node, "axis", 1);

	if (!a || axis < -(int64_t)a->rank || axis > a->rank)
		return no(x, "an axis does not exist");
	axis += axis < 0 ? a->rank : 0;
	for (uint32_t d = 0; d < a->rank; d++)
		dim[d >= axis] *= a->dim[d];
	return same(x, 2, dim);
}

static void strides_of(const struct hd_host_tensor *h, uint64_t *stride)
{
	uint64_t s = 1;

	for (uint32_t d = h->rank; d-- > 0; s *= (uint64_t)h->dim[d])
		stride[d] = s;
}

/* out[..] = a[first + stride . index]: slices and transpositions. */
static enum hd_err stride_copy(struct hd_host_fold *x, uint32_t rank, const int64_t *dim, uint64_t first,
	const int64_t *stride)
{
	const struct hd_host_tensor *a = input(x, 0);
	enum hd_err err = make(x, a->type, rank, dim);

	for (uint64_t k = 0; !err && k < x->out->n; k++) {
		uint64_t left = k;
		int64_t at = (int64_t)first;
		for (uint32_t d = rank; d-- > 0; left /= (uint64_t)dim[d])
			at += (int64_t)(left % (uint64_t)dim[d]) * stride[d];
		put(x->out, k, a, (uint64_t)at);
	}
	return err;
}

static enum hd_err f_transpose(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0);
	const Onnx__AttributeProto *perm = hd_onnx_attr(x->node, "perm");
	uint64_t from[HD_ONNX_DIMS];
	int64_t dim[HD_ONNX_DIMS], stride[HD_ONNX_DIMS];
	uint32_t at, set = 0;

	if (!a || (perm && perm->n_ints != a->rank))
		return no(x, "takes a constant and an order of its axes");
	strides_of(a, from);
	for (uint32_t d = 0; d < a->rank; d++) {
		if (!hd_onnx_axis(perm ? perm->ints[d] : (int64_t)(a->rank - 1u - d), a->rank, &at) ||
			set >> at & 1)
			return no(x, "an axis does not exist");
		set |= 1u << at;
		dim[d] = a->dim[at];
		stride[d] = (int64_t)from[at];
	}
	return stride_copy(x, a->rank, dim, 0, stride);
}

/* Starts, ends, axes, steps: inputs since opset 10, attributes before. */
static bool slice_number(const struct hd_host_fold *x, uint32_t in, const char *attr, uint64_t k, int64_t *v,
	uint64_t *n)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(x->node, attr);
	const struct hd_host_tensor *h = input(x, in);

	*n = h ? h->n : a ? a->n_ints : 0;
	if (k < *n && h && (h->is_float || h->i[k].rows))
		return false;
	if (k < *n)
		*v = h ? h->i[k].a : a->ints[k];
	return true;
}

static enum hd_err f_slice(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0);
	uint64_t from[HD_ONNX_DIMS], n, m, first = 0;
	int64_t dim[HD_ONNX_DIMS], stride[HD_ONNX_DIMS], start = 0, end = 0, axis = 0, step = 1, begin,
		ignored = 0;
	uint32_t at, set = 0;

	if (!a || !slice_number(x, 1, "starts", 0, &ignored, &n))
		return no(x, "takes a constant and where to cut it");
	strides_of(a, from);
	for (uint32_t d = 0; d < a->rank; d++) {
		dim[d] = a->dim[d];
		stride[d] = (int64_t)from[d];
	}
	for (uint64_t k = 0; k < n; k++) {
		axis = (int64_t)k;
		step = 1;
		if (!slice_number(x, 1, "starts", k, &start, &m) ||
			!slice_number(x, 2, "ends", k, &end, &m) || m != n ||
		    !slice_number(x, 3, "axes", k, &axis, &m) || !slice_number(x, 4, "steps", k, &step, &m) ||
		    step == 0 || step == INT64_MIN ||
		    !hd_onnx_axis(axis, a->rank, &at))
			return no(x, "starts, ends, axes and steps do not fit");
		if (set >> at & 1)
			return no(x, "an axis is given twice");
		set |= 1u << at;
		hd_onnx_slice(a->dim[at], start, end, step, &begin, &dim[at]);
		first += dim[at] ? (uint64_t)begin * from[at] : 0;
		stride[at] = dim[at] > 1 ? step * (int64_t)from[at] : 0;
	}
	return stride_copy(x, a->rank, dim, first, stride);
}

static enum hd_err f_gather(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0), *ids = input(x, 1);
	uint64_t outer = 1, inner = 1;
	int64_t dim[HD_ONNX_DIMS];
	uint32_t axis, rank = 0;

	if (!a || !ids || ids->is_float || !hd_host_plain(ids) ||
		!hd_onnx_axis(hd_onnx_attr_int(x->node, "axis", 0), a->rank, &axis) ||
	    a->rank + ids->rank > HD_ONNX_DIMS + 1)
		return no(x, "takes a constant and indices along one of its axes");
	for (uint32_t d = 0; d < a->rank; d++) {
		if (d != axis)
			*(d < axis ? &outer : &inner) *= (uint64_t)a->dim[d];
		for (uint32_t e = 0; d == axis && e < ids->rank; e++)
			dim[rank++] = ids->dim[e];
		if (d != axis)
			dim[rank++] = a->dim[d];
	}
	enum hd_err err = make(x, a->type, rank, dim);
	for (uint64_t o = 0; !err && o < outer; o++)
		for (uint64_t k = 0; k < ids->n; k++) {
			int64_t at = ids->i[k].a + (ids->i[k].a < 0 ? a->dim[axis] : 0);
			if (at < 0 || at >= a->dim[axis])
				return no(x, "an index does not exist");
			for (uint64_t i = 0; i < inner; i++)
				put(x->out, (o * ids->n + k) * inner + i, a,
					(o * (uint64_t)a->dim[axis] + (uint64_t)at) * inner + i);
		}
	return err;
}

static enum hd_err f_concat(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0);
	int64_t dim[HD_ONNX_DIMS], total = 0;
	uint64_t outer = 1, inner = 1, at = 0;
	uint32_t axis;

	if (!a || !hd_onnx_axis(hd_onnx_attr_int(x->node, "axis", 0), a->rank, &axis))
		return no(x, "takes constants and one of their axes");
	for (uint32_t d = 0; d < a->rank; d++) {
		dim[d] = a->dim[d];
		if (d != axis)
			*(d < axis ? &outer : &inner) *= (uint64_t)a->dim[d];
	}
	for (uint32_t k = 0; k < x->nin; k++) {
		if (!x->in[k] || x->in[k]->rank != a->rank || x->in[k]->is_float != a->is_float ||
			!hd_add_i64(total, x->in[k]->dim[axis], &total))
			return no(x, "the constants have different types or numbers of extents");
		for (uint32_t d = 0; d < a->rank; d++)
			if (d != axis && x->in[k]->dim[d] != a->dim[d])
				return no(x, "the constants have different extents beside the axis");
	}
	dim[axis] = total;
	enum hd_err err = make(x, a->type, a->rank, dim);
	for (uint64_t o = 0; !err && o < outer; o++)
		for (uint32_t k = 0; k < x->nin; k++) {
			uint64_t n = (uint64_t)x->in[k]->dim[axis] * inner;
			for (uint64_t i = 0; i < n; i++)
				put(x->out, at++, x->in[k], o * n + i);
		}
	return err;
}

static enum hd_err f_split(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0), *given = input(x, 1);
	const Onnx__AttributeProto *attr = hd_onnx_attr(x->node, "split");
	uint64_t from[HD_ONNX_DIMS];
	int64_t dim[HD_ONNX_DIMS], stride[HD_ONNX_DIMS], at = 0;
	struct hd_host_tensor *out = x->out;
	uint32_t axis;
	enum hd_err err = HD_OK;

	if (!a || !hd_onnx_axis(hd_onnx_attr_int(x->node, "axis", 0), a->rank, &axis) ||
		(given && (given->is_float || given->n != x->nout)) ||
	    (attr && attr->n_ints != x->nout))
		return no(x, "takes a constant and sizes along one of its axes");
	if (given && !hd_host_plain(given))
		return no(x, "a size depends on the number of rows");
	strides_of(a, from);
	for (uint32_t d = 0; d < a->rank; d++) {
		dim[d] = a->dim[d];
		stride[d] = (int64_t)from[d];
	}
	for (uint32_t k = 0; k < x->nout && !err; k++) {
		int64_t even = (a->dim[axis] + (int64_t)x->nout - 1) / (int64_t)x->nout;
		dim[axis] = given ? given->i[k].a : attr ? attr->ints[k] : even < a->dim[axis] - at ? even :
			a->dim[axis] - at;
		if (dim[axis] < 0 || dim[axis] > a->dim[axis] - at)
			return no(x, "the sizes exceed the axis");
		x->out = out + k;
		err = stride_copy(x, a->rank, dim, (uint64_t)at * from[axis], stride);
		at += dim[axis];
	}
	x->out = out;
	return err || at == a->dim[axis] ? err :
		hd_fail(x->diag, HD_E_INPUT, "the sizes add up to %lld, and the axis has %lld", (long long)at,
		(long long)a->dim[axis]);
}

static bool extents_from(const struct hd_host_tensor *h, uint32_t *rank, int64_t *dim)
{
	if (!h || h->is_float || h->n > HD_ONNX_DIMS || !hd_host_plain(h))
		return false;
	*rank = (uint32_t)h->n;
	for (uint32_t d = 0; d < h->n; d++)
		dim[d] = h->i[d].a;
	return true;
}

static enum hd_err f_expand(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0);
	struct hd_host_tensor shape = { 0 };
	int64_t dim[HD_ONNX_DIMS];
	uint32_t rank;

	if (!a || !extents_from(input(x, 1), &rank, shape.dim))
		return no(x, "takes a constant and extents that do not depend on the rows");
	shape.rank = (uint8_t)rank;
	enum hd_err err = join(x, (const struct hd_host_tensor *[]){ a, &shape }, 2, &rank, dim);
	if (!err)
		err = make(x, a->type, rank, dim);
	for (uint64_t k = 0; !err && k < x->out->n; k++)
		put(x->out, k, a, spread(a, x->out, k));
	return err;
}

static enum hd_err f_constant_of_shape(struct hd_host_fold *x)
{
	const Onnx__AttributeProto *a = hd_onnx_attr(x->node, "value");
	struct hd_onnx_init init = { .tensor = a ? a->t : NULL };
	struct hd_host_tensor value = { 0 };
	int64_t dim[HD_ONNX_DIMS];
	uint32_t rank;
	enum hd_err err = HD_OK;

	if (!extents_from(input(x, 0), &rank, dim))
		return no(x, "takes extents that do not depend on the rows");
	if (init.tensor) {
		init.raw = init.tensor->has_raw_data ? init.tensor->raw_data.data : NULL;
		init.raw_len = init.tensor->has_raw_data ? init.tensor->raw_data.len : 0;
		err = hd_host_read(&value, x->arena, &init, x->diag);
		if (!err && value.n != 1)
			return no(x, "its value has not one element");
	}
	if (!err)
		err = make(x, init.tensor ? value.type : T(FLOAT), rank, dim);
	for (uint64_t k = 0; !err && init.tensor && k < x->out->n; k++)
		put(x->out, k, &value, 0);
	return err;
}

static enum hd_err whole_range(struct hd_host_fold *x, int64_t start, int64_t end, int64_t step)
{
	bool up = step > 0;
	uint64_t by = up ? (uint64_t)step : 0 - (uint64_t)step, n = 0;

	if (step && up ? start < end : start > end)
		n = ((up ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end) - 1) / (by ?
			by : 1) + 1;
	if (!step || n > HD_HOST_ELEMS)
		return no(x, "has no step, or too many numbers");
	enum hd_err err = make(x, x->in[0]->type, 1, (int64_t[]){ (int64_t)n });
	for (uint64_t k = 0; !err && k < n; k++)
		/* between start and end, whatever wraps on the way */
		x->out->i[k].a = (int64_t)((uint64_t)start + k * (uint64_t)step);
	return err;
}

static enum hd_err f_range(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0), *b = input(x, 1), *s = input(x, 2);

	if (!a || !b || !s || a->n != 1 || b->n != 1 || s->n != 1 || a->is_float != b->is_float ||
		a->is_float != s->is_float ||
	    !hd_host_plain(a) || !hd_host_plain(b) || !hd_host_plain(s))
		return no(x, "takes three numbers that do not depend on the rows");
	if (!a->is_float)
		return whole_range(x, a->i[0].a, b->i[0].a, s->i[0].a);
	double start = a->f[0], step = s->f[0], n = ceil((b->f[0] - start) / step);
	if (!(step != 0) || !(n < HD_HOST_ELEMS))
		return no(x, "has no step, or too many numbers");
	enum hd_err err = make(x, a->type, 1, (int64_t[]){ n > 0 ? (int64_t)n : 0 });
	for (uint64_t k = 0; !err && k < x->out->n; k++)
		x->out->f[k] = a->type == T(FLOAT) ? (double)(float)(start + (double)k * step) :
			start + (double)k * step;
	return err;
}

static enum hd_err f_trilu(struct hd_host_fold *x)
{
	const struct hd_host_tensor *a = input(x, 0), *by = input(x, 1);
	bool upper = hd_onnx_attr_int(x->node, "upper", 1) != 0;

	if (!a || a->rank < 2 || (by && (by->is_float || by->n != 1)))
		return no(x, "takes a constant matrix and a whole number");
	int64_t k0 = by ? by->i[0].a : 0, w = a->dim[a->rank - 1], h = a->dim[a->rank - 2];
	if (k0 < -HD_HOST_ELEMS || k0 > HD_HOST_ELEMS)
		return no(x, "its diagonal is far outside");
	enum hd_err err = make(x, a->type, a->rank, a->dim);
	for (uint64_t k = 0; !err && k < a->n; k++) {
		int64_t col = (int64_t)k % w, row = (int64_t)k / w % h;
		if (upper ? col >= row + k0 : col <= row + k0)
			put(x->out, k, a, k);
	}
	return err;
}

static enum hd_err f_reduce(struct hd_host_fold *x, enum binary op)
{
	const struct hd_host_tensor *a = input(x, 0);

	if (!a || a->is_float || a->n == 0 || a->rank != 1)
		return no(x, "takes a row of whole numbers");
	enum hd_err err = make(x, a->type, hd_onnx_attr_int(x->node, "keepdims", 1) ? 1 : 0,
		(int64_t[]){ 1 });
	if (!err)
		x->out->i[0] = a->i[0];
	for (uint64_t k = 1; !err && k < a->n; k++)
		if (!whole(op, x->out->i[0], a->i[k], &x->out->i[0]) || !fits(a->type, x->out->i[0].a))
			return no(x, "integer arithmetic overflows or depends on the rows in no simple way");
	return err;
}

static enum hd_err f_prod(struct hd_host_fold *x) { return f_reduce(x, MUL); }
static enum hd_err f_sum(struct hd_host_fold *x) { return f_reduce(x, ADD); }

static const struct { const char *op; enum hd_err (*fold)(struct hd_host_fold *x); } folds[] = {
	{ "Add", f_add }, { "Sub", f_sub }, { "Mul", f_mul }, { "Div", f_div }, { "Pow", f_pow }, { "Mod", f_mod }, { "Min", f_min },
	{ "Max", f_max }, { "Equal", f_equal }, { "Less", f_less }, { "LessOrEqual", f_lesseq }, { "Greater", f_greater },
	{ "GreaterOrEqual", f_greatereq }, { "And", f_and }, { "Or", f_or }, { "Not", f_not }, { "Neg", f_neg }, { "Abs", f_abs },
	{ "Sqrt", f_sqrt }, { "Exp", f_exp }, { "Log", f_log }, { "Floor", f_floor }, { "Ceil", f_ceil }, { "Reciprocal", f_reciprocal },
	{ "Cast", f_cast }, { "CastLike", f_cast }, { "Where", f_where }, { "Identity", f_identity }, { "Squeeze", f_squeeze }, { "Unsqueeze", f_unsqueeze },
	{ "Reshape", f_reshape }, { "Flatten", f_flatten }, { "Transpose", f_transpose }, { "Slice", f_slice }, { "Gather", f_gather },
	{ "Concat", f_concat }, { "Split", f_split }, { "Expand", f_expand }, { "ConstantOfShape", f_constant_of_shape }, { "Range", f_range },
	{ "Trilu", f_trilu }, { "ReduceProd", f_prod }, { "ReduceSum", f_sum },
};

bool hd_host_folds(const char *op)
{
	for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
		if (!strcmp(folds[i].op, op))
			return true;
	return false;
}

enum hd_err hd_host_fold(struct hd_host_fold *fold)
{
	for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
		if (!strcmp(folds[i].op, fold->node->op_type))
			return fold->nout > 1 && folds[i].fold != f_split ? no(fold, "has one output") :
				folds[i].fold(fold);
	return HD_E_NOTFOUND;
}
