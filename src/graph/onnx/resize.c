/* Resize: each axis on its own. To the nearest is a gather by known indices; between elements is a product
 * with a known matrix [out, in], whose row is what an element of the result takes of those around it. So
 * linear and cubic, with any way to place coordinates, with and without antialias, are one thing, and the
 * gradient is that of a product. Formulas: the operator's description in ONNX, and its reference. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "graph/onnx/import.h"

enum place { HALF_PIXEL, SYMMETRIC, PYTORCH, CORNERS, ASYMMETRIC, NPLACES };
static const char *const places[NPLACES] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
	"align_corners", "asymmetric" };
enum nearest { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL, NNEARESTS };
static const char *const nearests[NNEARESTS] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil" };
enum mode { NEAREST, LINEAR, CUBIC, NMODES };
static const char *const modes[NMODES] = { "nearest", "linear", "cubic" };

struct onnx_resize {
	enum place place;
	enum nearest nearest;
	enum mode mode;
	bool antialias, excludes;         /* what lies outside counts for nothing; else as the edge */
	double cubic;                     /* the a of the cubic */
};

/* One axis: extents, and what a step of the result is there. */
struct onnx_sized { int64_t in, out; double scale; };

static bool word_of(const struct hd_onnx_call *call, const char *attr, const char *const *words, int n,
	int *found)
{
	for (*found = 0; *found < n; ++*found)
		if (hd_onnx_attr_is(call->node, attr, words[*found], *found == 0))
			return true;
	return false;
}

static enum hd_err read_resize(struct hd_onnx_call *call, struct onnx_resize *r)
{
	int place, nearest, mode;

	if (call->im->file.opset < 11)
		return hd_onnx_no(call, "has changed since opset %lld: export with opset_version=17",
			(long long)call->im->file.opset);
	if (!word_of(call, "coordinate_transformation_mode", places, NPLACES, &place) ||
		!word_of(call, "nearest_mode", nearests, NNEARESTS, &nearest) ||
		!word_of(call, "mode", modes, NMODES, &mode))
		return hd_onnx_no(call, "a mode that Heddle has not (tf_crop_and_resize)");
	if (!hd_onnx_attr_is(call->node, "keep_aspect_ratio_policy", "stretch", true))
		return hd_onnx_no(call, "keeps the ratio of its extents");
	*r = (struct onnx_resize){ .place = (enum place)place, .nearest = (enum nearest)nearest,
		.mode = (enum mode)mode, .antialias = hd_onnx_attr_int(call->node, "antialias", 0) != 0,
		.excludes = hd_onnx_attr_int(call->node, "exclude_outside", 0) != 0,
		.cubic = hd_onnx_attr_float(call->node, "cubic_coeff_a", -0.75) };
	return HD_OK;
}

/* Scales or sizes, of all axes or of those named. */
static enum hd_err read_sizes(struct hd_onnx_call *call, struct onnx_sized *axis)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	const struct hd_host_tensor *scales = hd_onnx_known(call, 2), *sizes = hd_onnx_known(call, 3),
		*given = sizes && sizes->n ? sizes : scales;
	const Onnx__AttributeProto *axes = hd_onnx_attr(call->node, "axes");
	uint32_t at, set = 0;

	if (!given || given->is_float != (given == scales))
		return hd_onnx_no(call, "neither its scales nor its sizes are known before the graph runs");
	for (uint32_t d = 0; d < v->rank; d++)
		axis[d] = (struct onnx_sized){ v->dim[d], v->dim[d], 1 };
	if (given->n != (axes ? axes->n_ints : v->rank))
		return hd_onnx_no(call, "there is not one scale or size for each axis");
	for (uint32_t k = 0; k < given->n; k++) {
		if (!hd_onnx_axis(axes ? axes->ints[k] : (int64_t)k, v->rank, &at) || set >> at & 1)
			return hd_onnx_no(call, "an axis does not exist, or is given twice");
		set |= 1u << at;
		struct onnx_sized *a = &axis[at];
		bool same = given == sizes ? given->i[k].rows ? given->i[k].a == 0 &&
			given->i[k].rows == -a->in :
			given->i[k].a == a->in || (a->in < 0 && given->i[k].a == -a->in * call->im->batch) :
			given->f[k] == 1;
		if (same)
			continue;
		double out = given == sizes ? (double)given->i[k].a : floor((double)a->in * given->f[k]);
		if (a->in < 1 || (given == sizes && given->i[k].rows) || !(out >= 1 && out <= 1 << 24))
			return hd_onnx_no(call, "axis %u is the rows, or becomes nothing or huge", at);
		a->out = (int64_t)out;
		a->scale = given == sizes ? out / (double)a->in : given->f[k];
	}
	return HD_OK;
}

/* Where element `o` of the result lies among those of x. */
static double source_of(const struct onnx_resize *r, const struct onnx_sized *a, int64_t o)
{
	double at = (double)o, in = (double)a->in, out = (double)a->out, wide = in * a->scale;

	switch (r->place) {
	case HALF_PIXEL: return (at + 0.5) / a->scale - 0.5;
	case SYMMETRIC:  return in / 2 * (1 - out / wide) + (at + 0.5) / a->scale - 0.5;
	case PYTORCH:    return a->out > 1 ? (at + 0.5) / a->scale - 0.5 : 0;
	case CORNERS:    return a->out > 1 ? at * (in - 1) / (out - 1) : 0;
	case ASYMMETRIC: return at / a->scale;
	case NPLACES:    break;
	}
	return 0;
}

static int64_t nearest_of(const struct onnx_resize *r, double at)
{
	switch (r->nearest) {
	case PREFER_FLOOR: return (int64_t)ceil(at - 0.5);
	case PREFER_CEIL:  return (int64_t)floor(at + 0.5);
	case FLOOR:        return (int64_t)floor(at);
	case CEIL:         return (int64_t)ceil(at);
	case NNEARESTS:    break;
	}
	return 0;
}

static int64_t clamped(int64_t k, int64_t n) { return k < 0 ? 0 : k >= n ? n - 1 : k; }

/* What an element at distance x counts. */
static double weight(const struct onnx_resize *r, double x)
{
	double d = fabs(x), a = r->cubic;

	if (r->mode == LINEAR)
		return d < 1 ? 1 - d : 0;
	return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d -
		4 * a :
		0;
}

/* Antialias: where the result is smaller, a window is as much wider. */
static void fill_row(const struct onnx_resize *r, const struct onnx_sized *a, int64_t o, float *row,
	double *sums)
{
	double at = source_of(r, a, o), narrow = r->antialias && a->scale < 1 ? a->scale : 1,
		reach = (r->mode == LINEAR ? 1 : 2) / narrow, all = 0;
	int64_t first = (int64_t)floor(at - reach), last = (int64_t)ceil(at + reach);

	memset(sums, 0, (size_t)a->in * sizeof *sums);
	for (int64_t k = first; k <= last; k++) {
		double w = weight(r, ((double)k - at) * narrow);
		if (r->excludes && (k < 0 || k >= a->in))
			continue;
		sums[clamped(k, a->in)] += w;
		all += w;
	}
	for (int64_t k = 0; k < a->in; k++)
		row[k] = (float)(sums[k] / (r->excludes || narrow < 1 ? all : 1));
}

static enum hd_err nearest_axis(struct hd_onnx_call *call, const struct onnx_resize *r,
	const struct onnx_sized *a,
	uint32_t d, uint32_t *x)
{
	int32_t *at = hd_arena_take(&call->im->file.arena, (size_t)a->out, sizeof *at);
	uint32_t ids;

	for (int64_t o = 0; at && o < a->out; o++)
		at[o] = (int32_t)clamped(nearest_of(r, source_of(r, a, o)), a->in);
	enum hd_err err = at ? hd_graph_const(call->im->graph, HD_I32, 1, &a->out, at, &ids, &call->why) :
		hd_onnx_no(call, "no memory for its indices");
	return err ? err : hd_onnx_node2(call, HD_OP_GATHER, *x, ids,
		(struct hd_attr){ .i = { (int32_t)d } }, x);
}

/* Along the last axis x M', before it M x of what lies behind as one. */
static enum hd_err product(struct hd_onnx_call *call, const struct onnx_sized *a, uint32_t d, uint32_t matrix,
	uint32_t *x)
{
	const struct hd_value v = *hd_onnx_shape(call, *x);
	int64_t dim[HD_ONNX_DIMS], cut[HD_ONNX_DIMS];

	if (d + 1u == v.rank)
		return hd_onnx_node2(call, HD_OP_MATMUL, *x, matrix, (struct hd_attr){ .i = { 0, 1 } }, x);
	memcpy(dim, v.dim, v.rank * sizeof *dim);
	memcpy(cut, v.dim, (d + 1u) * sizeof *cut);
	cut[d + 1] = hd_dims_product(v.dim + d + 1, v.rank - d - 1u);
	dim[d] = a->out;
	enum hd_err err = hd_onnx_reshape(call, *x, d + 2, cut, x);
	if (!err)
		err = hd_onnx_node2(call, HD_OP_CONTRACT, matrix, *x, (struct hd_attr){ .i = { 0 } }, x);
	return err ? err : hd_onnx_reshape(call, *x, v.rank, dim, x);
}

static enum hd_err between_axis(struct hd_onnx_call *call, const struct onnx_resize *r,
	const struct onnx_sized *a,
	uint32_t d, uint32_t *x)
{
	int64_t n;
	bool fits = hd_mul_i64(a->in, a->out, &n) && n <= HD_MAX_CONST_BYTES / (int64_t)sizeof(float);
	float *at = fits ? hd_arena_take(&call->im->file.arena, (size_t)n, sizeof *at) : NULL;
	double *sums = fits ? hd_arena_take(&call->im->file.arena, (size_t)a->in, sizeof *sums) : NULL;
	uint32_t matrix;

	if (!at || !sums)
		return hd_onnx_no(call, "axis %u is too large", d);
	for (int64_t o = 0; o < a->out; o++)
		fill_row(r, a, o, at + o * a->in, sums);
	enum hd_err err = hd_graph_const(call->im->graph, HD_F32, 2, (int64_t[]){ a->out, a->in }, at,
		&matrix,
		&call->why);
	return err ? err : product(call, a, d, matrix, x);
}

enum hd_err hd_onnx_resize(struct hd_onnx_call *call)
{
	const struct hd_onnx_val *v = hd_onnx_in(call, 0);
	struct onnx_sized axis[HD_ONNX_DIMS];
	int64_t dim[HD_ONNX_DIMS];
	struct onnx_resize r = { .cubic = -0.75 };
	uint32_t x;
	enum hd_err err = hd_onnx_value(call, 0, &x);

	if (!err)
		err = read_resize(call, &r);
	if (!err)
		err = read_sizes(call, axis);
	if (err)
		return err;
	if (v->rank > HD_MAX_DIMS || hd_onnx_shape(call, x)->dtype != HD_F32)
		return hd_onnx_no(call, "of integers, or of more than %d extents", HD_MAX_DIMS);
	for (uint32_t d = 0; d < v->rank && !err; d++) {
		dim[d] = axis[d].out;
		if (axis[d].out == axis[d].in && axis[d].scale == 1)
			continue;
		err = r.mode == NEAREST ? nearest_axis(call, &r, &axis[d], d, &x) :
			between_axis(call, &r, &axis[d], d, &x);
	}
	return err ? err : hd_onnx_put(call, 0, x, v->rank, dim);
}
