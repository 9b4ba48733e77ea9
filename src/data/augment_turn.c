/* Rotation as Pillow computes it: for each pixel of the result the place in the image that it comes from. The
 * nearest one by steps of 1/65536 of a pixel, whole numbers (ImagingTransformAffine's affine_fixed), four
 * with their shares in f64. Erasing is torchvision's. */
#include "data/augment_int.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/philox.h"

#define PI_2 1.5707963267948966

/* Of an angle of at most 180 degrees: within [-45, 45] by the series, then by quarters. Only operations that
 * IEEE 754 rounds: libraries of different versions differ in the last bit of sin(). */
static void sine_cosine(double degrees, double *sine, double *cosine)
{
	const double quarter = floor(degrees / 90 + 0.5), x = (degrees - 90 * quarter) / 90 * PI_2, xx =
		x * x;
	double s = 0, c = 0;

	for (int k = 20; k >= 2; k -= 2) {
		c = 1 - xx / (double)((k - 1) * k) * (k == 20 ? 1 : c);
		s = 1 - xx / (double)(k * (k + 1)) * (k == 20 ? 1 : s);
	}
	s *= x;
	const double turned[4][2] = { { s, c }, { c, -s }, { -s, -c }, { -c, s } };
	const int q = (int)((int64_t)quarter & 3);
	*sine = turned[q][0];
	*cosine = turned[q][1];
}

/* x of the image = a[0] x + a[1] y + a[2], y = a[3] x + a[4] y + a[5], from the middle as Pillow's rotate. */
static void affine(double degrees, int64_t height, int64_t width, double a[6])
{
	const double cx = (double)width / 2, cy = (double)height / 2;
	double sine, cosine;

	sine_cosine(degrees, &sine, &cosine);
	a[0] = cosine;
	a[1] = -sine;
	a[3] = sine;
	a[4] = cosine;
	a[2] = -cx * a[0] + -cy * a[1] + cx;
	a[5] = -cx * a[3] + -cy * a[4] + cy;
}

static int64_t fixed(double v) { return (int64_t)floor(v * 65536.0 + 0.5); }

static void turn_nearest(const float *from, float *to, int64_t height, int64_t width, const double a[6],
	float fill)
{
	const int64_t dxx = fixed(a[0]), dyx = fixed(a[3]), dxy = fixed(a[1]), dyy = fixed(a[4]);
	int64_t x0 = fixed(a[2] + a[0] * 0.5 + a[1] * 0.5), y0 = fixed(a[5] + a[3] * 0.5 + a[4] * 0.5);

	for (int64_t y = 0; y < height; y++, x0 += dxy, y0 += dyy) {
		int64_t at_x = x0, at_y = y0;
		for (int64_t x = 0; x < width; x++, at_x += dxx, at_y += dyx) {
			const bool inside = at_x >= 0 && at_x < width << 16 && at_y >= 0 &&
				at_y < height << 16;
			to[y * width + x] = inside ? from[(at_y >> 16) * width + (at_x >> 16)] : fill;
		}
	}
}

static int64_t clip(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

static double mixed(double a, double b, double share) { return a * (1.0 - share) + b * share; }

static float between_four(const float *from, int64_t height, int64_t width, double x, double y)
{
	const double fx = floor(x), fy = floor(y);
	const int64_t left = clip((int64_t)fx, width), right = clip((int64_t)fx + 1, width);
	const float *above = from + clip((int64_t)fy, height) * width,
		*below = from + clip((int64_t)fy + 1, height) * width;

	return (float)mixed(mixed((double)above[left], (double)above[right], x - fx),
		mixed((double)below[left], (double)below[right], x - fx), y - fy);
}

static void turn_bilinear(const float *from, float *to, int64_t height, int64_t width, const double a[6],
	float fill)
{
	for (int64_t y = 0; y < height; y++)
		for (int64_t x = 0; x < width; x++) {
			const double cx = (double)x + 0.5, cy = (double)y + 0.5;
			const double at_x = a[0] * cx + a[1] * cy + a[2], at_y = a[3] * cx + a[4] * cy + a[5];
			const bool inside = at_x >= 0 && at_x < (double)width && at_y >= 0 &&
				at_y < (double)height;
			to[y * width + x] = inside ? between_four(from, height, width, at_x - 0.5,
				at_y - 0.5) : fill;
		}
}

void hd_turn(const struct shot *s, double degrees, float fill, bool bilinear)
{
	const size_t plane = (size_t)(s->height * s->width);
	double a[6];

	assert(s->scratch && degrees >= -180 && degrees <= 180);
	affine(degrees, s->height, s->width, a);
	for (int64_t c = 0; c < s->channels; c++) {
		float *at = s->x + (size_t)c * plane;
		memcpy(s->scratch, at, plane * sizeof *at);
		(bilinear ? turn_bilinear : turn_nearest)(s->scratch, at, s->height, s->width, a, fill);
	}
}

void hd_augment_rotate(const struct shot *s, const struct hd_augment_step *step)
{
	const double *n = step->number;

	hd_turn(s, n[HD_ROTATE_DEGREES] * (2 * (double)hd_uniform(s->word[0]) - 1), (float)n[HD_ROTATE_FILL],
		n[HD_ROTATE_BILINEAR] > 0);
}

void hd_erase(const struct shot *s, const struct hd_augment_part *box, float value)
{
	for (int64_t c = 0; c < s->channels; c++)
		for (int64_t y = box->top; y < box->top + box->height; y++) {
			float *row = s->x + (c * s->height + y) * s->width + box->left;
			for (uint32_t x = 0; x < box->width; x++)
				row[x] = value;
		}
}

static int64_t nearest(double x) { return (int64_t)(x + 0.5); }

/* A box that fills no side; ten tries, draws 1 to 10. Draw 0 says whether. */
void hd_augment_erasing(const struct shot *s, const struct hd_augment_step *step)
{
	const double *n = step->number;

	if ((double)hd_uniform(s->word[0]) >= n[HD_ERASE_P])
		return;
	for (uint32_t t = 0; t < 10; t++) {
		uint32_t word[4];
		hd_shot_words(s, 1 + t, word);
		const double share = n[HD_ERASE_SCALE] + (n[HD_ERASE_SCALE + 1] - n[HD_ERASE_SCALE]) *
			(double)hd_uniform(word[0]), area = (double)s->height * (double)s->width * share;
		const double ratio = hd_augment_between(n[HD_ERASE_RATIO], n[HD_ERASE_RATIO + 1], word[1]);
		const int64_t h = nearest(sqrt(area * ratio)), w = nearest(sqrt(area / ratio));
		if (h < 1 || w < 1 || h >= s->height || w >= s->width)
			continue;
		hd_erase(s, &(struct hd_augment_part){ (uint32_t)hd_shot_pick(word[2], s->height - h + 1),
			(uint32_t)hd_shot_pick(word[3], s->width - w + 1), (uint32_t)h, (uint32_t)w },
			(float)n[HD_ERASE_VALUE]);
		return;
	}
}
