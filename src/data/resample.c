#include "data/resample.h"

#include <assert.h>

/* Sums stay in 32 bits: 255 * 2^22 and a weight's rounding. */
enum { BITS = 32 - 8 - 2 };

/* Weights of one axis: output i takes `n[i]` inputs from `first[i]` on. */
struct axis { uint32_t ntaps; uint32_t *first, *n; int32_t *weight; };

static double scale_of(uint32_t in, uint32_t out) { return (double)in / out; }

static double support_of(uint32_t in, uint32_t out)
{
	const double scale = scale_of(in, out);

	return scale < 1 ? 1 : scale;                   /* the triangle's half, 1, times the scale */
}

static uint32_t ceil_of(double x) { return (uint32_t)x + ((double)(uint32_t)x < x); }

static uint32_t taps(uint32_t in, uint32_t out) { return ceil_of(support_of(in, out)) * 2 + 1; }

static size_t axis_bytes(uint32_t in, uint32_t out, uint32_t wanted)
{
	return (size_t)wanted * (2 * sizeof(uint32_t) + (size_t)taps(in, out) * sizeof(int32_t) +
		sizeof(double)) + (size_t)taps(in, out) * sizeof(double);
}

static double triangle(double x)
{
	x = x < 0 ? -x : x;
	return x < 1 ? 1 - x : 0;
}

static int32_t fixed(double weight)
{
	return (int32_t)(weight < 0 ? -0.5 + weight * (1 << BITS) : 0.5 + weight * (1 << BITS));
}

/* Where the triangle of output i stands on the input, and its taps there, before they are divided. */
static double tap(struct axis *a, uint32_t i, double centre, double support, uint32_t in, double *w)
{
	const double low = centre - support + 0.5, high = centre + support + 0.5;
	const uint32_t first = low < 0 ? 0 : (uint32_t)low, end = high > in ? in : (uint32_t)high;
	double sum = 0;

	assert(first < end && end - first <= a->ntaps);
	a->first[i] = first;
	a->n[i] = end - first;
	for (uint32_t k = 0; k < a->n[i]; k++) {
		w[k] = triangle(((double)(k + first) - centre + 0.5) * (1.0 / support));
		sum += w[k];
	}
	return sum;
}

/* Takes its arrays from *room. */
static struct axis weigh(uint32_t in, uint32_t out, uint32_t from, uint32_t wanted, uint8_t **room)
{
	struct axis a = { .ntaps = taps(in, out) };
	const double scale = scale_of(in, out), support = support_of(in, out);
	double *w = (double *)(void *)*room;

	a.first = (uint32_t *)(void *)(w + a.ntaps);
	a.n = a.first + wanted;
	a.weight = (int32_t *)(a.n + wanted);
	*room += (axis_bytes(in, out, wanted) + 7) / 8 * 8;
	for (uint32_t i = 0; i < wanted; i++) {
		const double sum = tap(&a, i, 0.0 + ((double)(i + from) + 0.5) * scale, support, in, w);
		for (uint32_t k = 0; k < a.n[i]; k++)
			a.weight[(size_t)i * a.ntaps + k] = fixed(sum != 0 ? w[k] / sum : w[k]);
	}
	return a;
}

static uint8_t clip(int32_t sum)
{
	const int32_t v = sum >> BITS;

	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* One row of the input, from its columns to those that are wanted. */
static void across(const uint8_t *in, uint32_t channels, const struct axis *a, uint32_t columns, uint8_t *out)
{
	for (uint32_t i = 0; i < columns; i++) {
		const int32_t *weight = a->weight + (size_t)i * a->ntaps;
		const uint8_t *from = in + (size_t)a->first[i] * channels;
		for (uint32_t c = 0; c < channels; c++) {
			int32_t sum = 1 << (BITS - 1);
			for (uint32_t k = 0; k < a->n[i]; k++)
				sum += from[(size_t)k * channels + c] * weight[k];
			*out++ = clip(sum);
		}
	}
}

/* One row of the result out of those of across(). */
static void down(const uint8_t *in, size_t row, const int32_t *weight, uint32_t n, uint8_t *out)
{
	for (size_t i = 0; i < row; i++) {
		int32_t sum = 1 << (BITS - 1);
		for (uint32_t k = 0; k < n; k++)
			sum += in[k * row + i] * weight[k];
		out[i] = clip(sum);
	}
}

size_t hd_resample_bytes(const struct hd_pixels *in, const struct hd_resample *to)
{
	return axis_bytes(in->width, to->width, to->columns) + axis_bytes(in->height, to->height, to->rows) +
		(size_t)in->height * to->columns * in->channels + 2 * 8;
}

void hd_resample(const struct hd_pixels *in, const struct hd_resample *to, void *room, uint8_t *out)
{
	uint8_t *at = room;

	assert(in->width && in->height && to->rows && to->columns);
	assert(to->left + to->columns <= to->width && to->top + to->rows <= to->height);
	const struct axis h = weigh(in->width, to->width, to->left, to->columns, &at);
	const struct axis v = weigh(in->height, to->height, to->top, to->rows, &at);
	const uint32_t begin = v.first[0], end = v.first[to->rows - 1] + v.n[to->rows - 1];
	const size_t row = (size_t)to->columns * in->channels;

	for (uint32_t y = begin; y < end; y++)
		across(in->at + y * in->stride, in->channels, &h, to->columns, at + (y - begin) * row);
	for (uint32_t y = 0; y < to->rows; y++)
		down(at + (size_t)(v.first[y] - begin) * row, row, v.weight + (size_t)y * v.ntaps, v.n[y],
			out + y * row);
}
