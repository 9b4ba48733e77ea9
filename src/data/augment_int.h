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
};

/* Without the sample: what its transform at a place of the list draws. */
struct shot hd_augment_shot(const struct hd_augment_draw *draw, uint32_t place);
void hd_shot_words(const struct shot *shot, uint32_t draw, uint32_t word[4]);
/* Even in [0, n): a bias of n / 2^32 at most. */
static inline int64_t hd_shot_pick(uint32_t word, int64_t n)
{
	return (int64_t)((uint64_t)word * (uint64_t)n >> 32);
}

/* augment_box.c */
/* A box of a part of the area and of a drawn ratio of its sides, somewhere in the image; ten tries.
 * number: least and largest part, least and largest ratio. false: none of them fits. */
bool hd_augment_box(const struct shot *shot, uint32_t first_draw, const double number[4], int64_t height,
	int64_t width, struct hd_augment_part *box);
void hd_augment_resized_crop(const struct shot *shot, const struct hd_augment_step *step);

#endif
