/* image_view.h -- from the bytes of an image file to the numbers of a sample: decoded, brought to the model's
 * extents, planes of f32 in [0, 1].
 *
 * 1. What torchvision makes of a PIL image by Resize(size), CenterCrop((H, W)) and ToTensor(), bit for bit:
 *    the shorter side becomes `size`, the longer one size * longer / shorter, cut to a whole number; the
 *    middle of it is taken, halves rounded to even. With `stretch` by Resize((H, W)) and ToTensor().
 * 2. Where data.augment begins with resized_crop, and the row is one of training, by RandomResizedCrop with
 *    the part that augment.h draws: of the image as it is stored, not of one that was made small before.
 *
 * Memory is taken for a call, and given back: an image's extents are known when it is read. Threads: any. */
#ifndef HD_DATA_IMAGE_VIEW_H
#define HD_DATA_IMAGE_VIEW_H

#include "data/augment.h"
#include "data/image.h"

struct hd_image_view {
	uint32_t channels, height, width;        /* of the model */
	uint32_t size;                            /* of the shorter side; 0: stretched */
	float scaled[256];                        /* byte / 255, rounded once */
};

/* HD_E_INVAL: the model takes no images, or others. */
HD_MUST_USE enum hd_err hd_image_view_make(struct hd_image_view *view, const struct hd_data_spec *spec,
	struct hd_diag *diag);
static inline size_t hd_image_view_bytes(const struct hd_image_view *view)
{
	return (size_t)view->channels * view->height * view->width;
}
/* HD_E_INPUT: so long and narrow that its longer side would not be counted in 31 bits. */
HD_MUST_USE enum hd_err hd_image_view_fits(const struct hd_image_view *view, const struct hd_image *image,
	const char *name, struct hd_diag *diag);
/* pixel[height][width][channels]. `part`: 2; NULL: 1. */
HD_MUST_USE enum hd_err hd_image_view_pixels(const struct hd_image_view *view, const uint8_t *bytes, size_t
	len,
	const char *name, const struct hd_augment_draw *part, uint8_t *pixel, struct hd_diag *diag);
void hd_image_view_numbers(const struct hd_image_view *view, const uint8_t *pixel, float *x);
/* Both, straight to the numbers. */
HD_MUST_USE enum hd_err hd_image_view_read(const struct hd_image_view *view, const uint8_t *bytes, size_t len,
	const char *name, const struct hd_augment_draw *part, float *x, struct hd_diag *diag);

#endif
