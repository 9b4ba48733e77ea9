#include <math.h>
#include <stdlib.h>

#include "tests/data_disk.h"

static struct hd_data_spec image_spec(uint64_t seed)
{
	return (struct hd_data_spec){ .kind = "synthetic", .seed = seed, .classes = 4, .train = 0.9,
		.valid = 0.1, .rank = 3, .dim = { 1, 12, 12 },
		.count = 400 };
}

static struct hd_data_spec token_spec(uint64_t seed)
{
	return (struct hd_data_spec){ .kind = "synthetic", .seed = seed, .classes = 16, .train = 1,
		.context = 64, .rank = 1, .dim = { 64 }, .count = 200 };
}

/* The disk stays empty: nothing may be opened. */
static int set_up(void **state) { (void)state; hd_fs_sim_init(&sim); return 0; }

static void fields_and_splits_are_as_asked(void **state)
{
	struct hd_data_spec bare = { .kind = "synthetic", .train = 1 };
	struct hd_dataset *set = open_set(&sim.fs, image_spec(1));
	(void)state;

	assert_true(set->field[0].rank == 3 && set->field[0].dim[2] == 12 && set->field[0].dtype == HD_F32);
	assert_true(set->field[1].rank == 0 && set->field[1].dtype == HD_I32);
	assert_int_equal(set->split[0].count, 400);
	assert_int_equal(set->split[hd_dataset_split(set, "valid")].count, 50);
	assert_int_equal(set->split[hd_dataset_split(set, "test")].count, 50);
	hd_dataset_destroy(set);
	set = open_set(&sim.fs, bare);
	assert_true(set->field[0].rank == 3 && set->field[0].dim[1] == 28);
	hd_dataset_destroy(set);
	assert_int_equal(sim.calls, 0);
}

/* Read in another order, twice, from another set with the same seed: the same bits. */
static void a_sample_is_a_function_of_seed_split_and_index(void **state)
{
	struct hd_data_spec specs[] = { image_spec(5), token_spec(5), image_spec(5) };
	(void)state;
	specs[2].float_target = true;

	for (size_t s = 0; s < 3; s++) {
		struct hd_dataset *a = open_set(&sim.fs, specs[s]), *b = open_set(&sim.fs, specs[s]);
		struct hd_data_spec other = specs[s];
		other.seed = 6;
		struct hd_dataset *c = open_set(&sim.fs, other);
		uint64_t nx = a->field[0].sample_bytes, ny = a->field[1].sample_bytes;
		uint8_t x[4][600], y[4][300];
		assert_true(nx <= sizeof x[0] && ny <= sizeof y[0] && hd_hash_same(a->hash, b->hash) &&
			!hd_hash_same(a->hash, c->hash));
		for (uint64_t i = 0; i < 20; i++) {
			read_sample(a, 0, i, x[0], y[0]);
			read_sample(b, 0, 19 - i, x[1], y[1]);
			read_sample(b, 0, i, x[1], y[1]);
			CHECK(memcmp(x[0], x[1], nx) == 0 && memcmp(y[0], y[1], ny) == 0,
				"spec %zu sample %llu", s, (unsigned long long)i);
			read_sample(c, 0, i, x[2], y[2]);
			read_sample(a, 1, i, x[3], y[3]);
			CHECK(memcmp(x[0], x[2], nx) != 0 && memcmp(x[0], x[3], nx) != 0,
				"spec %zu sample %llu: seed or split does not matter", s,
				(unsigned long long)i);
		}
		hd_dataset_destroy(a);
		hd_dataset_destroy(b);
		hd_dataset_destroy(c);
	}
}

/* Class means over the training split classify the test split: 25 % by chance. */
static void images_can_be_learnt(void **state)
{
	struct hd_dataset *set = open_set(&sim.fs, image_spec(3));
	static double mean[4][144];
	unsigned n[4] = { 0 }, right = 0;
	float x[144];
	int32_t y;
	(void)state;

	for (uint64_t i = 0; i < 400; i++) {
		read_sample(set, 0, i, x, &y);
		assert_in_range(y, 0, 3);
		n[y]++;
		for (int j = 0; j < 144; j++)
			mean[y][j] += (double)x[j];
	}
	for (uint64_t i = 0; i < 50; i++) {
		int best = 0;
		double least = INFINITY;
		read_sample(set, hd_dataset_split(set, "test"), i, x, &y);
		for (int c = 0; c < 4; c++) {
			double far = 0;
			for (int j = 0; j < 144; j++)
				far += ((double)x[j] - mean[c][j] / n[c]) *
					((double)x[j] - mean[c][j] / n[c]);
			if (far < least) {
				least = far;
				best = c;
			}
		}
		right += best == y;
	}
	for (int c = 0; c < 4; c++)
		CHECK(n[c] > 60, "class %d: %u samples", c, n[c]);
	CHECK(right >= 45, "%u of 50 right", right);
	hd_dataset_destroy(set);
}

/* The entropy of a token given the one before, counted: about 9/16 and 5/16 on two successors. */
static void tokens_can_be_learnt(void **state)
{
	struct hd_dataset *set = open_set(&sim.fs, token_spec(3));
	static double pair[16][16], row[16];
	double entropy = 0, total = 0;
	int32_t x[64], y[64];
	(void)state;

	for (uint64_t i = 0; i < 200; i++) {
		read_sample(set, 0, i, x, y);
		for (int j = 0; j < 64; j++) {
			assert_in_range(y[j], 0, 15);
			CHECK(j == 63 || y[j] == x[j + 1], "y is not x one later at %d", j);
			pair[x[j]][y[j]]++;
			row[x[j]]++;
			total++;
		}
	}
	for (int a = 0; a < 16; a++)
		for (int b = 0; b < 16; b++)
			if (pair[a][b] > 0)
				entropy -= pair[a][b] / total * log(pair[a][b] / row[a]);
	CHECK(entropy < 0.65 * log(16) && entropy > 0.3, "%g nats, chance is %g", entropy, log(16));
	hd_dataset_destroy(set);
}

/* Which class a text is of by the words that are frequent in it: counted on one split, judged on another. */
static void classes_of_texts_can_be_learnt(void **state)
{
	struct hd_data_spec spec = token_spec(3);
	static double seen[3][40];
	int32_t x[64], y;
	unsigned right = 0, at[3] = { 0 };
	(void)state;

	spec.classes = 3;
	spec.tokens = 40;
	spec.one_label = true;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	assert_true(set->field[1].rank == 0 && set->field[1].dtype == HD_I32 && set->field[0].dim[0] == 64);
	for (uint64_t i = 0; i < 200; i++) {
		read_sample(set, 0, i, x, &y);
		assert_in_range(y, 0, 2);
		at[y]++;
		for (int j = 0; j < 64; j++) {
			assert_in_range(x[j], 0, 39);
			seen[y][x[j]]++;
		}
	}
	for (uint64_t i = 0; i < 25; i++) {
		double score[3] = { 0 };
		read_sample(set, hd_dataset_split(set, "test"), i, x, &y);
		for (int j = 0; j < 64; j++)
			for (int c = 0; c < 3; c++)
				score[c] += log((seen[c][x[j]] + 1) / (at[c] + 1));
		right += score[y] >= score[0] && score[y] >= score[1] && score[y] >= score[2];
	}
	CHECK(at[0] > 40 && at[1] > 40 && at[2] > 40 && right >= 24, "%u, %u, %u; %u of 25 right", at[0],
		at[1], at[2], right);
	struct hd_hash hash = set->hash;
	hd_dataset_destroy(set);
	spec.tokens = 41;
	set = open_set(&sim.fs, spec);
	assert_false(hd_hash_same(hash, set->hash));
	hd_dataset_destroy(set);
}

/* Least squares on one weight row by the normal equations' diagonal: inputs are independent, so E[x_i y] =
 * w_i / sqrt(n). */
static void numbers_follow_a_linear_law(void **state)
{
	struct hd_data_spec spec = image_spec(3);
	float x[16], y[4];
	double cross[16] = { 0 }, explained = 0, variance = 0;
	(void)state;

	spec.float_target = true;
	spec.rank = 1;
	spec.dim[0] = 16;
	spec.count = 20000;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	assert_true(set->field[1].rank == 1 && set->field[1].dim[0] == 4 && set->field[1].dtype == HD_F32);
	for (uint64_t i = 0; i < 20000; i++) {
		read_sample(set, 0, i, x, y);
		for (int j = 0; j < 16; j++)
			cross[j] += (double)x[j] * (double)y[2] / 20000;
		variance += (double)y[2] * (double)y[2] / 20000;
	}
	for (int j = 0; j < 16; j++)
		explained += cross[j] * cross[j];
	CHECK(fabs(variance - explained - 0.01) < 0.05 * variance, "variance %g, of which a line explains %g",
		variance, explained);
	hd_dataset_destroy(set);
}

static void sizes_beyond_reason_are_refused(void **state)
{
	struct hd_data_spec spec = image_spec(1);
	(void)state;

	spec.dim[1] = spec.dim[2] = 8192;
	check_refused(&sim.fs, spec, HD_E_INVAL, "too large");
	spec.dim[0] = INT64_MAX;
	check_refused(&sim.fs, spec, HD_E_INPUT, "at most 1024 MiB");
	spec = image_spec(1);
	spec.count = UINT64_C(1) << 44;
	check_refused(&sim.fs, spec, HD_E_INVAL, "data.count");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_and_splits_are_as_asked),
			cmocka_unit_test(a_sample_is_a_function_of_seed_split_and_index),
		cmocka_unit_test(images_can_be_learnt), cmocka_unit_test(tokens_can_be_learnt),
		cmocka_unit_test(classes_of_texts_can_be_learnt),
		cmocka_unit_test(numbers_follow_a_linear_law),
		cmocka_unit_test(sizes_beyond_reason_are_refused),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
