#include "data/image_int.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

enum { HEAD = 8 + 8 + 13, INFLATES = 1032 };      /* the most that deflate makes of a byte */

/* As for JPEG: the library leaves by longjmp. */
struct png_call {
	png_structp lib;
	png_infop info;
	jmp_buf out;
	char why[160];
	const uint8_t *at, *end;
	const struct hd_image *image;
	uint8_t *pixel;
};

static __attribute__((noreturn)) void leave(png_structp lib, png_const_charp why)
{
	struct png_call *c = png_get_error_ptr(lib);

	(void)snprintf(c->why, sizeof c->why, "%s", why);
	longjmp(c->out, 1);
}

static void be_quiet(png_structp lib, png_const_charp why)
{
	(void)lib;
	(void)why;
}

static void take(png_structp lib, png_bytep into, size_t len)
{
	struct png_call *c = png_get_io_ptr(lib);

	if (len > (size_t)(c->end - c->at))
		png_error(lib, "it is cut off");
	memcpy(into, c->at, len);
	c->at += len;
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The head stands at a fixed place; the library looks at it again, with its check. */
enum hd_err hd_png_look(const uint8_t *bytes, size_t len, const char *name, struct hd_image *image,
	struct hd_diag *diag)
{
	static const uint8_t samples[7] = { 1, 0, 3, 1, 2, 0, 4 };        /* of a pixel, by colour type */

	if (len < HEAD || memcmp(bytes + 12, "IHDR", 4) != 0 || be32(bytes + 8) != 13)
		return hd_fail(diag, HD_E_INPUT, "%s is no PNG that can be read: it has no head", name);
	const uint32_t width = be32(bytes + 16), height = be32(bytes + 20), depth = bytes[24],
		colour = bytes[25];
	if (colour > 6 || !samples[colour] || !depth || depth > 16 || !width || !height ||
		width > INT32_MAX || height > INT32_MAX)
		return hd_fail(diag, HD_E_INPUT,
			"%s is no PNG that can be read: its head says %u x %u pixels of "
			"type %u with %u bits", name, width, height, colour, depth);
	const uint64_t bits = (uint64_t)width * samples[colour] * depth, rows = (bits + 7) / 8;
	if (height > len * INFLATES / rows)
		return hd_fail(diag, HD_E_INPUT,
			"%s says %u x %u pixels, which its %zu bytes cannot hold: it is "
			"damaged, or made to fill memory", name, width, height, len);
	image->width = width;
	image->height = height;
	image->channels = colour == PNG_COLOR_TYPE_GRAY || colour == PNG_COLOR_TYPE_GRAY_ALPHA ? 1 : 3;
	return HD_OK;
}

static void begin(struct png_call *c)
{
	c->info = png_create_info_struct(c->lib);
	if (!c->info)
		png_error(c->lib, "no memory");
	png_set_read_fn(c->lib, c, take);
	png_set_user_limits(c->lib, c->image->width, c->image->height);
	png_set_keep_unknown_chunks(c->lib, PNG_HANDLE_CHUNK_NEVER, NULL, -1);     /* nor profiles and texts
		*/
	png_read_info(c->lib, c->info);
	if (png_get_image_width(c->lib, c->info) != c->image->width ||
		png_get_image_height(c->lib, c->info) != c->image->height)
		png_error(c->lib, "it has two heads");
}

static void decode(struct png_call *c)
{
	begin(c);
	png_set_expand(c->lib);
	png_set_strip_16(c->lib);
	png_set_strip_alpha(c->lib);
	const int passes = png_set_interlace_handling(c->lib);
	png_read_update_info(c->lib, c->info);
	const size_t row = (size_t)c->image->width * c->image->channels;
	if (png_get_rowbytes(c->lib, c->info) != row)
		png_error(c->lib, "its rows have another length than its head says");
	for (int pass = 0; pass < passes; pass++)
		for (uint32_t y = 0; y < c->image->height; y++)
			png_read_row(c->lib, c->pixel + y * row, NULL);
	png_read_end(c->lib, NULL);
}

enum hd_err hd_png_decode(const uint8_t *bytes, size_t len, const char *name, const struct hd_image *image,
	uint8_t *pixel, struct hd_diag *diag)
{
	struct png_call c = { .at = bytes, .end = bytes + len, .image = image, .pixel = pixel };

	c.lib = png_create_read_struct(PNG_LIBPNG_VER_STRING, &c, leave, be_quiet);
	if (!c.lib)
		return hd_fail(diag, HD_E_NOMEM, "no memory to decode %s", name);
	if (!setjmp(c.out))
		decode(&c);
	png_destroy_read_struct(&c.lib, &c.info, NULL);
	return !c.why[0] ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s is no PNG that can be read: %s", name,
		c.why);
}
