#include "data/augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "data/prefetch.h"
#include "tests/check.h"

enum { C = 2, H = 5, W = 7, N = C * H * W };

static const struct hd_field field = { .name = "x", .dtype = HD_F32, .rank = 3, .dim = { C, H, W },
	.sample_bytes = N * sizeof(float) };

static void fill(float x[N], uint32_t seed)
{
	for (uint32_t i = 0; i < N; i++)
		x[i] = (float)((i * 37 + seed * 11) % 101 + 1) / 8;
}

static struct hd_augment one_of(const char *name, const double *numbers, uint32_t n)
{
	const struct hd_augment_param param = { NULL, numbers, n };
	struct hd_augment augment = { .seed = 9 };
	struct hd_diag diag = { "" };

	CHECK(hd_augment_add(&augment, &(struct hd_augment_call){ name, &param, n > 0 }, &field,
		&diag) == HD_OK, "%s", diag.text);
	return augment;
}

/* The draw as base/philox.h writes it down, for a transform by its place in the list. */
static struct hd_philox drawn_at(uint32_t place, uint64_t seed, uint64_t index, uint64_t epoch)
{
	const uint32_t counter[4] = { 0, place, (uint32_t)index,
		(uint32_t)(index >> 32 & 0xfff) | (uint32_t)(epoch << 12) };
	return hd_philox(counter, hd_philox_key(seed, HD_RNG_AUGMENT));
}

static struct hd_philox drawn(uint64_t seed, uint64_t index,
	uint64_t epoch) { return drawn_at(0, seed, index, epoch); }

static int64_t whole(uint32_t word, int64_t n) { return (int64_t)floor((double)word / 4294967296.0 *
	(double)n); }
static float share(uint32_t word) { return (float)(word >> 8) / 16777216.0f; }

/* What each transform makes of pixel (c, y, x), straight from its sentence. */
static float oracle(uint32_t kind, double v, const float *in, struct hd_philox d, int64_t c, int64_t y,
	int64_t x)
{
	int64_t n = (int64_t)v, dy = whole(d.word[0], 2 * n + 1) - n, dx = whole(d.word[1], 2 * n + 1) - n;
	double mean = 0;

	switch (kind) {
	case HD_TRANSFORM_FLIP:
		return in[(c * H + y) * W + (d.word[0] < 0x80000000u ? W - 1 - x : x)];
	case HD_TRANSFORM_CROP:
		return y + dy < 0 || y + dy >= H || x + dx < 0 ||
			x + dx >= W ? 0 : in[(c * H + y + dy) * W + x + dx];
	case HD_TRANSFORM_SHIFT:
		y = y + dy < 0 ? 0 : y + dy >= H ? H - 1 : y + dy;
		x = x + dx < 0 ? 0 : x + dx >= W ? W - 1 : x + dx;
		return in[(c * H + y) * W + x];
	case HD_TRANSFORM_CUTOUT: {
		int64_t top = whole(d.word[0], H) - n / 2, left = whole(d.word[1], W) - n / 2;
		return y >= top && y < top + n && x >= left && x < left + n ? 0 : in[(c * H + y) * W + x];
	}
	case HD_TRANSFORM_BRIGHTNESS:
		return in[(c * H + y) * W + x] * (1 + (float)v * (2 * share(d.word[0]) - 1));
	default:
		for (int i = 0; i < N; i++)
			mean += (double)in[i] / N;
		return (float)(mean + ((double)in[(c * H + y) * W + x] - mean) *
			(double)(1 + (float)v * (2 * share(d.word[0]) - 1)));
	}
}

static void each_transform_is_what_its_sentence_says(void **state)
{
	static const struct { const char *name; uint32_t kind; double v; } cases[] = {
		{ "flip", HD_TRANSFORM_FLIP, 0 }, { "crop", HD_TRANSFORM_CROP, 1 }, { "crop", HD_TRANSFORM_CROP, 4 }, { "shift", HD_TRANSFORM_SHIFT, 1 },
		{ "shift", HD_TRANSFORM_SHIFT, 4 }, { "cutout", HD_TRANSFORM_CUTOUT, 1 }, { "cutout", HD_TRANSFORM_CUTOUT, 2 },
		{ "cutout", HD_TRANSFORM_CUTOUT, 5 }, { "brightness", HD_TRANSFORM_BRIGHTNESS, 0.5 }, { "contrast", HD_TRANSFORM_CONTRAST, 1 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		const struct hd_augment augment = one_of(cases[k].name, &cases[k].v, cases[k].v > 0);
		for (uint64_t index = 0; index < 200; index++) {
			uint64_t id = index % 3 ? index : index + (UINT64_C(5) << 32), epoch = index / 7;
			float in[N], out[N];
			fill(in, (uint32_t)index);
			memcpy(out, in, sizeof in);
			hd_augment_apply(&augment, &field, id, epoch, out, NULL);
			for (int i = 0; i < N; i++) {
				float want = oracle(cases[k].kind, cases[k].v, in, drawn(9, id, epoch),
					i / (H * W), i / W % H, i % W);
				CHECK(cases[k].kind == HD_TRANSFORM_CONTRAST ?
					fabsf(out[i] - want) < 0x1p-18f : out[i] == want,
					"%s %g, sample %d, pixel %d: %.9g, not %.9g", cases[k].name,
					cases[k].v, (int)index, i, (double)out[i], (double)want);
			}
		}
	}
}

static void a_list_is_applied_in_order_each_with_a_draw_of_its_own(void **state)
{
	static const struct { const char *name; uint32_t kind; double v; } list[] = {
		{ "crop", HD_TRANSFORM_CROP, 2 }, { "flip", HD_TRANSFORM_FLIP, 0 }, { "crop", HD_TRANSFORM_CROP, 2 },
	};
	struct hd_augment augment = { .seed = 9 };

	(void)state;
	for (size_t k = 0; k < 3; k++)
		augment.step[augment.nsteps++] = one_of(list[k].name, &list[k].v, list[k].v > 0).step[0];
	for (uint64_t index = 0; index < 100; index++) {
		float want[N], got[N], before[N];
		fill(want, (uint32_t)index);
		memcpy(got, want, sizeof got);
		for (uint32_t k = 0; k < 3; k++) {
			memcpy(before, want, sizeof before);
			for (int i = 0; i < N; i++)
				want[i] = oracle(list[k].kind, list[k].v, before, drawn_at(k, 9, index, 4),
					i / (H * W), i / W % H, i % W);
		}
		hd_augment_apply(&augment, &field, index, 4, got, NULL);
		CHECK(memcmp(got, want, sizeof got) == 0, "sample %d", (int)index);
	}
}

static void normalize_takes_each_channel_and_every_row(void **state)
{
	static const double mean[] = { 1.5, -2 }, std[] = { 0.5, 4 };
	const struct hd_augment_param param[] = { { "mean", mean, 2 }, { "std", std, 2 } };
	struct hd_augment augment = { .seed = 1 };
	struct hd_diag diag = { "" };
	float in[N], out[N];

	(void)state;
	CHECK(hd_augment_add(&augment, &(struct hd_augment_call){ "normalize", param, 2 }, &field,
		&diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_augment_add(&augment, &(struct hd_augment_call){ "flip", NULL, 0 }, &field,
		&diag), HD_OK);
	fill(in, 3);
	memcpy(out, in, sizeof in);
	hd_augment_apply(&augment, &field, 7, HD_NO_EPOCH, out, NULL);
	for (int i = 0; i < N; i++)
		CHECK(out[i] == (in[i] - (float)mean[i / (H * W)]) / (float)std[i / (H * W)], "pixel %d", i);
}

/* Its own words of torchvision's sentence: an area of the image, the logarithm of a ratio, ten tries. */
static bool box_of(uint64_t index, uint64_t epoch, int64_t height, int64_t width, double box[4])
{
	for (uint32_t try = 0; try < 10; try++) {
		const uint32_t counter[4] = { try, 0, (uint32_t)index, (uint32_t)(index >> 32 & 0xfff) |
			(uint32_t)(epoch << 12) };
		const struct hd_philox d = hd_philox(counter, hd_philox_key(9, HD_RNG_AUGMENT));
		const double area = (double)(height * width) * (0.08 + 0.92 * (double)share(d.word[0]));
		const double ratio = exp(log(0.75) + log(16.0 / 9) * (double)share(d.word[1]));
		const double w = round(sqrt(area * ratio)), h = round(sqrt(area / ratio));
		if (w < 1 || h < 1 || w > (double)width || h > (double)height)
			continue;
		box[0] = (double)whole(d.word[2], height - (int64_t)h + 1);
		box[1] = (double)whole(d.word[3], width - (int64_t)w + 1);
		box[2] = h;
		box[3] = w;
		return true;
	}
	return false;
}

static double mix(double at, int64_t n, double *share_of_next, int64_t *first)
{
	at = at < 0 ? 0 : at;
	*first = (int64_t)at;
	*share_of_next = *first + 1 < n ? at - (double)*first : 0;
	return at;
}

static void a_resized_crop_is_between_the_pixels_of_its_part(void **state)
{
	const struct hd_augment augment = one_of("resized_crop", NULL, 0);

	(void)state;
	for (uint64_t index = 0; index < 300; index++) {
		float in[N], out[N];
		double box[4], fy, fx;
		int64_t y0, x0;
		fill(in, (uint32_t)index);
		memcpy(out, in, sizeof in);
		hd_augment_apply(&augment, &field, index, index / 5, out, NULL);
		if (!box_of(index, index / 5, H, W, box))
			continue;
		for (int i = 0; i < N; i++) {
			const float *plane = in + i / (H * W) * H * W;
			mix((i / W % H + 0.5) * box[2] / H - 0.5, (int64_t)box[2], &fy, &y0);
			mix((i % W + 0.5) * box[3] / W - 0.5, (int64_t)box[3], &fx, &x0);
			const float *at = plane + (y0 + (int64_t)box[0]) * W + x0 + (int64_t)box[1];
			const double above = (double)at[0] + fx * (double)(at[fx > 0] - at[0]);
			const float *low = at + (fy > 0 ? W : 0);
			const double below = (double)low[0] + fx * (double)(low[fx > 0] - low[0]);
			CHECK(fabs((double)out[i] - (above + fy * (below - above))) < 0x1p-16,
				"sample %d, pixel %d: %.9g", (int)index, i, (double)out[i]);
		}
	}
}

/* Parts of stored images: inside, of the areas and ratios that were asked for, and even in both. */
static void parts_have_the_areas_and_ratios_of_their_range(void **state)
{
	enum { ROUNDS = 4000, HEIGHT = 375, WIDTH = 500 };
	const struct hd_augment augment = one_of("resized_crop", NULL, 0);
	double area = 0, ratio = 0;

	(void)state;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		const struct hd_augment_draw draw = { &augment, i, 2 };
		struct hd_augment_part part;
		double box[4];
		hd_augment_part(&draw, HEIGHT, WIDTH, &part);
		assert_true(part.height && part.width && part.top + part.height <= HEIGHT &&
			part.left + part.width <= WIDTH);
		if (box_of(i, 2, HEIGHT, WIDTH, box))
			CHECK(part.top == box[0] && part.left == box[1] && part.height == box[2] &&
				part.width == box[3], "part %d", (int)i);
		area += (double)part.height * part.width / (HEIGHT * WIDTH) / ROUNDS;
		ratio += log((double)part.width / part.height) / ROUNDS;
	}
	/* means of 300,000 parts of 500 x 375 by torchvision's get_params, and five deviations of 4000 */
	CHECK(fabs(area - 0.4329) < 0.0172 && fabs(ratio - 0.0304) < 0.0131,
		"mean area %g, mean log ratio %g", area,
		ratio);
}

/* Chances are what they should be, and one sample's draws differ between epochs, places in the list and
 * seeds. */
static void chance_is_even_and_keyed(void **state)
{
	struct hd_augment flip = one_of("flip", NULL, 0), crop = one_of("crop", &(double){ 2 }, 1),
		other = flip;
	uint32_t flips = 0, same_epoch = 0, same_seed = 0, at[5][5] = { { 0 } };
	enum { ROUNDS = 20000 };

	(void)state;
	other.seed++;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		float x[3][N], base[N];
		fill(base, 1);
		for (int k = 0; k < 3; k++)
			memcpy(x[k], base, sizeof base);
		hd_augment_apply(&flip, &field, i, 0, x[0], NULL);
		hd_augment_apply(&flip, &field, i, 1, x[1], NULL);
		hd_augment_apply(&other, &field, i, 0, x[2], NULL);
		flips += memcmp(x[0], base, sizeof base) != 0;
		same_epoch += memcmp(x[0], x[1], sizeof base) == 0;
		same_seed += memcmp(x[0], x[2], sizeof base) == 0;
		memset(x[0], 0, sizeof base);
		x[0][2 * W + 3] = 1;              /* one pixel, in the middle of the first plane */
		hd_augment_apply(&crop, &field, i, 3, x[0], NULL);
		for (int y = 0; y < 5; y++)
			for (int c = 0; c < 5; c++)
				at[y][c] += x[0][y * W + c + 1] == 1;
	}
	/* five standard deviations of a coin: 0.5 * sqrt(20000) * 5 */
	CHECK(abs((int)flips - ROUNDS / 2) < 354 && abs((int)same_epoch - ROUNDS / 2) < 354 &&
		abs((int)same_seed - ROUNDS / 2) < 354, "%u %u %u", flips,
		same_epoch, same_seed);
	for (int y = 0; y < 5; y++)
		for (int c = 0; c < 5; c++)
			CHECK(abs((int)at[y][c] - ROUNDS / 25) < 140, "moved by %d, %d: %u times", y - 2,
				c - 2, at[y][c]);
}

/* A data set of pixels that say which sample they are of. */
static enum hd_err made_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	(void)set;
	(void)split;
	(void)diag;
	fill(out[0], (uint32_t)index);
	return HD_OK;
}

/* Two data epochs, with wrap and without, read by V virtual nodes: row for row the same bytes as by one. */
static void no_number_of_virtual_nodes_changes_a_sample(void **state)
{
	static const struct hd_reader_ops ops = { .name = "made", .about = "for tests", .read = made_read };
	struct hd_augment augment = one_of("crop", &(double){ 3 }, 1);
	const struct hd_dataset set = { .ops = &ops, .nfields = 1, .field = { field }, .nsplits = 1,
		.split = { { "train", 11 } }, .augment = &augment };
	struct hd_diag diag = { "" };

	(void)state;
	for (int last = HD_LAST_RAGGED; last <= HD_LAST_WRAP; last += HD_LAST_WRAP - HD_LAST_RAGGED) {
		struct hd_sampler sampler;
		assert_int_equal(hd_sampler_init(&sampler, 5, 11, 4, HD_ORDER_SHUFFLE, (enum hd_last)last,
			&diag), HD_OK);
		for (uint32_t nvns = 1; nvns <= 4; nvns++) {
			struct hd_prefetch_spec spec = { .set = &set, .sampler = &sampler, .nvns = nvns,
				.per_vn = (4 + nvns - 1) / nvns, .end_step = 6,
				.nthreads = nvns };
			struct hd_prefetch *prefetch = NULL;
			CHECK(hd_prefetch_create(&prefetch, &spec, &diag) == HD_OK, "%s", diag.text);
			for (uint64_t step = 0; step < 6; step++)
				for (uint32_t v = 0; v < nvns; v++) {
					const void *input[HD_MAX_FIELDS];
					uint64_t nrows = 0;
					assert_int_equal(hd_prefetch_take(prefetch, step, v, input, &nrows,
						&diag), HD_OK);
					for (uint64_t r = 0; r < nrows; r++) {
						uint64_t row = v * spec.per_vn + r, at = step * 4 + row;
						uint64_t epoch = last == HD_LAST_WRAP ? at / 11 : step / 3,
							sample = hd_sampler_at(&sampler, step, row);
						float want[N];
						fill(want, (uint32_t)sample);
						hd_augment_apply(&augment, &field, sample, epoch, want, NULL);
						CHECK(memcmp((const float *)input[0] + r * N, want,
							sizeof want) == 0, "V %u, step %d, row %d", nvns,
							(int)step,
							(int)row);
					}
					hd_prefetch_done(prefetch, step, v);
				}
			hd_prefetch_destroy(prefetch);
		}
	}
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const double four = 4, five = 5, half = 0.5, two[2] = { 1, 2 }, zero = 0, tiny = 2e-38;
	const struct hd_augment_param bare[] = { { NULL, &five, 1 } }, part[] = { { NULL, &half, 1 } },
		both[] = { { NULL, two, 2 } };
	const struct hd_augment_param only[] = { { "mean", &half, 1 } },
		uneven[] = { { "mean", &half, 1 }, { "std", two, 2 } };
	const struct hd_augment_param narrow[] = { { "mean", &half, 1 }, { "std", &tiny, 1 } };
	const struct hd_augment_param none[] = { { "mean", &half, 1 }, { "std", &zero, 1 } },
		fine[] = { { NULL, &four, 1 } };
	static const struct hd_field flat = { .dtype = HD_F32, .rank = 1, .dim = { N } },
		tokens = { .dtype = HD_I32, .rank = 3, .dim = { C, H, W } };
	const struct { struct hd_augment_call call; const struct hd_field *x; const char *says; } cases[] = {
		{ { "flop", NULL, 0 }, &field, "there is no transform flop; did you mean flip?; known: resized_crop flip crop" },
		{ { "flip", bare, 1 }, &field, "flip takes no number: write flip alone" },
		{ { "crop", bare, 1 }, &field, "crop takes a whole number of pixels from 1 to 4, as {crop: 4}" },
		{ { "crop", NULL, 0 }, &field, "crop takes a whole number" }, { { "crop", part, 1 }, &field, "crop takes a whole number" },
		{ { "crop", both, 1 }, &field, "crop takes a whole number" }, { { "brightness", bare, 1 }, &field, "brightness takes one number above 0" },
		{ { "normalize", only, 1 }, &field, "normalize takes mean and std" }, { { "normalize", uneven, 2 }, &field, "1 means and 2 deviations" },
		{ { "normalize", none, 2 }, &field, "a deviation of 0" }, { { "crop", fine, 1 }, &flat, "crop needs images" },
		{ { "normalize", narrow, 2 }, &field, "pixels less 0.5 divided by 2e-38 are infinite" },
		{ { "normalize", none, 2 }, &tokens, "normalize transforms numbers, the samples are i32" },
	};
	struct hd_augment augment = { .seed = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		assert_int_equal(hd_augment_add(&augment, &cases[i].call, cases[i].x, &diag), HD_E_INVAL);
		CHECK(strstr(diag.text, cases[i].says) && augment.nsteps == 0, "case %zu: %s", i, diag.text);
	}
	for (int i = 0; i <= HD_AUGMENT_STEPS; i++) {
		struct hd_diag diag = { "" };
		enum hd_err err = hd_augment_add(&augment, &(struct hd_augment_call){ "crop", fine, 1 },
			&field, &diag);
		assert_int_equal(err, i < HD_AUGMENT_STEPS ? HD_OK : HD_E_INVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_transform_is_what_its_sentence_says),
		cmocka_unit_test(a_resized_crop_is_between_the_pixels_of_its_part),
		cmocka_unit_test(parts_have_the_areas_and_ratios_of_their_range),
		cmocka_unit_test(a_list_is_applied_in_order_each_with_a_draw_of_its_own),
		cmocka_unit_test(normalize_takes_each_channel_and_every_row),
		cmocka_unit_test(chance_is_even_and_keyed),
		cmocka_unit_test(no_number_of_virtual_nodes_changes_a_sample),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
