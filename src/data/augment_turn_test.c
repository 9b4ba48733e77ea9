/* Rotation, erasing and colours against Pillow and torchvision (tests/data/augment.txt, by bench/augment.py).
 * */
#include "data/augment_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "tests/check.h"

enum { MOST = 4 * 16 * 16 };

static FILE *open_cases(void)
{
	const char *source = getenv("SOURCE_DIR");
	char path[512];

	snprintf(path, sizeof path, "%s/tests/data/augment.txt", source ? source : ".");
	FILE *file = fopen(path, "r");
	CHECK(file, "%s is not there", path);
	return file;
}

static void fill(float *x, int n, int seed, float by)
{
	for (int i = 0; i < n; i++)
		x[i] = (float)((i * 37 + seed * 11) % 256) / by;
}

static void a_turned_image_has_the_pixels_of_pillow(void **state)
{
	FILE *file = open_cases();
	char text[1 << 14];
	int ncases = 0, other = 0, n = 0;

	(void)state;
	while (fgets(text, sizeof text, file)) {
		int seed, height, width, bilinear, fill_with;
		double degrees;
		float x[MOST], scratch[MOST];
		if (sscanf(text, "rotate %d %d %d %lf %d %d", &seed, &height, &width, &degrees, &bilinear,
			&fill_with) != 6)
			continue;
		fill(x, height * width, seed, 1);
		struct shot shot = { .x = x, .channels = 1, .height = height, .width = width,
			.n = (uint64_t)(height * width), .scratch = scratch };
		hd_turn(&shot, degrees, (float)fill_with, bilinear);
		for (int i = 0; i < height * width; i++) {
			int want;
			assert_int_equal(fscanf(file, "%d", &want), 1);
			/* of four pixels Pillow cuts to a whole number */
			CHECK(bilinear ? fabsf(x[i] - (float)want) <= 1 : x[i] == (float)want,
				"%g degrees, pixel %d: %g, not %d", degrees, i, (double)x[i], want);
			other += bilinear && floorf(x[i]) != (float)want;
			n++;
		}
		ncases++;
	}
	fclose(file);
	CHECK(ncases == 14 && other <= n / 100, "%d cases, %d pixels in the next count", ncases, other);
}

static void changed_colours_are_those_of_torchvision(void **state)
{
	FILE *file = open_cases();
	char text[1 << 14];
	int ncases = 0;

	(void)state;
	while (fgets(text, sizeof text, file)) {
		int seed, channels, height, width, at[HD_JITTERS];
		double by[HD_JITTERS];
		uint8_t order[HD_JITTERS];
		float x[MOST];
		if (sscanf(text, "jitter %d %d %d %d %lf %lf %lf %lf %d %d %d %d", &seed, &channels, &height,
			&width, by, by + 1, by + 2, by + 3, at, at + 1, at + 2, at + 3) != 12)
			continue;
		const int n = channels * height * width;
		for (int k = 0; k < HD_JITTERS; k++)
			order[k] = (uint8_t)at[k];
		fill(x, n, seed, 255);
		struct shot shot = { .x = x, .channels = channels, .height = height, .width = width,
			.n = (uint64_t)n };
		hd_jitter(&shot, by, order);
		for (int i = 0; i < n; i++) {
			double want;
			assert_int_equal(fscanf(file, "%lf", &want), 1);
			/* a mean in f64 against one in f32; hue multiplies by 6 */
			CHECK(fabs((double)x[i] - want) < 0x1p-20, "case %d, number %d: %.9g, not %.9g",
				ncases, i, (double)x[i], want);
		}
		ncases++;
	}
	fclose(file);
	assert_int_equal(ncases, 8);
}

static struct hd_augment made(const char *name, const struct hd_augment_param *param, uint32_t n,
	const struct hd_field *x)
{
	struct hd_augment augment = { .seed = 3 };
	struct hd_diag diag = { "" };

	CHECK(hd_augment_add(&augment, &(struct hd_augment_call){ name, param, n }, x, &diag) == HD_OK, "%s",
		diag.text);
	return augment;
}

static struct hd_philox drawn(uint32_t draw, uint64_t index, uint64_t epoch)
{
	const uint32_t counter[4] = { draw, 0, (uint32_t)index, (uint32_t)epoch << 12 };

	return hd_philox(counter, hd_philox_key(3, HD_RNG_AUGMENT));
}

static double share(uint32_t word) { return (double)(word >> 8) / 16777216; }

/* Boxes of torchvision's get_params, in words of their own; one side may not be filled. */
static void what_is_erased_is_a_box_of_its_range(void **state)
{
	enum { SIDE_Y = 20, SIDE_X = 14, N = 2 * SIDE_Y * SIDE_X, ROUNDS = 3000 };
	static const struct hd_field field = { .name = "x", .dtype = HD_F32, .rank = 3,
		.dim = { 2, SIDE_Y, SIDE_X }, .sample_bytes = N * sizeof(float) };
	static const double value = 9, p = 0.75;
	const struct hd_augment_param param[] = { { "value", &value, 1 }, { "p", &p, 1 } };
	const struct hd_augment augment = made("erasing", param, 2, &field);
	int erased = 0;

	(void)state;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		float x[N];
		int top = SIDE_Y, left = SIDE_X, bottom = -1, right = -1, n = 0;
		memset(x, 0, sizeof x);
		hd_augment_apply(&augment, &field, i, 1, x, NULL);
		for (int k = 0; k < N; k++) {
			const int r = k / SIDE_X % SIDE_Y, c = k % SIDE_X;
			if (x[k] != 9)
				continue;
			n++;
			top = r < top ? r : top;
			bottom = r > bottom ? r : bottom;
			left = c < left ? c : left;
			right = c > right ? c : right;
		}
		bool wanted = share(drawn(0, i, 1).word[0]) < p;
		int h = 0, w = 0, t = 0;
		for (; wanted && t < 10; t++) {
			const struct hd_philox d = drawn((uint32_t)t + 1, i, 1);
			const double area = SIDE_Y * SIDE_X * (0.02 + 0.31 * share(d.word[0])),
				ratio = exp(log(0.3) + log(11) * share(d.word[1]));
			h = (int)round(sqrt(area * ratio));
			w = (int)round(sqrt(area / ratio));
			if (h < SIDE_Y && w < SIDE_X && h && w)
				break;
		}
		wanted = wanted && t < 10;
		CHECK(wanted ? n == 2 * h * w && bottom - top + 1 == h && right - left + 1 == w : n == 0,
			"sample %d: %d numbers", (int)i, n);
		erased += n > 0;
	}
	CHECK(erased > ROUNDS * 0.7 && erased < ROUNDS * 0.78, "%d of %d", erased, ROUNDS);
}

/* Angles and factors are even in their ranges, and every order comes. */
static void draws_are_even_in_their_ranges(void **state)
{
	static const struct hd_field grey = { .name = "x", .dtype = HD_F32, .rank = 3, .dim = { 1, 3, 3 },
		.sample_bytes = 9 * sizeof(float) };
	static const double thirty = 30, much = 0.5;
	const struct hd_augment_param angle = { NULL, &thirty, 1 }, two[] = { { "brightness", &much, 1 },
		{ "contrast", &much, 1 } };
	const struct hd_augment turn = made("rotate", &angle, 1, &grey), jitter = made("color_jitter", two, 2,
		&grey), bright = made("color_jitter", two, 1, &grey);
	double sum = 0, squares = 0;
	int moved = 0, first = 0;

	(void)state;
	for (uint64_t i = 0; i < 4000; i++) {
		float x[9] = { 0.5f, 0, 0, 0, 0, 0, 0, 0, 0 }, scratch[9], one[9] = { 0.5f }, pair[9] = {
			0.5f, 0.1f };
		hd_augment_apply(&turn, &grey, i, 0, x, scratch);
		moved += x[0] != 0.5f;                   /* beyond 19.47 degrees: asin(1/2) - asin(1/6) ... */
		hd_augment_apply(&bright, &grey, i, 0, one, NULL);
		sum += (double)one[0] / 0.5;
		squares += pow((double)one[0] / 0.5 - 1, 2);
		const double b = 0.5 + share(drawn(0, i, 0).word[0]), c = 0.5 + share(drawn(0, i, 0).word[1]);
		hd_augment_apply(&jitter, &grey, i, 0, pair, NULL);
		/* brightness before contrast, or behind it: both are linear where nothing is cut */
		const double mean = 0.6 / 9, before = (0.1 * b) * c + mean * b * (1 - c);
		const double behind = (0.1 * c + mean * (1 - c)) * b;
		CHECK(fabs((double)pair[1] - before) < 1e-6 || fabs((double)pair[1] - behind) < 1e-6 ||
			pair[0] >= 1, "sample %d: %.9g", (int)i, (double)pair[1]);
		first += drawn(1, i, 0).word[0] < 0x40000000u;
	}
	CHECK(fabs(sum / 4000 - 1) < 0.023 && fabs(squares / 4000 - 1.0 / 12) < 0.006, "%g, %g", sum / 4000,
		squares / 4000);
	CHECK(moved > 500 && moved < 3500 && abs(first - 1000) < 140, "%d turned, %d first", moved, first);
}

/* It says of a sample that it is not finite, and reads nothing outside. */
static void a_hue_of_no_number_stays_none(void **state)
{
	static const uint8_t order[HD_JITTERS] = { HD_JITTER_HUE, HD_JITTER_BRIGHTNESS, HD_JITTER_CONTRAST,
		HD_JITTER_SATURATION };
	static const double by[HD_JITTERS] = { [HD_JITTER_BRIGHTNESS] = 1, [HD_JITTER_CONTRAST] = 1,
		[HD_JITTER_SATURATION] = 1, [HD_JITTER_HUE] = 0.2 };

	(void)state;
	for (int mask = 1; mask < 8; mask++)
		for (int high = 0; high < 3; high++) {
			float x[3];
			for (int c = 0; c < 3; c++)
				x[c] = mask >> c & 1 ? NAN : c == high ? 0.75f : 0.25f;
			struct shot shot = { .x = x, .channels = 3, .height = 1, .width = 1, .n = 3 };
			hd_jitter(&shot, by, order);
			CHECK(isnan(x[0]) || isnan(x[1]) || isnan(x[2]), "mask %d: %g %g %g", mask,
				(double)x[0], (double)x[1], (double)x[2]);
		}
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const struct hd_field grey = { .dtype = HD_F32, .rank = 3, .dim = { 1, 8, 8 } },
		two = { .dtype = HD_F32, .rank = 3, .dim = { 2, 8, 8 } },
		colour = { .dtype = HD_F32, .rank = 3, .dim = { 3, 8, 8 } },
		flat = { .dtype = HD_F32, .rank = 1, .dim = { 64 } };
	static const double zero = 0, half = 0.5, much = 200, pair[2] = { 0.5, 0.2 };
	const struct hd_augment_param hue = { "hue", &half, 1 }, none = { "hue", &zero, 1 }, far = { "hue",
		&much, 1 },
		angle = { NULL, &much, 1 }, back = { "scale", pair, 2 }, odd[] = { { "degrees", &half, 1 },
		{ "bilinear", &half, 1 } }, alpha = { NULL, &zero, 1 }, fine = { NULL, &half, 1 },
		light = { "brightness", &half, 1 }, name = { "lambda", &half, 1 };
	const struct { struct hd_augment_call call; const struct hd_field *x; const char *says; } cases[] = {
		{ { "rotate", NULL, 0 }, &grey, "rotate takes degrees, as {rotate: {degrees: 15}}" },
		{ { "rotate", &angle, 1 }, &grey, "rotate: degrees takes a number from 0.001 to 180" },
		{ { "rotate", odd, 2 }, &grey, "rotate: bilinear takes 0 or 1" }, { { "rotate", odd, 1 }, &flat, "rotate needs images" },
		{ { "color_jitter", &hue, 1 }, &grey, "are of three channels" }, { { "color_jitter", &light, 1 }, &two, "one channel or three" },
		{ { "color_jitter", NULL, 0 }, &colour, "color_jitter changes nothing" }, { { "color_jitter", &none, 1 }, &colour, "color_jitter changes nothing" },
		{ { "color_jitter", &far, 1 }, &colour, "color_jitter: hue takes a number from 0 to 0.5" },
		{ { "erasing", &back, 1 }, &grey, "erasing: scale takes two numbers from 1e-06 to 1, the smaller first" },
		{ { "mixup", &alpha, 1 }, &grey, "mixup: alpha takes a number from 0.01 to 100" }, { { "mixup", &name, 1 }, &grey, "mixup has no parameter lambda" },
		{ { "cutmix", &fine, 1 }, &flat, "cutmix needs images" }, { { "cutmx", NULL, 0 }, &grey, "did you mean cutmix?" },
	};
	struct hd_augment augment = { .seed = 1 };
	static const double mean = 0.5;
	const struct hd_augment_param moments[] = { { "mean", &mean, 1 }, { "std", &mean, 1 } };
	struct hd_diag diag = { "" };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag why = { "" };
		assert_int_equal(hd_augment_add(&augment, &cases[i].call, cases[i].x, &why), HD_E_INVAL);
		CHECK(strstr(why.text, cases[i].says) && augment.nsteps + augment.nmixes == 0,
			"case %zu: %s", i,
			why.text);
	}
	assert_int_equal(hd_augment_add(&augment, &(struct hd_augment_call){ "normalize", moments, 2 },
		&colour, &diag), HD_OK);
	assert_int_equal(hd_augment_add(&augment, &(struct hd_augment_call){ "color_jitter", &light, 1 },
		&colour, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "it comes before normalize"), "%s", diag.text);
	*diag.text = '\0';
	assert_int_equal(hd_augment_add(&augment, &(struct hd_augment_call){ "mixup", &fine, 1 }, &colour,
		&diag), HD_OK);
	assert_int_equal(hd_augment_add(&augment, &(struct hd_augment_call){ "mixup", &fine, 1 }, &colour,
		&diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "mixup stands there twice"), "%s", diag.text);
	*diag.text = '\0';
	assert_int_equal(hd_augment_add(&augment, &(struct hd_augment_call){ "flip", NULL, 0 }, &colour,
		&diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "come last"), "%s", diag.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turned_image_has_the_pixels_of_pillow),
		cmocka_unit_test(changed_colours_are_those_of_torchvision),
		cmocka_unit_test(what_is_erased_is_a_box_of_its_range),
		cmocka_unit_test(draws_are_even_in_their_ranges),
		cmocka_unit_test(a_hue_of_no_number_stays_none),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
