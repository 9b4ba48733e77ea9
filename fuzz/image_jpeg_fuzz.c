/* A file that is accepted fills its pixels, and twice with the same ones. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { PIXELS = 1 << 16 };                        /* larger ones only take longer */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_image image;

	if (hd_image_look(bytes, len, "input", &image, NULL))
		return 0;
	if (!image.width || !image.height || (image.channels != 1 && image.channels != 3))
		abort();
	if ((uint64_t)image.width * image.height > PIXELS)
		return 0;
	const size_t n = hd_image_bytes(&image);
	uint8_t *one = hd_alloc(n), *other = hd_alloc(n);
	memset(one, 1, n);
	memset(other, 2, n);
	const enum hd_err err = hd_image_decode(bytes, len, "input", &image, 3, one, NULL);
	if (hd_image_decode(bytes, len, "input", &image, 3, other, NULL) != err || (!err && memcmp(one,
		other, n) != 0))
		abort();
	if (!err && hd_image_decode(bytes, len, "input", &image, 1, one, NULL))
		abort();
	hd_free(one);
	hd_free(other);
	return 0;
}
