#include "data/convert.h"

#include "sys/signal.h"
#include "data/out_file.h"
#include "data/record.h"
#include "tests/data_files.h"

static struct hd_fs_sim sim;

static int set_up(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	put_folder(&sim.fs, "d");
	put_text(&sim.fs, "d/t.jsonl", "{\"x\": [1, 0.1], \"label\": 2}\n{\"x\": [-3, 1e-30], \"label\": 0}\n"
		"{\"x\": [7, 8], \"label\": 1}\n");
	put_text(&sim.fs, "d/t.txt", "abcdefghijk");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	hd_signal_stop_set(HD_STOP_NONE);
	hd_fs_sim_finish(&sim);
	return 0;
}

static bool exists(const char *path)
{
	struct hd_stat stat;

	return !hd_fs_stat(&sim.fs, path, &stat, NULL);
}

static struct hd_data_spec spec_of(const char *kind, const char *path)
{
	return (struct hd_data_spec){ .kind = kind, .path = path, .train = 1, .classes = 3, .pad = -1,
		.rank = 1,
		.dim = { 2 } };
}

static struct hd_data_spec stream_of(const char *kind, const char *path)
{
	return (struct hd_data_spec){ .kind = kind, .path = path, .train = 1, .tokens = 256, .classes = 256,
		.context = 3,
		.pad = -1, .rank = 1, .dim = { 3 } };
}

static enum hd_err convert(const struct hd_dataset *set, const char *to, const char *out,
	struct hd_diag *diag)
{
	const struct hd_convert how = { .to = to, .out = out };
	struct hd_convert_report report;
	const enum hd_err err = hd_convert(&how, set, &sim.fs, &report, diag);

	/* of a file a slash at the end would not be found */
	assert_true(err || (report.out[0] && report.out[strlen(report.out) - 1] != '/'));
	return err;
}

/* Each sample of both, bit by bit. */
static void check_same(const struct hd_dataset *a, const struct hd_dataset *b)
{
	uint8_t ax[64], ay[64], bx[64], by[64];

	assert_true(a->count == b->count && a->nfields == b->nfields);
	for (uint32_t f = 0; f < a->nfields; f++)
		assert_true(a->field[f].dtype == b->field[f].dtype &&
			a->field[f].sample_bytes == b->field[f].sample_bytes);
	for (uint64_t i = 0; i < a->count; i++) {
		read_sample(a, 0, i, ax, ay);
		read_sample(b, 0, i, bx, by);
		assert_memory_equal(ax, bx, a->field[0].sample_bytes);
		assert_memory_equal(ay, by, a->field[1].sample_bytes);
	}
}

/* Sets of records are read by ranges of real files: program_rows.sh trains on some. */
struct seen_records { const struct hd_dataset *set; const uint8_t *bytes; uint64_t n; };

static enum hd_err look_at_record(void *user, const struct hd_record *record, struct hd_diag *diag)
{
	struct seen_records *seen = user;
	uint8_t sample[12];

	(void)diag;
	read_sample(seen->set, 0, seen->n++, sample, sample + 8);
	assert_true(record->len == sizeof sample && !record->damaged);
	assert_memory_equal(seen->bytes + record->offset, sample, sizeof sample);
	return HD_OK;
}

static void check_records(const struct hd_dataset *set, const char *path)
{
	static uint8_t bytes[1024];
	struct seen_records seen = { .set = set, .bytes = bytes };
	struct hd_records records;
	struct hd_file file;
	size_t len;

	assert_int_equal(hd_file_open(&sim.fs, path, HD_OPEN_READ, &file, NULL), HD_OK);
	assert_int_equal(hd_file_read(&file, bytes, sizeof bytes, &len, NULL), HD_OK);
	assert_int_equal(hd_file_close(&file, NULL), HD_OK);
	hd_records_init(&records);
	assert_int_equal(hd_records_feed(&records, bytes, len, path, look_at_record, &seen, NULL), HD_OK);
	assert_int_equal(hd_records_finish(&records, path, NULL), HD_OK);
	assert_int_equal(seen.n, set->count);
}

static void a_copy_has_the_same_samples(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_dataset *set = open_set(&sim.fs, spec_of("jsonl", "d/t.jsonl"));

	(void)state;
	CHECK(!convert(set, "npy", "d/o", &diag), "%s", diag.text);
	struct hd_dataset *copy = open_set(&sim.fs, spec_of("npy", "d/o"));
	check_same(set, copy);
	hd_dataset_destroy(copy);
	CHECK(!convert(set, "records", "d/o.rec", &diag), "%s", diag.text);
	check_records(set, "d/o.rec");
	assert_true(!exists("d/o.tmp") && !exists("d/o.rec.tmp"));
	hd_dataset_destroy(set);
	set = open_set(&sim.fs, stream_of("text", "d/t.txt"));
	CHECK(!convert(set, "tokens", "d/o.bin", &diag), "%s", diag.text);
	copy = open_set(&sim.fs, stream_of("tokens", "d/o.bin"));
	check_same(set, copy);
	hd_dataset_destroy(copy);
	hd_dataset_destroy(set);
}

static void what_a_kind_cannot_hold_is_refused(void **state)
{
	struct hd_data_spec spec = spec_of("jsonl", "d/t.jsonl");
	struct hd_diag diag = { "" };
	struct hd_dataset *set = open_set(&sim.fs, spec);

	(void)state;
	assert_int_equal(convert(set, "tokens", "d/o", &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "cannot be kept as tokens: a sample is no row of tokens"), "%s", diag.text);
	hd_dataset_destroy(set);
	put_text(&sim.fs, "d/l.jsonl", "{\"x\": [1, 2], \"label\": [0, 1, 2]}\n");
	spec.path = "d/l.jsonl";
	set = open_set(&sim.fs, spec);
	diag.text[0] = 0;
	assert_int_equal(convert(set, "records", "d/o", &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "its labels are lists, which npy holds"), "%s", diag.text);
	diag.text[0] = 0;
	assert_int_equal(convert(set, "npy", "d/t.txt", &diag), HD_E_EXISTS);
	CHECK(strstr(diag.text, "d/t.txt is there already"), "%s", diag.text);
	assert_true(!exists("d/o") && !exists("d/o.tmp"));
	hd_dataset_destroy(set);
}

static void a_request_to_stop_leaves_nothing(void **state)
{
	static const char *const kinds[] = { "npy", "records", "tokens" };
	struct hd_dataset *set = open_set(&sim.fs, stream_of("text", "d/t.txt"));

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct hd_diag diag = { "" };
		hd_signal_stop_set(HD_STOP_INTERRUPT);
		assert_int_equal(convert(set, kinds[k], "d/o", &diag), HD_E_INTERRUPT);
		CHECK(strstr(diag.text, "d/o is not written, nor is anything left of it"), "%s", diag.text);
		hd_signal_stop_set(HD_STOP_NONE);
		assert_true(!exists("d/o") && !exists("d/o.tmp"));
	}
	hd_dataset_destroy(set);
}

/* A folder has the name by now: the rename at the end fails. */
static void a_file_that_gets_no_name_is_not_left(void **state)
{
	struct hd_out_file out;
	struct hd_diag diag = { "" };

	(void)state;
	put_folder(&sim.fs, "d/o");
	assert_int_equal(hd_out_file_begin(&out, &sim.fs, "d/o", &diag), HD_OK);
	assert_int_not_equal(hd_out_file_end(&out, true, &diag), HD_OK);
	CHECK(strstr(diag.text, "cannot rename d/o.tmp to d/o"), "%s", diag.text);
	assert_false(exists("d/o.tmp"));
}

static void a_folder_may_be_named_with_a_slash(void **state)
{
	struct hd_dataset *set = open_set(&sim.fs, spec_of("jsonl", "d/t.jsonl"));
	struct hd_diag diag = { "" };

	(void)state;
	CHECK(!convert(set, "npy", "d/o//", &diag), "%s", diag.text);
	struct hd_dataset *copy = open_set(&sim.fs, spec_of("npy", "d/o"));
	check_same(set, copy);
	assert_false(exists("d/o.tmp"));
	hd_dataset_destroy(copy);
	diag.text[0] = 0;
	assert_int_equal(convert(set, "npy", "d/o/", &diag), HD_E_EXISTS);
	diag.text[0] = 0;
	assert_int_equal(convert(set, "records", "", &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "the output has no name"), "%s", diag.text);
	hd_dataset_destroy(set);
}

/* A set whose reads are counted. */
static const struct hd_dataset *counted;
static uint64_t nreads;

static enum hd_err read_counted(const struct hd_dataset *set, uint32_t split, uint64_t index,
	void *const *out, struct hd_diag *diag)
{
	(void)set;
	nreads++;
	return counted->ops->read(counted, split, index, out, diag);
}

/* All are looked at before the first is written: that takes as long. */
static void tokens_that_are_looked_at_stop_too(void **state)
{
	static const struct hd_reader_ops ops = { .name = "counted", .read = read_counted };
	struct hd_dataset *set = open_set(&sim.fs, stream_of("text", "d/t.txt")), copy = *set;
	struct hd_diag diag = { "" };

	(void)state;
	counted = set;
	copy.ops = &ops;
	hd_signal_stop_set(HD_STOP_INTERRUPT);
	assert_int_equal(convert(&copy, "tokens", "d/o", &diag), HD_E_INTERRUPT);
	CHECK(strstr(diag.text, "d/o is not written, nor is anything left of it"), "%s", diag.text);
	assert_int_equal(nreads, 0);
	hd_signal_stop_set(HD_STOP_NONE);
	assert_int_equal(convert(&copy, "tokens", "d/o", &diag), HD_OK);
	assert_int_equal(nreads, 2 * set->count);
	hd_dataset_destroy(set);
}

static void what_another_writes_is_left_to_it(void **state)
{
	struct hd_dataset *set = open_set(&sim.fs, spec_of("jsonl", "d/t.jsonl"));
	struct hd_file other;
	struct hd_diag diag = { "" };

	(void)state;
	put_folder(&sim.fs, "d/o.tmp");
	assert_int_equal(hd_file_open(&sim.fs, "d/o.tmp", HD_OPEN_FOLDER, &other, NULL), HD_OK);
	assert_int_equal(hd_file_lock(&other, NULL), HD_OK);
	assert_int_equal(convert(set, "npy", "d/o", &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "d/o is being written by another process"), "%s", diag.text);
	assert_true(exists("d/o.tmp"));
	assert_int_equal(hd_file_close(&other, NULL), HD_OK);
	/* killed now: the next one takes it over */
	put_text(&sim.fs, "d/o.tmp/x.npy.tmp", "more than what is written of the head of an array, so that "
		"it would stay");
	diag.text[0] = 0;
	CHECK(!convert(set, "npy", "d/o", &diag), "%s", diag.text);
	struct hd_dataset *copy = open_set(&sim.fs, spec_of("npy", "d/o"));
	check_same(set, copy);
	hd_dataset_destroy(copy);
	hd_dataset_destroy(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_copy_has_the_same_samples, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_kind_cannot_hold_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_request_to_stop_leaves_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_gets_no_name_is_not_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_folder_may_be_named_with_a_slash, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tokens_that_are_looked_at_stop_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_another_writes_is_left_to_it, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
