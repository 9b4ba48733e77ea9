#include "data/augment_int.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/philox.h"

enum { TRIES = 10, UNIFORM_BITS = 24 };           /* bits of hd_uniform() */

void hd_shot_words(const struct shot *shot, uint32_t draw, uint32_t word[4])
{
	const uint32_t counter[4] = { draw, shot->counter[1], shot->counter[2], shot->counter[3] };
	const struct hd_philox got = hd_philox(counter, shot->key);

	memcpy(word, got.word, sizeof got.word);
}

/* low * (high / low)^u, so that the logarithm is even: u's bits are square roots of square roots, which IEEE
 * 754 rounds alike on every machine. */
double hd_augment_between(double low, double high, uint32_t word)
{
	const uint32_t u = word >> (32 - UNIFORM_BITS);
	double root = high / low, power = 1;

	for (int bit = UNIFORM_BITS - 1; bit >= 0; bit--) {
		root = sqrt(root);
		if (u >> bit & 1)
			power *= root;
	}
	return low * power;
}

static int64_t nearest(double x) { return (int64_t)(x + 0.5); }

bool hd_augment_box(const struct shot *shot, uint32_t first_draw, const double number[4], int64_t height,
	int64_t width, struct hd_augment_part *box)
{
	for (uint32_t t = 0; t < TRIES; t++) {
		uint32_t word[4];
		hd_shot_words(shot, first_draw + t, word);
		const double area = (double)height * (double)width * (number[0] + (number[1] - number[0]) *
			(double)hd_uniform(word[0]));
		const double ratio = hd_augment_between(number[2], number[3], word[1]);
		const int64_t w = nearest(sqrt(area * ratio)), h = nearest(sqrt(area / ratio));
		if (w < 1 || h < 1 || w > width || h > height)
			continue;
		*box = (struct hd_augment_part){ (uint32_t)hd_shot_pick(word[2], height - h + 1),
			(uint32_t)hd_shot_pick(word[3], width - w + 1), (uint32_t)h, (uint32_t)w };
		return true;
	}
	return false;
}

/* The middle, of the ratio that is nearest to the image's. */
static struct hd_augment_part middle(const double ratio[2], int64_t height, int64_t width)
{
	const double own = (double)width / (double)height;
	int64_t h = height, w = width;

	if (own < ratio[0])
		h = nearest((double)w / ratio[0]);
	else if (own > ratio[1])
		w = nearest((double)h * ratio[1]);
	h = h < 1 ? 1 : h > height ? height : h;
	w = w < 1 ? 1 : w > width ? width : w;
	return (struct hd_augment_part){ (uint32_t)((height - h) / 2), (uint32_t)((width - w) / 2),
		(uint32_t)h,
		(uint32_t)w };
}

static struct hd_augment_part part_of(const struct shot *shot, const struct hd_augment_step *step, int64_t
	height,
	int64_t width)
{
	struct hd_augment_part part;

	if (!hd_augment_box(shot, 0, step->number, height, width, &part))
		part = middle(step->number + 2, height, width);
	assert(part.top + part.height <= height && part.left + part.width <= width);
	return part;
}

bool hd_augment_takes_part(const struct hd_augment_draw *draw)
{
	return draw->augment && draw->epoch != HD_NO_EPOCH && draw->augment->nsteps &&
		draw->augment->step[0].kind == HD_TRANSFORM_RESIZED_CROP;
}

void hd_augment_part(const struct hd_augment_draw *draw, uint32_t height, uint32_t width,
	struct hd_augment_part *part)
{
	const struct shot shot = hd_augment_shot(draw, 0);

	assert(hd_augment_takes_part(draw));
	*part = part_of(&shot, &draw->augment->step[0], height, width);
}

/* n numbers, `step` apart, from the `from` of them that begin at `first`: between the centres of two, and
 * beyond the outer ones as these are. */
static void stretch(float *x, int64_t step, int64_t n, int64_t first, int64_t from)
{
	float old[HD_AUGMENT_SIDE];
	const double scale = (double)from / (double)n;

	assert(n <= HD_AUGMENT_SIDE && from <= n);
	for (int64_t i = 0; i < from; i++)
		old[i] = x[(first + i) * step];
	for (int64_t i = 0; i < n; i++) {
		const double at = ((double)i + 0.5) * scale - 0.5;
		const int64_t low = at < 0 ? 0 : (int64_t)at, high = low + 1 < from ? low + 1 : from - 1;
		const float share = at < 0 ? 0.0f : (float)(at - (double)low), gap = old[high] - old[low];
		x[i * step] = old[low] + share * gap;
	}
}

void hd_augment_resized_crop(const struct shot *s, const struct hd_augment_step *step)
{
	if (s->part_taken)
		return;
	const struct hd_augment_part part = part_of(s, step, s->height, s->width);
	for (int64_t c = 0; c < s->channels; c++) {
		float *plane = s->x + c * s->height * s->width;
		for (int64_t y = part.top; y < part.top + part.height; y++)
			stretch(plane + y * s->width, 1, s->width, part.left, part.width);
		for (int64_t x = 0; x < s->width; x++)
			stretch(plane + x, s->width, s->height, part.top, part.height);
	}
}
