/* image.h -- a JPEG or PNG file as rows of bytes: the one door behind which libjpeg-turbo and libpng stand.
 *
 * 1. What comes out is what Pillow's `Image.open(f).convert("RGB")` (or "L") has, byte for byte, but for what
 *    4 says: planes in the order R, G, B, rows from the top, pixel by pixel. The same bytes in give the same
 *    bytes out, with the library's vector instructions or without them (the slow integer transform).
 * 2. Grey is repeated three times where colours are wanted; colours become grey as ITU-R 601 weighs them:
 *    (19595 R + 38470 G + 7471 B + 2^15) >> 16. Alpha and transparent colours are left out, the pixel
 *    stays as it is stored; palettes are looked up; 1, 2 and 4 bits are spread to 8.
 *    CMYK (and YCCK) is taken as Adobe writes it, inverted: R = (255 - k') - c' (255 - k') / 255, ...
 * 3. Left alone: the orientation of EXIF (the pixels stay as they are stored), colour profiles, gamma.
 * 4. Of 16 bits the upper 8 count. (Pillow cuts grey ones at 255, which leaves white; of colours it takes the
 *    upper 8 as well.)
 * 5. Refused, each by name: another format, an image of more than HD_IMAGE_PIXELS, one that says more pixels
 *    than its bytes can hold (PNG), arithmetic coding, lossless JPEG, more than HD_IMAGE_SCANS scans, two or
 *    more than four components, what is cut off, what is damaged as far as checks and codes show it.
 *
 * Memory: the pixels are the caller's; the libraries take theirs for a call, for progressive files 6 bytes a
 * pixel, and give it back. Threads: any. */
#ifndef HD_DATA_IMAGE_H
#define HD_DATA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_IMAGE_PIXELS = 1 << 26,        /* 8192 x 8192: more is no photograph but a map, or a bomb */
       HD_IMAGE_SCANS = 100 };           /* of a progressive JPEG; encoders write 6 to 14 */

struct hd_image {
	uint32_t width, height;
	/* in the file: 1 grey, 3 colours */
	uint32_t channels;
	/* of the file, for messages: "JPEG", "PNG" */
	const char *format;
};

/* Reads the head. HD_E_INPUT: 5; `name` is said in messages. */
HD_MUST_USE enum hd_err hd_image_look(const uint8_t *bytes, size_t len, const char *name,
	struct hd_image *image, struct hd_diag *diag);
/* What hd_image_decode() writes to: width * height * 3, whatever is wanted of it. */
static inline size_t hd_image_bytes(const struct hd_image *image)
{
	return (size_t)image->width * image->height * 3;
}
/* pixel[height][width][channels], 1 or 3 of them. `image`: of hd_image_look() with these bytes. */
HD_MUST_USE enum hd_err hd_image_decode(const uint8_t *bytes, size_t len, const char *name,
	const struct hd_image *image, uint32_t channels, uint8_t *pixel, struct hd_diag *diag);

#endif
