#include "data/image_int.h"

#include <assert.h>
#include <string.h>

static const struct image_format {
	const char *name;
	uint8_t magic[8]; size_t nmagic;
	enum hd_err (*look)(const uint8_t *bytes, size_t len, const char *name, struct hd_image *image,
		struct hd_diag *diag);
	enum hd_err (*decode)(const uint8_t *bytes, size_t len, const char *name,
		const struct hd_image *image, uint8_t *pixel, struct hd_diag *diag);
} formats[] = {
	{ "JPEG", { 0xff, 0xd8, 0xff }, 3, hd_jpeg_look, hd_jpeg_decode },
	{ "PNG", { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' }, 8, hd_png_look, hd_png_decode },
};
enum { NFORMATS = sizeof formats / sizeof *formats };

static const struct image_format *format_of(const uint8_t *bytes, size_t len)
{
	for (const struct image_format *f = formats; f < formats + NFORMATS; f++)
		if (len >= f->nmagic && !memcmp(bytes, f->magic, f->nmagic))
			return f;
	return NULL;
}

enum hd_err hd_image_look(const uint8_t *bytes, size_t len, const char *name, struct hd_image *image,
	struct hd_diag *diag)
{
	const struct image_format *f = format_of(bytes, len);
	struct hd_image got = { 0 };

	if (!f)
		return hd_fail(diag, HD_E_INPUT,
			"%s begins neither as JPEG nor as PNG, whatever it is called: "
			"convert it, or leave it out", name);
	got.format = f->name;
	enum hd_err err = f->look(bytes, len, name, &got, diag);
	if (err)
		return err;
	if ((uint64_t)got.width * got.height > HD_IMAGE_PIXELS)
		return hd_fail(diag, HD_E_INPUT,
			"%s has %u x %u pixels, above the limit of %d: make it smaller",
			name, got.width, got.height, HD_IMAGE_PIXELS);
	assert(got.width && got.height && (got.channels == 1 || got.channels == 3));
	*image = got;
	return HD_OK;
}

static void to_grey(uint8_t *pixel, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pixel[i] = (uint8_t)((19595u * pixel[3 * i] + 38470u * pixel[3 * i + 1] +
			7471u * pixel[3 * i + 2] + 0x8000) >> 16);
}

/* From the end: each goes where nothing is that is still to be read. */
static void to_colours(uint8_t *pixel, size_t n)
{
	for (size_t i = n; i-- > 0;)
		pixel[3 * i] = pixel[3 * i + 1] = pixel[3 * i + 2] = pixel[i];
}

enum hd_err hd_image_decode(const uint8_t *bytes, size_t len, const char *name, const struct hd_image *image,
	uint32_t channels, uint8_t *pixel, struct hd_diag *diag)
{
	const struct image_format *f = format_of(bytes, len);
	const size_t n = (size_t)image->width * image->height;

	assert(f && (channels == 1 || channels == 3));
	enum hd_err err = f->decode(bytes, len, name, image, pixel, diag);
	if (!err && channels < image->channels)
		to_grey(pixel, n);
	if (!err && channels > image->channels)
		to_colours(pixel, n);
	return err;
}
