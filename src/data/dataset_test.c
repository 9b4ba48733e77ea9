#include "data/dataset.h"

#include <math.h>

#include "data/reader_int.h"
#include "tests/data_disk.h"

static int set_up(void **state) { (void)state; hd_fs_sim_init(&sim); return 0; }

static void every_row_is_found_by_its_name_and_says_what_it_is(void **state)
{
	(void)state;
	for (size_t i = 0; hd_readers[i]; i++) {
		struct hd_data_spec spec = { .kind = hd_readers[i]->name, .train = 1, .context = 4,
			.path = "nothing" };
		struct hd_dataset *set = NULL;
		struct hd_diag diag = { "" };
		enum hd_err err = hd_dataset_open(&set, &spec, &sim.fs, &diag);
		CHECK(strlen(hd_readers[i]->about) > 10 && !strstr(diag.text, "data.kind is"), "%s",
			hd_readers[i]->name);
		CHECK((err == HD_OK) == (set != NULL) && (err != HD_OK) == (diag.text[0] != 0), "%s: %s",
			hd_readers[i]->name, diag.text);
		if (set)
			CHECK(set->ops == hd_readers[i] && set->about[0] &&
				strcmp(set->split[0].name, "train") == 0, "%s", hd_readers[i]->name);
		hd_dataset_destroy(set);
	}
	hd_dataset_destroy(NULL);
}

static void a_mistyped_kind_is_answered_with_the_nearest(void **state)
{
	struct hd_data_spec spec = { .kind = "txet", .train = 1 };
	(void)state;

	check_refused(&sim.fs, spec, HD_E_INVAL,
		"data.kind is 'txet'; did you mean text?; known: idx, cifar, csv, jsonl, parquet, text, "
		"tokens, npy, images, webdataset, records, graph, synthetic");
	spec.kind = "somethingelse";
	check_refused(&sim.fs, spec, HD_E_INVAL, "'somethingelse'; known: idx");
}

static void impossible_splits_are_refused(void **state)
{
	static const struct { double train, valid; } cases[] = { { 0, 0 }, { 0, 1 }, { -0.1, 0 },
		{ 0.5, -0.1 }, { 0.9, 0.2 }, { (double)NAN, 0 },
		{ 1, (double)NAN }, { 1.1, 0 } };
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_data_spec spec = { .kind = "synthetic", .train = cases[i].train,
			.valid = cases[i].valid };
		check_refused(&sim.fs, spec, HD_E_INVAL, "data.split");
	}
}

static enum hd_err fill_two_files(struct hd_reader *reader, const struct hd_data_spec *spec,
	struct hd_diag *diag)
{
	(void)diag;
	reader->source = hd_arena_take(&reader->arena, 2, sizeof *reader->source);
	reader->source[0] = (struct hd_source){ .len = 1000 };
	reader->source[1] = (struct hd_source){ .len = spec->count - 1000 };
	reader->nsources = 2;
	return HD_OK;
}

static void what_opening_has_read_is_at_hand_up_to_a_bound(void **state)
{
	static const struct { uint64_t bytes; bool at_hand; } cases[] = { { 2000, true },
		{ HD_AT_HAND_BYTES, true }, { HD_AT_HAND_BYTES + 1, false },
		{ UINT64_C(1) << 40, false } };
	struct hd_data_spec spec = { .kind = "synthetic", .train = 1, .count = 8 };
	struct hd_dataset *set;
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_data_spec files = { .count = cases[i].bytes };
		assert_int_equal(hd_reader_open(&set, sizeof(struct hd_reader), &hd_reader_text, &sim.fs,
			fill_two_files, &files, NULL), HD_OK);
		CHECK(set->at_hand == cases[i].at_hand, "%llu bytes", (unsigned long long)cases[i].bytes);
		hd_reader_destroy(set);
	}
	assert_int_equal(hd_dataset_open(&set, &spec, &sim.fs, NULL), HD_OK);
	assert_true(set->at_hand);                /* drawn, not read */
	hd_dataset_destroy(set);
}

static void globs_match_as_shells_do(void **state)
{
	static const struct { const char *pattern, *name; bool want; } cases[] = {
		{ "*.txt", "a.txt", true }, { "*.txt", ".txt", false }, { ".*", ".txt", true }, { "*", "", true }, { "a*b*c", "aXbYbZc", true },
		{ "a*b*c", "aXbYbZ", false }, { "?", "", false }, { "?", "a", true }, { "?", "ab", false }, { "a?c", "abc", true }, { "**", "x", true },
		{ "abc", "abc", true }, { "abc", "abcd", false }, { "abcd", "abc", false }, { "*a", "aaab", false }, { "*ab", "aab", true }, { "", "",
			true }, { "", "a", false },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		CHECK(hd_glob_match(cases[i].pattern, cases[i].name) == cases[i].want, "%s against %s",
			cases[i].pattern, cases[i].name);
}

/* 100 000 samples: the shares are the fractions within five standard errors, another seed is another
 * split. */
static void hashed_splits_have_the_fractions_asked_for(void **state)
{
	struct hd_data_spec spec = { .train = 0.7, .valid = 0.2, .split_seed = 1 };
	struct hd_reader a = { 0 }, b = { 0 };
	uint64_t differ = 0;
	(void)state;

	hd_arena_init(&a.arena, 0);
	hd_arena_init(&b.arena, 0);
	assert_int_equal(hd_split_hashed(&a, &spec, 100000, NULL), HD_OK);
	spec.split_seed = 2;
	assert_int_equal(hd_split_hashed(&b, &spec, 100000, NULL), HD_OK);
	CHECK(fabs((double)a.set.split[0].count - 70000) < 725 &&
		fabs((double)a.set.split[1].count - 20000) < 633, "%llu and %llu",
		(unsigned long long)a.set.split[0].count, (unsigned long long)a.set.split[1].count);
	for (uint64_t i = 0; i < 1000; i++) {
		CHECK(i == 0 || hd_split_id(&a, 0, i) > hd_split_id(&a, 0, i - 1),
			"ids of train rise at %llu", (unsigned long long)i);
		differ += hd_split_id(&a, 0, i) != hd_split_id(&b, 0, i);
	}
	assert_true(differ > 900);
	hd_arena_finish(&a.arena);
	hd_arena_finish(&b.arena);
}

/* Whatever else changes, a sample stays in its split: membership depends on its key and id alone. */
static void a_longer_set_keeps_the_split_of_its_beginning(void **state)
{
	struct hd_data_spec spec = { .train = 0.5, .valid = 0.5, .split_seed = 9 };
	struct hd_reader a = { 0 }, b = { 0 };
	(void)state;

	hd_arena_init(&a.arena, 0);
	hd_arena_init(&b.arena, 0);
	assert_int_equal(hd_split_hashed(&a, &spec, 500, NULL), HD_OK);
	spec.seed = 2;
	assert_int_equal(hd_split_hashed(&b, &spec, 1000, NULL), HD_OK);
	for (uint64_t i = 0; i < a.set.split[0].count; i++)
		assert_int_equal(hd_split_id(&a, 0, i), hd_split_id(&b, 0, i));
	hd_arena_finish(&a.arena);
	hd_arena_finish(&b.arena);
}

static void last_part_splits_never_overlap(void **state)
{
	static const double fractions[] = { 0.05, 0.1, 1.0 / 3, 0.5 };
	(void)state;

	for (uint64_t count = 2; count < 200; count++)
		for (size_t f = 0; f < 4; f++) {
			struct hd_reader reader = { 0 };
			struct hd_data_spec spec = { .train = 1 - fractions[f], .valid = fractions[f] };
			assert_int_equal(hd_split_last(&reader, &spec, count, NULL), HD_OK);
			uint64_t ntrain = reader.set.split[0].count, nvalid = reader.set.split[1].count;
			CHECK(nvalid >= 1 && ntrain >= 1 && ntrain + nvalid <= count &&
				ntrain + nvalid + 1 >= count && reader.first[1] == count - nvalid,
				"D=%llu valid %g: %llu + %llu", (unsigned long long)count, fractions[f],
				(unsigned long long)ntrain,
					(unsigned long long)nvalid);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_found_by_its_name_and_says_what_it_is),
		cmocka_unit_test(a_mistyped_kind_is_answered_with_the_nearest),
		cmocka_unit_test(impossible_splits_are_refused),
		cmocka_unit_test(what_opening_has_read_is_at_hand_up_to_a_bound),
		cmocka_unit_test(globs_match_as_shells_do),
		cmocka_unit_test(hashed_splits_have_the_fractions_asked_for),
		cmocka_unit_test(a_longer_set_keeps_the_split_of_its_beginning),
		cmocka_unit_test(last_part_splits_never_overlap),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
