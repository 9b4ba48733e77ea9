/* Brightness, contrast, saturation and hue as torchvision.transforms.v2 changes them in f32 images of [0, 1]:
 * the same operations in the same order, cut at 0 and 1. Only the mean of contrast is added up otherwise
 * (lanes.h). */
#include "data/augment_int.h"

#include <math.h>

#include "base/lanes.h"
#include "base/philox.h"

static float cut(float v) { return v < 0 ? 0 : v > 1 ? 1 : v; }

/* Of pixel i; of one channel itself. */
static float grey(const struct shot *s, uint64_t i)
{
	const uint64_t plane = s->n / (uint64_t)s->channels;

	return s->channels == 1 ? s->x[i] : s->x[i] * 0.2989f + 0.587f * s->x[plane + i] +
		0.114f * s->x[2 * plane + i];
}

static void brightness(const struct shot *s, double by)
{
	for (uint64_t i = 0; i < s->n; i++)
		s->x[i] = cut(s->x[i] * (float)by);
}

static float blend(float a, float b, double by) { return cut(a * (float)by + b * (float)(1.0 - by)); }

static void contrast(const struct shot *s, double by)
{
	const uint64_t plane = s->n / (uint64_t)s->channels;
	double sum = 0;

	for (uint64_t at = 0; at < plane; at += HD_LANES) {
		float run[HD_LANES];
		const uint64_t n = plane - at < HD_LANES ? plane - at : HD_LANES;
		for (uint64_t i = 0; i < n; i++)
			run[i] = grey(s, at + i);
		sum += hd_lanes_sum(run, n);
	}
	const float mean = (float)(sum / (double)plane);
	for (uint64_t i = 0; i < s->n; i++)
		s->x[i] = blend(s->x[i], mean, by);
}

static void saturation(const struct shot *s, double by)
{
	const uint64_t plane = s->n / 3;

	for (uint64_t i = 0; i < plane; i++) {
		const float g = grey(s, i);
		for (int c = 0; c < 3; c++)
			s->x[(uint64_t)c * plane + i] = blend(s->x[(uint64_t)c * plane + i], g, by);
	}
}

/* Hue of a colour in [0, 1), saturation and value. */
static void to_hsv(const float rgb[3], float hsv[3])
{
	const float r = rgb[0], g = rgb[1], b = rgb[2];
	const float most = fmaxf(r, fmaxf(g, b)), least = fminf(r, fminf(g, b)), range = most - least;
	const float divisor = range > 0 ? range : 1, rc = (most - r) / divisor, gc = (most - g) / divisor,
		bc = (most - b) / divisor;
	float h = most == r ? bc - gc : most == g ? rc + 2.0f - bc : gc + 4.0f - rc;

	h = h * (float)(1.0 / 6.0) + 1.0f;
	hsv[0] = h - floorf(h);
	hsv[1] = range / (range > 0 ? most : 1);
	hsv[2] = most;
}

static void to_rgb(const float hsv[3], float rgb[3])
{
	const float h6 = hsv[0] * 6, whole = floorf(h6), f = h6 - whole, s = hsv[1], v = hsv[2];
	const float q = cut((1.0f - s * f) * v), t = cut((s * f + (1.0f - s)) * v), p = cut((1.0f - s) * v);
	const float six[6][3] = { { v, t, p }, { q, v, p }, { p, v, t }, { p, q, v }, { t, p, v }, { v, p,
		q } };
	const int at = whole >= 0 && whole < 6 ? (int)whole : 0;   /* no number: f is none, too */

	for (int c = 0; c < 3; c++)
		rgb[c] = six[at][c];
}

static void hue(const struct shot *s, double by)
{
	const uint64_t plane = s->n / 3;

	for (uint64_t i = 0; i < plane; i++) {
		float rgb[3] = { s->x[i], s->x[plane + i], s->x[2 * plane + i] }, hsv[3];
		to_hsv(rgb, hsv);
		hsv[0] += (float)by;
		hsv[0] -= floorf(hsv[0]);
		to_rgb(hsv, rgb);
		for (int c = 0; c < 3; c++)
			s->x[(uint64_t)c * plane + i] = rgb[c];
	}
}

static void (*const jitters[HD_JITTERS])(const struct shot *shot, double by) = {
	[HD_JITTER_BRIGHTNESS] = brightness, [HD_JITTER_CONTRAST] = contrast,
	[HD_JITTER_SATURATION] = saturation, [HD_JITTER_HUE] = hue,
};

/* A factor of 1 and a turn of 0 are left out. */
void hd_jitter(const struct shot *s, const double by[HD_JITTERS], const uint8_t order[HD_JITTERS])
{
	for (int i = 0; i < HD_JITTERS; i++)
		if (by[order[i]] != (order[i] == HD_JITTER_HUE ? 0 : 1))
			jitters[order[i]](s, by[order[i]]);
}

/* Draw 0: how much of each; draw 1: the order, each next one from what is left. */
void hd_augment_color_jitter(const struct shot *s, const struct hd_augment_step *step)
{
	double by[HD_JITTERS];
	uint8_t order[HD_JITTERS];
	uint32_t word[4];

	hd_shot_words(s, 1, word);
	for (uint8_t k = 0; k < HD_JITTERS; k++) {
		const double most = step->number[k], u = (double)hd_uniform(s->word[k]);
		const double low = k == HD_JITTER_HUE ? -most : most < 1 ? 1 - most : 0,
			high = k == HD_JITTER_HUE ? most : 1 + most;
		by[k] = low + (high - low) * u;
		order[k] = k;
	}
	for (uint8_t k = 0; k + 1 < HD_JITTERS; k++) {
		const uint8_t from = (uint8_t)(k + hd_shot_pick(word[k], HD_JITTERS - k)), was = order[k];
		order[k] = order[from];
		order[from] = was;
	}
	hd_jitter(s, by, order);
}
