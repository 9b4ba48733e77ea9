#include "data/augment_int.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/lanes.h"
#include "base/near.h"
#include "base/philox.h"
#include "data/named.h"

static int64_t pick(uint32_t word, int64_t n) { return hd_shot_pick(word, n); }

static float factor(uint32_t word, float share) { return 1.0f + share * (2.0f * hd_uniform(word) - 1.0f); }

static void flip(const struct shot *s, const struct hd_augment_step *step)
{
	(void)step;
	if (s->word[0] >> 31)
		return;
	for (float *row = s->x; row < s->x + s->n; row += s->width)
		for (int64_t a = 0, b = s->width - 1; a < b; a++, b--) {
			float left = row[a];
			row[a] = row[b];
			row[b] = left;
		}
}

/* Row y becomes what stands dx further right in row `from` (of the same plane, not overwritten yet), or zeros
 * beyond the edge, or the edge itself. */
static void move_row(float *to, const float *from, int64_t width, int64_t dx, bool repeat)
{
	int64_t gap = dx < 0 ? -dx : dx, kept = width - gap;
	float edge = repeat ? from[dx < 0 ? 0 : width - 1] : 0.0f;

	memmove(to + (dx < 0 ? gap : 0), from + (dx < 0 ? 0 : gap), (size_t)kept * sizeof *to);
	for (int64_t i = 0; i < gap; i++)
		to[dx < 0 ? i : kept + i] = edge;
}

/* out[y][x] = in[y + dy][x + dx]. In place: rows are taken in the order in which none is needed after it was
 * written; the row that stands for those beyond the edge is written last. */
static void move(const struct shot *s, int64_t dy, int64_t dx, bool repeat)
{
	for (int64_t c = 0; c < s->channels; c++) {
		float *plane = s->x + c * s->height * s->width;
		for (int64_t i = 0; i < s->height; i++) {
			int64_t y = dy < 0 ? s->height - 1 - i : i, from = y + dy;
			bool beyond = from < 0 || from >= s->height;
			if (beyond && !repeat)
				memset(plane + y * s->width, 0, (size_t)s->width * sizeof *plane);
			else if (!beyond)
				move_row(plane + y * s->width, plane + from * s->width, s->width, dx, repeat);
			else    /* the row at the edge was moved already, to where the last one is */
				memcpy(plane + y * s->width,
					plane + (dy < 0 ? -dy : s->height - 1 - dy) * s->width,
					(size_t)s->width * sizeof *plane);
		}
	}
}

static void crop(const struct shot *s, const struct hd_augment_step *step)
{
	int64_t pad = (int64_t)step->value;

	move(s, pick(s->word[0], 2 * pad + 1) - pad, pick(s->word[1], 2 * pad + 1) - pad, false);
}

static void shift(const struct shot *s, const struct hd_augment_step *step)
{
	int64_t most = (int64_t)step->value;

	move(s, pick(s->word[0], 2 * most + 1) - most, pick(s->word[1], 2 * most + 1) - most, true);
}

static void cutout(const struct shot *s, const struct hd_augment_step *step)
{
	int64_t side = (int64_t)step->value, y = pick(s->word[0], s->height) - side / 2,
		x = pick(s->word[1], s->width) - side / 2;
	int64_t y0 = y < 0 ? 0 : y, y1 = y + side > s->height ? s->height : y + side;
	int64_t x0 = x < 0 ? 0 : x, x1 = x + side > s->width ? s->width : x + side;

	for (int64_t c = 0; c < s->channels; c++)
		for (int64_t r = y0; r < y1; r++)
			memset(s->x + (c * s->height + r) * s->width + x0, 0,
				(size_t)(x1 > x0 ? x1 - x0 : 0) * sizeof *s->x);
}

static void brightness(const struct shot *s, const struct hd_augment_step *step)
{
	float by = factor(s->word[0], step->value);

	for (uint64_t i = 0; i < s->n; i++)
		s->x[i] = s->x[i] * by;
}

static void contrast(const struct shot *s, const struct hd_augment_step *step)
{
	float by = factor(s->word[0], step->value), mean = (float)(hd_lanes_sum(s->x, s->n) / (double)s->n);

	for (uint64_t i = 0; i < s->n; i++) {
		float away = s->x[i] - mean;
		away = away * by;
		s->x[i] = mean + away;
	}
}

static void normalize(const struct shot *s, const struct hd_augment_step *step)
{
	uint64_t per = s->n / step->nchannels;

	for (uint32_t c = 0; c < step->nchannels; c++)
		for (float *x = s->x + c * per, *end = x + per; x < end; x++) {
			float away = *x - step->mean[c];
			*x = away / step->std[c];
		}
}

static void resized_crop(const struct shot *s, const struct hd_augment_step *step)
{
	hd_augment_resized_crop(s, step);
}

static void rotate(const struct shot *s, const struct hd_augment_step *step) { hd_augment_rotate(s, step); }
static void erasing(const struct shot *s, const struct hd_augment_step *step) { hd_augment_erasing(s, step); }

static void color_jitter(const struct shot *s, const struct hd_augment_step *step)
{
	hd_augment_color_jitter(s, step);
}

enum params { NONE, PIXELS, SHARE, MOMENTS, NAMED };

static const struct augment_row {
	const char *name;
	enum params params;
	bool always;
	void (*apply)(const struct shot *shot, const struct hd_augment_step *step);
} rows[HD_NTRANSFORMS] = {
#define X(id, name, params, always, about) [HD_TRANSFORM_##id] = { #name, params, always, name },
	HD_TRANSFORMS(X)
#undef X
};

static const char *const mixes[HD_NMIXES] = {
#define X(id, name, about) #name,
	HD_MIXES(X)
#undef X
};

static bool moves_pixels(uint32_t kind) { return kind <= HD_TRANSFORM_COLOR_JITTER; }

static uint32_t channels_of(const struct hd_field *x) { return x->rank == 3 ? (uint32_t)x->dim[0] : 1; }

static enum hd_err take_none(struct hd_augment_step *step, const struct hd_augment_call *call,
	const struct hd_field *x, struct hd_diag *diag)
{
	(void)step;
	(void)x;
	return call->nparams ? hd_fail(diag, HD_E_INVAL, "%s takes no number: write %s alone", call->name,
		call->name) : HD_OK;
}

static bool is_one_number(const struct hd_augment_call *call) { return call->nparams == 1 &&
	!call->param->name && call->param->n == 1; }

static enum hd_err take_pixels(struct hd_augment_step *step, const struct hd_augment_call *call,
	const struct hd_field *x, struct hd_diag *diag)
{
	int64_t most = x->dim[1] < x->dim[2] ? x->dim[1] : x->dim[2];

	most -= step->kind != HD_TRANSFORM_CUTOUT;
	double v = is_one_number(call) ? call->param->at[0] : 0;
	if (!(v >= 1) || v > (double)most || v != (double)(int64_t)v)
		return hd_fail(diag, HD_E_INVAL,
			"%s takes a whole number of pixels from 1 to %lld, as {%s: %d}", call->name,
			(long long)most, call->name,
			most < 4 ? 1 : 4);
	step->value = (float)v;
	return HD_OK;
}

static enum hd_err take_share(struct hd_augment_step *step, const struct hd_augment_call *call,
	const struct hd_field *x, struct hd_diag *diag)
{
	double v = is_one_number(call) ? call->param->at[0] : 0;

	(void)x;
	if (!(v > 0) || v > 1)
		return hd_fail(diag, HD_E_INVAL, "%s takes one number above 0 and up to 1, as {%s: 0.2}",
			call->name, call->name);
	step->value = (float)v;
	return HD_OK;
}

static const float LARGEST_PIXEL = 255;

static enum hd_err take_moments(struct hd_augment_step *step, const struct hd_augment_call *call,
	const struct hd_field *x, struct hd_diag *diag)
{
	const struct hd_augment_param *mean = NULL, *std = NULL;
	uint32_t channels = channels_of(x);

	for (uint32_t i = 0; i < call->nparams; i++) {
		const char *name = call->param[i].name ? call->param[i].name : "";
		mean = strcmp(name, "mean") == 0 ? &call->param[i] : mean;
		std = strcmp(name, "std") == 0 ? &call->param[i] : std;
	}
	if (call->nparams != 2 || !mean || !std)
		return hd_fail(diag, HD_E_INVAL, "%s takes mean and std, as {%s: {mean: [0.5], std: [0.25]}}",
			call->name, call->name);
	if (mean->n != std->n || (mean->n != 1 && mean->n != channels) || mean->n > HD_AUGMENT_CHANNELS)
		return hd_fail(diag, HD_E_INVAL,
			"%s has %u means and %u deviations: give one of each, or one for each of %u "
			"channels (at most %d)",
			call->name, mean->n, std->n, channels, HD_AUGMENT_CHANNELS);
	step->nchannels = mean->n;
	for (uint32_t c = 0; c < mean->n; c++) {
		step->mean[c] = (float)mean->at[c];
		step->std[c] = (float)std->at[c];
		if (!(step->std[c] > 0))
			return hd_fail(diag, HD_E_INVAL,
				"%s: a deviation of %g divides by nothing; it must be above 0", call->name,
				std->at[c]);
		if (!isfinite((LARGEST_PIXEL + fabsf(step->mean[c])) / step->std[c]))
			return hd_fail(diag, HD_E_INVAL, "%s: pixels less %g divided by %g are infinite in "
				"32-bit floats; are mean and std those of the data?", call->name,
				mean->at[c], std->at[c]);
	}
	return HD_OK;
}

/* Parameters that may be left out, but where the default lies below `low`: `n` numbers from `low` to `high`,
 * of a pair the first not above the second. A number without a name is the first of its transform, where
 * that is one number. Mixes follow the transforms. */
enum { MIX = HD_NTRANSFORMS };
static const struct named_param {
	uint32_t transform; const char *name; uint32_t at, n; double low, high, standard[2]; bool whole;
} named[] = {
	{ HD_TRANSFORM_RESIZED_CROP, "scale", 0, 2, 1e-6, 1,    { 0.08, 1 }, false },
	{ HD_TRANSFORM_RESIZED_CROP, "ratio", 2, 2, 0.01, 100,  { 3.0 / 4, 4.0 / 3 }, false },
	{ HD_TRANSFORM_ROTATE, "degrees", HD_ROTATE_DEGREES, 1, 1e-3, 180, { 0 }, false },
	{ HD_TRANSFORM_ROTATE, "fill", HD_ROTATE_FILL, 1, -1e6, 1e6, { 0 }, false },
	{ HD_TRANSFORM_ROTATE, "bilinear", HD_ROTATE_BILINEAR, 1, 0, 1, { 0 }, true },
	{ HD_TRANSFORM_ERASING, "p", HD_ERASE_P, 1, 1e-6, 1, { 0.5 }, false },
	{ HD_TRANSFORM_ERASING, "scale", HD_ERASE_SCALE, 2, 1e-6, 1, { 0.02, 0.33 }, false },
	{ HD_TRANSFORM_ERASING, "ratio", HD_ERASE_RATIO, 2, 0.01, 100, { 0.3, 3.3 }, false },
	{ HD_TRANSFORM_ERASING, "value", HD_ERASE_VALUE, 1, -1e6, 1e6, { 0 }, false },
	{ HD_TRANSFORM_COLOR_JITTER, "brightness", HD_JITTER_BRIGHTNESS, 1, 0, 10, { 0 }, false },
	{ HD_TRANSFORM_COLOR_JITTER, "contrast", HD_JITTER_CONTRAST, 1, 0, 10, { 0 }, false },
	{ HD_TRANSFORM_COLOR_JITTER, "saturation", HD_JITTER_SATURATION, 1, 0, 10, { 0 }, false },
	{ HD_TRANSFORM_COLOR_JITTER, "hue", HD_JITTER_HUE, 1, 0, 0.5, { 0 }, false },
	{ MIX + HD_MIX_MIXUP, "alpha", 0, 1, 0.01, 100, { 1 }, false },
	{ MIX + HD_MIX_CUTMIX, "alpha", 0, 1, 0.01, 100, { 1 }, false },
};
enum { NNAMED = sizeof named / sizeof *named };

/* What a number without a name is; NULL: nothing. */
static const char *first_name(uint32_t transform)
{
	for (const struct named_param *p = named; p < named + NNAMED; p++)
		if (p->transform == transform)
			return p->n == 1 ? p->name : NULL;
	return NULL;
}

static enum hd_err take_param(struct hd_augment_step *step, const struct hd_augment_call *call,
	const struct hd_augment_param *param, struct hd_diag *diag)
{
	const char *name = param->name ? param->name : first_name(step->kind);
	struct hd_near near = hd_near_to(name ? name : "");
	const struct named_param *p = named;

	for (; p < named + NNAMED && (p->transform != step->kind || !name || strcmp(p->name, name) != 0); p++)
		if (p->transform == step->kind)
			hd_near_offer(&near, p->name);
	if (p == named + NNAMED)
		return hd_fail(diag, HD_E_INVAL, "%s has no parameter %.40s%s%s%s", call->name, name ? name :
			"without a name", near.best ? "; did you mean " : "", near.best ? near.best : "",
				near.best ? "?" :
			"");
	bool fits = param->n == p->n && (p->n == 1 || param->at[0] <= param->at[1]);
	for (uint32_t i = 0; i < param->n && fits; i++)
		fits = param->at[i] >= p->low && param->at[i] <= p->high &&
			(!p->whole || param->at[i] == (double)(int64_t)param->at[i]);
	if (!fits)
		return hd_fail(diag, HD_E_INVAL, p->n == 2 ?
			"%s: %s takes two numbers from %g to %g, the smaller first" : p->whole ?
			"%s: %s takes %g or %g" :
			"%s: %s takes a number from %g to %g", call->name, p->name, p->low, p->high);
	for (uint32_t i = 0; i < p->n; i++)
		step->number[p->at + i] = param->at[i];
	return HD_OK;
}

static enum hd_err check_jitter(const struct hd_augment_step *step, const struct hd_augment_call *call,
	const struct hd_field *x, struct hd_diag *diag)
{
	const bool coloured = step->number[HD_JITTER_SATURATION] > 0 || step->number[HD_JITTER_HUE] > 0;

	if (coloured && x->dim[0] != 3)
		return hd_fail(diag, HD_E_INVAL,
			"%s: saturation and hue are of three channels, red, green and blue; the model takes "
			"%lld: leave them out", call->name, (long long)x->dim[0]);
	if (x->dim[0] != 1 && x->dim[0] != 3)
		return hd_fail(diag, HD_E_INVAL, "%s takes images of one channel or three, the model takes "
			"%lld", call->name, (long long)x->dim[0]);
	if (!coloured && !(step->number[HD_JITTER_BRIGHTNESS] > 0) && !(step->number[HD_JITTER_CONTRAST] > 0))
		return hd_fail(diag, HD_E_INVAL,
			"%s changes nothing: give it brightness, contrast, saturation or hue, as "
			"{color_jitter: {brightness: 0.4, hue: 0.1}}", call->name);
	return HD_OK;
}

static enum hd_err take_named(struct hd_augment_step *step, const struct hd_augment_call *call,
	const struct hd_field *x, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (step->kind < MIX && (x->dim[1] > HD_AUGMENT_SIDE || x->dim[2] > HD_AUGMENT_SIDE))
		return hd_fail(diag, HD_E_INVAL, "%s takes images of at most %d pixels a side", call->name,
			HD_AUGMENT_SIDE);
	for (const struct named_param *p = named; p < named + NNAMED; p++)
		for (uint32_t i = 0; i < p->n && p->transform == step->kind; i++)
			step->number[p->at + i] = p->standard[i];
	for (uint32_t i = 0; i < call->nparams && !err; i++)
		err = take_param(step, call, &call->param[i], diag);
	for (const struct named_param *p = named; p < named + NNAMED && !err; p++)
		if (p->transform == step->kind && step->number[p->at] < p->low)
			err = hd_fail(diag, HD_E_INVAL, "%s takes %s, as {%s: {%s: 15}}", call->name, p->name,
				call->name, p->name);
	return err ? err : step->kind == HD_TRANSFORM_COLOR_JITTER ? check_jitter(step, call, x, diag) :
		HD_OK;
}

static enum hd_err (*const takes[])(struct hd_augment_step *step, const struct hd_augment_call *call,
	const struct hd_field *x,
	struct hd_diag *diag) = { [NONE] = take_none, [PIXELS] = take_pixels, [SHARE] = take_share,
	[MOMENTS] = take_moments, [NAMED] = take_named };

static enum hd_err find(const char *name, uint32_t *kind, struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(name);

	for (*kind = 0; *kind < HD_NTRANSFORMS; ++*kind) {
		if (strcmp(rows[*kind].name, name) == 0)
			return HD_OK;
		hd_near_offer(&near, rows[*kind].name);
	}
	for (uint32_t m = 0; m < HD_NMIXES; m++, ++*kind) {
		if (strcmp(mixes[m], name) == 0)
			return HD_OK;
		hd_near_offer(&near, mixes[m]);
	}
	return hd_fail(diag, HD_E_INVAL, "there is no transform %.40s%s%s%s; known: "
#define X(id, name, params, always, about) #name " "
		HD_TRANSFORMS(X)
#undef X
#define X(id, name, about) #name " "
		HD_MIXES(X)
#undef X
		, name, near.best ? "; did you mean " : "", near.best ? near.best : "", near.best ? "?" : "");
}

/* step->kind: of a mix, behind those of the transforms. */
static enum hd_err add_mix(struct hd_augment *augment, struct hd_augment_step *step,
	const struct hd_augment_call *call, const struct hd_field *x, struct hd_diag *diag)
{
	enum hd_err err = take_named(step, call, x, diag);

	step->kind -= MIX;
	if (!err && step->kind == HD_MIX_CUTMIX && x->rank != 3)
		err = hd_fail(diag, HD_E_INVAL,
			"%s needs images of [channels, height, width], the model takes %u extents",
			call->name, x->rank);
	for (uint32_t i = 0; i < augment->nmixes && !err; i++)
		if (augment->mix[i].kind == step->kind)
			err = hd_fail(diag, HD_E_INVAL, "%s stands there twice", call->name);
	if (!err)
		augment->mix[augment->nmixes++] = *step;
	return err;
}

/* Jitter cuts at 0 and 1. */
static bool is_normalized(const struct hd_augment *augment)
{
	for (uint32_t i = 0; i < augment->nsteps; i++)
		if (augment->step[i].kind == HD_TRANSFORM_NORMALIZE)
			return true;
	return false;
}

enum hd_err hd_augment_add(struct hd_augment *augment, const struct hd_augment_call *call,
	const struct hd_field *x, struct hd_diag *diag)
{
	struct hd_augment_step step = { 0 };
	enum hd_err err = find(call->name, &step.kind, diag);

	if (err)
		return err;
	if (augment->nsteps == HD_AUGMENT_STEPS)
		return hd_fail(diag, HD_E_INVAL, "more than %d transforms", HD_AUGMENT_STEPS);
	if (x->dtype != HD_F32)
		return hd_fail(diag, HD_E_INVAL, "%s transforms numbers, the samples are %s", call->name,
			hd_dtype_text((enum hd_dtype)x->dtype));
	if (step.kind >= MIX)
		return add_mix(augment, &step, call, x, diag);
	if (augment->nmixes)
		return hd_fail(diag, HD_E_INVAL, "%s: mixup and cutmix come last, behind all others",
			call->name);
	if (step.kind == HD_TRANSFORM_COLOR_JITTER && is_normalized(augment))
		return hd_fail(diag, HD_E_INVAL,
			"%s takes numbers from 0 to 1: it comes before normalize", call->name);
	if (moves_pixels(step.kind) && x->rank != 3)
		return hd_fail(diag, HD_E_INVAL,
			"%s needs images of [channels, height, width], the model takes %u extents",
			call->name, x->rank);
	if (step.kind == HD_TRANSFORM_RESIZED_CROP && augment->nsteps)
		return hd_fail(diag, HD_E_INVAL,
			"%s takes its part from the image as it is stored: it comes first",
			call->name);
	err = takes[rows[step.kind].params](&step, call, x, diag);
	if (!err)
		augment->step[augment->nsteps++] = step;
	return err;
}

struct shot hd_augment_shot(const struct hd_augment_draw *draw, uint32_t place)
{
	return (struct shot){ .key = hd_philox_key(draw->augment->seed, HD_RNG_AUGMENT),
		.counter = { 0, place, (uint32_t)draw->index, (uint32_t)(draw->index >> 32 & 0xfff) |
			(uint32_t)draw->epoch << 12 },
		.part_taken = draw->augment->part_taken };
}

uint64_t hd_augment_scratch(const struct hd_augment *augment, const struct hd_field *field)
{
	for (uint32_t i = 0; augment && i < augment->nsteps; i++)
		if (augment->step[i].kind == HD_TRANSFORM_ROTATE)
			return (uint64_t)field->dim[1] * (uint64_t)field->dim[2];
	return 0;
}

void hd_augment_apply(const struct hd_augment *augment, const struct hd_field *field, uint64_t index,
	uint64_t epoch, float *x, float *scratch)
{
	const struct hd_augment_draw draw = { augment, index, epoch };

	for (uint32_t i = 0; i < augment->nsteps; i++) {
		const struct augment_row *row = &rows[augment->step[i].kind];
		struct shot shot = hd_augment_shot(&draw, i);
		shot.x = x;
		shot.scratch = scratch;
		shot.n = field->sample_bytes / sizeof *x;
		if (field->rank == 3) {
			shot.channels = field->dim[0];
			shot.height = field->dim[1];
			shot.width = field->dim[2];
		}
		if (!row->always && epoch == HD_NO_EPOCH)
			continue;
		if (!row->always)
			hd_shot_words(&shot, 0, shot.word);
		row->apply(&shot, &augment->step[i]);
	}
}

enum hd_err hd_dataset_read_many(const struct hd_dataset *set, uint32_t split, const struct hd_ask *ask,
	uint32_t n, bool ahead, struct hd_diag *diag)
{
	enum hd_err err = set->read_many ? set->read_many(set, split, ask, n, ahead, diag) : HD_OK;

	for (uint32_t i = 0; i < n && !err; i++) {
		if (!set->read_many)
			err = set->ops->read(set, split, ask[i].index, ask[i].out, diag);
		if (!err && set->augment)
			hd_augment_apply(set->augment, &set->field[0], ask[i].index, ask[i].epoch,
				ask[i].out[0], ask[i].scratch);
		if (!err)
			err = hd_named_make(set, ask[i].index, ask[i].out, diag);
	}
	return err;
}

enum hd_err hd_dataset_read(const struct hd_dataset *set, uint32_t split, uint64_t index, uint64_t epoch,
	void *const *out, struct hd_diag *diag)
{
	struct hd_ask ask = { .index = index, .epoch = epoch };
	const uint64_t scratch = epoch == HD_NO_EPOCH ? 0 : hd_augment_scratch(set->augment, &set->field[0]);

	if (scratch && !(ask.scratch = hd_alloc(scratch * sizeof *ask.scratch)))
		return hd_fail(diag, HD_E_NOMEM, "no memory to transform a sample");
	memcpy(ask.out, out, set->nfields * sizeof *out);
	enum hd_err err = hd_dataset_read_many(set, split, &ask, 1, false, diag);
	hd_free(ask.scratch);
	return err;
}
