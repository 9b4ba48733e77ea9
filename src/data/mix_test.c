/* Mixup and cutmix against torchvision (tests/data/augment.txt), the draws against their laws, and rows of a
 * step whatever virtual node reads them. */
#include "data/mix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "data/named.h"
#include "data/prefetch.h"
#include "tests/check.h"

enum { C = 2, H = 6, W = 7, N = C * H * W, CLASSES = 4, ROWS = 5 };

static const struct hd_field image = { .name = "x", .dtype = HD_F32, .rank = 3, .dim = { C, H, W },
	.sample_bytes = N * sizeof(float) };
static const struct hd_field labels = { .name = "y", .dtype = HD_F32, .rank = 1, .dim = { CLASSES },
	.sample_bytes = CLASSES * sizeof(float) };
static const int32_t label_of[ROWS] = { 2, 0, 3, 3, 1 };

static void fill(float *x, uint64_t seed)
{
	for (uint32_t i = 0; i < N; i++)
		x[i] = (float)((i * 37 + seed * 11) % 256) / 255;
}

static void mixed_rows_are_those_of_torchvision(void **state)
{
	const struct hd_dataset set = { .nfields = 2, .field = { image, labels } };
	const char *source = getenv("SOURCE_DIR");
	char path[512], text[1 << 14], kind[16];
	int ncases = 0;

	(void)state;
	snprintf(path, sizeof path, "%s/tests/data/augment.txt", source ? source : ".");
	FILE *file = fopen(path, "r");
	CHECK(file, "%s is not there", path);
	while (fgets(text, sizeof text, file)) {
		double share;
		int left, top, right, bottom;
		if (sscanf(text, "%15s %lf %d %d %d %d", kind, &share, &left, &top, &right, &bottom) != 6 ||
			(strcmp(kind, "mixup") != 0 && strcmp(kind, "cutmix") != 0))
			continue;
		const struct hd_mixing how = { strcmp(kind, "cutmix") ? HD_MIX_MIXUP : HD_MIX_CUTMIX, share,
			{ (uint32_t)top, (uint32_t)left, (uint32_t)(bottom - top), (uint32_t)(right - left) } };
		float x[ROWS][N], y[ROWS][CLASSES] = { { 0 } }, x0[N];
		for (int r = 0; r < ROWS; r++) {
			fill(x[r], (uint64_t)r);
			y[r][label_of[r]] = 1;
		}
		memcpy(x0, x[ROWS - 1], sizeof x0);
		float y0[CLASSES] = { 0, 1 };
		hd_mix_rows(&how, &set, ROWS, (void *const[]){ x, y }, (const void *const[]){ x0, y0 });
		for (int i = 0; i < ROWS * (N + CLASSES); i++) {
			float want, got = i < ROWS * N ? x[i / N][i % N] :
				y[(i - ROWS * N) / CLASSES][i % CLASSES];
			assert_int_equal(fscanf(file, "%f", &want), 1);
			CHECK(got == want, "case %d, number %d: %.9g, not %.9g", ncases, i, (double)got,
				(double)want);
		}
		ncases++;
	}
	fclose(file);
	assert_int_equal(ncases, 4);
}

/* Bounds of ten equal parts of Beta(a, a), by SciPy; the upper half mirrors the lower. */
static void shares_have_the_law_of_beta(void **state)
{
	static const struct { double alpha, tenth[4]; } laws[] = {
		{ 0.2, { 0.00024776, 0.00788805, 0.05788058, 0.21634186 } },
		{ 1, { 0.1, 0.2, 0.3, 0.4 } },
		{ 4, { 0.27860205, 0.35009357, 0.40524064, 0.45389571 } },
		{ 0.8, { 0.07105044, 0.16703407, 0.27343033, 0.38544428 } },
	};
	enum { ROUNDS = 20000 };
	const uint64_t key = hd_philox_key(11, HD_RNG_AUGMENT);

	(void)state;
	for (size_t k = 0; k < sizeof laws / sizeof *laws; k++) {
		int n[10] = { 0 };
		for (uint32_t i = 0; i < ROUNDS; i++) {
			const double b = hd_mix_beta(laws[k].alpha, key, (uint32_t[]){ 0, 1, i, 0 });
			assert_true(b >= 0 && b <= 1);
			int at = 0;
			for (int t = 0; t < 4; t++)
				at += b > laws[k].tenth[t];
			for (int t = 0; t < 4; t++)
				at += b > 1 - laws[k].tenth[t];
			n[at + (b > 0.5)]++;
		}
		/* five deviations of a tenth: 5 sqrt(20000 * 0.09) */
		for (int t = 0; t < 10; t++)
			CHECK(abs(n[t] - ROUNDS / 10) < 213, "alpha %g, part %d: %d", laws[k].alpha, t, n[t]);
	}
	for (double u = 0.03; u < 1; u += 0.09)
		for (double e = 0; e < 30; e += 0.37)
			CHECK(fabs(hd_mix_power(u, e) / pow(u, e) - 1) < 1e-11, "%g ^ %g", u, e);
	const double least = hd_mix_beta(0.01, key, (uint32_t[]){ 0, 2, 0, 0 });
	assert_true(least >= 0 && least <= 1);
}

static struct hd_augment mixing(uint32_t n, const char *const *name, double alpha)
{
	struct hd_augment augment = { .seed = 9 };
	struct hd_diag diag = { "" };
	const struct hd_augment_param param = { "alpha", &alpha, 1 };

	for (uint32_t i = 0; i < n; i++)
		CHECK(hd_augment_add(&augment, &(struct hd_augment_call){ name[i], &param, 1 }, &image,
			&diag) ==
			HD_OK, "%s", diag.text);
	return augment;
}

static void a_step_takes_one_of_two_and_a_box_by_its_share(void **state)
{
	const struct hd_augment both = mixing(2, (const char *const[]){ "cutmix", "mixup" }, 1);
	int cut = 0;
	double area = 0;

	(void)state;
	for (uint64_t step = 0; step < 2000; step++) {
		struct hd_mixing m, again;
		hd_mix_draw(&both, &image, step + (step % 2 ? UINT64_C(1) << 33 : 0), &m);
		hd_mix_draw(&both, &image, step + (step % 2 ? UINT64_C(1) << 33 : 0), &again);
		assert_true(m.kind == again.kind && m.share == again.share);
		assert_memory_equal(&m.box, &again.box, sizeof m.box);
		assert_true(m.share >= 0 && m.share <= 1 && m.box.top + m.box.height <= H &&
			m.box.left + m.box.width <= W);
		cut += m.kind == HD_MIX_CUTMIX;
		if (m.kind == HD_MIX_CUTMIX)
			CHECK(fabs(m.share - (1 - (double)(m.box.height * m.box.width) / (H * W))) < 1e-12,
				"step %d", (int)step);
		area += m.kind == HD_MIX_CUTMIX ? 1 - m.share : 0;
	}
	CHECK(abs(cut - 1000) < 112, "%d of 2000", cut);
	/* the mean by numpy over shares and middles; boxes are cut at the edges and have whole sides */
	CHECK(fabs(area / cut - 0.2133) < 0.04, "mean area %g", area / cut);
}

static enum hd_err made_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	(void)split;
	(void)diag;
	(void)set;
	fill(out[0], index);
	((int32_t *)out[1])[0] = (int32_t)(index % CLASSES);
	return HD_OK;
}

/* Rows of a step in words of their own: read, one-hot, mixed with the row before. */
static void mixed(const struct hd_augment *augment, const struct hd_sampler *sampler, uint64_t step,
	float (*x)[N], float (*y)[CLASSES])
{
	const uint64_t n = hd_sampler_rows(sampler, step);
	float px[16][N], py[16][CLASSES];
	struct hd_mixing m;

	memset(py, 0, sizeof py);
	for (uint64_t r = 0; r < n; r++) {
		const uint64_t sample = hd_sampler_at(sampler, step, r);
		fill(px[r], sample);
		py[r][sample % CLASSES] = 1;
	}
	hd_mix_draw(augment, &image, step, &m);
	const float own = (float)m.share, other = (float)(1 - m.share);
	for (uint64_t r = 0; r < n; r++) {
		const uint64_t b = r ? r - 1 : n - 1;
		for (uint32_t i = 0; i < N; i++) {
			const uint32_t row = i / W % H, col = i % W;
			const bool inside = row >= m.box.top && row < m.box.top + m.box.height &&
				col >= m.box.left && col < m.box.left + m.box.width;
			if (m.kind == HD_MIX_CUTMIX)
				x[r][i] = inside ? px[b][i] : px[r][i];
			else
				x[r][i] = px[b][i] * other + px[r][i] * own;
		}
		for (uint32_t c = 0; c < CLASSES; c++)
			y[r][c] = py[b][c] * other + py[r][c] * own;
	}
}

static void check_step(struct hd_prefetch *p, const struct hd_prefetch_spec *spec, uint64_t step)
{
	struct hd_diag diag = { "" };
	float x[16][N], y[16][CLASSES];

	mixed(spec->set->augment, spec->sampler, step, x, y);
	for (uint32_t v = 0; v < spec->nvns; v++) {
		const void *input[HD_MAX_FIELDS];
		uint64_t nrows = 0;
		CHECK(hd_prefetch_take(p, step, v, input, &nrows, &diag) == HD_OK, "%s", diag.text);
		for (uint64_t r = 0; r < nrows; r++)
			CHECK(!memcmp((const float *)input[0] + r * N, x[v * spec->per_vn + r],
				sizeof x[0]) &&
				!memcmp((const float *)input[1] + r * CLASSES, y[v * spec->per_vn + r],
				sizeof y[0]), "V %u, step %d, row %d of %u", spec->nvns, (int)step, (int)r,
					v);
		hd_prefetch_done(p, step, v);
	}
}

/* Two data epochs, short last steps, threads and none; a reader that begins in the middle reads the same. */
static void no_number_of_virtual_nodes_changes_a_mixed_row(void **state)
{
	static const struct hd_reader_ops ops = { .name = "made", .about = "for tests", .read = made_read };
	const struct hd_augment augment = mixing(2, (const char *const[]){ "mixup", "cutmix" }, 0.7);
	struct hd_dataset set = { .ops = &ops, .nfields = 2, .field = { image, { .name = "y", .dtype =
		HD_I32 } },
		.nsplits = 1, .split = { { "train", 23 } }, .augment = &augment };
	struct hd_diag diag = { "" };
	struct hd_sampler sampler;

	(void)state;
	hd_shares_complete(&set, CLASSES);
	assert_true(set.field[1].dtype == HD_F32 && set.field[1].sample_bytes == sizeof(float) * CLASSES);
	assert_int_equal(hd_mix_check(&set, &diag), HD_OK);
	assert_int_equal(hd_sampler_init(&sampler, 5, 23, 10, HD_ORDER_SHUFFLE, HD_LAST_RAGGED, &diag),
		HD_OK);
	for (uint32_t nvns = 1; nvns <= 10; nvns++) {
		struct hd_prefetch_spec spec = { .set = &set, .sampler = &sampler, .nvns = nvns,
			.per_vn = (10 + nvns - 1) / nvns, .end_step = 6, .first_step = nvns % 3, .depth = 2,
			.nthreads = nvns % 4 };
		struct hd_prefetch *p = NULL;
		CHECK(hd_prefetch_create(&p, &spec, &diag) == HD_OK, "%s", diag.text);
		for (uint64_t step = spec.first_step; step < 6; step++)
			check_step(p, &spec, step);
		hd_prefetch_destroy(p);
	}
}

static void labels_that_are_no_numbers_are_refused(void **state)
{
	const struct hd_augment augment = mixing(1, (const char *const[]){ "mixup" }, 1);
	struct hd_dataset set = { .nfields = 2, .field = { image, { .name = "y", .dtype = HD_I32 } },
		.augment = &augment };
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_mix_check(&set, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "soft-cross-entropy"), "%s", diag.text);
	set.field[1] = labels;
	set.field[set.nfields++] = (struct hd_field){ .name = "more" };
	diag = (struct hd_diag){ "" };
	assert_int_equal(hd_mix_check(&set, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "also reads \"more\""), "%s", diag.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mixed_rows_are_those_of_torchvision),
		cmocka_unit_test(shares_have_the_law_of_beta),
		cmocka_unit_test(a_step_takes_one_of_two_and_a_box_by_its_share),
		cmocka_unit_test(no_number_of_virtual_nodes_changes_a_mixed_row),
		cmocka_unit_test(labels_that_are_no_numbers_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
