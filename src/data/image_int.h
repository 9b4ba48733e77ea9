/* image_int.h -- what image.h asks of the file of each library. Private to image*.c.
 *
 * look: width, height, channels. decode: pixel[height][width][image->channels]. Both HD_E_INPUT. */
#ifndef HD_DATA_IMAGE_INT_H
#define HD_DATA_IMAGE_INT_H

#include "data/image.h"

enum hd_err hd_jpeg_look(const uint8_t *bytes, size_t len, const char *name, struct hd_image *image,
	struct hd_diag *diag);
enum hd_err hd_jpeg_decode(const uint8_t *bytes, size_t len, const char *name, const struct hd_image *image,
	uint8_t *pixel, struct hd_diag *diag);
enum hd_err hd_png_look(const uint8_t *bytes, size_t len, const char *name, struct hd_image *image,
	struct hd_diag *diag);
enum hd_err hd_png_decode(const uint8_t *bytes, size_t len, const char *name, const struct hd_image *image,
	uint8_t *pixel, struct hd_diag *diag);

#endif
