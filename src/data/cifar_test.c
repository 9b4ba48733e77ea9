#include "data/cifar.h"

#include <stdlib.h>

#include "tests/data_disk.h"

enum { N = 3, CAP = 4 * (2 + HD_CIFAR_IMAGE) + 64 };

static uint8_t pixel(uint32_t file, uint32_t i, uint32_t j) { return (uint8_t)(file * 83 + i * 29 + j * 7); }

/* `n` records; the labels of record i are i + file modulo the number of classes. */
static size_t make_records(uint8_t *at, uint32_t file, uint32_t nlabels, uint32_t n)
{
	size_t len = 0;

	for (uint32_t i = 0; i < n; i++) {
		at[len++] = (uint8_t)((i + file) % (nlabels == 1 ? 10 : 20));
		if (nlabels == 2)
			at[len++] = (uint8_t)((i + file) * 31 % 100);
		for (uint32_t j = 0; j < HD_CIFAR_IMAGE; j++)
			at[len++] = pixel(file, i, j);
	}
	return len;
}

static void put_records(const char *path, uint32_t file, uint32_t nlabels, uint32_t n)
{
	uint8_t *bytes = malloc(CAP);
	assert_non_null(bytes);
	put_file(&sim.fs, path, bytes, make_records(bytes, file, nlabels, n));
	free(bytes);
}

static int set_up(void **state)
{
	char path[40];
	(void)state;

	hd_fs_sim_init(&sim);
	put_folder(&sim.fs, "ten");
	put_folder(&sim.fs, "hundred");
	for (uint32_t k = 1; k <= 5; k++) {
		snprintf(path, sizeof path, "ten/data_batch_%u.bin", k);
		put_records(path, k, 1, k == 3 ? 1 : N);
	}
	put_records("hundred/train.bin", 7, 2, N);
	return 0;
}

static struct hd_data_spec spec_of(const char *path)
{
	return (struct hd_data_spec){ .kind = "cifar", .path = path, .train = 1, .seed = 7 };
}

static void samples_run_through_the_files_in_order(void **state)
{
	static const struct { uint32_t file, i; } want[] = {
		{ 1, 0 }, { 1, 1 }, { 1, 2 }, { 2, 0 }, { 2, 1 }, { 2, 2 }, { 3, 0 }, { 4, 0 }, { 4, 1 }, { 4, 2 }, { 5, 0 }, { 5, 1 }, { 5, 2 },
	};
	static float x[HD_CIFAR_IMAGE];
	int32_t y;

	(void)state;
	struct hd_dataset *set = open_set(&sim.fs, spec_of("ten"));
	assert_true(set->split[0].count == 13 && set->count == 13 && set->nsplits == 1);
	assert_true(set->field[0].rank == 3 && set->field[0].dim[0] == 3 && set->field[0].dim[2] == 32 &&
		set->field[1].dtype == HD_I32);
	for (uint32_t s = 0; s < 13; s++) {
		read_sample(set, 0, s, x, &y);
		CHECK(y == (int32_t)((want[s].i + want[s].file) % 10), "sample %u: label %d", s, y);
		for (uint32_t j = 0; j < HD_CIFAR_IMAGE; j++)
			CHECK(x[j] == (float)pixel(want[s].file, want[s].i, j) / 255.0f, "sample %u at %u", s,
				j);
	}
	hd_dataset_destroy(set);
}

static void the_test_file_is_a_split_and_packed_files_are_the_same(void **state)
{
	static float x[HD_CIFAR_IMAGE];
	uint8_t *plain = malloc(CAP), *packed = malloc(CAP + 100);
	int32_t y;

	(void)state;
	put_records("ten/test_batch.bin", 9, 1, 2);
	struct hd_dataset *set = open_set(&sim.fs, spec_of("ten"));
	uint32_t test = hd_dataset_split(set, "test");
	assert_true(test == 1 && set->split[1].count == 2 && set->split[0].count == 13);
	read_sample(set, test, 1, x, &y);
	assert_true(y == 0 && x[5] == (float)pixel(9, 1, 5) / 255.0f);
	struct hd_hash hash = set->hash;
	hd_dataset_destroy(set);

	assert_true(plain && packed);
	put_file(&sim.fs, "ten/test_batch.bin.gz", packed, make_gzip(packed, plain,
		make_records(plain, 9, 1, 2)));
	struct hd_diag diag = { "" };
	assert_int_equal(hd_fs_unlink(&sim.fs, "ten/test_batch.bin", &diag), HD_OK);
	set = open_set(&sim.fs, spec_of("ten"));
	assert_true(hd_hash_same(set->hash, hash));
	hd_dataset_destroy(set);
	free(plain);
	free(packed);
}

static void a_hundred_classes_have_fine_and_coarse_labels(void **state)
{
	static float x[HD_CIFAR_IMAGE];
	struct hd_data_spec spec = spec_of("hundred");
	int32_t y;

	(void)state;
	for (int coarse = 0; coarse < 3; coarse++) {
		spec.label = coarse == 0 ? NULL : coarse == 1 ? "coarse" : "fine";
		struct hd_dataset *set = open_set(&sim.fs, spec);
		for (uint32_t i = 0; i < N; i++) {
			read_sample(set, 0, i, x, &y);
			assert_int_equal(y, coarse == 1 ? (i + 7) % 20 : (i + 7) * 31 % 100);
			assert_true(x[0] == (float)pixel(7, i, 0) / 255.0f &&
				x[3071] == (float)pixel(7, i, 3071) / 255.0f);
		}
		hd_dataset_destroy(set);
	}
	spec.label = "medium";
	check_refused(&sim.fs, spec, HD_E_INVAL,
		"data.label is medium; CIFAR-100 has fine (100 classes) and coarse (20)");
	spec.label = "coarse";
	spec.classes = 9;
	check_refused(&sim.fs, spec, HD_E_INPUT,
		"hundred/train.bin: label 9 of record 2 is out of range: the model has the classes 0 to 8");
}

static void what_is_no_cifar_is_refused_by_name(void **state)
{
	struct hd_data_spec spec = spec_of("ten");
	struct hd_diag diag = { "" };
	(void)state;

	spec.label = "fine";
	check_refused(&sim.fs, spec, HD_E_INVAL, "CIFAR-10 has one label a sample: leave it out");
	spec = spec_of("ten");
	spec.float_target = true;
	check_refused(&sim.fs, spec, HD_E_INVAL, "use model.loss cross-entropy");
	spec = spec_of("ten");
	spec.rank = 3;
	memcpy(spec.dim, (int64_t[]){ 1, 28, 28 }, 3 * sizeof(int64_t));
	check_refused(&sim.fs, spec, HD_E_INPUT, "[3,32,32] (3072 numbers), the model takes [1,28,28] (784)");
	assert_int_equal(hd_fs_unlink(&sim.fs, "ten/data_batch_4.bin", &diag), HD_OK);
	check_refused(&sim.fs, spec_of("ten"), HD_E_NOTFOUND,
		"ten has data_batch_1.bin but not data_batch_4.bin");
	put_folder(&sim.fs, "empty");
	check_refused(&sim.fs, spec_of("empty"), HD_E_NOTFOUND, "neither data_batch_1.bin");
	check_refused(&sim.fs, spec_of(NULL), HD_E_INVAL, "set data.path");
}

static void records_are_whole_and_labels_in_range(void **state)
{
	uint8_t *bytes = malloc(CAP);
	struct hd_cifar cifar;
	struct hd_diag diag = { "" };

	(void)state;
	assert_non_null(bytes);
	for (uint32_t nlabels = 1; nlabels <= 2; nlabels++) {
		size_t len = make_records(bytes, 1, nlabels, 2);
		assert_int_equal(hd_cifar_parse(bytes, len, "f", nlabels, &cifar, &diag), HD_OK);
		assert_true(cifar.count == 2 && hd_cifar_record(&cifar, 1) == bytes + len / 2);
		for (size_t n = 0; n < len; n += n < 5 || n + 5 > len / 2 ? 1 : 500)
			assert_true((hd_cifar_parse(bytes, n, "f", nlabels, &cifar, &diag) == HD_OK) ==
				(n == len / 2));
		bytes[len / 2] = nlabels == 1 ? 10 : 20;
		diag.text[0] = 0;
		assert_int_equal(hd_cifar_parse(bytes, len, "f", nlabels, &cifar, &diag), HD_E_INPUT);
		CHECK(strstr(diag.text,
			nlabels == 1 ? "f: label 10 of record 1 is out of range, 9 is the last" :
			"f: label 20 of record 1"), "%s", diag.text);
	}
	make_records(bytes, 1, 2, 2);
	bytes[1] = 100;
	assert_int_equal(hd_cifar_parse(bytes, 2 * 3074, "f", 2, &cifar, &diag), HD_E_INPUT);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(samples_run_through_the_files_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_test_file_is_a_split_and_packed_files_are_the_same,
		set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_hundred_classes_have_fine_and_coarse_labels, set_up,
		tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_cifar_is_refused_by_name, set_up, tear_down),
		cmocka_unit_test(records_are_whole_and_labels_in_range),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
