#include "data/npy.h"

#include <stdlib.h>

#include "tests/data_disk.h"

static int set_up(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	put_folder(&sim.fs, "set");
	return 0;
}

static void put_npy(const char *path, const char *dict, const void *bytes, size_t len)
{
	uint8_t file[2048];
	put_file(&sim.fs, path, file, make_npy(file, dict, bytes, len));
}

static struct hd_data_spec spec_of(void)
{
	return (struct hd_data_spec){ .kind = "npy", .path = "set", .classes = 5, .train = 1 };
}

static const int32_t labels[3] = { 4, 0, 2 };
#define DICT(descr, shape) "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape ", }          \n"

static void all_types_of_x_become_numbers_or_tokens(void **state)
{
	static const float f4[6] = { 0, 1, 2.5f, -3, 4, 1e-3f };
	static const double f8[6] = { 0, 1, 2.5, -3, 4, 1e-3 };
	static const uint8_t u1[6] = { 0, 1, 2, 3, 4, 255 };
	static const int32_t i4[6] = { 0, 1, 2, 3, 4, 4 };
	static const int64_t i8[6] = { 0, 1, 2, 3, 4, 4 };
	static const struct { const char *dict; const void *bytes; size_t len; enum hd_dtype want;
		double last; } cases[] = {
		{ DICT("<f4", "(3, 2)"), f4, sizeof f4, HD_F32, 1e-3f }, { DICT("<f8", "(3, 2)"), f8, sizeof f8, HD_F32, 1e-3f },
		{ DICT("|u1", "(3, 2)"), u1, sizeof u1, HD_F32, 255 }, { DICT("<i4", "(3, 2)"), i4, sizeof i4, HD_I32, 4 },
		{ DICT("<i8", "(3, 2)"), i8, sizeof i8, HD_I32, 4 },
	};
	(void)state;

	put_npy("set/y.npy", DICT("<i4", "(3,)"), labels, sizeof labels);
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		union { float f[2]; int32_t i[2]; } x;
		int32_t y;
		put_npy("set/x.npy", cases[c].dict, cases[c].bytes, cases[c].len);
		struct hd_dataset *set = open_set(&sim.fs, spec_of());
		assert_int_equal(set->field[0].dtype, cases[c].want);
		assert_true(set->field[0].rank == 1 && set->field[0].dim[0] == 2 && set->count == 3);
		read_sample(set, 0, 2, &x, &y);
		CHECK((cases[c].want == HD_F32 ? (double)x.f[1] : x.i[1]) == cases[c].last && y == 2,
			"case %zu", c);
		hd_dataset_destroy(set);
	}
}

static void targets_of_mse_are_numbers(void **state)
{
	static const double y8[6] = { 1, 2, 3, 4, 5, 6.5 };
	static const float x4[3] = { 1, 2, 3 };
	struct hd_data_spec spec = spec_of();
	float x, y[2];
	(void)state;

	spec.float_target = true;
	spec.classes = 2;
	put_npy("set/x.npy", DICT("<f4", "(3,)"), x4, sizeof x4);
	put_npy("set/y.npy", DICT("<f8", "(3, 2)"), y8, sizeof y8);
	struct hd_dataset *set = open_set(&sim.fs, spec);
	read_sample(set, 0, 2, &x, y);
	assert_true(x == 3 && y[0] == 5 && y[1] == 6.5f);
	hd_dataset_destroy(set);
	spec.classes = 3;
	check_refused(&sim.fs, spec, HD_E_INPUT, "2 numbers per sample, the model gives 3");
	spec.float_target = false;
	check_refused(&sim.fs, spec, HD_E_INPUT, "the loss wants class numbers");
	put_npy("set/y.npy", DICT("<i4", "(3,)"), labels, sizeof labels);
	spec.float_target = true;
	check_refused(&sim.fs, spec, HD_E_INPUT, "the loss wants numbers");
}

static void targets_of_sequences_keep_their_shape(void **state)
{
	static const int64_t tokens[6] = { 0, 1, 2, 3, 4, 4 };
	int32_t x[2], y[2];
	(void)state;

	put_npy("set/x.npy", DICT("<i8", "(3, 2)"), tokens, sizeof tokens);
	put_npy("set/y.npy", DICT("<i8", "(3, 2)"), tokens, sizeof tokens);
	struct hd_dataset *set = open_set(&sim.fs, spec_of());
	assert_true(set->field[1].rank == 1 && set->field[1].dim[0] == 2 && set->field[1].dtype == HD_I32 &&
		set->field[1].sample_bytes == 8);
	read_sample(set, 0, 1, x, y);
	assert_true(x[0] == 2 && x[1] == 3 && y[0] == 2 && y[1] == 3);
	hd_dataset_destroy(set);
}

/* -1 says that a place has no label; a sample whose only label is missing makes no sense. */
static void a_row_of_labels_may_have_masked_ones(void **state)
{
	static const float x4[4] = { 0 };
	static const int32_t masked[4] = { 2, -1, -1, 3 }, below[4] = { 2, -2, 0, 3 };
	struct hd_data_spec spec = spec_of();
	(void)state;

	put_npy("set/x.npy", DICT("<f4", "(2, 2)"), x4, sizeof x4);
	put_npy("set/y.npy", DICT("<i4", "(2, 2)"), masked, sizeof masked);
	hd_dataset_destroy(open_set(&sim.fs, spec));
	put_npy("set/y.npy", DICT("<i4", "(2, 2)"), below, sizeof below);
	check_refused(&sim.fs, spec, HD_E_INPUT, "-2 in sample 0 is out of range");
	put_npy("set/x.npy", DICT("<f4", "(4,)"), x4, sizeof x4);
	put_npy("set/y.npy", DICT("<i4", "(4,)"), masked, sizeof masked);
	check_refused(&sim.fs, spec, HD_E_INPUT, "-1 in sample 1 is out of range");
}

static void headers_are_read_strictly(void **state)
{
	static const struct { const char *dict; const char *says; } cases[] = {
		{ "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", "Fortran order" },
		{ "{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }", "Python objects" },
		{ "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }", "type '>f4'" },
		{ "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }", "holds records" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", "cut off" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "too long" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4), }", "shape cannot be read" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (-4,), }", "shape cannot be read" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,4), }", "more than 7 extents" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "shape cannot be read" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "impossible shape" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }", "cut off" },
		{ "{'descr': '<f4', 'fortran_order': False, }", "not what numpy.save() writes" },
		{ "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "not what numpy.save() writes" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), } x", "not what numpy.save() writes" },
		{ "{'other': 1, 'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "not what numpy.save() writes" },
		{ "{'descr': '<f4' 'fortran_order': False, 'shape': (4,), }", "not what numpy.save() writes" },
		{ "", "not what numpy.save() writes" },
		{ "{'shape': (2, 2), 'fortran_order': False, 'descr': '<f4'}", "" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }  \n", "" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4 ,), }", "" },
	};
	uint8_t file[512], sixteen[16] = { 0 };
	(void)state;

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct hd_npy npy;
		struct hd_diag diag = { "" };
		size_t len = make_npy(file, cases[c].dict, sixteen, sizeof sixteen);
		enum hd_err err = hd_npy_parse(file, len, "f.npy", &npy, &diag);
		CHECK((err == HD_OK) == !cases[c].says[0] && strstr(diag.text, cases[c].says), "%s: '%s'",
			cases[c].dict, diag.text);
	}
}

static void versions_2_and_3_have_a_longer_length(void **state)
{
	uint8_t file[512];
	const char *dict = DICT("|u1", "(2,)");
	size_t dict_len = strlen(dict);
	struct hd_npy npy;
	struct hd_diag diag = { "" };
	(void)state;

	for (uint8_t version = 1; version <= 4; version++) {
		memcpy(file, "\x93NUMPY\x01\x00", 8);
		file[6] = version;
		store_le(file + 8, dict_len, 4);
		memcpy(file + 12, dict, dict_len);
		file[12 + dict_len] = 7;
		enum hd_err err = hd_npy_parse(file, 14 + dict_len, "f.npy", &npy, &diag);
		CHECK((err == HD_OK) == (version == 2 || version == 3), "version %u: %s", version, diag.text);
		if (err == HD_OK)
			assert_true(npy.rank == 1 && npy.dim[0] == 2 && npy.at[0] == 7);
	}
}

static void every_truncation_is_refused(void **state)
{
	uint8_t file[512], bytes[16] = { 0 };
	size_t len = make_npy(file, DICT("<f4", "(2, 2)"), bytes, sizeof bytes);
	(void)state;

	for (size_t n = 0; n < len; n++) {
		uint8_t *exact = malloc(n ? n : 1);
		struct hd_npy npy;
		assert_non_null(exact);
		memcpy(exact, file, n);
		CHECK(hd_npy_parse(exact, n, "f", &npy, NULL) == HD_E_INPUT, "%zu bytes", n);
		free(exact);
	}
}

/* Tokens have a bound of their own where each sample has one label; bytes are tokens to a model of tokens. */
static void tokens_and_labels_have_bounds_of_their_own(void **state)
{
	static const uint8_t bytes[6] = { 0, 255, 2, 3, 4, 5 };
	struct hd_data_spec spec = spec_of();
	int32_t x[2], y;
	(void)state;

	spec.context = 2;
	spec.rank = 1;
	spec.dim[0] = 2;
	spec.tokens = 256;
	spec.one_label = true;
	put_npy("set/x.npy", DICT("|u1", "(3, 2)"), bytes, sizeof bytes);
	put_npy("set/y.npy", DICT("<i4", "(3,)"), labels, sizeof labels);
	struct hd_dataset *set = open_set(&sim.fs, spec);
	assert_int_equal(set->field[0].dtype, HD_I32);
	read_sample(set, 0, 0, x, &y);
	assert_true(x[0] == 0 && x[1] == 255 && y == 4);
	hd_dataset_destroy(set);
	spec.tokens = 255;
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"set/x.npy: 255 in sample 0 is out of range: the model knows 0 to 254");
	spec.tokens = 256;
	spec.classes = 4;
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"set/y.npy: 4 in sample 0 is out of range: the model knows 0 to 3");
}

static void numbers_out_of_range_and_sizes_that_differ_are_refused(void **state)
{
	static const float x4[6] = { 0 };
	static const int64_t big[3] = { 1, INT64_C(1) << 40, 2 };
	struct hd_data_spec spec = spec_of();
	(void)state;

	put_npy("set/x.npy", DICT("<f4", "(3, 2)"), x4, sizeof x4);
	check_refused(&sim.fs, spec, HD_E_NOTFOUND, "set/y.npy");
	put_npy("set/y.npy", DICT("<i4", "(2,)"), labels, 8);
	check_refused(&sim.fs, spec, HD_E_INPUT, "set/x.npy has 3 samples, set/y.npy 2");
	put_npy("set/y.npy", DICT("<i4", "(3,)"), labels, sizeof labels);
	spec.classes = 4;
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"set/y.npy: 4 in sample 0 is out of range: the model knows 0 to 3");
	spec.classes = 0;
	put_npy("set/y.npy", DICT("<i8", "(3,)"), big, sizeof big);
	check_refused(&sim.fs, spec, HD_E_INPUT, "1099511627776 in sample 1 does not fit 32 bits");
	put_npy("set/y.npy", DICT("<i4", "()"), labels, 4);
	check_refused(&sim.fs, spec, HD_E_INPUT, "the first extent counts samples");
	spec.path = NULL;
	check_refused(&sim.fs, spec, HD_E_INVAL, "set data.path");
	spec = spec_of();
	spec.rank = 2;
	spec.dim[0] = spec.dim[1] = 3;
	put_npy("set/y.npy", DICT("<i4", "(3,)"), labels, sizeof labels);
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"samples have the shape [2] (2 numbers), the model takes [3,3] (9)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_types_of_x_become_numbers_or_tokens, set_up, tear_down),
		cmocka_unit_test_setup_teardown(targets_of_mse_are_numbers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(targets_of_sequences_keep_their_shape, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_row_of_labels_may_have_masked_ones, set_up, tear_down),
		cmocka_unit_test(headers_are_read_strictly),
		cmocka_unit_test(versions_2_and_3_have_a_longer_length),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test_setup_teardown(tokens_and_labels_have_bounds_of_their_own, set_up,
		tear_down),
		cmocka_unit_test_setup_teardown(numbers_out_of_range_and_sizes_that_differ_are_refused,
		set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
