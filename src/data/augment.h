/* augment.h -- what is done to the numbers of a sample between its file and the model: a
 * list of transforms in the order of the job (data.augment).
 *
 * A job gives each by name and numbers; `engine` adds them one by one and hangs the list on
 * the data set; hd_dataset_read() applies it to "x". A transform is a row of
 * HD_TRANSFORMS below; adding one touches that table and augment.c.
 *
 * 1. Randomness is Philox, domain augment (base/philox.h): draw 0, op = place in the list,
 *    sample index in its split, data epoch of the row; further draws are 1, 2, ... So a sample looks the
 *    same whatever virtual node, device or thread reads it, and after any restart.
 * 2. In place, or by way of memory of the caller; nothing is allocated. One rounding per operation, in the
 *    order that the table says; sums in the order of lanes.h.
 * 3. Training rows get all of the list, rows of other splits and of evaluations only what
 *    is no matter of chance (`always`).
 *
 * 4. What mixes samples of a step (mix.h) comes last. It takes rows of training alone.
 *
 * 5. resized_crop comes first. A set whose samples are images of any size (`takes_part`) draws its part from
 *    the image as it is stored, and brings that to the model's extents; of others the part is one of "x".
 *
 * "x" has the extents [channels, height, width] where a transform moves pixels.
 *
 * Ownership: a list is a plain value; texts and numbers given are borrowed for the call.
 * Threads: applying is pure. */
#ifndef HD_DATA_AUGMENT_H
#define HD_DATA_AUGMENT_H

#include "data/dataset.h"

enum { HD_AUGMENT_STEPS = 16,             /* transforms of a job */
       HD_AUGMENT_CHANNELS = 16,          /* that normalize takes one by one */
       HD_AUGMENT_NUMBERS = 6,
       HD_AUGMENT_MIXES = 2 };          /* of a transform whose parameters have defaults */

/* One number or list of numbers of a transform: {crop: 4} has one without a name, {normalize: {mean:
 * [0.5], std: [0.25]}} two. */
struct hd_augment_param { const char *name; const double *at; uint32_t n; };
struct hd_augment_call { const char *name; const struct hd_augment_param *param; uint32_t nparams; };

struct hd_augment_step { uint32_t kind; float value; uint32_t nchannels; float mean[HD_AUGMENT_CHANNELS],
	std[HD_AUGMENT_CHANNELS]; double number[HD_AUGMENT_NUMBERS]; };

struct hd_augment {
	uint64_t seed;
	bool part_taken;                  /* 5: the reader does resized_crop */
	uint32_t nsteps;
	struct hd_augment_step step[HD_AUGMENT_STEPS];
	uint32_t nmixes; struct hd_augment_step mix[HD_AUGMENT_MIXES];    /* kind: an hd_mix */
};

/*        id          name        parameters  always  what it does */
#define HD_TRANSFORMS(X) \
	X(RESIZED_CROP, resized_crop, NAMED, false, "a part of the image, of an area in scale [0.08, 1] and a ratio of its sides in ratio [3/4, 4/3], brought to the model's size (RandomResizedCrop)") \
	X(FLIP,       flip,       NONE,    false, "left becomes right, for every second sample")                            \
	X(CROP,       crop,       PIXELS,  false, "N pixels of zeros around, then a place of the old size at random")       \
	X(SHIFT,      shift,      PIXELS,  false, "moved by up to N pixels each way; the border is repeated")               \
	X(CUTOUT,     cutout,     PIXELS,  false, "a square of N pixels, its centre anywhere, becomes zero (DeVries, Taylor 2017)") \
	X(ROTATE,     rotate,     NAMED,   false, "about the middle by an angle in [-degrees, degrees); what comes from outside is fill; the nearest pixel, or with bilinear: 1 between four (RandomRotation)") \
	X(ERASING,    erasing,    NAMED,   false, "with the chance p a box of an area in scale and a ratio of height to width in ratio becomes value (RandomErasing)") \
	X(COLOR_JITTER, color_jitter, NAMED, false, "brightness, contrast, saturation by a factor in [1-N, 1+N], hue by up to N of a turn, in a drawn order, of images in [0, 1] (ColorJitter)") \
	X(BRIGHTNESS, brightness, SHARE,   false, "times a factor in [1-N, 1+N)")                                           \
	X(CONTRAST,   contrast,   SHARE,   false, "distance from the sample's mean times a factor in [1-N, 1+N)")           \
	X(NORMALIZE,  normalize,  MOMENTS, true,  "(x - mean) / std, one of each or one per channel")

/* What makes one sample of two, by mix.h. A job with both takes one of them in each step. */
#define HD_MIXES(X) \
	X(MIXUP,  mixup,  "share * a sample + (1 - share) * the one before it in the step, labels alike, the share of a step from Beta(alpha, alpha) (Zhang et al. 2018)") \
	X(CUTMIX, cutmix, "a box of the sample before it in the step is put in, labels in the shares of the areas, from Beta(alpha, alpha) (Yun et al. 2019)")

enum hd_mix {
#define X(id, name, about) HD_MIX_##id,
	HD_MIXES(X)
#undef X
	HD_NMIXES
};

enum hd_transform {
#define X(id, name, params, always, about) HD_TRANSFORM_##id,
	HD_TRANSFORMS(X)
#undef X
	HD_NTRANSFORMS
};

/* Appends one transform for samples like `x`. HD_E_INVAL says what is wrong, without a place. */
HD_MUST_USE enum hd_err hd_augment_add(struct hd_augment *augment, const struct hd_augment_call *call,
	const struct hd_field *x,
	struct hd_diag *diag);

/* Of whose draws, for readers that take parts (5). */
struct hd_augment_draw { const struct hd_augment *augment; uint64_t index, epoch; };
struct hd_augment_part { uint32_t top, left, height, width; };
/* Does the list begin with resized_crop, and is this a row of training? */
bool hd_augment_takes_part(const struct hd_augment_draw *draw);
/* Inside an image of these extents. */
void hd_augment_part(const struct hd_augment_draw *draw, uint32_t height, uint32_t width,
	struct hd_augment_part *part);

/* Numbers that transforms of a row of training need as working memory; 0: none. */
uint64_t hd_augment_scratch(const struct hd_augment *augment, const struct hd_field *field);
/* Transforms the numbers `x` of one sample. For tests. */
void hd_augment_apply(const struct hd_augment *augment, const struct hd_field *field, uint64_t index,
	uint64_t epoch, float *x, float *scratch);

/* Sample `index` of a split as the model sees it: read, then transformed by set->augment; not mixed with
 * another. Takes memory where transforms need some. */
HD_MUST_USE enum hd_err hd_dataset_read(const struct hd_dataset *set, uint32_t split, uint64_t index,
	uint64_t epoch, void *const *out,
	struct hd_diag *diag);
/* Several; asks of training have hd_augment_scratch() each. `ahead`: rows of coming steps (dataset.h). */
HD_MUST_USE enum hd_err hd_dataset_read_many(const struct hd_dataset *set, uint32_t split,
	const struct hd_ask *ask, uint32_t n, bool ahead, struct hd_diag *diag);

#endif
