#include "engine/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/file.h"
#include "graph/safetensors.h"
#include "tests/check.h"

/* Measures against scikit-learn, as tests/torch/losses.py wrote them down: outputs, targets, and each
 * measure that is one of them. Rows are given in pieces, last ones first, as devices may. */

static const struct { const char *name; enum hd_measuring_kind kind; bool one; } cases[] = {
	{ "seven", HD_MEASURED_CLASSES, false }, { "masked", HD_MEASURED_CLASSES, false },
	{ "twelve", HD_MEASURED_CLASSES, false }, { "absent", HD_MEASURED_CLASSES, false },
	{ "two", HD_MEASURED_CLASSES, false }, { "ties", HD_MEASURED_CLASSES, false },
	{ "one", HD_MEASURED_CLASSES, true }, { "labels", HD_MEASURED_LABELS, false },
	{ "shy", HD_MEASURED_LABELS, false }, { "numbers", HD_MEASURED_NUMBERS, false },
	{ "constant", HD_MEASURED_NUMBERS, false }, { "met", HD_MEASURED_NUMBERS, false },
};
enum { NCASES = sizeof cases / sizeof *cases };

static void read_fixture(struct hd_safetensors *st, struct hd_arena *arena)
{
	const char *source = getenv("SOURCE_DIR");
	struct hd_diag diag = { "" };
	char path[512];
	struct hd_fs fs;
	uint8_t *bytes;
	size_t len;

	hd_fs_real(&fs);
	snprintf(path, sizeof path, "%s/tests/torch/fixtures/losses/measures.safetensors", source ? source :
		".");
	CHECK(hd_file_read_all(&fs, path, arena, 1 << 22, &bytes, &len, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_safetensors_read(st, arena, path, bytes, len, &diag) == HD_OK, "%s", diag.text);
}

static const struct hd_st_tensor *tensor(const struct hd_safetensors *st, const char *name, const char *what)
{
	char full[64];

	snprintf(full, sizeof full, "%s.%s", name, what);
	const struct hd_st_tensor *t = hd_safetensors_find(st, full);
	CHECK(t, "%s", full);
	return t;
}

static void count(const struct hd_measuring *of, uint64_t n, const float *x, const void *y, uint64_t piece,
	double value[HD_NMEASURES])
{
	const uint64_t width = of->is_f32 ? of->cols : 1;
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct hd_measures m;

	hd_arena_init(&arena, 0);
	CHECK(hd_measures_begin(&m, of, n, &arena, &diag) == HD_OK, "%s", diag.text);
	for (uint64_t end = n; end > 0; end = end > piece ? end - piece : 0) {
		const uint64_t first = end > piece ? end - piece : 0;
		hd_measures_take(&m, first, end - first, x + first * of->cols,
			(const int32_t *)y + first * width);
	}
	CHECK(hd_measures_count(&m, value, &arena, &diag) == HD_OK, "%s", diag.text);
	hd_arena_finish(&arena);
}

static struct hd_measuring shape_of(size_t c, const struct hd_st_tensor *outputs,
	const struct hd_st_tensor *targets)
{
	return (struct hd_measuring){ .wanted = (1u << HD_NMEASURES) - 1, .kind = cases[c].kind,
		.one = cases[c].one,
		.is_f32 = targets->dtype == HD_ST_F32, .cols = (uint64_t)outputs->dim[1], .per_row = 1 };
}

static void measures_are_those_of_scikit_learn(void **state)
{
	struct hd_safetensors st;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	read_fixture(&st, &arena);
	for (size_t c = 0; c < NCASES; c++) {
		const struct hd_st_tensor *x = tensor(&st, cases[c].name, "outputs"), *y = tensor(&st,
			cases[c].name,
			"targets");
		const struct hd_measuring of = shape_of(c, x, y);
		const double *want = tensor(&st, cases[c].name, "want")->at;
		double got[HD_NMEASURES], again[HD_NMEASURES];
		int judged = 0;
		count(&of, (uint64_t)x->dim[0], x->at, y->at, 7, got);
		count(&of, (uint64_t)x->dim[0], x->at, y->at, 1000, again);
		assert_memory_equal(got, again, sizeof got);
		for (int m = 0; m < HD_NMEASURES; m++) {
			if (isnan(want[m]))
				continue;
			judged++;
			CHECK(fabs(got[m] - want[m]) <= 1e-12 * fmax(1, fabs(want[m])),
				"%s: %s is %.17g, scikit-learn "
				"has %.17g", cases[c].name, hd_measures[m].word, got[m], want[m]);
		}
		assert_true(judged >= 3);
	}
	hd_arena_finish(&arena);
}

static void nothing_and_no_number_are_no_numbers(void **state)
{
	const struct hd_measuring of = { .wanted = (1u << HD_NMEASURES) - 1, .cols = 3, .per_row = 1 };
	static const float x[] = { 1, 2, 3, 0, NAN, 1 };
	static const int32_t none[] = { -1, -1 }, some[] = { 2, 0 };
	double value[HD_NMEASURES];

	(void)state;
	count(&of, 2, x, none, 2, value);
	for (int m = 0; m < HD_NMEASURES; m++)
		assert_true(isnan(value[m]));
	count(&of, 2, x, some, 2, value);
	for (int m = 0; m < HD_NMEASURES; m++)
		assert_true(isnan(value[m]));
	count(&of, 1, x, some, 1, value);
	assert_true(value[HD_MEASURE_ACCURACY] == 1 && isnan(value[HD_MEASURE_AUROC]));
}

/* A class that is neither label nor prediction is not part of a mean over classes. */
static void classes_that_do_not_occur_are_left_out(void **state)
{
	const struct hd_measuring of = { .wanted = (1u << HD_NMEASURES) - 1, .cols = 3, .per_row = 1 };
	static const float x[] = { 1, 0, -1, 0, 1, -1, 2, 0, 1 };
	static const int32_t y[] = { 0, 1, 1 };
	double value[HD_NMEASURES];

	(void)state;
	count(&of, 3, x, y, 2, value);
	assert_true(value[HD_MEASURE_PRECISION_MACRO] == 0.75 && value[HD_MEASURE_RECALL_MACRO] == 0.75);
	assert_true(value[HD_MEASURE_TOP2] == 2.0 / 3.0 && value[HD_MEASURE_TOP3] == 1);
}

/* Labels to ignore count nowhere; several predictions of a row count each. */
static void what_is_ignored_counts_nowhere(void **state)
{
	const struct hd_measuring of = { .wanted = 1u << HD_MEASURE_ACCURACY, .cols = 2, .per_row = 2,
		.ignores = true,
		.ignore = -100 };
	static const float x[] = { 1, 0, 1, 0, 0, 1, 0, 1 };
	static const int32_t y[] = { 0, -100, 1, 0 };
	double value[HD_NMEASURES];
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct hd_measures m;

	(void)state;
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_measures_begin(&m, &of, 2, &arena, &diag), HD_OK);
	hd_measures_take(&m, 0, 2, x, y);
	assert_int_equal(hd_measures_count(&m, value, &arena, &diag), HD_OK);
	assert_true(value[HD_MEASURE_ACCURACY] == 2.0 / 3.0);
	hd_arena_finish(&arena);
}

/* Twice the pairs by a loop over all of them. */
static void areas_are_those_of_all_pairs(void **state)
{
	enum { N = 300 };
	const struct hd_measuring of = { .wanted = 1u << HD_MEASURE_AUROC, .is_f32 = true, .one = true,
		.cols = 1,
		.per_row = 1 };
	uint32_t seed = 7;

	(void)state;
	for (int round = 0; round < 20; round++) {
		float x[N], y[N];
		double above = 0, pairs = 0, value[HD_NMEASURES];
		for (int i = 0; i < N; i++) {
			seed = seed * 1664525 + 1013904223;
			x[i] = (float)(seed >> 16) / (float)(1 << (round % 12 + 4)) ;
			x[i] = floorf(x[i]);
			y[i] = (float)(seed >> 9 & 1);
		}
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++)
				if (y[i] > y[j]) {
					pairs++;
					above += x[i] > x[j] ? 1 : x[i] == x[j] ? 0.5 : 0;
				}
		count(&of, N, x, y, 11, value);
		CHECK(value[HD_MEASURE_AUROC] == above / pairs, "round %d: %.17g, by pairs %.17g", round,
			value[HD_MEASURE_AUROC], above / pairs);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures_are_those_of_scikit_learn),
		cmocka_unit_test(nothing_and_no_number_are_no_numbers),
		cmocka_unit_test(classes_that_do_not_occur_are_left_out),
		cmocka_unit_test(what_is_ignored_counts_nowhere),
		cmocka_unit_test(areas_are_those_of_all_pairs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
