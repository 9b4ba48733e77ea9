#include "data/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/pack.h"
#include "sys/file.h"
#include "data/resample.h"
#include "tests/check.h"

enum { MOST = 64 * 64 * 3, COLUMNS = 13, ROWS = 9 };

struct picture { struct hd_arena arena; uint8_t *bytes; size_t len; struct hd_image image; uint8_t
	pixel[MOST]; };

static void read_file(struct picture *p, const char *name)
{
	const char *source = getenv("SOURCE_DIR");
	char path[512];
	struct hd_fs fs;
	struct hd_diag diag = { "" };

	hd_fs_real(&fs);
	hd_arena_init(&p->arena, 0);
	snprintf(path, sizeof path, "%s/tests/data/images/%s", source ? source : ".", name);
	CHECK(hd_file_read_all(&fs, path, &p->arena, 1 << 20, &p->bytes, &p->len, &diag) == HD_OK, "%s",
		diag.text);
}

static void decode(struct picture *p, const char *name, uint32_t channels)
{
	struct hd_diag diag = { "" };

	CHECK(hd_image_look(p->bytes, p->len, name, &p->image, &diag) == HD_OK, "%s", diag.text);
	assert_true(hd_image_bytes(&p->image) <= MOST);
	CHECK(hd_image_decode(p->bytes, p->len, name, &p->image, channels, p->pixel, &diag) == HD_OK, "%s",
		diag.text);
}

static void resample(const struct picture *p, uint32_t channels, const struct hd_resample *to, uint8_t *out)
{
	const struct hd_pixels in = { p->pixel, (size_t)p->image.width * channels, p->image.width,
		p->image.height, channels };
	void *room = hd_alloc(hd_resample_bytes(&in, to));

	assert_non_null(room);
	hd_resample(&in, to, room, out);
	hd_free(room);
}

/* One line of the cases that bench/images.py has written of Pillow. */
static void check_case(const char *name, uint32_t width, uint32_t height, const uint32_t crc[3])
{
	static const struct hd_resample to = { COLUMNS, ROWS, 0, 0, ROWS, COLUMNS };
	uint8_t small[ROWS * COLUMNS * 3];
	struct picture p;

	read_file(&p, name);
	decode(&p, name, 1);
	CHECK(p.image.width == width && p.image.height == height, "%s: %u x %u", name, p.image.width,
		p.image.height);
	CHECK(hd_crc32(p.pixel, (size_t)width * height) == crc[1], "%s in grey", name);
	decode(&p, name, 3);
	CHECK(hd_crc32(p.pixel, (size_t)width * height * 3) == crc[0], "%s in colours", name);
	resample(&p, 3, &to, small);
	CHECK(hd_crc32(small, sizeof small) == crc[2], "%s of another size", name);
	hd_arena_finish(&p.arena);
}

static void each_file_has_the_pixels_that_pillow_has(void **state)
{
	struct picture cases;
	uint32_t n = 0;

	(void)state;
	read_file(&cases, "cases.txt");
	for (const char *line = (const char *)cases.bytes; *line; line = strchr(line, '\n') + 1) {
		char name[40];
		uint32_t width, height, crc[3];
		if (*line == '#')
			continue;
		assert_int_equal(sscanf(line, "%39s %" SCNu32 " %" SCNu32 " %" SCNx32 " %" SCNx32 " %"
			SCNx32, name,
			&width, &height, &crc[0], &crc[1], &crc[2]), 6);
		check_case(name, width, height, crc);
		n++;
	}
	assert_int_equal(n, 16);
	hd_arena_finish(&cases.arena);
}

static const char *const some[] = { "grey.jpg", "s420.jpg", "progressive.jpg", "cmyk.jpg", "rgba.png",
	"adam7.png",
	"palette4.png", "grey16.png" };
enum { NSOME = sizeof some / sizeof *some };

static enum hd_err try(const uint8_t *bytes, size_t len, struct picture *p, struct hd_diag *diag)
{
	enum hd_err err = hd_image_look(bytes, len, "a/b.jpg", &p->image, diag);

	return err ? err : hd_image_bytes(&p->image) > MOST ? HD_E_NOSPACE :
		hd_image_decode(bytes, len, "a/b.jpg", &p->image, 3, p->pixel, diag);
}

/* In memory of its own, so that a read behind its end is seen. */
static void a_file_cut_off_at_any_byte_is_refused(void **state)
{
	(void)state;
	for (int k = 0; k < NSOME; k++) {
		struct picture p;
		read_file(&p, some[k]);
		for (size_t len = 0; len < p.len; len++) {
			struct hd_diag diag = { "" };
			uint8_t *copy = hd_alloc(len + 1);
			assert_non_null(copy);
			memcpy(copy, p.bytes, len);
			CHECK(try(copy, len, &p, &diag) == HD_E_INPUT && !strncmp(diag.text, "a/b.jpg ", 8),
				"%s cut at %zu of %zu: %s", some[k], len, p.len, diag.text);
			hd_free(copy);
		}
		hd_arena_finish(&p.arena);
	}
}

static void other_bytes_and_bombs_are_refused_by_name(void **state)
{
	static const uint8_t bomb[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H',
		'D', 'R',
		0, 0, 0x20, 0, 0, 0, 0x20, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0 };
	struct hd_diag diag = { "" };
	struct picture p;

	(void)state;
	assert_int_equal(try((const uint8_t *)"GIF89a.........", 15, &p, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "neither as JPEG nor as PNG"), "%s", diag.text);
	diag.text[0] = '\0';
	assert_int_equal(try(bomb, sizeof bomb, &p, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "8192 x 8192 pixels, which its 33 bytes cannot hold"), "%s", diag.text);

	read_file(&p, "s420.jpg");                    /* its frame says 35 x 21: now 65500 x 65500 */
	uint8_t *frame = p.bytes;
	while (frame < p.bytes + p.len - 9 && memcmp(frame, "\xff\xc0\0\x11\x08", 5) != 0)
		frame++;
	for (int i = 5; i < 9; i += 2) {
		frame[i] = 0xff;
		frame[i + 1] = 0xdc;
	}
	diag.text[0] = '\0';
	assert_int_equal(try(p.bytes, p.len, &p, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "65500 x 65500 pixels, above the limit of 67108864"), "%s", diag.text);
	frame[1] = 0xc9;                              /* arithmetic coding */
	diag.text[0] = '\0';
	assert_int_equal(try(p.bytes, p.len, &p, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "coded arithmetically"), "%s", diag.text);
	hd_arena_finish(&p.arena);
}

/* Pixels stay as they are stored, whatever EXIF says of turning them. */
static void an_orientation_turns_nothing(void **state)
{
	static const uint8_t turned[] = { 0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0,
		0, 8,
		0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0 };
	struct picture p, q;

	(void)state;
	read_file(&p, "s444.jpg");
	decode(&p, "s444.jpg", 3);
	q = p;
	q.bytes = hd_alloc(p.len + sizeof turned);
	q.len = p.len + sizeof turned;
	assert_non_null(q.bytes);
	memcpy(q.bytes, p.bytes, 2);
	memcpy(q.bytes + 2, turned, sizeof turned);
	memcpy(q.bytes + 2 + sizeof turned, p.bytes + 2, p.len - 2);
	decode(&q, "turned", 3);
	assert_int_equal(q.image.width, 24);
	assert_memory_equal(p.pixel, q.pixel, hd_image_bytes(&p.image));
	hd_free(q.bytes);
	hd_arena_finish(&p.arena);
}

static void a_window_of_a_result_has_the_pixels_of_the_whole(void **state)
{
	static const uint32_t sizes[][2] = { { 5, 3 }, { 40, 27 }, { 41, 90 }, { 1, 1 }, { 80, 4 } };
	struct picture p;

	(void)state;
	read_file(&p, "progressive.jpg");
	decode(&p, "progressive.jpg", 3);
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		const uint32_t w = sizes[k][0], h = sizes[k][1];
		uint8_t whole[80 * 90 * 3], part[80 * 90 * 3];
		resample(&p, 3, &(struct hd_resample){ w, h, 0, 0, h, w }, whole);
		for (uint32_t top = 0; top < h; top += 2)
			for (uint32_t left = 0; left < w; left += 7) {
				const struct hd_resample to = { w, h, top, left, (h - top + 1) / 2, (w - left
					+ 1) / 2 };
				resample(&p, 3, &to, part);
				for (uint32_t y = 0; y < to.rows; y++)
					assert_memory_equal(part + y * to.columns * 3,
						whole + ((top + y) * w + left) * 3, to.columns * 3);
			}
		if (w == p.image.width && h == p.image.height)
			assert_memory_equal(whole, p.pixel, hd_image_bytes(&p.image));
	}
	hd_arena_finish(&p.arena);
}

/* Once with the vector instructions that libjpeg-turbo finds, once without any. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_file_has_the_pixels_that_pillow_has),
		cmocka_unit_test(a_file_cut_off_at_any_byte_is_refused),
		cmocka_unit_test(other_bytes_and_bombs_are_refused_by_name),
		cmocka_unit_test(an_orientation_turns_nothing),
		cmocka_unit_test(a_window_of_a_result_has_the_pixels_of_the_whole),
	};
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	(void)argc;
	if (failed || getenv("JSIMD_FORCENONE"))
		return failed;
	assert_int_equal(setenv("JSIMD_FORCENONE", "1", 1), 0);
	return execv("/proc/self/exe", argv);
}
