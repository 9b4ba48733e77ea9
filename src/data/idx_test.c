#include "data/idx.h"

#include <stdlib.h>

#include "tests/data_disk.h"

enum { N = 40, H = 5, W = 3, CAP = 4096 };

static uint8_t pixel(size_t i) { return (uint8_t)(i * 37); }
static uint8_t label(size_t i) { return (uint8_t)(i % 10); }

static void put_idx(const char *path, uint32_t rank, const uint32_t *dim, uint8_t (*byte_of)(size_t))
{
	uint8_t file[CAP];
	put_file(&sim.fs, path, file, make_idx(file, rank, dim, byte_of));
}

static int set_up(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	put_folder(&sim.fs, "set");
	put_idx("set/train-images-idx3-ubyte", 3, (uint32_t[]){ N, H, W }, pixel);
	put_idx("set/train-labels-idx1-ubyte", 1, (uint32_t[]){ N }, label);
	return 0;
}

static struct hd_data_spec spec_of(void)
{
	return (struct hd_data_spec){ .kind = "idx", .path = "set", .classes = 10, .train = 1, .seed = 7 };
}

static void a_sample_is_the_image_over_255_and_its_label(void **state)
{
	struct hd_dataset *set = open_set(&sim.fs, spec_of());
	float x[H * W];
	int32_t y;
	(void)state;

	assert_int_equal(set->field[0].rank, 3);
	assert_true(set->field[0].dim[0] == 1 && set->field[0].dim[1] == H && set->field[0].dim[2] == W);
	assert_int_equal(set->field[1].rank, 0);
	assert_int_equal(set->split[0].count, N);
	assert_int_equal(hd_dataset_split(set, "test"), HD_NONE);
	for (uint64_t i = 0; i < N; i++) {
		read_sample(set, 0, i, x, &y);
		assert_int_equal(y, label(i));
		for (size_t j = 0; j < H * W; j++)
			CHECK(x[j] == (float)pixel(i * H * W + j) / 255.0f, "sample %llu at %zu",
				(unsigned long long)i, j);
	}
	hd_dataset_destroy(set);
}

static void the_model_may_ask_for_the_same_numbers_in_another_shape(void **state)
{
	struct hd_data_spec spec = spec_of();
	(void)state;

	spec.rank = 1;
	spec.dim[0] = H * W;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	assert_true(set->field[0].rank == 1 && set->field[0].dim[0] == H * W);
	hd_dataset_destroy(set);
	spec.dim[0] = H * W + 1;
	check_refused(&sim.fs, spec, HD_E_INPUT, "[1,5,3] (15 numbers), the model takes [16] (16)");
}

static void the_test_set_is_a_split_and_is_never_trained_on(void **state)
{
	float x[H * W];
	int32_t y;
	(void)state;

	put_idx("set/t10k-images-idx3-ubyte", 3, (uint32_t[]){ 4, H, W }, label);
	put_idx("set/t10k-labels-idx1-ubyte", 1, (uint32_t[]){ 4 }, label);
	struct hd_dataset *set = open_set(&sim.fs, spec_of());
	uint32_t test = hd_dataset_split(set, "test");
	assert_int_equal(set->split[test].count, 4);
	assert_int_equal(set->split[0].count, N);
	assert_int_equal(set->count, N + 4);
	read_sample(set, test, 1, x, &y);
	assert_true(x[0] == 5.0f / 255.0f && y == 1);
	hd_dataset_destroy(set);
}

static void hashed_splits_share_the_samples_out(void **state)
{
	struct hd_data_spec spec = spec_of();
	unsigned seen[N] = { 0 };
	float x[H * W];
	int32_t y;
	(void)state;

	spec.train = 0.6;
	spec.valid = 0.4;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	uint32_t valid = hd_dataset_split(set, "valid");
	assert_int_equal(set->split[0].count + set->split[valid].count, N);
	for (uint32_t s = 0; s < 2; s++)
		for (uint64_t i = 0; i < set->split[s].count; i++) {
			read_sample(set, s, i, x, &y);
			for (size_t id = 0; id < N; id++)
				seen[id] += x[0] == (float)pixel(id * H * W) / 255.0f &&
					x[1] == (float)pixel(id * H * W + 1) / 255.0f && y == label(id);
		}
	for (size_t id = 0; id < N; id++)
		CHECK(seen[id] == 1, "sample %zu seen %u times", id, seen[id]);
	hd_dataset_destroy(set);
}

static void impossible_files_are_refused_with_the_numbers(void **state)
{
	static const struct { const char *file; size_t at; uint8_t byte; size_t cut, add; const char *says;
		} cases[] = {
		{ "train-images-idx3-ubyte", 0, 1, 0, 0, "magic" },
		{ "train-images-idx3-ubyte", 2, 0x0d, 0, 0, "element type 0x0d" },
		{ "train-images-idx3-ubyte", 3, 1, 0, 0, "says 1 extents, 2 to 4" },
		{ "train-images-idx3-ubyte", 3, 9, 0, 0, "says 9 extents" },
		{ "train-images-idx3-ubyte", 7, 41, 0, 0, "[41,5,3] need 615 bytes after the header, there are 600" },
		{ "train-images-idx3-ubyte", 7, 0, 0, 0, "impossible extents" },
		{ "train-images-idx3-ubyte", 4, 0xff, 0, 0, "cut off" },
		{ "train-images-idx3-ubyte", 0, 0, 1, 0, "cut off" },
		{ "train-images-idx3-ubyte", 0, 0, 608, 0, "inside its header" },
		{ "train-images-idx3-ubyte", 0, 0, 614, 0, "magic" },
		{ "train-images-idx3-ubyte", 0, 0, 0, 1, "too long" },
		{ "train-labels-idx1-ubyte", 8, 10, 0, 0, "label 10 of sample 0 is out of range: the model has the classes 0 to 9" },
		{ "train-labels-idx1-ubyte", 3, 3, 0, 0, "says 3 extents, 1 to 1" },
	};
	(void)state;

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		bool images = strstr(cases[c].file, "images");
		uint8_t file[CAP] = { 0 };
		char path[64];
		size_t len = images ? make_idx(file, 3, (uint32_t[]){ N, H, W }, pixel) : make_idx(file, 1,
			(uint32_t[]){ N }, label);
		file[cases[c].at] = cases[c].byte;
		snprintf(path, sizeof path, "set/%s", cases[c].file);
		put_file(&sim.fs, path, file, len - cases[c].cut + cases[c].add);
		check_refused(&sim.fs, spec_of(), HD_E_INPUT, cases[c].says);
		tear_down(NULL);
		set_up(NULL);
	}
}

static void every_truncation_is_refused(void **state)
{
	uint8_t file[CAP];
	size_t len = make_idx(file, 3, (uint32_t[]){ N, H, W }, pixel);
	(void)state;

	for (size_t n = 0; n < len; n++) {
		uint8_t *exact = malloc(n ? n : 1);            /* so that a sanitizer sees a step too far */
		struct hd_idx idx;
		struct hd_diag diag = { "" };
		assert_non_null(exact);
		memcpy(exact, file, n);
		CHECK(hd_idx_parse(exact, n, "f", 1, 4, &idx, &diag) == HD_E_INPUT && diag.text[0],
			"%zu bytes", n);
		free(exact);
	}
}

static void images_and_labels_must_be_as_many_and_go_together(void **state)
{
	struct hd_data_spec spec = spec_of();
	(void)state;

	put_idx("set/train-labels-idx1-ubyte", 1, (uint32_t[]){ N - 1 }, label);
	check_refused(&sim.fs, spec, HD_E_INPUT, "holds 40 images, set/train-labels-idx1-ubyte 39 labels");
	put_idx("set/train-labels-idx1-ubyte", 1, (uint32_t[]){ N }, label);
	put_idx("set/t10k-images-idx3-ubyte", 3, (uint32_t[]){ 4, H, W }, pixel);
	check_refused(&sim.fs, spec, HD_E_NOTFOUND, "but not t10k-labels-idx1-ubyte");
	put_idx("set/t10k-labels-idx1-ubyte", 1, (uint32_t[]){ 4 }, label);
	put_idx("set/t10k-images-idx3-ubyte", 3, (uint32_t[]){ 4, W, H }, pixel);
	check_refused(&sim.fs, spec, HD_E_INPUT, "training images are [40,5,3], test images [4,3,5]");
}

static void missing_folders_and_wrong_paths_say_what_to_do(void **state)
{
	struct hd_data_spec spec = spec_of();
	(void)state;

	spec.path = NULL;
	check_refused(&sim.fs, spec, HD_E_NOTFOUND, "apt install dataset-fashion-mnist");
	spec.path = "set/train-images-idx3-ubyte";
	check_refused(&sim.fs, spec, HD_E_INPUT, "is a file");
	put_folder(&sim.fs, "other");
	spec.path = "other";
	check_refused(&sim.fs, spec, HD_E_NOTFOUND, "has no train-images-idx3-ubyte");
	spec = spec_of();
	spec.float_target = true;
	check_refused(&sim.fs, spec, HD_E_INVAL, "cross-entropy");
}

static void bytes_that_are_no_gzip_behind_the_name_gz_are_refused(void **state)
{
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_fs_rename(&sim.fs, "set/train-images-idx3-ubyte",
		"set/train-images-idx3-ubyte.gz", &diag), HD_OK);
	check_refused(&sim.fs, spec_of(), HD_E_INPUT, "train-images-idx3-ubyte.gz");
}

static void a_gzipped_set_is_the_same_set_and_a_flipped_bit_is_noticed(void **state)
{
	uint8_t file[CAP], packed[CAP + 64];
	struct hd_dataset *plain = open_set(&sim.fs, spec_of());
	struct hd_diag diag = { "" };
	float x[2][H * W];
	int32_t y[2];
	(void)state;

	size_t len = make_gzip(packed, file, make_idx(file, 3, (uint32_t[]){ N, H, W }, pixel));
	put_file(&sim.fs, "set/train-images-idx3-ubyte.gz", packed, len);
	assert_int_equal(hd_fs_unlink(&sim.fs, "set/train-images-idx3-ubyte", &diag), HD_OK);
	struct hd_dataset *gz = open_set(&sim.fs, spec_of());
	assert_true(hd_hash_same(plain->hash, gz->hash));
	for (uint64_t i = 0; i < N; i++) {
		read_sample(plain, 0, i, x[0], &y[0]);
		read_sample(gz, 0, i, x[1], &y[1]);
		assert_true(memcmp(x[0], x[1], sizeof x[0]) == 0 && y[0] == y[1]);
	}
	hd_dataset_destroy(plain);
	hd_dataset_destroy(gz);
	packed[100] ^= 1;
	put_file(&sim.fs, "set/train-images-idx3-ubyte.gz", packed, len);
	check_refused(&sim.fs, spec_of(), HD_E_INPUT, "train-images-idx3-ubyte.gz");
	put_file(&sim.fs, "set/train-images-idx3-ubyte.gz", packed, len - 9);
	check_refused(&sim.fs, spec_of(), HD_E_INPUT, "train-images-idx3-ubyte.gz");
}

/* Debian's files, gzipped; counts and the first labels are published figures of the data set. */
static void fashion_mnist_is_read_from_debians_folder(void **state)
{
	static const uint8_t first[10] = { 9, 0, 0, 3, 0, 2, 7, 2, 5, 5 };
	static const uint8_t test_first[10] = { 9, 2, 1, 1, 6, 1, 4, 6, 5, 7 };
	struct hd_data_spec spec = { .kind = "idx", .classes = 10, .train = 1 };
	struct hd_fs real;
	struct hd_stat stat;
	float x[784];
	int32_t y, per_class[10] = { 0 };
	(void)state;

	hd_fs_real(&real);
	if (hd_fs_stat(&real, "/usr/share/datasets/fashion-mnist", &stat, NULL) != HD_OK) {
		SKIP("dataset-fashion-mnist is not installed");
	}
	struct hd_dataset *set = open_set(&real, spec);
	uint32_t test = hd_dataset_split(set, "test");
	assert_int_equal(set->split[0].count, 60000);
	assert_int_equal(set->split[test].count, 10000);
	for (uint64_t i = 0; i < 10; i++) {
		read_sample(set, 0, i, x, &y);
		assert_int_equal(y, first[i]);
		read_sample(set, test, i, x, &y);
		assert_int_equal(y, test_first[i]);
	}
	for (uint64_t i = 0; i < 60000; i++) {
		read_sample(set, 0, i, x, &y);
		per_class[y]++;
	}
	for (int c = 0; c < 10; c++)
		assert_int_equal(per_class[c], 6000);
	hd_dataset_destroy(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_sample_is_the_image_over_255_and_its_label, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(the_model_may_ask_for_the_same_numbers_in_another_shape,
		set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_test_set_is_a_split_and_is_never_trained_on, set_up,
		tear_down),
		cmocka_unit_test_setup_teardown(hashed_splits_share_the_samples_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(impossible_files_are_refused_with_the_numbers, set_up,
		tear_down),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test_setup_teardown(images_and_labels_must_be_as_many_and_go_together, set_up,
		tear_down),
		cmocka_unit_test_setup_teardown(missing_folders_and_wrong_paths_say_what_to_do, set_up,
		tear_down),
		cmocka_unit_test_setup_teardown(bytes_that_are_no_gzip_behind_the_name_gz_are_refused, set_up,
		tear_down),
		cmocka_unit_test_setup_teardown(a_gzipped_set_is_the_same_set_and_a_flipped_bit_is_noticed,
		set_up, tear_down),
		cmocka_unit_test(fashion_mnist_is_read_from_debians_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
