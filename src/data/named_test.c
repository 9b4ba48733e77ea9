#include "data/named.h"

#include "data/augment.h"
#include "tests/data_disk.h"

/* What a sample of the set must be is written down here; the reader and the rules make it. */

enum { T = 4, N = 3 };

#define DICT(descr, shape) "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape ", }          \n"

static void put_npy(const char *path, const char *dict, const void *bytes, size_t len)
{
	uint8_t file[2048];
	put_file(&sim.fs, path, file, make_npy(file, dict, bytes, len));
}

static const int64_t tokens[N][T] = { { 5, 6, 7, 0 }, { 0, 0, 8, 9 }, { 1, 2, 3, 4 } };
static const int64_t labels[N][T] = { { 1, -100, 2, 3 }, { 1, 1, -1, 2 }, { 4, 3, 2, 1 } };
/* right, left, and a hole */
static const uint8_t mask[N][T] = { { 1, 1, 1, 0 }, { 0, 0, 1, 1 }, { 1, 0, 1, 1 } };

static int set_up(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	put_folder(&sim.fs, "set");
	put_npy("set/x.npy", DICT("<i8", "(3, 4)"), tokens, sizeof tokens);
	put_npy("set/y.npy", DICT("<i8", "(3, 4)"), labels, sizeof labels);
	put_npy("set/attention_mask.npy", DICT("|b1", "(3, 4)"), mask, sizeof mask);
	return 0;
}

static struct hd_data_want wants[] = {
	{ .name = "attention_mask", .dtype = HD_I32, .rank = 1, .dim = { T } },
	{ .name = "position_ids", .dtype = HD_I32, .rank = 1, .dim = { T }, .bound = 6 },
	{ .name = "token_type_ids", .dtype = HD_I32, .rank = 1, .dim = { T }, .bound = 2 },
};

static struct hd_data_spec spec_of(const struct hd_data_want *want, uint32_t n)
{
	return (struct hd_data_spec){ .kind = "npy", .path = "set", .classes = 10, .train = 1, .context = T,
		.rank = 1, .dim = { T }, .pad = -1, .want = want, .nwant = n };
}

static void read_as_model(const struct hd_dataset *set, uint64_t index, int32_t out[5][T])
{
	void *at[HD_MAX_FIELDS];
	struct hd_diag diag = { "" };

	for (uint32_t f = 0; f < set->nfields; f++)
		at[f] = out[f];
	CHECK(hd_dataset_read(set, 0, index, HD_NO_EPOCH, at, &diag) == HD_OK, "%s", diag.text);
}

static void check_row(const int32_t *has, const int32_t *wants_row, const char *what, uint64_t i)
{
	CHECK(!memcmp(has, wants_row, T * sizeof *has), "%s of sample %llu is %d %d %d %d", what,
		(unsigned long long)i, has[0], has[1], has[2], has[3]);
}

static void a_mask_hides_labels_and_counts_positions(void **state)
{
	static const int32_t seen[N][T] = { { 1, 1, 1, 0 }, { 0, 0, 1, 1 }, { 1, 0, 1, 1 } };
	static const int32_t places[N][T] = { { 0, 1, 2, 0 }, { 0, 0, 0, 1 }, { 0, 0, 1, 2 } };
	static const int32_t y[N][T] = { { 1, -1, 2, -1 }, { -1, -1, -1, 2 }, { 4, -1, 2, 1 } };
	static const int32_t zeros[T];
	int32_t out[5][T];
	struct hd_dataset *set = open_set(&sim.fs, spec_of(wants, 3));
	(void)state;

	assert_int_equal(set->nfields, 5);
	for (uint64_t i = 0; i < N; i++) {
		memset(out, 0x55, sizeof out);
		read_as_model(set, i, out);
		check_row(out[1], y[i], "y", i);
		check_row(out[2], seen[i], "attention_mask", i);
		check_row(out[3], places[i], "position_ids", i);
		check_row(out[4], zeros, "token_type_ids", i);
	}
	hd_dataset_destroy(set);
}

static void without_a_mask_all_tokens_count(void **state)
{
	static const int32_t places[T] = { 0, 1, 2, 3 }, y[T] = { 1, -1, 2, 3 };
	int32_t out[5][T];
	struct hd_dataset *set = open_set(&sim.fs, spec_of(wants + 1, 1));
	(void)state;

	read_as_model(set, 0, out);
	check_row(out[1], y, "y", 0);
	check_row(out[2], places, "position_ids", 0);
	hd_dataset_destroy(set);
}

static void what_the_files_have_is_not_made(void **state)
{
	static const int32_t types[N][T] = { { 0, 0, 1, 1 }, { 1, 1, 1, 1 }, { 0, 1, 0, 1 } };
	static const int32_t places[N][T] = { { 5, 4, 3, 2 }, { 0, 0, 0, 0 }, { 1, 2, 3, 4 } };
	int32_t out[5][T];
	(void)state;

	put_npy("set/token_type_ids.npy", DICT("<i4", "(3, 4)"), types, sizeof types);
	put_npy("set/position_ids.npy", DICT("<i4", "(3, 4)"), places, sizeof places);
	struct hd_dataset *set = open_set(&sim.fs, spec_of(wants, 3));
	for (uint64_t i = 0; i < N; i++) {
		read_as_model(set, i, out);
		check_row(out[3], places[i], "position_ids", i);
		check_row(out[4], types[i], "token_type_ids", i);
	}
	hd_dataset_destroy(set);
}

static void masks_that_are_none_are_refused(void **state)
{
	static const int32_t two[N][T] = { { 1, 1, 1, 0 }, { 1, 2, 1, 1 }, { 1, 1, 1, 1 } };
	static const float real[N][T] = { { 1 } };
	static const uint8_t empty[N][T] = { { 1 }, { 0 }, { 1 } };
	(void)state;

	put_npy("set/attention_mask.npy", DICT("<i4", "(3, 4)"), two, sizeof two);
	check_refused(&sim.fs, spec_of(wants, 1), HD_E_INPUT,
		"set/attention_mask.npy: 2 in sample 1 is out of range: the model knows 0 to 1");
	put_npy("set/attention_mask.npy", DICT("<f4", "(3, 4)"), real, sizeof real);
	check_refused(&sim.fs, spec_of(wants, 1), HD_E_INPUT, "the model reads integers: save int64");
	put_npy("set/attention_mask.npy", DICT("|u1", "(3, 3)"), empty, 9);
	check_refused(&sim.fs, spec_of(wants, 1), HD_E_INPUT,
		"set/attention_mask.npy has the shape [3,3]; of 3 samples the model reads "
		"\"attention_mask\" as [4]");
	put_npy("set/attention_mask.npy", DICT("|u1", "(2, 4)"), empty, 8);
	check_refused(&sim.fs, spec_of(wants, 1), HD_E_INPUT, "has the shape [2,4]; of 3 samples");
	put_npy("set/attention_mask.npy", DICT("|u1", "(3, 4)"), empty, sizeof empty);
	check_refused(&sim.fs, spec_of(wants, 1), HD_E_INPUT,
		"set/attention_mask.npy: sample 1 is all 0: nothing of it would be seen");
}

static void what_nothing_supplies_is_refused(void **state)
{
	static const struct hd_data_want other = { .name = "speaker", .dtype = HD_F32, .rank = 1, .dim =
		{ 2 } };
	static const struct hd_data_want wide = { .name = "position_ids", .dtype = HD_I32, .rank = 1,
		.dim = { T + 1 } };
	static const struct hd_data_want few = { .name = "position_ids", .dtype = HD_I32, .rank = 1,
		.dim = { T }, .bound = T - 1 };
	static const float speaker[N][2] = { { 1, 2 }, { 3, 4 }, { 5, 6 } };
	float numbers[5][T];
	(void)state;

	check_refused(&sim.fs, spec_of(&other, 1), HD_E_INPUT,
		"the graph reads an input \"speaker\"; the data have no such field");
	put_npy("set/speaker.npy", DICT("<f4", "(3, 2)"), speaker, sizeof speaker);
	struct hd_dataset *set = open_set(&sim.fs, spec_of(&other, 1));
	read_as_model(set, 2, (void *)numbers);
	assert_true(numbers[2][0] == 5 && numbers[2][1] == 6);
	hd_dataset_destroy(set);
	check_refused(&sim.fs, spec_of(&wide, 1), HD_E_INPUT, "make one as i32 for each token of x alone");
	check_refused(&sim.fs, spec_of(&few, 1), HD_E_INPUT, "the model knows 3 positions");
	assert_int_equal(hd_fs_unlink(&sim.fs, "set/attention_mask.npy", NULL), HD_OK);
	check_refused(&sim.fs, spec_of(wants, 1), HD_E_INPUT,
		"the graph reads an input \"attention_mask\"; the data have no such field");
}

static void made_up_texts_have_lengths(void **state)
{
	struct hd_data_spec spec = spec_of(wants, 3);
	int32_t out[5][T];
	uint32_t lengths = 0, begins = 0;
	(void)state;

	spec.kind = "synthetic";
	spec.one_label = true;
	spec.tokens = 20;
	struct hd_dataset *set = open_set(&sim.fs, spec);
	for (uint64_t i = 0; i < 64; i++) {
		uint32_t n = 0;
		read_as_model(set, i, out);
		for (uint32_t t = 0; t < T; t++) {
			n += (uint32_t)out[2][t];
			/* types are read, positions made */
			assert_true(out[2][t] == (t < n) && out[4][t] == (t < n ? (int32_t)t : 0));
			assert_true(t == 0 ? out[3][t] == 0 : out[3][t] >= out[3][t - 1]);
			begins |= (uint32_t)out[3][t] << t;
		}
		lengths |= 1u << n;
	}
	assert_int_equal(lengths, 0x1e);              /* 1 to 4 */
	assert_int_equal(begins, 0xe);                /* never at the first token */
	hd_dataset_destroy(set);
}

static void a_prompt_is_seen(void **state)
{
	static const int32_t ones[T] = { 1, 1, 1, 1 }, places[T] = { 0, 1, 2, 3 }, zeros[T];
	int32_t out[5][T];
	void *at[HD_MAX_FIELDS] = { out[0], out[1], out[2], out[3], out[4] };
	struct hd_dataset *set = open_set(&sim.fs, spec_of(wants, 3));
	(void)state;

	memset(out, 0x55, sizeof out);
	hd_named_plain(set, at);
	check_row(out[2], ones, "attention_mask", 0);
	check_row(out[3], places, "position_ids", 0);
	check_row(out[4], zeros, "token_type_ids", 0);
	hd_dataset_destroy(set);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_mask_hides_labels_and_counts_positions), TEST(without_a_mask_all_tokens_count),
		TEST(what_the_files_have_is_not_made), TEST(masks_that_are_none_are_refused),
		TEST(what_nothing_supplies_is_refused), TEST(made_up_texts_have_lengths),
		TEST(a_prompt_is_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
