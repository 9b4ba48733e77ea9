#include "data/image_int.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

/* The library calls back on an error and expects no return: what it is in the middle of is left by longjmp,
 * to the function that began it. Whatever that function needs afterwards lies here, where it is not in
 * registers. */
struct jpeg_call {
	struct jpeg_decompress_struct lib;
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf out;
	char why[JMSG_LENGTH_MAX];
	const uint8_t *bytes; size_t len;
	struct hd_image *image;                   /* of look; else NULL */
	uint8_t *pixel;
};

static __attribute__((noreturn)) void leave(j_common_ptr lib)
{
	struct jpeg_call *c = lib->client_data;

	lib->err->format_message(lib, c->why);
	longjmp(c->out, 1);
}

/* What is no mere remark: pixels would be made up in place of bytes that are missing or wrong. */
static bool is_damage(int code)
{
	static const int damage[] = { JWRN_JPEG_EOF, JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_MUST_RESYNC,
		JWRN_BOGUS_PROGRESSION, JWRN_NOT_SEQUENTIAL };

	for (size_t i = 0; i < sizeof damage / sizeof *damage; i++)
		if (code == damage[i])
			return true;
	return false;
}

static void hear(j_common_ptr lib, int level)
{
	if (level < 0 && is_damage(lib->err->msg_code))
		leave(lib);
}

static void be_quiet(j_common_ptr lib) { (void)lib; }

static __attribute__((noreturn)) void refuse(struct jpeg_call *c, const char *why)
{
	(void)snprintf(c->why, sizeof c->why, "%s", why);
	longjmp(c->out, 1);
}

static void look_at_scans(j_common_ptr lib)
{
	struct jpeg_call *c = lib->client_data;

	if (c->lib.input_scan_number > HD_IMAGE_SCANS)
		refuse(c, "it has more scans than any encoder writes");
}

static void begin(struct jpeg_call *c)
{
	jpeg_create_decompress(&c->lib);
	c->lib.progress = &c->progress;
	c->progress.progress_monitor = look_at_scans;
	jpeg_mem_src(&c->lib, c->bytes, (unsigned long)c->len);
	(void)jpeg_read_header(&c->lib, TRUE);
	if (c->lib.arith_code)
		refuse(c, "it is coded arithmetically: save it with Huffman codes");
	if (c->lib.data_precision != 8)
		refuse(c, "its samples have not 8 bits");
	if (c->lib.num_components != 1 && c->lib.num_components != 3 && c->lib.num_components != 4)
		refuse(c, "it has neither 1 nor 3 nor 4 components");
}

static void look(struct jpeg_call *c)
{
	begin(c);
	c->image->width = c->lib.image_width;
	c->image->height = c->lib.image_height;
	c->image->channels = c->lib.num_components == 1 ? 1 : 3;
}

/* a * b / 255, rounded. */
static uint32_t part_of(uint32_t a, uint32_t b)
{
	const uint32_t t = a * b + 128;

	return ((t >> 8) + t) >> 8;
}

/* Adobe's inks are stored inverted: 255 is none. */
static void from_inks(const uint8_t *ink, uint8_t *pixel, uint32_t width)
{
	for (uint32_t i = 0; i < width; i++, ink += 4)
		for (int k = 0; k < 3; k++)
			*pixel++ = (uint8_t)(ink[3] - part_of(255u - ink[k], ink[3]));
}

static void decode(struct jpeg_call *c)
{
	begin(c);
	c->lib.dct_method = JDCT_ISLOW;                  /* the one whose vector form has the same bits */
	c->lib.do_fancy_upsampling = TRUE;
	c->lib.out_color_space = c->lib.num_components == 1 ? JCS_GRAYSCALE : c->lib.num_components == 3 ?
		JCS_RGB : JCS_CMYK;
	(void)jpeg_start_decompress(&c->lib);
	const uint32_t width = c->lib.output_width;
	const size_t row = (size_t)width * (c->lib.num_components == 1 ? 1 : 3);
	JSAMPARRAY inks = c->lib.num_components == 4 ? c->lib.mem->alloc_sarray((j_common_ptr)&c->lib,
		JPOOL_IMAGE, 4 * width, 1) : NULL;
	while (c->lib.output_scanline < c->lib.output_height) {
		uint8_t *at = c->pixel + c->lib.output_scanline * row;
		(void)jpeg_read_scanlines(&c->lib, inks ? inks : &at, 1);
		if (inks)
			from_inks(inks[0], at, width);
	}
	(void)jpeg_finish_decompress(&c->lib);
}

/* `act`, and back; c->why is "" where it came to its end. */
static void call(struct jpeg_call *c, void (*act)(struct jpeg_call *))
{
	c->lib.err = jpeg_std_error(&c->errors);
	c->lib.client_data = c;
	c->errors.error_exit = leave;
	c->errors.emit_message = hear;
	c->errors.output_message = be_quiet;
	if (!setjmp(c->out))
		act(c);
	jpeg_destroy_decompress(&c->lib);
}

static enum hd_err end(const struct jpeg_call *c, const char *name, struct hd_diag *diag)
{
	return !c->why[0] ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s is no JPEG that can be read: %s", name,
		c->why);
}

enum hd_err hd_jpeg_look(const uint8_t *bytes, size_t len, const char *name, struct hd_image *image,
	struct hd_diag *diag)
{
	struct jpeg_call c = { .bytes = bytes, .len = len, .image = image };

	call(&c, look);
	return end(&c, name, diag);
}

enum hd_err hd_jpeg_decode(const uint8_t *bytes, size_t len, const char *name, const struct hd_image *image,
	uint8_t *pixel, struct hd_diag *diag)
{
	struct jpeg_call c = { .bytes = bytes, .len = len, .pixel = pixel };

	(void)image;
	call(&c, decode);
	return end(&c, name, diag);
}
