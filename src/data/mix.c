#include "data/mix.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "data/augment_int.h"

enum { TRIES = 1024 };

bool hd_mix_any(const struct hd_dataset *set) { return set->augment && set->augment->nmixes; }

enum hd_err hd_mix_check(const struct hd_dataset *set, struct hd_diag *diag)
{
	if (!hd_mix_any(set))
		return HD_OK;
	if (set->nfields < 2 || strcmp(set->field[1].name, "y") != 0 || set->field[1].dtype != HD_F32)
		return hd_fail(diag, HD_E_INVAL,
			"mixup and cutmix mix labels, too, and this model's are no numbers: use model.loss "
			"soft-cross-entropy, whose labels are shares of classes");
	if (set->nfields > 2)
		return hd_fail(diag, HD_E_INVAL, "mixup and cutmix mix x and y; this model also reads \"%s\"",
			set->field[2].name);
	return HD_OK;
}

/* Squares for the whole part of the exponent, square roots for its fraction. */
double hd_mix_power(double u, double e)
{
	uint64_t whole = (uint64_t)e;
	double power = 1, square = u, root = u, rest = e - (double)whole;

	for (; whole; whole >>= 1) {
		power *= whole & 1 ? square : 1;
		square *= square;
	}
	for (int bit = 0; bit < 40 && rest > 0; bit++) {
		root = sqrt(root);
		rest *= 2;
		if (rest >= 1) {
			power *= root;
			rest -= 1;
		}
	}
	return power;
}

/* In (0, 1). */
static double open_unit(uint32_t word) { return ((double)word + 0.5) * 0x1p-32; }

/* Johnk's way: of x = u^(1/a), y = v^(1/a) the share x / (x + y) where x + y is at most 1. Both may be
 * smaller than any number, so the share comes from the ratio. */
static bool small_alpha(double alpha, const uint32_t word[4], double *share)
{
	const double u = open_unit(word[0]), v = open_unit(word[1]), e = 1 / alpha;
	const double ratio = u > v ? hd_mix_power(v / u, e) : hd_mix_power(u / v, e);

	*share = (u > v ? 1 : ratio) / (1 + ratio);
	return hd_mix_power(u, e) + hd_mix_power(v, e) <= 1;
}

/* The density over that of its middle, (4 x (1 - x))^(a - 1), against an even number. */
static bool large_alpha(double alpha, const uint32_t word[4], double *share)
{
	const double x = open_unit(word[0]);

	*share = x;
	return open_unit(word[1]) <= hd_mix_power(4 * x * (1 - x), alpha - 1);
}

double hd_mix_beta(double alpha, uint64_t key, const uint32_t counter[4])
{
	uint32_t at[4] = { 0, counter[1], counter[2], counter[3] };
	double share = 0.5;

	for (; at[0] < TRIES; at[0]++) {
		const struct hd_philox draw = hd_philox(at, key);
		if ((alpha < 1 ? small_alpha : large_alpha)(alpha, draw.word, &share))
			return share;
	}
	return 0.5;
}

/* torchvision's: the middle anywhere, the sides in the root of the share, cut at the edges. */
static struct hd_augment_part box_of(const struct hd_field *x, double share, const struct hd_philox *draw)
{
	const int64_t height = x->dim[1], width = x->dim[2];
	const int64_t cx = hd_shot_pick(draw->word[0], width), cy = hd_shot_pick(draw->word[1], height);
	const double half = 0.5 * sqrt(1 - share);
	const int64_t w = (int64_t)(half * (double)width), h = (int64_t)(half * (double)height);
	const int64_t left = cx > w ? cx - w : 0, top = cy > h ? cy - h : 0,
		right = cx + w < width ? cx + w : width, bottom = cy + h < height ? cy + h : height;

	return (struct hd_augment_part){ (uint32_t)top, (uint32_t)left, (uint32_t)(bottom - top),
		(uint32_t)(right - left) };
}

void hd_mix_draw(const struct hd_augment *augment, const struct hd_field *x, uint64_t step,
	struct hd_mixing *mixing)
{
	const uint64_t key = hd_philox_key(augment->seed, HD_RNG_AUGMENT);
	uint32_t at[4] = { 0, HD_AUGMENT_STEPS | 0x80000000u, (uint32_t)step, (uint32_t)(step >> 32) };

	assert(augment->nmixes);
	const int64_t which = hd_shot_pick(hd_philox(at, key).word[0], augment->nmixes);
	const struct hd_augment_step *mix = &augment->mix[which];
	at[1] = (uint32_t)which | 0x80000000u;
	*mixing = (struct hd_mixing){ .kind = (enum hd_mix)mix->kind,
		.share = hd_mix_beta(mix->number[0], key, at) };
	if (mix->kind != HD_MIX_CUTMIX)
		return;
	at[0] = HD_MIX_BOX;
	const struct hd_philox draw = hd_philox(at, key);
	mixing->box = box_of(x, mixing->share, &draw);
	mixing->share = 1 - (double)((uint64_t)mixing->box.height * mixing->box.width) /
		(double)(x->dim[1] * x->dim[2]);
}

static void mix(float *to, const float *before, uint64_t n, double share)
{
	const float own = (float)share, other = (float)(1.0 - share);

	for (uint64_t i = 0; i < n; i++) {
		const float rest = before[i] * other;
		to[i] = rest + to[i] * own;
	}
}

static void put_box(float *to, const float *before, const struct hd_field *x,
	const struct hd_augment_part *box)
{
	for (int64_t c = 0; c < x->dim[0]; c++)
		for (int64_t y = box->top; y < box->top + box->height; y++) {
			const int64_t at = (c * x->dim[1] + y) * x->dim[2] + box->left;
			memcpy(to + at, before + at, box->width * sizeof *to);
		}
}

void hd_mix_rows(const struct hd_mixing *mixing, const struct hd_dataset *set, uint64_t nrows,
	void *const *row,
	const void *const *before)
{
	const struct hd_field *x = &set->field[0], *y = &set->field[1];
	const uint64_t nx = x->sample_bytes / sizeof(float), ny = y->sample_bytes / sizeof(float);
	float *xs = row[0], *ys = row[1];

	for (uint64_t r = nrows; r-- > 0;) {
		const float *x0 = r ? xs + (r - 1) * nx : before[0], *y0 = r ? ys + (r - 1) * ny : before[1];
		if (mixing->kind == HD_MIX_MIXUP)
			mix(xs + r * nx, x0, nx, mixing->share);
		else
			put_box(xs + r * nx, x0, x, &mixing->box);
		mix(ys + r * ny, y0, ny, mixing->share);
	}
}
