/* augment_int.h -- a sample under a transform, and what the files of transforms share. Private to
 * augment*.c. */
#ifndef HD_DATA_AUGMENT_INT_H
#define HD_DATA_AUGMENT_INT_H

#include "data/augment.h"

enum { HD_AUGMENT_SIDE = 4096 };                  /* extents of what is resized or turned in place */

/* A sample and what its transform may draw: `word` is its draw 0, hd_shot_words() gives further ones. */
struct shot {
	float *x;
	int64_t channels, height, width; uint64_t n;
	uint32_t word[4];
	uint64_t key; uint32_t counter[4];
	bool part_taken;
	float *scratch;                   /* [height, width], where hd_augment_scratch() asks for it */
};

/* Without the sample: what its transform at a place of the list draws. */
struct shot hd_augment_shot(const struct hd_augment_draw *draw, uint32_t place);
void hd_shot_words(const struct shot *shot, uint32_t draw, uint32_t word[4]);
/* Even in [0, n): a bias of n / 2^32 at most. */
static inline int64_t hd_shot_pick(uint32_t word, int64_t n)
{
	return (int64_t)((uint64_t)word * (uint64_t)n >> 32);
}
/* The end of numbers of named parameters, in the table of augment.c. */
enum { HD_ROTATE_DEGREES, HD_ROTATE_FILL, HD_ROTATE_BILINEAR };
enum { HD_ERASE_SCALE, HD_ERASE_RATIO = 2, HD_ERASE_P = 4, HD_ERASE_VALUE };
enum { HD_JITTER_BRIGHTNESS, HD_JITTER_CONTRAST, HD_JITTER_SATURATION, HD_JITTER_HUE, HD_JITTERS };

/* augment_box.c */
/* A box of a part of the area and of a drawn ratio of its sides, somewhere in the image; ten tries.
 * number: least and largest part, least and largest ratio. false: none of them fits. */
bool hd_augment_box(const struct shot *shot, uint32_t first_draw, const double number[4], int64_t height,
	int64_t width, struct hd_augment_part *box);
/* low * (high / low)^u, so that the logarithm is even. The same bits on every machine. */
double hd_augment_between(double low, double high, uint32_t word);
void hd_augment_resized_crop(const struct shot *shot, const struct hd_augment_step *step);

/* augment_turn.c. The second of each: with what was drawn. */
void hd_augment_rotate(const struct shot *shot, const struct hd_augment_step *step);
void hd_turn(const struct shot *shot, double degrees, float fill, bool bilinear);
void hd_augment_erasing(const struct shot *shot, const struct hd_augment_step *step);
void hd_erase(const struct shot *shot, const struct hd_augment_part *box, float value);

/* augment_colour.c. by[k]: the factor of k, of hue the turn; order: which comes when. */
void hd_augment_color_jitter(const struct shot *shot, const struct hd_augment_step *step);
void hd_jitter(const struct shot *shot, const double by[HD_JITTERS], const uint8_t order[HD_JITTERS]);

#endif
