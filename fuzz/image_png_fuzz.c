/* A file that is accepted fills its pixels, and twice with the same ones. The checks of its chunks are made
 * right
 * first: behind wrong ones nothing would be seen. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/pack.h"
#include "data/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { PIXELS = 1 << 16, HEAD = 8, AROUND = 12 };

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void mend_checks(uint8_t *bytes, size_t len)
{
	for (size_t at = HEAD; at + AROUND <= len;) {
		const size_t n = be32(bytes + at);
		if (n > len - at - AROUND)
			return;
		const uint32_t crc = hd_crc32(bytes + at + 4, n + 4);
		for (int i = 0; i < 4; i++)
			bytes[at + 8 + n + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
		at += n + AROUND;
	}
}

static void decode(const uint8_t *bytes, size_t len)
{
	struct hd_image image;

	if (hd_image_look(bytes, len, "input", &image, NULL) || (uint64_t)image.width * image.height > PIXELS)
		return;
	const size_t n = hd_image_bytes(&image);
	uint8_t *one = hd_alloc(n), *other = hd_alloc(n);
	memset(one, 1, n);
	memset(other, 2, n);
	const enum hd_err err = hd_image_decode(bytes, len, "input", &image, 3, one, NULL);
	if (hd_image_decode(bytes, len, "input", &image, 3, other, NULL) != err || (!err && memcmp(one,
		other, n) != 0))
		abort();
	hd_free(one);
	hd_free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = hd_alloc(len + 1);

	memcpy(copy, bytes, len);
	mend_checks(copy, len);
	decode(copy, len);
	hd_free(copy);
	return 0;
}
